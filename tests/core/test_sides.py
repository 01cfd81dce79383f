"""Which files decide what a check says: those that it names, those that these name, and those in a program's place."""

import pytest

from bydawn.core.loop import CommandCheck
from bydawn.core.ports import Difference
from bydawn.core.proof import Answer, Group, Noticed
from bydawn.core.test_files import Side, Sides
from bydawn.core.witness import judged
from core.facts_made import a_loop

FILES = {
    "Makefile": "include ci.mk\n\ntest:\n\t./run.sh && cc src/main.c\n",
    "ci.mk": "",
    "run.sh": "exec $(dirname $0)/scripts/_inner.sh\n",
    "scripts/_inner.sh": "python -m pytest tools/verify.py\n",
    "scripts/check.sh": ". ./scripts/_inner.sh\n",
    "tools/verify.py": "",
    "tools/check.sh": "",
    "src/main.c": "",
    "src/inspector.js": "",
    "run-tests.js": "",
    "package.json": '{"main": "lib/test.js", "scripts": {"test": "node run-tests.js"}}',
    "lib/test.js": "",
    ".cargo/config.toml": "",
}


def sides(*commands: str) -> Sides:
    checks = tuple(CommandCheck(command=command) for command in commands)
    found = Sides(a_loop(checks=checks))
    found.follow({path: f"100644 {path}" for path in FILES}, lambda form: FILES[form.partition(" ")[2]].encode())
    return found


@pytest.mark.parametrize(
    ("command", "decide"),
    [
        ("make test", {"Makefile", "ci.mk", "run.sh", "scripts/_inner.sh"}),
        ("./scripts/check.sh", {"scripts/check.sh", "scripts/_inner.sh", "tools/verify.py"}),
        ("cd tools && ./check.sh", {"tools/check.sh"}),
        ("npm test", {"run-tests.js"}),
        ("cargo test", {".cargo/config.toml"}),
    ],
)
def test_what_a_check_runs_by_way_of_scripts_is_a_part_of_it(command: str, decide: set[str]) -> None:
    found = sides(command)
    mine = {path for path in FILES if found.of(path) in (Side.TEST, Side.STEERING)}
    assert mine - {"package.json", "lib/test.js"} == decide


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("python3 -m unittest", "signal.py"),
        ("python3 -m unittest", "logging/__init__.py"),
        ("cd sub && python3 -m pytest", "sub/pytest.py"),
        ("cd sub && python3 -m unittest", "sub/difflib.py"),
        ("PATH=$PWD/bin:$PATH python3 -m unittest", "bin/python3"),
        ("python3 -m pytest", "evil.egg-info/entry_points.txt"),
    ],
)
def test_a_new_file_in_the_place_of_what_a_check_runs_steers_it(command: str, path: str) -> None:
    new = Difference(path=path, old="", new="100644 x")
    assert sides(command).of_change(new, lambda _: b"") is Side.STEERING
    assert sides("go test ./...").of_change(new, lambda _: b"") is not Side.STEERING or path.endswith(".txt")


@pytest.mark.parametrize(
    ("before", "after", "is_part"),
    [("t", "t+n", True), ("t+m", "t+n", True), ("t+n", "u+n", False), ("t++p", "t++q", False), ("t+n+p", "t+n", False)],
)
def test_work_in_a_nested_repository_is_not_looked_at(before: str, after: str, is_part: bool) -> None:
    """The tree's id is followed by what stands for nested repositories, then by what stands for protected files."""
    found = judged(Group(before=before, after=after), [], sides("make test"), lambda _: b"")
    words = "a nested repository is part of it"
    assert found == (Noticed(answer=Answer.UNKNOWN, detail=words) if is_part else None)
