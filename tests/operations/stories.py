"""Loops on a disk in every state there is, made from facts: nothing runs, and every moment in them is fixed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core.breakers import Limits
from bydawn.core.facts import (
    AgentLimited,
    AnyFact,
    ChecksEnded,
    CommitEnded,
    HookEnded,
    LoopDismissed,
    LoopStopped,
    Obstructed,
    RunStarted,
    TaskSettled,
    WaitStarted,
)
from bydawn.core.loop import Checkpoint, CommandCheck, CommitMode, Hooks, OnTamper, Sandbox
from bydawn.core.outcome import Outcome
from bydawn.core.records import BY_HAND, Recording
from bydawn.core.rules import Rule
from bydawn.core.values import Changes, Commands, Decided, End, LineCounts, Promised, TaskStatus, Usage
from bydawn.store.ledger import encode
from bydawn.store.lock import Lock
from bydawn.store.registry import Registry
from core.facts_made import (
    BORN,
    BROKEN,
    MAKE_TEST,
    NOON,
    PROMISE,
    RECORDED,
    a_loop,
    a_note,
    a_round,
    checked,
    ended,
    iteration,
    numbered,
    pause,
    raised,
    run_started,
    started,
    todo,
)

LINT = CommandCheck(command="make lint")
SPENT = Usage(tokens_in=1000, tokens_cached=200, tokens_out=50, cost_usd=0.42)
UNPRICED = Usage(tokens_in=70, tokens_out=7)
TODO = "- [x] one\n- [x] two\n- [ ] three\n\nHARD STOP\n\n- [ ] four\n"


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """One loop: its settings, what happened, what is in its folder, and whether a worker holds it."""

    facts: list[AnyFact]
    settings: Mapping[str, Any] = {}
    files: Mapping[str, str] = {}
    alive: bool = False
    runs: bool = True  # has it ever run?


def stopped(end: End, rule: Rule, reason: str, *evidence: str) -> LoopStopped:
    return LoopStopped(end=end, reason=reason, decided=Decided(rule=rule, at=NOON, elapsed=60.0), evidence=evidence)


def both(number: int, *, passed: bool) -> ChecksEnded:
    """Two checks, the first of them green."""
    [one] = checked(number, passed=True).verdicts
    [other] = checked(number, passed=passed).verdicts
    other = msgspec.structs.replace(other, check=LINT.name, seconds=1.5, output="check-2.txt", fingerprint="f-1")
    return msgspec.structs.replace(checked(number), verdicts=(one, other), seconds=2.5)


FAILING = Commands(
    ran=12, failed=12, error=BROKEN, fingerprint="f-2", failures=(f"✗ pytest -q → exit 1: {BROKEN}",) * 10
)
BIG = Changes(added=2, modified=1, deleted=1, paths=("a.py", "b.py"), lines=LineCounts(added=14, removed=6))
STORIES = {
    "complete": Story(
        settings={"checks": (MAKE_TEST,), "sandbox": Sandbox.WORKSPACE, "others": ("codex",)},
        facts=[
            *a_round(1, changes=BIG, usage=SPENT, seconds=12.25, said="did half", session="s-1"),
            checked(1, passed=False, seconds=0.5),
            *a_round(2, agent="codex", usage=UNPRICED, exit_code=0, **PROMISE),
            checked(2),
            stopped(End.COMPLETE, Rule.COMPLETE, "the checks", "make test: passed"),
        ],
    ),
    "unverified": Story(
        facts=[*a_round(1, **PROMISE), stopped(End.UNVERIFIED, Rule.COMPLETE, "the promise")],
    ),
    "blocked": Story(
        settings={"tasks": "TODO.md", "checks": (MAKE_TEST, LINT)},
        files={"TODO.md": TODO},
        facts=[
            run_started(tasks=todo(2, 2)),
            checked(0, passed=False, tree="tree-0"),
            *a_round(1, task="three", task_id="task-3", tasks=todo(2, 2), usage=SPENT, blocked="which rate is meant?"),
            both(1, passed=False),
            a_note("n-1"),
            *a_round(
                2,
                Outcome.DENIED,
                task="three",
                tasks=todo(2, 2),
                progress=False,
                denied=("rm",),
                leftovers=("sleep 9",),
            ),
            stopped(End.BLOCKED, Rule.AGENT_BLOCKED, "which rate is meant?"),
            a_note("n-2", "half up"),
        ],
    ),
    "question": Story(
        settings={"tasks": "TODO.md"},
        files={"TODO.md": TODO},
        facts=[
            run_started(tasks=todo(2, 2)),
            *a_round(1, task="three", task_id="task-3", tasks=todo(2, 2), progress=False, blocked="which rate?"),
            TaskSettled(
                task="task-3", text="three", status=TaskStatus.ASIDE, by=Rule.AGENT_BLOCKED, reason="which rate?"
            ),
            *a_round(2, task="four", task_id="task-4", tasks=todo(1, 3, next_=False), closed=("four",)),
            stopped(End.BLOCKED, Rule.AGENT_BLOCKED, "which rate?", "“three” needs you: which rate?"),
        ],
    ),
    "tampered": Story(
        settings={"tasks": "TODO.md", "checks": (MAKE_TEST,), "protect": ("tests/*",), "on_tamper": OnTamper.RESTORE},
        files={"TODO.md": TODO},
        facts=[
            run_started(tasks=todo(2, 2), tampered=("tests/c.py",), restored=True),
            *a_round(
                1, tampered=("tests/a.py",), restored=True, tasks=todo(1, 3), closed=("three",), doubted=("three",)
            ),
            *a_round(
                2,
                tampered=("tests/a.py", "tests/b.py"),
                restored=True,
                promise=Promised.MENTIONED,
                tasks=todo(1, 3),
            ),
            pause(now=True),
            stopped(End.PAUSED, Rule.ASKED_TO_PAUSE, "asked by ada"),
        ],
    ),
    "limit": Story(
        settings={"limits": Limits(rounds=2, seconds=7200.0, usd=5.0, until=NOON + timedelta(hours=9))},
        facts=[
            *a_round(1, Outcome.LIMITED, wait_until=NOON + timedelta(days=40000), detail="resets later"),
            WaitStarted(seconds=60.0, reason="the limit", decided=Decided(rule="agent-limit", at=NOON, elapsed=1.0)),
            AgentLimited(agent="claude", until=NOON + timedelta(days=40000), detail="weekly", by="other"),
            *a_round(2, usage=SPENT),
            *a_round(3, Outcome.INTERRUPTED, detail="stopped on request", usage=SPENT),
            raised(rounds=1, usd=1.0),
            stopped(End.LIMIT, Rule.ROUNDS, "1 round"),
        ],
    ),
    "hook": Story(
        settings={"hooks": Hooks(pre_round="./before.sh")},
        facts=[
            *a_round(1),
            HookEnded(
                hook="pre_round", round=1, passed=False, detail="exit 3", elapsed=1.0, output="hook-pre_round.txt"
            ),
            Obstructed(kind="hook", detail="the hook pre_round failed"),
            stopped(End.BLOCKED, Rule.OBSTRUCTED, "the hook pre_round failed", "hook"),
        ],
    ),
    "commit": Story(
        settings={"commit": CommitMode.REQUIRE},
        facts=[
            run_started(commits=True),
            *a_round(1),
            CommitEnded(round=1, elapsed=60.0, commit="5dd33ddb5", files=2, left_out=("notes.txt",)),
            *a_round(2),
            CommitEnded(
                round=2,
                elapsed=120.0,
                failure="exit 1",
                output="hook-commit.txt",
                excerpt="E501 too long\n1 error",
            ),
            Obstructed(kind="commit", detail="round 2 could not be committed: exit 1: 1 error"),
            stopped(End.BLOCKED, Rule.OBSTRUCTED, "round 2 could not be committed: exit 1: 1 error", "commit"),
        ],
    ),
    "folder": Story(
        settings={"tasks": "tasks", "task_folder": True, "checks": (MAKE_TEST,)},
        files={
            "tasks/a.md": "# first\n",
            "tasks/b.md": "---\ndepends_on: [a]\n---\n# second\n",
            "tasks/c.md": "# third\n",
        },
        facts=[
            run_started(tasks=todo(3)),
            TaskSettled(task="a", text="first", status=TaskStatus.SKIPPED, by="ada"),
            TaskSettled(task="c", text="third", status=TaskStatus.ASIDE, by="bydawn", reason="3 failures"),
            *a_round(1, Outcome.FAILED, task="third", task_id="c", detail="exit 1", exit_code=1, progress=False),
            stopped(End.BLOCKED, Rule.TASKS_ASIDE, "every open task was set aside", "2 open tasks"),
        ],
    ),
    "auth": Story(
        settings={"agent": "codex"},
        facts=[
            *a_round(1, Outcome.AUTH, agent="codex", detail="codex is not logged in", words="401", progress=False),
            stopped(End.FAILED, Rule.AGENT_STOP, "codex is not logged in", "auth", "401"),
        ],
    ),
    "commands": Story(
        settings={"agent": "codex"},
        facts=[
            *a_round(1, agent="codex", progress=False, commands=FAILING),
            stopped(End.FAILED, Rule.COMMANDS_FAILED, f"3 rounds in a row, every command failed: {BROKEN}"),
        ],
    ),
    "running": Story(alive=True, facts=[*a_round(1), started(2, session="s-1", notes=("n-1",))]),
    "waiting": Story(
        alive=True,
        facts=[
            *a_round(1, Outcome.TRANSIENT),
            WaitStarted(
                seconds=30.0, reason="a blip", agent="demo", decided=Decided(rule="back-off", at=NOON, elapsed=1.0)
            ),
        ],
    ),
    "pausing": Story(alive=True, facts=[*a_round(1), started(2), pause()]),
    "checkpoint": Story(
        settings={"tasks": "TODO.md", "checkpoint": Checkpoint()},
        files={"TODO.md": TODO.replace("[ ] three", "[x] three")},
        facts=[
            run_started(tasks=todo(2, 2)),
            *a_round(1, tasks=todo(1, 3), closed=("three",)),
            stopped(End.CHECKPOINT, Rule.CHECKPOINT, "HARD STOP"),
        ],
    ),
    "stopped": Story(facts=[*a_round(1), stopped(End.STOPPED, Rule.ASKED_TO_STOP, "asked by ada")]),
    "dismissed": Story(
        facts=[*a_round(1), stopped(End.BLOCKED, Rule.NO_PROGRESS, "5 rounds made no change"), LoopDismissed(by="ada")]
    ),
    "upgraded": Story(  # and crashed before the new version decided anything
        facts=[
            *a_round(1),
            stopped(End.STOPPED, Rule.ASKED_TO_STOP, "asked by ada"),
            msgspec.structs.replace(run_started(), version="9"),
        ]
    ),
    "recorded": Story(
        settings={"checks": (MAKE_TEST,), "recording": RECORDED.recording},
        facts=[
            run_started(recording=True),
            started(1),
            iteration("r-1", number=1, by="codex"),
            iteration("r-2", number=1, by="codex", batched="within a second of iteration 1, with the same evidence"),
            ended(1, said="two at once"),
            checked(1, passed=False),
            started(2),
            iteration("r-3", number=2, by="codex", seconds=90, status="blocked", stop_reason="I need a key"),
            ended(2),
            checked(2, passed=False),
            stopped(End.BLOCKED, Rule.RECORDED_END, "recorded as blocked: I need a key", "blocked"),
        ],
    ),
    "session": Story(  # a person's own, which bydawn never runs
        settings={"recording": Recording(drop="drop", by_hand=True)},
        runs=False,
        facts=[
            stopped(End.PAUSED, Rule.ASKED_TO_PAUSE, BY_HAND),
            iteration("r-1", status="failed", stop_reason="it cannot be halved"),
            stopped(End.BLOCKED, Rule.RECORDED_END, "recorded as failed: it cannot be halved", "failed"),
        ],
    ),
    "crashed": Story(facts=[*a_round(1), checked(1), started(2)]),
}


def home_of(root: Path, name: str) -> Path:
    return Registry(root / "state").home(root / "work" / name)


def write_loop(root: Path, name: str) -> None:
    """Put the loop of a story, and its workspace, below a folder."""
    story, workspace, folder = STORIES[name], root / "work" / name, home_of(root, name) / name
    workspace.mkdir(parents=True)
    for path, text in story.files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    folder.mkdir(parents=True)
    (folder / "loop.json").write_bytes(msgspec.json.encode(a_loop(id=name, workspace=str(workspace), **story.settings)))
    begun = isinstance(story.facts[0], RunStarted) or not story.runs
    facts = [BORN, *([] if begun else [run_started()]), *story.facts]
    (folder / "ledger.jsonl").write_bytes(b"".join(map(encode, numbered(facts))))


@contextmanager
def held(root: Path, name: str) -> Iterator[None]:
    """While a worker holds it, if one does."""
    if not STORIES[name].alive:
        yield
        return
    lock = Lock.take(home_of(root, name) / name / "lock")
    try:
        yield
    finally:
        lock.release()
