"""The loop that a contract asks for."""

import msgspec

from bydawn.core.records import Recording
from bydawn.dialects.seam import Start
from bydawn.dialects.strict_agent_loop import paths, prompt
from bydawn.dialects.strict_agent_loop.contract import CHECK_SECONDS, CODEX, INTERACTIVE, Contract

# What a loop of this dialect is, whatever files say.
PRESET: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("tasks", "profile", "agent_args", "agent_json", "checkpoint", "prompt", "template"), ()),
    **dict.fromkeys(("progress", "opinions", "done_when", "done_mode", "done_match", "commit_message"), ()),
    "agent_commits": ("no",),
    "commit": ("off",),
    "on_interrupt": ("stop",),
    "rounds": ("0",),
    "max_task_failures": ("0",),
    "max_same_failure": ("0",),
    "max_check_failures": ("0",),
    "max_no_task_done": ("0",),
    "check_timeout": (f"{CHECK_SECONDS}s",),
    "check_where": ("workspace",),
}
SECTIONS = ("NOTES", "EVENTS", "RECORDED", "CHECKS", "STALL")  # of ours, behind the prompt


def start(contract: Contract, workspace: str, command: str) -> Start:
    """The loop of a task. A contract from a sandbox keeps its checks in words only: nothing there may run a command."""
    task, state = contract.task, f"{workspace}/{paths.of(contract.task, paths.STATE)}"
    waits = contract.in_sandbox and bool(contract.commands)  # for a person
    agent = CODEX if contract.codex_bin == CODEX else f"{CODEX}:{contract.codex_bin}"
    settings: dict[str, tuple[str, ...]] = {
        **PRESET,
        "agent": (agent,),
        "model": (contract.model,) if contract.model else (),
        "effort": (contract.effort,) if contract.effort else (),
        "sandbox": (contract.sandbox,),
        "session": ("resume" if contract.resume_thread else "fresh",),
        "pause": (f"{contract.pause:g}s",),
        "iterations": (str(contract.max_iterations),),
        "max_no_change": (str(contract.max_no_progress),),
        "max_failures": (str(contract.max_failures),),
        "check": () if waits else contract.commands,
        "require_path": contract.paths,
        "require_text": contract.texts,
    }
    if contract.invocation_seconds:
        settings["round_timeout"] = (f"{contract.invocation_seconds:g}s",)
    return Start(
        prompt=contract.goal,
        name=task,
        settings=settings,
        template=prompt.template(contract, state, command),
        sections=SECTIONS,
        words={"task": task, "contract": msgspec.json.encode(contract).decode()},
        recording=Recording(
            drop=paths.of(task, paths.DROP),
            budget=contract.budget,
            context_chars=contract.context_chars,
            by_hand=contract.mode == INTERACTIVE or waits,
            ends=not waits,
        ),
        remarks=(f"at most {contract.max_iterations} iterations, {contract.max_no_progress} without progress",),
    )
