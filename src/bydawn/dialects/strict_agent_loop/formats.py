"""What is in the JSON files of a task."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from bydawn.core.records import BLOCKED, COMPLETED, FAILED, RUNNING
from bydawn.dialects.strict_agent_loop import paths
from bydawn.dialects.strict_agent_loop.contract import Mode

SCHEMA = 3
Word = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [RUNNING, COMPLETED, BLOCKED, FAILED]})]
Time = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"})]
Datum = str | int | bool | None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a file. Fields of our own come last; one that is absent is UNSET, one that is unknown is null.

    Everything in `state.json` has a default, so that one of another program can be read, too.
    """


# -- state.json --------------------------------------------------------------------------------------------------------


class Task(Part, frozen=True, kw_only=True):
    id: str = ""
    root_dir: str = ""
    manager_dir: str = ""


class LimitsPart(Part, frozen=True, kw_only=True):
    max_iterations: int = 0
    max_no_progress_rounds: int = 0
    max_context_chars: int = 0


class Counters(Part, frozen=True, kw_only=True):
    iteration: int = 0
    no_progress_rounds: int = 0  # measured
    recovery_count: int = 0


class Executor(Part, frozen=True, kw_only=True):
    executor_id: str | None = None
    spawned_from_current_context: bool = False


class Logging(Part, frozen=True, kw_only=True):
    iterations_persisted: int = 0
    last_event_at: Time | None = None
    last_iteration_at: Time | None = None


class StopCheck(Part, frozen=True, kw_only=True):
    """A command, a path, or a path with a text in it; in a stop report, also how it came out."""

    command: str | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    timeout_seconds: int | float | UnsetType = UNSET
    path: str | UnsetType = UNSET
    pattern: str | UnsetType = UNSET
    description: str | None = None
    passed: bool | UnsetType | None = UNSET
    detail: str | UnsetType = UNSET
    exit_code: int | UnsetType | None = UNSET
    output_tail: str | UnsetType = UNSET
    pending: bool | UnsetType = UNSET  # given in a sandbox, and not run outside it until a person repeats it there


class StopChecks(Part, frozen=True, kw_only=True):
    commands: tuple[StopCheck, ...] = ()
    paths_exist: tuple[StopCheck, ...] = ()
    text_patterns: tuple[StopCheck, ...] = ()


class Supervisor(Part, frozen=True, kw_only=True):
    enabled: bool = False
    codex_bin: str = ""
    model: str | None = None
    reasoning_effort: str | None = None
    sandbox: str = ""
    thread_id: str | None = None
    resume_existing_thread: bool = False
    max_rounds_per_invocation: int = 0
    max_consecutive_failures: int = 0
    invocation_count: int = 0
    consecutive_failures: int = 0
    last_exit_code: int | None = None
    log_dir: str = ""


class Blocker(Part, frozen=True, kw_only=True):
    needs_human_input: bool = False
    reason: str | None = None
    updated_at: Time | None = None


class HistoryEntry(Part, frozen=True, kw_only=True):
    """An iteration: what its author says of it, and then what is known."""

    iteration: int = 0
    timestamp: Time = ""
    task: str = ""
    announcement: str = ""
    local_done_condition: str = ""
    result_summary: str = ""
    verification_summary: str = ""
    progress_made: bool = False
    status: str = ""
    stop_condition_met: bool = False
    stop_reason: str = ""
    needs_human_input: bool = False
    evidence: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    next_task: str = ""
    elapsed_since_previous_seconds: float | None = None
    round_summary_path: str = ""
    measured_progress: bool | None = None
    files_changed: int | None = None
    checks_passed: int | None = None
    invocation: int = 0  # 0: none
    agent_id: str | UnsetType = UNSET
    inherited_context: bool | UnsetType = UNSET
    recovery: bool | UnsetType = UNSET
    context_snapshot: str | UnsetType = UNSET
    batched: str | UnsetType = UNSET  # why it cannot have been done alone
    from_reply: bool | UnsetType = UNSET
    pending: bool | UnsetType = UNSET


class Ours(Part, frozen=True, kw_only=True):
    loop: str = ""
    uid: str = ""
    seq: int = 0
    events: int = 0  # that others recorded
    in_round: int = 0  # iterations of the last invocation
    own_snapshot: bool = False  # did its author write the context snapshot?
    claimed: str = ""
    reason: str = ""
    claimed_at: Time | None = None


class State(Part, frozen=True, kw_only=True):
    """The file `state.json`."""

    schema_version: int = SCHEMA
    skill_name: str = paths.NAME
    created_at: Time = ""
    updated_at: Time = ""
    task: Task = Task()
    goal: str = ""
    global_stop_condition: str = ""
    workspace_root: str = ""
    success_evidence: tuple[str, ...] = ()
    blocker_definition: str = ""
    operating_mode: Mode = "interactive"
    status: Word = RUNNING
    limits: LimitsPart = LimitsPart()
    counters: Counters = Counters()
    agent: Executor = Executor()
    logging: Logging = Logging()
    stop_checks: StopChecks = StopChecks()
    supervisor: Supervisor = Supervisor()
    blocker: Blocker = Blocker()
    next_task: str = ""
    context_snapshot: str = ""
    archive_summary: str = ""
    history: tuple[HistoryEntry, ...] = ()
    pending: bool = False
    bydawn: Ours | None = None  # None: another program wrote it

    @property
    def path(self) -> str:
        return f"{self.task.root_dir}/{paths.STATE}"


# -- the other files ---------------------------------------------------------------------------------------------------


class Line(Part, frozen=True, kw_only=True):
    """The writer adds its id in front, and behind it the place in the ledger or the id of the record."""

    id: int | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    record: str | UnsetType = UNSET


class Event(Line, frozen=True, kw_only=True):
    """A line of events.jsonl."""

    timestamp: Time
    kind: str
    message: str
    task_id: str
    state_path: str
    data: dict[str, Datum] = {}


class IterationLine(Line, frozen=True, kw_only=True):
    """A line of iterations.jsonl."""

    recorded_at: Time
    task_id: str
    state_path: str
    operating_mode: Mode
    goal: str
    global_stop_condition: str
    entry: HistoryEntry


class CheckResults(Part, frozen=True, kw_only=True):
    has_checks: bool
    all_passed: bool
    passed_checks: int
    total_checks: int
    commands: tuple[StopCheck, ...]
    paths_exist: tuple[StopCheck, ...]
    text_patterns: tuple[StopCheck, ...]


class StopInShort(Part, frozen=True, kw_only=True):
    should_stop: bool
    success: bool
    status: Word
    reasons: tuple[str, ...]
    exit_code: int  # 0 success, 1 go on, 2 stopped without success


class StopReport(StopInShort, frozen=True, kw_only=True):
    """The file `latest-stop-report.json`."""

    iteration: int
    no_progress_rounds: int
    next_task: str
    global_stop_condition: str
    stop_checks: CheckResults
    blocker: Blocker
    generated_at: Time
    task_id: str
    state_path: str
    pending: bool = False  # only the ledger decides, and it does not know of this yet


class Progress(Part, frozen=True, kw_only=True):
    bar: str
    percent: int
    source: str


class Report(Part, frozen=True, kw_only=True):
    """How a task stands, for people; `latest-status.txt` shows the same."""

    task: str
    status: Word
    mode: Mode
    iterations_completed: int
    max_iterations: int
    no_progress_rounds: int
    recoveries: int
    progress: Progress
    stop_checks_passed: int
    stop_checks_total: int
    recent_iteration_seconds: tuple[float, ...]
    recent_average_seconds: float | None
    elapsed_seconds: float | None
    estimated_seconds_left: float | None
    supervisor_invocations: int
    next_task: str
    blocker: str | None
    pending: bool


class StatusLine(Line, frozen=True, kw_only=True):
    """A line of status-history.jsonl."""

    timestamp: Time
    label: str
    task_id: str
    state_path: str
    report: Report
    stop: StopInShort


class RegistryEntry(Part, frozen=True, kw_only=True):
    """A task in registry.json."""

    id: str
    state_path: str
    task_root_dir: str
    manager_dir: str
    goal: str
    operating_mode: Mode
    status: Word
    workspace_root: str
    created_at: Time
    updated_at: Time
    iteration: int
    next_task: str
    last_event_at: Time | None
    latest_status_path: str
    latest_stop_report_path: str
    run_summary_path: str
    needs_human_input: bool
    blocker_reason: str | None


def moment(at: datetime) -> Time:
    """A time as all files write it.

    >>> moment(datetime(2026, 1, 6, 12, tzinfo=UTC))
    '2026-01-06T12:00:00.000Z'
    """
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def moment_of(at: datetime | None) -> Time | None:
    return moment(at) if at else None


def read_moment(time: Time | None) -> datetime | None:
    """The same back; None if it says none, because a file may have been edited."""
    try:
        return datetime.fromisoformat(time or "").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def encoded(value: Part) -> str:
    """A whole file."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
