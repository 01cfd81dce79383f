"""What every agent that is a program on the PATH has in common."""

import shutil
import signal

from bydawn.core.outcome import Exit, Outcome


def missing(name: str, package: str) -> tuple[str, str] | None:
    """Cause and hint if it is not installed; `package` is what npm calls it."""
    if shutil.which(name):
        return None
    return f"there is no program {name!r} on the PATH", f"install it: npm install -g {package}"


def killed(number: int | None) -> tuple[Outcome, str] | None:
    """The verdict on a program that a signal ended, and that was not ours."""
    return (Outcome.CRASHED, f"killed by signal {number} ({signal.strsignal(number)})") if number else None


def without_result(exit_: Exit, skipped: int = 0, lacking: str = "a result") -> tuple[Outcome, str] | None:
    """The verdict on one that a signal ended, or that exited well and never said its last word: no success."""
    if exit_.signal or exit_.code != 0:
        return killed(exit_.signal)
    passed_by = f"; {skipped} bytes were too long a line to read" if skipped else ""
    return Outcome.LOST_OUTPUT, f"exited with 0 but without {lacking}{passed_by}"
