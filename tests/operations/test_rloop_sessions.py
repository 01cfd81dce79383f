"""A session of rloop as scripts and web pages read it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from bydawn.cli.dialects.rloop import table_lines
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
        standing = replace(session.standing, state=replace(session.standing.state, waiting=fact))
        return replace(session, standing=standing)

    assert trouble(waiting(Rule.AGENT_LIMIT)).endswith(": session limit")
    assert trouble(waiting(Rule.PAUSE)) == ""


def test_one_that_only_sends_its_last_message_is_neither_running_nor_gone() -> None:
    session = a_session(alive=True)
    ended = replace(session.standing, state=replace(session.standing.state, stopped=stopped(End.LIMIT)))
    ending = replace(session, standing=ended, fields={"status": "failed"})
    assert (ending.is_ending, ending.is_alive, session.is_ending) == (True, False, False)


WIDE = """\
NAME  DIR              ITERATION  STATUS    REMAINING
app1  ~/projects/app1  5/30       running   12 tasks
app2  ~/projects/app2  3/30       complete  0 tasks
app3  /srv/app3        30/30      failed    1 task
old   /srv/old         ?/?        running   ?"""
NARROW = """\
NAME  ITERATION  STATUS    REMAINING
app1  5/30       running   12 tasks
  ~/projects/app1
app2  3/30       complete  0 tasks
  ~/projects/app2
app3  30/30      failed    1 task
  /srv/app3
old   ?/?        running   ?
  /srv/old"""


def test_the_table_at_120_and_at_48_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-040: as the document shows it; a narrow one has the folder below."""
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("NO_COLOR", "1")

    def row(name: str, folder: str, status: str, left: int | None, **numbers: int) -> Session:
        fields = {"dir": folder, "status": status, **numbers}
        return replace(a_session(alive=True), name=name, fields=fields, remaining=left)

    found = [
        row("app1", "/home/ada/projects/app1", "running", 12, iteration=5, max_iterations=30),
        row("app2", "/home/ada/projects/app2", "complete", 0, iteration=3, max_iterations=30),
        row("app3", "/srv/app3", "failed", 1, iteration=30, max_iterations=30),
        row("old", "/srv/old", "running", None),
    ]
    for columns, expected in (("120", WIDE), ("48", NARROW)):
        monkeypatch.setenv("COLUMNS", columns)
        assert "\n".join(table_lines(found)) == expected
