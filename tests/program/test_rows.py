"""The rows of a loop that runs: each says what is true when it is printed."""

import pytest

from driving import DONE, OK, Home, Step

WRITES: Step = {"append": {"path": "log", "text": "x"}}


def rows(out: str) -> list[str]:
    """The rows of rounds and what stands below them."""
    shown = out.partition("check  result")[2].splitlines()
    first = next((number for number, line in enumerate(shown) if line[2:3].isdigit()), len(shown))
    return [line for line in shown[first:] if line[2:3].isdigit() or "└" in line]


# -- what is sent to the agent -----------------------------------------------------------------------------------------


def test_what_failed_is_said_to_be_sent_only_where_a_round_follows(home: Home) -> None:
    ended = home.run(home.rounds([WRITES, OK]), "-k", f"echo {'long ' * 40}; false", "--rounds", "2")
    told = [line for line in ended.out.splitlines() if "└ exit 1" in line]
    assert [line.endswith("… → sent to the agent in round 2") for line in told] == [False, True, False]
    assert "sent to" not in told[2]
    assert all(len(line) <= 100 for line in told)


def test_a_task_of_a_folder_that_is_done_is_called_done_in_its_own_row(home: Home) -> None:
    (home.repo / "tasks").mkdir()
    for name in ("one", "two"):
        (home.repo / f"tasks/{name}.md").write_text(f"# {name}\n")
    agent = home.rounds([WRITES, {"result": {"text": "did it\n\nSTATUS: done"}}])
    ended = home.run(agent, "-t", "tasks", "-k", "true", "--post-round", "true", "--witness", "off")
    assert [row.split()[-3:] for row in rows(ended.out)] == [["task", "done", "1/2"], ["task", "done", "2/2"]]


def test_a_task_of_a_folder_that_only_claims_to_be_done_is_not_called_done(home: Home) -> None:
    (home.repo / "tasks").mkdir()
    (home.repo / "tasks/one.md").write_text("# one\n")
    agent = home.rounds([WRITES, {"result": {"text": "did it\n\nSTATUS: done"}}])
    ended = home.run(agent, "-t", "tasks", "-k", "false", "--rounds", "1")
    assert rows(ended.out)[0].split()[-3:] == ["not", "yet", "0/1"]
    assert "└ exit 1" in rows(ended.out)[1]


# -- what costs a round ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "counts"), [({"exit": 3}, True), ({"result": {"outcome": "transient"}}, False)])
def test_a_wait_costs_no_round_only_after_one_that_does_not_count(home: Home, step: Step, counts: bool) -> None:
    ended = home.run(home.rounds([step], [DONE]))
    [wait] = [line for line in ended.out.splitlines() if "waiting" in line]
    assert wait.endswith("(costs no round)") is not counts
    told = "2 rounds" if counts else "2 rounds (1 cut short)"
    assert f"~ Unverified: {told}, " in ended.out
    assert told in home.bydawn("status").out
    assert ("cut short" in home.bydawn("show").out) is not counts


# -- what does not go on -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        (["--rounds", "1"], [WRITES, OK]),
        (["--protect", "README.md"], [{"write": {"path": "README.md", "text": "x"}}, OK]),
        (["-t", "TODO.md", "--checkpoint", "HARD STOP"], [{"tick": "task 1"}, OK]),
    ],
    ids=["limit", "tampered", "checkpoint"],
)
def test_nobody_says_to_go_on_where_the_end_comes_at_once(home: Home, options: list[str], steps: list[Step]) -> None:
    (home.repo / "TODO.md").write_text("- [ ] task 1\n- HARD STOP look\n- [ ] task 2\n")
    first = home.run(home.rounds(steps), *options)
    assert first.code in (3, 4, 5)
    again = home.bydawn("resume", "--plain")
    assert again.code == first.code
    assert len(home.facts("round.started")) == 1
    assert "Continuing" not in again.out and "check  result" not in again.out
    assert again.out.strip().splitlines()[-1] == first.out.strip().splitlines()[-1]


def test_warnings_and_sentences_break_between_words_where_the_screen_is_narrow(home: Home) -> None:
    steps: list[Step] = [{"result": {"outcome": "transient", "text": "the provider is busy, try again in a moment"}}]
    ended = home.run(home.rounds(steps, [DONE]), COLUMNS="48", BYDAWN_RUONDS="3")
    lines = [line for line in ended.out.splitlines() if "/" not in line]
    assert "has no effect" in ended.out and "waiting" in ended.out
    assert [line for line in lines if len(line) > 48] == []
