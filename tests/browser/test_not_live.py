"""A page without news must not look alive: the server is killed, stands still, and comes back."""

import re
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.browsing import GONE, Visit, is_live, visiting
from browser.night import Night
from browser.site import Site
from bydawn.web import app, stream
from driving import is_alive, said
from web.serving import Web


def is_not_live(page: Page) -> None:
    expect(page.locator("#live")).to_have_text("Not live")
    expect(page.locator("#stale")).to_have_text(
        re.compile(r"Not live: last news .* agoWhat you see may be out of date\. Trying again.*Try now")
    )
    expect(page.locator("body")).to_have_attribute("data-live", "no")


def age(page: Page) -> str:
    return page.locator("#now time[data-elapsed]").inner_text()


def test_a_killed_server_is_noticed_at_once_and_news_go_on_when_it_is_back(
    night: Night, site: Site, browser: Browser
) -> None:
    """It is signed in as before, nothing of the loop was touched, and nobody had to reload."""
    running, opened = night.running()
    [run] = night.facts("shop-api", "run.started")
    with visiting(browser, site.url) as visit:
        visit.watch.excused += (GONE,)
        visit.sign_in(site.link())
        page = visit.go("/loops/shop-api")
        is_live(page)
        page.evaluate("window.same = true")
        before = age(page)
        expect(page.locator("#now time[data-elapsed]")).not_to_have_text(before)
        site.kill()
        is_not_live(page)
        stands = age(page)
        time.sleep(2.2)
        assert age(page) == stands, "ages count without news"
        expect(page.locator("#stale strong")).not_to_have_text("Not live: last news 0 s ago")
        assert is_alive(run["pid"]) and night.facts("shop-api", "run.started") == [run]
        site.start()
        is_live(page)
        expect(page.locator("#stale")).to_be_hidden()
        opened.touch()
        expect(page.locator("#now")).to_contain_text("Round 4")
        assert page.evaluate("window.same"), "it was reloaded"
    night.home.bydawn("stop", "shop-api")
    said(running)
    assert len(night.facts("shop-api", "run.started")) == 1


def test_all_tabs_say_it_soon_not_only_the_one_that_reads(night: Night, site: Site, browser: Browser) -> None:
    running, _ = night.running()
    with visiting(browser, site.url) as visit:
        visit.watch.excused += (GONE,)
        visit.sign_in(site.link())
        tabs = [visit.go("/"), visit.tab("/loops/shop-api"), visit.tab("/loops/shop-api/log")]
        for page in tabs:
            is_live(page)
        site.kill()
        for page in tabs:
            is_not_live(page)
        site.start()
        for page in tabs:
            is_live(page)
    night.home.bydawn("stop", "shop-api")
    said(running)


def test_a_server_that_says_nothing_for_40_seconds_is_not_live(site: Site, browser: Browser) -> None:
    """Its connection is still open; the clock of the page is put forward."""
    with visiting(browser, site.url) as visit:
        visit.context.clock.install()
        page = visit.sign_in(site.link())
        is_live(page)
        with site.standing_still():
            # From here only we move its clock; by itself, on a busy machine, it would go on for seconds.
            visit.context.clock.pause_at(page.evaluate("Date.now()") / 1000 + 10)
            forward(visit, 20)
            expect(page.locator("#live")).to_have_text("Live")
            forward(visit, 15)
            is_not_live(page)
        visit.watch.excused += (GONE,)
        forward(visit, 20)
        visit.context.clock.resume()
        is_live(page)


def test_a_server_that_never_answers_is_given_up_and_asked_again(site: Site, browser: Browser) -> None:
    with visiting(browser, site.url) as visit:
        visit.context.clock.install()
        visit.watch.excused += (GONE,)
        page = visit.sign_in(site.link())
        is_live(page)
        page.route("**/api/stream*", lambda _: None)
        with site.standing_still():
            visit.context.clock.pause_at(page.evaluate("Date.now()") / 1000 + 10)
            forward(visit, 22)
            with page.expect_request("**/api/stream*"):  # no news for so long, and someone comes back
                page.evaluate("dispatchEvent(new Event('focus'))")
            with page.expect_request("**/api/stream*"):  # what was asked then is not answered
                forward(visit, 40)
        page.unroute_all()
        visit.context.clock.resume()
        page.evaluate("dispatchEvent(new Event('online'))")
        is_live(page)


def forward(visit: Visit, seconds: int) -> None:
    for _ in range(seconds):
        visit.context.clock.run_for(1000)


def test_who_is_signed_out_is_led_to_the_sign_in_page(site: Site, browser: Browser) -> None:
    with visiting(browser, site.url) as visit:
        page = visit.sign_in(site.link())
        other = visit.tab("/settings")
        is_live(page)
        other.get_by_role("button", name="Sign out").click()
        other.wait_for_url(f"{site.url}/login")
        visit.watch.excused += (GONE,)
        site.kill()
        is_not_live(page)
        site.start()
        page.wait_for_url(f"{site.url}/login")


def test_who_is_signed_out_while_typing_is_told_so_and_keeps_the_text(
    blocked: Web, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_SIGN", 0.2)
    monkeypatch.setattr(app, "_CHECKED", 0.2)  # how often sessions are looked at
    with visiting(browser, blocked.url) as visit:
        visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page, idle, other = visit.go("/loops/blocked"), visit.tab("/"), visit.tab("/settings")
        is_live(page)
        is_live(idle)
        page.locator("#tell").fill("Ask Mia")
        other.get_by_role("button", name="Sign out").click()
        expect(page.locator("#stale")).to_contain_text("You are signed outWhat you typed is still here.")
        idle.wait_for_url(f"{blocked.url}/login")
        expect(page.locator("#tell")).to_have_value("Ask Mia")
        page.locator("#tell").fill("")
        page.wait_for_url(f"{blocked.url}/login")
