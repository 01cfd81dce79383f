"""What a repository's settings could run or loosen, and whether a person has agreed to it."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import msgspec

from bydawn.settings.layers import Given, Settings
from bydawn.settings.table import Layer, looser

Shown = dict[str, list[str]]  # what a person saw of each setting, line by line


class Powers(msgspec.Struct, frozen=True, kw_only=True):
    """What a repository asks to be trusted with."""

    commands: tuple[Given, ...] = ()  # these make up the digest
    loosened: tuple[Given, ...] = ()  # numbers less safe than our own; changing one does not ask again

    @property
    def empty(self) -> bool:
        return not (self.commands or self.loosened)

    @property
    def digest(self) -> str:
        values = sorted((given.key, given.value, given.text) for given in self.commands)
        return hashlib.sha256(msgspec.json.encode(values)).hexdigest()[:32]


def powers_of(settings: Settings, now: datetime) -> Powers:
    """Everything in the project's file that needs trust, even if something stronger hides it."""
    rows = [given for each in settings.given.values() for given in each if given.layer is Layer.PROJECT]
    return Powers(
        commands=tuple(given for given in rows if given.setting.commands),
        loosened=tuple(
            given
            for given in rows
            if not given.setting.commands and looser(given.setting, given.value, given.setting.default, now)
        ),
    )


def in_force(powers: Powers, settings: Settings) -> tuple[Given, ...]:
    """Those that would have an effect: nothing stronger hides them."""
    return tuple(given for given in (*powers.commands, *powers.loosened) if settings[given.key] is given)


def difference(before: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> list[str]:
    """What changed since trust was given, as lines with `-` and `+`."""
    from difflib import ndiff  # only needed when asking again

    lines = []
    for key in sorted({*before, *now}):
        rows = ndiff(before.get(key, []), now.get(key, []))
        lines += [f"{row[0]} {key} = {row[2:]}" for row in rows if row[0] in "+-"]
    return lines
