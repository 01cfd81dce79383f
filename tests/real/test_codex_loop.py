"""codex-loop with the real Codex and a scripted model, and the same project with the real Claude natively."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from driving import Home
from program.codex_loop import NAME, ONE, PROPOSAL, TWO, CodexLoop, answer
from program.strict_codex import loose
from real.model_server import Answer, Call, ModelServer, Request

DEPENDS = {TWO: f"---\ndepends_on: {ONE}\n---\n# Two\n\nWrite {TWO}.txt.\n"}


@pytest.fixture
def project(home: Home, codex_env: dict[str, str]) -> CodexLoop:
    home.env = codex_env
    return CodexLoop(home)


def says(task: str, status: str = "complete", **fields: Any) -> Answer:
    return Answer(text=json.dumps(answer(task, status, **fields)))


def does(task: str) -> Answer:
    return Answer(sh=f"echo more >> {task}.txt")


def conversations(model: ModelServer) -> list[str]:
    """Which conversation each request belongs to, by the order in which they began."""
    keys = [str(request.body["prompt_cache_key"]) for request in model.asked]
    return [f"{'ABC'[[*dict.fromkeys(keys)].index(key)]}" for key in keys]


def is_strict(request: Request) -> bool:
    """Would the provider take the schema of this request?"""
    form = request.body["text"]["format"]
    return form["type"] == "json_schema" and form["strict"] and not loose(form["schema"])


def test_the_real_codex_is_asked_for_tasks_and_does_them_in_one_conversation_each(
    project: CodexLoop, model: ModelServer
) -> None:
    """C-006, C-010, C-048, C-068, X-02: `init`, two dependent tasks, one of them resumed; every answer by a schema."""
    first, second = PROPOSAL["tasks"]
    tasks = [first, {**second, "markdown": f"---\ndepends_on: 001-add\n---\n{second['markdown']}"}]
    model.play(
        [
            Answer(text=json.dumps({**PROPOSAL, "tasks": tasks})),
            Answer(sh="echo half > add.txt"),
            says("001-add", "continue", needs_resume=True),
            Answer(sh="echo whole > add.txt"),
            says("001-add"),
            Answer(sh="echo whole > subtract.txt"),
            says("002-subtract"),
        ]
    )
    made = project.answered("y\n", "init", "--prompt", "a shop, please")
    assert made.code == 0, made.text
    assert len(model.asked) == 1
    ended = project.run()
    assert (ended.code, project.tasks) == (0, {"001-add": "done", "002-subtract": "done"}), ended
    assert (model.left, conversations(model)) == ([], [*"ABBBBCC"])
    assert [is_strict(request) for request in model.asked] == [True] * 7
    assert [len({*entry["files_changed"]}) for entry in project.history("iteration")] == [1, 1, 1]
    assert len(project.commits) == 3
    assert project.git("show", "codex-loop/shop:add.txt") == "whole\n"


def test_a_conversation_that_the_real_codex_has_lost_is_begun_afresh(
    project: CodexLoop, model: ModelServer, codex_home: Path
) -> None:
    """C-006, X-02."""
    project.project(ONE, execution={"max_iterations": 1})
    model.play([does(ONE), says(ONE, "continue"), does(ONE), says(ONE)])
    assert project.run().code == 2
    shutil.rmtree(codex_home / "sessions")
    ended = project.run()
    assert (ended.code, project.tasks, conversations(model)) == (0, {ONE: "done"}, [*"AABB"]), ended
    task = project.task(ONE)
    assert (task["resume_fallback_used"], "no rollout found" in task["resume_failure_reason"]) == (True, True)


def test_a_schema_that_the_provider_refuses_stops_it_at_once_with_its_words(
    project: CodexLoop, model: ModelServer
) -> None:
    """C-068, X-06."""
    project.project(ONE)
    model.play([Answer(fault="schema", times=0)])
    ended = project.run()
    assert (ended.code, len(model.asked)) == (2, 1), ended
    assert "Invalid schema for response_format" in ended.out + ended.err, ended


def test_the_same_project_with_the_real_claude(home: Home, claude_env: dict[str, str], model: ModelServer) -> None:
    """C-045, C-048, C-068: tasks, a worktree, structured answers; all of it natively."""
    home.env = claude_env
    project = CodexLoop(home)
    project.project(ONE, TWO, texts=DEPENDS, agreed=False)
    structured = [Answer(calls=(Call("StructuredOutput", answer(task)),)) for task in (ONE, TWO)]
    model.play([does(ONE), structured[0], does(TWO), structured[1]])
    words = ("-a", "claude", "-t", "tasks", "--worktree", "--check", f"test -e {ONE}.txt", "--name", NAME, "--plain")
    ended = home.bydawn("run", *words, seconds=90)
    assert (ended.code, model.left) == (0, []), ended
    assert all("StructuredOutput" in request.tools for request in model.asked)
    assert project.git("ls-tree", "--name-only", f"bydawn/{NAME}").split() == [f"{ONE}.txt", f"{TWO}.txt", "README.md"]
    project.git("merge", "-q", f"bydawn/{NAME}")
    assert (project.repo / f"{TWO}.txt").read_text() == "more\n"
