"""codex-loop from the outside: a prompt becomes tasks, tasks become commits, and one merge brings them."""

import json
import os
import re
import subprocess

import pytest

from driving import Home, tree_of
from program.codex_loop import (
    BRANCH,
    CONFIG,
    NAME,
    ONE,
    PROPOSAL,
    THREE,
    TWO,
    CodexLoop,
    answer,
    idles,
    merge_command,
    works,
)
from program.strict import Strict

WRITTEN = (
    CONFIG,
    "spec/001-project-spec.md",
    "plan/001-implementation-plan.md",
    "tasks/001-add.md",
    "tasks/002-subtract.md",
)
ADD, SUBTRACT = "001-add", "002-subtract"


@pytest.fixture
def project(home: Home) -> CodexLoop:
    return CodexLoop(home)


# -- init --------------------------------------------------------------------------------------------------------------


def test_a_prompt_becomes_tasks_and_tasks_become_a_merge(project: CodexLoop) -> None:
    """C-001, C-004, C-010, C-069, X-31: what a person agreed to in `init` runs without another question."""
    does = [
        {"write": {f"{word}.txt": word}, "reply": answer(task)} for word, task in (("add", ADD), ("subtract", SUBTRACT))
    ]
    project.plays({"reply": PROPOSAL}, *does)
    made = project.answered("y\n", "init", "--prompt", "a shop, please")
    assert made.code == 0, made.text
    assert [word in made.text for word in ("test -e add.txt", "Subtract", "codex-loop run")] == [True] * 3
    assert [name for name in WRITTEN if not (project.repo / name).is_file()] == []
    [asked] = project.calls
    assert (asked["sandbox"], sorted(asked["schema"]["properties"])) == ("read-only", sorted(PROPOSAL))
    assert "a shop, please" in asked["prompt"]
    for path in (".gitignore", ".git/info/exclude"):
        assert (project.repo / path).read_text().splitlines().count(".codex-loop/") == 1
    assert (project.meta["overall_status"], project.meta["source_prompt"]) == ("initialized", "a shop, please")
    assert project.tasks == {ADD: "ready", SUBTRACT: "pending"}
    ended = project.run()
    assert (ended.code, project.tasks) == (0, {ADD: "done", SUBTRACT: "done"}), ended
    project.git(*merge_command(ended.out).split()[1:])
    assert (project.repo / "subtract.txt").read_text() == "subtract"
    files = {name: (project.repo / name).read_bytes() for name in WRITTEN}
    refused = project("init", "--prompt", "another one")
    assert (refused.code != 0, CONFIG in refused.err, "--force" in refused.err) == (True, True, True), refused
    assert ({name: (project.repo / name).read_bytes() for name in WRITTEN}, len(project.calls)) == (files, 3)


def test_without_a_terminal_what_codex_proposed_does_not_run_until_a_person_agrees(project: CodexLoop) -> None:
    """X-31: the next step that is printed is the command that agrees."""
    project.plays({"sh": "touch cannot-be-written", "reply": PROPOSAL}, works(ADD))
    made = project("init", "--prompt", "a shop, please")
    assert (made.code, "test -e add.txt" in made.out, "codex-loop trust" in made.out) == (0, True, True), made
    refused = project.run()
    assert (refused.code, "codex-loop trust" in refused.err, len(project.calls)) == (1, True, 1), refused
    assert not project.worktree.exists()


# -- a finished run ----------------------------------------------------------------------------------------------------


def test_the_printed_merge_brings_exactly_the_work(project: CodexLoop) -> None:
    """C-009, C-045, X-18, X-20: in the project and in a clone; the worktree stays until then."""
    project.project(ONE, TWO, verify="test -e README.md")
    project.write("notes.txt", "untracked, and not in the worktree\n")
    project.plays(works(ONE), {"write": {"README.md": "new\n"}, **works(TWO)})
    ended = project.run()
    assert ended.code == 0, ended
    assert [task in ended.out for task in (ONE, TWO)] == [True, True], "a line per iteration"
    assert (project.meta["overall_status"], len(project.commits)) == ("completed", 2)
    removed = project.home.bydawn("clean", "--worktrees", "--apply")
    assert ("merge" in removed.out + removed.err, project.worktree.is_dir()) == (True, True), removed
    work = tree_of(project.worktree)
    assert work.keys() == {"README.md", f"{ONE}.txt", f"{TWO}.txt"}
    clone = project.home.root / "clone"
    project.git("clone", "-q", str(project.repo), str(clone))
    project.git("merge", "-q", f"origin/{BRANCH}", cwd=clone)
    assert tree_of(clone) == work
    assert merge_command(ended.out) == f"git merge {BRANCH}"
    project.git("merge", "-q", BRANCH)
    assert project.git("diff", BRANCH) == ""
    removed = project.home.bydawn("clean", "--worktrees", "--apply")
    assert (removed.code, project.worktree.exists()) == (0, False), removed


def test_a_finished_run_leaves_what_the_document_names(project: CodexLoop) -> None:
    """C-003, C-005, C-008, C-018, C-065, C-068."""
    words = ("EVENT", "TASK_ID", "TASK_STATUS", "LOOP_ITERATION", "AGENT_STATUS", "VERIFICATION_PASSED", "OUTCOME")
    shown = " ".join(f'"$CODEX_LOOP_{word}"' for word in words)
    told = f'printf "%s|" {shown} >> "$CODEX_LOOP_PROJECT_DIR/../told"; pwd -P >> "$CODEX_LOOP_PROJECT_DIR/../told"'
    events = ("pre_iteration", "post_iteration", "on_completed", "on_blocked")
    project.project(ONE, hooks={event: [told, "echo second"] for event in events})
    project.plays(works(ONE, summary="It adds now."))
    assert project.run().code == 0
    files = {f"logs/0001-{ONE}.jsonl", f"prompts/0001-{ONE}.txt", f"runs/{ONE}-last.json", "agent_result.schema.json"}
    hooks = {f"hooks/{event}.jsonl" for event in events[:3]}
    left = {name for name in tree_of(project.folder) if not name.startswith("artifacts/")}
    assert left - {"run.lock"} == files | hooks | {"state.json", "metrics.json"}
    assert (project.folder / f"prompts/0001-{ONE}.txt").read_text() == project.prompts[0]
    assert json.loads((project.folder / f"runs/{ONE}-last.json").read_text())["summary"] == "It adds now."
    assert json.loads((project.folder / "agent_result.schema.json").read_text()) == project.calls[0]["schema"]
    first = json.loads((project.folder / f"logs/0001-{ONE}.jsonl").read_text().splitlines()[0])
    assert first == {"type": "thread.started", "thread_id": project.calls[0]["session"]}
    assert len((project.folder / "hooks/pre_iteration.jsonl").read_text().splitlines()) == 2
    pre, post, end = (line.split("|") for line in (project.home.root / "told").read_text().splitlines())
    assert {line[-1] for line in (pre, post, end)} == {str(project.worktree)}
    assert (pre[:4], post[:2]) == ([events[0], ONE, pre[2], "1"], [events[1], ONE])
    assert (post[4:6], end[0], end[6]) == (["complete", "true"], "on_completed", "completed")
    assert project.git("status", "--porcelain", "--", ".codex-loop") == "" or not (project.repo / ".gitignore").exists()


# -- sessions and answers ----------------------------------------------------------------------------------------------


def test_blocked_blocks_its_task_and_the_rest_goes_on(project: CodexLoop) -> None:
    """C-005, C-063, X-32: with its blockers; what depends on it waits, and the end is blocked."""
    project.project(ONE, TWO, THREE, texts={TWO: f"<!-- depends_on: {ONE} -->\n# Two\n\nDo it.\n"})
    project.plays(idles(ONE, "blocked", blockers=["there is no key for the shop"]), works(THREE))
    ended = project.run()
    assert (ended.code, project.tasks) == (2, {ONE: "blocked", TWO: "pending", THREE: "done"}), ended
    task = project.task(ONE)
    assert (task["blocker_code"], "no key for the shop" in task["blocker_reason"]) == ("agent_blocked", True)
    assert "no key for the shop" in ended.out + ended.err
    assert "--retry-blocked" in ended.out + ended.err
    assert [f"answer it in tasks/{ONE}.md" in ended.err, "bydawn" in ended.out + ended.err] == [True, False]
    again = project.run()
    assert (again.code, len(project.calls)) == (2, 2), "nothing is spent on what is blocked"
    project.plays(works(ONE), works(TWO))
    ended = project.run("--retry-blocked")
    assert (ended.code, set(project.tasks.values()), len(project.commits)) == (0, {"done"}, 3), ended


def test_a_task_that_a_person_leaves_out_is_not_missed(project: CodexLoop) -> None:
    project.project(ONE, TWO, THREE, texts={THREE: f"<!-- depends_on: {ONE} -->\n# Three\n\nDo it.\n"})
    project.plays(idles(ONE, "blocked", blockers=["there is no key"]), works(TWO))
    assert project.run().code == 2
    left = project("skip", ONE)
    assert (left.code, left.out) == (0, f"{ONE} is left out; {THREE} waits for it\n"), left
    assert project("skip", THREE).code == 0
    ended = project.run()
    assert (ended.code, project.tasks, len(project.calls)) == (0, {TWO: "done"}, 2), ended
    wrong = project("skip", "nothing")
    assert (wrong.code, "bydawn" in wrong.err) == (1, False), wrong


def test_max_iterations_bounds_one_run_and_the_number_goes_on(project: CodexLoop) -> None:
    """C-030, X-08."""
    project.project(ONE, execution={"max_iterations": 2})
    project.plays(works(ONE, "continue"))
    for number in (2, 4):
        ended = project.run()
        assert (ended.code, project.blocker, project.meta["iteration"]) == (2, "max_iterations", number), ended
        assert f"{number}/2" not in ended.out.replace("2/2", ""), "31/30 is no number"
    assert (project.folder / f"logs/0004-{ONE}.jsonl").is_file()
    assert len(project.commits) == 4


# -- what a person does between two runs -------------------------------------------------------------------------------


def test_every_run_reads_the_project_again(project: CodexLoop) -> None:
    """C-002, C-004: new tasks of a finished one are done; without any it is complete at once; settings are today's."""
    project.project(ONE)
    project.plays(works(ONE), works(TWO))
    assert project.run().code == 0
    project.project(ONE, TWO, goal={"summary": "A shop that can subtract, too."}, verify="test -e README.md")
    ended = project.run()
    assert (ended.code, project.tasks, project.meta["iteration"]) == (0, {ONE: "done", TWO: "done"}, 2), ended
    assert ["subtract, too" in project.prompts[1], "test -e README.md" in project.prompts[1]] == [True, True]
    (project.repo / f"tasks/{ONE}.md").unlink()
    ended = project.run()
    assert (ended.code, project.tasks, [*project.meta["archived_tasks"]]) == (0, {TWO: "done"}, [ONE]), ended
    assert (len(project.calls), len(project.commits)) == (2, 2)
    project.write(f"tasks/{THREE}.md", f"<!-- depends_on: {ONE} -->\n# Three\n\nDo it.\n")
    project.plays(works(THREE))
    ended = project.run()
    assert (ended.code, project.tasks) == (0, {TWO: "done", THREE: "done"}), ended


# -- the files are a view ----------------------------------------------------------------------------------------------


def test_an_edited_state_changes_nothing_and_doctor_says_so(project: CodexLoop) -> None:
    """C-003, C-011."""
    project.project(ONE, TWO, execution={"max_iterations": 1})
    project.plays(works(ONE), works(TWO))
    project.run()
    before = project.state
    edited = json.loads(json.dumps(before))
    edited["tasks"][TWO]["status"] = "done"
    edited["meta"] |= {"iteration": 77, "overall_status": "completed"}
    (project.folder / "state.json").write_text(json.dumps(edited))
    assert (project.tasks[TWO], project.meta["iteration"]) == ("ready", 1)
    looked = project("doctor")
    assert (looked.code, "state.json" in looked.out) == (0, True), looked
    assert project("doctor", "--repair").code == 0
    assert project.state["tasks"] == before["tasks"]
    ended = project.run()
    assert (ended.code, project.meta["iteration"], len(project.calls)) == (0, 2, 2), ended


def test_what_a_clone_brings_does_not_run_until_it_is_trusted(project: CodexLoop) -> None:
    """Changed numbers do not ask again; changed commands do."""
    project.project(ONE, verify="touch ../../../ran", agreed=False)
    project.plays(works(ONE, "continue"))
    refused = project.run()
    assert (refused.code, "trust" in refused.err, project.calls) == (1, True, []), refused
    assert not (project.home.root / "ran").exists()
    project.agree()
    project.project(verify="touch ../../../ran", execution={"max_iterations": 1}, agreed=False)
    assert (project.run().code, len(project.calls)) == (2, 1)
    project.project(verify="touch ../../../other", execution={"max_iterations": 1}, agreed=False)
    refused = project.run()
    assert (refused.code, len(project.calls), "other" in refused.err) == (1, 1, True), refused


def test_two_tools_share_one_folder(project: CodexLoop) -> None:
    """X-03: strict-agent-loop and codex-loop leave each other's files alone."""
    strict = Strict(project.home)
    strict.init("--require-path", "there.txt")
    theirs = tree_of(strict.folder) | {"registry.json": (strict.root / "registry.json").read_bytes()}
    project.project(ONE)
    project.plays(works(ONE))
    ended = project.run()
    assert (ended.code, project.tasks) == (0, {ONE: "done"}), ended
    assert tree_of(strict.folder) | {"registry.json": (strict.root / "registry.json").read_bytes()} == theirs
    ours = (project.folder / "state.json").read_bytes()
    (project.repo / "there.txt").touch()
    assert strict.here("check-stop").code == 0
    assert (project.folder / "state.json").read_bytes() == ours
    looked = project("doctor")
    assert (looked.code, project.status["meta"]["project_name"]) == (0, NAME), looked


# -- hooks, and a project of the original ------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "code", "turns"), [("block", 2, 0), ("ignore", 0, 1)])
def test_a_hook_that_fails_blocks_only_where_it_may(project: CodexLoop, policy: str, code: int, turns: int) -> None:
    """C-008, C-063, C-065."""
    project.project(ONE, hooks={"pre_iteration": ["echo out of stock; exit 4", "true"], "failure_policy": policy})
    project.plays(works(ONE))
    ended = project.run()
    assert (ended.code, len(project.calls)) == (code, turns), ended
    assert project.blocker == ("hook_failure" if code else "")
    first = json.loads((project.folder / "hooks/pre_iteration.jsonl").read_text().splitlines()[0])
    assert (first["exit_code"], "out of stock" in str(first)) == (4, True), first


def test_a_project_that_another_program_began_is_refused_and_begins_anew_beside_it(project: CodexLoop) -> None:
    """C-003, C-045: what it calls done is marked by the line that a person pastes."""
    project.project(ONE, TWO)
    project.write(".codex-loop/run.lock", json.dumps({"pid": os.getpid()}))
    live = project.run()
    assert (live.code, "another codex-loop may be running here" in live.err) == (8, True), live
    (project.folder / "run.lock").unlink()
    project.plays(works(TWO))
    theirs = json.dumps({"meta": {"iteration": 7}, "tasks": {ONE: {"status": "done", "session_id": "x"}}})
    project.write(".codex-loop/state.json", theirs)
    before = tree_of(project.folder)
    for words in (("run",), ("doctor",), ("init", "--force", "--prompt", "x")):
        refused = project(*words)
        said = refused.out + refused.err
        assert (refused.code, "another program has begun this project" in said) == (1, True), refused
        [again] = re.findall("`(mkdir .*)`", said)
    assert "nothing has run here yet" in project("status").err
    assert (project.calls, tree_of(project.folder)) == ([], before)
    moved = again.rpartition(" && ")
    subprocess.run(["sh", "-c", moved[0]], cwd=project.repo, check=True)
    assert moved[2] == f"codex-loop run --done {ONE}"
    ended = project.run("--done", ONE)
    assert (ended.code, project.tasks, project.meta["iteration"]) == (0, {ONE: "done", TWO: "done"}, 1), ended
    assert (len(project.calls), (project.folder / "before/state.json").read_text()) == (1, theirs)
