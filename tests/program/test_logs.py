"""What `logs` shows of an agent that failed: whatever it printed, and why it ended."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bydawn.operations.outputs import last_lines, lines_before
from driving import DONE, HANG, OK, Home, is_error, said, wait_for
from effort import effort

A_FEW_PASSES = 5  # over a megabyte; what was tried first took more than a hundred


def a_program(home: Home, *lines: str, interpreter: str = "/bin/sh") -> str:
    path = home.root / "agent.sh"
    path.write_text("\n".join([f"#!{interpreter}", *lines, ""]))
    path.chmod(0o755)
    return f"cmd:{path}"


def test_a_closed_pipe_is_nobodys_failure(home: Home) -> None:
    home.run(home.rounds([OK]), "--once")
    for words in (["status"], ["show"], ["--help"], ["run", "x", "-a", "demo", "--dry-run", "--new"]):
        reading, writing = os.pipe()
        os.close(reading)
        process = home.start(*words, stdout=writing)
        os.close(writing)
        assert (process.wait(20), process.stderr and process.stderr.read()) == (0, ""), words


def test_two_ways_to_print_contradict_each_other(home: Home) -> None:
    home.run(home.rounds([OK]), "--once")
    refused = home.bydawn("logs", "--json", "--raw")
    assert (refused.code, is_error(refused.err)) == (2, True)


def test_an_agent_that_failed_is_quoted_with_what_it_wrote_on_stderr(home: Home) -> None:
    agent = a_program(home, "echo began", r"printf '\033[31mno key\033[0m\n' >&2", "echo so I end here >&2", "exit 9")
    ended = home.run(agent, "--max-failures", "1")
    assert "bydawn logs repo --round 1" in ended.out
    out = home.bydawn("logs", "repo", "--round", "1").out.splitlines()
    assert out[:3] == ["began", "no key", "so I end here"]
    assert out[3].startswith("  ✗ failed: ")
    assert home.bydawn("logs", "--raw").out.splitlines() == ["began", "no key", "so I end here"]
    assert home.bydawn("logs", "--tail", "1").out.splitlines()[:2] == ["began", "so I end here"]
    rows = [json.loads(line) for line in home.bydawn("logs", "--json").out.splitlines()]
    assert [(row["event"], row["text"]) for row in rows][-1] == ("stderr", "so I end here")


def test_programs_are_told_from_which_line_something_comes_and_when_that_was_printed(home: Home) -> None:
    # The time of a line is when it was read, for which a busy machine may take a while.
    agent = a_program(home, "echo one", r"printf '50%%\r100%%\n'", "sleep 4", "echo three", "exit 9")
    began = datetime.now(UTC)
    home.run(agent, "--max-failures", "1")

    def told(*options: str) -> list[tuple[Any, ...]]:
        rows = [json.loads(line) for line in home.bydawn("logs", "--json", *options).out.splitlines()]
        return [(row["line"], row["text"], row["at"]) for row in rows]

    rows = told()
    assert [row[:2] for row in rows] == [(1, "one"), (2, "100%"), (3, "three")]
    first, second, third = (datetime.fromisoformat(at) for _, _, at in rows)
    assert began <= first + timedelta(milliseconds=1)
    assert first <= second
    assert (third - first).total_seconds() >= 1
    assert [row[:2] for row in told("--tail", "2")] == [(2, "100%"), (3, "three")]
    assert told("-f", "--tail", "1") == told("--tail", "1") == rows[2:]
    (home.folder() / "rounds/0001/stdout.times").unlink()
    assert told() == [(1, "one", None), (2, "100%", None), (3, "three", None)]
    assert told("--tail", "1") == [(3, "three", None)]


def test_secrets_on_stderr_are_not_shown_while_the_round_still_runs(home: Home) -> None:
    agent = a_program(home, "echo key hunter2hunter2 >&2", f"touch {home.root}/there", "sleep 60")
    home.env |= {"MY_TOKEN": "hunter2hunter2"}
    process = home.start_run(agent)
    wait_for((home.root / "there").exists)
    assert home.bydawn("logs").out.splitlines() == ["key [secret]"]
    home.bydawn("stop")
    assert said(process).code == 130


def test_logs_of_a_round_that_went_well_leave_out_stderr(home: Home) -> None:
    home.run(a_program(home, "echo noise >&2", "echo '<promise>TASK_COMPLETE</promise>'"))
    assert home.bydawn("logs").out == "<promise>TASK_COMPLETE</promise>\n"


@pytest.mark.parametrize("interpreter", ["/bin/sh", "/not/there"])
def test_where_there_is_nothing_to_see_that_is_said_and_nothing_is_offered(home: Home, interpreter: str) -> None:
    ended = home.run(a_program(home, "exit 9", interpreter=interpreter), "--max-failures", "1")
    assert ended.code == 7
    assert "bydawn logs" not in ended.out + home.bydawn("show").out
    out = home.bydawn("logs").out
    assert "Round 1 printed nothing." in out
    assert ("exited with 9" if interpreter == "/bin/sh" else "No such file") in out


def test_a_loop_without_any_round_has_no_agent_to_quote(home: Home) -> None:
    home.tasks(1)
    (home.repo / "TODO.md").write_text("- [x] done\n")
    home.run(home.rounds([DONE]), "-t", "TODO.md", "-k", "true")
    assert home.facts("round.started") == []
    assert home.bydawn("logs").out == "  No agent has run yet.\n"
    assert home.bydawn("logs", "--json").out == ""


class Following:
    """`logs -f`, once it has shown these words: one that comes later begins with a later round."""

    def __init__(self, home: Home, words: str) -> None:
        self._shown = home.root / "shown"
        with self._shown.open("w") as file:
            self._process = home.start("logs", "-f", stdout=file)
        wait_for(lambda: words in self._shown.read_text())

    def ended(self) -> str:
        """All that it has shown."""
        assert said(self._process).code == 0
        return self._shown.read_text()


def test_whoever_follows_reads_each_line_once_and_why_a_round_failed(home: Home) -> None:
    gate, opened = home.gate()
    process = home.start_run(
        home.rounds([{"say": "first"}, gate, {"exit": 3}], [{"say": "second"}, HANG]), "-k", "sleep 1"
    )
    home.await_round(1)
    follower = Following(home, "first")
    opened.touch()
    home.await_round(2)
    home.bydawn("stop")
    said(process)
    out = follower.ended().splitlines()
    assert [line for line in out if line in ("first", "second")] == ["first", "second"]
    assert any(line.startswith("  ✗ failed: ") for line in out)


@pytest.mark.parametrize("before", [b"", b"earlier\n"], ids=["alone", "after another"])
def test_the_tail_of_one_endless_line_is_as_quick_as_that_of_a_megabyte(tmp_path: Path, before: bytes) -> None:
    endless, megabyte = tmp_path / "endless", tmp_path / "megabyte"
    for path, size in ((endless, 200_000_000), (megabyte, 1_000_000)):
        path.write_bytes(before)
        os.truncate(path, size)  # a hole, which takes no room
        with path.open("ab") as file:
            file.write(b"\nthe end\n")
    assert last_lines(megabyte, 2)[-1] == b"the end"
    assert len(last_lines(megabyte, 2)[0]) == 1_000_000 - len(before)
    assert last_lines(endless, 20) == [b"[a line of more than 8 MB was left out here]", b"the end"]
    assert effort(lambda: lines_before(endless, 20)) < A_FEW_PASSES


def test_a_tail_says_that_a_line_was_left_out(home: Home) -> None:
    home.run(home.rounds([OK]), "--once")
    with (home.folder() / "rounds/0001/stdout").open("wb") as file:
        file.truncate(200_000_000)
    assert home.bydawn("logs", "--raw", "--tail", "5").out == "[a line of more than 8 MB was left out here]\n"


def test_whoever_follows_is_told_where_a_round_begins_how_it_ended_and_what_the_checks_said(home: Home) -> None:
    home.tasks(2)
    gate, opened = home.gate()
    steps = [{"say": "on it"}, gate, {"write": {"path": "f{n}", "text": "x"}}]
    process = home.start_run(home.each_task(*steps), "-t", "TODO.md", "-k", "test -e f2 || { echo no f2; exit 4; }")
    home.await_round(1)
    follower = Following(home, "on it")
    opened.touch()
    assert said(process).code == 0
    out = re.sub(r"\d\d:\d\d:\d\d|[0-9.]+ s", "T", follower.ended())
    check = "test -e f2 || { echo no f2; exit 4; }"
    assert [line for line in out.splitlines() if "· ran" not in line] == [
        *("── round 1 · T · task 1", "on it", "  ended T after T; files +1 ~1", f"  ✗ {check}: exit 4: no f2"),
        *("── round 2 · T · task 2", "on it", "  ended T after T; files +1 ~1", f"  ✓ {check}: pass"),
    ]
