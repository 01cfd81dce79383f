"""Loops without the time they would have taken: real ledgers, written through the real ledger."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn.core.facts import AnyFact, ChecksEnded, LoopCreated, LoopStopped, RoundEnded, RoundStarted, RunStarted
from bydawn.core.loop import CommandCheck, Loop, SpokenDialect
from bydawn.core.outcome import Outcome
from bydawn.core.values import Changes, Decided, End, Findings, TaskReading, Usage, Verdict
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger
from bydawn.store.registry import Registry, new_uid
from bydawn.system.writing import write_private

_NOW = datetime.now(UTC)
_TASKS = TaskReading(open=3, done=2, next="three")


def write_loop(
    state_dir: Path, workspace: Path, name: str, rounds: int, dialect: SpokenDialect | None = None, tasks: str = ""
) -> Path:
    """A loop that has had so many rounds, each with a tree of its own, and is paused; its folder."""
    loop = Loop(
        id=name,
        uid=new_uid(),
        workspace=str(workspace),
        created_at=_NOW,
        prompt="Write the slug library, task by task.",
        agent="demo",
        checks=(CommandCheck(command="true"),),
        dialect=dialect,
        tasks=tasks or None,
    )
    folder = Registry(state_dir).home(workspace) / name
    folder.mkdir(parents=True)
    settings = msgspec.json.encode(loop)
    write_private(folder / "loop.json", settings)
    write_private(folder / "lock", b"")
    ledger = LoopLedger(LoopFolder(folder), print, str)
    ledger.append(LoopCreated(loop=name, uid=loop.uid, settings=hashlib.sha256(settings).hexdigest()))
    write_rounds(ledger, range(1, rounds + 1), _TASKS if tasks else None)
    return folder


def write_rounds(ledger: LoopLedger, numbers: range, tasks: TaskReading | None = None, task_id: str = "") -> None:
    """A run with these rounds, until somebody paused it; closes the ledger."""
    first, last = numbers.start - 1, numbers.stop - 1
    ledger.append(RunStarted(run="0" * 12, pid=1, boot="", version="0", found=Findings(tree=_tree(first), tasks=tasks)))
    for number in numbers:
        for fact in _round(number, task_id):
            ledger.append(fact)
    reason = "paused by somebody"
    ledger.append(LoopStopped(end=End.PAUSED, reason=reason, decided=_decided("asked-to-pause", last), by="somebody"))
    ledger.snapshot()
    ledger.close()


def _round(number: int, task_id: str) -> Iterator[AnyFact]:
    yield RoundStarted(
        round=number,
        agent="demo",
        cookie=f"{'0' * 16}.{number}.{'0' * 8}",
        tree=_tree(number - 1),
        argv=("/usr/bin/python3", "-I", "-S", "/usr/lib/python3/site-packages/bydawn/agents/player.py"),
        decided=_decided("next-round", number),
        task="Write slugify()",
        task_id=task_id or None,
    )
    yield RoundEnded(
        round=number,
        outcome=Outcome.OK,
        detail="",
        found=Findings(tree=_tree(number), progress=True, changes=Changes(modified=1, paths=("src/slug.py",))),
        elapsed=number * 60.0 + 50,
        exit_code=0,
        seconds=50.0,
        said="Wrote the function and a test for it; three of the four tests pass now.",
        usage=Usage(tokens_in=30_000, tokens_out=1_500),
    )
    verdict = Verdict(check="true", passed=True, detail="exit 0", exit_code=0, seconds=1.0, output="check-1.txt")
    yield ChecksEnded(round=number, tree=_tree(number), verdicts=(verdict,), elapsed=number * 60.0 + 51, seconds=1.0)


def _decided(rule: str, number: int) -> Decided:
    return Decided(rule=rule, at=_NOW, elapsed=number * 60.0)


def _tree(number: int) -> str:
    return hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()
