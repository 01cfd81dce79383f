"""Limits on `resume`: what raises one, what cannot be held, and what would end the loop at once."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from driving import HANG, OK, Home, Said, Step, is_error, said


def spending(tokens: int) -> Step:
    return {"result": {"text": "did it", "usage": {"tokens_in": tokens, "tokens_out": 0}}}


def grown(home: Home, *more: Step) -> str:
    """An agent that changes something in every round."""
    return home.rounds([{"append": {"path": "log", "text": "x"}}, *(more or (OK,))])


def refused(home: Home, *words: str) -> str:
    """What is said of a `resume` that is refused; nothing is written down, and nothing is run."""
    before = home.facts()
    said = home.bydawn("resume", "--plain", *words)
    assert said.code == 2, said.out
    assert is_error(said.err)
    assert home.facts() == before
    return said.err


@pytest.mark.parametrize(
    ("option", "more"),
    [
        ("--rounds", "+5"),
        ("--budget", "+3usd"),
    ],
)
def test_nothing_can_be_added_to_a_limit_that_is_not_there(home: Home, option: str, more: str) -> None:
    home.run(grown(home), "--rounds", "0", "--max-no-change", "0", "--max-failures", "0", "--once")
    err = refused(home, option, more)
    assert f"{option} {more}" in err
    assert f"{option} {more[1:]}" in err  # what sets one


def test_a_number_of_failures_that_was_given_is_meant_and_the_usual_one_takes_twenty_minutes(home: Home) -> None:
    def given(name: str, *words: str) -> int | None:
        home.run(grown(home), "--once", "--new", "--name", name, *words)
        [loop] = home.states.glob(f"loops/*/{name}/loop.json")
        limit: int | None = json.loads(loop.read_bytes())["limits"]["agent_failures"]
        return limit

    assert (given("usual"), given("mine", "--max-failures", "5")) == (None, 5)
    assert home.bydawn("resume", "usual", "--max-failures", "+3", "--once").code == 4
    [raised] = home.facts("limits.raised", "usual")
    assert raised["data"]["limits"]["agent_failures"] == 8


def test_nothing_is_added_to_a_budget_in_other_units_and_the_right_ones_are_offered(home: Home) -> None:
    home.run(grown(home, spending(700_000)), "--budget", "2Mtok")
    err = refused(home, "--budget", "+1usd")
    assert "it is in tokens: 2Mtok" in err
    assert "--budget +2Mtok" in err
    assert "--budget 1usd" not in err  # beside the tokens, which would still hold
    home.bydawn("resume", "--plain", "--budget", "+2Mtok", "--once")
    assert len(home.rounds_ended()) == 4


def test_a_limit_that_is_used_up_already_is_refused_with_one_that_would_do(home: Home) -> None:
    home.run(grown(home, spending(700_000)), "--rounds", "5")
    for words, used, enough in (
        (["--rounds", "1"], "has used 5 rounds", "--rounds 20"),
        (["--rounds", "5"], "has used 5 rounds", "--rounds 20"),
        (["--for", "0.001s"], "has worked for", "--for 2h"),
        (["--budget", "1Mtok", "--rounds", "9"], "has used 3,500,000 tokens", "--budget 5Mtok"),
    ):
        err = refused(home, *words)
        assert used in err
        assert f"`bydawn resume repo {enough}`" in err


def test_raising_one_limit_is_refused_while_another_is_used_up(home: Home) -> None:
    home.run(grown(home, spending(700_000)), "--rounds", "5", "--budget", "2Mtok")
    err = refused(home, "--rounds", "0")
    assert "repo has used 2,100,000 tokens" in err
    assert "add --budget +1Mtok" in err
    assert home.bydawn("resume", "--plain", "--rounds", "0", "--budget", "+1Mtok").code == 4


def test_a_lower_limit_that_is_not_used_up_is_taken_and_not_called_raised(home: Home) -> None:
    home.run(grown(home), "--once")
    said = home.bydawn("resume", "--plain", "--rounds", "2")
    assert said.code == 4
    assert "Limits changed." in said.out
    assert "raised" not in said.out.partition("Continuing")[0]
    assert len(home.rounds_ended()) == 2
    assert "Limits raised." in home.bydawn("resume", "--plain", "--rounds", "+1").out
    assert "Limits raised." in home.bydawn("resume", "--plain", "--rounds", "0", "--once").out  # without any limit


def test_a_budget_in_dollars_is_refused_on_resume_where_nobody_says_what_it_costs(home: Home) -> None:
    home.run("cmd:true", "--rounds", "1")
    assert "does not report its cost" in refused(home, "--budget", "1usd", "--rounds", "+1")


def test_a_round_that_the_budget_cut_short_is_not_said_to_be_stopped_on_request(home: Home) -> None:
    fields = ["--agent-json", "text=t", "--agent-json", "tokens_in=n"]
    spends = """cmd:sh -c 'echo "{\\"t\\":\\"on it\\",\\"n\\":5000}"; sleep 60'"""
    ended = home.run(spends, *fields, "--budget", "1ktok")
    assert ended.code == 4
    for each in (ended, home.bydawn("show"), home.bydawn("show", "--round", "1")):
        assert "over budget" in each.out
        assert "interrupted" not in each.out and "on request" not in each.out
    assert "the budget was used up" in home.bydawn("show", "--round", "1").out
    assert home.outcomes() == ["interrupted"]


def test_a_round_that_a_person_ended_is_still_said_to_be(home: Home) -> None:
    running = home.start_run(home.rounds([{"say": "hi"}, HANG]), "--budget", "1ktok")
    home.await_round(1)
    home.bydawn("stop")
    for out in (said(running).out, home.bydawn("show", "--round", "1").out):
        assert "stopped on request" in out


# -- what is suggested -------------------------------------------------------------------------------------------------


def suggested(said: Said) -> list[str]:
    """The first command that is to be pasted, without our own name."""
    line = next(line.strip() for line in said.out.splitlines() if line.strip().startswith("bydawn resume "))
    return line.partition("  ")[0].split()[1:]


def test_the_raise_that_is_suggested_reaches_beyond_what_is_used(home: Home) -> None:
    said = home.run(grown(home, spending(3_500_000)), "--budget", "1Mtok")
    assert suggested(said) == ["resume", "repo", "--budget", "+6Mtok"]
    assert suggested(home.bydawn("show")) == suggested(said)
    home.bydawn(*suggested(said), "--plain")
    assert len(home.rounds_ended()) == 2


def test_every_limit_that_is_used_up_is_in_the_suggested_raise(home: Home) -> None:
    said = home.run(grown(home, spending(400_000)), "--budget", "1Mtok", "--rounds", "3", "--for", "0.01s")
    assert suggested(said) == ["resume", "repo", "--for", "+2h"]  # the time is up, and nothing else yet
    said = home.bydawn(*suggested(said), "--plain")
    assert suggested(said) == ["resume", "repo", "--rounds", "+20", "--budget", "+1Mtok"]


def test_after_a_single_round_there_is_nothing_to_raise(home: Home) -> None:
    said = home.run(grown(home), "--once")
    assert suggested(said) == ["resume", "repo"]
    assert "raise the limit" not in said.out


def test_a_moment_to_wake_up_at_that_is_suggested_is_one_at_which_the_agent_is_free(home: Home) -> None:
    free = datetime.now(UTC) + timedelta(hours=3)
    limited = {"result": {"outcome": "limited", "text": "later", "wait_until": free.isoformat()}}
    said = home.run(home.rounds([limited]), "--latest-wake", (free - timedelta(hours=1)).isoformat())
    assert "--latest-wake" in suggested(said)
    assert datetime.fromisoformat(suggested(said)[-1]).astimezone() > free


# -- no better, and no way around --------------------------------------------------------------------------------------


def test_a_check_that_stays_red_in_other_words_ends_a_loop_without_a_list_and_a_cap(home: Home) -> None:
    """One new byte a round is no result, and neither is output that differs each time."""
    agent = home.rounds([{"run": ["sh", "-c", "printf x >> junk"]}, OK])
    said = home.run(agent, "-k", "date +%N; exit 1", "-n", "0", "--max-no-task-done", "3")
    assert (said.code, home.outcomes()) == (3, ["ok"] * 3), said
    assert home.facts("loop.stopped")[-1]["data"]["decided"]["rule"] == "still-red"
