"""Which agents are here, which one is used, and what it may do."""

import json
from pathlib import Path

import pytest

from driving import Home


def install(home: Home, name: str, script: str) -> None:
    """Put a program of that name first on the PATH."""
    folder = home.root / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    home.env["PATH"] = f"{folder}:{home.env['PATH']}"


@pytest.fixture(autouse=True)
def bare(home: Home) -> None:
    """No agent of this machine, and no key for one, is found."""
    keys = ("ANTHROPIC", "CLAUDE", "CODEX", "OPENAI", "GEMINI", "GOOGLE")
    home.env = {name: value for name, value in home.env.items() if not name.startswith(keys)}
    folder = home.root / "tools"
    folder.mkdir()
    for name in ("git", "sh", "bash", "cat", "env", "sleep", "true"):
        found = next(Path(entry, name) for entry in home.env["PATH"].split(":") if Path(entry, name).exists())
        (folder / name).symlink_to(found)
    home.env["PATH"] = f"{Path(home.env['PATH'].split(':')[0])}:{folder}"


CODEX = 'case "$1" in --version) echo codex-cli 0.166.0;; login) exit %d;; *) exit 3;; esac'


def test_where_there_is_no_agent_it_says_which_could_be_installed(home: Home) -> None:
    refused = home.bydawn("run", "x")
    assert refused.code == 7
    assert "npm install" in refused.err
    assert not home.states.exists()


def test_an_agent_that_is_not_logged_in_is_not_chosen_and_the_command_is_named(home: Home) -> None:
    install(home, "codex", CODEX % 1)
    refused = home.bydawn("run", "x")
    assert refused.code == 7
    assert "codex login" in refused.err


def test_the_first_that_is_here_and_logged_in_is_chosen(home: Home) -> None:
    install(home, "codex", CODEX % 1)
    install(home, "claude", "echo '2.1.197 (Claude Code)'")
    home.env["ANTHROPIC_API_KEY"] = "key"
    shown = home.bydawn("run", "x", "--dry-run")
    assert "claude -p" in shown.out
    home.env["OPENAI_API_KEY"] = "key"
    assert "codex exec" in home.bydawn("run", "x", "--dry-run").out


def test_the_list_says_what_was_found(home: Home) -> None:
    install(home, "codex", CODEX % 0)
    install(home, "gemini", "echo 9.9.9")
    rows = {row["name"]: row for row in json.loads(home.bydawn("agents", "list", "--json").out)["agents"]}
    assert (rows["codex"]["version"], rows["codex"]["is_tested"], rows["codex"]["logged_in"]) == ("0.166.0", True, True)
    assert (rows["gemini"]["version"], rows["gemini"]["is_tested"]) == ("9.9.9", False)
    assert rows["claude"]["path"] is None
    shown = home.bydawn("agents", "list").out
    assert "not found" in shown
    assert "tested with 0.61." in shown


def test_a_program_that_never_answers_is_not_waited_for_for_ever(home: Home) -> None:
    install(home, "opencode", 'test "$1" = --version && sleep 60')
    rows = json.loads(home.bydawn("agents", "list", "--json", seconds=50).out)["agents"]
    assert [row["version"] for row in rows if row["name"] == "opencode"] == [None]


def test_the_doctor_says_what_an_agent_lacks(home: Home) -> None:
    install(home, "codex", CODEX % 1)
    home.env |= {"TMPDIR": str(home.root), "CODEX_HOME": str(home.root / "codex")}
    found = home.bydawn("doctor")
    assert found.code == 1
    assert "not logged in" in found.out
    assert "needs bwrap" in found.out
    assert "is in the temporary folder" in found.out


def test_an_agent_is_tried_with_one_tiny_turn(home: Home) -> None:
    install(home, "tiny", "cat > /dev/null; echo ready > ready.txt; echo done")
    tried = home.bydawn("agents", "test", "cmd:tiny")
    assert tried.code == 0
    assert "works" in tried.out
    assert not home.has_loop()


def test_one_that_does_not_work_is_told(home: Home) -> None:
    install(home, "tiny", "cat > /dev/null; echo no >&2; exit 1")
    tried = home.bydawn("agents", "test", "cmd:tiny")
    assert tried.code == 7
    assert "did not pass" in tried.err


def test_no_repository_can_choose_full_access(home: Home) -> None:
    """T15."""
    (home.repo / "bydawn.toml").write_text('sandbox = "full"\n')
    refused = home.bydawn("run", "x", "-a", "codex")
    assert refused.code == 2
    assert "bydawn.toml:1" in refused.err
    assert "for a person to say" in refused.err


@pytest.mark.parametrize("words", [["-s", "full"], ["-s", "danger-full-access"], ["--dangerously-full-access"]])
def test_full_access_has_three_spellings(home: Home, words: list[str]) -> None:
    install(home, "codex", CODEX % 0)
    shown = home.bydawn("run", "x", "-a", "codex", *words, "--dry-run")
    assert "--dangerously-bypass-approvals-and-sandbox" in shown.out


CANARY = "canary-0123456789"
SPEAKS = (
    'cat > /dev/null; echo "$@" > said; echo \'{"type":"thread.started","thread_id":"t"}\'; '
    'echo \'{"type":"turn.completed"}\''
)


def test_a_secret_among_the_arguments_of_an_agent_is_kept_by_name_only(home: Home) -> None:
    install(home, "codex", SPEAKS)
    home.env |= {"MY_TOKEN": CANARY}
    home.bydawn("run", "x", "-a", "codex", "-n", "1", "--", "--key", CANARY)
    assert f"--key {CANARY}" in (home.repo / "said").read_text(), "the agent itself gets it"
    assert "⟦env:MY_TOKEN⟧" in (home.folder() / "loop.json").read_text()
    files = [path for path in home.states.rglob("*") if path.is_file() and "git" not in path.parts]
    assert [path.name for path in files if CANARY.encode() in path.read_bytes()] == []
    del home.env["MY_TOKEN"]
    refused = home.bydawn("resume", "--rounds", "+1")
    assert (refused.code, "MY_TOKEN" in refused.err) == (2, True)


@pytest.mark.parametrize("words", [["--", "--key", "KEY"], ["-m", "KEY"], ["-p", "KEY"], ["--effort", "KEY"]])
def test_one_that_stands_in_no_variable_is_refused_wherever_it_stands(home: Home, words: list[str]) -> None:
    install(home, "codex", SPEAKS)
    key = "sk-proj-a1B2c3D4e5F6g7H8i9J0"
    refused = home.bydawn("run", "x", "-a", "codex", *[key if word == "KEY" else word for word in words])
    assert refused.code == 2
    assert "a secret stands in the" in refused.err
    assert key not in refused.err
    assert not home.states.exists()


def test_what_stands_after_two_dashes_is_for_the_agent_even_without_a_prompt(home: Home) -> None:
    install(home, "codex", CODEX % 0)
    home.tasks(1)
    shown = home.bydawn("run", "-t", "TODO.md", "-a", "codex", "--dry-run", "--", "--search", "-c", "a=b")
    assert "--search -c a=b -" in " ".join(shown.out.split())
