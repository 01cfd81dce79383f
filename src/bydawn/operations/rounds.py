"""One round: as data, as a row of a table, and as remarks below that row."""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from bydawn.core import completion
from bydawn.core.breakers import limits_of
from bydawn.core.facts import ChecksEnded, CommitEnded, RoundEnded
from bydawn.core.history import Attempt
from bydawn.core.loop import Loop, Ticks
from bydawn.core.outcome import Ending, Exit, Outcome, imposed
from bydawn.core.progress import is_enough, proven, result_of, tally_of
from bydawn.core.proof import Answer
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.core.values import UNCLEAR, Commands, LineCounts, Promised, Result, TaskStatus, Usage, Verdict
from bydawn.operations.amounts import plural

OVER_BUDGET = "over budget"
NONE_WORKED = "no command worked"
TASK_DONE = "task done"
WHY_OVER_BUDGET = "stopped because the budget was used up"


class FilesChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a round changed."""

    added: int
    modified: int
    deleted: int
    paths: tuple[str, ...]  # the first few


class RoundView(msgspec.Struct, frozen=True, kw_only=True):
    """A round of `show --json`, fields named as in facts; those from `detail` on are there once it has ended."""

    round: int
    task: str | None
    notes: tuple[str, ...]
    agent: str
    session: str | None
    started_at: datetime
    ended_at: datetime | None
    outcome: Outcome | None  # of its agent's turn, …
    result: str  # … and what it came to
    verdicts: tuple[Verdict, ...]
    detail: str | UnsetType = UNSET
    exit_code: int | UnsetType | None = UNSET
    files_changed: FilesChanged | UnsetType = UNSET
    lines: LineCounts | UnsetType | None = UNSET  # that it added and removed; None: unknown
    progress: bool | UnsetType = UNSET
    closed: tuple[str, ...] | UnsetType = UNSET
    promise: Promised | UnsetType = UNSET
    doubted: tuple[str, ...] | UnsetType = UNSET
    blocked: str | UnsetType | None = UNSET
    tampered: tuple[str, ...] | UnsetType = UNSET
    restored: bool | UnsetType = UNSET
    said: str | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    usage: Usage | UnsetType | None = UNSET
    denied: tuple[str, ...] | UnsetType = UNSET
    commands: Commands | UnsetType = UNSET
    leftovers: tuple[str, ...] | UnsetType = UNSET
    check_seconds: float | UnsetType = UNSET  # unset if no check ran
    commit: str | UnsetType = UNSET  # its id; unset if nothing of it was committed, …
    not_committed: str | UnsetType = UNSET  # … and why, if that failed


class Remark(msgspec.Struct, frozen=True):
    """A line below the row of a round."""

    text: str
    for_agent: bool = False  # the next prompt contains it too


class Tick(StrEnum):
    """How a round came out, or what was between two rounds, as one sign of a strip."""

    CLOSED = "closed"  # its checks passed, or it has none, and a task was closed
    PASSED = Result.PASSED
    RED = Result.RED
    WORKED = Result.WORKED
    IDLE = Result.IDLE
    FAILED = Result.FAILED
    CUT = Result.CUT
    RUNNING = "running"
    WAITED = "waited"
    SLEPT = "slept"


class RoundRow(msgspec.Struct, frozen=True, kw_only=True):
    """A round as it is told everywhere: the cells of a row, and remarks below it."""

    attempt: Attempt
    number: int
    task: str
    result: str
    tick: Tick
    agent: str = ""  # where several work on the loop
    seconds: float | None = None  # with its checks
    files: str = ""
    check: str = "—"
    tasks_done: str = ""  # `2/6`
    usage: Usage | None = None
    why: str = ""  # its agent's turn did not end as it should
    remarks: tuple[Remark, ...] = ()
    sent_in: int | None = None  # the round whose prompt had those that are for the agent
    open_tasks: int | None = None  # after it

    def told(self, remark: Remark) -> str:
        """A remark, and where the agent was told about it."""
        sent = f" → sent to the agent in round {self.sent_in}" if remark.for_agent and self.sent_in else ""
        return f"{remark.text}{sent}"


def round_view(row: RoundRow) -> RoundView:
    attempt = row.attempt
    started, ended, checks, commit = attempt.started, attempt.ended, attempt.checks, attempt.commit
    begun = RoundView(
        round=started.round,
        task=started.task,
        notes=started.notes,
        agent=started.agent,
        session=ended.session if ended else started.session,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        outcome=ended.outcome if ended else None,
        result=row.result,
        verdicts=checks.verdicts if checks else (),
    )
    if ended is None:
        return begun
    found, changes = ended.found, ended.found.changes
    return replace(
        begun,
        detail=ended.detail,
        exit_code=ended.exit_code,
        files_changed=FilesChanged(
            added=changes.added, modified=changes.modified, deleted=changes.deleted, paths=changes.paths
        ),
        lines=changes.lines,
        progress=found.progress,
        closed=found.closed,
        promise=ended.promise,
        doubted=found.doubted,
        blocked=ended.blocked or None,
        tampered=found.tampered,
        restored=found.restored,
        said=ended.said,
        seconds=ended.seconds,
        usage=ended.usage,
        denied=ended.denied,
        commands=ended.commands,
        leftovers=ended.leftovers,
        check_seconds=checks.seconds if checks else UNSET,
        commit=(commit and commit.commit) or UNSET,
        not_committed=(commit and commit.failure and commit.told) or UNSET,
    )


# -- as a row ----------------------------------------------------------------------------------------------------------


def row_of(attempt: Attempt, loop: Loop, then: LoopState, *, alive: bool = False, settled: bool = False) -> RoundRow:
    """The row of a round. `then` is the state when it was over; `alive` says whether one without an end still runs,
    and `settled` whether its task was called done by every measure since."""
    started, ended, checks, commit = attempt.started, attempt.ended, attempt.checks, attempt.commit
    row = RoundRow(
        attempt=attempt,
        number=started.round,
        task=plain(started.task or ""),
        agent=plain(started.agent) if loop.others else "",
        result="running" if alive else Outcome.INTERRUPTED.value,
        tick=Tick.RUNNING if alive else Tick.CUT,
    )
    if ended is None:
        return row
    tasks, why = then.tasks, WHY_OVER_BUDGET if is_over_budget(ended, then) else plain(ended.detail)
    return replace(
        row,
        task=row.task or plain(ended.said) or "—",
        seconds=ended.seconds + (checks.seconds if checks else 0),
        files=files_words(ended),
        check=check_words(checks),
        result=_result(ended, checks, loop, then, settled=settled),
        tick=_tick(ended, checks, closed=settled or bool(ended.found.closed)),
        tasks_done=tasks_done(then),
        usage=ended.usage,
        why=why if ended.outcome is not Outcome.OK else "",
        remarks=(*remarks(ended, checks, loop, then), *(of_commit(commit) if commit else ())),
        open_tasks=tasks.open if tasks and not tasks.problem else None,
    )


def _tick(ended: RoundEnded, checks: ChecksEnded | None, *, closed: bool) -> Tick:
    result = result_of(ended)
    if checks:
        [result] = proven((result,), red=not checks.passed)
    return Tick.CLOSED if closed and result is Result.PASSED else Tick(result.value)


def tasks_done(state: LoopState) -> str:
    return f"{state.tasks.done}/{state.tasks.total}" if state.tasks else ""


def files_words(ended: RoundEnded) -> str:
    """`+1 ~2`: how many files it added, changed and deleted."""
    changes = ended.found.changes
    parts = [("+", changes.added), ("~", changes.modified), ("-", changes.deleted)]
    return " ".join(f"{sign}{count}" for sign, count in parts if count) or ("unknown" if ended.unseen else "0")


def check_words(checks: ChecksEnded | None) -> str:
    """The result of a round's checks, in a word."""
    if checks is None:
        return "—"
    red = [verdict for verdict in checks.verdicts if not verdict.passed]
    if red and all(verdict.flaky for verdict in red):
        return "FLAKY"
    return "pass" if not red else "FAIL" if len(checks.verdicts) == 1 else f"FAIL {len(red)}"


def _result(ended: RoundEnded, checks: ChecksEnded | None, loop: Loop, state: LoopState, *, settled: bool) -> str:
    """The result of a round, in a few words."""
    if is_over_budget(ended, state):
        return OVER_BUDGET
    if ended.outcome is not Outcome.OK:
        return outcome_words(ended.outcome)
    if ended.commands.all_failed:
        return NONE_WORKED
    if settled and not ended.found.closed:
        return TASK_DONE
    if not ended.found.progress and state.rounds_without_progress:
        limit = limits_of(loop, state).no_progress
        return f"no change {state.rounds_without_progress}/{limit}" if limit else "no change"
    if checks and not checks.passed:
        return "not yet"
    if ended.found.closed:
        return TASK_DONE if len(ended.found.closed) == 1 else f"{len(ended.found.closed)} tasks done"
    return "progress"


def outcome_words(outcome: Outcome) -> str:
    """How an agent's turn ended, in words."""
    return outcome.value.replace("_", " ")


def is_over_budget(ended: RoundEnded, then: LoopState) -> bool:
    """Did the budget end this round? Its record says "on request", but no person made one."""
    return not then.stop_now and (ended.outcome, ended.detail) == imposed(Exit(ending=Ending.ASKED))


def usage_columns(loop: Loop, state: LoopState) -> frozenset[str]:
    """Which of tokens and dollars the agents of a loop are known to report."""
    from bydawn import agents

    told, pool = state.usage or Usage(), agents.pool(loop).values()
    tokens = told.tokens is not None or any(agents.is_cli(name) for name in loop.pool)
    dollars = told.cost_usd is not None or any(agent.abilities.tells_cost for agent in pool)
    return frozenset([*(["tok"] if tokens else []), *(["$"] if dollars else [])])


# -- in remarks --------------------------------------------------------------------------------------------------------


def remarks(ended: RoundEnded, checks: ChecksEnded | None, loop: Loop, state: LoopState) -> Iterator[Remark]:
    """Remarks about a round that has just ended; `state` is the one after it."""
    if is_over_budget(ended, state):
        yield Remark(WHY_OVER_BUDGET)
    elif ended.outcome is not Outcome.OK and ended.detail:
        yield Remark(plain(ended.detail))
    if ended.commands.told:
        yield Remark(plain(ended.commands.told), for_agent=True)
    yield from red_checks(checks) if checks else ()
    yield from proof_remarks(checks) if checks else ()
    if ended.promise is Promised.GIVEN and (missing := completion.missing(loop, state)):
        yield Remark(f"the agent says it is done, but {completion.describe(missing[0], loop, state)}")
    if ended.promise is Promised.MENTIONED and "promise" in completion.wanted(loop, state):
        yield Remark("the agent only mentioned the promise, so it does not count")
    if ended.claim and ended.claim.status == UNCLEAR:
        why = (*ended.claim.odd, f"“{ended.claim.summary}” is not a status")[0]
        yield Remark(f"the agent's answer claims nothing: {plain(why)}", for_agent=True)
    if ended.claim and ended.claim.status == TaskStatus.DONE and state.last:
        mine = tally_of(state.tallies, state.last.task_id)
        if mine.claims and not is_enough(loop, state, mine):
            yield Remark("the agent says that its task is done, but nothing was changed for it", for_agent=True)
    if ended.found.doubted:
        not_confirmed = ", so not confirmed" if loop.ticks is Ticks.DOUBT else ""
        yield Remark(f"{completion.DOUBTED}{not_confirmed}: {', '.join(ended.found.doubted)}")
    if ended.found.tampered:
        put_back = " (put back)" if ended.found.restored else ""
        yield Remark(f"changed protected files{put_back}: {', '.join(map(plain, ended.found.tampered))}")
    if ended.blocked:
        yield Remark(f"the agent needs a person: {plain(ended.blocked)}")
    for left in ended.leftovers:
        yield Remark(f"ended a process left behind: {plain(left)}")


def of_commit(fact: CommitEnded) -> Iterator[Remark]:
    """What became of a round's commit."""
    if fact.failure:
        yield Remark(f"not committed: {plain(fact.told)}", for_agent=bool(fact.excerpt))
    elif fact.commit:
        files = f" ({plural(fact.files, 'file')})" if fact.files else ""
        yield Remark(f"committed as {fact.commit[:7]}{files} {fact.remark}".rstrip())
    for paths, why in ((fact.left_out, "your own changes"), (fact.secrets, "a secret")):
        if paths:
            yield Remark(f"left out of commits because of {why} in {', '.join(map(plain, paths))}")


def red_checks(checks: ChecksEnded) -> Iterator[Remark]:
    for verdict in checks.verdicts:
        if not verdict.passed:
            yield Remark(plain(verdict.told), for_agent=True)
        if verdict.never_ran and not checks.round:
            yield Remark("a program that it needs is missing; if its name is wrong, stop now (Ctrl-C)")


def proof_remarks(checks: ChecksEnded) -> Iterator[Remark]:
    """What was found out behind passing checks."""
    proved = checks.proved
    for verdict in checks.verdicts:
        if verdict.fewer:
            yield Remark(plain(f"! fewer tests: {verdict.fewer}"), for_agent=True)
        if verdict.passed and verdict.tests_nothing:
            yield Remark(plain(f"! {verdict.check} ran no test, so it proves nothing"))
    if proved is None:
        return
    for each in proved.noticed:
        if each.answer.is_doubt or each.answer is Answer.UNKNOWN:
            which = f" ({', '.join(each.tasks)})" if len(each.tasks) > 1 else ""
            sign = "! " if each.answer.is_doubt else ""
            yield Remark(plain(f"{sign}{each.words}{which}"), for_agent=each.asked)
    held = proved.held
    if held and held.changed and not held.refused and not held.known:
        tests = [each.path for each in held.changed if not each.data] or ["test data"]
        what = {True: "the checks pass with them as they were, too", False: "the checks fail with them as they were"}
        told = "no reason given" if held.unexplained else held.detail if held.passed is None else what[held.passed]
        yield Remark(plain(f"! changed tests: {', '.join(tests[:3])}: {told}"), bool(held.unexplained))


def occasion(checks: ChecksEnded, state: LoopState) -> str:
    """Why checks ran although no round had just ended."""
    if not checks.round:
        return "before any change"
    all_done = state.tasks is not None and not state.tasks.open and not state.tasks.problem
    return "all tasks are done" if all_done else "the work tree as it is now"
