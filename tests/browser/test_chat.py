"""Questions about the repository of a loop, and what becomes of the answers."""

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.browsing import PHONE, WIDE, is_live, visiting
from browser.night import Night, over
from browser.site import Site
from driving import Home, tree_of
from real.model_server import Answer, ModelServer

QUESTION = "Which rounding rule is right?"


def ask(page: Page, question: str = QUESTION) -> None:
    page.get_by_label("Your question").fill(question)
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".turn.you").last).to_contain_text(question)


@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "desk"])
def test_an_answer_becomes_a_task_and_a_note(night: Night, site: Site, browser: Browser, size: tuple[int, int]) -> None:
    """A-004, A-064, A-065: from the built-in agent; the loop stands still all the while."""
    over(night.blocked())
    with visiting(browser, site.url, size) as visit:
        visit.sign_in(site.link())
        page = visit.go("/loops/billing/chat")
        expect(page.locator("main")).to_contain_text("Reads only. It changes nothing.")
        ask(page)
        answer = page.locator("[data-turn] .said.doc")
        expect(answer).to_contain_text("Round half up, as tests/test_refund.py does.")
        expect(answer.locator("code")).to_have_text("tests/test_refund.py")
        expect(answer.locator("li")).to_have_count(2)
        page.locator("summary", has_text="Add as a task").click()
        page.get_by_label("The task").fill("Round half up")
        page.get_by_role("button", name="Add").click()
        expect(page.locator("#notice")).to_have_text("Added: “Round half up”.")
        assert (night.home.root / "billing/TODO.md").read_text().endswith("- [ ] Round half up\n")
        page.get_by_role("button", name="Tell the loop this").click()
        expect(page.locator("#notice")).to_have_text("The next prompt will contain it (round 5).")
    [note] = night.facts("billing", "note.added")
    assert note["text"].startswith("Round half up, as `tests/test_refund.py` does.")


def test_the_next_question_can_be_asked_as_soon_as_there_is_an_answer(
    night: Night, site: Site, browser: Browser
) -> None:
    """Without a reload by hand, and without losing a question that is being typed meanwhile."""
    gate, opened = night.home.gate()  # what is typed only after the answer would be typed into a page that goes
    over(night.blocked("billing", gate))
    with visiting(browser, site.url) as visit:
        visit.sign_in(site.link())
        page = visit.go("/loops/billing/chat")
        ask(page)
        page.get_by_label("Your question").press_sequentially("And why")
        opened.touch()
        expect(page.locator("[data-turn] .said.doc")).to_be_visible()
        expect(page.get_by_label("Your question")).to_have_value("And why")
        is_live(page)
        page.get_by_label("Your question").fill("And why?")
        page.keyboard.press("Control+Enter")
        expect(page.locator("[data-turn] .said.doc")).to_have_count(2)
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_an_answer_about_one_loop_is_not_shown_on_the_page_of_another(
    night: Night, site: Site, browser: Browser
) -> None:
    """Both are asked at once, in two tabs of a browser, which share one stream."""
    gate, opened = night.home.gate()
    over(night.blocked("billing", gate), night.blocked("shipping"))
    with visiting(browser, site.url) as visit:
        visit.sign_in(site.link())
        page, other = visit.go("/loops/billing/chat"), visit.tab("/loops/shipping/chat")
        ask(page)
        is_live(page)
        page.evaluate("window.isKept = true")
        ask(other)
        expect(other.locator("[data-turn] .said.doc")).to_contain_text("Round half up")
        expect(page.locator("[data-turn] .said")).to_contain_text("The answer shows up here.")
        assert page.evaluate("window.isKept")
        opened.touch()
        expect(page.locator("[data-turn] .said.doc")).to_contain_text("Round half up")


def test_a_real_agent_answers_in_the_page(
    home: Home, codex_env: dict[str, str], model: ModelServer, browser: Browser
) -> None:
    """A-064: Codex, read-only, with a scripted model behind it."""
    home.env = codex_env
    model.play([Answer(text="half done")])
    assert home.run("codex", "--once").code == 4
    before = tree_of(home.repo)
    model.play([Answer(sh="echo mine > new.txt"), Answer(text="The rate in `tax.py`.")])
    site = Site(home)
    try:
        with visiting(browser, site.url, PHONE) as visit:
            visit.sign_in(site.link())
            page = visit.go("/loops/repo/chat")
            ask(page)
            expect(page.locator("[data-turn] .said.doc")).to_contain_text("The rate in tax.py.", timeout=90_000)
            expect(page.locator("[data-turn] .turn-head")).to_contain_text("codex read only")
    finally:
        site.end()
    assert tree_of(home.repo) == before
    assert QUESTION in str(model.asked[-1].body)
