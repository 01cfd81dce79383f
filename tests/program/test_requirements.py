"""What each dialect's document asks for is shown by a test, or says why not."""

from pathlib import Path

import msgspec
import pytest

from requirements import ROOT, dialects, missing, named, page, unknown

LIST = """
[zebra]
letter = "Z"
Z-001 = {kind = "behaviour", text = "Gallops"}
Z-002 = {kind = "format", text = "Black | white"}
Z-003 = {kind = "risk", text = "Lions"}
Z-004 = {kind = "measure", text = "Liked", reason = "ask its users"}
Z-005 = {kind = "behaviour", text = "Roars", differs = "it barks: lions roar"}
"""
TESTS = '''
"""Z-001: what a module says of itself claims nothing."""

import pytest

STRIPES = [
    ("black", "white"),  # Z-001: nor does a table
]


def helper() -> None:
    """Z-001: nor does what is no test."""


def test_gallop() -> None:
    """Q-001, Z-002; as far as it can."""
    assert "Z-001"
'''


def a_tree(root: Path, tests: str = TESTS, listed: str = LIST) -> Path:
    for name, text in [("docs/requirements.toml", listed), ("tests/core/test_zebra.py", tests)]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def rows(root: Path) -> list[str]:
    return [line for line in page(root).splitlines() if line.startswith("| Z-")]


# -- this project ------------------------------------------------------------------------------------------------------


def test_the_page_of_requirements_is_what_the_list_and_the_tests_say() -> None:
    assert (ROOT / "docs/requirements.md").read_text() == page(), "run scripts/docs"


def test_every_requirement_has_a_test_or_says_why_not() -> None:
    lines = missing()
    assert not lines, "\n".join([f"no test names these {len(lines)} in its docstring:", *lines])


def test_no_test_names_a_requirement_that_does_not_exist() -> None:
    assert unknown() == {}


def test_a_reason_stands_only_where_there_is_no_test() -> None:
    tests = named()
    listed = [row for dialect in dialects() for row in dialect.requirements.items()]
    assert [each for each, requirement in listed if requirement.reason and each in tests] == []


def test_ids_have_the_letter_of_their_dialect_and_stand_in_order() -> None:
    letters = [dialect.letter for dialect in dialects()]
    assert len(letters) == len({*letters})
    for dialect in dialects():
        ids = list(dialect.requirements)
        assert ids == sorted(ids)  # TOML itself refuses a key that stands there twice
        assert [each for each in ids if not each.startswith(f"{dialect.letter}-")] == []


# -- how tests are read ------------------------------------------------------------------------------------------------


def test_a_test_shows_what_its_docstring_names(tmp_path: Path) -> None:
    test = "tests/core/test_zebra.py::test_gallop"
    assert named(a_tree(tmp_path)) == {"Q-001": [test], "Z-002": [test]}


SPOKEN = '''
@pytest.mark.parametrize(
    "stripe",
    [
        "black",  # Z-001
        pytest.param("white", id="Z-002"),
    ],
)
async def test_stripes(stripe: str) -> None:
    # Z-003
    assert stripe  # Z-004


# Z-005: between two tests


class TestHerd:
    """Z-006."""

    def test_size(self) -> None:
        """Z-004, Z-007."""
'''


def test_comments_decorators_and_classes_are_read_as_well(tmp_path: Path) -> None:
    stripes, size = "tests/core/test_zebra.py::test_stripes", "tests/core/test_zebra.py::TestHerd::test_size"
    found = named(a_tree(tmp_path, SPOKEN))
    assert found == {
        "Z-001": [stripes],
        "Z-002": [stripes],
        "Z-003": [stripes],
        "Z-004": [size, stripes],
        "Z-007": [size],
    }


def test_an_id_is_a_word_of_its_own(tmp_path: Path) -> None:
    assert named(
        a_tree(tmp_path, 'def test_x() -> None:\n    """UTF-8, XZ-001, Z-001a, (Z-002), Z-Q1."""\n')
    ).keys() == {
        "Z-002",
        "Z-Q1",  # a question of the document
    }


# -- what that amounts to ----------------------------------------------------------------------------------------------


def test_what_needs_no_test_says_so_and_what_lacks_one_is_missing(tmp_path: Path) -> None:
    assert rows(a_tree(tmp_path)) == [
        "| Z-001 | Gallops |  | MISSING |",
        r"| Z-002 | Black \| white | [test_gallop](../tests/core/test_zebra.py) | shown |",
        "| Z-003 | Lions |  | not needed: risk |",
        "| Z-004 | Liked |  | reason: ask its users |",
        "| Z-005 | Roars |  | differs: it barks: lions roar |",
    ]
    assert missing(tmp_path) == ["Z-001 Gallops"]


def test_what_differs_says_so_even_if_a_test_shows_how(tmp_path: Path) -> None:
    row = rows(a_tree(tmp_path, 'def test_bark() -> None:\n    """Z-005."""\n'))[4]
    assert row == "| Z-005 | Roars | [test_bark](../tests/core/test_zebra.py) | differs: it barks: lions roar |"


def test_what_a_removed_test_showed_is_missing(tmp_path: Path) -> None:
    a_tree(tmp_path)
    (tmp_path / "tests/core/test_zebra.py").unlink()
    assert missing(tmp_path) == ["Z-001 Gallops", "Z-002 Black | white"]


def test_a_row_names_three_tests_and_counts_the_others(tmp_path: Path) -> None:
    five = "\n".join(f'def test_{number}() -> None:\n    """Z-001."""\n' for number in range(5))
    first = rows(a_tree(tmp_path, five))[0]
    assert "[test_2](../tests/core/test_zebra.py), and 2 more | shown |" in first
    assert "test_3" not in first


def test_a_slip_of_the_pen_is_found_and_other_letters_are_left_alone(tmp_path: Path) -> None:
    source = TESTS + '\n\ndef test_stripes() -> None:\n    """Z-999, Z-02, Q-777."""\n'
    test = "tests/core/test_zebra.py::test_stripes"
    assert unknown(a_tree(tmp_path, source)) == {"Z-999": [test], "Z-02": [test]}


@pytest.mark.parametrize(
    "entry", ['{kind = "wanted", text = "x"}', '{kind = "risk"}', '{kind = "risk", text = "x", y = 1}']
)
def test_a_list_that_cannot_be_read_is_refused(tmp_path: Path, entry: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        dialects(a_tree(tmp_path, listed=f"{LIST}Z-006 = {entry}\n"))
