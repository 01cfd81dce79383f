"""Run a project: make its loop, or change it to what its files say now, and go on."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.assemble import Cycles
from bydawn.core.errors import UserError
from bydawn.core.facts import LoopStopped, TaskSettled
from bydawn.core.state import Settled
from bydawn.core.text import plain, shorten
from bydawn.core.values import FINISHED, TaskStatus
from bydawn.core.worklist import of_folder
from bydawn.dialects.codex_loop import DIALECT, arguments, codes
from bydawn.dialects.codex_loop.arguments import RunOptions
from bydawn.dialects.codex_loop.config import NAME, PLAN, SPEC, Config
from bydawn.dialects.seam import Start
from bydawn.operations import prepare as preparing
from bydawn.operations import resume, settings
from bydawn.operations.dialects import begin, loops
from bydawn.operations.dialects.codex_loop import others, project
from bydawn.operations.plan import Plan
from bydawn.operations.preconditions import user
from bydawn.settings.layers import Settings
from bydawn.store import lock, watches
from bydawn.store.registry import Standing, slug, standing_of
from bydawn.store.watches import Watch
from bydawn.system.reading import read_folder

DAEMON, SERVICE = "daemon", "service"  # the two kinds of watchdog
_ERRORS = (codes.RUNNER_FAILURES, codes.AGENT_UNAVAILABLE)  # of Codex itself


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would start: the loop, and what it goes on from."""

    start: Start
    standing: Standing | None = None


def wanted(root: Path, config: Config, source_prompt: str = "") -> Wanted:
    """The loop that the files of a project ask for now; with a prompt, a new one."""
    standing = None if source_prompt else project.standing_of(root)
    if standing is None:
        others.refuse_begun(root, config.tasks.source_dir)
    name = standing.loop.id if standing else _free_name(root, config)
    documents = tuple(str(root / path) for path in (SPEC, PLAN) if (root / path).is_file())
    start = arguments.start(config, name, documents)
    spoken = standing.loop.dialect if standing else None
    before = spoken.words.get("source_prompt", "") if spoken else ""
    start = replace(start, words=start.words | {"source_prompt": source_prompt or before})
    return Wanted(start=start, standing=standing)


@contextmanager
def secured(root: Path, asked: Wanted, gathered: Settings) -> Iterator[Plan]:
    """What comes next; a loop that is there goes on with the settings of now, whether it has finished or not."""
    if (standing := asked.standing) is None:
        with begin.secured(DIALECT, asked.start, gathered, root) as planned:
            yield planned
        return
    if standing.trouble:
        raise standing.trouble
    begin.change(DIALECT, standing, asked.start, gathered, finished=True)
    planned = resume.plan(standing_of(standing.folder) or standing, settings.secrets(), finished=True)
    yield replace(planned, warnings=(*asked.start.remarks, *planned.warnings))


def done_by_hand(root: Path, config: Config, words: Iterable[str]) -> tuple[TaskSettled, ...]:
    """The tasks that a person calls done, by their ids or by the numbers that these begin with."""
    tasks, found = project.tasks_of(root, config.tasks.source_dir), []
    for word in words:
        exactly = [each for each in tasks if each.id == word]
        meant = exactly or [each for each in tasks if each.id.startswith(f"{word}-")]
        if len(meant) != 1:
            known = ", ".join(shorten(plain(each.id), 60) for each in (meant or tasks)[:20])
            what = f"--done {word!r} could be several tasks" if meant else f"there is no task {word!r}"
            raise UserError(what, cause=f"they are {known}", hint="give their ids: --done 001-one,002-two")
        found.append(TaskSettled(task=meant[0].id, text=meant[0].title, status=TaskStatus.DONE, by=user()))
    return tuple(found)


def prepare(root: Path, config: Config, source_prompt: str) -> None:
    """Write down that there is such a project, and its tasks; nothing has run yet."""
    asked = wanted(root, config, source_prompt)
    with secured(root, asked, begin.gather(DIALECT, asked.start, root)) as planned:
        files = read_folder(root, config.tasks.source_dir) or {}
        preparing.prepare(planned, tasks=of_folder(files, Settled()))


def _free_name(root: Path, config: Config) -> str:
    """The project's name; with a number if a loop here has it, such as the one of a project that was replaced."""
    name = slug(config.project.name or root.name) or "project"
    taken = {each.loop.id.casefold() for each in loops.registry_of().in_workspace(root)}
    numbered = (f"{name}-{number}" for number in range(2, 10_000))
    return name if name.casefold() not in taken else next(each for each in numbered if each.casefold() not in taken)


def refuse_beside_another(root: Path, replaced: str = "") -> None:
    """One run per project, ours or another program's, and one watchdog, unless one of the kind `replaced` makes way."""
    if watch := watches.of(loops.registry_of(), root):
        if watch.kind != replaced:
            raise kept_by(watch)
        return  # the run is its own
    standing = project.standing_of(root)
    if standing and standing.alive and lock.wait_for_the_dying(standing.folder.lock):
        raise occupied(f"the loop {standing.loop.id} is at work")
    others.refuse_live(root)


def kept_by(watch: Watch) -> UserError:
    end = "stop" if watch.kind == DAEMON else "uninstall"
    return occupied(f"a {watch.kind} (process {watch.pid}) keeps it running", f"`{NAME} {watch.kind} {end}`")


def occupied(cause: str, end: str = "Ctrl-C in its terminal") -> UserError:
    hint = f"`{NAME} status --summary` says how it stands; {end} ends it"
    return UserError(f"{NAME} is already running in this project", cause=cause, hint=hint, exit_code=8)


def cycles_of(options: RunOptions) -> Cycles | None:
    if not options.continuous:
        return None
    again = Again(blocked=options.retry_blocked, errors=options.retry_errors, most_errors=options.max_error_retries)
    return Cycles(sleep=options.cycle_sleep_seconds, most=options.max_cycles, again=again)


class Again:
    """Does a continuous run begin another cycle? Never after a person, or a signal, has ended it."""

    def __init__(self, *, blocked: bool, errors: bool, most_errors: int | None) -> None:
        self._blocked, self._errors, self._most = blocked, errors, most_errors
        self._failed = 0  # cycles in a row that ended with an error

    def __call__(self, stopped: LoopStopped, _: int) -> bool:
        code = codes.code_of(stopped)
        if stopped.end in FINISHED or code == codes.INTERRUPTED:
            return False
        if code not in _ERRORS:
            self._failed = 0
            return self._blocked or code == codes.MAX_ITERATIONS
        self._failed += 1
        return (self._blocked or self._errors) and (self._most is None or self._failed <= self._most)
