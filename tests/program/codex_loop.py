"""What a story about codex-loop is told with: a project, the command, what Codex plays, and what both leave behind."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from driving import ME, Home, Said, ledger_of, said
from program.strict_codex import calls, install
from program.terminal_driver import Shown, answered

Json = dict[str, Any]
Turn = dict[str, Any]

CONFIG = "codex-loop.yaml"
NAME = "shop"
BRANCH = f"codex-loop/{NAME}"
ONE, TWO, THREE = "001-one", "002-two", "003-three"

PROPOSAL: Json = {
    "name": NAME,
    "goal": "A shop that can add and subtract.",
    "done_when": ["it adds", "it subtracts"],
    "spec": "# Shop\n\nIt adds and subtracts.\n",
    "plan": "# Plan\n\nFirst add, then subtract.\n",
    "tasks": [
        {"slug": "add", "title": "Add", "markdown": "# Add\n\nWrite add.txt.\n"},
        {"slug": "subtract", "title": "Subtract", "markdown": "# Subtract\n\nWrite subtract.txt.\n"},
    ],
    "verification_commands": ["test -e add.txt"],
}


def answer(task: str, status: str = "complete", **fields: Any) -> Json:
    """What Codex is asked to answer with."""
    usual = {"status": status, "summary": f"Worked on {task}.", "task_id": task, "files_changed": []}
    more = {"verification_expected": [], "needs_resume": False, "blockers": [], "next_action": ""}
    return {**usual, **more, **fields}


def works(task: str, status: str = "complete", **fields: Any) -> Turn:
    """A turn that changes a file of its own and answers."""
    return {"append": {f"{task}.txt": "more\n"}, "reply": answer(task, status, **fields)}


def idles(task: str, status: str = "complete", **fields: Any) -> Turn:
    """A turn that answers, and changes nothing."""
    return {"reply": answer(task, status, **fields)}


class CodexLoop:
    """The command in one project, and the fake Codex that it finds."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.repo = home.repo
        self.bin = home.root / "bin"
        home.env["PATH"] = f"{self.bin}:{home.env['PATH']}"
        for name in ("AUTHOR", "COMMITTER"):
            home.env |= {f"GIT_{name}_NAME": "Ada", f"GIT_{name}_EMAIL": "ada@example.org"}

    # -- setting the scene -----------------------------------------------------------------------------------------

    def plays(self, *turns: Turn, **options: Any) -> None:
        install(self.bin, turns, **options)

    def project(
        self,
        *tasks: str,
        texts: Mapping[str, str] | None = None,
        verify: str = "true",
        agreed: bool = True,
        **sections: Json,
    ) -> "CodexLoop":
        """What `init` would have written, by hand: these tasks, one verification, and sections of the configuration."""
        config: dict[str, Any] = {
            "version": 1,
            "project": {"name": NAME},
            "goal": {"summary": "A shop that can add.", "done_when": ["it adds"]},
            "verification": {"commands": [verify]},
        }
        for section, values in sections.items():
            config[section] = {**config.get(section, {}), **values}
        self.write(CONFIG, json.dumps(config, indent=2))
        for task in tasks:
            title = task.partition("-")[2].capitalize()
            self.write(f"tasks/{task}.md", (texts or {}).get(task, f"# {title}\n\nWrite {task}.txt.\n"))
        if agreed:
            self.agree()
        return self

    def write(self, name: str, text: str) -> None:
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def agree(self) -> None:
        """As a person does with `bydawn trust codex-loop.yaml`, without the time that a terminal takes."""
        from bydawn import dialects
        from bydawn.operations.dialects import config

        with patch.dict(os.environ, self.home.env, clear=True):
            config.agree(dialects.find("codex-loop"), self.repo, [CONFIG], trusted=True)  # type: ignore[arg-type]

    def gate(self, name: str = "gate") -> Path:
        """A file that a turn with `wait_for` waits for."""
        return self.home.root / name

    # -- the command -----------------------------------------------------------------------------------------------

    def start(self, *words: str, **options: Any) -> "subprocess.Popen[str]":
        return self.home.start(*words, command="codex-loop", **{"cwd": self.repo, **options})

    def __call__(self, *words: str, seconds: float = 60, **options: Any) -> Said:
        return said(self.start(*words, **options), seconds)

    def run(self, *words: str, **options: Any) -> Said:
        return self("run", *words, **options)

    def answered(self, answer: str, *words: str, **options: Any) -> Shown:
        """In a terminal, where it asks."""
        return answered(self.home, answer, *words, command="codex-loop", **options)

    def git(self, *words: str, cwd: Path | None = None) -> str:
        ended = subprocess.run(
            ["git", *ME, *words], cwd=cwd or self.repo, env=self.home.env, capture_output=True, text=True
        )
        assert ended.returncode == 0, (words, ended)
        return ended.stdout

    # -- what is left ----------------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        return self.repo / ".codex-loop"

    @property
    def state(self) -> Json:
        return dict(json.loads((self.folder / "state.json").read_text()))

    @property
    def status(self) -> Json:
        """The state as the command shows it."""
        shown = self("status")
        assert shown.code == 0, shown
        return dict(json.loads(shown.out))

    @property
    def meta(self) -> Json:
        return dict(self.status["meta"])

    @property
    def tasks(self) -> dict[str, str]:
        """The status of each task."""
        return {name: task["status"] for name, task in self.status["tasks"].items()}

    def task(self, name: str) -> Json:
        return dict(self.status["tasks"][name])

    def history(self, kind: str = "") -> list[Json]:
        return [entry for entry in self.status["history"] if kind in ("", entry["event_type"])]

    @property
    def blocker(self) -> str:
        return str((self.meta["last_blocker"] or {}).get("code", ""))

    @property
    def calls(self) -> list[Json]:
        """The turns that Codex was asked for."""
        return [call for call in calls(self.bin) if call["prompt"] is not None]

    @property
    def prompts(self) -> list[str]:
        return [call["prompt"] for call in self.calls]

    @property
    def worktree(self) -> Path:
        return self.repo.parent / ".codex-loop-worktrees" / self.repo.name / BRANCH.replace("/", "-")

    @property
    def commits(self) -> list[str]:
        """The subjects of the branch's own commits, oldest first."""
        return self.git("log", "--reverse", "--format=%s", f"main..{BRANCH}").splitlines()

    def facts(self, kind: str) -> list[Json]:
        """Of the project's loop, if there is one. A start that was killed may have made the file, and nothing else."""
        every = self.home.states.glob(f"loops/{self.repo.name}-*/{NAME}*/ledger.jsonl")
        ledgers = [path for path in every if path.stat().st_size]
        assert len(ledgers) < 2, ledgers
        return [fact["data"] for path in ledgers for fact in ledger_of(path.parent) if fact["type"] == kind]


def merge_command(text: str) -> str:
    """The command that brings the work, as it was printed."""
    found = re.findall(r"git merge [^\s`]+", text)
    assert found, text
    return str(found[-1])
