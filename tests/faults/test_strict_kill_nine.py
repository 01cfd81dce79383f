"""strict-agent-loop interrupted and killed again and again: numbers go on, and its files stay whole."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from signal import SIGINT, SIGKILL, SIGTERM

import pytest
from hypothesis import settings

from driving import Home, is_alive, name_of, said, wait_for, worker_of
from program.hailstone import STEPS
from program.strict import CHECK, STEP, Strict
from program.test_strict_agent_loop import Reader

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


def victims(process: "subprocess.Popen[str]", worker: int, kind: str, home: Home) -> Iterator[int]:
    """Who is killed; the one who works if there is nobody else."""
    if kind == "nobody":
        return
    words = {"agent": "strict_codex", "script": "update-state"}.get(kind)
    found = [pid for pid in home.alive() if words and words in name_of(pid) and pid not in (process.pid, worker)]
    yield from found or ({"supervisor": [process.pid], "both": [process.pid, worker]}.get(kind, [worker]))


def test_ids_have_no_gap_after_kills_at_random_moments(home: Home) -> None:
    """S-030, S-050, S-051, S-063: FAULTS 1-4, 9; supervisor, agent and scripts; as many kills as random examples."""
    kills = min(settings().max_examples, 100)
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"SEED={seed}")
    dice = random.Random(seed)  # noqa: S311 - to be had again, which is the point
    strict = Strict(home)
    strict.plays(strict.round(3, "--event"))
    strict.init("--stop-command", "test -e enough", "--max-no-progress-rounds", "1000", "--max-iterations", "10000")
    reader = Reader(strict.folder)
    reader.start()
    for kill in range(kills):
        runs, process = len(strict.facts("run.started")), strict.supervise()
        worker, kind = worker_of(process), dice.choice(["worker", "supervisor", "both", "agent", "script"])
        if kill % 8 == 7:  # eleven attempts in a row that are cut short end the loop; a stop in good order is between
            wait_for(lambda: len(strict.facts("run.started")) > runs)  # noqa: B023 - called at once
            kind = "nobody"
        time.sleep(dice.uniform(0, dice.choice([0.2, 0.8, 1.6])))
        for victim in victims(process, worker, kind, home):
            with suppress(ProcessLookupError):  # the one sees the other's end
                os.kill(victim, SIGKILL)
        if kind in ("agent", "script", "nobody"):
            process.send_signal(signal.SIGTERM)
        assert "Traceback" not in said(process).err
        wait_for(lambda: not is_alive(worker))  # noqa: B023 - called at once
        if kind == "both":  # an agent that outlived them is ended by the next one
            wait_for(lambda: home.status("hail")["state"] != "running")
        strict.has_no_gap()
    (strict.repo / "enough").touch()
    ended = said(strict.supervise())
    reader.stop()
    assert (ended.code, reader.torn) == (0, []), ended
    strict.has_no_gap()
    records = strict.facts("iteration.recorded")
    assert len({fact["record"] for fact in records}) == len(records), "none was taken in twice"
    assert len(strict.entries) == strict.state["counters"]["iteration"] >= len(records)
    assert strict.waiting == []
