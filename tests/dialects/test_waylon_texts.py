"""What waylon-smithers tells Codex, and what it tells people."""

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bydawn.cli.dialects.waylon_smithers import COMMANDS, start
from bydawn.core import template
from bydawn.core.facts import AnyFact, LoopStopped
from bydawn.core.loop import Loop
from bydawn.core.outcome import Outcome
from bydawn.core.state import LoopState
from bydawn.core.values import End
from bydawn.dialects.waylon_smithers import DIALECT, texts
from core.facts_made import a_note, a_round, after_all, decided, raised, run_started
from core.prompts_made import prompt
from dialects.waylon_made import HERE, ID, asked, loop_of, smithers

MODES = ("tag", "plain", "regex")
TASK = "Fix the tests.\n\n  Indented {{PROMPT}} { } {{{{ %s %(x)d\nand no more."
ODD = ["{{PROMPT}}", "{{", "}}", "{{{{", "{{{", "{", "{{NEWS", "100% %s", "a\\1b", "<b>", "`x`", "ä—✓"]
BEGUN = run_started()


def first(loop: Loop, *facts: AnyFact | list[AnyFact]) -> str:
    """The prompt that begins a session."""
    return prompt(loop, BEGUN, *facts, template=loop.template)


def later(loop: Loop, *facts: AnyFact | list[AnyFact]) -> str:
    """The prompt that goes on with it."""
    return prompt(loop, BEGUN, *facts, template=loop.template, resumed=True)


# -- templates ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("todo", [None, "TODO.md"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("odd", ["DONE", *ODD])
def test_the_template_is_one_that_could_have_been_written_by_hand(mode: str, todo: str | None, odd: str) -> None:
    promise = "DONE" if mode == "regex" else odd
    request = asked(promise_mode=mode, completion_promise=promise, todo_file=todo, hard_stop_token=odd)
    assert template.problem(request.template) is None


@given(st.text("{}%PROMT ", min_size=1).filter(str.strip), st.text("{}%NEWS ", min_size=1).filter(str.strip))
def test_braces_of_a_persons_own_are_only_text(promise: str, token: str) -> None:
    """W-080."""
    wanted = asked(promise_mode="plain", completion_promise=promise, todo_file="TODO.md", hard_stop_token=token)
    assert template.problem(wanted.template) is None
    values = dict.fromkeys(template.MARKERS, "x")
    first, continued = (template.fill(text, values) for text in template.halves(wanted.template))
    assert f"(mode plain): {promise}\n" in first
    assert f"- Stop at {token} and ask" in first
    assert f"end with {promise} as the last line" in continued


# -- the first prompt --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "token"),
    [("tag", "<promise>DONE</promise>"), ("plain", "DONE"), ("regex", "something that matches DONE")],
)
def test_it_begins_with_loop_iteration_cap_mode_and_the_exact_promise(mode: str, token: str) -> None:
    """W-050, W-080."""
    text = first(smithers(promise_mode=mode, completion_promise="DONE", max_iterations=50))
    header, task, _ = text.partition("## Task")
    assert task
    assert header.splitlines()[2:5] == [
        f"- Loop: {ID}",
        "- Iteration: 1 of at most 50",
        f"- Completion promise (mode {mode}): {token}",
    ]


def test_the_iteration_is_the_one_that_counts_and_the_cap_the_one_in_force() -> None:
    """W-080."""
    text = first(smithers(), a_round(1), a_round(2, Outcome.TRANSIENT), raised(rounds=60))
    assert "- Iteration: 2 of at most 60" in text


def test_a_prompt_has_the_task_as_it_was_written() -> None:
    """W-081."""
    assert f"## Task\n\n{TASK}\n\n## Rules\n" in first(smithers(prompt=TASK))


@pytest.mark.parametrize("mode", MODES)
def test_it_asks_for_the_promise_only_when_all_is_done_and_for_a_section_when_stuck(mode: str) -> None:
    """W-082, W-131."""
    text = first(smithers(promise_mode=mode, completion_promise="DONE"))
    rules = text.partition("## Rules")[2]
    token = "<promise>DONE</promise>" if mode == "tag" else "DONE"
    assert "When, and only when, everything is done and verified" in rules
    assert f" {token}\n  Otherwise do not write it." in rules
    assert "the whole task is completely and unequivocally done" in rules
    assert "`## BLOCKED` section" in rules
    assert "propose next steps" in rules


def test_it_asks_to_keep_what_matters_in_files_as_the_session_grows() -> None:
    """W-130."""
    assert "Keep what the next iteration must know in files of the repository" in first(smithers())


def test_a_list_brings_its_workflow_and_without_one_there_is_none() -> None:
    """W-083."""
    text = first(smithers(todo_file="TODO.md", hard_stop_token="LOOK {{HERE}}"))  # noqa: S106
    rows = text.partition("## TODO workflow\n\n")[2].splitlines()
    assert rows[:3] == [
        "- Work from top to bottom.",
        "- Stop at LOOK {{HERE}} and ask for human review; nothing beyond it is begun before that.",
        "- Prefer deterministic checks: tests, linters, type checks.",
    ]
    bare = first(smithers(hard_stop_token="LOOK"))  # noqa: S106
    assert "TODO" not in bare
    assert "LOOK" not in bare


@pytest.mark.parametrize("odd", ODD)
def test_odd_words_arrive_as_they_are(odd: str) -> None:
    """W-080, W-081."""
    loop = smithers(prompt=odd, completion_promise=odd, todo_file="TODO.md", hard_stop_token=odd)
    text = first(loop)
    assert f"(mode tag): <promise>{odd}</promise>\n" in text
    assert f"## Task\n\n{odd}\n" in text
    assert f"- Stop at {odd} and ask" in text
    assert f"<promise>{odd}</promise>" in later(loop)


def test_a_note_of_a_person_stands_in_either_prompt() -> None:
    for ask in (first, later):
        assert "round half up" in ask(smithers(), a_note("n-1"))


# -- later ones --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("todo", [None, "TODO.md"])
def test_a_later_prompt_is_short_and_has_the_promise_but_not_the_task(mode: str, todo: str | None) -> None:
    """W-050."""
    loop = smithers(prompt=TASK * 9, promise_mode=mode, completion_promise="DONE", max_iterations=50, todo_file=todo)
    text = later(loop, a_round(1))
    assert len(text) < 600
    assert f"{ID}: iteration 2 of at most 50." in text
    assert ("<promise>DONE</promise>" if mode == "tag" else "DONE") in text
    assert "Fix the tests" not in text
    assert "## Rules" not in text


def test_a_session_that_was_lost_begins_with_the_whole_task_again() -> None:
    """W-050."""
    text = first(smithers(prompt=TASK), a_round(1), a_round(2, Outcome.SESSION_LOST))
    assert TASK in text
    assert "- Iteration: 2 of at most 30" in text


# -- what to do next ---------------------------------------------------------------------------------------------------

RESUME = f"waylon-smithers resume --loop-id {ID}"
STATUS = f"waylon-smithers status --loop-id {ID}"


def steps(end: End, rule: str = "complete", state: LoopState | None = None, **options: Any) -> list[tuple[str, str]]:
    stopped = LoopStopped(end=end, reason="why not", decided=decided(rule))
    steps = DIALECT.next_steps(smithers(**options), state or after_all(BEGUN), stopped, HERE.workspace)
    return [(step.command, step.why) for step in steps]


@pytest.mark.parametrize(
    ("end", "commands"),
    [
        (End.COMPLETE, [STATUS, "git status"]),
        (End.UNVERIFIED, [STATUS, "git status"]),
        (End.BLOCKED, [f'{RESUME} --note "…"', RESUME, STATUS]),
        (End.LIMIT, [RESUME]),  # of time or tokens
        (End.CHECKPOINT, [STATUS, RESUME]),
        (End.FAILED, [RESUME, STATUS]),
        (End.PAUSED, [RESUME]),
        (End.STOPPED, [RESUME]),
    ],
)
def test_every_end_says_what_to_paste_next(end: End, commands: list[str]) -> None:
    """W-053, W-132."""
    found = steps(end, full_auto=True)
    assert [command for command, _ in found] == commands
    assert all(what for _, what in found)


@pytest.mark.parametrize("folder", ["/w", ""])  # "": whoever reads a file may be anywhere
@pytest.mark.parametrize("end", End)
def test_outside_of_the_loops_folder_every_command_names_it(end: End, folder: str) -> None:
    """W-026, W-054."""
    stopped = LoopStopped(end=end, reason="why not", decided=decided("complete"))
    loop = loop_of(asked(full_auto=True), "/w/my repo")
    found = [step.command for step in DIALECT.next_steps(loop, after_all(BEGUN), stopped, folder) if step.command]
    assert found
    for command in found:
        words = shlex.split(command)
        flag = "--cd" if words[0] == "waylon-smithers" else "-C"
        assert words[words.index(flag) + 1] == "/w/my repo"


def test_at_the_cap_of_one_that_may_only_read_it_is_said_what_keeps_it() -> None:
    """W-014, W-054."""
    idle = replace(after_all(BEGUN), rounds=30, rounds_without_progress=30)
    [(edits, _), (command, what)] = steps(End.LIMIT, "rounds", idle)
    assert edits == f"{RESUME} --max-iterations 60 --full-auto"
    assert command == f"{RESUME} --max-iterations 60"
    assert "if reading is all that it needs" in what
    assert len(steps(End.LIMIT, "rounds", idle, full_auto=True)) == 2


REASONS = [
    ("rounds", "all 25 rounds are used up", "all 25 iterations are used up"),
    ("rounds", "the only round is used up", "the only iteration is used up"),
    ("no-progress", "5 rounds in a row made no new change", "5 iterations in a row made no new change"),
    ("agent-blocked", "the round trip takes too long", "the round trip takes too long"),  # somebody else's words
]


@pytest.mark.parametrize(("rule", "ours", "said"), REASONS)
def test_reasons_speak_of_iterations(rule: str, ours: str, said: str) -> None:
    """W-075."""
    assert texts.reason(LoopStopped(end=End.LIMIT, reason=ours, decided=decided(rule))) == said


@pytest.mark.parametrize(("cap", "higher"), [(1, 11), (10, 20), (30, 60), (100, 200)])
def test_at_the_cap_a_higher_one_is_ready_and_other_ways_are_named(cap: int, higher: int) -> None:
    """W-054."""
    [(command, _), (nothing, advice)] = steps(End.LIMIT, "rounds", max_iterations=cap)
    assert (command, nothing) == (f"{RESUME} --max-iterations {higher}", "")
    assert "prompt" in advice
    assert "tests" in advice


def test_the_higher_cap_is_above_the_one_that_was_raised_before() -> None:
    """W-054."""
    [(command, _), _] = steps(End.LIMIT, "rounds", after_all(BEGUN, raised(rounds=60)))
    assert command == f"{RESUME} --max-iterations 120"


def test_where_there_may_be_no_git_nobody_is_sent_to_it() -> None:
    """W-032."""
    assert [command for command, _ in steps(End.COMPLETE, skip_git_repo_check=True)] == [STATUS]


def test_whoever_may_only_read_is_told_what_lets_codex_edit() -> None:
    """W-030, W-090."""
    command, why = steps(End.BLOCKED)[0]
    assert (command, "the sandbox is read-only" in why) == (f"{RESUME} --full-auto", True)
    assert "--full-auto" not in " ".join(each for each, _ in steps(End.BLOCKED, full_auto=True))


# -- helpers -----------------------------------------------------------------------------------------------------------


def helper(*, home: bool) -> texts.Helper:
    [found] = [each for each in texts.HELPERS if each.home is home]
    return found


def test_the_skill_is_one_that_codex_finds_and_it_teaches_discipline() -> None:
    """W-015, W-120, W-131, W-132."""
    skill = helper(home=False)
    assert skill.path == ".codex/skills/waylon-smithers/SKILL.md"
    _, front, body = skill.text.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert fields.keys() == {"name", "description"}
    assert fields["name"] == "waylon-smithers"
    assert 20 < len(fields["description"]) < 1024
    for needed in (
        "only when the whole task is\n  completely done",  # the promise
        "do not write it at all",
        "## BLOCKED",
        "HARD STOP",  # checkpoints
        "deterministic checks",
        "Without `--full-auto` Codex may only read.",  # safe defaults
        "Never suggest `--sandbox danger-full-access`",
        "the looping\nis done by that program",
    ):
        assert needed in body


def test_the_example_in_the_skill_can_be_typed_as_it_is() -> None:
    example = helper(home=False).text.split("```")[1]
    known = {
        flag for command in (start, *COMMANDS.commands.values()) for param in command.params for flag in param.opts
    }
    flags = {word for word in example.split() if word.startswith("--")}
    assert flags
    assert flags <= known


def test_the_prompt_takes_the_task_and_has_the_same_discipline() -> None:
    """W-015, W-120, W-131."""
    found = helper(home=True)
    assert found.path == "prompts/waylon-smithers.md"
    assert "Task: $ARGUMENTS" in found.text
    assert "End with <promise>TASK_COMPLETE</promise> only when everything is completely done" in found.text
    assert "## BLOCKED" in found.text
    assert "HARD STOP" in found.text
    assert "no longer reads custom prompts" in found.remark
