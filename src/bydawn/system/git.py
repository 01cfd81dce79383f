"""The git command, hardened: no hooks, filters, prompts or outside configuration, and a time limit."""

import os
import signal
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.values import Act, Advice
from bydawn.system import programs

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
    # strace of a round that changed three files: one fsync for all blobs (update-index) and one for all trees
    # (write-tree). Without `batch` each object has its own. The index is not synced, which would be two more: a
    # damaged one is noticed and rebuilt.
    "core.fsync": "objects,pack-metadata,reference",
    "core.fsyncMethod": "batch",
}
# For a repository that its person trusts: it works as they have set it up, without hooks and background work.
TRUSTED = {"core.hooksPath": "/dev/null", "core.fsmonitor": "false", "gc.auto": "0", "maintenance.auto": "false"}
PERSONAL = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_SSH")
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
    trusting: bool = False  # the repository's own, its filters included

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
            hint = Advice("check free disk space and permissions, then run ", Act("resume"))
            raise GitFailed(f"git {arguments[0]} failed in {self.folder}", cause=cause, hint=hint)
        return output, complaint

    def answer(self, *arguments: str) -> str | None:
        """What git printed, None if its answer is no."""
        try:
            return os.fsdecode(self.run(*arguments))
        except GitFailed:
            return None

    def without_filters(self) -> "Git":
        """The same, and the repository's own filters are off: a mere look at a file can start one.

        No switch turns them all off, so each setting is replaced by the person's own, or emptied.
        """
        found = self.answer("config", "-z", "--show-scope", "--get-regexp", r"^filter\.") or ""
        words = found.split("\0")
        rows = [(scope, *row.partition("\n")[::2]) for scope, row in zip(words[::2], words[1::2], strict=False)]
        theirs = {key: value for scope, key, value in rows if scope in ("system", "global")}
        own = {key: theirs.get(key, "") for scope, key, _ in rows if scope in ("local", "worktree")}
        return msgspec.structs.replace(self, config=self.config | own)

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
                    hint=Advice("run `git status` there; once that is quick, run ", Act("resume")),
                ) from None
            finally:
                if process.returncode is None:  # after Ctrl-C, too, no git may keep running
                    os.killpg(process.pid, signal.SIGKILL)

    @cached_property
    def _environment(self) -> dict[str, str]:
        """Our environment without any GIT_*, which could point to another repository or turn tracing on."""
        config = (TRUSTED if self.trusting else HARDENED) | self.config
        kept = PERSONAL if self.trusting else ()
        variables = {name: value for name, value in os.environ.items() if is_kept(name, kept)}
        variables |= QUIET | self.places | (NO_USER_CONFIG if self.deaf else {})
        variables["PATH"] = programs.path_outside(self.folder)
        variables |= {f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(config)}
        variables |= {f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(config.values())}
        return variables | {"GIT_CONFIG_COUNT": str(len(config))}


def is_kept(variable: str, kept: tuple[str, ...] = PERSONAL) -> bool:
    """Is it none of git's, or one that says who the person is?"""
    return not variable.startswith("GIT_") or variable.startswith(kept)


def program(folder: Path) -> str:
    """The git to use in a folder; never one that the folder itself contains."""
    if found := programs.find("git", folder):
        return found
    cause = f"no git on the PATH outside {folder}"
    raise OwnFailure("git cannot be started", cause=cause, hint="install git 2.36 or newer")


def check_there(folder: Path) -> None:
    if not folder.is_dir():
        cause, hint = "it was removed, moved or unmounted", Advice("bring it back, then run ", Act("resume"))
        raise WorkspaceGone(f"the folder {folder} no longer exists", cause=cause, hint=hint)
