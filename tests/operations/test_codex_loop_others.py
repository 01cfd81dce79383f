"""A project of another codex-loop is refused, and nothing of it is touched."""

import os
import subprocess
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.loop import SpokenDialect
from bydawn.dialects.codex_loop.config import Config
from bydawn.dialects.follower import digest_at
from bydawn.dialects.written import Written
from bydawn.operations import places
from bydawn.operations.dialects.codex_loop import others, running
from bydawn.store.ledger import encode
from bydawn.store.registry import Registry
from core.facts_made import BORN, NOON, a_loop, a_round, numbered, run_started
from driving import tree_of

ORIGINAL = (Path(__file__).parents[1] / "dialects/codex_loop/original/state.json").read_text()


class Project:
    """Three tasks, and what another program left there."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / ".codex-loop"
        for folder in (self.folder / "logs", root / "tasks"):
            folder.mkdir(parents=True)
        for name in ("001-lexer", "002-parser", "003-docs"):
            (root / f"tasks/{name}.md").write_text(f"# {name}\n\nDo it.\n")
        self.write(ORIGINAL)

    def write(self, text: str) -> None:
        (self.folder / "state.json").write_text(text)

    def refused(self) -> str:
        """The line that begins anew."""
        before = tree_of(self.root)
        with pytest.raises(UserError, match="begun") as refused:
            others.refuse_begun(self.root, "tasks")
        assert tree_of(self.root) == before
        return refused.value.hint.split("`")[1]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Project(tmp_path.resolve() / "shop")


def test_what_it_has_done_is_in_the_line_that_begins_anew_beside_it(project: Project) -> None:
    """C-003."""
    again = (
        "mkdir .codex-loop/before && mv .codex-loop/state.json .codex-loop/logs/ .codex-loop/before && codex-loop run"
    )
    assert project.refused() == f"{again} --done 001-lexer"
    for text in ('{"tasks": [1]}', '{"tasks": {"x; rm": {"status": "done"}}}', "[" * 9999, '{"skill_name": "x"}', ""):
        project.write(text)
        assert project.refused() == again, text
    subprocess.run(["sh", "-c", again.removesuffix("codex-loop run") + "true"], cwd=project.root, check=True)
    others.refuse_begun(project.root, "tasks")


def test_a_project_that_was_renamed_is_not_called_another_programs(project: Project) -> None:
    project.write(ORIGINAL.replace("{", '{"bydawn": {"uid": "gone"},', 1))
    with pytest.raises(UserError, match="was begun in another folder") as refused:
        others.refuse_begun(project.root, "tasks")
    assert refused.value.hint.startswith("if it was renamed, rename it back; or start from scratch here")


def test_what_a_person_calls_done_is_known_by_its_id_or_by_its_number(project: Project) -> None:
    (project.root / "tasks/002-parser-again.md").write_text("# more\n")
    found = running.done_by_hand(project.root, Config(), ["001", "002-parser"])
    assert [(fact.task, fact.status) for fact in found] == [("001-lexer", "done"), ("002-parser", "done")]
    for word, told in (("002", "'002' could be several tasks"), ("9", "there is no task '9'")):
        with pytest.raises(UserError, match=told):
            running.done_by_hand(project.root, Config(), [word])


def test_what_a_loop_of_ours_wrote_is_no_reason(project: Project) -> None:
    """Unless there is no record of that loop any more."""
    project.write(ORIGINAL.replace('"meta"', '"bydawn": {"loop": "shop", "uid": "u-1", "seq": 9},\n"meta"', 1))
    (lock := project.root / ".codex-loop/run.lock").write_text(f'{{"pid": {os.getpid()}}}')
    assert project.refused()
    folder = Registry().home(project.root) / "shop"
    folder.mkdir(parents=True)
    (folder / "loop.json").write_bytes(msgspec.json.encode(a_loop(id="shop", uid="u-1", workspace=str(project.root))))
    (folder / "ledger.jsonl").write_bytes(b"".join(map(encode, numbered([BORN]))))
    others.refuse_begun(project.root, "tasks")
    Written(folder).note({".codex-loop/run.lock": digest_at(project.root, ".codex-loop/run.lock") or ""})
    others.refuse_live(project.root)
    lock.write_text(f'{{"pid":{os.getpid()}}}')
    with pytest.raises(UserError):
        others.refuse_live(project.root)


@pytest.mark.parametrize("name", ["run.lock", "daemon.json"])
def test_a_live_process_of_another_is_left_alone(project: Project, name: str) -> None:
    path = project.root / ".codex-loop" / name
    path.write_text(f'{{"pid": {os.getpid()}}}')
    with pytest.raises(UserError, match="another codex-loop may be running here") as refused:
        others.refuse_live(project.root)
    assert (refused.value.exit_code, f".codex-loop/{name} names process {os.getpid()}" in refused.value.cause) == (
        8,
        True,
    )


def test_a_lock_of_a_dead_process_or_without_one_is_in_no_ones_way(project: Project) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    lock = project.root / ".codex-loop/run.lock"
    for text in (str(gone.pid), "", "no json", "x" * 100_000):
        lock.write_text(text)
        others.refuse_live(project.root)
    lock.unlink()
    lock.mkdir()
    others.refuse_live(project.root)


def test_a_project_that_was_planned_anew_can_run_although_the_old_one_had_more_iterations(project: Project) -> None:
    spoken = SpokenDialect(name="codex-loop")
    for name, minutes, rounds in (("shop", 0, a_round(1)), ("shop-2", 1, [])):
        folder, at = Registry().home(project.root) / name, NOON + timedelta(minutes=minutes)
        folder.mkdir(parents=True)
        loop = a_loop(id=name, uid=name, workspace=str(project.root), created_at=at, dialect=spoken)
        (folder / "loop.json").write_bytes(msgspec.json.encode(loop))
        (folder / "ledger.jsonl").write_bytes(b"".join(map(encode, numbered([BORN, run_started(), *rounds]))))
    old, new = Registry().in_workspace(project.root)
    (project.root / ".codex-loop/state.json").unlink()
    places.take_up(new)
    assert (old.state.round, new.state.round) == (1, 0)
