"""`resume --all --foreground`: loops go on by themselves after a crash or a reboot, or somebody is told why not."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from bydawn.core.errors import UserError
from bydawn.core.values import Death, Restart
from bydawn.operations import keeping, resume, run_loop, settings
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import load
from bydawn.store.registry import standing_of
from driving import DONE, HANG, Home, a_repository, kill_both, said, wait_for
from program.test_notices import Receiver

SAYS = {"say": "this takes a while"}
FOUND = {"number": 1, "why": "found", "exit_code": None}
KEEP = "import sys; from bydawn.cli.many import keep_all; sys.exit(keep_all(None, back_off=0.05))"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()


class Keeper:
    """What the unit of a service starts, but quicker to start a loop again."""

    def __init__(self, home: Home) -> None:
        self.home, self.log = home, home.root / f"keeper-{len([*home.root.glob('keeper-*')])}"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", KEEP],
                env=home.env,
                cwd=home.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        home._started.append(self.process)
        wait_for(lambda: "keeping loops running" in self.log.read_text())

    def end(self) -> str:
        """As a shutdown does; what it said."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.log.read_text()
        return self.log.read_text()


def runs(home: Home, name: str = "repo") -> list[dict[str, object]]:
    return [fact["data"] for fact in home.facts("run.started", name)]


def kill_worker(home: Home, count: int, name: str = "repo") -> None:
    """Once its run of that number is on record, and its agent has begun."""
    wait_for(lambda: len(runs(home, name)) == count and home.facts("round.started", name)[-1]["data"]["round"] >= count)
    os.kill(int(str(runs(home, name)[-1]["pid"])), signal.SIGKILL)


def crash(home: Home, agent: str, *names: str) -> None:
    """Both processes of each are gone at once, as at a power cut; its agent, too."""
    for name in names:
        guardian = home.start_run(agent, "--new", "--name", name)
        home.await_round(1, name)
        kill_both(guardian.pid)
    for pid in home.alive():
        with suppress(ProcessLookupError):  # of a loop that still ran: the one sees the other's end
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not home.alive())


def test_a_process_that_dies_eleven_times_is_given_up_and_one_notice_tells(home: Home, receiver: Receiver) -> None:
    """C-066, FAULTS 116: ten restarts, each on record; then blocked, `health` 2, `doctor` names it."""
    home.real = True
    agent = home.rounds([SAYS, HANG])
    assert home.run(agent, "-d", "--notify", f"http://{receiver.place}/ok").code == 0
    kill_worker(home, 1)  # a person's own run: no one sees that it died
    wait_for(lambda: home.status()["state"] == "crashed")
    keeper = Keeper(home)
    for count in range(2, 12):
        kill_worker(home, count)
    stopped = wait_for(lambda: home.facts("loop.stopped"))[-1]["data"]
    assert (stopped["end"], stopped["decided"]["rule"]) == ("blocked", "restarts")
    assert stopped["reason"] == "its process died 11 times in a row; the last time it was killed (signal 9)"
    deaths = [fact.get("restart") for fact in runs(home)]
    assert deaths[:3] == [None, FOUND, {"number": 2, "why": "exited", "exit_code": -9}]
    assert [fact["number"] for fact in deaths[1:] if isinstance(fact, dict)] == [*range(1, 11)]
    assert len({fact["pid"] for fact in runs(home)}) == 11
    wait_for(lambda: home.facts("notice.ended"))
    out = keeper.end()
    assert "it is not started again" in out
    assert [data["reason"] for data in receiver.of("/ok")] == [stopped["reason"]]
    health = home.bydawn("health")
    assert (health.code, "its process died 11 times in a row" in health.out) == (2, True)
    doctor = home.bydawn("doctor")
    assert (doctor.code, "its process died 11 times in a row" in doctor.out) == (1, True)
    Keeper(home).end()
    assert len(runs(home)) == 11, "what was given up waits for a person"
    assert home.rounds_ended()[-1]["round"] == 11, "no number is used twice"


def test_after_a_reboot_every_loop_goes_on_at_its_round_and_stop_leaves_no_process(home: Home) -> None:
    """FAULTS 15: a boot is another boot id, and nothing of before is alive."""
    home.real = True
    agent = home.rounds([SAYS, HANG], [SAYS, HANG], [DONE])
    crash(home, agent, "one", "two")
    for name in ("one", "two"):
        lock = home.folder(name) / "lock"
        lock.write_text(re.sub(r"boot \S+", "boot 00000000-0000-0000-0000-000000000000", lock.read_text()))
    assert {home.status(name)["state"] for name in ("one", "two")} == {"crashed"}
    keeper = Keeper(home)
    for name in ("one", "two"):
        home.await_round(2, name)
        assert runs(home, name)[-1]["restart"] == FOUND
    assert home.bydawn("stop", "--all").code == 0
    wait_for(lambda: home.alive() == [keeper.process.pid])
    keeper.end()
    assert [fact["round"] for fact in home.rounds_ended("one")] == [1, 2]
    assert home.status("one")["state"] == "stopped"


def test_what_a_shutdown_ended_goes_on_and_what_a_person_ended_does_not(home: Home) -> None:
    """A watchdog that is asked to end hands its loops over; that is no death, and nothing is counted."""
    home.real = True
    agent = home.rounds([SAYS, HANG], [SAYS, HANG], [SAYS, HANG], [DONE])
    crash(home, agent, "mine")
    person = home.start_run(agent, "--new", "--name", "theirs")
    home.await_round(1, "theirs")
    home.bydawn("stop", "theirs")
    said(person)
    first = Keeper(home)
    home.await_round(2, "mine")
    assert "mine goes on" in first.end()
    assert home.status("mine")["reason"] == "paused by SIGTERM"
    second = Keeper(home)
    home.await_round(3, "mine")
    second.end()
    assert [fact.get("restart") for fact in runs(home, "mine")] == [None, FOUND, None]
    assert len(runs(home, "theirs")) == 1


def test_only_one_watches_and_none_of_its_loops_holds_its_lock_after_it_was_killed(home: Home) -> None:
    home.real = True
    crash(home, home.rounds([SAYS, HANG]), "repo")
    first = Keeper(home)
    home.await_round(2)
    refused = home.bydawn("resume", "--all", "--foreground")
    assert (refused.code, f"pid {first.process.pid} keeps all loops running" in refused.err) == (8, True)
    first.process.kill()
    first.process.wait()
    second = Keeper(home)
    assert home.status()["state"] == "running", "a loop outlives its watchdog"
    assert len(runs(home)) == 2, "and is not started twice"
    home.bydawn("stop")
    second.end()


def test_stop_reaches_loops_that_are_just_being_started(home: Home) -> None:
    """After a boot many begin at once: a person's word counts, whether a worker has begun to listen or not."""
    home.real = True
    names = [f"l{number}" for number in range(8)]
    crash(home, home.rounds([SAYS, HANG]), *names)
    keeper = Keeper(home)
    wait_for(lambda: "goes on" in keeper.log.read_text())
    stopped = home.bydawn("stop", "--all")
    assert stopped.code == 0, stopped
    wait_for(lambda: home.alive() == [keeper.process.pid])
    keeper.end()
    assert {home.status(name)["state"] for name in names} == {"stopped"}


def test_a_folder_that_is_gone_is_said_and_the_others_go_on(home: Home) -> None:
    home.real = True
    gone = home.root / "gone"
    a_repository(gone, "# soon gone\n")
    agent = home.rounds([SAYS, HANG])
    lost = home.start_run(agent, "-C", str(gone))
    wait_for(lambda: [*home.states.glob("loops/gone-*/gone/rounds/0001/stdout")])
    crash(home, agent, "repo")
    said(lost)
    subprocess.run(["rm", "-r", str(gone)], check=True)
    keeper = Keeper(home)
    home.await_round(2)
    home.bydawn("stop", "repo")
    wait_for(lambda: "gone cannot go on now; the next try is in 1 m 00" in keeper.log.read_text())
    out = keeper.end()
    assert "error: the workspace of gone is gone" in out
    assert "its process died" not in out, "that is no death, and counts as none"


@pytest.mark.parametrize("words", [(), ("--all", "--stopped"), ("--all", "-d"), ("--all", "-C", "."), ("repo",)])
def test_what_foreground_cannot_be_combined_with(home: Home, words: tuple[str, ...]) -> None:
    refused = home.bydawn("resume", "--foreground", *words)
    assert (refused.code, "--foreground only works with --all" in refused.err) == (2, True)


def test_an_agent_may_not_keep_loops_running(home: Home) -> None:
    assert "agents may not" in home.bydawn("resume", "--all", "--foreground", BYDAWN_COOKIE="abc.1").err
    assert not Path(home.states / "watches").exists()


def test_a_loop_that_a_shutdown_paused_can_be_given_up_too(home: Home) -> None:
    """Its guardian may die before it: then it pauses in good order each time, and would be started for ever."""
    running = home.start_run(home.rounds([SAYS, HANG]))
    home.await_round(1)
    running.send_signal(signal.SIGTERM)
    said(running)
    restart = Restart(number=11, why=Death.EXITED, exit_code=-15)
    with patch.dict(os.environ, home.env, clear=True):
        keeping.give_up(LoopFolder(home.folder()), restart)
        keeping.give_up(LoopFolder(home.folder()), restart)
    rules = [fact["data"]["decided"]["rule"] for fact in home.facts("loop.stopped")]
    assert rules == ["asked-to-pause", "restarts"], "once"
    assert home.status()["state"] == "blocked"


@pytest.mark.parametrize("verb", ["stop", "pause"])
def test_a_worker_that_was_loading_while_a_person_ended_its_loop_does_not_begin(home: Home, verb: str) -> None:
    home.real = True
    crash(home, home.rounds([SAYS, HANG]), "repo")
    folder = LoopFolder(home.folder())
    with patch.dict(os.environ, home.env, clear=True):
        standing = standing_of(folder)
        assert standing
        planned = resume.plan(standing, settings.secrets())
        run_loop.refuse_if_overtaken(planned, load(folder)[0])  # nothing has happened
        assert home.bydawn(verb).code == 0
        with pytest.raises(UserError, match="another process was faster") as refused:
            run_loop.refuse_if_overtaken(planned, load(folder)[0])
    assert (refused.value.exit_code, "in the meantime" in refused.value.cause) == (8, True)
