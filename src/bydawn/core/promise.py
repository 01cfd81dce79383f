"""Did the agent give its promise, or only mention it?"""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from bydawn.core import doubt
from bydawn.core.loop import Match, Mode, Promise
from bydawn.core.punctuation import has_words, last_sentence, leads_in, plain
from bydawn.core.values import Promised

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Search = Callable[[str, str], int | None]


class TooSlow(Exception):
    """A pattern ran out of time on a reply, so there is no answer; the message is for the person who wrote it."""


_UNSEEN = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u202f\u205f\u2060\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x2010))  # spaces of every width, including zero
)
_SEARCHED = 65_536  # characters at the end of a reply, in which a pattern is searched
# Only edges and blanks, or something before the start of a line or behind its end; not where a group may be empty.
_NEVER = (
    r"(?:.*[\0\ud800-\udfff].*)|(?:(?:[\^$\s]|\\[AZbBsntr])[*+?]?)*|[^|\\\[(]*(?:[^|\\\[(*?}\n]\^|\$[^|\\\[(*?{\n$]).*"
)
_LIST_MARK = r"(?:[-*+•]|\d{1,9}[.)])\s+"
_BEHIND = r"(?!.*\.\.)[^\w:;,?؟()\[\]{}\"'`~<>|/\\=+–—-]*"  # emoji and the end of a sentence
_MARKS = rf"\s*(?:{_LIST_MARK}|#{{1,6}}\s+)*(?:\[[xX]\]\s+)?"

# Parsing is slow, line by line. Far above the last line, only what opens or closes code and HTML can matter.
_NEAR = 50
# HTML whose content is folded, quoted, struck out or hidden; a blank line ends the block, not the element.
_HIDING = "details|blockquote|template|table|code|del|strike|s|q"
_OPENS_OR_CLOSES = rf"(?i)```|~~~|<!--|-->|</?(?:pre|script|style|textarea|{_HIDING})\b"


def judge(reply: str, promise: Promise, search: Search, *, told: bool = False) -> Promised:
    """Judge an agent's final message; `search(pattern, text)` says where the last match of a pattern ends.

    The form decides, so that it works in every language; words of doubt are a second opinion. If an agent was told
    the form and uses another one again, it means that. `TooSlow`, if `search` raises it, is passed on.
    """
    text = reply.replace("\r\n", "\n").replace("\r", "\n").rstrip(_UNSEEN)
    if promise.mode is Mode.PLAIN:  # agents often write it as a tag, which means the same
        tagged = judge(text, replace(promise, mode=Mode.TAG), search, told=told)
        if tagged is Promised.GIVEN:
            return tagged
    token = "" if promise.mode is Mode.REGEX else promise.token.strip(_UNSEEN if promise.mode is Mode.LINE else None)
    if told:
        untold = judge(text, promise, search)
        if untold is Promised.GIVEN or not token:
            return untold
        # The code marks around it are a part of that form.
        text = re.sub(rf"(?<!`)(`{{1,9}}|~{{3,9}})(?:\w*\n)?({re.escape(token)})\n?\1", r"\2", text)
    end = _end(text, token, promise, search) if promise.text.strip() else None
    if end is None:
        return Promised.ABSENT
    is_meant = promise.match is Match.ANYWHERE or _is_meant(text, end, token, promise, told)
    return Promised.GIVEN if is_meant else Promised.MENTIONED


def same_form(one: str, other: str, promise: Promise) -> bool:
    """Do two replies have the promise in the same words? With a pattern, do they end with the same line?"""
    token = "" if promise.mode is Mode.REGEX else promise.token.strip()
    lines = ([line.strip() for line in reply.splitlines() if line.strip() and token in line] for reply in (one, other))
    return len({tuple(found[-1:]) for found in lines}) == 1


def is_possible(promise: Promise) -> bool:
    """Can it be given at all? A reply of nothing but its text must give it; a pattern cannot be checked so fully."""
    if promise.mode is Mode.REGEX:
        return not re.fullmatch(_NEVER, promise.text, re.DOTALL)
    if re.fullmatch(r"[^\W_][\w ]*", promise.text):
        return True  # almost always, and no parser is loaded
    replies = (promise.token, promise.token.strip(_UNSEEN))
    is_line = "\n" not in promise.text.strip() or promise.match is Match.ANYWHERE
    return is_line and any(judge(reply, promise, lambda _pattern, _text: None) is Promised.GIVEN for reply in replies)


def _end(text: str, token: str, promise: Promise, search: Search) -> int | None:
    """Where the promise is named last: if it is mentioned again further down, it was not given above."""
    if promise.mode is Mode.REGEX:
        left_out = max(0, len(text) - _SEARCHED)
        end = search(promise.text, text[left_out:])
        return None if end is None else len(text[: left_out + end].rstrip())
    if not token:
        return None
    # As a whole word: "DONE" is not in "ABANDONED".
    whole = re.compile("" if promise.match is Match.ANYWHERE else rf"(?:\b|(?=\W)){re.escape(token)}(?:\b|(?<=\W))")
    at = text.rfind(token)
    while at >= 0 and not whole.match(text, at):
        at = text.rfind(token, 0, at + len(token) - 1)
    return at + len(token) if at >= 0 else None


def _is_meant(text: str, end: int, token: str, promise: Promise, told: bool) -> bool:
    before, (rest, _, after) = text[: end - len(token)], text[end:].partition("\n")
    place, line = _place((text[:end] + rest).split("\n")), before.rpartition("\n")[2]
    if place is None:
        return False
    words = re.sub(_MARKS, "", line, count=1)
    wrapped = place.wrapped.replace(token, "") if token else place.wrapped
    own = f"{wrapped}\n{words}" if token else _unasked(f"{wrapped}\n{words}", promise.text)
    if doubt.doubted(own, place.lead, is_led=place.is_led or (place.runs_on and bool(after)), told=told):
        return False
    if doubt.taken_back(text[end:], may_go_on=not token):
        return False
    if not token:  # the pattern decides on the form
        return True
    is_in_list = place.items > 1 or (place.items > 0 and re.match(rf"\n*\s*{_LIST_MARK}", after))
    if is_in_list and (not told or line.lstrip()[:1].isdigit()):
        return False
    if promise.mode is Mode.LINE and not told and f"{line}{rest}".strip(_UNSEEN):
        return False
    # Above a summary, only plain words may come before it: anything else could be a part of the text.
    is_alone = not has_words(words) or doubt.is_plain(words) if after else _is_fine(words, told)
    return is_alone and (not place.is_led or _is_fine(place.lead, told)) and bool(re.fullmatch(_BEHIND, plain(rest)))


def _is_fine(words: str, told: bool) -> bool:
    """Are there no words, or did their sentence end, or are they plain English, or just English if it was told?"""
    rest = last_sentence(words)
    return not has_words(rest) or doubt.is_plain(rest, at_least=1 / 3 if told else 1)


class _Place(NamedTuple):
    """Where the last line stands, as a reader sees it."""

    wrapped: str  # the lines above it in its paragraph
    lead: str  # these, or else the nearest block above; for an item, all of its list and what introduces that
    is_led: bool  # does that lead in to it?
    runs_on: bool  # could its last sentence go on below, if its words say so?
    items: int  # of the list that it is in


def _place(lines: list[str]) -> _Place | None:
    """None if the last line is code, a quote, a comment or part of some HTML."""
    lines = [*(line for line in lines[:-_NEAR] if re.search(_OPENS_OR_CLOSES, line)), *lines[-_NEAR:]]
    tokens = _parser().parse("\n".join(lines))
    last = max((index for index, token in enumerate(tokens) if token.nesting == 0), default=-1)
    block, around = tokens[last], {token.type for token in tokens[last + 1 :]}  # only what contains it ends behind it
    begins, ends = block.map or (0, 0)
    # HTML on one line is the promise itself, for people who chose something like `<done/>`.
    is_text = block.type == "inline" or (block.type == "html_block" and begins == len(lines) - 1)
    if ends < len(lines) or not is_text or "blockquote_close" in around or _in_html(tokens[:last]):
        return None
    wrapped, newline, _ = block.content.strip().rpartition("\n")
    starts = [at for at, token in enumerate(tokens) if token.type.endswith("list_open") and not token.level]
    of_list = tokens[starts[-1] : last] if "list_item_close" in around else []
    above, kind = _above(tokens[: last - len(of_list)])
    if of_list and newline and not lines[-1][0].isspace():
        # Markdown attaches an unindented line below a list to the last item; a reader does not.
        of_list, above, kind, wrapped = [], wrapped, "", ""
    items = sum(token.type == "list_item_open" for token in of_list)
    lead = wrapped or "\n".join([above, *(token.content for token in of_list if token.type == "inline")])
    runs_on = kind == "paragraph" and plain(lead)[-1:].isalpha()
    return _Place(wrapped, lead, kind == "heading" or items > 0 or leads_in(lead), runs_on, items)


def _in_html(tokens: "list[Token]") -> bool:
    """Is an element that was opened above still open?"""
    html = "".join(token.content for token in tokens if token.type == "html_block")
    opened, closed = (Counter(re.findall(rf"<{slash}({_HIDING})\b", html.lower())) for slash in ("", "/"))
    return bool(opened - closed)


def _above(tokens: "list[Token]") -> tuple[str, str]:
    """The nearest visible block above, if it is prose, and its kind."""
    for opened, token in zip(tokens[-2::-1], tokens[:0:-1], strict=True):
        if token.type in {"inline", "fence", "code_block"} and plain(token.content):
            # Agents put `---` below any paragraph, so an underline does not make a heading.
            is_heading = opened.type == "heading_open" and opened.markup.startswith("#")
            kind = "heading" if is_heading else "paragraph" if token.level == 1 else ""
            return token.content if token.type == "inline" else "", kind
    return "", ""


def _unasked(text: str, pattern: str) -> str:
    """With "done" for words spelled out in a pattern, which are wanted whatever they mean."""
    asked = set(re.findall(r"[\w']+", re.sub(r"\\[A-Za-z]", " ", pattern).lower()))
    text = text.rstrip(".! \"'`")
    return re.sub(r"[\w']+", lambda word: "done" if word[0].lower() in asked else word[0], text)


@cache
def _parser() -> "MarkdownIt":
    """A parser for Markdown blocks only; link definitions stay, or the last line could disappear."""
    from markdown_it import MarkdownIt  # slow to import, and most commands never need it

    return MarkdownIt("commonmark").disable(["inline", "text_join", "reference"])
