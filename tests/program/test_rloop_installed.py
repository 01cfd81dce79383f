"""From an empty home to the first complete loop and back, with the real pip."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from driving import Said, a_repository
from program import strict_claude
from program.test_rloop_install import USES

ROOT = Path(__file__).parents[2]
PARTS = ("src", "pyproject.toml", "README.md", "LICENSE", "install.sh", "uninstall.sh")
COMPLETE = 'source "$1"; COMP_WORDS=(${*:2}); COMP_CWORD=$(($# - 2)); _rloop rloop; echo "${COMPREPLY[@]}"'


class Fresh:
    """A machine with Python, git and Claude, a checkout, and an empty home; pip finds packages as it does here."""

    def __init__(self, root: Path) -> None:
        self.home, self.checkout, path = root / "home", root / "checkout", root / "path"
        self.home.mkdir()
        self.checkout.mkdir()
        for name in PARTS:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.checkout / name)
        strict_claude.log_in(self.home)
        strict_claude.install(path, [{"append": {"work.txt": "more\n"}, "tick": "PRD.md", "reply": "Did it."}])
        for name in (*USES, "bash", "git"):
            (path / name).symlink_to(shutil.which(name) or name)
        (path / "python3").symlink_to(Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))
        (path / "id").write_text("#!/bin/sh\necho 1000\n")  # never into the folders of this machine
        (path / "id").chmod(0o755)
        self.env = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.env |= {
            "PATH": f"{self.home}/.local/bin:{path}",
            "HOME": str(self.home),
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR") or str(Path("~/.cache/pip").expanduser()),
            "TERM": "dumb",
            "BYDAWN_BOX": "off",
        }

    def __call__(self, *words: str, cwd: Path | None = None) -> Said:
        ran = subprocess.run(
            words,
            env=self.env,
            cwd=cwd or self.home,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        return Said(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    return Fresh(tmp_path.resolve())


def test_from_an_empty_home_to_the_first_complete_loop_and_back(fresh: Fresh) -> None:
    """R-030, R-031, R-032, R-060: one command installs it on a machine that has nothing of it."""
    installed = fresh("./install.sh", cwd=fresh.checkout)
    assert (installed.code, installed.err) == (0, "")
    assert sorted(path.name for path in fresh.checkout.iterdir()) == sorted(PARTS)
    config = fresh.home / ".config/rloop/config.yaml"
    assert config.stat().st_mode & 0o777 == 0o600
    assert "max_iterations: 30" in config.read_text()

    app = fresh.home / "app1"
    a_repository(app, "# app1\n")
    (app / "PRD.md").write_text("- [ ] the only task\n")
    ended = fresh("rloop", "start", "app1", "--no-tmux")
    assert (ended.code, (app / "PRD.md").read_text()) == (0, "- [x] the only task\n"), ended
    assert "complete" in fresh("rloop", "status").out

    script = str(fresh.home / ".local/share/bash-completion/completions/rloop")
    assert fresh("bash", "-c", COMPLETE, "bash", script, "rloop", "sta").out == "start status\n"
    assert fresh("bash", "-c", COMPLETE, "bash", script, "rloop", "logs", "a").out == "app1\n"

    removed = fresh("./uninstall.sh", cwd=fresh.checkout)
    assert (removed.code, removed.err) == (0, "")
    assert not (fresh.home / ".local/share/rloop").exists()
    assert list((fresh.home / ".local/bin").iterdir()) == []
    assert config.exists()
