"""strict-agent-loop from the outside: its scripts and its supervisor, with Codex played and with files compared."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bydawn.cli.dialects import FURTHER
from driving import Home, Said, kill_both, said, tree_of, wait_for
from program.hailstone import NUMBERS, STEPS
from program.strict import CHECK, DONE, LINES, SCRIPTS, STEP, Json, Strict
from program.terminal_driver import answered

NINE = (
    "registry.json",
    "tasks/smoke/state.json",
    "tasks/smoke/events.jsonl",
    "tasks/smoke/iterations.jsonl",
    "tasks/smoke/status-history.jsonl",
    "tasks/smoke/latest-status.txt",
    "tasks/smoke/latest-stop-report.json",
    "tasks/smoke/run-summary.md",
    "tasks/smoke/rounds/iteration-0001.md",
)


@pytest.fixture
def strict(home: Home) -> Strict:
    return Strict(home)


def pythons() -> list[str]:
    """Every Python of this machine that the scripts promise to run on: one of each version, by its own path."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [*root.glob("versions/*/bin"), *map(Path, os.environ["PATH"].split(":")), Path(sys.executable).parent]
    found = (path for place in places if place.name != "shims" for path in place.glob("python3.*"))
    named = {path.name: str(path) for path in found if re.fullmatch(r"python3\.(?:[89]|\d\d)", path.name)}
    return [named[name] for name in sorted(named, key=lambda name: int(name.partition(".")[2]))]


# -- the scripts, one after the other ----------------------------------------------------------------------------------


@pytest.mark.parametrize("python", pythons(), ids=lambda path: Path(path).name)
def test_the_smoke_sequence_of_the_original(home: Home, python: str) -> None:
    """S-002, S-010, S-011, S-012, S-017, S-030, S-046: its own CI's, command by command, in a folder without git."""
    strict = Strict(home, "smoke")
    shutil.rmtree(strict.repo / ".git")
    marker = strict.repo / "done.txt"

    def script(name: str, *words: str) -> str:
        ended = strict.script(name, *words, python=python)
        assert ended.code == 0, (name, ended)
        return ended.out

    state, place = ("--state", str(strict.state_path)), ("--workspace-root", str(strict.repo), "--task-id", "smoke")
    contract = ("--goal", "the scripts work together", "--global-stop-condition", "done.txt says done", *place)
    checks = ("--require-path", "done.txt", "--require-text", "done.txt::done")
    made = json.loads(script("init_state", *contract, "--success-evidence", "check_stop.py says success", *checks))
    assert [*made] == [
        *("state", "task_id", "task_root_dir", "manager_dir", "registry_path", "status", "operating_mode"),
    ]
    assert (made["state"], made["task_id"], made["status"]) == (str(strict.state_path), "smoke", "running")
    assert "smoke" in script("list_tasks", *place[:2])
    assert "done.txt says done" in script("show_task", *place)
    data = {"iteration": "1", "task": "the first", "local_done_condition": "it is recorded"}
    data |= {"global_stop_condition": "done.txt says done", "stop_after_this_round": "the stop checks pass"}
    words = ("--kind", "round.started", "--message", "Iteration 1", *(f"--data={key}={data[key]}" for key in data))
    event = json.loads(script("append_event", *state, *words))
    assert (event["kind"], event["message"], event["data"]) == ("round.started", "Iteration 1", data)
    by = ("--agent-id", "executor", "--executor-inherited-context")
    first = ("--task", "task 1", *DONE, "--announcement", "Iteration 1", "--next-task", "the marker", *by)
    updated = [json.loads(script("update_state", *state, *first))]
    marker.write_text("done\n")
    proof = ("--announcement", "Iteration 2", "--artifact", str(marker), "--evidence", str(marker), "--stop-met")
    updated.append(json.loads(script("update_state", *state, "--task", "task 2", *DONE, *proof)))
    assert [*updated[0]] == ["state", "iteration", "status", "no_progress_rounds", "round_summary_path"]
    assert [each["iteration"] for each in updated] == [1, 2]
    report = json.loads(script("check_stop", *state))
    assert (report["should_stop"], report["success"], report["exit_code"]) == (True, True, 0)
    assert "Iterations completed: 2" in script("report_status", *state, "--label", "compat.smoke")
    assert [line["label"] for line in strict.lines("status-history.jsonl")][-1] == "compat.smoke"
    compact = json.loads(script("compact_state", *state, "--keep-last", "1"))
    assert [*compact] == ["state", "history_entries", "snapshot_chars"]
    assert compact["history_entries"] == 1
    assert [
        name for name in (*NINE, "tasks/smoke/rounds/iteration-0002.md") if not (strict.root / name).is_file()
    ] == []
    assert (strict.registry["tasks"]["smoke"]["iteration"], strict.state["status"]) == (2, "completed")
    assert [entry["task"] for entry in strict.entries] == ["task 1", "task 2"], "compaction leaves them alone"
    strict.has_no_gap()


def test_what_is_recorded_after_the_end_changes_nothing_that_was_decided(strict: Strict) -> None:
    """S-030, S-046."""
    strict.init("--require-path", "done.txt", mode="interactive")
    assert strict.records().code == 0
    (strict.repo / "done.txt").touch()
    git = subprocess.check_output(["git", "status", "--porcelain"], cwd=strict.repo, text=True)
    assert git == "?? done.txt\n", "bookkeeping is ignored by git"
    assert strict.here("check-stop").code == 0
    assert strict.here("append-event", "--kind", "note", "--message", "one more").code == 0
    for words in ((), ("--stop-met",)):
        assert json.loads(strict.records(*words).out)["status"] == "completed"
    refused = strict.records("--status", "blocked")
    assert (refused.code, "hail is completed already" in refused.err, "--force" in refused.err) == (2, True, True)
    assert (strict.here("check-stop").code, strict.state["status"]) == (0, "completed")
    assert (len(strict.entries), len(strict.events("loop.completed"))) == (3, 1)
    strict.has_no_gap()


def test_a_task_that_has_begun_is_not_taken_again(strict: Strict) -> None:
    """S-014, S-016, S-047: an id from the goal, in a place that no one is asked for; checks can come after the task."""
    goal = ("--goal", "Fix the parser: nested lists, please!", "--global-stop-condition", "it parses")
    named = json.loads(strict("init-state", "--workspace-root", ".", *goal).out)
    assert re.fullmatch(r"\d{14}-Fix-the-parser--nested-lists--pl", named["task_id"]), named
    assert named["state"] == str(strict.root / "tasks" / named["task_id"] / "state.json")
    strict.init()
    more = ("init-state", "--workspace-root", ".", "--task-id", "hail", "--stop-command")
    assert strict(*more, "false").code == 0
    assert strict(*more, "test -e numbers.txt").code == 0
    assert strict(*more, "false").code == 0, "which is there already"
    assert [each["command"] for each in strict.state["stop_checks"]["commands"]] == ["false", "test -e numbers.txt"]
    assert strict.records().code == 0
    refused = strict(*more, "true")
    assert (refused.code, "it has begun" in refused.err, "--force" in refused.err) == (1, True, True), refused
    again = strict(*strict.new("--force"))
    assert (again.code, strict.state["counters"]["iteration"], strict.lines("iterations.jsonl")) == (0, 0, []), again
    kept = json.loads((strict.root / "tasks/hail.1/state.json").read_text())
    assert (kept["counters"]["iteration"], len(kept["stop_checks"]["commands"])) == (1, 2)


# -- hailstone, supervised ---------------------------------------------------------------------------------------------


def supervised(strict: Strict, *words: str) -> Said:
    strict.init("--stop-command", CHECK)
    return said(strict.supervise(*words))


def assert_done(strict: Strict, ended: Said) -> None:
    """All the numbers, one an iteration, and a machine says so."""
    assert ended.code == 0, ended
    assert tuple(strict.numbers) == NUMBERS
    assert len(strict.entries) == STEPS == strict.state["counters"]["iteration"]
    strict.has_no_gap()
    assert strict.state["status"] == strict.registry["tasks"]["hail"]["status"] == "completed"
    assert (strict.report["success"], strict.report["exit_code"]) == (True, 0)
    assert strict.home.status("hail")["state"] == "complete"
    assert strict.waiting == []


class Reader(threading.Thread):
    """Reads the files that grow in a tight loop, and keeps every whole line that is not one of JSON.

    A line is whole when its newline is there: what crosses a page of the file may be seen in two steps.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.torn, self.read, self.done = folder, list[bytes](), 0, False

    def run(self) -> None:
        seen = dict.fromkeys(LINES, 0)
        while not self.done:
            for name in LINES:
                path = self.folder / name
                data = path.read_bytes()[seen[name] :] if path.exists() else b""
                whole = data[: data.rfind(b"\n") + 1]
                self.torn += [line for line in whole.splitlines() if not (line[:6] == b'{"id":' and line[-1:] == b"}")]
                seen[name] += len(whole)
                self.read += len(whole)
            time.sleep(0.0002)

    def stop(self) -> None:
        self.done = True
        self.join()


def test_an_agent_that_records_through_the_scripts(strict: Strict) -> None:
    """S-002, S-012, S-013, S-021, S-030, S-031, S-035, S-040, S-041, S-047."""
    turns = [strict.round(count, "--event") for count in (5, 5, 5, 3)]
    strict.plays(*turns)
    reader = Reader(strict.folder)
    reader.start()
    ended = supervised(strict)
    reader.stop()
    assert_done(strict, ended)
    assert (reader.torn, reader.read > 5000) == ([], True)
    assert len(strict.prompts) == 4
    assert [entry["task"] for entry in strict.entries][:2] == ["compute number 1", "compute number 2"]
    assert strict.entries[-1]["task"] == "write the report"
    kinds = [event["kind"] for event in strict.events()]
    assert kinds.count("iteration.recorded") == STEPS
    assert len([event for event in strict.events("round.started") if event["message"] == "the next one"]) == STEPS
    invocation = "supervisor.invocation"
    assert [kinds.count(f"{invocation}.{word}") for word in ("started", "finished", "failed")] == [4, 4, 0]
    assert (kinds[0], kinds.count("loop.completed")) == ("loop.initialized", 1)
    assert len([*strict.folder.glob("rounds/iteration-00*.md")]) == STEPS
    for name in ("prompt.txt", "jsonl", "last.txt"):
        assert (strict.folder / f"supervisor/invocation-0004.{name}").stat().st_size
    assert all(str(strict.state_path) in prompt for prompt in strict.prompts), "the exact command line"
    assert all(fact["inside"] for fact in strict.facts("iteration.recorded"))
    # Deliverables and bookkeeping are never mixed.
    made = {path for path in tree_of(strict.repo) if not path.startswith(".codex-loop/")}
    assert made == {"README.md", "numbers.txt", "report.md"}
    assert not {path.name for path in strict.folder.rglob("*")} & {"numbers.txt", "report.md"}
    text = (strict.folder / "latest-status.txt").read_text()
    assert re.search(r"Iterations completed: +18\b", text), text
    assert re.search(r"Stop checks: +1/1 passed", text), text


def test_an_agent_that_never_records(strict: Strict) -> None:
    """S-030, S-041: each invocation counts as one iteration, whose result is the reply."""
    strict.plays({"sh": STEP, "reply": "One number more."})
    assert_done(strict, supervised(strict))
    assert len(strict.prompts) == STEPS
    assert {entry["result_summary"] for entry in strict.entries} == {"One number more."}


def test_an_agent_that_records_in_batches_is_found_out(strict: Strict) -> None:
    """S-002, S-033: recorded, marked, and said back."""
    same = ("--evidence", "all of it works")
    strict.plays(strict.round(7), strict.round(2, *same), strict.round(5), strict.round(4))
    assert_done(strict, supervised(strict))
    first = strict.facts("iteration.recorded")[:9]
    marks = [fact["batched"] for fact in first]
    before, last = (datetime.fromisoformat(fact["at"]) for fact in first[7:])
    at_once = last - before < timedelta(seconds=1)  # on a busy machine a script may take longer than that
    assert [bool(mark) for mark in marks] == [False] * 5 + [True] * 2 + [False, at_once], marks
    told = ["Iterations were recorded together" in prompt for prompt in strict.prompts]
    assert told == [False, True, at_once, False]


def test_an_agent_that_claims_to_be_done_too_early(strict: Strict) -> None:
    """S-033, S-046: neither its words nor a file that it edited are believed while the check fails."""
    claims = ("--stop-met", "--status", "completed", "--stop-reason", "everything is done")
    lie = """s/"status": "running"/"status": "completed"/; s/"max_iterations": 200/"max_iterations": 1/"""
    liar = strict.round(1, *claims)
    edit = shlex.join(["sed", "-i", lie, str(strict.state_path)])
    steps = "; ".join([STEP] * (STEPS - 1))
    strict.plays(liar, {"sh": edit, "reply": "It is done."}, {"sh": steps, "reply": "Now it is."})
    ended = supervised(strict)
    assert (ended.code, strict.state["status"], len(strict.entries)) == (0, "completed", 3), ended
    assert strict.entries[0]["stop_condition_met"] is True, "it is shown as it was claimed"
    assert len(strict.events("loop.completed")) == 1
    assert strict.state["limits"]["max_iterations"] == 200
    assert "1 of 17 numbers" in strict.prompts[1], "what the check said"
    assert ["recorded that all is done, and it is not" in prompt for prompt in strict.prompts] == [False, True, False]


LIMITS: dict[str, tuple[tuple[str, ...], tuple[str, ...], int]] = {
    "iterations": (("--max-iterations", "3"), (), 3),
    "invocations of this run": ((), ("--max-cycles", "2"), 2),
    "no progress": (("--max-no-progress-rounds", "2"), (), 2),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_end_it_without_success(strict: Strict, limit: str) -> None:
    """S-020, S-061, S-064."""
    init, supervise, count = LIMITS[limit]
    strict.plays({"reply": "I had a look."} if limit == "no progress" else {"sh": STEP, "reply": "More."})
    strict.init("--stop-command", CHECK, *init)
    ended = said(strict.supervise(*supervise))
    assert (ended.code, len(strict.prompts)) == (2, count), ended
    assert strict.state["status"] in ("failed", "blocked")
    assert (strict.report["success"], strict.report["exit_code"]) == (False, 2)
    assert strict.here("check-stop").code == 2
    if limit == "iterations":
        (again,) = re.findall(r"strict-agent-loop (supervise .*--max-iterations \d+)", ended.out)
        assert said(strict.start(*shlex.split(again), "--max-cycles", "1")).code == 2
        assert (len(strict.prompts), strict.state["limits"]["max_iterations"]) == (count + 1, 6), "the same command"


@pytest.mark.parametrize("word", ["blocked", "failed"])
def test_a_recorded_end_that_only_the_agent_can_know_stops_it(strict: Strict, word: str) -> None:
    """S-041: a blocker needs a person; the stop checks have nothing to say about it."""
    strict.plays(strict.round(1, "--status", word, "--stop-reason", "the key is missing"))
    ended = supervised(strict)
    assert (ended.code, len(strict.prompts), strict.state["status"]) == (2, 1, word), ended
    assert len(strict.events(f"loop.{word}")) == 1
    assert "the key is missing" in ended.out + ended.err
    assert " --prompt-note " in ended.out, "how to answer it"


def test_without_a_stop_check_a_recorded_stop_ends_it_unverified(strict: Strict) -> None:
    """S-046: reported as what it is."""
    strict.plays(strict.round(1), strict.round(1, "--stop-met"))
    strict.init()
    ended = said(strict.supervise())
    assert (ended.code, strict.state["status"], len(strict.prompts)) == (0, "completed", 2), ended
    assert "there is no stop check to verify that" in ended.out
    assert "there is no stop check to verify it" in strict.report["reasons"][0]
    assert strict.home.status("hail")["state"] == "unverified"
    again = said(strict.supervise())
    assert (again.code, "init-state" in again.out, len(strict.prompts)) == (0, True, 2), "a success stays one"


def test_two_supervisors_and_the_commands_of_bydawn(strict: Strict) -> None:
    """S-001, S-015: 8 for the second one; `bydawn` shows it; a person's record goes to the one that works."""
    strict.plays({"wait_for": "../gate", "sh": STEP, "reply": "One."})
    strict.init("--stop-command", "test -e numbers.txt")
    assert strict.home.status("hail")["state"] == "paused", "prepared"
    first = strict.supervise()
    wait_for(lambda: strict.prompts)
    second = said(strict.supervise())
    assert (second.code, "Traceback" in second.err) == (8, False), second
    outside = strict.here("append-event", "--kind", "note", "--message", "I am watching")
    assert (outside.code, len(strict.events("note")), strict.waiting) == (0, 1, []), outside
    (strict.home.root / "gate").touch()
    assert said(first).code == 0
    assert strict.home.status("hail")["state"] == "complete"


def test_an_interactive_task_is_nobodys_but_its_sessions(strict: Strict) -> None:
    """S-001, S-046: 1 for supervise, 2 for `bydawn`; its checks end it."""
    strict.init("--stop-command", "test -e done.txt", mode="interactive")
    strict.plays({"reply": "Nobody asks."})
    for code, ended in ((1, said(strict.supervise())), (2, strict.home.bydawn("resume", "hail"))):
        assert ended.code == code, ended
        assert "session" in ended.err, ended
    assert strict.prompts == []
    assert strict.records("--stop-met").code == 0
    assert strict.here("check-stop").code == 1
    (strict.repo / "done.txt").touch()
    assert strict.here("check-stop").code == 0
    assert (strict.state["status"], strict.home.status("hail")["state"]) == ("completed", "complete")


def test_the_quick_start_of_the_document(strict: Strict) -> None:
    """S-022, S-047: what it leaves out is asked for with that very command line completed; checks may come later."""
    words = ("init-state", "--workspace-root", ".", "--task-id", "hail", "--operating-mode", "unattended")
    for given in ((), ("--goal", "it's clear"), ("--stop-command", "test -e x")):
        refused = strict(*words, *given)
        assert refused.code == 2, refused
        [completed] = re.findall(r"`strict-agent-loop (.+)`", refused.err)
        told = shlex.split(completed)
        assert {*words[3:], *given, "--goal", "--global-stop-condition"} <= {*told}, refused
    assert not strict.root.exists()
    strict.init()
    again = strict(*words, "--stop-command", "test -e numbers.txt")
    assert again.code == 0, again
    strict.plays({"sh": STEP, "reply": "One."})
    assert said(strict.supervise()).code == 0


def test_the_same_stop_command_given_twice_is_one(strict: Strict) -> None:
    strict.init("--stop-command", "true", "--stop-command", "true")
    assert [each["command"] for each in strict.state["stop_checks"]["commands"]] == ["true"]


# -- where nothing but the workspace can be written --------------------------------------------------------------------


def sandbox(strict: Strict) -> list[str]:
    """What Codex puts in front of the commands of its sandbox, in other words."""
    readable = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    writable = [word for path in (str(strict.repo), strict.home.env["TMPDIR"]) for word in ("--bind", path, path)]
    return ["bwrap", *readable, *writable, "--unshare-all", "--die-with-parent", "--chdir", str(strict.repo)]


@pytest.mark.usefixtures("bwrap")
def test_a_session_in_a_sandbox(strict: Strict) -> None:
    """S-001, S-030: files are current after every script; a command outside takes the records in, once."""

    def inside(name: str, *words: str, code: int = 0) -> Json:
        ended = strict.script(name, *words, before=sandbox(strict))
        assert ended.code == code, (name, ended)
        return dict(json.loads(ended.out))

    state = ("--state", str(strict.state_path))
    before = tree_of(strict.home.root / "home")
    inside("init_state", *strict.new("--require-path", "done.txt", mode="interactive")[1:])
    inside("append_event", *state, "--kind", "round.started", "--message", "Iteration 1")
    assert [event["message"] for event in strict.events("round.started")] == ["Iteration 1"]
    for number in (1, 2):
        assert inside("update_state", *state, "--task", f"task {number}", *DONE)["iteration"] == number
        assert strict.state["counters"]["iteration"] == number == len(strict.entries)
        assert [entry["pending"] for entry in strict.state["history"]] == [True] * number
    assert strict.registry["tasks"]["hail"]["iteration"] == 2
    assert inside("check_stop", *state, code=1)["should_stop"] is False
    (strict.repo / "done.txt").touch()
    assert inside("check_stop", *state, code=0)["success"] is True
    assert "report" in inside("report_status", *state, "--json")
    assert strict.state["pending"] is True
    assert tree_of(strict.home.root / "home") == before, "nothing but the workspace was written"
    strict.has_no_gap()
    lines = {name: (strict.folder / name).read_bytes() for name in LINES}
    for _ in range(2):
        listed = strict.script("list_tasks", "--workspace-root", str(strict.repo))
        assert (listed.code, "hail" in listed.out) == (0, True), listed
        assert len(strict.facts("iteration.recorded")) == 2, "taken in once"
        assert (strict.waiting, strict.state["counters"]["iteration"]) == ([], 2)
        assert "pending" not in strict.state["history"][0]
        strict.has_no_gap()
    assert len(strict.entries) == 2
    assert all((strict.folder / name).read_bytes().startswith(data) for name, data in lines.items()), "only appended"
    assert strict.here("check-stop").code == 0, "decided outside"
    assert strict.state["status"] == "completed"


@pytest.mark.usefixtures("bwrap")
def test_a_stop_check_that_calls_the_scripts(strict: Strict) -> None:
    """S-046: it runs boxed, sees no ledger and behaves as in a sandbox: its record waits, and is taken in once."""
    # This package may be below /tmp, of which a box has its own.
    strict.home.env |= {"BYDAWN_BOX": "auto", "BYDAWN_BOX_WRITE": str(Path(__file__).parents[2])}
    words = ("--state", str(strict.state_path), "--kind", "check.ran", "--message", "from a check")
    event = shlex.join([sys.executable, str(SCRIPTS / "append_event.py"), *words])
    sees = f'test -d {strict.home.states} && test -z "$(ls {strict.home.states})"'
    says = 'grep -q \'^  "status": "completed"\''
    asks = f"{says} $STRICT_AGENT_LOOP_STATE && ! {says} {strict.state_path}"
    strict.plays({"sh": STEP, "reply": "One."})
    strict.init("--stop-command", f"{sees} && {event} && {asks}", "--require-path", "numbers.txt")
    ended = said(strict.supervise())
    assert ended.code == 0, (ended, strict.report)
    checked = len(strict.facts("checks.ended"))
    assert (len(strict.facts("event.recorded")), len(strict.events("check.ran")), checked) == (2, 2, 2)
    assert strict("list-tasks", "--workspace-root", str(strict.repo)).code == 0
    assert (len(strict.events("check.ran")), strict.waiting) == (2, [])
    strict.has_no_gap()


# -- somewhere else ----------------------------------------------------------------------------------------------------


def test_a_workspace_that_was_renamed_goes_on_with_its_tasks(strict: Strict) -> None:
    """S-030, S-050: record, number and stop checks move along; only the folder itself is known, no copy of it."""
    strict.init("--stop-command", "test -f done.txt", "--max-no-progress-rounds", "3")
    assert strict.records().code == 0
    uid = strict.state["bydawn"]["uid"]
    strict.repo = strict.repo.rename(strict.repo.with_name("-ein Ordner с именем"))
    strict.home.repo = strict.repo
    assert strict.records().code == 0
    assert (strict.state["counters"]["iteration"], strict.state["bydawn"]["uid"]) == (2, uid)
    strict.plays({"write": {"done.txt": ""}, **strict.round(1)})
    ended = said(strict.supervise())
    assert (ended.code, strict.state["status"], len(strict.entries)) == (0, "completed", 3), ended
    assert str(strict.state_path) in strict.prompts[0], "it is told the new path"
    assert strict.state["workspace_root"] == strict.registry["tasks"]["hail"]["workspace_root"] == str(strict.repo)
    strict.has_no_gap()
    assert strict.home.status("hail")["state"] == "complete"


def test_a_copy_has_goal_and_number_as_claims_and_runs_its_stop_commands_when_a_person_agrees(strict: Strict) -> None:
    """S-014, S-030, S-046: here as from another machine; nothing counts as met before it ran."""
    strict.init("--stop-command", "test -f done.txt", "--max-iterations", "9")
    for number in (1, 2):
        assert strict.records("--next-task", f"task {number + 1}").code == 0
    (strict.repo / "done.txt").touch()
    assert strict.here("check-stop").code == 0
    copy = strict.repo.with_name("copy")
    shutil.copytree(strict.repo, copy)
    strict.repo = strict.home.repo = copy
    for state in (strict.home.states.parent, strict.home.root / "another-machine"):
        shutil.rmtree(strict.root)
        shutil.copytree(strict.home.root / "repo/.codex-loop", strict.root)
        strict.home.env["XDG_STATE_HOME"] = str(state)
        assert "completed · unattended · 2 iterations" in strict("list-tasks").out, "as its files say"
        refused = said(strict.supervise())
        assert (refused.code, "no one has agreed to the stop commands" in refused.err) == (2, True)
        assert (strict.state["status"], strict.state["limits"]["max_iterations"]) == ("running", 9)
        assert json.loads(strict.records().out)["iteration"] == 3
        assert [entry["next_task"] for entry in strict.entries] == ["task 2", "task 3", ""]
        strict.has_no_gap()
        (line,) = re.findall(r"`strict-agent-loop (init-state .*)`", refused.err)
        assert strict(*shlex.split(line)).code == 0
        assert strict.here("check-stop").code == 0
        assert strict.state["status"] == "completed"


def test_a_person_at_a_terminal_is_asked_about_stop_commands_that_came_with_the_folder(strict: Strict) -> None:
    strict.init("--stop-command", "test -f done.txt")
    (strict.repo / "done.txt").touch()
    copy = strict.repo.with_name("copy")
    shutil.copytree(strict.repo, copy)
    words = ("check-stop", "--workspace-root", str(copy))
    for answer, code, shown in (("n\n", 2, "no one has agreed"), ("y\n", 0, '"success": true')):
        asked = answered(strict.home, answer, *words, command="strict-agent-loop")
        assert (asked.code, "test -f done.txt" in asked.text, shown in asked.text) == (code, True, True), asked


def test_no_other_programs_name_is_on_its_screens(strict: Strict) -> None:
    """S-004: what it says and offers is its own, but for the one line of its help."""
    told = [strict("--help"), strict("supervise", "--help"), strict("--version"), strict("list-tasks")]
    told += [strict("show-task", "--task-id", "x"), strict.here("supervise")]
    strict.plays({"wait_for": "../gate"})
    strict.init("--stop-command", "test -f done.txt", "--max-iterations", "2")
    first = strict.supervise("--heartbeat-seconds", "0.1")
    wait_for(lambda: strict.prompts)
    told += [said(strict.supervise()), strict(*strict.new("--force"))]
    kill_both(first.pid)
    told += [said(first), strict("list-tasks")]
    turns = (strict.round(1, "--status", "blocked", "--stop-reason", "no key"), strict.round(1), {"exit": 3})
    for turn in (*turns, {"write": {"done.txt": ""}, "reply": "Done."}):
        strict.plays(turn)
        told.append(said(strict.supervise("--prompt-note", "go on", "--max-cycles", "1", "--max-iterations", "9")))
    assert [each.code for each in told[-4:]] == [2, 2, 2, 0], told[-4:]
    told += [said(strict.supervise()), strict.records("--status", "failed"), strict.here("report-status")]
    texts = [*(each.out + each.err for each in told), *(prompt for prompt in strict.prompts)]
    texts += [path.read_text() for name in ("*.txt", "*.md", "rounds/*") for path in strict.folder.glob(name)]
    texts += [event["message"] for event in strict.events()]
    shown = "\n".join(texts).replace(FURTHER, "", 1)
    shown = re.sub(r"\S*/\S*", "", shown)  # paths
    assert re.findall(r"(?i).*bydawn.*", shown) == []


# -- in company --------------------------------------------------------------------------------------------------------

CODEX_LOOP: dict[str, Any] = {
    "state.json": {"meta": {"schema": 1, "project": "x"}, "tasks": {"one": {"status": "done"}}, "cycle": 4},
    "metrics.json": {"iterations": 4},
    "events.jsonl": {"event": "iteration.completed"},
    "logs/run-0001.log": "a log",
    "runs/0001/prompt.md": "a prompt",
    "hail/state.json": {"meta": {}},
}


def test_the_files_of_codex_loop_beside_ours_are_left_alone(strict: Strict) -> None:
    """S-010, S-013: both use .codex-loop/."""
    for name, content in CODEX_LOOP.items():
        (strict.root / name).parent.mkdir(parents=True, exist_ok=True)
        (strict.root / name).write_text(json.dumps(content))
    theirs = tree_of(strict.root)
    strict.plays(strict.round(2))
    assert supervised(strict, "--max-cycles", "1").code == 2
    assert strict.here("report-status").code == 0
    listed = json.loads(strict("list-tasks", "--workspace-root", str(strict.repo), "--json").out)
    assert [task["id"] for task in listed["tasks"]] == ["hail"]
    now = tree_of(strict.root)
    assert {name: now[name] for name in theirs} == theirs
    assert {*now} - {*theirs} == {name for name in now if name.startswith(("tasks/hail/", "registry.", ".gitignore"))}


def test_a_task_of_another_program_is_shown_and_refused_and_never_written_to(strict: Strict) -> None:
    """S-010, S-011, S-015."""
    mine = {"skill_name": "strict-agent-loop", "schema_version": 3, "task": {"id": "old"}, "goal": "an old goal"}
    rest = {"status": "running", "operating_mode": "unattended", "counters": {"iteration": 41}, "history": []}
    (strict.root / "tasks/old").mkdir(parents=True)
    (strict.root / "tasks/old/state.json").write_text(json.dumps(mine | rest, indent=2))
    entry = {"id": "old", "goal": "an old goal", "status": "running", "iteration": 41}
    (strict.root / "registry.json").write_text(json.dumps({"schema_version": 1, "tasks": {"old": entry}}))
    theirs = tree_of(strict.root / "tasks/old")
    listed = strict("list-tasks", "--workspace-root", str(strict.repo))
    assert ("old" in listed.out, "41" in listed.out) == (True, True), listed
    for words in (
        strict.new(task="old"),
        strict.new("--force", task="old"),
        ("supervise", "--state", str(strict.root / "tasks/old/state.json")),
    ):
        refused = strict(*words)
        assert refused.code in (1, 2), refused
        assert "init-state" in refused.err, "the command that starts beside it"
    strict.init()
    assert tree_of(strict.root / "tasks/old") == theirs
    assert {*strict.registry["tasks"]} == {"old", "hail"}
    assert strict.registry["tasks"]["old"] == entry


def test_several_tasks_are_listed_and_one_alone_is_taken(strict: Strict) -> None:
    """S-014, S-015, S-016."""
    strict.init()
    words = ("append-event", "--kind", "note", "--message", "x", "--workspace-root", str(strict.repo))
    assert strict(*words).code == 0
    made = strict.init(task="Second Task!")
    assert made["task_id"] == "Second-Task-"
    several = strict(*words)
    assert several.code == 2, several
    assert ("hail" in several.err, "Second-Task-" in several.err) == (True, True), several
    assert strict(*words, "--task-id", "hail").code == 0
    shutil.rmtree(strict.root)
    assert "hail" in strict("list-tasks", "--workspace-root", str(strict.repo)).out
    assert strict(*words, "--task-id", "hail").code == 0
    assert {*strict.registry["tasks"]} >= {"hail", "Second-Task-"}, "made again from the ledger"
    assert [event["kind"] for event in strict.events()] == ["loop.initialized", "note", "note", "note"]
    strict.has_no_gap()
