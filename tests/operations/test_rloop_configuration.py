"""Where rloop's files are, and what they say together."""

from pathlib import Path

import pytest

from bydawn.core.errors import UserError
from bydawn.operations.dialects.rloop import configuration

TASKS = "defaults.task_file"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RLOOP_CONFIG_DIR", "RLOOP_MODEL", "RLOOP_MAX_ITERATIONS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".config/rloop").mkdir(parents=True)
    (tmp_path / "app").mkdir()
    return tmp_path


def test_all_layers_are_read_from_their_places(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-050"""
    app = home / "app"
    assert configuration.read(app).where == configuration.read(None).where
    (home / ".config/rloop/config.yaml").write_text("defaults: {max_iterations: 20, model: a}")
    (app / ".rloop.yaml").write_text("defaults: {max_iterations: 10, model: b}")
    monkeypatch.setenv("RLOOP_MODEL", "c")
    found = configuration.read(app, {"defaults.max_iterations": "50"})
    assert (found.max_iterations, found.model) == (50, "c")
    assert (found.where["defaults.max_iterations"], found.where["defaults.model"]) == (
        "--max-iterations",
        "RLOOP_MODEL",
    )
    monkeypatch.setenv("RLOOP_MODEL", "")
    assert configuration.read(app).model == "b", "an empty variable sets nothing"
    assert configuration.read(None).max_iterations == 20
    monkeypatch.setenv("RLOOP_CONFIG_DIR", str(home / "elsewhere"))
    assert (configuration.config_folder(), configuration.read(None).model) == (home / "elsewhere", None)


def test_without_a_home_the_variable_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.delenv("HOME")
    with pytest.raises(UserError, match="there is no folder for rloop's files") as caught:
        configuration.read(None)
    assert "RLOOP_CONFIG_DIR" in caught.value.hint


def test_a_task_file_that_was_typed_in_full_is_fine_if_it_is_in_the_folder(home: Path) -> None:
    app = home / "app"
    (home / "link").symlink_to(app)
    for typed in (app / "docs/PRD.md", home / "link/docs/PRD.md", "docs/PRD.md"):
        (app / "docs").mkdir(exist_ok=True)
        assert configuration.read(app, {TASKS: str(typed)}).task_file == "docs/PRD.md"
    for typed in (home / "PRD.md", app / "../PRD.md", "../PRD.md", app):
        with pytest.raises(UserError, match=r"--task-file: defaults\.task_file must be a path inside"):
            configuration.read(app, {TASKS: str(typed)})


def test_a_users_file_may_be_a_link_but_no_one_elses(home: Path) -> None:
    (home / "dotfiles.yaml").write_text("defaults: {model: mine}")
    file = home / ".config/rloop/config.yaml"
    file.symlink_to(home / "dotfiles.yaml")
    assert configuration.read(None).model == "mine"
    (home / "dotfiles.yaml").chmod(0o666)
    with pytest.raises(UserError, match="other users can write to it"):
        configuration.read(None)
    file.unlink()
    file.mkdir()
    with pytest.raises(UserError, match=r"config\.yaml: it is not a regular file"):
        configuration.read(None)
