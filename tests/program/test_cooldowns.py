"""What loops tell each other about their agents' limits: files that nobody has to believe for ever."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bydawn.agents.claude import ClaudeAgent
from bydawn.agents.codex import CodexAgent
from bydawn.store.cooldowns import SharedCoolDowns, forget, known
from core.facts_made import a_loop
from driving import Home

NOW = datetime(2026, 11, 16, 3, tzinfo=UTC)
RESET = NOW + timedelta(hours=5)
CLAUDE, CODEX = ClaudeAgent(), CodexAgent()


def seen_by(folder: Path, env: dict[str, str] | None = None, **settings: Any) -> SharedCoolDowns:
    return SharedCoolDowns(folder / "cool-downs", a_loop(**settings), env or {})


def test_what_one_loop_tells_all_loops_know_until_it_is_over(tmp_path: Path) -> None:
    seen_by(tmp_path, id="first").tell(CLAUDE, RESET, "5-hour limit")
    found = seen_by(tmp_path, id="second").of(CLAUDE, NOW)
    assert found
    assert (found.until, found.detail, found.loop) == (RESET, "5-hour limit", "first")
    assert seen_by(tmp_path).of(CLAUDE, RESET) is None
    assert seen_by(tmp_path).of(CODEX, NOW) is None
    assert [each.agent for each in known(tmp_path / "cool-downs", NOW)] == ["claude"]
    assert known(tmp_path / "cool-downs", RESET) == []


@pytest.mark.parametrize(
    "other",
    [{"model": "opus"}, {"profile": "work"}, {"env": {"ANTHROPIC_API_KEY": "another"}}],
    ids=["model", "profile", "key"],
)
def test_another_account_has_limits_of_its_own(tmp_path: Path, other: dict[str, Any]) -> None:
    seen_by(tmp_path).tell(CLAUDE, RESET, "limit")
    assert seen_by(tmp_path, **other).of(CLAUDE, NOW) is None


def test_another_program_of_the_same_agent_has_the_same_account(tmp_path: Path) -> None:
    seen_by(tmp_path).tell(CodexAgent(program="/opt/codex"), RESET, "limit")
    found = seen_by(tmp_path).of(CODEX, NOW)
    assert found
    assert found.agent == "codex:/opt/codex", "the one to try again"
    assert seen_by(tmp_path).of(CodexAgent(program="codex-beta"), NOW)
    forget(tmp_path / "cool-downs", "codex")
    assert seen_by(tmp_path).of(CODEX, NOW) is None


def test_no_key_can_be_read_from_a_file_or_its_name(tmp_path: Path) -> None:
    seen_by(tmp_path, {"ANTHROPIC_API_KEY": "very-secret-key"}).tell(CLAUDE, RESET, "limit")
    [path] = (tmp_path / "cool-downs").iterdir()
    assert "very-secret" not in path.name + path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "\0" * 50,
        '{"agent":"claude","until":"never","detail":"","loop":""}',
        '{"agent":"codex","until":"2026-11-16T08:00:00Z","detail":"","loop":""}',
        '{"agent":"claude","until":"2026-11-16T08:00:00","detail":"","loop":""}',  # no zone
        '{"agent":"claude","until":"2036-11-16T08:00:00Z","detail":"","loop":""}',  # no limit lasts ten years
        '{"agent":"claude","until":"2026-11-16T08:00:00Z","detail":"' + "x" * 99_999 + '","loop":""}',
    ],
)
def test_a_file_that_makes_no_sense_limits_nobody(tmp_path: Path, text: str) -> None:
    shared = seen_by(tmp_path)
    shared.tell(CLAUDE, RESET, "limit")
    [path] = (tmp_path / "cool-downs").iterdir()
    path.write_text(text)
    assert shared.of(CLAUDE, NOW) is None
    assert [each for each in known(tmp_path / "cool-downs", NOW) if each.agent == "claude"] == []


def test_where_nothing_can_be_written_nothing_is_told_and_nobody_dies(tmp_path: Path) -> None:
    (tmp_path / "cool-downs").write_text("in the way")
    shared = seen_by(tmp_path)
    shared.tell(CLAUDE, RESET, "limit")
    assert shared.of(CLAUDE, NOW) is None
    assert known(tmp_path / "cool-downs", NOW) == []
    forget(tmp_path / "cool-downs", "claude")


def test_limits_are_listed_and_forgotten_when_the_agent_works_again(home: Home) -> None:
    tiny = home.root / "tiny"
    tiny.write_text("#!/bin/sh\ncat > /dev/null; echo ready > ready.txt; echo done\n")
    tiny.chmod(0o755)
    name, until = f"cmd:{tiny}", datetime.now(UTC) + timedelta(hours=5)
    folder = home.states / "cool-downs"
    folder.mkdir(parents=True)
    (folder / "tiny-1.json").write_text(
        json.dumps({"agent": name, "until": until.isoformat(), "detail": "5-hour limit", "loop": "shop-api"})
    )
    assert "is at its usage limit until" in (listed := home.bydawn("agents", "list").out)
    assert f"bydawn agents test {name}" in listed
    limited = json.loads(home.bydawn("agents", "list", "--json").out)["limited"]
    assert [(row["agent"], row["loop"]) for row in limited] == [(name, "shop-api")]
    assert home.bydawn("agents", "test", name).code == 0
    assert list(folder.iterdir()) == []
