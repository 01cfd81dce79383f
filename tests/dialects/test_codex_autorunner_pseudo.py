"""The loop of codex-autorunner against the pseudo-code of its document (§4.7), run as code on a table of histories.

Same calls, same states. Where ours differs on purpose, a test of its own says how and why.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from bydawn.core.facts import LoopStopped, RoundsBefore, RoundStarted
from bydawn.core.history import History as Attempts
from bydawn.core.layout import STDOUT
from bydawn.core.loop import SpokenDialect
from bydawn.core.outcome import Exit, Outcome
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.core.values import End
from bydawn.dialects.codex_autorunner import DIALECT, arguments, files
from bydawn.dialects.codex_autorunner.config import Config as Settings
from bydawn.dialects.seam import Start, Whole
from bydawn.operations.loop_request import loop_request
from bydawn.settings.layers import Given, Reading, settle
from bydawn.settings.setting import Layer
from bydawn.settings.table import BY_KEY
from engine.fakes import NOON, Files
from engine.night import Night, Play, ScriptedAgent, blip, todo

WORKSPACE = "/w"
SECONDS = 60.0  # that a run takes


class Config(NamedTuple):
    stop_after_runs: int | None = None
    max_wallclock_seconds: float | None = None
    sleep_seconds: float = 5.0


class Did(NamedTuple):
    """What a run does: its exit code, and the boxes that are open after it."""

    exit_code: int
    left: int


class State(NamedTuple):
    """state.json, without its moments."""

    status: str = "idle"
    last_run_id: int | None = None
    last_exit_code: int | None = None


class History(NamedTuple):
    """What was before this invocation, and what the runs in it would do."""

    last_run_id: int | None
    left: int  # boxes that are open at the start
    runs: tuple[Did, ...]

    @property
    def before(self) -> State:
        """state.json at the start."""
        return State(last_run_id=self.last_run_id, last_exit_code=None if self.last_run_id is None else 0)


class Seen(NamedTuple):
    """What somebody who watches a loop sees: each call as (run id, the run whose output it is told), each new state."""

    calls: list[tuple[int, int | None]]
    states: list[State]


# -- the document ------------------------------------------------------------------------------------------------------


class Document:
    """What the pseudo-code calls; a clock, a list and a Codex that play a history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._clock = 0.0
        self._left = history.left
        self._runs = iter(history.runs)
        self._logged = {history.last_run_id} - {None}
        self.state = history.before
        self.seen = Seen([], [])

    def now(self) -> float:
        return self._clock

    def sleep(self, seconds: float) -> None:
        self._clock += seconds

    def todos_done(self) -> bool:
        return self._left == 0

    def extract_run_output(self, run_id: int) -> int | None:
        return run_id if run_id in self._logged else None

    def update_state(self, **fields: object) -> None:
        state = self.state._replace(**fields)  # type: ignore[arg-type]
        state = state._replace(last_run_id=state.last_run_id or None)  # it writes 0 where there was none; ours is null
        if state != self.state:
            self.seen.states.append(state)
        self.state = state

    def run_codex_cli(self, prompt: int | None, run_id: int) -> int:
        self.seen.calls.append((run_id, prompt))
        did = next(self._runs)
        self._clock += SECONDS
        self._left = did.left
        self._logged.add(run_id)
        return did.exit_code


def run_loop(document: Document, config: Config, *, slip: bool = False) -> Seen:
    """§4.7, line by line. Its slip: `stop_after_runs` is compared with the number of a run since the beginning."""
    run_id = (document.state.last_run_id or 0) + 1
    first = 1 if slip else run_id
    start_wallclock = document.now()

    while True:
        if config.max_wallclock_seconds is not None:  # noqa: SIM102 - as it stands there
            if document.now() - start_wallclock > config.max_wallclock_seconds:
                document.update_state(status="idle", last_run_id=run_id - 1)
                break

        if document.todos_done():
            document.update_state(status="idle", last_run_id=run_id - 1)
            break

        prompt = document.extract_run_output(run_id - 1)

        document.update_state(status="running", last_run_id=run_id)

        exit_code = document.run_codex_cli(prompt, run_id)

        document.update_state(
            status="error" if exit_code != 0 else "idle",
            last_exit_code=exit_code,
            last_run_id=run_id,
        )

        if exit_code != 0:
            break

        if config.stop_after_runs is not None:  # noqa: SIM102
            if run_id - first + 1 >= config.stop_after_runs:
                break

        run_id += 1
        document.sleep(config.sleep_seconds)

    return document.seen


# -- the histories -----------------------------------------------------------------------------------------------------


def well(*left: int) -> tuple[Did, ...]:
    return tuple(Did(0, boxes) for boxes in left)


RUNS = {
    "nothing open": (0, ()),
    "one item": (1, well(0)),
    "three items, one a run": (3, well(2, 1, 0)),
    "three items at once": (3, well(0)),
    "an item that takes three runs": (1, well(1, 1, 0)),
    "more work is found": (1, well(2, 1, 0)),
    "the first run fails": (2, (Did(1, 2),)),
    "the second run fails": (3, (Did(0, 2), Did(2, 2))),
    "the last run fails and ticks all the same": (2, (Did(0, 1), Did(1, 0))),
    "eight runs": (8, well(7, 6, 5, 4, 3, 2, 1, 0)),
}
CAPS = (None, 1, 2, 3)
CLOCKS = (None, 30.0, 100.0, 250.0)  # no pause comes near them
LAST = (None, 12)  # the number of the last run before


# -- ours --------------------------------------------------------------------------------------------------------------


def lists(history: History) -> Iterator[str]:
    """TODO.md at the start and after each run: boxes are ticked from the top, and what is found is added below."""
    done, items = 1, 1
    for left in (history.left, *(did.left for did in history.runs)):
        items = max(items, done + left)
        done = items - left
        yield todo(*(f"{'x ' if number < done else ''}item {number}" for number in range(items)))


def fields(request: Start) -> dict[str, Any]:
    """The loop that is made of a request, for a night: through the one table of settings, like any other."""
    given = [
        Given(key=key, value=BY_KEY[key].kind.from_words(words), layer=Layer.FLAG, where="a test")
        for key, words in request.settings.items()
        if words
    ]
    loop = loop_request(settle([Reading(given=tuple(given))], NOON), Path(WORKSPACE)).loop
    spoken = SpokenDialect(name=DIALECT.name, words=request.words, sections=request.sections, numbers_cut=True)
    ours = {"dialect": spoken, "template": request.template, "prompt": request.prompt, "agent": "demo"}
    return {**{name: getattr(loop, name) for name in loop.__struct_fields__}, **ours, "id": "night", "uid": "u-1"}


def autorunner(history: History, config: Config, *, hiccup: Play | None = None) -> Night:
    """Our loop in a world in memory, about to do what the history says; a hiccup comes before each run."""
    before = files.State(last_run_id=history.last_run_id, last_exit_code=0 if history.last_run_id else None)
    wanted = arguments.start(Settings(sleep_seconds=config.sleep_seconds), None, is_codex=True)
    request = arguments.going_on(wanted, before, None)
    first, *later = lists(history)

    def prints(words: str) -> Callable[[], None]:
        return lambda: night.files.texts.update({(night.state.round, STDOUT): words})

    def plays() -> Iterator[Play]:
        for number, (did, text) in enumerate(zip(history.runs, later, strict=True), (history.last_run_id or 0) + 1):
            if hiccup:
                yield hiccup
            words = f"This is run {number}."
            yield Play(
                says=words,
                writes={"TODO.md": text, "work.txt": str(number)},
                outcome=Outcome.FAILED if did.exit_code else Outcome.OK,
                exit=Exit(code=did.exit_code, seconds=SECONDS),
                seconds=SECONDS,
                meanwhile=prints(words),
            )

    documents: Files = {"TODO.md": first, "PROGRESS.md": "# p\n", "OPINIONS.md": "# o\n"}
    night = Night(plays(), files=documents, **fields(request))
    if last := history.last_run_id:
        night.ledger.append(RoundsBefore(rounds=last, output=f"This is run {last}."))
    return night


def seen(night: Night, last: State) -> Seen:
    """What our files and prompts show of it, from its ledger."""
    found, state, attempts = Seen([], []), LoopState(created_at=NOON), Attempts()
    for record in night.ledger.records:
        state = after(state, record)
        attempts.saw(record.fact, state)
        if not state.runs:  # files are written by one
            continue
        for view in DIALECT.views(record.fact, night.loop, state, attempts):
            if isinstance(view, Whole) and view.path.endswith("state.json"):
                text = json.loads(str(view.text))
                now = State(text["status"], text["last_run_id"], text["last_exit_code"])
                found.states.extend([now] if now != last else [])
                last = now
        if isinstance(record.fact, RoundStarted):
            assert last.last_run_id
            previous = re.search(r"<PREV_RUN_OUTPUT>\nThis is run (\d+)\.\n", night.prompt(record.fact.round))
            found.calls.append((last.last_run_id, int(previous[1]) if previous else None))
    return found


def run(history: History, config: Config, **more: Any) -> tuple[Seen, LoopStopped]:
    night = autorunner(history, config, **more)
    stopped = night.run(rounds=config.stop_after_runs, seconds=config.max_wallclock_seconds)
    return seen(night, history.before), stopped


# -- the same ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
def test_our_loop_is_the_one_of_the_document(name: str) -> None:
    """A-006, A-021, A-030, A-032, A-035, A-038, A-039, A-040, A-043, A-052: with every cap and clock."""
    left, runs = RUNS[name]
    for cap, clock, last in product(CAPS, CLOCKS, LAST):
        history, config = History(last, left, runs), Config(cap, clock)
        expected = run_loop(Document(history), config)
        found, stopped = run(history, config)
        assert found == expected, (history, config)
        assert DIALECT.exit_code(stopped) == code_for(expected, runs, left, config), (history, config)


def code_for(found: Seen, runs: tuple[Did, ...], left: int, config: Config) -> int:
    """The exit codes that we add to it. Nothing left open is 0; the command makes 7 of it if its last run failed."""
    done = runs[: len(found.calls)]
    if (done[-1].left if done else left) == 0:
        return 0
    if any(did.exit_code for did in done):
        return 7
    return 0 if len(done) == config.stop_after_runs else 4


# -- not the same, on purpose ------------------------------------------------------------------------------------------

THREE = History(None, 3, well(2, 1, 0))


def test_the_cap_counts_the_runs_of_this_invocation() -> None:
    """A-040, X-08: the document compares a number of this invocation with one since the beginning."""
    history, config = History(12, 3, well(2, 1, 0)), Config(stop_after_runs=2)
    assert len(run_loop(Document(history), config, slip=True).calls) == 1
    assert len(run(history, config)[0].calls) == 2


@pytest.mark.parametrize("outcome", [Outcome.TRANSIENT, Outcome.LIMITED])
def test_a_hiccup_is_no_run(outcome: Outcome) -> None:
    """A-043, X-06: the document would stop with an error."""
    found, stopped = run(THREE, Config(), hiccup=replace(blip(), outcome=outcome, exit=Exit(code=1, seconds=1.0)))
    assert stopped.end is End.UNVERIFIED
    expected = run_loop(Document(THREE), Config())
    assert [state for state in found.states if state.status != "running"] == expected.states[1::2]
    assert [*dict.fromkeys(found.calls)] == expected.calls


def test_runs_that_change_nothing_are_not_repeated_for_ever() -> None:
    """A-039, X-07: the document has no cap, and would spend for ever."""
    history = History(None, 1, well(*[1] * 50))
    night = autorunner(history, Config())
    night.agent = ScriptedAgent(Play(says="I had a look.", seconds=SECONDS) for _ in range(50))
    assert night.run().end is End.BLOCKED
    found = seen(night, history.before)
    assert (len(found.calls), found.states[-1]) == (5, State("error", 5, 0))


@pytest.mark.parametrize("text", [None, "", "- [x] item 0\n"], ids=["gone", "empty", "items lost"])
def test_a_list_that_lost_open_items_is_not_done(text: str | None) -> None:
    """A-032, X-05: the document would take it for the end."""
    night = autorunner(THREE, Config())
    night.agent = ScriptedAgent([Play(writes={"TODO.md": text, "work.txt": "1"}, seconds=SECONDS)])
    assert night.run().end is End.BLOCKED
    assert seen(night, THREE.before).states[-1] == State("error", 1, 0)
