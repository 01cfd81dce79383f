"""Where lines go: nothing that a terminal does, or fails to do, reaches the loop."""

import os
import time

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


def test_lines_come_out_in_their_order_and_before_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    screen = Screen(nothing, plain=True)
    for number in range(100):
        screen.line(f"line {number}")
    screen.close()
    assert capfd.readouterr().out.splitlines() == [f"line {number}" for number in range(100)]


def test_a_reader_that_never_reads_costs_lines_and_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stuck:
        monkeypatch.setattr("sys.stdout", stuck)
        screen = Screen(nothing, plain=True)
        started = time.monotonic()
        for _ in range(5000):
            screen.line("x" * 1000)
        assert time.monotonic() - started < 5
        os.close(reading)  # now it fails instead of waiting; the screen goes on without anybody
        screen.close()
