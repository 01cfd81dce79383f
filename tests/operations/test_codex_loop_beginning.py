"""`codex-loop init`: what is refused before Codex is asked, what it is asked, and what is written (C-010, C-069)."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bydawn.core.errors import UserError
from bydawn.core.loop import COOKIE
from bydawn.dialects.codex_loop import DIALECT, proposal
from bydawn.dialects.codex_loop.config import Config
from bydawn.operations.dialects import config as own_config
from bydawn.operations.dialects.codex_loop import beginning, project
from bydawn.process.guardian import Tether
from bydawn.store.lock import Lock
from operations.codex_loop_stage import ANSWER, LEAST, Stage

FOUND = proposal.read(json.dumps(ANSWER))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


@pytest.fixture
def tether() -> Iterator[Tether]:
    guardian, line = socket.socketpair()
    with guardian, line:
        yield Tether(line)


def write(stage: Stage, *, force: bool = False, agreed: bool = True) -> beginning.Begun:
    kept = beginning.check(stage.root, "Greet", force=force)
    return beginning.write(stage.root, kept, FOUND, "Greet", None, force=force, agreed=agreed)


def refused(stage: Stage, prompt: str = "Greet", *, force: bool = False) -> UserError:
    before = stage.files
    with pytest.raises(UserError) as caught:
        beginning.check(stage.root, prompt, force=force)
    assert caught.value.cause
    assert caught.value.hint
    assert stage.files == before
    return caught.value


def test_codex_is_asked_once_read_only_and_by_the_schema(stage: Stage, tether: Tether) -> None:
    found = beginning.ask(stage.root, "Greet the world", "gpt-x", tether, lambda _: None)
    assert found == FOUND
    argv = (stage.home / "argv").read_text().splitlines()
    assert "read-only" in " ".join(argv)
    assert "gpt-x" in argv
    assert "--output-schema" in argv
    assert (stage.home / "stdin").read_text().endswith("## Goal\n\nGreet the world\n")
    assert stage.files == {}


def test_an_answer_that_is_no_plan_is_refused_and_nothing_is_written(stage: Stage, tether: Tether) -> None:
    stage.answers("I will begin with the tests.")
    with pytest.raises(UserError) as caught:
        beginning.ask(stage.root, "Greet", None, tether, lambda _: None)
    assert caught.value.cause == "its answer is not JSON: I will begin with the tests."
    assert stage.files == {}


def test_a_codex_that_fails_is_told_with_its_words_and_where_its_output_is(stage: Stage, tether: Tether) -> None:
    failed = {"type": "turn.failed", "error": {"message": "Invalid schema for response_format"}}
    (stage.home / "events").write_text(f'{{"type": "turn.started"}}\n{json.dumps(failed)}\n')
    (stage.home / "exit").write_text("1")
    with pytest.raises(UserError) as caught:
        beginning.ask(stage.root, "Greet", None, tether, lambda _: None)
    assert caught.value.what == "Codex proposed nothing"
    assert "Invalid schema" in caught.value.cause
    assert Path(caught.value.hint.removeprefix("its output is in ")).is_dir()


def test_everything_is_written_and_trusted_if_a_person_agreed(stage: Stage) -> None:
    (stage.root / ".gitignore").write_text("*.pyc")
    begun = write(stage)
    files = stage.files
    assert [path for path in files if not path.startswith(".codex-loop/")] == [
        ".gitignore",
        "codex-loop.yaml",
        "plan/001-implementation-plan.md",
        "spec/001-project-spec.md",
        "tasks/001-add-greeting.md",
        "tasks/002-say-it.md",
    ]
    assert files[".gitignore"] == "*.pyc\n.codex-loop/\n"
    assert (stage.root / ".git/info/exclude").read_text().endswith("\n.codex-loop/\n")
    assert begun.files["codex-loop.yaml"] == "created"
    config = project.config_of(stage.root)
    assert (config.project.name, config.goal.summary) == ("greeter", "Greet the world")
    assert (config.verification.commands, config.codex.model, config.remarks) == (("test -e greeting",), None, ())
    assert own_config.is_trusted(DIALECT, stage.root)
    standing = project.standing_of(stage.root)
    assert standing is not None and standing.loop.id == "greeter"
    assert [*(stage.root / ".codex-loop/artifacts").iterdir()] == []
    state = json.loads(files[".codex-loop/state.json"])
    assert state["meta"]["source_prompt"] == "Greet"
    commands = [step.command for step in begun.steps]
    assert (commands[0], commands[-1]) == (f"cd {stage.root}", "codex-loop run")
    assert "codex-loop trust" not in commands
    assert "codex-loop.yaml is there already" in refused(stage).what


def test_without_an_answer_of_a_person_the_commands_are_written_and_not_trusted(stage: Stage) -> None:
    begun = write(stage, agreed=False)
    assert not own_config.is_trusted(DIALECT, stage.root)
    assert "codex-loop trust" in [step.command for step in begun.steps]


@pytest.mark.parametrize("path", ["codex-loop.yaml", "spec/001-project-spec.md", "tasks/007-mine.md"])
def test_files_that_are_there_are_refused_by_name(stage: Stage, path: str) -> None:
    stage.write(path, LEAST)
    assert refused(stage).what == f"{path} is there already"


def test_a_readme_beside_the_tasks_is_no_task(stage: Stage) -> None:
    stage.write("tasks/README.md", "How tasks are written.\n")
    beginning.check(stage.root, "Greet", force=False)


def test_force_keeps_a_copy_of_all_that_it_replaces_and_begins_a_new_loop(stage: Stage) -> None:
    write(stage)
    stage.write("tasks/002-say-it.md", "# Mine\n")
    before, first = stage.files, project.standing_of(stage.root)
    assert first
    (stage.root / "codex-loop.yaml").write_text(
        before["codex-loop.yaml"].replace("max_iterations: 30", "max_iterations: 3")
    )
    write(stage, force=True)
    files, second = stage.files, project.standing_of(stage.root)
    assert files["tasks/replaced/002-say-it.md"] == "# Mine\n"
    assert "tasks/replaced/001-add-greeting.md" not in files, "it is the same"
    assert files["tasks/002-say-it.md"].startswith("# Say it\n")
    assert project.config_of(stage.root).execution.max_iterations == 3, "changed numbers are trusted, and stay"
    assert second and (first.loop.id, second.loop.id) == ("greeter", "greeter-2")


def test_force_takes_nothing_over_from_a_configuration_that_is_not_trusted(stage: Stage) -> None:
    stage.write("codex-loop.yaml", "goal: 1\n")
    assert beginning.check(stage.root, "Greet", force=True) == Config(), "nor from one that is wrong"
    stage.write("codex-loop.yaml", LEAST + "hooks: {post_init: [touch evil], on_blocked: [touch evil]}\n")
    assert beginning.check(stage.root, "Greet", force=True) == Config()
    begun = write(stage, force=True)
    assert begun.hooks == []
    assert project.config_of(stage.root).hooks == Config().hooks
    assert "touch evil" in stage.files["codex-loop.original.yaml"]


@pytest.mark.parametrize(("policy", "ran"), [("ignore", [3, 0]), ("block", [3])])
def test_commands_after_init_run_and_are_recorded(stage: Stage, policy: str, ran: list[int]) -> None:
    hooks = f"hooks: {{post_init: [exit 3, 'echo $CODEX_LOOP_EVENT > told'], failure_policy: {policy}}}\n"
    stage.write("codex-loop.yaml", LEAST + hooks)
    own_config.agree(DIALECT, stage.root, ["codex-loop.yaml"])
    begun = write(stage, force=True)
    assert [each.exit_code for each in begun.hooks] == ran
    assert begun.failed == (policy == "block")
    assert stage.files.get("told") == ("post_init\n" if policy == "ignore" else None)
    lines = stage.files[".codex-loop/hooks/post_init.jsonl"].splitlines()
    assert [json.loads(line)["exit_code"] for line in lines] == ran


def test_commands_after_init_need_an_agreement_of_now_even_if_the_file_was_trusted(stage: Stage) -> None:
    stage.write("codex-loop.yaml", LEAST + "hooks: {post_init: [touch ran]}\n")
    own_config.agree(DIALECT, stage.root, ["codex-loop.yaml"])
    assert write(stage, force=True, agreed=False).hooks == []
    assert "ran" not in stage.files


def test_what_cannot_work_is_refused_before_codex_is_asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(stage, " …").what == "the prompt is empty"
    stage.write("spec", "a file\n")
    assert "spec/001-project-spec.md" in refused(stage).what
    (stage.root / "spec").unlink()
    (stage.root / ".codex-loop").symlink_to("src")  # not out of the project: still not where it should write
    assert ".codex-loop/" in refused(stage).what
    (stage.root / ".codex-loop").unlink()
    stage.git("checkout", "-q", "--orphan", "new")
    assert refused(stage).what == "this repository has no commit yet"
    (stage.root / ".git").rename(stage.home / "gone")
    assert "is in no git repository" in refused(stage).what
    monkeypatch.setenv(COOKIE, "x.1")
    assert refused(stage).what == "agents may not do this"


def test_a_run_at_work_is_refused_with_8(stage: Stage) -> None:
    write(stage)
    standing = project.standing_of(stage.root)
    assert standing
    held = Lock.take(standing.folder.lock)
    try:
        assert refused(stage, force=True).exit_code == 8
    finally:
        held.release()
