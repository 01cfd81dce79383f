"""Outside text, made safe to show, store and put into a prompt."""

import re
from collections.abc import Iterable

# CSI and OSC sequences, other escapes, control characters except tab and newline, and marks that reorder text.
_ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_TELLING = r"(?i)error|assert|fail|expected|exception|panic|denied|not found"

LEFT_OUT_LINE = r"\[a line of \d+ bytes was left out here\]"  # recognizes what `left_out_line` writes
PLACEHOLDER = "…"  # stands for a person's own words in a suggested command; pasted unchanged, it does nothing


def plain(text: str | bytes) -> str:
    """Without escapes, control characters and direction marks; bytes that are not text become `�`."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    if is_plain(text):
        return text  # almost every text; the pattern below costs ten times as much
    return re.sub(_ESCAPES, "", text.replace("\r\n", "\n").replace("\r", "\n"))


def is_plain(text: str) -> bool:
    """Is there nothing in it that `plain` would take out? If in doubt, no."""
    return text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()


def left_out_line(size: int) -> str:
    """Our remark in place of a line that is too long to keep."""
    return f"[a line of {size} bytes was left out here]"


def visible(text: str) -> str:
    """Spell out everything invisible: people must see exactly what they agree to."""
    return "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)


def last_part(text: str, size: int) -> str:
    """The end of a text, from the start of a line if possible."""
    if len(text) <= size:
        return text
    part = text[-size:]
    _, newline, whole = part.partition("\n")
    return "…\n" + (whole if newline and whole else part)


def headline(text: str) -> str:
    """The most telling line of an output: the last that names a failure, or else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=_*\t")]
    telling = [line for line in lines if re.search(_TELLING, line) and not line.startswith(("FAILED (", "Traceback"))]
    chosen = (telling or lines or [""])[-1]
    return shorten(chosen, 120)


def shorten(text: str, size: int) -> str:
    """The beginning of a text, on one line."""
    return fit(" ".join(text.split()), size)


def fit(line: str, size: int) -> str:
    """A line as it is, or its beginning; never cut without a sign."""
    return line if len(line) <= size else line[: size - 1] + "…"


def same_title(one: str, other: str) -> bool:
    """Do two texts name the same task? An agent may quote it, shorten it or add a word.

    >>> same_title("Add the form", "`Add the form` (round 2)"), same_title("Add the form", "Add")
    (True, False)
    """
    wanted, given = (" ".join(re.findall(r"\w+", text.casefold())) for text in (one, other))
    return bool(wanted) and bool(given) and (given.startswith(wanted) or (len(given) > 12 and wanted.startswith(given)))


def duration(seconds: float) -> str:
    """A duration for people.

    >>> [duration(s) for s in (0.42, 9.2, 62, 3700, 90000)]
    ['0.4 s', '9 s', '1 m 02', '1 h 01', '25 h 00']
    """
    if seconds < 1:
        return f"{max(seconds, 0):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} m {rest:02}"
    return f"{minutes // 60} h {minutes % 60:02}"


def near(word: str, known: Iterable[str], prefix: str = "") -> str:
    """What may have been meant, as a question."""
    from difflib import get_close_matches  # only needed after a mistake

    close = get_close_matches(word.replace("-", "_"), known, n=1)
    return f"did you mean {prefix}{close[0]}? " if close else ""
