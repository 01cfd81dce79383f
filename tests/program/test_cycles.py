"""Runs that follow each other by themselves, in one process: its lock, signals, and requests of other commands."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from driving import OK, Home, kill_both, said, wait_for

# What a dialect's command does in its worker: a round for each cycle, until the third has ended.
PROGRAM = """
import sys
from pathlib import Path
from bydawn.assemble import Cycles, Worker
from bydawn.core.values import EXIT_CODES
from bydawn.operations import resume, settings
from bydawn.operations.beating import Heartbeat
from bydawn.operations.run_loop import run
from bydawn.process.guardian import run_guarded
from bydawn.store.registry import Registry

def work(tether):
    planned = resume.plan(Registry().find(None, None), settings.secrets())
    cycles = Cycles(sleep=float(sys.argv[1]), most=3, again=lambda stopped, cycle: True)
    with Heartbeat(Path(sys.argv[2])) as beat:
        worker = Worker(tether=tether, followers=(beat,), rounds_allowed=1, cycles=cycles)
        return EXIT_CODES[run(planned, worker).end]

sys.exit(run_guarded(work)[0])
"""


class Night:
    """A loop that is run so, after its first round."""

    def __init__(self, home: Home, *words: str) -> None:
        self.home, self.beat = home, home.root / "beat.json"
        self.gate, self.key = home.gate()
        work = {"run": ["sh", "-c", "date +%N >> work"]}
        self.key.touch()  # it is open, unless a test closes it
        assert home.run(home.rounds([work, self.gate, OK]), "--once", *words).code == 4

    def start(self, sleep: float) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(sleep), str(self.beat)],
            cwd=self.home.repo,
            env=self.home.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.home._started.append(process)
        return process

    def started_and_waiting(self) -> "subprocess.Popen[str]":
        """It sleeps before its second cycle."""
        process = self.start(300)
        wait_for(lambda: self.home.facts("wait.started"))
        return process

    @property
    def cycles(self) -> list[int]:
        return [fact["data"].get("cycle", 0) for fact in self.home.facts("run.started")]

    def said(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.beat.read_bytes())
        return found


@pytest.fixture
def night(home: Home) -> Night:
    return Night(home)


def test_cycles_follow_each_other_in_one_process(night: Night) -> None:
    """C-061: `--max-cycles`"""
    assert said(night.start(2)).code == 4  # a pause that was over before it was looked at would not be written down
    assert night.cycles == [0, 1, 2, 3]
    runs = [fact["data"] for fact in night.home.facts("run.started")]
    assert len({run["pid"] for run in runs[1:]}) == 1
    assert [fact["data"]["seconds"] <= 2 for fact in night.home.facts("wait.started")] == [True, True]
    assert len(night.home.rounds_ended()) == 4
    assert (night.said()["cycle"], night.said()["phase"]) == (3, "blocked")
    assert "Cycle   3" in night.home.bydawn("show").out


def test_while_it_sleeps_its_status_is_true_and_a_person_can_stop_it(night: Night) -> None:
    process = night.started_and_waiting()
    status = night.home.status()
    assert (status["state"], status["waiting"]["reason"]) == ("waiting", "pause before cycle 2")
    assert night.home.bydawn("resume").code == 8
    assert night.home.bydawn("tell", "repo", "use tabs").code == 0
    assert night.home.bydawn("stop").code == 0
    assert said(process).code == 130
    assert (night.home.status()["state"], night.cycles) == ("stopped", [0, 1, 2])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_pause_at_once(night: Night, number: signal.Signals) -> None:
    process = night.started_and_waiting()
    os.kill(process.pid, number)
    assert said(process, 20).code == 130
    assert (night.home.status()["state"], len(night.home.rounds_ended())) == ("paused", 2)


@pytest.mark.parametrize("twice", [False, True])
def test_ctrl_c_in_a_round_ends_all_cycles(night: Night, twice: bool) -> None:
    """Once: after the round. Twice: now."""
    night.key.unlink()
    process = night.start(0)
    night.home.await_round(2)
    os.kill(process.pid, signal.SIGINT)
    wait_for(lambda: night.home.facts("pause.requested"))
    if twice:
        os.kill(process.pid, signal.SIGINT)
    else:
        night.key.touch()
    assert said(process, 20).code == 130
    assert night.home.outcomes() == ["ok", "interrupted" if twice else "ok"]
    assert (night.home.status()["state"], night.cycles) == ("paused", [0, 1])


def test_ctrl_c_while_the_last_hook_of_a_cycle_runs_ends_all_cycles(home: Home) -> None:
    """Its end has been decided by then, so nothing but the signal says that a person wants no more."""
    go, ran = home.root / "go", home.root / "ran"
    night = Night(home, "--on-blocked", f"! test -e {go} || {{ touch {ran}; sleep 60; }}")
    go.touch()
    process = night.start(0)
    wait_for(ran.exists)
    os.kill(process.pid, signal.SIGINT)
    said(process, 20)
    assert night.cycles == [0, 1]


def test_after_a_double_kill_in_the_pause_a_person_can_go_on(night: Night) -> None:
    """The ledger is all that counts: the next run is a person's, and waits for nothing."""
    process = night.started_and_waiting()
    kill_both(process.pid)
    wait_for(lambda: night.home.status()["state"] == "crashed")
    assert night.home.bydawn("resume", "--once").code == 4
    assert (night.cycles, len(night.home.rounds_ended())) == ([0, 1, 2, 0], 3)
