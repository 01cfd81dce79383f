"""W-052, R-001, R-014, R-015, X-04: a promise is believed when it is given, and never when it is mentioned."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core import promise as promise_module
from bydawn.core.loop import Match, Mode, Promise
from bydawn.core.promise import TooSlow, is_possible, judge
from bydawn.core.text import left_out_line
from bydawn.core.values import Promised

T = "<promise>TASK_COMPLETE</promise>"
TAG = Promise()
LINE = Promise(text="ALL DONE", mode=Mode.LINE)


def searches(pattern: str, text: str) -> int | None:
    """The real one runs in a child with a time limit; the rule is the same."""
    ends = [found.end() for found in re.finditer(pattern, text, re.MULTILINE) if found[0].strip()]
    return ends[-1] if ends else None


def never_asked(pattern: str, text: str) -> int | None:
    raise AssertionError(f"asked for {pattern!r} on {text!r}")


# ---------------------------------------------------------------- given

GIVEN = [
    T,
    f"\n\n  {T}  \n\n",
    f"All done.\n{T}",
    f"All done.\r\n\r\n{T}\r\n",
    f"Done. {T}",
    f"Done.{T}",
    f"**{T}**",
    f"***{T}***",
    f"_{T}_",
    f"**{T}.**",
    f"{T}.",
    f"{T}!",
    f"{T}!!",
    f"# {T}",
    f"✅ All tasks complete! {T}",
    f"You told me not to print {T} too early. Now everything is green.\n\n{T}",  # a mention, then the deed
    # plain English in front of it, list and heading marks, emphasis, emoji
    f"All tests pass {T}",
    f"**Done: {T}**",
    f"Completed: {T}",
    f"I've finished everything, and all 42 tests pass: {T}",
    f"Everything is finished — {T}",
    f"Here it is: {T}",
    f"Every box is ticked, {T}",
    f"Done… {T}",
    f"Output: {T}",
    f"Completion promise: {T}",
    f"Nothing is left that is not done. {T}",
    f"No errors, nothing left to do: {T}",
    f"I fixed `parse()` and its callers. Final status: complete {T}",
    f"✅ {T}",
    f"{T} ✅",
    f"Task complete. {T} ✅",
    f"- {T}",
    f"* {T}",
    f"12. {T}",
    f"- [x] {T}",
    f"Done.\n- {T}",
    f"- All tests pass\n\n  {T}",
    f"## Result\n{T}",
    f"### ✅ All tasks complete\n\n{T}",
    f"## Alles erledigt.\n\n{T}",  # in another language, a whole sentence
    # lead-ins without a word of doubt
    f"Here it is:\n\n{T}",
    f"Result:\n{T}",
    f"All of it is done,\n{T}",
    f"All of it is done –\n\n{T}",
    f"All of it is done …\n\n{T}",
    f"All of it is done 👉\n{T}",
    f"- All of it is done:\n{T}",
    f"Result:\nAll of it is done. {T}",
    f"Result:\n- {T}",
    # a summary behind it
    f"{T}\n\nI also cleaned up a little.",  # part C: promise, then more text
    f"{T}\n\n## Summary\n\n- Added a retry when the server is down\n- `api.py`: waits until it is up\n- All pass",
    f"All done {T}\n\nLet me know if anything is missing.",
    f"{T}\n\nOpen: nothing",
    f"{T}\n\nOptional, for later:\n- what to do if a login fails",
    f"Fertig.\n\n{T}\n\nMelde dich, wenn du noch etwas brauchst.",
    f"{T}\n\n---",
    f"{T}\n===",
    # a "no" that is not about the promise
    f"All tests pass, nothing is left to do. {T}",
    f"No tests fail. {T}",
    f"No tests fail, no task is open\n{T}",
    f"I could not find anything else to fix. {T}",
    f"The server does not retry when the token is expired.\n\n{T}",
    f"**The cache is not used any more.** {T}",
    f"42 passed, 3 skipped, 0 pending\n{T}",
    f"Every box in TODO.md is ticked\n{T}",
    f"Migrated to Next.js 15\n{T}",
    f"Everything behaves as expected\n{T}",
    f"All green in `pytest`\n{T}",
    f'I ran "make test"\n{T}',
    f"Done.\n42 files of the parser moved\n{T}",  # a line that is no sentence
    f"The example in the docs is not red any more.\n{T}",
    f"Docs: an example of each error\n{T}",
    # lead-ins that lead in to something else
    f"Summary:\n- parser\n- tests\n\n{T}",
    f"Once the tests passed I looked again:\n\n```\nall green\n```\n\n{T}",  # it leads in to the code
    f"```python\nif done:\n```\n{T}",  # a colon in code leads in to nothing
    # Markdown takes the last line for a part of the last item; nobody reads it so
    f"- added a retry if the server says 503\n- do not log secrets\n{T}",
    f"1. one\n   - wait when idle\n{T}",
    # code and quotes that have ended
    f"```\n$ pytest\n42 passed\n```\n{T}",
    f"~~~\nx\n~~~\n\n{T}",
    f"> do not stop\n\n{T}",
    f"<!-- note -->\n\n{T}",
    f"    indented code\n\n{T}",
    f"Wrapped\n    {T}",  # four spaces inside a paragraph are no code
    f"{T}\n\nAnd again for the loop.\n\n{T}",  # part C: two tags
    f"All done! 🎉 {T}",
    f"- Build: ✅\n- Tests: ✔️\n\n{T}",  # the colon leads in to the tick
    f"सब पूरा है।\n{T}।",
    f"Everything works (all of it). {T}",
    f"He calls it “ready.” {T}",
    # other languages
    f"Alles erledigt, es ist nichts mehr offen. {T}",
    f"Les tests ne passaient pas. Maintenant oui ! {T}",
    f"全部完成！{T}",
    f"सब काम पूरा हो गया है। {T}",
    f"以前还没通过。现在全部完成。{T}",
]


@pytest.mark.parametrize("reply", GIVEN)
def test_a_promise_at_the_end_is_given(reply: str) -> None:
    assert judge(reply, TAG, never_asked) is Promised.GIVEN


# ---------------------------------------------------------------- mentioned

NOT_AT_THE_END = [
    f"{T} is what I would print.",
    f"I cannot output {T} because tasks remain",  # R-001, the bug of the original
    f"Is it {T}?",
    f"{T}?",
    f"{T}...",
    f"{T}…",
    f"{T} (not yet)",
    f"{T}<!-- not really -->",
    f"Done{T}bye",
    f"{T}, as promised",
    f"{T} ❌",
    f"El trabajo sigue. {T}\n\nContinúo mañana.",  # in front of a summary, a sentence is a part of the text
    f"{T}\n\nThe docs are left, and I have not run the tests.",
    f"{T}\n\nAdded the parser, but not its tests.",
    f"{T}\n\nRan the tests: 2 failed.",
    f"{T}\n\n## Open\n\n- docs",
]
IN_CODE_OR_QUOTES = [
    f"`{T}`",  # backticks
    f"Done: `{T}`",
    f"``{T}``.",
    f"```\n{T}\n```",
    f"```\n{T}",  # the fence was never closed
    f"~~~~\n~~~\n{T}",  # too short to close it
    f"```\n```python\n{T}",  # a fence with a language closes nothing
    f"- item\n\n  ```\n  {T}",
    f"Text\n\n    {T}",
    f"Text\n\n\t{T}",
    f"- item\n\n      {T}",  # indented code inside an item
    f"> {T}",
    f"> quoted\n{T}",  # Markdown reads this line as part of the quote
    f"> - {T}",
    f"- > {T}",
    f"<!--\n{T}",
    f"<!-- {T}",
    f"Done <!-- {T}",
    f"<pre>\n\n{T}",
    f"<blockquote>\n{T}",
    f"<details>\n<summary>Log</summary>\n{T}",
    f"~~{T}~~",
    f"~{T}~",
    f"~~Done. {T}~~",
    f"~~ {T}",  # forgot to close it
    f'"{T}"',
    f"“{T}”.",
    f"'{T}'",
    f'He said "{T}',
    f"({T})",
    f"Done ({T}",
    f"« {T}",
    f"[{T}](https://example.org)",
    f"[^1]: {T}",
    f"Done.\n\n[a]: {T}",  # a link definition is invisible
    f"- [ ] {T}",
    f"| state | {T} |",
    f"state | {T}",
    f"<b>{T}</b>",
    f"<del>Done {T}",
    f"<promise>OTHER</promise> {T}",  # a choice is no promise
]
NEGATED = [
    f"I cannot say {T}",  # cannot, can't, won't, will not, do not, don't
    f"I can't give {T}",
    f"I can’t give {T}",
    f"I canʼt give {T}",
    f"I won't give {T}",
    f"I will not give {T}",
    f"I do not give {T}",
    f"I don't give {T}.",
    f"I dont give {T}",
    f"I CANNOT give **{T}**",
    f"I do **not** give {T}",
    f"I do _not_ give {T}",
    f"I can**not** give {T}",
    f"Never {T}",
    f"Unable to finish: {T}",
    f"There is no {T}",
    f"No {T}",
    f"Ending without {T}",
    f"I am withholding {T}",
    f"I stop here instead of {T}",
    f"Incomplete: {T}",
    f"❌ {T}",
    f"I ran the tests. I cannot confirm {T}",
    f"I cannot give\nthe completion promise\n{T}",  # one sentence, wrapped
    f"- I cannot give the promise\n  {T}",
    f"I cannot... {T}",  # trailing off does not end the sentence
    f"I can\u200bnot give {T}",  # zero width
    f"I can\u00adnot give {T}",  # soft hyphen
    f"\u202eI do n\u2060ot give\u202c {T}",  # bidi override, word joiner
    f"I can\ufe0fnot give {T}",  # variation selector
    f"I do\u00a0not give {T}",
    f"I cannot give {' ' * 9_000}{T}",  # far away on the screen, near in the sentence
    f"I cannot give {chr(0x200B) * 9_000}{T}",
    f"Ich kann noch nicht sagen: {T}",
    f"Je ne peux pas dire {T}",
    f"No puedo escribir {T}",
    f"我不能输出 {T}",
]
POSTPONED_OR_CONDITIONED = [
    f"Not yet: {T}",
    f"Once tests pass I will print: {T}",
    f"When the build is green, then {T}",
    f"If all is well: {T}",
    f"After review, {T}",
    f"Until then: {T}",
    f"Before I say {T}",
    f"I would say {T}",
    f"I'd say {T}",
    f"I should later say {T}",
    f"I will say {T}",
    f"I'll say {T}",
    f"I am going to say {T}",
    f"Tomorrow: {T}",
    f"Almost there: {T}",
    f"Waiting for review: {T}",
    f"Unless you object, {T}",
    f"Sobald alles grün ist: {T}",
    f"Wenn die Tests laufen, {T}",
]
SPOKEN_OF = [
    f"The token is {T}",
    f"The last line has to be {T}",
    f"You asked me to finish with {T}",
    f"To finish, print {T}",
    f"Please print {T}",
    f"Print {T}",
    f"Signal completion by printing {T}",
    f"Remember: {T}",
    f"Either go on or {T}",
    f"There are ways to say so, e.g. {T}",  # the dots of "e.g." end no sentence
    f"TODO: {T}",
    f"For reference: {T}",
]
IN_A_SENTENCE = [
    f"I hereby print {T}",
    f"Everything in the parser is rewritten: {T}",  # not only words that such lines are made of
    f"The tests: {T}",  # … and none that says it is done
    f"Is all of it done? {T}",
    f"Is all of it done?\n\n{T}",
    f"Complete all tasks: {T}",
    f"B. {T}",
    f"Done. {T} {T}",  # twice in that line
    f"{T}{T}",
    f"# {T}\n\n{T}",
    f"Fertig: {T}",
    f"## Ergebnis\n\n{T}",
    f"1. All tests pass\n2. {T}",  # the last item of a longer list
    f"- All tests pass\n- {T}",
    f"- {T}\n- Docs are updated",
    f"0 tests pass {T}",
    f"Passed: 0, {T}",
    f"Tests done: 3 of 5 {T}",
    f"Status: 90 % {T}",
    f"Not all tests pass. {T}",
]
LED_IN = [
    f"I will now output the completion promise:\n\n{T}",
    f"The completion token is:\n\n{T}",
    f"Two tests are red. Then I end with\n\n{T}",  # it breaks off in a sentence that is not its first
    f"Zbývá opravit dva testy. Potom odpověď zakončím řádkem\n\n{T}",
    f"Wenn die Tests grün sind, ende ich mit\n\n{T}\n\nNoch laufen sie.",
    f"Once tests pass I will print:\n\n{T}",
    f"Once tests pass I will print:\n{T}",
    f"**Once tests pass I will print:**\n\n{T}",
    f"Once tests pass I will print:\u200b\n\n{T}",
    f"Once tests pass I will print:\n\n\u200b\n\n{T}",  # an invisible paragraph in between
    f"Once tests pass I will print:\n\n---\n\n{T}",
    f"Once tests pass I will print：\n\n{T}",  # full-width colon
    f"Once tests pass I will print 👇\n\n{T}",
    f"Once the tests pass on every platform I\nprint:\n\n{T}",  # a lead-in that is wrapped
    f"# I cannot say this yet:\n\n{T}",
    f"I can’t print this:\n\n{T}",
    f"- I cannot print:\n{T}",
    f"When done, print exactly:\n\n{T}",  # an echoed prompt
    f"Output exactly this line:\n\n{T}",
    f"Next steps:\n\n1. Fix the tests\n2. {T}",  # the lead-in of a whole list
    f"Remaining:\n- fix the tests\n- {T}",
    f"To do:\n- {T}",
    f"If green:\n- run it\n  - {T}",
]


@pytest.mark.parametrize(
    "reply",
    [
        *NOT_AT_THE_END,
        *IN_CODE_OR_QUOTES,
        *NEGATED,
        *POSTPONED_OR_CONDITIONED,
        *SPOKEN_OF,
        *IN_A_SENTENCE,
        *LED_IN,
    ],
)
def test_a_promise_that_is_not_meant_is_only_mentioned(reply: str) -> None:
    assert judge(reply, TAG, never_asked) is Promised.MENTIONED


@pytest.mark.parametrize(
    "reply", [reply for reply in (*NEGATED, *POSTPONED_OR_CONDITIONED, *SPOKEN_OF) if not reply.startswith("- ")]
)
def test_words_of_doubt_are_heard_where_the_form_says_nothing(reply: str) -> None:
    """The token is a line of its own there, below a sentence that has not ended."""
    before, _, behind = reply.rpartition(T)
    unfinished = before.rstrip(" \n:,*\u200b")
    assert judge(f"{unfinished}\n{T}{behind.strip('*')}", TAG, never_asked) is Promised.MENTIONED


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ("0 of 5 pass", Promised.MENTIONED),
        ("3 of 5 tests pass", Promised.MENTIONED),
        ("3/5 tests are green", Promised.MENTIONED),
        ("41 out of 42 checks passed", Promised.MENTIONED),
        ("3 failed", Promised.MENTIONED),
        ("39 passed, 3 failed", Promised.MENTIONED),
        ("12 tests still fail", Promised.MENTIONED),
        ("1 error", Promised.MENTIONED),
        ("Failures: 2", Promised.MENTIONED),
        ("0 failed", Promised.GIVEN),
        ("42 passed, 0 failed", Promised.GIVEN),
        ("10 failed: 0", Promised.MENTIONED),
        ("3 of 3 pass", Promised.GIVEN),
        ("42/42 tests are green", Promised.GIVEN),
        ("Failures: 0", Promised.GIVEN),
        ("Tested with 1.3 failed logins a second", Promised.GIVEN),
        ("3 tests failed earlier, and all pass now", Promised.GIVEN),
        ("Fixed 3 errors", Promised.GIVEN),
    ],
)
@pytest.mark.parametrize("layout", ["{}. {T}", "{}\n{T}", "{}.\n\n{T}", "All is well.\n- {}\n\n{T}"])
def test_figures_of_failure_are_heard_right_above(layout: str, figures: str, expected: Promised) -> None:
    assert judge(layout.format(figures, T=T), TAG, never_asked) is expected


def test_a_line_that_we_left_out_casts_no_doubt() -> None:
    remark = left_out_line(9_000_000)
    assert judge(f"Done.\n{remark}\n{T}", TAG, never_asked) is Promised.GIVEN
    assert judge(f"{T}\n{remark}", TAG, never_asked) is Promised.GIVEN


# ---------------------------------------------------------------- absent

ABSENT = [
    "",
    "\n \r\n\t",
    "TASK_COMPLETE",  # part C: the bare word
    "Done.",
    "<promise>task_complete</promise>",  # case matters
    "<promise>TASK_COMPLETE </promise>",
    "<promise>TASK\u200b_COMPLETE</promise>",  # an invisible character inside
    "<promise>ТASK_COMPLETE</promise>",  # the first letter is Cyrillic
    "＜promise＞TASK_COMPLETE＜/promise＞",
    "&lt;promise&gt;TASK_COMPLETE&lt;/promise&gt;",
    "<promise>\nTASK_COMPLETE\n</promise>",
    "<promise>TASK_COMPLETE",
    "<promise>OTHER</promise>",
]


@pytest.mark.parametrize("reply", ABSENT)
def test_what_only_resembles_the_promise_is_absent(reply: str) -> None:
    assert judge(reply, TAG, never_asked) is Promised.ABSENT


@pytest.mark.parametrize("mode", Mode)
def test_a_promise_without_text_is_never_given(mode: Mode) -> None:
    assert judge("anything\n<promise></promise>", Promise(text=" ", mode=mode), never_asked) is Promised.ABSENT


# ---------------------------------------------------------------- other texts and modes

PRINTABLE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=30).filter(
    str.strip
)


@given(PRINTABLE)
def test_the_text_is_taken_literally_whatever_it_contains(text: str) -> None:
    chosen = Promise(text=text)
    assert judge(f"All done.\n\n{chosen.token}", chosen, never_asked) is Promised.GIVEN
    assert judge(f"I cannot say {chosen.token}", chosen, never_asked) is Promised.MENTIONED
    assert judge(f"{chosen.token} is missing", chosen, never_asked) is Promised.MENTIONED
    assert judge("<promise>.*</promise>", Promise(text=f"{text}+"), never_asked) is Promised.ABSENT


def test_a_text_that_sounds_like_a_refusal_does_not_negate_itself() -> None:
    chosen = Promise(text="WILL NOT CONTINUE. If you wait: no")
    assert judge(f"Done. {chosen.token}", chosen, never_asked) is Promised.GIVEN


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("ALL DONE", Promised.GIVEN),
        ("Fine.\r\n  ALL DONE \r\n", Promised.GIVEN),
        ("Fine.\rALL DONE\r", Promised.GIVEN),  # old Mac line ends
        ("- tests pass\nALL DONE", Promised.GIVEN),
        ("ALL DONE.", Promised.MENTIONED),  # the line equals the text, nothing less
        ("**ALL DONE**", Promised.MENTIONED),
        ("We are ALL DONE", Promised.MENTIONED),
        ("ALL DONE\n\nCommitted.", Promised.GIVEN),  # a summary
        ("ALL DONE\nbye", Promised.MENTIONED),  # the sentence goes on
        ("```\nALL DONE", Promised.MENTIONED),
        ("Code:\n\n    ALL DONE", Promised.MENTIONED),
        ("> a\nALL DONE", Promised.MENTIONED),
        ("I cannot say\nALL DONE", Promised.MENTIONED),
        ("Once it is green I will print:\n\nALL DONE", Promised.MENTIONED),
        ("ALL DONENESS", Promised.ABSENT),  # part of another word
        ("all done", Promised.ABSENT),
    ],
)
def test_in_line_mode_the_last_line_equals_the_text(reply: str, expected: Promised) -> None:
    assert judge(reply, LINE, never_asked) is expected


@pytest.mark.parametrize("text", ["<done/>", "<!-- DONE -->", "# DONE", "=== done ===", "[done]: yes"])
def test_a_line_may_look_like_markup_if_its_owner_wants_so(text: str) -> None:
    chosen = Promise(text=text, mode=Mode.LINE)
    assert judge(f"Fine.\n\n{text}", chosen, never_asked) is Promised.GIVEN


@pytest.mark.parametrize(
    ("pattern", "reply", "expected"),
    [
        (r"DONE \d+", "Fine.\nDONE 12", Promised.GIVEN),
        (r"DONE \d+", "**DONE 12**.", Promised.GIVEN),
        (r"^DONE$", "Fine.\nDONE\nBye.", Promised.GIVEN),  # edges are those of a line
        (r"DONE", "We are DONE and more", Promised.GIVEN),
        (r"DONE", "DONE\nMore.", Promised.GIVEN),
        (r"DONE\nMORE", "DONE\nMORE", Promised.GIVEN),
        (
            r"Tests: \d+ passed",
            "## Ergebnis\n- Tests: 3 passed\n- Docs",
            Promised.GIVEN,
        ),  # the form is up to the pattern
        (r"DONE", "ABANDONED", Promised.GIVEN),
        (r"DONE", "done", Promised.ABSENT),
        (r"DONE", "```\nDONE", Promised.MENTIONED),
        (r"DONE", "> DONE", Promised.MENTIONED),
        (r"DONE", "- [ ] DONE", Promised.MENTIONED),
        (r"DONE", "If it is green I print:\nDONE", Promised.MENTIONED),
        (r"DONE", "I am not DONE", Promised.MENTIONED),
        (r"DONE", "It is DONE, but two tests fail", Promised.MENTIONED),
        (r"DONE", "DONE\n\nActually, two tests fail.", Promised.MENTIONED),
        (r".*DONE", "All work DONE", Promised.GIVEN),
        (r".*DONE", "I am not DONE", Promised.MENTIONED),
        (r"(?s).*DONE.*", "I am not DONE.", Promised.MENTIONED),
        (r"I will not go on: DONE", "I will not go on: DONE", Promised.GIVEN),  # the pattern itself says so
    ],
)
def test_a_pattern_is_searched_and_its_sentence_must_not_take_it_back(
    pattern: str, reply: str, expected: Promised
) -> None:
    """W-052, X-04"""
    assert judge(reply, Promise(text=pattern, mode=Mode.REGEX), searches) is expected


@pytest.mark.parametrize("match", Match)
def test_a_pattern_is_searched_once_in_the_last_64_kilobytes(match: Match) -> None:
    """W-023: each search is a child process."""
    asked: list[int] = []

    def record(_pattern: str, text: str) -> int | None:
        asked.append(len(text))
        return searches(_pattern, text)

    chosen = Promise(text="DONE", mode=Mode.REGEX, match=match)
    assert judge("DONE\n" + "line\n" * 50_000, chosen, record) is Promised.ABSENT
    assert judge("line\n" * 50_000 + "DONE", chosen, record) is Promised.GIVEN
    assert asked == [65_536, 65_536]


def test_a_pattern_that_runs_out_of_time_says_neither_yes_nor_no() -> None:
    def endless(_pattern: str, text: str) -> int | None:
        raise TooSlow(text)

    with pytest.raises(TooSlow, match="aaab"):
        judge("Fine.\naaab", Promise(text="(a+)+", mode=Mode.REGEX), endless)


# ---------------------------------------------------------------- told that it was a mention


@pytest.mark.parametrize(
    "reply",
    [
        f"`{T}`",
        f"Done: `{T}`",
        f"All done.\n\n```text\n{T}\n```",
        f"I hereby print {T}",
        f"With this the parser is rewritten: {T}",
        f"I will now output the completion promise:\n\n{T}",
        f"- The parser is there\n- All tests pass\n- {T}",
        f"## Everything in the parser is rewritten\n{T}",
    ],
)
def test_once_told_the_same_form_is_meant(reply: str) -> None:
    assert judge(reply, TAG, never_asked) is Promised.MENTIONED
    assert judge(reply, TAG, never_asked, told=True) is Promised.GIVEN


@pytest.mark.parametrize("reply", GIVEN)
def test_what_counts_at_once_counts_for_an_agent_that_was_told(reply: str) -> None:
    assert judge(reply, TAG, never_asked, told=True) is Promised.GIVEN


@pytest.mark.parametrize(
    "reply",
    [
        *NOT_AT_THE_END,
        *(reply for reply in NEGATED if "\n" not in reply),
        *POSTPONED_OR_CONDITIONED,
        f"Once the tests pass I print:\n\n```\n{T}\n```",
        f"> {T}",
        f"~~{T}~~",
        f"<!-- {T} -->",
        f"- [ ] {T}",
        f"Remaining:\n- fix the tests\n- {T}",
        f"1. Fix the tests\n2. {T}",
        f"Is it `{T}`?",
        f"No tests pass: {T}",
        f"The result is false: {T}",
        f"Odmawiam napisania {T}",  # in another language, nobody knows what the words say
        f"Zwei Tests sind rot, die Zeile lautet also:\n\n{T}",
    ],
)
def test_a_refusal_is_none_the_less_for_being_repeated(reply: str) -> None:
    assert judge(reply, TAG, never_asked, told=True) is Promised.MENTIONED


# ---------------------------------------------------------------- what nobody could ever give


@pytest.mark.parametrize(
    ("text", "modes"),
    [
        ("ALL DONE", "tag plain line"),
        ("ALL\nDONE", ""),
        ("ALL\rDONE", ""),
        ("DONE\n", "plain line"),  # blanks around it do not count there
        (" DONE ", "tag plain line"),
        ("    DONE", "tag plain line"),  # it would be code, but nobody has to write those blanks
        ("\u200b", "tag"),
        ("DONE\u200b", "tag line"),
        ("> DONE", "tag"),  # a quote
        ("```", "tag"),  # code
        ("---", "tag"),
        ("# DONE", "tag plain line"),
        ("- not done", "tag plain line"),
        ("<done/>", "tag plain line"),
    ],
)
@pytest.mark.parametrize("match", [Match.END, Match.OWN_LINE])
def test_a_promise_is_possible_if_somebody_can_give_it(text: str, modes: str, match: Match) -> None:
    can = [
        mode for mode in (Mode.TAG, Mode.PLAIN, Mode.LINE) if is_possible(Promise(text=text, mode=mode, match=match))
    ]
    assert " ".join(can) == modes


def test_a_substring_may_have_two_lines() -> None:
    assert is_possible(Promise(text="ALL\nDONE", match=Match.ANYWHERE))


@pytest.mark.parametrize(
    ("pattern", "possible"),
    [
        (r"DONE \d+\s*", True),
        ("ALL\nDONE", True),
        ("DONE\n", True),
        (" DONE", True),
        ("^DONE$", True),
        ("x*^DONE$", True),
        ("(?:READY$|DONE)", True),
        (r"\$5", True),
        ("DONE$\n^READY", True),
        ("x^DONE", False),
        ("DONE$ now", False),
        ("^$", False),  # it matches, but nothing
        (r"\b", False),
        (r"\s*", False),
        ("DONE\0", False),
    ],
)
def test_a_pattern_is_refused_only_where_no_words_could_match(pattern: str, possible: bool) -> None:
    assert is_possible(Promise(text=pattern, mode=Mode.REGEX)) is possible
    replies = ("ALL\nDONE", "x DONE", "DONE 1", "DONE\nREADY", "costs $5", "DONE now")
    assert possible is any(searches(pattern, reply) is not None for reply in replies)


# ---------------------------------------------------------------- other matches; the corpus has more of them


def test_the_end_of_a_reply_is_where_a_promise_counts_unless_somebody_says_otherwise() -> None:
    """X-04"""
    assert Promise().match is Match.END


@pytest.mark.parametrize("match", Match)
def test_a_line_of_its_own_above_the_end_counts(match: Match) -> None:
    """R-014, X-04"""
    assert judge(f"All green.\n\n{T}\n\nCommitted.", Promise(match=match), never_asked) is Promised.GIVEN


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (Match.END, Promised.MENTIONED),
        (Match.OWN_LINE, Promised.MENTIONED),
        (Match.ANYWHERE, Promised.GIVEN),
    ],
)
def test_a_promise_that_is_taken_back_is_only_a_substring(match: Match, expected: Promised) -> None:
    """W-052, R-014: the literal substring is for those who ask for it by name."""
    reply = f"{T}\n\nActually, wait, tests still fail."
    assert judge(reply, Promise(match=match), never_asked) is expected


@pytest.mark.parametrize("refusal", ["cannot", "can't", "won't", "will not", "do not", "don't"])
def test_a_refusal_around_a_line_of_its_own_is_heard(refusal: str) -> None:
    """R-015"""
    own_line = Promise(match=Match.OWN_LINE)
    assert judge(f"I {refusal} print:\n\n{T}\n\nBye.", own_line, never_asked) is Promised.MENTIONED
    assert judge(f"{T}\n\nI {refusal} stand by this.", own_line, never_asked) is Promised.MENTIONED


# ---------------------------------------------------------------- long replies

LONG = "- a line of a long list\n" * 40_000


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (f"{LONG}\n{T}", Promised.GIVEN),
        (f"```\n{LONG}\n{T}", Promised.MENTIONED),  # a fence opened long before still counts
        (f"```\n{LONG}\n```\n{T}", Promised.GIVEN),
        (f"- ```\n  x\n  ```\n{LONG}\n{T}", Promised.GIVEN),
        (f"<!--\n{LONG}\n{T}", Promised.MENTIONED),
        (f"<pre>\nlog</pre>\n{LONG}\n{T}", Promised.GIVEN),
        (f"<!--\n```\n-->\n{LONG}\n{T}", Promised.GIVEN),  # the fence was part of a comment
        (f"{LONG}\n{'word ' * 100_000}\n{T}", Promised.GIVEN),
        (f"{LONG}\nI cannot give {T}", Promised.MENTIONED),
        ("> " * 5_000 + T, Promised.MENTIONED),  # deeper than the parser goes
        (f"{T}\n\n{'- ' * 5_000}{T}", Promised.MENTIONED),  # what the parser leaves out must not uncover another
    ],
    ids=range(11),
)
def test_a_reply_of_a_megabyte_is_judged_like_a_short_one(reply: str, expected: Promised) -> None:
    assert judge(reply, TAG, never_asked) is expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (f"{LONG}\n{T}\n\nCommitted.", Promised.GIVEN),
        (f"```\n{LONG}\n{T}\n```\n\nCommitted.", Promised.MENTIONED),
        (f"{T}\n" * 30_000 + "\nCommitted.", Promised.GIVEN),
        (f"{T}\n\n{LONG}", Promised.MENTIONED),  # who goes on for so long had not finished
        (f"{T}\n\n" + "no " * 6_000, Promised.GIVEN),
        (f"{T}\n\n" + "if so " * 2_800, Promised.MENTIONED),
    ],
    ids=range(6),
)
def test_a_line_of_its_own_is_found_in_a_long_reply(reply: str, expected: Promised) -> None:
    assert judge(reply, Promise(match=Match.OWN_LINE), never_asked) is expected


HOSTILE = {
    "code never closed": "`" + "(" * 1_000_000,
    "code opened and opened": "`[" * 500_000,
    "brackets": "(" * 1_000_000,
    "commas above": "x" + ", " * 500_000 + "x\n\n",
    "colons": ": " * 500_000,
    "tags": "<s>\n\n" * 50_000 + "x\n\n",
}


@pytest.mark.parametrize("match", Match)
@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
def test_no_reply_takes_long(reply: str, match: Match) -> None:
    """With a careless pattern each of them takes minutes, and nobody can overlook that."""
    assert judge(f"{reply}{T}", Promise(match=match), never_asked) is not Promised.ABSENT


def test_the_markdown_parser_is_not_loaded_with_the_module() -> None:
    assert "MarkdownIt" not in vars(promise_module)
