"""Every command of codex-loop on a finished, a blocked and an empty project; `PIN_DOCUMENTS=1` writes what they say."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from driving import Home
from program.codex_loop import ONE, TWO, CodexLoop, idles, works

OTHERS = re.compile(r"\brounds?\b|\bbydawn\b(?!\": \{|/|-)")  # but in the file's own key, in a path and in a name
PINNED = Path(__file__).with_name("codex_loop_said")


def finished(project: CodexLoop) -> None:
    project.project(ONE, TWO, verify="test -e README.md")
    project.plays(works(ONE, summary="It adds."), works(TWO, summary="It subtracts."))
    assert project.run().code == 0


def blocked(project: CodexLoop) -> None:
    project.project(
        ONE, TWO, texts={TWO: f"---\ndepends_on: {ONE}\n---\n# Two\n\nDo it.\n"}, verify="test -e README.md"
    )
    project.plays(idles(ONE, "blocked", summary="I cannot.", blockers=["there is no key"]))
    assert project.run().code == 2


def empty(project: CodexLoop) -> None:
    project.plays({"reply": "Nobody asks."})


PROJECTS: dict[str, Callable[[CodexLoop], None]] = {"finished": finished, "blocked": blocked, "empty": empty}
# And how each ends in these three.
COMMANDS: dict[str, tuple[int, int, int]] = {
    "run": (0, 2, 1),
    "status --summary": (0, 0, 1),
    "doctor": (0, 0, 1),
    "logs": (0, 0, 0),
    "logs tail --lines 2": (0, 0, 0),
    f"logs tail --task-id {ONE}": (0, 0, 1),
    "events": (0, 0, 1),
    "events --limit 1 --json": (0, 0, 1),
    "events --summary": (0, 0, 1),
    f"events --task-id {ONE} --event-type iteration:complete --since 2026-01-01T00:00Z": (0, 0, 1),
    "events --until 2026-01-01T00:00+01:00": (0, 0, 1),
    "events --since 2026-01-01T00:00": (1, 1, 1),
    "events --event-type iteration:done": (1, 1, 1),
    "events --task-id 9": (1, 1, 1),
    "events --output events.txt": (0, 0, 1),
    "events --output tasks": (1, 1, 1),
    "sessions": (0, 0, 1),
    "sessions --json": (0, 0, 1),
    "sessions --latest": (0, 0, 1),
    f"sessions --task-id {ONE} --latest": (1, 1, 1),
    "daemon status": (0, 0, 0),
    "daemon status --json": (0, 0, 0),
    "daemon stop": (0, 0, 0),
    "daemon start --cycle-sleep-seconds -1": (2, 2, 2),
    "service status": (0, 0, 0),
    "service status --json": (0, 0, 0),
    "service uninstall": (0, 0, 0),
    "health": (0, 2, 3),
    "health --json": (0, 2, 3),
    "snapshots": (0, 0, 1),
    f"snapshots --task-id {ONE}": (0, 0, 1),
    "snapshots show 1 --json": (0, 0, 1),
    "snapshots show 9": (1, 1, 1),
    "cleanup": (0, 0, 1),
    "cleanup --keep 0 --runs-keep 1": (0, 0, 1),
    "cleanup --keep 0 --logs-older-than-days 1 --no-worktrees --apply": (0, 0, 1),
    "cleanup --keep -1": (2, 2, 2),
    "install-skill": (0, 0, 0),
    "--version": (0, 0, 0),
    "--help": (0, 0, 0),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_every_command_says_what_it_always_said(home: Home, name: str) -> None:
    """C-001, C-014, C-015, C-062, C-064, C-069: no traceback, documented exit codes."""
    project = CodexLoop(home)
    PROJECTS[name](project)
    spent, rows = len(project.calls), []
    for line, codes in COMMANDS.items():
        ended = project(*line.split(), COLUMNS="100")
        said = [*ended.out.splitlines(), *(f"! {row}" for row in ended.err.splitlines())]
        rows += [f"$ codex-loop {line}", *(said if line != "--help" else said[:1]), ""]
        assert (ended.code, "Traceback" in ended.err) == (codes[[*PROJECTS].index(name)], False), (line, ended)
        told = [row for row in said if OTHERS.search(row.replace(str(project.home.root), ""))]
        assert told == [] or line == "--help", "the words of another program"
    assert len(project.calls) == spent, "looking costs nothing, and nothing is left to do"
    if name != "empty":  # C-016
        numbers = json.loads((project.folder / "metrics.json").read_text())
        assert (numbers["overall_status"], numbers["tasks_total"]) == (project.meta["overall_status"], 2)
    text = plain("\n".join(rows), project)
    path = PINNED / f"{name}.txt"
    if os.environ.get("PIN_DOCUMENTS"):  # look at the difference before you commit it
        path.write_text(text)
    assert text == path.read_text()


def plain(text: str, project: CodexLoop) -> str:
    """Without what differs from run to run."""
    text = text.replace(str(project.home.root), "/ROOT")
    for pattern, word in (
        (r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)", "TIME"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "SESSION"),
        (r"\b[0-9a-f]{40}\b", "TREE"),
        (r"\b[0-9a-f]{12,16}\b", "UID"),
        (r"\b\d+(?:\.\d+)? (?:ms|s|B|kB|GB)\b", "SOME"),
        (r"(?m)(?<=^codex-loop )\d+\.\d+\.\d+[\w.+]*", "VERSION"),
        (r'(?<="seq": )\d+|(?<=all )\d+(?= records)', "N"),
    ):
        text = re.sub(pattern, word, text)
    return text
