"""What a setting is: its kind, where it can be set, and which of two values is the safer one."""

from datetime import datetime
from enum import StrEnum
from math import inf

import msgspec

from bydawn.core import kinds
from bydawn.core.kinds import Kind, Value


class Layer(StrEnum):
    """Where a value can be set; later ones are stronger."""

    DEFAULT = "default"
    USER = "user"
    PROJECT = "project"
    ENV = "environment"
    DIALECT = "dialect"  # the file of another tool that bydawn speaks for
    FLAG = "flag"


ANYWHERE = frozenset(Layer) - {Layer.DEFAULT}
NOT_IN_A_PROJECT = ANYWHERE - {Layer.PROJECT}  # a repository may not set it
NOT_AS_A_FLAG = NOT_IN_A_PROJECT - {Layer.FLAG}  # every user of the machine can read a command line


class Heading(StrEnum):
    """Where the help of `run` lists an option, in this order."""

    GOAL = "Goal"
    DONE = "Done when"
    AGENT = "Agent"
    LIMITS = "Limits"
    SAFETY = "Safety"
    HOOKS = "Hooks"
    OUTPUT = "Output"
    TIMEOUTS = "Timeouts"  # only `--help-all` shows them


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    key: str
    kind: Kind
    what: str
    flags: tuple[str, ...]
    heading: Heading | None = None
    field: str = ""  # of `Loop`: `sandbox`, `limits.rounds`; empty if it is not a single field
    raises: str = ""  # the help of `resume`'s option of this name, which sets a new limit
    default: Value | None = None
    otherwise: str = ""  # what applies where nothing is set, if that is not a value that a person could have given
    metavar: str | None = None
    layers: frozenset[Layer] = ANYWHERE
    commands: bool = False  # it runs or steers something: in a repository it has no effect until trusted
    tighter: str = ""  # "less" or "more" of it is safer: a repository may only move the user's value that way
    ladder: tuple[str, ...] = ()  # its words, from the safest on
    never_in_project: tuple[str, ...] = ()  # values that only a person can choose
    secret: bool = False  # never shown, and no child gets its BYDAWN_ variable

    @property
    def variable(self) -> str:
        return f"BYDAWN_{self.key.upper().replace('.', '_')}"

    @property
    def assignment(self) -> str:
        """An example of how a file sets it."""
        example = self.kind.example
        quoted = f'"{example}"' if str in (self.kind.literal or (str,)) else example
        return f"{self.key} = {f'[{quoted}]' if self.kind.many else quoted}"

    @property
    def usual(self) -> str:
        """What applies where nothing is set."""
        return self.otherwise or self.shown(self.default)

    def shown(self, value: Value | None) -> str:
        """The value as a person would write it."""
        if value is None:
            return ""
        return "[secret]" if self.secret else self.kind.write(value)


def looser(setting: Setting, value: Value | None, than: Value | None, now: datetime) -> bool:
    """Is a value less safe than another? A limit of 0, or none, is the least safe."""
    if setting.tighter == "more":
        if isinstance(value, int | float) and isinstance(than, int | float):
            return value < than
        return not set(_items(than)) <= set(_items(value))
    if setting.kind is kinds.BUDGET and isinstance(value, str) and isinstance(than, str):
        (unit, amount), (other, most) = kinds.budget(value), kinds.budget(than)
        return unit != other or amount > most
    return setting.tighter == "less" and _amount(setting, value, now) > _amount(setting, than, now)


def _items(value: Value | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _amount(setting: Setting, value: Value | None, now: datetime) -> float:
    if value in setting.ladder:
        return setting.ladder.index(str(value))
    if isinstance(value, str):
        found = kinds.next_moment(value, now)
        return found.timestamp() if found else inf
    return float(value) if isinstance(value, int | float) and value else inf
