"""How an agent's turn ended, and what follows from it, in one table."""

from enum import StrEnum

import msgspec

from bydawn.core.text import duration


class Outcome(StrEnum):
    """The one verdict on an agent's turn."""

    OK = "ok"
    TRANSIENT = "transient"
    LIMITED = "limited"
    CONTEXT_FULL = "context_full"
    SESSION_LOST = "session_lost"
    AUTH = "auth"
    CONFIG = "config"
    DENIED = "denied"
    TURN_LIMIT = "turn_limit"
    INTERRUPTED = "interrupted"
    HUNG = "hung"
    CRASHED = "crashed"
    LOST_OUTPUT = "lost_output"
    FAILED = "failed"


class Policy(msgspec.Struct, frozen=True):
    """What follows from an outcome."""

    counts: bool = True  # against the round limit
    failure: bool = False  # against the agent-failures breaker
    checks: bool = True  # is it worth running the checks?
    stops: bool = False  # at once: trying again would only waste the night
    stops_idle: bool = False  # the same, if the round made no progress
    backs_off: bool = False

    @property
    def is_trouble(self) -> bool:
        """Did the agent not do its work, whether that counts or not?"""
        return self.failure or self.stops or self.backs_off


_FAILURE = Policy(failure=True, backs_off=True)
_STOPS = Policy(counts=False, checks=False, stops=True)

POLICY: dict[Outcome, Policy] = {
    Outcome.OK: Policy(),
    # A network blip says nothing about the goal, so it counts as a failure of neither agent nor task.
    Outcome.TRANSIENT: Policy(counts=False, checks=False, backs_off=True),
    Outcome.LIMITED: Policy(counts=False, checks=False, backs_off=True),
    Outcome.CONTEXT_FULL: Policy(),
    Outcome.SESSION_LOST: Policy(counts=False, checks=False, backs_off=True),
    Outcome.AUTH: _STOPS,
    Outcome.CONFIG: _STOPS,
    Outcome.DENIED: Policy(stops_idle=True),
    Outcome.TURN_LIMIT: Policy(),
    Outcome.INTERRUPTED: Policy(counts=False, checks=False),
    Outcome.HUNG: _FAILURE,
    Outcome.CRASHED: _FAILURE,
    Outcome.LOST_OUTPUT: _FAILURE,
    Outcome.FAILED: _FAILURE,
}


class Ending(StrEnum):
    """Why a child process is no longer running."""

    EXIT = "exit"
    TOTAL = "total"
    SILENCE = "silence"
    FIRST_BYTE = "first-byte"
    LINGER = "linger"
    VOLUME = "volume"
    DISK = "disk"
    ASKED = "asked"
    NOT_STARTED = "not-started"
    NO_RESOURCES = "no-resources"


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a child process, as its owner saw it."""

    ending: Ending = Ending.EXIT
    code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    output_bytes: int = 0
    leftovers: tuple[str, ...] = ()
    detail: str = ""

    @property
    def went_well(self) -> bool:
        return self.ending is Ending.EXIT and self.code == 0


_BY_ENDING: dict[Ending, tuple[Outcome, str]] = {
    Ending.TOTAL: (Outcome.HUNG, "reached the round's time limit"),
    Ending.SILENCE: (Outcome.HUNG, "printed nothing for too long"),
    Ending.FIRST_BYTE: (Outcome.HUNG, "printed nothing at all"),
    Ending.VOLUME: (Outcome.FAILED, "wrote more than the output limit"),
    Ending.DISK: (Outcome.INTERRUPTED, "stopped because the disk is nearly full"),
    Ending.ASKED: (Outcome.INTERRUPTED, "stopped on request"),
    Ending.NOT_STARTED: (Outcome.CONFIG, ""),
    Ending.NO_RESOURCES: (Outcome.TRANSIENT, ""),
}


def imposed(exit_: Exit) -> tuple[Outcome, str] | None:
    """The outcome when we stopped the child ourselves, or it could not be started."""
    outcome, text = _BY_ENDING.get(exit_.ending, (None, ""))
    return (outcome, text or exit_.detail) if outcome else None


def believed(claimed: Outcome, exit_: Exit) -> Outcome:
    """An interruption is free, so only ours is accepted; otherwise an agent could claim free rounds."""
    ours = exit_.ending in (Ending.ASKED, Ending.DISK)
    return Outcome.FAILED if claimed is Outcome.INTERRUPTED and not ours else claimed


def in_words(exit_: Exit, timeout: float) -> str:
    """How a command ended, in our words; `timeout` is the time it had."""
    match exit_.ending:
        case Ending.EXIT:
            return f"exit {exit_.code}" if exit_.signal is None else f"ended by signal {exit_.signal}"
        case Ending.TOTAL:
            return f"timed out after {duration(timeout)}"
        case Ending.ASKED:
            return "stopped on request"
        case Ending.NOT_STARTED | Ending.NO_RESOURCES:
            return f"could not be started: {exit_.detail}"
        case _:
            return f"stopped ({exit_.ending})"
