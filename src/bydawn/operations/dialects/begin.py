"""Start a loop in a dialect's words, go on with one, or take one over from the other program."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from bydawn import agents
from bydawn.core.errors import UserError
from bydawn.core.facts import LoopAdopted
from bydawn.core.loop import Dialect as Spoken
from bydawn.core.loop import Loop, Sandbox
from bydawn.core.values import End
from bydawn.dialects import follower
from bydawn.dialects.seam import Adopted, Dialect, Place, Resume, Start
from bydawn.operations import places, resume, settings, start
from bydawn.operations.loop_request import loop_request
from bydawn.operations.plan import Plan
from bydawn.settings.layers import Given, Settings
from bydawn.settings.table import BY_KEY, Layer
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing, checked_name
from bydawn.system.git import Git
from bydawn.system.reading import read_text
from bydawn.system.writing import make_private

_SAME_SECOND = 100  # loops that may start in one, in one folder


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
) -> Plan:
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
    wanted = loop_request(gathered, workspace, name=request.name, new=True)
    _refuse_dollars(dialect, gathered, wanted.loop)
    loop = msgspec.structs.replace(wanted.loop, prompt=request.prompt, dialect=spoken, **request.wanted)
    planned = start.plan(msgspec.structs.replace(wanted, loop=loop))
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


def secure(dialect: Dialect, planned: Plan) -> None:
    """Nobody else may have its places from here on; another loop may have come and gone since they were looked at."""
    places.reserve(planned.folder.state_folder, dialect, planned.loop)
    if planned.adopts is None:
        places.refuse_overwriting(dialect, planned.loop)


def _refuse_dollars(dialect: Dialect, gathered: Settings, wanted: Loop) -> None:
    """A budget comes from a file or a variable, so the person is told where: here is no flag for it."""
    if wanted.limits.usd and not agents.find(wanted.agent).abilities.tells_cost:
        raise UserError(
            f"{gathered['budget'].where}: {wanted.agent} does not say what it costs",
            cause=f"a budget in dollars ({gathered.text('budget')}) could not be held",
            hint=f"give one in tokens, for once: BYDAWN_BUDGET=2Mtok {dialect.name} …",
        )


def _refuse_odd_name(name: str) -> None:
    """In words that fit every dialect: each of them has its own flag for it."""
    try:
        checked_name(name)
    except UserError as error:
        raise UserError(error.what, cause=error.cause, hint="give it another one") from None


def reserved(planned: Plan) -> Plan:
    """The same under a name that is ours alone: of two that start in the same second, one takes the next name."""
    make_private(planned.folder.home)
    for number in range(1, _SAME_SECOND):
        name = planned.loop.id if number == 1 else f"{planned.loop.id}-{number}"
        folder = LoopFolder(planned.folder.home / name)
        try:
            folder.path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return msgspec.structs.replace(planned, folder=folder, loop=msgspec.structs.replace(planned.loop, id=name))
    return planned


def give_back(request: Start, planned: Plan) -> None:
    """Free a name that was reserved; once a loop was born under it, or somebody has its lock, the folder stays."""
    if not request.named:
        with suppress(OSError):  # it is not empty
            planned.folder.path.rmdir()


def _in_git(workspace: Path) -> bool:
    return Git(folder=workspace, seconds=20).answer("rev-parse", "--is-inside-work-tree") is not None


def plan_resume(dialect: Dialect, request: Resume, standing: Standing) -> Plan:
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


def keep_original(dialect: Dialect, planned: Plan) -> None:
    """What the other program wrote stays beside what replaces it; what only will be replaced makes room."""
    workspace, loop = Path(planned.loop.workspace), planned.loop
    done = planned.adopts.rounds if planned.adopts else 0
    later = places.ahead(dialect, loop, done)
    for path in (*dialect.told(loop), *later):
        if os.path.lexists(workspace / path):
            follower.keep(workspace, path)
    follower.remove(workspace, [*later, *(path for path in dialect.told(loop) if path != dialect.state_path(loop))])
