"""Given what the ledger says, what do we do next?"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from bydawn.core import breakers, completion, pool
from bydawn.core.facts import BOX, ITSELF, LoopStopped, RoundEnded
from bydawn.core.loop import ChangedTests, CheckWhere, Loop, OnBlockedTask, OnLimit, OnTamper, Sandbox
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.progress import Used, is_enough, tally_of, ticked_and_red
from bydawn.core.proof import Answer, ChangedTest, fewer_tests
from bydawn.core.records import BLOCKED, BY_HAND, COMPLETED, FAILED
from bydawn.core.rules import Rule
from bydawn.core.state import LastRound, LoopState, Tally
from bydawn.core.values import Decided, End, Findings, Now, ReachedMark, TaskStatus, Verdict

_NAMED = 20  # protected files named when a loop ends
_PAUSES = {"SIGINT": "paused: you pressed Ctrl-C", "the death of its guardian": "paused: its parent process was killed"}


class _Action(msgspec.Struct, frozen=True, kw_only=True):
    rule: Rule


class Settle(_Action, frozen=True, kw_only=True):
    """Record the end of a round that started and never ended."""

    round: int
    reason: str = "its process was killed"


class StartRound(_Action, frozen=True, kw_only=True):
    round: int
    agent: str
    task: str | None = None
    task_id: str | None = None
    session: str | None = None  # to continue
    audit: bool = False  # only ask whether the goal is met


class Commit(_Action, frozen=True, kw_only=True):
    """Commit what rounds have changed."""

    round: int


class RunChecks(_Action, frozen=True, kw_only=True):
    round: int


class SettleTask(_Action, frozen=True, kw_only=True):
    """Record the new state of a task."""

    task: str
    text: str
    status: TaskStatus
    reason: str
    doubted: bool = False


class Wait(_Action, frozen=True, kw_only=True):
    """Sleep; until a given time if the agent named one."""

    seconds: float
    reason: str
    agent: str = ""  # the one to wait for, if there is one
    until: datetime | None = None


class Pause(_Action, frozen=True, kw_only=True):
    reason: str
    by: str
    evidence: tuple[str, ...] = ()


class Stop(_Action, frozen=True, kw_only=True):
    end: End
    reason: str
    evidence: tuple[str, ...] = ()
    by: str | None = None


Action = Settle | StartRound | Commit | RunChecks | SettleTask | Wait | Pause | Stop


def last_word(action: Pause | Stop, now: Now) -> LoopStopped:
    """The fact that ends a run."""
    return LoopStopped(
        end=action.end if isinstance(action, Stop) else End.PAUSED,
        reason=action.reason,
        decided=Decided(rule=action.rule, at=now.at, elapsed=now.elapsed),
        evidence=action.evidence,
        by=action.by,
    )


def end_unseen(action: Settle, now: Now, found: Findings, used: Used, *, unseen: bool = False) -> RoundEnded:
    """The fact that ends a round whose end was not seen; its changes stay."""
    return RoundEnded(
        round=action.round,
        outcome=Outcome.INTERRUPTED,
        detail=action.reason,
        found=found,
        elapsed=now.elapsed,
        usage=used.turn,
        session_usage=used.session,
        unseen=unseen,
    )


def next_action(loop: Loop, state: LoopState, now: Now) -> Action:
    """Order is meaning: a finished loop must not "give up", and a person's request comes first."""
    if state.open_round:
        return Settle(rule=Rule.INTERRUPTED_ROUND, round=state.open_round.round)
    if state.given_up:
        return Stop(rule=Rule.RESTARTS, end=End.BLOCKED, reason=state.given_up.given_up)
    if state.stop_now:
        return _asked(loop, state)
    if (left := state.run_elapsed + state.rest - now.elapsed) > 0 and state.rest:
        wait = Wait(rule=Rule.CYCLE, seconds=left, reason=f"pause before cycle {state.cycle}")
        return _asked(loop, state) if state.stop or state.pause else wait
    if obstacle := state.obstructed:
        # What was refused before anything was done waits for no one.
        end = End.STOPPED if obstacle.kind == BOX else End.BLOCKED
        return Stop(rule=Rule.OBSTRUCTED, end=end, reason=obstacle.detail, evidence=(obstacle.kind,))
    if commit_due(loop, state):
        return Commit(rule=Rule.COMMIT_DUE, round=state.round)
    if loop.checks and state.round == 0 and state.verdict_tree is None:
        return RunChecks(rule=Rule.BASELINE, round=0)
    if checks_due(loop, state):
        return RunChecks(rule=Rule.FINAL_CHECKS if _is_final(loop, state) else Rule.CHECKS_DUE, round=state.round)
    for decide in (_tampered, _task_done, _open_again, _checkpoint):
        if (action := decide(loop, state)) is not None:
            return action
    if not completion.missing(loop, state) and not _is_unheard(loop, state, now):
        return _changed_tests(loop, state) or finished(loop, state)
    if state.stop or state.pause:
        return _asked(loop, state)
    if state.only_checks:
        return recorded_end(state) or as_before(loop, state, now)
    return _stuck(loop, state, now) or _back_off(loop, state, now) or _next_round(loop, state, now)


def commit_due(loop: Loop, state: LoopState) -> bool:
    """Must what rounds changed be committed now? Not while a person has to look at protected files.

    When everything is proven, that also goes for what no round that went well has left: nothing will follow. In a
    work tree of the loop's own, it goes for everything at once.
    """
    if not state.uncommitted or _tampered(loop, state):
        return False
    return state.commit_due or (not state.commit_tried and (state.commits_all or not completion.missing(loop, state)))


def checks_due(loop: Loop, state: LoopState) -> bool:
    """Must checks run before anything else is decided? They run the agent's work."""
    if not loop.checks:
        return False
    if state.checks_passed:
        if loop.by_task and state.awaiting_checks:
            return True
        outdated = _is_outdated(loop, state) or (loop.by_task is not None and not state.final)
        return outdated and not completion.missing(loop, state)
    stale = state.verdict_tree != state.tree  # a hook or a person changed something since
    return state.awaiting_checks or completion.unproven(loop, state) or (stale and _claimed(loop, state) is not None)


def is_unseen(loop: Loop, state: LoopState) -> bool:
    """Has the agent's code run since the tree was last looked at? Checks and git hooks run it, and a crash may cut
    them short."""
    crashed = state.stopped is None or state.stopped.unseen
    ran = checks_due(loop, state) or commit_due(loop, state)
    return state.last is not None and (state.unseen or (crashed and ran))


def would_finish(loop: Loop, state: LoopState, verdicts: Iterable[Verdict]) -> bool:
    """Is nothing missing but these verdicts? The task that waits for them is done if the checks pass."""
    then = msgspec.structs.replace(state, verdicts=tuple(verdicts), verdict_tree=state.tree)
    if state.tasks and _claimed(loop, state):
        then = msgspec.structs.replace(then, tasks=msgspec.structs.replace(state.tasks, open=state.tasks.open - 1))
    return not completion.missing(loop, then)


def _is_outdated(loop: Loop, state: LoopState) -> bool:
    """Is the proof older than the last round? That may have changed files git ignores, which no tree shows. Or was it
    not asked yet whether it would notice if the work were missing?"""
    unseen = loop.check_where is CheckWhere.WORKSPACE and state.verdict_round < state.round
    if unseen or _tampered(loop, state):  # a person has to look at that first
        return unseen
    return state.round > 0 and state.proofs.looked != state.tree and bool(state.proofs.tree)


def _is_final(loop: Loop, state: LoopState) -> bool:
    return loop.by_task is not None and completion.missing(loop, state) in ([], ["checks"])


def _open_again(loop: Loop, state: LoopState) -> Action | None:
    """Every task is done and a check fails: the task that was done last is open again."""
    is_red = bool(state.failed_checks) and state.verdict_tree == state.tree
    if not (is_red and loop.task_folder and state.settled.done and _is_final(loop, state)):
        return None
    failed, task = state.failed_checks[0], state.settled.done[-1]
    text = state.last.task if state.last and state.last.task_id == task else None
    reason = f"every task is done, but a check fails: {failed.check}: {failed.told}"
    return SettleTask(rule=Rule.FINAL_CHECKS, task=task, text=text or task, status=TaskStatus.OPEN, reason=reason)


def _is_unheard(loop: Loop, state: LoopState, now: Now) -> bool:
    """Is there a note from a person that no prompt has included yet, and a round left for it?

    A note from a round or a hook does not justify another round, or the loop would never end.
    """
    return not state.only_checks and any(note.by != ITSELF for note in state.notes) and _stuck(loop, state, now) is None


def _asked(loop: Loop, state: LoopState) -> Action:
    """Anything else that would have stopped the loop is mentioned too, because it is still there on resume."""
    also = (f"{loop.tasks} {state.tasks.problem}",) if state.tasks and state.tasks.problem else ()
    if state.stop:
        by = state.stop.by
        return Stop(rule=Rule.ASKED_TO_STOP, end=End.STOPPED, reason=f"stopped by {by}", by=by, evidence=also)
    assert state.pause  # noqa: S101 - the caller checked that one of the two is set
    by = state.pause.signal or state.pause.by
    return Pause(rule=Rule.ASKED_TO_PAUSE, reason=_PAUSES.get(by, f"paused by {by}"), by=by, evidence=also)


def _tampered(loop: Loop, state: LoopState) -> Action | None:
    if not state.tampered or loop.on_tamper is OnTamper.REPORT:
        return None
    count, named = len(state.tampered), state.tampered[:_NAMED]
    many = "a protected file was" if count == 1 else f"{count:,} protected files were"
    reason = f"{many} changed: {', '.join(named[:3])}"
    rest = [f"… and {count - _NAMED:,} more"] if count > _NAMED else []
    if state.tasks and state.tasks.problem:  # accepting the one accepts the other too, so say both
        rest.append(f"{loop.tasks} {state.tasks.problem}")
        reason += f"; and {rest[-1]}"
    return Stop(rule=Rule.TAMPERED, end=End.BLOCKED, reason=reason, evidence=(*named, *rest))


def _checkpoint(loop: Loop, state: LoopState) -> Action | None:
    """Before completion, too: a round that did the tasks on both sides of a checkpoint has skipped it."""
    mark = checkpoint_of(loop, state)
    return Stop(rule=Rule.CHECKPOINT, end=End.CHECKPOINT, reason=f"{loop.tasks} says: {mark.text}") if mark else None


def checkpoint_of(loop: Loop, state: LoopState) -> ReachedMark | None:
    """The checkpoint the loop is at. If everything else is done, one further down counts too; if the list
    cannot be trusted, none does, and in one that only marks checkpoints none before the first round."""
    if not loop.checkpoint or state.tasks is None or state.tasks.problem or not (loop.tasks_required or state.rounds):
        return None
    marks = (*state.tasks.reached, *(state.tasks.ahead if not completion.missing(loop, state) else ()))
    return next((mark for mark in marks if mark.id not in state.approved), None)


def _task_done(loop: Loop, state: LoopState) -> Action | None:
    """A task of a folder is done if the agent says so, that is enough, and the checks pass."""
    mine = _claimed(loop, state)
    if mine is None or (loop.checks and not state.checks_passed):
        return None
    worked_on = "with changes" if mine.progress else "without a change of its own"
    reason = f"claimed done {worked_on}" + ("; the checks pass" if loop.checks else "")
    text = (state.last and state.last.task) or mine.task
    done, doubted = TaskStatus.DONE, not mine.progress
    return SettleTask(rule=Rule.TASK_DONE, task=mine.task, text=text, status=done, reason=reason, doubted=doubted)


def _claimed(loop: Loop, state: LoopState) -> Tally | None:
    """The open task that the last round's agent calls done, if nothing contradicts it except perhaps the checks."""
    last = state.last
    if not loop.task_folder or last is None or last.task_id is None or state.tasks is None or not last.ended.claim:
        return None
    mine = tally_of(state.tallies, last.task_id)
    is_open = last.task_id in state.tasks.open_ids and last.task_id not in state.settled.done
    return mine if is_open and is_enough(loop, state, mine) and last.ended.claim.status == TaskStatus.DONE else None


def _changed_tests(loop: Loop, state: LoopState) -> Stop | None:
    """Everything is there, but the checks pass only because tests were changed that were red before."""
    held = state.proofs.insisted
    if not held or loop.changed_tests is ChangedTests.REPORT:
        return None
    many = "a changed test" if len(held) == 1 else f"{len(held)} changed tests"
    reason = f"the checks pass only because of {many}: {', '.join(each.path for each in held[:3])}"
    rows = [f"{completion.CHANGED}: {each.words}" for each in held[:_NAMED]]
    rows += _named_by_checks(loop, held)
    return Stop(rule=Rule.CHANGED_TESTS, end=End.BLOCKED, reason=reason, evidence=(*rows, *_proof(state)))


def _named_by_checks(loop: Loop, changed: Sequence[ChangedTest]) -> list[str]:
    from bydawn.core.test_files import Sides  # few loops end like this, and `stop` loads what decides

    sides = Sides(loop)
    return [
        f"{each.path} counts as a test because a check names it; if it is the work, begin with --tests '!{each.path}'"
        for each in changed
        if sides.may_be_work(each.path)
    ]


def finished(loop: Loop, state: LoopState) -> Stop:
    evidence = []
    if state.tasks and loop.tasks:
        evidence.append(f"{loop.tasks}: {state.tasks.done} of {state.tasks.total} tasks done")
    evidence += [f"{verdict.check}: passed" for verdict in state.verdicts if loop.checks]
    if state.settled.skipped:
        evidence.append(f"{completion.SKIPPED}: {len(state.settled.skipped)}")
    rows = {
        completion.TAMPERED: state.tampered,
        completion.ACCEPTED: state.accepted,
        completion.DOUBTED: state.ticked_only,
        "done without a change of its own": state.settled.doubted,
        "open tasks with a text that a round changed": state.rewritten,
    }
    evidence += [f"{what}: {', '.join(which)}" for what, which in rows.items() if which]
    evidence += _proof(state)
    if state.proofs.untried:
        evidence += _named_by_checks(loop, state.proofs.changed)
    if "record" in loop.requires:
        evidence.append(f"recorded as {COMPLETED}: {state.records.reason}")
    if state.promise_given:
        # Another tool counts its rounds in its own way; it was the last one anyway.
        evidence.append("the promise was given" + ("" if loop.dialect else f" in round {state.round}"))
    elif completion.said_nothing(loop, state):
        evidence.append("the agent was asked whether the goal is met; it named nothing open, and did not say so")
    end, doubt = completion.finished(loop, state), completion.doubt(loop, state)
    reason = doubt if doubt and loop.checks else " and ".join(completion.wanted(loop, state))
    return Stop(rule=Rule.COMPLETE, end=end, reason=reason, evidence=tuple(evidence))


def _proof(state: LoopState) -> list[str]:
    """What passing checks do not say by themselves, a row for each doubt."""
    known = state.proofs
    told = [each for each in known.changed if each not in known.insisted]
    rows = [f"{completion.CHANGED}: {each.words}" for each in told if not each.data][:_NAMED]
    if data := sum(each.data for each in told):
        rows.append(f"{completion.CHANGED}: {data} {'file' if data == 1 else 'files'} of test data")
    if known.held is not True and known.detail:
        what = "the changed tests" if known.held is None else "with the tests as they were,"
        rows.append(f"{what} {known.detail}")
    fewer = ((each.check, fewer_tests(each.counts, known.most.get(each.check))) for each in state.verdicts)
    rows += [f"fewer tests: {check}: {told}" for check, told in fewer if told]  # in whichever round that was
    for verdict in state.verdicts:
        if verdict.tests_nothing:
            rows.append(f"no test ran: {verdict.check}")
        if known.silent((verdict,)):
            long = "its output is too long to count its tests"
            rows.append(f"{long if verdict.uncounted else completion.SILENT}: {verdict.check}")
        if verdict.passed and verdict.counts and verdict.counts.failed:
            rows.append(f"it passes although tests failed ({verdict.counts.failed}): {verdict.check}")
    if tools := known.tools_changed:
        more = f" and {len(tools) - 3} more" if len(tools) > 3 else ""
        rows.append(f"what runs the checks was changed: {', '.join(tools[:3])}{more}")
    return rows + [each.told for each in known.noticed if each.answer.is_doubt or each.answer is Answer.UNKNOWN]


def _stuck(loop: Loop, state: LoopState, now: Now) -> Action | None:
    if state.tasks and state.tasks.problem:
        return Stop(rule=Rule.TASK_FILE, end=End.BLOCKED, reason=f"{loop.tasks} {state.tasks.problem}")
    last = state.last
    if (recorded := recorded_end(state)) is not None:
        return recorded
    if reason := _not_put_back(loop, state):
        return Stop(rule=Rule.TASK_FILE, end=End.BLOCKED, reason=reason)
    if last and POLICY[last.ended.outcome].stops:
        evidence = (last.ended.outcome.value, *([last.ended.words] if last.ended.words else []))
        return Stop(rule=Rule.AGENT_STOP, end=End.FAILED, reason=last.ended.detail, evidence=evidence)
    if last and POLICY[last.ended.outcome].stops_idle and not last.ended.found.progress and not _is_stale(loop, last):
        return Stop(rule=Rule.AGENT_DENIED, end=End.BLOCKED, reason=last.ended.detail)
    insists = last and (last.blocked_again or (last.ended.claim and last.ended.claim.status == BLOCKED))
    if last and last.ended.blocked and (insists or not last.ended.found.progress):
        return _question(loop, state, last)
    if not breakers.is_failing(loop, state) and (aside := _set_aside(loop, state)) is not None:
        return aside
    if loop.tasks_required and state.tasks and state.tasks.open and state.tasks.next is None:
        return _all_aside(loop, state)
    if found := breakers.tripped(loop, state, now):
        return _broken(loop, state, found)
    return _set_aside(loop, state, alone=True) if loop.by_task else None


def _is_stale(loop: Loop, last: LastRound) -> bool:
    """Was the file system read-only to a resumed conversation alone? The next one begins fresh, and will tell."""
    return last.resumed and last.ended.commands.read_only and loop.sandbox is not Sandbox.READ_ONLY


def _broken(loop: Loop, state: LoopState, found: breakers.Tripped) -> Stop:
    last, reason = state.last, breakers.BY_RULE[found.name].reason(found, state)
    if found.name is not Rule.COMMANDS_FAILED and last and last.ended.commands.told:
        reason += f"; most recently, {last.ended.commands.told}"
    evidence = state.free.told if found.name in breakers.FREE else _evidence(loop, state)
    return Stop(rule=found.name, end=found.end, reason=reason, evidence=evidence)


def recorded_end(state: LoopState) -> Stop | None:
    """Only the author of such a record can know that it cannot go on."""
    known = state.records
    if known.claimed not in (BLOCKED, FAILED):
        return None
    reason = f"recorded as {known.claimed}: {known.reason}"
    return Stop(rule=Rule.RECORDED_END, end=End.BLOCKED, reason=reason, evidence=(known.claimed,))


def as_before(loop: Loop, state: LoopState, now: Now) -> Pause | Stop:
    """No round may start: unless too much was recorded, the loop stays what it was, or goes on in its session."""
    if found := breakers.used_up(loop, state, {"iterations"}, now):
        return _broken(loop, state, found)
    rule, before = Rule.ONLY_CHECKS, state.before
    if before is None or before.decided.rule in (Rule.RECORDED_END, Rule.ITERATIONS):
        by_hand = loop.recording and loop.recording.by_hand
        return Pause(rule=rule, reason=BY_HAND if by_hand else "only its checks ran", by=ITSELF)
    return Stop(rule=rule, end=before.end, reason=before.reason, evidence=before.evidence, by=before.by)


def _not_put_back(loop: Loop, state: LoopState) -> str | None:
    """Nothing is left to do but to put lines back into the list, and a round that was asked to has not done it."""
    last, tasks = state.last, state.tasks
    if last is None or tasks is None or not last.counts:
        return None
    if not any(last.ended.round > line.round for line in tasks.gone):
        return None
    if completion.missing(loop, state) != ["tasks"] or (tasks.open and loop.tasks_required):
        return None
    return f"{loop.tasks} {completion.lost_words(tasks.gone)}"


def _question(loop: Loop, state: LoopState, last: LastRound) -> Action:
    """Only a person can help. If that is about one task of a list, the others can be done first; not if every command
    fails, because then no task can be done."""
    rule, told = Rule.AGENT_BLOCKED, last.ended.commands.told
    is_open = loop.tasks_required and state.tasks is not None and last.task_id in state.tasks.open_ids
    if last.task_id and is_open and not told and loop.on_blocked_task is OnBlockedTask.ASIDE:
        text, aside = last.task or last.task_id, TaskStatus.ASIDE
        return SettleTask(rule=rule, task=last.task_id, text=text, status=aside, reason=last.ended.blocked)
    return Stop(rule=rule, end=End.BLOCKED, reason=last.ended.blocked, evidence=(told,) if told else ())


def _set_aside(loop: Loop, state: LoopState, *, alone: bool = False) -> Action | None:
    """Set aside a task that fails again and again; usually only if there is another one, for which to go on."""
    last, limit = state.last, breakers.limits_of(loop, state).task_failures if loop.tasks_required else 0
    if last is None or last.task_id is None or state.tasks is None:
        return None
    if last.task_id not in state.tasks.open_ids and ticked_and_red(loop, state) is None:
        return None
    mine = tally_of(state.tallies, last.task_id)
    others = [id_ for id_ in state.tasks.open_ids if id_ != mine.task and id_ not in state.settled.aside]
    times = max(mine.failures, mine.reopened)
    if not 0 < limit <= times or not (others or alone) or mine.task in state.settled.aside:
        return None
    failed = [f"{verdict.check}: {verdict.told}" for verdict in state.failed_checks]
    reason = f"failed {times} times in a row" + (f"; last: {failed[0]}" if failed else "")
    return SettleTask(rule=Rule.TASK_FAILURES, task=mine.task, text=mine.text, status=TaskStatus.ASIDE, reason=reason)


def _all_aside(loop: Loop, state: LoopState) -> Action:
    assert state.tasks  # noqa: S101 - the caller checked it
    rows = [*_aside(state), *(f"waiting for another: {title}" for title in state.tasks.stranded)]
    rule, questions = Rule.TASKS_ASIDE, state.questions
    reason = f"{completion.counted(state.tasks.open)} open in {loop.tasks}, but none can be worked on"
    if questions:
        rule, many = Rule.AGENT_BLOCKED, f"{len(questions)} tasks wait for an answer from you"
        reason = questions[0].question if len(questions) == 1 else many
    return Stop(rule=rule, end=End.BLOCKED, reason=reason, evidence=tuple(rows))


def _evidence(loop: Loop, state: LoopState) -> tuple[str, ...]:
    """What is still missing, and what the failing checks say."""
    missing = completion.missing(loop, state)
    if loop.asks_if_done and missing[:1] == ["checks"]:
        missing = [name for name in missing if name != "promise"]  # while checks fail, no one expects it
    rows = [completion.describe(condition, loop, state) for condition in missing]
    rows += [f"{verdict.check}: {verdict.told}" for verdict in state.failed_checks]
    return (*rows, *_aside(state))


def _aside(state: LoopState) -> list[str]:
    """Questions first: they can be answered."""
    asked = [f"“{tally.text}” needs you: {' '.join(tally.question.split())}" for tally in state.questions]
    others = [tally_of(state.tallies, id_) for id_ in state.settled.aside]
    return [*asked, *(f"set aside: {tally.text or tally.task}" for tally in others if not tally.question)]


def _back_off(loop: Loop, state: LoopState, now: Now) -> Action | None:
    last = state.last
    if last is None or last.ended.outcome is Outcome.LIMITED:
        return None  # a limit only concerns the agent that has it; another one may work meanwhile
    failed = POLICY[last.ended.outcome].backs_off
    rest = pool.back_off(loop, state, last.ended.outcome) if failed else pool.slow_down(state)
    pause = pool.pause(loop, state)
    seconds = min(last.ended.elapsed + max(rest, pause) - now.elapsed, breakers.time_left(loop, state, now))
    if not (rest or pause) or seconds <= 0:
        return None
    if pause > rest:
        return Wait(rule=Rule.PAUSE, seconds=seconds, reason="pause between rounds")
    reason = last.ended.detail if failed else breakers.nothing_new(state)
    return Wait(rule=Rule.BACK_OFF, seconds=seconds, reason=reason, agent=last.agent if failed else "")


def _next_round(loop: Loop, state: LoopState, now: Now) -> Action:
    agent = pool.next_agent(loop, state, now)
    if isinstance(agent, pool.Rest):
        return _rest(loop, state, agent, now)
    task, task_id = (state.tasks.next, state.tasks.next_id) if state.tasks and loop.tasks_required else (None, None)
    if state.last and (unproven := ticked_and_red(loop, state)):
        task, task_id = unproven, state.last.task_id
    session = pool.session_for(loop, state, agent, task, task_id)
    return StartRound(
        rule=Rule.NEXT_ROUND,
        round=state.round + 1,
        agent=agent,
        task=task,
        task_id=task_id,
        session=session,
        audit=completion.should_ask(loop, state),
    )


def _rest(loop: Loop, state: LoopState, rest: pool.Rest, now: Now) -> Action:
    """A wait never outlasts the loop's own limits: a reset at nine does not help a loop that ends at seven."""
    over, latest = now.at + timedelta(seconds=rest.seconds), breakers.limits_of(loop, state).latest_wake
    rule = Rule.LIMIT_STOPS if loop.on_limit is OnLimit.STOP else Rule.LATEST_WAKE if latest and over > latest else None
    if rule:
        free = f"{rest.agent} is free again at {over.astimezone():%Y-%m-%d %H:%M}{'' if rest.until else ' (a guess)'}"
        reason = f"{rest.agent}: {rest.detail}" if loop.others else rest.detail or "a usage limit"
        return Stop(rule=rule, end=End.LIMIT, reason=reason, evidence=(free,))
    seconds = min(rest.seconds, breakers.time_left(loop, state, now))
    rule = Rule.AGENT_LIMIT if rest.until else Rule.BACK_OFF
    return Wait(rule=rule, seconds=seconds, until=rest.until, reason=rest.detail, agent=rest.agent)
