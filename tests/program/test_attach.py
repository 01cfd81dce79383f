"""A loop that runs elsewhere, watched in a terminal: what is shown, and that leaving does not touch the loop."""

from pathlib import Path

import pytest

from bydawn.cli import attach
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from core.facts_made import a_round, numbered, run_started
from driving import DONE, OK, Home, said, wait_for
from program.terminal_driver import Terminal


def test_it_shows_what_has_been_and_what_comes_and_ends_with_the_loop(home: Home) -> None:
    gate, opened = home.gate()
    running = home.start_run(home.rounds([OK], [{"say": "half way there"}, gate, DONE]))
    home.await_round(2)
    window = Terminal(home, "attach", TERM="xterm")
    window.see("half way there")  # what the agent does now
    assert "round 2" in window.text
    assert "Ctrl-C leave, as with q; the loop goes on" in window.text
    window.type("q")
    left = window.end()
    assert left.code == 0
    assert "repo goes on. Watch it again: bydawn attach repo" in left.text
    assert running.poll() is None
    again = Terminal(home, "attach", "repo")
    again.see("no change")  # the row of round 1, from before
    opened.touch()
    ended = again.end()
    assert ended.code == 0
    assert "Unverified: 2 rounds" in ended.text
    assert "Watch it again" not in ended.text
    assert said(running).code == 0


@pytest.mark.installed
def test_ctrl_c_leaves_a_loop_in_the_background_alone(home: Home) -> None:
    gate, opened = home.gate()
    home.run(home.rounds([{"say": "half way there"}, gate, DONE]), "-d")
    window = Terminal(home, "attach", TERM="xterm")
    window.see("half way there")
    window.type("\x03")
    assert window.end().code == 0
    assert home.facts("pause.requested") == []
    opened.touch()
    wait_for(lambda: home.status()["state"] == "unverified")
    over = home.bydawn("attach")
    assert (over.code, over.out) == (2, "")
    assert "repo is unverified" in over.err


def test_of_a_long_output_only_whole_lines_near_its_end_are_read(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    assert attach._new_lines(path, 0) == ([], 0)
    path.write_bytes(b"first\nhalf")
    assert attach._new_lines(path, 0) == ([b"first"], 6)
    path.write_bytes(b"first\n" + b"x" * 99 + b"\n" + (b"y" * 99 + b"\n") * 1000)
    lines, end = attach._new_lines(path, 6)
    assert {*lines} == {b"y" * 99}
    assert end == path.stat().st_size


def test_of_a_long_run_its_start_and_its_last_rounds_are_shown() -> None:
    facts = [run_started(), *(fact for number in range(1, 81) for fact in a_round(number))]
    state, run = LoopState(), []
    for record in numbered(facts):
        state = after(state, record)
        run.append((record.fact, state))
    shown = [fact for fact, _ in attach._recent(run)]
    assert shown[0] == facts[0]
    assert shown[1:] == [fact for number in range(31, 81) for fact in a_round(number)]
    assert attach._recent(run[:50]) == run[:50]
