"""What signals do, whoever gets them, and what happens when guardian or worker are killed (FAULTS 4-6, 11, 12)."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from signal import SIGHUP, SIGINT, SIGTERM, Signals
from typing import Any

import pytest

from driving import DONE, HANG, OK, Home, Step, alive_with, is_alive, kill_both, said, stat_of, wait_for, worker_of

pytestmark = pytest.mark.installed  # a signal may come while an interpreter starts

To = Callable[["subprocess.Popen[str]", Signals], None]


def to_the_command(process: "subprocess.Popen[str]", number: Signals) -> None:
    os.kill(process.pid, number)


def to_its_group(process: "subprocess.Popen[str]", number: Signals) -> None:
    os.killpg(process.pid, number)


def to_the_worker(process: "subprocess.Popen[str]", number: Signals) -> None:
    os.kill(worker_of(process), number)


EVERYBODY = pytest.mark.parametrize("to", [to_the_command, to_its_group, to_the_worker])


# -- asked nicely, asked firmly ----------------------------------------------------------------------------------------


@EVERYBODY
def test_the_first_interrupt_lets_the_round_finish(home: Home, to: To) -> None:
    wait, gate = home.gate()
    running = home.start_run(home.rounds([wait, OK], [DONE]))
    home.await_round(1)
    to(running, SIGINT)
    wait_for(lambda: home.facts("pause.requested"))
    assert running.poll() is None
    gate.touch()
    assert said(running).code == 130
    assert home.outcomes() == ["ok"]
    is_paused(home, "paused: you pressed Ctrl-C")
    goes_on(home)


@EVERYBODY
def test_the_second_interrupt_stops_now(home: Home, to: To) -> None:
    running = home.start_run(home.rounds([HANG], [DONE]))
    home.await_round(1)
    for times in (1, 2):
        to(running, SIGINT)
        wait_for(lambda count=times: len(home.facts("pause.requested")) == count)  # type: ignore[misc]
    assert said(running).code == 130
    assert home.outcomes() == ["interrupted"]
    is_paused(home, "paused: you pressed Ctrl-C")
    goes_on(home)


def test_the_third_interrupt_changes_nothing(home: Home) -> None:
    running = home.start_run(home.rounds([{"ignore": ["INT"]}, {"say": "never mind"}, HANG], [DONE]))
    home.await_round(1)
    await_words(home, "never mind")
    for times in (1, 2):  # signals that come before the last one was taken are one
        running.send_signal(SIGINT)
        wait_for(lambda count=times: len(home.facts("pause.requested")) == count)  # type: ignore[misc]
    for _ in range(4):
        running.send_signal(SIGINT)
        time.sleep(0.05)
    assert running.poll() is None, "the agent still has its time to obey"
    assert said(running).code == 130
    assert home.outcomes() == ["interrupted"]
    goes_on(home)


@EVERYBODY
@pytest.mark.parametrize("number", [SIGTERM, SIGHUP])
def test_a_firm_signal_stops_now(home: Home, to: To, number: Signals) -> None:
    running = home.start_run(home.rounds([{"double_fork": {"setsid": True}}, HANG], [DONE]))
    home.await_round(1)
    to(running, number)
    assert said(running).code == 130
    assert home.alive() == []
    assert home.outcomes() == ["interrupted"]
    is_paused(home, f"paused by {number.name}")
    goes_on(home)


def test_an_interrupt_ends_a_wait_at_once(home: Home) -> None:
    running = home.start_run(home.rounds([{"result": {"outcome": "limited", "text": "come back later"}}], [DONE]))
    wait_for(lambda: home.has_loop() and home.facts("wait.started"))
    running.send_signal(SIGINT)
    assert said(running).code == 130
    is_paused(home, "paused: you pressed Ctrl-C")


def test_a_firm_signal_during_a_check_leaves_no_verdict_and_the_check_is_run_again(home: Home) -> None:
    check = f"test -e {home.root}/green || {{ touch {home.root}/checking; sleep 60; }}"
    running = home.start_run(home.rounds([DONE]), "-k", check)
    wait_for((home.root / "checking").exists)
    running.send_signal(SIGTERM)
    assert said(running).code == 130
    assert home.facts("checks.ended") == []
    (home.root / "green").touch()
    goes_on(home)
    assert len(home.facts("round.started")) == 1, "the check alone was missing"


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
@pytest.mark.parametrize("milliseconds", [0, 20, 50, 80, 110, 140, 180, 250])
def test_a_signal_at_any_moment_of_the_start_harms_nothing(home: Home, number: Signals, milliseconds: int) -> None:
    agent = home.rounds([DONE])
    running = home.start_run(agent)
    worker_of(running)
    time.sleep(milliseconds / 1000)
    running.send_signal(number)
    ended = said(running)
    assert ended.code in (0, 130), ended
    assert "Traceback" not in ended.err
    assert ended.code == 0 or home.run(agent).code == 0


LATE = """
import signal
from bydawn.process.guardian import run_guarded
run_guarded(lambda tether: 0)
print([signal.getsignal(number) is signal.SIG_IGN for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
"""


def test_a_signal_after_the_end_cannot_change_the_exit_code() -> None:
    """The interpreter resets handlers of its own while it ends; what is ignored stays ignored."""
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "[True, True, True]\n"), done


# -- a real terminal ---------------------------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> "Terminal":
    return Terminal()


class Terminal:
    """A pseudo-terminal: `type` is the keyboard, `close` the window."""

    def __init__(self) -> None:
        self.keyboard, self.screen = os.openpty()

    def start(self, home: Home, *arguments: str) -> "subprocess.Popen[str]":
        streams = {"stdin": self.screen, "stdout": self.screen, "stderr": self.screen}
        ends: dict[str, Any] = {**streams, "start_new_session": False}
        process = home.start(*arguments, before=["setsid", "--ctty"], TERM="xterm-256color", **ends)
        os.close(self.screen)
        os.set_blocking(self.keyboard, False)
        return process

    def type(self, keys: bytes) -> None:
        os.write(self.keyboard, keys)

    def read(self, process: "subprocess.Popen[str] | None" = None, *, until: str = "") -> str:
        """All that is shown until the command ends, or until it has said something.

        To type Ctrl-C throws away what no one has read yet: so do terminals.
        """
        shown, deadline = b"", time.monotonic() + 20
        while time.monotonic() < deadline and not (until and until.encode() in shown):
            try:
                shown += os.read(self.keyboard, 4096)
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break  # everybody who held the other end is gone
        if process:
            process.wait(10)
        return shown.decode(errors="replace")

    def close(self) -> None:
        os.close(self.keyboard)


def test_ctrl_c_typed_twice_in_a_terminal(home: Home, terminal: Terminal) -> None:
    running = terminal.start(home, "run", "do it", "-a", home.rounds([HANG], [DONE]))
    home.await_round(1)
    terminal.type(b"\x03")
    assert "Ctrl-C again to stop now" in terminal.read(until="Ctrl-C again to stop now")
    assert home.facts("pause.requested")
    terminal.type(b"\x03")
    shown = terminal.read(running)
    assert running.returncode == 130
    assert "Paused" in shown
    assert home.outcomes() == ["interrupted"]
    terminal.close()
    goes_on(home)


def test_a_terminal_that_is_closed_pauses_the_loop(home: Home, terminal: Terminal) -> None:
    running = terminal.start(home, "run", "do it", "-a", home.rounds([HANG], [DONE]))
    home.await_round(1)
    terminal.close()
    assert running.wait(10) == 130
    assert home.alive() == []
    is_paused(home, "paused by SIGHUP")
    goes_on(home)


def test_ctrl_z_keeps_its_meaning(home: Home) -> None:
    """It stops the command in the terminal, and nothing undoes that. The round goes on meanwhile, as it always did."""
    wait, gate = home.gate()
    job = {"start_new_session": False, "process_group": 0}  # as a shell starts it
    running = home.start_run(home.rounds([wait, OK], [DONE]), **job)
    home.await_round(1)
    os.killpg(running.pid, signal.SIGTSTP)
    wait_for(lambda: stat_of(running.pid)[0] == "T")
    gate.touch()
    wait_for(lambda: home.outcomes() == ["ok", "ok"])
    assert stat_of(running.pid)[0] == "T"
    os.killpg(running.pid, signal.SIGCONT)  # `fg`
    ended = said(running)
    assert (ended.code, ended.err) == (0, "")


# -- stopped, ignored, blocked -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ["stop", "limit"])
def test_a_worker_that_is_stopped_is_woken_and_still_obeys(home: Home, ask: str) -> None:
    limit = ("--round-timeout", "5s") if ask == "limit" else ()  # time to start an agent, and to stop it three times
    running = home.start_run(home.rounds([HANG], [DONE]), *limit)
    home.await_round(1)
    for _ in range(3):
        os.kill(worker_of(running), signal.SIGSTOP)
        wait_for(lambda: stat_of(worker_of(running))[0] != "T")
    if ask == "stop":
        assert home.bydawn("stop").code == 0
    ended = said(running)
    assert ended.code == (130 if ask == "stop" else 0), ended
    assert home.outcomes()[0] == ("interrupted" if ask == "stop" else "hung")
    assert ended.err.count("something stopped the process of this loop (SIGSTOP)") == 1


AS_INHERITED = """
import os, signal
from bydawn.cli.main import reset_signals
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}:
    for how in ("ignored", "blocked"):
        if os.fork() == 0:
            signal.signal(number, signal.SIG_IGN if how == "ignored" else signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_BLOCK, {number} if how == "blocked" else ())
            reset_signals()
            nohup = how == "ignored" and number == signal.SIGHUP
            right = (signal.getsignal(number) is signal.SIG_IGN) == nohup and not signal.pthread_sigmask(0, ())
            os._exit(not right)
        _, status = os.wait()
        if status:
            print(how, number)
"""


def test_no_signal_stays_ignored_or_blocked_because_a_parent_said_so() -> None:
    done = subprocess.run([sys.executable, "-c", AS_INHERITED], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


LAUNCHER = """
import os, signal, sys
everything = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
if sys.argv[1] == "blocked":
    signal.pthread_sigmask(signal.SIG_BLOCK, everything)
else:
    for number in everything:
        signal.signal(number, signal.SIG_IGN)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("how", ["ignored", "blocked"])
def test_a_loop_runs_and_obeys_whatever_its_parent_did_to_signals(home: Home, how: str) -> None:
    """And its agent, its check and its hook begin with none ignored or blocked."""
    look = f"grep -E '^Sig(Blk|Ign)' /proc/self/status >> {home.root}/seen"
    program = home.root / "agent"
    program.write_text(f"#!/bin/sh\n{look}\ntest -e {home.root}/once && exec sleep 3600\ntouch {home.root}/once\n")
    program.chmod(0o755)
    launcher = [sys.executable, "-c", LAUNCHER, how]
    more = ("-k", f"{look}; false", "--pre-round", look)
    running = home.start_run(f"cmd:{program}", *more, before=launcher)
    wait_for(lambda: len((home.root / "seen").read_text().split()) >= 4 * 6 if (home.root / "seen").exists() else False)
    running.send_signal(SIGHUP)
    if how == "ignored":  # as after `nohup`
        running.send_signal(SIGTERM)
    ended = said(running)
    assert (ended.code, "Traceback" in ended.err) == (130, False), ended
    is_paused(home, "paused by SIGTERM" if how == "ignored" else "paused by SIGHUP")
    masks = {int(word, 16) for word in (home.root / "seen").read_text().split()[1::2]}
    assert masks <= {0, 0b11 << 31}  # glibc itself ignores two numbers that are its own


# -- killed ------------------------------------------------------------------------------------------------------------


def test_a_worker_whose_guardian_was_killed_stops_by_itself(home: Home) -> None:
    running = home.start_run(home.rounds([{"double_fork": {"setsid": True}}, HANG], [DONE]))
    home.await_round(1)
    running.kill()
    wait_for(lambda: not home.alive())
    assert home.outcomes() == ["interrupted"]
    is_paused(home, "paused: its parent process was killed")
    goes_on(home)


def test_what_is_left_when_guardian_and_worker_are_killed_at_once_is_swept_at_the_next_start(home: Home) -> None:
    left = {"seconds": 3600, "setsid": True, "ignore_term": True}
    steps: list[Step] = [{"double_fork": left}, {"say": "left it"}, HANG]
    running = home.start_run(home.rounds(steps, [DONE]))
    agent = home.await_round(1)
    await_words(home, "left it")
    kill_both(running.pid)
    cookie = f"BYDAWN_COOKIE={home.facts('round.started')[0]['data']['cookie']}"
    assert agent in alive_with(cookie)
    wait_for(lambda: len(alive_with(cookie)) == 2)  # a process that begins its program has no environment to read yet
    assert home.status()["state"] == "crashed"
    goes_on(home)
    assert alive_with(cookie) == []
    assert home.outcomes() == ["interrupted", "ok"]


def test_what_is_left_is_still_known_after_a_resume_that_was_refused(home: Home) -> None:
    """Only a worker that has looked for it may let its guardian say that nothing is left."""
    running = home.start_run(home.rounds([HANG], [DONE]))
    agent = home.await_round(1)
    kill_both(running.pid)
    settings = home.folder() / "loop.json"
    kept = settings.read_bytes()
    settings.write_bytes(kept + b" ")
    assert "has changed since the loop was started" in home.bydawn("resume", "--plain").err
    assert is_alive(agent)
    settings.write_bytes(kept)
    assert [each["pid"] for each in home.status()["left_running"]] == [agent]
    goes_on(home)
    assert not is_alive(agent)


def test_what_is_left_when_both_are_killed_at_once_is_named_and_ended_by_stop(home: Home) -> None:
    steps: list[Step] = [{"double_fork": {"seconds": 3600, "setsid": True}}, {"say": "left it"}, HANG]
    running = home.start_run(home.rounds(steps, [DONE]))
    agent = home.await_round(1)
    await_words(home, "left it")
    kill_both(running.pid)
    wait_for(lambda: home.status()["state"] == "crashed")
    cookie = f"BYDAWN_COOKIE={home.facts('round.started')[0]['data']['cookie']}"
    wait_for(lambda: len(alive_with(cookie)) == 2)  # a process that begins its program has no environment to read yet
    left = home.status()["left_running"]
    assert [each["pid"] for each in left] == sorted(alive_with(cookie))
    assert "python" in left[0]["command"]
    assert f"(pid {agent})" in home.bydawn("status").out
    shown = home.bydawn("show").out
    assert "still running: " in shown
    assert "bydawn stop repo" in shown
    diagnosed = home.bydawn("doctor")
    assert diagnosed.code == 1
    assert "crashed; still running: " in diagnosed.out
    ended = home.bydawn("stop")
    assert (ended.code, ended.out.count("Ended what was still running")) == (0, 2)
    assert alive_with(cookie) == []
    [round_] = home.facts("round.ended")
    assert len(round_["data"]["leftovers"]) == 2
    assert home.status()["left_running"] == []


@pytest.mark.parametrize(
    "escape",
    [
        {"hold_stdout": True, "setsid": True},  # found by its open output
        {"hold_stdout": False, "setsid": False},  # found by its session
    ],
    ids=["output", "session"],
)
@pytest.mark.parametrize("command", [("resume", "--plain"), ("stop",)], ids=["resume", "stop"])
def test_a_daemon_that_wiped_its_environment_is_found_after_both_were_killed(
    home: Home, escape: dict[str, bool], command: tuple[str, ...]
) -> None:
    daemon = {"seconds": 3600, "wipe_env": True, "ignore_term": True, "write_pid": str(home.root / "pid"), **escape}
    running = home.start_run(home.rounds([{"double_fork": daemon}, HANG], [DONE]))
    agent = home.await_round(1)
    pid = int(wait_for(lambda: (home.root / "pid").exists() and (home.root / "pid").read_text()))
    kill_both(running.pid)
    os.kill(agent, signal.SIGKILL)  # and the one process that still had the mark
    wait_for(lambda: home.status()["state"] == "crashed" and not is_alive(agent))
    assert is_alive(pid)
    assert home.bydawn(*command).code == 0
    assert not is_alive(pid)


def test_a_worker_killed_at_its_work_takes_its_agent_along(home: Home) -> None:
    running = home.start_run(home.rounds([HANG], [DONE]))
    agent = home.await_round(1)
    os.kill(worker_of(running), signal.SIGKILL)
    assert said(running).code == 1
    assert not is_alive(agent)
    goes_on(home)
    assert home.outcomes() == ["interrupted", "ok"]


def await_words(home: Home, words: str) -> None:
    """Wait until the agent of the first round has said this, and so has done all before it."""
    output = home.folder() / "rounds/0001/stdout"
    wait_for(lambda: words in output.read_text())


def is_paused(home: Home, reason: str) -> None:
    assert home.status()["state"] == "paused"
    assert home.status()["reason"] == reason


def goes_on(home: Home) -> None:
    assert home.bydawn("resume", "--plain").code == 0
    numbers = [fact["data"]["round"] for fact in home.facts("round.started")]
    assert numbers == sorted(set(numbers))
