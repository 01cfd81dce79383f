"""C-004, C-041, C-047, C-048, X-15, X-32: tasks as files, what they wait for, and what an agent claims of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.task_folder import Claimed, FolderTask, FolderTasks, read, ready, status_of, stranded
from bydawn.core.values import TaskClaim
from effort import MANY_PASSES, effort


def folder(**depends_on: str) -> FolderTasks:
    """Tasks `a`, `b` … with what they depend on."""
    return read({f"{id_}.md": f"# {id_}\n<!-- depends_on: {ids} -->\n" for id_, ids in depends_on.items()})


def ids(tasks: list[FolderTask]) -> str:
    return " ".join(task.id for task in tasks)


def depends_on(text: str) -> tuple[str, ...]:
    """What a file depends on, in a folder that holds `a`, `b` and `10-c d`."""
    files = {"a.md": "# a", "b.md": "# b", "10-c d.md": "# c"}
    tasks = read({**files, "it.md": text})
    return next(task.depends_on for task in tasks.items if task.id == "it")


# ---------------------------------------------------------------- a file is a task


def test_a_file_is_a_task() -> None:
    text = "# Log in\n\n<!-- depends_on: 1-model -->\nWith a password.\n"
    tasks = read({"2-login.md": text, "1-model.md": "# Model"})
    assert tasks == FolderTasks(
        items=(
            FolderTask(id="1-model", title="Model", depends_on=(), text="# Model"),
            FolderTask(id="2-login", title="Log in", depends_on=("1-model",), text=text),
        )
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["10-y", "2-x"], "2-x 10-y"),
        (["a10", "a9", "a1"], "a1 a9 a10"),
        (["b", "A", "c"], "A b c"),
        (["02-b", "1-a", "003-c"], "1-a 02-b 003-c"),
        (["1.10", "1.9", "1"], "1 1.9 1.10"),
        (["x", "1-x"], "1-x x"),
        (["9" * 5_000, "8" * 5_000, "7"], f"7 {'8' * 5_000} {'9' * 5_000}"),  # more digits than an int may have
        (["², ³", "2"], "2 ², ³"),  # digits of another kind are letters
    ],
)
def test_files_come_in_the_order_a_person_would_number_them(names: list[str], expected: str) -> None:
    assert ids(list(read({f"{name}.md": "x" for name in names}).items)) == expected


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Log in", "Log in"),
        ("# Log in ##\n\nWords", "Log in"),
        ("## Log in\n", "Log in"),
        ("\n\n  Log in\nwith a password", "Log in"),
        ("Words first.\n\n# Log in", "Log in"),  # a heading of the first level is a title wherever it stands
        ("Add a page.\n\n## Acceptance\n- x", "Add a page."),  # one of another level is just a section
        ("Log in\n======\n", "Log in"),
        ("Words first.\n\nLog in\n======\n", "Log in"),
        ("**Log in**\n\nWords", "Log in"),
        ("# Log in <!-- depends_on: a -->", "Log in"),
        ("<!-- depends_on: a -->\n\n# Log in", "Log in"),
        ("<!--\na comment\n-->\nLog in", "Log in"),
        ("<!-- x --># not a heading", "# not a heading"),
        ("---\ntitle: other\n---\n\n# Log in", "Log in"),
        ("---\ntitle: other\n---\nLog in", "Log in"),
        ("\ufeff# Log in\r\n\r\nWords", "Log in"),
        ("- [ ] Log in\n- [ ] Log out", "Log in"),
        ("- Log in", "Log in"),
        ("> Log in", "Log in"),
        ("```\n# no title\n```\n# Log in", "Log in"),
        ("```\nmake\n```", "make"),
        ("<h1 align='center'>Log in</h1>", "Log in"),
        ("#\n\nLog in", "Log in"),  # an empty heading
        ("# " + "long " * 100, ("long " * 100)[:119] + "…"),
    ],
)
def test_a_title_is_the_first_heading_or_the_first_line_that_can_be_seen(text: str, title: str) -> None:
    assert read({"a.md": text}).items[0].title == title


# ---------------------------------------------------------------- what it depends on

DEPENDS_ON = [
    ("<!-- depends_on: a, b -->\n# x", ("a", "b")),
    ("# x\n\nWords <!-- depends_on: a --> words\n", ("a",)),
    ("# x <!--depends_on:a,b-->", ("a", "b")),
    ("# x\n<!--\ndepends_on: a,\n  b\n-->", ("a", "b")),
    ("# x\n<!--\npriority: 1\ndepends_on: a\nowner: b\n-->", ("a",)),
    ("# x\n<!--\ndepends_on:\n- a\n- b\n-->", ("a", "b")),
    ("# x\n<!-- depends_on: a -->\n\n<!-- depends_on: b, a -->", ("a", "b")),
    ("# x\n- item <!-- depends_on: a -->", ("a",)),
    ("# x\n> <!-- depends_on: a -->", ("a",)),
    ("# x\n<!-- Depends-On: a -->", ("a",)),
    ("# x\n<!-- depends_on: [a, b] -->", ("a", "b")),
    ('# x\n<!-- depends_on: `a`, "b" -->', ("a", "b")),
    ("# x\n<!-- depends_on: a", ("a",)),  # never closed: better one dependency too many
    ("# x\n<!-- depends_on: 10-c d -->", ("10-c d",)),
    ("# x\r\n<!-- depends_on: a -->\r\n", ("a",)),
    # in other words
    ("# x\n<!-- depends_on: a.md, B -->", ("a", "b")),
    ("# x\n<!-- depends_on: A.MD, a -->", ("a",)),
    # front matter
    ("---\ndepends_on: [a, b]\n---\n# x", ("a", "b")),
    ("---\ndepends_on: a, b\n---\n# x", ("a", "b")),
    ("---\ndepends_on: a\n---\n# x", ("a",)),
    ("---\ndepends_on:\n  - a\n  - 'b'\nowner: me\n---\n# x", ("a", "b")),
    ("---\ndepends_on:\n- a\n\n- b # why\n---\n# x", ("a", "b")),
    ("---\ntitle: x\ndepends_on: [a, # first\n  b]\nother: [c]\n---\n# x", ("a", "b")),
    ('---\n"depends_on": ["a"]\n---\n# x', ("a",)),
    ("---\ndepends_on: a # and b\n---\n# x", ("a",)),
    ("---\r\ndepends_on: [a]\r\n---\r\n# x", ("a",)),
    ("---\ndepends_on: [a]\n---\n# x <!-- depends_on: b -->", ("a", "b")),
    # nothing
    ("# x", ()),
    ("# x\n<!-- depends_on: -->", ()),
    ("# x\n<!-- depends_on: none -->", ()),
    ("---\ndepends_on: []\n---\n# x", ()),
    ("---\ndepends_on:\nowner: me\n---\n# x", ()),
    ("---\ndepends_on: null\n---\n# x", ()),
    ("---\nmeta:\n  depends_on: a\n---\n# x", ()),  # somebody else's
    ("# x\ndepends_on: a", ()),  # words
    ("# x\n<!-- this depends_on: a -->", ()),
    ("# x\n```\n<!-- depends_on: a -->\n```", ()),
    ("# x\n~~~html\n<!-- depends_on: a -->\n", ()),
    ("# x\n\n    <!-- depends_on: a -->", ()),
    ("# x\nWrite `<!-- depends_on: a -->`.", ()),
    ("# x\n<pre>\n<!-- depends_on: a -->\n</pre>", ()),
    ("# x\n\n---\ndepends_on: a\n---", ()),  # front matter stands at the head
]


@pytest.mark.parametrize(("text", "expected"), DEPENDS_ON)
def test_dependencies_come_from_comments_and_front_matter(text: str, expected: tuple[str, ...]) -> None:
    """C-048."""
    assert depends_on(text) == expected


def test_none_is_a_task_where_there_is_one() -> None:
    assert folder(a="none", none="").items[0].depends_on == ("none",)


def test_letters_written_in_pieces_are_the_same_letters() -> None:
    tasks = read({"Pru\u0308fen.md": "# a", "b.md": "# b <!-- depends_on: pr\u00fcfen -->"})
    assert (tasks.items[0].depends_on, tasks.problem) == (("Pru\u0308fen",), None)


# ---------------------------------------------------------------- what is wrong with a folder


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "has no tasks"),
        ({"a.md": "# a", "b.md": ""}, "has b.md, which is empty"),
        ({"a.md": " \r\n\t\n"}, "has a.md, which is empty"),
        ({"a.md": "\ufeff"}, "has a.md, which is empty"),
        ({"a.md": "<!-- depends_on: b -->\n", "b.md": "b"}, "has a.md, which is empty"),
        ({"a.md": "---\ntitle: a\n---\n"}, "has a.md, which is empty"),
        ({"a.md": "# a", "A.md": "# A"}, "has A.md and a.md, which differ only in case"),
        ({"a.md": "# a", "a.MD": "# A"}, "has a.MD and a.md, which differ only in case"),
        ({"a.md": "- " * 20_000}, "has a.md, which is too long to read: more than 10,000 lines"),
        ({"a\nb.md": ""}, r"has a b.md, which is empty"),
    ],
)
def test_a_folder_that_cannot_be_used_says_why(files: dict[str, str], problem: str) -> None:
    assert read(files).problem == problem


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        (folder(a="b", b=""), None),
        (folder(a="b, c", b="d", c="d", d=""), None),  # a diamond is no circle
        (folder(a="a"), "has a dependency cycle: a → a"),
        (folder(a="b", b="a"), "has a dependency cycle: a → b → a"),
        (folder(c="b", b="a", a="c"), "has a dependency cycle: a → c → b → a"),
        (folder(a="b", b="c", c="d", d="b"), "has a dependency cycle: b → c → d → b"),
        (folder(a="zzz"), "has no task zzz, but a depends on it"),
        (folder(login="", page="logn"), "has no task logn, but page depends on it; did you mean login?"),
        (folder(**{"001-a": "", "002-b": "009-b"}), "has no task 009-b, but 002-b depends on it"),  # never itself
        (folder(login="", page="a b"), "has no task a b, but page depends on it"),
    ],
)
def test_a_circle_and_a_dependency_on_nothing_are_problems(tasks: FolderTasks, problem: str | None) -> None:
    assert tasks.problem == problem


def test_what_is_done_may_be_named_even_if_its_file_is_gone() -> None:
    """C-048."""
    found = read({"003-c.md": "# C\n<!-- depends_on: 001-A, 002-b -->"}, done=["001-a"])
    assert (found.items[0].depends_on, found.problem) == (
        ("001-a", "002-b"),
        "has no task 002-b, but 003-c depends on it",
    )


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_a_folder_without_a_problem_can_be_worked_through(arrows: list[tuple[int, int]]) -> None:
    """C-048: each task is ready once and after all that it depends on; a circle is always found."""
    tasks = folder(**{f"t{n}": ", ".join(f"t{to}" for from_, to in arrows if from_ == n) for n in range(8)})
    done: set[str] = set()
    while able := ready(tasks, done, set()):
        assert all(id_ in done for id_ in able[0].depends_on)
        assert not stranded(tasks, done, set())
        done.add(able[0].id)
    assert (len(done) == 8) is (tasks.problem is None)


# ---------------------------------------------------------------- what can be worked on

# a ← b ← c, a ← d, e alone
TREE = folder(a="", b="a", c="b", d="a", e="")


@pytest.mark.parametrize(
    ("done", "aside", "able", "lost"),
    [
        ("", "", "a e", ""),
        ("a", "", "b d e", ""),
        ("ab", "", "c d e", ""),
        ("abcde", "", "", ""),
        ("", "a", "e", "b c d"),  # what depends on it is not run
        ("", "e", "a", ""),
        ("a", "b", "d e", "c"),
        ("", "b", "a e", "c"),
        ("", "ab", "e", "c d"),  # one set aside is not stranded as well
        ("b", "a", "c e", "d"),  # what was done before it does not strand others
        ("a", "a", "b d e", ""),  # set aside, then done after all
        ("", "abcde", "", ""),
        ("xyz", "xyz", "a e", ""),  # files that are gone
    ],
)
def test_ready_and_stranded(done: str, aside: str, able: str, lost: str) -> None:
    """C-047, C-048, X-32."""
    assert ids(ready(TREE, set(done), set(aside))) == able
    assert ids(stranded(TREE, set(done), set(aside))) == lost


def test_a_task_that_waits_for_what_is_not_there_is_never_ready() -> None:
    tasks = folder(a="gone", b="")
    assert ids(ready(tasks, set(), set())) == "b"


# ---------------------------------------------------------------- what the agent claims

CLAIMS = [
    ("STATUS: done", "done"),
    ("All good.\n\nSTATUS: done\n", "done"),
    ("All good.\nSTATUS: in-progress", "in-progress"),
    ("status: blocked", "blocked"),
    ("Status : done", "done"),
    ("STATUS: DONE", "done"),
    ("**STATUS:** done", "done"),
    ("**STATUS: done**", "done"),
    ("## STATUS: done.", "done"),
    ("STATUS: `done`", "done"),
    ("- STATUS: done", "done"),
    ("```\nSTATUS: done\nSUMMARY: a\n```", "unclear"),
    ("~~~text\nSTATUS: blocked\n~~~", "blocked"),
    ("```\nSTATUS: done", "unclear"),  # never closed
    ("STATUS: done\r\nSUMMARY: a\r\n", "done"),
    # the last one counts
    ("STATUS: in-progress\n\nNow it works.\n\nSTATUS: done", "done"),
    ("STATUS: done\n\nOh no.\n\nSTATUS: in-progress", "in-progress"),
    ("STATUS: done\n\n> STATUS: blocked", "unclear"),  # quoted
    ('```json\n{"status": "done"}\n```\nSTATUS: in-progress', "in-progress"),
    ('STATUS: in-progress\n```json\n{"status": "done"}\n```', "unclear"),
    # other words for done
    ("STATUS: complete", "done"),
    ("STATUS: Completed.", "done"),
    ("STATUS: finished", "done"),
    # as with a promise: a lead-in that postpones it, prose behind it, a heading right above, doubt
    ("When I am done I will write:\n\nSTATUS: done", "unclear"),
    ("Sobald alles grün ist —\nSTATUS: done", "unclear"),
    ("STATUS: done\n\nBut two tests still fail.", "unclear"),
    ("STATUS: done\nnach dem nächsten Lauf", "unclear"),
    ("## Status\n\nSTATUS: done", "done"),
    ("I cannot say\nSTATUS: done", "unclear"),
    ("<details>\n\nSTATUS: done", "unclear"),
    ("3 of 5 tests pass.\n\nSTATUS: done", "unclear"),
    # what belongs to it may follow, or come before
    ("STATUS: done\nSUMMARY: It works,\neven when it rains.\n\n<promise>OK</promise>\n", "done"),
    ("SUMMARY: It works once the\nserver is up:\nSTATUS: done", "done"),
    ("STATUS: done\nSUMMARY: It works.\n\nNo, it does not.", "unclear"),
    ("STATUS: done\nSUMMARY: a\n\n<promise>OTHER</promise>", "unclear"),
    # a lead-in does no harm where nothing is believed
    ("As of now:\n- STATUS: in-progress\n\nMore to come.", "in-progress"),
    # JSON
    ('{"status": "done"}', "done"),
    ('{\n  "status": "blocked",\n\n  "blocked": "no key"\n}\n', "blocked"),
    ('All good.\n\n{"status": "done", "files": ["a"]}', "done"),
    ('All good.\n{"status": "in-progress"}\n', "in-progress"),
    ('```json\n{\n  "status": "done",\n  "summary": null\n}\n```', "unclear"),
    ('```\n{"status": "done"}\n```\n', "unclear"),
    # no claim, or none that is understood
    ("", None),
    ("Done.", None),
    ("The STATUS: done line comes later.", None),
    ("STATUS: done and dusted", "unclear"),
    ("STATUS: mostly done", "unclear"),
    ("STATUS: not done", "unclear"),
    ("STATUS: done|in-progress|blocked", "unclear"),  # the prompt's own words
    ("STATUS:", "unclear"),
    ("STATUS: in progress", "unclear"),
    ("MY STATUS: done", None),
    ("> STATUS: done", None),
    ("> ```\n> STATUS: done\n> ```", None),
    ("`STATUS: done`", None),
    ("    STATUS: done", None),
    ("<!-- STATUS: done -->", None),
    ("~~STATUS: done~~", None),
    ("| STATUS: done |\n|---|\n| STATUS: done |", None),
    ("STATUS: done\n\nSTATUS: nearly", "unclear"),  # takes it back
    ('{"status": "nearly"}', "unclear"),
    ('{"status": true}', "unclear"),
    ('{"state": "done"}', None),
    ('[{"status": "done"}]', None),
    ('{"result": {"status": "done"}}', None),
    ('> {"status": "done"}', None),
    ('{"status": "done"', None),
    ('{"status": "done"}\n\nwas the answer of the server.', None),
]


@pytest.mark.parametrize(("reply", "status"), CLAIMS)
def test_a_status_block_is_read_and_a_mention_is_not(reply: str, status: str | None) -> None:
    """C-041, DESIGN §8."""
    claim = status_of(reply, "<promise>OK</promise>")
    assert (claim and claim.status) == status


def test_a_status_that_is_not_understood_is_kept_as_it_was_written() -> None:
    assert status_of("All good.\n**STATUS:** nearly there") == TaskClaim(
        status=Claimed.UNCLEAR, summary="**STATUS:** nearly there"
    )


@pytest.mark.parametrize(
    ("reply", "claim"),
    [
        (
            "STATUS: blocked\nSUMMARY: wrote  half\nBLOCKED: no key for the API",
            TaskClaim(status=Claimed.BLOCKED, summary="wrote half", blockers=("no key for the API",)),
        ),
        ("SUMMARY: all of it\nBLOCKED: none\nSTATUS: done", TaskClaim(status=Claimed.DONE, summary="all of it")),
        ("**STATUS:** done\n**SUMMARY:** a `b`", TaskClaim(status=Claimed.DONE, summary="a `b`")),
        (
            '{"status": "blocked", "summary": "half", "blocked": "no key"}',
            TaskClaim(status=Claimed.BLOCKED, summary="half", blockers=("no key",)),
        ),
        ('{"status": "done", "summary": null, "blocked": "n/a"}', TaskClaim(status=Claimed.DONE)),
    ],
)
def test_a_claim_says_what_was_done_and_what_is_in_the_way(reply: str, claim: TaskClaim) -> None:
    assert status_of(reply) == claim


def test_a_readme_is_not_a_task() -> None:
    tasks = read({"README.md": "", "readme.MD": "# About", "readme-2.md": "# Write one", "a.md": "# a"})
    assert ([task.id for task in tasks.items], tasks.problem) == (["a", "readme-2"], None)
    assert read({"README.md": "# About"}).problem == "has no tasks"


# ---------------------------------------------------------------- hostile texts

HOSTILE = {
    "no newline": "a" * 1_000_000,
    "dependencies": "# a\n<!-- depends_on: " + "a," * 500_000 + " -->",
    "keys": "---\n" + "depends_on: b,\n" * 60_000 + "---\n",
    "comments": "<!-- depends_on: a --> " * 40_000,
    "unclosed comments": "<!-- depends_on: " * 60_000,
    "a name without end": "# a\n<!-- depends_on: " + "a" * 1_000_000 + " -->",
    "fields": "STATUS: done\n" * 80_000,
    "JSON without end": '{"status":' * 100_000,
    "deep JSON": '{"a":' + "[" * 500_000,
    "fenced JSON": "```json\n" + "[" * 500_000 + "\n```\n" * 2,
    "tags": "<" * 1_000_000,
    "NUL": "\0" * 1_000_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_are_read_quickly_and_never_raise(text: str) -> None:
    assert effort(lambda: (read({"a.md": text, "b.md": "# b"}), status_of(text))) < MANY_PASSES


def test_a_long_chain_and_a_long_circle_are_found_quickly() -> None:
    chain = {f"{number}.md": f"# a <!-- depends_on: {number + 1} -->" for number in range(3_000)}
    tasks = read({**chain, "3000.md": "# end"})
    assert tasks.problem is None
    assert len(stranded(tasks, set(), {"3000"})) == 3_000
    circle = read({**chain, "3000.md": "# end <!-- depends_on: 0 -->"}).problem
    assert circle is not None
    assert circle.startswith("has a dependency cycle: 0 → 1 → 2 →")
    assert len(circle) == 400


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=60), max_size=4))
def test_nothing_that_a_folder_holds_raises(files: dict[str, str]) -> None:
    tasks = read(files)
    assert len(tasks.items) == len(files)
    ready(tasks, set(), set())
