"""What all agents that are programs on the PATH share."""

import shutil
import signal

from bydawn.core.outcome import Exit, Outcome


def missing(name: str, package: str) -> tuple[str, str] | None:
    """Cause and hint if it is not installed; `package` is its npm name."""
    if shutil.which(name):
        return None
    return f"{name} is not on the PATH", f"install it: npm install -g {package}"


def killed(number: int | None) -> tuple[Outcome, str] | None:
    """The verdict on a program that was ended by a signal other than ours."""
    return (Outcome.CRASHED, f"killed by signal {number} ({signal.strsignal(number)})") if number else None


def without_result(exit_: Exit, skipped: int = 0, lacking: str = "a result") -> tuple[Outcome, str] | None:
    """The verdict on a program that a signal ended, or that exited with 0 but without a result: not a success."""
    if exit_.signal or exit_.code != 0:
        return killed(exit_.signal)
    passed_by = f"; a line of {skipped} bytes was too long to read" if skipped else ""
    return Outcome.LOST_OUTPUT, f"exited with 0 but without {lacking}{passed_by}"
