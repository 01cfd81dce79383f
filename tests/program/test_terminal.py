"""What a person sees on a real terminal: rows that stay, a live block below them, the summary last (UX §2.2)."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from driving import DONE, OK, Home, wait_for


class Pane:
    """A terminal of a given size in a tmux server of its own."""

    def __init__(self, home: Home, columns: int) -> None:
        self._server = f"bydawn-{home.root.name}-{id(self)}"
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in home.env.items() if name != "TERM")
        size = ["-x", str(columns), "-y", "40"]
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", *size, "-c", str(home.repo), f"env -i TERM=screen {settings} sh"
        )

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._server, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout

    def type(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> list[str]:
        return self._tmux("capture-pane", "-p").splitlines()

    def history(self) -> list[str]:
        """The screen, and what has left it at the top."""
        return self._tmux("capture-pane", "-p", "-S", "-").splitlines()

    def lines(self) -> list[str]:
        return [line for line in self.screen() if line.strip()]

    def sees(self, *words: str) -> bool:
        screen = "\n".join(self.lines())
        return all(word in screen for word in words)

    def is_ready(self) -> bool:
        """Does the shell wait for a command?"""
        return self.lines()[-1:] in (["#"], ["$"])

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def open_pane(home: Home, tmux: None) -> Iterator[Callable[[int], Pane]]:  # noqa: ARG001 - has to be there
    opened: list[Pane] = []

    def open_one(columns: int) -> Pane:
        opened.append(pane := Pane(home, columns))
        wait_for(pane.is_ready)  # what is typed before that stands above the prompt
        return pane

    yield open_one
    for pane in opened:
        with suppress(AssertionError):  # of a story that failed
            wait_for(pane.is_ready)  # what says its last words may still take a moment to end
        pane.close()


def a_slow_loop(home: Home) -> tuple[str, Callable[[], None]]:
    """A command line whose second round waits until it is let go."""
    home.tasks(3)
    gate, opened = home.gate()
    only_second = {"run": ["sh", "-c", f"test ! -e f1 || {gate['run'][2]}"]}
    write = {"write": {"path": "f{n}", "text": "x"}}
    agent = home.each_task({"activity": "editing f{n}"}, only_second, write)
    return f"clear; bydawn run 'do it' -a {agent} -t TODO.md -k true", opened.touch


def test_rows_stay_and_the_live_block_goes(home: Home, open_pane: Callable[[int], Pane]) -> None:
    pane = open_pane(100)
    command, let_go = a_slow_loop(home)
    pane.type(command, "Enter")
    wait_for(lambda: pane.sees("1 of 3 tasks   round 2, ", "now    task 2 · editing f2 · last output", "too early"))
    # The block is the last thing on the screen, at most four lines; one may look while it is drawn anew. An agent that
    # says nothing of tokens gets no line about them.
    wait_for(lambda: "1 of 3 tasks" in "".join(pane.lines()[-2:-1]))
    let_go()
    wait_for(lambda: pane.sees("✓ Complete: 3 of 3 tasks, 3 rounds", "bydawn show repo"))
    lines = pane.lines()
    assert not [line for line in lines if "last output" in line]
    rows = [line.split() for line in lines if line.split()[0] in ("1", "2", "3")]
    assert [(row[0], row[-1]) for row in rows] == [("1", "1/3"), ("2", "2/3"), ("3", "3/3")]


def test_everything_fits_into_48_columns(home: Home, open_pane: Callable[[int], Pane]) -> None:
    pane = open_pane(48)
    command, let_go = a_slow_loop(home)
    pane.type(command, "Enter")
    wait_for(lambda: pane.sees("1 of 3 tasks   round 2, ", "now    task 2", "alive  last output"))
    let_go()
    wait_for(lambda: pane.sees("Complete: 3 of 3 tasks", "bydawn logs repo"))
    lines = pane.lines()
    rows = [lines[number : number + 2] for number, line in enumerate(lines) if re.match("  [123] ", line)]
    assert [task.split()[1:] for task, _ in rows] == [["task", "1"], ["task", "2"], ["task", "3"]]
    assert [below.split()[-1] for _, below in rows] == ["1/3", "2/3", "3/3"]


def test_ctrl_c_lets_the_round_finish_and_says_so(home: Home, open_pane: Callable[[int], Pane]) -> None:
    pane = open_pane(100)
    command, let_go = a_slow_loop(home)
    pane.type(command, "Enter")
    wait_for(lambda: pane.sees("   round 2, "))
    pane.type("C-c")
    wait_for(lambda: pane.sees("Stopping after round 2", "Ctrl-C again to stop now"))
    let_go()
    wait_for(lambda: pane.sees("‖ Paused: 2 of 3 tasks", "bydawn resume repo"))
    assert home.outcomes() == ["ok", "ok"]


def test_plain_draws_nothing_twice(home: Home, open_pane: Callable[[int], Pane]) -> None:
    pane = open_pane(100)
    agent = home.rounds([OK], [DONE])
    pane.type(f"clear; bydawn run x -a {agent} --plain | cat -v", "Enter")
    wait_for(lambda: pane.sees("Unverified") and pane.is_ready())
    assert not pane.sees("^[")
    pane.type(f"clear; bydawn run x -a {agent} --plain --new", "Enter")
    wait_for(lambda: pane.sees("Unverified", "repo-2") and pane.is_ready())  # until `clear`, the first one is shown
    assert not pane.sees("last output")


def test_an_empty_line_is_not_swallowed_by_the_live_block(home: Home, open_pane: Callable[[int], Pane]) -> None:
    slowly = "; ".join(f"screen.line({text!r}); time.sleep(0.3)" for text in ("first", "", "last"))
    script = home.root / "speaks.py"
    script.write_text(
        "import time\nfrom bydawn.cli.screen import Screen\n"
        f"screen = Screen(lambda _: ['  the block'], plain=False)\n{slowly}\nscreen.close()\nprint('over')\n"
    )
    pane = open_pane(80)
    pane.type(f"clear; {sys.executable} {script}", "Enter")
    wait_for(lambda: "over" in pane.screen())
    shown = pane.screen()
    assert shown[shown.index("first") :][:3] == ["first", "", "last"]


# -- status --watch ----------------------------------------------------------------------------------------------------


def test_a_watched_list_follows_the_loops_and_the_window_and_leaves_no_trace(
    home: Home, open_pane: Callable[[int], Pane]
) -> None:
    for name in ("one", "two", "three"):
        home.run(home.rounds([OK], [DONE]), "--new", "--name", name, "--rounds", "1")
    pane = open_pane(100)
    pane.type("bydawn status --watch", "Enter")
    wait_for(lambda: pane.sees("one ", "two ", "three ", "Next", "Last look", "q leaves"))
    assert "complete" not in "".join(pane.lines())
    home.bydawn("resume", "two", "--rounds", "2")
    wait_for(lambda: pane.sees("~ unverified"))  # without a key
    pane.resize(48, 11)
    wait_for(lambda: pane.sees("… and 2 more loops", "bydawn show", "Last look"))
    assert max(map(len, pane.screen())) <= 48
    pane.resize(100, 40)
    wait_for(lambda: pane.sees("one ", "two ", "three ") and not pane.sees("more loops"))
    pane.type("q")
    wait_for(lambda: not pane.sees("Last look") and pane.is_ready())
    pane.type("echo ba''ck", "Enter")
    wait_for(lambda: pane.sees("echo ba''ck", "\nback"))  # what is typed is shown again


def test_a_list_is_not_watched_in_a_pipe_or_as_json(home: Home) -> None:
    piped, as_json = home.bydawn("status", "--watch"), home.bydawn("status", "--watch", "--json")
    assert (piped.code, piped.out, as_json.code, as_json.out) == (2, "", 2, "")
    assert "--watch needs a terminal" in piped.err
    assert "--watch and --json cannot be combined" in as_json.err
