"""A whole loop anyone can watch: a throw-away repository, the built-in agent, a real test suite."""

import os
import subprocess
import sys
from pathlib import Path

from bydawn.agents import story
from bydawn.core.errors import OwnFailure
from bydawn.core.loop import CommandCheck, Limits, Promise
from bydawn.operations.start import Wish, refuse_inside_a_round


def prepare() -> Wish:
    """Lay out the demo's repository and say what its loop is to do."""
    refuse_inside_a_round()
    folder = _cache() / f"demo-{os.urandom(2).hex()}"
    folder.mkdir(parents=True)
    for name, text in story.FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    _git(folder, "init", "--quiet")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "A library that is still to be written")
    return Wish(
        workspace=folder,
        prompt="Write the slug library, task by task.",
        agent="demo",
        tasks="TODO.md",
        checks=(CommandCheck(command=story.check_command(sys.executable)),),
        promise=Promise(),
        limits=Limits(rounds=10, seconds=300.0),
    )


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "bydawn"


def _git(folder: Path, *arguments: str) -> None:
    """Git without anybody's configuration: no hooks, no signing, an identity of its own."""
    identity = {
        f"GIT_{who}_{what}": f"demo{'@localhost' * (what == 'EMAIL')}"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        **identity,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }
    try:
        subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=environment,
            check=True,
            capture_output=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise OwnFailure("git is not installed", hint="install git, then run the demo again") from None
    except subprocess.SubprocessError as error:
        raise OwnFailure("the demo's repository could not be made", cause=str(error)) from None
