"""Odd folders and odd files, for all six commands: each works, or says in three parts what, why and what to do."""

import os
import re
import shutil
import signal

import pytest

from driving import Home, Said, is_error, said, tree_of, wait_for, worker_of
from program.six import Six, each_of_six
from program.terminal_driver import Terminal
from program.test_hostile import NASTY, is_harmless

NAMES = {"words": "--my own  маг\u202eазин's $(true)", "escapes": f"{NASTY}\ntwo"}
AS_OTHERS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()  # root may write anywhere


def in_a_folder(home: Home, name: str, command: str) -> Six:
    """Its loop in a repository of this name; one turn would end it."""
    home.repo = home.repo.rename(home.root / name)
    six = Six(home, command)
    six.plays(six.ends())
    six.ready()
    return six


def is_answered(said: Said) -> bool:
    """It went well, or says what is wrong; nothing spoils the screen."""
    harmless = is_harmless(said.out + said.err) and "internal error" not in said.err
    told = is_error(said.err) or (said.code == 3 and "once that is fixed" in said.out)
    return harmless and "Traceback" not in said.out + said.err and (said.code == 0 or told)


@each_of_six
@pytest.mark.parametrize("name", NAMES)
def test_a_folder_may_have_any_name(home: Home, command: str, name: str) -> None:
    """The loop ends there, and whatever is said of it leaves the screen as it is."""
    six = in_a_folder(home, NAMES[name], command)
    ended = six(*six.first)
    assert (ended.code, is_answered(ended), "last.txt" in six.files) == (0, True, True), ended
    for words in six.looks if name == "escapes" else ():
        shown = Terminal(home, *words, command=command).end()
        assert is_harmless(shown.text), (words, shown)


def test_a_command_that_names_an_odd_folder_works_as_it_was_printed(home: Home) -> None:
    """In a terminal elsewhere, which a name with escapes in it does not reach."""
    six = in_a_folder(home, f"{NASTY}\nit's", "bydawn")
    six.worktree = True
    assert six(*six.first).code == 0
    elsewhere = home.root / "elsewhere"
    elsewhere.mkdir()
    shown = Terminal(home, "show", "night", cwd=elsewhere).end().text
    assert is_harmless(shown), shown
    [command] = re.findall("git -C .* merge bydawn/night", shown)
    pasted = said(home.start(before=["bash", "-c", command], cwd=elsewhere))
    assert (pasted.code, (home.repo / "last.txt").exists()) == (0, True), (command, pasted)


@each_of_six
def test_a_byte_order_mark_and_the_ends_of_lines_of_windows_are_no_obstacle(home: Home, command: str) -> None:
    six = in_a_folder(home, "shop", command)
    if command != "codex-autorunner":
        (home.repo / "TODO.md").write_text("# Tasks\n- [ ] one\n")
        six.plays({"tick": "TODO.md", **six.ends()})
    names = ("TODO.md", "PRD.md", ".codex-autorunner/config.yml", "codex-loop.yaml", "tasks/001-one.md")
    for path in (home.repo / name for name in names if (home.repo / name).exists()):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    if command == "codex-loop":
        six.project.agree()
    more = {"bydawn": ("-t", "TODO.md"), "waylon-smithers": ("--todo-file", "TODO.md")}
    ended = six(*six.first, *more.get(command, ()))
    assert (ended.code, "last.txt" in six.files) == (0, True), ended


@each_of_six
@pytest.mark.parametrize("what", ["no home", "no git", "read-only"])
def test_where_something_is_missing_it_works_or_says_what_to_do(home: Home, command: str, what: str) -> None:
    six, env = in_a_folder(home, "shop", command), home.env
    before: tuple[str, ...] = ()
    match what:
        case "no home":
            home.env = {name: value for name, value in env.items() if name != "HOME" and not name.startswith("XDG_")}
        case "no git":
            shutil.rmtree(home.repo / ".git")
        case _:
            before = AS_OTHERS
            for path in (home.repo, *(path for path in home.repo.rglob("*") if path.is_dir())):
                path.chmod(0o555)
    tree = tree_of(home.repo)
    ended = six(*six.first, before=before)
    home.env = env
    for path in (home.repo, *(path for path in home.repo.rglob("*") if path.is_dir())):
        path.chmod(0o755)
    assert is_answered(ended), ended
    assert tree.keys() <= tree_of(home.repo).keys()


@each_of_six
def test_of_two_that_are_started_at_once_one_works_and_the_other_says_so(home: Home, command: str) -> None:
    six = in_a_folder(home, "shop", command)
    six.plays({**six.ends(), "sleep": 1})
    both = [said(each) for each in [six.start(*six.first) for _ in range(2)]]
    assert all(map(is_answered, both)), both
    assert 0 in [each.code for each in both]
    assert "last.txt" in six.files


@each_of_six
def test_who_comes_right_after_a_kill_is_not_turned_away(home: Home, command: str) -> None:
    """For a moment the rest of the killed one is still there."""
    six = in_a_folder(home, "shop", command)
    six.plays({"write": {"one.txt": "x"}, "sh": "sleep 60"}, six.ends())
    process = six.start(*six.first)
    worker = worker_of(process)
    wait_for(lambda: "one.txt" in six.files)
    os.kill(worker, signal.SIGKILL)
    ended = six(*six.again)
    assert (ended.code, "already" in ended.err) == (0, False), ended
    assert said(process).code != 0
