"""Packs what snapshots leave behind: each round stores some 25 objects, and one file per object takes a block each."""

import os
from pathlib import Path

from msgspec.structs import replace

from bydawn.core.errors import OwnFailure
from bydawn.system.git import Git

SECONDS = 20.0  # a loop's end waits for it
WORTH_IT = 50  # loose objects, which take 200 KB
FORGOTTEN = "1.day.ago"  # a tree without a ref may still be the one that the ledger names last


def pack(git: Git, private: Path) -> bool:
    """Is everything packed that is worth it? git removes a file only when its successor is complete and synced."""
    git = replace(git, seconds=SECONDS)
    try:
        if not _is_worth_it(private / "objects"):
            return True
        git.run("prune", f"--expire={FORGOTTEN}")
        # Small packs are merged and big ones left alone, so that neither their number nor the work grows with the loop.
        git.run("repack", "--geometric=2", "-d", "--quiet")
        git.run("pack-refs", "--all")
    except (OwnFailure, OSError):  # no room, or no time: it stays as it is, and the next one tries again
        return False
    return True


def _is_worth_it(objects: Path) -> bool:
    loose = (name for folder in os.listdir(objects) if len(folder) == 2 for name in os.listdir(objects / folder))
    return sum(1 for _, _ in zip(range(WORTH_IT), loose, strict=False)) == WORTH_IT
