"""Read settings from every place they can be set, and change one."""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.loop import Checkpoint, CheckpointMode
from bydawn.core.redact import Secrets
from bydawn.core.text import near
from bydawn.core.values import Act, Advice
from bydawn.settings import files
from bydawn.settings.layers import Given, Problem, Reading, Settings, settle
from bydawn.settings.setting import Layer, Setting
from bydawn.settings.table import BY_KEY
from bydawn.system.reading import read_text
from bydawn.system.user_folders import state_folder


def gather(folder: Path | None, flags: Iterable[Given] = ()) -> Settings:
    """All layers for a folder; without a folder, all but the project's. Problems are collected, not raised."""
    readings = [files.read(files.user_file()), files.read_environment(os.environ), Reading(given=tuple(flags))]
    if folder is not None:
        readings.append(_with_prompts(files.read(files.project_file(folder)), folder))
    return settle(readings, datetime.now(UTC))


def _with_prompts(reading: Reading, folder: Path) -> Reading:
    """Replace `prompt = "@FILE"` and `template = "FILE"` of a project by the text: people trust the text."""
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
        cause = "it is not a regular file" if (folder / path).exists() else f"it does not exist in {folder}"
        raise UserError(f"cannot read the {key} {path}", cause=cause, hint="create that file")
    return text


def secrets_of(settings: Settings) -> Secrets:
    """What must never be written to disk, from these settings and the environment."""
    known = Secrets(os.environ, settings.texts("secrets"), settings.texts("not_secret"))
    variables, addresses = settings.texts("agent_env"), settings.texts("notify")
    if not variables and not addresses:
        return known
    from bydawn.core.secret_settings import SecretSettings  # few people have them

    return known.knowing(SecretSettings(agent_env=variables, notify=addresses).texts)


def secrets() -> Secrets:
    """The same without a project's settings; a broken file must not block `stop`."""
    return secrets_of(gather(None))


def known(key: str) -> Setting:
    """The setting of that name, or an error that suggests one."""
    if key in BY_KEY:
        return BY_KEY[key]
    raise UserError(f"there is no setting {key!r}", hint=Advice(near(key, BY_KEY), Act("config show"), " lists them"))


def in_force(given: Given) -> str:
    """The value as a person would write it; if none is set, what applies without one."""
    if given.key == "state_dir" and given.value is None:
        return str(state_folder())
    return (given.shown if given.layer is not Layer.DEFAULT else "") or given.setting.usual


def checkpoint_of(settings: Settings) -> Checkpoint | None:
    """The text at which a loop pauses: `TOKEN` or `TOKEN:exit`; the token itself may contain a colon."""
    if (text := settings.text("checkpoint")) is None:
        return None
    token, _, mode = text.rpartition(":")
    if mode not in {*CheckpointMode}:
        token, mode = text, CheckpointMode.PAUSE
    if not token.strip():
        raise UserError(
            "--checkpoint needs a text", cause=f"it is {text!r}", hint="for example: --checkpoint 'HARD STOP'"
        )
    return Checkpoint(token=token.strip(), mode=CheckpointMode(mode))


# -- changing one ------------------------------------------------------------------------------------------------------


def change(file: files.File, key: str, words: Sequence[str]) -> None:
    """Write a setting to a file; without words, remove it."""
    setting = known(key)
    if file.layer not in setting.layers:
        raise UserError(
            f"{key} cannot be set by a project",
            cause="only you can set it",
            hint=Advice("set it in your own file: ", Act(f"config set --user {key} …")),
        )
    if not words:
        files.write(file, key, None)
        return
    if len(words) > 1 and not setting.kind.many:
        raise UserError(f"{key} takes a single value", cause=f"{len(words)} were given", hint="put it in quotes")
    try:
        setting.kind.from_words(words)
    except ValueError as error:
        hint = Advice("for example: ", Act("config set", key, setting.kind.example))
        raise UserError(f"{key} must be {setting.kind.wanted}", cause=str(error), hint=hint) from None
    files.write(file, key, setting.kind.for_file(words))
