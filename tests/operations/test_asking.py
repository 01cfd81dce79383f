"""One question to an agent, and a person's own commands after it, outside any loop."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bydawn.core.agent import Event, Message
from bydawn.core.errors import UserError
from bydawn.core.loop import COOKIE, Timeouts
from bydawn.core.outcome import Outcome
from bydawn.core.redact import Secrets
from bydawn.operations.asking import Answered, ask, no_loop
from bydawn.operations.hooking import run_after_init
from bydawn.process.guardian import Tether
from bydawn.store.folder import StateFolder

TOKEN = "canary9f8e7d6c5b4a3928"  # noqa: S105 - planted


class Desk:
    """Where questions are asked."""

    def __init__(self, root: Path) -> None:
        self.state, self.folder = StateFolder(root / "state"), root / "project"
        self.folder.mkdir()
        self.guardian, self.line = socket.socketpair()
        self.tether = Tether(self.line)
        self.events: list[Event] = []

    def ask(self, script: str, prompt: str = "Which?", schema: str = "", seconds: float = 20) -> Answered:
        program = self.folder.parent / "agent.sh"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        agent = f"cmd:{program}"
        return ask(
            agent,
            prompt,
            self.folder,
            self.tether,
            root=self.state,
            secrets=Secrets({"MY_TOKEN": TOKEN}),
            schema=schema,
            asker=no_loop(agent, self.folder, timeouts=Timeouts(round=seconds)),
            told=self.events.append,
        )

    @property
    def left(self) -> list[Path]:
        return [*self.state.asked.iterdir()]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made, before = Desk(tmp_path), signal.getsignal(signal.SIGINT)
    yield made
    made.guardian.close()
    made.line.close()
    assert signal.getsignal(signal.SIGINT) is before, "whoever asks can be interrupted again"


def test_the_reply_comes_back_and_nothing_of_the_question_stays(desk: Desk) -> None:
    told = desk.ask(f'cat; echo; pwd; echo "token {TOKEN}"; echo "cookie ${COOKIE}"')
    assert told.ended.outcome is Outcome.OK
    prompt, where, token, cookie = told.ended.reply.splitlines()
    assert (prompt, where, token) == ("Which?", str(desk.folder), "token [secret]")
    assert cookie.endswith(".asked"), "it may not trust or start anything"
    assert isinstance(desk.events[-1], Message) and desk.events[-1].text == cookie
    assert (told.kept, desk.left, [*desk.folder.iterdir()]) == (None, [], [])
    assert Path.cwd() != desk.folder


def test_an_agent_that_takes_no_schema_reads_it_in_the_prompt(desk: Desk) -> None:
    reply = desk.ask("cat", schema='{"type": "object"}').ended.reply
    assert reply.startswith("Which?") and reply.endswith('{"type": "object"}')


CODEX = """#!/bin/sh
echo "$@" > {root}/flags
while [ $# -gt 0 ]; do [ "$1" = --output-schema ] && cat "$2" > {root}/schema; shift; done
echo '{{"type": "thread.started", "thread_id": "t"}}'
echo '{{"type": "item.completed", "item": {{"id": "1", "type": "agent_message", "text": "{{\\"name\\": 1}}"}}}}'
echo '{{"type": "turn.completed", "usage": {{"input_tokens": 5, "cached_input_tokens": 0, "output_tokens": 1}}}}'
"""


def test_codex_is_asked_read_only_and_by_a_schema(desk: Desk) -> None:
    """C-010: what `init` of codex-loop needs."""
    root = desk.folder.parent
    (root / "codex").write_text(CODEX.format(root=root))
    (root / "codex").chmod(0o755)
    told = ask(
        f"codex:{root}/codex",
        "?",
        desk.folder,
        desk.tether,
        root=desk.state,
        secrets=Secrets({}),
        schema="{}",
        asker=no_loop("codex", desk.folder, "m"),
    )
    assert (told.ended.outcome, told.ended.reply, (root / "schema").read_text()) == (Outcome.OK, '{"name": 1}', "{}")
    flags = (root / "flags").read_text()
    assert f"-s read-only --skip-git-repo-check -C {desk.folder} -m m" in flags and " resume " not in flags
    assert desk.left == []


def test_what_went_wrong_is_kept_without_secrets(desk: Desk) -> None:
    told = desk.ask(f"echo {TOKEN}; echo no account: {TOKEN} >&2; exit 3")
    assert (told.ended.outcome, told.ended.detail) == (Outcome.FAILED, f"no account: {'*' * len(TOKEN)}")
    assert told.kept and sorted(path.name for path in told.kept.iterdir()) == ["prompt.md", "stderr", "stdout"]
    assert not any(TOKEN in path.read_text() for path in told.kept.iterdir())
    assert told.kept.parents[2] == desk.state.asked and told.kept.stat().st_mode & 0o77 == 0


def test_a_question_has_a_time_limit_and_nothing_it_started_goes_on(desk: Desk) -> None:
    told = desk.ask(f"(setsid sleep 300 & echo $! > {desk.folder}/pid); exec sleep 300", seconds=3)
    assert told.ended.outcome is Outcome.HUNG
    with pytest.raises(ProcessLookupError):
        os.kill(int((desk.folder / "pid").read_text()), 0)


def test_an_agent_that_cannot_be_started_is_named(desk: Desk) -> None:
    with pytest.raises(UserError, match="cannot start cmd:/no/such") as refused:
        ask("cmd:/no/such", "?", desk.folder, desk.tether, root=desk.state, secrets=Secrets({}))
    assert refused.value.exit_code == 7
    assert not desk.state.asked.exists(), "nothing was written"


def test_an_agent_that_takes_its_prompt_as_an_argument_gets_the_question_there_unless_a_secret_is_in_it(
    desk: Desk,
) -> None:
    """Other users can read command lines."""
    program = desk.folder.parent / "agent.sh"
    program.write_text('#!/bin/sh\necho "argument: $1"\necho "stdin: $(cat)"\n')
    program.chmod(0o755)
    for question, there in (("Which?", "argument: Which?\nstdin:"), (f"{TOKEN}?", "argument:\nstdin: [secret]?")):
        secrets = Secrets({"MY_TOKEN": TOKEN})
        told = ask(f"arg:{program}", question, desk.folder, desk.tether, root=desk.state, secrets=secrets)
        assert [line.rstrip() for line in told.ended.reply.splitlines()] == there.splitlines()


def test_the_death_of_the_parent_process_ends_it(desk: Desk) -> None:
    desk.guardian.close()
    assert desk.ask("exec sleep 300").ended.outcome is Outcome.INTERRUPTED
    assert desk.left == []


_ASKING = """
import os, sys
from pathlib import Path
from bydawn.core.redact import Secrets
from bydawn.operations.asking import ask
from bydawn.process.guardian import run_guarded
from bydawn.store.folder import StateFolder

def work(tether):
    folder = Path(sys.argv[1])
    told = ask("cmd:sh -c 'trap exit INT TERM; sleep 300 & echo up; wait'", "?", folder, tether,
               root=StateFolder(folder / "state"), secrets=Secrets({}), told=lambda _: print("up", flush=True))
    os.kill(os.getpid(), int(sys.argv[2]))  # the same signal once more, passed on late by the parent
    print(told.ended.outcome, flush=True)
    return 130 if told.ended.outcome == "interrupted" else 1

sys.exit(run_guarded(work)[0])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_agent_and_all_it_started(tmp_path: Path, number: signal.Signals) -> None:
    """To the whole foreground group, as a terminal sends it: the worker gets it twice, once perhaps late."""
    words = [sys.executable, "-c", _ASKING, str(tmp_path), str(int(number))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as asking:
        assert asking.stdout and asking.stdout.readline() == "up\n"
        os.killpg(asking.pid, number)
        assert (asking.stdout.read(), asking.wait(20)) == ("interrupted\n", 130)


# -- after `init` ------------------------------------------------------------------------------------------------------


def test_commands_after_init_run_in_order_with_variables_and_without_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-065: `post_init`"""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-hooks")
    secrets = Secrets({"MY_TOKEN": TOKEN})
    commands = [f"pwd; echo $EVENT; echo {TOKEN}; env | cut -d= -f1", "echo oops >&2; exit 3", "sleep 60", "echo never"]
    first, second, third, last = run_after_init(commands, tmp_path, 4, {"EVENT": "post\ninit"}, secrets)
    assert first.output.splitlines()[:3] == [str(tmp_path), "post init", "[secret]"]
    assert "OPENAI_API_KEY" not in first.output and COOKIE in first.output
    assert (second.command, second.exit_code, second.output) == (commands[1], 3, "oops\n")
    assert (third.exit_code, third.timed_out, last.exit_code) == (None, True, 0)
    assert 4 <= third.seconds < 30


def test_none_runs_after_one_that_failed_if_a_person_wants_that(tmp_path: Path) -> None:
    results = run_after_init(["true", "false", "true"], tmp_path, 20, {}, Secrets({}), block=True)
    assert [each.exit_code for each in results] == [0, 1]
