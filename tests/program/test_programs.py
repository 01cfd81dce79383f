"""Which program a name means: never one that the workspace contains."""

from pathlib import Path

import pytest

from bydawn.system import programs


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a `tool`, in a home with another one; the PATH has both, the repository's first."""
    repo = tmp_path / "home/repo"
    (repo / ".git").mkdir(parents=True)
    (repo / ".git/HEAD").touch()
    for folder in (repo / "bin", tmp_path / "home/.local/bin"):
        a_program(folder / "tool", "#!/usr/bin/env lang")
        a_program(folder / "lang", "#!/bin/sh")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"bin:.:{repo}/bin:{tmp_path}/home/.local/bin")
    return repo


def a_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
    path.chmod(0o755)


def test_a_program_is_found_outside_the_workspace_and_the_repository_around_it(clone: Path) -> None:
    own = str(clone.parent / ".local/bin/tool")
    (clone / "sub").mkdir()
    assert [programs.find("tool", folder) for folder in (clone, clone / "sub", clone / "bin")] == [own] * 3
    assert programs.find("nothing", clone) is None


def test_a_home_that_is_kept_in_a_repository_is_no_clone(clone: Path) -> None:
    """Some people keep their settings that way; what they have installed is below it."""
    home = clone.parent
    (home / ".git").mkdir()
    (home / ".git/HEAD").touch()
    assert programs.find("tool", clone) == str(home / ".local/bin/tool")
    assert programs.path_outside(home).endswith(str(home / ".local/bin"))


def test_a_script_is_not_run_by_an_interpreter_of_the_workspace(clone: Path) -> None:
    """The agent gets the whole PATH, where `env` would find the wrong one."""
    own = clone.parent / ".local/bin"
    path = programs.path_outside(clone)
    assert programs.starting("tool", path) == (str(own / "lang"), str(own / "tool"))
    assert programs.starting("lang", path) == (str(own / "lang"),)
    with pytest.raises(FileNotFoundError):
        programs.starting("nothing", path)
