"""Keep the machine from sleeping while a loop runs, with the program that the system has for it."""

import sys
from pathlib import Path

from bydawn.system import programs

_SECONDS = 10.0  # for a try; the program only asks another one
_WORDS: dict[str, tuple[str, ...]] = {
    "systemd-inhibit": ("--what=sleep:idle", "--mode=block", "--who=bydawn", "--why=a loop is running"),
    "caffeinate": ("-i",),
}
PROGRAM = "caffeinate" if sys.platform == "darwin" else "systemd-inhibit"


def command(folder: Path) -> tuple[str, ...]:
    """The words that keep it awake until their standard input ends; none if this system has no such program."""
    found = [programs.find(name, folder) for name in (PROGRAM, "cat")]
    return (found[0], *_WORDS[PROGRAM], found[1]) if found[0] and found[1] else ()


def trouble(folder: Path) -> str:
    """Why the machine cannot be kept awake; empty if it can."""
    import subprocess  # slow to load, and a loop does not ask

    if not (words := command(folder)):
        return f"{PROGRAM} is not installed"
    try:
        said = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, env={}, timeout=_SECONDS, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{PROGRAM}: {error}"
    lines = said.stderr.decode(errors="replace").strip().splitlines()
    return "" if said.returncode == 0 else f"{PROGRAM}: {lines[-1] if lines else f'exit {said.returncode}'}"
