"""Build the request for a loop from all settings."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core import kinds, template
from bydawn.core.errors import UserError
from bydawn.core.loop import CHECKS, Check, CommitMode, Hooks, Loop, Match, Mode, Promise, Sessions, Worktree
from bydawn.core.redact import Secrets
from bydawn.operations.settings import checkpoint_of, secrets_of, words_of
from bydawn.settings.layers import Given, Settings
from bydawn.settings.setting import Layer
from bydawn.settings.table import TABLE
from bydawn.store.registry import new_uid


class LoopRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The loop a person asks for."""

    loop: Loop  # without a name; its agents as they were typed, none for the default
    agent_from: Path | None = None  # the folder that relative agent paths start from
    name: str | None = None
    new: bool = False
    state_dir: Path | None = None
    worktrees: str = ""  # the name of the folder for worktrees, if it is not ours
    secrets: Secrets


def loop_request(settings: Settings, workspace: Path, *, name: str | None = None, new: bool = False) -> LoopRequest:
    """The request, from all layers of settings."""
    _refuse_contradictions(settings)
    state_dir = settings.text("state_dir")
    return LoopRequest(
        loop=_loop(settings, workspace),
        # A typed path is relative to the current folder, one in a project's file to that project.
        agent_from=workspace if settings["agent"].layer in (Layer.PROJECT, Layer.DIALECT) else Path.cwd(),
        name=name,
        new=new,
        state_dir=Path(state_dir) if state_dir else None,
        secrets=secrets_of(settings),
    )


def _loop(settings: Settings, workspace: Path) -> Loop:
    """Each setting goes into the field its row names; the ones that need more come after."""
    agent, *others = settings.texts("agent") or ("",)
    fields: dict[str, Any] = {"id": "", "uid": new_uid(), "workspace": str(workspace), "created_at": datetime.now(UTC)}
    for row in TABLE:
        place, _, name = row.field.rpartition(".")
        given = settings[row.key]
        value = _until(given) if row.kind is kinds.MOMENT else given.value
        if name and value is not None and given.layer is not Layer.DEFAULT:  # otherwise the loop's own default applies
            (fields.setdefault(place, {}) if place else fields)[name] = value
    fields["limits"] = fields.get("limits", {}) | _budget(settings.text("budget"))
    fields |= {
        "prompt": _prompt(settings, workspace),
        "agent": agent,
        "others": others,
        "template": _template(settings, workspace),
        "checkpoint": checkpoint_of(settings),
        "checks": _checks(settings),
        "promise": _promise(settings),
    }
    if tree := _worktree(settings):
        fields |= {"worktree": tree, "commit": settings.text("commit") or CommitMode.ON}
    return msgspec.convert(fields, Loop)


def _checks(settings: Settings) -> tuple[Check, ...]:
    return tuple(kind.from_text(text) for kind in CHECKS for text in settings.texts(kind.setting))


def _prompt(settings: Settings, workspace: Path) -> str:
    given = settings["prompt"]
    if given.layer is Layer.FLAG or not isinstance(given.value, str):
        return settings.text("prompt") or ""
    if given.layer is not Layer.PROJECT and given.value.startswith("@"):
        return words_of(workspace, "prompt", given.value)
    return given.text or given.value


def _template(settings: Settings, workspace: Path) -> str | None:
    """The template's text as it is now, so that an agent cannot edit its own prompt later."""
    given = settings["template"]
    if not isinstance(given.value, str) or given.layer is Layer.DIALECT:  # the dialect makes its own of it
        return None
    text = given.text or words_of(workspace, "template", given.value)
    if problem := template.problem(text, settings.text("tasks") or ""):
        hint = f"fix it, or drop --template; the markers are {', '.join(template.FORMS)}"
        raise UserError(f"the template {given.value} cannot be used", cause=problem, hint=hint)
    return text


def _promise(settings: Settings) -> Promise | None:
    text, mode, match = (settings.text(key) for key in ("done_when", "done_mode", "done_match"))
    if text is None and mode is None and match is None:
        return None
    return Promise(text=text or Promise().text, mode=Mode(mode or "tag"), match=Match(match or "end"))


def _worktree(settings: Settings) -> Worktree | None:
    """The branch that is asked for, if one is; where it will be is found when the loop has a name."""
    word = settings.text("worktree") or "off"
    if word.lower() in kinds.NO:
        return None
    return Worktree(branch="" if word.lower() in kinds.YES else word, path="", folder="")


def _budget(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    unit, amount = kinds.budget(text)
    return {"usd": amount} if unit == "usd" else {"tokens": int(amount)}


def _until(given: Given) -> datetime | None:
    if not isinstance(given.value, str):
        return None
    now = datetime.now(UTC)
    found = kinds.next_moment(given.value, now.astimezone())
    if found is None or found <= now:
        raise UserError(f"{given.where}: {given.value!r} is in the past", hint="give a time in the future")
    return found


def _refuse_contradictions(settings: Settings) -> None:
    mode = settings["done_mode"]
    if mode.value not in (None, "tag") and settings.text("done_when") is None:
        raise UserError(
            f"{mode.where}: {mode.value} needs --done-when",
            cause="it says how the agent writes its promise, but not what the promise is",
            hint=f"add --done-when TEXT, or drop {mode.where}",
        )
    if settings["for"].value == 0:
        raise UserError(f"{settings['for'].where}: 0 leaves no time to work", hint="for example: --for 8h")
    if _worktree(settings) and settings.text("commit") == CommitMode.OFF:
        raise UserError(
            f"{settings['commit'].where}: off cannot be used with --worktree",
            cause="only what is committed there can be merged",
            hint="drop it: in a worktree each round is committed",
        )
    for needs in _NEEDS:
        given = settings[needs.key]
        # In a file it may be meant for other loops; a person who types it relies on it.
        if given.layer is Layer.FLAG and given.value != needs.idle and not needs.met(settings):
            hint = f"{needs.hint}, or drop {given.where}"
            raise UserError(f"{given.where} {given.shown} has no effect", cause=needs.cause, hint=hint)


class _Need(msgspec.Struct, frozen=True):
    """What a setting needs to have any effect, unless its value is one that does nothing anyway."""

    key: str
    idle: str | None
    met: Callable[[Settings], bool]
    cause: str
    hint: str


def _converses(settings: Settings) -> bool:
    return Sessions(settings.text("session") or "fresh") is not Sessions.FRESH


def _has_hooks(settings: Settings) -> bool:
    return any(settings.texts(name) for name in Hooks().commands)


_NEEDS = (
    _Need("check_where", "workspace", lambda all_: bool(_checks(all_)), "this loop has no checks", "add one with -k"),
    _Need("on_hook_failure", "ignore", _has_hooks, "this loop has no hooks", "add one, for example with --pre-round"),
    _Need("promise", None, lambda all_: bool(_checks(all_)), "this loop has no checks", "add one with -k"),
    _Need("tests", None, lambda all_: bool(_checks(all_)), "this loop has no checks", "add one with -k"),
    _Need("changed_tests", None, lambda all_: bool(_checks(all_)), "this loop has no checks", "add one with -k"),
    _Need("witness", "off", lambda all_: bool(_checks(all_)), "this loop has no checks", "add one with -k"),
    _Need("ticks", "doubt", lambda all_: bool(all_.text("tasks")), "this loop has no task list", "add one with -t"),
    _Need("session_rounds", None, _converses, "each round starts a fresh conversation", "add --session resume"),
)
