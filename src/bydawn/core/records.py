"""What an agent, or a person's own session, records about its work. All of it is a claim: shown, never believed."""

from datetime import datetime

import msgspec
from msgspec.structs import replace

from bydawn.core.text import shorten
from bydawn.core.values import Moment, Value

COMPACTED = "state.compacted"  # the kind of an event that shortens what is shown of earlier iterations
KEPT = 8  # iterations that stay in full then, …
ARCHIVED = 8_000  # … and characters for all others
PREPARED = "prepared"  # the first word of the reason why a loop rests that has not begun
BY_HAND = f"{PREPARED}: its own session works on it"
WORDS = BLOCKED, FAILED, COMPLETED, RUNNING = "blocked", "failed", "completed", "running"
_KNOWN = 64  # ids that are remembered; more never wait for a second look after a crash
_AT_ONCE = 1.0  # seconds; no iteration is done and verified in less
_DIGITS = 8
_LINE = 200  # characters of an iteration in the archive


class Recording(Value, frozen=True, kw_only=True):
    """How others may record what they do for a loop."""

    drop: str  # the folder, from the workspace on, where records wait that could not be written to the ledger
    budget: int = 5  # iterations of one round
    context_chars: int = 12_000  # then earlier ones are shortened
    by_hand: bool = False  # a person's own session works on it; bydawn never starts a round
    ends: bool = True  # without checks, does a recorded stop end it? Not while stop commands wait for a person


class Iteration(Value, frozen=True, kw_only=True):
    """One small task, and what its author says of it."""

    task: str
    local_done_condition: str
    result_summary: str
    verification_summary: str
    announcement: str = ""
    progress: bool = True
    status: str = RUNNING
    stop_met: bool = False
    stop_reason: str = ""
    needs_human_input: bool = False
    next_task: str = ""
    agent_id: str = ""
    inherited_context: bool = False
    recovery: bool = False
    evidence: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    context_snapshot: str = ""

    @property
    def ends(self) -> str:
        """The end that it claims, which only its author can know; empty if it goes on."""
        if self.status in (BLOCKED, FAILED):
            return self.status
        if self.needs_human_input:
            return BLOCKED
        return COMPLETED if self.stop_met or self.status == COMPLETED else ""


class Entry(Value, frozen=True, kw_only=True):
    """An iteration, and what we know of it ourselves."""

    number: int
    at: Moment
    claim: Iteration
    round: int = 0
    seconds: float | None = None  # since the one before
    batched: str = ""  # why it cannot have been done alone
    from_reply: bool = False  # its round recorded nothing, so the reply stands for it
    progress: bool | None = None  # measured when its round ended
    files: int | None = None  # changed in its round
    checks: int | None = None  # passed after its round


class Records(Value, frozen=True, kw_only=True):
    """Everything that was recorded, in short."""

    events: int = 0
    iterations: int = 0
    in_round: int = 0  # of these, since the last round started
    entries: tuple[Entry, ...] = ()  # the last ones; what is left of the others is in `archive`
    archive: str = ""
    snapshot: str = ""  # where its author says that the work stands
    next_task: str = ""
    recoveries: int = 0
    executor: str = ""
    inherited: bool = False
    claimed: str = ""  # the end that was recorded since the last run started: blocked, failed, completed
    reason: str = ""
    claimed_at: Moment | None = None
    last_event_at: Moment | None = None
    last_iteration_at: Moment | None = None
    known: tuple[str, ...] = ()  # the ids of the last ones

    @property
    def batched(self) -> str:
        """What the last round recorded too fast, if it did."""
        return next((entry.batched for entry in reversed(self.latest) if entry.batched), "")

    @property
    def latest(self) -> tuple[Entry, ...]:
        """Those of the last round that are still kept in full."""
        return self.entries[max(len(self.entries) - self.in_round, 0) :]


def after_event(records: Records, record: str, at: datetime, kind: str, data: dict[str, str]) -> Records:
    records = replace(records, events=records.events + 1, last_event_at=at, known=(*records.known, record)[-_KNOWN:])
    if kind != COMPACTED:
        return records
    return compacted(records, _number(data.get("keep_last"), KEPT), _number(data.get("max_archive_chars"), ARCHIVED))


def after_iteration(
    records: Records, record: str, at: datetime, claim: Iteration, *, round_: int = 0, batched: str = ""
) -> Records:
    entry = _entry(records, at, claim, round_, batched=batched)
    records = _added(records, entry)
    return replace(records, in_round=records.in_round + 1, known=(*records.known, record)[-_KNOWN:])


def after_reply(records: Records, at: datetime, round_: int, said: str) -> Records:
    """A round went well and recorded nothing: it counts as one iteration, whose result is the reply."""
    claim = Iteration(
        task=f"round {round_}",
        local_done_condition="",
        result_summary=shorten(said, _LINE),
        verification_summary="nothing was recorded",
    )
    return _added(records, replace(_entry(records, at, claim, round_), from_reply=True))


def measured(records: Records, round_: int, *, progress: bool, files: int) -> Records:
    """The round that these belong to has ended, and its work tree was looked at."""
    return replace(
        records,
        entries=tuple(
            replace(entry, progress=progress, files=files) if entry.round == round_ else entry
            for entry in records.entries
        ),
    )


def proven(records: Records, round_: int, passed: int) -> Records:
    """The checks have run after that round; before the first one, what they said of earlier iterations stands."""

    def concerned(entry: Entry) -> bool:
        return entry.round == round_ and (round_ > 0 or entry.checks is None)

    entries = (replace(each, checks=passed) if concerned(each) else each for each in records.entries)
    return replace(records, entries=tuple(entries))


def unclaimed(records: Records) -> Records:
    """A person goes on: an end that was recorded before does not end it again."""
    return replace(records, claimed="", reason="", claimed_at=None)


def compacted(records: Records, keep: int = KEPT, characters: int = ARCHIVED) -> Records:
    """The same with one line for each iteration but the last ones; the oldest lines go first."""
    older = records.entries[: max(len(records.entries) - keep, 0)]
    if not older:
        return records
    lines = [line_of(entry) for entry in older]
    archive = "\n".join(([records.archive] if records.archive else []) + lines)
    if len(archive) > characters:
        archive = "…\n" + archive[len(archive) - characters :].partition("\n")[2]
    return replace(records, entries=records.entries[len(older) :], archive=archive)


def line_of(entry: Entry) -> str:
    """An iteration on one line."""
    claim = entry.claim
    return shorten(f"{entry.number}. {' '.join(claim.task.split())}: {' '.join(claim.result_summary.split())}", _LINE)


def context_of(records: Records) -> str:
    """What a new session has to know: the author's own summary, or one line for each of the last iterations."""
    return records.snapshot or "\n".join(map(line_of, records.entries))


def is_long(records: Records, most: int) -> bool:
    """Must earlier iterations be shortened?"""
    size = len(context_of(records)) + sum(len(msgspec.json.encode(entry.claim)) for entry in records.entries)
    return len(records.entries) > KEPT and size > most


def batch_of(records: Records, claim: Iteration, at: datetime, budget: int) -> str:
    """Why an iteration that is recorded now cannot have been done alone; empty if it can."""
    if 0 < budget <= records.in_round:
        return f"as one of more than {budget} in one round"
    last = records.entries[-1] if records.entries and records.in_round else None
    if last and abs((at - last.at).total_seconds()) < _AT_ONCE and claim.evidence == last.claim.evidence:
        return f"within a second of iteration {last.number}, with the same evidence"
    return ""


def _entry(records: Records, at: datetime, claim: Iteration, round_: int, batched: str = "") -> Entry:
    seconds = (at - records.last_iteration_at).total_seconds() if records.last_iteration_at else None
    return Entry(
        number=records.iterations + 1,
        at=at,
        claim=claim,
        round=round_,
        seconds=None if seconds is None else max(round(seconds, 1), 0.0),
        batched=batched,
    )


def _added(records: Records, entry: Entry) -> Records:
    claim = entry.claim
    return replace(
        records,
        iterations=entry.number,
        entries=(*records.entries, entry),
        snapshot=claim.context_snapshot or records.snapshot,
        next_task=claim.next_task,
        recoveries=records.recoveries + claim.recovery,
        executor=claim.agent_id or records.executor,
        inherited=claim.inherited_context or records.inherited,
        claimed=claim.ends,
        reason=(claim.stop_reason or claim.result_summary) if claim.ends else "",
        claimed_at=entry.at if claim.ends else None,
        last_iteration_at=entry.at,
    )


def _number(text: str | None, otherwise: int) -> int:
    """A number that anyone may have recorded; Python itself refuses one of 5,000 digits."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < _DIGITS else otherwise
