"""Loops whose agent works in a worktree beside the repository, on a branch of its own (X-18, X-20, C-045)."""

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driving import DONE, HANG, OK, Fact, Home, Said, Step, is_error, said, tree_of, wait_for, worker_of

ON = "--worktree"
FAILED: Step = {"result": {"text": "", "outcome": "failed"}}


@pytest.fixture(autouse=True)
def _known(home: Home) -> None:
    (home.root / "home/.gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")


def wrote(path: str, text: str = "x\n") -> Step:
    return {"write": {"path": path, "text": text}}


def git(home: Home, *words: str, folder: Path | None = None) -> str:
    done = subprocess.run(["git", *words], cwd=folder or home.repo, env=home.env, capture_output=True, check=True)
    return done.stdout.decode().rstrip("\n")


def place(home: Home, branch: str = "bydawn-repo") -> Path:
    return home.root / ".bydawn-worktrees/repo" / branch


def subjects(home: Home, branch: str = "bydawn/repo") -> list[str]:
    """What a loop committed, oldest first."""
    return git(home, "log", "--reverse", "--format=%s", f"main..{branch}").splitlines()


def commit(home: Home, **files: str) -> None:
    for name, text in files.items():
        path = home.repo / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    git(home, "add", "-A")
    git(home, "commit", "-qm", "more")


def commits(home: Home) -> list[Fact]:
    return [fact["data"] for fact in home.facts("commit.ended")]


def merge(home: Home, ended: Said, folder: Path | None = None) -> None:
    """Run the merge command that was printed."""
    [line] = [line for line in ended.out.splitlines() if " merge bydawn/" in line]
    words = shlex.split(line)[: shlex.split(line).index("merge") + 2]
    git(home, *words[1:], folder=folder)


# -- a loop from beginning to end --------------------------------------------------------------------------------------


def test_the_work_is_on_its_branch_and_the_printed_merge_brings_exactly_that(home: Home) -> None:
    commit(home, TODO="", **{"TODO.md": "- [ ] one\n- [ ] two\n", ".gitignore": ".env\nbuild/\nlogs/\n"})
    (home.repo / ".env").write_text("KEY=1\n")
    (home.repo / ".env").chmod(0o640)
    for name in ("build/app", "logs/log", "notes"):
        (home.repo / name).parent.mkdir(exist_ok=True)
        (home.repo / name).write_text("mine\n")
    (home.repo / ".worktreeinclude").write_text("# what it needs\n.env\n/logs/\nnotes\n")
    (home.repo / "README.md").write_text("changed\n")
    before = tree_of(home.repo)
    agent = home.each_task(wrote("{task}.txt"))
    hook = f"pwd > {home.root}/hooked"
    ended = home.run(agent, "-t", "TODO.md", "-k", "test -f .env && test ! -e notes", "--post-round", hook, ON)
    assert ended.code == 0, ended
    assert "1 file here has changes that are not committed, so they are not in the worktree" in ended.out
    assert "made a worktree on the new branch bydawn/repo, from the last commit" in ended.out
    assert "copied 2 ignored files into it, named by .worktreeinclude" in ended.out
    assert "not in the worktree, because git does not have it: .worktreeinclude, build, notes" in ended.out
    assert tree_of(home.repo) == before  # the project is left alone
    assert subjects(home) == ["bydawn: one", "bydawn: two"]
    assert (home.root / "hooked").read_text() == f"{place(home)}\n"
    assert (place(home) / ".env").stat().st_mode & 0o777 == 0o640
    assert "Branch bydawn/repo, in /" in ended.out
    assert f"bydawn/repo, in the worktree {place(home)}" in home.bydawn("show").out
    shown = {"branch": "bydawn/repo", "path": str(place(home)), "folder": str(place(home))}
    assert home.show()["worktree"] == home.status()["worktree"] == shown
    git(home, "checkout", "-q", "README.md")
    merge(home, ended)
    for name in ("one.txt", "two.txt", "TODO.md"):
        assert (home.repo / name).read_bytes() == (place(home) / name).read_bytes()
    assert git(home, "status", "--porcelain") == "?? .worktreeinclude\n?? notes"
    assert git(home, "diff", "--stat", "bydawn/repo") == ""


def test_a_link_on_the_way_to_the_worktree_is_followed_once_and_for_all(home: Home) -> None:
    """Git knows it by its real path, and a box can only have that."""
    disk, link = home.root / "disk", home.root / ".bydawn-worktrees"
    disk.mkdir()
    link.symlink_to(disk)
    agent = home.rounds([wrote("one"), {"result": {"text": "half"}}], [wrote("two"), DONE])
    assert home.run(agent, "-k", "test -e two", "--once", ON).code == 4
    real = f"{disk}/repo/bydawn-repo"
    assert home.show()["worktree"]["path"] == real
    link.unlink()
    assert home.bydawn("resume").code == 0
    assert subjects(home) == ["bydawn: round 1", "bydawn: round 2"]


def test_task_files_that_git_does_not_have_are_read_from_the_project_and_do_not_collide(home: Home) -> None:
    (home.repo / "tasks").mkdir()
    (home.repo / "tasks/1.md").write_text("# first\n")
    done = {"result": {"text": "TASK: 1\nSTATUS: DONE\nSUMMARY: it is there\n"}}
    ended = home.run(home.rounds([wrote("made"), done]), "-t", "tasks", "-k", "test -e made", ON)
    assert ended.code == 0, ended
    assert not (place(home) / "tasks").exists()
    prompt = (home.folder() / "rounds/0001/prompt.md").read_text()
    assert f"working unattended in {place(home)}" in prompt
    merge(home, ended)
    assert (home.repo / "made").exists()


def test_what_would_keep_git_from_merging_is_named_before(home: Home) -> None:
    for name in (".gitignore", "mine"):
        (home.repo / name).write_text("a person's\n")
    (home.repo / "README.md").write_text("changed\n")
    ended = home.run(home.rounds([wrote(".gitignore"), wrote("README.md"), DONE]), ON)
    why = "before you merge, commit or move away what the branch has too: .gitignore, README.md\n"
    assert why.strip()[1:] in ended.out
    assert why in home.bydawn("show").out
    git(home, "checkout", "-q", "README.md")
    (home.repo / ".gitignore").unlink()
    assert "before you merge" not in home.bydawn("show").out
    merge(home, ended)


def test_a_fresh_clone_gets_the_work_too(home: Home) -> None:
    assert home.run(home.rounds([wrote("made"), DONE]), ON).code == 0
    clone = home.root / "clone"
    git(home, "clone", "-q", str(home.repo), str(clone))
    git(home, "merge", "-q", "origin/bydawn/repo", folder=clone)
    assert tree_of(clone) == tree_of(place(home))


def test_every_round_that_changed_something_is_committed_whatever_its_end(home: Home) -> None:
    """And nothing else is: no commit for a round without a change. A person's edits in that folder go along."""
    agent = home.rounds([wrote("a"), FAILED], [OK], [wrote("b"), OK], [DONE])
    assert home.run(agent, ON, "--once").code != 0
    assert subjects(home) == ["bydawn: round 1"]
    (place(home) / "mine").write_text("a person's\n")
    assert home.bydawn("resume", "--plain").code == 0
    assert subjects(home) == ["bydawn: round 1", "bydawn: round 3"]
    assert git(home, "show", "--format=", "--name-only", "bydawn/repo").splitlines() == ["b", "mine"]
    assert git(home, "status", "--porcelain", folder=place(home)) == ""


def test_an_agent_that_commits_by_itself_has_work_to_merge(home: Home) -> None:
    """FAULTS 102: nothing is left to commit, and the branch has it."""
    save = {"run": ["sh", "-c", "git add a && git commit -qm mine"]}
    ended = home.run(home.rounds([wrote("a"), save], [DONE]), ON)
    assert (ended.code, subjects(home)) == (0, ["mine"]), ended
    merge(home, ended)
    assert (home.repo / "a").is_file()


def test_a_folder_below_the_top_of_the_repository_stays_one(home: Home) -> None:
    commit(home, app__main="x\n", lib__code="x\n")
    app = home.repo / "app"
    ended = home.run(home.rounds([wrote("made"), DONE]), ON, "-C", str(app))
    assert ended.code == 0, ended
    assert git(home, "show", "--format=", "--name-only", "bydawn/app") == "app/made"
    merge(home, ended)
    assert (app / "made").exists()


def test_two_loops_in_worktrees_do_not_share_a_folder(home: Home) -> None:
    going = home.start_run(home.rounds([HANG]), ON, "--name", "one")
    home.await_round(1, "one")
    ended = home.run(home.rounds([wrote("made"), DONE]), "--worktree=mine", "--new", "--name", "two")
    assert (ended.code, "also runs in this folder" in ended.out) == (0, False), ended
    assert subjects(home, "mine") == ["bydawn: round 1"]
    taken = home.run(home.rounds([DONE]), "--worktree=bydawn/one", "--new", "--name", "three")
    assert (taken.code, is_error(taken.err)) == (2, True)
    assert "the loop one has the worktree" in taken.err
    home.bydawn("stop", "one")
    said(going)


def test_the_same_command_goes_on_in_the_same_worktree(home: Home) -> None:
    commit(home, **{"TODO.md": "- [ ] one\n- [ ] two\n"})
    agent, listed = home.each_task(wrote("{task}")), ("-t", "TODO.md", ON)
    home.run(agent, *listed, "--once")
    assert "1 open, 1 done.\nNext: two" in home.run(agent, *listed, "--dry-run").out
    assert home.run(agent, *listed).code == 0
    assert subjects(home) == ["bydawn: one", "bydawn: two"]


def test_work_that_was_there_before_the_first_round_is_the_first_commit(home: Home) -> None:
    git(home, "worktree", "add", "-q", "-b", "bydawn/repo", str(place(home)))
    (place(home) / "older").write_text("x\n")
    ended = home.run(home.rounds([wrote("a"), DONE]), ON)
    assert ended.code == 0, ended
    assert "they become the loop's first commit" in ended.out
    assert subjects(home) == ["bydawn: what was there before", "bydawn: round 1"]
    assert git(home, "show", "--format=", "--name-only", "bydawn/repo~1") == "older"


# -- found again -------------------------------------------------------------------------------------------------------


@pytest.fixture
def halfway(home: Home) -> Home:
    """A loop that has done one of two rounds."""
    home.run(home.rounds([wrote("a"), OK], [wrote("b"), DONE]), ON, "--once")
    assert subjects(home) == ["bydawn: round 1"]
    return home


def remove_folder(home: Home) -> None:
    subprocess.run(["rm", "-r", str(place(home))], check=True)


def test_a_worktree_whose_folder_is_gone_is_made_again_on_its_branch(halfway: Home) -> None:
    remove_folder(halfway)
    ended = halfway.bydawn("resume", "--plain")
    assert ended.code == 0, ended
    assert "made a worktree on the branch bydawn/repo, which exists already" in ended.out
    assert {"a", "b"} <= tree_of(place(halfway)).keys()


def test_a_branch_that_is_gone_too_begins_again_at_the_last_commit(halfway: Home) -> None:
    git(halfway, "worktree", "remove", str(place(halfway)))
    git(halfway, "branch", "-D", "bydawn/repo")
    ended = halfway.bydawn("resume", "--plain")
    assert (ended.code, "on the new branch bydawn/repo" in ended.out) == (0, True), ended
    assert "earlier work of this loop is not in it, so what is done may be missing" in ended.out
    assert subjects(halfway) == ["bydawn: round 2"]


def test_a_branch_that_was_merged_and_is_gone_begins_again_without_a_warning(halfway: Home) -> None:
    git(halfway, "merge", "-q", "bydawn/repo")
    git(halfway, "worktree", "remove", str(place(halfway)))
    git(halfway, "branch", "-d", "bydawn/repo")
    ended = halfway.bydawn("resume", "--plain")
    assert (ended.code, "earlier work" in ended.out) == (0, False), ended


def test_what_a_check_left_is_named_when_it_is_committed(home: Home) -> None:
    agent = home.rounds([wrote("a"), OK], [wrote("b"), OK])
    ended = home.run(agent, "-k", "touch report; test -e b", ON)
    assert ended.code == 0, ended
    assert ended.out.count("(2 files) with report, made by no round (see .gitignore)") == 1


def test_a_worktree_that_git_had_not_filled_when_it_was_killed_is_made_again(halfway: Home) -> None:
    """Otherwise the files that are missing would be committed as deleted."""
    git(halfway, "worktree", "lock", "--reason", "initializing", str(place(halfway)))
    (place(halfway) / "README.md").unlink()
    ended = halfway.bydawn("resume", "--plain")
    assert ended.code == 0, ended
    assert git(halfway, "diff", "--stat", "main", "bydawn/repo", "--", "README.md") == ""


def switched(home: Home) -> str:
    git(home, "checkout", "-q", "-b", "other", folder=place(home))
    return "other is checked out there"


def detached(home: Home) -> str:
    git(home, "checkout", "-q", "--detach", folder=place(home))
    return "no branch is checked out there"


def deleted(home: Home) -> str:
    git(home, "update-ref", "-d", "refs/heads/bydawn/repo")
    return "that branch was deleted"


def moved(home: Home) -> str:
    git(home, "worktree", "move", str(place(home)), str(home.root / "elsewhere"))
    return f"the branch bydawn/repo is checked out in {home.root / 'elsewhere'}"


def replaced(home: Home) -> str:
    git(home, "worktree", "remove", str(place(home)))
    place(home).mkdir(parents=True)
    (place(home) / "file").touch()
    return "it is not a worktree of this repository"


def locked(home: Home) -> str:
    git(home, "worktree", "lock", str(place(home)))
    remove_folder(home)
    return "it may be on a disk that is not mounted"


@pytest.mark.parametrize("change", [switched, detached, deleted, moved, replaced, locked])
def test_what_is_not_the_loops_own_worktree_is_refused_and_left_alone(
    halfway: Home, change: Callable[[Home], str]
) -> None:
    why = change(halfway)
    ended = halfway.bydawn("resume", "--plain")
    assert (ended.code, is_error(ended.err)) == (2, True), ended
    assert why in ended.err
    assert halfway.status()["state"] == "limit"


def test_an_agent_that_changes_branches_blocks_the_loop(home: Home) -> None:
    """FAULTS 102: its commits would be found nowhere."""
    agent = home.rounds([{"run": ["git", "checkout", "-q", "-b", "away"]}, wrote("a"), DONE])
    ended = home.run(agent, ON)
    assert (ended.code, "away is checked out instead of bydawn/repo" in ended.out) == (3, True), ended


@pytest.mark.parametrize("begins", ["before any round", "after the first"])
def test_a_repository_that_a_check_puts_in_the_worktrees_place_runs_no_hook_and_gets_no_commit(
    home: Home, begins: str
) -> None:
    """FAULTS 3.4: `.git` of a worktree is a file beside the work, so what runs there can lead git elsewhere."""
    ran = home.root / "ran"
    hook_of_its_own = f"printf '#!/bin/sh\\ntouch {ran}\\n' > other/hooks/pre-commit && chmod +x other/hooks/pre-commit"
    copied = 'cp -r "$(git rev-parse --git-common-dir)" other && cp "$(git rev-parse --git-dir)"/HEAD other'
    when = "test -e a &&" if begins == "after the first" else ""
    check = (
        f"{when} ! test -e other && {copied} && mkdir -p other/hooks && {hook_of_its_own} && echo gitdir: other > .git"
    )
    words = (ON, "--check", f"{check}; test -e b")
    ended = home.run(home.rounds([wrote("a")], [wrote("b"), DONE]), *words)
    assert (ended.code, "git finds another repository here" in ended.out, ran.exists()) == (3, True, False), ended
    again = home.bydawn("resume", "--plain")
    assert (again.code, "leads to another repository" in again.err, ran.exists()) == (2, True, False), again
    command = again.err.partition("`")[2].partition("`")[0]
    git(home, *shlex.split(command)[1:])
    assert home.bydawn("resume", "--plain").code == 0
    assert (bool(commits(home)[-1]["commit"]), ran.exists()) == (True, False)
    assert (git(home, "show", "bydawn/repo:b"), git(home, "status", "--porcelain")) == ("x", "")


def test_a_project_that_is_gone_ends_the_run_although_its_worktree_is_there(home: Home) -> None:
    """Its settings, its tasks and its repository are gone: no further round is paid for."""
    away = {"run": ["mv", str(home.repo), str(home.root / "moved")]}
    ended = home.run(home.rounds([away, OK], [wrote("b"), DONE]), ON)
    assert (ended.code, f"{home.repo} was removed or replaced" in ended.out) == (3, True), ended
    assert not (place(home) / "b").exists()


@pytest.mark.usefixtures("bwrap")
def test_in_the_box_a_check_can_write_to_the_worktree_and_not_to_the_project(home: Home) -> None:
    """X-18: neither to a person's own files nor to the repository, whose hooks and settings they use."""
    theirs = [home.repo / name for name in ("made", "README.md", ".git/config", ".git/hooks/made")]
    check = " && ".join(["touch made", *(f"! echo >> {path}" for path in theirs)])
    ended = home.run(home.rounds([wrote("a"), DONE]), ON, "--box", "on", "--check", check)
    assert (ended.code, (place(home) / "made").exists(), theirs[0].exists()) == (0, True, False), ended


# -- refused before anything is written --------------------------------------------------------------------------------


def unborn(home: Home) -> Path:
    folder = home.root / "unborn"
    git(home, "init", "-q", str(folder))
    return folder


def plain(home: Home) -> Path:
    (home.root / "plain").mkdir()
    return home.root / "plain"


def bare(home: Home) -> Path:
    git(home, "clone", "-q", "--bare", str(home.repo), str(home.root / "bare"))
    return home.root / "bare"


def untracked(home: Home) -> Path:
    (home.repo / "sub").mkdir()
    return home.repo / "sub"


def in_the_way(home: Home) -> Path:
    place(home).mkdir(parents=True)
    (place(home) / "file").touch()
    return home.repo


def with_list(home: Home) -> Path:
    home.tasks(1)
    return home.repo


def anything(home: Home) -> Path:
    return home.repo


ROWS: list[tuple[Callable[[Home], Path], list[str], str]] = [
    (plain, [], "is in no repository"),
    (unborn, [], "it has no commit yet"),
    (bare, [], "this repository is bare"),
    (untracked, [], "the folder sub is not in the last commit"),
    (in_the_way, [], "already exists"),
    (with_list, ["-t", "TODO.md"], "the task file TODO.md is not in the last commit"),
    (anything, ["--worktree=-a"], "git does not accept it as the name of a branch"),
    (anything, ["--worktree=a.lock"], "git does not accept it as the name of a branch"),
    (anything, ["--worktree=main"], "the branch main is checked out in"),
    (anything, ["--commit", "off"], "only what is committed there can be merged"),
]


@pytest.mark.parametrize(("make", "more", "why"), ROWS)
def test_what_cannot_work_is_refused_with_the_reason(
    home: Home, make: Callable[[Home], Path], more: list[str], why: str
) -> None:
    folder, before = make(home), {*home.root.glob(".bydawn-worktrees/*/*")}
    ended = home.run(home.rounds([DONE]), ON, *more, "-C", str(folder))
    assert (ended.code, is_error(ended.err), "hint" in ended.err) == (2, True, True), ended
    assert why in ended.err
    assert ({*home.root.glob(".bydawn-worktrees/*/*")}, home.has_loop()) == (before, False)


def test_a_detached_head_is_a_start_with_a_word_about_the_merge(home: Home) -> None:
    git(home, "checkout", "-q", "--detach")
    ended = home.run(home.rounds([wrote("a"), DONE]), ON)
    assert ended.code == 0, ended
    assert "no branch is checked out here (detached HEAD): check one out before you merge" in ended.out


def test_the_prompt_is_not_taken_for_a_branch_and_a_setting_turns_it_on(home: Home) -> None:
    dry = home.bydawn("run", ON, "do it", "-a", home.rounds([DONE]), "--dry-run")
    assert (dry.code, "working unattended in" in dry.out, "bydawn-repo" in dry.out) == (0, True, True), dry
    assert home.run(home.rounds([wrote("a"), DONE]), BYDAWN_WORKTREE="night/1").code == 0
    assert subjects(home, "night/1") == ["bydawn: round 1"]
    assert place(home, "night-1").is_dir()
    odd = home.run(home.rounds([DONE]), "--worktree=a b")
    assert (odd.code, "'a b' cannot be a branch" in odd.err) == (2, True)
    off = home.run(home.rounds([wrote("b"), DONE]), "--worktree=off", "--new", BYDAWN_WORKTREE="on")
    assert (off.code, (home.repo / "b").exists()) == (0, True)


def test_files_are_copied_through_no_link_and_only_if_git_ignores_them(home: Home) -> None:
    commit(home, **{".gitignore": "*.key\nout\nlinked/\n", ".worktreeinclude": "*\n"})
    outside = home.root / "outside"
    outside.mkdir()
    (outside / "x.key").write_text("not here\n")
    (home.repo / "out").symlink_to(outside)
    (home.repo / "a.key").symlink_to(outside / "x.key")
    (home.repo / "b.key").write_text("b\n")
    (home.repo / "mine").write_text("untracked\n")
    os.mkfifo(home.repo / "pipe.key")
    ended = home.run(home.rounds([wrote("a"), DONE]), ON)
    assert ended.code == 0, ended
    assert {path.name for path in place(home).iterdir()} == {
        ".git",
        ".gitignore",
        ".worktreeinclude",
        "README.md",
        "a",
        "b.key",
    }
    assert "could not copy all that .worktreeinclude names: a.key, out" in ended.out


def test_a_file_that_a_worktree_has_is_not_replaced_by_one_of_the_project(home: Home) -> None:
    commit(home, **{".gitignore": ".env\n", ".worktreeinclude": ".env\n"})
    git(home, "worktree", "add", "-q", "-b", "bydawn/repo", str(place(home)))
    for folder, text in ((home.repo, "PORT=1\n"), (place(home), "PORT=2\n")):
        (folder / ".env").write_text(text)
    assert home.run(home.rounds([wrote("a"), DONE]), ON).code == 0
    assert (place(home) / ".env").read_text() == "PORT=2\n"


def test_a_file_that_git_ignores_only_since_the_last_commit_is_not_copied(home: Home) -> None:
    """It would be committed in the worktree, and merged."""
    for name, text in {".gitignore": ".env\n", ".worktreeinclude": ".env\n", ".env": "PORT=1\n"}.items():
        (home.repo / name).write_text(text)
    ended = home.run(home.rounds([wrote("a"), DONE]), ON)
    assert (ended.code, git(home, "diff", "--name-only", "main", "bydawn/repo")) == (0, "a"), ended
    assert "could not copy all that .worktreeinclude names: .env" in ended.out


# -- killed ------------------------------------------------------------------------------------------------------------


def hook(home: Home, name: str, script: str) -> None:
    path = home.repo / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_killed_commit_leaves_no_lock_in_the_way_and_a_persons_own_is_never_removed(home: Home) -> None:
    """FAULTS 93: git's directory for a worktree is not .git."""
    git_dir, own = home.repo / ".git/worktrees/bydawn-repo", home.repo / ".git/index.lock"
    hook(home, "pre-commit", f"test -e {home.root}/go || {{ kill -9 $(ps -o ppid= -p $PPID); sleep 300; }}")
    home.run(home.rounds([wrote("a"), DONE]), ON)
    wait_for(lambda: home.status()["state"] == "crashed")
    assert (git_dir / "index.lock").exists()
    own.touch()  # a person's git is at work in the project
    (home.root / "go").touch()
    assert home.bydawn("resume", "repo", "--plain").code == 0
    assert (subjects(home), own.exists()) == (["bydawn: round 1"], True)


def test_a_round_that_was_killed_is_committed_at_the_next_start(home: Home) -> None:
    going = home.start_run(home.rounds([wrote("a"), HANG], [DONE]), ON)
    wait_for(lambda: (place(home) / "a").exists())
    os.kill(worker_of(going), signal.SIGKILL)
    said(going)
    assert home.bydawn("resume", "--plain").code == 0
    assert subjects(home) == ["bydawn: round 1"]
    rows: list[Any] = json.loads(home.bydawn("show", "--json").out)["rounds"]
    assert ["commit" in row for row in rows] == [True, False]


# -- removed -----------------------------------------------------------------------------------------------------------


def cleaned(home: Home, *more: str) -> list[tuple[str, str]]:
    told = json.loads(home.bydawn("clean", "--worktrees", "--json", *more).out)
    return [(row["loop"], row["kept"]) for row in told["worktrees"]]


def test_a_worktree_is_removed_only_once_nothing_would_be_lost(home: Home) -> None:
    """X-27: neither work that is not merged nor work that is not committed; and only of a loop that is over."""
    ended = home.run(home.rounds([wrote("a"), DONE]), ON)
    home.run(home.rounds([wrote("b"), OK]), ON, "--new", "--name", "going", "--once")
    unmerged = "1 commit on bydawn/repo not merged yet: `git merge bydawn/repo`"
    assert cleaned(home, "--apply") == [("repo", unmerged)]
    merge(home, ended)
    (place(home) / "mine").write_text("a person's\n")
    dirty = home.bydawn("clean", "--worktrees", "repo", "going", "--apply").out
    assert f"repo  kept: it has changes that are not committed: `git -C {place(home)} status`" in dirty
    assert "going  kept: it has reached a limit and can go on; dismiss it first" in dirty
    (place(home) / "mine").unlink()
    assert "1 worktree would be removed; add --apply" in home.bydawn("clean", "--worktrees").out
    assert place(home).is_dir()
    assert cleaned(home, "--apply") == [("repo", "")]
    assert (place(home).exists(), git(home, "branch", "--list", "bydawn/repo")) == (False, "")
    assert place(home, "bydawn-going").is_dir()
    assert cleaned(home) == []
    assert home.show()["worktree"]["branch"] == "bydawn/repo"  # it can still be looked at
    shown = home.bydawn("show", "repo").out
    assert ("is unverified" in shown, "merge" in shown) == (True, False)


def test_a_worktree_that_another_loop_uses_by_now_is_kept(home: Home) -> None:
    merge(home, home.run(home.rounds([wrote("a"), DONE]), "--worktree=bydawn/x"))
    home.run(home.rounds([OK]), "--worktree=bydawn/x", "--name", "second", "--once")
    assert cleaned(home, "--apply") == [("repo", "second works there too")]


def test_a_branch_that_is_merged_elsewhere_is_kept_without_its_worktree(home: Home) -> None:
    home.run(home.rounds([wrote("a"), DONE]), ON)
    git(home, "branch", "release", "bydawn/repo")
    [(_, kept)] = cleaned(home, "--apply")
    assert (place(home).exists(), "only the branch bydawn/repo is left" in kept) == (False, True)
