"""Commands that an agent runs at the same time, although a verified iteration does one thing after the other."""

import msgspec

from bydawn.core.agent import Begun, CommandEnded, CommandStarted, Event


class Overlap(msgspec.Struct, frozen=True):
    """A command that was started while another one was running."""

    running: str
    started: str


def overlap(running: tuple[str, ...], event: Event) -> tuple[tuple[str, ...], Overlap | None]:
    """The commands that run after this event, and the overlap that it begins; `running` are those before it.

    Those of an earlier session are over: it may have been cut short.
    """
    match event:
        case Begun():
            return (), None
        case CommandStarted():
            return (*running, event.command), Overlap(running[-1], event.command) if running else None
        case CommandEnded() if event.command in running:
            at = running.index(event.command)
            return (*running[:at], *running[at + 1 :]), None
        case _:
            return running, None
