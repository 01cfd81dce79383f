"""Any program as an agent, and the table in which agents are found."""

import os
import signal
import subprocess
import sys
import tracemalloc
from functools import partial
from pathlib import Path

import pytest

from bydawn.agents import CLIS, cli, find, is_cli
from bydawn.agents.claude import ClaudeAgent
from bydawn.agents.codex import CodexAgent
from bydawn.agents.command import REPLY_LENGTH, CommandAgent
from bydawn.agents.demo.agent import DemoAgent
from bydawn.core.agent import Ended, Message, Turn
from bydawn.core.errors import UserError
from bydawn.core.loop import Promise
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.promise import judge
from bydawn.core.values import Promised
from effort import MANY_PASSES, effort


@pytest.mark.parametrize(
    ("program", "outcome", "detail"),
    [
        ("exit 0", Outcome.OK, ""),
        ("echo warning >&2", Outcome.OK, ""),
        ("exit 75", Outcome.TRANSIENT, "exited with 75"),
        ("echo server is busy >&2; exit 75", Outcome.TRANSIENT, "server is busy"),
        ("no-such-program-anywhere 2>/dev/null", Outcome.CONFIG, "exited with 127"),
        ("exec /etc/passwd 2>/dev/null", Outcome.CONFIG, "exited with 126"),
        ("exit 1", Outcome.FAILED, "exited with 1"),
        ("printf 'first\\n\\033[31mthe reason\\033[0m\\n  \\n' >&2; exit 2", Outcome.FAILED, "the reason"),
        ("kill -SEGV $$", Outcome.CRASHED, "killed by signal 11 (Segmentation fault)"),
        # What a shell says of a child that was killed is no crash of the shell.
        ("sh -c 'kill -KILL $$' 2>/dev/null; exit $?", Outcome.FAILED, "exited with 137"),
    ],
)
def test_the_exit_code_decides(tmp_path: Path, program: str, outcome: Outcome, detail: str) -> None:
    ended = run(tmp_path, program)
    assert (ended.outcome, ended.detail) == (outcome, detail)


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (Ending.ASKED, Outcome.INTERRUPTED),
        (Ending.TOTAL, Outcome.HUNG),
        (Ending.VOLUME, Outcome.FAILED),
        (Ending.NOT_STARTED, Outcome.CONFIG),
        (Ending.NO_RESOURCES, Outcome.TRANSIENT),
    ],
)
@pytest.mark.parametrize(("code", "number"), [(None, signal.SIGTERM), (0, None), (1, None)])
def test_a_program_that_we_stopped_is_judged_by_why(
    ending: Ending, outcome: Outcome, code: int | None, number: int | None
) -> None:
    exit_ = Exit(ending=ending, code=code, signal=number)
    assert an_agent("true").reader().end(exit_, "").outcome is outcome


def test_the_prompt_goes_in_and_the_reply_comes_out(tmp_path: Path) -> None:
    assert run(tmp_path, "echo you said:; cat", prompt="Grüße\n").reply == "you said:\nGrüße"


def test_a_failed_program_has_no_reply_in_which_a_promise_could_be_found(tmp_path: Path) -> None:
    assert run(tmp_path, "echo '<promise>TASK_COMPLETE</promise>'; exit 1").reply == ""


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"plain", "plain"),
        (b"", ""),
        (b"a\tb", "a\tb"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07after \x1b]52;c;aGk=\x1b\\all", "after all"),
        (b"10 %\r50 %\r100 %\r", "100 %"),
        (b"\xff\xfe caf\xc3\xa9 \xc3", "\ufffd\ufffd café \ufffd"),
    ],
)
def test_a_line_is_shown_as_a_terminal_would_leave_it(line: bytes, text: str) -> None:
    reader = an_agent("true").reader()
    assert list(reader.read(line)) == [Message(text)]
    assert reader.end(Exit(code=0), "").reply == text.strip()


def test_only_the_end_of_a_long_reply_is_kept_and_memory_stays_flat() -> None:
    reader = an_agent("true").reader()
    line = b"x" * 1000
    tracemalloc.start()
    for _ in range(5_000):
        reader.read(line)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reader.read("the end é".encode())
    reply = reader.end(Exit(code=0), "").reply
    assert reply.endswith("x\nthe end é")
    assert REPLY_LENGTH - 2000 < len(reply) <= REPLY_LENGTH
    assert peak < 6 * REPLY_LENGTH


def test_a_line_too_long_to_keep_is_mentioned_in_the_reply() -> None:
    reader = an_agent("true").reader()
    reader.skipped(9_000_000)
    reader.read(b"done")
    assert reader.end(Exit(code=0), "").reply == "[a line of 9000000 bytes was left out here]\ndone"


def test_a_reply_keeps_the_blanks_that_may_make_its_first_line_code() -> None:
    reader = an_agent("true").reader()
    for line in (b"", b"  ", b"    <promise>TASK_COMPLETE</promise>", b"", b" "):
        reader.read(line)
    reply = reader.end(Exit(code=0), "").reply
    assert reply == "    <promise>TASK_COMPLETE</promise>"
    assert judge(reply, Promise(), lambda *_: False) is Promised.MENTIONED


def test_hostile_output_does_not_slow_the_reader_down() -> None:
    reader = an_agent("true").reader()
    for start in (b"\x1b[", b"\x1b]", b"\x1b[0", b"\x1b(", b"\x1bP\x1b"):
        assert effort(partial(reader.read, start * 200_000)) < MANY_PASSES
        assert effort(partial(reader.read, start + b"0" * 1_000_000)) < MANY_PASSES


def test_a_program_that_is_there_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "agent.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert an_agent("sh").missing("/ws") is None
    assert an_agent("./agent.sh").missing("/ws") is None
    assert an_agent(str(program)).missing("/ws") is None


def test_a_missing_program_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.sh").write_text("#!/bin/sh\n")
    complaints = {name: an_agent(name).missing("/ws") for name in ("no-such-agent", "./none.sh", "./agent.sh")}
    assert complaints == {
        "no-such-agent": (
            "no program 'no-such-agent' on the PATH",
            "install it, or give its full path: cmd:/path/to/program",
        ),
        "./none.sh": (
            "no program './none.sh' here",
            "install it, or give its full path: cmd:/path/to/program",
        ),
        "./agent.sh": ("./agent.sh cannot be executed", "make it executable: chmod +x ./agent.sh"),
    }


# The table


def test_agents_are_found_by_what_a_person_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find("demo") == DemoAgent()
    assert find("demo:night.json") == DemoAgent(script=str(tmp_path / "night.json"))
    assert find("demo:/a/night.json") == DemoAgent(script="/a/night.json")
    assert find("cmd:llm -m 'big one' --file=a:b") == CommandAgent(argv=("llm", "-m", "big one", "--file=a:b"))
    assert find("arg:llm -p") == CommandAgent(argv=("llm", "-p"), prompt_last=True)
    assert find("codex:bin/my codex") == CodexAgent(program=str(tmp_path / "bin/my codex"))
    assert find("claude:claude-beta") == ClaudeAgent(program="claude-beta")
    assert find("codex:~/codex", Path("/elsewhere")) == CodexAgent(program=str(Path("~/codex").expanduser()))


@pytest.mark.parametrize(
    "spec", ["demo", "demo:a b.json", "cmd:llm -m 'big one'", "arg:llm 'a b'", "codex", "codex:./a b", "gemini:g2"]
)
def test_the_name_of_an_agent_finds_it_again_from_any_folder(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = find(spec)
    monkeypatch.chdir("/")
    assert find(agent.name) == agent


@pytest.mark.parametrize(
    ("spec", "what", "hint"),
    [
        ("copilot", "unknown agent 'copilot'", "choose from"),
        ("", "no agent was chosen", "choose one"),
        ("dmeo", "unknown agent 'dmeo'", "did you mean `demo`? choose from"),
        ("cmnd:llm", "unknown agent 'cmnd:llm'", "did you mean `cmd`? choose from"),
        ("./agent.sh", "unknown agent './agent.sh'", "-a cmd:./agent.sh"),
        ("bin/agent -x", "unknown agent 'bin/agent -x'", "-a 'cmd:bin/agent -x'"),
        ("llm --fast", "unknown agent 'llm --fast'", "choose from"),
        ("demo:", "`demo:` needs a script", "demo:SCRIPT.json"),
        ("cmd", "`cmd:` needs a program", "cmd:PROGRAM"),
        ("cmd:", "`cmd:` needs a program", "cmd:PROGRAM"),
        ("cmd: ''", "`cmd:` needs a program", "cmd:PROGRAM"),
        ("arg:", "`arg:` needs a program", "arg:PROGRAM ARGS`; it gets the prompt as its last argument"),
        ("codex:", "`codex:` is not an agent", "codex:PATH"),
        ("claude:--model opus", "`claude:--model opus` is not an agent", "after `--`"),
        ("cmd:llm 'a", "cannot read the command of `cmd:llm 'a`", "quotes"),
    ],
)
def test_a_spec_that_means_nothing_is_refused_with_a_way_out(spec: str, what: str, hint: str) -> None:
    with pytest.raises(UserError) as refusal:
        find(spec)
    assert refusal.value.what == what
    assert hint in refusal.value.hint


@pytest.mark.parametrize("name", CLIS)
def test_a_known_agent_is_started_from_the_place_that_a_person_names(name: str) -> None:
    """codex.binary: every CLI takes one, is called in the same way, and is still that agent."""
    usual, own = find(name), find(f"{name}:/opt/my agent/{name}")
    turn = Turn(round=1, workspace="/ws", new_session="s")
    assert own.command(turn).argv == (f"/opt/my agent/{name}", *usual.command(turn).argv[1:])
    assert (own.name, is_cli(own.name), cli(own.name).name) == (f"{name}:/opt/my agent/{name}", True, name)
    assert cli(own.name).login == cli(name).login.replace(name, f"'/opt/my agent/{name}'", 1)


def test_a_named_program_of_a_known_agent_may_be_in_the_workspace_and_must_be_there(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    agent = CodexAgent(program=str(program))
    hint = "give a path: -a codex:/path/to/codex; its own flags go after `--`"
    assert agent.missing(str(tmp_path)) == (f"no program '{program}' here", hint)
    assert CodexAgent(program="gpt-5").missing(str(tmp_path)) == ("no program 'gpt-5' on the PATH", hint)
    program.write_text("#!/bin/sh\n")
    assert agent.missing(str(tmp_path)) == (f"{program} cannot be executed", f"make it executable: chmod +x {program}")
    program.chmod(0o755)
    assert agent.missing(str(tmp_path)) is None


def test_finding_one_agent_does_not_load_the_others() -> None:
    program = "import sys; from bydawn.agents import find; find('demo'); print('bydawn.agents.command' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=with_package())
    assert done.stdout == "False\n", done.stderr


# How it is done


def an_agent(*argv: str) -> CommandAgent:
    return CommandAgent(argv=argv)


def run(folder: Path, program: str, prompt: str = "") -> Ended:
    """Run a shell program as an agent, with files for its streams."""
    agent = an_agent("sh", "-c", program)
    command = agent.command(Turn(round=1, workspace=str(folder)))
    (folder / "prompt").write_text(prompt)
    with (
        (folder / "prompt").open() as stdin,
        (folder / "stdout").open("wb") as stdout,
        (folder / "stderr").open("wb") as stderr,
    ):
        code = subprocess.call(command.argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=folder)
    reader = agent.reader()
    for line in (folder / "stdout").read_bytes().split(b"\n"):
        reader.read(line)
    exit_ = Exit(code=code) if code >= 0 else Exit(signal=-code)
    return reader.end(exit_, (folder / "stderr").read_text())


def with_package() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
