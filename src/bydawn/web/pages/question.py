"""Pages that ask before something cannot be taken back, and pages that say why there is nothing to see."""

from bydawn.core.errors import UserError
from bydawn.core.proof import to_accept
from bydawn.core.rules import Rule
from bydawn.core.values import Act, Advice
from bydawn.web.calls import Call
from bydawn.web.loops import readable
from bydawn.web.page import Crumb, Page, Section, Tab, Visitor
from bydawn.web.pages.frame import loop_page
from bydawn.web.words import coded, sentence

_TITLES = {
    400: "This did not work",
    401: "You are not signed in",
    403: "Not allowed",
    404: "Not found",
    409: "Too late",
    413: "Too large",
    415: "This did not work",
    421: "This is another name",
    500: "Our own failure",
    503: "Not now",
}


def stop_page(call: Call) -> Page:
    """Ask before a loop is stopped now."""
    return _question(call, "stop")


def accept_page(call: Call) -> Page:
    """Ask before changes are accepted."""
    state = readable(call.standing).state
    lost = state.stopped is not None and state.stopped.decided.rule == Rule.TASK_FILE
    problem = state.tasks.problem if lost and state.tasks else ""
    return _question(call, "accept", paths=(*state.tampered, *to_accept(state.proofs)), problem=problem or "")


def _question(call: Call, what: str, **data: object) -> Page:
    section = Section(id="question", template=f"question_{what}.html", live=False, data=data)
    return loop_page(call, readable(call.standing), Tab.OVERVIEW, what, section)


def error_page(status: int, error: UserError, visitor: Visitor | None) -> Page:
    """Why there is no page, in words, and the way on."""
    parts = error.hint.parts if isinstance(error.hint, Advice) else ()
    new_link = next((part for part in parts if isinstance(part, Act)), Act("serve", link=True))
    known, title = visitor is not None and status != 401, _TITLES.get(status, "This did not work")
    data = {
        "title": title,
        "lines": [coded(sentence(text)) for text in (error.what, error.cause, error.hint) if text],
        "status": status,
        "known": known,
        "command": new_link if status == 401 else "",
    }
    section = Section(id="error", template="error.html", live=False, data=data)
    crumbs = (Crumb("Loops", "/"), Crumb(title)) if known else ()
    return Page(title=title, crumbs=crumbs, sections=(section,), status=status)
