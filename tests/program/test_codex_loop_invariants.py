"""The reliability invariants of codex-loop's document, each against a break that the original is known for."""

import pytest

from driving import Home
from program.codex_loop import BRANCH, ONE, TWO, CodexLoop, answer, idles, works

FAILED = "## Last Verification Output (FAILED)"


@pytest.fixture
def project(home: Home) -> CodexLoop:
    return CodexLoop(home)


def test_files_that_the_agent_only_says_it_changed_are_no_progress(project: CodexLoop) -> None:
    """C-040, X-17: real diff over self-report."""
    project.project(ONE, execution={"max_no_progress_iterations": 2})
    project.plays(idles(ONE, "continue", files_changed=["src/shop.py", "README.md"]))
    ended = project.run()
    assert (ended.code, project.blocker, len(project.calls)) == (2, "no_progress_limit", 2), ended
    assert (project.tasks, project.meta["no_progress_iterations"]) == ({ONE: "in_progress"}, 2)
    assert [entry["files_changed"] for entry in project.history("iteration")] == [[], []]
    assert project.commits == []


def test_what_was_done_within_another_task_is_done_and_is_listed_as_such(project: CodexLoop) -> None:
    """C-007, C-041: change measures progress, not completion."""
    project.project(ONE, TWO, verify=f"test ! -e {ONE}.txt || test -e {TWO}.txt")
    project.plays({"write": {f"{ONE}.txt": "1", f"{TWO}.txt": "2"}, "reply": answer(ONE)}, idles(TWO))
    ended = project.run()
    assert (ended.code, project.tasks, len(project.calls)) == (0, {ONE: "done", TWO: "done"}, 2), ended
    assert f"done without a change of its own: {TWO}" in ended.err
    assert "[iteration 2/30] 002-two  complete  no change  verification passed" in ended.out


def test_what_nothing_was_changed_for_is_done_at_the_second_word_and_unverified(project: CodexLoop) -> None:
    """C-041."""
    project.project(ONE)
    project.plays(idles(ONE))
    ended = project.run()
    assert (ended.code, "Outcome: completed (unverified)" in ended.out, len(project.calls)) == (0, True, 2), ended
    assert "no iteration changed anything" in ended.err


def test_without_verification_there_is_only_codexs_word_for_it(project: CodexLoop) -> None:
    project.project(ONE, verification={"commands": []})
    project.plays(works(ONE))
    ended = project.run()
    assert (ended.code, "Outcome: completed (unverified)" in ended.out, len(project.calls)) == (0, True, 1), ended
    assert ended.err.count("Codex's word") == 2, "at the start, and at the end"


def test_a_file_that_git_does_not_know_yet_is_a_change(project: CodexLoop) -> None:
    """C-040: `git diff HEAD` does not see it."""
    project.project(ONE)
    project.plays(works(ONE))
    ended = project.run()
    assert (ended.code, project.tasks, len(project.calls)) == (0, {ONE: "done"}, 1), ended
    assert project.task(ONE)["files_changed"] == [f"{ONE}.txt"]
    assert project.git("show", "--format=", "--name-only", BRANCH).split() == [f"{ONE}.txt"]


def test_edits_from_before_the_run_are_nobodys_progress(project: CodexLoop) -> None:
    """C-040: in place, where the diff against HEAD is never empty."""
    project.project(ONE, execution={"max_no_progress_iterations": 2, "worktree": {"enabled": False}})
    project.write("README.md", "half an idea\n")
    project.plays(idles(ONE, "continue"))
    ended = project.run()
    assert (ended.code, project.blocker, project.tasks) == (2, "no_progress_limit", {ONE: "in_progress"}), ended
    assert project.git("status", "--porcelain", "README.md") == " M README.md\n"


def test_a_task_that_goes_on_is_not_done_however_green_the_checks_are(project: CodexLoop) -> None:
    """C-041, C-068: `continue` never ends a task, and its conversation goes on."""
    project.project(ONE, TWO)
    project.plays(works(ONE, "continue"), works(ONE), works(TWO))
    ended = project.run()
    assert (ended.code, [entry["task_id"] for entry in project.history("iteration")]) == (0, [ONE, ONE, TWO]), ended
    assert project.task(ONE)["iterations"] == 2
    first, second, third = (call["session"] for call in project.calls)
    assert (first == second, first == third) == (True, False)


def test_a_check_that_takes_too_long_has_failed(project: CodexLoop) -> None:
    """C-042, C-043, X-29."""
    limits = {"max_consecutive_verification_failures": 2}
    project.project(ONE, verify="echo begun; sleep 30", verification={"timeout_seconds": 3}, execution=limits)
    project.plays(works(ONE))
    ended = project.run()
    assert (ended.code, project.blocker) == (2, "verification_failure_circuit_breaker"), ended
    [result] = project.task(ONE)["last_verification_results"]
    assert (result["timed_out"], result["stdout"], result["command"]) == (True, "begun\n", "echo begun; sleep 30")
    assert [entry["verification_passed"] for entry in project.history("iteration")] == [False, False]
    assert all(part in project.prompts[1] for part in (FAILED, "TIMED OUT", "begun"))


def test_five_retries_work_on_one_branch_in_one_folder(project: CodexLoop) -> None:
    """C-045: nothing that was done is lost, and numbers go on."""
    project.project(ONE)
    project.plays(works(ONE, "blocked", blockers=["no key"]))
    for number in range(6):
        ended = project.run(*(["--retry-blocked"] if number else []))
        assert (ended.code, project.blocker) == (2, "agent_blocked"), ended
        meta = project.meta
        assert (meta["worktree_path"], meta["worktree_branch"]) == (str(project.worktree), BRANCH)
        assert (meta["iteration"], len(project.commits)) == (number + 1, number + 1)
    assert (project.worktree / f"{ONE}.txt").read_text() == "more\n" * 6
    assert len(project.history("requeued")) == 5
    project.plays(works(ONE))
    ended = project.run("--retry-blocked")
    assert (ended.code, project.tasks, len(project.commits)) == (0, {ONE: "done"}, 7), ended
    assert project.git("branch", "--format=%(refname:short)").split() == [BRANCH, "main"]
