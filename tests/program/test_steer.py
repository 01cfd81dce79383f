"""Steering: a running loop is asked and answers; one that stands still has it recorded."""

import json
import os
import pwd
import signal
import subprocess

import pytest

from driving import DONE, HANG, OK, Home, said, wait_for, worker_of


def test_a_note_reaches_the_next_prompt_of_a_running_loop_exactly_once(home: Home) -> None:
    gate, opened = home.gate()
    process = home.start_run(home.rounds([gate, OK], [OK], [DONE]))
    home.await_round(1)
    answer = home.bydawn("tell", "repo", "round half up")
    assert answer.code == 0
    assert "Noted. repo will see it in its next prompt." in answer.out
    assert home.show()["notes_waiting"] == ["round half up"]
    assert "“round half up” goes into the next prompt" in home.bydawn("show").out
    opened.touch()
    ended = said(process)
    assert ended.code == 0
    assert "✎ your note went into the prompt of round 2" in ended.out
    assert home.show()["notes_waiting"] == []
    prompts = [(home.folder() / f"rounds/000{n}/prompt.md").read_text() for n in (1, 2, 3)]
    assert ["round half up" in prompt for prompt in prompts] == [False, True, False]
    note = home.facts("note.added")[0]["data"]["note"]
    assert [fact["data"]["notes"] for fact in home.facts("round.started")] == [[], [note], []]


def test_a_note_for_a_loop_that_stands_still_waits_for_its_next_round(home: Home) -> None:
    agent = home.rounds([OK], [DONE])
    home.run(agent, "--once")
    assert "Noted. repo will see it in its next prompt." in home.bydawn("tell", "repo", "try the other way").out
    home.bydawn("resume", "--plain")
    assert "try the other way" in (home.folder() / "rounds/0002/prompt.md").read_text()


def test_pause_waits_for_the_round_and_resume_goes_on(home: Home) -> None:
    gate, opened = home.gate()
    process = home.start_run(home.rounds([gate, OK], [DONE]))
    home.await_round(1)
    assert "after this round" in home.bydawn("pause").out
    asked = home.status()["asked"]
    assert (asked["what"], asked["after_round"]) == ("pause", 1)
    assert "pausing after round 1" in home.bydawn("status").out
    assert "bydawn pause" not in home.bydawn("show").out
    opened.touch()
    ended = said(process)
    assert ended.code == 130
    assert "Pausing after round 1, asked by" in ended.out
    assert "Ctrl-C again" not in ended.out
    assert home.status()["state"] == "paused"
    assert home.outcomes() == ["ok"]
    assert home.bydawn("resume", "--plain").code == 0


def test_pause_now_ends_the_round_and_the_next_prompt_says_so(home: Home) -> None:
    process = home.start_run(home.rounds([{"say": "hi"}, HANG], [DONE]))
    home.await_round(1)
    home.bydawn("pause", "--now")
    assert said(process).code == 130
    assert home.outcomes() == ["interrupted"]
    home.bydawn("resume", "--plain")
    assert "was interrupted" in (home.folder() / "rounds/0002/prompt.md").read_text()


def test_stop_ends_a_running_loop_from_another_terminal(home: Home) -> None:
    process = home.start_run(home.rounds([{"say": "hi"}, HANG]))
    home.await_round(1)
    assert home.bydawn("stop").code == 0
    assert said(process).code == 130
    assert home.status()["state"] == "stopped"
    assert home.facts("loop.stopped")[0]["data"]["decided"]["rule"] == "asked-to-stop"


def test_a_crashed_loop_can_be_stopped_and_reads_stopped(home: Home) -> None:
    process = home.start_run(home.rounds([{"say": "hi"}, HANG]))
    home.await_round(1)
    worker = int(home.facts("run.started")[0]["data"]["pid"])
    os.kill(worker, signal.SIGKILL)
    assert said(process).code == 1
    assert home.status()["state"] == "crashed"
    assert home.bydawn("stop").code == 0
    assert home.status()["state"] == "stopped"
    assert home.outcomes() == ["interrupted"]


def test_a_waiting_loop_can_be_paused_at_once(home: Home) -> None:
    limited = {"result": {"outcome": "limited", "text": "come back later", "wait_until": "2099-01-01T00:00:00Z"}}
    process = home.start_run(home.rounds([limited]))
    wait_for(lambda: home.has_loop() and home.facts("wait.started"))
    loop = home.status()
    assert loop["state"] == "waiting"
    waiting = loop["waiting"]
    assert (waiting["reason"], waiting["agent"]) == ("come back later", loop["agent"])
    assert waiting["until"] == loop["limited"][0]["until"]
    assert "waiting for demo:" in home.bydawn("status").out
    home.bydawn("pause")
    assert said(process).code == 130
    assert home.status()["state"] == "paused"


def test_a_loop_that_stands_still_is_not_said_to_have_been_brought_to_it(home: Home) -> None:
    assert home.run(home.rounds([OK]), "--max-no-change", "1").code == 3
    before = home.facts()
    assert "repo is already blocked. Continue: bydawn resume repo" in home.bydawn("pause").out
    assert home.facts() == before
    assert "repo stops now." in home.bydawn("stop", "--after-round").out  # no longer blocked: given up
    before = home.facts()
    for words in (["stop"], ["stop", "--after-round"]):
        assert "repo is already stopped." in home.bydawn(*words).out
    assert "repo is already stopped." in home.bydawn("pause").out
    assert home.facts() == before


def test_a_dismissed_loop_is_out_of_the_list_until_it_runs_again(home: Home) -> None:
    agent = home.rounds([OK], [DONE])
    assert home.run(agent, "--max-no-change", "1").code == 3
    said = home.bydawn("dismiss", "repo")
    assert (said.code, "bydawn status --all" in said.out, "bydawn resume repo" in said.out) == (0, True, True)
    assert home.bydawn("dismiss", "repo").code == 0
    assert len(home.facts("loop.dismissed")) == 1
    listed = home.bydawn("status").out
    assert ("blocked" in listed, "1 dismissed loop not listed" in listed) == (False, True)
    assert "blocked" in home.bydawn("status", "--all").out
    assert "blocked" in home.bydawn("status", "repo").out
    assert json.loads(home.bydawn("status", "--json").out)["loops"] == []
    [loop] = json.loads(home.bydawn("status", "--all", "--json").out)["loops"]
    assert (loop["dismissed"], loop["needs_you"]) == (True, False)
    assert home.bydawn("resume", "--plain").code == 0
    assert home.status()["dismissed"] is False


def test_only_what_has_ended_is_dismissed(home: Home) -> None:
    process = home.start_run(home.rounds([{"say": "hi"}, HANG]))
    home.await_round(1)
    refused = home.bydawn("dismiss", "repo")
    assert refused.code == 2
    assert "repo is running" in refused.err
    assert "bydawn stop repo" in refused.err
    home.bydawn("stop")
    said(process)
    assert home.facts("loop.dismissed") == []


def test_a_finished_loop_cannot_be_steered(home: Home) -> None:
    home.run(home.rounds([DONE]))
    for command in (["stop"], ["pause"], ["tell", "repo", "x"], ["resume"]):
        assert home.bydawn(*command).code == 2
    assert home.status()["state"] == "unverified"


def test_a_person_is_named_where_only_the_system_knows_them(home: Home) -> None:
    for name in ("USER", "LOGNAME"):
        home.env.pop(name, None)
    home.run(home.rounds([OK]), "--once")
    home.bydawn("tell", "repo", "hello")
    [note] = home.facts("note.added")
    assert note["data"]["by"] == pwd.getpwuid(os.getuid()).pw_name


def test_a_note_without_a_name_is_for_the_only_loop_here(home: Home) -> None:
    home.run(home.rounds([OK]), "--once")
    assert "Noted. repo will see it in its next prompt." in home.bydawn("tell", "round half up").out
    assert [note["data"]["text"] for note in home.facts("note.added")] == ["round half up"]
    home.run(home.rounds([OK]), "--once", "--new")
    assert "add the name of one" in home.bydawn("tell", "round half up").err


# -- many at once ------------------------------------------------------------------------------------------------------


def running(home: Home, *names: str) -> list[subprocess.Popen[str]]:
    agent = home.rounds([{"say": "hi"}, HANG])
    started = [home.start_run(agent, "--new", "--name", name) for name in names]
    for name in names:
        home.await_round(1, name)
    return started


def test_stop_takes_several_names_and_one_that_is_unknown_does_not_keep_the_others_from_it(home: Home) -> None:
    processes = running(home, "one", "two", "three")
    answer = home.bydawn("stop", "one", "nobody", "two@repo", cwd=home.root)
    assert answer.code == 2
    assert [line.split(".")[0].strip() for line in answer.out.splitlines()] == ["one stops now", "two stops now"]
    assert "no loop called 'nobody'" in answer.err
    assert [said(process).code for process in processes[:2]] == [130, 130]
    assert home.status("three")["state"] == "running"
    assert home.bydawn("stop", "three").code == 0
    assert said(processes[2]).code == 130


def test_all_means_what_runs_or_has_crashed_from_any_folder(home: Home) -> None:
    home.run(home.rounds([OK]), "--once", "--name", "limited")
    alive, crashed = running(home, "alive", "crashed")
    os.kill(worker_of(crashed), signal.SIGKILL)
    wait_for(lambda: home.status("crashed")["state"] == "crashed")
    answer = home.bydawn("pause", "--all", "--now", cwd=home.root)
    assert answer.code == 0, answer
    assert sorted(line.split()[0] for line in answer.out.splitlines() if " pauses now." in line) == ["alive", "crashed"]
    assert said(alive).code == 130
    states = {name: home.status(name)["state"] for name in ("alive", "crashed", "limited")}
    assert states == {"alive": "paused", "crashed": "paused", "limited": "limit"}
    assert home.bydawn("stop", "--all").out == "  No loop is running.\n"
    assert home.bydawn("stop", "--all", "alive").code == 2


@pytest.mark.parametrize("disguise", ["", "env -u BYDAWN_COOKIE", "env TMPDIR=/ BYDAWN_COOKIE=x"])
def test_an_agent_ends_neither_its_own_loop_nor_one_that_a_person_started(home: Home, disguise: str) -> None:
    """But a loop that a test of its began in the temporary folder of the round."""
    home.run(home.rounds([OK]), "--once", "--name", "limited")
    [other] = running(home, "other")
    own = home.root / "tmp/state"
    assert home.run(home.rounds([OK]), "--once", "--name", "test", "--state-dir", str(own)).code == 4
    tries = ["stop other", "pause other --now", "stop mine", "pause mine", "stop limited", "dismiss limited"]
    script = "".join(f"{disguise} bydawn {words} > said 2>&1 || echo $? $(cat said) >> no\n" for words in tries)
    script += f"{disguise} bydawn stop test --state-dir {own} && {disguise} bydawn dismiss test --state-dir {own}"
    agent = home.rounds([{"run": ["sh", "-c", f"{script} > test 2>&1"]}, DONE])
    assert home.run(agent, "--name", "mine").code == 0
    said_no = (home.repo / "no").read_text().splitlines()
    assert [line[:30] for line in said_no] == ["2 error: agents may not do thi"] * len(tries)
    assert [home.status(name)["state"] for name in ("other", "limited")] == ["running", "limit"]
    assert "test is no longer listed" in (home.repo / "test").read_text()
    home.bydawn("stop", "other")
    assert said(other).code == 130


def test_an_agent_cannot_stop_all_loops(home: Home) -> None:
    [process] = running(home, "one")
    refused = home.bydawn("stop", "--all", BYDAWN_COOKIE="abc.1")
    assert (refused.code, refused.out) == (2, "")
    assert "agents may not do this" in refused.err
    assert home.status("one")["state"] == "running"
    home.bydawn("stop", "--all")
    assert said(process).code == 130
