"""The logs of old loops: what would be removed is said first, and commands that need them say where they went."""

import json

from driving import DONE, OK, Home, is_error

LONG: dict[str, str] = {"say": "a long story"}


def test_nothing_is_removed_until_it_is_asked_for_and_then_every_command_says_so(home: Home) -> None:
    """X-27."""
    write = {"write": {"path": "done", "text": "x"}}
    home.run(home.rounds([LONG, OK], [LONG, write, OK]), "-k", "echo looking; test -e done", "--no-promise")
    home.run(home.rounds([LONG, OK]), "--new", "--name", "limited", "--rounds", "1")
    before, shown = home.facts(), home.show()
    assert home.bydawn("clean").out == "  Nothing to remove.\n"  # it has just ended
    dry = home.bydawn("clean", "--older-than", "0")
    assert "would be freed; add --apply to remove it" in dry.out
    assert "a long story" in home.bydawn("logs", "repo").out
    named = home.bydawn("clean", "repo", "limited").out.splitlines()
    assert named[0].startswith("  repo     it has ended too recently")
    assert named[1].startswith("  limited  it has reached a limit and can go on")

    told = json.loads(home.bydawn("clean", "--older-than", "0", "--apply", "--json", cwd=home.root).out)
    assert [(row["loop"], row["state"], row["skipped"]) for row in told["loops"]] == [("repo", "complete", "")]
    assert told["applied"] is True
    assert told["bytes"] == told["loops"][0]["bytes"] > 100
    assert sorted(path.name for path in (home.folder() / "rounds").glob("*/*")) == ["reply.md", "reply.md"]
    assert "a long story" in home.bydawn("logs", "limited").out

    for follow in ((), ("-f",)):
        logs = home.bydawn("logs", "repo", *follow)
        assert (logs.code, logs.out.split("\n")[0]) == (0, "  The output of round 2 was removed by `bydawn clean`.")
    assert json.loads(home.bydawn("logs", "repo", "--json").out)["event"] == "removed"
    first = home.bydawn("show", "repo", "--round", "1").out
    assert "│ looking\n          removed by `bydawn clean`" in first  # the end of it is in the history
    assert "Output  removed by `bydawn clean`" in first
    after = home.show()
    assert home.facts() == before
    assert {name for name in after if after[name] != shown[name]} <= {"offers"}  # there is no log to look at
    assert not any("logs" in offer["command"] for offer in after["offers"])
    assert home.bydawn("doctor", "repo").code == 0
    assert home.bydawn("clean", "--older-than", "0").out == "  Nothing to remove.\n"


def test_a_dismissed_loop_can_go_on_after_its_logs_are_gone(home: Home) -> None:
    home.run(home.rounds([LONG, OK], [LONG, DONE]), "--rounds", "1")
    home.bydawn("dismiss", "repo")
    assert "Freed " in home.bydawn("clean", "repo", "--older-than", "0s", "--apply").out
    assert home.bydawn("resume", "repo", "--rounds", "+3").code == 0
    assert home.outcomes() == ["ok", "ok"]
    assert "a long story" in home.bydawn("logs", "repo").out


def test_the_last_loops_can_be_kept_and_old_questions_are_named(home: Home) -> None:
    """X-27."""
    for name in ("first", "second"):
        home.run(home.rounds([LONG, DONE]), "--new", "--name", name)
    place = home.states / "asked/0123456789ab/rounds/0001"
    place.mkdir(parents=True)
    (place / "prompt.md").write_text("Which?")
    dry = home.bydawn("clean", "--older-than", "0", "--keep", "1").out.splitlines()
    assert dry[0].startswith("  first  ")
    assert dry[1].startswith("  6 B · a question of ")
    assert dry[1].endswith("asked/0123456789ab")
    assert dry[2].endswith(" of 1 loop and 1 question would be freed; add --apply to remove it.")
    assert home.bydawn("clean", "second", "--older-than", "0", "--keep", "1").out.startswith(
        "  second  --keep 1 keeps it  "
    )
    done = home.bydawn("clean", "--older-than", "0", "--keep", "1", "--apply").out.splitlines()
    assert (done[:2], done[2].endswith(" of 1 loop and 1 question.")) == (dry[:2], True)
    assert [*(home.states / "asked").iterdir()] == []
    assert "a long story" in home.bydawn("logs", "second").out


def test_keep_does_not_go_with_worktrees(home: Home) -> None:
    refused = home.bydawn("clean", "--worktrees", "--keep", "1")
    assert (refused.code, is_error(refused.err)) == (2, True)
    assert home.bydawn("clean", "--keep", "-1").code == 2
