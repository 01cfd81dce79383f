"""A repository with codex-autorunner, and a program that plays Codex in it."""

from pathlib import Path

from benchmarks.stage import BIN, Stage

AUTORUNNER = str(BIN / "codex-autorunner")
_CONFIG = Path(".codex-autorunner/config.yml")
LOG = Path(".codex-autorunner/codex-autorunner.log")
_AGENT = """#!/bin/sh
[ "$1" = --version ] && exec echo "no Codex 1.0"
date +%s%N > work.txt
sed -i '0,/\\[ \\]/s//[x]/' TODO.md
n=0
while [ $n -lt {lines} ]; do echo "line $n of what an agent says in a run"; n=$((n+1)); done
"""


def write_agent(path: Path, lines: int) -> None:
    """A program that changes a file, ticks a box and says so many lines."""
    path.write_text(_AGENT.format(lines=lines))
    path.chmod(0o755)


def autorunner(stage: Stage, boxes: int, runs: int) -> Path:
    """A repository with so many open tasks, which stops after so many runs."""
    folder = stage.repository("auto")
    stage.work(AUTORUNNER, "init", str(folder))
    text = (folder / _CONFIG).read_text()
    text = text.replace("sleep_seconds: 5", "sleep_seconds: 0").replace(
        "stop_after_runs: null", f"stop_after_runs: {runs}"
    )
    (folder / _CONFIG).write_text(text)
    (folder / "TODO.md").write_text("".join(f"- [ ] task {number}\n" for number in range(boxes)))
    return folder
