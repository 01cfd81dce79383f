"""The real agents accept every command line that we build: one real turn each, as `--help` accepts anything."""

import pytest

from driving import Home
from real.model_server import Answer, ModelServer

GOOD = Answer(text="All of it is there.\n<promise>TASK_COMPLETE</promise>", times=0)
CODEX = [
    [],
    ["-s", "read-only"],
    ["-s", "full"],
    ["-m", "another-model"],
    ["-p", "night"],
    ["--effort", "high"],
    ["--agent-commits"],
    [
        "-s",
        "read-only",
        "-m",
        "another-model",
        "-p",
        "night",
        "--effort",
        "low",
        "--",
        "-c",
        "hide_agent_reasoning=true",
    ],
]
CLAUDE = [
    [],
    ["-s", "read-only"],
    ["-s", "full"],
    ["-m", "claude-sonnet-5"],
    ["--effort", "high"],
    ["--agent-commits"],
    ["-s", "read-only", "-m", "claude-sonnet-5", "--effort", "low", "--", "--max-turns", "3"],
]


def goes_well(home: Home, agent: str, flags: list[str]) -> None:
    """A fresh turn and a resumed one, both with the same flags."""
    head, dashes, rest = flags, [], []
    if "--" in flags:
        place = flags.index("--")
        head, dashes, rest = flags[:place], ["--"], flags[place + 1 :]
    fixed = ["--session", "resume", "--require-path", "never", "-n", "2", "--max-no-change", "0", "--plain"]
    ended = home.bydawn("run", "do it", "-a", agent, *fixed, *head, *dashes, *rest, seconds=90)
    assert ended.code == 4, ended  # both rounds went, and what is required is not there
    assert home.outcomes() == ["ok", "ok"]
    first, second = [ended["session"] for ended in home.rounds_ended()]
    assert first == second


@pytest.mark.parametrize("flags", CODEX, ids=" ".join)
def test_codex_takes_our_flags_fresh_and_resumed(
    home: Home, codex_env: dict[str, str], model: ModelServer, flags: list[str]
) -> None:
    home.env = codex_env
    model.play([GOOD])
    goes_well(home, "codex", flags)
    if "-m" in flags:
        assert {request.body["model"] for request in model.asked} == {"another-model"}


@pytest.mark.parametrize("flags", CLAUDE, ids=" ".join)
def test_claude_takes_our_flags_fresh_and_resumed(
    home: Home, claude_env: dict[str, str], model: ModelServer, flags: list[str]
) -> None:
    home.env = claude_env
    model.play([GOOD])
    goes_well(home, "claude", flags)
    if "-m" in flags:
        assert {request.body["model"] for request in model.asked} == {"claude-sonnet-5"}


def test_an_unknown_flag_is_one_clear_message_and_no_second_round(home: Home, codex_env: dict[str, str]) -> None:
    home.env = codex_env
    ended = home.bydawn("run", "do it", "-a", "codex", "--plain", "--", "--full-auto", seconds=60)
    assert ended.code == 7
    assert home.outcomes() == ["config"]
    assert "--full-auto" in home.status()["reason"]


def test_a_secret_among_the_arguments_of_an_agent_is_kept_by_name_only(
    home: Home, codex_env: dict[str, str], model: ModelServer
) -> None:
    canary = "canary-0123456789"
    home.env = codex_env | {"MY_TOKEN": canary}
    model.play([GOOD])
    home.bydawn(
        "run", "x", "-a", "codex", "-n", "1", "--require-path", "never", "--", "-c", f"model={canary}", seconds=60
    )
    assert {request.body["model"] for request in model.asked} == {canary}, "the agent itself gets it"
    assert "⟦env:MY_TOKEN⟧" in (home.folder() / "loop.json").read_text()
    files = [path for path in home.states.rglob("*") if path.is_file() and "git" not in path.parts]
    assert [path.name for path in files if canary.encode() in path.read_bytes()] == []
    del home.env["MY_TOKEN"]
    refused = home.bydawn("resume", "--rounds", "+1")
    assert (refused.code, "MY_TOKEN" in refused.err) == (2, True)


def test_a_flag_that_claude_does_not_know_ends_the_loop_as_a_wrong_setting(
    home: Home, claude_env: dict[str, str]
) -> None:
    home.env = claude_env
    ended = home.bydawn("run", "do it", "-a", "claude", "--plain", "--", "--no-such-flag", seconds=60)
    assert ended.code == 7
    assert home.outcomes() == ["config"]
    assert "--no-such-flag" in home.status()["reason"]
