"""What a webhook of rloop gets: one message for each shape and event, by golden files in `webhooks/` (R-052)."""

import html
import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bydawn.core.facts import LoopStopped
from bydawn.core.loop import Loop, SpokenDialect
from bydawn.core.notices import about, for_others, order_of
from bydawn.core.outcome import Outcome
from bydawn.core.redact import Secrets
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.core.values import End
from bydawn.dialects.rloop.files import session
from bydawn.dialects.rloop.webhooks import messages
from core.facts_made import BORN, NOON, a_loop, a_round, after_all, decided, ended, run_started, started, todo
from dialects.rloop_made import LOOP

SHAPES = {
    "discord": "https://discord.com/api/webhooks/123/abc",
    "slack": "https://hooks.slack.com/services/T0/B0/abc",
    "generic": "https://hooks.example.com/notify",
}
GOLDEN = Path(__file__).parent / "webhooks"
NASTY = "@everyone <!channel> <@123> **now** [here](https://evil.example) & `rm`"


def a_session(*addresses: str, **words: str) -> Loop:
    named = SpokenDialect(name="rloop", words={"session": "my_app", "on_complete": "yes", **words})
    return a_loop(workspace="/home/ada/my_app", notify=addresses or (*SHAPES.values(),), dialect=named)


def an_end(
    end: End, rule: Rule = Rule.NO_PROGRESS, reason: str = "5 rounds in a row made no new change"
) -> LoopStopped:
    return LoopStopped(end=end, reason=reason, decided=decided(rule))


CAP = an_end(End.LIMIT, Rule.ROUNDS, "30 rounds")
DONE = an_end(End.COMPLETE, Rule.COMPLETE, "all tasks are done")


def told(stopped: LoopStopped, loop: Loop | None = None, open_: int | None = 4, at: datetime = NOON) -> list[Any]:
    tasks = None if open_ is None else todo(open_, 8)
    texts = messages(loop or a_session(), LoopState(rounds=5, elapsed=5210.44, tasks=tasks), stopped, at)
    return [json.loads(text) if text else None for text in texts]


@pytest.mark.parametrize("event", ["complete", "failed"])
def test_each_shape_of_each_event_is_as_its_golden_file_says(event: str) -> None:
    found = told(DONE, open_=0) if event == "complete" else told(CAP)
    for shape, body in zip(SHAPES, found, strict=True):
        assert body == json.loads((GOLDEN / f"{shape}-{event}.json").read_text()), shape


REASONS = [
    (CAP, "max_iterations"),
    (an_end(End.LIMIT, Rule.COST, "the dollar budget is used up"), "limit"),  # of the user's own settings
    (an_end(End.FAILED, Rule.AGENT_STOP, "claude is not logged in"), "error"),
    (an_end(End.BLOCKED), "blocked"),
    (an_end(End.CHECKPOINT, Rule.CHECKPOINT, "HARD STOP"), "blocked"),
]


@pytest.mark.parametrize(("stopped", "reason"), REASONS)
def test_every_end_that_needs_a_person_is_a_failure_with_a_reason(stopped: LoopStopped, reason: str) -> None:
    for body in told(stopped, a_session(SHAPES["generic"])):
        assert (body["event"], body["status"], body["reason"]) == ("failed", "failure", reason)
        cause = stopped.reason.replace("5 rounds in a row", "5 iterations in a row")  # its own word
        assert body["message"] == f"my_app needs you: {'hit max iterations (30)' if stopped is CAP else cause}"
    [discord] = told(stopped, a_session(SHAPES["discord"]))
    assert {"name": "Reason", "value": reason, "inline": True} in discord["embeds"][0]["fields"]


@pytest.mark.parametrize("by", ["SIGINT", "ada", "SIGTERM"])
def test_neither_a_person_who_stopped_a_session_nor_a_shutdown_is_told(by: str) -> None:
    for end in (End.STOPPED, End.PAUSED):
        assert told(LoopStopped(end=end, reason="stopped", decided=decided(), by=by)) == [None] * 3


def test_a_completion_is_only_told_if_that_is_wanted_and_a_failure_always() -> None:
    silent = a_session(on_complete="no")
    for end in (End.COMPLETE, End.UNVERIFIED):
        assert told(an_end(end), silent) == [None] * 3
        assert told(an_end(end))[2]["event"] == "complete"
    assert None not in told(CAP, silent)


ADDRESSES = {
    "https://discord.com/api/webhooks/1/t?wait=true": "discord",
    "https://DISCORD.com:443/api/v10/webhooks/1/t": "discord",
    "https://discordapp.com/api/webhooks/1/t": "discord",
    "https://canary.discord.com/api/webhooks/1/t": "discord",
    "https://hooks.slack.com/services/T/B/x": "slack",
    "https://discord.com/developers": "generic",
    "https://discord.com.evil.example/api/webhooks/1/t": "generic",
    "https://example.org/discord.com/api/webhooks/1/t": "generic",
    "http://127.0.0.1:8080/hooks.slack.com": "generic",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_host_and_path_of_an_address_say_which_shape_it_gets(address: str) -> None:
    [body] = told(CAP, a_session(address))
    found = "discord" if "embeds" in body else "slack" if "attachments" in body else "generic"
    assert found == ADDRESSES[address]


def test_nothing_an_agent_or_a_folder_says_reaches_everyone_or_looks_like_ours() -> None:
    discord, slack, generic = told(an_end(End.BLOCKED, reason=NASTY), a_session(session=NASTY))
    assert discord["allowed_mentions"] == {"parse": []}
    [embed] = discord["embeds"]
    for text in (embed["title"], embed["description"]):
        assert r"\<!channel\>" in text
        assert r"\*\*now\*\* \[here\](https://evil.example) & \`rm\`" in text
    [attachment] = slack["attachments"]
    for text in (attachment["title"], attachment["text"], attachment["fallback"]):
        assert "&lt;!channel&gt; &lt;@123&gt; **now** [here](https://evil.example) &amp; `rm`" in text
    assert attachment["mrkdwn_in"] == []
    assert not {*"<>"} & {*json.dumps(slack)}
    assert generic["session"] == NASTY  # a program wants it as it is


@pytest.mark.parametrize("letter", ["x", "*", "<", "🐘", "a "])
def test_however_long_a_text_is_discord_and_slack_take_it(letter: str) -> None:
    """Discord: a title of 256, a description of 4096, a value of 1024, 6000 in all; how it counts is not known."""
    long = letter * 5000
    loop = a_session(session=long)
    discord, slack, _ = told(
        an_end(End.BLOCKED, reason=long), for_others(loop, lambda text: long if "/" in text else text)
    )
    [embed], [attachment] = discord["embeds"], slack["attachments"]
    sizes = {
        "title": [embed["title"]],
        "description": [embed["description"]],
        "value": [field["value"] for field in embed["fields"]],
        "name": [field["name"] for field in embed["fields"]],
    }
    counted = {key: [len(text.encode("utf-16-le")) // 2 for text in texts] for key, texts in sizes.items()}
    assert all(0 < size <= most for key, most in LIMITS.items() for size in counted[key]), counted
    assert sum(sum(each) for each in counted.values()) <= 6000
    assert len(html.unescape(attachment["text"])) < 700
    assert not re.search("&(?!lt;)", attachment["text"]), "cut in the middle of an escape"


LIMITS = {"title": 256, "description": 4096, "value": 1024, "name": 256}


def test_a_list_that_nobody_has_read_leaves_an_unknown_number() -> None:
    discord, _, generic = told(CAP, open_=None)
    assert discord["embeds"][0]["fields"][-1]["value"] == "unknown"
    assert generic["remaining_tasks"] is None


def test_an_iteration_that_was_cut_short_has_the_number_that_the_table_shows() -> None:
    state = after_all(BORN, run_started(), a_round(1), started(2), ended(2, Outcome.INTERRUPTED))
    [text] = messages(a_session(SHAPES["generic"]), state, CAP, NOON)
    assert json.loads(text)["iterations"] == session(LOOP, state)["iteration"] == 2


def test_times_are_utc_and_whole_seconds() -> None:
    discord, slack, generic = told(CAP, at=NOON + timedelta(seconds=1.25))
    assert discord["embeds"][0]["timestamp"] == generic["timestamp"] == "2026-01-06T12:00:01Z"
    assert slack["attachments"][0]["ts"] == NOON.timestamp() + 1


HIDDEN = ['p_a*s&s"w<o>r\\d', "a\nb-long-secret-of-two-lines", "ümläut_secret_value"]


@pytest.mark.parametrize("secret", HIDDEN)
def test_a_secret_is_hidden_before_it_is_cut_or_escaped_and_the_json_stays_valid(secret: str) -> None:
    """Escaped, or cut in two, it would no longer be recognized."""
    hide = Secrets({"MY_TOKEN": secret}).hide

    def clean(text: str) -> str:
        return hide(plain(text))

    loop = a_session(*SHAPES.values(), session=f"{'x' * 95}{secret}")
    stopped = an_end(End.BLOCKED, reason=f"{'y' * 490} \x1b[1m{secret}")
    stopped = LoopStopped(end=stopped.end, reason=clean(stopped.reason), decided=stopped.decided)
    for body in told(stopped, for_others(loop, clean)):
        text = json.dumps(body, ensure_ascii=False)
        assert not any(part in text for part in (secret[:6], secret[-6:])), text


def test_an_order_is_only_for_those_who_get_something() -> None:
    loop = a_session()
    notice = about(loop, LoopState(), CAP, NOON)
    assert order_of(notice, loop.notify, ("", "", "")) is None
    order = order_of(notice, loop.notify, ("", "{}", ""))
    assert order
    assert (order.addresses, order.texts) == ((SHAPES["slack"],), ("{}",))
