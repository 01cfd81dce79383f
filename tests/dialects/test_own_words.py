"""What a tool says at every end is in its own words: no other program's commands, no flags that it has not."""

import re
from importlib import import_module

import click
import pytest
from msgspec.structs import replace

from bydawn import dialects as tools
from bydawn.core.loop import SpokenDialect
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import End
from dialects import codex_loop_made, strict_made, waylon_made
from dialects.rloop_made import LOOP, WORDS
from operations.stories import stopped

LOOPS = {
    "rloop": replace(LOOP, dialect=SpokenDialect(name="rloop", words=WORDS | {"git": "yes"})),
    "codex-autorunner": replace(LOOP, dialect=SpokenDialect(name="codex-autorunner", words=WORDS)),
    "waylon-smithers": waylon_made.smithers(),
    "codex-loop": codex_loop_made.a_project(),
    "strict-agent-loop": strict_made.a_task(),
}


def said(name: str) -> list[str]:
    """Reasons and next steps for every rule and end there is."""
    dialect, texts = tools.find(name), set[str]()
    for rule in Rule:
        for end in End:
            fact = stopped(end, rule, "it did not go on")
            steps = dialect.next_steps(LOOPS[name], LoopState(), fact)
            texts |= {dialect.reason(fact), *(step.command for step in steps), *(step.why for step in steps)}
    return sorted(texts - {""})


def flags_of(command: click.Command) -> set[str]:
    """Every option that its own `--help` has."""
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    own = {flag for each in command.params if isinstance(each, click.Option) for flag in each.opts}
    return own.union(*map(flags_of, inner))


@pytest.mark.parametrize("name", LOOPS)
def test_next_steps_name_no_other_program_and_no_flag_that_it_has_not(name: str) -> None:
    commands: click.Command = import_module(f"bydawn.cli.dialects.{tools.TABLE[name].module}").COMMANDS
    known = flags_of(commands)
    for text in said(name):
        assert not re.search(r"\bbydawn\b|\brounds?\b|\bloop \d", text), text
        if text.startswith(f"{name} "):
            assert set(re.findall(r" (--[a-z-]+)", text)) <= known, text
