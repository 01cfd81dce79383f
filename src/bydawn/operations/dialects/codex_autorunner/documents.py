"""The three documents: read one, replace one, open one in an editor."""

from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.dialects.codex_autorunner.config import CONFIG, NAME, Config
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.system.reading import read_text
from bydawn.system.writing import replace_text

KINDS = ("todo", "progress", "opinions")
_LONGEST = 1 << 20  # characters; documents are written by people


def path_of(root: Path, config: Config, kind: str) -> Path:
    """Where a document is; it is there, and through no link that leads out."""
    path = config.documents[kind]
    try:
        there = read_text(root, path) is not None
    except UserError as error:
        hint = f"put a text file there, or name another one: {config.where.get(f'docs.{kind}', CONFIG)}"
        raise UserError(error.what, cause=error.cause, hint=hint) from None
    if not there:
        raise missing(path)
    return root / path


def refuse_missing_extras(root: Path, config: Config) -> None:
    """A prompt would lack them without a word."""
    for extra in config.extras:
        if extra.include_in_prompt and read_text(root, extra.path) is None:
            hint = f"write it, or remove it: {config.where.get('docs.extras', CONFIG)}"
            raise UserError(f"{extra.path} is missing", cause="docs.extras has it for every prompt", hint=hint)


def missing(path: str) -> UserError:
    return UserError(f"{path} is missing", cause="every run reads it", hint=f"`{NAME} init` writes what is missing")


def read(root: Path, config: Config) -> dict[str, str]:
    """All three, as they are."""
    return {kind: read_text(root, path) or "" for kind, path in config.documents.items()}


def write(root: Path, config: Config, kind: str, content: str) -> None:
    """Replace one, whole or not at all."""
    refuse_inside_a_round()
    if len(content) > _LONGEST:
        cause = f"it has {len(content):,} characters; at most {_LONGEST:,} are written"
        raise UserError(f"this is too much for {config.documents[kind]}", cause=cause, hint="shorten it")
    path = path_of(root, config, kind)
    if path.is_symlink():
        raise UserError(f"{config.documents[kind]} is a link", cause="only a file is replaced", hint="edit it yourself")
    replace_text(path, content, 0o644)
