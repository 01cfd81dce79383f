"""What a story about rloop is told with: projects in a home, the command, what Claude plays, and what both leave."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from driving import COMMAND, Home, Said, a_repository, alive_with, is_alive, ledger_of, said, stat_of, wait_for
from program.strict_claude import Turns, calls, install, log_in

Json = dict[str, Any]
Turn = dict[str, Any]

PRD = "PRD.md"
ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)"
TAG = "<promise>COMPLETE</promise>"

# One task a session, as the document wants it: work, a ticked box, a commit, and no promise.
COMMIT = "git -c user.name=C -c user.email=c@example.org commit -qam work"
TASK: Turn = {"append": {"work.txt": "more\n"}, "tick": PRD, "reply": "Did the first open task."}
IDLE: Turn = {"reply": "I had a look."}
SAYS = "This takes a while."


@cache
def _without_tmux() -> "TemporaryDirectory[str]":
    """Every program of this machine but tmux."""
    kept = TemporaryDirectory(prefix="by-")
    for folder in os.environ["PATH"].split(":"):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = Path(kept.name) / program.name
            if program.name != "tmux" and not link.is_symlink():
                link.symlink_to(program)
    return kept


class Rloop:
    """The command in a home with projects, and the fake Claude that it finds; there is no tmux unless it is wanted."""

    def __init__(self, home: Home, *, tmux: bool = False) -> None:
        self.home = home
        self.projects = home.root / "home/projects"
        self.bin = home.root / "bin"
        programs = os.environ["PATH"] if tmux else _without_tmux().name
        home.env["PATH"] = f"{self.bin}:{COMMAND.parent}:{programs}"
        self.login = log_in(home.root / "home")
        for name in [name for name in home.env if name.startswith(("RLOOP_", "IS_SANDBOX", "TMUX"))]:
            del home.env[name]

    # -- setting the scene -----------------------------------------------------------------------------------------

    def plays(self, *turns: Turn, **by_project: Turns) -> None:
        scripts: Mapping[str, Turns] = {**({"": turns} if turns else {}), **by_project}
        install(self.bin, scripts)

    def project(self, name: str = "app1", boxes: int = 1, *, text: str | None = None) -> Path:
        """A repository below ~/projects with a PRD of so many open boxes."""
        folder = Path(os.path.normpath(self.projects / name))
        if not folder.exists():
            a_repository(folder, f"# {name}\n")
        boxed = "".join(f"- [ ] task {number}\n" for number in range(1, boxes + 1))
        (folder / PRD).write_text(f"# PRD\n\n{boxed}" if text is None else text)
        return folder

    def gate(self, name: str = "gate") -> Path:
        """A file that a turn with `wait_for` waits for."""
        return self.home.root / name

    # -- the command -----------------------------------------------------------------------------------------------

    def start(self, *words: str, real: bool = False, **options: Any) -> subprocess.Popen[str]:
        was, self.home.real = self.home.real, self.home.real or real
        try:
            return self.home.start(*words, command="rloop", **{"cwd": self.home.root, **options})
        finally:
            self.home.real = was

    def __call__(self, *words: str, seconds: float = 60, **options: Any) -> Said:
        return said(self.start(*words, **options), seconds)

    def paste(self, text: str, **options: Any) -> Said:
        """What a person copied from the document, in their shell."""
        usual = {"cwd": self.projects.parent, **options}
        return said(self.home.start(before=["bash", "-c", text], **usual))

    def runs(self, folder: Path, *words: str, **options: Any) -> Said:
        """A loop in the foreground."""
        return self("start", str(folder), "--no-tmux", *words, **options)

    # -- what is left ----------------------------------------------------------------------------------------------

    @property
    def config(self) -> Path:
        return self.home.root / "home/.config/rloop"

    @property
    def sessions(self) -> dict[str, Json]:
        path = self.config / "state.json"
        return dict(json.loads(path.read_text())["sessions"]) if path.exists() else {}

    def session(self, name: str = "app1") -> Json:
        return self.sessions[name]

    def log(self, name: str = "app1") -> str:
        path = self.projects / name / ".rloop/ralph.log"
        return path.read_text() if path.exists() else ""

    def prd(self, name: str = "app1") -> str:
        return (self.projects / name / PRD).read_text()

    def calls(self, name: str = "") -> list[Json]:
        """The turns that Claude was asked for, in one project or in all."""
        turns = [call for call in calls(self.bin) if call["prompt"] is not None]
        return [call for call in turns if name in ("", Path(call["cwd"]).name)]

    def refused(self) -> list[Json]:
        """The calls that Claude refused, questions about its version aside."""
        asked = [call for call in calls(self.bin) if call["prompt"] is None]
        return [call for call in asked if not {"--version", "--help", "-v"} & {*call["argv"]}]

    def table(self, **options: Any) -> dict[str, list[str]]:
        """The rows of `rloop status` by name."""
        said = self("status", **{"COLUMNS": "200", **options})
        assert said.code == 0, said
        rows = [re.split(r"  +", line.strip()) for line in said.out.splitlines() if line.strip()]
        return {row[0]: row[1:] for row in rows}

    def word(self, name: str = "app1", **options: Any) -> str:
        """The status of one session, as its row says."""
        return self.table(**options)[name][2]

    def json(self) -> dict[str, Json]:
        shown = json.loads(self("status", "--json").out)["sessions"]
        return {session["name"]: session for session in shown}

    def await_turn(self, count: int, name: str = "app1") -> None:
        """Wait until Claude is in a turn."""
        wait_for(lambda: len(self.calls(name)) >= count)

    def await_end(self, *names: str, seconds: float = 40) -> list[str]:
        """Wait until these sessions have ended; what state.json says then."""
        ended = lambda: all(self.session(name)["status"] != "running" for name in names)  # noqa: E731
        wait_for(ended, seconds)
        return [self.session(name)["status"] for name in names]

    def folders(self, name: str = "app1") -> list[Path]:
        """The folders of the loops that were made in a project, oldest first."""
        found = [path.parent for path in self.home.states.glob(f"loops/{name}-*/*/ledger.jsonl")]
        return sorted(found, key=lambda folder: str(ledger_of(folder)[0]["at"]))

    def facts(self, kind: str, name: str = "app1") -> list[Json]:
        """The facts of one kind about the newest loop of a project."""
        return [fact["data"] for fact in ledger_of(self.folders(name)[-1]) if fact["type"] == kind]

    def workers(self, *names: str) -> list[tuple[int, int]]:
        """The worker of each session, and its guardian."""
        pids = [self.session(name)["pid"] for name in names]
        return [(pid, int(stat_of(pid)[1])) for pid in pids]

    def power_cut(self, *names: str) -> None:
        """As if the machine had lost its power: nobody sees anybody's end."""
        pids = [pid for worker, guardian in self.workers(*names) for pid in (guardian, worker)]
        cookies = [self.facts("round.started", name)[-1]["cookie"] for name in names]
        for pid in pids:  # guardians first: they wake a worker that is stopped
            os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: stat_of(pid)[0] == "T")  # noqa: B023 - called at once
        agents = [pid for cookie in cookies for pid in alive_with(f"BYDAWN_COOKIE={cookie}")]
        for pid in (*agents, *pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(is_alive(pid) for pid in (*agents, *pids)))

    def nothing_is_alive(self) -> bool:
        return not alive_with(f"HOME={self.home.root}/home\0")
