"""A loop in the background: the command returns once it has begun, and nothing that happens to the terminal ends it."""

import os
import signal
from pathlib import Path

import pytest

from bydawn.cli.main import may_detach, starts_a_loop
from bydawn.store.worker_log import WorkerLog
from driving import DONE, HANG, Home, alive_with, is_alive, stat_of, wait_for
from program.terminal_driver import Terminal

SAYS: dict[str, str] = {"say": "this takes a while"}


def worker_and_guardian(home: Home) -> tuple[int, int]:
    worker = int(home.facts("run.started")[-1]["data"]["pid"])
    return worker, int(stat_of(worker)[1])


def ends(home: Home) -> None:
    """Wait until the loop is over: nobody waits for one in the background, and `stop` only for its answer."""
    wait_for(lambda: not home.alive())


def test_it_returns_when_the_loop_has_begun_and_a_hang_up_does_not_touch_it(home: Home) -> None:
    """X-10, FAULTS 12, 13: the reader of its output is not kept waiting, and SIGHUP is ignored."""
    home.real = True
    begun = home.run(home.rounds([SAYS, HANG]), "-d")
    assert (begun.code, begun.err) == (0, "")
    assert "repo runs in the background; this terminal can be closed." in begun.out
    assert [line.split("  ")[2] for line in begun.out.splitlines()[-3:]] == [
        "bydawn attach repo",
        "bydawn show repo",
        "bydawn stop repo",
    ]
    worker, guardian = worker_and_guardian(home)
    home.await_round(1)
    for pid in (worker, guardian):
        assert stat_of(pid)[3:5] == [str(pid), "0"]  # a session of its own, without a terminal
        assert Path(f"/proc/{pid}/fd/2").resolve() == home.folder() / "worker.log"
        os.kill(pid, signal.SIGHUP)
    assert home.status()["state"] == "running"
    assert home.facts("pause.requested") == []
    assert home.bydawn("stop").code == 0
    wait_for(lambda: not is_alive(guardian))
    assert home.status()["state"] == "stopped"
    log = (home.folder() / "worker.log").read_text()
    assert "Loop   repo" in log
    assert "Stopped" in log


def test_what_it_refuses_is_said_in_front_of_the_person(home: Home) -> None:
    home.real = True
    nobody = home.run("nobody", "-d")
    assert nobody.code == 2
    assert "unknown agent 'nobody'" in nobody.err
    assert not home.has_loop()
    agent = home.rounds([SAYS, HANG])
    assert home.run(agent, "-d").code == 0
    log = home.folder() / "worker.log"
    wait_for(lambda: "result" in log.read_text())  # the head of its table, which comes just after it has begun
    before = log.read_text()
    again = home.run(agent, "-d")
    assert (again.code, again.out) == (8, "")
    assert "the loop repo is already running" in again.err
    assert log.read_text() == before
    home.bydawn("stop")
    ends(home)


def test_resume_detaches_too_and_the_loop_ends_without_a_reader(home: Home) -> None:
    home.real = True
    gate, opened = home.gate()
    assert home.run(home.rounds([{"result": {"text": "half"}}], [gate, DONE]), "--once").code == 4
    begun = home.bydawn("resume", "-d", "--rounds", "+5")
    assert "repo continues after round 1 in the background" in begun.out
    assert home.status()["state"] == "running"
    opened.touch()
    wait_for(lambda: home.status()["state"] == "unverified")
    assert home.rounds_ended()[-1]["round"] == 2
    ends(home)


def test_a_closed_window_ends_nothing_and_the_question_came_before(home: Home) -> None:
    """FAULTS 12: trust is asked for in the terminal, before the loop leaves it."""
    (home.repo / "bydawn.toml").write_text('check = ["true"]\n')
    window = Terminal(home, "run", "do it", "-a", home.rounds([SAYS, HANG]), "--detach")
    window.see("Do you trust this?")
    assert not home.has_loop()
    window.type("y\n")
    window.see("bydawn stop repo")
    window.hang_up()
    home.await_round(1)
    assert home.status()["state"] == "running"
    assert home.facts("pause.requested") == []
    home.bydawn("stop")
    ends(home)


def test_a_killed_worker_is_named_in_the_log(home: Home) -> None:
    """FAULTS 4: there is no terminal in which the guardian could say it."""
    home.real = True
    home.run(home.rounds([SAYS, HANG]), "-d")
    worker, guardian = worker_and_guardian(home)
    agent = home.await_round(1)
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: not is_alive(guardian))
    assert not is_alive(agent)
    assert home.status()["state"] == "crashed"
    assert "error: the process of this loop was killed by SIGKILL" in (home.folder() / "worker.log").read_text()
    assert alive_with(f"HOME={home.root}/home\0") == []


@pytest.mark.parametrize(
    ("words", "detaches"),
    [
        ("run x -d", True),
        ("resume --detach", True),
        ("run x -dn5", True),
        ("run x --dry-run", False),
        ("run x --done-when DONE", False),
        ("run x -- -d", False),  # for the agent
    ],
)
def test_when_a_command_may_have_to_wait_in_front_of_its_loop(words: str, *, detaches: bool) -> None:
    assert may_detach(words.split()) is detaches
    assert starts_a_loop(words.split())


def test_a_tool_whose_runs_stay_in_front_never_waits_for_its_loop() -> None:
    words = ["do", "it", "-d"]
    assert starts_a_loop(words, "waylon-smithers")
    assert not may_detach(words, "waylon-smithers")


def test_the_log_stays_small_and_keeps_the_newest_lines(tmp_path: Path) -> None:
    log = WorkerLog(tmp_path / "worker.log", lambda text: text.replace("hunter2", "***"))
    assert not (tmp_path / "worker.log").exists()  # a start may still be refused
    for number in range(15_000):
        log.write(f"{number:06} hunter2 {'x' * 84}\n")
    lines = (tmp_path / "worker.log").read_text().splitlines()
    assert (tmp_path / "worker.log").stat().st_size <= 1_000_000
    assert lines[-1].startswith("014999 *** x")
    assert {len(line) for line in lines} == {len(lines[-1])}  # no half line at the cut
    assert (tmp_path / "worker.log").stat().st_mode & 0o777 == 0o600
    os.close(log.fd)
