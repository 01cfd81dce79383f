"""A document that a person edits in the page while its agent edits it, too."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from browser.browsing import PHONE, WIDE, is_live, is_saved, visiting
from driving import wait_for
from operations.stories import STORIES, TODO, Story
from web.serving import Web, at_home, serving

MINE = TODO.replace("[ ] three", "[ ] three, by day") + "- [ ] five\n"
THEIRS = "# Plan\n\n" + TODO.replace("[ ] three", "[x] three")
BOTH = "# Plan\n\n- [x] one\n- [x] two\n- [x] three\n- [ ] three, by day\n\nHARD STOP\n\n- [ ] four\n- [ ] five\n"


def todo(web: Web) -> Path:
    return web.root / "work/blocked/TODO.md"


def open_editor(web: Web, page: Page) -> None:
    page.goto(f"{web.url}/loops/blocked/docs/todo")
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("TODO.md")).to_have_value(todo(web).read_text())


@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "desk"])
def test_two_edits_at_once_are_shown_side_by_side_and_nothing_is_lost(
    blocked: Web, browser: Browser, size: tuple[int, int]
) -> None:
    """A-004, A-065."""
    with visiting(browser, blocked.url, size) as visit:
        page = visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        open_editor(blocked, page)
        page.get_by_label("TODO.md").fill(MINE)
        todo(blocked).write_text(THEIRS)
        page.get_by_role("button", name="Save").click()
        expect(page.locator("main")).to_contain_text("TODO.md changed while you were editing.")
        expect(page.locator("main")).to_contain_text("Nothing was overwritten, and your text is kept here.")
        assert todo(blocked).read_text() == THEIRS
        clash = page.locator(".clash", has_text="both changed")
        expect(clash.locator(".yours")).to_have_text("Yours- [ ] three, by day")
        expect(clash.locator(".theirs")).to_have_text("Now in the file- [x] three")
        expect(page.locator(".clash", has_text="only you changed")).to_contain_text("- [ ] five")
        expect(page.locator(".clash", has_text="only the file changed")).to_contain_text("# Plan")
        expect(page.locator("#text")).to_have_value(BOTH)
        with page.expect_download() as download:
            page.get_by_role("button", name="Download mine").click()
        assert Path(download.value.path()).read_text().replace("\r\n", "\n") == MINE
        page.get_by_role("button", name="Save this").click()
        is_saved(page)
        assert todo(blocked).read_text() == BOTH
        expect(page.locator(".doc")).to_contain_text("three, by day")


def test_a_second_conflict_on_the_way_loses_nothing_either(blocked: Web, browser: Browser) -> None:
    """The agent saves once more while the person looks at both texts."""
    with visiting(browser, blocked.url) as visit:
        page = visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        open_editor(blocked, page)
        page.get_by_label("TODO.md").fill(MINE)
        todo(blocked).write_text(THEIRS)
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#text")).to_have_value(BOTH)
        todo(blocked).write_text(THEIRS + "- [ ] six\n")
        page.wait_for_load_state()  # the keys are a script's
        page.locator("#text").press("Control+s")
        expect(page.locator(".clash", has_text="- [ ] six")).to_be_visible()
        page.get_by_role("button", name="Save this").click()
        is_saved(page)
        assert {*todo(blocked).read_text().splitlines()} == {*BOTH.splitlines(), "- [ ] six"}


def test_a_preview_and_a_look_elsewhere_keep_what_was_typed(blocked: Web, browser: Browser) -> None:
    with visiting(browser, blocked.url) as visit:
        page = visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        open_editor(blocked, page)
        page.get_by_label("TODO.md").fill(MINE)
        page.get_by_role("button", name="Preview").click()
        expect(page.locator(".doc")).to_contain_text("three, by day")
        expect(page.locator("#text")).to_have_value(MINE)
        page.go_back()
        expect(page.locator("#text")).to_have_value(MINE)
        assert todo(blocked).read_text() == TODO


def test_a_tick_is_one_edit(blocked: Web, browser: Browser) -> None:
    """Without a button, onto the version that was seen, and nothing but this box; the page stays where it was."""
    with visiting(browser, blocked.url, PHONE) as visit:
        page = visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page.goto(f"{blocked.url}/loops/blocked/docs/todo")
        page.get_by_role("checkbox", name="four").click()
        is_saved(page)
        assert todo(blocked).read_text() == TODO.replace("[ ] four", "[x] four")
        page.get_by_role("checkbox", name="one").click()
        expect(page.locator("main")).to_contain_text("2 of 4 done")
        assert todo(blocked).read_text() == TODO.replace("[ ] four", "[x] four").replace("[x] one", "[ ] one")


def test_a_tick_before_the_script_is_there_waits_for_a_button(blocked: Web, browser: Browser) -> None:
    with visiting(browser, blocked.url) as visit:
        page = visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        held: list[Route] = []
        page.route("**/static/live.js*", lambda route: held.append(route), times=1)
        page.goto(f"{blocked.url}/loops/blocked/docs/todo", wait_until="commit")
        page.get_by_role("checkbox", name="four").click()
        expect(page.get_by_role("button", name="Save ticks")).to_be_hidden()
        wait_for(lambda: page.title() and held)  # it may be late to ask for the script; we hear it while we ask
        held[0].continue_()
        page.get_by_role("button", name="Save ticks").click()
        is_saved(page)
        assert todo(blocked).read_text() == TODO.replace("[ ] four", "[x] four")


def test_a_tick_finds_its_box_again_or_is_refused(blocked: Web, browser: Browser) -> None:
    """The file has changed since; a box whose words are gone is no longer what was ticked."""
    with visiting(browser, blocked.url) as visit:
        visit.watch.excused += ("net::ERR_FAILED",)
        page = visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page.route("**/api/stream*", lambda route: route.abort())  # no news of the other versions
        page.goto(f"{blocked.url}/loops/blocked/docs/todo")
        todo(blocked).write_text(THEIRS)
        page.get_by_role("checkbox", name="four").click()
        is_saved(page)
        theirs = THEIRS.replace("[ ] four", "[x] four")
        assert todo(blocked).read_text() == theirs
        todo(blocked).write_text(theirs.replace("two", "another one"))
        page.get_by_role("checkbox", name="two").click()
        expect(page.locator("main")).to_contain_text("Nothing was ticked")
        assert todo(blocked).read_text() == theirs.replace("two", "another one")
        page.get_by_role("link", name="Look at it as it is now").click()
        expect(page.get_by_role("checkbox", name="another one")).to_be_checked()


def test_all_documents_of_a_loop_are_edited_on_a_phone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Browser
) -> None:
    """The list, the agent's notes, a person's rules; one of them does not exist yet."""
    names = {"tasks": "TODO.md", "progress": "PROGRESS.md", "opinions": "OPINIONS.md"}
    files = {"TODO.md": TODO, "OPINIONS.md": "Never use `eval`.\n"}
    monkeypatch.setitem(STORIES, "three", Story(facts=STORIES["blocked"].facts, settings=names, files=files))
    root = tmp_path.resolve()
    with at_home(root), serving(root, "three") as web, visiting(browser, web.url, PHONE) as visit:
        visit.sign_in(f"{web.url}/login#{web.code()}")
        page = visit.go("/loops/three/docs")
        for name in names.values():
            page.get_by_label("Documents").get_by_role("link", name=name).click()
            page.get_by_role("link", name="Edit").click()
            page.get_by_label(name).press("Control+End")
            page.get_by_label(name).press_sequentially("more")
            page.wait_for_load_state()  # the keys are a script's
            page.keyboard.press("Control+s")
            is_saved(page)
            expect(page.locator(".doc")).to_contain_text("more")
        found = {path.name: path.read_text() for path in (root / "work/three").glob("*.md")}
        assert found == {"TODO.md": f"{TODO}more", "OPINIONS.md": "Never use `eval`.\nmore", "PROGRESS.md": "more"}


def test_a_page_that_is_read_shows_what_the_agent_writes(blocked: Web, browser: Browser) -> None:
    with visiting(browser, blocked.url) as visit:
        page = visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page.goto(f"{blocked.url}/loops/blocked/docs/todo")
        is_live(page)
        todo(blocked).write_text(THEIRS)
        expect(page.get_by_role("checkbox", name="three")).to_be_checked()
        page.get_by_label("Add a task").fill("six")
        page.get_by_role("button", name="Add").click()
        expect(page.locator("#notice")).to_have_text("Added: “six”.")
        expect(page.get_by_role("checkbox", name="six")).to_be_visible()
        assert todo(blocked).read_text() == THEIRS + "- [ ] six\n"
