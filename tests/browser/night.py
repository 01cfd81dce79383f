"""What a person finds in the morning: loops of the built-in agent that ended in different ways, and one that runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

from driving import MISBEHAVING, Home, Step, a_repository, ledger_of, said, wait_for

TODO = """\
# Refunds

- [x] Read the old rules
- [ ] Refund whole orders
- [ ] Prorate refunds

HARD STOP: ask Mia about the tax

- [ ] Refund the tax, too
- [ ] Write docs/refunds.md
"""
CHECK = """\
if grep -q ROUND_HALF_UP refund.py 2>/dev/null || ! grep -q prorate refund.py 2>/dev/null; then
    echo "2 passed in 0.12s"
    exit 0
fi
echo "tests/test_refund.py:41: in test_prorated"
echo "E   AssertionError: Decimal('9.99') != Decimal('10.00')"
echo "1 failed, 1 passed in 0.14s"
exit 1
"""
REFUND = '"""What is paid back."""\n\n\ndef refund(order):\n    return order.total\n'
PRORATED = f"{REFUND}\n\ndef prorate(order, days):\n    return order.total * days / 30\n"
WORDS = "The rounding rule in docs/refunds.md contradicts the test; I can't tell which is right."


def used(dollars: float, tokens: int = 48_000) -> dict[str, Any]:
    return {"tokens_in": tokens, "tokens_cached": tokens // 2, "tokens_out": tokens // 20, "cost_usd": dollars}


def edit(path: str, text: str) -> list[Step]:
    return [{"activity": f"editing {path}"}, {"write": {"path": path, "text": text}}]


FIRST: list[Step] = [
    {"activity": "reading TODO.md"},
    {"say": "Whole orders first: the smallest step that can be **proven**."},
    *edit("refund.py", REFUND),
    {"tick": "Refund whole orders"},
    {"result": {"text": "Whole orders are refunded. There is a test for it.", "usage": used(0.31)}},
]
STUCK: list[Step] = [
    {"activity": "reading docs/refunds.md"},
    {"say": "The test wants ten, the rule says 9.99."},
    *edit("refund.py", PRORATED),
    {"append": {"path": "notes.txt", "text": "tried again\n"}},
    {"run": ["sh", "-c", "echo thinking"]},
    {"result": {"text": WORDS, "usage": used(0.42)}},
]
RIGHT: list[Step] = [
    {"say": "Half up, then."},
    *edit("refund.py", PRORATED.replace("/ 30", "/ 30  # ROUND_HALF_UP")),
    *({"tick": task} for task in ("Prorate refunds", "Refund the tax, too", "Write docs/refunds.md")),
    {"result": {"text": "Everything is done.", "usage": used(0.2)}},
]
END: Step = {"result": {"text": "That one is done.", "usage": used(0.12)}}
EACH: list[Step] = [{"append": {"path": "done.txt", "text": "{task}\n"}}, {"tick": "{task}"}, END]
EASY = {"rounds": [[{"each_task": {"steps": EACH, "done": [], "tasks": "TODO.md"}}]], "steps": MISBEHAVING}
ANSWER: list[Step] = [
    {"activity": "reading docs/refunds.md"},
    {"result": {"text": "Round half up, as `tests/test_refund.py` does.\n\n- the rule is older\n- nobody uses it"}},
]


class Night:
    """The loops of a home, each in a repository of its own that has its name."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def start(self, name: str, script: dict[str, Any], *arguments: str) -> "subprocess.Popen[str]":
        """A loop in a new repository; its agent plays a script."""
        folder, path = self.home.root / name, self.home.root / f"{name}.json"
        a_repository(folder, f"# {name}\n")
        (folder / "TODO.md").write_text(TODO)
        (folder / "check.sh").write_text(CHECK)
        path.write_text(json.dumps(script))
        words = ("run", "Make refunds work, task by task.", "-a", f"demo:{path}", "--plain", "-t", "TODO.md")
        return self.home.start(*words, "-C", str(folder), *arguments)

    def folder(self, name: str) -> Path:
        [found] = self.home.states.glob(f"loops/*/{name}")
        return found

    def facts(self, name: str, kind: str) -> list[dict[str, Any]]:
        found = [*self.home.states.glob(f"loops/*/{name}/ledger.jsonl")]
        return [fact["data"] for fact in ledger_of(found[0].parent) if fact["type"] == kind] if found else []

    def ends(self, name: str) -> None:
        """Wait until a loop that was resumed has stopped again."""
        wait_for(lambda: len(self.facts(name, "loop.stopped")) == len(self.facts(name, "run.started")), 60)

    def state(self, name: str) -> str:
        [loop] = json.loads(self.home.bydawn("status", name, "--json").out)["loops"]
        return str(loop["state"])

    # -- loops ---------------------------------------------------------------------------------------------------------

    def blocked(self, name: str = "billing", *before: Step) -> "subprocess.Popen[str]":
        """The same check fails three times; in its fifth round the agent would get it right.

        Asked, it does these steps `before` it answers.
        """
        script = {"rounds": [FIRST, STUCK, STUCK, STUCK, RIGHT], "chat": [*before, *ANSWER]}
        return self.start(name, script, "-k", "sh check.sh", "--max-same-failure", "3")

    def running(self, name: str = "shop-api") -> tuple["subprocess.Popen[str]", Path]:
        """Its third round works until this file is there, its fourth, which gets it right, until `{name}-4` is."""
        gate, opened = self.home.gate(f"{name}-3")
        last, _ = self.home.gate(f"{name}-4")
        script = {"rounds": [FIRST, STUCK, [*STUCK[:3], gate, *STUCK[3:]], [last, *RIGHT]], "chat": ANSWER}
        process = self.start(name, script, "-k", "sh check.sh", "--max-same-failure", "0", "-n", "30")
        wait_for(lambda: self.says(name, 3, "refund.py"), 60)
        return process, opened

    def says(self, name: str, number: int, words: str) -> bool:
        """Has the agent printed this in a round?"""
        found = [*self.home.states.glob(f"loops/*/{name}/rounds/{number:04}/stdout")]
        return bool(found) and words in found[0].read_text()

    def checkpoint(self, name: str = "payments") -> "subprocess.Popen[str]":
        return self.start(name, EASY, "--checkpoint", "HARD STOP:exit")

    def limit(self, name: str = "search") -> "subprocess.Popen[str]":
        return self.start(name, EASY, "-n", "1")

    def demo(self) -> "subprocess.Popen[str]":
        return self.home.start("demo", "--plain", BYDAWN_DEMO_PACE="0")


def over(*processes: "subprocess.Popen[str]") -> None:
    """Wait for the ends of loops."""
    for process in processes:
        said(process, 60)
