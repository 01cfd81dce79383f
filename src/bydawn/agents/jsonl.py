"""JSON lines from any program, read field by field as a person configured it."""

from collections.abc import Iterable
from typing import Any

import msgspec

from bydawn.agents.command import REPLY_LENGTH, judged
from bydawn.agents.program import without_result
from bydawn.core.agent import Activity, Ended, Event, Message, Spent
from bydawn.core.outcome import Exit, Outcome, imposed
from bydawn.core.text import plain
from bydawn.core.values import Usage

_COUNTS = ("tokens_in", "tokens_cached", "tokens_out")


class JsonReader:
    """Takes the last text as the reply, and the last figures as the usage."""

    def __init__(self, fields: Iterable[str]) -> None:
        self._paths = dict(field.split("=", 1) for field in fields)
        self._reply: str | None = None
        self._session: str | None = None
        self._used: dict[str, Any] = {}
        self._skipped = 0

    def read(self, line: bytes) -> Iterable[Event]:
        try:
            found = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return (Activity(plain(line)),) if line.strip() else ()
        events: list[Event] = []
        text, session = self._at(found, "text"), self._at(found, "session")
        if isinstance(text, str) and text.strip():
            self._reply = plain(text)[-REPLY_LENGTH:]
            events.append(Message(self._reply))
        if isinstance(session, str) and session.strip():
            self._session = session
        if figures := dict(self._figures(found)):
            self._used |= figures
            events.append(Spent(Usage(**self._used)))
        return events

    def skipped(self, size: int) -> None:
        self._skipped += size

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:
        outcome, detail = imposed(exit_) or judged(exit_, stderr_tail)
        if outcome is Outcome.OK and self._reply is None:
            lacking = f"a line with the field {self._paths.get('text', 'text')!r}"
            outcome, detail = without_result(exit_, self._skipped, lacking) or (outcome, detail)
        return Ended(
            outcome=outcome,
            detail=detail,
            reply=(self._reply or "") if outcome is Outcome.OK else "",
            session=self._session,
            usage=Usage(**self._used) if self._used else None,
        )

    def _figures(self, found: object) -> Iterable[tuple[str, int | float]]:
        """Only real numbers: a count must be whole."""
        for name in (*_COUNTS, "cost_usd"):
            value = self._at(found, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
                continue
            if name == "cost_usd" or isinstance(value, int):
                yield name, value

    def _at(self, found: Any, name: str) -> object:
        """The value at a path such as `content.0.text`; None if there is nothing."""
        for step in self._paths[name].split(".") if name in self._paths else ("",):
            if isinstance(found, dict):
                found = found.get(step)
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return found
