"""Pages that are about no loop: what can be started, settings, the machine, signing in; questions and errors."""

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.values import Status
from bydawn.operations.settings import gather
from bydawn.operations.startable import startable
from bydawn.operations.trust import agree, review
from bydawn.settings.trust import Trusts, powers_of
from bydawn.store.web_keys import Role
from bydawn.web.loops import Loops
from bydawn.web.page import Visitor
from bydawn.web.pages.chat import chat_page
from bydawn.web.pages.question import accept_page, error_page, stop_page
from bydawn.web.pages.setup import doctor_page, login_page, settings_page, start_page
from bydawn.web.pages.why import why_page
from operations.stories import STORIES
from web.drawn import LOOKS, STEERS, call, document_page, drawn, log_page, rooms, round_page

BAD = "<script>alert(1)</script>"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Loops]:
    with rooms(tmp_path.resolve(), "blocked", "running") as found:
        yield found


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "here"
    folder.mkdir()
    return folder


def trusted(loops: Loops, folder: Path) -> None:
    powers = powers_of(gather(folder), datetime.now(UTC))
    agree(powers, folder, Trusts(loops.registry.root.trust))
    assert review(gather(folder), folder, Trusts(loops.registry.root.trust))


# -- start -------------------------------------------------------------------------------------------------------------


def test_without_settings_only_the_demo_can_be_started(one: Loops, here: Path) -> None:
    shown = drawn(start_page(call(one, "", STEERS, here)))
    [form] = [form for form in shown.forms if form.action == "/start"]
    assert form.fields[1:] == [("demo", "1")] and form.buttons == ["Start the demo"]
    assert 'bydawn run -t TODO.md -k "pytest -q"' in shown.text


def test_a_folder_that_is_not_trusted_has_a_command_and_no_button(one: Loops, here: Path) -> None:
    (here / "bydawn.toml").write_text(f'prompt = "fix {BAD}"\ncheck = ["pytest {BAD}"]\n')
    [row] = startable(one.all(), here, one.registry.root)
    assert not row.ready and row.why_not == "its bydawn.toml can run commands, and you have not agreed to it"
    assert row.command == f"bydawn trust {here}"
    shown = drawn(start_page(call(one, "", STEERS, here)))
    assert BAD not in shown.html and f"bydawn trust {here}" in shown.text
    assert len([form for form in shown.forms if form.action == "/start"]) == 1


def test_a_trusted_folder_says_what_would_run_and_has_a_button(one: Loops, here: Path) -> None:
    (here / "bydawn.toml").write_text('prompt = "fix it"\ncheck = ["pytest -q"]\nagent = ["codex"]\n')
    trusted(one, here)
    [row] = startable(one.all(), here, one.registry.root)
    assert (row.ready, row.goal, row.agent, row.checks) == (True, "fix it", "codex", ("pytest -q",))
    shown = drawn(start_page(call(one, "", STEERS, here)))
    first = shown.forms[1]
    assert first.action == "/start" and first.value("folder") == row.key and first.buttons == ["Start it"]
    looked = drawn(start_page(call(one, "", LOOKS, here)), LOOKS)
    assert not [form for form in looked.forms if form.action == "/start"]
    assert f"bydawn run -C {here}" in looked.text


def test_other_settings_are_another_key(one: Loops, here: Path) -> None:
    (here / "bydawn.toml").write_text('prompt = "fix it"\n')
    trusted(one, here)
    [before] = startable(one.all(), here, one.registry.root)
    (here / "bydawn.toml").write_text('prompt = "fix more"\n')
    [after] = startable(one.all(), here, one.registry.root)
    assert before.key != after.key and before.ready and not after.ready
    assert "has changed since you trusted it" in after.why_not


def test_the_folders_of_known_loops_are_offered_too_unless_one_runs_there(one: Loops, here: Path) -> None:
    for name in ("blocked", "running"):
        folder = Path(one.find(name).loop.workspace)
        (folder / "bydawn.toml").write_text('prompt = "again"\n')
        trusted(one, folder)
    rows = startable(one.all(), here, one.registry.root)
    assert [(Path(row.folder).name, row.ready) for row in rows] == [("blocked", True), ("running", False)]
    assert rows[1].why_not == "the loop running is running there"


@pytest.mark.parametrize("text", ["rounds = 'x'\nprompt = 'a'\n", "prompt = [\n", "tasks = 3\nprompt = 'a'\n"])
def test_settings_with_a_mistake_cannot_be_started(one: Loops, here: Path, text: str) -> None:
    (here / "bydawn.toml").write_text(text)
    for row in startable(one.all(), here, one.registry.root):
        assert not row.ready and row.command == f"bydawn config check -C {here}"
    drawn(start_page(call(one, "", STEERS, here)))


def test_odd_names_of_folders_can_be_pasted(one: Loops, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / f"it's {BAD.replace('/', '')}"
    folder.mkdir()
    (folder / "bydawn.toml").write_text('prompt = "a"\n')
    [row] = startable(one.all(), folder, one.registry.root)
    assert shlex.split(row.command)[-1] == str(folder)
    assert "<script>" not in drawn(start_page(call(one, "", STEERS, folder))).html


# -- settings, doctor, login -------------------------------------------------------------------------------------------


def test_settings_say_where_each_value_comes_from(one: Loops, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "bydawn.toml").write_text('rounds = 7\ncheck = ["make test"]\nstrange = 1\n')
    monkeypatch.setenv("BYDAWN_MODEL", "o9")
    shown = drawn(settings_page(call(one, "", STEERS, here)))
    assert "rounds 7 bydawn.toml:1" in shown.text and "model o9 BYDAWN_MODEL" in shown.text
    assert "make test (not in effect: not trusted)" in shown.text
    assert "unknown setting 'strange'" in shown.text.lower()


def test_secret_settings_are_hidden(one: Loops, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYDAWN_NOTIFY", "tgram://hunter2-hunter2/1")
    monkeypatch.setenv("BYDAWN_AGENT_ENV", "API_KEY=hunter2-hunter2")
    assert "hunter2" not in drawn(settings_page(call(one, "", STEERS, here))).html


def test_settings_have_switches_for_this_browser(one: Loops, here: Path) -> None:
    dark = Visitor(role=Role.LOOK, csrf="c", theme="dark", keys=False)
    shown = drawn(settings_page(call(one, "", dark, here)), dark)
    themes = [form.value("theme") for form in shown.forms if form.action == "/settings/theme"]
    assert {"", "light"} <= {*themes}
    assert shown.form("/settings/keys").value("keys") == "on"
    assert shown.form("/logout").buttons == ["Sign out"]
    assert "This link can only look." in shown.text


def test_the_doctor_lists_what_is_wrong_first(one: Loops, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (one.find("blocked").folder.path / "ledger.jsonl").write_text("broken\n")
    shown = drawn(doctor_page(call(one, "", STEERS, here)))
    assert "loop blocked" in shown.text and "state folder" in shown.text
    assert shown.text.index("loop blocked") < shown.text.index("state folder")


def test_slow_pages_are_only_made_when_they_are_shown(one: Loops, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("examine", "on_offer", "_settings"):
        monkeypatch.setattr(f"bydawn.web.pages.setup.{name}", lambda *_: pytest.fail("too early"))
    for page in (
        doctor_page(call(one, "", STEERS, here)),
        start_page(call(one, "", STEERS, here)),
        settings_page(call(one, "", STEERS, here)),
    ):
        assert not any(section.live for section in page.sections)


def test_the_login_page_takes_a_code_and_says_where_to_get_one(one: Loops) -> None:
    nobody = Visitor(role=Role.LOOK)
    shown = drawn(login_page(call(one)), nobody)
    form = shown.form("/login")
    assert form.values("code") == [""]
    assert "bydawn serve --link" in shown.text


# -- why -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("visitor", [STEERS, LOOKS], ids=["steers", "looks"])
@pytest.mark.parametrize("name", STORIES)
def test_every_loop_says_why_it_decided_as_it_did(loops: Loops, name: str, visitor: Visitor) -> None:
    shown = drawn(why_page(call(loops, name, visitor)), visitor)
    assert f"bydawn why {name}" in shown.text
    assert "Replayed" in shown.text or "has not decided anything yet" in shown.text


# -- questions and errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("visitor", [STEERS, LOOKS], ids=["steers", "looks"])
@pytest.mark.parametrize("what", ["stop", "accept"])
@pytest.mark.parametrize("name", STORIES)
def test_a_question_can_be_asked_about_every_loop(loops: Loops, name: str, what: str, visitor: Visitor) -> None:
    shown = drawn({"stop": stop_page, "accept": accept_page}[what](call(loops, name, visitor)), visitor)
    mine = [form for form in shown.forms if form.action.startswith("/loops")]
    assert visitor is STEERS or not mine
    assert all(form.value("expect_seq") for form in mine)
    assert f"/loops/{name}" in shown.links, "there is a way back"


def test_before_a_stop_it_says_what_is_lost_and_offers_the_mild_way(loops: Loops) -> None:
    shown = drawn(stop_page(call(loops, "running", STEERS)))
    assert "Stop running now?" in shown.text and "What it changed stays in the files" in shown.text
    assert [(form.action, form.buttons) for form in shown.forms if form.action.startswith("/loops")] == [
        ("/loops/running/stop", ["Stop now"]),
        ("/loops/running/pause", ["Pause after this round instead"]),
    ]
    assert "There is nothing to stop." in drawn(stop_page(call(loops, "complete", STEERS))).text


def test_what_is_accepted_is_named(loops: Loops) -> None:
    assert "There is nothing to accept" in drawn(accept_page(call(loops, "complete", STEERS))).text


STATUSES = (400, 401, 403, 404, 409, 413, 415, 418, 421, 500, 503)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("visitor", [STEERS, LOOKS, None], ids=["steers", "looks", "nobody"])
def test_an_error_says_in_words_what_happened_and_the_way_on(status: int, visitor: Visitor | None) -> None:
    error = OwnFailure(f"there is no loop {BAD}", cause="loops here: a", hint="paste `bydawn status`")
    page = error_page(status, error, visitor)
    shown = drawn(page, visitor or Visitor(role=Role.LOOK))
    assert page.status == status and BAD not in shown.html
    assert "<code>bydawn status</code>" in shown.html and "Loops here: a." in shown.text
    assert ("/login" in shown.links) is (status == 401)
    assert "bydawn serve --link" in shown.text or status != 401


def test_an_error_needs_neither_cause_nor_hint() -> None:
    assert "Oh." in drawn(error_page(500, UserError("oh"), None), Visitor(role=Role.LOOK)).text


def test_a_loop_that_cannot_be_read_says_so_on_each_of_its_pages(one: Loops) -> None:
    one.find("blocked").folder.ledger.write_text("broken\n")
    assert one.find("blocked").status is Status.DAMAGED
    for make in (partial(round_page, number=1), log_page, partial(document_page, key="")):
        with pytest.raises(UserError, match="ledger"):
            make(one, "blocked", visitor=STEERS)
    for page in (why_page(call(one, "blocked", STEERS)), chat_page(call(one, "blocked", STEERS))):
        drawn(page)
    assert "ledger" in drawn(why_page(call(one, "blocked", STEERS))).text
