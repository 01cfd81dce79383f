"""strict-agent-loop in a hostile repository: nothing that came with it runs, or is written, before a person says so."""

import json
from pathlib import Path

import pytest

from driving import Home, Said, said

TASKS = ".codex-loop/tasks"
CONTRACT = {"goal": "all numbers", "stop_condition": "1 is there"}


class Repository:
    """A folder that came from elsewhere, and the command in it."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.proof = home.root / "it-ran"
        self.evil = f"touch {self.proof}"

    def __call__(self, *words: str) -> Said:
        return said(self.home.start(*words, command="strict-agent-loop"))

    def brings(self, name: str, **contract: object) -> Path:
        """A contract, as a session in a sandbox leaves one."""
        path = self.home.repo / TASKS / name / "drop/init.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"task": name, **CONTRACT, **contract}))
        return path


@pytest.fixture
def repository(home: Home) -> Repository:
    return Repository(home)


@pytest.mark.parametrize(
    "asks",
    [
        {"mode": "unattended"},
        {"codex_bin": "/bin/sh"},
        {"sandbox": "danger-full-access"},
        {"model": "x --yolo"},
        {"pause": 1e9},
        {"max_iterations": 10**8},
        {"paths": ["../../etc/passwd"]},
        {"task": "another"},
        {"goal": " "},
    ],
    ids=lambda asks: next(iter(asks)),
)
def test_a_contract_that_came_with_the_folder_only_says_what_is_to_be_done(
    repository: Repository, asks: dict[str, object]
) -> None:
    """Which program works, and what it may do, is not for a sandbox to say; the other contracts are taken."""
    path = repository.brings("evil", **asks)
    repository.brings("good")
    listed = repository("list-tasks")
    assert (listed.code, listed.err.count("is not the contract of a task")) == (0, 1)
    assert "good  running · interactive" in listed.out
    assert [each.name for each in path.parent.iterdir()] == ["init.bad"]
    assert repository("supervise", "--task-id", "evil").code == 1
    assert repository("list-tasks").err == "", "it is said once"


def test_a_contract_behind_a_link_is_left_alone(repository: Repository) -> None:
    """Nothing outside the workspace is written, moved or removed, whatever the folder leads to."""
    outside = repository.home.root / "outside"
    (outside / "drop").mkdir(parents=True)
    theirs = outside / "drop/init.json"
    theirs.write_text("{}")
    (repository.home.repo / TASKS).mkdir(parents=True)
    (repository.home.repo / TASKS / "evil").symlink_to(outside)
    listed = repository("list-tasks")
    assert (listed.code, listed.out[:8]) == (0, "No tasks")
    assert "evil/drop/init.json was not taken in" in listed.err
    assert sorted(outside.rglob("*")) == [outside / "drop", theirs]


def test_stop_commands_that_came_with_the_folder_wait_for_a_person(repository: Repository) -> None:
    """S-046: neither a contract nor a forged state.json runs a command outside; the hint does what it says."""
    repository.brings("made", commands=[repository.evil])
    assert (
        repository(
            "init-state", "--workspace-root", ".", "--task-id", "a", "--goal", "g", "--global-stop-condition", "s"
        ).code
        == 0
    )
    forged = json.loads((repository.home.repo / TASKS / "a/state.json").read_text())
    forged["task"]["id"] = "forged"
    forged["stop_checks"]["commands"] = [{"command": repository.evil}]
    path = repository.home.repo / TASKS / "forged/state.json"
    path.parent.mkdir()
    path.write_text(json.dumps(forged))
    for task, what in (("made", "came from a sandbox"), ("forged", "there is no record of forged here")):
        refused = repository("check-stop", "--workspace-root", ".", "--task-id", task)
        assert (refused.code, what in refused.err, repository.proof.exists()) == (2, True, False)
