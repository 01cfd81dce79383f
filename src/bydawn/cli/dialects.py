"""`bydawn as NAME …`: another tool's command line, made from its table, and what its requests lead to."""

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from bydawn import __version__, dialects
from bydawn.cli import command as parsing
from bydawn.cli import render
from bydawn.cli.foreground import be_trusted, run_in_foreground, warn_if_unbounded
from bydawn.cli.voice import DialectVoice
from bydawn.core.errors import UserError
from bydawn.core.text import plain, shorten
from bydawn.core.values import Status
from bydawn.dialects.seam import Adopted, Cancel, Command, Dialect, Install, List, Option, Request, Resume, Show, Start
from bydawn.operations import places
from bydawn.operations.dialects import begin, end, helpers, loops
from bydawn.operations.plan import Plan
from bydawn.operations.preconditions import checked_workspace
from bydawn.process.guardian import Tether
from bydawn.store.registry import Standing


@parsing.command(
    name="as",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("name", required=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def as_(ctx: click.Context, name: str | None, words: tuple[str, ...]) -> int:
    """Speak as another tool: its command line and its files, on this engine.

    \b
    NAME is one of
      waylon-smithers

    \b
    Examples
      bydawn as waylon-smithers --help
      bydawn as waylon-smithers "fix it" --full-auto
    """
    if name in (None, "-h", "--help"):
        click.echo(ctx.get_help())
        return 0
    if name not in dialects.TABLE:
        raise UserError(f"there is no dialect {name!r}", hint=f"there are: {', '.join(dialects.TABLE)}")
    return speak(dialects.find(name), [*words], ctx.obj)


def speak(dialect: Dialect, words: list[str], tether: Tether | None) -> int:
    """One command line of another tool; the exit code."""
    if words == ["--version"]:
        click.echo(f"{dialect.name}, spoken by bydawn {__version__}")
        return 0
    named = {command.name: command for command in dialect.commands}
    command = named[words[0]] if words and words[0] in named and words[0] else named[""]
    rest = words[1:] if command.name else words
    if not words:
        rest = ["--help"]
    parser = parser_of(dialect, command, lambda request, workspace: _obey(dialect, request, workspace, tether))
    name = f"{dialect.name} {command.name}".strip()
    try:
        code = parser.main(rest, prog_name=name, standalone_mode=False)
    except click.UsageError as error:
        # Where a value is missing click names nobody, and the hint would send people to the command around this one.
        error.ctx = error.ctx or click.Context(parser, info_name=name)
        raise
    return code if isinstance(code, int) else 0


def parser_of(dialect: Dialect, command: Command, obey: Callable[[Request, Path], int]) -> click.Command:
    """A command of the table as one of click's."""

    def run(**values: Any) -> int:
        _refuse_stray_command(dialect, values.get("prompt"))
        workspace = _workspace(values.pop("cd", None))
        return obey(dialect.read_args(command.name, values, loops.place_of(workspace)), workspace)

    params: list[click.Parameter] = [_option(option) for option in command.options]
    if command.argument:
        params.insert(0, click.Argument([command.argument.lower()], required=False, metavar=command.argument))
    return parsing.Command(
        name=command.name or dialect.name,
        callback=run,
        params=params,
        help=command.what[0].upper() + command.what[1:],
        epilog=_epilog(dialect, command),
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _workspace(given: str | None) -> Path:
    if given is not None and not given.strip():
        raise UserError("--cd is empty", cause="nothing stands there", hint="give it a folder, or leave --cd away")
    return checked_workspace(Path(given) if given else Path.cwd())


def _refuse_stray_command(dialect: Dialect, prompt: str | None) -> None:
    """`waylon-smithers --cd . status` means the command, not a loop with that word for a task."""
    word = (prompt or "").strip().lower()
    if word in {"help", "version", *(command.name for command in dialect.commands if command.name)}:
        hint = f"`{dialect.name} {word} …`: the command stands first, its options behind it"
        raise UserError(f"{word!r} alone is no task", cause="it looks like a command in the wrong place", hint=hint)


def _option(option: Option) -> click.Option:
    if option.switch:
        return parsing.Option([option.flag], is_flag=True, help=option.what)
    kind: Any = click.Choice(option.choices) if option.choices else int if option.number else str
    return parsing.Option(
        [option.flag],
        type=kind,
        metavar=option.metavar or "|".join(option.choices),
        default=option.default,
        show_default=option.default is not None,
        help=option.what,
    )


def _epilog(dialect: Dialect, command: Command) -> str:
    rows = ["\b", "Examples", *(f"  {example}" for example in command.examples), ""] if command.examples else []
    if not command.name:
        others = [(each.name, each.what) for each in dialect.commands if each.name]
        rows += ["\b", "Commands", *(f"  {dialect.name} {name:<16} {what}" for name, what in others), ""]
        rows += ["\b", "Exit codes", "  0 completed  2 wrong usage  3 blocked  4 cap reached  5 HARD STOP"]
        rows += ["  7 Codex failed  8 already running  130 interrupted or canceled"]
    return "\n".join(rows)


def _obey(dialect: Dialect, request: Request, workspace: Path, tether: Tether | None) -> int:
    match request:
        case Start():
            return _begin(dialect, request, workspace, tether)
        case Resume():
            return _resume(dialect, request, workspace, tether)
        case Show():
            return _show(dialect, request, workspace)
        case List():
            return _list(dialect, request, workspace)
        case Cancel():
            return _cancel(dialect, request, workspace)
        case Install():
            return _install(dialect, request, workspace)


def _begin(
    dialect: Dialect,
    start: Start,
    workspace: Path,
    tether: Tether | None,
    adopted: Adopted | None = None,
    request: Resume | None = None,
) -> int:
    """A new loop, or one that the original program left; if it is refused on the way, its name is free again."""
    gathered = begin.gather(dialect, start, workspace)
    fact = adopted.fact if adopted else None
    if gathered.has_project:
        # All is checked before anybody is asked, and nothing is on the disk while they think: Ctrl-C ends us there.
        begin.give_back(start, begin.plan(dialect, start, gathered, workspace, fact))
        be_trusted(gathered, workspace, loops.registry_of(gathered).root)
    planned = begin.plan(dialect, start, gathered, workspace, fact)
    try:
        begin.secure(dialect, planned)
        if adopted:
            _take_over(dialect, planned, adopted)
        return _work(dialect, planned, tether, request)
    finally:
        begin.give_back(start, planned)


def _take_over(dialect: Dialect, planned: Plan, adopted: Adopted) -> None:
    begin.keep_original(dialect, planned)
    click.echo(f"  Taking over {_told(adopted.fact.source, 200)}. Its task, as the file says it:")
    click.echo(f"  {_told(adopted.start.prompt, 1000)}")


def _work(dialect: Dialect, planned: Plan, tether: Tether | None, request: Resume | None = None) -> int:
    assert tether  # noqa: S101 - what starts a loop runs under a guardian
    warn_if_unbounded(planned)
    if request:
        planned = msgspec.structs.replace(planned, raises=lambda limits: dialect.raised(limits, request))
    return run_in_foreground(tether, planned, voice=DialectVoice(dialect))


def _resume(dialect: Dialect, request: Resume, workspace: Path, tether: Tether | None) -> int:
    left = loops.left(dialect, request.name, workspace)
    name = left.id if left else request.name
    if name and loops.look_for(dialect, name, workspace) is None:
        adopted = begin.left_behind(dialect, name, request, loops.place_of(workspace))
        if adopted:
            begin.agree(adopted, request)
            return _begin(dialect, adopted.start, workspace, tether, adopted, request)
    standing = loops.find(dialect, request.name, workspace)
    return _work(dialect, begin.plan_resume(dialect, request, standing), tether, request)


def _show(dialect: Dialect, request: Show, workspace: Path) -> int:
    if left := loops.left(dialect, request.name, workspace):
        return _show_left(dialect, left, workspace, request)
    row, standing = loops.shown(dialect, request, workspace)
    if request.as_json:
        _emit(row.state)
        return 0
    state = row.state
    click.echo(f"  {row.id}  {row.status}\n")
    rows = {
        "Task": shorten(plain(str(state["prompt"])), 300),
        "Where": state["workspace_root"],
        "Iteration": f"{state['iteration']} of {state['max_iterations']}",
        "Session": state["codex"]["session_id"] or "—",
        "State file": _if_there(standing, dialect.state_path(standing.loop)),
        "Artifacts": _if_there(standing, state["artifacts"]["dir"]),
        "Last message": _last_message(standing, state["artifacts"]),
        "Reason": state["reason"],
    }
    for label, text in rows.items():
        if text:
            render.field(label, str(text), 16)
    if standing.state.stopped:
        steps = DialectVoice(dialect).next_steps(standing)
        _next([step for step in steps if f"{dialect.name} status" not in step[0]])
    elif row.status == Status.CRASHED:
        again = places.typed(dialect, workspace, "resume", "--loop-id", row.id)
        render.commands([(again, "go on from where it was")])
    return 0


def _next(steps: list[tuple[str, str]]) -> None:
    """What can be pasted, and advice that no command can take."""
    advice = [what for command, what in steps if not command]
    render.commands([step for step in steps if step[0]])
    if len(advice) == len(steps) > 0:
        click.echo("\n  Next")
    for what in advice:
        render.field("", what, 4)


def _if_there(standing: Standing, path: str) -> str:
    """A file of the loop, unless it was cleaned up."""
    return path if os.path.lexists(Path(standing.loop.workspace) / path) else ""


def _last_message(standing: Standing, artifacts: Mapping[str, str | None]) -> str:
    name = artifacts["last_message_path"]
    return _if_there(standing, f"{artifacts['dir']}{name}") if name else "—"


def _show_left(dialect: Dialect, row: loops.Row, workspace: Path, request: Show) -> int:
    """A loop that the original program left: nothing but its file speaks for it."""
    if request.as_json:
        _emit(row.state)
        return 0
    click.echo(f"  {_told(row.id, 80)}  {_told(row.status, 40)}, as its file says\n")
    codex = row.state.get("codex")
    rows = {
        "Task": row.state.get("prompt"),
        "Iteration": _iteration(row),
        "Session": codex.get("session_id") if isinstance(codex, dict) else None,
        "State file": dialect.original_path(row.id),
    }
    for label, value in rows.items():
        if value:
            render.field(label, _told(value, 300), 16)
    click.echo(f"\n  {_origin(dialect, workspace, row)}")
    return 0


def _list(dialect: Dialect, request: List, workspace: Path) -> int:
    rows = loops.listed(dialect, workspace)
    if request.as_json:
        _emit({"loops": [row.state for row in rows]})
        return 0
    if not rows:
        click.echo(f"  No loops in {plain(str(workspace))}.")
    for row in rows:
        note = f"   {_origin(dialect, workspace, row)}" if row.original else ""
        click.echo(f"  {_told(row.id, 80)}  {_told(row.status, 40)}  iteration {_iteration(row)}{note}")
    return 0


def _iteration(row: loops.Row) -> str:
    return " of ".join(_told(row.state.get(key, "?"), 20) for key in ("iteration", "max_iterations"))


def _origin(dialect: Dialect, workspace: Path, row: loops.Row) -> str:
    begun = "begun by the original program"
    if row.status == "completed":
        return begun
    if not places.can_be_named(row.id):
        return f"{begun}; a loop of ours cannot be called so"
    return f"{begun}; `{places.typed(dialect, workspace, 'resume', '--loop-id', row.id)}` takes it over"


def _told(value: object, size: int) -> str:
    """What a file says, which anybody may have written: one short line that does nothing to a terminal."""
    return shorten(plain(str(value)), size)


def _cancel(dialect: Dialect, request: Cancel, workspace: Path) -> int:
    if left := loops.left(dialect, request.name, workspace):
        end.cancel_left(dialect, left, workspace)
        click.echo(f"  {_told(left.id, 80)} is canceled, as its file says now. The original program began it:")
        click.echo("  if that still runs, end it there (Ctrl-C); the files that it wrote are all still here.")
        return 0
    standing, cleaned = end.cancel(dialect, request, workspace)
    stopped = standing.state.stopped
    click.echo(f"  {standing.loop.id} is {dialect.word(stopped) if stopped else standing.status}.")
    if cleaned:
        many = f"{_files(cleaned.removed)} {'was' if len(cleaned.removed) == 1 else 'were'}"
        how = ", as written for this loop; nothing else was touched" if cleaned.removed else ""
        click.echo(f"  {many} removed{how}.")
        for path, why in cleaned.left.items():
            click.echo(f"  left: {plain(path)} ({why})")
        for path, why in cleaned.stuck.items():
            click.echo(f"  not removed: {plain(path)} ({why})")
        if cleaned.stuck:
            what = f"{_files(cleaned.stuck)} of this loop could not be removed"
            hint = "look at the permissions of the folder, then ask again"
            raise UserError(what, cause=next(iter(cleaned.stuck.values())), hint=hint, exit_code=1)
    return 0


def _files(paths: Collection[str]) -> str:
    return "1 file" if len(paths) == 1 else f"{len(paths)} files"


def _install(dialect: Dialect, request: Install, workspace: Path) -> int:
    for path, fate, remark in helpers.install(dialect, request, workspace):
        click.echo(f"  {plain(str(path))}: {fate}{f' ({remark})' if remark else ''}")
    return 0


def _emit(data: Any) -> None:
    """In the other tool's own format, so without anything of ours around it."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
