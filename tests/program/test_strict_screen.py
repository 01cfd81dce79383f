"""strict-agent-loop: what a person sees of `supervise` on a real terminal."""

import re

import pytest

from driving import Home, wait_for
from program.strict_codex import install
from program.test_terminal import Pane

ROW = re.compile(r"(\d\d:\d\d:\d\d|        ) (\w[\w ]{6,}) \| \S")
STATE = ".codex-loop/tasks/hail/state.json"
SAYS = "I look at what is there, and only then do I write down the number that comes next in the sequence."


@pytest.mark.usefixtures("tmux")
@pytest.mark.parametrize("columns", [80, 48])
def test_a_supervised_task_shows_its_iteration_and_that_it_is_alive(home: Home, columns: int) -> None:
    """S-035, S-036, S-037: every line has a kind and fits, whatever the width; the end says what decided."""
    record = (
        f"strict-agent-loop update-state --state {STATE} --task 'append 7' --local-done-condition 'it ends with 7'"
        " --result-summary 'it does' --verification-summary 'tail says 7' >recorded; echo 7 >>numbers.txt; false"
    )
    gate = home.root / "gate"
    install(home.root / "bin", [{"reply": SAYS, "sh": record, "wait_for": str(gate)}])
    home.env["PATH"] = f"{home.root / 'bin'}:{home.env['PATH']}"
    made = ("--task-id", "hail", "--goal", "Write 7.", "--global-stop-condition", "it ends with 7")
    checks = ("--operating-mode", "unattended", "--stop-command", "grep 7 numbers.txt")
    init = home.bydawn("init-state", "--workspace-root", ".", *made, *checks, command="strict-agent-loop")
    assert init.code == 0, init
    pane = Pane(home, columns)
    try:
        pane.type("clear; strict-agent-loop supervise --task-id hail --heartbeat-seconds 0.2", "Enter")
        wanted = ("alive   | iteration 2: invocation 1", "(iteration budget)", "exit 1  | strict-")
        # Each sign of life is a row: on a busy machine the others may have left the screen before one looks.
        wait_for(lambda: all(words in "\n".join(pane.history()) for words in wanted))
        gate.touch()
        wait_for(lambda: pane.sees("hail completed: every stop check passed", "1 iteration, ", "show-task"))
        seen = "\n".join(pane.history())
    finally:
        pane.close()
    shown = seen.partition("\n  hail completed")[0].partition("task    | hail")[2].splitlines()[1:]
    assert [row for row in shown if row.strip() and not ROW.match(row)] == []
    kinds = {ROW.match(row)[2].strip() for row in shown if ROW.match(row)}  # type: ignore[index]
    assert kinds >= {"task", "checks", "round", "agent", "start", "exit 1", "saved", "alive", "end"}
    words = [row.partition("| ")[2] for row in shown if " agent   |" in row]
    assert " ".join(words) == SAYS
