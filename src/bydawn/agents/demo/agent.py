"""The built-in agent, which needs no account and no network: `player.py`, run as a child like any other agent."""

import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from bydawn.agents import program
from bydawn.core.agent import Abilities, Activity, AgentCommand, Ended, Event, Finished, Ladder, Message, Turn
from bydawn.core.outcome import Exit, Outcome, imposed
from bydawn.core.text import headline, plain
from bydawn.core.values import Usage
from bydawn.system.git import program as git_program

_PLAYER = str(Path(__file__).with_name("player.py"))


class DemoAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Plays a script, or without one the story of `bydawn demo`."""

    script: str | None = None
    ladder: Ladder = Ladder()
    streams: bool = True
    abilities: Abilities = Abilities(resumes=True)

    @property
    def name(self) -> str:
        return f"demo:{self.script}" if self.script else "demo"

    def command(self, turn: Turn) -> AgentCommand:
        """Isolated and without site-packages, the interpreter starts in a few milliseconds."""
        script = (self.script,) if self.script else ()
        session = {"BYDAWN_DEMO_SESSION": turn.session} if turn.session else {}
        return AgentCommand(
            argv=(sys.executable, "-I", "-S", _PLAYER, *script),
            env={"BYDAWN_ROUND": str(turn.round), "BYDAWN_GIT": git_program(Path(turn.workspace)), **session},
        )

    def reader(self, turn: Turn | None = None) -> "DemoReader":  # noqa: ARG002
        return DemoReader()

    def missing(self, workspace: str) -> tuple[str, str] | None:  # noqa: ARG002
        if self.script is None or Path(self.script).is_file():
            return None
        return f"no such script: {self.script}", "`demo:` takes a JSON file; `demo` alone plays the built-in story"


class _Line(msgspec.Struct, frozen=True, tag_field="type"):
    """One line of the player."""


class _Started(_Line, frozen=True, tag="started"):
    session: str | None = None


class _Said(_Line, frozen=True, tag="message"):
    text: str


class _Did(_Line, frozen=True, tag="activity"):
    text: str


class _Result(_Line, frozen=True, tag="result"):
    outcome: Outcome
    text: str = ""
    session: str | None = None
    usage: Usage | None = None
    wait_until: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


_AnyLine = _Started | _Said | _Did | _Result
_LINES: msgspec.json.Decoder[_AnyLine] = msgspec.json.Decoder(_AnyLine)


class DemoReader(program.LineReader[_AnyLine]):
    """Reads the player's lines and skips everything else in the stream."""

    def __init__(self) -> None:
        super().__init__(_LINES)
        self._result: _Result | None = None

    def events(self, line: _AnyLine) -> Iterable[Event]:
        match line:
            case _Said():
                return (Message(line.text),)
            case _Did():
                return (Activity(line.text),)
            case _Started():
                self._session = line.session
                return ()
            case _Result():
                self._result = line
                return (Finished(),)

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:
        """The result is the agent's own last word, so it counts even if we had to stop the process afterwards."""
        if self._result:
            return _ended(self._result, self._session)
        failed = Outcome.FAILED, headline(plain(stderr_tail)) or f"exited with {exit_.code}"
        outcome, detail = imposed(exit_) or program.without_result(exit_, self._skipped) or failed
        return Ended(outcome=outcome, detail=detail, session=self._session)


def _ended(result: _Result, session: str | None) -> Ended:
    """Only an `ok` turn has a reply; otherwise the text says what went wrong."""
    ok = result.outcome is Outcome.OK
    return Ended(
        outcome=result.outcome,
        reply=result.text if ok else "",
        detail="" if ok else result.text,
        session=result.session or session,
        usage=result.usage,
        wait_until=result.wait_until,
    )
