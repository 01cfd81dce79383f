"""Fold facts into a state: `replay` applies `after` to each."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import assert_never

from msgspec.structs import replace

from bydawn.core import progress, proof, records
from bydawn.core.facts import (
    COMMIT,
    ITSELF,
    AgentLimited,
    AnyFact,
    CheckpointApproved,
    ChecksCut,
    ChecksEnded,
    CommitEnded,
    EventRecorded,
    HookEnded,
    IterationRecorded,
    LedgerRepaired,
    LimitsRaised,
    LinesAdded,
    LoopChanged,
    LoopCreated,
    LoopDismissed,
    LoopStopped,
    MachineSlept,
    NoteAdded,
    NoticeEnded,
    Obstructed,
    PauseRequested,
    Record,
    RestartsUsedUp,
    RoundEnded,
    RoundsBefore,
    RoundStarted,
    RunStarted,
    SessionBegun,
    StopRequested,
    TamperingAccepted,
    TaskSettled,
    TasksRead,
    WaitStarted,
    with_tasks,
)
from bydawn.core.loop import Ticks
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.progress import forgiven
from bydawn.core.proof import Proofs
from bydawn.core.state import (
    KNOWN_TREES,
    LastRound,
    Limited,
    LoopState,
    OpenRound,
    Printed,
    known_as,
    task_mark,
)
from bydawn.core.text import same_title
from bydawn.core.values import Failing, TaskStatus, Verdict, whole

RECENT = 10  # rounds that an estimate is based on
_STRIP = 20  # rounds whose results are remembered
_COUNTLESS = 10**6  # failures


def replay(ledger: Iterable[Record], state: LoopState | None = None) -> LoopState:
    """The state after a ledger, or after its tail on top of an earlier state."""
    state = state or LoopState()
    for record in ledger:
        state = after(state, record)
    return state


def after(state: LoopState, record: Record) -> LoopState:
    """The state after one more fact."""
    fact = with_tasks(record.fact, partial(whole, before=state.tasks))
    then = _after(replace(state, seq=record.seq, updated_at=record.at), fact, record.at)
    return replace(then, clocked_at=record.at) if then.elapsed != state.elapsed else then


def _after(state: LoopState, fact: AnyFact, at: datetime) -> LoopState:
    match fact:
        case LoopCreated():
            return replace(state, created_at=at, settings=fact.settings)
        case LoopChanged():
            return replace(state, settings=fact.settings, resumes=True)  # the sandbox may be another one
        case EventRecorded() | IterationRecorded():
            return progress.recorded(state, fact)
        case RoundsBefore():
            rounds = max(state.rounds, fact.rounds)
            state = replace(state, round=max(state.round, rounds), rounds=rounds)
            return replace(state, output=fact.output, notes=fact.notes)
        case RunStarted():
            return _run_started(replace(_given_up(state), run_since=at), fact)
        case TasksRead():
            return _moved(progress.tasks_read(state, fact.tasks), fact.tree, fact.work)
        case LinesAdded():
            return replace(state, added=(*state.added, *(replace(line, round=state.round) for line in fact.lines)))
        case TaskSettled():
            return progress.task_settled(state, fact)
        case CheckpointApproved():
            return replace(state, approved=(*state.approved, fact.mark))
        case TamperingAccepted():
            state = replace(state, proofs=proof.accepted(state.proofs, fact.paths))
            return progress.accepted(state, _joined(state.accepted, fact.paths))
        case HookEnded():
            agreed = fact.passed and not fact.more and fact.hook == state.refused
            state = replace(state, elapsed=fact.elapsed, refused="" if agreed else state.refused)
            return _moved(progress.uncommitted(state, fact.tree), fact.tree, fact.work) if fact.tree else state
        case CommitEnded():
            state = progress.commit_ended(_touched(state, () if fact.restored else fact.tampered), fact)
            return _moved(state, fact.tree, fact.work) if fact.tree else state
        case RoundStarted():
            return _round_started(state, fact, at)
        case SessionBegun():
            opened = replace(state.open_round, session=fact.session) if state.open_round else None
            return replace(state, open_round=opened)
        case RoundEnded():
            return _round_ended(state, fact)
        case AgentLimited():
            known = Limited(agent=fact.agent, detail=fact.detail, until=fact.until, elapsed=state.elapsed, times=0)
            free = replace(state.free, since=None, seconds=0.0)  # the wait that follows does not count
            limited = (*progress.without(state.limited, fact.agent), known)
            return replace(state, limited=limited, free=free, failing=Failing(), waiting=None)
        case ChecksEnded():
            return _checks_ended(state, fact)
        case ChecksCut():
            return _touched(state, () if fact.restored else fact.tampered)
        case WaitStarted():
            return replace(state, waiting=fact)
        case NoteAdded():
            state = replace(state, notes=(*state.notes, fact))
            return state if fact.by == ITSELF else progress.answered(state)
        case PauseRequested():
            return replace(state, pause=fact, given_up=None)
        case StopRequested():
            return replace(state, stop=fact, given_up=None)
        case RestartsUsedUp():
            return replace(state, given_up=fact.restart, pause=None, stop=None)
        case LoopDismissed():
            return replace(state, dismissed=True)
        case LimitsRaised():
            return replace(state, raised=fact.limits)
        case Obstructed():
            unseen = state.unseen or fact.unseen
            due = state.commit_due or fact.kind == COMMIT  # it is tried again before anything else
            return replace(state, obstructed=fact, refused=fact.hook or state.refused, unseen=unseen, commit_due=due)
        case LoopStopped():
            # Its last hook ran between the decision and this.
            elapsed, lifetime = max(state.elapsed, fact.decided.elapsed), state.lifetime.ended(fact)
            return replace(state, stopped=fact, waiting=None, elapsed=elapsed, lifetime=lifetime)
        case LedgerRepaired():
            return replace(state, round=max(state.round, fact.last_round))
        case MachineSlept() | NoticeEnded():
            return state
        case _ as unreachable:
            assert_never(unreachable)


def _given_up(state: LoopState) -> LoopState:
    """A new run begins: an attempt that the earlier one was going to repeat is over."""
    last = state.last
    if last is None or last.counts or last.cut:
        return state
    last = replace(last, cut=True)
    return replace(
        state,
        last=last,
        cut_rounds=state.cut_rounds + 1,
        printed=Printed(round=last.ended.round, agent=last.agent),
        output="",
    )


def _run_started(state: LoopState, fact: RunStarted) -> LoopState:
    found = fact.found
    return replace(
        _moved(state if fact.only_checks else forgiven(state, keeps_aside=fact.keeps_aside), found.tree, found.work),
        cycle=fact.cycle,
        rest=fact.rest,
        restart=fact.restart,
        given_up=None,
        lifetime=state.lifetime.began(fact, is_first=not state.runs),
        run=fact.run,
        pid=fact.pid,
        runs=state.runs + 1,
        box=state.box if state.round else fact.box,
        commits=fact.commits,
        commits_all=fact.commits_all,
        uncommitted=progress.leftover(state.round, found.tree) if fact.leftover else state.uncommitted,
        commit_tried=state.commit_tried and not fact.commits_all,
        rounds_this_run=0,
        rounds_allowed=fact.rounds_allowed,
        run_elapsed=max(state.elapsed, fact.elapsed),
        recording=fact.recording,
        records=progress.records_at_start(state, fact),
        per_task=fact.per_task,
        idle_fails=fact.idle_fails,
        final=False,
        before=(state.stopped or state.before) if fact.only_checks else None,
        awaiting_checks=state.awaiting_checks or fact.only_checks,
        seconds_allowed=fact.seconds_allowed,
        ticks=fact.ticks,
        tasks=found.tasks,
        added=(),
        fewest=progress.fewest_of(state, found.tasks) if state.stopped is None else progress.open_in(found.tasks),
        tampered=found.still_tampered,
        protected_tree=(state.protected_tree or state.tree) if found.still_tampered else "",
        elapsed=max(state.elapsed, fact.elapsed),
        pause=None,
        stop=None,
        waiting=None,
        obstructed=None,
        stopped=None,
        dismissed=False,
        unseen=False,
        closed=_joined(state.closed, map(task_mark, found.closed)),
        doubted=_joined(state.doubted, found.doubted),
        doubted_at=(found.work or found.tree) if found.doubted else state.doubted_at,
        ticked_only=_joined(state.ticked_only, found.doubted),
        proofs=_proofs_at_start(state, fact),
        rewritten=_joined(state.rewritten, found.rewritten),
    )


def _proofs_at_start(state: LoopState, fact: RunStarted) -> Proofs:
    known = state.proofs
    if not known.tree:
        known = replace(known, tree=fact.found.tree, work=fact.found.work or fact.found.tree)
    newer = {path: form for path, form in known.newer.items() if path not in fact.yours}
    return replace(known, yours=known.yours | fact.yours, newer=newer, taken=())


def _joined(known: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    added = tuple(more)
    return tuple(dict.fromkeys((*known, *added))) if added else known


def _round_started(state: LoopState, fact: RoundStarted, at: datetime) -> LoopState:
    consumed = set(fact.notes)
    return replace(
        _moved(state, fact.tree, fact.work),
        round=fact.round,
        open_round=OpenRound(
            round=fact.round,
            started_at=at,
            started=fact,
            session=fact.session,
            notes=tuple(note for note in state.notes if note.note in consumed),
        ),
        proofs=proof.round_began(state.proofs, fact.task_id, fact.tree, _red(state)),
        notes=tuple(note for note in state.notes if note.note not in consumed),
        waiting=None,
        elapsed=fact.decided.elapsed,
        records=replace(state.records, in_round=0),
    )


def _round_ended(state: LoopState, fact: RoundEnded) -> LoopState:
    found, policy = fact.found, POLICY[fact.outcome]
    blip = not policy.counts and policy.backs_off
    failed = policy.failure and not state.records.in_round  # what it recorded before was not in vain
    opened, cut = state.open_round, fact.outcome is Outcome.INTERRUPTED
    is_over = policy.counts or cut
    session, lost = progress.session_after(state, fact), fact.outcome is Outcome.SESSION_LOST
    # A note that an agent had no chance to follow is kept for the next prompt.
    unheeded = opened.notes if opened and not policy.counts else ()
    closed = tuple(task for task in found.closed if task_mark(task) not in state.closed)
    touched = progress.uncommitted(_touched(state, found.still_tampered), found.tree)
    return replace(
        _moved(touched, found.tree, found.work),
        open_round=None,
        commit_due=state.commits and fact.outcome is Outcome.OK,
        last=LastRound(
            ended=replace(fact, found=replace(found, tasks=None)),  # the state has them, and a list may be long
            agent=opened.started.agent if opened else "",
            task=opened.started.task if opened else None,
            task_id=opened.started.task_id if opened else None,
            closed=closed,
            blocked_again=state.last is not None and state.last.ended.blocked.split() == fact.blocked.split(),
            fewer=progress.fewer(state, found.tasks),
            counts=policy.counts,
            cut=cut,
            resumed=opened is not None and opened.session is not None,
            audit=opened is not None and opened.started.audit,
        ),
        lifetime=state.lifetime.worked(fact),
        rounds=state.rounds + policy.counts,
        cut_rounds=state.cut_rounds + cut,
        printed=Printed(round=fact.round, agent=opened.started.agent if opened else "") if is_over else state.printed,
        output="" if is_over else state.output,
        rounds_this_run=state.rounds_this_run + policy.counts,
        worked_this_run=state.worked_this_run or found.progress,
        ok_rounds=state.ok_rounds + (fact.outcome is Outcome.OK),
        session=session,
        sessions=progress.sessions_after(state, session),
        session_lost=fact.detail if lost else "" if policy.counts else state.session_lost,
        final=False,
        resumes=state.resumes and not (fact.commands.read_only and not found.progress),
        records=progress.records_after_round(state, fact),
        limited=progress.limited_after(state, fact),
        usage=fact.usage.plus(state.usage) if fact.usage else state.usage,
        unpriced=state.unpriced or (fact.usage is not None and fact.usage.unpriced),
        tasks=found.tasks or state.tasks,
        added=() if found.tasks else state.added,
        fewest=progress.fewest_of(state, found.tasks),
        tallies=progress.tallies_after_round(state, opened.started.task_id, opened.started.task or "", fact)
        if opened
        else state.tallies,
        doubted=_doubted(state, fact),
        doubted_at=(found.work or found.tree) if found.doubted else state.doubted_at,
        ticked_only=_joined(tuple(task for task in state.ticked_only if task not in found.closed), found.doubted),
        proofs=_proofs_after_round(state, fact),
        closed=_joined(state.closed, map(task_mark, found.closed)),
        rewritten=_joined(state.rewritten, found.rewritten),
        unseen=state.unseen or fact.unseen,
        notes=(*unheeded, *state.notes),
        awaiting_checks=policy.checks,
        command_error=progress.command_error(fact) if policy.counts else state.command_error,
        vain_rounds=progress.in_vain(state, fact) if policy.counts else state.vain_rounds,
        failures_in_a_row=_streak(state.failures_in_a_row, grows=failed, holds=not policy.counts),
        failing=progress.failing(state.failing, fact, failed=failed),
        free=progress.free_turns(state, fact),
        blips_in_a_row=_streak(state.blips_in_a_row, grows=blip, holds=fact.outcome is Outcome.INTERRUPTED),
        rounds_without_progress=_streak(
            0 if _confirms(state, fact) else state.rounds_without_progress,
            grows=not found.progress and not _confirms(state, fact),
            holds=not policy.counts,
            by=max(1, state.records.in_round),
        ),
        rounds_without_result=_streak(state.rounds_without_result, grows=not closed, holds=not policy.counts),
        gave_up=state.gave_up and not found.progress,
        elapsed=fact.elapsed,
        recent_seconds=(*state.recent_seconds, fact.seconds)[-RECENT:] if policy.counts else state.recent_seconds,
        strip=(*state.strip, progress.result_of(fact))[-_STRIP:],
        summaries=(*state.summaries, fact.said)[-3:] if fact.outcome is Outcome.OK and fact.said else state.summaries,
    )


def _doubted(state: LoopState, fact: RoundEnded) -> tuple[str, ...]:
    """A later round confirms a box that it had nothing else to do for, and did something; or that it calls done."""
    opened, left = state.open_round, tuple(task for task in state.doubted if task not in fact.found.closed)
    if state.ticks is Ticks.DOUBT and fact.outcome is Outcome.OK and opened:
        worked = opened.started.task_id is None and (fact.found.work or fact.found.tree) != opened.work
        left = tuple(task for task in left if not worked and not any(same_title(task, each) for each in fact.already))
    return _joined(left, fact.found.doubted)


def _confirms(state: LoopState, fact: RoundEnded) -> bool:
    """Did it confirm boxes of the round before, with which fewer were open than ever? That is progress after all."""
    left = {*_doubted(state, fact)} if state.doubted else set[str]()
    return state.last is not None and state.last.fewer and any(task not in left for task in state.doubted)


def _proofs_after_round(state: LoopState, fact: RoundEnded) -> Proofs:
    """The tasks that it closed wait for passing checks; so does one of a folder that its agent calls done."""
    opened, known = state.open_round, state.proofs
    policy = POLICY[fact.outcome]
    known = proof.explained(known, fact.reasons, answered=policy.counts and fact.outcome is Outcome.OK)
    if opened is None or (opened.work == (fact.found.work or fact.found.tree) and not known.begun):
        return known
    ids = tuple(id_ for id_ in (state.tasks.open_ids if state.tasks else ()) if fact.found.tasks and fact.found.closed)
    ids = tuple(id_ for id_ in ids if fact.found.tasks and id_ not in fact.found.tasks.open_ids)
    tasks = fact.found.closed
    if fact.claim and fact.claim.status == TaskStatus.DONE and opened.started.task_id:
        ids, tasks = (opened.started.task_id,), (opened.started.task or opened.started.task_id,)
    own = proof.Begun(task=opened.started.task_id or "", tree=opened.started.tree, red=_red(state))
    return proof.closed(known, ids, tasks, own, fact.found.tree)


def _red(state: LoopState) -> tuple[str, ...]:
    """The checks that failed by themselves, and not because of what was found out behind them."""
    return () if state.proofs.passed else tuple(verdict.check for verdict in state.failed_checks)


def _checks_ended(state: LoopState, fact: ChecksEnded) -> LoopState:
    # A round includes its checks, or the estimate of the time left would be too low.
    recent = [*state.recent_seconds]
    recent[-1:] = [seconds + fact.seconds for seconds in recent[-1:]]
    red = [verdict for verdict in fact.verdicts if not verdict.passed]
    failure = "+".join(verdict.fingerprint or verdict.detail for verdict in red)
    # No round is blamed for what failed before any work, nor twice.
    is_baseline, counts = fact.round == 0, fact.round > state.verdict_round
    last = state.last
    got_on = last is not None and bool(last.closed) and (last.fewer or last.ended.found.progress)
    blamed = [verdict for verdict in red if verdict.check not in (state.baseline or ())]
    then = _touched(state, () if fact.restored else fact.tampered)
    then = _moved(then, fact.tree, fact.work) if fact.work else then
    known = replace(state.proofs, tools=fact.tools) if is_baseline else state.proofs
    # Ticked in a round that changed nothing else, and proven now: that is progress after all.
    turned_green = {verdict.check for verdict in state.failed_checks} - {verdict.check for verdict in red}
    # Only checks that could know confirm a box: they turned green since it was ticked, or the work tree changed.
    could_know = not red and (bool(turned_green) or then.work != state.doubted_at)
    doubted = () if could_know and state.ticks is Ticks.DOUBT else state.doubted
    then = progress.got_on(then) if got_on and not red and (could_know or not doubted) else then
    failures = sum(map(_failures, red))
    is_better = bool(turned_green) or failures < state.fewest_failures or (got_on and last is not None and last.fewer)
    return replace(
        then,
        red_rounds=_streak(state.red_rounds, grows=bool(red) and not is_better, holds=not counts),
        fewest_failures=failures if is_better else min(failures, state.fewest_failures or failures),
        doubted=doubted,
        proofs=proof.checked(known, fact.verdicts, fact.tree, fact.proved, first=fact.round == 0),
        rounds_without_result=0 if turned_green else then.rounds_without_result,
        verdicts=fact.verdicts,
        verdict_tree=fact.tree,
        verdict_round=fact.round,
        awaiting_checks=False,
        final=fact.final and not red,
        flaky=_joined(state.flaky, (verdict.check for verdict in fact.verdicts if verdict.flaky)),
        baseline=tuple(each.check for each in red if fact.excuses)
        if is_baseline
        else progress.still_red(state.baseline, red),
        check_failures_in_a_row=_streak(state.check_failures_in_a_row, grows=bool(blamed), holds=not counts),
        failure=failure,
        excused=bool(red) and not blamed,
        same_failure=_again(state, failure, got_on) if counts else state.same_failure,
        tallies=progress.blamed(state) if counts and blamed else state.tallies,
        records=records.proven(state.records, fact.round, len(fact.verdicts) - len(red)),
        elapsed=fact.elapsed,
        recent_seconds=tuple(recent),
        strip=progress.proven(state.strip, red=bool(red)) if counts else state.strip,
    )


def _failures(verdict: Verdict) -> int:
    """How many tests failed. Where none could even run, or no output counts them, any number is better."""
    counts = verdict.counts
    return counts.failed if counts and counts.ran and counts.failed else _COUNTLESS


def _again(state: LoopState, failure: str, got_on: bool) -> int:
    """Rounds in a row that ended with exactly the same failure and closed no task."""
    if not failure or got_on:
        return 0
    return state.same_failure + 1 if failure == state.failure else 1


def _streak(length: int, *, grows: bool, holds: bool, by: int = 1) -> int:
    """A streak of similar rounds: unchanged, longer, or broken."""
    if holds:
        return length
    return length + by if grows else 0


def _moved(state: LoopState, tree: str, work: str) -> LoopState:
    """The state with the work tree as it is now."""
    return replace(state, tree=tree, work=work or tree, trees=_seen(state.trees, work or tree))


def _touched(state: LoopState, paths: tuple[str, ...]) -> LoopState:
    """The state with protected files that are not as they were; `state.tree` is still the tree from before."""
    if not paths:
        return state
    return replace(state, tampered=_joined(state.tampered, paths), protected_tree=state.protected_tree or state.tree)


def _seen(trees: tuple[str, ...], tree: str) -> tuple[str, ...]:
    short = known_as(tree)
    if not tree or trees[-1:] == (short,):
        return trees
    return (*(known for known in trees if known != short), short)[-KNOWN_TREES:]
