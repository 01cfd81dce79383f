"""`tasks`: how each task stands, and a person's word about it."""

import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bydawn.core.facts import AnyFact, CheckpointApproved, TaskSettled
from bydawn.core.loop import Checkpoint, Loop
from bydawn.core.requests import as_fact
from bydawn.core.values import End, TaskStatus
from bydawn.store.folder import LoopFolder
from bydawn.store.inbox import Inbox
from bydawn.store.ledger import LoopLedger
from bydawn.store.lock import Lock
from bydawn.store.registry import Registry
from core.facts_made import BORN, NOON, a_loop, a_round, run_started, started, stopped
from driving import DONE, HANG, OK, Home, Said, Step, is_error, said, wait_for

TODO = "# Plan\n\n- [x] set it up\n- [ ] Größe ändern\n- [ ] rename the keys\n- [ ] rename the files\n"
FILES = {
    "001-setup.md": "# Set it up\n",
    "002-build.md": "# Build it\n<!-- depends_on: 001-setup -->\n",
    "003-docs.md": "# Write the docs\n",
}


def a_standing_loop(home: Home, *facts: AnyFact, name: str = "repo", **settings: Any) -> Loop:
    """A loop with this history on the disk, whose worker is gone."""
    loop = a_loop(**{"id": name, "workspace": str(home.repo), "created_at": NOON, "tasks": "TODO.md", **settings})
    folder = Registry(home.states).home(home.repo) / name
    folder.mkdir(parents=True)
    (folder / "loop.json").write_bytes(msgspec.json.encode(loop))
    ledger = LoopLedger(LoopFolder(folder), print, str)
    for fact in (BORN, *(facts or (run_started(), stopped(End.PAUSED)))):
        ledger.append(fact)
    ledger.sync()
    ledger.close()
    return loop


@pytest.fixture
def listed(home: Home) -> Home:
    """A home with a checklist and a loop that is paused."""
    (home.repo / "TODO.md").write_text(TODO)
    a_standing_loop(home)
    return home


@pytest.fixture
def filed(home: Home) -> Home:
    """The same with a folder of tasks."""
    (home.repo / "tasks").mkdir()
    for name, text in FILES.items():
        (home.repo / "tasks" / name).write_text(text)
    a_standing_loop(home, tasks="tasks", task_folder=True)
    return home


def tasks(home: Home, *words: str, **options: Any) -> Said:
    return home.bydawn("tasks", *words, seconds=20, **options)


def as_json(home: Home, *words: str) -> dict[str, Any]:
    return dict(json.loads(tasks(home, "list", *words, "--json").out))


def stands(home: Home) -> list[str]:
    return [task["status"] for task in as_json(home, "repo")["tasks"]]


def words_about_tasks(home: Home) -> list[tuple[str, str]]:
    return [(fact["data"]["text"], fact["data"]["status"]) for fact in home.facts("task.settled")]


@contextmanager
def a_worker(home: Home) -> Iterator[None]:
    """Somebody who holds the loop's lock, takes what arrives in its inbox, and writes it down."""
    folder = home.folder()
    lock = Lock.take(folder / "lock")
    lock.sign("run-1")
    ledger, inbox = LoopLedger(LoopFolder(folder), print, str), Inbox(folder / "inbox", "run-1")
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.01):
            for request in inbox.take():
                ledger.append(as_fact(request))
                inbox.done(request)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        ledger.close()
        lock.release()


# -- list --------------------------------------------------------------------------------------------------------------


def test_every_task_is_listed_with_its_number_sign_and_word(listed: Home) -> None:
    shown = tasks(listed, "list")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.splitlines() == [
        "  1  ✓ done       set it up",
        "  2  ▶ next       Größe ändern",
        "  3  ○ open       rename the keys",
        "  4  ○ open       rename the files",
        "",
        "  TODO.md  3 open · 1 done",
    ]
    assert tasks(listed, "list", "repo", "-C", "/").out == shown.out


def test_the_file_is_read_now_and_not_remembered(listed: Home) -> None:
    (listed.repo / "TODO.md").write_text(TODO.replace("- [ ] G", "- [x] G") + "- [ ] one more\n")
    assert stands(listed) == ["done", "done", "next", "open", "open"]


def test_a_folder_is_listed_with_ids_and_what_each_waits_for(filed: Home) -> None:
    shown = tasks(filed, "list").out.splitlines()
    assert shown[:3] == [
        "  1  ▶ next       001-setup  Set it up",
        "  2  … waiting    002-build  Build it",
        "                  waits for 001-setup",
    ]
    assert shown[-1] == "  tasks  3 open (1 waiting) · 0 done"
    tasks(filed, "skip", "repo", "1")
    assert "waits for 001-setup (skipped)" in tasks(filed, "list").out


def test_checkpoints_stand_in_their_place(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [x] a\n\nHARD STOP: design\n\n- [ ] b\n\nHARD STOP: release\n")
    a_standing_loop(home, checkpoint=Checkpoint())
    shown = tasks(home, "list").out
    assert "     ? reached    ── HARD STOP: design\n" in shown
    assert "     ‖ ahead      ── HARD STOP: release\n" in shown
    design = as_json(home)["checkpoints"][0]
    assert (design["status"], design["line"]) == ("reached", 3)
    ledger = LoopLedger(LoopFolder(home.folder()), print, str)
    ledger.append(CheckpointApproved(mark=design["id"], text=design["text"], by="ada"))
    ledger.close()
    assert "✓ approved   ── HARD STOP: design" in tasks(home, "list").out


def test_what_the_ledger_says_of_tasks_is_shown(home: Home) -> None:
    (home.repo / "TODO.md").write_text(TODO)
    a_standing_loop(home)
    ids = [task["id"] for task in as_json(home)["tasks"]]
    ledger = LoopLedger(LoopFolder(home.folder()), print, str)
    for fact in [
        run_started(),
        *a_round(1, closed=("set it up",), doubted=("set it up",)),
        TaskSettled(task=ids[1], text="x", status=TaskStatus.ASIDE, by="task-failures"),
        TaskSettled(task=ids[2], text="x", status=TaskStatus.SKIPPED, by="ada"),
    ]:
        ledger.append(fact)
    ledger.close()
    shown = tasks(home, "list").out
    assert [line[7:].split("  ")[0] for line in shown.splitlines()[:4]] == ["doubted", "set aside", "skipped", "next"]
    assert shown.endswith("  TODO.md  2 open (1 set aside) · 1 done (1 doubted) · 1 skipped\n")


# what stands in the file, None for no file · words of what is said
DAMAGED: list[tuple[bytes | None, str]] = [
    (None, "TODO.md is gone"),
    (b"", "TODO.md has no tasks"),
    (b"- [ ] caf\xe9\n", "TODO.md cannot be read: the byte at offset 9"),
    (b"- [ ] a\n" * 20_000, "TODO.md is too long to read"),
]


@pytest.mark.parametrize(("data", "words"), DAMAGED)
def test_a_damaged_task_file_says_so_and_nothing_is_written_into_it(
    listed: Home, data: bytes | None, words: str
) -> None:
    path = listed.repo / "TODO.md"
    path.unlink() if data is None else path.write_bytes(data)
    shown = tasks(listed, "list")
    assert (shown.code, shown.err) == (0, "")
    assert words in " ".join(shown.out.split())
    assert words in as_json(listed)["problem"]
    for command in (["add", "repo", "more"], ["skip", "repo", "1"]):
        answer = tasks(listed, *command)
        assert answer.code == 2
        assert words in answer.err
        assert "bydawn tasks edit repo" in answer.err
    assert (path.read_bytes() if path.exists() else None) == data
    assert words_about_tasks(listed) == []


def test_a_running_loop_whose_tasks_vanished_is_told_of(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [ ] a\n- [ ] b\n")
    process = home.start_run(home.rounds([{"say": "hi"}, HANG]), "-t", "TODO.md")
    home.await_round(1)
    (home.repo / "TODO.md").write_text("- [ ] a\n")
    assert "! TODO.md lost 1 open task" in tasks(home, "list").out
    home.bydawn("stop")
    said(process)
    assert "! since the loop last read it, it lost 1 open task" in tasks(home, "list").out


def test_a_list_can_be_seen_before_any_loop_is_started(home: Home) -> None:
    (home.repo / "plan.md").write_text("- [ ] a\n- [~] b\n\nHARD STOP\n")
    shown = tasks(home, "list", "-t", "plan.md")
    assert shown.code == 0
    assert shown.out.startswith("  1  ▶ next       a\n\n  plan.md  1 open · 0 done\n")
    assert "! plan.md, line 2: `[~]` is neither open nor done" in shown.out
    assert "! plan.md, line 4: not a checkpoint unless" in shown.out
    assert "ahead      ── HARD STOP" in tasks(home, "list", "-t", "plan.md", BYDAWN_CHECKPOINT="HARD STOP").out
    assert as_json(home, "-t", "plan.md")["loop"] is None
    (home.repo / "docs").mkdir()
    (home.repo / "docs/1-a.md").write_text("# A\n")
    assert "1-a  A" in tasks(home, "list", "-t", "docs").out
    assert "1-a  A" in tasks(home, "list", "-t", ".", "-C", "docs").out
    (home.repo / "bydawn.toml").write_text('tasks = "plan.md"\n')
    assert tasks(home, "list").out == shown.out
    assert not (home.states / "loops").exists()


# arguments of `tasks list` · words of the error
WRONG = [
    (["-t", "nowhere.md"], "there is no task file nowhere.md"),
    (["-t", "../outside.md"], "not in the workspace"),
    (["-t", "README.md", "repo"], "give one or the other"),
    (["-t", "README.md", "-C", "nowhere"], "there is no folder"),
    ([], "no loop in"),
    (["nobody"], "no loop called 'nobody'"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_what_is_no_list_is_an_error_that_helps(home: Home, arguments: list[str], words: str) -> None:
    (home.root / "outside.md").write_text(TODO)
    shown = tasks(home, "list", *arguments)
    assert (shown.code, shown.out) == (2, "")
    assert words in shown.err
    assert " hint: " in shown.err


def test_a_loop_without_a_task_list_says_so(home: Home) -> None:
    a_standing_loop(home, tasks=None)
    shown = tasks(home, "list")
    assert (shown.code, shown.out) == (0, "  repo has no task list; it only has a prompt.\n")
    assert as_json(home)["tasks"] == []
    for command in (["add", "repo", "x"], ["skip", "repo", "1"], ["edit", "repo"]):
        answer = tasks(home, *command)
        assert answer.code == 2
        assert is_error(answer.err)


@pytest.mark.parametrize(
    "command", [["list"], ["skip", "repo", "1"], ["reopen", "repo", "1"], ["add", "repo", "x" * 99]]
)
@pytest.mark.parametrize("kind", ["checklist", "folder"])
def test_everything_fits_into_40_columns(home: Home, kind: str, command: list[str]) -> None:
    (home.repo / "TODO.md").write_text("".join(f"- [ ] {'long words ' * 9}{number}\n" for number in range(12)))
    (home.repo / "tasks").mkdir()
    for name, text in FILES.items():
        (home.repo / "tasks" / f"{name[:3]}-{'long-' * 9}{name[4:]}").write_text(
            text.replace("001-setup", f"001-{'long-' * 9}setup")
        )
    a_standing_loop(home, tasks="tasks" if kind == "folder" else "TODO.md", task_folder=kind == "folder")
    shown = tasks(home, *command, COLUMNS="40", NO_COLOR="1")
    assert shown.code == 0
    # What is there to be pasted is never cut.
    assert [line for line in shown.out.splitlines() if len(line) > 40 and ".md" not in line] == []


def test_escapes_in_a_task_do_not_reach_the_terminal(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [ ] red \x1b[31m alert \x07\n")
    assert "\x1b" not in tasks(home, "list", "-t", "TODO.md").out


def test_secrets_in_a_task_are_not_shown(listed: Home) -> None:
    word = listed.env["MY_API_KEY"] = "kq8Zr2Lw9Xv4Tn6B"
    (listed.repo / "TODO.md").write_text(f"- [ ] use {word} for it\n")
    shown = [tasks(listed, *words) for words in (["list"], ["list", "--json"], ["skip", "repo", "1"])]
    assert [each.code for each in shown] == [0, 0, 0]
    assert [each.out for each in shown if word in each.out or "for it" not in each.out] == []
    assert word not in (listed.folder() / "ledger.jsonl").read_text()


# -- add ---------------------------------------------------------------------------------------------------------------


def test_a_task_is_added_as_a_box_and_the_file_stays_what_it_was(listed: Home) -> None:
    path = listed.repo / "TODO.md"
    path.write_bytes(b"\xef\xbb\xbf" + TODO.replace("\n", "\r\n").encode().rstrip())
    path.chmod(0o640)
    answer = tasks(listed, "add", "repo", "überprüfen", "and ship it")
    assert answer.out.splitlines() == [
        "  Added as task 5 to TODO.md, line 7.",
        "  Continue: bydawn resume repo",
    ]
    added = "\r\n- [ ] überprüfen and ship it".encode()
    assert path.read_bytes() == b"\xef\xbb\xbf" + TODO.replace("\n", "\r\n").encode().rstrip() + added
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in listed.repo.iterdir() if each.name.endswith(".tmp")] == []
    assert stands(listed) == ["done", "next", "open", "open", "open"]


def test_a_checklist_behind_a_link_stays_behind_it(listed: Home) -> None:
    (listed.repo / "docs").mkdir()
    (listed.repo / "TODO.md").rename(listed.repo / "docs/list.md")
    (listed.repo / "TODO.md").symlink_to("docs/list.md")
    assert tasks(listed, "add", "repo", "more").code == 0
    assert (listed.repo / "TODO.md").is_symlink()
    assert (listed.repo / "docs/list.md").read_text() == TODO + "- [ ] more\n"


def test_a_task_is_added_to_a_folder_as_a_file_of_its_own(filed: Home) -> None:
    answer = tasks(filed, "add", "repo", "Größe ändern")
    assert "Added as task 4: tasks/004-größe-ändern.md" in answer.out
    assert (filed.repo / "tasks/004-größe-ändern.md").read_text() == "# Größe ändern\n"
    assert sorted(os.listdir(filed.repo / "tasks")) == [*FILES, "004-größe-ändern.md"]


@pytest.mark.parametrize("text", ["", "  ", "two\nlines", "a\tb", "\x1b[2J", "\u202eturned"])
@pytest.mark.parametrize("kind", ["listed", "filed"])
def test_what_is_no_task_is_not_added(request: pytest.FixtureRequest, kind: str, text: str) -> None:
    home: Home = request.getfixturevalue(kind)
    before = {path: path.read_bytes() for path in home.repo.rglob("*.md")}
    answer = tasks(home, "add", "repo", text)
    assert (answer.code, answer.out) == (2, "")
    assert is_error(answer.err)
    assert {path: path.read_bytes() for path in home.repo.rglob("*.md")} == before


def test_what_is_added_while_a_round_runs_is_asked_back_and_accepted(home: Home) -> None:
    """By a command, and by hand: the agent then writes the list that it had read before."""
    (path := home.repo / "TODO.md").write_text("- [ ] one\n")
    gate, opened = home.gate()
    stale: Step = {"write": {"path": "TODO.md", "text": "- [x] one\n"}}
    work: list[Step] = [{"append": {"path": "log", "text": "x"}}, OK]
    process = home.start_run(home.rounds([{"say": "hi"}, gate, stale, *work], work), "-t", "TODO.md")
    home.await_round(1)
    assert tasks(home, "add", "repo", "two").out == "  Added as task 2 to TODO.md, line 2.\n"
    path.write_text(path.read_text() + "- [ ] three\n")
    # The first may be recorded twice before that: as a command asked for it, and as it stands in the file.
    wait_for(lambda: "three" in str(home.facts("tasks.added")))
    opened.touch()
    ended = said(process)
    assert (ended.code, home.outcomes()) == (3, ["ok", "ok"])
    assert "TODO.md lost 2 lines that were added while a round ran: “- [ ] two”, “- [ ] three”" in ended.out
    asked = (home.folder() / "rounds/0002/prompt.md").read_text()
    assert "Lines missing from TODO.md" in asked
    assert "- [ ] two\n- [ ] three\n" in asked
    assert "bydawn resume repo --accept" in home.bydawn("show").out
    assert home.bydawn("resume", "--accept", "--plain").code == 0


def test_what_is_added_by_hand_just_before_the_agent_writes_its_older_copy_is_asked_back(home: Home) -> None:
    (path := home.repo / "TODO.md").write_text("- [ ] one\n")
    gate, opened = home.gate()
    late: Step = {"run": ["sh", "-c", "sleep 0.2; printf '%s\\n' '- [x] one' > TODO.md"]}
    work: list[Step] = [{"append": {"path": "log", "text": "x"}}, OK]
    process = home.start_run(home.rounds([{"say": "hi"}, gate, late, *work], work), "-t", "TODO.md")
    home.await_round(1)
    path.write_text("- [ ] one\n- [ ] two\n")
    opened.touch()
    ended = said(process)
    assert (ended.code, home.outcomes()) == (3, ["ok", "ok"])
    assert "TODO.md lost a line that was added while a round ran: “- [ ] two”" in ended.out


def test_a_list_that_an_agent_does_not_write_whole_is_read_again_before_a_command_refuses_it(home: Home) -> None:
    (path := home.repo / "TODO.md").write_text("- [ ] one\n")
    gate, opened = home.gate()
    work: Step = {"write": {"path": "work", "text": "x"}}
    process = home.start_run(home.rounds([{"say": "hi"}, gate, work, DONE]), "-t", "TODO.md")
    home.await_round(1)
    path.write_text("")
    adding = home.start("tasks", "add", "repo", "two")
    time.sleep(0.5)
    path.write_text("- [ ] one\n")
    assert said(adding).out == "  Added as task 2 to TODO.md, line 2.\n"
    path.write_text("")
    assert "TODO.md no longer has any tasks" in home.bydawn("tasks", "list").out, "for a second, and no longer"
    path.write_text("- [x] one\n- [x] two\n")
    opened.touch()
    assert said(process).code == 0


def test_a_comment_is_no_task_for_a_folder(filed: Home) -> None:
    answer = tasks(filed, "add", "repo", "<!-- later -->")
    assert answer.code == 2
    assert "is empty" in answer.err
    assert sorted(os.listdir(filed.repo / "tasks")) == [*FILES]


def test_a_finished_loop_s_list_can_grow_for_another_loop(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [x] a\n")
    a_standing_loop(home, run_started(), stopped(End.COMPLETE))
    answer = tasks(home, "add", "repo", "b")
    assert answer.code == 0
    assert (
        "repo is already complete. For the new task, start a new one: `bydawn run --new 'fix it' -a demo -t TODO.md`"
        in answer.out
    )


# -- skip and reopen ---------------------------------------------------------------------------------------------------


def test_a_task_is_skipped_and_opened_again_in_the_ledger_and_not_in_its_file(listed: Home) -> None:
    answer = tasks(listed, "skip", "repo", "2")
    assert answer.out.splitlines() == [
        "  Skipped: 2 “Größe ändern”",
        "  Continue: bydawn resume repo",
    ]
    assert stands(listed) == ["done", "skipped", "next", "open"]
    assert tasks(listed, "skip", "repo", "2").out == "  2 “Größe ändern” is already skipped; nothing was changed.\n"
    assert "Reopened" in tasks(listed, "reopen", "repo", "größe").out
    assert stands(listed) == ["done", "next", "open", "open"]
    assert "is already open; nothing was changed." in tasks(listed, "reopen", "repo", "2").out
    assert words_about_tasks(listed) == [("Größe ändern", "skipped"), ("Größe ändern", "open")]
    assert (listed.repo / "TODO.md").read_text() == TODO
    assert listed.status()["state"] == "paused"


# how a person names a task · its number
NAMES = [
    ("4", 4),
    ("set it", 1),
    ("SET IT UP", 1),
    ("größe", 2),
    ("Gro\u0308ße", 2),  # the same letters in pieces
    ("rename the k", 3),
    ("rename  the\u00a0files", 4),
]


@pytest.mark.parametrize(("word", "number"), NAMES)
def test_a_task_is_known_by_its_number_or_the_beginning_of_its_text(listed: Home, word: str, number: int) -> None:
    (listed.repo / "TODO.md").write_text(TODO.replace("[x]", "[ ]"))
    tasks(listed, "skip", "repo", word)
    assert [index for index, stand in enumerate(stands(listed), 1) if stand == "skipped"] == [number]


def test_a_task_is_known_by_its_id(listed: Home) -> None:
    id_ = as_json(listed)["tasks"][2]["id"]
    tasks(listed, "skip", "repo", id_)
    assert stands(listed)[2] == "skipped"


@pytest.mark.parametrize(("word", "id_"), [("3", "003-docs"), ("002-BUILD", "002-build")])
def test_a_task_of_a_folder_is_known_by_its_name(filed: Home, word: str, id_: str) -> None:
    tasks(filed, "skip", "repo", word)
    assert [task["id"] for task in as_json(filed)["tasks"] if task["status"] == "skipped"] == [id_]


def test_a_number_with_noughts_is_nobodys_and_the_files_that_begin_so_are_named(filed: Home) -> None:
    refused = tasks(filed, "skip", "repo", "002")
    assert (refused.code, "similar: 2 “Build it”" in refused.err) == (2, True), refused
    assert "skipped" not in stands(filed)


def test_a_number_is_the_place_in_the_list_whatever_files_are_called(home: Home) -> None:
    (home.repo / "tasks").mkdir()
    for name in ("2", "3", "7"):
        (home.repo / f"tasks/{name}.md").write_text(f"# Task {name}\n")
    a_standing_loop(home, tasks="tasks", task_folder=True)
    assert tasks(home, "skip", "repo", "3").code == 0
    assert stands(home) == ["next", "open", "skipped"]
    assert tasks(home, "skip", "repo", "task 3").code == 0
    assert stands(home) == ["next", "skipped", "skipped"]


def test_a_name_that_fits_several_tasks_or_none_is_refused_and_says_which_there_are(listed: Home) -> None:
    several = tasks(listed, "skip", "repo", "1", "rename")
    assert several.code == 2
    assert "'rename' matches 2 tasks" in several.err
    assert "3 “rename the keys”, 4 “rename the files”" in several.err
    none = tasks(listed, "skip", "repo", "2", "renam the kays")
    assert none.code == 2
    assert "there is no task 'renam the kays'" in none.err
    assert "similar: 3 “rename the keys”" in none.err
    assert tasks(listed, "skip", "repo", "99").code == 2
    assert tasks(listed, "skip", "repo", "0").code == 2
    assert tasks(listed, "skip", "repo", "…").code == 2
    assert words_about_tasks(listed) == []  # nothing at all where one of them is not clear


def test_several_tasks_are_skipped_at_once_and_each_only_once(listed: Home) -> None:
    answer = tasks(listed, "skip", "repo", "2", "rename the k", "2")
    assert answer.out.count("Skipped") == 2
    assert stands(listed) == ["done", "skipped", "skipped", "next"]


def test_what_is_done_need_not_be_skipped(listed: Home) -> None:
    assert "is already done; nothing was changed." in tasks(listed, "skip", "repo", "1").out
    assert words_about_tasks(listed) == []


def test_a_ticked_box_is_opened_in_its_file_and_nowhere_else(listed: Home) -> None:
    answer = tasks(listed, "reopen", "repo", "2", "1")
    assert answer.code == 2
    assert "task 1 is ticked in TODO.md" in answer.err
    assert "run `bydawn tasks edit repo` and write `[ ]` in line 3" in answer.err
    assert words_about_tasks(listed) == []


def test_a_done_task_of_a_folder_is_opened_again(home: Home) -> None:
    (home.repo / "tasks").mkdir()
    (home.repo / "tasks/001-setup.md").write_text("# Set it up\n")
    done = TaskSettled(task="001-setup", text="Set it up", status=TaskStatus.DONE, by="task-done")
    a_standing_loop(home, run_started(), done, stopped(End.PAUSED), tasks="tasks", task_folder=True)
    assert stands(home) == ["done"]
    tasks(home, "reopen", "repo", "1")
    assert stands(home) == ["next"]


def test_what_waits_for_a_skipped_task_is_named(filed: Home) -> None:
    assert "! 002-build will not run" in tasks(filed, "skip", "repo", "1").out
    tasks(filed, "reopen", "repo", "1")
    assert "will not run" not in tasks(filed, "skip", "repo", "1", "2").out


def test_a_running_loop_is_asked_through_its_inbox(home: Home) -> None:
    (home.repo / "TODO.md").write_text(TODO)
    a_standing_loop(home)
    id_ = as_json(home)["tasks"][1]["id"]
    ledger = LoopLedger(LoopFolder(home.folder()), print, str)
    ledger.append(run_started())
    ledger.append(started(1, task="Größe ändern", task_id=id_))
    ledger.close()
    with a_worker(home):
        answer = tasks(home, "skip", "repo", "2", "3")
        again = tasks(home, "reopen", "repo", "3")
    assert answer.out.splitlines() == [
        "  Skipped: 2 “Größe ändern”",
        "    round 1 is working on it and will finish first",
        "  Skipped: 3 “rename the keys”",
    ]
    assert "Reopened" in again.out
    assert len(words_about_tasks(home)) == 3
    assert not [*(home.folder() / "inbox").iterdir()]


def test_a_loop_goes_on_without_what_was_skipped_while_it_ran(home: Home) -> None:
    gate, opened = home.gate()
    home.tasks(2)
    script = home.rounds([gate, {"tick": "task 1"}, {"write": {"path": "work", "text": "1"}}, OK], [DONE])
    process = home.start_run(script, "-t", "TODO.md")
    home.await_round(1)
    assert "Skipped: 2 “task 2”" in tasks(home, "skip", "repo", "task 2").out
    opened.touch()
    assert said(process).code == 0
    assert home.status()["state"] == "unverified"
    assert (home.repo / "TODO.md").read_text() == "- [x] task 1\n- [ ] task 2\n"


def test_a_crashed_loop_takes_a_word_about_its_tasks(home: Home) -> None:
    (home.repo / "TODO.md").write_text(TODO)
    a_standing_loop(home, run_started(), started(1))
    assert "Skipped: 2 “Größe ändern”" in tasks(home, "skip", "repo", "2").out
    assert home.status()["state"] == "crashed"
    assert home.facts()[-1]["type"] == "task.settled"


@pytest.mark.parametrize("end", [End.COMPLETE, End.UNVERIFIED])
def test_a_finished_loop_s_tasks_cannot_be_skipped_or_opened(home: Home, end: End) -> None:
    (home.repo / "TODO.md").write_text(TODO)
    a_standing_loop(home, run_started(), stopped(end))
    for command in ("skip", "reopen"):
        answer = tasks(home, command, "repo", "2")
        assert answer.code == 2
        assert f"is already {end}" in answer.err
    assert words_about_tasks(home) == []


@pytest.mark.parametrize("command", [["add", "repo", "x"], ["skip", "repo", "2"], ["reopen", "repo", "2"], ["edit"]])
def test_an_agent_may_look_and_nothing_else(listed: Home, command: list[str]) -> None:
    answer = tasks(listed, *command, BYDAWN_COOKIE="abc", EDITOR="false")
    assert (answer.code, answer.out) == (2, "")
    assert "inside a round" in answer.err
    assert (listed.repo / "TODO.md").read_text() == TODO
    assert words_about_tasks(listed) == []
    assert tasks(listed, "list", BYDAWN_COOKIE="abc").code == 0


# -- edit --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def editor(home: Home) -> Path:
    """An editor that notes what it is given and adds a box."""
    path, log = home.root / "editor", home.root / "editor.log"
    path.write_text(f'#!/bin/sh\necho "$1" >> {log}\necho "- [~] half" >> "$1"\n')
    path.chmod(0o755)
    home.env["EDITOR"] = shlex.quote(str(path))
    return log


def test_the_checklist_of_a_loop_is_opened_and_looked_at_afterwards(listed: Home, editor: Path) -> None:
    answer = tasks(listed, "edit", "repo", "rename the k", "-C", "/")
    assert answer.code == 0
    assert editor.read_text() == f"{listed.repo}/TODO.md\n"
    assert "“rename the keys” is in line 5." in answer.out
    assert "! TODO.md, line 7: `[~]` is neither open nor done" in answer.out


def test_of_a_folder_the_file_of_one_task_is_opened(filed: Home, editor: Path) -> None:
    which = tasks(filed, "edit", "repo")
    assert which.code == 2
    assert "1 “Set it up”, 2 “Build it”, 3 “Write the docs”" in which.err
    assert tasks(filed, "edit", "repo", "build").code == 0
    assert editor.read_text() == f"{filed.repo}/tasks/002-build.md\n"


def test_without_a_loop_the_file_of_the_settings_is_opened(home: Home, editor: Path) -> None:
    answer = tasks(home, "edit")
    assert answer.code == 0
    assert editor.read_text() == f"{home.repo}/TODO.md\n"
    assert "bydawn config set tasks TODO.md" in answer.out


def test_a_damaged_checklist_can_still_be_opened(listed: Home, editor: Path) -> None:
    (listed.repo / "TODO.md").write_text("")
    answer = tasks(listed, "edit", "repo")
    assert answer.code == 0
    wait_for(editor.exists)
    assert "! TODO.md has no tasks" in answer.out


def test_a_checklist_that_is_no_text_is_opened_as_it_is(listed: Home, editor: Path) -> None:
    (listed.repo / "TODO.md").write_bytes(b"- [ ] caf\xe9\n")
    for command in (["tasks", "edit", "repo"], ["edit", "tasks"]):
        assert listed.bydawn(*command).code == 0
    assert editor.read_text() == f"{listed.repo}/TODO.md\n" * 2
    assert (listed.repo / "TODO.md").read_bytes() == b"- [ ] caf\xe9\n" + b"- [~] half\n" * 2


def a_loop_that_lost_its_list(home: Home, command: str) -> None:
    tasks = home.tasks(2)
    assert home.run(home.rounds([{"run": ["sh", "-c", command]}, OK]), "-t", tasks).code == 3


@pytest.mark.usefixtures("editor")
def test_a_checklist_that_a_round_removed_is_put_back_for_its_person(home: Home) -> None:
    a_loop_that_lost_its_list(home, "rm TODO.md")
    answer = tasks(home, "edit", "repo")
    assert answer.code == 0
    assert "TODO.md was missing and is restored, as round 1 found it." in answer.out
    assert (home.repo / "TODO.md").read_text() == "- [ ] task 1\n- [ ] task 2\n- [~] half\n"
    assert "is restored" not in tasks(home, "edit", "repo").out


@pytest.mark.usefixtures("editor")
def test_of_a_checklist_that_a_round_cut_down_the_earlier_text_can_be_had(home: Home) -> None:
    a_loop_that_lost_its_list(home, "echo '- [ ] task 1' > TODO.md")
    answer = tasks(home, "edit", "repo")
    assert "TODO.md as round 1 found it:" in answer.out
    [command] = [line.strip() for line in answer.out.splitlines() if "git --git-dir" in line]
    shown = subprocess.run(command, shell=True, capture_output=True, text=True)  # noqa: S602 - as a person pastes it
    assert shown.stdout == "- [ ] task 1\n- [ ] task 2\n"
    assert (home.repo / "TODO.md").read_text() == "- [ ] task 1\n- [~] half\n"


@pytest.mark.usefixtures("editor")
def test_what_a_person_takes_out_of_a_checklist_is_theirs(home: Home) -> None:
    agent = home.rounds([OK])
    assert home.run(agent, "-t", home.tasks(2), "--once").code == 4
    (home.repo / "TODO.md").write_text("- [ ] task 1\n")
    assert "git" not in tasks(home, "edit", "repo").out


def test_the_name_of_a_list_is_spelled_out(home: Home) -> None:
    (home.repo / "to\u202edo.md").write_text("- [ ] one\n")
    home.run(home.rounds([OK]), "-t", "to\u202edo.md", "--once")
    assert "to\\u202edo.md  1 open" in home.bydawn("tasks", "list").out
