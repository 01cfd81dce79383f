"""Markdown as a reader sees it: blocks, and the text, code and comments inside them."""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST = 10_000  # lines and list marks; each costs the parser about 50 µs, and no plan made for people is longer
_EMPTY_LINES = 100_000  # cheap, but not free
_DEEPEST = 100  # the parser drops the rest of a text that is nested deeper
_MARKS = re.compile(r"[ \t]*((?:(?:>|(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t]))[ \t]*)*)")
_MARK = re.compile(r"[>*+.)-]")
_RULE = re.compile(r"(?:---|\.\.\.)[ \t]*")
_KEY = re.compile(r"[\"']?[A-Za-z_][\w .-]*[\"']?[ \t]*:(?:[ \t]|$)")
_SPECIAL = re.compile(r"\\[\\`<]|`+|<!--")
_TICKS = re.compile(r"`+")
_WRITTEN = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_INTO_ITEMS = (
    ("list_item", "paragraph"),
    ("list_item", "underlined"),
    ("list_item", "table", "thead", "tr", "th"),
)
_RAW_HTML = ("<pre", "<script", "<style", "<textarea")


class Block(NamedTuple):
    """A piece of text that contains no other: the words of a paragraph, heading or cell, code, or HTML."""

    type: str  # inline, fence, code_block or html_block
    text: str
    line: int
    within: tuple[str, ...]  # what it is in, from the outside in: blockquote, list_item, heading, underlined, …
    opens: int  # how many of those begin with it
    source: str  # its first line as written
    level: int = 0  # of a heading
    info: str = ""  # the word after a fence
    ended: bool = True  # False: never closed, so everything after it is part of it
    items: tuple[int, ...] = ()  # the lines where the list items it is in begin

    @property
    def quoted(self) -> bool:
        return "blockquote" in self.within

    @property
    def begins_item(self) -> bool:
        """Are these the words a list item begins with, even underlined or in a table's first cell?"""
        return any(self.opens >= len(way) and self.within[-len(way) :] == way for way in _INTO_ITEMS)

    @property
    def is_raw(self) -> bool:
        """HTML whose text a reader sees as code."""
        return self.type == "html_block" and self.text.lstrip().lower().startswith(_RAW_HTML)

    @property
    def is_comment(self) -> bool:
        return self.type == "html_block" and self.text.lstrip().startswith("<!--")


class Page(NamedTuple):
    """A text in blocks, without the front matter of a file."""

    blocks: tuple[Block, ...]
    front: str = ""
    problem: str | None = None


class Span(StrEnum):
    TEXT = "text"
    CODE = "code"
    COMMENT = "comment"


@lru_cache(maxsize=4)
def of_file(text: str) -> Page:
    """A file's blocks; kept, because tasks, checkpoints and closed boxes are all read from the same text."""
    lines = _lines(text.removeprefix("\ufeff"))
    end = _front_matter(lines)
    front = "\n".join(lines[1 : end - 1]) if end else ""
    lines[:end] = [""] * end  # line numbers stay
    if len(lines) > _EMPTY_LINES + MOST or sum(map(_effort, lines)) > MOST:
        return Page((), front, f"is too long to read: more than {MOST:,} lines")
    tokens = _parser(underlines=True).parse("\n".join(lines))
    too_deep = any(token.level >= _DEEPEST - 1 for token in tokens)
    return Page(tuple(_blocks(tokens, lines)), front, "is nested too deeply to read" if too_deep else None)


def of_reply(text: str) -> Page:
    """A reply's blocks; only the end of a very long one, because that is where agents report the result."""
    lines = _lines(text)
    first, effort = len(lines), 0
    while first and len(lines) - first < _EMPTY_LINES and (effort := effort + _effort(lines[first - 1])) <= MOST:
        first -= 1
    lines = lines[first:]
    tokens = _parser(underlines=False).parse("\n".join(lines))
    return Page(tuple(_blocks(tokens, lines)))


def spans(text: str) -> Iterator[tuple[Span, str]]:
    """The words of a block, split into text, inline code and comments; whichever begins first wins."""
    last_run = {len(run[0]): run.start() for run in _TICKS.finditer(text)}
    last_end = text.rfind("-->")
    begun = at = 0
    while special := _SPECIAL.search(text, at):
        at = special.end()
        kind, end = Span.TEXT, 0
        if special[0] == "<!--" and special.start() + 2 <= last_end:
            kind, end = Span.COMMENT, text.index("-->", special.start() + 2) + 3
        elif special[0][0] == "`" and last_run[len(special[0])] > special.start():
            # Searched only if it is known to be there, so that a megabyte of backticks takes no longer.
            kind = Span.CODE
            end = next(run.end() for run in _TICKS.finditer(text, at) if len(run[0]) == len(special[0]))
        if end:
            yield Span.TEXT, text[begun : special.start()]
            yield kind, text[special.start() : end]
            begun = at = end
    yield Span.TEXT, text[begun:]


def without_comments(text: str) -> str:
    return "".join(part for kind, part in spans(text) if kind is not Span.COMMENT)


def written_lines(text: str) -> list[str]:
    """The lines of a file with their endings, counted as in `Block.line`."""
    return _WRITTEN.findall(text)


def _lines(text: str) -> list[str]:
    """As Markdown counts them; `splitlines` would see more."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _front_matter(lines: list[str]) -> int:
    """How many lines at the top of a file are front matter: `---`, keys, `---`. A mere rule above a list is not."""
    if lines[0].rstrip() != "---":
        return 0
    first = next((line for line in lines[1:] if line.strip() and not line.startswith("#")), "")
    if not _KEY.match(first):
        return 0
    return next((number for number, line in enumerate(lines[1:], 2) if _RULE.fullmatch(line)), 0)


def _effort(line: str) -> int:
    """What a line costs the parser: `- - - [ ] a` is three lists."""
    marks = _MARKS.match(line)
    return max(len(_MARK.findall(marks[1])) if marks else 0, not line.isspace() and line != "")


def _blocks(tokens: "list[Token]", lines: list[str]) -> Iterator[Block]:
    within: list[str] = []
    items: list[int] = []
    opens = 0
    for index, token in enumerate(tokens):
        if token.nesting > 0:
            within.append("underlined" if token.markup in {"=", "-"} and token.tag[:1] == "h" else token.type[:-5])
            opens += 1
            if token.type == "list_item_open" and token.map:
                items.append(token.map[0] + 1)
            continue
        if token.nesting < 0:
            if within.pop() == "list_item":
                items.pop()
        elif token.map and token.type != "hr":
            begins, ends = token.map
            heading = within[-1:] in (["heading"], ["underlined"])
            yield Block(
                type=token.type,
                text=token.content,
                line=begins + 1,
                within=tuple(within),
                opens=opens,
                source=lines[begins],
                level=int(tokens[index - 1].tag[1:]) if heading else 0,
                info=token.info,
                ended=_ended(token, ends - begins),
                items=tuple(items),
            )
        opens = 0


def _ended(token: "Token", lines: int) -> bool:
    """Was a fence or a comment closed? An unclosed one hides everything after it."""
    if token.type == "fence":
        return lines > 1 + token.content.count("\n") + (not token.content.endswith("\n") and bool(token.content))
    return token.type != "html_block" or not token.content.lstrip().startswith("<!--") or "-->" in token.content


@cache
def _parser(*, underlines: bool) -> "MarkdownIt":
    """Markdown blocks only. In replies an underline does not make a heading: agents put `---` below any paragraph."""
    from markdown_it import MarkdownIt  # slow to import, and most commands never need it
    from markdown_it.rules_block import table

    blocks = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).disable(["inline", "text_join"])
    # Last, because only a paragraph can become a table; the parser's own order would turn `- [ ] a | b` into one.
    blocks.block.ruler.before("paragraph", "gfm_table", table, {"alt": ["paragraph", "reference"]})
    return blocks if underlines else blocks.disable("lheading")
