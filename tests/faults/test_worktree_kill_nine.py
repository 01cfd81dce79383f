"""A loop in a worktree, killed again and again: each round that changed something is one commit, and none is lost."""

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from hypothesis import settings

from driving import Home, is_alive, said, wait_for, worker_of

BRANCH = "bydawn/repo"


def test_commits_are_the_rounds_that_changed_something_after_kills_at_random_moments(home: Home) -> None:
    """X-18, X-20, C-045: FAULTS 1-4, 9, 93; as many kills as random examples, 100 with --deep."""
    kills = min(settings().max_examples, 100)
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"SEED={seed}")
    dice = random.Random(seed)  # noqa: S311 - to be had again, which is the point
    home.tasks(kills * 20)
    git(home, "add", "-A")
    git(home, "commit", "-qm", "tasks")
    writes = {"run": ["sh", "-c", "date +%N > work-$BYDAWN_ROUND"]}
    agent = home.each_task(writes, {"sleep": 0.02})
    tip = ""
    for kill in range(kills):
        going = home.start_run(agent, "-t", "TODO.md", "-n", "0", "--worktree")
        worker, known = worker_of(going), commits(home)
        if kill % 4 == 3:  # ten deaths in a row would end the loop
            wait_for(lambda: commits(home) > known)  # noqa: B023 - at once
        time.sleep(dice.uniform(0, dice.choice([0.15, 0.3, 0.6])))
        for victim in dice.choice([(worker,), (going.pid,), (going.pid, worker)]):
            with suppress(ProcessLookupError):  # the one sees the other's end
                os.kill(victim, signal.SIGKILL)
        assert "Traceback" not in said(going).err
        wait_for(lambda: not is_alive(worker) and (not begun(home) or not home.status()["alive"]))  # noqa: B023
        before, tip = tip, rev(home) or tip
        assert not before or git(home, "merge-base", before, tip) == before  # nothing was lost
    assert home.bydawn("resume", "--once", "--plain").code == 4  # what the last kill left is committed first
    trailers = git(home, "log", "--reverse", "--format=%(trailers:key=Bydawn-Round,valueonly)", f"main..{BRANCH}")
    assert [*map(int, trailers.split())] == changed(home)
    assert git(home, "status", "--porcelain", folder=home.root / ".bydawn-worktrees/repo/bydawn-repo") == ""


def changed(home: Home) -> list[int]:
    """The rounds that left another tree than they found."""
    found = {fact["data"]["round"]: fact["data"]["tree"] for fact in home.facts("round.started")}
    return [ended["round"] for ended in home.rounds_ended() if ended["tree"] != found[ended["round"]]]


def begun(home: Home) -> bool:
    return home.has_loop() and bool(home.facts("loop.created"))


def commits(home: Home) -> int:
    return len(home.facts("commit.ended")) if home.has_loop() else 0


def rev(home: Home) -> str:
    return git(home, "for-each-ref", "--format=%(objectname)", f"refs/heads/{BRANCH}")


def git(home: Home, *words: str, folder: Path | None = None) -> str:
    me = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *me, *words], cwd=folder or home.repo, env=home.env, capture_output=True, check=True, text=True
    )
    return done.stdout.strip()
