"""Put the skill of a dialect where an agent reads it."""

import os
import sys
from pathlib import Path

import bydawn
from bydawn.core.values import Value
from bydawn.operations.first_files import Fate
from bydawn.operations.installed_folder import HOMES, files_of, home_of, install
from bydawn.system.user_folders import folders_above

COMMAND = "scripts/command.path"  # which the scripts of a skill read


class Skill(Value, frozen=True, kw_only=True):
    """A skill that is installed."""

    path: str
    files: int
    new: int  # of these, written now
    kept: tuple[str, ...]  # changed by a person; a copy of each is beside it


def source_of(dialect: str) -> Path:
    """Its folder in this package."""
    return Path(bydawn.__file__).parent / "dialects" / dialect.replace("-", "_") / "skill"


def install_skill(dialect: str, agent: str, here: Path, *, user: bool, force: bool) -> Skill:
    """Into the repository that a folder is in, or into the person's own settings of that agent."""
    root, files = folders_above(here)[-1], files_of(source_of(dialect))
    target = f"{home_of(agent) if user else HOMES[agent][2]}/skills/{dialect}"
    command = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), dialect)  # noqa: PTH100, PTH118, PTH120
    has_scripts = any(name.startswith("scripts/") for name in files)
    fates = install(files, root, target, force=force, local={COMMAND: f"{command}\n"} if has_scripts else {})
    return Skill(
        path=str(root / target),
        files=len(fates),
        new=sum(fate is not Fate.SAME for fate in fates.values()),
        kept=tuple(name for name, fate in fates.items() if fate is Fate.REPLACED),
    )
