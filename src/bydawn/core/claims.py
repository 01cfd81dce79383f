"""What an agent says about its own work, "done" or "blocked"; accepted only if checks agree."""

import re
from collections.abc import Iterator

import msgspec

from bydawn.core import markdown
from bydawn.core.doubt import unfinished
from bydawn.core.loop import Loop
from bydawn.core.markdown import Block
from bydawn.core.outcome import Outcome
from bydawn.core.proof import EVERYTHING, Reason
from bydawn.core.text import shorten
from bydawn.core.values import TaskClaim

# Patterns here are compiled when first needed; most loops never need them.
_LONGEST = 1_000
_BELOW_HEADINGS = 7
_SIGNS = r"[^\w~`>]*"  # emphasis and emoji before the word; not what strikes it out or quotes it
_DASH = r"\s+[—–-]+\s"
# `## Blocked`, `## 🚫 BLOCKED: no key`, `# Blocked (CI)`; not "Not blocked" or "Blocked-user list".
_HEADING = rf"(?i){_SIGNS}blocked(?:{_SIGNS}|(?:[*_]*:|{_DASH})(?P<words>.*)|\s+\((?P<aside>[^()]*)\){_SIGNS})"
# `**Blocked**`, `**BLOCKED:** no key`, `**Blocked: no key**`: bold up to the colon or the line's end.
_BOLD = rf"(?i){_SIGNS}(?:\*\*|__)blocked(?:{_SIGNS}_*|(?:(?:\*\*|__)?:|(?:\*\*|__){_DASH})(?P<words>.*))"
_BARE = r"BLOCKED:(?P<words>.*)"
_OTHER_FIELD = r"\s*[*_]*(?:STATUS|SUMMARY)[*_]*:.*"
# What a reply may list below a heading, or a line in bold, of its own.
OPEN, ALREADY, CHANGED_TESTS = "Open", "Already done", "Changed tests"
_MOST_LISTED, _LISTED = 50, 300  # lines, and characters of each
_AROUND = r"^(?:\*\*|__|`)+|(?:\*\*|__|`)+$"
_WHY = r"\s*[:：]\s+|：|\s+[—–-]+\s+"
_PATH = r"[\w.@*?\[\]/-]*(?:[*/]|\.\w)[\w.@*?/-]*"
_NO = r"none|nothing|no|nope|nil|null|false|0|n/?a|not applicable|resolved"
_NOT_BLOCKED = r"no(?:t|thing)?(?: \w+)? block\w*\b(?!.*\b(?:except|but|besides|other)\b).*"
_NOTHING = rf"(?i)\W*(?:(?:{_NO})(?:[^\w\s/]+(?:\s.*)?|(?:{_DASH}|\s+\().*|\s*)|{_NOT_BLOCKED})?"


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    task: TaskClaim | None = None
    blocked: str = ""  # the words with which it says that only a person can help
    open: tuple[str, ...] = ()  # what is still to be done, …
    lists_open: bool = False  # … in a section of its own, …
    nothing_open: bool = False  # … which may say that there is nothing
    already: tuple[str, ...] = ()  # tasks that were done before
    reasons: tuple[Reason, ...] = ()  # for changed tests


def from_reply(reply: str, outcome: Outcome, loop: Loop, task: str | None = None) -> Claims:
    """Claims in the reply of a turn that went well; a status block is only read if one was asked for.

    About a task also in that of a turn in which something was not allowed: agents try what they may not do, and then
    find another way. Checks and changes decide.
    """
    if outcome is not Outcome.OK and not (outcome is Outcome.DENIED and loop.task_folder):
        return Claims()
    claims = _of_task(reply, loop, task) if loop.task_folder else Claims(blocked=blocked_words(reply) or "")
    left = listed(reply, OPEN)
    return msgspec.structs.replace(
        claims,
        open=left or (unfinished(reply) if loop.asks_if_done else ()),
        lists_open=bool(left),
        nothing_open=not left and re.search(rf"(?im)^\W*{OPEN}\b\W*(?:{_NO})?\W*$", reply) is not None,
        already=listed(reply, ALREADY),
        reasons=tuple(_reasons(listed(reply, CHANGED_TESTS, items=False))),
    )


def listed(reply: str, title: str, *, items: bool = True) -> tuple[str, ...]:
    """The items of a section, or its lines if it has none; nothing if it says that there is nothing.

    Without `items`: all of its lines.

    >>> listed("Done.\\n\\n## Open\\n- the form\\n- the session\\n\\n## Notes\\nx", OPEN)
    ('the form', 'the session')
    """
    if title.lower() not in reply.lower():
        return ()
    opens = re.compile(rf"(?i)\W*{title}\W*")
    blocks = markdown.of_reply(reply).blocks
    for index, block in reversed([*enumerate(blocks)]):
        first, _, rest = block.text.partition("\n")
        bold = block.within == ("paragraph",) and first.strip().startswith(("**", "__", title + ":"))
        if (block.within == ("heading",) or bold) and opens.fullmatch(first):
            lines = [line.strip() for line in _section(rest.split("\n"), blocks, index) if not says_nothing(line)]
            dashed = [line.removeprefix("- ") for line in lines if line.startswith("- ")] if items else []
            found = dashed or [line.removeprefix("- ") for line in lines if not line.startswith(("<", "`<"))]
            return tuple(shorten(line, _LISTED) for line in found if not says_nothing(line))[:_MOST_LISTED]
    return ()


def _reasons(lines: tuple[str, ...]) -> Iterator[Reason]:
    """`tests/a.py, tests/b.py: the rounding has changed`; or a line that names them among its words, or right above."""
    above: list[str] = []
    for line in lines:
        files, *why = re.split(_WHY, line, maxsplit=1)
        names = [re.sub(_AROUND, "", name) for name in re.split(r",\s*|\s+and\s+", files)]
        is_command = re.fullmatch(r"`[^`]+`", files.strip())  # a check whose tests are fewer
        if why and why[0].strip() and (is_command or not any(re.search(r"[\s(\]|]", name) for name in names)):
            above = []
            yield from (Reason(files=re.sub(r":\d+$", "", name), why=why[0].strip()) for name in names if name)
            continue
        found = [re.sub(r"[.:]+$|:\d+$", "", path) for path in re.findall(_PATH, line)]
        words = re.findall(r"[^\W\d_]{2,}", re.sub(_PATH, " ", line))
        # A name alone is explained by what is below it, and words without one are about all that was asked.
        named = (found or above or [EVERYTHING]) if words else []
        above = found or above
        yield from (Reason(files=name, why=line.strip("| ")) for name in named)


def _of_task(reply: str, loop: Loop, task: str | None) -> Claims:
    from bydawn.core.sections import promise_of
    from bydawn.core.task_folder import Claimed, status_of  # most loops have no task folder

    promise = promise_of(loop)
    said = status_of(reply, promise.token if promise else "", task or "")
    asks = said is not None and said.status == Claimed.BLOCKED
    blocked = blocked_words(reply) or (("; ".join(said.blockers) or said.summary) if said and asks else "")
    if said and said.status == Claimed.DONE and blocked:
        said = None  # a blocked task is not done, whatever the last line says
    return Claims(task=said, blocked=blocked)


def blocked_words(reply: str) -> str | None:
    """The text of the reply's BLOCKED section; None if there is none, or if it says that nothing is blocked."""
    if "blocked" not in reply.lower():
        return None  # almost always, and no parser is loaded
    blocks = markdown.of_reply(reply).blocks
    for index, block in enumerate(blocks):
        if (lines := _opened(block)) is None:
            continue
        said = filter(None, (" ".join(line.split()) for line in _section(lines, blocks, index)))
        text = next(said, "")
        if says_nothing(text):
            continue
        while len(text) <= _LONGEST and (more := next(said, None)):
            text += f"\n{more}"
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return None


def says_nothing(words: str) -> bool:
    """Do the words after "blocked:" mean that nothing is: none, no, n/a?

    >>> says_nothing("None. All tests pass."), says_nothing("No key for the API.")
    (True, False)
    """
    return re.fullmatch(_NOTHING, words) is not None


def _opened(block: Block) -> list[str] | None:
    """What a block says after the word, if it opens a section; lists, tables and quotes never do."""
    if block.within == ("heading",):
        heading = re.fullmatch(_HEADING, block.text)
        return [(heading["words"] or heading["aside"] or "").strip(" \t*_")] if heading else None
    if block.within == ("paragraph",):
        lines = block.text.split("\n")
        for number, line in enumerate(lines):
            if opening := re.fullmatch(_BARE, line.strip()) or re.fullmatch(_BOLD, line.strip()):
                first = opening.groupdict().get("words") or ""
                return [first.strip(" \t*_"), *lines[number + 1 :]]
    return None


def _section(lines: list[str], blocks: tuple[Block, ...], index: int) -> Iterator[str]:
    """The lines of a section, up to the next heading of its level or another field of a status block."""
    level = blocks[index].level or _BELOW_HEADINGS
    for position in range(index, len(blocks)):
        block = blocks[position]
        if position > index:
            if 0 < block.level <= level:
                return
            lines = _seen(block).split("\n")
        for number, line in enumerate(lines):
            if re.fullmatch(_OTHER_FIELD, line):
                return
            yield f"- {line}" if block.begins_item and number == 0 else line


def _seen(block: Block) -> str:
    return "" if block.type == "html_block" else markdown.without_comments(block.text)
