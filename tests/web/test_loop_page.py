"""A loop's own page: in every state it says what happens or why it ended, and offers what helps."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from bydawn.core.breakers import Limits
from bydawn.core.facts import AnyFact, LoopStopped
from bydawn.core.values import Changes, Decided, End, LineCounts, Usage
from bydawn.operations.views import reason
from bydawn.store import ledger
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger
from bydawn.store.registry import Standing, standing_of
from bydawn.web.page import fragment
from bydawn.web.pages import recent_of
from bydawn.web.pages.course import course
from bydawn.web.pages.loop import all_rounds, overview
from bydawn.web.words import sentence
from core.facts_made import MAKE_TEST, NOON, a_round, checked, todo
from operations.stories import STORIES, Story, held, home_of, write_loop
from web.drawn import LOOKS, STEERS, Drawn, call, drawn, loops_in

ENDED = [name for name, story in STORIES.items() if not story.alive]


def seen(root: Path, name: str, *, looks: bool = False) -> Drawn:
    visitor = LOOKS if looks else STEERS
    with held(root, name):
        return drawn(overview(call(loops_in(root), name, visitor)), visitor)


def a_standing(root: Path, name: str) -> Standing:
    found = standing_of(LoopFolder(home_of(root, name) / name))
    assert found
    return found


@pytest.mark.parametrize("name", STORIES)
def test_every_state_has_a_page(name: str, tmp_path: Path) -> None:
    write_loop(tmp_path, name)
    page = seen(tmp_path, name)
    assert page.said("h1") == [name]
    assert len([each for each in page.elements if {"button", "main"} <= {*each.classes}]) <= 1
    assert len(page.all(class_="tabs")) == 1
    parts = ["head", "now", "tell-form", "strip", "tasks", "missing", "course", "rounds", "why"]
    around = ("rail", "stale", "needs-now")
    found = [each.attributes["id"] for each in page.all("section")]
    assert sorted(parts) == sorted(each for each in found if each not in around)


@pytest.mark.parametrize("name", ENDED)
def test_a_loop_that_has_ended_says_why_first(name: str, tmp_path: Path) -> None:
    write_loop(tmp_path, name)
    page = seen(tmp_path, name)
    [told] = page.said("p", "stop-reason")
    assert told == sentence(reason(a_standing(tmp_path, name)))


@pytest.mark.parametrize("name", STORIES)
def test_someone_who_may_only_look_sees_commands_instead_of_forms(name: str, tmp_path: Path) -> None:
    write_loop(tmp_path, name)
    page = seen(tmp_path, name, looks=True)
    assert {each.attributes["action"] for each in page.all("form")} == {"/settings/theme"}
    assert not page.all("textarea")


@pytest.mark.parametrize("name", STORIES)
def test_every_part_can_be_sent_alone(name: str, tmp_path: Path) -> None:
    write_loop(tmp_path, name)
    with held(tmp_path, name):
        page = overview(call(loops_in(tmp_path), name))
        for section in page.sections:
            assert fragment(section, STEERS).startswith(f'<section id="{section.id}" ')


def test_a_blocked_loop_has_a_form_for_what_its_agent_needs(tmp_path: Path) -> None:
    write_loop(tmp_path, "blocked")
    page = seen(tmp_path, "blocked")
    [form] = [each for each in page.all("form") if each.attributes["action"] == "/loops/blocked/tell"]
    fields = {each.attributes.get("name"): each.attributes.get("value") for each in page.all("input")}
    assert fields["expect_seq"] == str(a_standing(tmp_path, "blocked").state.seq)
    assert page.said("button", "main") == ["Send and resume"]
    assert "Answer the agent" in form.text
    assert "FAIL: test_rounding" in page.said("pre", "output")


def test_a_checkpoint_is_approved_with_one_button(tmp_path: Path) -> None:
    write_loop(tmp_path, "checkpoint")
    page = seen(tmp_path, "checkpoint")
    assert page.said("button", "main") == ["Approve and go on"]
    assert "/loops/checkpoint/approve" in [each.attributes["action"] for each in page.all("form")]
    assert "Open round 1" in page.said("a"), "which is what there is to look at"


def test_a_limit_is_raised_with_one_button_or_to_what_a_person_says(tmp_path: Path) -> None:
    write_loop(tmp_path, "limit")
    page = seen(tmp_path, "limit")
    [main] = page.said("button", "main")
    assert main.startswith("Raise to ")
    [field] = [each for each in page.all("input") if each.attributes.get("aria-label", "").startswith("New limit")]
    assert field.attributes["name"] in ("rounds", "for", "until", "budget")
    assert "Raise and go on" in page.said("button")


def test_a_box_that_was_ticked_since_counts_beside_the_page_too(tmp_path: Path) -> None:
    write_loop(tmp_path, "stopped")
    write_loop(tmp_path, "blocked")
    todo = tmp_path / "work/blocked/TODO.md"
    before = seen(tmp_path, "blocked")
    todo.write_text(todo.read_text().replace("[ ] three", "[x] three"))
    after = seen(tmp_path, "blocked")
    assert ("2/4" in before.find("rail").text, "3/4" in after.find("rail").text) == (True, True)
    assert "3 of 4" in after.find("tasks").text


def test_the_time_until_which_it_may_work_becomes_the_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    until, story = datetime.now(UTC) + timedelta(hours=3), STORIES["running"]
    settings = {**story.settings, "limits": Limits(until=until)}
    monkeypatch.setitem(STORIES, "running", msgspec.structs.replace(story, settings=settings))
    write_loop(tmp_path, "running")
    times = [each.attributes for each in seen(tmp_path, "running").all("time")]
    assert f"{until:%Y-%m-%dT%H:%M:%S}+00:00" in [each["datetime"] for each in times if "data-clock" in each]


def test_the_end_of_a_wait_is_a_time_that_becomes_the_readers(tmp_path: Path) -> None:
    write_loop(tmp_path, "waiting")
    page = seen(tmp_path, "waiting")
    [title] = [each for each in page.all("h2") if each.text.startswith("Waiting")]
    assert [each for each in page.all("time") if "data-clock" in each.attributes and each.above is title]


def test_several_tasks_are_skipped_together(tmp_path: Path) -> None:
    write_loop(tmp_path, "folder")
    assert seen(tmp_path, "folder").said("button", "main") == ["Reopen task 1"]


def test_a_running_loop_shows_its_round_and_its_limits(tmp_path: Path) -> None:
    write_loop(tmp_path, "running")
    page = seen(tmp_path, "running")
    assert "Round 2" in page.said("h2")
    assert page.said("dt") == ["Rounds", "Cost", "Time"]
    assert [each.attributes["action"] for each in page.all("form")] == [
        "/settings/theme",
        "/loops/running/pause",
        "/loops/running/tell",
    ]
    assert "/loops/running/stop" in [each.attributes["href"] for each in page.all("a")]
    assert page.find("rounds").text.startswith("Rounds newest first")


def test_what_was_asked_is_not_offered_again(tmp_path: Path) -> None:
    write_loop(tmp_path, "pausing")
    page = seen(tmp_path, "pausing")
    assert "/loops/pausing/pause" not in [each.attributes["action"] for each in page.all("form")]
    assert "Pausing after round 2, asked by ada." in page.find("now").text
    assert "running, then pauses" in page.find("head").text


def test_rounds_are_rows_with_what_came_between(tmp_path: Path) -> None:
    write_loop(tmp_path, "blocked")
    with held(tmp_path, "blocked"):
        page = drawn(all_rounds(call(loops_in(tmp_path), "blocked")))
    assert page.said("td", "r-no") == ["2", "1"]
    assert page.said("td", "r-verdict") == ["denied", "not yet"]
    assert ["note from ada for the next prompt" in each.lower() for each in page.said("tr", "between")] == [True] * 2


def test_each_round_has_a_link_with_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [*a_round(1, task="one", said=""), *a_round(2, task="one", said=""), *a_round(3, said="")]
    monkeypatch.setitem(STORIES, "same", Story(facts=facts))
    write_loop(tmp_path, "same")
    page = drawn(all_rounds(call(loops_in(tmp_path), "same")))
    assert page.said("td", "r-task") == ["Round 3", "Round 2: one", "Round 1: one"]


def test_a_loop_whose_files_are_gone_still_has_a_page(tmp_path: Path) -> None:
    write_loop(tmp_path, "blocked")
    (tmp_path / "work" / "blocked" / "TODO.md").unlink()
    assert "TODO.md is gone." in seen(tmp_path, "blocked").find("tasks").text


def test_a_damaged_loop_has_a_page_with_the_command_that_helps(tmp_path: Path) -> None:
    write_loop(tmp_path, "stopped")
    (home_of(tmp_path, "stopped") / "stopped" / "ledger.jsonl").write_text("nonsense\n")
    page = seen(tmp_path, "stopped")
    assert "bydawn doctor --repair stopped" in page.said("code")
    assert "is damaged at line 1" in page.said("p", "stop-reason")[0]


# -- a long history ----------------------------------------------------------------------------------------------------


def a_long_one(root: Path, rounds: int, monkeypatch: pytest.MonkeyPatch) -> LoopFolder:
    facts = [fact for number in range(1, rounds + 1) for fact in (*a_round(number, seconds=9.0), checked(number))]
    monkeypatch.setitem(STORIES, "long", Story(facts=facts, settings={"checks": (MAKE_TEST,)}))
    write_loop(root, "long")
    folder = LoopFolder(home_of(root, "long") / "long")
    kept = LoopLedger(folder, lambda _: None, str)
    kept.append(LoopStopped(end=End.BLOCKED, reason="why", decided=Decided(rule="no-progress", at=NOON, elapsed=1.0)))
    kept.snapshot()
    kept.close()
    return folder


def test_of_a_long_history_a_page_reads_only_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_long_one(tmp_path, 2000, monkeypatch)
    decoded, real = 0, ledger.decode

    def counting(line: bytes, seq: int) -> object:
        nonlocal decoded
        decoded += 1
        return real(line, seq)

    monkeypatch.setattr(ledger, "decode", counting)
    page = seen(tmp_path, "long")
    assert page.said("td", "r-no") == [str(number) for number in range(2000, 1992, -1)]
    assert decoded < 500
    [picture] = page.all("svg", "ticks")
    assert picture.attributes["aria-label"].endswith("1960 earlier")


def test_rounds_come_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_long_one(tmp_path, 250, monkeypatch)
    first = drawn(all_rounds(call(loops_in(tmp_path), "long")))
    assert first.said("td", "r-no") == [str(number) for number in range(250, 150, -1)]
    assert "/loops/long/rounds?before=151" in [each.attributes["href"] for each in first.all("a")]
    last = drawn(all_rounds(call(loops_in(tmp_path), "long", before="51")))
    assert last.said("td", "r-no") == [str(number) for number in range(50, 0, -1)]


# -- the course as plots -----------------------------------------------------------------------------------------------


def test_plots_have_words_for_everything_they_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def a_turn(number: int, left: int, *closed: str) -> list[AnyFact]:
        changes = Changes(lines=LineCounts(added=10 * number, removed=number))
        spent, reading = Usage(cost_usd=0.5), todo(left, 3 - left)
        return a_round(number, tasks=reading, seconds=60.0, usage=spent, changes=changes, closed=closed)

    facts = [
        *a_turn(1, 2, "one"),
        checked(1),
        *a_turn(2, 2),
        checked(2, passed=False),
        *a_turn(3, 1, "two"),
        checked(3),
    ]
    monkeypatch.setitem(STORIES, "plotted", Story(facts=facts, settings={"tasks": "TODO.md", "checks": (MAKE_TEST,)}))
    write_loop(tmp_path, "plotted")
    standing = a_standing(tmp_path, "plotted")
    found = course(standing, recent_of(standing, 120))
    assert found
    assert [(plot.title, plot.caption) for plot in found.plots] == [
        ("Open tasks", "3 at first, 1 now"),
        ("Time per round", "median 1 m 00, longest 1 m 00 (round 3)"),
        ("Cost so far", "$1.50"),
        ("Lines changed", "+60 −6"),
    ]
    looks = [shape.look for plot in found.plots for shape in plot.shapes]
    assert looks.count("bars") == 2
    assert looks.count("hollow") == 1
    assert [(row.round, row.open, row.cost) for row in found.table] == [(1, 2, 0.5), (2, 2, 0.5), (3, 1, 0.5)]


def test_a_single_round_is_no_course(tmp_path: Path) -> None:
    write_loop(tmp_path, "unverified")
    standing = a_standing(tmp_path, "unverified")
    assert course(standing, recent_of(standing, 120)) is None


def test_unknown_costs_are_not_drawn(tmp_path: Path) -> None:
    write_loop(tmp_path, "complete")
    standing = a_standing(tmp_path, "complete")
    found = course(standing, recent_of(standing, 120))
    assert found
    assert "Cost so far" not in [plot.title for plot in found.plots]
    assert msgspec.json.encode(found)
