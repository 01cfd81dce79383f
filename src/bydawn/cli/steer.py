"""`tell`, `pause` and `stop`: steer a running loop."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from bydawn.cli.command import command, option
from bydawn.cli.options import cd, state_dir
from bydawn.cli.program import shielded
from bydawn.cli.render import typed
from bydawn.core.errors import UserError
from bydawn.core.values import Act, Advice, Status
from bydawn.operations import steer
from bydawn.store.registry import Registry, Standing


@command()
@click.argument("loop", metavar="[LOOP]")
@click.argument("text", required=False, metavar="TEXT")
@cd
@state_dir
def tell(loop: str, text: str | None, cd: Path | None, state_dir: Path | None) -> None:
    """Add a note to the next prompt of a loop.

    \b
    Examples
      bydawn tell shop-api "round half up; fix the docs"
      bydawn tell "round half up"
    """
    name, note = (loop, text) if text is not None else (None, _only_a_text(loop))
    standing = Registry(state_dir).find(name, cd)
    steer.tell(standing, note)
    click.echo(f"  Noted. {standing.loop.id} will see it in its next prompt.")


def _only_a_text(word: str) -> str:
    """A word with a space can only be a note; a single word is a loop whose note was forgotten."""
    if " " in word.strip():
        return word
    cause = f"{word!r} is the name of a loop, and no text follows"
    raise UserError("nothing to tell", cause=cause, hint=Advice(Act('tell LOOP "round half up"')))


_loops = click.argument("loops", nargs=-1, metavar="[LOOP]...")
_all = option("--all", "all_", is_flag=True, help="Every loop that runs or has crashed, in any folder.")


@command()
@_loops
@_all
@option("--now", is_flag=True, help="Do not wait for the end of the round.")
@cd
@state_dir
def pause(loops: tuple[str, ...], all_: bool, now: bool, cd: Path | None, state_dir: Path | None) -> int:
    """Pause a loop after this round; `resume` continues it.

    \b
    Examples
      bydawn pause shop-api
      bydawn pause --all
    """

    def act(standing: Standing) -> None:
        answer = steer.pause(standing, now=now)
        when = "now" if now or answer.state else "after this round"
        _say(standing, answer, f"pauses {when}", "Continue")

    return _each(loops, Registry(state_dir), cd, act, all_=all_)


@command()
@_loops
@_all
@option("--after-round", is_flag=True, help="Let the running round finish first.")
@cd
@state_dir
def stop(loops: tuple[str, ...], all_: bool, after_round: bool, cd: Path | None, state_dir: Path | None) -> int:
    """End a loop; its changes stay in the work tree.

    \b
    Examples
      bydawn stop shop-api
      bydawn stop --all
    """

    def act(standing: Standing) -> None:
        answer = steer.stop(standing, now=not after_round)
        when = "after this round" if after_round and not answer.state else "now"
        _say(standing, answer, f"stops {when}", "Continue after all")

    return _each(loops, Registry(state_dir), cd, act, all_=all_)


def _each(
    names: tuple[str, ...], registry: Registry, cd: Path | None, act: Callable[[Standing], None], *, all_: bool
) -> int:
    """Ask one loop after the other; one that cannot be asked does not keep the others from it."""
    if len(names) < 2 and not all_:
        act(registry.find(names[0] if names else None, cd))
        return 0
    if all_ and names:
        raise UserError("--all and a name cannot be combined", hint="drop one of them")
    found = steer.at_work(registry, cd) if all_ else []
    if all_ and not found:
        click.echo("  No loop is running.")
    wanted = [*(partial(act, each) for each in found), *(partial(_find, registry, name, cd, act) for name in names)]
    return max(map(shielded, wanted), default=0)


def _find(registry: Registry, name: str, cd: Path | None, act: Callable[[Standing], None]) -> None:
    act(registry.find(name, cd))


@command()
@click.argument("loop", metavar="LOOP")
@cd
@state_dir
def dismiss(loop: str, cd: Path | None, state_dir: Path | None) -> None:
    """Take a loop that has ended out of the list; nothing of it is deleted.

    \b
    Examples
      bydawn dismiss shop-api
    """
    standing = Registry(state_dir).find(loop, cd)
    steer.dismiss(standing)
    click.echo(f"  {standing.loop.id} is no longer listed, except with {typed(Act('status', all=True))}")
    if not standing.finished:
        click.echo(f"  Bring it back: {typed(Act('resume', standing.reference))}")


def _say(standing: Standing, answer: steer.Answer, change: str, go_on: str) -> None:
    for name in answer.ended:
        click.echo(f"  Ended what was still running: {name}")
    what = change if answer.changed else Status(answer.state).already
    click.echo(f"  {standing.loop.id} {what}. {go_on}: {typed(Act('resume', standing.reference))}")
