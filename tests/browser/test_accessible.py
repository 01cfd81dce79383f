"""Every page, for people who see little or use a small screen: axe finds nothing, and nothing scrolls sideways."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.browsing import GONE, WIDE, Visit, faults, is_live, visiting
from browser.night import Night, over
from browser.site import Site
from driving import Home, Step, a_repository, said, wait_for
from web.serving import Web

WIDTHS = (320, 390, 1280)
# The rules that look at colors; all others find the same by day and by night.
COLORS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
PLAIN = ("/ /login /start /settings", "/doctor /nothing /loops/nothing /loops/tampered/accept /loops/pausing/stop")
STATES = """
    waiting unverified question tampered limit hook folder auth checkpoint crashed recorded
    blocked/stop unverified/docs folder/docs running/log limit/rounds
"""
WORKED = (
    "/ /loops/shop-api /loops/billing /loops/DEMO /loops/shop-api/stop /loops/billing/why /loops/billing/chat",
    """/loops/billing/rounds /loops/billing/rounds/4 /loops/DEMO/rounds/2 /loops/billing/docs/todo?mode=edit
    /loops/shop-api/docs/todo /loops/shop-api/log /loops/billing/log?q=rule /loops/billing/log?wrap=0""",
)


class Morning(NamedTuple):
    """Loops that have really worked, and their page."""

    night: Night
    site: Site
    demo: str


@pytest.fixture(scope="module")
def morning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Morning]:
    home = Home(tmp_path_factory.mktemp("morning").resolve())
    night = Night(home)
    ends = [night.blocked(), night.demo()]
    running, _ = night.running()
    over(*ends)
    assert home.bydawn("chat", "billing", "Which rule is right?").code == 0
    site = Site(home)
    [demo] = home.states.glob("loops/*/demo-*")
    yield Morning(night, site, demo.name)
    site.end()
    home.bydawn("stop", "shop-api")
    said(running)
    assert home.leave() == []


def look(page: Page, widths: tuple[int, ...] = WIDTHS, *, by_night: bool = True) -> None:
    """At these widths; on the smallest and the largest screen with axe, once by day and once by night."""
    page.wait_for_load_state()
    for width in widths:
        does_not_scroll_sideways(page, width)
        tabs = page.evaluate("document.querySelector('.tabs li:last-child')?.getBoundingClientRect().right ?? 0")
        assert tabs <= width, f"the last tab of {page.url} ends at {tabs} px on {width}"
        if width == widths[0]:
            page.emulate_media(color_scheme="light")
            assert faults(page) == [], f"{page.url} at {width}"
        if width == widths[-1] and by_night:
            page.emulate_media(color_scheme="dark")
            assert faults(page, COLORS if len(widths) == 1 else None) == [], f"{page.url} at {width} by night"


def does_not_scroll_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": WIDE[1]})
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{page.url} is {wide} px wide on {width}"


def test_a_fault_would_be_found(everything: Web, browser: Browser) -> None:
    with visiting(browser, everything.url) as visit:
        page = visit.go("/login")
        page.evaluate("document.querySelector('label').remove()")
        page.locator("h1").evaluate("(title) => (title.style.color = 'rgb(200, 200, 200)')")
        found = "\n".join(faults(page))
        assert "label (critical)" in found and "color-contrast (serious)" in found
        assert "color-contrast" in "".join(faults(page, COLORS))


@pytest.mark.parametrize("paths", PLAIN, ids=["usual", "rare"])
def test_pages_that_are_about_no_loop_and_questions(everything: Web, browser: Browser, paths: str) -> None:
    """A-065."""
    with visiting(browser, everything.url) as visit:
        look(visit.go("/"), (320,))  # not signed in
        visit.sign_in(f"{everything.url}/login#{everything.code()}")
        for path in paths.split():
            look(visit.go(path))


def test_loops_in_every_state(everything: Web, browser: Browser) -> None:
    """A-065."""
    with visiting(browser, everything.url) as visit:
        visit.sign_in(f"{everything.url}/login#{everything.code()}")
        for path in STATES.split():
            look(visit.go(f"/loops/{path}"), (320,), by_night=False)  # the list of all loops has their colors


@pytest.mark.parametrize("paths", WORKED, ids=["overviews", "details"])
def test_loops_that_have_worked(morning: Morning, browser: Browser, paths: str) -> None:
    """A-065: rounds with diffs and output, logs, documents, a conversation."""
    with visiting(browser, morning.site.url) as visit:
        visit.sign_in(morning.site.link())
        for path in paths.split():
            look(visit.go(path.replace("DEMO", morning.demo)))


def test_pages_on_which_something_has_happened(morning: Morning, browser: Browser) -> None:
    """Open folds, a conflict, a form that was refused."""
    with visiting(browser, morning.site.url) as visit:
        visit.sign_in(morning.site.link())
        page = visit.go("/loops/billing/rounds/4")
        page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
        look(page)
        look_at_a_conflict(morning, visit)
        page = visit.go("/loops/billing/docs/todo")
        page.get_by_label("Add a task").fill("   ")
        page.get_by_role("button", name="Add").click()
        expect(page.locator(".notice.failed")).to_be_visible()
        look(page, (320,))


def look_at_a_conflict(morning: Morning, visit: Visit) -> None:
    todo = morning.night.home.root / "billing/TODO.md"
    before, page = todo.read_text(), visit.go("/loops/billing/docs/todo?mode=edit")
    page.locator("#text").fill(before.replace("Prorate refunds", "Prorate refunds by day"))
    todo.write_text(before.replace("[ ] Prorate", "[x] Prorate"))
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main")).to_contain_text("both changed")
    look(page)


def test_pages_for_those_who_may_only_look(morning: Morning, browser: Browser) -> None:
    with visiting(browser, morning.site.url) as visit:
        visit.sign_in(morning.site.link("Look"))
        for path in ("/", "/loops/billing", "/loops/shop-api", "/loops/shop-api/docs/todo", "/loops/shop-api/stop"):
            look(visit.go(path), (320,))


def test_a_page_without_news(morning: Morning, browser: Browser) -> None:
    """It turns gray, and its text keeps its contrast."""
    with visiting(browser, morning.site.url) as visit:
        visit.watch.excused += (GONE,)
        visit.sign_in(morning.site.link())
        is_live(visit.page)
        visit.page.route("**/api/stream*", lambda route: route.abort())
        page = visit.go("/loops/shop-api")
        expect(page.locator("#live")).to_have_text("Not live")
        look(page, (320, 1280))


@pytest.mark.parametrize("width", [390, 1280])
def test_the_bar_about_another_loop_covers_nothing_and_can_be_closed(
    everything: Web, browser: Browser, width: int
) -> None:
    with visiting(browser, everything.url, (width, 844)) as visit:
        visit.sign_in(f"{everything.url}/login#{everything.code()}")
        page, bar = visit.go("/loops/blocked"), visit.page.locator("#needs-now")
        page.wait_for_load_state()
        needed = "(bar) => { bar.hidden = false; bar.firstChild.textContent = 'billing needs you now'; }"
        bar.evaluate(needed)
        for tab in page.locator(".tabs a").all():
            tab.click(trial=True)  # nothing is over it
        assert faults(page) == []
        bar.get_by_role("button", name="Close").press("Enter")
        expect(bar).to_be_hidden()
        expect(page.locator("main")).to_be_focused()

        drawn = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        page.evaluate(drawn)  # without the bar
        page.evaluate("scrollTo(0, 200)")
        rounds = page.locator("#rounds")
        before = rounds.bounding_box()
        bar.evaluate(needed)
        expect(bar).to_be_in_viewport(ratio=1)
        wait_for(lambda: page.evaluate("scrollY") > 200)
        assert rounds.bounding_box() == before, "what is being read stays where it is"


def test_words_without_an_end_widen_no_page(home: Home, browser: Browser) -> None:
    """A path, a name, a task or a line of output may be one word that is longer than a phone is wide."""

    def word(sign: str) -> str:
        return sign * 180

    name, folder, script = "n" * 60, home.root / word("f"), home.root / "script.json"
    a_repository(folder, "x\n")
    tasks = f"# {word('T')}\n\n- [ ] {word('t')}\n\n`{word('c')}`\n\n| {word('a')} |\n|---|\n| {word('b')} |\n"
    (folder / "TODO.md").write_text(tasks)
    steps: list[Step] = [
        {"activity": f"editing {word('e')}"},
        {"say": word("m")},
        {"write": {"path": word("p"), "text": word("x")}},
        {"result": {"text": f"{word('w')} `{word('v')}`"}},
    ]
    script.write_text(json.dumps({"rounds": [steps], "chat": [{"result": {"text": word("q")}}]}))
    words = ("-a", f"demo:{script}", "--name", name, "-t", "TODO.md", "-k", f"echo {word('o')}; exit 1", "-n", "1")
    assert home.bydawn("run", word("g"), *words, "--plain", "-C", str(folder)).code == 4
    assert home.bydawn("chat", name, word("?"), "-C", str(folder)).code == 0
    site = Site(home)
    try:
        with visiting(browser, site.url) as visit:
            visit.sign_in(site.link())
            own = ("", "/rounds", "/rounds/1", "/docs/todo", "/docs/todo?mode=edit", "/log", "/chat", "/why", "/stop")
            for path in ("/", *(f"/loops/{name}{each}" for each in own), "/doctor", "/settings", f"/loops/{word('u')}"):
                page = visit.go(path)
                page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
                does_not_scroll_sideways(page, 320)
                does_not_scroll_sideways(page, 1280)
    finally:
        site.end()


def tokens(page: Page) -> dict[str, str]:
    """The colors of a page, and what else has a name."""
    found: dict[str, str] = page.evaluate("""() => {
        const style = getComputedStyle(document.documentElement);
        const names = [...style].filter((name) => name.startsWith("--"));
        return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name)]));
    }""")
    return found


def test_where_one_is_can_be_told_in_forced_colors(everything: Web, browser: Browser) -> None:
    """And whether the page is live."""
    filled = "(each) => getComputedStyle(each).backgroundColor"
    with visiting(browser, everything.url, forced_colors="active") as visit:
        visit.sign_in(f"{everything.url}/login#{everything.code()}")
        for path, parts in (("/loops/blocked", ".tabs .tick-links .rail"), ("/loops/blocked/docs/todo", ".segmented")):
            page = visit.go(path)
            is_live(page)
            for part in parts.split():
                here, other = (
                    page.locator(f"{part} {which}").first for which in ("[aria-current]", "a:not([aria-current])")
                )
                assert here.evaluate(filled) != other.evaluate(filled), part
            dot = "getComputedStyle(document.getElementById('live'), '::before').backgroundColor"
            assert page.evaluate(dot) != page.locator("body").evaluate(filled)


def test_the_switch_gives_the_same_colors_as_the_system(everything: Web, browser: Browser) -> None:
    """So that what is shown for one holds for the other."""
    colors: dict[tuple[str, str], dict[str, str]] = {}
    with visiting(browser, everything.url) as visit:
        page = visit.sign_in(f"{everything.url}/login#{everything.code()}")
        for switch in ("", "light", "dark"):
            assert (page.locator("html").get_attribute("data-theme") or "") == switch
            for system in ("light", "dark"):
                page.emulate_media(color_scheme=system)
                colors[switch, system] = tokens(page)
                page.emulate_media(contrast="more")
                more = tokens(page)
                assert more["--line"] == more["--edge"] and more["--ink3"] == more["--ink2"] == more["--ink"]
                page.emulate_media(contrast="no-preference", media="print")
                assert tokens(page) == colors["", "light"], "paper has the colors of the day"
                page.emulate_media(media="screen")
            page.get_by_role("button", name="Switch to").click()
            page.wait_for_load_state()
    assert colors["", "light"] == colors["light", "light"] == colors["light", "dark"]
    assert colors["", "dark"] == colors["dark", "light"] == colors["dark", "dark"]
    assert len(colors["", "dark"]) > 20 and colors["", "light"] != colors["", "dark"]
