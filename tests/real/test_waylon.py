"""The acceptance criteria of waylon-smithers: the installed command, the real Codex, a scripted model.

The examples are those of its document, pasted as they stand there.
"""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from driving import Home, Said, kill_both, said, wait_for
from program.terminal_driver import Terminal
from real.model_server import Answer, Call, ModelServer, Request

BASIC = r"""
waylon-smithers \
  "Go through TODO.md step-by-step. Ensure tests pass. Output <promise>DONE</promise> only when complete." \
  --completion-promise DONE \
  --max-iterations 50 \
  --todo-file TODO.md
"""
RESUME = "waylon-smithers resume --loop-id repo-2026-01-06T21-10-00"
LOW_FRICTION = r"""
waylon-smithers \
  "Fix failing tests until green. Output <promise>DONE</promise> when all tests pass." \
  --completion-promise DONE \
  --max-iterations 25 \
  --full-auto
"""

ID = RESUME.split()[-1]
LOOP = ("Make it whole.", "--completion-promise", "DONE", "--loop-id", ID)
FULL_AUTO = (*LOOP, "--full-auto")
CHECKED = (*FULL_AUTO, "--todo-file", "TODO.md")

DONE = Answer(text="All of it is there. <promise>DONE</promise>")
NEVER = Answer(text="Nobody asks for this.")
# Codex waits for it as long as it ever does, and does not ask on behind our back.
HANGS = Answer(calls=(Call("exec_command", {"cmd": "touch began; sleep 60", "yield_time_ms": 30_000}),))
TICKS = Answer(sh=r"sed -i '0,/\[ \]/s//[x]/' TODO.md")
PATCHES = Answer(sh="apply_patch <<'END'\n*** Begin Patch\n*** Add File: fix.txt\n+fixed\n*** End Patch\nEND")


class Smithers(Home):
    """A home in which `waylon-smithers` is called; `$0` of these shells is the `bydawn` beside it."""

    def start(self, *arguments: str, before: Iterable[str] = (), **options: Any) -> "subprocess.Popen[str]":
        return super().start(*arguments, before=[*before, "sh", "-c", 'exec waylon-smithers "$@"'], **options)

    def call(self, *arguments: str) -> Said:
        return said(self.start(*arguments))

    def paste(self, text: str) -> Said:
        """What a person copied, in their shell."""
        return said(super().start(before=["sh", "-c", text]))

    def artifact(self, name: str, loop: str = ID) -> str:
        return (self.loops / loop / name).read_text()

    def state(self, loop: str = ID) -> dict[str, Any]:
        return dict(json.loads((self.loops / f"{loop}.json").read_text()))

    def summary(self, loop: str = ID) -> dict[str, Any]:
        return dict(json.loads(self.artifact("summary.json", loop)))

    @property
    def loops(self) -> Path:
        return self.repo / ".codex/waylon-smithers/loops"

    @property
    def only_loop(self) -> str:
        [state] = self.loops.glob("*.json")
        return state.stem


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Smithers]:
    """As everywhere: nothing may be alive one second after the story ends."""
    home = Smithers(tmp_path.resolve())
    yield home
    assert home.leave() == []


@pytest.fixture
def smithers(home: Smithers, codex_env: dict[str, str]) -> Smithers:
    home.env = codex_env
    return home


def sessions(model: ModelServer) -> list[str]:
    """The conversation that each request belongs to, as Codex itself tells the model."""
    return [request.body["prompt_cache_key"] for request in model.asked]


def prompts(model: ModelServer) -> list[str]:
    """The last thing that each request was asked by us."""
    asked = [[item for item in request.body["input"] if item.get("role") == "user"] for request in model.asked]
    return [items[-1]["content"][0]["text"] for items in asked]


def texts(*replies: str) -> list[Answer]:
    return [Answer(text=reply) for reply in replies]


# -- one session -------------------------------------------------------------------------------------------------------


def test_all_iterations_are_one_conversation(smithers: Smithers, model: ModelServer) -> None:
    """W-001, W-002, W-009, W-050, W-110."""
    replies = ["One.", "Two.", "Three."]
    model.play([*texts(*replies), DONE])
    assert smithers.call(*LOOP).code == 0
    talks = [request.body["input"] for request in model.asked]
    assert len(talks) == 4
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(talks)), "each knows all before it"
    assert {*sessions(model)} == {smithers.state()["codex"]["session_id"]}
    first, *others = prompts(model)
    assert LOOP[0] in first
    assert [words.partition(". ")[0] for words in others] == [
        f"Go on with the Smithers loop {ID}: iteration {number} of at most 30" for number in (2, 3, 4)
    ]
    assert [smithers.artifact(f"last_message_iter_{number}.txt") for number in (1, 2, 3)] == replies
    events = [smithers.artifact(f"events_iter_{number}.jsonl") for number in (1, 2, 3, 4)]
    assert [json.loads(stream.splitlines()[0])["thread_id"] for stream in events] == sessions(model)


# -- the promise -------------------------------------------------------------------------------------------------------


def test_only_a_promise_that_is_meant_completes_the_loop_and_at_once(smithers: Smithers, model: ModelServer) -> None:
    """W-053, W-101, W-111."""
    tag = "<promise>DONE</promise>"
    mentions = [
        f"I cannot output {tag} yet",
        f"The rule says:\n> {tag}",
        f"```\n{tag}\n```",
        f"I will end with `{tag}`",
    ]
    model.play([*texts(*mentions), DONE, NEVER])
    assert smithers.call(*LOOP).code == 0
    assert model.left == [NEVER]
    state, summary = smithers.state(), smithers.summary()
    assert [row["detected_promise"] for row in summary["iterations"]] == [False] * 4 + [True]
    assert [row["promise_mentioned"] for row in summary["iterations"]] == [True] * 4 + [False]
    assert summary["status"] == "completed"
    assert (state["status"], state["iteration"], state["last_result"]["detected_promise"]) == ("completed", 5, True)


# -- the cap -----------------------------------------------------------------------------------------------------------


def test_the_cap_stops_the_loop_and_the_summary_says_how_to_go_on(smithers: Smithers, model: ModelServer) -> None:
    """W-041, W-054, W-112."""
    model.play([*texts("One.", "Two."), DONE])
    ended = smithers.call(*FULL_AUTO, "--max-iterations", "2")
    assert (ended.code, smithers.state()["status"]) == (4, "stopped_max_iterations")
    assert model.left == [DONE]
    higher, otherwise = smithers.summary()["what_to_do_next"]
    assert otherwise == "or make the prompt smaller or clearer, or add tests that say when it is done"
    assert otherwise in ended.out
    assert smithers.paste(higher).code == 0
    assert (smithers.state()["status"], smithers.state()["iteration"]) == ("completed", 3)
    assert {*sessions(model)} == {smithers.state()["codex"]["session_id"]}


# -- two at once -------------------------------------------------------------------------------------------------------


def test_two_loops_at_once_keep_apart(smithers: Smithers, model: ModelServer) -> None:
    """W-008, W-057, W-113."""
    names, both = ("door", "roof"), Barrier(2, timeout=30)

    def answer(request: Request) -> Answer:
        both.wait()  # so that neither has its answer before the other has asked
        name = next(name for name in names if f"Loop: {name}" in request.text)
        return DONE if "iteration 2 of" in request.text else Answer(text=f"I am at the {name}.")

    model.play(answer)
    running = [smithers.start(f"Mend the {name}.", *LOOP[1:3], "--loop-id", name) for name in names]
    assert [said(process).code for process in running] == [0, 0]
    states = [smithers.state(name) for name in names]
    assert [(state["loop_id"], state["prompt"]) for state in states] == [(name, f"Mend the {name}.") for name in names]
    assert [(state["status"], state["iteration"]) for state in states] == [("completed", 2)] * 2
    assert [smithers.artifact("last_message_iter_1.txt", name) for name in names] == [
        "I am at the door.",
        "I am at the roof.",
    ]
    own = [state["codex"]["session_id"] for state in states]
    assert own[0] != own[1]
    assert sorted(sessions(model)) == sorted(own * 2)


# -- HARD STOP ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def planned(smithers: Smithers, model: ModelServer) -> Smithers:
    """Two tasks, and between them a line at which a person must look."""
    (smithers.repo / "TODO.md").write_text("- [ ] one\n\n## HARD STOP: look at the design\n\n- [ ] two\n")
    model.play([TICKS, Answer(text="One is done."), TICKS, DONE])
    return smithers


def test_a_hard_stop_waits_for_somebody_who_goes_on_in_the_same_session(planned: Smithers, model: ModelServer) -> None:
    """W-014, W-058, W-114; without a terminal."""
    ended = planned.call(*CHECKED)
    assert ended.code == 5
    assert RESUME in ended.out
    state = planned.state()
    assert (state["status"], state["todo"]["paused_for_hard_stop"], state["iteration"]) == ("paused_hard_stop", True, 1)
    assert "- [ ] two" in (planned.repo / "TODO.md").read_text()
    assert planned.paste(RESUME).code == 0
    state = planned.state()
    assert (state["status"], state["todo"]["paused_for_hard_stop"], state["iteration"]) == ("completed", False, 2)
    assert "- [x] two" in (planned.repo / "TODO.md").read_text()
    assert {*sessions(model)} == {state["codex"]["session_id"]}


@pytest.mark.parametrize(("answer", "code", "status"), [("y\n", 0, "completed"), ("\n", 5, "paused_hard_stop")])
def test_somebody_at_the_terminal_is_asked(
    planned: Smithers, model: ModelServer, answer: str, code: int, status: str
) -> None:
    """W-058, W-114."""
    terminal = Terminal(planned, *CHECKED)
    terminal.see("[y/N]")
    assert planned.state()["status"] == "paused_hard_stop"
    terminal.type(answer)
    assert terminal.end().code == code
    assert planned.state()["status"] == status
    assert {*sessions(model)} == {planned.state()["codex"]["session_id"]}


def test_nobody_is_asked_where_a_hard_stop_is_the_end(planned: Smithers) -> None:
    """W-038, W-058."""
    shown = Terminal(planned, *CHECKED, "--hard-stop-mode", "exit").end()
    assert (shown.code, "[y/N]" in shown.text) == (5, False)
    assert planned.state()["status"] == "paused_hard_stop"


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


def in_the_middle_of(iteration: int, smithers: Smithers, model: ModelServer) -> None:
    """Wait until Codex is busy in this iteration; the next answer will be the promise."""
    wait_for((smithers.repo / "began").exists, seconds=30)
    events = smithers.folder(ID) / f"rounds/{iteration:04}/stdout"
    wait_for(lambda: b"thread.started" in events.read_bytes())
    assert model.left == [DONE]
    assert (smithers.state()["status"], smithers.state()["iteration"]) == ("running", iteration)


def goes_on_with(session: str, iteration: int, smithers: Smithers, model: ModelServer) -> None:
    """The iteration that was cut short is done again, and the promise that it gives then completes the loop."""
    assert smithers.paste(RESUME).code == 0
    state = smithers.state()
    assert (state["status"], state["iteration"], state["codex"]["session_id"]) == ("completed", iteration, session)
    assert sessions(model) == [session] * (iteration + 1)
    outcomes = [(row["iteration"], row["outcome"]) for row in smithers.summary()["iterations"]]
    before = [(number, "ok") for number in range(1, iteration)]
    assert outcomes == [*before, (iteration, "interrupted"), (iteration, "ok")]


@pytest.mark.parametrize("iteration", [1, 3])
def test_an_interrupted_loop_keeps_its_session_and_goes_on_with_it(
    smithers: Smithers, model: ModelServer, iteration: int
) -> None:
    """W-006, W-059, W-115."""
    model.play([*texts(*["On it."] * (iteration - 1)), HANGS, DONE])
    running = smithers.start(*FULL_AUTO)
    in_the_middle_of(iteration, smithers, model)
    os.kill(running.pid, signal.SIGINT)
    assert said(running).code == 130
    state = smithers.state()
    assert (state["status"], state["iteration"]) == ("paused_user_interrupt", iteration)
    assert state["codex"]["session_id"] == sessions(model)[0]
    goes_on_with(state["codex"]["session_id"], iteration, smithers, model)


def test_ctrl_c_in_a_terminal_does_the_same(smithers: Smithers, model: ModelServer) -> None:
    """W-059, W-115."""
    model.play([*texts("On it."), HANGS, DONE])
    terminal = Terminal(smithers, *FULL_AUTO)
    in_the_middle_of(2, smithers, model)
    terminal.type("\x03")
    assert terminal.end().code == 130
    state = smithers.state()
    assert (state["status"], state["iteration"]) == ("paused_user_interrupt", 2)
    goes_on_with(state["codex"]["session_id"], 2, smithers, model)


# -- death -------------------------------------------------------------------------------------------------------------


def kill_all_at_once(running: "subprocess.Popen[str]") -> None:
    """As if the machine had lost its power: neither of the two sees the other's end. Codex outlives them."""
    kill_both(running.pid)
    running.wait(10)


@pytest.mark.parametrize("iteration", [1, 3])
def test_a_killed_loop_goes_on_in_its_session_where_it_was(
    smithers: Smithers, model: ModelServer, iteration: int
) -> None:
    """W-006, W-101."""
    model.play([*texts(*["On it."] * (iteration - 1)), HANGS, DONE])
    running = smithers.start(*FULL_AUTO)
    in_the_middle_of(iteration, smithers, model)
    kill_all_at_once(running)
    assert smithers.alive(), "Codex has not noticed"
    shown = json.loads(smithers.call("status", "--loop-id", ID, "--json").out)
    assert (shown["status"], shown["iteration"]) == ("crashed", iteration)
    goes_on_with(sessions(model)[0], iteration, smithers, model)


# -- the examples ------------------------------------------------------------------------------------------------------


def test_the_basic_example_may_only_read_and_says_what_would_help(smithers: Smithers, model: ModelServer) -> None:
    """W-014, W-082, W-090."""
    smithers.tasks(2)
    model.play([TICKS, PATCHES, Answer(text="## BLOCKED\n\nI cannot write here.\n")])
    ended = smithers.paste(BASIC)
    assert ended.code == 3
    assert "--full-auto" in ended.out
    state = smithers.state(smithers.only_loop)
    assert (state["status"], state["iteration"]) == ("blocked", 1)
    assert (state["codex"]["sandbox"], state["codex"]["approval"]) == ("read-only", "on-request")
    told = [item["output"] for item in model.asked[-1].body["input"] if item["type"] == "function_call_output"]
    assert ["ead-only" in output for output in told] == [True, True], told
    assert not (smithers.repo / "fix.txt").exists()


def test_a_command_that_its_sandbox_refuses_is_heard_of_at_once(smithers: Smithers, model: ModelServer) -> None:
    """W-014."""
    smithers.tasks(2)
    model.play([Answer(sh=f"sleep 1; {TICKS.sh}"), Answer(text="I could not.")])
    ended = smithers.paste(BASIC)
    assert (ended.code, "--full-auto" in ended.out) == (3, True)
    state = smithers.state(smithers.only_loop)
    assert (state["status"], state["iteration"]) == ("blocked", 1)


def test_a_codex_that_only_fails_to_write_does_not_do_so_all_night(smithers: Smithers, model: ModelServer) -> None:
    """W-014; of a command that is refused within its first 0.15 s, Codex tells the model and nobody else."""
    smithers.tasks(2)
    model.play([TICKS, Answer(text="I could not.")] * 6)
    ended = smithers.paste(BASIC)
    assert (ended.code, "--full-auto" in ended.out) == (3, True)
    state = smithers.state(smithers.only_loop)
    last = smithers.artifact(f"events_iter_{state['iteration']}.jsonl", smithers.only_loop)
    # On a slow machine a command may outlive that moment; the round that tells of it is the last.
    told = "Read-only file system" in last
    assert (state["status"], told or state["iteration"] == 5) == ("blocked", True)
    assert "- [x]" not in (smithers.repo / "TODO.md").read_text()


def test_the_low_friction_example_edits_and_completes(smithers: Smithers, model: ModelServer) -> None:
    """W-004, W-014, W-020, W-024, W-030."""
    model.play([PATCHES, DONE])
    assert smithers.paste(LOW_FRICTION).code == 0
    assert (smithers.repo / "fix.txt").read_text() == "fixed\n"
    assert re.fullmatch(r"repo-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", smithers.only_loop)
    state = smithers.state(smithers.only_loop)
    assert state["prompt"] == "Fix failing tests until green. Output <promise>DONE</promise> when all tests pass."
    assert (state["status"], state["max_iterations"], state["codex"]["sandbox"]) == ("completed", 25, "workspace-write")
