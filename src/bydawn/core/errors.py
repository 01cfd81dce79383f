"""Errors a person can fix, in three parts: what happened, why, and what to do."""

from typing import Self


class UserError(Exception):
    """Something the person at the keyboard can fix; `hint` says how."""

    exit_code = 2

    def __init__(self, what: str, *, cause: str = "", hint: str = "", exit_code: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code

    @classmethod
    def of(cls, error: "UserError") -> Self:
        """The same words, as an error of this kind."""
        return cls(error.what, cause=error.cause, hint=error.hint)

    @property
    def sentence(self) -> str:
        """All three parts in one line."""
        return ": ".join(filter(None, (self.what, self.cause))) + (f" → {self.hint}" if self.hint else "")


class NotFound(UserError):
    """There is no such loop, round, task or document."""


class OwnFailure(UserError):
    """Not the person's mistake: a bug of ours, or trouble with the machine (a full disk, a damaged ledger)."""

    exit_code = 1
