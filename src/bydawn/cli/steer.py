"""`tell`, `pause` and `stop`."""

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
def tell(loop: str, text: str | None, cd: Path, state_dir: Path | None) -> None:
    """Leave a note for the next prompt of a loop.

    \b
    Examples
      bydawn tell shop-api "round half up; fix the docs"
      bydawn tell "round half up"
    """
    name, note = (loop, text) if text is not None else (None, _only_a_text(loop))
    standing = Registry(state_dir).find(name, cd.resolve())
    answer = steer.tell(standing, note)
    click.echo(f"  Noted by {answer.taken_by}; it stands in the next prompt of {standing.loop.id}.")


def _only_a_text(word: str) -> str:
    """A word with a space in it can only be a note; a single one is rather a name whose note was forgotten."""
    if " " in word.strip():
        return word
    cause = f"{word!r} alone is taken for a loop, and no text follows"
    raise UserError("there is nothing to tell", cause=cause, hint='`bydawn tell LOOP "round half up"`')


@command()
@loop_argument
@option("--now", is_flag=True, help="Do not wait for the round to end.")
@cd
@state_dir
def pause(loop: str | None, now: bool, cd: Path, state_dir: Path | None) -> None:
    """Let a loop stand still after this round; `resume` goes on.

    \b
    Examples
      bydawn pause shop-api
    """
    standing = Registry(state_dir).find(loop, cd.resolve())
    answer = steer.pause(standing, now=now)
    when = "now" if now or answer.state else "after this round"
    if not answer.changed:
        when = f"already: it is {answer.state}"
    click.echo(f"  {standing.loop.id} stands still {when}. Go on with: {typed(f'resume {standing.reference}')}")


@command()
@loop_argument
@option("--after-round", is_flag=True, help="Let the running round end first.")
@cd
@state_dir
def stop(loop: str | None, after_round: bool, cd: Path, state_dir: Path | None) -> None:
    """End a loop; what its rounds changed stays in the work tree.

    \b
    Examples
      bydawn stop shop-api
    """
    standing = Registry(state_dir).find(loop, cd.resolve())
    answer = steer.stop(standing, now=not after_round)
    when = "after this round" if after_round and not answer.state else "now"
    what = f"ends {when}" if answer.changed else f"is {answer.state} already"
    click.echo(f"  {standing.loop.id} {what}. If it was a mistake: {typed(f'resume {standing.reference}')}")
