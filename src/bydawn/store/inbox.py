"""How other processes send requests to a running loop: one file each, renamed into place."""

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from bydawn.core.requests import Request
from bydawn.system.writing import replace_private

_DECODER = msgspec.json.Decoder(Request)


def post(folder: Path, request: Request) -> Path:
    """Leave a request; the worker wakes up and takes it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{time.time_ns()}-{request.id}.json"
    replace_private(path, msgspec.json.encode(request))
    return path


class Inbox:
    """The worker's side: requests that arrived for this run."""

    def __init__(self, folder: Path, run: str) -> None:
        self.folder = folder
        self._run = run
        self._taken: dict[str, Path] = {}
        folder.mkdir(mode=0o700, exist_ok=True)

    def take(self) -> list[Request]:
        """New requests, oldest first. One meant for an earlier run is dropped."""
        found: list[Request] = []
        names = sorted(name for name in os.listdir(self.folder) if name.endswith(".json") and name[0] != ".")
        for name in names:
            request = self._open(self.folder / name)
            if request and request.id not in self._taken:
                self._taken[request.id] = self.folder / name
                found.append(request)
        return found

    def done(self, request: Request) -> None:
        """The request is recorded in the ledger; delete its file."""
        if path := self._taken.pop(request.id, None):
            path.unlink(missing_ok=True)

    def _open(self, path: Path) -> Request | None:
        try:
            request: Request = _DECODER.decode(path.read_bytes())
        except FileNotFoundError:
            return None  # the sender gave up and withdrew it
        except (msgspec.DecodeError, OSError):
            with suppress(OSError):
                path.rename(path.with_suffix(".bad"))
            return None
        if request.run != self._run:
            path.unlink(missing_ok=True)
            return None
        return request
