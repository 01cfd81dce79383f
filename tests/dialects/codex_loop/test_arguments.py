"""codex-loop: the loop that its configuration asks for. What the engine does with that is shown in `tests/engine`."""

from msgspec.structs import replace

from bydawn.core.loop import TaskByTask
from bydawn.dialects.codex_loop import DIALECT
from bydawn.dialects.codex_loop.arguments import config_of, start
from bydawn.dialects.codex_loop.config import Codex, Config, Execution, Goal, Hooks, Tasks, Verification, Worktree

CONFIG = Config(goal=Goal("A shop", ("it sells",)), verification=Verification(("make test",)))


def test_the_defaults_of_the_document_reach_the_loop() -> None:
    """C-005, C-007, C-030, C-041, C-043, C-045, C-047, C-060"""
    asked = start(CONFIG, "shop")
    expected = {
        "agent": ("codex",),
        "agent_commits": ("no",),
        "session": ("per-task",),
        "on_blocked_task": ("aside",),
        "on_interrupt": ("finish",),
        "commit": ("on",),
        "sandbox": ("workspace",),
        "tasks": ("tasks",),
        "check": ("make test",),
        "check_timeout": ("300s",),
        "check_where": ("workspace",),
        "round_timeout": ("1800s",),
        "pause": ("0s",),
        "rounds": ("0",),
        "max_no_change": ("5",),
        "max_failures": ("3",),
        "max_check_failures": ("0",),
        "max_task_failures": ("5",),
        "max_same_failure": ("0",),
        "max_no_task_done": ("0",),
        "on_hook_failure": ("ignore",),
        "hook_timeout": ("300s",),
        "worktree": ("codex-loop/shop",),
    }
    assert {name: asked.settings[name] for name in expected} == expected
    assert (asked.prompt, asked.sections, asked.by_task) == ("A shop", (), TaskByTask(rounds_each_run=30))
    assert DIALECT.splits_output


def test_what_the_file_says_reaches_the_loop() -> None:
    """C-006, C-008, C-030, C-043, C-045, C-047, C-065"""
    limits = Execution(
        sandbox="danger-full-access",
        max_iterations=7,
        max_no_progress_iterations=1,
        max_consecutive_runner_failures=2,
        max_consecutive_verification_failures=3,
        max_consecutive_task_failures=0,
        iteration_timeout_seconds=60,
        iteration_backoff_seconds=1.5,
        iteration_backoff_jitter_seconds=4,
        resume_fallback_to_fresh=False,
        worktree=Worktree(enabled=False),
    )
    hooks = Hooks(pre_iteration=("a",), post_iteration=("b",), on_completed=("c",), on_blocked=("d",))
    more = {"codex": Codex(model="o9"), "tasks": Tasks(source_dir="todo"), "execution": limits}
    config = replace(CONFIG, hooks=replace(hooks, failure_policy="block", timeout_seconds=9), **more)
    asked = start(config, "shop")
    expected = {
        "sandbox": ("full",),
        "model": ("o9",),
        "tasks": ("todo",),
        "max_no_change": ("1",),
        "max_failures": ("2",),
        "max_check_failures": ("3",),
        "max_task_failures": ("0",),
        "round_timeout": ("60s",),
        "pause": ("1.5s",),
        "pre_round": ("a",),
        "post_round": ("b",),
        "on_complete": ("c",),
        "on_blocked": ("d",),
        "on_hook_failure": ("block",),
        "hook_timeout": ("9s",),
        "worktree": (),
    }
    assert {name: asked.settings[name] for name in expected} == expected
    assert asked.by_task == TaskByTask(rounds_each_run=7, pause_jitter=4, fresh_if_lost=False)
    assert config_of(asked.words) == config
