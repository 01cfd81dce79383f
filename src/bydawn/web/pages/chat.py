"""Questions about the repository of a loop, and what its agent answered."""

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.text import duration, plain, shorten
from bydawn.operations import documents
from bydawn.operations.amounts import dollars
from bydawn.operations.chat import Turn, TurnState, history, spent
from bydawn.operations.chat_material import USUAL
from bydawn.operations.documents import DocumentName
from bydawn.store.registry import Standing
from bydawn.web.calls import Call
from bydawn.web.page import Page, Section, Tab
from bydawn.web.pages.frame import loop_page
from bydawn.web.words import href

_OFFERED = 12  # documents
_TASK = 200  # characters of a task that is made of an answer


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """A question and its answer, as the page shows them."""

    turn: Turn
    about: str  # `read only · 22 s · $0.06`
    is_open: bool
    task: str = ""  # the beginning of the answer on one line


def chat_page(call: Call) -> Page:
    """The conversation so far, and a place to ask."""
    standing = call.standing
    turns = [_row(turn) for turn in history(standing)] if not standing.trouble else []
    usage = spent(standing) if turns else None
    busy = any(row.is_open for row in turns)
    said = {
        "turns": turns,
        "spent": dollars(usage) if usage else "",
        "takes_notes": not standing.finished and not standing.trouble,
        "takes_tasks": bool(standing.loop.tasks) and not standing.trouble,
        "busy": busy,
    }
    asks = {"names": _offered(standing), "usual": USUAL, "busy": busy}
    sections = (
        Section(id="turns", template="chat_turns.html", data=said),
        Section(id="composer", template="chat_composer.html", live=False, data=asks),
    )
    at = href(call.loops.address(standing), "chat")
    return loop_page(call, standing, Tab.CHAT, "chat", *sections, at=at)


def _row(turn: Turn) -> TurnRow:
    parts = [
        "read only",
        f"{turn.steps} steps" if turn.steps > 1 else "",
        duration(turn.seconds) if turn.seconds else "",
        dollars(turn.usage) if turn.usage else "",
    ]
    lines = [line.strip(" #*->`") for line in plain(turn.answer).splitlines()]
    return TurnRow(
        turn=turn,
        about=" · ".join(filter(None, parts)),
        is_open=turn.state is TurnState.ASKED,
        task=shorten(next(filter(None, lines), ""), _TASK),
    )


def _offered(standing: Standing) -> tuple[DocumentName, ...]:
    try:
        return documents.documents(standing)[:_OFFERED]
    except (UserError, OSError):  # its folder is gone
        return ()
