"""The sixth success criterion of rloop: it runs for hours without anybody, whatever the provider does meanwhile."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bydawn.core.facts import LoopStopped, RoundEnded
from bydawn.core.loop import SpokenDialect
from bydawn.core.outcome import Outcome
from bydawn.core.values import End, Promised
from bydawn.dialects.rloop import DIALECT, arguments
from bydawn.dialects.rloop.config import Config
from bydawn.dialects.seam import Start
from bydawn.operations.loop_request import loop_request
from bydawn.settings.layers import Given, Reading, settle
from bydawn.settings.setting import Layer
from bydawn.settings.table import BY_KEY
from engine.fakes import NOON
from engine.night import Night, Play, blip, todo

TAG = "<promise>COMPLETE</promise>"
TASKS = 200


def fields(request: Start) -> dict[str, Any]:
    """The loop that is made of a request, for a night: through the one table of settings, like any other."""
    given = [
        Given(key=key, value=BY_KEY[key].kind.from_words(words), layer=Layer.FLAG, where="a test")
        for key, words in request.settings.items()
        if words
    ]
    loop = loop_request(settle([Reading(given=tuple(given))], NOON), Path("/w")).loop
    spoken = SpokenDialect(name=DIALECT.name, words=request.words, sections=request.sections)
    ours: dict[str, Any] = {"dialect": spoken, "template": request.template, "prompt": request.prompt, "agent": "demo"}
    ours["promise_required"] = request.promise_required
    return {**{name: getattr(loop, name) for name in loop.__struct_fields__}, **ours, "id": "night", "uid": "u-1"}


def prd(done: int) -> str:
    return todo(*(f"{'x ' if number <= done else ''}task {number}" for number in range(1, TASKS + 1)))


def trouble(number: int, now: Callable[[], datetime]) -> Iterator[Play]:
    """What comes before a task is done: no more than a night can have, and nothing that a person could help with."""
    if number % 20 == 0:
        until = now() + timedelta(hours=5)
        yield Play(outcome=Outcome.LIMITED, detail="session limit", wait_until=until, seconds=1.0)
    if number % 7 == 0:
        yield blip("529 Overloaded")
        yield blip("ECONNRESET")
    if number % 50 == 0:
        yield Play(outcome=Outcome.HUNG, detail="no output for 30 minutes", seconds=1800.0)
    if number % 9 == 0:
        yield Play(says=f"I cannot output {TAG} because tasks remain")
    if number % 33 == 0:
        yield from (
            Play(says=f"All of it is there.\n\n{TAG}") for _ in range(3)
        )  # the fifth in a row would be one too many


def plays(now: Callable[[], datetime]) -> Iterator[Play]:
    for number in range(1, TASKS + 1):
        yield from trouble(number, now)
        yield Play(says=f"Did task {number}.", writes={"PRD.md": prd(number), "work.txt": str(number)})
    raise AssertionError("there is nothing left to pay for")


def test_two_hundred_tasks_with_limits_hiccups_and_stalls_need_nobody() -> None:
    """R-012, R-014, R-019, R-060."""
    config = Config(max_iterations=300)
    request = arguments.start(config, session="app1", prompt=None)
    night = Night(plays(lambda: night.clock.wall), files={"PRD.md": prd(0)}, **fields(request))
    stopped = night.run()
    assert isinstance(stopped, LoopStopped)
    assert (stopped.end, DIALECT.exit_code(stopped)) == (End.UNVERIFIED, 0), stopped
    ended = night.facts(RoundEnded)
    outcomes = [fact.outcome for fact in ended]
    assert [outcomes.count(each) for each in (Outcome.LIMITED, Outcome.TRANSIENT, Outcome.HUNG)] == [10, 56, 4]
    given = [fact.promise for fact in ended if fact.outcome is Outcome.OK]
    assert [given.count(each) for each in (Promised.GIVEN, Promised.MENTIONED)] == [18, 22], "none of them ended it"
    assert night.clock.wall - NOON >= timedelta(hours=50), "limits were waited out"
    between = [seconds for seconds in night.processes.sleeps if 2.0 <= seconds <= 2.2]
    assert len(between) >= TASKS
    # A hiccup and a limit are no iterations.
    assert "Current iteration: 1/300" in night.prompt(1)
    last = night.prompt(ended[-1].round)
    assert f"Current iteration: {TASKS + 18 + 22 + 4}/300" in last, last[-400:]
