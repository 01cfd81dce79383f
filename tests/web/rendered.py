"""A page as a reader sees it: headings, texts, buttons, and what must never be in one."""

from html.parser import HTMLParser
from pathlib import Path

from bydawn.store.registry import Registry
from bydawn.store.web_keys import Role
from bydawn.web.loops import Loops
from bydawn.web.page import Page, Visitor, whole

STEERS, LOOKS = Visitor(role=Role.STEER, csrf="c-1"), Visitor(role=Role.LOOK, csrf="c-2")
_VOID = {"meta", "link", "input", "br", "img", "hr"}


class Element:
    def __init__(self, tag: str, attributes: dict[str, str], above: "Element | None") -> None:
        self.tag, self.attributes, self.above = tag, attributes, above
        self.below: list[Element] = []
        self.words: list[str] = []

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


class Rendered(HTMLParser):
    """Every element of a page; a tag that is not closed where it was opened is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html, self.elements = html, list[Element]()
        self._here: Element | None = None
        self.feed(html)
        assert not self._open, f"not closed: {self._open}"

    @property
    def _open(self) -> str:
        return self._here.tag if self._here else ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self._here)
        assert len(attrs) == len(element.attributes), attrs
        self.elements.append(element)
        if tag not in _VOID:
            self._here = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, self._here))

    def handle_endtag(self, tag: str) -> None:
        assert self._here is not None
        assert self._here.tag == tag, f"</{tag}> closes <{self._here.tag}>"
        self._here = self._here.above

    def handle_data(self, data: str) -> None:
        here = self._here
        while here:
            here.words.append(data)
            here = here.above

    def all(self, tag: str = "", class_: str = "") -> list[Element]:
        return [
            each for each in self.elements if (not tag or each.tag == tag) and (not class_ or class_ in each.classes)
        ]

    def texts(self, tag: str = "", class_: str = "") -> list[str]:
        return [each.text for each in self.all(tag, class_)]

    def find(self, id_: str) -> Element:
        [found] = [each for each in self.elements if each.attributes.get("id") == id_]
        return found


def rendered(page: Page, visitor: Visitor = STEERS) -> Rendered:
    """The whole page, after a look at what no page may have."""
    found = Rendered(whole(page, visitor, path="/"))
    assert not [each.tag for each in found.elements if "style" in each.attributes]
    assert not [name for each in found.elements for name in each.attributes if name.startswith("on")]
    assert all(each.attributes.get("src", "").startswith("/static/") and not each.text for each in found.all("script"))
    assert not found.all("style")
    assert len(found.all("h1")) == 1
    assert found.all("main")
    ids = [each.attributes["id"] for each in found.elements if "id" in each.attributes]
    assert len(ids) == len({*ids}), sorted(each for each in ids if ids.count(each) > 1)
    drawn = {f"#{each.attributes['id']}" for each in found.all("symbol")}
    assert {each.attributes["href"] for each in found.all("use")} <= drawn
    for form in found.all("form"):
        inside = [
            each for each in found.all("input") if form is each.above or form is (each.above and each.above.above)
        ]
        assert any(each.attributes.get("name") == "csrf" for each in inside), form.attributes
    return found


def loops_in(root: Path) -> Loops:
    return Loops(Registry(root / "state"))
