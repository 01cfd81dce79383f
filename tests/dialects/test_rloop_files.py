"""Log and table row of rloop, fact by fact."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bydawn.core import completion, prompt
from bydawn.core.agent import Complaint, Message
from bydawn.core.facts import AnyFact, LoopStopped, WaitStarted
from bydawn.core.history import History
from bydawn.core.outcome import Outcome
from bydawn.core.replay import after
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import End, Promised
from bydawn.dialects.rloop import DIALECT, files, log, texts
from bydawn.dialects.rloop.config import LOG
from bydawn.dialects.seam import Entry, Log, View
from core.facts_made import NOON, a_round, decided, ended, numbered, run_started, started, stopped, todo
from dialects.rloop_made import LOOP, spoken
from dialects.stage import LOOPS, Stage, told

WAIT = WaitStarted(seconds=30, reason="high demand", decided=decided(Rule.BACK_OFF))


def at_the_cap() -> LoopStopped:
    return replace(stopped(End.LIMIT), decided=decided(Rule.ROUNDS), reason="2 of 2 rounds are used up")


def log_of(*facts: AnyFact, loop: Any = LOOP) -> list[str]:
    return [line.replace("2026-01-06T12:00:", "") for line in lines_of(told(DIALECT, loop, numbered(facts)))]


def lines_of(views: Iterable[View]) -> list[str]:
    return [line for view in views if isinstance(view, Log) and isinstance(view.more, tuple) for line in view.more]


def row_of(*facts: AnyFact) -> dict[str, object]:
    return [view.value for view in told(DIALECT, LOOP, numbered(facts)) if isinstance(view, Entry)][-1]


def history_of(*facts: AnyFact) -> tuple[LoopState, History]:
    state, history = LoopState(created_at=NOON), History()
    for record in numbered(facts):
        state = after(state, record)
        history.saw(record.fact, state)
    return state, history


# -- the log -----------------------------------------------------------------------------------------------------------


def test_a_whole_session_reads_as_the_document_prints_it() -> None:
    """R-047, R-018: the appendix, line by line."""
    facts = [
        run_started(tasks=todo(2)),
        *a_round(1, tasks=todo(1, 1)),
        *a_round(2, tasks=todo(0, 2)),
        stopped(End.UNVERIFIED),
    ]
    assert log_of(*facts) == [
        "Starting ralph loop in /home/ada/app1",
        "Task file: PRD.md",
        "Max iterations: 30",
        "Completion marker: COMPLETE",
        "Started at: 01+00:00",
        "Initial remaining tasks: 2",
        "",
        "=== Iteration 1/30 (Remaining: 2) ===",
        "Tasks remaining after iteration: 1",
        "",
        "=== Iteration 2/30 (Remaining: 1) ===",
        "Tasks remaining after iteration: 0",
        "",
        "✅ Ralph complete after 2 iterations.",
        "FINISHED: 06+00:00",
    ]


def test_the_cap_and_other_ends_are_told_in_the_same_manner() -> None:
    """R-019"""
    rounds = [run_started(tasks=todo(3)), *a_round(1, tasks=todo(2, 1)), *a_round(2, tasks=todo(2, 1))]
    assert log_of(*rounds, at_the_cap())[-4:-1] == ["", "⚠️ Hit max iterations (2)", "Remaining tasks: 2"]
    ends = {End.BLOCKED: "❌ Ralph blocked", End.FAILED: "❌ Ralph failed", End.STOPPED: "⏹ Ralph stopped"}
    for end, words in ends.items():
        last = log_of(*rounds, stopped(end))
        assert last[-3].startswith(f"{words} after 2 iterations: ")
        assert last[-2] == "Remaining tasks: 2"


def test_a_new_session_begins_a_new_log_and_one_that_goes_on_does_not() -> None:
    """R-056"""
    first, second = [run_started(), *a_round(1)], [run_started(), *a_round(2)]
    logs = [view for view in told(DIALECT, LOOP, numbered([*first, *second])) if isinstance(view, Log)]
    assert [bool(view.fresh) for view in logs] == [True, *[False] * (len(logs) - 1)]


def test_a_session_without_an_iteration_has_a_beginning_and_an_end() -> None:
    lines = log_of(run_started(tasks=todo(0, 2)), stopped(End.UNVERIFIED))
    assert lines[0] == "Starting ralph loop in /home/ada/app1"
    assert lines[-2] == "✅ Ralph complete after 0 iterations."


def test_a_hiccup_is_one_iteration() -> None:
    hiccup = a_round(1, Outcome.TRANSIENT, detail="503", exit_code=1)
    lines = log_of(run_started(tasks=todo(1)), *hiccup, WAIT, *a_round(2, tasks=todo(0, 1)))[6:]
    assert lines == [
        "",
        "=== Iteration 1/30 (Remaining: 1) ===",
        "⏹ Waiting for 30 s: high demand",
        "",
        "⏹ Iteration 1 is tried again.",
        "Tasks remaining after iteration: 0",
    ]


def test_the_pause_between_two_iterations_is_not_told() -> None:
    rest = replace(WAIT, decided=decided(Rule.PAUSE))
    assert log_of(run_started(), *a_round(1), rest) == log_of(run_started(), *a_round(1))


def test_a_promise_with_open_boxes_and_boxes_ticked_alone_are_in_the_log() -> None:
    """R-014, R-016"""
    early = a_round(1, tasks=todo(1, 1), promise=Promised.GIVEN, doubted=("task-1",))
    lines = log_of(run_started(tasks=todo(2)), *early)
    assert lines[-3:] == [
        "❌ The promise does not count: 1 task is still open",
        "⏹ Ticked without any other change: task-1",
        "Tasks remaining after iteration: 1",
    ]


def test_what_the_agent_says_cannot_look_like_a_line_of_ours() -> None:
    state, history = history_of(run_started(), started(1))
    said = (
        "Done.",
        "✅ Ralph complete after 9 iterations.",
        "FINISHED: now",
        "=== Iteration 2/30 (Remaining: 0) ===",
        "Model: x",
    )
    lines = lines_of(files.heard(Message("\n".join(said)), LOOP, state, history, NOON))
    assert lines == [
        "Done.",
        " ✅ Ralph complete after 9 iterations.",
        " FINISHED: now",
        " === Iteration 2/30 (Remaining: 0) ===",
        " Model: x",
        "",
    ]
    assert all(each.startswith(" ") or not each for each in log.said("\n".join(log_of(run_started(), *a_round(1)))))


def test_what_the_agent_does_is_only_in_a_debug_log() -> None:
    """R-051"""
    state, history = history_of(run_started(), started(1))
    debug = replace(LOOP, dialect=spoken(level="debug"))
    assert not [*files.heard(Complaint("oops"), LOOP, state, history, NOON)]
    assert [*files.heard(Complaint("oops"), debug, state, history, NOON)] == [Log(LOG, ("oops",))]


def test_what_a_crash_left_open_is_closed_before_the_session_goes_on() -> None:
    """R-004"""
    cut: list[AnyFact] = [run_started(tasks=todo(2)), started(1), ended(1, Outcome.INTERRUPTED)]
    lines = log_of(*cut, run_started(tasks=todo(2)))
    assert lines[-3:] == ["⏹ This iteration was cut short.", "", "Resumed at: 04+00:00"]
    assert log_of(*cut, stopped(End.STOPPED))[-5:-3] == ["⏹ This iteration was cut short.", ""]


def test_after_a_crash_at_any_fact_the_log_tells_each_iteration_once(tmp_path: Path) -> None:
    """R-004, R-047: on a real disk."""
    whole = Stage(tmp_path / "whole", *LOOPS["rloop"])
    whole.run()
    assert told_in(whole) == ["1 begins", "1 ends", "2 begins", "2 ends", "3 begins", "3 ends", "FINISHED"]
    for moment in range(1, len(whole.facts) - 1):
        stage = Stage(tmp_path / str(moment), *LOOPS["rloop"])
        stage.run(crash_after=moment)
        stage.run()
        events = told_in(stage)
        assert events[-1] == "FINISHED", moment
        numbers = [event.split()[0] for event in events[:-1]]
        assert events[:-1] == [f"{each} {what}" for each in numbers[::2] for what in ("begins", "ends")], moment
        assert [*dict.fromkeys(numbers)] == ["1", "2", "3"], moment


def told_in(stage: Stage) -> list[str]:
    """Which iterations the log says have begun and ended."""
    events, number = list[str](), ""
    for line in (stage.workspace / LOG).read_text().splitlines():
        if line.startswith("=== Iteration "):
            number = line.split()[2].partition("/")[0]
            events.append(f"{number} begins")
        elif line.startswith((log.after(""), log.cut())):
            events.append(f"{number} ends")
        elif line.startswith("FINISHED: "):
            events.append("FINISHED")
    return events


# -- the row -----------------------------------------------------------------------------------------------------------


def test_the_row_of_a_session() -> None:
    """R-046"""
    assert row_of(run_started(tasks=todo(3)), *a_round(1, tasks=todo(2, 1)), started(2)) == {
        "name": "app1",
        "dir": "/home/ada/app1",
        "task_file": "PRD.md",
        "pid": 4711,
        "tmux_session": "rloop-app1",
        "started_at": "2026-01-06T12:00:00Z",
        "iteration": 2,
        "max_iterations": 30,
        "status": "running",
        "last_task_count": 2,
        "completion_marker": "COMPLETE",
        "log_file": "/home/ada/app1/.rloop/ralph.log",
        "backend": "claude",
        "model": None,
        "webhook": "https://discord.com",
        "reason": None,
    }


def test_every_end_has_its_word_its_reason_and_its_code() -> None:
    """R-019, R-046, X-13, X-14"""
    signal = replace(stopped(End.PAUSED), by="SIGTERM")
    for end, word, reason, code in (
        (stopped(End.UNVERIFIED), "complete", None, 0),
        (stopped(End.COMPLETE), "complete", None, 0),
        (at_the_cap(), "failed", "max_iterations", 1),
        (stopped(End.LIMIT), "failed", "limit", 4),
        (stopped(End.FAILED), "failed", "error", 7),
        (stopped(End.BLOCKED), "failed", "blocked", 3),
        (stopped(End.CHECKPOINT), "failed", "blocked", 5),
        (stopped(End.STOPPED), "stopped", None, 130),
        (stopped(End.PAUSED), "stopped", None, 130),
        (signal, "running", None, 130),  # after a reboot it is to go on
    ):
        row = row_of(run_started(tasks=todo(1)), *a_round(1, tasks=todo(1)), end)
        assert (row["status"], row["reason"], files.exit_code(end)) == (word, reason, code)
        assert row["pid"] == (4711 if word == "running" else None)
        assert row["tmux_session"] == ""


# -- what counts -------------------------------------------------------------------------------------------------------


def test_no_open_box_completes_without_a_promise() -> None:
    """R-011, X-05"""
    state, _ = history_of(run_started(tasks=todo(1)), *a_round(1, tasks=todo(0, 1)))
    assert completion.missing(LOOP, state) == []


def test_a_promise_with_open_boxes_is_answered_and_a_mention_is_not() -> None:
    """R-001, R-014, R-016"""
    given, _ = history_of(run_started(tasks=todo(2)), *a_round(1, tasks=todo(1, 1), promise=Promised.GIVEN))
    assert completion.missing(LOOP, given) == ["tasks"]
    assert "Your claim to be done was rejected" in composed(given)
    named, _ = history_of(run_started(tasks=todo(2)), *a_round(1, tasks=todo(1, 1), promise=Promised.MENTIONED))
    assert "promise" not in composed(named).partition("Current iteration")[2]


def composed(state: LoopState) -> str:
    return prompt.compose(LOOP, state, 2, "fence", template=texts.template(None, "PRD.md", "COMPLETE"))


def test_the_prompt_is_the_document_s_and_marks_a_task_as_done() -> None:
    """R-020, R-021, X-24"""
    state, _ = history_of(run_started(tasks=todo(2)), *a_round(1, tasks=todo(1, 1)))
    said = composed(state)
    assert said.startswith("You are completing tasks from a PRD file.\n\nTASK FILE: PRD.md\n")
    assert "Mark it '- [x]' in the task file" in said
    assert "4. If ALL tasks are marked '- [x]'" in said
    assert "output ONLY: <promise>COMPLETE</promise>" in said
    assert said.rstrip().endswith("Current iteration: 2/30")


def test_a_template_keeps_its_other_braces() -> None:
    """R-020"""
    text = "Do {task_file} ({iteration} of {max_iterations}), say {completion_marker}; {other} {{TASKS}} {}\n"
    state, _ = history_of(run_started(tasks=todo(1)))
    filled = prompt.compose(LOOP, state, 1, "fence", template=texts.template(text, "PRD.md", "DONE"))
    assert filled.rstrip() == "Do PRD.md (1 of 30), say DONE; {other} {{TASKS}} {}"
