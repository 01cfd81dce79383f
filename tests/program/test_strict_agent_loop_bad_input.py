"""strict-agent-loop and bad input: what, why, do this; nothing is written, nothing is spent."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from driving import Home, is_error, said, tree_of
from program.strict import DONE, SCRIPTS, Strict

Arrange = Callable[[Strict], object]
Words = tuple[str, ...]


@pytest.fixture
def strict(home: Home) -> Strict:
    strict = Strict(home)
    strict.plays({"reply": "Nobody asks."})
    return strict


class Case(NamedTuple):
    """The command that is wrong, words that name what is, and the scene; `STATE` is the task's state.json."""

    words: Words
    named: str
    code: int = 2
    arrange: Arrange = Strict.init


def no_task(_: Strict) -> None: ...


def new(*words: str, without: str = "") -> Words:
    """`init-state` with all that it needs, or without one option and its value."""
    contract = {"--goal": "a goal", "--global-stop-condition": "a stop", "--workspace-root": "."}
    given = [word for pair in contract.items() if pair[0] != without for word in pair]
    return ("init-state", *given, *(() if "--task-id" in words else ("--task-id", "hail")), *words)


def instead(data: bytes) -> Arrange:
    """Another state.json in a folder that is no task of ours."""

    def arrange(strict: Strict) -> None:
        strict.folder.mkdir(parents=True)
        strict.state_path.write_bytes(data)

    return arrange


def huge(strict: Strict) -> None:
    instead(b"{")(strict)
    os.truncate(strict.state_path, 50 << 20)


def a_link(strict: Strict) -> None:
    strict.folder.mkdir(parents=True)
    (strict.home.root / "theirs.json").write_text("{}")
    strict.state_path.symlink_to(strict.home.root / "theirs.json")


def anothers(strict: Strict) -> None:
    """A state.json that was copied from another task's folder."""
    strict.init(task="other")
    strict.folder.mkdir(parents=True)
    strict.state_path.write_bytes((strict.root / "tasks/other/state.json").read_bytes())


EVENT = ("append-event", "--state", "STATE", "--kind", "note", "--message", "x")
UPDATE = ("update-state", "--state", "STATE", "--task", "x", *DONE)
SUPERVISE = ("supervise", "--state", "STATE")
CASES = {
    "no goal": Case(new(without="--goal"), "--goal", arrange=no_task),
    "a blank goal": Case(new("--goal", "  "), "--goal", arrange=no_task),
    "no stop condition": Case(new(without="--global-stop-condition"), "--global-stop-condition", arrange=no_task),
    "a workspace that is not there": Case(new("--workspace-root", "nowhere"), "nowhere", arrange=no_task),
    "a text without ::": Case(new("--require-text", "README.md"), "::", arrange=no_task),
    "a text of no file": Case(new("--require-text", "::hello"), "--require-text", arrange=no_task),
    "a path out of the workspace": Case(new("--require-path", "../x"), "../x", arrange=no_task),
    "a path from the root": Case(new("--require-path", "/etc/passwd"), "/etc/passwd", arrange=no_task),
    "a text out of the workspace": Case(new("--require-text", "../x::y"), "../x", arrange=no_task),
    "a blank stop command": Case(new("--stop-command", " "), "--stop-command", arrange=no_task),
    "no iterations": Case(new("--max-iterations", "0"), "--max-iterations", arrange=no_task),
    "iterations below none": Case(new("--max-iterations", "-3"), "--max-iterations", arrange=no_task),
    "iterations in words": Case(new("--max-iterations", "many"), "--max-iterations", arrange=no_task),
    "only dashes": Case(new("--task-id", "---"), "--task-id", arrange=no_task),
    "only signs": Case(new("--task-id", "?!/.."), "--task-id", arrange=no_task),
    "another mode": Case(new("--operating-mode", "both"), "--operating-mode", arrange=no_task),
    "another effort": Case(new("--supervisor-reasoning-effort", "max"), "effort", arrange=no_task),
    "no such state": Case(EVENT, "state.json", code=1, arrange=no_task),
    "no such state to supervise": Case(SUPERVISE, "state.json", code=1, arrange=no_task),
    "no such task": Case(("show-task", "--workspace-root", ".", "--task-id", "none"), "none", code=1),
    "no task here": Case(("report-status",), "init-state", code=1, arrange=no_task),
    "no JSON": Case(EVENT, "state.json", code=1, arrange=instead(b"not json")),
    "another program's JSON": Case(UPDATE, "state.json", code=1, arrange=instead(b'{"meta": {}}')),
    "binary": Case(SUPERVISE, "state.json", code=1, arrange=instead(bytes(range(256)))),
    "nested": Case(EVENT, "state.json", code=1, arrange=instead(b"[" * 100_000)),
    "50 MB": Case(EVENT, "state.json", arrange=huge),
    "a link": Case(EVENT, "state.json", code=1, arrange=a_link),
    "another task's state": Case(EVENT, "other", code=1, arrange=anothers),
    "the state of one task, the name of another": Case((*EVENT, "--task-id", "other"), "other"),
    "data without =": Case((*EVENT, "--data", "novalue"), "novalue"),
    "data without a name": Case((*EVENT, "--data", "=x"), "--data"),
    "a blank kind": Case((*EVENT[:4], " ", *EVENT[5:]), "--kind"),
    "a blank task": Case((*UPDATE[:4], " ", *UPDATE[5:]), "--task"),
    "another status": Case((*UPDATE, "--status", "nearly"), "--status"),
    "supervise an interactive task": Case(SUPERVISE, "interactive", 1, lambda strict: strict.init(mode="interactive")),
    "no cycles": Case((*SUPERVISE, "--max-cycles", "0"), "--max-cycles"),
    "sleep below none": Case((*SUPERVISE, "--sleep-seconds", "-1"), "--sleep-seconds"),
    "keep below none": Case(("compact-state", "--state", "STATE", "--keep-last", "-1"), "--keep-last"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_answered_with_what_why_and_what_to_do(strict: Strict, name: str) -> None:
    """S-022, S-045."""
    case = CASES[name]
    case.arrange(strict)
    before = tree_of(strict.home.root)
    ended = strict(*(str(strict.state_path) if word == "STATE" else word for word in case.words))
    assert (ended.code, ended.err.startswith("error: "), "Traceback" in ended.err) == (case.code, True, False), ended
    assert case.named in ended.err, ended
    assert "hint: " in ended.err, ended
    assert tree_of(strict.home.root) == before
    assert strict.prompts == []


def test_a_record_from_inside_another_loops_round_is_refused(strict: Strict) -> None:
    """S-033, S-046."""
    strict.init(task="other")
    other = strict.root / "tasks/other/state.json"
    words = ("--state", str(other), "--kind", "note", "--message", "from next door")
    event = shlex.join([sys.executable, str(SCRIPTS / "append_event.py"), *words])
    strict.plays({"sh": f"{event} 2> said.txt; echo $? > code.txt", "reply": "Tried it."})
    strict.init("--require-path", "code.txt")
    before = tree_of(other.parent)
    assert said(strict.supervise()).code == 0
    assert ((strict.repo / "code.txt").read_text(), is_error((strict.repo / "said.txt").read_text())) == ("2\n", True)
    assert tree_of(other.parent) == before


RUBBISH: dict[str, bytes] = {
    "no JSON": b"not json",
    "binary": bytes(range(256)) * 16,
    "nested": b"[" * 60_000,
    "huge": b'{"type": "event.recorded", "kind": "' + b"x" * 70_000 + b'"}',
    "another fact": b'{"type": "loop.stopped", "end": "complete", "reason": "because"}',
    "a fact of no kind": b'{"type": "loop.approved"}',
    "a list": b"[]",
    "empty": b"",
}


def test_what_is_no_record_in_the_drop_folder_is_put_aside_and_said_once(strict: Strict) -> None:
    """S-030, S-046: it can do nothing but record."""
    strict.init("--require-path", "done.txt")
    drop = strict.folder / "drop"
    drop.mkdir(exist_ok=True)
    for number, (name, data) in enumerate(RUBBISH.items()):
        (drop / f"{number + 1:019}-{name.replace(' ', '')}.json").write_bytes(data)
    (drop / "9-link.json").symlink_to(strict.repo / "README.md")
    os.mkfifo(drop / "9-pipe.json")
    first, second = (strict("list-tasks", "--workspace-root", str(strict.repo)) for _ in range(2))
    assert (first.code, second.code) == (0, 0), (first, second)
    assert (first.err.count("is not a record"), second.err) == (1, ""), (first, second)
    assert [path.name for path in drop.iterdir()] == ["bad"]
    assert (strict.repo / "README.md").read_text(), "the link was not followed"
    assert (strict.state["status"], strict.state["counters"]["iteration"]) == ("running", 0)
    assert strict.facts("event.recorded") == []


def test_the_same_record_twice_counts_once(strict: Strict) -> None:
    """S-030."""
    strict.init(mode="interactive")
    no_ledger = {"BYDAWN_STATE_DIR": str(strict.home.root / "nowhere/to/be/seen")}
    strict.home.root.joinpath("nowhere").write_text("a file: nothing can be written below it")
    dropped = strict.records(**no_ledger)
    assert (dropped.code, len(strict.waiting)) == (0, 1), dropped
    [name] = strict.waiting
    data = (strict.folder / "drop" / name).read_bytes()
    for other in (name, f"{int(name.partition('-')[0]) + 1:019}-{name.partition('-')[2]}"):
        (strict.folder / "drop" / other).write_bytes(data)
        assert strict("list-tasks", "--workspace-root", str(strict.repo)).code == 0
    assert (strict.waiting, len(strict.facts("iteration.recorded"))) == ([], 1)
    assert (len(strict.entries), strict.state["counters"]["iteration"]) == (1, 1)
    assert json.loads(strict.records().out)["iteration"] == 2


def test_a_sandbox_replaces_no_folder_of_a_task(strict: Strict) -> None:
    """S-030: neither one with the work of others in it, nor an earlier task of its own."""
    strict.home.root.joinpath("nowhere").write_text("a file: nothing can be written below it")
    strict.home.env["BYDAWN_STATE_DIR"] = str(strict.home.root / "nowhere/to/be/seen")
    strict.init(mode="interactive")
    kept = strict.repo / ".codex-loop/tasks/theirs"
    kept.mkdir()
    (kept / "notes.md").write_text("theirs")
    before = tree_of(strict.repo)
    for task in ("hail", "theirs"):
        refused = strict(*strict.new("--force", mode="interactive", task=task))
        assert (refused.code, f"{task} is taken" in refused.err) == (1, True), refused
    assert tree_of(strict.repo) == before
