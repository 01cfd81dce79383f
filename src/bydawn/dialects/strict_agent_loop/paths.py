"""Where the files of a task are, from the workspace on."""

NAME = "strict-agent-loop"
FOLDER = ".codex-loop"
IGNORE = f"{FOLDER}/.gitignore"
REGISTRY = f"{FOLDER}/registry.json"
TASKS = f"{FOLDER}/tasks"
STATE, IF_DONE = "state.json", "state.if-done.json"
EVENTS, ITERATIONS, STATUSES = "events.jsonl", "iterations.jsonl", "status-history.jsonl"
STATUS_TEXT, STOP_REPORT, SUMMARY = "latest-status.txt", "latest-stop-report.json", "run-summary.md"
ROUNDS, SUPERVISOR, DROP = "rounds", "supervisor", "drop"
VARIABLE = "STRICT_AGENT_LOOP_STATE"  # names the state for a stop check, which would wait for itself in `STATE`
CONTRACT = "init.json"  # in the drop folder: a task that was made where the ledger could not be written


def root(task: str) -> str:
    """The folder of a task."""
    return f"{TASKS}/{task}"


def of(task: str, *names: str) -> str:
    """A file of a task."""
    return "/".join((root(task), *names))


def round_summary(task: str, iteration: int) -> str:
    return of(task, ROUNDS, f"iteration-{iteration:04d}.md")


def invocation(task: str, number: int, ending: str) -> str:
    return of(task, SUPERVISOR, f"invocation-{number:04d}.{ending}")
