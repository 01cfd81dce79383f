"""What the words of waylon-smithers mean to us."""

import posixpath
import re
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.loop import TASK_COMPLETE, Loop, Mode, Sandbox
from bydawn.core.options import Typed
from bydawn.dialects.seam import Place, Start
from bydawn.dialects.waylon_smithers import texts

NAME = "waylon-smithers"
SANDBOXES = {"read-only": "read-only", "workspace-write": "workspace", "danger-full-access": "full"}
APPROVALS = ("untrusted", "on-failure", "on-request", "never")
MODES = ("tag", "plain", "regex")
DEFAULT_APPROVAL = "on-request"
HARD_STOP = "HARD STOP"
HIGHEST_CAP = 1_000_000

# What files say of other loops, and perhaps of another agent, that no loop of this dialect has unless it is typed.
_ABSENT = ("model", "profile", "effort", "agent_args", "agent_json", "tasks", "checkpoint")
_ABSENT_TOO = ("prompt", "template", "progress", "opinions")  # its prompt is its own
# What a loop of this dialect is, whatever files say. `session_rounds` 0: the one session is never left.
PRESET: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*_ABSENT, *_ABSENT_TOO), ()),
    "agent": ("codex",),
    "agent_commits": ("no",),
    "session": ("resume",),
    "session_rounds": ("0",),
    "on_interrupt": ("stop",),
    "on_blocked_task": ("stop",),
    "max_no_change": ("5",),
    "max_failures": ("3",),
    "max_no_task_done": ("0",),  # its document lets one goal take many rounds
}


def _one_of(what: str, words: Iterable[str]) -> Typed:
    return Typed(what, "|".join(words), choices=tuple(words))


_AUTO = "Let Codex edit files here without asking: --sandbox workspace-write."
_CD = "The workspace root; other paths are relative to the current folder.  [default: .]"
_APPROVAL = "Recorded in the state file. `codex exec` never asks; it refuses what needs approval."
_EVENTS = "Also write Codex's events to this file, or to one file per iteration in this folder."
_REPLIES = "Folder for replies.  [default: .codex/waylon-smithers/loops/ID/]"


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What a person types to start a loop."""

    prompt: str | None
    max_iterations: Annotated[int, Typed("Stop after N iterations.", "N")] = 30
    completion_promise: Annotated[str, Typed("What Codex must say when it is done.", "TEXT")] = TASK_COMPLETE
    promise_mode: Annotated[
        str, _one_of("How it says that: <promise>TEXT</promise>, TEXT alone, or a pattern.", MODES)
    ] = "tag"
    done_match: Annotated[
        str, _one_of("Where in the reply it counts; `anywhere` accepts a mention.", ("end", "own-line", "anywhere"))
    ] = "end"
    loop_id: Annotated[str | None, Typed("Id of the loop.  [default: repository name and time]", "ID")] = None
    state_file: Annotated[str | None, Typed("State file.  [default: .codex/waylon-smithers/loops/ID.json]", "PATH")] = (
        None
    )
    cd: Annotated[str | None, Typed(_CD, "PATH")] = None
    model: Annotated[str | None, Typed("Codex's model.", "MODEL")] = None
    profile: Annotated[str | None, Typed("Codex's profile.", "PROFILE")] = None
    sandbox: Annotated[str | None, _one_of("What Codex may do.  [default: read-only]", SANDBOXES)] = None
    full_auto: Annotated[bool, Typed(_AUTO)] = False
    ask_for_approval: Annotated[str | None, _one_of(_APPROVAL, APPROVALS)] = None
    skip_git_repo_check: Annotated[bool, Typed("Work outside a git repository.")] = False
    jsonl_events: Annotated[str | None, Typed(_EVENTS, "PATH")] = None
    last_message_dir: Annotated[str | None, Typed(_REPLIES, "PATH")] = None
    summary_json: Annotated[str | None, Typed("Summary file.  [default: summary.json in that folder]", "PATH")] = None
    todo_file: Annotated[str | None, Typed("A task list with HARD STOP lines, where a person must look.", "PATH")] = (
        None
    )
    hard_stop_token: Annotated[str, Typed("The text of such a line.", "STRING")] = HARD_STOP
    hard_stop_mode: Annotated[str, _one_of("Ask on a terminal, or always stop.", ("pause", "exit"))] = "pause"


def start(words: Words, place: Place) -> Start:
    """The loop that these words ask for; raises `UserError`."""
    prompt = words.prompt or ""
    if not prompt.strip():
        raise UserError("no prompt is given", hint=f'{NAME} "Fix the failing tests. …" --full-auto')
    _refuse_odd_promise(words.promise_mode, words.completion_promise)
    _refuse_blanks(words)
    todo = _list(words.todo_file, place) if words.todo_file else ""
    sandbox = words.sandbox or ("workspace-write" if words.full_auto else "read-only")
    kept = {
        "created_at": place.now.isoformat(timespec="seconds"),
        "sandbox": sandbox,
        "approval": words.ask_for_approval or ("never" if words.full_auto else DEFAULT_APPROVAL),
    }
    return Start(
        prompt=prompt,
        name=words.loop_id or _name(place),
        settings=_settings(words, sandbox, todo),
        template=texts.template(words.promise_mode, words.completion_promise, words.hard_stop_token if todo else ""),
        tasks_required=False,
        holds_tests=True,
        words=kept | ({"outside_git": "perhaps"} if words.skip_git_repo_check else {}),
        paths=_paths(words, place),
        named=bool(words.loop_id),
        remarks=_remarks(sandbox, words),
    )


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What a person types to go on with a loop in another way."""

    completion_promise: Annotated[str | None, Typed("Another promise.", "TEXT")] = None
    promise_mode: Annotated[str | None, _one_of("Another way to say it.", MODES)] = None
    model: Annotated[str | None, Typed("Another model.", "MODEL")] = None
    sandbox: Annotated[str | None, _one_of("What Codex may do from now on.", SANDBOXES)] = None
    full_auto: Annotated[bool, Typed("Let Codex edit files here from now on.")] = False


def changed(loop: Loop, given: Changes) -> Loop:
    """The same loop; Codex is told the new promise with the next message, and gets its sandbox with each."""
    assert loop.dialect and loop.promise  # noqa: S101 - a loop of this dialect
    _refuse_flags({"model": given.model})
    text, kept = given.completion_promise or loop.promise.text, loop.dialect.words
    mode = Mode(given.promise_mode) if given.promise_mode else loop.promise.mode
    shown = "plain" if mode is Mode.LINE else mode.value
    _refuse_odd_promise(shown, text)
    if sandbox := given.sandbox or ("workspace-write" if given.full_auto else ""):
        kept = kept | {"sandbox": sandbox} | ({"approval": "never"} if given.full_auto else {})
    return replace(
        loop,
        model=given.model or loop.model,
        sandbox=Sandbox(SANDBOXES[sandbox]) if sandbox else loop.sandbox,
        promise=replace(loop.promise, text=text, mode=mode),
        template=texts.template(shown, text, loop.checkpoint.token if loop.checkpoint else ""),
        dialect=replace(loop.dialect, words=kept),
    )


def _settings(words: Words, sandbox: str, todo: str) -> dict[str, tuple[str, ...]]:
    settings = {
        **PRESET,
        "rounds": (str(checked_cap(words.max_iterations)),),
        "sandbox": (SANDBOXES[sandbox],),
        "done_when": (words.completion_promise,),
        "done_mode": (words.promise_mode,),
        "done_match": (words.done_match,),
    }
    settings |= {key: (value,) for key in ("model", "profile") if (value := getattr(words, key))}
    if todo:
        settings |= {"tasks": (todo,), "checkpoint": (f"{words.hard_stop_token}:{words.hard_stop_mode}",)}
    return settings


_PATHS = ("state_file", "jsonl_events", "last_message_dir", "summary_json")


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _paths(words: Words, place: Place) -> dict[str, str]:
    """The files that have a place of their own; where they lead is looked at before the loop starts."""
    paths = {key: _from_workspace(path, place) for key in _PATHS if (path := getattr(words, key))}
    if not (events := paths.get("jsonl_events", ".jsonl")).endswith(("/", ".jsonl")):
        paths["jsonl_events"] = f"{events}/"
    for key in ("state_file", "summary_json"):
        if paths.get(key, "").endswith("/"):
            raise UserError(f"{_flag(key)} {paths[key]} is a folder", cause="a file is meant", hint="give a path in it")
    return paths


def _from_workspace(path: str, place: Place) -> str:
    """Typed in this folder, it means this folder; one in the workspace is kept as it is there."""
    full = posixpath.normpath(posixpath.join(place.folder, path)) + ("/" if path.endswith("/") else "")
    return full.removeprefix(f"{place.workspace.rstrip('/')}/") or full


def _list(path: str, place: Place) -> str:
    """Like any other path; but a list is in the workspace, so that what would lead out of it is meant from there on."""
    typed = _from_workspace(path, place)
    return path if typed.startswith("/") and not path.startswith("/") else typed


def _refuse_blanks(words: Words) -> None:
    _refuse_flags({"model": words.model, "profile": words.profile})
    for key in ("model", "profile", "todo_file", "hard_stop_token", "loop_id", *_PATHS):
        refuse_blank(_flag(key), getattr(words, key))


def _refuse_flags(names: dict[str, str | None]) -> None:
    for key, value in names.items():
        if (value or "").startswith("-"):
            cause = "it would be an option of Codex's"
            raise UserError(f"{_flag(key)} {value!r} is not a name", cause=cause, hint=_flag(key))


def refuse_blank(flag: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise UserError(f"{flag} is empty", hint=f"give it a value, or drop {flag}")


def _refuse_odd_promise(mode: str, promise: str) -> None:
    if not promise.strip():
        raise UserError(
            "--completion-promise is empty", cause="nothing could ever be recognized", hint="--completion-promise DONE"
        )
    if "\n" in promise:
        raise UserError(
            "--completion-promise has two lines",
            cause="a promise is the end of one line",
            hint="--completion-promise DONE",
        )
    if mode == "regex":
        hint = "fix it, or drop --promise-mode regex"
        try:
            pattern = re.compile(promise)
        except re.error as error:
            what = f"--completion-promise {promise!r} is not a regular expression"
            raise UserError(what, cause=str(error), hint=hint) from None
        if pattern.fullmatch(""):
            what = f"--completion-promise {promise!r} matches nothing at all"
            raise UserError(what, cause="so any reply could be taken for the promise", hint=hint)


def checked_cap(number: int) -> int:
    if not 1 <= number <= HIGHEST_CAP:
        cause = "a loop has a cap here" if number < 1 else f"no cap is higher than {HIGHEST_CAP:,}"
        raise UserError(f"--max-iterations {number} makes no sense", cause=cause, hint="--max-iterations 30")
    return number


def _name(place: Place) -> str:
    """`repo-2026-01-06T21-10-00`"""
    folder = place.workspace.rstrip("/").rpartition("/")[2]
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in folder)
    return f"{plain.strip('._-')[:40] or 'loop'}-{place.now:%Y-%m-%dT%H-%M-%S}"


def _remarks(sandbox: str, words: Words) -> tuple[str, ...]:
    rows = []
    if words.full_auto and words.sandbox:
        rows.append(f"--sandbox {sandbox} holds; --full-auto adds nothing to it")
    if words.ask_for_approval not in (None, "never"):
        rows.append(f"--ask-for-approval {words.ask_for_approval}: a loop asks no one; what needs approval is refused")
    return tuple(rows)
