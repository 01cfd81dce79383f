"""waylon-smithers as its document describes it: the installed command, its files, and a Codex that is a strict fake."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bydawn.cli.dialects import FURTHER
from bydawn.core.loop import Loop
from bydawn.dialects.seam import draft
from dialects.waylon_made import EXAMPLE
from driving import ME, Home, Said, a_repository, is_error, kill_both, said, tree_of, wait_for
from program.strict_codex import calls, install
from program.terminal_driver import Terminal

Turn = dict[str, Any]

LOOPS = ".codex/waylon-smithers/loops"
GIVEN = "All of it is there.\n<promise>TASK_COMPLETE</promise>"
WORK: Turn = {"append": {"work.txt": "more\n"}, "reply": "Working on it."}
DONE: Turn = {"append": {"work.txt": "the end\n"}, "reply": GIVEN}
AUTO = ("--full-auto", "--loop-id", "night")


class Butler:
    """The command, what Codex plays for it, and what both leave behind."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.repo = home.repo
        self._bin = home.root / "bin"
        home.env["PATH"] = f"{self._bin}:{home.env['PATH']}"

    def plays(self, *turns: Turn) -> None:
        install(self._bin, turns)

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        return self.home.start(*words, command="waylon-smithers", **options)

    def __call__(self, *words: str, seconds: float = 60, **options: Any) -> Said:
        return said(self.start(*words, **options), seconds)

    def shown(self, *words: str, **options: Any) -> str:
        """What a person sees on a terminal."""
        ended = Terminal(self.home, *words, command="waylon-smithers", **options).end()
        assert ended.code == 0, ended
        return ended.text

    @property
    def calls(self) -> list[dict[str, Any]]:
        return calls(self._bin)

    @property
    def sessions(self) -> set[str]:
        return {call["session"] for call in self.calls}

    def state(self, name: str = "night") -> dict[str, Any]:
        return dict(json.loads((self.repo / LOOPS / f"{name}.json").read_text()))

    def summary(self, name: str = "night") -> dict[str, Any]:
        return dict(json.loads((self.repo / LOOPS / name / "summary.json").read_text()))

    def status(self, name: str = "night") -> dict[str, Any]:
        return dict(json.loads(self("status", "--loop-id", name).out))


@pytest.fixture
def butler(home: Home) -> Butler:
    return Butler(home)


# -- §13, the acceptance criteria --------------------------------------------------------------------------------------


def test_three_iterations_are_one_session_that_is_resumed_by_its_id(butler: Butler) -> None:
    """W-001, W-002, W-004, W-050, W-051, W-110."""
    butler.plays(WORK, WORK, DONE)
    ended = butler("Write it all.", *AUTO)
    assert ended.code == 0, ended
    first, *later = butler.calls
    assert "resume" not in first["argv"]
    assert [call["argv"][-3:] for call in later] == [["resume", first["session"], "-"]] * 2
    assert butler.sessions == {butler.state()["codex"]["session_id"]}
    assert "Write it all." in first["prompt"]
    paths = [call["argv"][call["argv"].index("--output-last-message") + 1] for call in butler.calls]
    assert Path(paths[0]).read_text() == "Working on it.", "W-051"
    assert len({*paths}) == 3
    assert all("Write it all." not in call["prompt"] and len(call["prompt"]) < 600 for call in later), "short"


def test_its_iterations_are_counted_in_one_way_everywhere(butler: Butler) -> None:
    """W-056: one whose session was lost is done again under its number, in the table as well as at the end."""
    butler.plays(WORK)
    butler("Write it all.", "--max-iterations", "1", *AUTO)
    for path in (butler.home.root / "bin/sessions").iterdir():
        path.unlink()
    ended = butler("resume", "--loop-id", "night", "--max-iterations", "3")
    assert "Continuing night after iteration 1." in ended.out
    assert re.findall(r"(?m)^  iter\. ", ended.out)
    assert re.findall(r"(?m)^  (\d+) +", ended.out) == ["2", "2", "3"], ended.out
    assert "stopped_max_iterations: 3 iterations" in ended.out


def test_the_promise_stops_it_at_once(butler: Butler) -> None:
    """W-003, W-053, W-111."""
    butler.plays(DONE, WORK)
    ended = butler("Write it all.", *AUTO)
    assert (ended.code, len(butler.calls)) == (0, 1)
    assert butler.state()["status"] == butler.summary()["status"] == "completed"
    assert "completed" in ended.out


def test_the_cap_stops_it_and_the_summary_says_what_to_do_next(butler: Butler) -> None:
    """W-021, W-054, W-112."""
    butler.plays(WORK)
    ended = butler("Write it all.", "--max-iterations", "2", *AUTO)
    assert (ended.code, len(butler.calls)) == (4, 2)
    assert butler.state()["status"] == "stopped_max_iterations"
    assert butler.state()["reason"] == "all 2 iterations are used up"
    assert "all 2 iterations are used up" in ended.out
    steps = " ".join(butler.summary()["what_to_do_next"])
    assert all(words in steps for words in ("--max-iterations 12", "prompt", "tests"))
    assert "resume --loop-id night --max-iterations 12" in ended.out
    butler.plays(DONE)
    assert butler("resume", "--loop-id", "night", "--max-iterations", "3").code == 0
    assert (butler.state()["iteration"], butler.state()["max_iterations"]) == (3, 3)


def test_two_loops_in_one_repository_do_not_touch_each_other(butler: Butler) -> None:
    """W-008, W-057, W-113."""
    butler.plays({"wait_for": str(butler.home.root / "go"), "reply": "one"}, {**WORK, "sleep": 0.2}, DONE, DONE, DONE)
    one = butler.start("The one.", "--full-auto", "--loop-id", "one")
    wait_for(lambda: butler.calls)
    two = butler.start("The other.", "--full-auto", "--loop-id", "two")
    wait_for(lambda: len(butler.calls) >= 2)
    (butler.home.root / "go").touch()
    endings = [said(one), said(two)]
    assert [ended.code for ended in endings] == [0, 0], endings
    states = [butler.state("one"), butler.state("two")]
    assert [state["prompt"] for state in states] == ["The one.", "The other."]
    assert len({state["codex"]["session_id"] for state in states}) == 2
    assert all((butler.repo / LOOPS / name / "last_message_iter_1.txt").is_file() for name in ("one", "two"))
    assert "also runs in this folder" in endings[1].out


def test_two_that_start_in_the_same_second_get_names_of_their_own(butler: Butler) -> None:
    """W-024, W-113."""
    butler.plays(WORK)
    started = [butler.start(f"Number {number}.", "--full-auto", "--max-iterations", "1") for number in range(4)]
    endings = [said(process) for process in started]
    assert [ended.code for ended in endings] == [4] * 4, endings
    loops = json.loads(butler("list", "--json").out)
    assert sorted(state["prompt"] for state in loops) == [f"Number {number}." for number in range(4)]


PLAN = "- [ ] one\n\n## HARD STOP: look\n\n- [ ] two\n"
TICK: Turn = {"tick": "TODO.md", "append": {"work.txt": "x\n"}, "reply": "Did one."}
TODO = ("--todo-file", "TODO.md", *AUTO)


def test_a_hard_stop_needs_a_person_and_a_resume_is_one(butler: Butler) -> None:
    """W-036, W-041, W-058, W-114."""
    (butler.repo / "TODO.md").write_text(PLAN)
    butler.plays(TICK, {**TICK, "reply": GIVEN})
    ended = butler("Go through TODO.md.", *TODO)
    assert (ended.code, len(butler.calls)) == (5, 1)
    state = butler.state()
    assert (state["status"], state["todo"]["paused_for_hard_stop"]) == ("paused_hard_stop", True)
    assert "waylon-smithers resume --loop-id night" in ended.out
    assert butler("resume", "--loop-id", "night").code == 0
    assert len(butler.sessions) == 1
    assert butler.state()["todo"]["paused_for_hard_stop"] is False


def test_a_resume_approves_none_that_was_moved_behind_open_work(butler: Butler) -> None:
    """W-058, X-22."""
    (butler.repo / "TODO.md").write_text(PLAN)
    butler.plays(TICK, TICK, {**TICK, "reply": GIVEN})
    assert butler("Go through TODO.md.", *TODO).code == 5
    (butler.repo / "TODO.md").write_text("- [x] one\n- [ ] two\n\n## HARD STOP: look\n\n- [ ] deploy\n")
    assert butler("resume", "--loop-id", "night").code == 5
    assert "- [ ] deploy" in (butler.repo / "TODO.md").read_text()
    assert butler("resume", "--loop-id", "night").code == 0


@pytest.mark.parametrize(("mode", "asks"), [("pause", True), ("exit", False)])
def test_in_a_terminal_somebody_is_asked_unless_it_is_to_stop_in_any_case(
    butler: Butler, mode: str, asks: bool
) -> None:
    """W-038, W-058."""
    (butler.repo / "TODO.md").write_text(PLAN)
    butler.plays(TICK, {**TICK, "reply": GIVEN})
    words = ("Go through TODO.md.", "--hard-stop-mode", mode, *TODO)
    terminal = Terminal(butler.home, *words, command="waylon-smithers")
    if asks:
        terminal.see("[y/N]")
        terminal.type("y\n")
    shown = terminal.end()
    assert (shown.code, "[y/N]" in shown.text) == (0 if asks else 5, asks)
    assert butler.state()["status"] == ("completed" if asks else "paused_hard_stop")


PASSES_BY = {
    "removed": {"write": {"TODO.md": "- [ ] one\n- [ ] two\n"}},
    "moved to the end": {"write": {"TODO.md": "- [x] one\n- [x] two\n\n## HARD STOP: look\n"}},
    "the whole list removed": {"sh": "rm TODO.md"},
    "emptied": {"write": {"TODO.md": ""}},
}


@pytest.mark.parametrize("deed", PASSES_BY.values(), ids=PASSES_BY)
def test_a_promise_does_not_get_past_a_hard_stop_that_is_gone(butler: Butler, deed: Turn) -> None:
    """W-058, W-101, W-114."""
    (butler.repo / "TODO.md").write_text(PLAN)
    butler.plays({**deed, "append": {"work.txt": "x\n"}, "reply": GIVEN})
    ended = butler("Go through TODO.md.", *TODO)
    assert (ended.code, butler.state()["status"]) == (3, "blocked"), ended


def test_a_promise_does_not_get_past_a_hard_stop_that_was_not_reached(butler: Butler) -> None:
    """W-058, W-101: the boxes above it are open, and yet all is said to be done."""
    (butler.repo / "TODO.md").write_text(PLAN)
    butler.plays(DONE)
    assert butler("Go through TODO.md.", *TODO).code == 5
    assert butler.state()["status"] == "paused_hard_stop"
    assert butler("resume", "--loop-id", "night").code == 0, "a person has looked, and the promise was given"
    assert len(butler.calls) == 1


@pytest.mark.parametrize("text", ["Write it all.\n\nHARD STOP\n", "- [x] one\n\nHARD STOP\n\n- [ ] two\n"])
def test_the_list_is_looked_at_after_an_iteration_and_not_before_the_first(butler: Butler, text: str) -> None:
    """W-058: whatever stands above the line, nothing says that it is open."""
    (butler.repo / "TODO.md").write_text(text)
    butler.plays(DONE)
    assert butler("Go through TODO.md.", *TODO).code == 5
    assert (len(butler.calls), butler.state()["iteration"]) == (1, 1)
    assert butler("resume", "--loop-id", "night").code == 0


def test_words_of_its_own_stop_it_only_where_they_are_reached(butler: Butler) -> None:
    """W-037, X-22: ticking what stands above is what reaches it."""
    (butler.repo / "TODO.md").write_text("- [ ] one\n- [ ] two\n\nASK ANN\n\n- [ ] three\n")
    butler.plays(TICK)
    assert butler("Go through TODO.md.", "--hard-stop-token", "ASK ANN", *TODO).code == 5
    assert butler.state()["iteration"] == 2


def test_ctrl_c_stops_it_now_and_keeps_the_session(butler: Butler) -> None:
    """W-006, W-059, W-115."""
    butler.plays(WORK, {"sleep": 60}, DONE)
    process = butler.start("Write it all.", *AUTO)
    wait_for(lambda: len(butler.calls) == 2)
    process.send_signal(signal.SIGINT)
    assert said(process).code == 130
    state = butler.state()
    assert (state["status"], state["iteration"]) == ("paused_user_interrupt", 2)
    assert state["codex"]["session_id"] in butler.sessions
    ended = butler("resume", "--loop-id", "night")
    assert butler.sessions == {state["codex"]["session_id"]}
    assert butler.state()["iteration"] == 2, "the iteration that was cut short is done again"
    assert (ended.code, "completed: 2 iterations" in ended.out) == (0, True), ended
    assert "3" not in " ".join([*butler.summary()["evidence"], *re.findall("· .*", ended.out)]), "one way to count"


# -- §16, pasted -------------------------------------------------------------------------------------------------------


def test_the_basic_example_may_only_read_and_says_what_to_do_about_it(butler: Butler) -> None:
    """W-007, W-014, W-090."""
    (butler.repo / "TODO.md").write_text(PLAN)
    butler.plays({"write": {"work.txt": "x\n"}, "reply": "I am not allowed to write."})
    ended = butler(
        "Go through TODO.md step-by-step. Ensure tests pass. Output <promise>DONE</promise> only when complete.",
        "--completion-promise",
        "DONE",
        "--max-iterations",
        "50",
        "--todo-file",
        "TODO.md",
    )
    assert (ended.code, "--full-auto" in ended.out) == (3, True), ended
    assert "--full-auto" in butler.shown("status", "--human")
    [state] = json.loads(butler("list", "--json").out)
    assert (state["status"], state["codex"]["sandbox"], state["codex"]["approval"]) == (
        "blocked",
        "read-only",
        "on-request",
    )
    assert re.fullmatch(r"repo-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", state["loop_id"])
    assert not (butler.repo / "work.txt").exists()
    butler.plays(
        {"write": {"work.txt": "x\n", "TODO.md": PLAN.replace("[ ]", "[x]")}, "reply": "<promise>DONE</promise>"}
    )
    [again] = re.findall("waylon-smithers (resume .*--full-auto)", ended.out)
    assert butler(*again.split()).code == 5, "what it offers works; the list has a HARD STOP"
    assert butler.state(state["loop_id"])["codex"]["sandbox"] == "workspace-write"
    assert butler.sessions == {state["codex"]["session_id"]}


def test_the_low_friction_example_edits_and_completes(butler: Butler) -> None:
    """W-014, W-030."""
    butler.plays(WORK, {**DONE, "reply": "Green.\n<promise>DONE</promise>"})
    ended = butler(
        "Fix failing tests until green. Output <promise>DONE</promise> when all tests pass.",
        "--completion-promise",
        "DONE",
        "--max-iterations",
        "25",
        "--full-auto",
    )
    assert ended.code == 0
    assert (butler.repo / "work.txt").read_text() == "more\nthe end\n"
    assert {call["sandbox"] for call in butler.calls} == {"workspace-write"}


# -- what Codex is given -----------------------------------------------------------------------------------------------


def test_every_iteration_runs_with_what_the_first_one_was_given(butler: Butler) -> None:
    """W-026, W-027, W-028, W-029, W-051: the sandbox too, which Codex forgets (X-23)."""
    butler.plays(WORK, WORK, DONE)
    elsewhere = butler.home.root / "home"
    options = ("--cd", str(butler.repo), "--model", "gpt-5", "--profile", "fast", "--sandbox", "workspace-write")
    assert butler("Write it.", "--loop-id", "night", *options, cwd=elsewhere).code == 0
    for call in butler.calls:
        assert call["argv"][1:4] == ["--json", "-s", "workspace-write"]
        assert call["argv"][5:7] == ["-C", str(butler.repo)]
        assert call["argv"][7:11] == ["-m", "gpt-5", "-p", "fast"]
    assert butler.state()["codex"]["model"] == "gpt-5"


def test_no_git_repository_is_an_error_unless_it_is_wanted(butler: Butler) -> None:
    """W-032."""
    folder = butler.home.root / "plain"
    folder.mkdir()
    butler.plays(DONE)
    refused = butler("Write it.", *AUTO, "--cd", str(folder))
    assert (refused.code, "--skip-git-repo-check" in refused.err) == (2, True)
    assert tree_of(folder) == {}
    assert butler("Write it.", *AUTO, "--cd", str(folder), "--skip-git-repo-check").code == 0


@pytest.mark.parametrize(("sandbox", "warned"), [("danger-full-access", True), ("workspace-write", False)])
def test_a_dangerous_setting_has_a_banner_each_time(butler: Butler, sandbox: str, warned: bool) -> None:
    """W-091, W-092."""
    butler.plays({"error": "unexpected status 401 Unauthorized"}, DONE)
    started = butler("Write it.", "--sandbox", sandbox, "--loop-id", "night")
    resumed = butler("resume", "--loop-id", "night")
    assert [("FULL ACCESS" in each.err) for each in (started, resumed)] == [warned, warned]


def test_approvals_are_taken_down_and_nobody_is_asked(butler: Butler) -> None:
    """W-031, X-23."""
    butler.plays(DONE)
    ended = butler("Write it.", "--ask-for-approval", "untrusted", *AUTO)
    assert (ended.code, "asks no one" in ended.out) == (0, True)
    assert butler.state()["codex"]["approval"] == "untrusted"
    assert not any("approval" in word for call in butler.calls for word in call["argv"] if word.startswith("-"))


REPLIES = {
    "a mention": "I cannot output <promise>TASK_COMPLETE</promise> yet",
    "a quote": "You said:\n\n> <promise>TASK_COMPLETE</promise>",
    "a fence": "```\n<promise>TASK_COMPLETE</promise>\n```",
    "another text": "<promise>DONE</promise>",
    "nothing": "",
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_only_a_promise_that_is_given_completes(butler: Butler, reply: str) -> None:
    """W-005, W-052, W-101, X-04."""
    butler.plays({**WORK, "reply": reply}, {**WORK, "reply": "It is all there. <promise>TASK_COMPLETE</promise>"})
    assert butler("Write it.", *AUTO).code == 0
    rows = butler.summary()["iterations"]
    assert [row["detected_promise"] for row in rows] == [False, True]
    assert rows[0]["promise_mentioned"] is (reply in [*REPLIES.values()][:3])


@pytest.mark.parametrize(
    ("mode", "promise", "reply"),
    [
        ("plain", "ALL GREEN", "The suite passes. ALL GREEN"),
        ("regex", r"ALL (GREEN|WELL)\s*!?", "The suite passes.\nALL WELL!"),
    ],
)
def test_a_promise_can_be_plain_words_or_a_pattern(butler: Butler, mode: str, promise: str, reply: str) -> None:
    """W-022, W-023, W-052."""
    butler.plays({**WORK, "reply": f"{promise} is what I would say, but it is not so."}, {**WORK, "reply": reply})
    assert butler("Write it.", "--promise-mode", mode, "--completion-promise", promise, *AUTO).code == 0
    assert len(butler.calls) == 2
    assert (butler.state()["promise_mode"], butler.state()["completion_promise"]) == (mode, promise)


def test_who_wants_the_document_to_the_letter_gets_a_mere_mention_believed(butler: Butler) -> None:
    """W-052, X-04."""
    butler.plays({**WORK, "reply": "I cannot output <promise>TASK_COMPLETE</promise> yet"})
    assert butler("Write it.", "--done-match", "anywhere", *AUTO).code == 0


def test_who_is_blocked_has_not_given_a_promise_whatever_stands_at_the_end(butler: Butler) -> None:
    """W-082, W-101."""
    reply = f"## BLOCKED\n\nThe licence key is missing.\n\n{GIVEN}"
    butler.plays({**WORK, "reply": reply}, DONE)
    assert butler("Write it.", *AUTO).code == 0
    assert [row["detected_promise"] for row in butler.summary()["iterations"]] == [False, True]
    assert "said you are blocked" in butler.calls[1]["prompt"]


def test_a_blocked_section_ends_it_in_codex_own_words(butler: Butler) -> None:
    """W-082."""
    butler.plays({"reply": "## BLOCKED\n\nThe licence key is missing. Next step: put it into .env."})
    ended = butler("Write it.", *AUTO)
    assert (ended.code, butler.state()["status"]) == (3, "blocked")
    assert "The licence key is missing" in butler.state()["reason"]


def test_the_same_blocked_section_twice_waits_for_the_person_whatever_was_changed(butler: Butler) -> None:
    """W-003, W-082; what the person answers goes into the next prompt."""
    stuck = {**WORK, "reply": "## BLOCKED\n\nThe licence key is missing."}
    butler.plays({**WORK, "reply": "## BLOCKED\n\nThe network is slow."}, stuck, stuck, DONE)
    ended = butler("Write it.", *AUTO)
    assert (ended.code, len(butler.calls), butler.state()["status"]) == (3, 3, "blocked"), ended
    assert re.findall(r'resume --loop-id night --note "…"', ended.out)
    assert butler("resume", "--loop-id", "night", "--note", "it is in .env").code == 0
    assert "it is in .env" in butler.calls[-1]["prompt"]


def test_it_can_go_on_with_another_promise_model_and_sandbox(butler: Butler) -> None:
    """W-022, W-023, W-027, W-029, W-041: in the same session, which is told."""
    butler.plays(WORK, {**WORK, "reply": "ALL GREEN"})
    assert butler("Write it.", "--max-iterations", "1", "--loop-id", "night").code == 3, "it may only read"
    words = ("--completion-promise", "ALL GREEN", "--promise-mode", "plain", "--model", "other")
    assert butler("resume", *words, "--sandbox", "workspace-write", "--max-iterations", "9").code == 0
    state, call = butler.state(), butler.calls[-1]
    assert (state["completion_promise"], state["promise_mode"], state["iteration"]) == ("ALL GREEN", "plain", 2)
    assert (state["codex"]["model"], state["codex"]["sandbox"], call["sandbox"]) == ("other", *["workspace-write"] * 2)
    assert ("mode plain): ALL GREEN" in call["prompt"], "other" in call["argv"], len(butler.sessions)) == (
        True,
        True,
        1,
    )


def test_no_other_programs_name_and_no_round_is_on_its_screens(butler: Butler) -> None:
    """W-020: what it says and offers is its own, but for the one line of its help."""
    tests = butler.repo / "tests"
    tests.mkdir()
    (tests / "a").touch()
    butler.home.env["BYDAWN_PROTECT"] = "tests/**"
    said_so_far = [butler("--help"), butler("resume", "--help"), butler("--version"), butler("status"), butler("list")]
    butler.plays({"sleep": 60})
    process = butler.start("Write it.", *AUTO)
    wait_for(lambda: butler.calls)
    said_so_far += [butler("resume"), butler("Another.", *AUTO)]
    kill_both(process.pid)
    said_so_far.append(said(process))
    failed = {"sh": "exit 1", "reply": "hm"}
    for turn in (
        {"reply": "## BLOCKED\n\nno key"},
        {"append": {"tests/a": "x"}, "reply": "hm"},
        failed,
        {"reply": "hm"},
    ):
        butler.plays(turn)
        said_so_far.append(butler("resume", "--note", "go on"))
    butler.plays({"append": {"tests/a": "x"}, "reply": GIVEN})
    said_so_far += [butler("resume", "--accept", "--max-iterations", "1"), butler("resume", "--accept")]
    said_so_far += [butler("resume"), butler("cancel"), butler("resume", "--loop-id", "x"), butler("list")]
    texts = "\n".join([*(each.out + each.err for each in said_so_far), butler.shown("status", "--human")])
    texts = texts.replace(FURTHER, "", 1)
    texts = texts.replace(str(butler.home.root), "")
    assert re.findall(r"(?i).*(?:bydawn|\brounds?\b).*", texts) == []
    files = "\n".join(path.read_text() for path in (butler.repo / LOOPS).glob("**/*.json"))
    assert re.findall(r"(?i).*(?:bydawn|\brounds?\b).*", files) == []


# -- its files ---------------------------------------------------------------------------------------------------------


def test_every_iteration_leaves_its_last_message_and_its_events(butler: Butler) -> None:
    """W-009, W-034, W-051, W-073."""
    butler.plays(WORK, DONE)
    butler("Write it.", *AUTO)
    folder = butler.repo / LOOPS / "night"
    assert (folder / "last_message_iter_1.txt").read_text() == "Working on it."
    assert (folder / "last_message_iter_2.txt").read_text() == GIVEN
    for number in (1, 2):
        lines = [json.loads(line) for line in (folder / f"events_iter_{number}.jsonl").read_text().splitlines()]
        assert (lines[0]["type"], lines[-1]["type"]) == ("thread.started", "turn.completed")
    assert butler.state()["artifacts"] == {
        "dir": f"{LOOPS}/night/",
        "last_message_path": "last_message_iter_2.txt",
        "jsonl_path": "events_iter_2.jsonl",
        "summary_json_path": "summary.json",
    }


def test_files_can_be_elsewhere(butler: Butler) -> None:
    """W-025, W-033, W-034, W-035."""
    butler.plays(WORK, DONE)
    out = butler.home.root / "out"
    options = {
        "--state-file": out / "deep/state.json",
        "--last-message-dir": out / "messages",
        "--summary-json": out / "summary.json",
        "--jsonl-events": out / "events.jsonl",
    }
    words = [word for flag, path in options.items() for word in (flag, str(path))]
    assert butler("Write it.", *AUTO, *words).code == 0
    assert json.loads((out / "deep/state.json").read_text())["status"] == "completed"
    assert len(json.loads((out / "summary.json").read_text())["iterations"]) == 2
    streams = [(out / f"messages/events_iter_{number}.jsonl").read_text() for number in (1, 2)]
    assert (out / "events.jsonl").read_text() == "".join(streams)
    assert not (butler.repo / LOOPS).exists()


@pytest.mark.parametrize("flag", ["--last-message-dir", "--summary-json", "--state-file", "--jsonl-events"])
def test_a_folder_elsewhere_that_becomes_a_link_is_not_followed(butler: Butler, flag: str) -> None:
    """W-025, W-033, W-034, W-035: an agent that may do anything could lead us anywhere."""
    root = butler.home.root
    (root / "out").mkdir()
    (root / "victim").mkdir()
    # Again and again: a state that is written just then makes the folder anew.
    swap = "until test -L out; do rm -rf was; mv out was; ln -sT victim out; done"
    butler.plays({"sh": f"cd {root}; {swap}", "append": {"work.txt": "x"}, "reply": "Swapped."}, WORK)
    path = f"{root}/out" if flag == "--last-message-dir" else f"{root}/out/file"
    words = ("--sandbox", "danger-full-access", "--loop-id", "night", "--max-iterations", "2", flag, path)
    ended = butler("Write it.", *words)
    assert (ended.code, "cannot be written" in ended.out + ended.err) == (4, True), ended
    refused = butler("resume", "--loop-id", "night", "--max-iterations", "3")
    assert (refused.code, "leads through a link" in refused.err) == (2, True), refused
    butler("cancel", "--loop-id", "night", "--cleanup-artifacts")
    assert [*(root / "victim").iterdir()] == []


@pytest.mark.parametrize("way", ["link", "link/deep", "link/deep/new"])
def test_a_link_that_a_person_means_is_followed_once(butler: Butler, way: str) -> None:
    """W-025, W-034: to where it led when the loop began."""
    root = butler.home.root
    (root / "real/deep").mkdir(parents=True)
    (root / "link").symlink_to("real")
    butler.plays(DONE)
    assert butler("Write it.", *AUTO, "--last-message-dir", f"{root}/{way}").code == 0
    assert (root / way.replace("link", "real") / "summary.json").is_file()


def test_events_can_go_into_a_folder(butler: Butler) -> None:
    """W-033."""
    butler.plays(WORK, DONE)
    assert butler("Write it.", *AUTO, "--jsonl-events", "events").code == 0, "it does not end in .jsonl"
    assert sorted(tree_of(butler.repo / "events")) == ["events_iter_1.jsonl", "events_iter_2.jsonl"]
    assert [row["files_changed"] for row in butler.summary()["iterations"]] == [1, 1], "ours are nobody's work"


def test_a_folder_for_messages_is_no_way_around_what_is_protected(butler: Butler) -> None:
    """W-034, W-101: only the files that we write there are not the agent's work."""
    (butler.repo / "tests").mkdir()
    (butler.repo / "tests/run.sh").write_text("test -f done.txt\n")
    (butler.repo / "bydawn.toml").write_text('check = ["sh tests/run.sh"]\nprotect = ["tests/run.sh"]\n')
    terminal = Terminal(butler.home, "trust")
    terminal.see("Do you trust this?")
    terminal.type("y\n")
    assert terminal.end().code == 0
    butler.plays({"write": {"tests/run.sh": "exit 0\n"}, "reply": GIVEN})
    ended = butler("Write it.", *AUTO, "--last-message-dir", "tests")
    assert (ended.code, "tests/run.sh" in ended.out, "--accept" in ended.out) == (3, True, True), ended


NAMED_ONCE = {
    "a stream": ("--jsonl-events", "tests.jsonl", False),
    "a summary that was cleaned up": ("--summary-json", "report.json", True),
    "a message": ("--last-message-dir", "last_message_iter_1.txt", True),
}


@pytest.mark.parametrize(("flag", "path", "clean"), NAMED_ONCE.values(), ids=NAMED_ONCE)
@pytest.mark.parametrize("ours", [True, False], ids=["waylon-smithers", "bydawn"])
def test_what_an_ended_loop_once_named_is_a_persons_again(
    butler: Butler, flag: str, path: str, clean: bool, ours: bool
) -> None:
    """W-033, W-034, W-035, W-101: protected, it is seen whoever changes it."""
    butler.plays(DONE)
    path = path if flag != "--last-message-dir" else f"said/{path}"
    assert butler("Write it.", "--full-auto", "--loop-id", "old", flag, path.split("/")[0]).code == 0
    if clean:
        assert butler("cancel", "--loop-id", "old", "--cleanup-artifacts").code == 0
    _commit(butler.repo, path, "as it should be\n")
    config = butler.home.root / "home/.config/bydawn/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'protect = ["{path}"]\n')
    butler.plays({**DONE, "write": {path: "forged\n"}})
    if ours:
        ended = butler("Write it.", "--full-auto", "--loop-id", "new")
    else:
        ended = butler.home.run("codex", "--new", "--sandbox", "workspace", "--done-when", "TASK_COMPLETE")
    assert (ended.code, path in ended.out) == (3, True), ended


def _commit(repo: Path, path: str, text: str) -> None:
    """A file of a person's own, in their own git."""
    (repo / path).parent.mkdir(parents=True, exist_ok=True)
    (repo / path).write_text(text)
    for words in (("add", "-f", "--", path), ("commit", "-qm", "mine")):
        subprocess.run(["git", *ME, *words], cwd=repo, check=True, capture_output=True)


def test_what_is_protected_is_no_place_for_our_files(butler: Butler) -> None:
    """W-034, W-101: what is ours is out of the sight of every check."""
    butler.plays(DONE)
    config = butler.home.root / "home/.config/bydawn/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('protect = ["tests/**", ".codex/**"]\n')
    refused = butler("Write it.", *AUTO, "--last-message-dir", "tests/said")
    assert (refused.code, "is protected" in refused.err, butler.calls) == (2, True, []), refused
    assert butler("Write it.", *AUTO).code == 0, "its own folder is its own"


def test_a_loop_that_came_and_went_meanwhile_did_no_work_of_ours(butler: Butler) -> None:
    """W-008: its files are there for good, and nobody else's progress."""
    gate = butler.home.root / "go"
    idle: Turn = {"reply": "Thinking."}
    butler.plays({"wait_for": str(gate), **idle}, {**idle, "reply": GIVEN}, idle)
    process = butler.start("Think.", "--full-auto", "--loop-id", "one", "--max-iterations", "9")
    wait_for(lambda: butler.calls)
    assert butler("Write it.", "--full-auto", "--loop-id", "two", "--summary-json", "two.json").code == 0
    gate.touch()
    assert said(process).code == 3
    assert [row["files_changed"] for row in butler.summary("one")["iterations"]] == [0] * 5


ODD = {
    "a file of the project": ["--jsonl-events", "README.md"],
    "a file that is no stream": ["--jsonl-events", "notes.txt"],
    "a file of git's, by a link": ["--jsonl-events", "gitlink/HEAD"],
    "the list": ["--todo-file", "TODO.md", "--jsonl-events", "./TODO.md"],
    "a file of git's": ["--jsonl-events", ".git/HEAD"],
    "a file of another repository's": ["--jsonl-events", "sub/.git/x"],
    "the workspace": ["--last-message-dir", "."],
    "one place for two": ["--state-file", "x.json", "--summary-json", "./x.json"],
    "the list, by another name": ["--todo-file", "TODO.md", "--jsonl-events", "here/TODO.md"],
    "the place of the state": ["--summary-json", f"{LOOPS}/night.json"],
    "the place of the summary": ["--jsonl-events", f"{LOOPS}/night/summary.json"],
    "everything": ["--state-file", "*"],
    "the workspace, by a link": ["--last-message-dir", "here"],
    "a ledger": ["--jsonl-events", "LEDGER"],
}


@pytest.mark.parametrize("words", ODD.values(), ids=ODD)
def test_a_path_that_would_hide_or_harm_something_is_refused(butler: Butler, words: list[str]) -> None:
    """W-025, W-033, W-034, W-035: what is ours is out of the sight of every check."""
    butler.plays(DONE)
    (butler.repo / "here").symlink_to(butler.repo)
    (butler.repo / "gitlink").symlink_to(butler.repo / ".git")
    (butler.repo / "notes.txt").write_text("mine\n")
    (butler.repo / "TODO.md").write_text(PLAN)
    if "LEDGER" in words:
        butler("Write it.", "--full-auto", "--loop-id", "first")
        words = ["--jsonl-events", ".bydawn/loops/first/ledger.jsonl"]
    before, asked = tree_of(butler.repo), len(butler.calls)
    refused = butler("Write it.", *AUTO, *words)
    assert (refused.code, is_error(refused.err)) == (2, True), refused
    assert (tree_of(butler.repo), len(butler.calls)) == (before, asked)


IMPOSSIBLE = {
    "events, a link to a file": ["--jsonl-events", "to_file"],
    "events, a link to a folder": ["--jsonl-events", "to_folder"],
    "events, a link elsewhere to a file": ["--jsonl-events", "../to_folder/"],
    "events below a file": ["--jsonl-events", "plain/"],
    "events in a folder with one for a file": ["--jsonl-events", "odd/"],
    "messages, a link": ["--last-message-dir", "to_folder", "--summary-json", "s.json"],
    "messages below a file": ["--last-message-dir", "plain", "--summary-json", "s.json"],
    "one below the other": ["--state-file", "a", "--summary-json", "a/b"],
    "one below the other, the other way round": ["--state-file", "a.jsonl/b/c", "--jsonl-events", "a.jsonl"],
    "our own folder": ["--state-file", ".codex/waylon-smithers"],
    "what keeps ours out of commits": ["--state-file", ".codex/waylon-smithers/.gitignore"],
    "the same, as events": ["--jsonl-events", ".codex/waylon-smithers/.gitignore"],
    "messages of a commit": ["--last-message-dir", "reports"],
    "a file of a commit that is gone": ["--state-file", "gone.json"],
    "events of a commit that are gone": ["--jsonl-events", "gone.jsonl"],
    "a place that is closed": ["--jsonl-events", "closed/"],
    "messages in a place that is closed": ["--last-message-dir", "closed", "--summary-json", "s.json"],
    "events that nobody may read": ["--jsonl-events", "secret.jsonl"],
    "events that nobody may write": ["--jsonl-events", "fixed.jsonl"],
}


@pytest.mark.parametrize("words", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_place_that_cannot_work_is_refused_before_anything_starts(butler: Butler, words: list[str]) -> None:
    """W-025, W-033, W-034, W-035: no loop runs all night without its files."""
    butler.plays(DONE)
    elsewhere = butler.home.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "all.jsonl").write_text('{"type":"thread.started"}\n')
    (butler.repo / "to_file").symlink_to(elsewhere / "all.jsonl")
    (butler.repo / "to_folder").symlink_to(elsewhere)
    (butler.repo / "plain").write_text("mine\n")
    (butler.repo / "odd/events_iter_3.jsonl").mkdir(parents=True)
    _commit(butler.repo, "reports/summary.json", '{"loop_id": "another"}\n')
    for name in ("gone.json", "gone.jsonl"):
        _commit(butler.repo, name, "{}\n")
        (butler.repo / name).unlink()
    (butler.repo / "closed").mkdir(mode=0o555)
    for name, mode in (("secret.jsonl", 0o200), ("fixed.jsonl", 0o444)):
        (butler.repo / name).write_text('{"type":"thread.started"}\n')
        (butler.repo / name).chmod(mode)
    if "../to_folder/" in words:
        (butler.home.root / "to_folder").symlink_to(butler.repo / "plain")
    before = sorted(butler.repo.rglob("*"))
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()
    refused = butler("Write it.", *AUTO, *words, before=drop)
    assert (refused.code, is_error(refused.err), "hint:" in refused.err) == (2, True, True), refused
    assert "I/O error" not in refused.err
    assert (sorted(butler.repo.rglob("*")), butler.calls) == (before, [])


EVENT = '{"type":"thread.started","thread_id":"x"}\n'
NO_EVENTS = {
    "a blank first line": "\nmy private notes\n",
    "nothing but a blank line": "\n",
    "a map": '{"type":"FeatureCollection","features":[]}\n',
    "a last line that is not ended": EVENT.rstrip(),
    "notes behind an event": f"{EVENT}my private notes\n",
    "a type that is none": '{"type":1}\n',
    "no object": '["type"]\n',
    "no text": '{"type":"\udcff"}\n',
    "other objects": f'{EVENT}{{"case":1}}\n',
}


@pytest.mark.parametrize("text", NO_EVENTS.values(), ids=NO_EVENTS)
def test_events_are_added_to_nothing_but_events(butler: Butler, text: str) -> None:
    """W-033."""
    butler.plays(DONE)
    (butler.repo / "all.jsonl").write_bytes(text.encode(errors="surrogateescape"))
    refused = butler("Write it.", *AUTO, "--jsonl-events", "all.jsonl")
    assert (refused.code, "all.jsonl is a file of yours" in refused.err, butler.calls) == (2, True, []), refused
    assert (butler.repo / "all.jsonl").read_text(errors="surrogateescape") == text


def test_events_of_an_earlier_loop_grow_on_whatever_codex_printed_between_them(butler: Butler) -> None:
    """W-033: going on, a file is known as the one that was added to."""
    (butler.repo / "all.jsonl").write_text(f'{EVENT}{{"type":"error","message":"x"}}\n')
    butler.plays({**WORK, "say": ["a warning", '{"type":"item.com'], "exit": 1}, DONE)
    words = ("--jsonl-events", "all.jsonl")
    stuck = butler("Write it.", *AUTO, *words, "--max-iterations", "1")
    assert stuck.code == 4, stuck
    assert butler("resume", "--loop-id", "night", "--max-iterations", "2").code == 0
    lines = (butler.repo / "all.jsonl").read_text().splitlines()
    assert (lines[0], "a warning" in lines, json.loads(lines[-1])["type"]) == (EVENT.strip(), True, "turn.completed")
    other = butler("Write it.", "--full-auto", "--loop-id", "other", *words)
    assert (other.code, "is a file of yours" in other.err) == (2, True), "another loop would not know"


def test_two_loops_at_once_cannot_write_to_the_same_place(butler: Butler) -> None:
    """W-034, W-057."""
    butler.plays({"sleep": 60})
    process = butler.start("Write it.", "--full-auto", "--loop-id", "one", "--last-message-dir", "logs")
    wait_for(lambda: butler.calls)
    refused = butler("Write it.", "--full-auto", "--loop-id", "two", "--last-message-dir", "logs")
    assert (refused.code, "one is at work, and writes there" in refused.err) == (8, True), refused
    process.send_signal(signal.SIGINT)
    said(process)


@pytest.mark.parametrize("flag", ["--state-file", "--summary-json", "--jsonl-events", "--last-message-dir"])
def test_of_three_that_start_at_the_same_moment_one_gets_the_place(butler: Butler, flag: str) -> None:
    """W-025, W-033, W-034, W-035, W-057."""
    gate = butler.home.root / "go"
    butler.plays({**WORK, "wait_for": str(gate)})
    words = ("--full-auto", "--max-iterations", "1", flag, "here", "--loop-id")
    started = [butler.start("Write it.", *words, name) for name in ("one", "two", "three")]
    wait_for(lambda: sum(process.poll() is not None for process in started) == 2)
    gate.touch()
    endings = [said(process) for process in started]
    refused = [ended for ended in endings if ended.code != 4]
    assert len(refused) == 2, endings
    assert len(butler.calls) == 1
    reasons = {8: "is at work, and writes there", 2: "there is a loop"}  # which may have written its state by then
    assert all(reasons[ended.code] in ended.err for ended in refused), endings


def test_of_two_that_start_under_one_name_one_is_told_so(butler: Butler) -> None:
    """W-024, W-057."""
    butler.plays({**WORK, "sleep": 1})
    endings = [said(process) for process in [butler.start("Write it.", *AUTO, "--max-iterations", "1") for _ in "12"]]
    assert sorted(ended.code for ended in endings) == [2, 4], endings
    assert "there is a loop night already" in endings[0].err + endings[1].err


def test_a_resumed_loop_does_not_share_a_file_with_another(butler: Butler) -> None:
    """W-041, W-057: another may have taken it meanwhile."""
    butler.plays(WORK, {**WORK, "sleep": 60})
    events = ("--full-auto", "--jsonl-events", "all.jsonl", "--loop-id")
    assert butler("Write it.", *events, "one", "--max-iterations", "1").code == 4
    process = butler.start("Write it.", *events, "two")
    wait_for(lambda: len(butler.calls) == 2)
    refused = butler("resume", "--loop-id", "one", "--max-iterations", "2")
    assert (refused.code, "two is at work, and writes there" in refused.err) == (8, True), refused
    process.send_signal(signal.SIGINT)
    said(process)
    butler.plays(WORK)
    assert butler("resume", "--loop-id", "one", "--max-iterations", "2").code == 4, "now it is free"


@pytest.mark.parametrize("before", [True, False])
def test_loops_of_different_folders_do_not_share_a_file(butler: Butler, before: bool) -> None:
    """W-025, W-035, W-057: a path is what it leads to."""
    (butler.repo / "sub").mkdir()
    butler.plays({"sleep": 60})
    above = ("--summary-json", "sub/sum.json", "--full-auto", "--loop-id", "one")
    below = ("--summary-json", "sub/sum.json", "--full-auto", "--loop-id", "two", "--cd", "sub")
    first, second = (above, below) if before else (below, above)
    process = butler.start("Write it.", *first)
    wait_for(lambda: butler.calls)
    refused = butler("Write it.", *second)
    assert (refused.code, "is at work in " in refused.err) == (8, True), refused
    kill_both(process.pid)
    process.wait()
    butler.plays(DONE)
    assert butler("Write it.", *second).code == 0, "the dead hold no place"
    assert butler.home.bydawn("stop", first[first.index("--loop-id") + 1]).code == 0


def test_a_pipe_in_the_place_of_the_state_holds_nobody_up(butler: Butler) -> None:
    """W-040."""
    butler.plays(WORK)
    butler("Write it.", "--max-iterations", "1", *AUTO)
    path = butler.repo / LOOPS / "night.json"
    path.unlink()
    os.mkfifo(path)
    assert butler("cancel", "--loop-id", "night", "--cleanup-artifacts").code == 0
    assert butler("list").code == 0


def test_two_idle_loops_do_not_take_each_others_files_for_work(butler: Butler) -> None:
    """W-008, W-113."""
    butler.plays({"reply": "Thinking.", "sleep": 0.3})
    words = ("Write it.", "--full-auto", "--max-iterations=9", "--jsonl-events")
    started = [butler.start(*words, f"{name}.jsonl", "--loop-id", name) for name in ("one", "two")]
    assert [said(process).code for process in started] == [3, 3]
    assert len(butler.calls) == 10, "five each"


@pytest.mark.parametrize("path", ["./state.json", "sub/../state.json", "LINK/state.json", "DOUBLE//state.json"])
def test_a_state_file_is_no_work_however_its_path_is_written(butler: Butler, path: str) -> None:
    """W-025."""
    (butler.repo / "sub").mkdir()
    (butler.home.root / "link").symlink_to(butler.repo)
    path = path.replace("LINK", str(butler.home.root / "link")).replace("DOUBLE", str(butler.repo))
    butler.plays({"reply": "Thinking."})
    assert butler("Write it.", *AUTO, "--state-file", path).code == 3
    assert (len(butler.calls), (butler.repo / "state.json").is_file()) == (5, True)


def test_what_is_written_is_no_work_and_no_commit_takes_it_along(butler: Butler) -> None:
    """W-009: five iterations that only talk get nowhere, whatever was written about them."""
    butler.plays({"reply": "Thinking."})
    ended = butler("Write it.", *AUTO)
    assert (ended.code, len(butler.calls)) == (3, 5)
    assert len(butler.sessions) == 1, "stuck or not, it is the one session"
    status = subprocess.run(["git", "status", "--porcelain"], cwd=butler.repo, capture_output=True, text=True)
    assert status.stdout == ""


def test_a_reader_never_sees_a_torn_or_a_backward_state(butler: Butler) -> None:
    """W-055, W-056, W-070, W-101: fifty iterations, polled all the while."""
    butler.plays(*[WORK] * 49, DONE)
    process = butler.start("Write it.", "--max-iterations", "60", *AUTO)
    path = butler.repo / LOOPS / "night.json"
    wait_for(path.exists)
    seen: list[tuple[int, str]] = []
    while process.poll() is None:
        state = json.loads(path.read_bytes())
        seen.append((state["iteration"], state["status"]))
    assert said(process, 120).code == 0
    numbers = [number for number, _ in seen]
    assert numbers == sorted(numbers)
    assert len({*numbers}) > 20, "it was looked at often enough"
    assert {status for _, status in seen} <= {"running", "completed"}
    assert butler.state()["iteration"] == 50
    assert not [*path.parent.glob(".*")], "no draft is left"


# -- its other commands ------------------------------------------------------------------------------------------------


def test_status_and_list_show_what_bydawn_shows(butler: Butler) -> None:
    """W-039, W-042, W-075."""
    butler.plays(WORK, {"sleep": 60})
    process = butler.start("Write it.", *AUTO)
    wait_for(lambda: len(butler.calls) == 2)
    assert butler.status()["status"] == "running"
    assert butler.home.status("night")["state"] == "running"
    kill_both(process.pid)
    process.wait()
    # The kernel frees the lock of a killed process a moment after its end.
    wait_for(lambda: butler.status()["status"] == "crashed")  # no one is at work, whatever the file says
    shown = butler.shown("status", "--human", "--loop-id", "night")
    assert all(words in shown for words in ("crashed", "2 of 30", "resume --loop-id night", f"{LOOPS}/night.json"))
    assert "night  crashed  iteration 2 of 30" in butler("list").out
    assert butler.shown("status", "--human") == shown, "it is the only one here"
    on_a_terminal = butler.shown("status", "--loop-id", "night")
    assert json.loads(on_a_terminal)["loop_id"] == "night", "as the original prints it, wherever it is read"
    assert butler("cancel").code == 0, "which ends what the crash left alive"


def test_cancel_reaches_a_running_loop(butler: Butler) -> None:
    """W-040, W-060, W-061."""
    butler.plays(WORK, {"sleep": 60})
    process = butler.start("Write it.", *AUTO)
    wait_for(lambda: len(butler.calls) == 2)
    canceled = butler("cancel", "--loop-id", "night")
    assert (canceled.code, "night is canceled" in canceled.out) == (0, True)
    assert said(process).code == 130
    assert butler.state()["status"] == "canceled"
    assert (butler.repo / "work.txt").read_text() == "more\n", "the repository stays as it is"


@pytest.mark.parametrize("crashed", [True, False])
def test_cancel_reaches_one_that_stands_still(butler: Butler, crashed: bool) -> None:
    """W-040, W-060."""
    butler.plays(WORK, {"sleep": 60})
    process = butler.start("Write it.", *AUTO)
    wait_for(lambda: len(butler.calls) == 2)
    if crashed:
        kill_both(process.pid)
        process.wait()
    else:
        process.send_signal(signal.SIGINT)
        said(process)
    assert butler("cancel", "--loop-id", "night").code == 0
    assert butler.state()["status"] == butler.status()["status"] == "canceled"


def test_what_is_offered_can_be_pasted_where_the_command_was_typed(butler: Butler) -> None:
    """W-026, W-054: on the screen, by `status`, in the summary, and where something is refused."""
    elsewhere, cd = butler.home.root / "else where", ("--cd", "../repo")
    elsewhere.mkdir()
    butler.plays(WORK)
    ended = butler("Write it.", "--max-iterations", "1", *AUTO, *cd, cwd=elsewhere)
    shown = butler.shown("status", "--human", *cd, cwd=elsewhere)
    taken = butler("Another.", *AUTO, *cd, cwd=elsewhere)
    assert f"waylon-smithers status --loop-id night --cd {butler.repo}`" in taken.err
    for words in (ended.out, shown, " ".join(butler.summary()["what_to_do_next"])):
        [command] = re.findall(r"waylon-smithers resume[^`#\n]*?(?=`| {2}|\n)", words)
        before = butler.state()["iteration"]
        pasted = ["sh", "-c", f"{command} --max-iterations {before + 1}"]
        assert subprocess.run(pasted, cwd=elsewhere, env=butler.home.env, capture_output=True).returncode == 4, command
        assert butler.state()["iteration"] == before + 1


@pytest.mark.parametrize("list_", ["repo/TODO.md", "TODO.md"])
def test_every_path_begins_in_the_folder_in_which_it_was_typed(butler: Butler, list_: str) -> None:
    """W-025, W-026, W-036; a list that is not there is meant in the workspace."""
    (butler.repo / "TODO.md").write_text(PLAN)
    butler.plays(TICK)
    words = ("--cd", "repo", "--todo-file", list_, "--state-file", "state.json")
    assert butler("Go through TODO.md.", *AUTO, *words, cwd=butler.home.root).code == 5
    state = json.loads((butler.home.root / "state.json").read_text())
    assert state["todo"]["path"] == "TODO.md"


def test_what_the_next_commands_promise_is_what_they_show(butler: Butler) -> None:
    """W-039, W-053: the last message by `status`, and a file that is new by git."""
    butler.plays(WORK, DONE)
    ended = butler("Write it.", *AUTO).out
    assert "how it stands, and where the last message is" in ended
    shown = butler.shown("status", "--human", "--loop-id", "night")
    assert "2 of 30" in shown
    [path] = re.findall("Last message +(.+)", shown)
    assert (butler.repo / path).read_text() == GIVEN
    [command] = re.findall("(git .+?) {2}", ended)
    assert "work.txt" in subprocess.run(command.split(), cwd=butler.repo, capture_output=True, text=True).stdout


def test_bydawn_stops_it_as_well_and_its_file_says_so(butler: Butler) -> None:
    """W-075."""
    butler.plays(WORK)
    butler("Write it.", "--max-iterations", "1", *AUTO)
    assert butler.home.bydawn("stop", "night").code == 0
    assert butler.state()["status"] == "canceled"


def test_cleaning_up_removes_what_was_written_and_nothing_else(butler: Butler) -> None:
    """W-040, W-060, X-27."""
    butler.plays(WORK)
    butler("Write it.", "--max-iterations", "2", *AUTO)
    folder = butler.repo / LOOPS / "night"
    (folder / "notes.md").write_text("mine")
    (folder / "last_message_iter_9.txt").write_text("mine")
    (folder / "events_iter_1.jsonl").unlink()
    (folder / "events_iter_1.jsonl").symlink_to(butler.repo / "README.md")
    before = {path: data for path, data in tree_of(butler.repo).items() if not path.startswith(".codex")}
    assert butler("cancel", "--loop-id", "night", "--cleanup-artifacts").code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "events_iter_1.jsonl",
        "last_message_iter_9.txt",
        "notes.md",
    ]
    assert not folder.with_suffix(".json").exists()
    (folder / "last_message_iter_1.txt").write_text("mine, and later")
    assert "0 files were removed" in butler("cancel", "--loop-id", "night", "--cleanup-artifacts").out
    assert (folder / "last_message_iter_1.txt").exists()
    after = {path: data for path, data in tree_of(butler.repo).items() if not path.startswith(".codex")}
    assert after == before
    assert butler.status()["status"] == "canceled", "the ledger remembers"
    (folder / "last_message_iter_2.txt").unlink(missing_ok=True)
    shown = butler.shown("status", "--human", "--loop-id", "night")
    assert "State file" not in shown and "Last message" not in shown, "they are gone"
    assert "Artifacts" in shown, "there is still something in it"


@pytest.mark.parametrize("path", [f"{LOOPS}/night.json", f"{LOOPS}/night/summary.json"])
def test_what_somebody_wrote_into_a_file_of_ours_is_not_cleaned_away(butler: Butler, path: str) -> None:
    """W-060."""
    butler.plays(DONE)
    butler("Write it.", *AUTO, "--jsonl-events", "all.jsonl")
    edited = json.dumps({**json.loads((butler.repo / path).read_text()), "my notes": "three hours"})
    (butler.repo / path).write_text(edited)
    cleaned = butler("cancel", "--loop-id", "night", "--cleanup-artifacts")
    assert (cleaned.code, "3 files were removed" in cleaned.out) == (0, True), cleaned
    assert (butler.repo / path).read_text() == edited
    kept = re.findall(r"^  left: (\S+) \((.+)\)$", cleaned.out, re.MULTILINE)
    assert kept == [
        (path, "it does not say what was written last"),
        ("all.jsonl", "it grew, and may be others' as well"),
    ]


@pytest.mark.parametrize("path", ["night.json", "night/summary.json"])
def test_what_a_person_wrote_into_our_file_survives_canceling_a_loop(butler: Butler, path: str) -> None:
    """W-060: canceling writes to the file once more."""
    butler.plays(WORK)
    butler("Write it.", "--max-iterations", "2", *AUTO)
    file = butler.repo / LOOPS / path
    file.write_text(
        edited := file.read_text().replace("Work", "My work").replace("{", '{"my notes": "three hours",', 1)
    )
    cleaned = butler("cancel", "--loop-id", "night", "--cleanup-artifacts")
    assert (cleaned.code, f"left: {file.relative_to(butler.repo)}" in cleaned.out) == (0, True), cleaned
    assert file.read_text() == edited


@pytest.mark.parametrize("end", ["completed", "killed", "interrupted", "blocked", "still at work"])
def test_however_it_ended_nothing_of_it_is_left_when_it_is_cleaned_up(butler: Butler, end: str) -> None:
    """W-040, W-060: what was written last is known, whoever wrote it."""
    last = {"completed": DONE, "blocked": {"reply": "## BLOCKED\n\nThe key is missing."}}.get(end, {"sleep": 60})
    butler.plays(WORK, last)
    hook = butler.home.root / "home/.config/bydawn/config.toml"
    hook.parent.mkdir(parents=True)
    hook.write_text('on_complete = "echo done"\n')
    process = butler.start("Write it.", *AUTO)
    wait_for(lambda: len(butler.calls) == 2)
    if end == "killed":
        kill_both(process.pid)
        process.wait()
    elif end == "interrupted":
        process.send_signal(signal.SIGINT)
    if end not in ("killed", "still at work"):
        said(process)
    cleaned = butler("cancel", "--loop-id", "night", "--cleanup-artifacts")
    assert (cleaned.code, "left:" in cleaned.out) == (0, False), cleaned
    assert [*tree_of(butler.repo / LOOPS)] == []


def test_what_cannot_be_removed_is_said(butler: Butler) -> None:
    """W-060: as somebody who may not, which root may be all the same."""
    butler.plays(DONE)
    assert butler("Write it.", *AUTO).code == 0
    (butler.repo / LOOPS / "night").chmod(0o555)
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()
    cleaned = butler("cancel", "--loop-id", "night", "--cleanup-artifacts", before=drop)
    (butler.repo / LOOPS / "night").chmod(0o755)
    assert (cleaned.code, "1 file was removed" in cleaned.out) == (1, True), cleaned
    stuck = f"not removed: {LOOPS}/night/summary.json (Permission denied)"
    assert (stuck in cleaned.out, is_error(cleaned.err)) == (True, True), cleaned
    assert ("left:" in cleaned.out, "3 files of this loop could not" in cleaned.err) == (False, True)


def test_cleaning_up_leaves_the_file_of_another_loop_with_the_same_id(butler: Butler) -> None:
    """W-057, W-060: the very same path, in another folder's name."""
    butler.plays(DONE)
    shared, other = str(butler.home.root / "sum.json"), butler.home.root / "other"
    a_repository(other, "another")
    for folder in (butler.repo, other):
        butler.plays(DONE)
        assert butler("Write it.", *AUTO, "--cd", str(folder), "--summary-json", shared).code == 0
    cleaned = butler("cancel", "--loop-id", "night", "--cleanup-artifacts")
    assert (cleaned.code, f"left: {shared}" in cleaned.out) == (0, True), cleaned
    assert json.loads(Path(shared).read_text())["workspace_root"] == str(other)
    assert butler("cancel", "--loop-id", "night", "--cd", str(other), "--cleanup-artifacts").code == 0
    assert not Path(shared).exists()


def test_a_loop_of_another_folder_is_out_of_reach(butler: Butler) -> None:
    """W-057: the same id may stand for two loops in two folders."""
    butler.plays(WORK)
    butler("Write it.", "--max-iterations", "1", *AUTO)
    other = butler.home.root / "other"
    a_repository(other, "another")
    for command in ("status", "resume", "cancel"):
        refused = butler(command, "--loop-id", "night", "--cd", str(other))
        assert (refused.code, f"--cd {butler.repo}" in refused.err) == (2, True), refused
    assert butler.state()["status"] == "stopped_max_iterations"


YOURS = {
    "a message of another's": "messages/last_message_iter_1.txt",
    "a stream of another's": "messages/events_iter_7.jsonl",
}


@pytest.mark.parametrize("path", YOURS.values(), ids=YOURS)
def test_files_that_are_there_already_are_not_taken_over(butler: Butler, path: str) -> None:
    """W-034, W-060."""
    butler.plays(DONE)
    (butler.repo / "messages").mkdir()
    (butler.repo / path).write_text("mine")
    refused = butler("Write it.", *AUTO, "--last-message-dir", "messages")
    assert (refused.code, "is a file of yours" in refused.err) == (2, True), refused
    assert (butler.repo / path).read_text() == "mine"


@pytest.mark.parametrize("flag", ["--state-file", "--summary-json", "--jsonl-events"])
@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_what_is_no_plain_file_is_left_alone(butler: Butler, flag: str, kind: str) -> None:
    """W-025, W-033, W-035: nobody waits for a reader, and nothing of a person's is replaced."""
    butler.plays(DONE)
    path = butler.home.root / "odd"
    os.mkfifo(path) if kind == "fifo" else path.symlink_to(butler.home.root / "nowhere")
    refused = butler("Write it.", *AUTO, flag, str(path))
    assert refused.code == 2, refused
    assert os.path.lexists(path)
    assert not path.is_file()


def test_a_gitignore_of_a_persons_own_stays(butler: Butler) -> None:
    path = butler.repo / ".codex/waylon-smithers/.gitignore"
    path.parent.mkdir(parents=True)
    path.write_text("# mine\n")
    butler.plays(DONE)
    assert butler("Write it.", *AUTO).code == 0
    assert path.read_text() == "# mine\n"


def test_a_loop_is_never_overwritten_by_another(butler: Butler) -> None:
    """W-024, W-057."""
    butler.plays(WORK)
    butler("Write it.", "--max-iterations", "1", *AUTO)
    before = tree_of(butler.repo)
    refused = butler("Another.", *AUTO)
    assert (refused.code, is_error(refused.err), "status --loop-id night" in refused.err) == (2, True, True)
    assert "resume --loop-id night" in butler.shown("status", "--human", "--loop-id", "night")
    mine = butler("Another.", "--full-auto", "--loop-id", "new", "--summary-json", "README.md")
    assert (mine.code, "README.md is not ours to write" in mine.err) == (2, True)
    assert tree_of(butler.repo) == before


TAKEN_BACK = {
    "the summary": ("--summary-json", "report.json", "report.json"),
    "the state": ("--state-file", "state.json", "state.json"),
    "the events": ("--jsonl-events", "all.jsonl", "all.jsonl"),
    "a message": ("--last-message-dir", "said", "said/last_message_iter_2.txt"),
    "one that was there": ("--last-message-dir", "said", "said/last_message_iter_1.txt"),
}


@pytest.mark.parametrize(("flag", "path", "mine"), TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_going_on_overwrites_nothing_that_has_become_a_persons(butler: Butler, flag: str, path: str, mine: str) -> None:
    """W-025, W-033, W-034, W-035, W-041."""
    butler.plays(WORK)
    assert butler("Write it.", *AUTO, "--max-iterations", "1", flag, path).code == 4
    assert butler("cancel", "--loop-id", "night", "--cleanup-artifacts").code == 0
    (butler.repo / mine).unlink(missing_ok=True)
    _commit(butler.repo, mine, '{"mine": 1}\n')
    refused = butler("resume", "--loop-id", "night", "--max-iterations", "2")
    assert (refused.code, mine in refused.err, is_error(refused.err)) == (2, True, True), refused
    assert len(butler.calls) == 1
    (butler.repo / mine).unlink()
    assert butler("resume", "--loop-id", "night", "--max-iterations", "2").code == 4


def test_whoever_goes_on_with_it_or_ends_it_a_persons_file_stays(butler: Butler) -> None:
    """W-025, W-075: by bydawn's own commands as well."""
    butler.plays(WORK)
    assert butler("Write it.", *AUTO, "--max-iterations", "1", "--state-file", "state.json").code == 4
    _commit(butler.repo, "state.json", '{"loop_id": "mine"}\n')
    refused = butler.home.bydawn("resume", "night", "--rounds", "2")
    assert (refused.code, "state.json is a file of yours" in refused.err, len(butler.calls)) == (2, True, 1), refused
    assert butler("cancel", "--loop-id", "night").code == 0
    assert (butler.repo / "state.json").read_text() == '{"loop_id": "mine"}\n'


def test_what_the_agent_committed_along_is_still_ours(butler: Butler) -> None:
    """W-041: a commit of everything takes our files along, and going on needs nobody's help."""
    butler.plays(WORK)
    words = ("--state-file", "state.json", "--summary-json", "sum.json", "--last-message-dir", "said")
    assert butler("Write it.", *AUTO, *words, "--jsonl-events", "all.jsonl", "--max-iterations", "1").code == 4
    for command in (("add", "-A"), ("commit", "-qm", "all of it")):
        subprocess.run(["git", *ME, *command], cwd=butler.repo, check=True, capture_output=True)
    assert butler("resume", "--loop-id", "night", "--max-iterations", "2").code == 4


def test_a_loop_of_another_program_is_refused_and_nothing_of_it_is_touched(butler: Butler) -> None:
    """W-008, W-039, W-040, W-041, W-060, W-101: whatever its file says; a new one can begin beside it."""
    butler.plays({**DONE, "reply": GIVEN})
    path = butler.repo / LOOPS / "night.json"
    path.parent.mkdir(parents=True)
    for text in (json.dumps({**json.loads(EXAMPLE), "loop_id": "night"}), '{"loop_id": "$(touch X)\x1b[2J"}', "{"):
        path.write_text(text)
        before = tree_of(butler.repo)
        for words in (("status",), ("resume",), ("cancel",), ("Write it.", "--full-auto")):
            refused = butler(*words, "--loop-id", "night")
            assert (refused.code, is_error(refused.err), "--loop-id night-2" in refused.err) == (2, True, True), refused
            assert "the loop night is another program's" in refused.err
        assert "No loops" in butler("list").out
        assert (tree_of(butler.repo), butler.calls) == (before, [])
    assert butler("Write it.", "--full-auto", "--loop-id", "night-2").code == 0
    assert path.read_text() == "{"


def test_a_cap_that_is_used_up_already_is_refused(butler: Butler) -> None:
    """W-041."""
    butler.plays(WORK)
    butler("Write it.", "--max-iterations", "2", *AUTO)
    refused = butler("resume", "--loop-id", "night", "--max-iterations", "1")
    assert (refused.code, "--max-iterations 12" in refused.err) == (2, True)


def test_help_as_a_value_is_a_value(butler: Butler) -> None:
    """W-022."""
    butler.plays({**WORK, "reply": "--help"})
    assert butler("Write it.", "--promise-mode", "plain", "--completion-promise=--help", *AUTO).code == 0
    assert re.fullmatch(r"waylon-smithers \d+\.\d+\.\d+\n", butler("--version").out)


def test_helpers_are_written_once_and_never_over_a_persons_own(butler: Butler) -> None:
    """W-015, W-120."""
    skill = butler.repo / ".codex/skills/waylon-smithers/SKILL.md"
    custom = butler.home.root / "home/.codex/prompts/waylon-smithers.md"
    installed = butler("install-helpers")
    assert (installed.code, "no longer reads" in installed.out) == (0, True)
    assert skill.read_text().startswith("---\nname: waylon-smithers\n")
    assert "TASK_COMPLETE" in custom.read_text()
    assert butler("install-helpers").code == 0
    custom.unlink()
    skill.write_text("mine")
    refused = butler("install-helpers")
    assert (refused.code, skill.read_text(), custom.exists()) == (2, "mine", False)
    assert butler("install-helpers", "--force").code == 0
    assert custom.exists()
    assert "name: waylon-smithers" in skill.read_text()
    assert skill.with_name("SKILL.original.md").read_text() == "mine"


@pytest.mark.parametrize("place", [".codex/skills/waylon-smithers", ".codex"])
def test_helpers_that_cannot_be_written_are_said_to_need_room(butler: Butler, place: str) -> None:
    """W-120: nobody has chosen those paths, and none can be given."""
    (butler.repo / place).parent.mkdir(parents=True, exist_ok=True)
    (butler.repo / place).write_text("in the way")
    refused = butler("install-helpers")
    assert (refused.code, "another path" in refused.err, "clear the way" in refused.err) == (2, False, True), refused
    assert not (butler.home.root / "home/.codex").exists()


def test_a_folder_of_codex_that_depends_on_where_one_is_gets_no_helper(butler: Butler) -> None:
    """W-120: the prompt would become a file of the project."""
    before = tree_of(butler.repo)
    refused = butler("install-helpers", CODEX_HOME="codex")
    assert (refused.code, f"export CODEX_HOME={butler.repo}/codex" in refused.err) == (2, True), refused
    assert tree_of(butler.repo) == before


# -- what should not work ----------------------------------------------------------------------------------------------

WRONG = {
    "no such option": (["Write it.", "--bogus"], "--bogus"),
    "no such mode": (["Write it.", "--promise-mode", "loud"], "loud"),
    "no number": (["Write it.", "--max-iterations", "many"], "many"),
    "no room": (["Write it.", "--max-iterations", "0"], "makes no sense"),
    "no end": (["Write it.", "--max-iterations", "9" * 20], "makes no sense"),
    "no model": (["Write it.", "--model", " "], "--model is empty"),
    "one file for two": (["Write it.", "--state-file", "x.json", "--summary-json", "./x.json"], "two files"),
    "a folder for a file": (["Write it.", "--summary-json", "folder"], "is a folder"),
    "no prompt": (["--full-auto"], "no prompt is given"),
    "a blank prompt": ([" "], "no prompt is given"),
    "no pattern": (["Write it.", "--promise-mode", "regex", "--completion-promise", "("], "regular expression"),
    "no promise": (["Write it.", "--completion-promise", ""], "empty"),
    "no list": (["Write it.", "--todo-file", "NONE.md"], "NONE.md"),
    "no folder": (["Write it.", "--cd", "nowhere"], "nowhere"),
    "no folder at all": (["Write it.", "--cd="], "--cd is empty"),
    "no id": (["status", "--loop-id="], "--loop-id is empty"),
    "a list elsewhere": (["Write it.", "--todo-file", "../TODO.md"], "is not in the workspace"),
    "no such loop": (["resume", "--loop-id", "nobody"], "nobody"),
    "an odd id": (["Write it.", "--loop-id", "../x"], "is not a valid loop name"),
    "a file for a folder": (["Write it.", "--last-message-dir", "README.md"], "README.md"),
    "a command too late": (["--cd", ".", "status"], "comes first"),
    "a promise like an option": (["Write it.", "--promise-mode", "regex", "--completion-promise", ".*"], "matches"),
    "a long name": (["Write it.", "--state-file", "x" * 250], "too long"),
    "a file of git's": (["Write it.", "--jsonl-events", ".git/HEAD.jsonl"], "not ours to write"),
    "no value": (["status", "--loop-id"], "`waylon-smithers status --help`"),
    "no value for a start": (["Write it.", "--model"], "`waylon-smithers --help`"),
    "two words": (["Write", "it."], "it."),
}


@pytest.mark.parametrize(("words", "shown"), WRONG.values(), ids=WRONG)
def test_bad_input_changes_nothing_and_asks_nobody(butler: Butler, words: list[str], shown: str) -> None:
    """W-020."""
    butler.plays(DONE)
    (butler.repo / "folder").mkdir()
    before = tree_of(butler.home.root)
    refused = butler(*words)
    assert (refused.code, shown in refused.err) == (2, True), refused
    assert re.match(r"error: .+\n(cause: .+\n)? hint: .+\n", refused.err)
    assert {path for path in tree_of(butler.home.root) if "/.local/" not in path} == {
        path for path in before if "/.local/" not in path
    }
    assert butler.calls == []


def test_a_link_that_a_repository_brings_leads_nowhere(butler: Butler) -> None:
    """W-101: nothing is written outside of the workspace."""
    outside = butler.home.root / "outside"
    outside.mkdir()
    (butler.repo / ".codex").symlink_to(outside)
    butler.plays(DONE)
    refused = butler("Write it.", *AUTO)
    assert (refused.code, "leads through a link" in refused.err) == (2, True)
    assert tree_of(outside) == {}


def test_a_draft_that_a_killed_worker_left_is_no_work_and_does_not_stay(butler: Butler) -> None:
    """W-055, W-101: wherever it was written to."""
    _commit(butler.repo, ".report.json.tmp", "precious\n")
    words = ("--summary-json", "report.json", "--state-file", "deep/state.json", "--last-message-dir", "said")
    butler.plays({"sleep": 60, "reply": "x"}, {"reply": "Thinking."})
    process = butler.start("Write it.", *AUTO, *words)
    wait_for(lambda: butler.calls)
    kill_both(process.pid)
    process.wait()
    loop = msgspec.json.decode((butler.home.folder("night") / "loop.json").read_bytes(), type=Loop)
    drafts = [butler.repo / folder / draft(loop, 7) for folder in ("", "deep", "said")]
    (butler.repo / "said").mkdir()
    for path in drafts:
        path.write_text("half of")
    resumed = butler("resume", "--loop-id", "night")
    assert resumed.code == 3, resumed
    assert not any(path.exists() for path in drafts)
    for path in drafts:
        path.write_text("half of")
    assert butler("cancel", "--loop-id", "night", "--cleanup-artifacts").code == 0
    assert not any(path.exists() for path in drafts)
    assert (butler.repo / ".report.json.tmp").read_text() == "precious\n"


def test_an_agent_that_forges_the_state_file_is_not_believed(butler: Butler) -> None:
    """W-055: views are never read back."""
    forged = json.dumps({"status": "completed", "iteration": 99})
    butler.plays({"write": {f"{LOOPS}/night.json": forged}, "reply": "Done, see the state."}, WORK, DONE)
    assert butler("Write it.", "--sandbox", "danger-full-access", "--loop-id", "night").code == 0
    assert (len(butler.calls), butler.state()["iteration"]) == (3, 3)


# Fit for `bydawn run`, each of them; the loops of another tool know nothing of it.
OTHERWISE = {
    "checkpoint": "'HARD STOP'",
    "tasks": "'TODO.md'",
    "model": "'opus'",
    "profile": "'slow'",
    "effort": "'max'",
    "agent": "['claude', 'codex']",
    "agent_args": "['--betas', 'x']",
    "agent_json": "['text=message.content']",
    "agent_commits": "true",
    "prompt": "'@GOAL.md'",
    "template": "'TEMPLATE.md'",
    "progress": "'NOTES.md'",
    "opinions": "'OPINIONS.md'",
    "sandbox": "'full'",
    "session": "'fresh'",
    "rounds": "1",
    "done_when": "'NEVER'",
    "done_mode": "'regex'",
    "on_interrupt": "'finish'",
    "max_failures": "1",
}


@pytest.mark.parametrize("lines", [[f"{key} = {value}" for key, value in OTHERWISE.items()], []], ids=["set", "unset"])
def test_what_a_person_set_for_other_loops_makes_no_difference(butler: Butler, lines: list[str]) -> None:
    """W-007, W-036, W-090: the document's defaults hold, and nothing of this breaks a start."""
    config = butler.home.root / "home/.config/bydawn/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("\n".join(lines))
    butler.plays(WORK, DONE)
    ended = butler("Write it.", *AUTO)
    assert ended.code == 0, ended
    assert butler.state()["todo"]["path"] is None
    assert butler.state()["todo"]["hard_stop_token"] is None
    for call in butler.calls:
        assert {"-m", "-p", "--betas", "opus"}.isdisjoint(call["argv"])
        assert ("workspace-write", "NOTES.md" in call["prompt"]) == (call["sandbox"], False)
        assert "model_reasoning_effort" not in " ".join(call["argv"])
    loop = json.loads((butler.home.folder("night") / "loop.json").read_text())
    assert not {"model", "effort", "progress", "opinions", "agent_commits"} & {key for key in loop if loop[key]}


def test_a_budget_in_dollars_is_refused_where_it_stands(butler: Butler) -> None:
    """W-012: somebody relies on it, and Codex does not say what it costs."""
    config = butler.home.root / "home/.config/bydawn/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("budget = '5usd'\n")
    butler.plays(DONE)
    refused = butler("Write it.", *AUTO)
    assert (refused.code, "config.toml:1" in refused.err, "--budget" in refused.err) == (2, True, False), refused
    assert "BYDAWN_BUDGET=2Mtok waylon-smithers" in refused.err
    assert butler("Write it.", *AUTO, BYDAWN_BUDGET="2Mtok").code == 0


def test_a_start_that_is_refused_leaves_no_name_behind(butler: Butler) -> None:
    """W-024: the name was reserved by a folder, and nothing came of the loop."""
    (butler.repo / "bydawn.toml").write_text('check = ["true"]\n')
    butler.plays(DONE)
    refused = butler("Write it.", "--full-auto")
    assert "is not trusted" in refused.err
    assert "--no-project" not in refused.err  # which this command does not have
    terminal = Terminal(butler.home, "Write it.", "--full-auto", command="waylon-smithers")
    terminal.see("Do you trust this?")
    terminal.type("\x03")
    assert terminal.end().code == 130
    assert [*butler.home.states.glob("loops/repo-*/*")] == []
    (butler.repo / "bydawn.toml").unlink()
    assert butler("Write it.", "--full-auto").code == 0
    assert len([*butler.home.states.glob("loops/repo-*/*/ledger.jsonl")]) == 1


def test_its_loops_are_found_where_the_persons_own_settings_keep_them(butler: Butler) -> None:
    """W-039."""
    butler.plays(WORK)
    butler.home.env["BYDAWN_STATE_DIR"] = str(butler.home.root / "elsewhere")
    assert butler("Write it.", "--max-iterations", "1", *AUTO).code == 4
    assert butler.status()["status"] == "stopped_max_iterations"
    assert butler("resume", "--loop-id", "night", "--max-iterations", "2").code == 4


# -- what a person, or a later loop, has put in a loop's place ---------------------------------------------------------

ENDS: dict[str, Callable[["Butler"], Said]] = {
    "cancel": lambda butler: butler("cancel", "--loop-id", "night"),
    "stop": lambda butler: butler.home.bydawn("stop", "night"),
    "tell": lambda butler: butler.home.bydawn("tell", "night", "go on"),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_whatever_is_said_to_a_loop_that_stands_still_overwrites_nothing(
    butler: Butler, end: Callable[[Butler], Said]
) -> None:
    """W-033, W-034, W-040."""
    butler.plays(WORK)
    words = ("--last-message-dir", "said", "--jsonl-events", "all.jsonl")
    assert butler("Write it.", *AUTO, "--max-iterations", "2", *words).code == 4
    (butler.repo / "said/last_message_iter_2.txt").write_text("MY NOTES\n")
    (butler.repo / "all.jsonl").write_text("mine\n")
    assert end(butler).code == 0
    assert (butler.repo / "said/last_message_iter_2.txt").read_text() == "MY NOTES\n"
    assert (butler.repo / "all.jsonl").read_text() == "mine\n"


@pytest.mark.parametrize("before", [(), ("cancel", "--loop-id", "night")], ids=["standing", "canceled"])
def test_cleaning_up_leaves_what_a_later_loop_has_written_there(butler: Butler, before: tuple[str, ...]) -> None:
    """W-008, W-040: even if both say the same."""
    butler.plays(WORK)
    words = ("--full-auto", "--max-iterations", "1", "--last-message-dir", "said")
    assert butler("Write it.", "--loop-id", "night", *words).code == 4
    shutil.rmtree(butler.repo / "said")
    assert butler("Write it.", "--loop-id", "dawn", *words).code == 4
    if before:
        assert butler(*before).code == 0
    was = tree_of(butler.repo / "said")
    cleaned = butler("cancel", "--loop-id", "night", "--cleanup-artifacts")
    assert (cleaned.code, "dawn, which began later" in cleaned.out) == (0, True), cleaned
    assert tree_of(butler.repo / "said") == was


def test_a_loop_killed_in_its_first_iteration_gets_the_summary_that_another_left(butler: Butler) -> None:
    """W-006, W-035."""
    butler.plays(DONE)
    assert butler("Write it.", "--full-auto", "--loop-id", "one", "--summary-json", "report.json").code == 0
    butler.plays({"sh": "sleep 60"})
    running = butler.start("Go on.", "--full-auto", "--loop-id", "two", "--summary-json", "report.json")
    wait_for(lambda: len(butler.calls) > 1)
    kill_both(running.pid)
    running.wait()
    wait_for(lambda: not butler.home.alive() or butler.home.bydawn("stop", "two"))
    butler.plays(WORK)
    for cap in ("2", "3"):
        gone_on = butler("resume", "--loop-id", "two", "--max-iterations", cap)
        assert (gone_on.code, "cannot be written" in gone_on.out + gone_on.err) == (4, False), gone_on
    assert json.loads((butler.repo / "report.json").read_text())["loop_id"] == "two"


def test_a_loop_that_an_older_version_wrote_for_goes_on(butler: Butler) -> None:
    """W-041: summaries did not always say where, and no digest of them was kept."""
    butler.plays(WORK)
    assert butler("Write it.", *AUTO, "--max-iterations", "1").code == 4
    path = butler.repo / LOOPS / "night/summary.json"
    said_ = json.loads(path.read_text())
    del said_["workspace_root"]
    path.write_text(json.dumps(said_))
    noted = butler.home.folder("night") / "written.json"
    noted.write_text(json.dumps([f"{LOOPS}/night.json", f"{LOOPS}/night/summary.json"]))
    assert butler("resume", "--loop-id", "night", "--max-iterations", "2").code == 4
    assert len(butler.summary()["iterations"]) == 2
    assert f"{LOOPS}/night/last_message_iter_2.txt" in json.loads(noted.read_text())


def test_a_file_that_only_begins_like_ours_is_in_nobodys_way(butler: Butler) -> None:
    """W-034."""
    (butler.repo / "said").mkdir()
    _commit(butler.repo, "said/last_message_iter_1_notes.txt", "mine\n")
    butler.plays(WORK)
    assert butler("Write it.", *AUTO, "--max-iterations", "1", "--last-message-dir", "said").code == 4


def test_a_list_that_cannot_be_read_is_no_place_to_approve_anything(butler: Butler) -> None:
    """W-058, X-22."""
    (butler.repo / "TODO.md").write_text(PLAN)
    butler.plays(TICK, TICK, {**TICK, "reply": GIVEN})
    assert butler("Go through TODO.md.", *TODO).code == 5
    (butler.repo / "TODO.md").rename(butler.repo / "X")
    assert butler("resume", "--loop-id", "night").code == 3
    (butler.repo / "TODO.md").write_text("- [x] one\n- [ ] new\n\n## HARD STOP: look\n\n- [ ] two\n")
    assert butler("resume", "--loop-id", "night").code == 5
    assert "- [ ] two" in (butler.repo / "TODO.md").read_text()
