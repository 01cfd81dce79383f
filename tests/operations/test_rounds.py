"""A round in words: what it came to, and what a person should know of it."""

from typing import Any

import msgspec
import pytest

from bydawn.core.facts import AnyFact
from bydawn.core.history import History
from bydawn.core.loop import Loop, TaskByTask
from bydawn.core.outcome import Outcome
from bydawn.core.values import UNCLEAR, Changes, Counts, Promised, TaskClaim
from bydawn.operations.rounds import RoundRow, proof_remarks, round_view, row_of
from core.facts_made import (
    BORN,
    BROKEN,
    CHECKED,
    DONE,
    FOLDER,
    MAKE_TEST,
    PROMISED,
    a_loop,
    a_round,
    after_all,
    checked,
    idle_round,
    in_vain,
    numbered,
    pause,
    run_started,
    started,
)

CUT: dict[str, Any] = {"outcome": Outcome.INTERRUPTED, "detail": "stopped on request"}


def last_row(*facts: AnyFact, loop: Loop = PROMISED, alive: bool = False) -> RoundRow:
    """The last round of this history."""
    records = numbered([BORN, run_started(), *facts])
    return row_of(History(records).attempts[-1], loop, after_all(BORN, run_started(), *facts), alive=alive)


def at_end(*facts: AnyFact, loop: Loop = PROMISED) -> tuple[str, list[str]]:
    """The result of the last round of this history, and the remarks on it."""
    row = last_row(*facts, loop=loop)
    return row.result, [remark.text for remark in row.remarks]


@pytest.mark.parametrize(
    ("facts", "result"),
    [
        (a_round(1), "progress"),
        (a_round(1, closed=("one",)), "task done"),
        (idle_round(1, commands=in_vain()), "no command worked"),
        (idle_round(1, commands=in_vain(failed=1)), "no change 1/5"),
        (a_round(1, closed=("one", "two")), "2 tasks done"),
        (idle_round(1), "no change 1/5"),
        (a_round(1, Outcome.CONTEXT_FULL), "context full"),
        (a_round(1, **CUT), "over budget"),
        ([started(1), pause(now=True), a_round(1, **CUT)[1]], "interrupted"),
        ([*a_round(1), checked(1, passed=False)], "not yet"),
    ],
)
def test_a_round_comes_to_one_result(facts: list[AnyFact], result: str) -> None:
    assert at_end(*facts, loop=CHECKED)[0] == result


def test_a_promise_that_was_not_accepted_is_remarked_on_with_what_is_missing() -> None:
    _, texts = at_end(*a_round(1, promise=Promised.GIVEN), checked(1, passed=False), loop=CHECKED)
    assert texts[0] == "exit 2: FAIL: test_rounding"
    assert texts[1].startswith("the agent says it is done, but 1 of 1 checks failed")


def test_a_promise_that_was_only_mentioned_is_remarked_on_wherever_the_agents_word_is_needed() -> None:
    for loop in (PROMISED, a_loop(checks=(MAKE_TEST,))):
        _, texts = at_end(*a_round(1, promise=Promised.MENTIONED), checked(1), loop=loop)
        assert texts == ["the agent only mentioned the promise, so it does not count"]


@pytest.mark.parametrize("counts", [Counts(), Counts(skipped=2)])
def test_a_check_that_runs_no_test_is_said_to_prove_nothing_before_the_first_round(counts: Counts) -> None:
    [verdict] = checked(0).verdicts
    baseline = msgspec.structs.replace(checked(0), verdicts=(msgspec.structs.replace(verdict, counts=counts),))
    assert [remark.text for remark in proof_remarks(baseline)] == ["! make test ran no test, so it proves nothing"]


def test_an_answer_that_claims_nothing_and_a_claim_without_a_change_are_remarked_on() -> None:
    odd = TaskClaim(status=UNCLEAR, summary="x", odd=("`task_id` is 2, but the task was 1", "`blockers` is missing"))
    unclear = TaskClaim(status=UNCLEAR, summary="STATUS: nearly")
    for claim, why in ((odd, odd.odd[0]), (unclear, "“STATUS: nearly” is not a status")):
        assert at_end(*a_round(1, claim=claim), loop=FOLDER)[1] == [f"the agent's answer claims nothing: {why}"]
    idle = [*idle_round(1, task_id="1", claim=DONE), *idle_round(2, task_id="1", claim=DONE)]
    strict = msgspec.structs.replace(FOLDER, checks=CHECKED.checks, by_task=TaskByTask())
    told = ["the agent says that its task is done, but nothing was changed for it"]
    assert at_end(*idle[:2], loop=FOLDER)[1] == at_end(*idle[:2], loop=strict)[1] == told
    assert at_end(*idle, loop=FOLDER)[1] == [], "said twice, it counts"
    assert at_end(*a_round(1, task_id="1", claim=DONE), loop=strict)[1] == []
    assert at_end(*a_round(1, task_id="1"), *idle[2:], loop=strict)[1] == [], "the round before may have done it"


def test_the_next_prompt_has_what_a_failing_check_said_and_nothing_else() -> None:
    row = last_row(*a_round(1, blocked="which rate?"), checked(1, passed=False), loop=CHECKED)
    assert [remark.for_agent for remark in row.remarks] == [True, False]


def test_a_round_in_which_every_command_failed_is_remarked_on_with_the_error_that_the_agent_is_told_too() -> None:
    [remark] = last_row(*idle_round(1, commands=in_vain())).remarks
    assert (remark.text, remark.for_agent) == (f"every command failed: {BROKEN}", True)


@pytest.mark.parametrize(
    ("facts", "alive", "words"),
    [
        (idle_round(1, commands=in_vain()), False, ("no command worked", "0", "—")),
        (a_round(1, changes=Changes(added=2, modified=1)), False, ("progress", "+2 ~1", "—")),
        ([*a_round(1), checked(1)], False, ("progress", "0", "pass")),
        (a_round(1, unseen=True), False, ("progress", "unknown", "—")),
        (a_round(1, **CUT), False, ("over budget", "0", "—")),
        ([started(1)], True, ("running", "", "—")),
        ([started(1)], False, ("interrupted", "", "—")),
    ],
)
def test_a_round_of_the_past_is_a_row(facts: list[AnyFact], alive: bool, words: tuple[str, ...]) -> None:
    row = last_row(*facts, alive=alive)
    assert (row.result, row.files, row.check) == words


def test_a_round_that_has_not_ended_has_no_fields_of_an_end() -> None:
    first = a_round(1, session="s-1")
    ended, begun = (msgspec.to_builtins(round_view(last_row(*facts))) for facts in (first, [*first, started(2)]))
    assert (ended["session"], ended["result"], "check_seconds" in ended) == ("s-1", "progress", False)
    assert [*begun][-1] == "verdicts", "and nothing of how it ended"
