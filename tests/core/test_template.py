"""A prompt that a person laid out: markers, mistakes in them, and what they leave behind."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bydawn.core.loop import Promise, SpokenDialect
from bydawn.core.prompt import BUDGETS
from bydawn.core.template import MARKERS, fill, markers, problem
from core.facts_made import CHECKED, STRICT, a_loop, a_note, a_round, checked, limited, run_started, todo
from core.prompts_made import FENCE, headings, prompt

TOKEN = Promise().token

WRONG = [
    ("", "is empty"),
    (" \n\t\n", "is empty"),
    ("{{PROMPT}}\n\n{{PROMT}}", "has an unknown marker {{PROMT}} on line 3; did you mean {{PROMPT}}?"),
    ("{{prompt}}", "has an unknown marker {{prompt}} on line 1; did you mean {{PROMPT}}?"),
    ("{{TASK}}\n{{ NOTE }}", "has an unknown marker {{NOTE}} on line 2; did you mean {{NOTES}}?"),
    ("{{PROMPT}} {{}}", "has an unknown marker {{}} on line 1; the markers are HEADER, PROMPT"),
    ("{{GOAL}}{{PROMPT}}", "has an unknown marker {{GOAL}} on line 1"),  # a section's name, and no marker
    ("{{PROMPT}}\n{{ROUND", "has a {{ on line 2 without a closing }}; write {{{{ for two literal braces"),
    ("{{PROMPT\n}}", "has a {{ on line 1 without a closing }}"),  # a marker stands on one line
    ("{{{PROMPT}}}", "has a {{ on line 1 without a closing }}"),
    ("round {{ROUND}}", "does not say what to do: add {{PROMPT}}, {{TASK}} or {{TASKS}}"),
    ("{{{{PROMPT}}", "does not say what to do"),
]


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_a_mistake_is_named_with_its_line_and_what_may_have_been_meant(text: str, expected: str) -> None:
    assert (problem(text) or "").startswith(expected)


@pytest.mark.parametrize(
    "text",
    [
        "{{PROMPT}}",
        "{{ TASKS }}\n",
        'Do {{TASK}}; write {"a": {"b": 1}} and `{{{{ x }}`',
        "\n".join(f"{{{{{name}}}}}" for name in MARKERS),
    ],
)
def test_a_template_that_says_what_to_do_is_fine(text: str) -> None:
    assert problem(text) is None


FILLED = [
    ("do {{PROMPT}} in {{ WORKSPACE }}", "do fix {{TASK}} in /w"),  # a marker within a value is only text
    ("{{{{PROMPT}} is {{ROUND}}", "{{PROMPT}} is 3"),
    ("{{{{{{ROUND}}", "{{3"),
    ("a\n\n{{NOTES}}\n\nb", "a\n\nb"),  # neither a line nor a hole
    ("a\n{{NOTES}}\nb", "a\nb"),
    ("a\n\n{{NOTES}}\nb", "a\n\nb"),
    ("{{NOTES}}\n\nb", "b"),
    ("a\n\n  {{NOTES}} {{CHECKS}}\t\n\n{{CHECKS}}\n\nb\n", "a\n\nb\n"),
    ("a {{NOTES}}b", "a b"),
    ("a\r\n\r\n{{NOTES}}\r\n\r\nb", "a\n\nb"),
    ("a\n\n\n\nb", "a\n\n\n\nb"),  # a person's own holes are left alone
    ("{{WHAT}} {{ROUND", "{{WHAT}} {{ROUND"),  # nobody's guess
]


@pytest.mark.parametrize(("text", "expected"), FILLED)
def test_markers_are_replaced_once_and_empty_ones_leave_no_trace(text: str, expected: str) -> None:
    """R-020."""
    values = {"PROMPT": "fix {{TASK}}", "TASK": "no", "WORKSPACE": "/w", "ROUND": "3", "NOTES": "", "CHECKS": ""}
    assert fill(text, values) == expected


def test_it_is_known_which_markers_a_template_uses() -> None:
    assert markers("{{PROMPT}} {{{{TASK}} {{ OPINIONS }} {{WHAT}} {{ROUND") == {"PROMPT", "OPINIONS"}


PIECES = st.lists(
    st.sampled_from([*(f"{{{{{name}}}}}" for name in MARKERS[:4]), "{{", "}}", "{", "\n", " ", "x", "{{{{", "{{X}}"])
)


@given(PIECES.map("".join), st.text("{}HEADRPOMTSK\n ", max_size=20))
def test_any_text_can_be_looked_at_and_filled_and_a_good_one_shows_all_its_values(text: str, value: str) -> None:
    filled = fill(text, dict.fromkeys(MARKERS, value))
    if problem(text) is None:
        assert value in filled or not value.strip()
        assert filled.count("\x00") == 0
        plain = fill(text, dict.fromkeys(MARKERS, "\x00"))
        assert plain.count("\x00") >= len(markers(text))
    assert fill(text, {}).count("{{") <= text.count("{{")


# -- in a prompt -----------------------------------------------------------------------------------------------------


def test_a_template_lays_the_prompt_out() -> None:
    """R-020."""
    template = "# Round {{ROUND}} of {{ROUNDS}}: {{LOOP}} in {{WORKSPACE}}\n\n{{PROMPT}}\n\n{{NEWS}}\n\n{{RULES}}\n"
    text = prompt(CHECKED, run_started(), a_round(1), checked(1, passed=False), template=template)
    assert text.startswith("# Round 2 of 30: night in /w\n\nfix it\n\n## Checks that failed")
    assert headings(text) == ["Checks that failed after the last round", "Rules"]
    assert "unattended" not in text, "a header only where it is asked for"


def test_what_a_template_forgot_and_must_not_be_lost_comes_behind_it() -> None:
    facts = [
        run_started(tasks=todo(1)),
        *a_round(1, tampered=("a",)),
        checked(1, passed=False),
        a_note("n", "use tabs"),
    ]
    text = prompt(STRICT, *facts, template="Work on {{TASK}}.", reply="said")
    assert text.startswith("Work on task-1.\n\n## Goal\n\nfix it\n\n## A note from ada\n\nuse tabs\n\n")
    assert headings(text)[2:] == ["Protected files were changed", "Checks that failed after the last round", "Rules"]
    assert TOKEN in text


def test_a_dialect_says_which_of_our_sections_may_follow_its_template() -> None:
    facts = [run_started(tasks=todo(1)), *a_round(1), checked(1, passed=False), a_note("n", "use tabs")]
    for sections, expected in (
        (("NOTES", "CHECKS"), ["A note from ada", "Checks that failed after the last round"]),
        ((), []),
    ):
        loop = replace(STRICT, dialect=SpokenDialect(name="other", sections=sections))
        text = prompt(loop, *facts, template="Go on.")
        assert text.startswith("Go on.\n")
        assert headings(text) == expected


def test_news_are_what_has_no_place_of_its_own_and_nothing_is_told_twice() -> None:
    facts = [run_started(), *a_round(1), checked(1, passed=False), a_note("n", "use tabs")]
    text = prompt(CHECKED, *facts, template="{{PROMPT}}\n{{NOTES}}\n{{NEWS}}\n{{RULES}}")
    assert text.count("use tabs") == 1
    assert text.count("FAIL: test_rounding") == 1


def test_documents_stand_in_the_prompt_only_where_a_template_asks_for_them() -> None:
    loop = a_loop(opinions="O.md", progress="P.md")
    given = {"documents": {"O.md": "use tabs\n", "P.md": "it is slow"}}
    assert "use tabs" not in prompt(loop, run_started(), **given)
    assert "use tabs" not in prompt(loop, run_started(), **given, template="{{PROMPT}}{{DOCUMENTS}}")
    text = prompt(loop, run_started(), **given, template="{{PROMPT}}\n{{OPINIONS}}\n{{PROGRESS}}")
    assert f"<<{FENCE}\nuse tabs\n{FENCE}>>" in text
    assert f"<<{FENCE}\nit is slow\n{FENCE}>>" in text
    assert "- O.md: how the people here" in prompt(loop, run_started(), template="{{PROMPT}}\n{{OPINIONS}}")


def test_no_value_of_a_template_is_filled_again() -> None:
    text = prompt(
        a_loop(prompt="write {{PROMISE}} and {{{{"), run_started(), template="{{PROMPT}}\n{{PROMISE}}\n{{RULES}}"
    )
    assert text.startswith(f"write {{{{PROMISE}}}} and {{{{{{{{\n{TOKEN}\n## Rules")


def test_without_a_limit_a_template_says_so() -> None:
    assert "of unlimited" in prompt(limited(rounds=0), run_started(), template="{{ROUND}} of {{ROUNDS}} {{PROMPT}}")


def test_every_marker_and_every_size_stands_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs/prompts.md").read_text()
    assert [name for name in MARKERS if f"`{{{{{name}}}}}`" not in page] == []
    assert [name for name, size in BUDGETS.items() if f"{size:,}" not in page] == []
    example = page.split("```\nYou are round")[1].split("```")[0]
    assert problem(example) is None
