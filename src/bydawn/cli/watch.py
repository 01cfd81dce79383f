"""`status --watch`: the list of loops, drawn again and again until the person leaves."""

import gc
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

from rich.console import Console
from rich.live import Live
from rich.text import Text

from bydawn.cli.keys import single_keys, wants_to_leave
from bydawn.core.errors import UserError
from bydawn.core.values import Act, Advice

T = TypeVar("T")
_EVERY = 2.0  # seconds between two looks
_SHARE = 20  # of the time, one part at most is spent on looking: a thousand loops are looked at less often
_TICK = 0.25  # seconds until a new size of the window is seen


def watch(look: Callable[[], T], lines: Callable[[T, int], list[str]]) -> T:
    """Draw what a look finds, as lines for a window of some height; what the last one found."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
        cause, hint = (
            "the list is redrawn on a screen",
            Advice("run ", Act("status", json=True), " as often as you need it"),
        )
        raise UserError("--watch needs a terminal", cause=cause, hint=hint)
    gc.enable()  # this may take all night
    console = Console(highlight=False, markup=False, emoji=False)  # the colors are in the lines
    began, found = time.monotonic(), look()
    with (
        suppress(KeyboardInterrupt),
        single_keys(),
        Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live,
    ):
        while True:
            now, at, size = time.monotonic(), datetime.now().astimezone(), None
            while time.monotonic() < now + max(_EVERY, _SHARE * (now - began)):
                if size != console.size:
                    size = console.size
                    rows = [*lines(found, size.height - 2), "", f"  Last look {at:%H:%M:%S} · q leaves"]
                    live.update(Text.from_ansi("\n".join(rows), no_wrap=True, overflow="crop"), refresh=True)
                if wants_to_leave(_TICK):
                    return found
            began, found = time.monotonic(), look()
    return found
