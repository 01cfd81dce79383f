"""The demo: a temporary repository, the built-in agent, a real test suite."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from bydawn.agents.demo import story
from bydawn.core.breakers import Limits
from bydawn.core.loop import CommandCheck, Loop, Promise
from bydawn.operations.loop_request import LoopRequest
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.operations.settings import secrets
from bydawn.store.registry import new_uid
from bydawn.system.git import Git


def prepare() -> LoopRequest:
    """Create the demo's repository, and request its loop."""
    refuse_inside_a_round()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(caches, "bydawn", f"demo-{os.urandom(2).hex()}")
    folder.mkdir(parents=True)
    for name, text in story.FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = Git(folder=folder, seconds=60, config={"user.name": "demo", "user.email": "demo@localhost"})
    git.run("init", "--quiet", "--initial-branch=main")
    git.run("add", "--all")
    git.run("commit", "--quiet", "--message", "A library that is not written yet")
    loop = Loop(
        id="",
        uid=new_uid(),
        workspace=str(folder),
        created_at=datetime.now(UTC),
        prompt="Write the slug library, task by task.",
        agent="demo",
        tasks="TODO.md",
        checks=(CommandCheck(command=story.check_command(sys.executable)),),
        promise=Promise(),
        limits=Limits(rounds=10, seconds=300.0),
    )
    return LoopRequest(loop=loop, secrets=secrets())
