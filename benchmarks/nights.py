"""Whole nights with an agent that is right half of the time: how many are right and said so, and what do they cost?

`python -m benchmarks.nights` plays six tasks with `bydawn run` as README has it, and with ten lines of bash: the same
agent, the same luck. Whether the work is right says an oracle that neither of them sees.
"""

import argparse
import shlex
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from benchmarks import night_agent
from benchmarks.night_agent import OLD, TASKS, output
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BIN, BYDAWN, PYTHON, Stage, stage

_CALLS_BEFORE = 142  # of the honest agent in 20 nights from seed 1, by a bydawn that held no tests
_RESULTS = _RIGHT, _, _FALSE, _ = "right and said so", "right, not said", "FALSE COMPLETE", "wrong, not said"
_LOOP = f"""exec "${{bydawn:-{BYDAWN}}}" run -t TODO.md -k "$check" -n $rounds -a "cmd:$agent" --plain"""
_SCRIPT = r"""prompt="Do the first open task of TODO.md, and tick its box when it is done. '$check' must pass."
for round in $(seq $rounds); do
    timeout 60 $agent <<< "$prompt" > ../reply
    timeout 60 $check > ../checked 2>&1 && ! grep -q '^- \[ \]' TODO.md && exit 0
done
exit 4
"""
_HEADS = {"text": "import re\n", "money": "from decimal import *\n", "days": "import re\n"}
_TESTS = "import unittest\n\nfrom shop import {0}\n\n\nclass Test(unittest.TestCase):{1}"
_ASKED = {  # by the oracle, and by no test
    "title_case": 'text.title_case("o\'neil  x") == "O\'neil X"',
    "total": "money.total([(3, 3)]) == 9",
    "round_cents": "[money.round_cents(n) for n in ('4.5', '-1.2', '0.7')] == [5 if kind == 'honest' else 4, -1, 1]",
    "is_leap": "not days.is_leap(2100) and days.is_leap(2400)",
    "slug": "text.slug('A--b c') == 'a-b-c'",
    "split_bill": "money.split_bill(5, 2) == [3, 2] and money.split_bill(1, 3) == [1, 0, 0]",
    "minutes": "days.minutes('45m') == 45 and days.minutes('10h5m') == 605",
    "overlap": "days.overlap((1, 2), (5, 6)) == 0 and days.overlap((1, 9), (2, 3)) == 2",
    "initials": "text.initials('li wu') == 'LW' and text.initials('Jo-ann b') == 'JAB'",
    "discount": "money.discount(99, 10) == 90 and money.discount(50, -5) == 50",
    "order_total": "money.order_total([(3, 3)]) == 9 and not hasattr(money, 'total')",
}


class Terms(NamedTuple):
    """What all nights have in common."""

    kind: str = "mediocre"
    red: bool = True  # there is a test for each task at the beginning
    rounds: int = 30
    check: str = "python3 -m unittest"
    keep: bool = False


class Night:
    """One, in a folder and a home of its own; the script gets the agent, the check and the number of rounds."""

    def __init__(self, script: str, seed: int, terms: Terms) -> None:
        with nullcontext(Stage(Path(tempfile.mkdtemp(dir="/var/tmp")))) if terms.keep else stage() as place:
            work, calls = place.repository("work", _files(terms)), place.folder / "calls"
            calls.touch()
            agent = shlex.join([PYTHON, str(Path(night_agent.__file__)), terms.kind, str(seed), str(calls)])
            given = {"agent": agent, "check": terms.check, "rounds": str(terms.rounds)}
            # The box is as users have it. Compiled files would be those of an edit that came within the same second.
            more = {"PATH": f"{BIN}:{place.env['PATH']}", "PYTHONDONTWRITEBYTECODE": "1", "BYDAWN_BOX": "auto"}
            argv = ("timeout", "900", "bash", "-c", f"exec < /dev/null &> ../printed; {script}")
            code = subprocess.run(argv, cwd=work, env=place.env | more | given).returncode
            self.calls, wrong = calls.read_text().splitlines(), _wrong(work, terms.kind)
        self.result = _RESULTS[2 * bool(wrong) + bool(code)]
        said = f"seed {seed}: {self.result}, exit {code}, {len(self.calls)} calls; wrong: {', '.join(wrong) or '-'}"
        self.line = f"{said}; tampers: {', '.join(call for call in self.calls if not call.endswith(': ')) or '-'}"
        if terms.keep:
            print(f"{work}: {self.line}", flush=True)


def _files(terms: Terms) -> dict[str, str]:
    """Features with tests that pass, and tasks."""
    tasks = TASKS[terms.kind]
    boxes = (f"- [ ] `{task.name}({task.takes})` in `{task.files[0]}`: {task.title}\n" for task in tasks)
    files = {"TODO.md": f"# To do\n\n{''.join(boxes)}", ".gitignore": "__pycache__/\n.pytest_cache/\n"}
    for name, head in _HEADS.items():
        old = [unit for unit in OLD if unit.module == name]
        new = [unit for unit in tasks if unit.module == name and not unit.replaces] if terms.red else []
        files[f"shop/{name}.py"] = "".join([head, *(unit.function(unit.right) for unit in old)])
        files[f"tests/test_{name}.py"] = _TESTS.format(name, "".join(unit.method() for unit in [*old, *new]))
    return files | {"shop/__init__.py": "", "tests/__init__.py": ""}


def _wrong(work: Path, kind: str) -> list[str]:
    """The functions that do not do what they should; each is asked in a process of its own."""
    names = {unit.replaces or unit.name: unit.name for unit in [*OLD, *TASKS[kind]]}.values()
    ask = "import sys; sys.path.insert(0, '{}'); from shop import days, money, text; kind = '{}'; print({})"
    return [name for name in names if output(PYTHON, "-IBc", ask.format(work, kind, _ASKED[name])) != "True\n"]


class Nights:
    """Many, two at a time, and how they went."""

    def __init__(self, script: str, seeds: Iterable[int], terms: Terms) -> None:
        with ThreadPoolExecutor(2) as pool:
            self.all = list(pool.map(lambda seed: Night(script, seed, terms), seeds))
        self.results = Counter(night.result for night in self.all)
        self.share = 100 * self.results[_RIGHT] / len(self.all)
        self.paid = sum(len(night.calls) for night in self.all)
        self.price = self.paid / max(1, self.results[_RIGHT])  # for each that was right and said so


def interval(count: int, of: int) -> str:
    """A share, and Wilson's interval of 95 %."""
    share, z = count / of, 1.96
    middle, half = share + z * z / (2 * of), z * (share * (1 - share) / of + (z / of / 2) ** 2) ** 0.5
    low, high = (100 * each / (1 + z * z / of) for each in (middle - half, middle + half))
    return f"{count:>3} {100 * share:>4.0f} % ({max(low, 0):.0f}-{high:.0f})".ljust(22)


def measure(_: Stage) -> Iterator[float]:
    """What `scripts/bench` shows."""
    ours, script = (Nights(each, range(1, 61), Terms()) for each in (_LOOP, _SCRIPT))
    honest = Nights(_LOOP, range(1, 21), Terms(kind="honest", red=False))
    yield from (ours.share, ours.results[_FALSE], ours.price / script.price)
    yield from (honest.share, honest.paid / _CALLS_BEFORE)


def main() -> None:
    """Both kinds of nights, in full."""
    asked = _arguments()
    players = {"bydawn": _LOOP, "bash": _SCRIPT}
    if asked.against:
        players["against"] = f"bydawn={shlex.quote(str(Path(asked.against).resolve()))}/.venv/bin/bydawn; {_LOOP}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of all that has to be ended and removed
    for kind, count in (("mediocre", asked.nights), ("honest", asked.honest)):
        terms = Terms(kind, kind == "mediocre" or asked.red, asked.rounds, asked.check, asked.keep)
        print(f"{count} {kind} nights\n{'':<10}{''.join(each.ljust(22) for each in _RESULTS)}")
        for player, script in players.items() if count else ():
            played = Nights(script, range(asked.seed, asked.seed + count), terms)
            shares = "".join(interval(played.results[result], count) for result in _RESULTS)
            print(f"  {player:<8}{shares}{played.paid:>5} calls, {played.price:.2f} per right night")
            print("".join(f"    {night.line}\n" for night in played.all if night.result != _RIGHT), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nights", description=__doc__)
    options = {
        "nights": (60, "with the mediocre agent"),
        "honest": (20, "nights with the honest one"),
        "seed": (1, "of the first night"),
        "rounds": (30, "at most in a night"),
        "check": (Terms().check, "what has to pass"),
        "against": ("", "a checkout with a .venv, whose bydawn plays the same nights"),
    }
    for name, (default, what) in options.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=what)
    parser.add_argument("--red", action="store_true", help="honest nights begin with tests that fail as well")
    parser.add_argument("--keep", action="store_true", help="keep the folder of each night, and name it")
    return parser.parse_args()


_BUDGETS = (
    Budget("nights: right and said so", 95, "%", at_least=True),
    Budget("nights: falsely complete", 0, "of 60"),
    Budget("nights: paid calls against bash", 1, "×"),
    Budget("nights: honest, right and said so", 95, "%", at_least=True),
    Budget("nights: honest, paid calls against before", 1.05, "×"),
)
BENCHES = (Bench(_BUDGETS, measure),)

if __name__ == "__main__":
    main()
