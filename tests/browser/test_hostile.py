"""Text of agents, files, branches and people is text: whatever is in it, nothing runs, loads or leaves."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.browsing import Visit, is_live, reads, visiting
from browser.night import Night
from browser.site import Site
from bydawn.core.facts import ChecksEnded, HookEnded, Obstructed, TaskSettled, WaitStarted
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import Changes, Decided, End, LineCounts, TaskStatus, Verdict
from core.facts_made import NOON, a_note, a_round, run_started, todo
from driving import ME, MISBEHAVING, Step, a_repository, said, wait_for
from operations.stories import STORIES, Story, stopped
from web.serving import Web, at_home, serving

PAYLOADS = (
    SEEN := "<script>window.__pwned=1</script>",
    TEMPLATE := "{{7*7}} {% include 'page.html' %} ${7*7}",
    IMAGE := '<img src=x onerror="window.__pwned=2">',
    "<svg onload=window.__pwned=3><animate onbegin=window.__pwned=4 attributeName=x dur=1s></svg>",
    '"><a href="javascript:window.__pwned=5">a</a>',
    "[b](javascript:window.__pwned=6) <javascript:window.__pwned=7> [c](//evil.example/) [d](data:text/html,x)",
    "![e](https://evil.example/e.png)",
    "</textarea><script>window.__pwned=8</script>",
    "</section></main></body><iframe srcdoc='<script>parent.__pwned=9</script>'></iframe>",
    "\x1b]0;a title\x07\x1b[31mred\x1b[0m\x08\x08",
    "\u202egnp.exe\u202c \u2066x\u2069",
    "' onmouseover='window.__pwned=10' onfocus='window.__pwned=11' autofocus='",
    "<base href=https://evil.example/><meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<form action=https://evil.example/><input type=submit name=csrf></form>",
    "<style>*{background:url(https://evil.example/s)}</style><link rel=stylesheet href=https://evil.example/l>",
    "--><script>window.__pwned=12</script><!--",
    "&lt;script&gt;window.__pwned=13&lt;/script&gt;&#x3c;img src=x onerror=window.__pwned=14&#x3e;",
    "<details open ontoggle=window.__pwned=15><summary>x</summary></details>",
)
ALL = " ".join(PAYLOADS)
FILE = "<img src=x onerror=window.__pwned=20>.txt"
BRANCH = "feature/<svg/onload=window.__pwned=21>"

# What no page may have, whether the policy would stop it or not.
LOOK = r"""() => {
    const found = "__pwned" in window ? [`script ${window.__pwned} ran`] : [];
    const foreign = "iframe, object, embed, base, img, style, audio, video, math, foreignObject, animate, [http-equiv]";
    for (const each of [...document.querySelectorAll(foreign), ...[...document.scripts].slice(1)]) {
        found.push(each.outerHTML.slice(0, 100));
    }
    for (const each of document.querySelectorAll("*")) {
        for (const { name, value } of each.attributes) {
            const leads = ["href", "src", "action", "formaction", "xlink:href"].includes(name);
            const ours = /^([/#?]|$)/.test(value) && !value.startsWith("//");
            const told = each.matches("main a[rel~=noreferrer][rel~=noopener]") && /^https?:/.test(value);
            const acts = /^on|^style$|^srcdoc$/i.test(name);
            if (acts || (leads && !ours && !told)) found.push(`${each.tagName} ${name}=${value.slice(0, 80)}`);
        }
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode()); ) {
        const hidden = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/.test(text.data);
        const typed = text.parentElement.matches("textarea"); // where a file must stay as it is
        if (hidden && !typed) found.push(`a hidden sign in ${text.parentElement.outerHTML.slice(0, 100)}`);
    }
    return found;
}"""


def is_harmless(page: Page) -> None:
    assert page.evaluate(LOOK) == [], page.url


def todo_file() -> str:
    return "# Plan\n\n" + "".join(f"- [ ] {text}\n" for text in PAYLOADS) + f"\n{ALL}\n\n```\n{ALL}\n```\n"


def test_what_should_not_happen_would_be_noticed(blocked: Web, browser: Browser) -> None:
    """And the policy of the page stops it."""
    with visiting(browser, blocked.url) as visit:
        page = visit.go("/login")
        page.locator("main").evaluate(
            "(main) => main.insertAdjacentHTML('beforeend', `<img src=//evil.example/ onerror=x>`)"
        )
        page.evaluate(
            "document.head.append(Object.assign(document.createElement('script'), { text: 'window.__pwned = 1' }))"
        )
        assert "IMG onerror=x" in page.evaluate(LOOK)
        assert page.evaluate("window.__pwned") is None
        request = f"a request to {blocked.url[:5]}//evil.example/"
        for words in ("blocked: img-src", "blocked: script-src-elem inline", request):
            is_noticed(visit, words)
        visit.go("/login")  # the old page has nothing more to say
        visit.watch.found.clear()


def is_noticed(visit: Visit, words: str) -> None:
    """The browser tells it a moment later, and we hear it only while we ask the browser for something."""
    wait_for(lambda: visit.page.evaluate("1") and any(words in each for each in visit.watch.found))


# -- a loop that has really worked -------------------------------------------------------------------------------------


def steps(gate: Step) -> list[Step]:
    return [
        gate,
        {"activity": f"editing {ALL}"},
        *({"say": text} for text in PAYLOADS),
        {"stderr": ALL},
        {"write": {"path": FILE, "text": todo_file()}},
        {"write": {"path": f"sub/{IMAGE}", "text": ALL}},
        {"result": {"text": "\n\n".join(PAYLOADS)}},
    ]


def test_nothing_of_a_loop_runs_in_its_pages(night: Night, site: Site, browser: Browser) -> None:
    """As it happens, over the stream, and afterwards on every page."""
    home = night.home
    folder = home.root / f"{IMAGE}\u202egnp"
    a_repository(folder, ALL)
    (folder / "TODO.md").write_text(todo_file())
    (folder / "printed").write_text("\n".join(("FAILED", *PAYLOADS)))
    for words in (["add", "-A"], ["commit", "-qm", ALL]):
        subprocess.run(["git", *ME, *words], cwd=folder, check=True)
    gate, opened = home.gate()
    script = home.root / "script.json"
    chat = [{"result": {"text": "\n\n".join(PAYLOADS)}}]
    script.write_text(json.dumps({"rounds": [steps(gate)], "chat": chat, "steps": MISBEHAVING}))
    start = ("run", ALL, "--name", "evil", "-a", f"demo:{script}", "-t", "TODO.md", "--plain", "-n", "2")
    loop = home.start(*start, "-k", "cat printed; exit 1", f"--worktree={BRANCH}", "-C", str(folder))
    wait_for(lambda: night.facts("evil", "round.started"))
    (home.repo / "bydawn.toml").write_text(f"prompt = {json.dumps(ALL)}\nagent = {json.dumps(ALL)}\n")
    with visiting(browser, site.url) as visit:
        visit.sign_in(site.link())
        tabs = [
            visit.go("/loops/evil"),
            visit.tab("/loops/evil/log"),
            visit.tab("/"),
            visit.tab("/loops/evil/rounds/1"),
        ]
        for page in tabs:
            is_live(page)
        assert home.bydawn("tell", "evil", ALL).code == 0
        opened.touch()
        expect(tabs[0].locator("#now")).to_contain_text("limit")
        said(loop)
        expect(tabs[1].locator("[data-log]")).to_contain_text(SEEN)
        expect(tabs[2].locator("#needs-you")).to_contain_text("evil")
        expect(tabs[3].locator("#steps")).to_contain_text(SEEN)
        for page in tabs:
            is_harmless(page)
            page.close()
        visit.page = visit.tab()
        assert home.bydawn("chat", "evil", ALL, "-C", str(folder)).code == 0
        paths = (
            "overview rounds rounds/1 rounds/2 docs/todo docs/todo?mode=edit log log?wrap=0 log?round=1 chat why stop"
        )
        for path in paths.replace("overview", "").split(" "):
            page = visit.go(f"/loops/evil/{path}".rstrip("/"))
            is_harmless(page)
            page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
            is_harmless(page)
        for path in ("/", "/start", "/settings", "/doctor"):
            is_harmless(visit.go(path))
        shows_it(visit.go("/loops/evil/rounds/1"), FILE, SEEN, TEMPLATE)
        shows_it(visit.go("/loops/evil/docs/todo"), SEEN, TEMPLATE)
        shows_it(visit.go("/loops/evil/chat"), SEEN, TEMPLATE)


def shows_it(page: Page, *texts: str) -> None:
    """As it was written."""
    seen = reads(page)
    for text in texts:
        assert text in seen, f"{page.url} does not show {text}"


# -- what was typed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["address", "search", "note", "task", "document", "question"])
def test_nothing_that_is_typed_runs(blocked: Web, browser: Browser, place: str) -> None:
    with visiting(browser, blocked.url) as visit:
        page = visit.sign_in(f"{blocked.url}/login#{blocked.code()}")
        if place == "address":
            for path in ("/{}", "/loops/blocked/docs/{}", "/loops/blocked/rounds/{}", "/loops/blocked/log?round={}"):
                is_harmless(visit.go(path.format(quote(ALL, safe=""))))
            for text in PAYLOADS:
                is_harmless(visit.go(f"/loops/{quote(text, safe='')}"))
        elif place == "search":
            visit.go("/loops/blocked/log").get_by_label("Search this log").fill(IMAGE)
            page.get_by_role("button", name="Show").click()
            expect(page.locator("main")).to_contain_text("is not in this log")
        elif place == "note":
            visit.go("/loops/blocked").locator("#tell").fill(ALL)
            page.get_by_role("button", name="Send only").click()
            expect(page.locator("#notice")).to_be_visible()
        elif place == "task":
            for text in (" ".join(PAYLOADS[place::5]) for place in range(5)):
                visit.go("/loops/blocked/docs/todo").get_by_label("Add a task").fill(text)
                page.get_by_role("button", name="Add").click()
                expect(page.locator("#notice")).to_be_visible()
                is_harmless(page)
        elif place == "document":
            visit.go("/loops/blocked/docs/todo?mode=edit").locator("#text").fill(todo_file())
            page.get_by_role("button", name="Preview").click()
            expect(page.locator("main")).to_contain_text("As it will look")
            is_harmless(page)
            (blocked.root / "work/blocked/TODO.md").write_text(ALL)
            page.get_by_role("button", name="Save").click()
            expect(page.locator("main")).to_contain_text("changed while you were editing")
        else:
            visit.go("/loops/blocked/chat").get_by_label("Your question").fill(ALL)
            page.get_by_role("button", name="Ask").click()
            expect(page.locator("main")).to_contain_text("__pwned")
            expect(page.locator("[data-turn].running")).to_have_count(0)
            visit.go("/loops/blocked/chat")  # with an answer it loads itself again, in the middle of a look
        is_harmless(page)


# -- every fact --------------------------------------------------------------------------------------------------------


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """Loops whose every fact is hostile."""
    red = Verdict(check=ALL, passed=False, detail=ALL, excerpt="\n".join(PAYLOADS))
    changes = Changes(added=1, modified=1, deleted=0, paths=(FILE, ALL), lines=LineCounts(added=1, removed=1))
    work: dict[str, Any] = {"agent": ALL, "task": ALL, "task_id": ALL, "said": ALL, "tasks": todo(1)}
    trouble: dict[str, Any] = {
        "detail": ALL,
        "words": ALL,
        "denied": (ALL,),
        "leftovers": (ALL,),
        "blocked": ALL,
        "progress": False,
    }
    one = [
        run_started(tasks=todo(1)),
        *a_round(1, changes=changes, **work),
        ChecksEnded(round=1, tree="tree-1", elapsed=1.0, verdicts=(red,)),
        a_note("n-1", ALL),
        TaskSettled(task=ALL, text=ALL, status=TaskStatus.ASIDE, by=ALL, reason=ALL),
        *a_round(2, Outcome.FAILED, **work, **trouble),
        WaitStarted(seconds=60.0, reason=ALL, agent=ALL, decided=Decided(rule=ALL, at=NOON, elapsed=1.0)),
        HookEnded(hook="pre_round", round=2, passed=False, detail=ALL, elapsed=1.0),
        Obstructed(kind="hook", detail=ALL),
    ]
    ends = {
        "evil-blocked": stopped(End.BLOCKED, Rule.AGENT_BLOCKED, ALL, ALL),
        "evil-hook": stopped(End.BLOCKED, Rule.OBSTRUCTED, ALL, ALL),
        "evil-failed": stopped(End.FAILED, Rule.AGENT_STOP, ALL, ALL, ALL),
        "evil-done": stopped(End.COMPLETE, Rule.COMPLETE, ALL, ALL),
    }
    settings = {"tasks": "TODO.md", "prompt": ALL, "agent": ALL}
    for name, end in ends.items():
        story = Story(facts=[*one, end], settings=settings, files={"TODO.md": todo_file()})
        monkeypatch.setitem(STORIES, name, story)
    running = Story(facts=one, settings=settings, files={"TODO.md": todo_file()}, alive=True)
    monkeypatch.setitem(STORIES, "evil-running", running)
    root = tmp_path.resolve()
    with at_home(root), serving(root, *ends, "evil-running") as web:
        yield web


def test_no_fact_of_a_loop_runs_in_a_page(evil: Web, browser: Browser) -> None:
    with visiting(browser, evil.url) as visit:
        visit.sign_in(f"{evil.url}/login#{evil.code()}")
        is_harmless(visit.go("/"))
        shows_it(visit.page, SEEN)
        for name in ("blocked", "hook", "failed", "done", "running"):
            for path in ("", "/rounds/2", "/why"):
                is_harmless(visit.go(f"/loops/evil-{name}{path}"))
        for path in ("rounds", "rounds/1", "docs/todo", "log", "chat", "stop", "accept"):
            is_harmless(visit.go(f"/loops/evil-running/{path}"))
        shows_it(visit.go("/loops/evil-blocked/rounds"), SEEN, TEMPLATE)
