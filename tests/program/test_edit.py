"""`edit`: the right file in the person's own editor, and nothing of theirs is lost."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from driving import Home, Said
from program.terminal_driver import answered

USUAL = [
    ("todo", "tasks", "TODO.md"),
    ("tasks", "tasks", "TODO.md"),
    ("progress", "progress", "PROGRESS.md"),
    ("opinions", "opinions", "OPINIONS.md"),
    ("prompt", "prompt", "PROMPT.md"),
]
WORDS = [word for word, _, _ in USUAL]


class Editor:
    """A small program that notes what it is given, and then does something to `$file`."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.path = home.root / "my editor"
        self.log = home.root / "editor.log"
        self.does("")
        home.env["EDITOR"] = shlex.quote(str(self.path))

    def does(self, what: str) -> None:
        lines = ("#!/bin/sh", f'printf "%s\\n" "$@" >> {self.log}', "for file; do :; done", what)
        self.path.write_text("\n".join([*lines, ""]))
        self.path.chmod(0o755)

    def writes(self, text: str) -> None:
        self.does(f"printf '%s' {shlex.quote(text)} > \"$file\"")

    @property
    def given(self) -> list[str]:
        """Every word of every call."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def opened(self) -> list[str]:
        """The names of the files; settings are opened as a copy."""
        return [Path(word).name for word in self.given]


@pytest.fixture
def editor(home: Home) -> Editor:
    return Editor(home)


def edit(home: Home, *words: str, **options: Any) -> Said:
    return home.bydawn("edit", *words, seconds=20, **options)


def everything(home: Home) -> dict[str, str]:
    """Every name below the home, with what stands in it; the editor's own log does not count."""
    paths = (path for path in home.root.rglob("*") if ".git" not in path.parts and path.name != "editor.log")
    return {str(path): path.read_bytes().hex() if path.is_file() else "" for path in paths}


def user_path(home: Home) -> Path:
    return home.root / "home/.config/bydawn/config.toml"


def is_inert(home: Home, key: str) -> bool:
    return bool(json.loads(home.bydawn("config", "show", "--json").out)["settings"][key]["inert"])


# -- documents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "key", "name"), USUAL)
def test_a_word_opens_its_usual_file_and_says_how_loops_get_to_know_it(
    home: Home, editor: Editor, word: str, key: str, name: str
) -> None:
    editor.writes("- [ ] something\n")
    said = edit(home, word)
    assert (said.code, said.err) == (0, "")
    assert editor.given == [str(home.repo / name)]
    assert (home.repo / name).read_text() == "- [ ] something\n"
    mark = "@" if key == "prompt" else ""
    assert said.out.endswith(f": bydawn config set {key} {mark}{name}\n")
    assert home.bydawn("config", "set", key, f"{mark}{name}").code == 0
    assert edit(home, word).out == ""  # now they know it
    assert editor.given == [str(home.repo / name)] * 2


@pytest.mark.parametrize("word", WORDS)
def test_where_nothing_was_saved_nothing_is_said_and_nothing_is_there(home: Home, editor: Editor, word: str) -> None:
    before = everything(home)
    assert edit(home, word) == Said(0, "", "")
    assert len(editor.given) == 1
    assert everything(home) == before


@pytest.mark.parametrize(("word", "key"), [(word, key) for word, key, _ in USUAL])
def test_a_word_opens_the_file_that_the_settings_name(home: Home, editor: Editor, word: str, key: str) -> None:
    (home.repo / "docs").mkdir()
    mark = "@" if key == "prompt" else ""
    (home.repo / "bydawn.toml").write_text(f'{key} = "{mark}docs/work of mine.md"\n')
    editor.writes("words\n")
    assert edit(home, word) == Said(0, "", "")
    assert editor.given == [str(home.repo / "docs/work of mine.md")]
    variable: dict[str, Any] = {f"BYDAWN_{key.upper()}": f"{mark}README.md"}
    edit(home, word, **variable)
    assert editor.given[1] == str(home.repo / "README.md")


def test_another_folder_s_file_is_opened_with_cd(home: Home, editor: Editor) -> None:
    (home.root / "other").mkdir()
    assert edit(home, "todo", "-C", "../other").code == 0
    assert editor.given == [str(home.root / "other/TODO.md")]


def test_a_prompt_in_the_settings_themselves_is_not_taken_for_a_file(home: Home, editor: Editor) -> None:
    (home.repo / "bydawn.toml").write_text('\nprompt = "README.md"\n')
    said = edit(home, "prompt")
    assert (said.code, said.out) == (2, "")
    assert "bydawn.toml:2" in said.err
    assert "bydawn edit config" in said.err
    assert editor.given == []


# what a setting names · words of the error
OUTSIDE = [
    ("../outside.md", "not in the workspace"),
    ("/etc/hostname", "not in the workspace"),
    ("link.md", "not in the workspace"),
    ("dangling.md", "not in the workspace"),
    ("docs/../../outside.md", "not in the workspace"),
    ("docs", "is a folder"),
]


@pytest.mark.parametrize(("name", "words"), OUTSIDE)
@pytest.mark.parametrize("word", ["tasks", "prompt"])
def test_a_document_outside_of_the_workspace_is_not_opened(
    home: Home, editor: Editor, word: str, name: str, words: str
) -> None:
    (home.root / "outside.md").write_text("not yours")
    (home.repo / "docs").mkdir()
    (home.repo / "link.md").symlink_to("../outside.md")
    (home.repo / "dangling.md").symlink_to("../nothing-there.md")
    (home.repo / "bydawn.toml").write_text(f'{word} = "{"@" if word == "prompt" else ""}{name}"\n')
    editor.writes("changed")
    before = everything(home)
    said = edit(home, word)
    assert (said.code, said.out) == (2, "")
    assert words in said.err.splitlines()[0]
    assert editor.given == []
    assert everything(home) == before


# -- editors -----------------------------------------------------------------------------------------------------------


def test_an_editor_may_have_arguments_and_a_path_with_a_space(home: Home, editor: Editor) -> None:
    said = edit(home, "todo", EDITOR=f"{shlex.quote(str(editor.path))} --wait 'two words'")
    assert said.code == 0
    assert editor.given == ["--wait", "two words", str(home.repo / "TODO.md")]


@pytest.mark.parametrize("said", [None, "", "  "])
def test_without_an_editor_vi_is_opened(home: Home, editor: Editor, said: str | None) -> None:
    (home.root / "bin").mkdir()
    (home.root / "bin/vi").symlink_to(editor.path)
    home.env["PATH"] = f"{home.root}/bin:{home.env['PATH']}"
    del home.env["EDITOR"]
    assert edit(home, "todo", **({} if said is None else {"EDITOR": said})).code == 0
    assert editor.given == [str(home.repo / "TODO.md")]


# EDITOR · words of the error
NO_EDITORS = [
    ("no-such-editor --wait", "cannot start the editor 'no-such-editor --wait'"),
    ("/etc/hostname", "cannot start the editor"),
    ("/", "cannot start the editor"),
    ("'nano", "cannot start the editor"),
    ("''", "cannot start the editor"),
]


@pytest.mark.parametrize("word", ["todo", "config"])
@pytest.mark.parametrize(("name", "words"), NO_EDITORS)
def test_an_editor_that_cannot_be_started_is_named_and_so_is_the_file(
    home: Home, word: str, name: str, words: str
) -> None:
    before = everything(home)
    said = edit(home, word, EDITOR=name)
    assert (said.code, said.out) == (2, "")
    assert words in said.err.splitlines()[0]
    assert str(home.repo / ("TODO.md" if word == "todo" else "bydawn.toml")) in said.err
    assert everything(home) == before


@pytest.mark.parametrize(("ends", "words"), [("exit 3", "exited with code 3"), ("kill -9 $$", "exited with code -9")])
@pytest.mark.parametrize("word", ["todo", "config"])
def test_an_editor_that_fails_is_told_of_and_what_it_saved_can_be_found(
    home: Home, editor: Editor, word: str, ends: str, words: str
) -> None:
    editor.does(f'echo "# half of it" > "$file"; {ends}')
    said = edit(home, word)
    assert (said.code, said.out) == (2, "")
    assert words in said.err.splitlines()[0]
    [hint] = [line.partition(": ")[2] for line in said.err.splitlines() if line.startswith(" hint:")]
    named = [Path(each.strip("'`,;:")) for each in hint.split() if "/" in each]
    assert [path.read_text() for path in named if path.exists()] == ["# half of it\n"]


@pytest.mark.parametrize("words", [["nothing"], ["todo", "--user"], ["todo", "-C", "nowhere"]], ids="-".join)
def test_what_is_no_document_opens_no_editor(home: Home, editor: Editor, words: list[str]) -> None:
    said = edit(home, *words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert editor.given == []


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["config"], ["config", "--user"]], ids="-".join)
def test_settings_to_which_nothing_was_written_leave_nothing_behind(
    home: Home, editor: Editor, words: list[str]
) -> None:
    before = everything(home)
    assert edit(home, *words) == Said(0, "", "")
    assert editor.opened == ["config.toml" if "--user" in words else "bydawn.toml"]
    assert everything(home) == before
    editor.does("exit 1")
    before = everything(home)
    assert edit(home, *words).code == 2
    assert everything(home) == before


def test_an_editor_that_takes_the_file_away_is_no_mistake(home: Home, editor: Editor) -> None:
    before = everything(home)
    editor.does('rm "$file"')
    said = edit(home, "config")
    assert (said.code in (0, 2), "internal error" in said.err, "Traceback" in said.err) == (True, False, False)
    editor.does("")
    assert everything(home) == before


def test_what_a_new_file_suggests_is_understood_once_the_marks_are_taken_away(home: Home, editor: Editor) -> None:
    editor.does(r'sed -i "s/^# \([a-z_]* = \)/\1/" "$file"')
    assert edit(home, "config") == Said(0, "", "")
    text = (home.repo / "bydawn.toml").read_text()
    assert text.count("\n#") == 0
    assert home.bydawn("config", "get", "tasks").out == "TODO.md\n"


def test_settings_that_are_saved_are_kept_and_trusted_by_that_act(home: Home, editor: Editor) -> None:
    editor.writes('agent = "demo"\n')
    assert edit(home, "config") == Said(0, "", "")
    assert (home.repo / "bydawn.toml").read_text() == 'agent = "demo"\n'
    assert not is_inert(home, "agent")


def test_settings_of_others_are_not_trusted_because_one_looked_at_them(home: Home, editor: Editor) -> None:
    (home.repo / "bydawn.toml").write_text('agent = "demo"\n')
    editor.does('echo "rounds = 5" >> "$file"')
    said = edit(home, "config")
    assert said.code == 0
    assert f"bydawn trust {home.repo}" in said.out
    assert is_inert(home, "agent")


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_settings_of_others_that_were_edited_are_shown_and_asked_about(
    home: Home, editor: Editor, answer: str
) -> None:
    (home.repo / "bydawn.toml").write_text('agent = "demo"\n')
    editor.does('echo "rounds = 5" >> "$file"')
    shown = answered(home, f"{answer}\n", "edit", "config")
    assert (shown.code, "agent          demo" in shown.text) == (0, True), shown
    assert is_inert(home, "agent") is (answer == "n")


@pytest.mark.parametrize("words", [["config"], ["config", "--user"]], ids="-".join)
@pytest.mark.parametrize(
    ("text", "error"),
    [("rounds = 5\n\nround = 6\n", ":3: unknown setting 'round'"), ("rounds = 5\noops", ":2: invalid TOML")],
)
def test_settings_that_are_saved_wrong_are_complained_about_and_kept(
    home: Home, editor: Editor, text: str, error: str, words: list[str]
) -> None:
    """A-019; and nobody's typing is thrown away."""
    editor.writes(text)
    said = edit(home, *words)
    path = user_path(home) if "--user" in words else home.repo / "bydawn.toml"
    assert (said.code, said.out) == (2, "")
    assert f"{path.name}{error}" in said.err.splitlines()[0]
    assert path.read_text() == text


@pytest.mark.parametrize("words", [["config"], ["config", "--user"]], ids="-".join)
def test_settings_that_are_broken_can_be_opened_to_mend_them(home: Home, editor: Editor, words: list[str]) -> None:
    path = user_path(home) if "--user" in words else home.repo / "bydawn.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("oops\n")
    editor.writes("rounds = 5\n")
    assert edit(home, *words) == Said(0, "", "")
    assert home.bydawn("config", "get", "rounds").out == "5\n"


def test_where_a_pyproject_holds_the_settings_it_is_the_one_that_is_opened(home: Home, editor: Editor) -> None:
    (home.repo / "pyproject.toml").write_text("[tool.bydawn]\nrounds = 5\n")
    editor.does('echo "for = 60" >> "$file"')
    assert edit(home, "config") == Said(0, "", "")
    assert editor.opened == ["pyproject.toml"]
    assert (home.repo / "pyproject.toml").read_text() == "[tool.bydawn]\nrounds = 5\nfor = 60\n"
    assert not (home.repo / "bydawn.toml").exists()


def test_settings_that_were_emptied_are_empty(home: Home, editor: Editor) -> None:
    (home.repo / "bydawn.toml").write_text("rounds = 5\n")
    editor.writes("")
    assert edit(home, "config") == Said(0, "", "")
    assert home.bydawn("config", "get", "rounds").out == "30\n"


def test_settings_that_were_changed_by_somebody_else_meanwhile_are_not_written_over(home: Home, editor: Editor) -> None:
    (home.repo / "bydawn.toml").write_text("rounds = 5\n")
    editor.does(f'echo "rounds = 6" > {home.repo}/bydawn.toml; echo "rounds = 7" > "$file"')
    said = edit(home, "config")
    assert (said.code, said.out) == (2, "")
    assert (home.repo / "bydawn.toml").read_text() == "rounds = 6\n"
    [kept] = (home.root / "tmp").rglob("bydawn.toml")
    assert kept.read_text() == "rounds = 7\n"
    assert str(kept) in said.err


def test_settings_that_are_saved_in_another_encoding_are_complained_about_and_not_altered(
    home: Home, editor: Editor
) -> None:
    editor.does('printf \'agent = "caf\\351"\\n\' > "$file"')
    said = edit(home, "config")
    assert (said.code, said.out) == (2, "")
    assert "UTF-8" in said.err
    found = [*home.root.glob("repo/bydawn.toml"), *(home.root / "tmp").rglob("bydawn.toml")]
    assert [path.read_bytes() for path in found] == [b'agent = "caf\xe9"\n']


@pytest.mark.parametrize("target", ["../outside.toml", "../nothing-there.toml", "../no-folder/x.toml"])
def test_settings_outside_of_the_workspace_are_neither_opened_nor_made(home: Home, editor: Editor, target: str) -> None:
    (home.root / "outside.toml").write_text("")
    (home.repo / "bydawn.toml").symlink_to(target)
    editor.writes("rounds = 5\n")
    before = everything(home)
    assert edit(home, "config").code == 2
    assert editor.given == []
    assert everything(home) == before


def test_a_pipe_in_the_place_of_settings_is_not_opened(home: Home, editor: Editor) -> None:
    os.mkfifo(home.repo / "bydawn.toml")
    said = edit(home, "config")
    assert (said.code, said.out) == (2, "")
    assert "bydawn.toml" in said.err
    assert editor.given == []
