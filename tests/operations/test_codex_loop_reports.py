"""codex-loop: what `events`, `sessions`, `evidence`, `snapshots` and `health` say about a project."""

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
from bydawn.dialects.codex_loop.events import Wanted
from bydawn.dialects.codex_loop.metrics import Metrics
from bydawn.dialects.codex_loop.period import period
from bydawn.operations.dialects.codex_loop import reports
from bydawn.operations.dialects.codex_loop.evidence import Lengths, collect, collected, evidence, write_report
from bydawn.operations.dialects.codex_loop.health import health
from bydawn.store import watches
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import Damaged, LoopLedger, backwards, records
from bydawn.store.lock import Lock
from bydawn.store.registry import Registry
from bydawn.system import shared_file
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
    assert [(row.task_id, row.iterations, row.last_iteration) for row in found.tasks] == [
        (LEXER, 2, 3),
        (PARSER, 1, 2),
        (DOCS, 0, None),
    ]
    assert (found.current_task, found.latest_task) == (LEXER, LEXER)
    assert [row.task_id for row in reports.sessions(project.root, None, latest=True).tasks] == [LEXER]
    assert [row.task_id for row in reports.sessions(project.root, PARSER, latest=False).tasks] == [PARSER]


def test_before_anything_has_run_there_is_no_latest_session(project: Project) -> None:
    with pytest.raises(UserError, match="nothing has run here yet"):
        reports.sessions(project.root, None, latest=False)
    project.has(PREPARATION, runs=False)
    with pytest.raises(UserError, match="no task has a session yet"):
        reports.sessions(project.root, None, latest=True)


# -- evidence ----------------------------------------------------------------------------------------------------------


def bundle(project: Project, task: str | None = None, *, latest: bool = False, **lengths: int) -> dict[str, Any]:
    return dict(msgspec.to_builtins(evidence(project.root, task, Lengths(**lengths), latest=latest)))


@pytest.fixture
def worked_on(project: Project) -> Project:
    """Two tasks; the second is up, and its last iteration was cut before it answered."""
    cut = an_iteration(3, PARSER, claim=None)
    project.has(
        begun(LEXER, PARSER),
        *an_iteration(1, claim="done"),
        settled(LEXER, TaskStatus.DONE),
        *an_iteration(2, PARSER),
        *cut,
    )
    for number in (1, 2, 3):
        project.printed(number, "".join(f'{{"n":{each}}}\n' for each in range(number * 10)))
        project.printed(number, f"You.\nDo {number}.\nKEY={KEY}\n", "prompt.md")
    project.printed(1, '{"status": "complete"}', "reply.md")
    project.printed(2, f'{{"status": "continue", "blockers": ["{KEY}"]}}', "reply.md")
    return project


def test_evidence_is_what_someone_else_needs_to_know_about_a_task(worked_on: Project) -> None:
    """C-064"""
    found = bundle(worked_on, prompt=2, log=2, events=1)
    assert (found["task_id"], found["selection"], found["session_id"]) == (PARSER, "current_task", f"s-{PARSER}")
    assert (found["prompt_preview"], found["log_tail"]) == ("You.\nDo 3.", '{"n":28}\n{"n":29}')
    assert [row["iteration"] for row in found["recent_events"]] == [3]
    assert found["run_payload"] == {"status": "continue", "blockers": ["[secret]"]}, "the last that there is"
    assert found["overall_status"] == "blocked" and found["last_blocker"]["code"] == "interrupted"
    assert KEY not in msgspec.json.encode(bundle(worked_on)).decode()
    assert bundle(worked_on)["prompt_preview"].splitlines()[2] == "KEY=[secret]"


def test_evidence_is_about_the_task_that_is_meant(worked_on: Project) -> None:
    named = bundle(worked_on, LEXER, events=0)
    assert (named["task_id"], named["selection"], named["recent_events"]) == (LEXER, "task_id", ())
    assert named["run_payload"] == {"status": "complete"}
    assert bundle(worked_on, latest=True)["task_id"] == PARSER
    unknown = bundle(worked_on, DOCS)
    assert (unknown["session_snapshot"]["iterations"], unknown["prompt_preview"], unknown["run_payload"]) == (
        0,
        None,
        None,
    )


def test_without_its_output_the_rest_is_still_evidence(worked_on: Project) -> None:
    for name in ("prompt.md", "stdout"):
        (worked_on.folder / f"rounds/0003/{name}").unlink()
    found = bundle(worked_on, prompt=0, log=0)
    assert (found["prompt_preview"], found["log_tail"]) == (None, None)
    assert found["recent_events"]


def test_what_is_collected_is_in_the_index_and_two_at_once_lose_nothing(
    worked_on: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-014"""
    monkeypatch.setattr(shared_file, "PATIENCE", 60.0)  # on a busy machine eight have to wait for each other
    found, folder = evidence(worked_on.root, LEXER, Lengths(), latest=False), tmp_path / "kept"
    with ThreadPoolExecutor(8) as pool:
        paths = [*pool.map(lambda _: collect(folder, found), range(24))]
    assert len({*paths}) == 24
    listed = collected(folder)
    assert sorted(each.snapshot_path for each in listed) == sorted(map(str, paths))
    assert {(each.task_id, each.overall_status, each.last_blocker_code) for each in listed} == {
        (LEXER, "blocked", "interrupted")
    }
    assert json.loads(paths[0].read_text())["task_id"] == LEXER
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".json") == [".index.lock"]


def test_the_index_keeps_what_others_wrote_and_a_broken_one_is_never_overwritten(
    worked_on: Project, tmp_path: Path
) -> None:
    found = evidence(worked_on.root, LEXER, Lengths(), latest=False)
    theirs = {
        "generated_at": "2025-01-01T00:00:00+00:00",
        "task_id": "x",
        "more": [1],
        "snapshot_path": "/elsewhere/x.json",
    }
    (tmp_path / "index.json").write_text(json.dumps({"snapshots": [theirs], "by": "them"}))
    collect(tmp_path, found)
    index = json.loads((tmp_path / "index.json").read_text())
    assert (index["by"], index["snapshots"][0], len(index["snapshots"])) == ("them", theirs, 2)
    assert collected(tmp_path)[0].snapshot_path == "/elsewhere/x.json"
    (tmp_path / "index.json").write_text('{"snapshots": [')
    before = sorted(tmp_path.iterdir())
    for work in (lambda: collect(tmp_path, found), lambda: collected(tmp_path)):
        with pytest.raises(UserError, match=r"index\.json cannot be read") as refused:
            work()
        assert refused.value.hint
    assert (tmp_path / "index.json").read_text() == '{"snapshots": ['
    assert sorted(tmp_path.iterdir()) == before


def _a_file(place: Path) -> Path:
    (place / "file").write_text("mine")
    return place / "file"


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (_a_file, "is not a folder"),
        (lambda place: place / "no/such", "nothing can be written to"),
    ],
)
def test_a_folder_that_cannot_be_written_is_refused(
    worked_on: Project, tmp_path: Path, made: Callable[[Path], Path], what: str
) -> None:
    found = evidence(worked_on.root, LEXER, Lengths(), latest=False)
    with pytest.raises(UserError, match=what) as refused:
        collect(made(tmp_path), found)
    assert refused.value.cause and refused.value.hint


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("folder", "is a folder"),
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


def looked(project: Project, snapshot_dir: Path | None = None) -> tuple[str, tuple[str, ...]]:
    found = health(project.root, 20, snapshot_dir)
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
        found = health(project.root, 20, None)
    assert (found.health, found.running) == ("degraded", True)
    [problem] = found.problems
    assert problem.startswith("the run has given no sign of life for 5 m 3")
    assert found.heartbeat_age_seconds and 330 <= found.heartbeat_age_seconds < 340


def test_what_cannot_be_read_is_an_error(project: Project, tmp_path: Path) -> None:
    """C-062: no folder, nothing set up, a wrong configuration, a damaged record."""
    assert health(tmp_path / "gone", 20, None).health == "error"
    assert looked(project) == ("ok", ())  # set up, and nothing has run
    project.has(PREPARATION, runs=False)
    assert looked(project) == ("ok", ())
    (project.folder / "loop.json").unlink()
    (project.root / "codex-loop.yaml").unlink()
    assert looked(project)[1][0].startswith("codex-loop.yaml is missing")
    project.write("codex-loop.yaml", "version: 9\n")
    project.has(*an_iteration(1), COMPLETE)
    found = health(project.root, 20, None)
    assert (found.health, found.overall_status) == ("error", "completed")
    project.configured()
    ledger = project.folder / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"round":1', b'"round":2', 1))
    answer, problems = looked(project)
    assert answer == "error" and "is damaged at line 3" in problems[0]


def test_who_watches_a_project_is_named(project: Project) -> None:
    project.has(*an_iteration(1), COMPLETE)
    assert health(project.root, 20, None).watchdog is None
    for workspace, kind, line in ((None, "service", "service of all loops"), (project.root, "daemon", "daemon")):
        watches.take(Registry(), workspace, kind)
        watchdog = health(project.root, 20, None).watchdog
        assert watchdog and watchdog.line == f"{line} (pid {os.getpid()})"


def test_collected_evidence_is_counted_and_a_broken_index_is_a_problem(worked_on: Project, tmp_path: Path) -> None:
    assert health(worked_on.root, 20, None).snapshots is None
    collect(worked_on.root / "snapshots", evidence(worked_on.root, LEXER, Lengths(), latest=False))
    found = health(worked_on.root, 20, None).snapshots
    assert found and found.total_snapshots == 1
    worked_on.write("snapshots/index.json", "{")
    answer, problems = looked(worked_on)
    assert (answer, len(problems)) == ("degraded", 2)
    assert "index.json cannot be read" in problems[0]
    with pytest.raises(UserError, match="there are no snapshots in"):
        looked(worked_on, tmp_path / "gone")


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
        assert reports.sessions(worked_on.root, None, latest=False).tasks
        assert bundle(worked_on)
        assert looked(worked_on)[0] == "degraded"
    finally:
        for path in (worked_on.root, worked_on.root / "tasks"):
            path.chmod(0o755)
    assert every() == before


def test_the_page_has_every_number() -> None:
    """C-016"""
    page = (ROOT / "docs/codex-loop.md").read_text()
    assert METRICS.rpartition("/")[2] in page
    assert [name for name in Metrics.__struct_fields__ if f"`{name}`" not in page] == []
