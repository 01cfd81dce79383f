"""waylon-smithers: one Codex session, resumed until it gives its promise."""

from bydawn.core import history
from bydawn.core.facts import LoopStopped
from bydawn.core.loop import Loop
from bydawn.core.values import EXIT_CODES
from bydawn.dialects.seam import Usual
from bydawn.dialects.waylon_smithers import files as written
from bydawn.dialects.waylon_smithers import texts
from bydawn.dialects.waylon_smithers.arguments import NAME


class WaylonSmithers(Usual):
    """How it speaks and what it writes, from its modules."""

    name = NAME
    unit = texts.UNIT
    own = staticmethod(texts.own)
    counted = staticmethod(history.counted)
    word = staticmethod(written.status_of)
    reason = staticmethod(texts.reason)
    next_steps = staticmethod(texts.next_steps)
    files = staticmethod(written.files)
    views = staticmethod(written.views)

    def exit_code(self, stopped: LoopStopped) -> int:
        return EXIT_CODES[stopped.end]

    def go_on(self, loop: Loop) -> list[str]:
        return ["resume", "--loop-id", loop.id, "--cd", loop.workspace]


DIALECT = WaylonSmithers()
