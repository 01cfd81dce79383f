"""codex-autorunner with the real Codex and a scripted model, and beside the first release of the original."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from driving import Home, a_repository
from program.autorunner import ITEM, OURS, Autorunner, Turn, blocks
from program.strict_codex import calls, install
from real.model_server import Answer, ModelServer

TICKS = Answer(sh=r"sed -i '0,/\[ \]/s//[x]/' TODO.md; date +%N >> work.txt")


@pytest.fixture
def runner(home: Home, codex_env: dict[str, str]) -> Autorunner:
    home.env = codex_env
    return Autorunner(home)


def asked(model: ModelServer) -> list[str]:
    """The last thing that each request was asked by us."""
    talks = [[item for item in request.body["input"] if item.get("role") == "user"] for request in model.asked]
    return [items[-1]["content"][0]["text"] for items in talks]


def test_three_items_are_three_runs_of_the_real_codex(runner: Autorunner, model: ModelServer) -> None:
    """A-030, A-035, A-036, A-037, A-039: fresh sessions that know what the last one said."""
    runner.ready(3)
    model.play([TICKS, Answer(text="One."), TICKS, Answer(text="Two."), TICKS, Answer(text="Three.")])
    ended = runner("run")
    assert (ended.code, runner.runs) == (0, [(1, "0"), (2, "0"), (3, "0")]), ended
    assert runner.summary == (3, 0, "idle")
    first, _, second, _, third, _ = asked(model)
    assert ["<PREV_RUN_OUTPUT>" in prompt for prompt in (first, second, third)] == [False, True, True]
    assert ["One." in second, "Two." in third] == [True, True]
    assert len({request.body["prompt_cache_key"] for request in model.asked}) == 3
    assert any("sed -i" in line for line in runner.blocks[0].output), "what it does, in readable form"
    assert runner.blocks[2].output[-1] == "Three."


def test_a_flag_that_the_real_codex_does_not_know_stops_at_once_with_the_fix(
    runner: Autorunner, model: ModelServer
) -> None:
    """A-043, X-06."""
    runner.ready(3, args='["exec", "--sandbox", "danger-full-access", "--full-auto"]')
    runner.trust(f"{OURS}/config.yml")
    model.play([Answer(text="Nobody asks for this.")])
    ended = runner("run")
    assert (ended.code, model.asked, runner.state["status"]) == (7, [], "error"), ended
    told = ended.out + ended.err
    assert ("--full-auto" in told, "config.yml" in told) == (True, True), ended


def test_a_limit_of_the_provider_is_waited_out_and_is_no_run(runner: Autorunner, model: ModelServer) -> None:
    """A-043, X-06."""
    runner.ready(1, stop_after_runs="1")
    model.play([Answer(fault="usage-limit", until=int(time.time()) - 20), TICKS, Answer(text="One.")])
    ended = runner("run")
    assert (ended.code, runner.summary) == (0, (1, 0, "idle")), ended
    assert [code for _, code in runner.runs][-1] == "0"
    assert [number for number, _ in runner.runs] == [1]


# -- beside the original -----------------------------------------------------------------------------------------------

# Its command line needs a web server; its engine does not.
DRIVER = """
import sys
from pathlib import Path
from codex_autorunner.bootstrap import seed_repo_files
from codex_autorunner.core.engine import Engine

root = Path.cwd()
if sys.argv[1:] == ["init"]:
    seed_repo_files(root)
else:
    engine = Engine(root)
    engine.acquire_lock()
    try:
        engine.run_loop()
    finally:
        engine.release_lock()
"""
FIELDS = ("last_run_id", "status", "last_exit_code")
MOMENTS = ("last_run_started_at", "last_run_finished_at")


class Original:
    """The 0.1.0 release in a repository of its own, with the documents where ours has them."""

    def __init__(self, root: Path, packages: Path, env: dict[str, str]) -> None:
        self.repo, self._bin = root / "theirs", root / "their-bin"
        self._env = env | {"PYTHONPATH": str(packages), "PATH": f"{self._bin}:{env['PATH']}"}
        a_repository(self.repo, "# a throw-away repository\n")

    def plays(self, *turns: Turn) -> None:
        install(self._bin, turns)

    def ready(self, todo: str, **values: str) -> None:
        self("init")
        (self.repo / "TODO.md").write_text(todo)
        for name in ("PROGRESS.md", "OPINIONS.md"):
            (self.repo / name).write_text((self.repo / OURS / name).read_text())
        # It ends with a report of its own, which our document does not know, unless it has been written.
        (self.repo / OURS / "SUMMARY.md").write_text("<!-- CAR:SUMMARY_FINALIZED -->\n")
        text = (self.repo / OURS / "config.yml").read_text()
        for name in ("TODO.md", "PROGRESS.md", "OPINIONS.md"):
            text = text.replace(f"{OURS}/{name}", name)
        for key, value in {"sleep_seconds: 5": "sleep_seconds: 0", **values}.items():
            assert key in text
            text = text.replace(key, value)
        (self.repo / OURS / "config.yml").write_text(text)

    def __call__(self, *words: str) -> None:
        command = [sys.executable, "-c", DRIVER, *words]
        subprocess.run(command, cwd=self.repo, env=self._env, check=True, capture_output=True, timeout=60)

    @property
    def turns(self) -> int:
        return len([call for call in calls(self._bin) if call["prompt"] is not None])

    @property
    def state(self) -> dict[str, Any]:
        return dict(json.loads((self.repo / OURS / "state.json").read_text()))

    @property
    def runs(self) -> list[tuple[int, str]]:
        log = (self.repo / OURS / "codex-autorunner.log").read_text()
        return [(block.number, block.code) for block in blocks(log)]


class Story(NamedTuple):
    items: int
    turns: tuple[Turn, ...]
    stop_after: str = "null"


STORIES = {
    "three items": Story(3, (ITEM,)),
    "a failure": Story(3, (ITEM, {**ITEM, "exit": 3})),
    "two runs": Story(5, (ITEM,), stop_after="2"),
    "an item that takes three runs": Story(1, ({"append": {"work.txt": "x\n"}, "reply": "On it."},) * 2 + (ITEM,)),
}


@pytest.mark.parametrize("name", STORIES)
def test_the_first_release_of_the_original_and_ours_do_the_same(home: Home, original: Path, name: str) -> None:
    """A-021, A-023, A-038, A-039: calls, state and markers, on one TODO.md and one fake of Codex."""
    story = STORIES[name]
    theirs, ours = Original(home.root, original, dict(home.env)), Autorunner(home)
    for each in (theirs, ours):
        each.plays(*story.turns)
    ours.ready(story.items, stop_after_runs=story.stop_after)
    todo = (ours.repo / "TODO.md").read_text()
    theirs.ready(todo, **{"stop_after_runs: null": f"stop_after_runs: {story.stop_after}"})
    theirs("run")
    ours("run")
    assert len(ours.calls) == theirs.turns
    assert ours.runs == theirs.runs
    assert {field: ours.state[field] for field in FIELDS} == {field: theirs.state[field] for field in FIELDS}
    assert all(len(ours.state[field]) == len(theirs.state[field]) for field in MOMENTS)
    assert (ours.repo / "TODO.md").read_text() == (theirs.repo / "TODO.md").read_text()


def test_ours_goes_on_where_the_original_ended(home: Home, original: Path) -> None:
    """A-020, A-021, A-035, A-066: with its files, as it left them."""
    theirs, ours = Original(home.root, original, dict(home.env)), Autorunner(home)
    theirs.plays({**ITEM, "reply": "What the original did."})
    theirs.ready("- [ ] one\n- [ ] two\n- [ ] three\n", **{"stop_after_runs: null": "stop_after_runs: 2"})
    theirs("run")
    log = (theirs.repo / OURS / "codex-autorunner.log").read_bytes()
    config = theirs.repo / OURS / "config.yml"
    config.write_text(config.read_text().replace("version: 2", "version: 1"))
    ours.repo = home.repo = theirs.repo
    ours.plays(ITEM)
    ours.trust(f"{OURS}/config.yml")
    ended = ours("run")
    assert (ended.code, ours.summary) == (0, (3, 0, "idle")), ended
    assert (theirs.repo / OURS / "codex-autorunner.log").read_bytes().startswith(log)
    assert "What the original did." in ours.prompts[0]
