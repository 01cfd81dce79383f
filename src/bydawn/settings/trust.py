"""What a repository's settings could run or loosen, and whether a person has agreed to it.

Agreements are kept outside every repository.
"""

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from bydawn.core.digests import sha256
from bydawn.core.errors import OwnFailure, UserError
from bydawn.settings.layers import Given, Settings
from bydawn.settings.setting import Layer, looser
from bydawn.system.writing import make_private, others_can_write, replace_private

Shown = dict[str, list[str]]  # what a person saw of each setting, line by line


class Powers(msgspec.Struct, frozen=True, kw_only=True):
    """What a repository asks to be trusted with."""

    commands: tuple[Given, ...] = ()  # these make up the digest
    loosened: tuple[Given, ...] = ()  # numbers less safe than our own; changing one does not ask again

    @property
    def empty(self) -> bool:
        return not (self.commands or self.loosened)

    @property
    def digest(self) -> str:
        values = sorted((given.key, given.value, given.text) for given in self.commands)
        return sha256(msgspec.json.encode(values)).hexdigest()[:32]


def powers_of(settings: Settings, now: datetime, layer: Layer = Layer.PROJECT) -> Powers:
    """Everything in a repository's file that needs trust, even if something stronger hides it."""
    rows = [given for each in settings.given.values() for given in each if given.layer is layer]
    runs = [given for given in rows if given.setting.commands or given.value in given.setting.never_in_project]
    return Powers(
        commands=tuple(runs),
        loosened=tuple(
            given
            for given in rows
            if given not in runs and (given.raises or looser(given.setting, given.value, given.setting.default, now))
        ),
    )


def in_force(powers: Powers, settings: Settings) -> tuple[Given, ...]:
    """Those that would have an effect: nothing stronger hides them."""
    return tuple(given for given in (*powers.commands, *powers.loosened) if settings[given.key] is given)


def difference(before: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> list[str]:
    """What changed since trust was given, as lines with `-` and `+`."""
    from difflib import ndiff  # only needed when asking again

    lines = []
    for key in sorted({*before, *now}):
        rows = ndiff(before.get(key, []), now.get(key, []))
        lines += [f"{row[0]} {key} = {row[2:]}" for row in rows if row[0] in "+-"]
    return lines


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """An agreement: these values, in this folder."""

    folder: str  # or the configuration file of another tool
    digest: str
    shown: Shown
    at: datetime
    by: str
    once: bool = False
    root: str = ""  # the folder itself, if `folder` is a file in it
    identity: tuple[int, ...] = ()  # device and inode of the folder and of its `.git`
    origin: str = ""  # the first commits of its repository, which clones and copies have, too

    @property
    def inner(self) -> str:
        """The configuration file in it, if it is about one."""
        return os.path.relpath(self.folder, self.root)


def identity_of(folder: Path) -> tuple[int, ...]:
    """It stays when the folder is moved on one file system; empty without a repository."""
    try:
        found = [os.stat(path, follow_symlinks=False) for path in (folder, folder / ".git")]
    except OSError:
        return ()
    return tuple(number for each in found for number in (each.st_dev, each.st_ino))


class Trusts:
    """All agreements of this user."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def given(self, folder: Path, *, once: bool = False) -> Trust | None:
        """The agreement about a folder, permanent or for one run."""
        found = self._read(self._path(folder, once=once))
        return found if found and found.folder == str(folder) else None

    def moved(self, root: Path, config: str) -> Trust | None:
        """The agreement about a folder that was moved here: the same by its identity, and gone from its old path."""
        identity = identity_of(root)
        return next(
            (
                each
                for each in self._alike(root, config)
                if identity and each.identity == identity and not os.path.lexists(each.root)
            ),
            None,
        )

    def of_copy(self, root: Path, config: str, origin: str) -> Trust | None:
        """The last agreement about another copy of a repository."""
        alike = [each for each in self._alike(root, config) if origin and each.origin == origin]
        return max(alike, key=lambda each: each.at, default=None)

    def _alike(self, root: Path, config: str) -> list[Trust]:
        inner = os.path.relpath(root / config, root)
        return [
            each for each in self.all() if not each.once and each.root not in ("", str(root)) and each.inner == inner
        ]

    def follow(self, root: Path, config: str) -> None:
        """A person moved a folder: what they agreed to moves along."""
        if self.given(root / config) is None and (trust := self.moved(root, config)):
            self.give(msgspec.structs.replace(trust, folder=str(root / config), root=str(root)))
            self._path(Path(trust.folder)).unlink(missing_ok=True)

    def covers(self, folder: Path, powers: Powers) -> bool:
        """Has a person agreed to exactly this, permanently or for one run?"""
        agreed = (self.given(folder, once=once) for once in (False, True))
        return any(trust is not None and trust.digest == powers.digest for trust in agreed)

    def use(self, folder: Path, powers: Powers) -> bool:
        """The same, using up an agreement for one run; if two try, only one gets it."""
        lasting = self.given(folder)
        if lasting and lasting.digest == powers.digest:
            return True
        trust = self.given(folder, once=True)
        if trust is None or trust.digest != powers.digest:
            return False
        try:
            self._path(folder, once=True).unlink()
        except FileNotFoundError:
            return False
        return True

    def give(self, trust: Trust) -> None:
        make_private(self._root)
        path = self._path(Path(trust.folder), once=trust.once)
        replace_private(path, msgspec.json.format(msgspec.json.encode(trust), indent=2), durable=True)

    def revoke(self, folder: Path) -> bool:
        """Withdraw every agreement about a folder; was there one?"""
        found = False
        for once in (False, True):
            with suppress(FileNotFoundError):
                self._path(folder, once=once).unlink()
                found = True
        return found

    def all(self) -> list[Trust]:
        names = sorted(os.listdir(self._root)) if self._root.is_dir() else []
        found = [self._read(self._root / name) for name in names if name.endswith(".json")]
        return sorted((trust for trust in found if trust), key=lambda trust: (trust.folder, trust.once))

    def _path(self, folder: Path, *, once: bool = False) -> Path:
        digest = sha256(os.fsencode(folder)).hexdigest()[:16]
        return self._root / f"{digest}{'.once' if once else ''}.json"

    def _read(self, path: Path) -> Trust | None:
        try:
            for place in (path.parent, path):
                _refuse_if_not_ours(place)
            return msgspec.json.decode(path.read_bytes(), type=Trust)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise OwnFailure(
                f"{path} cannot be read", cause=str(error), hint="delete it; bydawn will ask for your trust again"
            ) from None


def _refuse_if_not_ours(path: Path) -> None:
    """An agreement that another user could have written does not count."""
    status = path.stat()
    if others_can_write(status) or os.getuid() not in (0, status.st_uid):
        raise UserError(
            f"other users can write to {path}",
            cause="they could forge what you trust",
            hint=f"check it, then run chmod go-w {shlex.quote(str(path))}",
        )
