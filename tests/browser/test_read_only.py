"""The link that can only look: it sees everything and changes nothing."""

from playwright.sync_api import Browser, expect

from browser.browsing import PHONE, visiting
from browser.night import Night, over
from browser.site import Site
from driving import Home, said

OWN = {"/settings/theme", "/settings/keys", "/logout"}  # what a visitor may choose for their own browser
CAN_ONLY_LOOK = "This link can only look."
PAGES = ("/loops/billing", "/loops/shop-api", "/loops/shop-api/docs/todo", "/loops/billing/chat", "/start")
OTHERS = ("/", "/loops/billing/rounds/4", "/loops/billing/log", "/loops/billing/why", "/settings", "/doctor")
FORM = """([path, fields]) => {
    const csrf = document.querySelector('meta[name="csrf"]').content;
    const body = new URLSearchParams({ csrf, ...fields });
    return fetch(path, { method: "POST", body }).then((answer) => answer.status);
}"""
JSON = """([method, path, value]) => {
    const csrf = document.querySelector('meta[name="csrf"]').content;
    const headers = { "content-type": "application/json", "x-csrf": csrf, "if-match": "x" };
    return fetch(path, { method, headers, body: JSON.stringify(value) }).then((answer) => answer.status);
}"""
POSTS = (
    ("tell", {"text": "hi", "expect_seq": "1"}),
    ("resume", {"expect_seq": "1"}),
    ("skip", {"task": "3", "expect_seq": "1"}),
    ("stop", {"expect_seq": "1"}),
    ("pause", {"expect_seq": "1"}),
    ("approve", {"expect_seq": "1"}),
    ("accept", {"expect_seq": "1"}),
    ("dismiss", {"expect_seq": "1"}),
    ("tasks", {"text": "mine"}),
    ("docs/todo/save", {"text": "mine", "version": "x"}),
    ("docs/todo/tick", {"line": "4", "ticked": "1", "version": "x"}),
    ("chat", {"message": "hi"}),
)


def test_a_link_that_can_only_look_has_no_buttons_and_no_power(night: Night, site: Site, browser: Browser) -> None:
    ends = night.blocked()
    running, _ = night.running()
    over(ends)
    before = {name: ledger(night, name) for name in ("billing", "shop-api")}
    todo = (night.home.root / "billing/TODO.md").read_text()
    with visiting(browser, site.url) as visit:
        visit.sign_in(site.link("Look"))
        for path in (*PAGES, *OTHERS):
            page = visit.go(path)
            forms = page.locator("form[method=post]").evaluate_all(
                "(all) => all.map((form) => form.getAttribute('action'))"
            )
            fields = page.locator("form[method=post] :is(textarea, input:not([type=hidden]):enabled)")
            assert {*forms} <= OWN | {"/loops/shop-api/docs/todo/tick"} and fields.count() == 0, path
            if path in PAGES:
                expect(page.locator("main")).to_contain_text(CAN_ONLY_LOOK)
        expect(visit.go("/loops/billing").locator("main")).to_contain_text('bydawn tell billing "…"')
        expect(visit.go("/loops/shop-api/stop").locator("main")).to_contain_text(
            CAN_ONLY_LOOK.lower()[:-1], ignore_case=True
        )
        page = visit.go("/")
        for name, fields_ in POSTS:
            assert page.evaluate(FORM, [f"/loops/billing/{name}", fields_]) == 403, name
            assert page.evaluate(JSON, ["POST", f"/api/loops/shop-api/{name}", fields_]) in (403, 404), name
        assert page.evaluate(JSON, ["PUT", "/api/loops/billing/docs/todo", {"text": "mine"}]) == 403
        assert page.evaluate(FORM, ["/start", {"demo": "1"}]) == 403
        assert page.evaluate(JSON, ["POST", "/api/loops", {"demo": True}]) == 403
    assert {name: ledger(night, name) for name in before} == before
    assert (night.home.root / "billing/TODO.md").read_text() == todo
    night.home.bydawn("stop", "shop-api")
    said(running)


def ledger(night: Night, name: str) -> bytes:
    return (night.folder(name) / "ledger.jsonl").read_bytes()


def test_a_server_that_can_only_be_looked_at_has_no_other_link(home: Home, browser: Browser) -> None:
    site = Site(home, "--read-only")
    try:
        assert "Steer" not in home.bydawn("serve", "--link").out
        with visiting(browser, site.url, PHONE) as visit:
            page = visit.sign_in(site.link("Look"))
            expect(page.locator("main")).to_contain_text(CAN_ONLY_LOOK)
            expect(page.get_by_role("button", name="Start the demo")).to_have_count(0)
    finally:
        site.end()
