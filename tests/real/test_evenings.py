"""Two evenings with each tool and the real agents: its document's first example, cut short on the way, to its end.

waylon-smithers has its own in test_waylon.py. The model is scripted; nothing of another program stands on the screen.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from driving import Home, Said, kill_both, said, wait_for
from program.autorunner import Autorunner
from program.codex_loop import PROPOSAL, CodexLoop, answer
from program.rloop import PRD, Rloop
from program.strict import Strict
from real.model_server import Answer, Call, ModelServer

HANG = "touch began; sleep 60"
HANGS = {
    "codex": Answer(calls=(Call("exec_command", {"cmd": HANG, "yield_time_ms": 30_000}),)),
    "claude": Answer(sh=HANG),
}
TICKS = r"sed -i '0,/\[ \]/s//[x]/' %s; date +%%N >> work.txt"
TWICE = pytest.mark.parametrize("how", ["Ctrl-C", "kill -9"])
OTHERS = re.compile(r"(?<![/.\w-])(?:bydawn|waylon|codex-autorunner|rloop|codex-loop|strict-agent-loop)\b(?!/)")


def cut_short(process: "subprocess.Popen[str]", work: Callable[[], Path], how: str, presses: int = 1) -> Said:
    """Ctrl-C, twice where the first only asks it to finish, or the end of all that is ours, while a command runs."""
    wait_for((lambda: (work() / "began").exists()), seconds=40)
    if how == "kill -9":
        kill_both(process.pid)
    else:
        for _ in range(presses):
            os.kill(process.pid, signal.SIGINT)
            time.sleep(0.5)
    return said(process)


def speaks_only_of(name: str, *told: Said) -> bool:
    """No other program's name is in what is said, but in paths and commands of the tests."""
    return {found for each in told for found in OTHERS.findall(each.out + each.err)} <= {name}


@TWICE
def test_an_evening_with_codex_autorunner(home: Home, codex_env: dict[str, str], model: ModelServer, how: str) -> None:
    """A-051, A-052: `init`, a list, `run`; cut short in the second run; `run`."""
    home.env = codex_env
    runner = Autorunner(home)
    runner.ready(2)
    do = Answer(sh=TICKS % "TODO.md")
    model.play([do, Answer(text="One."), HANGS["codex"], do, Answer(text="Two.")])
    told = cut_short(runner.start("run"), lambda: home.repo, how, presses=2)
    assert runner.state["status"] == ("running" if how == "kill -9" else "error")
    ended = runner("run")
    assert (ended.code, model.left, runner.state["status"]) == (0, [], "idle"), ended
    assert [number for number, _ in runner.runs] == sorted({number for number, _ in runner.runs})
    assert "[ ]" not in (home.repo / "TODO.md").read_text()
    assert speaks_only_of("codex-autorunner", told, ended)


@TWICE
def test_an_evening_with_rloop(
    home: Home, claude_env: dict[str, str], agents_bin: Path, model: ModelServer, how: str
) -> None:
    """R-010, R-043: `start` in the foreground; cut short in the second task; `resume`."""
    rloop = Rloop(home)
    home.env = claude_env | {"PATH": f"{agents_bin}:{home.env['PATH']}"}
    folder = rloop.project("app1", 2)
    do = Answer(sh=TICKS % PRD)
    model.play([do, Answer(text="One."), HANGS["claude"], do, Answer(text="Two.")])
    told = cut_short(rloop.start("start", str(folder), "--no-tmux"), lambda: folder, how)
    assert rloop.session()["iteration"] == 2
    resumed = rloop("resume", "app1", *(["--stopped"] if how == "Ctrl-C" else []))
    wait_for(lambda: rloop.session()["status"] == "complete", seconds=60)
    assert (resumed.code, model.left, "[ ]" in rloop.prd()) == (0, [], False), resumed
    assert rloop.session()["iteration"] >= 2
    assert speaks_only_of("rloop", told, resumed)


@TWICE
def test_an_evening_with_codex_loop(home: Home, codex_env: dict[str, str], model: ModelServer, how: str) -> None:
    """C-001, C-006, C-017: `init --prompt`, `run`; cut short in the second task; `run`."""
    home.env = codex_env
    project = CodexLoop(home)
    says = [Answer(text=json.dumps(answer(task))) for task in ("001-add", "002-subtract")]
    make = [Answer(sh=f"echo whole > {name}.txt") for name in ("add", "subtract")]
    model.play([Answer(text=json.dumps(PROPOSAL)), make[0], says[0], HANGS["codex"], make[1], says[1]])
    assert project.answered("y\n", "init", "--prompt", "a shop, please").code == 0
    told = cut_short(project.start("run"), lambda: project.worktree, how, presses=2)
    ended = project.run()
    assert (ended.code, project.tasks) == (0, {"001-add": "done", "002-subtract": "done"}), ended
    assert (model.left, project.git("show", "codex-loop/shop:subtract.txt")) == ([], "whole\n")
    assert speaks_only_of("codex-loop", told, ended)


@TWICE
def test_an_evening_with_strict_agent_loop(
    home: Home, codex_env: dict[str, str], codex_home: Path, model: ModelServer, how: str
) -> None:
    """S-001, S-040, S-044: `init-state`, `supervise`; cut short; `supervise` until the stop check passes."""
    config = codex_home / "config.toml"
    config.write_text(f"{config.read_text()}\n[sandbox_workspace_write]\nexclude_slash_tmp = true\n")
    home.env = codex_env
    strict = Strict(home)
    strict.init("--stop-command", "test -e done.txt")
    model.play([HANGS["codex"], Answer(sh="touch done.txt"), Answer(text="It is there.")])
    told = cut_short(strict.supervise(), lambda: home.repo, how)
    assert (told.code == 130 or how == "kill -9", strict.state["status"]) == (True, "running"), told
    ended = said(strict.supervise(), 90)
    assert (ended.code, strict.state["status"], model.left) == (0, "completed", []), ended
    assert strict("check-stop", "--task-id", "hail").code == 0
    strict.has_no_gap()
    assert speaks_only_of("strict-agent-loop", told, ended)
