"""codex-loop's daemon and service: a project goes on by itself, on the same branch and with the same numbers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driving import HANG, Home, is_error, kill_both, stat_of, wait_for
from host.fake_managers import Fakes
from program.codex_loop import BRANCH, CONFIG, ONE, TWO, CodexLoop, idles, works

QUICK = """
import sys
from pathlib import Path
from bydawn.cli.dialects.codex_loop_daemon import watch
from bydawn.dialects.codex_loop.arguments import Options
from bydawn.operations.dialects.codex_loop import watchdog
root, most = Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None
options = Options(max_cycles=most, cycle_sleep_seconds=600 if most else 60)
watch(root, "daemon", options, watchdog.begin(root, "daemon", options), back_off=0.05)
"""


@pytest.fixture
def project(home: Home) -> Iterator[CodexLoop]:
    home.real = True
    found = CodexLoop(home)
    found.project(ONE, TWO, verify="test -e README.md")
    yield found
    found("daemon", "stop")


def waits(project: CodexLoop, task: str = ONE) -> dict[str, Any]:
    """A turn that lasts until the gate is open."""
    return {"wait_for": str(project.gate()), **works(task)}


def told(project: CodexLoop, name: str = "daemon-watchdog") -> dict[str, Any]:
    path = project.folder / f"{name}.json"
    wait_for(path.exists)  # the run may have begun before its daemon has written how it is
    return dict(json.loads(path.read_text()))


def ends(project: CodexLoop) -> None:
    """Wait until nothing runs: a daemon tells how it is before it ends, and nobody waits for it."""
    wait_for(lambda: not project.home.alive())


def runs(project: CodexLoop) -> list[dict[str, Any]]:
    return project.facts("run.started")


def kill_run(project: CodexLoop, count: int) -> None:
    """The worker of this run, once its Codex works."""
    wait_for(lambda: len(runs(project)) == count and len(project.calls) == count)
    os.kill(runs(project)[-1]["pid"], signal.SIGKILL)


def test_a_run_that_is_killed_three_times_goes_on_three_times(project: CodexLoop) -> None:
    """C-012, C-017, C-066: as it is installed, with its own five seconds before each start."""
    project.plays(waits(project), waits(project), waits(project), works(ONE), works(TWO))
    started = project("daemon", "start")
    described = told(project, "daemon")
    assert (started.code, started.out.splitlines()[0]) == (0, f"daemon: running (pid {described['pid']})")
    assert [*described] == [
        *("pid", "started_at", "project_dir", "log_path", "heartbeat_path", "watchdog_state_path", "command"),
        *("options", "max_restarts", "restart_backoff_seconds", "heartbeat_stale_seconds"),
    ]
    assert [described[name] for name in [*described][-3:]] == [10, 5.0, 300.0]
    watchdog = int(described["pid"])
    assert stat_of(watchdog)[3] == str(watchdog), "a session of its own: the terminal can be closed"
    for count in (1, 2, 3):
        kill_run(project, count)
        wait_for(lambda count=count: told(project)["restart_count"] == count)  # type: ignore[misc]
    assert told(project)["last_restart_reason"] == "exit_code:-9"
    project.gate().touch()
    wait_for(lambda: told(project)["phase"] == "completed")
    ends(project)
    assert {(run.get("restart") or {}).get("number") for run in runs(project)} == {None, 1, 2, 3}
    assert project.commits == ["codex-loop: One (iteration 4)", "codex-loop: Two (iteration 5)"]
    assert [entry["event_type"] for entry in project.history() if "watchdog" in entry["event_type"]] == [
        "watchdog_restart"
    ] * 3
    assert project.meta["worktree_branch"] == BRANCH
    assert not (project.folder / "daemon.json").exists(), "its end was in good order"
    beat = told(project, "daemon-heartbeat")
    assert (beat["phase"], beat["outcome"], beat["error_count"]) == ("completed", "completed", 0)
    status = json.loads(project("daemon", "status", "--json").out)
    assert (status["running"], status["phase"], status["restart_count"]) == (False, "completed", 3)


def test_a_run_that_dies_eleven_times_exhausts_its_watchdog(project: CodexLoop) -> None:
    """C-066: `exhausted`, `health` 2, doctor warns, one more entry in the history, and nothing goes on by itself."""
    project.plays(*[waits(project)] * 12)
    process = quick(project)
    for count in range(1, 12):
        kill_run(project, count)
    assert process.wait(30) == 0
    assert (told(project)["phase"], told(project)["restart_count"]) == ("exhausted", 10)
    assert (project.blocker, project.meta["overall_status"]) == ("watchdog_exhausted", "blocked")
    last = project.history()[-1]
    assert (last["event_type"], last["restart_reason"], last["restart_count"]) == (
        "watchdog_exhausted",
        "exit_code:-9",
        11,
    )
    assert project("health").code == 2
    doctor = project("doctor")
    assert (doctor.code, "died 11 times in a row" in doctor.out.partition("Warnings")[2]) == (0, True)
    project.plays(works(ONE), works(TWO))
    assert project.run().code == 0, "a person goes on, and it begins at none"
    assert runs(project)[-1].get("restart") is None


def quick(project: CodexLoop, *words: str) -> "subprocess.Popen[bytes]":
    """A daemon in the foreground, which starts its run again at once."""
    command = [sys.executable, "-c", QUICK, str(project.repo), *words]
    process = subprocess.Popen(command, env=project.home.env, cwd=project.home.root)
    project.home._started.append(process)  # type: ignore[arg-type]
    return process


def test_a_cycle_and_its_pause_are_not_given_again_after_a_restart(project: CodexLoop) -> None:
    """Otherwise every death would buy another `--max-cycles`."""
    project.project(ONE, TWO, execution={"max_iterations": 1})
    project.plays(works(ONE, "continue"))
    process = quick(project, "2")
    wait_for(lambda: [run for run in runs(project) if run["cycle"] == 2])
    os.kill(runs(project)[-1]["pid"], signal.SIGKILL)
    again = wait_for(lambda: runs(project)[2:])[0]
    assert again["cycle"] == 2
    assert 500 < again["rest"] < 600
    assert len(project.calls) == 1
    process.terminate()
    assert process.wait(30) == 0


def test_a_run_that_hangs_is_stopped_with_its_daemon_and_no_service_takes_it_up(project: CodexLoop) -> None:
    project.plays(waits(project))
    project("daemon", "start")
    wait_for(lambda: project.calls)
    worker = runs(project)[-1]["pid"]
    for pid in (int(stat_of(worker)[1]), worker):
        os.kill(pid, signal.SIGSTOP)
    assert project("daemon", "stop").out == "  The daemon has ended.\n"
    wait_for(lambda: not project.home.alive())
    assert project.facts("loop.stopped")[-1]["end"] == "stopped"


def test_what_cannot_be_started_again_is_not_ended(project: CodexLoop) -> None:
    """And `daemon status` says why a run that died does not go on."""
    project.plays(waits(project), works(TWO))
    project("daemon", "start")
    first = told(project, "daemon")["pid"]
    project.write(CONFIG, (project.repo / CONFIG).read_text().replace("test -e README.md", "touch canary"))
    refused = project("daemon", "restart")
    assert (refused.code, "trust" in refused.err) == (1, True)
    assert told(project, "daemon")["pid"] == first
    kill_run(project, 1)
    told_of = {"since you trusted it", "phase: restarting"}  # by the run, and then by the daemon, which saw its end

    def is_told() -> bool:
        shown = project("daemon", "status").out  # one look: between two of them it may be started again
        return all(words in shown for words in told_of)

    wait_for(is_told)
    health, why = project("health"), "the daemon has not started it again yet: `codex-loop daemon status`"
    assert (health.code, why in health.out) == (2, True)


def test_a_daemon_can_be_stopped_and_started_again(project: CodexLoop) -> None:
    project.plays(waits(project), waits(project), waits(project), works(TWO))
    assert project("daemon", "stop").out == "  No daemon runs here.\n"
    assert project("daemon", "status").out.startswith("daemon: not running\n")
    assert project("daemon", "start", "--json", "--max-cycles", "3").code == 0
    assert told(project, "daemon")["options"] == {
        "retry_blocked": False,
        "cycle_sleep_seconds": 60.0,
        "max_cycles": 3,
    }
    wait_for(lambda: project.facts("round.started"))
    for words in (("daemon", "start"), ("run",)):
        refused = project(*words)
        assert (refused.code, is_error(refused.err)) == (8, True)
    first = told(project, "daemon")["pid"]
    assert project("daemon", "restart").code == 0
    assert told(project, "daemon")["pid"] != first
    assert project.facts("loop.stopped")[-1]["end"] == "stopped", "a person asked: no service takes it up"
    assert project("daemon", "stop").out == "  The daemon has ended.\n"
    assert (told(project)["phase"], project.blocker) == ("stopped", "interrupted")
    wait_for(lambda: not project.home.alive())


def test_a_daemon_that_was_killed_is_told_from_one_that_runs(project: CodexLoop) -> None:
    """What its files say is not believed: its lock is free."""
    project.plays(waits(project), works(ONE), works(TWO))
    project("daemon", "start")
    wait_for(lambda: project.facts("round.started") and told(project)["phase"] == "running")
    os.kill(told(project, "daemon")["pid"], signal.SIGKILL)
    shown = wait_for(lambda: [s for s in [project("daemon", "status")] if s.out.startswith("daemon: not running")])[0]
    assert "phase: died" in shown.out
    refused = project("daemon", "start")
    assert (refused.code, "is at work" in refused.err) == (8, True), "its run goes on without it"
    assert project.home.bydawn("stop").code == 0
    ends(project)
    assert "daemon.json names no process that lives" in project("doctor").out
    project.gate().touch()
    assert project("daemon", "start").code == 0
    wait_for(lambda: told(project)["phase"] == "completed")


@pytest.mark.parametrize(("turn", "phase", "code"), [(works, "completed", 0), (idles, "stopped", 2)])
def test_a_daemon_on_a_project_with_nothing_left_to_do_ends_by_itself(
    project: CodexLoop, turn: Any, phase: str, code: int
) -> None:
    """On a finished project, and on a blocked one: no task is tried again unless a person asks."""
    more = {} if turn is works else {"status": "blocked", "blockers": ["no key"]}
    project.plays(turn(ONE, **more), turn(TWO, **more))
    assert project.run().code == code
    spent = len(project.calls)
    assert project("daemon", "start").code == 0
    wait_for(lambda: told(project)["phase"] == phase)
    ends(project)
    assert (len(project.calls), project("daemon", "stop").out) == (spent, "  No daemon runs here.\n")


def test_how_a_daemon_is_is_written_through_no_link(project: CodexLoop) -> None:
    project.plays(waits(project), works(TWO))
    project("daemon", "start")
    elsewhere = project.home.root / "elsewhere"
    elsewhere.mkdir()
    wait_for(lambda: project.calls)  # now the run writes nothing for a minute: it would make the folder again
    project.folder.rename(project.home.root / "moved")
    project.folder.symlink_to(elsewhere)
    kill_run(project, 1)
    log = project.home.root / "moved/daemon.log"
    wait_for(lambda: "cannot go on now; the next try is in 1 m" in log.read_text())
    assert ".codex-loop/daemon.json leads through a link" in log.read_text()
    assert f"[iteration 1/30] task: {ONE} (0/2 done)\n" in log.read_text()
    assert not [*elsewhere.iterdir()]
    project.folder.unlink()
    (project.home.root / "moved").rename(project.folder)


def test_what_cannot_begin_is_said_here_and_nothing_stays(project: CodexLoop) -> None:
    project.plays(works(ONE))
    project.write(CONFIG, (project.repo / CONFIG).read_text().replace("test -e README.md", "rm -rf ~"))
    untrusted = project("daemon", "start")
    assert (untrusted.code, is_error(untrusted.err), "trust" in untrusted.err) == (1, True, True)
    (project.repo / CONFIG).unlink()
    missing = project("daemon", "start")
    assert (missing.code, "codex-loop.yaml is missing" in missing.err) == (1, True)
    for words in (("--cycle-sleep-seconds", "-1"), ("--max-cycles", "0"), ("--retry-errors",)):
        assert project("daemon", "start", *words).code == 2
    assert not project.folder.exists()
    assert not project.calls


@pytest.mark.parametrize(
    ("name", "text", "code", "why"),
    [
        ("daemon-heartbeat.json", '{"beats": 3}', 1, "daemon-heartbeat.json is someone else's"),
        ("daemon-heartbeat.json", '{"pid":1,"phase":"x","updated_at":"2026-01-01T00:00:00"}', 1, "is someone else's"),
        ("daemon-watchdog.json", "not json", 1, "daemon-watchdog.json is someone else's"),
        ("daemon.json", '{"pid": 1}', 8, "daemon.json names process 1, which is alive"),
        ("daemon.log/", "", 1, "daemon.log is a folder"),
    ],
)
def test_files_of_another_program_are_left_alone(project: CodexLoop, name: str, text: str, code: int, why: str) -> None:
    path = project.folder / name
    path.mkdir(parents=True) if name.endswith("/") else project.write(f".codex-loop/{name}", text)
    project.plays(works(ONE))
    refused = project("daemon", "start")
    assert (refused.code, is_error(refused.err), why in refused.err) == (code, True, True), refused
    assert path.is_dir() or path.read_text() == text
    assert not project.calls


def test_a_read_only_project_is_refused_and_can_be_looked_at(project: CodexLoop) -> None:
    project.plays(works(ONE))
    project.write(".codex-loop", "a file where the folder should be")
    refused = project("daemon", "start")
    assert (refused.code, is_error(refused.err)) == (1, True)
    assert project("daemon", "status").code == 0


# -- service -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fakes(project: CodexLoop) -> Fakes:
    found = Fakes(project.home.root / "managers", "systemctl", "loginctl")
    project.home.env["PATH"] = f"{found.folder}:{project.home.env['PATH']}"
    return found


def unit_of(project: CodexLoop) -> Path:
    [found] = (project.home.root / "home/.config/systemd/user").glob("codex-loop-*.service")
    return found


@pytest.mark.usefixtures("fakes")
def test_daemon_and_service_never_both_keep_a_project_running(project: CodexLoop) -> None:
    """C-013, C-067: one unit per project, named after its path."""
    project.plays(waits(project), works(ONE), works(TWO))
    project("daemon", "start")
    for verb in ("install", "reinstall"):
        refused = project("service", verb)
        assert (refused.code, "keeps it running" in refused.err) == (8, True)
    project("daemon", "stop")
    installed = project("service", "install", "--retry-blocked", "--max-cycles", "4")
    assert (installed.code, "installed: yes" in installed.out) == (0, True), installed
    text = unit_of(project).read_text()
    assert f"service run --project-dir {project.repo} --retry-blocked --cycle-sleep-seconds 60 --max-cycles 4" in text
    assert str(project.folder / "service.log") in text
    refused = project("daemon", "start")
    assert (refused.code, "this project has a service" in refused.err) == (8, True)
    assert project("service", "uninstall").out == "  The service has ended and is removed.\n"
    assert project("service", "uninstall").out == "  No service is installed for this project.\n"
    assert not [*unit_of_any(project)]


def unit_of_any(project: CodexLoop) -> Iterator[Path]:
    return (project.home.root / "home/.config/systemd/user").glob("codex-loop-*")


@pytest.mark.usefixtures("fakes")
def test_what_the_unit_starts_has_files_of_its_own_and_respects_who_stopped_it(project: CodexLoop) -> None:
    project.plays(waits(project), works(ONE), works(TWO))
    service = project.start("service", "run")
    wait_for(lambda: project.facts("round.started") and told(project, "service-watchdog")["phase"] == "running")
    assert told(project, "service")["pid"] == service.pid
    shown = json.loads(project("service", "status", "--json").out)
    assert (shown["running"], shown["pid"], shown["phase"]) == (True, service.pid, "running")
    assert project("daemon", "status").out.startswith("daemon: not running\n")
    assert project("daemon", "stop").code == 8
    service.send_signal(signal.SIGTERM)
    assert service.wait(30) == 0, "the system is going down, in good order"
    assert project.facts("loop.stopped")[-1]["by"] == "SIGTERM"
    project.gate().touch()
    assert project("service", "run", seconds=60).code == 0, "and goes on after the next boot"
    assert (told(project, "service-watchdog")["phase"], project.meta["overall_status"]) == ("completed", "completed")
    project.write("tasks/003-three.md", "# Three\n\nWrite it.\n")
    project.plays({"wait_for": str(project.gate("never")), **idles("003-three")})
    again = project.start("service", "run")
    wait_for(lambda: len(project.facts("round.started")) == 4)
    assert project.home.bydawn("stop").code == 0
    assert again.wait(30) == 0
    rests = project("service", "run")
    assert (rests.code, "it stays so until someone starts it again" in rests.out) == (0, True)
    assert len(project.facts("round.started")) == 4


@pytest.mark.usefixtures("fakes")
def test_reinstall_checks_before_it_removes_and_uninstall_is_a_persons_stop(project: CodexLoop) -> None:
    project.plays(waits(project), works(ONE), works(TWO))
    assert project("service", "install").code == 0
    service = project.start("service", "run")
    wait_for(lambda: project.calls)
    before = unit_of(project).read_text()
    trusted = (project.repo / CONFIG).read_text()
    project.write(CONFIG, trusted.replace("test -e README.md", "touch canary"))
    assert project("service", "reinstall", "--max-cycles", "2").code == 1
    assert unit_of(project).read_text() == before
    project.write(CONFIG, trusted)
    assert project("service", "uninstall").code == 0
    assert service.wait(30) == 0
    assert project.facts("loop.stopped")[-1]["end"] == "stopped", "bydawn's own service leaves it so"


def test_deaths_are_counted_on_when_the_watchdog_died_too(project: CodexLoop) -> None:
    """A boot: no one saw how it ended."""
    project.plays(waits(project), waits(project), works(ONE), works(TWO))
    for count in (1, 2):
        service = project.start("service", "run")
        wait_for(lambda count=count: len(project.calls) == count)  # type: ignore[misc]
        worker = runs(project)[-1]["pid"]
        os.kill(service.pid, signal.SIGSTOP)
        wait_for(lambda service=service: stat_of(service.pid)[0] == "T")  # type: ignore[misc]
        kill_both(int(stat_of(worker)[1]))
        service.kill()
        service.wait()
    project.gate().touch()
    assert project("service", "run").code == 0
    numbers = [(run.get("restart") or {}).get("number") for run in runs(project)]
    assert numbers == [None, 1, 2]
    assert [entry["restart_reason"] for entry in project.history("watchdog_restart")] == ["process_gone"] * 2


@pytest.mark.usefixtures("fakes")
def test_bydawns_own_service_leaves_a_watched_project_alone(project: CodexLoop) -> None:
    project.plays(waits(project), works(ONE), works(TWO))
    assert project("service", "install").code == 0
    run = project.start("run")
    wait_for(lambda: project.facts("round.started"))
    kill_both(run.pid)
    run.wait()
    # Another loop of theirs goes on in the same look, so that this one has been passed over.
    other = project.home.start_run(project.home.rounds([{"say": "a while"}, HANG]), "--name", "other")
    project.home.await_round(1, "other")
    other.send_signal(signal.SIGTERM)
    other.wait()
    keeper = project.home.start("resume", "--all", "--foreground")
    project.home.await_round(2, "other")
    keeper.send_signal(signal.SIGTERM)
    keeper.wait(30)
    assert len(runs(project)) == 1
    unit_of(project).unlink()
    project.gate().touch()
    keeper = project.home.start("resume", "--all", "--foreground")
    wait_for(lambda: project.facts("loop.stopped"), 60)
    keeper.send_signal(signal.SIGTERM)
    assert keeper.wait(30) == 0
    assert len(runs(project)) == 2


def test_a_service_needs_a_home_and_a_manager(project: CodexLoop) -> None:
    project.plays(works(ONE))
    del project.home.env["HOME"]
    refused = project("service", "install")
    assert (refused.code, "HOME is not set" in refused.err) == (1, True)
    project.home.env["HOME"] = str(project.home.root / "home")
    project.home.env["PATH"] = f"{project.bin}:/nowhere"
    assert is_error(project("service", "install").err)
    assert not [*unit_of_any(project)]
