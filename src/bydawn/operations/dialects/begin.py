"""Start a loop in a dialect's words, or go on with one: gather, plan, trust, secure, and then it can be run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from bydawn import agents
from bydawn.core.errors import UserError
from bydawn.core.loop import OF_THE_LOOP, ChangedTests, Loop
from bydawn.core.loop import SpokenDialect as Spoken
from bydawn.core.values import End
from bydawn.dialects.seam import Dialect, Start
from bydawn.operations import changing, places, resume, settings, start, worktrees
from bydawn.operations.checked_loop import checked_loop
from bydawn.operations.dialects import loops
from bydawn.operations.loop_request import LoopRequest, loop_request
from bydawn.operations.plan import Plan
from bydawn.settings.layers import Given, Settings
from bydawn.settings.setting import Layer
from bydawn.settings.table import BY_KEY
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing, checked_name, slug
from bydawn.system import shared_file
from bydawn.system.git import Git
from bydawn.system.writing import make_private

Trust = Callable[..., None]  # asks a person about a file of the repository, as `be_trusted` does on a terminal
_SAME_SECOND = 100  # loops that may start in one, in one folder


def gather(dialect: Dialect, request: Start, workspace: Path) -> Settings:
    """All layers, with what the dialect says on top of them, and its own file below that."""
    said, theirs = request.settings, request.overridden
    rows = [_given(dialect, request, key, theirs.get(key, said[key]), at) for key, at in request.origins.items()]
    mine = {key: words for key, words in said.items() if key not in request.origins or key in theirs}
    rows += [_given(dialect, request, *row) for row in mine.items()]
    gathered = settings.gather(workspace, rows)
    gathered.refuse_problems()
    return gathered


def agreed(dialect: Dialect, request: Start, workspace: Path, trust: Trust, *, is_new: bool = False) -> Settings:
    """The same, once a person has agreed to what files of the repository say."""
    gathered = gather(dialect, request, workspace)
    if gathered.has_project or request.config:
        if is_new:
            # All is checked before anyone is asked, and nothing is on the disk while they think: Ctrl-C ends us there.
            looked_at(dialect, request, gathered, workspace)
        for file in dict.fromkeys(("", request.config)):
            trust(gathered, workspace, loops.registry_of(gathered).root.path, config=file)
    return gathered


def looked_at(dialect: Dialect, request: Start, gathered: Settings, workspace: Path) -> Plan:
    """What would be started; its name stays free."""
    planned = plan(dialect, request, gathered, workspace)
    give_back(request, planned)
    return planned


@contextmanager
def secured(dialect: Dialect, request: Start, gathered: Settings, workspace: Path) -> Iterator[Plan]:
    """A new loop; if it is refused on the way, its name is free again."""
    planned = plan(dialect, request, gathered, workspace)
    try:
        yield planned
    finally:
        give_back(request, planned)


def _given(dialect: Dialect, request: Start, key: str, words: tuple[str, ...], where: str = "") -> Given:
    try:
        value = BY_KEY[key].kind.from_words(words) if words else None
    except ValueError as error:
        hint = f"`{dialect.name} --help` says what there is"
        place = f"{where}: " if where else ""
        raise UserError(f"{place}{' '.join(words)!r} cannot be the {key}", cause=str(error), hint=hint) from None
    layer = Layer.DIALECT if where else Layer.FLAG
    text = ((where and request.template_file) or request.template) if key == "template" else ""
    raises = bool(where) and key in request.raised
    return Given(key=key, value=value, layer=layer, where=where or dialect.name, text=text, raises=raises)


def plan(dialect: Dialect, request: Start, gathered: Settings, workspace: Path) -> Plan:
    """A new loop, checked in every respect; a name that no one chose is reserved by an empty folder, no more."""
    request = request if request.name else replace(request, name=slug(workspace.name) or "loop")
    checked_name(request.name, "give it another one")  # each dialect has its own flag for it
    # What is a folder, and where links lead, is for us to know: dialects have never seen a disk.
    paths = {key: places.placed(workspace, path) for key, path in request.paths.items()}
    spoken = _spoken(dialect, request, paths)
    planned = start.plan(_wanted(dialect, request, gathered, workspace, spoken))
    if request.named and planned.loop.id != request.name:
        raise places.NameTaken(request.name)
    planned = planned if request.named else reserved(planned)
    files = dialect.files(planned.loop)
    together = (name for path in files.together for name in (path, *shared_file.beside(path)))
    names = (*files.names(planned.loop), *files.shared, *together)
    spoken = replace(spoken, files=tuple(path for path in names if not path.startswith("/")))
    planned = replace(planned, loop=replace(planned.loop, dialect=spoken))
    try:
        places.refuse_at_start(dialect, planned.loop, [*paths.values()])
        places.refuse_tracked(dialect, planned.loop)
        places.refuse_overwriting(planned.root, dialect, planned.loop)
        places.refuse_occupied(planned.root, dialect, planned.loop)
    except BaseException:  # whatever it is, nothing comes of this loop
        give_back(request, planned)
        raise
    return replace(planned, warnings=(*request.remarks, *planned.warnings), before=request.before)


def change(dialect: Dialect, standing: Standing, request: Start, gathered: Settings, *, finished: bool = False) -> None:
    """The same loop with other settings, if they are others; it keeps its name, its files and its work tree."""
    old = standing.loop
    workspace = Path(old.workspace)
    wanted = _wanted(dialect, request, gathered, workspace, _spoken(dialect, request, {}))
    new = checked_loop(wanted, workspace, settled=standing.state.settled)
    assert old.dialect and new.dialect  # noqa: S101 - it is a loop of a dialect
    kept = {name: getattr(old, name) for name in OF_THE_LOOP}
    new = replace(new, **kept, dialect=replace(new.dialect, files=old.dialect.files))
    if new.worktree:
        tree = old.worktree or worktrees.planned(new, new.worktree.branch, request.worktrees)
        new = replace(new, worktree=tree)
    if new != old:
        changing.change(standing, new, finished=finished)


def _spoken(dialect: Dialect, request: Start, paths: dict[str, str]) -> Spoken:
    return Spoken(
        name=dialect.name,
        words={**request.words, **paths},
        sections=request.sections,
        numbers_cut=request.numbers_cut,
        unit=dialect.unit,
    )


def _wanted(dialect: Dialect, request: Start, gathered: Settings, workspace: Path, spoken: Spoken) -> LoopRequest:
    wanted = loop_request(gathered, workspace, name=request.name, new=True)
    _refuse_dollars(dialect, gathered, wanted.loop)
    loop = replace(
        wanted.loop,
        prompt=request.prompt,
        dialect=spoken,
        template=request.template or wanted.loop.template,
        tasks_required=request.tasks_required,
        promise_required=request.promise_required,
        changed_tests=wanted.loop.changed_tests if request.holds_tests else ChangedTests.REPORT,
        by_task=request.by_task,
        recording=request.recording,
    )
    return replace(wanted, loop=loop, worktrees=request.worktrees)


def _refuse_dollars(dialect: Dialect, gathered: Settings, wanted: Loop) -> None:
    """A budget comes from a file or a variable, so the error says where: a dialect has no flag for it."""
    if wanted.limits.usd and not agents.find(wanted.agent).abilities.tells_cost:
        raise UserError(
            f"{gathered['budget'].where}: {wanted.agent} does not say what it costs",
            cause=f"a budget in dollars ({gathered.text('budget')}) could not be held",
            hint=f"give one in tokens, for once: BYDAWN_BUDGET=2Mtok {dialect.name} …",
        )


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
        return replace(planned, folder=folder, loop=replace(planned.loop, id=name))
    return planned


def give_back(request: Start, planned: Plan) -> None:
    """Free a name that was reserved; the folder stays once there is a loop in it, or another process has its lock."""
    if not request.named:
        with suppress(OSError):  # it is not empty
            planned.folder.path.rmdir()


def in_git(workspace: Path) -> bool:
    return Git(folder=workspace, seconds=20).answer("rev-parse", "--is-inside-work-tree") is not None


def plan_resume(standing: Standing, *, by_hand: bool = False, accept: bool = False) -> Plan:
    """Go on. A person who resumes at a checkpoint has looked. `by_hand`: no round is started."""
    stopped = standing.state.stopped
    approves = stopped is not None and stopped.end is End.CHECKPOINT and resume.due(standing) is not None
    return resume.plan(standing, settings.secrets(), approve=approves, accept=accept, by_hand=by_hand)
