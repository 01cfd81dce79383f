"""A worker that is killed again and again: the loop ends as if nothing had happened (FAULTS 1-4, 9; issue 2)."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from hypothesis import settings

from driving import Home, Step, is_alive, name_of, said, tree_of, wait_for, worker_of

pytestmark = pytest.mark.installed  # some die while an interpreter starts

LONGER_THAN_ANY_TEST = 3600.125  # seconds; such a `sleep` can only be one of ours
CHECK = 'test -z "$(find . -name "*.txt" -size 0)"'
GOAL = ("-t", "TODO.md", "-k", CHECK, "-n", "0")
SPARE = 8  # tasks that no kill counts on: rounds that end by chance must not finish the loop before the last kill


def test_a_loop_of_more_than_20_rounds_killed_again_and_again_ends_like_an_undisturbed_one(
    tmp_path: Path, home: Home
) -> None:
    """As many kills as random examples, 100 with --deep."""
    undisturbed, tasks = Home(tmp_path / "undisturbed"), 18 + SPARE
    assert undisturbed.run(a_diligent_agent(undisturbed, tasks), *GOAL).code == 0
    kill_again_and_again(
        home, a_diligent_agent(home, tasks, {"sleep": 0.1}), tasks=18, kills=min(settings().max_examples, 100)
    )
    assert home.bydawn("resume", "--plain").code == 0

    assert tree_of(home.repo) == tree_of(undisturbed.repo)
    assert home.status()["tasks"] == undisturbed.status()["tasks"] == {"open": 0, "done": tasks}
    assert verdicts(home) == verdicts(undisturbed) == [(CHECK, True)]
    assert is_without_gap_or_repetition([fact["data"]["round"] for fact in home.facts("round.started")])
    assert is_without_gap_or_repetition([fact["seq"] for fact in home.facts()])
    assert undisturbed.leave() == []


def test_what_an_agent_left_behind_dies_with_a_killed_worker(home: Home) -> None:
    escape = {"setsid": True, "wipe_env": True, "ignore_term": True, "write_pid": f"{home.root}/pids/{{n}}"}
    leaves = {"double_fork": {"seconds": LONGER_THAN_ANY_TEST, **escape}}
    agent = a_diligent_agent(home, 8 + SPARE, leaves, {"sleep": 0.1})
    kill_again_and_again(home, agent, tasks=8, kills=20)
    assert home.bydawn("resume", "--plain").code == 0
    assert [*home.root.glob("pids/*")]
    assert orphans(home) == []


def test_what_killed_rounds_used_counts_against_the_limits(home: Home) -> None:
    """Tokens, and the time up to the last sign of life, whatever somebody does before they go on."""
    program = home.root / "spender"
    line = '{{"text": "on it", "in": {}}}\\n'
    lines = f"printf '{line.format(1)}'; sleep 0.5; printf '{line.format(900_000)}'"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\ndate +%N > work\n{lines}\nexec sleep {LONGER_THAN_ANY_TEST}\n")
    program.chmod(0o755)
    fields = ("--agent-json", "text=text", "--agent-json", "tokens_in=in")

    def has_said(word: str) -> bool:
        return sum(word in path.read_text() for path in home.states.glob("loops/*/repo/rounds/*/stdout")) == kill

    for kill in range(1, 4):
        budget = ("--budget", "2Mtok", "--for", "1h", *fields)
        again = ("resume", "--plain", "--rounds", "+5") if kill == 2 else ("resume", "--plain")
        process = home.start_run(f"cmd:{program}", *budget) if kill == 1 else home.start(*again)
        wait_for(lambda: has_said("900000"))
        os.kill(worker_of(process), signal.SIGKILL)
        said(process)
        home.bydawn(*{1: ("tell", "repo", "use tabs"), 2: ("status",), 3: ("stop",)}[kill])
    ended = home.bydawn("resume", "--plain")
    assert (ended.code, "used 2,700,000 tokens of a budget of 2,000,000" in ended.out) == (4, True), ended
    assert len(home.facts("round.started")) == 3
    assert home.facts("round.ended")[-1]["data"]["elapsed"] >= 3 * 0.5


def a_diligent_agent(home: Home, tasks: int, *more: Step) -> str:
    """It does one task a round."""
    home.tasks(tasks)
    return home.each_task({"write": {"path": "{n}.txt", "text": "{task}\n"}}, *more)


def kill_again_and_again(home: Home, agent: str, *, tasks: int, kills: int) -> None:
    """At such a pace that about so many tasks are done at the last kill."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"SEED={seed}")
    dice = random.Random(seed)  # noqa: S311 - to be had again, which is the point
    for kill in range(kills):
        process = home.start_run(agent, *GOAL) if kill < 5 or kill % 2 else home.start("resume", "--plain")
        worker = worker_of(process)
        let_it_work(home, dice, ahead=done(home) > min(kill * tasks / kills, tasks - 4), a_round=kill % 8 == 7)
        os.kill(worker, signal.SIGKILL)
        told = said(process)
        assert (told.code, "was killed by SIGKILL" in told.err) == (1, True), told
        assert "Traceback" not in told.err
        wait_for(lambda: not home.alive() and not orphans(home), seconds=5)


def let_it_work(home: Home, dice: random.Random, *, ahead: bool, a_round: bool) -> None:
    """Where the loop is ahead of the kills they come while the worker starts, else in one of its first rounds.

    So it is not over before the last kill. Now and then `a_round` may end: ten deaths in a row end the loop.
    """
    before, counted = runs(home), rounds(home)
    if a_round:
        wait_for(lambda: rounds(home) > counted)
    elif not ahead:
        wait_for(lambda: runs(home) > before)
    time.sleep(dice.uniform(0, 0.12 if ahead else dice.choice([0.1, 0.25, 0.5])))


def runs(home: Home) -> int:
    return len(home.facts("run.started")) if home.has_loop() else 0


def rounds(home: Home) -> int:
    return home.outcomes().count("ok") if home.has_loop() else 0


def done(home: Home) -> int:
    return (home.repo / "TODO.md").read_text().count("[x]")


def verdicts(home: Home) -> list[tuple[str, bool]]:
    return [(verdict["check"], verdict["passed"]) for verdict in home.show()["rounds"][-1]["verdicts"]]


def is_without_gap_or_repetition(numbers: list[int]) -> bool:
    return numbers == list(range(1, len(numbers) + 1))


def orphans(home: Home) -> list[int]:
    """What the agents left behind and is still there."""
    pids = [int(path.read_text()) for path in home.root.glob("pids/*[0-9]")]
    return [pid for pid in pids if is_alive(pid) and str(LONGER_THAN_ANY_TEST) in name_of(pid)]
