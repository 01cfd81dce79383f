"""An act is a value: written as a command where it is shown, and never taken apart again."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.values import Act, Advice, git, quoted, written


@pytest.mark.parametrize(
    ("act", "command"),
    [
        (Act("resume", "night"), "bydawn resume night"),
        (Act("tell", "night@shop", "…"), 'bydawn tell night@shop "…"'),
        (Act("tasks skip", "night", "3", "4"), "bydawn tasks skip night 3 4"),
        (Act("show", "night", round=3), "bydawn show night --round 3"),
        (Act("resume", "night", accept=True, C="/w x", d=True), "bydawn resume night --accept -C '/w x' -d"),
        (
            Act("resume", "x", flags={"max-no-change": "+5"}, budget=["+1usd", "+1Mtok"]),
            "bydawn resume x --max-no-change +5 --budget +1usd --budget +1Mtok",
        ),
        (Act("logs", "", f=False, round=None, C=""), "bydawn logs"),
        (Act("skip", "a b", program="codex-loop"), "codex-loop skip 'a b'"),
    ],
)
def test_an_act_is_written_as_its_command(act: Act, command: str) -> None:
    assert act == command
    assert f"{act.program} {act.words}" == command


def test_an_act_keeps_its_parts() -> None:
    act = Act("tasks skip", "night", "3", force=True)
    assert (act.program, act.verb, act.loop, act.names) == ("bydawn", "tasks skip", "night", ("3",))
    assert act.flags == (("force", ""),)


@given(st.text())
def test_a_shell_reads_every_word_as_it_was_given(word: str) -> None:
    assert shlex.split(quoted(word)) == ([word] if word else [])


def test_advice_names_its_acts_as_the_reader_has_to_type_them() -> None:
    act = Act("stop", "night")
    advice = Advice("end it: ", act, ", or ", Advice("wait; see ", Act("why", "night")))
    assert advice == "end it: `bydawn stop night`, or wait; see `bydawn why night`"
    ours = written(advice, lambda each: f"scripts/{each}" if each.verb == "stop" else each)
    assert ours == "end it: `scripts/bydawn stop night`, or wait; see `bydawn why night`"
    assert written("a `bydawn stop x` that someone quotes", lambda _: "") == "a `bydawn stop x` that someone quotes"
    assert (advice + "!").parts == (*advice.parts, "!")


def test_a_command_of_git_names_its_folder_where_that_is_another() -> None:
    assert git("", "status") == "git status"
    assert git("/w x", "log", "--stat") == "git -C '/w x' log --stat"
