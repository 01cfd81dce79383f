"""What the commands of a dialect do: each of them on the one engine, with its loops among all others."""

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bydawn import agents, lock, views
from bydawn.core.errors import UserError
from bydawn.core.facts import End, LoopAdopted
from bydawn.core.history import History, counted
from bydawn.core.layers import Given, Settings
from bydawn.core.loop import Dialect as Spoken
from bydawn.core.loop import Sandbox
from bydawn.core.settings import BY_KEY, Layer
from bydawn.core.text import plain, shorten
from bydawn.dialects.seam import Adopted, Cancel, Copy, Dialect, Install, Place, Replace, Resume, Show, Start
from bydawn.disk import make_private, real_folder, replace_text
from bydawn.files import read_text
from bydawn.git import Git
from bydawn.host.registry import Registry, Standing, checked_name, standing_of
from bydawn.ledger import records
from bydawn.operations import places, resume, settings, start, steer, work
from bydawn.operations.wish import Wish

_SAME_SECOND = 100  # loops that may start in one, in one folder
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
) -> work.Plan:
    """A new loop, checked in every respect; a name that nobody chose is reserved by an empty folder, no more."""
    if not request.outside_git and not _in_git(workspace):
        raise UserError(
            f"{workspace} is in no git repository",
            cause="what an agent changes there could not be told from what was there before",
            hint="`git init`, or say --skip-git-repo-check",
        )
    _refuse_odd_name(request.name)
    # What is a folder, and where links lead, is for us to know: dialects have never seen a disk.
    paths = {key: places.placed(workspace, path) for key, path in request.paths.items()}
    spoken = Spoken(name=dialect.name, words={**request.words, **paths})
    wish = settings.wish(gathered, workspace, name=request.name, new=True)
    _refuse_dollars(dialect, gathered, wish)
    wish = msgspec.structs.replace(wish, prompt=request.prompt, dialect=spoken, **request.wish)
    planned = start.plan(wish)
    if request.named and planned.loop.id != request.name:
        raise places.taken(dialect, workspace, request.name)
    planned = planned if request.named else reserved(planned)
    files = tuple(path for path in dialect.files(planned.loop) if not path.startswith("/"))
    spoken = msgspec.structs.replace(spoken, files=files)
    planned = msgspec.structs.replace(planned, loop=msgspec.structs.replace(planned.loop, dialect=spoken))
    try:
        places.refuse_at_start(dialect, planned.loop, [*paths.values()])
        if adopts is None:  # the other program may have its files in a commit
            places.refuse_tracked(dialect, planned.loop)
            places.refuse_overwriting(dialect, planned.loop)
    except BaseException:  # whatever it is, nothing comes of this loop
        give_back(request, planned)
        raise
    remarks = (*request.remarks, *planned.warnings)
    return msgspec.structs.replace(planned, warnings=remarks, adopts=adopts)


def secure(dialect: Dialect, planned: work.Plan) -> None:
    """Nobody else may have its places from here on; another loop may have come and gone since they were looked at."""
    places.reserve(planned.root, dialect, planned.loop)
    if planned.adopts is None:
        places.refuse_overwriting(dialect, planned.loop)


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


def reserved(planned: work.Plan) -> work.Plan:
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


def give_back(request: Start, planned: work.Plan) -> None:
    """Free a name that was reserved; once a loop was born under it, or somebody has its lock, the folder stays."""
    if not request.named:
        with suppress(OSError):  # it is not empty
            planned.folder.rmdir()


def _in_git(workspace: Path) -> bool:
    return Git(folder=workspace, seconds=20).answer("rev-parse", "--is-inside-work-tree") is not None


def plan_resume(dialect: Dialect, request: Resume, standing: Standing) -> work.Plan:
    """Go on. Whoever resumes at a checkpoint has looked."""
    if standing.finished:
        hint = f'start another: {dialect.name} "…"{places.elsewhere(Path(standing.loop.workspace))}'
        raise UserError(f"the loop {standing.loop.id} is completed; there is nothing to go on with", hint=hint)
    if request.sandbox:
        raise UserError(
            f"the sandbox of {standing.loop.id} cannot be changed",
            cause="a loop keeps the settings it was started with",
            hint=f'start another: {dialect.name} "…" --sandbox …{places.elsewhere(Path(standing.loop.workspace))}',
        )
    if request.rounds is not None and request.rounds <= standing.state.rounds:
        raise UserError(
            f"--max-iterations {request.rounds} is used up already",
            cause=f"{standing.loop.id} has had {standing.state.rounds}",
            hint=f"--max-iterations {standing.state.rounds + 10}",
        )
    stopped = standing.state.stopped
    approves = stopped is not None and stopped.end is End.CHECKPOINT and resume.due(standing) is not None
    return resume.plan(standing, settings.secrets(), approve=approves)


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


def keep_original(dialect: Dialect, planned: work.Plan) -> None:
    """What the other program wrote stays beside what replaces it; what only will be replaced makes room."""
    workspace, loop = Path(planned.loop.workspace), planned.loop
    done = planned.adopts.rounds if planned.adopts else 0
    later = places.ahead(dialect, loop, done)
    for path in (*dialect.told(loop), *later):
        if os.path.lexists(workspace / path):
            views.keep(workspace, path)
    views.remove(workspace, [*later, *(path for path in dialect.told(loop) if path != dialect.state_path(loop))])


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
    hint = f"`{places.typed(dialect, workspace, 'list')}` names the ones there are"
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
        hint = f'start one: {dialect.name} "…"{places.elsewhere(workspace)}'
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
        state = places.json_of(path) if path.is_file() and not path.is_symlink() else {}
        if state.get("loop_id") == path.stem:
            yield Row(id=path.stem, status=str(state.get("status", "?")), state=state, original=True)


# -- end, and clean up -------------------------------------------------------------------------------------------------


class Cleaned(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the files of a loop."""

    removed: list[str]
    left: dict[str, str]  # and why
    stuck: dict[str, str]  # what could not be removed, and why


def cancel(dialect: Dialect, request: Cancel, workspace: Path) -> tuple[Standing, Cleaned | None]:
    """End a loop wherever it stands; with `cleanup` the files go that were written for it."""
    work.refuse_inside_a_round()
    standing = find(dialect, request.name, workspace)
    stopped = standing.state.stopped
    kept = {}
    if not standing.finished and (stopped is None or stopped.end is not End.STOPPED):
        kept = _kept(dialect, standing) if request.cleanup and not standing.alive else {}
        steer.stop(standing, now=True)
        _until_it_is_gone(standing)
    elif standing.finished and not request.cleanup:
        raise UserError(
            f"the loop {standing.loop.id} is completed already",
            cause="there is nothing to cancel",
            hint="--cleanup-artifacts removes the files that were written for it",
        )
    if request.cleanup:
        _until_it_is_gone(standing)  # it may have a last hook to run
    standing = standing_of(standing.folder) or standing
    return standing, _cleaned(dialect, standing, kept) if request.cleanup else None


def _kept(dialect: Dialect, standing: Standing) -> dict[str, str]:
    """Canceling writes some files once more; what somebody changed in them stays beside them. The copies, and why."""
    workspace, loop = Path(standing.loop.workspace), standing.loop
    done = max(0, counted(standing.state) - 1)
    again = {*dialect.told(loop), *(places.ahead(dialect, loop, done, 1) if not standing.state.stopped else ())}
    again -= {*places.of_later_loops(standing, again)}
    changed = [path for path, is_same in _written(dialect, standing).items() if path in again and not is_same()]
    there = [path for path in changed if views.text_of(workspace, path) is not None]
    return {views.keep(workspace, path): f"what somebody had made of {path}" for path in there}


def _cleaned(dialect: Dialect, standing: Standing, kept: dict[str, str]) -> Cleaned:
    """Remove what was written for a loop and still says what was written; what somebody changed is theirs."""
    workspace, loop = Path(standing.loop.workspace), standing.loop
    written = _written(dialect, standing)
    theirs = places.of_later_loops(standing, written)
    written = {path: is_same for path, is_same in written.items() if path not in theirs}
    mine = [path for path, is_same in written.items() if is_same()]
    left = {path: "it does not say what was written last" for path in written if path not in mine}
    left |= dict.fromkeys(dialect.growing(loop), "it grew, and may be others' as well")
    left |= {path: f"{name}, which began later, writes there" for path, name in theirs.items()}
    views.sweep(workspace, dialect.written(loop, standing.state), loop)
    removed, stuck = views.remove(workspace, mine, dialect.original_path(loop.id).removesuffix(".json"))
    there = {path: why for path, why in left.items() if os.path.lexists(workspace / path)}
    return Cleaned(removed=removed, left=there | kept, stuck=stuck)


def _written(dialect: Dialect, standing: Standing) -> dict[str, Callable[[], bool]]:
    """Each file that was written for a loop, and how to find out whether it still says what was written last."""
    workspace, loop, state = Path(standing.loop.workspace), standing.loop, standing.state
    history = History(records(standing.folder))
    found: dict[str, Callable[[], bool]] = {}
    for copy in (view for each in history.attempts if each.ended for view in dialect.copies(each, loop)):
        if isinstance(copy, Copy):
            origin = standing.folder / "rounds" / f"{copy.source.round:04}" / copy.source.name
            found[copy.path] = partial(views.is_copy, workspace, copy.path, origin)
    for view in dialect.views(state.stopped, loop, state, history) if state.stopped else ():
        if isinstance(view, Replace):
            found[view.path] = partial(_says, workspace, view)
    return found


def _says(workspace: Path, view: Replace) -> bool:
    return views.text_of(workspace, view.path) == views.encoded(view.text)


def cancel_left(dialect: Dialect, row: Row, workspace: Path) -> None:
    """Say in the other program's own file that its loop is canceled; whatever else stands there stays."""
    work.refuse_inside_a_round()
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
    work.refuse_inside_a_round()
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
                hint=f"`{places.typed(dialect, workspace, 'install-helpers', '--force')}` overwrites it",
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
