"""Trees that were kept: what is work in them, what a round touched, files put back, clean checkouts."""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bydawn.core.errors import OwnFailure, UserError
from bydawn.system.git import WorkspaceGone
from bydawn.system.reading import FILES_AT_MOST, READ_AT_MOST, read_folder
from bydawn.worktree.trees import READ_AT_ONCE
from bydawn.worktree.workspace import GitWorkspace

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
NAMELESS = b"tests/\xff.py"


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def below(root: Path) -> Path:
    """A workspace below the top of a repository."""
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    write(root, "tests/outside", "not of the workspace")
    (root / "a" / "b c").mkdir(parents=True)
    return root / "a" / "b c"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "private"


def write(root: Path, *pairs: str) -> None:
    for path, text in zip(pairs[::2], pairs[1::2], strict=True):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def look(root: Path) -> dict[str, str]:
    """All files and links below a folder: mode and content, or where it leads."""
    found = {}
    for path in sorted(root.rglob("*")):
        if ".git" in path.parts or (path.is_dir() and not path.is_symlink()):
            continue
        mode = "x" if path.lstat().st_mode & stat.S_IXUSR else "-"
        found[str(path.relative_to(root))] = f"→{path.readlink()}" if path.is_symlink() else mode + path.read_text()
    return found


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in which a git that comes first on the PATH writes down what it was asked."""
    script, log = tmp_path / "bin" / "git", tmp_path / "calls"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {shutil.which("git")} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    return log


# -- work without documents --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    ["NOTES.md", "docs/deep/er/NOTES.md", "a name.md", "two\nlines.md", "fol\nder/n.md", "-x.md", ":(top)x", "*.md"],
)
def test_a_change_of_a_document_is_a_new_tree_but_no_new_work(document: str, root: Path, private: Path) -> None:
    write(root, "src/a.py", "one", "docs/deep/er/other", "o", "docs.md", "d", "docs/deep-er", "-")
    workspace = GitWorkspace(root, private, [document])
    bare = workspace.snapshot()
    assert bare.work == ""
    write(root, document, "first")
    first = workspace.snapshot()
    assert first.tree != bare.tree
    assert first.work == bare.tree, "a document that appears is no work either"
    write(root, document, "second")
    second = workspace.snapshot()
    assert second.tree != first.tree
    assert second.work == first.work
    write(root, "src/a.py", "two")
    assert workspace.snapshot().work not in ("", second.work)
    (root / document).unlink()
    assert workspace.snapshot().work == ""


def test_a_document_is_found_below_the_top_of_a_repository(below: Path, private: Path) -> None:
    write(below, "src/a.py", "one", "tasks/1.md", "- [ ] a")
    workspace = GitWorkspace(below, private, ["tasks/", "./src/../NOTES.md"])
    first = workspace.snapshot()
    write(below, "tasks/1.md", "- [x] a", "tasks/2.md", "b", "NOTES.md", "n")
    second = workspace.snapshot()
    assert first.work == second.work != ""
    assert second.tree != first.tree
    shutil.rmtree(below / "tasks")
    (below / "NOTES.md").unlink()
    assert workspace.snapshot().tree == first.work


def test_a_workspace_of_nothing_but_documents_has_no_work_in_it(root: Path, private: Path) -> None:
    write(root, "docs/NOTES.md", "n")
    assert GitWorkspace(root, private, ["docs/NOTES.md"]).snapshot().work == EMPTY_TREE


@pytest.mark.parametrize("documents", [(), (".",), ("../outside.md",), ("/etc/passwd",), ("",)])
def test_without_documents_work_is_the_tree(documents: tuple[str, ...], root: Path, private: Path) -> None:
    write(root, "a", "one", "../outside.md", "o")
    assert GitWorkspace(root, private, documents).snapshot().work == ""


def test_a_document_that_is_a_link_is_left_out_with_the_file_it_leads_to(root: Path, private: Path) -> None:
    write(root, "a", "one", "docs/real.md", "r")
    (root / "NOTES.md").symlink_to("docs/real.md")
    workspace = GitWorkspace(root, private, ["NOTES.md"])
    first = workspace.snapshot()
    write(root, "docs/real.md", "changed")
    second = workspace.snapshot()
    assert first.tree != second.tree
    assert first.work == second.work != ""


@pytest.mark.parametrize("target", [".", "/etc", "NOTES.md", "nowhere", ".."])
def test_a_document_that_becomes_a_strange_link_hides_nothing_else(target: str, root: Path, private: Path) -> None:
    write(root, "a", "one", "NOTES.md", "n")
    workspace = GitWorkspace(root, private, ["NOTES.md"])
    first = workspace.snapshot()
    (root / "NOTES.md").unlink()
    (root / "NOTES.md").symlink_to(target)
    assert workspace.snapshot().work == first.work
    write(root, "a", "two")
    assert workspace.snapshot().work != first.work


def test_a_document_that_becomes_a_folder_is_still_a_document(root: Path, private: Path) -> None:
    write(root, "a", "one", "NOTES.md", "n")
    workspace = GitWorkspace(root, private, ["NOTES.md"])
    first = workspace.snapshot()
    (root / "NOTES.md").unlink()
    write(root, "NOTES.md/1", "n")
    assert workspace.snapshot().work == first.work


def test_a_folder_on_the_way_that_becomes_a_file_is_work(root: Path, private: Path) -> None:
    write(root, "a", "one", "docs/NOTES.md", "n")
    workspace = GitWorkspace(root, private, ["docs/NOTES.md"])
    first = workspace.snapshot()
    shutil.rmtree(root / "docs")
    write(root, "docs", "a file")
    second = workspace.snapshot()
    assert second.work == ""
    assert second.tree != first.work


def test_nested_repositories_are_part_of_the_work(root: Path, private: Path) -> None:
    write(root, "NOTES.md", "n", "nested/file", "f")
    subprocess.run(["git", "init", "-q"], cwd=root / "nested", check=True)
    workspace = GitWorkspace(root, private, ["NOTES.md"])
    first = workspace.snapshot()
    assert first.work.partition("+")[2] == first.tree.partition("+")[2] != ""
    write(root, "NOTES.md", "m")
    assert workspace.snapshot().work == first.work
    write(root, "nested/file", "g")
    assert workspace.snapshot().work != first.work


@pytest.mark.parametrize(
    ("documents", "extra"), [((), 0), (("NOTES.md", "TODO.md"), 1), (("NOTES.md", "docs/a/b/c.md", "docs/x.md"), 2)]
)
def test_documents_cost_two_calls_at_most_and_none_when_nothing_changed(
    documents: tuple[str, ...], extra: int, root: Path, private: Path, calls: Path
) -> None:
    write(root, "a", "one", "NOTES.md", "n", "docs/a/b/c.md", "d", "docs/x.md", "x")
    workspace = GitWorkspace(root, private, documents)
    workspace.snapshot()
    calls.unlink()
    workspace.snapshot()
    assert calls.read_text().split() == ["ls-files"]
    write(root, "a", "two", "NOTES.md", "m")
    workspace.snapshot()
    assert calls.read_text().split()[1:] == [
        *("ls-files", "update-index", "write-tree"),
        *["ls-tree"] * extra,
        "diff-tree",
    ]


def test_the_next_run_knows_the_work_of_a_tree_that_has_not_changed(root: Path, private: Path, calls: Path) -> None:
    write(root, "a", "one", "NOTES.md", "n")
    seen = GitWorkspace(root, private, ["NOTES.md"]).snapshot()
    assert seen.work
    calls.write_text("")
    again = GitWorkspace(root, private, ["NOTES.md"], seen=seen)
    now = again.snapshot()
    assert (now.tree, now.work) == (seen.tree, seen.work)
    assert "ls-tree" not in calls.read_text().split()
    write(root, "a", "two")
    assert again.snapshot().work not in (seen.work, "")


@pytest.mark.parametrize(("path", "extra"), [("tests/a.py", 0), ("tests/a.log", 1)])
def test_protection_costs_one_call_at_most_and_none_when_nothing_protected_changed(
    path: str, extra: int, root: Path, private: Path, calls: Path
) -> None:
    write(root, ".gitignore", "*.log", "a", "one", path, "x")
    workspace = GitWorkspace(root, private, protect=["tests/**"])
    workspace.snapshot()
    calls.write_text("")
    workspace.snapshot()
    workspace.watch()
    assert workspace.rewritten() == ()
    assert calls.read_text().split() == ["ls-files"]
    write(root, "a", "two")
    workspace.snapshot()
    assert calls.read_text().split()[1:] == [
        *("ls-files", "update-index", "write-tree"),
        *["ls-files"] * extra,
        "diff-tree",
    ]


# -- what was touched --------------------------------------------------------------------------------------------------

FILES = [
    "pyproject.toml", "sub/other.toml", "tests/a.py", "tests/deep/b.py", "testsuite/c.py", "docs/api.md",
    "docs/api.md2", "app/[id].tsx", "app/i.tsx", "!odd", "TESTS/x", "-dash", ":(top)magic", "sp ace/f", "tests.toml",
]  # fmt: skip

GLOBS = {
    "tests/**": {"tests/a.py", "tests/deep/b.py"},
    "tests": {"tests/a.py", "tests/deep/b.py"},
    "tests/": {"tests/a.py", "tests/deep/b.py"},
    "./tests": {"tests/a.py", "tests/deep/b.py"},
    "/tests": {"tests/a.py", "tests/deep/b.py"},
    "tests//deep/": {"tests/deep/b.py"},
    "tests/*": {"tests/a.py"},
    "test*/": {"tests/a.py", "tests/deep/b.py", "testsuite/c.py"},
    "*.toml": {"pyproject.toml", "tests.toml"},
    "**/*.toml": {"pyproject.toml", "sub/other.toml", "tests.toml"},
    "**/b.py": {"tests/deep/b.py"},
    "docs/api.md": {"docs/api.md"},
    "docs/api.m?": {"docs/api.md"},
    "app/[id].tsx": {"app/[id].tsx", "app/i.tsx"},  # a class and a name: both, as this is about safety
    r"app/\[id\].tsx": {"app/[id].tsx"},
    "app/[hi].tsx": {"app/i.tsx"},
    "!odd": {"!odd"},
    "!tests/**": set(),
    "-dash": {"-dash"},
    ":(top)magic": {":(top)magic"},
    ":(exclude)tests": set(),
    "sp ace/f": {"sp ace/f"},
    "Tests/**": set(),
    "TESTS": {"TESTS/x"},
    "tests/a": set(),
    "../**": set(),
    "": set(),
    "a\0b": set(),
    ".": set(FILES),
    "**": set(FILES),
    "*": {"pyproject.toml", "!odd", "-dash", ":(top)magic", "tests.toml"},
    "[": set(),
    "x" * 5000: set(),
}


@pytest.mark.parametrize("place", ["root", "below"])
def test_globs_mean_what_people_mean(place: str, private: Path, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(place)
    workspace = GitWorkspace(folder, private)
    before = workspace.snapshot().tree
    write(folder, *(word for path in FILES for word in (path, "x")))
    after = workspace.snapshot().tree
    found = {glob: set(workspace.touched(before, after, [glob])) for glob in GLOBS}
    assert found == GLOBS
    assert workspace.touched(before, after, []) == ()
    assert workspace.touched(after, after, ["**"]) == ()
    assert set(workspace.touched(after, before, ["docs", "!odd"])) == {"docs/api.md", "docs/api.md2", "!odd"}


def test_adding_deleting_moving_and_a_new_mode_touch_a_file(root: Path, private: Path) -> None:
    write(root, "tests/gone", "g", "tests/mode", "m", "tests/moved", "m" * 999, "tests/same", "s", "tests/kind", "k")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    (root / "tests/gone").unlink()
    (root / "tests/mode").chmod(0o755)
    (root / "tests/moved").rename(root / "away")
    (root / "tests/kind").unlink()
    (root / "tests/kind").symlink_to("same")
    write(root, "tests/new", "n")
    found = workspace.touched(before, workspace.snapshot().tree, ["tests/**"])
    assert found == ("tests/gone", "tests/kind", "tests/mode", "tests/moved", "tests/new")


def test_nested_repositories_do_not_disturb(root: Path, private: Path) -> None:
    write(root, "a", "one", "nested/file", "f")
    subprocess.run(["git", "init", "-q"], cwd=root / "nested", check=True)
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    write(root, "a", "two", "nested/file", "g")
    after = workspace.snapshot().tree
    assert "+" in before
    assert workspace.touched(before, after, ["**"]) == ("a",)
    workspace.restore(before, ["a"])
    assert (root / "a").read_text() == "one"
    with workspace.checkout(before) as folder:
        assert look(folder) == {"a": "-one"}


@pytest.mark.parametrize("tree", ["", "HEAD", "--help", "1" * 40, "+abc", "refs/heads/x"])
def test_a_tree_that_was_not_kept_is_explained(tree: str, root: Path, private: Path) -> None:
    write(root, "a", "one")
    workspace = GitWorkspace(root, private)
    good = workspace.snapshot().tree
    for act in (
        lambda: workspace.touched(tree, good, ["a"]),
        lambda: workspace.restore(tree, ["a"]),
        lambda: workspace.checkout(tree).__enter__(),
    ):
        with pytest.raises(OwnFailure) as failure:
            act()
        assert failure.value.cause
        assert failure.value.hint
    assert look(root) == {"a": "-one"}


# -- putting back ------------------------------------------------------------------------------------------------------


def a_suite(root: Path) -> None:
    write(root, "tests/a.py", "a\r\nb\x00\n", "tests/run.sh", "#!/bin/sh\n", "tests/deep/er/b.py", "b", "src.py", "s")
    (root / "tests/run.sh").chmod(0o755)
    (root / "tests/link").symlink_to("a.py")
    (root / "tests/dangling").symlink_to("/nowhere/at all")
    write(root, ".gitattributes", "* text=auto eol=crlf\n*.py filter=evil\n")


def restored(root: Path, workspace: GitWorkspace, before: str, *globs: str) -> dict[str, str]:
    workspace.restore(before, workspace.touched(before, workspace.snapshot().tree, globs or ["tests/**"]))
    return look(root)


@pytest.mark.parametrize("place", ["root", "below"])
def test_files_come_back_as_they_were(place: str, private: Path, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(place)
    a_suite(folder)
    workspace = GitWorkspace(folder, private)
    before, was = workspace.snapshot().tree, look(folder)
    write(folder, "tests/a.py", "weaker", "tests/new.py", "n", "tests/deep/new.py", "n", "src.py", "work")
    (folder / "tests/run.sh").chmod(0o644)
    (folder / "tests/link").unlink()
    (folder / "tests/dangling").unlink()
    write(folder, "tests/link", "a file now")
    shutil.rmtree(folder / "tests/deep/er")
    assert restored(folder, workspace, before) == was | {"src.py": "-work"}
    assert workspace.touched(before, workspace.snapshot().tree, ["tests"]) == ()


def test_only_what_is_asked_for_comes_back(root: Path, private: Path) -> None:
    write(root, "tests/a", "one", "tests/b", "one")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    write(root, "tests/a", "two", "tests/b", "two", "tests/c", "two")
    workspace.restore(before, ["tests/a", "tests", "nowhere/at/all"])
    assert look(root) == {"tests/a": "-one", "tests/b": "-two", "tests/c": "-two"}


@pytest.mark.parametrize("path", ["../outside", "/etc/hostname", "", ".git/config", "x/.GIT/x", ".bydawn/x", "a\0b"])
def test_what_no_snapshot_can_hold_is_never_touched(path: str, root: Path, private: Path) -> None:
    write(root, "../outside", "o", ".bydawn/x", "ours", "x/.GIT/x", "x")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    workspace = GitWorkspace(root, private)
    with pytest.raises(UserError, match="cannot be restored"):
        workspace.restore(workspace.snapshot().tree, [path])
    assert all((root / path).exists() for path in ("../outside", ".git/config", ".bydawn/x", "x/.GIT/x"))


def test_a_file_behind_a_link_to_the_outside_is_put_back_inside(root: Path, private: Path, tmp_path: Path) -> None:
    a_suite(root)
    workspace = GitWorkspace(root, private)
    before, was = workspace.snapshot().tree, look(root)
    (root / "tests").rename(tmp_path / "outside")
    write(tmp_path, "outside/a.py", "not ours")
    (root / "tests").symlink_to(tmp_path / "outside")
    outside = look(tmp_path / "outside")
    assert restored(root, workspace, before) == was
    assert look(tmp_path / "outside") == outside
    assert not (root / "tests").is_symlink()


def test_nothing_is_removed_behind_a_link(root: Path, private: Path, tmp_path: Path) -> None:
    write(root, "a", "one")
    write(tmp_path, "outside/precious", "p")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    (root / "tests").symlink_to(tmp_path / "outside")
    workspace.restore(before, ["tests/precious"])
    assert look(tmp_path / "outside") == {"precious": "-p"}


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_protected_file_replaced_by_a_link_is_not_written_through(
    root: Path, private: Path, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    write(root, "tests/a.py", "a")
    write(tmp_path, "victim", "v")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    (root / "tests/a.py").unlink()
    link(root / "tests/a.py", tmp_path / "victim")
    assert restored(root, workspace, before) == {"tests/a.py": "-a"}
    assert (tmp_path / "victim").read_text() == "v"


def test_a_folder_in_the_place_of_a_file_gives_way_if_all_in_it_is_protected(root: Path, private: Path) -> None:
    write(root, "tests/a", "one", "tests/b", "one")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    (root / "tests/a").unlink()
    write(root, "tests/a/x/y", "two")
    (root / "tests/a/empty/er").mkdir(parents=True)
    assert restored(root, workspace, before) == {"tests/a": "-one", "tests/b": "-one"}


def test_a_folder_with_other_files_stays_and_the_rest_comes_back(root: Path, private: Path) -> None:
    write(root, "tests/a", "one", "tests/b", "one")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    (root / "tests/a").unlink()
    write(root, "tests/a/own/x", "work", "tests/b", "two")
    with pytest.raises(UserError) as failure:
        workspace.restore(before, ["tests/a", "tests/b"])
    assert failure.value.what == "tests/a cannot be restored"
    assert failure.value.cause == "a folder with other files is in its place"
    assert "resume" in failure.value.hint
    assert look(root) == {"tests/a/own/x": "-work", "tests/b": "-one"}


def test_a_file_in_the_place_of_a_folder_gives_way_only_if_it_is_protected(root: Path, private: Path) -> None:
    write(root, "tests/a", "one")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    shutil.rmtree(root / "tests")
    write(root, "tests", "an own file")
    with pytest.raises(UserError, match="tests/a cannot be restored"):
        restored(root, workspace, before, "tests/**")
    assert look(root) == {"tests": "-an own file"}
    assert restored(root, workspace, before, "tests") == {"tests/a": "-one"}


def test_a_pipe_in_the_place_of_a_file_gives_way(root: Path, private: Path) -> None:
    write(root, "tests/a", "one")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    (root / "tests/a").unlink()
    os.mkfifo(root / "tests/a")
    assert restored(root, workspace, before) == {"tests/a": "-one"}


def test_a_read_only_file_comes_back(root: Path, private: Path) -> None:
    write(root, "tests/a", "one")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    write(root, "tests/a", "two")
    (root / "tests/a").chmod(0o400)
    assert restored(root, workspace, before) == {"tests/a": "-one"}
    assert (root / "tests/a").stat().st_mode & stat.S_IWUSR


AS_A_USER = """
import os, sys
from pathlib import Path
from bydawn.core.errors import UserError
from bydawn.worktree.workspace import GitWorkspace
root, private, tree = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
try:
    GitWorkspace(root, private).restore(tree, ["tests/a"])
except UserError as error:
    print(error.what, error.cause, error.hint, sep="|")
"""


def test_a_folder_that_is_closed_to_us_is_explained(root: Path, private: Path) -> None:
    write(root, "tests/a", "one")
    tree = GitWorkspace(root, private).snapshot().tree
    write(root, "tests/a", "two")
    (root / "tests").chmod(0o555)
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [*drop, sys.executable, "-c", AS_A_USER, str(root), str(private), tree]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    (root / "tests").chmod(0o755)
    assert done.stdout.startswith("tests/a cannot be restored|Permission denied|"), done.stderr
    assert (root / "tests/a").read_text() == "two"


def test_names_that_are_no_text_come_back_too(root: Path, private: Path) -> None:
    odd, other = os.fsencode(root) + b"/" + NAMELESS, os.fsencode(root) + b"/tests/\xfe.py"
    write(root, "tests/a", "one")
    with open(odd, "w") as file:
        file.write("one")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    os.rename(odd, other)
    found = workspace.touched(before, workspace.snapshot().tree, ["tests"])
    assert found == ("tests/\ufffd.py", "tests/\ufffd.py")
    workspace.restore(before, found)
    assert sorted(os.listdir(os.fsencode(root / "tests"))) == [b"a", b"\xff.py"]


@pytest.mark.parametrize("harm", ["remove", "damage"])
def test_what_is_lost_is_named_with_its_round_and_the_rest_comes_back(harm: str, root: Path, private: Path) -> None:
    write(root, "a", "one", "b", "two")
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    workspace.keep("before/1", before)
    blob = hashlib.sha1(b"blob 3\0one", usedforsecurity=False).hexdigest()
    lost = private / "objects" / blob[:2] / blob[2:]
    lost.unlink()
    if harm == "damage":
        lost.write_bytes(b"nothing that git has written")
    write(root, "a", "cheat", "b", "cheat")
    with pytest.raises(UserError) as failure:
        workspace.restore(before, ["a", "b"])
    assert failure.value.what == "a cannot be restored"
    assert failure.value.cause == "its content is missing or damaged in the tree kept before round 1"
    assert look(root) == {"a": "-cheat", "b": "-two"}
    with pytest.raises(OwnFailure) as failed, workspace.checkout(before):
        pass
    assert failed.value.what == "cannot read the tree kept before round 1"
    assert failed.value.cause == "the content of a is missing or damaged"


def test_ten_thousand_protected_files_and_long_names_come_back(root: Path, private: Path) -> None:
    write(root, f"tests/{'/'.join(['d' * 200] * 15)}/{'n' * 255}", "long", "tests/0", "zero")
    for number in range(1, 10_000):
        os.link(root / "tests/0", root / f"tests/{number}")  # much sooner made than a file
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    shutil.rmtree(root / "tests")
    touched = workspace.touched(before, workspace.snapshot().tree, ["tests"])
    assert len(touched) == 10_001
    workspace.restore(before, touched)
    assert (root / "tests/9999").stat().st_nlink == 1
    assert workspace.snapshot().tree == before


def test_big_files_come_back_in_portions(root: Path, private: Path) -> None:
    sizes = {"tests/a": 10, "tests/b": READ_AT_ONCE - 9, "tests/c": 20, "tests/d": READ_AT_ONCE + 1, "tests/e": 0}
    write(root, *(word for path, size in sizes.items() for word in (path, path[-1] * size)))
    workspace = GitWorkspace(root, private)
    before = workspace.snapshot().tree
    write(root, *(word for path in sizes for word in (path, "other")))
    workspace.restore(before, [*sizes])
    assert {path: (root / path).stat().st_size for path in sizes} == sizes
    assert workspace.snapshot().tree == before


# -- clean checkouts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["root", "below"])
def test_a_checkout_has_the_files_of_the_tree_and_nothing_else(
    place: str, private: Path, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(place)
    a_suite(folder)
    (folder / "deep/empty").mkdir(parents=True)
    workspace = GitWorkspace(folder, private)
    tree, was = workspace.snapshot().tree, look(folder)
    write(folder, "src.py", "changed since", "new", "n")
    index = (private / "index").read_bytes()
    with workspace.checkout(tree) as checkout:
        assert look(checkout) == was
        assert not checkout.is_relative_to(folder)
        assert checkout.stat().st_mode & 0o777 == 0o700
        assert len(checkout.name) < 12
        write(checkout, "src.py", "of the check", "made/by", "it")
    assert not checkout.exists()
    assert (private / "index").read_bytes() == index
    assert sorted(path.name for path in private.iterdir() if "checkout" in path.name) == []
    assert workspace.snapshot().changes.paths == ("new", "src.py")
    assert (folder / "src.py").read_text() == "changed since"


def test_a_checkout_is_removed_whatever_happened_in_it(root: Path, private: Path) -> None:
    write(root, "a", "one")
    workspace = GitWorkspace(root, private)
    tree = workspace.snapshot().tree
    with pytest.raises(ZeroDivisionError), workspace.checkout(tree) as checkout:
        _ = 1 / 0
    assert not checkout.exists()


LOCKED = """
import os, sys
from pathlib import Path
from bydawn.worktree.workspace import GitWorkspace
with GitWorkspace(Path(sys.argv[1]), Path(sys.argv[2])).checkout(sys.argv[3]) as place:
    (place / "in/ner").mkdir(parents=True)
    (place / "in/ner/file").write_text("f")
    (place / "in/link").symlink_to(sys.argv[4])
    for path in ("in/ner/file", "in/ner", "in", "."):
        (place / path).chmod(0)
    print(place)
"""


def test_a_checkout_is_removed_even_if_its_doors_were_locked(root: Path, private: Path, tmp_path: Path) -> None:
    write(root, "a", "one")
    write(tmp_path, "outside/file", "f")
    (tmp_path / "outside").chmod(0o750)
    tree = GitWorkspace(root, private).snapshot().tree
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [*drop, sys.executable, "-c", LOCKED, str(root), str(private), tree, str(tmp_path / "outside")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists()
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "outside/file").exists()


def test_the_checkout_of_a_worker_that_was_killed_is_removed_by_the_next(root: Path, private: Path) -> None:
    write(root, "a", "one")
    workspace = GitWorkspace(root, private)
    left = workspace.checkout(workspace.snapshot().tree)
    checkout = left.__enter__()
    assert look(checkout) == {"a": "-one"}
    GitWorkspace(root, private)
    assert not checkout.exists()


def test_a_checkout_is_below_nothing_that_an_agent_may_write(
    root: Path, private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex may write to the temporary folder; what is above a test suite configures it."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    write(root, "a", "one")
    workspace = GitWorkspace(root, private)
    with workspace.checkout(workspace.snapshot().tree) as checkout:
        assert not {root, temporary} & set(checkout.parents)
        assert checkout.parent == private.parent / "checkouts"
        assert checkout.parent.stat().st_mode & 0o777 == 0o700
    assert not checkout.parent.exists()


def test_an_empty_tree_can_be_checked_out(root: Path, private: Path) -> None:
    workspace = GitWorkspace(root, private)
    with workspace.checkout(workspace.snapshot().tree) as checkout:
        assert os.listdir(checkout) == []


def test_no_filter_or_hook_runs_in_a_checkout(root: Path, private: Path, tmp_path: Path) -> None:
    write(root, "a.py", "one\n", ".gitattributes", "*.py filter=evil ident eol=crlf working-tree-encoding=UTF-16\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "config", "filter.evil.smudge", f"touch {tmp_path}/song; cat"], cwd=root, check=True)
    hook = root / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/song\n")
    hook.chmod(0o755)
    workspace = GitWorkspace(root, private)
    with workspace.checkout(workspace.snapshot().tree) as checkout:
        assert (checkout / "a.py").read_bytes() == b"one\n"
    assert not (tmp_path / "song").exists()


# -- folders of documents ----------------------------------------------------------------------------------------------


def test_the_markdown_files_right_in_a_folder_are_read(root: Path, private: Path) -> None:
    write(root, "tasks/2.md", "zwei ä\r\n", "tasks/1.md", "\ufeffone", "tasks/.hidden.md", "h", "tasks/in/3.md", "3")
    write(root, "tasks/notes.txt", "n", "tasks/4.MD", "four", "tasks/folder.md/x", "x", "other.md", "linked")
    (root / "tasks/link.md").symlink_to("../other.md")
    (root / "tasks/nowhere.md").symlink_to("nowhere")
    os.mkfifo(root / "tasks/pipe.md")
    found = GitWorkspace(root, private).read_folder("tasks/")
    assert found == {"1.md": "one", "2.md": "zwei ä\r\n", "4.MD": "four", "link.md": "linked"}
    assert list(found) == ["1.md", "2.md", "4.MD", "link.md"]


def test_a_folder_that_is_not_there_is_none_and_an_empty_one_is_empty(root: Path) -> None:
    (root / "empty").mkdir()
    assert read_folder(root, "empty") == {}
    assert read_folder(root, "nowhere") is None
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(WorkspaceGone):
        read_folder(root, "empty")


def refusal(root: Path, path: str = "tasks") -> str:
    with pytest.raises(UserError) as error:
        read_folder(root, path)
    assert error.value.cause
    assert error.value.hint
    return error.value.what


def test_what_is_no_proper_folder_of_tasks_is_refused_with_a_reason(root: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/1.md", "o", "work/file", "f")
    (root / "out").symlink_to(tmp_path / "outside")
    assert refusal(root, "file") == "file is not a folder"
    assert refusal(root, "out") == "out is not in the workspace"
    assert refusal(root, "../outside") == "../outside is not in the workspace"
    (root / "loop").symlink_to("loop")
    assert refusal(root, "loop") == "loop cannot be read"


def test_a_file_that_cannot_be_taken_is_refused_with_a_reason(root: Path, tmp_path: Path) -> None:
    write(root, "tasks/1.md", "one")
    write(tmp_path, "secret", "s")
    bad = root / "tasks/2.md"
    bad.symlink_to(tmp_path / "secret")
    assert refusal(root) == "tasks/2.md is not in the workspace"
    bad.unlink()
    bad.write_bytes(b"\xff")
    assert refusal(root) == "tasks/2.md is not UTF-8 text"
    with bad.open("wb") as file:
        file.truncate(READ_AT_MOST + 1)
    assert refusal(root) == "tasks/2.md is too big"
    with bad.open("wb") as file:
        file.truncate(READ_AT_MOST - 1)
    assert refusal(root) == "tasks is too big"
    bad.unlink()
    with open(os.fsencode(root) + b"/tasks/\xff.md", "w"):
        assert refusal(root) == "a file in tasks has an unreadable name"


def test_too_many_files_are_refused(root: Path) -> None:
    write(root, "tasks/0.md", "t")
    for number in range(1, FILES_AT_MOST):
        os.link(root / "tasks/0.md", root / f"tasks/{number}.md")
    assert len(read_folder(root, "tasks") or ()) == FILES_AT_MOST
    write(root, "tasks/more.md", "t")
    assert refusal(root) == "tasks has too many files"
