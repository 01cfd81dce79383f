"""codex-loop while it runs: one at a time, signals, cycles, the heartbeat."""

import json
import signal
import subprocess
from signal import SIGINT, SIGTERM

import pytest

from driving import Home, kill_both, said, wait_for
from program.codex_loop import ONE, TWO, CodexLoop, Turn, idles, works
from program.terminal_driver import Terminal


@pytest.fixture
def project(home: Home) -> CodexLoop:
    return CodexLoop(home)


def begun(project: CodexLoop, *words: str, count: int = 1) -> "subprocess.Popen[str]":
    """A run whose agent has begun a turn, and waits for its gate."""
    process = project.start("run", *words)
    wait_for(lambda: len(project.calls) >= count)
    return process


def interrupt(process: "subprocess.Popen[str]") -> None:
    """Press Ctrl-C, and wait until it has been heard."""
    process.send_signal(SIGINT)
    assert process.stderr
    for line in process.stderr:
        if "Ctrl-C again" in line:
            return
    raise AssertionError("it ended")


def gated(project: CodexLoop, turn: Turn) -> Turn:
    return {"wait_for": str(project.gate()), **turn}


def test_a_second_run_ends_with_8_and_changes_nothing(project: CodexLoop) -> None:
    """C-017."""
    project.project(ONE)
    project.plays(gated(project, works(ONE)))
    first = begun(project)
    second = project.run()
    assert (second.code, second.err.startswith("error: ")) == (8, True), second
    assert (project.meta["overall_status"], project.tasks) == ("running", {ONE: "in_progress"})
    project.gate().touch()
    assert (said(first).code, len(project.calls)) == (0, 1)


def test_without_verification_each_line_still_has_the_number_of_its_iteration(project: CodexLoop) -> None:
    """C-040: no fact of checks comes between two iterations."""
    project.project(ONE, TWO, verification={"commands": []})
    project.plays(works(ONE), works(TWO))
    ended = project.run()
    lines = [line.split("  ")[0] for line in ended.out.splitlines() if line.startswith("[iteration")]
    numbered = [f"[iteration {number}/30]" for number in (1, 2)]
    assert [line for line in lines if "task:" not in line] == [f"{numbered[0]} {ONE}", f"{numbered[1]} {TWO}"], ended


def test_what_an_iteration_is_about_is_said_when_it_begins_and_what_became_of_it_when_it_ends(
    project: CodexLoop,
) -> None:
    project.project(ONE, TWO)
    project.plays(gated(project, works(ONE)), works(TWO))
    process = begun(project)
    assert process.stdout
    assert process.stdout.readline() == "[iteration 1/30] task: 001-one (0/2 done)\n"
    project.gate().touch()
    first, second, third = said(process).out.splitlines()[:3]
    assert first.startswith("[iteration 1/30] 001-one  complete  1 file  verification passed")
    assert second == "[iteration 2/30] task: 002-two (1/2 done)"
    assert third.startswith("[iteration 2/30] 002-two  complete")


def test_on_a_terminal_a_block_says_what_codex_does(project: CodexLoop) -> None:
    project.project(ONE, TWO)
    project.plays({"sh": "echo tested > log", **gated(project, works(ONE))}, works(TWO))
    screen = Terminal(project.home, "run", command="codex-loop", cwd=project.repo, TERM="xterm")
    screen.see("0 of 2 tasks   iteration 1, ")
    screen.see("now    One · ")
    project.gate().touch()
    shown = screen.end()
    assert (shown.code, "Outcome: completed" in shown.text, "round" in shown.text) == (0, True, False), shown.text


def test_the_first_ctrl_c_finishes_the_iteration(project: CodexLoop) -> None:
    project.project(ONE, TWO)
    project.plays(gated(project, works(ONE)), works(TWO))
    process = begun(project)
    interrupt(process)
    project.gate().touch()
    ended = said(process)
    assert (ended.code, project.tasks, len(project.calls)) == (130, {ONE: "done", TWO: "ready"}, 1), ended
    assert "codex-loop run" in ended.out + ended.err, "what goes on with it"
    assert (project.run().code, len(project.commits)) == (0, 2)


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_the_second_ctrl_c_and_sigterm_stop_now(project: CodexLoop, number: signal.Signals) -> None:
    project.project(ONE)
    project.plays({"append": {"half.txt": "half\n"}, "wait_for": str(project.gate())}, works(ONE))
    process = begun(project)
    wait_for((project.worktree / "half.txt").exists)
    if number == SIGINT:
        interrupt(process)
    process.send_signal(number)
    ended = said(process)
    assert (ended.code, project.tasks, project.blocker) == (130, {ONE: "in_progress"}, "interrupted"), ended
    assert "Outcome: interrupted\n" in ended.out
    ended = project.run()
    assert (ended.code, project.tasks) == (0, {ONE: "done"}), ended
    assert (project.worktree / "half.txt").read_text() == "half\n", "what was there is kept"


def test_a_run_that_died_is_blocked_until_the_next_one_goes_on(project: CodexLoop) -> None:
    """C-003, C-017: FAULTS 1; nothing that runs is claimed, and no lock is stale."""
    project.project(ONE)
    project.plays(gated(project, works(ONE)))
    process = begun(project)
    kill_both(process.pid)
    said(process)
    wait_for(lambda: project.meta["overall_status"] == "blocked")
    assert (project.blocker, project.state["meta"]["overall_status"]) == ("interrupted", "running")
    project.gate().touch()
    ended = project.run()
    assert (ended.code, project.tasks, project.meta["iteration"]) == (0, {ONE: "done"}, 2), ended


def test_cycles_go_on_with_what_is_blocked_and_end_when_all_is_done(project: CodexLoop) -> None:
    """C-044, C-061: the first cycle retries as well; the heartbeat tells how it stands."""
    project.project(ONE)
    project.plays(idles(ONE, "blocked", blockers=["not yet"]))
    assert project.run().code == 2
    project.plays(idles(ONE, "blocked", blockers=["still not"]), works(ONE))
    beat = project.home.root / "heartbeat.json"
    words = ("--continuous", "--retry-blocked", "--cycle-sleep-seconds", "0", "--heartbeat-path", str(beat))
    ended = project.run(*words)
    assert (ended.code, len(project.calls), project.meta["overall_status"]) == (0, 3, "completed"), ended
    assert [run["cycle"] for run in project.facts("run.started")] == [0, 1, 2]
    told = json.loads(beat.read_text())
    assert (told["phase"], told["cycle"], told["outcome"]) == ("completed", 2, "completed")


def test_so_many_cycles_and_no_more(project: CodexLoop) -> None:
    """C-061: numbers of iterations go on; each cycle has its own max_iterations."""
    project.project(ONE, execution={"max_iterations": 1})
    project.plays(works(ONE, "continue"))
    ended = project.run("--continuous", "--max-cycles", "3", "--cycle-sleep-seconds", "0")
    assert (ended.code, project.blocker, project.meta["iteration"]) == (2, "max_iterations", 3), ended
    assert len(project.commits) == 3


def test_between_two_cycles_it_holds_the_project_and_hears_signals(project: CodexLoop) -> None:
    project.project(ONE)
    project.plays(idles(ONE, "blocked", blockers=["not yet"]))
    beat = project.home.root / "heartbeat.json"
    words = ("--continuous", "--retry-blocked", "--cycle-sleep-seconds", "600", "--heartbeat-path", str(beat))
    process = begun(project, *words)
    wait_for(lambda: project.facts("wait.started"))
    assert json.loads(beat.read_text())["pid"] > 1
    assert project.run().code == 8
    process.send_signal(SIGINT)
    ended = said(process)
    assert (ended.code, len(project.calls)) == (130, 1), ended


def test_a_cycle_without_an_iteration_is_not_followed_by_another_at_once(project: CodexLoop) -> None:
    """T18: whatever keeps iterations from beginning would be written down ten times a second, all night."""
    project.project(ONE, hooks={"pre_iteration": ["false"], "failure_policy": "block"})
    project.plays(works(ONE))
    process = project.start("run", "--continuous", "--retry-blocked", "--cycle-sleep-seconds", "0")
    wait_for(lambda: project.facts("wait.started"))
    process.send_signal(SIGINT)
    assert (said(process).code, len(project.facts("run.started")), project.calls) == (130, 2, [])
    [wait] = project.facts("wait.started")
    # What has passed since the cycle began is a part of its rest.
    assert (project.facts("run.started")[-1]["rest"], 0 < wait["seconds"] <= 10) == (10, True)


def test_a_heartbeat_that_cannot_be_written_is_refused_before_anything_is_spent(project: CodexLoop) -> None:
    """C-044."""
    project.project(ONE)
    project.plays(works(ONE))
    refused = project.run("--heartbeat-path", "no/such/folder/beat.json")
    assert (refused.code != 0, refused.err.startswith("error: "), project.calls) == (True, True, []), refused
