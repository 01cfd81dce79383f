"""The append-only ledger of a loop, and the snapshot that saves reading all of it."""

import errno
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import BinaryIO, get_args

import msgspec

from bydawn import __version__
from bydawn.core.errors import OwnFailure
from bydawn.core.facts import AnyFact, Record
from bydawn.core.replay import after
from bydawn.core.state import LoopState, shape_of
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import Act, Advice
from bydawn.store.folder import LoopFolder
from bydawn.system.paths import read_whole
from bydawn.system.writing import draft_of, full_sync, replace_private, sync, write_private

VERSION = 2  # 1: what was found after a round stood beside what its agent said
_RESERVE_BYTES = 64 * 1024
_BLOCK = 64 << 10  # bytes that are read at once from the end
_CHUNK = 256 << 10  # … and to verify a long ledger: 19 MB take 3 ms
_SEAL = len(b',"crc":"00000000"}')


class Damaged(OwnFailure):
    """The ledger is unusable from some line on."""

    def __init__(self, path: Path, line: int, cause: str) -> None:
        super().__init__(
            f"the ledger {path} is damaged at line {line}",
            cause=cause,
            hint=Advice(
                "run ", Act("doctor --repair", path.parent.name), "; it moves the damaged part aside and says where"
            ),
        )
        self.line = line


class OtherVersion(OwnFailure):
    """The ledger was written by a newer bydawn, or by an older one. Nothing in it is damaged."""

    def __init__(self, path: Path, line: int, version: int) -> None:
        what = f"the ledger {path} was written by a newer bydawn"
        hint = Advice("upgrade bydawn; ", Act("doctor --repair"), " would not help")
        if version < VERSION:
            what = f"the loop {path.parent.name} began with an older bydawn"
            hint = Advice("finish it there, or ", Act("run --new", PLACEHOLDER), " takes its list and checks")
        cause = f"line {line} has format version {version}; this bydawn reads version {VERSION}"
        super().__init__(what, cause=cause, hint=hint)


class Unwritable(OwnFailure):
    """The ledger could not be written; nothing may be done that is not recorded."""


class _Line(msgspec.Struct, kw_only=True):
    v: int
    seq: int
    at: datetime
    type: str
    data: msgspec.Raw
    crc: str


class StateSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`state.json`: the state after the first `offset` bytes; `start` is where the last of those lines begins."""

    v: int
    writer: str  # another version, or another shape of the state, may fold the same facts differently
    start: int
    offset: int
    crc: str  # of that last line
    lines: int  # a CRC of all those bytes
    sum: int  # of the state below
    state: msgspec.Raw


@cache
def _lines() -> msgspec.json.Decoder[_Line]:
    return msgspec.json.Decoder(_Line)


@cache
def _snapshots() -> msgspec.json.Decoder[StateSnapshot]:
    return msgspec.json.Decoder(StateSnapshot)


@cache
def _states() -> msgspec.json.Decoder[LoopState]:
    return msgspec.json.Decoder(LoopState)


@cache
def _facts() -> dict[str, type[AnyFact]]:
    return {kind.__struct_config__.tag: kind for kind in get_args(AnyFact)}


@cache
def _decoder(kind: str) -> msgspec.json.Decoder[AnyFact] | None:
    """Created when the first fact of its kind is read: commands that only read see few."""
    return msgspec.json.Decoder(_facts()[kind]) if kind in _facts() else None


def encode(record: Record) -> bytes:
    """One line: the envelope, the fact's own fields as `data`, and a CRC over everything before it."""
    kind = str(record.fact.__struct_config__.tag)
    fields = msgspec.json.encode(record.fact)[len(f'{{"type":"{kind}"') :].lstrip(b",")
    at = msgspec.json.encode(record.at).decode()
    body = f'{{"v":{VERSION},"seq":{record.seq},"at":{at},"type":"{kind}","data":{{'.encode() + fields
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


class _Bad(Exception):
    """Why a line is rejected."""


class _OtherVersion(Exception):
    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


def decode(line: bytes, seq: int) -> Record:
    """The record in a whole line; raises `_Bad` or `_OtherVersion`."""
    parsed = _envelope(line.rstrip(b"\n"), seq)
    decoder = _decoder(parsed.type)
    if decoder is None:
        raise _Bad(f"unknown record type {parsed.type!r}")
    try:
        return Record(seq=seq, at=parsed.at, fact=decoder.decode(parsed.data))
    except msgspec.DecodeError as error:
        raise _Bad(f"not a {parsed.type}: {error}") from None


def _envelope(line: bytes, seq: int) -> _Line:
    """The line, decoded and verified except for the fact itself."""
    try:
        parsed = _lines().decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _Bad(f"not a record: {error}") from None
    if parsed.v > VERSION:
        raise _OtherVersion(parsed.v)
    if parsed.crc != f"{zlib.crc32(line[:-_SEAL]):08x}":
        raise _Bad("its checksum does not match")
    if parsed.v < VERSION:
        raise _OtherVersion(parsed.v)
    if parsed.seq != seq:
        raise _Bad(f"expected record {seq}, found {parsed.seq}")
    return parsed


def read(path: Path, offset: int = 0, seq: int = 0) -> Iterator[tuple[Record, int]]:
    """Every record after `offset`, with the offset after it. A last line without newline is not a record yet."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(offset)
        yield from _read_on(file, path, offset, seq)


def _read_on(file: BinaryIO, path: Path, offset: int, seq: int) -> Iterator[tuple[Record, int]]:
    for line in file:
        if not line.endswith(b"\n"):
            return
        seq += 1
        offset += len(line)
        yield _record(line, seq, path), offset


def _record(line: bytes, seq: int, path: Path) -> Record:
    try:
        return decode(line, seq)
    except _Bad as bad:
        raise Damaged(path, seq, str(bad)) from None
    except _OtherVersion as other:
        raise OtherVersion(path, seq, other.version) from None


def records(folder: LoopFolder) -> Iterator[Record]:
    """All facts of a loop, oldest first."""
    return (record for record, _ in read(folder.ledger))


def torn_bytes(folder: LoopFolder) -> int:
    """How many bytes behind the last whole line there are."""
    return folder.ledger.stat().st_size - load(folder)[1]


def backwards(folder: LoopFolder) -> Iterator[Record]:
    """The same, newest first; a long ledger costs no more than what is asked for."""
    state, end = load(folder)
    if state.seq:
        with folder.ledger.open("rb") as file:
            for seq, line in zip(range(state.seq, 0, -1), _lines_back(file, end), strict=False):
                yield _record(line, seq, folder.ledger)


def _lines_back(file: BinaryIO, end: int) -> Iterator[bytes]:
    """The lines before this offset, the last one first."""
    first, end = b"", end - 1  # without the last newline
    while end > 0:
        step = min(_BLOCK, end)
        end -= step
        first, *lines = (os.pread(file.fileno(), step, end) + first).split(b"\n")
        yield from reversed(lines)
    yield first


def load(folder: LoopFolder, say: Callable[[str], None] = lambda _: None) -> tuple[LoopState, int]:
    """The state and the end of what it covers: from the snapshot and the tail, or from the whole ledger."""
    return _load(folder, say, verify=False)[:2]


def _load(folder: LoopFolder, say: Callable[[str], None], *, verify: bool) -> tuple[LoopState, int, int]:
    """The same, with a CRC of all lines if the lines that the snapshot stands for are to be verified, too."""
    data, doubted = _snapshot_of(folder), False
    try:
        fd = os.open(f"{folder.path}/ledger.jsonl", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if data is not None:
            raise Damaged(folder.ledger, 1, "the file is missing, but state.json is there") from None
        return LoopState(), 0, 0
    try:
        try:
            state, offset, lines = _believable(data, fd, verify=verify)
        except (msgspec.DecodeError, OSError, ValueError, _Bad, _OtherVersion):
            (state, offset, lines), doubted = (LoopState(), 0, 0), True
        covered = offset
        if os.pread(fd, 1, offset):  # rarely: then there is more to read, and a file is worth its system calls
            with os.fdopen(fd, "rb", closefd=False) as file:
                file.seek(offset)
                for record, end in _read_on(file, folder.ledger, offset, state.seq):
                    state, offset = after(state, record), end
        lines = _crc_of(fd, covered, offset, lines) if verify else 0
    finally:
        os.close(fd)
    if doubted:
        say(f"{folder.snapshot} did not match the ledger and was rebuilt from it")
    return state, offset, lines


def _crc_of(fd: int, start: int, end: int, crc: int = 0) -> int:
    """Of these bytes, after those that have this one."""
    while start < end and (chunk := os.pread(fd, min(_CHUNK, end - start), start)):
        start, crc = start + len(chunk), zlib.crc32(chunk, crc)
    return crc


@cache
def writer() -> str:
    """What marks a snapshot we can use: this version, with a state of this shape."""
    return f"{__version__} {shape_of(LoopState)}"


def _snapshot_of(folder: LoopFolder) -> bytes | None:
    try:
        return read_whole(f"{folder.path}/state.json")
    except OSError:
        return None


def _believable(data: bytes | None, ledger: int, *, verify: bool) -> tuple[LoopState, int, int]:
    """What the snapshot says, if it is intact and the ledger's line at its offset is the one it was made after.

    To look, that is enough; who goes on from there wants to `verify` all lines before, which is a hundred times quicker
    than to read them.
    """
    if data is None:
        return LoopState(), 0, 0
    snapshot = _snapshots().decode(data)
    if (snapshot.v, snapshot.writer) != (VERSION, writer()):
        return LoopState(), 0, 0
    line = os.pread(ledger, snapshot.offset - snapshot.start, snapshot.start)
    if zlib.crc32(snapshot.state) != snapshot.sum or not line.endswith(b'"crc":"%s"}\n' % snapshot.crc.encode()):
        raise _Bad("it is damaged, or another ledger's")
    state = _states().decode(snapshot.state)
    _envelope(line.rstrip(b"\n"), state.seq)
    if verify and _crc_of(ledger, 0, snapshot.offset) != snapshot.lines:
        raise _Bad("a line has changed since")
    return state, snapshot.offset, snapshot.lines


class LoopLedger:
    """The one writer of the ledger; only the holder of the loop's lock may open it."""

    def __init__(self, folder: LoopFolder, say: Callable[[str], None], hide: Callable[[str], str]) -> None:
        self.folder = folder
        self._hide = hide
        self.disk_full = False
        self.torn: tuple[int, str] | None = None
        self._path = folder.ledger
        new = not self._path.exists()
        if new:
            load(folder)  # a missing ledger is not a new one
        self._fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if new:
            sync(folder.path)
        self._broken = ""
        self._synced = True
        with suppress(OSError):
            draft_of(folder.snapshot).unlink(missing_ok=True)
        try:
            self.state, self._end, self._lines = _load(folder, say, verify=True)
            self._start = self._end
            self._crc = ""
            self._cut_torn_tail(say)
        except BaseException:
            self.close()
            raise
        self._keep_reserve()

    def append(self, fact: AnyFact) -> Record:
        """Append one fact, without the secrets in it. It is durable, and may be acted upon, only after `sync`."""
        record = Record(seq=self.state.seq + 1, at=datetime.now(UTC), fact=fact)
        line = encode(record)
        if self._hide(text := line.decode()) != text:
            from bydawn.core.redact import rewritten  # commands that only read do not need it

            record = msgspec.structs.replace(record, fact=rewritten(fact, self._hide))
            line = encode(record)
        self._write(line)
        self._start, self._end = self._end, self._end + len(line)
        self._crc = line[-11:-3].decode()
        self._lines = zlib.crc32(line, self._lines)
        self._synced = False
        self.state = after(self.state, record)
        return record

    def sync(self) -> None:
        """When this returns, everything appended so far is on disk."""
        if self._synced:
            return
        self._refuse_if_broken()
        try:
            status = os.fstat(self._fd)
            if status.st_nlink == 0:
                raise FileNotFoundError(errno.ENOENT, "it was deleted while the loop was running")
            if status.st_size != self._end:
                raise OSError(errno.EIO, "another process wrote to it while the loop was running")
            os.fdatasync(self._fd) if hasattr(os, "fdatasync") else full_sync(self._fd)
        except OSError as error:
            # After a failed sync the kernel may have dropped the pages: this descriptor is never trusted again.
            self._broken = f"{error.strerror}"
            self._refuse_if_broken()
        self._synced = True

    def snapshot(self) -> None:
        """Replace `state.json`; it is only a view, so a full disk may prevent it."""
        if not self._crc:
            return
        state = msgspec.json.encode(self.state)
        value = StateSnapshot(
            v=VERSION,
            writer=writer(),
            start=self._start,
            offset=self._end,
            crc=self._crc,
            lines=self._lines,
            sum=zlib.crc32(state),
            state=msgspec.Raw(state),
        )
        with suppress(OSError):
            replace_private(self.folder.snapshot, msgspec.json.encode(value))

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, line: bytes) -> None:
        self._refuse_if_broken()
        try:
            self._write_whole(line)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self._broken = f"{error.strerror}"
                self._refuse_if_broken()
            # The reserve is for this moment: the loop's last records still fit.
            self.disk_full = True
            with suppress(OSError):
                self.folder.reserve.unlink(missing_ok=True)
            try:
                self._write_whole(line)
            except OSError as again:
                self._broken = f"{again.strerror}"
                self._refuse_if_broken()

    def _write_whole(self, line: bytes) -> None:
        """Write the whole line or nothing."""
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                written += os.write(self._fd, line[written:])  # says why the first write was short
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self._fd, self._end)
            raise

    def _refuse_if_broken(self) -> None:
        if self._broken:
            raise Unwritable(
                f"the ledger {self._path} can no longer be written",
                cause=self._broken,
                hint=Advice(
                    "check the disk, then run ", Act("resume", self.folder.name), "; every recorded round is safe"
                ),
            )

    def _cut_torn_tail(self, say: Callable[[str], None]) -> None:
        """A line without newline was being written when the power failed; keep a copy and cut it off."""
        size = os.fstat(self._fd).st_size
        if size == self._end:
            return
        torn = os.pread(self._fd, size - self._end, self._end)
        aside = self.folder.ledger_part(f"{self.state.seq + 1}.torn")
        write_private(aside, torn)
        os.ftruncate(self._fd, self._end)
        self._synced = False
        self.torn = (len(torn), aside.name)
        say(f"the last {len(torn)} bytes of {self._path} were an incomplete record; they were moved to {aside.name}")

    def _keep_reserve(self) -> None:
        if not self.folder.reserve.exists():
            with suppress(OSError):
                write_private(self.folder.reserve, b"\0" * _RESERVE_BYTES)
