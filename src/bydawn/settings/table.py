"""Every setting there is, as one table: flags, variables, files, schema, documentation and trust all read it."""

from datetime import datetime
from enum import StrEnum
from math import inf
from typing import Any

import msgspec

from bydawn.core import kinds
from bydawn.core.kinds import Kind, Value
from bydawn.core.loop import (
    CheckWhere,
    Limits,
    Loop,
    Match,
    Mode,
    OnHookFailure,
    OnInterrupt,
    OnLimit,
    OnTamper,
    Sandbox,
    Sessions,
    Timeouts,
)


class Layer(StrEnum):
    """Where a value can stand; the later ones are stronger."""

    DEFAULT = "default"
    USER = "user"
    PROJECT = "project"
    ENV = "environment"
    FLAG = "flag"


ANYWHERE = frozenset(Layer) - {Layer.DEFAULT}
NOT_IN_A_PROJECT = ANYWHERE - {Layer.PROJECT}  # a repository has no say in it
NOT_AS_A_FLAG = NOT_IN_A_PROJECT - {Layer.FLAG}  # everybody on the machine can read a command line


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    key: str
    kind: Kind
    what: str
    flags: tuple[str, ...]
    field: str = ""  # of a `Loop`: `sandbox`, `limits.rounds`; empty where it is not one value of it
    raises: str = ""  # what `resume` says of its own option of this name, which sets the limit anew
    default: Value | None = None
    metavar: str | None = None
    layers: frozenset[Layer] = ANYWHERE
    commands: bool = False  # it runs or steers something: in a repository it is inert until trusted
    tighter: str = ""  # "less" or "more" of it is safer: a repository may only go that way from what the user set
    ladder: tuple[str, ...] = ()  # its words, from the safest on
    never_in_project: tuple[str, ...] = ()  # values that only a person's own act can choose
    secret: bool = False  # shown to nobody, and not in an agent's environment

    @property
    def variable(self) -> str:
        return f"BYDAWN_{self.key.upper().replace('.', '_')}"

    def shown(self, value: Value | None) -> str:
        """The value as a person would write it."""
        if value is None:
            return ""
        return "[secret]" if self.secret else self.kind.write(value)


def looser(setting: Setting, value: Value | None, than: Value | None, now: datetime) -> bool:
    """Is a value less safe than another? A limit of 0, or none, is the least safe."""
    if setting.tighter == "more":
        return not set(_items(than)) <= set(_items(value))
    if setting.kind is kinds.BUDGET and isinstance(value, str) and isinstance(than, str):
        (unit, amount), (other, most) = kinds.budget(value), kinds.budget(than)
        return unit != other or amount > most
    return setting.tighter == "less" and _amount(setting, value, now) > _amount(setting, than, now)


def _items(value: Value | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _amount(setting: Setting, value: Value | None, now: datetime) -> float:
    if value in setting.ladder:
        return setting.ladder.index(str(value))
    if isinstance(value, str):
        found = kinds.next_moment(value, now)
        return found.timestamp() if found else inf
    return float(value) if isinstance(value, int | float) and value else inf


def _setting(key: str, kind: Kind, what: str, *short: str, layers: frozenset[Layer] = ANYWHERE, **more: Any) -> Setting:
    """A row whose flag and field are called like its key, unless it says otherwise."""
    flags = (*short, f"--{key.replace('_', '-')}") if Layer.FLAG in layers else ()
    field = key if key in Loop.__struct_fields__ else ""
    return Setting(**{"key": key, "kind": kind, "what": what, "flags": flags, "field": field, "layers": layers, **more})


def _limit(key: str, kind: Kind, what: str, *short: str, field: str, **more: Any) -> Setting:
    """A limit, with the default that it has anyway; less of it is safer."""
    default = getattr(Limits(), field)
    return _setting(key, kind, what, *short, default=default, field=f"limits.{field}", tighter="less", **more)


def _timeout(name: str, what: str) -> Setting:
    default, field = getattr(Timeouts(), name), f"timeouts.{name}"
    key = f"{name}_timeout"
    return _setting(key, kinds.SPAN, what, metavar="TIME", default=default, field=field, tighter="less")


TABLE: tuple[Setting, ...] = (
    _setting(
        "agent",
        kinds.TEXTS,
        "The agent: codex, claude, …, or cmd:PROGRAM ARGS; further ones take over while it is limited.",
        "-a",
        metavar="NAME",
        commands=True,
    ),
    _setting(
        "on_limit",
        kinds.choice(*OnLimit),
        "At a usage limit: the next agent (and wait where none is free), wait, or stop; switch unless you say so.",
        metavar="switch|wait|stop",
        commands=True,
    ),
    _setting(
        "check",
        kinds.TEXTS,
        "A command that must exit 0; repeatable.",
        "-k",
        metavar="CMD",
        commands=True,
        tighter="more",
    ),
    _setting(
        "tasks",
        kinds.TEXT,
        "A Markdown file with `- [ ]` boxes, or a folder with a file for each task.",
        "-t",
        metavar="PATH",
        commands=True,
    ),
    _setting(
        "checkpoint",
        kinds.TEXT,
        "Stand still where the task file says so; `:exit` asks nobody.",
        metavar="TOKEN[:pause|exit]",
        commands=True,
    ),
    _setting(
        "sandbox",
        kinds.choice(*Sandbox, workspace_write="workspace", danger_full_access="full"),
        "What the agent may do: read-only, workspace, full; workspace unless you say so.",
        "-s",
        metavar="LEVEL",
        tighter="less",
        ladder=tuple(Sandbox),
        never_in_project=("full",),
    ),
    _setting("model", kinds.TEXT, "The agent's model.", "-m", metavar="NAME", commands=True),
    _setting("profile", kinds.TEXT, "The agent's own profile (Codex).", "-p", metavar="NAME", commands=True),
    _setting("effort", kinds.TEXT, "How hard the agent's model thinks.", metavar="LEVEL", commands=True),
    _setting(
        "agent_args",
        kinds.TEXTS,
        "An argument for the agent itself; or all of them after `--`.",
        metavar="ARG",
        commands=True,
    ),
    _setting(
        "agent_json",
        kinds.MAPPING,
        "What stands where in the JSON lines of a cmd: agent; repeatable.",
        metavar="NAME=PATH",
        commands=True,
    ),
    _setting("agent_commits", kinds.SWITCH, "Let a sandboxed agent write to .git.", default=False, commands=True),
    _setting(
        "session",
        kinds.choice(*Sessions),
        "Begin each round afresh, or go on with the conversation; fresh unless you say so.",
        metavar="fresh|resume|per-task",
        commands=True,
        field="sessions",
    ),
    _setting(
        "session_rounds",
        kinds.COUNT,
        "Rounds of one conversation, then a fresh one; 0 = any.",
        default=20,
        tighter="less",
    ),
    _setting("prompt", kinds.TEXT, "What to do, or @FILE.", flags=("PROMPT",), commands=True),
    _setting(
        "template",
        kinds.TEXT,
        "A file that the prompt is made from, with {{MARKERS}}.",
        metavar="FILE",
        commands=True,
    ),
    _setting("progress", kinds.TEXT, "A file for the agent's notes between rounds.", metavar="FILE", commands=True),
    _setting("opinions", kinds.TEXT, "A file with your rules for the agent.", metavar="FILE", commands=True),
    _limit(
        "rounds", kinds.COUNT, "Rounds at most; 0 = any.", "-n", field="rounds", raises="Raise the limit of rounds."
    ),
    _limit(
        "for",
        kinds.SPAN,
        "Work at most so long (8h, 90m).",
        metavar="TIME",
        field="seconds",
        raises="Raise the time limit.",
    ),
    _limit(
        "until",
        kinds.MOMENT,
        "Start no round after this moment (07:00).",
        metavar="MOMENT",
        field="until",
        raises="A new moment to end.",
    ),
    _limit(
        "latest_wake",
        kinds.MOMENT,
        "Wait for no limit beyond this moment.",
        metavar="MOMENT",
        field="latest_wake",
        raises="A new moment up to which limits are waited out.",
    ),
    _setting(
        "budget",
        kinds.BUDGET,
        "Spend at most so much (5usd, 2Mtok).",
        metavar="AMOUNT",
        tighter="less",
        raises="Raise the budget (+3usd, 5Mtok).",
    ),
    _setting("done_when", kinds.TEXT, "The promise that the agent must give.", metavar="TEXT", commands=True),
    _setting(
        "done_mode",
        kinds.choice(*Mode),
        "How the promise is written; tag unless you say so.",
        metavar="tag|plain|line|regex",
        commands=True,
    ),
    _setting(
        "done_match",
        kinds.choice(*Match),
        "Where in the reply the promise may stand; end unless you say so.",
        metavar="end|own-line|anywhere",
        commands=True,
    ),
    _setting(
        "check_where",
        kinds.choice(*CheckWhere),
        "Run checks here or in a clean checkout; workspace unless you say so.",
        metavar="workspace|clean",
        commands=True,
    ),
    _setting(
        "protect",
        kinds.TEXTS,
        "Files that no round may change ('tests/**'); repeatable.",
        metavar="GLOB",
        commands=True,
        tighter="more",
    ),
    _setting(
        "on_tamper",
        kinds.choice(*OnTamper),
        "When one was changed all the same; block unless you say so.",
        metavar="report|block|restore",
        commands=True,
    ),
    _setting(
        "require_path",
        kinds.TEXTS,
        "A path that must exist; repeatable.",
        metavar="PATH",
        commands=True,
        tighter="more",
    ),
    _setting(
        "require_text",
        kinds.PAIRS,
        "A text that must stand in a file.",
        metavar="FILE::TEXT",
        commands=True,
        tighter="more",
    ),
    _timeout("round", "Longest round; 0 = no limit."),
    _timeout("silence", "Longest time without life."),
    _timeout("first_byte", "Longest wait for a word."),
    _timeout("linger", "Time to exit after the result."),
    _setting(
        "output_limit",
        kinds.SIZE,
        "Most output of one round.",
        metavar="SIZE",
        default=Timeouts().output,
        tighter="less",
        field="timeouts.output",
    ),
    _timeout("check", "Longest check."),
    _timeout("hook", "Longest hook."),
    *(
        _setting(name, kinds.TEXT, what, metavar="CMD", field=f"hooks.{name}", commands=True)
        for name, what in (
            ("pre_round", "A command of yours before each round."),
            ("post_round", "A command of yours after each round and its checks."),
            ("on_complete", "A command of yours when the loop is complete."),
            ("on_blocked", "A command of yours when the loop needs you."),
            ("on_pause", "A command of yours when the loop stands still."),
        )
    ),
    _setting(
        "on_hook_failure",
        kinds.choice(*OnHookFailure),
        "When a hook fails; ignore unless you say so.",
        metavar="ignore|block",
        commands=True,
        field="hooks.on_failure",
    ),
    _setting(
        "on_interrupt",
        kinds.choice(*OnInterrupt),
        "What the first Ctrl-C does; finish (the round) unless you say so.",
        metavar="finish|stop",
        layers=NOT_IN_A_PROJECT,
    ),
    _limit(
        "max_no_change",
        kinds.COUNT,
        "Rounds without progress.",
        field="no_progress",
        raises="Raise the no-progress limit.",
    ),
    _limit(
        "max_failures",
        kinds.COUNT,
        "Agent failures in a row.",
        field="agent_failures",
        raises="Raise the limit of failures in a row.",
    ),
    _limit(
        "max_check_failures",
        kinds.COUNT,
        "Rounds in a row with a red check; 0 = any.",
        field="check_failures",
        raises="Raise the limit of red rounds in a row.",
    ),
    _limit(
        "max_same_failure",
        kinds.COUNT,
        "Rounds in a row with the very same failure.",
        field="same_failure",
        raises="Raise the limit of the very same failure.",
    ),
    _limit(
        "max_task_failures",
        kinds.COUNT,
        "Failures of one task, then it is set aside.",
        field="task_failures",
        raises="Raise what one task may fail.",
    ),
    _setting("secrets", kinds.TEXTS, "Texts that must never be written down.", layers=NOT_AS_A_FLAG, secret=True),
    _setting("not_secret", kinds.TEXTS, "Texts that only look like secrets.", layers=NOT_AS_A_FLAG),
    _setting(
        "plain",
        kinds.SWITCH,
        "Flat lines, no colour, nothing redrawn.",
        default=False,
        layers=NOT_IN_A_PROJECT,
    ),
    _setting(
        "state_dir",
        kinds.TEXT,
        "Where the truth is kept, instead of the user's state folder.",
        metavar="PATH",
        layers=NOT_IN_A_PROJECT,
    ),
)
BY_KEY = {setting.key: setting for setting in TABLE}
