"""The loop that a session asks for."""

from collections.abc import Callable

from bydawn.core.errors import UserError
from bydawn.core.keys import Checked
from bydawn.core.notices import place_of
from bydawn.dialects.rloop import texts
from bydawn.dialects.rloop.config import NAME, PROJECT, TEMPLATE, Config, agent_settings, origins, overridden
from bydawn.dialects.rloop.config import read as read_config
from bydawn.dialects.seam import Start

# What a loop of this dialect is, whatever files say. Its prompt names no task, so none can be set aside.
PRESET: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("profile", "effort", "agent_json", "checkpoint", "prompt", "template", "commit_message"), ()),
    **dict.fromkeys(("progress", "opinions"), ()),
    "agent_commits": ("yes",),
    "commit": ("off",),
    "session": ("fresh",),
    "on_interrupt": ("stop",),
    "on_blocked_task": ("stop",),
    "ticks": ("count",),
    "pause": ("2s",),
    "max_no_change": ("5",),
    "max_failures": ("3",),
    "max_task_failures": ("0",),
    "done_mode": ("tag",),
    "done_match": ("own-line",),
}
SECTIONS = ("NOTES", "EVENTS", "CHECKS")  # of ours, behind the document's prompt


def session_name(text: str) -> str:
    """A text as the name of a session; what is not a letter, a digit, `_` or `-` becomes `-`.

    None is at its ends: `rloop stop -dash` would be an option.
    """
    name = "".join(each if each.isalnum() or each in "_-" else "-" for each in text).strip("-")
    if not any(each.isalnum() for each in name) or len(name) > 100:
        cause = "it needs a letter or a digit" if len(name) <= 100 else "it has more than 100 characters"
        raise UserError(
            f"{text[:60]!r} cannot be the name of a session", cause=cause, hint=f"give one: {NAME} start … --name app1"
        )
    return name


def from_config(found: Checked, read: Callable[[str], str | None]) -> Start:
    """What a person is asked to agree to: what the project says about the agent, and its template."""
    return start(read_config(found), session="", prompt=read(TEMPLATE))


def start(
    config: Config,
    *,
    session: str,
    prompt: str | None,
    mine: str | None = None,
    state: str = "",
    tmux: str = "",
    in_git: bool = False,
) -> Start:
    """`prompt` is the text of the project's template, if there is one; `mine` that of a person, which is stronger."""
    template = texts.template(prompt if mine is None else mine, config.task_file, config.completion_marker)
    named: dict[str, tuple[str, ...]] = {} if prompt is None else {"template": (TEMPLATE,)}
    settings: dict[str, tuple[str, ...]] = {
        **PRESET,
        **agent_settings(config),
        "tasks": (config.task_file,),
        "rounds": (str(config.max_iterations),),
        "done_when": (config.completion_marker,),
        **(named if mine is None else {}),
    }
    words = {
        "session": session,
        "marker": config.completion_marker,
        "model": config.model or "",
        "backend": config.backend,
        "level": config.level,
        "on_complete": "yes" if config.on_complete else "no",
        "retain_days": str(config.retain_days),
        "webhook": place_of(config.webhook) if config.webhook else "",
        "state": state,
        "tmux": tmux,
        "git": "yes" if in_git else "",
    }
    theirs = origins(config) | dict.fromkeys(named, TEMPLATE)
    return Start(
        prompt="",
        name="",
        settings=settings,
        template=template,
        sections=SECTIONS,
        promise_required=False,
        words=words,
        remarks=config.remarks,
        config=PROJECT if theirs else "",
        origins=theirs,
        raised=("rounds",) if config.raised else (),
        overridden=overridden(config) | ({} if mine is None else named),
        template_file=prompt or "",
    )
