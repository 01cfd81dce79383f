"""Runs checks: commands, paths and texts, each with a verdict."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.layout import check_output, stderr_beside
from bydawn.core.loop import Check, CheckWhere, CommandCheck, PathCheck, TextCheck
from bydawn.core.outcome import Ending, in_words
from bydawn.core.ports import NONE
from bydawn.core.text import last_part
from bydawn.core.values import Verdict
from bydawn.core.verdicts import of_failure
from bydawn.process.box import TEMPORARY, Box, Within, refused_folder, temporary_folder
from bydawn.process.shell import Shell
from bydawn.system.reading import read_inside

_EXCERPT = 3000  # characters of a failing check's output for the next prompt
_PART = 1498  # … where stdout and stderr are apart: with the sign that something is missing, 1,500
_TAIL = 32_000  # bytes that identify a failure


class _Place(msgspec.Struct, frozen=True):
    """Where the checks of one run are, and who may cut them short."""

    folder: Path
    temporary: Path
    round: int
    urgent: Callable[[], bool]
    fresh: bool  # with an empty cache of compiled modules
    within: Within


class ShellChecks:
    """Runs checks as children, like the agent, in the workspace or in a clean checkout of it."""

    def __init__(
        self,
        shell: Shell,
        workspace: Path,
        *,
        where: CheckWhere = CheckWhere.WORKSPACE,
        checkout: Callable[[str], AbstractContextManager[Path]] | None = None,
        within: Callable[[], Within] = Within,
        box: Box | None = None,
        temporary: Path | None = None,
        distrusts_caches: bool = False,
        splits_output: bool = False,
    ) -> None:
        """`temporary` is where they get a folder of their own. `within`: what a tree lacks that is tried aside."""
        self._splits_output = splits_output
        self._shell = shell
        self._workspace = workspace
        self._box, self._temporary = box, temporary
        self._distrusts_caches = distrusts_caches
        if where is CheckWhere.CLEAN and not checkout:
            raise ValueError("a clean checkout was requested, but none can be made")
        self._clean, self._checkout, self._within = where is CheckWhere.CLEAN, checkout, within

    def run(
        self,
        checks: Sequence[Check],
        round_: int,
        tree: str,
        urgent: Callable[[], bool],
        again: bool = False,
        outside: Mapping[str, str] = NONE,
        aside: str = "",
    ) -> tuple[Verdict, ...]:
        """All checks, in order, on one tree; one that fails does not hide the others.

        `again`: these failed just now, and their new output is kept beside the first. `aside`: another tree than that
        of the workspace is tried, for this purpose.
        """
        if not checks:
            return ()
        apart = self._clean or bool(aside)
        with (
            self._checkout(tree) if self._checkout and apart else nullcontext(self._workspace) as folder,
            temporary_folder(self._temporary) if self._temporary else nullcontext(folder) as temporary,
        ):
            within = self._within() if aside and not self._clean else Within()
            place = _Place(folder, temporary, round_, urgent, self._distrusts_caches or bool(aside), within)
            verdicts = tuple(
                self._verdict(
                    check, place, check_output(number, again=again, outside=check.name in outside, aside=aside), outside
                )
                for number, check in enumerate(checks, 1)
            )
        return tuple(map(_elsewhere, verdicts)) if self._clean else verdicts

    def _verdict(self, check: Check, place: "_Place", name: str, outside: Mapping[str, str]) -> Verdict:
        folder = place.folder
        match check:
            case CommandCheck():
                box = self._box if check.name not in outside else None
                verdict = self._command(check, place, name, box)
                if box is None and check.name in outside:
                    return replace(verdict, outside=True, needs=outside[check.name])
                return verdict
            case PathCheck() | TextCheck():
                return look_for(check, folder, self._workspace, self._shell.reveal)

    def _command(self, check: CommandCheck, place: "_Place", name: str, box: Box | None) -> Verdict:
        from bydawn.core import counts  # its patterns take a while to compile, and the agent waits for nothing of it

        folder, round_ = place.folder, place.round
        apart = folder != self._workspace
        elsewhere = str(folder) if apart and not box else None  # in a box it is in the place of the workspace
        env = {"PWD": elsewhere or str(self._workspace)}
        if apart:  # a person's home may be a repository, and a checkout is in it
            env["GIT_CEILING_DIRECTORIES"] = str(Path(env["PWD"]).parent)
        if place.fresh:
            # A module that the agent compiled could stand for a protected one. No other check knows this name.
            caches = f"{TEMPORARY if box else place.temporary}/pycache-{os.urandom(6).hex()}"
            env["PYTHONPYCACHEPREFIX"] = caches
        wrap = partial(box.around, folder=folder, temporary=place.temporary, within=place.within) if box else None
        errors = stderr_beside(name) if self._splits_output else ""
        exit_ = self._shell.run(check.command, round_, name, place.urgent, env, elsewhere, wrap, errors)
        names, passed = (name, errors) if errors else (name,), exit_.went_well
        self._shell.files.mask(round_, *names)
        # A path in a checkout that will be removed helps no one; in the workspace it is the same file.
        wanted = names if errors or not passed else ()
        tails = [
            self._shell.files.tail(round_, each, _TAIL).replace(str(folder), str(self._workspace)) for each in wanted
        ]
        tail = "" if passed else "".join(tails)
        timed_out, detail = exit_.ending is Ending.TOTAL, in_words(exit_, self._shell.timeout)
        # A box reports a signal as the shell does. How far it got before the timeout says nothing.
        ended = f"exit {128 + exit_.signal}" if exit_.signal else detail
        fingerprint = "" if passed else of_failure(ended, "" if timed_out else tail)
        needs = refused_folder(tail, str(self._workspace), os.environ.get("HOME", "")) if box and not passed else ""
        if needs:
            detail += f", in the box, where it cannot write to {needs} (see --box-write)"
        pieces = self._shell.files.pieces(round_, name)
        return Verdict(
            check=check.name,
            passed=passed,
            detail=detail if passed else detail + self._missed(f"{check.command}\n{tail}"),
            exit_code=exit_.code,
            timed_out=timed_out,
            seconds=round(exit_.seconds, 3),
            output=names[-1] if errors and not tails[0] else name,
            stdout=last_part(tails[0], _PART) if errors else "",
            stderr=last_part(tails[1], _PART) if errors else "",
            excerpt=last_part(tail, _EXCERPT),
            needs=needs,
            fingerprint=fingerprint,
            counts=counts.of(pieces or ()),
            uncounted=pieces is None,
        )

    def _missed(self, text: str) -> str:
        """The first variable that it names and does not get: that may be why it failed."""
        missed = sorted(name for name in self._shell.without if re.search(rf"\b{re.escape(name)}\b", text))
        return f", without {missed[0]} (see --pass-env)" if missed else ""


def look_for(
    check: PathCheck | TextCheck, folder: Path, workspace: Path, reveal: Callable[[str], str] = str
) -> Verdict:
    """Is the path, or the text, in the folder? It may be a checkout of the workspace, which is the one to name."""
    if isinstance(check, PathCheck):
        return _path(check, folder, workspace)
    try:
        data = read_inside(folder, check.path)
    except UserError as error:
        return _static(check, False, f"{error.what}: {error.cause}".replace(str(folder), str(workspace)))
    if data is None:
        return _static(check, False, f"no such file: {check.path}")
    there = reveal(check.text) in data.decode(errors="replace")
    return _static(check, there, "found" if there else f"{check.path} does not contain {check.text!r}")


def _path(check: PathCheck, folder: Path, workspace: Path) -> Verdict:
    """A file or folder that is in the workspace: what a link leads to elsewhere is not the work."""
    real = Path(os.path.realpath(folder / check.path))  # of a link that leads to itself, too
    if not real.exists():
        return _static(check, False, f"{check.path} does not exist")
    inside = any(real.is_relative_to(os.path.realpath(each)) for each in (folder, workspace))
    there = inside and (real.is_file() or real.is_dir())
    why = "is neither a file nor a folder" if inside else "is a link that leads out of the workspace"
    return _static(check, there, "found" if there else f"{check.path} {why}")


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
