"""Settings that hold secrets: a file of their own keeps their values, and `loop.json` only says that there are some."""

from collections.abc import Iterable, Iterator
from typing import Self

import msgspec

from bydawn.core.loop import Loop
from bydawn.core.redact import HIDDEN, looks_secret


class SecretSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The values; each field is one of `Loop`."""

    agent_env: tuple[str, ...] = ()

    @classmethod
    def of(cls, loop: Loop) -> Self:
        return cls(**{name: getattr(loop, name) for name in cls.__struct_fields__})

    @property
    def texts(self) -> Iterator[str]:
        """What must never be written anywhere else. The name of a variable says whether its value is a secret."""
        yield from (value for name, value in variables(self.agent_env).items() if looks_secret(name))

    @property
    def masked(self) -> Self:
        return type(self)(agent_env=tuple(f"{name}={HIDDEN}" for name in variables(self.agent_env)))

    def put_into(self, loop: Loop) -> Loop:
        return msgspec.structs.replace(loop, **msgspec.structs.asdict(self))


def variables(pairs: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE` as variables; of two with the same name, the last counts."""
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}
