"""The loop that `codex-loop.yaml` asks for."""

from collections.abc import Callable
from typing import Annotated

import msgspec

from bydawn.core.keys import Checked
from bydawn.core.loop import TaskByTask
from bydawn.core.options import Typed
from bydawn.dialects.codex_loop import config as own
from bydawn.dialects.codex_loop import prompt
from bydawn.dialects.codex_loop.config import CODEX, SANDBOXES, Config
from bydawn.dialects.seam import Start

WORKTREES = ".codex-loop-worktrees"

Positive = Annotated[int, msgspec.Meta(ge=1)]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e7)]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a project is kept running."""

    retry_blocked: Annotated[bool, Typed("Try blocked tasks again, in every cycle.")] = False
    cycle_sleep_seconds: Annotated[Seconds, Typed("Between two cycles.", "N")] = 60.0
    max_cycles: Annotated[Positive | None, Typed("At most so many cycles.", "N")] = None

    @property
    def words(self) -> list[str]:
        """As they are typed."""
        most = [] if self.max_cycles is None else ["--max-cycles", str(self.max_cycles)]
        retry = ["--retry-blocked"] if self.retry_blocked else []
        return [*retry, "--cycle-sleep-seconds", f"{self.cycle_sleep_seconds:g}", *most]


class RunOptions(Options, frozen=True, kw_only=True):
    """What a person asks of one run."""

    continuous: Annotated[bool, Typed("Go on by itself, cycle after cycle, until all is done.")] = False
    retry_errors: Annotated[bool, Typed("Begin another cycle after Codex itself failed, too.")] = False
    max_error_retries: Annotated[Natural | None, Typed("At most so many such cycles in a row.", "N")] = None
    done: tuple[str, ...] = ()  # tasks that were done by others


# What a loop of this dialect is, whatever files say.
PRESET: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("profile", "effort", "agent_args", "agent_json", "checkpoint", "prompt", "template"), ()),
    **dict.fromkeys(("progress", "opinions", "done_when", "done_mode", "done_match"), ()),
    "agent": (CODEX,),
    "agent_commits": ("no",),
    "session": ("per-task",),
    "on_blocked_task": ("aside",),
    "on_interrupt": ("finish",),
    "commit": ("on",),
    "commit_message": ("codex-loop: {task} (iteration {round})",),
    "check_where": ("workspace",),
    "rounds": ("0",),  # the limit is one of each run
    "max_same_failure": ("0",),
    "max_no_task_done": ("0",),
}
# Where in the file each of our settings is: what runs or steers something is agreed to by a person.
_ORIGINS = {
    "check": "verification.commands",
    "pre_round": "hooks.pre_iteration",
    "post_round": "hooks.post_iteration",
    "on_complete": "hooks.on_completed",
    "on_blocked": "hooks.on_blocked",
    "sandbox": "execution.sandbox",
    "model": "codex.model",
    "tasks": "tasks.source_dir",
}


def from_config(found: Checked, read: Callable[[str], str | None]) -> Start:  # noqa: ARG001 - it names no other file
    """What a person is asked to agree to."""
    return start(own.read(found), "")


def start(config: Config, name: str, documents: tuple[str, ...] = ()) -> Start:
    """The loop of a project; `documents` are the paths of the spec and the plan that are there."""
    run, tree, hooks = config.execution, config.execution.worktree, config.hooks
    settings = {
        **PRESET,
        "model": (config.codex.model,) if config.codex.model else (),
        "sandbox": (SANDBOXES[run.sandbox],),
        "tasks": (config.tasks.source_dir,),
        "check": config.verification.commands,
        "check_timeout": (f"{config.verification.timeout_seconds:g}s",),
        "round_timeout": (f"{run.iteration_timeout_seconds:g}s",),
        "pause": (f"{run.iteration_backoff_seconds:g}s",),
        "max_no_change": (str(run.max_no_progress_iterations),),
        "max_failures": (str(run.max_consecutive_runner_failures),),
        "max_check_failures": (str(run.max_consecutive_verification_failures),),
        "max_task_failures": (str(run.max_consecutive_task_failures),),
        "pre_round": hooks.pre_iteration,
        "post_round": hooks.post_iteration,
        "on_complete": hooks.on_completed,
        "on_blocked": hooks.on_blocked,
        "on_pause": (),
        "on_hook_failure": (hooks.failure_policy if hooks.pre_iteration or hooks.post_iteration else "ignore",),
        "hook_timeout": (f"{hooks.timeout_seconds:g}s",),
        "worktree": (f"{tree.branch_prefix}{name}",) if tree.enabled else (),
    }
    return Start(
        prompt=config.goal.summary,
        name=name,
        settings=settings,
        template=prompt.template(config.goal.done_when, documents),
        sections=(),
        by_task=TaskByTask(
            rounds_each_run=run.max_iterations,
            pause_jitter=run.iteration_backoff_jitter_seconds,
            fresh_if_lost=run.resume_fallback_to_fresh,
        ),
        worktrees=WORKTREES,
        words={
            "project": config.project.name or "",
            "config": msgspec.json.encode(msgspec.structs.replace(config, where={}, remarks=())).decode(),
        },
        origins={key: config.where[path] for key, path in _ORIGINS.items() if settings[key] and path in config.where},
        config=own.CONFIG,
        remarks=config.remarks,
    )


def config_of(words: dict[str, str]) -> Config:
    """The configuration that a loop was started with."""
    return msgspec.json.decode(words["config"], type=Config)
