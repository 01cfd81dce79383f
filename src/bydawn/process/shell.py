"""Run a person's command in a shell: within its time, into a file of the round, and nothing of it survives."""

from collections.abc import Callable, Mapping

import msgspec

from bydawn.core.agent import Ladder
from bydawn.core.outcome import Exit
from bydawn.core.ports import ChildLimits, Job, Processes, RoundFiles

_OUTPUT_CAP = 256 << 20
_LADDER = Ladder(interrupt=1.0, terminate=2.0)
_ELSEWHERE = 'cd "$1" && unset OLDPWD && exec /bin/sh -c "$2"'


class Shell(msgspec.Struct, frozen=True, kw_only=True):
    """The same owner of children as the agent's; every child is born in our own folder, which is the workspace."""

    processes: Processes
    files: RoundFiles
    env: Mapping[str, str]
    timeout: float
    reveal: Callable[[str], str]  # what a setting only refers to

    def run(
        self,
        command: str,
        round_: int,
        name: str,
        urgent: Callable[[], bool],
        env: Mapping[str, str],
        folder: str | None = None,
    ) -> Exit:
        """`name` is the file for all that it prints; `folder` is another place than the workspace."""
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
