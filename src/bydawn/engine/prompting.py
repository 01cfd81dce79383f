"""Compose the prompt of a round from what the last rounds left and what the workspace has."""

import os
from contextlib import suppress

import msgspec

from bydawn.core import prompt
from bydawn.core.agent import Agent, Turn
from bydawn.core.errors import UserError
from bydawn.core.facts import Obstructed
from bydawn.core.layout import REPLY
from bydawn.engine.effects import Effects

_REPLY = 20_000  # bytes of the last reply that the next prompt may quote


class Prompting:
    """The prompts of one run of one loop."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._loop = effects.loop
        self._world = effects.world

    def compose(self, turn: Turn, agent: Agent, task_text: str) -> str | None:
        """The prompt; None, with the reason recorded, if it is longer than the agent accepts."""
        state = self._effects.state
        # Only a person's own text is filled in; a task or a check's output that names a variable gets nothing.
        asked = msgspec.structs.replace(self._loop, prompt=self._world.reveal(self._loop.prompt))
        last = state.last.round if state.last else 0
        text = prompt.compose(
            asked,
            state,
            turn.round,
            os.urandom(8).hex(),
            resumed=turn.session is not None,
            task_text=task_text,
            reply=self._world.files.tail(last, REPLY, _REPLY) if last else "",
            documents=self._documents() if self._loop.template else {},
            template=self._loop.template,
            length=agent.abilities.prompt_length,
        )
        return None if self._is_too_long(text, agent) else text

    def _documents(self) -> dict[str, str]:
        """The documents a template asks for; one that cannot be read is left out."""
        found = {}
        for path in filter(None, (self._loop.progress, self._loop.opinions)):
            with suppress(UserError):
                found[path] = self._world.workspace.read_text(path) or ""
        return found

    def _is_too_long(self, text: str, agent: Agent) -> bool:
        most = agent.abilities.prompt_length
        if most is None or len(text) <= most:
            return False
        detail = f"the prompt has {len(text)} characters, but {agent.name} accepts at most {most}"
        self._effects.record(Obstructed(kind="prompt", detail=detail))
        return True
