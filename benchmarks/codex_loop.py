"""codex-loop: what an iteration costs beside the same round natively, and whether a long project makes it cost more."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.ledgers import write_rounds
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BIN, BYDAWN, Stage, fastest
from bydawn import dialects
from bydawn.operations.dialects import config
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger

CODEX_LOOP = str(BIN / "codex-loop")
_SHORT, _LONG = 3, 53
_TURNS, _LOOKS = 3, 15
_NO_LIMIT = ("--max-no-task-done", "0")
_OLD = 10_000
_MB = 1e6
_TASK = "001-one"
_LOOKED_AT = ((("status",), 0), (("status", "--summary"), 0), (("events", "--limit", "20"), 0), (("health",), 2))
_ANSWER = {"status": "continue", "summary": "One step.", "task_id": _TASK, "files_changed": [], "blockers": []}
_MORE = {"verification_expected": [], "needs_resume": False, "next_action": ""}
_CODEX = """#!/bin/sh
case "$1" in --version) exec echo "codex-cli 0.166.0";; login) exec echo "Logged in using ChatGPT";; esac
date +%s%N > work.txt
echo '{"type":"thread.started","thread_id":"01a1ea98-10b3-73e1-889d-9fb3b18869e8"}'
echo '{"type":"turn.started"}'
cat <<'END'
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":ANSWER}}
END
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"""


def cost(stage: Stage) -> Iterator[float]:
    """The slope of codex-loop in its worktree, with a commit each, against that of the same loop natively."""
    _codex(stage)

    def ours(rounds: int) -> float:
        return stage.work(CODEX_LOOP, "run", "--project-dir", str(_project(stage, rounds)), code=2)

    def native(rounds: int) -> float:
        settings = ("-a", "codex", "-t", "tasks", "--check", "true", "--worktree", "-n", str(rounds), *_NO_LIMIT)
        return stage.work(BYDAWN, "run", "-C", str(_project(stage, rounds)), *settings, code=4)

    contestants = [partial(kind, rounds) for kind in (ours, native) for rounds in (_SHORT, _LONG)]
    short, long, native_short, native_long = fastest(contestants, _TURNS)
    yield (long - short) / (native_long - native_short)


def long_projects(stage: Stage) -> Iterator[float]:
    """The state as JSON, what happened, whether all is well, and the file that everybody reads."""
    _codex(stage)
    folders = [_long_project(stage, iterations) for iterations in (10, _OLD)]
    for words, code in _LOOKED_AT:
        calls = [partial(stage.work, CODEX_LOOP, *words, "--project-dir", str(folder), code=code) for folder in folders]
        small, big = fastest(calls, _LOOKS)
        yield big / small
    yield (folders[1] / ".codex-loop/state.json").stat().st_size / _MB


def _long_project(stage: Stage, iterations: int) -> Path:
    """A project that has had so many iterations, most without the time that they would have taken."""
    folder = _project(stage, 1)
    run = (CODEX_LOOP, "run", "--project-dir", str(folder))
    stage.work(*run, code=2)
    [path] = (stage.folder / "state/bydawn").glob(f"loops/*/{folder.name}")
    write_rounds(LoopLedger(LoopFolder(path), print, str), range(2, iterations), task_id=_TASK)
    stage.work(*run, code=2)
    return folder


def _codex(stage: Stage) -> None:
    bin_ = stage.place("bin")
    stage.env["PATH"] = f"{bin_}:{stage.env['PATH']}"
    (bin_ / "codex").write_text(_CODEX.replace("ANSWER", json.dumps(json.dumps(_ANSWER | _MORE))))
    (bin_ / "codex").chmod(0o755)


def _project(stage: Stage, iterations: int) -> Path:
    """A project whose one task takes as many iterations as a run may have."""
    folder = stage.repository("shop")
    wanted = {
        "version": 1,
        "project": {"name": folder.name},
        "goal": {"summary": "A shop that can add.", "done_when": ["it adds"]},
        "execution": {"max_iterations": iterations},
        "verification": {"commands": ["true"]},
    }
    (folder / "codex-loop.yaml").write_text(json.dumps(wanted))
    (folder / "tasks").mkdir()
    (folder / f"tasks/{_TASK}.md").write_text("# One\n\nWrite work.txt.\n")
    ours = {name: os.environ.get(name) for name in stage.env}
    os.environ.update(stage.env)
    config.agree(dialects.find("codex-loop"), folder, ["codex-loop.yaml"], trusted=True)  # type: ignore[arg-type]
    os.environ.update({name: value for name, value in ours.items() if value is not None})
    return folder


BENCHES = (
    Bench((Budget("round: cost of codex-loop against native", 1.5, "×"),), cost),
    Bench(
        (
            Budget("growth: 10,000 iterations against 10, status", 1.5, "×"),
            Budget("growth: 10,000 iterations against 10, --summary", 1.5, "×"),
            Budget("growth: 10,000 iterations against 10, events", 1.5, "×"),
            Budget("growth: 10,000 iterations against 10, health", 1.5, "×"),
            Budget("disk: codex-loop's state.json of 10,000", 2, "MB"),
        ),
        long_projects,
    ),
)
