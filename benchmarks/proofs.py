"""What does it cost to look behind passing checks: how often do they run, and how long does counting take?"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Bench, Budget
from benchmarks.stage import BYDAWN, PYTHON, Broken, Stage
from bydawn.core import counts

_PRICE = "def price(n):\n    return {}\n"
_REBATE = "\n\ndef rebate(n):\n    return n + 1\n"
_TEST = (
    "import unittest\n\nimport shop\n\n\nclass Test(unittest.TestCase):\n    def test(self):\n        assert shop.{}\n"
)
_OLD = {"shop.py": _PRICE.format("n"), "tests/__init__.py": "", "tests/test_price.py": _TEST.format("price(1) == 1")}
_NEW_TEST = {"tests/test_rebate.py": _TEST.format("rebate(1) == 2")}
_NEW = {"shop.py": _OLD["shop.py"] + _REBATE}
_CHANGED = {"shop.py": _PRICE.format("n + 1"), "tests/test_price.py": _TEST.format("price(1) == 2")}
_WORDS = "## Changed tests\n\n- tests/test_price.py: the price has changed\n\n<promise>TASK_COMPLETE</promise>"
_LINES = (
    "tests/unit/test_orders.py::TestOrders::test_rounding_{0} PASSED          [ 50%]\n"
    "2026-11-19 01:02:03,123 INFO shop.orders: order {0} of 40 was priced at 12.50 EUR\n"
)
_SUM = "==== 10000 passed in 3.00s ====\n"


def runs(stage: Stage) -> Iterator[float]:
    """How often the check runs after the round that closes the only task."""
    yield _runs(stage, _OLD | _NEW_TEST, _NEW)
    yield _runs(stage, _OLD, _NEW | _NEW_TEST)
    yield _runs(stage, _OLD, _CHANGED)


def _runs(stage: Stage, before: dict[str, str], work: dict[str, str]) -> float:
    folder = stage.repository("proof", before | {"TODO.md": "- [ ] the work\n", ".gitignore": "__pycache__/\n"})
    script, log = stage.place("agent") / "script.json", stage.place("log") / "runs"
    files = {**work, "TODO.md": "- [x] the work\n"}
    says = {"result": {"text": _WORDS}}
    written = [{"write": {"path": path, "text": text}} for path, text in files.items()]
    # Python does not see a change of the same size within the second in which it has compiled the file.
    script.write_text(
        json.dumps({"rounds": [[{"run": ["cp", str(log), f"{log}.before"]}, {"sleep": 1.1}, *written, says]]})
    )
    check = f"echo run >> {log} && {PYTHON} -m unittest -q"
    stage.seconds(BYDAWN, "run", "-C", str(folder), "-t", "TODO.md", "-k", check, "-a", f"demo:{script}", "--plain")
    return len(log.read_text()[len(Path(f"{log}.before").read_text()) :].splitlines())


def counting(_: Stage) -> Iterator[float]:
    """An output of many lines, few of which count tests."""
    output = "".join(_LINES.format(number) for number in range(10_000)) + _SUM
    times = []
    for _turn in range(10):
        started = time.perf_counter()
        if not counts.of([output]):
            raise Broken("no tests were counted")
        times.append(time.perf_counter() - started)
    yield 1000 * min(times) / (len(output) / 1e6)


BENCHES = (
    Bench(
        (
            Budget("proof: runs of a check for a task that was red", 1, "runs"),
            Budget("proof: … that was green, with new tests", 4, "runs"),  # itself, control, without the work twice
            Budget("proof: … that was green, with changed tests", 6, "runs"),  # and with the old ones twice
        ),
        runs,
    ),
    Bench((Budget("proof: counting tests in a MB of output", 2, "ms"),), counting),
)
