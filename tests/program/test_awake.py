"""A machine that does not go to sleep while a loop runs: a program of the system's own sees to it."""

import os
from pathlib import Path

import pytest

from driving import DONE, HANG, OK, Home, is_alive, kill_both, said, stat_of, wait_for, worker_of

# Like the real one: options that it does not know are refused, and the command is a child.
FAKE = """#!/bin/sh
env > {root}/inhibit.env
printf '%s\\n' "$@" > {root}/inhibit.words
while :; do case $1 in --what=*|--who=*|--why=*|--mode=*) shift;; -*) exit 1;; *) break;; esac; done
echo $$ > {root}/inhibit.pid
{then}
exit $?
"""


@pytest.fixture
def inhibit(home: Home) -> Path:
    """A `systemd-inhibit` on the PATH that works; the file with its process id."""
    return with_program(home, '"$@"')


def with_program(home: Home, then: str) -> Path:
    program = home.root / "bin/systemd-inhibit"
    program.parent.mkdir()
    program.write_text(FAKE.format(root=home.root, then=then))
    program.chmod(0o755)
    home.env["PATH"] = f"{program.parent}:{home.env['PATH']}"
    return home.root / "inhibit.pid"


def number_in(inhibit: Path) -> int:
    """The process id of the program, once it has come so far."""
    return int(wait_for(lambda: inhibit.read_text() if inhibit.exists() else ""))


def processes(inhibit: Path) -> list[int]:
    """The program and its `cat`, once both are there."""
    first = number_in(inhibit)
    children = Path(f"/proc/{first}/task/{first}/children")
    return [first, int(wait_for(lambda: children.read_text().split())[0])]


def test_it_is_kept_awake_from_round_to_round_by_a_process_that_knows_nothing(home: Home, inhibit: Path) -> None:
    gate, opened = home.gate()
    running = home.start_run(home.rounds([OK], [{"say": "second"}, gate, DONE]), SOME="hunter2")
    home.await_round(2)  # what an agent leaves behind has been ended once
    program, cat = processes(inhibit)
    assert (home.root / "inhibit.words").read_text().split("\n")[:4] == [
        "--what=sleep:idle",
        "--mode=block",
        "--who=bydawn",
        "--why=a loop is running",
    ]
    assert {line.partition("=")[0] for line in (home.root / "inhibit.env").read_text().split()} <= {
        "PWD",
        "_",
        "OLDPWD",
    }
    assert stat_of(program)[3:5] == [str(program), "0"]  # a session of its own, without a terminal
    held = {os.readlink(f"/proc/{program}/fd/{fd}") for fd in os.listdir(f"/proc/{program}/fd")}
    assert str(home.folder() / "lock") not in held
    opened.touch()
    ended = said(running)
    assert (ended.code, ended.err) == (0, "")
    assert not is_alive(program)
    assert not is_alive(cat)
    assert all(round_["leftovers"] == [] for round_ in home.rounds_ended())


def test_it_ends_by_itself_when_both_processes_of_a_loop_in_the_background_are_killed(
    home: Home, inhibit: Path
) -> None:
    home.real = True
    home.run(home.rounds([{"say": "on it"}, HANG]), "-d")
    home.await_round(1)
    worker = int(home.facts("run.started")[-1]["data"]["pid"])
    guardian, awake = int(stat_of(worker)[1]), processes(inhibit)
    kill_both(guardian)
    wait_for(lambda: not any(map(is_alive, awake)))
    wait_for(lambda: home.status()["state"] == "crashed")
    home.bydawn("stop")


def test_one_that_is_refused_is_neither_shown_nor_left_in_the_list_of_processes(home: Home) -> None:
    inhibit = with_program(home, "echo 'Failed to inhibit: Access denied' >&2; exit 1")
    running = home.start_run(home.rounds([{"say": "on it"}, HANG]))
    home.await_round(1)
    refused = number_in(inhibit)
    wait_for(lambda: not stat_of(refused))
    home.bydawn("stop")
    assert "inhibit" not in "".join(said(running)[1:])
    shown = home.bydawn("doctor")
    row = "✓ keep-awake: this machine may sleep while a loop runs: systemd-inhibit: Failed to inhibit: Access denied"
    assert (shown.code, row in shown.out) == (0, True), shown.out


def test_who_does_not_want_it_has_none(home: Home, inhibit: Path) -> None:
    assert home.run(home.rounds([DONE]), "--no-keep-awake").code == 0
    assert not (home.root / "inhibit.words").exists()
    assert "✓ keep-awake: systemd-inhibit works" in home.bydawn("doctor").out
    assert inhibit.exists()


def test_a_program_of_the_workspace_is_not_asked(home: Home) -> None:
    program = with_program(home, '"$@"').with_name("bin") / "systemd-inhibit"
    inside = home.repo / "bin/systemd-inhibit"
    inside.parent.mkdir()
    program.rename(inside)
    home.env["PATH"] = f"{inside.parent}:{home.env['PATH']}"
    running = home.start_run(home.rounds([{"say": "on it"}, HANG]))
    home.await_round(1)
    assert worker_of(running)
    home.bydawn("stop")
    said(running)
    assert not (home.root / "inhibit.words").exists()
