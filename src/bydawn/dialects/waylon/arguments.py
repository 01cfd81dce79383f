"""The command line of waylon-smithers, and what each of its words means to us."""

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from bydawn.core.errors import UserError
from bydawn.core.loop import TASK_COMPLETE
from bydawn.dialects.seam import Cancel, Command, Install, List, Option, Place, Request, Resume, Show, Start
from bydawn.dialects.waylon import texts

NAME = "waylon-smithers"
SANDBOXES = {"read-only": "read-only", "workspace-write": "workspace", "danger-full-access": "full"}
APPROVALS = ("untrusted", "on-failure", "on-request", "never")
MODES = ("tag", "plain", "regex")
DEFAULT_APPROVAL = "on-request"
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
    "max_no_change": ("5",),
    "max_failures": ("3",),
}

_LOOP = Option(flag="--loop-id", metavar="ID", what="Which loop; the only one here unless you say so.")
_CD = Option(flag="--cd", metavar="PATH", what="The workspace root; this folder unless you say so.")
_JSON = Option(flag="--json", what="As JSON.")
_START = (
    Option(flag="--max-iterations", metavar="N", number=True, default="30", what="Iterations at most."),
    Option(
        flag="--completion-promise",
        metavar="TEXT",
        default=TASK_COMPLETE,
        what="What Codex says when all is done.",
    ),
    Option(
        flag="--promise-mode",
        choices=MODES,
        default="tag",
        what="<promise>TEXT</promise>, the TEXT itself, or a pattern.",
    ),
    Option(
        flag="--done-match",
        choices=("end", "own-line", "anywhere"),
        default="end",
        what="Where the promise counts; `anywhere` believes a mere mention.",
    ),
    Option(flag="--loop-id", metavar="ID", what="The loop's id; else repository name and time."),
    Option(flag="--state-file", metavar="PATH", what="Else .codex/waylon-smithers/loops/ID.json."),
    Option(
        flag="--cd",
        metavar="PATH",
        what="The workspace root; this folder unless you say so. Every other path begins in this folder.",
    ),
    Option(flag="--model", metavar="MODEL", what="The model."),
    Option(flag="--profile", metavar="PROFILE", what="Codex's own profile."),
    Option(flag="--sandbox", choices=tuple(SANDBOXES), what="What Codex may do; read-only unless you say so."),
    Option(
        flag="--full-auto",
        what="Edit here, ask nobody. Codex has no such flag any more: it gets the sandbox workspace-write.",
    ),
    Option(
        flag="--ask-for-approval",
        choices=APPROVALS,
        what="Kept in the state file. `codex exec` of today asks nobody: what would need an approval is refused.",
    ),
    Option(flag="--skip-git-repo-check", what="Work outside of a git repository."),
    Option(
        flag="--jsonl-events",
        metavar="PATH",
        what="Codex's events as well in this file, one iteration after the other; in a folder, a file for each.",
    ),
    Option(flag="--last-message-dir", metavar="PATH", what="Else .codex/waylon-smithers/loops/ID/."),
    Option(flag="--summary-json", metavar="PATH", what="Else summary.json in that folder."),
    Option(
        flag="--todo-file",
        metavar="PATH",
        what="A list in the workspace with HARD STOP lines, at which a person must look.",
    ),
    Option(flag="--hard-stop-token", metavar="STRING", default="HARD STOP", what="The words of such a line."),
    Option(flag="--hard-stop-mode", choices=("pause", "exit"), default="pause", what="Ask, or stop in any case."),
)

COMMANDS = (
    Command(
        name="",
        what="Run Codex on a prompt again and again, in one session, until it gives its promise.",
        argument="PROMPT",
        options=_START,
        examples=(
            f'{NAME} "Fix the tests. Output <promise>DONE</promise> when all pass." \\',
            "  --completion-promise DONE --max-iterations 25 --full-auto",
            f"{NAME} resume --loop-id repo-2026-01-06T21-10-00",
        ),
    ),
    Command(name="status", what="how a loop stands", options=(_LOOP, _CD, _JSON)),
    Command(name="list", what="all loops of this folder", options=(_CD, _JSON)),
    Command(
        name="resume",
        what="go on with a loop: same session, next iteration",
        options=(
            _LOOP,
            _CD,
            Option(flag="--max-iterations", metavar="N", number=True, what="A new cap."),
            Option(
                flag="--sandbox",
                choices=tuple(SANDBOXES),
                what="Only for a loop that the original program began: the sandbox you agree to.",
            ),
        ),
    ),
    Command(
        name="cancel",
        what="end a loop, running or not",
        options=(
            _LOOP,
            _CD,
            Option(flag="--cleanup-artifacts", what="And remove the files that were written for it; nothing else."),
        ),
    ),
    Command(
        name="install-helpers",
        what="write the skill and the prompt for Codex",
        options=(_CD, Option(flag="--force", what="Over what is there.")),
    ),
)


def read(command: str, values: Mapping[str, Any], place: Place) -> Request:
    """The request behind the words; raises `UserError`."""
    if command:
        _refuse_blanks(values)
    match command:
        case "status":
            return Show(name=values["loop_id"], as_json=values["json"])
        case "list":
            return List(as_json=values["json"])
        case "resume":
            cap, sandbox = _cap(values["max_iterations"]), values["sandbox"] or ""
            return Resume(name=values["loop_id"], rounds=cap, sandbox=sandbox)
        case "cancel":
            return Cancel(name=values["loop_id"], cleanup=values["cleanup_artifacts"])
        case "install-helpers":
            return Install(force=values["force"])
        case _:
            return start(values, place)


def start(values: Mapping[str, Any], place: Place) -> Start:
    """A new loop, from what was typed or from what the original program wrote down."""
    if not (values["prompt"] or "").strip():
        raise UserError(
            "there is nothing to do", cause="no prompt is given", hint=f'{NAME} "Fix the failing tests. …" --full-auto'
        )
    sandbox = values["sandbox"] or ("workspace-write" if values["full_auto"] else "read-only")
    mode, promise = values["promise_mode"], values["completion_promise"]
    _refuse_odd_promise(mode, promise)
    _refuse_blanks(values)
    todo = _list(values["todo_file"], place) if values["todo_file"] else ""
    settings = {
        **PRESET,
        "rounds": (str(_cap(values["max_iterations"])),),
        "sandbox": (SANDBOXES[sandbox],),
        "done_when": (promise,),
        "done_mode": (mode,),
        "done_match": (values["done_match"],),
        **{key: (values[key],) for key in ("model", "profile") if values[key]},
    }
    if todo:
        settings |= {"tasks": (todo,), "checkpoint": (f"{values['hard_stop_token']}:{values['hard_stop_mode']}",)}
    words = {
        "created_at": values.get("created_at") or place.now.isoformat(timespec="seconds"),
        "sandbox": sandbox,
        "approval": values["ask_for_approval"] or ("never" if values["full_auto"] else DEFAULT_APPROVAL),
    }
    if values["skip_git_repo_check"]:
        words["outside_git"] = "perhaps"
    return Start(
        prompt=values["prompt"],
        name=values["loop_id"] or _name(place),
        settings=settings,
        wanted={
            "tasks_required": False,
            "template": texts.template(mode, promise, values["hard_stop_token"] if todo else ""),
            "follow_up": texts.follow_up(mode, promise),
        },
        words=words,
        paths=_paths(values, todo, place),
        named=bool(values["loop_id"]),
        outside_git=values["skip_git_repo_check"],
        remarks=_remarks(sandbox, values),
    )


_PATHS = ("state_file", "jsonl_events", "last_message_dir", "summary_json")


def _paths(values: Mapping[str, Any], todo: str, place: Place) -> dict[str, str]:
    """Where files go that have a place of their own; each of them is one file, and none is the workspace itself."""
    paths = {key: _from_workspace(values[key], place) for key in _PATHS if values[key]}
    for key in ("state_file", "summary_json"):
        if paths.get(key, "").endswith("/"):
            flag = f"--{key.replace('_', '-')}"
            raise UserError(f"{flag} {paths[key]} is a folder", cause="a file is meant", hint="give a path in it")
    flags = {path.rstrip("/"): f"--{key.replace('_', '-')}" for key, path in paths.items()}
    if len(flags) < len(paths):
        raise UserError(
            "two files cannot be one", cause=f"twice: {', '.join(flags)}", hint="give each a path of its own"
        )
    for path, flag in flags.items():
        if "*" in path:
            raise UserError(f"{flag} {path} has a * in it", cause="it is one path", hint="give it a plain name")
        if path == todo.rstrip("/") or ".git" in path.split("/"):
            hint = f"give {flag} a path of its own"
            raise UserError(f"{flag} {path} is not ours to write", cause="something else needs that file", hint=hint)
        if f"{place.workspace}/".startswith(f"{path}/"):
            hint = f"{flag} out/…, or leave it away"
            raise UserError(f"{flag} is the workspace itself", cause="its files would mix with yours", hint=hint)
    return paths


def _from_workspace(path: str, place: Place) -> str:
    """Typed in this folder, it means this folder; one in the workspace is kept as it is there."""
    full = posixpath.normpath(posixpath.join(place.folder, path)) + ("/" if path.endswith("/") else "")
    return full.removeprefix(f"{place.workspace.rstrip('/')}/") or full


def _list(path: str, place: Place) -> str:
    """Like any other path; but a list is in the workspace, so that what would lead out of it is meant from there on."""
    typed = _from_workspace(path, place)
    return path if typed.startswith("/") and not path.startswith("/") else typed


def _refuse_blanks(values: Mapping[str, Any]) -> None:
    for key in ("model", "profile", "todo_file", "hard_stop_token", "loop_id", *_PATHS):
        if key not in values:
            continue
        flag = f"--{key.replace('_', '-')}"
        if key in ("model", "profile") and (values[key] or "").startswith("-"):
            raise UserError(f"{flag} {values[key]!r} is no name", cause="it would be an option of Codex's", hint=flag)
        if values[key] is not None and not values[key].strip():
            raise UserError(
                f"{flag} is empty", cause="nothing stands there", hint=f"give it a value, or leave {flag} away"
            )


def _refuse_odd_promise(mode: str, promise: str) -> None:
    if not promise.strip():
        raise UserError(
            "--completion-promise is empty", cause="nothing could ever be recognised", hint="--completion-promise DONE"
        )
    if "\n" in promise:
        raise UserError(
            "--completion-promise has two lines",
            cause="a promise is the end of one line",
            hint="--completion-promise DONE",
        )
    if mode == "regex":
        hint = "mend it, or leave --promise-mode regex away"
        try:
            pattern = re.compile(promise)
        except re.error as error:
            what = f"--completion-promise {promise!r} is not a regular expression"
            raise UserError(what, cause=str(error), hint=hint) from None
        if pattern.fullmatch(""):
            what = f"--completion-promise {promise!r} matches nothing at all"
            raise UserError(what, cause="so any reply could be taken for the promise", hint=hint)


def _cap(number: int | None) -> int | None:
    if number is not None and not 1 <= number <= HIGHEST_CAP:
        cause = "a loop has a cap here" if number < 1 else f"no cap is higher than {HIGHEST_CAP:,}"
        raise UserError(f"--max-iterations {number} makes no sense", cause=cause, hint="--max-iterations 30")
    return number


def _name(place: Place) -> str:
    """`repo-2026-01-06T21-10-00`"""
    folder = place.workspace.rstrip("/").rpartition("/")[2]
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in folder)
    return f"{plain.strip('._-')[:40] or 'loop'}-{place.now:%Y-%m-%dT%H-%M-%S}"


def _remarks(sandbox: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    rows = []
    if values["full_auto"] and values["sandbox"]:
        rows.append(f"--sandbox {sandbox} holds; --full-auto adds nothing to it")
    if values["ask_for_approval"] not in (None, "never"):
        rows.append(
            f"--ask-for-approval {values['ask_for_approval']}: nobody is asked in a loop; what needs it is refused"
        )
    return tuple(rows)
