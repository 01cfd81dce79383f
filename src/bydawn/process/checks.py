"""Runs checks: commands, paths and texts, each with a verdict."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.layout import check_output
from bydawn.core.loop import Check, CheckWhere, CommandCheck, PathCheck, TextCheck
from bydawn.core.outcome import Ending, in_words
from bydawn.core.text import last_part
from bydawn.core.values import Verdict
from bydawn.core.verdicts import of_failure
from bydawn.process.shell import Shell
from bydawn.system.reading import read_inside

_EXCERPT = 3000  # characters of a failing check's output for the next prompt
_TAIL = 32_000  # bytes that identify a failure


class ShellChecks:
    """Runs checks as children, like the agent, in the workspace or in a clean checkout of it."""

    def __init__(
        self,
        shell: Shell,
        workspace: Path,
        *,
        where: CheckWhere = CheckWhere.WORKSPACE,
        checkout: Callable[[str], AbstractContextManager[Path]] | None = None,
    ) -> None:
        self._shell = shell
        self._workspace = workspace
        if where is CheckWhere.CLEAN and not checkout:
            raise ValueError("a clean checkout was requested, but none can be made")
        self._checkout = checkout if where is CheckWhere.CLEAN else None

    def run(
        self, checks: Sequence[Check], round_: int, tree: str, urgent: Callable[[], bool], again: bool = False
    ) -> tuple[Verdict, ...]:
        """All checks, in order, on one tree; one that fails does not hide the others.

        `again`: these failed just now, and their new output is kept beside the first.
        """
        if not checks:
            return ()
        with self._checkout(tree) if self._checkout else nullcontext(self._workspace) as folder:
            verdicts = tuple(
                self._verdict(check, folder, round_, check_output(number, again=again), urgent)
                for number, check in enumerate(checks, 1)
            )
        return tuple(map(_elsewhere, verdicts)) if self._checkout else verdicts

    def _verdict(self, check: Check, folder: Path, round_: int, name: str, urgent: Callable[[], bool]) -> Verdict:
        match check:
            case CommandCheck():
                return self._command(check, folder, round_, name, urgent)
            case PathCheck():
                there = (folder / check.path).exists()
                return _static(check, there, "found" if there else f"{check.path} does not exist")
            case TextCheck():
                return self._text(check, folder)

    def _command(
        self, check: CommandCheck, folder: Path, round_: int, name: str, urgent: Callable[[], bool]
    ) -> Verdict:
        elsewhere = str(folder) if folder != self._workspace else None
        env = {"PWD": str(folder)}
        if elsewhere:  # a person's home may be a repository, and a checkout is in it
            env["GIT_CEILING_DIRECTORIES"] = str(folder.parent)
        exit_ = self._shell.run(check.command, round_, name, urgent, env, elsewhere)
        self._shell.files.mask(round_, name)
        passed = exit_.went_well
        # A path in a checkout that will be removed helps no one; in the workspace it is the same file.
        tail = "" if passed else self._shell.files.tail(round_, name, _TAIL).replace(str(folder), str(self._workspace))
        timed_out, detail = exit_.ending is Ending.TOTAL, in_words(exit_, self._shell.timeout)
        return Verdict(
            check=check.name,
            passed=passed,
            detail=detail if passed else detail + self._missed(f"{check.command}\n{tail}"),
            exit_code=exit_.code,
            timed_out=timed_out,
            seconds=round(exit_.seconds, 3),
            output=name,
            excerpt=last_part(tail, _EXCERPT),
            # How far it got before the timeout says nothing.
            fingerprint="" if passed else of_failure(detail, "" if timed_out else tail),
        )

    def _missed(self, text: str) -> str:
        """The first variable that it names and does not get: that may be why it failed."""
        missed = sorted(name for name in self._shell.without if re.search(rf"\b{re.escape(name)}\b", text))
        return f", without {missed[0]} (see --pass-env)" if missed else ""

    def _text(self, check: TextCheck, folder: Path) -> Verdict:
        try:
            data = read_inside(folder, check.path)
        except UserError as error:
            reason = f"{error.what}: {error.cause}"
            return _static(check, False, reason.replace(str(folder), str(self._workspace)))
        if data is None:
            return _static(check, False, f"no such file: {check.path}")
        there = self._shell.reveal(check.text) in data.decode(errors="replace")
        return _static(check, there, "found" if there else f"{check.path} does not contain {check.text!r}")


def _elsewhere(verdict: Verdict) -> Verdict:
    """A failure that says where it was seen, in case the same check passes in the workspace."""
    if verdict.passed:
        return verdict
    detail = f"{verdict.detail}, in a clean checkout"
    return replace(verdict, detail=detail, excerpt=detail if verdict.excerpt == verdict.detail else verdict.excerpt)


def _static(check: PathCheck | TextCheck, passed: bool, detail: str) -> Verdict:
    failure = "" if passed else of_failure(detail)
    return Verdict(
        check=check.name, passed=passed, detail=detail, excerpt="" if passed else detail, fingerprint=failure
    )
