"""What the screen of a tool says beside its log."""

import pytest

from bydawn.cli.dialects.codex_loop_run import _Screen
from bydawn.cli.dialects.log_screen import LogScreen
from bydawn.cli.dialects.rloop_voice import RloopScreen
from bydawn.core.facts import ChecksEnded
from bydawn.core.state import LoopState
from bydawn.core.values import Verdict
from bydawn.dialects.codex_loop.texts import spoken
from bydawn.dialects.rloop import DIALECT as RLOOP
from dialects.rloop_made import LOOP

OUTSIDE = Verdict(check="make test", passed=True, detail="", outside=True, needs="~/.tool")


@pytest.mark.parametrize("screen", [RloopScreen(RLOOP), _Screen(None, None)], ids=["rloop", "codex-loop"])
def test_a_check_that_runs_outside_its_box_is_said_in_the_first_run(
    screen: LogScreen, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without advice about an option that these tools do not have; and once, not after each iteration."""
    fact = ChecksEnded(round=0, tree="t", verdicts=(OUTSIDE,), elapsed=1.0)
    screen.saw(fact, LOOP, LoopState())
    told = capsys.readouterr().err
    assert told.count("so it runs outside") == 1 and "~/.tool" in told and "--box-write" not in told
    screen.saw(ChecksEnded(round=1, tree="t", verdicts=(OUTSIDE,), elapsed=2.0), LOOP, LoopState())
    assert "outside" not in capsys.readouterr().err


def test_the_command_of_a_hook_is_named_by_the_event_of_the_document() -> None:
    assert spoken("command of pre_round: exit 3") == "command of pre_iteration: exit 3"
