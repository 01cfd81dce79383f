"""Run a person's own command beside the loop: in the workspace, within its time, and nothing of it survives."""

from collections.abc import Callable
from pathlib import Path

from bydawn.core.hooks import output_of
from bydawn.core.outcome import Ending, Exit
from bydawn.core.ports import ChildLimits, Job, Ladder, Processes, RoundFiles

_OUTPUT_CAP = 256 << 20
_LADDER = Ladder(interrupt=1.0, terminate=2.0)


class ShellHooks:
    """Runs hooks through the same owner of children as the agent; the current folder is the workspace."""

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

    def run(self, name: str, command: str, round_: int, env: dict[str, str], urgent: Callable[[], bool]) -> Exit:
        try:
            output = self._files.write(round_, output_of(name), "")
        except OSError as error:  # on a full disk the loop ends, and its last hook must not keep it from saying so
            return Exit(ending=Ending.NOT_STARTED, detail=f"{output_of(name)}: {error.strerror}")
        # Paths are given as they are: a path that was made fit to be shown leads nowhere.
        about = {
            "BYDAWN_HOOK": name,
            "BYDAWN_ROUND": str(round_),
            "BYDAWN_WORKSPACE": str(self._workspace),
            "BYDAWN_FOLDER": self._files.folder(round_),
        }
        job = Job(
            argv=("/bin/sh", "-c", self._reveal(command)),
            env={**env, **about, **self._env},
            stdin="/dev/null",
            stdout=output,
            stderr=output,
            limits=ChildLimits(total=self._timeout or None, output=_OUTPUT_CAP),
            ladder=_LADDER,
        )
        return self._processes.run(job, lambda _: False, lambda _: None, urgent)
