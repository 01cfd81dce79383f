"""Start a session, go on with one, end one."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from bydawn.core import tasks
from bydawn.core.breakers import NewLimit
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop
from bydawn.core.values import Act, Advice, written
from bydawn.dialects.rloop import DIALECT, arguments
from bydawn.dialects.rloop.config import CLAUDE, FOLDER, NAME, TEMPLATE, Config
from bydawn.dialects.rloop.files import COMPLETE, CRASHED, STOPPED, cap, words
from bydawn.dialects.rloop.texts import boxes
from bydawn.dialects.seam import Start
from bydawn.operations import agents, resume, settings, steer
from bydawn.operations.dialects import begin, config, end
from bydawn.operations.dialects.rloop import sessions
from bydawn.operations.dialects.rloop.sessions import Session
from bydawn.operations.many import Taken
from bydawn.operations.preconditions import checked_workspace, refuse_inside_a_round
from bydawn.store.registry import checked_name, slug
from bydawn.system import programs
from bydawn.system.paths import open_folder
from bydawn.system.reading import read_text

_BIGGEST = 1 << 20  # bytes of a template


def folder_of(path: str) -> Path:
    there = Path(os.path.expanduser(path))  # noqa: PTH111 - as it is where there is no such user
    return checked_workspace(there, f"give the folder of a project: {NAME} start ~/projects/app1")


def wanted(folder: Path, found: Config, name: str | None, template: Path | None, *, in_front: bool) -> Start:
    """The loop of a new session, with everything that can be checked before anyone is asked."""
    refuse_inside_a_round()
    session = arguments.session_name(name if name is not None else folder.name)
    earlier = sessions.refuse_live(session, folder)
    is_work = open_boxes(folder, found.task_file) > 0
    tmux = "" if in_front or not programs.find("tmux", folder) else f"{NAME}-{session}"
    start = arguments.start(
        found,
        session=session,
        prompt=read_text(folder, TEMPLATE, _BIGGEST),
        mine=_template(template) if template else None,
        state=str(sessions.state_file()),
        tmux=tmux,
        in_git=begin.in_git(folder),
    )
    start = replace(start, name=_loop_name(session))
    if is_work:
        agents.refuse_if_logged_out(found.backend, folder, found.env if found.backend == CLAUDE else {})
    return _replacing(start, earlier) if earlier and is_work else start


def _loop_name(session: str) -> str:
    """The same where that is possible."""
    try:
        return checked_name(session)
    except UserError:
        return slug(session) or "loop"


def _replacing(start: Start, earlier: Session) -> Start:
    where = f"{earlier.status}, iteration {earlier.count('iteration')}, in {earlier.folder}"
    said = Advice(f"this session takes the place of an earlier {earlier.name} ({where})")
    if earlier.status != COMPLETE:
        said += Advice("; ", Act("resume", earlier.name, program=NAME), " would have gone on with it")
    return replace(start, remarks=(*start.remarks, said))


def open_boxes(folder: Path, path: str) -> int:
    """How many; a list without any box, open or not, is refused."""
    text = read_text(folder, path)
    hint = f"write tasks such as `- [ ] write the tests`, or name another file: {NAME} start … --task-file TODO.md"
    if text is None:
        raise UserError(f"there is no file {path} in {folder}", cause="it lists the tasks", hint=hint)
    if not (items := tasks.read(text).items):
        cause = "it is empty" if not text.strip() else "no line of it is a task that can be ticked"
        raise UserError(f"{path} has no tasks", cause=cause, hint=hint)
    return sum(not task.done for task in items)


def _template(path: Path) -> str:
    text = read_text(path.expanduser().absolute().parent, path.name, _BIGGEST)
    if text is None or not text.strip():
        cause = "it is empty" if text is not None else "it is not there"
        raise UserError(f"{path} cannot be the prompt", cause=cause, hint="give a text file: --prompt-template FILE")
    return text


def keep_template(workspace: Path, template: Path) -> None:
    """Copy it into the project, where it is used from now on; what a person gave is trusted."""
    text, trusted = _template(template), config.is_trusted(DIALECT, workspace)
    with open_folder(workspace, [FOLDER], make=True):
        end.rewrite(workspace, TEMPLATE, text)
    config.agree(DIALECT, workspace, [TEMPLATE], trusted=trusted)


# -- resume ------------------------------------------------------------------------------------------------------------


def tell(name: str, note: str) -> None:
    """Put a note into the next prompt of a session."""
    steer.tell(sessions.find(name, lambda _: None).standing, note)


def to_resume(
    name: str | None, say: Callable[[str], None], *, stopped: bool, rounds: int | None, accept: bool = False
) -> dict[str, Taken]:
    """What becomes of one session, or of all that are unfinished."""
    refuse_inside_a_round()
    if name is not None:
        found = sessions.find(name, say)
        _refuse_to_resume(found, rounds)
        return {name: _taken(found, rounds, accept=accept)}
    listed = [each for each in sessions.table(say) if each.status != COMPLETE]
    return {each.name: _one_of_many(each, rounds, stopped=stopped) for each in listed}


def _one_of_many(found: Session, rounds: int | None, *, stopped: bool) -> Taken:
    if found.status == CRASHED or (stopped and found.status == STOPPED):
        return _taken(found, rounds)
    if found.status == STOPPED:
        return Taken(standing=found.standing, skipped="a person stopped it; --stopped takes it too")
    told = sessions.trouble(found).removeprefix(f"{found.name} ")
    return Taken(standing=found.standing, skipped=told or f"it is {found.status}")


def _taken(found: Session, rounds: int | None, *, accept: bool = False) -> Taken:
    standing = found.standing
    if found.is_alive:
        return Taken(standing=standing, skipped="it is running")
    limits = [NewLimit("rounds", lambda _: rounds)] if rounds else []
    try:
        return Taken(standing=standing, plan=resume.plan(standing, settings.secrets(), limits=limits, accept=accept))
    except UserError as refused:
        ours = Act("resume", found.name, program=NAME)
        hint = written(refused.hint, lambda act: ours if act.verb == "resume" else act)
        again = UserError(refused.what, cause=refused.cause, hint=hint, exit_code=refused.exit_code)
        return Taken(standing=standing, refused=again)


def _refuse_to_resume(found: Session, rounds: int | None) -> None:
    if found.status == COMPLETE:
        hint = f"add tasks and start again: `{NAME} start {found.folder}`"
        raise UserError(f"{found.name} is complete", cause="no box was open", hint=hint)
    done, highest = found.standing.state.rounds, rounds or cap(found.standing.loop, found.standing.state)
    if done >= highest and not found.is_alive:
        raise UserError(
            f"{found.name} has done {done} of {highest} iterations",
            cause=f"{boxes(found.remaining or 0)} still open",
            hint=f"give it more: `{NAME} resume {found.name} --max-iterations {2 * done}`",
        )


# -- stop --------------------------------------------------------------------------------------------------------------


def stop(found: Session) -> None:
    """Have it end now; `until_it_is_gone` waits for that, so that several end at the same time."""
    refuse_inside_a_round()
    steer.stop(found.standing, now=True)


def until_it_is_gone(found: Session) -> None:
    """Wait until nothing of it is alive."""
    end.until_it_is_gone(found.standing)
    _close_view(found.standing.loop)


def _close_view(loop: Loop) -> None:
    """It would close by itself, a moment later. A session of that name that shows something else is the person's."""
    import subprocess  # tmux is rare

    tmux = words(loop)["tmux"]
    if tmux and (program := programs.find("tmux", Path(loop.workspace))):
        is_ours = "#{m:*bydawn*attach*,#{pane_start_command}}"
        close = [program, "if-shell", "-F", "-t", f"={tmux}:", is_ours, f"kill-session -t '={tmux}'"]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(close, capture_output=True, check=False, timeout=3)
