"""Dialects that nobody speaks: one without a nameless command, with short and nested words, a state file without any id
and a live log; and one that keeps a folder of its own with lines of JSON.

`bydawn.dialects.night_shift` and `bydawn.cli.dialects.night_shift` in one file; `ROW` is its row of the table.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated

import click

from bydawn.cli.command import group, option
from bydawn.cli.dialects import running
from bydawn.core.agent import Beat, Complaint, Event, Message
from bydawn.core.facts import AnyFact, EventRecorded, LoopStopped, RoundEnded, RoundStarted, RunStarted
from bydawn.core.history import History
from bydawn.core.keys import Checked, Configuration, Key, Kind, filled, keys_of
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.values import Next
from bydawn.dialects import DialectRow
from bydawn.dialects.seam import Entry, Files, Log, LogFile, Rotation, Source, Start, View, Whole
from bydawn.operations.dialects import begin, config, loops
from bydawn.operations.preconditions import checked_workspace
from bydawn.process.guardian import Tether

NAME = "night-shift"
ROW = DialectRow(
    "night_shift",
    starts=("start", "go on"),
    config=".night/shift.yml",
    secrets=("NIGHT_PAGER",),
    secret_flags=("--pager",),
)
LOG, BOARD, ON_DUTY = ".shift/live.log", ".shift/board.json", ".shift/duty/on"
ROSTER = ".shift/roster.json"  # of all loops; the word "roster" moves it
LINES = {
    "begins": re.compile(r"-- (\S+) (\d+) begins --"),
    "ends": re.compile(r"-- (\S+) (\d+) ends \([a-z_ ]+\) --"),
    "says": re.compile(r"\[\d\d:\d\d:\d\d (\S+) (\d+)\] .*"),
}


def words(loop: Loop) -> dict[str, str]:
    return loop.dialect.words if loop.dialect else {}


def roster(loop: Loop) -> str:
    return words(loop).get("roster", ROSTER)


def parsed(line: str) -> tuple[str, str, str] | None:
    """What a line of the live log is, of which loop and which pass; None for what is no whole line of ours."""
    found = ((kind, pattern.fullmatch(line)) for kind, pattern in LINES.items())
    return next(((kind, match[1], match[2]) for kind, match in found if match), None)


def is_line(line: bytes) -> bool:
    return line.startswith(b"{")


class Shift(Configuration, frozen=True, kw_only=True):
    """Its file."""

    agent: Annotated[str, Key("shift.agent", Kind.TEXT)] = "codex"
    checks: Annotated[tuple[str, ...], Key("shift.checks")] = ()
    passes: Annotated[int, Key("shift.passes")] = 5
    sandbox: Annotated[str | None, Key("shift.sandbox", Kind.TEXT)] = None
    words: Annotated[str | None, Key("shift.words", Kind.PATH)] = None


KEYS = tuple(keys_of(Shift))


class NightShift:
    name = NAME
    unit = "tour"
    needs_history = True
    splits_output = False
    user_file = ("", "", "")
    own = staticmethod(lambda _: None)
    keys = KEYS

    def from_config(self, found: Checked, read: Callable[[str], str | None]) -> Start:
        asked = filled(Shift, found, KEYS)
        path = asked.words
        words = read(path) if path else None  # it may be missing
        ours = {
            "agent": ("shift.agent", (asked.agent,)),
            "check": ("shift.checks", asked.checks),
            "rounds": ("shift.passes", (str(asked.passes),)),
            "sandbox": ("shift.sandbox", (asked.sandbox,) if asked.sandbox else ()),
            "template": ("shift.words", (str(path),) if words else ()),
        }
        return Start(
            prompt="Do what is left.",
            name="shift",
            named=True,
            template=words or "",
            settings={key: value for key, (_, value) in ours.items()},
            origins={key: found.where(path) for key, (path, _) in ours.items() if path in found.lines},
        )

    def check_env(self, loop: Loop) -> dict[str, str]:  # noqa: ARG002 - all get it
        return {"NIGHT_CREW": "late"}

    def counted(self, state: LoopState) -> int:
        return state.round

    def word(self, stopped: LoopStopped) -> str:
        return f"home ({stopped.end.value})"

    def reason(self, stopped: LoopStopped) -> str:
        return f"The shift is over: {stopped.reason}."

    def exit_code(self, stopped: LoopStopped) -> int:
        return 40 + len(stopped.end.value)

    def next_steps(self, loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[Next]:  # noqa: ARG002
        return [Next(f"{NAME} go on {loop.id}", "another pass")]

    def messages(self, *_: object) -> None:
        return None

    def hook_words(self, hook: str, loop: Loop, state: LoopState, told: Mapping[str, str]) -> Mapping[str, str]:
        return {"SHIFT_EVENT": hook, "SHIFT": loop.id, "SHIFT_PASS": f"{state.round}\n{told.get('BYDAWN_CHECKS', '')}"}

    def go_on(self, loop: Loop) -> list[str]:
        return ["go", "on", loop.id]

    def files(self, loop: Loop) -> Files:
        size, older = int(words(loop).get("bytes", 2 << 30)), int(words(loop).get("files", 10))
        return Files(
            whole=(".shift/state.json", ".shift/pass_*.log"),
            common=(BOARD, ON_DUTY),
            logs=(LogFile(LOG, rotation=Rotation(size, 3, older)), LogFile(".shift/all.log", is_line=is_line)),
            together=(roster(loop),),
            claims=(f"{NAME} crew {crew}",)
            if (crew := loop.dialect.words.get("crew") if loop.dialect else None)
            else (),
            folder=".shift",
        )

    def documents(self, found: Checked) -> dict[str, str]:  # noqa: ARG002 - it has none
        return {}

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:  # noqa: ARG002
        word = self.word(state.stopped) if state.stopped else "at work"
        yield Whole(".shift/state.json", json.dumps({"pass": state.round, "state": word}))
        yield Whole(BOARD, json.dumps({"shift": loop.id, "pass": state.round, "state": word}))
        entry: dict[str, object] = {"born": f"{loop.created_at:%FT%T}", "pass": state.round, "state": word}
        yield Entry(roster(loop), ("shifts", loop.id), entry, owner="born")
        match fact:
            case RunStarted():
                if "fresh" in words(loop) and state.runs == 1:
                    yield Log(LOG, ("a new log",), fresh=True)
                yield Whole(ON_DUTY, f"{fact.pid}\n")
            case RoundStarted():
                yield Log(LOG, (f"-- {loop.id} {fact.round} begins --",))
            case RoundEnded():
                yield Log(LOG, (f"-- {loop.id} {fact.round} ends ({fact.outcome.value}) --",))
                yield Whole(f".shift/pass_{fact.round}.log", Source(fact.round, "stdout"))
                yield Log(".shift/all.log", Source(fact.round, "stdout"))
            case LoopStopped():
                yield Whole(ON_DUTY, None)
            case _:
                pass

    def heard(self, event: Event, loop: Loop, state: LoopState, history: History, at: datetime) -> Iterator[View]:  # noqa: ARG002
        if isinstance(event, Message | Complaint):
            lines = event.text.splitlines() or [""]
            yield Log(LOG, tuple(f"[{at:%H:%M:%S} {loop.id} {state.round}] {line}" for line in lines))


DIALECT = NightShift()


class DayBook(NightShift):
    """Looks at no earlier round: its files follow from each fact, and from the state after it."""

    name = "day-book"
    needs_history = False

    def files(self, loop: Loop) -> Files:
        book = f".book/{loop.id}"
        return Files(
            owned=(f"{book}/", f"{book}/passes/"),
            logs=tuple(LogFile(f"{book}/{name}.jsonl", is_json=True) for name in ("events", "beats")),
            shared=(".book/.gitignore",),
            together=(".book/index.json",),
        )

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:
        assert not history.attempts
        kind = str(fact.__struct_config__.tag)
        yield Log(f".book/{loop.id}/events.jsonl", {"kind": kind}, getattr(fact, "record", ""))
        if isinstance(fact, RoundEnded):
            yield Log(f".book/{loop.id}/events.jsonl", {"kind": "pass", "number": fact.round})
        yield Whole(".book/.gitignore", "*\n", once=True)
        yield Whole(f".book/{loop.id}/state.json", json.dumps({"pass": state.round, "last": kind}))
        if isinstance(fact, EventRecorded):
            return
        yield Entry(".book/index.json", ("books", loop.id), {"pass": state.round})
        if isinstance(fact, RoundEnded):
            yield Whole(f".book/{loop.id}/passes/{fact.round}.log", Source(fact.round, "stdout"))

    def heard(self, event: Event, loop: Loop, state: LoopState, history: History, at: datetime) -> Iterator[View]:  # noqa: ARG002
        if isinstance(event, Beat):
            yield Log(f".book/{loop.id}/beats.jsonl", {"at": f"{at:%FT%TZ}", "pass": state.round})


DAY_BOOK = DayBook()


@group(name=NAME, context_settings={"help_option_names": ["-h", "--help"]})
def COMMANDS() -> None:  # noqa: N802 - as every dialect calls it
    """Work while others sleep."""


@COMMANDS.command()
@click.argument("folder", type=Path)
@option("-n", "--name", default="shift")
@option("-p", "--passes", default="5")
@option("-k", "--check", "checks", multiple=True)
@option("-a", "--agent", default="codex")
@option("--pager", default="")
@click.pass_obj
def start(
    tether: Tether | None,
    /,
    folder: Path,
    name: str,
    passes: str,
    checks: tuple[str, ...],
    agent: str,
    pager: str,  # noqa: ARG001 - only to be hidden
) -> int:
    settings = {"agent": (agent,), "rounds": (passes,), "check": checks}
    wanted = Start(
        prompt="Do what is left.",
        name=name,
        named=True,
        settings=settings,
        template="Tour {{COUNTED}}.\n{{#OUTPUT}}\nBefore:\n{{OUTPUT}}\n{{/OUTPUT}}",
        sections=("GOAL",),
        numbers_cut=True,
    )
    workspace = checked_workspace(folder)
    return running.start(DIALECT, config.read(DIALECT, workspace) or wanted, workspace, tether)


@COMMANDS.command()
@click.argument("agent")
def init(agent: str) -> int:
    written = {".night/shift.yml": f"shift:\n  agent: '{agent}'\n  passes: 1\n  words: words.md\n"}
    Path(".night").mkdir(exist_ok=True)
    for path, text in written.items():
        Path(path).write_text(text)
    return 0 if config.agree(DIALECT, Path.cwd(), written) else 3


@COMMANDS.group()
def go() -> None:
    """Where the last pass ended."""


@go.command()
@click.argument("name")
@click.pass_obj
def on(tether: Tether | None, /, name: str) -> int:
    standing = loops.called(name, loops.in_workspace(DIALECT, Path.cwd()))
    assert standing
    return running.resume(DIALECT, begin.plan_resume(standing), tether)


@COMMANDS.command()
def status() -> None:
    for standing in loops.in_workspace(DIALECT, Path.cwd()):
        stopped = standing.state.stopped
        click.echo(
            f"{standing.loop.id}: {DIALECT.word(stopped) if stopped else 'at work'}, pass {standing.state.round}"
        )
