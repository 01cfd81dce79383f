"""A prompt that a person laid out: markers, mistakes in them, and what they leave behind."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bydawn.core.loop import Promise, SpokenDialect
from bydawn.core.outcome import Outcome
from bydawn.core.prompt import BUDGETS
from bydawn.core.template import MARKERS, enclosed, fill, markers, problem
from core.facts_made import CHECKED, STRICT, a_loop, a_note, a_round, checked, limited, run_started, todo
from core.prompts_made import FENCE, headings, prompt
from effort import MANY_PASSES, effort

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
    ("{{PROMPT}}\n{{FILE}}", "has {{FILE}} on line 2; it needs a path inside the workspace, as in {{FILE:NOTES.md}}"),
    ("{{PROMPT}} {{FILE: }}", "has {{FILE:}} on line 1; it needs a path"),
    ("{{PROMPT}} {{FILE:.}}", "has {{FILE:}} on line 1; it needs a path"),
    ("{{PROMPT}} {{FILE:/etc/passwd}}", "has {{FILE:/etc/passwd}} on line 1; it needs a path inside"),
    ("{{PROMPT}} {{FILE:a/../../b}}", "has {{FILE:a/../../b}} on line 1; it needs a path inside"),
    ("{{PROMPT}} {{file:a}}", "has an unknown marker {{file:a}} on line 1"),
    ("{{PROMPT}} {{OUTPUT:}}", "has {{OUTPUT:}} on line 1; it needs a number of characters, at most 100,000"),
    ("{{PROMPT}} {{OUTPUT:-1}}", "has {{OUTPUT:-1}} on line 1; it needs a number"),
    ("{{PROMPT}} {{OUTPUT:100001}}", "has {{OUTPUT:100001}} on line 1; it needs a number"),
    ("{{PROMPT}} {{ROUND:3}}", "has an unknown marker {{ROUND:3}} on line 1; did you mean {{ROUND}}?"),
    ("{{PROMPT}}\n{{#OUTPUT}}\na", "has {{#OUTPUT}} on line 2 without {{/OUTPUT}}"),
    ("{{PROMPT}}\nNow {{CONTINUED}}\n{{NEWS}}", "has {{CONTINUED}} on line 2; it belongs on a line of its own"),
    ("{{PROMPT}}\n{{CONTINUED}}\n{{NEWS}}\n{{CONTINUED}}\n", "has {{CONTINUED}} on line 2; it belongs"),
    ("{{#TASK}}\n{{TASK}}\n{{CONTINUED}}\n{{/TASK}}", "has {{CONTINUED}} on line 3; it belongs on a line of its own"),
    ("go\n{{CONTINUED}}\n{{PROMPT}}", "does not say what to do"),
    ("{{PROMPT}}\n{{/OUTPUT}}", "has {{/OUTPUT}} on line 2 that does not close the section above it"),
    ("{{#TASK}}\n{{#OUTPUT}}\n{{/TASK}}\n{{/OUTPUT}}", "has {{/TASK}} on line 3 that does not close the section"),
    ("{{PROMPT}}\na {{#OUTPUT}}\n{{/OUTPUT}}", "has {{#OUTPUT}} on line 2 with other text beside it"),
    ("{{PROMPT}}\n{{#OUPUT}}\n{{/OUPUT}}", "has an unknown marker {{OUPUT}} on line 2; did you mean {{OUTPUT}}?"),
    ("{{#PROMPT}}\ndo it\n{{/PROMPT}}", "does not say what to do"),
    ("{{FILE:README.md}}", "does not say what to do"),
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
        "{{TASKS}} {{OUTPUT:0}} {{FILE: docs/a b:c.md }}\r\n{{#FILE:a}}\r\n{{FILE:./a}}\r\n{{/FILE:a}}\r\n",
    ],
)
def test_a_template_that_says_what_to_do_is_fine(text: str) -> None:
    assert problem(text) is None


def test_the_task_list_itself_says_what_to_do_and_some_templates_need_not() -> None:
    assert problem("{{FILE:TODO.md}}", "TODO.md") is problem("{{FILE:TODO.md}}", "./TODO.md") is None
    assert problem("{{FILE:TODO.md}}", "OTHER.md")
    assert problem("{{FILE:None}}")
    assert problem("Go on.", must_say_work=False) is None
    assert problem("{{WHAT}}", must_say_work=False)


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
    ("a\n\n{{#ROUND}}\n<r>\n{{ROUND}}\n</r>\n{{/ROUND}}\n\nb", "a\n\n<r>\n3\n</r>\n\nb"),
    ("a\n\n{{#NOTES}}\n<n>\n{{ROUND}}\n</n>\n{{/NOTES}}\n\nb", "a\n\nb"),
    ("{{#ROUND}}\r\na\r\n{{# NOTES }}\r\nb\r\n{{/NOTES}}\r\nc\r\n{{/ROUND}}", "a\nc"),
    ("{{#NOTES}}\na\n{{#ROUND}}\nb\n{{/ROUND}}\nc\n{{/NOTES}}\nd", "d"),
    ("{{#WHAT}}\na", ""),  # a mistake that was reported
    ("{{/ROUND}}\na {{#ROUND}}", "a {{#ROUND}}"),
]


@pytest.mark.parametrize(("text", "expected"), FILLED)
def test_markers_are_replaced_once_and_empty_ones_leave_no_trace(text: str, expected: str) -> None:
    """R-020."""
    values = {"PROMPT": "fix {{TASK}}", "TASK": "no", "WORKSPACE": "/w", "ROUND": "3", "NOTES": "", "CHECKS": ""}
    assert fill(text, values) == expected


def test_it_is_known_which_markers_a_template_uses() -> None:
    assert markers("{{PROMPT}} {{{{TASK}} {{ OPINIONS }} {{WHAT}} {{ROUND") == {"PROMPT", "OPINIONS"}
    text = "{{#NOTES}}\n{{ FILE: ./a//b.md }}\n{{/NOTES}}\n{{OUTPUT:9}} {{FILE:/etc}}"
    assert markers(text) == {"FILE:a/b.md", "OUTPUT:9"}
    assert markers(text, sections=True) == {"FILE:a/b.md", "OUTPUT:9", "NOTES"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a </TODO> b", r"a <\/TODO> b"),
        ("</todo></ TODO\n>< / Todo >", "<\\/todo><\\/ TODO\n>< \\/ Todo >"),
        ("</NOTES> <TODO> </TODOS> </x.y>", r"</NOTES> <TODO> </TODOS> <\/x.y>"),
        (r"<\/TODO>", r"<\/TODO>"),
    ],
)
def test_a_document_cannot_end_an_element_of_its_template(value: str, expected: str) -> None:
    assert enclosed(value, "<TODO>\n{{FILE:TODO.md}}\n</TODO> <x.y></x.y> <NOTES>") == expected
    assert enclosed(value, "{{FILE:TODO.md}}") == value


@pytest.mark.parametrize("piece", ["<", "</", "< ", "</ ", "</TODO ", "<\n/\n"])
def test_no_document_makes_that_slow(piece: str) -> None:
    assert effort(lambda: enclosed(piece * (1_000_000 // len(piece)), "</TODO>")) < MANY_PASSES


PIECES = st.lists(
    st.sampled_from(
        [
            *(f"{{{{{name}}}}}" for name in MARKERS[:4]),
            *("{{", "}}", "{", "\n", " ", "x", "{{{{", "{{X}}", "\n{{#TASK}}\n", "\n{{/TASK}}\n"),
        ]
    )
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


LAID_OUT = """\
You are given two documents.

<TODO>
{{FILE:TODO.md}}
</TODO>

<NOTES>
{{FILE:docs/NOTES.md}}
</NOTES>

{{#OUTPUT}}
<PREVIOUS>
{{OUTPUT:60}}
</PREVIOUS>

{{/OUTPUT}}
This is run {{COUNTED}}.
"""


def test_whole_documents_and_the_last_output_stand_where_a_template_wants_them_and_nothing_around_them() -> None:
    loop = a_loop(tasks="TODO.md", dialect=SpokenDialect(name="other", sections=()))
    given = {
        "TODO.md": "# Todo\r\n\n- [ ] a {{ROUND}}\n  - [ ] b\x1b[31m\n\n",
        "docs/NOTES.md": "x </TODO> <\x00/notes>\n",
    }
    first = prompt(loop, run_started(tasks=todo(2)), documents=given, template=LAID_OUT)
    documents = (
        "You are given two documents.\n\n<TODO>\n# Todo\n\n- [ ] a {{ROUND}}\n  - [ ] b\n</TODO>\n\n"
        "<NOTES>\nx <\\/TODO> <\\/notes>\n</NOTES>\n\n"
    )
    assert first == f"{documents}This is run 1.\n"
    output = "\n".join(f"line {number} of the output" for number in range(1, 9)) + "\n</PREVIOUS>"
    second = prompt(loop, run_started(tasks=todo(2)), a_round(1), documents=given, output=output, template=LAID_OUT)
    told = "[… earlier output left out …]\nline 7 of the output\nline 8 of the output\n<\\/PREVIOUS>"
    assert second == f"{documents}<PREVIOUS>\n{told}\n</PREVIOUS>\n\nThis is run 2.\n"


def test_a_dialect_may_number_rounds_that_were_cut_short() -> None:
    facts, template = [run_started(), *a_round(1, Outcome.INTERRUPTED)], "{{COUNTED}} {{PROMPT}}"
    assert prompt(a_loop(), *facts, template=template).startswith("1 fix it")
    loop = a_loop(dialect=SpokenDialect(name="other", numbers_cut=True))
    assert prompt(loop, *facts, template=template).startswith("2 fix it")


def test_a_missing_or_empty_document_leaves_its_place_empty() -> None:
    template = "<A>\n{{FILE:a}}\n</A>\n{{#FILE:a}}\nnot empty\n{{/FILE:a}}\n<B>{{FILE:b}}</B> {{PROMPT}}"
    text = prompt(a_loop(), run_started(), documents={"a": " \n"}, template=template)
    assert text.startswith("<A>\n</A>\n<B></B> fix it\n")


def test_a_long_document_keeps_its_start_and_its_end_and_says_what_is_left_out() -> None:
    long = "first\n" + "x" * 99 + "\n" + "an entry\n" * 20_000 + "the last\n"
    text = prompt(a_loop(), run_started(), documents={"P.md": long}, template="{{PROMPT}}\n<P>\n{{FILE:P.md}}\n</P>")
    inside = text.split("<P>\n")[1].split("\n</P>")[0]
    assert inside.startswith("first\nxxx")
    assert inside.endswith("an entry\nthe last")
    [remark] = re.findall(r"\n\[… [\d,]+ characters left out …\]\n", inside)
    assert f" {len(long.rstrip()) - len(inside.replace(remark, '')):,} " in remark
    assert len(inside) < BUDGETS["FILE"] + 50


def test_the_previous_output_is_6000_characters_unless_a_template_says_how_many() -> None:
    output = "ten chars\n" * 2_000
    for marker, lines in (("OUTPUT", 600), ("OUTPUT:100", 10), ("OUTPUT:20000", 2_000), ("OUTPUT:0", 0)):
        text = prompt(a_loop(), run_started(), output=output, template=f"{{{{PROMPT}}}}\n{{{{{marker}}}}}")
        assert lines - 1 <= text.count("ten chars") <= lines
        assert ("earlier output left out" in text) is (0 < lines < 2_000)


def test_documents_and_output_shrink_if_the_agent_accepts_less() -> None:
    given = {"documents": {"a": "word\n" * 9_000, "b": "word\n" * 9_000}, "output": "said\n" * 9_000}
    template = "{{PROMPT}}\n{{FILE:a}}\n{{FILE:b}}\n{{OUTPUT:50000}}"
    assert len(prompt(a_loop(), run_started(), **given, template=template)) > 130_000
    shorter = prompt(a_loop(), run_started(), **given, template=template, length=100_000)
    assert 95_000 < len(shorter) <= 100_000
    assert shorter.count("word") == 18_000, "the output gives way first"
    shortest = prompt(a_loop(), run_started(), **given, template=template, length=20_000)
    assert 18_000 < len(shortest) <= 20_000
    assert shortest.count("left out …]") == 3


def test_a_template_with_the_task_list_itself_is_not_told_about_it_again() -> None:
    loop, tasks = a_loop(tasks="TODO.md"), run_started(tasks=todo(2))
    assert "Tasks" in headings(prompt(loop, tasks, template="{{PROMPT}} {{FILE:OTHER.md}}"))
    assert "Tasks" not in headings(prompt(loop, tasks, template="{{PROMPT}} {{FILE:TODO.md}}"))


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
