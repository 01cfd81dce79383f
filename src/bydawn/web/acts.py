"""What a visitor can do to a loop. Each act is an operation of the terminal, and says what it says."""

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Concatenate, ParamSpec

import msgspec

from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.facts import LoopStopped, RunStarted
from bydawn.core.text import shorten
from bydawn.core.values import Status, TaskStatus
from bydawn.operations import steer, tasks, views
from bydawn.operations.preconditions import gone
from bydawn.operations.service import program
from bydawn.store.folder import StateFolder
from bydawn.store.ledger import backwards, load
from bydawn.store.registry import Standing, standing_of
from bydawn.web.loops import NotHere

P = ParamSpec("P")
TOKEN, LOOK_TOKEN = "BYDAWN_WEB_TOKEN", "BYDAWN_WEB_LOOK_TOKEN"  # variables that hold them
_starting: dict[str, Lock] = {}  # by folder: one process at a time is started for a loop
_START = 60.0  # seconds in which a loop must have begun
_SAID = re.compile(r"^ ?(error|cause|hint): (.*(?:\n {3,}\S.*)*)$", re.MULTILINE)
_LONGEST_WORD = 4096  # characters that a command is given as one word
_REPEATED = 200  # characters of a person's own text that are said back


class NotNow(UserError):
    """The state of the loop does not allow it."""

    exit_code = 8


class TooLate(NotNow):
    """The loop has started or stopped since the page was made; what was asked for may no longer be meant."""

    def __init__(self, standing: Standing) -> None:
        since = f"it {standing.status.words}" + (f": {why}" if (why := views.reason(standing)) else "")
        if standing.status is Status.RUNNING and standing.state.round:
            since = f"round {standing.state.round} runs"
        super().__init__(
            f"too late: {standing.loop.id} has gone on since",
            cause=f"{since}; nothing was done",
            hint="look at it as it is now",
        )
        self.state = standing.status
        self.reason = views.loop_view(standing).reason


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, and the last fact of the loop after it."""

    seq: int
    state: Status
    told: str


def refuse_late(standing: Standing, expect_seq: int | None) -> None:
    """A late tap must not undo what happened after the page was made."""
    if expect_seq is None:
        return
    if expect_seq > standing.state.seq:  # it meant another loop, which had this name before
        raise TooLate(standing)
    for record in backwards(standing.folder):
        if record.seq <= expect_seq:
            return
        if isinstance(record.fact, RunStarted | LoopStopped):
            raise TooLate(standing)


def refuse_gone(standing: Standing) -> None:
    """Nothing can be read or run without the workspace."""
    if error := gone(standing):
        raise OwnFailure(error.what, cause=error.cause, hint=error.hint)


def _done(standing: Standing, told: str) -> Done:
    now = standing_of(standing.folder) or standing
    return Done(seq=now.state.seq, state=now.status, told=told)


# -- steer a loop ------------------------------------------------------------------------------------------------------


def _unless_finished(act: Callable[Concatenate[Standing, P], Done]) -> Callable[Concatenate[Standing, P], Done]:
    """If a finished loop refuses something, that is because of its state."""

    @wraps(act)
    def asked(standing: Standing, /, *args: P.args, **options: P.kwargs) -> Done:
        try:
            return act(standing, *args, **options)
        except UserError as error:
            if not standing.finished:
                raise
            raise NotNow(error.what, cause=error.cause, hint=error.hint) from None

    return asked


@_unless_finished
def tell(standing: Standing, text: str) -> Done:
    if "\0" in text:
        raise UserError("nothing was told", cause="the note has a character that no text has (NUL)", hint="remove it")
    steer.tell(standing, text)
    number = load(standing.folder)[0].round + 1
    return _done(standing, f"The next prompt will contain it (round {number}).")


@_unless_finished
def pause(standing: Standing, *, now: bool = False) -> Done:
    answer = steer.pause(standing, now=now)
    when = "now" if now or answer.state else f"after round {standing.state.round}"
    return _done(standing, _told(standing, answer, f"pauses {when}"))


@_unless_finished
def stop(standing: Standing, *, now: bool = True) -> Done:
    answer = steer.stop(standing, now=now)
    when = "now" if now or answer.state else f"after round {standing.state.round}"
    return _done(standing, _told(standing, answer, f"stops {when}; what it changed stays"))


def _told(standing: Standing, answer: steer.Answer, change: str) -> str:
    return f"{standing.loop.id} {change if answer.changed else Status(answer.state).already}."


def dismiss(standing: Standing) -> Done:
    try:
        steer.dismiss(standing)
    except UserError as error:
        if standing.trouble or standing.state.stopped:
            raise
        raise NotNow(error.what, cause=error.cause, hint=error.hint) from None
    return _done(standing, f"{standing.loop.id} is no longer listed.")


@_unless_finished
def settle(standing: Standing, task: str, status: TaskStatus, *, exactly: bool = False) -> Done:
    """Skip a task or open it again; `exactly`: only by its id, because a form is older than the list may be."""
    if not standing.finished:
        _refuse_unknown(standing, task)
    if exactly and all(task != each.id for each in tasks.of_loop(standing).standings.tasks):
        raise NotHere("this task is no longer in the list", cause="nothing was changed", hint="reload the page")
    rows = [*tasks.settle(standing, [task], status)]
    words = {TaskStatus.SKIPPED: "Skipped", TaskStatus.OPEN: "Open again"}
    was = "" if rows[0].taken_by else " (it already was)"
    return _done(standing, f"{words[status]}: “{shorten(rows[0].task.text, _REPEATED)}”{was}.")


def _refuse_unknown(standing: Standing, task: str) -> None:
    board = tasks.of_loop(standing)
    try:
        tasks.named(board, task)
    except UserError as error:
        if not board.standings.tasks:  # there is no list, or it cannot be read
            raise
        raise NotHere(error.what, cause=error.cause, hint=error.hint) from None


@_unless_finished
def add_task(standing: Standing, text: str) -> Done:
    added = tasks.add(standing, text)
    later = "" if added.written else " An agent is writing the file; it will be added after this round."
    return _done(standing, f"Added: “{shorten(text.strip(), _REPEATED)}”.{later}")


# -- start a process ---------------------------------------------------------------------------------------------------


@_unless_finished
def resume(standing: Standing, words: Iterable[str] = (), expect_seq: int | None = None) -> Done:
    """Continue a loop in the background; `words` are flags of `bydawn resume`. The second of two taps is too late."""
    refuse_gone(standing)
    folder, loop = standing.folder, standing.loop
    with _starting.setdefault(str(folder), Lock()):
        refuse_late(standing_of(folder) or standing, expect_seq)
        begin(["resume", loop.id, "-C", loop.workspace, "--detach", *words], folder.state_folder)
    now = standing_of(standing.folder) or standing
    return Done(seq=now.state.seq, state=now.status, told=f"{standing.loop.id} goes on.")


def resume_after(standing: Standing, done: str, expect_seq: int | None) -> Done:
    """Continue a loop after something else was done, which is said if the loop cannot go on."""
    try:
        return resume(standing, (), expect_seq)
    except UserError as error:
        error.what = f"{done}, but the loop did not go on: {error.what}"
        raise


def begin(words: Sequence[str], root: StateFolder, folder: Path | None = None) -> None:
    """Start a loop with a command of our own, as a person would; returns once it has begun."""
    refuse_odd(words)
    argv = [program("bydawn"), *words, "--state-dir", str(root.path)]
    try:
        ended = subprocess.run(
            argv, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=_START
        )
    except subprocess.TimeoutExpired:
        hint = "look at it again in a moment"
        raise OwnFailure("the loop has not begun yet", cause=f"it took more than {_START:.0f} s", hint=hint) from None
    if ended.returncode:
        raise refusal(ended.stderr.decode(errors="replace"), ended.returncode)


def refuse_odd(words: Iterable[str]) -> None:
    """What no command can be given."""
    for word in words:
        if "\0" in word or len(word) > _LONGEST_WORD:
            cause = f"{shorten(word, 40)!r} is too long, or has a character that no text has (NUL)"
            raise UserError("this value cannot be used", cause=cause, hint="shorten it, or remove it")


def was_refused(text: str) -> bool:
    """Did a command of ours say why it did not begin?"""
    return "error" in dict(_SAID.findall(text))


def refusal(text: str, code: int) -> UserError:
    """The error that a command of ours printed."""
    parts = {name: re.sub(r"\n +", "\n", said) for name, said in _SAID.findall(text)}
    if "error" not in parts:
        return OwnFailure("the command failed", cause=text.strip()[-500:] or f"exit code {code}")
    return UserError(parts["error"], cause=parts.get("cause", ""), hint=parts.get("hint", ""), exit_code=code)


def environment() -> dict[str, str]:
    """What loops inherit from us: not our tokens."""
    return {name: value for name, value in os.environ.items() if name not in (TOKEN, LOOK_TOKEN)}
