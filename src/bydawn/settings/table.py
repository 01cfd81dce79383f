"""Every setting, in one table: flags, variables, files, schema, documentation and trust all read it."""

from enum import StrEnum
from functools import partial
from typing import Any

from bydawn.core import kinds
from bydawn.core.breakers import FAILURES, Limits
from bydawn.core.kinds import Kind
from bydawn.core.loop import (
    BoxMode,
    ChangedTests,
    CheckWhere,
    CommitMode,
    Loop,
    Match,
    Mode,
    OnBlockedTask,
    OnHookFailure,
    OnInterrupt,
    OnLimit,
    OnTamper,
    Promise,
    Sandbox,
    Sessions,
    Ticks,
    Timeouts,
    WitnessMode,
)
from bydawn.settings.setting import ANYWHERE, NOT_AS_A_FLAG, NOT_IN_A_PROJECT, Heading, Layer, Setting


def _setting(
    key: str, kind: Kind | type[StrEnum], what: str, *short: str, layers: frozenset[Layer] = ANYWHERE, **more: Any
) -> Setting:
    """A row whose flag and field are called like its key, unless it says otherwise; an enum means one of its words."""
    if not isinstance(kind, Kind):
        more["metavar"] = "|".join(kind)
        kind = kinds.choice(*kind)
    flags = (*short, f"--{key.replace('_', '-')}") if Layer.FLAG in layers else ()
    field = key if key in Loop.__struct_fields__ else ""
    return Setting(**{"key": key, "kind": kind, "what": what, "flags": flags, "field": field, "layers": layers, **more})


# The rows under one heading of the help; most of them run or steer something.
_goal = partial(_setting, heading=Heading.GOAL, commands=True)
_done = partial(_setting, heading=Heading.DONE, commands=True)
_agent = partial(_setting, heading=Heading.AGENT, commands=True)
_hook = partial(_setting, heading=Heading.HOOKS, commands=True)
_safety = partial(_setting, heading=Heading.SAFETY)
_less = partial(_setting, tighter="less")


def _limit(key: str, kind: Kind, what: str, *short: str, field: str = "", **more: Any) -> Setting:
    """A limit, with the default that it has anyway; less of it is safer."""
    field = field or key
    more.setdefault("default", getattr(Limits(), field))
    return _less(key, kind, what, *short, field=f"limits.{field}", heading=Heading.LIMITS, **more)


def _timeout(name: str, what: str, key: str = "", kind: Kind = kinds.SPAN, metavar: str = "DURATION") -> Setting:
    default, field = getattr(Timeouts(), name), f"timeouts.{name}"
    key = key or f"{name}_timeout"
    return _less(key, kind, what, metavar=metavar, default=default, field=field, heading=Heading.TIMEOUTS)


TABLE: tuple[Setting, ...] = (
    _agent(
        "agent",
        kinds.TEXTS,
        "The agent: codex, codex:PATH, claude, …, or cmd:PROGRAM ARGS; repeat it for agents that take over at a limit.",
        "-a",
        metavar="NAME",
        otherwise="codex, or else claude",
    ),
    _agent(
        "on_limit",
        OnLimit,
        "At a usage limit: switch to the next free agent (or wait for one), wait, or stop.",
        otherwise=OnLimit.SWITCH,
    ),
    _done("check", kinds.TEXTS, "A command that must exit with 0; repeatable.", "-k", metavar="CMD", tighter="more"),
    _goal(
        "tasks",
        kinds.TEXT,
        "A Markdown file with `- [ ]` boxes, or a folder with one file per task.",
        "-t",
        metavar="PATH",
    ),
    _done(
        "checkpoint",
        kinds.TEXT,
        "Stop where the task file has this text; `:pause` asks you on a terminal, `:exit` never asks.",
        metavar="TOKEN[:pause|exit]",
    ),
    _goal(
        "on_blocked_task",
        OnBlockedTask,
        "When the agent needs you for one task: set it aside and do the others first, or stop.",
        otherwise=OnBlockedTask.ASIDE,
    ),
    _done(
        "ticks",
        Ticks,
        "Boxes ticked in a round that changed nothing else: doubt them until confirmed, or count them.",
        otherwise=Ticks.DOUBT,
    ),
    _safety(
        "sandbox",
        kinds.choice(*Sandbox, workspace_write="workspace", danger_full_access="full"),
        "What the agent may do: read-only, workspace or full.",
        "-s",
        metavar="LEVEL",
        otherwise=Sandbox.WORKSPACE,
        tighter="less",
        ladder=tuple(Sandbox),
        never_in_project=("full",),
    ),
    _agent("model", kinds.TEXT, "The agent's model.", "-m", metavar="NAME"),
    _agent("profile", kinds.TEXT, "The agent's own profile (Codex).", "-p", metavar="NAME"),
    _agent("effort", kinds.TEXT, "How hard the model thinks.", metavar="LEVEL"),
    _agent("agent_args", kinds.TEXTS, "An argument for the agent itself; or put them all after `--`.", metavar="ARG"),
    _agent(
        "agent_json",
        kinds.MAPPING,
        "Where to find a field in the JSON lines of a cmd: agent; repeatable.",
        metavar="NAME=PATH",
    ),
    _agent(
        "agent_env",
        kinds.VARIABLES,
        "A variable for the agent only, not for checks or hooks; repeatable.",
        metavar="NAME=VALUE",
        secret=True,
    ),
    _agent("agent_commits", kinds.SWITCH, "Let a sandboxed agent write to .git.", default=False),
    _agent(
        "session",
        Sessions,
        "Start a fresh conversation each round, continue one, or use one per task.",
        field="sessions",
        otherwise=Sessions.FRESH,
    ),
    _agent(
        "session_rounds",
        kinds.COUNT,
        "Rounds before a fresh conversation; 0 = no limit.",
        default=20,
        tighter="less",
        commands=False,
    ),
    _setting("prompt", kinds.TEXT, "What to do, or @FILE to read it from a file.", flags=("PROMPT",), commands=True),
    _goal("template", kinds.TEXT, "A prompt template with {{MARKERS}}.", metavar="FILE"),
    _goal("progress", kinds.TEXT, "A file for the agent's notes between rounds.", metavar="FILE"),
    _goal("opinions", kinds.TEXT, "A file with your rules for the agent.", metavar="FILE"),
    _limit("rounds", kinds.COUNT, "Stop after N rounds; 0 = no limit.", "-n", raises="Raise the round limit."),
    _limit(
        "for",
        kinds.SPAN,
        "Stop after this much time (8h, 90m).",
        metavar="DURATION",
        field="seconds",
        raises="Raise the time limit.",
    ),
    _limit(
        "until", kinds.MOMENT, "Start no round after this time (07:00).", metavar="TIME", raises="A new time to stop."
    ),
    _limit(
        "latest_wake",
        kinds.MOMENT,
        "Never wait for a limit past this time.",
        metavar="TIME",
        raises="A new latest time to wait for a limit.",
    ),
    _setting(
        "pause",
        kinds.SPAN,
        "Wait this long between two rounds, and up to a tenth more.",
        metavar="DURATION",
        default=0.0,
        tighter="more",
        heading=Heading.LIMITS,
    ),
    _setting(
        "budget",
        kinds.BUDGET,
        "Stop after spending this much (5usd, 2Mtok).",
        metavar="AMOUNT",
        tighter="less",
        raises="Raise the budget (+3usd, 5Mtok).",
        heading=Heading.LIMITS,
    ),
    _done(
        "done_when",
        kinds.TEXT,
        "The promise the agent must give.",
        metavar="TEXT",
        otherwise=f"{Promise().text} if there is no task list",
    ),
    _done(
        "promise",
        kinds.SWITCH,
        "Without a task list, passing checks also need the agent's word that it is done.",
        flags=("--no-promise", "--promise"),
        field="promise_required",
        default=True,
    ),
    _done("done_mode", Mode, "How the promise is written.", otherwise=Promise().mode),
    _done("done_match", Match, "Where in the reply the promise counts.", otherwise=Promise().match),
    _done(
        "check_where",
        CheckWhere,
        "Run checks in the workspace or in a clean checkout.",
        otherwise=CheckWhere.WORKSPACE,
    ),
    _safety(
        "protect",
        kinds.TEXTS,
        "Files no round may change ('tests/**'); repeatable.",
        metavar="GLOB",
        commands=True,
        tighter="more",
    ),
    _safety(
        "on_tamper", OnTamper, "What to do when a protected file changes.", commands=True, otherwise=OnTamper.BLOCK
    ),
    _done(
        "tests",
        kinds.TEXTS,
        "Files that are tests, if their names do not say so ('qa/**'); '!app.py': not, although a check names it.",
        metavar="GLOB",
        tighter="more",
    ),
    _done(
        "changed_tests",
        ChangedTests,
        "If checks pass only because old tests were changed: hold the loop until there is a reason, or report it.",
        otherwise=ChangedTests.HOLD,
    ),
    _done(
        "witness",
        WitnessMode,
        "Try whether checks would pass without the work: off, report, or ask the agent once for better tests.",
        otherwise=WitnessMode.REPORT,
    ),
    _safety(
        "box",
        BoxMode,
        "Run checks in a box that lets them write to little but this folder: if possible, always or never.",
        otherwise=BoxMode.AUTO,
        tighter="less",
        ladder=(BoxMode.ON, BoxMode.AUTO, BoxMode.OFF),
        never_in_project=(BoxMode.OFF,),
    ),
    _safety(
        "box_write",
        kinds.TEXTS,
        "Let checks in the box write to this folder (~/.cargo); repeatable.",
        metavar="DIR",
        commands=True,
    ),
    _safety(
        "pass_env",
        kinds.TEXTS,
        "Give checks this variable although it looks like a secret; repeatable.",
        metavar="NAME",
        commands=True,
    ),
    _done(
        "require_path",
        kinds.TEXTS,
        "A file or folder that must exist in the workspace; repeatable.",
        metavar="PATH",
        tighter="more",
    ),
    _done(
        "require_text",
        kinds.PAIRS,
        "A text that a file must contain; repeatable.",
        metavar="FILE::TEXT",
        tighter="more",
    ),
    _safety(
        "commit",
        CommitMode,
        "Commit what each round changed, with your git hooks; require: block if that fails.",
        commands=True,
        otherwise=CommitMode.OFF,
    ),
    _safety(
        "commit_message",
        kinds.TEXT,
        "Message of these commits; {loop}, {round}, {task} and {counted} are filled in.",
        metavar="TEXT",
        commands=True,
        otherwise="bydawn: {task}",
    ),
    _safety(
        "worktree",
        kinds.BRANCH,
        "Work in a git worktree beside the repository, on the branch bydawn/LOOP or on this one.",
        metavar="[=BRANCH]",
        field="",
        commands=True,
        otherwise="off",
    ),
    _timeout("round", "Longest round; 0 = no limit."),
    _timeout("silence", "Longest silence."),
    _timeout("first_byte", "Longest wait for the first output."),
    _timeout("linger", "Longest wait for the agent to exit after its result."),
    _timeout("output", "Largest output of one round.", "output_limit", kinds.SIZE, "SIZE"),
    _timeout("check", "Longest check."),
    _timeout("hook", "Longest hook."),
    _timeout(
        "proof",
        "Longest time for checks with the old tests, or without the work; or a tenth of the loop's time.",
        "proof_time",
    ),
    *(
        _hook(name, kinds.TEXTS, f"{what}; repeatable.", metavar="CMD", field=f"hooks.{name}")
        for name, what in (
            ("pre_round", "Your command to run before each round"),
            ("post_round", "Your command to run after each round and its checks"),
            ("on_complete", "Your command to run when the loop is complete"),
            ("on_blocked", "Your command to run when the loop needs you"),
            ("on_pause", "Your command to run when the loop is paused or stopped"),
        )
    ),
    _hook(
        "on_hook_failure",
        OnHookFailure,
        "What to do when a hook fails.",
        field="hooks.on_failure",
        otherwise=OnHookFailure.IGNORE,
    ),
    _hook(
        "notify",
        kinds.ADDRESSES,
        "Tell this address when the loop is complete or needs you: https://…, or a service (ntfy://…); repeatable.",
        metavar="URL",
        secret=True,
    ),
    _setting(
        "on_interrupt",
        OnInterrupt,
        "What the first Ctrl-C does: finish the round, or stop now.",
        otherwise=OnInterrupt.FINISH,
        layers=NOT_IN_A_PROJECT,
        heading=Heading.OUTPUT,
    ),
    _setting(
        "keep_awake",
        kinds.SWITCH,
        "Keep this machine from sleeping while the loop runs.",
        flags=("--no-keep-awake", "--keep-awake"),
        default=True,
        layers=NOT_IN_A_PROJECT,
        heading=Heading.OUTPUT,
    ),
    _limit(
        "iterations",
        kinds.COUNT,
        "Stop after N iterations that agents recorded; 0 = never.",
        field="iterations",
        raises="Raise the limit of recorded iterations.",
    ),
    _limit(
        "max_no_change",
        kinds.COUNT,
        "Stop after N rounds without progress; 0 = never.",
        field="no_progress",
        raises="Raise the no-progress limit.",
    ),
    _limit(
        "max_failures",
        kinds.COUNT,
        "Stop after N agent failures in a row; 0 = never.",
        field="agent_failures",
        default=FAILURES,
        otherwise=f"{FAILURES}, over at least 20 minutes",
        raises="Raise the limit of agent failures.",
    ),
    _limit(
        "max_check_failures",
        kinds.COUNT,
        "Stop after N rounds in a row with a newly failing check; 0 = never.",
        field="check_failures",
        raises="Raise the limit of rounds with failing checks.",
    ),
    _limit(
        "max_same_failure",
        kinds.COUNT,
        "Stop after the same failure N times; 0 = never.",
        field="same_failure",
        raises="Raise the limit of identical failures.",
    ),
    _limit(
        "max_task_failures",
        kinds.COUNT,
        "Set a task aside after N failures; 0 = never.",
        field="task_failures",
        raises="Raise the failures allowed per task.",
    ),
    _limit(
        "max_no_task_done",
        kinds.COUNT,
        "Stop after N rounds in which a check is red and none got better, or no task of the list was done; 0 = never.",
        field="no_task_done",
        raises="Raise the limit of rounds without a result.",
    ),
    _setting("secrets", kinds.TEXTS, "Texts that bydawn must never write down.", layers=NOT_AS_A_FLAG, secret=True),
    _setting("not_secret", kinds.TEXTS, "Texts that only look like secrets.", layers=NOT_AS_A_FLAG),
    _setting(
        "plain",
        kinds.SWITCH,
        "Plain lines: no color, nothing redrawn.",
        default=False,
        layers=NOT_IN_A_PROJECT,
        heading=Heading.OUTPUT,
    ),
    _setting(
        "state_dir",
        kinds.TEXT,
        "Directory for loop state.",
        otherwise="~/.local/state/bydawn",
        metavar="PATH",
        layers=NOT_IN_A_PROJECT,
    ),
)
BY_KEY = {setting.key: setting for setting in TABLE}
