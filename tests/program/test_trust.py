"""Trust, asked for in a real terminal: who is asked, what an answer is good for, and what ends it (FAULTS 3.4)."""

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from driving import DONE, OK, Home, Said, is_error, said, wait_for
from program.terminal_driver import Shown, Terminal, answered

ASKED = "Do you trust this?"
CHECK = ": >> checked"
HASH = re.compile(r"--once ([0-9a-f]{32})")
SECRET = "correct-horse-battery-staple-42"  # noqa: S105 - so that there is one to look for
PEM = [f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj{number:02}" for number in range(3)]
KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", *PEM, "-----END PRIVATE KEY-----"])


def project(home: Home, folder: Path | None = None, **values: Any) -> Path:
    """Write the project's file; if nothing else is said, with an agent that is done and a check that leaves a trace."""
    script = home.root / "done.json"
    script.write_text(json.dumps({"rounds": [[DONE]]}))
    usual = {"agent": f"demo:{script}", "check": [CHECK], "prompt": "do it"}
    rows = {key: value for key, value in (usual | values).items() if value is not None}
    path = (folder or home.repo) / "bydawn.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items()))
    return path


def trusted(home: Home, *arguments: str) -> Shown:
    """Say yes."""
    shown = answered(home, "y\n", "trust", *arguments)
    assert shown.code == 0, shown
    return shown


def run(home: Home, *arguments: str, **options: Any) -> Said:
    """Start a loop without a terminal."""
    return home.bydawn("run", "--new", "--plain", *arguments, **options)


def is_refused(refused: Said) -> bool:
    """It ended with 2, in three parts, with a command to give trust."""
    return refused.code == 2 and is_error(refused.err) and "bydawn trust --once" in refused.err


def hash_of(home: Home) -> str:
    """The hash that a refusal names."""
    [found] = HASH.findall(run(home).err)
    return str(found)


def ran(home: Home) -> bool:
    """Has the check run? Forgets it."""
    trace = home.repo / "checked"
    there = trace.exists()
    trace.unlink(missing_ok=True)
    return there


def listed(home: Home) -> list[dict[str, Any]]:
    return list(json.loads(home.bydawn("trust", "--list", "--json").out)["trusted"])


def test_json_is_json_whatever_the_answer_is(home: Home) -> None:
    def asked(*words: str) -> tuple[int, dict[str, Any]]:
        answer = home.bydawn("trust", "--json", *words)
        return answer.code, json.loads(answer.out)

    code, nothing = asked()
    assert (code, nothing["trusted"], nothing["rows"], nothing["hash"]) == (0, True, [], None)
    project(home)
    code, refused = asked()
    assert (code, refused["trusted"]) == (2, False)
    assert {row["key"]: row["value"] for row in refused["rows"]}["check"] == CHECK
    assert asked("--once", refused["hash"])[1]["trusted"] is True
    assert asked()[1]["trusted"] is True
    assert asked("--revoke")[1] == {"schema": 1, "folder": str(home.repo), "revoked": True}


# -- the question ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["y\n", "YES\n"])
def test_a_yes_starts_the_loop_and_is_remembered(home: Home, answer: str) -> None:
    project(home)
    shown = answered(home, answer, "run", "--plain")
    assert shown.code == 0, shown
    assert CHECK in shown.text.partition(ASKED)[0]
    assert ran(home)
    assert run(home).code == 0


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_everything_else_starts_nothing(home: Home, answer: str) -> None:
    project(home)
    shown = answered(home, answer, "run")
    assert shown.code == 2
    assert "not trusted" in shown.text
    assert not ran(home)
    assert not home.has_loop()
    assert listed(home) == []


def test_what_is_no_answer_is_asked_again(home: Home) -> None:
    project(home)
    shown = answered(home, "sure\nn\n", "run")
    assert shown.text.count(ASKED) == 2
    assert shown.code == 2
    assert not home.has_loop()


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.parametrize("command", [("run",), ("trust",)])
def test_whoever_leaves_the_question_has_said_nothing(home: Home, command: tuple[str, ...], key: str) -> None:
    project(home)
    terminal = Terminal(home, *command)
    terminal.see("[y/N]")
    terminal.type(key)
    shown = terminal.end()
    assert shown.code == 130, shown
    assert "Traceback" not in shown.text
    assert listed(home) == []
    assert not home.has_loop()


def test_a_terminal_that_is_closed_during_the_question_starts_nothing(home: Home) -> None:
    project(home)
    terminal = Terminal(home, "run")
    terminal.see(ASKED)
    terminal.hang_up()
    wait_for(lambda: not home.alive())
    assert listed(home) == []
    assert not home.has_loop()


def test_trust_asks_without_starting_anything(home: Home) -> None:
    project(home)
    assert "Trusted" in trusted(home).text
    assert not home.has_loop()
    assert run(home).code == 0
    again = home.bydawn("trust")
    assert again.code == 0
    assert "already" in again.out


def test_what_changes_while_the_question_is_open_is_not_what_was_agreed_to(home: Home) -> None:
    project(home)
    terminal = Terminal(home, "run", "--plain")
    terminal.see(ASKED)
    project(home, check=[": >> evil"])
    terminal.type("y\n")
    assert terminal.end().code == 0
    assert ran(home), "what was shown is what runs"
    assert not (home.repo / "evil").exists()
    assert is_refused(run(home))


def test_settings_that_need_no_trust_are_not_asked_about(home: Home) -> None:
    project(home, agent=None, check=None, prompt=None, rounds=3, max_failures=1)
    assert "needs your trust" in home.bydawn("trust").out
    assert run(home, "do it", "-a", home.rounds([DONE])).code == 0


# -- without a terminal ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("run",), ("trust",)])
def test_without_a_terminal_nothing_is_asked_and_nothing_runs(home: Home, command: tuple[str, ...]) -> None:
    project(home)
    refused = home.bydawn(*command)
    assert is_refused(refused)
    assert CHECK in refused.err
    assert f"bydawn trust {home.repo}" in refused.err
    assert not ran(home)
    assert not home.has_loop()


def test_a_yes_on_a_pipe_is_not_an_answer(home: Home) -> None:
    project(home)
    process = home.start("run", stdin=subprocess.PIPE)
    out, err = process.communicate("y\ny\n", timeout=20)
    assert is_refused(Said(process.returncode, out, err))


def test_the_printed_command_works_when_it_is_pasted_in_a_terminal(home: Home) -> None:
    project(home)
    [command] = re.findall(r"`(bydawn trust /.*)`", run(home).err)
    assert answered(home, "y\n", *shlex.split(command)[1:]).code == 0
    assert run(home).code == 0


def test_the_printed_command_is_the_one_that_was_typed(home: Home) -> None:
    project(home)
    assert "`scripts/bydawn trust " in run(home, BYDAWN_AS="scripts/bydawn").err


# -- for once ----------------------------------------------------------------------------------------------------------


def test_trust_for_once_is_good_for_exactly_one_start(home: Home) -> None:
    project(home)
    given = home.bydawn("trust", "--once", hash_of(home))
    assert given.code == 0, given
    assert run(home).code == 0
    assert ran(home)
    assert is_refused(run(home))
    assert not ran(home)


def test_trust_for_once_is_good_for_that_hash_only(home: Home) -> None:
    project(home)
    old = hash_of(home)
    project(home, check=[": >> evil"])
    refused = home.bydawn("trust", "--once", old)
    assert refused.code == 2
    assert "do not have the hash" in refused.err
    assert is_refused(run(home))


def test_trust_for_once_does_not_cover_what_is_written_afterwards(home: Home) -> None:
    project(home)
    home.bydawn("trust", "--once", hash_of(home))
    project(home, check=[": >> evil"])
    assert is_refused(run(home))
    project(home)
    assert run(home).code == 0, "it was not used up by a refusal"


@pytest.mark.parametrize("hash_", ["", "0" * 32, "*", "\x1b]0;x\x07", "../../x"])
def test_no_other_hash_is_taken(home: Home, hash_: str) -> None:
    project(home)
    refused = home.bydawn("trust", "--once", hash_)
    assert refused.code == 2
    assert "\x1b" not in refused.err
    assert is_refused(run(home))


def test_of_two_starts_with_one_trust_one_gets_it(home: Home) -> None:
    project(home, agent=home.rounds([{"sleep": 0.1}, DONE]))
    home.bydawn("trust", "--once", hash_of(home))
    starts = [home.start("run", "--new", "--plain", "--name", f"loop-{number}") for number in range(4)]
    codes = sorted(said(start).code for start in starts)
    assert codes == [0, 2, 2, 2]
    assert (home.repo / "checked").exists()


def test_a_rehearsal_does_not_use_it_up(home: Home) -> None:
    project(home)
    home.bydawn("trust", "--once", hash_of(home))
    assert home.bydawn("run", "--dry-run").code == 0
    assert home.bydawn("config", "show").code == 0
    assert run(home).code == 0


def test_trust_for_once_does_not_become_lasting_by_a_change(home: Home) -> None:
    project(home)
    home.bydawn("trust", "--once", hash_of(home))
    home.bydawn("config", "set", "done_when", "READY")
    home.bydawn("config", "unset", "done_when")
    run(home)
    assert is_refused(run(home)), "only one start was agreed to"


# -- the list, and taking it back --------------------------------------------------------------------------------------


def test_the_list_says_what_was_agreed_to_and_by_whom(home: Home) -> None:
    assert "Nothing is trusted" in home.bydawn("trust", "--list").out
    project(home)
    trusted(home)
    shown = home.bydawn("trust", "--list", USER="ada").out
    assert str(home.repo) in shown
    assert CHECK in shown
    [row] = listed(home)
    assert row["folder"] == str(home.repo)
    assert row["shown"]["check"] == [CHECK]
    assert row["once"] is False


def test_what_is_taken_back_is_asked_again(home: Home) -> None:
    project(home)
    trusted(home)
    assert "No longer trusted" in home.bydawn("trust", "--revoke").out
    assert listed(home) == []
    assert is_refused(run(home))
    assert "Was not trusted" in home.bydawn("trust", "--revoke").out


def test_taking_back_includes_what_was_for_once(home: Home) -> None:
    project(home)
    home.bydawn("trust", "--once", hash_of(home))
    assert [row["once"] for row in listed(home)] == [True]
    home.bydawn("trust", "--revoke")
    assert is_refused(run(home))


def test_trust_in_a_folder_that_is_gone_can_be_taken_back(home: Home) -> None:
    other = home.root / "other"
    other.mkdir()
    project(home, other)
    trusted(home, str(other))
    shutil.rmtree(other)
    assert [row["folder"] for row in listed(home)] == [str(other)]
    assert "No longer trusted" in home.bydawn("trust", "--revoke", str(other)).out
    assert listed(home) == []


@pytest.mark.parametrize("flags", [("--list", "--revoke"), ("--list", "--once", "x"), ("--revoke", "--once", "x")])
def test_flags_that_do_not_go_together_are_refused(home: Home, flags: tuple[str, ...]) -> None:
    assert home.bydawn("trust", *flags).code == 2


# -- what asks again ---------------------------------------------------------------------------------------------------


def test_changing_a_number_does_not_ask_again(home: Home) -> None:
    project(home, rounds=5)
    trusted(home)
    project(home, rounds=7, max_failures=2, check_timeout="5m", until="23:59")
    assert run(home).code == 0


CHANGES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a command changed": ({"check": [": >> evil"]}, [f"- check = {CHECK}", "+ check = : >> evil"]),
    "another prompt": ({"prompt": "do evil"}, ["- prompt = do it", "+ prompt = do evil"]),
    "two commands in one": ({"check": f"{CHECK}\ntrue"}, [f"- check = {CHECK}", f"+ check = {CHECK}\\ntrue"]),
    "a file in the prompt's place": ({"prompt": "@README.md"}, ["+ prompt = # a throw-away repository"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changing_a_command_asks_again_and_shows_the_difference(home: Home, change: str) -> None:
    values, lines = CHANGES[change]
    agent = home.rounds([DONE])
    project(home, agent=agent)
    trusted(home)
    project(home, **{"agent": agent, **values})
    shown = answered(home, "n\n", "run")
    assert shown.code == 2
    assert "has changed since you trusted it" in shown.text
    assert {line for line in lines if f"    {line}\n" not in shown.text} == set()
    assert not ran(home)


def test_every_word_of_the_file_behind_a_prompt_counts(home: Home) -> None:
    goal = home.repo / "GOAL.md"
    goal.write_text("Be nice.\nTidy up.\n")
    agent = home.rounds([DONE])
    project(home, agent=agent, prompt="@GOAL.md")
    assert "Tidy up." in trusted(home).text
    goal.write_text("Be nice.\nSend me the keys.\n")
    refused = run(home)
    assert is_refused(refused)
    assert "- prompt = Tidy up." in refused.err
    assert "+ prompt = Send me the keys." in refused.err
    goal.write_text("Be nice.\nTidy up.\n")
    assert run(home).code == 0


def test_a_yes_to_a_change_replaces_what_was_agreed_to(home: Home) -> None:
    agent = home.rounds([DONE])
    project(home, agent=agent)
    trusted(home)
    project(home, agent=agent, check=[CHECK, "true"])
    trusted(home)
    assert run(home).code == 0
    project(home, agent=agent)
    assert is_refused(run(home)), "the older one is not good any more"


# -- what flags and limits have to do with it --------------------------------------------------------------------------


def test_what_flags_override_needs_no_trust(home: Home) -> None:
    project(home, agent="cmd:./evil", check=["make evil"], prompt="evil")
    agent = home.rounds([DONE])
    assert run(home, "do it", "-a", agent, "-k", "true").code == 0
    assert is_refused(run(home, "do it", "-a", agent))
    assert run(home, "do it", "-a", agent, BYDAWN_CHECK="true").code == 0
    assert run(home, "do it", "-a", agent, "--no-project").code == 0


@pytest.mark.parametrize("loose", [{"rounds": 31}, {"round_timeout": "0s"}])
def test_a_limit_looser_than_the_default_needs_trust(home: Home, loose: dict[str, Any]) -> None:
    project(home, agent=None, check=None, prompt=None, **loose)
    refused = run(home, "do it", "-a", home.rounds([DONE]))
    assert is_refused(refused)
    assert next(iter(loose)) in refused.err
    trusted(home)
    assert run(home, "do it", "-a", home.rounds([DONE])).code == 0


def test_what_the_user_set_cannot_be_loosened_even_with_trust(home: Home) -> None:
    home.bydawn("config", "set", "--user", "rounds", "20")
    project(home)
    trusted(home)
    project(home, rounds=25)
    refused = run(home)
    assert refused.code == 2
    assert "loosens what you set yourself" in refused.err


# -- which folder ------------------------------------------------------------------------------------------------------


def test_a_folder_below_is_not_trusted(home: Home) -> None:
    project(home)
    trusted(home)
    (home.repo / "sub").mkdir()
    project(home, home.repo / "sub")
    assert is_refused(run(home, "-C", "sub"))


def test_a_link_to_the_folder_is_the_same_folder(home: Home) -> None:
    project(home)
    (home.root / "link").symlink_to(home.repo)
    trusted(home, str(home.root / "link"))
    assert [row["folder"] for row in listed(home)] == [str(home.repo)]
    assert run(home).code == 0
    assert run(home, "-C", str(home.root / "link")).code == 0


def test_a_link_that_leads_elsewhere_now_is_another_folder(home: Home) -> None:
    project(home)
    link = home.root / "link"
    link.symlink_to(home.repo)
    trusted(home, str(link))
    shutil.copytree(home.repo, home.root / "copy")
    link.unlink()
    link.symlink_to(home.root / "copy")
    assert is_refused(run(home, "-C", str(link)))


def test_another_folder_in_the_place_of_a_trusted_one_is_asked_about_with_the_difference(home: Home) -> None:
    agent = home.rounds([DONE])
    project(home, agent=agent)
    trusted(home)
    home.repo.rename(home.root / "away")
    home.repo.mkdir()
    project(home, agent=agent, check=["make evil"])
    refused = run(home)
    assert is_refused(refused)
    assert "+ check = make evil" in refused.err
    assert is_refused(run(home, "-C", str(home.root / "away"))), "trust does not move along"


def test_a_folder_that_was_moved_keeps_its_trust(home: Home) -> None:
    """It is the same by device and inode, with its `.git`, and nothing is at its old path."""
    project(home)
    trusted(home)
    new = home.repo.rename(home.root / "renamed")
    assert home.bydawn("trust", "--json", str(new), cwd=new).code == 0
    assert run(home, cwd=new).code == 0
    shutil.copytree(new, home.repo)
    assert is_refused(run(home)), "what came to the old path is another folder"
    assert [each["folder"] for each in listed(home)] == [str(new)]
    changed = project(home, new, check=["make evil"])
    assert "has changed since you trusted it" in run(home, "-C", str(changed.parent)).err


def test_a_copy_is_asked_about_with_the_difference_and_one_line(home: Home) -> None:
    project(home)
    trusted(home)
    same, other = home.root / "same", home.root / "other"
    for copy in (same, other):
        subprocess.run(["git", "clone", "-q", str(home.repo), str(copy)], check=True)
        project(home, copy)
    refused = run(home, "-C", str(same))
    assert (refused.code, is_error(refused.err)) == (2, True), refused
    assert f"though the one in {home.repo} is" in refused.err and "it runs the same as there" in refused.err
    project(home, other, check=["make evil"])
    refused = run(home, "-C", str(other))
    assert "+ check = make evil" in refused.err and "- check" in refused.err and "agent =" not in refused.err
    review, once = re.findall(r"`(bydawn trust .*)`", refused.err)
    shown = answered(home, "y\n", "trust", str(other))
    assert f"You trust the copy in {home.repo}, with these differences" in shown.text
    assert (shown.code, run(home, "-C", str(other), "--dry-run").code) == (0, 0), "it is asked about once"
    assert review == f"bydawn trust {other}"
    assert home.bydawn(*shlex.split(once)[1:]).code == 0


def test_trust_covers_the_same_values_in_the_other_file(home: Home) -> None:
    path = project(home)
    trusted(home)
    (home.repo / "pyproject.toml").write_text(f"[tool.bydawn]\n{path.read_text()}")
    path.unlink()
    assert run(home).code == 0


# -- inside of a round -------------------------------------------------------------------------------------------------

FOR_PEOPLE = [
    "trust",
    "trust --revoke",
    "trust --once HASH",
    "config set check true",
    "config unset check",
    "config set --user rounds 3",
    "edit config",
    "edit config --user",
    "edit tasks",
    "run",
]


def test_an_agent_can_neither_trust_nor_write_settings(home: Home) -> None:
    before = project(home).read_text()
    hash_ = hash_of(home)
    for command in FOR_PEOPLE:
        arguments = command.replace("HASH", hash_).split()
        terminal = Terminal(home, *arguments, EDITOR="touch", BYDAWN_COOKIE="x")
        terminal.type("y\n")
        refused = terminal.end()
        assert refused.code == 2, command
        assert "inside a round" in refused.text, command
    assert listed(home) == []
    assert (home.repo / "bydawn.toml").read_text() == before
    assert not (home.root / "home/.config/bydawn/config.toml").exists()


@pytest.mark.parametrize("disguise", ["", "env -u BYDAWN_COOKIE", "env -i HOME=$HOME PATH=$PATH"])
def test_an_agent_that_asks_in_its_round_is_refused(home: Home, disguise: str) -> None:
    project(home)
    command = f"{disguise} bydawn trust --once {hash_of(home)} > said 2>&1"
    assert run(home, "do it", "-a", home.rounds([{"run": ["sh", "-c", command]}, DONE]), "-k", "true").code == 0
    assert "inside a round" in (home.repo / "said").read_text()
    assert listed(home) == []


# -- what a person writes ----------------------------------------------------------------------------------------------


def test_what_a_person_sets_is_trusted_by_that_act(home: Home) -> None:
    for key, value in (("agent", home.rounds([DONE])), ("check", CHECK), ("prompt", "do it")):
        assert home.bydawn("config", "set", key, value).code == 0
    assert run(home).code == 0
    assert ran(home)
    home.bydawn("config", "unset", "check")
    assert run(home).code == 0


@pytest.mark.parametrize("key", ["check", "rounds", "prompt"])
def test_what_stood_there_before_is_not_trusted_along_with_it(home: Home, key: str) -> None:
    evil: dict[str, Any] = {"check": ["make evil"], "rounds": 0, "prompt": "evil"}
    project(home, **{"agent": None, "check": None, "prompt": None, key: evil[key]})
    for command in ("set done_when READY", "unset done_when", "set --user plain true"):
        assert home.bydawn("config", *command.split()).code == 0
        assert listed(home) == [], command
    assert json.loads(home.bydawn("config", "show", "--json").out)["settings"][key]["inert"]


def test_whoever_writes_beside_commands_of_others_is_told(home: Home) -> None:
    project(home)
    assert "bydawn trust" in home.bydawn("config", "set", "done_when", "READY").out


def an_editor(home: Home, does: str) -> str:
    editor = home.root / "editor"
    editor.write_text(f"#!/bin/sh\n{does}\n")
    editor.chmod(0o755)
    return str(editor)


def test_a_person_who_mends_a_broken_file_does_not_trust_what_stood_in_it(home: Home) -> None:
    path = project(home)
    path.write_text(f"{path.read_text()}oops\n")
    home.bydawn("edit", "config", EDITOR=an_editor(home, 'sed -i /oops/d "$1"'))
    assert listed(home) == []
    assert is_refused(run(home))


def test_what_somebody_else_writes_while_the_editor_is_open_is_not_trusted(home: Home) -> None:
    """An agent of a loop that runs here can write at any time; the person only looked."""
    agent = home.rounds([DONE])
    project(home, agent=agent)
    trusted(home)
    gate, opened = home.root / "gate", home.root / "opened"
    editor = an_editor(home, f": > {opened}; until test -e {gate}; do sleep 0.02; done")
    editing = home.start("edit", "config", EDITOR=editor)
    wait_for(opened.exists)
    project(home, agent=agent, check=[": >> evil"])
    gate.touch()
    said(editing)
    assert is_refused(run(home))


# -- an agent that rewrites the settings -------------------------------------------------------------------------------


def rewriting(home: Home) -> str:
    """An agent that puts its own commands into the project's file, in its first round."""
    text = 'agent = "cmd:./evil"\ncheck = ": >> evil"\nprompt = "evil"\nrounds = 1\n'
    third = {"write": {"path": "third", "text": ""}}
    return home.rounds([{"write": {"path": "bydawn.toml", "text": text}}, OK], [OK], [third, DONE])


def test_an_agent_that_rewrites_the_settings_does_not_change_its_own_loop(home: Home) -> None:
    project(home, agent=rewriting(home), check=[CHECK, "test -e third"])
    trusted(home)
    assert run(home, "--on-tamper", "report").code == 0
    assert len(home.rounds_ended()) == 3
    assert ran(home)
    assert not (home.repo / "evil").exists()


def test_an_agent_that_rewrites_the_settings_does_not_change_a_resumed_loop_and_the_next_start_asks(home: Home) -> None:
    project(home, agent=rewriting(home), check=[CHECK, "test -e third"])
    trusted(home)
    assert run(home, "--once", "--on-tamper", "report").code == 4
    assert "evil" in (home.repo / "bydawn.toml").read_text()
    ran(home)
    assert home.bydawn("resume", "--plain").code == 0
    assert ran(home)
    assert not (home.repo / "evil").exists()
    refused = run(home)
    assert refused.code in (2, 7)
    assert not (home.repo / "evil").exists()


# -- the store ---------------------------------------------------------------------------------------------------------


def test_the_store_is_for_its_owner_only_and_outside_of_the_repository(home: Home) -> None:
    project(home)
    answered(home, "y\n", "trust", umask=0)
    home.bydawn("trust", "--once", listed(home)[0]["digest"])
    files = [*(home.states / "trust").iterdir()]
    assert len(files) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home.states, home.states / "trust")} == {0o700}


@pytest.mark.parametrize("secret", [SECRET, KEY], ids=["a value", "a key of many lines"])
def test_the_store_holds_no_secret_and_the_question_shows_none(home: Home, secret: str) -> None:
    (home.repo / "GOAL.md").write_text(f"Use this:\n{secret}\nThank you.\n")
    project(home, prompt="@GOAL.md", check=[f"test -n {SECRET}"])
    shown = answered(home, "y\n", "trust", MY_TOKEN=SECRET).text
    text = "".join(path.read_text() for path in (home.states / "trust").iterdir())
    text += shown + home.bydawn("trust", "--list", MY_TOKEN=SECRET).out + home.bydawn("trust", "--list", "--json").out
    assert "Thank you." in text
    assert [part for part in (SECRET, *PEM) if part in text] == []


DAMAGE = {
    "run": b"",
    "trust": b"{",
    "trust --list": b'{"folder": 5}',
    "config show": b"[" * 100_000,
    "config check": b"\xff",
}


def test_a_damaged_agreement_is_an_error_that_says_what_to_do(home: Home) -> None:
    project(home)
    trusted(home)
    [path] = (home.states / "trust").iterdir()
    for command, damage in DAMAGE.items():
        path.write_bytes(damage)
        refused = home.bydawn(*command.split())
        assert refused.code == 1, (command, refused)
        assert is_error(refused.err)
        assert str(path) in refused.err
        assert "delete it" in refused.err
    assert not ran(home)
    home.bydawn("trust", "--revoke")
    assert is_refused(run(home)), "taking it back mends it"


def test_an_agreement_about_another_folder_is_not_taken_for_this_one(home: Home) -> None:
    """The name of a file in the store is only a short digest; what it says inside has to fit."""
    project(home)
    trusted(home)
    [path] = (home.states / "trust").iterdir()
    path.write_text(path.read_text().replace(f'"folder": "{home.repo}"', '"folder": "/somewhere/else"'))
    assert "/somewhere/else" in path.read_text()
    assert run(home).code != 0


def test_a_store_that_cannot_be_read_is_an_error(home: Home) -> None:
    # Root reads everything, unless these capabilities are taken away.
    dropped = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.getuid() == 0 else ()
    project(home)
    trusted(home)
    (home.states / "trust").chmod(0)
    refused = home.bydawn("run", "--plain", before=dropped)
    (home.states / "trust").chmod(0o700)
    assert (refused.code, ran(home)) == (1, False)
    assert is_error(refused.err)


@pytest.mark.parametrize("place", [".", "trust", "trust/*"])
def test_a_store_that_others_can_write_to_is_not_believed(home: Home, place: str) -> None:
    project(home)
    trusted(home)
    home.states.chmod(0o755)
    (home.states / "trust").chmod(0o755)
    [path] = home.states.glob(place) if place != "." else [home.states]
    path.chmod(0o777)
    refused = run(home)
    assert refused.code != 0
    assert "other users can write" in refused.err


# -- looking -----------------------------------------------------------------------------------------------------------


def test_a_rehearsal_needs_no_trust_and_runs_nothing(home: Home) -> None:
    project(home)
    shown = home.bydawn("run", "--dry-run")
    assert shown.code == 0
    assert CHECK in shown.out
    assert "do it" in shown.out
    assert not ran(home)
    assert not home.has_loop()
    assert listed(home) == []


def test_settings_that_wait_for_trust_are_marked(home: Home) -> None:
    project(home, rounds=0, max_failures=2)
    rows = json.loads(home.bydawn("config", "show", "--json").out)["settings"]
    assert {key for key, row in rows.items() if row["inert"]} == {"agent", "check", "prompt", "rounds"}
    marked = [line.split()[0] for line in home.bydawn("config", "show").out.splitlines() if "not in effect" in line]
    assert sorted(marked) == ["agent", "check", "prompt", "rounds"]
    assert "not in effect until you trust" in home.bydawn("config", "check").out
    assert "(not in effect: not trusted)" in home.bydawn("config", "get", "check", "--origin").out
    trusted(home)
    assert "not in effect" not in home.bydawn("config", "show").out


def test_a_value_that_the_environment_hides_is_not_marked(home: Home) -> None:
    project(home)
    rows = json.loads(home.bydawn("config", "show", "--json", BYDAWN_CHECK="true").out)["settings"]
    assert not rows["check"]["inert"]
    assert rows["agent"]["inert"]
