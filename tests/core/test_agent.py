"""One turn: what is asked for, and what its figures mean."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from bydawn.core.agent import (
    Activity,
    Begun,
    CommandEnded,
    CommandStarted,
    Denied,
    Ended,
    Event,
    Finished,
    Hopeless,
    LimitNotice,
    Listener,
    Message,
    Retry,
    Spent,
    readable,
    reset_of,
    turn_of,
    used_by,
    why_no_argument,
)
from bydawn.core.loop import Worktree
from bydawn.core.outcome import Exit, Outcome
from bydawn.core.state import Session
from bydawn.core.values import Commands, Usage
from core.facts_made import a_loop

NOON = datetime(2026, 1, 6, 12, tzinfo=UTC)
TOTAL = Usage(tokens_in=4000, tokens_cached=None, tokens_out=90)


def ended(usage: Usage | None = None, *, total: bool = False, until: datetime | None = None, reset: str = "") -> Ended:
    return Ended(outcome=Outcome.OK, session="s-1", usage=usage, usage_is_total=total, wait_until=until, reset=reset)


def session(name: str, usage: Usage | None) -> Session:
    return Session(id=name, agent="codex", usage=usage)


@pytest.mark.parametrize(
    ("total", "before", "tokens_in"),
    [
        (True, session("s-1", Usage(tokens_in=3000)), 1000),  # the same conversation: only what came since
        (True, session("s-0", Usage(tokens_in=3000)), 4000),  # another one
        (True, None, 4000),
        (True, session("s-1", None), 4000),  # it never said how much it had used
        (True, session("s-1", Usage(tokens_in=9000)), 0),  # less than before: never negative
        (False, session("s-1", Usage(tokens_in=3000)), 4000),  # this agent counts each turn by itself
    ],
)
def test_usage_is_that_of_the_round(total: bool, before: Session | None, tokens_in: int) -> None:
    found = used_by(ended(TOTAL, total=total), before).turn
    assert found is not None
    assert (found.tokens_in, found.tokens_cached) == (tokens_in, None)


def test_what_is_unknown_stays_unknown_and_is_never_nought() -> None:
    assert used_by(ended(None), session("s-1", TOTAL)).turn is None
    assert Usage(tokens_in=1).plus(Usage(tokens_in=2, cost_usd=0.5)) == Usage(tokens_in=3, cost_usd=0.5)
    assert Usage().plus(None) == Usage()


def test_a_reset_is_waited_for_a_little_longer_than_it_is_said() -> None:
    until = NOON + timedelta(hours=5)
    assert reset_of(ended(until=until), NOON, 0.0) == until
    assert reset_of(ended(until=until), NOON, 1.0) == until + timedelta(seconds=30)
    assert reset_of(ended(until=NOON + timedelta(seconds=10)), NOON, 1.0) == NOON + timedelta(seconds=11)


def test_a_reset_in_the_past_is_now_and_one_in_a_year_is_not_believed() -> None:
    assert reset_of(ended(until=NOON - timedelta(hours=1)), NOON, 1.0) == NOON
    assert reset_of(ended(until=NOON + timedelta(days=365)), NOON, 0.0) == NOON + timedelta(days=8)
    assert reset_of(ended(), NOON, 1.0) is None


@pytest.mark.parametrize(
    ("name", "asked_for"), [("0199a213", "0199a213"), ("--yolo", None), ("-c", None), (None, None)]
)
def test_a_conversation_is_never_an_option_of_the_agents(name: str | None, asked_for: str | None) -> None:
    """Whatever a file or a stream calls it, it stands in a command line."""
    assert turn_of(a_loop(), 1, name, "", is_root=False).session == asked_for


# -- the agent's own commands ------------------------------------------------------------------------------------------


class Telling:
    """A reader for which every line means the same."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    def read(self, line: bytes) -> Iterable[Event]:  # noqa: ARG002
        return self._events

    def skipped(self, size: int) -> None: ...

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:  # noqa: ARG002
        return ended()


def heard(*events: Event) -> Commands:
    listener = Listener(Telling(events), lambda _: None, lambda _: False)
    listener.on_line(b"")
    return listener.commands(lambda text: text.replace("hunter2hunter2", "[secret]"))


def failed(command: str, output: str = "", exit_code: int | None = 1) -> CommandEnded:
    return CommandEnded(command=command, failed=True, exit_code=exit_code, output=output)


WORKED = CommandEnded(command="ls", failed=False, exit_code=0)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            failed("pytest -q", "....F\nE  assert 1 == 2\n1 failed in 0.12s\n"),
            "✗ pytest -q → exit 1: 1 failed in 0.12s",
        ),
        (failed("make", exit_code=2), "✗ make → exit 2"),
        (
            failed("git push", "This command requires approval", None),
            "✗ git push → failed: This command requires approval",
        ),
        (failed("make", exit_code=None), "✗ make → failed"),
        (WORKED, "✓ ls → exit 0"),
        (CommandEnded(command="ls", failed=False), "✓ ls"),
    ],
)
def test_a_command_that_ended_is_one_line(event: CommandEnded, text: str) -> None:
    assert event.text == text


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Message("two\nlines"), "two\nlines"),
        (Activity("edited a.py"), "edited a.py"),
        (WORKED, "✓ ls → exit 0"),
        (Retry("503, trying again"), "503, trying again"),
        (LimitNotice("90 % used"), "90 % used"),
        (Denied("rm -rf /"), "not allowed: rm -rf /"),
        (Hopeless("503, trying again"), ""),  # the retry before it said so
        (Begun("s-1"), ""),
        (Spent(Usage()), ""),
        (Finished(), ""),
    ],
)
def test_an_event_is_readable_if_it_says_something_to_people(event: Event, text: str) -> None:
    assert readable(event) == text


def test_all_commands_failed_only_if_there_were_some_and_none_worked() -> None:
    assert [heard(*events).all_failed for events in ([], [WORKED], [failed("a"), WORKED], [failed("a")])] == [
        False,
        False,
        False,
        True,
    ]


def test_the_error_of_a_round_is_the_same_whatever_time_and_temporary_folder_are_in_it() -> None:
    errors = [f"[12:00:0{second}] cannot open /tmp/x{second}/sh" for second in (1, 2)]
    first, second = (heard(failed("a", error)) for error in errors)
    assert first.error != second.error
    assert first.fingerprint == second.fingerprint != heard(failed("a", "another error")).fingerprint


def test_a_command_that_starts_while_another_runs_tells_of_both() -> None:
    """S-033: what overlaps was not done and verified one after the other."""

    def beside(*lines: str) -> list[tuple[str, str]]:
        told = list[Event]()
        events = [CommandStarted(line, line[1:]) if line[0] == "+" else failed(line[1:]) for line in lines]
        Listener(Telling(events), told.append, lambda _: False).on_line(b"")
        return [(each.command, each.beside) for each in told if isinstance(each, CommandStarted) and each.beside]

    assert beside("+a", "-a", "+b", "-never begun", "-b", "+c") == []
    assert beside("+a", "+b", "-a", "+c") == [("b", "a"), ("c", "b")]
    assert beside("+a", "+a", "-a", "+b") == [("a", "a"), ("b", "a")]


def test_ten_failures_are_kept_without_secrets_even_where_a_cut_would_tear_one() -> None:
    calls = [failed(f"{number} {'x' * 110}hunter2hunter2", f"error: {'z' * 107}hunter2hunter2") for number in range(12)]
    commands = heard(*calls, WORKED)
    assert (commands.ran, commands.failed, len(commands.failures)) == (13, 12, 10)
    assert "hunter" not in f"{commands.failures} {commands.error}"
    assert max(map(len, commands.failures)) < 260
    assert commands.failures[0].startswith("✗ 2 xxx")


def test_a_prompt_is_an_argument_only_where_the_kernel_takes_it_and_no_secret_is_in_it() -> None:
    reasons = {
        "x" * 100_000: "",
        "x" * 100_001: "is longer than 100,000 bytes",
        "ü" * 50_001: "is longer than 100,000 bytes",
        "a\0b": "contains a NUL byte",
    }
    assert {text: why_no_argument(text, has_secret=False) for text in reasons} == reasons
    assert "any user here can read command lines" in why_no_argument("x", has_secret=True)


def test_with_a_worktree_the_agent_works_there_and_task_files_are_read_from_the_project() -> None:
    beside = Worktree(branch="bydawn/w", path="/trees/w", folder="/trees/w/app")
    settings = {"workspace": "/project/app", "worktree": beside}
    loop = a_loop(**settings, tasks="tasks", task_folder=True)
    assert turn_of(loop, 1, None, "", is_root=False).workspace == loop.folder == "/trees/w/app"
    assert loop.list_root == "/project/app"
    assert a_loop(**settings, tasks="TODO.md").list_root == "/trees/w/app"  # its boxes are ticked by the agent
