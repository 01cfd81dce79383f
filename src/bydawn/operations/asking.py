"""Put one question to an agent, outside any round: it may look around in a folder, and nothing is written there."""

import contextlib
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn import agents
from bydawn.assemble import inherited
from bydawn.core.agent import Ended, Event, Listener, turn_of, used_by, why_no_argument
from bydawn.core.layout import PROMPT, STDERR, STDOUT
from bydawn.core.loop import COOKIE, Loop, OnInterrupt, Sandbox, Timeouts
from bydawn.core.outcome import Outcome
from bydawn.core.ports import ChildLimits, Job
from bydawn.core.redact import Secrets, rewritten
from bydawn.core.secret_settings import variables
from bydawn.core.text import plain
from bydawn.core.values import Usage
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
    denied: str = ""  # the first thing that it was not allowed to do
    used: Usage | None = None
    kept: Path | None = None  # a folder with prompt, stdout and stderr, unless it went well or a person ended it


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: whose settings the agent has, and by what its processes are recognized if ours are killed."""

    loop: Loop  # with its secrets
    id: str  # of the question
    cookie: str
    on_start: Callable[[int], None] = lambda _: None  # gets the process id of the agent
    signals: Signals | None = None  # if the caller needs them for longer


def no_loop(agent: str, folder: Path, model: str | None = None, timeouts: Timeouts = Timeouts()) -> Asker:  # noqa: B008
    """For a question that belongs to no loop."""
    id_ = os.urandom(6).hex()
    loop = Loop(
        id="",
        uid=id_,
        workspace=str(folder),
        created_at=datetime.now(UTC),
        prompt="",
        agent=agent,
        model=model,
        timeouts=timeouts,
    )
    return Asker(loop=loop, id=id_, cookie=f"{id_}.asked")


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
    asker: Asker | None = None,
    told: Callable[[Event], None] = lambda _: None,
) -> Answered:
    """Ask an agent (`codex`, `codex:PATH`, …) and wait for its reply; `told` gets what it says and does meanwhile.

    The caller is a worker: whatever the agent starts ends with it. Ctrl-C ends the agent, and the outcome is
    `interrupted`; the terminal stays ours. `schema` is a JSON schema that the reply has to follow.
    """
    refuse_inside_a_round()
    asker = asker or no_loop(agent, folder)
    loop = asker.loop
    found = agents.find(checked_agent(agent, folder, sandbox, env=loop.agent_env), fields=loop.agent_json)
    if schema and not found.abilities.answers:
        prompt += _IN_WORDS + schema
    place = LoopFolder(root.asked / asker.id)
    make_private(place.path)
    files = Rounds(place, secrets)
    turn = msgspec.structs.replace(
        turn_of(loop, 0, None, "", is_root=os.getuid() == 0),
        workspace=str(folder),
        sandbox=sandbox,
        schema=schema,
        schema_file=files.write(1, _SCHEMA, schema) if schema else "",
    )
    command, reader = found.command(turn), found.reader(turn)
    listener = Listener(reader, told, lambda _: False)
    kernel.become_subreaper()
    with (
        agents.temporary_folder({found.name: found}) as agent_env,
        _signals(asker) as signals,
        contextlib.chdir(folder),
    ):
        job = Job(
            argv=tuple(map(secrets.reveal, command.argv)),
            path=programs.path_outside(folder) if agents.is_cli(found.name) else "",
            env={**agent_env, **command.env, **variables(loop.agent_env), COOKIE: asker.cookie},
            stdin=files.write(1, PROMPT, prompt),
            stdout=str(place.round_file(1, STDOUT)),
            stderr=str(place.round_file(1, STDERR)),
            limits=ChildLimits.of(loop.timeouts, streams=found.streams),
            ladder=found.ladder,
        )
        if command.prompt_last and not why_no_argument(prompt, has_secret=secrets.hide(prompt) != prompt):
            job = msgspec.structs.replace(job, argv=(*job.argv, prompt), stdin=os.devnull)
        exit_ = ChildProcesses([signals.fd, tether.fd], inherited(), on_start=asker.on_start).run(
            job, listener.on_line, reader.skipped, lambda: bool(signals.take()) or tether.cut() or listener.hopeless
        )
    files.mask(1, PROMPT, STDOUT, STDERR)
    ended = rewritten(reader.end(exit_, files.tail(1, STDERR, _STDERR)), lambda text: secrets.hide(plain(text)))
    over = ended.outcome in (Outcome.OK, Outcome.DENIED, Outcome.INTERRUPTED)
    if over:
        shutil.rmtree(place.path, ignore_errors=True)
    return Answered(
        ended=ended,
        seconds=exit_.seconds,
        denied=next(iter(listener.denied), ""),
        used=used_by(ended, None, listener.spent).turn,
        kept=None if over else place.round(1),
    )


def _signals(asker: Asker) -> contextlib.AbstractContextManager[Signals]:
    if asker.signals:
        return contextlib.nullcontext(asker.signals)
    return contextlib.closing(Signals("", OnInterrupt.STOP))
