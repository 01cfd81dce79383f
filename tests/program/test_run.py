"""The installed command, from a prompt to an end."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from driving import DONE, OK, Home

GIVEN = "<promise>TASK_COMPLETE</promise>"


def test_with_nothing_else_the_promise_is_required_and_the_end_is_unverified(home: Home) -> None:
    said = home.run(home.rounds([OK], [DONE]))
    assert said.code == 0
    assert home.status()["state"] == "unverified"
    assert home.outcomes() == ["ok", "ok"]
    assert "there is only the agent's word for it" in said.out


def test_with_checks_the_promise_is_required_only_if_asked_for(home: Home) -> None:
    agent = home.rounds([{"write": {"path": "made", "text": "x"}}, OK])
    assert home.run(agent, "-k", "test -e made").code == 0
    assert home.status()["state"] == "complete"
    asked = home.rounds([{"write": {"path": "again", "text": "x"}}, OK], [DONE])
    assert home.run(asked, "-k", "test -e again", "--done-when", "TASK_COMPLETE").code == 0
    assert home.outcomes("repo-2") == ["ok", "ok"]


def test_a_promise_is_not_believed_while_a_check_fails_and_the_next_prompt_says_so(home: Home) -> None:
    agent = home.rounds([DONE], [{"write": {"path": "made", "text": "x"}}, DONE])
    said = home.run(agent, "-k", "test -e made || { echo made is missing >&2; false; }", "--done-when", "TASK_COMPLETE")
    assert said.code == 0
    prompt = (home.folder() / "rounds/0002/prompt.md").read_text()
    assert "was rejected" in prompt
    assert "made is missing" in prompt
    assert "the agent says it is done, but" in said.out


def test_required_paths_and_texts_are_checks_like_any_other(home: Home) -> None:
    steps = [{"write": {"path": "docs/a.md", "text": "Quick start"}}, OK]
    agent = home.rounds([OK], steps)
    assert (
        home.run(agent, "--require-path", "docs/a.md", "--require-text", "docs/a.md::Quick", "--no-promise").code == 0
    )
    verdicts = [fact["data"]["verdicts"] for fact in home.facts("checks.ended")]
    before, first, second = [[verdict["passed"] for verdict in each] for each in verdicts]
    assert (before, first, second) == ([False, False], [False, False], [True, True])


def test_the_row_of_a_check_speaks_of_tasks_only_where_there_are_some(home: Home) -> None:
    home.run(home.rounds([OK]), "-k", "test -e made", "--once")
    (home.repo / "made").touch()
    ended = home.bydawn("resume", "--plain")
    assert ended.code == 0
    assert "all tasks are done" not in ended.out
    assert "the work tree as it is now" in ended.out
    home.run(home.rounds([OK]), "-t", home.tasks(1), "-k", "true", "--once")
    (home.repo / "TODO.md").write_text("- [x] task 1\n")
    assert "all tasks are done" in home.bydawn("resume", "--plain").out


def test_run_with_the_same_prompt_goes_on_and_says_so(home: Home) -> None:
    agent = home.rounds([OK], [DONE])
    assert home.run(agent, "--once").code == 4
    said = home.run(agent)
    assert said.code == 0
    assert "Continuing repo after round 1" in said.out
    assert [fact["data"]["round"] for fact in home.facts("round.started")] == [1, 2]


def test_the_limit_of_rounds_ends_the_loop_and_resume_raises_it(home: Home) -> None:
    write = {"append": {"path": "log", "text": "x"}}
    agent = home.rounds([write, OK], [write, OK], [write, DONE])
    said = home.run(agent, "-n", "2")
    assert said.code == 4
    assert home.status()["reason"] == "all 2 rounds are used up"
    assert "resume repo --rounds +20" in said.out
    assert home.bydawn("resume", "--plain").code == 4  # not raised: the limit still holds
    assert home.bydawn("resume", "--plain", "--rounds", "+1").code == 0
    assert home.status()["rounds_limit"] == 3


def test_no_progress_blocks_and_a_persons_resume_gives_a_fresh_chance(home: Home) -> None:
    said = home.run(home.rounds([OK]), "--max-no-change", "3")
    assert said.code == 3
    assert home.status()["reason"].startswith("3 rounds in a row made no new change")
    assert home.bydawn("resume", "--plain").code == 3
    assert len(home.rounds_ended()) == 6


def test_time_limits_let_the_round_finish(home: Home) -> None:
    """The limits leave room for a start on a busy machine: the time before the first round counts, too."""
    agent = home.rounds([{"sleep": 4.1}, {"append": {"path": "log", "text": "x"}}, OK])
    assert home.run(agent, "--for", "4s").code == 4
    assert home.outcomes() == ["ok"]
    soon = (datetime.now(UTC) + timedelta(seconds=4)).isoformat()
    assert home.run(agent, "--until", soon, "--new").code == 4
    assert home.facts("loop.stopped", "repo-2")[0]["data"]["decided"]["rule"] == "until"
    assert json.loads(home.bydawn("why", "repo-2", "--json").out)["agrees"] is True


def test_a_prompt_may_come_from_a_file_or_from_standard_input(home: Home) -> None:
    agent = home.rounds([DONE])
    (home.root / "goal.md").write_text("the goal in a file")
    assert home.bydawn("run", f"@{home.root}/goal.md", "-a", agent, "--name", "filed").code == 0
    with (home.root / "goal.md").open() as goal:
        process = home.start("run", "-", "-a", agent, "--name", "piped", stdin=goal)
        process.communicate(timeout=30)
    assert process.returncode == 0
    for name in ("filed", "piped"):
        assert "the goal in a file" in (home.folder(name) / "rounds/0001/prompt.md").read_text()


def test_words_with_a_space_are_a_prompt_and_a_single_word_never_is(home: Home) -> None:
    assert home.bydawn("do it now", "-a", home.rounds([DONE])).code == 0
    assert home.show()["prompt"] == "do it now"


def test_a_dry_run_shows_everything_and_writes_nothing(home: Home) -> None:
    home.tasks(2)
    said = home.run(home.rounds([DONE]), "-t", "TODO.md", "-k", "make test", "--dry-run")
    assert said.code == 0
    shown = "".join(said.out.split())  # long paths are folded
    for word in ("player.py", "make test", "task 1", "30 rounds", "2 open", str(home.states)):
        assert word.replace(" ", "") in shown
    assert not home.states.exists()
    assert not (home.repo / ".bydawn").exists()


def test_a_rehearsal_and_show_name_the_agents_word_where_checks_need_it(home: Home) -> None:
    (home.repo / "Makefile").write_text("test:\n\ttrue\n")
    shown = home.run(home.rounds([OK]), "-k", "make test", "--dry-run")
    assert "Needs checks and promise" in " ".join(shown.out.split())
    home.run(home.rounds([OK]), "-k", "make test", "--rounds", "1")
    assert home.show()["requires"] == ["checks", "promise"]


@pytest.mark.parametrize("rehearsed", [[], ["--dry-run"]])
def test_a_checkpoint_that_is_code_is_warned_about(home: Home, rehearsed: list[str]) -> None:
    (home.repo / "TODO.md").write_text("# Plan\n\n    HARD STOP\n\n- `HARD STOP`\n- [ ] a\n\nHARD STOP\n")
    said = home.run(home.each_task(), "-t", "TODO.md", "--checkpoint", "HARD STOP", *rehearsed)
    told = [row.strip() for row in said.out.splitlines() if "not a checkpoint" in row]
    assert [row.partition("TODO.md, ")[2] for row in told] == [
        f"line {line}: HARD STOP is inside code, so it is not a checkpoint" for line in (3, 5)
    ]


def test_a_line_that_only_looks_like_a_task_is_warned_about(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [ ] real\n- [~] half done\n")
    said = home.run(home.each_task(), "-t", "TODO.md")
    assert "! TODO.md, line 2: `[~]` is neither open nor done" in said.out
    assert home.status()["tasks"] == {"open": 0, "done": 1}


def test_any_program_can_be_the_agent_and_its_exit_code_decides(home: Home) -> None:
    script = home.root / "agent.sh"
    script.write_text(f'#!/bin/sh\ngrep -q "do it" || exit 9\necho working\necho "{GIVEN}"\n')
    script.chmod(0o755)
    assert home.run(f"cmd:{script}").code == 0
    assert home.rounds_ended()[0]["promise"] == "given"


def test_an_agent_is_found_where_the_person_is_and_not_where_the_loop_works(home: Home) -> None:
    other = home.root / "other"
    other.mkdir()
    script = home.repo / "agent.sh"
    script.write_text(f'#!/bin/sh\ncat > prompt\necho "{GIVEN}"\n')
    script.chmod(0o755)
    assert home.bydawn("run", "x", "-a", "cmd:./agent.sh", "-C", str(other), "--plain").code == 0
    assert (other / "prompt").exists()


def test_the_truth_is_private_and_linked_from_the_workspace(home: Home) -> None:
    home.run(home.rounds([DONE]))
    for path in [home.states, *home.states.rglob("*")]:
        if "/git/" not in str(path) and not path.is_symlink():
            assert path.stat().st_mode & 0o077 == 0, path
    assert (home.repo / ".bydawn/loops/repo").resolve() == home.folder()
    assert (home.repo / ".bydawn/.gitignore").read_text() == "*\n"


def test_the_demo_shows_a_caught_lie_and_a_failure_fed_back(home: Home) -> None:
    said = home.bydawn("demo", BYDAWN_DEMO_PACE="0")
    assert said.code == 0
    assert "expected 'cafe', got 'caf' → sent to the agent in round 3" in said.out
    assert "the agent says it is done, but tests were changed, and no reason was given: test_words.py" in said.out
    assert "the checks pass without it: Write the CLI" in said.out
    assert "✓ Complete: 4 of 4 tasks, 6 rounds" in said.out
    [loop] = json.loads(home.bydawn("status", "--json").out)["loops"]
    assert (loop["state"], loop["tasks"]) == ("complete", {"open": 0, "done": 4})


def test_what_the_demo_prints_can_be_pasted(home: Home) -> None:
    said = home.bydawn("demo", BYDAWN_DEMO_PACE="0", BYDAWN_AS="bydawn")
    pasted = [
        line.split("  ")[0] for line in (row.strip() for row in said.out.splitlines()) if line.startswith("bydawn ")
    ]
    assert len(pasted) >= 4
    for line in pasted[1:] if pasted[0].startswith("bydawn demo ·") else pasted:
        assert home.bydawn(*line.split()[1:]).code == 0, line


@pytest.mark.installed
def test_nothing_is_left_open(home: Home) -> None:
    """Python's development mode names every file and socket that is forgotten."""
    watched: dict[str, Any] = {"PYTHONDEVMODE": "1"}
    assert home.run(home.rounds([OK]), "-k", "test -e made", "--once", **watched).err == ""
    (home.repo / "made").touch()
    for words in (["resume", "--plain"], ["status"], ["show"], ["logs"], ["doctor"]):
        assert home.bydawn(*words, **watched).err == "", words
