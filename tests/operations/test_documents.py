"""The documents of a loop: read, saved and ticked by people while agents write to the same files."""

import errno
import multiprocessing
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.errors import NotFound, OwnFailure, UserError
from bydawn.core.facts import AnyFact
from bydawn.core.loop import COOKIE, OnTamper, SpokenDialect, Worktree
from bydawn.core.merging import Kind, lines_of
from bydawn.core.values import End
from bydawn.core.worklist import of_checklist
from bydawn.operations import documents, saving
from bydawn.operations import tasks as operation
from bydawn.operations.documents import Clash, Conflict, Saved
from bydawn.store.ledger import encode
from bydawn.store.lock import Lock
from bydawn.store.registry import Registry, Standing, standing_of
from bydawn.system import writing
from core.facts_made import BORN, NOON, a_loop, a_round, numbered, run_started, started, stopped

PLAN = "# Plan\n\n- [x] set it up\n- [ ] build it\n- [ ] test it\n"
NOWHERE = "0" * 12  # the version of a text that no file has had
CODE = "- [ ] a\n\n```\n- [ ] in code\n```\n"


class Place:
    """A workspace, and a loop in it on the disk; `standing` is read anew each time, as a server does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.work.mkdir(parents=True)
        self.write("TODO.md", PLAN)
        self.loop(tasks="TODO.md", progress="PROGRESS.md", opinions="OPINIONS.md")

    def loop(self, *facts: AnyFact, name: str = "night", **settings: Any) -> None:
        """Give the loop this history and these settings; it is paused unless told otherwise."""
        folder = Registry(self.root / "state").home(self.work) / name
        folder.mkdir(parents=True, exist_ok=True)
        loop = a_loop(id=name, workspace=str(self.work), **settings)
        (folder / "loop.json").write_bytes(msgspec.json.encode(loop))
        history = facts or (run_started(), stopped(End.PAUSED))
        (folder / "ledger.jsonl").write_bytes(b"".join(map(encode, numbered([BORN, *history]))))

    def standing(self, name: str = "night") -> Standing:
        [found] = [each for each in Registry(self.root / "state").in_workspace(self.work) if each.loop.id == name]
        return found

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def bytes(self, path: str = "TODO.md") -> bytes:
        return (self.work / path).read_bytes()

    def read(self, key: str = "todo") -> documents.Document:
        return documents.read(self.standing(), key)

    def save(self, text: str, key: str = "todo", version: str = "", base: str | None = None) -> Saved | Conflict:
        return documents.save(self.standing(), key, text, version or self.read(key).version, base)

    def tick(self, line: int, ticked: bool = True, version: str = "", shown: str | None = None) -> Saved | Conflict:
        return documents.tick(self.standing(), "todo", line, ticked, version or self.read().version, shown)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While a process runs the loop."""
        lock = Lock.take(self.standing().folder.lock)
        try:
            yield
        finally:
            lock.release()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def written(place: Place) -> tuple[int, int]:
    """Another value whenever the list is written or replaced."""
    status = (place.work / "TODO.md").stat()
    return status.st_mtime_ns, status.st_ino


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# -- which documents there are -----------------------------------------------------------------------------------------


def test_the_list_the_notes_and_the_rules_of_a_loop_are_its_documents(place: Place) -> None:
    found = documents.documents(place.standing())
    assert [(each.key, each.path, each.title) for each in found] == [
        ("todo", "TODO.md", "Tasks"),
        ("progress", "PROGRESS.md", "Progress"),
        ("opinions", "OPINIONS.md", "Opinions"),
    ]
    assert all(each.editable and not each.why_not for each in found)


def test_what_a_loop_does_not_have_is_left_out(place: Place) -> None:
    place.loop()
    assert documents.documents(place.standing()) == ()
    with pytest.raises(UserError, match="night has no document 'todo'") as refused:
        place.read("todo")
    assert refused.value.cause == "it only has a prompt"


def test_each_file_of_a_task_folder_is_a_document(place: Place) -> None:
    place.write("tasks/10-docs.md", "# Write the docs\n")
    place.write("tasks/2-build.md", "# Build it\n")
    place.write("tasks/3-größe.md", b"\xff\xfe")
    place.write("tasks/README.md", "# About\n")
    place.loop(tasks="tasks", task_folder=True)
    found = documents.documents(place.standing())
    assert [(each.key, each.path, each.title, each.why_not) for each in found] == [
        ("task-2-build", "tasks/2-build.md", "Build it", ""),
        ("task-3-größe", "tasks/3-größe.md", "3-größe", "not text"),
        ("task-10-docs", "tasks/10-docs.md", "Write the docs", ""),
    ]
    place.save("# Build it well\n", "task-2-build")
    assert place.bytes("tasks/2-build.md") == b"# Build it well\n"


def test_a_task_folder_that_is_gone_does_not_hide_the_other_documents(place: Place) -> None:
    place.loop(tasks="tasks", task_folder=True, progress="PROGRESS.md")
    assert [each.key for each in documents.documents(place.standing())] == ["progress"]


EXTRAS = """\
version: 1
docs:
  extras:
    - {name: SPEC, path: docs/spec.md, include_in_prompt: true}
    - {name: Todo, path: docs/other.md}
"""


def test_further_documents_of_codex_autorunner_can_be_read_and_not_changed(place: Place) -> None:
    place.write("docs/spec.md", "# Spec\n")
    place.write(".codex-autorunner/config.yml", EXTRAS)
    place.loop(tasks="TODO.md", dialect=SpokenDialect(name="codex-autorunner"))
    found = documents.documents(place.standing())
    assert [(each.key, each.path, each.title, each.editable) for each in found] == [
        ("todo", "TODO.md", "Tasks", True),
        ("spec", "docs/spec.md", "SPEC", False),
        ("todo-2", "docs/other.md", "Todo", False),
    ]
    assert place.read("spec").text == "# Spec\n"
    with pytest.raises(UserError, match="cannot be edited here") as refused:
        place.save("mine\n", "spec")
    assert (refused.value.cause, refused.value.hint) == ("it can only be read here", "use your own editor")
    place.write(".codex-autorunner/config.yml", "docs: [")
    assert [each.key for each in documents.documents(place.standing())] == ["todo"]


def test_a_document_of_a_worktree_is_the_one_that_the_agent_sees(place: Place) -> None:
    (place.root / "tree/sub").mkdir(parents=True)
    (place.root / "tree/sub/TODO.md").write_text("- [ ] there\n")
    tree = Worktree(branch="night", path=str(place.root / "tree"), folder=str(place.root / "tree/sub"))
    place.loop(tasks="TODO.md", worktree=tree)
    assert place.read().text == "- [ ] there\n"
    place.save("- [x] there\n")
    assert (place.root / "tree/sub/TODO.md").read_text() == "- [x] there\n"
    assert place.bytes() == PLAN.encode()


# -- what a document says ----------------------------------------------------------------------------------------------


def test_a_document_has_its_text_its_version_and_when_it_was_changed(place: Place) -> None:
    os.utime(place.work / "TODO.md", (NOON.timestamp(), NOON.timestamp()))
    found = place.read()
    assert (found.text, found.size, found.changed_at, found.exists, found.editable) == (
        PLAN,
        len(PLAN),
        NOON,
        True,
        True,
    )
    assert len(found.version) == 12
    place.write("TODO.md", PLAN + " ")
    assert place.read().version != found.version
    place.write("TODO.md", PLAN)
    assert place.read().version == found.version


def test_a_missing_document_is_made_by_saving_it(place: Place) -> None:
    place.loop(progress="notes/deep/PROGRESS.md")
    found = place.read("progress")
    assert (found.exists, found.version, found.text, found.changed_at, found.editable) == (
        False,
        "none",
        "",
        None,
        True,
    )
    assert isinstance(place.save("first\r\nnotes", "progress"), Saved)
    assert place.bytes("notes/deep/PROGRESS.md") == b"first\nnotes"
    assert files(place.work / "notes/deep") == ["PROGRESS.md"]


def test_a_document_that_was_made_meanwhile_is_not_overwritten(place: Place) -> None:
    place.write("PROGRESS.md", "the agent's\n")
    found = place.save("mine\n", "progress", version="none", base="")
    assert isinstance(found, Conflict)
    assert (found.theirs, found.merged) == ("the agent's\n", "the agent's\nmine\n")
    assert place.bytes("PROGRESS.md") == b"the agent's\n"


@pytest.mark.parametrize(
    ("second", "by"),
    [(2.5, ""), (3.5, "round 1"), (4.5, ""), (5.5, "round 2"), (1000, "round 2")],  # a second for each fact
)
def test_a_change_during_a_round_names_the_round(place: Place, second: float, by: str) -> None:
    place.loop(run_started(), *a_round(1), started(2), tasks="TODO.md")
    moment = (NOON + timedelta(seconds=second)).timestamp()
    os.utime(place.work / "TODO.md", (moment, moment))
    assert place.read().by == by


def test_what_a_person_saved_during_a_round_is_not_the_round_s(place: Place) -> None:
    place.loop(run_started(), started(1), tasks="TODO.md")
    place.save(PLAN + "- [ ] more\n")
    assert place.read().by == ""
    place.write("TODO.md", PLAN + "- [x] more\n")
    assert place.read().by == "round 1"


def test_a_round_that_works_in_the_same_tree_is_named(place: Place) -> None:
    place.loop(run_started(), *a_round(1), started(2), tasks="TODO.md")
    assert place.read().working is None, "its process is gone"
    with place.at_work():
        assert place.read().working == 2


def test_the_files_of_a_task_folder_are_not_in_the_worktree_of_a_round(place: Place) -> None:
    place.write("tasks/1.md", "# One\n")
    (place.root / "tree").mkdir()
    tree = Worktree(branch="b", path=str(place.root / "tree"), folder=str(place.root / "tree"))
    place.loop(run_started(), started(1), tasks="tasks", task_folder=True, progress="P.md", worktree=tree)
    with place.at_work():
        assert (place.read("task-1").working, place.read("progress").working) == (None, 1)


@pytest.mark.parametrize(
    ("on_tamper", "then"), [(OnTamper.RESTORE, "undo it"), (OnTamper.BLOCK, "block the loop"), (OnTamper.REPORT, "rep")]
)
def test_a_person_is_warned_that_a_round_will_be_blamed_for_a_protected_file(
    place: Place, on_tamper: OnTamper, then: str
) -> None:
    place.loop(run_started(), started(1), opinions="RULES.md", protect=("*.md",), on_tamper=on_tamper)
    assert place.read("opinions").caution == ""
    with place.at_work():
        assert (
            f"until round 1 has ended, bydawn will take your change for the round's, and {then}"
            in place.read("opinions").caution
        )
        assert isinstance(place.save("mine\n", "opinions"), Saved), "it is theirs to decide"


def test_boxes_are_those_of_the_loop() -> None:
    text = "- [ ] a\n- [X] b\n\n<!-- HARD STOP -->\n\n```\n- [ ] c\n```\n"
    assert [(box.line, box.text, box.ticked) for box in documents.boxes(text)] == [(1, "a", False), (2, "b", True)]


# -- what cannot be shown or edited ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        "",
        ".",
        "..",
        "../outside",
        "todo/../../outside",
        "%2e%2e%2foutside",
        "%2e%2e/outside",
        "..%c0%afoutside",
        "..\\outside",
        "/etc/passwd",
        "//etc/passwd",
        "TODO.md",
        "Todo",
        "todo\0",
        "todo\0.md",
        "todo ",
        "task-../../outside",
        "\udcff",
        "\x1b[31mtodo",
        "x" * 10_000,
    ],
)
def test_a_key_is_looked_up_and_never_a_path(place: Place, key: str) -> None:
    (place.root / "outside").write_text("secret\n")
    for act in (
        lambda: documents.read(place.standing(), key),
        lambda: documents.save(place.standing(), key, "x", "none"),
        lambda: documents.tick(place.standing(), key, 1, True, "none"),
    ):
        with pytest.raises(NotFound, match="night has no document") as refused:
            act()
        assert refused.value.cause == "it has todo, progress, opinions"
        assert len(refused.value.what) < 200
        assert refused.value.what.isprintable()
    assert (place.root / "outside").read_text() == "secret\n"


def a_link(place: Place) -> None:
    (place.work / "PROGRESS.md").symlink_to(place.root / "outside")


def a_link_to_nothing_outside(place: Place) -> None:
    (place.work / "PROGRESS.md").symlink_to(place.root / "new")


def a_linked_folder(place: Place) -> None:
    (place.work / "notes").symlink_to(place.root)
    place.loop(progress="notes/outside")


def a_way_up(place: Place) -> None:
    place.loop(progress="../outside")


def an_absolute_path(place: Place) -> None:
    place.loop(progress=str(place.root / "outside"))


def a_circle(place: Place) -> None:
    (place.work / "PROGRESS.md").symlink_to("PROGRESS.md")


def a_file_as_a_folder(place: Place) -> None:
    place.loop(progress="TODO.md/notes")


def a_pipe(place: Place) -> None:
    os.mkfifo(place.work / "PROGRESS.md")


def a_folder(place: Place) -> None:
    (place.work / "PROGRESS.md").mkdir()


def a_socket(place: Place) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(place.work / "PROGRESS.md"))


def a_binary_file(place: Place) -> None:
    place.write("PROGRESS.md", b"text\n\0more\n")


def another_encoding(place: Place) -> None:
    place.write("PROGRESS.md", "größer\n".encode("latin-1"))


def a_large_file(place: Place) -> None:
    place.write("PROGRESS.md", "é" * 1_600_000)


OUTSIDE = "it leads outside the workspace"
NOT_REGULAR = "it is not a regular file"
# what is in the place of PROGRESS.md · why it cannot be edited · what of it is shown
STRANGE: list[tuple[Callable[[Place], None], str, str]] = [
    (a_link, OUTSIDE, ""),
    (a_link_to_nothing_outside, OUTSIDE, ""),
    (a_linked_folder, OUTSIDE, ""),
    (a_way_up, OUTSIDE, ""),
    (an_absolute_path, OUTSIDE, ""),
    (a_circle, "a link in its path leads nowhere", ""),
    (a_file_as_a_folder, "a link in its path leads nowhere", ""),
    (a_pipe, NOT_REGULAR, ""),
    (a_folder, NOT_REGULAR, ""),
    (a_socket, NOT_REGULAR, ""),
    (a_binary_file, "not text", ""),
    (another_encoding, "not text", "gr��er\n"),
    (a_large_file, "3.20 MB: too large to edit here", "é" * (documents.MOST // 2)),
]


@pytest.mark.parametrize(("put", "why_not", "text"), STRANGE)
def test_what_is_not_a_text_of_the_workspace_is_never_edited(
    place: Place, put: Callable[[Place], None], why_not: str, text: str
) -> None:
    (outside := place.root / "outside").write_text("secret\n")
    put(place)
    path = place.work / str(place.standing().loop.progress)
    before = os.lstat(path) if put is not a_file_as_a_folder else None
    found = place.read("progress")
    assert (found.editable, found.why_not, found.text, found.exists) == (False, why_not, text, True)
    for version in (found.version, "none", NOWHERE):
        with pytest.raises(UserError, match="cannot be edited here") as refused:
            place.save("mine\n", "progress", version=version)
        assert refused.value.cause == why_not
        with pytest.raises(UserError, match="cannot be edited here"):
            documents.tick(place.standing(), "progress", 1, True, version)
    assert outside.read_text() == "secret\n"
    assert not (place.root / "new").exists()
    if before:
        assert os.path.samestat(before, os.lstat(path))


AS_A_USER = """
import sys
from pathlib import Path
from bydawn.core.errors import NotFound, UserError
from bydawn.operations import documents
from bydawn.store.registry import Registry
[standing] = Registry(Path(sys.argv[1])).in_workspace(Path(sys.argv[2]))
print(documents.read(standing, "todo").why_not)
try:
    documents.save(standing, "todo", "mine", documents.read(standing, "todo").version)
except UserError as error:
    print(error.sentence)
"""


@pytest.mark.parametrize(
    ("folder", "file", "why_not"),
    [
        (0o755, 0, "it cannot be read: Permission denied"),
        (0o755, 0o444, "you may not write to it"),
        (0o555, 0o644, "you may not write to it"),
    ],
)
def test_what_a_person_may_not_read_or_write_says_so(place: Place, folder: int, file: int, why_not: str) -> None:
    (place.work / "TODO.md").chmod(file)
    place.work.chmod(folder)
    # Root may do everything, unless this is taken away.
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [*drop, sys.executable, "-c", AS_A_USER, str(place.root / "state"), str(place.work)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    place.work.chmod(0o755)
    (place.work / "TODO.md").chmod(0o644)
    assert done.stdout.startswith(f"{why_not}\nTODO.md cannot be edited here: {why_not} → "), done.stderr
    assert (place.bytes(), files(place.work)) == (PLAN.encode(), ["TODO.md"])


def test_a_link_inside_the_workspace_stays_a_link(place: Place) -> None:
    real = place.write("docs/plan.md", PLAN)
    (place.work / "TODO.md").unlink()
    (place.work / "TODO.md").symlink_to("docs/plan.md")
    assert isinstance(place.save("- [ ] new\n"), Saved)
    assert (place.work / "TODO.md").is_symlink()
    assert real.read_text() == "- [ ] new\n"


@pytest.mark.parametrize("swapped", ["docs", "docs/plan.md"])
def test_a_link_that_comes_into_the_path_at_the_last_moment_is_not_followed(
    place: Place, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    (theirs := place.root / "theirs").mkdir()
    (theirs / "plan.md").write_text(PLAN)
    place.write("docs/plan.md", PLAN)
    place.loop(tasks="docs/plan.md")
    target = theirs / swapped.removeprefix("docs").lstrip("/")

    def first(*arguments: Any) -> bool:
        (place.work / swapped).rename(place.root / "moved")
        (place.work / swapped).symlink_to(target)
        return writing.replace_unchanged(*arguments)

    monkeypatch.setattr(saving, "replace_unchanged", first)
    with pytest.raises(UserError, match="cannot be written"):
        place.save("mine\n")
    assert ((theirs / "plan.md").read_text(), files(theirs)) == (PLAN, ["plan.md"])
    assert [name for name in files(place.root) if name.endswith(".tmp")] == []


def test_a_text_that_no_file_should_have_is_refused(place: Place) -> None:
    for text, what in (("a\0b", "cannot be saved"), ("\udcff", "cannot be saved"), ("é" * 600_000, "too much")):
        with pytest.raises(UserError, match=what):
            place.save(text)
    assert place.bytes() == PLAN.encode()


def test_an_agent_may_read_documents_and_nothing_else(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    version = place.read().version
    monkeypatch.setenv(COOKIE, "u-1.1.c0")
    assert place.read().text == PLAN
    for act in (partial(place.save, "x", version=version), partial(place.tick, 4, version=version)):
        with pytest.raises(UserError, match="agents may not do this"):
            act()
    assert place.bytes() == PLAN.encode()


def test_a_loop_without_a_folder_says_so(place: Place) -> None:
    place.loop(tasks="TODO.md", worktree=Worktree(branch="b", path="/gone", folder="/gone/sub"))
    with pytest.raises(UserError, match="the folder /gone/sub no longer exists"):
        place.read()
    standing = place.standing()
    place.work.rename(place.root / "moved")
    for act in (partial(documents.documents, standing), partial(documents.read, standing, "todo")):
        with pytest.raises(UserError, match="the workspace of night is gone"):
            act()


def test_a_loop_that_cannot_be_read_says_so(place: Place) -> None:
    standing = place.standing()
    standing.folder.settings.write_text("{")
    damaged = standing_of(standing.folder)
    assert damaged
    with pytest.raises(OwnFailure, match="cannot read the settings"):
        documents.documents(damaged)


# -- saving ------------------------------------------------------------------------------------------------------------


def test_what_is_saved_is_there_with_the_mode_it_had(place: Place) -> None:
    (place.work / "TODO.md").chmod(0o640)
    before = place.read()
    found = place.save("- [ ] new\n")
    assert isinstance(found, Saved)
    assert (found.changed, found.warnings, found.document.text) == (True, (), "- [ ] new\n")
    assert found.document.version not in ("", before.version)
    assert found.document == place.read()
    assert stat.S_IMODE((place.work / "TODO.md").stat().st_mode) == 0o640
    assert files(place.work) == ["TODO.md"]


@pytest.mark.parametrize(
    ("before", "sent", "after"),
    [
        (b"a\r\nb\r\n", "a\r\nnew\r\nb\r\n", b"a\r\nnew\r\nb\r\n"),
        (b"a\nb\n", "a\r\nnew\r\nb\r\n", b"a\nnew\nb\n"),
        (b"a\nb", "a\r\nB", b"a\nB"),
        (b"\xef\xbb\xbfa\n", "a\r\nb\r\n", b"\xef\xbb\xbfa\nb\n"),
        (b"a\r\nb\nc\n", "a\r\nb\r\nc\r\nd\r\n", b"a\r\nb\nc\nd\n"),
    ],
)
def test_a_form_keeps_what_the_file_has_of_its_own(place: Place, before: bytes, sent: str, after: bytes) -> None:
    place.write("TODO.md", before)
    assert isinstance(place.save(sent), Saved)
    assert place.bytes() == after


def test_a_text_that_is_saved_unchanged_is_not_written(place: Place) -> None:
    before = written(place)
    found = place.save(PLAN.replace("\n", "\r\n"), version=NOWHERE)
    assert isinstance(found, Saved)
    assert not found.changed
    assert written(place) == before


def test_a_document_that_changed_meanwhile_is_not_overwritten_and_both_texts_are_kept(place: Place) -> None:
    opened = place.read()
    theirs = PLAN.replace("[ ] build", "[x] build")
    place.write("TODO.md", theirs)
    yours = PLAN.replace("test it", "test it well")
    found = place.save(yours.replace("\n", "\r\n"), version=opened.version, base=opened.text)
    assert place.bytes() == theirs.encode()
    assert isinstance(found, Conflict)
    assert (found.base, found.yours, found.theirs, found.version) == (PLAN, yours, theirs, place.read().version)
    assert found.merged == "# Plan\n\n- [x] set it up\n- [x] build it\n- [ ] test it well\n"
    assert found.clashes == (
        Clash(
            kind=Kind.THEIRS,
            first_line=4,
            last_line=4,
            merged_first=4,
            merged_last=4,
            yours="- [ ] build it",
            theirs="- [x] build it",
        ),
        Clash(
            kind=Kind.YOURS,
            first_line=5,
            last_line=5,
            merged_first=5,
            merged_last=5,
            yours="- [ ] test it well",
            theirs="- [ ] test it",
        ),
    )
    assert isinstance(place.save(found.merged, version=found.version), Saved)
    assert place.bytes() == found.merged.encode()


def test_a_place_that_both_changed_can_be_replaced_by_either_text(place: Place) -> None:
    place.write("TODO.md", "a\r\nB\r\nB2\r\nc\r\n")
    found = place.save("a\nmine\nc\n", version=NOWHERE, base="a\nb\nc\n")
    assert isinstance(found, Conflict)
    [clash] = found.clashes
    assert (clash.kind, clash.first_line, clash.last_line) == (Kind.CLASH, 2, 3)
    assert found.merged == "a\r\nB\r\nB2\r\nmine\r\nc\r\n"
    rows = [*lines_of(found.merged)]
    for side, expected in ((clash.yours, "a\nmine\nc\n"), (clash.theirs, "a\nB\nB2\nc\n")):
        chosen = [*rows[: clash.merged_first - 1], *lines_of(side), *rows[clash.merged_last :]]
        assert "\n".join(chosen) == expected


@given(base=st.none() | st.text("ab\r\n", max_size=12), yours=st.text("ab\r\n", max_size=12), theirs=st.text("ab\n"))
def test_the_places_of_a_conflict_are_lines_of_both_texts(
    tmp_path_factory: pytest.TempPathFactory, base: str | None, yours: str, theirs: str
) -> None:
    place = Place(tmp_path_factory.mktemp("place"))
    place.write("TODO.md", theirs)
    found = place.save(yours, version=NOWHERE, base=base)
    if isinstance(found, Saved):
        assert lines_of(yours) == lines_of(theirs)
        return
    for clash in found.clashes:
        assert "\n".join(lines_of(theirs)[clash.first_line - 1 : clash.last_line]) == clash.theirs
        shown = lines_of(found.merged)[clash.merged_first - 1 : clash.merged_last]
        assert {*lines_of(clash.yours)} <= {*shown, ""} or clash.kind is Kind.THEIRS
    assert place.bytes() == theirs.encode()


def at_once(actions: Sequence[Callable[[], Saved | Conflict]]) -> list[type]:
    """What came of each, if all are done at the same moment."""
    barrier, found = threading.Barrier(len(actions)), list[type]()

    def act(action: Callable[[], Saved | Conflict]) -> None:
        barrier.wait()
        found.append(type(action()))

    threads = [threading.Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_of_several_who_save_at_once_exactly_one_wins(place: Place) -> None:
    """In threads of one server, and for two loops with the same list."""
    place.loop(name="other", tasks="TODO.md")
    for turn in range(10):
        version = place.read().version
        standings = [place.standing(name) for name in ("night", "other") * 3]
        actions = [
            partial(documents.save, each, "todo", f"{turn} {number}\n", version)
            for number, each in enumerate(standings)
        ]
        assert sorted(each.__name__ for each in at_once(actions)) == ["Conflict"] * 5 + ["Saved"]
    assert files(place.work) == ["TODO.md"]


def _save_in_a_process(root: Path, work: Path, text: str, version: str, go: Any, wins: Any) -> None:
    [standing] = Registry(root).in_workspace(work)
    go.wait()
    if isinstance(documents.save(standing, "todo", text, version), Saved):
        wins.put(text)


def test_of_several_processes_that_save_at_once_exactly_one_wins(place: Place) -> None:
    fork = multiprocessing.get_context("fork")
    for turn in range(3):
        go, wins, version = fork.Event(), fork.SimpleQueue(), place.read().version
        people = [
            fork.Process(
                target=_save_in_a_process,
                args=(place.root / "state", place.work, f"{turn} {number}\n" * 1000, version, go, wins),
            )
            for number in range(4)
        ]
        for each in people:
            each.start()
        go.set()
        for each in people:
            each.join()
        assert place.bytes().decode() == wins.get()
        assert wins.empty()


def test_a_kill_before_the_new_text_is_in_its_place_leaves_the_old_file_whole(place: Place) -> None:
    standing, version = place.standing(), place.read().version
    if (pid := os.fork()) == 0:
        os.replace = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
        documents.save(standing, "todo", "mine\n", version)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert place.bytes() == PLAN.encode()
    assert isinstance(place.save("mine\n", version=version), Saved)
    assert place.bytes() == b"mine\n"


def test_a_full_disk_leaves_the_old_file_whole_and_no_draft(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="cannot be written") as refused:
        place.save("mine\n")
    assert refused.value.cause == "No space left on device"
    assert (place.bytes(), files(place.work)) == (PLAN.encode(), ["TODO.md"])


def test_a_task_that_is_added_waits_for_a_person_who_saves(place: Place) -> None:
    opened = place.read()
    operation.add(place.standing(), "one more")
    assert isinstance(place.save("mine\n", version=opened.version), Conflict)
    assert place.bytes() == f"{PLAN}- [ ] one more\n".encode()


# -- ticking -----------------------------------------------------------------------------------------------------------


def test_a_tick_changes_one_box_and_nothing_else(place: Place) -> None:
    place.write("TODO.md", PLAN.replace("\n", "\r\n"))
    assert isinstance(place.tick(4), Saved)
    assert place.bytes() == PLAN.replace("[ ] build", "[x] build").replace("\n", "\r\n").encode()
    assert isinstance(place.tick(4, ticked=False), Saved)
    assert place.bytes() == PLAN.replace("\n", "\r\n").encode()


def test_a_box_that_is_ticked_already_is_left_alone(place: Place) -> None:
    before = written(place)
    found = place.tick(3)
    assert isinstance(found, Saved)
    assert not found.changed
    assert written(place) == before


@pytest.mark.parametrize("line", [4, 2, 0, -1, 100])
def test_a_line_without_a_box_is_refused(place: Place, line: int) -> None:
    place.write("TODO.md", CODE)
    with pytest.raises(UserError, match=f"TODO.md has no box in line {line}"):
        place.tick(line)
    assert place.bytes() == CODE.encode()


def test_a_tick_finds_its_box_in_a_newer_version_by_its_words(place: Place) -> None:
    opened = place.read()
    place.write("TODO.md", "# New\n\nwords\n\n- [x] build it\n- [ ] test it\n")
    assert isinstance(place.tick(5, version=opened.version, shown="test it"), Saved)
    assert place.bytes() == b"# New\n\nwords\n\n- [x] build it\n- [x] test it\n"


@pytest.mark.parametrize(
    "now",
    [
        "- [ ] build it\n",  # it is gone
        "- [ ] test it well\n",  # it has other words
        "- [ ] test it\n- [ ] test it\n",  # which one?
        "- [x] test it\n- [ ] test it\n",  # the one that was meant may be ticked, and the other must not be
        "```\n- [ ] test it\n```\n",
        "",
    ],
)
def test_a_tick_that_could_hit_the_wrong_box_is_a_conflict(place: Place, now: str) -> None:
    opened = place.read()
    place.write("TODO.md", now)
    for shown in ("test it", None):
        found = place.tick(5, version=opened.version, shown=shown)
        assert isinstance(found, Conflict)
        assert (found.theirs, found.merged, found.clashes) == (now, now, ())
    assert place.bytes() == now.encode()


def test_what_someone_else_ticked_meanwhile_is_ticked(place: Place) -> None:
    opened = place.read()
    place.write("TODO.md", PLAN.replace("[ ] test", "[x] test"))
    found = place.tick(5, version=opened.version, shown="test it")
    assert isinstance(found, Saved)
    assert not found.changed


def test_ticks_of_several_people_at_once_are_all_kept(place: Place) -> None:
    place.write("TODO.md", "".join(f"- [ ] task {number}\n" for number in range(4)))
    standing, version = place.standing(), place.read().version
    actions = [
        partial(documents.tick, standing, "todo", number + 1, True, version, f"task {number}") for number in range(4)
    ]
    assert {*at_once(actions)} == {Saved}
    assert place.bytes() == b"".join(b"- [x] task %d\n" % number for number in range(4))


# -- what the loop makes of it -----------------------------------------------------------------------------------------


def a_running_loop(place: Place) -> None:
    """It has read its list, and round 1 works."""
    loop = a_loop(tasks="TODO.md")
    known = of_checklist(PLAN, loop, place.standing().state, None)
    place.loop(run_started(tasks=known), started(1), tasks="TODO.md")


def test_a_task_removed_from_a_running_loop_is_saved_and_warned_about(place: Place) -> None:
    """As after `tasks edit`: the engine cannot know who removed it, so the end of the round finds a damaged list."""
    a_running_loop(place)
    with place.at_work():
        found = place.save(PLAN.replace("- [ ] test it\n", ""))
    assert isinstance(found, Saved)
    assert found.warnings == (
        "TODO.md lost 1 open task: vanished without being ticked.",
        "The loop will be blocked because of that. To drop a task while it runs, skip it instead.",
    )


def test_a_task_that_was_ticked_added_or_moved_is_not_warned_about(place: Place) -> None:
    a_running_loop(place)
    with place.at_work():
        for text in (
            PLAN.replace("[ ] test", "[x] test"),
            f"{PLAN}- [ ] more\n",
            "- [ ] test it\n- [ ] build it, and note why\n- [ ] more\n",
        ):
            found = place.save(text)
            assert isinstance(found, Saved)
            assert found.warnings == ()


def test_a_paused_loop_s_list_is_its_person_s(place: Place) -> None:
    loop = a_loop(tasks="TODO.md")
    known = of_checklist(PLAN, loop, place.standing().state, None)
    place.loop(run_started(tasks=known), *a_round(1, tasks=known), stopped(End.PAUSED), tasks="TODO.md")
    found = place.save("- [ ] something else\n")
    assert isinstance(found, Saved)
    assert found.warnings == ()
    emptied = place.save("no more\n")
    assert isinstance(emptied, Saved)
    assert emptied.warnings == ("TODO.md has no tasks.",)


def test_notes_are_no_list(place: Place) -> None:
    a_running_loop(place)
    place.loop(run_started(), started(1), tasks="TODO.md", progress="PROGRESS.md")
    place.write("TODO.md", "nothing\n")
    found = place.save("notes\n", "progress")
    assert isinstance(found, Saved)
    assert found.warnings == ()
