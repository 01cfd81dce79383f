"""What a story about strict-agent-loop is told with: a task, its scripts and files, and what Codex plays."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bydawn
from driving import Home, Said, said, wait_for
from program.strict_codex import calls, install

Json = dict[str, Any]
Turn = dict[str, Any]

SCRIPTS = Path(bydawn.__file__).parent / "dialects/strict_agent_loop/skill/scripts"
HAILSTONE = Path(__file__).with_name("hailstone.py")
CHECK = shlex.join([sys.executable, str(HAILSTONE), "check"])
STEP = shlex.join([sys.executable, str(HAILSTONE), "step"])
LINES = ("events.jsonl", "iterations.jsonl", "status-history.jsonl")
# What an iteration has to say.
DONE = ("--local-done-condition", "it is there", "--result-summary", "did it", "--verification-summary", "looked at it")


class Strict:
    """The command and its scripts in a home with a repository, and the fake Codex that they find."""

    def __init__(self, home: Home, task: str = "hail") -> None:
        self.home, self.task = home, task
        self.repo = home.repo
        self.bin = home.root / "bin"
        home.env["PATH"] = f"{self.bin}:{home.env['PATH']}"

    # -- setting the scene -----------------------------------------------------------------------------------------

    def plays(self, *turns: Turn) -> None:
        install(self.bin, turns)

    def init(self, *words: str, mode: str = "unattended", task: str = "") -> Json:
        """A new task."""
        made = self(*self.new(*words, mode=mode, task=task))
        assert made.code == 0, made
        return dict(json.loads(made.out))

    def new(self, *words: str, mode: str = "unattended", task: str = "") -> tuple[str, ...]:
        """The words that make a new task."""
        contract = ("--goal", "write the hailstone numbers from 7 to 1", "--global-stop-condition", "1 is reached")
        where = ("--workspace-root", str(self.repo), "--task-id", task or self.task, "--operating-mode", mode)
        return ("init-state", *contract, *where, *words)

    def round(self, count: int, *options: str, reply: str = "Recorded.") -> Turn:
        """A turn of Codex in which so many steps are done, each recorded with the scripts."""
        words = [sys.executable, str(HAILSTONE), "round", str(count), str(SCRIPTS), str(self.state_path), *options]
        return {"sh": shlex.join(words), "reply": reply}

    # -- commands --------------------------------------------------------------------------------------------------

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        return self.home.start(*words, command="strict-agent-loop", **options)

    def __call__(self, *words: str, seconds: float = 60, **options: Any) -> Said:
        return said(self.start(*words, **options), seconds)

    def here(self, command: str, *words: str, **options: Any) -> Said:
        """A command about the task."""
        return self(command, "--state", str(self.state_path), *words, **options)

    def supervise(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        return self.start("supervise", "--state", str(self.state_path), *words, **options)

    def script(
        self,
        name: str,
        *words: str,
        python: str = sys.executable,
        before: Iterable[str] = (),
        scripts: Path = SCRIPTS,
        **env: str,
    ) -> Said:
        """A script of the skill, as a person's session runs it."""
        command = [*before, python, str(scripts / f"{name}.py"), *words]
        ended = subprocess.run(
            command, cwd=self.repo, env=self.home.env | env, capture_output=True, text=True, timeout=60
        )
        return Said(ended.returncode, ended.stdout, ended.stderr)

    def records(self, *words: str, command: str = "update-state", **options: Any) -> Said:
        """One iteration."""
        return self.here(command, "--task", "one thing", *DONE, *words, **options)

    # -- what is left ----------------------------------------------------------------------------------------------

    @property
    def root(self) -> Path:
        return self.repo / ".codex-loop"

    @property
    def folder(self) -> Path:
        return self.root / "tasks" / self.task

    @property
    def state_path(self) -> Path:
        return self.folder / "state.json"

    @property
    def state(self) -> Json:
        return dict(json.loads(self.state_path.read_text()))

    @property
    def registry(self) -> Json:
        return dict(json.loads((self.root / "registry.json").read_text()))

    @property
    def report(self) -> Json:
        return dict(json.loads((self.folder / "latest-stop-report.json").read_text()))

    def lines(self, name: str) -> list[Json]:
        """The lines of a file that grows; half a line that stays at the end is an error.

        Someone may just write it: what crosses a page of the file is seen in two steps.
        """
        path = self.folder / name

        def whole() -> list[bytes]:
            data = path.read_bytes() if path.exists() else b""
            return [data] if data == b"" or data.endswith(b"\n") else []

        return [json.loads(line) for line in wait_for(whole)[0].decode().splitlines()]

    @property
    def entries(self) -> list[Json]:
        return [line["entry"] for line in self.lines("iterations.jsonl")]

    def events(self, kind: str = "") -> list[Json]:
        return [line for line in self.lines("events.jsonl") if kind in ("", line["kind"])]

    @property
    def numbers(self) -> list[int]:
        return [int(line) for line in (self.repo / "numbers.txt").read_text().split()]

    @property
    def waiting(self) -> list[str]:
        """The records that nobody has taken in."""
        return sorted(path.name for path in (self.folder / "drop").glob("*.json"))

    @property
    def prompts(self) -> list[str]:
        """What Codex was asked, turn by turn."""
        return [call["prompt"] for call in calls(self.bin) if call["prompt"] is not None]

    def facts(self, kind: str) -> list[Json]:
        return [fact["data"] for fact in self.home.facts(kind, self.task)]

    def has_no_gap(self) -> None:
        """Ids are 1, 2, 3, … in each file that grows, and iterations are numbered so."""
        for name in LINES:
            ids = [line["id"] for line in self.lines(name)]
            assert ids == [*range(1, len(ids) + 1)], (name, ids)
        numbers = [entry["iteration"] for entry in self.entries]
        assert numbers == [*range(1, len(numbers) + 1)], numbers
