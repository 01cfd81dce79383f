"""The script that installs the real agents: whole or not at all, once for everybody."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

REAL = Path(__file__).parent
SCRIPT = REAL.parents[1] / "scripts/agents"
USES = (
    "bash",
    "cat",
    "chmod",
    "cp",
    "cut",
    "dirname",
    "env",
    "flock",
    "mkdir",
    "mv",
    "rm",
    "sha256sum",
    "sleep",
    "timeout",
)

NPM = """\
#!/usr/bin/env bash
echo called >>"$CALLS"
[ -z "${FAILS:-}" ] || exit 1
mkdir -p node_modules/.bin
sleep 0.3
printf '#!/bin/sh\\n' | tee node_modules/.bin/codex >node_modules/.bin/claude
chmod +x node_modules/.bin/*
"""
PROGRAMS = {"id": "echo 1000", "bwrap": "", "socat": "", "tee": 'exec /usr/bin/tee "$@"', "node": "exit ${OLD:-0}"}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A machine without network, on which npm and what it installs are ours."""
    path = tmp_path / "bin"
    path.mkdir()
    for name in USES:
        [found] = [f"{folder}/{name}" for folder in ("/usr/bin", "/bin") if os.path.exists(f"{folder}/{name}")][:1]
        (path / name).symlink_to(found)
    for name, body in PROGRAMS.items():
        a_program(path / name, f"#!/usr/bin/env bash\n{body}\n")
    a_program(path / "npm", NPM)
    return {"PATH": str(path), "HOME": str(tmp_path), "CALLS": str(tmp_path / "calls")}


def a_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def start(env: dict[str, str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([str(SCRIPT)], env=env, stdout=pipe, stderr=pipe, text=True)


def folder(env: dict[str, str]) -> Path:
    key = hashlib.sha256((REAL / "package-lock.json").read_bytes()).hexdigest()[:12]
    return Path(env["HOME"]) / f".cache/bydawn/agents-{key}"


def test_two_at_once_install_once_and_both_find_it(env: dict[str, str]) -> None:
    said = [process.communicate(timeout=20)[0] for process in [start(env), start(env)]]
    assert said == [f"{folder(env)}/node_modules/.bin\n"] * 2
    assert Path(env["CALLS"]).read_text() == "called\n"


def test_an_installation_that_fails_leaves_nothing_to_be_found(env: dict[str, str]) -> None:
    process = start(env | {"FAILS": "yes"})
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert [line.partition(":")[0].strip() for line in err.splitlines()[-3:]] == ["error", "cause", "hint"]
    assert not folder(env).exists()
    assert start(env).communicate(timeout=20)[0] == f"{folder(env)}/node_modules/.bin\n"


@pytest.mark.parametrize("program", ["bwrap", "socat", "node", "npm"])
def test_what_is_missing_and_cannot_be_installed_is_named(env: dict[str, str], program: str) -> None:
    (Path(env["PATH"]) / program).unlink()
    process = start(env)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, "")
    error, _, hint = err.splitlines()
    assert error.startswith(f"error: {program} was not found")
    assert hint.startswith(" hint: sudo apt-get install ")


def test_a_node_that_is_too_old_is_refused(env: dict[str, str]) -> None:
    process = start(env | {"OLD": "1"})
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "is too old" in err


def test_the_lock_file_names_no_registry() -> None:
    assert "http" not in (REAL / "package-lock.json").read_text()
