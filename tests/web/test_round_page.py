"""The page of a round: checks, steps and changes, for every state a round can be in."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bydawn.core.errors import NotFound
from bydawn.core.facts import AnyFact
from bydawn.core.outcome import Outcome
from bydawn.core.values import Changes, LineCounts, Verdict
from bydawn.operations.round_steps import StepKind, round_steps
from bydawn.store.ledger import encode
from bydawn.store.lock import Lock
from bydawn.store.registry import Registry, Standing
from bydawn.web.loops import Loops
from bydawn.web.page import Visitor
from bydawn.web.pages.round import ranges, raw_bytes
from core.facts_made import BORN, a_loop, a_note, checked, ended, numbered, run_started, started
from operations.stories import SPENT, STORIES
from web.drawn import LOOKS, STEERS, Drawn, drawn, round_page


@pytest.mark.parametrize("visitor", [STEERS, LOOKS], ids=["steers", "looks"])
@pytest.mark.parametrize("name", STORIES)
def test_every_round_of_every_loop_can_be_looked_at(loops: Loops, name: str, visitor: Visitor) -> None:
    for number in range(1, loops.find(name).state.round + 1):
        page = round_page(loops, name, number, visitor)
        shown = drawn(page, visitor)
        assert f"Round {number}" in shown.text
        assert "Checks" in shown.text and "What the agent did" in shown.text and "Changes" in shown.text
        assert not [form for form in shown.forms if form.action.startswith("/loops")], "a round is only looked at"


def test_a_round_that_is_not_there_is_not_found(loops: Loops) -> None:
    with pytest.raises(NotFound, match="complete has no round 9"):
        round_page(loops, "complete", 9, STEERS)
    with pytest.raises(NotFound, match="no round 1"):
        round_page(loops, "session", 1, STEERS)


def test_a_running_round_says_what_comes_later(loops: Loops) -> None:
    page = round_page(loops, "running", 2, STEERS)
    shown = drawn(page)
    assert page.refreshes
    assert "The checks run when the agent has finished." in shown.text
    assert "The agent has printed nothing yet." in shown.text
    assert "What it changes is shown when the round ends." in shown.text
    assert [section.live for section in page.sections] == [True] * 4


def test_what_no_longer_changes_is_not_drawn_again(loops: Loops) -> None:
    """But it is once more after the round has ended, for those who looked at it before."""
    earlier = {section.settled for section in round_page(loops, "running", 1, STEERS).sections[1:]}
    assert earlier == {"ended True checked False"}
    running = [section.settled for section in round_page(loops, "running", 2, STEERS).sections]
    assert running == ["", "", "", "it runs"]


def test_a_round_that_many_facts_came_after_has_a_page(loops: Loops, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bydawn.operations.recent._FACTS_PER_ROUND", 0)
    assert round_page(loops, "running", 1, STEERS).title.endswith("round 1")


# -- one loop, told in full --------------------------------------------------------------------------------------------

EXCERPT = "=== FAILURES ===\n\n    def test():\nE   AssertionError: 9.99 != 10.00\n1 failed, 25 passed in 3.11s"
OUTPUT = "\n".join([*(f"line {number}" for number in range(30)), EXCERPT, ""])
BAD = "<script>alert(1)</script>"
TELLING = """{"type": "activity", "text": "reading TODO.md"}
{"type": "activity", "text": "reading src/refunds.py"}
{"type": "message", "text": "I begin."}
"""


class Stage:
    """A loop whose rounds have outputs."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "shop"
        self.workspace.mkdir()
        self.registry = Registry(root / "state")
        self.folder = self.registry.home(self.workspace) / "shop"
        self.folder.mkdir(parents=True)
        self._facts: list[AnyFact] = [BORN, run_started()]

    def write(self, *facts: AnyFact, **settings: Any) -> None:
        self._facts += facts
        loop = a_loop(id="shop", workspace=str(self.workspace), **settings)
        (self.folder / "loop.json").write_bytes(msgspec.json.encode(loop))
        (self.folder / "ledger.jsonl").write_bytes(b"".join(map(encode, numbered(self._facts))))

    def put(self, number: int, name: str, text: str | bytes) -> None:
        path = self.folder / f"rounds/{number:04}/{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    @property
    def loops(self) -> Loops:
        return Loops(self.registry)

    @property
    def standing(self) -> Standing:
        return self.loops.find("shop")

    def page(self, number: int = 1, **more: Any) -> Drawn:
        return drawn(round_page(self.loops, "shop", number, STEERS, **more))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Stage(tmp_path.resolve())


def red(number: int, fingerprint: str = "f-1") -> AnyFact:
    failed = Verdict(
        check="pytest -q",
        passed=False,
        detail="exit 1",
        exit_code=1,
        seconds=3.1,
        output="check-1.txt",
        excerpt=EXCERPT,
        fingerprint=fingerprint,
    )
    green = Verdict(check="ruff check .", passed=True, detail="exit 0", exit_code=0, seconds=0.2, output="check-2.txt")
    return msgspec.structs.replace(checked(number), verdicts=(green, failed), seconds=3.3)


def test_a_failing_check_is_open_and_first_and_its_telling_line_is_marked(stage: Stage) -> None:
    stage.write(started(1, task="Prorate refunds"), ended(1), red(1))
    stage.put(1, "check-1.txt", OUTPUT)
    stage.put(1, "check-2.txt", "fine\n")
    shown = stage.page()
    assert "1 of 2 failed" in shown.text and "exit 1 · 3 s" in shown.text
    folds = [given for tag, given in shown.tags if tag == "details" and given.get("id", "").startswith("check-")]
    assert [(fold["id"], "open" in fold) for fold in folds] == [("check-2", True), ("check-1", False)]
    assert '<span class="useful">E   AssertionError: 9.99 != 10.00</span>' in shown.html
    assert '<span class="least"></span>' in shown.html
    assert "/loops/shop/rounds/1/raw/check-2" in shown.links
    assert "line 29" in shown.html, "all that it printed is in a fold"


def test_the_same_failure_is_recognized(stage: Stage) -> None:
    for number, mark in ((1, "f-0"), (2, "f-1"), (3, "f-1"), (4, "f-1")):
        stage.write(started(number), ended(number), red(number, mark))
    assert "the same failure as in rounds 2-3" in stage.page(4).text
    assert "the same failure" not in stage.page(2).text
    assert ranges([1, 3, 4, 5, 9]) == "rounds 1, 3-5, 9"


def test_the_head_says_what_a_person_asks_first(stage: Stage) -> None:
    changes = Changes(added=1, modified=1, paths=("a",), lines=LineCounts(added=14, removed=6))
    stage.write(
        a_note("n-1"),
        started(1, task="Prorate refunds", task_id="t-1", notes=("n-1",)),
        ended(1, seconds=372.0, usage=SPENT, changes=changes, said="no"),
        red(1),
        started(2, task="Prorate refunds", task_id="t-1", session="s-1"),
        ended(2, Outcome.FAILED, detail="the model is overloaded"),
        others=("codex",),
    )
    shown = stage.page(1)
    assert "Round 1: Prorate refunds" in shown.text and "not yet" in shown.text
    assert "6 m 12 , checks 3 s" in shown.text and "2 files +14 -6" in shown.text
    assert "$0.42 1 k tokens" in shown.text and "demo, fresh session" in shown.text
    assert "1 note from you in its prompt" in shown.text
    assert "/loops/shop/rounds/2" in shown.links
    later = stage.page(2)
    assert "continued session" in later.text and "The model is overloaded." in later.text
    assert "/loops/shop/rounds/2/diff?since=1#changes" in later.links


def test_the_steps_of_one_kind_are_one_and_the_reply_is_open(stage: Stage) -> None:
    stage.write(started(1), ended(1, said="All done."))
    stage.put(1, "prompt.md", f"Do it. {BAD}")
    stage.put(1, "stdout", TELLING)
    stage.put(1, "reply.md", f"**All** done. {BAD}\n\n- one\n")
    shown = stage.page()
    assert "Read 2 files" in shown.text and "“I begin.”" in shown.text
    assert "<strong>All</strong> done." in shown.html and "<li>one</li>" in shown.html
    [reply] = [given for tag, given in shown.tags if tag == "details" and given.get("id") == "reply"]
    assert "open" in reply
    assert f"{len('Do it. ' + BAD)} characters" in shown.text
    assert BAD not in shown.html


def test_steps_are_read_from_every_kind_of_event(stage: Stage) -> None:
    stage.write(started(1, agent="codex"), ended(1), agent="codex")
    item = (
        '{"type":"item.%s","item":{"type":"command_execution","command":"%s","exit_code":%s,"aggregated_output":"%s"}}'
    )
    lines = [
        item % ("started", "pytest -q", "null", ""),
        item % ("completed", "pytest -q", "1", "1 failed"),
        item % ("completed", "ls", "0", ""),
        item % ("completed", "cat a", "0", ""),
        item % ("completed", "touch /x", "1", "Read-only file system"),
        '{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a.py"}]}}',
        '{"type":"item.completed","item":{"type":"agent_message","text":"the end"}}',
        "not json",
    ]
    stage.put(1, "stdout", "\n".join(lines) + "\n")
    found = round_steps(stage.standing, 1, reply="the end")
    assert [(step.kind, f"{step.title}{step.code}", step.note, step.failed) for step in found.steps] == [
        (StepKind.COMMAND, "Ran pytest -q", "exit 1", True),
        (StepKind.COMMAND, "Ran 2 commands", "", False),
        (StepKind.COMMAND, "Ran touch /x", "exit 1", True),
        (StepKind.DENIED, "Not allowed: touch /x: read-only file system", "sandbox", False),
        (StepKind.EDIT, "Edited a.py", "", False),
    ]
    assert not found.earlier


def test_a_long_round_shows_its_last_steps_and_where_the_others_are(stage: Stage) -> None:
    stage.write(started(1), ended(1))
    stage.put(1, "stdout", "".join(f'{{"type": "message", "text": "word {n}"}}\n' for n in range(400)))
    shown = stage.page()
    assert "word 399" in shown.text and "word 3”" not in shown.text
    assert "Earlier steps are in the log" in shown.text


def test_secrets_are_hidden_in_prompt_reply_steps_checks_and_raw_files(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter2-hunter2"  # noqa: S105
    monkeypatch.setenv("SHOP_TOKEN", secret)
    stage.write(started(1), ended(1), red(1))
    stage.put(1, "stdout", f'{{"type": "message", "text": "it is {secret}"}}\n')
    for name in ("prompt.md", "reply.md", "check-2.txt", "stderr"):
        stage.put(1, name, f"it is {secret}\n")
    assert "hunter2" not in stage.page().html
    for name in ("stdout", "prompt.md", "check-2.txt", "stderr"):
        assert b"hunter2" not in raw_bytes(stage.standing, 1, name, 1 << 20)


def test_a_raw_file_has_a_limit_and_one_that_is_not_there_says_why(stage: Stage) -> None:
    stage.write(started(1), ended(1))
    stage.put(1, "stdout", "0123456789")
    assert raw_bytes(stage.standing, 1, "stdout", 4) == b"6789"
    with pytest.raises(NotFound, match="no such file") as gone:
        raw_bytes(stage.standing, 1, "stderr", 4)
    assert gone.value.cause == "it was removed by `bydawn clean`"


def test_a_name_from_elsewhere_is_data(stage: Stage) -> None:
    bad = f"{BAD}\x1b[31m\u202e"
    verdict = Verdict(check=f"echo {bad}", passed=False, detail=bad, excerpt=bad)
    checks = msgspec.structs.replace(checked(1), verdicts=(verdict,))
    stage.write(started(1, task=bad, agent=f"cmd:{bad}"), ended(1, Outcome.FAILED, detail=bad, denied=(bad,)), checks)
    shown = stage.page()
    assert BAD not in shown.html and "\x1b" not in shown.html and "\u202e" not in shown.html
    assert "&lt;script&gt;" in shown.html


def test_the_diff_can_be_since_an_earlier_round_or_of_one_whole_file(stage: Stage) -> None:
    stage.write(started(1), ended(1), started(2), ended(2))
    assert "What the round changed is unknown" in stage.page(2, since=1, file="a <b>.py").text
    assert "The loop shop has no round 7." in stage.page(2, since=7).text


def test_a_crashed_round_was_interrupted(stage: Stage) -> None:
    stage.write(started(1))
    assert "interrupted" in stage.page().text and "The round was interrupted." in stage.page().text
    lock = Lock.take(stage.folder / "lock")
    try:
        assert "running for" in stage.page().text
    finally:
        lock.release()
