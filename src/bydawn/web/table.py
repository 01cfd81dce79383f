"""The table of everything that a server answers to, and which page an address means."""

import mimetypes
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.routing import compile_path

from bydawn.core.digests import sha256
from bydawn.core.errors import UserError
from bydawn.core.layout import PROMPT, REPLY, STDERR, STDOUT
from bydawn.web import api, forms, openapi
from bydawn.web.auth import Access
from bydawn.web.calls import MOST_DOCUMENT, Call, Json, Raw, Route, form, look, page
from bydawn.web.loops import NotHere
from bydawn.web.page import STATIC, Page, Visitor
from bydawn.web.pages import chat, documents, home, log, loop, question, setup, why
from bydawn.web.pages import round as rounds
from bydawn.web.starting import refuse_elsewhere

LOOP = "/loops/{loop}"
_RAW = {"prompt": PROMPT, "stdout": STDOUT, "stderr": STDERR, "reply": REPLY}
_MOST_RAW = 64 << 20  # bytes of a file that are handed out


# -- pages -------------------------------------------------------------------------------------------------------------


def home_page(call: Call) -> Page:
    return home.home(call.loops, call.visitor, everything=call.query.get("all") == "1")


def loop_page(call: Call) -> Page:
    return loop.overview(call.loops, call.path["loop"], call.visitor)


def rounds_page(call: Call) -> Page:
    api.readable(call.standing)
    return loop.all_rounds(call.loops, call.path["loop"], call.visitor, before=_count(call, "before"))


def round_page(call: Call) -> Page:
    number = call.number("number")
    api.the_known_round(call.standing, number)
    file = call.query.get("file")
    since = _count(call, "since")
    return rounds.round_page(call.loops, call.path["loop"], number, call.visitor, since=since, file=file)


def why_page(call: Call) -> Page:
    return why.why_page(call.loops, call.path["loop"], call.visitor)


def document_page(call: Call) -> Page:
    mode = "edit" if call.query.get("mode") == "edit" else "read"
    api.with_workspace(call.standing)
    return documents.document_page(call.loops, call.path["loop"], call.path.get("key", ""), call.visitor, mode=mode)


def log_page(call: Call) -> Page:
    asked = call.query
    return log.log_page(
        call.loops,
        call.path["loop"],
        call.visitor,
        round=_count(call, "round"),
        q=asked.get("q", ""),
        first=_count(call, "from"),
        wrap=asked.get("wrap") != "0",
    )


def chat_page(call: Call) -> Page:
    return chat.chat_page(call.loops, call.path["loop"], call.visitor, draft=call.field("message"))


def start_page(call: Call) -> Page:
    refuse_elsewhere(call.site)
    return setup.start_page(call.loops, call.visitor, call.site.folder)


def settings_page(call: Call) -> Page:
    return setup.settings_page(call.loops, call.visitor, call.site.folder)


def doctor_page(call: Call) -> Page:
    return setup.doctor_page(call.loops, call.visitor, call.site.folder)


def stop_page(call: Call) -> Page:
    api.readable(call.standing)
    return question.question_page(call.loops, call.path["loop"], "stop", call.visitor)


def accept_page(call: Call) -> Page:
    api.readable(call.standing)
    return question.question_page(call.loops, call.path["loop"], "accept", call.visitor)


def login_page(call: Call) -> Page:
    return setup.login_page(command=call.site.gate.command)


def _count(call: Call, name: str) -> int | None:
    """A number after `?`."""
    text = call.query.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise UserError("this address cannot be read", cause=f"{name}={text[:20]!r} is not a number")
    return int(text)


# -- files -------------------------------------------------------------------------------------------------------------


def raw_file(call: Call) -> Raw:
    """A file of a round: looked up by its word, never by a path."""
    number, word = call.number("number"), call.path["word"]
    standing = call.standing
    attempt = api.the_known_round(standing, number)
    names = dict(_RAW)
    for place, verdict in enumerate(attempt.checks.verdicts if attempt.checks else (), 1):
        if verdict.output:
            names[f"check-{place}"] = verdict.output
    if word not in names:
        raise NotHere(f"round {number} has no “{word[:20]}”", cause=f"it has {', '.join(names)}")
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
        raise NotHere("there is no such file")
    data, media, tag = found
    headers = {"cache-control": "no-cache", "etag": tag}
    if call.headers.get("if-none-match") == tag:
        return Raw(data=b"", name="", media=media, attached=False, headers=headers, status=304)
    return Raw(data=data, name="", media=media, attached=False, headers=headers)


def favicon(call: Call) -> Raw:
    call.path["name"] = "icons/favicon.svg"
    return static_file(call)


def describe(call: Call) -> Json:  # noqa: ARG001
    return Json(value=openapi.document([*api.ROUTES, _SCHEMA]), bare=True)


# -- the table ---------------------------------------------------------------------------------------------------------

_PAGES: tuple[Route, ...] = (
    page("/", home_page),
    page(LOOP, loop_page),
    page(f"{LOOP}/rounds", rounds_page),
    page(f"{LOOP}/rounds/{{number}}", round_page),
    page(f"{LOOP}/rounds/{{number}}/diff", round_page),
    page(f"{LOOP}/why", why_page),
    page(f"{LOOP}/docs", document_page),
    page(f"{LOOP}/docs/{{key}}", document_page),
    page(f"{LOOP}/log", log_page),
    page(f"{LOOP}/chat", chat_page),
    page(f"{LOOP}/stop", stop_page, Access.STEER),
    page(f"{LOOP}/accept", accept_page, Access.STEER),
    page("/start", start_page),
    page("/settings", settings_page),
    page("/doctor", doctor_page),
    page("/login", login_page, Access.OPEN),
)
_FILES: tuple[Route, ...] = (
    page(f"{LOOP}/rounds/{{number}}/raw/{{word}}", raw_file),
    page("/static/{name:path}", static_file, Access.OPEN),
    page("/favicon.ico", favicon, Access.OPEN),
)
_FORMS: tuple[Route, ...] = (
    form(f"{LOOP}/tell", forms.tell_form, loop_page),
    form(f"{LOOP}/pause", forms.pause_form, loop_page),
    form(f"{LOOP}/stop", forms.stop_form, loop_page),
    form(f"{LOOP}/resume", forms.resume_form, loop_page),
    form(f"{LOOP}/approve", forms.approve_form, loop_page),
    form(f"{LOOP}/accept", forms.accept_form, loop_page),
    form(f"{LOOP}/skip", forms.skip_form, loop_page),
    form(f"{LOOP}/reopen", forms.reopen_form, loop_page),
    form(f"{LOOP}/dismiss", forms.dismiss_form, loop_page),
    form(f"{LOOP}/tasks", forms.add_task_form, document_page),
    form(f"{LOOP}/docs/{{key}}/save", forms.save_form, document_page, most=MOST_DOCUMENT),
    form(f"{LOOP}/docs/{{key}}/mine", mine, most=MOST_DOCUMENT),
    form(f"{LOOP}/docs/{{key}}/tick", forms.tick_form, document_page),
    form(f"{LOOP}/chat", forms.chat_form, chat_page),
    form("/start", forms.start_form, start_page),
    form("/login", forms.sign_in_form, access=Access.OPEN),
    form("/logout", forms.sign_out_form, access=Access.LOOK),
    form("/settings/theme", forms.theme_form, access=Access.LOOK),
    form("/settings/keys", forms.keys_form, access=Access.LOOK),
)
_SCHEMA = look("/api/openapi.json", describe, says="This document")
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
