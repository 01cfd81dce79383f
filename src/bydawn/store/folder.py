"""Where everything is on disk: the state folder of a user, and the folder of each loop in it."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bydawn.core import layout
from bydawn.core.loop import Loop
from bydawn.system.paths import read_whole

if TYPE_CHECKING:
    from bydawn.core.secret_settings import SecretSettings


class _Inside:
    """The path of what has this name in a folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: "_Folder", _: type["_Folder"]) -> Path:
        return folder.path / self._name


class _Folder(msgspec.Struct, frozen=True):
    path: Path

    def __str__(self) -> str:
        return str(self.path)


class StateFolder(_Folder, frozen=True):
    """What bydawn keeps for a user: `loops/<home>/<id>` with a home for each workspace, and what all loops share."""

    loops = _Inside("loops")
    cool_downs = _Inside("cool-downs")
    places = _Inside("places")
    trust = _Inside("trust")
    watches = _Inside("watches")  # locks of those who start loops again
    web = _Inside("web")  # locks of web servers, and the keys to their pages
    documents = _Inside("documents")  # locks of documents that people save, and what each saved last
    asked = _Inside("asked")  # questions to agents outside any round, while they are asked or if they failed

    def every_loop(self) -> Iterator["LoopFolder"]:
        return (folder for home in _listed(self.loops) for folder in loops_in(home))


class LoopFolder(_Folder, frozen=True):
    """What bydawn keeps for one loop."""

    settings = _Inside("loop.json")
    next_settings = _Inside("loop.json.next")  # changed ones, until the ledger has their digest
    secrets = _Inside("secrets.json")  # the values of settings that may hold some
    ledger = _Inside("ledger.jsonl")
    snapshot = _Inside("state.json")
    reserve = _Inside("reserve")  # given up when the disk is full, so that the last facts find room
    lock = _Inside("lock")
    heartbeat = _Inside("heartbeat")  # touched by its worker again and again; only its time means something
    log = _Inside(layout.LOG)
    inbox = _Inside("inbox")
    git = _Inside("git")
    rounds = _Inside(layout.ROUNDS)
    last_list = _Inside("list.z")  # the task list as it was last seen whole, compressed
    checkouts = _Inside(layout.CHECKOUTS)
    chat = _Inside("chat.jsonl")  # what people asked about it, and the answers
    chat_lock = _Inside("chat.lock")  # held while a question is answered
    schema = _Inside("answer.schema.json")  # of a reply, for agents that want a file
    temporary = _Inside("tmp")  # of checks, while they run
    builds = _Inside("builds")  # what checks have built in checkouts

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def home(self) -> Path:
        """The folder that holds all loops of its workspace."""
        return self.path.parent

    @property
    def state_folder(self) -> StateFolder:
        return StateFolder(self.path.parents[2])

    def round(self, number: int) -> Path:
        return self.path / layout.round_file(number)

    def round_file(self, number: int, name: str) -> Path:
        return self.path / layout.round_file(number, name)

    def ledger_part(self, mark: str) -> Path:
        """Where a part of the ledger that cannot be believed is set aside."""
        return self.path / f"ledger.{mark}"

    def read_loop(self) -> Loop:
        """The settings it was started with; raises `OSError` or `msgspec.DecodeError`."""
        return _loops().decode(read_whole(f"{self.path}/loop.json"))

    def with_secrets(self, loop: Loop) -> Loop:
        """The loop with the values that are kept apart; if they are missing, as it is."""
        kept = self._kept()
        return kept.put_into(loop) if kept else loop

    def secret_texts(self) -> tuple[str, ...]:
        """What its settings say that must never be written anywhere else."""
        kept = self._kept()
        return tuple(kept.texts) if kept else ()

    def _kept(self) -> "SecretSettings | None":
        try:
            data = read_whole(f"{self.path}/secrets.json")
        except OSError:
            return None
        from bydawn.core.secret_settings import SecretSettings  # few loops have them

        try:
            return msgspec.json.decode(data, type=SecretSettings)
        except msgspec.DecodeError:
            return None


@cache
def _loops() -> msgspec.json.Decoder[Loop]:
    return msgspec.json.Decoder(Loop)


def loops_in(home: Path) -> Iterator[LoopFolder]:
    return map(LoopFolder, _listed(home))


def _listed(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in sorted(os.listdir(folder))]
    except (FileNotFoundError, NotADirectoryError):
        return []
