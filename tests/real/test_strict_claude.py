"""The strict fake of Claude refuses what the real one does, in the same words."""

import shlex
import subprocess
from pathlib import Path

import pytest

from driving import Home
from program.strict_claude import install

# Nothing here comes to a turn.
REFUSED = [
    "-p --output-format stream-json --verbose",
    "-p --output-format stream-json x",
    "-p --output-format bogus x",
    "-p --output-format",
    "-p --permission-mode bogus x",
    "-p --session-id nope x",
    "-p --resume nope x",
    "-p --verbose=1 x",
    "-p -Z x",
    "-p --settings {bad x",
    "-p --dangerously-skip-permissions x",
    "-p --resume 61fa2176-ad1c-48a7-896b-b9a2d7ca6c96 --session-id 61fa2176-ad1c-48a7-896b-b9a2d7ca6c97 x",
    "-pv",
]


@pytest.mark.parametrize("line", REFUSED)
def test_the_strict_fake_of_claude_refuses_what_the_real_one_refuses(
    home: Home, claude_env: dict[str, str], agents_bin: Path, line: str
) -> None:
    install(home.root / "bin", [{"reply": "Nobody asks for this."}])

    def answer(folder: Path) -> tuple[int, str, list[str]]:
        command = ["unshare", "--user", "--map-root-user", str(folder / "claude"), *shlex.split(line)]
        nothing = subprocess.DEVNULL
        ran = subprocess.run(command, env=claude_env, cwd=home.repo, stdin=nothing, capture_output=True, timeout=30)
        told = [row for row in ran.stderr.decode().splitlines() if not row.startswith("(Did you mean")]
        return ran.returncode, ran.stdout.decode(), told

    assert answer(home.root / "bin") == answer(agents_bin)
