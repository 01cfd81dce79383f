"""What `--json` says, byte for byte: programs rely on the names, their order and the values."""

import os
import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from bydawn.cli.program import bydawn
from operations.stories import STORIES, held, home_of, write_loop

DOCUMENTS = Path(__file__).parent / "documents"
QUESTIONS = ["status", "show", "show --round 1", "why", "tasks list"]
CODEX = "#!/bin/sh\ncase $1 in --version) echo codex-cli 0.166.1 ;; *) exit 1 ;; esac\n"


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("BYDAWN", "XDG", "CODEX", "OPENAI", "COLUMNS"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def said(root: Path, *words: str) -> str:
    command = [*words, "--json", "--state-dir", str(root / "state")]
    return CliRunner().invoke(bydawn, command, catch_exceptions=False).output


def pin(name: str, text: str) -> None:
    path = DOCUMENTS / f"{name}.txt"
    if os.environ.get("PIN_DOCUMENTS"):  # writes them anew; look at the difference before you commit it
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", STORIES)
def test_what_programs_are_told_of_a_loop_stays_as_it_is(name: str, tmp_path: Path) -> None:
    write_loop(tmp_path, name)
    with held(tmp_path, name):
        rows = []
        for question in QUESTIONS if STORIES[name].runs else [each for each in QUESTIONS if "--round" not in each]:
            command, _, options = question.partition(" --")
            words = [*command.split(), name, *(f"--{options}".split() if options else [])]
            rows += [f"$ bydawn {' '.join(words)} --json", said(tmp_path, *words)]
    text = "\n".join(rows).replace(home_of(tmp_path, name).name, "HOME").replace(str(tmp_path), "/ROOT")
    pin(name, re.sub(r'("last_output_age_s": )[0-9.]+', r"\1AGE", text))


def test_what_programs_are_told_of_agents_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/codex").write_text(CODEX)
    (tmp_path / "bin/codex").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    pin("agents", said(tmp_path, "agents", "list").replace(str(tmp_path), "/ROOT"))


def test_the_loops_that_need_a_person_come_first(tmp_path: Path) -> None:
    for name in STORIES:
        write_loop(tmp_path, name)
    with ExitStack() as all_of_them:
        for name in STORIES:
            all_of_them.enter_context(held(tmp_path, name))
        pin("order", "\n".join(re.findall(r'"loop": "(\w+)"', said(tmp_path, "status"))) + "\n")
