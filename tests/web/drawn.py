"""A page as a browser and a screen reader would take it apart; what no page may have is an error right away."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec

from bydawn.store.registry import Registry
from bydawn.store.web_keys import Role, WebKeys
from bydawn.web.auth import Gate, Names, Tokens
from bydawn.web.calls import Call, Site
from bydawn.web.loops import Loops
from bydawn.web.page import Page, Visitor, fragment, whole
from bydawn.web.pages import documents, log
from bydawn.web.pages import round as rounds
from operations.stories import STORIES, held, write_loop

STEERS = Visitor(role=Role.STEER, csrf="c0ffee")
LOOKS = Visitor(role=Role.LOOK, csrf="c0ffee")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
FIELDS = ("input", "select", "textarea")


class Form(msgspec.Struct):
    """A form and what it sends if nothing is touched; boxes that are not ticked and buttons are not sent."""

    action: str
    method: str
    fields: list[tuple[str, str]]
    buttons: list[str]
    attributes: dict[str, str]

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key == name]

    def value(self, name: str) -> str:
        [found] = self.values(name)
        return found


class Element:
    def __init__(self, tag: str, attributes: dict[str, str], above: "Element | None") -> None:
        self.tag, self.attributes, self.above = tag, attributes, above
        self.words: list[str] = []

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


class Drawn(HTMLParser):
    """Reads a whole document, or a part of one."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.open: list[tuple[str, dict[str, str]]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.headings: list[tuple[int, str]] = []
        self.texts: list[str] = []
        self.problems: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.labelled: set[str] = set()
        self.unlabelled: list[str] = []
        self._area: list[str] | None = None
        self.elements: list[Element] = []
        self._here: Element | None = None
        self.feed(html)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag, _ in self.open]
        self.problems += [f"the id {each!r} is there twice" for each in {*self.ids} if self.ids.count(each) > 1]
        self.problems += [f"<{each}> has no label" for each in self.unlabelled if each not in self.labelled]
        assert not self.problems, self.problems

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts)).strip()

    def form(self, action: str) -> Form:
        [found] = [form for form in self.forms if form.action == action]
        return found

    def buttons(self) -> list[str]:
        return [button for form in self.forms for button in form.buttons]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append((tag, given))
        self.elements.append(Element(tag, given, self._here))
        self._here = self._here if tag in VOID else self.elements[-1]
        self._look(tag, given)
        if tag == "form":
            self.forms.append(Form(given["action"], given.get("method", "get"), [], [], given))
        if tag in (*FIELDS, "button"):
            self._field(tag, given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag not in VOID:
            self.open.append((tag, given))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append((tag, given))
        self.elements.append(Element(tag, given, self._here))
        self._look(tag, given)

    def all(self, tag: str = "", class_: str = "") -> list[Element]:
        return [
            each for each in self.elements if (not tag or each.tag == tag) and (not class_ or class_ in each.classes)
        ]

    def said(self, tag: str = "", class_: str = "") -> list[str]:
        return [each.text for each in self.all(tag, class_)]

    def find(self, id_: str) -> Element:
        [found] = [each for each in self.elements if each.attributes.get("id") == id_]
        return found

    def _look(self, tag: str, given: dict[str, str]) -> None:
        self.ids += [given["id"]] if "id" in given else []
        if "style" in given or any(name.startswith("on") for name in given):
            self.problems.append(f"<{tag}> has {given}")
        if tag == "script" and "src" not in given:
            self.problems.append("a script in the page")
        if tag == "img" or given.get("href", "").lower().startswith(("javascript:", "data:", "vbscript:")):
            self.problems.append(f"<{tag}> leads to {given}")
        if tag == "label" and "for" in given:
            self.labelled.add(given["for"])

    def _field(self, tag: str, given: dict[str, str]) -> None:
        kind = given.get("type", "text")
        within = [name for name, _ in self.open]
        is_named = "aria-label" in given or "label" in within or kind in ("hidden", "submit") or "hidden" in given
        if tag in FIELDS and not is_named:
            self.unlabelled.append(given.get("id", tag))
        mine = next((form for form in self.forms if form.attributes.get("id") == given.get("form")), None)
        form = mine if "form" in given else self.forms[-1] if "form" in within and self.forms else None
        if form is None:
            return
        if tag == "button":
            form.buttons.append("")
        elif tag == "textarea":
            self._area = []
            form.fields.append((given.get("name", ""), ""))
        elif tag == "input" and "disabled" not in given and (kind != "checkbox" or "checked" in given):
            form.fields.append((given.get("name", ""), given.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open[-1][0] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-1:]}")
            return
        self.open.pop()
        self._here = self._here.above if self._here else None
        if tag == "textarea" and self._area is not None and self.forms:
            text = "".join(self._area)
            name = self.forms[-1].fields[-1][0]
            self.forms[-1].fields[-1] = (name, text[1:] if text.startswith("\n") else text)
            self._area = None
        if tag == "form":
            form = self.forms[-1]
            if form.method == "post" and form.action != "/login" and not form.values("csrf"):
                self.problems.append(f"the form {form.action} has no csrf")

    def handle_data(self, data: str) -> None:
        here = self._here
        while here:
            here.words.append(data)
            here = here.above
        if self._area is not None:
            self._area.append(data)
            return
        names = [name for name, _ in self.open]
        if "script" in names or "style" in names or "head" in names:
            return
        self.texts.append(data)
        if names and names[-1] == "button" and self.forms and self.forms[-1].buttons:
            self.forms[-1].buttons[-1] = (self.forms[-1].buttons[-1] + data).strip()
        if names and re.fullmatch(r"h[1-6]", names[-1]):
            self.headings.append((int(names[-1][1]), data))


def drawn(page: Page, visitor: Visitor = STEERS, **more: Any) -> Drawn:
    """The whole page; each of its live parts can also be drawn alone."""
    found = Drawn(whole(page, visitor, path="/here", **more))
    levels = [level for level, _ in found.headings]
    assert levels.count(1) == 1, found.headings
    assert found.all("main")
    assert {each.attributes["href"] for each in found.all("use")} <= {
        f"#{each.attributes['id']}" for each in found.all("symbol")
    }
    for section in page.sections:
        if section.live:
            Drawn(fragment(section, Visitor(role=visitor.role)))
    return found


def loops_in(root: Path) -> Loops:
    return Loops(Registry(root / "state"))


def call(loops: Loops, address: str = "", visitor: Visitor = STEERS, folder: Path = Path("/"), **query: str) -> Call:
    """What a page is made for."""
    gate = Gate(WebKeys(loops.registry.root, "bydawn"), Names(port=0), Tokens(), read_only=False)
    site = Site(name="bydawn", folder=folder, loops=loops, gate=gate, hub=None)  # type: ignore[arg-type]
    return Call(site=site, visitor=visitor, path={"loop": address}, query=query, form={})


def round_page(loops: Loops, address: str, number: int, visitor: Visitor, **query: object) -> Page:
    made = call(loops, address, visitor, Path("/"), **{name: str(value) for name, value in query.items()})
    made.path["number"] = str(number)
    return rounds.round_page(made)


def log_page(loops: Loops, address: str, visitor: Visitor, **query: object) -> Page:
    return log.log_page(call(loops, address, visitor, Path("/"), **{name: str(value) for name, value in query.items()}))


def document_page(loops: Loops, address: str, key: str, visitor: Visitor, mode: str = "", **form: str) -> Page:
    """What is in the form is not saved yet."""
    made = call(loops, address, visitor, mode=mode)
    made.path["key"] = key
    made.form = {name: [value] for name, value in form.items()} | ({"preview": ["1"]} if mode == "preview" else {})
    return documents.document_page(made)


@contextmanager
def rooms(root: Path, *names: str) -> Iterator[Loops]:
    """Loops in every state, or only these, with nothing of the machine's own settings."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(("BYDAWN", "XDG", "CODEX", "OPENAI"))]:
        del os.environ[name]
    os.environ |= {"HOME": str(root), "XDG_CONFIG_HOME": str(root / "config")}
    chosen = names or tuple(STORIES)
    try:
        for name in chosen:
            write_loop(root, name)
        with ExitStack() as locks:
            for name in chosen:
                locks.enter_context(held(root, name))
            yield Loops(Registry(root / "state"))
    finally:
        os.environ.clear()
        os.environ.update(before)
