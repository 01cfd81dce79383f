"""What agents do, also to those who run them: steps for the demo agent's scripts, which name this file.

each_task {steps, done, tasks} (plays `steps` for the first open box of `tasks`, with {task}, its text, and {n}, its
                                place among all boxes, from 1, filled in; `done` when no box is open)
stderr TEXT      rm PATH (a folder and all in it)   freeze null (stops itself)   kill_parent null
spin SECONDS (of CPU)                               raise SIGNAL ("SEGV")
ignore SIGNALS (["TERM", "INT"])                    close STREAMS (["stdout", "stderr"])
bytes BASE64 (raw to stdout)                        noise null (everything a reader must tolerate)
flood {bytes, lines} (one line, or events of 1 KiB if `lines`; the last one may be cut)
double_fork {seconds, setsid, wipe_env, ignore_term, hold_stdout, write_pid: PATH} (leaves a process behind)
"""

from __future__ import annotations

import os
import sys
import time

import __main__ as player  # which plays this

TYPE_CHECKING = False  # as in the player, which loads this once per round
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CHUNK = 1 << 20
EVENT = b'{"type":"activity","text":"%s"}\n' % (b"x" * 994)  # 1 KiB, so that a chunk ends with a whole line


def each_task(steps: Any, done: Any, tasks: str) -> None:
    boxes = [(box, task) for box, task in map(player.box_on, player.read(tasks).split("\n")) if box]
    numbered = ((number, task) for number, (box, task) in enumerate(boxes, 1) if box == player.OPEN)
    number, task = next(numbered, (0, ""))
    for step in player.playable(filled(steps, {"{task}": task, "{n}": str(number)}) if number else done):
        player.play(step)


def filled(part: Any, words: dict[str, str]) -> Any:
    """A part of a script with the placeholders in all its strings filled in."""
    match part:
        case str():
            for placeholder, word in words.items():
                part = part.replace(placeholder, word)
            return part
        case list():
            return [filled(each, words) for each in part]
        case dict():
            return {key: filled(each, words) for key, each in part.items()}
        case _:
            return part


def stderr(text: str) -> None:
    os.write(2, f"{text}\n".encode())


def rm(path: str) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def raise_(name: str) -> None:
    import signal

    number = getattr(signal, f"SIG{name}")
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def freeze(_: object) -> None:
    import signal

    os.kill(os.getpid(), signal.SIGSTOP)


def kill_parent(_: object) -> None:
    import signal

    os.kill(os.getppid(), signal.SIGKILL)


def ignore(names: list[str]) -> None:
    import signal

    for name in names:
        signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)


def close(streams: list[str]) -> None:
    """Others see them closed; for us they lead nowhere, so that the next opened file does not take their place."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, {"stdout": 1, "stderr": 2}[stream])


def out(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def bytes_(base64: str) -> None:
    import binascii

    out(binascii.a2b_base64(base64))


def noise(_: object) -> None:
    deep = b"[" * 200_000
    lines = (
        b"words, no JSON",
        b'{"type":"message","text":"half a li',
        b'{"type":"message","text":42}',
        b'{"type":"result"}',
        b'{"type":"news","text":"an event of a later version"}',
        b'\xef\xbb\xbf{"type":"message","text":"after a byte order mark"}',
        b'{"type":"message","text":"\xff\xfe no UTF-8"}',
        b'{"type":"message","text":"\\ud800 half a pair"}',
        b"\x00\x1b]0;a title\x07\x1b[31mred\x1b[0m",
        b"null",
        b"",
        deep,
        b'{"type":"message","text":"deep","more":' + deep + b"]" * len(deep) + b"}",
    )
    out(b"\n".join(lines) + b"\n")


def flood(bytes: int, lines: bool = False) -> None:  # noqa: A002 - the script's word
    block = EVENT * (CHUNK // len(EVENT)) if lines else b"x" * CHUNK
    for start in range(0, bytes, CHUNK):
        out(block[: bytes - start])
    out(b"\n")


def double_fork(
    seconds: float = 60,
    setsid: bool = False,
    wipe_env: bool = False,
    ignore_term: bool = False,
    hold_stdout: bool = False,
    write_pid: str | None = None,
) -> None:
    """Returns once the process left behind really runs: its `exec` has closed the last end of a pipe."""
    ready, closed_by_exec = os.pipe()
    if child := os.fork():
        os.close(closed_by_exec)
        os.waitpid(child, 0)
        os.read(ready, 1)
        os.close(ready)
        return
    try:
        if setsid:
            os.setsid()
        if grandchild := os.fork():
            if write_pid:
                player.write(write_pid, str(grandchild))
        else:
            stay_behind(seconds, wipe_env, ignore_term, hold_stdout)
    finally:
        os._exit(0)


def stay_behind(seconds: float, wipe_env: bool, ignore_term: bool, hold_stdout: bool) -> None:
    if ignore_term:
        ignore(["TERM"])
    if not hold_stdout:
        close(["stdout", "stderr"])
    os.execvpe("sleep", ["sleep", str(seconds)], {} if wipe_env else os.environ)  # noqa: S606 - a shell is not wanted


_STEPS = (each_task, stderr, rm, spin, raise_, freeze, kill_parent, ignore, close, bytes_, noise, flood, double_fork)
STEPS: dict[str, Callable[..., None]] = {step.__name__.rstrip("_"): step for step in _STEPS}
