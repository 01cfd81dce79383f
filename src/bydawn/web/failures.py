"""Bugs: told in words to the person, with their details in the server's log."""

import os
import sys
import traceback

from bydawn.core.errors import OwnFailure, UserError


def own_failure() -> OwnFailure:
    """The bug that is being handled: its details go to the server's log, without secrets."""
    from bydawn.operations.settings import secrets

    number = os.urandom(2).hex()
    text = f"internal error {number}:\n{traceback.format_exc()}"
    try:
        text = secrets().hide(text)
    except (UserError, OSError):
        text = f"internal error {number}; the settings that name secrets cannot be read, so no more is said here"
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the server's log
    return OwnFailure(
        f"internal error {number}",
        cause="the loops are not touched; details are in the server's log",
        hint="please report it",
    )
