"""The `bydawn` command: a table of commands that are loaded only when they are called."""

import sys

from bydawn import __version__


def main() -> int:
    """The installed command. Answers that need nothing are given before anything is imported."""
    if sys.argv[1:] in (["--version"], ["version"]):
        print(f"bydawn {__version__}")
        return 0
    from bydawn.cli.shell import run

    return run(sys.argv[1:])
