"""What a person reads of one loop: everything that `run` said, and where to read more."""

import os
import re
import signal

from driving import DONE, HANG, OK, Home, Step, wait_for, worker_of

WRITES: Step = {"append": {"path": "log", "text": "x"}}


def test_the_end_of_what_a_failing_check_printed_is_shown_and_the_way_there_is_offered(home: Home) -> None:
    lines = r'seq 1 40; printf "\033[31mE  assert 1 == 2\033[0m\n"; echo key=$MY_TOKEN; exit 3'
    home.env |= {"MY_TOKEN": "hunter2hunter2"}
    ended = home.run(home.rounds([WRITES, OK]), "-k", lines, "-k", "true", "--rounds", "2", "--pass-env", "MY_TOKEN")
    assert "bydawn show repo --round 2" in ended.out
    assert "bydawn show repo --round 2" in home.bydawn("show").out
    shown = home.bydawn("show", "repo", "--round", "2").out.splitlines()
    printed = [line.partition("│ ")[2] for line in shown if "│" in line]
    assert printed == [*map(str, range(33, 41)), "E  assert 1 == 2", f"key={'*' * 14}"]
    [file] = [line.strip() for line in shown if line.endswith("check-1.txt")]
    assert file == str(home.folder() / "rounds/0002/check-1.txt")


def test_at_the_end_a_long_command_gives_way_and_not_the_reason(home: Home) -> None:
    command = f"echo {' '.join(map(str, range(200)))} >/dev/null; echo FAILED test_a; exit 1"
    ended = home.run(home.rounds([WRITES, OK]), "-k", command, "--rounds", "1")
    rows = [line for line in ended.out.splitlines() if line.startswith("    · ")]
    assert len(rows) == 1
    assert rows[0].endswith("…: exit 1: FAILED test_a")
    assert len(rows[0]) <= 100
    assert home.bydawn("show").out.count("exit 1: FAILED test_a") == 1


def test_a_loop_whose_checks_are_green_offers_nothing_about_red_ones(home: Home) -> None:
    ended = home.run(home.rounds([WRITES, OK]), "-k", "true", "--done-when", "ready", "--rounds", "1")
    assert ended.code == 4
    assert "--round 1  " not in ended.out.replace("logs repo --round 1", "")


def test_in_a_pipe_nothing_is_wrapped_and_in_few_columns_no_path_is_broken(home: Home) -> None:
    path = f"{home.root}/a/very/long/path/{'x' * 60}/file.txt"
    prompt = f"write {path} {'again and ' * 15}again"
    home.bydawn("run", prompt, "-a", home.rounds([WRITES, OK]), "--rounds", "1", "--plain")
    assert prompt in home.bydawn("show").out
    assert path in home.bydawn("show", COLUMNS="40").out
    for words in (["why"], ["show", "--round", "1"]):
        assert home.bydawn(*words, COLUMNS="40").out.split() == home.bydawn(*words).out.split()


def test_every_limit_that_is_set_is_shown_before_it_strikes(home: Home) -> None:
    agent = home.rounds([WRITES, {"result": {"text": "did it", "usage": {"tokens_in": 900, "tokens_out": 100}}}])
    limits = ["--budget", "5000tok", "--for", "8h", "--until", "2099-01-02T07:00", "--rounds", "1"]
    dry = home.run(agent, *limits, "--dry-run")
    header = home.run(agent, *limits)
    for shown, label in ((dry, "Limits"), (header, "Limit ")):
        [row] = [line for line in shown.out.splitlines() if line.startswith(f"  {label}")]
        for words in ("1 round", "8 h 00", "until 2099-01-02 07:00", "5,000 tokens"):
            assert words in row
        assert "1 rounds" not in row
    lines = home.bydawn("why").out.partition("\n  Limits  ")[2].splitlines()
    read = [line.strip() for line in lines]
    assert "rounds: 1 of 1" in read
    assert "tokens: 1,000 of 5,000" in read
    assert any(row.startswith("time worked: ") and row.endswith(" of 8 h 00") for row in read)
    assert any(row.startswith("clock: ") and row.endswith("until 2099-01-02 07:00") for row in read)


def test_a_limit_that_is_switched_off_is_not_read(home: Home) -> None:
    home.run(home.rounds([WRITES, OK]), "--once", "--rounds", "0", "--max-no-change", "0")
    assert " of 0" not in home.bydawn("why").out


# -- the same as elsewhere ---------------------------------------------------------------------------------------------


def test_show_says_of_a_round_what_run_said(home: Home) -> None:
    flaky = "sleep 1; test ! -e log || test -e seen && rm -f seen || { touch seen; false; }"
    (home.repo / ".gitignore").write_text("seen\n")
    ended = home.run(home.rounds([WRITES, OK]), "-k", flaky, "--rounds", "1")
    [row] = [line for line in ended.out.splitlines() if line.startswith("  1 ")]
    [shown] = [line for line in home.bydawn("show").out.splitlines() if line.startswith("  1 ")]
    assert "FLAKY" in row and "FLAKY" in shown
    time = next(word for word in row.split() if word.isdigit() and word != "1")
    assert f" {time} s " in shown
    assert f", checks {time} s" in home.bydawn("show", "--round", "1").out


def test_a_skipped_task_is_not_open_in_any_screen(home: Home) -> None:
    home.tasks(3)
    home.run(home.each_task(WRITES), "-t", "TODO.md", "-k", "true", "--rounds", "1")
    home.bydawn("tasks", "skip", "repo", "3")
    assert "1 open · 1 done · 1 skipped" in home.bydawn("tasks", "list").out
    shown = home.bydawn("show").out
    assert "1 task is open" in shown
    assert "1/2 tasks" in shown
    assert home.show()["tasks"] == {"open": 1, "done": 1}


def test_show_does_not_offer_itself(home: Home) -> None:
    ended = home.run(home.rounds([WRITES, DONE]), "-k", "true")
    assert "bydawn show repo  " in ended.out
    assert "bydawn show" not in home.bydawn("show").out


# -- a loop that is done -----------------------------------------------------------------------------------------------


def test_show_has_all_that_run_said_at_the_end(home: Home) -> None:
    home.tasks(3)
    run = ["-t", "TODO.md", "-k", "true", "--rounds", "1", "--post-round", "exit 4", "--on-complete", "exit 5"]
    home.run(home.each_task(WRITES), *run)
    home.bydawn("tasks", "skip", "repo", "2")
    ended = home.bydawn("resume", "--plain", "--rounds", "9")
    assert ended.code == 0
    rows = [line.removeprefix("    · ") for line in ended.out.splitlines() if line.startswith("    · ")]
    assert "skipped by a person: “task 2”" in rows
    shown = home.bydawn("show").out
    assert all(f"Proof   {row}" in shown for row in rows)
    number = home.status()["round"]
    rounds = ", ".join(map(str, range(1, number + 1)))
    assert f"Hook    hook post_round failed: exit 4 (rounds {rounds})" in shown
    assert f"Hook    hook on_complete failed: exit 5 (round {number})" in shown


def test_show_says_that_nothing_was_proven_and_that_a_promise_was_only_mentioned(home: Home) -> None:
    home.run(
        home.rounds([{"result": {"text": "I will write <promise>TASK_COMPLETE</promise> soon"}}], [DONE]), "--once"
    )
    assert "Promise only mentioned by the agent, not given: not accepted" in home.bydawn("show").out
    ended = home.bydawn("resume", "--plain")
    for said in (ended, home.bydawn("show")):
        assert "no checks were configured, so there is only the agent's word for it" in said.out


def test_a_note_that_came_too_late_waits_for_nothing(home: Home) -> None:
    gate, opened = home.gate()
    process = home.start_run(home.rounds([{"say": "hello"}, gate, DONE]), "--rounds", "1")
    home.await_round(1)
    home.bydawn("tell", "repo", "one more thing")
    wait_for(lambda: home.facts("note.added"))
    assert "goes into the next prompt" in home.bydawn("show").out
    opened.touch()
    assert process.wait(20) == 0
    assert "“one more thing” was never used: the loop ended first" in home.bydawn("show").out


# -- a loop that crashed -----------------------------------------------------------------------------------------------


def test_of_a_loop_that_crashed_every_screen_says_so_and_how_to_go_on(home: Home) -> None:
    running = home.start_run(home.rounds([{"say": "hello"}, HANG]))
    home.await_round(1)
    os.kill(worker_of(running), signal.SIGKILL)
    wait_for(lambda: not home.status()["alive"])
    shown = {words: home.bydawn(words).out for words in ("status", "show", "why")}
    for out in shown.values():
        assert "crashed" in out
        assert re.search(r"its process died around 20[-0-9: ]+, in round 1\b", out)
    assert "its process died" in home.status()["reason"]
    assert "running" not in shown["show"]
    assert re.search(r"(?m)^  1 .* interrupted$", shown["show"])
    assert "Round   1 of repo, interrupted" in home.bydawn("show", "--round", "1").out
    assert "nothing above applies" not in shown["why"]
    for out in (shown["show"], shown["why"]):
        assert "bydawn resume repo" in out


def test_what_was_red_from_the_beginning_is_not_read_as_green_before(home: Home) -> None:
    home.run(home.rounds([WRITES, OK]), "-k", "false", "--rounds", "1")
    assert "rounds in a row with a newly failing check: 0 of 15" in home.bydawn("why").out


# -- an agent that asks ------------------------------------------------------------------------------------------------


def test_what_an_agent_asks_is_quoted_and_can_be_answered(home: Home) -> None:
    ended = home.run(home.rounds([{"result": {"text": "## BLOCKED\n\nWhich of the two databases?"}}]))
    assert ended.code == 3
    for said in (ended, *(home.bydawn(each) for each in ("status", "show", "why"))):
        assert "the agent says: “Which of the two databases?”" in said.out
    for said in (ended, home.bydawn("show")):
        offers = re.findall(r"(?m)^    (?:\d  )?(bydawn .*?)(?:  |$)", said.out)
        assert offers[:2] == ['bydawn tell repo "…"', "bydawn resume repo"]
        assert "answer the agent" in said.out
    assert home.status()["reason"] == "Which of the two databases?"


# -- an agent that is not let in ---------------------------------------------------------------------------------------


def test_who_is_not_logged_in_is_given_the_command_for_it_in_plain_words(home: Home) -> None:
    codex = home.root / "bin/codex"
    codex.parent.mkdir()
    codex.write_text("#!/bin/sh\necho 'not logged in; run `rm -rf x`' >&2\nexit 1\n")
    codex.chmod(0o755)
    home.env["PATH"] = f"{codex.parent}:{home.env['PATH']}"
    ended = home.run("codex")
    assert ended.code == 7
    for said in (ended, home.bydawn("show")):
        last = [line.strip().partition("  ")[0] for line in said.out.rpartition("\n\n")[2].splitlines()]
        assert [row for row in last if row != "Next"] == [
            "codex login",
            "bydawn logs repo --round 1",
            "bydawn resume repo",
        ]
    for said in (ended, home.bydawn("why"), home.bydawn("show")):
        assert "codex is not logged in; run `codex login`" in said.out
        assert "it said: “not logged in; run `rm -rf x`”" in said.out
        assert "the provider rejects the agent's log-in" in said.out
        assert "· auth" not in said.out and "Proof   auth" not in said.out
    assert "or set the key that its configuration names" in home.bydawn("status").out
    narrow = home.bydawn("status", COLUMNS="48").out
    assert "its configuration names" in " ".join(narrow.split())
    assert all(len(line) <= 48 for line in narrow.splitlines())


def test_what_is_offered_fits_into_few_columns(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [ ] one\n- [ ] two\n")
    home.run(home.rounds([{"run": ["sed", "-i", "2d", "TODO.md"]}, DONE]), "-t", "TODO.md")
    rows = home.bydawn("show", COLUMNS="42").out.partition("Next")[2].splitlines()
    assert any("bydawn tasks edit" in row for row in rows)
    assert all(len(row) <= 42 for row in rows), rows
