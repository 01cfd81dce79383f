"""What `codex-loop doctor` finds, and what it repairs when asked (C-011)."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from bydawn.core.errors import UserError
from bydawn.core.loop import COOKIE
from bydawn.dialects.codex_loop import DIALECT
from bydawn.operations.dialects import config as own_config
from bydawn.operations.dialects.codex_loop import doctor, project, running
from operations.codex_loop_stage import LEAST, Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage(tmp_path, monkeypatch)
    made.write("codex-loop.yaml", LEAST)
    made.write("tasks/001-a.md", "# A\n\nDo A.\n")
    return made


def prepared(stage: Stage) -> None:
    own_config.agree(DIALECT, stage.root, ["codex-loop.yaml"])
    running.prepare(stage.root, project.config_of(stage.root), "Greet")


def test_a_project_that_can_run_has_no_errors_and_looking_changes_nothing(stage: Stage) -> None:
    before = stage.files
    found = doctor.examine(stage.root)
    assert found.checked == [
        "git repository: on branch main",
        "codex-loop.yaml is valid",
        "codex-loop.yaml leaves out 32 keys, and their defaults hold",
        "1 task in tasks/",
        "Codex 0.166.0",
    ]
    exclude = stage.root / ".git/info/exclude"
    assert found.warnings == [
        "the commands in codex-loop.yaml do not run before you have agreed to them:"
        " `codex-loop trust` shows them, and asks",
        ".gitignore does not name .codex-loop/ (--repair adds it)",
        f"{exclude} does not name .codex-loop/ (--repair adds it)",
    ]
    assert (found.errors, found.fixed, doctor.errors(stage.root)) == ([], [], [])
    assert [*found.sections] == ["Checked", "Fixed", "Warnings", "Errors"]
    assert stage.files == before


def test_repair_has_git_ignore_the_folder_and_leaves_the_configuration_as_it_is(stage: Stage) -> None:
    stage.write("codex-loop.yaml", text := LEAST + "execution:\n  max_iterations: 7  # few\nmine: 1\n")
    own_config.agree(DIALECT, stage.root, ["codex-loop.yaml"])
    found = doctor.examine(stage.root, repair=True)
    assert found.fixed == [
        ".gitignore names .codex-loop/",
        f"{stage.root}/.git/info/exclude names .codex-loop/",
    ]
    assert own_config.is_trusted(DIALECT, stage.root)
    again = doctor.examine(stage.root, repair=True)
    assert (again.fixed, again.warnings) == ([], ["codex-loop.yaml:7: unknown key 'mine' has no effect"])
    assert stage.files["codex-loop.yaml"] == text
    assert stage.files[".gitignore"] == ".codex-loop/\n"


def test_nothing_is_repaired_where_there_is_no_project(stage: Stage) -> None:
    (stage.root / "codex-loop.yaml").unlink()
    before = stage.files
    found = doctor.examine(stage.root, repair=True)
    assert (found.fixed, found.warnings, stage.files) == ([], [], before)


def test_each_mistake_in_the_configuration_is_an_error_with_its_line(stage: Stage) -> None:
    stage.write("codex-loop.yaml", "goal: {summary: Greet}\nverification: {commands: make}\nversion: x\n")
    assert [row.partition(": ")[0] + ": " + row.split(": ")[1] for row in doctor.errors(stage.root)] == [
        "codex-loop.yaml:3: version must be a whole number, 0 or more",
        "codex-loop.yaml:1: goal.done_when is missing",
        "codex-loop.yaml:2: verification.commands must be a list of texts",
    ]


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"tasks/001-a.md": " "}, "tasks/ has 001-a.md, which is empty"),
        ({"tasks/002-b.md": "<!-- depends_on: 009-x -->\n# B"}, "tasks/ has no task 009-x, but 002-b depends on it"),
        ({"tasks/001-a.md": "---\ndepends_on: 001-a\n---\n# A"}, "tasks/ has a dependency cycle: 001-a → 001-a"),
        ({"tasks/002-\x1b[31mred\nnew.md": "# B"}, r"tasks/ has '002-\x1b[31mred\nnew.md'"),
        ({"codex-loop.yaml": LEAST + "tasks: {source_dir: todo}\n"}, "todo/ has no tasks"),
    ],
)
def test_tasks_that_cannot_be_worked_on_are_errors(stage: Stage, files: dict[str, str], error: str) -> None:
    for path, text in files.items():
        stage.write(path, text)
    (found,) = doctor.errors(stage.root)
    assert found.startswith(error)
    assert " → " in found


def test_no_configuration_no_repository_and_no_codex_are_errors(stage: Stage) -> None:
    (stage.root / "codex-loop.yaml").unlink()
    (stage.home / "bin/codex").unlink()
    (stage.root / ".git").rename(stage.home / "gone")
    errors = [row.partition(":")[0] for row in doctor.examine(stage.root).errors]
    assert errors == [f"{stage.root} is in no git repository", "codex-loop.yaml is missing", "cannot start codex"]


def test_without_a_worktree_a_project_needs_no_repository(stage: Stage) -> None:
    stage.write("codex-loop.yaml", LEAST + "execution: {worktree: {enabled: false}}\n")
    (stage.root / ".git").rename(stage.home / "gone")
    found = doctor.examine(stage.root)
    assert found.errors == []
    assert "is in no git repository" in found.warnings[0]


def test_a_detached_head_and_changes_that_are_not_committed_are_said(stage: Stage) -> None:
    stage.commit("all")
    stage.git("checkout", "-q", "--detach")
    stage.write("tasks/001-a.md", "# Another\n")
    warnings = doctor.examine(stage.root).warnings
    assert warnings[0].startswith("no branch is checked out (detached HEAD)")
    assert warnings[1].startswith("some changes are not committed")


def test_an_unborn_branch_is_an_error(stage: Stage) -> None:
    stage.git("checkout", "-q", "--orphan", "new")
    assert doctor.errors(stage.root)[0].startswith("this repository has no commit yet")


def test_codex_without_a_login_is_a_warning_because_it_may_have_a_key_of_its_own(stage: Stage) -> None:
    (stage.home / "login").write_text("1")
    found = doctor.examine(stage.root)
    assert found.errors == []
    assert any("no one is logged in: run `codex login`" in row for row in found.warnings)


def test_what_keeps_codex_from_working_is_an_error(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(stage.home))
    (found,) = doctor.examine(stage.root).errors
    assert found.startswith("codex could not run a single command: Codex cannot run commands while CODEX_HOME")


def test_a_changed_state_is_only_shown_and_written_again_when_asked(stage: Stage) -> None:
    prepared(stage)
    path = stage.root / ".codex-loop/state.json"
    before = path.read_text()
    path.write_text(before.replace("pending", "done").replace("ready", "done"))
    assert ".codex-loop/state.json was changed or removed" in "".join(doctor.examine(stage.root).warnings)
    assert any("written again" in row for row in doctor.examine(stage.root, repair=True).fixed)
    assert path.read_text() == before
    assert (path.parent / "state.original.json").exists()
    assert not any("state.json" in row for row in doctor.examine(stage.root).warnings)


def test_a_damaged_record_is_an_error_and_an_intact_one_is_said(stage: Stage) -> None:
    prepared(stage)
    assert any(row.endswith("records are intact") for row in doctor.examine(stage.root).checked)
    standing = project.standing_of(stage.root)
    assert standing
    text = standing.folder.ledger.read_bytes()
    standing.folder.ledger.write_bytes(text.replace(b'"type":', b'"typo":', 1))
    assert any("is damaged at line 1" in row for row in doctor.examine(stage.root).errors)


def test_files_that_another_program_left_are_removed_when_asked_and_those_of_others_stay(stage: Stage) -> None:
    stage.write(".codex-loop/run.lock", '{"pid": 4194303}')
    stage.write(".codex-loop/registry.json", "{}")
    found = doctor.examine(stage.root)
    assert ".codex-loop/run.lock names no process that lives (--repair removes it)" in found.warnings
    assert "strict-agent-loop has files in .codex-loop/, too; they are left alone" in found.checked
    assert (
        "removed .codex-loop/run.lock, which names no process that lives"
        in doctor.examine(stage.root, repair=True).fixed
    )
    assert [path for path in stage.files if path.startswith(".codex-loop/")] == [".codex-loop/registry.json"]


def test_a_disk_that_is_almost_full_is_said(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=7 << 20))
    assert f"only 7 MB are free on the disk of {stage.root}" in doctor.examine(stage.root).warnings


def test_what_another_program_began_is_an_error(stage: Stage) -> None:
    stage.write(".codex-loop/state.json", "{}")
    (error,) = doctor.examine(stage.root, repair=True).errors
    assert error.startswith("another program has begun this project")
    assert stage.files[".codex-loop/state.json"] == "{}"


def test_an_agent_may_look_and_not_repair(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COOKIE, "x.1")
    assert doctor.examine(stage.root).errors == []
    with pytest.raises(UserError, match="agents may not do this"):
        doctor.examine(stage.root, repair=True)


def test_a_damaged_byte_in_the_record_is_an_error_also_where_a_snapshot_stands_for_it(stage: Stage) -> None:
    prepared(stage)
    standing = project.standing_of(stage.root)
    assert standing
    ledger = standing.folder.ledger
    data = bytearray(ledger.read_bytes())
    data[40] ^= 1
    ledger.write_bytes(data)
    [error] = doctor.examine(stage.root).errors
    assert f"the ledger {ledger} is damaged at line 1" in error
    assert "`codex-loop doctor --repair`" in error
    repaired = doctor.examine(stage.root, repair=True)
    assert (repaired.errors, "the record was damaged: kept the first 0 records" in repaired.fixed[0]) == ([], True)
    assert [row for row in doctor.examine(stage.root).checked if row.endswith("records are intact")]
