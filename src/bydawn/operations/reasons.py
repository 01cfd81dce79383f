"""Why does a loop stand as it stands, and what bears that out?"""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bydawn.core import breakers, completion
from bydawn.core.errors import UserError
from bydawn.core.facts import HookEnded, LoopStopped, RoundStarted, RunStarted, TaskSettled, WaitStarted
from bydawn.core.hooks import complaint, output_of
from bydawn.core.outcome import Outcome
from bydawn.core.replay import after
from bydawn.core.rules import Rule, meaning_of
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import Decided, End, Now
from bydawn.operations.look import round_folder, told_of_put_back
from bydawn.store.ledger import records
from bydawn.store.registry import Standing

if TYPE_CHECKING:
    from bydawn.core.worklist import Listed


_PLAINLY = {  # what an outcome means that stops a loop at once
    Outcome.AUTH.value: "its provider does not let the agent in",
    Outcome.CONFIG.value: "the agent cannot work as it is set up",
}


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
    from bydawn.core.decide import next_action

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
        meaning=meaning_of(decided.rule),
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
    table: dict[str, tuple[Any, Any]] = {
        **breakers.readings(standing.loop, state, Now(decided.at, round(decided.elapsed, 1))),
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
    unproven = standing.state.stopped.end is End.UNVERIFIED
    return (
        *(["no checks were configured, so nothing but the agent's word was proven"] if unproven else []),
        *_evidence(standing, standing.state.stopped),
        *([f"{completion.PUT_BACK}: {undone}"] if undone else []),
    )


def _evidence(standing: Standing, stopped: LoopStopped) -> tuple[str, ...]:
    if stopped.decided.rule == Rule.OBSTRUCTED:  # the fact has only the kind of it, for programs
        hook = failed_hook(standing)
        return (f"the command of {hook.name}: {hook.command}", f"what it printed: {hook.output}") if hook else ()
    if stopped.decided.rule == Rule.TASKS_ASIDE:
        from bydawn.operations.settings import secrets

        return tuple(map(secrets().hide, _why_idle(standing))) or stopped.evidence
    if stopped.decided.rule == Rule.AGENT_STOP:
        return tuple(_PLAINLY.get(row, row) for row in stopped.evidence)
    return tuple(map(partial(_by_name, standing), _each_check_once(standing, stopped.evidence)))


def _by_name(standing: Standing, row: str) -> str:
    """Which tasks were skipped; the fact says only how many, and a number alone reads like that of a task."""
    if not row.startswith(completion.SKIPPED):
        return row
    wanted = standing.state.settled.skipped
    facts = (record.fact for record in records(standing.folder))
    texts = {fact.task: fact.text for fact in facts if isinstance(fact, TaskSettled) and fact.task in wanted}
    return f"{completion.SKIPPED}: {', '.join(f'“{texts.get(id_, id_)}”' for id_ in wanted)}"


def failed_hooks(standing: Standing) -> dict[str, list[int]]:
    """What is to be said of the person's own commands that failed, each with the rounds of it."""
    found: dict[str, list[int]] = {}
    for record in records(standing.folder):
        if isinstance(record.fact, HookEnded) and not record.fact.passed:
            found.setdefault(complaint(record.fact), []).append(record.fact.round)
    return found


def _each_check_once(standing: Standing, rows: tuple[str, ...]) -> Iterator[str]:
    """How many checks failed, and each of them with its reason: the fact names them twice."""
    failed, all_of_them = _failed(standing.state), completion.describe("checks", standing.loop, standing.state)
    for row in rows:
        if row != all_of_them or not any(f"{check}: {told}" in rows for check, told in failed):
            yield row
        elif len(standing.state.verdicts) > 1:
            yield f"{len(failed)} of {len(standing.state.verdicts)} checks failed"


def fit_line(standing: Standing, row: str, room: int) -> str:
    """A row of evidence on one line. A check's command may be as long as it likes, so it gives way, not the reason."""
    for check, told in (*_failed(standing.state), *((each.check, "passed") for each in standing.state.verdicts)):
        if row == f"{check}: {told}":
            return shorten(f"{shorten(plain(check), max(20, room - len(told) - 2))}: {plain(told)}", room)
    return shorten(plain(row), room)


def _failed(state: LoopState) -> list[tuple[str, str]]:
    return [(verdict.check, verdict.told) for verdict in state.verdicts if not verdict.passed]


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
