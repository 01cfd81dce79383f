"""What a visitor can do to a loop: each verb is one row and one act, for programs and for the forms of pages alike."""

from collections.abc import Callable
from threading import Lock
from typing import Any

import msgspec

from bydawn.core.errors import NotFound, OwnFailure, UserError
from bydawn.core.facts import LoopStopped, RunStarted
from bydawn.core.text import shorten
from bydawn.core.values import Status, TaskStatus
from bydawn.operations import steer, tasks, views
from bydawn.operations.preconditions import gone
from bydawn.store.ledger import backwards, load
from bydawn.store.registry import Standing, standing_of
from bydawn.web.loops import readable
from bydawn.web.starting import begin

_starting: dict[str, Lock] = {}  # by folder: one process at a time is started for a loop
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


def with_workspace(standing: Standing) -> Standing:
    """A loop of which something can be read or run."""
    if error := gone(readable(standing)):
        raise OwnFailure.of(error)
    return standing


def _done(standing: Standing, told: str) -> Done:
    now = standing_of(standing.folder) or standing
    return Done(seq=now.state.seq, state=now.status, told=told)


# -- what is sent ------------------------------------------------------------------------------------------------------


class Expecting(msgspec.Struct, frozen=True, kw_only=True):
    """`expect_seq`: the last fact that the caller knows; refused if the loop started or stopped since."""

    expect_seq: int | None = None


class Then(Expecting, frozen=True, kw_only=True):
    """Something to do, after which the loop may go on."""

    resume: bool = False


class Tell(Then, frozen=True, kw_only=True):
    text: str


class Pause(Expecting, frozen=True, kw_only=True):
    now: bool = False


class Stop(Expecting, frozen=True, kw_only=True):
    now: bool = True


class Resume(Expecting, frozen=True, kw_only=True):
    """New limits as `bydawn resume` takes them: `40` or `+10`, `2h`, `07:00`, `10usd`."""

    rounds: str | int | None = None
    seconds: str | None = msgspec.field(default=None, name="for")
    until: str | None = None
    budget: str | None = None
    once: bool = False


class OneTask(Then, frozen=True, kw_only=True):
    """`exactly`: only by its id, because a form is older than the list may be."""

    task: str | list[str]
    exactly: bool = False


class NewTask(Expecting, frozen=True, kw_only=True):
    text: str


# -- what it does ------------------------------------------------------------------------------------------------------


def tell(standing: Standing, sent: Tell) -> Done:
    if "\0" in sent.text:
        raise UserError("nothing was told", cause="the note has a character that no text has (NUL)", hint="remove it")
    steer.tell(standing, sent.text)
    number = load(standing.folder)[0].round + 1
    return _done(standing, f"The next prompt will contain it (round {number}).")


def pause(standing: Standing, sent: Pause) -> Done:
    return _ended(standing, steer.pause(standing, now=sent.now), "pauses", sent.now)


def stop(standing: Standing, sent: Stop) -> Done:
    return _ended(standing, steer.stop(standing, now=sent.now), "stops", sent.now, "; what it changed stays")


def _ended(standing: Standing, answer: steer.Answer, verb: str, now: bool, more: str = "") -> Done:
    when = "now" if now or answer.state else f"after round {standing.state.round}"
    change = f"{verb} {when}{more}" if answer.changed else Status(answer.state).already
    return _done(standing, f"{standing.loop.id} {change}.")


def dismiss(standing: Standing, _: Expecting) -> Done:
    steer.dismiss(standing)
    return _done(standing, f"{standing.loop.id} is no longer listed.")


def skip(standing: Standing, sent: OneTask) -> Done:
    return _settle(standing, sent, TaskStatus.SKIPPED, "Skipped")


def reopen(standing: Standing, sent: OneTask) -> Done:
    return _settle(standing, sent, TaskStatus.OPEN, "Open again")


def _settle(standing: Standing, sent: OneTask, status: TaskStatus, done: str) -> Done:
    """One task, or several that were set aside together."""
    wanted = [sent.task] if isinstance(sent.task, str) else sent.task
    if not wanted:
        raise UserError("no task was named", cause="nothing was changed", hint="reload the page, then try again")
    if sent.exactly and not standing.finished:
        board = tasks.of_loop(standing)
        if any(tasks.named(board, each).id != each for each in wanted):
            raise NotFound("this task is no longer in the list", cause="nothing was changed", hint="reload the page")
    *_, last = tasks.settle(standing, wanted, status)
    was = "" if last.taken_by else " (it already was)"
    return _done(standing, f"{done}: “{shorten(last.task.text, _REPEATED)}”{was}.")


def add_task(standing: Standing, sent: NewTask) -> Done:
    added = tasks.add(standing, sent.text)
    later = "" if added.written else " An agent is writing the file; it will be added after this round."
    return _done(standing, f"Added: “{shorten(sent.text.strip(), _REPEATED)}”.{later}")


def resume(standing: Standing, sent: Resume) -> Done:
    given = (("rounds", sent.rounds), ("for", sent.seconds), ("until", sent.until), ("budget", sent.budget))
    words = [f"--{flag}={str(value).strip()}" for flag, value in given if value is not None and str(value).strip()]
    return _go_on(standing, sent, *words, *(["--once"] if sent.once else []))


def approve(standing: Standing, sent: Expecting) -> Done:
    return _go_on(standing, sent, "--approve")


def accept(standing: Standing, sent: Expecting) -> Done:
    return _go_on(standing, sent, "--accept")


def _go_on(standing: Standing, sent: Expecting, *words: str) -> Done:
    """Continue it in the background; `words` are flags of `bydawn resume`. The second of two taps is too late."""
    with_workspace(standing)
    folder, loop = standing.folder, standing.loop
    with _starting.setdefault(str(folder), Lock()):
        refuse_late(standing_of(folder) or standing, sent.expect_seq)
        begin(["resume", loop.id, "-C", loop.workspace, "--detach", *words], folder.state_folder)
    return _done(standing, f"{loop.id} goes on.")


# -- the verbs ---------------------------------------------------------------------------------------------------------


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """One row: its address in API and pages, what is sent there, what it does, and where its form leads."""

    name: str
    says: str  # for programs that read the OpenAPI document
    act: Callable[[Standing, Any], Done]
    takes: type[Expecting] = Expecting
    leads: str = "{loop}"
    is_about_now: bool = True  # its form says what the page knew of the loop
    is_barred: Callable[[Standing], bool] = lambda standing: standing.finished  # does its state forbid it?
    kept: str = ""  # what has been done if the loop does not go on after it …
    then: str = ""  # … and what is said if it does


VERBS = (
    Verb(
        name="tell",
        says="Add a note to the next prompt",
        act=tell,
        takes=Tell,
        kept="your note is kept",
        then="Sent. Round {round} starts.",
    ),
    Verb(name="pause", says="Pause after this round", act=pause, takes=Pause),
    Verb(name="resume", says="Continue, perhaps with new limits", act=resume, takes=Resume),
    Verb(name="stop", says="End it", act=stop, takes=Stop),
    Verb(name="approve", says="Approve the checkpoint and continue", act=approve),
    Verb(name="accept", says="Accept changes to protected files or the task list", act=accept),
    Verb(name="skip", says="Skip a task", act=skip, takes=OneTask, kept="skipped", then="{told} {name} goes on."),
    Verb(name="reopen", says="Open a skipped task again", act=reopen, takes=OneTask),
    Verb(name="tasks", says="Add a task", act=add_task, takes=NewTask, leads="{loop}/docs/todo", is_about_now=False),
    Verb(
        name="dismiss",
        says="Take a loop that has ended out of the list",
        act=dismiss,
        leads="/",
        is_barred=lambda standing: standing.state.stopped is None,
    ),
)


def perform(verb: Verb, standing: Standing, sent: Expecting, is_kept: Callable[[], object] = lambda: None) -> Done:
    """Do it, unless the loop has started or stopped since the sender looked; `is_kept` hears that a part of it is."""
    refuse_late(readable(standing), sent.expect_seq)
    try:
        done = verb.act(standing, sent)
        if not isinstance(sent, Then) or not sent.resume:
            return done
        is_kept()
        try:
            now = _go_on(standing, sent)
        except UserError as error:
            error.what = f"{verb.kept}, but the loop did not go on: {error.what}"
            raise
    except UserError as error:
        if isinstance(error, NotFound | NotNow) or not verb.is_barred(standing):
            raise
        raise NotNow.of(error) from None
    told = verb.then.format(round=standing.state.round + 1, told=done.told, name=standing.loop.id)
    return msgspec.structs.replace(now, told=told)
