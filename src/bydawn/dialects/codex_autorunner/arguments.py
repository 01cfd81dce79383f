"""The loop that a configuration asks for."""

from collections.abc import Callable

from msgspec.structs import replace

from bydawn.core import tasks
from bydawn.core.errors import UserError
from bydawn.core.facts import RoundsBefore
from bydawn.core.keys import Checked
from bydawn.dialects.codex_autorunner import texts
from bydawn.dialects.codex_autorunner.config import (
    CODEX,
    CONFIG,
    NAME,
    SECTIONS,
    Asked,
    Config,
    asked,
    command_of,
    template,
)
from bydawn.dialects.codex_autorunner.config import read as read_config
from bydawn.dialects.codex_autorunner.files import State
from bydawn.dialects.seam import Start

# What a loop of this dialect is, whatever files say. Its prompt names no task, so none can be set aside.
PRESET: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("model", "profile", "effort", "agent_args", "agent_json", "checkpoint", "prompt", "template"), ()),
    **dict.fromkeys(("done_when", "done_mode", "done_match"), ()),
    "agent_commits": ("no",),
    "session": ("fresh",),
    "on_interrupt": ("finish",),
    "on_blocked_task": ("stop",),
    "ticks": ("count",),
    "rounds": ("0",),
    "max_no_change": ("5",),
    "max_failures": ("1",),
    "max_task_failures": ("0",),
}


OFF = ("off",)


def from_config(found: Checked, read: Callable[[str], str | None]) -> Start:
    """What a person is asked to agree to: Codex with these settings, or another program with these words."""
    config = read_config(found)
    prompt = read(config.template) if config.template else None
    wanted = start(config, prompt, is_codex=config.binary == CODEX)
    # Only what the files say: neither our own prompt, nor a number in a marker, is theirs to agree to.
    origins = {
        key: config.where.get(path, CONFIG)
        for key, path in _ORIGINS.items()
        if wanted.settings.get(key, OFF) not in ((), OFF)
    }
    settings = {**wanted.settings, "commit_message": (config.commit_message_template,)}
    return replace(wanted, settings=settings, template=prompt or "", origins=origins)


def start(config: Config, prompt: str | None, *, is_codex: bool) -> Start:
    """The loop that the file asks for; `prompt` is the text of the template, if there is one."""
    found = asked(config.args, config.where.get("codex.args", CONFIG)) if is_codex else Asked()
    message = config.commit_message_template.replace("{run_id}", "{counted}")
    settings = {
        **PRESET,
        **_agent(config, found, is_codex=is_codex),
        "template": () if prompt is None else (str(config.template),),
        "tasks": (config.todo,),
        "progress": (config.progress,),
        "opinions": (config.opinions,),
        "pause": (f"{config.sleep_seconds:g}s",),
        "commit": ("on",) if config.auto_commit else OFF,
        "commit_message": (message,) if config.auto_commit else (),
    }
    return Start(
        prompt="",
        name="",
        settings=settings,
        template=template(config, prompt),
        sections=SECTIONS,
        numbers_cut=True,
        remarks=(*config.remarks, *found.remarks, *(() if is_codex else (_not_codex(config),))),
    )


def going_on(wanted: Start, before: State, rounds: RoundsBefore | None) -> Start:
    """The same as it is started, once a person has agreed, with what earlier runs here left."""
    kept = ("last_exit_code", "last_run_started_at", "last_run_finished_at")
    words = {name: str(value) for name in kept if (value := getattr(before, name)) is not None}
    settings = {**wanted.settings, "template": ()}  # its text is in the request already
    return replace(wanted, settings=settings, words=words, before=rounds)


# Where in the file each of our settings is.
_ORIGINS = {
    "agent": "codex.binary",
    **dict.fromkeys(("sandbox", "agent_args", "model", "profile", "effort"), "codex.args"),
    "template": "prompt.template",
    "commit": "git.auto_commit",
    "commit_message": "git.commit_message_template",
    "pause": "runner.sleep_seconds",
    "tasks": "docs.todo",
    "progress": "docs.progress",
    "opinions": "docs.opinions",
}


def _agent(config: Config, found: Asked, *, is_codex: bool) -> dict[str, tuple[str, ...]]:
    if not is_codex:
        return {"agent": (command_of(config),)}
    settings = {
        "agent": (CODEX if config.binary == CODEX else f"{CODEX}:{config.binary}",),
        "sandbox": (found.sandbox,),
        "agent_args": found.rest,
    }
    return settings | {key: (value,) for key in ("model", "profile", "effort") if (value := getattr(found, key))}


def _not_codex(config: Config) -> str:
    return f"{config.binary} is not Codex: it gets the prompt as its last argument, and its exit code is the verdict"


def refuse_list(config: Config, text: str) -> None:
    """A list that asks for nothing: the sample, or one without a box."""
    hint = f"write your own tasks: `{NAME} edit todo`"
    if text.replace("\r\n", "\n").strip() == texts.TODO.strip():
        cause = "`init` wrote them, and no one has changed them"
        raise UserError(f"{config.todo} still has the sample tasks", cause=cause, hint=hint)
    if not tasks.read(text).items:
        cause = "it has no Markdown task such as `- [ ] write the tests`"
        raise UserError(f"{config.todo} has no tasks", cause=cause, hint=hint)
