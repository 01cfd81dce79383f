"""One stream for all tabs of a browser: a browser opens only six connections to a server."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from browser.browsing import Visit, is_live, visiting
from browser.night import Night, over
from browser.site import Site
from driving import said, wait_for
from operations.stories import home_of
from web.serving import Web, at_home, serving


class Streams:
    """The streams that a browser has open, each with the tab that reads it."""

    def __init__(self, visit: Visit) -> None:
        self._open: list[Request] = []
        self._visit = visit
        visit.context.on("request", self._begin)
        visit.context.on("requestfinished", self._end)
        visit.context.on("requestfailed", self._end)

    def _begin(self, request: Request) -> None:
        if "/api/stream" in request.url:
            self._open.append(request)

    def _end(self, request: Request) -> None:
        self._open = [each for each in self._open if each != request]

    @property
    def readers(self) -> list[Page]:
        self._visit.context.pages[0].evaluate("0")  # what has happened meanwhile is heard now
        return [request.frame.page for request in self._open if not request.frame.page.is_closed()]

    def one(self) -> Page:
        # In one look: a reader that hears of another tab closes its stream and opens the next.
        [reader] = wait_for(lambda: found if len(found := self.readers) == 1 else [])
        return reader


def test_three_tabs_share_one_stream_and_another_one_takes_over(night: Night, site: Site, browser: Browser) -> None:
    running, opened = night.running()
    with visiting(browser, site.url) as visit:
        visit.sign_in(site.link())
        streams = Streams(visit)
        tabs = [visit.go("/"), visit.tab("/loops/shop-api"), visit.tab("/loops/shop-api/rounds")]
        for page in tabs:
            is_live(page)
        reader = streams.one()
        expect(tabs[0].locator("#working")).to_contain_text("Prorate refunds · editing refund.py · last output")
        opened.touch()
        expect(tabs[0].locator("#working")).to_contain_text("Prorate refunds · last output")
        expect(tabs[1].locator("#now")).to_contain_text("Round 4")
        expect(tabs[2].locator("#round-4")).to_be_visible()
        assert streams.one() is reader

        reader.close()
        tabs.remove(reader)
        assert streams.one() in tabs
        night.home.bydawn("stop", "shop-api")
        for page in tabs:
            expect(page).to_have_title(re.compile("■ shop-api|Loops"))
        said(running)


def test_a_tab_waits_once_for_its_turn_and_again_if_it_was_taken_away(output: "Output", browser: Browser) -> None:
    with visiting(browser, output.web.url) as visit:
        visit.sign_in(f"{output.web.url}/login#{output.web.code()}")
        streams = Streams(visit)
        tabs = [visit.go("/"), visit.tab("/")]
        for page in tabs:
            is_live(page)
        reader = streams.one()
        [other] = [page for page in tabs if page is not reader]
        for _ in range(3):
            seems_hidden(other, "true")
            seems_hidden(other, "false")
        assert locks(other) == {"held": 1, "pending": 1}
        other.close()
        reader.evaluate("navigator.locks.request('bydawn-stream', { steal: true }, () => {})")
        wait_for(lambda: locks(reader) == {"held": 1, "pending": 0})
        assert streams.one() is reader
        is_live(reader)


def test_a_tab_that_was_opened_in_the_background_gives_its_turn_away(output: "Output", browser: Browser) -> None:
    with visiting(browser, output.web.url) as visit:
        visit.context.clock.install()
        page = visit.sign_in(f"{output.web.url}/login#{output.web.code()}")
        page.add_init_script("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
        page.reload()
        is_live(page)
        visit.context.clock.fast_forward(61_000)
        wait_for(lambda: locks(page) == {"held": 0, "pending": 0})
        seems_hidden(page, "false")
        wait_for(lambda: locks(page) == {"held": 1, "pending": 0})
        is_live(page)


def seems_hidden(page: Page, value: str) -> None:
    page.evaluate(f"""() => {{
        Object.defineProperty(document, "hidden", {{ value: {value}, configurable: true }});
        document.dispatchEvent(new Event("visibilitychange"));
    }}""")


def locks(page: Page) -> dict[str, int]:
    """How many tabs read, and how many wait for their turn."""
    count = "(found) => ({ held: found.held.length, pending: found.pending.length })"
    return dict(page.evaluate(f"navigator.locks.query().then({count})"))


def test_another_tab_takes_nothing_from_an_answer_that_is_being_written(
    night: Night, site: Site, browser: Browser
) -> None:
    first, begins = night.home.gate("first")
    second, ends = night.home.gate("second")
    over(night.blocked("billing", first, {"say": "The first half."}, second))
    with visiting(browser, site.url) as visit:
        visit.sign_in(site.link())
        page = visit.go("/loops/billing/chat")
        page.get_by_label("Your question").fill("Which rounding rule is right?")
        page.get_by_role("button", name="Ask").click()
        answer = page.locator("[data-turn].running .said")
        expect(answer).to_contain_text("The answer shows up here.")
        is_live(page)
        begins.touch()
        expect(answer).to_have_text("The first half.")
        page.evaluate(DRAWN_AGAIN)
        visit.tab("/")
        page.wait_for_function("() => window.isDrawnAgain")
        expect(answer).to_have_text("The first half.")
        ends.touch()
        expect(page.locator("[data-turn] .said.doc")).to_contain_text("Round half up")


# The reader tells the other tabs after it has taken the news itself; the head of a page comes after its parts.
DRAWN_AGAIN = """() => {
    new BroadcastChannel("bydawn").onmessage = ({ data }) => {
        if (data.event === "head" && JSON.parse(data.data).page === location.pathname) window.isDrawnAgain = true;
    };
}"""


class Output:
    """What the agent of a running round prints, when the test says so."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self._path = home_of(web.root, "running") / "running/rounds/0002/stdout"
        self._path.parent.mkdir(parents=True)
        self.lines = 0
        self.grow(20)

    def grow(self, count: int) -> None:
        with self._path.open("a") as file:
            for _ in range(count):
                self.lines += 1
                file.write(json.dumps({"type": "message", "text": f"line {self.lines}"}) + "\n")


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Output]:
    root = tmp_path.resolve()
    with at_home(root), serving(root, "running", "blocked") as web:
        yield Output(web)


def test_a_log_in_several_tabs_has_each_line_once(output: Output, browser: Browser) -> None:
    """While it grows, tabs come and go, and the one that reads changes; none was opened at the same line."""
    with visiting(browser, output.web.url) as visit:
        visit.sign_in(f"{output.web.url}/login#{output.web.code()}")
        tabs = [visit.go("/loops/running/log")]
        is_live(tabs[0])
        for path in ("/loops/running/log", "/loops/blocked", "/loops/running/log", "/"):
            output.grow(7)
            shows(tabs, output.lines)
            tabs.append(visit.tab(path))
            output.grow(3)
            is_live(tabs[-1])
            output.grow(5)
        shows(tabs, output.lines)
        tabs.pop(0).close()
        output.grow(4)
        shows(tabs, output.lines)


def shows(tabs: list[Page], last: int) -> None:
    """Every log has come to its end, line by line."""
    for page in tabs:
        if page.url.endswith("/log"):
            expect(page.locator(f"#L{last}")).to_be_attached()
            found = page.locator(".log .line").evaluate_all("(lines) => lines.map((line) => Number(line.id.slice(1)))")
            assert found == [*range(1, last + 1)]
