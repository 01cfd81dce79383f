"""A session of rloop as scripts and web pages read it."""

from pathlib import Path

from msgspec.structs import replace

from bydawn.core.facts import WaitStarted
from bydawn.core.rules import Rule
from bydawn.core.values import End, Usage
from bydawn.operations.dialects.rloop.sessions import Session, document, trouble
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing
from core.facts_made import BORN, NOON, a_round, after_all, decided, run_started, stopped, todo
from dialects.rloop_made import LOOP


def a_session(*, alive: bool) -> Session:
    state = after_all(BORN, run_started(tasks=todo(2)), *a_round(1, tasks=todo(1, 1), doubted=("task-1",)))
    state = replace(state, usage=Usage(tokens_in=10, tokens_out=5))
    standing = Standing(folder=LoopFolder(Path("/nowhere")), loop=LOOP, state=state, alive=alive)
    return Session(name="app1", fields={"status": "running", "iteration": 1}, standing=standing, remaining=1)


def test_boxes_that_were_ticked_alone_and_what_was_used_are_listed() -> None:
    """R-011, R-Q3"""
    shown = document(a_session(alive=True))
    assert (shown["status"], shown["is_alive"], shown["current_remaining"]) == ("running", True, 1)
    assert shown["ticked_only"] == ("task-1",)
    assert shown["usage"] == Usage(tokens_in=10, tokens_out=5)


def test_one_whose_process_is_gone_has_crashed_and_says_what_helps() -> None:
    """R-043"""
    gone = a_session(alive=False)
    assert (document(gone)["status"], document(gone)["is_alive"]) == ("crashed", False)
    assert "`rloop resume app1` goes on" in trouble(gone)
    assert trouble(a_session(alive=True)) == ""


def test_one_that_waits_for_a_limit_says_so_and_the_pause_is_not_told() -> None:
    def waiting(rule: Rule) -> Session:
        fact = WaitStarted(seconds=60, until=NOON, reason="session limit", decided=decided(rule))
        session = a_session(alive=True)
        assert session.standing
        standing = replace(session.standing, state=replace(session.standing.state, waiting=fact))
        return replace(session, standing=standing)

    assert trouble(waiting(Rule.AGENT_LIMIT)).endswith(": session limit")
    assert trouble(waiting(Rule.PAUSE)) == ""


def test_one_that_only_sends_its_last_message_is_neither_running_nor_gone() -> None:
    session = a_session(alive=True)
    assert session.standing
    ended = replace(session.standing, state=replace(session.standing.state, stopped=stopped(End.LIMIT)))
    ending = replace(session, standing=ended, fields={"status": "failed"})
    assert (ending.is_ending, ending.is_alive, session.is_ending) == (True, False, False)
