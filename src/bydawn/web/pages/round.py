"""One round: what its checks said, what the agent did, and what git saw."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from bydawn.core.errors import NotFound, UserError
from bydawn.core.layout import PROMPT, REPLY, STDERR
from bydawn.core.text import duration, headline, plain
from bydawn.core.values import Verdict
from bydawn.operations import outputs
from bydawn.operations.diffs import Diff, round_diff
from bydawn.operations.recent import Recent
from bydawn.operations.round_steps import Steps, round_steps
from bydawn.operations.rounds import RoundRow, red_checks
from bydawn.operations.steer import secrets_of
from bydawn.store.registry import Standing
from bydawn.web.calls import Call
from bydawn.web.loops import readable
from bydawn.web.page import Page, Section, Tab
from bydawn.web.pages import recent_of
from bydawn.web.pages.frame import loop_page
from bydawn.web.words import KINDS, PYTEST, href, sentence

_AROUND = 60  # rounds in the strip
_AFTER = 20  # of these, so many after the one that is shown
_MOST_TEXT = 100_000  # bytes of a prompt or a reply that are in the page
_MOST_LINES = 400  # of a check's output that are in the page
_COUNTED = 4 << 20  # bytes of an output whose lines are counted
_RULER = re.compile(r"[\s.\-=_*~+#|]*")


class CheckRow(msgspec.Struct, frozen=True, kw_only=True):
    """A check, with what is needed to understand why it failed."""

    number: int
    verdict: Verdict
    ended: str  # `exit 1 · 3.1 s`
    lines: tuple[tuple[str, str], ...] = ()  # of the excerpt: how much each tells, and its text
    everything: tuple[str, ...] = ()  # all that it printed, if that is not too much
    count: int | None = None  # how many lines it printed; None: too many to count, or the file is gone
    raw: str = ""
    same: str = ""  # `the same failure as in rounds 7-10`


class AgentText(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt or a reply."""

    text: str
    size: str  # `4,812 characters`
    is_cut: bool
    raw: str


def round_page(call: Call) -> Page:
    """One round, also while it runs; `since` compares with an earlier round, `file` shows all lines of one file."""
    number, since, file = call.number("number"), call.count("since"), call.query.get("file")
    standing = readable(call.standing)
    address = call.loops.address(standing)
    around = recent_of(standing, _AROUND, number + _AFTER)
    alone = recent_of(standing, 1, number + 1)  # where thousands of other facts follow, it is too far away for the rest
    past = next((row for row in (*around.rounds, *alone.rounds) if row.number == number), None)
    if past is None:
        last = standing.state.round
        cause = f"its last round so far is {last}" if last else "it has had no round yet"
        raise NotFound(f"{standing.loop.id} has no round {number}", cause=cause, hint="choose one from the list")
    opened = standing.state.open_round
    runs = standing.alive and opened is not None and opened.round == number
    # What no longer changes is not read again each time that a part is sent.
    settled = "" if runs else f"ended {past.attempt.ended is not None} checked {past.attempt.checks is not None}"
    reply = cache(lambda: _text(standing, address, past, REPLY))
    facts = {"past": past, "runs": runs}
    sections = (
        Section(id="round", template="round_head.html", data=facts | _head(standing, around, past)),
        Section(
            id="checks",
            template="round_checks.html",
            settled=settled,
            data=facts | {"checks": cache(lambda: _checks(standing, address, around, past))},
        ),
        Section(
            id="steps",
            template="round_steps.html",
            settled=settled,
            data=facts
            | {
                "steps": _steps(standing, number, reply),
                "prompt": cache(lambda: _text(standing, address, past, PROMPT)),
                "reply": reply,
                "removed": outputs.is_removed(standing, number),
                "stderr": _has(standing, number, STDERR),
            },
        ),
        Section(
            id="changes",
            template="round_changes.html",
            settled=settled or "it runs",
            data=facts
            | {
                "diff": _diff(standing, number, since, file),
                "since": since,
                "first": _first_of_task(around, past),
                "whole": lambda path: _whole(address, number, since, path),
            },
        ),
    )
    here = f"round {number}"
    return loop_page(call, standing, Tab.ROUNDS, here, *sections, refreshes=runs, up=href(address, "rounds"))


# -- head --------------------------------------------------------------------------------------------------------------


def _head(standing: Standing, around: Recent, past: RoundRow) -> dict[str, object]:
    attempt, ended, checks = past.attempt, past.attempt.ended, past.attempt.checks
    red = {plain(verdict.told) for verdict in checks.verdicts if not verdict.passed} if checks else set()
    said = {remark.text for remark in red_checks(checks)} if checks else set()
    return {
        "kind": KINDS[past.tick],
        "result": past.result,
        "task": past.task if attempt.started.task else "",
        "detail": past.why,
        "remarks": [past.told(remark) for remark in past.remarks if remark.text not in said | red],
        "denied": ended.denied if ended else (),
        "ticks": around.ticks,
        "earlier": around.earlier,
        "previous": past.number - 1 if past.number > 1 else None,
        "next": past.number + 1 if past.number < standing.state.round else None,
        "several": bool(standing.loop.others),
        "unpriced": standing.state.unpriced,
    }


# -- checks ------------------------------------------------------------------------------------------------------------


def _checks(standing: Standing, address: str, around: Recent, past: RoundRow) -> list[CheckRow]:
    """The failing ones first."""
    verdicts = past.attempt.checks.verdicts if past.attempt.checks else ()
    rows = [_check(standing, address, around, past, place, each) for place, each in enumerate(verdicts, 1)]
    return sorted(rows, key=lambda row: row.verdict.passed)


def _check(standing: Standing, address: str, around: Recent, past: RoundRow, number: int, verdict: Verdict) -> CheckRow:
    seconds = f" · {duration(verdict.seconds)}" if verdict.seconds else ""
    row = CheckRow(number=number, verdict=verdict, ended=f"{plain(verdict.detail)}{seconds}")
    path = standing.folder.round_file(past.number, verdict.output) if verdict.output else None
    if path is None or not path.is_file():
        return msgspec.structs.replace(row, lines=_telling(verdict), same=_same(around, past, verdict))
    everything, count = _printed(standing, path)
    return msgspec.structs.replace(
        row,
        lines=_telling(verdict),
        everything=tuple(everything),
        count=count,
        raw=href(address, "rounds", past.number, "raw", f"check-{number}"),
        same=_same(around, past, verdict),
    )


def _telling(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Which lines of the excerpt say why it failed, and which say nothing."""
    if verdict.passed:
        return ()
    best = headline(verdict.excerpt).removesuffix("…")
    rows = []
    for line in plain(verdict.excerpt).splitlines():
        useful = bool(PYTEST.match(line)) or (bool(best) and " ".join(line.split()).startswith(best))
        rows.append(("useful" if useful else "least" if _RULER.fullmatch(line) else "", line))
    return tuple(rows)


def _printed(standing: Standing, path: Path) -> tuple[list[str], int | None]:
    """All that a check printed, if that fits a page, and how many lines it is."""
    if path.stat().st_size > _COUNTED:
        return [], None
    count = len(path.read_bytes().splitlines())
    lines = outputs.masked_lines(path, count, secrets_of(standing)) if count <= _MOST_LINES else []
    return lines, count


def _same(around: Recent, past: RoundRow, verdict: Verdict) -> str:
    """`the same failure as in rounds 7-10`"""
    if verdict.passed or not verdict.fingerprint:
        return ""
    earlier = [
        row.number
        for row in around.rounds
        if row.number < past.number
        for other in (row.attempt.checks.verdicts if row.attempt.checks else ())
        if (other.check, other.fingerprint) == (verdict.check, verdict.fingerprint)
    ]
    return f"the same failure as in {ranges(earlier)}" if earlier else ""


def ranges(numbers: Sequence[int]) -> str:
    """
    >>> ranges([3]), ranges([3, 7, 8, 9]), ranges([1, 2])
    ('round 3', 'rounds 3, 7-9', 'rounds 1-2')
    """
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
    return f"round{'s' if len(numbers) > 1 else ''} {shown}"


# -- steps -------------------------------------------------------------------------------------------------------------


def _steps(standing: Standing, number: int, reply: Callable[[], AgentText | None]) -> Callable[[], Steps]:
    return cache(lambda: round_steps(standing, number, found.text if (found := reply()) else ""))


def _text(standing: Standing, address: str, past: RoundRow, name: str) -> AgentText | None:
    """The beginning of a prompt, or of a reply; None if there is none."""
    path = standing.folder.round_file(past.number, name)
    with suppress(OSError), path.open("rb") as file:
        data = file.read(_MOST_TEXT + 1)
        if not data.strip():
            return None
        text = secrets_of(standing).hide(data[:_MOST_TEXT].decode(errors="replace"))
        is_cut = len(data) > _MOST_TEXT
        size = f"more than {_MOST_TEXT // 1000} kB" if is_cut else f"{len(text):,} characters"
        raw = href(address, "rounds", past.number, "raw", name.removesuffix(".md"))
        return AgentText(text=plain(text), size=size, is_cut=is_cut, raw=raw)
    return None


def _has(standing: Standing, number: int, name: str) -> bool:
    path = standing.folder.round_file(number, name)
    return path.is_file() and path.stat().st_size > 0


# -- changes -----------------------------------------------------------------------------------------------------------


def _diff(standing: Standing, number: int, since: int | None, file: str | None) -> Callable[[], Diff]:
    """Asked for only by the page itself, not each time that a part of it is sent again."""

    def found() -> Diff:
        try:
            return round_diff(standing, number, since, file)
        except UserError as error:
            return Diff(since=since or number, number=number, why=sentence(error.what))

    return cache(found)


def _first_of_task(around: Recent, past: RoundRow) -> int | None:
    """Where work on its task began, if that was in an earlier round."""
    task, first = past.attempt.started.task_id, None
    for row in reversed([row for row in around.rounds if row.number < past.number]):
        if not task or row.attempt.started.task_id != task:
            break
        first = row.number
    return first


def _whole(address: str, number: int, since: int | None, path: str) -> str:
    if since is None:
        return f"{href(address, 'rounds', number)}?{urlencode({'file': path})}"
    return f"{href(address, 'rounds', number, 'diff')}?{urlencode({'since': since, 'file': path})}"


# -- raw ---------------------------------------------------------------------------------------------------------------


def raw_bytes(standing: Standing, number: int, name: str, most: int) -> bytes:
    """The end of a file of a round; secrets in the files of a running round are masked only here."""
    path, secrets = standing.folder.round_file(number, name), secrets_of(standing)
    try:
        with path.open("rb") as file:
            begin = max(0, file.seek(0, 2) - most)
            before = min(begin, secrets.longest)  # a secret may begin there
            file.seek(begin - before)
            data = bytearray(file.read(before + most))
    except FileNotFoundError:
        gone = outputs.is_removed(standing, number)
        cause = f"it was {outputs.REMOVED}" if gone else "the round has not written it"
        raise NotFound(f"round {number} has no such file", cause=cause, hint="go back to the round") from None
    secrets.mask(data)
    return bytes(data[before:])
