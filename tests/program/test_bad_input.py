"""Bad input: one message in three parts, the right exit code, nothing on the disk, nothing spent."""

import os
from pathlib import Path

import pytest

from driving import DONE, OK, Home

LONG = "a" * 300


def everything(home: Home) -> set[str]:
    return {str(path) for path in home.root.rglob("*") if ".git/" not in str(path)}


# arguments · exit code · a word of what · a word of the rest
TABLE: list[tuple[list[str], int, str, str]] = [
    (["run", "   "], 2, "no prompt and no task file", "fix the failing tests"),
    (["run"], 2, "no prompt and no task file", "-t TODO.md"),
    (["run", "x", "-a", "cmd:true", "-s", "read-only"], 2, "does not support --sandbox", "drop -s"),
    (["run", "x", "-a", "cmd:true", "-m", "gpt"], 2, "does not support --model", "another agent"),
    (["run", "x", "-a", "cmd:true", "--", "--search"], 2, "does not support arguments", "another agent"),
    (["run", "x", "-a", "cmd:true", "--session", "resume"], 2, "does not support --session", "another agent"),
    (["run", "x", "-a", "demo", "-s", "everything"], 2, "not one of", "--help"),
    (["run", "x", "-a", "dmo"], 2, "unknown agent 'dmo'", "did you mean `demo`"),
    (["run", "x", "-a", "cmd:no-such-program"], 7, "cannot start cmd:no-such-program", "on the PATH"),
    (["run", "x", "-a", "demo", "-t", "MISSING.md"], 2, "no task file MISSING.md", "looked in"),
    (["run", "x", "-a", "demo", "-t", "README.md"], 2, "has no tasks", "- [ ]"),
    (["run", "x", "-a", "demo", "-t", "."], 2, "not UTF-8", ""),  # a folder, and one of its tasks is no text
    (["run", "x", "-a", "demo", "-t", ".git"], 2, "has no tasks", "each Markdown file"),
    (["run", "x", "-a", "demo", "-t", "MISSING.md", "--checkpoint", ":exit"], 2, "needs a text", "HARD STOP"),
    (
        ["run", "x", "-a", "demo", "--commit", "on", "--commit-message", "run {run_id}"],
        2,
        "{run_id}",
        "{loop}, {round}, {task}, {counted}",
    ),
    (["run", "x", "-a", "demo", "--checkpoint", "HARD STOP"], 2, "needs a task file", "-t TODO.md"),
    (["run", "x", "-a", "demo", "--protect", "../secret"], 2, "protects nothing", "tests/**"),
    (["run", "x", "-a", "demo", "--protect", " "], 2, "is empty", ""),
    (
        ["run", "x", "-a", "demo", "--template", "MISSING.md"],
        2,
        "cannot read the template MISSING.md",
        "does not exist in",
    ),
    (["run", "x", "-a", "demo", "--template", "pipe"], 2, "cannot read the template pipe", "not a regular file"),
    (["run", "x", "-a", "demo", "-t", "pipe"], 2, "the task file pipe is not a regular file", "a Markdown file"),
    (["run", "x", "-a", "demo", "--template", "README.md"], 2, "cannot be used", "the markers are HEADER, PROMPT,"),
    (["run", "x", "-a", "demo", "-t", "/etc/passwd"], 2, "not in the workspace", ""),
    (["run", "x", "-a", "demo", "-t", "latin1.md"], 2, "not UTF-8", "offset 2"),
    (["run", "x", "-a", "demo", "-C", "/no/such/folder"], 2, "no folder", "-C"),
    (["run", "x", "-a", "demo", "-C", "README.md"], 2, "not a folder", "-C"),
    (["run", "x", "-a", "demo", "--name", "../x"], 2, "is not a valid loop name", "--name x"),
    (
        ["run", "x", "-a", "demo", "--name", LONG],
        2,
        "…' is not a valid loop name",
        f"it has {len(LONG)} characters; a name",
    ),
    (["run", "x", "-a", "demo", "-k", " "], 2, "it is empty", "--check"),
    (["run", "x", "-a", "demo", "--require-text", "README.md"], 2, "has no text to look for", "::"),
    (
        ["run", "x", "-a", "demo", "--require-path", "../.."],
        2,
        "must be a path inside the workspace",
        "docs/README.md",
    ),
    (["run", "x", "-a", "demo", "--require-path", "."], 2, "must be a path inside the workspace", "docs/README.md"),
    (
        ["run", "x", "-a", "demo", "--require-text", "../a::b"],
        2,
        "must be a path inside the workspace",
        "docs/README.md::TEXT",
    ),
    (
        ["run", "x", "-a", "demo", "--require-text", "/etc/passwd::b"],
        2,
        "must be a path inside the workspace",
        "--require-text",
    ),
    (["run", "x", "-a", "demo", "--done-when", " "], 2, "it is empty", "--done-when"),
    (["run", "x", "-a", "demo", "--done-mode", "line"], 2, "line needs --done-when", "add --done-when TEXT"),
    (["run", "x", "-a", "demo", "--done-mode", "regex", "--done-when", "("], 2, "not a regular expression", ""),
    (["run", "x", "-a", "demo", "--done-when", "ALL\nDONE"], 2, "can never be given", "and this has 2"),
    (
        ["run", "x", "-a", "demo", "--done-mode", "regex", "--done-when", "A$B"],
        2,
        "can never be given",
        "no words match it",
    ),
    (["run", "x", "-a", "demo", "--check-where", "clean"], 2, "--check-where clean has no effect", "with -k"),
    (["run", "x", "-a", "demo", "--witness", "ask"], 2, "--witness ask has no effect", "no checks"),
    (["run", "x", "-a", "demo", "-k", "true", "--tests", "**"], 2, "--tests cannot be everything", "qa/**"),
    (["run", "x", "-a", "demo", "-k", "true", "--tests", "/x"], 2, "--tests '/x' names no test", "no leading /"),
    (["run", "x", "-a", "demo", "-k", "true", "--tests", "../x/**"], 2, "names no test", "relative to the workspace"),
    (["run", "x", "-a", "demo", "--on-hook-failure", "block"], 2, "block has no effect", "no hooks"),
    (["run", "x", "-a", "demo", "--ticks", "count"], 2, "count has no effect", "no task list"),
    (["run", "x", "-a", "codex", "--session-rounds", "3"], 2, "3 has no effect", "--session resume"),
    (["run", "x", "-a", "demo", "--for", "0"], 2, "no time to work", ""),
    (["run", "x", "-a", "demo", "--until", "2001-01-01T00:00"], 2, "is in the past", "a time in the future"),
    (["run", "x", "-a", "demo", "-n", "-1"], 2, "'-1' is less than 0; write 0 or more", "--help"),
    (
        ["run", "x", "-a", "demo", "--opinions", "mine.md"],
        2,
        "there is no file mine.md",
        "hint: write your rules there",
    ),
    (["run", "x", "-a", "demo", "--frobnicate"], 2, "No such option '--frobnicate'\n", "--help"),
    (["run", "x", "-a", "demo", "--max-nochange", "3"], 2, "--max-nochange'; did you mean --max-no-change?", "--help"),
    (["run", "@nowhere.md", "-a", "demo"], 2, "cannot read the prompt nowhere.md", "No such file"),
    (["run", "x", "y", "-a", "demo"], 2, "unexpected extra argument", "--help"),
    (["statsu"], 2, "no command 'statsu'", "`bydawn status`"),
    (["frobnicate"], 2, "no command 'frobnicate'", "--help"),
    (["show"], 2, "no loop in", "bydawn run"),
    (["show", "nobody"], 2, "no loop called 'nobody'", "bydawn status"),
    (["tell", "nobody", "hello"], 2, "no loop called", ""),
    (["tell", "nobody"], 2, "nothing to tell", 'bydawn tell LOOP "'),
    (["tell"], 2, "LOOP", "--help"),
    (["tell", "round half up"], 2, "no loop in", "bydawn run"),
    (["doctor", "--repair", "nobody"], 2, "no loop called", ""),
]


@pytest.mark.parametrize(("arguments", "code", "what", "rest"), TABLE, ids=lambda value: str(value)[:60])
def test_bad_input_changes_nothing_and_says_what_to_do(
    home: Home, arguments: list[str], code: int, what: str, rest: str
) -> None:
    (home.repo / "latin1.md").write_bytes(b"- \xe9\n")
    os.mkfifo(home.repo / "pipe")
    before = everything(home)
    said = home.bydawn(*arguments)
    assert said.code == code
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert what in said.err.splitlines(keepends=True)[0]
    assert rest in said.err
    assert "Traceback" not in said.err
    assert everything(home) == before


@pytest.mark.parametrize("glob", ["./**", "**/", "**/**", "./*"])
def test_tests_that_are_everything_are_refused_however_it_is_written(home: Home, glob: str) -> None:
    said = home.bydawn("run", "x", "-a", "demo", "-k", "true", "--tests", glob)
    assert (said.code, "--tests cannot be everything" in said.err) == (2, True)


def test_whoever_names_a_path_in_full_is_told_how_it_is_meant(home: Home) -> None:
    said = home.run(home.rounds([OK]), "--require-path", f"{home.repo}/docs/a.md")
    assert (said.code, "--require-path docs/a.md\n" in said.err) == (2, True)


def test_another_prompt_for_an_unfinished_loop_is_refused_and_the_way_out_is_named(home: Home) -> None:
    agent = home.rounds([OK])
    assert home.run(agent, "--max-no-change", "1").code == 3
    ledger = (home.folder() / "ledger.jsonl").read_bytes()
    said = home.bydawn("run", "something else", "-a", agent)
    assert said.code == 2
    assert "this prompt is different" in said.err
    assert "bydawn resume repo" in said.err
    assert "--new" in said.err
    assert (home.folder() / "ledger.jsonl").read_bytes() == ledger


def test_other_settings_for_an_unfinished_loop_are_refused_by_name(home: Home) -> None:
    agent = home.rounds([OK])
    home.run(agent, "--max-no-change", "1")
    said = home.run(agent, "--max-no-change", "1", "-k", "true", "-n", "7")
    assert said.code == 2
    assert "checks, limits" in said.err


def test_a_loop_at_a_limit_stopped_or_dismissed_keeps_no_other_goal_from_starting(home: Home) -> None:
    agent = home.rounds([DONE])
    assert home.run(home.rounds([OK]), "--max-no-change", "1").code == 3
    assert home.bydawn("dismiss", "repo").code == 0
    assert home.bydawn("run", "another", "-a", home.rounds([OK]), "--once", "--plain").code == 4
    third = home.bydawn("run", "a third", "-a", home.rounds([OK]), "--once", "--plain")
    assert (third.code, "new loop" in third.out) == (4, False)
    assert home.bydawn("stop", "repo-3").code == 0
    same = home.bydawn("run", "a third", "-a", agent, "-n", "7", "--plain")
    assert same.code == 0
    assert (
        "this is a new loop; repo-3 has the same goal and is stopped: continue it with `bydawn resume repo-3`"
        in same.out
    )
    assert home.facts("loop.stopped", "repo-4")


def test_names_that_differ_only_in_case_are_one_name(home: Home) -> None:
    agent = home.rounds([OK])
    assert home.run(agent, "--name", "Night", "--once").code == 4
    assert home.run(agent, "--name", "night", "--once").code == 4
    assert len(home.facts("run.started", "Night")) == 2


def test_a_folder_that_cannot_be_written_is_an_error_and_no_traceback(home: Home) -> None:
    (home.root / "file").write_text("in the way")
    said = home.run(home.rounds([OK]), "--state-dir", str(home.root / "file" / "below"))
    assert said.code == 1
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err


def test_without_any_home_it_asks_for_a_state_folder(home: Home, tmp_path: Path) -> None:
    del home.env["HOME"], home.env["XDG_STATE_HOME"]
    said = home.run(home.rounds([OK]))
    assert said.code == 2
    assert "--state-dir" in said.err
    assert home.run(home.rounds([OK]), "--once", "--state-dir", str(tmp_path / "states")).code == 4
    assert [*(tmp_path / "states/loops").glob("*/repo/ledger.jsonl")]
