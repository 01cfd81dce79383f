"""strict-agent-loop: what an invocation is told."""

from bydawn.core import template
from bydawn.dialects.strict_agent_loop import prompt
from bydawn.dialects.strict_agent_loop.contract import Contract

STATE = "/home/me/my repo/.codex-loop/tasks/hail/state.json"
CONTRACT = Contract(
    task="hail",
    goal="Write the hailstone sequence of 7, one number per iteration.",
    stop_condition="numbers.txt ends with 1",
    evidence=("the output of verify.py", "a look at {{numbers}}.txt"),
    blocker="python is missing",
    next_task="write 7",
    commands=("python verify.py <numbers.txt",),
    paths=("REPORT.md",),
    texts=("REPORT.md::17 numbers",),
    budget=3,
)


def filled(contract: Contract, command: str = "strict-agent-loop") -> str:
    text = prompt.template(contract, STATE, command)
    assert template.problem(text) is None
    values = {
        "PROMPT": contract.goal,
        "WORKSPACE": "/home/me/my repo",
        "RECORDS": "## Where the task stands\n\n1. write 7: done",
    }
    assert template.markers(text) == set(values)
    return template.fill(text, values)


def test_an_invocation_is_told_all_of_the_contract_and_the_exact_commands() -> None:
    """S-020, S-031, S-038, S-040, S-041, S-065: what is agreed, eight steps, what an atomic task is, when to end."""
    text = filled(CONTRACT, "/opt/venv/bin/strict-agent-loop")
    for said in (
        *(CONTRACT.goal, CONTRACT.stop_condition, *CONTRACT.evidence, CONTRACT.blocker, "1. write 7: done"),
        *("- `python verify.py <numbers.txt`", "- the file `REPORT.md` exists"),
        "- `REPORT.md` contains the text `17 numbers`",
        "/home/me/my repo/.codex-loop/tasks/hail/latest-stop-report.json",
        "- after 3 iterations in this session",
        "If none is recorded yet, begin with this: write 7",
        "If the workspace and the records disagree",
    ):
        assert said in text
    for command in ("append-event", "update-state", "check-stop", "report-status", "compact-state"):
        assert f"   /opt/venv/bin/strict-agent-loop {command} --state '{STATE}'" in text
    assert [number for number in range(1, 10) if f"\n{number}. " in text.partition("Where the task stands")[0]] == [
        *range(1, 9)
    ]


def test_what_is_left_out_of_a_contract_leaves_no_hole() -> None:
    """Without a stop check only the agent can say that it is done, and is told how; with one it is not."""
    text = filled(Contract(task="t", goal="Tidy up.", stop_condition="it is tidy", budget=1))
    assert "after 1 iteration in this session" in text
    assert "--status completed --stop-met" in text
    assert "--status completed" not in filled(CONTRACT)
    assert "\n\n\n" not in text
    assert "Evidence that counts" not in text


def test_our_words_around_a_task_stay_within_five_kilobytes() -> None:
    """X-21: they are in every prompt, so they stay short; and nothing in them changes between rounds."""
    bare = Contract(task="t", goal="", stop_condition="", next_task=" ")
    with_checks = Contract(task="t", goal="", stop_condition="", commands=("x",))
    assert all(len(prompt.template(each, "s.json").encode()) <= 5_120 for each in (bare, with_checks))
