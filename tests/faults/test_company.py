"""Several workers and loops at once, readers who go away, and hosts that freeze (FAULTS 13, 14, 25, 36, 50, 76)."""

import fcntl
import os
import signal
import subprocess
import time
from contextlib import suppress

import pytest

from driving import DONE, HANG, OK, Home, Step, is_error, said, tree_of, wait_for, worker_of

ONE_FAILURE = ("--max-failures", "1")
GOAL = ("-t", "TODO.md", "-k", "test -e 1.txt", "-n", "0")


def an_agent(home: Home) -> str:
    return home.each_task({"write": {"path": "{n}.txt", "text": "{task}\n"}})


# -- one loop, several workers: FAULTS 25 ------------------------------------------------------------------------------


@pytest.mark.parametrize("race", range(4))
def test_of_four_workers_that_want_one_loop_one_gets_it_and_the_others_are_told_who(home: Home, race: int) -> None:
    wait, gate = home.gate()
    agent = home.rounds([OK], [wait, DONE])
    if race:  # the first race is for a loop that does not exist yet; then it is round 1 that waits
        assert home.run(agent, "--once").code == 4
    else:
        agent = home.rounds([wait, DONE])
    commands = [("resume", "--plain") if race > 1 else ("run", "do it", "-a", agent, "--plain") for _ in range(4)]
    contenders = [home.start(*command) for command in commands]
    winner, losers = the_one_that_goes_on(contenders)
    owner = f"pid {worker_of(winner)} is running it"
    for loser in losers:
        told = said(loser)
        assert told.code == 8
        assert is_error(told.err)
        # The winner signs a moment after it has the lock; who comes before that cannot know its name.
        assert owner in told.err or "an unknown process is running it" in told.err
    home.await_round(2 if race else 1)
    late = home.bydawn(*commands[0])
    assert (late.code, owner in late.err) == (8, True), late
    gate.touch()
    assert said(winner).code == 0
    assert len(home.facts("run.started")) == (2 if race else 1)
    assert len(home.facts("round.started")) == (2 if race else 1)


def the_one_that_goes_on(
    contenders: list["subprocess.Popen[str]"],
) -> tuple["subprocess.Popen[str]", list["subprocess.Popen[str]"]]:
    wait_for(lambda: sum(each.poll() is not None for each in contenders) >= len(contenders) - 1)
    [winner] = [each for each in contenders if each.poll() is None]
    return winner, [each for each in contenders if each is not winner]


@pytest.mark.usefixtures("strace")
def test_a_goal_is_not_taken_for_another_one_that_was_started_at_the_same_moment(home: Home) -> None:
    one, two = (home.rounds([{"write": {"path": name, "text": name}}, DONE]) for name in ("one", "two"))
    late = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:delay_enter=5000000"]
    second = home.start("run", "second", "-a", two, "--plain", before=late)
    wait_for(lambda: any(home.states.glob("loops/*/repo")))  # it has planned and reaches for the lock
    assert home.bydawn("run", "first", "-a", one, "--plain").code == 0
    ended = said(second)
    assert ended.code == 8 or (ended.code == 0 and "two" in tree_of(home.repo)), ended
    assert len(home.facts("run.started")) == 1


def test_two_loops_in_one_folder_do_not_disturb_each_other(home: Home) -> None:
    home.tasks(3)
    more = home.each_task({"write": {"path": "more-{n}.txt", "text": "{task}\n"}}, tasks="MORE.md")
    (home.repo / "MORE.md").write_text("- [ ] red\n- [ ] green\n- [ ] blue\n")
    first = home.start_run(an_agent(home), "-t", "TODO.md", "-k", "test -e 3.txt", "--name", "first")
    second = home.start_run(more, "-t", "MORE.md", "-k", "test -e more-3.txt", "--name", "second")
    assert [said(first).code, said(second).code] == [0, 0]
    for name in ("first", "second"):
        assert home.status(name)["tasks"] == {"open": 0, "done": 3}
        assert {fact["data"]["loop"] for fact in home.facts("loop.created", name)} == {name}
        assert home.outcomes(name) == ["ok"] * 3
    assert home.bydawn("doctor").code == 0


# -- readers who go away or never come: FAULTS 13, 14 ------------------------------------------------------------------


def test_a_reader_who_has_seen_enough_does_not_end_the_loop(home: Home) -> None:
    home.tasks(3)
    running = home.start_run(an_agent(home), *GOAL)
    assert running.stdout
    running.stdout.readline()
    running.stdout.close()
    running.stdout = None
    ended = said(running)
    assert ended.code == 0
    assert "Traceback" not in ended.err
    assert home.status()["state"] == "complete"


@pytest.mark.parametrize("output", ["", "> /dev/full 2>&1", ">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_loop_needs_nobody_to_speak_to(home: Home, output: str) -> None:
    home.tasks(2)
    ended = home.run(an_agent(home), *GOAL, before=["sh", "-c", f'exec "$@" {output}', "sh"])
    assert ended.code == 0, ended
    assert home.status()["state"] == "complete"


def test_a_pipe_that_nobody_reads_does_not_hold_up_the_loop(home: Home) -> None:
    home.tasks(2)
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, bytes(4096))
    running = home.start_run(an_agent(home), *GOAL, stdout=writing)
    assert running.wait(20) == 0
    assert home.status()["state"] == "complete"
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("look", ["--plain", "--name=repo"])
def test_a_terminal_that_was_told_to_wait_does_not_hold_up_the_loop(home: Home, look: str) -> None:
    home.tasks(2)
    keyboard, screen = os.openpty()
    os.write(keyboard, b"\x13")  # Ctrl-S
    running = home.start("run", "do it", "-a", an_agent(home), *GOAL, look, stdout=screen, stderr=screen, TERM="xterm")
    assert running.wait(20) == 0
    assert home.status()["state"] == "complete"
    os.close(screen)
    os.close(keyboard)


# -- hosts that freeze: FAULTS 76 --------------------------------------------------------------------------------------


TALKS = [*({"say": f"{number}"} if number % 2 else {"sleep": 0.1} for number in range(20))]


def test_a_worker_that_was_stopped_for_a_while_blames_nobody(home: Home) -> None:
    running = home.start_run(home.rounds([*TALKS, DONE]), "--silence-timeout", "4s", *ONE_FAILURE)
    home.await_round(1)
    freeze([worker_of(running)], seconds=5)
    assert said(running).code == 0
    assert home.outcomes() == ["ok"]


def test_an_agent_that_ended_in_time_is_not_late_because_its_worker_was_stopped(home: Home) -> None:
    running = home.start_run(home.rounds([{"sleep": 0.3}, DONE]), "--round-timeout", "4s", *ONE_FAILURE)
    home.await_round(1)
    freeze([worker_of(running)], seconds=5)
    assert said(running).code == 0
    assert home.outcomes() == ["ok"]


@pytest.mark.parametrize("limit", ["--silence-timeout", "--round-timeout", "--linger-timeout"])
def test_the_time_for_which_a_host_was_frozen_does_not_count(home: Home, limit: str) -> None:
    """On a busy machine the start of the agent counts, too, and the freeze begins later: the limit leaves room."""
    steps: list[Step] = [{"say": "hello"}, {"sleep": 9.5}, DONE]
    running = home.start_run(home.rounds([DONE, *steps] if "linger" in limit else steps), limit, "6s", *ONE_FAILURE)
    home.await_round(1)
    time.sleep(1.8)  # it has been seen doing nothing
    freeze(home.alive(), seconds=7)
    assert said(running).code == 0
    assert home.outcomes() == ["ok"]
    assert home.rounds_ended()[0]["exit_code"] == 0, "it ended by itself"


def freeze(pids: list[int], seconds: float) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


# -- two loops in one folder: X-09 -------------------------------------------------------------------------------------


def test_two_loops_in_one_folder_are_warned_of_each_other_as_long_as_both_run(home: Home) -> None:
    """W-008, X-09."""
    agent = home.rounds([{"say": "on it"}, HANG])
    one = home.start_run(agent, "--new", "--name", "one")
    home.await_round(1, "one")
    assert (home.status("one")["also_here"], "Shared" in home.bydawn("show", "one").out) == ([], False)
    two = home.start_run(agent, "--new", "--name", "two")
    home.await_round(1, "two")
    for name, other in (("one", "two"), ("two", "one")):
        assert home.status(name)["also_here"] == home.show(name)["also_here"] == [other]
        assert f"Shared  {other} also runs in this folder: each loop" in home.bydawn("show", name).out
    home.bydawn("stop", "two")
    warning = "one also runs in this folder: each loop will count the other's changes as its own progress"
    way_out = "; `git worktree add` or another clone gives each its own"
    assert warning + way_out in said(two).out
    assert home.status("one")["also_here"] == home.status("two")["also_here"] == []
    for again in (("resume", "two"), ("run", "do it", "-a", agent, "--name", "two")):
        number = len(home.facts("round.started", "two")) + 1
        third = home.start(*again, "--plain")
        home.await_round(number, "two")
        home.bydawn("stop", "two")
        assert warning in said(third).out
    home.bydawn("stop", "one")
    assert "also runs" not in said(one).out
