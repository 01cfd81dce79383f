"""The servers that other tools' documents name: `codex-autorunner serve` and `rloop server`, as programs ask them."""

import http.client
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bydawn.dialects.codex_autorunner.config import Config
from driving import OK, Home, is_error, wait_for
from program.autorunner import ITEM, Autorunner
from program.page_driver import TOKEN, Page, events
from program.rloop import SAYS, TASK, Rloop

SECRET = "SECRET"  # noqa: S105 - as its document has it
LINKS = re.compile(r"(\S+) is at (http://\S+)\n\n +Steer +\S+#(\w{12})\n +Look +\S+#(\w{12})\n")


def curl(line: str, page: Page, **names: str) -> Any:
    """An example of the docs as a person pastes it, with the real port, token and name in place of its own."""
    words = {"http://127.0.0.1:4173": page.url, "http://vps:8080": page.url, "$TOKEN": page.token, **names}
    for old, new in words.items():
        line = line.replace(old, new)
    done = subprocess.run(["bash", "-c", f"{line} --silent --max-time 60"], capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, (line, done)
    return json.loads(done.stdout)


def examples(document: str, heading: str) -> dict[str, str]:
    """The curl lines in a section of our docs, by method and address."""
    text = (Path(__file__).parents[2] / "docs" / document).read_text()
    section = re.split(r"\n## ", text.partition(f"\n## {heading}\n")[2])[0].replace("\\\n", " ")
    found = {}
    for line in re.findall(r"^curl .*$", section, re.MULTILINE):
        line = line.partition("   #")[0].strip()
        method = re.search(r"-X (\w+)", line)
        path = re.search(r"https?://[^/ ]+(/[^ ?\"']*)", line)
        assert path, line
        found[f"{method[1] if method else 'GET'} {path[1]}"] = line
    return found


# -- codex-autorunner --------------------------------------------------------------------------------------------------

THE_API = "The server"


@pytest.fixture
def runner(home: Home) -> Autorunner:
    runner = Autorunner(home)
    runner.plays(ITEM)
    return runner.ready(2)


def with_token(runner: Autorunner, token: str = f'"{TOKEN}"') -> None:
    runner.config.write_text(f"{runner.config.read_text()}\nserver:\n  auth_token: {token}\n")


def serve(runner: Autorunner, *words: str) -> Page:
    return Page(runner.start("serve", "--port", "0", *words))


@pytest.fixture
def page(runner: Autorunner) -> Iterator[Page]:
    with_token(runner)
    found = serve(runner)
    yield found
    if found.process.poll() is None:
        assert found.end().code == 0
    wait_for(lambda: not runner.home.alive())  # nobody waits for a run that was started from the page


def idle(page: Page) -> dict[str, Any]:
    """The state once nothing runs any more, asked for after that: the end may come while an answer is made."""
    wait_for(lambda: not page.get("/api/state").json["running"], 40)
    return dict(page.get("/api/state").json)


def test_it_serves_the_page_of_this_repository_on_this_machine(runner: Autorunner) -> None:
    """A-058, A-060, X-25: loopback, port 4173 unless told otherwise; without a token of your own, links open it."""
    with_token(runner, "null")
    page = serve(runner)
    assert (page.name, page.host) == ("codex-autorunner", "127.0.0.1")
    assert (Config().host, Config().port, Config().auth_token) == ("127.0.0.1", 4173, None)
    for token in ("null", "None", "", TOKEN):
        assert page.get("/api/state", authorization=f"Bearer {token}").status == 401
    assert page.get("/api/state", authorization="").status == 401
    [(name, url, steer, _)] = LINKS.findall(runner.home.bydawn("serve", "--link").out)
    assert (name, url) == ("codex-autorunner", page.url)
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)
    form = {"origin": page.url, "content-type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/login", f"code={steer}", form)
    response = connection.getresponse()
    cookie = (response.getheader("set-cookie") or "").partition(";")[0]
    connection.close()
    assert response.status == 303
    shown = page.get("/", authorization="", cookie=cookie)
    assert (shown.status, "<!doctype html>" in shown.text.lower()) == (200, True)
    assert page.end().code == 0


def test_a_token_in_its_configuration_is_what_programs_send(runner: Autorunner, page: Page) -> None:
    """A-060: `Authorization: Bearer`; it is in no command line, log or state."""
    assert page.get("/api/state").status == 200
    assert page.get("/api/state", authorization="").status == 401
    assert page.get("/api/state", authorization="Bearer wrong").status == 401
    assert page.get(f"/api/state?token={TOKEN}", authorization="").status == 401
    said = page.end()
    assert TOKEN not in page.first + said.out + said.err
    assert not any(TOKEN.encode() in path.read_bytes() for path in runner.home.states.rglob("*") if path.is_file())


def test_another_address_needs_a_token_too(runner: Autorunner) -> None:
    """A-060, X-25."""
    said = runner("serve", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - refused
    assert (said.code, is_error(said.err)) == (2, True)
    assert "needs a token" in said.err


def test_a_repository_cannot_open_the_page_to_others(runner: Autorunner) -> None:
    """What came with a repository decides neither where the page listens nor, before it is trusted, who may steer."""
    before = runner.config.read_text()
    runner.config.write_text(f"{before}\nserver:\n  host: 0.0.0.0\n  auth_token: known-to-everyone\n")
    refused = runner("serve", "--port", "0")
    assert (refused.code, is_error(refused.err)) == (2, True), refused
    assert "--host 0.0.0.0" in refused.err
    changed = before.replace('"--yolo"', '"--yolo", "--search"')
    assert changed != before
    runner.config.write_text(f"{changed}\nserver:\n  auth_token: known-to-everyone\n")
    refused = runner("serve", "--port", "0")
    assert (refused.code, is_error(refused.err)) == (2, True), refused
    assert "trust" in refused.err


def a_free_port() -> int:
    """One that the system gives to nobody who asks for any: it is still free when the server binds it."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def test_a_port_of_its_configuration_is_used(runner: Autorunner) -> None:
    """A-060."""
    port = a_free_port()
    runner.config.write_text(f"{runner.config.read_text()}\nserver:\n  port: {port}\n")
    page = Page(runner.start("serve"))
    assert page.port == port
    page.end()


def test_documents_are_read_and_replaced(runner: Autorunner, page: Page) -> None:
    """A-061."""
    told = page.get("/api/docs").json
    assert told == {kind: (runner.repo / f"{kind.upper()}.md").read_text() for kind in ("todo", "progress", "opinions")}
    for kind in told:
        saved = page.ask("PUT", f"/api/docs/{kind}", {"content": f"- [ ] new {kind}\r\nno end"})
        assert (saved.status, saved.json) == (200, {"kind": kind, "content": f"- [ ] new {kind}\r\nno end"})
        assert (runner.repo / f"{kind.upper()}.md").read_bytes() == f"- [ ] new {kind}\r\nno end".encode()
    for path, value, status in [
        ("/api/docs/nope", {"content": "x"}, 404),
        ("/api/docs/..%2fREADME.md", {"content": "x"}, 404),
        ("/api/docs/todo", {"text": "x"}, 400),
        ("/api/docs/todo", {"content": 1}, 400),
        ("/api/docs/todo", {"content": "x" * (1 << 21)}, 400),
    ]:
        refused = page.ask("PUT", path, value)
        assert (refused.status, bool(refused.json["error"])) == (status, True)
    assert (runner.repo / "TODO.md").read_bytes() == b"- [ ] new todo\r\nno end"


def test_the_state_says_what_runs_and_how_much_is_open(runner: Autorunner, page: Page) -> None:
    """A-062: as `status --json`, and the number of open boxes."""
    before = page.get("/api/state").json
    assert (before["status"], before["last_run_id"], before["outstanding_count"]) == ("idle", None, 2)
    assert before["running"] is False
    assert runner("once").code == 0
    after, printed = page.get("/api/state").json, json.loads(runner("status", "--json").out)
    assert after == {**printed, "outstanding_count": 1, "running": False}
    assert (after["last_run_id"], after["last_exit_code"]) == (1, 0)


def test_runs_are_started_to_the_end_or_once(runner: Autorunner, page: Page) -> None:
    """A-062: the whole loop goes on although nobody reads what it prints."""
    once = page.post("/api/run/start", {"once": True})
    assert once.status == 200
    assert (idle(page)["last_run_id"], runner.runs) == (1, [(1, "0")])
    begun = page.post("/api/run/start", {})
    assert begun.status == 200
    state = idle(page)
    assert (state["last_run_id"], state["outstanding_count"], state["status"]) == (2, 0, "idle")
    assert runner.runs == [(1, "0"), (2, "0")]
    assert page.post("/api/run/start", {}).status == 200  # nothing is left: the command ends at once
    assert (idle(page)["outstanding_count"], runner.runs) == (0, [(1, "0"), (2, "0")])


def test_a_run_is_stopped_between_two_runs_resumed_and_killed(runner: Autorunner, page: Page) -> None:
    """A-062, A-068."""
    gate = runner.home.root / "go"
    runner.plays({**ITEM, "reply": "Half of it.", "wait_for": str(gate)})
    runner.items(3)
    assert page.post("/api/run/start", {}).json["running"] is True
    wait_for(lambda: len(runner.calls) == 1)
    beside = page.post("/api/run/start", {})
    assert (beside.status, beside.json["error"]) == (409, "codex-autorunner is already running here")
    assert page.post("/api/run/stop").json["running"] is True  # after this run
    gate.touch()
    assert (idle(page)["last_run_id"], runner.runs) == (1, [(1, "0")])
    gate.unlink()
    assert page.post("/api/run/resume", {}).json["running"] is True
    wait_for(lambda: len(runner.calls) == 2)
    killed = page.post("/api/run/kill")
    assert (killed.status, killed.json["running"]) == (200, False)
    assert runner.lock.exists() is False
    assert runner.state["last_run_id"] == 2
    assert page.post("/api/run/kill").json["running"] is False  # there is nothing to kill
    gate.touch()
    assert page.post("/api/run/resume", {"once": True}).status == 200
    assert idle(page)["last_run_id"] == 3


def test_a_run_that_cannot_start_says_why(runner: Autorunner, page: Page) -> None:
    """A-062: the words of the command."""
    (runner.repo / "TODO.md").write_text("nothing to tick\n")
    refused = page.post("/api/run/start", {})
    assert refused.status == 400
    assert "TODO.md" in refused.json["error"] and refused.json["hint"]
    assert runner.loops == []


def test_logs_are_read_by_run_and_from_their_end(runner: Autorunner, page: Page) -> None:
    """A-063."""
    assert page.get("/api/logs").json == {"run_id": None, "log": ""}
    assert runner("run").code == 0
    first = page.get("/api/logs?run_id=1").json
    assert (first["run_id"], first["log"].splitlines()) == (1, runner("log", "--run", "1").out.splitlines())
    assert page.get("/api/logs").json == {"run_id": 2, "log": runner("log").out.rstrip("\n")}
    tail = page.get("/api/logs?run_id=2&tail=2").json["log"].splitlines()
    assert tail == runner.log.splitlines()[-2:]
    assert page.get("/api/logs?tail=3").json["log"].splitlines() == runner.log.splitlines()[-3:]
    for query, status in (("run_id=99", 404), ("run_id=x", 400), ("run_id=-1", 404), ("tail=0&run_id=1", 200)):
        assert page.get(f"/api/logs?{query}").status == status


def test_each_line_of_the_log_is_sent_as_it_is_written(runner: Autorunner, page: Page) -> None:
    """A-063."""
    gate = runner.home.root / "go"
    runner.plays({**ITEM, "reply": "Half of it.", "wait_for": str(gate)})
    with page.stream("/api/logs/stream") as stream:
        assert stream.headers.get_content_type() == "text/event-stream"
        page.post("/api/run/start", {"once": True})
        heard = b""
        while b"stdout: Half of it." not in heard:
            heard += stream.read1(4096)
        assert runner.blocks[-1].code == "", "the run is not over yet"
        gate.touch()
        while not re.search(rb"=== run 1 end.*\n", heard):  # to the end of the line, which may come in two parts
            heard += stream.read1(4096)
    sent = re.findall(r"^data: (.*?)\r?$", heard.decode(), re.MULTILINE)
    assert sent == runner.log.splitlines()
    idle(page)


def test_a_question_is_answered_by_an_agent_of_its_own(runner: Autorunner, page: Page) -> None:
    """A-064: advisory, with the documents that a person chooses."""
    nothing = page.post("/api/chat", {"message": "why?"})
    assert (nothing.status, nothing.json["error"]) == (409, "nothing has run here yet")
    assert runner("once").code == 0
    (runner.repo / "OPINIONS.md").write_text("tabs are evil\n")
    (runner.repo / "PROGRESS.md").write_text("halfway there\n")
    runner.plays({"reply": "The tax table is missing."})
    asked = {"message": "what is missing?", "include_todo": False, "include_progress": False, "include_opinions": True}
    answer = page.post("/api/chat", asked)
    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    last = events(answer.text)[-1]
    assert (last["event"], last["answer"]) == ("answered", "The tax table is missing.")
    call = runner.calls[-1]
    assert "-s read-only" in " ".join(call["argv"])
    assert "tabs are evil" in call["prompt"] and "halfway there" not in call["prompt"]
    assert page.post("/api/chat", {"message": ""}).status == 400
    assert page.post("/api/chat", {}).status == 400
    assert len(runner.runs) == 1


def test_only_this_repository_is_shown(runner: Autorunner, page: Page) -> None:
    """A-058: neither other tools' loops here, nor this tool's loops elsewhere."""
    assert runner("once").code == 0
    runner.home.run(runner.home.rounds([OK]), "--once", "--new", "--name", "other")
    [loop] = page.get("/api/loops").json["loops"]
    assert (loop["loop"], loop["workspace"]) == (runner.state["loop"], str(runner.repo))
    assert page.get("/api/loops/other").status == 404
    assert page.get("/loops/other").status == 404
    assert page.get(f"/loops/{loop['loop']}").status == 200


def test_every_example_of_the_docs_works_as_it_is_written(runner: Autorunner, page: Page) -> None:
    """A-061, A-062, A-063, A-064."""
    given = examples("codex-autorunner.md", THE_API)
    assert sorted(given) == sorted(
        [
            *("GET /api/docs", "PUT /api/docs/todo", "GET /api/state"),
            *("POST /api/run/start", "POST /api/run/stop", "POST /api/run/kill", "POST /api/run/resume"),
            *("GET /api/logs", "GET /api/logs/stream", "POST /api/chat"),
        ]
    )
    assert curl(given["GET /api/docs"], page)["todo"] == (runner.repo / "TODO.md").read_text()
    assert curl(given["PUT /api/docs/todo"], page)["kind"] == "todo"
    runner.items(2)
    assert curl(given["POST /api/run/start"], page)["outstanding_count"] in (1, 2)
    idle(page)
    assert curl(given["GET /api/state"], page)["last_run_id"] == 1
    assert "=== run 1 start ===" in curl(given["GET /api/logs"], page)["log"]
    assert curl(given["POST /api/run/stop"], page)["running"] is False
    assert curl(given["POST /api/run/kill"], page)["running"] is False
    curl(given["POST /api/run/resume"], page)
    idle(page)
    runner.plays({"reply": "Nothing is."})
    command = given["POST /api/chat"].replace("http://127.0.0.1:4173", page.url).replace("$TOKEN", TOKEN)
    told = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert events(told.stdout)[-1]["answer"] == "Nothing is."
    command = given["GET /api/logs/stream"].replace("http://127.0.0.1:4173", page.url).replace("$TOKEN", TOKEN)
    head = runner.home.root / "head"
    with subprocess.Popen(["bash", "-c", f"exec {command} --silent --max-time 60 --dump-header {head}"]) as stream:
        wait_for(lambda: head.exists() and "content-type: text/event-stream" in head.read_text().lower())
        stream.terminate()  # it does not end by itself


# -- rloop -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def rloop(home: Home) -> Rloop:
    rloop = Rloop(home)
    rloop.plays(TASK)
    return rloop


def server(rloop: Rloop, *words: str, **options: Any) -> Page:
    return Page(rloop.start("server", "--port", "0", *words, **options), SECRET)


def listens_on(page: Page) -> set[str]:
    """The addresses on which a port is open, as the kernel has them."""
    found = set()
    for name in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):
            for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
                address, port = line.split()[1].split(":")
                if int(port, 16) == page.port and line.split()[3] == "0A":
                    found.add(address)
    return found


def test_the_document_s_commands_work_as_they_are_written(rloop: Rloop) -> None:
    """R-053, X-25: with a token other machines may ask, and nothing is told without it."""
    rloop.runs(rloop.project("app1"))
    page = server(rloop, "--token", SECRET)
    assert page.name == "rloop"
    assert listens_on(page) == {"00000000"}
    given = examples("rloop.md", "The server")
    assert sorted(given) == ["GET /", "GET /status", "GET /status/app1", "POST /stop/app1"]
    [session] = curl(given["GET /status"], page)["sessions"]
    assert (session["name"], session["status"]) == ("app1", "complete")
    assert curl(given["GET /status/app1"], page) == session
    assert curl(given["GET /"], page)["endpoints"] == ["GET /status", "GET /status/:name", "POST /stop/:name"]
    assert curl(given["POST /stop/app1"], page)["error"] == "app1 is not running"
    verbatim = 'curl -H "Authorization: Bearer SECRET" http://vps:8080/status'
    assert curl(verbatim, page) == {"sessions": [session]}
    for path in ("/", "/status", "/status/app1", "/api/loops"):
        assert page.get(path, authorization="").status == 401
        wrong = page.get(path, authorization="Bearer WRONG")
        assert (wrong.status, "SECRET" in wrong.text) == (401, False)
    said = page.end()
    assert SECRET not in page.first + said.out + said.err


@pytest.mark.installed
@pytest.mark.parametrize(
    "words", [("-t", SECRET), (f"-t{SECRET}",), (f"--token={SECRET}",)], ids=["-t", "-tX", "--token"]
)
def test_a_token_that_was_typed_is_not_in_the_list_of_processes(rloop: Rloop, words: tuple[str, ...]) -> None:
    """T4, T11."""
    page = server(rloop, *words)
    assert page.get("/status").status == 200
    assert not any(SECRET.encode() in word for line in rloop.home.command_lines() for word in line)
    page.end()


def test_no_other_loops_are_started_there(rloop: Rloop) -> None:
    """They would run, and not be shown."""
    page = server(rloop, "--token", SECRET)
    refused = page.post("/api/loops", {"demo": True})
    assert (refused.status, "with `rloop` in a terminal" in refused.json["error"]) == (404, True)
    assert page.get("/start").status == 404
    assert "/start" not in page.get("/", accept="text/html").text
    assert not [*rloop.home.states.glob("loops/*/*")]
    page.end()


def test_its_state_is_that_of_status(rloop: Rloop) -> None:
    """R-053."""
    rloop.plays(app1=[TASK], app2=[{"exit": 1}])
    rloop.runs(rloop.project("app1"))
    rloop.project("app2")
    page = server(rloop, "--token", SECRET)
    told = page.get("/status").json["sessions"]
    printed = json.loads(rloop("status", "--json").out)["sessions"]
    assert told == printed
    missing = page.get("/status/nope")
    assert (missing.status, missing.json["error"]) == (404, "there is no session 'nope'")
    assert "app1" in missing.json["cause"]
    page.end()


def test_it_answers_programs_in_json_whatever_they_ask(rloop: Rloop) -> None:
    """R-053: an unknown address, another method, a preflight and a missing token; a browser still gets its page."""
    page = server(rloop, "--token", SECRET)
    first = page.get("/").json
    assert (first["name"], first["service"], first["status"]) == ("rloop", "rloop status server", "ok")
    asked = [
        (404, page.get("/nope")),
        (404, page.get("/nope", authorization="")),
        (405, page.ask("DELETE", "/status", {})),
        (405, page.ask("OPTIONS", "/status", authorization="")),
        (404, page.ask("OPTIONS", "/nope", authorization="")),
        (401, page.get("/", authorization="")),
        (404, page.get("/loops/nope")),
    ]
    for status, answer in asked:
        media = answer.headers["content-type"].partition(";")[0]
        assert (answer.status, media, bool(answer.json["error"])) == (status, "application/json", True), answer
    assert "<!doctype html>" in page.get("/nope", accept="text/html").text.lower()
    assert "`rloop server --link`" in page.get("/status", authorization="").json["hint"]
    page.end()


def test_it_says_whether_a_token_is_set_and_how_to_get_links(rloop: Rloop) -> None:
    refused = rloop("server", "--port", "0", "--token", "")
    assert (refused.code, is_error(refused.err), "the token is empty" in refused.err) == (2, True, True), refused
    none = rloop("server", "--link")
    assert (none.code, "`rloop server` starts it" in none.err) == (2, True), none
    page = server(rloop, "--token", SECRET)
    assert page.first == f"  rloop is at {page.url}  Token: set  Links: rloop server --link\n"
    shown = rloop("server", "--link").out
    assert LINKS.search(shown) and "More links: rloop server --link" in shown and "bydawn" not in shown
    page.end()
    page = server(rloop)
    assert "  Token: none, so only links open it  " in page.first
    page.end()


def test_a_running_session_is_stopped(rloop: Rloop) -> None:
    """R-053: POST, never GET; and nothing of it is alive then."""
    gate = rloop.gate()
    rloop.plays({"reply": SAYS, "wait_for": str(gate)})
    assert rloop("start", str(rloop.project("app1"))).code == 0
    rloop.await_turn(1)
    page = server(rloop, "--token", SECRET)
    [running] = page.get("/status").json["sessions"]
    assert (running["status"], running["is_alive"]) == ("running", True)
    assert page.get("/stop/app1").status == 405
    assert page.post("/stop/app1", authorization="Bearer WRONG").status == 401
    assert page.get("/status/app1").json["is_alive"] is True
    stopped = page.ask("POST", "/stop/app1", content_type="")  # as `curl -X POST` sends it
    assert (stopped.status, stopped.json["status"], stopped.json["is_alive"]) == (200, "stopped", False)
    assert rloop.session("app1")["status"] == "stopped"
    again = page.post("/stop/app1")
    assert (again.status, again.json["cause"]) == (409, "it is stopped")
    assert page.post("/stop/nope").status == 404
    page.end()
    wait_for(rloop.nothing_is_alive)


def test_without_a_token_only_this_machine_can_ask_and_only_with_a_link(rloop: Rloop) -> None:
    """R-053, X-25."""
    rloop.runs(rloop.project("app1"))
    page = server(rloop)
    assert listens_on(page) == {"0100007F"}
    assert page.host == "127.0.0.1"
    for authorization in ("", "Bearer ", "Bearer null", "Bearer SECRET"):
        assert page.get("/status", authorization=authorization).status == 401
    [(name, _, steer, _)] = LINKS.findall(rloop.home.bydawn("serve", "--link").out)
    assert (name, len(steer)) == ("rloop", 12)
    page.end()


def test_no_page_of_others_may_ask_unless_it_was_named(rloop: Rloop) -> None:
    """R-053, X-25: CORS is an empty list; a page that was named still needs the token."""
    asks = {"access_control_request_method": "GET", "access_control_request_headers": "authorization"}
    ours, theirs = "https://status.example.org", "https://evil.example"
    plain, page = server(rloop, "--token", SECRET), server(rloop, "--token", SECRET, "--cors", ours)
    for origin in (ours, theirs):
        refused = plain.ask("OPTIONS", "/status", authorization="", origin=origin, **asks)
        assert not any(name.startswith("access-control") for name in refused.headers)
    allowed = page.ask("OPTIONS", "/status", authorization="", origin=ours, **asks)
    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (204, ours)
    assert "authorization" in allowed.headers["access-control-allow-headers"]
    assert not any(name.startswith("access-control") for name in page.get("/status", origin=theirs).headers)
    told = page.get("/status", origin=ours)
    assert (told.status, told.headers["access-control-allow-origin"], told.headers["vary"]) == (200, ours, "origin")
    assert page.get("/status", origin=ours, authorization="").status == 403
    assert "access-control-allow-credentials" not in told.headers
    for each in (plain, page):
        each.end()


def test_its_page_shows_its_sessions_and_no_other_loops(rloop: Rloop) -> None:
    """R-053."""
    rloop.runs(rloop.project("app1"))
    rloop.home.run(rloop.home.rounds([OK]), "--once", "--name", "mine")
    page = server(rloop, "--token", SECRET)
    shown = page.get("/", accept="text/html,application/xhtml+xml")
    assert (shown.status, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "app1" in shown.text and "mine" not in re.sub(r"<[^>]+>", " ", shown.text).split()
    assert page.get("/", accept="application/json").json["name"] == "rloop"
    assert [row["loop"] for row in page.get("/api/loops").json["loops"]] == ["app1"]
    assert page.get("/loops/mine").status == 404
    assert [row["name"] for row in page.get("/status").json["sessions"]] == ["app1"]
    page.end()
