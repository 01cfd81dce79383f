"""Nothing from a repository's own settings runs before a person has agreed; remember the answer."""

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.text import visible
from bydawn.core.values import Act, Advice
from bydawn.operations.preconditions import refuse_inside_a_round, user
from bydawn.operations.settings import secrets
from bydawn.settings import files
from bydawn.settings.layers import Given, Settings
from bydawn.settings.setting import Layer
from bydawn.settings.trust import Powers, Shown, Trust, Trusts, difference, identity_of, in_force, powers_of
from bydawn.system.git import Git

# Git settings of a repository that run programs. bydawn's git calls turn them off; an agent's do not.
_RUNS = re.compile(
    r"(?i)(?:alias|pager)\..*|include(?:if\..*)?\.path|(?:difftool|mergetool|browser|man)\..*\.path|submodule\..*\.update"
    r"|.*\.(?:clean|smudge|process|textconv|external|driver|\w*helper|\w*program|\w*cmd|\w*command|\w*editor|pager|askpass"
    r"|hookspath|fsmonitor|gitproxy|difffilter|vcs|uploadpack|receivepack|packobjectshook)"
)
_RUNS_IF = re.compile(
    r"(?i)remote\..*\.(?:push)?url|url\..*\.(?:push)?insteadof"
)  # runs a program if the transport is `ext::`


class AskedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of what a person is asked to trust."""

    key: str
    value: str
    where: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked to trust."""

    folder: Path
    file: Path
    place: Path  # what is trusted: the folder, or another tool's configuration file in it
    powers: Powers
    config: str  # that file's name; empty for the folder's own settings
    before: Shown | None  # what they trusted before
    copy_of: str = ""  # the folder where they did, if it is another copy of this one
    tool: str = "bydawn"  # whose command reviews it

    @property
    def rows(self) -> list[AskedRow]:
        """Everything that can run commands or change limits."""
        return [
            AskedRow(key=given.key, value=line, where=given.where if number == 0 else "")
            for given in sorted((*self.powers.commands, *self.powers.loosened), key=_size, reverse=True)
            for number, line in enumerate(_lines(given) or ["nothing"])
        ]

    @property
    def changes(self) -> list[str]:
        """How that differs from what they trusted before."""
        return [] if self.before is None else difference(self.before, shown(self.powers))

    def refusal(self, without: str = "") -> UserError:
        """The error when there is no one to ask; `without` is the flag that ignores the project's settings, if any."""
        rows = self.changes or [f"{row.key} = {row.value}{f'   ({row.where})' * bool(row.where)}" for row in self.rows]
        place = str(self.place if self.place.exists() else self.file)
        review = Act("trust", place, program=self.tool)
        once = Act("trust --once", self.powers.digest, place, program=self.tool)
        if self.copy_of:
            same = "it runs the same as there" if not self.changes else "it can run other commands than there:"
            return UserError(
                f"{self.file} is not trusted, though the one in {visible(self.copy_of)} is",
                cause="\n       ".join([same, *self.changes]),
                hint=Advice("agree with ", review, "\n       once, without a terminal: ", once),
            )
        return UserError(
            f"{self.file} {'has changed since you trusted it' if self.changes else 'is not trusted'}",
            cause="\n       ".join(["it can run commands or change limits:", *rows]),
            hint=Advice(
                *("review it with ", review),
                *("\n       once, without a terminal: ", once),
                f"\n       or ignore the project's settings: {without}" if without else "",
            ),
        )


class TrustView(msgspec.Struct, frozen=True, kw_only=True):
    """`trust --json`: what a folder's settings run, and whether that is trusted now."""

    folder: str
    file: str | None  # the configuration file of another tool, if it is about one
    trusted: bool
    rows: list[AskedRow]  # nothing needs trust if there are none
    changes: list[str]
    hash: str | None  # for `--once`
    git: list[str]


def view(folder: Path, config: str, question: Question | None, *, trusted: bool) -> TrustView:
    return TrustView(
        folder=str(folder),
        file=str(folder / config) if config else None,
        trusted=trusted,
        rows=question.rows if question else [],
        changes=question.changes if question else [],
        hash=question.powers.digest if question else None,
        git=git_runs(folder),
    )


# A folder's own settings are meant, unless `config` names the configuration file of another tool in it.


def question(settings: Settings, folder: Path, trusts: Trusts, config: str = "") -> Question | None:
    """What to ask before a loop may start with these settings; None if nothing."""
    powers = _powers(settings, config)
    if not in_force(powers, settings) or trusts.covers(folder / config, powers):
        return None
    moved = trusts.moved(folder, config)
    return None if moved and moved.digest == powers.digest else _question(powers, folder, trusts, config)


def use(settings: Settings, folder: Path, trusts: Trusts, config: str = "") -> None:
    """A loop starts: trust that was given once is used up."""
    powers = _powers(settings, config)
    trusts.follow(folder, config)
    if in_force(powers, settings) and not trusts.use(folder / config, powers):
        raise _question(powers, folder, trusts, config).refusal()  # another start used it first


def review(settings: Settings, folder: Path, trusts: Trusts, config: str = "") -> Question | None:
    """Everything in a folder that needs trust, given or not; None if nothing does."""
    powers = _powers(settings, config)
    return None if powers.empty else _question(powers, folder, trusts, config)


def _powers(settings: Settings, config: str) -> Powers:
    return powers_of(settings, datetime.now(UTC), Layer.DIALECT if config else Layer.PROJECT)


def _question(powers: Powers, folder: Path, trusts: Trusts, config: str) -> Question:
    from bydawn.dialects import TABLE  # only needed where someone is asked

    earlier = trusts.given(folder / config) or trusts.moved(folder, config)
    copied = None if earlier else trusts.of_copy(folder, config, _origin(folder))
    earlier = earlier or copied
    file = folder / config if config else files.project_file(folder).path
    if config and powers.commands and not file.exists():  # another file of that tool is all there is
        file = folder / powers.commands[0].where
    return Question(
        folder=folder,
        file=file,
        place=folder / config,
        powers=powers,
        config=config,
        before=earlier.shown if earlier and (copied or earlier.digest != powers.digest) else None,
        copy_of=copied.root if copied else "",
        tool=next((name for name, row in TABLE.items() if config and row.config == config), "bydawn"),
    )


def _origin(folder: Path) -> str:
    """The first commits of a repository: its clones and copies have the same."""
    return (Git(folder=folder, seconds=20).answer("rev-list", "--max-parents=0", "HEAD") or "").strip()


def shown(powers: Powers) -> Shown:
    """What is saved of the powers, to show later what changed; without secrets."""
    return {given.key: _lines(given) for given in powers.commands}


def _size(given: Given) -> int:
    """Short values come last, so that a long prompt does not push the commands off the screen."""
    return 0 if isinstance(given.value, tuple) else f"{given.shown}\n{given.text}".count("\n")


def _lines(given: Given) -> list[str]:
    """A value as shown, one command per line; secrets are hidden before it is split, as they may span lines."""
    hide = secrets().hide
    if isinstance(given.value, tuple):
        return [visible(hide(item)).replace("\n", "\\n") for item in given.value]
    return visible(hide(f"{given.shown}\n{given.text}".rstrip("\n"))).split("\n")


def agree(powers: Powers, folder: Path, trusts: Trusts, config: str = "", *, once: bool = False) -> None:
    """A person has said yes."""
    refuse_inside_a_round()
    place = folder / config
    trusts.give(
        Trust(
            folder=str(place),
            digest=powers.digest,
            shown=shown(powers),
            at=datetime.now(UTC),
            by=user(),
            once=once,
            root=str(folder),
            identity=identity_of(folder),
            origin=_origin(folder),
        )
    )


def agree_once(digest: str, settings: Settings, folder: Path, trusts: Trusts, config: str = "") -> None:
    """Trust for the next start only, and only if the settings are those that were reviewed."""
    refuse_inside_a_round()
    powers = _powers(settings, config)
    if powers.digest != digest:
        raise UserError(
            f"the settings in {folder / config} do not have the hash {digest[:40]}",
            cause=f"their hash is {powers.digest}",
            hint="review what changed, then use the new hash",
        )
    agree(powers, folder, trusts, config, once=True)


def git_runs(folder: Path) -> list[str]:
    """Programs that this repository's git configuration runs when an agent calls git."""
    git, hide = Git(folder=folder, seconds=20), secrets().hide
    listed = [git.answer("config", scope, "--null", "--list") or "" for scope in ("--local", "--worktree")]
    rows = dict.fromkeys(tuple(row.split("\n", 1)) for each in listed for row in each.split("\0") if "\n" in row)
    runs = [f"{key} = {value}" for key, value in rows if _is_run(key, value)]
    if common := git.answer("rev-parse", "--path-format=absolute", "--git-common-dir"):
        place = Path(common.rstrip("\n")) / "hooks"
        names = sorted(path.name for path in place.glob("*") if path.suffix != ".sample") if place.is_dir() else []
        runs += [f"hook {name}" for name in names]
    return [visible(hide(row)).replace("\n", "\\n") for row in runs]


def _is_run(key: str, value: str) -> bool:
    if _RUNS_IF.fullmatch(key):
        return "ext::" in f"{key}{value}"
    return bool(_RUNS.fullmatch(key)) and value not in ("", "false")
