"""rloop as its document describes it: the installed command, its files, and a strict fake of Claude.

What stands between quotes of three is the document's, pasted as it stands there.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from tempfile import mkdtemp

import pytest

from driving import Home, Said, is_alive, is_error, said, stat_of, tree_of, wait_for
from program.rloop import COMMIT, ISO, PRD, SAYS, TAG, TASK, Json, Rloop, Turn
from program.strict_codex import install as install_codex
from program.terminal_driver import Terminal

START_OPTIONS = """
  --name, -n          Session name (default: directory name)
  --max-iterations    Max iterations before giving up (default: 30)
  --task-file, -f     Task file path (default: PRD.md)
  --completion-marker Completion promise text (default: COMPLETE)
  --model, -m         Claude model override
  --webhook           Notification webhook URL
  --no-tmux           Run in foreground (blocks)
"""
COMMANDS = ("start", "stop", "stop --all", "status", "logs", "resume", "config", "server", "version")
EXAMPLES = """
  rloop start .
  rloop start ~/project --name myapp --max-iterations 50
  rloop status
  rloop logs myapp --follow
  rloop stop myapp
"""
PROMPT = """\
You are completing tasks from a PRD file.

TASK FILE: {task_file}

INSTRUCTIONS:
1. Read the task file carefully
2. Find any task marked with '- [ ]' (unchecked checkbox)
3. If you find unchecked tasks:
   - Pick ONE task to complete
   - Implement it fully with tests if applicable
   - Mark it '- [x]' in the task file
   - Commit changes with descriptive message
   - Exit normally (do NOT output the completion promise)
4. If ALL tasks are marked '- [x]' (zero unchecked remain):
   - Verify by searching for '- [ ]' pattern
   - If truly zero remain, output ONLY: <promise>{completion_marker}</promise>

CRITICAL:
- Do NOT mention <promise>{completion_marker}</promise> unless outputting it as completion signal
- Do NOT output the promise if ANY '- [ ]' remain
- Complete ONE task per session, then exit

Current iteration: {iteration}/{max_iterations}
"""  # as it stands there, but for the two boxes that X-24 corrects and two blanks at the end of lines
STATE = [
    *("name", "dir", "task_file", "pid", "tmux_session", "started_at", "iteration", "max_iterations"),
    *("status", "last_task_count", "completion_marker", "log_file"),
]
HANG: Turn = {"reply": SAYS, "sleep": 60}


@pytest.fixture
def rloop(home: Home) -> Rloop:
    rloop = Rloop(home)
    rloop.plays(TASK)
    return rloop


def is_refused(answer: Said, *words: str, code: int = 2) -> bool:
    """What, why, do this; and the words that a person needs."""
    assert (answer.code, is_error(answer.err)) == (code, True), answer
    assert all(word in answer.err for word in words), (words, answer.err)
    return True


# -- help and version --------------------------------------------------------------------------------------------------


def test_the_help_has_every_command_option_default_and_example_of_the_document(rloop: Rloop) -> None:
    """R-010, R-044."""
    helped = rloop("help")
    assert helped.code == 0, helped
    assert rloop("--help") == rloop("-h") == helped
    titles = re.findall(r"^([A-Z][A-Z ]+):?$", helped.out, re.M)
    assert [title for title in titles if title in ("USAGE", "COMMANDS", "START OPTIONS", "EXAMPLES")] == [
        "USAGE",
        "COMMANDS",
        "START OPTIONS",
        "EXAMPLES",
    ], helped.out
    commands = helped.out.partition("COMMANDS")[2].partition("START OPTIONS")[0]
    assert [name for name in COMMANDS if not re.search(rf"^  {name}\b", commands, re.M)] == []
    options = helped.out.partition("START OPTIONS")[2].partition("EXAMPLES")[0]
    for row in START_OPTIONS.strip().splitlines():
        for flag in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row.partition("(")[0]):
            assert re.search(rf"(?<![\w-]){flag}\b", options), (flag, options)
        for default in re.findall(r"\(default: (.*)\)", row):
            name = row.split()[0].rstrip(",")
            shown = options.partition(name)[2].partition("\n  --")[0]
            assert default in shown.replace("folder", "directory"), (name, shown)
    assert [line for line in EXAMPLES.split("\n") if line not in helped.out] == []
    assert "--no-tmux" in rloop("start", "--help").out


def test_version_has_three_names_and_an_unknown_command_is_told_the_known_ones(rloop: Rloop) -> None:
    """R-033, R-044."""
    versions = {rloop(word).out for word in ("version", "--version", "-v")}
    assert len(versions) == 1
    assert re.fullmatch(r"rloop \d+\.\d+.*\n", versions.pop())
    wrong = rloop("stauts")
    assert (wrong.code, "status" in wrong.err) == (2, True), wrong


# -- the commands of the document, pasted ------------------------------------------------------------------------------

FR_1 = r"""
# Basic usage
rloop start ./my-project
"""
FR_1_OPTIONS = r"""
# With options
rloop start ./my-project \
  --max-iterations 50 \
  --task-file PRD.md \
  --completion-marker "ALL_DONE" \
  --model claude-sonnet-4-20250514
"""
FR_4_START = """
# Start multiple projects
rloop start ~/projects/app1 --name app1
rloop start ~/projects/app2 --name app2
rloop start ~/projects/app3 --name app3

# List all running
rloop status
"""
FR_4_STOP = """
# Stop one
rloop stop app1

# Stop all
rloop stop --all

# View logs
rloop logs app1
rloop logs app1 --follow
"""
FR_6 = """
# On machine reboot, resume all previously running sessions
rloop resume

# Resume specific
rloop resume app1
"""
FR_7 = """\
defaults:
  max_iterations: 30
  task_file: PRD.md
  completion_marker: COMPLETE
  model: claude-sonnet-4-20250514
  
claude:
  flags:
    - --dangerously-skip-permissions
  env:
    IS_SANDBOX: "1"

notifications:
  on_complete: true
  webhook: https://hooks.example.com/notify  # optional
  
logging:
  level: info
  retain_days: 7
"""  # noqa: W293
FR_8 = """
# Discord/Slack webhook on completion
rloop start ./project --webhook "https://discord.com/api/webhooks/..."

# Or configure globally
rloop config set notifications.webhook "https://..."
"""
FR_9 = "rloop server --port 8080 --token SECRET"


def test_the_basic_usage_and_the_one_with_options(rloop: Rloop) -> None:
    """R-010, R-011, R-013, R-018, R-045, R-056: the second start replaces the first session and says so."""
    folder = rloop.project("../my-project", 2)
    begun = rloop.paste(FR_1)
    assert (begun.code, begun.err.count("FULL ACCESS")) == (0, 1), begun
    followed_by = [f"rloop {words}" for words in ("status", "logs my-project --follow", "stop my-project")]
    assert [command for command in followed_by if command not in begun.out] == [], begun.out
    assert rloop.await_end("my-project") == ["complete"]
    first, second = rloop.calls("my-project")
    assert first["session"] != second["session"], "a fresh one each iteration"
    for call in (first, second):
        assert (call["mode"], call["env"].get("IS_SANDBOX"), call["model"]) == ("bypassPermissions", "1", None)
        assert {"-p", "--verbose", "stream-json"} <= {*call["argv"]}
    assert 2.0 <= second["at"] - first["at"] < 2.0 + 5.0, "two seconds between iterations, hardly any more of ours"
    assert rloop.refused() == []
    (folder / PRD).write_text("- [ ] more\n")
    again = rloop.paste(FR_1_OPTIONS)
    assert (again.code, "rloop resume my-project" in again.out + again.err) == (0, True), again
    assert rloop.await_end("my-project") == ["complete"]
    [call] = rloop.calls("my-project")[2:]
    assert call["model"] == "claude-sonnet-4-20250514"
    assert "<promise>ALL_DONE</promise>" in call["prompt"]
    assert "Current iteration: 1/50" in call["prompt"]
    session = rloop.session("my-project")
    assert (session["iteration"], session["max_iterations"], session["completion_marker"]) == (1, 50, "ALL_DONE")
    assert [path.name for path in sorted((folder / ".rloop").glob("ralph.log*"))] == ["ralph.log", "ralph.log.1"]
    assert "✅ Ralph complete after 2 iterations." in (folder / ".rloop/ralph.log.1").read_text()
    assert len([*rloop.home.states.glob("loops/my-project-*/*/ledger.jsonl")]) == 2, "what the first one did is kept"


def test_many_projects_are_started_listed_stopped_and_looked_at(rloop: Rloop) -> None:
    """R-005, R-040, R-041, R-042, R-046: FR-4 and FR-6 from their first to their last line."""
    for name in ("app1", "app2", "app3"):
        rloop.project(name, 2)
    rloop.plays(TASK, HANG)
    begun = rloop.paste(f"set -e\n{FR_4_START}")
    assert begun.code == 0, begun
    [heading] = [line for line in begun.out.splitlines() if line.split()[:1] == ["NAME"]]
    assert heading.split() == ["NAME", "DIR", "ITERATION", "STATUS", "REMAINING"]
    for name in ("app1", "app2", "app3"):
        rloop.await_turn(2, name)
    wait_for(lambda: all(row[1] == "2/30" for name, row in rloop.table().items() if name != "NAME"))
    wait_for(lambda: SAYS in rloop.log())  # Claude is called before it says anything
    rows = rloop.table()
    assert {name: rows[name] for name in rows if name != "NAME"} == {
        name: [f"~/projects/{name}", "2/30", "running", "1 task"] for name in ("app1", "app2", "app3")
    }
    pids = [session["pid"] for session in rloop.sessions.values()]
    assert [is_alive(pid) for pid in pids] == [True] * 3
    assert [stat_of(pid)[4] for pid in pids] == ["0"] * 3, "none has a terminal"
    ended = rloop.paste(f"set -e\n{FR_4_STOP}")
    assert ended.code == 0, ended
    wait_for(rloop.nothing_is_alive)
    assert {(each["status"], each["pid"]) for each in rloop.sessions.values()} == {("stopped", None)}
    log = rloop.log()
    assert ended.out.count("=== Iteration 2/30 (Remaining: 1) ===") == 2, "once by each of the two"
    assert SAYS in log
    assert ended.out.endswith(log[-200:])
    rloop.plays(TASK)
    resumed = rloop.paste(f"set -e\n{FR_6}")
    assert resumed.code == 0, resumed
    assert [line.split()[:2] for line in resumed.out.splitlines()] == [
        *([name, "skipped"] for name in ("app1", "app2", "app3")),  # a person stopped them
        ["app1", "resumed"],
    ]
    assert rloop.await_end("app1") == ["complete"]


def test_the_configuration_and_the_webhook_of_the_document(rloop: Rloop) -> None:
    """R-044, R-050, R-051, R-052: what a person stopped is not told to anybody, so nothing is sent here."""
    rloop.config.mkdir(parents=True)
    (rloop.config / "config.yaml").write_text(FR_7)
    rloop.project("../project", 1)
    rloop.plays(HANG)
    pasted = rloop.paste(f"set -e\n{FR_8}")
    assert pasted.code == 0, pasted
    rloop.await_turn(1, "project")
    [call] = rloop.calls("project")
    assert (call["model"], call["env"]["IS_SANDBOX"]) == ("claude-sonnet-4-20250514", "1")
    session = rloop.session("project")
    assert session["webhook"]
    assert "webhooks/..." not in json.dumps(session)
    assert not any(b"discord" in word for words in rloop.home.command_lines() for word in words)
    kept = (rloop.config / "config.yaml").read_text()
    assert ("https://..." in kept, "# optional" in kept, "retain_days: 7" in kept) == (True, True, True), kept
    assert rloop("config", "get", "defaults.model").out == "claude-sonnet-4-20250514\n"
    listed = rloop("config", "list").out
    assert [words for words in ("max_iterations", "30", "config.yaml") if words not in listed] == [], listed
    assert is_refused(rloop("config", "get", "defaults.modle"), "defaults.model?")
    assert is_refused(rloop("config", "set", "defaults.max_iterations", "0"), "max_iterations")
    assert rloop("stop", "project").code == 0


def test_the_examples_of_the_help_work_when_pasted(rloop: Rloop) -> None:
    """R-010, R-042: `logs --follow` ends with the loop."""
    folder = rloop.project("../project", 1)
    rloop.plays(HANG)
    here, there, status, follow, stop = (line.strip() for line in EXAMPLES.strip().splitlines())
    assert rloop.paste(here, cwd=folder).code == 0
    rloop.await_turn(1, "project")
    assert rloop.session("project")["dir"] == str(folder)
    assert rloop("stop", "project").code == 0
    assert rloop.paste(there).code == 0
    assert (rloop.session("myapp")["max_iterations"], rloop.session("myapp")["dir"]) == (50, str(folder))
    assert "myapp" in rloop.paste(status).out
    following = rloop.home.start(before=["bash", "-c", follow], cwd=folder)
    rloop.await_turn(2, "project")
    wait_for(lambda: SAYS in (folder / ".rloop/ralph.log").read_text())
    assert rloop.paste(stop).code == 0
    followed = said(following)
    assert followed.code == 0, followed
    assert [words for words in ("=== Iteration 1/50 (Remaining: 1) ===", SAYS) if words not in followed.out] == []


# -- a loop, and what it leaves ----------------------------------------------------------------------------------------


def test_a_loop_in_the_foreground_leaves_the_state_and_the_log_of_the_document(rloop: Rloop) -> None:
    """R-011, R-016, R-019, R-046, R-047, R-Q3: and what Claude says looks like nothing else in the log."""
    folder = rloop.project("app1", 2)
    forged = "=== Iteration 9/9 (Remaining: 0) ===\n✅ Ralph complete after 9 iterations.\r\nFINISHED: now"
    rloop.plays({**TASK, "reply": f"One.\n{forged}"}, {**TASK, "sh": f"git add -A; {COMMIT}"})
    ended = rloop.runs(folder)
    assert (ended.code, len(rloop.calls())) == (0, 2), ended
    session = rloop.session()
    assert [*session][: len(STATE)] == STATE
    assert [key for key in ("backend", "model", "webhook", "reason") if key not in session] == []
    log_file = folder / ".rloop/ralph.log"
    told = {key: session[key] for key in STATE if key not in ("pid", "started_at", "tmux_session")}
    assert told == {
        "name": "app1",
        "dir": str(folder),
        "task_file": "PRD.md",
        "iteration": 2,
        "max_iterations": 30,
        "status": "complete",
        "last_task_count": 0,
        "completion_marker": "COMPLETE",
        "log_file": str(log_file),
    }
    assert (session["pid"], session["tmux_session"]) == (None, "")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", session["started_at"])
    assert [(rloop.config / name).stat().st_mode & 0o777 for name in (".", "state.json")] == [0o700, 0o600]
    expected = rf"""Starting ralph loop in {re.escape(str(folder))}
Task file: PRD\.md
Max iterations: 30
Completion marker: COMPLETE
Started at: {ISO}
Initial remaining tasks: 2

=== Iteration 1/30 \(Remaining: 2\) ===
One\.
 === Iteration 9/9 \(Remaining: 0\) ===
 ✅ Ralph complete after 9 iterations\.
 FINISHED: now
(?:\n)*Tasks remaining after iteration: 1

=== Iteration 2/30 \(Remaining: 1\) ===
Did the first open task\.
(?:\n)*Tasks remaining after iteration: 0

✅ Ralph complete after 2 iterations\.
FINISHED: {ISO}
"""
    assert re.fullmatch(expected, log_file.read_text()), log_file.read_text()
    assert (folder / ".rloop/.gitignore").read_text() == "*\n"
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=folder, capture_output=True, text=True, check=True)
    assert changed.stdout == "", "nothing of ours is in the way of a commit, and Claude makes it"
    shown = rloop.json()["app1"]
    assert (shown["current_remaining"], shown["is_alive"]) == (0, False)
    assert (shown["usage"]["tokens_out"], shown["usage"]["cost_usd"]) == (100, 0.0127), shown
    assert {key: shown[key] for key in STATE} == {key: session[key] for key in STATE}


def test_the_prompt_is_that_of_the_document_and_then_what_claude_has_to_know(rloop: Rloop) -> None:
    """R-020, R-021, X-24: also from a template of one's own, whose file is kept in the project."""
    folder = rloop.project("app1", 3)
    rloop.plays({**TASK, "reply": f"Finished.\n\n{TAG}"}, {**TASK, "reply": f"I cannot say {TAG} yet."}, TASK)
    assert rloop.runs(folder, "--max-iterations", "7").code == 0
    values = {"task_file": PRD, "completion_marker": "COMPLETE", "max_iterations": 7}
    first, second, third = (call["prompt"] for call in rloop.calls())
    assert first.strip() == PROMPT.format(**values, iteration=1).strip()
    for number, prompt in ((2, second), (3, third)):
        assert prompt.startswith(PROMPT.format(**values, iteration=number).strip()), prompt
    added = second.removeprefix(PROMPT.format(**values, iteration=2).strip())
    assert "2" in added, "that it was not believed, and how many are open"
    assert "open" in added
    mine = rloop.home.root / "mine.txt"
    mine.write_text("Do {task_file} {iteration}/{max_iterations}: {completion_marker}. {other} {{x}} $HOME\n")
    (folder / PRD).write_text("- [ ] more\n")
    assert rloop.runs(folder, "--prompt-template", str(mine)).code == 0
    assert (folder / ".rloop/prompt-template.txt").read_text() == mine.read_text()
    assert rloop.calls()[-1]["prompt"].startswith("Do PRD.md 1/30: COMPLETE. {other} ")
    (folder / PRD).write_text("- [ ] and more\n")
    assert rloop.runs(folder).code == 0
    assert rloop.calls()[-1]["prompt"].startswith("Do PRD.md 1/30: "), "used when it is there"


def test_how_a_loop_in_the_foreground_ends(rloop: Rloop) -> None:
    """R-011, R-017, R-019, R-045: without a call that is not needed."""
    done = rloop.project("done", text="- [x] one\n\n```\n- [ ] not a task\n```\n<!--\n- [ ] nor this\n-->\n")
    ended = rloop.runs(done)
    assert (ended.code, rloop.calls(), rloop.session("done")["status"]) == (0, [], "complete"), ended
    nested = rloop.project("nested", text="* [x] one\n  - [ ] below\n")
    capped = rloop.runs(nested, "--max-iterations", "1", "-n", "cap")
    assert (capped.code, rloop.session("cap")["status"]) == (0, "complete"), "on its last iteration"
    more = rloop.project("more", 2)
    capped = rloop.runs(more, "--max-iterations", "1")
    session = rloop.session("more")
    assert (capped.code, session["status"], session["reason"]) == (1, "failed", "max_iterations"), capped
    tail = rloop.log("more").splitlines()
    assert tail[-3:-1] == ["⚠️ Hit max iterations (1)", "Remaining tasks: 1"], tail
    assert re.fullmatch(f"FINISHED: {ISO}", tail[-1])
    assert "rloop resume more --max-iterations" in capped.out + capped.err
    rloop.plays({"fail": "login"})
    failed = rloop.runs(rloop.project("login"))
    session = rloop.session("login")
    assert (failed.code, session["status"], session["reason"]) == (7, "failed", "error"), failed
    assert "claude /login" in failed.out + failed.err
    assert "FINISHED: " in rloop.log("login")
    rloop.plays({"fail": "limit", "until": time.time() - 20}, TASK)
    waited = rloop.runs(rloop.project("limit"))
    assert (waited.code, len(rloop.calls("limit")), rloop.session("limit")["iteration"]) == (0, 2, 1), waited
    rloop.plays(HANG)
    running = rloop.start("start", str(rloop.project("int")), "--no-tmux")
    rloop.await_turn(1, "int")
    running.send_signal(signal.SIGINT)
    stopped = said(running)
    assert (stopped.code, rloop.session("int")["status"]) == (130, "stopped"), stopped
    assert rloop.session("int")["pid"] is None
    for name, text in (("none", "# nothing to do\n"), ("empty", "")):
        assert is_refused(rloop.runs(rloop.project(name, text=text)), "PRD.md")
    gone = rloop.project("gone")
    (gone / PRD).unlink()
    assert is_refused(rloop.runs(gone), "PRD.md")
    assert {"none", "empty", "gone"} & rloop.sessions.keys() == set()


def test_five_iterations_without_progress_are_blocked(rloop: Rloop) -> None:
    """R-012: a box that is ticked without any other change is progress; words are none."""
    folder = rloop.project("app1", 2)
    rloop.plays({"tick": PRD, "reply": "Ticked."}, {"reply": f"All done.\n\n{TAG}"})
    ended = rloop.runs(folder)
    session = rloop.session()
    assert (ended.code, session["status"], session["reason"], session["iteration"]) == (3, "failed", "blocked", 6), (
        ended
    )
    assert len(rloop.calls()) == 6
    assert "Ticked" not in rloop.prd()
    assert [fact["promise"] for fact in rloop.facts("round.ended")] == ["absent", *["given"] * 5]
    ticked = [words for words in ("task 1", "Ticked") if words in json.dumps(rloop.json()["app1"])]
    assert ticked == ["task 1"], "it is listed"


# -- many at once ------------------------------------------------------------------------------------------------------


def test_names_are_those_of_the_folders_and_unique(rloop: Rloop) -> None:
    """R-010, R-045: two starts at the same moment, of which one wins."""
    first, second = rloop.project("my app.v2"), rloop.project("other")
    rloop.plays(HANG)
    both = [rloop.start("start", str(folder), "--name", "my-app-v2") for folder in (first, second)]
    answers = [said(process) for process in both]
    assert sorted(answer.code for answer in answers) == [0, 8], answers
    loser = next(answer for answer in answers if answer.code == 8)
    session = rloop.session("my-app-v2")
    assert is_refused(loser, session["dir"], code=8)
    third = rloop("start", str(first))
    assert is_refused(third, str(session["pid"]), session["dir"], code=8), "what is no letter becomes a dash"
    assert is_refused(rloop("start", session["dir"], "--name", "two"), "my-app-v2", session["dir"], code=8)
    assert len(rloop.calls()) <= 1
    assert rloop("stop", "my-app-v2").code == 0
    replaced = rloop("start", str(second), "--name", "my-app-v2")
    assert (replaced.code, "rloop resume my-app-v2" in replaced.out + replaced.err) == (0, True), replaced
    assert rloop.session("my-app-v2")["dir"] == str(second)
    assert rloop("stop", "-a").code == 0
    wait_for(rloop.nothing_is_alive)


def test_a_blocked_session_goes_on_with_an_answer(rloop: Rloop) -> None:
    """The command that its end names; nothing of another program is needed."""
    rloop.plays(*[{"reply": "I had a look."}] * 5, TASK)
    rloop.project("app1")
    blocked = rloop.runs(rloop.projects / "app1")
    assert (blocked.code, 'rloop resume app1 --note "…"' in blocked.err, "bydawn" in blocked.err) == (3, True, False)
    assert "which one?" in rloop("resume", "--note", "x").err
    assert rloop("resume", "app1", "--note", "round half up").code == 0
    wait_for(lambda: rloop.session()["status"] == "complete")
    assert "round half up" in rloop.calls()[-1]["prompt"]


def test_a_folder_named_like_an_option_gives_a_name_that_is_none(rloop: Rloop) -> None:
    rloop.project("-dash-")
    assert rloop("start", "./-dash-", "--no-tmux", cwd=rloop.projects).code == 0
    assert [*rloop.sessions] == ["dash"]
    assert rloop("logs", "dash").code == 0


def test_a_missing_log_in_is_said_by_start_itself(rloop: Rloop) -> None:
    """Nothing is begun, and no call is made that would only be refused."""
    rloop.project("app1")
    rloop.login.unlink()
    for words in ((), ("--no-tmux",)):
        refused = rloop("start", str(rloop.projects / "app1"), *words)
        assert (refused.code, is_error(refused.err)) == (7, True), refused
        assert "claude is not logged in" in refused.err and "`claude /login`" in refused.err
    assert (rloop.sessions, rloop.calls()) == ({}, [])
    (rloop.login.parent / "settings.json").write_text('{"apiKeyHelper": "~/bin/key"}')
    assert rloop.runs(rloop.projects / "app1").code == 0, "a program of theirs has the key"


def test_stop_and_logs_know_what_there_is(rloop: Rloop) -> None:
    """R-041, R-042."""
    nothing = rloop("status")
    assert (nothing.code, "No sessions found" in nothing.out, "rloop start" in nothing.out) == (0, True, True), nothing
    assert rloop("stop", "--all").code == 0
    folder = rloop.project("app1")
    rloop.plays({**TASK, "reply": "\n".join(f"line {number}" for number in range(300))})
    assert rloop.runs(folder).code == 0
    for command in ("stop", "logs", "resume"):
        assert is_refused(rloop(command, "app"), "app1")
    again = rloop("stop", "app1")
    assert (again.code, again.out + again.err != "") == (0, True), "it is not running"
    assert rloop.session()["status"] == "complete"
    shown = rloop("logs", "app1").out.splitlines()
    assert (len(shown), shown) == (100, rloop.log().splitlines()[-100:])
    assert rloop("logs", "app1", "--follow").out.splitlines() == shown, "nothing more comes"


def test_a_log_that_has_grown_too_large_is_moved_away_and_followed_across(rloop: Rloop) -> None:
    """R-042, R-056."""
    folder, first, second = rloop.project("app1", 2), rloop.gate("first"), rloop.gate("second")
    rloop.plays({"reply": "One.", "wait_for": str(first), "tick": PRD}, {"wait_for": str(second), **TASK})
    assert rloop("start", str(folder)).code == 0
    wait_for(lambda: "One." in rloop.log())
    log, seen = folder / ".rloop/ralph.log", rloop.home.root / "seen"
    with seen.open("w") as screen:
        following = rloop.start("logs", "app1", "--follow", stdout=screen)
    wait_for(lambda: "One." in seen.read_text())
    os.truncate(log, 21_000_000)  # as if much had been said; it takes no room
    first.touch()
    rloop.await_turn(2)
    wait_for(lambda: (folder / ".rloop/ralph.log.1").exists())
    second.touch()
    assert rloop.await_end("app1") == ["complete"]
    followed = said(following)
    text = seen.read_text()
    assert followed.code == 0, followed
    lines = [
        *("=== Iteration 1/30 (Remaining: 2) ===", "Tasks remaining after iteration: 1"),
        *("=== Iteration 2/30 (Remaining: 1) ===", "✅ Ralph complete after 2 iterations."),
    ]
    assert [text.count(line) for line in lines] == [1, 1, 1, 1], text.replace("\0", "")
    assert "=== Iteration 1/30 (Remaining: 2) ===" in (folder / ".rloop/ralph.log.1").read_text()
    assert log.stat().st_size < 10_000
    assert rloop("logs", "app1").out.endswith(log.read_text()[-100:])


def test_resume_takes_what_can_go_on_and_says_why_the_rest_does_not(rloop: Rloop) -> None:
    """R-043, X-16b."""
    rloop.plays(TASK, capped=[{"tick": PRD, "append": {"a": "x"}, "reply": "One."}], stopped=[HANG, TASK])
    capped, complete = rloop.project("capped", 2), rloop.project("complete")
    assert [rloop.runs(capped, "--max-iterations", "1").code, rloop.runs(complete).code] == [1, 0]
    assert rloop("start", str(rloop.project("stopped"))).code == 0
    rloop.await_turn(1, "stopped")
    assert rloop("stop", "stopped").code == 0
    assert rloop("resume").code == 0
    assert [len(rloop.calls(name)) for name in ("capped", "complete", "stopped")] == [1, 1, 1]
    assert is_refused(rloop("resume", "complete"), "complete")
    assert is_refused(rloop("resume", "capped"), "--max-iterations")
    assert is_refused(rloop("resume", "capped", "--max-iterations", "1"), "--max-iterations")
    assert rloop("resume", "capped", "--max-iterations", "5").code == 0
    both = rloop("resume", "--stopped")
    [row] = [line for line in both.out.splitlines() if line.split()[:1] == ["stopped"]]
    assert (both.code, "resumed" in row) == (0, True), both
    assert rloop.await_end("capped", "stopped") == ["complete", "complete"]
    assert (rloop.session("capped")["iteration"], rloop.session("capped")["max_iterations"]) == (2, 5)
    assert rloop.session("stopped")["iteration"] == 1, "what was cut short is done again and does not count"


def test_a_shutdown_is_nobodys_wish_and_one_that_cannot_go_on_is_in_nobodys_way(rloop: Rloop) -> None:
    """R-004, R-043: what a machine ended is resumed, once, even by two at a time; a folder that is gone is refused."""
    rloop.plays(HANG, TASK)
    names = ["gone", "stays", "too"]
    for name in names:
        assert rloop("start", str(rloop.project(name))).code == 0
        rloop.await_turn(1, name)
    pids = [pid for pair in rloop.workers(*names) for pid in pair]
    for pid in pids:
        with suppress(ProcessLookupError):  # the one sees the other's end
            os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not any(is_alive(pid) for pid in pids))
    assert [rloop.word(name) for name in names] == ["crashed"] * 3
    assert [rloop.session(name)["status"] for name in names] == ["running"] * 3
    shutil.rmtree(rloop.projects / "gone")
    answers = [said(process) for process in [rloop.start("resume"), rloop.start("resume")]]
    rows = [line.split()[:2] for answer in answers for line in answer.out.splitlines()]
    assert sorted(row for row in rows if row[1] == "resumed") == [["stays", "resumed"], ["too", "resumed"]], answers
    assert rows.count(["gone", "refused"]) == 2, answers
    assert ["`rloop resume gone`" in answer.out for answer in answers] == [True, True], answers
    assert [(answer.code, "error" in answer.err) for answer in answers] == [(2, False)] * 2, answers
    for answer in answers:  # who finds all of them running has nothing to warn about
        warned = answer.err.count("FULL ACCESS")
        assert warned == 1 if " resumed " in answer.out else warned <= 1, answers
    assert rloop.await_end("stays", "too") == ["complete", "complete"]
    assert [len(rloop.calls(name)) for name in names] == [1, 2, 2]
    assert rloop("stop", "gone").code == 0, "not even a folder is needed to end it"
    assert (rloop.session("gone")["status"], rloop.session("gone")["pid"]) == ("stopped", None)


def test_the_table_is_readable_at_every_width_and_in_colours(rloop: Rloop) -> None:
    """R-040: never cut in the middle of a word; every colour has its word."""
    rloop.plays(TASK, crashed=[HANG])
    long = rloop.project("my-web-project", 12)
    assert rloop.runs(long, "--max-iterations", "1").code == 1
    assert rloop.runs(rloop.project("done")).code == 0
    assert rloop("start", str(rloop.project("crashed"))).code == 0
    rloop.await_turn(1, "crashed")
    assert rloop.word("crashed") == "running"
    rloop.power_cut("crashed")
    wait_for(lambda: rloop.word("crashed") == "crashed")
    assert rloop.session("crashed")["status"] == "running", "the file cannot know"
    words = {"~/projects/done", "1/30", "complete", "0", "tasks", "1/1", "failed", "11", "1", "task", "crashed"}
    for columns in (120, 48):
        shown = rloop("status", COLUMNS=str(columns)).out
        assert max(len(line) for line in shown.splitlines()) <= columns, shown
        assert words - {*shown.split()} == set(), shown
    wide = rloop("status", COLUMNS="120").out.splitlines()
    places = [wide[0].index(word) for word in ("NAME", "DIR", "ITERATION", "STATUS", "REMAINING")]
    for row in wide[1:4]:
        assert [row[place - 1] == " " != row[place] for place in places[1:]] == [True] * 4, row
    window = Terminal(rloop.home, "status", command="rloop", TERM="xterm-256color", COLUMNS="120")
    shown = window.end().text
    for colour, word in (("32", "complete"), ("31", "failed"), ("31", "crashed")):
        assert re.search(rf"\x1b\[[\d;]*{colour}m[^\x1b]*{word}", shown), shown
    assert rloop("resume", "crashed").code == 0
    assert rloop("stop", "crashed").code == 0
    piped = rloop.project("a-name-of-a-project-that-is-quite-long-and-leaves-no-room-for-others")
    assert rloop.runs(piped).code == 0
    [row] = [line for line in rloop("status").out.splitlines() if line.startswith(piped.name)]
    assert row.split() == [piped.name, f"~/projects/{piped.name}", "1/30", "complete", "0", "tasks"], "for scripts"


@pytest.fixture
def shown_in_tmux(home: Home) -> Iterator[Rloop]:
    """With tmux, whose socket needs a short path."""
    rloop = Rloop(home, tmux=True)
    folder = mkdtemp(prefix="by-")
    home.env["TMUX_TMPDIR"] = folder
    yield rloop
    shutil.rmtree(folder)


@pytest.mark.usefixtures("tmux")
def test_tmux_shows_the_loop_and_its_end_is_not_the_loops(shown_in_tmux: Rloop) -> None:
    """R-046: `tmux attach -t rloop-NAME` works as the document's readers expect."""
    rloop = shown_in_tmux
    rloop.plays(HANG)

    def tmux(*words: str) -> str:
        ran = subprocess.run(["tmux", *words], env=rloop.home.env, capture_output=True, text=True)
        return ran.stdout

    folder = rloop.project()
    assert rloop("start", str(folder)).code == 0
    assert rloop.session()["tmux_session"] == "rloop-app1"
    assert tmux("list-sessions", "-F", "#{session_name}").split() == ["rloop-app1"]
    wait_for(lambda: SAYS in tmux("capture-pane", "-p", "-t", "rloop-app1"))
    tmux("kill-session", "-t", "rloop-app1")
    assert rloop.word() == "running", "killing what shows it ends nothing"
    assert rloop("stop", "app1").code == 0
    assert rloop("resume", "app1").code == 0
    assert tmux("list-sessions", "-F", "#{session_name}").split() == ["rloop-app1"]
    assert rloop("stop", "--all").code == 0
    assert tmux("list-sessions") == ""
    wait_for(rloop.nothing_is_alive)


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_bad_input_is_refused_before_anything_is_written_or_spent(rloop: Rloop) -> None:
    """R-045: what, why, do this."""
    folder = rloop.project("app1", 2)
    (rloop.projects / "secret.md").write_text("- [ ] theirs\n")
    (folder / "link.md").symlink_to(rloop.projects / "secret.md")
    (folder / "binary.md").write_bytes(b"- [ ] one\n\0\xff\xfe")
    (folder / "sub").mkdir()
    before, here = tree_of(folder), str(folder)
    cases: list[tuple[tuple[str, ...], str]] = [
        ((), "start"),
        ((str(rloop.projects / "nowhere"),), "nowhere"),
        ((str(folder / PRD),), PRD),
        ((here, "-f", "missing.md"), "missing.md"),
        ((here, "-f", "sub"), "sub"),
        ((here, "-f", "binary.md"), "binary.md"),
        ((here, "-f", "link.md"), "link.md"),
        ((here, "-f", "../secret.md"), "../secret.md"),
        ((here, "-f", str(rloop.projects / "secret.md")), "--task-file"),
        ((here, "--completion-marker", ""), "--completion-marker"),
        ((here, "--completion-marker", "a\nb"), "--completion-marker"),
        ((here, "--name", "..."), "--name"),
        ((here, "--name", ""), "--name"),
        *(((here, "--max-iterations", number), number) for number in ("0", "-1", "x", "1e9")),
        ((here, "--webhook", "ftp://example.org/x"), "--webhook"),
        ((here, "--webhook", "nowhere"), "--webhook"),
        ((here, "--backend", "cluade"), "claude"),
        ((here, "--prompt-template", "missing.txt"), "missing.txt"),
        ((here, "--bogus"), "--bogus"),
    ]
    for words, named in cases:
        for more in ((), ("--no-tmux",)):
            answer = rloop("start", *words, *more)
            assert (answer.code, "Traceback" in answer.err, named in answer.err) == (2, False, True), (words, answer)
    for text, named in (
        ("defaults:\n\tmax_iterations: 3\n", ":2"),
        ("defaults:\n  max_iterations: many\n", ":2"),
        ("defaults: 3\n", ":1"),
        ("defaults:\n  model: a\n  model: b\n", ":3"),
        ("claude:\n  env:\n    A: !!python/object:os.system x\n", ":3"),
    ):
        (folder / ".rloop.yaml").write_text(text)
        assert is_refused(rloop("start", here), f".rloop.yaml{named}")
    (folder / ".rloop.yaml").unlink()
    assert (rloop.calls(), tree_of(folder), rloop.sessions) == ([], before, {})
    assert [*rloop.home.states.glob("loops/*/*/ledger.jsonl")] == []


def test_without_a_home_or_a_place_to_write_it_says_so(rloop: Rloop) -> None:
    """R-045, R-046."""
    folder = str(rloop.project())
    environment = rloop.home.env
    rloop.home.env = {name: value for name, value in environment.items() if not name.startswith(("HOME", "XDG_"))}
    for words in (("start", folder), ("status",), ("config", "set", "defaults.model", "x")):
        answer = rloop(*words, HOME="")
        assert (answer.code, is_error(answer.err)) == (2, True), (words, answer)
    rloop.home.env = environment
    (rloop.home.root / "flat").write_text("a file\n")
    refused = rloop("start", folder, RLOOP_CONFIG_DIR=str(rloop.home.root / "flat"))
    assert is_refused(refused, "flat")
    assert rloop.calls() == []


def test_a_damaged_state_file_is_kept_aside_and_made_again(rloop: Rloop) -> None:
    """R-046, R-048."""
    assert rloop.runs(rloop.project()).code == 0
    state = rloop.config / "state.json"
    state.write_text('{"sessions": {"app1"')
    shown = rloop("status")
    assert (shown.code, "state.json.bad" in shown.err, "complete" in shown.out) == (0, True, True), shown
    assert rloop.runs(rloop.project("app2")).code == 0
    assert (rloop.config / "state.json.bad").read_text() == '{"sessions": {"app1"'
    assert {name: session["status"] for name, session in rloop.sessions.items()} == {
        "app1": "complete",
        "app2": "complete",
    }


def test_a_session_of_another_program_is_refused_and_kept(rloop: Rloop) -> None:
    """R-046, X-12: and what we do not know in the file stays."""
    theirs = rloop.project("theirs", 3)
    session: Json = {"name": "theirs", "dir": str(theirs), "task_file": PRD, "pid": 999_999, "iteration": 5}
    session |= {"tmux_session": "rloop-theirs", "started_at": "2026-01-23T10:00:00Z", "max_iterations": 30}
    session |= {"status": "running", "last_task_count": 12, "completion_marker": "COMPLETE", "extra": [1]}
    session |= {"log_file": str(theirs / ".rloop/ralph.log")}
    rloop.config.mkdir(parents=True)
    (rloop.config / "state.json").write_text(json.dumps({"version": 7, "sessions": {"theirs": session}}))
    assert rloop("status").out.startswith("No sessions found")
    assert "No session is running" in rloop("stop", "--all").out
    before = tree_of(rloop.home.root)
    for words in (("resume", "theirs"), ("stop", "theirs"), ("logs", "theirs"), ("start", str(theirs))):
        assert is_refused(refused := rloop(*words), f"`rloop start {theirs} --name theirs-2`"), refused
    assert tree_of(rloop.home.root) == before
    (rloop.config / "state.json").write_text(
        json.dumps({"version": 7, "sessions": {"x": session | {"pid": os.getpid()}}})
    )
    live = rloop("start", str(theirs))
    assert (live.code, "x is a session of another program" in live.err) == (8, True), live
    (rloop.config / "state.json").write_text(json.dumps({"version": 7, "sessions": {"theirs": session}}))
    assert rloop.runs(rloop.project()).code == 0
    kept = json.loads((rloop.config / "state.json").read_text())
    assert (kept["version"], kept["sessions"]["theirs"]) == (7, session)
    assert kept["sessions"]["app1"]["status"] == "complete"


# -- configuration and trust -------------------------------------------------------------------------------------------


def test_each_layer_counts_more_than_the_one_below(rloop: Rloop) -> None:
    """R-050: default < config.yaml < .rloop.yaml < environment < flags."""
    folder = rloop.project("app1", 9)
    rloop.config.mkdir(parents=True)
    (rloop.config / "config.yaml").write_text("defaults:\n  max_iterations: 8\n  completion_marker: GLOBAL\n")
    (folder / ".rloop.yaml").write_text("defaults:\n  max_iterations: 1\n  completion_marker: PROJECT\n")
    assert rloop.runs(folder).code == 1
    assert [rloop.session()[key] for key in ("max_iterations", "completion_marker")] == [1, "PROJECT"]
    assert rloop.runs(folder, RLOOP_COMPLETION_MARKER="ENV").code == 1
    assert rloop.session()["completion_marker"] == "ENV"
    assert rloop.runs(folder, "--completion-marker", "FLAG", RLOOP_COMPLETION_MARKER="ENV").code == 1
    assert rloop.session()["completion_marker"] == "FLAG"
    (folder / ".rloop.yaml").write_text("defaults:\n  max_iterations: 100\n")
    assert rloop.runs(folder, "--max-iterations", "1", RLOOP_MODEL="some-model").code == 1
    assert rloop.calls()[-1]["model"] == "some-model"
    assert rloop("config", "get", "defaults.max_iterations", cwd=folder).out == "100\n", "what the project asks for"
    assert "iterations = 100" in rloop.runs(folder).err, "and a person has to agree to"
    (folder / ".rloop.yaml").write_text("claude:\n  env:\n    PATH: ./evil\n")
    refused = rloop.runs(folder)
    assert (refused.code, "trust" in refused.err) == (2, True), refused


def test_backends_says_which_agents_are_here(rloop: Rloop) -> None:
    """R-Q1."""
    shown = rloop("backends")
    assert shown.code == 0, shown
    assert [name for name in ("claude", "codex", "opencode", "gemini") if name not in shown.out] == []
    assert "2.1.197" in shown.out
    assert "npm install -g" in shown.out, "for one that is missing"


class Receiver:
    """Somebody who is told: what came, in order."""

    def __init__(self) -> None:
        self.got: list[Json] = []
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook/s3cret"
        threading.Thread(target=self.server.serve_forever, args=[0.05], daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def test_a_webhook_is_told_once_of_each_end_and_is_a_secret(rloop: Rloop, receiver: Receiver) -> None:
    """R-003, R-052."""
    complete, capped = rloop.project("complete"), rloop.project("capped", 2)
    assert rloop.runs(complete, "--webhook", receiver.url).code == 0
    assert rloop.runs(capped, "--max-iterations", "1", RLOOP_WEBHOOK=receiver.url).code == 1
    first, second = receiver.got
    told = ("event", "status", "session", "iterations", "max_iterations", "remaining_tasks")
    assert [first[key] for key in told] == ["complete", "success", "complete", 1, 30, 0]
    assert [second[key] for key in told] == ["failed", "failure", "capped", 1, 1, 1]
    assert second["reason"] == "max_iterations"
    fields = {*told, "project", "reason", "duration", "timestamp", "message"}
    assert [fields - each.keys() for each in (first, second)] == [set(), set()]
    assert [name for call in rloop.calls() for name in call["env"] if "WEBHOOK" in name] == []
    kept = [path for path in rloop.home.root.rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()]
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert {path.name for path in kept} == {"secrets.json"}, kept


# -- company -----------------------------------------------------------------------------------------------------------


def test_bydawn_knows_the_session_and_waylon_smithers_works_beside_it(rloop: Rloop) -> None:
    """R-005, X-09."""
    folder = rloop.project("app1", 2)
    gate = rloop.gate()
    rloop.plays({**TASK, "wait_for": str(gate)}, TASK)
    install_codex(rloop.bin, [{"append": {"other.txt": "x\n"}, "reply": "<promise>TASK_COMPLETE</promise>"}])
    assert rloop("start", str(folder)).code == 0
    rloop.await_turn(1)
    words = ("Write it.", "--full-auto", "--loop-id", "night")
    waylon = said(rloop.home.start(*words, command="waylon-smithers", cwd=folder))
    assert waylon.code == 0, waylon
    ours = tree_of(folder)
    assert [path for path in ours if path.startswith(".codex/")] != []
    noted = rloop.home.bydawn("tell", "app1", "Use tabs.", cwd=folder)
    assert noted.code == 0, noted
    loops = json.loads(rloop.home.bydawn("status", "--all", "--json").out)["loops"]
    assert {(loop["loop"], loop["state"]) for loop in loops} == {("app1", "running"), ("night", "unverified")}
    for command in ("show", "why"):
        shown = rloop.home.bydawn(command, "app1", cwd=folder)
        assert (shown.code, "app1" in shown.out) == (0, True), shown
    gate.touch()
    assert rloop.await_end("app1") == ["complete"]
    assert "Use tabs." in rloop.calls()[1]["prompt"]
    assert [name for name in rloop.table() if name != "NAME"] == ["app1"], "the other is none of its sessions"
    after = tree_of(folder)
    assert {p: d for p, d in after.items() if p.startswith(".codex/")} == {
        p: d for p, d in ours.items() if p.startswith(".codex/")
    }
