"""Where lines go: nothing that a terminal does, or fails to do, reaches the loop."""

import os
import threading
from itertools import count

import pytest

from bydawn.cli.screen import Screen
from driving import wait_for


def nothing(width: int) -> list[str]:  # noqa: ARG001
    return []


def test_without_a_terminal_a_heartbeat_says_that_it_is_alive(capfd: pytest.CaptureFixture[str]) -> None:
    screen = Screen(lambda _: ["  2 of 3 tasks", "  alive  last output 4 s ago"], plain=True, heartbeat=0.05)
    shown = wait_for(lambda: capfd.readouterr().out)
    screen.close()
    assert shown.startswith("  … 2 of 3 tasks · alive  last output 4 s ago\n")


def test_a_heartbeat_without_words_is_no_line(capfd: pytest.CaptureFixture[str]) -> None:
    asked = count()
    screen = Screen(lambda _: [][: next(asked)], plain=True, heartbeat=0.01)
    wait_for(lambda: next(asked) > 2)
    screen.close()
    assert capfd.readouterr().out == ""


def test_lines_come_out_in_their_order_and_before_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    screen = Screen(nothing, plain=True)
    for number in range(100):
        screen.line(f"line {number}")
    screen.close()
    assert capfd.readouterr().out.splitlines() == [f"line {number}" for number in range(100)]


def fill(screen: Screen) -> None:
    for _ in range(5000):
        screen.line("x" * 1000)


def test_a_reader_that_never_reads_costs_lines_and_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stuck:
        monkeypatch.setattr("sys.stdout", stuck)
        screen = Screen(nothing, plain=True)
        worker = threading.Thread(target=fill, args=(screen,), daemon=True)
        worker.start()
        worker.join(60)
        assert not worker.is_alive(), "it waits for the reader"
        os.close(reading)  # now it fails instead of waiting; the screen goes on without anybody
        screen.close()
