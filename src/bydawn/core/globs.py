"""Which files a glob protects: exactly as git understands it (gitglossary, "pathspec"), without asking git."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache

import msgspec

ALWAYS_PROTECTED = ("bydawn.toml",)  # settings that say what the next loop here runs


def is_protected(path: str, globs: Sequence[str]) -> bool:
    """Does one of these globs match this file, or a folder it is in? A `*` in the path is a number."""
    name = "/".join(_steps(path.replace("*", "1")))
    return any(_way_down(name.encode("utf-8", "surrogateescape"), globs))


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


class Rest(msgspec.Struct, frozen=True):
    """What is left of a glob in some folder: one step for each name on the way. A literal one means itself."""

    steps: tuple[bytes, ...]
    literal: bool = False


_ANYTHING = Rest((b"**",))
_EVERYTHING = frozenset({_ANYTHING})


def rests(globs: Iterable[str]) -> frozenset[Rest]:
    """Where matching begins. A glob also counts as a plain name: `app/[id].tsx` is a real file name."""
    found: set[Rest] = set()
    for glob in globs:
        steps = tuple(step.encode("utf-8", "surrogateescape") for step in _steps(glob))
        if glob and b".." not in steps:
            found.add(Rest(steps, literal=True))
            found.update(map(Rest, _spelled_out((*steps, b"**") if glob.endswith("/") else steps)))
    return frozenset(rest if rest.steps else _ANYTHING for rest in found)


def _spelled_out(steps: tuple[bytes, ...]) -> Iterable[tuple[bytes, ...]]:
    """`a**` in the first step with a wildcard also goes down, but nowhere else."""
    first = next((number for number, step in enumerate(steps) if re.search(rb"[*?[\\]", step)), len(steps))
    head, tail = steps[:first], steps[first + 1 :]
    if first == len(steps) or not (found := re.fullmatch(rb"([^*?[\\]+)\*\*+", steps[first])):
        return [steps]
    name = found[1]
    below = (*head, name + b"*", b"**", *tail)
    return [below, *_spelled_out((*head, name + tail[0], *tail[1:]))] if tail else [below, (*head, name + b"*")]


def one_down(rests: frozenset[Rest], name: bytes) -> tuple[bool, frozenset[Rest]]:
    """Is what has this name protected, and what is left to match below it?"""
    return (True, rests) if rests is _EVERYTHING else _looked_up(rests, name)


@lru_cache(1000)
def _looked_up(rests: frozenset[Rest], name: bytes) -> tuple[bool, frozenset[Rest]]:
    found = [each for rest in rests for each in _one_down(rest, name)]
    return None in found, _EVERYTHING if _ANYTHING in found else frozenset(rest for rest in found if rest)


def matches(path: bytes, globs: Iterable[str]) -> bool:
    """Does one of these globs protect this file?"""
    return [*_way_down(path, globs)][-1]


def _way_down(path: bytes, globs: Iterable[str]) -> Iterator[bool]:
    """For each folder on the way to a file, and for the file: does one of these globs match it?"""
    left = rests(globs)
    for name in path.split(b"/"):
        matched, left = one_down(left, name)
        yield matched


def _one_down(rest: Rest, name: bytes) -> Iterable[Rest | None]:
    """None for a match."""
    first, further = rest.steps[0], rest.steps[1:]
    if not rest.literal and re.fullmatch(rb"\*\*+", first):
        yield rest
        yield from _one_down(Rest(further), name) if further else (None,)
    elif first == name or (not rest.literal and _pattern(first).fullmatch(name)):  # `app/[id]/**`: a real folder
        if further:
            yield Rest(further, rest.literal)
        else:
            yield None
            if rest.literal:  # everything below a folder that is named
                yield _ANYTHING


_CLASSES = {
    b"alnum": b"0-9A-Za-z", b"alpha": b"A-Za-z", b"blank": b" \\t", b"cntrl": b"\\x00-\\x1f\\x7f", b"digit": b"0-9",
    b"graph": b"!-~", b"lower": b"a-z", b"print": b" -~", b"punct": b"!-/:-@\\[-`{-~", b"space": b" \\t-\\r",
    b"upper": b"A-Z", b"xdigit": b"0-9A-Fa-f",
}  # fmt: skip
_NEVER = re.compile(rb"(?!)")
_TOKEN = re.compile(rb"\*+|\?|\[([!^]?)(\]?(?:\[:\w*:\]|\\.|[^]\\])*)\]|\\.|.", re.DOTALL)
_MEMBER = re.compile(rb"\[:(\w*):\]|(\\.|[^\\])(?:-(\\.|[^\\]))?", re.DOTALL)


@cache
def _pattern(step: bytes) -> re.Pattern[bytes]:
    """One step of a glob as a pattern of bytes; what git cannot read matches nothing."""
    try:
        return re.compile(b"".join(map(_translated, _TOKEN.finditer(step))), re.DOTALL)
    except (re.error, KeyError):
        return _NEVER


def _translated(token: re.Match[bytes]) -> bytes:
    text, members = token[0], token[2]
    if members is not None:
        inside = b"".join(_member(member) for member in _MEMBER.finditer(members))
        return b"[" + (b"^" if token[1] else b"") + inside + b"]"
    if text in (b"[", b"\\"):
        raise KeyError(text)  # it has no end
    return {b"*": b".*", b"?": b"."}.get(text[:1]) or re.escape(text[-1:])


def _member(member: re.Match[bytes]) -> bytes:
    name, first, last = member.groups()
    if name is not None:
        return _CLASSES[name]
    return re.escape(first[-1:]) + (b"-" + re.escape(last[-1:]) if last else b"")
