"""Which loops `resume --all` takes: those that the machine has ended."""

from pathlib import Path

import pytest

from bydawn.core.facts import LoopStopped
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import Decided, End
from bydawn.operations.many import why_not
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing
from core.facts_made import NOON, a_loop


def standing(end: End | None, by: str = "", *, alive: bool = False) -> Standing:
    decided = Decided(rule=Rule.ASKED_TO_PAUSE, at=NOON, elapsed=0.0)
    stopped = LoopStopped(end=end, reason=f"ended by {by}", decided=decided, by=by) if end else None
    return Standing(folder=LoopFolder(Path("x")), loop=a_loop(), state=LoopState(stopped=stopped), alive=alive)


@pytest.mark.parametrize(
    ("found", "usually", "with_stopped"),
    [
        (standing(None), "", ""),  # crashed
        (standing(None, alive=True), "it is running", "it is running"),
        (standing(End.PAUSED, "SIGTERM"), "", ""),
        (standing(End.PAUSED, "SIGHUP"), "", ""),
        (standing(End.PAUSED, "the death of its guardian"), "", ""),
        (standing(End.PAUSED, "SIGINT"), "ended by SIGINT; --stopped takes it too", ""),  # Ctrl-C is a person
        (standing(End.PAUSED, "ada"), "ended by ada; --stopped takes it too", ""),
        (standing(End.STOPPED, "ada"), "ended by ada; --stopped takes it too", ""),
        (standing(End.BLOCKED), "it is blocked", "it is blocked"),
        (standing(End.LIMIT), "it has reached a limit", "it has reached a limit"),
        (standing(End.CHECKPOINT), "it is at a checkpoint", "it is at a checkpoint"),
        (standing(End.FAILED), "it has failed", "it has failed"),
    ],
)
def test_what_a_person_or_a_rule_has_ended_is_left_alone(found: Standing, usually: str, with_stopped: str) -> None:
    assert why_not(found, stopped=False) == usually
    assert why_not(found, stopped=True) == with_stopped
