"""Write files for people when they ask for them: what an `init` or a skill consists of. What they changed stays."""

import os
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from bydawn.core.digests import blake2b
from bydawn.core.errors import UserError
from bydawn.dialects import follower
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.system.paths import open_folder, open_regular
from bydawn.system.writing import replace_text

_NONE: Mapping[str, str] = {}


class Fate(StrEnum):
    """What became of a file."""

    CREATED = "created"
    SAME = "same"
    LEFT = "left"  # it is there and differs
    UPDATED = "updated"  # it was as an earlier version of ours had written it
    REPLACED = "replaced"  # a copy of what was there is beside it: `NAME.original.ENDING`


def write(
    folder: Path, texts: Mapping[str, str], *, force: bool = False, known: Mapping[str, str] = _NONE
) -> dict[str, Fate]:
    """Write these files, with the folders around them. `force` replaces what differs, and keeps a copy of it.

    A relative path begins in the folder and leads through no link. A file that still has its `known` digest is
    replaced in any case; a script is executable.
    """
    refuse_inside_a_round()
    found = fates(folder, texts, force=force, known=known)
    for path, fate in found.items():
        root, inner = reached(folder, path)
        if fate is Fate.REPLACED:
            follower.keep(root, inner)
        if fate in (Fate.CREATED, Fate.UPDATED, Fate.REPLACED):
            with open_folder(root, inner.split("/")[:-1], make=True):
                replace_text(root / inner, texts[path], 0o755 if texts[path].startswith("#!") else 0o644)
    return found


def fates(
    folder: Path, texts: Mapping[str, str], *, force: bool = False, known: Mapping[str, str] = _NONE
) -> dict[str, Fate]:
    """What `write` would do with each; what it cannot write is an error."""
    return {path: _fate(folder, path, text.encode(), known.get(path), force=force) for path, text in texts.items()}


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _fate(folder: Path, path: str, wanted: bytes, known: str | None, *, force: bool) -> Fate:
    full, there = folder / path, None
    root, inner = reached(folder, path)
    with suppress(OSError), open_regular(root, inner) as file:
        there = file.read()
    if there == wanted:
        return Fate.SAME
    is_there = os.path.lexists(full)
    is_known = there is not None and digest(there) == known
    if not (force or is_known) and (there is not None or (full.is_symlink() and full.is_file())):
        return Fate.LEFT
    try:
        follower.refuse_unwritable(folder, [path])
        if is_there and there is None:
            raise UserError(f"{path} cannot be replaced", cause="it is a link, or you may not read it")
    except UserError as error:  # no one chooses these paths, so there is no other to give
        hint = "nothing was written; clear the way there, and ask again"
        raise UserError(error.what, cause=error.cause, hint=hint) from None
    if not is_there:
        return Fate.CREATED
    return Fate.UPDATED if is_known else Fate.REPLACED


def reached(folder: Path, path: str) -> tuple[Path, str]:
    """Where a path begins, and the rest, in which no link is followed: a person's own folders may be links."""
    full = Path(path)
    if not full.is_absolute():
        return folder, path
    outer = next(each for each in full.parents if each.is_dir())
    return outer.resolve(), str(full.relative_to(outer))
