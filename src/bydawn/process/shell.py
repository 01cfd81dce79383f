"""Run a person's shell command with a time limit and its output in a file; none of it survives."""

from collections.abc import Callable, Mapping

import msgspec

from bydawn.core.agent import Ladder
from bydawn.core.outcome import Exit
from bydawn.core.ports import ChildLimits, Job, Processes, RoundFiles

_OUTPUT_CAP = 256 << 20
_LADDER = Ladder(interrupt=1.0, terminate=2.0)
_ELSEWHERE = 'cd "$1" && unset OLDPWD && exec /bin/sh -c "$2"'


class Shell(msgspec.Struct, frozen=True, kw_only=True):
    """Runs commands as children, like the agent; each starts in our own folder, which is the workspace."""

    processes: Processes
    files: RoundFiles
    env: Mapping[str, str]
    timeout: float
    reveal: Callable[[str], str]  # fills in the references in a setting

    def run(
        self,
        command: str,
        round_: int,
        name: str,
        urgent: Callable[[], bool],
        env: Mapping[str, str],
        folder: str | None = None,
    ) -> Exit:
        """`name` is the file for all its output; `folder` replaces the workspace."""
        output, command = self.files.write(round_, name, ""), self.reveal(command)
        job = Job(
            argv=("/bin/sh", "-c", _ELSEWHERE, "sh", folder, command) if folder else ("/bin/sh", "-c", command),
            env={**env, **self.env},
            stdin="/dev/null",
            stdout=output,
            stderr=output,
            limits=ChildLimits(total=self.timeout or None, output=_OUTPUT_CAP),
            ladder=_LADDER,
        )
        return self.processes.run(job, lambda _: False, lambda _: None, urgent)
