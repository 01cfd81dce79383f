"""Keys to the web page: codes that are good for one use, and the sessions they open. Only digests are on disk."""

import os
import secrets
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import msgspec

from bydawn.core.digests import sha256
from bydawn.store.folder import StateFolder
from bydawn.system.writing import make_private, write_private

CODE_MINUTES = 5
SESSION_DAYS = 30
_SIGNS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that looks like another: a code may be typed
_CODE = 12  # signs, about 59 bits


class Role(StrEnum):
    """What a visitor may do."""

    LOOK = "look"
    STEER = "steer"


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What a code or a session is good for."""

    role: Role
    server: str  # which server takes it: `bydawn`, `rloop`, …
    until: datetime

    def opens(self, server: str) -> bool:
        return self.server == server and datetime.now(UTC) < self.until


class WebKeys:
    """The codes and sessions of one server, in files that are named after the digest of what they open."""

    def __init__(self, root: StateFolder, server: str) -> None:
        self._root = root.web
        self._server = server

    def new_code(self, role: Role) -> str:
        """A code to sign in with, once, within five minutes."""
        code = "".join(secrets.choice(_SIGNS) for _ in range(_CODE))
        self._keep("codes", code, role, timedelta(minutes=CODE_MINUTES))
        return code

    def new_session(self, role: Role) -> str:
        session = secrets.token_urlsafe(32)
        self._keep("sessions", session, role, timedelta(days=SESSION_DAYS))
        return session

    def use_code(self, code: str) -> Role | None:
        """The role that a code gives; if two use it, only one gets it."""
        path = self._path("codes", "".join(sign for sign in code.lower() if sign in _SIGNS))
        key = _read(path)
        if key is None or not key.opens(self._server):
            return None
        try:
            path.unlink()
        except FileNotFoundError:
            return None
        return key.role

    def role_of(self, session: str) -> Role | None:
        key = _read(self._path("sessions", session))
        return key.role if key and key.opens(self._server) else None

    def end(self, session: str) -> None:
        self._path("sessions", session).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what has run out."""
        for folder in (self._root / "codes", self._root / "sessions"):
            for name in os.listdir(folder) if folder.is_dir() else ():
                key = _read(folder / name)
                if key is None or datetime.now(UTC) >= key.until:
                    (folder / name).unlink(missing_ok=True)

    def _keep(self, kind: str, secret: str, role: Role, time: timedelta) -> None:
        make_private(self._root / kind)
        key = Key(role=role, server=self._server, until=datetime.now(UTC) + time)
        write_private(self._path(kind, secret), msgspec.json.encode(key))

    def _path(self, kind: str, secret: str) -> Path:
        return self._root / kind / sha256(secret.encode()).hexdigest()


def _read(path: Path) -> Key | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Key)
    except (OSError, msgspec.DecodeError):
        return None
