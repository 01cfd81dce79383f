"""What is still running of loops that have crashed: if both of our processes are killed at once, an agent lives on."""

from collections.abc import Iterable

from msgspec.structs import replace

from bydawn.core.text import plain, shorten
from bydawn.core.values import Status
from bydawn.store.registry import Left, Standing

_LONGEST = 200  # characters of a command line
_NAMED = 3


def with_leftovers(found: Iterable[Standing]) -> list[Standing]:
    """The loops, those that have crashed with what is left of them. One look at all processes is enough for all."""
    standings = [*found]
    crashed = [each for each in standings if each.status == Status.CRASHED]
    if not crashed:
        return standings
    from bydawn.store.lock import trace_of  # most loops have not
    from bydawn.system import kernel

    traced = [(each, trace) for each in crashed if (trace := trace_of(each.folder, each.loop.uid))]
    pids = kernel.left_of([trace for _, trace in traced]) if traced else []
    left = {each.folder.path: _named(mine) for (each, _), mine in zip(traced, pids, strict=True) if mine}
    return [replace(each, left=left[each.folder.path]) if each.folder.path in left else each for each in standings]


def _named(pids: list[int]) -> tuple[Left, ...]:
    from bydawn.operations.settings import secrets
    from bydawn.system import kernel

    hide = secrets().hide  # before anything is cut: half a secret would not be recognized
    return tuple(Left(pid=pid, command=shorten(hide(plain(kernel.command_of(pid))), _LONGEST)) for pid in sorted(pids))


def left_words(left: tuple[Left, ...]) -> str:
    """`still running: codex exec (pid 4711)`"""
    names = [f"{shorten(each.command, 60)} (pid {each.pid})" for each in left[:_NAMED]]
    more = [f"{len(left) - _NAMED} more"] if len(left) > _NAMED else []
    return f"still running: {', '.join([*names, *more])}"
