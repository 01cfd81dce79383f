"""What a story about codex-autorunner is told with: the command, what Codex plays, and what both leave behind."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from driving import Fact, Home, Said, ledger_of, said
from program.strict_codex import calls, install
from program.terminal_driver import Shown, answered

Turn = dict[str, Any]

OURS = ".codex-autorunner"
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
START, END = re.compile(r"=== run (\d+) start ==="), re.compile(r"=== run (\d+) end \(code (-?\d+|interrupted)\) ===")
LINE = re.compile(rf"\[{STAMP}\] run=(\d+) (.*)")

# One item a run, as its document wants it: edits, a box, a line in PROGRESS.md, a summary.
ITEM: Turn = {"append": {"work.txt": "more\n"}, "tick": "TODO.md", "reply": "Did the first open item."}


class Block:
    """One run in the log: its number, its lines without stamps, and how it ended (empty while it is open)."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lines: list[str] = []
        self.code = ""

    @property
    def output(self) -> list[str]:
        return [line.removeprefix("stdout: ") for line in self.lines if line.startswith("stdout: ")]


def blocks(text: str) -> Iterator[Block]:
    """The runs of a log. Every line is a marker, or it has a stamp and the number of the run that it stands in."""
    block: Block | None = None
    assert text.endswith("\n") or not text
    for line in text.splitlines():
        if found := START.fullmatch(line):
            assert block is None, f"{line} within run {block.number}"
            block = Block(int(found[1]))
        elif found := END.fullmatch(line):
            assert block, f"{line} ends nothing"
            assert int(found[1]) == block.number
            block.code = found[2]
            yield block
            block = None
        else:
            found = LINE.fullmatch(line)
            assert found, f"neither a marker nor stamped: {line!r}"
            assert block, f"outside of every run: {line!r}"
            assert int(found[1]) == block.number
            block.lines.append(found[2])
    if block:
        yield block


class Autorunner:
    """The command in one repository, and the fake Codex that it finds."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.repo = home.repo
        self.bin = home.root / "bin"
        home.env["PATH"] = f"{self.bin}:{home.env['PATH']}"

    # -- setting the scene -----------------------------------------------------------------------------------------

    def plays(self, *turns: Turn, **options: Any) -> None:
        install(self.bin, turns, **options)

    def ready(self, items: int = 1, **values: str) -> "Autorunner":
        """What `init` writes, with so many open items, no pause, and these values in its config."""
        self.items(items)
        assert self("init").code == 0
        self.set(sleep_seconds="0", **values)
        return self

    def items(self, count: int) -> None:
        self.home.tasks(count)

    def set(self, **values: str) -> None:
        """Change values in config.yml, each where it stands, as a person does."""
        for key, value in values.items():
            text = self.config.read_text()
            row = re.compile(rf"(?m)^(\s*{key}:)[^#\n]*?([ ]*#.*)?$")
            changed, count = row.subn(rf"\g<1> {value}\g<2>", text)
            assert count == 1, f"config.yml has {count} rows for {key}"
            self.config.write_text(changed)

    def trust(self, *arguments: str) -> Shown:
        """A person agrees to what a refusal showed them."""
        shown = answered(self.home, "y\n", "trust", *arguments)
        assert shown.code == 0, shown
        return shown

    # -- the command -----------------------------------------------------------------------------------------------

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        return self.home.start(*words, command="codex-autorunner", **options)

    def __call__(self, *words: str, seconds: float = 60, **options: Any) -> Said:
        return said(self.start(*words, **options), seconds)

    # -- what is left ----------------------------------------------------------------------------------------------

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The turns that Codex was asked for."""
        return [call for call in calls(self.bin) if call["prompt"] is not None]

    @property
    def prompts(self) -> list[str]:
        return [call["prompt"] for call in self.calls]

    @property
    def config(self) -> Path:
        return self.repo / OURS / "config.yml"

    @property
    def lock(self) -> Path:
        return self.repo / OURS / "lock"

    @property
    def state(self) -> dict[str, Any]:
        return dict(json.loads((self.repo / OURS / "state.json").read_text()))

    @property
    def summary(self) -> tuple[Any, Any, Any]:
        """What the pseudo-code keeps of a loop between two runs."""
        state = self.state
        return state["last_run_id"], state["last_exit_code"], state["status"]

    @property
    def loops(self) -> list[Path]:
        """The folders of the loops that were made here, oldest first."""
        found = [path.parent for path in self.home.states.glob("loops/*/*/ledger.jsonl") if path.stat().st_size]
        return sorted(found, key=lambda folder: str(ledger_of(folder)[0]["at"]))

    def facts(self, kind: str) -> list[Fact]:
        return [fact for folder in self.loops for fact in ledger_of(folder) if fact["type"] == kind]

    @property
    def log(self) -> str:
        return (self.repo / OURS / "codex-autorunner.log").read_text()

    @property
    def blocks(self) -> list[Block]:
        return [*blocks(self.log)]

    @property
    def runs(self) -> list[tuple[int, str]]:
        """The runs in the log: number and code."""
        return [(block.number, block.code) for block in self.blocks]
