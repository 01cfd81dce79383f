"""What is said of a fact: the same words on a terminal, a page or in a notice."""

import re
from datetime import timedelta

import pytest
from hypothesis import given, settings

from bydawn.core import facts
from bydawn.core.facts import AnyFact
from bydawn.core.replay import after
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.core.values import TaskStatus
from bydawn.operations.sentences import Counting, Sentence, amount_done, opening, sentences
from core.facts_any import HISTORIES
from core.facts_made import (
    LISTED,
    MAKE_TEST,
    NOON,
    PROMISED,
    a_loop,
    a_note,
    a_round,
    after_all,
    checked,
    decided,
    limited,
    numbered,
    pause,
    raised,
    run_started,
    started,
    stop,
    todo,
)

LATER = NOON + timedelta(hours=2)


def said(*past: AnyFact, unit: str = "round") -> list[Sentence]:
    """What is said of the last of these facts."""
    before, state = after_all(*past[:-1]), after_all(*past)
    return [*sentences(past[-1], PROMISED, before, state, Counting(unit=unit, number=state.round))]


@pytest.mark.parametrize(
    ("fact", "sign", "words"),
    [
        (
            run_started(tampered=("a.py",), restored=True),
            "!",
            "protected files had changed since the last run and were put back: a.py",
        ),
        (facts.MachineSlept(seconds=70), "☾", "the machine slept for 1 m 10"),
        (a_note("n-1"), "✎", "note from ada"),
        (facts.CheckpointApproved(mark="m", text="look", by="ada"), "✓", "approved by ada: look"),
        (facts.TamperingAccepted(paths=("a", "b"), by="ada"), "✓", "accepted by ada: a, b"),
        (facts.TaskSettled(task="t", text="T", status=TaskStatus.OPEN, by="ada"), "▷", "open again: “T”"),
        (
            facts.TaskSettled(task="t", text="T", status=TaskStatus.ASIDE, by="x", reason="why"),
            "▷",
            "set aside: “T”: why",
        ),
        (
            facts.AgentLimited(agent="codex", until=LATER, detail="", by="other"),
            "◷",
            "codex is at its usage limit until",
        ),
        (
            facts.RunStarted(run="r", pid=1, boot="b", version="0", cycle=2),
            "▷",
            "cycle 2: it goes on by itself",
        ),
        (facts.HookEnded(hook="h", round=1, passed=False, detail="exit 3", elapsed=1.0), "!", "h failed: exit 3"),
        (
            facts.NoticeEnded(to="https://example.org", event="limit", sent=False, detail="HTTP 500", tries=3),
            "!",
            "notice to https://example.org not sent: HTTP 500",
        ),
        (facts.Obstructed(kind="disk", detail="the disk is full"), "!", "the disk is full"),
        (facts.LedgerRepaired(cut_bytes=9, kept_in="x"), "!", "9 bytes"),
        (raised(rounds=99), "", "Limits raised."),
        (raised(rounds=9), "", "Limits changed."),
        (stop(), "", "Stopping now, asked by ada."),
        (pause(now=True), "", "Pausing now, asked by ada."),
        (pause(now=True, signal="SIGTERM"), "", "Stopping now."),
    ],
)
def test_each_fact_that_a_person_should_know_of_is_one_sentence(fact: AnyFact, sign: str, words: str) -> None:
    [sentence] = said(run_started(), fact)
    assert sentence.sign == sign
    assert words in sentence.text


@pytest.mark.parametrize(
    "fact",
    [
        run_started(),
        started(1),
        *a_round(1),
        checked(1),
        facts.TaskSettled(task="t", text="T", status=TaskStatus.DONE, by="bydawn"),
        facts.HookEnded(hook="h", round=1, passed=True, detail="", elapsed=1.0),
        facts.NoticeEnded(to="https://example.org", event="limit", sent=True, detail="HTTP 204", tries=1),
        facts.Obstructed(kind="commit", detail="it failed"),  # a remark below the row has said it
        facts.Obstructed(kind="hook", detail="the hook failed"),  # the hook's own end has said it
    ],
)
def test_what_a_row_or_the_end_shows_is_not_said_as_well(fact: AnyFact) -> None:
    assert said(run_started(), fact) == []


def test_ctrl_c_says_how_long_the_round_has_run_and_what_a_second_one_does() -> None:
    first, second = said(run_started(), started(4), pause(signal="SIGINT"))
    assert first.text == "Stopping after round 4 (running for 1 s)."
    assert "Ctrl-C again" in second.text


def test_a_pause_from_elsewhere_says_when_it_holds_and_who_asked() -> None:
    [sentence] = said(run_started(), started(4), pause())
    assert sentence.text == "Pausing after round 4, asked by ada (running for 1 s)."
    [sentence] = said(run_started(), *a_round(4), pause())  # while its checks run
    assert sentence.text == "Pausing after round 4, asked by ada."
    [sentence] = said(run_started(), pause())
    assert sentence.text == "Pausing before round 1, asked by ada."
    [sentence] = said(run_started(), started(4), stop(now=False))
    assert sentence.text.startswith("Stopping after round 4, asked by ada")


def test_a_signal_that_comes_twice_is_said_once() -> None:
    term = pause(now=True, signal="SIGTERM")
    assert said(run_started(), started(1), term, term) == []
    assert said(run_started(), started(1), pause(signal="SIGINT"), pause(now=True, signal="SIGINT"))


def test_a_wait_says_whether_it_costs_a_round_in_the_words_of_the_dialect() -> None:
    wait = facts.WaitStarted(seconds=30, reason="a blip", agent="codex", decided=decided(Rule.BACK_OFF))
    [sentence] = said(run_started(), *a_round(1), wait)
    assert re.fullmatch(r"waiting for codex until .*[0-9]:[0-9]{2} \(30 s\): a blip", sentence.text)
    limit = facts.WaitStarted(seconds=30, reason="its limit", decided=decided(Rule.AGENT_LIMIT))
    [sentence] = said(run_started(), *a_round(1), limit, unit="iteration")
    assert sentence.text.endswith("(costs no iteration)")


def test_limits_are_raised_over_those_in_force_and_not_over_the_first_ones() -> None:
    assert said(run_started(), raised(rounds=99), raised(rounds=50))[0].text == "Limits changed."


def test_the_opening_names_the_agents_word_where_checks_need_it() -> None:
    for loop, label, text in (
        (a_loop(checks=(MAKE_TEST,)), "Needs", "make test, and the agent's word that it is done"),
        (a_loop(checks=(MAKE_TEST,), promise_required=False), "Check", "make test"),
    ):
        shown = {field.label: field.text for field in opening(loop, LoopState(), None)}
        assert {name: shown[name] for name in ("Needs", "Check") if name in shown} == {label: text}


def test_the_opening_names_the_goal_and_the_limits() -> None:
    shown = {field.label: field.text for field in opening(LISTED, LoopState(), todo(2, 1))}
    assert shown["Tasks"] == "TODO.md, 2 open"
    assert shown["Limit"] == "30 rounds"
    assert {field.label: field.text for field in opening(limited(rounds=0), LoopState(), None)}["Limit"] == (
        "any number of rounds"
    )


def test_a_dialect_counts_in_its_own_words() -> None:
    theirs = a_loop(dialect={"name": "x"})
    state = after_all(run_started(tasks=todo(1, 2)), *a_round(1, tasks=todo(1, 2)))
    assert amount_done(theirs, state, Counting(unit="iteration", number=7)) == "2 of 3 tasks, 7 iterations, 1 m 00"
    assert amount_done(PROMISED, state, Counting()) == "2 of 3 tasks, 1 round, 1 m 00"


@settings(max_examples=25, deadline=None)
@given(HISTORIES)
def test_over_any_history_what_is_said_cannot_steer_a_terminal(history: list[AnyFact]) -> None:
    before = LoopState()
    for record in numbered(history):
        state = after(before, record)
        for sentence in sentences(record.fact, PROMISED, before, state, Counting(number=state.round)):
            assert sentence.text == plain(sentence.text)
        before = state
