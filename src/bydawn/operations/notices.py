"""Try where notices go, before a loop relies on it."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.core.facts import NoticeEnded
from bydawn.core.notices import Notice, Order, ended
from bydawn.core.redact import for_children
from bydawn.core.secret_settings import SecretSettings
from bydawn.core.text import plain
from bydawn.operations.settings import secrets
from bydawn.process.notices import send
from bydawn.settings.table import TABLE


def refuse_unknown(addresses: tuple[str, ...]) -> None:
    """A notice that can never be sent would be missed in the morning."""
    for each in _answers(Order(notice=None, addresses=addresses)):
        if not each.sent:
            raise UserError(
                f"--notify {each.to}: no service has such an address",
                cause=each.detail,
                hint="`bydawn notify test URL` tries one; any https:// address works, and gets JSON",
            )


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
    env = for_children(os.environ, [row.variable for row in TABLE if row.secret])
    return ended(order, send(order, env), hide)
