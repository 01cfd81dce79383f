"""Which loops are there, where do they live, and how do they stand? (FAULTS 37, DESIGN §10)"""

import json
import shutil
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, LoopDismissed, WaitStarted
from bydawn.core.values import Decided, End
from bydawn.operations.views import by_need, loop_view, since
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger
from bydawn.store.lock import Lock
from bydawn.store.registry import Registry, checked_name, free_name, slug, standing_of
from bydawn.system.user_folders import state_folder
from core.facts_made import BORN, NOON, a_loop, a_note, a_round, decided, run_started, stopped
from driving import OK, Home


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "state")


def born(registry: Registry, workspace: Path, name: str, *facts: AnyFact, age: int = 0) -> Path:
    """A loop with this history on the disk."""
    folder = registry.home(workspace) / name
    folder.mkdir(parents=True)
    loop = a_loop(id=name, workspace=str(workspace), created_at=NOON - timedelta(days=age))
    (folder / "loop.json").write_bytes(msgspec.json.encode(loop))
    ledger = LoopLedger(LoopFolder(folder), print, str)
    for fact in (BORN, *facts):
        ledger.append(fact)
    ledger.close()
    return folder


# -- the one word for it -------------------------------------------------------------------------------------------

WAIT = WaitStarted(seconds=60, reason="429", decided=decided("agent-limit"))
# what the ledger says, is the lock held, the word
WORDS: list[tuple[list[AnyFact], bool, str]] = [
    ([run_started()], True, "running"),
    ([run_started(), *a_round(1), WAIT], True, "waiting"),
    ([run_started()], False, "crashed"),  # a stored word never says running
    ([run_started(), *a_round(1), WAIT], False, "crashed"),
    ([], False, "crashed"),  # born, and dead before its first run
    ([run_started(), stopped(End.PAUSED), run_started()], True, "running"),
    ([run_started(), stopped(End.PAUSED), run_started()], False, "crashed"),
]
WORDS += [([run_started(), stopped(end)], False, end.value) for end in End]


@pytest.mark.parametrize(("facts", "alive", "word"), WORDS)
def test_a_loop_is_called_what_it_is(
    registry: Registry, tmp_path: Path, facts: list[AnyFact], alive: bool, word: str
) -> None:
    folder = born(registry, tmp_path, "night", *facts)
    lock = Lock.take(folder / "lock") if alive else None
    standing = standing_of(LoopFolder(folder))
    assert standing is not None
    assert (standing.status, standing.alive) == (word, alive)
    assert standing.finished == (word in {"complete", "unverified"})
    if lock:
        lock.release()


def test_looking_at_loops_changes_nothing(registry: Registry, tmp_path: Path) -> None:
    folder = born(registry, tmp_path, "night", run_started())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    registry.everywhere()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_loop_without_its_first_fact_was_never_born(registry: Registry, tmp_path: Path) -> None:
    folder = born(registry, tmp_path, "night")
    (folder / "ledger.jsonl").write_bytes(b"")
    assert standing_of(LoopFolder(folder)) is None
    (folder / "loop.json").unlink()
    assert standing_of(LoopFolder(folder)) is None
    assert registry.everywhere() == []


@pytest.mark.parametrize("file", ["loop.json", "ledger.jsonl"])
@pytest.mark.parametrize("text", [b"{", b"\xff\xfe\n", b'{"v":1}\n'])
def test_a_damaged_loop_does_not_disappear_and_hides_no_other(
    registry: Registry, tmp_path: Path, file: str, text: bytes
) -> None:
    born(registry, tmp_path, "good", run_started())
    folder = born(registry, tmp_path, "night", run_started())
    (folder / file).write_bytes(text + b"\n")
    words = {standing.loop.id: standing.status for standing in registry.everywhere()}
    assert words == {"good": "crashed", "night": "damaged"}
    standing = standing_of(LoopFolder(folder))
    assert standing is not None
    assert standing.trouble is not None
    assert standing.trouble.hint


def test_what_is_no_loop_is_passed_over(registry: Registry, tmp_path: Path) -> None:
    born(registry, tmp_path, "night")
    (registry.root.loops / "a-file").write_text("hello")
    (registry.home(tmp_path) / "another-file").write_text("hello")
    (registry.home(tmp_path) / "empty").mkdir()
    assert len(registry.everywhere()) == 1


# -- finding the one that is meant ---------------------------------------------------------------------------------


def test_loops_of_one_folder_are_listed_from_the_oldest_on(registry: Registry, tmp_path: Path) -> None:
    for age, name in ((1, "young"), (9, "old"), (5, "middle")):
        born(registry, tmp_path, name, age=age)
    assert [standing.loop.id for standing in registry.in_workspace(tmp_path)] == ["old", "middle", "young"]


def test_folders_of_one_name_have_different_homes(registry: Registry) -> None:
    homes = {registry.home(Path(path)) for path in ("/a/shop", "/b/shop", "/a/Shop", "/", "/…")}
    assert len(homes) == 5
    assert all(home.parent == registry.root.loops for home in homes)


@pytest.fixture
def shops(registry: Registry, tmp_path: Path) -> Registry:
    """Two folders with a loop `night` each; one of them has a second loop."""
    for folder, loops in (("shop", ["night", "docs"]), ("blog", ["night"])):
        (tmp_path / folder).mkdir()
        for name in loops:
            born(registry, tmp_path / folder, name, run_started())
    return registry


# what is said, where, and the loop and folder that are meant
MEANT = [
    ("night", "shop", "shop"),  # the one that is here
    ("night", "blog", "blog"),
    ("NIGHT", "blog", "blog"),  # without regard to case
    ("docs", "blog", "shop"),  # only one loop has that name
    ("night@shop", "blog", "shop"),
    ("night@blog", "elsewhere", "blog"),
    (None, "blog", "blog"),  # the only one here
]


@pytest.mark.parametrize(("name", "where", "folder"), MEANT)
def test_a_loop_is_found_by_what_people_say(
    shops: Registry, tmp_path: Path, name: str | None, where: str, folder: str
) -> None:
    found = shops.find(name, tmp_path / where)
    assert Path(found.loop.workspace).name == folder


UNCLEAR = [
    ("night", "elsewhere", "several loops are called 'night'"),
    ("nihgt", "shop", "no loop called 'nihgt'"),
    ("night@shpo", "shop", "no loop called 'night@shpo'"),
    ("docs@blog", "shop", "no loop called 'docs@blog'"),
    ("", "shop", "no loop called ''"),
    (None, "shop", "there are several loops here"),
    (None, "elsewhere", "no loop in"),
]


@pytest.mark.parametrize(("name", "where", "what"), UNCLEAR)
def test_what_is_not_clear_is_never_guessed(
    shops: Registry, tmp_path: Path, name: str | None, where: str, what: str
) -> None:
    with pytest.raises(UserError) as caught:
        shops.find(name, tmp_path / where)
    assert caught.value.what.startswith(what)
    assert caught.value.hint


def test_of_several_here_the_one_that_runs_is_meant_or_to_resume_the_one_that_rests(
    registry: Registry, tmp_path: Path
) -> None:
    lock = Lock.take(born(registry, tmp_path, "busy", run_started()) / "lock")
    born(registry, tmp_path, "old", run_started(), stopped(End.LIMIT))
    born(registry, tmp_path, "done", run_started(), stopped(End.COMPLETE))
    assert registry.find(None, tmp_path).loop.id == "busy"
    assert registry.find(None, tmp_path, resting=True).loop.id == "old"
    lock.release()  # it has crashed
    assert registry.find(None, tmp_path).loop.id == "busy"
    with pytest.raises(UserError, match="several loops here"):
        registry.find(None, tmp_path, resting=True)  # a command that spends something does not choose
    lock = Lock.take(lock.path)
    other = Lock.take(born(registry, tmp_path, "busy-too", run_started()) / "lock")
    with pytest.raises(UserError, match="several loops here"):
        registry.find(None, tmp_path)
    for held in (lock, other):
        held.release()


def test_a_dismissed_loop_is_meant_only_if_it_is_named_or_alone(registry: Registry, tmp_path: Path) -> None:
    gone = LoopDismissed(by="ada")
    born(registry, tmp_path, "old", run_started(), stopped(End.BLOCKED), gone)
    assert registry.find(None, tmp_path).loop.id == "old"
    born(registry, tmp_path, "done", run_started(), stopped(End.COMPLETE))
    assert registry.find(None, tmp_path).loop.id == "done"
    assert registry.find("old", tmp_path).state.dismissed
    born(registry, tmp_path, "back", run_started(), stopped(End.BLOCKED), gone, run_started())
    assert not registry.find("back", tmp_path).state.dismissed


def test_of_several_here_the_one_that_is_unfinished_is_meant(registry: Registry, tmp_path: Path) -> None:
    born(registry, tmp_path, "old", run_started(), stopped(End.COMPLETE))
    born(registry, tmp_path, "new", run_started(), stopped(End.BLOCKED))
    assert registry.find(None, tmp_path).loop.id == "new"


def test_two_folders_of_one_name_are_told_apart_in_the_answer(registry: Registry, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "shop").mkdir(parents=True)
        born(registry, tmp_path / parent / "shop", "night")
    with pytest.raises(UserError) as caught:
        registry.find("night@shop", tmp_path)
    assert str(tmp_path / "a" / "shop") in caught.value.cause
    assert str(tmp_path / "b" / "shop") in caught.value.cause


# -- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "night", "Night-2", "v1.2_x", "0", "a" * 63])
def test_a_safe_name_is_taken_as_it_is(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a..b", "-n", ".hidden", "a.", "a.lock", "a b", "é", "a\n", "a\0b", "a@b", "a" * 64],
)
def test_a_name_that_is_not_safe_as_a_file_and_a_ref_is_refused_with_a_better_one(name: str) -> None:
    with pytest.raises(UserError) as caught:
        checked_name(name)
    suggested = caught.value.hint.rpartition("--name ")[2]
    assert checked_name(suggested) == suggested


@pytest.mark.parametrize("text", ["My Shop (API)", "../x", "…", "x" * 300, "a.lock", "-.-", "Ünï cödé", "a..b"])
def test_any_folder_name_becomes_a_safe_name_or_none(text: str) -> None:
    name = slug(text)
    assert name == "" or checked_name(name) == name


def test_a_name_that_is_taken_gets_a_number_without_regard_to_case() -> None:
    assert free_name("night", []) == "night"
    assert free_name("night", ["NIGHT"]) == "night-2"
    assert free_name("night", ["night", "Night-2", "other"]) == "night-3"


# -- where the truth lives -----------------------------------------------------------------------------------------


def test_the_state_folder_is_the_users_and_can_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    assert state_folder() == Path("/elsewhere/bydawn")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state_folder().is_relative_to("/home/ada")


def test_without_a_home_it_has_to_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    with pytest.raises(UserError, match="no state directory"):
        state_folder()


# -- the list of all -------------------------------------------------------------------------------------------------


def test_the_worst_comes_first_and_of_those_alike_the_oldest(registry: Registry, tmp_path: Path) -> None:
    def ended(end: End, minutes: int) -> AnyFact:
        return msgspec.structs.replace(
            stopped(end), decided=Decided(rule="x", at=NOON + timedelta(minutes=minutes), elapsed=0.0)
        )

    for name, fact in {
        "old-limit": ended(End.LIMIT, 1),
        "checkpoint": ended(End.CHECKPOINT, 2),
        "late-blocked": ended(End.BLOCKED, 9),
        "early-blocked": ended(End.BLOCKED, 3),
        "failed": ended(End.FAILED, 8),
        "done-early": ended(End.COMPLETE, 4),
        "done-late": ended(End.STOPPED, 5),
        "new-limit": ended(End.LIMIT, 7),
    }.items():
        born(registry, tmp_path, name, run_started(), fact)
    born(registry, tmp_path, "crashed", run_started())
    (born(registry, tmp_path, "damaged", run_started()) / "ledger.jsonl").write_bytes(b"x\n" * 3)
    lock = Lock.take(born(registry, tmp_path, "running", run_started()) / "lock")
    order = [each.loop.id for each in by_need(registry.everywhere())]
    lock.release()
    assert order == [
        *("damaged", "crashed", "failed", "early-blocked", "late-blocked", "checkpoint", "old-limit", "new-limit"),
        *("running", "done-late", "done-early"),
    ]


def test_a_note_does_not_make_a_state_younger(registry: Registry, tmp_path: Path) -> None:
    born(registry, tmp_path, "night", run_started(), stopped(End.BLOCKED), a_note("n-1"))
    [standing] = registry.everywhere()
    assert since(standing) == NOON
    assert loop_view(standing).since == NOON


def test_whoever_lists_all_loops_need_not_look_for_namesakes_of_each(registry: Registry, tmp_path: Path) -> None:
    for place in ("one", "two"):
        born(registry, tmp_path / place, "Night", run_started())
        born(registry, tmp_path / place, f"day-{place}", run_started())
    found = {(each.loop.id, each.unique, each.reference) for each in registry.everywhere()}
    assert found == {
        ("Night", False, "Night@one"),
        ("Night", False, "Night@two"),
        ("day-one", True, "day-one"),
        ("day-two", True, "day-two"),
    }


@pytest.mark.usefixtures("strace")
def test_one_more_loop_costs_status_few_system_calls(home: Home) -> None:
    """Three each for settings, snapshot and lock, four for the end of the ledger."""
    home.run(home.rounds([OK]), "--once")

    def calls(loops: int) -> int:
        for number in range(len([*home.folder().parent.iterdir()]), loops):
            shutil.copytree(home.folder(), home.folder().with_name(f"copy-{number}"), ignore=lambda *_: ["git"])
        trace = home.root / "trace"
        listed = home.bydawn("status", before=["strace", "-o", str(trace)])
        assert listed.out.count(str(home.repo)) == loops, listed
        return len(trace.read_text().splitlines())

    few = calls(5)
    assert (calls(25) - few) / 20 <= 16


def test_there_is_no_list_of_loops_that_could_be_lost(home: Home) -> None:
    """A loop is found by its folder alone: whatever else is deleted, from anywhere, and nothing needs repair."""
    assert home.run(home.rounds([OK]), "--rounds", "1").code == 4
    for path in (*home.states.iterdir(), home.repo / ".bydawn"):
        if path.name != "loops":
            shutil.rmtree(path)
    (home.states / "registry").mkdir()
    (home.states / "registry/repo.json").write_text("nonsense")
    for name in ("repo", "repo@repo", "REPO"):
        found = home.bydawn("status", name, "--json", cwd=home.root)
        assert (found.code, json.loads(found.out)["loops"][0]["workspace"]) == (0, str(home.repo))
    assert home.bydawn("doctor", "--repair", cwd=home.root) == (0, "  Nothing to repair.\n", "")
    assert home.bydawn("resume", "repo", "--rounds", "+1", cwd=home.root).code == 4
