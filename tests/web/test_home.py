"""The first page: loops in every state, those that need a person first."""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bydawn.operations.amounts import ago
from bydawn.operations.views import by_need, needs_you
from bydawn.web.pages.home import home
from bydawn.web.words import sentence, strip_label
from operations.stories import STORIES, held, home_of, write_loop
from web.drawn import LOOKS, STEERS, Drawn, Element, call, drawn, loops_in


@pytest.fixture
def all_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in STORIES:
        write_loop(tmp_path, name)
    return tmp_path


def seen(root: Path, *, everything: bool = False, looks: bool = False) -> Drawn:
    with ExitStack() as all_of_them:
        for name in STORIES:
            if home_of(root, name).exists():
                all_of_them.enter_context(held(root, name))
        visitor = LOOKS if looks else STEERS
        return drawn(home(call(loops_in(root), visitor=visitor, all="1" if everything else "")), visitor)


def names(page: Drawn, class_: str) -> list[str]:
    """The loops in rows or cards of this kind, in the order of the page."""
    cards = page.all("article", class_)
    links = [(each, link) for link in page.all("a", "row-name") for each in cards if _inside(link, each)]
    return [link.text for _, link in links]


def _inside(element: object, other: object) -> bool:
    here = element
    while here is not None and here is not other:
        here = getattr(here, "above", None)
    return here is other


def test_loops_that_need_a_person_come_first_and_are_counted(all_loops: Path) -> None:
    page = seen(all_loops)
    found = loops_in(all_loops).all()
    expected = [each.loop.id for each in by_need(found) if needs_you(each)]
    assert [name for name in names(page, "need") if not STORIES[name].alive] == [
        name for name in expected if not STORIES[name].alive
    ]
    [title] = page.said("h1")
    assert title == f"{len(names(page, 'need'))} loops need you"
    assert page.said("title")[0].startswith("✗ ")


def test_each_of_them_says_why_and_has_one_filled_button_at_most(all_loops: Path) -> None:
    page = seen(all_loops)
    for card in page.all("article", "need"):
        assert next(each.text for each in page.all("p", "reason") if _inside(each, card))
        buttons = [each for each in page.elements if {"button", "main"} <= {*each.classes} and _inside(each, card)]
        assert len(buttons) <= 1
    assert "The agent says: “which rate is meant?”" in page.said("p", "reason")
    assert "FAIL: test_rounding" in page.said("p", "evidence")


@pytest.mark.parametrize("looks", [False, True])
def test_what_can_be_done_has_the_name_of_its_loop(all_loops: Path, looks: bool) -> None:
    """Read aloud, one after the other, without the cards that they are on."""
    page = seen(all_loops, looks=looks)
    cards = page.all("article", "need")
    buttons = [(each, card) for each in page.all(class_="button") for card in cards if _inside(each, card)]
    assert len(buttons) > len(cards) / 2
    loops = dict(zip(map(id, cards), names(page, "need"), strict=True))
    assert [each.text for each, card in buttons if not _said(each).endswith(f": {loops[id(card)]}")] == []


def _said(button: Element) -> str:
    return button.attributes.get("aria-label") or button.text


def test_the_rest_is_grouped(all_loops: Path) -> None:
    page = seen(all_loops)
    assert page.said("h2") == ["Needs you", "Working", "Finished", "Not running"]
    assert {*names(page, "row")} == {
        *("running", "waiting", "pausing"),
        *("complete", "unverified"),
        *("stopped", "tampered"),
    }


def test_dismissed_loops_are_listed_on_request(all_loops: Path) -> None:
    assert "dismissed" not in names(seen(all_loops), "row")
    assert "1 dismissed loop" in seen(all_loops).said("a")
    assert "dismissed" in names(seen(all_loops, everything=True), "row")


def test_someone_who_may_only_look_has_no_form_that_steers(all_loops: Path) -> None:
    page = seen(all_loops, looks=True)
    assert {each.attributes["action"] for each in page.all("form")} == {"/settings/theme"}
    assert len(names(page, "need")) > 5


def test_of_many_finished_loops_the_latest_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(25):
        monkeypatch.setitem(STORIES, f"done{number}", STORIES["complete"])
        write_loop(tmp_path, f"done{number}")
    assert len(names(seen(tmp_path), "row")) == 20
    assert "and 5 more" in seen(tmp_path).said("a")
    assert len(names(seen(tmp_path, everything=True), "row")) == 25


def test_without_loops_it_says_what_one_is(tmp_path: Path) -> None:
    page = seen(tmp_path)
    assert page.said("h1") == ["No loops yet"]
    assert [each.attributes["action"] for each in page.all("form")] == ["/settings/theme", "/start"]
    assert "Start the demo" in page.said("button")
    assert "Start the demo" not in seen(tmp_path, looks=True).said("button")


@pytest.mark.parametrize(
    ("name", "title"), [("running", "All is well"), ("complete", "Nothing is running"), ("blocked", "1 loop needs you")]
)
def test_the_heading_is_the_answer(name: str, title: str, tmp_path: Path) -> None:
    write_loop(tmp_path, name)
    assert seen(tmp_path).said("h1") == [title]


def test_a_damaged_loop_is_listed_with_the_command_that_helps(tmp_path: Path) -> None:
    write_loop(tmp_path, "stopped")
    (home_of(tmp_path, "stopped") / "stopped" / "ledger.jsonl").write_text("nonsense\n")
    page = seen(tmp_path)
    assert names(page, "need") == ["stopped"]
    assert "bydawn doctor --repair stopped" in page.said("code")


def test_what_others_wrote_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bydawn.core.rules import Rule
    from bydawn.core.values import End
    from core.facts_made import a_round
    from operations.stories import Story, stopped

    evil = "<script>alert(1)</script><b onclick=x>"
    facts = [*a_round(1, said=evil, task=evil), stopped(End.BLOCKED, Rule.NO_PROGRESS, evil)]
    monkeypatch.setitem(STORIES, "evil", Story(facts=facts))
    write_loop(tmp_path, "evil")
    page = seen(tmp_path)
    assert len(page.all("script")) == 1
    assert evil in page.said("p", "reason")[0]


def test_a_picture_has_its_sentence() -> None:
    assert strip_label(["passed", "red", "red", "slept"], 84) == (
        "The last 3 rounds: 1 checks passed, 2 a check failed, 1 machine asleep; 84 earlier"
    )
    assert strip_label([]) == "No rounds yet"


def test_a_sentence_begins_with_a_capital_unless_that_would_change_a_name() -> None:
    assert sentence("the checks failed") == "The checks failed."
    assert sentence("src/a.py is gone") == "src/a.py is gone."
    assert sentence("") == ""


@pytest.mark.parametrize(
    ("passed", "words"), [(90, "1 m 30 ago"), (40 * 3600, "40 h 00 ago"), (75 * 3600, "3 days ago")]
)
def test_what_was_long_ago_is_told_in_days(passed: int, words: str) -> None:
    assert ago(datetime.now(UTC) - timedelta(seconds=passed)) == words
