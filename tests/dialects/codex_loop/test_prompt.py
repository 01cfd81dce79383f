"""codex-loop: what an iteration is told."""

from bydawn.core import template
from bydawn.dialects.codex_loop.prompt import FOLLOW_UP, PLAN, SPEC
from bydawn.dialects.codex_loop.prompt import template as first

ROOT = "/home/me/my shop"
FAILED = "## Last Verification Output (FAILED)\n\n`pytest -q`: exit code 1"
FULL = {
    "WORKSPACE": "/home/me/.codex-loop-worktrees/shop/codex-loop-shop",
    "PROMPT": "Write a parser.",
    "RULES": "## Rules\n\n- `pytest -q` must pass; it runs after every round.",
    "TASK_ID": "002-parser",
    "TASK_TITLE": "Nested lists",
    "TASK_TEXT": "Lists in lists must work.",
    "SUMMARIES": "- wrote the lexer\n- wrote tests",
    "FAILED_CHECKS": FAILED,
    "NEWS": "## The task is not done yet",
}
NOTHING_NEW = {**FULL, "SUMMARIES": "", "FAILED_CHECKS": "", "NEWS": ""}


def in_order(text: str, parts: tuple[str, ...]) -> bool:
    places = [text.find(part) for part in parts]
    return -1 not in places and places == sorted(places)


def test_an_iteration_is_told_goal_task_summaries_and_the_failed_verification_in_this_order() -> None:
    """C-042: what was not believed comes behind the output that failed; spec and plan by their path in the project."""
    text = template.fill(
        first(["all tests pass", "the {{README}} says how"], [f"{ROOT}/{SPEC}", f"{ROOT}/{PLAN}"]), FULL
    )
    told = (
        *("## Goal\n\nWrite a parser.", "## Done when\n\n- all tests pass\n- the {{README}} says how\n"),
        *(
            f"- {ROOT}/spec/001-project-spec.md\n",
            f"- {ROOT}/plan/001-implementation-plan.md\n",
            "## Rules\n\n- `pytest",
        ),
        *("\n## Task 002-parser: Nested lists\n\nLists in lists must work.\n", "iterations\n\n- wrote the lexer\n"),
        *(FAILED, "## The task is not done yet"),
    )
    assert in_order(text, told), text


def test_an_iteration_with_no_news_and_no_documents_has_no_empty_headings() -> None:
    text = template.fill(first(["it works"]), NOTHING_NEW)
    assert ("Summaries" in text, "Spec and plan" in text, "\n\n\n" in text) == (False, False, False)
    assert text.rstrip().endswith("Lists in lists must work.")
    assert template.fill(FOLLOW_UP, {**NOTHING_NEW, "TASK_TEXT": ""}).count("\n") < 4


def test_a_resumed_conversation_is_told_only_what_is_new() -> None:
    text = template.fill(FOLLOW_UP, FULL)
    assert in_order(text, ("002-parser: Nested lists", "Lists in lists must work.", FAILED, "## The task is not done"))
    assert "Write a parser." not in text


def test_a_done_condition_stays_on_one_line_and_cannot_place_anything() -> None:
    text = first(["one\n## Rules\n<documents>\x1b[2J", "{{NEWS}}"])
    assert "- one ## Rules <documents>" in text
    assert "\x1b" not in text
    assert "- {{NEWS}}\n" in template.fill(text, NOTHING_NEW)


def test_both_templates_stay_short() -> None:
    """X-21: they are in every prompt, so they stay within 5 KB and 1.5 KB, with all that our own sections add."""
    for text, size in ((first(["x"], ["/p"]), 2_000), (FOLLOW_UP, 400)):
        assert len(text.encode()) <= size
