"""Put the skill of strict-agent-loop where an agent reads it."""

import os
import sys
from pathlib import Path

import bydawn
from bydawn.core.values import Value
from bydawn.dialects.strict_agent_loop.paths import NAME
from bydawn.operations.first_files import Fate
from bydawn.operations.installed_folder import HOMES, files_of, home_of, install
from bydawn.system.user_folders import folders_above

SOURCE = Path(bydawn.__file__).parent / "dialects/strict_agent_loop/skill"
COMMAND = "scripts/command.path"  # which scripts/_command.py reads


class Skill(Value, frozen=True, kw_only=True):
    """A skill that is installed."""

    path: str
    files: int
    new: int  # of these, written now
    kept: tuple[str, ...]  # changed by a person; a copy of each is beside it


def install_skill(agent: str, here: Path, *, user: bool, force: bool) -> Skill:
    """Into the repository that a folder is in, or into the person's own settings of that agent."""
    root = folders_above(here)[-1]
    target = f"{home_of(agent) if user else HOMES[agent][2]}/skills/{NAME}"
    command = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), NAME)  # noqa: PTH100, PTH118, PTH120
    fates = install(files_of(SOURCE), root, target, force=force, local={COMMAND: f"{command}\n"})
    return Skill(
        path=str(root / target),
        files=len(fates),
        new=sum(fate is not Fate.SAME for fate in fates.values()),
        kept=tuple(name for name, fate in fates.items() if fate is Fate.REPLACED),
    )
