"""What a person is told to do when a loop needs them: every command that is offered works, and helps."""

import json
import os
import re
import shlex
import signal

import pytest

from driving import DONE, OK, Home, Said, Step, said, wait_for, worker_of

WRITES: Step = {"append": {"path": "log", "text": "x"}}


def offered(said: Said) -> list[str]:
    """The commands that are to be pasted."""
    rows = (re.sub(r"^\d  ", "", line.strip()).partition("  ")[0] for line in said.out.splitlines())
    return [row for row in rows if re.match(r"bydawn \S", row)]


def paste(home: Home, command: str) -> Said:
    program, *words = shlex.split(command)
    assert program == "bydawn"
    return home.bydawn(*words, *(["--plain"] if words[0] == "resume" else []))


def a_folder(home: Home, **tasks: str) -> str:
    (home.repo / "tasks").mkdir()
    for name, text in tasks.items():
        (home.repo / "tasks" / f"{name}.md").write_text(text)
    return "tasks"


def claiming(home: Home) -> str:
    """An agent that does whatever task it is given."""
    return home.rounds([WRITES, {"result": {"text": "did it\n\nSTATUS: done"}}])


# -- death -------------------------------------------------------------------------------------------------------------


def test_whoever_sees_the_worker_killed_is_given_a_command_that_goes_on(home: Home) -> None:
    place = home.root / "my states"
    gate, _ = home.gate()
    running = home.start_run(home.rounds([gate], [DONE]), "--state-dir", str(place))
    wait_for(lambda: [*place.glob("loops/*/repo/rounds/0001/stdout")])
    os.kill(worker_of(running), signal.SIGKILL)
    [command] = re.findall("run `(.+)` to go on", said(running).err)
    assert paste(home, command).code == 0


# -- hooks -------------------------------------------------------------------------------------------------------------


def test_after_a_failed_hook_its_command_its_output_and_the_way_on_are_given(home: Home) -> None:
    switch = home.root / "switch"
    hook = f"echo the database is down >&2; test -e {switch}"
    agent = home.rounds([WRITES, DONE])
    ended = home.run(agent, "--pre-round", hook, "--on-hook-failure", "block")
    assert ended.code == 3
    output = home.folder() / "rounds/0001/hook-pre_round.txt"
    for shown in (ended, home.bydawn("show"), home.bydawn("why")):
        unfolded = "".join(shown.out.split())
        assert "".join(hook.split()) in unfolded
        assert str(output) in unfolded
        assert "· hook\n" not in shown.out
        assert "tell" not in shown.out
    assert "the database is down" in output.read_text()
    resume, another = offered(ended)
    assert offered(home.bydawn("show")) == [resume, another]
    assert (resume, another.startswith("bydawn run --new 'do it' -a demo:")) == ("bydawn resume repo", True)
    switch.touch()
    assert paste(home, offered(ended)[0]).code == 0


def test_whoever_mistyped_a_check_is_given_the_command_to_mend(home: Home) -> None:
    agent = home.rounds([{"append": {"path": "log", "text": "x"}}, OK])
    ended = home.run(agent, "-k", "./pytset -q")
    assert "bydawn tell" not in ended.out
    assert f"bydawn run --new 'do it' -a {agent} -k './pytset -q'" in ended.out
    assert "or start a new loop with the right check" in ended.out


def test_tasks_that_nothing_came_of_can_be_left_out(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [ ] hard\n- [ ] harder\n- [ ] easy\n")
    ended = home.run(home.rounds([OK]), "-t", "TODO.md", "--rounds", "10")
    skip = next(command for command in offered(ended) if "skip" in command)
    assert skip == "bydawn tasks skip repo 1 2"
    assert "bydawn resume repo --rounds +20" in offered(ended), "all ten are used up"
    assert paste(home, skip).code == 0
    assert home.bydawn("tasks", "list").out.split("next")[1].split()[0] == "easy"


def test_what_no_agent_can_help_with_is_not_told_to_one(home: Home) -> None:
    ended = home.run(home.rounds([OK]), "--protect", "README.md", "-k", "echo x >> README.md")
    assert ended.code == 3
    assert home.facts("loop.stopped")[0]["data"]["decided"]["rule"] == "obstructed"
    assert offered(ended) == ["bydawn resume repo"]
    assert "· protect" not in ended.out


# -- tasks that wait for one that nobody does --------------------------------------------------------------------------


def test_a_task_that_waits_for_a_skipped_one_is_named_with_what_can_be_done(home: Home) -> None:
    folder = a_folder(home, one="# First\n", two="# Then\n<!-- depends_on: one -->\n", zzz="# Last\n")
    agent = claiming(home)
    home.run(agent, "-t", folder, "--once", "-k", "true", "--rounds", "1")
    home.bydawn("tasks", "reopen", "repo", "1")
    home.bydawn("tasks", "skip", "repo", "1")
    ended = home.bydawn("resume", "--plain", "--rounds", "20")
    assert ended.code == 3
    for shown in (ended, home.bydawn("show"), home.bydawn("why")):
        assert "“Then” waits for “First”, which was skipped" in shown.out
        assert "tell" not in shown.out
    wanted = ["bydawn tasks reopen repo 1", "bydawn tasks skip repo 2", "bydawn resume repo"]
    assert offered(ended) == offered(home.bydawn("show")) == wanted
    assert paste(home, wanted[1]).code == 0
    assert paste(home, wanted[2]).code == 0


def test_the_skipped_task_can_be_taken_up_again_as_it_is_offered(home: Home) -> None:
    folder = a_folder(home, one="# First\n", two="# Then\n<!-- depends_on: one -->\n")
    agent = claiming(home)
    home.run(agent, "-t", folder, "-k", "true", "--for", "0.001s")
    home.bydawn("tasks", "skip", "repo", "1")
    ended = home.bydawn("resume", "--plain", "--for", "0")
    assert ended.code == 3
    reopen, _, resume = offered(ended)
    assert paste(home, reopen).code == 0
    assert paste(home, resume).code == 0


# -- a list that cannot be believed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", ["nobody", "two"], ids=["for-nobody", "in-a-circle"])
def test_a_folder_that_makes_no_sense_is_mended_and_cannot_be_accepted(home: Home, wait: str) -> None:
    folder = a_folder(home, one="# First\n", two="# Then\n<!-- depends_on: one -->\n")
    spoilt = {"write": {"path": "tasks/one.md", "text": f"# First\n<!-- depends_on: {wait} -->\n"}}
    ended = home.run(home.rounds([spoilt, OK], [OK]), "-t", folder, "-k", "true")
    assert ended.code == 3
    assert offered(ended) == offered(home.bydawn("show")) == ["bydawn tasks list repo", "bydawn resume repo"]
    assert str(home.repo / "tasks") in ended.out
    listed, resume = offered(ended)
    assert paste(home, listed).code == 0
    assert "depend" in paste(home, listed).out or "wait" in paste(home, listed).out
    before = home.facts()
    refused = home.bydawn("resume", "--accept")
    assert (refused.code, home.facts()) == (2, before)
    (home.repo / "tasks/one.md").write_text("# First\n")
    assert paste(home, resume).code == 3  # the agent never does anything
    assert home.facts("loop.stopped")[-1]["data"]["decided"]["rule"] != "task-file"


def test_a_folder_that_has_lost_a_task_can_be_accepted(home: Home) -> None:
    folder = a_folder(home, one="# First\n", two="# Then\n")
    ended = home.run(home.rounds([{"delete": "tasks/two.md"}, OK]), "-t", folder, "-k", "true")
    assert ended.code == 3
    accept = offered(ended)[-1]
    assert accept == "bydawn resume repo --accept"
    paste(home, accept)
    assert home.facts("loop.stopped")[-1]["data"]["decided"]["rule"] != "task-file"


# -- a loop that is done -----------------------------------------------------------------------------------------------


def commands_in(text: str) -> list[str]:
    return re.findall(r"`(bydawn [^`]+)`", text)


def test_whoever_wants_more_of_a_finished_loop_is_given_the_command_for_another(home: Home) -> None:
    folder = a_folder(home, one="# It's first\n")
    assert home.run(claiming(home), "-t", folder, "-k", "test -e log").code == 0
    for words in (["tasks", "reopen", "repo", "1"], ["tell", "repo", "more"], ["resume", "repo"]):
        refused = home.bydawn(*words)
        assert refused.code == 2
        assert "nobody to tell or to stop" not in refused.err
        [another] = commands_in(refused.err)
        assert paste(home, another).code == 0
    assert [home.outcomes(f"repo-{number}") for number in (2, 3, 4)] == [["ok"]] * 3


def test_whoever_adds_a_task_to_a_finished_loop_without_a_list_is_given_one_that_takes_it(home: Home) -> None:
    home.run(home.rounds([DONE]))
    refused = home.bydawn("tasks", "add", "repo", "more")
    [another] = commands_in(refused.err)
    assert "tell" not in another
    assert paste(home, another).code == 0


def test_a_finished_checklist_is_opened_in_its_file(home: Home) -> None:
    home.tasks(1)
    home.run(home.each_task(), "-t", "TODO.md", "-k", "true")
    assert commands_in(home.bydawn("tasks", "reopen", "repo", "1").err)[0] == "bydawn tasks edit repo"


def test_whoever_asks_an_unfinished_loop_for_something_else_is_given_the_command_that_does_it(home: Home) -> None:
    agent = home.rounds([DONE])
    given = ["-n", "7", "--protect", "README.md", "-k", "true", "--on-hook-failure", "block"]
    assert home.run(agent, *given, "--pre-round", "false").code == 3
    refused = home.run(agent, *given, "--pre-round", "echo 'it is' >> ../log", "--budget", "2Mtok", "--for", "90m")
    assert "error: the loop repo is blocked, and these hooks are different\n" in refused.err
    assert "a loop keeps its settings; these differ: hooks, limits" in refused.err
    [resume, another] = commands_in(refused.err)
    assert resume == "bydawn resume repo"
    assert "…" not in another
    assert paste(home, another).code == 0
    assert (home.root / "log").read_text() == "it is\n"
    loop = json.loads((home.folder("repo-2") / "loop.json").read_bytes())
    limits = loop["limits"]
    assert (limits["rounds"], limits["seconds"], limits["tokens"]) == (7, 5400, 2_000_000)
    assert loop["protect"] == ["README.md"]


def test_a_loop_that_is_in_the_way_is_told_of_in_a_sentence(home: Home) -> None:
    home.run(home.rounds([{"exit": 3}]), "--max-failures", "1")
    refused = home.run(home.rounds([OK]), "-k", "true")
    assert "error: the loop repo has failed, and this agent is different\n" in refused.err
    home.run(home.rounds([DONE]), "--new", "--name", "night")
    [another] = commands_in(home.run(home.rounds([DONE]), "--name", "night").err)
    assert another.startswith("bydawn run --new ")


def test_what_cannot_be_typed_again_is_named_and_its_place_is_held(home: Home) -> None:
    home.run(home.rounds([DONE]), "--max-failures", "7", "--until", "2030-01-01", "--agent-env", "A=secret-of-mine")
    refused = home.bydawn("tell", "repo", "more")
    [another] = commands_in(refused.err)
    assert another.endswith(" …")
    assert " --max-failures 7 " in another, "the others are not left out"
    assert "… is the rest of its settings: agent_env, until" in refused.err and "secret-of-mine" not in refused.err
    assert paste(home, another).code == 2
    assert not home.has_loop("repo-2")


def test_a_command_with_a_place_for_a_persons_own_words_does_nothing_as_it_is(home: Home) -> None:
    for words in (["run", "…"], ["run", " … ", "-t", home.tasks(1)]):
        assert home.bydawn(*words, "-a", home.rounds([DONE])).code == 2
    assert not home.states.exists()
    ended = home.run(home.rounds([OK]), "--max-no-change", "1")
    [tell, *_] = offered(ended)
    assert tell == 'bydawn tell repo "…"'
    assert paste(home, tell).code == 2
    assert home.show()["notes_waiting"] == []


# -- loops of one name -------------------------------------------------------------------------------------------------


def test_of_two_loops_with_one_name_the_right_one_is_named(home: Home) -> None:
    """`app` in one folder, `app` in another, and at last in a folder that has the same name, too."""
    folders = [home.root / "a b", home.root / "c", home.root / "deep/c"]
    agent = home.rounds([WRITES, OK])
    for folder in folders:
        folder.mkdir(parents=True)
    run = ["run", "do it", "-a", agent, "--name", "app", "--rounds", "2", "--once", "--plain"]
    alone = home.bydawn(*run, "-C", str(folders[0]))
    assert offered(alone)[0] == "bydawn resume app"
    second = home.bydawn(*run, "-C", str(folders[1]))
    assert offered(second)[0] == "bydawn resume app@c"
    assert offered(home.bydawn("show", "app", "-C", str(folders[0])))[0] == "bydawn resume 'app@a b'"
    third = home.bydawn(*run, "-C", str(folders[2]))
    assert offered(third)[0] == f"bydawn resume app -C {folders[2]}"
    for command in (*offered(third), *offered(home.bydawn("show", "app", "-C", str(folders[1])))):
        assert paste(home, command).code in (0, 4), command
    assert paste(home, offered(home.bydawn("status"))[0]).code == 0
    assert commands_in(home.bydawn("resume", "app", "-C", str(folders[1]), "--accept").err) == [
        f"bydawn resume app -C {folders[1]}"
    ]
