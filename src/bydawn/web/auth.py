"""Who may come in: names that the server answers to, tokens, sessions, and where a request may come from."""

import hmac
import re
import time
from collections import deque
from enum import StrEnum
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.values import Act, Advice
from bydawn.store.web_keys import SESSION_DAYS, Role, WebKeys
from bydawn.web.page import Visitor

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

SERVE = Act("serve")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "bydawn.localhost")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
LONG_TOKEN = 16  # characters; no one guesses as many
_FAILURES, _WINDOW = 10, 60.0  # wrong tokens and codes that are counted, within so many seconds
_STEP = 0.5  # seconds that each of them makes the answer to the next one later
_READS = ("GET", "HEAD")
KNOWN = "known"  # what to call with the key that someone at the other end of a connection has shown


class Access(StrEnum):
    """What a route needs."""

    OPEN = "open"  # the sign-in page and what it loads
    LOOK = "look"
    STEER = "steer"


class Refused(UserError):
    """A request that is not answered, and why."""

    def __init__(self, status: int, what: str, cause: str = "", hint: str = "", *, wait: float = 0) -> None:
        super().__init__(what, cause=cause, hint=hint)
        self.status = status
        self.wait = wait  # seconds before it is said


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """The names that a server answers to: a name that another site's DNS leads to us is not one of them."""

    port: int
    allowed: tuple[str, ...] = ()  # what `--allowed-host` named: `NAME` or `NAME:PORT`
    cors: tuple[str, ...] = ()  # pages of others that may ask, with a token
    takes_more: bool = True  # has the command that serves it an option for further names?

    def checked(self, scope: "Scope") -> str:
        """The Host header of a request, if it is one of ours."""
        given: list[str] = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        found = _HOST.fullmatch(given[0]) if len(given) == 1 else None
        if found is None:
            raise Refused(400, "this request does not say which server it wants", "it needs exactly one Host header")
        name, port = found[1].lower(), int(found[2] or 80)
        if name in (*_LOOPBACK, _own_address(scope)) and port == self.port:
            return given[0]
        if any(self._is(entry, name, found[2]) for entry in self.allowed):
            return given[0]
        raise Refused(
            421,
            "this name is not one that the server answers to",
            f"the request says {given[0]}",
            Advice("if the name is yours: ", Act("serve", allowed_host=given[0]))
            if self.takes_more
            else f"use an address of this machine, such as 127.0.0.1:{self.port}",
        )

    def _is(self, entry: str, name: str, port: str | None) -> bool:
        wanted = _HOST.fullmatch(entry.lower())
        if wanted is None or wanted[1] != name:
            return False
        return port == wanted[2] if wanted[2] else port in (None, str(self.port))

    def is_own_origin(self, origin: str, host: str) -> bool:
        """Does this Origin stand for the page that was served under this name? A proxy may have added TLS."""
        plain = host.rpartition(":")[0].lower() in _LOOPBACK or host.lower() in _LOOPBACK
        return origin in (f"http://{host}", *([] if plain else [f"https://{host}"]))


def checked_name(entry: str) -> str:
    """A name for `--allowed-host`."""
    if _HOST.fullmatch(entry):
        return entry
    raise UserError(
        f"{entry!r} is not a name",
        cause="it is compared with the Host header of requests",
        hint="NAME or NAME:PORT, such as night.example.org",
    )


def _own_address(scope: "Scope") -> str:
    """The address that this connection reached us on. No one else's DNS can make a browser put an address there."""
    server = scope.get("server") or ("", 0)
    try:
        found = ip_address(str(server[0]))
    except ValueError:
        return ""
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found) if found.version == 4 or mapped else f"[{found}]"


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What programs send as `Authorization: Bearer …`; None: no program may come in that way."""

    steer: str | None = None
    look: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(token for token in (self.steer, self.look) if token)

    def role_of(self, given: str) -> Role | None:
        rows = ((self.steer, Role.STEER), (self.look, Role.LOOK))
        found = [role for token, role in rows if token and hmac.compare_digest(token.encode(), given.encode())]
        return found[0] if found else None


class Failures:
    """Wrong tokens and codes: each is answered later than the one before, from any address. A right one never has to
    wait, or a stranger could lock everyone out."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=_FAILURES)

    def wait(self) -> float:
        """One more; the seconds until it is answered."""
        now = time.monotonic()
        while self._times and now - self._times[0] > _WINDOW:
            self._times.popleft()
        self._times.append(now)
        return _STEP * len(self._times)


class Gate:
    """Lets a request in, or says why not."""

    def __init__(self, keys: WebKeys, names: Names, tokens: Tokens, *, read_only: bool, serves: Act = SERVE) -> None:
        self.keys = keys
        self.serves = serves
        self.new_link = Act(serves.verb, program=serves.program, link=True)
        self.names = names
        self._tokens = tokens
        self._read_only = read_only
        self._failures = Failures()
        self.cookie = f"bydawn-{names.port}"  # a browser sends the cookies of all ports
        self.nobody = Visitor(role=Role.LOOK)  # someone who is not signed in, on the pages that are open to all

    def bearer(self, request: "Request") -> Visitor | None:
        """Someone with a token. A page of another site cannot make a browser send it, whatever name it uses for us."""
        given = request.headers.get("authorization")
        if given is None:
            return None
        scheme, _, token = given.partition(" ")
        role = self._tokens.role_of(token.strip()) if scheme.lower() == "bearer" else None
        if role is None:
            hint = Advice("use the one that the server was started with, or ask for a link: ", self.new_link)
            raise Refused(401, "this token is wrong", hint=hint, wait=self._failures.wait())
        return Visitor(role=self._narrowed(role))

    def admit(self, request: "Request", access: Access, *, is_page: bool) -> Visitor | None:
        """Who asks; None if they are not signed in, and need not be."""
        visitor = self.bearer(request)
        if visitor is None:
            host = self.names.checked(request.scope)
            self._refuse_foreign(request, host, is_page=is_page)
            visitor = self._signed_in(request)
        if visitor and (keep := request.scope.get("state", {}).get(KNOWN)):
            keep(request.headers.get("authorization") or request.cookies.get(self.cookie, ""))
        if visitor is None and access is not Access.OPEN:
            hint = Advice("ask for a new link: ", self.new_link)
            raise Refused(401, "you are not signed in, or your link has run out", hint=hint)
        if visitor and access is Access.STEER and not visitor.steers:
            raise Refused(
                403,
                "this link can only look",
                "the server or the link was made for reading",
                "open the link that may steer",
            )
        return visitor

    def _refuse_foreign(self, request: "Request", host: str, *, is_page: bool) -> None:
        """Only our own pages may change something or read data; another site may at most lead to a page."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        changes = request.method not in _READS
        foreign = site not in (None, "same-origin", "none") or (
            origin is not None and not self.names.is_own_origin(origin, host)
        )
        if (changes and origin is None) or (foreign and (changes or not is_page)):
            raise Refused(
                403,
                "this request comes from another site",
                f"Origin: {origin or 'none'}",
                "programs send a token: `Authorization: Bearer …`",
            )

    def _signed_in(self, request: "Request") -> Visitor | None:
        session = request.cookies.get(self.cookie, "")
        role = self.keys.role_of(session) if session else None
        if role is None:
            return None
        return Visitor(
            role=self._narrowed(role),
            csrf=csrf_of(session),
            theme=request.cookies.get("bydawn-theme", ""),
            keys=request.cookies.get("bydawn-keys") != "off",
        )

    def is_still_in(self, request: "Request") -> bool:
        """Is the session good that a stream was opened with? A token is, for as long as the server runs."""
        return request.headers.get("authorization") is not None or self._signed_in(request) is not None

    def sign_in(self, code: str) -> str:
        """The session that a code opens."""
        role = self.keys.use_code(code)
        if role is None:
            hint = Advice("ask for a new one: ", self.new_link)
            raise Refused(401, "that code was used or is wrong", hint=hint, wait=self._failures.wait())
        return self.keys.new_session(role)

    def give(self, response: "Response", session: str) -> None:
        """Put the session into the browser."""
        response.set_cookie(
            self.cookie, session, max_age=SESSION_DAYS * 86_400, path="/", httponly=True, samesite="strict"
        )

    def _narrowed(self, role: Role) -> Role:
        return Role.LOOK if self._read_only else role


def refuse_forged(visitor: Visitor | None, given: str) -> None:
    """A form or a script of ours knows what only our pages have."""
    if visitor and visitor.csrf and not hmac.compare_digest(visitor.csrf.encode(), given.encode()):
        raise Refused(403, "this form is out of date", "it was made for another session", "reload the page, then retry")


def csrf_of(session: str) -> str:
    return hmac.new(session.encode(), b"forms", sha256).hexdigest()[:32]
