"""Look at loops: every view is computed from the ledger at the moment of asking."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bydawn.core import completion
from bydawn.core.breakers import limits_of
from bydawn.core.errors import UserError
from bydawn.core.facts import (
    ChecksCut,
    ChecksEnded,
    Decided,
    HookEnded,
    LoopStopped,
    Now,
    PauseRequested,
    Record,
    RoundEnded,
    RoundStarted,
    RunStarted,
    StopRequested,
    Usage,
    WaitStarted,
)
from bydawn.core.hooks import output_of
from bydawn.core.loop import OnTamper
from bydawn.core.outcome import Ending, Exit, imposed
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.host.registry import Standing
from bydawn.ledger import records

if TYPE_CHECKING:  # `status` has to be quick and never meets one
    from bydawn.core.ports import Event
    from bydawn.core.worklist import Listed


def summary(standing: Standing) -> dict[str, Any]:
    """One loop of `status --json`."""
    loop, state = standing.loop, standing.state
    tasks = state.tasks
    return {
        "loop": loop.id,
        "workspace": loop.workspace,
        "state": standing.word,
        "reason": state.stopped.reason if state.stopped else standing.trouble.what if standing.trouble else None,
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
    folder = round_folder(standing, standing.state.open_round.round)
    written = [path.stat().st_mtime for path in (folder / "stdout", folder / "stderr") if path.exists()]
    started = standing.state.open_round.started_at.timestamp()
    return round(max(0.0, datetime.now(UTC).timestamp() - max([started, *written])), 1)


def round_folder(standing: Standing, round_: int) -> Path:
    return standing.folder / "rounds" / f"{round_:04}"


def printed(standing: Standing, round_: int) -> bool:
    """Did the agent of a round print anything at all?"""
    paths = (round_folder(standing, round_) / name for name in ("stdout", "stderr"))
    return any(path.exists() and path.stat().st_size for path in paths)


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


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Which rule decided, what it read, and whether deciding again gives the same answer."""

    rule: str
    meaning: str
    what: str
    at: datetime
    seq: int
    readings: dict[str, Any]
    agrees: bool
    version: str = ""  # of the program that decided
    evidence: tuple[str, ...] = ()


def why(standing: Standing) -> Reason:
    """The last decision that was written down, taken again from the same facts."""
    from bydawn.core.decide import RULES, next_action

    state, found, version = LoopState(), None, ""
    for record in records(standing.folder):
        if isinstance(record.fact, RunStarted):
            version = record.fact.version
        if isinstance(record.fact, RoundStarted | WaitStarted | LoopStopped):
            found = (record, state, record.fact.decided)
        state = after(state, record)
    if found is None:
        raise UserError(f"the loop {standing.loop.id} has not decided anything yet")
    record, before, decided = found
    fact = record.fact
    again = next_action(standing.loop, before, Now(decided.at, decided.elapsed))
    what = {RoundStarted: "started a round", WaitStarted: "is waiting"}.get(type(fact), "stopped")
    if isinstance(fact, LoopStopped):
        what = f"{fact.end.value}: {fact.reason}"
    return Reason(
        rule=decided.rule,
        meaning=RULES.get(decided.rule, ""),
        what=what,
        at=record.at,
        seq=record.seq,
        readings=_readings(standing, before, decided),
        agrees=again.rule == decided.rule,
        version=version,
        evidence=fact.evidence if isinstance(fact, LoopStopped) else (),
    )


def _readings(standing: Standing, state: LoopState, decided: Decided) -> dict[str, Any]:
    """What the rules looked at, each next to its limit."""
    limits = limits_of(standing.loop, state)
    table: dict[str, tuple[Any, Any]] = {
        "rounds": (state.rounds, limits.rounds),
        "rounds this run": (state.rounds_this_run, state.rounds_allowed),
        "rounds without progress": (state.rounds_without_progress, limits.no_progress),
        "rounds in a row with the same failure": (state.same_failure, limits.same_failure),
        "rounds in a row with a red check": (state.check_failures_in_a_row, limits.check_failures),
        "agent failures in a row": (state.failures_in_a_row, limits.agent_failures),
        "seconds worked": (round(decided.elapsed, 1), limits.seconds),
        "until": (decided.at, limits.until),
        "open tasks": (state.tasks.open if state.tasks else None, 0 if state.tasks else None),
        "missing": (completion.missing(standing.loop, state), None),
    }
    return {name: {"reading": reading, "limit": limit} for name, (reading, limit) in table.items()}


# -- what stopped it, for people ---------------------------------------------------------------------------------------


def evidence(standing: Standing) -> tuple[str, ...]:
    """What bears out the loop's last word, in sentences, and what was done against the rules on the way there."""
    if standing.state.stopped is None:
        return ()
    undone = told_of_put_back(standing)
    return (
        *_evidence(standing, standing.state.stopped),
        *([f"protected files were put back: {undone}"] if undone else []),
    )


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


def _evidence(standing: Standing, stopped: LoopStopped) -> tuple[str, ...]:
    if stopped.decided.rule == "obstructed":  # the fact has only the kind of it, for programs
        hook = failed_hook(standing)
        return (f"the command of {hook.name}: {hook.command}", f"what it printed: {hook.output}") if hook else ()
    if stopped.decided.rule == "tasks-aside":
        from bydawn.operations.settings import secrets

        return tuple(map(secrets().hide, _why_idle(standing))) or stopped.evidence
    return stopped.evidence


class FailedHook(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    command: str
    output: Path


def failed_hook(standing: Standing) -> FailedHook | None:
    """The command of a person's own whose failure ended the loop."""
    obstacle = standing.state.obstructed
    if obstacle is None or obstacle.kind != "hook":
        return None
    facts = (record.fact for record in records(standing.folder))
    # The hook of the end may have failed after it; that one stops nothing.
    failed = [fact for fact in facts if isinstance(fact, HookEnded) and not fact.passed and "round" in fact.hook]
    if not failed:
        return None
    name = failed[-1].hook
    output = round_folder(standing, failed[-1].round) / output_of(name)
    return FailedHook(name=name, command=getattr(standing.loop.hooks, name) or "", output=output)


def trouble_with_tasks(standing: Standing) -> str | None:
    """What is wrong with the task list as it is now, whatever it was before: that goes away for nobody's word."""
    from bydawn.operations.tasks import of_loop

    return of_loop(standing).trouble


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """A task that cannot be worked on, and those that it waits for."""

    task: "Listed"
    waits_for: "tuple[Listed, ...]"


def idle_tasks(standing: Standing) -> list[Idle]:
    """The open tasks of a folder that nobody can take up as things are."""
    from bydawn.operations.tasks import of_loop

    tasks = of_loop(standing).standings.tasks
    by_id = {task.id: task for task in tasks}
    rows = [(task, tuple(by_id[id_] for id_ in task.waits_for if id_ in by_id)) for task in tasks]
    return [Idle(task=task, waits_for=others) for task, others in rows if task.stand in ("waiting", "aside")]


def stranded_by_skipping(standing: Standing) -> "tuple[list[Listed], list[Listed]]":
    """The skipped tasks that others wait for, and those others; some of them at second hand."""
    idle = [each for each in idle_tasks(standing) if each.task.stand == "waiting"]
    skipped = {other.id: other for each in idle for other in each.waits_for if other.stand == "skipped"}
    lost = {*skipped}
    for _ in idle:  # no chain is longer
        lost |= {each.task.id for each in idle if any(other.id in lost for other in each.waits_for)}
    return [*skipped.values()], [each.task for each in idle if each.task.id in lost]


def _why_idle(standing: Standing) -> Iterator[str]:
    words = {"skipped": ", which was skipped", "aside": ", which was set aside"}
    for each in idle_tasks(standing):
        if each.task.stand == "aside":
            yield f"set aside: {each.task.text}"
            continue
        others = (f"“{other.text}”{words.get(other.stand, '')}" for other in each.waits_for)
        yield f"“{each.task.text}” waits for {' and '.join(others)}"


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
