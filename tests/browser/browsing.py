"""A browser as a person uses it, and what must never happen in it meanwhile."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped] # it has no types
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Playwright,
    expect,
    sync_playwright,
)

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-gpu-rasterization", "--disable-gpu-compositing", "--disable-software-rasterizer"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PHONE, WIDE = (390, 844), (1280, 900)
PATIENCE = 30_000  # milliseconds for what usually takes a few: the machine may be busy
ANSWERED = "Failed to load resource: the server responded with a status of"  # a page that says why it says no
GONE = "net::ERR_"  # the server is not there

# What the policy of the page blocks is said on the console.
SENTRY = """addEventListener("securitypolicyviolation", (event) => {
    console.error(`blocked: ${event.violatedDirective} ${event.blockedURI}`);
});"""

expect.set_options(timeout=PATIENCE)


class Chromium:
    """The browser of this test process.

    Playwright keeps an event loop in the main thread, which tests elsewhere cannot stand, and tests elsewhere end all
    children of their process: so it is there only while tests of this folder run (conftest.py).
    """

    def __init__(self) -> None:
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def open(self, program: str) -> Browser:
        if self._browser is None:
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(executable_path=program, args=FLAGS)
        return self._browser

    def close(self) -> None:
        if self._browser and self._playwright:
            self._browser.close()
            self._playwright.stop()
        self._browser = self._playwright = None


class Watch:
    """All that went wrong in a browser: errors, what the policy blocked, dialogs, requests to somebody else."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.found: list[str] = []
        self.excused: tuple[str, ...] = (ANSWERED,)
        self._origin = origin
        context.add_init_script(SENTRY)
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.found.append(str(error.error)))
        context.on("request", lambda request: self._on_request(request.url))
        context.on("dialog", self._on_dialog)

    def _on_dialog(self, dialog: Dialog) -> None:
        self.found.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(each in message.text for each in self.excused):
            self.found.append(f"{message.text} ({message.location.get('url', '')})")

    def _on_request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and f"{parts.scheme}://{parts.netloc}" != self._origin:
            self.found.append(f"a request to {url}")


class Visit:
    """One browser of one person: a context with what is watched, and tabs."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.context = context
        self.origin = origin
        self.watch = Watch(context, origin)
        self.page = self.tab()

    def tab(self, path: str = "") -> Page:
        """Another tab."""
        page = self.context.new_page()
        if path:
            page.goto(self.origin + path)
        return page

    def go(self, path: str) -> Page:
        self.page.goto(self.origin + path)
        return self.page

    def sign_in(self, link: str) -> Page:
        """Open the link that `serve` printed."""
        self.page.goto(link)
        self.page.wait_for_url(f"{self.origin}/")
        return self.page

    def sign_in_with(self, link: str) -> Page:
        """Type the code of a link, as one does where no script can read it."""
        self.go("/login").get_by_label("Code").fill(link.partition("#")[2])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"{self.origin}/")
        return self.page


@contextmanager
def visiting(browser: Browser, origin: str, size: tuple[int, int] = WIDE, **options: Any) -> Iterator[Visit]:
    """A new browser without cookies; nothing may have gone wrong in it when it is closed."""
    options = {"reduced_motion": "reduce", **options}  # what breathes is drawn again and again
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
    context.set_default_timeout(PATIENCE)
    try:
        visit = Visit(context, origin)
        yield visit
        assert visit.watch.found == []
    finally:
        context.close()


def is_live(page: Page) -> None:
    """Wait until the page gets news."""
    expect(page.locator("#live")).to_have_text("Live")


def is_saved(page: Page) -> None:
    """Wait for the page that says so, and its scripts."""
    expect(page.locator("#notice")).to_contain_text("Saved as version")
    page.wait_for_load_state()


def reads(page: Page) -> str:
    """All text of a page that a person can see, on one line."""
    return re.sub(r"\s+", " ", page.locator("body").inner_text())


def faults(page: Page, rules: dict[str, Any] | None = None) -> list[str]:
    """What axe finds, all but the least."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)  # as a debugger does it, which our policy does not forbid
    options = {"resultTypes": ["violations"], "preload": False, **({"runOnly": rules} if rules else {})}
    found = page.evaluate("(options) => axe.run(options).then((found) => found.violations)", options)
    return [
        f"{rule['id']} ({rule['impact']}): {node['target']} {node['html'][:200]}"
        for rule in found
        if rule["impact"] != "minor"
        for node in rule["nodes"]
    ]
