"""What a person can do, as a value: commands, buttons, forms and hints are made from it, and nothing is read back."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Self

from bydawn.core.text import PLACEHOLDER

OURS = "bydawn"
Flag = str | int | bool | None | Sequence[str]
_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)  # words that no shell changes


class Act(str):
    """A verb, what it is done to, and how. As text it is the command to paste: `bydawn tasks skip demo 3`."""

    __slots__ = ("flags", "loop", "names", "program", "verb")
    verb: str
    loop: str
    names: tuple[str, ...]
    flags: tuple[tuple[str, str], ...]
    program: str

    def __new__(
        cls,
        verb: str,
        loop: str = "",
        *names: str,
        program: str = OURS,
        flags: Mapping[str, Flag] = MappingProxyType({}),
        **more: Flag,
    ) -> Self:
        """`round=3` is `--round 3`, `C=folder` is `-C folder`, `accept=True` is `--accept`; what is empty goes."""
        flags = {**flags, **more}
        words = [quoted(word) for word in (loop, *names) if word]
        self = super().__new__(cls, " ".join(filter(None, (program, verb, *words, spelled(flags)))))
        self.verb, self.loop, self.names, self.flags, self.program = verb, loop, names, tuple(_pairs(flags)), program
        return self

    @property
    def words(self) -> str:
        """What follows the program."""
        return self.removeprefix(f"{self.program} ")


class Advice(str):
    """A sentence that names acts; whoever shows it writes them as its reader has to type them."""

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Self:
        whole = tuple(each for part in parts for each in (part.parts if isinstance(part, Advice) else (part,)))
        self = super().__new__(cls, "".join(f"`{part}`" if isinstance(part, Act) else part for part in whole))
        self.parts = whole
        return self

    def __add__(self, more: str) -> "Advice":
        return Advice(self, more)


def written(text: str, write: Callable[[Act], str]) -> Advice:
    """The sentence with its acts as `write` has them."""
    parts = text.parts if isinstance(text, Advice) else (text,)
    return Advice(*(_shown(write(part)) if isinstance(part, Act) else part for part in parts))


def _shown(command: str) -> str:
    return command if isinstance(command, Act) else f"`{command}`"


def git(folder: str, *words: str) -> str:
    """A command of git for that folder; without one, for where it is pasted."""
    return " ".join(map(quoted, ("git", *(("-C", folder) if folder else ()), *words)))


class Quoted(str):
    """Words as a shell has to be given them."""

    __slots__ = ()


def quoted(word: str) -> Quoted:
    """The word as a shell reads it; what stands for a person's own words looks like them. Nothing is quoted twice."""
    if isinstance(word, Quoted):
        return word
    if word == PLACEHOLDER:
        return Quoted(f'"{word}"')
    is_safe = not word or _SAFE.fullmatch(word)
    return Quoted(word if is_safe else "'" + word.replace("'", "'\"'\"'") + "'")


def spelled(flags: Mapping[str, Flag]) -> str:
    """`--rounds +20 --accept`"""
    words = [(f"-{name}" if len(name) == 1 else f"--{name}", quoted(value)) for name, value in _pairs(flags)]
    return " ".join(word for pair in words for word in pair if word)


def _pairs(flags: Mapping[str, Flag]) -> Iterator[tuple[str, str]]:
    """Each flag with its value, empty if it has none."""
    for name, given in flags.items():
        for value in (given,) if given is None or isinstance(given, str | int) else given:
            if value is not None and value is not False and value != "":
                yield name.replace("_", "-"), "" if value is True else str(value)
