"""How each task stands, by its file and by the ledger."""

from collections.abc import Hashable

import pytest

from bydawn.core.facts import AnyFact, CheckpointApproved, TaskSettled
from bydawn.core.loop import Checkpoint
from bydawn.core.state import LoopState, Settled
from bydawn.core.values import End, TaskStatus
from bydawn.core.worklist import Stand, Standings, WorkList, of_checklist, of_folder, rewritten, standings
from core.facts_made import LISTED, a_loop, a_round, after_all, run_started, stopped

TODO = "- [x] first\n- [ ] second\n- [ ] third\n"
STOPPED = a_loop(tasks="TODO.md", checkpoint=Checkpoint())
FOLDER = a_loop(tasks="tasks", task_folder=True)
FILES = {
    "1-db.md": "# Database\n",
    "2-api.md": "# API\n<!-- depends_on: 1-db -->\n",
    "3-docs.md": "# Docs\n",
    "4-ui.md": "# UI\n<!-- depends_on: 2-api, 3-docs -->\n",
}


def settled(task: str, status: TaskStatus) -> TaskSettled:
    return TaskSettled(task=task, text=task, status=status, by="ada")


def id_of(text: str, source: str = TODO) -> str:
    [found] = [task.id for task in standings(source, LISTED, LoopState()).tasks if task.text == text]
    return found


def words(found: Standings) -> list[str]:
    return [f"{item.number or '-'} {item.stand} {item.text}" for item in found.items]


def seen(source: str = TODO, *facts: AnyFact) -> Standings:
    return standings(source, LISTED, after_all(run_started(tasks=None), *facts))


def test_the_first_open_box_is_next_and_ticked_ones_are_done() -> None:
    found = seen()
    assert words(found) == ["1 done first", "2 next second", "3 open third"]
    assert [item.line for item in found.items] == [1, 2, 3]
    assert found.counts == {"open": 2, "done": 1, "skipped": 0, "aside": 0, "waiting": 0, "doubted": 0}


def test_what_a_person_skipped_and_what_was_set_aside_are_passed_over() -> None:
    aside = seen(TODO, settled(id_of("second"), TaskStatus.ASIDE))
    assert words(aside) == ["1 done first", "2 aside second", "3 next third"]
    assert (aside.counts["open"], aside.counts["aside"]) == (2, 1)
    skipped = seen(TODO, settled(id_of("second"), TaskStatus.SKIPPED), settled(id_of("first"), TaskStatus.SKIPPED))
    assert words(skipped) == ["1 skipped first", "2 skipped second", "3 next third"]
    assert (skipped.counts["open"], skipped.counts["done"], skipped.counts["skipped"]) == (1, 0, 2)


def test_a_box_that_was_ticked_without_any_other_change_is_doubted() -> None:
    found = seen(TODO, *a_round(1, closed=("first",), doubted=("first",)))
    assert words(found)[0] == "1 doubted first"
    assert (found.counts["done"], found.counts["doubted"]) == (1, 1)


def test_a_checkpoint_stands_in_its_place_and_has_no_number() -> None:
    text = "- [x] a\n\nHARD STOP: look\n\n- [ ] b\n- [ ] HARD STOP: look again\n- [ ] c\n"
    state = after_all(run_started())
    found = standings(text, STOPPED, state)
    rows = ["1 done a", "- reached HARD STOP: look", "2 next b", "- ahead HARD STOP: look again", "3 open c"]
    assert words(found) == rows
    assert len(found.tasks) == 3
    approved = CheckpointApproved(mark=found.items[1].id, text="", by="ada")
    assert words(standings(text, STOPPED, after_all(run_started(), approved)))[1] == "- approved HARD STOP: look"
    assert "HARD STOP: look" not in " ".join(words(standings(text, LISTED, state))[:2])  # nobody asked for checkpoints


def test_a_checkpoint_right_below_a_box_stands_below_it_and_is_no_part_of_its_text() -> None:
    text = "- [ ] model\nHARD STOP: look\n- [ ] views\n"
    found = standings(text, STOPPED, LoopState())
    assert words(found) == ["1 next model", "- ahead HARD STOP: look", "2 open views"]
    apart = of_checklist(
        text.replace("HARD", "\nHARD"), STOPPED, LoopState(), of_checklist(text, STOPPED, LoopState(), None)
    )
    assert apart.problem is None  # the same task with an empty line below it
    ticked = standings(text.replace("[ ] model", "[x] model"), STOPPED, LoopState())
    assert words(ticked) == ["1 done model", "- reached HARD STOP: look", "2 next views"]


def test_a_task_of_a_folder_waits_for_what_is_not_done() -> None:
    found = standings(FILES, FOLDER, after_all(run_started()))
    assert words(found) == ["1 next Database", "2 waiting API", "3 open Docs", "4 waiting UI"]
    assert [item.waits_for for item in found.items] == [(), ("1-db",), (), ("2-api", "3-docs")]
    done = after_all(run_started(), settled("1-db", TaskStatus.DONE), settled("3-docs", TaskStatus.SKIPPED))
    found = standings(FILES, FOLDER, done)
    assert words(found) == ["1 done Database", "2 next API", "3 skipped Docs", "4 waiting UI"]
    assert found.counts == {"open": 2, "done": 1, "skipped": 1, "aside": 0, "waiting": 1, "doubted": 0}


def test_a_list_that_cannot_be_believed_says_why_and_is_still_shown() -> None:
    reading = of_checklist(TODO, LISTED, LoopState(), None)
    found = standings("- [ ] second\n", LISTED, after_all(run_started(tasks=reading)))
    assert found.problem == "lost 1 open task: vanished without being ticked"
    assert words(found) == ["1 next second"]
    known = of_folder(FILES, LoopState().settled)
    found = standings({"1-db.md": "# Database\n"}, FOLDER, after_all(run_started(tasks=known)))
    assert found.problem == "lost 3 open tasks: 2-api, 3-docs, 4-ui"
    circle = {"a.md": "# A\n<!-- depends_on: b -->", "b.md": "# B\n<!-- depends_on: a -->"}
    assert "cycle" in str(standings(circle, FOLDER, LoopState()).problem)


@pytest.mark.parametrize("end", [End.BLOCKED, End.PAUSED])
def test_after_a_recorded_stop_the_list_is_as_the_next_run_will_read_it(end: End) -> None:
    reading = of_checklist(TODO, LISTED, LoopState(), None)
    found = standings("- [ ] second\n", LISTED, after_all(run_started(tasks=reading), stopped(end)))
    assert found.problem is None
    assert found.warnings == ("since the loop last read it, it lost 1 open task: vanished without being ticked",)


def test_lines_that_look_like_tasks_and_are_none_are_warned_of() -> None:
    assert len(seen("- [ ] a\n- [~] b\n").warnings) == 1


def test_the_counts_are_those_that_the_loop_itself_reads() -> None:
    state = after_all(run_started(), settled(id_of("second"), TaskStatus.ASIDE), settled("1-db", TaskStatus.DONE))
    for found, reading in [
        (standings(TODO, LISTED, state), of_checklist(TODO, LISTED, state, None)),
        (standings(FILES, FOLDER, state), of_folder(FILES, state.settled)),
    ]:
        assert (found.counts["open"], found.counts["done"]) == (reading.open, reading.done)
        assert [item.id for item in found.items if item.stand is Stand.NEXT] == [reading.next_id]


# -- checkpoints that are moved, and equal ones ------------------------------------------------------------------------

PLAN = "- [ ] A\n\nHARD STOP: look\n\n- [ ] B\n- [ ] C\n"


def then(now: str, before: str = PLAN, *facts: AnyFact) -> str | None:
    """What is wrong with a plan that was another one before."""
    state = after_all(run_started(tasks=of_checklist(before, STOPPED, LoopState(), None)), *facts)
    return of_checklist(now, STOPPED, state, state.tasks).problem


MOVED = {
    "the mark below a task": "- [x] A\n\n- [ ] B\n\nHARD STOP: look\n\n- [ ] C\n",
    "the mark to the end": "- [x] A\n\n- [x] B\n- [ ] C\n\nHARD STOP: look\n",
    "a task above the mark": "- [ ] B\n- [x] A\n\nHARD STOP: look\n\n- [ ] C\n",
    "and given a note": "- [x] A\n- [x] B (done)\n\nHARD STOP: look\n\n- [ ] C\n",
}


@pytest.mark.parametrize("now", MOVED.values(), ids=MOVED)
def test_nothing_slips_past_a_checkpoint_that_nobody_has_approved(now: str) -> None:
    """X-22."""
    problem = then(now)
    assert problem
    assert "before a checkpoint that was not approved" in problem


def test_a_list_that_only_grows_or_is_ticked_passes_no_checkpoint_by() -> None:
    added = "- [x] A\n- [ ] A2\n\nHARD STOP: look\n\n- [ ] B2\n- [ ] C\n- [ ] B\n"
    assert then(added) is None
    moved = "- [x] A\n- [ ] B\n\nHARD STOP: look\n\n- [ ] C\n"
    approved = CheckpointApproved(mark=marks_of(PLAN)[0], text="look", by="ada")
    assert then(moved, PLAN, approved) is None, "it is anybody's once it is approved"


def test_the_second_of_two_checkpoints_cannot_be_moved_either() -> None:
    plan = "- [ ] A\n\nHARD STOP\n\n- [ ] B\n\nHARD STOP: release\n\n- [ ] C\n"
    moved = "- [ ] A\n\nHARD STOP\n\n- [ ] B\n- [ ] C\n\nHARD STOP: release\n"
    assert then(moved, plan)
    swapped = "- [ ] A\n\nHARD STOP: release\n\n- [ ] C\n\nHARD STOP\n\n- [ ] B\n"
    assert then(swapped, plan), "C stood behind both of them"


TWINS = "- [x] A\n\nHARD STOP\n\n- [x] B\n\nHARD STOP\n\n- [ ] C\n"


def marks_of(text: str, state: LoopState | None = None) -> tuple[str, ...]:
    return of_checklist(text, STOPPED, state or LoopState(), None).marks


@pytest.mark.parametrize("end", [None, End.CHECKPOINT])
def test_an_approval_does_not_slide_to_another_checkpoint_with_the_same_words(end: End | None) -> None:
    first, second = marks_of(TWINS)
    reading = of_checklist(TWINS, STOPPED, LoopState(), None)
    facts = [CheckpointApproved(mark=first, text="HARD STOP", by="ada"), *([stopped(end)] if end else [])]
    state = after_all(run_started(tasks=reading), *facts)
    cleared = "- [x] B\n\nHARD STOP\n\n- [ ] C\n"
    assert marks_of(cleared, state) == (second,)
    assert words(standings(cleared, STOPPED, state)) == ["1 done B", "- reached HARD STOP", "2 next C"]
    more = cleared + "\nHARD STOP\n"
    later = after_all(run_started(tasks=of_checklist(cleared, STOPPED, state, None)), *facts)
    assert marks_of(more, later)[0] == second
    assert first not in marks_of(more, later)


def test_an_approval_stays_with_its_checkpoint_while_the_list_is_missing() -> None:
    """X-22: gone, blocked, put back; which marks there were is still known."""
    first, second = marks_of(TWINS)
    reading = of_checklist(TWINS, STOPPED, LoopState(), None)
    approved = CheckpointApproved(mark=first, text="HARD STOP", by="ada")
    cleared = "- [x] B\n\nHARD STOP\n\n- [ ] C\n"
    files: dict[str, str] = {}
    listed = WorkList(STOPPED, Folder(files))
    state = after_all(run_started(tasks=reading), approved, stopped(End.CHECKPOINT))
    gone = listed.read(state, None)
    assert gone
    state = after_all(run_started(tasks=reading), approved, stopped(End.CHECKPOINT), run_started(tasks=gone))
    files["TODO.md"] = cleared
    back = listed.read(after_all(run_started(tasks=gone), approved, stopped(End.BLOCKED)), None)
    assert back
    assert back.marks == (second,)


class Folder:
    """A workspace with these files in it."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def read_text(self, path: str, errors: str = "strict") -> str | None:  # noqa: ARG002 - it is text already
        return self._files.get(path)

    def stamp(self, path: str) -> Hashable:
        return tuple(sorted((name, text) for name, text in self._files.items() if name.startswith(path)))

    def read_folder(self, path: str) -> dict[str, str] | None:
        found = {name.removeprefix(f"{path}/"): text for name, text in self._files.items() if name.startswith(path)}
        return found or None


# -- what comes into a list while a round runs -------------------------------------------------------------------------

ADDED = TODO + "- [ ] fourth\n"
SEEN: dict[str, tuple[list[tuple[float, str]], list[tuple[float, str]]]] = {
    "an older copy 0.2 s later": ([(0.0, ADDED), (0.2, TODO)], [(0.2, "fourth")]),
    "one with a tick and a note": (
        [(0.0, ADDED), (0.2, TODO.replace("[ ] second", "[x] second (a1)"))],
        [(0.2, "fourth")],
    ),
    "a sub-task that is reworded": (
        [(0.0, ADDED), (0.5, ADDED.replace("fourth", "the fourth")), (0.9, TODO)],
        [(0.9, "the fourth")],
    ),
    "one that is reworded and stays": (
        [(0.0, ADDED), (0.5, ADDED.replace("fourth", "4th")), (1.6, "")],
        [(1.6, "4th")],
    ),
    "one that is replaced after a second": ([(0.0, ADDED), (1.1, ADDED.replace("fourth", "4th"))], [(1.1, "fourth")]),
    "one that stands": ([(0.0, ADDED), (0.9, ADDED), (1.0, ADDED), (9.0, ADDED)], [(1.0, "fourth")]),
    "a list that is empty for a moment": ([(0.0, ADDED), (0.1, ""), (0.2, ADDED), (1.0, ADDED)], [(1.0, "fourth")]),
    "two, and an older copy after the first": (
        [(0.0, ADDED), (0.5, ADDED + "- [ ] fifth\n"), (0.6, ADDED)],
        [(0.6, "fifth")],
    ),
}


@pytest.mark.parametrize("what", SEEN)
def test_a_line_is_a_persons_if_it_stood_for_a_second_or_an_older_copy_took_it_out(what: str) -> None:
    versions, wanted = SEEN[what]
    files = {"TODO.md": TODO}
    listed = WorkList(LISTED, Folder(files))
    listed.read(LoopState(), None)
    found = []
    for at, files["TODO.md"] in versions:
        found += [(at, line.text.removeprefix("- [ ] ")) for line in listed.appeared(at)]
    assert found == wanted


def test_an_older_copy_of_one_file_of_a_folder_is_one_whatever_happens_in_the_others() -> None:
    files = {f"tasks/{name}": text for name, text in FILES.items()}
    listed = WorkList(FOLDER, Folder(files))
    listed.read(LoopState(), None)
    files["tasks/1-db.md"] += "use sqlite\n"
    assert listed.appeared(0.0) == ()
    files |= {"tasks/1-db.md": FILES["1-db.md"], "tasks/3-docs.md": "# Docs\nhalf of it is there\n"}
    assert [(line.file, line.text) for line in listed.appeared(0.2)] == [("1-db.md", "use sqlite")]


# -- what a person skipped stays skipped -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [TaskStatus.SKIPPED, TaskStatus.ASIDE])
def test_a_task_that_got_a_note_while_the_loop_stood_still_stands_as_it_stood(status: TaskStatus) -> None:
    facts: list[AnyFact] = [settled(id_of("second"), status), stopped(End.PAUSED)]
    noted = TODO.replace("second", "second (not wanted)")
    assert words(seen(noted, *facts))[1:] == [f"2 {status} second (not wanted)", "3 next third"]


def test_equal_boxes_are_doubted_one_by_one() -> None:
    second = ("Test it (2)",)
    state = after_all(run_started(tasks=None), a_round(1, closed=second, doubted=second))
    found = standings("- [x] Test it\n- [x] Test it\n", LISTED, state)
    assert words(found) == ["1 done Test it", "2 doubted Test it"]


# -- folders: what was claimed, and what was rewritten -----------------------------------------------------------------


def test_a_task_that_nothing_was_changed_for_is_done_and_doubted() -> None:
    done = TaskSettled(task="1-db", text="Database", status=TaskStatus.DONE, by="task-done", doubted=True)
    found = standings(FILES, FOLDER, after_all(run_started(), done))
    assert words(found)[:2] == ["1 doubted Database", "2 next API"]
    again = settled("1-db", TaskStatus.OPEN)
    assert words(standings(FILES, FOLDER, after_all(run_started(), done, again)))[0] == "1 next Database"


def test_an_oddly_named_file_is_a_task_with_a_text() -> None:
    files = {"tasks/ 1-db.md": "# Database\nuse sqlite", "tasks/2-API.MD": "# API\nuse http"}
    listed = WorkList(FOLDER, Folder(files))
    reading = listed.read(after_all(run_started()), None)
    assert reading
    assert reading.open_ids == ("1-db", "2-API")
    assert [listed.text_of(id_).splitlines()[-1] for id_ in reading.open_ids] == ["use sqlite", "use http"]
    files["tasks/ 1-db.md"] = "# Database\nanything"
    changed = WorkList(FOLDER, Folder(files)).read(after_all(run_started()), reading)
    assert rewritten(reading, changed, None) == ("1-db",)


def test_a_text_that_another_round_changed_is_known() -> None:
    before = of_folder(FILES, Settled())
    now = of_folder({**FILES, "3-docs.md": "# nothing to do\n", "1-db.md": "# Database\nnotes\n"}, Settled(), before)
    assert rewritten(before, now, "1-db") == ("3-docs",)
    assert rewritten(before, of_folder(FILES, Settled(), before), None) == ()
    assert rewritten(None, now, None) == ()


def test_a_settled_task_of_a_folder_whose_file_is_gone_is_named() -> None:
    settled = Settled(done=("1-db", "0-old"), aside=("9-gone",))
    assert of_folder(FILES, settled).absent == ("0-old", "9-gone")
