"""Links to a running server: where it is, and codes that open it."""

import os
import socket
from ipaddress import ip_address
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.values import OURS
from bydawn.store.folder import StateFolder
from bydawn.store.lock import Lock, Owned, is_held
from bydawn.store.web_keys import Role, WebKeys
from bydawn.system.writing import make_private

_MOST = 4096  # bytes of what a server writes into its lock


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """A server that runs: what its lock says."""

    name: str
    url: str
    read_only: bool
    pid: int
    program: str = OURS  # what was typed to start it, …
    verb: str = "serve"
    token: str = ""  # what a person is told of it


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """Two ways in; each link opens one browser."""

    steer: str | None  # None: this server can only be looked at
    look: str


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def url_of(host: str, port: int) -> str:
    """Where a browser finds a server; a phone too, if it listens on an address that others reach."""
    name = host
    if host in ("", "0.0.0.0", "::"):  # noqa: S104 - compared, not listened on
        name = own_address()
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def own_address() -> str:
    """The address by which other machines reach this one, as the routing table has it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def made(root: StateFolder, serving: Serving) -> Links:
    """New links to a server; the codes in them are good for one use and a few minutes."""
    keys = WebKeys(root, serving.name)
    link = f"{serving.url}/login#"
    steer = None if serving.read_only else link + keys.new_code(Role.STEER)
    return Links(steer=steer, look=link + keys.new_code(Role.LOOK))


def sign(root: StateFolder, serving: Serving, port: int) -> Lock:
    """Hold the lock by which others find this server."""
    make_private(root.web)
    try:
        held = Lock.take(root.web / f"{port}.lock")
    except Owned:
        raise UserError(
            f"a server of yours holds port {port} already", cause="it may be ending", hint="try again in a moment"
        ) from None
    os.ftruncate(held.fd, 0)
    os.pwrite(held.fd, msgspec.json.encode(serving), 0)
    return held


def running(root: StateFolder) -> list[Serving]:
    """The servers of this user that run now."""
    paths = sorted(root.web.glob("*.lock")) if root.web.is_dir() else []
    return [found for path in paths if is_held(path) and (found := _read(path))]


def _read(path: Path) -> Serving | None:
    try:
        return msgspec.json.decode(path.read_bytes()[:_MOST], type=Serving)
    except (OSError, msgspec.DecodeError):
        return None


def qr_code(link: str) -> str:
    """A link for the camera of a phone, as text for a terminal."""
    import io

    import segno

    out = io.StringIO()
    segno.make(link, micro=False, error="l").terminal(out, compact=True, border=2)
    return out.getvalue()
