"""The table of everything that a server answers to, and which page an address means."""

import mimetypes
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.routing import compile_path

from bydawn.core.digests import sha256
from bydawn.core.errors import NotFound, UserError
from bydawn.core.layout import PROMPT, REPLY, STDERR, STDOUT
from bydawn.operations.recent import the_round
from bydawn.web import api, forms, openapi
from bydawn.web.acts import VERBS
from bydawn.web.auth import Access
from bydawn.web.calls import MOST_DOCUMENT, Call, Raw, Route, form, look, page
from bydawn.web.loops import readable
from bydawn.web.page import STATIC, Page, Visitor
from bydawn.web.pages import chat, documents, home, log, loop, question, setup, why
from bydawn.web.pages import round as rounds

LOOP = "/loops/{loop}"
_RAW = {"prompt": PROMPT, "stdout": STDOUT, "stderr": STDERR, "reply": REPLY}
_MOST_RAW = 64 << 20  # bytes of a file that are handed out


# -- files -------------------------------------------------------------------------------------------------------------


def raw_file(call: Call) -> Raw:
    """A file of a round: looked up by its word, never by a path."""
    number, word = call.number("number"), call.path["word"]
    standing = readable(call.standing)
    checks = the_round(standing, number).attempt.checks
    names = dict(_RAW)
    for place, verdict in enumerate(checks.verdicts if checks else (), 1):
        if verdict.output:
            names[f"check-{place}"] = verdict.output
    if word not in names:
        raise NotFound(f"round {number} has no “{word[:20]}”", cause=f"it has {', '.join(names)}")
    data = rounds.raw_bytes(standing, number, names[word], _MOST_RAW)
    return Raw(data=data, name=f"{standing.loop.id}-round-{number}-{word}.txt")


def mine(call: Call) -> Raw:
    """A person's own text of a document, given back as a file."""
    return Raw(data=call.field("text").encode(), name=f"{call.path['key']}-mine.md")


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Each with its type, and a tag by which a browser knows that it has it."""
    found = {}
    for path in STATIC.rglob("*"):
        if path.is_file():
            media = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            media = "application/manifest+json" if path.suffix == ".webmanifest" else media
            media = "text/javascript" if path.suffix == ".js" else media
            data = path.read_bytes()
            found[str(path.relative_to(STATIC))] = (data, media, f'"{sha256(data).hexdigest()[:16]}"')
    return found


def static_file(call: Call) -> Raw:
    """Our own styles, scripts and icons, read once."""
    if (found := _files().get(call.path["name"])) is None:
        raise NotFound("there is no such file")
    data, media, tag = found
    headers = {"cache-control": "no-cache", "etag": tag}
    if call.headers.get("if-none-match") == tag:
        return Raw(data=b"", name="", media=media, attached=False, headers=headers, status=304)
    return Raw(data=data, name="", media=media, attached=False, headers=headers)


def favicon(call: Call) -> Raw:
    call.path["name"] = "icons/favicon.svg"
    return static_file(call)


def describe(call: Call) -> dict[str, Any]:  # noqa: ARG001
    return openapi.document([*api.ROUTES, _SCHEMA])


# -- the table ---------------------------------------------------------------------------------------------------------

_PAGES: tuple[Route, ...] = (
    page("/", home.home),
    page(LOOP, loop.overview),
    page(f"{LOOP}/rounds", loop.all_rounds),
    page(f"{LOOP}/rounds/{{number}}", rounds.round_page),
    page(f"{LOOP}/rounds/{{number}}/diff", rounds.round_page),
    page(f"{LOOP}/why", why.why_page),
    page(f"{LOOP}/docs", documents.document_page),
    page(f"{LOOP}/docs/{{key}}", documents.document_page),
    page(f"{LOOP}/log", log.log_page),
    page(f"{LOOP}/chat", chat.chat_page),
    page(f"{LOOP}/stop", question.stop_page, Access.STEER),
    page(f"{LOOP}/accept", question.accept_page, Access.STEER),
    page("/start", setup.start_page),
    page("/settings", setup.settings_page),
    page("/doctor", setup.doctor_page),
    page("/login", setup.login_page, Access.OPEN),
)
_FILES: tuple[Route, ...] = (
    page(f"{LOOP}/rounds/{{number}}/raw/{{word}}", raw_file),
    page("/static/{name:path}", static_file, Access.OPEN),
    page("/favicon.ico", favicon, Access.OPEN),
)
_FORMS: tuple[Route, ...] = (
    *(forms.verb(row, documents.document_page if "docs" in row.leads else loop.overview) for row in VERBS),
    form(f"{LOOP}/docs/{{key}}/save", forms.save_form, documents.document_page, most=MOST_DOCUMENT),
    form(f"{LOOP}/docs/{{key}}/mine", mine, most=MOST_DOCUMENT),
    form(f"{LOOP}/docs/{{key}}/tick", forms.tick_form, documents.document_page),
    form(f"{LOOP}/chat", forms.chat_form, chat.chat_page),
    form("/start", forms.start_form, setup.start_page),
    form("/login", forms.sign_in_form, access=Access.OPEN),
    form("/logout", forms.sign_out_form, access=Access.LOOK),
    form("/settings/theme", forms.theme_form, access=Access.LOOK),
    form("/settings/keys", forms.keys_form, access=Access.LOOK),
)
_SCHEMA = look("/api/openapi.json", describe, "This document", bare=True)
TABLE: tuple[Route, ...] = (*_PAGES, *_FILES, *_FORMS, *api.ROUTES, _SCHEMA)


@cache
def _live() -> list[tuple[Any, Route]]:
    return [(compile_path(row.path)[0], row) for row in _PAGES if row.access is Access.LOOK]


def page_of(site: Any, address: str, visitor: Visitor) -> Page:
    """The page that a browser shows, made again for the stream."""
    asked, _, query = address.partition("?")
    for pattern, row in _live():
        if found := pattern.match(asked):
            path = {name: unquote(value) for name, value in found.groupdict().items()}
            call = Call(site=site, visitor=visitor, path=path, query=dict(parse_qsl(query)), form={})
            made = partial(row.act, call)()
            assert isinstance(made, Page)  # noqa: S101 - pages are not coroutines
            return made
    raise UserError("there is no such page")  # the answer to a form, or a question: it stays as it is
