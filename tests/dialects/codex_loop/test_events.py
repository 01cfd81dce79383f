"""codex-loop: the rows of `events`, their labels, and which of them a filter takes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import HookEnded
from bydawn.dialects.codex_loop.events import (
    Period,
    Row,
    Wanted,
    checked_type,
    in_order,
    period,
    row_of,
    row_of_hook,
    summary_of,
)
from bydawn.dialects.codex_loop.history import Entry
from core.facts_made import NOON

AT = "2026-01-06T12:00:00.000Z"


def entry(kind: str, **more: Any) -> Entry:
    given: dict[str, Any] = {"timestamp": AT, "iteration": 3, "task_id": "001-a"}
    return Entry(event_type=kind, **given | more)


def hook(**more: Any) -> HookEnded:
    given: dict[str, Any] = {"hook": "post_round", "round": 3, "passed": True, "detail": "exit 0", "elapsed": 1.0}
    return HookEnded(**given | {"command": "make it"} | more)


@pytest.mark.parametrize(
    ("found", "label", "line"),
    [
        (
            entry("iteration", agent_status="complete", summary="Did\nit.", verification_passed=True),
            "iteration:complete",
            f"{AT}  iteration:complete  001-a  Did it.",
        ),
        (
            entry(
                "iteration", agent_status="continue", summary="Half.", verification_passed=False, error="make: exit 2"
            ),
            "iteration:continue",
            f"{AT}  iteration:continue  001-a  Half. (verification failed)",
        ),
        (entry("iteration"), "iteration", f"{AT}  iteration  001-a"),  # an answer that was not understood
        (entry("runner_failure", error="502"), "runner_failure", f"{AT}  runner_failure  001-a  502"),
        (
            entry("blocked", blocker_code="max_iterations", blocker_reason="30 iterations", task_id=None),
            "blocked:max_iterations",
            f"{AT}  blocked:max_iterations  30 iterations",
        ),
        (entry("requeued", summary="to be tried again"), "requeued", f"{AT}  requeued  001-a  to be tried again"),
        (
            entry("watchdog_restart", restart_reason="exit_code:-9", summary="it was killed", task_id=None),
            "watchdog_restart:exit_code:-9",
            f"{AT}  watchdog_restart:exit_code:-9  it was killed",
        ),
        (
            entry("watchdog_exhausted", restart_reason="stale_heartbeat", blocker_code="watchdog_exhausted"),
            "watchdog_exhausted:stale_heartbeat",
            f"{AT}  watchdog_exhausted:stale_heartbeat  001-a",
        ),
    ],
)
def test_each_kind_of_entry_has_its_label(found: Entry, label: str, line: str) -> None:
    """C-064"""
    row = row_of(found)
    assert (row.label, row.line, row.source) == (label, line, "history")


@pytest.mark.parametrize(
    ("ended", "label", "summary"),
    [
        (hook(), "hook:post_iteration", "make it: passed"),
        (hook(hook="pre_round", passed=False, detail="exit 1"), "hook:pre_iteration", "make it: failed (exit 1)"),
        (hook(hook="on_complete", passed=False, timed_out=True), "hook:on_completed", "make it: took too long"),
        (hook(hook="on_blocked"), "hook:on_blocked", "make it: passed"),
    ],
)
def test_a_hook_is_named_after_its_event(ended: HookEnded, label: str, summary: str) -> None:
    row = row_of_hook(ended, NOON, "001-a")
    assert (row.label, row.summary, row.timestamp, row.task_id) == (label, summary, AT, "001-a")


BLOCKED = row_of(entry("blocked", blocker_code="disk"))
HOOK = row_of_hook(hook(), NOON, None)


@pytest.mark.parametrize(
    ("asked", "takes"),
    [
        ({}, (True, True)),
        ({"event_type": "blocked"}, (True, False)),
        ({"event_type": "blocked:disk"}, (True, False)),
        ({"event_type": "blocked:budget"}, (False, False)),
        ({"event_type": "hook:post_iteration"}, (False, True)),
        ({"task_id": "001-a"}, (True, False)),  # which task a hook was for is not known here
        ({"task_id": "002-b"}, (False, False)),
        # Both ends are included, in whatever zone they are.
        ({"period": period("2026-01-06T12:00Z", None)}, (True, True)),
        ({"period": period("2026-01-06T13:00+01:00", "2026-01-06T07:00-05:00")}, (True, True)),
        ({"period": period(None, "2026-01-06T12:00Z")}, (True, True)),
        ({"period": period("2026-01-06T12:00:00.001Z", None)}, (False, False)),
        ({"period": period(None, "2026-01-06T12:59:59+01:00")}, (False, False)),
        ({"period": period("0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00")}, (True, True)),
    ],
)
def test_a_filter_takes_what_fits_all_of_it(asked: dict[str, Any], takes: tuple[bool, bool]) -> None:
    """C-064"""
    wanted = Wanted(limit=1, **asked)
    assert (wanted.takes(BLOCKED), wanted.takes(HOOK)) == takes
    assert wanted.has_hooks or not wanted.takes(HOOK)


@pytest.mark.parametrize(
    ("since", "until", "what", "hint"),
    [
        ("2026-01-01T00:00", None, "--since '2026-01-01T00:00' has no time zone", "--since 2026-01-01T00:00Z"),
        (None, "2026-01-01", "--until '2026-01-01' has no time zone", "--until 2026-01-01T00:00Z"),
        ("yesterday", None, "--since 'yesterday' is not a time", "--since 2026-01-06T12:00Z"),
        ("2h", None, "--since '2h' is not a time", "--since 2026"),
        ("", None, "--since '' is not a time", "--since 2026"),
        ("2026-02-30T00:00Z", None, "is not a time", ""),
        ("2026-01-02T00:00Z", "2026-01-01T23:59Z", "--since is later than --until", "exchange"),
        # Later only if the zones are heeded.
        ("2026-01-01T12:00-05:00", "2026-01-01T16:00Z", "--since is later than --until", ""),
    ],
)
def test_a_time_that_could_mean_another_is_refused(since: str | None, until: str | None, what: str, hint: str) -> None:
    with pytest.raises(UserError) as refused:
        period(since, until)
    assert what in refused.value.what
    assert refused.value.cause and hint in refused.value.hint


def test_a_time_is_taken_with_its_zone_and_without_one_everything_is_meant() -> None:
    at = datetime(2026, 1, 6, 12, tzinfo=UTC)
    assert period("2026-01-06T12:00Z", "2026-01-06T13:00:00+01:00") == Period(since=at, until=at)
    assert Period().has("2026-01-06T12:00:00.000Z")


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (None, None),
        ("iteration", None),
        ("iteration:blocked", None),
        ("blocked:no_selectable_task", None),
        ("hook:on_completed", None),
        ("watchdog_restart:exit_code:-9", None),
        ("iterations", "iteration, runner_failure, blocked, requeued, hook, watchdog_restart, watchdog_exhausted"),
        ("iteration:done", "iteration:complete, iteration:continue, iteration:blocked"),
        ("hook:on_pause", "hook:pre_iteration, hook:post_iteration, hook:on_completed, hook:on_blocked"),
        ("requeued:twice", "iteration, runner_failure"),
        ("", "iteration, runner_failure"),
    ],
)
def test_a_type_that_there_cannot_be_is_refused_with_those_there_can(given: str | None, known: str | None) -> None:
    if known is None:
        assert checked_type(given) == given
        return
    with pytest.raises(UserError, match="there is no event type") as refused:
        checked_type(given)
    assert refused.value.cause.startswith(f"known are: {known}")


def rows(*minutes: int) -> list[Row]:
    return [row_of_hook(hook(round=place), NOON + timedelta(minutes=each), None) for place, each in enumerate(minutes)]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ((1, 3, 5), (2, 4), [1, 2, 3, 4, 5]),
        ((), (2, 4), [2, 4]),
        ((1, 1), (1,), [1, 1, 1]),
        ((1, 9, 2, 3), (4, 10), [1, 4, 9, 2, 3, 10]),  # the clock was set back after 9: the list knows better
    ],
)
def test_two_lists_are_put_together_by_time_and_each_keeps_its_order(
    one: tuple[int, ...], other: tuple[int, ...], together: list[int]
) -> None:
    found = in_order(rows(*one), rows(*other))
    assert [int((datetime.fromisoformat(row.timestamp) - NOON).total_seconds() / 60) for row in found] == together


def test_a_summary_counts_and_names_the_latest_of_each_kind() -> None:
    """C-064"""
    listed = [
        row_of(entry("iteration", agent_status="continue", verification_passed=False, summary="one")),
        row_of(entry("iteration", agent_status="complete", verification_passed=True, summary="two")),
        row_of(entry("blocked", blocker_code="disk", task_id="002-b", blocker_reason="full")),
        row_of(entry("watchdog_restart", restart_reason="process_gone", task_id=None)),
        HOOK,
    ]
    found = summary_of(listed)
    assert (found.total_events, found.by_blocker_code, found.blocked_tasks) == (5, {"disk": 1}, ("002-b",))
    assert found.by_task == {"001-a": 2, "002-b": 1, "none": 2}
    assert found.by_source == {"history": 4, "hook": 1}
    assert found.by_label["iteration:complete"] == 1
    latest = (found.latest_blocked, found.latest_verification_failure, found.latest_watchdog_restart)
    assert latest == (listed[2], listed[0], listed[3])
    assert (found.latest_runner_failure, found.latest_watchdog_exhausted) == (None, None)
