"""Whoever only looks does not wait for what they do not use."""

import subprocess
import sys

import click
import pytest

from bydawn.cli.command import Option
from bydawn.cli.main import LATER
from bydawn.cli.program import MODULES, bydawn
from driving import OK, Home

USES_ONE = """
import sys, threading
from bydawn.cli.main import load_later
load_later("textwrap", "os")
import textwrap
assert "dedent" not in vars(textwrap) and "path" in vars(sys.modules["os"])
said, go = [], threading.Barrier(4)
def use():
    go.wait()
    said.append(textwrap.dedent("  a"))
threads = [threading.Thread(target=use) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert said == ["a"] * 4, said
try:
    textwrap.nothing
except AttributeError as error:
    print(error)
"""


def loaded(home: Home, *arguments: str, code: int = 0) -> set[str]:
    """As a user has it: what a library finds here besides, mypy brought."""
    program = "import sys; sys.modules['typing_extensions'] = None; from bydawn.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-X", "importtime", "-c", program, *arguments]
    done = subprocess.run(command, env=home.env, cwd=home.repo, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize("arguments", [(), ("status",), ("status", "--json"), ("show",), ("tasks", "list")])
def test_a_look_does_not_load_what_straightens_help_texts(home: Home, arguments: tuple[str, ...]) -> None:
    """`inspect` is what click would load; it brings `ast` and `dis`."""
    home.run(home.rounds([OK]), "--rounds", "1")
    seen = loaded(home, *arguments)
    assert not seen & {*LATER, "ast", "dis", "tokenize", "rich", "asyncio"}
    # Nothing has crashed here, so nothing looks at all processes of the machine.
    assert "status" not in arguments or "bydawn.system.kernel" not in seen


@pytest.mark.parametrize("arguments", [("stop",), ("pause",), ("tell", "round half up"), ("config", "show")])
def test_who_steers_or_sets_something_loads_neither_the_engine_nor_the_work_tree(
    home: Home, arguments: tuple[str, ...]
) -> None:
    home.run(home.rounds([OK]), "--rounds", "1")
    ours = {name for name in loaded(home, *arguments) if name.startswith("bydawn")}
    assert not {name for name in ours if name.startswith(("bydawn.engine", "bydawn.worktree", "bydawn.assemble"))}
    assert len(ours) <= (49 if arguments[0] == "config" else 43), sorted(ours)


def test_a_loop_that_goes_on_loads_nothing_that_it_does_not_need(home: Home) -> None:
    """The agent waits for every import."""
    home.run(home.rounds([OK]), "--rounds", "1")
    seen = loaded(home, "resume", "--plain", "--rounds", "+1", code=4)
    assert "bydawn.engine.run" in seen
    assert not seen & {
        "statistics",
        "_hashlib",  # with OpenSSL
        "markdown_it",  # there is no list
        "tomlkit",
        "bydawn.core.new_task",
        "bydawn.operations.tasks",
        "bydawn.operations.loop_request",
    }


def test_every_option_is_of_the_quick_kind() -> None:
    """One that is not would load it for each call of its command."""
    tops = [bydawn.get_command(click.Context(bydawn), name) for name in MODULES]
    commands = [bydawn, *filter(None, tops)]
    commands += [sub for command in commands if isinstance(command, click.Group) for sub in command.commands.values()]
    options = [option for command in commands for option in command.params if isinstance(option, click.Option)]
    assert len(options) > len(MODULES)
    assert [option.name for option in options if not isinstance(option, Option)] == []


def test_a_module_that_waits_is_there_when_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", USES_ONE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("module 'textwrap' has no attribute 'nothing'\n", "")
