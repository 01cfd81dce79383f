"""What a round changed, as values: from two trees that git compares."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact
from bydawn.operations import diffs
from bydawn.operations.diffs import Diff, FileDiff, Kind, round_diff
from bydawn.store.ledger import encode
from bydawn.store.registry import Registry, Standing
from bydawn.worktree.workspace import GitWorkspace
from core.facts_made import BORN, a_loop, ended, numbered, run_started, started

Files = Mapping[str | bytes, str | bytes | None]


class Place:
    """A workspace and its loop; each round changes files, and its trees are saved."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "work"
        self.workspace.mkdir()
        self.registry = Registry(root / "state")
        self.folder = self.registry.home(self.workspace) / "shop"
        self.folder.mkdir(parents=True)
        (self.folder / "loop.json").write_bytes(msgspec.json.encode(a_loop(id="shop", workspace=str(self.workspace))))
        self._facts: list[AnyFact] = [BORN, run_started()]

    def put(self, files: Files) -> None:
        for name, content in files.items():
            path = os.path.join(os.fsencode(self.workspace), os.fsencode(name))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if content is None:
                os.unlink(path)
            else:
                data = content.encode() if isinstance(content, str) else content
                with open(path, "wb") as file:
                    file.write(data)

    def tree(self) -> str:
        return GitWorkspace(self.workspace, self.folder / "git").snapshot().tree

    def round(self, files: Files, **more: Any) -> None:
        number = sum(fact.__class__.__name__ == "RoundStarted" for fact in self._facts) + 1
        before = self.tree()
        self.put(files)
        self._facts += [started(number, tree=before), ended(number, **({"tree": self.tree()} | more))]

    def also(self, *facts: AnyFact) -> None:
        self._facts += facts

    @property
    def standing(self) -> Standing:
        (self.folder / "ledger.jsonl").write_bytes(b"".join(map(encode, numbered(self._facts))))
        return self.registry.find("shop", None)

    def diff(self, number: int = 1, **more: Any) -> Diff:
        return round_diff(self.standing, number, **more)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield Place(tmp_path.resolve())


def lines(file: FileDiff) -> list[str]:
    return [f"{line.sign}{line.text}" for hunk in file.hunks for line in hunk.lines]


def test_each_file_has_its_kind_its_counts_and_its_lines_with_both_numbers(place: Place) -> None:
    place.put({"old.txt": "gone\n", "refunds.py": "def half():\n    a\n    b\n    c\n"})
    place.round({"old.txt": None, "new.txt": "one\ntwo\n", "refunds.py": "def half():\n    a\n    B\n    c\n"})
    found = place.diff()
    assert [(each.path, each.kind, each.added, each.removed) for each in found.files] == [
        ("new.txt", Kind.ADDED, 2, 0),
        ("old.txt", Kind.DELETED, 0, 1),
        ("refunds.py", Kind.CHANGED, 1, 1),
    ]
    assert (found.added, found.removed, found.left_out, found.why) == (3, 2, 0, "")
    [hunk] = found.files[2].hunks
    assert hunk.header == "lines 1-4"
    assert [(line.sign, line.text, line.old, line.new) for line in hunk.lines] == [
        (" ", "def half():", 1, 1),
        (" ", "    a", 2, 2),
        ("-", "    b", 3, None),
        ("+", "    B", None, 3),
        (" ", "    c", 4, 4),
    ]


def test_several_rounds_can_be_looked_at_together(place: Place) -> None:
    place.round({"a.txt": "one\n"})
    place.round({"b.txt": "two\n"})
    assert [file.path for file in place.diff(2).files] == ["b.txt"]
    assert [file.path for file in place.diff(2, since=1).files] == ["a.txt", "b.txt"]
    with pytest.raises(UserError, match="round 2 came after round 1"):
        place.diff(1, since=2)
    with pytest.raises(UserError, match="has no round 9"):
        place.diff(1, since=9)


ODD = {
    b"with space.txt": "with space.txt",
    b'quote"d.txt': 'quote"d.txt',
    b"new\nline.txt": "new\\nline.txt",
    b"tab\there.txt": "tab\\there.txt",
    b"\xff\xfe.txt": "\\xff\\xfe.txt",
    b"\xe2\x80\xaereverse.txt": "\\u202ereverse.txt",
    b"diff --git a.txt": "diff --git a.txt",
    b"@@ -1 +1 @@": "@@ -1 +1 @@",
    b":(glob)*.txt": ":(glob)*.txt",
    b"-p": "-p",
}


@pytest.mark.parametrize("name", ODD, ids=repr)
def test_odd_names_are_spelled_out_and_their_lines_found(place: Place, name: bytes) -> None:
    place.round({name: "@@ -1 +1 @@\ndiff --git a/x b/x\nindex 0..1\n", b"other.txt": "other\n"})
    found = {file.path: lines(file) for file in place.diff().files}
    assert found == {ODD[name]: ["+@@ -1 +1 @@", "+diff --git a/x b/x", "+index 0..1"], "other.txt": ["+other"]}


def test_what_is_invisible_in_a_line_is_spelled_out(place: Place) -> None:
    place.round({"a.txt": b"\x1b[31mred\x1b[0m\x07\n\xff\tx\n\xe2\x80\xaetxt\r\nlast"})
    [file] = place.diff().files
    assert lines(file) == [
        "+\\x1b[31mred\\x1b[0m\\x07",
        "+\\xff\tx",
        "+\\u202etxt\\r",
        "+last",
        "\\No newline at end of file",
    ]


def test_a_file_that_is_not_text_or_too_large_says_so(place: Place) -> None:
    place.round({"a.bin": b"\0\1\2", "b.txt": b"x\n" * (1 << 20), "empty": b""})
    binary, large, empty = place.diff().files
    assert (binary.binary, binary.too_large, binary.added) == (True, False, None)
    assert (large.binary, large.too_large, large.added) == (False, True, None)
    assert [file.why for file in (binary, large, empty)] == [
        "Not text, so there are no lines to compare.",
        "Too large to compare here.",
        "The file is empty.",
    ]


def test_a_long_file_is_cut_and_can_be_seen_whole(place: Place) -> None:
    place.round({"long.txt": "".join(f"{number}\n" for number in range(1000)), "b.txt": "b\n"})
    _, long = place.diff().files
    assert (len(lines(long)), long.left_out, long.added) == (diffs.LINES, 1000 - diffs.LINES, 1000)
    _, whole = place.diff(whole_file="long.txt").files
    assert (len(lines(whole)), whole.left_out) == (1000, 0)


def test_only_so_many_files_are_listed(place: Place) -> None:
    # The last one listed is a name that git also takes for a folder of it.
    place.put({"f099": "a file\n"})
    names = [f"f{number:03}" for number in range(99)]
    place.round({"f099": None, **dict.fromkeys(names, "x\n"), "f099/a": "1\n", "f099/b": "2\n"})
    found = place.diff()
    assert (len(found.files), found.left_out) == (diffs.FILES, 2)
    assert lines(found.files[-1]) == ["-a file"]


def test_lines_beyond_what_can_be_compared_are_left_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "_MOST", 3)
    place.round({"a": "1\n2\n", "b": "3\n4\n", "c": "1\n"})
    assert [(file.too_large, lines(file)) for file in place.diff().files] == [
        (False, ["+1", "+2"]),
        (True, []),
        (False, ["+1"]),
    ]


def test_a_long_line_is_cut(place: Place) -> None:
    place.round({"a.js": "x" * 100_000 + "\n"})
    [line] = lines(place.diff().files[0])
    assert len(line) < 3000 and line.endswith("…")


def test_the_mode_and_links_are_told(place: Place) -> None:
    place.put({"run.sh": "x\n", "was.txt": "x\n"})
    first = place.tree()
    (place.workspace / "run.sh").chmod(0o755)
    (place.workspace / "was.txt").unlink()
    (place.workspace / "was.txt").symlink_to("run.sh")
    place.also(started(1, tree=first), ended(1, tree=place.tree()))
    program, link = place.diff().files
    assert (program.remark, program.why) == ("now executable", "Now executable.")
    assert (link.remark, lines(link)) == ("now a link", ["-x", "+run.sh", "\\No newline at end of file"])


def test_the_repository_cannot_hide_a_change_by_its_attributes(place: Place) -> None:
    place.round({".gitattributes": "*.py -diff\n", "sub/.gitattributes": "*.py binary\n", "sub/a.py": "x\n"})
    assert lines(place.diff().files[-1]) == ["+x"]


def test_secrets_are_hidden(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hunter2-hunter2")
    key = ["-----BEGIN RSA PRIVATE KEY-----", *["MIIEpAIBAAKCAQEA" * 4] * 3, "-----END RSA PRIVATE KEY-----"]
    place.round({"a.txt": "token: hunter2-hunter2\nplain\n", "b.pem": "\n".join([*key, "after", ""])})
    shown = "\n".join(line for file in place.diff().files for line in lines(file))
    assert "hunter2" not in shown and "MIIE" not in shown
    assert "+plain" in shown and "+after" in shown


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"tree": ""}, "What the round changed is unknown: the files could not be saved at its end."),
        ({"tree": "--output=x"}, "What the round changed is unknown: the files could not be saved at its end."),
        ({"unseen": True}, "What the round changed is unknown: the files could not be saved at its end."),
        ({"tree": "0" * 39 + "1"}, "The changes cannot be shown: fatal: "),
        ({}, "This round changed no files."),
    ],
)
def test_without_two_trees_there_is_a_sentence(place: Place, more: dict[str, Any], why: str) -> None:
    place.round({}, **more)
    found = place.diff()
    assert not found.files and found.why.startswith(why)


def test_a_round_without_an_end_has_no_changes_yet(place: Place) -> None:
    place.also(started(1, tree=place.tree()))
    assert place.diff().why == "The round was interrupted."


def test_a_change_in_a_repository_inside_the_folder_is_not_called_none(place: Place) -> None:
    tree = place.tree()
    place.also(started(1, tree=tree), ended(1, tree=f"{tree}+abc"))
    assert place.diff().why == "Only repositories inside the folder changed; their files are not saved."


def test_the_saved_files_are_enough(place: Place) -> None:
    place.round({"a.txt": "a\n"})
    standing = place.standing
    place.workspace.rename(place.workspace.with_name("elsewhere"))
    assert [file.path for file in round_diff(standing, 1).files] == ["a.txt"]
    (place.folder / "git").rename(place.folder / "gone")
    assert round_diff(standing, 1).why == "The saved files of this loop are gone."
