"""strict-agent-loop: what `supervise` prints of an invocation, told as a story of facts and of what is heard."""

import re

import msgspec
import pytest

from bydawn.cli.dialects.strict_agent_loop_screen import Screen
from bydawn.core.agent import Beat, Begun, CommandEnded, CommandStarted, Event, Message, Retry
from bydawn.core.breakers import Limits
from bydawn.core.facts import AnyFact, EventRecorded, IterationRecorded, Record
from bydawn.core.loop import SpokenDialect
from bydawn.core.outcome import Outcome
from bydawn.core.records import Iteration, Recording
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.dialects.strict_agent_loop import DIALECT
from bydawn.dialects.strict_agent_loop.contract import Contract
from core.facts_made import MAKE_TEST, NOON, a_loop, checked, ended, run_started, started

CONTRACT = Contract(
    task="hail",
    goal="Write the hailstone sequence of 7.",
    stop_condition="numbers.txt ends with 1",
    mode="unattended",
    next_task="write 7",
    commands=("make test",),
)
LOOP = a_loop(
    limits=Limits(iterations=200, no_progress=8),
    checks=(MAKE_TEST,),
    recording=Recording(drop=".codex-loop/tasks/hail/drop"),
    dialect=SpokenDialect(
        name="strict-agent-loop", words={"task": "hail", "contract": msgspec.json.encode(CONTRACT).decode()}
    ),
)
BEGUN = run_started(recording=True)
ANNOUNCED = EventRecorded(
    record="a1",
    at=NOON,
    kind="round.started",
    message="I write the first number",
    data={"task": "append 22", "local_done_condition": "the last line is 22"},
)


def iteration(record: str, **claim: str | bool) -> IterationRecorded:
    said = {"task": "append 22", "result_summary": "22 is there", "verification_summary": "tail says 22", **claim}
    return IterationRecorded(
        record=record, at=NOON, round=1, claim=msgspec.convert({"local_done_condition": "", **said}, Iteration)
    )


class Told:
    """A screen that is told a story."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._screen = Screen(DIALECT)
        self._state = LoopState(created_at=NOON)
        self._seq = 0

    def __call__(self, *told: AnyFact | Event) -> str:
        """What it printed of it, without the time of day."""
        for each in told:
            if isinstance(each, AnyFact):
                self._seq += 1
                record = Record(seq=self._seq, at=NOON, fact=each)
                self._state = after(self._state, record)
                self._screen.saw(each, LOOP, self._state)
            else:
                self._screen.heard(each)
        out, err = self._capsys.readouterr()
        assert not err, "people pipe stdout into a file, and want all of it there"
        assert all(re.match(r"(\d\d:\d\d:\d\d|        ) [\w ]{7,} \| |$", line) for line in out.splitlines())
        return re.sub(r"(?m)^.{9}", "", out)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(capsys)


def test_a_run_states_its_limits_first(told: Told) -> None:
    """S-061: nobody has to look up when it ends."""
    out = told(BEGUN)
    assert "task    | hail: Write the hailstone sequence of 7.\n" in out
    assert "at most 200 iterations, 8 without progress" in out


def test_every_iteration_is_announced_once_in_full_and_the_agent_adds_to_it(told: Told) -> None:
    """S-032, S-037: by the supervisor before the invocation, by the agent's own event for those that follow."""
    out = told(BEGUN, started(1))
    for part in ("Invocation: 1", "1", "write 7", "numbers.txt ends with 1"):
        assert part in out
    assert told(ANNOUNCED) == "round   | This round: append 22\nround   | Local done condition: the last line is 22\n"
    told(iteration("b1"))
    again = told(msgspec.structs.replace(ANNOUNCED, record="a2"))
    for part in ("Invocation: 1", "append 22", "the last line is 22", "numbers.txt ends with 1"):
        assert part in again


def test_messages_and_commands_are_relayed_with_a_prefix(told: Told) -> None:
    """S-035: starts, ends with the exit code, and of a failure the last 600 characters."""
    told(BEGUN, started(1))
    out = told(
        Begun("t-1"),
        Message("First I look.\nThen I write."),
        CommandStarted("runs make", "make -C /w/src"),
        CommandEnded(
            command="make -C /w/src", failed=True, exit_code=2, output="x" * 1000 + "\n" + "y" * 500 + "\nbroken"
        ),
        CommandStarted("runs ls", "ls"),
        CommandEnded(command="ls", failed=False, exit_code=0),
        Retry("no answer, retry 1 of 5"),
    )
    assert out == (
        "agent   | First I look.\nagent   | Then I write.\nstart   | make -C src\nexit 2  | make -C src\n"
        f"exit 2  | …\nexit 2  | {'y' * 500}\nexit 2  | broken\nstart   | ls\nexit 0  | ls\n"
        "retry   | no answer, retry 1 of 5\n"
    )


def test_commands_that_overlap_are_warned_about(told: Told) -> None:
    told(BEGUN, started(1))
    out = told(CommandStarted("runs a", "make a"), CommandStarted("runs b", "make b", "make a"))
    assert out.endswith("WARNING | it started while another command was running: make a\n")


def test_a_heartbeat_says_which_iteration_what_runs_and_how_far_it_is(told: Told) -> None:
    """S-036, S-037: the run must not look dead."""
    told(BEGUN, started(1), CommandStarted("runs make", "make"))
    first, *rest = told(Beat()).splitlines()
    assert re.match(r"alive   \| iteration 1: invocation 1 for .*, runs make, last output \d\.\d s ago", first)
    assert "[" in "".join(rest)
    assert "%" in "".join(rest)
    assert "the stop checks are running" in told(ended(1), Beat())


def test_what_is_recorded_is_shown_as_its_author_says_it_and_never_believed(told: Told) -> None:
    """S-033, S-046: a claim to be done is shown beside who decides; two at once are found out."""
    told(BEGUN, started(1))
    out = told(iteration("b1", stop_met=True))
    assert out == (
        "saved   | iteration 1: append 22: 22 is there\nsaved   | verified: tail says 22\n"
        "saved   | it says that the task is done; only the stop checks decide\n"
    )
    assert "WARNING | iteration 2 cannot" in told(msgspec.structs.replace(iteration("b2"), batched="too fast"))
    out = told(ended(1, seconds=62.0), checked(1, passed=False))
    assert "end     | invocation 1 after 1 m 02" in out
    assert "2 iterations recorded" in out
    assert "checks  | 0 of 1 stop check passed\nchecks  | ✗ make test: exit 2: FAIL: test_rounding\n" in out


def test_an_invocation_that_recorded_nothing_or_failed_says_so(told: Told) -> None:
    told(BEGUN, started(1))
    out = told(ended(1, said="I wrote 22"))
    assert "end     | 0 iterations recorded, so its reply counts as iteration 1\n" in out
    told(started(2))
    out = told(ended(2, Outcome.FAILED, detail="the model is gone"))
    assert "the model is gone" in out
    assert "counts" not in out
