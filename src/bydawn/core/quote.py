"""Outside text on its way into a prompt: cut to size with a remark, and enclosed so that it stays data."""

import re
from collections.abc import Sequence
from enum import Enum

from bydawn.core.text import plain, shorten

_NEARBY = 200  # characters to give up at most so that a line is not torn


class Keep(Enum):
    """Which part of a text matters most if it does not all fit."""

    START = "start"
    END = "end"
    BOTH = "both"


def left_out(count: int, what: str = "characters") -> str:
    """The remark in place of what was cut.

    >>> left_out(12345)
    '[… 12,345 characters left out …]'
    """
    return f"[… {count:,} {what} left out …]"


def cut(text: str, size: int, keep: Keep) -> str:
    """At most this many characters of a text, and a remark in place of the rest."""
    if len(text) <= size:
        return text
    share = {Keep.START: size, Keep.END: 0, Keep.BOTH: size - size // 2}[keep]
    front, back = text[:share], text[len(text) - (size - share) :]
    before, newline, torn = front.rpartition("\n")
    if newline and len(torn) < _NEARBY:
        front = before
    torn, newline, behind = back.partition("\n")
    if newline and len(torn) < _NEARBY:
        back = behind
    remark = left_out(len(text) - len(front) - len(back))
    return "\n".join(part for part in (front, remark, back) if part)


def some(rows: Sequence[str], size: int) -> list[str]:
    """As many rows as fit, and a remark in place of the rest."""
    kept = list[str]()
    for row in rows:
        size -= len(row)
        if size < 0:
            return [*kept, left_out(len(rows) - len(kept), "more")]
        kept.append(row)
    return kept


def shares(lengths: Sequence[int], size: int) -> list[int]:
    """How much of a size each text may use; room that short ones leave goes to the long ones.

    >>> shares([10, 900, 500], 1000)
    [10, 495, 495]
    """
    given, left = [0] * len(lengths), size
    for place, index in enumerate(sorted(range(len(lengths)), key=lengths.__getitem__)):
        given[index] = min(lengths[index], left // (len(lengths) - place))
        left -= given[index]
    return given


def harmless(text: str, fence: str) -> str:
    """Data that can neither end its own fence nor open another."""
    # Simply removing a mark could create a new one from the text around it.
    return re.sub(f"<<{re.escape(fence)}|{re.escape(fence)}>>", "…", plain(text)).strip("\n").rstrip()


def fenced(text: str, fence: str) -> str:
    """Harmless data between its two marks."""
    return f"<<{fence}\n{text}\n{fence}>>"


def inline(text: str, fence: str, size: int = 200) -> str:
    """Data on one line inside our own words: short, and opening neither code nor a fence."""
    return shorten(harmless(text, fence).replace("`", "'"), size)


def code(text: str, size: int = 300) -> str:
    """A command or a path on one line, unchanged, even if it has backticks.

    >>> code("make test"), code("echo `date`")
    ('`make test`', '`` echo `date` ``')
    """
    line = shorten(plain(text), size)
    if "`" not in line:
        return f"`{line}`"
    ticks = "`" * (1 + max(map(len, re.findall("`+", line))))
    return f"{ticks} {line} {ticks}"
