"""Settings that hold a secret (FAULTS 3.2): one private file of the loop has the values, and nothing else does."""

import json
import stat

import pytest

from driving import Home, Step, said, wait_for

TOKEN = "canaryHook41d7e0c9"  # noqa: S105 - planted
AWAY = f"http://127.0.0.1:9/{TOKEN}"
SAYS: Step = {"run": ["sh", "-c", "echo token $MY_TOKEN; env > seen-$BYDAWN_ROUND.txt"]}
STEPS = [SAYS, {"result": {"text": "working on it"}}]
CHECK = ("-k", "env > check.txt; false", "--pre-round", "env > hook.txt")
GIVEN = ("--agent-env", f"MY_TOKEN={TOKEN}", "--agent-env", "MODE=night=1")


def holders(home: Home, text: str) -> list[str]:
    """The files of the loop that have this text; `git/` has the work tree, exactly."""
    paths = [path for path in home.folder().rglob("*") if path.is_file() and not path.is_symlink()]
    paths = [path for path in paths if "git" not in path.relative_to(home.folder()).parts]
    return [path.name for path in paths if text.encode() in path.read_bytes()]


def test_the_agent_alone_gets_its_variables_and_only_a_private_file_has_their_values(home: Home) -> None:
    """FAULTS 63; after `resume`, too, which is not told them again."""
    ended = home.run(home.rounds(STEPS), *GIVEN, *CHECK, "-n", "1")
    assert ended.code == 4, ended
    again = home.bydawn("resume", "--rounds", "2")
    assert again.code == 4, again
    for name in ("seen-1.txt", "seen-2.txt"):
        assert {f"MY_TOKEN={TOKEN}", "MODE=night=1"} <= {*(home.repo / name).read_text().splitlines()}
    for name in ("hook.txt", "check.txt"):
        assert {"MODE", "MY_TOKEN"}.isdisjoint(
            line.split("=")[0] for line in (home.repo / name).read_text().splitlines()
        )
    assert holders(home, TOKEN) == ["secrets.json"]
    assert stat.S_IMODE((home.folder() / "secrets.json").stat().st_mode) == 0o600
    loop = json.loads((home.folder() / "loop.json").read_text())
    assert loop["agent_env"] == ["MY_TOKEN=[secret]", "MODE=[secret]"]
    looks = [home.bydawn(*words) for words in (["show", "--json"], ["logs", "--raw"], ["events", "--json"])]
    assert TOKEN not in "".join(each.out + each.err for each in (ended, again, *looks))


def test_run_again_goes_on_only_if_the_secrets_are_the_same(home: Home) -> None:
    agent = home.rounds(STEPS, [{"exit": 1}])
    assert home.run(agent, *GIVEN, "--max-failures", "1").code == 7
    other = home.run(agent, "--agent-env", "MY_TOKEN=another", "--max-failures", "1")
    assert (other.code, "these differ: agent_env" in other.err, TOKEN in other.err) == (2, True, False)
    assert home.run(agent, *GIVEN, "--max-failures", "1").code == 7
    assert len(home.facts("run.started")) == 2


def test_a_loop_whose_secrets_are_gone_says_so_before_an_agent_starts_without_them(home: Home) -> None:
    assert home.run(home.rounds(STEPS), *GIVEN, "-n", "1").code == 4
    (home.folder() / "secrets.json").unlink()
    refused = home.bydawn("resume", "--rounds", "2")
    assert (refused.code, "the secrets of the loop repo are missing" in refused.err) == (2, True)
    assert len(home.rounds_ended()) == 1


def test_a_loop_without_secrets_has_no_file_for_them(home: Home) -> None:
    assert home.run(home.rounds(STEPS), "-n", "1").code == 4
    assert not (home.folder() / "secrets.json").exists()


def test_a_secret_in_any_other_setting_is_refused_as_before(home: Home) -> None:
    refused = home.run(home.rounds(STEPS), *GIVEN, "--protect", TOKEN)
    assert (refused.code, "contains a secret" in refused.err, TOKEN in refused.err) == (2, True, False)
    assert not home.has_loop()


WRONG = [f"no{TOKEN}", f"={TOKEN}", f"1A={TOKEN}", f"A B={TOKEN}", f"BYDAWN_COOKIE={TOKEN}"]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_variable_that_is_none_is_refused_without_showing_its_value(home: Home, wrong: str) -> None:
    (home.repo / "bydawn.toml").write_text(f'agent_env = ["{wrong}"]\n')
    for ended in (home.run("demo", "--agent-env", wrong, "--no-project"), home.run("demo")):
        assert (ended.code, TOKEN in ended.err) == (2, False), ended


def test_variables_from_a_repository_need_trust(home: Home) -> None:
    """LD_PRELOAD would run anything."""
    (home.repo / "bydawn.toml").write_text('agent_env = ["LD_PRELOAD=./evil.so"]\n')
    refused = home.run(home.rounds(STEPS), "-n", "1")
    assert (refused.code, "agent_env = LD_PRELOAD=./evil.so" in refused.err) == (2, True)
    assert not home.has_loop()


@pytest.mark.installed
@pytest.mark.parametrize("detached", [(), ("-d",)], ids=["foreground", "detached"])
def test_the_list_of_processes_does_not_show_what_was_typed_as_a_secret(home: Home, detached: tuple[str, ...]) -> None:
    """Every user of the machine can read it, all night long."""
    wait, gate = home.gate()
    typed = ["--agent-env", f"MY_TOKEN={TOKEN}", f"--agent-env=OTHER={TOKEN}", f"--notify={AWAY}"]
    night = home.start_run(home.rounds([wait, SAYS, *STEPS]), "-n", "1", "--name", "kept", *typed, *detached)
    home.await_round(1, "kept")
    lines = home.command_lines()
    ours = [line for line in lines if b"kept" in line]
    assert len(ours) >= 2, lines  # the loop's process and its parent
    assert not any(TOKEN.encode() in word for line in lines for word in line)
    assert all({b"--agent-env", b"-n", b"--notify=" + b"*" * len(AWAY)} <= {*line} for line in ours), ours
    gate.touch()
    said(night)
    wait_for(lambda: home.status("kept")["state"] == "limit" and not home.alive())
    assert f"MY_TOKEN={TOKEN}" in (home.repo / "seen-1.txt").read_text().splitlines()
