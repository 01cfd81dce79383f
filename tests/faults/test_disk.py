"""A state folder that is full, becomes full, or cannot be written: blocked or refused; later it goes on (FAULTS 17-23).

The full disk is a real one: a small tmpfs in a mount namespace of its own, which needs no rights.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from driving import HANG, OK, Home, Said, is_error, said

GOAL = ("-t", "TODO.md", "-k", "test -e 1.txt", "-n", "0")
MEGABYTE = 1 << 20
PAGE = 4096


class SmallDisk:
    """A home whose state folder is a disk of four megabytes."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._mount = home.states
        home.states.mkdir(parents=True)
        script = 'mount -t tmpfs -o size=4m,mode=700 none "$1" && echo ready && exec sleep 3600'
        command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(self._mount)]
        self._keeper = subprocess.Popen(command, env=home.env, stdout=subprocess.PIPE, text=True)
        assert self._keeper.stdout
        assert self._keeper.stdout.readline() == "ready\n"
        home.states = Path(f"/proc/{self._keeper.pid}/root{home.states}")
        home.tasks(2)

    @property
    def inside(self) -> list[str]:
        """What stands before a command that is to see the disk."""
        enter = ["nsenter", f"--target={self._keeper.pid}", "--user", "--mount", "--preserve-credentials"]
        return [*enter, "sh", "-c", 'cd "$0" && exec "$@"', str(self.home.repo)]

    def run(self, agent: str, *arguments: str) -> Said:
        return self.home.run(agent, *GOAL, *arguments, before=self.inside)

    def resume(self) -> Said:
        return self.home.bydawn("resume", "repo", "--plain", before=self.inside)

    def state(self) -> tuple[str, str]:
        loop = self.home.status(before=self.inside)
        return loop["state"], loop["reason"]

    def bring_the_ledger_close_to_the_end_of_a_page(self) -> None:
        """By notes that a person leaves: the next record begins on this page and ends on one that has to be found."""
        ledger = self.home.folder() / "ledger.jsonl"
        empty = ledger.stat().st_size
        self._tell("x")
        length = ledger.stat().st_size - empty - 1
        self._tell("x" * (2 * PAGE - 50 - ledger.stat().st_size % PAGE - length))
        assert ledger.stat().st_size % PAGE > PAGE - 100

    def _tell(self, note: str) -> None:
        assert self.home.bydawn("tell", "repo", note, before=self.inside).code == 0

    def fill(self, *, leaving: int = 0) -> None:
        """Until so many bytes are left."""
        with (self.home.states / "ballast").open("wb", buffering=0) as ballast:
            try:
                while ballast.write(bytes(PAGE)):
                    pass
            except OSError:
                ballast.truncate(max(0, ballast.tell() - leaving))

    def free(self) -> None:
        (self.home.states / "ballast").unlink(missing_ok=True)

    def mount(self, *arguments: str) -> None:
        subprocess.run([*self.inside, "mount", *arguments], check=True, env=self.home.env)

    def cover_with_a_read_only_mount(self, folder: Path) -> None:
        """Files that are open stay writable; no other can be opened for writing."""
        path = self._as_seen_inside(folder)
        self.mount("--bind", path, path)
        self.mount("-o", "remount,bind,ro", path)

    def uncover(self, folder: Path) -> None:
        subprocess.run([*self.inside, "umount", "--lazy", self._as_seen_inside(folder)], check=True, env=self.home.env)

    def _as_seen_inside(self, folder: Path) -> str:
        outside = not folder.is_relative_to(self.home.states)
        return str(folder if outside else self._mount / folder.relative_to(self.home.states))

    def close(self) -> None:
        self._keeper.kill()
        self._keeper.communicate()


@pytest.fixture
def disk(home: Home) -> Iterator[SmallDisk]:
    disk = SmallDisk(home)
    yield disk
    disk.close()


def an_agent(home: Home) -> str:
    return home.each_task({"write": {"path": "{n}.txt", "text": "{task}\n"}})


def test_a_disk_that_is_nearly_full_blocks_the_loop_before_a_round_is_spent(disk: SmallDisk) -> None:
    disk.fill(leaving=MEGABYTE // 2)
    ended = disk.run(an_agent(disk.home))
    assert ended.code == 3
    assert "disk" in ended.out
    assert disk.state() == ("blocked", "the disk is nearly full")
    assert disk.home.facts("round.started") == []

    disk.free()
    assert disk.resume().code == 0


def test_a_disk_without_a_single_byte_left_is_told_and_nothing_is_broken(disk: SmallDisk) -> None:
    disk.fill()
    ended = disk.run(an_agent(disk.home))
    assert ended.code in (1, 3)
    assert ended.code == 3 or is_error(ended.err), ended
    assert "No space left" in ended.out + ended.err

    disk.free()
    assert disk.run(an_agent(disk.home)).code == 0


def test_an_agent_that_fills_the_disk_with_its_output_is_stopped_and_the_loop_is_blocked(disk: SmallDisk) -> None:
    flood = {"flood": {"bytes": 16 * MEGABYTE, "lines": True}}
    ended = disk.run(disk.home.rounds([flood, HANG], [{"tick": None}, {"run": ["sh", "-c", "date +%N > 1.txt"]}, OK]))
    assert ended.code == 3, ended
    assert disk.state()[0] == "blocked"
    assert "disk" in disk.state()[1]
    assert disk.home.outcomes() == ["interrupted"]

    (disk.home.folder() / "rounds/0001/stdout").unlink()
    assert disk.resume().code == 0


def test_a_disk_that_fills_up_during_a_round_blocks_the_loop_with_the_reserve_for_its_last_words(
    disk: SmallDisk,
) -> None:
    wait, gate = disk.home.gate()
    agent = disk.home.each_task({"write": {"path": "{n}.txt", "text": "{task}\n"}}, wait)
    running = disk.home.start_run(agent, *GOAL, before=disk.inside)
    disk.home.await_round(1)
    disk.fill()
    ended = said(running)
    assert ended.code == 3, ended
    assert disk.state()[0] == "blocked"
    assert "disk" in disk.state()[1]

    disk.free()
    gate.touch()
    assert disk.resume().code == 0
    assert [fact["seq"] for fact in disk.home.facts()] == list(range(1, len(disk.home.facts()) + 1))


def test_a_record_that_fits_only_in_part_is_taken_back_and_written_from_the_reserve(disk: SmallDisk) -> None:
    assert disk.run(an_agent(disk.home), "--once").code == 4
    disk.bring_the_ledger_close_to_the_end_of_a_page()
    before = (disk.home.folder() / "ledger.jsonl").read_bytes()
    disk.fill()
    assert disk.resume().code == 3
    assert disk.state()[0] == "blocked"
    assert (disk.home.folder() / "ledger.jsonl").read_bytes().startswith(before)
    assert [fact["seq"] for fact in disk.home.facts()] == list(range(1, len(disk.home.facts()) + 1))
    assert not (disk.home.folder() / "reserve").exists()

    disk.free()
    assert disk.resume().code == 0


def test_a_read_only_state_folder_is_told_and_can_still_be_looked_at(disk: SmallDisk) -> None:
    assert disk.run(an_agent(disk.home), "--once").code == 4
    disk.cover_with_a_read_only_mount(disk.home.folder())
    ended = disk.resume()
    assert ended.code == 1
    assert is_error(ended.err)
    assert "Read-only file system" in ended.err
    assert disk.state()[0] == "limit"

    disk.uncover(disk.home.folder())
    assert disk.resume().code == 0


def test_a_read_only_workspace_is_named_before_any_agent_is_paid(disk: SmallDisk) -> None:
    """FAULTS 21. Modes alone would not stop root."""
    agent = an_agent(disk.home)
    disk.cover_with_a_read_only_mount(disk.home.repo)
    assert disk.run(agent).code == 3
    state, reason = disk.state()
    assert (state, f"the folder {disk.home.repo} cannot be written" in reason) == ("blocked", True), reason
    assert disk.home.facts("round.started") == []

    disk.uncover(disk.home.repo)
    assert disk.resume().code == 0


def test_a_state_folder_that_becomes_read_only_ends_the_run_with_a_word(disk: SmallDisk) -> None:
    wait, gate = disk.home.gate()
    running = disk.home.start_run(
        disk.home.each_task(wait, {"write": {"path": "{n}.txt", "text": "{task}"}}), *GOAL, before=disk.inside
    )
    disk.home.await_round(1)
    disk.cover_with_a_read_only_mount(disk.home.folder())
    gate.touch()
    ended = said(running)
    assert ended.code in (1, 3)
    assert "Read-only file system" in ended.out + ended.err
    assert ended.code == 3 or is_error(ended.err), ended

    disk.uncover(disk.home.folder())
    assert disk.resume().code == 0


@pytest.mark.parametrize("files", [6, 8, 10, 12, 14, 16, 18])
def test_too_few_open_files_are_told_and_survived(home: Home, files: int) -> None:
    home.tasks(2)
    agent = an_agent(home)
    ended = home.run(agent, *GOAL, before=["prlimit", f"--nofile={files}"])
    assert ended.code in (0, 1, 3), ended
    assert ended.code != 1 or is_error(ended.err), ended
    assert ended.code == 0 or home.run(agent, *GOAL).code == 0
