"""What `codex-loop.yaml` says (C-002, C-060), and what is refused with its line (X-12)."""

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.keys import checked
from bydawn.dialects.codex_loop.config import CONFIG, KEYS, SCHEMA, Config, Goal, Project, Verification, read
from bydawn.settings.yaml import parse

LEAST = """\
goal:
  summary: Greet the world
  done_when: [It greets]
verification:
  commands: [make test]
"""
# What the original writes: JSON, in a file that is called YAML.
ORIGINAL = """{
  "version": 1,
  "project": {"name": "demo"},
  "goal": {"summary": "Build demo", "done_when": ["Tests pass"]},
  "execution": {
    "sandbox": "workspace-write",
    "approval": "never",
    "max_iterations": 50,
    "iteration_backoff_seconds": 0.0,
    "worktree": {"enabled": true, "branch_prefix": "codex-loop/"}
  },
  "codex": {"model": "gpt-5.4", "use_json": true, "output_schema": ".codex-loop/agent_result.schema.json"},
  "verification": {"commands": ["python -m unittest"], "pass_requires_all": true},
  "tasks": {"strategy": "sequential", "source_dir": "tasks"},
  "operator": {"events": {"default_limit": 50}, "cleanup": {"keep": 7, "directory_keep": {"logs": 20}}},
  "hooks": {"post_init": ["echo hello"], "failure_policy": "block"}
}
"""


def config(text: str) -> Config:
    return read(checked(parse(text, CONFIG), KEYS, CONFIG))


def refused(text: str) -> UserError:
    with pytest.raises(UserError) as caught:
        config(text)
    assert caught.value.cause
    assert caught.value.hint
    return caught.value


def test_a_file_with_what_is_needed_has_the_defaults_of_the_document() -> None:
    found = config(LEAST)
    assert msgspec.structs.replace(found, where={}) == Config(
        goal=Goal("Greet the world", ("It greets",)), verification=Verification(("make test",))
    )
    assert found.where["goal.summary"] == f"{CONFIG}:2"
    assert msgspec.to_builtins(found.execution) == {
        "sandbox": "workspace-write",
        "approval": "never",
        "max_iterations": 30,
        "max_no_progress_iterations": 5,
        "max_consecutive_runner_failures": 3,
        "max_consecutive_verification_failures": 0,
        "max_consecutive_task_failures": 5,
        "iteration_timeout_seconds": 1800,
        "iteration_backoff_seconds": 0,
        "iteration_backoff_jitter_seconds": 0,
        "lock_stale_seconds": 21600,
        "resume_fallback_to_fresh": True,
        "worktree": {"enabled": True, "branch_prefix": "codex-loop/"},
    }
    assert (found.verification.timeout_seconds, found.hooks.timeout_seconds) == (300, 300)
    assert (found.codex.model, found.codex.output_schema) == (None, SCHEMA)


def test_json_in_the_file_is_read_as_well() -> None:
    found = config(ORIGINAL)
    assert (found.project, found.execution.max_iterations, found.codex.model) == (Project("demo"), 50, "gpt-5.4")
    assert (found.operator.events.default_limit, found.operator.cleanup.directory_keep.logs) == (50, 20)
    assert (found.hooks.post_init, found.hooks.failure_policy, found.remarks) == (("echo hello",), "block", ())
    assert config(ORIGINAL.replace("  ", "\t")).goal == found.goal
    assert found.where["hooks.post_init"] == f"{CONFIG}:16"


@pytest.mark.parametrize(
    ("line", "what", "cause"),
    [
        ("goal: {summary: Greet, done_when: []}", "7: goal.done_when", "empty"),
        ("goal: {summary: ' ', done_when: [a]}", "7: goal.summary", "it is"),
        ("verification: {commands: make test}", "7: verification.commands", "make test"),
        ("verification: {commands: [a], pass_requires_all: false}", "7: verification.pass_requires_all", "every"),
        ("verification: {commands: [a], timeout_seconds: 0}", "7: verification.timeout_seconds", "it is 0"),
        ("codex: {use_json: false}", "7: codex.use_json", "JSON events"),
        ("tasks: {strategy: parallel}", "7: tasks.strategy", "parallel"),
        ("tasks: {source_dir: ../other}", "7: tasks.source_dir", "leads out"),
        ("tasks: {source_dir: .codex-loop/tasks}", "7: tasks.source_dir", "not for tasks"),
        ("execution: {max_iterations: -1}", "7: execution.max_iterations", "it is -1"),
        ("execution: {max_iterations: 0}", "7: execution.max_iterations", "it is 0"),
        ("execution: {max_consecutive_task_failures: -1}", "7: execution.max_consecutive_task_failures", "-1"),
        ("execution: {max_iterations: many}", "7: execution.max_iterations", "many"),
        ("execution: {iteration_backoff_seconds: .inf}", "7: execution.iteration_backoff_seconds", "inf"),
        ("execution: {sandbox: yolo}", "7: execution.sandbox", "yolo"),
        ("execution: {approval: always}", "7: execution.approval", "always"),
        ("hooks: {failure_policy: stop}", "7: hooks.failure_policy", "stop"),
        ("hooks: {on_blocked: [1]}", "7: hooks.on_blocked", "it is 1"),
        ("version: 2", "7: version", "it is 2"),
        ("operator: {cleanup: {keep: -2}}", "7: operator.cleanup.keep", "it is -2"),
        ("execution: yes", "7: expected a mapping", "execution."),
        ("execution:\n\tmax_iterations: 3", "8: invalid YAML", "tab"),
        ("project: {name: a}\nproject: {name: b}", "8: project is there twice", "guess"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(line: str, what: str, cause: str) -> None:
    key = line.partition(":")[0]
    blocks = {"goal": LEAST[LEAST.index("verification") :], "verification": LEAST[: LEAST.index("verification")]}
    rest = blocks.get(key, LEAST)
    error = refused(rest + "\n" * (6 - rest.count("\n")) + line + "\n")
    assert what in error.what
    assert cause in error.cause


def test_json_with_a_key_twice_is_refused() -> None:
    assert "name is there twice" in refused('{"project": {"name": "a",\n "name": "b"}}').what


@pytest.mark.parametrize("missing", ["summary: Greet the world", "done_when: [It greets]", "commands: [make test]"])
def test_what_is_needed_and_missing_is_named(missing: str) -> None:
    key = missing.partition(":")[0]
    error = refused(LEAST.replace(missing, "other: 1"))
    assert f"{key} is missing" in error.what


@pytest.mark.parametrize(
    "prefix", ["a b/", "a..b/", "/a", "-a", "a//b", ".a/", "a/.b", "a.lock/", "a~", "a:b", "a@{", "a\\", "a./"]
)
def test_a_branch_prefix_that_git_would_refuse_is_refused(prefix: str) -> None:
    error = refused(LEAST + f"execution:\n  worktree: {{branch_prefix: '{prefix}'}}\n")
    assert error.what == f"{CONFIG}:7: execution.worktree.branch_prefix cannot be used"


@pytest.mark.parametrize("prefix", ["codex-loop/", "work-", "a/b.c/", "ü/"])
def test_a_branch_prefix_that_git_takes_is_taken(prefix: str) -> None:
    found = config(LEAST + f"execution:\n  worktree: {{branch_prefix: '{prefix}'}}\n")
    assert found.execution.worktree.branch_prefix == prefix


def test_values_without_effect_are_kept_and_said() -> None:
    found = config(LEAST + "execution: {approval: on-request}\ncodex: {output_schema: mine.json}\n")
    assert found.remarks == (
        f"{CONFIG}:6: execution.approval on-request has no effect: a loop asks no one",
        f"{CONFIG}:7: codex.output_schema mine.json has no effect: the schema is {SCHEMA}",
    )


def test_an_unknown_key_is_reported_with_its_line_and_a_suggestion() -> None:
    found = checked(parse(f"{LEAST}execution: {{max_iteration: 3}}\n", CONFIG), KEYS, CONFIG)
    assert found.remarks == (
        f"{CONFIG}:6: unknown key 'execution.max_iteration' has no effect; did you mean execution.max_iterations?",
    )
    assert read(found).execution.max_iterations == 30
