"""What `codex-loop run` says while Codex works, where nothing can be redrawn."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bydawn.cli.dialects import codex_loop_run
from bydawn.core.agent import CommandStarted, Message
from bydawn.core.redact import Secrets
from bydawn.store.folder import LoopFolder
from dialects.codex_loop_made import LEXER, a_project, an_iteration, begun, past
from driving import wait_for


def test_a_line_a_minute_says_what_codex_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(codex_loop_run, "_MINUTE", 0.05)
    loop, facts = a_project(), [begun(LEXER), an_iteration(1)[0]]
    screen: Any = codex_loop_run._Screen(None, None)
    screen._plan = SimpleNamespace(
        loop=loop, secrets=Secrets({"API_KEY": "hunter2-hunter2"}), folder=LoopFolder(tmp_path)
    )
    for number, fact in enumerate(facts, 1):
        screen.saw(fact, loop, past(*facts[:number])[0])
    for command in ("npm ci", "npm test --key hunter2-hunter2"):
        screen.heard(CommandStarted(command, command=command))
    screen.heard(Message("Now I look at it."))
    shown = wait_for(lambda: next((row for row in capfd.readouterr().out.splitlines() if "2 commands" in row), ""))
    screen._close()
    assert "2 commands, last: npm test --key" in shown
    assert "hunter2" not in shown
