"""The world in memory: clocks, a ledger, a work tree, the files of the rounds, a channel, a witness."""

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch

from bydawn.core.agent import Agent, Event
from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, EventRecorded, Fact, IterationRecorded, LoopCreated, Record
from bydawn.core.loop import Loop
from bydawn.core.ports import CoolDown, Difference
from bydawn.core.replay import after, replay
from bydawn.core.requests import Request
from bydawn.core.state import LoopState
from bydawn.core.values import Changes, Now, Snapshot

NOON = datetime(2026, 1, 6, 12, tzinfo=UTC)
Files = dict[str, str | None]


class PowerCut(Exception):
    """The worker is gone between one fact and the next."""


class FakeClock:
    """A wall clock that can jump, and working time that cannot."""

    def __init__(self) -> None:
        self.wall = NOON
        self.elapsed = 0.0
        self._slept = 0.0
        self._alarms: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> Now:
        return Now(self.wall, self.elapsed)

    def slept(self) -> float:
        slept, self._slept = self._slept, 0.0
        return slept

    def pass_by(self, seconds: float) -> None:
        """Time goes by; what was to happen then happens."""
        self.elapsed += seconds
        self.wall += timedelta(seconds=seconds)
        for alarm in [alarm for alarm in self._alarms if alarm[0] <= self.elapsed]:
            self._alarms.remove(alarm)
            alarm[1]()

    def jump(self, hours: float) -> None:
        """Somebody sets the wall clock."""
        self.wall += timedelta(hours=hours)

    def suspend(self, hours: float) -> None:
        """The lid is closed: the wall clock goes on, working time does not."""
        self.jump(hours)
        self._slept += hours * 3600

    def at(self, elapsed: float, event: Callable[[], None]) -> None:
        self._alarms.append((elapsed, event))


class MemoryLedger:
    """Facts in a list. Power can be cut after any of them; what was not synced is lost then."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.state = LoopState()
        self.disk_full = False
        self.fills_up_with: type[Fact] | None = None  # the fact that takes the last room on the disk
        self.synced = 0
        self.cut_after: int | None = None  # so many more facts, then the power goes
        self.forgets = False  # does a power cut lose what was not synced?
        self.append(LoopCreated(loop="night", uid="u-1", settings=""))
        self.sync()

    def append(self, fact: AnyFact) -> Record:
        assert len(self.records) < 2000, "this night would never end"
        record = Record(seq=len(self.records) + 1, at=NOON, fact=fact)
        self.records.append(record)
        self.state = after(self.state, record)
        self.disk_full = self.disk_full or isinstance(fact, self.fills_up_with or ())
        if self.cut_after is not None:
            self.cut_after -= 1
            if self.cut_after <= 0:
                self.cut()
        return record

    def sync(self) -> None:
        self.synced = len(self.records)

    def cut(self) -> None:
        """The power goes now."""
        self.cut_after = None
        if self.forgets:
            del self.records[self.synced :]
        self.state = replay(self.records)
        raise PowerCut


class FakeWorkspace:
    """A work tree as a table of files."""

    def __init__(self, files: Files, documents: Sequence[str] = (), protect: Sequence[str] = ()) -> None:
        self.files: Files = files
        self.documents = documents  # no part of what progress is measured by
        self.protect = protect
        self._trees: dict[str, Files] = {}
        self._texts: dict[str, str] = {}  # by form
        self.installed: dict[str, str] = {}  # what is in no tree
        self.cleaned = False  # are the trees gone?
        self.kept: dict[str, str] = {}
        self.gone = False
        self.tidied = 0
        self._last: Files = {}
        self._written: set[str] = set()  # since somebody began to watch
        self.watched = False  # by this process

    def edit(self, changes: Files) -> None:
        self._written |= changes.keys()
        self.files = {path: text for path, text in {**self.files, **changes}.items() if text is not None}

    def snapshot(self) -> Snapshot:
        if self.gone:
            raise UserError("the folder /w is gone", cause="it was deleted")
        before, self._last = self._last, dict(self.files)
        changed = [path for path in {**before, **self.files} if before.get(path) != self.files.get(path)]
        self._trees[self.tree] = dict(self.files)
        work = {path: text for path, text in self.files.items() if not path.startswith(tuple(self.documents))}
        return Snapshot(
            tree=self.tree,
            work=_name(work) if self.documents else "",
            changes=Changes(modified=len(changed), paths=tuple(sorted(changed))),
        )

    @property
    def tree(self) -> str:
        return _name(self.files)

    def keep(self, name: str, tree: str) -> None:
        self.kept[name] = tree

    def read_text(self, path: str, errors: str = "strict") -> str | None:  # noqa: ARG002 - it is text already
        return self.files.get(path)

    def read_bytes(self, path: str) -> bytes | None:
        text = self.files.get(path)
        return None if text is None else text.encode(errors="surrogateescape")

    def put(self, path: str, data: bytes, before: bytes | None) -> bool:
        assert self.read_bytes(path) == before
        self.edit({path: data.decode()})
        return True

    def stamp(self, path: str) -> Hashable:
        return tuple(sorted((name, text) for name, text in self.files.items() if name.startswith(path))) or None

    def read_folder(self, path: str) -> dict[str, str] | None:
        found = {
            name.removeprefix(f"{path}/"): text for name, text in self.files.items() if name.startswith(f"{path}/")
        }
        return {name: text for name, text in found.items() if text is not None} or None

    def tidy(self) -> None:
        self.tidied += 1

    def watch(self) -> None:
        self._written, self.watched = set(), True

    def rewritten(self) -> tuple[str, ...] | None:
        found = (path for path in self._written if any(fnmatch(path, glob) for glob in self.protect))
        return tuple(sorted(found)) if self.watched else None

    def touched(self, before: str, after: str, globs: Sequence[str]) -> tuple[str, ...]:
        old, new = self._trees[before], self._trees[after]
        changed = [path for path in {**old, **new} if old.get(path) != new.get(path)]
        return tuple(sorted(path for path in changed if any(fnmatch(path, glob) for glob in globs)))

    def restore(self, tree: str, paths: Sequence[str]) -> None:
        self.edit({path: self._trees[tree].get(path) for path in paths})

    def at(self, tree: str) -> Files:
        """The files of a tree that was seen, or woven."""
        return self._trees[tree]

    def between(self, before: str, after: str) -> list[Difference]:
        if self.cleaned:
            raise UserError("cannot read the tree", cause=f"{before} and {after} were cleaned away")
        old, new = self._trees[before], self._trees[after]
        paths = sorted(path for path in {**old, **new} if old.get(path) != new.get(path))
        return [Difference(path=path, old=self._form(old.get(path)), new=self._form(new.get(path))) for path in paths]

    def forms(self, tree: str) -> dict[str, str]:
        return {path: self._form(text) for path, text in self._trees[tree].items()}

    def woven(self, tree: str, forms: Mapping[str, str]) -> str:
        changes = {path: self._texts[form] if form else None for path, form in forms.items()}
        files: Files = {path: text for path, text in {**self._trees[tree], **changes}.items() if text is not None}
        self._trees[_name(files)] = files
        return _name(files)

    def tools(self, named: Iterable[str]) -> dict[str, str]:  # noqa: ARG002
        return dict(self.installed)

    def read(self, form: str) -> bytes:
        return self._texts[form].encode()

    def form(self, data: bytes) -> str:
        return self._form(data.decode())

    def _form(self, text: str | None) -> str:
        if text is None:
            return ""
        form = f"100644 {hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()}"
        self._texts[form] = text
        return form


def _name(files: Files) -> str:
    return hashlib.sha1(repr(sorted(files.items())).encode(), usedforsecurity=False).hexdigest()


class MemoryFiles:
    """The bulk of the rounds, by round and name."""

    def __init__(self) -> None:
        self.texts: dict[tuple[int, str], str] = {}
        self.masked: list[tuple[int | str, ...]] = []
        self.list = b""
        self.full = ""  # the name of a file for which there is no room

    def folder(self, round_: int) -> str:
        return f"/rounds/{round_:04}"

    def write(self, round_: int, name: str, text: str | bytes) -> str:
        if name == self.full:
            raise OSError(28, "No space left on device")
        self.texts[round_, name] = text if isinstance(text, str) else text.decode(errors="surrogateescape")
        return f"{self.folder(round_)}/{name}"

    def tail(self, round_: int, name: str, size: int) -> str:
        return self.texts.get((round_, name), "")[-size:]

    def last_lines(self, round_: int, name: str, size: int) -> tuple[list[bytes], bool]:
        data = self.texts.get((round_, name), "").encode()
        return data[-size:].splitlines(), len(data) > size

    def pieces(self, round_: int, name: str) -> Iterator[str]:
        return iter([self.texts.get((round_, name), "")])

    def lines(self, round_: int, name: str) -> Iterator[bytes]:
        return iter(self.texts.get((round_, name), "").encode().splitlines())

    def last(self) -> int:
        return max((round_ for round_, _ in self.texts), default=0)

    def keep_list(self, data: bytes) -> None:
        self.list = data

    def last_list(self) -> bytes:
        return self.list

    def mask(self, round_: int, *names: str) -> None:
        self.masked.append((round_, *names))


class FakeChannel:
    """Requests lie here until they stand in the ledger."""

    def __init__(self) -> None:
        self.waiting: list[Request] = []
        self.done_with: list[Request] = []
        self.when_done: Callable[[Request], None] = lambda _: None

    def take(self) -> list[Request]:
        taken, self.waiting = self.waiting, []
        return taken

    def done(self, request: Request) -> None:
        self.done_with.append(request)
        self.when_done(request)


class FakeDrop:
    """Records lie here until they stand in the ledger."""

    def __init__(self) -> None:
        self.waiting: list[EventRecorded | IterationRecorded] = []
        self.when_done: Callable[[], None] = lambda: None

    def take(self, known: Collection[str]) -> list[EventRecorded | IterationRecorded]:
        self.waiting = [fact for fact in self.waiting if fact.record not in known]
        return self.waiting[:2]

    def done(self, fact: EventRecorded | IterationRecorded) -> None:
        self.when_done()
        self.waiting.remove(fact)


class FakeCoolDowns:
    """What all loops know of their agents' limits, by the agent's name."""

    def __init__(self) -> None:
        self.known: dict[str, CoolDown] = {}

    def of(self, agent: Agent, now: datetime) -> CoolDown | None:
        known = self.known.get(agent.name)
        return known if known and now < known.until else None

    def tell(self, agent: Agent, until: datetime, detail: str) -> None:
        self.known[agent.name] = CoolDown(agent=agent.name, until=until, detail=detail, loop="night")


class Witness:
    """A follower that remembers."""

    def __init__(self) -> None:
        self.facts: list[AnyFact] = []
        self.events: list[Event] = []

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        self.facts.append(fact)

    def heard(self, event: Event) -> None:
        self.events.append(event)
