"""What do the machines say? Commands, paths and texts, each ending in a verdict."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from bydawn.core import fingerprint
from bydawn.core.errors import UserError
from bydawn.core.facts import Verdict
from bydawn.core.loop import Check, CheckWhere, CommandCheck, PathCheck, TextCheck
from bydawn.core.outcome import Ending, Exit
from bydawn.core.ports import ChildLimits, Job, Ladder, Processes, RoundFiles
from bydawn.core.progress import duration
from bydawn.core.text import last_part
from bydawn.files import read_inside

_OUTPUT_CAP = 256 << 20
_EXCERPT = 3000  # characters of a failing check that the next prompt gets to see
_TAIL = 32_000  # bytes that a failure is known again by
_LADDER = Ladder(interrupt=1.0, terminate=2.0)
_ELSEWHERE = 'cd "$1" && unset OLDPWD && exec /bin/sh -c "$2"'


class ShellChecks:
    """Runs checks through the same owner of children as the agent, in the workspace or in a clean checkout of it."""

    def __init__(
        self,
        processes: Processes,
        files: RoundFiles,
        workspace: Path,
        env: dict[str, str],
        timeout: float,
        reveal: Callable[[str], str],
        *,
        where: CheckWhere = CheckWhere.WORKSPACE,
        checkout: Callable[[str], AbstractContextManager[Path]] | None = None,
    ) -> None:
        self._processes = processes
        self._files = files
        self._workspace = workspace
        self._env = env
        self._timeout = timeout
        self._reveal = reveal
        if where is CheckWhere.CLEAN and not checkout:
            raise ValueError("a clean checkout is asked for, and nobody makes one")
        self._checkout = checkout if where is CheckWhere.CLEAN else None

    def run(
        self, checks: Sequence[Check], round_: int, tree: str, urgent: Callable[[], bool], again: bool = False
    ) -> tuple[Verdict, ...]:
        """All of them, in order, on one tree; one that fails does not hide the others.

        `again`: these failed just now, and what they print this time is kept beside that.
        """
        if not checks:
            return ()
        files = "again" if again else "check"
        with self._checkout(tree) if self._checkout else nullcontext(self._workspace) as folder:
            return tuple(
                self._verdict(check, folder, round_, f"{files}-{number}.txt", urgent)
                for number, check in enumerate(checks, 1)
            )

    def _verdict(self, check: Check, folder: Path, round_: int, name: str, urgent: Callable[[], bool]) -> Verdict:
        match check:
            case CommandCheck():
                return self._command(check, folder, round_, name, urgent)
            case PathCheck():
                there = (folder / check.path).exists()
                return _static(check, there, "it is there" if there else f"there is no {check.path}")
            case TextCheck():
                return self._text(check, folder)

    def _command(
        self, check: CommandCheck, folder: Path, round_: int, name: str, urgent: Callable[[], bool]
    ) -> Verdict:
        output = self._files.write(round_, name, "")
        exit_ = self._processes.run(
            Job(
                argv=self._argv(self._reveal(check.command), folder),
                env={**self._env, "PWD": str(folder)},
                stdin="/dev/null",
                stdout=output,
                stderr=output,
                limits=ChildLimits(total=self._timeout or None, output=_OUTPUT_CAP),
                ladder=_LADDER,
            ),
            lambda _: False,
            lambda _: None,
            urgent,
        )
        self._files.mask(round_, name)
        passed = exit_.ending is Ending.EXIT and exit_.code == 0
        # A path in a checkout that is gone by then would help nobody; in the workspace it leads to the same file.
        tail = "" if passed else self._files.tail(round_, name, _TAIL).replace(str(folder), str(self._workspace))
        timed_out, detail = exit_.ending is Ending.TOTAL, _detail(exit_, self._timeout)
        return Verdict(
            check=check.name,
            passed=passed,
            detail=detail,
            exit_code=exit_.code,
            timed_out=timed_out,
            seconds=round(exit_.seconds, 3),
            output=name,
            excerpt=last_part(tail, _EXCERPT),
            # How far it had come when its time was over says nothing.
            fingerprint="" if passed else fingerprint.of(detail, "" if timed_out else tail),
        )

    def _argv(self, command: str, folder: Path) -> tuple[str, ...]:
        """Our own current folder is the workspace, and every child is born there."""
        if folder == self._workspace:
            return ("/bin/sh", "-c", command)
        return ("/bin/sh", "-c", _ELSEWHERE, "sh", str(folder), command)

    def _text(self, check: TextCheck, folder: Path) -> Verdict:
        try:
            data = read_inside(folder, check.path)
        except UserError as error:
            reason = f"{error.what}: {error.cause}"
            return _static(check, False, reason.replace(str(folder), str(self._workspace)))
        if data is None:
            return _static(check, False, f"there is no file {check.path}")
        there = self._reveal(check.text) in data.decode(errors="replace")
        return _static(check, there, "it stands there" if there else f"{check.path} does not contain {check.text!r}")


def _static(check: PathCheck | TextCheck, passed: bool, detail: str) -> Verdict:
    failure = "" if passed else fingerprint.of(detail)
    return Verdict(
        check=check.name, passed=passed, detail=detail, excerpt="" if passed else detail, fingerprint=failure
    )


def _detail(exit_: Exit, timeout: float) -> str:
    """How it ended, in our own words."""
    if exit_.ending is Ending.TOTAL:
        return f"timed out after {duration(timeout)}"
    if exit_.ending is not Ending.EXIT:
        return f"stopped ({exit_.ending})"
    return f"exit {exit_.code}" if exit_.signal is None else f"ended by signal {exit_.signal}"
