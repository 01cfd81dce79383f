"""What a person does about a loop from the page: approve, raise, skip, tell, pause, stop."""

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.browsing import PHONE, WIDE, is_live, visiting
from browser.night import Night, over
from browser.site import Site
from driving import said

BOTH = pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "desk"])


def press(page: Page, name: str) -> None:
    page.locator("main").get_by_role("button", name=name).click()


def notice(page: Page, text: str) -> None:
    expect(page.locator("#notice")).to_contain_text(text)


@BOTH
def test_a_checkpoint_is_looked_at_and_approved(
    night: Night, site: Site, browser: Browser, size: tuple[int, int]
) -> None:
    """A-004: the list leads to the loop, where the checkpoint stands; then it goes on to its end."""
    over(night.checkpoint())
    with visiting(browser, site.url, size) as visit:
        page = visit.sign_in(site.link())
        expect(page.locator(".need")).to_contain_text("TODO.md says: HARD STOP: ask Mia about the tax.")
        page.get_by_role("link", name="Look and approve").click()
        press(page, "Approve and go on")
        notice(page, "payments goes on.")
        expect(page.locator("#now")).to_contain_text("unverified")
        expect(page.locator("#tasks")).to_contain_text("5 of 5")
    assert [fact["text"] for fact in night.facts("payments", "checkpoint.approved")] == [
        "HARD STOP: ask Mia about the tax"
    ]


def test_a_limit_is_raised_from_the_list(night: Night, site: Site, browser: Browser) -> None:
    over(night.limit())
    with visiting(browser, site.url) as visit:
        page = visit.sign_in(site.link())
        expect(page.locator(".need")).to_contain_text("The only round is used up.")
        press(page, "Raise to 21 rounds and go on")
        notice(page, "search goes on.")
        expect(page.locator("#now")).to_contain_text("unverified")
    assert len(night.facts("search", "limits.raised")) == 1 and len(night.facts("search", "round.ended")) == 4


def test_a_task_that_blocks_is_skipped(night: Night, site: Site, browser: Browser) -> None:
    over(night.blocked())
    with visiting(browser, site.url, PHONE) as visit:
        page = visit.sign_in(site.link())
        page.get_by_role("link", name="billing", exact=True).click()
        press(page, "Skip and resume")
        notice(page, "Skipped: “Prorate refunds”.")
        expect(page.locator("#now")).to_contain_text("complete")
        expect(page.locator('#tasks [data-stand="skipped"]')).to_contain_text("Prorate refunds")
    assert [fact["text"] for fact in night.facts("billing", "task.settled")] == ["Prorate refunds"]


@BOTH
def test_a_note_is_told_and_the_loop_resumed(night: Night, site: Site, browser: Browser, size: tuple[int, int]) -> None:
    """One screen of a phone shows why it stands still and what to do about it."""
    over(night.blocked())
    with visiting(browser, site.url, size) as visit:
        page = visit.sign_in(site.link())
        page.get_by_role("link", name="Tell the agent").click()
        if size == PHONE:
            assert_on_one_screen(page)
        page.get_by_label("Tell the agent what to do differently").fill("Round half up.")
        press(page, "Send and resume")
        notice(page, "Sent. Round 5 starts.")
        expect(page.locator("#now")).to_contain_text("complete")
    assert "Round half up." in (night.folder("billing") / "rounds/0005/prompt.md").read_text()


def assert_on_one_screen(page: Page) -> None:
    """The reason, the agent's words and the button that helps."""
    page.evaluate("scrollTo(0, 0)")
    for shown in (".stop-reason", ".quote", "#tell", "button.main"):
        box = page.locator("main").locator(shown).first.bounding_box()
        assert box and box["y"] + box["height"] <= PHONE[1], shown


@BOTH
def test_a_running_loop_is_told_something_paused_and_stopped(
    night: Night, site: Site, browser: Browser, size: tuple[int, int]
) -> None:
    """Stop asks first, says what is lost, and offers the milder way."""
    running, opened = night.running()
    with visiting(browser, site.url, size) as visit:
        page = visit.sign_in(site.link())
        page.get_by_role("link", name="shop-api", exact=True).click()
        page.locator("main").get_by_role("link", name="Tell the agent").click()
        page.get_by_label("Note for the next prompt").fill("Look at the tax, too.")
        press(page, "Send")
        notice(page, "The next prompt will contain it (round 4).")
        press(page, "Pause")
        notice(page, "shop-api pauses after round 3.")
        expect(page.locator("#now")).to_contain_text("Pausing after round 3")
        expect(page.locator("main").get_by_role("button", name="Pause")).to_have_count(0)
        is_live(page)
        opened.touch()
        expect(page.locator("#now")).to_contain_text("paused")
        assert said(running).code == 130
        press(page, "Resume")
        notice(page, "shop-api goes on.")
        expect(page.locator("#now")).to_contain_text("Round 4")
        assert "Look at the tax, too." in (night.folder("shop-api") / "rounds/0004/prompt.md").read_text()
        page.get_by_role("link", name="Stop…").click()
        expect(page.get_by_role("heading", name="Stop shop-api now?")).to_be_visible()
        expect(page.locator("main")).to_contain_text("the round counts for nothing")
        expect(page.get_by_role("button", name="Pause after this round instead")).to_be_visible()
        page.get_by_role("link", name="Go on").click()
        expect(page.locator("#now")).to_contain_text("Round 4")
        page.get_by_role("link", name="Stop…").click()
        press(page, "Stop now")
        notice(page, "shop-api stops now; what it changed stays.")
        expect(page.locator("#now")).to_contain_text("stopped")
    assert night.state("shop-api") == "stopped"
