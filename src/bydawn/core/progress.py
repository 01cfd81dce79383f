"""What did a round leave behind, did it make progress, and how long will the rest take?"""

import msgspec
from msgspec.structs import replace

from bydawn.core import records
from bydawn.core.facts import CommitEnded, EventRecorded, IterationRecorded, RoundEnded, RunStarted, TaskSettled
from bydawn.core.loop import Loop
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.rules import Rule
from bydawn.core.state import FreeTurns, LastRound, Limited, LoopState, Session, Span, Tally, known_as, task_mark
from bydawn.core.text import shorten
from bydawn.core.values import Failing, Result, TaskClaim, TaskReading, TaskStatus, Usage, Verdict

ENOUGH_ROUNDS = 3  # with fewer, an estimate is a guess
_NEARLY_THERE = 60  # seconds
_TOLD = 120  # characters about a turn that cost no round
_TOLD_TURNS = 10
_SESSIONS = 100
_SPANS = 50  # what is older stays out of commits, like anything else that had changed before


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn used, and the whole session so far where its agent counts on from turn to turn."""

    turn: Usage | None = None
    session: Usage | None = None


def made(state: LoopState, work: str, closed: tuple[str, ...]) -> bool:
    """A work tree not seen before, or a task closed for the first time; never what the agent says it changed.

    `work` is the tree without notes and task list; `closed` leaves out tasks ticked without any other change.
    """
    return known_as(work) not in state.trees or any(task_mark(task) not in state.closed for task in closed)


def fewer(state: LoopState, now: TaskReading | None) -> bool:
    """Are fewer tasks open than ever before? Adding a box and ticking it is not progress."""
    return now is not None and not now.problem and (state.fewest is None or now.open < state.fewest)


def time_left(state: LoopState) -> tuple[float, float] | None:
    """A range of seconds from the recent rounds and the tasks they closed; None if it is too early to tell."""
    recent = state.recent_seconds
    if state.tasks is None or not state.closed or len(recent) < ENOUGH_ROUNDS:
        return None
    rounds_left = state.tasks.open * max(state.rounds, 1) / len(state.closed)
    ordered = sorted(recent)
    quarter = (len(ordered) - 1) / 4
    return rounds_left * ordered[int(quarter)], rounds_left * ordered[-1 - int(quarter)]


def ticked_and_red(loop: Loop, state: LoopState) -> str | None:
    """The text of the last round's task, if it is ticked in a list and a check fails that did not fail before."""
    last, tasks = state.last, state.tasks
    if not loop.tasks_required or loop.task_folder or tasks is None or last is None or last.task_id is None:
        return None
    if state.excused or not state.failed_checks or last.task_id in (*state.settled.aside, *state.settled.skipped):
        return None
    return None if last.task_id in tasks.open_ids else last.task


def free_turns(state: LoopState, fact: RoundEnded) -> FreeTurns:
    """Add this turn if it cost no round. A stop by a person does not count, nor does a limit, which has an end."""
    known, policy = state.free, POLICY[fact.outcome]
    if policy.counts or policy.stops:
        return FreeTurns()
    if fact.outcome is Outcome.LIMITED:
        return replace(known, since=None, seconds=0.0)
    told = (*known.told, f"round {fact.round}: {shorten(fact.detail or fact.outcome, _TOLD)}")[-_TOLD_TURNS:]
    if fact.outcome is Outcome.INTERRUPTED:
        return known if state.stop_now else replace(known, cut_short=known.cut_short + 1, told=told)
    if fact.usage and (fact.usage.tokens or fact.usage.cost_usd):
        return replace(known, paid=known.paid + 1, since=None, seconds=0.0, told=told)
    since = fact.elapsed if known.since is None else known.since
    return replace(known, since=since, seconds=fact.elapsed - since, told=told)


def failing(known: Failing, fact: RoundEnded, *, failed: bool) -> Failing:
    """Add this turn. A changed tree, or a usage limit, starts a new count."""
    if failed and known.times and not fact.found.progress:
        return replace(known, times=known.times + 1, seconds=fact.elapsed - known.since)
    if failed:
        return Failing(times=1, since=fact.elapsed)
    holds = not POLICY[fact.outcome].counts and fact.outcome is not Outcome.LIMITED and not fact.found.progress
    return known if holds else Failing()


def tally_of(tallies: tuple[Tally, ...], task: str | None) -> Tally:
    return next((tally for tally in tallies if tally.task == task), Tally(task=task or ""))


def is_enough(loop: Loop, state: LoopState, mine: Tally) -> bool:
    """Is it enough that a task is called done, if the checks pass? If none of its own rounds changed anything, another
    task's round may have done its work; if none has in this run, it takes a second claim in a row."""
    done_before = loop.by_task is not None and bool(loop.checks) and state.worked_this_run
    return mine.progress or mine.claims > 1 or done_before


def tallies_after_round(state: LoopState, task: str | None, text: str, fact: RoundEnded) -> tuple[Tally, ...]:
    """Add this round; one without progress may have failed its task."""
    tallies = state.tallies
    if task is None:
        return tallies
    mine = tally_of(tallies, task)
    if not POLICY[fact.outcome].counts:  # it neither failed nor claimed anything, but its changes are there
        return _with_tally(tallies, replace(mine, text=text, progress=True)) if fact.found.progress else tallies
    failed = POLICY[fact.outcome].failure or (state.idle_fails and not fact.found.progress)
    said_done = fact.claim is not None and fact.claim.status == TaskStatus.DONE
    return _with_tally(
        tallies,
        replace(
            mine,
            text=text,
            failures=mine.failures + 1 if failed else 0,
            before=mine.failures,
            progress=mine.progress or fact.found.progress,
            claims=mine.claims + 1 if said_done else 0,
            question="",
        ),
    )


def _with_tally(tallies: tuple[Tally, ...], mine: Tally) -> tuple[Tally, ...]:
    return (*(tally for tally in tallies if tally.task != mine.task), mine)


# -- what facts about tasks do to the state ------------------------------------------------------------------------


def task_settled(state: LoopState, fact: TaskSettled) -> LoopState:
    """The next task starts without this one's failures, but failing checks concern every task.

    Once a task was set aside, a second one without progress is too many: then the tasks are not the problem.
    """
    others = tuple(tally for tally in state.tallies if tally.task != fact.task)
    question = fact.reason if fact.by == Rule.AGENT_BLOCKED else ""
    known, is_aside = tally_of(state.tallies, fact.task), fact.status is TaskStatus.ASIDE
    reopened = known.reopened + (fact.by == Rule.FINAL_CHECKS)
    if is_aside or reopened:
        progress = known.progress and is_aside  # what its rounds changed is still there
        mine = Tally(task=fact.task, text=fact.text, question=question, reopened=reopened, progress=progress)
        others = (*others, mine)
    last = state.last
    if last and last.task_id == fact.task:
        # What it said about its task has been handled; what was odd about it has not been said back yet.
        odd = last.ended.claim.odd if last.ended.claim else ()
        claim = TaskClaim(status="", odd=odd) if odd else None
        last = replace(last, ended=replace(last.ended, claim=claim, blocked=""))
    settled = state.settled.having(fact.task, fact.status, doubted=fact.doubted)
    state = replace(state, settled=settled, tallies=others, last=last, final=False)
    if fact.status is TaskStatus.DONE:
        return replace(state, same_failure=0, check_failures_in_a_row=0, rounds_without_result=0, red_rounds=0)
    if question:  # asking is not idling
        return replace(state, same_failure=0, rounds_without_progress=0)
    if fact.status is TaskStatus.ASIDE:
        idle = state.rounds_without_progress if state.gave_up else 0
        return replace(state, same_failure=0, rounds_without_progress=idle, gave_up=True)
    return state


def answered(state: LoopState) -> LoopState:
    """A note from a person may answer any question, so every task with one is tried again."""
    asked = {tally.task for tally in state.questions}
    aside = tuple(task for task in state.settled.aside if task not in asked)
    return replace(state, settled=replace(state.settled, aside=aside))


def tasks_read(state: LoopState, tasks: TaskReading) -> LoopState:
    """Between rounds: a person changed the list, or a task was settled."""
    known = state.tasks.open if state.tasks else 0
    given = state.fewest + max(0, tasks.open - known) if state.fewest is not None else None
    fewest = fewest_of(replace(state, fewest=given), tasks)
    then = got_on(state) if fewer(state, tasks) else state
    return replace(then, tasks=tasks, fewest=fewest, added=())


def got_on(state: LoopState) -> LoopState:
    return replace(state, rounds_without_progress=0, rounds_without_result=0, gave_up=False)


def fewest_of(state: LoopState, tasks: TaskReading | None) -> int | None:
    return open_in(tasks) if fewer(state, tasks) else state.fewest


def open_in(tasks: TaskReading | None) -> int | None:
    return tasks.open if tasks and not tasks.problem else None


def blamed(state: LoopState) -> tuple[Tally, ...]:
    """A round whose checks fail has failed its task, even if it ticked it."""
    last = state.last
    if last is None or last.task_id is None:
        return state.tallies
    if state.idle_fails and not last.ended.found.progress:  # it was blamed already
        return state.tallies
    mine = tally_of(state.tallies, last.task_id)
    return _with_tally(state.tallies, replace(mine, failures=mine.before + 1))


# -- limits of its agent -----------------------------------------------------------------------------------------------


def limited_after(state: LoopState, fact: RoundEnded) -> tuple[Limited, ...]:
    """The limited agents after a round. A turn that was cut short says nothing about limits."""
    opened = state.open_round
    if opened is None or (fact.outcome is not Outcome.LIMITED and not POLICY[fact.outcome].counts):
        return state.limited
    others = without(state.limited, opened.started.agent)
    if fact.outcome is not Outcome.LIMITED:
        return others
    # A reset that is named will be waited for, and that is enough; only one that is always nearly there is not.
    at, until = state.updated_at, fact.wait_until
    named = at is not None and until is not None and (until - at).total_seconds() >= _NEARLY_THERE
    times = 1 + max((row.times for row in state.limited if row.agent == opened.started.agent and not named), default=0)
    mine = Limited(
        agent=opened.started.agent, detail=fact.detail, until=fact.wait_until, elapsed=fact.elapsed, times=times
    )
    return (*others, mine)


def without(limited: tuple[Limited, ...], agent: str) -> tuple[Limited, ...]:
    return tuple(row for row in limited if row.agent != agent)


# -- conversations -----------------------------------------------------------------------------------------------------


def session_after(state: LoopState, fact: RoundEnded) -> Session | None:
    """The conversation that could be continued. Not one that is full or lost; after a crash, the id chosen
    beforehand still names it."""
    opened = state.open_round
    name = fact.session or (opened.session if opened else None)
    if name is None or opened is None or fact.outcome in (Outcome.CONTEXT_FULL, Outcome.SESSION_LOST):
        return None
    before = state.conversation(name)
    went_well = fact.outcome is Outcome.OK  # a turn that was cut short may not have read its prompt
    return Session(
        id=name,
        agent=opened.started.agent,
        rounds=before.rounds + 1 if before else 1,
        task=opened.started.task,
        task_id=opened.started.task_id,
        usage=fact.session_usage or (before.usage if before else None),
        knows=went_well or (before is not None and before.knows),
        task_text=opened.started.task_text if went_well else before.task_text if before else "",
    )


def sessions_after(state: LoopState, mine: Session | None) -> tuple[Session, ...]:
    """The conversations of all tasks, after a round of one."""
    opened = state.open_round
    if not state.per_task or opened is None or opened.started.task_id is None:
        return state.sessions
    others = tuple(each for each in state.sessions if each.task_id != opened.started.task_id)
    return (*others, mine)[-_SESSIONS:] if mine else others


# -- in one word -------------------------------------------------------------------------------------------------------


def result_of(fact: RoundEnded) -> Result:
    """How a round came out, before its checks."""
    policy = POLICY[fact.outcome]
    if policy.failure or policy.stops:
        return Result.FAILED
    if not policy.counts:
        return Result.CUT
    return Result.WORKED if fact.found.progress else Result.IDLE


def proven(strip: tuple[Result, ...], *, red: bool) -> tuple[Result, ...]:
    """The strip after the checks of its last round; they say nothing good about a round that did nothing."""
    *before, last = strip or (Result.CUT,)
    if red and last in (Result.WORKED, Result.IDLE):
        return (*before, Result.RED)
    return (*before, Result.PASSED) if last is Result.WORKED else strip


def uncommitted(state: LoopState, tree: str) -> LoopState:
    """The state with one more change that is in no commit yet, from the current tree to this one."""
    before, after = (each.partition("+")[0] for each in (state.tree, tree))
    if not state.commits or before == after:
        return state
    spans, span = state.uncommitted, Span(first=state.round, last=state.round, before=before, after=after)
    if spans and spans[-1].after == before:
        spans, span = spans[:-1], replace(spans[-1], last=state.round, after=after)
    return replace(state, uncommitted=(*spans, span)[-_SPANS:], commit_tried=False)


def leftover(round_: int, tree: str) -> tuple[Span, ...]:
    """What was in a work tree before the first round."""
    return (Span(first=round_, last=round_, before="", after=tree.partition("+")[0]),)


def commit_ended(state: LoopState, fact: CommitEnded) -> LoopState:
    """The state after a commit, or without one; what a git hook changed meanwhile waits for the next."""
    named = (*fact.left_out, *fact.secrets)
    state = replace(
        state,
        uncommitted=state.uncommitted if fact.failure else (),
        commit=fact.commit or state.commit,
        commit_due=False,
        commit_failure=fact.excerpt if fact.failure else "",
        left_out=(*state.left_out, *named),
        elapsed=fact.elapsed,
    )
    return replace(uncommitted(state, fact.tree) if fact.tree else state, commit_tried=True)


def accepted(state: LoopState, paths: tuple[str, ...]) -> LoopState:
    """The next reading is trusted again, but checkpoints and their approvals are not forgotten."""
    tasks = state.tasks
    if tasks and tasks.problem:
        tasks = replace(tasks, problem=None, disbelieved="", text="", open_ids=(), above=())
    tasks = replace(tasks, gone=()) if tasks else None
    return replace(state, tampered=(), protected_tree="", tasks=tasks, added=(), accepted=paths)


def still_red(baseline: tuple[str, ...] | None, red: list[Verdict]) -> tuple[str, ...] | None:
    """A check that has passed once is no longer excused."""
    if baseline is None:
        return None
    return tuple(name for name in baseline if any(verdict.check == name for verdict in red))


def command_error(fact: RoundEnded) -> str:
    return fact.commands.fingerprint if fact.commands.all_failed and not fact.found.progress else ""


def in_vain(state: LoopState, fact: RoundEnded) -> int:
    """Rounds in a row in which every command failed with the same error, and nothing changed."""
    error = command_error(fact)
    if not error:
        return 0
    return state.vain_rounds + 1 if error == state.command_error else 1


# -- what others recorded ----------------------------------------------------------------------------------------------


def records_at_start(state: LoopState, fact: RunStarted) -> records.Records:
    """A person who goes on knows of a recorded end; after a crash, and for a look at the checks, it still stands."""
    is_over = state.stopped is not None and not fact.only_checks
    return records.unclaimed(state.records) if is_over else state.records


def records_after_round(state: LoopState, fact: RoundEnded) -> records.Records:
    """A round that went well and recorded nothing counts as one iteration, if any are to be recorded."""
    known, at = state.records, state.updated_at
    if state.recording and at and fact.outcome is Outcome.OK and not known.in_round:
        known = records.after_reply(known, at, fact.round, fact.said)
    return records.measured(known, fact.round, progress=fact.found.progress, files=fact.found.changes.total)


def recorded(state: LoopState, fact: EventRecorded | IterationRecorded) -> LoopState:
    """Someone recorded what they did; nothing but what is shown of it changes."""
    if isinstance(fact, EventRecorded):
        then = records.after_event(state.records, fact.record, fact.at, fact.kind, fact.data)
    else:
        then = records.after_iteration(
            state.records, fact.record, fact.at, fact.claim, round_=fact.round, batched=fact.batched
        )
    return replace(state, records=then)


# -- a fresh chance ----------------------------------------------------------------------------------------------------


def forgiven(state: LoopState, *, keeps_aside: bool = False) -> LoopState:
    """The state a run begins with. Only a start after a recorded stop is a fresh chance (by a person or the host).

    `keeps_aside`: not for tasks that were set aside.
    """
    if state.stopped is None:
        return state  # a crash resets nothing
    # Recorded iterations are counted over all runs; only for who goes on although nothing new came, it begins again.
    keeps = state.recording and state.stopped.decided.rule != Rule.NO_PROGRESS
    return replace(
        state,
        failures_in_a_row=0,
        failing=Failing(),
        free=FreeTurns(),
        check_failures_in_a_row=0,
        same_failure=0,
        vain_rounds=0,
        rounds_without_progress=state.rounds_without_progress if keeps else 0,
        rounds_without_result=0,
        red_rounds=0,
        gave_up=False,
        worked_this_run=False,
        tallies=tuple(replace(tally, failures=0, before=0, reopened=0) for tally in state.tallies),
        settled=state.settled if keeps_aside else replace(state.settled, aside=()),
        last=_forgiven(state.last),
        limited=(),  # a person who resumes may know better; if not, the cool-downs that all loops share will say so
    )


def _forgiven(last: LastRound | None) -> LastRound | None:
    """What stopped the loop at once (not logged in, BLOCKED) must not stop it again after a person resumed it."""
    if last is None:
        return None
    ended, policy = last.ended, POLICY[last.ended.outcome]
    outcome = Outcome.INTERRUPTED if policy.stops or policy.stops_idle else ended.outcome
    found = replace(ended.found, tampered=())
    return replace(last, ended=replace(ended, blocked="", outcome=outcome, found=found))
