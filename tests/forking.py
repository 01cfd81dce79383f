"""Commands that skip the start of an interpreter: a server that has loaded everything forks a process for each of them.

From `main` on nothing differs from the installed command: a process of its own with its own environment, folder,
streams and session, a guardian and a worker. Nothing that one command leaves in memory reaches the next.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import distribution
from io import TextIOWrapper
from typing import Any, NoReturn, TextIO

_NUMBER = 4  # bytes of a process id, and of how a process ended


class Forked(subprocess.Popen[str]):
    """A process of the server's, in everything but its birth and its end like one of our own."""

    _close_pipe_fds: Callable[..., None]
    _report: socket.socket

    def _execute_child(self, args: list[str], *more: Any) -> None:
        """What Popen calls to have the process made; `more` are its own arguments, in its own order."""
        cwd, env, pipes = more[4], more[5], more[9:15]
        streams = [given if given != -1 else usual for usual, given in enumerate((pipes[0], pipes[3], pipes[5]))]
        self._report, theirs = socket.socketpair()
        with theirs:
            SERVER.ask([*streams, theirs.fileno()])
        self._report.sendall(json.dumps({"argv": args, "cwd": os.fspath(cwd), "env": env}).encode())
        self._report.shutdown(socket.SHUT_WR)
        self.pid = int.from_bytes(self._report.recv(_NUMBER), "big")
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            said = self._report.recv(_NUMBER)
            assert said, "the server is gone, and with it the answer"
            self._report.close()
            self.returncode = os.waitstatus_to_exitcode(int.from_bytes(said, "big"))
        return self.returncode

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self._wait(0)
        return None


class Server:
    """The server of this test process. It ends when nobody holds our end of its line, and is started when it is needed.

    Tests that run a check or a hook within this process end all of its children afterwards, and so the server, too.
    """

    _process: "subprocess.Popen[bytes] | None" = None
    _line: socket.socket

    def ask(self, descriptors: list[int]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._start()
        socket.send_fds(self._line, [b"f"], descriptors)

    def _start(self) -> None:
        self.end()
        self._line, theirs = socket.socketpair()
        with theirs:
            end = theirs.fileno()
            env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
            command, nothing = [sys.executable, __file__, str(end)], subprocess.DEVNULL
            self._process = subprocess.Popen(command, env=env, stdin=nothing, pass_fds=[end], start_new_session=True)

    def end(self) -> None:
        if self._process:
            self._line.close()
            self._process.wait()


SERVER = Server()
atexit.register(SERVER.end)


# -- the server --------------------------------------------------------------------------------------------------------


def serve(line: socket.socket) -> None:
    """Fork a process for each request, and report how each one ended."""
    _load_everything()
    running: dict[int, tuple[int, socket.socket]] = {}  # by the descriptor that tells of its end
    while True:
        for ready in select.select([line.fileno(), *running], [], [])[0]:
            if ready in running:
                pid, report = running.pop(ready)
                os.close(ready)
                _answer(report, os.waitpid(pid, 0)[1])
                report.close()
                continue
            message, descriptors, _, _ = socket.recv_fds(line, 1, 4)
            if not message:
                return
            pid, report = _fork(descriptors)
            running[os.pidfd_open(pid)] = pid, report


def _answer(report: socket.socket, number: int) -> None:
    with suppress(OSError):  # a story that failed does not listen any more
        report.sendall(number.to_bytes(_NUMBER, "big"))


def _fork(descriptors: list[int]) -> tuple[int, socket.socket]:
    report = socket.socket(fileno=descriptors[3])
    with report.makefile("rb") as request:
        asked = json.loads(request.read())
    if (pid := os.fork()) == 0:
        _be_the_command(asked, descriptors[:3])
    _answer(report, pid)
    for descriptor in descriptors[:3]:
        os.close(descriptor)
    return pid, report


def _be_the_command(asked: dict[str, Any], streams: list[int]) -> NoReturn:
    """As an interpreter would begin and end; never returns."""
    code: object = 1
    try:
        _move_in(asked, streams)
        [command] = distribution("bydawn").entry_points.select(name=os.path.basename(sys.argv[0]))
        code = command.load()()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        code = code if isinstance(code, int) else 0 if code is None else 1
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = 120  # as Python says it
        os._exit(code)


def _move_in(asked: dict[str, Any], streams: list[int]) -> None:
    os.setsid()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, 1 << 20)
    sys.stdin = _stream(0, "r", sys.stdin)
    sys.stdout = _stream(1, "w", sys.stdout)
    sys.stderr = _stream(2, "w", sys.stderr)
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    os.chdir(asked["cwd"])
    sys.argv = asked["argv"]
    programs = importlib.import_module("bydawn.system.programs")
    vars(programs)["_STARTED_IN"] = programs._here()  # the one thing that a module asks of the world when it is loaded


def _stream(number: int, mode: str, like: TextIO) -> TextIOWrapper:
    buffered: Any = os.fdopen(number, f"{mode}b", closefd=False)
    at_once = number == 2 or os.isatty(number)
    return TextIOWrapper(buffered, encoding=like.encoding, errors=like.errors, line_buffering=at_once)


def _load_everything() -> None:
    import bydawn

    for module in pkgutil.walk_packages(bydawn.__path__, "bydawn."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # what every command shares is not looked at, and so not copied, again and again


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
