"""A box for checks, which run what the agent wrote: it can write to the workspace and to little else.

Bubblewrap makes it. Everything else can be read, except our state and the user's settings; the network is as it is.
It has its own process ids, and all that is in it ends with it.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bydawn.core.verdicts import SOME_FOLDER
from bydawn.system import kernel, programs
from bydawn.system.paths import remove_folder

_PATIENCE = 10.0  # seconds for an empty box to open
TEMPORARY = "/tmp"  # noqa: S108 - in the box it is a folder of the check's own
_ENV = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), TEMPORARY)
# What root keeps: enough for its own files. With more it could mount everything again, writable.
_KEPT = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")
# The last is npm's word for a folder that it cannot make.
_REFUSED = re.compile(r"read-only file system|\bEROFS\b|\bos error 30\b|\[errno 30\]|\bENOENT\b.*\bmkdir '/", re.I)
_PATH = re.compile(r"(?<![\w.~/])/[^\s'\"`‘’“”:;,()<>|]+")
_SHARED = {".cache", ".config", ".local", ".local/share", ".local/state"}  # a tool has its folder below these


_PACKAGES = {"node_modules", ".venv", "venv", "vendor", "bower_components", ".bundle", "Pods", "deps", ".tox", ".nox"}
_BUILDS = {"target", "build", "dist", ".next", "_build", ".gradle"}
MISSING = "bwrap is not installed"


class Within(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkout in the place of the workspace has besides files of the tree; paths are from the workspace on."""

    packages: tuple[str, ...] = ()  # installed ones: the workspace's own, read-only
    builds: dict[str, str] = {}  # folders for build output, each with the place where it is kept

    @classmethod
    def of(cls, ignored: Iterable[str], keep: Path) -> "Within":
        """Judging by the names of folders that git ignores; `keep`: where build output stays between two runs."""
        packages, builds = list[str](), dict[str, str]()
        for path in ignored:
            name = path.rpartition("/")[2]
            if name in _PACKAGES or name.endswith(".egg-info"):
                packages.append(path)
            elif name in _BUILDS:
                place = keep / path.replace("%", "%25").replace("/", "%2F")
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                builds[path] = str(place)
        return cls(packages=tuple(packages), builds=builds)


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """The box of one loop."""

    program: str
    workspace: str
    hidden: tuple[str, ...]  # our state and the user's settings
    writable: tuple[str, ...] = ()

    def around(
        self, argv: Sequence[str], folder: Path, temporary: Path, within: "Within | None" = None
    ) -> tuple[str, ...]:
        """The command that runs another one in the box, where `folder` is its own.

        Unless that is the workspace, it is a checkout in the place of the workspace: paths that lead there lead into
        the checkout, with nothing else of the workspace but what is in `within`.
        """
        links = f"{self.workspace}/.bydawn"  # they lead to what is hidden, and `node --test` fails on such a link
        linked = Path(links).is_dir() and not Path(links).is_symlink() and str(folder) == self.workspace
        hidden = (*self.hidden, *([links] if linked else []))
        within = within or Within()
        places = {
            TEMPORARY: ("--bind", str(temporary)),
            **{path: ("--bind-try", path) for path in map(os.path.realpath, self.writable)},
            self.workspace: ("--bind", str(folder)),
            **{f"{self.workspace}/{path}": ("--ro-bind", f"{self.workspace}/{path}") for path in within.packages},
            **{f"{self.workspace}/{path}": ("--bind", place) for path, place in within.builds.items()},
            **dict.fromkeys(hidden, ("--tmpfs",)),
        }
        # In order of their paths: what is inside another comes after it, and so has the last word.
        mounts = [word for path in sorted(places) for word in (*places[path], path)]
        mounts += [word for path in hidden for word in ("--remount-ro", path)]
        caps = [word for name in _KEPT for word in ("--cap-add", f"CAP_{name}")] if os.getuid() == 0 else []
        walls = ("--die-with-parent", "--unshare-pid", "--cap-drop", "ALL", *caps)
        base = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
        inside = (word for name, value in _ENV.items() for word in ("--setenv", name, value))
        return (self.program, *walls, *base, *mounts, *inside, "--chdir", self.workspace, "--", *argv)

    def trouble(self) -> str:
        """Why it does not open here, with exactly these arguments; empty if it does."""
        with tempfile.TemporaryDirectory(prefix="by-") as empty:
            argv = self.around(("true",), Path(self.workspace), Path(empty))
            try:
                done = subprocess.run(
                    argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
                )
            except subprocess.TimeoutExpired:
                return "bwrap does not answer"
            except OSError as error:
                return f"bwrap cannot be started: {error.strerror}"
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return "" if done.returncode == 0 else (said or [f"bwrap: exit {done.returncode}"])[-1]


def find(workspace: Path, hidden: Iterable[Path], writable: tuple[str, ...] = ()) -> Box | str:
    """The box for a workspace, or why there is none."""
    if not kernel.LINUX:
        return "only Linux has one"
    program = programs.find("bwrap", workspace)
    if not program:
        return MISSING
    there = tuple(os.path.realpath(path) for path in hidden if path.is_dir())
    box = Box(program=program, workspace=str(workspace), hidden=there, writable=writable)
    return box.trouble() or box


@contextmanager
def temporary_folder(place: Path) -> Iterator[Path]:
    """A new temporary folder below this one, which is removed afterwards, also if a killed process left it."""
    remove_folder(place)
    place.mkdir(mode=0o700, exist_ok=True)
    try:
        yield Path(tempfile.mkdtemp(prefix="by-", dir=place))
    finally:
        remove_folder(place)


def refused_folder(output: str, workspace: str, home: str) -> str:
    """The folder that a failed check wanted to write to, judging by what it printed; empty if nothing says so.

    >>> refused_folder("mkdir /home/ada/.npm/_cacache: Read-only file system", "/home/ada/shop", "/home/ada")
    '~/.npm'
    """
    lines = output.splitlines()
    places = [number for number, line in enumerate(lines) if _REFUSED.search(line)]
    near = [
        lines[place + offset] for place in places for offset in (0, -1, 1, -2, -3) if 0 <= place + offset < len(lines)
    ]
    paths = (path for line in near for path in _PATH.findall(line))
    outside = [path for path in paths if not f"{path}/".startswith((f"{workspace}/", "/dev/", "/proc/"))]
    return _folder_of(outside[0], home) if outside else SOME_FOLDER if places else ""


def _folder_of(path: str, home: str) -> str:
    """The tool's own folder in the home, or else the folder that the file is in."""
    if not path.startswith(f"{home}/"):
        return os.path.dirname(path)  # noqa: PTH120 - a text
    parts, found = path.removeprefix(f"{home}/").split("/"), ""
    for part in parts:
        found = f"{found}/{part}".strip("/")
        if found not in _SHARED:
            break
    return f"~/{found}"
