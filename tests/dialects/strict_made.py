"""Tasks of strict-agent-loop, for tests of its files."""

from datetime import timedelta
from typing import Any

import msgspec

from bydawn.core.facts import EventRecorded, IterationRecorded
from bydawn.core.loop import CommandCheck, Limits, Loop, PathCheck, Sessions, SpokenDialect
from bydawn.core.records import Iteration, Recording
from bydawn.core.values import Verdict
from bydawn.dialects.strict_agent_loop import paths
from bydawn.dialects.strict_agent_loop.contract import Contract
from core.facts_made import NOON, a_loop

WORKSPACE = "/home/ada/app"
CONTRACT = Contract(
    task="hailstone",
    goal="Write the hailstone sequence of 7, one number per round",
    stop_condition="report.md has all 17 numbers",
    mode="unattended",
    evidence=("python verify.py prints ok",),
    blocker="only a person can explain the rules",
    commands=("python verify.py",),
    paths=("report.md",),
    next_task="write 7",
)
BY_HAND = msgspec.structs.replace(CONTRACT, mode="interactive", commands=(), paths=())


def a_task(contract: Contract = CONTRACT, **more: Any) -> Loop:
    checks = (*(CommandCheck(command=each) for each in contract.commands), *(PathCheck(path=p) for p in contract.paths))
    words = {"task": contract.task, "contract": msgspec.json.encode(contract).decode()}
    spoken = SpokenDialect(name=paths.NAME, words=words)
    recording = Recording(drop=paths.of(contract.task, paths.DROP), by_hand=contract.mode == "interactive")
    given: dict[str, Any] = {
        "id": contract.task,
        "prompt": contract.goal,
        "agent": "codex",
        "workspace": "/home/ada/app",
    }
    limits = Limits(iterations=contract.max_iterations, no_progress=contract.max_no_progress)
    sessions = Sessions.RESUME if contract.resume_thread else Sessions.FRESH
    given |= {"limits": limits, "sessions": sessions}
    return a_loop(**given | {"checks": checks, "recording": recording, "dialect": spoken} | more)


def an_iteration(number: int, **claim: Any) -> IterationRecorded:
    """The record of an iteration, a minute after the one before."""
    given = {
        "task": f"write number {number}",
        "local_done_condition": "it is the last line of numbers.txt",
        "result_summary": f"wrote number {number}",
        "verification_summary": "read the file again",
        "evidence": (f"tail -1 numbers.txt: number {number}",),
        "next_task": f"write number {number + 1}",
    }
    at = NOON + timedelta(minutes=number)
    return IterationRecorded(record=f"r-{number}", at=at, by="codex", claim=Iteration(**given | claim))


def an_event(number: int, kind: str = "round.started", message: str = "next number", **data: str) -> EventRecorded:
    at = NOON + timedelta(minutes=number - 1, seconds=10)
    return EventRecorded(record=f"e-{number}", at=at, by="codex", kind=kind, message=message, data=data)


def verdicts(*, script: bool, report: bool) -> tuple[Verdict, ...]:
    said = "" if script else "16 numbers, 17 wanted"
    return (
        Verdict(
            check="python verify.py",
            passed=script,
            detail="exit 0" if script else "exit 1",
            exit_code=0 if script else 1,
            excerpt=said,
        ),
        Verdict(check="report.md exists", passed=report, detail="it exists" if report else "it does not exist"),
    )
