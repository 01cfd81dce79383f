"""Hide secrets: known values in every encoding they appear in, and anything that looks like a key.

Every search starts with a plain `find` of a few fixed bytes, thirty times as fast as one big pattern; a
pattern only runs where its prefix was found.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import msgspec

SHORTEST = 8  # characters; a shorter value would match all over ordinary text
LONGEST = 1 << 15  # bytes a pattern can match
HIDDEN = "[secret]"

_NAME = re.compile(
    r"TOKEN(?!S)|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|(?:API|ACCESS|PRIVATE|SIGNING|ENCRYPTION)_?KEY|WEBHOOK"
    r"|_(?:KEY|PASS|PAT|DSN|PWD)$|^(?:PGPASS|DATABASE_URL)",
    re.IGNORECASE,
)
_A_PLACE = re.compile(r"_(?:FILE|PATH|DIR|SOCK|HOME)$", re.IGNORECASE)
_OURS = re.compile(r"^BYDAWN_.*(?:TOKEN|SECRET|PASS|KEY|DSN|URL|NOTIFY|WEBHOOK)")

# After `\n` in JSON a word begins, although a letter comes before it.
_START = rb"(?:(?<![A-Za-z0-9_]%(a)s)|(?<=\\[nrtbf]%(a)s))"
_KEYS = (
    # (prefix, what follows); group 1 is hidden, or else the whole match
    (b"sk-", rb"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"),
    (b"sk_live_", rb"[A-Za-z0-9]{16,}"),
    (b"rk_live_", rb"[A-Za-z0-9]{16,}"),
    *((b"gh%c_" % letter, rb"[A-Za-z0-9]{36,}") for letter in b"pousr"),
    (b"github_pat_", rb"[A-Za-z0-9_]{22,}"),
    (b"glpat-", rb"[A-Za-z0-9_-]{20,}"),
    (b"xox", rb"[abprs]-[A-Za-z0-9-]{10,}"),
    (b"AKIA", rb"[0-9A-Z]{16}(?![0-9A-Za-z])"),
    (b"AIza", rb"[0-9A-Za-z_-]{35}"),
    (b"npm_", rb"[A-Za-z0-9]{36}"),
    (b"hf_", rb"[A-Za-z0-9]{30,}"),
    (b"pypi-", rb"[A-Za-z0-9_-]{50,}"),
    (b"eyJ", rb"[A-Za-z0-9_-]{8,2048}\.eyJ[A-Za-z0-9_-]{8,16384}\.[A-Za-z0-9_-]{8,2048}"),
)
_OTHERS = (
    (b"://", rb"://([^\s/@:\"'<>\\]{0,256}:[^\s/@\"'<>\\]{1,1024})@"),
    (b"earer ", rb"earer ((?=[A-Za-z._~+/-]*[0-9])[A-Za-z0-9._~+/-]{16,8192}=*)"),
    (b"-----BEGIN ", rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(.{16,30000}?)-----END"),
)
_PATTERNS = {
    **{head: re.escape(head) + _START % {b"a": re.escape(head)} + rest for head, rest in _KEYS},
    **dict(_OTHERS),
}


@cache
def _pattern(head: bytes) -> re.Pattern[bytes]:
    """Compiled when its prefix is first found: most rounds find none."""
    return re.compile(_PATTERNS[head], re.DOTALL)


Env = Mapping[str, str]
T = TypeVar("T")


class Unnamed(Exception):
    """A secret in a setting but in no variable, so there is no name to store in its place."""


class Secrets:
    """The secrets of one process: from its environment, from its user's list, and anything that looks like one."""

    def __init__(self, env: Env, literals: Iterable[str] = (), harmless: Iterable[str] = ()) -> None:
        self._given = env, literals, harmless = env, (*literals,), (*harmless,)
        secret = [(name, value) for name, value in env.items() if len(value) >= SHORTEST and looks_secret(name)]
        # Ours are never substituted into anything; an agent that writes their names gets nothing.
        self._env = {name: value for name, value in env.items() if not _OURS.search(name)}
        self._names = {name: value for name, value in sorted(secret, key=_length) if name in self._env}
        self._harmless = {text.encode() for text in harmless}
        self._secret = {*dict(secret).values(), *literals} - {*harmless}
        values = {value for text in (*dict(secret).values(), *literals) for value in _parts(text)}
        dresses = {dress for value in values - {*harmless} for dress in _dresses(value)}
        self._values = sorted(dresses, key=lambda dress: (-len(dress), dress))

    def knowing(self, more: Iterable[str]) -> "Secrets":
        """The same, and these texts too."""
        if not (more := tuple(more)):
            return self
        env, literals, harmless = self._given
        return Secrets(env, (*literals, *more), harmless)

    @property
    def longest(self) -> int:
        """The longest a secret can be, in bytes: chunks of a text must overlap by that much."""
        return max(LONGEST, len(self._values[0]) if self._values else 0)

    def hide(self, text: str) -> str:
        """Replace each secret in the text."""
        data = text.encode(errors="surrogatepass")
        spans = self.spans(data)
        if not spans:
            return text
        parts, end = [], 0
        for start, stop in spans:
            parts += [data[end:start], HIDDEN.encode()]
            end = stop
        return b"".join([*parts, data[end:]]).decode(errors="surrogatepass")

    def are_in(self, data: bytes) -> bool:
        """Is a known secret in there? What only looks like one may be an example."""
        return any(self._known(data))

    def withheld(self, env: Env) -> frozenset[str]:
        """The variables that are not for an agent's code: a value would be hidden for its name, or for its looks.

        One that only contains a known secret stays: a weak password can be a part of the PATH.
        """
        return frozenset(
            name
            for name, value in env.items()
            if value in self._secret or any(self._alike(value.encode(errors="surrogatepass")))
        )

    def line_by_line(self) -> Callable[[str], str]:
        """`hide` for lines that arrive one by one: every line of a private key is hidden."""
        left = 0  # how many more letters may belong to a key that has begun

        def hide(line: str) -> str:
            nonlocal left
            within, left = left, _left_open(line, left)
            return HIDDEN if within or left else self.hide(line)

        return hide

    def mask(self, data: bytearray, begin: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """Overwrite, in place, each secret that begins within these bounds; return where. Lines stay lines."""
        spans = self.spans(data, begin, end)
        for start, stop in spans:
            data[start:stop] = re.sub(rb"[^\r\n]", b"*", data[start:stop])
        return spans

    def spans(self, data: bytes | bytearray, begin: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """Where the secrets are that begin within these bounds, in order, without overlaps."""
        last = len(data) if end is None else end
        matches = (*self._known(data), *self._alike(data))
        found = {(start, stop) for first, start, stop in matches if begin <= first < last}
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(found):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return merged

    def _known(self, data: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
        for value in self._values:
            start = data.find(value)
            while start >= 0:
                # A backslash that is itself escaped belongs to the text before: without it, that would be broken JSON.
                escaped = value[:1] == b"\\" and _backslashes(data, start) % 2
                yield start, start + bool(escaped), start + len(value)
                start = data.find(value, start + 1)

    def _alike(self, data: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
        """Where the match begins, and which part of it is secret."""
        for head in _PATTERNS:
            if head in data:
                for match in _pattern(head).finditer(data):
                    if match[match.lastindex or 0] not in self._harmless:
                        yield match.start(), *match.span(match.lastindex or 0)

    # -- settings, which have to work again tomorrow -------------------------------------------------------------------

    def refer(self, text: str) -> str:
        """Replace each value of a variable with a reference to it; raises `Unnamed` for any other secret."""
        for name, value in self._names.items():
            for dress in (value, value.replace("'", "'\"'\"'")):  # as it is, and inside a quoted word of a command
                text = text.replace(dress, f"⟦env:{name}⟧")
        return self.refuse(text)

    def refuse(self, text: str) -> str:
        """The text itself; raises `Unnamed` if it contains a secret."""
        if self.spans(text.encode(errors="surrogatepass")):
            raise Unnamed
        return text

    def reveal(self, text: str) -> str:
        """Replace each reference with the variable's value."""
        return _REFERENCE.sub(lambda match: self._env.get(match[1], match[0]), text)

    def missing(self, text: str) -> list[str]:
        """The variables a text refers to that are not set."""
        return [name for name in _REFERENCE.findall(text) if name not in self._env]


def _backslashes(data: bytes | bytearray, end: int) -> int:
    """How many there are right before a position."""
    start = end
    while start and data[start - 1] == 0x5C:
        start -= 1
    return end - start


_REFERENCE = re.compile("⟦env:([A-Za-z_][A-Za-z0-9_]*)⟧")


def looks_secret(name: str) -> bool:
    """Does a variable of this name hold a secret?"""
    return bool(_NAME.search(name)) and not _A_PLACE.search(name)


def for_children(env: Env, ours: Iterable[str]) -> dict[str, str]:
    """The environment without bydawn's own secrets; the agent keeps its own."""
    dropped = {*ours}
    return {name: value for name, value in env.items() if name not in dropped and not _OURS.search(name)}


def rewritten(value: T, change: Callable[[str], str]) -> T:
    """Apply a change to every text in a value; words of a fixed vocabulary stay."""
    return _rewritten(value, change)  # type: ignore[no-any-return]


def _rewritten(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else change(value)
    if isinstance(value, tuple):
        return tuple(_rewritten(item, change) for item in value)
    if isinstance(value, dict):
        return {_rewritten(name, change): _rewritten(each, change) for name, each in value.items()}
    if isinstance(value, msgspec.Struct):
        fields = {name: _rewritten(getattr(value, name), change) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return value


def _length(row: tuple[str, str]) -> tuple[int, str]:
    """The longest first: one secret may be part of another."""
    return -len(row[1]), row[0]


def _left_open(line: str, left: int) -> int:
    """How many letters may still belong to a private key after this line."""
    begun = line.rfind("-----BEGIN ")
    head = line.find("PRIVATE KEY-----", begun) if begun >= 0 else -1
    if head >= 0 and "-----END" not in line[head:]:
        return LONGEST
    return max(0, left - len(line)) if left and "-----END" not in line else 0


def _parts(text: str) -> Iterator[str]:
    """A secret, each of its lines, and the password in a URL: any of them alone would give it away."""
    if "://" in text:
        from urllib.parse import unquote, urlsplit

        try:
            password = urlsplit(text).password
        except ValueError:
            password = None
        yield from (part for part in {password or "", unquote(password or "")} if len(part) >= SHORTEST)
    yield text.strip()
    if "\n" in text:
        yield from (line.strip() for line in text.splitlines() if len(line.strip()) >= 2 * SHORTEST)


def _dresses(value: str) -> Iterator[bytes]:
    """A value as it is, escaped for JSON (also twice), Python, a URL, a form or a shell, as hex, in base64."""
    import base64  # only needed if there are secrets
    import json
    import shlex
    from urllib.parse import quote, quote_plus

    raw = value.encode(errors="surrogatepass")
    if len(raw) < SHORTEST:
        return
    yield raw
    if (bare := _bare(value)) is not None:
        yield bare
    yield from (text[1:-1].encode(errors="surrogatepass") for text in (repr(value), ascii(value)))
    for ascii_ in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_)[1:-1]
        twice = json.dumps(once, ensure_ascii=ascii_)[1:-1]
        yield from (text.encode(errors="surrogatepass") for text in (once, twice, once.replace("/", "\\/")))
    for quoted in (
        quote(value, "", errors="replace"),
        quote(value, errors="replace"),
        quote_plus(value, errors="replace"),
    ):
        yield quoted.encode()
        yield re.sub("%..", lambda match: match[0].lower(), quoted).encode()
    yield shlex.quote(value)[1:-1].encode(errors="surrogatepass") if "'" in value else raw
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    for shift in range(3):
        # Three bytes become four letters; letters shared with a neighbor are left out.
        coded = base64.b64encode(b"\0" * shift + raw)
        stable = coded[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6]
        yield from (stable, stable.translate(bytes.maketrans(b"+/", b"-_")))


def _bare(value: str) -> bytes | None:
    """The bytes of a variable that are not text; Python holds them as lone surrogates."""
    try:
        return value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return None
