"""The success criteria of rloop's document that need many loops at once: mentions, concurrency, a reboot.

The others: `test_rloop_install.py` (easy install), `test_rloop.py` (observable), `dialects/test_rloop_night.py` (hours
without anybody).
"""

import json
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import PAGESIZE
from pathlib import Path

import pytest

from driving import Home, Said, said, wait_for
from program.rloop import PRD, SAYS, TAG, TASK, Rloop, Turn

NAMES = [f"app{number:02}" for number in range(1, 13)]

# What an agent says that is not finished. The first two are the document's own.
MENTIONS = [
    f'"I cannot output {TAG} because tasks remain"',
    f"I cannot respond with `{TAG}` yet",
    f"I won't output {TAG}.",
    f"Tasks remain, so I will not print:\n{TAG}",
    f"When everything is done I will say\n\n```\n{TAG}\n```",
    f"The rule says:\n\n> {TAG}",
    f"What is left:\n\n- a test\n- {TAG}",
    f"Not yet: {TAG}",
    f"Once the tests pass I'll end with {TAG}",
    f"~~{TAG}~~",
    f"It says 'output ONLY: {TAG}', but two boxes are open.",
    "Two boxes are open.\n\n<promise>INCOMPLETE</promise>",
    f"Do NOT mention {TAG} unless outputting it as completion signal",
    f"I would write\n\n    {TAG}",
    f"Should I output {TAG}?",
    f"{TAG} is what I would say if the last box were ticked.",
    f"I don't think that I can say\n{TAG}\nyet.",
    f"It isn't finished. {TAG} has to wait.",
    f"<!-- {TAG} -->",
    f"| signal |\n|---|\n| {TAG} |",
    f"I ran `echo '{TAG}' >> notes.txt`.",
    f"I can’t write {TAG} as long as a box is open",
    f"The marker `{TAG}` is not due.",
    f"If there were nothing left, the answer would be {TAG}",
]


@contextmanager
def watching(rloop: Rloop) -> Iterator[list[str]]:
    """A reader that looks at state.json and five logs as often as it can; what it has seen that must not be."""
    wrong: list[str] = []
    looks = 0
    over = threading.Event()
    logs = dict.fromkeys(NAMES[:5], b"")

    def look() -> None:
        nonlocal looks
        known: set[str] = set()
        while not over.wait(0.001):
            looks += 1
            try:
                text = (rloop.config / "state.json").read_bytes()
                sessions = json.loads(text)["sessions"]
            except FileNotFoundError:
                sessions = {}
            except ValueError:
                wrong.append(f"torn: {text!r}")
                continue
            if lost := known - sessions.keys():
                wrong.append(f"lost: {sorted(lost)}")
            known |= sessions.keys()
            for name, before in logs.items():
                path = rloop.projects / name / ".rloop/ralph.log"
                logs[name] = now = path.read_bytes() if path.exists() else b""
                if not now.startswith(before):
                    wrong.append(f"{name}: written over: {now[:200]!r}")
                # Written at once, but what crosses a page of the file may be seen in two steps.
                if not now.endswith(b"\n") and len(now) % PAGESIZE:
                    wrong.append(f"{name}: half a line: {now[-200:]!r}")

    reader = threading.Thread(target=look)
    reader.start()
    try:
        yield wrong
    finally:
        over.set()
        reader.join()
    assert looks > 100


def memory_of(rloop: Rloop) -> float:
    """Megabytes that a worker and its guardian have for themselves, on average."""
    lines = [
        line
        for pair in rloop.workers(*NAMES)
        for pid in pair
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    ]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024 / len(NAMES)


def rows(answer: Said) -> dict[str, list[str]]:
    """What became of each session that there is."""
    assert answer.code == 0, answer
    found = {line.split()[0]: line.split()[1:] for line in answer.out.splitlines()}
    assert sorted(found) == NAMES, answer
    return found


@pytest.fixture
def night(home: Home) -> Rloop:
    """Twelve projects of three tasks. Claude hangs in its second turn, and mentions the promise in others.

    Its third turn, the first one after the reboot, ends when the gate is open: until then all of them are running.
    """
    rloop = Rloop(home)

    def turns(number: int) -> list[Turn]:
        name = NAMES[number]
        alone = str(home.root / f"{name}.lock")
        first, second = ({**TASK, "alone": alone, "reply": text} for text in MENTIONS[number::12])
        second["wait_for"] = str(rloop.gate())
        return [first, {"alone": alone, "reply": SAYS, "sleep": 600}, second, {**TASK, "alone": alone}]

    rloop.plays(**{name: turns(number) for number, name in enumerate(NAMES)})
    for name in NAMES:
        rloop.project(name, 3)
    return rloop


def test_twelve_loops_are_not_misled_and_go_on_after_a_reboot(night: Rloop) -> None:
    """R-001, R-004, R-005, R-014, R-015, R-043, R-048, R-056, R-060: criteria 1, 3 and 4."""
    rloop = night
    boot = rloop.home.root / "boot"
    boot.write_text("11111111-2222-3333-4444-555555555555\n")
    earlier = f'mount --bind {shlex.quote(str(boot))} /proc/sys/kernel/random/boot_id && exec "$@"'
    before = ["unshare", "--map-root-user", "--mount", "sh", "-c", earlier, "sh"]
    with watching(rloop) as wrong:
        begun = [rloop.start("start", str(rloop.projects / name), before=before) for name in NAMES]
        answers = [said(process) for process in begun]
        assert [answer.code for answer in answers] == [0] * 12, answers
        for name in NAMES:
            rloop.await_turn(2, name)
        wait_for(lambda: all(SAYS in rloop.log(name) for name in NAMES))
        assert memory_of(rloop) <= 25, "each was started by a command of its own"
        rloop.power_cut(*NAMES)
        wait_for(lambda: {row[2] for name, row in rloop.table().items() if name != "NAME"} == {"crashed"})
        assert {session["status"] for session in rloop.sessions.values()} == {"running"}, "the file cannot know"

        resumed, again = (rows(rloop("resume", real=True)) for _ in range(2))
        assert {row[0] for row in resumed.values()} == {"resumed"}, resumed
        assert {" ".join(row) for row in again.values()} == {"skipped it is running"}, again
        assert memory_of(rloop) <= 18, "one command resumed them all; `scripts/bench` has the figure for twenty"
        rloop.gate().touch()
        assert rloop.await_end(*NAMES) == ["complete"] * 12
    assert wrong == []
    for number, name in enumerate(NAMES):
        session = rloop.session(name)
        assert (session["iteration"], session["last_task_count"], len(rloop.calls(name))) == (3, 0, 4), session
        assert (rloop.projects / name / "work.txt").read_text() == "more\n" * 3, "nothing was done twice"
        assert not (rloop.home.root / f"{name}.lock.two").exists(), "never two at once"
        assert len(rloop.facts("run.started", name)) == 2
        ended = [fact for fact in rloop.facts("round.ended", name) if fact["outcome"] == "ok"]
        given = [text for fact, text in zip(ended, MENTIONS[number::12], strict=False) if fact["promise"] == "given"]
        assert (len(ended), given) == (3, []), "a mention"
        titles = [line for line in rloop.log(name).splitlines() if line.startswith("===")]
        assert titles[0] == "=== Iteration 1/30 (Remaining: 3) ==="
        assert titles[-1] == "=== Iteration 3/30 (Remaining: 1) ==="
        assert PRD in rloop.log(name)
    wait_for(rloop.nothing_is_alive)
