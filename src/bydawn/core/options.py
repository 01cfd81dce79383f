"""Fields of a struct that are options of a command, written once: `rounds: Annotated[int, Typed("How many.", "N")]`."""

from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import msgspec


class Typed(msgspec.Struct, frozen=True):
    """How a person types a field."""

    what: str
    metavar: str | None = None
    flag: str = ""  # if it is not called like the field
    choices: tuple[str, ...] = ()


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A field that is typed."""

    field: str
    flag: str
    kind: type
    many: bool  # is it repeatable?
    least: float | None
    most: float | None
    typed: Typed
    default: Any

    @property
    def help(self) -> str:
        """What it is, and what applies without it."""
        usual = f"{self.default:g}" if isinstance(self.default, float) else str(self.default or "")
        return self.typed.what + (f"  [default: {usual}]" if usual and not self.many else "")


def options_of(struct: type[msgspec.Struct]) -> dict[str, Option]:
    """Those of a struct, by their field."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(struct)}
    found = {}
    for name, hint in get_type_hints(struct, include_extras=True).items():
        parts = [*parts_of(hint)]
        for typed in (each for each in parts if isinstance(each, Typed)):
            limits = [each for each in parts if isinstance(each, msgspec.Meta)]
            found[name] = Option(
                field=name,
                flag=typed.flag or f"--{name.replace('_', '-')}",
                kind=next((each for each in parts if each in (bool, int, float)), str),
                many=tuple in parts,
                least=next((each.ge for each in limits), None),
                most=next((each.le for each in limits), None),
                typed=typed,
                default=None if defaults[name] is msgspec.NODEFAULT else defaults[name],
            )
    return found


def parts_of(hint: Any) -> Iterator[Any]:
    """An annotation and everything in it."""
    yield get_origin(hint) or hint
    for each in get_args(hint):
        yield from parts_of(each)
