"""A chat about a loop: each question that a person asked, and what became of it."""

from datetime import datetime
from enum import StrEnum

import msgspec

from bydawn.core.outcome import Outcome
from bydawn.core.values import Usage


class TurnState(StrEnum):
    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Snapshots(msgspec.Struct, frozen=True, kw_only=True):
    """The work tree before and after an answer, both kept in the loop's private git directory."""

    before: str
    after: str


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One question of a chat."""

    id: str
    at: datetime
    question: str
    agent: str
    state: TurnState = TurnState.ASKED
    answer: str = ""
    outcome: Outcome | None = None
    detail: str = ""  # why there is no answer, or what else a person should know
    seconds: float = 0.0
    usage: Usage | None = None
    snapshots: Snapshots | None = None  # if files changed
    steps: int = 0  # what the agent did on the way: files it read, commands it ran
