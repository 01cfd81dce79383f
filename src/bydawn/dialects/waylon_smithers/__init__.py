"""waylon-smithers: one Codex session, resumed until it gives its promise."""

from collections.abc import Iterator

from bydawn.core.facts import EXIT_CODES, AnyFact, LoopStopped
from bydawn.core.history import History, counted
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.dialects.seam import Files, View
from bydawn.dialects.waylon_smithers import arguments, files, texts


class WaylonSmithers:
    """How it speaks and what it writes, from its modules."""

    name = arguments.NAME
    unit = "iteration"

    def counted(self, state: LoopState) -> int:
        return counted(state)

    def word(self, stopped: LoopStopped) -> str:
        return files.status_of(stopped)

    def reason(self, stopped: LoopStopped) -> str:
        return texts.reason(stopped)

    def exit_code(self, stopped: LoopStopped) -> int:
        return EXIT_CODES[stopped.end]

    def next_steps(self, loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[tuple[str, str]]:
        return texts.next_steps(loop, state, stopped, folder)

    def go_on(self, loop: Loop) -> list[str]:
        return ["resume", "--loop-id", loop.id, "--cd", loop.workspace]

    def files(self, loop: Loop) -> Files:
        return files.files(loop)

    def is_line(self, line: bytes) -> bool:
        return files.is_event(line)

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:
        return files.views(fact, loop, state, history)


DIALECT = WaylonSmithers()
