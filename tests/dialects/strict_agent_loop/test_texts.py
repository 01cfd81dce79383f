"""What people read about a strict-agent-loop task, and the lines that are made from facts."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.facts import LoopStopped
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import End, Verdict
from bydawn.dialects.strict_agent_loop import lines, texts
from bydawn.dialects.strict_agent_loop.contract import Contract
from bydawn.dialects.strict_agent_loop.document import begun, state_of, stop_report, with_claim
from bydawn.dialects.strict_agent_loop.formats import State, StopReport
from core.facts_made import NOON, a_round, after_all, decided, run_started, stopped
from dialects.strict_made import BY_HAND, CONTRACT, WORKSPACE, a_task, an_event, an_iteration, verdicts

ONE_CHECK = replace(CONTRACT, paths=(), max_iterations=10)


def worked(
    contract: Contract, iterations: int, found: tuple[Verdict, ...] = (), **last: Any
) -> tuple[State, StopReport]:
    """A task with so many iterations, a minute each, and what its checks said."""
    made = begun(contract, WORKSPACE, NOON)
    for number in range(1, iterations + 1):
        made = with_claim(made, an_iteration(number, **(last if number == iterations else {})))
    return made, stop_report(made, found, NOON + timedelta(minutes=iterations))


@pytest.mark.parametrize(
    ("contract", "iterations", "found", "bar", "left"),
    [
        (ONE_CHECK, 2, (), "[####----------------] 20% (iteration budget)", "not known yet"),  # one time is no average
        (ONE_CHECK, 5, (), "[##########----------] 50% (iteration budget)", "at most 5 m 00"),
        (ONE_CHECK, 12, (), "[####################] 100% (iteration budget)", "at most 0.0 s"),
        (CONTRACT, 5, (), "[--------------------] 0% (stop checks)", "not known yet"),  # nothing to estimate from
        (CONTRACT, 5, verdicts(script=False, report=True), "[##########----------] 50% (stop checks)", "about 5 m 00"),
    ],
)
def test_the_bar_says_what_it_is_made_from_and_the_estimate_needs_something_to_go_by(
    contract: Contract, iterations: int, found: tuple[Verdict, ...], bar: str, left: str
) -> None:
    """S-036: by stop checks if there are several, else by the budget."""
    text = texts.status_text(*worked(contract, iterations, found))
    assert f"Progress: {bar}\n" in text
    assert f"Estimated time remaining: {left}\n" in text


def test_a_task_that_is_done_is_done_to_100_percent() -> None:
    done = state_of(a_task(), LoopState(stopped=stopped(End.COMPLETE)))
    report = stop_report(done, verdicts(script=True, report=True), NOON)
    assert texts.progress(done, report).percent == 100
    unverified = worked(BY_HAND, 1, stop_met=True)
    assert texts.progress(*unverified).source == "recorded stop"


def test_the_announcement_has_all_seven_parts() -> None:
    """S-032"""
    made, report = worked(CONTRACT, 4, verdicts(script=False, report=True))
    told = texts.announcement(made, "write\nfive", "it is there", report)
    assert told == [
        "Iteration: 5 of at most 200",
        "Completed so far: 4",
        "This round: write five",
        "Local done condition: it is there",
        "Global stop condition: report.md has all 17 numbers",
        "Stop after this round if: all 2 stop checks pass, a blocker is recorded, or a limit is reached",
        "Recent average: 1 m 00; estimated time remaining: about 4 m 00",
    ]


def test_time_goes_on_until_the_task_ends() -> None:
    made, report = worked(CONTRACT, 4)
    later = NOON + timedelta(hours=1)
    assert texts.report(made, report, later).elapsed_seconds == 3600
    ended, stop = worked(CONTRACT, 4, status="blocked")
    assert texts.report(ended, stop, later).elapsed_seconds == 240


def test_nothing_that_an_agent_writes_breaks_a_line_of_text() -> None:
    bad = "one\ntwo\x1b[31m\r# Three" + "x" * 1000
    made, report = worked(CONTRACT, 1, task=bad, next_task=bad, result_summary=bad, evidence=(bad,))
    for text in (texts.status_text(made, report), texts.run_summary(made, report)):
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) < 1000
        assert "\n# Three" not in text
    assert len(texts.status_text(made, report).splitlines()) == 15


def test_the_data_of_an_event_can_have_any_name() -> None:
    fact = replace(an_event(1), data={"kind": "mine", "document": "x", "message": "y"})
    made = begun(CONTRACT, WORKSPACE, NOON)
    assert lines.event_of_claim(with_claim(made, fact), fact).data == fact.data


@pytest.mark.parametrize(
    ("fact", "kinds"),
    [
        (stopped(End.COMPLETE), ["loop.completed"]),
        (stopped(End.UNVERIFIED), ["loop.completed"]),
        (stopped(End.LIMIT), ["loop.failed"]),
        (stopped(End.PAUSED), ["supervisor.invocation.interrupted"]),  # S-044
        (LoopStopped(end=End.BLOCKED, reason="as before", decided=decided(Rule.ONLY_CHECKS)), []),
    ],
)
def test_an_end_is_an_event(fact: LoopStopped, kinds: list[str]) -> None:
    state = after_all(run_started(), fact)
    assert [event.kind for event in lines.events_of(fact, a_task(), state)] == kinds


def test_the_end_of_a_task_that_no_one_runs_is_an_event_too() -> None:
    """A session of a person's own recorded it."""
    facts = (stopped(End.PAUSED), an_iteration(1, status="blocked"), stopped(End.BLOCKED))
    events = lines.events_of(facts[-1], a_task(BY_HAND), after_all(*facts))
    assert [event.kind for event in events] == ["loop.blocked"]


def test_only_a_task_that_resumes_its_thread_loses_one() -> None:
    """S-042, S-051"""
    facts = [run_started(), *a_round(1, Outcome.CONTEXT_FULL)]
    fresh, resuming = a_task(), a_task(replace(CONTRACT, resume_thread=True))
    kinds = [[event.kind for event in lines.events_of(facts[-1], loop, after_all(facts))] for loop in (fresh, resuming)]
    assert kinds == [["supervisor.invocation.failed"], ["supervisor.invocation.failed", "supervisor.thread.reset"]]


def test_a_task_that_is_only_prepared_was_not_interrupted() -> None:
    prepared = stopped(End.PAUSED)
    assert not list(lines.events_of(prepared, a_task(), after_all(prepared)))
