"""What do the machines say? Commands, paths and texts, each ending in a verdict."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.core.facts import Verdict
from bydawn.core.loop import Check, CommandCheck, PathCheck, TextCheck
from bydawn.core.outcome import Ending, Exit
from bydawn.core.ports import ChildLimits, Job, Ladder, Processes, RoundFiles
from bydawn.core.progress import duration
from bydawn.core.text import last_part
from bydawn.files import read_inside

_OUTPUT_CAP = 256 << 20
_EXCERPT = 3000  # characters of a failing check that the next prompt gets to see
_LADDER = Ladder(interrupt=1.0, terminate=2.0)


class ShellChecks:
    """Runs checks in the workspace through the same owner of children as the agent."""

    def __init__(
        self,
        processes: Processes,
        files: RoundFiles,
        workspace: Path,
        env: dict[str, str],
        timeout: float,
        reveal: Callable[[str], str],
    ) -> None:
        self._processes = processes
        self._files = files
        self._workspace = workspace
        self._env = env
        self._timeout = timeout
        self._reveal = reveal

    def run(self, checks: Sequence[Check], round_: int, urgent: Callable[[], bool]) -> tuple[Verdict, ...]:
        """All of them, in order; one that fails does not hide the others."""
        verdicts = []
        for number, check in enumerate(checks, 1):
            match check:
                case CommandCheck():
                    verdicts.append(self._command(check, round_, number, urgent))
                case PathCheck():
                    there = (self._workspace / check.path).exists()
                    verdicts.append(_static(check, there, "it is there" if there else f"there is no {check.path}"))
                case TextCheck():
                    verdicts.append(self._text(check))
        return tuple(verdicts)

    def _command(self, check: CommandCheck, round_: int, number: int, urgent: Callable[[], bool]) -> Verdict:
        name = f"check-{number}.txt"
        output = self._files.write(round_, name, "")
        exit_ = self._processes.run(
            Job(
                argv=("/bin/sh", "-c", self._reveal(check.command)),
                env=self._env,
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
        excerpt = "" if passed else last_part(self._files.tail(round_, name, _EXCERPT * 4), _EXCERPT)
        return Verdict(
            check=check.name,
            passed=passed,
            detail=_detail(exit_, self._timeout),
            exit_code=exit_.code,
            timed_out=exit_.ending is Ending.TOTAL,
            seconds=round(exit_.seconds, 3),
            output=name,
            excerpt=excerpt,
        )

    def _text(self, check: TextCheck) -> Verdict:
        try:
            data = read_inside(self._workspace, check.path)
        except UserError as error:
            return _static(check, False, f"{error.what}: {error.cause}")
        if data is None:
            return _static(check, False, f"there is no file {check.path}")
        there = self._reveal(check.text) in data.decode(errors="replace")
        return _static(check, there, "it stands there" if there else f"{check.path} does not contain {check.text!r}")


def _static(check: PathCheck | TextCheck, passed: bool, detail: str) -> Verdict:
    return Verdict(check=check.name, passed=passed, detail=detail, excerpt="" if passed else detail)


def _detail(exit_: Exit, timeout: float) -> str:
    """How it ended, in our own words."""
    if exit_.ending is Ending.TOTAL:
        return f"timed out after {duration(timeout)}"
    if exit_.ending is not Ending.EXIT:
        return f"stopped ({exit_.ending})"
    return f"exit {exit_.code}" if exit_.signal is None else f"ended by signal {exit_.signal}"
