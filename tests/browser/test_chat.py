"""Questions about the repository of a loop, and what becomes of the answers."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.json import encode
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect

from browser.browsing import PHONE, WIDE, is_live, visiting
from browser.night import Night, over
from browser.site import Site
from bydawn.core.chat import Turn, TurnState
from bydawn.store.folder import LoopFolder
from bydawn.store.lock import Lock
from core.facts_made import NOON
from driving import Home, tree_of
from operations.stories import home_of
from real.model_server import Answer, ModelServer
from web.serving import Web

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
    """And not before; what is being typed, the focus and an open fold stay as they are meanwhile."""
    gate, opened = night.home.gate()
    over(night.blocked("billing", gate))
    with visiting(browser, site.url) as visit:
        visit.sign_in(site.link())
        page = visit.go("/loops/billing/chat")
        ask(page)
        is_live(page)
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.method))
        composer, fold = page.get_by_label("Your question"), page.locator("#given")
        fold.locator("summary").click()
        composer.fill("And why?")
        page.keyboard.press("Control+Enter")  # too early
        composer.fill("")
        opened.touch()
        expect(page.locator("[data-turn] .said.doc")).to_be_visible()
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()
        expect(page.locator("#said")).to_have_text("The agent is done.")
        assert sent == [], "neither a question nor the page again"
        expect(composer).to_be_focused()
        expect(fold).to_have_attribute("open", "")
        composer.fill("And why?")
        page.keyboard.press("Control+Enter")
        expect(page.locator("[data-turn] .said.doc")).to_have_count(2)
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_a_long_answer_does_not_move_the_page(blocked: Web, browser: Browser) -> None:
    """Of a long conversation, the end is seen: it grows below where one reads, not above."""
    folder = LoopFolder(home_of(blocked.root, "blocked") / "blocked")
    open_one = Turn(id="t-2", at=NOON, question=QUESTION, agent="codex")
    answered = replace(open_one, state=TurnState.ANSWERED, answer="One more.\n\n" * 40)
    before = encode(replace(answered, id="t-1")) + b"\n"
    lock = Lock.take(folder.chat_lock)
    lock.sign(open_one.id)
    folder.chat.write_bytes(before + encode(open_one) + b"\n")
    with visiting(browser, blocked.url) as visit:
        visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page = visit.go("/loops/blocked/chat")
        is_live(page)
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        at = page.evaluate("scrollY")
        assert at > 0
        lock.release()
        folder.chat.write_bytes(before + encode(answered) + b"\n")
        expect(page.locator("#end .said.doc")).to_contain_text("One more.")
        assert page.evaluate("scrollY") == at


def test_a_copy_is_seen_at_its_button_and_without_a_clipboard_the_text_is_selected(
    blocked: Web, browser: Browser
) -> None:
    """Pages that come over plain http have no clipboard."""
    turn = Turn(id="t-1", at=NOON, question=QUESTION, agent="codex", state=TurnState.ANSWERED, answer="Round half up.")
    folder = LoopFolder(home_of(blocked.root, "blocked") / "blocked")
    folder.chat.write_bytes(encode(turn) + b"\n")
    with visiting(browser, blocked.url, PHONE, permissions=["clipboard-read", "clipboard-write"]) as visit:
        visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        visit.page.clock.install()
        page = visit.go("/loops/blocked/chat")
        page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))  # what is shown for a moment stays
        button, told = page.get_by_role("button", name="Copy"), page.locator("#told")
        button.press("Enter")
        expect(told).to_have_text("Copied.")
        expect(told).to_be_in_viewport(ratio=1)
        expect(page.locator("#said")).to_have_text("Copied.")
        assert page.evaluate("navigator.clipboard.readText()") == turn.answer
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        button.press("Enter")
        expect(told).to_have_text("Selected: now copy it.")
        expect(told).to_be_in_viewport(ratio=1)
        assert page.evaluate("String(getSelection()).trim()") == turn.answer
        expect(button).to_be_focused()
        page.clock.run_for(3000)
        expect(told).to_be_hidden()


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
