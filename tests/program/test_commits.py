"""Commits of what rounds changed, in a person's own repository (X-18, FAULTS 89 to 99, 102 to 104)."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from driving import DONE, OK, Fact, Home, Step, said, wait_for

ODD = ["-dash", "a\nline", "with space", "*.py", ":(glob)x", "ümläut", '"quoted"', "tab\tname"]
ON = ("--commit", "on")
FAILED: Step = {"result": {"text": "", "outcome": "failed"}}


def wrote(path: str, text: str = "x\n") -> Step:
    return {"write": {"path": path, "text": text}}


def ran(*words: str) -> Step:
    return {"run": list(words)}


@pytest.fixture(autouse=True)
def _known(home: Home) -> None:
    """Git knows who works here."""
    (home.root / "home/.gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")


def git(home: Home, *words: str, folder: Path | None = None) -> str:
    command = ["git", *words]
    done = subprocess.run(command, cwd=folder or home.repo, env=home.env, capture_output=True, check=True)
    return done.stdout.decode(errors="surrogateescape").rstrip("\n")


def subjects(home: Home) -> list[str]:
    """What was committed, oldest first, without the first commit."""
    return git(home, "log", "--reverse", "--format=%s").splitlines()[1:]


def files_of(home: Home, commit: str = "HEAD") -> set[str]:
    return set(git(home, "show", "--format=", "--name-only", "-z", commit).strip("\0").split("\0"))


def status(home: Home) -> list[str]:
    return git(home, "status", "--porcelain", "-uall").splitlines()


def commits(home: Home) -> list[Fact]:
    return [fact["data"] for fact in home.facts("commit.ended")]


def hook(home: Home, name: str, script: str) -> None:
    path = home.repo / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


# -- what is committed -------------------------------------------------------------------------------------------------


def test_each_round_is_committed_before_its_checks_and_what_a_person_had_changed_is_not(home: Home) -> None:
    """FAULTS 92: neither what is staged nor what is only changed; the task list is the loop's own document."""
    tasks = home.tasks(2)
    for name in ("staged", "mine", "shared"):
        (home.repo / name).write_text("a person's\n")
    git(home, "add", "staged")
    agent = home.each_task(wrote("{task}"), {"append": {"path": "shared", "text": "and the agent's\n"}})
    clean = 'test -z "$(git status --porcelain | grep -v "staged\\|mine\\|shared")"'
    ended = home.run(agent, "-t", tasks, "-k", f"test ! -e 'task 1' || {clean}", *ON)
    assert ended.code == 0, ended
    assert subjects(home) == ["bydawn: task 1", "bydawn: task 2"]
    assert files_of(home) == {"TODO.md", "task 2"}
    assert sorted(status(home)) == ["?? mine", "?? shared", "A  staged"]
    [first, second] = commits(home)
    assert (first["left_out"], second["left_out"]) == (["shared"], [])  # said once
    assert f"committed as {git(home, 'rev-parse', '--short=7', 'HEAD')} (2 files)" in ended.out
    kinds = [fact["type"] for fact in home.facts()][3:7]
    assert kinds == ["round.started", "round.ended", "commit.ended", "checks.ended"]
    loop = home.facts("loop.created")[0]["data"]
    trailers = git(home, "log", "-1", "--format=%(trailers)")
    assert trailers.split("\n") == [f"Bydawn-Loop: repo/{loop['uid']}", "Bydawn-Round: 2"]
    shown = home.bydawn("show", "--round", "2").out
    assert "committed as" in shown
    assert home.show()["rounds"][1]["commit"] == git(home, "rev-parse", "HEAD")


def test_what_a_person_changed_between_two_runs_is_left_out(home: Home) -> None:
    agent = home.rounds([wrote("a"), wrote("b"), FAILED], [wrote("c"), DONE])
    home.run(agent, *ON, "--once")
    (home.repo / "a").write_text("a person's\n")
    assert home.bydawn("resume", "repo", "--plain").code == 0
    assert files_of(home) == {"b", "c"}
    assert commits(home)[0]["left_out"] == ["a"]


def test_what_a_persons_own_hook_changed_is_committed_before_the_loop_is_complete(home: Home) -> None:
    agent = home.rounds([wrote("a"), OK], [wrote("a", "y\n"), DONE])
    ended = home.run(agent, *ON, "-k", "true", "--done-when", "TASK_COMPLETE", "--post-round", "echo formatted >> a")
    assert ended.code == 0
    assert subjects(home) == ["bydawn: round 1", "bydawn: round 2", "bydawn: round 2"]
    assert git(home, "show", "HEAD:a") == "y\nformatted"
    assert (status(home), [row["left_out"] for row in commits(home)]) == ([], [[], [], []])


def test_odd_names_and_deleted_files_are_committed(home: Home) -> None:
    """FAULTS 98."""
    script = home.root / "odd.py"
    names = [os.fsencode(name) for name in ODD] + [b"latin-\xe9"]
    script.write_text(f"import os\nfor name in {names!r}: open(name, 'w').write('x')\nos.remove('README.md')\n")
    assert home.run(home.rounds([ran("python3", str(script)), DONE]), *ON).code == 0
    assert {os.fsencode(name) for name in files_of(home)} == {*names, b"README.md"}
    assert status(home) == []
    assert not (home.repo / "README.md").exists()


def test_neither_ignored_files_nor_other_repositories_are_committed(home: Home) -> None:
    """FAULTS 101: a file that a later round ignores is not committed either."""
    inner = [ran("git", "init", "-q", "inner"), wrote("inner/file")]
    agent = home.rounds([wrote("junk.log"), *inner, FAILED], [wrote(".gitignore", "*.log\n"), DONE])
    assert home.run(agent, *ON).code == 0
    assert files_of(home) == {".gitignore"}
    assert (home.repo / "junk.log").exists()


def test_a_file_with_a_secret_in_it_is_left_out_and_named(home: Home) -> None:
    """FAULTS 103."""
    home.env |= {"MY_TOKEN": "correct-horse-battery-staple"}
    ended = home.run(home.rounds([ran("sh", "-c", "echo $MY_TOKEN > .env"), wrote("code"), DONE]), *ON)
    assert "left out of commits because of a secret in .env" in ended.out
    assert files_of(home) == {"code"}
    assert (home.repo / ".env").exists()


@pytest.mark.parametrize("place", ["below", "worktree", "unborn"])
def test_sub_folders_work_trees_and_repositories_without_a_commit_work(home: Home, place: str) -> None:
    """FAULTS 89, 90."""
    folder = home.repo / "sub" if place == "below" else home.root / place
    if place == "below":
        folder.mkdir()
        (home.repo / "above").write_text("a person's\n")
    elif place == "worktree":
        git(home, "worktree", "add", "-q", "-b", "side", str(folder))
    else:
        git(home, "init", "-q", str(folder))
    assert home.run(home.rounds([wrote("made"), DONE]), *ON, "-C", str(folder)).code == 0
    assert git(home, "log", "-1", "--format=%s", folder=folder) == "bydawn: round 1"
    left = git(home, "status", "--porcelain", "-uall", folder=folder)
    assert left == ("?? above" if place == "below" else "")


def test_what_the_agent_committed_itself_is_not_committed_again(home: Home) -> None:
    """FAULTS 97, 102: nothing is left to commit, which is no failure."""
    agent = home.rounds([wrote("a"), {"commit": "by the agent"}, OK], [wrote("b"), DONE])
    ended = home.run(agent, "--commit", "require")
    assert ended.code == 0
    assert subjects(home) == ["by the agent", "bydawn: round 2"]
    assert [(row["commit"] == "", row["failure"]) for row in commits(home)] == [(True, ""), (False, "")]
    assert "not committed" not in ended.out.replace("not committed:", "")


# -- the message -------------------------------------------------------------------------------------------------------


def test_a_message_is_text_and_nothing_else(home: Home) -> None:
    """FAULTS 99."""
    template = "--amend; $(touch pwned) `touch pwned`\n# {loop} {round} {counted} {task}{x"
    assert home.run(home.rounds([wrote("a"), DONE]), *ON, "--commit-message", template).code == 0
    text = git(home, "log", "-1", "--format=%B").splitlines()
    assert text[:3] == ["--amend; $(touch pwned) `touch pwned`", "# repo 1 1 {x", ""]
    assert not (home.repo / "pwned").exists()
    assert len(subjects(home)) == 1


# -- where nothing can be committed ------------------------------------------------------------------------------------


def _no_repository(home: Home) -> str:
    git(home, "init", "-q", "--bare", str(home.root / "bare.git"))
    return "this folder is not in a git work tree"


def _ignored(home: Home) -> str:
    (home.repo / ".git/info/exclude").write_text("sub/\n")
    (home.repo / "sub").mkdir()
    return "git ignores this folder"


def _detached(home: Home) -> str:
    git(home, "checkout", "-q", "--detach")
    return "no branch is checked out (detached HEAD)"


def _merging(home: Home) -> str:
    (home.repo / ".git/MERGE_HEAD").write_text(git(home, "rev-parse", "HEAD"))
    return "git is in the middle of a merge"


def _rebasing(home: Home) -> str:
    (home.repo / ".git/rebase-merge").mkdir()
    return "git is in the middle of a rebase"


@pytest.mark.parametrize("make", [_no_repository, _ignored, _detached, _merging, _rebasing])
def test_require_refuses_to_start_and_on_says_why_nothing_is_committed(home: Home, make: Callable[[Home], str]) -> None:
    """FAULTS 89, 91."""
    why = make(home)
    folders = {_no_repository: home.root / "bare.git", _ignored: home.repo / "sub"}
    place = ("-C", str(folders[make])) if make in folders else ()
    agent = home.rounds([wrote("a"), DONE])
    refused = home.run(agent, "--commit", "require", *place)
    assert (refused.code, why in refused.err, home.has_loop()) == (2, True, False)
    ended = home.run(agent, "--commit", "on", *place)
    assert ended.code == 0
    assert f"nothing can be committed now (--commit on): {why}" in ended.out + ended.err
    assert ("└ not committed: " in ended.out) is (make is not _ignored)
    assert subjects(home) == []


def test_what_becomes_impossible_later_blocks_a_loop_that_requires_it(home: Home) -> None:
    agent = home.rounds([wrote("a"), ran("git", "checkout", "-q", "--detach"), DONE])
    ended = home.run(agent, "--commit", "require")
    assert ended.code == 3
    assert "round 1 could not be committed: no branch is checked out (detached HEAD)" in ended.out
    git(home, "checkout", "-q", "-")
    assert home.bydawn("resume", "repo", "--plain").code == 0
    assert subjects(home) == ["bydawn: round 1"]
    assert len(home.rounds_ended()) == 1  # committed first, and then nothing was left to do


def test_a_lock_of_another_git_is_waited_for_and_never_removed(home: Home) -> None:
    """FAULTS 93: the changes go into the next commit."""
    lock = home.repo / ".git/index.lock"
    lock.touch()
    agent = home.rounds([wrote("a"), OK], [wrote("b"), {"delete": ".git/index.lock"}, DONE])
    ended = home.run(agent, *ON)
    assert ended.code == 0
    assert "└ not committed: another git holds " in ended.out
    assert files_of(home) == {"a", "b"}
    assert subjects(home) == ["bydawn: round 2"]


# -- who, and with which hooks -----------------------------------------------------------------------------------------


def test_where_git_knows_nobody_bydawn_signs(home: Home) -> None:
    """FAULTS 96."""
    (home.root / "home/.gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    ended = home.run(home.rounds([wrote("a"), OK], [wrote("b"), DONE]), *ON)
    assert (
        git(home, "log", "-2", "--format=%an <%ae> %cn <%ce>").splitlines()
        == ["bydawn <bydawn@localhost> bydawn <bydawn@localhost>"] * 2
    )
    assert ended.out.count("as bydawn <bydawn@localhost>") == 1


def test_a_failing_hook_is_told_to_the_agent_and_its_changes_wait(home: Home) -> None:
    """FAULTS 94. What was new is not left in the index."""
    hook(home, "pre-commit", "test -e fixed || { echo 'E501 line too long in a'; exit 1; }")
    status_now = ran("sh", "-c", f"git status --porcelain > {home.root}/seen")
    agent = home.rounds([wrote("a"), OK], [status_now, wrote("fixed"), DONE])
    ended = home.run(agent, *ON)
    assert "└ not committed: exit 1: E501 line too long in a → sent to the agent in round 2" in ended.out
    prompt = (home.folder() / "rounds/0002/prompt.md").read_text()
    assert "could not be committed" in prompt
    assert "E501 line too long in a" in prompt
    assert (home.root / "seen").read_text() == "?? a\n"
    assert subjects(home) == ["bydawn: round 2"]
    assert files_of(home) == {"a", "fixed"}


def test_a_hanging_hook_is_ended(home: Home) -> None:
    """FAULTS 94; the fixture sees that nothing of it is left."""
    hook(home, "pre-commit", "sleep 300 & sleep 300")
    ended = home.run(home.rounds([wrote("a"), DONE]), *ON, "--hook-timeout", "0.3s")
    assert "└ not committed: timed out after 0.3 s" in ended.out
    assert not (home.repo / ".git/index.lock").exists()
    assert status(home) == ["?? a"]


def test_a_hook_that_rewrites_files_is_proven_as_it_left_them(home: Home) -> None:
    """FAULTS 94: what it added is committed, and the index says so."""
    hook(home, "pre-commit", "echo formatted > a; git add a")
    seen = home.root / "seen"
    ended = home.run(home.rounds([wrote("a"), DONE]), *ON, "-k", f"test ! -e a || cp a {seen}")
    assert ended.code == 0
    assert git(home, "show", "HEAD:a") == seen.read_text().strip() == "formatted"
    assert status(home) == []
    [commit] = commits(home)
    assert commit["tree"] == home.facts("checks.ended")[-1]["data"]["tree"] != home.rounds_ended()[0]["tree"]


def test_a_key_that_is_missing_is_a_failure_and_no_question(home: Home) -> None:
    """FAULTS 95."""
    for name, value in (("commit.gpgSign", "true"), ("gpg.program", "/bin/false")):
        git(home, "config", name, value)
    ended = home.run(home.rounds([wrote("a"), DONE]), *ON)
    assert "└ not committed: exit 128: " in ended.out
    assert "gpg failed to sign" in home.bydawn("show", "--round", "1").out


def test_hooks_get_no_secrets_no_terminal_and_no_other_repository(home: Home) -> None:
    """FAULTS 104."""
    home.env |= {"MY_TOKEN": "correct-horse-battery-staple", "GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere"}
    hook(home, "pre-commit", f"env > {home.root}/env; cat; git credential fill < /dev/null")
    ended = home.run(home.rounds([wrote("a"), DONE]), *ON, seconds=20)
    del home.env["GIT_DIR"], home.env["GIT_INDEX_FILE"]
    assert ended.code == 0
    env = (home.root / "env").read_text()
    assert "correct-horse" not in env
    assert "/nowhere" not in env
    assert "GIT_TERMINAL_PROMPT=0" in env.splitlines()


EVIL = {
    "pre-commit hook": "cp ../evil .git/hooks/pre-commit",
    "configuration": "git config core.hooksPath ..",
    # A filter runs whenever git looks at a file, not only in a commit.
    "configuration ": "git config filter.x.clean ../evil; echo '* filter=x' > .gitattributes",
}


@pytest.mark.parametrize("what", EVIL)
def test_what_the_agent_wrote_into_git_never_runs(home: Home, what: str) -> None:
    (home.repo / ".git/hooks").mkdir(exist_ok=True)
    for name in ("evil", "pre-commit"):
        (home.root / name).write_text(f"#!/bin/sh\ntouch {home.root}/canary; cat\n")
        (home.root / name).chmod(0o755)
    agent = home.rounds([wrote("a"), ran("sh", "-c", EVIL[what]), FAILED], [wrote("a", "again"), DONE])
    home.run(agent, *ON, "--once")  # after a crash or a pause, too: nobody has been told yet
    ended = home.bydawn("resume", "repo", "--plain")
    assert ended.code == 3  # whatever the loop requires: a person must look
    assert f"round 2 could not be committed: git's {what.strip()} has changed since the loop began" in ended.out
    assert not (home.root / "canary").exists()
    assert subjects(home) == []
    assert home.bydawn("resume", "repo", "--plain").code == 0  # by a person, who was told
    assert len(subjects(home)) == 1


# -- killed ------------------------------------------------------------------------------------------------------------


def test_a_commit_that_the_ledger_does_not_know_is_recorded_and_not_made_again(home: Home) -> None:
    hook(home, "post-commit", f"test -e {home.root}/go || kill -9 $(ps -o ppid= -p $PPID)")
    assert home.run(home.rounds([wrote("a"), DONE]), *ON).code != 0
    wait_for(lambda: home.status()["state"] == "crashed")
    assert (len(subjects(home)), commits(home)) == (1, [])
    (home.root / "go").touch()
    assert home.bydawn("resume", "repo", "--plain").code == 0
    assert len(subjects(home)) == 1
    assert [row["commit"] for row in commits(home)] == [git(home, "rev-parse", "HEAD")]


def test_the_lock_of_a_commit_that_was_killed_is_not_in_the_way(home: Home) -> None:
    """FAULTS 93: this one is proved to be ours."""
    hook(home, "pre-commit", "test -e go || { kill -9 $(ps -o ppid= -p $PPID); sleep 300; }")
    home.run(home.rounds([wrote("a"), DONE]), *ON)
    wait_for(lambda: home.status()["state"] == "crashed")
    assert (home.repo / ".git/index.lock").exists()
    (home.repo / "go").touch()
    assert home.bydawn("resume", "repo", "--plain").code == 0
    assert subjects(home) == ["bydawn: round 1"]
    assert status(home) == ["?? go"]
    assert not [*(home.repo / ".git").glob("*.lock")]


def test_a_git_that_is_killed_leaves_no_lock_in_the_way_of_the_next_commit(home: Home) -> None:
    hook(home, "pre-commit", f"test -e {home.root}/killed || {{ touch {home.root}/killed; kill -9 $PPID; }}")
    ended = home.run(home.rounds([wrote("a"), OK], [wrote("b"), DONE]), *ON)
    assert ended.code == 0, ended
    assert not (home.repo / ".git/index.lock").exists()
    assert [bool(fact["data"]["commit"]) for fact in home.facts("commit.ended")] == [False, True]


def test_a_stop_in_the_middle_of_a_hook_ends_it_and_the_next_start_commits(home: Home) -> None:
    hook(home, "pre-commit", f"test -e {home.root}/go || {{ touch {home.root}/here; sleep 300; }}")
    running = home.start_run(home.rounds([wrote("a"), DONE]), *ON)
    wait_for((home.root / "here").exists)
    home.bydawn("stop", "repo")
    assert said(running).code == 130
    assert (commits(home), status(home)) == ([], ["?? a"])
    (home.root / "go").touch()
    assert home.bydawn("resume", "repo", "--plain").code == 0
    assert subjects(home) == ["bydawn: round 1"]


@pytest.mark.parametrize(("mode", "code", "state"), [("on", 0, "complete"), ("require", 3, "blocked")])
def test_a_last_commit_that_fails_is_said_in_the_first_line_or_blocks(
    home: Home, mode: str, code: int, state: str
) -> None:
    hook = home.repo / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    agent = home.rounds([{"write": {"path": "new.txt", "text": "x"}}, DONE])
    ended = home.run(agent, "-k", "true", "--commit", mode)
    assert (ended.code, home.status()["state"]) == (code, state)
    first = next(line for line in ended.out.splitlines() if state.capitalize() in line)
    shown = home.bydawn("show").out.splitlines()[0]
    assert ["the last changes are not committed" in line for line in (first, shown)] == [mode == "on"] * 2
    if mode == "require":
        assert home.bydawn("resume", "--plain").code == 3, "and so it is after another try"
