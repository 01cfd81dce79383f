"""A real server on loopback, in a thread of the test, over loops that were made from facts."""

import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from bydawn.store.registry import Registry
from bydawn.store.web_keys import Role
from bydawn.web.auth import Tokens, csrf_of
from bydawn.web.server import Server, Wanted
from operations.stories import STORIES, held, write_loop

STEER, LOOK = "control-token-of-the-test", "looking-token-of-the-test"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Web:
    """What a test does with a running server."""

    def __init__(self, server: Server, root: Path, thread: threading.Thread) -> None:
        self.server = server
        self.thread = thread
        self.root = root
        self.port = server.port
        self.url = f"http://127.0.0.1:{server.port}"
        self.origin = self.url

    def code(self, role: Role = Role.STEER) -> str:
        return self.server.keys.new_code(role)

    def session(self, role: Role = Role.STEER) -> str:
        """The cookie of someone who is signed in."""
        return f"bydawn-{self.port}={self.server.keys.new_session(role)}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, text)
        finally:
            connection.close()

    def get(self, path: str, token: str = STEER, **headers: str) -> Answer:
        return self.ask("GET", path, headers={"authorization": f"Bearer {token}", **headers})

    def post(self, path: str, value: object = None, token: str = STEER, method: str = "POST", **headers: str) -> Answer:
        body = json.dumps(value or {}).encode()
        names = {name.replace("_", "-"): text for name, text in headers.items()}
        sent = {"authorization": f"Bearer {token}", "content-type": "application/json", **names}
        return self.ask(method, path, body, sent)

    def page(self, path: str, cookie: str) -> Answer:
        return self.ask("GET", path, headers={"cookie": cookie, "accept": "text/html"})

    def csrf(self, cookie: str) -> str:
        """What the forms of this session carry."""
        return csrf_of(cookie.partition("=")[2])

    def send(self, path: str, cookie: str, fields: Mapping[str, str], **headers: str) -> Answer:
        """A form, as a browser sends it."""
        sent = {
            "cookie": cookie,
            "origin": self.origin,
            "sec-fetch-site": "same-origin",
            "content-type": "application/x-www-form-urlencoded",
        }
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        return self.ask("POST", path, urlencode(fields).encode(), {name: text for name, text in sent.items() if text})

    def raw(self, data: bytes, seconds: float = 20.0) -> bytes:
        """Bytes as they are, and all that is answered."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as client:
            client.sendall(data)
            with suppress(OSError):  # it may have refused it already
                client.shutdown(socket.SHUT_WR)
            answer = b""
            while part := client.recv(65536):
                answer += part
            return answer


@contextmanager
def serving(root: Path, *names: str, **wanted: Any) -> Iterator[Web]:
    """A server over these loops, or over all there are."""
    chosen = names if names != ("none",) else ()
    for name in chosen or (STORIES if names != ("none",) else ()):
        write_loop(root, name)
    settings = {"tokens": Tokens(steer=STEER, look=LOOK), "host": "127.0.0.1", "port": 0, "name": "bydawn", **wanted}
    server = Server(Wanted(folder=root, registry=Registry(root / "state"), **settings))
    with ExitStack() as locks:
        for name in chosen or (STORIES if names != ("none",) else ()):
            locks.enter_context(held(root, name))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 10
        while not server.is_up and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            yield Web(server, root, thread)
        finally:
            server.end()
            thread.join(10)
            assert not thread.is_alive()


@contextmanager
def at_home(root: Path) -> Iterator[None]:
    """With no settings but those below a folder."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(("BYDAWN", "XDG", "CODEX", "OPENAI"))]:
        del os.environ[name]
    os.environ |= {"HOME": str(root), "TZ": "UTC"}
    time.tzset()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        time.tzset()
