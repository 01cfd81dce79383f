"""What a loop writes for people is nobody's work, as long as it is at work: whose files are meant, and whose not."""

import os
import time
from pathlib import Path

import msgspec
import pytest

from bydawn.core.globs import is_protected
from bydawn.core.loop import Loop, SpokenDialect
from bydawn.store.folder import LoopFolder
from bydawn.store.foreign_files import ForeignFiles
from bydawn.store.lock import Lock
from core.facts_made import a_loop


def a_folder(home: Path, name: str, *files: str, ago: float = 3600) -> Path:
    """A loop that wrote its last fact some time ago."""
    folder = home / name
    folder.mkdir(parents=True)
    (folder / "loop.json").write_bytes(msgspec.json.encode(speaking(*files)))
    (folder / "ledger.jsonl").write_text("")
    (folder / "lock").touch()
    os.utime(folder / "ledger.jsonl", (0, time.time() - ago))
    return folder


def speaking(*files: str, protect: tuple[str, ...] = ()) -> Loop:
    return a_loop(dialect=SpokenDialect(name="waylon-smithers", files=files), protect=protect)


def test_files_of_a_loop_are_its_own_as_long_as_it_is_at_work(tmp_path: Path) -> None:
    for name in ("done", "busy", "later"):
        a_folder(tmp_path, name, f"{name}.json")
    held = Lock.take(tmp_path / "busy/lock")
    ours = ForeignFiles(speaking("own.json"), LoopFolder(a_folder(tmp_path, "own")))
    assert ours() == ("own.json", "busy.json")
    held.release()
    assert ours() == ("own.json", "busy.json"), "what it left is no work of ours either"
    os.utime(tmp_path / "later/ledger.jsonl")
    assert ours() == ("own.json", "busy.json", "later.json"), "it went on, and may have ended already"


def test_files_of_a_loop_that_starts_later_are_found(tmp_path: Path) -> None:
    ours = ForeignFiles(speaking(), LoopFolder(a_folder(tmp_path, "own")))
    (tmp_path / "new").mkdir()
    assert ours() == ()
    (tmp_path / "new").rmdir()
    a_folder(tmp_path, "new", "new.json", ago=-1)
    assert ours() == ("new.json",)


def test_what_this_loop_protects_is_never_anothers(tmp_path: Path) -> None:
    a_folder(tmp_path, "busy", "bydawn.toml", "tests/a.json", "b.json", ago=-60)
    assert ForeignFiles(speaking(protect=("tests/**",)), LoopFolder(a_folder(tmp_path, "own")))() == ("b.json",)


@pytest.mark.parametrize(
    ("glob", "path", "meant"),
    [
        ("tests", "tests/a", True),
        ("tests/", "tests/a", True),
        ("./tests//a", "tests/a", True),
        ("tests/**", "tests/deep/a", True),
        ("**/a", "a", True),
        ("**/a", "x/y/a", True),
        ("x/**/a", "x/a", True),
        ("*.json", "a.json", True),
        ("*.json", "deep/a.json", False),
        ("tests/*", "tests/a_*.txt", True),
        ("a_[0-9].txt", "a_*.txt", True),
        ("[id].json", "d.json", True),
        ("[id].json", "x.json", False),
        ("[^a].json", "b.json", True),
        ("[^a].json", "a.json", False),
        ("[[:digit:]].json", "1.json", True),
        ("docs/[a-z]*.md", "docs/r.json", False),
        (r"\a", "a", True),
        ("test", "tests/a", False),
        ("tests/a", "tests", False),
        ("TESTS", "tests", False),
    ],
)
def test_a_glob_means_a_file_wherever_git_would_say_so(glob: str, path: str, meant: bool) -> None:
    assert is_protected(path, ("nothing", glob)) is meant
