"""`resume --all`: many loops in the background, started by one command.

Everything is loaded here once; each loop's processes are forks that share it. When this process ends, they go on.
"""

import ctypes  # noqa: F401 - this and others are loaded here once, for all loops
import gc
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click
import markdown_it  # noqa: F401

from bydawn.cli import background, foreground, terminal  # noqa: F401
from bydawn.cli.program import shielded
from bydawn.cli.voice import Voice
from bydawn.core.errors import UserError
from bydawn.core.text import plain, shorten
from bydawn.operations import many, places, run_loop, settings  # noqa: F401
from bydawn.operations.many import Taken
from bydawn.operations.plan import Plan, shared
from bydawn.process.guardian import Tether, await_start, run_guarded, send_away, start_viewer
from bydawn.store.registry import Registry

_OVERTAKEN = 8  # the exit code if another process was faster


def resume_all(state_dir: Path | None, cd: Path | None, *, stopped: bool) -> int:
    """Continue all of them and say what became of each; the exit code."""
    gathered = settings.gather(None)
    gathered.refuse_problems()
    taken = many.take(Registry(state_dir), cd, settings.secrets_of(gathered), stopped=stopped)
    if not taken:
        click.echo("  No loop is unfinished.")
    return resume_these({each.standing.reference: each for each in taken}, Voice())


def resume_these(taken: Mapping[str, Taken], voice: Voice) -> int:
    """Continue these, by the name that a person knows; one that cannot start does not keep the others from it."""
    foreground.warn_if_unbounded(*(each.plan for each in taken.values() if each.plan))
    gc.collect()
    gc.freeze()  # nothing that is here now is looked at again, or it would be copied for each loop
    begun = [send_away(partial(_guarded, each.plan, voice)) if each.plan else None for each in taken.values()]
    names = max(map(len, taken), default=0)
    worst = 0
    for (name, each), child in zip(taken.items(), begun, strict=True):
        what, why = "skipped", each.skipped
        if each.refused:
            what, why = "refused", " · ".join(filter(None, [each.refused.what, each.refused.cause, each.refused.hint]))
            worst = max(worst, each.refused.exit_code)
        elif child:
            _, viewer, status = await_start(*child)
            start_viewer(viewer)
            code = None if status is None else os.waitstatus_to_exitcode(status)
            after = "; ".join(filter(None, [voice.resumed(each.standing), shared(each.beside)]))
            what, why = ("resumed", after) if code is None else ("refused", "see above")
            if code == _OVERTAKEN:
                what, why = "skipped", "it is running"
            elif code:
                worst = max(worst, 1)
        click.echo(f"  {name:<{names}}  {what}  {shorten(plain(why), 300)}".rstrip())
    return worst


def _guarded(planned: Plan, voice: Voice, front: int) -> int:
    def work(tether: Tether) -> int:
        code = shielded(lambda: _run(tether, planned, voice))
        places.release(planned.loop)  # it may not have begun
        return code

    return run_guarded(work, front)[0]


def _run(tether: Tether, planned: Plan, voice: Voice) -> int:
    try:
        return foreground.run_in_foreground(tether, planned, plain=True, voice=voice, detach=True, banner=False)
    except UserError as error:
        if error.exit_code == _OVERTAKEN:  # what is wanted is so
            return _OVERTAKEN
        raise
