"""When the engine commits, what it records, and what stops it (X-18)."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import ChecksEnded, CommitEnded, Obstructed, RoundStarted
from bydawn.core.loop import CommitMode, Hooks
from bydawn.core.outcome import Outcome
from bydawn.core.requests import AskStop
from bydawn.core.state import Span
from bydawn.core.values import End
from engine.fakes import Files
from engine.night import DONE, Night, Play

WORK = Play(writes={"a": "1"})
LAST = Play(says=DONE, writes={"b": "2"})


class Repository:
    """A person's repository in memory."""

    def __init__(self, night: Night) -> None:
        self._night = night
        self.noted: list[int] = []
        self.made: list[tuple[int, str, tuple[Span, ...]]] = []
        self.ends: Callable[[int], CommitEnded] = lambda round_: CommitEnded(round=round_, commit="c0ffee", files=1)
        self.writes: Files = {}
        self.meanwhile: Callable[[], None] = lambda: None
        night.commits = self

    def note(self, round_: int, spans: Sequence[Span], tree: str) -> None:
        assert (tuple(spans), tree) == (self._night.state.uncommitted, self._night.state.tree)
        assert len(self._night.facts(RoundStarted)) < round_  # before the agent can change anything
        self.noted.append(round_)

    def commit(
        self, round_: int, message: str, spans: Sequence[Span], tree: str, urgent: Callable[[], bool]
    ) -> CommitEnded:
        assert tree == self._night.state.tree
        self.made.append((round_, message, tuple(spans)))
        self._night.workspace.edit(self.writes)
        self.meanwhile()
        urgent()
        return self.ends(round_)


def a_night(*plays: Play | str, mode: CommitMode = CommitMode.ON, **more: Any) -> tuple[Night, Repository]:
    night = Night(plays, commit=mode, **more)
    return night, Repository(night)


def test_it_is_done_after_the_round_and_before_checks_and_hooks() -> None:
    night, repository = a_night(WORK, LAST, check=lambda files: "b" in files, hooks=Hooks(post_round="post"))
    assert night.run().end is End.COMPLETE
    kinds = [type(fact).__name__ for fact in night.facts()][3:]
    one = ["RoundStarted", "RoundEnded", "CommitEnded", "ChecksEnded", "HookEnded"]
    assert kinds == [*one, *one, "LoopStopped"]
    assert repository.noted == [1, 2]
    assert repository.made[1][1].startswith("bydawn: round 2\n")


def test_changes_that_could_not_be_committed_are_told_and_wait() -> None:
    night, repository = a_night(WORK, LAST)
    said = "E501 line too long"
    night.files.texts[1, "hook-commit.txt"] = said
    failed = CommitEnded(round=1, failure="exit 1", output="hook-commit.txt")
    repository.ends = lambda round_: failed if round_ == 1 else CommitEnded(round=2, commit="c0ffee")
    assert night.run().end is End.UNVERIFIED
    assert [len(spans) for _, _, spans in repository.made] == [1, 1]
    assert repository.made[1][2][0].first == 1
    assert said in night.files.texts[2, "prompt.md"]
    assert night.state.uncommitted == ()


@pytest.mark.parametrize("mode", [CommitMode.ON, CommitMode.REQUIRE])
def test_only_a_loop_that_requires_commits_is_blocked_by_one(mode: CommitMode) -> None:
    night, repository = a_night(LAST, mode=mode)

    def refuse(_: int) -> CommitEnded:
        raise UserError("git cannot be started", cause="it is missing")

    repository.ends = refuse
    stopped = night.run()
    assert night.facts(CommitEnded)[0].failure == "git cannot be started: it is missing"
    if mode is CommitMode.ON:
        assert stopped.end is End.UNVERIFIED
        return
    assert (stopped.end, night.facts(Obstructed)[0].kind) == (End.BLOCKED, "commit")
    repository.ends = lambda round_: CommitEnded(round=round_, commit="c0ffee")
    assert night.run().end is End.UNVERIFIED
    assert len(repository.made) == 2
    assert night.agent.turns == 1


def test_a_git_hook_that_changes_files_is_followed_by_checks_of_what_it_left() -> None:
    night, repository = a_night(LAST, check=lambda files: files.get("b") == "formatted")
    repository.writes = {"b": "formatted"}
    assert night.run().end is End.COMPLETE
    assert night.facts(ChecksEnded)[-1].tree == night.facts(CommitEnded)[0].tree == night.workspace.tree


def test_a_git_hook_that_changes_protected_files_blocks_the_loop() -> None:
    night, repository = a_night(LAST, protect=("tests/*",))
    repository.writes = {"tests/a": "assert True"}
    assert night.run().end is End.BLOCKED
    assert night.facts(CommitEnded)[0].tampered == ("tests/a",)


def test_one_that_a_person_cuts_short_has_not_failed_and_is_tried_again() -> None:
    night, repository = a_night(LAST)
    repository.meanwhile = lambda: night.ask(AskStop(id="1", run="run-1", by="ada"))
    repository.ends = lambda round_: CommitEnded(round=round_, failure="stopped")
    assert night.run().end is End.STOPPED
    assert night.facts(CommitEnded) == []
    repository.meanwhile, repository.ends = (lambda: None), (lambda round_: CommitEnded(round=round_, commit="c0ffee"))
    assert night.run().end is End.UNVERIFIED
    assert len(repository.made) == 2


def test_a_round_that_failed_is_committed_with_the_next_one() -> None:
    night, repository = a_night(Play(writes={"a": "1"}, outcome=Outcome.FAILED), LAST)
    night.run()
    assert [(round_, spans[0].first, spans[0].last) for round_, _, spans in repository.made] == [(2, 1, 2)]
