"""Is everything there that a run needs? Each thing is looked at on its own, with what to do about it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.dialects import own_words
from bydawn.dialects.codex_autorunner import DIALECT, texts
from bydawn.dialects.codex_autorunner.config import CODEX, CONFIG, LOCK, NAME, Config, asked
from bydawn.operations import doctor as native
from bydawn.operations import trust
from bydawn.operations.agents import look
from bydawn.operations.dialects import begin, loops
from bydawn.operations.dialects import config as own_config
from bydawn.operations.dialects.codex_autorunner import documents, repository, running
from bydawn.operations.doctor import Finding
from bydawn.operations.leftovers import with_leftovers
from bydawn.settings.trust import Trusts


def examine(repo: Path | None) -> Iterator[Finding]:
    """Stops where nothing further can be looked at."""
    try:
        root = repository.root_of(repo)
    except UserError as error:
        yield _bad("repository", error)
        return
    yield Finding(name="repository", ok=True, detail=str(root))
    try:
        config = repository.config_of(root)
    except UserError as error:
        yield _bad("configuration", error)
        return
    yield Finding(name="configuration", ok=True, detail="; ".join((f"{CONFIG} is valid", *config.remarks)))
    for kind in documents.KINDS:
        yield _tried(kind, partial(_document, root, config, kind))
    yield _tried("prompt", lambda: _prompt(root, config))
    yield _lock(root)
    yield from _records(root)
    if refusal := _untrusted(root):
        yield _bad("trust", refusal)
        return  # nothing of it is run before a person has agreed
    yield from _codex(root, config)


def _untrusted(root: Path) -> UserError | None:
    """Why nothing that the configuration names may run yet."""
    try:
        wanted = own_config.read(DIALECT, root)
        assert wanted  # noqa: S101 - it was read a moment ago
        gathered = begin.gather(DIALECT, wanted, root)
    except UserError as error:  # of its template, or of bydawn's own settings
        return error
    question = trust.question(gathered, root, Trusts(loops.registry_of(gathered).root.trust), CONFIG)
    return question.refusal() if question else None


def _document(root: Path, config: Config, kind: str) -> str:
    return str(documents.path_of(root, config, kind).relative_to(root))


def _prompt(root: Path, config: Config) -> str:
    return f"from {config.template}" if repository.template_of(root, config) is not None else "the built-in one"


def _codex(root: Path, config: Config) -> Iterator[Finding]:
    try:
        known = running.is_codex(root, config)
    except UserError as error:
        yield _bad("codex", error)
        return
    if not known:
        yield Finding(name="codex", ok=True, detail=f"{config.binary} is not Codex: its exit code is the verdict")
        return
    found = look(_agent(config), root)
    yield Finding(name="codex", ok=True, detail=found.version or "version unknown")
    if found.logged_in is False:
        yield Finding(name="login", ok=False, detail="Codex is not logged in", hint=f"run `{found.login}`")
    else:
        yield Finding(name="login", ok=True, detail="Codex is logged in, or has a key of its own")
    yield _tried("sandbox", lambda: _sandbox(root, config))


def _agent(config: Config) -> str:
    return CODEX if config.binary == CODEX else f"{CODEX}:{config.binary}"


def _sandbox(root: Path, config: Config) -> str:
    from bydawn.core.loop import Sandbox
    from bydawn.operations.checked_loop import checked_agent

    level = Sandbox(asked(config.args, config.where.get("codex.args", CONFIG)).sandbox)
    checked_agent(_agent(config), root, level)
    return f"{level}" + (": Codex runs as you, without a sandbox" if level is Sandbox.FULL else "")


def _lock(root: Path) -> Finding:
    if standing := running.alive(root):
        return Finding(name="lock", ok=True, detail=f"{NAME} is running here ({standing.loop.id})")
    if pid := loops.named_by_another(root, LOCK):
        hint = f"end it, or take over: `{NAME} run --force`"
        return Finding(name="lock", ok=False, detail=f"{LOCK} names process {pid}, which is none of ours", hint=hint)
    return Finding(name="lock", ok=True, detail="free")


def _records(root: Path) -> Iterator[Finding]:
    """Whether what happened here is on record as it was written."""
    for standing in with_leftovers(loops.in_workspace(DIALECT, root)):
        try:
            found = native.of_loop(standing)
        except UserError as error:
            yield _bad("record", UserError(error.what, cause=error.cause, hint=f"`{NAME} --help` says what repairs it"))
        else:
            hint = own_words.in_passing(found.hint, texts.UNIT, texts.own)
            yield Finding(name="record", ok=found.ok, detail=found.detail, hint=hint)


def _tried(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name=name, ok=True, detail=look())
    except UserError as error:
        return _bad(name, error)


def _bad(name: str, error: UserError) -> Finding:
    return Finding(name=name, ok=False, detail=": ".join(filter(None, (error.what, error.cause))), hint=error.hint)
