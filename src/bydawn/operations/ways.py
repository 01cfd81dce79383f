"""What a person can do about a loop on a page: the commands of its next steps, so that terminal and page agree."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from bydawn.core import kinds
from bydawn.core.breakers import Limits, limits_of
from bydawn.core.text import duration
from bydawn.core.values import Next, Status
from bydawn.operations.amounts import plural, short_count
from bydawn.operations.next_steps import next_steps
from bydawn.operations.tasks import of_loop
from bydawn.store.registry import Standing

_RAISED = ("rounds", "for", "until", "budget")  # flags of `resume` that a form has too
_VALUED = ("-C", "--round", "--tail", *(f"--{flag}" for flag in _RAISED))  # flags that are followed by a value
_HARMLESS = ("-C", "-d", "--detach", "-f")  # flags that mean nothing on a page
_LINKS = ("round", "log", "why", "copy")  # these only show something
Args = dict[str, str | int | list[str]]


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One of them: a form, a link, or a command to copy."""

    verb: str  # tell, resume, approve, accept, raise, skip, reopen, pause, stop; round, log, why; copy
    text: str  # of its button
    why: str  # what it is good for, as the terminal says it
    args: Args = {}
    command: str
    main: bool = False  # what helps most


class _Words(msgspec.Struct, frozen=True, kw_only=True):
    """A command of ours, taken apart."""

    verb: str  # `tasks skip` is one
    names: list[str]  # what follows the loop's name
    flags: dict[str, str]


def ways(standing: Standing) -> tuple[Way, ...]:
    """Everything that helps in the loop's current state, the most useful first."""
    steps = next_steps(standing)
    goes_on = not standing.alive and any(_is_plain_resume(step) for step in steps)
    found = [way for step in steps for way in _from(step, standing, goes_on=goes_on)]
    best = next((place for place, way in enumerate(found) if _helps(way, standing)), None)
    return tuple(msgspec.structs.replace(way, main=place == best) for place, way in enumerate(found))


def _helps(way: Way, standing: Standing) -> bool:
    """Does it get the loop to go on? A loop that runs needs nothing, unless it has a question."""
    if way.verb in ("pause", "stop"):
        return way.verb == "stop" and bool(standing.left)
    return way.verb not in _LINKS


def _is_plain_resume(step: Next) -> bool:
    words = _parsed(step.command)
    return words is not None and words.verb == "resume" and not words.flags


def _parsed(command: str) -> _Words | None:
    """None if it is not a command of ours that starts with a verb and the name of a loop."""
    try:
        program, *rest = shlex.split(command)
    except ValueError:
        return None
    if program != "bydawn" or len(rest) < 2:
        return None
    verb, rest = (f"{rest[0]} {rest[1]}", rest[2:]) if rest[0] == "tasks" else (rest[0], rest[1:])
    names, flags = _sorted(rest)
    return _Words(verb=verb, names=names[1:], flags=flags) if names else None


def _sorted(rest: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    names, flags, words = list[str](), dict[str, str](), iter(rest)
    for word in words:
        if not word.startswith("-"):
            names.append(word)
            continue
        value = next(words, "") if word in _VALUED else ""
        if word not in _HARMLESS:
            flag = word.lstrip("-")
            flags[f"{flag} again" if flag in flags else flag] = value  # which no form has
    return names, flags


def _from(step: Next, standing: Standing, *, goes_on: bool) -> Iterator[Way]:
    """What a step is on a page; nothing if it only shows the page itself."""
    words = _parsed(step.command)
    why = re.sub(r"^(or|then) ", "", step.why)

    def way(verb: str, text: str, **args: str | int | list[str]) -> Way:
        return Way(verb=verb, text=text, why=why, args=args, command=step.command)

    copied = way("copy", "Copy")
    if words is None:
        yield copied
        return
    flags, then = words.flags, {"resume": "1"} if goes_on else {}
    match words.verb:
        case "tell":
            yield way("tell", "Send and resume" if goes_on else "Send", **then)
        case "resume":
            yield _resumed(standing, flags, way) or copied
        case "tasks skip" if words.names:
            ids = [_id_of(name, standing) for name in words.names]
            yield way("skip", "Skip and resume" if goes_on else "Skip", task=ids[0] if len(ids) == 1 else ids, **then)
        case "tasks reopen":
            yield from (way("reopen", f"Reopen task {name}", task=_id_of(name, standing)) for name in words.names)
        case "pause":
            yield way("pause", "Pause after this round")
        case "stop":
            yield way("stop", "Stop…")
        case "show" if "round" in flags:
            yield way("round", f"Open round {flags['round']}", round=int(flags["round"]))
        case "show" if standing.status is Status.CHECKPOINT and standing.state.round:
            yield way("round", f"Open round {standing.state.round}", round=standing.state.round)
        case "show":
            return
        case "logs" if "round" in flags:
            yield way("log", f"Log of round {flags['round']}", round=int(flags["round"]))
        case "logs":
            yield way("log", "Watch the log")
        case "why":
            yield way("why", "Why it decided so")
        case _:
            yield copied


def _id_of(number: str, standing: Standing) -> str:
    """A form means the same task even if it has another number by the time it is sent."""
    return next((task.id for task in of_loop(standing).standings.tasks if str(task.number) == number), number)


class _Make(Protocol):
    def __call__(self, verb: str, text: str, **args: str | int | list[str]) -> Way: ...


def _resumed(standing: Standing, flags: dict[str, str], way: _Make) -> Way | None:
    """None if it has a flag that no form has."""
    if not flags:
        stopped = standing.state.stopped
        return way("resume", "Begin" if stopped and stopped.is_preparation else "Resume")
    if [*flags] == ["approve"]:
        return way("approve", "Approve and go on")
    if [*flags] == ["accept"]:
        return way("accept", "Accept…")
    if any(flag not in _RAISED for flag in flags):
        return None
    limits = limits_of(standing.loop, standing.state)
    until = f"go on until {flags['until']}" if "until" in flags else "go on"
    new = " and ".join(_raised(flag, value, limits) for flag, value in flags.items() if flag != "until")
    return way("raise", f"Raise to {new} and {until}" if new else until.capitalize(), **flags)


def _raised(flag: str, value: str, limits: Limits) -> str:
    """`$10.00`: a limit as it will be; `value` may be what is added to it."""
    adds, amount = value.startswith("+"), value.removeprefix("+")
    if flag == "rounds":
        return plural(int(amount) + (limits.rounds if adds else 0), "round")
    if flag == "for":
        return duration(kinds.span(amount) + ((limits.seconds or 0) if adds else 0))
    unit, number = kinds.budget(amount)
    if unit == "usd":
        return f"${number + ((limits.usd or 0) if adds else 0):.2f}"
    return f"{short_count(int(number + ((limits.tokens or 0) if adds else 0)))} tokens"
