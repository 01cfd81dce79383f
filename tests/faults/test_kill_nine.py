"""A worker that is killed again and again: the loop ends as if nothing had happened (FAULTS 1-4, 6, 9; REQ: "It must show")."""

import os
import random
import signal
import time
from pathlib import Path

from story import Home, is_alive, name_of, said, tree_of, wait_for, worker_of

TASKS, KILLS = 20, 100
LONGER_THAN_ANY_TEST = 3600.125  # seconds; such a `sleep` can only be one of ours
CHECK = 'test -z "$(find . -name "*.txt" -size 0)"'


def test_a_loop_of_20_rounds_killed_100_times_ends_like_an_undisturbed_one(tmp_path: Path, home: Home) -> None:
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"SEED={seed}")
    undisturbed = Home(tmp_path / "undisturbed")
    assert undisturbed.run(a_diligent_agent(undisturbed), *GOAL, seconds=60).code == 0

    kill_again_and_again(home, a_diligent_agent(home), random.Random(seed))
    assert home.bydawn("resume", "--plain", seconds=60).code == 0

    assert tree_of(home.repo) == tree_of(undisturbed.repo)
    assert home.status()["tasks"] == undisturbed.status()["tasks"] == {"open": 0, "done": TASKS}
    assert verdicts(home) == verdicts(undisturbed) == [(CHECK, True)]
    numbers = [fact["data"]["round"] for fact in home.facts("round.started")]
    assert numbers == list(range(1, len(numbers) + 1)), "round numbers rise one by one and none is used twice"
    assert [fact["seq"] for fact in home.facts()] == list(range(1, len(home.facts()) + 1))
    assert orphans(home) == []
    assert undisturbed.leave() == []


GOAL = ("-t", "TODO.md", "-k", CHECK, "-n", "0")


def a_diligent_agent(home: Home) -> str:
    """It does one task a round, and each time leaves a process behind that neither cookie nor session betrays."""
    home.tasks(TASKS)
    pid = f"{home.root}/pids/{{n}}"
    escape = {"seconds": LONGER_THAN_ANY_TEST, "setsid": True, "wipe_env": True, "ignore_term": True, "write_pid": pid}
    return home.each_task({"write": {"path": "{n}.txt", "text": "{task}\n"}}, {"double_fork": escape})


def kill_again_and_again(home: Home, agent: str, dice: random.Random) -> None:
    for kill in range(KILLS):
        process = home.start_run(agent, *GOAL) if dice.random() < 0.5 or kill < 10 else home.start("resume", "--plain")
        worker = worker_of(process)
        # Where the loop is ahead of the kills, the worker dies while it starts; else in its first rounds.
        if done(home) * KILLS <= kill * TASKS:
            wait_until_it_runs(home)
            time.sleep(dice.uniform(0, dice.choice([0.05, 0.1, 0.4])))
        else:
            time.sleep(dice.uniform(0, 0.25))
        os.kill(worker, signal.SIGKILL)
        told = said(process)
        assert told.code == 1, told
        assert "Traceback" not in told.err
        wait_for(lambda: not home.alive() and not orphans(home), seconds=1)


def wait_until_it_runs(home: Home) -> None:
    runs = len(home.facts("run.started")) if home.has_loop() else 0
    wait_for(lambda: home.has_loop() and len(home.facts("run.started")) > runs)


def done(home: Home) -> int:
    return (home.repo / "TODO.md").read_text().count("[x]")


def verdicts(home: Home) -> list[tuple[str, bool]]:
    return [(verdict["check"], verdict["passed"]) for verdict in home.show()["rounds"][-1]["verdicts"]]


def orphans(home: Home) -> list[int]:
    """What the agents left behind and is still there."""
    pids = [int(path.read_text()) for path in home.root.glob("pids/*[0-9]")]
    return [pid for pid in pids if is_alive(pid) and str(LONGER_THAN_ANY_TEST) in name_of(pid)]
