"""What live updates may change, and what they must never take away."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser.browsing import GONE, PHONE, Visit, faults, is_live, visiting
from browser.night import Night
from browser.site import Site
from bydawn.core.facts import AnyFact
from bydawn.core.rules import Rule
from bydawn.core.values import End
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger
from bydawn.web import news
from core.facts_made import a_note, ended, run_started, started
from driving import said, wait_for
from operations.stories import home_of, stopped
from web.serving import Web, at_home, serving


def focus(page: Page) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('href') ?? document.activeElement.id"))


class Running:
    """A loop that runs, as far as anyone can see: facts come when the test says so."""

    def __init__(self, web: Web, name: str = "running") -> None:
        self.web = web
        self._ledger = LoopLedger(LoopFolder(home_of(web.root, name) / name), lambda _: None, str)
        self.round = 2

    def record(self, *facts: AnyFact) -> None:
        for fact in facts:
            self._ledger.append(fact)
        self._ledger.sync()

    @property
    def seq(self) -> int:
        return self._ledger.state.seq

    def next_round(self) -> None:
        self.record(ended(self.round, seconds=30.0), started(self.round + 1))
        self.round += 1

    def block(self) -> None:
        self.record(ended(self.round), stopped(End.BLOCKED, Rule.AGENT_BLOCKED, "which rate is meant?"))

    def go_on(self) -> None:
        self.round += 1
        self.record(run_started(), started(self.round))

    def close(self) -> None:
        self._ledger.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    root = tmp_path.resolve()
    with at_home(root), serving(root, "running", "complete", "stopped") as web:
        running = Running(web)
        yield running
        running.close()


@pytest.fixture
def visit(running: Running, browser: Browser) -> Iterator[Visit]:
    with visiting(browser, running.web.url) as visit:
        visit.sign_in(f"{running.web.url}/login#{running.web.code()}")
        is_live(visit.go("/loops/running"))
        yield visit


def test_news_never_move_the_focus(running: Running, visit: Visit) -> None:
    page = visit.page
    page.locator('#rounds a[href="/loops/running/rounds/1"]').focus()
    before = page.evaluate("scrollY")
    running.next_round()
    expect(page.locator("#round-3")).to_be_visible()
    assert focus(page) == "/loops/running/rounds/1"
    page.locator(".actions").get_by_role("button", name="Pause").focus()
    running.next_round()
    expect(page.locator("#round-4")).to_be_visible()
    assert page.evaluate("document.activeElement.textContent").startswith("Pause")
    assert page.evaluate("scrollY") == before


def test_an_open_fold_stays_open_and_a_closed_one_closed(running: Running, visit: Visit) -> None:
    page = visit.page
    page.goto(f"{running.web.url}/loops/running")
    running.next_round()
    page.locator("#course summary").click()
    expect(page.locator("#course details")).to_have_attribute("open", "")
    page.mouse.down(button="right")  # what lifts it again is heard by the menu only, and must not be waited for
    running.next_round()
    expect(page.locator("#course tbody tr")).to_have_count(3)
    expect(page.locator("#course details")).to_have_attribute("open", "")
    expect(page.locator("#tell-form details")).not_to_have_attribute("open", "")


def test_what_is_being_typed_survives_news(running: Running, visit: Visit) -> None:
    """In a part of the page that changes: a question of the agent comes while a note is written."""
    page = visit.page
    page.locator("#tell-form summary").click()
    page.locator("#tell").press_sequentially("Round half")
    section = page.locator("#tell-form").evaluate("(section) => { section.mine = true; return section.outerHTML; }")
    running.next_round()
    running.next_round()
    expect(page.locator("#round-4")).to_be_visible()
    page.locator("#tell").press_sequentially(" up")
    expect(page.locator("#tell")).to_have_value("Round half up")
    assert page.evaluate("document.activeElement.id") == "tell"
    assert page.locator("#tell-form").evaluate("(section) => section.mine") and "details" in section


def test_a_selection_is_not_taken_away(running: Running, visit: Visit) -> None:
    """Wherever it begins: all parts that it touches wait."""
    page = visit.page
    select = """() => getSelection().setBaseAndExtent(
        document.querySelector("#head h1"), 0, document.querySelector("#rounds h2"), 1)"""
    page.evaluate(select)
    running.next_round()
    expect(page).to_have_title("▶ running 3 rounds · bydawn")  # it comes last
    ends = "[getSelection().anchorNode, getSelection().focusNode].map((node) => node.textContent)"
    assert page.evaluate(ends) == ["running", "Rounds"]
    page.evaluate("getSelection().removeAllRanges()")
    expect(page.locator("#round-3")).to_be_visible()


ACTIVE = "document.activeElement"


def test_focus_and_scroll_positions_stay_in_parts_that_change(running: Running, visit: Visit) -> None:
    page, table = visit.page, visit.page.locator("#course .scrolls")
    for _ in range(20):
        running.next_round()
    expect(page.locator("#course tbody tr")).to_have_count(running.round - 1)
    page.locator("#course details").evaluate("(fold) => (fold.open = true)")
    table.evaluate("(box) => { box.focus(); box.scrollTop = 100; }")
    running.next_round()
    expect(page.locator("#course tbody tr")).to_have_count(running.round - 1)
    assert page.evaluate(f"{ACTIVE}.ariaLabel") == "Figures of each round"
    assert table.evaluate("(box) => box.scrollTop") == 100
    page.locator("#course summary").focus()
    running.next_round()
    expect(page.locator("#course tbody tr")).to_have_count(running.round - 1)
    assert page.evaluate(f"{ACTIVE}.localName") == "summary"


def test_who_types_into_a_part_that_no_longer_fits_is_told_so_and_gets_the_text_back(
    running: Running, visit: Visit
) -> None:
    page, part, field = visit.page, visit.page.locator("#now"), visit.page.locator("#now #tell")
    running.block()
    field.focus()
    running.record(a_note("n-7", "half up"))
    expect(part).to_contain_text("“half up”")  # nothing is typed yet, so nothing has to wait
    assert page.evaluate(f"{ACTIVE}.id") == "tell"
    page.keyboard.type("Ask Mia")
    before, note = top(field), part.locator("[data-late]")
    running.go_on()
    expect(page.locator("#head").get_by_role("button", name="Pause")).to_be_visible()
    expect(note).to_have_text("This has changed while you typed. If your text can no longer be sent, you get it back.")
    assert top(field) == before, "it moved while someone typed in it"
    part.get_by_role("button", name="Send").first.click()
    expect(page.locator(".notice.failed")).to_contain_text("Too late: running has gone on since.")
    expect(page.locator("#now")).to_contain_text(f"Round {running.round}")
    expect(page.locator("#tell")).to_have_value("Ask Mia")
    expect(page.locator("#tell")).to_be_visible()


def top(what: Locator) -> int:
    """Where it is on the screen; a browser scrolls by whole pixels."""
    found: float = what.evaluate("(each) => each.getBoundingClientRect().top")
    return round(found)


def test_buttons_of_a_page_that_got_no_news_for_a_while_work_again(running: Running, visit: Visit) -> None:
    """The loop has stopped and gone on meanwhile, and looks as before."""
    page = visit.page
    visit.watch.excused += (GONE,)
    page.route("**/api/stream*", lambda route: route.abort())
    page.evaluate(ANOTHER_TAB)  # for which a new stream is opened
    expect(page.locator("#live")).to_have_text("Not live")
    running.block()
    running.go_on()
    page.unroute("**/api/stream*")
    is_live(page)
    expect(page.locator("#head input[name=expect_seq]")).to_have_value(str(running.seq))


ANOTHER_TAB = """
new BroadcastChannel("bydawn").postMessage({ from: "it", kind: "need", need: '{"pages": [], "logs": []}' })
"""


def test_what_is_read_stays_where_it_is_when_a_loop_above_it_needs_a_person(running: Running, visit: Visit) -> None:
    page = visit.go("/")
    page.set_viewport_size({"width": 390, "height": 300})
    is_live(page)
    read = page.locator("#resting article")
    read.evaluate("(row) => scrollTo(0, row.getBoundingClientRect().top + scrollY - 100)")
    before = top(read)
    running.block()
    expect(page.locator("#needs-you")).to_contain_text("which rate is meant?")
    assert top(read) == before
    expect(page.locator("#needs-now")).to_be_visible()  # since the card is above


def test_a_list_that_grows_below_what_is_read_moves_nothing_and_a_button_keeps_the_focus(
    blocked: Web, browser: Browser
) -> None:
    with visiting(browser, blocked.url, PHONE) as visit:
        visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page = visit.go("/loops/blocked")
        is_live(page)
        page.get_by_role("button", name="Send only").focus()  # the second one of its form
        read = page.locator("#tasks li", has_text="three")
        read.evaluate("(task) => scrollTo(0, task.getBoundingClientRect().top + scrollY - 100)")
        before = top(read)
        with (blocked.root / "work/blocked/TODO.md").open("a") as file:
            file.write("".join(f"- [ ] more {number}\n" for number in range(8)))
        loop = Running(blocked, "blocked")
        loop.record(a_note("n-7", "Ask Mia"))
        loop.close()
        expect(page.locator("#now")).to_contain_text("“Ask Mia”")
        expect(page.locator("#tasks li")).to_have_count(12)
        assert top(read) == before
        assert page.evaluate(f"{ACTIVE}.textContent") == "Send only"


@pytest.mark.parametrize("path", ["/loops/running/stop", "/loops/running/tell"], ids=["question", "refused form"])
def test_a_page_that_is_no_address_of_its_own_stays_as_it_is(running: Running, visit: Visit, path: str) -> None:
    """A question, or the answer to a form, which still gets news: loaded again, it would ask or send again."""
    page, is_form = visit.page, path.endswith("tell")
    if is_form:
        page.locator("#tell-form summary").click()
        page.locator("#tell").fill("   ")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".notice.failed")).to_be_visible()
        expect(page.get_by_role("button", name="Switch to")).to_have_count(0)  # it would lead back to nowhere
    else:
        visit.go(path)
    is_live(page)
    assert page.url == running.web.url + path
    page.evaluate("window.same = true")
    running.next_round()
    if is_form:
        expect(page.locator("#now")).to_contain_text("Round 3")
    else:
        page.wait_for_timeout(1500)
    assert page.evaluate("window.same")


def test_one_who_was_too_slow_gets_everything_again_and_loses_nothing_that_is_typed(
    running: Running, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = visit.page
    page.locator("#tell-form summary").click()
    page.locator("#tell").fill("Round half up")
    monkeypatch.setattr(news, "_QUEUE", 0)  # whatever comes is too much
    with page.expect_request("**/api/stream*") as again:
        running.next_round()
    assert "last-event-id" not in again.value.headers
    monkeypatch.undo()
    expect(page.locator("#round-3")).to_be_visible()
    expect(page.locator("#tell")).to_have_value("Round half up")


def test_the_end_of_a_round_is_spoken_politely_and_a_stop_that_needs_you_at_once(
    running: Running, visit: Visit
) -> None:
    page = visit.page
    running.next_round()
    expect(page.locator("#said[aria-live=polite]")).to_have_text("running: round 2 has ended")
    expect(page.locator("#alarm")).to_be_empty()
    running.block()
    expect(page.locator("#alarm[aria-live=assertive]")).to_contain_text("which rate is meant?")
    expect(page).to_have_title("! running 3 rounds · bydawn")
    expect(page.locator("#favicon")).to_have_attribute("href", "/static/icons/sun-blocked.svg")


def test_under_a_finger_nothing_moves_and_a_bar_says_who_needs_you(running: Running, visit: Visit) -> None:
    page, bar = visit.go("/"), visit.page.locator("#needs-now")
    is_live(page)
    page.mouse.move(20, 800)
    page.mouse.down()
    running.block()
    expect(bar).to_have_text("running needs you now")
    expect(bar.get_by_role("link")).to_have_attribute("href", "/loops/running")
    expect(page.locator("#needs-you")).to_be_empty()
    assert faults(page) == []
    page.mouse.up()
    expect(page.locator("#needs-you")).to_contain_text("which rate is meant?")
    expect(bar).to_be_hidden()


def test_a_log_follows_only_a_reader_who_is_at_its_end(running: Running, visit: Visit) -> None:
    stdout = home_of(running.web.root, "running") / "running/rounds/0002/stdout"
    stdout.parent.mkdir(parents=True)
    say(stdout, 1, 100)
    page = visit.go("/loops/running/log")
    is_live(page)
    expect(page.locator("#L100")).to_be_in_viewport()
    expect(page.get_by_label("Follow")).to_be_checked()
    say(stdout, 101, 140)
    expect(page.locator("#L140")).to_be_in_viewport()
    page.evaluate("scrollTo(0, 300)")
    expect(page.get_by_label("Follow")).not_to_be_checked()
    say(stdout, 141, 152)
    expect(page.locator("#new-lines")).to_have_text("12 new lines")
    assert page.evaluate("scrollY") == 300
    page.locator("#new-lines").click()
    expect(page.locator("#L152")).to_be_in_viewport()
    expect(page.locator("#new-lines")).to_be_hidden()
    expect(page.get_by_label("Follow")).to_be_checked()


def test_a_log_that_has_lines_does_not_say_that_it_has_none(running: Running, visit: Visit) -> None:
    stdout = home_of(running.web.root, "running") / "running/rounds/0002/stdout"
    stdout.parent.mkdir(parents=True)
    stdout.touch()
    page = visit.go("/loops/running/log")
    is_live(page)
    nothing = page.get_by_text("The agent has printed nothing yet.")
    expect(nothing).to_be_visible()
    say(stdout, 1, 1)
    expect(page.locator("#L1")).to_be_visible()
    expect(nothing).to_be_hidden()


def say(stdout: Path, first: int, last: int) -> None:
    lines = (json.dumps({"type": "message", "text": f"line {number}"}) for number in range(first, last + 1))
    with stdout.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))


def test_times_of_day_are_the_readers(night: Night, site: Site, blocked: Web, browser: Browser) -> None:
    """In the page, in lines that come later, and with a date where the day is not clear."""
    running, opened = night.running()
    with visiting(browser, site.url, timezone_id="Asia/Tokyo") as visit:
        visit.sign_in(site.link())
        page = visit.go("/loops/shop-api/log")
        is_live(page)
        lines = page.locator(".log time.at").count()
        opened.touch()
        page.wait_for_function("(lines) => document.querySelectorAll('.log time.at').length > lines", arg=lines)
        are_in_tokyo(page, "%H:%M:%S", ".log time.at")
        are_in_tokyo(visit.go("/loops/shop-api/rounds/1"), "%H:%M")
    with visiting(browser, blocked.url, timezone_id="Asia/Tokyo") as visit:  # it was made long ago
        visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        are_in_tokyo(visit.go("/loops/blocked/rounds/1"), "%Y-%m-%d %H:%M")
    night.home.bydawn("stop", "shop-api")
    said(running)


def are_in_tokyo(page: Page, form: str, which: str = "main time[data-clock]") -> None:
    times = page.locator(which)
    expect(times.first).to_be_attached()
    read = "(all) => all.map((each) => [each.dateTime, each.textContent])"
    wait_for(lambda: all(text == in_tokyo(at, form) for at, text in times.evaluate_all(read)))


def in_tokyo(at: str, form: str) -> str:
    return (datetime.fromisoformat(at) + timedelta(hours=9)).strftime(form)
