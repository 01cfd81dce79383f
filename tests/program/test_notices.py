"""Notices through the real program, to receivers on this machine (FAULTS 105, 106)."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bydawn.core.notices import Notice, Order, Sent
from bydawn.core.state import LoopState
from bydawn.dialects.rloop.webhooks import messages
from bydawn.process.notices import send
from core.facts_made import NOON
from dialects.test_rloop_webhooks import CAP, a_session
from driving import OK, Home, Said, is_alive, said, wait_for, worker_of
from program import strict_claude
from program.autorunner import ITEM, Autorunner, blocks
from program.terminal_driver import Terminal

TOKEN = "canary9f8e7d6c5b4a3928"  # noqa: S105 - planted
NOTICE = Notice(event="limit", loop="night", workspace="/w", status="limit", reason="30 rounds", at=NOON)


class Receiver(ThreadingHTTPServer):
    """Answers as the path of a request says, and remembers what came."""

    daemon_threads = True
    request_queue_size = 64  # they come all at once, and one that finds no room is tried again only a second later

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.got: list[tuple[str, Any]] = []
        self.over = threading.Event()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def of(self, path: str) -> list[Any]:
        return [data for got, data in self.got if got.split("?")[0] == path]


class _Answers(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.path, data))
        word, tries = self.path.split("?")[0].strip("/").split("/")[0], len(self.server.of(self.path.split("?")[0]))
        if word == "hang":
            self.server.over.wait()
            return
        if word == "reset":
            self.connection.close()
            return
        code = {"moved": 302, "refused": 404, "down": 500}
        code |= {"busy": 503 if tries < 3 else 200, "slow": 429 if tries < 2 else 200}
        self.send_response(code.get(word, 200))
        self.send_header("Location", f"http://{self.server.place}/inward")
        self.end_headers()
        while word == "endless" and not self.server.over.is_set():
            try:
                self.wfile.write(b"x" * 65536)
            except OSError:
                return

    def do_GET(self) -> None:
        """A redirect is followed like this."""
        self.server.got.append((self.path, None))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def sent(*addresses: str, **more: Any) -> list[Sent]:
    limit = more.pop("limit", 40)
    quick = {"pause": 0.01, "connect": 20, "answer": 20} | more  # for whoever answers at all: we may be slow to do so
    return send(Order(notice=NOTICE, addresses=addresses, **quick), dict(os.environ), limit=limit)


def test_a_receiver_that_is_slow_broken_or_elsewhere_is_tried_again_where_that_may_help(receiver: Receiver) -> None:
    """FAULTS 105: 500, 429, resets, silence, an endless answer. FAULTS 106: redirects are never followed."""
    paths = ["fine", "busy", "slow", "refused", "down", "moved", "reset", "endless"]
    *ours, service, moved = sent(
        *(f"http://{receiver.place}/{path}/{TOKEN}" for path in paths),
        f"json://{receiver.place}/service",
        f"json://{receiver.place}/moved/json?redirect=yes",
    )
    assert {path: (each.sent, each.detail, each.tries) for path, each in zip(paths, ours, strict=True)} == {
        "fine": (True, "HTTP 200", 1),
        "busy": (True, "HTTP 200", 3),
        "slow": (True, "HTTP 200", 2),
        "refused": (False, "HTTP 404", 1),
        "down": (False, "HTTP 500", 3),
        "moved": (False, "HTTP 302: it redirects, and bydawn does not follow", 1),
        "reset": (False, "no connection", 3),
        "endless": (True, "HTTP 200", 1),
    }
    assert (service.sent, moved.sent, moved.tries) == (True, False, 3)
    [hang] = sent(f"http://{receiver.place}/hang/{TOKEN}", answer=0.5)
    assert (hang.sent, hang.detail, hang.tries) == (False, "no answer in time", 3)
    assert receiver.of("/inward") == []
    [told] = receiver.of(f"/fine/{TOKEN}")
    assert told == json.loads(json.dumps(told)) | {"event": "limit", "loop": "night", "reason": "30 rounds"}
    assert {*told} == {*Notice.__struct_fields__}
    [told] = receiver.of("/service")
    assert (told["title"], told["type"]) == ("night has reached a limit", "warning")
    assert told["message"].startswith("30 rounds")


def test_the_text_of_a_dialect_is_sent_as_it_is_and_never_through_a_service(receiver: Receiver) -> None:
    """R-052. `/busy` is tried again; a service that has no web address of its own gets the notice."""
    texts = messages(a_session(), LoopState(rounds=5), CAP, NOON)
    paths = ["fine/discord", "fine/slack", "busy/generic"]
    addresses = [f"http://{receiver.place}/{path}" for path in paths]
    answers = sent(*addresses, f"json://{receiver.place}/service", texts=(*texts, "{}"))
    assert [(each.sent, each.tries) for each in answers] == [(True, 1), (True, 1), (True, 3), (True, 1)]
    for path, text in zip(paths, texts, strict=True):
        assert receiver.of(f"/{path}")[-1] == json.loads(text)
    [told] = receiver.of("/service")
    assert told["title"] == "night has reached a limit"


def test_if_our_parent_is_gone_the_wait_for_a_receiver_costs_nothing(receiver: Receiver) -> None:
    """Its closed pipe is ready to be read for ever."""
    ours, theirs = os.pipe()
    os.close(theirs)
    asked: list[float] = []

    def urgent() -> bool:
        asked.append(time.monotonic())
        return False

    order = Order(notice=NOTICE, addresses=(f"http://{receiver.place}/hang",), tries=1, answer=0.5)
    [answer] = send(order, dict(os.environ), wakes=(ours,), urgent=urgent)
    os.close(ours)
    assert answer.detail == "no answer in time"
    assert len(asked) < 20


def test_a_service_that_never_ends_its_answer_is_given_up(receiver: Receiver) -> None:
    began = time.monotonic()
    [endless] = sent(f"json://{receiver.place}/endless", limit=2.5)
    assert not endless.sent
    assert time.monotonic() - began < 30  # and not for ever


def test_a_notice_is_no_longer_waited_for_once_somebody_is_in_a_hurry(receiver: Receiver) -> None:
    order = Order(notice=NOTICE, addresses=(f"http://{receiver.place}/hang",), answer=60)
    [answer] = send(order, dict(os.environ), urgent=lambda: bool(receiver.got))
    assert (answer.sent, answer.detail) == (False, "stopped on request")
    assert len(receiver.got) == 1


# -- a loop ------------------------------------------------------------------------------------------------------------


def test_a_loop_tells_how_it_ended_and_nobody_else_gets_to_know_the_address(home: Home, receiver: Receiver) -> None:
    """The agent writes modules that the sender must not load."""
    for name in ("requests", "apprise", "msgspec", "bydawn"):
        (home.repo / f"{name}.py").write_text("raise SystemExit('loaded')\n")
    spy = [{"run": ["sh", "-c", "env > agent.txt"]}, OK]
    address = f"http://{receiver.place}/fine/{TOKEN}"
    check = ("-k", "env > check.txt; false", "--on-blocked", "env > hook.txt")
    ended = home.run(home.rounds(spy), "-n", "1", *check, BYDAWN_NOTIFY=address)
    again = home.bydawn("resume", "--rounds", "2")
    assert (ended.code, again.code) == (4, 4), (ended, again)
    first, second = receiver.of(f"/fine/{TOKEN}")
    assert (first["status"], first["rounds"], first["workspace"]) == ("limit", 1, str(home.repo))
    assert second["rounds"] == 2
    told = home.facts("notice.ended")
    assert [(fact["data"]["to"], fact["data"]["sent"]) for fact in told] == [(f"http://{receiver.place}", True)] * 2
    paths = [path for path in home.folder().rglob("*") if path.is_file() and "git" not in path.parts]
    assert [path.name for path in paths if TOKEN.encode() in path.read_bytes()] == ["secrets.json"]
    seen = {name: (home.repo / f"{name}.txt").read_text() for name in ("agent", "check", "hook")}
    assert [name for name, env in seen.items() if TOKEN in env or "BYDAWN_COOKIE" not in env] == []
    assert TOKEN not in ended.out + ended.err + again.out + home.bydawn("show", "--json").out
    assert home.status()["state"] == "limit"


def test_a_notice_that_could_not_be_sent_is_said_and_changes_nothing(home: Home, receiver: Receiver) -> None:
    ended = home.run(home.rounds([OK]), "-n", "1", "--notify", f"http://{receiver.place}/refused/{TOKEN}")
    assert ended.code == 4
    assert f"notice to http://{receiver.place} not sent: HTTP 404" in ended.out


def test_if_the_loop_is_killed_while_it_sends_a_notice_nothing_stays_alive(home: Home, receiver: Receiver) -> None:
    """The end is on disk before that; the home looks for what is left alive."""
    night = home.start_run(home.rounds([OK]), "-n", "1", "--notify", f"http://{receiver.place}/hang")
    wait_for(lambda: receiver.got)
    worker = worker_of(night)
    assert home.status()["state"] == "limit"
    os.kill(worker, signal.SIGKILL)
    said(night)
    wait_for(lambda: not is_alive(worker))
    assert home.status()["state"] == "limit"


def test_ctrl_c_after_the_end_does_not_wait_for_a_receiver(home: Home, receiver: Receiver) -> None:
    """A person sees what the command does and, after two seconds, what it waits for."""
    away = f"http://{receiver.place}/hang/{TOKEN}"
    words = ("run", "do it", "-a", home.rounds([OK]), "-n", "1", "--notify", away)
    screen = Terminal(home, *words, TERM="xterm")
    screen.see("sending notices")
    screen.see(f"! telling http://{receiver.place} …")
    wait_for(lambda: receiver.got)  # the program that sends it may need longer than that to start
    screen.type("\x03")
    shown = screen.end()
    assert (shown.code, TOKEN in shown.text) == (4, False)
    assert [fact["data"]["detail"] for fact in home.facts("notice.ended")] == ["stopped on request"]


def test_the_loops_of_another_tool_send_notices_too_and_their_files_stay_right(home: Home, receiver: Receiver) -> None:
    runner = Autorunner(home)
    runner.plays(ITEM)
    home.env["BYDAWN_NOTIFY"] = f"http://{receiver.place}/fine"
    assert runner.ready(items=1)("run").code == 0
    assert [told["status"] for told in receiver.of("/fine")] == ["unverified"]
    assert [(block.number, block.code) for block in blocks(runner.log)] == [(1, "0")]
    assert (runner.summary, runner.lock.exists()) == ((1, 0, "idle"), False)


def test_a_webhook_of_rloop_gets_one_failed_and_one_complete_message_and_no_one_else_its_address(
    home: Home, receiver: Receiver
) -> None:
    """R-052; one address is typed, the other is in a variable."""
    strict_claude.install(home.root / "bin", [{"tick": "PRD.md", "write": {"done.txt": "{turn}"}, "reply": "Done."}])
    strict_claude.log_in(home.root / "home")
    home.env |= {"PATH": f"{home.root / 'bin'}:{home.env['PATH']}"}
    typed, known = (f"http://{receiver.place}/fine/{word}/{TOKEN}" for word in ("typed", "known"))

    def start(name: str, *words: str, **env: str) -> Said:
        project = home.root / name
        project.mkdir()
        (project / "PRD.md").write_text("- [ ] one\n- [ ] two\n" if name == "app_1" else "- [ ] one\n")
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        return said(home.start("start", str(project), "--no-tmux", *words, command="rloop", **env))

    failed = start("app_1", "--webhook", typed, "--max-iterations", "1")
    complete = start("app_2", RLOOP_WEBHOOK=known)
    assert (failed.code, complete.code) == (1, 0), (failed, complete)
    [told] = receiver.of(f"/fine/typed/{TOKEN}")
    assert (told["event"], told["session"], told["iterations"], told["remaining_tasks"]) == ("failed", "app_1", 1, 1)
    assert (told["project"], told["reason"]) == (str(home.root / "app_1"), "max_iterations")
    [told] = receiver.of(f"/fine/known/{TOKEN}")
    assert (told["event"], told["status"], told["reason"], told["remaining_tasks"]) == ("complete", "success", None, 0)
    seen = [call["env"] for call in strict_claude.calls(home.root / "bin")]
    assert [(env["IS_SANDBOX"], "RLOOP_WEBHOOK" in env or TOKEN in str(env)) for env in seen] == [("1", False)] * 2
    assert TOKEN not in failed.out + failed.err + complete.out + complete.err
    paths = [path for path in home.root.rglob("*") if path.is_file() and "git" not in path.parts]
    assert {path.name for path in paths if TOKEN.encode() in path.read_bytes()} == {"secrets.json"}


WRONG = [f"nosuch://{TOKEN}", "discord://x", f"http://:0/{TOKEN}", f"just {TOKEN}", "https://"]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_address_that_nothing_can_be_sent_to_is_refused_before_the_loop_begins(home: Home, wrong: str) -> None:
    refused = home.run(home.rounds([OK]), "--notify", wrong)
    assert (refused.code, TOKEN in refused.err) == (2, False), refused
    assert not home.has_loop()


# -- notify test -------------------------------------------------------------------------------------------------------


def test_addresses_can_be_tested_before_a_night_depends_on_them(home: Home, receiver: Receiver) -> None:
    fine, refused = (f"http://{receiver.place}/{path}/{TOKEN}" for path in ("fine", "refused"))
    ended = home.bydawn("notify", "test", fine, refused)
    assert (ended.code, TOKEN in ended.out + ended.err) == (1, False)
    assert ended.out.splitlines() == [
        f"  ✓ http://{receiver.place}  HTTP 200",
        f"  ✗ http://{receiver.place}  HTTP 404",
    ]
    ended = home.bydawn("notify", "test", "--json", BYDAWN_NOTIFY=fine)
    assert (ended.code, json.loads(ended.out)["notices"][0]["sent"]) == (0, True)
    assert [told["event"] for told in receiver.of(f"/fine/{TOKEN}")] == ["test", "test"]


def test_a_repository_cannot_have_anything_sent_before_it_is_trusted(home: Home, receiver: Receiver) -> None:
    """DESIGN: a repository's addresses have no effect until a person has agreed."""
    (home.repo / "bydawn.toml").write_text(f'notify = ["http://{receiver.place}/fine"]\n')
    for refused in (home.bydawn("notify", "test"), home.run(home.rounds([OK]), "-n", "1")):
        assert (refused.code, "is not trusted" in refused.err, receiver.place in refused.err) == (2, True, True)
    assert receiver.got == []
    assert home.run(home.rounds([OK]), "-n", "1", "--no-project").code == 4
    assert receiver.got == []
