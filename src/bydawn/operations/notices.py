"""Try where notices go, before a loop relies on it; and tell of an end that no worker is left to tell of."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bydawn import dialects
from bydawn.core.errors import UserError
from bydawn.core.facts import NoticeEnded
from bydawn.core.notices import Notice, Order, ended, of_end
from bydawn.core.redact import for_children
from bydawn.core.secret_settings import SecretSettings
from bydawn.core.text import plain
from bydawn.core.values import Act, Advice
from bydawn.operations.preconditions import take_lock
from bydawn.operations.settings import secrets
from bydawn.process.notices import send
from bydawn.settings.table import TABLE
from bydawn.store.ledger import LoopLedger
from bydawn.store.registry import Standing


def refuse_unknown(addresses: tuple[str, ...]) -> None:
    """A notice that can never be sent would be missed in the morning."""
    for each in _answers(Order(notice=None, addresses=addresses)):
        if not each.sent:
            raise UserError(
                f"--notify {each.to}: no service has such an address",
                cause=each.detail,
                hint=Advice(Act("notify test", "URL"), " tries one; any https:// address works, and gets JSON"),
            )


def tell_of_end(standing: Standing) -> None:
    """Send the notice of how a loop has ended, and write down what became of it; nothing of the loop runs."""
    loop, state = standing.folder.with_secrets(standing.loop), standing.state
    if state.stopped is None or not loop.notify:
        return
    dialect, hide = dialects.of_loop(loop), secrets().knowing(standing.folder.secret_texts()).hide
    messages = dialect.messages if dialect else None
    order = of_end(loop, state, state.stopped, datetime.now(UTC), messages, hide)
    if order is None:
        return
    told = ended(order, send(order, _env()), hide)
    held = take_lock(standing.folder, loop)
    ledger = LoopLedger(standing.folder, lambda _: None, hide)
    try:
        for fact in told:
            ledger.append(fact)
        ledger.sync()
        ledger.snapshot()
    finally:
        ledger.close()
        held.release()


def try_out(addresses: Sequence[str], workspace: Path) -> list[NoticeEnded]:
    """Send a test notice to each address."""
    notice = Notice(
        event="test",
        loop="bydawn",
        workspace=plain(str(workspace)),
        status="test",
        reason="This is a test: notices reach you here.",
        at=datetime.now(UTC),
    )
    return _answers(Order(notice=notice, addresses=tuple(addresses), tries=1))


def _answers(order: Order) -> list[NoticeEnded]:
    hide = secrets().knowing(SecretSettings(notify=order.addresses).texts).hide
    return ended(order, send(order, _env()), hide)


def _env() -> dict[str, str]:
    return for_children(os.environ, [row.variable for row in TABLE if row.secret])
