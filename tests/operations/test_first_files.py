"""Files that people ask for: written once, never over what they changed, and never through a link."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bydawn.core.errors import UserError
from bydawn.operations.first_files import Fate, fates, write

TEXTS = {
    "TODO.md": "- [ ] one\n",
    ".tool/config.yml": "version: 1\n",
    ".tool/.gitignore": "*\n",
    "NOTES.md": "# Notes\n",
}
NEW = dict.fromkeys(TEXTS, Fate.CREATED)


def there(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text(errors="replace") for path in found}


def test_files_are_written_with_their_folders_and_then_left_as_they_are(tmp_path: Path) -> None:
    assert write(tmp_path, TEXTS) == NEW
    assert there(tmp_path) == TEXTS
    assert write(tmp_path, TEXTS, force=True) == dict.fromkeys(TEXTS, Fate.SAME)
    assert there(tmp_path) == TEXTS


def test_what_a_person_changed_stays_and_only_what_is_missing_is_written(tmp_path: Path) -> None:
    (tmp_path / "TODO.md").write_bytes(b"- [ ] one\r\n")
    assert write(tmp_path, TEXTS) == {**NEW, "TODO.md": Fate.LEFT}
    assert (tmp_path / "TODO.md").read_bytes() == b"- [ ] one\r\n"


def test_force_keeps_a_copy_of_each_version_and_never_writes_over_one(tmp_path: Path) -> None:
    write(tmp_path, TEXTS)
    ignore = tmp_path / ".tool/.gitignore"
    for mine in ("mine", "mine too", "mine"):
        ignore.write_text(mine)
        ignore.chmod(0o600)
        assert write(tmp_path, TEXTS, force=True)[".tool/.gitignore"] is Fate.REPLACED
    todo = tmp_path / "TODO.md"
    todo.write_bytes(b"\xff")
    write(tmp_path, TEXTS, force=True)
    copies = {path.name: path.read_bytes() for path in tmp_path.rglob("*original*")}
    assert copies == {
        ".gitignore.original": b"mine",
        ".gitignore.original-2": b"mine too",  # the third is the first again
        "TODO.original.md": b"\xff",
    }
    assert (tmp_path / ".tool/.gitignore.original").stat().st_mode & 0o777 == 0o600
    assert {path: text for path, text in there(tmp_path).items() if "original" not in path} == TEXTS


IN_THE_WAY: dict[str, Callable[[Path], None]] = {
    "a folder in its place": lambda repo: (repo / ".tool/config.yml").mkdir(parents=True),
    "a link to a folder outside": lambda repo: (repo / ".tool").symlink_to("../outside"),
    "a pipe for a folder": lambda repo: os.mkfifo(repo / ".tool"),
    "a pipe in its place": lambda repo: os.mkfifo(repo / "NOTES.md"),
    "a dangling link": lambda repo: (repo / "NOTES.md").symlink_to("../outside/x"),
}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("way", IN_THE_WAY)
def test_nothing_is_written_if_one_of_them_cannot_be(tmp_path: Path, way: str, force: bool) -> None:
    repo, outside = tmp_path / "repo", tmp_path / "outside"
    repo.mkdir()
    outside.mkdir()
    IN_THE_WAY[way](repo)
    with pytest.raises(UserError) as caught:
        write(repo, TEXTS, force=force)
    assert "nothing was written" in caught.value.hint
    assert not (repo / "TODO.md").exists()
    assert there(outside) == {}


def test_a_link_to_a_persons_file_is_left_and_not_forced(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")
    (tmp_path / "TODO.md").symlink_to("mine.md")
    assert fates(tmp_path, TEXTS)["TODO.md"] is Fate.LEFT
    with pytest.raises(UserError, match=r"TODO\.md cannot be replaced"):
        write(tmp_path, TEXTS, force=True)
    assert there(tmp_path) == {"mine.md": "mine", "TODO.md": "mine"}


def test_an_absolute_path_may_begin_with_a_person_s_own_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    path = str(tmp_path / "home/.codex/prompts/x.md")
    assert write(tmp_path / "real", {path: "x"}) == {path: Fate.CREATED}
    assert there(tmp_path / "real") == {".codex/prompts/x.md": "x"}
    assert write(tmp_path / "real", {path: "y"}, force=True) == {path: Fate.REPLACED}
    assert there(tmp_path / "real/.codex/prompts") == {"x.md": "y", "x.original.md": "x"}
