"""`bydawn serve` as it is installed: what it prints, who gets in, how it ends, and that no loop depends on it."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from bydawn.core.loop import COOKIE
from driving import COMMAND, DONE, HANG, OK, Home, is_error, wait_for
from host.fake_managers import Fakes
from program.page_driver import TOKEN, Page, events
from program.terminal_driver import Terminal

LINK = re.compile(r"(Steer|Look) +(http://\S+/login)#([a-z0-9]{12})")
VARIABLE = {"BYDAWN_WEB_TOKEN": TOKEN}


def serve(home: Home, *words: str, **options: Any) -> Page:
    """A server on a free port, whose token is in its environment."""
    return Page(home.start("serve", "--port", "0", *words, **{**VARIABLE, **options}))


@pytest.fixture
def page(home: Home) -> Iterator[Page]:
    found = serve(home)
    assert is_up(found)  # before it answers, a signal would end it as it ends any process
    yield found
    if found.process.poll() is None:
        assert found.end().code == 0


def signed_in(page: Page, code: str) -> tuple[int, str]:
    """What became of a code, and the session that it opened."""
    body = f"code={code}".encode()
    connection = socket.create_connection((page.host, page.port), timeout=20)
    head = f"POST /login HTTP/1.1\r\nHost: {page.host}:{page.port}\r\nOrigin: {page.url}\r\nConnection: close\r\n"
    head += f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    with connection:
        connection.sendall(head.encode() + body)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    cookie = re.search(rb"set-cookie: (bydawn-\d+=[^;]+);", answer, re.IGNORECASE)
    return int(answer.split(b" ", 2)[1]), cookie[1].decode() if cookie else ""


def is_up(page: Page) -> bool:
    return page.get("/api/health").status == 200


# -- a thousand connections --------------------------------------------------------------------------------------------


def test_a_thousand_connections_lock_nobody_out(home: Home) -> None:
    """Of strangers who say nothing, and of one token: a server has about 1,000 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    look = "looking-token-of-the-test"
    limit = f"ulimit -n 1024; exec {COMMAND} serve --port 0"
    page = Page(home.start(before=["bash", "-c", limit], **VARIABLE, BYDAWN_WEB_LOOK_TOKEN=look))
    assert is_up(page)
    codes = [LINK.findall(home.bydawn("serve", "--link").out)[0][2] for _ in range(2)]
    ask = f"GET /api/health HTTP/1.1\r\nHost: {page.host}:{page.port}\r\nAuthorization: Bearer TOKEN\r\n\r\n"
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with ExitStack() as stack:
            known = HTTPConnection(page.host, page.port, timeout=20)
            stack.callback(known.close)
            for said in (ask.replace("TOKEN", look), ""):
                for _ in range(1016):
                    client = stack.enter_context(socket.create_connection((page.host, page.port), timeout=20))
                    client.sendall(said.encode())
                    assert not said or client.recv(100).startswith(b"HTTP/1.1 200")
                known.request("GET", "/api/loops", headers={"authorization": f"Bearer {TOKEN}"})
                answer = known.getresponse()
                assert (answer.status, bool(answer.read())) == (200, True), "on the connection it has"
                assert page.get("/api/loops").status == 200, "on a new one"
                assert signed_in(page, codes.pop())[0] == 303
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert page.end().code == 0


# -- what it prints ----------------------------------------------------------------------------------------------------


def test_it_says_where_it_is_and_no_code_where_no_terminal_is(home: Home, page: Page) -> None:
    """T4: a log keeps what is printed."""
    assert page.name == "bydawn"
    assert page.first == f"  bydawn is at {page.url}  Links: bydawn serve --link\n"
    assert page.host == "127.0.0.1"
    assert is_up(page)
    assert page.get("/api/loops", authorization="Bearer wrong").status == 401
    said = page.end()
    assert (said.code, said.out, said.err) == (0, "", "")
    assert not [*(home.states / "web").glob("codes/*")]


def test_on_a_terminal_it_prints_two_links_each_of_which_opens_one_browser(home: Home) -> None:
    window = Terminal(home, "serve", "--port", "0")
    shown = window.see("More links")
    links = {name: (url, code) for name, url, code in LINK.findall(shown)}
    assert [*links] == ["Steer", "Look"]
    [url] = {url.removesuffix("/login") for url, _ in links.values()}
    assert f"bydawn is at {url}\n" in shown
    port = int(url.rpartition(":")[2])
    steer, look = (links[name][1] for name in ("Steer", "Look"))
    found = Page.__new__(Page)
    found.host, found.port, found.url, found.token = "127.0.0.1", port, url, ""
    for code, status in ((steer, 404), (look, 403)):
        opened, cookie = signed_in(found, code)
        assert (opened, signed_in(found, code)[0]) == (303, 401)  # the second time it is used up
        page = found.get("/api/health", authorization="", cookie=cookie)
        assert page.status == 200
        told = found.post("/api/loops/no/tell", {"text": "x"}, authorization="", cookie=cookie, origin=url)
        assert told.status in (403, status)
    for name in [*(home.states / "web").rglob("*")]:
        assert steer not in name.read_text() if name.is_file() else True  # only digests are on disk
    window.type("\x03")
    assert window.end().code in (0, 130)


def test_with_an_address_that_others_reach_it_wants_a_token(home: Home) -> None:
    """T6: refused before it listens."""
    for host in ("0.0.0.0", "::", "192.0.2.1"):  # noqa: S104 - asked for, and refused
        said = home.bydawn("serve", "--host", host, "--port", "0")
        assert said.code == 2
        assert is_error(said.err)
        assert f"{host} can be reached by others, so it needs a token" in said.err
        assert "BYDAWN_WEB_TOKEN=$(openssl rand -hex 32)" in said.err
    assert not (home.states / "web").exists()


def test_with_a_token_it_prints_a_code_for_the_camera_and_what_is_safer(home: Home) -> None:
    window = Terminal(home, "serve", "--host", "0.0.0.0", "--port", "0", **VARIABLE)  # noqa: S104
    shown = window.see("safer than --host.")
    assert "Others on your network can reach this page." in shown
    assert "A tunnel (ssh -L) or a private network" in shown
    assert sum(set(line) >= {"█", "▀"} for line in shown.splitlines()) > 5
    assert "0.0.0.0" not in shown  # noqa: S104 - a phone could not go there
    assert TOKEN not in shown
    window.type("\x03")
    window.end()


def test_links_lead_to_the_server_that_runs_or_say_that_there_is_none(home: Home) -> None:
    said = home.bydawn("serve", "--link")
    assert said.code == 2
    assert is_error(said.err)
    assert "no server is running" in said.err
    page = serve(home)
    links = LINK.findall(home.bydawn("serve", "--link").out)
    assert [(name, url) for name, url, _ in links] == [("Steer", f"{page.url}/login"), ("Look", f"{page.url}/login")]
    assert signed_in(page, links[1][2])[0] == 303
    page.end(signal.SIGKILL)  # what it left says nothing
    assert "no server is running" in home.bydawn("serve", "--link").err


# -- tokens ------------------------------------------------------------------------------------------------------------


@pytest.mark.installed
def test_a_token_that_was_typed_is_not_in_the_list_of_processes(home: Home) -> None:
    """T4, T11."""
    for words in (("--token", TOKEN), (f"--token={TOKEN}",)):
        page = Page(home.start("serve", "--port", "0", *words))
        assert is_up(page)
        for pid in home.alive():
            assert TOKEN.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
            assert TOKEN.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
        said = page.end()
        assert TOKEN not in page.first + said.out + said.err


def test_no_other_program_of_the_user_may_look_into_it() -> None:
    """T11: the kernel then gives its environment and its memory to no one but root."""
    program = (
        "from ctypes import CDLL; from bydawn.cli.serve import ready; ready(); print(CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    env = {name: value for name, value in os.environ.items() if name != COOKIE}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=env)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_token_in_a_file_must_be_for_its_owner_alone(home: Home) -> None:
    path = home.root / "token"
    wrong = [(TOKEN, 0o644, f"chmod 600 {path}"), (TOKEN, 0o640, "others can read"), (" ", 0o600, "is empty")]
    for text, mode, words in wrong:
        path.write_text(text)
        path.chmod(mode)
        said = home.bydawn("serve", "--port", "0", "--token", f"@{path}")
        assert (said.code, is_error(said.err)) == (2, True)
        assert words in said.err
        assert TOKEN not in said.err
    missing = home.bydawn("serve", "--port", "0", "--token", f"@{path}-2")
    assert (missing.code, "cannot read the token" in missing.err) == (2, True)
    path.write_text(f"{TOKEN}\n")
    page = Page(home.start("serve", "--port", "0", "--token", f"@{path}"))
    assert is_up(page)
    page.end()


def test_what_it_starts_does_not_get_its_tokens(home: Home) -> None:
    """T12: an agent could steer its own loop with them."""
    seen = home.root / "seen"
    agent = home.rounds([OK], [{"run": ["sh", "-c", f"env > {seen}"]}, DONE])
    assert home.run(agent, "--once").code == 4
    page = serve(home, BYDAWN_WEB_LOOK_TOKEN="looking-token-of-the-story")  # noqa: S106 - made up
    assert page.post("/api/loops/repo/resume", {"rounds": "+1"}).status == 202
    ended(home, "unverified")
    assert "BYDAWN_COOKIE=" in seen.read_text()
    assert "token-of-the-story" not in seen.read_text()
    page.end()


def test_a_server_that_can_only_be_looked_at(home: Home) -> None:
    home.run(home.rounds([OK]), "--once")
    page = serve(home, "--read-only")
    assert page.get("/api/loops/repo").status == 200
    before = home.facts()
    refused = page.post("/api/loops/repo/tell", {"text": "x"})
    assert (refused.status, "can only look" in refused.json["error"]) == (403, True)
    assert [name for name, _, _ in LINK.findall(home.bydawn("serve", "--link").out)] == ["Look"]
    assert home.facts() == before
    page.end()


@pytest.mark.usefixtures("page")
def test_an_agent_cannot_open_a_way_in(home: Home) -> None:
    for words in (["serve", "--port", "0"], ["serve", "--link"]):
        said = home.bydawn(*words, BYDAWN_COOKIE="a-round")
        assert (said.code, said.out) == (2, "")
        assert is_error(said.err)
        assert "agents may not do this" in said.err


# -- steering ----------------------------------------------------------------------------------------------------------


def ended(home: Home, state: str) -> dict[str, Any]:
    def now() -> dict[str, Any]:
        found = home.status()
        return found if found["state"] == state and not found["alive"] else {}

    return wait_for(now, 40)


def test_a_loop_goes_on_with_a_higher_limit(home: Home, page: Page) -> None:
    assert home.run(home.rounds([OK], [OK], [DONE]), "--rounds", "1").code == 4
    seq = home.status()["seq"]
    done = page.post("/api/loops/repo/resume", {"rounds": "+1", "expect_seq": seq})
    assert (done.status, done.json["told"]) == (202, "repo goes on.")
    assert done.json["seq"] > seq
    assert ended(home, "limit")["round"] == 2
    late = page.post("/api/loops/repo/resume", {"rounds": "+1", "expect_seq": seq})
    assert (late.status, late.json["state"]) == (409, "limit")
    assert home.status()["round"] == 2
    free = page.post("/api/loops/repo/resume", {"rounds": 9, "budget": "5usd"})
    assert (free.status, free.json["hint"]) == (400, "use a token budget (--budget 2Mtok), or limit rounds or time")
    assert page.post("/api/loops/repo/resume", {"rounds": 9, "for": "1h", "budget": "2Mtok"}).status == 202
    assert ended(home, "unverified")["round"] == 3
    assert page.post("/api/loops/repo/resume").status == 409


def test_a_checkpoint_is_approved(home: Home, page: Page) -> None:
    (home.repo / "TODO.md").write_text("- [ ] one\n\nHARD STOP\n\n- [ ] two\n")
    home.run(
        home.each_task({"write": {"path": "{n}.txt", "text": "{task}"}}), "-t", "TODO.md", "--checkpoint", "HARD STOP"
    )
    assert home.status()["state"] == "checkpoint"
    done = page.post("/api/loops/repo/approve", {"expect_seq": home.status()["seq"]})
    assert done.status == 202
    assert ended(home, "unverified")["tasks"] == {"open": 0, "done": 2}


def test_changes_to_protected_files_are_accepted(home: Home, page: Page) -> None:
    (home.repo / "tests").mkdir()
    (home.repo / "tests/a.py").write_text("right\n")
    agent = home.rounds([{"write": {"path": "tests/a.py", "text": "wrong\n"}}, OK], [DONE])
    home.run(agent, "--protect", "tests/**")
    assert home.status()["state"] == "blocked"
    assert page.post("/api/loops/repo/accept", {"expect_seq": home.status()["seq"]}).status == 202
    ended(home, "unverified")
    assert (home.repo / "tests/a.py").read_text() == "wrong\n"


def test_a_running_loop_takes_what_the_page_asks(home: Home, page: Page) -> None:
    """The one writer records it: pause after this round, a note, a task, a stop."""
    home.tasks(2)
    gate, opened = home.gate()
    running = home.start_run(home.each_task(gate), "-t", "TODO.md")
    home.await_round(1)
    assert page.post("/api/loops/repo/tell", {"text": "round half up"}).status == 202
    assert page.post("/api/loops/repo/tasks", {"text": "write docs"}).status == 202
    paused = page.post("/api/loops/repo/pause")
    assert (paused.status, paused.json["told"]) == (202, "repo pauses after round 1.")
    assert page.post("/api/loops/repo/resume").status == 409  # it runs
    opened.touch()
    assert running.wait(30) == 0 or home.status()["state"] == "paused"
    assert "- [ ] write docs" in (home.repo / "TODO.md").read_text()
    assert page.post("/api/loops/repo/stop").json["state"] == "stopped"


def test_a_question_is_answered_as_a_stream(home: Home, page: Page) -> None:
    home.tasks(2)
    home.run(home.each_task(), "-t", "TODO.md", "--once")
    answer = page.post("/api/loops/repo/chat", {"message": "what is left?", "include": ["todo"]})
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    rows = events(answer.text)
    assert (rows[0]["event"], rows[-1]["event"]) == ("asked", "answered")
    assert "1 of 2 tasks in TODO.md are done" in rows[-1]["answer"]
    [turn] = page.get("/api/loops/repo/chat").json["turns"]
    assert (turn["question"], turn["answer"]) == ("what is left?", rows[-1]["answer"])


def test_trusted_settings_of_a_folder_are_started_and_others_are_not(home: Home) -> None:
    """T12. Its key stands for these very settings; `/start` has it."""
    agent = home.rounds([DONE])
    (home.repo / "bydawn.toml").write_text(f'prompt = "do it"\nagent = "{agent}"\n')
    page = serve(home)
    offered = re.compile(r'name="folder" value="([0-9a-f]{20})"')
    shown = page.get("/start").text
    assert "bydawn trust" in shown and not offered.findall(shown)
    asked = Terminal(home, "trust")
    asked.see("[y/N]")
    asked.type("y\n")
    assert asked.end().code == 0
    [key] = offered.findall(page.get("/start").text)
    begun = page.post("/api/loops", {"config": key})
    assert (begun.status, begun.json["loop"]) == (202, "repo")
    ended(home, "unverified")
    page.end()


# -- how it ends -------------------------------------------------------------------------------------------------------


def test_an_agent_that_says_more_than_a_line_may_have_is_heard_to_its_end(home: Home, page: Page) -> None:
    """What is too long is left out; the answer and the next question are not."""
    script, flood = home.root / "chat.json", {"say": "x" * 6_000_000}
    script.write_text(json.dumps({"rounds": [[OK]], "chat": [flood, flood, flood, {"result": {"text": "Done."}}]}))
    home.run(f"demo:{script}", "--once")
    for _ in range(2):
        answer = page.post("/api/loops/repo/chat", {"message": "why?"})
        events = [json.loads(row[6:])["event"] for row in answer.text.splitlines() if row.startswith("data: ")]
        assert (events[0], events[-1], len(answer.text) < 1_000_000) == ("asked", "answered", True)


def test_a_browser_that_waits_for_an_answer_gets_it(home: Home) -> None:
    """Those of a terminal return only when they are closed."""
    seen, browser = home.root / "seen", home.root / "browser"
    code = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).status)"
    browser.write_text(f"#!/bin/sh\n{sys.executable} -c '{code}' $1 > {seen}.part && mv {seen}.part {seen}\n")
    browser.chmod(0o755)
    page = serve(home, "--open", BROWSER=str(browser))
    wait_for(seen.exists)
    assert seen.read_text() == "200\n"
    page.end()


@pytest.mark.parametrize("token", ["pässwort-lang-genug", "a line\nand another"])
def test_a_token_that_no_header_can_have_is_refused(home: Home, token: str) -> None:
    refused = home.bydawn("serve", "--port", "0", BYDAWN_WEB_TOKEN=token)
    assert (refused.code, "this token cannot be sent" in refused.err) == (2, True)


def test_an_agent_that_it_asked_ends_with_it(home: Home, page: Page) -> None:
    script = home.root / "chat.json"
    script.write_text(json.dumps({"rounds": [[OK]], "chat": [{"say": "I think"}, HANG]}))
    home.run(f"demo:{script}", "--once")
    with page.stream("/api/loops/repo/chat", {"message": "why?"}) as answer:
        wait_for(lambda: b"I think" in answer.read1(1000))
        assert len(home.alive()) > 2
        assert page.end().code == 0
    wait_for(lambda: not home.alive())
    [turn] = json.loads(home.bydawn("chat", "repo", "--history", "--json").out)["turns"]
    assert turn["state"] == "interrupted"


def test_a_loop_that_it_started_goes_on_when_it_is_killed(home: Home, page: Page) -> None:
    """FAULTS 110."""
    gate, opened = home.gate()
    assert home.run(home.rounds([OK], [gate, OK], [DONE]), "--once").code == 4
    assert page.post("/api/loops/repo/resume", {"rounds": "+5"}).status == 202
    home.await_round(2)
    page.process.send_signal(signal.SIGKILL)
    page.process.wait(10)
    assert home.status()["alive"] is True
    opened.touch()
    assert ended(home, "unverified")["round"] == 3
    assert home.outcomes() == ["ok", "ok", "ok"]


def test_a_document_is_whole_when_the_server_is_killed_while_it_saves(home: Home) -> None:
    home.tasks(1)
    home.run(home.each_task(), "-t", "TODO.md", "--once", "--new", "--name", "saved")
    path = home.repo / "TODO.md"
    texts = [f"- [ ] {letter}\n" * 20_000 for letter in "abc"]
    for turn in range(3):
        page = serve(home)
        path.write_text(texts[0])

        def save(page: Page = page) -> None:
            with suppress(OSError, ValueError, HTTPException):  # killed before, within or after an answer
                for number in range(1, 1000):
                    version = page.get("/api/loops/saved/docs/todo").json["version"]
                    text = {"text": texts[number % 3]}
                    page.ask("PUT", "/api/loops/saved/docs/todo", text, if_match=version)

        person = threading.Thread(target=save)
        person.start()
        wait_for(lambda: path.read_text() != texts[0])
        time.sleep(0.03 * turn)
        page.process.send_signal(signal.SIGKILL)
        person.join()
        page.process.wait(10)
        assert path.read_text() in texts


# -- what else it costs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("status",), ("show",), ("why", "repo"), ("tasks", "list"), ("tell", "repo", "x")])
def test_no_other_command_loads_what_the_page_needs(home: Home, words: tuple[str, ...]) -> None:
    """`typing_extensions` is there because the page's libraries need it; msgspec would load it in every command."""
    home.run(home.rounds([OK]), "--rounds", "1")
    program = (
        "import sys; from bydawn.cli.main import main; code = main()\n"
        "print(*(name for name, module in sys.modules.items() if module), file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, env=home.env, cwd=home.repo, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    loaded = {*done.stderr.split()}
    assert {"bydawn.cli.main", "msgspec"} <= loaded
    assert not loaded & {"typing_extensions", "starlette", "uvicorn", "jinja2", "anyio", "asyncio", "bydawn.web"}


def test_the_service_can_bring_the_page_with_it_and_its_end_ends_no_loop(home: Home) -> None:
    fakes = Fakes(home.root / "fakes", "systemctl", "loginctl")
    words = ("service", "install", "--with-web", "--dry-run")
    said = home.bydawn(*words, PATH=f"{fakes.folder}:/usr/bin:/bin")
    assert said.code == 0, said
    loops, page = said.out.split("[Unit]")[1:]
    assert f"ExecStart={COMMAND} resume --all --foreground" in loops
    assert f"ExecStart={COMMAND} serve" in page
    assert "KillMode=process" in page
    assert "KillMode=process" not in loops
    assert "Nothing was changed." in said.out
    assert not [*Path(home.env["XDG_CONFIG_HOME"]).rglob("*.service")]
