"""Questions and answers about a loop, and the form to ask another."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bydawn.core.chat import Turn, TurnState
from bydawn.core.values import Usage
from bydawn.store.lock import Lock
from bydawn.web.loops import Loops
from bydawn.web.page import Visitor
from bydawn.web.pages.chat import chat_page
from operations.stories import STORIES
from web.drawn import LOOKS, STEERS, Drawn, call, drawn, rooms

BAD = "<script>alert(1)</script>"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Loops]:
    with rooms(tmp_path.resolve(), "blocked", "running", "unverified") as found:
        yield found


def asked(question: str = "Which is newer?", id_: str = "t-1", **more: Any) -> Turn:
    return Turn(id=id_, at=datetime(2026, 1, 6, 7, 2, tzinfo=UTC), question=question, agent="codex", **more)


ANSWER = asked(
    state=TurnState.ANSWERED,
    answer=f"**The test.** {BAD}\n\n- It came later.\n",
    seconds=22.0,
    usage=Usage(cost_usd=0.06),
    steps=3,
)


def page(loops: Loops, *turns: Turn, name: str = "blocked", visitor: Visitor = STEERS) -> Drawn:
    path = loops.find(name).folder.chat
    path.write_bytes(b"".join(msgspec.json.encode(turn) + b"\n" for turn in turns))
    return drawn(chat_page(call(loops, name, visitor)), visitor)


@pytest.mark.parametrize("visitor", [STEERS, LOOKS], ids=["steers", "looks"])
@pytest.mark.parametrize("name", STORIES)
def test_every_loop_can_be_asked_about(loops: Loops, name: str, visitor: Visitor) -> None:
    shown = drawn(chat_page(call(loops, name, visitor)), visitor)
    mine = [form for form in shown.forms if form.action == f"/loops/{name}/chat"]
    assert len(mine) == (visitor is STEERS)
    assert ("This link can only look." in shown.text) is (visitor is LOOKS)


def test_an_answer_is_markdown_and_has_its_own_buttons(one: Loops) -> None:
    shown = page(one, ANSWER)
    assert "<strong>The test.</strong>" in shown.html and BAD not in shown.html
    assert "read only · 3 steps · 22 s · $0.06" in shown.text and "$0.06 for all answers" in shown.text
    tell = shown.form("/loops/blocked/tell")
    assert tell.value("text") == ANSWER.answer and tell.value("expect_seq").isdigit()
    task = shown.form("/loops/blocked/tasks")
    assert task.value("text").startswith("The test.") and "\n" not in task.value("text")
    assert task.value("from") == "chat"
    [copied] = [given for tag, given in shown.tags if given.get("data-copy") == ANSWER.answer]
    assert "hidden" in copied


def test_a_finished_loop_takes_no_notes(one: Loops) -> None:
    shown = page(one, ANSWER, name="unverified")
    assert not [form for form in shown.forms if form.action.endswith(("/tell", "/tasks"))]


def test_a_failed_question_is_kept_and_can_be_asked_again(one: Loops) -> None:
    failed = asked("Why?", state=TurnState.FAILED, detail="codex is limited until 08:20")
    shown = page(one, failed)
    assert "Codex is limited until 08:20. Your question is kept." in shown.text
    [again] = [form for form in shown.forms if form.buttons == ["Ask again"]]
    assert again.value("message") == "Why?"


def test_a_question_that_is_being_answered_is_marked_and_no_other_can_be_asked(one: Loops) -> None:
    folder = one.find("blocked").folder
    lock = Lock.take(folder.chat_lock)
    lock.sign("t-1")
    try:
        shown = page(one, asked())
    finally:
        lock.release()
    [turn] = [given for tag, given in shown.tags if "data-turn" in given]
    assert turn["data-turn"] == "t-1" and "running" in turn["class"]
    [button] = [given for tag, given in shown.tags if tag == "button" and "main" in given.get("class", "")]
    assert "disabled" in button and "One question at a time" in shown.text
    assert "codex read only · asked " in shown.text
    spoken = '<div class="said muted" aria-live="polite">The answer shows up here.</div>'
    assert spoken in shown.html, "an age that counts would be spoken each second"


def test_a_question_whose_process_died_was_interrupted(one: Loops) -> None:
    assert "Your question is kept." in page(one, asked()).text


def test_the_form_says_what_it_is_given_and_what_it_may_do(one: Loops) -> None:
    shown = page(one)
    form = shown.form("/loops/blocked/chat")
    assert form.values("include") == ["none", "todo"]
    assert "Reads only. It changes nothing." in shown.text


def test_a_question_that_was_refused_is_still_there(one: Loops) -> None:
    shown = drawn(chat_page(call(one, "blocked")), kept={"message": "half a question\n"})
    assert shown.form("/loops/blocked/chat").value("message") == "half a question\n"


def test_the_composer_is_not_sent_again_and_the_turns_are(one: Loops) -> None:
    assert [section.live for section in chat_page(call(one, "blocked")).sections] == [True, False]
