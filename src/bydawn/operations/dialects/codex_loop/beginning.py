"""`init`: ask Codex for a plan, write it down, and agree to its commands if a person does."""

import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.core.agent import Event
from bydawn.core.errors import UserError
from bydawn.core.outcome import Outcome
from bydawn.core.text import plain, shorten
from bydawn.core.values import Act, Next
from bydawn.dialects.codex_loop import DIALECT, proposal, written_yaml
from bydawn.dialects.codex_loop.config import CODEX, CONFIG, FOLDER, NAME, PLAN, SPEC, Config, Goal, Project
from bydawn.dialects.codex_loop.proposal import Proposal
from bydawn.operations import asking, first_files, hooking, settings, steer
from bydawn.operations.dialects import config as own_config
from bydawn.operations.dialects import end, loops
from bydawn.operations.dialects.codex_loop import others, project, running
from bydawn.operations.first_files import Fate
from bydawn.operations.hooking import HookResult
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.process.guardian import Tether
from bydawn.system.paths import open_parent
from bydawn.system.reading import read_folder, read_text

_REPLACED = "replaced"  # a folder for tasks of before: only what is directly in the folder is a task


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each file, how the commands after it ended, and what a person can do now."""

    files: dict[str, str]
    hooks: list[HookResult]
    steps: list[Next]
    failed: bool = False  # did a command fail whose failure counts?


def check(root: Path, prompt: str, *, force: bool) -> Config:
    """Refuse what cannot work, before Codex is asked. What is kept of a trusted configuration."""
    refuse_inside_a_round()
    if not prompt.strip("… \n\t"):
        raise UserError("the prompt is empty", cause="Codex would not know what to plan", hint='--prompt "Build …"')
    running.refuse_beside_another(root)
    project.refuse_without_commit(root)
    kept = _kept(root) if force else Config()
    folder = kept.tasks.source_dir
    there = [path for path in (CONFIG, SPEC, PLAN) if os.path.lexists(root / path)]
    there += [f"{folder}/{name}" for name in _tasks(root, folder)]
    others.refuse_begun(root, folder)
    if there and not force:
        raise UserError(
            f"{there[0]} is there already" + (f", and {len(there) - 1} more" if there[1:] else ""),
            cause="init would replace it",
            hint=f"`{NAME} run` works with what is there; --force replaces it, and keeps a copy",
        )
    # The last two are stand-ins: for tasks whose names are not known yet, and for what the loop writes.
    paths = (CONFIG, SPEC, PLAN, f"{folder}/.new", f"{FOLDER}/.new")
    first_files.fates(root, dict.fromkeys(paths, "") | project.unignored(root), force=True)
    return kept


def _kept(root: Path) -> Config:
    with suppress(UserError):  # it is wrong or not there, and about to be replaced
        found = project.config_of(root)
        if own_config.is_trusted(DIALECT, root):
            return replace(found, where={}, remarks=())
    return Config()


def _tasks(root: Path, folder: str) -> dict[str, str]:
    return {name: text for name, text in (read_folder(root, folder) or {}).items() if name.lower() != "readme.md"}


def ask(root: Path, prompt: str, model: str | None, tether: Tether, told: Callable[[Event], None]) -> Proposal:
    """What Codex proposes. It can read the project, and change nothing."""
    answered = asking.ask(
        CODEX,
        proposal.prompt(prompt),
        root,
        tether,
        root=loops.registry_of().root,
        secrets=settings.secrets(),
        schema=proposal.SCHEMA,
        asker=asking.no_loop(CODEX, root, model),
        told=told,
    )
    ended = answered.ended
    if ended.outcome is Outcome.INTERRUPTED:
        raise UserError("interrupted", cause="nothing was written", hint="ask again", exit_code=130)
    if ended.outcome not in (Outcome.OK, Outcome.DENIED):  # it may have tried to write something, and answered
        cause = shorten(plain(": ".join(filter(None, (ended.detail, ended.words))) or str(ended.outcome)), 1000)
        raise UserError("Codex proposed nothing", cause=cause, hint=f"its output is in {answered.kept}")
    return proposal.read(ended.reply)


def write(
    root: Path, kept: Config, found: Proposal, prompt: str, model: str | None, *, force: bool, agreed: bool
) -> Begun:
    """Write all files, and note that there is such a project; its commands are trusted if a person has `agreed`."""
    config = replace(
        kept,
        project=Project(found.name),
        goal=Goal(found.goal, found.done_when),
        verification=replace(kept.verification, commands=found.verification_commands),
        codex=replace(kept.codex, model=model or kept.codex.model),
    )
    texts = {CONFIG: written_yaml.text(config), **found.files(config.tasks.source_dir)}
    first_files.fates(root, texts, force=force)
    if force:
        _make_room(root, config.tasks.source_dir, texts)
    fates = first_files.write(root, texts, force=force)
    left = [path for path, fate in fates.items() if fate is Fate.LEFT]
    if left:  # someone has just written it
        raise UserError(
            f"{left[0]} is there already", cause="it was not a moment ago", hint="look at it, and ask again"
        )
    ignored = project.ignore(root)
    if agreed:
        own_config.agree(DIALECT, root, [CONFIG])
    running.prepare(root, project.config_of(root), prompt)
    with open_parent(root, f"{FOLDER}/artifacts/any", make=True):
        pass  # the folder is for people and their hooks
    results = _run_hooks(root, config) if agreed else []
    failed = config.hooks.failure_policy == "block" and any(each.exit_code != 0 for each in results)
    steps = _steps(root, config, agreed=agreed)
    return Begun(files={**fates, **ignored}, hooks=results, steps=steps, failed=failed)


def _make_room(root: Path, folder: str, texts: Mapping[str, str]) -> None:
    """End the loop of the old project, and move its tasks out of the way."""
    standing = project.standing_of(root)
    if standing and not standing.trouble and not standing.state.dismissed:
        steer.dismiss(end.cancel(standing))
    if names := [name for name, text in _tasks(root, folder).items() if texts.get(f"{folder}/{name}") != text]:
        numbered = (root / folder / (f"{_REPLACED}-{number}" if number > 1 else _REPLACED) for number in count(1))
        place = next(each for each in numbered if not os.path.lexists(each))
        place.mkdir()
        for name in names:
            (root / folder / name).rename(place / name)


def _run_hooks(root: Path, config: Config) -> list[HookResult]:
    hooks = config.hooks
    told = {"CODEX_LOOP_EVENT": "post_init", "CODEX_LOOP_PROJECT_DIR": str(root), "CODEX_LOOP_WORKING_DIR": str(root)}
    block = hooks.failure_policy == "block"
    results = hooking.run_after_init(
        hooks.post_init, root, hooks.timeout_seconds, told, settings.secrets(), block=block
    )
    path, at = f"{FOLDER}/hooks/post_init.jsonl", datetime.now(UTC).isoformat(timespec="seconds")
    rows = [{"timestamp": at, **msgspec.to_builtins(each), "timed_out": each.timed_out} for each in results]
    lines = "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)
    project.update(root, {path: (read_text(root, path) or "") + lines} if rows else {})
    return results


def _steps(root: Path, config: Config, *, agreed: bool) -> list[Next]:
    written = [CONFIG, ".gitignore", "spec", "plan", config.tasks.source_dir]
    commit = f"git add {shlex.join(written)} && git commit -m {shlex.quote('Plan ' + (config.project.name or ''))}"
    trust = Next(Act("trust", program=NAME), "look at the commands that Codex proposes, and agree to them")
    there = [] if Path.cwd() == root else [Next(command=f"cd {shlex.quote(str(root))}", why="the project")]
    return [
        *there,
        Next(command="", why=f"look at spec, plan, {config.tasks.source_dir}/ and the commands in {CONFIG}"),
        *([] if agreed else [trust]),
        Next(command=commit, why="the worktree has the plan then, and a merge meets no file that git does not have"),
        Next(command=Act("run", program=NAME), why="let Codex do one task after the other"),
    ]
