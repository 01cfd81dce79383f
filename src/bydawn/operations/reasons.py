"""Why a loop ended, and what confirms it, in sentences."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from bydawn.core import completion
from bydawn.core.facts import (
    AnyFact,
    ChecksCut,
    ChecksEnded,
    HookEnded,
    LoopStopped,
    RoundEnded,
    RunStarted,
    TaskSettled,
)
from bydawn.core.hooks import complaint
from bydawn.core.layout import hook_output
from bydawn.core.loop import OnTamper
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.text import plain, shorten
from bydawn.core.values import End
from bydawn.operations import outputs
from bydawn.operations.amounts import named_rounds
from bydawn.operations.views import MET
from bydawn.store.ledger import records
from bydawn.store.registry import Standing

if TYPE_CHECKING:
    from bydawn.core.worklist import Listed

_PLAINLY = {  # outcomes that stop a loop at once, in words
    Outcome.AUTH.value: "the provider rejects the agent's log-in",
    Outcome.CONFIG.value: "the agent's setup does not work",
}


def evidence(standing: Standing) -> tuple[str, ...]:
    """What confirms how the loop ended, and which rules were broken on the way, in sentences."""
    if standing.state.stopped is None:
        return ()
    undone = put_back_words(standing)
    return (
        *([why] if (why := unproven(standing)) else []),
        *_evidence(standing, standing.state.stopped),
        *([f"{completion.PUT_BACK}: {undone}"] if undone else []),
    )


def unproven(standing: Standing) -> str:
    """Why nothing proves that the work is done, although all that was asked for is there."""
    stopped = standing.state.stopped
    is_doubtful = stopped is not None and stopped.end is End.UNVERIFIED
    return completion.doubt(standing.loop, standing.state) if is_doubtful else ""


def _evidence(standing: Standing, stopped: LoopStopped) -> tuple[str, ...]:
    if stopped.decided.rule == Rule.OBSTRUCTED:  # the fact only has its kind, for programs
        if (failed := failed_hook(standing)) is None:
            return ()
        command = failed.command or ", ".join(standing.loop.hooks.commands[failed.hook])  # an older ledger has none
        output = standing.folder.round_file(failed.round, failed.output or hook_output(failed.hook))
        return (f"command of {failed.hook}: {command}", f"its output: {outputs.place(output)}")
    if stopped.decided.rule == Rule.TASKS_ASIDE:
        from bydawn.operations.settings import secrets

        return tuple(map(secrets().hide, _why_idle(standing))) or stopped.evidence
    if stopped.decided.rule == Rule.AGENT_STOP:
        return tuple(_PLAINLY.get(row) or f"it said: “{row}”" for row in stopped.evidence)
    return tuple(map(partial(_by_name, standing), _each_check_once(standing, stopped.evidence)))


def _by_name(standing: Standing, row: str) -> str:
    """Name the skipped tasks; the fact only says how many, which would read like the number of a task."""
    if not row.startswith(completion.SKIPPED):
        return row
    wanted = standing.state.settled.skipped
    texts = {fact.task: fact.text for fact in _facts(standing) if isinstance(fact, TaskSettled) and fact.task in wanted}
    return f"{completion.SKIPPED}: {', '.join(f'“{texts.get(id_, id_)}”' for id_ in wanted)}"


def put_back(standing: Standing) -> dict[str, list[int]]:
    """Protected files that were changed and restored, each with the rounds that changed it."""
    found: dict[str, list[int]] = {}
    number = 0
    for fact in _facts(standing) if standing.loop.on_tamper is OnTamper.RESTORE else ():
        undone: tuple[str, ...] = ()
        if isinstance(fact, RunStarted):
            undone = fact.found.put_back  # changed by what still ran after the worker died
        elif isinstance(fact, RoundEnded):
            number, undone = fact.round, fact.found.put_back
        elif isinstance(fact, ChecksEnded | ChecksCut):
            number, undone = fact.round, fact.tampered if fact.restored else ()
        for path in undone:
            found[path] = [*dict.fromkeys([*found.get(path, ()), number])]
    return found


def put_back_words(standing: Standing) -> str:
    """`tests/a.py (round 2), tests/b.py (rounds 2, 5)`"""
    return ", ".join(f"{path} ({named_rounds(numbers)})" for path, numbers in put_back(standing).items())


def missing(condition: str, standing: Standing) -> str:
    """What is missing, in words; failing checks are listed next to it, so only their number is given."""
    state, red = standing.state, standing.state.failed_checks
    if condition == "checks" and red and state.verdict_tree == state.tree:
        return f"{len(red)} of {len(state.verdicts)} checks failed"
    return completion.describe(condition, standing.loop, state)


def conditions(standing: Standing) -> list[tuple[str, bool]]:
    """Each condition of a loop in words, and whether it is met; where checks are listed, each says it itself."""
    if standing.trouble:
        return []
    loop, state = standing.loop, standing.state
    unmet = completion.missing(loop, state)
    listed = state.failed_checks and state.verdict_tree == state.tree
    rows = [(missing(name, standing), False) for name in unmet if name != "checks" or not listed]
    return [
        *rows,
        *((MET[name], True) for name in completion.wanted(loop, state) if name not in unmet and name != "checks"),
    ]


def failed_hooks(standing: Standing) -> dict[str, list[int]]:
    """Each complaint about a failed hook, with the rounds it happened in."""
    found: dict[str, list[int]] = {}
    for fact in _failures(standing):
        found.setdefault(complaint(fact), []).append(fact.round)
    return found


def _failures(standing: Standing) -> list[HookEnded]:
    return [fact for fact in _facts(standing) if isinstance(fact, HookEnded) and not fact.passed]


def _facts(standing: Standing) -> Iterator[AnyFact]:
    return (record.fact for record in records(standing.folder))


def _each_check_once(standing: Standing, rows: tuple[str, ...]) -> Iterator[str]:
    """How many checks failed, and each with its reason: the fact names them twice."""
    red, all_of_them = standing.state.failed_checks, completion.describe("checks", standing.loop, standing.state)
    for row in rows:
        if row != all_of_them or not any(f"{verdict.check}: {verdict.told}" in rows for verdict in red):
            yield row
        elif len(standing.state.verdicts) > 1:
            yield f"{len(red)} of {len(standing.state.verdicts)} checks failed"


def fit_line(standing: Standing, row: str, room: int) -> str:
    """A row of evidence on one line. If it is too long, the check's command is shortened, not the reason."""
    for verdict in standing.state.verdicts:
        for answer in ("passed", verdict.told):
            if row == f"{verdict.check}: {answer}":
                check = shorten(plain(verdict.check), max(20, room - len(answer) - 2))
                return shorten(f"{check}: {plain(answer)}", room)
    return shorten(plain(row), room)


def failed_hook(standing: Standing) -> HookEnded | None:
    """The hook whose failure ended the loop."""
    obstacle = standing.state.obstructed
    if obstacle is None or obstacle.kind != "hook":
        return None
    # A hook that runs at the end may have failed later; that one stops nothing.
    failed = [fact for fact in _failures(standing) if "round" in fact.hook]
    return failed[-1] if failed else None


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """A task that cannot be worked on, and the tasks it waits for."""

    task: "Listed"
    waits_for: "tuple[Listed, ...]"


def idle_tasks(standing: Standing) -> list[Idle]:
    """The open tasks of a folder that no round can work on right now."""
    from bydawn.operations.tasks import of_loop

    tasks = of_loop(standing).standings.tasks
    by_id = {task.id: task for task in tasks}
    rows = [(task, tuple(by_id[id_] for id_ in task.waits_for if id_ in by_id)) for task in tasks]
    return [Idle(task=task, waits_for=others) for task, others in rows if task.stand in ("waiting", "aside")]


def stranded_by_skipping(standing: Standing) -> "tuple[list[Listed], list[Listed]]":
    """The skipped tasks that others wait for, and those others, directly or through another."""
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
