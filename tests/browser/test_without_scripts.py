"""The page with scripts off: everything can be read and done."""

import re

from playwright.sync_api import Browser, expect

from browser.browsing import PHONE, visiting
from browser.night import WORDS, Night, over
from browser.site import Site


def test_a_night_is_looked_after_without_scripts(night: Night, site: Site, browser: Browser) -> None:
    """A-004, A-065: sign in, find out who needs you and why, tell it, tick, search, switch the colors."""
    over(night.blocked())
    todo = night.home.root / "billing/TODO.md"
    with visiting(browser, site.url, PHONE, java_script_enabled=False) as visit:
        page = visit.go("/")
        expect(page.get_by_role("heading", name="You are not signed in")).to_be_visible()
        page.get_by_role("link", name="Sign in with a code").click()
        page.get_by_label("Code").fill("wrong-one")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("main")).to_contain_text("That code was used or is wrong.")
        page.goto(f"{site.url}/login")
        page.get_by_label("Code").fill(site.link().partition("#")[2])
        page.get_by_role("button", name="Sign in").click()

        expect(page.get_by_role("heading", name="1 loop needs you")).to_be_visible()
        assert re.fullmatch(r"As of \d\d:\d\d:\d\d\. Reload for news\.", page.locator("#live").inner_text())
        card = page.locator(".need")
        expect(card).to_contain_text("The checks failed in exactly the same way 3 times in a row.")
        expect(card).to_contain_text("E   AssertionError: Decimal('9.99') != Decimal('10.00')")
        expect(card).to_contain_text(f"The agent said: “{WORDS}”")
        card.get_by_role("link", name="billing", exact=True).click()

        page.get_by_label("Tell the agent what to do differently").fill("Round half up.")
        page.get_by_role("button", name="Send only").click()
        expect(page.locator("#notice")).to_have_text("The next prompt will contain it (round 5).")
        expect(page.locator("main")).to_contain_text("“Round half up.” goes into the next prompt")

        page.get_by_role("link", name="Docs").click()
        page.get_by_role("checkbox", name="Write docs/refunds.md").check()
        page.get_by_role("button", name="Save ticks").click()
        expect(page.locator("#notice")).to_contain_text("Saved as version")
        assert "- [x] Write docs/refunds.md" in todo.read_text()

        page.get_by_role("link", name="Log").click()
        page.get_by_label("Search this log").fill("rule says")
        page.get_by_role("button", name="Show").click()
        expect(page.locator("mark")).to_have_text("rule says")
        expect(page.locator("main").get_by_role("status")).to_contain_text("1 hit, in line")

        before = page.url
        page.get_by_role("button", name="Switch to light").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        assert page.url == before, "it leads back to the page"
        page.get_by_role("button", name="Switch to dark").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.get_by_role("link", name="Overview").click()
        page.locator("summary", has_text="Why it decided so").click()
        page.get_by_role("link", name="What the rules looked at").click()
        expect(page.get_by_role("heading", name="Why billing")).to_be_visible()
        page.get_by_role("link", name="Back").click()
        page.get_by_role("button", name="Resume", exact=True).click()
        expect(page.locator("#notice")).to_have_text("billing goes on.")
        night.ends("billing")
        page.reload()
        expect(page.locator("#now")).to_contain_text("complete")


def test_ticks_that_are_saved_late_undo_nothing_of_the_agents(night: Night, site: Site, browser: Browser) -> None:
    """The form has the boxes of the version that was seen; by now the file has other lines, and one more tick."""
    over(night.blocked())
    todo = night.home.root / "billing/TODO.md"
    with visiting(browser, site.url, java_script_enabled=False) as visit:
        visit.sign_in_with(site.link())
        page = visit.go("/loops/billing/docs/todo")
        page.get_by_role("checkbox", name="Write docs/refunds.md").check()
        theirs = (
            todo.read_text().replace("# Refunds", "# Refunds\n\n- [ ] A new one").replace("[ ] Prorate", "[x] Prorate")
        )
        todo.write_text(theirs)
        page.get_by_role("button", name="Save ticks").click()
        expect(page.locator("#notice")).to_contain_text("Saved as version")
        assert todo.read_text() == theirs.replace("[ ] Write", "[x] Write")


def test_a_late_tap_undoes_nothing(night: Night, site: Site, browser: Browser) -> None:
    """The page still shows a button of a state that is over."""
    over(night.blocked())
    with visiting(browser, site.url, java_script_enabled=False) as visit:
        visit.sign_in_with(site.link())
        page, late = visit.go("/loops/billing"), visit.tab("/loops/billing")
        page.get_by_role("button", name="Resume", exact=True).click()
        expect(page.locator("#notice")).to_have_text("billing goes on.")
        night.ends("billing")
        late.get_by_role("button", name="Skip and resume").click()
        expect(late.locator("#notice")).to_contain_text("Too late: billing has gone on since.")
        assert night.facts("billing", "task.settled") == []
