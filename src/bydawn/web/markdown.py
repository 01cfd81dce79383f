"""Markdown as HTML that is safe to show: no HTML of its own, no pictures, no addresses but those of the web."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec
import nh3
from markupsafe import Markup

from bydawn.core import markdown
from bydawn.core.tasks import BOX
from bydawn.core.text import plain

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_LONGEST = 50_000  # characters of a reply that are read as Markdown
_LONGEST_FILE = 500_000
_BRACKETS = 3_000  # in one paragraph; the parser takes half a second for as many, and two seconds for twice as many
_CELLS = 20_000  # of all tables
_DEEPEST = 100  # as in core/markdown.py
_SCHEMES = {"http", "https", "mailto"}
_TAGS = {
    *("a", "blockquote", "br", "code", "del", "div", "em", "h2", "h3", "h4", "h5", "h6", "hr", "input", "label"),
    *("li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_ATTRIBUTES = {"a": {"href"}, "input": {"value", "checked", "disabled", "data-shown"}, "ol": {"start"}}
_VALUES = {"input": {"type": {"checkbox"}, "name": {"tick"}}}
_CLASSES = {
    "label": {"box", "done", "now"},
    "span": {"text", "last", "least"},
    "div": {"checkpoint", "approved"},
    "ul": {"boxes"},
    "pre": {"front"},
}
_MARK = '<svg class="icon" aria-hidden="true"><use href="#i-checkpoint"/></svg>'  # only the page itself has the shape


class TickBox(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a document, at its line."""

    done: bool
    shown: str = ""  # its words as they are in the file: they find it again if its line has moved
    note: str = ""  # at its right: `round 4`
    now: bool = False  # it is being worked on


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint in a document, at its line."""

    text: str
    approved: bool = False


@lru_cache(maxsize=64)
def html(text: str) -> Markup:
    """What an agent says, as HTML; kept, because an open page is made again and again."""
    text = plain(text)
    if len(text) > _LONGEST or _is_slow([text]):
        return Markup(_pre(text))  # noqa: S704 - escaped
    return Markup(_safe(_reader().render(text)))  # noqa: S704 - cleaned


def document(text: str, boxes: Mapping[int, TickBox], bars: Mapping[int, Bar], *, can_tick: bool) -> Markup:
    """A file as HTML; its boxes are those of a form, named `tick`, with their lines as values."""
    return _document(text, tuple(boxes.items()), tuple(bars.items()), can_tick)


@lru_cache(maxsize=16)
def _document(
    text: str, boxes: tuple[tuple[int, TickBox], ...], bars: tuple[tuple[int, Bar], ...], can_tick: bool
) -> Markup:
    """Kept, because an open page is made again and again while its loop runs."""
    page = markdown.of_file(text)
    if page.problem or len(text) > _LONGEST_FILE or _is_slow(block.text for block in page.blocks):
        return Markup(_pre(plain(text)))  # noqa: S704 - escaped
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    front = f'<pre class="front">{escape(page.front)}</pre>\n' if page.front else ""
    if page.front:
        lines[: page.front.count("\n") + 3] = [""] * (page.front.count("\n") + 3)  # line numbers stay
    found = {"boxes": dict(boxes), "bars": dict(bars), "can_tick": can_tick}
    clean = _safe(front + _editor().render("\n".join(lines), found))
    return Markup(re.sub(r'(<div class="checkpoint(?: approved)?">)', rf"\1{_MARK}", clean))  # noqa: S704 - cleaned


def _is_slow(paragraphs: Iterable[str]) -> bool:
    """For a bracket, the parser looks at all that follow in its paragraph; a short row of a table has all its cells."""
    texts = [*paragraphs]
    cells = sum(max(map(_bars, text.split("\n")), default=0) * text.count("\n") for text in texts)
    return sum(text.count("[") ** 2 for text in texts) > _BRACKETS**2 or cells > _CELLS


def _bars(line: str) -> int:
    return line.count("|")


def _pre(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _safe(text: str) -> str:
    """The second wall: nothing passes that is not on the list, whatever the first one let through."""
    return nh3.clean(
        plain(text),
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes=_ATTRIBUTES,
        tag_attribute_values=_VALUES,
        allowed_classes=_CLASSES,
        url_schemes=_SCHEMES,
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
    )


# -- two parsers -------------------------------------------------------------------------------------------------------


@cache
def _reader() -> "MarkdownIt":
    """For what agents say. In replies an underline does not make a heading: agents put `---` below any paragraph."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 20})
    parser.enable(["table", "strikethrough"]).disable("lheading")
    return _dressed(parser)


@cache
def _editor() -> "MarkdownIt":
    """For files: the blocks of core/markdown.py, so that what can be ticked is what bydawn counts."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import table

    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("strikethrough")
    parser.block.ruler.before("paragraph", "gfm_table", table, {"alt": ["paragraph", "reference"]})
    parser.core.ruler.after("block", "boxes", _boxes)
    return _dressed(parser)


def _dressed(parser: "MarkdownIt") -> "MarkdownIt":
    parser.core.ruler.push("links", _links)
    rules: dict[str, Callable[..., str]] = {
        "image": lambda tokens, at, *_: escape(tokens[at].content),  # its words; nothing is loaded from elsewhere
        "fence": lambda tokens, at, *_: f"<pre><code>{escape(tokens[at].content)}</code></pre>\n",
        "html_inline": partial(_html, tag="span"),
        "html_block": partial(_html, tag="p"),
        "heading_open": partial(_heading, sign="<"),
        "heading_close": partial(_heading, sign="</"),
        "box_open": _box_open,
        "box_close": _box_close,
        "bar": _bar,
    }
    for name, rule in rules.items():
        parser.renderer.rules[name] = rule  # type: ignore[attr-defined] # a plain dict at run time
    return parser


def _links(state: "StateCore") -> None:
    """A link that leads into our own pages, or to a program, is text."""
    for token in state.tokens:
        kept: list[bool] = []
        for child in token.children or ():
            if child.type == "link_open":
                target = str(child.attrs.get("href", ""))
                kept.append(target.partition(":")[0].lower() in _SCHEMES)
                child.attrs = {"href": target} if kept[-1] else {}
            if child.type in ("link_open", "link_close"):
                child.tag = "a" if kept and kept[-1] else "span"
            if child.type == "link_close" and kept:
                kept.pop()


def _html(tokens: "list[Token]", at: int, *_: Any, tag: str) -> str:
    """HTML in a file is shown as it is written; a comment as one."""
    text = tokens[at].content
    if text.lstrip().startswith("<!--"):
        shown = f'<span class="least">{escape(text.strip())}</span>'
        return f"<p>{shown}</p>\n" if tag == "p" else shown
    return f"<pre><code>{escape(text)}</code></pre>\n" if tag == "p" else escape(text)


def _heading(tokens: "list[Token]", at: int, *_: Any, sign: str) -> str:
    """One level down, since the page has the first; and without holes for the deepest."""
    level = min(6, int(tokens[at].tag[1:]) + 1)
    return f"{sign}h{level}>" + ("\n" if sign == "</" else "")


# -- boxes and bars ----------------------------------------------------------------------------------------------------


def _boxes(state: "StateCore") -> None:
    """Put a box in the place of each `[ ]` that is a task, and a bar in the place of each checkpoint."""
    tokens: list[Token] = []
    late: dict[int, Token] = {}  # bars that come below what they are in
    for token in state.tokens:
        lines = range(token.map[0] + 1, token.map[1] + 1) if token.map and token.type in _LEAVES else range(0)
        bars = {line: _token("bar", {"bar": state.env["bars"][line]}) for line in lines if line in state.env["bars"]}
        late |= bars
        box = state.env["boxes"].get(lines.start) if token.type == "inline" else None
        if box is not None and (words := BOX.match(token.content)):
            token.content = words["text"]
            _dress_list(tokens)
            meta = {"line": lines.start, "box": box}
            tokens += [_token("box_open", meta), token, _token("box_close", meta)]
        elif not bars or not _is_all(token, tokens, len(bars)):
            tokens.append(token)
        if token.type == "paragraph_close" and tokens[-2].type == "paragraph_open":
            del tokens[-2:]
        if token.type in _BELOW:
            tokens += late.values()
            late = {}
    state.tokens = tokens


_LEAVES = ("inline", "html_block")
_BELOW = ("paragraph_close", "heading_close", "table_close", "html_block")


def _is_all(token: "Token", before: "list[Token]", bars: int) -> bool:
    """Is there nothing but checkpoints in it? A heading or a cell would be empty without them."""
    alone = token.type == "html_block" or before[-1].type == "paragraph_open"
    return alone and len([line for line in token.content.split("\n") if line.strip()]) == bars


def _dress_list(tokens: "list[Token]") -> None:
    """The list that it is in shows its boxes in the place of bullets."""
    depth = 0
    for token in reversed(tokens):
        depth += token.type.endswith("list_close") - token.type.endswith("list_open")
        if depth < 0:
            token.attrs = {**token.attrs, "class": "boxes"} if token.tag == "ul" else token.attrs
            return


def _token(kind: str, meta: dict[str, Any]) -> "Token":
    from markdown_it.token import Token

    return Token(kind, "", 0, meta=meta)


def _box_open(tokens: "list[Token]", at: int, _: Any, env: Any) -> str:
    line, box = tokens[at].meta["line"], tokens[at].meta["box"]
    ticked, off = " checked" if box.done else "", "" if env["can_tick"] else " disabled"
    shown = f' data-shown="{escape(box.shown)}"' if box.shown else ""
    field = f'<input type="checkbox" name="tick" value="{line}"{shown}{ticked}{off}>'
    kinds = "".join((" done" * box.done, " now" * box.now))
    return f'<label class="box{kinds}">{field}<span class="text">'


def _box_close(tokens: "list[Token]", at: int, *_: Any) -> str:
    note = tokens[at].meta["box"].note
    return "</span>" + (f'<span class="last">{escape(note)}</span>' if note else "") + "</label>"


def _bar(tokens: "list[Token]", at: int, *_: Any) -> str:
    bar = tokens[at].meta["bar"]
    return f'<div class="checkpoint{" approved" if bar.approved else ""}">{escape(bar.text)}</div>\n'
