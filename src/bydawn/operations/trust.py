"""Ask before anything of a repository's own settings runs, and remember the answer."""

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn import config
from bydawn.core.errors import UserError
from bydawn.core.layers import Settings
from bydawn.core.trust import Powers, Shown, difference, in_force, powers_of
from bydawn.git import Git
from bydawn.operations.settings import secrets
from bydawn.operations.start import refuse_inside_a_round, user
from bydawn.trust import Trust, Trusts

# What git would run by a repository's own configuration. bydawn's calls switch it all off; an agent's do not.
_RUNS = re.compile(
    r"(?i)core\.(?:hookspath|fsmonitor|sshcommand|editor|pager|askpass|gitproxy)|filter\..*\.(?:clean|smudge|process)"
    r"|diff\.(?:external|.*\.(?:command|textconv))|merge\..*\.driver|credential\..*helper|gpg\..*program|include.*\.path"
    r"|alias\..*|sequence\.editor|uploadpack\.packobjectshook|remote\..*\.(?:uploadpack|receivepack)|submodule\..*\.update"
)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked to agree to."""

    folder: Path
    file: Path
    powers: Powers
    before: Shown | None  # what they agreed to earlier

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Setting, value and place of everything that would run, steer or loosen something."""
        hide = secrets().hide
        return [
            (given.key, hide(line), given.where if number == 0 else "")
            for given in (*self.powers.commands, *self.powers.loosened)
            for number, line in enumerate([*given.shown.splitlines(), *given.text.splitlines()] or ["nothing"])
        ]

    @property
    def changes(self) -> list[str]:
        """How that differs from what they agreed to."""
        hide = secrets().hide
        return [hide(line) for line in difference(self.before, shown(self.powers))] if self.before is not None else []

    def refusal(self) -> UserError:
        """For where nobody can be asked."""
        rows = self.changes or [f"{key} = {value}" for key, value, _ in self.rows]
        return UserError(
            f"{self.file} {'has changed since you trusted it' if self.changes else 'is not trusted'}",
            cause="\n       ".join(["it would run or steer something on this machine:", *rows]),
            hint=f"look at it, then run `bydawn trust {self.folder}`\n"
            f"       for once, where there is no terminal: `bydawn trust --once {self.powers.digest} {self.folder}`\n"
            "       or leave the project's settings out: --no-project",
        )


def question(settings: Settings, folder: Path, trusts: Trusts) -> Question | None:
    """What has to be asked before a loop may start with these settings; None when nothing has."""
    powers = powers_of(settings, datetime.now(UTC))
    if not in_force(powers, settings) or trusts.covers(folder, powers):
        return None
    return _question(powers, folder, trusts)


def use(settings: Settings, folder: Path, trusts: Trusts) -> None:
    """A loop starts: what was agreed to for once is used up."""
    powers = powers_of(settings, datetime.now(UTC))
    if in_force(powers, settings) and not trusts.use(folder, powers):
        raise _question(powers, folder, trusts).refusal()  # somebody else was faster


def review(settings: Settings, folder: Path, trusts: Trusts) -> Question | None:
    """Everything in a folder that needs trust, agreed to or not; None when nothing does."""
    powers = powers_of(settings, datetime.now(UTC))
    return None if powers.empty else _question(powers, folder, trusts)


def _question(powers: Powers, folder: Path, trusts: Trusts) -> Question:
    earlier = trusts.given(folder)
    return Question(
        folder=folder,
        file=config.project_file(folder).path,
        powers=powers,
        before=earlier.shown if earlier and earlier.digest != powers.digest else None,
    )


def shown(powers: Powers) -> Shown:
    """Powers as they are kept, to show later what changed; what is secret in them is not."""
    hide = secrets().hide
    return {key: [hide(line) for line in lines] for key, lines in powers.shown.items()}


def agree(powers: Powers, folder: Path, trusts: Trusts, *, once: bool = False) -> None:
    """A person has said yes."""
    refuse_inside_a_round()
    trusts.give(
        Trust(
            folder=str(folder),
            digest=powers.digest,
            shown=shown(powers),
            at=datetime.now(UTC),
            by=user(),
            once=once,
        )
    )


def agree_once(digest: str, settings: Settings, folder: Path, trusts: Trusts) -> None:
    """For the next start only, and only if what stands there is what was looked at."""
    refuse_inside_a_round()
    powers = powers_of(settings, datetime.now(UTC))
    if powers.digest != digest:
        raise UserError(
            f"the settings in {folder} are not the ones with the hash {digest[:40]}",
            cause=f"theirs is {powers.digest}",
            hint="look at what changed, then give the new hash",
        )
    agree(powers, folder, trusts, once=True)


def git_runs(folder: Path) -> list[str]:
    """Programs that git, called by an agent, would run by this repository's own configuration."""
    found = Git(folder=folder, seconds=20).answer("config", "--local", "--null", "--list") or ""
    rows = [tuple(row.split("\n", 1)) for row in found.split("\0") if "\n" in row]
    hide = secrets().hide
    runs = [hide(f"{key} = {value}") for key, value in rows if _RUNS.fullmatch(key) and value not in ("", "false")]
    common = Git(folder=folder, seconds=20).answer("rev-parse", "--path-format=absolute", "--git-common-dir")
    if common:
        place = Path(common.rstrip("\n")) / "hooks"
        names = sorted(path.name for path in place.glob("*") if path.suffix != ".sample") if place.is_dir() else []
        runs += [f"hook {name}" for name in names]
    return runs
