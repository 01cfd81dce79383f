"""How a project stands: from its ledger and its lock, never from the file that shows it."""

from pathlib import Path
from typing import TypeVar

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.history import History
from bydawn.core.redact import Secrets, rewritten
from bydawn.core.text import plain
from bydawn.dialects.codex_loop import document
from bydawn.dialects.codex_loop.config import CONFIG, NAME, STATE
from bydawn.dialects.codex_loop.document import Document
from bydawn.dialects.follower import digest_at
from bydawn.dialects.written import Written
from bydawn.operations import settings
from bydawn.operations.dialects.codex_loop import project
from bydawn.store.ledger import records
from bydawn.store.registry import Standing
from bydawn.system.reading import read_inside

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
    found = _written(root, standing)
    if found is None:
        found = document.document_of(standing.loop, standing.state, History(records(standing.folder)))
    return Looked(root=root, document=document.with_liveness(found, alive=standing.alive), standing=standing)


def _written(root: Path, standing: Standing) -> Document | None:
    """What the file says, if it is as we wrote it and nothing has happened since: a long history need not be read."""
    if not Written(standing.folder.path).recognizes(STATE, digest_at(root, STATE)):
        return None
    found = document.decoded(_bytes(root))
    is_new = found and (found.bydawn.uid, found.bydawn.seq) == (standing.loop.uid, standing.state.seq)
    return found if is_new else None


def _bytes(root: Path) -> bytes:
    try:
        return read_inside(root, STATE) or b""
    except UserError:
        return b""
