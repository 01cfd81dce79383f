"""What runs a loop's checks, seen before its first round: do the programs exist, and which files steer them?"""

import os
import re
import shutil
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.core.globs import is_protected
from bydawn.core.loop import ChangedTests, CommandCheck, Loop
from bydawn.core.test_files import KEYED, Sides
from bydawn.core.text import near

# The first word, if it is plain: after variables and `cd … &&`, without a slash, a quote or anything of the shell's.
_FIRST = re.compile(r"\s*(?:\w+=[^\s'\"$`]*\s+|cd\s+[^\s;&|'\"$`]+\s*&&\s*)*([\w.+-]+)(?=\s|$|;|&|\|)")
_SHELL = (
    "if then else elif fi for while until do done case esac in select function time coproc ! . : [ alias bg break cd "
    "command continue echo eval exec exit export false fc fg getopts hash jobs kill let local printf pwd read readonly "
    "return set shift source test times trap true type typeset ulimit umask unalias unset wait declare"
)
_NAMED = 4


def refuse_missing_programs(loop: Loop) -> None:
    """A check whose program does not exist fails all night, and no agent can fix that."""
    if loop.changed_tests is not ChangedTests.HOLD:
        return  # another tool's documents say what happens then
    path = os.environ.get("PATH", os.defpath)
    for check in loop.checks:
        first = _FIRST.match(check.command) if isinstance(check, CommandCheck) else None
        if first is None or first[1] in _SHELL.split() or first[1].isdigit() or shutil.which(first[1], path=path):
            continue
        # It sets a PATH of its own, or defines what it calls.
        if re.search(rf"\bPATH=|(?<![\w.-]){re.escape(first[1])}\s*\(", first.string):
            continue
        known = {name for folder in path.split(os.pathsep) if Path(folder).is_dir() for name in os.listdir(folder)}
        raise UserError(
            f"the check `{check.name}` cannot start: there is no program {first[1]!r}",
            cause=f"it is on no folder of the PATH: {path}",
            hint=f"{near(first[1], known)}fix its name or install it; one in the project needs its path: -k ./test.sh",
        )


def steering_files(loop: Loop) -> list[str]:
    """The first files at the top of the workspace, or beside its tests, that decide which tests run and how."""
    root, sides = Path(loop.folder), Sides(loop)
    try:
        tops = [entry for entry in os.scandir(root) if not entry.name.startswith(".git")]
        names = [entry.name for entry in tops if entry.is_file(follow_symlinks=False)]
        inside = [f"{top.name}/conftest.py" for top in tops if top.is_dir() and Path(top.path, "conftest.py").is_file()]
    except OSError:
        return []
    named = [name for name in sorted(sides.named) if not name.startswith(("/", "..")) and (root / name).is_file()]
    found = [name for name in sorted(names) if sides.steers(name) and name not in KEYED - _read(sides)]
    left = [each for each in (*named, *found, *sorted(inside)) if not is_protected(each, loop.protect)]
    return [*left[:_NAMED], *(["…"] if len(left) > _NAMED else [])]


def _read(sides: Sides) -> set[str]:
    """Of the files that hold other things too, those that the checks read."""
    words = " ".join(sides.commands)
    npm = re.search(r"\b(?:npm|npx|yarn|pnpm|bun|jest|vitest|mocha|node)\b", words)
    python = re.search(r"\b(?:pytest|tox|nox|coverage)\b", words)
    return {*(["package.json"] if npm else []), *(["pyproject.toml", "setup.cfg", "tox.ini"] if python else [])}
