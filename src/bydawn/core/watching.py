"""A process of a loop died: is it started again, and when is that enough?"""

from bydawn.core.values import MOST_RESTARTS, Death, Restart

BACK_OFF = 5.0  # seconds before it is started again
_STEADY = 3600.0  # seconds: what ran this long before it died starts a new count


def next_restart(last: Restart | None, why: Death, exit_code: int | None, lived: float) -> Restart:
    """What comes after a death; `lived` is for how many seconds the process had run."""
    before = last.number if last and lived < _STEADY else 0
    return Restart(number=before + 1, why=why, exit_code=exit_code)


def is_too_many(restart: Restart) -> bool:
    return restart.number > MOST_RESTARTS
