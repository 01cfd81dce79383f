"""Facts as short words, so that a history reads like a story."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec

from bydawn.core.breakers import Limits
from bydawn.core.facts import (
    AnyFact,
    ChecksEnded,
    Fact,
    IterationRecorded,
    LimitsRaised,
    LoopCreated,
    LoopStopped,
    NoteAdded,
    PauseRequested,
    Record,
    RoundEnded,
    RoundStarted,
    RunStarted,
    StopRequested,
)
from bydawn.core.loop import CommandCheck, Loop, Promise
from bydawn.core.outcome import Outcome
from bydawn.core.proof import ChangedTest, Held, Proved
from bydawn.core.records import Iteration, Recording
from bydawn.core.replay import replay
from bydawn.core.state import LoopState
from bydawn.core.tasks import Tasks
from bydawn.core.values import Commands, Decided, End, Findings, Now, Promised, TaskClaim, TaskReading, Verdict

NOON = datetime(2026, 1, 6, 12, tzinfo=UTC)
MAKE_TEST = CommandCheck(command="make test")
BORN = LoopCreated(loop="night", uid="u-1", settings="5e77")


def a_loop(**settings: Any) -> Loop:
    """A loop with nothing but a goal, unless something is added."""
    given = {"id": "night", "uid": "u-1", "workspace": "/w", "created_at": NOON, "prompt": "fix it", "agent": "demo"}
    return Loop(**{**given, **settings})


PROMISED = a_loop()  # with nothing else to go by, the promise decides
CHECKED = a_loop(checks=(MAKE_TEST,), promise_required=False)  # --no-promise
ASKED = a_loop(checks=(MAKE_TEST,))
LISTED = a_loop(tasks="TODO.md")
PROVABLE = a_loop(tasks="TODO.md", checks=(MAKE_TEST,))
FOLDER = a_loop(tasks="tasks", task_folder=True, checks=(MAKE_TEST,))
RECORDED = a_loop(recording=Recording(drop=".codex-loop/tasks/t/drop"))
STRICT = a_loop(tasks="TODO.md", checks=(MAKE_TEST,), promise=Promise())


def limited(loop: Loop = PROMISED, **limits: Any) -> Loop:
    """The same loop with other limits."""
    return msgspec.structs.replace(loop, limits=Limits(**limits))


def at(elapsed: float = 0.0, *, hours: float = 0.0) -> Now:
    """So many working seconds into the loop, so many hours after noon on the wall."""
    return Now(NOON + timedelta(hours=hours), elapsed)


def decided(rule: str = "next-round", elapsed: float = 0.0) -> Decided:
    return Decided(rule=rule, at=NOON, elapsed=elapsed)


def todo(open_: int, done: int = 0, problem: str | None = None, *, next_: bool = True, **more: Any) -> TaskReading:
    """A task list with so many boxes open and so many ticked; without a next one, all that is open was set aside."""
    ids = tuple(f"task-{number}" for number in range(done + 1, done + open_ + 1))
    following = ids[0] if ids and next_ else None
    return TaskReading(open=open_, done=done, next=following, next_id=following, open_ids=ids, problem=problem, **more)


def run_started(tree: str = "tree-0", **more: Any) -> RunStarted:
    return RunStarted(run="run-1", pid=4711, boot="b", version="0", **with_findings({"tree": tree, **more}))


def with_findings(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a fact, those of what was found in the workspace put together."""
    found = {name: value for name, value in fields.items() if name in Findings.__struct_fields__}
    return {"found": Findings(**found), **{name: value for name, value in fields.items() if name not in found}}


def started(number: int, tree: str = "tree-0", agent: str = "demo", **more: Any) -> RoundStarted:
    more = {"decided": decided(), **more}
    return RoundStarted(round=number, agent=agent, cookie=f"u-1.{number}.c0", tree=tree, argv=("demo",), **more)


def ended(number: int, outcome: Outcome = Outcome.OK, **more: Any) -> RoundEnded:
    more = {"detail": "", "tree": f"tree-{number}", "progress": True, "elapsed": 60.0 * number, **more}
    return RoundEnded(round=number, outcome=outcome, **with_findings(more))


def a_round(
    number: int,
    outcome: Outcome = Outcome.OK,
    agent: str = "demo",
    task: str | None = None,
    task_id: str | None = None,
    **more: Any,
) -> list[AnyFact]:
    """A whole turn of the agent; unless told otherwise it went well and changed the tree."""
    return [started(number, agent=agent, task=task, task_id=task_id), ended(number, outcome, **more)]


def idle_round(number: int, tree: str = "tree-0", **more: Any) -> list[AnyFact]:
    """A turn that changed nothing."""
    return a_round(number, tree=tree, progress=False, **more)


BROKEN = "bwrap: execvp codex-linux-sandbox: No such file or directory"


def in_vain(error: str = BROKEN, ran: int = 2, failed: int | None = None) -> Commands:
    """The commands of a round: so many, of which so many failed; unless told otherwise all of them."""
    return Commands(ran=ran, failed=ran if failed is None else failed, error=error, fingerprint=error)


def checked(number: int, *, passed: bool = True, tree: str | None = None, seconds: float = 0.0) -> ChecksEnded:
    verdict = Verdict(
        check=MAKE_TEST.name,
        passed=passed,
        detail="exit 0" if passed else "exit 2",
        exit_code=0 if passed else 2,
        excerpt="" if passed else "FAIL: test_rounding",
    )
    tree = f"tree-{number}" if tree is None else tree
    proved = Proved() if passed else None
    elapsed = 60.0 * number
    return ChecksEnded(round=number, tree=tree, verdicts=(verdict,), elapsed=elapsed, seconds=seconds, proved=proved)


def held(number: int) -> ChecksEnded:
    """Checks that pass only because the agent changed a test, as it insists."""
    changed = ChangedTest(path="tests/test_a.py", form="100644 c0ffee", why="the rounding rule is another one")
    found = Held(changed=(changed,), passed=False, detail="make test: exit 2", insisted=(changed,))
    return msgspec.structs.replace(checked(number), proved=Proved(held=found, control="green"))


def iteration(record: str = "r-1", *, seconds: float = 0.0, **more: Any) -> IterationRecorded:
    """An agent records one small task; unless told otherwise it goes on."""
    said = {"task": "half 14", "local_done_condition": "it is 7", "result_summary": "7", "verification_summary": "7*2"}
    ours = {"round": more.pop("number", 0)} | {name: more.pop(name) for name in ("batched", "by") if name in more}
    claim = Iteration(**(said | more))
    return IterationRecorded(record=record, at=NOON + timedelta(seconds=seconds), claim=claim, **ours)


def stopped(end: End, elapsed: float = 0.0) -> LoopStopped:
    return LoopStopped(end=end, reason="why not", decided=decided("complete", elapsed))


def a_note(name: str, text: str = "round half up") -> NoteAdded:
    return NoteAdded(note=name, text=text, by="ada")


def pause(*, now: bool = False, signal: str | None = None) -> PauseRequested:
    return PauseRequested(by="ada", now=now, signal=signal)


def stop(*, now: bool = True) -> StopRequested:
    return StopRequested(by="ada", now=now)


def raised(**limits: Any) -> LimitsRaised:
    return LimitsRaised(limits=Limits(**limits), by="ada")


DONE = TaskClaim(status="done")
PROMISE: dict[str, Any] = {"promise": Promised.GIVEN, "said": "all done"}
CRASH_AND_RESTART = run_started  # a run that starts where no stop was recorded: the one before it died


def numbered(facts: Iterable[Fact]) -> list[Record]:
    """Facts with their places in a ledger, a second apart."""
    return [
        Record(seq=place, at=NOON + timedelta(seconds=place), fact=cast("AnyFact", fact))
        for place, fact in enumerate(facts, start=1)
    ]


def after_all(*facts: Fact | Sequence[Fact]) -> LoopState:
    """The state after a history; a round may stand in it as the list that `a_round` makes."""
    flat = [each for fact in facts for each in ([fact] if isinstance(fact, Fact) else fact)]
    return replay(numbered([BORN, *flat]))


def reading_of(tasks: Tasks) -> TaskReading:
    """What the ledger records of a checklist without checkpoints."""
    left = [task for task in tasks.items if not task.done]
    return TaskReading(
        open=len(left),
        done=len(tasks.items) - len(left),
        next=left[0].text if left else None,
        open_ids=tuple(task.id for task in left),
        problem=tasks.problem,
    )
