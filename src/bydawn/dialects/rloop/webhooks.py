"""What a webhook gets when a session ends: in Discord's shape, in Slack's, or as plain JSON for any other program."""

import re
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit

import msgspec

from bydawn.core.facts import LoopStopped
from bydawn.core.history import counted
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import duration, shorten
from bydawn.core.values import FINISHED, End
from bydawn.dialects.rloop import texts
from bydawn.dialects.rloop.files import cap, why, words

_DISCORD = ("discord.com", "canary.discord.com", "ptb.discord.com", "discordapp.com")
_SLACK = ("hooks.slack.com", "hooks.slack-gov.com")
# Characters. Discord refuses a title above 256, a field above 1024 and a description above 4096; escaped, or counted
# as UTF-16, a text can be twice as long. Slack folds a text of 700 and more.
_NAME, _FIELD, _TEXT = 100, 400, 600
_MARKDOWN = re.compile(r"[\\*_~`|<>\[\]#]")


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What any other program gets; chats show the same to people."""

    event: str  # complete, failed
    status: str  # success, failure
    session: str
    project: str  # its folder
    iterations: int  # as in the table: one that was cut short is the last
    max_iterations: int
    remaining_tasks: int | None  # None: the task file was never read
    reason: str | None  # max_iterations, error, blocked, limit; None if it is complete
    duration: float  # seconds of work, for programs; `message` is for people
    timestamp: datetime
    message: str


def messages(loop: Loop, state: LoopState, stopped: LoopStopped, at: datetime) -> tuple[str, ...]:
    """One for each address. A person who stopped the session knows it; after a shutdown `resume` goes on."""
    kept = words(loop)
    if stopped.end in (End.STOPPED, End.PAUSED) or (stopped.end in FINISHED and kept["on_complete"] == "no"):
        return ("",) * len(loop.notify)
    message = _message(loop, state, stopped, at, kept["session"])
    return tuple(msgspec.json.encode(_shape(address)(message)).decode() for address in loop.notify)


def _message(loop: Loop, state: LoopState, stopped: LoopStopped, at: datetime, session: str) -> Message:
    reason, most = why(stopped) or None, cap(loop, state)
    cause = f"hit max iterations ({most})" if reason == "max_iterations" else texts.reason(stopped)
    done = counted(state)
    count = f"{done} iteration{'' if done == 1 else 's'}"
    return Message(
        event="failed" if reason else "complete",
        status="failure" if reason else "success",
        session=session,
        project=loop.workspace,
        iterations=done,
        max_iterations=most,
        remaining_tasks=state.tasks.open if state.tasks else None,
        reason=reason,
        duration=round(state.elapsed, 1),
        timestamp=at.replace(microsecond=0),
        message=f"{session} needs you: {cause}" if reason else f"{session} is complete after {count}",
    )


def _shape(address: str) -> Callable[[Message], object]:
    parts = urlsplit(address)
    if parts.hostname in _DISCORD and re.match("/api/(v[0-9]+/)?webhooks(/|$)", parts.path):
        return _discord
    return _slack if parts.hostname in _SLACK else lambda message: message


def _discord(message: Message) -> object:
    title, text, fields = _for_people(message, lambda words: _MARKDOWN.sub(r"\\\g<0>", words))
    return {
        "allowed_mentions": {"parse": []},  # no one, whatever an agent or a folder's name says
        "embeds": [
            {
                "title": title,
                "description": text,
                "color": 0xE74C3C if message.reason else 0x2ECC71,
                "fields": [{"name": name, "value": fields[name], "inline": name != "Project"} for name in fields],
                "timestamp": message.timestamp,
            }
        ],
    }


def _slack(message: Message) -> object:
    # These three are all that Slack wants escaped: `<!channel>` would reach everyone.
    title, text, fields = _for_people(
        message, lambda words: words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    return {
        "attachments": [
            {
                "fallback": text,
                "title": title,
                "text": text,
                "color": "danger" if message.reason else "good",
                "fields": [{"title": name, "value": fields[name], "short": name != "Project"} for name in fields],
                "mrkdwn_in": [],  # no markup
                "ts": int(message.timestamp.timestamp()),
            }
        ]
    }


def _for_people(message: Message, escape: Callable[[str], str]) -> tuple[str, str, dict[str, str]]:
    """Title, text and fields; words that are not ours are cut, and only then escaped."""
    sign, left = "⚠️" if message.reason else "✅", message.remaining_tasks
    fields = {
        "Project": escape(shorten(message.project, _FIELD)),
        "Iterations": f"{message.iterations}/{message.max_iterations}",
        "Duration": duration(message.duration),
    }
    if message.reason:
        fields |= {"Reason": message.reason, "Remaining Tasks": "unknown" if left is None else str(left)}
    title = f"{sign} {escape(shorten(message.session, _NAME))} {message.event}"
    return title, escape(shorten(message.message, _TEXT)), fields
