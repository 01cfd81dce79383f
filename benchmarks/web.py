"""The web page: does it stay quick with many loops, long loops, long logs and many viewers, and leave loops alone?"""

import http.client
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.ledgers import write_loop
from benchmarks.memory import pss
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BYDAWN, PYTHON, Broken, Stage, fastest, until, wait

_TOKEN = "a token for the benchmark"  # noqa: S105 - of nothing
_TURNS = 15
_VIEWERS = 200
_LINES = 60
_MB = 1_000_000
_TAIL = 1_000_000  # bytes of real lines; what stands before them is a hole that takes no room

# A line every 100 ms, holding the reading of the clock at the moment before it is written.
_CLOCK = """
import os, time
time.sleep(4)
for _ in range(%d):
    os.write(1, b'{"type":"message","text":"at-%%d-"}\\n' %% time.monotonic_ns())
    time.sleep(0.1)
print('{"type":"result","outcome":"ok","text":"done"}', flush=True)
"""


class Served:
    """A running server."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.pid = pid

    def first_byte(self, path: str) -> float:
        """Seconds from the request to the first byte of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            began = time.perf_counter()
            connection.request("GET", path, headers={"authorization": f"Bearer {_TOKEN}"})
            answer = connection.getresponse()
            took = time.perf_counter() - began
            if answer.status != 200:
                raise Broken(f"GET {path} answered {answer.status}")
            answer.read()
            return took
        finally:
            connection.close()

    def stream(self, query: str) -> socket.socket:
        viewer = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        head = (
            f"GET /api/stream?{query} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n"
        )
        viewer.sendall(head.encode())
        return viewer


@contextmanager
def served(stage: Stage, state: Path) -> Iterator[Served]:
    said = stage.folder / f"serve-{state.name}"
    stage.env["BYDAWN_WEB_TOKEN"] = _TOKEN
    pid = stage.spawn(BYDAWN, "serve", "--port", "0", "--state-dir", str(state), stdout=str(said))
    try:
        until(lambda: "http://" in said.read_text() if said.exists() else "", "the server")
        yield Served(int(said.read_text().partition("127.0.0.1:")[2].split()[0]), pid)
    finally:
        os.kill(pid, signal.SIGTERM)
        wait(pid, 10)


def _against(stage: Stage, places: dict[Path, str]) -> float:
    """The first byte of one page against that of another, each of a server of its own."""
    with ExitStack() as servers:
        asked: list[Callable[[], float]] = []
        for state, path in places.items():
            asked.append(partial(servers.enter_context(served(stage, state)).first_byte, path))
        for each in asked:
            each()
        small, big = fastest(asked, _TURNS)
        return big / small


def home(stage: Stage) -> Iterator[float]:
    states = [stage.place("state") for _ in range(2)]
    for state, count in zip(states, (10, 1_000), strict=True):
        for number in range(count):
            write_loop(state, stage.folder, f"loop-{number}", 3)
    yield _against(stage, dict.fromkeys(states, "/"))


def long_loop(stage: Stage) -> Iterator[float]:
    states = [stage.place("state") for _ in range(2)]
    for state, rounds in zip(states, (10, 10_000), strict=True):
        write_loop(state, stage.folder, "night", rounds)
    yield _against(stage, dict.fromkeys(states, "/loops/night"))


def long_log(stage: Stage) -> Iterator[float]:
    states = [stage.place("state") for _ in range(2)]
    line = b'{"type":"message","text":"one of many lines that an agent wrote in a long night"}\n'
    for state, size in zip(states, (_TAIL, 1_000_000_000), strict=True):
        folder = write_loop(state, stage.folder, "night", 1) / "rounds/0001"
        folder.mkdir(parents=True)
        (folder / "prompt.md").write_text("go on")
        with (folder / "stdout").open("wb") as file:
            file.truncate(size - _TAIL)
            file.seek(0, 2)
            file.write(b"\n" + line * (_TAIL // len(line)))
        (folder / "stdout.times").write_bytes(b"%016d %012d %014d\n" % (size - _TAIL + 1, 2, 0))
    yield _against(stage, dict.fromkeys(states, "/loops/night/log"))


def viewers(stage: Stage) -> Iterator[float]:
    """Line → browser with one viewer and with many, one of which takes nothing; memory; and the pace of a loop."""
    state = stage.place("state")
    quiet, beside = _rounds(stage, state), 0.0
    with served(stage, state) as server:
        yield _latency(stage, state, server, 1)[0]
        many, growth = _latency(stage, state, server, _VIEWERS)
        yield many
        yield growth / _MB
        with ExitStack() as watching:
            for _ in range(_VIEWERS):
                watching.enter_context(server.stream("loops=*"))
            beside = _rounds(stage, state)
    yield beside / quiet


def _rounds(stage: Stage, state: Path) -> float:
    """Processor time of a loop of ten rounds, its agents and checks included."""
    workspace, script = stage.repository("pace"), stage.folder / "pace.json"
    script.write_text('{"rounds": [' + ", ".join(['[{"result": {"text": "on"}}]'] * 10) + "]}")
    words = ["run", "go on", "-C", str(workspace), "-a", f"demo:{script}", "-n", "10", "-k", "true", "--plain"]
    words += ["--done-when", "it is dawn", "--max-no-change", "0", "--state-dir", str(state), "--new"]
    return min(stage.work(BYDAWN, *words, code=4) for _ in range(3))


def _latency(stage: Stage, state: Path, server: Served, count: int) -> tuple[float, float]:
    """The median time from the moment before a line is written until each viewer has it, in ms, and what it costs."""
    workspace = stage.repository("clock")
    agent = stage.folder / f"clock-{count}.py"
    agent.write_text(_CLOCK % _LINES)
    words = ("run", "go on", "-C", str(workspace), "-a", f"cmd:{PYTHON} {agent}", "--once", "--plain", "-d")
    stage.seconds(BYDAWN, *words, "--state-dir", str(state))
    name = workspace.name
    times, before = list[int](), 0
    with ExitStack() as open_, selectors.DefaultSelector() as watch:
        for _ in range(count):
            watch.register(
                open_.enter_context(server.stream(f"page=/loops/{name}&log={name}:1:0:1")), selectors.EVENT_READ
            )
        if count > 1:
            stuck = open_.enter_context(server.stream(f"page=/loops/{name}&log={name}:1:0:1"))
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deadline = time.monotonic() + 4 + _LINES * 0.1 + 3
        while time.monotonic() < deadline:
            if not before and len(times) > count * _LINES // 3:
                before = pss(server.pid)
            for key, _ in watch.select(0.2):
                data, now = os.read(key.fd, 1 << 20), time.monotonic_ns()
                for part in data.split(b"at-")[1:]:
                    mark = part.partition(b"-")[0]
                    if mark.isdigit():
                        times.append(now - int(mark))
        after = pss(server.pid)
    if len(times) < count * _LINES // 2:
        raise Broken(f"{count} viewers got {len(times)} lines in all, of {count * _LINES}")
    return median(times) / 1e6, after - before


BENCHES = (
    Bench((Budget("web: home with 1,000 loops against 10", 3, "×"),), home),
    Bench((Budget("web: loop of 10,000 rounds against 10", 2, "×"),), long_loop),
    Bench((Budget("web: log of 1 GB against 1 MB", 1.5, "×"),), long_log),
    Bench(
        (
            Budget("web: line → browser, one viewer (p50)", 60, "ms"),
            Budget(f"web: line → browser, {_VIEWERS} viewers (p50)", 300, "ms"),
            Budget(f"web: memory that grows while {_VIEWERS} viewers watch", 10, "MB"),
            Budget(f"web: rounds beside {_VIEWERS} viewers against none", 1.1, "×"),
        ),
        viewers,
    ),
)
