"""Settings that hold secrets: a file of their own keeps their values, and `loop.json` only says that there are some."""

import re
from collections.abc import Iterable, Iterator
from typing import Self

import msgspec

from bydawn.core.loop import Loop
from bydawn.core.notices import place_of
from bydawn.core.redact import HIDDEN, looks_secret

_LONG = 16  # characters; a shorter part of an address may be any word


class SecretSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The values; each field is one of `Loop`."""

    agent_env: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()

    @classmethod
    def of(cls, loop: Loop) -> Self:
        return cls(**{name: getattr(loop, name) for name in cls.__struct_fields__})

    @property
    def texts(self) -> Iterator[str]:
        """What must never be written anywhere else.

        The name of a variable says whether its value is a secret; of an address, any long part can be one.
        """
        yield from (value for name, value in variables(self.agent_env).items() if looks_secret(name))
        for address in self.notify:
            shown = place_of(address)
            if address.strip("/") != shown:
                yield address
            yield from (part for part in re.split("[/?&=@:]", address) if len(part) >= _LONG and part not in shown)

    @property
    def masked(self) -> Self:
        return type(self)(
            agent_env=tuple(f"{name}={HIDDEN}" for name in variables(self.agent_env)),
            notify=tuple(f"{place_of(address)}/{HIDDEN}" for address in self.notify),
        )

    def put_into(self, loop: Loop) -> Loop:
        return msgspec.structs.replace(loop, **msgspec.structs.asdict(self))


def variables(pairs: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE` as variables; of two with the same name, the last counts."""
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}
