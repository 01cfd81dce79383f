"""Files in another tool's format: whole or not there, each part once, and nothing through a link."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, Record, RoundEnded
from bydawn.core.history import History
from bydawn.core.loop import Loop
from bydawn.core.replay import after, replay
from bydawn.core.state import LoopState
from bydawn.dialects.follower import DialectFollower, digest_at, has_grown, refuse_unwritable, remove
from bydawn.dialects.seam import Files, Log, LogFile, Source, View, Whole
from bydawn.dialects.waylon_smithers import WaylonSmithers, files
from bydawn.dialects.written import Written
from core.facts_made import BORN, NOON, PROMISED, a_note, a_round, numbered, run_started, started

Told = Callable[[AnyFact], Iterable[View]]


class Diary(WaylonSmithers):
    """A dialect with other files."""

    def __init__(self, tell: Told) -> None:
        self._tell = tell

    def files(self, loop: Loop) -> Files:
        return replace(files.files(loop), logs=tuple(LogFile(path) for path in ("all", "grown", ".codex/deep/a")))

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:  # noqa: ARG002
        yield from self._tell(fact)


class Story:
    """A loop with a workspace and a folder of its own; what it cannot write it has `said`."""

    def __init__(self, place: Path) -> None:
        self.workspace, self.folder = place / "work", place / "loop"
        self.workspace.mkdir()
        self.folder.mkdir()
        self.facts: list[AnyFact] = [BORN]
        self.said: list[str] = []

    def left(self, round_: int, **files: str) -> None:
        """What a round left in the loop's folder."""
        folder = self.folder / "rounds" / f"{round_:04}"
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text)

    def follower(self, tell: Told) -> Callable[..., None]:
        """What a worker does: record facts, then show them. Another one is another worker."""
        follower = DialectFollower(
            Diary(tell), self.folder, self.workspace, lambda: numbered(self.facts), self.said.append
        )

        def happens(*facts: AnyFact) -> None:
            state = replay(numbered(self.facts))
            for fact in facts:
                self.facts.append(fact)
                state = after(state, Record(seq=len(self.facts), at=NOON, fact=fact))
                follower.saw(fact, PROMISED, state)

        return happens

    def shows(self, *views: View) -> None:
        self.follower(lambda _: views)(run_started())

    def read(self, path: str) -> str:
        return (self.workspace / path).read_text()


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path.resolve())


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# -- whole or not there ------------------------------------------------------------------------------------------------


def page(number: int) -> str:
    """Text whose end shows that nothing is missing; every other page is long."""
    return f"{number}\n" + "x\n" * (number % 2) * 50_000 + f"{number}\n"


def test_no_reader_ever_sees_a_part_of_a_file(story: Story) -> None:
    """W-101."""
    path, done, torn, seen = story.workspace / ".codex/state", threading.Event(), list[str](), set[str]()

    def look() -> None:
        while not done.is_set():
            text = path.read_text()
            seen.add(text[:5])
            if not text or text.partition("\n")[0] != text.rstrip("\n").rpartition("\n")[2]:
                torn.append(text[:20])

    numbers = iter(range(302))
    happens = story.follower(lambda fact: [] if fact is BORN else [Whole(".codex/state", page(next(numbers)))])
    happens(run_started())
    reader = threading.Thread(target=look)
    reader.start()
    happens(*(a_note(f"n-{number}") for number in range(300)))
    done.set()
    reader.join()
    assert torn == []
    assert len(seen) > 1
    assert path.read_text() == page(300)
    assert everything(story.workspace) == [".codex", ".codex/state"]
    assert story.said == []


def test_a_text_that_has_not_changed_is_not_written_again(story: Story) -> None:
    happens = story.follower(lambda fact: [Whole("a", "new" if fact == a_note("b") else "old")])
    happens(run_started())
    before = (story.workspace / "a").stat()
    happens(a_note("a"))
    assert (story.workspace / "a").stat() == before
    happens(a_note("b"))
    assert story.read("a") == "new"


def test_a_file_is_like_any_other_of_the_repository(story: Story) -> None:
    story.shows(Whole("in/a", "ä\udcff\n"), Whole("in/b", Source(1, "reply")))
    mask = os.umask(0)
    os.umask(mask)
    assert [(story.workspace / path).stat().st_mode & 0o777 for path in ("in/a", "in/b")] == [0o644 & ~mask] * 2
    assert story.read("in/a") == "ä?\n"  # what cannot be written does not keep the rest from it


def test_a_copy_is_what_the_round_left_and_empty_if_it_left_nothing(story: Story) -> None:
    story.left(1, reply="All done.\n")
    story.shows(
        Whole("one", Source(1, "reply")), Whole("none", Source(1, "stdout")), Whole("never", Source(2, "reply"))
    )
    assert [story.read(path) for path in ("one", "none", "never")] == ["All done.\n", "", ""]


def test_a_copy_replaces_the_one_before(story: Story) -> None:
    story.left(1, reply="a much longer text\n")
    story.left(2, reply="short\n")
    story.shows(Whole("one", Source(1, "reply")), Whole("one", Source(2, "reply")))
    assert story.read("one") == "short\n"


def test_what_cannot_be_written_is_said_once_and_the_rest_is_written(story: Story) -> None:
    (story.workspace / "file").write_text("mine")
    (story.workspace / "folder").mkdir()
    views: list[View] = [
        Whole("file/a", "1"),
        Whole("folder", "2"),
        Whole("file/b", Source(1, "reply")),
        Whole("fine", "3"),
    ]
    happens = story.follower(lambda _: views)
    happens(run_started(), a_note("a"), a_note("b"))
    assert [line.split(" cannot be written: ")[0] for line in story.said] == ["file/a", "folder", "file/b"]
    assert all(line.endswith("; the loop goes on without it") for line in story.said)
    assert story.read("fine") == "3"
    assert everything(story.workspace) == ["file", "fine", "folder"]


def test_what_looks_like_a_draft_and_is_a_persons_stays(story: Story) -> None:
    (story.workspace / ".a.tmp").write_text("precious")
    (story.workspace / ".bydawn-1-1.tmp").write_text("precious")
    story.shows(Whole("a", "x"), Whole("b", Source(1, "reply")))
    assert [story.read(path) for path in (".a.tmp", ".bydawn-1-1.tmp", "a", "b")] == ["precious", "precious", "x", ""]


def test_what_a_killed_writer_left_is_swept_away_by_the_next_and_nothing_else_is(story: Story) -> None:
    """W-101: by its name it is a draft of this very loop's."""
    loop = replace(PROMISED, uid="d")  # 100, as a number
    state = story.workspace / files.Paths(loop).state
    state.parent.mkdir(parents=True)
    mine, other = state.with_name(".bydawn-100-7.tmp"), state.with_name(".bydawn-99-7.tmp")
    for path in (mine, other):
        path.write_text("half of")
    os.mkfifo(state.with_name(".bydawn-100-8.tmp"))
    follower = DialectFollower(
        WaylonSmithers(), story.folder, story.workspace, lambda: numbered(story.facts), story.said.append
    )
    follower.saw(run_started(), loop, replay(numbered([*story.facts, run_started()])))
    assert sorted(path.name for path in state.parent.glob(".*")) == [".bydawn-100-8.tmp", ".bydawn-99-7.tmp"]
    assert state.is_file()


# -- links -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", [".codex", ".codex/deep"])
@pytest.mark.parametrize(
    "view",
    [Whole(".codex/deep/a", "x"), Whole(".codex/deep/a", Source(1, "r")), Log(".codex/deep/a", Source(1, "r"))],
)
def test_nothing_is_written_through_a_link_in_the_workspace(
    link: str, view: View, story: Story, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (story.workspace / link).parent.mkdir(exist_ok=True)
    (story.workspace / link).symlink_to(outside)
    happens = story.follower(lambda _: [view])
    happens(run_started(), a_note("a"))
    assert everything(outside) == ["deep"]
    assert len(story.said) == 1
    assert story.said[0].startswith(".codex/deep/a cannot be written")


def test_a_link_in_place_of_the_file_is_replaced_and_what_it_led_to_is_left_alone(story: Story, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    for name in ("replaced", "copied", "grown"):
        (story.workspace / name).symlink_to(tmp_path / "precious")
    story.left(1, reply="r")
    source = Source(1, "reply")
    story.shows(Whole("replaced", "r"), Whole("copied", source), Log("grown", source))
    assert (tmp_path / "precious").read_text() == "mine"
    assert [(story.workspace / name).is_symlink() for name in ("replaced", "copied", "grown")] == [False, False, True]
    assert [line.split()[0] for line in story.said] == ["grown"]


def test_a_link_on_an_absolute_path_is_not_followed(story: Story, tmp_path: Path) -> None:
    """W-025: where it leads was found out before, so that a link can only have come since."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    story.shows(Whole(f"{story.workspace.parent}/real/deep/a", "x"), Whole(f"{story.workspace.parent}/link/b", "x"))
    assert everything(tmp_path / "real") == ["deep", "deep/a"]
    assert [line.split(" ")[0] for line in story.said] == [f"{story.workspace.parent}/link/b"]
    assert remove(story.workspace, [f"{story.workspace.parent}/link/deep/a"]) == ([], {})


def test_a_file_that_was_removed_is_written_again_even_with_the_same_text(story: Story) -> None:
    """And what is not a regular file is not removed."""
    (story.workspace / "folder").mkdir()
    steps = iter(
        list[View]([Whole("a", "x"), Whole("a", None), Whole("a", None), Whole("folder", None), Whole("a", "x")])
    )
    happens = story.follower(lambda fact: [] if fact is BORN else [next(steps)])
    happens(run_started(), a_note("a"))
    assert everything(story.workspace) == ["folder"]
    happens(*(a_note(f"n-{number}") for number in range(3)))
    assert everything(story.workspace) == ["a", "folder"]
    assert story.said == []


# -- files that grow ---------------------------------------------------------------------------------------------------


SAME = "the file that is there"


def growing(fact: AnyFact) -> list[View]:
    return [Log("all", Source(fact.round, "stdout"))] if isinstance(fact, RoundEnded) else []


def test_each_round_is_added_once_behind_what_is_there(story: Story) -> None:
    """W-033."""
    (story.workspace / "all").write_text("mine\n")
    for number in (1, 2, 3):
        story.left(number, stdout=f"{number}\n")
    happens = story.follower(growing)
    happens(run_started(), *a_round(1), *a_round(2))
    story.follower(growing)(run_started(), *a_round(3))  # another worker
    story.follower(growing)(run_started())
    assert story.read("all") == "mine\n1\n2\n3\n"


@pytest.mark.parametrize("there", ["mine\n", "mine\non", "mine\none\n"])
def test_whenever_a_worker_dies_the_next_one_adds_what_is_missing(story: Story, there: str) -> None:
    """W-006, W-033: before the first byte, in the middle, and when all was done."""
    story.left(1, stdout="one\n")
    (story.workspace / "all").write_text("mine\n")
    happens = story.follower(growing)
    happens(run_started(), *a_round(1)[:-1])
    story.facts += a_round(1)[-1:]
    (story.workspace / "all").write_text(there)
    for _ in range(2):
        story.follower(growing)(run_started())
        assert story.read("all") == "mine\none\n"


@pytest.mark.parametrize("marks", [None, "", "{"])
def test_without_marks_nothing_of_the_past_is_added_again(story: Story, marks: str | None) -> None:
    story.left(1, stdout="one\n")
    story.follower(growing)(run_started(), *a_round(1))
    if marks is None:
        (story.folder / "marks.json").unlink()
        (story.folder / "marks.json").mkdir()
    else:
        (story.folder / "marks.json").write_text(marks)
    story.follower(growing)(run_started())
    assert story.read("all") == "one\n"


def test_a_file_that_was_exchanged_for_another_is_nobody_elses_loss(story: Story) -> None:
    """W-033: rotated in between, and somebody has written into the new one."""
    story.left(1, stdout="one\n")
    story.follower(growing)(run_started(), *a_round(1))
    (story.workspace / "all").rename(story.workspace / "old")
    (story.workspace / "all").write_text("theirs\n")
    story.follower(growing)(run_started())
    assert (story.read("all"), story.read("old")) == ("theirs\n", "one\n")


def test_what_somebody_else_added_since_is_left_alone(story: Story) -> None:
    story.left(1, stdout="one\n")
    story.follower(growing)(run_started(), *a_round(1))
    with (story.workspace / "all").open("a") as file:
        file.write("theirs\n")
    story.follower(growing)(run_started())
    assert story.read("all") == "one\ntheirs\n"


def test_a_file_that_a_person_emptied_grows_from_there(story: Story) -> None:
    story.left(1, stdout="one\n")
    story.left(2, stdout="two\n")
    happens = story.follower(growing)
    happens(run_started(), *a_round(1))
    (story.workspace / "all").write_text("")
    happens(*a_round(2))
    assert story.read("all") == "two\n"


def test_half_a_line_of_a_killed_agent_spoils_no_other(story: Story) -> None:
    """W-033."""
    story.left(1, stdout='{"type":')
    story.left(2, stdout="{}\n")
    happens = story.follower(growing)
    happens(run_started(), *a_round(1), *a_round(2))
    story.follower(growing)(run_started())
    assert story.read("all") == '{"type":\n{}\n'


def test_a_round_that_printed_nothing_adds_nothing(story: Story) -> None:
    story.follower(growing)(run_started(), *a_round(1))
    assert story.read("all") == ""


def test_views_that_a_crash_left_out_are_made_up_for(story: Story) -> None:
    """W-006."""

    def tell(fact: AnyFact) -> list[View]:
        return [Whole(f"reply_{fact.round}", Source(fact.round, "reply"))] if isinstance(fact, RoundEnded) else []

    story.left(1, reply="one\n")
    story.facts += [run_started(), *a_round(1)]  # recorded, and then the power went
    story.follower(tell)(run_started())
    assert story.read("reply_1") == "one\n"
    (story.workspace / "reply_1").unlink()
    story.facts.append(started(2))
    story.follower(tell)(run_started())
    assert everything(story.workspace) == []  # another round began since: that one had been shown


# -- cleaning up -------------------------------------------------------------------------------------------------------


def test_files_that_were_named_are_removed_and_of_folders_only_our_own(story: Story) -> None:
    """W-060."""
    story.shows(*(Whole(path, "x") for path in ("top", "a/b/one", "a/b/two", "a/three", "kept/four")))
    (story.workspace / "kept/mine").write_text("mine")
    paths = ["top", "a/b/one", "a/b/two", "a/three", "kept/four", "a/b/never", "nowhere/five"]
    assert remove(story.workspace, paths, "a/b") == (paths[:5], {})
    assert everything(story.workspace) == ["a", "kept", "kept/mine"]
    assert remove(story.workspace, [], "kept") == ([], {})
    assert (story.workspace / "kept/mine").exists()


def test_a_file_is_known_by_the_digest_of_what_was_written(story: Story, tmp_path: Path) -> None:
    """W-060: what somebody has changed since is theirs."""
    story.left(1, reply="said")
    story.shows(Whole("copied", Source(1, "reply")), Whole("empty", Source(1, "none")), Whole("text", "said"))

    def is_ours(path: str) -> bool:
        return Written(story.folder).recognizes(path, digest_at(story.workspace, path))

    assert all(is_ours(path) for path in ("copied", "empty", "text"))
    (story.workspace / "copied").write_text("said, and more")
    assert not is_ours("copied")
    (story.workspace / "copied").write_text("said")
    assert is_ours("copied"), "it says what was written"
    (tmp_path / "origin").write_text("said")
    for path in ("copied", "text"):
        (story.workspace / path).unlink()
    (story.workspace / "copied").symlink_to(tmp_path / "origin")
    os.mkfifo(story.workspace / "text")
    assert not any(is_ours(path) for path in ("copied", "text", "never", "no/where"))


def test_a_crash_between_note_and_file_makes_no_strangers_file_of_it(story: Story) -> None:
    """W-101: twice in a row, even."""
    story.shows(Whole("a", "one"))
    for _ in range(2):
        written = Written(story.folder)
        assert written.recognizes("a", digest_at(story.workspace, "a"))
        written.note({"a": f"what was to be written, {os.urandom(4).hex()}"})
    assert Written(story.folder).recognizes("a", digest_at(story.workspace, "a"))


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_where_the_digests_are_damaged_none_is_known(story: Story, text: str) -> None:
    (story.folder / "written.json").write_text(text)
    assert not Written(story.folder)
    story.shows(Whole("a", "one"))
    assert Written(story.folder).recognizes("a", digest_at(story.workspace, "a"))


def test_a_file_that_grew_is_known_by_where_it_ended(story: Story) -> None:
    """W-033."""
    story.left(1, stdout="one\n")
    story.follower(growing)(run_started(), *a_round(1))

    def is_ours() -> bool:
        return has_grown(story.folder, story.workspace, "all")

    assert is_ours()
    (story.workspace / "all").write_text("one\ntheirs\n")
    assert is_ours(), "others may append"
    (story.workspace / "all").write_text("me\n")
    assert not is_ours()
    (story.workspace / "all").unlink()
    (story.workspace / "other").write_text("")
    (story.workspace / "all").write_text("longer than ours\n")
    assert not is_ours()


def test_only_plain_files_are_removed_and_none_through_a_link(story: Story, tmp_path: Path) -> None:
    """W-060."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("mine")
    for name, target in {"link": "outside", "file": "outside/file", "dead": "nowhere"}.items():
        (story.workspace / name).symlink_to(tmp_path / target)
    (story.workspace / "folder").mkdir()
    os.mkfifo(story.workspace / "pipe")
    before = everything(story.workspace)
    paths = ["link/file", "link", "file", "file/x", "dead", "dead/x", "folder", "pipe"]
    assert remove(story.workspace, paths, "x") == ([], {})
    assert everything(story.workspace) == before
    assert (tmp_path / "outside/file").read_text() == "mine"


def test_a_file_that_was_named_in_full_is_removed_as_well(story: Story, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("mine")
    story.shows(Whole(f"{tmp_path}/out/state", "x"))
    assert remove(story.workspace, [f"{tmp_path}/out/state"], "x") == ([f"{tmp_path}/out/state"], {})
    assert everything(tmp_path / "out") == ["mine"]


@pytest.mark.parametrize("folder", ["link/inner", "link"])
def test_a_folder_is_not_removed_through_a_link(story: Story, tmp_path: Path, folder: str) -> None:
    """W-060."""
    (tmp_path / "outside/inner").mkdir(parents=True)
    (story.workspace / "link").symlink_to(tmp_path / "outside")
    assert remove(story.workspace, [], folder) == ([], {})
    assert everything(tmp_path / "outside") == ["inner"]


def test_nothing_is_made_on_the_way_to_remove_something(story: Story) -> None:
    assert remove(story.workspace, ["a/b/c", ".codex/x"], "x") == ([], {})
    assert everything(story.workspace) == []


# -- before anything is spent ------------------------------------------------------------------------------------------


def refused(workspace: Path, path: str) -> UserError:
    with pytest.raises(UserError) as error:
        refuse_unwritable(workspace, ["fine", path])
    assert error.value.hint
    return error.value


def test_a_path_that_leads_through_a_link_of_the_workspace_is_refused(story: Story, tmp_path: Path) -> None:
    (story.workspace / "link").symlink_to(tmp_path)
    (story.workspace / "deep").mkdir()
    (story.workspace / "deep/link").symlink_to("nowhere")
    for path, link in [("link/a", "link"), ("link/deep/a", "link"), ("deep/link/b/a", "deep/link")]:
        error = refused(story.workspace, path)
        assert error.what == f"{path} leads through a link"
        assert error.cause == f"{story.workspace / link} is one"


def test_a_path_below_a_file_is_refused(story: Story) -> None:
    (story.workspace / "file").write_text("mine")
    for path in ("file/a", "file/deep/a", f"{story.workspace}/file/a"):
        error = refused(story.workspace, path)
        assert (error.what, error.cause) == (f"{path} cannot be written", f"{story.workspace}/file is not a folder")


LOCKED = """
import sys
from pathlib import Path
from bydawn.core.errors import UserError
from bydawn.dialects.follower import refuse_unwritable
try:
    refuse_unwritable(Path(sys.argv[1]), ["locked/a"])
except UserError as error:
    print(error.what, error.cause, sep="; ")
"""


def test_a_folder_that_nobody_may_write_to_is_refused(story: Story) -> None:
    (story.workspace / "locked").mkdir(mode=0o500)
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [*drop, sys.executable, "-c", LOCKED, str(story.workspace)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == f"locked/a cannot be written; you may not write to {story.workspace}/locked\n", done.stderr


def test_whatever_can_be_made_is_fine_and_nothing_is_made_yet(story: Story, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("loop")
    paths = ["a", "a/b/c", ".codex/x/y.json", f"{tmp_path}/new/deep/a", f"{tmp_path}/link/a"]
    refuse_unwritable(story.workspace, paths)
    assert everything(story.workspace) == []
    assert not (tmp_path / "new").exists()


def test_the_workspace_itself_is_never_removed(tmp_path: Path) -> None:
    """W-060."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "state.json").write_text("{}")
    assert remove(workspace, ["state.json"], "x") == (["state.json"], {})
    assert workspace.is_dir()


@pytest.mark.parametrize("path", ["out", "out/"])
def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError):
        refuse_unwritable(tmp_path, [path])
