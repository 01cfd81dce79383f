"""Why a loop decided as it did: the rule, what it looked at, and whether a replay decides the same."""

from functools import cache

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.text import plain
from bydawn.operations import decisions
from bydawn.operations.decisions import Reason, why_fields
from bydawn.operations.sentences import Field
from bydawn.store.registry import Standing
from bydawn.web.calls import Call
from bydawn.web.page import Page, Section, Tab
from bydawn.web.pages.frame import loop_page


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The last decision in words, or why there is none."""

    reason: Reason | None = None
    fields: tuple[Field, ...] = ()
    why_not: str = ""


def why_page(call: Call) -> Page:
    """The last decision of a loop."""
    standing = call.standing
    data = {"decision": cache(lambda: _decision(standing))}
    section = Section(id="decision", template="why_page.html", live=False, data=data)
    return loop_page(call, standing, Tab.OVERVIEW, "why", section)


def _decision(standing: Standing) -> Decision:
    try:
        if standing.trouble:
            raise standing.trouble
        found = decisions.why(standing)
        return Decision(reason=found, fields=(*why_fields(standing, found), Field("Replayed", plain(found.replayed))))
    except UserError as error:
        return Decision(why_not=error.sentence)
