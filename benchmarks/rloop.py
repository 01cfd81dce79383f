"""rloop: the table of many sessions, and what happens between two iterations."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.ledgers import write_loop
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BIN, Stage, fastest
from bydawn.core.loop import SpokenDialect

RLOOP = str(BIN / "rloop")
_TURNS = 15
_PAUSE = 2.0  # seconds between two iterations, at least
_ITERATIONS = 4
_WORDS = {"marker": "COMPLETE", "model": "", "backend": "claude", "level": "info", "on_complete": "yes"}
_CLAUDE = """#!/bin/sh
case "$1" in --version) exec echo "2.1.197 (Claude Code)";; auth) exec echo '{"loggedIn": true}';; esac
date +%s.%N >> times
while [ $# -gt 0 ]; do [ "$1" = --session-id ] && id=$2; shift; done
sed -i '0,/\\[ \\]/s//[x]/' PRD.md
printf '{"type":"system","subtype":"init","session_id":"%s"}\\n' $id
printf '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"%s"}\\n' $id
date +%s.%N >> times
"""


def many_sessions(stage: Stage) -> Iterator[float]:
    commands = [_status(stage, count) for count in (10, 1_000)]
    for command in commands:
        stage.work(*command)
    small, big = fastest([partial(stage.work, *command) for command in commands], _TURNS)
    yield big / small


def _status(stage: Stage, count: int) -> tuple[str, ...]:
    """The command that lists so many sessions, each with a task file of its own."""
    state, config, work = stage.place("state"), stage.place("config"), stage.place("work")
    kept = _WORDS | {"retain_days": "7", "webhook": "", "tmux": "", "state": str(config / "state.json")}
    for number in range(count):
        folder = work / f"app{number}"
        folder.mkdir()
        (folder / "PRD.md").write_text("- [x] one\n- [x] two\n- [ ] three\n- [ ] four\n- [ ] five\n")
        spoken = SpokenDialect(name="rloop", words=kept | {"session": f"app{number}"})
        write_loop(state, folder, f"app{number}", 10, spoken, "PRD.md")
    (config / "state.json").write_bytes(msgspec.json.encode({"sessions": {}}))
    return ("/usr/bin/env", f"BYDAWN_STATE_DIR={state}", f"RLOOP_CONFIG_DIR={config}", RLOOP, "status")


def between_iterations(stage: Stage) -> Iterator[float]:
    """From the end of one agent to the start of the next, without the pause that the document asks for."""
    folder, bin_ = stage.repository("app"), stage.place("bin")
    stage.env["PATH"] = f"{bin_}:{stage.env['PATH']}"
    (bin_ / "claude").write_text(_CLAUDE)
    (bin_ / "claude").chmod(0o755)
    (folder / "PRD.md").write_text("- [ ] task\n" * _ITERATIONS)
    stage.seconds(RLOOP, "start", str(folder), "--no-tmux")
    yield max(_gaps(folder / "times")) - _PAUSE


def _gaps(path: Path) -> list[float]:
    times = [float(line) for line in path.read_text().split()]
    return [start - end for end, start in zip(times[1::2], times[2::2], strict=False)]


BENCHES = (
    Bench((Budget("growth: rloop status of 1,000 sessions against 10", 3, "×"),), many_sessions),
    Bench((Budget("rloop: between two iterations, without the pause", 5, "s"),), between_iterations),
)
