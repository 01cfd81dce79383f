"""waylon-smithers: one Codex session, resumed until it gives its promise."""

from collections.abc import Iterator

from bydawn.core import history
from bydawn.core.facts import LoopStopped
from bydawn.core.loop import Loop
from bydawn.core.values import EXIT_CODES
from bydawn.dialects.seam import View
from bydawn.dialects.waylon_smithers import files as written
from bydawn.dialects.waylon_smithers import texts
from bydawn.dialects.waylon_smithers.arguments import NAME


class WaylonSmithers:
    """How it speaks and what it writes, from its modules."""

    name = NAME
    unit = "iteration"
    needs_history = True
    hook_words = None
    counted = staticmethod(history.counted)
    word = staticmethod(written.status_of)
    reason = staticmethod(texts.reason)
    next_steps = staticmethod(texts.next_steps)
    files = staticmethod(written.files)
    is_line = staticmethod(written.is_event)
    views = staticmethod(written.views)

    def heard(self, *_: object) -> Iterator[View]:
        return iter(())

    def closing(self, *_: object) -> tuple[str, ...]:
        return ()

    def exit_code(self, stopped: LoopStopped) -> int:
        return EXIT_CODES[stopped.end]

    def messages(self, *_: object) -> None:
        return None

    def go_on(self, loop: Loop) -> list[str]:
        return ["resume", "--loop-id", loop.id, "--cd", loop.workspace]


DIALECT = WaylonSmithers()
