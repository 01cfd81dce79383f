"""How a task stands, in words: for the terminal, for text files, and for the announcement of a round."""

from datetime import datetime

import msgspec

from bydawn.core.progress import ENOUGH_ROUNDS
from bydawn.core.records import RUNNING, Entry
from bydawn.core.text import duration, plain, shorten
from bydawn.dialects.strict_agent_loop import paths
from bydawn.dialects.strict_agent_loop.document import history_entry, stop_report
from bydawn.dialects.strict_agent_loop.formats import (
    HistoryEntry,
    Progress,
    Report,
    State,
    StatusLine,
    StopInShort,
    StopReport,
    moment,
    read_moment,
)

_BAR = 20
_RECENT = 5  # iterations
_TEXT = 300  # characters of someone's words on one line
CHECKS, BUDGET, RECORD = "stop checks", "iteration budget", "recorded stop"


def progress(document: State, stop: StopReport) -> Progress:
    """How far it is: by stop checks if there are several, else by the iterations that it may take."""
    checks, most = stop.stop_checks, document.limits.max_iterations
    if stop.success:
        part, source = 1.0, CHECKS if checks.has_checks else RECORD
    elif checks.total_checks > 1:
        part, source = checks.passed_checks / checks.total_checks, CHECKS
    else:
        part, source = min(document.counters.iteration / most, 1.0) if most else 0.0, BUDGET
    full = int(part * _BAR)
    return Progress(bar=f"[{'#' * full}{'-' * (_BAR - full)}]", percent=int(part * 100), source=source)


def report(document: State, stop: StopReport, at: datetime | None = None) -> Report:
    """How it stands, in figures."""
    known = (entry.elapsed_since_previous_seconds for entry in document.history[-_RECENT:])
    recent = tuple(seconds for seconds in known if seconds is not None)
    average = round(sum(recent) / len(recent), 1) if recent else None
    begun, last = read_moment(document.created_at), read_moment(document.updated_at)
    now = last if stop.should_stop else at or read_moment(stop.generated_at)
    return Report(
        task=document.task.id,
        status=document.status,
        mode=document.operating_mode,
        iterations_completed=document.counters.iteration,
        max_iterations=document.limits.max_iterations,
        no_progress_rounds=document.counters.no_progress_rounds,
        recoveries=document.counters.recovery_count,
        progress=progress(document, stop),
        stop_checks_passed=stop.stop_checks.passed_checks,
        stop_checks_total=stop.stop_checks.total_checks,
        recent_iteration_seconds=recent,
        recent_average_seconds=average,
        elapsed_seconds=max((now - begun).total_seconds(), 0.0) if now and begun else None,
        estimated_seconds_left=_left(document, stop, average) if len(recent) >= ENOUGH_ROUNDS else None,
        supervisor_invocations=document.supervisor.invocation_count,
        next_task=document.next_task,
        blocker=document.blocker.reason,
        pending=document.pending,
    )


def _left(document: State, stop: StopReport, average: float | None) -> float | None:
    """Seconds. What the open checks take if each takes as long as those that pass; never more than the budget."""
    if stop.should_stop or average is None:
        return None
    done, checks = document.counters.iteration, stop.stop_checks
    budget = max(document.limits.max_iterations - done, 0)
    if checks.total_checks < 2:
        return round(average * budget, 1)
    if not checks.passed_checks:
        return None
    missing = checks.total_checks - checks.passed_checks
    return round(average * min(done * missing / checks.passed_checks, budget), 1)


def status_line(document: State, stop: StopReport, label: str, at: datetime) -> StatusLine:
    return StatusLine(
        timestamp=moment(at),
        label=label,
        task_id=document.task.id,
        state_path=document.path,
        report=report(document, stop, at),
        stop=msgspec.convert(stop, StopInShort, from_attributes=True),
    )


def status_text(document: State, stop: StopReport, at: datetime | None = None) -> str:
    """`latest-status.txt`."""
    told = report(document, stop, at)
    waits = " (some records wait to be taken in)" if told.pending else ""
    rows = {
        "Task": told.task,
        "Status": told.status + waits,
        "Mode": told.mode,
        "Iterations completed": f"{told.iterations_completed} of at most {told.max_iterations}",
        "No-progress rounds": f"{told.no_progress_rounds} of at most {document.limits.max_no_progress_rounds}",
        "Recoveries": str(told.recoveries),
        "Progress": _bar(told.progress),
        "Stop checks": f"{told.stop_checks_passed}/{told.stop_checks_total} passed",
        "Recent iteration times": _times(told),
        "Recent avg iteration time": _average(told),
        "Elapsed time": "unknown" if told.elapsed_seconds is None else duration(told.elapsed_seconds),
        "Estimated time remaining": _remaining(told),
        "Supervisor invocations": str(told.supervisor_invocations),
        "Next task": line(told.next_task) or "not named",
        "Blocker": line(told.blocker or "") or "none",
    }
    return "".join(f"{name}: {value}\n" for name, value in rows.items())


def heartbeat(document: State, stop: StopReport, at: datetime | None = None) -> list[str]:
    """How far it is, in two lines (S-036)."""
    told = report(document, stop, at)
    count = f"{told.iterations_completed} of at most {told.max_iterations} iterations completed"
    times = f"recent times: {_times(told)}; average: {_average(told)}; remaining: {_remaining(told)}"
    return [f"{count}, {_bar(told.progress)}", times]


def announcement(document: State, task: str = "", done: str = "", stop: StopReport | None = None) -> list[str]:
    """What is said before a round (S-032)."""
    told = report(document, stop or stop_report(document, ()))
    checks = told.stop_checks_total
    proof = f"all {checks} stop checks pass" if checks else "a stop is recorded"
    proof = "the stop check passes" if checks == 1 else proof
    return [
        f"Iteration: {told.iterations_completed + 1} of at most {told.max_iterations}",
        f"Completed so far: {told.iterations_completed}",
        f"This round: {line(task or document.next_task) or 'the agent chooses it'}",
        f"Local done condition: {line(done) or 'the agent names it'}",
        f"Global stop condition: {line(document.global_stop_condition)}",
        f"Stop after this round if: {proof}, a blocker is recorded, or a limit is reached",
        f"Recent average: {_average(told)}; estimated time remaining: {_remaining(told)}",
    ]


def line(text: str) -> str:
    """Someone's words on one line."""
    return shorten(plain(text), _TEXT)


def _bar(made: Progress) -> str:
    return f"{made.bar} {made.percent}% ({made.source})"


def _times(told: Report) -> str:
    return ", ".join(map(duration, told.recent_iteration_seconds)) or "none yet"


def _average(told: Report) -> str:
    return "not known yet" if told.recent_average_seconds is None else duration(told.recent_average_seconds)


def _remaining(told: Report) -> str:
    if told.estimated_seconds_left is None:
        return "none" if told.status != RUNNING else "not known yet"
    return ("at most " if told.progress.source == BUDGET else "about ") + duration(told.estimated_seconds_left)


# -- Markdown ----------------------------------------------------------------------------------------------------------


def run_summary(document: State, stop: StopReport, at: datetime | None = None) -> str:
    """`run-summary.md`: everything that a new session or a person has to know."""
    status = status_text(document, stop, at).splitlines()
    names = (paths.STATE, paths.EVENTS, paths.ITERATIONS, paths.STATUSES, paths.STATUS_TEXT, paths.STOP_REPORT)
    made = dict.fromkeys(line(path) for entry in document.history for path in entry.artifacts)
    last = document.history[-1] if document.history else None
    sections = {
        "Run": [
            *status[:3],
            f"Goal: {line(document.goal)}",
            f"Global stop condition: {line(document.global_stop_condition)}",
            f"Workspace: {document.workspace_root}",
            f"Started: {document.created_at}",
            f"Updated: {document.updated_at}",
        ],
        "Progress": status[3:],
        "Stop Evaluation": [
            f"Should stop: {_yes(stop.should_stop)}",
            f"Success: {_yes(stop.success)}",
            *(f"Reason: {line(reason)}" for reason in stop.reasons),
        ],
        "Durable Artifacts": [*(f"{document.task.root_dir}/{name}" for name in names), *made],
        "Recent Verified Iterations": [_in_short(entry) for entry in document.history],
        "Archived Digest": [line(each) for each in document.archive_summary.splitlines()],
        "Latest Round Summary": _details(last) if last else [],
    }
    title = f"# Task {document.task.id}\n"
    return title + "".join(f"\n## {name}\n\n{_rows(rows)}" for name, rows in sections.items())


def round_summary(document: State, entry: Entry) -> str:
    """The page of one iteration."""
    told = history_entry(entry, document)
    return f"# Iteration {told.iteration}: {line(told.task)}\n\n{_rows(_details(told))}"


def _rows(rows: list[str]) -> str:
    return "".join(f"- {row}\n" for row in rows) or "Nothing yet.\n"


def _in_short(entry: HistoryEntry) -> str:
    marks = (" [not done alone]" if entry.batched else "") + (" [pending]" if entry.pending else "")
    proof = line(entry.verification_summary) if entry.from_reply else f"verified: {line(entry.verification_summary)}"
    return f"{entry.iteration}. {line(entry.task)}: {line(entry.result_summary)} ({proof}){marks}"


def _details(entry: HistoryEntry) -> list[str]:
    rows = {
        "Recorded": entry.timestamp,
        "Task": entry.task,
        "Announcement": entry.announcement,
        "Local done condition": entry.local_done_condition,
        "Result": entry.result_summary,
        "Verification": entry.verification_summary,
        "Evidence": "; ".join(entry.evidence),
        "Artifacts": "; ".join(entry.artifacts),
        "Progress, as its author says": "made" if entry.progress_made else "none",
        "Status, as its author says": entry.status,
        "Stop, as its author says": entry.stop_reason or ("met" if entry.stop_condition_met else ""),
        "It cannot have been done alone": entry.batched or "",
        "Not recorded": "this is the reply of the invocation" if entry.from_reply else "",
        "Next task": entry.next_task,
    }
    return [f"{name}: {line(value)}" for name, value in rows.items() if value]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
