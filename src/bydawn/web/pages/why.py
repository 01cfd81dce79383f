"""Why a loop decided as it did: the rule, what it looked at, and whether a replay decides the same."""

from collections.abc import Iterator
from functools import cache

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.text import plain
from bydawn.core.values import Status
from bydawn.operations import decisions, reasons, views
from bydawn.operations.decisions import Reason
from bydawn.operations.rounds import Field
from bydawn.store.registry import Standing
from bydawn.web.calls import Call
from bydawn.web.page import Page, Section, Tab
from bydawn.web.pages.frame import loop_page

_LABELS = {"missing": "Missing", "open tasks": "Tasks"}  # what a rule looked at besides limits


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The last decision in words, or why there is none."""

    reason: Reason | None = None
    fields: tuple[Field, ...] = ()
    why_not: str = ""


def why_page(call: Call) -> Page:
    """The last decision of a loop."""
    standing = call.standing
    data = {
        "address": call.loops.address(standing),
        "standing": standing,
        "reason": plain(views.reason(standing)),
        "since": views.since(standing),
        "decision": cache(lambda: _decision(standing)),
    }
    section = Section(id="decision", template="why_page.html", live=False, data=data)
    return loop_page(call.loops, standing, Tab.OVERVIEW, "why", (section,))


def _decision(standing: Standing) -> Decision:
    try:
        if standing.trouble:
            raise standing.trouble
        found = decisions.why(standing)
        return Decision(reason=found, fields=tuple(_fields(standing, found)))
    except UserError as error:
        return Decision(why_not=error.sentence)


def _fields(standing: Standing, found: Reason) -> Iterator[Field]:
    if standing.status is Status.CRASHED:  # its last decision does not explain a crash
        yield Field("Before", f"{found.rule}: {found.what}")
    else:
        yield Field("Rule", f"{found.rule}: {found.meaning}")
    last = ""
    for name, reading in found.readings.items():
        if words := reading.words(name):
            label = _LABELS.get(name, "Limits")
            yield Field(label if label != last else "", words)
            last = label
    rows = reasons.evidence(standing) if standing.state.stopped else found.evidence
    for place, row in enumerate(rows):
        yield Field("Proof" if place == 0 else "", plain(row))
    yield Field("Replayed", plain(found.replayed))
