"""A state file that the original program wrote, taken over as it is."""

import re

import msgspec
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.facts import LoopAdopted
from bydawn.core.loop import TASK_COMPLETE, Sandbox
from bydawn.core.text import plain, shorten
from bydawn.dialects.seam import Adopted, Place
from bydawn.dialects.waylon_smithers.arguments import (
    APPROVALS,
    DEFAULT_APPROVAL,
    HARD_STOP,
    HIGHEST_CAP,
    MODES,
    SANDBOXES,
    Words,
    start,
)

_SESSION = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class _Codex(msgspec.Struct, frozen=True):
    session_id: str | None = None
    model: str | None = None
    sandbox: str | None = None
    approval: str | None = None
    profile: str | None = None


class _Todo(msgspec.Struct, frozen=True):
    path: str | None = None
    hard_stop_token: str | None = None
    hard_stop_mode: str | None = None


class _State(msgspec.Struct, frozen=True):
    """What we need of it; everything else is kept in the copy of the file."""

    loop_id: str
    prompt: str
    created_at: str = ""
    completion_promise: str = TASK_COMPLETE
    promise_mode: str = "tag"
    max_iterations: int = 30
    iteration: int = 0
    status: str = "running"
    codex: _Codex | None = None
    todo: _Todo | None = None


def adopt(text: str, place: Place, sandbox: str = "", cap: int | None = None) -> Adopted:
    """What the original program had begun; the sandbox is its own unless a person names another."""
    try:
        state = msgspec.json.decode(text, type=_State)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _refusal(str(error)) from None
    _refuse_finished(state)
    _refuse_used_up(state, cap)
    words, session = _words(state, sandbox), (state.codex or _Codex()).session_id
    if session and not _SESSION.fullmatch(session):
        raise _refusal(f"codex.session_id is {session!r}, and no session of Codex is called like this")
    source = f"{state.loop_id}: {state.status} at iteration {state.iteration}"
    fact = LoopAdopted(source=source, rounds=state.iteration, agent="codex", session=session or None)
    # What its file names begins in the workspace, wherever the command is typed.
    return Adopted(start=start(words, replace(place, folder=place.workspace)), fact=fact)


def _words(state: _State, sandbox: str) -> Words:
    codex, todo = state.codex or _Codex(), state.todo or _Todo()
    return Words(
        prompt=state.prompt,
        loop_id=state.loop_id,
        created_at=state.created_at,
        max_iterations=max(1, state.max_iterations),
        completion_promise=_given(state.completion_promise) or TASK_COMPLETE,
        promise_mode=_known("promise_mode", _given(state.promise_mode) or "tag", MODES),
        model=_given(codex.model),
        # The document's own example says "default", which Codex has no profile for.
        profile=_given(codex.profile) if codex.profile != "default" else None,
        sandbox=sandbox or _known("codex.sandbox", _given(codex.sandbox) or "read-only", tuple(SANDBOXES)),
        ask_for_approval=_known("codex.approval", _given(codex.approval) or DEFAULT_APPROVAL, APPROVALS),
        todo_file=_given(todo.path),
        hard_stop_token=_given(todo.hard_stop_token) or HARD_STOP,
        hard_stop_mode=_known("todo.hard_stop_mode", _given(todo.hard_stop_mode) or "pause", ("pause", "exit")),
    )


def agree(adopted: Adopted, sandbox: str) -> None:
    """What a file of the repository says cannot take the sandbox away; a person has to."""
    if Sandbox(adopted.start.settings["sandbox"][0]) is Sandbox.FULL and not sandbox:
        raise UserError(
            f"the state file of {adopted.start.name} asks for no sandbox at all",
            cause="it is a file of the repository, and has no say in that",
            hint="if you want it so, say it: --sandbox danger-full-access",
        )


def _given(text: str | None) -> str | None:
    """What was never set is written as an empty text, too."""
    return text if text and text.strip() else None


def _refuse_finished(state: _State) -> None:
    if state.status == "completed":
        raise UserError(
            f"the loop {shorten(plain(state.loop_id), 80)} is completed; there is nothing to go on with",
            hint="start a new one, under another --loop-id",
        )


def _refuse_used_up(state: _State, cap: int | None) -> None:
    if not 0 <= state.iteration <= HIGHEST_CAP:
        raise _refusal(f"iteration is {state.iteration}")
    if cap is not None and cap <= state.iteration:
        raise used_up(shorten(plain(state.loop_id), 80), cap, state.iteration)


def used_up(name: str, cap: int, iterations: int) -> UserError:
    return UserError(
        f"--max-iterations {cap} is used up already",
        cause=f"{name} has had {iterations}",
        hint=f"--max-iterations {iterations + 10}",
    )


def _known(field: str, value: str, words: tuple[str, ...]) -> str:
    if value in words:
        return value
    raise _refusal(f"{field} is {value!r}, and must be one of {', '.join(words)}")


def _refusal(cause: str) -> UserError:
    return UserError("this state file cannot be taken over", cause=cause, hint="fix it, or start a new loop")
