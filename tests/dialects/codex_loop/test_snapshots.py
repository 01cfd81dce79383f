"""codex-loop: what can be asked of an index of snapshots."""

from typing import Any

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.dialects.codex_loop.period import period
from bydawn.dialects.codex_loop.snapshots import Snapshot, Wanted, indexed, summary_of

ONE = Snapshot(generated_at="2026-01-01T00:00:00.000Z", task_id="a", overall_status="completed", snapshot_path="1")
TWO = Snapshot(
    generated_at="2026-01-02T00:00:00.000Z",
    task_id="b",
    overall_status="blocked",
    last_blocker_code="disk",
    snapshot_path="2",
)
THREE = Snapshot(generated_at="2026-01-03T00:00:00.000Z", task_id="a", overall_status="running", snapshot_path="3")
EVERY = [THREE, ONE, TWO]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, "123"),
        ({"newest_first": True}, "321"),
        ({"limit": 2}, "23"),
        ({"limit": 2, "newest_first": True}, "32"),
        ({"limit": 9}, "123"),
        ({"limit": 1}, "3"),
        ({"limit": 1, "blocked": True}, "2"),
        ({"task_id": "a"}, "13"),
        ({"task_id": "a", "limit": 1}, "3"),
        ({"status": "blocked"}, "2"),
        ({"blocker_code": "disk"}, "2"),
        ({"blocker_code": "budget"}, ""),
        ({"period": period("2026-01-02T01:00+01:00", "2026-01-02T00:00Z")}, "2"),
        ({"period": period("2026-01-03T00:00:01Z", None)}, ""),
    ],
)
def test_a_person_gets_what_fits_in_the_order_they_want(asked: dict[str, Any], found: str) -> None:
    """C-014"""
    assert "".join(each.snapshot_path for each in Wanted(**asked).of(EVERY)) == found


@pytest.mark.parametrize(
    ("asked", "what", "cause"),
    [
        ({"task_id": "c"}, "--task-id 'c' is not known here", "known are: a, b"),
        ({"blocker_code": "dsk"}, "--blocker-code 'dsk' is not known here", "known are: interrupted"),
    ],
)
def test_what_is_misspelled_is_refused(asked: dict[str, Any], what: str, cause: str) -> None:
    with pytest.raises(UserError, match=what) as refused:
        Wanted(**asked).refuse_unknown([ONE, TWO])
    assert refused.value.cause.startswith(cause)
    Wanted(task_id="a", blocker_code="budget").refuse_unknown([ONE])


def test_a_summary_counts_in_every_way_or_in_one() -> None:
    """C-014"""
    whole = msgspec.to_builtins(summary_of(EVERY))
    assert (whole["total_snapshots"], whole["by_task"]) == (3, {"a": 2, "b": 1})
    assert (whole["by_status"], whole["by_blocker"]["none"]) == ({"blocked": 1, "completed": 1, "running": 1}, 2)
    assert (whole["latest_snapshot"]["snapshot_path"], whole["latest_blocked"]["snapshot_path"]) == ("3", "2")
    grouped = msgspec.to_builtins(summary_of(EVERY, "task"))
    assert [*grouped] == ["total_snapshots", "by_task", "latest_snapshot", "latest_blocked"]
    assert summary_of([]).latest_snapshot is None


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"{}", b'{"snapshots": {}}', b'{"snapshots": [{"task_id": 3}]}'])
def test_what_is_not_an_index_is_not_taken_for_an_empty_one(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        indexed(data)
