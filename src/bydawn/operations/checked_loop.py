"""Check everything about the requested loop before anything is written or spent."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bydawn import agents
from bydawn.core import checkpoint, tasks, worklist
from bydawn.core.agent import Agent
from bydawn.core.commits import NAMES, unknown_names
from bydawn.core.errors import UserError
from bydawn.core.globs import is_protected
from bydawn.core.loop import (
    OF_THE_LOOP,
    Check,
    CommandCheck,
    CommitMode,
    Loop,
    Mode,
    Promise,
    Sandbox,
    Sessions,
    TextCheck,
)
from bydawn.core.notices import is_plain
from bydawn.core.promise import is_possible
from bydawn.core.redact import Secrets, Unnamed, rewritten
from bydawn.core.secret_settings import SecretSettings, variables
from bydawn.core.state import Settled
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import Act, Advice
from bydawn.operations.agents import first_that_works
from bydawn.operations.check_programs import refuse_missing_programs
from bydawn.settings.table import BY_KEY
from bydawn.store.registry import Standing, checked_name, slug
from bydawn.system.reading import read_folder, read_text

if TYPE_CHECKING:  # `resume` has no request
    from bydawn.operations.loop_request import LoopRequest

# May refer to a secret by name, as a check's command may; in any other field a secret is refused.
_REFERRING = {"prompt", "hooks", "agent", "others", "agent_args"}
OF_ONE_AGENT = ("model", "profile", "effort", "agent_args")  # each agent takes other values
OPTIONS = (*OF_ONE_AGENT, "agent_commits")

_LINES_NAMED = 3


def checked_loop(
    wanted: "LoopRequest", workspace: Path, *, repairs: bool = False, settled: Settled | None = None
) -> Loop:
    """The requested loop. Raises `UserError`; writes nothing. `repairs`: it puts back a list that a crash damaged.

    `settled`: what it has on record, if it takes the place of one that is there.
    """
    loop = wanted.loop
    if not loop.prompt.strip() and not loop.tasks:
        raise UserError(
            "no prompt and no task file",
            hint='say what to do (for example "fix the failing tests"), or pass a checklist: -t TODO.md',
        )
    if loop.prompt.strip() == PLACEHOLDER:
        raise UserError(
            f"{PLACEHOLDER!r} is a placeholder, not a goal",
            hint='say what to do; for example: "fix the failing tests"',
        )
    pool = _checked_pool(loop, workspace, wanted.agent_from)
    in_folder = bool(loop.tasks) and (workspace / str(loop.tasks)).is_dir()
    if loop.tasks and in_folder:
        _checked_folder(workspace, loop.tasks, settled or Settled())
    elif loop.tasks and not repairs:
        _checked_tasks(workspace, loop.tasks, loop.tasks_required)
    if loop.checkpoint and (not loop.tasks or in_folder):
        raise UserError(
            "--checkpoint needs a task file",
            cause="a checkpoint is a line between two tasks in that file",
            hint="add -t TODO.md, or drop --checkpoint",
        )
    _checked_globs(loop.protect, "--protect", "protects nothing")
    _checked_globs(tuple(glob.removeprefix("!") for glob in loop.tests), "--tests", "names no test")
    if all(is_protected(name, loop.tests) for name in ("any.thing", "any/thing/any.thing")):
        raise UserError("--tests cannot be everything", hint="name the folders with tests: --tests 'qa/**'")
    _checked_variables(loop.pass_env)
    if any(not is_plain(address) for address in loop.notify):
        from bydawn.operations.notices import refuse_unknown  # few loops have one

        refuse_unknown(loop.notify)
    writable = tuple(map(_checked_folder_to_write, loop.box_write))
    _checked_paths(workspace, loop.checks)
    refuse_missing_programs(loop)
    _checked_documents(workspace, loop)
    _checked_commits(workspace, loop)
    if loop.promise:
        _checked_promise(loop.promise)
    name = checked_name(wanted.name) if wanted.name is not None else slug(workspace.name) or "loop"
    loop = msgspec.structs.replace(
        loop,
        id=name,
        workspace=str(workspace),
        agent=pool[0],
        others=tuple(pool[1:]),
        task_folder=in_folder,
        box_write=writable,
    )
    return _without_secrets(loop, wanted.secrets)


def _without_secrets(loop: Loop, secrets: Secrets) -> Loop:
    """The loop as it may be written to disk: each secret replaced by the name of the variable that holds it."""
    changed: dict[str, Any] = {}
    for name in loop.__struct_fields__:
        if name in OF_THE_LOOP or name in SecretSettings.__struct_fields__:
            continue
        try:
            if name == "checks":
                changed[name] = tuple(check.rewritten(secrets.refer, secrets.refuse) for check in loop.checks)
            else:
                change = secrets.refer if name in _REFERRING else secrets.refuse
                changed[name] = rewritten(getattr(loop, name), change)
        except Unnamed:
            raise UserError(
                f"the {name} contains a secret",
                cause="it would be saved with the loop, and any user here can read command lines",
                hint=Advice(
                    "put it in a variable (export MY_TOKEN=…) and run this again: then only the name is saved\n",
                    *("       if it only looks like a secret: ", Act("config set --user", "not_secret", "TEXT")),
                ),
            ) from None
    return msgspec.structs.replace(loop, **changed)


def refuse_if_secrets_are_missing(standing: Standing, secrets: Secrets) -> None:
    """Those of a whole run."""
    loop = standing.loop
    hooks = [command for commands in loop.hooks.commands.values() for command in commands]
    refuse_if_agents_lack_secrets(standing, secrets, [loop.prompt, *(check.name for check in loop.checks), *hooks])


def refuse_if_agents_lack_secrets(standing: Standing, secrets: Secrets, others: Sequence[str] = ()) -> None:
    """Those of its agents, and of `others` of its settings."""
    loop = standing.loop
    apart = SecretSettings.of(loop)
    if apart == apart.masked != SecretSettings():
        raise UserError(
            f"the secrets of the loop {loop.id} are missing",
            cause=f"{standing.folder.secrets} is gone or damaged; it held values of its settings",
            hint="restore that file, or start another loop with --new",
        )
    if names := secrets.missing(" ".join([*loop.pool, *loop.agent_args, *others])):
        raise UserError(
            f"the loop {loop.id} needs the environment variable {names[0]}",
            cause="its settings refer to a secret by that name, and it is not set",
            hint=f"export {names[0]}=…, then run this command again",
        )


def checked_agent(
    spec: str, workspace: Path, sandbox: Sandbox | None, folder: Path | None = None, env: tuple[str, ...] = ()
) -> str:
    """The agent's full name, which means the same in every folder."""
    agent = agents.find(spec, folder)
    if missing := agent.missing(str(workspace)):
        cause, hint = missing
        raise UserError(f"cannot start {agent.name}", cause=cause, hint=hint, exit_code=7)
    if agents.is_cli(agent.name) and sandbox is not Sandbox.FULL:
        trouble = agents.cli(agent.name).trouble({**os.environ, **variables(env)})
        if trouble:
            what = f"{agent.name} could not run a single command"
            raise UserError(what, cause=trouble.detail, hint=trouble.hint, exit_code=7)
    return agent.name


def _checked_pool(wanted: Loop, workspace: Path, agent_from: Path | None) -> list[str]:
    """The full names of the agents, each able to do what is asked."""
    specs = (wanted.agent or first_that_works(workspace), *wanted.others)
    if wanted.recording:  # it is only prepared now; whether its agent works is asked when it begins
        names = [agents.find(spec, agent_from).name for spec in specs]
    else:
        names = [checked_agent(spec, workspace, wanted.sandbox, agent_from, wanted.agent_env) for spec in specs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"the agent {twice[0]} is given twice", hint="give each agent once, the best one first")
    if asked := [name for name in OF_ONE_AGENT if getattr(wanted, name) and len(names) > 1]:
        raise UserError(
            f"{_flag(asked[0])} cannot be given to {len(names)} agents at once",
            cause="each agent has its own values for it",
            hint="set it in each agent's own configuration, or use only one agent",
        )
    found = [agents.find(name, fields=wanted.agent_json) for name in names]
    for agent in found:
        _refuse_what_it_does_not_know(agent, wanted)
    if wanted.agent_json and not any("agent_json" in agent.abilities.options for agent in found):
        raise UserError(
            '--agent-json only works with a custom program (-a "cmd:…")',
            hint="add -a 'cmd:PROGRAM ARGS', or drop --agent-json",
        )
    return names


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}" if name != "agent_args" else "arguments after `--`"


def _is(flag: str, word: str) -> bool:
    """Is this word the flag? Alone, with `=`, or a short one with its value attached."""
    return word == flag or word.startswith(f"{flag}=") or (len(flag) == 2 and word.startswith(flag))


def _refuse_what_it_does_not_know(agent: Agent, wanted: Loop) -> None:
    """A flag the agent does not support is an error: the person who set it relies on it."""
    can = agent.abilities
    unknown = [name for name in OPTIONS if getattr(wanted, name) and name not in can.options]
    if wanted.sessions is not Sessions.FRESH and not can.resumes:
        unknown.append("session")
    if unknown:
        raise UserError(
            f"{agent.name} does not support {_flag(unknown[0])}",
            hint=f"drop {_flag(unknown[0])}, or choose another agent with -a",
        )
    if loosened := [flag for flag in can.permissions if any(_is(flag, word) for word in wanted.agent_args)]:
        raise UserError(
            f"{loosened[0]} cannot be passed on to {agent.name}",
            cause="it would silently override --sandbox",
            hint=f"set the sandbox here instead: -s {'|'.join(level for level in Sandbox if level in can.sandboxes)}",
        )
    if wanted.effort and can.efforts and wanted.effort not in can.efforts:
        raise UserError(
            f"{agent.name} does not support --effort {wanted.effort}",
            cause="it would ignore it without a word",
            hint=f"use --effort {'|'.join(can.efforts)}",
        )
    refuse_budget_without_costs(agent, wanted.limits.usd)
    level = wanted.sandbox or (Sandbox.WORKSPACE if can.sandboxes else None)
    if level and level not in can.sandboxes:
        known = ", ".join(sorted(can.sandboxes)) or "none; its own command decides what it may do"
        raise UserError(
            f"{agent.name} does not support --sandbox {level.value}",
            cause=f"it supports: {known}",
            hint=f"use -s {max(can.sandboxes, key=list(Sandbox).index).value}" if can.sandboxes else "drop -s",
        )


def _checked_promise(promise: Promise) -> None:
    if promise.mode is Mode.REGEX:
        try:
            re.compile(promise.text)
        except re.error as error:
            what = f"--done-when {promise.text!r} is not a regular expression"
            raise UserError(what, cause=str(error), hint="fix it, or drop --done-mode regex") from None
    if is_possible(promise):
        return
    lines = len(promise.text.strip().splitlines())
    why = f"and this has {lines}" if lines > 1 else "without spaces around it, outside code and quotes"
    pattern = "no words match it: nothing comes before `^` or after `$` on a line"
    raise UserError(
        f"--done-when {promise.text!r} can never be given",
        cause=pattern if promise.mode is Mode.REGEX else f"a promise is one line of a reply, {why}",
        hint="use a few plain words: --done-when 'ALL DONE'",
    )


def refuse_budget_without_costs(agent: Agent, usd: float | None) -> None:
    """A dollar limit that no one can measure would only look like a limit."""
    if usd and not agent.abilities.tells_cost:
        raise UserError(
            f"{agent.name} does not report its cost",
            cause="so a budget in dollars would never stop it",
            hint="use a token budget (--budget 2Mtok), or limit rounds or time",
        )


def _checked_tasks(workspace: Path, path: str, required: bool) -> None:
    text = read_text(workspace, path)
    if text is None and (workspace / path).exists():
        raise UserError(
            f"the task file {path} is not a regular file",
            hint="use a Markdown file or a folder",
        )
    if text is None:
        raise no_task_file(path, workspace)
    if (found := tasks.read(text)).problem and found.items:
        raise UserError(f"{path} {found.problem}", hint="fix it, or use another file")
    if not found.items and required:
        raise UserError(
            f"{path} has no tasks",
            cause="it has no Markdown task such as `- [ ] write the tests`",
            hint="add boxes, or drop -t and describe the work in the prompt",
        )


def no_task_file(path: str, folder: Path) -> UserError:
    hint = "use a Markdown file with `- [ ]` boxes, or a folder with one file per task"
    return UserError(f"there is no task file {path}", cause=f"looked in {folder}", hint=hint)


def _checked_folder(workspace: Path, path: str, settled: Settled) -> None:
    files = read_folder(workspace, path)
    reading = worklist.of_folder(files or {}, settled)
    if reading.problem:
        raise UserError(
            f"{path} {reading.problem}",
            cause="each Markdown file directly in that folder is a task",
            hint="fix it, or use a checklist: -t TODO.md",
        )


def _checked_globs(globs: tuple[str, ...], flag: str, what: str) -> None:
    for glob in globs:
        if glob.startswith(("/", "!")) or ".." in glob.split("/"):
            raise UserError(
                f"{flag} {glob!r} {what}",
                cause="globs are relative to the workspace; no leading / or !, no ..",
                hint=f"for example: {flag} 'tests/**'",
            )


def _checked_variables(names: tuple[str, ...]) -> None:
    for name in names:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            cause = "it takes the name of a variable; its value comes from your environment"
            raise UserError(f"--pass-env {name!r} is not a name", cause=cause, hint="for example: --pass-env NPM_TOKEN")


def _checked_folder_to_write(given: str) -> str:
    path = Path(given).expanduser()
    if not path.is_absolute():
        cause = "it is not in the workspace, where checks can write anyway"
        raise UserError(f"--box-write {given!r} must start with / or ~", cause=cause, hint="use a full path: ~/.cargo")
    if not path.is_dir():
        hint = f"create it first: mkdir -p {shlex.quote(str(path))}"
        raise UserError(f"--box-write {given}: there is no such folder", hint=hint)
    return str(path.resolve())


def _checked_paths(workspace: Path, checks: tuple[Check, ...]) -> None:
    """No round changes whether a path outside the workspace, or the workspace itself, exists."""
    for check in checks:
        if isinstance(check, CommandCheck):
            continue
        flag, text = BY_KEY[check.setting].flags[0], "::TEXT" if isinstance(check, TextCheck) else ""
        path = os.path.normpath(check.path)
        if path.startswith("/") or path.split("/")[0] in (".", ".."):
            meant = path.removeprefix(f"{workspace}/")
            raise UserError(
                f"{flag} {check.path!r} must be a path inside the workspace",
                hint=f"for example: {flag} {meant if meant != path else 'docs/README.md'}{text}",
            )


def _checked_commits(workspace: Path, wanted: Loop) -> None:
    if unknown := unknown_names(wanted.commit_message or ""):
        names = ", ".join(f"{{{name}}}" for name in NAMES)
        raise UserError(f"--commit-message has no {{{unknown[0]}}}", hint=f"it fills in {names}")
    if wanted.worktree and wanted.agent_commits:
        cause = "there every round is committed by bydawn, and .git is not in the agent's folder"
        raise UserError("--agent-commits cannot be used with --worktree", cause=cause, hint="drop one of the two")
    if wanted.commit is CommitMode.REQUIRE and not wanted.worktree and (why := commit_trouble(workspace)):
        raise UserError(
            "nothing can be committed here (--commit require)", cause=why, hint="fix that, or use --commit on"
        )


def commit_trouble(workspace: Path) -> str:
    from bydawn.worktree.commits import trouble  # few loops commit

    return trouble(workspace)


def _checked_documents(workspace: Path, wanted: Loop) -> None:
    if wanted.progress:
        # The agent will write it; here we only refuse a path outside the workspace.
        read_text(workspace, wanted.progress)
    if wanted.opinions and read_text(workspace, wanted.opinions) is None:
        raise UserError(
            f"there is no file {wanted.opinions}",
            cause=f"looked in {workspace}",
            hint="write your rules there, or drop --opinions",
        )


def doubts(loop: Loop, secrets: Secrets) -> tuple[str, ...]:
    """Warnings to show before the loop starts."""
    rows = [*_doubtful_lines(loop)] if loop.tasks and not loop.task_folder else []
    rows += [f"--protect {glob!r} matches no file (what is behind a link cannot be protected)" for glob in _idle(loop)]
    rows += [f"--pass-env {name}: no such variable is set" for name in loop.pass_env if name not in os.environ]
    commands = [check for check in loop.checks if isinstance(check, CommandCheck)]
    for name in sorted(secrets.withheld(os.environ) - {*loop.pass_env}):
        if any(re.search(rf"\${{?{re.escape(name)}\b", check.command) for check in commands):
            rows.append(f"checks run without {name}, which looks like a secret; --pass-env {name} gives it to them")
    if loop.commit is CommitMode.ON and not loop.worktree and (why := commit_trouble(Path(loop.workspace))):
        rows.append(f"nothing can be committed now (--commit on): {why}")
    if loop.sandbox is Sandbox.READ_ONLY:
        rows.append("the agent cannot change any file (--sandbox read-only)")
    return tuple(rows)


def _idle(loop: Loop) -> list[str]:
    """Globs that match nothing right now: a typo, or a folder behind a link."""
    if not loop.protect:
        return []
    from bydawn.worktree.protected import ProtectedFiles

    root = Path(loop.workspace)
    return [glob for glob in loop.protect if not ProtectedFiles(root, root, [glob]).stamps()]


def _doubtful_lines(loop: Loop) -> tuple[str, ...]:
    """Lines that look like a task or a checkpoint to a person, but not to Markdown."""
    text = read_text(Path(loop.workspace), loop.tasks or "") or ""
    rows = [f"{loop.tasks}, {warning}" for warning in tasks.read(text).warnings]
    if loop.checkpoint:
        token = loop.checkpoint.token
        lines = checkpoint.overlooked(text, token)[:_LINES_NAMED]
        rows += [f"{loop.tasks}, line {line}: {token} is inside code, so it is not a checkpoint" for line in lines]
    return tuple(rows)
