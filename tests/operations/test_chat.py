"""What was asked about a loop and answered: kept line by line, whatever happens to those who write it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bydawn.core.chat import Turn, TurnState
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop
from bydawn.core.outcome import Outcome
from bydawn.core.redact import Secrets
from bydawn.core.values import Usage
from bydawn.operations.chat import about, history, spent, summary
from bydawn.operations.chat_material import material, quoted
from bydawn.store import chat
from bydawn.store.lock import Lock
from bydawn.store.registry import Registry, Standing
from operations.stories import STORIES, write_loop

TOKEN = "canary9f8e7d6c5b4a3928"  # noqa: S105 - planted
SECRETS = Secrets({"MY_TOKEN": TOKEN})


def a_turn(id_: str, **more: Any) -> Turn:
    usual = {"question": "what is left?", "agent": "codex", "at": datetime(2026, 1, 6, tzinfo=UTC)}
    return Turn(id=id_, **{**usual, **more})


def answered(id_: str, answer: str = "two tasks", **more: Any) -> Turn:
    return a_turn(id_, state=TurnState.ANSWERED, outcome=Outcome.OK, answer=answer, **more)


@pytest.fixture
def standing(tmp_path: Path) -> Standing:
    return a_loop(tmp_path, "blocked")


def a_loop(root: Path, name: str) -> Standing:
    write_loop(root, name)
    [found] = Registry(root / "state").everywhere()
    return found


def write(standing: Standing, *turns: Turn) -> None:
    for turn in turns:
        chat.append(standing.folder, turn, SECRETS.hide)


@contextmanager
def asking(standing: Standing, id_: str) -> Iterator[None]:
    """While a process answers this question."""
    lock = Lock.take(standing.folder.chat_lock)
    lock.sign(id_)
    try:
        yield
    finally:
        lock.release()


# -- history -----------------------------------------------------------------------------------------------------------


def test_the_last_line_about_a_turn_counts_and_turns_stay_in_their_order(standing: Standing) -> None:
    write(standing, a_turn("1"), answered("1"), a_turn("2"), a_turn("2", state=TurnState.FAILED, detail="no log-in"))
    assert [(turn.id, turn.state) for turn in history(standing)] == [("1", "answered"), ("2", "failed")]
    assert [turn.id for turn in history(standing, last=1)] == ["2"]
    assert standing.folder.chat.stat().st_mode & 0o777 == 0o600


def test_a_loop_that_was_never_asked_about_has_an_empty_history(standing: Standing) -> None:
    assert (history(standing), spent(standing), summary((), None)) == ((), None, "Nothing was asked yet.")


def test_a_question_that_no_process_answers_any_more_was_interrupted(standing: Standing) -> None:
    write(standing, a_turn("1"), a_turn("2"))
    with asking(standing, "2"):
        assert [turn.state for turn in history(standing)] == ["interrupted", "asked"]
    lost, other = history(standing)
    assert (lost.state, other.state) == ("interrupted", "interrupted")
    assert (lost.question, lost.detail) == ("what is left?", "bydawn ended before the answer was there")


@pytest.mark.parametrize("kept", [1, 20, -2, -1])
def test_half_a_line_is_none_and_the_next_one_begins_on_a_line_of_its_own(standing: Standing, kept: int) -> None:
    write(standing, answered("1"))
    whole = standing.folder.chat.read_bytes()
    standing.folder.chat.write_bytes(whole + msgspec.json.encode(answered("2"))[:kept])
    assert [turn.id for turn in history(standing)] == ["1"]
    write(standing, answered("3"))
    assert [turn.id for turn in history(standing)] == ["1", "3"]
    assert standing.folder.chat.read_bytes().startswith(whole)
    assert standing.folder.chat.read_bytes().splitlines()[-1].startswith(b'{"id":"3"')


def test_a_file_that_is_nothing_but_half_a_line_is_begun_again(standing: Standing) -> None:
    standing.folder.chat.write_bytes(b"x" * 200_000)
    write(standing, answered("1"))
    assert [turn.id for turn in history(standing)] == ["1"]


def test_a_line_of_a_later_version_does_not_hide_the_others(standing: Standing) -> None:
    write(standing, answered("1"))
    with standing.folder.chat.open("ab") as file:
        file.write(b'{"id": "2", "state": "pondered"}\n\xff\xfe\n[]\n')
    write(standing, answered("3"))
    assert [turn.id for turn in history(standing)] == ["1", "3"]


def test_no_secret_reaches_the_disk(standing: Standing) -> None:
    write(standing, answered("1", f"it is {TOKEN}", question=f"is {TOKEN} right?", detail=f"saw {TOKEN}"))
    assert TOKEN.encode() not in standing.folder.chat.read_bytes()
    [turn] = history(standing)
    assert (turn.question, turn.answer, turn.detail) == ("is [secret] right?", "it is [secret]", "saw [secret]")


def test_what_answers_cost_is_added_up_and_said(standing: Standing) -> None:
    used = Usage(tokens_in=1000, tokens_out=50, cost_usd=0.25)
    write(standing, answered("1", usage=used), answered("2", usage=used), a_turn("3", state=TurnState.FAILED))
    assert spent(standing) == Usage(tokens_in=2000, tokens_out=100, cost_usd=0.5)
    said = summary(history(standing), spent(standing))
    assert said == "3 questions · 2,000 in, 100 out · $0.50, which does not count toward the limits of the loop"


def test_a_turn_in_words() -> None:
    assert about(answered("1", seconds=12.3, steps=3)) == "codex · 12 s · 3 steps"
    assert about(a_turn("1")) == "codex · at work"
    assert about(a_turn("1", state=TurnState.FAILED)) == "codex · failed"


# -- what the agent is told --------------------------------------------------------------------------------------------


def of(standing: Standing, **settings: object) -> Standing:
    return replace(standing, loop=msgspec.convert({**msgspec.to_builtins(standing.loop), **settings}, Loop))


@pytest.mark.parametrize("name", STORIES)
def test_every_loop_can_be_told_about(tmp_path: Path, name: str) -> None:
    told = material(a_loop(tmp_path, name), a_turn("1"), tmp_path, {}, ())
    assert told.facts[0].startswith("State: ")


def test_the_agent_is_told_what_show_says_the_tasks_and_the_failing_checks(standing: Standing) -> None:
    told = material(standing, a_turn("1"), Path("/x"), {}, ())
    assert told.facts[:2] == ["State: blocked", "Reason: the agent says: “which rate is meant?”"]
    assert told.tasks == ["[done] one", "[done] two", "[next] three", "[open] four"]
    assert [verdict.check for verdict in told.failing] == ["make lint"]


def test_the_documents_of_a_loop_go_along_if_they_are_there(standing: Standing) -> None:
    folder = Path(standing.loop.folder)
    (folder / "NOTES.md").write_text("half up")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "RULES.md").write_bytes(b"\xff rules")
    told = quoted(of(standing, progress="NOTES.md", opinions="GONE.md"), folder, None)
    assert [*told] == ["TODO.md", "NOTES.md"]
    assert quoted(of(standing, progress="link"), folder, None)["link"] == "[… link is not in the workspace …]"
    assert quoted(standing, folder, ("none",)) == {}
    assert quoted(standing, folder, ("RULES.md", "todo")) == {"RULES.md": "� rules", "TODO.md": told["TODO.md"]}


def test_a_document_that_a_person_names_has_to_be_there_and_inside(standing: Standing) -> None:
    folder = Path(standing.loop.folder)
    with pytest.raises(UserError, match="there is no document 'progess'") as refused:
        quoted(standing, folder, ("progess",))
    assert refused.value.hint.startswith("did you mean progress? ")
    with pytest.raises(UserError, match="is not in the workspace"):
        quoted(standing, folder, ("../../etc/passwd",))
    with pytest.raises(UserError, match="too many documents"):
        quoted(standing, folder, ("TODO.md",) * 11)
