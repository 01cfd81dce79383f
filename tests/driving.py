"""What a story about the installed command is told with: a home of its own, the command, and what it leaves behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bydawn.cli.dialects import FURTHER
from bydawn.system.paths import read_whole
from forking import Forked

COMMAND = Path(sys.executable).with_name("bydawn")
MISBEHAVING = str(Path(__file__).with_name("misbehaving.py"))  # more steps for the demo agent
DEAD = ("Z", "X")
FOREIGN = ("BYDAWN_", "GIT_", "XDG_", "PYTHON", "NO_COLOR", "COLUMNS", "LINES")
ME = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")

Step = dict[str, Any]
Fact = dict[str, Any]
T = TypeVar("T")

OK: Step = {"result": {"text": "did it"}}
DONE: Step = {"result": {"text": "All of it is there.\n<promise>TASK_COMPLETE</promise>"}}
HANG: Step = {"sleep": 1e6}


class Said(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Home:
    """A person's home with one git repository in it; nothing of the caller's settings reaches it.

    A real one has real commands, which start an interpreter: for stories about processes.
    """

    def __init__(self, root: Path, *, real: bool = False) -> None:
        self.root = root
        self.real = real
        self.repo = root / "repo"
        self.states = root / "home/.local/state/bydawn"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self.env |= {
            "HOME": str(root / "home"),
            "XDG_STATE_HOME": str(root / "home/.local/state"),
            "XDG_CACHE_HOME": str(root / "home/.cache"),
            "XDG_CONFIG_HOME": str(root / "home/.config"),
            "PATH": f"{COMMAND.parent}:{os.environ['PATH']}",
            "TMPDIR": str(root / "tmp"),  # not above the home: there Codex could not run a command
            "TERM": "dumb",
            "BYDAWN_BOX": "off",  # a story about the box says so; no other may depend on what this machine has
        }
        self._started: list[subprocess.Popen[str]] = []
        (root / "home").mkdir(parents=True)
        (root / "tmp").mkdir()
        a_repository(self.repo, "# a throw-away repository\n")

    # -- setting the scene -----------------------------------------------------------------------------------------

    def tasks(self, count: int) -> str:
        """Give the repository a TODO.md with so many open boxes; its name."""
        (self.repo / "TODO.md").write_text("".join(f"- [ ] task {number}\n" for number in range(1, count + 1)))
        return "TODO.md"

    def rounds(self, *rounds: list[Step]) -> str:
        """An agent that plays these steps in its first, second, … round; the last ones for ever."""
        return self._script({"rounds": rounds})

    def each_task(self, *steps: Step, tasks: str = "TODO.md") -> str:
        """An agent that does one task a round: these steps, then it ticks the box."""
        tick = {"tick": {"task": "{task}", "tasks": tasks}}
        return self.rounds([{"each_task": {"steps": [*steps, tick, OK], "done": [OK], "tasks": tasks}}])

    def gate(self, name: str = "gate") -> tuple[Step, Path]:
        """A step that waits, and the file that lets it go on."""
        path = self.root / name
        return {"run": ["sh", "-c", f"until test -e {path}; do sleep 0.02; done"]}, path

    def _script(self, script: dict[str, Any]) -> str:
        path = self.root / f"script-{len(list(self.root.glob('script-*')))}.json"
        path.write_text(json.dumps({**script, "steps": MISBEHAVING}))
        return f"demo:{path}"

    # -- the command -----------------------------------------------------------------------------------------------

    def bydawn(self, *arguments: str, seconds: float = 60, **options: Any) -> Said:
        """Run the installed command in the repository to its end."""
        return said(self.start(*arguments, **options), seconds)

    def start(
        self, *arguments: str, before: Iterable[str] = (), command: str = "bydawn", **options: Any
    ) -> subprocess.Popen[str]:
        """Start the command, or another that comes with it, in a process group of its own.

        `before` stands in front of it; options in capitals are added to its environment, others are those of Popen.
        With anything in front it is the installed command, as it is in a real home; otherwise a fork, see forking.py.
        """
        env = {name: options.pop(name) for name in [*options] if name.isupper()}
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        usual = {"cwd": self.repo, "stdin": nothing, "stdout": pipe, "stderr": pipe, "start_new_session": True}
        words = [*before, str(COMMAND.with_name(command)), *arguments]
        make = subprocess.Popen if self.real or before else Forked
        process = make(words, env=self.env | env, text=True, **{**usual, **options})
        self._started.append(process)
        return process

    def run(self, agent: str, *arguments: str, **options: Any) -> Said:
        """`bydawn run` with a prompt, an agent and what else is asked for."""
        return self.bydawn("run", "do it", "-a", agent, "--plain", *arguments, **options)

    def start_run(self, agent: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return self.start("run", "do it", "-a", agent, "--plain", *arguments, **options)

    # -- what it leaves behind -------------------------------------------------------------------------------------

    def folder(self, name: str = "repo") -> Path:
        """The folder that holds the truth about a loop of the repository."""
        [found] = self.states.glob(f"loops/repo-*/{name}")
        return found

    def has_loop(self, name: str = "repo") -> bool:
        return any(self.states.glob(f"loops/repo-*/{name}/ledger.jsonl"))

    def facts(self, kind: str = "", name: str = "repo") -> list[Fact]:
        """The ledger as it stands in its file: all facts, or those of one kind."""
        return [fact for fact in ledger_of(self.folder(name)) if kind in ("", fact["type"])]

    def rounds_ended(self, name: str = "repo") -> list[Fact]:
        """With what was found in the workspace beside all else."""
        return [fact["data"] | fact["data"]["found"] for fact in self.facts("round.ended", name)]

    def outcomes(self, name: str = "repo") -> list[str]:
        return [ended["outcome"] for ended in self.rounds_ended(name)]

    def status(self, name: str = "repo", **options: Any) -> dict[str, Any]:
        """A loop as `status --json` shows it."""
        [loop] = json.loads(self.bydawn("status", name, "--json", **options).out)["loops"]
        return dict(loop)

    def show(self, name: str = "repo") -> dict[str, Any]:
        return dict(json.loads(self.bydawn("show", name, "--json").out))

    def await_round(self, number: int, name: str = "repo") -> int:
        """Wait until a round's agent has said its first word; its process id."""
        said_something = wait_for(lambda: [*self.states.glob(f"loops/repo-*/{name}/rounds/{number:04}/stdout")])
        wait_for(lambda: said_something[0].stat().st_size)
        cookie = [fact["data"]["cookie"] for fact in self.facts("round.started", name)][-1]
        return min(wait_for(lambda: alive_with(f"BYDAWN_COOKIE={cookie}")))

    # -- the end ---------------------------------------------------------------------------------------------------

    def alive(self) -> list[int]:
        """Every process that was started from this home and is still there."""
        mark, sessions = f"HOME={self.root}/home\0".encode(), {process.pid for process in self._started}
        return sorted(pid for pid in processes() if has_mark(pid, mark) or is_of(pid, sessions))

    def command_lines(self) -> list[list[bytes]]:
        """The words of each of them, as every user of the machine can read them; some end in this very moment."""
        found = []
        for pid in self.alive():
            with suppress(OSError):
                found.append(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))
        return found

    def leave(self) -> list[str]:
        """End whatever is still there a while after the story; the names of what should not have been."""
        deadline = time.monotonic() + 5  # what was left behind stays; what is just ending may be slow
        while (still := self.alive()) and time.monotonic() < deadline:
            time.sleep(0.01)
        left = [f"{pid}: {name_of(pid)}" for pid in still]
        while still:
            for pid in still:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
            still = self.alive()
        for process in self._started:
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        return left


def said(process: subprocess.Popen[str], seconds: float = 60) -> Said:
    """Wait for the end of a command and collect what it said."""
    out, err = process.communicate(timeout=seconds)
    foreign = [line for text in (out, err) for line in foreign_words(process.args, text or "")]
    assert not foreign, (process.args, foreign)
    return Said(process.returncode, out or "", err or "")


_THEIRS = r"\bbydawn\b(?!\.toml)|(?<![-\w])[Ll]oop \d"
_TOOLS = dict.fromkeys(("codex-autorunner", "codex-loop", "rloop", "waylon-smithers"), rf"{_THEIRS}|\b[Rr]ounds?\b")
_TOOLS |= {"strict-agent-loop": _THEIRS}  # whose document has rounds
_NOT_OURS = r"\S*/\S*|'[^']*'|\"[^\"]*\"|“[^”]*”"  # paths, and what is quoted


def foreign_words(args: Any, text: str) -> list[str]:
    """Lines in which a tool's command names another program, a round where it has another word, or `loop 3`."""
    theirs = next((_TOOLS[Path(word).name] for word in args if Path(word).name in _TOOLS), "")
    if not theirs or text.startswith(("{", "[")):  # JSON, whose keys are documented
        return []
    lines = [re.sub(_NOT_OURS, "", line) for line in text.replace(FURTHER, "").splitlines()]
    return [line for line in lines if re.search(theirs, line)]


def a_repository(folder: Path, readme: str) -> None:
    """A repository with one commit: a copy, since three calls of git are much for every story."""
    shutil.copytree(Path(_first_commit(readme).name) / "repository", folder)


@cache
def _first_commit(readme: str) -> "tempfile.TemporaryDirectory[str]":
    kept = tempfile.TemporaryDirectory(prefix="by-")
    folder = Path(kept.name) / "repository"
    folder.mkdir()
    (folder / "README.md").write_text(readme)
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run(["git", *ME, *arguments], cwd=folder, check=True, capture_output=True)
    for sample in folder.glob(".git/hooks/*.sample"):
        sample.unlink()
    return kept


def tree_of(folder: Path) -> dict[str, bytes]:
    """Every file of a work tree; git's own and the link to our state are no part of it."""
    files = (path for path in folder.rglob("*") if path.is_file() and not {".git", ".bydawn"} & set(path.parts))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def ledger_of(folder: Path) -> list[Fact]:
    """The records of a ledger, as raw as they are; half a last line is none."""
    data = (folder / "ledger.jsonl").read_bytes()
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def wait_for(look: Callable[[], T], seconds: float = 20) -> T:
    """Look again and again until there is something to see; less often the longer it takes, for looking has a price."""
    deadline, pause = time.monotonic() + seconds, 0.005
    while not (found := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(pause)
        pause = min(pause * 1.2, 0.05)
    return found


def processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def alive_with(mark: str) -> list[int]:
    """The processes, other than this one, whose environment holds a mark; the dead do not count."""
    return [pid for pid in processes() if has_mark(pid, mark.encode())]


def has_mark(pid: int, mark: bytes) -> bool:
    try:
        return mark in read_whole(f"/proc/{pid}/environ") and pid != os.getpid()
    except OSError:
        return False


def is_of(pid: int, sessions: set[int]) -> bool:
    """Is it in one of these sessions, and not dead?"""
    stat = stat_of(pid) if sessions else []
    return bool(stat) and int(stat[3]) in sessions and stat[0] not in DEAD


def is_alive(pid: int) -> bool:
    """One whose first thread has ended still holds its files, and so its locks, until the last one has."""
    stat = stat_of(pid)
    if stat and stat[0] in DEAD:
        with suppress(OSError):
            return len(os.listdir(f"/proc/{pid}/task")) > 1
        return False
    return bool(stat)


def stat_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, group, session, …; none when the process is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def name_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def worker_of(guardian: subprocess.Popen[str]) -> int:
    """The worker under a command that was started; waits until there is one."""
    return _first_child(guardian.pid)


def kill_both(guardian: int) -> None:
    """Kill the two processes of ours that a loop has, as a power cut would: neither sees the other die and tidies up.

    Only a guardian that has stopped is blind to that, and it takes a moment to stop.
    """
    worker = _first_child(guardian)
    os.kill(guardian, signal.SIGSTOP)
    wait_for(lambda: stat_of(guardian)[0] == "T")
    for pid in (worker, guardian):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(worker) and not is_alive(guardian))  # until then they hold the lock


def _first_child(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return int(wait_for(lambda: children.read_text().split())[0])


def is_error(text: str) -> bool:
    """Is this a message in three parts (the hint may be missing), and nothing like a traceback?"""
    labels = [line.partition(":")[0].strip() for line in text.splitlines()]
    return "error" in labels and "cause" in labels and "Traceback" not in text
