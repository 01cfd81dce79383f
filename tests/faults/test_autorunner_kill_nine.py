"""codex-autorunner killed again and again: the next run goes on, and its log, numbers and commits stay whole."""

import os
import random
import signal
import subprocess
import time
from contextlib import suppress

from hypothesis import settings

from driving import Home, said, wait_for, worker_of
from program.autorunner import Autorunner

IDENTITY = (("config", "user.name", "Ada"), ("config", "user.email", "ada@example.org"))


def test_a_loop_killed_at_random_moments_goes_on_with_its_numbers(home: Home) -> None:
    """A-022, A-023, A-031, A-038, A-041: FAULTS 1-4, 9; as many kills as random examples, 100 with --deep."""
    kills = min(settings().max_examples, 100)
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"SEED={seed}")
    dice = random.Random(seed)  # noqa: S311 - to be had again, which is the point
    runner = Autorunner(home)
    for words in IDENTITY:
        subprocess.run(["git", *words], cwd=home.repo, check=True)
    # A turn counts from its start, so no two of them ever write the same file.
    runner.plays(
        *({"write": {f"{turn}.txt": "x"}, "tick": "TODO.md", "sleep": 0.05, "reply": "Did it."} for turn in range(600))
    )
    runner.ready(20 * kills, auto_commit="true")
    runner.trust(str(runner.config))
    for kill in range(kills):
        process, before = runner.start("run"), good(runner)
        worker = worker_of(process)
        if kill % 5 == 4:  # ten deaths in a row would end it
            wait_for(lambda: good(runner) > before or process.poll() is not None)  # noqa: B023 - called at once
            assert process.poll() is None, said(process)
        time.sleep(dice.uniform(0, dice.choice([0.1, 0.5, 0.9])))
        for victim in dice.choice([(worker,), (process.pid,), (process.pid, worker)]):
            with suppress(ProcessLookupError):  # the one sees the other's end
                os.kill(victim, signal.SIGKILL)
        assert "Traceback" not in said(process).err
        wait_for(lambda: not home.alive())
        assert_whole(runner)
    runner.plays({"sh": r"sed -i 's/\[ \]/[x]/' TODO.md", "write": {"last.txt": "x"}, "reply": "Done."})
    ended = runner("run")
    assert ended.code == 0, ended
    assert_whole(runner)
    assert (runner.runs[-1][1], runner.state["status"], runner.lock.exists()) == ("0", "idle", False)
    assert all(code for _, code in runner.runs), "each is closed"


def good(runner: Autorunner) -> int:
    """The runs that went well so far; half a line at the end is none."""
    return runner.log.count(" end (code 0) ===\n")


def assert_whole(runner: Autorunner) -> None:
    """Numbers are neither used again nor left out, except for a run cut short; each that went well has a commit."""
    numbers = [number for number, _ in runner.runs]
    assert numbers == sorted({*numbers}), numbers
    assert numbers == [] or numbers[-1] <= len(runner.facts("round.started"))
    log = subprocess.check_output(["git", "log", "--format=%s"], cwd=runner.repo, text=True)
    subjects = [line for line in log.splitlines() if line != "first"]
    assert len(subjects) == len({*subjects}), subjects
    *older, last = [number for number, code in runner.runs if code == "0"] or [0]
    committed = {int(subject.removeprefix("[codex] run #")) for subject in subjects}
    assert {*older} <= committed <= {*older, last, last + 1}, "the last one may be cut short between the two"
