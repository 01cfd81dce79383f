"""Does the worker keep up with what an agent writes, in time and in memory?"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.owner import Report
from benchmarks.rows import Bench, Budget
from benchmarks.stage import PYTHON, Broken, Stage, fastest

_SIZE = 100_000_000
_TURNS = 4
_MB = 1_000_000

# What agents write: mostly short words and deeds, now and then a whole file.
_TEXTS = (
    ("message", "I will look at the failing test first, then at the function it calls."),
    ("activity", "editing src/settings.py"),
    ("message", 'The test says: AssertionError: "naïve café" != "naive-cafe"\n\nSo accents have to go.' * 3),
    ("activity", "ran python -m pytest -q tests/test_slug.py: exit code 1"),
    ("message", "def slugify(text: str) -> str:\n    return '-'.join(text.split())\n" * 24),
)

# A line every 20 ms, holding the reading of the clock at the moment before it is written.
_CLOCK = """
import os, time
for _ in range(150):
    os.write(1, b'{"type":"message","text":"%d"}\\n' % time.monotonic_ns())
    time.sleep(0.02)
"""


def speed(stage: Stage) -> Iterator[float]:
    """`tee` keeps and `jq` parses the same stream of the same writer."""
    jq = shutil.which("jq")
    if jq is None:
        raise Broken("jq was not found: apt-get install jq")
    lines, kept = _lines(stage), stage.folder / "kept"
    pipeline = f"cat {lines} | tee {kept} | {jq} -c .type >/dev/null"

    def ours() -> float:
        kept.unlink(missing_ok=True)
        return _own(stage, kept, "cat", str(lines)).seconds

    def theirs() -> float:
        kept.unlink(missing_ok=True)
        return stage.seconds("/bin/sh", "-c", pipeline)

    our_time, their_time = fastest([ours, theirs], _TURNS)
    yield their_time / our_time


def memory(stage: Stage) -> Iterator[float]:
    lines, kept = str(_lines(stage)), stage.folder / "kept"
    flood = _own(stage, kept, "cat", *[lines] * 10)
    kept.unlink()
    yield flood.grown / _MB
    line = _own(stage, kept, "head", "-c", "500000000", "/dev/zero")
    if line.skipped != 500_000_000:
        raise Broken(f"of one line of 500 MB {line.skipped} bytes were passed over")
    yield line.grown / _MB


def delay(stage: Stage) -> Iterator[float]:
    yield median(_own(stage, stage.folder / "kept", PYTHON, "-I", "-S", "-c", _CLOCK).delays) * 1000


def _own(stage: Stage, kept: Path, *argv: str) -> Report:
    return msgspec.json.decode(stage.output(PYTHON, "-m", "benchmarks.owner", str(kept), *argv), type=Report)


def _lines(stage: Stage) -> Path:
    path = stage.folder / "lines"
    if not path.exists():
        block = b"".join(msgspec.json.encode({"type": kind, "text": text}) + b"\n" for kind, text in _TEXTS)
        with path.open("wb") as file:
            for _ in range(_SIZE // len(block)):
                file.write(block)
        os.sync()  # or the first to be measured would wait for it
    return path


BENCHES = (
    Bench((Budget("stream: speed against tee | jq", 2.5, "×", at_least=True),), speed),
    Bench(
        (Budget("stream: growth on 1 GB", 20, "MB"), Budget("stream: growth on one line of 500 MB", 20, "MB")), memory
    ),
    Bench((Budget("stream: from agent to reader, p50", 5, "ms"),), delay),
)
