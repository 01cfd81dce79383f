"""Commands below a project's top: which folder is meant."""

import json
import shutil
from pathlib import Path

import pytest

from bydawn.cli.dialects.waylon_smithers import list_
from bydawn.operations.preconditions import found_workspace
from bydawn.settings.files import workspace_above
from driving import DONE, Home, Said


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`home/shop/api/src`, with the top of a repository in `shop`."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "home/shop/api/src"
    folder.mkdir(parents=True)
    a_repository(tmp_path / "home/shop")
    return folder


def a_repository(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").touch()


def test_a_folder_in_a_repository_means_its_top(deep: Path) -> None:
    shop = deep.parents[1]
    assert [workspace_above(folder) for folder in (deep, deep.parent, shop)] == [shop, shop, shop]


@pytest.mark.parametrize(
    ("name", "text"), [("bydawn.toml", "rounds = 3\n"), ("pyproject.toml", "[tool.bydawn]\nrounds = 3\n")]
)
def test_settings_that_are_nearer_make_their_folder_the_workspace(deep: Path, name: str, text: str) -> None:
    (deep.parent / name).write_text(text)
    (deep.parents[1] / "bydawn.toml").write_text("rounds = 4\n")
    assert workspace_above(deep) == deep.parent


def test_an_empty_folder_that_a_sandbox_left_is_no_repository(deep: Path) -> None:
    (deep.parent / ".git").mkdir()
    assert workspace_above(deep) == deep.parents[1]


def test_another_tools_settings_mean_nothing(deep: Path) -> None:
    (deep.parent / "pyproject.toml").write_text("[tool.ruff]\n")
    assert workspace_above(deep) == deep.parents[1]


def test_without_a_repository_settings_above_are_found_and_otherwise_the_folder_itself(deep: Path) -> None:
    shutil.rmtree(deep.parents[1] / ".git")
    assert workspace_above(deep) == deep
    (deep.parents[1] / "bydawn.toml").touch()
    assert workspace_above(deep) == deep.parents[1]


def test_a_home_that_is_a_repository_is_not_the_project_of_what_is_in_it(deep: Path) -> None:
    shutil.rmtree(deep.parents[1] / ".git")
    a_repository(deep.parents[2])
    assert workspace_above(deep) == deep


def test_what_another_user_put_above_us_is_not_ours(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: -1)
    assert workspace_above(deep) == deep


# -- the commands ------------------------------------------------------------------------------------------------------


@pytest.fixture
def sub(home: Home) -> Path:
    (home.repo / "src").mkdir()
    return home.repo / "src"


def run(home: Home, *words: str, cwd: Path) -> Said:
    return home.run(home.rounds([DONE]), *words, cwd=cwd)


def workspace(home: Home, *words: str, cwd: Path) -> str:
    """The workspace of the loop that `show` finds."""
    return str(json.loads(home.bydawn("show", "--json", *words, cwd=cwd).out)["workspace"])


def test_a_run_below_the_top_works_on_the_top_and_says_so(home: Home, sub: Path) -> None:
    ended = run(home, cwd=sub)
    assert f"  Folder {home.repo} (-C . works on this one only)" in ended.out.splitlines()
    assert workspace(home, cwd=sub) == str(home.repo)
    assert "Folder" not in run(home, "--new", cwd=home.repo).out


def test_a_folder_that_is_named_is_meant(home: Home, sub: Path) -> None:
    run(home, "-C", ".", cwd=sub)
    assert workspace(home, cwd=sub) == str(sub)
    assert "no loop in" in home.bydawn("show", "-C", "..", cwd=sub).err


def test_loops_and_settings_of_the_top_are_found_from_below(home: Home, sub: Path) -> None:
    run(home, cwd=home.repo)
    assert workspace(home, cwd=sub) == str(home.repo)
    assert "no loop in" in home.bydawn("show", "-C", ".", cwd=sub).err
    (home.repo / "bydawn.toml").write_text("rounds = 3\n")
    assert home.bydawn("config", "get", "rounds", cwd=sub).out == "3\n"
    assert home.bydawn("config", "get", "rounds", "-C", ".", cwd=sub).out == "30\n"


def test_a_typed_path_is_one_of_the_current_folder_if_it_exists_there(home: Home, sub: Path) -> None:
    (sub / "NEXT.md").write_text("- [x] deep\n")
    assert "NEXT.md" in home.bydawn("tasks", "list", "-t", "NEXT.md", cwd=sub).out
    ended = home.run(home.rounds([DONE]), "-t", "NEXT.md", cwd=sub)
    assert "src/NEXT.md, 0 open" in ended.out
    (home.repo / "TODO.md").write_text("- [ ] at the top\n")
    assert "at the top" in home.bydawn("tasks", "list", "-t", "TODO.md", cwd=sub).out


def test_a_folder_that_its_repository_ignores_is_on_its_own(home: Home, sub: Path) -> None:
    (home.repo / ".gitignore").write_text("src/\n")
    run(home, cwd=sub)
    assert workspace(home, cwd=sub) == str(sub)


def test_waylon_smithers_means_the_folder_it_is_in(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(deep)
    assert found_workspace(None) == deep.parents[1]
    assert list_.make_context("list", []).params["workspace"] == deep
