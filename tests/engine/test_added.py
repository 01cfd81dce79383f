"""What comes into a task list while a round runs is not lost when the agent writes its older copy of it."""

from collections.abc import Callable

import pytest

from bydawn.core.facts import LinesAdded, RoundStarted, TamperingAccepted
from bydawn.core.loop import Checkpoint
from bydawn.core.requests import AskAdd, AskSettle
from bydawn.core.values import End, Line, TaskStatus
from engine.fakes import Files
from engine.night import TODO, Night, Play, todo

ONE: Files = {TODO: todo("one")}
STALE = todo("x one")  # what the agent makes of the list that it read at the start of its round


def edits(change: Callable[[str], str]) -> Callable[["Night"], None]:
    """A person edits the list by hand."""
    return lambda night: night.workspace.edit({TODO: change(night.workspace.files[TODO] or "")})


def asks(night: Night) -> None:
    """`tasks add`: on record first. The file is not even written here, as if it was overwritten at once."""
    night.ask(AskAdd(id="a-1", run="", by="ada", line=Line(text="- [ ] two")))


ADDED: dict[str, tuple[Callable[["Night"], None], str]] = {
    "a task": (edits(lambda text: text + "- [ ] two\n"), "- [ ] two"),
    "a text that was changed": (edits(lambda text: text.replace("one", "one and two")), "- [ ] one and two"),
    "a checkpoint": (edits(lambda text: text + "\nHARD STOP: look\n"), "HARD STOP: look"),
    "a task that was asked for": (asks, "- [ ] two"),
}


def a_night(add: Callable[[Night], None], *plays: Play) -> Night:
    """In its first round a person adds something, and then the agent writes what it had read before."""
    first = Play(writes={"1.py": ""}, meanwhile=lambda: add(night), writes_last={TODO: STALE})
    night = Night([first, *plays], files=dict(ONE), tasks=TODO, checkpoint=Checkpoint())
    return night


def writes(text: str, name: str = "more.py") -> Play:
    return Play(writes={TODO: text, name: text})


@pytest.mark.parametrize("what", ADDED)
def test_what_a_round_overwrote_is_asked_back_and_holds_up_the_end_until_it_is_there(what: str) -> None:
    add, line = ADDED[what]
    back = STALE.replace("[x] one", "[x] one and two") if "changed" in what else f"{STALE}\n{line}\n"
    night = a_night(add, writes(back), writes(back.replace("[ ]", "[x]")))
    stopped = night.run()
    assert f"## Lines missing from {TODO}" in night.prompt(2)
    assert line in night.prompt(2)
    assert stopped.end is (End.CHECKPOINT if "checkpoint" in what else End.UNVERIFIED)
    assert night.state.tasks is not None
    assert night.state.tasks.gone == ()
    assert all(
        f"## Lines missing from {TODO}" not in night.prompt(number) for number in range(3, night.agent.turns + 1)
    )


@pytest.mark.parametrize("what", ADDED)
def test_what_is_not_put_back_blocks_the_end_until_a_person_accepts_it(what: str) -> None:
    night = a_night(ADDED[what][0], Play(writes={"2.py": ""}), Play(writes={"3.py": ""}))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule, night.agent.turns) == (End.BLOCKED, "task-file", 2)
    assert stopped.reason == f"TODO.md lost a line that was added while a round ran: “{ADDED[what][1]}”"
    assert stopped.can_be_accepted
    assert night.run().decided.rule == "task-file", "to resume it is not to accept it"
    night.ledger.append(TamperingAccepted(paths=(TODO,), by="ada"))
    assert night.run().end is End.UNVERIFIED


def test_a_list_that_still_has_open_tasks_goes_on_and_asks_each_time() -> None:
    files: Files = {TODO: todo("one", "last")}
    plays = [writes(todo("x one", "x last")), Play(writes={"3.py": ""})]
    first = Play(writes={"1.py": ""}, meanwhile=lambda: asks(night), writes_last={TODO: todo("x one", "last")})
    night = Night([first, *plays], files=files, tasks=TODO)
    assert night.run().reason.startswith("TODO.md lost a line")
    assert [fact.task for fact in night.facts(RoundStarted)] == ["one", "last"]
    assert "- [ ] two" in night.prompt(2)


def test_what_an_agent_adds_and_ticks_itself_is_not_missed() -> None:
    plays = [
        Play(
            writes={TODO: todo("one", "a step"), "1.py": ""},
            writes_last={TODO: todo("x one", "x a step (done in a1b2)")},
        )
    ]
    night = Night(plays, files=dict(ONE), tasks=TODO)
    assert night.run().end is End.UNVERIFIED
    assert night.facts(LinesAdded)


def test_a_list_that_is_only_ticked_while_a_round_runs_leaves_no_fact() -> None:
    night = Night([Play(writes={TODO: STALE, "1.py": ""})], files=dict(ONE), tasks=TODO)
    assert night.run().end is End.UNVERIFIED
    assert night.facts(LinesAdded) == []


def test_what_was_added_survives_a_crash_in_the_same_round() -> None:
    night = a_night(ADDED["a task"][0], writes(STALE + todo("two")), writes(STALE + todo("x two")))
    night.clock.at(59.0, night.crash)
    night.run_until_crash()
    night.workspace.edit({TODO: STALE})  # by the agent, before it was ended
    assert night.run().end is End.UNVERIFIED
    assert "- [ ] two" in night.prompt(2)


def test_a_second_task_with_the_same_words_is_missed_too() -> None:
    night = a_night(edits(lambda text: text + "- [ ] one\n"), Play(writes={"2.py": ""}))
    assert night.run().reason.startswith("TODO.md lost a line")


@pytest.mark.parametrize(
    ("person", "line"),
    [
        ({"t/2.md": "# Two\n"}, "2.md: # Two"),
        ({"t/1.md": "# One\nwith tests\n"}, "1.md: with tests"),
    ],
    ids=["a new file", "an edit"],
)
def test_a_new_file_and_an_edit_in_a_task_folder_are_asked_back(person: Files, line: str) -> None:
    old: Files = {"t/1.md": "# One\n", "t/2.md": None}
    first = Play(
        says="STATUS: done\nSUMMARY: ok",
        writes={"1.py": ""},
        meanwhile=lambda: night.workspace.edit(person),
        writes_last=old,
    )
    night = Night([first, Play(writes={"2.py": ""})], files={"t/1.md": "# One\n"}, tasks="t", task_folder=True)
    stopped = night.run()
    assert line in night.prompt(2)
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "task-file")


def test_a_task_that_is_skipped_while_a_round_runs_stays_skipped() -> None:
    def skip() -> None:
        assert night.state.tasks
        task = night.state.tasks.open_ids[1]
        night.ask(AskSettle(id="s-1", run="", by="ada", task=task, text="two", status=TaskStatus.SKIPPED))

    first = Play(writes={"1.py": ""}, meanwhile=skip, writes_last={TODO: todo("x one", "two")})
    night = Night([first], files={TODO: todo("one", "two")}, tasks=TODO)
    assert night.run().end is End.UNVERIFIED
