"""What a person has agreed to run, kept outside every repository."""

import hashlib
import os
import shlex
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from bydawn.core.errors import OwnFailure, UserError
from bydawn.settings.powers import Powers, Shown
from bydawn.system.writing import make_private, others_can_write, replace_private


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """An agreement: these values, in this folder."""

    folder: str
    digest: str
    shown: Shown
    at: datetime
    by: str
    once: bool = False


class Trusts:
    """All agreements of this user."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def given(self, folder: Path, *, once: bool = False) -> Trust | None:
        """The agreement about a folder, permanent or for one run."""
        found = self._read(self._path(folder, once=once))
        return found if found and found.folder == str(folder) else None

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
        digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
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
            f"others can write to {path}",
            cause="they could forge what you trust",
            hint=f"check it, then run chmod go-w {shlex.quote(str(path))}",
        )
