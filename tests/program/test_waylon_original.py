"""The cases of the original's own tests of its command line (public, `tests/cli.test.js`), told in our words.

Its loops are files that the tests write by hand. Such a file is no loop here (W-042 differs), so ours are run first.
"""

import json

import pytest

from driving import Home, is_error
from program.test_waylon import DONE, LOOPS, WORK, Butler


@pytest.fixture
def butler(home: Home) -> Butler:
    found = Butler(home)
    found.plays(WORK, DONE)
    return found


def runs(butler: Butler, name: str, code: int = 0, *words: str) -> None:
    assert butler("Write it.", "--full-auto", "--loop-id", name, *words).code == code


def test_status_prints_the_state_as_json(butler: Butler) -> None:
    """W-039."""
    runs(butler, "one", 4, "--max-iterations", "1")
    state = json.loads(butler("status", "--loop-id", "one").out)
    assert (state["loop_id"], state["status"], state["max_iterations"]) == ("one", "stopped_max_iterations", 1)


@pytest.mark.parametrize("there", ["no folder", "an empty folder"])
def test_list_says_that_there_are_none(butler: Butler, there: str) -> None:
    """W-042."""
    if there == "an empty folder":
        (butler.repo / LOOPS).mkdir(parents=True)
    assert "No loops found." in butler("list").out.splitlines()


def test_list_names_each_with_its_status(butler: Butler) -> None:
    """W-042."""
    runs(butler, "one", 4, "--max-iterations", "1")
    runs(butler, "two")
    assert [row.split()[:2] for row in butler("list").out.splitlines()] == [
        ["one", "stopped_max_iterations"],
        ["two", "completed"],
    ]


def test_list_as_json_is_an_array_and_leaves_out_what_is_no_loop(butler: Butler) -> None:
    """W-042: also a file that is no JSON, alone or beside others."""
    (butler.repo / LOOPS).mkdir(parents=True)
    (butler.repo / LOOPS / "bad.json").write_text("not valid json")
    assert "No loops found." in butler("list").out
    runs(butler, "good")
    assert [row["loop_id"] for row in json.loads(butler("list", "--json").out)] == ["good"]


@pytest.mark.parametrize("cleanup", [(), ("--cleanup-artifacts",)], ids=["keeps", "removes"])
def test_cancel_ends_a_loop_and_removes_its_files_only_if_asked(butler: Butler, cleanup: tuple[str, ...]) -> None:
    """W-040, W-060."""
    runs(butler, "one", 4, "--max-iterations", "1")
    assert butler("cancel", "--loop-id", "one", *cleanup).code == 0
    state, artifacts = butler.repo / LOOPS / "one.json", butler.repo / LOOPS / "one"
    assert (state.exists(), artifacts.exists()) == (not cleanup, not cleanup)
    if not cleanup:
        assert butler.state("one")["status"] == "canceled"


@pytest.mark.parametrize("given", [True, False])
def test_helpers_have_the_promise_and_the_loop_that_were_given(butler: Butler, given: bool) -> None:
    """W-120."""
    words = ("--completion-promise", "ALL GREEN", "--loop-id", "test-loop") if given else ()
    assert butler("install-helpers", *words).code == 0
    prompt = (butler.home.root / "home/.codex/prompts/waylon-smithers.md").read_text()
    skill = (butler.repo / ".codex/skills/waylon-smithers/SKILL.md").read_text()
    assert ("test-loop" in prompt, "ALL GREEN" in prompt, "ALL GREEN" in skill) == (given, given, given)
    assert ("<loop-id>" in prompt, "TASK_COMPLETE" in prompt) == (not given, not given)
    assert ("--completion-promise 'ALL GREEN' --max" in skill) == given
    again = butler("install-helpers", "--completion-promise", "OTHER")
    assert ("install-helpers --completion-promise OTHER --force" in again.err, is_error(again.err)) == (True, True)


@pytest.mark.parametrize(("number", "code"), [("10", 0), ("abc", 2)])
def test_a_number_is_a_number(butler: Butler, number: str, code: int) -> None:
    """W-021."""
    ended = butler("Write it.", "--full-auto", "--max-iterations", number)
    assert (ended.code, "Traceback" in ended.err) == (code, False)
    assert butler("list", "--json").out.count('"loop_id"') == (code == 0)
