"""What does it cost to keep the work tree of a big repository, against what git needs only to compare it?"""

import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from benchmarks.rows import Bench, Budget
from benchmarks.stage import Broken, Stage, fastest
from bydawn.worktree.workspace import GitWorkspace

_FILES = 100_000
_PER_FOLDER = 100
_TURNS = 15
_DOCUMENTS = ("NOTES.md", "docs/progress.md", "TODO.md")


def big_tree(stage: Stage) -> Iterator[float]:
    """The first snapshot of each, which shares the packs of the repository, is not part of it."""
    root = _big_repository(stage)
    plain = GitWorkspace(root, stage.place("private"))
    with_documents = GitWorkspace(root, stage.place("private"), _DOCUMENTS)
    numbers = count()

    def compare() -> float:
        _work(root, next(numbers))
        return stage.seconds("/usr/bin/env", "git", "-C", str(root), "diff", "HEAD")

    compare()
    snapshots = [_timed(plain), _timed(with_documents)]
    for first in snapshots:
        first()
    git, alone, documents, unchanged = fastest([compare, *snapshots, _timed(plain)], _TURNS, seconds=60)
    if with_documents.snapshot().work in ("", plain.snapshot().tree):
        raise Broken("the documents were not left out")
    yield alone / git
    yield documents / git
    yield unchanged / git


def _timed(workspace: GitWorkspace) -> Callable[[], float]:
    def snapshot() -> float:
        started = time.perf_counter()
        workspace.snapshot()
        return time.perf_counter() - started

    return snapshot


def _work(root: Path, number: int) -> None:
    """What a round may do: edit here and there, add a file, and write it down."""
    for path in ("0/1.txt", "500/50.txt", f"new-{number}.txt", *_DOCUMENTS):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(f"changed in turn {number}\n")


def _big_repository(stage: Stage) -> Path:
    """Imported as a stream, so that there is one pack and not a hundred thousand loose objects."""
    root = stage.place("big")
    git = ("git", "-C", str(root))
    subprocess.run([*git, "init", "-q"], env=stage.env, check=True)
    with subprocess.Popen([*git, "fast-import", "--quiet"], env=stage.env, stdin=subprocess.PIPE) as importer:
        assert importer.stdin  # noqa: S101 - a pipe was asked for
        importer.stdin.write(b"commit refs/heads/big\ncommitter bench <bench@localhost> 0 +0000\ndata 3\nall\n")
        for number in range(_FILES):
            text = f"file {number} of many\n" * 20
            path = f"{number // _PER_FOLDER}/{number % _PER_FOLDER}.txt"
            importer.stdin.write(f"M 644 inline {path}\ndata {len(text)}\n{text}\n".encode())
    if importer.returncode:
        raise Broken(f"git fast-import ended with {importer.returncode}")
    for arguments in (("symbolic-ref", "HEAD", "refs/heads/big"), ("reset", "-q", "--hard")):
        subprocess.run([*git, *arguments], env=stage.env, check=True)
    return root


BENCHES = (
    Bench(
        (
            Budget("snapshot: 100,000 files, a few changed", 2.5, "×"),
            Budget("snapshot: the same, documents told apart", 2.5, "×"),
            Budget("snapshot: the same, nothing changed", 1.5, "×"),
        ),
        big_tree,
    ),
)
