"""The first minutes with the page: an empty list, the demo, and news that come by themselves."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.browsing import PHONE, is_live, visiting
from browser.site import Site
from driving import Home

# What a person sees change, each time that it does.
RECORD = """() => {
    window.seen = [];
    const look = () => {
        const now = `${document.querySelectorAll("table.rounds tr[id]").length} ${document.title}`;
        if (window.seen.at(-1) !== now) window.seen.push(now);
    };
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
    look();
}"""


# What every Python of the home does first: the demo's check is the only one that this concerns.
WAITS = """\
import os, sys, time
while "unittest" in sys.orig_argv and not os.path.exists({gate!r}):
    time.sleep(0.02)
"""


@pytest.fixture
def gate(home: Home) -> Path:
    """The file without which the demo's check does not begin: a busy browser may need longer than a round to look."""
    gate, folder = home.root / "gate", home.root / "waits"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WAITS.format(gate=str(gate)))
    home.env["PYTHONPATH"] = str(folder)
    return gate


def test_the_demo_is_started_on_a_phone_and_watched_to_its_end_without_a_reload(
    gate: Path, site: Site, browser: Browser
) -> None:
    """A-004, A-065: on the phone that started it and, at the same time, in a browser that may only look."""
    with visiting(browser, site.url, PHONE) as phone, visiting(browser, site.url) as desk:
        list_of_loops = desk.sign_in(site.link("Look"))
        is_live(list_of_loops)
        expect(list_of_loops.get_by_role("heading", name="No loops yet")).to_be_visible()
        page = phone.sign_in(site.link())
        page.get_by_role("button", name="Start the demo").click()
        expect(page.locator("#notice")).to_have_text("demo-" + page.url.rpartition("demo-")[2] + " has begun.")
        is_live(page)
        page.evaluate(RECORD)
        expect(list_of_loops.get_by_role("heading", name="All is well")).to_be_visible()
        expect(list_of_loops.locator("#working")).to_contain_text("running")
        gate.touch()
        expect(page.locator("#now")).to_contain_text("complete", timeout=60_000)
        expect(page.locator("#now")).to_contain_text(
            "Every task is done, every check passed and the promise was given; the checks noticed 2."
        )
        expect(page).to_have_title(re.compile("^✓ demo-.* 4/4 "))  # it comes after the parts of the page
        seen: list[str] = page.evaluate("window.seen")  # it would be gone after a reload
        counts = sorted({int(row.split()[0]) for row in seen})
        assert counts[-4:] == [3, 4, 5, 6], seen
        titles = [row.split(" ", 1)[1] for row in seen]
        assert titles[0].startswith("▶ demo-") and titles[-1].startswith("✓ demo-")
        expect(page.get_by_role("link", name="Handle accents").first).to_be_visible()
        expect(list_of_loops.locator("#finished")).to_contain_text("complete")
        expect(list_of_loops.get_by_role("heading", name="Nothing is running")).to_be_visible()
        expect(list_of_loops).to_have_title("Loops · bydawn")
