"""Hand over to the command `strict-agent-loop`, which takes the place of the script. Python 3.8 or later."""

from __future__ import annotations

import os
import sys

NAME = "strict-agent-loop"
INSTALLED = "command.path"  # a file beside this one that `install-skill` writes: where the command is


def hand_over(subcommand: str) -> None:
    """Become `strict-agent-loop SUBCOMMAND …`: output, exit code and signals are its own."""
    for command in filter(os.path.isabs, _places()):
        try:
            os.execv(command, [command, subcommand, *sys.argv[1:]])
        except OSError:
            continue  # it is not there, or the interpreter that it names is gone
    hint = "`pip install bydawn`, or put the folder with that command on the PATH"
    sys.stderr.write(f"error: the command {NAME} was not found; it is part of bydawn\n hint: {hint}\n")
    sys.exit(127)  # as a shell says it: 1 and 2 are answers of check_stop.py


def _places() -> list[str]:
    """Beside the interpreter that runs this, then where it was when the skill was installed, then on the PATH."""
    installed = ""
    try:
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), INSTALLED), encoding="utf-8") as file:
            installed = file.readline().rstrip("\n")
    except (OSError, ValueError):
        pass  # a copy of the folder that was not installed
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    beside, *others = (os.path.join(folder, NAME) for folder in (os.path.dirname(sys.executable or ""), *path))
    return [beside, installed, *others]
