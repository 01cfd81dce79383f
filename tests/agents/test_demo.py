"""The built-in agent: its protocol, its scripts, each of its faults, and the story it tells."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bydawn.agents.demo import story
from bydawn.agents.demo.agent import DemoAgent
from bydawn.core.agent import Activity, Ended, Event, Finished, Message, Turn
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.values import Usage
from driving import HANG, MISBEHAVING

OK = {"result": {"text": "done"}}
COOKIE = f"BYDAWN_TEST_COOKIE={os.getpid()}"
STATE_CHANGING = {"write", "tick", "commit"}


class Played(NamedTuple):
    """All that one run of the player left."""

    events: list[Event]
    ended: Ended
    exit: Exit
    stdout: bytes
    stderr: str


@pytest.fixture(autouse=True)
def nothing_outlives_a_test() -> Iterator[None]:
    yield
    alive = left_behind()
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    assert not alive


# The protocol


@pytest.mark.parametrize("outcome", Outcome)
def test_a_result_may_name_any_outcome(tmp_path: Path, outcome: Outcome) -> None:
    ended = play(tmp_path, [{"result": {"outcome": outcome, "text": "so be it"}}]).ended
    assert ended.outcome is outcome
    assert (ended.reply, ended.detail) == (("so be it", "") if outcome is Outcome.OK else ("", "so be it"))


@pytest.mark.parametrize(
    ("steps", "outcome", "detail"),
    [
        ([], Outcome.LOST_OUTPUT, "exited with 0 but without a result"),
        ([{"say": "done"}], Outcome.LOST_OUTPUT, "exited with 0 but without a result"),
        ([{"exit": 3}], Outcome.FAILED, "exited with 3"),
        ([{"stderr": "no such model\n\n"}, {"exit": 1}], Outcome.FAILED, "no such model"),
        ([{"raise": "KILL"}], Outcome.CRASHED, "killed by signal 9 (Killed)"),
        ([{"raise": "INT"}], Outcome.CRASHED, "killed by signal 2 (Interrupt)"),
        # What was said last counts, whatever happens to the process afterwards.
        ([OK, {"exit": 1}], Outcome.OK, ""),
        ([OK, {"raise": "TERM"}], Outcome.OK, ""),
    ],
)
def test_without_a_result_the_end_of_the_process_decides(
    tmp_path: Path, steps: list[Any], outcome: Outcome, detail: str
) -> None:
    ended = play(tmp_path, steps).ended
    assert (ended.outcome, ended.detail) == (outcome, detail)


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [(Ending.ASKED, Outcome.INTERRUPTED), (Ending.SILENCE, Outcome.HUNG), (Ending.NOT_STARTED, Outcome.CONFIG)],
)
def test_a_player_that_we_stopped_did_not_crash(ending: Ending, outcome: Outcome) -> None:
    assert DemoAgent().reader().end(Exit(ending=ending, signal=signal.SIGTERM), "").outcome is outcome


def test_a_result_carries_session_usage_and_reset(tmp_path: Path) -> None:
    usage = {"tokens_in": 10, "tokens_out": 2, "cost_usd": 0.5}
    reset = "2026-11-16T03:00:00Z"
    step = {"result": {"outcome": "limited", "session": "s-1", "usage": usage, "wait_until": reset}}
    ended = play(tmp_path, [step]).ended
    assert ended.session == "s-1"
    assert ended.usage == Usage(tokens_in=10, tokens_out=2, cost_usd=0.5)
    assert ended.wait_until == datetime(2026, 11, 16, 3, tzinfo=UTC)


def test_the_session_of_the_turn_goes_on_unless_the_result_names_another(tmp_path: Path) -> None:
    assert play(tmp_path, [OK], session="s-7").ended.session == "s-7"
    assert play(tmp_path, [{"result": {"session": "s-8"}}], session="s-7").ended.session == "s-8"


def test_words_and_deeds_become_events_in_their_order(tmp_path: Path) -> None:
    events = play(tmp_path, [{"activity": "reading"}, {"say": "Grüße 😀\n…"}, OK]).events
    assert events == [Activity("reading"), Message("Grüße 😀\n…"), Finished()]


def test_noise_in_the_stream_passes_by(tmp_path: Path) -> None:
    played = play(tmp_path, [{"noise": None}, {"say": "still here"}, {"noise": None}, OK])
    assert played.events == [Message("still here"), Finished()]
    assert played.ended.outcome is Outcome.OK
    assert len(played.stdout) > 1_000_000


def test_a_result_cut_in_half_is_no_result(tmp_path: Path) -> None:
    half = base64.b64encode(b'{"type":"result","outcome":"ok","te').decode()
    ended = play(tmp_path, [{"bytes": half}, {"raise": "KILL"}]).ended
    assert ended.outcome is Outcome.CRASHED


def test_a_script_that_is_not_there_is_missing_before_the_first_round(tmp_path: Path) -> None:
    assert DemoAgent().missing("/ws") is None
    assert DemoAgent(script=str(tmp_path / "none.json")).missing("/ws") is not None


# Scripts


def test_each_attempt_plays_its_own_list_and_the_last_one_is_repeated(tmp_path: Path) -> None:
    script = {"rounds": [[{"result": {"text": f"attempt {number}"}}] for number in (1, 2)]}
    replies = [play(tmp_path, script, round_=number).ended.reply for number in (1, 2, 3, 4)]
    assert replies == ["attempt 1", "attempt 2", "attempt 2", "attempt 2"]


def test_a_script_for_each_task_works_from_box_to_box(tmp_path: Path) -> None:
    tasks = tmp_path / "WORK.md"
    tasks.write_text("# Work\n- [x] one\n* [ ] two\n  + [ ] three\nno [ ] box\n")
    steps = [
        {"write": {"path": "out/{n}.txt", "text": "{task}\n"}},
        {"tick": {"task": "{task}", "tasks": "WORK.md"}},
        {"result": {"text": "{n}: {task}"}},
    ]
    done = [{"result": {"text": "nothing left"}}]
    script = [{"each_task": {"steps": steps, "done": done, "tasks": "WORK.md"}}]
    assert [play(tmp_path, script).ended.reply for _ in range(3)] == ["2: two", "3: three", "nothing left"]
    assert tasks.read_text() == "# Work\n- [x] one\n* [x] two\n  + [x] three\nno [ ] box\n"
    assert (tmp_path / "out/3.txt").read_text() == "three\n"


def test_a_killed_script_for_each_task_ends_with_the_same_tree(tmp_path: Path) -> None:
    def each(*steps: Any) -> dict[str, Any]:
        return {"each_task": {"steps": [*steps], "done": [], "tasks": "TODO.md"}}

    steps: list[Any] = [{"write": {"path": "{n}.txt", "text": "{task}"}}, {"tick": None}, OK]
    trees = []
    for killed_after in range(len(steps) + 1):
        folder = tmp_path / str(killed_after)
        folder.mkdir()
        (folder / "TODO.md").write_text("- [ ] a\r\n- [ ] b\r\n")
        play(folder, [each(*steps[:killed_after], {"raise": "KILL"})])
        while play(folder, [each(*steps)]).ended.outcome is Outcome.OK:
            pass
        trees.append(tree(folder))
    assert trees == [{"TODO.md": "- [x] a\r\n- [x] b\r\n", "1.txt": "a", "2.txt": "b"}] * 4


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("{", "Expecting property name"),
        ("", "Expecting value"),
        ("[]", "a JSON object"),
        ('{"rounds": []}', "it needs `rounds`"),
        ('{"rounds": [{}]}', "steps are a list"),
        ('{"rounds": [["say"]]}', "object with one key"),
        ('{"rounds": [[{"say": "a", "exit": 1}]]}', "object with one key"),
        ('{"rounds": [[{"sing": "a"}]]}', "unknown step 'sing'; the steps are say,"),
        ('{"rounds": [[{"write": {"file": "a"}}]]}', "step 'write'"),
        ('{"rounds": [[{"sleep": "long"}]]}', "step 'sleep'"),
        ('{"rounds": [[]], "steps": "/nowhere/steps.py"}', "No such file"),
        ('{"rounds": [[]]} {}', "Extra data"),
        (None, "No such file"),
    ],
)
def test_a_malformed_script_is_explained_and_not_played(tmp_path: Path, script: str | None, complaint: str) -> None:
    path = beside(tmp_path, "json")
    if script is not None:
        path.write_text(script)
    played = start(tmp_path, DemoAgent(script=str(path)))
    assert played.exit.code == 2
    assert complaint in played.stderr
    assert played.stderr.startswith(f"cannot play {path}: ")
    assert played.ended.detail.startswith("cannot play")


# What the steps do


def test_files_are_written_extended_and_removed(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/file").touch()
    steps = [
        {"write": {"path": "a/b.txt", "text": "one\n"}},
        {"append": {"path": "a/b.txt", "text": "two\n"}},
        {"write": {"path": "c.txt", "text": ""}},
        {"delete": "c.txt"},
        {"delete": "never-there"},
        {"rm": {"path": "old"}},
        {"rm": "never-there"},
    ]
    play(tmp_path, steps)
    assert tree(tmp_path) == {"a/b.txt": "one\ntwo\n"}


def test_boxes_are_ticked_by_their_text_or_in_their_order(tmp_path: Path) -> None:
    todo = tmp_path / "TODO.md"
    todo.write_text("- [x] a\n- [ ] b\n- [ ] c\n")
    play(tmp_path, [{"tick": "c"}, {"tick": "not on the list"}])
    assert todo.read_text() == "- [x] a\n- [ ] b\n- [x] c\n"
    play(tmp_path, [{"tick": None}])
    assert todo.read_text() == "- [x] a\n- [x] b\n- [x] c\n"


def test_what_a_program_prints_stays_out_of_the_stream(tmp_path: Path) -> None:
    played = play(tmp_path, [{"run": ["sh", "-c", "echo loud; exit 3"]}, OK])
    assert played.events == [Activity("ran sh -c echo loud; exit 3: exit code 3"), Finished()]
    assert played.stderr == "loud\n"


def test_a_commit_takes_all_there_is_and_nothing_twice(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    play(tmp_path, [{"write": {"path": "a", "text": "a"}}, {"commit": "First"}, {"commit": "Second"}])
    assert git(tmp_path, "log", "--format=%an %s", "--name-only").split("\n") == ["demo First", "", "a", ""]


def test_a_commit_never_goes_to_a_repository_around_the_folder(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    inner = new_project(tmp_path / "inner")
    play(inner, [{"commit": "Mine"}])
    assert "?? inner/" in git(tmp_path, "status", "--porcelain")


def test_time_can_be_slept_or_computed_away(tmp_path: Path) -> None:
    def cpu_seconds(steps: list[Any]) -> float:
        before = os.times()
        play(tmp_path, steps)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert cpu_seconds([{"sleep": 0.3}]) < 0.3 <= cpu_seconds([{"spin": 0.3}])


def test_an_interrupted_player_goes_without_a_traceback(tmp_path: Path) -> None:
    child = started(tmp_path, [{"say": "here"}, HANG], until="here")
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=5) == 130
    assert beside(tmp_path, "stderr").read_text() == ""


@pytest.mark.parametrize("setsid", [False, True])
def test_a_double_fork_leaves_a_process_in_a_session_of_its_choice(tmp_path: Path, setsid: bool) -> None:
    played = play(tmp_path, [{"double_fork": {"seconds": 30, "setsid": setsid}}, OK])
    [pid] = left_behind()
    assert played.ended.outcome is Outcome.OK
    assert (os.getsid(pid) != os.getsid(0)) is setsid
    assert os.readlink(f"/proc/{pid}/fd/1") == os.devnull
    os.kill(pid, signal.SIGTERM)
    wait_until_gone(pid)


def test_a_double_fork_can_hide_hold_on_and_refuse_to_go(tmp_path: Path) -> None:
    habits = {"wipe_env": True, "ignore_term": True, "hold_stdout": True, "write_pid": "pid"}
    play(tmp_path, [{"double_fork": {"seconds": 30, "setsid": True, **habits}}])
    pid = int((tmp_path / "pid").read_text())
    try:
        assert left_behind() == []
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        assert os.readlink(f"/proc/{pid}/fd/1") == str(beside(tmp_path, "stdout"))
        os.kill(pid, signal.SIGTERM)
        assert Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    finally:
        os.kill(pid, signal.SIGKILL)
        wait_until_gone(pid)


# The story


def test_the_story_has_one_error_one_deleted_test_and_a_good_end(tmp_path: Path) -> None:
    new_project(tmp_path)
    git(tmp_path, "init", "--quiet")
    assert check(tmp_path)[0]
    rows, feedback = [], ""
    while is_unfinished(tmp_path):
        reply = tell(tmp_path, feedback).ended.reply
        passed, feedback = check(tmp_path)
        rows.append((4 - story_open(tmp_path), passed, reply.endswith("<promise>TASK_COMPLETE</promise>")))
    assert rows == [
        (1, True, False),
        (1, False, False),
        (2, True, False),
        (3, True, False),
        (4, True, True),  # said “all done”, and had deleted a test
        (4, True, True),
    ]
    assert len(git(tmp_path, "log", "--oneline").splitlines()) == 6
    assert git(tmp_path, "status", "--porcelain") == ""
    shown = subprocess.run(
        [sys.executable, "cli.py", "Crème brûlée, again"], cwd=tmp_path, capture_output=True, text=True
    )
    assert shown.stdout == "creme-brulee-again\n"


def test_the_failing_check_says_in_one_line_what_it_expected(tmp_path: Path) -> None:
    new_project(tmp_path)
    tell(tmp_path, "")
    tell(tmp_path, "")
    passed, output = check(tmp_path)
    assert not passed
    assert f"AssertionError: {story.CLUE}" in output.splitlines()
    assert "failures=1" in output


def test_without_the_words_of_the_check_the_error_is_made_again(tmp_path: Path) -> None:
    new_project(tmp_path)
    for _ in range(4):
        tell(tmp_path, "1 test fails")
    assert story_open(tmp_path) == 3


def test_a_story_killed_at_any_step_comes_to_the_same_end(tmp_path: Path) -> None:
    undisturbed = new_project(tmp_path / "undisturbed")
    ends = []
    for number in range(6):
        act = [step for step in next_act(undisturbed) if "sleep" not in step]
        for killed_after in (place for place, step in enumerate(act, 1) if STATE_CHANGING & step.keys()):
            folder = tmp_path / f"{number}-{killed_after}"
            shutil.copytree(undisturbed, folder)
            play(folder, [*act[:killed_after], {"raise": "KILL"}])
            while is_unfinished(folder):
                tell(folder, clue_if_wrong(folder))
            ends.append(tree(folder))
        tell(undisturbed, clue_if_wrong(undisturbed))
    assert ends == [tree(undisturbed)] * 21
    assert story_open(undisturbed) == 0


def test_when_all_boxes_are_ticked_the_story_only_says_so(tmp_path: Path) -> None:
    new_project(tmp_path)
    (tmp_path / "TODO.md").write_text(story.FILES["TODO.md"].replace("[ ]", "[x]"))
    before = tree(tmp_path)
    assert tell(tmp_path, "").ended.reply.endswith("<promise>TASK_COMPLETE</promise>")
    assert tree(tmp_path) == before


def test_in_a_project_of_somebody_else_the_story_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "TODO.md").write_text("- [ ] Rule the world\n")
    ended = tell(tmp_path, "").ended
    assert (ended.outcome, ended.reply) == (Outcome.CONFIG, "")
    assert tree(tmp_path) == {"TODO.md": "- [ ] Rule the world\n"}


def test_a_round_of_the_story_takes_about_a_second(tmp_path: Path) -> None:
    new_project(tmp_path)
    while story_open(tmp_path):
        assert 0.6 <= sum(step.get("sleep", 0) for step in next_act(tmp_path)) <= 1.5
        tell(tmp_path, clue_if_wrong(tmp_path))


def test_the_story_takes_its_time_unless_told_to_hurry(tmp_path: Path) -> None:
    new_project(tmp_path)
    begin = time.monotonic()
    start(tmp_path, DemoAgent())
    assert time.monotonic() - begin > 0.6


# How it is done


def play(folder: Path, script: dict[str, Any] | list[Any], round_: int = 1, session: str | None = None) -> Played:
    """Run the player on a script, or on the steps of a single round."""
    return start(folder, DemoAgent(script=write_script(folder, script)), round_=round_, session=session)


def tell(folder: Path, feedback: str) -> Played:
    return start(folder, DemoAgent(), prompt=f"Work on TODO.md.\n{feedback}", env={"BYDAWN_DEMO_PACE": "0"})


def start(
    folder: Path,
    agent: DemoAgent,
    *,
    prompt: str = "",
    round_: int = 1,
    session: str | None = None,
    env: dict[str, str] | None = None,
) -> Played:
    child = spawn(folder, agent, a_turn(folder, round_, session), prompt, env or {})
    code = child.wait(timeout=10)
    stdout, stderr = beside(folder, "stdout").read_bytes(), beside(folder, "stderr").read_text()
    exit_ = Exit(code=code) if code >= 0 else Exit(signal=-code)
    reader = agent.reader()
    events = [event for line in stdout.split(b"\n") for event in reader.read(line)]
    return Played(events, reader.end(exit_, stderr), exit_, stdout, stderr)


def started(folder: Path, steps: list[Any], until: str) -> "subprocess.Popen[bytes]":
    """A player that has said these words and still runs."""
    child = spawn(folder, DemoAgent(script=write_script(folder, steps)), a_turn(folder), "", {})
    while until not in beside(folder, "stdout").read_text():
        assert child.poll() is None
        time.sleep(0.005)
    return child


def spawn(folder: Path, agent: DemoAgent, turn: Turn, prompt: str, env: dict[str, str]) -> "subprocess.Popen[bytes]":
    command = agent.command(turn)
    beside(folder, "prompt").write_text(prompt)
    name, _, value = COOKIE.partition("=")
    with (
        beside(folder, "prompt").open() as stdin,
        beside(folder, "stdout").open("wb") as stdout,
        beside(folder, "stderr").open("wb") as stderr,
    ):
        return subprocess.Popen(
            command.argv,
            cwd=folder,
            env={**os.environ, **command.env, **env, name: value},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )


def a_turn(folder: Path, round_: int = 1, session: str | None = None) -> Turn:
    return Turn(round=round_, workspace=str(folder), session=session)


def write_script(folder: Path, script: dict[str, Any] | list[Any]) -> str:
    path = beside(folder, "json")
    whole = script if isinstance(script, dict) else {"rounds": [script]}
    path.write_text(json.dumps({**whole, "steps": MISBEHAVING}))
    return str(path)


def tree(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in files}


def beside(folder: Path, suffix: str) -> Path:
    """Where the test keeps a file of its own, out of the workspace."""
    return folder.with_name(f"{folder.name}.{suffix}")


def left_behind() -> list[int]:
    """The processes that carry our cookie."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and COOKIE.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # gone in the meantime, or a zombie
    return found


def wait_until_gone(pid: int) -> None:
    """A zombie is gone enough: it waits for whoever adopts orphans here."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.005)
    raise AssertionError(f"process {pid} is still there")


def new_project(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in story.FILES.items():
        (folder / name).write_text(text)
    return folder


def next_act(folder: Path) -> list[dict[str, Any]]:
    def read(path: str) -> str:
        return (folder / path).read_text() if (folder / path).exists() else ""

    return story.act(clue_if_wrong(folder), read)


def clue_if_wrong(folder: Path) -> str:
    """What a failing check would have said."""
    slugs = folder / "slugs.py"
    return story.CLUE if slugs.exists() and '"ignore"' in slugs.read_text() and story_open(folder) == 3 else ""


def is_unfinished(folder: Path) -> bool:
    return bool(story_open(folder)) or not (folder / "test_words.py").exists()


def story_open(folder: Path) -> int:
    return (folder / "TODO.md").read_text().count("[ ]")


def check(folder: Path) -> tuple[bool, str]:
    command = story.check_command(sys.executable)
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout
