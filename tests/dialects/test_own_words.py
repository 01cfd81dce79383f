"""What a tool says at every end is in its own words: no other program's commands, no flags that it has not."""

import re

import pytest
from msgspec.structs import replace

from bydawn import dialects as tools
from bydawn.cli.dialects import commands, flags_of
from bydawn.core.errors import UserError
from bydawn.core.loop import SpokenDialect
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import Act, Advice, End
from bydawn.dialects import own_words
from dialects import codex_loop_made, strict_made, waylon_made
from dialects.rloop_made import LOOP, WORDS
from operations.stories import stopped

LOOPS = {
    "rloop": replace(LOOP, dialect=SpokenDialect(name="rloop", words=WORDS | {"git": "yes"})),
    "codex-autorunner": replace(LOOP, dialect=SpokenDialect(name="codex-autorunner", words=WORDS)),
    "waylon-smithers": waylon_made.smithers(),
    "codex-loop": codex_loop_made.a_project(),
    "strict-agent-loop": strict_made.a_task(),
}


def said(name: str) -> list[str]:
    """Reasons and next steps for every rule and end there is."""
    dialect, texts = tools.find(name), set[str]()
    for rule in Rule:
        for end in End:
            fact = stopped(end, rule, "it did not go on")
            steps = dialect.next_steps(LOOPS[name], LoopState(), fact)
            texts |= {dialect.reason(fact), *(step.command for step in steps), *(step.why for step in steps)}
    return sorted(texts - {""})


@pytest.mark.parametrize("name", LOOPS)
def test_next_steps_name_no_other_program_and_no_flag_that_it_has_not(name: str) -> None:
    known = flags_of(commands(name))
    for text in said(name):
        assert not re.search(r"\bbydawn\b|\brounds?\b|\bloop \d", text), text
        if text.startswith(f"{name} "):
            assert set(re.findall(r" (--[a-z-]+)", text)) <= known, text


ERRORS = [
    ("started from inside a round", "of a round", Advice("see ", Act("show", "shop"))),
    ("'a round of golf' is not a file", "without TOKEN (see --pass-env)", "give another name: --worktree=BRANCH"),
    ("no file /srv/bydawn", "nothing is in bydawn/round", "see ~/.config/bydawn/config.toml"),
    ("bydawn does not run it", "bydawn.toml says so", Advice("move it away: ", Act("doctor", "shop", repair=True))),
]


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize(("what", "cause", "hint"), ERRORS)
def test_errors_of_ours_come_in_the_words_of_the_tool(name: str, what: str, cause: str, hint: str) -> None:
    dialect, known = tools.find(name), flags_of(commands(name))
    error = UserError(what, cause=cause, hint=hint)
    own_words.retell(error, name, dialect.unit, dialect.own, {"--pass-env", "--worktree", "--repair"} - known)
    said = " · ".join((error.what, error.cause, error.hint))
    assert not re.search(r"(?<!')\ban? rounds?\b(?! of golf)|(?<!/)\bbydawn\b(?![./])|--pass-env", said), said
    if "/srv" in what:
        assert said == f"{what} · {cause} · {hint}"
    assert {*re.findall(r"(--[a-z][a-z-]*)", said)} <= known | {"--help"}, said
