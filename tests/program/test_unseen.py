"""What the agent did while nobody could look is its own doing, whoever writes the end of the round down."""

import subprocess
from collections.abc import Callable

import pytest

from driving import DONE, OK, Home, Said, Step, kill_both, said, wait_for

CONFIRMS: Step = {"result": {"text": "## Already done\n- one\n- two\n- three"}}
LIST = "- [ ] one\n- [ ] two\n- [ ] three\n"
HALT = "- [ ] one\n\nHARD STOP\n\n- [ ] two\n"
STRICT = "tests/strict.txt"


def shell(command: str) -> Step:
    return {"run": ["sh", "-c", command]}


def kill(night: subprocess.Popen[str]) -> None:
    kill_both(night.pid)
    night.wait(20)


def killed_in_a_round(home: Home, deed: str, *arguments: str, then: list[Step] | None = None) -> None:
    """A loop whose first round does this and is killed before it ends; nothing it started lives on."""
    gate, _ = home.gate()
    agent = home.rounds([shell(f"{deed}; touch {home.root}/deed"), gate, DONE], then or [OK])
    night = home.start_run(agent, *arguments)
    wait_for((home.root / "deed").exists)
    kill(night)
    wait_for(lambda: home.status()["state"] == "crashed")


def after(home: Home, *steps: str) -> Said:
    """What a plain resume leads to, after a person has done these."""
    for step in steps:
        assert home.bydawn(step, "repo").code == 0
    return home.bydawn("resume", "--plain", "--once")


STEPS = [(), ("stop",), ("pause",), ("pause", "stop")]


@pytest.fixture
def guarded(home: Home) -> Home:
    (home.repo / "tests").mkdir()
    (home.repo / STRICT).write_text("strict\n")
    return home


# -- killed, and stopped by somebody who has not looked ----------------------------------------------------------------


@pytest.mark.parametrize("steps", STEPS)
def test_tasks_that_a_killed_round_took_away_are_missed(home: Home, steps: tuple[str, ...]) -> None:
    (home.repo / "TODO.md").write_text(LIST)
    killed_in_a_round(home, "echo '- [x] one' > TODO.md; touch work", "-t", "TODO.md", "-k", "true")
    ended = after(home, *steps)
    assert (ended.code, "lost 2 open tasks" in ended.out) == (3, True), ended


@pytest.mark.parametrize("steps", STEPS)
def test_a_task_file_that_a_killed_round_removed_is_missed(home: Home, steps: tuple[str, ...]) -> None:
    (home.repo / "tasks").mkdir()
    for name in ("1-one", "2-two"):
        (home.repo / f"tasks/{name}.md").write_text(f"# {name}\n")
    killed_in_a_round(home, "rm tasks/2-two.md; touch work", "-t", "tasks")
    ended = after(home, *steps)
    assert (ended.code, "lost 1 open task: 2-two" in ended.out) == (3, True), ended


@pytest.mark.parametrize("steps", STEPS)
def test_a_checkpoint_that_a_killed_round_removed_is_missed(home: Home, steps: tuple[str, ...]) -> None:
    (home.repo / "TODO.md").write_text(HALT)
    deed = "sed -i '/HARD STOP/d; s/\\[ \\]/[x]/' TODO.md; touch work"
    killed_in_a_round(home, deed, "-t", "TODO.md", "--checkpoint", "HARD STOP")
    ended = after(home, *steps)
    assert (ended.code, "lost a checkpoint" in ended.out) == (3, True), ended


@pytest.mark.parametrize("steps", STEPS)
def test_boxes_that_a_killed_round_only_ticked_are_doubted(home: Home, steps: tuple[str, ...]) -> None:
    (home.repo / "TODO.md").write_text(LIST)
    killed_in_a_round(home, "sed -i 's/\\[ \\]/[x]/' TODO.md", "-t", "TODO.md", then=[CONFIRMS])
    ended = after(home, *steps)
    assert ended.code == 0, ended
    assert len(home.rounds_ended()) == 2, "a later round has to confirm them"


def test_what_a_person_takes_away_after_a_stop_that_was_seen_is_theirs(home: Home) -> None:
    (home.repo / "TODO.md").write_text(LIST)
    home.run(
        home.rounds([shell("date > work"), OK], [shell("sed -i 's/\\[ \\]/[x]/' TODO.md; date > b")]),
        "-t",
        "TODO.md",
        "--once",
    )
    assert home.bydawn("stop").code == 0
    (home.repo / "TODO.md").write_text("- [ ] one\n")
    assert after(home).code == 0


@pytest.mark.parametrize("steps", STEPS)
def test_protected_files_that_a_killed_check_changed_are_missed(guarded: Home, steps: tuple[str, ...]) -> None:
    first, deed = guarded.root / "first", guarded.root / "deed"
    check = f"test -e {first} && (echo loose > {STRICT}; touch {deed}; sleep 60); touch {first}"
    night = guarded.start_run(guarded.rounds([shell("date > work"), DONE]), "-k", check, "--protect", "tests/**")
    wait_for(deed.exists)
    kill(night)
    wait_for(lambda: guarded.status()["state"] == "crashed")
    first.unlink()
    assert after(guarded, *steps).code == 3


@pytest.mark.parametrize("moment", ["in the round", "before its end is written down"])
def test_our_own_settings_are_protected_in_a_killed_round(home: Home, moment: str) -> None:
    """Whatever the snapshot before was of: one may have been taken of this round, and its record lost."""
    killed_in_a_round(home, "echo 'rounds = 3' > bydawn.toml; touch work", "-k", "true")
    if moment != "in the round":
        places = {"GIT_DIR": str(home.folder() / "git"), "GIT_WORK_TREE": str(home.repo)}
        subprocess.run(["git", "add", "bydawn.toml", "work"], env=home.env | places, cwd=home.repo, check=True)
    ended = home.bydawn("resume", "--plain", "--once")
    assert (ended.code, "a protected file was changed: bydawn.toml" in ended.out) == (3, True), ended


def test_what_a_person_put_back_stays_as_they_left_it(guarded: Home) -> None:
    """A round changed it, its check was killed: there is nothing to block, and nothing to put back."""
    checking = guarded.root / "checking"
    check = f"test -e work || exit 1; touch {checking}; until test -e '{guarded.root}/go on'; do sleep 0.02; done"
    agent = guarded.rounds([shell(f"echo loose > {STRICT}; date > work"), DONE])
    night = guarded.start_run(agent, "-k", check, "--protect", "tests/**")
    wait_for(checking.exists)
    kill(night)
    wait_for(lambda: guarded.status()["state"] == "crashed")
    (guarded.repo / STRICT).write_text("strict\n")
    (guarded.root / "go on").touch()
    assert after(guarded).code == 0


@pytest.mark.parametrize("steps", STEPS)
def test_protected_files_that_the_last_check_changed_are_noticed(guarded: Home, steps: tuple[str, ...]) -> None:
    """It runs although the tree is proven, and is the agent's code all the same."""
    deed = guarded.root / "deed"
    code = f"echo 'echo loose > {STRICT}; touch {deed}; sleep 60' > .git/check.sh"
    agent = guarded.rounds([shell("date > work"), OK], [shell(code), DONE])
    check = "test -e work || exit 1; test ! -e .git/check.sh || sh .git/check.sh"
    night = guarded.start_run(agent, "-k", check, "--protect", "tests/**", "--done-when", "TASK_COMPLETE")
    wait_for(deed.exists)
    kill(night)
    wait_for(lambda: guarded.status()["state"] == "crashed")
    (guarded.repo / ".git/check.sh").unlink()
    assert after(guarded, *steps).code == 3


# -- the look at it failed ---------------------------------------------------------------------------------------------


def moved_away(home: Home) -> tuple[str, Callable[[], object]]:
    return f"mv {home.repo} {home.root}/elsewhere", lambda: (home.root / "elsewhere").rename(home.repo)


def a_damaged_store(home: Home) -> tuple[str, Callable[[], object]]:
    """The private git directory cannot be written for a while, as on a full disk."""
    objects = f"$(ls -d {home.states}/loops/repo-*/repo/git)/objects"
    back = f"rm {objects}; mv {home.root}/objects {objects}"
    return (
        f"mv {objects} {home.root}/objects; touch {objects}",
        lambda: subprocess.run(["sh", "-c", back], check=True),
    )


@pytest.mark.parametrize("trouble", [moved_away, a_damaged_store])
def test_a_round_that_nobody_could_look_at_is_looked_at_later(
    guarded: Home, trouble: Callable[[Home], tuple[str, Callable[[], object]]]
) -> None:
    (guarded.repo / "TODO.md").write_text(LIST)
    deed, mend = trouble(guarded)
    agent = guarded.rounds([shell(f"echo loose > {STRICT}; echo '- [x] one' > TODO.md; {deed}"), DONE], [OK])
    ended = guarded.run(agent, "-t", "TODO.md", "-k", "true", "--protect", "tests/**")
    assert ended.code == 3, ended
    mend()
    for _ in range(2):
        again = after(guarded)
        assert (again.code, "tests/strict.txt" in again.out, "lost 2 open tasks" in again.out) == (3, True, True), again


def test_what_a_person_changes_is_theirs_where_only_a_hook_ran_before_the_look_failed(guarded: Home) -> None:
    deed, mend = a_damaged_store(guarded)
    hook = f"test $BYDAWN_ROUND = 1 || test -e {guarded.root}/mended || {{ {deed}; }}"
    agent = guarded.rounds([shell("date +%N > work"), OK], [DONE])
    words = ("--protect", "tests/**", "--done-when", "TASK_COMPLETE", "--pre-round", hook)
    assert guarded.run(agent, *words).code == 3
    assert [fact["data"]["unseen"] for fact in guarded.facts("loop.obstructed")] == [False]
    mend()
    (guarded.root / "mended").touch()
    (guarded.repo / STRICT).write_text("mine\n")
    assert after(guarded).code == 0
    assert (guarded.repo / STRICT).read_text() == "mine\n"


@pytest.mark.parametrize("steps", [None, *STEPS])
def test_what_cannot_be_put_back_is_not_forgotten(guarded: Home, steps: tuple[str, ...] | None) -> None:
    """After a round that was seen, or one that was killed and perhaps stopped by somebody who has not looked."""
    (guarded.repo / ".gitignore").write_text("*.ign\n")
    unkept = "tests/unkept.ign"  # no snapshot has it
    for name in ("tests/other.txt", unkept):
        (guarded.repo / name).write_text("strict\n")
    deed = f"echo loose > tests/other.txt; echo loose > {unkept}"
    policy = ("-k", "true", "--protect", "tests/**", "--on-tamper", "restore", "--no-promise")
    if steps is None:
        assert guarded.run(guarded.rounds([shell(deed), DONE], [shell("touch work"), DONE]), *policy).code == 3
    else:
        killed_in_a_round(guarded, f"{deed}; touch work", *policy)
    for again in (steps or (), ()):
        ended = after(guarded, *again)
        assert (ended.code, unkept in ended.out) == (3, True), ended
        assert "bydawn resume repo --accept" in ended.out
        assert ended.out.count(f"! {unkept} cannot be restored") <= 1
        assert len(guarded.rounds_ended()) == 1, "nothing is paid for before that is mended"
    for name in (unkept, "tests/other.txt"):
        (guarded.repo / name).write_text("strict\n")
    assert after(guarded).code == 0
    assert (guarded.repo / unkept).read_text() == (guarded.repo / "tests/other.txt").read_text() == "strict\n"


@pytest.mark.parametrize("steps", STEPS)
def test_what_cannot_be_put_back_can_be_accepted(guarded: Home, steps: tuple[str, ...]) -> None:
    (guarded.repo / ".gitignore").write_text("*.ign\n")
    (guarded.repo / "tests/unkept.ign").write_text("strict\n")
    policy = ("-k", "true", "--protect", "tests/**", "--on-tamper", "restore", "--no-promise")
    killed_in_a_round(guarded, "echo loose > tests/unkept.ign; touch work", *policy)
    assert after(guarded, *steps).code == 3
    assert guarded.bydawn("resume", "--plain", "--accept").code == 0
    assert (guarded.repo / "tests/unkept.ign").read_text() == "loose\n"


# -- the list, at the last moment --------------------------------------------------------------------------------------


def test_a_task_that_is_added_while_the_last_checks_run_is_worked_on(home: Home) -> None:
    home.tasks(1)
    checking, go_on = home.root / "checking", home.root / "go-on"
    check = f"test -e work || exit 1; touch {checking}; until test -e {go_on}; do sleep 0.02; done"
    night = home.start_run(home.each_task(shell("date +%N > work")), "-t", "TODO.md", "-k", check)
    wait_for(checking.exists)
    assert home.bydawn("tasks", "add", "repo", "write the changelog").code == 0
    go_on.touch()
    assert said(night).code == 0
    assert len(home.rounds_ended()) == 2
    assert "- [x] write the changelog" in (home.repo / "TODO.md").read_text()


@pytest.mark.parametrize("rounds", [(), ("-n", "1")])
def test_tasks_that_a_checks_code_takes_away_are_missed_after_a_stop_too(home: Home, rounds: tuple[str, ...]) -> None:
    """Blocked or at a limit: what changed before the stop is not a person's doing."""
    (home.repo / "TODO.md").write_text(LIST)
    deed = "printf -- '- [x] one\\n- [ ] two\\n- [ ] three\\n' > TODO.md; echo 'sed -i /two/d TODO.md' > check.sh"
    home.run(home.rounds([shell(deed), OK]), "-t", "TODO.md", "-k", "test -e check.sh && sh check.sh", *rounds)
    for _ in range(2):
        ended = home.bydawn("resume", "--plain", *(("--rounds", "5") if rounds else ()))
        rounds = ()
        assert (ended.code, "lost 1 open task" in ended.out) == (3, True), ended


EDITS = {"tasks add": True, "a line": True, "put back": False, "accept": False}


@pytest.mark.parametrize("edit", EDITS)
def test_what_a_list_has_lost_stays_lost_until_it_is_back_or_accepted(home: Home, edit: str) -> None:
    todo = home.repo / "TODO.md"
    todo.write_text(LIST)
    lose = shell("echo '- [x] one' > TODO.md; date > work")
    tick = shell("sed -i 's/\\[ \\]/[x]/' TODO.md; date +%N > work")
    home.run(home.rounds([lose, OK], [tick, OK]), "-t", "TODO.md")
    if edit == "tasks add":
        assert home.bydawn("tasks", "add", "repo", "write the changelog").code == 0
    elif edit != "accept":
        todo.write_text(LIST if edit == "put back" else todo.read_text() + "\n")
    ended = home.bydawn("resume", "--plain", *(["--accept"] if edit == "accept" else []))
    assert (ended.code, "lost 2 open tasks" in ended.out) == ((3, True) if EDITS[edit] else (0, False)), ended


def test_what_a_round_took_away_whose_checks_were_killed_can_be_accepted_at_once(home: Home) -> None:
    (home.repo / "TODO.md").write_text(LIST)
    checking, go_on = home.root / "checking", home.root / "go-on"
    check = f"test -e work || exit 1; touch {checking}; until test -e {go_on}; do sleep 0.02; done"
    agent = home.rounds([shell("echo '- [x] one' > TODO.md; touch work"), OK])
    night = home.start_run(agent, "-t", "TODO.md", "-k", check)
    wait_for(checking.exists)
    kill(night)
    wait_for(lambda: home.status()["state"] == "crashed")
    go_on.touch()
    assert home.bydawn("resume", "--plain", "--accept").code == 0


def test_nobody_says_of_a_round_that_was_not_seen_what_it_did(home: Home) -> None:
    (home.repo / "TODO.md").write_text(LIST)
    killed_in_a_round(home, "echo '- [x] one' > TODO.md; touch work", "-t", "TODO.md")
    assert home.bydawn("stop", "repo").code == 0
    row = next(line for line in home.bydawn("show").out.splitlines() if "interrupted" in line)
    assert "unknown" in row
    told = home.bydawn("tasks", "edit", EDITOR="true").out
    assert "TODO.md as round 1 found it:" in told
    shown = subprocess.run(["sh", "-c", told.split("found it:\n")[1].splitlines()[0]], capture_output=True, text=True)
    assert shown.stdout == LIST


# -- and what no tree shows --------------------------------------------------------------------------------------------


def test_a_note_that_nobody_has_heard_keeps_the_loop_at_work(home: Home) -> None:
    gate, go_on = home.gate()
    night = home.start_run(home.rounds([shell("date > work"), gate, DONE], [DONE]), "--done-when", "TASK_COMPLETE")
    home.await_round(1)
    assert home.bydawn("tell", "repo", "add the licence").code == 0
    go_on.touch()
    assert (said(night).code, len(home.rounds_ended())) == (0, 2)
    assert "add the licence" in (home.folder() / "rounds/0002/prompt.md").read_text()


def test_a_note_from_between_a_stop_and_a_resume_keeps_the_loop_at_work(home: Home) -> None:
    checking, go_on = home.root / "checking", home.root / "go on"
    check = f"test -e work || exit 1; touch {checking}; until test -e '{go_on}'; do sleep 0.02; done"
    agent = home.rounds([shell("date > work"), DONE])
    night = home.start_run(agent, "-k", check, "--done-when", "TASK_COMPLETE")
    wait_for(checking.exists)
    assert home.bydawn("stop", "repo").code == 0
    night.wait(20)
    assert home.bydawn("tell", "repo", "add the licence").code == 0
    go_on.touch()
    assert home.bydawn("resume", "--plain").code == 0
    assert "add the licence" in (home.folder() / "rounds/0002/prompt.md").read_text()


def test_a_pause_in_the_last_round_waits_for_the_note_too(home: Home) -> None:
    gate, go_on = home.gate()
    night = home.start_run(home.rounds([shell("date > work"), gate, DONE], [DONE]), "--done-when", "TASK_COMPLETE")
    home.await_round(1)
    for words in (["tell", "repo", "add the licence"], ["pause", "repo"]):
        assert home.bydawn(*words).code == 0
    go_on.touch()
    assert said(night).code != 0
    assert home.bydawn("resume", "--plain").code == 0
    assert "add the licence" in (home.folder() / "rounds/0002/prompt.md").read_text()


def test_what_a_round_or_a_hook_says_to_the_next_one_keeps_nobody(home: Home) -> None:
    agent = home.rounds([shell("date +%N > work; bydawn tell repo 'go on like this'"), DONE])
    ended = home.run(agent, "--done-when", "TASK_COMPLETE", "--post-round", "bydawn tell repo 'and on'")
    assert (ended.code, len(home.rounds_ended())) == (0, 1), ended
    assert {fact["data"]["by"] for fact in home.facts("note.added")} == {"the loop itself"}


def test_a_note_during_the_last_hook_is_refused_and_not_lost(home: Home) -> None:
    hooked, go_on = home.root / "hooked", home.root / "go-on"
    hook = f"touch {hooked}; until test -e {go_on}; do sleep 0.02; done"
    night = home.start_run(home.rounds([shell("date > work"), DONE]), "--on-complete", hook)
    wait_for(hooked.exists)
    telling = home.start("tell", "repo", "add the licence")
    wait_for(lambda: [*home.folder().glob("inbox/*")])
    go_on.touch()
    assert said(night).code == 0
    told = said(telling)
    assert (told.code, "already" in told.err, home.facts("note.added")) == (2, True, []), told
    assert "another answer" not in home.bydawn("why").out.lower()


def test_a_note_does_not_keep_a_loop_at_work_that_has_no_round_left(home: Home) -> None:
    gate, go_on = home.gate()
    night = home.start_run(home.rounds([shell("date > work"), gate, DONE]), "--done-when", "TASK_COMPLETE", "-n", "1")
    home.await_round(1)
    assert home.bydawn("tell", "repo", "add the licence").code == 0
    go_on.touch()
    assert said(night).code == 0
