"""Start a loop here, go on with the last one, end one that runs."""

import re
from pathlib import Path

import msgspec

from bydawn import agents
from bydawn.agents.program import ask
from bydawn.core.errors import UserError
from bydawn.core.facts import RoundsBefore
from bydawn.core.loop import differences
from bydawn.dialects.codex_autorunner import DIALECT, arguments
from bydawn.dialects.codex_autorunner.config import CODEX, CONFIG, LOCK, NAME, Config
from bydawn.dialects.codex_autorunner.files import State
from bydawn.dialects.seam import Start
from bydawn.operations import steer
from bydawn.operations.dialects import begin, end, loops
from bydawn.operations.dialects.codex_autorunner import documents, logs, repository
from bydawn.store import lock
from bydawn.store.registry import Standing, standing_of
from bydawn.system.programs import find
from bydawn.system.reading import read_text

_CODEX = re.compile(r"\s*codex\b", re.IGNORECASE)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a `run` would start: the loop, and what it goes on from."""

    start: Start
    before: State


def checked(root: Path) -> tuple[Config, str | None]:
    """The configuration and the template, with the documents there and tasks in the list; nothing is spent on less."""
    config = repository.config_of(root)
    for kind in documents.KINDS:
        documents.path_of(root, config, kind)
    documents.refuse_missing_extras(root, config)
    arguments.refuse_list(config, read_text(root, config.todo) or "")
    return config, repository.template_of(root, config)


def asked(root: Path, config: Config, prompt: str | None) -> Asked:
    """The program is asked what it is, so a person has agreed to it before."""
    before = repository.before(root)
    wanted = arguments.start(config, prompt, is_codex=is_codex(root, config))
    rounds = None
    if number := before.last_run_id:  # numbers, the last output and unread notes go on
        output, standing = logs.last_output(root, number, config.prev_run_max_chars), repository.newest(root)
        rounds = RoundsBefore(rounds=number, output=output, notes=standing.state.notes if standing else ())
    return Asked(start=arguments.going_on(wanted, before, rounds), before=before)


def is_codex(root: Path, config: Config) -> bool:
    """Does this program say that it is Codex? One with another name is not even asked: it might just begin to work."""
    if find(config.binary, root) is None:
        where = "" if "/" in config.binary else " on the PATH outside this repository"
        raise UserError(
            f"there is no program {config.binary}{where}",
            cause=f"{config.where.get('codex.binary', CONFIG)} asks for it",
            hint=f"install it: npm install -g {agents.cli(CODEX).package}; or give its path as codex.binary",
            exit_code=7,
        )
    return CODEX in Path(config.binary).name.lower() and bool(_CODEX.match(ask(root, config.binary, "--version")[1]))


def goes_on(root: Path, asked: Asked) -> Standing | None:
    """The loop that ran here last, if it is unfinished and asks for the same; settings that changed make another."""
    standing = repository.newest(root)
    if standing is None or standing.finished or standing.alive or asked.before.loop != standing.loop.id:
        return None
    planned = begin.looked_at(DIALECT, asked.start, begin.gather(DIALECT, asked.start, root), root)
    changed = [name for name in differences(standing.loop, planned.loop) if name != "dialect"]
    return None if changed else standing


def retire(root: Path, *, but: str) -> None:
    """A repository has one loop: what an earlier one left open is ended and leaves the list."""
    for each in loops.in_workspace(DIALECT, root):
        if each.loop.id == but or each.finished or each.alive or each.trouble or each.state.dismissed:
            continue
        if each.state.stopped is None:
            steer.stop(each, now=True)
        if ended := standing_of(each.folder):
            steer.dismiss(ended)


# -- one at a time -----------------------------------------------------------------------------------------------------


def alive(root: Path) -> Standing | None:
    return next((each for each in loops.in_workspace(DIALECT, root) if each.alive), None)


def occupied(cause: str) -> UserError:
    """The error beside another instance of ours."""
    hint = f"see what it does: `{NAME} log`; end it: `{NAME} kill`; take over: `{NAME} run --force`"
    return UserError(f"{NAME} is already running here", cause=cause, hint=hint, exit_code=8)


def refuse_beside_another(root: Path) -> None:
    if (standing := alive(root)) and lock.wait_for_the_dying(standing.folder.lock):
        raise occupied(f"the loop {standing.loop.id} is at work")
    if pid := loops.named_by_another(root, LOCK):
        raise UserError(
            "another instance may be running here",
            cause=f"{LOCK} names process {pid}, which lives and is none of ours",
            hint=f"end it first; if it is something else: `{NAME} run --force`",
            exit_code=8,
        )


def kill(root: Path) -> Standing | None:
    """End what runs here now, and wait until nothing of it lives; None if nothing does."""
    standing = alive(root)
    return end.cancel(standing) if standing else None


def stop(root: Path) -> bool:
    """End after this run; is anything running at all?"""
    standing = alive(root)
    if standing:
        steer.pause(standing, now=False)
    return standing is not None
