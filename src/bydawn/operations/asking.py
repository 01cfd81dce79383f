"""Put one question to an agent, outside any loop: it may look around in a folder, and nothing is written there."""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from bydawn import agents
from bydawn.assemble import inherited
from bydawn.core.agent import Ended, Event, Listener, Turn
from bydawn.core.errors import UserError
from bydawn.core.layout import PROMPT, STDERR, STDOUT
from bydawn.core.loop import COOKIE, OnInterrupt, Sandbox, Timeouts
from bydawn.core.outcome import Outcome
from bydawn.core.ports import ChildLimits, Job
from bydawn.core.redact import Secrets, rewritten
from bydawn.core.text import plain
from bydawn.operations.checked_loop import checked_agent
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.process.channel import Signals
from bydawn.process.child import ChildProcesses
from bydawn.process.guardian import Tether
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.rounds import Rounds
from bydawn.system import kernel, programs
from bydawn.system.writing import make_private

_SCHEMA = "schema.json"
_STDERR = 4000  # bytes from the end of its stderr for its reader
_IN_WORDS = "\n\nReply with one JSON object that is valid against this JSON schema, and with nothing else:\n\n"


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a question."""

    ended: Ended  # with the whole reply, without secrets
    seconds: float
    kept: Path | None = None  # a folder with prompt, stdout and stderr, unless it went well or a person ended it


def ask(
    agent: str,
    prompt: str,
    folder: Path,
    tether: Tether,
    *,
    root: StateFolder,
    secrets: Secrets,
    schema: str = "",
    sandbox: Sandbox = Sandbox.READ_ONLY,
    model: str | None = None,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - frozen
    told: Callable[[Event], None] = lambda _: None,
) -> Answered:
    """Ask an agent (`codex`, `codex:PATH`, …) and wait for its reply; `told` gets what it says and does meanwhile.

    The caller is a worker: whatever the agent starts ends with it. Ctrl-C ends the agent, and the outcome is
    `interrupted`; the terminal stays ours. `schema` is a JSON schema that the reply has to follow.
    """
    refuse_inside_a_round()
    found = agents.find(checked_agent(agent, folder, sandbox))
    if schema and not found.abilities.answers:
        prompt += _IN_WORDS + schema
    if found.command(Turn(round=1, workspace=str(folder))).prompt_last:
        raise UserError(f"{found.name} cannot be asked", cause="a question goes to its stdin", hint="use `cmd:`")
    place = LoopFolder(root.asked / os.urandom(6).hex())
    make_private(place.path)
    files = Rounds(place, secrets)
    turn = Turn(
        round=1,
        workspace=str(folder),
        sandbox=sandbox,
        model=model,
        is_root=os.getuid() == 0,
        schema=schema,
        schema_file=files.write(1, _SCHEMA, schema) if schema else "",
    )
    command, reader = found.command(turn), found.reader(turn)
    listener = Listener(reader, told, lambda _: False)
    kernel.become_subreaper()
    with (
        agents.temporary_folder({found.name: found}) as agent_env,
        contextlib.closing(Signals("", OnInterrupt.STOP)) as signals,
        contextlib.chdir(folder),
    ):
        job = Job(
            argv=command.argv,
            path=programs.path_outside(folder) if agents.is_cli(found.name) else "",
            env={**agent_env, **command.env, COOKIE: f"{place.name}.asked"},
            stdin=files.write(1, PROMPT, prompt),
            stdout=str(place.round_file(1, STDOUT)),
            stderr=str(place.round_file(1, STDERR)),
            limits=ChildLimits.of(timeouts, streams=found.streams),
            ladder=found.ladder,
        )
        exit_ = ChildProcesses([signals.fd, tether.fd], inherited()).run(
            job, listener.on_line, reader.skipped, lambda: bool(signals.take()) or tether.cut() or listener.hopeless
        )
    files.mask(1, PROMPT, STDOUT, STDERR)
    ended = rewritten(reader.end(exit_, files.tail(1, STDERR, _STDERR)), lambda text: secrets.hide(plain(text)))
    over = ended.outcome in (Outcome.OK, Outcome.DENIED, Outcome.INTERRUPTED)
    if over:
        shutil.rmtree(place.path, ignore_errors=True)
    return Answered(ended=ended, seconds=exit_.seconds, kept=None if over else place.round(1))
