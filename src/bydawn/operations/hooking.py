"""Run a person's own commands after something other than a round, such as `init`."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bydawn import agents
from bydawn.assemble import inherited
from bydawn.core import hooks
from bydawn.core.loop import COOKIE
from bydawn.core.redact import Secrets
from bydawn.core.text import last_part, plain
from bydawn.process.shell import run_alone


class HookResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one of these commands ended."""

    command: str
    exit_code: int | None  # none if it was ended because its time was over
    output: str  # the end of what it printed, without secrets
    seconds: float

    @property
    def timed_out(self) -> bool:
        return self.exit_code is None


def run_after_init(
    commands: Sequence[str],
    folder: Path,
    seconds: float,
    env: Mapping[str, str],
    secrets: Secrets,
    *,
    block: bool = False,
) -> list[HookResult]:
    """Run them one after the other, as the hooks of a loop are run: with these variables and without the agents' keys.

    With `block` none runs after one that failed.
    """
    without = (agents.KEYS & os.environ.keys()) | (os.environ.keys() - inherited().keys())
    told = {**hooks.fit(env, secrets.hide, [str(folder)]), COOKIE: "init.hook"}
    results: list[HookResult] = []
    for command in commands:
        started = time.monotonic()
        code, output = run_alone(secrets.reveal(command), folder, seconds, told, without)
        said = last_part(secrets.hide(plain(output)), hooks.EXCERPT)
        took = round(time.monotonic() - started, 3)
        results.append(HookResult(command=command, exit_code=code, output=said, seconds=took))
        if code != 0 and block:
            break
    return results
