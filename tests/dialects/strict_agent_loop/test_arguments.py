"""The loop that a contract of strict-agent-loop asks for, and the ids of its tasks."""

import pytest
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.dialects.strict_agent_loop.arguments import start
from bydawn.dialects.strict_agent_loop.contract import Contract, id_from, task_id
from bydawn.dialects.strict_agent_loop.document import begun, with_claim
from core.facts_made import NOON
from dialects.strict_made import BY_HAND, CONTRACT, WORKSPACE, an_iteration

USUAL = Contract(task="t", goal="a goal", stop_condition="an end", mode="unattended")


@pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh"])
def test_the_reasoning_effort_reaches_the_agent(effort: str) -> None:
    """S-043"""
    assert start(replace(USUAL, effort=effort), WORKSPACE, "x").settings["effort"] == (effort,)
    assert start(USUAL, WORKSPACE, "x").settings["effort"] == ()


def test_what_is_not_said_is_as_the_document_has_it() -> None:
    """S-021, S-042, S-061"""
    made = start(USUAL, WORKSPACE, "x")
    wanted = {"iterations": "200", "max_no_change": "8", "max_failures": "3", "sandbox": "workspace-write"}
    wanted |= {"session": "fresh", "check_timeout": "900s", "pause": "0s", "agent": "codex", "rounds": "0"}
    assert {name: made.settings[name] for name in wanted} == {name: (value,) for name, value in wanted.items()}
    assert made.recording
    assert (made.recording.budget, made.recording.context_chars) == (5, 12_000)
    resumed = start(replace(USUAL, resume_thread=True), WORKSPACE, "x")
    assert resumed.settings["session"] == ("resume",)


def test_the_id_of_a_task() -> None:
    """S-014"""
    assert id_from("Fix: the parser, all of it, and its documents", "20261117150000") == (
        "20261117150000-Fix--the-parser--all-of-it--and"
    )
    assert id_from("???", "20261117150000") == "20261117150000"
    assert task_id("fix parser_2") == "fix-parser-2"
    for bad in ("---", "", "x" * 64):
        with pytest.raises(UserError):
            task_id(bad)


def test_the_executor_stays_until_another_one_replaces_it() -> None:
    """S-034, S-050"""
    made = begun(replace(BY_HAND, executor="agent-1"), WORKSPACE, NOON)
    assert made.agent.executor_id == "agent-1"
    made = with_claim(made, an_iteration(1))
    assert (made.agent.executor_id, made.counters.recovery_count) == ("agent-1", 0)
    made = with_claim(made, an_iteration(2, agent_id="agent-2", recovery=True))
    made = with_claim(made, an_iteration(3))
    assert (made.agent.executor_id, made.counters.recovery_count, made.counters.iteration) == ("agent-2", 1, 3)
    assert begun(CONTRACT, WORKSPACE, NOON).agent.executor_id is None
