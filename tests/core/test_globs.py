"""Which files a glob protects: without asking git, but as git would answer."""

import pytest

from bydawn.core.globs import matches

TABLE = {
    "tests": {"tests", "tests/a.py", "tests/deep/b.py"},
    "tests/**": {"tests/a.py", "tests/deep/b.py"},
    "tests/": {"tests", "tests/a.py", "tests/deep/b.py"},
    "./tests//deep": {"tests/deep/b.py"},
    "tests/*": {"tests/a.py"},
    "test*": {"tests", "tests.toml"},
    "tes**": {"tests", "tests/a.py", "tests/deep/b.py", "tests.toml"},  # in the first step with a wildcard only
    "tes**/b.py": {"tests/deep/b.py"},
    "te*/d**": set(),
    "**/b.py": {"tests/deep/b.py"},
    "**/deep/**": {"tests/deep/b.py"},
    "*.toml": {"tests.toml"},
    "tests/?.py": {"tests/a.py"},
    "app/[id].tsx": {"app/[id].tsx", "app/i.tsx"},  # a class and a name
    "app/[id]/**": {"app/[id]/page.tsx"},
    r"app/\[id\].tsx": {"app/[id].tsx"},
    "app/[!h-j].tsx": set(),
    "app/[[:lower:]].tsx": {"app/i.tsx"},
    "app/[]i].tsx": {"app/i.tsx"},
    "app/[z-a].tsx": set(),
    "app/[[:what:]].tsx": set(),
    "app/[": set(),
    "../**": set(),
    "": set(),
}
FILES = [
    "tests", "tests/a.py", "tests/deep/b.py", "tests.toml", "app/[id].tsx", "app/i.tsx", "app/[id]/page.tsx",
]  # fmt: skip


@pytest.mark.parametrize("glob", TABLE)
def test_a_glob_matches_what_git_would_match(glob: str) -> None:
    assert {path for path in FILES if matches(path.encode(), [glob])} == TABLE[glob]


def test_several_globs_match_what_one_of_them_does_and_everything_can_be_meant() -> None:
    assert {path for path in FILES if matches(path.encode(), ["tests/*", "*.toml"])} == {"tests/a.py", "tests.toml"}
    assert all(matches(path.encode(), [glob]) for path in FILES for glob in (".", "**", "***"))
    assert matches("bücher/ä.md".encode(), ["bücher/?*.md"])
    assert not matches(b"bad\xff", ["good*"])
