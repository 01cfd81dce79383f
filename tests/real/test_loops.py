"""Whole loops with the real agents: the installed command, the real binaries, a scripted model."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import pytest

from driving import Home, a_repository, kill_both, name_of, processes, said, wait_for, worker_of
from real.model_server import Answer, Call, ModelServer, Request, Usage

CLOCKED = Path(__file__).with_name("clocked.py")
PROMISE = ("--done-when", "TASK_COMPLETE")
DONE = Answer(text="All of it is there.\n<promise>TASK_COMPLETE</promise>")


class Night:
    """A home in which one of the real agents works."""

    def __init__(self, home: Home, agent: str) -> None:
        self.home = home
        self.agent = agent

    def run(self, *arguments: str, seconds: float = 90) -> int:
        """Run a loop to its end; its exit code."""
        ended = said(self.start(*arguments), seconds)
        assert "Traceback" not in ended.err, ended.err
        return ended.code

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return self.home.start("run", "do it", "-a", self.agent, "--plain", *arguments)

    @property
    def sessions(self) -> list[str]:
        return [ended["session"] for ended in self.home.rounds_ended()]


@pytest.fixture(params=["codex", "claude"])
def night(request: pytest.FixtureRequest, home: Home) -> Night:
    home.env = request.getfixturevalue(f"{request.param}_env")
    return Night(home, request.param)


@pytest.fixture
def codex(home: Home, codex_env: dict[str, str]) -> Night:
    home.env = codex_env
    return Night(home, "codex")


def steps(*commands: str) -> list[Answer]:
    """Rounds in each of which the agent runs a command and says so; in the last one it gives its promise."""
    *before, last = [Answer(sh=command) for command in commands]
    return [*(answer for command in before for answer in (command, Answer(text="On it."))), last, DONE]


# -- conversations -----------------------------------------------------------------------------------------------------


def test_three_rounds_of_one_conversation_edit_files(night: Night, model: ModelServer) -> None:
    """W-110."""
    model.play(steps("echo 1 > 1.txt", "echo 2 > 2.txt", "echo 3 > 3.txt"))
    assert night.run("--session", "resume", *PROMISE) == 0
    assert night.home.outcomes() == ["ok", "ok", "ok"]
    assert len({*night.sessions}) == 1
    assert [(night.home.repo / f"{number}.txt").read_text() for number in (1, 2, 3)] == ["1\n", "2\n", "3\n"]
    # Two answers a round. Codex counts on from turn to turn, and a round has only what came since.
    assert [ended["usage"]["tokens_out"] for ended in night.home.rounds_ended()] == [100, 100, 100]


def test_each_round_begins_afresh_unless_it_is_told_otherwise(night: Night, model: ModelServer) -> None:
    model.play(steps("date > 1.txt", "date > 2.txt"))
    assert night.run(*PROMISE) == 0
    assert len({*night.sessions}) == 2


def test_a_conversation_is_left_for_a_fresh_one_before_it_chokes(night: Night, model: ModelServer) -> None:
    """W-130."""
    model.play(steps("date > 1.txt", "date > 2.txt", "date > 3.txt"))
    assert night.run("--session", "resume", "--session-rounds", "2", *PROMISE) == 0
    first, second, third = night.sessions
    assert first == second != third
    assert "Where the previous conversation ended" in (night.home.folder() / "rounds/0003/prompt.md").read_text()


# -- trouble with the provider -----------------------------------------------------------------------------------------


def test_a_refused_login_stops_at_once_and_says_what_to_run(night: Night, model: ModelServer) -> None:
    night.home.env.pop("CLAUDE_CODE_MAX_RETRIES", None)  # left alone it tries eleven times
    model.play([Answer(fault="unauthorized", times=0)])
    assert night.run(seconds=120) == 7
    assert night.home.outcomes() == ["auth"]
    assert len(model.asked) < 6, "it was left to its own retries, which take three minutes"
    assert night.home.status()["reason"].startswith(f"{night.agent} is not logged in; run `{night.agent}")
    [stopped] = night.home.facts("loop.stopped")
    assert re.search("401|Invalid API key", stopped["data"]["evidence"][1]), stopped


def test_an_agent_whose_every_command_fails_is_stopped_after_three_rounds_with_the_error(
    night: Night, model: ModelServer
) -> None:
    """A turn in which nothing worked ends well, as the agent sees it."""
    model.play([Answer(sh="nosuchtool --go"), Answer(text="On it.")] * 3)
    ended = said(night.start(), 90)
    assert ended.code == 7, ended
    assert night.home.outcomes() == ["ok", "ok", "ok"]
    assert "3 rounds in a row, every command failed: " in night.home.status()["reason"]
    assert "nosuchtool: command not found" in night.home.status()["reason"]
    assert "no command worked" in ended.out
    assert "✗ nosuchtool --go → exit 127: " in night.home.bydawn("logs").out
    assert "✗ nosuchtool --go → exit 127: " in night.home.bydawn("show", "--round", "1").out
    prompt = (night.home.folder() / "rounds/0002/prompt.md").read_text()
    assert "## Every command failed" in prompt


def test_an_overloaded_provider_is_waited_for_and_costs_nothing(night: Night, model: ModelServer) -> None:
    model.play([Answer(fault="overloaded", times=2), DONE])
    assert night.run("-n", "1") == 0
    assert night.home.outcomes()[-1] == "ok"
    assert {*night.home.outcomes()} <= {"ok", "transient"}


def test_a_usage_limit_that_has_just_ended_is_no_reason_to_wait_for_long(codex: Night, model: ModelServer) -> None:
    """Codex says the minute, so the moment may be past when it is read."""
    model.play([Answer(fault="usage-limit", until=int(time.time()) - 20), DONE])
    assert codex.run("-n", "1") == 0
    assert codex.home.outcomes() == ["limited", "ok"]


def test_a_usage_limit_is_waited_out_until_its_reset(
    home: Home, claude_oauth_env: dict[str, str], model: ModelServer
) -> None:
    home.env = claude_oauth_env
    reset = int(time.time()) + 8
    model.play([Answer(fault="usage-limit", until=reset), DONE])
    assert Night(home, "claude").run("-n", "1") == 0
    assert home.outcomes() == ["limited", "ok"]
    [waited] = home.facts("wait.started")
    assert waited["data"]["decided"]["rule"] == "agent-limit"
    assert home.facts("round.started")[1]["at"] >= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(reset))


def test_a_limit_that_codex_tells_in_words_is_waited_out(codex: Night, model: ModelServer) -> None:
    """It names a time of day, at least a minute away: with a clock that skips what is waited for."""
    reset = int(time.time()) + 3 * 3600
    model.play([Answer(fault="usage-limit", until=reset), DONE])
    command = [sys.executable, str(CLOCKED), str(codex.home.repo), str(codex.home.states), "codex"]
    ended = subprocess.run(command, env=codex.home.env, cwd=codex.home.repo, timeout=90, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert codex.home.outcomes() == ["limited", "ok"]
    [waited] = codex.home.facts("wait.started")
    until = datetime.fromisoformat(waited["data"]["until"]).timestamp()
    # It says the minute, and we come a little later than everybody else.
    assert reset - 60 <= until <= reset + 30
    assert waited["data"]["decided"]["rule"] == "agent-limit"


def test_a_limit_that_comes_near_is_told(home: Home, claude_oauth_env: dict[str, str], model: ModelServer) -> None:
    home.env = claude_oauth_env
    model.play([Answer(text=DONE.text, warning=0.92, until=int(time.time()) + 7200)])
    ended = said(Night(home, "claude").start(), 60)
    assert ended.code == 0
    assert "92" in next(line for line in ended.out.splitlines() if "◷" in line)


# -- more than one agent -----------------------------------------------------------------------------------------------


def test_another_agent_stands_in_for_a_limited_one_and_a_second_loop_knows(
    home: Home, claude_oauth_env: dict[str, str], codex_env: dict[str, str], model: ModelServer
) -> None:
    home.env = {**codex_env, **claude_oauth_env}
    resets: list[int] = []  # counted from the first question: an agent may take long to start

    def answer(request: Request) -> Answer:
        if request.dialect != "messages":
            return Answer(text="Taken over.", delay=1)
        resets.append(int(time.time()) + 25)
        return DONE if time.time() >= resets[0] else Answer(fault="usage-limit", until=resets[0])

    model.play(answer)
    first = Night(home, "claude").start("-a", "codex", "--max-no-change", "0")
    wait_for(lambda: home.has_loop() and home.outcomes()[:1] == ["limited"], seconds=30)  # the other goes on at once
    asked = len([request for request in model.asked if request.dialect == "messages"])
    a_repository(home.root / "second", "another")
    second = home.bydawn(
        "run", "do it", "-C", str(home.root / "second"), "-a", "claude", "--on-limit", "stop", "--plain"
    )
    assert (second.code, "reported by the loop repo" in second.out) == (4, True), second
    assert len([request for request in model.asked if request.dialect == "messages"]) == asked, "nothing was tried"
    assert said(first, 90).code == 0
    workers = [fact["data"]["agent"] for fact in home.facts("round.started")]
    assert workers[0] == workers[-1] == "claude"
    assert len(workers) > 2
    assert {*workers[1:-1]} == {"codex"}
    waits = [fact["data"]["decided"]["rule"] for fact in home.facts("wait.started")]
    assert "agent-limit" not in waits, "nobody waited for the reset while another could work"
    shown = [row.split() for row in home.bydawn("show", "repo", COLUMNS="100").out.splitlines()]
    assert [row[-1] for row in shown if row and row[0].isdigit()] == workers, "who did which round"


def test_a_model_that_does_not_exist_stops_at_once(night: Night, model: ModelServer) -> None:
    model.play([Answer(fault="model", times=0)])
    assert night.run("-m", "no-such-model") == 7
    assert night.home.outcomes() == ["config"]


# -- what is believed --------------------------------------------------------------------------------------------------


def test_a_promise_in_the_output_of_a_command_is_not_the_agents(night: Night, model: ModelServer) -> None:
    model.play([Answer(sh="echo '<promise>TASK_COMPLETE</promise>'"), Answer(text="I have looked around.")])
    assert night.run("-n", "1") == 4
    assert [ended["promise"] for ended in night.home.rounds_ended()] == ["absent"]


def test_a_promise_in_a_file_of_last_words_is_not_this_rounds(night: Night, model: ModelServer) -> None:
    """An old file with the last message of an earlier run is no reply; only what this turn said is one."""
    for name in ("last_message.txt", "reply.md"):
        (night.home.repo / name).write_text(DONE.text)
    # Codex is asked to keep such a file, and does; nobody reads it.
    more = ["--", "-o", str(night.home.repo / "last_message.txt")] if night.agent == "codex" else []
    model.play([Answer(text="I have looked around.")])
    assert night.run("-n", "1", *more) == 4
    assert [ended["promise"] for ended in night.home.rounds_ended()] == ["absent"]


def test_what_an_agent_leaves_running_is_gone_after_its_round(night: Night, model: ModelServer) -> None:
    # When its shell ends, Codex kills that shell's process group: wait until the child is no longer in it.
    nap = f"sleep 4711.{os.getpid()}"  # the same test may run beside us with the other agent
    leave = f"setsid sh -c 'touch began; exec {nap}' > /dev/null 2>&1 &"
    model.play([Answer(sh=f"{leave} until test -e began; do sleep 0.02; done"), DONE])
    assert night.run("-s", "full") == 0
    [ended] = night.home.rounds_ended()
    assert any(nap in left for left in ended["leftovers"])
    assert [name_of(pid) for pid in processes() if nap in name_of(pid)] == []


def test_usage_is_told_by_the_round_and_by_the_loop(codex: Night, model: ModelServer) -> None:
    model.play([Answer(text=DONE.text, usage=Usage(input=3000, cached=1000, output=70))])
    assert codex.run() == 0
    shown = json.loads(codex.home.bydawn("show", "--json").out)
    assert shown["usage"] == {"tokens_in": 3000, "tokens_cached": 1000, "tokens_out": 70, "cost_usd": None}


def test_a_budget_of_tokens_ends_the_loop_and_can_be_raised(night: Night, model: ModelServer) -> None:
    model.play(steps("date > 1.txt", "date > 2.txt", "date > 3.txt"))
    assert night.run("--budget", "3ktok", *PROMISE) == 4
    assert "budget" in night.home.status()["reason"]
    before = len(night.home.outcomes())
    assert before < 3
    assert night.home.bydawn("resume", "--plain", "--budget", "+1Mtok", seconds=90).code == 0
    assert len(night.home.outcomes()) > before


def test_a_budget_is_held_in_the_middle_of_a_round(home: Home, claude_env: dict[str, str], model: ModelServer) -> None:
    """Claude says what it has used after each answer, not only at the end."""
    home.env = claude_env
    big = Usage(input=900_000, cached=0, output=100)
    model.play([Answer(sh="touch began", usage=big), Answer(sh="touch never; sleep 30", usage=big, times=0)])
    assert Night(home, "claude").run("--budget", "1Mtok", seconds=25) == 4
    assert "budget" in home.status()["reason"]
    assert len(home.rounds_ended()) == 1


def test_a_budget_in_dollars_is_refused_where_nobody_says_what_it_costs(codex: Night) -> None:
    assert codex.run("--budget", "5usd") == 2
    assert not codex.home.has_loop()


# -- death -------------------------------------------------------------------------------------------------------------


def test_a_worker_killed_in_the_middle_of_a_command_goes_on_in_the_same_conversation(
    night: Night, model: ModelServer
) -> None:
    model.play([Answer(sh="touch began; sleep 60"), *steps("date > 1.txt")])
    running = night.start("--session", "resume", *PROMISE)
    wait_for(lambda: (night.home.repo / "began").exists(), seconds=40)
    os.kill(worker_of(running), signal.SIGKILL)
    assert said(running).code == 1
    wait_for(lambda: not night.home.alive())
    assert night.home.bydawn("resume", "--plain", seconds=60).code == 0
    assert night.home.outcomes() == ["interrupted", "ok"]
    started = [fact["data"]["session"] for fact in night.home.facts("round.started")]
    if night.agent == "claude":  # its id is chosen beforehand, so that even a crash does not lose it
        assert started[0] == started[1] == night.sessions[1]


def test_an_agent_that_outlives_both_of_our_processes_is_named_and_ended_by_stop(
    night: Night, model: ModelServer
) -> None:
    model.play([Answer(sh="touch began; sleep 60")])
    running = night.start(*PROMISE)
    wait_for(lambda: (night.home.repo / "began").exists(), seconds=40)
    kill_both(running.pid)
    wait_for(lambda: night.home.status()["state"] == "crashed")
    left = night.home.status()["left_running"]
    assert any(night.agent in each["command"] for each in left)
    assert "bydawn stop repo" in night.home.bydawn("show").out
    assert night.home.bydawn("stop").code == 0
    assert night.home.status()["left_running"] == []
    assert not night.home.alive()


# -- what it may do ----------------------------------------------------------------------------------------------------

OUTSIDE = "echo in > inside.txt; echo out > ../outside.txt"


def test_in_the_workspace_it_can_work_and_cannot_write_outside(night: Night, model: ModelServer) -> None:
    closed = ["--", "-c", "sandbox_workspace_write.exclude_slash_tmp=true"] if night.agent == "codex" else []
    model.play([Answer(sh=OUTSIDE), Answer(text="On it.")])
    night.run("-n", "1", *closed)
    assert (night.home.repo / "inside.txt").exists()
    assert not (night.home.root / "outside.txt").exists()


ESCAPES = """
import json, os
from pathlib import Path

def works(attempt):
    try:
        return bool(attempt())
    except OSError:
        return False

tried = {
    "outside": works(lambda: Path("%(outside)s/escaped").write_text("x")),
    "state": works(lambda: Path("%(state)s/escaped").write_text("x")),
    "secret": works(lambda: os.environ.get("CANARY_TOKEN")),
    "key": works(lambda: os.environ.get("ANTHROPIC_API_KEY")),
}
Path("tried.json").write_text(json.dumps(tried))
"""


@pytest.mark.usefixtures("bwrap")
def test_what_a_sandboxed_agent_wrote_does_not_escape_through_a_check_that_runs_it(
    home: Home, claude_env: dict[str, str], model: ModelServer
) -> None:
    home.env = claude_env | {"BYDAWN_BOX": "auto", "CANARY_TOKEN": "canary-7f3a9b2c"}
    with tempfile.TemporaryDirectory(prefix="by-", dir="/var/tmp") as outside:
        test = ESCAPES % {"outside": outside, "state": home.states}
        model.play([Answer(sh=f"cat > test_app.py <<'END'\n{test}\nEND"), DONE])
        check = "test ! -e test_app.py || python3 test_app.py"
        assert Night(home, "claude").run("-k", check, *PROMISE) == 0
        assert os.listdir(outside) == []
    assert json.loads((home.repo / "tried.json").read_text()) == dict.fromkeys(
        ("outside", "state", "secret", "key"), False
    )
    assert not (home.states / "escaped").exists()


def test_in_the_workspace_claude_runs_commands_that_it_takes_for_tricks(
    home: Home, claude_env: dict[str, str], model: ModelServer
) -> None:
    """In its sandbox, where they can do no harm; refused they would be a round that did nothing."""
    home.env = claude_env
    model.play([Answer(sh="env A=1 touch trick.txt"), Answer(text="On it.")])
    Night(home, "claude").run("-n", "1")
    assert home.outcomes() == ["ok"]
    assert (home.repo / "trick.txt").exists()


def test_read_only_it_can_edit_nothing_and_that_is_said_at_the_start(night: Night, model: ModelServer) -> None:
    model.play([Answer(sh="echo in > inside.txt"), Answer(text="I could not.")])
    ended = said(night.start("-n", "1", "-s", "read-only"), 90)
    assert "cannot change any file" in ended.out
    assert not (night.home.repo / "inside.txt").exists()


def test_full_access_is_shown_each_time(night: Night, model: ModelServer) -> None:
    model.play([Answer(sh=OUTSIDE), DONE])
    ended = said(night.start("--dangerously-full-access"), 90)
    assert "FULL ACCESS" in ended.err
    assert (night.home.root / "outside.txt").exists()
    assert night.home.facts("run.started")[0]["data"]["sandbox"] == "full"
    assert night.home.status()["sandbox"] == "full"


# -- answers by a schema -------------------------------------------------------------------------------------------


def answered(night: Night, task: str, status: str, **more: object) -> Answer:
    """The model's answer about a task, as each agent gets it: Codex as text, Claude by a tool of its own."""
    said: dict[str, object] = {
        "status": status,
        "summary": f"{task} is {status}",
        "task_id": task,
        "files_changed": [],
        "next_action": "",
    }
    said |= {"verification_expected": [], "needs_resume": False, "blockers": []} | more
    if night.agent == "claude":
        return Answer(calls=(Call("StructuredOutput", said),))
    return Answer(text=json.dumps(said))


def test_tasks_of_a_folder_are_answered_by_a_schema_in_new_and_resumed_conversations(
    night: Night, model: ModelServer
) -> None:
    """C-068, X-02: strict for Codex, its own argument for Claude, in both kinds of turns."""
    tasks = night.home.repo / "tasks"
    tasks.mkdir()
    (tasks / "1-one.md").write_text("# One\n")
    (tasks / "2-two.md").write_text("# Two\n<!-- depends_on: 1-one -->\n")
    plays = [
        *(Answer(sh="touch one"), answered(night, "1-one", "continue")),
        *(Answer(sh="touch more"), answered(night, "1-one", "complete")),
        *(Answer(sh="touch two"), answered(night, "2-two", "complete")),
    ]
    model.play(plays)
    assert night.run("-t", "tasks", "--session", "per-task", "-k", "test -e one") == 0
    assert [ended["claim"]["status"] for ended in night.home.rounds_ended()] == ["in-progress", "done", "done"]
    assert night.home.rounds_ended()[0]["said"] == "1-one is continue"
    one, again, two = night.sessions
    assert one == again != two


def test_a_schema_that_the_provider_refuses_ends_the_loop_at_once_with_its_words(
    codex: Night, model: ModelServer
) -> None:
    """Nothing that a round does could change that."""
    (codex.home.repo / "tasks").mkdir()
    (codex.home.repo / "tasks/1-one.md").write_text("# One\n")
    refused = "Invalid schema for response_format 'codex_output_schema': 'required' is required to be supplied"
    model.play([Answer(fault="bad-request", message=refused, times=0)])
    assert codex.run("-t", "tasks", "-k", "true") == 7
    [ended] = codex.home.rounds_ended()
    assert ended["outcome"] == "config"
    assert refused in ended["detail"]
