"""A person's own commands beside a loop, with the installed command."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from driving import DONE, HANG, OK, Home, said, wait_for, worker_of

SECRET = "correct-horse-battery-staple-42"  # noqa: S105 - so that there is one to look for
WRITE = {"write": {"path": "made", "text": "x"}}


def variables(path: Path) -> dict[str, str]:
    """What `env` wrote, as far as the loop gave it."""
    rows = (line.partition("=") for line in path.read_text().splitlines())
    return {name: value for name, _, value in rows if name.startswith("BYDAWN_") and name != "BYDAWN_BOX"}


def hooks_of(home: Home) -> list[tuple[str, int, bool, str]]:
    rows = [fact["data"] for fact in home.facts("hook.ended")]
    return [(row["hook"], row["round"], row["passed"], row["detail"]) for row in rows]


def agrees(home: Home) -> bool:
    return json.loads(home.bydawn("why", "--json").out)["agrees"] is True


def test_hooks_know_where_they_are_and_what_has_happened(home: Home) -> None:
    flags = [f"--{name}=env > {home.root}/{name}" for name in ("pre-round", "post-round", "on-complete")]
    assert home.run(home.rounds([WRITE, DONE]), *flags, "-k", "test -e made").code == 0
    cookie = variables(home.root / "pre-round")["BYDAWN_COOKIE"]
    assert re.fullmatch(r".+\.hook", cookie)
    common = {
        "BYDAWN_COOKIE": cookie,
        "BYDAWN_LOOP": "repo",
        "BYDAWN_ROUND": "1",
        "BYDAWN_WORKSPACE": str(home.repo),
        "BYDAWN_FOLDER": str(home.folder() / "rounds/0001"),
        "BYDAWN_TASK": "",
        "BYDAWN_TASK_ID": "",
        "BYDAWN_AGENT_NAME": home.show()["agent"],
    }
    more = {
        "pre-round": {"BYDAWN_HOOK": "pre_round"},
        "post-round": {
            "BYDAWN_HOOK": "post_round",
            "BYDAWN_OUTCOME": "ok",
            "BYDAWN_PROGRESSED": "1",
            "BYDAWN_CHECKS": "passed",
        },
        "on-complete": {
            "BYDAWN_HOOK": "on_complete",
            "BYDAWN_STATE": "complete",
            "BYDAWN_REASON": "checks and promise",
            "BYDAWN_RULE": "complete",
        },
    }
    for name, its in more.items():
        assert variables(home.root / name) == common | its
    assert hooks_of(home) == [(name, 1, True, "exit 0") for name in ("pre_round", "post_round", "on_complete")]
    assert [fact["type"] for fact in home.facts()][-2:] == ["hook.ended", "loop.stopped"]
    assert agrees(home)


def test_a_hook_with_several_commands(home: Home) -> None:
    """C-008: each has its own output, and a person who is asked for trust sees every one of them."""
    said = home.run(home.rounds([DONE]), "--pre-round", "echo one", "--pre-round", "echo two >&2; exit 3")
    assert said.code == 0 and "! hook pre_round (echo two >&2; exit 3) failed: exit 3" in said.out
    printed = [(home.folder() / f"rounds/0001/hook-pre_round{end}.txt").read_text() for end in ("", "-2")]
    assert printed == ["one\n", "two\n"]
    first, second = (fact["data"] for fact in home.facts("hook.ended"))
    assert (first["command"], first["exit_code"]) == ("echo one", 0)
    assert (second["command"], second["exit_code"], second["excerpt"]) == ("echo two >&2; exit 3", 3, "two\n")
    (home.repo / "bydawn.toml").write_text('post_round = ["make clean", "curl example.org"]\n')
    asked = home.run(home.rounds([DONE]), "--new")
    assert asked.code == 2
    assert "post_round = make clean" in asked.err and "post_round = curl example.org" in asked.err


def test_a_hook_runs_in_the_workspace_and_has_nothing_to_read(home: Home) -> None:
    assert home.run(home.rounds([DONE]), "--pre-round", "pwd; cat; echo to-stderr >&2").code == 0
    assert (home.folder() / "rounds/0001/hook-pre_round.txt").read_text() == f"{home.repo}\nto-stderr\n"


def test_nothing_that_a_hook_starts_outlives_it(home: Home) -> None:
    trap = "trap '' INT TERM; (setsid sleep 300 &) ; sleep 300 & wait; wait; sleep 300"
    said = home.run(home.rounds([DONE]), "--pre-round", trap, "--hook-timeout", "0.3s")
    assert said.code == 0  # and `run` has not waited for the 300 seconds
    assert hooks_of(home) == [("pre_round", 1, False, "timed out after 0.3 s")]
    assert "! hook pre_round failed: timed out after 0.3 s" in said.out


def test_a_good_hook_is_not_worth_a_line(home: Home) -> None:
    assert "the hook" not in home.run(home.rounds([DONE]), "--pre-round", "true", "--post-round", "true").out
    assert "hook.ended" in home.bydawn("events").out


@pytest.mark.parametrize("words", ["run 'do more' -a demo", "resume", "trust", "config set rounds 9"])
@pytest.mark.parametrize("disguise", ["", "env -u BYDAWN_COOKIE"])
def test_a_hook_can_neither_start_nor_allow_anything(home: Home, words: str, disguise: str) -> None:
    hook = f"{disguise} bydawn {words} > {home.root}/said 2>&1; echo $? >> {home.root}/said"
    assert home.run(home.rounds([DONE]), "--on-complete", hook).code == 0
    told = (home.root / "said").read_text()
    assert "inside a round" in told
    assert told.endswith("\n2\n")
    assert not home.has_loop("repo-2")


def test_hooks_of_a_repository_that_is_not_trusted_never_run(home: Home) -> None:
    names = ("pre_round", "post_round", "on_complete", "on_blocked", "on_pause")
    (home.repo / "bydawn.toml").write_text("".join(f'{name} = "touch {home.root}/ran"\n' for name in names))
    assert home.run(home.rounds([DONE])).code == 2
    assert not (home.root / "ran").exists()
    assert home.run(home.rounds([DONE]), "--no-project").code == 0
    assert not (home.root / "ran").exists()


def test_secrets_are_masked_in_what_a_hook_printed_and_in_what_is_said_of_it(home: Home) -> None:
    hook = "echo wrong: $MY_TOKEN; exit 3"
    said = home.run(home.rounds([DONE]), "--pre-round", hook, "--on-hook-failure", "block", MY_TOKEN=SECRET)
    assert said.code == 3
    for path in home.folder().rglob("*"):
        if path.is_file() and "/git/" not in str(path):
            assert SECRET not in path.read_text(errors="replace"), path
    assert SECRET not in said.out + said.err
    assert "wrong: " in (home.folder() / "rounds/0001/hook-pre_round.txt").read_text()


def test_a_secret_that_stands_in_a_hook_is_kept_by_the_name_of_its_variable(home: Home) -> None:
    hook = f'test "$MY_TOKEN" = {SECRET}'
    assert home.run(home.rounds([OK], [DONE]), "--pre-round", hook, "--once", MY_TOKEN=SECRET).code == 4
    assert hooks_of(home) == [("pre_round", 1, True, "exit 0")]
    assert SECRET not in (home.folder() / "loop.json").read_text()
    assert "needs the environment variable MY_TOKEN" in home.bydawn("resume").err


def test_ctrl_c_twice_ends_a_hook_and_the_last_one_may_still_say_goodbye(home: Home) -> None:
    ready = home.root / "ready"
    process = home.start_run(
        home.rounds([HANG]), "--pre-round", f"touch {ready}; sleep 300", "--on-pause", f"env > {home.root}/told"
    )
    wait_for(ready.exists)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: home.facts("pause.requested"))  # two that come before one of them is heard are one
    process.send_signal(signal.SIGINT)
    assert said(process).code == 130
    assert hooks_of(home) == [("pre_round", 1, False, "stopped on request"), ("on_pause", 0, True, "exit 0")]
    assert variables(home.root / "told")["BYDAWN_STATE"] == "paused"
    assert home.facts("round.started") == []


def test_a_last_hook_is_ended_by_the_next_signal_and_the_end_stays(home: Home) -> None:
    ready = home.root / "ready"
    process = home.start_run(home.rounds([DONE]), "--on-complete", f"touch {ready}; sleep 300")
    wait_for(ready.exists)
    process.send_signal(signal.SIGTERM)
    assert said(process).code == 0
    assert home.status()["state"] == "unverified"
    assert hooks_of(home) == [("on_complete", 1, False, "stopped on request")]
    assert agrees(home)


def test_a_worker_that_is_killed_in_a_hook_leaves_nothing_and_the_next_goes_on(home: Home) -> None:
    ready = home.root / "ready"
    hook = f'test -e {ready} || {{ echo "$MY_TOKEN"; touch {ready}; sleep 300; }}'
    process = home.start_run(home.rounds([DONE]), "--post-round", hook, MY_TOKEN=SECRET)
    wait_for(ready.exists)
    os.kill(worker_of(process), signal.SIGKILL)
    process.communicate(timeout=30)
    assert SECRET in (home.folder() / "rounds/0001/hook-post_round.txt").read_text()
    assert home.bydawn("resume", "--plain", MY_TOKEN=SECRET).code == 0
    assert SECRET not in (home.folder() / "rounds/0001/hook-post_round.txt").read_text()
    assert hooks_of(home) == []  # lost with the worker; the round counts once
    assert home.outcomes() == ["ok"]
