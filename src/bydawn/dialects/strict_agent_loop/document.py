"""How the JSON files of a task are made: from the ledger, or from an earlier document and one more record."""

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from bydawn.core import records as claims
from bydawn.core.breakers import limits_of
from bydawn.core.facts import EventRecorded, IterationRecorded, LoopStopped
from bydawn.core.loop import Check, CommandCheck, Loop, PathCheck, TextCheck
from bydawn.core.records import BLOCKED, COMPLETED, FAILED, RUNNING, Entry, Iteration, Records
from bydawn.core.state import LoopState
from bydawn.core.values import FINISHED, End, Verdict
from bydawn.dialects.strict_agent_loop import formats, paths
from bydawn.dialects.strict_agent_loop.contract import CHECK_SECONDS, UNATTENDED, Contract, contract_of
from bydawn.dialects.strict_agent_loop.formats import Blocker, HistoryEntry, Ours, StopCheck, Word, moment
from bydawn.dialects.strict_agent_loop.formats import State as State
from bydawn.dialects.strict_agent_loop.formats import StopReport as StopReport
from bydawn.dialects.strict_agent_loop.formats import encoded as encoded

STUCK = (BLOCKED, FAILED)
_FINISHED = {
    End.COMPLETE: "completed: every stop check passed",
    End.UNVERIFIED: "completed: it was recorded as done, and there is no stop check to verify that",
}
_RARE = ("agent_id", "inherited_context", "recovery", "context_snapshot")  # left out of an entry that has none


def begun(contract: Contract, workspace: str, at: datetime) -> State:
    """A task of which nothing is known but its contract."""
    root, pending = f"{workspace}/{paths.root(contract.task)}", contract.in_sandbox or UNSET
    texts = (text.partition("::") for text in contract.texts)
    return State(
        created_at=moment(at),
        updated_at=moment(at),
        task=formats.Task(id=contract.task, root_dir=root, manager_dir=f"{workspace}/{paths.FOLDER}"),
        goal=contract.goal,
        global_stop_condition=contract.stop_condition,
        workspace_root=workspace,
        success_evidence=contract.evidence,
        blocker_definition=contract.blocker,
        operating_mode=contract.mode,
        limits=formats.LimitsPart(
            max_iterations=contract.max_iterations,
            max_no_progress_rounds=contract.max_no_progress,
            max_context_chars=contract.context_chars,
        ),
        agent=formats.Executor(executor_id=contract.executor or None),
        stop_checks=formats.StopChecks(
            commands=tuple(
                StopCheck(command=command, cwd=workspace, timeout_seconds=CHECK_SECONDS, pending=pending)
                for command in contract.commands
            ),
            paths_exist=tuple(StopCheck(path=path) for path in contract.paths),
            text_patterns=tuple(StopCheck(path=path, pattern=text) for path, _, text in texts),
        ),
        supervisor=formats.Supervisor(
            enabled=contract.mode == UNATTENDED,
            codex_bin=contract.codex_bin,
            model=contract.model or None,
            reasoning_effort=contract.effort or None,
            sandbox=contract.sandbox,
            resume_existing_thread=contract.resume_thread,
            max_rounds_per_invocation=contract.budget,
            max_consecutive_failures=contract.max_failures,
            log_dir=f"{root}/{paths.SUPERVISOR}",
        ),
        next_task=contract.next_task,
        pending=contract.in_sandbox,
        bydawn=Ours(),
    )


def state_of(loop: Loop, state: LoopState) -> State:
    """`state.json` as the ledger has it."""
    assert loop.dialect  # noqa: S101 - a loop of this dialect
    document = begun(contract_of(loop.dialect.words), loop.workspace, loop.created_at)
    records, stopped, status = state.records, state.stopped, status_of(state.stopped)
    claimed_at = records.claimed_at if records.claimed in STUCK else None
    blocker = Blocker(
        needs_human_input=status == BLOCKED or claimed_at is not None,
        reason=(stopped.reason if stopped else "") or None,
        updated_at=formats.moment_of(claimed_at or (stopped.decided.at if stopped else None)),
    )
    limits = limits_of(loop, state)  # they may have been raised
    document = replace(
        document,
        limits=replace(document.limits, max_iterations=limits.iterations, max_no_progress_rounds=limits.no_progress),
        updated_at=moment(state.updated_at or loop.created_at),
        status=status,
        counters=replace(document.counters, no_progress_rounds=state.rounds_without_progress),
        supervisor=replace(
            document.supervisor,
            thread_id=state.session.id if state.session else None,
            resume_existing_thread=document.supervisor.resume_existing_thread and state.resumes,
            invocation_count=state.round,
            consecutive_failures=state.failures_in_a_row,
            last_exit_code=state.last.ended.exit_code if state.last else None,
        ),
        blocker=blocker if status in STUCK else Blocker(),
        pending=False,
        bydawn=Ours(loop=loop.id, uid=loop.uid, seq=state.seq),
    )
    return _with_records(document, records)


def status_of(stopped: LoopStopped | None) -> Word:
    """The word for an end. A task that was paused is not over: it still says `running`."""
    if stopped is None or stopped.end is End.PAUSED:
        return RUNNING
    if stopped.end in FINISHED:
        return COMPLETED
    return BLOCKED if stopped.end in (End.BLOCKED, End.CHECKPOINT) and FAILED not in stopped.evidence else FAILED


def reason(stopped: LoopStopped) -> str:
    """Why it ended, in a sentence."""
    return _FINISHED.get(stopped.end, stopped.reason)


def unconfirmed(loop: Loop) -> tuple[str, ...]:
    """The stop commands that were given in a sandbox: a person has to repeat them before they run outside."""
    contract = contract_of(loop.dialect.words) if loop.dialect else None
    return contract.commands if contract and contract.in_sandbox else ()


def if_done(document: State) -> State:
    """The same as it would be if all else were done: for a stop check that reads it, and would wait for itself."""
    return replace(document, status=COMPLETED, blocker=Blocker())


# -- what others recorded, in the document and out of it ---------------------------------------------------------------


def records_of(document: State) -> Records:
    """What was recorded: all but the ids, which a document does not have."""
    ours, log = document.bydawn or Ours(), document.logging
    return Records(
        events=ours.events,
        iterations=document.counters.iteration,
        in_round=ours.in_round,
        entries=tuple(map(entry_of, document.history)),
        archive=document.archive_summary,
        snapshot=document.context_snapshot if ours.own_snapshot else "",
        next_task=document.next_task if document.counters.iteration else "",  # else it is the contract's
        recoveries=document.counters.recovery_count,
        executor=document.agent.executor_id or "",
        inherited=document.agent.spawned_from_current_context,
        claimed=ours.claimed,
        reason=ours.reason,
        claimed_at=formats.read_moment(ours.claimed_at),
        last_event_at=formats.read_moment(log.last_event_at),
        last_iteration_at=formats.read_moment(log.last_iteration_at),
    )


def with_claim(document: State, fact: EventRecorded | IterationRecorded) -> State:
    """The document after one more record, which the ledger does not have yet."""
    records = records_of(document)
    if isinstance(fact, EventRecorded):
        records = claims.after_event(records, fact.record, fact.at, fact.kind, fact.data)
    else:
        about = (fact.record, fact.at, fact.claim)
        records = claims.after_iteration(records, *about, round_=fact.round, batched=fact.batched)
        if claims.is_long(records, document.limits.max_context_chars):
            records = claims.compacted(records)
    document = replace(_with_records(document, records, pending=True), updated_at=moment(fact.at), pending=True)
    is_over = document.status == COMPLETED and checks_of(document)  # which only the ledger can have said
    if isinstance(fact, EventRecorded) or is_over:
        return document
    if records.claimed in STUCK:
        blocker = Blocker(needs_human_input=True, reason=records.reason, updated_at=moment(fact.at))
        return replace(document, status=records.claimed, blocker=blocker)
    is_complete = records.claimed == COMPLETED and not checks_of(document)  # checks are the authority
    return replace(document, status=COMPLETED if is_complete else RUNNING, blocker=Blocker())


def _with_records(document: State, records: Records, *, pending: bool = False) -> State:
    known, marked = {entry.iteration: entry for entry in document.history}, pending or UNSET
    history = tuple(known.get(entry.number) or history_entry(entry, document, marked) for entry in records.entries)
    ours = replace(
        document.bydawn or Ours(),
        events=records.events,
        in_round=records.in_round,
        own_snapshot=bool(records.snapshot),
        claimed=records.claimed,
        reason=records.reason,
        claimed_at=formats.moment_of(records.claimed_at),
    )
    return replace(
        document,
        counters=replace(document.counters, iteration=records.iterations, recovery_count=records.recoveries),
        agent=formats.Executor(
            executor_id=records.executor or document.agent.executor_id, spawned_from_current_context=records.inherited
        ),
        logging=formats.Logging(
            iterations_persisted=records.iterations,
            last_event_at=formats.moment_of(records.last_event_at),
            last_iteration_at=formats.moment_of(records.last_iteration_at),
        ),
        next_task=records.next_task if records.iterations else document.next_task,
        context_snapshot=claims.context_of(records),
        archive_summary=records.archive,
        history=history,
        bydawn=ours,
    )


def history_entry(entry: Entry, document: State, pending: bool | UnsetType = UNSET) -> HistoryEntry:
    said = asdict(entry.claim)
    said |= {name: said[name] or UNSET for name in _RARE}
    return HistoryEntry(
        iteration=entry.number,
        timestamp=moment(entry.at),
        progress_made=said.pop("progress"),
        stop_condition_met=said.pop("stop_met"),
        elapsed_since_previous_seconds=entry.seconds,
        round_summary_path=f"{document.workspace_root}/{paths.round_summary(document.task.id, entry.number)}",
        measured_progress=entry.progress,
        files_changed=entry.files,
        checks_passed=entry.checks,
        invocation=entry.round,
        batched=entry.batched or UNSET,
        from_reply=entry.from_reply or UNSET,
        pending=pending,
        **said,
    )


def entry_of(known: HistoryEntry) -> Entry:
    same = {*Iteration.__struct_fields__} & {*known.__struct_fields__}
    said = {name: value for name in same if (value := getattr(known, name)) is not UNSET}
    return Entry(
        number=known.iteration,
        at=formats.read_moment(known.timestamp) or datetime.min.replace(tzinfo=UTC),
        claim=Iteration(progress=known.progress_made, stop_met=known.stop_condition_met, **said),
        round=known.invocation,
        seconds=known.elapsed_since_previous_seconds,
        batched=known.batched or "",
        from_reply=known.from_reply is True,
        progress=known.measured_progress,
        files=known.files_changed,
        checks=known.checks_passed,
    )


# -- stop checks and the registry --------------------------------------------------------------------------------------


def checks_of(document: State) -> tuple[Check, ...]:
    """The stop checks, to run them."""
    return tuple(map(_check, _parts(document.stop_checks)))


def _parts(checks: formats.StopChecks | formats.CheckResults) -> tuple[StopCheck, ...]:
    return (*checks.commands, *checks.paths_exist, *checks.text_patterns)


def _check(part: StopCheck) -> Check:
    if part.command:
        return CommandCheck(command=part.command)
    return TextCheck(path=part.path or "", text=part.pattern) if part.pattern else PathCheck(path=part.path or "")


def stop_report(
    document: State, verdicts: Iterable[Verdict], at: datetime | None = None, *, just_run: bool = False
) -> StopReport:
    """Does it stop, and why?

    `just_run`: the caller has run the checks itself, but cannot decide; the report says what they mean.
    """
    results = _results(document.stop_checks, {verdict.check: verdict for verdict in verdicts})
    return _report(document, results, moment(at) if at else document.updated_at, just_run=just_run)


def last_report(loop: Loop, state: LoopState, at: datetime | None = None) -> StopReport:
    """The same with what the checks said last."""
    return stop_report(state_of(loop, state), state.verdicts, at)


def fresh(report: StopReport, document: State) -> StopReport:
    """An earlier report, with what the document says now."""
    return _report(document, report.stop_checks, document.updated_at)


def _report(document: State, results: formats.CheckResults, at: formats.Time, *, just_run: bool = False) -> StopReport:
    status, reasons = _judged(document, results, just_run=just_run)
    return StopReport(
        should_stop=status != RUNNING,
        success=status == COMPLETED,
        status=status,
        reasons=reasons,
        exit_code={RUNNING: 1, COMPLETED: 0}.get(status, 2),
        iteration=document.counters.iteration,
        no_progress_rounds=document.counters.no_progress_rounds,
        next_task=document.next_task,
        global_stop_condition=document.global_stop_condition,
        stop_checks=results,
        blocker=document.blocker,
        generated_at=at,
        task_id=document.task.id,
        state_path=document.path,
        pending=document.pending or status != document.status,
    )


def _results(checks: formats.StopChecks, found: dict[str, Verdict]) -> formats.CheckResults:
    def told(parts: tuple[StopCheck, ...]) -> tuple[StopCheck, ...]:
        return tuple(_result(part, found.get(_check(part).name)) for part in parts)

    passed = sum(part.passed is True for part in told(_parts(checks)))
    return formats.CheckResults(
        has_checks=bool(_parts(checks)),
        all_passed=0 < passed == len(_parts(checks)),
        passed_checks=passed,
        total_checks=len(_parts(checks)),
        commands=told(checks.commands),
        paths_exist=told(checks.paths_exist),
        text_patterns=told(checks.text_patterns),
    )


def _result(part: StopCheck, verdict: Verdict | None) -> StopCheck:
    if verdict is None:
        return replace(part, passed=None, detail="not run yet", exit_code=None, output_tail="")
    said = {"passed": verdict.passed, "detail": verdict.detail, "exit_code": verdict.exit_code}
    return replace(part, **said, output_tail=verdict.excerpt)


def _judged(document: State, results: formats.CheckResults, *, just_run: bool) -> tuple[Word, tuple[str, ...]]:
    status, most, parts = document.status, document.limits.max_iterations, _parts(results)
    if results.all_passed and (just_run or status == COMPLETED):
        count = "the stop check" if len(parts) == 1 else f"all {len(parts)} stop checks"
        not_yet = () if status == COMPLETED else ("the loop runs them itself before it ends",)
        return COMPLETED, (f"{count} passed", *not_yet)
    if status == COMPLETED and not parts:
        return COMPLETED, ("a stop was recorded; there is no stop check to verify it",)
    if status in STUCK:
        return status, (document.blocker.reason or f"the task is {status}",)
    if just_run and document.counters.iteration >= most:
        return FAILED, (f"all {most} iterations are used up",)
    is_claimed = document.bydawn is not None and document.bydawn.claimed == COMPLETED
    too_early = ("a stop was recorded, but the stop checks decide",) if is_claimed and parts else ()
    missing = tuple(f"{_check(part).name}: {part.detail}" for part in parts if part.passed is not True)
    if not missing:
        missing = ("the stop checks passed, but the work tree has changed since" if parts else "no stop was recorded",)
    return RUNNING, (*too_early, *missing)


def registry_entry(document: State) -> dict[str, object]:
    root = document.task.root_dir
    entry = formats.RegistryEntry(
        id=document.task.id,
        state_path=document.path,
        task_root_dir=root,
        manager_dir=document.task.manager_dir,
        goal=document.goal,
        operating_mode=document.operating_mode,
        status=document.status,
        workspace_root=document.workspace_root,
        created_at=document.created_at,
        updated_at=document.updated_at,
        iteration=document.counters.iteration,
        next_task=document.next_task,
        last_event_at=document.logging.last_event_at,
        latest_status_path=f"{root}/{paths.STATUS_TEXT}",
        latest_stop_report_path=f"{root}/{paths.STOP_REPORT}",
        run_summary_path=f"{root}/{paths.SUMMARY}",
        needs_human_input=document.blocker.needs_human_input,
        blocker_reason=document.blocker.reason,
    )
    return asdict(entry)
