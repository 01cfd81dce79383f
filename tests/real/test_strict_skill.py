"""The skill of strict-agent-loop: the real Codex and the real Claude Code find it where it is installed."""

import re
from pathlib import Path

import pytest

from bydawn.operations.dialects.skills import install_skill, source_of
from driving import Home
from real.model_server import Answer, ModelServer
from real.turns import CLAUDE, CODEX, SANDBOX, take_turn

SKILL = (source_of("strict-agent-loop") / "SKILL.md").read_text()
[DESCRIPTION] = re.findall(r'^description: "(.*)"$', SKILL, re.MULTILINE)
BODY = "Announce every round, record it on disk, and report progress after it."


def told(model: ModelServer) -> str:
    return "\n".join(request.text for request in model.asked)


@pytest.mark.parametrize("user", [False, True], ids=["repository", "user"])
def test_codex_knows_the_skill_and_runs_its_scripts_in_its_sandbox(
    home: Home, codex_env: dict[str, str], model: ModelServer, monkeypatch: pytest.MonkeyPatch, user: bool
) -> None:
    """S-001: by its name, description and path; its body follows when it is asked for by name. S-017."""
    command = home.root / "bin/strict-agent-loop"  # not on the PATH: found where it was when the skill was installed
    command.parent.mkdir()
    command.write_text('#!/bin/sh\necho "$@" >called\n')
    command.chmod(0o755)
    monkeypatch.setenv("CODEX_HOME", codex_env["CODEX_HOME"])
    monkeypatch.setattr("sys.argv", [str(command)])
    path = install_skill("strict-agent-loop", "codex", home.repo, user=user, force=False).path
    model.play([Answer(text="Aha."), Answer(sh=f"python3 {path}/scripts/list_tasks.py --json"), Answer(text="Done.")])
    take_turn(*CODEX, "-", cwd=home.repo, env=codex_env, prompt="look around")
    assert f"- strict-agent-loop: {DESCRIPTION}" in told(model)
    assert BODY not in told(model)
    take_turn(*CODEX, "-", cwd=home.repo, env=codex_env, prompt="$strict-agent-loop How do I use this?")
    assert f"<path>{path}/SKILL.md</path>" in told(model)
    assert BODY in told(model)
    assert (home.repo / "called").read_text() == "list-tasks --json\n"
    assert not [*Path(path).rglob("__pycache__")]


@pytest.mark.parametrize("user", [False, True], ids=["repository", "user"])
def test_claude_knows_the_skill(
    home: Home, claude_env: dict[str, str], model: ModelServer, monkeypatch: pytest.MonkeyPatch, user: bool
) -> None:
    """S-001."""
    monkeypatch.setenv("HOME", claude_env["HOME"])
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    path = install_skill("strict-agent-loop", "claude", home.repo, user=user, force=False).path
    model.play([Answer(text="Aha.", times=0)])
    claude = (*CLAUDE, "--settings", SANDBOX)
    take_turn(*claude, cwd=home.repo, env=claude_env, prompt="/strict-agent-loop How do I use this?")
    for words in (f"- strict-agent-loop: {DESCRIPTION}", path, BODY):
        assert words in told(model)
