"""Phrases that read as if translated do not come back: in source, README, docs and skills."""

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

GENERATED = ("docs/commands.md", "docs/settings.md", "docs/requirements.md")  # from sentences that are checked here

# (what may not come back, what to write instead)
PHRASES = (
    (r"stands? still|standing still", "is paused, is stopped"),
    (r"stands? (?:in(?! for)|at|on|there|behind|above|below|before|between|first|last|where)", "is, comes, is set"),
    (r"leave \S+ away|leaves? away", "drop, omit"),
    (r"mend|mends|mended", "fix"),
    (r"(?<!there )(?:is|are|was|were) no (?!longer\b|more than\b)", "is not a, has no"),
    (r"knows? no|know nothing of", "does not support, has no"),
    (r"(?:is|are) wanted here", "expected"),
    (r"take (?:it|that|them) (?:away|out)", "remove it"),
    (r"would obey", "has no effect"),
    (r"the truth", "the ledger, the loop's folder"),
    (r"whoever|whosoever", "name who: the caller, a person, the holder of the lock"),
    (r"somebody|anybody|everybody", "a person, another process, anyone"),
    (r"nobody", "no one, or say it actively"),
    (r"unless you say so", "[default: X]"),
    (r"the (?:ones|settings|loops) there are", "all"),
    (r"amounts? to", "is, adds up to"),
    (r"bears? (?:it|this|that|them) out|borne out|bears? out", "confirms"),
    (r"in the way(?: of)?", "blocks"),
    (r"for good(?! reason)", "permanently"),
    (r"for ever", "forever"),
    (r"at all events", "in any case"),
    (r"as far as", "if, where, up to"),
    (r"a word for", "a name for"),
    (r"anew|afresh", "again, from scratch"),
    (r"all the same", "still, anyway"),
    (r"(?:inside|outside) of", "inside, outside"),
    (r"for want of", "because there is no"),
    (r"be had(?: back)?", "restored, available"),
    (r"(?:col|hon|fav|neighb|behavi)ours?\w*", "American spelling: color, honor, favor, neighbor, behavior"),
    (r"\w+(?:gnis|phasis|ganis|mmaris)(?:e|ed|es|ing)", "American spelling: -ize"),
)
_BANNED = [(re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE), better) for phrase, better in PHRASES]

# What users see does not name the parts inside; the ledger's own errors name its file.
INSIDE = re.compile(r"\b(?:worker|guardian|inert|doubted|tether)\b")
RECORDED = ("the death of its guardian",)  # a value in ledgers; people read another sentence


def done(paths: Iterator[Path]) -> list[Path]:
    """Without what is generated."""
    names = ((path, path.relative_to(ROOT).as_posix()) for path in sorted(paths))
    return [path for path, name in names if name not in GENERATED]


def sources() -> list[Path]:
    return done(ROOT.glob("src/bydawn/**/*.py"))


def pages() -> list[Path]:
    return done(iter([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("src/bydawn/**/*.md")]))


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string literal with its line; an f-string with a mark in place of each value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Every comment with its line; those that follow each other as one, so that a phrase may break across lines."""
    begun, words = 0, ""
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            begun, words = begun or token.start[0], f"{words} {token.string.lstrip('# ')}"
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT) and words:
            yield begun, words
            begun, words = 0, ""


def prose(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from strings(ast.parse(text))
        yield from comments(text)
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith(">"):  # a quotation
            yield number, line


def docstrings(tree: ast.AST) -> set[int]:
    """The lines on which docstrings begin: they are for us, not for users."""
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    return {body[0].lineno for body in bodies if body and isinstance(body[0], ast.Expr)}


@pytest.mark.parametrize("path", [*sources(), *pages()], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_phrases_that_read_as_if_translated_stay_away(path: Path) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r}: better: {better}"
        for line, words in prose(path)
        for pattern, better in _BANNED
        if (match := pattern.search(" ".join(words.split())))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_users_see_does_not_name_the_parts_inside(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = docstrings(tree)
    found = [
        f"{path.relative_to(ROOT)}:{line}: {words!r}"
        for line, words in strings(tree)
        if " " in words.strip() and line not in own and words not in RECORDED and INSIDE.search(words)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("sentence", "is_banned"),
    [
        ("the loop stands still", True),
        ("`x` is no folder", True),
        ("there is no folder `x`", False),
        ("it is no longer running", False),
        ("mend that line", True),
        ("recommend it", False),
        ("whoever holds the lock", True),
        ("the loop is paused", False),
        ("a colour", True),
        ("a neighbor", False),
    ],
)
def test_the_list_finds_phrases_and_leaves_plain_sentences_alone(sentence: str, is_banned: bool) -> None:
    assert any(pattern.search(sentence) for pattern, _ in _BANNED) is is_banned
