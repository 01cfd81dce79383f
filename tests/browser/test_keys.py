"""The page without a pointer."""

from playwright.sync_api import Browser, Page, Route, expect

from browser.browsing import Visit, is_saved, visiting
from operations.stories import TODO, home_of
from web.serving import Web

# What a person who sees recognizes the focus by.
RING = """() => {
    const style = getComputedStyle(document.activeElement);
    return `${style.outlineStyle} ${style.outlineWidth}`;
}"""
# What is wrong with the focus, if anything is.
UNSEEN = """() => {
    const active = document.activeElement, style = getComputedStyle(active), box = active.getBoundingClientRect();
    const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    const onScreen = box.bottom > 0 && box.top < innerHeight && box.width > 0;
    return ring && onScreen ? "" : `${active.outerHTML.slice(0, 200)} ${style.outline}`;
}"""
FOCUS = "document.activeElement.getAttribute('href') ?? document.activeElement.id"


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def focus(page: Page) -> str:
    return str(page.evaluate(FOCUS))


def goes(visit: Visit, key: str, to: str) -> None:
    """A key leads to a page; once it is there, its scripts are, too."""
    press(visit.page, key)
    visit.page.wait_for_url(visit.origin + to)


def test_everything_is_reached_with_keys(everything: Web, browser: Browser) -> None:
    """Skip link, rows, a loop, its tabs, search, a note, and up again."""
    with visiting(browser, everything.url) as visit:
        page = visit.sign_in(f"{everything.url}/login#{everything.code()}")
        press(page, "Tab")
        assert focus(page) == "#main"
        expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
        assert page.evaluate(RING) == "solid 2px"
        press(page, "Enter")
        assert focus(page) == "main"

        press(page, "j")
        first = focus(page)
        press(page, "j")
        second = focus(page)
        assert first.startswith("/loops/") and second.startswith("/loops/") and first != second
        assert page.evaluate(RING) == "solid 2px"
        press(page, "k")
        assert focus(page) == first
        while focus(page) != "/loops/blocked":
            press(page, "j")
        goes(visit, "Enter", "/loops/blocked")

        for number, tab in enumerate(("rounds", "docs", "log", "chat"), 2):
            goes(visit, str(number), f"/loops/blocked/{tab}")
        goes(visit, "4", "/loops/blocked/log")
        press(page, "/")
        press(page, *"1ju")  # it is text, in a field
        expect(page.get_by_label("Search this log")).to_have_value("1ju")
        press(page, "Escape")
        assert focus(page) != "q" and page.evaluate("document.activeElement === document.body")
        goes(visit, "1", "/loops/blocked")
        press(page, "t")
        press(page, *"hi")
        expect(page.locator("#tell")).to_have_value("hi")
        press(page, "Escape")
        goes(visit, "2", "/loops/blocked/rounds")
        press(page, "j")
        goes(visit, "Enter", "/loops/blocked/rounds/2")
        goes(visit, "u", "/loops/blocked/rounds")
        goes(visit, "u", "/loops/blocked")
        goes(visit, "u", "/")
        goes(visit, "?", "/settings#keys")


def test_a_note_for_a_running_loop_begins_with_t(everything: Web, browser: Browser) -> None:
    with visiting(browser, everything.url) as visit:
        visit.sign_in(f"{everything.url}/login#{everything.code()}")
        page = visit.go("/loops/running")
        press(page, "t")
        press(page, *"hi")
        expect(page.locator("#tell")).to_be_visible()
        expect(page.locator("#tell")).to_have_value("hi")


def test_every_focus_can_be_seen(everything: Web, browser: Browser) -> None:
    """Tab through whole pages: each stop has a ring and is on the screen, and the last one leads out."""
    with visiting(browser, everything.url) as visit:
        visit.sign_in(f"{everything.url}/login#{everything.code()}")
        for path in ("/", "/loops/blocked", "/loops/blocked/docs/todo", "/settings"):
            page = visit.go(path)
            stops = 0
            press(page, "Tab")
            while stops < 200 and not page.evaluate("document.activeElement === document.body"):
                assert page.evaluate(UNSEEN) == "", path
                press(page, "Tab")
                stops += 1
            assert 8 < stops < 200, path


def test_single_keys_can_be_turned_off(everything: Web, browser: Browser) -> None:
    with visiting(browser, everything.url) as visit:
        visit.sign_in(f"{everything.url}/login#{everything.code()}")
        page = visit.go("/settings")
        page.get_by_role("button", name="Turn off").click()
        expect(page.get_by_role("button", name="Turn on")).to_be_visible()
        page = visit.go("/loops/blocked")
        press(page, *"2jtu/?")
        assert page.evaluate("document.activeElement === document.body")
        assert page.url == f"{everything.url}/loops/blocked"
        visit.go("/settings")
        page.get_by_role("button", name="Turn on").click()
        expect(page.get_by_role("button", name="Turn off")).to_be_visible()
        page.wait_for_load_state()
        goes(visit, "u", "/")


def test_ticks_keep_the_focus_and_come_one_after_the_other(blocked: Web, browser: Browser) -> None:
    """The page comes back with each; a second tick on the way would call off the first."""
    todo = blocked.root / "work/blocked/TODO.md"
    with visiting(browser, blocked.url) as visit:
        visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page = visit.go("/loops/blocked/docs/todo")
        three, four = (page.get_by_role("checkbox", name=name) for name in ("three", "four"))
        held: list[Route] = []
        page.route("**/tick", lambda route: held.append(route), times=1)
        three.focus()
        with page.expect_request("**/tick"):
            press(page, "Space")
        press(page, "Tab", "Space")
        held[0].continue_()
        is_saved(page)
        expect(three).to_be_checked()
        expect(three).to_be_focused()
        expect(four).not_to_be_checked()
        press(page, "Tab", "Space")
        expect(page.locator("main")).to_contain_text("4 of 4 done")
        expect(four).to_be_focused()
    assert todo.read_text() == TODO.replace("[ ]", "[x]")


def test_n_goes_to_the_next_hit_and_says_which_it_is(blocked: Web, browser: Browser) -> None:
    stdout = home_of(blocked.root, "blocked") / "blocked/rounds/0002/stdout"
    stdout.parent.mkdir(parents=True, exist_ok=True)
    (stdout.parent / "prompt.md").write_text("do it\n")
    stdout.write_text("".join(f'{{"type":"message","text":"rule {number}"}}\n' for number in range(1, 41)))
    with visiting(browser, blocked.url) as visit:
        visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page, current = visit.go("/loops/blocked/log?q=rule"), visit.page.locator("mark[aria-current]")
        for key, number in (("N", 40), ("n", 1), ("n", 2), ("N", 1)):
            press(page, key)
            expect(page.locator("#hit")).to_have_text(f"Now at {number} of 40 on this page.")
            expect(page.locator(f"#L{number}").locator(current)).to_be_in_viewport()
            expect(current).to_have_count(1)
            expect(page.locator("#told")).to_have_text(f"{number} of 40")


def test_keys_that_are_meant_for_something_else_do_nothing(blocked: Web, browser: Browser) -> None:
    """`u` where there is nothing above, Esc while a word is composed; Caps Lock does not matter."""
    with visiting(browser, blocked.url) as visit:
        page = visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page.wait_for_load_state()
        loads: list[str] = []
        page.on("framenavigated", lambda frame: loads.append(frame.url))
        press(page, "u")
        goes(visit, "?", "/settings#keys")
        assert loads == [f"{blocked.url}/settings#keys"]
        page = visit.go("/loops/blocked/docs/todo?mode=edit")
        page.locator("#text").focus()
        composing = "new KeyboardEvent('keydown', { key: 'Escape', isComposing: true, bubbles: true })"
        page.evaluate(f"document.activeElement.dispatchEvent({composing})")
        expect(page.locator("#text")).to_be_focused()
        press(page, "Control+End", "x", "Control+S")
        is_saved(page)
    assert (blocked.root / "work/blocked/TODO.md").read_text() == f"{TODO}x"


def test_an_editor_is_not_left_with_what_is_not_saved(blocked: Web, browser: Browser) -> None:
    """By key, tab or link, without a question; what says that it does not save asks nothing."""
    with visiting(browser, blocked.url) as visit:
        visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        page = visit.go("/loops/blocked/docs/todo?mode=edit")
        page.locator("#text").press("x")
        press(page, "Escape")
        with page.expect_event("dialog") as asked:
            press(page, "u")
        assert asked.value.type == "beforeunload"
        expect(page.locator("#text")).to_have_value(f"x{TODO}")
        visit.watch.found.clear()  # the question
        page.get_by_role("link", name="Do not save").click()
        expect(page.locator(".doc")).to_be_visible()
        page.get_by_role("link", name="Edit").click()
        expect(page.locator("#text")).to_have_value(TODO)
        page.wait_for_load_state()
        page.locator("#text").press("Control+End")
        press(page, "Escape")
        goes(visit, "1", "/loops/blocked")


def test_a_link_that_is_pasted_where_one_signs_in_does_so(blocked: Web, browser: Browser) -> None:
    """The page is there already, so that nothing but the part behind the # changes; also after a wrong code."""
    with visiting(browser, blocked.url) as visit:
        page = visit.go("/login#wrongcode1")
        expect(page.locator("main")).to_contain_text("That code was used or is wrong.")
        page.wait_for_load_state()
        page.evaluate("(link) => location.assign(link)", f"{blocked.url}/login#{blocked.code()}")
        page.wait_for_url(f"{blocked.url}/")
