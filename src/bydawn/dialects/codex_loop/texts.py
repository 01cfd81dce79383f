"""What codex-loop says: why it ended, what to do next, a line per iteration, and what hooks get to know."""

from collections.abc import Mapping
from functools import partial

from bydawn.core.completion import IDLE
from bydawn.core.facts import ChecksEnded, LoopStopped, RoundEnded
from bydawn.core.history import blocked_task
from bydawn.core.loop import Loop
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.progress import tally_of
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import FINISHED, Act, End, Next, git
from bydawn.dialects import own_words
from bydawn.dialects.codex_loop import codes
from bydawn.dialects.codex_loop.config import NAME

UNIT = "iteration"
DIED = "the process that ran it died; `codex-loop run` goes on from there"
_IDLE = "no iteration changed anything, and the verification passed before the first"
_NO_VERIFICATION = "no verification is configured, so there is only Codex's word for it"
EVENTS = {"pre_round": "pre_iteration", "post_round": "post_iteration", "on_complete": "on_completed"}
_SPOKEN = {f"hook {ours} ": f"hook {its_own} " for ours, its_own in EVENTS.items()}
_SPOKEN |= {f"command of {ours}: ": f"command of {its_own}: " for ours, its_own in EVENTS.items()}
_COMMANDS = {"resume": "run", "run": "run", "run --new": "run", "logs": "logs tail", "trust": "trust"}
_COMMANDS |= {"doctor --repair": "doctor --repair", "events": "events"}
_COMMANDS |= dict.fromkeys(("status", "show", "why", "tasks list"), "status --summary")


def reason(stopped: LoopStopped) -> str:
    """Why it ended, in this tool's words."""
    if stopped.end is End.UNVERIFIED:
        return f"every task is done, but unverified: {_IDLE if stopped.reason == IDLE else _NO_VERIFICATION}"
    if stopped.end in FINISHED:
        return "every task is done, and the verification passed on the whole"
    return spoken(own_words.reason(stopped, UNIT))


def spoken(text: str) -> str:
    """A sentence of ours, which may quote others, in this tool's words, with its own commands."""
    return own_words.in_passing(text, UNIT, own, _SPOKEN)


def own(act: Act) -> Act | None:
    return Act(_COMMANDS[act.verb], program=NAME) if act.verb in _COMMANDS else None


def trouble(ended: RoundEnded) -> str:
    """Why Codex did not come to its end, if it did not: in its own words, or in ours."""
    if ended.outcome is Outcome.OK:
        return ""
    return ended.words or own_words.of_rounds(ended.detail, UNIT) or ended.outcome.value


def next_steps(loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[Next]:
    """What a person can do now, ready to be pasted in that folder; without one, anywhere."""
    there = loop.workspace if folder != loop.workspace else ""
    ours = partial(Act, program=NAME, project_dir=there)
    last = state.last.task_id if state.last and (state.last.task_id or "").isprintable() else None
    run, status = ours("run"), Next(ours("status --summary"), "where it stands")
    retry = Next(ours("run --retry-blocked"), "then try what is blocked again")
    logs = Next(Act("logs tail", program=NAME, task_id=last, project_dir=there), "what Codex said and did last")
    doctor = Next(ours("doctor"), "what is wrong here")
    stuck = (*filter(None, [last]), *filter(str.isprintable, state.settled.aside))[-1:]
    file = f"{loop.tasks}/{stuck[0]}.md" if stuck else f"its file in {loop.tasks}/"
    tell = Next("", f"answer it in {file}, or say there what to do differently")
    skip = [Next(ours("skip", id_), "or leave it out") for id_ in stuck]
    changes = Next(git(loop.folder, "status"), "what was changed and is not committed")
    if stopped.end in FINISHED:
        branch = loop.worktree.branch if loop.worktree else ""
        merge = Next(git(there, "merge", branch), "bring the work into your branch")
        return [merge, status] if branch else [status]
    if stopped.is_preparation:
        return [Next(run, "let Codex do the tasks")]
    steps: dict[str, list[Next]] = {
        codes.HOOK_FAILURE: [Next("", "fix the command that failed"), Next(run, "then go on")],
        codes.AGENT_BLOCKED: [tell, retry, *skip],
        codes.RUNNER_FAILURES: [logs, doctor, Next(run, "then go on")],
        codes.VERIFICATION_FAILURES: [logs, tell, retry],
        codes.TASK_FAILURES: [logs, tell, retry, *skip],
        codes.NO_PROGRESS: [logs, tell, retry, *skip],
        codes.NO_SELECTABLE_TASK: [status, Next("", "make the blocked tasks smaller or clearer"), retry],
        codes.MAX_ITERATIONS: [Next(run, "go on with as many iterations again"), status],
        codes.AGENT_UNAVAILABLE: [doctor, Next(run, "when Codex works again")],
        codes.BUDGET: [status, Next(run, "when that limit is raised")],
        codes.DISK: [Next("", "free some space"), Next(run, "then go on")],
        codes.WATCHDOG_EXHAUSTED: [logs, doctor, Next(run, "then go on, here in the terminal")],
        codes.INTERRUPTED: [Next(run, "go on"), status],
    }
    looked = [changes, Next(run, "when you have put it right")]
    return steps.get(codes.code_of(stopped), looked)


def begin_line(state: LoopState) -> str:
    """`[iteration 3/30] task: 002-parser (1/2 done)`."""
    task, tasks = (state.open_round.started.task_id if state.open_round else "") or "", state.tasks
    done = f" ({tasks.done}/{tasks.total} done)" if tasks else ""
    return f"{_numbered(state, state.rounds_this_run + 1)} task: {shorten(plain(task), 80)}{done}"


def minute_line(seconds: float, commands: int, last: str) -> str:
    """`4 min, 12 commands, last: npm test`."""
    ran = f"{commands} {'command' if commands == 1 else 'commands'}, last: {last}" if commands else "no command yet"
    return f"{round(seconds / 60)} min, {ran}"


def _numbered(state: LoopState, this: int) -> str:
    """Its number is for life, the limit is for one run: in a later run both counts are there."""
    number, most = state.round, state.rounds_allowed
    return f"[iteration {number}{'' if most is None else f'/{most}' if this == number else f', {this}/{most}'}]"


def iteration_line(ended: RoundEnded, checks: ChecksEnded | None, state: LoopState) -> str:
    """`[iteration 3/30] 002-parser  complete  2 files  verification passed  41 s`."""
    policy, last = POLICY[ended.outcome], state.last
    files, told = ended.found.changes.total, shorten(trouble(ended), 200)
    how = "interrupted" if ended.outcome is Outcome.INTERRUPTED else "failed"
    parts = [
        shorten(plain((last and last.task_id) or ""), 80),
        codes.agent_status(ended.claim) or (f"{how}: {told}" if told else "no status"),
        "no change" if not files else "1 file" if files == 1 else f"{files} files",
        f"verification {'passed' if checks.passed else 'failed'}" if checks else "",
        duration(ended.seconds + (checks.seconds if checks else 0)),
    ]
    return f"{_numbered(state, state.rounds_this_run + (not policy.counts))} {'  '.join(filter(None, parts))}"


def hook_words(event: str, loop: Loop, state: LoopState, told: Mapping[str, str]) -> dict[str, str]:
    """The variables of a hook; `told` are ours, which know the task and, at the end, the rule behind it."""
    is_before, rule = event == "pre_round", told.get("BYDAWN_RULE", "")
    last, task, title = None if is_before else state.last, told.get("BYDAWN_TASK_ID", ""), told.get("BYDAWN_TASK", "")
    failed = [f"{verdict.check}: {verdict.told}" for verdict in state.failed_checks] if last else []
    error = (last.ended.words or last.ended.detail) if last and last.ended.outcome is not Outcome.OK else ""
    code = codes.code(rule, state.obstructed.kind if state.obstructed else "") if event == "on_blocked" else ""
    if code and (about := blocked_task(rule, state) or "") != task:
        task, title, last = about, tally_of(state.tallies, about).text, None
    is_done, is_blocked = task in state.settled.done, task in state.settled.aside
    outcomes = {"on_complete": codes.COMPLETED, "on_blocked": codes.BLOCKED, "on_pause": codes.INTERRUPTED}
    verified = last is not None and state.verdict_round == last.ended.round and bool(state.verdicts)
    claimed = last and codes.agent_status(last.ended.claim)  # once a task is settled, its claim has been dealt with
    words = {
        "EVENT": EVENTS.get(event, event),
        "PROJECT_DIR": loop.workspace,
        "WORKING_DIR": loop.folder,
        "TASK_ID": task,
        "TASK_TITLE": title,
        "TASK_STATUS": "" if not task else "done" if is_done else "blocked" if is_blocked else "in_progress",
        "LOOP_ITERATION": str(state.round + is_before),
        "AGENT_STATUS": claimed or ("complete" if is_done else "blocked" if code == codes.AGENT_BLOCKED else ""),
        "VERIFICATION_PASSED": ("false" if failed else "true") if verified else "",
        "SUMMARY": last.ended.said if last else "",
        "ERROR": error or spoken(failed[0] if failed else told.get("BYDAWN_REASON", "") if code else ""),
        "BLOCKER_CODE": code,
        "OUTCOME": outcomes.get(event, ""),
    }
    return {f"CODEX_LOOP_{name}": value for name, value in words.items()}
