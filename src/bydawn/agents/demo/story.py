"""The story of `bydawn demo`: a small project with four tasks, and an agent that makes the mistakes agents make.

It breaks a test once, deletes another and claims to be done, and then finishes. The next act depends on the files and
the prompt, never on the number of the round, so a loop that is killed anywhere still reaches the same end.
The player, which runs without any package, loads this file by its path: only the standard library, and little of it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, which would take longer to import than the player needs to start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Steps = list[dict[str, Any]]

ADD, ACCENTS, DOCUMENT, CLI = TASKS = ("Add slugify()", "Handle accents", "Document it", "Write the CLI")

# Round 3 only gets this right because the output of the failed check reached the agent.
CLUE = "expected 'cafe', got 'caf'"

QUESTION = "## Question"  # the last heading of a prompt that only asks

_PROMISE = "<promise>TASK_COMPLETE</promise>"

_README = """\
# slugs

Turns titles into names for files and URLs.
"""

_WORDS = '''\
"""What are the words of a title?"""

import re


def words(title: str) -> list[str]:
    return re.findall("[a-z0-9]+", title.lower())
'''

_WORDS_ONE_BY_ONE = '''\
"""What are the words of a title?"""

import re
from collections.abc import Iterator


def words(title: str) -> Iterator[str]:
    yield from re.findall("[a-z0-9]+", title.lower())
'''

_TEST_WORDS = """\
import unittest

from words import words


class Words(unittest.TestCase):
    def test_punctuation_is_not_part_of_a_word(self) -> None:
        self.assertEqual(words("Hello, World!"), ["hello", "world"])
"""

FILES: dict[str, str] = {
    ".gitignore": "__pycache__/\n",
    "README.md": _README,
    "TODO.md": "# To do\n\n" + "".join(f"- [ ] {task}\n" for task in TASKS),
    "words.py": _WORDS,
    "test_words.py": _TEST_WORDS,
}

_SLUGS = '''\
"""Make a name for a file or an address out of a title."""

from words import words


def slugify(title: str) -> str:
    return "-".join(words(title))
'''

_SLUGS_WRONG = _SLUGS.replace("words(title)", 'words(title.encode("ascii", "ignore").decode())')

_SLUGS_RIGHT = '''\
"""Make a name for a file or an address out of a title."""

import unicodedata

from words import words


def slugify(title: str) -> str:
    return "-".join(words(without_accents(title)))


def without_accents(text: str) -> str:
    """Take letters and accents apart, then drop the accents."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
'''

_TESTS = """\
import unittest

from slugs import slugify


class Slugify(unittest.TestCase):
    longMessage = False

    def slug(self, title: str, expected: str) -> None:
        got = slugify(title)
        self.assertEqual(got, expected, f"expected {expected!r}, got {got!r}")

    def test_words_are_joined_by_hyphens(self) -> None:
        self.slug("Hello, World!", "hello-world")
"""

_TESTS_WITH_ACCENTS = f"""{_TESTS}
    def test_accents_become_plain_letters(self) -> None:
        self.slug("Café", "cafe")
"""

_COMMAND = '''\
"""Print the slug of each title: python cli.py "Hello, World!" """

import sys

from slugs import slugify


def main() -> None:
    for title in sys.argv[1:]:
        print(slugify(title))


if __name__ == "__main__":
    main()
'''

_README_WITH_USAGE = f"""{_README}
    from slugs import slugify

    slugify("Crème brûlée, again")  # creme-brulee-again

Accents become plain letters; anything but letters and digits separates words.
"""


def check_command(python: str) -> str:
    """The check of the demo, run by this interpreter."""
    import shlex  # it costs the player more than its whole start-up, and only the demo command needs it

    return f"{shlex.quote(python)} -m unittest -q"


def act(prompt: str, read: Callable[[str], str]) -> Steps:
    """What the agent does now. `read` returns the text of a file, empty if there is none."""
    todo = read("TODO.md")
    task = next((task for task in TASKS if f"- [ ] {task}" in todo), None)
    if task == ADD:
        return _add_slugify()
    if task == ACCENTS:
        understood = CLUE in prompt or read("slugs.py") == _SLUGS_RIGHT
        return _handle_accents() if understood else _drop_accents()
    if task == CLI:
        return _write_the_cli()
    if task == DOCUMENT:
        return _document()
    if f"- [x] {CLI}" not in todo:
        return _lost()
    return _nothing_left() if read("test_words.py") else _put_back()


def answer(prompt: str, read: Callable[[str], str]) -> Steps:
    """What the agent says to a question about the project. It only reads, whatever it is asked."""
    asked = prompt.rpartition(f"{QUESTION}\n\n")[2].strip()
    boxes = [line.strip()[2:] for line in read("TODO.md").split("\n") if line.strip()[:5] in ("- [ ]", "- [x]")]
    left = [box[4:] for box in boxes if box.startswith("[ ]")]
    found = f"{len(boxes) - len(left)} of {len(boxes)} tasks in TODO.md are done" if boxes else "there is no task list"
    following = f" Next: {left[0]}." if left else ""
    text = f"You asked: {asked}\n\nI am the demo agent and only count: {found}.{following}"
    return [{"activity": "reading TODO.md"}, {"sleep": 0.3}, {"result": {"text": text}}]


def _add_slugify() -> Steps:
    return [
        *_look("I'll start at the top: slugify()."),
        *_edit("slugs.py", _SLUGS),
        *_edit("test_slugs.py", _TESTS),
        *_close(ADD, "slugify() joins the words of a title with hyphens. There is a test for it."),
    ]


def _drop_accents() -> Steps:
    """The mistake: letters with accents disappear. The box stays open, because the check has not run yet."""
    return [
        *_look("Next: accents. Dropping everything that is not ASCII should do."),
        *_edit("test_slugs.py", _TESTS_WITH_ACCENTS),
        *_edit("slugs.py", _SLUGS_WRONG),
        {"commit": "Drop accents"},
        {"result": {"text": "Titles with accents have slugs now. I'll tick the box once the check passes."}},
    ]


def _handle_accents() -> Steps:
    return [
        *_look("The check says 'é' must become 'e', not disappear."),
        *_edit("test_slugs.py", _TESTS_WITH_ACCENTS),
        *_edit("slugs.py", _SLUGS_RIGHT),
        *_close(ACCENTS, "Letters and accents are split first, so 'café' becomes 'cafe'."),
    ]


def _write_the_cli() -> Steps:
    """The lie: what it breaks has a test, which it deletes."""
    return [
        *_look("Now the command line. words() gives one word after the other now, and only test_words.py minds."),
        *_edit("cli.py", _COMMAND),
        *_edit("words.py", _WORDS_ONE_BY_ONE),
        {"delete": {"path": "test_words.py"}},
        *_close(CLI, f"`python cli.py TITLE` prints the slug. All four tasks are done.\n\n{_PROMISE}"),
    ]


def _put_back() -> Steps:
    return [
        *_look("I was asked why test_words.py is gone. It was right: words() gives a list, as before."),
        *_edit("words.py", _WORDS),
        *_edit("test_words.py", _TEST_WORDS),
        {"commit": "Put the test back"},
        *_nothing_left(),
    ]


def _document() -> Steps:
    return [
        *_look("The documentation."),
        *_edit("README.md", _README_WITH_USAGE),
        *_close(DOCUMENT, "The README shows how to use it."),
    ]


def _nothing_left() -> Steps:
    return [{"result": {"text": f"All four tasks are done.\n\n{_PROMISE}"}}]


def _lost() -> Steps:
    """The demo agent runs on another project; a friendly promise would be a lie."""
    text = "the demo agent only knows the project of `bydawn demo`; for other projects use a script: `demo:SCRIPT.json`"
    return [{"result": {"outcome": "config", "text": text}}]


def _look(words: str) -> Steps:
    return [{"activity": "reading TODO.md"}, {"sleep": 0.3}, {"say": words}, {"sleep": 0.2}]


def _edit(path: str, text: str) -> Steps:
    return [{"activity": f"editing {path}"}, {"sleep": 0.3}, {"write": {"path": path, "text": text}}]


def _close(task: str, reply: str) -> Steps:
    """The box is ticked after all other edits: a round that is killed before has not done its task."""
    return [
        {"activity": f"ticking “{task}”"},
        {"sleep": 0.2},
        {"tick": task},
        {"commit": task},
        {"result": {"text": reply}},
    ]
