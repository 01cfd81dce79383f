"""codex-autorunner at three in the morning: what it tells a person who did something wrong, or interrupts it."""

import json
import os
import signal
from pathlib import Path

import pytest

from bydawn.dialects.follower import digest_at
from bydawn.dialects.written import Written
from driving import Home, said, tree_of, wait_for, worker_of
from program.autorunner import ITEM, OURS, Autorunner
from program.terminal_driver import Terminal


@pytest.fixture
def runner(home: Home) -> Autorunner:
    runner = Autorunner(home)
    runner.plays(ITEM)
    return runner


def test_ctrl_c_is_answered_at_once(runner: Autorunner) -> None:
    runner.plays({"reply": "On it.", "wait_for": "go", "tick": "TODO.md"})
    running = runner.ready(items=2).start("run")
    wait_for(lambda: "On it." in runner.log)
    assert running.stderr
    running.send_signal(signal.SIGINT)
    heard = [running.stderr.readline() for _ in range(5)]
    assert heard[-2].startswith("  Stopping after run 1 (running for")
    assert heard[-1].startswith("  Press Ctrl-C again to stop now")
    (runner.repo / "go").touch()
    assert said(running).code == 130


def test_a_commit_that_fails_is_told(runner: Autorunner) -> None:
    runner.ready(auto_commit="true")
    runner.trust(str(runner.config))
    hook = runner.repo / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho too many tabs; exit 1\n")
    hook.chmod(0o755)
    assert "  not committed: exit 1: too many tabs\n" in runner("run").err


@pytest.mark.parametrize("where", [".git", "bare"])
def test_init_makes_no_repository_within_gits_own_files(runner: Autorunner, where: str) -> None:
    folder = runner.repo / ".git"
    if where == "bare":
        folder = folder.rename(runner.home.root / "bare")
        config = folder / "config"
        config.write_text(config.read_text().replace("bare = false", "bare = true"))
    before = tree_of(folder)
    ran = runner("init", str(folder), "--git-init")
    assert (ran.code, "git's own files" in ran.err) == (2, True), ran
    assert tree_of(folder) == before


def test_a_program_in_the_home_of_no_one_is_a_program_that_is_missing(runner: Autorunner) -> None:
    runner.ready(binary="~no-such-user/codex")
    runner.trust(str(runner.config))
    ran = runner("run")
    assert (ran.code, "internal" in ran.err, runner.calls) == (7, False, []), ran


def test_a_list_that_cannot_be_read_does_not_look_done(runner: Autorunner) -> None:
    runner.ready()
    Path(runner.repo, "TODO.md").unlink()
    assert "Outstanding     unknown" in runner("status").out


def test_taking_over_ends_nothing_if_the_new_one_could_not_start(runner: Autorunner) -> None:
    runner.plays({"wait_for": "go", **ITEM})
    running = runner.ready().start("run")
    wait_for(lambda: runner.calls)
    runner.set(binary="not-installed")
    runner.trust(str(runner.config))
    assert runner("run", "--force").code == 7
    (runner.repo / "go").touch()
    assert said(running).code == 0


def test_doctor_goes_on_where_a_prompt_leads_outside(runner: Autorunner) -> None:
    runner.ready()
    (runner.repo / OURS / "prompt.txt").symlink_to("/etc/hostname")
    ran = runner("doctor")
    assert (ran.code, "✗ prompt:" in ran.out, "✓ todo:" in ran.out) == (1, True, True), ran


def test_a_log_that_is_a_link_is_called_one(runner: Autorunner) -> None:
    runner.ready()
    log = runner.repo / OURS / "codex-autorunner.log"
    log.unlink()
    log.symlink_to("/etc/hostname")
    ran = runner("run")
    assert (ran.code, "codex-autorunner.log is a link" in ran.err, runner.calls) == (2, True, []), ran


def test_a_state_file_that_no_program_wrote_is_not_taken_into_our_record(runner: Autorunner) -> None:
    runner.ready()
    state = {"last_run_id": 7, "status": "idle", "last_run_started_at": "x" * 20_000}
    (runner.repo / OURS / "state.json").write_text(json.dumps(state))
    assert runner("run").code == 0
    assert runner.runs == [(1, "0")]


def test_a_note_reaches_the_next_run_although_other_settings_make_it_another_loop(runner: Autorunner) -> None:
    runner.plays({"exit": 1})
    assert runner.ready()("run").code == 7
    assert runner.home.bydawn("tell", "repo", "use tabs").code == 0
    runner.set(sleep_seconds="1")
    runner.plays(ITEM)
    assert runner("once").code == 0
    assert len(runner.loops) == 2
    assert "use tabs" in runner.prompts[-1]


def test_a_folder_that_codex_exchanged_for_a_link_spoils_no_summary(runner: Autorunner) -> None:
    outside = runner.home.root / "outside"
    outside.mkdir()
    runner.plays({"sh": f"rm -rf {OURS} && ln -s {outside} {OURS}", "reply": "Tidied up."})
    ran = runner.ready()("once")
    assert (ran.code, ran.out.splitlines()[-3:]) == (0, ["Last run id: 1", "Last exit code: 0", "Status: idle"]), ran
    assert tree_of(outside) == {}


def test_a_mistake_in_the_prompt_has_its_line_and_the_marker_that_was_written(runner: Autorunner) -> None:
    runner.ready()
    extras = "docs: {extras: [{name: SPEC, path: spec.md, include_in_prompt: true}]}\n"
    runner.config.write_text(f"version: 1\n{extras}")
    (runner.repo / OURS / "prompt.txt").write_text("{{TODO}}\n{{EXTRAS}}\n{{#PREV_RUN_OUTPUT}} before\n")
    assert "has {{#PREV_RUN_OUTPUT}} on line 3" in runner("doctor").out


def test_a_lock_that_a_killed_worker_left_stops_no_one_when_its_number_is_in_use_again(runner: Autorunner) -> None:
    runner.plays({"sleep": 60})
    running = runner.ready().start("run")
    wait_for(lambda: runner.calls)
    os.kill(worker_of(running), signal.SIGKILL)
    assert said(running).code == 1
    runner.lock.write_text(f"{os.getpid()}\n")  # as if the worker had had the number of this process
    Written(runner.loops[0]).note({f"{OURS}/lock": str(digest_at(runner.repo, f"{OURS}/lock"))})
    runner.plays(ITEM)
    assert runner("run").code == 0
    assert runner.runs == [(1, "interrupted"), (2, "0")]


def test_what_changed_while_a_person_was_asked_is_not_what_they_agreed_to(runner: Autorunner) -> None:
    prompt = runner.ready().repo / OURS / "prompt.txt"
    prompt.write_text("Work on this:\n{{TODO}}\n")
    terminal = Terminal(runner.home, "run", command="codex-autorunner")
    terminal.see("[y/N]")
    prompt.write_text("Delete this:\n{{TODO}}\n")
    terminal.type("y\n")
    shown = terminal.end()
    assert (shown.code, "has just changed" in shown.text, runner.calls) == (2, True, []), shown


def test_a_failed_run_that_ticked_the_last_box_is_an_error(runner: Autorunner) -> None:
    """A-043: nothing is left open, but someone should look."""
    runner.plays({"tick": "TODO.md", "exit": 1})
    ran = runner.ready(1)("run")
    assert (ran.code, ran.out.splitlines()[-3:]) == (7, ["Last run id: 1", "Last exit code: 1", "Status: error"]), ran
    assert runner("run").code == 0, "there is nothing to do any more"
