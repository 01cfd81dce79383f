"""Find the last good version of a lost or damaged checklist in the trees a loop has kept."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.worklist import is_believed
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.operations.recent import rounds
from bydawn.store.registry import Standing
from bydawn.system.git import Git
from bydawn.system.reading import read_inside, read_text
from bydawn.system.writing import replace_text
from bydawn.worktree.trees import LINK, Trees

_LOOKED_AT = 20  # last rounds; enough, because a lost list ends the loop at once


class LastList(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a checklist in a kept tree."""

    text: str
    when: str  # "as round 2 left it"
    command: str  # prints that text


def wanted(standing: Standing) -> LastList | None:
    """The last good list, if the list is lost or damaged now and no process runs the loop."""
    loop, state = standing.loop, standing.state
    if standing.alive or not loop.tasks or loop.task_folder:
        return None
    try:
        text = read_text(Path(loop.folder), loop.tasks)
    except UserError:
        text = None
    # People may edit the list of a loop that is not running, unless the list is why it stopped.
    lost = state.stopped is None or state.stopped.unseen or (state.tasks is not None and bool(state.tasks.problem))
    if text is not None and is_believed(text, loop, state, state.tasks if lost else None):
        return None
    found = (each for each in _kept(standing) if is_believed(each.text, loop, state, state.tasks))
    return next(found, None)


def put_back(standing: Standing, last: LastList) -> bool:
    """Write the list back, if nothing is there anymore."""
    refuse_inside_a_round()
    root, path = Path(standing.loop.folder), standing.loop.tasks or ""
    if os.path.lexists(root / path) or read_inside(root, path) is not None:
        return False
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    replace_text(root / path, last.text, 0o644)
    return True


def _kept(standing: Standing) -> Iterator[LastList]:
    """Each text the list had, newest first; a list that git ignores is in no tree."""
    root, private = Path(standing.loop.folder), standing.folder.git
    git = Git(folder=root, seconds=20, places={"GIT_DIR": str(private)})
    name = os.path.normpath(standing.loop.tasks or "")
    known = set[str]()
    for tree, when in _trees(standing):
        try:
            found = Trees(git, private).entries(tree, below=[os.fsencode(name)])
            ids = [entry.id for entry in found if entry.mode != LINK and entry.id not in known]
            texts = [git.run("cat-file", "blob", id_).decode() for id_ in ids]
        except (UserError, UnicodeDecodeError):  # not kept, or not text
            continue
        known.update(ids)
        words = ["git", f"--git-dir={private}", "show", f"{tree.partition('+')[0]}:{name}"]
        yield from (LastList(text=text, when=when, command=shlex.join(words)) for text in texts)


def _trees(standing: Standing) -> Iterator[tuple[str, str]]:
    for attempt in [row.attempt for row in rounds(standing)[: -_LOOKED_AT - 1 : -1]]:
        if attempt.ended and not attempt.ended.unseen:
            yield attempt.ended.found.tree, f"as round {attempt.round} left it"
        yield attempt.started.tree, f"as round {attempt.round} found it"
