"""Did the agent give its promise, or only mention it?"""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, assert_never

from msgspec.structs import replace

from bydawn.core import doubt
from bydawn.core.loop import Match, Mode, Promise
from bydawn.core.punctuation import ends_sentence, leads_in
from bydawn.core.values import Promised

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FullMatch = Callable[[str, str], bool]


class TooSlow(Exception):
    """A pattern ran out of time on a line, so there is no answer; the message is for the person who wrote it."""


_BEHIND = r"[*_\s]*(?:[.。।۔]|[!！]+)?[*_\s]*"  # what may follow the token on its line
_UNSEEN = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u202f\u205f\u2060\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x2010))  # spaces of every width, including zero
)

# A pattern runs in a child process with a time limit, and only on the last lines, where a reply ends.
_TRIED_LINES = 20
_TRIED_LENGTH = 10_000  # characters; the line is an argument of that child, and promises are far shorter
_WORD = r"[\w']+"
_PLAIN_WORDS = r"[^\W_][\w ]*"
# A pattern that wants a space at the edge of a line, or a line break. With alternatives, it may match without one.
_OUT_OF_REACH = rf"(?s)(?!.*\|)(?:[{_UNSEEN}](?![?*{{]).*|[^\[]*[\n\r](?![?*{{]).*|.*[{_UNSEEN}])"
_NO_ARGUMENT = "[\0\ud800-\udfff]"

# Parsing is slow, line by line. Far above the last line, only what opens or closes code and comments can matter.
_NEAR = 500
_RAW = "pre|script|style|textarea"
_FAR = rf"(?i) {{0,3}}(?:[-*+] +)?(?:```|~~~|<!--|<(?:{_RAW})\b)|.*(?:-->|</(?:{_RAW})>)"
# HTML whose content is folded, quoted, struck out or hidden; a blank line ends the block, not the element.
_CONTAINER = r"(?i)<(/?)(details|blockquote|template|table|code|del|strike|s|q)\b"


def judge(reply: str, promise: Promise, full_match: FullMatch) -> Promised:
    """Judge an agent's final message; `full_match(pattern, text)` is asked in regex mode, at most twice per line.

    The form decides, so that it works in every language; words of doubt are only a second opinion. `TooSlow`, if that
    raises it, is passed on. A line above the end only counts if nothing after it negates, postpones, conditions or
    regrets it.
    """
    lines = reply.replace("\r\n", "\n").replace("\r", "\n").rstrip(_UNSEEN).split("\n")
    if not promise.text.strip() or not lines[-1]:
        return Promised.ABSENT
    if promise.mode is Mode.PLAIN:  # agents often write it as a tag, which means the same
        tagged = judge(reply, replace(promise, mode=Mode.TAG), full_match)
        if tagged is Promised.GIVEN:
            return tagged
    if promise.match is Match.ANYWHERE and promise.mode is not Mode.REGEX:
        return Promised.GIVEN if promise.token.strip() in reply else Promised.ABSENT
    place = _place(lines, promise, full_match)
    if place is None:
        return Promised.MENTIONED if _occurs(promise, reply) else Promised.ABSENT
    return Promised.GIVEN if promise.match is Match.ANYWHERE or _is_meant(lines, place, promise) else Promised.MENTIONED


def is_possible(promise: Promise) -> bool:
    """Can it be given at all? A reply of nothing but its text must give it; a pattern cannot be checked so fully."""
    if promise.mode is Mode.REGEX:
        is_loose = re.compile(promise.text).flags & re.VERBOSE  # then spaces in it mean nothing
        return bool(is_loose) or not re.fullmatch(_OUT_OF_REACH, promise.text)
    if re.fullmatch(_PLAIN_WORDS, promise.text):
        return True  # almost always, and no parser is loaded
    replies = (promise.token, promise.token.strip(_UNSEEN))
    return any(judge(reply, promise, lambda _pattern, _text: False) is Promised.GIVEN for reply in replies)


def _place(lines: list[str], promise: Promise, full_match: FullMatch) -> int | None:
    """The line that may give the promise: the last one or, where allowed, the last that stands alone."""
    last = len(lines) - 1
    near = range(last, last - 1 if promise.match is Match.END else -1, -1)
    match promise.mode:
        case Mode.TAG | Mode.PLAIN:
            return _place_of_token(lines, near, promise.token.strip())
        case Mode.LINE:
            return next((at for at in near if lines[at].strip(_UNSEEN) == promise.text.strip(_UNSEEN)), None)
        case Mode.REGEX:
            filled = islice((at for at in near if lines[at].strip(_UNSEEN)), _TRIED_LINES)
            return next((at for at in filled if _matches(lines[at].strip(_UNSEEN), promise.text, full_match)), None)
        case _:
            assert_never(promise.mode)


def _place_of_token(lines: list[str], near: range, token: str) -> int | None:
    """The last place the token appears: if it is mentioned again further down, it was not given above."""
    whole = _whole(token)
    at = next((at for at in near if token in lines[at] and whole.search(lines[at])), None)
    if at is None:
        return None
    before, _, behind = lines[at].strip(_UNSEEN).rpartition(token)
    # At the end of the reply, a whole sentence may come before it.
    alone = not before.strip("*_# ") or (at == near.start and token not in before and ends_sentence(before))
    return at if alone and re.fullmatch(_BEHIND, behind) else None


def _matches(line: str, pattern: str, full_match: FullMatch) -> bool:
    if len(line) > _TRIED_LENGTH or re.search(_NO_ARGUMENT, line):
        return False
    bare = line.strip("*_ ").rstrip(".!").strip("*_ ")
    return any(full_match(pattern, form) for form in dict.fromkeys((line, bare)))


def _is_meant(lines: list[str], place: int, promise: Promise) -> bool:
    ending = _ending(lines[: place + 1], promise)
    if ending is None or leads_in(ending.passage.rpartition("\n")[0] or ending.above):
        return False
    if doubt.doubted(_before_token(ending.passage, promise), ending.above):
        return False
    return not doubt.taken_back("\n".join(lines[place + 1 :]))


def _occurs(promise: Promise, reply: str) -> bool:
    """Does the token appear anywhere? A pattern is not tried on every line: each try is a child process."""
    if promise.mode is Mode.REGEX:
        return False
    return _whole(promise.token.strip()).search(reply) is not None


def _whole(token: str) -> re.Pattern[str]:
    """The token as a whole word: "DONE" is not in "ABANDONED"."""
    return re.compile(rf"(?:\b|(?=\W)){re.escape(token)}(?:\b|(?<=\W))")


class _Ending(NamedTuple):
    """The passage the last line belongs to, and the text right above that could introduce it."""

    passage: str
    above: str


def _ending(lines: list[str], promise: Promise) -> _Ending | None:
    """The end of a reply as its reader sees it.

    None if that is code, a quote, a list item, all that is below a heading, or part of some HTML.
    """
    lines = [*(line for line in lines[:-_NEAR] if re.match(_FAR, line)), *lines[-_NEAR:]]
    tokens = _parser().parse("\n".join(lines))
    last = max((index for index, token in enumerate(tokens) if token.nesting == 0), default=-1)
    around = {token.type for token in tokens[last + 1 :]}  # after the last block, only what contains it ends
    if last < 0 or "blockquote_close" in around or not _is_prose(tokens[last], lines) or _in_html(tokens[:last]):
        return None
    passage = tokens[last].content.strip()
    if not around & {"bullet_list_close", "ordered_list_close"}:
        above = _above(tokens[:last])
        return None if above is None else _Ending(passage, above)
    # Markdown attaches an unindented line below a list to the last item; a reader does not.
    item, newline, line = passage.rpartition("\n")
    if lines[-1][0].isspace() or not (newline or _has_own_mark(lines[-1], promise)):
        return None
    return _Ending(line, item)


def _has_own_mark(line: str, promise: Promise) -> bool:
    """Is what looks like the mark of a list a part of the promise itself?"""
    return promise.mode in {Mode.LINE, Mode.REGEX} or line.startswith(promise.token.strip())


def _is_prose(block: "Token", lines: list[str]) -> bool:
    """Does a block reach the last line, and is it text there?"""
    begins, ends = block.map or (0, 0)
    # HTML on one line is the promise itself, for people who chose something like `<done/>`.
    lone_html = block.type == "html_block" and begins == len(lines) - 1
    return ends >= len(lines) and (block.type == "inline" or lone_html)


def _in_html(tokens: "list[Token]") -> bool:
    """Is an element that was opened above still open?"""
    depth: Counter[str] = Counter()
    for closes, name in re.findall(
        _CONTAINER, "".join(token.content for token in tokens if token.type == "html_block")
    ):
        depth[name.lower()] = max(0, depth[name.lower()] + (-1 if closes else 1))
    return any(depth.values())


def _above(tokens: "list[Token]") -> str | None:
    """The nearest visible block above, if it is prose; None if it is a heading."""
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token.type in {"inline", "fence", "code_block"} and doubt.plain(token.content):
            # Agents put `---` below any paragraph, so an underline does not make a heading.
            is_heading = tokens[index - 1].type == "heading_open" and tokens[index - 1].markup.startswith("#")
            return None if is_heading else token.content if token.type == "inline" else ""
    return ""


def _before_token(passage: str, promise: Promise) -> str:
    above, _, line = passage.rpartition("\n")
    match promise.mode:
        case Mode.TAG | Mode.PLAIN:
            token = promise.token.strip()
            return passage.rpartition(token)[0].replace(token, "")
        case Mode.LINE:
            return above
        case Mode.REGEX:
            return "\n".join([above, _unasked(line, promise.text)])
        case _:
            assert_never(promise.mode)


def _unasked(line: str, pattern: str) -> str:
    """What a matching line says beyond the words spelled out in its pattern, which are wanted whatever they mean."""
    spelled = re.sub(r"\\(\W)", r"\1", re.sub(r"\\[A-Za-z]", " ", pattern)).lower()
    wanted = set(re.findall(_WORD, spelled))

    def asked(word: str) -> bool:
        return word.lower() in spelled and wanted.issuperset(re.findall(_WORD, word.lower()))

    rest = " ".join(word for word in line.split() if not asked(word))
    return re.sub(_WORD, lambda word: "" if asked(word[0]) else word[0], rest)


@cache
def _parser() -> "MarkdownIt":
    """A parser for Markdown blocks only; link definitions stay, or the last line could disappear."""
    from markdown_it import MarkdownIt  # slow to import, and most commands never need it

    return MarkdownIt("commonmark").disable(["inline", "text_join", "reference"])
