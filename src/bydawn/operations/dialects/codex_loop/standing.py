"""How a project stands: from its ledger and its lock, never from the file that shows it."""

from pathlib import Path
from typing import TypeVar

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.history import History
from bydawn.core.redact import Secrets, rewritten
from bydawn.core.text import plain
from bydawn.dialects.codex_loop import document
from bydawn.dialects.codex_loop.config import CONFIG, NAME
from bydawn.dialects.codex_loop.document import Document
from bydawn.operations import settings
from bydawn.operations.dialects.codex_loop import project
from bydawn.store.ledger import records
from bydawn.store.registry import Standing

T = TypeVar("T")


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A project as it is now."""

    root: Path
    document: Document
    standing: Standing

    @property
    def secrets(self) -> Secrets:
        return settings.secrets().knowing(self.standing.folder.secret_texts())

    def for_others(self, value: T) -> T:
        """Without secrets, and without what could steer a terminal."""
        hide = self.secrets.hide
        return rewritten(value, lambda text: hide(plain(text)))


def now(root: Path) -> Document:
    """The state as it is now."""
    return look(root).document


def look(root: Path) -> Looked:
    standing = project.standing_of(root)
    if standing is None:
        hint = f"`{NAME} run` begins" if (root / CONFIG).exists() else f'`{NAME} init --prompt "…"` sets it up'
        raise UserError("nothing has run here yet", cause=f"{root} has no loop of {NAME}", hint=hint)
    if standing.trouble:
        raise standing.trouble
    found = document.document_of(standing.loop, standing.state, History(records(standing.folder)))
    return Looked(root=root, document=document.with_liveness(found, alive=standing.alive), standing=standing)
