"""What is to be committed, when, and under which message (X-18)."""

import pytest

from bydawn.core.commits import message, unknown_names
from bydawn.core.decide import Commit, RunChecks, Stop, next_action
from bydawn.core.facts import AnyFact, CommitEnded, HookEnded, Obstructed
from bydawn.core.loop import CommitMode, OnTamper
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.state import Span
from core.facts_made import MAKE_TEST, a_loop, a_round, after_all, at, checked, idle_round, run_started, started

ON = a_loop(commit=CommitMode.ON, checks=(MAKE_TEST,), promise_required=False)
BEGUN = run_started(commits=True)
DONE = CommitEnded(round=1, elapsed=60.0, commit="c0ffee")
FAILED = CommitEnded(round=1, elapsed=60.0, failure="exit 1")


def spans(*facts: AnyFact) -> list[tuple[int, int, str, str]]:
    found = after_all(BEGUN, *facts).uncommitted
    return [(span.first, span.last, span.before, span.after) for span in found]


def test_a_round_is_committed_before_its_checks() -> None:
    facts = [BEGUN, *a_round(1)]
    assert next_action(ON, after_all(*facts), at(60)) == Commit(rule=Rule.COMMIT_DUE, round=1)
    assert isinstance(next_action(ON, after_all(*facts, DONE), at(60)), RunChecks)


@pytest.mark.parametrize(
    "facts",
    [
        idle_round(1),
        a_round(1, Outcome.FAILED),
        a_round(1, Outcome.INTERRUPTED),
        [started(1), *a_round(1, tampered=("tests/a.py",))],
    ],
)
def test_nothing_new_no_success_and_changed_protected_files_are_not_committed(facts: list[AnyFact]) -> None:
    assert not isinstance(next_action(ON, after_all(BEGUN, *facts), at(60)), Commit)


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.FAILED, Outcome.INTERRUPTED, Outcome.HUNG])
def test_in_a_worktree_every_change_is_committed_at_once_and_nothing_else(outcome: Outcome) -> None:
    begun = run_started(commits=True, commits_all=True)
    assert isinstance(next_action(ON, after_all(begun, *a_round(1, outcome)), at(60)), Commit)
    assert not isinstance(next_action(ON, after_all(begun, *idle_round(1)), at(60)), Commit)
    assert not isinstance(next_action(ON, after_all(begun, *a_round(1, outcome), FAILED), at(60)), Commit)
    again = after_all(begun, *a_round(1, outcome), FAILED, begun)  # it is tried again by the next run
    assert isinstance(next_action(ON, again, at(60)), Commit)


def test_what_was_in_a_worktree_before_is_the_first_commit() -> None:
    state = after_all(run_started(commits=True, commits_all=True, leftover=True))
    assert next_action(ON, state, at(0)) == Commit(rule=Rule.COMMIT_DUE, round=0)
    assert message(ON, state, str).startswith("bydawn: what was there before\n")
    assert not isinstance(next_action(ON, after_all(run_started(commits=True, commits_all=True)), at(0)), Commit)


def test_protected_files_that_are_only_reported_keep_nothing_from_being_committed() -> None:
    loop = a_loop(commit=CommitMode.ON, on_tamper=OnTamper.REPORT)
    assert isinstance(next_action(loop, after_all(BEGUN, *a_round(1, tampered=("a",))), at(60)), Commit)


def test_without_commits_no_change_is_remembered_for_one() -> None:
    assert after_all(run_started(), *a_round(1)).uncommitted == ()


def test_rounds_that_follow_each_other_are_one_change() -> None:
    two = [*a_round(1, Outcome.FAILED), started(2, tree="tree-1"), *a_round(2)[1:]]
    assert spans(*two) == [(1, 2, "tree-0", "tree-2")]


def test_what_a_person_changed_in_between_separates_two_changes() -> None:
    two = [*a_round(1, Outcome.FAILED), started(2, tree="a person's"), *a_round(2)[1:]]
    assert spans(*two) == [(1, 1, "tree-0", "tree-1"), (2, 2, "a person's", "tree-2")]


def test_a_repository_inside_the_workspace_is_no_change() -> None:
    assert spans(started(1, tree="tree-0+a"), *a_round(1, tree="tree-0+b")[1:]) == []


def test_what_a_hook_changed_goes_into_the_next_commit() -> None:
    hook = HookEnded(hook="post_round", round=1, passed=True, detail="", elapsed=60.0, tree="formatted")
    assert spans(*a_round(1), DONE, hook) == [(1, 1, "tree-1", "formatted")]
    assert next_action(ON, after_all(BEGUN, *a_round(1), DONE, hook), at(60)).rule is not Rule.COMMIT_DUE


def test_what_is_proven_is_committed_even_if_its_round_was_cut_short_and_only_once() -> None:
    facts = [BEGUN, *idle_round(1), checked(1, passed=False), *a_round(2, Outcome.INTERRUPTED), checked(2)]
    assert isinstance(next_action(ON, after_all(*facts), at(60)), Commit)
    assert next_action(ON, after_all(*facts, FAILED), at(60)).rule is Rule.COMPLETE
    rewritten = CommitEnded(round=2, elapsed=60.0, commit="c0ffee", tree="formatted")
    assert next_action(ON, after_all(*facts, rewritten, checked(2, tree="formatted")), at(60)).rule is Rule.COMPLETE


def test_a_commit_that_failed_is_tried_again_after_the_next_round_that_went_well() -> None:
    facts = [*a_round(1), FAILED]
    assert spans(*facts) == [(1, 1, "tree-0", "tree-1")]
    assert not isinstance(next_action(ON, after_all(BEGUN, *facts), at(60)), Commit)
    later = [*facts, started(2, tree="tree-1"), *a_round(2)[1:]]
    assert isinstance(next_action(ON, after_all(BEGUN, *later), at(120)), Commit)


def test_one_that_blocked_the_loop_is_tried_again_first() -> None:
    facts = [BEGUN, *a_round(1), FAILED, Obstructed(kind="commit", detail="it failed")]
    assert isinstance(next_action(ON, after_all(*facts), at(60)), Stop)
    assert isinstance(next_action(ON, after_all(*facts, run_started("tree-1", commits=True)), at(60)), Commit)


def test_a_git_hook_that_changed_files_leaves_no_proof_and_a_change_for_the_next_commit() -> None:
    rewritten = CommitEnded(round=1, elapsed=60.0, commit="c0ffee", tree="formatted")
    assert after_all(BEGUN, *a_round(1), rewritten).tree == "formatted"
    assert spans(*a_round(1), rewritten) == [(1, 1, "tree-1", "formatted")]


def test_what_waits_for_a_commit_is_bounded() -> None:
    rounds = [fact for n in range(1, 200) for fact in (started(n, tree=f"other-{n}"), *a_round(n, Outcome.FAILED)[1:])]
    kept = after_all(BEGUN, *rounds).uncommitted
    assert kept[-1] == Span(first=199, last=199, before="other-199", after="tree-199")
    assert len(kept) == 50


# -- the message -------------------------------------------------------------------------------------------------------

TRAILERS = "\n\nBydawn-Loop: night/u-1\nBydawn-Round: 1\n"


@pytest.mark.parametrize(
    ("template", "task", "text"),
    [
        (None, "add tests", "bydawn: add tests"),
        (None, None, "bydawn: round 1"),
        ("[codex] run #{counted}", None, "[codex] run #1"),
        ("{loop} {round}: {task}", "a\nb \x1b[31mred", "night 1: a b red"),
        ("{task}", None, "bydawn: round 1"),  # git refuses an empty one
        ("{task}", "t" * 200, "t" * 71 + "…"),
        ("{x {loop}} {}", None, "{x night} {}"),
        ("{task}", "{round} {nope}", "{round} {nope}"),  # a task is text
    ],
)
def test_a_message_names_the_work_and_ends_with_what_a_later_start_looks_for(
    template: str | None, task: str | None, text: str
) -> None:
    loop = a_loop(commit=CommitMode.ON, commit_message=template)
    assert message(loop, after_all(BEGUN, *a_round(1, task=task)), str) == text + TRAILERS


def test_a_message_hides_secrets_in_a_task() -> None:
    text = message(ON, after_all(BEGUN, *a_round(1, task="use hunter2")), lambda said: said.replace("hunter2", "…"))
    assert "hunter2" not in text


def test_names_that_no_message_has_are_found() -> None:
    assert unknown_names("{loop} {run_id} {ROUND} {") == ["run_id"]
