"""A process of a loop died: is it started again, and when is that enough?"""

from enum import StrEnum

import msgspec

STALE = 300.0  # seconds without a sign of life after which a process hangs
BACK_OFF = 5.0  # seconds before it is started again
MOST_RESTARTS = 10
_STEADY = 3600.0  # seconds: what ran this long before it died is counted anew


class Death(StrEnum):
    """How a process was lost."""

    EXITED = "exited"  # before the loop had ended
    HUNG = "hung"  # it gave no sign of life, and was killed
    FOUND = "found"  # no one saw it: a power cut, a reboot, or it was killed together with its parent


class Restart(msgspec.Struct, frozen=True, kw_only=True):
    """bydawn started the loop again by itself."""

    number: int  # in a row, from 1
    why: Death
    exit_code: int | None = None  # of the process before it; negative: the signal that killed it

    @property
    def words(self) -> str:
        """`it was killed (signal 9)`"""
        if self.why is Death.HUNG:
            return f"it gave no sign of life for {STALE / 60:.0f} minutes"
        if self.why is Death.FOUND or self.exit_code is None:
            return "it was gone, and no one saw how it ended"
        return f"it was killed (signal {-self.exit_code})" if self.exit_code < 0 else f"it exited with {self.exit_code}"


def next_restart(last: Restart | None, why: Death, exit_code: int | None, lived: float) -> Restart:
    """What comes after a death; `lived` is for how many seconds the process had run."""
    before = last.number if last and lived < _STEADY else 0
    return Restart(number=before + 1, why=why, exit_code=exit_code)


def is_too_many(restart: Restart) -> bool:
    return restart.number > MOST_RESTARTS


def given_up(restart: Restart) -> str:
    """Why a loop is not started again."""
    return f"its process died {restart.number} times in a row; the last time {restart.words}"
