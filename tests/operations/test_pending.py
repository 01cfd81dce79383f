"""What a running loop waits for, and what was asked of it, in words: the same in `status`, `show` and the live line."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from bydawn.core.facts import AnyFact, WaitStarted
from bydawn.core.replay import replay
from bydawn.core.values import Decided
from bydawn.operations.detail import loop_fields
from bydawn.operations.next_steps import next_steps
from bydawn.operations.pending import Asked, asked, asked_words
from bydawn.operations.views import liveness, loop_view, status_line
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing
from core.facts_made import a_loop, a_round, after_all, numbered, pause, run_started, started, stop


def back_off(seconds: float) -> WaitStarted:
    """A wait that began half a minute ago."""
    since = Decided(rule="back-off", at=datetime.now(UTC) - timedelta(seconds=30), elapsed=0.0)
    return WaitStarted(seconds=seconds, reason="503", agent="codex", decided=since)


def running(*facts: AnyFact) -> Standing:
    state = replay(numbered([run_started(), *facts]))
    return Standing(folder=LoopFolder(Path("/nowhere/loops/home/night")), loop=a_loop(), state=state, alive=True)


def test_waiting_says_for_whom_and_until_when_everywhere() -> None:
    wait = back_off(130.4)
    standing = running(*a_round(1), wait)
    words = rf"waiting for codex until {wait.ends.astimezone():%H:%M} \(1 m (40|39|38)\)"
    assert re.fullmatch(words, status_line(standing).liveness)
    shown = {field.label: field.text for field in loop_fields(standing)}
    assert re.search(f"{words}$", shown["So far"])
    assert shown["Waiting"] == "503"
    waiting = loop_view(standing).waiting
    assert waiting
    assert (waiting.reason, waiting.agent, waiting.until) == ("503", "codex", wait.ends)


def test_a_wait_that_should_be_over_counts_nothing_down() -> None:
    assert "(" not in liveness(running(*a_round(1), back_off(29.0)))


def test_a_loop_that_is_not_running_waits_for_nothing() -> None:
    crashed = msgspec.structs.replace(running(*a_round(1), back_off(60.0), pause()), alive=False)
    view = loop_view(crashed)
    assert (view.waiting, view.asked) == (None, None)


# what happened in the run, what is pending, the words for it
PENDING: list[tuple[list[AnyFact], Asked | None, str]] = [
    ([*a_round(1), started(2), pause()], Asked(what="pause", by="ada", after_round=2), "pausing after round 2"),
    ([*a_round(2), pause()], Asked(what="pause", by="ada", after_round=2), "pausing after round 2"),  # checks run
    ([pause()], Asked(what="pause", by="ada", after_round=0), "pausing before round 1"),
    ([started(2), pause(now=True)], Asked(what="pause", by="ada", after_round=None), "pausing now"),
    ([*a_round(1), back_off(60.0), pause()], Asked(what="pause", by="ada", after_round=None), "pausing now"),
    ([started(2), pause(signal="SIGINT")], Asked(what="pause", by="SIGINT", after_round=2), "pausing after round 2"),
    ([started(2), pause(), stop()], Asked(what="stop", by="ada", after_round=None), "stopping now"),
    ([started(2), stop(now=False)], Asked(what="stop", by="ada", after_round=2), "stopping after round 2"),
    ([started(2)], None, ""),
    ([started(2), pause(), run_started()], None, ""),  # it was asked of an earlier run
]


@pytest.mark.parametrize(("facts", "wanted", "words"), PENDING)
def test_a_request_is_shown_until_it_is_carried_out(facts: list[AnyFact], wanted: Asked | None, words: str) -> None:
    standing = running(*facts)
    assert loop_view(standing).asked == wanted
    assert asked(standing.state) == wanted
    if wanted:
        assert asked_words(wanted) == words
        assert liveness(standing).endswith(f"; {words}")
        assert "Asked" in {field.label for field in loop_fields(standing)}


def test_a_dialect_calls_the_round_by_its_own_word() -> None:
    pending = asked(after_all(run_started(), started(2), pause()))
    assert pending
    assert asked_words(pending, "iteration 1") == "pausing after iteration 1"


@pytest.mark.parametrize(
    ("asks", "offered"),
    [
        ([], ["logs", "pause"]),
        ([pause()], ["logs", "stop"]),
        ([stop(now=False)], ["logs", "stop"]),
        ([stop()], ["logs"]),
    ],
)
def test_what_was_asked_already_is_not_offered_again(asks: list[AnyFact], offered: list[str]) -> None:
    steps = next_steps(running(started(2), *asks))
    assert [step.command.split()[1] for step in steps] == offered
