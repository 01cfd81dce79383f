"""The reliability invariants of codex-loop's document, each against a break that the original is known for."""

import pytest

from driving import Home
from program.codex_loop import BRANCH, ONE, THREE, TWO, CodexLoop, Turn, answer, idles, works

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


def test_words_in_a_path_do_not_make_a_failure_transient(project: CodexLoop) -> None:
    """C-046, C-030."""
    project.project(ONE, execution={"max_consecutive_runner_failures": 2})
    project.plays({"complain": "cannot read src/500/timeout/rate_limit_429.py: no such file", "exit": 3})
    ended = project.run()
    assert (ended.code, project.blocker, len(project.calls)) == (2, "runner_failure_circuit_breaker", 2), ended
    assert project.meta["consecutive_runner_failures"] == 2
    assert len(project.history("runner_failure")) == 2


def test_dependencies_decide_the_order(project: CodexLoop) -> None:
    """C-048: a comment anywhere, or front matter."""
    texts = {
        ONE: f"# One\n\nDo it.\n\n<!-- depends_on: {TWO}, {THREE} -->\n",
        TWO: f"---\ndepends_on: [{THREE}]\n---\n# Two\n\nDo it.\n",
    }
    project.project(ONE, TWO, THREE, texts=texts)
    project.plays(works(THREE), works(TWO), works(ONE))
    ended = project.run()
    assert (ended.code, [entry["task_id"] for entry in project.history("iteration")]) == (0, [THREE, TWO, ONE]), ended


def test_a_task_that_keeps_failing_is_left_and_what_depends_on_it_is_not_run(project: CodexLoop) -> None:
    """C-047, C-048, X-32: the next one is promoted, and the end is never `completed`."""
    project.project(
        ONE,
        TWO,
        THREE,
        texts={TWO: f"# Two\n\n<!-- depends_on: {ONE} -->\nDo it.\n"},
        verify=f"! test -e {ONE}.txt",
        execution={"max_consecutive_task_failures": 2},
    )
    project.plays(works(ONE), works(ONE), {"sh": f"rm {ONE}.txt", **works(THREE)})
    ended = project.run()
    assert (ended.code, project.tasks) == (2, {ONE: "blocked", TWO: "pending", THREE: "done"}), ended
    assert (project.task(ONE)["blocker_code"], project.meta["overall_status"]) == (
        "task_failure_circuit_breaker",
        "blocked",
    )
    assert len(project.calls) == 3


# -- three tasks, as its original does them ----------------------------------------------------------------------------

CHAIN = {TWO: f"---\ndepends_on: {ONE}\n---\n# Two\n", THREE: f"---\ndepends_on: {TWO}\n---\n# Three\n"}
EACH = [works(task) for task in (ONE, TWO, THREE)]
STORIES: dict[str, tuple[list[Turn], str, int]] = {  # what Codex plays, the verification, the calls of the original
    "one after the other": (EACH, "true", 3),
    "each verified by what it made": (EACH, f"test -e {ONE}.txt", 3),
    "a verification that fails once": ([idles(ONE), *EACH], f"test -e {ONE}.txt", 4),
    "two tasks that need no change of their own": ([EACH[0], idles(TWO), idles(THREE)], "true", 3),
    "files that it lists beside those that it changed": (
        [works(ONE, files_changed=["none.txt"]), *EACH[1:]],
        "true",
        3,
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_three_tasks_come_to_the_same_end_with_no_paid_call_more(project: CodexLoop, story: str) -> None:
    """C-006, C-041, C-048: each depends on the one before it; what is ready is done, in order."""
    turns, verify, calls = STORIES[story]
    project.project(ONE, TWO, THREE, texts=CHAIN, verify=verify)
    project.plays(*turns)
    ended = project.run()
    assert (ended.code, project.tasks) == (0, dict.fromkeys((ONE, TWO, THREE), "done")), ended
    assert len(project.calls) == calls
    again = project.run()
    assert (again.code, len(project.calls)) == (0, calls), "what is done is not paid for again"
