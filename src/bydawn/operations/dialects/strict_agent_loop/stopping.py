"""Run the stop checks of a task, and say whether it should stop. They are the authority (S-046)."""

import os
import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bydawn.core.errors import UserError
from bydawn.core.facts import EventRecorded
from bydawn.core.loop import Check, CommandCheck
from bydawn.core.text import last_part, plain
from bydawn.core.values import Verdict
from bydawn.dialects.strict_agent_loop import document, paths
from bydawn.dialects.strict_agent_loop.contract import CHECK_SECONDS
from bydawn.dialects.strict_agent_loop.document import StopReport
from bydawn.dialects.strict_agent_loop.paths import NAME
from bydawn.operations.dialects.strict_agent_loop import recording, sandboxed, tasks
from bydawn.operations.dialects.strict_agent_loop.tasks import Task
from bydawn.operations.preconditions import is_inside_a_round
from bydawn.store.registry import Standing

if TYPE_CHECKING:
    from bydawn.process.guardian import Tether

Say = Callable[[str], None]
CHECKED = "stop.checked"
_TAIL = 3_000  # characters of a failing check's output


def check(task: Task, tether: "Tether", say: Say) -> StopReport:
    """Run them where the ledger can record what they say; else here, and that is a claim. None runs after the end."""
    standing = task.standing
    if standing is None or (is_inside_a_round() and not standing.finished):
        return _look(task, say)
    if not standing.alive and not standing.finished:
        _decide(standing, tether, say)
    return last(tasks.find(task.state_path))


def last(task: Task) -> StopReport:
    """What they said last: by the ledger, or else by the file."""
    if (standing := task.standing) is None:
        return tasks.last_report(task.workspace, task.now)
    if standing.trouble:
        raise standing.trouble
    return document.last_report(standing.loop, standing.state)


def _decide(standing: Standing, tether: "Tether", say: Say) -> None:
    """Have the engine run the checks and judge; a task that is not over stays as it was."""
    from bydawn.assemble import Worker  # the other scripts need no engine
    from bydawn.operations.dialects import begin
    from bydawn.operations.run_loop import run

    run(begin.plan_resume(standing, by_hand=True), Worker(tether=tether, say=say, rounds_allowed=0))


def _look(task: Task, say: Say) -> StopReport:
    """Run the checks here, where only a claim can be recorded (inside a round, in a sandbox)."""
    now = sandboxed.read(task)
    env = {paths.VARIABLE: str(task.workspace / paths.of(task.id, paths.IF_DONE))}
    verdicts = [_verdict(check, task.workspace, env) for check in document.checks_of(now)]
    report = document.stop_report(now, verdicts, datetime.now(UTC), just_run=True)
    passed = sum(verdict.passed for verdict in verdicts)
    data = {"passed": str(passed), "total": str(len(verdicts)), "success": str(report.success).lower()}
    fact = EventRecorded(
        **recording.by(), kind=CHECKED, message=f"{passed} of {len(verdicts)} stop checks pass", data=data
    )
    sandboxed.record(task, fact, say, report)
    return report


def refuse_inside_a_check() -> None:
    """It would run itself without end."""
    if paths.VARIABLE in os.environ:
        raise UserError(
            "a stop check cannot run the stop checks",
            cause="this is one of them, and it would wait for itself",
            hint=f"let it look at the work, or at the file that ${paths.VARIABLE} names",
        )


def refuse_unconfirmed(task: Task) -> None:
    """Commands that came from a sandbox run outside only when a person has said so."""
    if task.standing and (commands := document.unconfirmed(task.standing.loop)):
        words = " ".join(f"--stop-command {shlex.quote(each)}" for each in commands)
        raise UserError(
            f"no one has agreed to the stop commands of {task.id} yet",
            cause="they came with its folder or from a sandbox, and nothing from there runs before that",
            hint=f"read them, then: `{NAME} init-state {task.flags} {words}`",
        )


def _verdict(check: Check, workspace: Path, env: Mapping[str, str]) -> Verdict:
    """The same, without an engine."""
    if not isinstance(check, CommandCheck):
        from bydawn.process.checks import look_for

        return look_for(check, workspace, workspace)
    from bydawn.process.shell import run_alone

    code, output = run_alone(check.command, workspace, CHECK_SECONDS, env)
    detail = f"exit {code}" if code is not None else f"no end after {CHECK_SECONDS} s"
    tail = "" if code == 0 else last_part(plain(output.decode(errors="replace")), _TAIL)
    return Verdict(check=check.name, passed=code == 0, detail=detail, exit_code=code, excerpt=tail)
