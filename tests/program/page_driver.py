"""A server of the installed command: where it says it is, requests to it, and its end."""

import http.client
import json
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from driving import Said, said
from web.serving import Answer

TOKEN = "control-token-of-the-story"  # noqa: S105 - made up
AT = re.compile(r"^  (\S+) is at (http://\S+)", re.MULTILINE)


class Page:
    """A server that runs, and someone who has its token."""

    def __init__(self, process: "subprocess.Popen[str]", token: str = TOKEN) -> None:
        self.process, self.token = process, token
        assert process.stdout and process.stderr
        ready = select.select([process.stdout], [], [], 30)[0]
        self.first = process.stdout.readline() if ready else ""
        found = AT.match(self.first)
        assert found, (self.first, process.stderr.read() if process.poll() is not None else "")
        self.name, self.url = found[1], found[2]
        self.host, self.port = urlsplit(self.url).hostname or "", urlsplit(self.url).port or 0

    def ask(self, method: str, path: str, value: object = None, **headers: str) -> Answer:
        """With the token, unless another header says otherwise; an empty one is left out."""
        sent = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        try:
            body = None if value is None else json.dumps(value).encode()
            connection.request(method, path, body, {name: text for name, text in sent.items() if text})
            response = connection.getresponse()
            text = response.read().decode()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, text)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, value: object = None, **headers: str) -> Answer:
        return self.ask("POST", path, {} if value is None else value, **headers)

    @contextmanager
    def stream(self, path: str, value: object = None) -> Iterator[http.client.HTTPResponse]:
        """An answer that goes on, to a question if there is one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        body = None if value is None else json.dumps(value).encode()
        connection.request("GET" if body is None else "POST", path, body, headers)
        with connection.getresponse() as response:
            yield response
        connection.close()

    def end(self, number: int = signal.SIGTERM) -> Said:
        self.process.send_signal(number)
        return said(self.process, 20)


def events(text: str) -> list[dict[str, Any]]:
    """The JSON of every event in what a stream sent."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
