"""A project that the original codex-loop began: ours goes on with it, and loses nothing of it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from driving import Home
from program.codex_loop import ONE, PROPOSAL, THREE, TWO, CodexLoop, idles, merge_command, works

ORIGINAL = json.loads((Path(__file__).parents[1] / "dialects/codex_loop/original/state.json").read_text())
BRANCH = "codex-loop/shop-20260301"


@pytest.fixture
def project(home: Home) -> CodexLoop:
    """Three tasks, the first done there; its worktree, with a commit and with work that is in none."""
    found = CodexLoop(home).project(ONE, TWO, THREE, verify="test -e 001-one.txt")
    tree = home.root / "elsewhere/shop"
    found.git("worktree", "add", "-q", "-b", BRANCH, str(tree))
    (tree / "001-one.txt").write_text("by the original\n")
    found.git("add", ".", cwd=tree)
    found.git("commit", "-qm", "one", cwd=tree)
    (tree / "half.txt").write_text("half of two\n")
    found.plays(idles(TWO, "continue"))
    subprocess.run(
        [found.bin / "codex", "exec", "--json", "-"], input="two", cwd=tree, env=home.env, text=True, check=True
    )
    [call] = found.calls
    tasks = dict(zip((ONE, TWO, THREE), ORIGINAL["tasks"].values(), strict=False))
    tasks[TWO] |= {"session_id": call["session"]}
    meta = {**ORIGINAL["meta"], "worktree_path": str(tree), "worktree_branch": BRANCH}
    found.write(".codex-loop/state.json", json.dumps({**ORIGINAL, "meta": meta, "tasks": tasks}))
    found.write(".codex-loop/logs/0007-002-two.jsonl", "theirs\n")
    return found


def test_done_tasks_numbers_sessions_and_the_branch_of_the_original_go_on(project: CodexLoop) -> None:
    """C-003, C-045: what it left uncommitted is the first commit, and the merge as printed brings all of it."""
    theirs = (project.folder / "state.json").read_text()
    session = project.calls[0]["session"]
    project.plays(works(TWO), works(THREE))
    assert "state.json is the original's; `codex-loop run` takes it over" in project("doctor").out
    ended = project.run()
    assert ended.code == 0, ended
    assert "took over .codex-loop/state.json: blocked at iteration 7" in ended.out + ended.err
    assert [(call["session"] == session, Path(call["cwd"]).name) for call in project.calls[1:]] == [
        (True, "shop"),
        (False, "shop"),
    ]
    assert [word in project.prompts[1] for word in ("## Goal", "## Rules")] == [True, True]  # it has never seen ours
    assert (project.tasks, project.meta["iteration"]) == (dict.fromkeys((ONE, TWO, THREE), "done"), 9)
    assert project.status["bydawn"]["adopted"] == [ONE]
    assert (project.folder / "state.original.json").read_text() == theirs
    assert (project.folder / "logs/0007-002-two.jsonl").read_text() == "theirs\n"
    assert (project.folder / "logs/0008-002-two.jsonl").is_file()
    subjects = project.git("log", "--reverse", "--format=%s", f"main..{BRANCH}").splitlines()
    assert (len(subjects), subjects[0]) == (4, "one")
    first = project.git("show", "--name-only", "--format=", f"{BRANCH}~2")
    assert first.split() == ["half.txt"]
    project.git(*merge_command(ended.out).split()[1:])
    found = {
        name: (project.repo / name).is_file() for name in ("001-one.txt", "half.txt", "002-two.txt", "003-three.txt")
    }
    assert all(found.values()), found


def test_a_second_run_goes_on_from_our_own_record(project: CodexLoop) -> None:
    project.plays(works(TWO), idles(THREE, "blocked", blockers=["which one?"]))
    assert project.run().code == 2
    shutil.rmtree(project.folder)  # a view, and no more
    project.plays(works(THREE))
    assert project.run("--retry-blocked").code == 0
    assert (project.meta["iteration"], project.meta["worktree_branch"]) == (10, BRANCH)


def test_nothing_is_taken_over_from_a_run_that_is_alive_or_from_a_damaged_state(project: CodexLoop) -> None:
    before = (project.folder / "state.json").read_text()
    project.write(".codex-loop/daemon.json", json.dumps({"pid": os.getpid()}))
    refused = project.run()
    assert (refused.code, "the original codex-loop may be running here" in refused.err) == (8, True)
    (project.folder / "daemon.json").unlink()
    project.write(".codex-loop/state.json", before[:100])
    refused = project.run()
    assert (refused.code, "state.json cannot be taken over" in refused.err) == (1, True)
    assert (len(project.calls), (project.folder / "state.json").read_text()) == (1, before[:100])


def test_a_new_plan_replaces_a_project_of_the_original_only_by_force_and_keeps_its_state(project: CodexLoop) -> None:
    theirs, schema = (project.folder / "state.json").read_text(), project.folder / "agent_result.schema.json"
    schema.write_text('{"theirs": true}')
    for path in (project.repo / "tasks").iterdir():
        path.unlink()
    (project.repo / "codex-loop.yaml").unlink()
    project.plays({"reply": PROPOSAL})
    refused = project("init", "--prompt", "a shop, please")
    assert (refused.code, "state.json is there already" in refused.err, len(project.calls)) == (1, True, 1)
    made = project("init", "--force", "--prompt", "a shop, please")
    assert made.code == 0, made
    assert (project.folder / "state.original.json").read_text() == theirs
    assert (project.folder / "agent_result.schema.original.json").read_text() == '{"theirs": true}'
    assert (project.meta["overall_status"], project.meta["iteration"]) == ("initialized", 0)


def test_a_task_of_strict_agent_loops_older_layout_is_left_alone(project: CodexLoop) -> None:
    """X-03: said by `run`, `doctor` and `init` before anything is spent."""
    text = json.dumps({"skill_name": "strict-agent-loop", "schema_version": 3, "task": {"id": "old"}})
    project.write(".codex-loop/state.json", text)
    for words in (("run",), ("doctor",), ("init", "--force", "--prompt", "x")):
        refused = project(*words)
        assert (refused.code, "belongs to strict-agent-loop" in refused.out + refused.err) == (1, True), refused
    assert (len(project.calls), (project.folder / "state.json").read_text()) == (1, text)


def test_checks_of_a_takeover_run_without_a_box_and_it_says_why(project: CodexLoop) -> None:
    """No baseline would show whether the box is in their way."""
    project.home.env["BYDAWN_BOX"] = "auto"
    project.plays(works(TWO), works(THREE))
    ended = project.run()
    assert ended.code == 0, ended
    assert "checks run without a box: another program began this work" in ended.err
