"""A notice is sent when a run has ended, and changes nothing about that."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.breakers import Limits
from bydawn.core.facts import HookEnded, LoopStopped, NoticeEnded, Obstructed
from bydawn.core.loop import Checkpoint, Hooks, SpokenDialect
from bydawn.core.notices import Notice, Order, Sent
from bydawn.core.outcome import Outcome
from bydawn.core.requests import AskNote, AskPause, AskStop
from bydawn.core.values import End
from engine.night import DONE, TODO, Night, Play, busy

AWAY = ("https://example.org/hooks/1234", "ntfy://my-secret-topic")


class Receiver:
    """Takes notices instead of a child process."""

    def __init__(self, night: Night) -> None:
        self.night = night
        self.got: list[Notice] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.was_on_disk: list[bool] = []
        night.send = self

    def __call__(self, order: Order, urgent: Callable[[], bool]) -> list[Sent]:
        assert order.notice
        assert order.addresses == AWAY
        self.got.append(order.notice)
        ledger = self.night.ledger
        self.was_on_disk.append(
            isinstance(ledger.records[-1].fact, LoopStopped) and ledger.synced == len(ledger.records)
        )
        self.meanwhile()
        detail = "stopped on request" if urgent() else "HTTP 503"
        return [Sent(address=0, sent=True, detail="HTTP 204", tries=1), Sent(address=1, sent=False, detail=detail)]


def a_night(*plays: Play | str, **settings: Any) -> tuple[Night, Receiver]:
    night = Night(plays or busy(), notify=AWAY, **settings)
    return night, Receiver(night)


LISTED = {TODO: "- [x] one\n<!-- HARD STOP -->\n- [ ] two\n"}
ENDS: list[tuple[list[Play | str], dict[str, Any], End, str]] = [
    ([Play(writes={"a": "1"})], {"check": lambda _: True}, End.COMPLETE, "complete"),
    ([DONE], {}, End.UNVERIFIED, "complete"),
    (["BLOCKED: which key?"], {}, End.BLOCKED, "blocked"),
    (["working"], {"limits": Limits(rounds=1)}, End.LIMIT, "limit"),
    ([Play(outcome=Outcome.AUTH)], {}, End.FAILED, "failed"),
    ([], {"tasks": TODO, "files": LISTED, "checkpoint": Checkpoint()}, End.CHECKPOINT, "checkpoint"),
]


@pytest.mark.parametrize(("plays", "settings", "end", "event"), ENDS, ids=[row[2].value for row in ENDS])
def test_every_end_that_a_person_wants_to_know_of_is_told(
    plays: list[Play | str], settings: dict[str, Any], end: End, event: str
) -> None:
    night, receiver = a_night(*plays, **settings) if plays else a_night(**settings)
    stopped = night.run()
    [notice] = receiver.got
    assert (stopped.end, notice.event, notice.status, notice.reason) == (end, event, end.value, stopped.reason)
    assert (notice.loop, notice.workspace, notice.rounds) == ("night", "/w", night.state.rounds)
    assert receiver.was_on_disk == [True]


def test_the_result_at_each_address_is_recorded_without_the_address() -> None:
    """FAULTS 105: the loop has ended as it was decided, whatever a receiver does."""
    night, _ = a_night(DONE)
    assert night.run().end is End.UNVERIFIED
    assert [(each.to, each.sent, each.detail) for each in night.facts(NoticeEnded)] == [
        ("https://example.org", True, "HTTP 204"),
        ("ntfy://…", False, "HTTP 503"),
    ]
    assert night.state.stopped
    assert night.state.stopped.end is End.UNVERIFIED
    assert not any("1234" in str(fact) or "topic" in str(fact) for fact in night.facts())


@pytest.mark.parametrize("wanted", [AskPause(id="r", run="", by="ada"), AskStop(id="r", run="", by="ada")])
def test_who_paused_or_stopped_a_loop_gets_no_notice(wanted: AskPause | AskStop) -> None:
    night, receiver = a_night(Play(meanwhile=lambda: night.ask(wanted)))
    assert night.run().end in (End.PAUSED, End.STOPPED)
    assert receiver.got == []


def test_whoever_is_in_a_hurry_does_not_wait_for_a_notice() -> None:
    night, receiver = a_night(limits=Limits(rounds=1))
    receiver.meanwhile = lambda: night.ask(AskStop(id="r", run="", by="ada"))
    assert night.run().end is End.LIMIT
    assert night.facts(NoticeEnded)[-1].detail == "stopped on request"
    assert night.channel.done_with == []  # left to whoever asked


def test_a_note_that_comes_meanwhile_is_for_the_next_run() -> None:
    night, receiver = a_night(limits=Limits(rounds=1))
    receiver.meanwhile = lambda: night.ask(AskNote(id="n", run="", by="ada", text="use tabs"))
    assert night.run().end is End.LIMIT
    assert [note.text for note in night.state.notes] == ["use tabs"]
    assert night.facts(NoticeEnded)[-1].detail == "HTTP 503"


def test_a_full_disk_is_told_although_the_result_cannot_be_recorded() -> None:
    night, receiver = a_night(DONE, hooks=Hooks(pre_round="true"))
    night.ledger.fills_up_with = HookEnded
    assert night.run().end is End.BLOCKED
    assert [notice.reason for notice in receiver.got] == [night.facts(Obstructed)[0].detail]
    assert night.facts(NoticeEnded) == []


def test_each_run_that_ends_is_told_anew() -> None:
    night, receiver = a_night("working", "working", limits=Limits(rounds=1))
    night.run()
    night.run()
    assert [notice.event for notice in receiver.got] == ["limit", "limit"]


def test_a_dialect_says_itself_what_each_address_gets_and_whether() -> None:
    night, receiver = a_night(DONE)
    night.messages = lambda *_: ("", '{"text":"done"}')
    orders: list[Order] = []

    def send(order: Order, _: Callable[[], bool]) -> list[Sent]:
        orders.append(order)
        return [Sent(address=0, sent=True, detail="HTTP 204", tries=1)]

    night.send = send
    night.run()
    [order] = orders
    assert (order.addresses, order.texts) == (AWAY[1:], ('{"text":"done"}',))
    [told] = night.facts(NoticeEnded)
    assert (told.to, told.event, told.sent) == ("ntfy://…", "complete", True)
    assert receiver.got == []


def test_a_dialect_can_tell_of_an_end_that_bydawn_would_not_tell() -> None:
    night, receiver = a_night(Play(meanwhile=lambda: night.ask(AskStop(id="r", run="", by="ada"))))
    night.messages = lambda *_: ("{}", "{}")
    assert night.run().end is End.STOPPED
    assert [notice.event for notice in receiver.got] == ["stopped"]


def test_if_a_dialect_has_nothing_to_say_nothing_is_started_and_nothing_recorded() -> None:
    night, receiver = a_night(DONE)
    night.messages = lambda *_: ("", "")
    assert night.run().end is End.UNVERIFIED
    assert (receiver.got, night.facts(NoticeEnded)) == ([], [])


def test_a_dialect_gets_no_secret_to_tell() -> None:
    """It may cut or escape what it is given, and nothing would be recognized after that."""
    night, _ = a_night()
    night.obstacle = ("workspace", "the folder /hunter2-hunter2 was\x1b[1m removed")
    dialect = SpokenDialect(name="none", words={"session": "hunter2-hunter2"})
    night.loop = replace(night.loop, workspace="/hunter2-hunter2", agent_env=("A=hunter2-hunter2",), dialect=dialect)
    night.hide = lambda text: text.replace("hunter2-hunter2", "[secret]")
    given: list[Any] = []

    def messages(*all_: Any) -> None:
        given.extend(all_)

    night.messages = messages
    night.run()
    loop, _, stopped, _ = given
    assert loop.notify == AWAY
    assert loop.dialect.words == {"session": "[secret]"}
    assert "hunter2" not in f"{loop} {stopped}"
    assert stopped.reason == "the folder /[secret] was removed"


def test_the_words_for_a_service_say_how_it_ended_and_how_far_it_got() -> None:
    night, receiver = a_night(limits=Limits(rounds=1), tasks=TODO, files={TODO: "- [x] one\n- [ ] two\n"})
    night.run()
    [notice] = receiver.got
    assert notice.title == "night has reached a limit"
    assert notice.body.splitlines()[1:] == ["1 of 2 tasks, 1 round, 1 m 00", "/w"]
