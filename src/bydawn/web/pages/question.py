"""Pages that ask before something cannot be taken back, and pages that say why there is nothing to see."""

from collections.abc import Callable
from datetime import UTC, datetime

from bydawn.core.errors import UserError
from bydawn.core.proof import to_accept
from bydawn.core.rules import Rule
from bydawn.core.text import duration, plain
from bydawn.core.values import Act, Advice, Status
from bydawn.store.registry import Standing
from bydawn.web.calls import Call
from bydawn.web.loops import readable
from bydawn.web.page import Crumb, Page, Section, Tab, Visitor
from bydawn.web.pages.frame import coded, loop_page
from bydawn.web.words import sentence

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
    return _question(call, "stop", _stop)


def accept_page(call: Call) -> Page:
    """Ask before changes are accepted."""
    return _question(call, "accept", _accept)


def _question(call: Call, what: str, asked: Callable[[Standing], dict[str, object]]) -> Page:
    standing = readable(call.standing)
    data = {"seq": standing.state.seq, **asked(standing)}
    section = Section(id="question", template=f"question_{what}.html", live=False, data=data)
    return loop_page(call, standing, Tab.OVERVIEW, what, section)


def _stop(standing: Standing) -> dict[str, object]:
    opened = standing.state.open_round if standing.alive else None
    worked = (datetime.now(UTC) - opened.started_at).total_seconds() if opened else 0.0
    return {
        "opened": opened,
        "worked": duration(worked),
        "is_over": standing.state.stopped is not None,
        "left": standing.left,
        "waits": standing.status is Status.WAITING,
    }


def _accept(standing: Standing) -> dict[str, object]:
    stopped, tasks = standing.state.stopped, standing.state.tasks
    files = (*standing.state.tampered, *to_accept(standing.state.proofs))
    lost = stopped is not None and stopped.decided.rule == Rule.TASK_FILE
    return {
        "paths": [plain(path) for path in files],
        "file": standing.loop.tasks,
        "problem": plain(tasks.problem) if lost and tasks and tasks.problem else "",
        "round": standing.state.round,
    }


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
