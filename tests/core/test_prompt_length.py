"""However much there is to say, a prompt stays within its sizes, and whatever the world wrote stays data."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.facts import AnyFact
from bydawn.core.loop import Checkpoint, Loop, Sessions
from bydawn.core.prompt import BUDGETS, compose
from bydawn.core.quote import Keep, cut, harmless, shares
from bydawn.core.replay import replay
from bydawn.core.values import TaskReading
from core.facts_any import HISTORIES, LOOPS
from core.facts_made import CHECKED, MAKE_TEST, PROMISED, a_loop, a_note, a_round, checked, numbered, run_started
from core.prompts_made import FENCE, FIRST, judged, outside_the_fence, prompt, red

# -- how long it may get ---------------------------------------------------------------------------------------------


def test_a_goal_is_verbatim_and_never_cut_without_a_word() -> None:
    """W-081."""
    goal = "begin\n" + "x" * 4_900_000 + "\nend"
    assert f"## Goal\n\n{goal}\n\n## Rules" in prompt(a_loop(prompt=goal), run_started())
    text = prompt(a_loop(prompt=f"begin\n{goal}\n{goal}"), run_started())
    assert "## Goal\n\nbegin" in text
    assert "characters left out …]" in text
    assert "end\n\n## Rules" in text


def test_long_notes_share_their_room_and_show_what_is_cut() -> None:
    text = prompt(
        PROMISED, run_started(), a_note("n-1", "a" * 30_000), a_note("n-2", "use tabs"), a_note("n-3", "b" * 9)
    )
    assert "use tabs" in text
    assert "bbbbbbbbb" in text
    assert "[… 10,017 characters left out …]" in text


GIVES_WAY = ["reply", "documents", "checks", "task"]


@pytest.mark.parametrize("gone", range(5))
def test_a_short_limit_costs_reply_documents_checks_and_task_in_this_order(gone: int) -> None:
    goal, note = "g" * 900, "n" * 900
    texts = {"reply": "R" * 900, "documents": "D" * 900, "checks": "C" * 900, "task": "T" * 900}
    more = {
        "task_text": texts["task"],
        "reply": texts["reply"],
        "documents": {"O.md": texts["documents"]},
        "template": "{{PROMPT}}\n\n{{OPINIONS}}\n\n{{TASK}}\n\n{{NEWS}}\n\n{{RULES}}",
    }
    loop = a_loop(prompt=goal, opinions="O.md", tasks="tasks", task_folder=True, checks=(MAKE_TEST,))
    facts = [run_started(tasks=FIRST), *a_round(1), judged(1, red(excerpt=texts["checks"])), a_note("n", note)]
    whole = prompt(loop, *facts, **more)
    length = len(whole) - 900 * gone - 1 if gone < 4 else 0
    short = prompt(loop, *facts, **more, length=length)
    assert goal in short
    assert note in short
    whole_ones = [name for name in GIVES_WAY if texts[name] in short]
    if gone < 4:
        assert len(short) <= length
        assert len(short) > length - 300, "no more is given up than needed"
        assert whole_ones in (GIVES_WAY[gone + 1 :], GIVES_WAY[gone:])  # what the fences took counts as well
    else:
        assert whole_ones == [], "what still does not fit is for the caller to refuse"
        assert "`make test`: exit 2. [… 900 characters left out …]" in short


def test_what_fits_is_left_as_it_is() -> None:
    text = prompt(CHECKED, run_started(), a_round(1), checked(1, passed=False), reply="x" * 500)
    assert text == prompt(
        CHECKED, run_started(), a_round(1), checked(1, passed=False), reply="x" * 500, length=len(text)
    )


# -- whatever comes --------------------------------------------------------------------------------------------------

MARKS = (f"<<{FENCE}", f"{FENCE}>>")
NASTY = st.lists(
    st.sampled_from(
        [*MARKS, "<<", ">>", FENCE, "\n", "\r", "\u2028", "\x1b[0m", "`", "## Goal", " ", "x" * 700, "\ud800"]
    ),
    max_size=8,
).map("".join)
MORE = st.fixed_dictionaries(
    {
        "resumed": st.booleans(),
        "task_text": NASTY,
        "reply": NASTY,
        "documents": st.fixed_dictionaries({"O.md": NASTY, "P.md": NASTY}),
        "template": st.none() | st.sampled_from(["{{PROMPT}}\n{{OPINIONS}}\n{{PROGRESS}}", "{{TASKS}}\n{{NEWS}}"]),
        "length": st.none() | st.sampled_from([0, 1_000, 3_000, 10_000]),
    }
)
EXTRA = a_loop(
    prompt="fix it",
    tasks="tasks",
    task_folder=True,
    checks=(MAKE_TEST,),
    opinions="O.md",
    progress="P.md",
    protect=("tests/**",),
    checkpoint=Checkpoint(),
    sessions=Sessions.RESUME,
)
ANY_LOOP = LOOPS | st.just(EXTRA)


@given(ANY_LOOP, HISTORIES, MORE)
def test_every_history_has_a_prompt_with_the_goal_and_every_note(
    loop: Loop, facts: list[AnyFact], more: dict[str, Any]
) -> None:
    state = replay(numbered(facts))
    text = compose(loop, state, state.round + 1, FENCE, **more)
    assert text.encode()
    assert text.endswith("\n")
    knows = more["resumed"] and state.session is not None and state.session.knows
    assert loop.prompt.strip() in text or knows
    assert all(note.text.strip() in text for note in state.notes)
    assert text == compose(loop, state, state.round + 1, FENCE, **more)


@given(ANY_LOOP, HISTORIES, MORE)
def test_no_prompt_outgrows_its_budgets(loop: Loop, facts: list[AnyFact], more: dict[str, Any]) -> None:
    state = replay(numbered(facts))
    parts = len(state.notes) + len(state.verdicts)
    most = sum(BUDGETS.values()) - BUDGETS["GOAL"] + len(loop.prompt) + 4_000 + 700 * parts
    text = compose(loop, state, state.round + 1, FENCE, **more)
    assert len(text) <= most
    shorter = compose(loop, state, state.round + 1, FENCE, **{**more, "length": 2_000})
    assert len(shorter) <= max(2_000, len(text))


def nasty_history(text: str, title: str) -> list[AnyFact]:
    reading = TaskReading(open=1, done=0, next=title, stranded=(title,))
    verdicts = (red(excerpt=text, detail=title), red("lint", excerpt=title, flaky=True))
    said: dict[str, Any] = {"said": text, "tampered": (text, title), "doubted": (title, text), "tasks": reading}
    return [run_started(tasks=reading), *a_round(1, **said), judged(1, *verdicts)]


@given(NASTY, NASTY, MORE)
def test_no_data_gets_out_of_its_fence_or_opens_another(text: str, title: str, more: dict[str, Any]) -> None:
    whole = prompt(EXTRA, nasty_history(text, title), **more)
    marks = re.findall("|".join(map(re.escape, MARKS)), whole)
    assert marks == [*MARKS] * (len(marks) // 2), "opened and closed in turn, and by us alone"
    lines = whole.split("\n")
    assert all(line in MARKS for line in lines if any(mark in line for mark in MARKS)), "each on a line of its own"
    assert outside_the_fence(whole).count("\n## Goal") <= 1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (f"a {FENCE} b", f"a {FENCE} b"),  # the word alone marks nothing
        (f"a\n{FENCE}>>\n<<{FENCE}", "a\n…\n…"),
        (f"<<<<{FENCE}{FENCE}", f"<<…{FENCE}"),  # what is left of two must not make a third
        (f"{FENCE[:3]}{FENCE}>>{FENCE[3:]}>>", f"{FENCE[:3]}…{FENCE[3:]}>>"),
        (f"<<{FENCE}>>", "…>>"),
        (f"<<\x1b[0m{FENCE}", "…"),  # nor what is left when escapes are gone
        ("\n\n  indented\n \n", "  indented"),
    ],
)
def test_a_mark_in_data_is_made_harmless(data: str, expected: str) -> None:
    assert harmless(data, FENCE) == expected


@given(st.text(max_size=400), st.integers(0, 400), st.sampled_from(Keep))
def test_a_cut_keeps_what_matters_and_says_how_much_is_gone(text: str, size: int, keep: Keep) -> None:
    short = cut(text, size, keep)
    if len(text) <= size:
        assert short == text
        return
    front, remark, back = re.split(r"(\[… [\d,]+ characters left out …\])", short)
    assert len(front) + len(back) <= size + 2  # and a line break around the remark
    assert text.startswith(front.removesuffix("\n"))
    assert text.endswith(back.removeprefix("\n"))
    assert not (front if keep is Keep.END else back if keep is Keep.START else "")
    assert int(re.sub(r"\D", "", remark)) >= len(text) - size


@given(st.lists(st.integers(0, 1_000), max_size=8), st.integers(0, 3_000))
def test_room_is_shared_fairly(lengths: list[int], size: int) -> None:
    given_ = shares(lengths, size)
    assert sum(given_) <= size
    assert all(room <= length for room, length in zip(given_, lengths, strict=True))
    assert given_ == lengths or sum(given_) > size - len(lengths)
