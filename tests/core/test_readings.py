"""A long task list: what is recorded of it, and what it costs to read it again."""

from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.state import LoopState
from bydawn.core.values import TaskReading, recorded, whole
from bydawn.core.worklist import WorkList
from core.facts_made import LISTED, after_all, run_started
from core.test_worklist import Folder
from effort import effort

_IDS = st.lists(st.integers(0, 200).map("task-{}".format), min_size=0, max_size=120, unique=True).map(tuple)


def reading(ids: tuple[str, ...]) -> TaskReading:
    above, texts = tuple(len(id_) for id_ in ids), tuple(f"t-{id_}" for id_ in ids)
    return TaskReading(open=len(ids), done=3, next="one", open_ids=ids, above=above, texts=texts)


@given(_IDS, _IDS, st.integers(0, 120))
def test_a_reading_that_is_recorded_short_is_whole_again_on_top_of_the_one_before(
    before: tuple[str, ...], more: tuple[str, ...], cut: int
) -> None:
    for now in (before, before[cut:], before[:cut] + before[cut + 1 :], (*before, *more), more):
        old, new = reading(before), reading(tuple(dict.fromkeys(now)))
        assert whole(recorded(new, old), old) == new
        assert whole(recorded(new, None), None) == new


def test_a_long_list_is_recorded_by_what_changed_in_it() -> None:
    ids = tuple(map(str, range(10_000)))
    old = reading(ids)
    assert recorded(old, old).open_ids == ()
    ticked = recorded(reading((*ids[:5], *ids[6:], "new")), old)
    assert (ticked.without, ticked.open_ids, ticked.above, ticked.texts) == (("5",), ("new",), (3,), ("t-new",))


def test_a_facts_reading_is_whole_in_the_state() -> None:
    ids = tuple(map(str, range(100)))
    state = after_all(run_started(tasks=reading(ids)))
    short = recorded(reading(ids[1:]), state.tasks)
    assert len(short.open_ids) == 0
    assert after_all(run_started(tasks=reading(ids)), run_started(tasks=short)).tasks == reading(ids[1:])


def test_ten_thousand_boxes_that_have_not_changed_cost_next_to_nothing() -> None:
    text = "".join(f"- [ ] number {number} of a long list\n" for number in range(9_990))
    listed = WorkList(LISTED, Folder({"TODO.md": text}))
    before = listed.read(LoopState(), None)
    state = after_all(run_started(tasks=before))
    assert before is not None
    assert before.open == 9_990
    again = listed.read(state, before)
    assert again == before
    assert effort(lambda: [listed.read(state, before) for _ in range(10)]) < 10 * 0.5
