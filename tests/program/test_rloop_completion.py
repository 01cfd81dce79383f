"""What a shell completes after `rloop`."""

import os
from pathlib import Path

import click
import pytest

from bydawn.cli.dialects.rloop_completion import SCRIPTS, session_names

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_completions_in_the_repository_are_those_that_rloop_prints(shell: str) -> None:
    """R-032, R-033."""
    assert (ROOT / "completions" / f"rloop.{shell}").read_text() == SCRIPTS[shell], "run scripts/docs"


def test_sessions_are_completed_from_the_state_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLOOP_CONFIG_DIR", str(tmp_path))
    argument = click.Argument(["name"], shell_complete=session_names)
    ctx = click.Context(click.Command("stop", params=[argument]))

    def completed(typed: str) -> list[str]:
        return [item.value for item in argument.shell_complete(ctx, typed)]

    assert completed("") == []
    (tmp_path / "state.json").write_text('{"sessions": {"app1": {"pid": 1}, "app2": {"new": null}, "web": {}}, "x": 1}')
    assert completed("") == ["app1", "app2", "web"]
    assert completed("app") == ["app1", "app2"]
    (tmp_path / "state.json").write_text('{"sessions": ')
    assert completed("") == []
    (tmp_path / "state.json").unlink()
    os.mkfifo(tmp_path / "state.json")
    assert completed("") == [], "a key press waits for no one"
