"""Folders that are installed for an agent: new versions arrive, what a person changed stays."""

from pathlib import Path

import pytest

from bydawn.core.errors import UserError
from bydawn.core.loop import COOKIE
from bydawn.operations.first_files import Fate
from bydawn.operations.installed_folder import RECORD, files_of, home_of, install

OLD = {"SKILL.md": "# One\n", "scripts/go.py": "#!/usr/bin/env python3\n"}
NEW = {"SKILL.md": "# Two\n", "scripts/go.py": "#!/usr/bin/env python3\n", "more.md": "more\n"}
TARGET = ".agent/skills/it"


def there(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != RECORD)
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def test_a_folder_is_installed_with_scripts_that_can_be_run(tmp_path: Path) -> None:
    assert install(OLD, tmp_path, TARGET) == dict.fromkeys(OLD, Fate.CREATED)
    assert there(tmp_path / TARGET) == OLD
    modes = {name: (tmp_path / TARGET / name).stat().st_mode & 0o111 != 0 for name in OLD}
    assert modes == {"SKILL.md": False, "scripts/go.py": True}
    assert install(OLD, tmp_path, TARGET) == dict.fromkeys(OLD, Fate.SAME)


def test_a_new_version_replaces_what_no_one_has_changed(tmp_path: Path) -> None:
    install(OLD, tmp_path, TARGET)
    fates = install(NEW, tmp_path, TARGET)
    assert fates == {"SKILL.md": Fate.UPDATED, "scripts/go.py": Fate.SAME, "more.md": Fate.CREATED}
    assert there(tmp_path / TARGET) == NEW
    assert install(OLD, tmp_path, TARGET)["SKILL.md"] is Fate.UPDATED  # the record is of the last version


@pytest.mark.parametrize("recorded", [True, False])
def test_a_changed_file_stays_and_then_nothing_is_written(tmp_path: Path, recorded: bool) -> None:
    install(OLD, tmp_path, TARGET)
    (tmp_path / TARGET / "SKILL.md").write_text("mine")
    if not recorded:
        (tmp_path / TARGET / RECORD).unlink()
    before = there(tmp_path)
    with pytest.raises(UserError, match=r"SKILL\.md was changed") as refused:
        install(NEW, tmp_path, TARGET)
    assert (there(tmp_path), "--force" in refused.value.hint) == (before, True)
    assert install(NEW, tmp_path, TARGET, force=True)["SKILL.md"] is Fate.REPLACED
    assert there(tmp_path / TARGET) == {**NEW, "SKILL.original.md": "mine"}


def test_a_file_that_differs_on_each_machine_is_always_replaced(tmp_path: Path) -> None:
    for name in ("a", "b"):
        install(OLD, tmp_path, TARGET, local={"place": name})
        assert there(tmp_path / TARGET) == {**OLD, "place": name}
    assert "place" not in (tmp_path / TARGET / RECORD).read_text()


@pytest.mark.parametrize("link", [".agent", ".agent/skills/it", ".agent/skills/it/scripts", f"{TARGET}/{RECORD}"])
def test_no_link_of_a_repository_leads_out_of_it(tmp_path: Path, link: str) -> None:
    repo, outside = tmp_path / "repo", tmp_path / "outside"
    (repo / link).parent.mkdir(parents=True)
    outside.mkdir()
    (repo / link).symlink_to(outside / RECORD if link.endswith(RECORD) else outside)
    (outside / RECORD).write_text("theirs")
    with pytest.raises(UserError):
        install(OLD, repo, TARGET)
    assert there(tmp_path) == {}
    assert (outside / RECORD).read_text() == "theirs"


def test_a_persons_own_folder_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / ".agent").symlink_to(tmp_path / "dotfiles")
    install(OLD, tmp_path / "dotfiles", f"{tmp_path}/{TARGET}")
    assert there(tmp_path / "dotfiles/skills/it") == OLD
    install(NEW, tmp_path / "dotfiles", f"{tmp_path}/{TARGET}")
    assert there(tmp_path / "dotfiles/skills/it") == NEW


def test_an_agent_cannot_install_anything_from_inside_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COOKIE, "x")
    with pytest.raises(UserError, match="agents may not"):
        install(OLD, tmp_path, TARGET)
    assert there(tmp_path) == {}


def test_what_python_has_compiled_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/go.cpython-311.pyc").write_bytes(b"\xff")
    (tmp_path / "go.py").write_text("pass\n")
    assert files_of(tmp_path) == {"go.py": "pass\n"}


@pytest.mark.parametrize(("agent", "variable"), [("codex", "CODEX_HOME"), ("claude", "CLAUDE_CONFIG_DIR")])
def test_the_home_of_an_agent_is_where_its_variable_says(
    agent: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv(variable, raising=False)
    assert home_of(agent) == Path(f"/home/ada/.{agent}")
    monkeypatch.setenv(variable, "/elsewhere")
    assert home_of(agent) == Path("/elsewhere")
    monkeypatch.setenv(variable, "near")
    with pytest.raises(UserError, match="not absolute"):
        home_of(agent)
    monkeypatch.delenv(variable)
    monkeypatch.delenv("HOME")
    with pytest.raises(UserError, match="has no folder"):
        home_of(agent)
