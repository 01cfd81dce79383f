"""What a person is told from afar: which ends of a loop are worth a notice, and what it says."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from bydawn.core.facts import LoopStopped, NoticeEnded
from bydawn.core.loop import Loop
from bydawn.core.proof import summary
from bydawn.core.redact import rewritten
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import FINISHED, End, Status

# The kind of notice for each end; a person who paused or stopped a loop knows it.
EVENTS: dict[End, str] = {
    End.COMPLETE: "complete",
    End.UNVERIFIED: "complete",
    End.BLOCKED: "blocked",
    End.CHECKPOINT: "checkpoint",
    End.LIMIT: "limit",
    End.FAILED: "failed",
}
Messages = Callable[[Loop, LoopState, LoopStopped, datetime], tuple[str, ...] | None]  # see `Dialect.messages`
_PLAIN = ("http", "https")
_DETAIL = 400  # characters


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What a plain web address gets as JSON; a service gets the same in words."""

    event: str
    loop: str
    workspace: str
    status: str
    reason: str
    rounds: int = 0
    tasks_done: int | None = None
    tasks_total: int | None = None
    seconds: float = 0.0
    at: datetime

    @property
    def title(self) -> str:
        return f"{self.loop} {Status(self.status).words}" if self.status in {*Status} else self.loop

    @property
    def body(self) -> str:
        tasks = f"{self.tasks_done} of {self.tasks_total} tasks, " if self.tasks_total else ""
        rounds = f"{self.rounds} round{'s' if self.rounds != 1 else ''}"
        return f"{self.reason}\n{tasks}{rounds}, {duration(self.seconds)}\n{self.workspace}"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the program that sends notices gets on its standard input."""

    notice: Notice | None  # None: only say whether each address is one that a notice could be sent to
    addresses: tuple[str, ...]
    texts: tuple[str, ...] = ()  # what a dialect has each web address get instead; other services get the notice
    tries: int = 3
    pause: float = 1.0  # seconds before the second try, at least; twice that before the third
    connect: float = 5.0  # seconds
    answer: float = 10.0


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What it prints for each address when that is done."""

    address: int  # its place in the order
    sent: bool
    detail: str
    tries: int = 0


def of_end(
    loop: Loop,
    state: LoopState,
    stopped: LoopStopped,
    at: datetime,
    messages: Messages | None,
    hide: Callable[[str], str],
) -> Order | None:
    """What to send when a run has ended, without secrets; None if no one needs it."""

    def clean(text: str) -> str:
        return hide(plain(text))

    loop, stopped = for_others(loop, clean), rewritten(stopped, clean)
    texts = messages(loop, state, stopped, at) if messages else None
    return order_of(about(loop, state, stopped, at), loop.notify, texts)


def order_of(notice: Notice, addresses: tuple[str, ...], texts: tuple[str, ...] | None) -> Order | None:
    """What to send, and where; None if no one needs it. A dialect's `texts` decide that for each address."""
    if texts is None:
        return Order(notice=notice, addresses=addresses) if notice.event in EVENTS.values() else None
    wanted = tuple(address for address, text in zip(addresses, texts, strict=True) if text)
    return Order(notice=notice, addresses=wanted, texts=tuple(filter(None, texts))) if wanted else None


def for_others(loop: Loop, clean: Callable[[str], str]) -> Loop:
    """The loop for a text that leaves this machine: all but its addresses is cleaned, before it is cut or escaped."""
    spoken = loop.dialect and msgspec.structs.replace(
        loop.dialect, words={name: clean(word) for name, word in loop.dialect.words.items()}
    )
    return msgspec.structs.replace(rewritten(loop, clean), dialect=spoken, notify=loop.notify)


def about(loop: Loop, state: LoopState, stopped: LoopStopped, at: datetime) -> Notice:
    """The notice of how a run of a loop ended."""
    proof = summary(state.proofs) if stopped.end in FINISHED else ""
    return Notice(
        event=EVENTS.get(stopped.end, stopped.end.value),
        loop=loop.id,
        workspace=plain(loop.workspace),
        status=stopped.end.value,
        reason=plain(f"{stopped.reason}; {proof}" if proof else stopped.reason),
        rounds=state.rounds,
        tasks_done=state.tasks.done if state.tasks else None,
        tasks_total=state.tasks.total if state.tasks else None,
        seconds=round(state.elapsed, 1),
        at=at,
    )


def ended(order: Order, answers: Sequence[Sent], hide: Callable[[str], str]) -> list[NoticeEnded]:
    """What became of a notice, without the addresses."""
    event = order.notice.event if order.notice else ""
    return [
        NoticeEnded(
            to=place_of(address),
            event=event,
            sent=each.sent,
            detail=shorten(hide(plain(each.detail)), _DETAIL),
            tries=each.tries,
        )
        for address, each in zip(order.addresses, answers, strict=True)
    ]


def is_plain(address: str) -> bool:
    """Is it a web address? That may still be a service's own."""
    return address.partition("://")[0].lower() in _PLAIN


def place_of(address: str) -> str:
    """As much of an address as anyone may see.

    >>> place_of("https://ada:pw@example.org:8080/hooks/123"), place_of("discord://123/abc")
    ('https://example.org:8080', 'discord://…')
    """
    from urllib.parse import urlsplit  # few loops send notices

    scheme = address.partition("://")[0].lower()
    return f"{scheme}://{urlsplit(address).netloc.rpartition('@')[2] if is_plain(address) else '…'}"
