"""Pages about a round, which stay with it when it ends and the next one begins."""

from playwright.sync_api import Browser, expect

from browser.browsing import is_live, visiting
from browser.night import Night
from browser.site import Site
from driving import said


def test_a_round_gets_its_end_its_checks_and_its_changes_while_one_looks(
    night: Night, site: Site, browser: Browser
) -> None:
    """Its log, too; and both lead to the next round instead of becoming its page by half."""
    running, opened = night.running()
    with visiting(browser, site.url) as visit:
        visit.sign_in(site.link())
        log, page = visit.go("/loops/shop-api/log"), visit.tab("/loops/shop-api/rounds/3")
        is_live(log)
        is_live(page)
        expect(page.locator("#checks")).to_contain_text("The checks run when the agent has finished.")
        expect(log.locator("#log-end .cursor")).to_be_attached()
        opened.touch()
        expect(page.locator("#checks")).to_contain_text("exit 1")
        expect(page.locator("#changes")).to_contain_text("notes.txt")
        expect(page.locator("#steps")).to_contain_text("I can't tell which is right.")
        expect(log.locator("#log-end")).to_contain_text("Round 3 ended: not yet")
        expect(log.locator("#log-end .cursor")).to_have_count(0)
        expect(log).to_have_title("▶ shop-api 2/5 · log of round 3 · bydawn")
        log.get_by_role("link", name="Round 4 is running").click()
        expect(log.get_by_label("Round", exact=True)).to_have_value("4")
    night.home.bydawn("stop", "shop-api")
    said(running)
