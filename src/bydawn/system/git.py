"""The git command, hardened: no hooks, filters, prompts or outside configuration, and a time limit."""

import os
import signal
import subprocess
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from shutil import which

import msgspec

from bydawn.core.errors import OwnFailure, UserError

# Set at command scope, which overrides any repository's own configuration.
HARDENED = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",  # `ls-files` cannot use one
    "core.splitIndex": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.quotePath": "false",
    "core.protectNTFS": "false",  # or git skips, with a mere remark, names that only Windows minds
    "core.protectHFS": "false",
    "core.logAllRefUpdates": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",  # a folder that only looks like a repository cannot bring configuration
    "safe.directory": "*",  # other people's repositories are only read, with everything off that could run a program
    # strace of a round that changed three files: one fsync for all blobs (update-index), one for all trees
    # (write-tree), one for the ref (update-ref). Without `batch` each object has its own. The index is not
    # synced, which would be two more: a damaged one is noticed and rebuilt.
    "core.fsync": "objects,pack-metadata,reference",
    "core.fsyncMethod": "batch",
}
QUIET = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none"}
NO_USER_CONFIG = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}


Heard = tuple[bytes, bytes]  # what git printed, and its complaints


class WorkspaceGone(UserError):
    """The loop's folder no longer exists; only a person can bring it back."""

    exit_code = 3


class GitFailed(OwnFailure):
    """git ran and reported failure."""


class Git(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The git command in a workspace: hardened, in its own session, with a time limit."""

    folder: Path
    seconds: float
    config: dict[str, str] = {}
    places: dict[str, str] = {}  # where the repository is, if git should not search for it
    deaf: bool = True  # to the configuration of the user and the machine

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """What git printed."""
        return self.run_and_listen(*arguments, stdin=stdin)[0]

    def run_and_listen(self, *arguments: str, stdin: bytes = b"") -> Heard:
        """What git printed, and what it complained about although it continued."""
        return self._heard(self._start(arguments, subprocess.PIPE if stdin else subprocess.DEVNULL), arguments, stdin)

    def run_side_by_side(self, first: Sequence[str], second: Sequence[str]) -> tuple[Heard, Heard]:
        """The same for two calls at once."""
        process = self._start(first, subprocess.DEVNULL)
        try:
            heard = self.run_and_listen(*second)
        except BaseException:
            with process:
                os.killpg(process.pid, signal.SIGKILL)
            raise
        return self._heard(process, first), heard

    def _heard(self, process: "subprocess.Popen[bytes]", arguments: Sequence[str], stdin: bytes = b"") -> Heard:
        output, complaint = self._finish(process, arguments[0], stdin)
        if process.returncode:
            check_there(self.folder)
            cause = complaint.strip().decode("utf-8", "replace") or f"it exited with {process.returncode}"
            hint = "check free disk space and permissions, then run `bydawn resume`"
            raise GitFailed(f"git {arguments[0]} failed in {self.folder}", cause=cause, hint=hint)
        return output, complaint

    def answer(self, *arguments: str) -> str | None:
        """What git printed, None if its answer is no."""
        try:
            return os.fsdecode(self.run(*arguments))
        except GitFailed:
            return None

    def _start(self, arguments: Sequence[str], stdin: int) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                [self._program, *arguments],
                cwd=self.folder,
                env=self._environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            check_there(self.folder)
            hint = "install git 2.36 or newer and make sure `git --version` works"
            raise OwnFailure("git cannot be started", cause=str(error), hint=hint) from error

    @cached_property
    def _program(self) -> str:
        """Found once; otherwise every call would search the whole PATH."""
        return program(self.folder)

    def _finish(self, process: "subprocess.Popen[bytes]", command: str, stdin: bytes) -> Heard:
        with process:
            try:
                return process.communicate(stdin or None, timeout=self.seconds)
            except subprocess.TimeoutExpired:
                raise OwnFailure(
                    f"git {command} did not finish within {self.seconds:g} seconds in {self.folder}",
                    cause="the disk does not respond, or git found a pipe where it expects a file",
                    hint="run `git status` there; once that is quick, run `bydawn resume`",
                ) from None
            finally:
                if process.returncode is None:  # after Ctrl-C, too, no git may keep running
                    os.killpg(process.pid, signal.SIGKILL)

    @cached_property
    def _environment(self) -> dict[str, str]:
        """Our environment without any GIT_*, which could point to another repository or turn tracing on."""
        config = HARDENED | self.config
        variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        variables |= QUIET | self.places | (NO_USER_CONFIG if self.deaf else {})
        variables["PATH"] = _path_outside(self.folder, variables.get("PATH", os.defpath))
        variables |= {f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(config)}
        variables |= {f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(config.values())}
        return variables | {"GIT_CONFIG_COUNT": str(len(config))}


def _here() -> Path:
    try:
        return Path(os.path.realpath("."))
    except OSError:  # it was removed
        return Path("/")


_STARTED_IN = _here()  # the process changes folder later


def program(folder: Path) -> str:
    """The git to use in a folder; never one that the folder itself contains."""
    path = _path_outside(folder, os.environ.get("PATH", os.defpath))
    if found := path and which("git", path=path):
        return found
    cause = f"no git on the PATH outside {folder}"
    raise OwnFailure("git cannot be started", cause=cause, hint="install git 2.36 or newer")


@cache
def _path_outside(folder: Path, path: str) -> str:
    """The PATH without folders inside a workspace, or a repository around it or us: a `git` there is not trusted."""
    inside = {folder, *_repositories(folder), *_repositories(_STARTED_IN)}
    outside = [entry for entry in path.split(":") if entry.startswith("/")]
    return ":".join(
        entry for entry in outside if inside.isdisjoint((real := Path(os.path.realpath(entry)), *real.parents))
    )


def _repositories(folder: Path) -> list[Path]:
    """The folders from here up that contain a repository; the file system root does not count.

    An empty `.git` does not count: sandboxes of agents leave those behind, in /tmp too.
    """
    return [each for each in (folder, *folder.parents) if _has_repository(each) and each != each.parent]


def _has_repository(folder: Path) -> bool:
    git = folder / ".git"
    return git.is_file() or os.path.lexists(git / "HEAD")


def check_there(folder: Path) -> None:
    if not folder.is_dir():
        cause, hint = "it was removed, moved or unmounted", "bring it back, then run `bydawn resume`"
        raise WorkspaceGone(f"the folder {folder} no longer exists", cause=cause, hint=hint)
