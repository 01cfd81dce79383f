"""The API says what `--json` says, and does what the commands do."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from bydawn.cli.program import bydawn
from bydawn.operations.leftovers import with_leftovers
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Registry
from bydawn.system import kernel
from bydawn.web import api
from bydawn.web.acts import Expecting
from bydawn.web.calls import Route
from driving import Fact, ledger_of, tree_of
from operations.stories import STORIES, home_of
from web.serving import LOOK, Web, serving

AGES = ("last_output_age_s",)  # another one each time it is asked for
OWN = ("id", "note", "request", "at", "elapsed", "crc")  # what no two requests have in common
RUN = [name for name, story in STORIES.items() if story.runs]


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("BYDAWN", "XDG", "CODEX", "OPENAI", "COLUMNS"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path / "page", "blocked", "question", "folder", "crashed", "stopped", "complete") as found:
        yield found


def typed(root: Path, *words: str) -> str:
    """What a command prints."""
    done = CliRunner().invoke(bydawn, [*words, "--state-dir", str(root / "state")], catch_exceptions=False)
    assert done.exit_code in (0, 2, 3), done.output  # health says with its code how things are
    return done.output


def without(value: Any, names: tuple[str, ...] = AGES) -> Any:
    if isinstance(value, dict):
        return {name: without(part, names) for name, part in value.items() if name not in names}
    return [without(part, names) for part in value] if isinstance(value, list) else value


def folder_of(root: Path, name: str) -> Path:
    return home_of(root, name) / name


def facts(root: Path, name: str) -> list[Fact]:
    return ledger_of(folder_of(root, name))


# -- looking -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/api/loops", "status"),
        ("/api/loops?all=1", "status --all"),
        ("/api/metrics", "metrics"),
        ("/api/health", "health"),
    ],
)
def test_the_api_says_of_all_loops_what_the_command_says(everything: Web, path: str, words: str) -> None:
    told, printed = everything.get(path).json, json.loads(typed(everything.root, *words.split(), "--json"))
    assert without(told) == without(printed)
    assert told["schema"] == 1


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize(("path", "words"), [("", "show"), ("/why", "why"), ("/tasks", "tasks list")])
def test_the_api_says_of_a_loop_what_the_command_says(everything: Web, name: str, path: str, words: str) -> None:
    answer = everything.get(f"/api/loops/{name}{path}", token=LOOK)
    assert without(answer.json) == without(json.loads(typed(everything.root, *words.split(), name, "--json")))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")


@pytest.mark.parametrize("name", RUN)
def test_a_round_is_the_one_that_show_has(everything: Web, name: str) -> None:
    shown = json.loads(typed(everything.root, "show", name, "--json"))["rounds"]
    assert shown
    for row in shown:
        found = everything.get(f"/api/loops/{name}/rounds/{row['round']}").json
        assert found == {"schema": 1, **row}


@pytest.mark.parametrize("name", STORIES)
def test_events_are_those_of_the_command_page_by_page(everything: Web, name: str) -> None:
    printed = [json.loads(line) for line in typed(everything.root, "events", name, "--json").splitlines()]
    told: list[Any] = []
    while rows := everything.get(f"/api/loops/{name}/events?after={len(told)}&limit=3").json["events"]:
        assert len(rows) <= 3
        told += rows
    assert [{"schema": 1, **row} for row in told] == printed
    assert everything.get(f"/api/loops/{name}/events").json["events"] == told


def test_a_log_has_the_lines_that_the_command_prints(tmp_path: Path) -> None:
    """Numbers, moments and words, those of stderr of a round that failed, and the secrets of neither."""
    with serving(tmp_path, "running", "folder") as web:
        for name, number, said in (("running", 2, "half way"), ("folder", 1, "cannot go on")):
            place = LoopFolder(folder_of(web.root, name)).round(number)
            place.mkdir(parents=True)
            rows = [{"type": "message", "text": f"{said}, part {part}"} for part in range(1, 9)]
            key = {"type": "message", "text": "the key is sk-proj-1234567890abcdefghijKLMN"}
            (place / "stdout").write_text("".join(json.dumps(row) + "\n" for row in [*rows, key]))
            (place / "stderr").write_text("boom\n")
            (place / "prompt.md").write_text("go on")
            printed = [
                {field: row[field] for field in ("event", "line", "at", "text")}
                for row in map(json.loads, typed(web.root, "logs", name, "--json").splitlines())
            ]
            log = web.get(f"/api/loops/{name}/log?round={number}").json
            assert [{field: row[field] for field in printed[0]} for row in log["rows"]] == printed
            assert len(printed) == (10 if name == "folder" else 9)
            assert "sk-proj" not in str(log)
            assert log["is_open"] is (name == "running")
        part = web.get("/api/loops/running/log?from=3&lines=2").json
        assert [row["line"] for row in part["rows"]] == [3, 4]
        assert (part["lines_before"], part["lines_after"]) == (True, True)
        found = web.get("/api/loops/folder/log?q=PART%206").json
        assert [row["line"] for row in found["rows"] if row["hit"]] == [6] == found["hit_lines"]


def test_what_crashed_left_running_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `status` and `show` do: an agent whose loop has died may still cost money."""
    monkeypatch.setattr("bydawn.store.lock.trace_of", lambda *_: "a trace")
    monkeypatch.setattr(kernel, "left_of", lambda traces: [[os.getpid()] for _ in traces])
    with serving(tmp_path, "crashed") as web:
        [standing] = with_leftovers(Registry(web.root / "state").everywhere())
        [left] = standing.left
        row = {"pid": left.pid, "command": left.command}
        assert web.get("/api/loops/crashed").json["left_running"] == [row]
        assert web.get("/api/loops").json["loops"][0]["left_running"] == [row]


# -- steering ----------------------------------------------------------------------------------------------------------


class Verb(NamedTuple):
    """What a program sends, and what a person types for the same."""

    story: str
    path: str
    body: dict[str, Any]
    words: list[str]
    state: str


VERBS = [
    Verb("blocked", "tell", {"text": "round half up"}, ["tell", "blocked", "round half up"], "blocked"),
    Verb("crashed", "pause", {}, ["pause", "crashed"], "paused"),
    Verb("crashed", "pause", {"now": True}, ["pause", "crashed", "--now"], "paused"),
    Verb("blocked", "pause", {}, ["pause", "blocked"], "blocked"),  # which is so already
    Verb("blocked", "stop", {}, ["stop", "blocked"], "stopped"),
    Verb("crashed", "stop", {"now": False}, ["stop", "crashed", "--after-round"], "stopped"),
    Verb("question", "skip", {"task": "3"}, ["tasks", "skip", "question", "3"], "blocked"),
    Verb("question", "skip", {"task": "three"}, ["tasks", "skip", "question", "three"], "blocked"),
    Verb("folder", "reopen", {"task": "a"}, ["tasks", "reopen", "folder", "a"], "blocked"),
    Verb("folder", "reopen", {"task": "b"}, ["tasks", "reopen", "folder", "b"], "blocked"),  # it is open
    Verb("blocked", "tasks", {"text": "write docs"}, ["tasks", "add", "blocked", "write docs"], "blocked"),
    Verb("folder", "tasks", {"text": "write docs"}, ["tasks", "add", "folder", "write docs"], "blocked"),
    Verb("stopped", "dismiss", {}, ["dismiss", "stopped"], "stopped"),
    Verb("complete", "dismiss", {}, ["dismiss", "complete"], "complete"),
]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: f"{verb.path} {verb.story} {verb.body}")
def test_a_verb_does_what_the_command_does(tmp_path: Path, verb: Verb) -> None:
    """Two equal loops, one steered by a program and one by a person: equal facts, equal files, the last fact told."""
    with serving(tmp_path / "page", verb.story) as web, serving(tmp_path / "typed", verb.story) as other:
        known = len(facts(web.root, verb.story))
        answer = web.post(f"/api/loops/{verb.story}/{verb.path}", verb.body)
        typed(other.root, *verb.words)
        done = facts(web.root, verb.story)
        assert (answer.status, answer.json["seq"], answer.json["state"]) == (202, done[-1]["seq"], verb.state)
        assert without(done[known:], OWN) == without(facts(other.root, verb.story)[known:], OWN)
        assert tree_of(web.root / "work") == tree_of(other.root / "work")
        assert web.get(f"/api/loops/{verb.story}").json["state"] == verb.state


def test_what_is_so_already_is_not_told_as_done(web: Web) -> None:
    assert web.post("/api/loops/blocked/pause").json["told"] == "blocked is already blocked."
    assert web.post("/api/loops/folder/skip", {"task": "a"}).json["told"] == "Skipped: “first” (it already was)."


def test_what_was_done_is_shown_at_once(web: Web) -> None:
    assert web.post("/api/loops/blocked/tell", {"text": "round half up"}).status == 202
    assert "round half up" in web.get("/api/loops/blocked").json["notes_waiting"]
    assert web.post("/api/loops/blocked/tasks", {"text": "write docs"}).status == 202
    assert [task["text"] for task in web.get("/api/loops/blocked/tasks").json["tasks"]][-1] == "write docs"
    assert web.post("/api/loops/blocked/skip", {"task": "write docs"}).status == 202
    assert web.get("/api/loops/blocked/tasks").json["tasks"][-1]["status"] == "skipped"
    assert web.post("/api/loops/blocked/dismiss").status == 202
    assert "blocked" not in [row["loop"] for row in web.get("/api/loops").json["loops"]]
    assert web.get("/api/loops/blocked").json["dismissed"] is True


@pytest.mark.parametrize(
    ("loop", "verb", "body"),
    [
        ("complete", "tell", {"text": "more"}),
        ("complete", "pause", {}),
        ("complete", "stop", {}),
        ("complete", "resume", {}),
        ("crashed", "dismiss", {}),
    ],
)
def test_what_the_state_of_a_loop_does_not_allow_is_409_and_says_why(
    web: Web, loop: str, verb: str, body: dict[str, Any]
) -> None:
    before = facts(web.root, loop)
    answer = web.post(f"/api/loops/{loop}/{verb}", body)
    assert answer.status == 409
    assert loop in answer.json["error"] and answer.json["hint"]
    assert facts(web.root, loop) == before


# -- a late tap --------------------------------------------------------------------------------------------------------

STEERS = [row for row in api.ROUTES if row.takes and issubclass(row.takes, Expecting)]
BODIES: dict[str, dict[str, Any]] = {
    "tell": {"text": "round half up"},
    "skip": {"task": "three"},
    "reopen": {"task": "three"},
    "tasks": {"text": "write docs"},
}


def word(row: Route) -> str:
    return row.path.rpartition("/")[2]


def test_every_verb_knows_a_late_tap() -> None:
    words = sorted(map(word, STEERS))
    assert words == ["accept", "approve", "dismiss", "pause", "reopen", "resume", "skip", "stop", "tasks", "tell"]


@pytest.mark.parametrize("row", STEERS, ids=word)
@pytest.mark.parametrize("story", ["blocked", "upgraded"])  # the one has stopped since, the other has started
def test_a_late_tap_is_refused_with_the_state_as_it_is_now(tmp_path: Path, row: Route, story: str) -> None:
    with serving(tmp_path, story) as web:
        before, shown = facts(web.root, story), web.get(f"/api/loops/{story}").json
        begun = max(fact["seq"] for fact in before if fact["type"] in ("run.started", "loop.stopped"))
        answer = web.post(f"/api/loops/{story}/{word(row)}", {**BODIES.get(word(row), {}), "expect_seq": begun - 1})
        assert answer.status == 409
        assert (answer.json["state"], answer.json["reason"]) == (shown["state"], shown["reason"])
        assert "too late" in answer.json["error"] and "nothing was done" in answer.json["cause"]
        assert facts(web.root, story) == before


def test_a_tap_that_is_not_late_is_done(web: Web) -> None:
    """The last fact that changes what a tap means is known to the caller; a note since then changes nothing."""
    known = facts(web.root, "blocked")
    stopped = next(fact["seq"] for fact in known if fact["type"] == "loop.stopped")
    assert stopped < known[-1]["seq"]
    for number, seq in enumerate((stopped, known[-1]["seq"], None)):
        answer = web.post("/api/loops/blocked/tell", {"text": f"note {number}", "expect_seq": seq})
        assert answer.status == 202
    assert len(facts(web.root, "blocked")) == len(known) + 3


def test_a_tap_that_knows_more_than_there_is_meant_another_loop(web: Web) -> None:
    """One of the same name, which is gone."""
    before = facts(web.root, "blocked")
    assert web.post("/api/loops/blocked/tell", {"text": "x", "expect_seq": 10**12}).status == 409
    assert facts(web.root, "blocked") == before


# -- documents ---------------------------------------------------------------------------------------------------------


def todo(web: Web) -> Path:
    return web.root / "work/blocked/TODO.md"


def put(web: Web, text: str, version: str) -> Any:
    return web.post("/api/loops/blocked/docs/todo", {"text": text}, method="PUT", if_match=version)


def test_a_document_is_read_changed_and_saved(web: Web) -> None:
    [listed] = web.get("/api/loops/blocked/docs").json["documents"]
    found = web.get("/api/loops/blocked/docs/todo").json
    assert (listed["key"], listed["path"], listed["editable"]) == ("todo", "TODO.md", True)
    assert {name: found[name] for name in listed} == listed
    assert found["text"] == todo(web).read_text()
    text = found["text"].replace("- [ ] three", "- [x] three")
    saved = put(web, text, found["version"])
    assert (saved.status, saved.json["changed"], saved.json["document"]["text"]) == (200, True, text)
    assert todo(web).read_text() == text
    again = put(web, text, f'"{saved.json["document"]["version"]}"')  # quoted, as HTTP writes it
    assert (again.status, again.json["changed"]) == (200, False)
    assert web.get("/api/loops/blocked/docs/todo").json["version"] == saved.json["document"]["version"]


def test_another_version_is_not_overwritten_and_both_texts_are_told(web: Web) -> None:
    found = web.get("/api/loops/blocked/docs/todo").json
    theirs = found["text"].replace("four", "four, by the agent")
    todo(web).write_text(theirs)
    yours = found["text"].replace("three", "three, by me")
    answer = put(web, yours, found["version"])
    assert answer.status == 412
    told = answer.json
    assert (told["base"], told["yours"], told["theirs"]) == (None, yours, theirs)
    assert told["version"] == told["document"]["version"] != found["version"]
    assert {(clash["yours"], clash["theirs"]) for clash in told["clashes"]} == {
        ("- [ ] three, by me", "- [ ] three"),
        ("- [ ] four", "- [ ] four, by the agent"),
    }
    assert todo(web).read_text() == theirs
    assert put(web, told["merged"], told["version"]).status == 200
    assert "by me" in todo(web).read_text() and "by the agent" in todo(web).read_text()


@pytest.mark.parametrize(
    ("version", "status"), [("", 400), ('""', 400), ("*", 412), ("none", 412), ("000000000000", 412)]
)
def test_no_version_or_a_made_up_one_saves_nothing(web: Web, version: str, status: int) -> None:
    before = todo(web).read_bytes()
    assert put(web, "- [ ] mine\n", version).status == status
    assert todo(web).read_bytes() == before


def test_a_list_that_loses_tasks_is_saved_with_a_warning(web: Web) -> None:
    """As `tasks edit` says it."""
    version = web.get("/api/loops/blocked/docs/todo").json["version"]
    saved = put(web, "nothing is left to do\n", version)
    assert saved.status == 200
    assert any("TODO.md" in warning for warning in saved.json["warnings"])
