"""The loop that a person asks for, checked in every respect before anything is written or spent."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bydawn import agents
from bydawn.core import checkpoint, tasks, worklist
from bydawn.core.agent import Agent
from bydawn.core.errors import UserError
from bydawn.core.loop import Check, CommandCheck, Loop, Mode, Promise, Sandbox, Sessions, TextCheck
from bydawn.core.promise import is_possible
from bydawn.core.redact import Secrets, Unnamed, rewritten
from bydawn.core.state import Settled
from bydawn.core.text import PLACEHOLDER
from bydawn.operations.agents import first_that_works
from bydawn.operations.loop_request import LoopRequest
from bydawn.settings.table import BY_KEY
from bydawn.store.registry import Standing, checked_name, slug
from bydawn.system.git import Git
from bydawn.system.reading import read_folder, read_text

_OUR_OWN = {"v", "id", "uid", "workspace", "created_at"}  # of a loop, not of what was asked for
OF_ONE_AGENT = ("model", "profile", "effort", "agent_args")  # they mean something else to each
OPTIONS = (*OF_ONE_AGENT, "agent_commits")

_LINES_NAMED = 3


def checked_loop(wanted: LoopRequest, workspace: Path) -> Loop:
    """The loop that a request asks for. Raises `UserError`; touches nothing."""
    loop = wanted.loop
    if not loop.prompt.strip() and not loop.tasks:
        raise UserError(
            "there is nothing to do",
            cause="the prompt is empty and no task file is given",
            hint='say what to do, for example "fix the failing tests", or give a checklist with -t TODO.md',
        )
    if loop.prompt.strip() == PLACEHOLDER:
        raise UserError(
            f"{PLACEHOLDER!r} is no goal",
            cause="it stands for your own words; nothing was started",
            hint='say what to do, for example "fix the failing tests"',
        )
    pool = _checked_pool(loop, wanted.agent_from)
    in_folder = bool(loop.tasks) and (workspace / str(loop.tasks)).is_dir()
    if loop.tasks and in_folder:
        _checked_folder(workspace, loop.tasks)
    elif loop.tasks:
        _checked_tasks(workspace, loop.tasks, loop.tasks_required)
    if loop.checkpoint and (not loop.tasks or in_folder):
        raise UserError(
            "--checkpoint needs a task file",
            cause="its words stand between the boxes of one",
            hint="-t TODO.md, or leave --checkpoint away",
        )
    _checked_globs(loop.protect)
    _checked_paths(workspace, loop.checks)
    _checked_documents(workspace, loop)
    if loop.promise:
        _checked_promise(loop.promise)
    name = checked_name(wanted.name) if wanted.name is not None else slug(workspace.name) or "loop"
    loop = msgspec.structs.replace(
        loop, id=name, workspace=str(workspace), agent=pool[0], others=tuple(pool[1:]), task_folder=in_folder
    )
    return _without_secrets(loop, wanted.secrets)


def _without_secrets(loop: Loop, secrets: Secrets) -> Loop:
    """The loop as it may be written down: where the value of a variable stands in it, a reference to that variable."""
    # Where a secret can stand by name; anywhere else it cannot stand at all.
    named: dict[str, Callable[[Any], Any]] = {
        "prompt": secrets.refer,
        "hooks": lambda hooks: rewritten(hooks, secrets.refer),
        "agent": secrets.refer,
        "others": lambda names: rewritten(names, secrets.refer),
        "agent_args": lambda words: rewritten(words, secrets.refer),
        "checks": lambda checks: tuple(check.rewritten(secrets.refer, secrets.refuse) for check in checks),
    }
    changed = {}
    for name in loop.__struct_fields__:
        if name in _OUR_OWN:
            continue
        change = named.get(name, lambda value: rewritten(value, secrets.refuse))
        try:
            changed[name] = change(getattr(loop, name))
        except Unnamed:
            raise UserError(
                f"a secret stands in the {name}",
                cause="it would be kept on the disk with the loop, and a command line can be read by everybody here",
                hint="put it into a variable (export MY_TOKEN=…) and say it again: then only the name is kept\n"
                "       if it only looks like one: `bydawn config set --user not_secret TEXT`",
            ) from None
    return msgspec.structs.replace(loop, **changed)


def _hooks(loop: Loop) -> list[str]:
    return [command for command in msgspec.structs.astuple(loop.hooks) if isinstance(command, str)]


def refuse_if_secrets_are_missing(standing: Standing, secrets: Secrets) -> None:
    loop = standing.loop
    names = secrets.missing(
        " ".join([loop.prompt, *loop.pool, *loop.agent_args, *(check.name for check in loop.checks), *_hooks(loop)])
    )
    if names:
        raise UserError(
            f"the loop {loop.id} needs the variable {names[0]}",
            cause="a secret in its settings was kept by name only, and the environment does not have it",
            hint=f"export {names[0]}=…, then `bydawn resume {standing.reference}`",
        )


def checked_agent(spec: str, folder: Path | None = None) -> str:
    """The agent's name in its normal form, which means the same from every folder."""
    agent = agents.find(spec, folder)
    if trouble := agent.missing():
        cause, hint = trouble
        raise UserError(f"the agent {agent.name} cannot be started", cause=cause, hint=hint, exit_code=7)
    return agent.name


def _checked_pool(wanted: Loop, agent_from: Path | None) -> list[str]:
    """The agents by their normal names, each of them able to do what is asked for."""
    names = [checked_agent(spec, agent_from) for spec in (wanted.agent or first_that_works(), *wanted.others)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"the agent {twice[0]} is named twice", hint="name each of them once, the best one first")
    if asked := [name for name in OF_ONE_AGENT if getattr(wanted, name) and len(names) > 1]:
        raise UserError(
            f"{_flag(asked[0])} cannot be given to {len(names)} agents at once",
            cause="what it means differs from one to the other",
            hint="set it in each agent's own configuration, or name one agent only",
        )
    found = [agents.find(name, fields=wanted.agent_json) for name in names]
    for agent in found:
        _refuse_what_it_does_not_know(agent, wanted)
    if wanted.agent_json and not any("agent_json" in agent.abilities.options for agent in found):
        raise UserError(
            "--agent-json is for agents that are any program", hint="-a 'cmd:PROGRAM ARGS', or leave it away"
        )
    return names


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}" if name != "agent_args" else "arguments after `--`"


def _is(flag: str, word: str) -> bool:
    """A flag as it can be typed: alone, with `=`, or a short one with its value right behind."""
    return word == flag or word.startswith(f"{flag}=") or (len(flag) == 2 and word.startswith(flag))


def _refuse_what_it_does_not_know(agent: Agent, wanted: Loop) -> None:
    """A flag that an agent cannot obey is an error: somebody relies on it."""
    can = agent.abilities
    unknown = [name for name in OPTIONS if getattr(wanted, name) and name not in can.options]
    if wanted.sessions is not Sessions.FRESH and not can.resumes:
        unknown.append("session")
    if unknown:
        raise UserError(
            f"the agent {agent.name} knows no {_flag(unknown[0])}",
            hint="leave it away, or choose another agent with -a",
        )
    if loosened := [flag for flag in can.permissions if any(_is(flag, word) for word in wanted.agent_args)]:
        raise UserError(
            f"{agent.name}'s own {loosened[0]} cannot be given",
            cause="it would overrule --sandbox, and nobody would see it",
            hint=f"say it to us: -s {'|'.join(level for level in Sandbox if level in can.sandboxes)}",
        )
    if wanted.effort and can.efforts and wanted.effort not in can.efforts:
        raise UserError(
            f"the agent {agent.name} knows no effort {wanted.effort!r}",
            cause="it would ignore it and go on",
            hint=f"--effort {'|'.join(can.efforts)}",
        )
    refuse_budget_without_costs(agent, wanted.limits.usd)
    level = wanted.sandbox or (Sandbox.WORKSPACE if can.sandboxes else None)
    if level and level not in can.sandboxes:
        known = ", ".join(sorted(can.sandboxes)) or "none: what it may do is up to its own command"
        raise UserError(
            f"the agent {agent.name} cannot be held to the sandbox {level.value}",
            cause=f"levels that it knows: {known}",
            hint=f"-s {max(can.sandboxes, key=list(Sandbox).index).value}" if can.sandboxes else "leave -s away",
        )


def _checked_promise(promise: Promise) -> None:
    if promise.mode is Mode.REGEX:
        _checked_pattern(promise.text)
    if is_possible(promise):
        return
    lines = len(promise.text.strip().splitlines())
    why = f"and this has {lines}" if lines > 1 else "without blanks around it, outside of code and quotes"
    raise UserError(
        f"--done-when {promise.text!r} can never be given",
        cause=f"a promise is one line of a reply, {why}",
        hint="give a few plain words: --done-when 'ALL DONE'",
    )


def refuse_budget_without_costs(agent: Agent, usd: float | None) -> None:
    """Dollars that nobody counts are no limit, though everybody would think so."""
    if usd and not agent.abilities.tells_cost:
        raise UserError(
            f"the agent {agent.name} does not say what it costs",
            cause="a budget in dollars could not be held",
            hint="give one in tokens (--budget 2Mtok), or limit rounds and time",
        )


def _checked_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        what = f"--done-when {pattern!r} is not a regular expression"
        raise UserError(what, cause=str(error), hint="mend it, or leave --done-mode regex away") from None


def _checked_tasks(workspace: Path, path: str, required: bool) -> None:
    text = read_text(workspace, path)
    if text is None and (workspace / path).exists():
        raise UserError(
            f"the task file {path} cannot be read",
            cause="it is no plain file",
            hint="give a Markdown file, or a folder",
        )
    if text is None:
        raise UserError(
            f"there is no task file {path}",
            cause=f"looked in {workspace}",
            hint="give a Markdown file with `- [ ]` boxes, or a folder with a file for each task",
        )
    if (found := tasks.read(text)).problem and found.items:
        raise UserError(f"{path} {found.problem}", hint="mend it, or give another one")
    if not found.items and required:
        raise UserError(
            f"{path} has no tasks",
            cause="no line of it is a Markdown task such as `- [ ] write the tests`",
            hint="add boxes, or leave -t away and say in the prompt what to do",
        )


def _checked_folder(workspace: Path, path: str) -> None:
    files = read_folder(workspace, path)
    reading = worklist.of_folder(files or {}, Settled())
    if reading.problem:
        raise UserError(
            f"{path} {reading.problem}",
            cause="each Markdown file right in it is a task",
            hint="mend it, or give a checklist with -t TODO.md",
        )


def _checked_globs(globs: tuple[str, ...]) -> None:
    for glob in globs:
        if glob.startswith(("/", "!")) or ".." in glob.split("/"):
            raise UserError(
                f"--protect {glob!r} protects nothing",
                cause="a glob begins in the workspace, stays in it, and takes nothing back",
                hint="give it from the workspace on: --protect 'tests/**'",
            )


def _checked_paths(workspace: Path, checks: tuple[Check, ...]) -> None:
    """What is outside, or the workspace itself, is there or not whatever a round does."""
    for check in checks:
        if isinstance(check, CommandCheck):
            continue
        flag, text = BY_KEY[check.setting].flags[0], "::TEXT" if isinstance(check, TextCheck) else ""
        path = os.path.normpath(check.path)
        if path.startswith("/") or path.split("/")[0] in (".", ".."):
            meant = path.removeprefix(f"{workspace}/")
            raise UserError(
                f"{flag} {check.path!r} is not a path from the workspace on",
                cause="a path begins in the workspace and stays in it",
                hint=f"give it from the workspace on: {flag} {meant if meant != path else 'docs/README.md'}{text}",
            )


def _checked_documents(workspace: Path, wanted: Loop) -> None:
    if wanted.progress:
        read_text(workspace, wanted.progress)  # the agent will write it; it only has to be in the workspace
    if wanted.opinions and read_text(workspace, wanted.opinions) is None:
        raise UserError(
            f"there is no file {wanted.opinions}",
            cause=f"looked in {workspace}",
            hint="write your rules into it, or leave --opinions away",
        )


def doubts(loop: Loop) -> tuple[str, ...]:
    """What a person should know before the loop starts."""
    rows = [*_doubtful_lines(loop)] if loop.tasks and not loop.task_folder else []
    rows += [
        f"--protect {glob!r} matches no file that is kept (ignored files and links are not)" for glob in _idle(loop)
    ]
    if loop.sandbox is Sandbox.READ_ONLY:
        rows.append("the agent cannot edit anything here (--sandbox read-only)")
    return tuple(rows)


def _idle(loop: Loop) -> list[str]:
    """Globs that protect nothing as things are: a typo, an ignored file, a link."""
    git = Git(folder=Path(loop.workspace), seconds=20)
    question = ("ls-files", "--cached", "--others", "--exclude-standard", "-z", "--")
    return [
        glob
        for glob in loop.protect
        if git.answer(*question, f":(glob){glob}", f":(glob){glob.rstrip('/')}/**", f":(literal){glob}") == ""
    ]


def _doubtful_lines(loop: Loop) -> tuple[str, ...]:
    """Lines that a person may take for a task, or for a checkpoint, and Markdown does not."""
    text = read_text(Path(loop.workspace), loop.tasks or "") or ""
    rows = [f"{loop.tasks}, {warning}" for warning in tasks.read(text).warnings]
    if loop.checkpoint:
        token = loop.checkpoint.token
        lines = checkpoint.overlooked(text, token)[:_LINES_NAMED]
        rows += [f"{loop.tasks}, line {line}: {token} is code here, and no checkpoint" for line in lines]
    return tuple(rows)
