"""Does the worker keep up with what an agent writes, in time and in memory?"""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.owner import Report
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BYDAWN, PYTHON, Broken, Stage, fastest
from bydawn.agents.demo.agent import DemoAgent
from bydawn.core.agent import Turn
from bydawn.core.facts import RoundEnded
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import records

_SIZE = 100 << 20
_ONE_LINE = 500_000_000
_TURNS = 4
_MB = 1_000_000
_MISBEHAVING = Path(__file__).parents[1] / "tests/misbehaving.py"  # which has the flood

# What agents write: mostly short words and deeds, now and then a whole file.
_TEXTS = (
    ("message", "I will look at the failing test first, then at the function it calls."),
    ("activity", "editing src/settings.py"),
    ("message", 'The test says: AssertionError: "naïve café" != "naive-cafe"\n\nSo accents have to go. ' * 3),
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


def owner(stage: Stage) -> Iterator[float]:
    """The process owner and the reader alone, on lines of all lengths."""
    lines, kept = str(_lines(stage)), stage.folder / "kept"

    def ours() -> float:
        return _own(stage, kept, "cat", lines).seconds

    our_time, their_time = fastest([ours, partial(_tee_and_jq, stage, f"cat {lines}")], _TURNS)
    yield their_time / our_time


def command(stage: Stage) -> Iterator[float]:
    """The whole command in the foreground, on the demo agent's flood; the time of the round stands in its ledger."""
    workspace, script = stage.repository("flood"), stage.folder / "flood.json"
    steps = [{"flood": {"bytes": _SIZE, "lines": True}}, {"result": {"text": "on"}}]
    script.write_text(json.dumps({"rounds": [steps], "steps": str(_MISBEHAVING)}))
    start = (BYDAWN, "run", "go on", "-C", str(workspace), "-t", "TODO.md", "-a", f"demo:{script}", "--once", "--plain")

    def ours() -> float:
        stage.seconds(*start, code=4)
        facts = [record.fact for record in records(LoopFolder(workspace / ".bydawn" / "loops" / workspace.name))]
        shutil.rmtree(stage.folder / "state")
        return sum(fact.seconds for fact in facts if isinstance(fact, RoundEnded))

    agent = DemoAgent(script=str(script)).command(Turn(round=1, workspace=str(workspace)))
    our_time, their_time = fastest([ours, partial(_tee_and_jq, stage, " ".join(agent.argv))], _TURNS)
    yield their_time / our_time


def memory(stage: Stage) -> Iterator[float]:
    lines, kept = str(_lines(stage)), stage.folder / "kept"
    yield _own(stage, kept, "cat", *[lines] * 10).grown / _MB
    line = _own(stage, kept, "head", "-c", str(_ONE_LINE), "/dev/zero")
    if line.skipped != _ONE_LINE:
        raise Broken(f"of one line of {_ONE_LINE} bytes {line.skipped} were passed over")
    yield line.grown / _MB


def delay(stage: Stage) -> Iterator[float]:
    yield median(_own(stage, stage.folder / "kept", PYTHON, "-I", "-S", "-c", _CLOCK).delays) * 1000


def _own(stage: Stage, kept: Path, *argv: str) -> Report:
    said = stage.output(PYTHON, "-m", "benchmarks.owner", str(kept), *argv)
    kept.unlink()
    return msgspec.json.decode(said, type=Report)


def _tee_and_jq(stage: Stage, writer: str) -> float:
    """The same stream of the same writer, kept by one program and parsed by another."""
    jq = shutil.which("jq")
    if jq is None:
        raise Broken("jq was not found: apt-get install jq")
    kept = stage.folder / "kept"
    taken = stage.seconds("/bin/sh", "-c", f"{writer} | tee {kept} | {jq} -c .type >/dev/null")
    kept.unlink()
    return taken


def _lines(stage: Stage) -> Path:
    path = stage.folder / "lines"
    block = b"".join(msgspec.json.encode({"type": kind, "text": text}) + b"\n" for kind, text in _TEXTS)
    with path.open("wb") as file:
        for _ in range(_SIZE // len(block)):
            file.write(block)
    return path


BENCHES = (
    Bench((Budget("stream: owner and reader against tee | jq", 2.5, "×", at_least=True),), owner),
    Bench((Budget("stream: the whole command against tee | jq", 2.5, "×", at_least=True),), command),
    Bench((Budget("stream: growth on 1 GB", 20, "MB"), Budget("stream: growth on a line of 500 MB", 20, "MB")), memory),
    Bench((Budget("stream: from agent to reader, p50", 5, "ms"),), delay),
)
