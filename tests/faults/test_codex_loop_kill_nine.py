"""codex-loop killed again and again: its branch loses no commit, its numbers go on, and its files stay whole."""

import json
import os
import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL

from hypothesis import settings

from driving import Home, said, wait_for, worker_of
from program.codex_loop import BRANCH, ONE, CodexLoop, answer, works


class Reader(threading.Thread):
    """Reads the files in a tight loop, and keeps what is not whole."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.torn, self.read, self.done = folder, list[str](), 0, False

    def run(self) -> None:
        while not self.done:
            for path in (self.folder / "state.json", *self.folder.glob("runs/*.json")):
                self.look(path)
            time.sleep(0.0002)

    def look(self, path: Path) -> None:
        try:
            json.loads(path.read_bytes())
        except FileNotFoundError:
            return
        except ValueError as error:
            self.torn.append(f"{path.name}: {error}")
        self.read += 1

    def stop(self) -> None:
        self.done = True
        self.join()


def test_no_commit_is_lost_by_kills_at_random_moments(home: Home) -> None:
    """C-003, C-009, C-017, C-045: FAULTS 1-4, 9; a third as many kills as random examples."""
    kills = settings().max_examples // 3
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"SEED={seed}")
    dice = random.Random(seed)  # noqa: S311 - to be had again, which is the point
    project = CodexLoop(home).project(ONE, execution={"max_iterations": 10_000})
    # A turn counts from its start, so no two of them ever write the same file.
    project.plays(
        *({"write": {f"{turn}.txt": "x"}, "sleep": 0.03, "reply": answer(ONE, "continue")} for turn in range(900))
    )
    reader, seen = Reader(project.folder), list[str]()
    reader.start()
    for kill in range(kills):
        process, before = project.start("run"), len(project.calls)
        worker = worker_of(process)
        if kill % 4 == 3:  # ten deaths in a row would end it
            wait_for(lambda: len(project.calls) > before + 1)  # noqa: B023 - called at once
        time.sleep(dice.uniform(0, dice.choice([0.2, 0.6, 1.2])))
        for victim in dice.choice([(worker,), (process.pid,), (process.pid, worker)]):
            with suppress(ProcessLookupError):  # the one sees the other's end
                os.kill(victim, SIGKILL)
        assert "Traceback" not in said(process).err
        wait_for(lambda: not home.alive())
        if project.worktree.exists():
            now = project.git("rev-list", "--reverse", BRANCH).split()
            assert now[: len(seen)] == seen
            seen = now
    project.plays(works(ONE))
    ended = project.run()
    reader.stop()
    assert (ended.code, reader.torn, reader.read > 50) == (0, [], True), ended
    assert project.git("status", "--porcelain", cwd=project.worktree) == ""
    changed = {path.name for path in project.worktree.glob("*.txt")}
    files = project.git("log", "--format=", "--name-only", f"main..{BRANCH}").split()
    assert (sorted(files), len(project.commits)) == (sorted(changed), len(changed)), "one commit for each, and only one"
    numbers = [started["round"] for started in project.facts("round.started")]
    assert (numbers, project.meta["iteration"]) == ([*range(1, len(numbers) + 1)], len(numbers))
