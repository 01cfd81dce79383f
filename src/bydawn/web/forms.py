"""What the forms of the pages do: the same acts as the API, then back to a page that says what was done."""

from urllib.parse import quote

import msgspec

from bydawn.core.errors import UserError
from bydawn.operations import documents
from bydawn.web.acts import Expecting, OneTask, Verb, perform, with_workspace
from bydawn.web.calls import Act, Answer, Call, Route, Sent, form, number
from bydawn.web.chatting import answers
from bydawn.web.pages.documents import conflict_page, document_page
from bydawn.web.starting import start

_THEMES = ("", "light", "dark")


def verb(row: Verb, behind: Act) -> Route:
    """The form of a verb: its fields are what a program sends."""

    def act(call: Call) -> Sent:
        done = perform(row, call.standing, _sent(call, row), lambda: call.form.pop("text", None))
        leads = "{loop}/chat" if call.field("from") == "chat" else row.leads
        return Sent(to=leads.format(loop=_home(call)), told=done.told)

    act.__name__ = f"{row.name}_form"
    return form(f"/loops/{{loop}}/{row.name}", act, behind)


def _sent(call: Call, row: Verb) -> Expecting:
    empty = {field.name: [""] for field in msgspec.structs.fields(row.takes) if field.required}
    fields: dict[str, object] = {name: given[0] for name, given in (empty | call.form).items()}
    if row.takes is OneTask:
        fields |= {"task": call.form.get("task", []), "exactly": True}
    if row.is_about_now:
        fields["expect_seq"] = _seq(call)
    try:
        return msgspec.convert(fields, row.takes, strict=False)
    except msgspec.ValidationError as error:
        raise UserError("this form cannot be read", cause=str(error), hint="reload the page") from None


def _seq(call: Call) -> int:
    """The last fact that the page knew; every form that steers has it."""
    seq = number(call.field("expect_seq"), 15)
    if seq is None:
        raise UserError("this form is incomplete", cause="it has no expect_seq", hint="reload the page, then try again")
    return seq


def _home(call: Call, rest: str = "") -> str:
    return f"/loops/{quote(call.path['loop'])}{rest}"


def start_form(call: Call) -> Answer:
    standing = start(call.site, key=call.field("folder"), demo=call.field("demo") == "1")
    address = quote(call.loops.address(standing))
    return Sent(to=f"/loops/{address}", told=f"{standing.loop.id} has begun.")


# -- documents ---------------------------------------------------------------------------------------------------------


def save_form(call: Call) -> Answer:
    standing = with_workspace(call.standing)
    text, version, base = call.field("text"), call.field("version"), call.form.get("base", [None])[0]
    if call.field("preview") == "1":
        return document_page(call)
    return _saved(call, documents.save(standing, call.path["key"], text, version, base_text=base))


def tick_form(call: Call) -> Answer:
    """One box (`line` and `ticked`), or with scripts off every box of the document as it is ticked now."""
    standing, key, version = with_workspace(call.standing), call.path["key"], call.field("version")
    if call.form.get("line"):
        line = _line(call.field("line"))
        shown = call.form.get("shown", [None])[0]
        return _saved(call, documents.tick(standing, key, line, call.field("ticked") == "1", version, shown))
    lines, words = [*map(_line, call.form.get("box", ()))], call.form.get("words", ())
    was, now = ({*map(_line, call.form.get(name, ()))} for name in ("was", "tick"))
    saved: documents.Saved | documents.Conflict | None = None
    for line, text in zip(lines, words, strict=False):
        if (line in was) != (line in now):  # only what this person has changed: an agent may have ticked others
            saved = documents.tick(standing, key, line, line in now, version, text)
            if isinstance(saved, documents.Conflict):
                break
            version = saved.document.version
    return _saved(call, saved) if saved else Sent(to=_document(call), told="Nothing was changed.")


def _saved(call: Call, saved: documents.Saved | documents.Conflict) -> Answer:
    if isinstance(saved, documents.Conflict):
        return conflict_page(call, saved)
    told = f"Saved as version {saved.document.version}." if saved.changed else "It said so already."
    return Sent(to=_document(call), told=" ".join((told, *saved.warnings)))


def _document(call: Call) -> str:
    return _home(call, f"/docs/{quote(call.path['key'], safe='')}")


def _line(text: str) -> int:
    if (found := number(text)) is None:
        raise UserError("this form cannot be read", cause=f"{text[:20]!r} is not a line", hint="reload the page")
    return found


# -- chat --------------------------------------------------------------------------------------------------------------


async def chat_form(call: Call) -> Answer:
    """The question is asked; the page shows the answer as it comes."""
    await answers(call.site, call.standing, call.field("message"), include=call.form.get("include", ()))
    return Sent(to=_home(call, "/chat#end"))


# -- the visitor's own -------------------------------------------------------------------------------------------------


def sign_in_form(call: Call) -> Answer:
    assert call.request  # noqa: S101 - every call has one
    gate = call.site.gate
    session = gate.sign_in(call.field("code"))
    return Sent(to="/", prepared=lambda response: gate.give(response, session))


def sign_out_form(call: Call) -> Answer:
    assert call.request  # noqa: S101
    gate = call.site.gate
    gate.keys.end(call.request.cookies.get(gate.cookie, ""))
    return Sent(to="/login", prepared=lambda response: response.delete_cookie(gate.cookie, path="/"))


def theme_form(call: Call) -> Answer:
    theme = call.field("theme")
    if theme not in _THEMES:
        raise UserError("there is no such theme", cause=theme[:20], hint="light, dark, or as the system has it")
    return Sent(to=_own_page(call), cookies={"bydawn-theme": theme})


def keys_form(call: Call) -> Answer:
    return Sent(to="/settings#keys", cookies={"bydawn-keys": "on" if call.field("keys") == "on" else "off"})


def _own_page(call: Call) -> str:
    """The page that a form was on; a path of ours, never an address elsewhere."""
    path = call.field("back")
    is_ours = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return quote(path, safe="/?=&@#%+") if is_ours else "/"
