"""`tell`, `pause` and `stop`: steer a running loop."""

from pathlib import Path

import click

from bydawn.cli.command import command, option
from bydawn.cli.options import cd, loop_argument, state_dir
from bydawn.cli.render import typed
from bydawn.core.errors import UserError
from bydawn.operations import steer
from bydawn.store.registry import Registry


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
    raise UserError("nothing to tell", cause=cause, hint='`bydawn tell LOOP "round half up"`')


@command()
@loop_argument
@option("--now", is_flag=True, help="Do not wait for the end of the round.")
@cd
@state_dir
def pause(loop: str | None, now: bool, cd: Path | None, state_dir: Path | None) -> None:
    """Pause a loop after this round; `resume` continues it.

    \b
    Examples
      bydawn pause shop-api
    """
    standing = Registry(state_dir).find(loop, cd)
    answer = steer.pause(standing, now=now)
    when = "now" if now or answer.state else "after this round"
    what = f"pauses {when}" if answer.changed else _already(answer.state)
    _say_ended(answer)
    click.echo(f"  {standing.loop.id} {what}. Continue: {typed(f'resume {standing.reference}')}")


@command()
@loop_argument
@option("--after-round", is_flag=True, help="Let the running round finish first.")
@cd
@state_dir
def stop(loop: str | None, after_round: bool, cd: Path | None, state_dir: Path | None) -> None:
    """End a loop; its changes stay in the work tree.

    \b
    Examples
      bydawn stop shop-api
    """
    standing = Registry(state_dir).find(loop, cd)
    answer = steer.stop(standing, now=not after_round)
    when = "after this round" if after_round and not answer.state else "now"
    what = f"stops {when}" if answer.changed else _already(answer.state)
    _say_ended(answer)
    click.echo(f"  {standing.loop.id} {what}. Continue after all: {typed(f'resume {standing.reference}')}")


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
    click.echo(f"  {standing.loop.id} is no longer listed, except with {typed('status --all')}")
    if not standing.finished:
        click.echo(f"  Bring it back: {typed(f'resume {standing.reference}')}")


def _say_ended(answer: steer.Answer) -> None:
    for name in answer.ended:
        click.echo(f"  Ended what was still running: {name}")


def _already(state: str) -> str:
    """`is already blocked`, `has already reached a limit`."""
    from bydawn.core.values import Status

    verb, _, rest = Status(state).words.partition(" ")
    return f"{verb} already {rest}"
