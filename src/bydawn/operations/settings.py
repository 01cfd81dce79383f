"""Gather what a person has set, everywhere they can set it, and change it."""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.loop import Checkpoint, CheckpointMode
from bydawn.core.redact import Secrets
from bydawn.settings import files
from bydawn.settings.layers import Given, Problem, Reading, Settings, near, settle
from bydawn.settings.table import BY_KEY, Setting
from bydawn.system.reading import read_text


def gather(folder: Path | None, flags: Iterable[Given] = ()) -> Settings:
    """All layers for a folder, or without a project's where none is given; problems are collected, not raised."""
    readings = [files.read(files.user_file()), files.read_environment(os.environ), Reading(given=tuple(flags))]
    if folder is not None:
        readings.append(_with_prompts(files.read(files.project_file(folder)), folder))
    return settle(readings, datetime.now(UTC))


def _with_prompts(reading: Reading, folder: Path) -> Reading:
    """A project's `prompt = "@FILE"` and `template = "FILE"` mean what stands in there: trust is about the words."""
    given, problems = [], [*reading.problems]
    for each in reading.given:
        if _names_a_file(each):
            try:
                each = msgspec.structs.replace(each, text=words_of(folder, each.key, str(each.value)))
            except UserError as error:
                problems.append(Problem(where=each.where, what=error.what, cause=error.cause, hint=error.hint))
        given.append(each)
    return Reading(given=tuple(given), problems=tuple(problems))


def _names_a_file(given: Given) -> bool:
    is_prompt = given.key == "prompt" and isinstance(given.value, str) and given.value.startswith("@")
    return is_prompt or given.key == "template"


def words_of(folder: Path, key: str, value: str) -> str:
    """The text of the file that a prompt or a template names."""
    path = value.removeprefix("@") if key == "prompt" else value
    text = read_text(folder, path)
    if text is None:
        cause = "it is no plain file" if (folder / path).exists() else f"there is none in {folder}"
        raise UserError(f"the {key} {path} cannot be read", cause=cause, hint="write it there")
    return text


def secrets_of(settings: Settings) -> Secrets:
    """What must never be written down, by these settings and this environment."""
    return Secrets(os.environ, settings.texts("secrets"), settings.texts("not_secret"))


def secrets() -> Secrets:
    """The same for whoever has no settings at hand; a file that is broken must not keep a person from `stop`."""
    return secrets_of(gather(None))


def known(key: str) -> Setting:
    """The setting of that name, or an error that says what it may have been."""
    if key in BY_KEY:
        return BY_KEY[key]
    raise UserError(f"there is no setting {key!r}", hint=f"{near(key)}`bydawn config show` lists them")


def checkpoint_of(settings: Settings) -> Checkpoint | None:
    """The words at which a loop with these settings would stand still."""
    return _checkpoint(settings.text("checkpoint"))


def _checkpoint(text: str | None) -> Checkpoint | None:
    """`TOKEN`, or `TOKEN:exit`; a colon of the token's own does no harm."""
    if text is None:
        return None
    token, _, mode = text.rpartition(":")
    if mode not in {*CheckpointMode}:
        token, mode = text, CheckpointMode.PAUSE
    if not token.strip():
        raise UserError("--checkpoint names no words", cause=f"it is {text!r}", hint="--checkpoint 'HARD STOP'")
    return Checkpoint(token=token.strip(), mode=CheckpointMode(mode))


# -- changing one ------------------------------------------------------------------------------------------------------


def change(file: files.File, key: str, words: Sequence[str]) -> None:
    """Write a setting into a file, or without words take it out of it."""
    setting = known(key)
    if file.layer not in setting.layers:
        raise UserError(
            f"{key} cannot be set by a project",
            cause="a repository has no say in it",
            hint=f"put it into your own file: `bydawn config set --user {key} …`",
        )
    if not words:
        files.write(file, key, None)
        return
    if len(words) > 1 and not setting.kind.many:
        raise UserError(f"{key} is one value", cause=f"{len(words)} were given", hint="put it in quotes")
    try:
        setting.kind.from_words(words)
    except ValueError as error:
        hint = f"for example: `bydawn config set {key} {setting.kind.example}`"
        raise UserError(f"{key} must be {setting.kind.wanted}", cause=str(error), hint=hint) from None
    files.write(file, key, setting.kind.for_file(words))
