"""codex-loop: what it says at the end, after each iteration, and to hooks."""

import pytest
from msgspec.structs import replace

from bydawn.cli.dialects.codex_loop import COMMANDS
from bydawn.core import hooks
from bydawn.core.facts import Obstructed, RoundEnded
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import Act, Advice, Changes, End, TaskStatus
from bydawn.dialects.codex_loop import codes, texts
from dialects.codex_loop_made import (
    COMPLETE,
    LEXER,
    PARSER,
    PREPARATION,
    a_project,
    an_iteration,
    begun,
    past,
    settled,
    stop,
    verified,
)

PROJECT = a_project()
STATE, _ = past(begun(LEXER), an_iteration(1), verified(1, passed=False))


def steps(stopped_by: str, *evidence: str, end: End = End.BLOCKED, folder: str = PROJECT.workspace) -> list[str]:
    found = texts.next_steps(PROJECT, STATE, stop(end, stopped_by, "why", evidence), folder)
    return [step.command for step in found if step.command]


def test_a_finished_project_names_the_merge() -> None:
    found = texts.next_steps(PROJECT, STATE, COMPLETE, PROJECT.workspace)
    assert [step.command for step in found] == ["git merge codex-loop/shop", "codex-loop status --summary"]
    elsewhere = texts.next_steps(PROJECT, STATE, COMPLETE)
    assert [step.command for step in elsewhere] == [
        "git -C /home/ada/shop merge codex-loop/shop",
        "codex-loop status --summary --project-dir /home/ada/shop",
    ]
    without = texts.next_steps(replace(PROJECT, worktree=None), STATE, COMPLETE, PROJECT.workspace)
    assert [step.command for step in without] == ["codex-loop status --summary"]


@pytest.mark.parametrize("rule", sorted(codes.BY_RULE))
def test_every_end_has_a_command_of_codex_loop_to_paste_and_none_of_another_program(rule: str) -> None:
    assert any(step.startswith("codex-loop ") for step in steps(rule))
    for step in steps(rule):
        command = COMMANDS.commands.get(step.split()[1]) if step.startswith("codex-loop ") else None
        flags = {flag for each in (command.params if command else ()) for flag in each.opts}
        assert command is not None or step.startswith("git "), step
        assert {word for word in step.split() if word.startswith("--")} <= flags | {"--task-id"}, step


def test_what_is_blocked_is_tried_again_only_if_asked() -> None:
    assert steps(Rule.AGENT_BLOCKED) == ["codex-loop run --retry-blocked", "codex-loop skip 001-lexer"]
    assert steps(Rule.TASKS_ASIDE)[-1] == "codex-loop run --retry-blocked"
    assert steps(Rule.ROUNDS_THIS_RUN, end=End.LIMIT)[0] == "codex-loop run"
    failed = ["codex-loop logs tail --task-id 001-lexer", "codex-loop doctor", "codex-loop run"]
    assert steps(Rule.AGENT_FAILURES) == failed
    assert steps(Rule.OBSTRUCTED, "hook") == ["codex-loop run"]
    assert steps(Rule.OBSTRUCTED, "workspace", folder="")[-1] == "codex-loop run --project-dir /home/ada/shop"
    assert texts.next_steps(PROJECT, STATE, PREPARATION, PROJECT.workspace)[0].command == "codex-loop run"


def test_reasons_count_iterations_and_leave_the_words_of_others_alone() -> None:
    assert texts.reason(stop(End.LIMIT, Rule.ROUNDS_THIS_RUN, "this run was allowed 30 rounds")) == (
        "this run was allowed 30 iterations"
    )
    assert texts.reason(stop(End.BLOCKED, Rule.AGENT_BLOCKED, "two rounds of tests?")) == "two rounds of tests?"
    assert texts.reason(COMPLETE) == "every task is done, and the verification passed on the whole"


def line(number: int = 1, *, earlier: int = 0, passed: bool | None = True, **more: object) -> str:
    """What is said after an iteration, so many iterations after those of earlier runs."""
    before = [fact for each in range(1, earlier + 1) for fact in an_iteration(each)]
    facts = an_iteration(number, **more)  # type: ignore[arg-type]
    state, _ = past(begun(LEXER), before, begun(LEXER), facts)
    checks = None if passed is None else verified(number, passed=passed)
    assert isinstance(facts[1], RoundEnded)
    return texts.iteration_line(facts[1], checks, state)


def test_an_iteration_is_one_line() -> None:
    assert line(claim="done") == "[iteration 1/30] 001-lexer  complete  2 files  verification passed  43 s"
    assert line(passed=False, changes=Changes(added=1)) == (
        "[iteration 1/30] 001-lexer  continue  1 file  verification failed  43 s"
    )
    assert line(claim=None, changes=Changes()) == (
        "[iteration 1/30] 001-lexer  no status  no change  verification passed  43 s"
    )
    assert line(claim=None, passed=None, outcome=Outcome.TRANSIENT, detail="502\nfrom the provider") == (
        "[iteration 1/30] 001-lexer  failed: 502 from the provider  2 files  41 s"
    )


def test_what_begins_is_one_line_and_so_is_how_it_goes() -> None:
    state, _ = past(begun(LEXER, PARSER), an_iteration(1), an_iteration(2, PARSER)[:1])
    assert texts.begin_line(state) == "[iteration 2/30] task: 002-parser (0/2 done)"
    later, _ = past(begun(LEXER), an_iteration(1), begun(LEXER), an_iteration(2)[:1])
    assert texts.begin_line(later) == "[iteration 2, 1/30] task: 001-lexer (0/1 done)"
    assert texts.minute_line(241.0, 12, "npm test") == "4 min, 12 commands, last: npm test"
    assert texts.minute_line(60.0, 0, "") == "1 min, no command yet"


def test_an_iteration_that_was_cut_short_has_not_failed() -> None:
    killed = "its process was killed"
    assert line(claim=None, passed=None, outcome=Outcome.INTERRUPTED, detail=killed, changes=Changes()) == (
        "[iteration 1/30] 001-lexer  interrupted: its process was killed  no change  41 s"
    )


def test_a_task_with_a_name_that_cannot_be_printed_breaks_no_line() -> None:
    odd = "004-\x1b[31mred\nnew"
    state, _ = past(begun(odd), [*an_iteration(1, odd)])
    assert line(task=odd).startswith("[iteration 1/30] 004-red new  continue  ")
    found = texts.next_steps(PROJECT, state, stop(End.FAILED, Rule.AGENT_FAILURES), PROJECT.workspace)
    assert found[0].command == "codex-loop logs tail"


def test_a_later_run_says_both_the_number_for_life_and_its_own() -> None:
    """X-08: never `31/30`."""
    assert line(33, earlier=32).startswith("[iteration 33, 1/30] ")


def test_hooks_get_the_variables_of_the_document() -> None:
    """C-065"""
    words = texts.hook_words("post_round", PROJECT, STATE, {"BYDAWN_TASK_ID": LEXER, "BYDAWN_TASK": "The lexer"})
    assert words == {
        "CODEX_LOOP_EVENT": "post_iteration",
        "CODEX_LOOP_PROJECT_DIR": "/home/ada/shop",
        "CODEX_LOOP_WORKING_DIR": "/home/ada/.codex-loop-worktrees/shop/codex-loop-shop",
        "CODEX_LOOP_TASK_ID": LEXER,
        "CODEX_LOOP_TASK_TITLE": "The lexer",
        "CODEX_LOOP_TASK_STATUS": "in_progress",
        "CODEX_LOOP_LOOP_ITERATION": "1",
        "CODEX_LOOP_AGENT_STATUS": "continue",
        "CODEX_LOOP_VERIFICATION_PASSED": "false",
        "CODEX_LOOP_SUMMARY": "worked on 001-lexer",
        "CODEX_LOOP_ERROR": "pytest -q: exit 1: FAILED test_lexer.py::test_nested - assert 1 == 2",
        "CODEX_LOOP_BLOCKER_CODE": "",
        "CODEX_LOOP_OUTCOME": "",
    }


def test_a_hook_before_an_iteration_is_told_nothing_of_the_last_one() -> None:
    words = texts.hook_words("pre_round", PROJECT, STATE, {"BYDAWN_TASK_ID": LEXER})
    told = {name.removeprefix("CODEX_LOOP_"): value for name, value in words.items() if value}
    assert told.keys() == {"EVENT", "PROJECT_DIR", "WORKING_DIR", "TASK_ID", "TASK_STATUS", "LOOP_ITERATION"}
    assert (told["EVENT"], told["LOOP_ITERATION"]) == ("pre_iteration", "2")


def test_hooks_at_the_end_are_told_how_it_ended() -> None:
    state, _ = past(begun(LEXER), an_iteration(1, claim="done"), verified(1), settled(LEXER, TaskStatus.DONE))
    words = texts.hook_words("on_complete", PROJECT, state, hooks.after_all(state, COMPLETE))
    names = ("EVENT", "TASK_STATUS", "AGENT_STATUS", "VERIFICATION_PASSED", "BLOCKER_CODE", "OUTCOME")
    assert [words[f"CODEX_LOOP_{name}"] for name in names] == [
        "on_completed",
        "done",
        "complete",
        "true",
        "",
        "completed",
    ]
    blocked, _ = past(begun(LEXER), an_iteration(1), Obstructed(kind="disk", detail="the disk is full"))
    told = hooks.after_all(blocked, stop(End.BLOCKED, Rule.OBSTRUCTED, "the disk is full", ("disk",)))
    words = texts.hook_words("on_blocked", PROJECT, blocked, told)
    assert [words[f"CODEX_LOOP_{name}"] for name in ("BLOCKER_CODE", "OUTCOME")] == ["disk", "blocked"]


def test_a_hook_at_a_block_is_told_of_the_task_that_is_blocked_not_of_the_last_one() -> None:
    asks = settled(LEXER, TaskStatus.ASIDE, Rule.AGENT_BLOCKED, "which license?")
    facts = [
        begun(LEXER, "002-parser"),
        an_iteration(1, claim="blocked"),
        asks,
        an_iteration(2, "002-parser"),
        verified(2),
    ]
    state, _ = past(*facts)
    told = hooks.after_all(state, stop(End.BLOCKED, Rule.AGENT_BLOCKED, "which license?"))
    words = texts.hook_words("on_blocked", PROJECT, state, told)
    names = ("TASK_ID", "TASK_TITLE", "TASK_STATUS", "AGENT_STATUS", "ERROR", "BLOCKER_CODE", "VERIFICATION_PASSED")
    expected = [LEXER, f"Task {LEXER}", "blocked", "blocked", "which license?", "agent_blocked", ""]
    assert [words[f"CODEX_LOOP_{name}"] for name in names] == expected


def test_what_our_own_sentences_call_differently_is_said_in_its_words() -> None:
    assert texts.spoken("! hook pre_round (make) failed: exit 2") == "! hook pre_iteration (make) failed: exit 2"
    assert texts.spoken("reached the round's time limit") == "reached the iteration's time limit"
    assert texts.spoken("a round of golf") == "a round of golf"
    assert texts.spoken("3 rounds in a row, make: no rule; in round 4, x") == (
        "3 iterations in a row, make: no rule; in iteration 4, x"
    )
    advice = Advice("restore it, then run ", Act("resume", "shop"))
    assert texts.spoken(advice) == "restore it, then run `codex-loop run`"
    state, _ = past(begun(LEXER), Obstructed(kind="hook", detail="hook pre_round (make) failed: exit 2"))
    told = hooks.after_all(state, stop(End.BLOCKED, Rule.OBSTRUCTED, "hook pre_round (make) failed: exit 2", ("hook",)))
    words = texts.hook_words("on_blocked", PROJECT, state, told)
    assert words["CODEX_LOOP_ERROR"] == "hook pre_iteration (make) failed: exit 2"
