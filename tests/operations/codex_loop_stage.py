"""A repository for codex-loop, with a Codex that answers as it is told."""

import json
import os
import subprocess
from pathlib import Path

import pytest

LEAST = """\
# mine
goal: {summary: Greet, done_when: [It greets]}
verification:
  commands: [make test]  # slow
"""
ANSWER = {
    "name": "greeter",
    "goal": "Greet the world",
    "done_when": ["It greets"],
    "spec": "# Spec",
    "plan": "# Plan",
    "tasks": [
        {"slug": "add-greeting", "title": "Add a greeting", "markdown": "Write it."},
        {"slug": "say-it", "title": "Say it", "markdown": "<!-- depends_on: 001-add-greeting -->\nSay it."},
    ],
    "verification_commands": ["test -e greeting"],
}
_CODEX = """\
#!/bin/sh
case "$1" in
  --version) echo codex-cli 0.166.0; exit;;
  login) echo Logged in; exit $(cat {home}/login 2>/dev/null);;
esac
printf '%s\\n' "$@" > {home}/argv; cat > {home}/stdin
cat {home}/events
exit $(cat {home}/exit 2>/dev/null)
"""


class Stage:
    """A home, a repository with one commit, and `codex` on the PATH."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.root = home, home / "project"
        self.root.mkdir()
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("TMPDIR", str(home / "tmp"))  # not above the home: there Codex could not run a command
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "BYDAWN_AGENT"):
            monkeypatch.delenv(name, raising=False)
        for name in ("bin", "tmp"):
            (home / name).mkdir()
        (home / "bin/codex").write_text(_CODEX.format(home=home))
        (home / "bin/codex").chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.commit("first")
        self.answers(json.dumps(ANSWER))

    def git(self, *words: str) -> str:
        told = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        return subprocess.run(told, check=True, capture_output=True, text=True).stdout

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def answers(self, reply: str) -> None:
        """What Codex says when it is asked."""
        events = [
            {"type": "thread.started", "thread_id": "01999999-0000-7000-8000-000000000001"},
            {"type": "turn.started"},
            {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": reply}},
            {"type": "turn.completed", "usage": {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}},
        ]
        (self.home / "events").write_text("".join(json.dumps(each) + "\n" for each in events))

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    @property
    def files(self) -> dict[str, str]:
        """What is in the project, apart from git's own."""
        found = (path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {str(path.relative_to(self.root)): path.read_text() for path in sorted(found)}
