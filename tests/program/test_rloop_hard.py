"""rloop where something is in its way: links, a table that no one can read, a session that does not answer."""

import os
import signal
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bydawn.store.lock import is_held
from driving import Home, is_alive, wait_for
from program.rloop import SAYS, TASK, Rloop, Turn

HANG: Turn = {"reply": SAYS, "sleep": 60}


@pytest.fixture
def rloop(home: Home) -> Rloop:
    rloop = Rloop(home)
    rloop.plays(TASK)
    return rloop


def test_a_person_can_have_links_on_the_way_to_the_table(rloop: Rloop) -> None:
    """R-046: such as a folder for all of their settings."""
    elsewhere = rloop.home.root / "settings"
    elsewhere.mkdir()
    rloop.config.parent.symlink_to(elsewhere)
    ended = rloop.runs(rloop.project())
    assert (ended.code, rloop.session()["status"], rloop.word()) == (0, "complete", "complete"), ended
    assert (elsewhere / "rloop/state.json").is_file()


@pytest.mark.parametrize("put", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/etc/hostname")])
def test_a_table_that_cannot_be_read_is_in_the_way_of_nothing_but_a_start(rloop: Rloop, put) -> None:  # type: ignore[no-untyped-def]
    """R-041, R-046: the ledgers know the sessions."""
    rloop.plays(HANG)
    assert rloop("start", str(rloop.project())).code == 0
    rloop.await_turn(1)
    state = rloop.config / "state.json"
    state.unlink()
    put(state)
    shown = rloop("status")
    assert (shown.code, "app1" in shown.out, "state.json cannot be used" in shown.err) == (0, True, True), shown
    refused = rloop("start", str(rloop.project("app2")))
    assert (refused.code, "state.json" in refused.err) == (2, True), refused
    assert rloop("stop", "--all").code == 0
    wait_for(rloop.nothing_is_alive)  # whoever gives the lock back last needs a moment to end


def test_entries_of_another_program_can_say_anything(rloop: Rloop) -> None:
    """R-046, X-12."""
    rloop.config.mkdir(parents=True)
    rows = '"a": {"dir": "/tmp\\u0000x", "pid": -1, "status": "running"}, "b": 5, "c": {"dir": 7, "task_file": [1]}'
    (rloop.config / "state.json").write_text(f'{{"sessions": {{{rows}}}}}')
    for name in ("a", "b", "c"):
        assert rloop("stop", name).code == 2
    resumed = rloop("resume")
    assert (resumed.code, "Nothing to resume" in resumed.out) == (0, True), resumed


def test_an_earlier_loop_of_a_session_that_goes_on_is_the_session(rloop: Rloop) -> None:
    """R-041: it is seen, and `stop --all` ends it."""
    rloop.plays(HANG)
    folder = rloop.project()
    for turn in (1, 2):
        assert rloop("start", str(folder)).code == 0
        rloop.await_turn(turn)
        assert rloop("stop", "app1").code == 0
    resumed = rloop.home.bydawn("resume", "app1", "-d", cwd=folder)
    assert resumed.code == 0, resumed
    rloop.await_turn(3)
    assert rloop.word() == "running"
    assert "app1 is stopped" in rloop("stop", "--all").out
    wait_for(rloop.nothing_is_alive)  # whoever gives the lock back last needs a moment to end


def test_a_session_that_cannot_be_asked_does_not_keep_the_others_from_their_end(rloop: Rloop) -> None:
    """R-041."""
    rloop.plays(HANG)
    for name in ("app1", "app2"):
        assert rloop("start", str(rloop.project(name))).code == 0
        rloop.await_turn(1, name)
    [(worker, guardian)] = rloop.workers("app1")
    inbox = rloop.folders("app1")[-1] / "inbox"
    inbox.rename(inbox.with_name("moved"))
    inbox.touch()
    answer = rloop("stop", "--all")
    assert (answer.code, "app2 is stopped" in answer.out, "app1 is stopped" in answer.out) == (1, True, False), answer
    assert is_alive(worker)
    os.kill(guardian, signal.SIGTERM)
    wait_for(rloop.nothing_is_alive)


def test_the_table_is_made_right_again_and_keeps_its_order(rloop: Rloop) -> None:
    """R-040, R-046: after a full disk, or when a session was dismissed."""
    rloop.plays(HANG, app2=[TASK])
    for name in ("app1", "app2", "app3"):
        assert rloop("start", str(rloop.project(name))).code == 0
    rloop.await_turn(1, "app1")
    rloop.await_turn(1, "app3")
    rloop.await_end("app2")
    wait_for(lambda: not is_held(rloop.folders("app2")[-1] / "lock"))  # it says so a moment before it is gone
    assert [*rloop.table()] == ["NAME", "app1", "app2", "app3"], "oldest first, whichever are at work"
    before = (rloop.config / "state.json").read_text()
    (rloop.config / "state.json").write_text('{"sessions": {}}')
    rloop("status")
    assert [*rloop.sessions] == ["app2"], "one at work writes its own: what we know of it may be old by now"
    assert rloop("stop", "--all").code == 0
    (rloop.config / "state.json").write_text(before.replace('"sessions": {', '"sessions": {"theirs": {"status": "x"},'))
    assert rloop.word("app1") == "stopped"
    assert [rloop.session(name)["status"] for name in ("theirs", "app1", "app2")] == ["x", "stopped", "complete"]
    assert rloop.home.bydawn("dismiss", "app3").code == 0
    assert [*rloop.table()] == ["NAME", "app1", "app2"]
    assert [*rloop.sessions] == ["theirs", "app1", "app2"]


def test_what_remains_is_read_from_a_list_that_was_moved_there(rloop: Rloop) -> None:
    """R-040: its time stamp is older than the session."""
    folder = rloop.project()
    (folder / "OLD.md").write_text("- [ ] one\n- [ ] two\n")
    assert rloop.runs(folder).code == 0
    (folder / "OLD.md").rename(folder / "PRD.md")
    assert rloop.table()["app1"][3] == "2 tasks"


@pytest.mark.usefixtures("tmux")
def test_stop_leaves_a_tmux_session_that_is_a_persons_own(home: Home) -> None:
    """R-046: it has the name that ours would have."""
    rloop = Rloop(home, tmux=True)
    rloop.plays(HANG)
    with TemporaryDirectory(prefix="by-") as home.env["TMUX_TMPDIR"]:  # a socket needs a short path

        def tmux(*words: str) -> str:
            return subprocess.run(["tmux", *words], env=home.env, capture_output=True, text=True).stdout

        tmux("new-session", "-d", "-s", "rloop-app1", "sleep", "60")
        assert rloop("start", str(rloop.project("app1"))).code == 0
        assert rloop("start", str(rloop.project("app2"))).code == 0
        assert tmux("list-sessions", "-F", "#{session_name}").split() == ["rloop-app1", "rloop-app2"]
        assert rloop("stop", "--all").code == 0
        assert tmux("list-sessions", "-F", "#{session_name}").split() == ["rloop-app1"]
        tmux("kill-server")


def test_a_tmux_that_hangs_keeps_no_one_waiting(rloop: Rloop) -> None:
    rloop.plays(HANG)
    (rloop.bin / "tmux").write_text("#!/bin/sh\nexec sleep 60\n")
    (rloop.bin / "tmux").chmod(0o755)
    assert rloop("start", str(rloop.project()), seconds=30).code == 0
    assert rloop("stop", "app1", seconds=30).code == 0
    wait_for(rloop.nothing_is_alive)  # whoever gives the lock back last needs a moment to end
