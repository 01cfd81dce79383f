"""Agents that lie, forget, cheat or work in odd places, with real git and the installed command: each ends right."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from bydawn.core.loop import CommandCheck
from bydawn.operations.check_programs import refuse_missing_programs
from core.facts_made import a_loop
from driving import DONE, ME, OK, Home, Said, Step, a_repository, kill_both, tree_of, wait_for, worker_of
from program.terminal_driver import Terminal

RIGHT: Step = {"write": {"path": "app.txt", "text": "right\n"}}
CHECK = "grep -q right app.txt"


def shell(command: str) -> Step:
    """What an agent does with its own hands."""
    return {"run": ["sh", "-c", command]}


def says(text: str) -> Step:
    return {"result": {"text": text}}


def git(command: str) -> str:
    return f"git {' '.join(ME)} {command}"


def stop_of(home: Home) -> dict[str, Any]:
    return dict(home.facts("loop.stopped")[-1]["data"])


def ended(home: Home, said: Said, code: int, rule: str) -> None:
    assert said.code == code, said
    assert stop_of(home)["decided"]["rule"] == rule
    assert "Replayed: same decision" in home.bydawn("why").out


# -- the agent's word against the machines' ----------------------------------------------------------------------------


def test_red_before_and_red_after_is_said_and_is_not_complete(home: Home) -> None:
    grows = shell("date +%N >> log.txt")
    said = home.run(home.rounds([grows, OK]), "-k", "false", "-n", "3")
    ended(home, said, 4, "rounds")
    assert home.show()["red_before"] == ["false"]
    assert "it already failed before the first round" in home.bydawn("show").out


def test_checks_can_run_where_nothing_but_the_kept_tree_is(home: Home) -> None:
    """What is only in an ignored file is no proof for anybody else."""
    (home.repo / ".gitignore").write_text("*.secret\n")
    cheat = [{"write": {"path": "app.secret", "text": "right"}}, OK]
    check = ("-k", "cat app.* | grep -q right", "--no-promise")
    assert home.run(home.rounds(cheat), *check, "-n", "1").code == 0
    said = home.run(home.rounds(cheat, [RIGHT, OK]), *check, "--check-where", "clean", "--new")
    ended_at = [fact["data"]["verdicts"][0]["passed"] for fact in home.facts("checks.ended", "repo-2")]
    assert (said.code, ended_at) == (0, [False, False, True])
    assert "exit 1, in a clean checkout" in said.out
    assert "in a clean checkout in a separate folder" in (home.folder("repo-2") / "rounds/0001/prompt.md").read_text()


# -- the list ----------------------------------------------------------------------------------------------------------


def tick_all() -> Step:
    return shell("sed -i 's/\\[ \\]/[x]/' TODO.md")


def test_boxes_that_are_all_ticked_without_work_are_doubted(home: Home) -> None:
    home.tasks(3)
    said = home.run(
        home.rounds([tick_all(), OK], [says("## Already done\n" + "".join(f"- task {n}\n" for n in (1, 2, 3)))]),
        "-t",
        "TODO.md",
    )
    ended(home, said, 0, "complete")
    assert [len(row["doubted"]) for row in home.rounds_ended()] == [3, 0]
    assert "ticked without any other change, so not confirmed" in said.out


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("sed -i 1d TODO.md", "lost 1 open task"),
        ("rm TODO.md", "is gone"),
        (": > TODO.md", "no longer has any tasks"),
        ("rm TODO.md; mkdir TODO.md", "expected a file"),
        ("printf '\\377\\376' > TODO.md", "cannot be read"),
        ("head -c 30000000 /dev/zero > TODO.md", "cannot be read"),
        ("echo 'no boxes here' > TODO.md", "no longer has any tasks"),
    ],
)
def test_a_list_that_was_damaged_is_never_an_empty_one(home: Home, deed: str, reason: str) -> None:
    home.tasks(2)
    said = home.run(home.rounds([shell(deed), DONE]), "-t", "TODO.md")
    ended(home, said, 3, "task-file")
    assert reason in stop_of(home)["reason"]
    assert home.status()["tasks"] == {"open": 2, "done": 0}
    again = home.bydawn("resume")  # by somebody who has not seen that there is something to mend
    assert (again.code, home.status()["tasks"]) == (3, {"open": 2, "done": 0}), again


def test_a_task_that_was_lost_is_named_even_to_who_comes_later(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [ ] Build it\n- [ ] Ship it\n")
    said = home.run(home.rounds([shell("sed -i 2d TODO.md"), DONE]), "-t", "TODO.md")
    told = 'TODO.md lost 1 open task: vanished without being ticked ("Ship it")'
    assert told in " ".join(said.out.split())
    assert told in " ".join(home.bydawn("resume").out.split())


def test_a_check_that_cannot_be_started_does_not_burn_the_night(home: Home) -> None:
    steps = [[{"write": {"path": f"{number}.txt", "text": "x"}}, OK] for number in range(30)]
    said = home.run(home.rounds(*steps), "-k", "./pytset -q")
    ended(home, said, 3, "same-failure")
    assert "a program that it needs is missing; if its name is wrong, stop now (Ctrl-C)" in said.out
    assert (len(home.rounds_ended()), "a check found no program to run 5 times" in said.out) == (5, True)


def test_a_check_whose_program_is_nowhere_is_refused_before_anything_is_paid_for(home: Home) -> None:
    said = home.run(home.rounds([OK]), "-k", "CI=1 cd . && pytset -q")
    assert (said.code, home.has_loop()) == (2, False)
    assert "there is no program 'pytset'" in said.err and "did you mean" in said.err and home.env["PATH"] in said.err


@pytest.mark.parametrize(
    "command", ["PATH=/x/bin:/usr/bin mytool", "f () { true; }; f", "PATH=/x:$PATH CI=1 mytool -q"]
)
def test_a_check_with_a_path_or_a_function_of_its_own_is_not_refused(command: str) -> None:
    refuse_missing_programs(a_loop(checks=(CommandCheck(command=command),)))


def test_a_folder_of_tasks_is_worked_off_in_the_order_of_what_they_need(home: Home) -> None:
    folder = home.repo / "tasks"
    folder.mkdir()
    (folder / "1-page.md").write_text("---\ndepends_on: [2-model]\n---\n# The page\n")
    (folder / "2-model.md").write_text("# The model\nwith all its fields\n")
    work = [shell("date +%N > work-$BYDAWN_ROUND"), says("It is there.\n\nSTATUS: done\n")]
    ended(home, home.run(home.rounds(work), "-t", "tasks", "-k", "true"), 0, "complete")
    assert [fact["data"]["task_id"] for fact in home.facts("round.started")] == ["2-model", "1-page"]
    assert "with all its fields" in (home.folder() / "rounds/0001/prompt.md").read_text()
    assert "done" in home.bydawn("tasks", "list", "repo").out
    assert tree_of(folder) == {
        "1-page.md": (folder / "1-page.md").read_bytes(),
        "2-model.md": b"# The model\nwith all its fields\n",
    }, "nobody edited a task"


def test_a_task_that_is_only_claimed_is_named_in_the_report_and_so_is_one_that_was_rewritten(home: Home) -> None:
    folder = home.repo / "tasks"
    folder.mkdir()
    (folder / "1.md").write_text("# One\n")
    (folder / "2.md").write_text("# Two\nall of it\n")
    lazy = [shell("echo '# Two: nothing' > tasks/2.md"), says("STATUS: done\n")]
    said = home.run(home.rounds(lazy), "-t", "tasks", "-k", "true")
    ended(home, said, 0, "complete")
    assert "done without a change of its own: 1, 2" in said.out
    assert "with a text that a round changed: 2" in said.out
    assert "doubted" in home.bydawn("tasks", "list", "repo").out


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.md": "# A\n<!-- depends_on: b -->", "b.md": "# B\n<!-- depends_on: a -->"}, "a → b → a"),
        ({"a.md": "# A\n<!-- depends_on: nobody -->"}, "has no task nobody"),
        ({"a.md": ""}, "which is empty"),
    ],
)
def test_a_folder_that_makes_no_sense_is_refused_at_the_start(home: Home, files: dict[str, str], words: str) -> None:
    (home.repo / "tasks").mkdir()
    for name, text in files.items():
        (home.repo / "tasks" / name).write_text(text)
    refused = home.run("demo", "-t", "tasks")
    assert (refused.code, words in refused.err) == (2, True), refused
    assert not home.has_loop()


# -- what no round may change ------------------------------------------------------------------------------------------


@pytest.fixture
def tested(home: Home) -> Home:
    """A repository with a test that fails, and a check that runs it."""
    (home.repo / "tests").mkdir()
    (home.repo / "tests/check.sh").write_text(f"{CHECK} || exit 1\n")
    return home


SUITE = ("-k", "for each in tests/*.sh; do test ! -e $each || sh $each || exit 1; done")
CHEATS = {
    "deleted": "rm tests/check.sh",
    "skipped": "echo exit 0 > tests/check.sh",
    "replaced by a link": "ln -sf /bin/true tests/check.sh",
    "made another program": "chmod +x tests/check.sh; echo true > tests/check.sh",
    "moved": "mv tests/check.sh tests/gone.txt",
}


@pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS.keys())
def test_a_changed_test_can_be_put_back_and_the_work_goes_on(tested: Home, cheat: str) -> None:
    before = tree_of(tested.repo / "tests")
    agent = tested.rounds([shell(cheat), DONE], [RIGHT, DONE])
    said = tested.run(agent, *SUITE, "--protect", "tests/**", "--on-tamper", "restore")
    ended(tested, said, 0, "complete")
    assert tree_of(tested.repo / "tests") == before
    assert not (tested.repo / "tests/check.sh").is_symlink()
    assert [row["restored"] for row in tested.rounds_ended()] == [True, False]
    assert "protected files were put back: tests/check.sh (round 1)" in said.out
    assert "Undone  changes to protected files: tests/check.sh (round 1)" in tested.bydawn("show").out
    assert tested.show()["put_back"]["tests/check.sh"] == [1]


def test_a_tired_person_who_just_resumes_gets_no_green_tick(tested: Home) -> None:
    agent = tested.rounds([shell("echo exit 0 > tests/check.sh"), DONE], [RIGHT, DONE])
    said = tested.run(agent, *SUITE, "--protect", "tests/**")
    assert "bydawn resume repo --accept" in said.out
    assert tested.bydawn("resume", "--plain").code == 3
    (tested.repo / "tests/check.sh").write_text(f"{CHECK} || exit 1\n")
    assert tested.bydawn("resume", "--plain").code == 0
    assert (tested.repo / "app.txt").read_text() == "right\n"


def test_a_person_may_want_it_as_it_is(tested: Home) -> None:
    tested.run(tested.rounds([shell("echo exit 0 > tests/check.sh"), DONE]), *SUITE, "--protect", "tests/**")
    assert "Changed protected files: tests/check.sh" in tested.bydawn("show").out
    assert tested.bydawn("resume", "--plain", "--accept").code == 0
    assert "Allowed changes you accepted: tests/check.sh" in tested.bydawn("show").out
    assert tested.bydawn("resume", "--accept").code == 2


@pytest.mark.parametrize("policy", ["block", "restore"])
def test_a_file_among_the_tests_that_git_is_told_to_ignore_is_seen(tested: Home, policy: str) -> None:
    cheat = shell("echo '*.env.sh' >> .git/info/exclude; echo exit 0 > tests/a.env.sh")
    agent = tested.rounds([cheat, RIGHT, DONE], [DONE])
    said = tested.run(agent, *SUITE, "--protect", "tests/**", "--on-tamper", policy)
    ended(tested, said, *((3, "tampered") if policy == "block" else (0, "complete")))
    assert tested.rounds_ended()[0]["tampered"] == ["tests/a.env.sh"]
    assert (tested.repo / "tests/a.env.sh").exists() is (policy == "block")


def test_a_test_that_is_swapped_while_the_check_runs_it_proves_nothing(tested: Home) -> None:
    swap = "cp -p tests/check.sh kept; echo exit 0 > tests/check.sh; sh tests/check.sh; cp -p kept tests/check.sh"
    agent = tested.rounds([{"write": {"path": "go.sh", "text": swap}}, DONE])
    said = tested.run(agent, "-k", "test ! -e go.sh || sh go.sh", "--protect", "tests/**")
    ended(tested, said, 3, "tampered")
    assert tested.facts("checks.ended")[-1]["data"]["verdicts"][0]["detail"] == (
        "protected files were changed while it ran: tests/check.sh"
    )


def test_a_glob_that_protects_nothing_is_warned_about(tested: Home) -> None:
    (tested.repo / ".gitignore").write_text("*.env\n")
    (tested.repo / "my.env").write_text("KEY=1\n")
    globs = ["--protect", "tests/**", "--protect", "test/**", "--protect", "my.env", "--protect", "README.md"]
    said = tested.run(tested.rounds([DONE]), *globs)
    assert [row.split("'")[1] for row in said.out.splitlines() if "matches no file" in row] == ["test/**"]


def test_the_ledger_is_out_of_its_reach_and_a_forged_one_is_noticed(home: Home) -> None:
    forge = shell('printf forged >> "$(readlink -f .bydawn/loops/repo)/ledger.jsonl"')
    said = home.run(home.rounds([forge, DONE], [DONE]))
    assert said.code == 1
    assert "another process wrote to it" in said.err
    assert home.bydawn("doctor", "--repair", "repo").code == 0
    assert home.bydawn("resume", "--plain").code == 0


def test_an_agent_cannot_approve_skip_or_raise_anything(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [ ] one\n\nHARD STOP\n\n- [ ] two\n")
    tries = "; ".join(
        f"bydawn {words} >> out.txt 2>&1; echo $? >> codes.txt"
        for words in ("resume repo --approve", "tasks skip repo 1", "resume repo --rounds +5", "tasks add repo more")
    )
    agent = home.rounds([shell(f"{tries}; sed -i 's/\\[ \\] one/[x] one/' TODO.md"), OK])
    ended(home, home.run(agent, "-t", "TODO.md", "--checkpoint", "HARD STOP"), 5, "checkpoint")
    assert "0" not in (home.repo / "codes.txt").read_text().split()
    assert "from inside a round" in (home.repo / "out.txt").read_text()


def test_an_agent_cannot_steer_through_an_orphan_that_hides_its_parent(home: Home) -> None:
    (home.repo / "TODO.md").write_text("- [ ] one\n- [ ] two\n")
    orphan = "env -i HOME=$HOME PATH=$PATH setsid sh -c '(bydawn tasks skip repo 2; echo $? > code) 2> out.txt &'"
    ticks = "sed -i 's/\\[ \\] one/[x] one/' TODO.md"
    agent = home.rounds([shell(f"{orphan}; until test -s code; do sleep 0.05; done; {ticks}"), OK])
    ended(home, home.run(agent, "-t", "TODO.md", "-k", "true", "-n", "1"), 4, "rounds")
    assert (home.repo / "code").read_text() == "2\n"
    assert "left behind" in (home.repo / "out.txt").read_text()


# -- git in odd places -------------------------------------------------------------------------------------------------

EACH = "echo $BYDAWN_ROUND >> work.txt"
PLACES = {
    "only untracked files": shell("date +%N > new-$BYDAWN_ROUND.txt"),
    "commits what it does": shell(f"{EACH}; {git('add -A')}; {git('commit -qm work')}"),
    "amends": shell(f"{EACH}; {git('add -A')}; {git('commit -q --amend -m amended')}"),
    "switches branches": shell(f"{git('checkout -qb b$BYDAWN_ROUND')}; {EACH}"),
    "works in a second repository below": shell(f"cd below; {EACH}"),
    "and commits there": shell(f"cd below; {EACH}; {git('add -A')}; {git('commit -qm below')}"),
}


@pytest.mark.parametrize("deed", PLACES.values(), ids=PLACES.keys())
def test_no_productive_round_is_called_no_progress(home: Home, deed: Step) -> None:
    a_repository(home.repo / "below", "another")
    (home.repo / "mine").write_text("a dirty tree, to begin with")
    said = home.run(home.rounds([deed, OK]), "-n", "4", "--max-no-change", "1", "--require-path", "never")
    ended(home, said, 4, "rounds")
    assert [row["progress"] for row in home.rounds_ended()] == [True] * 4


def test_a_commit_of_what_was_there_before_is_no_progress(home: Home) -> None:
    (home.repo / "mine.txt").write_text("a person's own, not yet committed\n")
    only = shell(f"{git('add -A')}; {git('commit -qm all --allow-empty')}")
    ended(home, home.run(home.rounds([only, OK]), "--require-path", "never"), 3, "no-progress")
    assert (home.repo / "mine.txt").read_text() == "a person's own, not yet committed\n"


def test_notes_and_lists_are_no_progress(home: Home) -> None:
    home.tasks(2)
    notes = shell("date +%N >> NOTES.md; date +%N >> TODO.md")
    said = home.run(home.rounds([notes, OK]), "-t", "TODO.md", "--progress", "NOTES.md")
    ended(home, said, 3, "no-progress")


# -- words that a person gave ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "reply", "code"),
    [
        ("anywhere", "I will not print <promise>TASK_COMPLETE</promise> yet.", 0),
        ("own-line", "I will not print <promise>TASK_COMPLETE</promise> yet.", 4),
    ],
)
def test_where_a_promise_may_stand_is_up_to_the_person(home: Home, match: str, reply: str, code: int) -> None:
    assert home.run(home.rounds([says(reply)]), "--done-match", match, "-n", "1").code == code


def test_a_pattern_that_would_take_for_ever_takes_two_seconds_and_blocks(home: Home) -> None:
    agent = home.rounds([shell("date +%N > work-$BYDAWN_ROUND"), says("a" * 40 + "b")])
    said = home.run(agent, "--done-mode", "regex", "--done-when", "(a+)+$", "-k", "true", seconds=30)
    ended(home, said, 3, "obstructed")
    assert len(home.rounds_ended()) == 1
    for text in (said.out, home.bydawn("show").out, home.bydawn("why").out):
        assert "the pattern (a+)+$ took more than 2 seconds on the reply" in text
    assert home.bydawn("resume", seconds=30).code == 3  # it does not go on as if nothing were wrong with it


# -- checkpoints -------------------------------------------------------------------------------------------------------


@pytest.fixture
def planned(home: Home) -> Home:
    (home.repo / "TODO.md").write_text("- [ ] one\n\n## HARD STOP: look at the design\n\n- [ ] two\n")
    return home


def do_next() -> list[Step]:
    return [shell("sed -i '0,/\\[ \\]/s//[x]/' TODO.md; date +%N > work-$BYDAWN_ROUND"), OK]


CHECKPOINT = ("-t", "TODO.md", "--checkpoint", "HARD STOP")


def test_a_checkpoint_is_approved_once_and_the_loop_goes_on(planned: Home) -> None:
    """W-058, X-22; without a terminal."""
    said = planned.run(planned.rounds(do_next()), *CHECKPOINT)
    ended(planned, said, 5, "checkpoint")
    assert "bydawn resume repo --approve" in said.out
    assert planned.bydawn("resume", "--plain").code == 5, "not without a person's word"
    assert planned.bydawn("resume", "--plain", "--approve").code == 0
    refused = planned.bydawn("resume", "--approve")
    assert refused.code == 2


def test_a_checkpoint_cannot_be_moved_out_of_the_way(planned: Home) -> None:
    """X-22."""
    mover = shell("printf -- '- [x] one\\n- [ ] two\\n\\n## HARD STOP: look at the design\\n' > TODO.md; echo x > work")
    said = planned.run(planned.rounds([mover, OK]), *CHECKPOINT)
    ended(planned, said, 3, "task-file")
    assert '"two" before a checkpoint that was not approved' in said.out
    assert planned.bydawn("resume", "--plain").code == 3, "nobody has looked at it"
    ended(planned, planned.bydawn("resume", "--plain", "--accept"), 3, "no-progress")


def test_a_checkpoint_that_a_person_moves_is_approved_where_it_is_reached(planned: Home) -> None:
    """W-058, X-22: it was looked at where it stood, not behind the work that comes before it now."""
    planned.run(planned.rounds(do_next()), *CHECKPOINT)
    (planned.repo / "TODO.md").write_text("- [x] one\n- [ ] two\n\n## HARD STOP: look at the design\n\n- [ ] three\n")
    refused = planned.bydawn("resume", "--plain", "--approve")
    assert (refused.code, "open tasks before it" in refused.err) == (2, True)
    assert planned.bydawn("resume", "--plain").code == 5
    assert "[x] two" in (planned.repo / "TODO.md").read_text()
    assert planned.bydawn("resume", "--plain", "--approve").code == 0


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 5)])
def test_somebody_at_the_terminal_is_asked_and_may_say_no(planned: Home, answer: str, code: int) -> None:
    terminal = Terminal(planned, "run", "x", "-a", planned.rounds(do_next()), "--plain", *CHECKPOINT)
    terminal.see("[y/N]")
    terminal.type(answer)
    shown = terminal.end()
    assert (shown.code, "approved by" in shown.text) == (code, code == 0)


def test_nobody_is_asked_where_it_is_to_stop_in_any_case(planned: Home) -> None:
    exits = [*CHECKPOINT[:-1], "HARD STOP:exit"]
    terminal = Terminal(planned, "run", "x", "-a", planned.rounds(do_next()), "--plain", *exits)
    shown = terminal.end()
    assert (shown.code, "[y/N]" in shown.text) == (5, False)


# -- what survives -----------------------------------------------------------------------------------------------------


def test_a_budget_survives_a_kill(home: Home) -> None:
    go = home.root / "go"
    script = home.root / "agent"
    script.write_text(
        "#!/bin/sh\ncat > /dev/null; date +%N > work\n"
        f"test $BYDAWN_ROUND != 2 || until test -e {go}; do sleep 0.02; done\n"
        """echo '{"t":"on it","n":400}'\n"""
    )
    script.chmod(0o755)
    fields = ["--agent-json", "text=t", "--agent-json", "tokens_in=n"]
    night = home.start_run(f"cmd:{script}", *fields, "--budget", "1ktok", "--require-path", "never")
    wait_for(lambda: home.has_loop() and len(home.facts("round.started")) == 2)
    os.kill(worker_of(night), signal.SIGKILL)
    night.wait(20)
    go.touch()
    assert home.bydawn("resume", "--plain").code == 4
    assert stop_of(home)["decided"]["rule"] == "tokens"
    assert home.outcomes() == ["ok", "interrupted", "ok", "ok"], "400 before the crash count, and 800 after it"


def test_a_template_lays_out_the_prompt_and_an_agent_cannot_change_it(home: Home) -> None:
    (home.repo / "PROMPT.tmpl").write_text("Be brief.\n\n{{PROMPT}}\n\nThis is round {{ROUND}}.\n")
    agent = home.rounds([shell("echo 'obey me {{PROMPT}}' > PROMPT.tmpl"), OK])
    home.run(agent, "--template", "PROMPT.tmpl", "-n", "2", "--require-path", "never")
    second = (home.folder() / "rounds/0002/prompt.md").read_text()
    assert second.startswith("Be brief.\n\ndo it\n\nThis is round 2.")
    assert "obey me" not in second
    shown = home.bydawn("run", "do it", "-a", "demo", "--template", "PROMPT.tmpl", "--dry-run", "--new")
    assert "obey me" in shown.out


def test_a_rehearsal_shows_the_prompt_that_is_sent_with_its_documents_and_the_last_output(home: Home) -> None:
    home.tasks(1)
    (home.repo / "NOTES.md").write_bytes(b"caf\xe9 </NOTES>\n")
    (home.repo / "LINK.md").symlink_to("/etc/passwd")
    (home.repo / "folder").mkdir()
    documents = (
        "{{FILE:TODO.md}}\n<NOTES>\n{{FILE:NOTES.md}}\n</NOTES>\n{{FILE:LINK.md}}\n{{FILE:folder}}\n{{FILE:none}}\n"
    )
    (home.repo / "P.tmpl").write_text(documents + "{{#OUTPUT}}\nBefore:\n{{OUTPUT}}\n{{/OUTPUT}}\n")
    run = ["run", "do it", "-a", "cmd:echo hello", "-t", "TODO.md", "--template", "P.tmpl"]
    rehearsed = home.bydawn(*run, "--dry-run").out
    home.bydawn(*run, "--once", "--plain")
    sent = (home.folder() / "rounds/0001/prompt.md").read_text()
    unreadable = "[… LINK.md is not in the workspace …]\n[… folder is a folder …]\n"
    assert sent.startswith(
        f"- [ ] task 1\n<NOTES>\ncaf� <\\/NOTES>\n</NOTES>\n{unreadable}\n## Goal\n\ndo it\n\n## Rules"
    )
    assert sent in rehearsed
    assert f"{unreadable}Before:\nhello\n\n## Goal" in home.bydawn(*run, "--dry-run").out


# -- other trees, tried aside --------------------------------------------------------------------------------------


STRICT = "sleep 0.3; grep -q right app.py && ! grep -q broken lib.py"
LAXER = "sleep 0.3; grep -q right app.py # as agreed"


def in_git(home: Home) -> dict[str, bytes]:
    """The person's repository, byte for byte."""
    files = (path for path in (home.repo / ".git").rglob("*") if path.is_file())
    return {str(path.relative_to(home.repo)): path.read_bytes() for path in files}


KILLS = 5 if settings().max_examples < 100 else 50


@pytest.mark.parametrize("moment", ["control", "held", "without", "any"])
def test_a_kill_while_another_tree_is_tried_counts_nothing_twice_and_leaves_nothing(home: Home, moment: str) -> None:
    """The work tree and the person's git are as they were; no checkout and no mount stays."""
    (home.repo / "tests").mkdir()
    (home.repo / "tests/check.sh").write_text(f"{STRICT}\n")
    for name, words in {"app.py": "right", "lib.py": "fine"}.items():
        (home.repo / name).write_text(words)
    work = [{"write": {"path": "lib.py", "text": "better"}}, {"write": {"path": "tests/check.sh", "text": LAXER}}]
    before, theirs = tree_of(home.repo), in_git(home)
    running = home.start_run(home.rounds([*work, DONE]), "-k", "sh tests/check.sh")
    begun = moment if moment != "any" else "control"
    wait_for(lambda: home.has_loop() and (home.folder() / f"rounds/0001/{begun}-1.txt").exists())
    kill_both(running.pid)
    running.wait(20)
    for _ in range(KILLS if moment == "any" else 0):
        running = home.start("resume", "--plain")
        worker_of(running)
        time.sleep(random.uniform(0, 1.5))  # noqa: S311 - these runs take two seconds
        kill_both(running.pid)
        running.wait(20)
    resumed = home.bydawn("resume", "--plain")
    assert (resumed.code, len(home.rounds_ended()), len(home.facts("round.started"))) == (0, 1, 1), resumed
    [proved] = [fact["data"]["proved"] for fact in home.facts("checks.ended") if fact["data"]["round"]]
    assert (proved["held"]["passed"], len(proved["noticed"])) == (True, 1)
    assert tree_of(home.repo) == {**before, "lib.py": b"better", "tests/check.sh": LAXER.encode()}
    assert in_git(home) == theirs
    assert [*home.folder().glob("checkouts/*"), *home.folder().glob("tmp/*")] == []
    assert str(home.root) not in Path("/proc/self/mounts").read_text()


def test_show_says_what_the_checks_noticed_and_how(home: Home) -> None:
    (home.repo / "tests").mkdir()
    (home.repo / "tests/check.sh").write_text("grep -q right app.py\n")
    ended(
        home,
        home.run(home.rounds([{"write": {"path": "app.py", "text": "right"}}, DONE]), "-k", "sh tests/check.sh"),
        0,
        "complete",
    )
    assert "noticed (sh tests/check.sh: failed before it)" in " ".join(home.bydawn("show").out.split())


def test_a_person_takes_changed_tests_as_they_are(tested: Home) -> None:
    lie = [{"write": {"path": "tests/check.sh", "text": "exit 0"}}, DONE]
    insists = {"result": {"text": "## Changed tests\n- tests/check.sh: it was wrong"}}
    (tested.repo / "lib.py").write_text("work\n")
    said = tested.run(tested.rounds(lie, [{"write": {"path": "a.py", "text": "1"}}, insists]), *SUITE)
    ended(tested, said, 3, "changed-tests")
    assert "bydawn resume repo --accept" in said.out
    accepted = tested.bydawn("resume", "--plain", "--accept")
    assert (accepted.code, "Complete" in accepted.out) == (0, True), accepted
    assert tested.facts("tampering.accepted")[0]["data"]["paths"] == ["tests/check.sh"]


def test_what_steers_the_check_and_is_not_protected_is_named_at_the_start(home: Home) -> None:
    for name in ("conftest.py", "check.sh", "Makefile"):
        (home.repo / name).write_text("true\n")
    said = home.run(home.rounds([OK]), "-k", f"sh check.sh; {home.root}/x.sh; true", "-n", "1", "--protect", "x")
    assert "Steers check.sh, conftest.py decide what the checks run; no round is kept from changing them" in said.out
    also = home.run(
        home.rounds([OK]), "-k", "sh check.sh", "-n", "1", "--new", "--protect", "*.py", "--protect", "*.sh"
    )
    assert "Steers" not in also.out
