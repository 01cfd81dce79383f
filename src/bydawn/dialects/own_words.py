"""Sentences of ours in another tool's words: its commands, its word for a round, its name, and no flags but its own."""

import re
from collections.abc import Callable, Container, Mapping
from types import MappingProxyType

from bydawn.core.errors import UserError
from bydawn.core.facts import LoopStopped
from bydawn.core.rules import Rule
from bydawn.core.values import OURS, Act, Advice

# The reasons of these count rounds, and quote no one.
_COUNTING = (
    *(Rule.ROUNDS, Rule.ROUNDS_THIS_RUN, Rule.NO_PROGRESS, Rule.NO_TASK_DONE, Rule.STILL_RED, Rule.CHECK_FAILURES),
    Rule.COMMANDS_FAILED,
)
_QUOTED = r"""'[^']*'|"[^"]*"|“[^”]*”|`[^`]*`"""
_ROUND = re.compile(rf"({_QUOTED})|(?<![\w./-])(?:([Aa]) )?round(s?)\b(?![/-])")
_NAME = re.compile(rf"({_QUOTED})|(?<![\w./-])bydawn\b(?![./@-])")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
_HINT = re.compile(r" \((?:see )?--[a-z][^()]*\)")  # an option of ours, named in passing
# What is ours in a sentence that may quote others.
_SURE = {
    "the round's time limit": "the {}'s time limit",
    " rounds in a row": " {}s in a row",
    "; in round ": "; in {} ",
}

NONE: Mapping[str, str] = MappingProxyType({})
Own = Callable[[Act], Act | None]  # the tool's own command for one of ours, if it has one


def of_rounds(text: str, unit: str) -> str:
    """A sentence that is all ours."""

    def its_own(found: re.Match[str]) -> str:
        quoted, article, many = found.groups()
        before = f"{article}{'n' * (unit[0] in 'aeiou')} " if article else ""
        return quoted or f"{before}{unit}{many}"

    return _ROUND.sub(its_own, text)


def reason(stopped: LoopStopped, unit: str) -> str:
    """Why a loop stopped."""
    counts = stopped.decided.rule in _COUNTING
    return of_rounds(stopped.reason, unit) if counts else in_passing(stopped.reason, unit)


def in_passing(text: str, unit: str, own: Own = lambda _: None, words: Mapping[str, str] = NONE) -> str:
    """A sentence that may quote others: only what is surely ours changes, and `words` of the tool's own."""
    if isinstance(text, Advice):
        parts = (
            own(part) or part if isinstance(part, Act) else in_passing(part, unit, own, words) for part in text.parts
        )
        return Advice(*parts)
    for ours, its_own in (*_SURE.items(), *words.items()):
        text = text.replace(ours, its_own.format(unit))
    return _HINT.sub("", text)


def retell(error: UserError, name: str, unit: str, own: Own, foreign: Container[str]) -> None:
    """An error as that tool says it; a hint with a command or a `foreign` flag that it lacks is of no use there."""

    def told(text: str) -> str:
        return _NAME.sub(lambda found: found[1] or name, of_rounds(_HINT.sub("", text), unit))

    error.what, error.cause = told(error.what), told(error.cause)
    parts = error.hint.parts if isinstance(error.hint, Advice) else (error.hint,)
    said = [own(part) if isinstance(part, Act) and part.program == OURS else part for part in parts]
    texts = [told(part) if isinstance(part, str) and not isinstance(part, Act) else part for part in said]
    flags = (flag for part in texts if part and not isinstance(part, Act) for flag in _OPTION.findall(part))
    if None in texts or any(flag in foreign for flag in flags):
        error.hint = Advice(Act("--help", program=name), " says what else can help")
    else:
        error.hint = Advice(*(part for part in texts if part is not None))
