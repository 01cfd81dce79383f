"""Runs a hook: a person's own command beside the loop."""

from collections.abc import Callable
from pathlib import Path

from bydawn.core.layout import hook_output
from bydawn.core.outcome import Ending, Exit
from bydawn.process.shell import Shell


class ShellHooks:
    """Runs hooks in the workspace, with variables that say where they are."""

    def __init__(self, shell: Shell, workspace: Path) -> None:
        self._shell = shell
        self._workspace = workspace

    def run(self, name: str, command: str, round_: int, env: dict[str, str], urgent: Callable[[], bool]) -> Exit:
        # Paths are passed unchanged: one cleaned up for display would lead nowhere.
        about = {
            "BYDAWN_HOOK": name,
            "BYDAWN_ROUND": str(round_),
            "BYDAWN_WORKSPACE": str(self._workspace),
            "BYDAWN_FOLDER": self._shell.files.folder(round_),
        }
        try:
            return self._shell.run(command, round_, hook_output(name), urgent, {**env, **about})
        except OSError as error:  # on a full disk the loop ends, and its last hook must not keep it from recording that
            return Exit(ending=Ending.NOT_STARTED, detail=f"{hook_output(name)}: {error.strerror}")
