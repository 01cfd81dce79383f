"""Honest work of this repository's own past: does any of it cost a second round, and do the checks notice it?

`python -m benchmarks.history` draws commits by lot and plays each as a task: the tree before it, an agent that makes
exactly that change, ticks the box and says why it changed tests, and as the check those tests of the commit that are
quick. It runs where the packages of the tests are.
"""

import argparse
import json
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.stage import BYDAWN, PYTHON, Stage, stage

_ROOT = Path(__file__).parents[1]
_QUICK = r"tests/(?:core|engine|agents|dialects|operations|web)/(?:\w+/)*test_\w+\.py"
_USUAL = "tests/core/test_tasks.py"  # if a commit has none
_AGENT = r"""cat > /dev/null
git apply --whitespace=nowarn ../change && sed -i 's/\[ \]/[x]/' TODO.md
cat ../reply"""


class Told(NamedTuple):
    """How the loop of one commit ended."""

    commit: str
    kind: str  # of the commit
    end: str
    rounds: int
    answer: str  # would the checks notice if it were missing?
    why: str

    @property
    def line(self) -> str:
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        return f"{self.commit[:10]} {self.kind}: {self.end} after {rounds}, {self.answer}. {self.why}"


def drawn(count: int, seed: int) -> list[str]:
    """Commits that change the program, by lot."""
    listed = _git("log", "--no-merges", "--format=%H", "--", "src/bydawn").split()
    return random.Random(seed).sample(listed, count)  # noqa: S311 - to be had again, which is the point


def played(commit: str) -> Told:
    """One commit, as the only task of a loop."""
    subject = _git("log", "-1", "--format=%s", commit).strip()
    rows = _git("diff", "--name-status", "--no-renames", f"{commit}^", commit).splitlines()
    changed = {path: how for how, path in (row.split("\t") for row in rows)}
    tests = [path for path in changed if path.startswith("tests/")]
    quick = [path for path in tests if re.fullmatch(_QUICK, path) and changed[path] != "D"]
    reasons = "".join(f"- `{path}`: {subject}\n" for path in tests if changed[path] != "A")
    with stage() as place:
        work = _checkout(place, f"{commit}^", f"- [ ] {subject}\n")
        (place.folder / "change").write_text(_git("diff", "--binary", "--no-renames", f"{commit}^", commit))
        (place.folder / "reply").write_text(f"Done.\n\n## Changed tests\n\n{reasons}" if reasons else "Done.\n")
        (place.folder / "agent").write_text(_AGENT)
        # Those that are there: before the commit, too, such a check passes.
        check = f"PYTHONPATH=src:tests {PYTHON} -m pytest -q -p no:cacheprovider $(ls {' '.join(quick)} {_USUAL} 2>&-)"
        run = ("run", "-t", "TODO.md", "-k", check, "-n", "5", "--plain", "-a", "cmd:sh ../agent")
        env = place.env | {"BYDAWN_BOX": "auto"}
        subprocess.run([BYDAWN, *run], cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=1800)
        shown = subprocess.run([BYDAWN, "show", "--json"], cwd=work, env=env, capture_output=True, check=True)
    return _told(commit, "code and tests" if tests else "code", json.loads(shown.stdout))


def _told(commit: str, kind: str, found: dict[str, Any]) -> Told:
    proof = found.get("proof", {})
    [noticed] = proof.get("noticed") or [{"answer": "nothing was looked at", "detail": ""}]
    why = " | ".join(filter(None, (noticed["detail"], found["reason"], proof.get("control"))))
    return Told(commit, kind, found["state"], found["round"], noticed["answer"], why)


def _checkout(place: Stage, tree: str, tasks: str) -> Path:
    """A repository of its own with a tree of this one, and a list."""
    work = place.repository("work", {"TODO.md": tasks})
    with subprocess.Popen(["git", "archive", tree], cwd=_ROOT, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "x"], cwd=work, stdin=archive.stdout, check=True)
    for words in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qm", "before"]):
        subprocess.run(["git", *words], cwd=work, check=True)
    return work


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_ROOT, check=True, capture_output=True, text=True).stdout


def rows(told: list[Told]) -> Iterator[str]:
    """A line for each that was not simply noticed, and the sums."""
    for each in told:
        if (each.end, each.rounds, each.answer) != ("complete", 1, "noticed"):
            yield each.line
    for what, found in (
        ("rounds", Counter(each.rounds for each in told)),
        ("ends", Counter(each.end for each in told)),
        ("code and tests", Counter(each.answer for each in told if each.kind == "code and tests")),
        ("code alone", Counter(each.answer for each in told if each.kind == "code")),
    ):
        yield f"{what}: {', '.join(f'{name} {count} ×' for name, count in found.most_common())}"


def main() -> None:
    """All of them, some at a time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    for name, default in (("commits", 40), ("seed", 1), ("jobs", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    with ThreadPoolExecutor(asked.jobs) as pool:
        print("\n".join(rows(list(pool.map(played, drawn(asked.commits, asked.seed))))))


if __name__ == "__main__":
    main()
