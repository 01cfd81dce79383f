"""Documents on the page: read, tick, edit, preview, and what happens if two people changed one at once."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest

from bydawn.core.errors import NotFound, UserError
from bydawn.operations import documents
from bydawn.operations.documents import Conflict, Saved
from bydawn.web.loops import Loops
from bydawn.web.page import Visitor
from bydawn.web.pages.documents import conflict_page
from operations.stories import STORIES, TODO
from web.drawn import LOOKS, STEERS, Drawn, call, document_page, drawn, rooms

BAD = "<script>alert(1)</script>"


@pytest.fixture
def loops(tmp_path: Path) -> Iterator[Loops]:
    with rooms(tmp_path.resolve(), "blocked", "checkpoint", "folder", "running", "unverified") as found:
        yield found


@pytest.fixture(scope="module")
def all_loops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loops]:
    with rooms(tmp_path_factory.mktemp("rooms").resolve()) as found:
        yield found


def todo(loops: Loops, name: str = "blocked") -> Path:
    return Path(loops.find(name).loop.workspace) / "TODO.md"


@pytest.mark.parametrize("visitor", [STEERS, LOOKS], ids=["steers", "looks"])
@pytest.mark.parametrize("name", STORIES)
def test_every_document_of_every_loop_can_be_looked_at(all_loops: Loops, name: str, visitor: Visitor) -> None:
    names = documents.documents(all_loops.find(name))
    for key in ("", *(each.key for each in names)):
        for mode in ("read", "edit", "preview"):
            page = document_page(all_loops, name, key, visitor, mode=mode, text=f"# {BAD}", version="x")
            shown = drawn(page, visitor)
            assert BAD not in shown.html
            if visitor is LOOKS:
                assert not [form for form in shown.forms if form.buttons and form.action.startswith("/loops")]
                assert page.sections[0].live


def test_a_document_that_is_not_there_is_not_found(loops: Loops) -> None:
    with pytest.raises(NotFound, match=r"no document '\.\./\.\./etc/passwd'") as error:
        document_page(loops, "blocked", "../../etc/passwd", STEERS)
    assert error.value.cause == "it has todo"


def test_a_loop_without_documents_says_what_it_was_asked_for(loops: Loops) -> None:
    shown = drawn(document_page(loops, "unverified", "", STEERS))
    assert "This loop has no documents." in shown.text and "“fix it”" in shown.text


# -- read and tick -----------------------------------------------------------------------------------------------------


def test_the_boxes_are_a_form_that_sends_each_line_and_the_version(loops: Loops) -> None:
    shown = drawn(document_page(loops, "blocked", "", STEERS))
    form = shown.form("/loops/blocked/docs/todo/tick")
    version = documents.read(loops.find("blocked"), "todo").version
    assert form.value("version") == version and "data-ticks" in form.attributes
    assert form.values("box") == ["1", "2", "3", "7"]
    assert form.values("tick") == ["1", "2"]
    assert form.values("words") == ["one", "two", "three", "four"], "what finds a box again whose line has moved"
    assert 'value="3" data-shown="three"' in shown.html
    assert form.buttons == ["Save ticks"]
    assert "2 of 4 done" in shown.text and f"version {version[:8]}" in shown.text


def test_a_checkpoint_is_a_bar_with_what_it_means(loops: Loops) -> None:
    shown = drawn(document_page(loops, "checkpoint", "todo", STEERS))
    assert "HARD STOP: the loop has reached this; look at it, then approve" in shown.text


def test_a_task_that_a_round_closed_says_which(loops: Loops) -> None:
    assert "round 1" in drawn(document_page(loops, "checkpoint", "todo", STEERS)).text


def test_who_can_only_look_gets_the_command_instead(loops: Loops) -> None:
    shown = drawn(document_page(loops, "blocked", "todo", LOOKS), LOOKS)
    assert "This link can only look." in shown.text and 'bydawn tasks add blocked "…"' in shown.text
    assert "Save ticks" not in shown.text and "?mode=edit" not in "".join(shown.links)
    assert shown.html.count('name="tick"') == shown.html.count(" disabled") == 4


def test_a_task_folder_has_a_document_for_each_task(loops: Loops) -> None:
    shown = drawn(document_page(loops, "folder", "task-b", STEERS))
    assert "second" in shown.text and "/loops/folder/docs/task-a" in shown.links
    assert shown.form("/loops/folder/tasks").values("text") == [""]


def test_a_file_that_does_not_exist_can_be_made(loops: Loops) -> None:
    todo(loops).unlink()
    assert "TODO.md does not exist yet. Saving makes it." in drawn(document_page(loops, "blocked", "todo", STEERS)).text
    shown = drawn(document_page(loops, "blocked", "todo", STEERS, mode="edit"))
    assert shown.form("/loops/blocked/docs/todo/save").value("version") == "none"


@pytest.mark.parametrize(("data", "words"), [(b"\0\xff", "text"), (b"x" * (2 << 20), "large")])
def test_a_file_that_cannot_be_edited_says_why(loops: Loops, data: bytes, words: str) -> None:
    todo(loops).write_bytes(data)
    found = documents.read(loops.find("blocked"), "todo")
    shown = drawn(document_page(loops, "blocked", "todo", STEERS, mode="edit"))
    assert found.why_not and found.why_not[1:] in shown.text and words in shown.text
    assert not [form for form in shown.forms if form.action.endswith("/save")]


def test_a_folder_that_is_gone_is_an_error_in_words(loops: Loops) -> None:
    workspace = todo(loops).parent
    workspace.rename(workspace.with_name("elsewhere"))
    with pytest.raises(UserError, match="is gone"):
        document_page(loops, "blocked", "todo", STEERS)


# -- edit --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [TODO, "\n\nfirst lines are empty\n", "no newline", f"</textarea>{BAD}&amp;\n", "a\r\nb\r\n"]
)
def test_the_editor_holds_exactly_the_text(loops: Loops, text: str) -> None:
    todo(loops).write_bytes(text.encode())
    form = drawn(document_page(loops, "blocked", "todo", STEERS, mode="edit")).form("/loops/blocked/docs/todo/save")
    assert form.value("text").replace("\r", "") == form.value("base").replace("\r", "") == text.replace("\r", "")
    standing = loops.find("blocked")
    saved = documents.save(standing, "todo", form.value("text"), form.value("version"), form.value("base"))
    assert isinstance(saved, Saved) and not saved.changed, "saving what is shown changes nothing"


def test_an_edit_is_not_sent_again_while_someone_types(loops: Loops) -> None:
    assert not document_page(loops, "blocked", "todo", STEERS, mode="edit").sections[0].live
    assert document_page(loops, "blocked", "todo", STEERS).sections[0].live


def test_a_preview_shows_the_new_text_and_keeps_the_version(loops: Loops) -> None:
    page = document_page(loops, "blocked", "todo", STEERS, mode="preview", text="# New\n\n- [ ] a\n", version="old")
    shown = drawn(page)
    form = shown.form("/loops/blocked/docs/todo/save")
    assert "<h2>New</h2>" in shown.html and form.value("text") == "# New\n\n- [ ] a\n"
    assert form.value("version") == "old" and form.values("base") == [], "what the old one was is not known here"


def test_a_preview_keeps_what_the_person_began_with(loops: Loops) -> None:
    """Without it, every line that differs from the file would be a clash."""
    page = document_page(loops, "blocked", "todo", STEERS, mode="preview", text="b", version="old", base="# Mine\n")
    assert drawn(page).form("/loops/blocked/docs/todo/save").value("base") == "# Mine\n"


def test_what_was_refused_is_still_in_the_editor(loops: Loops) -> None:
    kept = {"text": "mine\n", "version": "v", "base": "b\n"}
    form = drawn(document_page(loops, "blocked", "todo", STEERS), kept=kept).form("/loops/blocked/docs/todo/save")
    assert (form.value("text"), form.value("version"), form.value("base")) == ("mine\n", "v", "b\n")


def test_a_task_that_was_refused_is_still_in_its_field(loops: Loops) -> None:
    shown = drawn(document_page(loops, "blocked", "todo", STEERS), kept={"text": "a\tb"})
    assert shown.form("/loops/blocked/tasks").value("text") == "a\tb"
    assert not [form for form in shown.forms if form.action.endswith("/save")]


def test_a_round_that_works_is_named(loops: Loops, monkeypatch: pytest.MonkeyPatch) -> None:
    found = documents.read(loops.find("blocked"), "todo")
    monkeypatch.setattr(
        documents, "read", lambda *_: msgspec.structs.replace(found, working=13, caution="TODO.md is protected")
    )
    shown = drawn(document_page(loops, "blocked", "todo", STEERS))
    assert "Round 13 is working and may edit this file too." in shown.text and "TODO.md is protected." in shown.text


# -- conflicts ---------------------------------------------------------------------------------------------------------


def conflict(loops: Loops, mine: str, base: str | None = TODO) -> tuple[Conflict, Drawn]:
    found = documents.save(loops.find("blocked"), "todo", mine, "another", base)
    assert isinstance(found, Conflict)
    page = conflict_page(call(loops, "blocked"), found)
    assert page.status == 409
    return found, drawn(page)


def test_a_conflict_shows_both_and_a_text_with_both(loops: Loops) -> None:
    todo(loops).write_text(TODO.replace("three", "three of them").replace("four", "4"))
    found, shown = conflict(loops, TODO.replace("three", f"three {BAD}"))
    assert "TODO.md changed while you were editing." in shown.text
    assert "1 place needs a choice; 1 change fits by itself." in shown.text
    assert "Line 3 both changed" in shown.text and "Line 7 only the file changed: taken over" in shown.text
    assert BAD not in shown.html
    form = shown.form("/loops/blocked/docs/todo/save")
    assert form.value("text") == found.merged and form.value("version") == found.version
    assert "- [ ] three of them\n" in found.merged and BAD in found.merged
    mine = shown.form("/loops/blocked/docs/todo/mine")
    assert mine.value("text") == found.yours and mine.attributes["id"] == "mine"
    assert [given for tag, given in shown.tags if tag == "button" and given.get("form") == "mine"]
    assert "/loops/blocked/docs/todo" in shown.links


def test_saving_the_merged_text_as_it_is_works(loops: Loops) -> None:
    todo(loops).write_text(TODO.replace("two", "2"))
    _, shown = conflict(loops, TODO.replace("three", "3"))
    form = shown.form("/loops/blocked/docs/todo/save")
    saved = documents.save(loops.find("blocked"), "todo", form.value("text"), form.value("version"), form.value("base"))
    assert isinstance(saved, Saved)
    assert todo(loops).read_text() == TODO.replace("two", "2").replace("three", "3")


def test_without_the_first_text_every_difference_is_a_choice(loops: Loops) -> None:
    _, shown = conflict(loops, TODO.replace("two", "2"), None)
    assert "1 place needs a choice." in shown.text


def test_a_box_that_is_gone_says_that_nothing_was_ticked(loops: Loops) -> None:
    todo(loops).write_text("- [ ] other\n")
    found = documents.tick(loops.find("blocked"), "todo", 3, True, "another", "three")
    assert isinstance(found, Conflict)
    shown = drawn(conflict_page(call(loops, "blocked"), found))
    assert "Nothing was ticked: the box is no longer where it was." in shown.text
    assert not [form for form in shown.forms if form.action.endswith("/save")]


def test_addresses_of_documents_are_quoted(loops: Loops) -> None:
    folder = Path(loops.find("folder").loop.workspace) / "tasks"
    (folder / "a b?#.md").write_text("# odd\n")
    shown = drawn(document_page(loops, "folder", "", STEERS))
    odd = [link for link in shown.links if "/docs/task-a%20b" in link]
    assert all(unquote(link).startswith("/loops/folder/docs/task-a b?#") for link in odd)
