"""What the commands of a dialect do: each of them on the one engine, with its loops among all others."""

import os
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from bydawn import agents, lock, views
from bydawn.core.errors import UserError
from bydawn.core.facts import End, LoopAdopted
from bydawn.core.history import History
from bydawn.core.layers import Given, Settings
from bydawn.core.loop import Dialect as Spoken
from bydawn.core.loop import Loop, Sandbox
from bydawn.core.settings import BY_KEY, Layer
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.dialects.seam import Adopted, Cancel, Copy, Dialect, Install, Place, Resume, Show, Start
from bydawn.disk import make_private, real_folder, replace_text
from bydawn.files import read_text
from bydawn.git import Git
from bydawn.host.registry import Registry, Standing, checked_name, standing_of
from bydawn.ledger import records
from bydawn.operations import settings, start, steer
from bydawn.operations.wish import Wish

_SAME_SECOND = 100  # loops that may start in one, in one folder
_LOOKED_AT = 1000  # iterations whose files must not be there already
_LONGEST_STATE = 16 << 20
_PATIENCE = 30.0  # seconds that a canceled loop gets to end its agent


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One loop of a dialect as it stands; `state` is what its state file says, and true."""

    id: str
    status: str
    state: Mapping[str, Any]
    original: bool = False  # begun by the other program, and not taken over yet


def registry_of(gathered: Settings | None = None) -> Registry:
    """All loops of this user, wherever their own settings keep them."""
    folder = (gathered or settings.gather(None)).text("state_dir")
    return Registry(Path(folder) if folder else None)


def place_of(workspace: Path) -> Place:
    return Place(folder=str(Path.cwd()), workspace=str(workspace), now=datetime.now().astimezone())


# -- start and go on ---------------------------------------------------------------------------------------------------


def gather(dialect: Dialect, request: Start, workspace: Path) -> Settings:
    """All layers, with what the dialect says on top of them."""
    gathered = settings.gather(workspace, [_given(dialect, *row) for row in request.settings.items()])
    gathered.refuse_problems()
    return gathered


def _given(dialect: Dialect, key: str, words: tuple[str, ...]) -> Given:
    try:
        value = BY_KEY[key].kind.from_words(words) if words else None
    except ValueError as error:
        hint = f"`{dialect.name} --help` says what there is"
        raise UserError(f"{' '.join(words)!r} cannot be the {key}", cause=str(error), hint=hint) from None
    return Given(key=key, value=value, layer=Layer.FLAG, where=dialect.name)


def plan(
    dialect: Dialect, request: Start, gathered: Settings, workspace: Path, adopts: LoopAdopted | None = None
) -> start.Plan:
    """A new loop, checked in every respect; a name that nobody chose is reserved by an empty folder, no more."""
    if not request.outside_git and not _in_git(workspace):
        raise UserError(
            f"{workspace} is in no git repository",
            cause="what an agent changes there could not be told from what was there before",
            hint="`git init`, or say --skip-git-repo-check",
        )
    _refuse_odd_name(request.name)
    # What is a folder, and where links lead, is for us to know: dialects have never seen a disk.
    paths = {key: _placed(workspace, path) for key, path in request.paths.items()}
    words = {**request.words, **paths}
    spoken = Spoken(name=dialect.name, words=words, files=dialect.files(words))
    wish = settings.wish(gathered, workspace, name=request.name, new=True)
    _refuse_dollars(dialect, gathered, wish)
    wish = msgspec.structs.replace(wish, prompt=request.prompt, dialect=spoken, **request.wish)
    planned = start.plan(wish)
    if request.named and planned.loop.id != request.name:
        raise _taken(dialect, workspace, request.name)
    planned = planned if request.named else reserved(planned)
    try:
        named = [path for path in paths.values() if not path.endswith("/")]
        views.refuse_unwritable(workspace, [*named, *dialect.written(planned.loop, LoopState())])
        _refuse_foreign(workspace, planned.loop, paths.values())
        if adopts is None:
            _refuse_overwriting(dialect, planned, workspace)
    except BaseException:  # whatever it is, nothing comes of this loop
        give_back(request, planned)
        raise
    remarks = (*request.remarks, *planned.warnings)
    return msgspec.structs.replace(planned, warnings=remarks, adopts=adopts)


def _refuse_dollars(dialect: Dialect, gathered: Settings, wish: Wish) -> None:
    """A budget comes from a file or a variable, so the person is told where: here is no flag for it."""
    if wish.limits.usd and not agents.find(wish.agents[0]).abilities.tells_cost:
        raise UserError(
            f"{gathered['budget'].where}: {wish.agents[0]} does not say what it costs",
            cause=f"a budget in dollars ({gathered.text('budget')}) could not be held",
            hint=f"give one in tokens, for once: BYDAWN_BUDGET=2Mtok {dialect.name} …",
        )


def _refuse_odd_name(name: str) -> None:
    """In words that fit every dialect: each of them has its own flag for it."""
    try:
        checked_name(name)
    except UserError as error:
        raise UserError(error.what, cause=error.cause, hint="give it another one") from None


def typed(dialect: Dialect, workspace: Path, *words: str) -> str:
    """A command about loops of a workspace, ready to be pasted where the person is."""
    return f"{shlex.join([dialect.name, *words])}{_elsewhere(workspace)}"


def _elsewhere(workspace: Path) -> str:
    return f" --cd {shlex.quote(str(workspace))}" if workspace != Path.cwd() else ""


def can_be_named(name: object) -> TypeGuard[str]:
    """Could a loop be called so? A file can say anything, and what is no name stands in no command of ours."""
    try:
        return isinstance(name, str) and bool(checked_name(name))
    except UserError:
        return False


def reserved(planned: start.Plan) -> start.Plan:
    """The same under a name that is ours alone: of two that start in the same second, one takes the next name."""
    make_private(planned.folder.parent)
    for number in range(1, _SAME_SECOND):
        name = planned.loop.id if number == 1 else f"{planned.loop.id}-{number}"
        folder = planned.folder.with_name(name)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return msgspec.structs.replace(planned, folder=folder, loop=msgspec.structs.replace(planned.loop, id=name))
    return planned


def give_back(request: Start, planned: start.Plan) -> None:
    """Free a name that was reserved; once a loop was born under it, or somebody has its lock, the folder stays."""
    if not request.named:
        with suppress(OSError):  # it is not empty
            planned.folder.rmdir()


def _placed(workspace: Path, path: str) -> str:
    """A path as files are known by: real, from the workspace on if it is in there, with a slash if it is a folder."""
    full = workspace / path
    real = Path(os.path.realpath(full.parent)) / full.name
    inside = str(real.relative_to(workspace)) if real.is_relative_to(workspace) else str(real)
    if inside == "." or workspace.is_relative_to(real):
        hint = "give a folder of its own"
        raise UserError(f"{path} is the workspace itself", cause="its files would mix with yours", hint=hint)
    return f"{inside}/" if path.endswith("/") or real.is_dir() else inside


def _in_git(workspace: Path) -> bool:
    return Git(folder=workspace, seconds=20).answer("rev-parse", "--is-inside-work-tree") is not None


def _taken(dialect: Dialect, workspace: Path, name: str) -> UserError:
    return UserError(
        f"there is a loop {name} already",
        cause="its state would be overwritten",
        hint=f"`{typed(dialect, workspace, 'resume', '--loop-id', name)}`, or choose another --loop-id",
    )


def _refuse_foreign(workspace: Path, loop: Loop, paths: Iterable[str]) -> None:
    """No file of git's, none of the project, and not the list: what is ours is out of the sight of every check."""
    git = Git(folder=workspace, seconds=20)
    for path in (each.rstrip("/") for each in paths):
        full = workspace / path
        known = full.is_file() and git.answer("ls-files", "--error-unmatch", "--", str(full)) is not None
        is_list = bool(loop.tasks) and os.path.realpath(full) == os.path.realpath(workspace / str(loop.tasks))
        if known or is_list or ".git" in full.parts:
            cause = "something else needs that file"
            raise UserError(f"{path} is not ours to write", cause=cause, hint="give another path")


def _refuse_overwriting(dialect: Dialect, planned: start.Plan, workspace: Path) -> None:
    """Only what one of our loops wrote may be replaced by another's, and never a loop's state."""
    made, growing = dialect.written(planned.loop, LoopState(rounds=_LOOKED_AT)), dialect.growing(planned.loop)
    for each in _mine(dialect, registry_of().in_workspace(workspace)):
        theirs = {*dialect.written(each.loop, LoopState(rounds=_LOOKED_AT)), *dialect.growing(each.loop)}
        if each.alive and (shared := theirs.intersection((*made, *growing))):
            cause = f"{each.loop.id} is at work, and writes there"
            raise UserError(f"{min(shared)} is another loop's", cause=cause, hint="give another path for it")
    if twice := [path for path, count in Counter((*made, *growing)).items() if count > 1]:
        raise UserError("two files cannot be one", cause=f"twice: {twice[0]}", hint="give each a path of its own")
    for path in growing:  # an earlier one of ours may grow on
        if (workspace / path).is_file() and not _has_events(workspace / path):
            raise _yours(path)
    state = workspace / dialect.state_path(planned.loop)
    if os.path.lexists(state):
        name = _json(state).get("loop_id")
        raise _taken(dialect, workspace, name) if can_be_named(name) else _yours(dialect.state_path(planned.loop))
    for path in made:
        there = workspace / path
        if os.path.lexists(there) and (there.is_symlink() or not there.is_file()):
            raise UserError(f"{path} is no plain file", cause="it would be replaced", hint="give another path for it")
        if there.is_file() and "loop_id" not in _json(there):
            raise _yours(path)


def _has_events(path: Path) -> bool:
    with path.open("rb") as file:
        line = file.readline(_LONGEST_STATE)
    return not line.strip() or line.startswith(b'{"type":')


def _yours(path: str) -> UserError:
    return UserError(f"{path} is a file of yours", cause="it would be overwritten", hint="give another path for it")


def _json(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() or path.stat().st_size > _LONGEST_STATE:
            return {}
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}


def plan_resume(dialect: Dialect, request: Resume, standing: Standing) -> start.Plan:
    """Go on. Whoever resumes at a checkpoint has looked."""
    if standing.finished:
        hint = f'start another: {dialect.name} "…"{_elsewhere(Path(standing.loop.workspace))}'
        raise UserError(f"the loop {standing.loop.id} is completed; there is nothing to go on with", hint=hint)
    if request.sandbox:
        raise UserError(
            f"the sandbox of {standing.loop.id} cannot be changed",
            cause="a loop keeps the settings it was started with",
            hint=f'start another: {dialect.name} "…" --sandbox …{_elsewhere(Path(standing.loop.workspace))}',
        )
    if request.rounds is not None and request.rounds <= standing.state.rounds:
        raise UserError(
            f"--max-iterations {request.rounds} is used up already",
            cause=f"{standing.loop.id} has had {standing.state.rounds}",
            hint=f"--max-iterations {standing.state.rounds + 10}",
        )
    stopped = standing.state.stopped
    approves = stopped is not None and stopped.end is End.CHECKPOINT and start.due(standing) is not None
    return start.plan_resume(standing, settings.secrets(), approve=approves)


# -- loops that the other program began --------------------------------------------------------------------------------


def left_behind(dialect: Dialect, name: str, request: Resume, place: Place) -> Adopted | None:
    """A loop that the other program left in this workspace under that name."""
    text = read_text(Path(place.workspace), dialect.original_path(name))
    if text is None:
        return None
    adopted = dialect.adopt(text, request, place)
    if adopted.start.name != name:
        cause = f"it says that it is {adopted.start.name!r}"
        raise UserError(f"{dialect.original_path(name)} is another loop's", cause=cause, hint="put its name right")
    return adopted


def agree(adopted: Adopted, request: Resume) -> None:
    """What a file of the repository says cannot take the sandbox away; a person has to."""
    if Sandbox(adopted.start.settings["sandbox"][0]) is Sandbox.FULL and not request.sandbox:
        raise UserError(
            f"the state file of {adopted.start.name} asks for no sandbox at all",
            cause="it is a file of the repository, and has no say in that",
            hint="if you want it so, say it: --sandbox danger-full-access",
        )


def keep_original(dialect: Dialect, planned: start.Plan) -> None:
    """What the other program wrote stays beside what replaces it."""
    workspace, path = Path(planned.loop.workspace), dialect.original_path(planned.loop.id)
    text = read_text(workspace, path)
    for number in range(1, _SAME_SECOND) if text is not None else ():
        copy = workspace / f"{path.removesuffix('.json')}.original{f'-{number}' if number > 1 else ''}.json"
        if not os.path.lexists(copy):
            replace_text(copy, text or "", 0o644)
        if _text(copy) == text:
            return


# -- look --------------------------------------------------------------------------------------------------------------


def find(dialect: Dialect, name: str | None, workspace: Path) -> Standing:
    """The loop of this dialect that a person means: by its id, or the only one here that is not done."""
    if name is None:
        return _only_one(dialect, _mine(dialect, registry_of().in_workspace(workspace)), workspace)
    if found := look_for(dialect, name, workspace):
        return found
    if read_text(workspace, path := dialect.original_path(name)) is not None:
        cause, hint = "it is no state file, or that of another loop", "mend it, or start a loop under another --loop-id"
        raise UserError(f"{path} says nothing of a loop {name}", cause=cause, hint=hint)
    others = [each for each in _mine(dialect, registry_of().everywhere()) if each.loop.id.casefold() == name.casefold()]
    hint = f"`{typed(dialect, workspace, 'list')}` names the ones there are"
    hint = f"--cd {shlex.quote(others[0].loop.workspace)}" if others else hint
    raise UserError(f"there is no loop {name!r} here", cause=f"looked in {workspace}", hint=hint)


def look_for(dialect: Dialect, name: str, workspace: Path) -> Standing | None:
    """The loop of that name in this workspace, and in no other: who cancels one means this one."""
    mine = _mine(dialect, registry_of().in_workspace(workspace))
    return next((each for each in mine if each.loop.id.casefold() == name.casefold()), None)


def _mine(dialect: Dialect, standings: list[Standing]) -> list[Standing]:
    return [each for each in standings if each.loop.dialect and each.loop.dialect.name == dialect.name]


def _only_one(dialect: Dialect, mine: list[Standing], workspace: Path) -> Standing:
    unfinished = [each for each in mine if not each.finished]
    for candidates in (unfinished, mine):
        if len(candidates) == 1:
            return candidates[0]
    if not mine:
        hint = f'start one: {dialect.name} "…"{_elsewhere(workspace)}'
        raise UserError(f"there is no loop in {workspace}", hint=hint)
    raise _several(each.loop.id for each in mine)


def _several(names: Iterable[str]) -> UserError:
    cause = shorten(plain(", ".join(names)), 400)
    return UserError("there are several loops here", cause=cause, hint="say which: --loop-id ID")


def left(dialect: Dialect, name: str | None, workspace: Path) -> Row | None:
    """The loop of the other program that a person means: the one of that name, or the only one if none is ours."""
    mine = _mine(dialect, registry_of().in_workspace(workspace))
    if mine and (name is None or look_for(dialect, name, workspace)):
        return None
    rows = [row for row in _left_here(dialect, workspace) if name in (None, row.id)]
    open_ones = [row for row in rows if row.status != "completed"]
    if len(found := open_ones or rows) > 1:
        raise _several(row.id for row in found)
    return found[0] if found else None


def row_of(dialect: Dialect, standing: Standing) -> Row:
    """A stored word never says running: that somebody is at work is seen, not read."""
    state = dialect.state(standing.loop, standing.state)
    stopped = standing.state.stopped
    status = dialect.word(stopped) if stopped else standing.word
    status = "running" if status == "waiting" else status
    return Row(id=standing.loop.id, status=status, state={**state, "status": status})


def shown(dialect: Dialect, request: Show, workspace: Path) -> tuple[Row, Standing]:
    standing = find(dialect, request.name, workspace)
    return row_of(dialect, standing), standing


def listed(dialect: Dialect, workspace: Path) -> list[Row]:
    """All loops of this workspace, and what the other program left."""
    rows = [row_of(dialect, standing) for standing in _mine(dialect, registry_of().in_workspace(workspace))]
    known = {row.id for row in rows}
    return [*rows, *(row for row in _left_here(dialect, workspace) if row.id not in known)]


def _left_here(dialect: Dialect, workspace: Path) -> Iterator[Row]:
    """What state files say of loops, each of its own; ours have such files as well."""
    folder = (workspace / dialect.original_path("x")).parent
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        state = _json(path) if path.is_file() and not path.is_symlink() else {}
        if state.get("loop_id") == path.stem:
            yield Row(id=path.stem, status=str(state.get("status", "?")), state=state, original=True)


# -- end, and clean up -------------------------------------------------------------------------------------------------


def cancel(dialect: Dialect, request: Cancel, workspace: Path) -> tuple[Standing, list[str]]:
    """End a loop wherever it stands; with `cleanup` the files go that were written for it. What was removed."""
    start.refuse_inside_a_round()
    standing = find(dialect, request.name, workspace)
    stopped = standing.state.stopped
    if not standing.finished and (stopped is None or stopped.end is not End.STOPPED):
        steer.stop(standing, now=True)
        _until_it_is_gone(standing)
    elif standing.finished and not request.cleanup:
        raise UserError(
            f"the loop {standing.loop.id} is completed already",
            cause="there is nothing to cancel",
            hint="--cleanup-artifacts removes the files that were written for it",
        )
    standing = standing_of(standing.folder) or standing
    return standing, _cleaned(dialect, standing) if request.cleanup else []


def _cleaned(dialect: Dialect, standing: Standing) -> list[str]:
    """Remove what was written for a loop and still says what was written; what somebody changed is theirs."""
    workspace, loop, rounds = Path(standing.loop.workspace), standing.loop, standing.folder / "rounds"
    attempts = [attempt for attempt in History(records(standing.folder)).attempts if attempt.ended]
    copied = {
        view.path: view.source for each in attempts for view in dialect.copies(each, loop) if isinstance(view, Copy)
    }
    mine = [
        path
        for path, source in copied.items()
        if views.is_copy(workspace, path, rounds / f"{source.round:04}" / source.name)
    ]
    mine += [path for path in dialect.told(loop) if _json(workspace / path).get("loop_id") == loop.id]
    return views.remove(workspace, mine, dialect.original_path(loop.id).removesuffix(".json"))


def cancel_left(dialect: Dialect, row: Row, workspace: Path) -> None:
    """Say in the other program's own file that its loop is canceled; whatever else stands there stays."""
    start.refuse_inside_a_round()
    if row.status == "completed":
        what = f"the loop {shorten(plain(row.id), 80)} is completed already"
        raise UserError(what, cause="there is nothing to cancel", hint="its files are yours to keep or to delete")
    path = dialect.original_path(row.id)
    views.refuse_unwritable(workspace, [path])
    text = msgspec.json.format(msgspec.json.encode({**row.state, "status": "canceled"}), indent=2).decode()
    replace_text(workspace / path, f"{text}\n", 0o644)


def _until_it_is_gone(standing: Standing) -> None:
    """Its agent is ended and its last fact written before anything is removed."""
    deadline = time.monotonic() + _PATIENCE
    while lock.is_held(standing.folder / "lock"):
        if time.monotonic() > deadline:
            raise UserError(
                f"the loop {standing.loop.id} has been told to end, and has not yet",
                cause=f"it is {lock.owner(standing.folder / 'lock')}",
                hint="nothing was removed; ask again in a moment",
                exit_code=1,
            )
        time.sleep(0.05)


# -- helpers -----------------------------------------------------------------------------------------------------------


def install(dialect: Dialect, request: Install, workspace: Path) -> list[tuple[Path, str, str]]:
    """Write the helper files: path, what became of it, remark. Nothing that differs is overwritten unasked."""
    start.refuse_inside_a_round()
    if not (os.environ.get("CODEX_HOME") or os.environ.get("HOME")):
        raise UserError("Codex has no folder", cause="HOME and CODEX_HOME are unset", hint="export CODEX_HOME=…")
    home = Path(os.environ.get("CODEX_HOME") or Path(os.environ["HOME"]) / ".codex")
    if not home.is_absolute():
        cause = "it means another folder wherever Codex is started"
        hint = f"export CODEX_HOME={shlex.quote(str(home.absolute()))}, if that is the one"
        raise UserError(f"CODEX_HOME is {str(home)!r}, which is not absolute", cause=cause, hint=hint)
    paths = [str(home / each.path) if each.home else each.path for each in dialect.helpers]
    try:
        views.refuse_unwritable(workspace, paths)
    except UserError as error:  # nobody chooses these paths, so no other can be given
        hint = "nothing was written; clear the way there, and ask again"
        raise UserError(error.what, cause=error.cause, hint=hint) from None
    targets = [((home if helper.home else workspace) / helper.path, helper) for helper in dialect.helpers]
    for path, helper in targets:
        if os.path.lexists(path) and not request.force and _text(path) != helper.text:
            raise UserError(
                f"{path} is there already, and differs",
                cause="nothing was written",
                hint=f"`{typed(dialect, workspace, 'install-helpers', '--force')}` overwrites it",
            )
    rows = []
    for path, helper in targets:
        same = os.path.lexists(path) and _text(path) == helper.text
        if not same and helper.home:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not same:
            with real_folder(str(workspace), *Path(helper.path).parts[:-1]):
                pass
        if not same:
            replace_text(path, helper.text, 0o644)
        rows.append((path, "is as it should be" if same else "written", helper.remark))
    return rows


def _text(path: Path) -> str | None:
    try:
        return path.read_text() if path.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None
