"""`serve`: the web page of all loops."""

import os
import sys
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import state_dir
from bydawn.core.errors import UserError
from bydawn.core.values import OURS, Act, Advice
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store.registry import Registry
from bydawn.system import kernel

if TYPE_CHECKING:
    from bydawn.web.auth import Tokens
    from bydawn.web.links import Links, Serving
    from bydawn.web.server import Server, Wanted

_SERVE = Act("serve")
_EXPOSED = "Others on your network can reach this page. A tunnel (ssh -L) or a private network is safer than --host."


@command()
@option("--port", type=click.IntRange(0, 65535), default=4173, show_default=True, metavar="N", help="Port; 0: any.")
@option("--host", default="127.0.0.1", show_default=True, metavar="ADDR", help="Address; others need a token.")
@option("--token", metavar="TEXT|@FILE", help="What programs send as a bearer token.")
@option("--allowed-host", multiple=True, metavar="NAME", help="Another name that the page may be opened by.")
@option("--read-only", is_flag=True, help="Loops cannot be steered through this server.")
@option("--open", "open_", is_flag=True, help="Open the page in your browser.")
@option("--link", is_flag=True, help="Print new links to the server that runs already.")
@state_dir
def serve(
    port: int,
    host: str,
    token: str | None,
    allowed_host: tuple[str, ...],
    read_only: bool,
    open_: bool,
    link: bool,
    state_dir: Path | None,
) -> int:
    """Show all loops on a web page, for this machine or for your phone.

    It prints two links: one may steer loops, the other one may only look. Ctrl-C ends the page; loops go on.
    A token is better kept in BYDAWN_WEB_TOKEN, or in a file that only you can read (@FILE), than typed.

    \b
    Examples
      bydawn serve --open
      bydawn serve --host 0.0.0.0 --token @$HOME/.bydawn-token
      bydawn serve --link
    """
    registry = Registry(state_dir)
    if link:
        return new_links(registry)
    ready()
    from bydawn.web.auth import checked_name
    from bydawn.web.server import Wanted

    wanted = Wanted(
        name="bydawn",
        folder=Path.cwd(),
        registry=registry,
        host=host,
        port=port,
        tokens=tokens(token),
        allowed=tuple(map(checked_name, allowed_host)),
        read_only=read_only,
    )
    return keep_serving(wanted, opens=open_)


def ready() -> None:
    """The libraries of the page load what all other commands do without."""
    refuse_inside_a_round()
    if sys.modules.get("typing_extensions", sys) is None:
        del sys.modules["typing_extensions"]
    kernel.hide_from_others()


def tokens(given: str | None) -> "Tokens":
    """From the flag or from variables, which nothing that we start gets to see."""
    from bydawn.web.auth import Tokens
    from bydawn.web.starting import LOOK_TOKEN, TOKEN

    kept = {name: os.environ.pop(name, "").strip() for name in (TOKEN, LOOK_TOKEN)}
    if given is not None and not given.strip():  # such as "$TOKEN" where no such variable is set
        hint = "openssl rand -hex 32 makes one; or drop --token"
        raise UserError("the token is empty", cause="--token was given without a text", hint=hint)
    text = _from_file(given[1:]) if given and given.startswith("@") else given or kept[TOKEN]
    return Tokens(steer=text or None, look=kept[LOOK_TOKEN] or None)


def _from_file(name: str) -> str:
    path = Path(name).expanduser()
    try:
        status, text = path.stat(), path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot read the token in {path}", cause=cause, hint="@FILE must be a text file") from None
    if status.st_mode & 0o077:
        raise UserError(
            f"others can read the token in {path}", cause="anyone with it can steer", hint=f"chmod 600 {path}"
        )
    if not text:
        raise UserError(f"{path} is empty", cause="it should hold a token", hint=f"openssl rand -hex 32 > {path}")
    return text


def keep_serving(wanted: "Wanted", *, opens: bool = False) -> int:
    """Listen, say where, and serve until a signal ends it."""
    from bydawn.web import links
    from bydawn.web.auth import LONG_TOKEN
    from bydawn.web.server import Server

    loopback = links.is_loopback(wanted.host)
    if not loopback and not wanted.tokens.all:
        raise UserError(
            f"{wanted.host} can be reached by others, so it needs a token",
            cause="without --host only this machine can reach the page",
            hint=f"BYDAWN_WEB_TOKEN=$(openssl rand -hex 32) {wanted.serves} --host {wanted.host}",
        )
    if any(not token.isascii() or not token.isprintable() for token in wanted.tokens.all):
        raise UserError(
            "this token cannot be sent",
            cause="a header takes one line of ASCII",
            hint="openssl rand -hex 32 makes one",
        )
    short = any(len(token) < LONG_TOKEN for token in wanted.tokens.all)
    if not loopback and short and wanted.name == "bydawn":  # the document of another tool may show a short one
        raise UserError(
            "this token is too short for an address that others can reach",
            cause=f"it could be guessed; it needs at least {LONG_TOKEN} characters",
            hint=f"BYDAWN_WEB_TOKEN=$(openssl rand -hex 32) bydawn serve --host {wanted.host}",
        )
    server = Server(wanted)
    url = links.url_of(wanted.host, server.port)
    serving = links.Serving(
        name=wanted.name,
        url=url,
        read_only=wanted.read_only,
        pid=os.getpid(),
        program=wanted.serves.program,
        verb=wanted.serves.verb,
        token="set" if wanted.tokens.all else "none, so only links open it",
    )
    held = links.sign(wanted.registry.root, serving, server.port)
    try:
        if sys.stdout.isatty():  # otherwise a log would keep the codes
            _say(links.made(wanted.registry.root, serving), serving, phone=not loopback)
        else:
            token = f"  Token: {serving.token}" if wanted.serves.program != OURS else ""
            click.echo(f"  {serving.name} is at {url}{token}  Links: {_more_links(serving)}")
            sys.stdout.flush()
        if opens:
            found = links.made(wanted.registry.root, serving)
            Thread(target=_open, args=(server, found.steer or found.look), daemon=True).start()
        server.run()
    finally:
        held.release()
    return 0


def _open(server: "Server", link: str) -> None:
    """Some browsers return only when they are closed, and all of them want an answer at once."""
    import webbrowser

    while not server.is_up:
        time.sleep(0.05)
    webbrowser.open(link)


def new_links(registry: Registry, serves: Act = _SERVE, name: str = "") -> int:
    """Print new links to the servers that run, of one tool or of all."""
    from bydawn.web import links

    refuse_inside_a_round()
    found = [each for each in links.running(registry.root) if name in ("", each.name)]
    if not found:
        raise UserError("no server is running", cause="a link leads to one", hint=Advice(serves, " starts it"))
    for serving in found:
        phone = not links.is_loopback(serving.url.partition("//")[2].rpartition(":")[0].strip("[]"))
        _say(links.made(registry.root, serving), serving, phone=phone)
    return 0


def _more_links(serving: "Serving") -> str:
    return render.typed(Act(serving.verb, program=serving.program, link=True))


def _say(found: "Links", serving: "Serving", *, phone: bool) -> None:
    from bydawn.web.links import qr_code

    click.echo(f"  {serving.name} is at {serving.url}\n")
    if found.steer:
        render.field("Steer", found.steer)
    render.field("Look", found.look)
    if serving.program != OURS:
        render.field("Token", serving.token)
    render.paragraph(f"Each link opens one browser, within 5 minutes. More links: {_more_links(serving)}")
    if phone:
        click.echo(qr_code(found.steer or found.look))
        render.paragraph(_EXPOSED)
    sys.stdout.flush()
