"""Run a person's shell command with a time limit and its output in a file; none of it survives."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from bydawn.core.agent import Ladder
from bydawn.core.layout import hook_output
from bydawn.core.outcome import Ending, Exit
from bydawn.core.ports import ChildLimits, Job, Processes, RoundFiles

_OUTPUT_CAP = 256 << 20
_TAIL = 64 << 10  # bytes of the output that are kept
_LADDER = Ladder(interrupt=1.0, terminate=2.0)
_ELSEWHERE = 'cd "$1" && unset OLDPWD && exec /bin/sh -c "$2"'


class Shell(msgspec.Struct, frozen=True, kw_only=True):
    """Runs commands as children, like the agent; each starts in our own folder, which is the workspace."""

    processes: Processes
    files: RoundFiles
    env: Mapping[str, str]
    timeout: float
    reveal: Callable[[str], str]  # fills in the references in a setting
    without: frozenset[str] = frozenset()  # variables that its commands do not get

    def run(
        self,
        command: str,
        round_: int,
        name: str,
        urgent: Callable[[], bool],
        env: Mapping[str, str],
        folder: str | None = None,
        box: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None,
        errors: str = "",
    ) -> Exit:
        """`name` is the file for all its output; `folder` replaces the workspace; `box` puts it in a box; `errors` is
        the file for its stderr, if that is kept apart."""
        output, command = self.files.write(round_, name, ""), self.reveal(command)
        argv = ("/bin/sh", "-c", _ELSEWHERE, "sh", folder, command) if folder else ("/bin/sh", "-c", command)
        job = Job(
            argv=box(argv) if box else argv,
            boxed=box is not None,
            env={**env, **self.env},
            without=self.without,
            stdin="/dev/null",
            stdout=output,
            stderr=self.files.write(round_, errors, "") if errors else output,
            limits=ChildLimits(total=self.timeout or None, output=_OUTPUT_CAP),
            ladder=_LADDER,
        )
        return self.processes.run(job, lambda _: False, lambda _: None, urgent)


class ShellHooks:
    """Runs hooks, a person's own commands beside the loop, in the workspace, with variables that say where they are."""

    def __init__(self, shell: Shell, workspace: Path) -> None:
        self._shell = shell
        self._workspace = workspace

    def run(
        self, name: str, command: str, round_: int, env: dict[str, str], urgent: Callable[[], bool], number: int = 1
    ) -> Exit:
        # Paths are passed unchanged: one cleaned up for display would lead nowhere.
        about = {
            "BYDAWN_HOOK": name,
            "BYDAWN_ROUND": str(round_),
            "BYDAWN_WORKSPACE": str(self._workspace),
            "BYDAWN_FOLDER": self._shell.files.folder(round_),
        }
        output = hook_output(name, number)
        try:
            return self._shell.run(command, round_, output, urgent, {**env, **about})
        except OSError as error:  # on a full disk the loop ends, and its last hook must not keep it from recording that
            return Exit(ending=Ending.NOT_STARTED, detail=f"{output}: {error.strerror}")


def run_alone(
    command: str, folder: Path, seconds: float, env: Mapping[str, str], without: Collection[str] = ()
) -> tuple[int | None, bytes]:
    """Run a command without a loop, as in an agent's sandbox: its exit code (None: too late), and how its output ends.

    What it has started dies with it. It does not inherit the variables in `without`.
    """
    import os
    import signal
    import subprocess
    from select import select
    from time import monotonic

    end, output = monotonic() + seconds, b""
    with subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in without} | dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as child:
        assert child.stdout  # noqa: S101 - a pipe
        pipe = child.stdout.fileno()
        try:
            while child.poll() is None and (left := end - monotonic()) > 0:
                if select([pipe], [], [], min(left, 0.1))[0]:
                    part = os.read(pipe, _TAIL)
                    output = (output + part)[-_TAIL:]
                    if not part:
                        with suppress(subprocess.TimeoutExpired):
                            child.wait(left)
        finally:
            code = child.poll()
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        if select([pipe], [], [], 0)[0]:  # a pipe holds no more than this
            output = (output + os.read(pipe, _TAIL))[-_TAIL:]
    return code, output
