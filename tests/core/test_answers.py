"""A reply as JSON by a schema: what counts, what is only noted, and what goes into the next prompt (C-068)."""

import json
from functools import partial
from typing import Any

import pytest

from bydawn.core import answers
from bydawn.core.claims import from_reply
from bydawn.core.loop import Promise
from bydawn.core.outcome import Outcome
from bydawn.core.prompt import fence_of
from bydawn.core.task_folder import Claimed, status_of
from bydawn.core.values import UNCLEAR, TaskClaim
from core.facts_made import FOLDER, LISTED, PROMISED, a_loop, a_round, ended, run_started, started
from core.prompts_made import FIRST, headings, judged, outside_the_fence, prompt, red

SAID: dict[str, Any] = {
    "status": "complete",
    "summary": "rounds half up",
    "task_id": "01-round",
    "files_changed": ["src/a.py"],
    "verification_expected": ["make test"],
    "needs_resume": False,
    "blockers": [],
    "next_action": "",
}


def answer(**more: Any) -> str:
    return json.dumps({name: value for name, value in (SAID | more).items() if value is not ...})


def test_the_schema_is_strict_and_a_whole_answer_fits_it() -> None:
    """FACTS: every property is required, and none is additional."""
    schema = json.loads(answers.SCHEMA)
    assert schema["required"] == [*schema["properties"]] == [*SAID]
    assert schema["additionalProperties"] is False
    read = answers.read(answer())
    assert read == answers.Answer(
        **SAID | {"files_changed": ("src/a.py",), "verification_expected": ("make test",)} | {"blockers": ()}
    )


def test_only_a_loop_whose_replies_need_nothing_else_wants_an_answer() -> None:
    assert answers.wanted(FOLDER)
    promised = a_loop(tasks="tasks", task_folder=True, promise=Promise())
    marks = a_loop(tasks="tasks", task_folder=True, tasks_required=False)
    assert not any(map(answers.wanted, (LISTED, PROMISED, promised, marks)))


@pytest.mark.parametrize(
    ("more", "status", "odd"),
    [
        ({}, "done", ()),
        ({"status": "continue"}, "in-progress", ()),
        ({"status": "in_progress"}, "in-progress", ()),
        ({"status": "blocked"}, "blocked", ()),
        ({"status": ...}, UNCLEAR, ("`status` is missing",)),
        ({"status": 7}, UNCLEAR, ("`status` is not a text",)),
        ({"task_id": "02-tax"}, UNCLEAR, ("`task_id` is 02-tax, but the task was 01-round",)),
        # None of this takes anything from a claim.
        ({"task_id": "tasks/01-Round.md"}, "done", ()),
        ({"task_id": ...}, "done", ("`task_id` is missing",)),
        ({"files_changed": "a.py"}, "done", ("`files_changed` is not a list of texts",)),
        (
            {"needs_resume": "no", "blockers": None},
            "done",
            ("`needs_resume` is not true or false", "`blockers` is missing"),
        ),
        ({"more": 1}, "done", ()),
    ],
)
def test_what_an_answer_claims_and_what_is_odd_about_it(
    more: dict[str, Any], status: str, odd: tuple[str, ...]
) -> None:
    claim = status_of(answer(**more), task="01-round")
    assert claim
    assert (claim.status, claim.odd) == (status, odd)


def test_a_status_block_in_json_is_whole_without_the_other_fields() -> None:
    assert status_of('{"status": "done", "summary": "x"}') == TaskClaim(status=Claimed.DONE, summary="x")
    block = f"I did it.\n{answer(task_id='02-tax')}"
    claim = status_of(block, task="01-round")
    assert claim
    assert claim.status == UNCLEAR, "from an agent that writes it as a line, too"
    claim = status_of(f"{answer(status='blocked')}\n\nSTATUS: in_progress")
    assert claim
    assert claim.status == "in-progress"


def test_blockers_are_the_words_of_the_question() -> None:
    said = from_reply(answer(status="blocked", blockers=["no key", "none"]), Outcome.OK, FOLDER, "01-round")
    assert (said.blocked, said.task and said.task.blockers) == ("no key", ("no key",))
    assert from_reply(answer(status="blocked"), Outcome.OK, FOLDER).blocked == "rounds half up"
    beside = from_reply(answer(blockers=["the docs are thin"]), Outcome.OK, FOLDER)
    assert (beside.blocked, beside.task and beside.task.status) == ("", "done"), "only a blocked task has some"


def test_a_task_that_waits_for_a_person_is_not_done_whatever_its_status_says() -> None:
    for status in ("STATUS: done", '{"status": "complete", "summary": "x"}'):
        said = from_reply(f"BLOCKED: I need a key\n\n{status}", Outcome.OK, FOLDER, "01-round")
        assert (said.task, said.blocked.partition("\n")[0]) == (None, "I need a key")


def test_control_characters_that_json_spells_are_left_out_of_what_is_kept() -> None:
    """The text of the reply has none; only what it says does."""
    said = answers.read(answer(summary="all\x1b[2J good", blockers=["a\x1b]0;b\x07 key"], task_id="01-round\u202e"))
    assert said
    assert (said.summary, said.blockers, said.task_id) == ("all good", ("a key",), "01-round")


def test_people_read_the_summary() -> None:
    assert answers.shown(answer()) == "rounds half up"
    for other in ("Done.", '{"a": 1}', answer(summary=""), '{"status": "x"'):
        assert answers.shown(other) == other


def test_what_is_odd_is_said_back_with_what_it_says_kept_harmless() -> None:
    claim = TaskClaim(status=UNCLEAR, odd=("`task_id` is 02\n## Goal, but the task was 01-round",))
    text = prompt(FOLDER, run_started(tasks=FIRST), a_round(1, claim=claim, tasks=FIRST))
    assert "Your last answer was not as agreed" in headings(text)
    assert "- 'task_id' is 02 ## Goal, but the task was 01-round" in text


def test_an_agent_with_a_schema_is_asked_for_json_and_another_for_lines() -> None:
    with_schema, without = (prompt(FOLDER, run_started(tasks=FIRST), answers=each) for each in (True, False))
    assert "the fields of the schema you were given" in with_schema
    assert "set `status` to blocked, and name in `blockers` what you need" in with_schema
    assert "STATUS:" not in with_schema
    assert "## BLOCKED" not in with_schema
    assert "`STATUS: done`" in without
    assert f"{', '.join(answers.FIELDS[1:])}." in without, "or in one line, with the same fields"
    promised = prompt(a_loop(tasks="tasks", task_folder=True, promise=Promise()), run_started(tasks=FIRST))
    assert "task_id" not in promised


def test_markers_for_task_summaries_and_failed_checks() -> None:
    """C-042."""
    before = "{{#SUMMARIES}}\nBefore:\n{{SUMMARIES}}\n{{/SUMMARIES}}"
    template = f"{{{{TASK_ID}}}}|{{{{TASK_TITLE}}}}\n{{{{TASK_TEXT}}}}\n{before}\n{{{{FAILED_CHECKS}}}}\n{{{{NEWS}}}}"
    loop = a_loop(tasks="tasks", task_folder=True, checks=FOLDER.checks, template=template)
    rounds = [a_round(number, said=f"did {number}", tasks=FIRST) for number in (1, 2, 3, 4)]
    late = red("slow", timed_out=True, detail="timed out after 300 s", excerpt="so far")
    apart = red(exit_code=2, stdout="1 of 3", stderr="FAIL `x`")
    first = prompt(loop, run_started(tasks=FIRST), template=template)
    assert "Before:" not in first
    assert "(FAILED)" not in first
    text = prompt(loop, run_started(tasks=FIRST), *rounds, judged(4, apart, late), template=template, task_text="# A")
    assert text.startswith("01-round|Round half up\nThe task file (data")
    assert "- did 2\n- did 3\n- did 4" in text
    assert headings(text).count("Last Verification Output (FAILED)") == 1
    assert "`make test`: exit code 2 (exit 2)" in text
    assert "1 of 3" in text
    assert "FAIL `x`" not in outside_the_fence(text)
    assert "`slow`: TIMED OUT (timed out after 300 s)" in text
    assert "Checks that failed" not in text, "it stands for that section"
    assert headings(text).count("Task") == 0


def test_a_follow_up_does_not_repeat_a_task_that_its_conversation_has_read() -> None:
    follow_up = "Go on with {{TASK_ID}}.\n{{#TASK_TEXT}}\nRead:\n{{TASK_TEXT}}\n{{/TASK_TEXT}}"
    loop = a_loop(tasks="tasks", task_folder=True, template=f"{{{{TASK_TEXT}}}}\n{{{{CONTINUED}}}}\n{follow_up}")
    known = fence_of("# A", loop)
    facts = [
        run_started(tasks=FIRST),
        started(1, task_id="01-round", task_text=known),
        ended(1, session="s", tasks=FIRST),
    ]
    resumed = partial(prompt, loop, *facts, resumed=True, session_id="s", template=loop.template)
    same, other = (resumed(task_text=text) for text in ("# A", "# B"))
    assert "Read:" not in same
    assert "Read:\nThe task file (data" in other
