"""Which tests show what the document of each dialect asks for; writes docs/requirements.md."""

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).parents[1]
ID = re.compile(r"\b[A-Z]-Q?\d+\b")
SHOWN = 3  # tests that a row of the page names
INTRODUCTION = """\
# Requirements

Generated from [requirements.toml](requirements.toml) and the tests by `scripts/docs`; do not edit.

What the document of each tool that bydawn speaks for asks of it, and the tests that show it. A test shows what is named
by its id in the test's docstring, its decorators or a comment in it; where something *differs*, they show what is done
instead. `scripts/test` fails where something that needs a test has neither one nor a reason.
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Kind(StrEnum):
    """What sort of thing is asked for."""

    BEHAVIOUR = "behaviour"
    COMMAND = "command"
    OPTION = "option"
    DEFAULT = "default"
    FORMAT = "format"
    MEASURE = "measure"
    ACCEPTANCE = "acceptance"
    PHASE = "phase"
    STORY = "story"
    NON_GOAL = "non-goal"
    RISK = "risk"
    PERSONA = "persona"
    QUESTION = "question"


EXCUSED = {Kind.NON_GOAL, Kind.RISK, Kind.PERSONA, Kind.QUESTION}  # nothing that a test could show


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that a document asks for; how it is otherwise here and why; or why no test shows it."""

    kind: Kind
    text: str
    differs: str | None = None
    reason: str | None = None


class Dialect(NamedTuple):
    """A tool that we speak for, the letter of its ids, and what its document asks for."""

    name: str
    letter: str
    requirements: dict[str, Requirement]


def dialects(root: Path = ROOT) -> list[Dialect]:
    """The dialects that exist, as docs/requirements.toml lists them."""
    tables = msgspec.toml.decode((root / "docs/requirements.toml").read_bytes(), type=dict[str, dict[str, object]])
    return [
        Dialect(name, str(table.pop("letter")), msgspec.convert(table, dict[str, Requirement]))
        for name, table in tables.items()
    ]


# -- what tests say ----------------------------------------------------------------------------------------------------


def named(root: Path = ROOT) -> dict[str, list[str]]:
    """The tests that name an id, as pytest would call them."""
    found = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        for test, ids in _claims(path.read_text(encoding="utf-8")):
            for each in ids:
                found[each].append(f"{path.relative_to(root).as_posix()}::{test}")
    return {each: sorted(tests) for each, tests in found.items()}


@cache
def _claims(source: str) -> list[tuple[str, set[str]]]:
    if not ID.search(source):  # which spares us most of the work
        return []
    comments = _comments(source)
    return [(name, set(ID.findall("\n".join(_words(test, comments))))) for name, test in _tests(ast.parse(source).body)]


def _comments(source: str) -> dict[int, str]:
    """Those of a file, if one of them can have an id; to look for them takes long."""
    if not re.search(rf"#.*{ID.pattern}", source):
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def _tests(body: list[ast.stmt]) -> Iterator[tuple[str, Function]]:
    for node in body:
        match node:
            case ast.ClassDef(name=name):
                yield from ((f"{name}::{inner}", test) for inner, test in _tests(node.body))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test"):
                yield name, node


def _words(test: Function, comments: dict[int, str]) -> Iterator[str]:
    """What a test says of itself: its docstring, the texts in its decorators, and the comments in all of it."""
    yield ast.get_docstring(test) or ""
    for decorator in test.decorator_list:
        yield from (str(node.value) for node in ast.walk(decorator) if isinstance(node, ast.Constant))
    first = min(node.lineno for node in [test, *test.decorator_list])
    yield from (text for line, text in comments.items() if first <= line <= (test.end_lineno or first))


# -- what that amounts to ----------------------------------------------------------------------------------------------


def missing(root: Path = ROOT) -> list[str]:
    """What needs a test and has neither that nor a reason, one line each."""
    tests = named(root)
    return [
        f"{each} {requirement.text}"
        for dialect in dialects(root)
        for each, requirement in dialect.requirements.items()
        if status(requirement, tests.get(each, [])) == "MISSING"
    ]


def unknown(root: Path = ROOT) -> dict[str, list[str]]:
    """Ids that no dialect's list has, though it has their letter, and the tests that name them."""
    letters = {dialect.letter for dialect in dialects(root)}
    listed = {each for dialect in dialects(root) for each in dialect.requirements}
    return {each: tests for each, tests in named(root).items() if each[0] in letters and each not in listed}


def status(requirement: Requirement, tests: list[str]) -> str:
    if requirement.differs:
        return f"differs: {requirement.differs}"
    if tests:
        return "shown"
    if requirement.kind in EXCUSED:
        return f"not needed: {requirement.kind}"
    return f"reason: {requirement.reason}" if requirement.reason else "MISSING"


# -- the page ----------------------------------------------------------------------------------------------------------


def page(root: Path = ROOT) -> str:
    """docs/requirements.md."""
    return "\n".join(_lines(root))


def _lines(root: Path) -> Iterator[str]:
    yield INTRODUCTION
    tests = named(root)
    for dialect in dialects(root):
        yield from (f"## {dialect.name}", "", "| id | what | tests | status |", "|---|---|---|---|")
        for each, requirement in dialect.requirements.items():
            yield _row(each, requirement, tests.get(each, []))
        yield ""


def _row(each: str, requirement: Requirement, tests: list[str]) -> str:
    cells = (each, requirement.text, _links(tests), status(requirement, tests))
    return "".join("| " + cell.replace("|", r"\|") + " " for cell in cells) + "|"


def _links(tests: list[str]) -> str:
    links = [f"[{name}](../{path})" for path, _, name in (test.partition("::") for test in tests[:SHOWN])]
    more = [f"and {len(tests) - SHOWN} more"] if len(tests) > SHOWN else []
    return ", ".join(links + more)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
