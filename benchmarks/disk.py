"""How much does a loop leave on disk?"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Bench, Budget
from benchmarks.stage import Stage
from benchmarks.strace import run_command
from bydawn.store.folder import LoopFolder
from bydawn.worktree.workspace import GitWorkspace

_FILES, _PER_FOLDER, _ROUNDS = 5_000, 100, 60
_CHANGED = ("0/1.txt", "10/2.txt", "20/3.txt", "30/4.txt", "49/5.txt")  # by each round
_BLOCK, _MB = 512, 1e6


def sixty_rounds(stage: Stage) -> Iterator[float]:
    """The blocks that it takes; the first snapshot, which is as big as the work tree, is not the loop's growth."""
    workspace = _repository(stage)
    seed = stage.place("seed")
    GitWorkspace(workspace, seed).snapshot()
    first = _size(seed)
    script = stage.folder / "script.json"
    steps = [{"append": {"path": path, "text": "one more line\n"}} for path in _CHANGED]
    script.write_text(json.dumps({"rounds": [[*steps, {"say": "a step"}, {"result": {"text": "on"}}]]}))
    stage.seconds(*run_command(workspace, script, _ROUNDS), code=4)
    loop = LoopFolder(workspace / ".bydawn" / "loops" / workspace.name)
    kept = _size(loop.git)
    yield kept - first
    yield _size(loop.path.resolve()) - kept


def _repository(stage: Stage) -> Path:
    root = stage.place("disk")
    for number in range(_FILES):
        path = root / f"{number // _PER_FOLDER}/{number % _PER_FOLDER}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"line {line} of file {number}\n" for line in range(100)))
    (root / "TODO.md").write_text("- [ ] stays open\n")
    git = ("git", "-C", str(root), "-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all"), ("gc", "-q")):
        subprocess.run([*git, *arguments], env=stage.env, check=True)
    return root


def _size(folder: Path) -> float:
    return sum(path.lstat().st_blocks * _BLOCK for path in folder.resolve().rglob("*")) / _MB


BENCHES = (
    Bench(
        (
            Budget("disk: kept trees of 60 rounds, 5,000 files", 1, "MB"),
            Budget("disk: all else in the state folder", 3, "MB"),
        ),
        sixty_rounds,
    ),
)
