"""What templates can call: what operations say of a loop, in the words of the terminal, and what only pages need."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup, escape

from bydawn.core.chat import TurnState
from bydawn.core.merging import Kind
from bydawn.core.rules import Rule, meaning_of
from bydawn.core.text import duration, headline, plain, shorten, visible
from bydawn.core.values import Usage
from bydawn.core.worklist import Stand
from bydawn.operations import amounts, detail, outputs, pending, reasons, views
from bydawn.operations.amounts import plural
from bydawn.operations.rounds import Tick
from bydawn.store.registry import Standing
from bydawn.system.user_folders import tilde
from bydawn.web import markdown

if TYPE_CHECKING:
    from bydawn.web.page import Section

UNKNOWN = "—"  # never zero
TICKS = {  # each has its own shape
    Tick.CLOSED: "checks passed, task done",
    Tick.PASSED: "checks passed",
    Tick.RED: "a check failed",
    Tick.FAILED: "the agent failed",
    Tick.IDLE: "no change",
    Tick.WORKED: "changed, no check",
    Tick.CUT: "interrupted",
    Tick.RUNNING: "running",
    Tick.WAITED: "waited",
    Tick.SLEPT: "machine asleep",
}
# How a round came out, as a color and an icon.
KINDS = {
    Tick.CLOSED: ("ok", "complete"),
    Tick.PASSED: ("ok", "complete"),
    Tick.RED: ("bad", "failed"),
    Tick.FAILED: ("bad", "crashed"),
    Tick.IDLE: ("still", "open"),
    Tick.WORKED: ("still", "unverified"),
    Tick.CUT: ("still", "paused"),
    Tick.RUNNING: ("run", "running"),
}
BOXES = {
    Stand.DONE: "done",
    Stand.NEXT: "next",
    Stand.OPEN: "open",
    Stand.WAITING: "waiting for another task",
    Stand.ASIDE: "set aside",
    Stand.DOUBTED: "ticked, not confirmed",
    Stand.SKIPPED: "skipped",
    Stand.REACHED: "checkpoint reached",
    Stand.APPROVED: "checkpoint approved",
    Stand.AHEAD: "checkpoint ahead",
}
THEMES = {"": "light", "light": "dark", "dark": ""}  # what the switch makes of each
PYTEST = re.compile(r"E  +\S")  # how pytest marks what went wrong
_LONGEST = 400  # characters of a line of a check
_WORD = re.compile(r"[a-z]+(?=[\s,;:.!?’']|$)")


def href(address: str, *parts: object) -> str:
    """The address of a loop's page.

    >>> href("billing@shop", "rounds", 3)
    '/loops/billing@shop/rounds/3'
    """
    return "/".join(["/loops", *(quote(str(part), safe="@") for part in (address, *parts))])


def sentence(text: str) -> str:
    """What the terminal says in the middle of a line, as a sentence of its own.

    >>> sentence("the checks failed"), sentence("src/a.py is gone"), sentence("it said: “no”")
    ('The checks failed.', 'src/a.py is gone.', 'It said: “no”')
    """
    text = plain(text).strip()
    if _WORD.match(text):  # a plain word, neither a path nor a name with signs in it
        text = text[:1].upper() + text[1:]
    return text if not text or text[-1] in ".!?…”:" else f"{text}."


def coded(text: str) -> Markup:
    """A sentence of ours, with what is in backticks as code.

    >>> str(coded("run `a < b`"))
    'run <code>a &lt; b</code>'
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def elapsed(moment: datetime) -> str:
    """How long ago, without the word."""
    return duration(max(0.0, (datetime.now(UTC) - moment).total_seconds()))


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def timed(text: str, at: datetime | None) -> Markup:
    """A sentence in which a time of day becomes the reader's.

    >>> from datetime import timedelta
    >>> at = datetime.now(UTC) + timedelta(days=9)
    >>> str(timed(f"until {amounts.moment(at)} <b>", at)).startswith("until <time datetime=")
    True
    """
    words = amounts.moment(at) if at else ""
    before, found, after = text.partition(words) if words else (text, "", "")
    if not at or not found:
        return escape(text)
    return Markup('{}<time datetime="{}" data-clock>{}</time>{}').format(before, iso(at), found, after)


def money(usage: Usage | None, *, unpriced: bool = False) -> str:
    """`$4.10`; what is unknown is a dash."""
    if usage is None or usage.cost_usd is None:
        return UNKNOWN
    if unpriced:
        return f"at least {amounts.dollars(usage)}" if usage.cost_usd >= 0.005 else UNKNOWN
    return amounts.dollars(usage)


def percent(done: float, total: float) -> float:
    """A share for a bar, from 0 to 100."""
    return round(min(100.0, max(0.0, 100 * done / total)), 1) if total > 0 else 0.0


def strip_label(ticks: Sequence[str], earlier: int = 0) -> str:
    """A strip as a sentence, for those who do not see it.

    >>> strip_label(["passed", "red", "red"])
    'The last 3 rounds: 1 checks passed, 2 a check failed'
    """
    counts = Counter(str(tick) for tick in ticks)
    rounds = sum(count for tick, count in counts.items() if tick not in (Tick.WAITED, Tick.SLEPT))
    if not rounds:
        return "No rounds yet"
    rows = ", ".join(f"{counts[tick]} {words}" for tick, words in TICKS.items() if counts[tick])
    before = f"; {earlier} earlier" if earlier else ""
    return f"The last {plural(rounds, 'round')}: {rows}{before}"


def telling(excerpt: str, more: int = 0) -> list[str]:
    """The most telling line of what a check printed, and as many of those after it as are wanted."""
    lines = [line.rstrip() for line in plain(excerpt).splitlines() if line.strip()]
    best = headline(plain(excerpt))
    places = [place for place, line in enumerate(lines) if PYTEST.match(line)]
    places = places or [place for place, line in enumerate(lines) if shorten(line.strip(), 120) == best]
    first = places[-1] if places else max(0, len(lines) - 1)
    return [line[:_LONGEST] for line in lines[first : first + 1 + more]]


def last_output(standing: Standing) -> datetime | None:
    """When the agent that works now has last printed something."""
    age = outputs.last_output_age(standing)
    return None if age is None else datetime.now(UTC) - timedelta(seconds=age)


def runs(sections: "Iterable[Section]") -> "Iterator[tuple[bool, list[Section]]]":
    """Sections that follow each other, those in two columns apart from those across the page."""
    for in_columns, those in groupby(sections, key=lambda section: bool(section.column)):
        yield in_columns, list(those)


GLOBALS: dict[str, Any] = {
    "BOXES": BOXES,
    "KINDS": KINDS,
    "Merged": Kind,
    "Rule": Rule,
    "THEMES": THEMES,
    "TurnState": TurnState,
    "TICKS": TICKS,
    "UNKNOWN": UNKNOWN,
    "coded": coded,
    "detail": detail,
    "href": href,
    "html": markdown.html,
    "last_output": last_output,
    "meaning_of": meaning_of,
    "money": money,
    "outputs": outputs,
    "pending": pending,
    "percent": percent,
    "plural": plural,
    "reasons": reasons,
    "runs": runs,
    "strip_label": strip_label,
    "telling": telling,
    "used": amounts.used,
    "views": views,
}
FILTERS: dict[str, Callable[..., Any]] = {
    "ago": amounts.ago,
    "duration": duration,
    "elapsed": elapsed,
    "iso": iso,
    "moment": amounts.moment,
    "plain": plain,
    "visible": visible,
    "sentence": sentence,
    "short": shorten,
    "short_count": amounts.short_count,
    "size": amounts.size,
    "timed": timed,
    "tilde": lambda path: plain(tilde(path)),
}
