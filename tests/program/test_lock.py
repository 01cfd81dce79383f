"""Who owns a loop? The kernel says (FAULTS 9, 25-27)."""

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bydawn.store.lock import Lock, Owned, is_held, owner, signature
from bydawn.system import kernel

HOLDER = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def python(code: str, *arguments: str, keeps: tuple[int, ...] = ()) -> subprocess.Popen[str]:
    """Another process; it ends when its stdin is closed."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=keeps)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_lock_can_be_taken_once(path: Path) -> None:
    lock = Lock.take(path, patience=0)
    with pytest.raises(Owned):
        Lock.take(path, patience=0)
    lock.release()
    Lock.take(path, patience=0).release()


def test_the_file_stays_when_the_lock_is_let_go_and_only_its_owner_can_read_it(path: Path) -> None:
    Lock.take(path).release()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_whoever_is_turned_away_hears_who_was_first(path: Path) -> None:
    lock = Lock.take(path)
    lock.sign("run-1")
    with pytest.raises(Owned, match=f"pid {os.getpid()}"):
        Lock.take(path, patience=0)
    assert signature(path)["run"] == "run-1"
    lock.release()


def test_an_owner_who_has_not_signed_yet_is_unknown_and_still_the_owner(path: Path) -> None:
    lock = Lock.take(path)
    with pytest.raises(Owned, match="an unknown process"):
        Lock.take(path, patience=0)
    lock.release()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pid",
        "pid x start y",
        f"pid {os.getpid()} start 1 boot {kernel.boot_id()} run r",  # the number was given to another process
        f"pid {os.getpid()} start {kernel.start_time(os.getpid())} boot 0-0 run r",  # … before the machine rebooted
        "\xff\0",
    ],
    ids=["empty", "no number", "no numbers", "reused", "rebooted", "no text"],  # the texts differ from run to run
)
def test_a_signature_that_fits_no_living_process_names_nobody(path: Path, text: str) -> None:
    path.write_text(text)
    assert owner(path) == ""


def test_a_killed_owner_that_no_one_has_waited_for_is_no_longer_the_owner(path: Path) -> None:
    """A request would name its run, and the run that has the lock by now would not take it."""
    signs = "import sys; from pathlib import Path; from bydawn.store.lock import Lock\n"
    signs += "lock = Lock.take(Path(sys.argv[1])); lock.sign('first'); print('signed', flush=True); sys.stdin.read()"
    with python(signs, str(path)) as first:
        assert (first_line(first), owner(path)) == ("signed", f"pid {first.pid}")
        first.kill()
        assert owner(path) == "", "at once, although `kill` returns before it has died"
        os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        second = Lock.take(path)
        assert kernel.start_time(first.pid) == signature(path)["start"]
        assert owner(path) == ""
        second.release()


def test_a_shorter_signature_leaves_nothing_of_the_longer_one(path: Path) -> None:
    lock = Lock.take(path)
    lock.sign("a-very-long-name-of-a-run")
    lock.sign("r")
    assert signature(path)["run"] == "r"
    lock.release()


def test_a_signature_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert signature(tmp_path / "nothing") == {}
    assert owner(tmp_path / "nothing") == ""


def test_a_starter_has_patience_with_somebody_who_only_looks(path: Path) -> None:
    lock, patience = Lock.take(path), 100
    began = time.monotonic()
    threading.Timer(0.2, lock.release).start()
    Lock.take(path, patience=patience).release()
    assert 0.1 < time.monotonic() - began < patience / 2


def test_who_comes_right_after_a_kill_waits_for_what_ends_the_rest_of_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guardian = Lock.take(path)
    path.write_text(f"pid 2147483 start 1 boot {kernel.boot_id()} run run-1")  # the worker is gone
    monkeypatch.setattr("bydawn.store.lock.time.sleep", lambda _: guardian.release())
    Lock.take(path, patience=0).release()


def test_looking_takes_nothing_away_from_anybody(path: Path) -> None:
    lock = Lock.take(path)
    assert is_held(path)
    lock.release()
    assert not is_held(path)
    Lock.take(path, patience=0).release()


def test_a_lock_that_was_never_taken_is_free(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()  # looking makes no file


def test_a_lock_shared_with_another_process_is_held_until_both_are_gone(path: Path) -> None:
    """As guardian and worker do: a free lock means that nothing of that run is alive."""
    lock = Lock.take(path)
    guardian = python(HOLDER, keeps=(lock.fd,))
    assert first_line(guardian) == "ready"
    lock.release()
    assert is_held(path)
    guardian.kill()
    guardian.communicate()
    assert not is_held(path)


def test_no_child_gets_the_lock_by_accident(path: Path) -> None:
    lock = Lock.take(path)
    subprocess.run(["true"], check=True, close_fds=False)
    assert not os.get_inheritable(lock.fd)
    lock.release()


def test_a_lock_that_somebody_deletes_is_noticed(path: Path) -> None:
    lock = Lock.take(path)
    assert lock.intact()
    path.unlink()
    assert not lock.intact()
    path.touch()  # a file of that name is not the same file
    assert not lock.intact()
    lock.release()


def test_a_link_in_its_place_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        Lock.take(path, patience=0)
    assert not (tmp_path / "elsewhere").exists()
    assert not is_held(path)


RACER = """
import sys; from pathlib import Path; from bydawn.store.lock import Lock, Owned
try: Lock.take(Path(sys.argv[1]), patience=0); print("mine", flush=True); sys.stdin.read()
except Owned: print("not mine", flush=True)
"""


def test_of_many_who_race_exactly_one_wins(path: Path) -> None:
    racers = [python(RACER, str(path)) for _ in range(8)]
    answers = [first_line(racer) for racer in racers]
    for racer in racers:
        racer.communicate()
    assert sorted(answers) == ["mine"] + ["not mine"] * 7
