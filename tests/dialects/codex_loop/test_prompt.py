"""codex-loop: what an iteration is told."""

from bydawn.core import prompt, template
from bydawn.core.facts import ChecksEnded
from bydawn.core.loop import Loop, Sessions, SpokenDialect, TaskByTask, Worktree
from bydawn.core.outcome import Outcome
from bydawn.core.replay import replay
from bydawn.core.values import TaskClaim, TaskReading, Verdict
from bydawn.dialects.codex_loop.config import PLAN, SPEC
from bydawn.dialects.codex_loop.prompt import FOLLOW_UP
from bydawn.dialects.codex_loop.prompt import template as first
from core.facts_made import BORN, MAKE_TEST, a_loop, ended, numbered, run_started, started

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
        *(
            "\n## Next task 002-parser: Nested lists\n\nLists in lists must work.\n",
            "iterations\n\n- wrote the lexer\n",
        ),
        *(FAILED, "## The task is not done yet"),
    )
    assert in_order(text, told), text


def test_an_iteration_with_no_news_and_no_documents_has_no_empty_headings() -> None:
    text = template.fill(template.halves(first(["it works"]))[0], NOTHING_NEW)
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


# -- with all that our own sections add --------------------------------------------------------------------------------

READING = TaskReading(open=2, done=1, next="Nested lists", next_id="002-parser", open_ids=("002-parser", "003-docs"))
TREE = "/home/me/.codex-loop-worktrees/shop/codex-loop-shop"


def project(summary: str = "Write a parser.") -> Loop:
    return a_loop(
        workspace=ROOT,
        prompt=summary,
        tasks="tasks",
        task_folder=True,
        checks=(MAKE_TEST,),
        sessions=Sessions.PER_TASK,
        by_task=TaskByTask(),
        template=first(["all tests pass"], [f"{ROOT}/{SPEC}", f"{ROOT}/{PLAN}"]),
        dialect=SpokenDialect(name="codex-loop", sections=()),
        worktree=Worktree(branch="codex-loop/shop", path=TREE, folder=TREE),
    )


TEXT = "# Nested lists\n\nLists in lists must work.\n"


def composed(*, resumed: bool, session: str | None = None, text: str = TEXT, outcome: Outcome = Outcome.OK) -> str:
    """The second prompt of a task whose first answer was `complete` on a red tree."""
    loop, said = project(), TaskClaim(status="done", summary="All of it is there.")
    red = Verdict(check="make test", passed=False, detail="it failed", exit_code=2, stdout="1 failed", stderr="ouch")
    facts = [
        BORN,
        run_started(tasks=READING, per_task=True),
        started(1, task_id="002-parser", task_text=prompt.fence_of(TEXT, loop)),
        ended(1, outcome, claim=said, said=said.summary, tasks=READING, session="ours"),
        ChecksEnded(round=1, tree="tree-1", elapsed=61.0, verdicts=(red,)),
    ]
    return prompt.compose(
        *(loop, replay(numbered(facts)), 2, "fence"),
        resumed=resumed,
        session_id=session,
        task_text=text,
        template=loop.template,
        answers=True,
    )


def test_a_resumed_conversation_is_not_told_a_text_again_that_it_knows() -> None:
    told = composed(resumed=True, session="ours")
    assert ("Lists in lists" in told, "## Goal" in told, "Go on with task 002-parser" in told) == (False, False, True)
    assert "In any depth." in composed(resumed=True, session="ours", text=f"{TEXT}In any depth.\n")


def test_a_conversation_whose_first_turn_was_cut_short_is_told_everything_once() -> None:
    """It may never have seen our rules."""
    told = ("## Goal", "## Rules", "Lists in lists must work.")
    assert in_order(composed(resumed=True, session="ours", outcome=Outcome.TRANSIENT), told)


def test_complete_on_a_red_tree_is_answered_behind_the_failed_verification() -> None:
    """C-042: with command, exit code, stdout and stderr; in a new conversation and in one that is resumed."""
    told = (
        "002-parser: Nested lists",
        *("## Last Verification Output (FAILED)\n\n`make test`: exit code 2", "1 failed", "ouch"),
        "## The task is not done yet\n\nYour reply said it is done, but its checks fail.",
    )
    fresh, resumed = composed(resumed=False), composed(resumed=True, session="ours")
    assert (in_order(fresh, told), in_order(resumed, told)) == (True, True)
    assert in_order(fresh, (f"unattended in {TREE}. ", "`make test` must pass", "JSON object", "- All of it is there."))
    assert ("## Checks that failed" in fresh + resumed, "## Tasks" in fresh + resumed) == (False, False)


def test_our_words_around_a_task_stay_short_and_can_be_cached() -> None:
    """X-21: within 5 KB and 1.5 KB, and what comes before the task is the same for all tasks."""
    assert template.problem(project().template or "") is None
    assert template.halves(project().template or "")[1] == FOLLOW_UP
    assert len(composed(resumed=False).encode()) <= 5_120
    assert len(composed(resumed=True).encode()) <= 1_536
    head, _, _ = (project().template or "").partition("## Next task")
    assert template.markers(head) == {"WORKSPACE", "PROMPT", "RULES"}
