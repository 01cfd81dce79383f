"""codex-loop: what `events`, `sessions`, `snapshots` and `health` say about a project."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, HookEnded
from bydawn.core.history import EVENTS_KEPT
from bydawn.core.rules import Rule
from bydawn.core.values import End, TaskClaim, TaskStatus
from bydawn.dialects.codex_loop.config import METRICS
from bydawn.dialects.codex_loop.document import Document, Meta, Ours
from bydawn.dialects.codex_loop.events import Wanted, period, snapshot_line
from bydawn.dialects.codex_loop.metrics import metrics_of
from bydawn.operations.dialects.codex_loop import reports
from bydawn.operations.dialects.codex_loop.reports import health, write_report
from bydawn.store import watches
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import Damaged, LoopLedger, backwards, records
from bydawn.store.lock import Lock
from bydawn.store.registry import Registry
from core.facts_made import a_note, a_round, run_started, started
from dialects.codex_loop_made import COMPLETE, PREPARATION, begun, settled, stop
from operations.codex_loop_project import DOCS, LEXER, PARSER, Project

KEY = "sk-proj-" + "a1B2" * 10
BLOCKED = stop(End.BLOCKED, Rule.NO_PROGRESS, "5 rounds in a row made no new change")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    (tmp_path / "shop").mkdir()
    return Project(tmp_path / "shop").configured()


def an_iteration(number: int, task: str = LEXER, claim: str | None = "in-progress", **more: Any) -> list[AnyFact]:
    said = {"said": f"Number {number}.", "claim": TaskClaim(status=claim)} if claim else {}
    return a_round(number, task_id=task, **{**said, "session": f"s-{task}", **more})


def hook(name: str, number: int, command: str = "make it", *, passed: bool = True) -> HookEnded:
    return HookEnded(hook=name, round=number, passed=passed, detail="exit 1", elapsed=1.0, command=command)


# -- events ------------------------------------------------------------------------------------------------------------


def labels(project: Project, **asked: Any) -> list[str]:
    found = reports.events(project.root, Wanted(**{"limit": 20} | asked)).rows
    return [f"{row.iteration} {row.label}" for row in found]


WITH_HOOKS = [
    hook("pre_round", 1),
    *an_iteration(1),
    hook("post_round", 1),
    hook("pre_round", 2, passed=False),
    *an_iteration(2, PARSER, "done"),
    hook("post_round", 2, command=f"curl -H 'Bearer {KEY}'"),
    settled(PARSER, TaskStatus.DONE),
    hook("on_blocked", 2),
    BLOCKED,
]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (
            {},
            [
                "1 hook:pre_iteration",
                "1 iteration:continue",
                "1 hook:post_iteration",
                "2 hook:pre_iteration",
                "2 iteration:complete",
                "2 hook:post_iteration",
                "2 hook:on_blocked",
                "2 blocked:no_progress_limit",
            ],
        ),
        ({"limit": 3}, ["2 hook:post_iteration", "2 hook:on_blocked", "2 blocked:no_progress_limit"]),
        ({"limit": 1, "event_type": "hook"}, ["2 hook:on_blocked"]),
        ({"event_type": "hook:pre_iteration"}, ["1 hook:pre_iteration", "2 hook:pre_iteration"]),
        ({"event_type": "iteration"}, ["1 iteration:continue", "2 iteration:complete"]),
        ({"task_id": LEXER}, ["1 hook:pre_iteration", "1 iteration:continue", "1 hook:post_iteration"]),
        ({"task_id": DOCS}, []),
        ({"period": period(None, "2026-01-06T12:00:03Z")}, ["1 hook:pre_iteration"]),
        ({"period": period("2026-01-06T13:00:12+01:00", None)}, ["2 hook:on_blocked", "2 blocked:no_progress_limit"]),
    ],
)
def test_events_are_iterations_what_came_between_and_hooks_in_order(
    project: Project, asked: dict[str, Any], found: list[str]
) -> None:
    """C-014, C-064"""
    project.has(*WITH_HOOKS)
    assert labels(project, **asked) == found


def test_an_iteration_that_runs_now_has_its_hooks_and_its_task(project: Project) -> None:
    project.has(*an_iteration(1), hook("pre_round", 2), started(2, task_id=PARSER))
    [row] = reports.events(project.root, Wanted(limit=9, task_id=PARSER)).rows
    assert (row.label, row.iteration) == ("hook:pre_iteration", 2)


def test_no_secret_and_no_escape_leaves_with_an_event(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is secret now may not have been when it was recorded."""
    monkeypatch.setenv("SHOP_TOKEN", "correct-horse-battery")
    project.has(
        *an_iteration(1, said=f"\x1b[2Jused correct-horse-battery and {KEY}"), hook("post_round", 1, f"a {KEY}")
    )
    told = msgspec.json.encode(reports.events(project.root, Wanted(limit=9)).rows).decode()
    assert KEY not in told and "horse" not in told and "\\u001b" not in told
    assert told.count("[secret]") == 3


def test_who_asks_for_more_than_is_kept_is_told(project: Project) -> None:
    many = [fact for number in range(1, EVENTS_KEPT + 2) for fact in an_iteration(number)]
    project.has(*many)
    asked: list[tuple[dict[str, Any], bool]] = [
        ({"limit": 20}, False),
        ({"limit": 600}, True),
        ({"limit": 20, "event_type": "blocked"}, True),
        ({"limit": 600, "period": period("2026-01-06T12:10Z", None)}, False),
        ({"limit": 600, "period": period("2026-01-06T12:00Z", None)}, True),
    ]
    for given, is_told in asked:
        remark = reports.events(project.root, Wanted(**given)).remark
        assert ("only the last 500 entries are kept here" in remark) is is_told, given
    assert len(labels(project, limit=600)) == EVENTS_KEPT


def test_a_task_that_there_is_not_is_refused_and_one_with_a_file_is_known(project: Project) -> None:
    project.has(*an_iteration(1, "000-gone"))
    assert labels(project, task_id=DOCS) == []
    with pytest.raises(UserError, match="there is no task '9'") as refused:
        labels(project, task_id="9")
    assert refused.value.cause == f"the tasks are: {LEXER}, {PARSER}, {DOCS}, 000-gone"


def test_the_number_of_events_comes_from_the_configuration_if_that_can_be_read(project: Project) -> None:
    assert reports.default_limit(project.root) == (20, "")
    project.configured(operator={"events": {"default_limit": 3}})
    assert reports.default_limit(project.root) == (3, "")
    project.write("codex-loop.yaml", "version: [")
    limit, remark = reports.default_limit(project.root)
    assert limit == 20 and remark.endswith("the last 20 are shown")


# -- the ledger from its end -------------------------------------------------------------------------------------------


def a_ledger(folder: Path, *facts: AnyFact) -> LoopFolder:
    place = LoopFolder(folder)
    ledger = LoopLedger(place, print, str)
    for fact in facts:
        ledger.append(fact)
    ledger.snapshot()
    ledger.close()
    return place


def test_read_from_its_end_a_ledger_has_the_same_facts(tmp_path: Path) -> None:
    long = [a_note(str(size), "x" * size) for size in (1, 70_000, 64, 0, 65_536, 200_000)]
    place = a_ledger(tmp_path, run_started(), *long, *[a_note(str(number)) for number in range(2_000)])
    assert [*backwards(place)][::-1] == [*records(place)]
    assert [*backwards(LoopFolder(tmp_path / "none"))] == []


def test_only_what_is_asked_for_is_read_and_nothing_damaged_is_believed(tmp_path: Path) -> None:
    place = a_ledger(tmp_path, run_started(), *[a_note(str(number)) for number in range(2_000)])
    text = place.ledger.read_bytes()
    place.ledger.write_bytes(text.replace(b'"note":"3"', b'"note":"4"'))
    assert next(iter(backwards(place))).seq == 2_001
    with pytest.raises(Damaged, match="at line 5"):
        [*backwards(place)]


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_each_task_has_its_session_and_the_latest_is_the_one_worked_on_last(project: Project) -> None:
    """C-014, C-064"""
    project.has(begun(LEXER, PARSER, DOCS), *an_iteration(1), *an_iteration(2, PARSER), *an_iteration(3))
    found = reports.sessions(project.root, None, latest=False)
    assert [(row.task_id, row.iterations, row.last_iteration) for row in found] == [
        (LEXER, 2, 3),
        (PARSER, 1, 2),
        (DOCS, 0, None),
    ]
    assert [row.task_id for row in reports.sessions(project.root, None, latest=True)] == [LEXER]
    assert [row.task_id for row in reports.sessions(project.root, PARSER, latest=False)] == [PARSER]


def test_before_anything_has_run_there_is_no_latest_session(project: Project) -> None:
    with pytest.raises(UserError, match="nothing has run here yet"):
        reports.sessions(project.root, None, latest=False)
    project.has(PREPARATION, runs=False)
    with pytest.raises(UserError, match="no task has a session yet"):
        reports.sessions(project.root, None, latest=True)


# -- snapshots ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def worked_on(project: Project) -> Project:
    """Two tasks; the second is up, and its last iteration was cut before it answered."""
    project.has(
        begun(LEXER, PARSER),
        *an_iteration(1, claim="done"),
        settled(LEXER, TaskStatus.DONE),
        *an_iteration(2, PARSER, said=f"used {KEY}"),
        *an_iteration(3, PARSER, claim=None),
    )
    return project


def test_a_snapshot_is_what_an_iteration_left(worked_on: Project) -> None:
    """C-014, C-064"""
    root = worked_on.root
    lines = [snapshot_line(each).split("  ") for each in reports.snapshots(root, None, None)]
    assert [line[1:5] for line in lines] == [
        ["iteration 1", LEXER, "complete", "no change"],
        ["iteration 2", PARSER, "continue", "no change"],
        ["iteration 3", PARSER, "iteration", "no change"],
    ]
    assert [each.iteration for each in reports.snapshots(root, PARSER, None)] == [2, 3]
    assert [each.iteration for each in reports.snapshots(root, None, 2)] == [2, 3]
    assert reports.snapshot(root, 2).summary == "used [secret]"
    with pytest.raises(UserError, match="there is no snapshot 4") as refused:
        reports.snapshot(root, 4)
    assert refused.value.cause == "1 to 3 are kept"
    with pytest.raises(UserError, match="there is no task '9'"):
        reports.snapshots(root, "9", None)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("folder", "is not a regular file"),
        ("no/file", "there is no folder"),
        ("pipe", "is not a regular file"),
        ("file/below", "there is no folder"),
    ],
)
def test_a_report_goes_to_a_file_whole_or_not_at_all(tmp_path: Path, path: str, what: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    write_report(tmp_path / "file", "one\n")
    write_report(tmp_path / "file", "two\n")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UserError, match=what) as refused:
        write_report(tmp_path / path, "three\n")
    assert refused.value.cause and refused.value.hint
    assert (tmp_path / "file").read_text() == "two\n"
    assert sorted(tmp_path.iterdir()) == before


# -- health ------------------------------------------------------------------------------------------------------------


def looked(project: Project) -> tuple[str, tuple[str, ...]]:
    found = health(project.root, 20)
    return found.health, found.problems


@contextmanager
def running(project: Project, heartbeat_age: float = 1.0) -> Iterator[None]:
    (project.folder / "heartbeat").touch()
    os.utime(project.folder / "heartbeat", (time.time() - heartbeat_age,) * 2)
    lock = Lock.take(project.folder / "lock")
    yield
    lock.release()


@pytest.mark.parametrize(
    ("facts", "is_running", "answer", "problem"),
    [
        ([*an_iteration(1), COMPLETE], False, "ok", ""),
        ([started(1, task_id=LEXER)], True, "ok", ""),
        ([*an_iteration(1), BLOCKED], False, "degraded", "blocked by no_progress_limit: 5 iterations in a row"),
        ([started(1, task_id=LEXER)], False, "degraded", "blocked by interrupted: the process that ran it died"),
        (
            [
                *an_iteration(1),
                settled(LEXER, TaskStatus.ASIDE, Rule.AGENT_BLOCKED, "a key"),
                started(2, task_id=PARSER),
            ],
            True,
            "degraded",
            f"{LEXER} is blocked by agent_blocked: a key",
        ),
        (
            [*an_iteration(1), stop(End.FAILED, Rule.RESTARTS, "its process died 11 times")],
            False,
            "degraded",
            "blocked by watchdog_exhausted: its process died 11 times",
        ),
    ],
)
def test_a_project_is_well_until_it_needs_a_person(
    project: Project, facts: list[AnyFact], is_running: bool, answer: str, problem: str
) -> None:
    """C-014, C-062"""
    project.has(*facts)
    if is_running:
        with running(project):
            found = looked(project)
    else:
        found = looked(project)
    assert found[0] == answer
    assert [text.startswith(problem) for text in found[1]] == ([True] if problem else [])


def test_a_run_that_gives_no_sign_of_life_needs_a_person(project: Project) -> None:
    """C-062"""
    project.has(started(1, task_id=LEXER))
    with running(project, heartbeat_age=290):
        assert looked(project) == ("ok", ())
    with running(project, heartbeat_age=330):
        found = health(project.root, 20)
    assert found.health == "degraded"
    [problem] = found.problems
    assert problem.startswith("the run has given no sign of life for 5 m 3")


def test_what_cannot_be_read_is_an_error(project: Project, tmp_path: Path) -> None:
    """C-062: no folder, nothing set up, a wrong configuration, a damaged record."""
    assert health(tmp_path / "gone", 20).health == "error"
    assert looked(project) == ("ok", ())  # set up, and nothing has run
    project.has(PREPARATION, runs=False)
    assert looked(project) == ("ok", ())
    (project.folder / "loop.json").unlink()
    (project.root / "codex-loop.yaml").unlink()
    assert looked(project)[1][0].startswith("codex-loop.yaml is missing")
    project.write("codex-loop.yaml", "version: 9\n")
    project.has(*an_iteration(1), COMPLETE)
    assert looked(project)[0] == "error"
    project.configured()
    ledger = project.folder / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"round":1', b'"round":2', 1))
    answer, problems = looked(project)
    assert answer == "error" and "is damaged at line 3" in problems[0]


def test_who_watches_a_project_is_named(project: Project) -> None:
    project.has(*an_iteration(1), COMPLETE)
    assert health(project.root, 20).watchdog is None
    for workspace, kind, line in ((None, "service", "service of all loops"), (project.root, "daemon", "daemon")):
        watches.take(Registry(), workspace, kind)
        watchdog = health(project.root, 20).watchdog
        assert watchdog == f"{line} (pid {os.getpid()})"


# -- all of them -------------------------------------------------------------------------------------------------------


def test_a_project_that_cannot_be_written_can_be_read(worked_on: Project) -> None:
    """Nothing is written there, so its permissions do not matter."""

    def every() -> dict[str, tuple[int, int]]:
        found = (path for folder in (worked_on.root, worked_on.folder) for path in (folder, *folder.rglob("*")))
        return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in found}

    before = every()
    for path in (worked_on.root, worked_on.root / "tasks"):
        path.chmod(0o555)
    try:
        assert labels(worked_on)
        assert reports.sessions(worked_on.root, None, latest=False)
        assert reports.snapshots(worked_on.root, None, None)
        assert looked(worked_on)[0] == "degraded"
    finally:
        for path in (worked_on.root, worked_on.root / "tasks"):
            path.chmod(0o755)
    assert every() == before


def test_the_page_has_every_number() -> None:
    """C-016"""
    page = (ROOT / "docs/codex-loop.md").read_text()
    assert METRICS.rpartition("/")[2] in page
    document = Document(meta=Meta(), bydawn=Ours(loop="night", uid="u-1", seq=1))
    assert [name for name in metrics_of(document) if f"`{name}`" not in page] == []
