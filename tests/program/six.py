"""The six commands, each with a small loop of its own in the repository of a home: for what holds of all of them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driving import Fact, Home, Said, ledger_of, said
from program import strict_claude, strict_codex
from program.autorunner import Autorunner
from program.codex_loop import ONE, CodexLoop, answer
from program.rloop import PRD, Rloop
from program.strict import Strict

Turn = dict[str, Any]

PROMISES = {"bydawn": "<promise>TASK_COMPLETE</promise>", "waylon-smithers": "<promise>DONE</promise>"}
LISTS = {"codex-autorunner": "TODO.md", "rloop": PRD}
SIX = ("bydawn", "waylon-smithers", "codex-autorunner", "rloop", "codex-loop", "strict-agent-loop")
TICK_ALL = r"sed -i 's/\[ \]/[x]/' "


class Six:
    """One of the six: how its loop is made, started, gone on with and looked at, and what its agent plays."""

    def __init__(self, home: Home, command: str) -> None:
        self.home, self.command = home, command
        self.worktree = False  # for bydawn, where codex-loop always has one
        self.strict = Strict(home)
        self.project = CodexLoop(home)
        if command == "rloop":
            Rloop(home)
        self.bin = home.root / "bin"

    # -- setting the scene -----------------------------------------------------------------------------------------

    def ready(self, boxes: int = 1) -> None:
        """What its document wants there before the first start."""
        repo = self.home.repo
        match self.command:
            case "codex-autorunner":
                self.home.tasks(boxes)
                assert self("init").code == 0
                Autorunner(self.home).set(sleep_seconds="0")
            case "rloop":
                (repo / PRD).write_text("# PRD\n\n" + "".join(f"- [ ] task {number}\n" for number in range(boxes)))
            case "codex-loop":
                self.project.project(ONE, execution={"max_iterations": 10_000})
            case "strict-agent-loop":
                self.strict.init(
                    "--stop-command",
                    "test -e last.txt",
                    *("--max-no-progress-rounds", "1000", "--max-iterations", "10000"),
                )
            case _:
                pass

    def plays(self, *turns: Turn) -> None:
        if self.command == "rloop":
            strict_claude.install(self.bin, turns)
        else:
            strict_codex.install(self.bin, turns)

    def works(self, name: str, **more: Any) -> Turn:
        """A turn that leaves a file of this name; much is left to do."""
        file = {"write": {f"{name}.txt": "x"}, **more}
        match self.command:
            case "codex-loop":
                return {**file, "reply": answer(ONE, "continue")}
            case "strict-agent-loop":
                return {**self.strict.round(1), **file}
            case "codex-autorunner" | "rloop":
                return {**file, "tick": LISTS[self.command], "reply": "Did one."}
            case _:
                return {**file, "reply": "On it."}

    def ends(self) -> Turn:
        """The turn after which nothing is left to do."""
        last = self.works("last")
        match self.command:
            case "codex-loop":
                return {**last, "reply": answer(ONE)}
            case "codex-autorunner" | "rloop":
                return {"sh": TICK_ALL + LISTS[self.command], "write": last["write"], "reply": "Did all."}
            case "bydawn" | "waylon-smithers":
                return {**last, "reply": f"All of it is there.\n{PROMISES[self.command]}"}
            case _:
                return last

    # -- the command -----------------------------------------------------------------------------------------------

    @property
    def first(self) -> tuple[str, ...]:
        """The words that start its loop, …"""
        codex = ("-a", "codex", "-n", "0", "--plain", "--name", "night", *(["--worktree"] if self.worktree else []))
        waylon = ("--completion-promise", "DONE", "--full-auto", "--loop-id", "night", "--max-iterations", "9999")
        return {
            "bydawn": ("run", "Write it.", *codex),
            "waylon-smithers": ("Write it.", *waylon),
            "codex-autorunner": ("run",),
            "rloop": ("start", ".", "--name", "night", "--no-tmux", "--max-iterations", "9999"),
            "codex-loop": ("run",),
            "strict-agent-loop": ("supervise", "--state", str(self.strict.state_path)),
        }[self.command]

    @property
    def again(self) -> tuple[str, ...]:
        """… and that go on with it. `rloop resume` returns at once, so bydawn's own is called."""
        ours = ("resume", *(path.parent.name for path in self._ledgers), "--plain")
        others = {"bydawn": ours, "rloop": ours, "waylon-smithers": ("resume", "--loop-id", "night")}
        return others.get(self.command, self.first)

    @property
    def looks(self) -> Iterator[tuple[str, ...]]:
        """Commands that show it, from its folder."""
        rows = {
            "bydawn": "status | show night | show night --json | why night | logs night | events night | doctor",
            "waylon-smithers": "status --loop-id night | list | list --json",
            "codex-autorunner": "status | doctor | log",
            "rloop": "status | status --json | logs night",
            "codex-loop": "status --summary | doctor | health | events | logs",
            "strict-agent-loop": "list-tasks | list-tasks --json | show-task --task-id hail | check-stop",
        }
        return (tuple(row.split()) for row in rows[self.command].split(" | "))

    def start(self, *words: str, **options: Any) -> "subprocess.Popen[str]":
        command = "bydawn" if words == self.again and self.command == "rloop" else self.command
        return self.home.start(*words, command=command, **{"cwd": self.home.repo, **options})

    def __call__(self, *words: str, **options: Any) -> Said:
        return said(self.start(*words, **options))

    # -- what is left ----------------------------------------------------------------------------------------------

    @property
    def work(self) -> Path:
        """Where its agent works."""
        if self.worktree:
            return self.home.root / ".bydawn-worktrees" / self.home.repo.name / "bydawn-night"
        return self.project.worktree if self.command == "codex-loop" else self.home.repo

    @property
    def files(self) -> set[str]:
        """What the turns have left there."""
        return {path.name for path in self.work.glob("*.txt") if path.name != "numbers.txt"}

    def facts(self, kind: str = "") -> list[Fact]:
        """Of its loop; a start that was killed may have made the file, and nothing else."""
        assert len(self._ledgers) < 2, self._ledgers
        return [fact for path in self._ledgers for fact in ledger_of(path.parent) if kind in ("", fact["type"])]

    @property
    def _ledgers(self) -> list[Path]:
        return [path for path in self.home.states.glob("loops/*/*/ledger.jsonl") if path.stat().st_size]

    @property
    def good(self) -> int:
        """The rounds that went well."""
        return sum(fact["data"]["outcome"] == "ok" for fact in self.facts("round.ended"))


each_of_six = pytest.mark.parametrize("command", SIX)
