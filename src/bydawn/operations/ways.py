"""What a person can do about a loop on a page: the commands of its next steps, so that terminal and page agree."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bydawn.core import kinds
from bydawn.core.breakers import Limits, limits_of
from bydawn.core.text import duration
from bydawn.core.values import OURS, Act, Next, Status
from bydawn.operations.amounts import plural, short_count
from bydawn.operations.next_steps import next_steps
from bydawn.operations.tasks import of_loop
from bydawn.store.registry import Standing

_RAISED = ("rounds", "for", "until", "budget")  # flags of `resume` that a form has too
_HARMLESS = ("C", "d", "f")  # flags that mean nothing on a page
_LINKS = ("round", "log", "why", "copy")  # these only show something
Args = Mapping[str, str | int | list[str]]
_Button = tuple[str, str, Args]  # its verb, its text, and what its form sends
_COPIED: _Button = ("copy", "Copy", {})


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One of them: a form, a link, or a command to copy."""

    verb: str  # tell, resume, approve, accept, raise, skip, reopen, pause, stop; round, log, why; copy
    text: str  # of its button
    why: str  # what it is good for, as the terminal says it
    args: Args = {}
    command: str
    main: bool = False  # what helps most


def ways(standing: Standing) -> tuple[Way, ...]:
    """Everything that helps in the loop's current state, the most useful first."""
    steps = next_steps(standing)
    goes_on = not standing.alive and any(_is_plain_resume(step) for step in steps)
    found = [
        Way(verb=verb, text=text, why=re.sub(r"^(or|then) ", "", step.why), args=args, command=step.command)
        for step in steps
        for verb, text, args in _from(step, standing, goes_on=goes_on)
    ]
    best = next((place for place, way in enumerate(found) if _helps(way, standing)), None)
    return tuple(msgspec.structs.replace(way, main=place == best) for place, way in enumerate(found))


def _helps(way: Way, standing: Standing) -> bool:
    """Does it get the loop to go on? A loop that runs needs nothing, unless it has a question."""
    if way.verb in ("pause", "stop"):
        return way.verb == "stop" and bool(standing.left)
    return way.verb not in _LINKS


def _is_plain_resume(step: Next) -> bool:
    act = step.command
    return isinstance(act, Act) and act.program == OURS and act.verb == "resume" and not act.flags


def _from(step: Next, standing: Standing, *, goes_on: bool) -> Iterator[_Button]:
    """What a step is on a page; nothing if it only shows the page itself."""
    act = step.command
    if not isinstance(act, Act) or act.program != OURS:
        yield _COPIED
        return
    then: Args = {"resume": "1"} if goes_on else {}
    flags = tuple(pair for pair in act.flags if pair[0] not in _HARMLESS)
    match act.verb, flags:
        case "tell", _:
            yield "tell", "Send and resume" if goes_on else "Send", then
        case "resume", _:
            yield _resumed(standing, flags)
        case "tasks skip", _:
            ids = [_id_of(name, standing) for name in act.names]
            yield "skip", "Skip and resume" if goes_on else "Skip", {"task": ids[0] if len(ids) == 1 else ids, **then}
        case "tasks reopen", _:
            yield from (("reopen", f"Reopen task {name}", {"task": _id_of(name, standing)}) for name in act.names)
        case "pause", _:
            yield "pause", "Pause after this round", {}
        case "stop", _:
            yield "stop", "Stop…", {}
        case "show", [("round", number)]:
            yield "round", f"Open round {number}", {"round": int(number)}
        case "show", _:
            if standing.status is Status.CHECKPOINT and (last := standing.state.round):
                yield "round", f"Open round {last}", {"round": last}
        case "logs", [("round", number)]:
            yield "log", f"Log of round {number}", {"round": int(number)}
        case "logs", _:
            yield "log", "Watch the log", {}
        case "why", _:
            yield "why", "Why it decided so", {}
        case _:
            yield _COPIED


def _id_of(number: str, standing: Standing) -> str:
    """A form means the same task even if it has another number by the time it is sent."""
    return next((task.id for task in of_loop(standing).standings.tasks if str(task.number) == number), number)


def _resumed(standing: Standing, flags: Sequence[tuple[str, str]]) -> _Button:
    """A command to copy if it has a flag that no form has."""
    given: Args = dict(flags)
    if not given:
        stopped = standing.state.stopped
        return "resume", "Begin" if stopped and stopped.is_preparation else "Resume", {}
    if [*given] == ["approve"]:
        return "approve", "Approve and go on", {}
    if [*given] == ["accept"]:
        return "accept", "Accept…", {}
    if len(given) < len(flags) or any(flag not in _RAISED for flag in given):
        return _COPIED
    limits = limits_of(standing.loop, standing.state)
    until = f"go on until {given['until']}" if "until" in given else "go on"
    new = " and ".join(_raised(flag, value, limits) for flag, value in flags if flag != "until")
    return "raise", f"Raise to {new} and {until}" if new else until.capitalize(), given


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
