"""Did the agent give its promise, or only mention it?"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, assert_never

from bydawn.core.facts import Given
from bydawn.core.loop import Mode, Promise

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FullMatch = Callable[[str, str], bool]

# A sentence with one of these words does not give the promise that stands at its end. When in doubt a word is
# in: a promise that was meant and not believed costs a round, one that was believed and not meant costs the night.
_WORDS = (
    # negated
    r"not|never|nor|neither|cannot|\w+n't|(?:ca|wo|do|does|did|is|are|was|has|have)nt|without|unable|avoid\w*",
    r"refus\w+|declin\w+|withh\w+|refrain\w*|skip(?:ping)?|fail\w* to|hold\w* (?:off|back)|premature\w*|too early",
    r"instead of|rather than|incomplete|unfinished|partial|partially|blocked",
    # postponed
    r"yet|later|next(?!\.)|soon|eventually|tomorrow|until|till|before|after\w*|once|when|whenever|then|for now",
    r"almost|nearly|a?wait(?:ing)?|(?<!0 )pending|going to|will(?! now)|\w+'ll(?! now)",
    # conditioned
    r"if|unless|would|could|should|might|may|only|assuming|provided|otherwise|in case|\w+'d",
    # spoken of
    r"must|needs? to|ha(?:ve|s) to|wants?|supposed|remember\w*|says?|quot(?:e|ed|ing)|by [a-z]+ing",
    r"for (?:example|instance|reference)",
    # the same in German, French and Spanish
    r"nicht|noch|kein\w*|niemals|erst|sobald|wenn|falls|bevor|solange|später|würde|sollte|könnte|werden?|wird",
    r"pas|jamais|quand|lorsque|avant|après|si|nunca|cuando|hasta|todavía|aún|antes|después|no pued\w+",
)
_ORDERS = r"print|emit|say|write|reply|respond|send|post|type|end|finish|conclude|declare|(?:output|signal)(?!:)"
_DOUBTS = (
    rf"\b(?:{'|'.join(_WORDS)})\b",
    # an order or a plan, not the deed: "to finish, print <promise>…", "Remaining:", "To do:"
    rf"(?:^\W*|, |\b(?:to|please|and|just) )(?:{_ORDERS})\b(?: [\w']+){{0,5}}\W*$|^\W*remaining\b|^\W*to-? ?do\W*$",
    # "the token is <promise>…": a part of the sentence, not a statement of its own
    r"\b(?:an?|and|are|as|called|for|from|like|my|no|of|or|than|that|the|this|to|was|with|your|example|format)\W*$",
    r"(?<!\bhere )(?<!\bit )\bis\W*$",
    # an opened quote or bracket, another tag or a comment, a table, an open box or a link definition, a "no" in signs
    r"(?:^|\s)[\"'`~]+$|[“«„(\[{]$|<[!/a-z]|\||^\[(?: \]|[^\]]*\]:)|[❌🚫⛔🛑⏳✗✘]|不能|无法|尚未|还没|如果",
)

_BEHIND = re.compile(r"[*_\s]*(?:\.|!+)?[*_\s]*")  # what may follow the token on its line
_SENTENCE_END = re.compile(r"(?<!\.)[.!](?=[\s\"')\]]|$)|。")  # not "...": who trails off has not finished
_LEADS_IN = re.compile(r"[:→↓⬇👇]\W*$")
_ABBREVIATION = re.compile(r"\b(?:e\. ?g|i\. ?e|z\. ?B)\.", re.IGNORECASE)
_LONGEST_SENTENCE = 5_000  # characters; an endless one is not worth the time
_MARKS = str.maketrans({"*": None, "_": " ", **dict.fromkeys("’‘ʼ´′", "'")})
_INVISIBLE = {"Cc", "Cf", "Me", "Mn"}  # Unicode's control, format and combining characters

# Parsing is slow by the line. Far above the last one, only what opens or closes code and comments can matter.
_NEAR = 500
_RAW = "pre|script|style|textarea"
_FAR = re.compile(rf" {{0,3}}(?:[-*+] +)?(?:```|~~~|<!--|<(?:{_RAW})\b)|.*(?:-->|</(?:{_RAW})>)", re.IGNORECASE)


@cache
def _doubt() -> re.Pattern[str]:
    """Compiled when a promise is first looked at; most commands never do."""
    return re.compile("|".join(_DOUBTS), re.IGNORECASE)


def judge(reply: str, promise: Promise, full_match: FullMatch) -> Given:
    """Judge an agent's final message; `full_match(pattern, text)` is asked in regex mode, at most twice."""
    lines = reply.replace("\r\n", "\n").replace("\r", "\n").rstrip().split("\n")
    if not promise.text.strip() or not lines[-1]:
        return Given.ABSENT
    if not _ends_with_token(lines[-1].strip(), promise, full_match):
        return Given.MENTIONED if _occurs(promise, reply) else Given.ABSENT
    ending = _ending(lines)
    return Given.GIVEN if ending and not _doubted(ending, promise) else Given.MENTIONED


def _ends_with_token(line: str, promise: Promise, full_match: FullMatch) -> bool:
    match promise.mode:
        case Mode.TAG:
            _, found, behind = line.rpartition(promise.token)
            return bool(found) and _BEHIND.fullmatch(behind) is not None
        case Mode.LINE:
            return line == promise.text.strip()
        case Mode.REGEX:
            bare = line.strip("*_ ").rstrip(".!").strip("*_ ")
            return any(full_match(promise.text, form) for form in dict.fromkeys((line, bare)))
        case _:
            assert_never(promise.mode)


def _occurs(promise: Promise, reply: str) -> bool:
    """Whether the token stands somewhere; a pattern is not tried on every line, each try is a child process."""
    if promise.mode is Mode.REGEX:
        return False
    whole = rf"(?:\b|(?=\W)){re.escape(promise.token.strip())}(?:\b|(?<=\W))"  # "DONE" is not in "ABANDONED"
    return re.search(whole, reply) is not None


class _Ending(NamedTuple):
    """The passage that the last line belongs to, and the texts right above that could lead in to it."""

    passage: str
    above: list[str]


def _ending(lines: list[str]) -> _Ending | None:
    """The end of a reply as its reader sees it; None where that is code, a quote or part of some HTML."""
    lines = [*filter(_FAR.match, lines[:-_NEAR]), *lines[-_NEAR:]]
    tokens = _parser().parse("\n".join(lines))
    last = max((index for index, token in enumerate(tokens) if token.nesting == 0), default=-1)
    around = {token.type for token in tokens[last + 1 :]}  # behind the last block, only what contains it ends
    if last < 0 or "blockquote_close" in around or not _is_prose(tokens[last], lines):
        return None
    passage = tokens[last].content.strip()
    above = [_text_before(tokens, last)]
    if around & {"bullet_list_close", "ordered_list_close"}:
        above.append(_text_before(tokens, _list_start(tokens, last)))
        if not lines[-1][0].isspace():
            # Markdown adds an unindented line below a list to its last item; the reader does not.
            item, _, passage = passage.rpartition("\n")
            above.append(item)
    return _Ending(passage, above)


def _is_prose(block: "Token", lines: list[str]) -> bool:
    """Whether a block reaches the last line, and is text there."""
    begins, ends = block.map or (0, 0)
    # HTML of one line is the promise itself, for those who chose a text like `<done/>`.
    lone_html = block.type == "html_block" and begins == len(lines) - 1
    return ends >= len(lines) and (block.type == "inline" or lone_html)


def _list_start(tokens: "list[Token]", inside: int) -> int:
    return max(i for i in range(inside) if tokens[i].level == 0 and tokens[i].type.endswith("list_open"))


def _text_before(tokens: "list[Token]", index: int) -> str:
    """The nearest visible block above, if it is prose."""
    for token in reversed(tokens[:index]):
        if token.type in {"inline", "fence", "code_block"} and _plain(token.content):
            return token.content if token.type == "inline" else ""
    return ""


def _doubted(ending: _Ending, promise: Promise) -> bool:
    """Whether the promise's own sentence, or a line that leads in to it, takes it back."""
    lead_ins = [text for text in map(_plain, ending.above) if _LEADS_IN.search(text)]
    sentences = [_plain(_before_token(ending.passage, promise)), *lead_ins]
    return any(_doubt().search(_last_sentence(text)) for text in sentences)


def _before_token(passage: str, promise: Promise) -> str:
    above, _, line = passage.rpartition("\n")
    match promise.mode:
        case Mode.TAG:
            return passage.rpartition(promise.token)[0].replace(promise.token, "")
        case Mode.LINE:
            return above
        case Mode.REGEX:
            # What the pattern spells out is wanted; any other word may take the promise back.
            unasked = [word for word in line.split() if word.lower() not in promise.text.lower()]
            return "\n".join([above, *unasked])
        case _:
            assert_never(promise.mode)


def _last_sentence(text: str) -> str:
    return _SENTENCE_END.split(_ABBREVIATION.sub("for example", text[-_LONGEST_SENTENCE:]))[-1].strip()


def _plain(text: str) -> str:
    """The words as a reader sees them: no emphasis, nothing invisible, one kind of apostrophe and space."""
    characters = unicodedata.normalize("NFKC", text.translate(_MARKS))
    seen = (char for char in characters if char.isspace() or unicodedata.category(char) not in _INVISIBLE)
    return " ".join("".join(seen).split())


@cache
def _parser() -> "MarkdownIt":
    """A parser for Markdown's blocks only; link definitions stay, or the last line could disappear."""
    from markdown_it import MarkdownIt  # slow to import, and most commands never need it

    return MarkdownIt("commonmark").disable(["inline", "text_join", "reference"])
