"""Compose the prompt of a round from what the last rounds left and what the workspace has."""

import os
from collections.abc import Mapping

import msgspec

from bydawn.core import prompt
from bydawn.core.agent import Agent, Message, Notice, Turn, readable, why_no_argument
from bydawn.core.errors import UserError
from bydawn.core.facts import Obstructed
from bydawn.core.layout import REPLY, STDERR, STDOUT
from bydawn.core.loop import Loop
from bydawn.core.ports import Job, RoundFiles, Texts
from bydawn.core.state import LoopState
from bydawn.core.template import OUTPUT_AT_MOST, markers
from bydawn.core.text import plain
from bydawn.engine.effects import Effects

_REPLY = 20_000  # bytes of the last reply that the next prompt may quote
_LITTLE, _MUCH = 4 * OUTPUT_AT_MOST, 4 << 20  # bytes from the end of an output


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where the texts of a prompt come from."""

    loop: Loop
    state: LoopState
    texts: Texts
    files: RoundFiles
    agents: Mapping[str, Agent]


class Prompting:
    """The prompts of one run of one loop."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._noticed = False

    def compose(self, turn: Turn, agent: Agent, task_text: str) -> str | None:
        """The prompt; None, with the reason recorded, if it is longer than the agent accepts."""
        effects, loop = self._effects, self._effects.loop
        # Only a person's own text is filled in; a task or a check's output that names a variable gets nothing.
        asked = msgspec.structs.replace(loop, prompt=effects.reveal(loop.prompt))
        sources = Sources(
            loop=asked, state=self._effects.state, texts=effects.workspace, files=effects.files, agents=effects.agents
        )
        text = composed(sources, turn, agent, task_text, os.urandom(8).hex())
        most = agent.abilities.prompt_length
        if most is None or len(text) <= most:
            return text
        detail = f"the prompt has {len(text)} characters, but {agent.name} accepts at most {most}"
        self._effects.record(Obstructed(kind="prompt", detail=detail))
        return None

    def as_argument(self, job: Job, text: str) -> Job:
        """The job with the prompt as its last argument, not in any fact; if that is impossible, it stays on stdin."""
        asked = self._effects.loop.prompt
        has_secret = self._effects.reveal(asked) != asked
        if not (why := why_no_argument(text, has_secret=has_secret)):
            return msgspec.structs.replace(job, argv=(*job.argv, text), stdin=os.devnull)
        if not self._noticed:
            self._effects.tell(Notice(f"the prompt {why}, so the agent gets it on standard input"))
        self._noticed = True
        return job


def composed(given: Sources, turn: Turn, agent: Agent, task_text: str, fence: str) -> str:
    """The prompt of a turn, with everything that it quotes."""
    loop, state = given.loop, given.state
    last = state.last.ended.round if state.last else 0
    wanted = markers(loop.template or "", sections=True)
    return prompt.compose(
        loop,
        state,
        turn.round,
        fence,
        resumed=turn.session is not None,
        session_id=turn.session,
        task_text=task_text,
        reply=given.files.tail(last, REPLY, _REPLY) if last else "",
        output=previous_output(state, given.files, given.agents)
        if any(name.startswith("OUTPUT") for name in wanted)
        else "",
        documents=_documents(given, wanted),
        template=loop.template,
        length=agent.abilities.prompt_length,
        answers=bool(turn.schema) and agent.abilities.answers,
    )


def _documents(given: Sources, wanted: frozenset[str]) -> dict[str, str]:
    """The documents that a template asks for, each with a remark in its place if it cannot be read."""
    quoted = {"PROGRESS": given.loop.progress, "OPINIONS": given.loop.opinions}
    paths = {quoted.get(marker) or marker.partition("FILE:")[2] for marker in wanted}
    found = {}
    for path in filter(None, paths):
        try:
            found[path] = given.texts.read_text(path, "replace") or ""
        except UserError as error:
            found[path] = f"[… {error.what} …]"
    return found


def previous_output(state: LoopState, files: RoundFiles, agents: Mapping[str, Agent]) -> str:
    """What the last round printed, or what an earlier loop left before our first."""
    last = state.printed
    agent = agents.get(last.agent) if last else None
    return printed(files, last.round, agent) if last and agent else state.output


def printed(files: RoundFiles, round_: int, agent: Agent) -> str:
    """The end of what a round printed, as people read it: what its agent said and did, then its stderr."""
    said = _said(files, round_, agent, _LITTLE)
    if said.startswith(prompt.EARLIER_LEFT_OUT) and len(said) < OUTPUT_AT_MOST:  # most of it may not be for people
        said = _said(files, round_, agent, _MUCH)
    complaints, is_cut = files.last_lines(round_, STDERR, _LITTLE)
    rows = (said, *([prompt.EARLIER_LEFT_OUT] if is_cut else ()), *map(plain, complaints))
    return prompt.last_output("\n".join(filter(None, rows)), OUTPUT_AT_MOST)


def _said(files: RoundFiles, round_: int, agent: Agent, size: int) -> str:
    """What the last bytes of its output say: 1 GB costs no more than a few MB."""
    lines, is_cut = files.last_lines(round_, STDOUT, size)
    reader = agent.reader()
    events = ((event, plain(readable(event))) for line in lines for event in reader.read(line))
    rows = [text for event, text in events if text or isinstance(event, Message)]  # also the blank lines between others
    return "\n".join([*([prompt.EARLIER_LEFT_OUT] if is_cut else ()), *rows]).strip("\n")
