"""Which agents are here, which one is used, and what it may do."""

import json
from pathlib import Path

import pytest

from driving import Home
from program.strict_codex import install as codex


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


# They stand in for programs that are only asked who they are: a real one would refuse what they refuse, and more.
VERSION = 'test "$*" = --version || exit 3; echo "%s"'
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
    install(home, "claude", VERSION % "2.1.197 (Claude Code)")
    home.env["ANTHROPIC_API_KEY"] = "key"
    shown = home.bydawn("run", "x", "--dry-run")
    assert "claude -p" in shown.out
    home.env["OPENAI_API_KEY"] = "key"
    assert "codex exec" in home.bydawn("run", "x", "--dry-run").out


def test_the_list_says_what_was_found(home: Home) -> None:
    install(home, "codex", CODEX % 0)
    install(home, "gemini", VERSION % "9.9.9")
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
    found = home.bydawn("doctor")
    assert found.code == 1
    assert "not logged in" in found.out
    assert "needs bwrap" in found.out


@pytest.mark.parametrize(
    ("program", "resources"),
    [
        ("lib/@openai/codex/bin/codex.js", "lib/@openai/codex-linux-x64/vendor/x/codex-resources"),
        (
            "lib/@openai/codex/bin/codex.js",
            "lib/@openai/codex/node_modules/@openai/codex-linux-x64/vendor/x/codex-resources",
        ),
        ("lib/codex/bin/codex", "lib/codex/codex-resources"),
    ],
)
def test_the_doctor_asks_for_no_bubblewrap_where_codex_brings_its_own(home: Home, program: str, resources: str) -> None:
    install(home, "codex", CODEX % 0)
    real = home.root / program
    real.parent.mkdir(parents=True)
    (home.root / "bin/codex").rename(real)
    (home.root / "bin/codex").symlink_to(real)
    assert "needs bwrap" in home.bydawn("doctor").out
    (home.root / resources).mkdir(parents=True)
    (home.root / resources / "bwrap").touch()
    assert "its sandbox needs" not in home.bydawn("doctor").out


# -- what its sandbox cannot do here -----------------------------------------------------------------------------------


@pytest.mark.parametrize("codex_home", ["", "codex"])
def test_a_codex_whose_commands_would_all_fail_is_refused_before_anything_is_spent(home: Home, codex_home: str) -> None:
    install(home, "codex", CODEX % 0)
    home.env["TMPDIR"] = str(home.root)
    home.env |= {"CODEX_HOME": str(home.root / codex_home)} if codex_home else {}
    assert home.bydawn("run", "x", "-a", "codex", "--dry-run").code == 0, "the bubblewrap that it brings does not mind"
    install(home, "bwrap", "exit 3")
    assert "Codex cannot run commands while CODEX_HOME" in home.bydawn("doctor").out
    refused = home.bydawn("run", "x", "-a", "codex")
    assert refused.code == 7
    assert f"is below {home.root}" in refused.err
    assert "set CODEX_HOME elsewhere" in refused.err
    assert not home.states.exists()
    assert home.bydawn("run", "x", "-a", "codex", "-s", "full", "--dry-run").code == 0, "without a sandbox they work"


def test_a_loop_is_not_resumed_where_every_command_would_fail(home: Home) -> None:
    shim = codex(home.root / "codex", [{"reply": "on it"}])
    install(home, "bwrap", "exit 3")
    home.env["PATH"] = f"{shim.parent}:{home.env['PATH']}"
    assert home.run("codex", "-n", "1").code == 4
    refused = home.bydawn("resume", "--rounds", "+1", TMPDIR=str(home.root))
    assert (refused.code, "could not run a single command" in refused.err) == (7, True), refused
    assert len(home.rounds_ended()) == 1


# -- a repository's own agents -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", [".", "", "node_modules/.bin", "{repo}/node_modules/.bin"])
def test_an_agent_that_a_clone_brings_is_never_run(home: Home, entry: str) -> None:
    """Nobody chose it: it is there because the folder is."""
    song, found = home.root / "song", entry.format(repo=home.repo)
    for name in ("codex", "claude"):
        path = home.repo / found / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho {name} "$@" >> {song}\n')
        path.chmod(0o755)
    home.env["PATH"] = f"{found}:{home.env['PATH']}"
    for words in (
        ["doctor"],
        ["agents", "list"],
        ["agents", "test", "claude"],
        ["run", "x", "--dry-run"],
        ["run", "x"],
    ):
        home.bydawn(*words)
    refused = home.bydawn("run", "x", "-a", "codex")
    assert (refused.code, "the only codex on the PATH is inside the workspace" in refused.err) == (7, True), refused
    shim = codex(home.root / "codex", [{"reply": "<promise>TASK_COMPLETE</promise>"}])
    home.env["PATH"] += f":{shim.parent}"
    assert home.run("codex").code == 0
    assert not song.exists(), song.read_text()


def test_a_program_that_a_person_names_is_run_wherever_it_is(home: Home) -> None:
    for name in ("own", "bin/own"):
        (home.repo / name).parent.mkdir(exist_ok=True)
        (home.repo / name).write_text("#!/bin/sh\necho '<promise>TASK_COMPLETE</promise>'\n")
        (home.repo / name).chmod(0o755)
    home.env["PATH"] = f"bin:{home.env['PATH']}"
    assert home.run("cmd:./own").code == home.run("cmd:own", "--new").code == 0


def test_a_codex_that_is_not_on_the_path_is_named_and_looked_at_like_any_other(home: Home) -> None:
    """A-015."""
    shim = codex(home.repo / "tools", [{"error": "unexpected status 401 Unauthorized"}], logged_in=False)
    ended = home.run("codex:tools/codex")
    assert ended.code == 7
    assert f"{shim} login" in ended.out
    assert "tok" in next(line for line in ended.out.splitlines() if "task" in line).split(), "it reports tokens"
    codex(home.repo / "tools", [{"reply": "<promise>TASK_COMPLETE</promise>"}])
    assert home.bydawn("resume", "--plain").code == 0, "it is the same loop, and found from any folder"
    home.env["BYDAWN_AGENT"] = f"codex:{shim}"
    rows = {row["name"]: row for row in json.loads(home.bydawn("agents", "list", "--json").out)["agents"]}
    mine = rows[f"codex:{shim}"]
    assert (mine["version"], mine["logged_in"], mine["path"]) == ("0.166.0", True, str(shim))
    assert rows["codex"]["path"] is None
    found = json.loads(home.bydawn("doctor", "--json").out)["findings"]
    assert [row["detail"] for row in found if row["name"] == f"agent codex:{shim}"] == [
        "0.166.0",
        "its sandbox needs bwrap",
    ]


def test_a_codex_that_a_project_names_is_not_even_asked_for_its_version(home: Home) -> None:
    song = home.root / "song"
    (home.repo / "codex").write_text(f"#!/bin/sh\necho sung >> {song}\n")
    (home.repo / "codex").chmod(0o755)
    (home.repo / "bydawn.toml").write_text('agent = "codex:./codex"\nprompt = "x"\n')
    for words in (["doctor"], ["agents", "list"], ["run"], ["run", "--dry-run"]):
        home.bydawn(*words)
    assert not song.exists()


def test_a_program_can_get_the_prompt_as_its_last_argument(home: Home) -> None:
    """A-036: the prompt is the last argument; on stdin where it must not or cannot be one."""
    say = 'printf "%s" "$#" "$1" "$2" > ../arguments; cat > ../stdin; echo "<promise>TASK_COMPLETE</promise>"'
    install(home, "own", say)
    home.env["MY_TOKEN"] = secret = "hunter2-hunter2-hunter2"  # noqa: S105 - made up
    assert home.run("arg:own --yolo").code == 0
    arguments, stdin = home.root / "arguments", home.root / "stdin"
    assert arguments.read_text().startswith("2--yolo")
    assert "do it" in arguments.read_text()
    assert stdin.read_text() == ""
    assert "do it" not in str(home.facts())
    told = " ".join(home.bydawn("run", f"use {secret}", "-a", "arg:own --yolo", "--plain", "--new").out.split())
    assert told.count("any user here can read command lines, so the agent gets it on standard input") == 1
    assert arguments.read_text() == "1--yolo"
    assert secret in stdin.read_text()


def test_an_agent_is_tried_with_one_tiny_turn(home: Home) -> None:
    install(home, "tiny", "cat > /dev/null; echo ready > ready.txt; echo done")
    tried = home.bydawn("agents", "test", "cmd:tiny")
    assert tried.code == 0
    assert "works" in tried.out
    assert not home.has_loop()


def test_an_agent_that_does_not_work_is_reported(home: Home) -> None:
    install(home, "tiny", "cat > /dev/null; echo no >&2; exit 1")
    tried = home.bydawn("agents", "test", "cmd:tiny")
    assert tried.code == 7
    assert "does not work" in tried.err
    assert "once that is fixed, run `bydawn agents test cmd:tiny`" in tried.err


def test_an_agent_that_is_not_logged_in_gets_a_hint_and_no_file_that_is_gone(home: Home) -> None:
    shim = codex(home.root / "codex", [{"error": "unexpected status 401 Unauthorized"}], logged_in=False)
    home.env["PATH"] = f"{shim.parent}:{home.env['PATH']}"
    tried = home.bydawn("agents", "test", "codex", COLUMNS="50")
    assert tried.code == 7
    assert "log in with `codex login`, then run `bydawn agents test codex`" in tried.err
    assert "Failed:" in tried.out
    for gone in ("--state-dir", "resume", "logs", "what the agent said"):
        assert gone not in tried.out + tried.err


def test_no_repository_can_choose_full_access(home: Home) -> None:
    """T15."""
    (home.repo / "bydawn.toml").write_text('sandbox = "full"\n')
    refused = home.bydawn("run", "x", "-a", "codex")
    assert refused.code == 2
    assert "bydawn.toml:1" in refused.err
    assert "can only be set by a person" in refused.err


@pytest.mark.parametrize("words", [["-s", "full"], ["-s", "danger-full-access"], ["--dangerously-full-access"]])
def test_full_access_has_three_spellings(home: Home, words: list[str]) -> None:
    install(home, "codex", CODEX % 0)
    shown = home.bydawn("run", "x", "-a", "codex", *words, "--dry-run")
    assert "--dangerously-bypass-approvals-and-sandbox" in shown.out


@pytest.mark.parametrize("words", [["--", "--key", "KEY"], ["-m", "KEY"], ["-p", "KEY"], ["--effort", "KEY"]])
def test_a_secret_that_is_in_no_variable_is_refused_in_any_argument(home: Home, words: list[str]) -> None:
    install(home, "codex", CODEX % 0)
    key = "sk-proj-a1B2c3D4e5F6g7H8i9J0"
    refused = home.bydawn("run", "x", "-a", "codex", *[key if word == "KEY" else word for word in words])
    assert refused.code == 2
    assert "contains a secret" in refused.err
    assert key not in refused.err
    assert not home.states.exists()


def test_what_stands_after_two_dashes_is_for_the_agent_even_without_a_prompt(home: Home) -> None:
    install(home, "codex", CODEX % 0)
    home.tasks(1)
    shown = home.bydawn("run", "-t", "TODO.md", "-a", "codex", "--dry-run", "--", "--search", "-c", "a=b")
    assert "--search -c a=b -" in " ".join(shown.out.split())


# -- more than one -----------------------------------------------------------------------------------------------------


def test_several_agents_stand_in_for_each_other_in_the_order_they_are_named(home: Home) -> None:
    install(home, "codex", CODEX % 0)
    install(home, "claude", VERSION % "2.1.197 (Claude Code)")
    shown = home.bydawn("run", "x", "-a", "claude", "-a", "codex", "--dry-run")
    assert shown.code == 0
    assert "claude -p" in shown.out
    (home.repo / "bydawn.toml").write_text('agent = ["codex", "claude"]\n')
    assert "codex exec" in home.bydawn("run", "x", "--dry-run").out


REFUSED = [
    (["-a", "codex", "-a", "codex"], "given twice"),
    (["-a", "claude", "-a", "codex", "-m", "opus"], "--model cannot be given to 2 agents"),
    (["-a", "claude", "-a", "codex", "--", "--verbose"], "arguments after `--` cannot be given to 2 agents"),
    (["-a", "claude", "-a", "codex", "--budget", "5usd"], "codex does not report its cost"),
    (["-a", "claude", "-a", "cmd:true", "-s", "workspace"], "cmd:true does not support --sandbox"),
    (["-a", "codex", "-a", "no-such"], "unknown agent 'no-such'"),
    (["-a", "codex", "-a", "gemini"], "cannot start gemini"),
    (["-a", "claude", "--", "--dangerously-skip-permissions"], "cannot be passed on to claude"),
    (["-a", "claude", "--", '--settings={"sandbox":{"enabled":false}}'], "--settings cannot be passed on to claude"),
    (["-a", "codex", "--", "-s", "danger-full-access"], "-s cannot be passed on to codex"),
    (["-a", "codex", "--", "-c", 'sandbox_mode="danger-full-access"'], "sandbox_mode cannot be passed on to codex"),
    (["-a", "codex", "--", "-sdanger-full-access"], "-s cannot be passed on to codex"),
    (["-a", "codex", "--", "--config=approval_policy=never"], "approval_policy cannot be passed on to codex"),
    (["-a", "codex", "--agent-args", "--yolo"], "--yolo cannot be passed on to codex"),
    (["-a", "claude", "--effort", "maximal"], "claude does not support --effort maximal"),
    (["-a", "codex", "--agent-json", "text=a"], "--agent-json only works with a custom program"),
    (["-a", "codex", "--on-limit", "panic"], "'panic' is not one of switch, wait, stop"),
    (["-a", "codex", "--latest-wake", "2020-01-01T07:00"], "is in the past"),
    (["-a", "cmd:true", "--agent-json", "txt=a"], "is not a field"),
    (["-a", "cmd:true", "--agent-json", "text="], "is not a field"),
    (["-a", "cmd:true", "--session", "resume"], "does not support --session"),
]


@pytest.mark.parametrize(("words", "error"), REFUSED, ids=lambda value: " ".join(value)[:40])
def test_what_one_of_them_cannot_do_is_refused_for_all(home: Home, words: list[str], error: str) -> None:
    install(home, "codex", CODEX % 0)
    install(home, "claude", VERSION % "2.1.197 (Claude Code)")
    refused = home.bydawn("run", "x", *words)
    assert refused.code in (2, 7)
    assert error in refused.err
    assert not home.states.exists()


# -- any program that writes JSON --------------------------------------------------------------------------------------

SPEAKS_JSON = """cat > /dev/null; echo "going on with ${BYDAWN_RESUME_SESSION:-nothing}" >> said
echo 'loading'
echo '{"type":"message","content":[{"text":"half way"}]}'
echo '{"type":"end","content":[{"text":"done. <promise>TASK_COMPLETE</promise>"}],"id":"s-7","use":{"in":40,"out":2.5}}'
echo '{"use":{"out":2,"usd":0.25}}'"""
FIELDS = ["text=content.0.text", "session=id", "tokens_in=use.in", "tokens_out=use.out", "cost_usd=use.usd"]


def test_the_lines_of_a_program_are_read_field_by_field(home: Home) -> None:
    install(home, "mine", SPEAKS_JSON)
    mapping = [word for field in FIELDS for word in ("--agent-json", field)]
    never = ["--require-path", "never", "-n", "2", "--max-no-change", "0"]
    ended = home.bydawn("run", "x", "-a", "cmd:mine", *mapping, "--session", "resume", "--budget", "5usd", *never)
    assert ended.code == 4, ended
    [first, second] = home.rounds_ended()
    assert first["said"] == "done. <promise>TASK_COMPLETE</promise>"
    assert first["session"] == "s-7"
    assert first["usage"] == {"tokens_in": 40, "tokens_cached": None, "tokens_out": 2, "cost_usd": 0.25}
    assert (home.repo / "said").read_text() == "going on with nothing\ngoing on with s-7\n"
    assert "half way" in home.bydawn("logs").out
    assert second["outcome"] == "ok"


def test_a_program_that_never_says_the_text_has_lost_its_output(home: Home) -> None:
    install(home, "mine", "cat > /dev/null; echo '{}'; echo TASK_COMPLETE")
    home.bydawn("run", "x", "-a", "cmd:mine", "--agent-json", "text=reply", "-n", "1")
    [ended] = home.rounds_ended()
    assert ended["outcome"] == "lost_output"
    assert "'reply'" in ended["detail"]


def test_usage_is_told_by_the_task(home: Home) -> None:
    home.tasks(2)
    install(
        home,
        "mine",
        """cat > /dev/null; echo '{"t":"on it","n":'$BYDAWN_ROUND'00}'
sed -i "0,/\\[ \\]/s//[x]/" TODO.md; date +%N > work""",
    )
    home.env["PATH"] += ":/usr/bin:/bin"
    ended = home.bydawn(
        "run", "-t", "TODO.md", "-a", "cmd:mine", "--agent-json", "text=t", "--agent-json", "tokens_in=n"
    )
    assert ended.code == 0, ended
    used = home.show()["usage_by_task"]
    assert {task: usage["tokens_in"] for task, usage in used.items()} == {"task 1": 100, "task 2": 200}
    assert "task 2: 200 in" in home.bydawn("show").out
