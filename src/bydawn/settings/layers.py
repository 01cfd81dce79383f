"""Which value of a setting wins, where it came from, and which values it hides."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.kinds import Value
from bydawn.core.values import Act, Advice
from bydawn.settings.setting import Layer, Setting, looser
from bydawn.settings.table import BY_KEY, TABLE


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A value and where it was set: `bydawn.toml:3`, `BYDAWN_ROUNDS`, `--rounds`, `default`."""

    key: str
    value: Value | None
    layer: Layer
    where: str
    text: str = ""  # of the file that an `@FILE` names
    raises: bool = False  # a number above the one that a person has set

    @property
    def setting(self) -> Setting:
        return BY_KEY[self.key]

    @property
    def shown(self) -> str:
        return self.setting.shown(self.value)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake in a setting; `where` is the file and line, or the variable."""

    where: str
    what: str
    cause: str = ""
    hint: str = ""

    def error(self, others: int = 0) -> UserError:
        more = Advice(f"; {others} more: ", Act("config check")) if others else ""
        return UserError(f"{self.where}: {self.what}", cause=self.cause, hint=Advice(self.hint, more))


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one place sets."""

    given: tuple[Given, ...] = ()
    problems: tuple[Problem, ...] = ()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting, each with all places that set it, the strongest first."""

    given: dict[str, tuple[Given, ...]]
    problems: tuple[Problem, ...] = ()

    def __getitem__(self, key: str) -> Given:
        """The one that wins."""
        return self.given[key][0]

    def text(self, key: str) -> str | None:
        value = self[key].value
        return value if isinstance(value, str) else None

    def texts(self, key: str) -> tuple[str, ...]:
        value = self[key].value
        return value if isinstance(value, tuple) else ()

    def number(self, key: str) -> float:
        value = self[key].value
        return value if isinstance(value, int | float) else 0

    def switch(self, key: str) -> bool:
        return self[key].value is True

    @property
    def has_project(self) -> bool:
        """Does the project's file set anything?"""
        return any(given.layer is Layer.PROJECT for rows in self.given.values() for given in rows)

    def refuse_problems(self) -> None:
        """Nothing runs with settings that are not understood."""
        if self.problems:
            raise self.problems[0].error(len(self.problems) - 1)


_STRENGTH = [*Layer]


def settle(readings: Sequence[Reading], now: datetime) -> Settings:
    """Stack the layers. If a project loosens a limit, that is a problem, unless something stronger hides it."""
    given = {row.key: [Given(key=row.key, value=row.default, layer=Layer.DEFAULT, where="default")] for row in TABLE}
    for reading in readings:
        for each in reading.given:
            given[each.key].append(each)
    settled = {
        key: tuple(sorted(rows, key=lambda row: _STRENGTH.index(row.layer), reverse=True))
        for key, rows in given.items()
    }
    problems = [problem for reading in readings for problem in reading.problems]
    problems += [problem for rows in settled.values() for problem in _loosened(rows, now)]
    return Settings(given=settled, problems=tuple(problems))


def _loosened(rows: Sequence[Given], now: datetime) -> Iterable[Problem]:
    winner = rows[0]
    for user in rows[1:]:
        if (winner.layer, user.layer) == (Layer.PROJECT, Layer.USER) and looser(
            winner.setting, winner.value, user.value, now
        ):
            flag = f"; to override it once: {winner.setting.flags[-1]}" if winner.setting.flags else ""
            yield Problem(
                where=winner.where,
                what=f"{winner.key} loosens what you set yourself",
                cause=f"it says {_quoted(winner)}, {user.where} says {_quoted(user)}; a repository may only tighten",
                hint=f"change one of the two{flag}",
            )


def _quoted(given: Given) -> str:
    return " and ".join(f"`{line}`" for line in given.shown.splitlines()) or "nothing"
