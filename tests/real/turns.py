"""One turn of a real agent: started as a person's shell would, read from files, ended in time."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]

CODEX = ("codex", "exec", "--json", "-s", "workspace-write")
CLAUDE = ("claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits")
SANDBOX = json.dumps(
    {
        "sandbox": {
            "enabled": True,
            "autoAllowBashIfSandboxed": True,
            "failIfUnavailable": True,
            "allowUnsandboxedCommands": False,
        }
    }
)


class Took(NamedTuple):
    """How a turn went."""

    code: int
    events: list[Json]
    stderr: str

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def last(self) -> Json:
        return self.events[-1]

    def of(self, kind: str) -> list[Json]:
        return [event for event in self.events if event["type"] == kind]

    def items(self, kind: str) -> list[Json]:
        """Codex's finished items of one kind."""
        return [event["item"] for event in self.of("item.completed") if event["item"]["type"] == kind]


def take_turn(*argv: str, cwd: Path, env: dict[str, str], prompt: str = "do it", seconds: float = 40) -> Took:
    """Run an agent to its end. Its output goes to files: Claude drops what a pipe has not taken when it exits."""
    folder = Path(env["TMPDIR"])
    out, err, given = (folder / f"turn.{name}" for name in ("out", "err", "in"))
    given.write_text(prompt)
    with given.open("rb") as stdin, out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        finally:
            _end(process)
    events = [json.loads(line) for line in out.read_text().splitlines()]
    return Took(code, events, err.read_text())


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of a turn that took too long; what left the group is found by the `home` fixture."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
