"""waylon-smithers: one Codex session, resumed until it gives its promise."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from bydawn.core.breakers import Limits
from bydawn.core.facts import AnyFact, LoopStopped
from bydawn.core.history import Attempt, History
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.values import EXIT_CODES
from bydawn.dialects.seam import Adopted, Append, Command, Copy, Helper, Place, Request, Resume, View
from bydawn.dialects.waylon import adoption, arguments, files, texts


class Waylon:
    """The whole of it, from its modules."""

    name = arguments.NAME
    unit = "iteration"
    commands: tuple[Command, ...] = arguments.COMMANDS
    helpers: tuple[Helper, ...] = texts.HELPERS
    shared: tuple[str, ...] = (files.IGNORE,)

    def read_args(self, command: str, values: Mapping[str, Any], place: Place) -> Request:
        return arguments.read(command, values, place)

    def files(self, loop: Loop) -> tuple[str, ...]:
        return files.ours(loop)

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterable[View]:
        return files.views(fact, loop, state, history)

    def written(self, loop: Loop, state: LoopState) -> tuple[str, ...]:
        return files.written(loop, state)

    def growing(self, loop: Loop) -> tuple[str, ...]:
        events = files.Paths(loop).events
        return (events,) if events and not events.endswith("/") else ()

    def is_line(self, line: bytes) -> bool:
        return files.is_event(line)

    def copies(self, attempt: Attempt, loop: Loop) -> Iterable[Copy | Append]:
        return files.copies(attempt, loop)

    def told(self, loop: Loop) -> tuple[str, ...]:
        return files.Paths(loop).summary, files.Paths(loop).state

    def state(self, loop: Loop, state: LoopState) -> dict[str, Any]:
        return files.state_of(loop, state)

    def state_path(self, loop: Loop) -> str:
        return files.Paths(loop).state

    def adopt(self, text: str, request: Resume, place: Place) -> Adopted:
        return adoption.adopt(text, request, place)

    def original_path(self, name: str) -> str:
        return files.default_state(name)

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

    def raised(self, limits: Limits, request: Resume) -> Limits:
        return replace(limits, rounds=request.rounds) if request.rounds is not None else limits


DIALECT = Waylon()
