"""Each of the six commands killed again and again: nothing is lost, done twice or left running (FAULTS 1-4, 9)."""

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from signal import SIGKILL

from hypothesis import settings

from driving import Home, is_alive, name_of, said, wait_for, worker_of
from program.autorunner import Autorunner
from program.codex_loop import BRANCH
from program.six import Six, each_of_six
from program.test_strict_agent_loop import Reader

KILLS = 160 if settings().max_examples < 100 else 1900  # over all six; test_kill_nine.py has the others
IDENTITY = (("config", "user.name", "Ada"), ("config", "user.email", "ada@example.org"))


@each_of_six
def test_a_loop_killed_at_random_moments_ends_as_if_nothing_had_happened(home: Home, command: str) -> None:
    """X-18, X-20, W-006, W-041, W-101, A-022, A-023, A-031, A-038, A-041, C-009, C-017, C-045, S-030, S-050, S-051."""
    kills = -(-int(os.environ.get("KILLS", KILLS)) // 6)
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"SEED={seed}")
    dice = random.Random(seed)  # noqa: S311 - to be had again, which is the point
    six, seen = Six(home, command), set[str]()
    six.worktree = command == "bydawn"
    # A turn counts from its start, so no two of them ever write the same file.
    six.plays(*(six.works(str(turn), sleep=0.05) for turn in range(20 * kills)))
    six.ready(20 * kills)
    if command == "codex-autorunner":
        for words in IDENTITY:
            six.project.git(*words)
        runner = Autorunner(home)
        runner.set(auto_commit="true")
        runner.trust(str(runner.config))
    whole, reader = WHOLE.get(command, _numbers)(six), None
    if command in ("strict-agent-loop", "codex-loop"):
        reader = Reader(six.strict.folder if command == "strict-agent-loop" else six.project.folder)
        reader.start()
    for kill in range(kills):
        process, before = six.start(*(six.again if six.facts() else six.first)), six.good
        worker = worker_of(process)
        if kill % 4 == 3:  # ten deaths in a row would end it
            wait_for(lambda: six.good > before or process.poll() is not None)  # noqa: B023 - called at once
            assert process.poll() is None, said(process)
        time.sleep(dice.uniform(0, dice.choice([0.1, 0.5, 0.9])))
        for victim in victims(home, process.pid, worker, dice):
            with suppress(ProcessLookupError):  # the one sees the other's end
                os.kill(victim, SIGKILL)
        if is_alive(process.pid):
            process.terminate()  # an agent's death does not end it
        assert "Traceback" not in said(process).err
        wait_for(lambda: not home.alive())
        assert seen <= six.files, "lost"
        seen = six.files
        next(whole)
    six.plays(six.ends())
    ended = six(*six.again)
    assert ended.code == 0, ended
    next(whole)
    assert seen <= six.files
    assert six.good <= len(six.files), "each round that went well has left its file"
    if reader:
        reader.stop()
        assert reader.torn == []


def victims(home: Home, guardian: int, worker: int, dice: random.Random) -> tuple[int, ...]:
    """One of ours, both, or, if there is one, the agent or a script that it runs."""
    agents = [pid for pid in home.alive() if any(word in name_of(pid) for word in ("strict_c", "update-state"))]
    return dice.choice([(worker,), (guardian,), (guardian, worker), tuple(agents[-1:]) or (worker,)])


# -- what must be whole after each kill --------------------------------------------------------------------------------


def _numbers(six: Six) -> Iterator[None]:
    """Facts and rounds are numbered without a gap, and none twice."""
    while True:
        for numbers in (
            [fact["seq"] for fact in six.facts()],
            [fact["data"]["round"] for fact in six.facts("round.started")],
        ):
            assert numbers == [*range(1, len(numbers) + 1)], numbers
        yield


def _worktree(six: Six) -> Iterator[None]:
    """Each round that changed something is one commit of the branch, and none is lost."""
    seen = list[str]()
    for _ in _numbers(six):
        if six.work.exists():
            log = six.project.git(
                "log", "--reverse", "--format=%H %(trailers:key=Bydawn-Round,valueonly)", "main..HEAD", cwd=six.work
            )
            rows = log.split()
            assert rows[: len(seen)] == seen
            seen = rows
            if "last.txt" in six.files:
                before = {fact["data"]["round"]: fact["data"]["tree"] for fact in six.facts("round.started")}
                ended = [fact["data"] for fact in six.facts("round.ended")]
                changed = [each["round"] for each in ended if each["found"]["tree"] != before[each["round"]]]
                assert [*map(int, rows[1::2])] == changed
                assert six.project.git("status", "--porcelain", cwd=six.work) == ""
        yield


def _waylon(six: Six) -> Iterator[None]:
    """One session to the end, no iteration twice, and the last message of each."""
    path, highest = six.home.repo / ".codex/waylon-smithers/loops", 0
    for _ in _numbers(six):
        sessions = {fact["data"]["session"] for fact in six.facts("session.begun")}
        assert len(sessions) < 2, sessions
        if (path / "night.json").exists():
            state = json.loads((path / "night.json").read_bytes())
            assert state["iteration"] >= highest
            highest = state["iteration"]
            if state["status"] == "completed":
                rows = json.loads((path / "night/summary.json").read_bytes())["iterations"]
                assert len({row["iteration"] for row in rows}) == highest
                messages = {each.name for each in path.glob("night/last_message_iter_*.txt")}
                assert messages == {f"last_message_iter_{number}.txt" for number in range(1, highest + 1)}
        yield


def _autorunner(six: Six) -> Iterator[None]:
    """Numbers are neither used again nor left out, except for a run cut short; each that went well has a commit."""
    runner = Autorunner(six.home)
    for _ in _numbers(six):
        numbers = [number for number, _ in runner.runs]
        assert numbers == sorted({*numbers}), numbers
        assert numbers == [] or numbers[-1] <= len(six.facts("round.started"))
        subjects = [line for line in six.project.git("log", "--format=%s").splitlines() if line != "first"]
        assert len(subjects) == len({*subjects}), subjects
        *older, last = [number for number, code in runner.runs if code == "0"] or [0]
        committed = {int(subject.removeprefix("[codex] run #")) for subject in subjects}
        assert {*older} <= committed <= {*older, last, last + 1}, "the last one may be cut short between the two"
        yield


def _codex_loop(six: Six) -> Iterator[None]:
    """Its branch loses no commit; at the end each file is one."""
    seen = list[str]()
    for _ in _numbers(six):
        if six.work.exists():
            now = six.project.git("rev-list", "--reverse", BRANCH).split()
            assert now[: len(seen)] == seen
            seen = now
        if "last.txt" in six.files:
            files = six.project.git("log", "--format=", "--name-only", f"main..{BRANCH}").split()
            assert (sorted(files), len(six.project.commits)) == (sorted(six.files), len(six.files))
            assert six.project.git("status", "--porcelain", cwd=six.work) == ""
        yield


def _strict(six: Six) -> Iterator[None]:
    """Ids have no gap, and no record was taken in twice."""
    for _ in _numbers(six):
        six.strict.has_no_gap()
        records = [fact["data"]["record"] for fact in six.facts("iteration.recorded")]
        assert len({*records}) == len(records)
        yield


WHOLE: dict[str, Callable[[Six], Iterator[None]]] = {
    "bydawn": _worktree,
    "waylon-smithers": _waylon,
    "codex-autorunner": _autorunner,
    "codex-loop": _codex_loop,
    "strict-agent-loop": _strict,
}
