"""Any program as an agent: the prompt on its stdin, or as its last argument, the reply on its stdout, the verdict in
its exit code.

A program that writes JSON lines can be read field by field (`--agent-json`), see `jsonl`.
"""

import os
import shlex
import shutil
from collections import deque
from collections.abc import Iterable

import msgspec

from bydawn.agents.program import killed, not_found
from bydawn.core.agent import Abilities, AgentCommand, Ended, Event, Ladder, Message, Reader, Turn
from bydawn.core.outcome import Exit, Outcome, imposed
from bydawn.core.text import headline, left_out_line, plain

REPLY_LENGTH = 1 << 20  # characters kept from the end of the reply, where the promise is

_BY_CODE: dict[int | None, Outcome] = {
    os.EX_TEMPFAIL: Outcome.TRANSIENT,
    126: Outcome.CONFIG,  # the shell's code for a program that is not executable
    127: Outcome.CONFIG,  # … and for one it cannot find
}


class CommandAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A program and its arguments, started without a shell."""

    argv: tuple[str, ...]
    fields: tuple[str, ...] = ()  # where to find the fields in its JSON lines
    prompt_last: bool = False  # `arg:`, as in `AgentCommand`
    ladder: Ladder = Ladder()
    streams: bool = False

    @property
    def abilities(self) -> Abilities:
        told = {field.partition("=")[0] for field in self.fields}
        return Abilities(options=frozenset({"agent_json"}), resumes="session" in told, tells_cost="cost_usd" in told)

    @property
    def name(self) -> str:
        return f"{self._kind}:{shlex.join(self.argv)}"

    @property
    def _kind(self) -> str:
        return "arg" if self.prompt_last else "cmd"

    def command(self, turn: Turn) -> AgentCommand:
        """A program learns everything from its prompt, except the conversation to continue."""
        env = {"BYDAWN_RESUME_SESSION": turn.session} if turn.session else {}
        return AgentCommand(argv=self.argv, env=env, prompt_last=self.prompt_last)

    def reader(self, turn: Turn | None = None) -> Reader:  # noqa: ARG002
        if not self.fields:
            return CommandReader()
        from bydawn.agents.jsonl import JsonReader

        return JsonReader(self.fields)

    def missing(self, workspace: str) -> tuple[str, str] | None:  # noqa: ARG002 - a person named this very program
        if shutil.which(self.argv[0]):
            return None
        return not_found(self.argv[0], f"install it, or give its full path: {self._kind}:/path/to/program")


class CommandReader:
    """Takes every line as text from the agent and keeps the last ones."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._kept = 0

    def read(self, line: bytes) -> Iterable[Event]:
        """A carriage return overwrites what is before it, so a progress bar leaves only its last state."""
        text = plain(line.rstrip(b"\r").rpartition(b"\r")[2])
        self._keep(text)
        return (Message(text),)

    def skipped(self, size: int) -> None:
        self._keep(left_out_line(size))

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:
        outcome, detail = imposed(exit_) or judged(exit_, stderr_tail)
        return Ended(outcome=outcome, detail=detail, reply=self._reply() if outcome is Outcome.OK else "")

    def _keep(self, text: str) -> None:
        """Keep whole lines: half a line would be misleading."""
        self._lines.append(text)
        self._kept += len(text) + 1
        while self._kept > REPLY_LENGTH and len(self._lines) > 1:
            self._kept -= len(self._lines.popleft()) + 1

    def _reply(self) -> str:
        while self._lines and not self._lines[0].strip():
            self._lines.popleft()
        return "\n".join(self._lines).rstrip()  # with the blanks of its first line, which may make it code


def judged(exit_: Exit, stderr_tail: str) -> tuple[Outcome, str]:
    """The verdict on a program that ended on its own, with its last output as the reason."""
    if verdict := killed(exit_.signal):
        return verdict
    if exit_.code == 0:
        return Outcome.OK, ""
    return _BY_CODE.get(exit_.code, Outcome.FAILED), headline(plain(stderr_tail)) or f"exited with {exit_.code}"
