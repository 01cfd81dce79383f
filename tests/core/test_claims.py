"""W-082: a structured BLOCKED section is a call for a human; the word in prose is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.claims import blocked_words, from_reply, says_nothing
from bydawn.core.outcome import Outcome
from bydawn.core.proof import ChangedTest, Proofs, explained
from core.facts_made import a_loop
from effort import MANY_PASSES, effort

BLOCKED = [
    ("# BLOCKED\nThe key is missing.", "The key is missing."),
    ("Did half.\n\n## Blocked\n\nThe key is missing.\n", "The key is missing."),
    ("## blocked:\nThe key is missing.", "The key is missing."),
    ("## BLOCKED: no key", "no key"),
    ("## Blocked — no key", "no key"),
    ("## Blocked (no key)\nAsk Ann.", "no key\nAsk Ann."),
    ("### ⛔ **BLOCKED** ###\nno key", "no key"),
    ("**BLOCKED**\n\nno key", "no key"),
    ("**BLOCKED**\nno key", "no key"),
    ("__Blocked__\nno key", "no key"),
    ("**BLOCKED:** no key", "no key"),
    ("**Blocked**: no key", "no key"),
    ("**BLOCKED: no key**", "no key"),
    ("**BLOCKED** — no key", "no key"),
    ("🚫 **BLOCKED:** no key", "no key"),
    ("BLOCKED: no key", "no key"),
    ("BLOCKED:\n\nno key", "no key"),
    ("I stopped here.\nBLOCKED: no key", "no key"),
    ("BLOCKED: no key\r\nAsk Ann.\r\n", "no key\nAsk Ann."),
    # the section's own words
    ("# BLOCKED\n- no   key\n- no network\n\nNext: ask.", "- no key\n- no network\nNext: ask."),
    ("## BLOCKED\nno key\n### Next steps\n1. ask\n## Done\nhalf", "no key\nNext steps\n- ask"),
    ("## BLOCKED\nno key\n# Summary\nhalf", "no key"),
    ("**BLOCKED**\nno key\n\n###### Summary\nhalf", "no key"),
    ("## BLOCKED\n```\nHTTP 401\n```\n<!-- hm -->\nno key <!-- hm -->", "HTTP 401\nno key"),
    ("STATUS: blocked\nBLOCKED: no key\nSUMMARY: half", "no key"),
    ("BLOCKED: no key\n\nSTATUS: blocked", "no key"),
    ("## BLOCKED\nno key\n\n```\nSTATUS: blocked\n```", "no key"),
    # a "no" that is a reason
    ("BLOCKED: No key for the API", "No key for the API"),
    ("BLOCKED: nothing works without the network", "nothing works without the network"),
    ("BLOCKED: No blockers except the missing key", "No blockers except the missing key"),
    ("BLOCKED: none of the hosts answers", "none of the hosts answers"),
    ("## Blocked\nNone\n\n## BLOCKED\nno key", "no key"),
]
NOT_BLOCKED = [
    "",
    "Done.",
    "I was blocked for a while, then it worked.",
    "Blocked for a while.",
    "The hook BLOCKED: the commit.",
    "It said BLOCKED: no key, so I made one.",
    "## Not blocked\nAll is well.",
    "## Blocked users\nThe list works.",
    "## Blocked-user list\nDone.",
    "## Unblocked\nAll is well.",
    "## ~~Blocked~~\nno key",
    "~~BLOCKED: no key~~",
    "**Blocked** users can be listed.",
    "`BLOCKED: no key`",
    "## `BLOCKED`\nis a constant.",
    "```\nBLOCKED: no key\n```",
    "~~~\n# BLOCKED\nno key",
    "    BLOCKED: no key",
    "> BLOCKED: no key",
    "> ## BLOCKED\n> no key",
    "- BLOCKED: no key",  # an item of a report, perhaps on another task
    "| BLOCKED: |\n|---|\n| no key |",
    "<!-- BLOCKED: no key -->",
    "blocked: no key",
    # nothing is
    "BLOCKED: none",
    "BLOCKED: None.",
    "BLOCKED: nothing",
    "BLOCKED: no",
    "BLOCKED: n/a",
    "BLOCKED: N/A",
    "BLOCKED: -",
    "BLOCKED: 0",
    "BLOCKED: not blocked",
    "BLOCKED: No blockers at this time.",
    "BLOCKED: none\n\nAll tests pass.",
    "BLOCKED: none - all tests pass",
    "**BLOCKED:** none",
    "**BLOCKED: none**",
    "## Blocked\n\nNothing.\n\nNext I would add docs.",
    "## Blocked\n- None",
    "## Blocked (none)",
    "## BLOCKED: resolved",
    # no words
    "## Blocked\n\n## Next steps\nship it",
    "BLOCKED:",
    "**BLOCKED**",
    "BLOCKED:\nSTATUS: in-progress",
]


@pytest.mark.parametrize(("reply", "words"), BLOCKED)
def test_a_section_that_says_blocked_is_heard_in_its_own_words(reply: str, words: str) -> None:
    assert blocked_words(reply) == words


@pytest.mark.parametrize("reply", NOT_BLOCKED)
def test_prose_code_quotes_and_sections_that_say_nothing_are_not_a_call(reply: str) -> None:
    assert blocked_words(reply) is None


@pytest.mark.parametrize(
    "words", ["", "  ", "none", "NONE!", "- none", "n/a (all done)", "No, nothing.", "Not blocked"]
)
def test_words_that_mean_nothing(words: str) -> None:
    assert says_nothing(words)


def test_a_long_section_is_cut() -> None:
    words = blocked_words("# BLOCKED\n" + "no key, " * 1_000)
    assert words is not None
    assert len(words) == 1_000
    assert words.endswith("…")


@pytest.mark.parametrize(
    "reply",
    [
        "BLOCKED: " + "a" * 1_000_000,
        "BLOCKED: none\n\n" * 60_000,
        "## Blocked\n" * 80_000,
        "*" * 1_000_000 + "BLOCKED",
        "# " + "*" * 1_000_000 + "BLOCKED",
        "BLOCKED: " + "- " * 500_000,
        "BLOCKED: no" + " " * 1_000_000 + "x",
        "> " * 500_000 + "BLOCKED: a",
        "\0" * 1_000_000,
    ],
)
def test_a_hostile_reply_is_read_quickly_and_never_raises(reply: str) -> None:
    assert effort(lambda: blocked_words(reply)) < MANY_PASSES


def test_of_an_endless_reply_the_end_is_read() -> None:
    assert blocked_words("words\n\n" * 50_000 + "BLOCKED: no key") == "no key"


@given(st.text(alphabet="BLOCKED:#*> \n-`~ano", max_size=60))
def test_whatever_is_heard_was_said(reply: str) -> None:
    words = blocked_words(reply)
    assert words is None or (words.strip() and "blocked" in reply.lower())


# -- reasons for changed tests -----------------------------------------------------------------------------------------

PATH = "tests/test_app.py"


@pytest.mark.parametrize(
    "section",
    [
        f"- {PATH}: the greeting is hello now",
        f"- `{PATH}` — the greeting is hello now",
        f"* **{PATH}**: the greeting is hello now",
        "- tests/: the greeting is hello now",
        "- test_*.py, other.py: the greeting is hello now",
        f"{PATH}: renamed",
        f"{PATH}：改名",
        f"- {PATH}\n  - the greeting is hello now",
        f"- {PATH}\n\n  The greeting is hello now.",
        f"- [{PATH}]({PATH}): the greeting is hello now",
        f"- {PATH} (2 assertions): the greeting is hello now",
        f"- Changed {PATH}: the greeting is hello now",
        f"- {PATH}:5: the greeting is hello now",
        f"| File | Why |\n|---|---|\n| {PATH} | the greeting is hello now |",
        f"I updated {PATH} because the greeting is hello now.",
        f"- `test_hello` in {PATH}: the greeting is hello now",
    ],
)
def test_a_reason_is_read_in_the_forms_in_which_agents_write_it(section: str) -> None:
    claims = from_reply(f"Done.\n\n## Changed tests\n\n{section}\n\n## Notes\nmore", Outcome.OK, a_loop())
    assert [each for each in claims.reasons if each.covers(PATH)]
    assert not [each for each in claims.reasons if each.covers("src/app.py")]


@pytest.mark.parametrize("section", ["None.", f"- {PATH}", "- none", f"{PATH}:"])
def test_a_name_without_a_word_is_no_reason(section: str) -> None:
    claims = from_reply(f"Done.\n\n## Changed tests\n\n{section}\n", Outcome.OK, a_loop())
    assert claims.reasons == ()


def test_who_was_asked_may_answer_without_naming_the_files_again() -> None:
    asked = Proofs(unexplained=(ChangedTest(path=PATH, form="1"),))
    claims = from_reply("## Changed tests\n\nThe greeting has changed everywhere.", Outcome.OK, a_loop())
    assert explained(asked, claims.reasons, answered=True).insisted == ()
    assert not [each for each in claims.reasons if each.covers(PATH)]
