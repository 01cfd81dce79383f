"""strict-agent-loop interrupted and killed again and again: numbers go on, and its files stay whole."""

import shutil
import time
from signal import SIGINT, SIGTERM

import pytest

from driving import Home, said, wait_for, worker_of
from program.hailstone import STEPS
from program.strict import CHECK, STEP, Strict

# By a file that the agent, a script or a check leaves, or so many milliseconds after the start.
MOMENTS: tuple[int | str, ...] = (0, 60, 150, "event", "update", "recorded", "check", "agent", "rest", "between")


@pytest.mark.installed
def test_a_signal_at_any_moment_stops_it_with_130_and_it_goes_on_with_the_next_number(home: Home) -> None:
    """S-044, S-051: FAULTS 11, 12; the interruption is recorded, and nothing is left running."""
    strict, at = Strict(home), home.root / "at"
    turn = strict.round(1, "--event")
    strict.plays({"sh": f"touch ../at/agent; sleep 0.1; {turn['sh']}; touch ../at/rest; sleep 0.1", "reply": "One."})
    strict.init("--stop-command", CHECK)
    for place, moment in enumerate(MOMENTS):
        number, done = (SIGINT, SIGTERM)[place % 2], len(strict.entries)
        told, runs = interruptions(strict), len(strict.facts("run.started"))
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir()
        process = strict.supervise("--sleep-seconds", "30")
        worker_of(process)
        if isinstance(moment, int):
            time.sleep(moment / 1000)
        elif moment == "between":
            wait_for(lambda: len(strict.entries) > done and len(strict.facts("wait.started")))  # noqa: B023 - at once
        else:
            wait_for((at / moment).exists)
        process.send_signal(number)
        ended = said(process)
        assert (ended.code, "Traceback" in ended.err) == (130, False), (moment, ended)
        wait_for(lambda: not home.alive())
        # Before its run has begun there is nothing to interrupt.
        assert interruptions(strict) - told == len(strict.facts("run.started")) - runs, moment
        assert strict.state["status"] == "running"
        strict.has_no_gap()
    steps = "; ".join([*[STEP] * STEPS, strict.round(1)["sh"]])
    strict.plays({"sh": steps, "reply": "All of them."})
    done = len(strict.entries)
    ended = said(strict.supervise())
    assert (ended.code, len(strict.entries), done >= 3) == (0, done + 1, True), ended
    strict.has_no_gap()


def interruptions(strict: Strict) -> int:
    return len([event for event in strict.events("supervisor.invocation.interrupted") if "paused" in event["message"]])
