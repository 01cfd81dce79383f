"""What must never be written down: known values in every dress they come in, and what looks like a key.

Every search begins with a plain `find` of a few fixed bytes, which is thirty times as fast as one big pattern; a
pattern runs only where its beginning was found.
"""

import base64
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import msgspec

SHORTEST = 8  # characters; a shorter value would be found in every second word
LONGEST = 1 << 15  # bytes that can match a pattern
HIDDEN = "[secret]"

_NAME = re.compile(
    r"TOKEN(?!S)|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|(?:API|ACCESS|PRIVATE|SIGNING|ENCRYPTION)_?KEY|WEBHOOK"
    r"|_(?:KEY|PASS|PAT|DSN|PWD)$|^(?:PGPASS|DATABASE_URL)",
    re.IGNORECASE,
)
_A_PLACE = re.compile(r"_(?:FILE|PATH|DIR|SOCK|HOME)$", re.IGNORECASE)
_OURS = re.compile(r"^BYDAWN_.*(?:TOKEN|SECRET|PASS|KEY|DSN|URL|NOTIFY|WEBHOOK)")

# After `\n` in JSON a word begins, although a letter stands before it.
_START = rb"(?:(?<![A-Za-z0-9_-]%(a)s)|(?<=\\[nrtbf]%(a)s))"
_KEYS = (
    # (what it begins with, what follows); group 1 is hidden, or else the whole of it
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
    (b"earer ", rb"earer ([A-Za-z0-9._~+/-]{16,8192}=*)"),
    (b"PRIVATE KEY-----", rb"PRIVATE KEY-----(.{16,30000}?)-----END"),
)
_PATTERNS = {
    **{head: re.escape(head) + _START % {b"a": re.escape(head)} + rest for head, rest in _KEYS},
    **dict(_OTHERS),
}


@cache
def _pattern(head: bytes) -> re.Pattern[bytes]:
    """Compiled when its beginning is first met: most rounds meet none."""
    return re.compile(_PATTERNS[head], re.DOTALL)


Env = Mapping[str, str]
T = TypeVar("T")


class Unnamed(Exception):
    """A secret that stands in a setting and in no variable, so that nothing could be written in its place."""


class Secrets:
    """The secrets of one process: its environment's, the ones its user listed, and what looks like one."""

    def __init__(self, env: Env, literals: Iterable[str] = (), harmless: Iterable[str] = ()) -> None:
        self._names = dict(sorted(_of_environment(env), key=lambda row: -len(row[1])))
        self._env = env
        self._harmless = {text.encode() for text in harmless}
        values = {value for text in (*self._names.values(), *literals) for value in _parts(text)}
        dresses = {dress for value in values - {*harmless} for dress in _dresses(value)}
        self._values = sorted(dresses, key=lambda dress: (-len(dress), dress))

    @property
    def longest(self) -> int:
        """Bytes that a secret can have: as much must overlap where a text is cut into chunks."""
        return max(LONGEST, len(self._values[0]) if self._values else 0)

    def hide(self, text: str) -> str:
        """The text with something else in the place of each secret."""
        data = text.encode(errors="surrogatepass")
        spans = self.spans(data)
        if not spans:
            return text
        parts, end = [], 0
        for start, stop in spans:
            parts += [data[end:start], HIDDEN.encode()]
            end = stop
        return b"".join([*parts, data[end:]]).decode(errors="surrogatepass")

    def mask(self, data: bytearray) -> list[tuple[int, int]]:
        """Overwrite each secret where it stands, so that nothing else moves; where that was. Lines stay lines."""
        spans = self.spans(data)
        for start, stop in spans:
            data[start:stop] = re.sub(rb"[^\r\n]", b"*", data[start:stop])
        return spans

    def spans(self, data: bytes | bytearray) -> list[tuple[int, int]]:
        """Where secrets stand, in order, none overlapping another."""
        found = sorted({*self._known(data), *self._alike(data)})
        merged: list[tuple[int, int]] = []
        for start, stop in found:
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return merged

    def _known(self, data: bytes | bytearray) -> Iterator[tuple[int, int]]:
        for value in self._values:
            start = data.find(value)
            while start >= 0:
                yield start, start + len(value)
                start = data.find(value, start + 1)

    def _alike(self, data: bytes | bytearray) -> Iterator[tuple[int, int]]:
        for head in _PATTERNS:
            if head in data:
                for match in _pattern(head).finditer(data):
                    if match[match.lastindex or 0] not in self._harmless:
                        yield match.span(match.lastindex or 0)

    # -- settings, which have to work again tomorrow -------------------------------------------------------------------

    def refer(self, text: str) -> str:
        """The text with a reference in the place of each value of a variable; raises `Unnamed` for any other secret."""
        for name, value in self._names.items():
            text = text.replace(value, f"⟦env:{name}⟧")
        if self.spans(text.encode(errors="surrogatepass")):
            raise Unnamed
        return text

    def reveal(self, text: str) -> str:
        """The text with each reference replaced by the variable's value."""
        return _REFERENCE.sub(lambda match: self._env.get(match[1], match[0]), text)

    def missing(self, text: str) -> list[str]:
        """The variables that a text refers to and that are not there."""
        return [name for name in _REFERENCE.findall(text) if name not in self._env]


_REFERENCE = re.compile("⟦env:([A-Za-z_][A-Za-z0-9_]*)⟧")


def looks_secret(name: str) -> bool:
    """Does a variable of this name hold a secret?"""
    return bool(_NAME.search(name)) and not _A_PLACE.search(name)


def for_children(env: Env, ours: Iterable[str]) -> dict[str, str]:
    """The environment without bydawn's own secrets; the agent's are the agent's."""
    dropped = {*ours}
    return {name: value for name, value in env.items() if name not in dropped and not _OURS.search(name)}


def rewritten(value: T, change: Callable[[str], str]) -> T:
    """A value with every text in it changed; words of a fixed vocabulary stay."""
    return _rewritten(value, change)  # type: ignore[no-any-return]


def _rewritten(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else change(value)
    if isinstance(value, tuple):
        return tuple(_rewritten(item, change) for item in value)
    if isinstance(value, msgspec.Struct):
        fields = {name: _rewritten(getattr(value, name), change) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return value


def _of_environment(env: Env) -> Iterator[tuple[str, str]]:
    for name, value in env.items():
        if len(value) >= SHORTEST and looks_secret(name):
            yield name, value


def _parts(text: str) -> Iterator[str]:
    """A secret, each of its lines, and the password of an address: any of them alone would give it away."""
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
    """A value as it is, escaped for JSON (also twice), for an address, for a shell, as hex and within base64."""
    from urllib.parse import quote  # whoever has no secrets needs none of it

    raw = value.encode(errors="surrogatepass")
    if len(raw) < SHORTEST:
        return
    yield raw
    for ascii_ in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_)[1:-1]
        twice = json.dumps(once, ensure_ascii=ascii_)[1:-1]
        yield from (text.encode(errors="surrogatepass") for text in (once, twice, once.replace("/", "\\/")))
    yield from (quote(value, safe=safe, errors="replace").encode() for safe in ("", "/"))
    yield shlex.quote(value)[1:-1].encode(errors="surrogatepass") if "'" in value else raw
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    for shift in range(3):
        # Of three bytes that become four letters, those shared with a neighbour are left out.
        coded = base64.b64encode(b"\0" * shift + raw)
        stable = coded[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6]
        yield from (stable, stable.translate(bytes.maketrans(b"+/", b"-_")))
