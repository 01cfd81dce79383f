"""One turn of an agent: what it is asked for, what it says meanwhile, what its figures mean."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import chain

from bydawn.core import resets
from bydawn.core.loop import Loop, Sandbox
from bydawn.core.outcome import Ending, Exit
from bydawn.core.ports import Agent, Denied, Ended, Event, Finished, Hopeless, Reader, RoundFiles, Spent, Turn
from bydawn.core.progress import Used
from bydawn.core.state import LoopState, Session
from bydawn.core.values import Usage

_LATE = 30.0  # seconds after a reset, at most


def turn_of(loop: Loop, round_: int, session: str | None, new_session: str, *, is_root: bool) -> Turn:
    """What the loop's settings ask of its agent, the same on every call: no session remembers its permissions."""
    if session and session.startswith("-"):
        session = None  # no agent names a conversation like this; as an argument it would be an option
    return Turn(
        round=round_,
        workspace=loop.workspace,
        session=session,
        new_session="" if session else new_session,
        sandbox=loop.sandbox or Sandbox.WORKSPACE,
        model=loop.model,
        profile=loop.profile,
        effort=loop.effort,
        arguments=loop.agent_args,
        commits=loop.agent_commits,
        is_root=is_root,
    )


def used_by(ended: Ended, before: Session | None, seen: Usage | None = None) -> Used:
    """What this turn used, or what was `seen` of it before it was stopped."""
    used = ended.usage or seen
    if used and ended.usage_is_total and before and before.id == ended.session:
        used = used.minus(before.usage)  # the agent has said that part of it before
    return Used(turn=used, session=ended.usage if ended.usage_is_total else None)


def spent_unseen(loop: Loop, state: LoopState, pool: Mapping[str, Agent], files: RoundFiles) -> Used:
    """What a turn had used before its end was lost: its words are kept, and they say so."""
    opened = state.open_round
    agent = pool.get(opened.agent) if opened else None
    lines = files.lines(opened.round, "stdout") if opened else iter(())
    first = next(lines, None)
    if opened is None or agent is None or first is None:
        return Used()
    reader = agent.reader(turn_of(loop, opened.round, opened.session, "", is_root=False))
    listener = Listener(reader, lambda _: None, lambda _: False)
    for line in chain([first], lines):
        listener.on_line(line)
    return used_by(reader.end(Exit(ending=Ending.ASKED), ""), state.session, listener.spent)


def reset_of(ended: Ended, now: datetime, chance: float) -> datetime | None:
    """When a limited agent is free again. A little later than it says: everybody comes back at that very moment."""
    until = resets.clamped(ended.wait_until, now) if ended.wait_until else resets.moment(ended.reset, now)
    return later(until, now, chance) if until else None


def later(until: datetime, now: datetime, chance: float) -> datetime:
    """A moment to come, put off by a little."""
    return until + timedelta(seconds=chance * min(_LATE, 0.1 * max(0.0, (until - now).total_seconds())))


class Listener:
    """Feeds an agent's lines to its reader, and what they mean to everybody else."""

    def __init__(self, reader: Reader, tell: Callable[[Event], None], overspent: Callable[[Usage], bool]) -> None:
        self._reader = reader
        self._tell = tell
        self._overspent = overspent
        self.hopeless = False  # it goes on trying what cannot work, or spends what it has not
        self.denied: list[str] = []
        self.spent: Usage | None = None

    def on_line(self, line: bytes) -> bool:
        """True when the agent has said its last word."""
        finished = False
        for event in self._reader.read(line):
            match event:
                case Finished():
                    finished = True
                case Hopeless():
                    self.hopeless = True
                case Spent():
                    self.spent = event.usage
                    self.hopeless = self.hopeless or self._overspent(event.usage)
                case Denied():
                    self.denied.append(event.text)
                case _:
                    pass
            self._tell(event)
        return finished
