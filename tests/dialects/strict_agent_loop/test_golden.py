"""Two nights of strict-agent-loop, and every file that they leave; `PIN_DOCUMENTS=1` writes the files anew."""

import json
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from bydawn.core.facts import AnyFact, ChecksEnded, EventRecorded, Fact, IterationRecorded, LoopStopped, Record
from bydawn.core.outcome import Outcome
from bydawn.core.records import COMPACTED
from bydawn.core.replay import after
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import Commands, End
from bydawn.dialects.strict_agent_loop import lines, paths, texts
from bydawn.dialects.strict_agent_loop.document import (
    begun,
    encoded,
    last_report,
    records_of,
    registry_entry,
    state_of,
    stop_report,
    with_claim,
)
from bydawn.dialects.strict_agent_loop.formats import (
    Event,
    IterationLine,
    Line,
    Part,
    RegistryEntry,
    State,
    StatusLine,
    StopReport,
    Time,
)
from core.facts_made import BORN, NOON, decided, ended, run_started, started
from dialects.strict_made import BY_HAND, CONTRACT, WORKSPACE, a_task, an_event, an_iteration, verdicts


class Registry(Part, frozen=True, kw_only=True):
    """The file `registry.json`, with all tasks of a workspace."""

    schema_version: int = 1
    updated_at: Time
    tasks: dict[str, RegistryEntry]


FORMATS: dict[str, type[Part]] = {  # of all JSON files
    "registry.json": Registry,
    paths.STATE: State,
    paths.EVENTS: Event,
    paths.ITERATIONS: IterationLine,
    paths.STATUSES: StatusLine,
    paths.STOP_REPORT: StopReport,
}
GOLDEN = Path(__file__).with_name("golden")
NIGHT = a_task(replace(CONTRACT, resume_thread=True))
TOO_EARLY = {"stop_met": True, "stop_reason": "all numbers are there"}
NO_RULES = {"status": "blocked", "stop_reason": "the rule for even numbers is not written anywhere"}
UNATTENDED: list[Fact] = [
    BORN,
    LoopStopped(end=End.PAUSED, reason="prepared: supervise begins it", decided=decided("asked-to-pause"), by="ada"),
    run_started(recording=True),
    started(1),
    an_event(1, message="write the first number", task="write number 1", kind="round.started"),
    an_iteration(1, announcement="Iteration 1: write number 1", artifacts=("numbers.txt",)),
    replace(an_iteration(2), batched="within a second of iteration 1, with the same evidence"),
    ended(1, session="t-1", seconds=130.0, exit_code=0),
    ChecksEnded(round=1, tree="tree-1", verdicts=verdicts(script=False, report=True), elapsed=140.0),
    started(2, tree="tree-1", session="t-1"),
    ended(2, Outcome.SESSION_LOST, tree="tree-1", progress=False, detail="no such thread"),
    started(3, tree="tree-1"),
    ended(3, Outcome.FAILED, tree="tree-1", progress=False, detail="exit 1: overloaded", exit_code=1, seconds=4.0),
    started(4, tree="tree-1"),
    an_iteration(3, **TOO_EARLY),
    ended(4, Outcome.HUNG, detail="it said nothing for 600 s", seconds=700.0),
    ChecksEnded(round=4, tree="tree-4", verdicts=verdicts(script=False, report=True), elapsed=900.0),
    started(5, tree="tree-4"),
    ended(5, tree="tree-5", said="Wrote number 4.", exit_code=0, seconds=50.0),
    started(6, tree="tree-5"),
    ended(6, Outcome.INTERRUPTED, tree="tree-5", progress=False, detail="stopped by SIGINT"),
    LoopStopped(end=End.PAUSED, reason="asked by SIGINT", decided=decided(Rule.ASKED_TO_PAUSE), by="SIGINT"),
    run_started("tree-5", recording=True),
    started(7, tree="tree-5", session="t-1"),
    ended(7, tree="tree-5", progress=False, commands=Commands(ran=1, failed=1, read_only=True), said="I cannot write."),
    an_event(20, kind=COMPACTED, message="earlier iterations were shortened", keep_last="2", max_archive_chars="8000"),
    started(8, tree="tree-5"),
    an_iteration(5, **NO_RULES),
    ended(8, tree="tree-8", exit_code=0, seconds=30.0),
    ChecksEnded(round=8, tree="tree-8", verdicts=verdicts(script=False, report=True), elapsed=990.0),
    LoopStopped(
        end=End.BLOCKED,
        reason=f"recorded as blocked: {NO_RULES['stop_reason']}",
        decided=decided(Rule.RECORDED_END),
        evidence=("blocked",),
    ),
]


def states(facts: list[Fact]) -> Iterator[tuple[AnyFact, LoopState]]:
    """Each fact, a minute after the one before, and the state after it."""
    state = LoopState()
    for seq, fact in enumerate(cast("list[AnyFact]", facts), start=1):
        at = NOON + timedelta(minutes=seq)
        if isinstance(fact, EventRecorded | IterationRecorded):
            fact = replace(fact, at=at - timedelta(milliseconds=250), round=state.round, inside=True)
        state = after(state, Record(seq=seq, at=at, fact=fact))
        yield fact, state


def json_lines(values: list[Line]) -> str:
    return "".join(
        msgspec.json.encode({"id": number} | msgspec.to_builtins(value)).decode() + "\n"
        for number, value in enumerate(values, start=1)
    )


def whole_files(now: State, report: StopReport) -> dict[str, str]:
    registry = Registry(
        updated_at=now.updated_at, tasks={now.task.id: msgspec.convert(registry_entry(now), RegistryEntry)}
    )
    entries = records_of(now).entries
    return {
        "registry.json": encoded(registry),
        paths.STATE: encoded(now),
        paths.STATUS_TEXT: texts.status_text(now, report),
        paths.STOP_REPORT: encoded(report),
        paths.SUMMARY: texts.run_summary(now, report),
        f"iteration-{entries[-1].number:04}.md": texts.round_summary(now, entries[-1]),
        "announcement.txt": "\n".join(texts.announcement(now, stop=report)) + "\n",
        "heartbeat.txt": "\n".join(texts.heartbeat(now, report)) + "\n",
    }


def unattended() -> dict[str, str]:
    """A night with a batch, a claim that came too early, failures, a signal, a compaction, and a blocker at its end."""
    events: list[Line] = []
    iterations: list[Line] = []
    statuses: list[Line] = []
    for fact, state in states(UNATTENDED):
        now, report, at = state_of(NIGHT, state), last_report(NIGHT, state), cast("Any", state.updated_at)
        events += lines.events_of(fact, NIGHT, state)
        if entry := lines.new_entry(fact, state):
            iterations.append(lines.iteration_of(now, entry))
        if isinstance(fact, ChecksEnded | LoopStopped):
            statuses.append(texts.status_line(now, report, "status.reported", at))
    events += [lines.broadcast(now, report, at), lines.parallel(now, "pytest -q", "ruff check .", at)]
    return whole_files(now, report) | {
        paths.EVENTS: json_lines(events),
        paths.ITERATIONS: json_lines(iterations),
        paths.STATUSES: json_lines(statuses),
    }


def interactive() -> dict[str, str]:
    """A session in a sandbox: nothing outside has run yet, so all of it is pending."""
    now = begun(
        replace(BY_HAND, in_sandbox=True, commands=("python verify.py",), paths=("report.md",)), WORKSPACE, NOON
    )
    events: list[Line] = [lines.initialized(now)]
    iterations: list[Line] = []
    for fact in (
        an_event(1),
        an_iteration(1),
        an_iteration(2, recovery=True, agent_id="x-2"),
        an_iteration(3),
        an_iteration(4),
    ):
        now = with_claim(now, fact)
        events.append(lines.event_of_claim(now, fact))
        if isinstance(fact, IterationRecorded):
            iterations.append(lines.iteration_of(now, records_of(now).entries[-1]))
    at = NOON + timedelta(minutes=5)
    report = stop_report(now, verdicts(script=False, report=True), at, just_run=True)
    return whole_files(now, report) | {
        paths.EVENTS: json_lines(events),
        paths.ITERATIONS: json_lines(iterations),
        paths.STATUSES: json_lines([texts.status_line(now, report, "status.reported", at)]),
    }


STORIES = {"unattended": unattended, "interactive": interactive}
FILES = [(story, name) for story, made in STORIES.items() for name in made()]


@pytest.mark.parametrize(("story", "name"), FILES)
def test_every_file_is_as_it_was_read_word_by_word(story: str, name: str) -> None:
    """S-010, S-011, S-012, S-032, S-036, S-060, S-062"""
    text, golden = STORIES[story]()[name], GOLDEN / story / name
    if os.environ.get("PIN_DOCUMENTS"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


def fits(value: Any, schema: dict[str, Any], known: dict[str, Any]) -> bool:
    """A small part of JSON Schema: as much as ours use."""
    if "$ref" in schema:
        return fits(value, known[schema["$ref"].rpartition("/")[2]], known)
    if "anyOf" in schema:
        return any(fits(value, each, known) for each in schema["anyOf"])
    kinds = {"string": str, "integer": int, "number": int | float, "boolean": bool, "null": None, "array": list}
    kind = schema.get("type")
    if kind == "object":
        fields, more = schema.get("properties", {}), schema.get("additionalProperties", False)
        return isinstance(value, dict) and all(
            fits(part, fields[name], known) if name in fields else bool(more) and fits(part, more, known)
            for name, part in value.items()
        )
    if kind == "null" or value is None:
        return value is None and kind == "null"
    if isinstance(value, bool) and kind != "boolean":
        return False
    if kind is not None and not isinstance(value, cast("Any", kinds[kind])):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return False
    return kind != "array" or all(fits(each, schema.get("items", {}), known) for each in value)


@pytest.mark.parametrize(("story", "name"), [each for each in FILES if each[1].endswith(("json", "jsonl"))])
def test_every_file_fits_the_schema_that_is_made_from_its_format(story: str, name: str) -> None:
    kind = FORMATS[name]
    (schema,), known = msgspec.json.schema_components([kind])
    text = (GOLDEN / story / name).read_text()
    for part in text.splitlines() if name.endswith("jsonl") else [text]:
        value = json.loads(part)
        assert fits(value, schema, known)
        assert json.loads(msgspec.json.encode(msgspec.convert(value, kind))) == value
        assert not fits(value | {"task_id": 1, "task": 2, "updated_at": "today"}, schema, known)


def test_the_stories_have_every_kind_of_event() -> None:
    text = (GOLDEN / "unattended" / paths.EVENTS).read_text()
    kinds = {json.loads(line)["kind"] for line in text.splitlines()}
    invocation = {"started", "finished", "failed", "progressed", "interrupted"}
    assert kinds == {f"supervisor.invocation.{word}" for word in invocation} | {
        "loop.initialized",
        "loop.blocked",
        "round.started",
        "iteration.recorded",
        "state.compacted",
        "supervisor.thread.reset",
        "supervisor.resume.disabled",
        "supervisor.protocol.parallel-commands",
        "supervisor.broadcast",
    }
