"""A project of codex-loop, told as facts, for tests of what is made from them."""

from collections.abc import Sequence
from typing import Any

from bydawn.core.facts import AnyFact, ChecksEnded, Fact, LoopStopped, TaskSettled
from bydawn.core.history import History
from bydawn.core.loop import CommandCheck, Loop, SpokenDialect, Worktree
from bydawn.core.outcome import Outcome
from bydawn.core.records import PREPARED
from bydawn.core.replay import replay
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import Changes, End, TaskClaim, TaskReading, TaskStatus, Verdict
from core.facts_made import BORN, a_loop, decided, ended, numbered, run_started, started

PYTEST = CommandCheck(command="pytest -q")
LEXER, PARSER, DOCS = "001-lexer", "002-parser", "003-docs"
_BESIDE = "/home/ada/.codex-loop-worktrees/shop/codex-loop-shop"
WORDS = {"project": "Shop", "source_prompt": "Write a parser, please", "max_iterations": "30"}


def a_project(**more: Any) -> Loop:
    given: dict[str, Any] = {
        "id": "shop",
        "workspace": "/home/ada/shop",
        "prompt": "A parser for lists",
        "agent": "codex",
        "tasks": "tasks",
        "task_folder": True,
        "checks": (PYTEST,),
        "worktree": Worktree(branch="codex-loop/shop", path=_BESIDE, folder=_BESIDE),
        "dialect": SpokenDialect(name="codex-loop", words=WORDS),
    }
    return a_loop(**given | more)


def tasks(*open_: str, done: int = 0, next_: str | None = "", **more: Any) -> TaskReading:
    """The folder with these tasks open; the first one comes next unless another is named."""
    following = (open_[0] if open_ else None) if next_ == "" else next_
    return TaskReading(open=len(open_), done=done, open_ids=open_, next=following, next_id=following, **more)


def begun(*open_: str, **more: Any) -> AnyFact:
    return run_started(tasks=tasks(*open_), rounds_allowed=30, per_task=True, **more)


def an_iteration(
    number: int,
    task: str = LEXER,
    claim: str | None = "in-progress",
    outcome: Outcome = Outcome.OK,
    *,
    session: str | None = None,
    fallback: str = "",
    **more: Any,
) -> list[AnyFact]:
    """Codex works on a task; unless told otherwise it goes on with it, and has changed two files."""
    given: dict[str, Any] = {
        "said": f"worked on {task}" if claim else "",
        "claim": TaskClaim(status=claim) if claim else None,
        "changes": Changes(added=1, modified=1, paths=("src/lexer.py", "tests/test_lexer.py")),
        "session": f"s-{task}",
        "seconds": 41.0,
    }
    opening = started(number, agent="codex", task=f"Task {task}", task_id=task, session=session, fallback=fallback)
    return [opening, ended(number, outcome, **given | more)]


def verified(number: int, *, passed: bool = True, **more: Any) -> ChecksEnded:
    code, said = (0, "5 passed") if passed else (1, "FAILED test_lexer.py::test_nested - assert 1 == 2")
    given: dict[str, Any] = {
        "exit_code": code,
        "stdout": f"{said}\n",
        "stderr": "" if passed else "1 warning\n",
        "excerpt": said,
    }
    verdict = Verdict(check=PYTEST.name, passed=passed, detail=f"exit {code}", **given | more)
    return ChecksEnded(round=number, tree=f"tree-{number}", verdicts=(verdict,), elapsed=60.0 * number, seconds=2.0)


def settled(task: str, status: TaskStatus, by: str = Rule.TASK_DONE, reason: str = "") -> TaskSettled:
    return TaskSettled(task=task, text=f"Task {task}", status=status, by=by, reason=reason)


def stop(end: End, rule: str, reason: str = "", evidence: tuple[str, ...] = (), by: str | None = None) -> LoopStopped:
    return LoopStopped(end=end, reason=reason, decided=decided(rule), evidence=evidence, by=by)


PREPARATION = stop(End.PAUSED, Rule.ASKED_TO_PAUSE, f"{PREPARED} by init", by="ada")
COMPLETE = stop(End.COMPLETE, Rule.COMPLETE, "tasks and checks")


def past(*facts: AnyFact | Sequence[AnyFact]) -> tuple[LoopState, History]:
    flat = [each for fact in facts for each in ([fact] if isinstance(fact, Fact) else fact)]
    records = numbered([BORN, *flat])
    return replay(records), History(records)
