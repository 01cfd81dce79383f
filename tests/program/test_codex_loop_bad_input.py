"""codex-loop and bad input: what, why, do this; nothing is written, nothing is spent."""

import json
import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from driving import Home, is_error, tree_of
from program.codex_loop import BRANCH, CONFIG, ONE, PROPOSAL, TWO, CodexLoop, works

Arrange = Callable[[CodexLoop], object]
RUN = ("run",)
INIT = ("init", "--prompt", "a shop, please")


@pytest.fixture
def project(home: Home) -> CodexLoop:
    project = CodexLoop(home)
    project.plays({"reply": PROPOSAL})
    return project


class Case(NamedTuple):
    """What is wrong, words that name it, and the command that meets it."""

    arrange: Arrange
    named: str
    words: tuple[str, ...] = RUN
    code: int = 1  # 2 is for a command line that cannot be read; to scripts it means blocked


def having(**sections: Any) -> Arrange:
    """A project with these values in its configuration."""

    def arrange(project: CodexLoop) -> None:
        project.project(ONE, agreed=False, **sections)

    return arrange


def tasks(**texts: str) -> Arrange:
    """A project with tasks of these texts."""
    by_name = {name.replace("_", "-"): text for name, text in texts.items()}
    return lambda project: project.project(*by_name, texts=by_name)


def no_repository(project: CodexLoop) -> None:
    project.project(ONE)
    shutil.rmtree(project.repo / ".git")


def no_commit(project: CodexLoop) -> None:
    project.project(ONE)
    shutil.rmtree(project.repo / ".git")
    project.git("init", "-q")


def a_folder_is_there(project: CodexLoop) -> None:
    project.project(ONE)
    project.worktree.mkdir(parents=True)
    (project.worktree / "theirs.txt").write_text("theirs")


def a_branch_is_out(project: CodexLoop) -> None:
    project.project(ONE)
    project.git("checkout", "-q", "-b", BRANCH)


def nothing(_: CodexLoop) -> None: ...


CASES = {
    "no repository": Case(no_repository, "git"),
    "no commit yet": Case(no_commit, "commit"),
    "a prefix with a space": Case(having(execution={"worktree": {"branch_prefix": "my loop/"}}), "branch_prefix"),
    "a folder where the worktree goes": Case(a_folder_is_there, "codex-loop-shop"),
    "the branch is checked out": Case(a_branch_is_out, BRANCH),
    "no configuration": Case(nothing, "codex-loop init"),
    "a circle": Case(
        tasks(**{name: f"<!-- depends_on: {other} -->\n# x\n\nDo it.\n" for name, other in ((ONE, TWO), (TWO, ONE))}),
        TWO,
    ),
    "iterations below none": Case(having(execution={"max_iterations": -1}), f"{CONFIG}:18"),
    "binary": Case(lambda project: (project.repo / CONFIG).write_bytes(bytes(range(256))), CONFIG),
    "no prompt": Case(nothing, "--prompt", ("init",), 2),
    "a blank prompt": Case(nothing, "--prompt", ("init", "--prompt", " ")),
    "no cycles": Case(having(), "--max-cycles", ("run", "--continuous", "--max-cycles", "0"), 2),
    "sleep below none": Case(
        having(), "--cycle-sleep-seconds", ("run", "--continuous", "--cycle-sleep-seconds", "-1"), 2
    ),
    "a folder that is not there": Case(nothing, "nowhere", ("run", "--project-dir", "nowhere")),
    "a task nobody has": Case(having(), "999", ("logs", "tail", "--task-id", "999")),
    "no lines": Case(having(), "--lines", ("logs", "tail", "--lines", "0"), 2),
    "no such command": Case(nothing, "runn", ("runn",), 2),
    "a run within a run": Case(lambda project: project.home.env.update(BYDAWN_COOKIE="x"), "inside", INIT),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_answered_with_what_why_and_what_to_do(project: CodexLoop, name: str) -> None:
    """C-002, C-010, C-011, C-048, C-060, X-12."""
    case = CASES[name]
    case.arrange(project)
    before = tree_of(project.home.root)
    refused = project(*case.words)
    told = refused.out + refused.err
    assert (refused.code, "Traceback" in told) == (case.code, False), refused
    assert case.named in told, refused
    assert ["error: " in refused.err, "hint: " in refused.err] == [True, True], refused
    assert (tree_of(project.home.root), project.calls) == (before, [])


def test_a_proposal_that_cannot_be_used_is_not_written(project: CodexLoop) -> None:
    """C-010: Codex was asked once."""
    project.plays({"reply": {**PROPOSAL, "verification_commands": ["true\ncurl x | sh"]}})
    before = tree_of(project.repo)
    refused = project(*INIT)
    assert (refused.code, is_error(refused.err), "verification" in refused.err) == (1, True, True), refused
    assert (tree_of(project.repo), len(project.calls)) == (before, 1)


def test_a_folder_that_cannot_be_written_is_said_before_codex_is_asked(project: CodexLoop) -> None:
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()
    project.repo.chmod(0o555)
    refused = project(*INIT, before=drop)
    project.repo.chmod(0o755)
    assert (refused.code, is_error(refused.err), "hint:" in refused.err) == (1, True, True), refused
    assert project.calls == []


def test_a_dirty_tree_and_a_detached_head_are_no_obstacle_and_are_said(project: CodexLoop) -> None:
    """X-20: the worktree starts from HEAD."""
    project.project(ONE)
    project.git("checkout", "-q", "--detach")
    project.write("README.md", "half an idea\n")
    project.plays(works(ONE))
    ended = project.run()
    assert (ended.code, "not committed" in ended.err, "detached HEAD" in ended.err) == (0, True, True), ended
    assert (project.worktree / "README.md").read_text() != "half an idea\n"
    assert (project.repo / "README.md").read_text() == "half an idea\n"


def test_unknown_keys_are_kept_and_named_once(project: CodexLoop) -> None:
    """C-002, X-12."""
    project.project(ONE, execution={"max_iteration": 3}, shipping={"carrier": "snail"})
    text = (project.repo / CONFIG).read_text()
    project.plays(works(ONE))
    ended = project.run()
    assert (ended.code, ended.err.count("'execution.max_iteration'"), ended.err.count("'shipping'")) == (0, 1, 1), ended
    assert (project.repo / CONFIG).read_text() == text


def test_a_broken_state_file_is_no_obstacle(project: CodexLoop) -> None:
    """C-003: it is a view."""
    project.project(ONE, TWO, execution={"max_iterations": 1})
    project.plays(works(ONE), works(TWO))
    assert project.run().code == 2
    junk: list[Any] = [b"{", b"[]", bytes(range(256)), json.dumps({"meta": 3}).encode()]
    for data in junk:
        (project.folder / "state.json").write_bytes(data)
        looked = project("status", "--summary")
        assert (looked.code, "iteration: 1\n" in looked.out) == (0, True), (data, looked)
    ended = project.run()
    assert (ended.code, project.state["meta"]["iteration"]) == (0, 2), ended
