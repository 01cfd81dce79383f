"""Many loops at once: one command resumes them in the background, and says of each what became of it."""

import os
import shutil
import signal

from driving import DONE, HANG, OK, Home, a_repository, said, stat_of, wait_for, worker_of

SAYS = {"say": "this takes a while"}
SHARED = "also runs in this folder: each loop will count the other's changes as its own progress"


def rows(out: str) -> dict[str, str]:
    return {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines()}


def test_all_resumes_what_the_machine_ended_and_names_what_it_leaves_alone(home: Home) -> None:
    """FAULTS 15: after a reboot every loop goes on at its round, none twice, whatever became of the others."""
    home.real = True
    agent = home.rounds([SAYS, HANG], [SAYS, HANG], [DONE])
    gone = home.root / "gone"
    a_repository(gone, "# soon gone\n")
    here = {name: home.start_run(agent, "--new", "--name", name) for name in ("crashed", "ended", "stopped")}
    here["gone"] = home.start_run(agent, "-C", str(gone))
    for name in ("crashed", "ended", "stopped"):
        home.await_round(1, name)
    wait_for(lambda: [*home.states.glob("loops/gone-*/gone/rounds/0001/stdout")])
    os.kill(worker_of(here["crashed"]), signal.SIGKILL)
    for name in ("ended", "gone"):
        here[name].send_signal(signal.SIGTERM)
    home.bydawn("stop", "stopped")
    assert [said(here[name]).code for name in ("ended", "gone", "stopped")] == [130, 130, 130]
    shutil.rmtree(gone)
    home.run(home.rounds([OK]), "--new", "--name", "limited", "--rounds", "1")
    home.run(home.rounds([DONE]), "--new", "--name", "finished")
    wait_for(lambda: home.status("crashed")["state"] == "crashed")

    answer = home.bydawn("resume", "--all", cwd=home.root)
    assert answer.code == 2  # one was refused
    found = rows(answer.out)
    person = home.facts("stop.requested", "stopped")[0]["data"]["by"]
    assert found.pop("gone").startswith("refused the workspace of gone is gone")
    assert found == {
        "crashed": f"resumed after round 1; ended {SHARED}",
        "ended": f"resumed after round 1; crashed {SHARED}",
        "stopped": f"skipped stopped by {person}; --stopped takes it too",
        "limited": "skipped it has reached a limit",
    }
    for name in ("crashed", "ended"):
        home.await_round(2, name)
        worker = home.facts("run.started", name)[-1]["data"]["pid"]
        guardian = int(stat_of(worker)[1])
        assert [stat_of(pid)[3:5] for pid in (worker, guardian)] == [[str(worker), "0"], [str(guardian), "0"]]
    assert rows(home.bydawn("resume", "--all").out)["ended"] == "skipped it is running"
    third = home.bydawn("resume", "--all", "--stopped")
    assert rows(third.out)["stopped"] == f"resumed after round 1; crashed, ended {SHARED.replace('runs', 'run')}"
    assert third.err == ""  # said once
    home.await_round(2, "stopped")
    # A worker that is killed takes its agent with it, and no other loop.
    os.kill(home.facts("run.started", "crashed")[-1]["data"]["pid"], signal.SIGKILL)
    wait_for(lambda: home.status("crashed")["state"] == "crashed")
    assert home.status("ended")["state"] == "running"
    assert home.bydawn("stop", "--all").code == 0
    wait_for(lambda: not home.alive())
    assert [fact["round"] for fact in home.rounds_ended("ended")] == [1, 2]


def test_what_all_cannot_be_combined_with(home: Home) -> None:
    for words in (("--all", "repo"), ("--all", "--rounds", "+5"), ("--all", "--approve"), ("--stopped",)):
        assert home.bydawn("resume", *words).code == 2
    assert home.bydawn("resume", "--all").out == "  No loop is unfinished.\n"
    assert "agents may not" in home.bydawn("resume", "--all", BYDAWN_COOKIE="abc.1").err
