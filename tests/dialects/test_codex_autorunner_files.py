"""State, lock and log of codex-autorunner, fact by fact."""

from bydawn.core.agent import CommandEnded, Complaint, Finished, Message
from bydawn.core.facts import AnyFact, LoopStopped, RoundsBefore, WaitStarted
from bydawn.core.history import History
from bydawn.core.loop import SpokenDialect
from bydawn.core.outcome import Outcome
from bydawn.core.replay import after
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import End
from bydawn.dialects.codex_autorunner import DIALECT
from bydawn.dialects.codex_autorunner.config import LOCK, STATE
from bydawn.dialects.codex_autorunner.files import INTERRUPTED, exit_code, heard
from bydawn.dialects.seam import Log, Whole
from core.facts_made import NOON, a_loop, a_round, decided, ended, numbered, run_started, started, stopped, todo
from dialects.stage import told

WORDS = {"last_exit_code": "0", "last_run_started_at": "2025-01-01T12:34:56Z"}
LOOP = a_loop(tasks="TODO.md", dialect=SpokenDialect(name="codex-autorunner", numbers_cut=True, words=WORDS))
SEVEN = RoundsBefore(rounds=7)
WAIT = WaitStarted(seconds=30, reason="high demand", decided=decided(Rule.BACK_OFF))


def log_of(*facts: AnyFact) -> list[str]:
    """The lines of the log, with short stamps."""
    views = told(DIALECT, LOOP, numbered(facts))
    lines = [line for view in views if isinstance(view, Log) and isinstance(view.more, tuple) for line in view.more]
    return [line.replace("2026-01-06T12:00:", "") for line in lines]


def state_of(*facts: AnyFact) -> str:
    """The last text of the state file."""
    texts = [
        view.text for view in told(DIALECT, LOOP, numbered(facts)) if isinstance(view, Whole) and view.path == STATE
    ]
    return str(texts[-1])


def history_of(*facts: AnyFact) -> tuple[LoopState, History]:
    state, history = LoopState(created_at=NOON), History()
    for record in numbered(facts):
        state = after(state, record)
        history.saw(record.fact, state)
    return state, history


# -- the log -----------------------------------------------------------------------------------------------------------


def test_a_run_stands_between_its_markers_and_its_number_goes_on() -> None:
    """A-023, A-038"""
    lines = log_of(SEVEN, run_started(), *a_round(8, exit_code=0), *a_round(9, exit_code=0))
    assert [line for line in lines if line.startswith("===")] == [
        "=== run 8 start ===",
        "=== run 8 end (code 0) ===",
        "=== run 9 start ===",
        "=== run 9 end (code 0) ===",
    ]
    assert lines[1].endswith("] run=8 Codex CLI started...")


def test_a_failure_says_why_and_ends_the_run_with_its_code() -> None:
    """A-043"""
    lines = log_of(run_started(), *a_round(1, Outcome.FAILED, detail="out of luck\nsays it", exit_code=3))
    assert lines[-2].endswith("] run=1 Codex CLI ended: out of luck says it")
    assert lines[-1] == "=== run 1 end (code 3) ==="


def test_a_run_that_went_well_has_code_0_even_if_it_had_to_be_ended() -> None:
    """FAULTS 44: it prints its result and never exits."""
    assert log_of(run_started(), *a_round(1, signal=15))[-1] == "=== run 1 end (code 0) ==="


def test_a_signal_is_a_negative_code() -> None:
    assert log_of(run_started(), *a_round(1, Outcome.CRASHED, signal=9))[-1] == "=== run 1 end (code -9) ==="


def test_a_hiccup_is_waited_out_within_the_run() -> None:
    """X-06"""
    hiccup = a_round(1, Outcome.TRANSIENT, detail="503", exit_code=1)
    lines = log_of(run_started(), *hiccup, WAIT, *a_round(2, exit_code=0))
    assert [line.partition("] ")[2] or line for line in lines] == [
        "=== run 1 start ===",
        "run=1 Codex CLI started...",
        "run=1 Codex CLI had trouble: 503",
        "run=1 waiting for 30 s: high demand",
        "run=1 Codex CLI started again...",
        "=== run 1 end (code 0) ===",
    ]


def test_a_pause_between_two_runs_is_not_told() -> None:
    assert len(log_of(run_started(), *a_round(1, exit_code=0), WAIT)) == 3


def test_a_loop_that_ends_while_a_hiccup_is_waited_out_closes_its_run() -> None:
    facts = [run_started(), *a_round(1, Outcome.TRANSIENT, exit_code=1), WAIT, stopped(End.PAUSED)]
    assert log_of(*facts)[-1] == "=== run 1 end (code 1) ==="
    assert log_of(*facts, run_started(), started(2))[-2] == "=== run 2 start ==="


def test_what_is_heard_has_the_number_of_its_run() -> None:
    """A-037"""
    state, history = history_of(SEVEN, run_started(), started(8))
    ran = CommandEnded(command="make", failed=True, exit_code=2, output="no rule")
    for event, texts in (
        (Message("one\ntwo"), ["one", "two"]),
        (Complaint("oops"), ["oops"]),
        (ran, ["✗ make → exit 2: no rule"]),
        (Finished(), []),
    ):
        views = [*heard(event, LOOP, state, history, NOON)]
        lines = [line for view in views if isinstance(view, Log) and isinstance(view.more, tuple) for line in view.more]
        assert lines == [f"[2026-01-06T12:00:00Z] run=8 stdout: {text}" for text in texts]


def test_a_run_that_was_cut_short_has_its_end_before_the_next_begins() -> None:
    """A-023: a killed worker's last round is settled first of all when the loop goes on."""
    cut: list[AnyFact] = [SEVEN, run_started(), started(8), ended(8, Outcome.INTERRUPTED)]
    lines = log_of(*cut, run_started(), started(9))
    assert [line for line in lines if line.startswith("===")] == [
        "=== run 8 start ===",
        f"=== run 8 end (code {INTERRUPTED}) ===",
        "=== run 9 start ===",
    ]


def test_a_run_that_was_killed_while_it_waited_for_its_next_try_is_interrupted() -> None:
    """The code of the try that had trouble is not that of the run."""
    waits = [SEVEN, run_started(), *a_round(8, Outcome.TRANSIENT, exit_code=1), WAIT]
    killed = log_of(*waits, run_started(), run_started(), started(9))
    assert killed[-3:-1] == [f"=== run 8 end (code {INTERRUPTED}) ===", "=== run 9 start ==="]
    assert log_of(*waits, stopped(End.PAUSED), run_started(), started(9)).count(killed[-3]) == 0


# -- state and lock ----------------------------------------------------------------------------------------------------


def test_the_state_is_that_of_the_document_with_ours_behind() -> None:
    """A-021"""
    facts = [SEVEN, run_started(tasks=todo(1)), *a_round(8, exit_code=0, tasks=todo(0, 1)), stopped(End.UNVERIFIED)]
    assert state_of(*facts) == (
        '{\n  "last_run_id": 8,\n  "status": "idle",\n  "last_exit_code": 0,\n'
        '  "last_run_started_at": "2026-01-06T12:00:03Z",\n  "last_run_finished_at": "2026-01-06T12:00:04Z",\n'
        '  "reason": "nothing is left open",\n  "outstanding": 0,\n  "loop": "night"\n}\n'
    )


def test_until_a_loop_has_a_run_of_its_own_the_last_one_is_told() -> None:
    text = state_of(SEVEN, run_started(tasks=todo(0, 1)), stopped(End.UNVERIFIED))
    for line in ('"last_run_id": 7', '"last_exit_code": 0', '"last_run_started_at": "2025-01-01T12:34:56Z"'):
        assert line in text


def test_the_status_is_running_only_while_a_run_is_on() -> None:
    """A-021, A-039"""
    words = ("idle", "running", "idle", "running", "running", "running", "idle")
    facts = [run_started(), *a_round(1, exit_code=0), *a_round(2, Outcome.TRANSIENT), started(3), ended(3, exit_code=0)]
    for count, word in enumerate(words, 1):
        assert f'"status": "{word}"' in state_of(*facts[:count]), count


def test_where_a_person_must_look_the_status_is_error() -> None:
    """A-043"""
    good, bad = [run_started(), *a_round(1, exit_code=0)], [run_started(), *a_round(1, Outcome.FAILED, exit_code=1)]
    expected = {
        End.BLOCKED: ("error", 3),
        End.FAILED: ("error", 7),
        End.STOPPED: ("error", 130),
        End.PAUSED: ("idle", 130),
        End.LIMIT: ("idle", 4),
        End.COMPLETE: ("idle", 0),
    }
    for end, (word, code) in expected.items():
        assert f'"status": "{word}"' in state_of(*good, stopped(end))
        assert exit_code(stopped(end)) == code
    assert '"status": "error"' in state_of(*bad), "even before the loop has stopped"
    assert '"status": "idle"' in state_of(*bad, stopped(End.FAILED), run_started(), stopped(End.UNVERIFIED))
    for end in (End.PAUSED, End.UNVERIFIED):  # Ctrl-C twice; a failed run that ticked the last box
        assert '"status": "error"' in state_of(*bad, stopped(end))


def test_the_lock_has_the_process_and_goes_at_the_end() -> None:
    """A-031"""
    views = [*told(DIALECT, LOOP, numbered([run_started(), stopped(End.LIMIT)]))]
    assert [view.text for view in views if isinstance(view, Whole) and view.path == LOCK] == ["4711\n", None]
    assert views[-1] == Whole(LOCK, None)
    assert STATE in {view.path for view in views}


def test_no_note_to_the_agent_is_offered_for_what_only_a_person_can_fix() -> None:
    end = LoopStopped(end=End.BLOCKED, reason="git's hook has changed", decided=decided(Rule.OBSTRUCTED))
    steps = [step.command for step in DIALECT.next_steps(a_loop(), LoopState(), end)]
    assert not any("tell" in command for command in steps)
    assert "codex-autorunner run" in steps[-1]
