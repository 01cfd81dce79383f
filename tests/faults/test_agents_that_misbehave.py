"""Agents that hang, flood, fork, lie, die or destroy: each round ends as FAULTS 2.2 says, and nothing is left alive."""

import base64
import json
from pathlib import Path

import pytest

from bydawn.store.registry import Registry
from driving import DONE, HANG, OK, Home, Step, is_alive, is_error, said, tree_of, wait_for, worker_of

AGES = 3600.125  # seconds; such a `sleep` can only be one of ours
ONE_FAILURE = ("--max-failures", "1")
MEGABYTE = 1 << 20


# -- what stays behind: FAULTS 45-48, 50 -------------------------------------------------------------------------------


def test_a_process_that_hides_in_every_way_does_not_survive_the_round_and_is_named(home: Home) -> None:
    pid = home.root / "pid"
    hiding = {"setsid": True, "wipe_env": True, "ignore_term": True, "hold_stdout": True, "write_pid": str(pid)}
    ended = home.run(home.rounds([{"double_fork": {"seconds": AGES, **hiding}}, DONE]))
    assert ended.code == 0
    assert not is_alive(int(pid.read_text()))
    [round_] = home.rounds_ended()
    assert round_["leftovers"] == [f"sleep {AGES} (pid {pid.read_text()})"]
    assert round_["seconds"] < 60, "the round ends with the agent, not with the last one who holds its output"


def test_an_agent_that_ignores_every_request_to_stop_is_killed(home: Home) -> None:
    stubborn: Step = {"ignore": ["INT", "TERM"]}
    # Before it ignores them it has to start, for which a busy machine may take a while.
    ended = home.run(home.rounds([stubborn, {"say": "never"}, HANG]), "--round-timeout", "3s", *ONE_FAILURE)
    assert ended.code == 7
    assert the_round(home) == ("hung", "reached the round's time limit")
    assert home.rounds_ended()[0]["signal"] == 9


def test_an_agent_that_froze_is_woken_to_be_stopped(home: Home) -> None:
    ended = home.run(home.rounds([{"freeze": None}, DONE]), "--silence-timeout", "1s", *ONE_FAILURE)
    assert ended.code == 7
    assert the_round(home) == ("hung", "printed nothing for too long")
    [round_] = home.rounds_ended()
    assert round_["signal"] != 9
    assert round_["seconds"] < 10, "asleep, it would have to be killed, 10 s after the first request"


def test_an_agent_that_closes_its_output_and_stays_is_waited_for(home: Home) -> None:
    late: Step = {"write": {"path": "late.txt", "text": "x"}}
    assert home.run(home.rounds([DONE, {"close": ["stdout", "stderr"]}, {"sleep": 0.7}, late])).code == 0
    [round_] = home.rounds_ended()
    assert round_["changes"]["paths"] == ["late.txt"]


# -- what is not said: FAULTS 40-44 ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("strace")
def test_an_agent_that_never_says_a_first_word_is_stopped_early(home: Home) -> None:
    # The player says hello at once, so its first write is held up from outside.
    stdout = Registry(home.states).home(home.repo) / "repo/rounds/0001/stdout"
    hold = ["-e", "trace=write", "-e", "inject=write:delay_enter=6000000", "-P", str(stdout)]
    limits = ("--first-byte-timeout", "0.5s", *ONE_FAILURE)
    ended = home.run(home.rounds([HANG]), *limits, before=["strace", "-f", "-qq", "-o", "/dev/null", *hold])
    assert ended.code == 7
    assert the_round(home) == ("hung", "printed nothing at all")


def test_an_agent_that_falls_silent_is_stopped(home: Home) -> None:
    ended = home.run(home.rounds([{"say": "let me think"}, HANG]), "--silence-timeout", "1s", *ONE_FAILURE)
    assert ended.code == 7
    assert the_round(home) == ("hung", "printed nothing for too long")


def test_an_agent_that_computes_in_silence_is_left_alone(home: Home) -> None:
    assert home.run(home.rounds([{"spin": 5}, DONE]), "--silence-timeout", "2s", *ONE_FAILURE).code == 0


def test_an_agent_that_has_said_its_last_word_and_never_exits_has_done_its_work(home: Home) -> None:
    ended = home.run(home.rounds([DONE, HANG]), "--linger-timeout", "0.5s")
    assert ended.code == 0
    assert home.outcomes() == ["ok"]


# -- what is said: FAULTS 52-57, 62 ------------------------------------------------------------------------------------


def test_an_agent_that_floods_is_stopped_at_the_limit(home: Home) -> None:
    flood: Step = {"flood": {"bytes": 64 * MEGABYTE, "lines": True}}
    ended = home.run(home.rounds([flood, HANG]), "--output-limit", "8MB", *ONE_FAILURE)
    assert ended.code == 7
    assert the_round(home) == ("failed", "wrote more than the output limit")
    (home.folder() / "rounds/0001/stdout").unlink()


@pytest.mark.installed
def test_one_line_of_500_megabytes_takes_no_memory(home: Home) -> None:
    small = highest_memory(home, "small", 1000)
    great = highest_memory(home, "great", 500_000_000)
    assert great - small < 20_000, "kilobytes"


def highest_memory(home: Home, name: str, size: int) -> int:
    """The most that the worker ever held, in kilobytes, once it has read a line of this size."""
    wait, gate = home.gate(name)
    running = home.start_run(home.rounds([{"flood": {"bytes": size}}, wait, DONE]), "--name", name, "--new")
    home.await_round(1, name)
    stdout, worker = home.folder(name) / "rounds/0001/stdout", worker_of(running)
    wait_for(lambda: size < stdout.stat().st_size == position(worker, stdout), 60)
    [row] = [row for row in Path(f"/proc/{worker}/status").read_text().splitlines() if row.startswith("VmHWM")]
    gate.touch()
    assert said(running).code == 0
    stdout.unlink()
    return int(row.split()[1])


def position(pid: int, file: Path) -> int:
    """How far a process has read a file; -1 if it has not opened it yet."""
    found = [fd for fd in Path(f"/proc/{pid}/fd").iterdir() if str(fd.resolve()) == str(file)]
    return int(Path(f"/proc/{pid}/fdinfo/{found[0].name}").read_text().split()[1]) if found else -1


def test_noise_of_every_kind_passes_by_and_stays_as_it_was(home: Home) -> None:
    raw = b"\xff\xfe\x00\x1b]52;c;aGk=\x07\xc3\r\xed\xa0\x80\n"
    steps: list[Step] = [{"noise": None}, {"bytes": base64.b64encode(raw).decode()}, {"bytes": "4oIK"}, DONE]
    assert home.run(home.rounds(steps)).code == 0
    assert raw in (home.folder() / "rounds/0001/stdout").read_bytes()
    for command in (("logs",), ("show",), ("events",)):
        shown = home.bydawn(*command)
        assert shown.code == 0
        assert not set("\x1b\x00\x07") & set(shown.out)


def test_a_prompt_of_any_length_reaches_the_agent(home: Home) -> None:
    (home.root / "goal.md").write_text("x" * 300_000 + " the end")
    keep = home.root / "keep"
    keep.write_text("#!/bin/sh\ncat > prompt.txt\nread nothing || echo '<promise>TASK_COMPLETE</promise>'\n")
    keep.chmod(0o755)
    ended = home.bydawn("run", f"@{home.root}/goal.md", "-a", f"cmd:{keep}", "--plain")
    assert ended.code == 0
    assert "x" * 300_000 + " the end" in (home.repo / "prompt.txt").read_text()


# -- what cannot be started: FAULTS 39 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["/no/such/program", "no-such-program", "README.md", "./README.md", "."])
def test_a_program_that_cannot_be_started_is_refused_before_anything_is_written(home: Home, program: str) -> None:
    before = tree_of(home.root)
    ended = home.run(f"cmd:{program}")
    assert ended.code == 7
    assert is_error(ended.err)
    assert tree_of(home.root) == before


def test_a_program_for_another_machine_fails_without_counting_as_a_round(home: Home) -> None:
    alien = home.root / "alien"
    alien.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))
    alien.chmod(0o755)
    ended = home.run(f"cmd:{alien}")
    assert ended.code == 7
    assert home.outcomes() == ["config"]
    assert "Exec format error" in home.status()["reason"]


# -- what is destroyed: FAULTS 64-67, 79, 85 ---------------------------------------------------------------------------


def test_an_agent_that_kills_its_worker_ends_the_run_and_not_the_loop(home: Home) -> None:
    agent = home.rounds([{"double_fork": {"seconds": AGES}}, {"kill_parent": None}, HANG], [DONE])
    ended = home.run(agent)
    assert ended.code == 1
    assert is_error(ended.err)
    assert home.alive() == []
    assert home.status()["state"] == "crashed"
    assert home.run(agent).code == 0
    assert home.outcomes() == ["interrupted", "ok"]


def test_a_link_to_the_state_that_an_agent_deleted_is_restored(home: Home) -> None:
    assert home.run(home.rounds([{"rm": ".bydawn"}, OK], [DONE])).code == 0
    assert (home.repo / ".bydawn/loops/repo").resolve() == home.folder().resolve()
    assert (home.repo / ".bydawn/.gitignore").read_text() == "*\n"


def test_a_workspace_that_was_removed_blocks_the_loop(home: Home) -> None:
    ended = home.run(home.rounds([{"rm": str(home.repo)}, OK]))
    assert ended.code == 3, ended
    home.repo.mkdir()
    assert home.status()["state"] == "blocked"
    assert str(home.repo) in home.status()["reason"]
    assert home.outcomes() == ["ok"]


def test_an_agent_may_look_at_loops_but_not_start_or_mend_them(home: Home) -> None:
    commands = ["run again -a demo", "resume", "demo", "doctor --repair repo", "status", "show", "why", "doctor"]
    script = "".join(
        f"bydawn {command} > /dev/null 2> err; echo '{command}': $? $(cat err) >> said\n" for command in commands
    )
    assert home.run(home.rounds([{"run": ["sh", "-c", script]}, DONE])).code == 0
    answers = dict(line.split(": ", 1) for line in (home.repo / "said").read_text().splitlines())
    assert all(answers[command].startswith("2 error:") for command in commands[:4]), answers
    assert all("from inside a round" in answers[command] for command in commands[:4]), answers
    assert all(answers[command].startswith("0") for command in commands[4:]), answers
    assert len(json.loads(home.bydawn("status", "--json").out)["loops"]) == 1


# -- checks that misbehave: FAULTS 72 ----------------------------------------------------------------------------------


def test_a_check_that_hangs_and_will_not_stop_is_killed_and_has_failed(home: Home) -> None:
    check = "trap '' INT TERM; while :; do sleep 1; done"
    ended = home.run(home.rounds([OK]), "-k", check, "--check-timeout", "0.5s", "--once")
    assert ended.code == 4
    [verdict] = home.facts("checks.ended")[0]["data"]["verdicts"]
    assert (verdict["passed"], verdict["timed_out"]) == (False, True)


def test_what_a_check_leaves_behind_does_not_survive_it(home: Home) -> None:
    check = f"setsid env -i sleep {AGES} & echo $! > {home.root}/pid; head -c 3000000 /dev/zero; exit 0"
    assert home.run(home.rounds([DONE]), "-k", check).code == 0
    assert not is_alive(int((home.root / "pid").read_text()))


def the_round(home: Home) -> tuple[str, str]:
    """How the only round ended."""
    [round_] = home.rounds_ended()
    return round_["outcome"], round_["detail"]
