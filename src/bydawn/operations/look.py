"""Look at loops: every view is computed from the ledger at the moment of asking."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from bydawn.core import completion
from bydawn.core.breakers import limits_of
from bydawn.core.errors import UserError
from bydawn.core.facts import (
    ChecksCut,
    ChecksEnded,
    PauseRequested,
    Record,
    RoundEnded,
    RoundStarted,
    RunStarted,
    StopRequested,
)
from bydawn.core.loop import OnTamper
from bydawn.core.outcome import Ending, Exit, imposed
from bydawn.core.rules import Rule
from bydawn.core.values import Status, Usage
from bydawn.store.ledger import records
from bydawn.store.registry import Standing

if TYPE_CHECKING:  # `status` has to be quick and never meets one
    from bydawn.core.agent import Event


def summary(standing: Standing) -> dict[str, Any]:
    """One loop of `status --json`."""
    loop, state = standing.loop, standing.state
    tasks = state.tasks
    return {
        "loop": loop.id,
        "workspace": loop.workspace,
        "state": standing.status,
        "reason": state.stopped.reason if state.stopped else reason(standing) or None,
        "round": state.round,
        "rounds_limit": limits_of(loop, state).rounds or None,
        "tasks": {"open": tasks.open, "done": tasks.done} if tasks else None,
        "agent": state.open_round.agent if state.open_round else loop.agent,
        "agents": loop.pool,
        "limited": [row for row in state.limited if row.until and row.until > datetime.now(UTC)],
        "sandbox": loop.sandbox,
        "usage": state.usage,
        "usage_is_priced": bool(state.usage) and not state.unpriced,
        "alive": standing.alive,
        "last_output_age_s": last_output_age(standing),
        "updated_at": state.updated_at,
    }


def last_output_age(standing: Standing) -> float | None:
    """Seconds since the agent last wrote something: the proof of life. None when no agent is running."""
    if not standing.alive or not standing.state.open_round:
        return None
    last = max([standing.state.open_round.started_at, *_written(standing)])
    return round(max(0.0, (datetime.now(UTC) - last).total_seconds()), 1)


def reason(standing: Standing) -> str:
    """Why it stands still, in a sentence for people; empty where it does not, or where its word says it all."""
    stopped = standing.state.stopped
    if standing.trouble:
        return standing.trouble.what
    if standing.status == Status.CRASHED:
        opened = standing.state.open_round
        when = f"{last_sign(standing).astimezone():%Y-%m-%d %H:%M}"
        return f"its worker is gone since {when}{f', in round {opened.round}' if opened else ''}; nothing is running"
    if stopped and stopped.decided.rule == Rule.AGENT_BLOCKED:
        return f"the agent says: “{stopped.reason}”"
    return stopped.reason if stopped else ""


def last_sign(standing: Standing) -> datetime:
    """When a loop last did anything that can be seen: a fact, or something that its agent wrote."""
    return max([*_written(standing), standing.state.updated_at or standing.loop.created_at])


def _written(standing: Standing) -> list[datetime]:
    """When the agent of the round that has no end last wrote something."""
    opened = standing.state.open_round
    stamps = (path.stat().st_mtime for path in _outputs(standing, opened.round)) if opened else ()
    return [datetime.fromtimestamp(stamp, UTC) for stamp in stamps]


def _outputs(standing: Standing, round_: int) -> list[Path]:
    """What an agent has printed, as far as it has begun to."""
    paths = (round_folder(standing, round_) / name for name in ("stdout", "stderr"))
    return [path for path in paths if path.exists()]


def round_folder(standing: Standing, round_: int) -> Path:
    return standing.folder / "rounds" / f"{round_:04}"


def printed(standing: Standing, round_: int) -> bool:
    """Did the agent of a round print anything at all?"""
    return any(path.stat().st_size for path in _outputs(standing, round_))


class Round(msgspec.Struct, kw_only=True):
    """Everything the ledger says about one round."""

    started: Record
    ended: Record | None = None
    checks: Record | None = None
    asked: bool = False  # did somebody want its end at once?


def rounds(standing: Standing) -> list[Round]:
    """The rounds of a loop, in order."""
    found: list[Round] = []
    for record in records(standing.folder):
        match record.fact:
            case RoundStarted():
                found.append(Round(started=record))
            case PauseRequested(now=True) | StopRequested(now=True) if found and found[-1].ended is None:
                found[-1].asked = True
            case RoundEnded() if found:
                found[-1].ended = record
            case ChecksEnded() if found:
                found[-1].checks = record
            case _:
                pass
    return found


def cut_by_budget(ended: RoundEnded, *, asked: bool) -> bool:
    """Was a round ended by us for what it spent? Nobody had asked for it, whatever its record says."""
    return not asked and (ended.outcome, ended.detail) == imposed(Exit(ending=Ending.ASKED))


def the_round(standing: Standing, number: int) -> Round:
    for each in rounds(standing):
        if isinstance(each.started.fact, RoundStarted) and each.started.fact.round == number:
            return each
    raise UserError(
        f"the loop {standing.loop.id} has no round {number}", hint=f"it has had {standing.state.round} so far"
    )


def detail(standing: Standing, only: int | None = None) -> dict[str, Any]:
    """`show --json`: the summary, what is missing, and the rounds."""
    chosen = rounds(standing) if only is None else [the_round(standing, only)]
    return {
        **summary(standing),
        "prompt": standing.loop.prompt,
        "requires": standing.loop.requires,
        "missing": completion.missing(standing.loop, standing.state),
        "red_before": standing.state.baseline,
        "doubted": standing.state.doubted,
        "aside": standing.state.settled.aside,
        "skipped": standing.state.settled.skipped,
        "put_back": put_back(standing),
        "usage_by_task": usage_by_task(standing),
        "notes_waiting": [note.text for note in standing.state.notes],
        "rounds": [as_row(each) for each in chosen],
        "folder": str(standing.folder),
    }


def with_its_list(standing: Standing) -> Standing:
    """A loop that stands still, with its tasks as they are now: people tick and skip some meanwhile."""
    tasks = standing.state.tasks
    if standing.alive or standing.finished or tasks is None or tasks.problem:
        return standing
    from bydawn.operations.tasks import of_loop

    board = of_loop(standing)
    if board.trouble:
        return standing
    counts = board.standings.counts
    tasks = replace(tasks, open=counts["open"], done=counts["done"])
    return replace(standing, state=replace(standing.state, tasks=tasks))


def missing(condition: str, standing: Standing) -> str:
    """What a missing condition means, where each failing check is named beside it."""
    state = standing.state
    failed = [verdict for verdict in state.verdicts if not verdict.passed]
    if condition == "checks" and failed and state.verdict_tree == state.tree:
        return f"{len(failed)} of {len(state.verdicts)} checks failed"
    return completion.describe(condition, standing.loop, state)


def usage_by_task(standing: Standing) -> dict[str, Usage]:
    """What each task has used so far, over all of its rounds; tasks whose agents say nothing are left out."""
    used: dict[str, Usage] = {}
    for each in rounds(standing):
        started, ended = each.started.fact, each.ended.fact if each.ended else None
        if isinstance(started, RoundStarted) and started.task and isinstance(ended, RoundEnded) and ended.usage:
            used[started.task] = ended.usage.plus(used.get(started.task))
    return used


def as_row(each: Round) -> dict[str, Any]:
    """A round as data; fields of facts under their own names."""
    started, ended = each.started.fact, each.ended.fact if each.ended else None
    assert isinstance(started, RoundStarted)  # noqa: S101 - as `rounds` made it
    row: dict[str, Any] = {
        "round": started.round,
        "task": started.task,
        "notes": started.notes,
        "agent": started.agent,
        "session": started.session,
        "started_at": each.started.at,
        "ended_at": each.ended.at if each.ended else None,
        "outcome": None,
        "verdicts": [],
    }
    if isinstance(ended, RoundEnded):
        row |= {
            "outcome": ended.outcome,
            "detail": ended.detail,
            "exit_code": ended.exit_code,
            "files_changed": ended.changes,
            "progress": ended.progress,
            "closed": ended.closed,
            "promise": ended.promise,
            "doubted": ended.doubted,
            "blocked": ended.blocked or None,
            "tampered": ended.tampered,
            "restored": ended.restored,
            "said": ended.said,
            "seconds": ended.seconds,
            "usage": ended.usage,
            "session": ended.session,
            "denied": ended.denied,
            "leftovers": ended.leftovers,
        }
    if each.checks and isinstance(each.checks.fact, ChecksEnded):
        row |= {"verdicts": each.checks.fact.verdicts, "check_seconds": each.checks.fact.seconds}
    return row


def put_back(standing: Standing) -> dict[str, list[int]]:
    """The protected files that were changed and are as they were again, each with the rounds that did it."""
    found: dict[str, list[int]] = {}
    number = 0
    if standing.loop.on_tamper is not OnTamper.RESTORE:
        return found
    for record in records(standing.folder):
        fact = record.fact
        number = fact.round if isinstance(fact, RoundEnded | ChecksEnded | ChecksCut) else number
        if isinstance(fact, RunStarted):
            undone = fact.put_back  # changed by what was running when its worker died
        else:
            undone = fact.tampered if isinstance(fact, RoundEnded | ChecksEnded | ChecksCut) and fact.restored else ()
        for path in undone:
            found[path] = [*dict.fromkeys([*found.get(path, ()), number])]
    return found


def told_of_put_back(standing: Standing) -> str:
    """`tests/a.py (round 2), tests/b.py (rounds 2, 5)`"""
    rows = put_back(standing).items()
    return ", ".join(f"{path} (round{'s' if len(by) > 1 else ''} {', '.join(map(str, by))})" for path, by in rows)


def trouble_with_tasks(standing: Standing) -> str | None:
    """What is wrong with the task list as it is now, whatever it was before: that goes away for nobody's word."""
    from bydawn.core.replay import forgiven
    from bydawn.core.worklist import WorkList
    from bydawn.system.reading import Texts

    loop = standing.loop
    reading = WorkList(loop, Texts(Path(loop.workspace))).read(forgiven(standing.state), None)
    return f"{loop.tasks} {reading.problem}" if reading and reading.problem else None


def events(standing: Standing, lines: Iterator[tuple[int, bytes]]) -> "Iterator[Event]":
    """What the agents said, each by its own reader, over the lines of their output and the rounds these are from."""
    from bydawn import agents

    pool, current = agents.pool(standing.loop), 0
    for round_, line in lines:
        if round_ != current:
            current, reader = round_, pool[_agent_of(standing, round_)].reader()
        yield from reader.read(line.rstrip(b"\n"))


def _agent_of(standing: Standing, round_: int) -> str:
    """Who did a round; with one agent there is nothing to look up."""
    if not standing.loop.others:
        return standing.loop.agent
    facts = (record.fact for record in records(standing.folder))
    mine = (fact.agent for fact in facts if isinstance(fact, RoundStarted) and fact.round == round_)
    return next(mine, standing.loop.agent)


def lines_before(path: Path, count: int | None) -> list[bytes]:
    """The lines before the last ones, as many as a secret may have."""
    return last_lines(path, count + 500)[:-count] if count else []


def last_lines(path: Path, count: int, end: int | None = None) -> list[bytes]:
    """The end of a file, or of its first bytes, read from the end: a 1 GB log costs no more than a short one."""
    block, data = 64 * 1024, b""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return []
    with file:
        position = file.seek(0, 2) if end is None else end
        while position > 0 and data.count(b"\n") <= count and len(data) < 16 << 20:
            step = min(block, position)
            position -= step
            file.seek(position)
            data = file.read(step) + data
    return data.splitlines()[-count:] if count else []
