"""Why a command of ours did not begin, for the program of ours that started it: JSON on a pipe of its own."""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

from bydawn.core.errors import OwnFailure, UserError

VARIABLE = "BYDAWN_ERRORS"  # its value: the descriptor to write to
_LONGEST = 10_000  # characters of a part: all of them fit into a pipe
_to = -1


def take_over() -> None:
    """In the command: nothing that it starts gets the pipe."""
    global _to
    with suppress(ValueError, OSError):
        given = int(os.environ.pop(VARIABLE, ""))
        os.set_inheritable(given, False)
        _to = given


def tell(code: int, what: str, cause: str, hint: str) -> None:
    """In the command, at its end."""
    if _to < 0:
        return
    import msgspec  # a guardian, which takes the pipe over too, stays without it

    with suppress(OSError):  # the one who started us is gone
        os.write(_to, msgspec.json.encode((*(text[:_LONGEST] for text in (what, cause, hint)), code)))


class Ear:
    """In the program that starts a command."""

    def __enter__(self) -> Self:
        self._from, self.fd = os.pipe()
        os.set_blocking(self._from, False)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._from)
        os.close(self.fd)

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        return {**given, VARIABLE: str(self.fd)}

    def heard(self) -> UserError | None:
        """What the command said before it ended, if that was an error of ours."""
        import msgspec

        with suppress(BlockingIOError, msgspec.DecodeError):
            what, cause, hint, code = msgspec.json.decode(os.read(self._from, 1 << 16), type=tuple[str, str, str, int])
            return UserError(what, cause=cause, hint=hint, exit_code=code)
        return None

    def error(self, code: int, printed: bytes = b"") -> UserError:
        """Why it failed: in its own words, or else the end of what it printed."""
        last = printed.decode(errors="replace").strip()[-500:]
        return self.heard() or OwnFailure("the command failed", cause=last or f"exit code {code}")
