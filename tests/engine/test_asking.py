"""Somebody asks for a pause or a stop: in a round, in a wait, while checks run, before anything has begun."""

import pytest

from bydawn.core.facts import PauseRequested, RoundEnded, RoundStarted, StopRequested
from bydawn.core.loop import Promise
from bydawn.core.outcome import Outcome
from bydawn.core.requests import AskPause, AskStop, Request
from bydawn.core.values import End
from engine.night import DONE, Night, Play, blip, busy

PAUSE = AskPause(id="r-1", run="run-1", by="ada")
PAUSE_NOW = AskPause(id="r-2", run="run-1", by="ada", now=True)
STOP = AskStop(id="r-3", run="run-1", by="ada", now=False)
STOP_NOW = AskStop(id="r-4", run="run-1", by="ada")
CTRL_C = AskPause(id="", run="run-1", by="a signal", signal="SIGINT")
GUARDIAN_LOST = AskPause(id="", run="run-1", by="a signal", now=True, signal="the death of its guardian")

ENDS: dict[Request, End] = {PAUSE: End.PAUSED, PAUSE_NOW: End.PAUSED, STOP: End.STOPPED, STOP_NOW: End.STOPPED}
EVERY = pytest.mark.parametrize("request_", [*ENDS], ids=["pause", "pause now", "stop after", "stop"])
NOW = pytest.mark.parametrize("request_", [PAUSE_NOW, STOP_NOW], ids=["pause", "stop"])
LATER = pytest.mark.parametrize("request_", [PAUSE, STOP], ids=["pause", "stop"])


@EVERY
def test_before_the_first_round_nothing_is_spent(request_: Request) -> None:
    night = Night([DONE])
    night.ask(request_)
    assert night.run().end is ENDS[request_]
    assert night.agent.turns == 0


@NOW
def test_now_means_in_the_middle_of_a_round(request_: Request) -> None:
    night = Night([Play(says=DONE, writes={"a": "half"}, meanwhile=lambda: night.ask(request_)), DONE])
    assert night.run().end is ENDS[request_]
    [ended] = night.facts(RoundEnded)
    assert (ended.outcome, ended.seconds) == (Outcome.INTERRUPTED, 30.0)
    assert night.state.rounds == 0  # it costs nothing
    assert night.run().end is End.UNVERIFIED
    assert "The last round was interrupted" in night.prompt(2)


@LATER
def test_otherwise_the_round_finishes_and_so_do_its_checks(request_: Request) -> None:
    night = Night([Play(writes={"a": "1"}, meanwhile=lambda: night.ask(request_))], check=lambda _: False)
    assert night.run().end is ENDS[request_]
    assert [fact.outcome for fact in night.facts(RoundEnded)] == [Outcome.OK]
    assert night.verdicts == [False]


@LATER
def test_a_round_that_finishes_the_loop_finishes_it_even_so(request_: Request) -> None:
    night = Night([Play(says=DONE, meanwhile=lambda: night.ask(request_))])
    assert night.run().end is End.UNVERIFIED


@EVERY
def test_a_wait_ends_at_once_whatever_was_asked(request_: Request) -> None:
    night = Night([Play(outcome=Outcome.LIMITED, seconds=1.0), DONE])
    night.clock.at(20.0, lambda: night.ask(request_))
    stopped = night.run()
    assert stopped.end is ENDS[request_]
    assert stopped.decided.elapsed <= 62.0
    assert night.state.waiting is None
    assert night.agent.turns == 1


@NOW
def test_checks_that_were_cut_short_have_said_nothing_and_are_run_again(request_: Request) -> None:
    night = Night([Play(says=DONE, writes={"a": "1"})], check=lambda _: True, promise=Promise())
    night.checks.meanwhile = lambda: night.ask(request_) if night.checks.runs == 1 else None
    assert night.run().end is ENDS[request_]
    assert night.verdicts == []
    assert night.run().end is End.COMPLETE
    assert (night.agent.turns, night.checks.runs) == (1, 2)


@LATER
def test_checks_that_are_running_finish_and_count(request_: Request) -> None:
    night = Night([Play(writes={"a": "1"})], check=lambda _: True)
    night.checks.meanwhile = lambda: night.ask(request_) if night.checks.runs else None
    assert night.run().end is End.COMPLETE


def test_a_second_ctrl_c_does_not_wait_for_the_round() -> None:
    def twice() -> None:
        night.ask(CTRL_C)
        night.ask(AskPause(id="", run="run-1", by="a signal", now=True, signal="SIGINT"))

    night = Night([Play(meanwhile=twice)])
    stopped = night.run()
    assert (stopped.end, stopped.by, stopped.reason) == (End.PAUSED, "SIGINT", "paused: you pressed Ctrl-C")
    assert [fact.outcome for fact in night.facts(RoundEnded)] == [Outcome.INTERRUPTED]


def test_a_lost_guardian_pauses_the_loop_at_once_and_is_named() -> None:
    night = Night([Play(meanwhile=lambda: night.ask(GUARDIAN_LOST))])
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.PAUSED, "paused: its parent process was killed")


@EVERY
def test_a_request_is_forgotten_only_when_it_stands_in_the_ledger_for_good(request_: Request) -> None:
    def done(request: Request) -> None:
        [fact] = night.facts(PauseRequested, StopRequested)
        seen.append((fact.request == request.id, night.ledger.synced == len(night.ledger.records)))

    seen: list[tuple[bool, bool]] = []
    night = Night([DONE])
    night.channel.when_done = done
    night.ask(request_)
    night.run()
    assert seen == [(True, True)]


@EVERY
def test_the_next_run_goes_on_where_it_was(request_: Request) -> None:
    night = Night(busy())
    night.clock.at(90.0, lambda: night.ask(request_))
    night.run()
    rounds = night.state.round
    assert night.run(once=True).decided.rule == "rounds-this-run"
    assert night.state.round == rounds + 1


@EVERY
def test_nothing_starts_between_a_request_and_the_end_of_the_run(request_: Request) -> None:
    night = Night([blip(), *[Play(writes={"a": str(turn)}) for turn in range(9)]], check=lambda _: False)
    night.clock.at(70.0, lambda: night.ask(request_))
    night.run()
    facts = night.facts()
    asked = next(place for place, fact in enumerate(facts) if isinstance(fact, PauseRequested | StopRequested))
    assert not any(isinstance(fact, RoundStarted) for fact in facts[asked:])
