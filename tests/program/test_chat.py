"""Questions about the repository of a loop: an agent of its own answers, and changes nothing."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from driving import HANG, MISBEHAVING, OK, Home, Said, Step, is_alive, kill_both, said, tree_of, wait_for
from program.strict_codex import calls, install

TOKEN = "canary9f8e7d6c5b4a3928"  # noqa: S105 - planted
QUESTION = "why does round 3 fail?"
ESCAPES: Step = {"double_fork": {"seconds": 3600.5, "setsid": True, "wipe_env": True, "hold_stdout": True}}


def lines(told: Said) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in told.out.splitlines()]
    assert {row["schema"] for row in rows} == {1}
    return rows


def history(home: Home, name: str = "repo") -> list[dict[str, Any]]:
    found = json.loads(home.bydawn("chat", name, "--history", "--json").out)
    assert found["loop"] == name
    return list(found["turns"])


def chatty(home: Home, *steps: Step, name: str = "repo") -> None:
    """A loop that has paused, whose agent plays these steps when it is asked something."""
    script = home.root / f"chat-{name}.json"
    script.write_text(json.dumps({"rounds": [[OK]], "chat": steps, "steps": MISBEHAVING}))
    assert home.run(f"demo:{script}", "--once", "--new", "--name", name).code == 4


def codex(home: Home, *turns: dict[str, Any], run: tuple[str, ...] = ("--once",)) -> Path:
    """A loop of Codex that has paused; the folder of its program. The turns come after the one of its round."""
    folder = install(home.root / "codex", [{"reply": "half done"}, *turns]).parent
    home.env |= {"PATH": f"{folder}:{home.env['PATH']}", "CODEX_HOME": str(home.root / "home/.codex")}
    assert home.run("codex", *run).code == 4
    return folder


def start_chat(home: Home, *words: str, **options: Any) -> "subprocess.Popen[str]":
    """A question that hangs, once its agent is at work."""
    process = home.start("chat", "repo", QUESTION, *words, **options)
    wait_for(lambda: [*home.states.glob("asked/*/rounds/0001/stdout")] and "session" in signature(home))
    return process


def signature(home: Home) -> dict[str, str]:
    words = (home.folder() / "chat.lock").read_text().split()
    return dict(zip(words[::2], words[1::2], strict=False))


# -- reading only ------------------------------------------------------------------------------------------------------


def test_a_question_is_answered_while_the_loop_runs_and_the_conversation_goes_on(home: Home) -> None:
    """The built-in agent answers, and nothing but the chat is written."""
    home.tasks(2)
    gate, opened = home.gate()
    running = home.start_run(home.each_task(gate, {"write": {"path": "{n}.txt", "text": "{task}"}}), "-t", "TODO.md")
    home.await_round(1)
    before, facts = tree_of(home.repo), home.facts()
    told = home.bydawn("chat", "what is left?")
    assert told.code == 0
    assert told.out == "You asked: what is left?\n\nI am the demo agent and only count: " + (
        "0 of 2 tasks in TODO.md are done. Next: task 1.\n"
    )
    assert "  · reading TODO.md\n" in told.err
    assert "whether it changed files is not known: rounds change them too" in told.err
    assert home.bydawn("chat", "repo", "-", stdin=subprocess.DEVNULL).code == 2
    assert (tree_of(home.repo), home.facts()) == (before, facts)
    [turn] = history(home)
    assert (turn["state"], turn["outcome"], turn["steps"], turn["snapshots"]) == ("answered", "ok", 1, None)
    assert "── demo" in home.bydawn("chat", "--history").out
    opened.touch()
    assert said(running).code == 0


def test_codex_is_asked_read_only_in_a_process_of_its_own_and_told_what_was_said_before(home: Home) -> None:
    """A-064: advisory, the documents that a person chooses, and what it does line by line."""
    (home.repo / "PROGRESS.md").write_text("rounding is half done\n")
    run = ("--once", "--progress", "PROGRESS.md", "-k", "echo boom; false", "-m", "a-model", "--agent-env", "TOOL=x")
    folder = codex(home, {"sh": "ls", "reply": "the tax table is missing"}, {"reply": "in tax.py"}, run=run)
    process = home.start("chat", "repo", "-", "--json", stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.write(f"{QUESTION}\n")
    told = said(process)
    asked, *events, last = lines(told)
    assert (told.code, asked["event"], asked["agent"], last["event"]) == (0, "asked", "codex", "answered")
    assert (last["id"], last["question"], last["answer"]) == (asked["id"], QUESTION, "the tax table is missing")
    assert {"event": "message", "text": "the tax table is missing", "schema": 1} in events
    assert last["usage"]["tokens_out"] == 50
    *_, call = calls(folder)
    assert "-s read-only" in " ".join(call["argv"]) and "a-model" in call["argv"] and QUESTION not in call["argv"]
    assert call["session"] != calls(folder)[0]["session"]
    assert "rounding is half done" in call["prompt"] and "\nboom\n" in call["prompt"]
    assert call["prompt"].endswith(f"## Question\n\n{QUESTION}\n")
    assert home.bydawn("chat", "repo", "and where is it?", "--include", "none").out == "in tax.py\n"
    *_, call = calls(folder)
    assert f"Question: {QUESTION}\nAnswer: the tax table is missing" in call["prompt"]
    assert "rounding is half done" not in call["prompt"]
    used = "2,000 in, 400 of them cached, 100 out · cost —, which does not count toward the limits of the loop"
    assert home.bydawn("chat", "--history").out.endswith(f"  2 questions · {used}\n")
    assert (len(home.facts("round.started")), len(history(home))) == (1, 2)


def test_an_agent_that_cannot_answer_says_why_and_the_question_is_kept(home: Home) -> None:
    at = "try again at Nov 30th, 2099 7:30 PM."
    limit = {"error": f"You've hit your usage limit. Upgrade to Pro, or {at}"}
    folder = codex(home, {"error": "unexpected status 401 Unauthorized"}, limit)
    refused = home.bydawn("chat", "repo", QUESTION)
    assert refused.code == 7
    assert "error: codex did not answer\ncause: codex is not logged in; run `codex login`" in refused.err
    assert "your question is kept: `bydawn chat repo --history`" in refused.err
    for count in (3, 3):  # once it is known, no agent is started for it
        told = home.bydawn("chat", "repo", QUESTION, "--json")
        *_, last = lines(told)
        assert (told.code, last["event"], last["outcome"]) == (7, "failed", "limited")
        assert last["detail"].startswith("codex is limited until 2")
        assert len(calls(folder)) == count
    (folder / "codex").unlink()
    for path in home.states.glob("cool-downs/*"):
        path.unlink()
    told = home.bydawn("chat", "repo", QUESTION, "--json")
    assert (told.code, lines(told)[-1]["detail"][:40]) == (7, "cannot start codex: codex is not on the ")
    assert [turn["question"] for turn in history(home)] == [QUESTION] * 4
    assert [*home.states.glob("asked/*")] == []


def test_what_an_agent_changes_although_it_may_only_read_is_noticed_and_kept(home: Home) -> None:
    chatty(home, {"write": {"path": "a.txt", "text": "a"}}, {"append": {"path": "README.md", "text": "b"}}, OK)
    told = home.bydawn("chat", "repo", QUESTION)
    words = "2 files changed while it answered, although it may only read: README.md, a.txt"
    assert (told.code, told.out) == (0, "did it\n")
    assert f"  ! {words}\n" in told.err
    [turn] = history(home)
    assert turn["detail"] == words
    git = ["git", f"--git-dir={home.folder()}/git", "diff-tree", "-r", "--name-only", *turn["snapshots"].values()]
    assert subprocess.run(git, capture_output=True, text=True, check=True).stdout.split() == ["README.md", "a.txt"]


# -- the end -----------------------------------------------------------------------------------------------------------


def test_what_was_left_running_by_two_kills_is_ended_by_the_next_command(home: Home) -> None:
    chatty(home, {"say": "hi"}, ESCAPES, HANG)
    process = start_chat(home, "--json")
    assert [json.loads(process.stdout.readline())["event"] for _ in (1, 2)] == ["asked", "message"]  # type: ignore[union-attr]
    agent = int(signature(home)["session"])
    kill_both(process.pid)
    [turn] = history(home)
    assert (turn["state"], turn["question"]) == ("interrupted", QUESTION)
    assert is_alive(agent)
    assert home.bydawn("resume", "--once", "--plain").code == 4
    assert not is_alive(agent)
    assert [pid for pid in home.alive() if pid != process.pid] == []
    assert [*home.states.glob("asked/*")] == []
    terminated = start_chat(home, "--json")
    assert [*home.states.glob(f"asked/{turn['id']}")] == []
    terminated.send_signal(signal.SIGTERM)
    told = said(terminated)
    assert (told.code, lines(told)[-1]["event"]) == (130, "interrupted")
    assert [turn["state"] for turn in history(home)] == ["interrupted", "interrupted"]


def test_an_answer_that_no_one_waits_for_any_more_is_kept_without_secrets(home: Home) -> None:
    gate, opened = home.gate()
    many: list[Step] = [{"activity": f"reading {number}"} for number in range(200)]
    chatty(home, {"say": f"it is {TOKEN}"}, gate, *many, {"result": {"text": f"yes, {TOKEN}"}})
    process = home.start("chat", "repo", f"is {TOKEN} right?", "--json", MY_TOKEN=TOKEN)
    assert process.stdout
    said_so_far = process.stdout.readline() + process.stdout.readline()
    process.stdout.close()
    opened.touch()
    assert process.wait(20) == 0
    [turn] = history(home)
    assert (turn["question"], turn["answer"], turn["steps"]) == ("is [secret] right?", "yes, [secret]", 201)
    assert TOKEN not in said_so_far
    assert [path for path in home.states.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()] == []


def test_an_agent_may_not_ask_and_wrong_words_are_explained(home: Home) -> None:
    inside = {"run": ["sh", "-c", f"bydawn chat repo '{QUESTION}' 2> {home.root}/refused"]}
    home.run(home.rounds([inside, OK]), "--once")
    assert "agents may not do this" in (home.root / "refused").read_text()
    for words, cause in (
        ((), "no question was given"),
        (("repo",), "'repo' is the name of a loop, and no question follows"),
        (("repo@repo",), "'repo@repo' is the name of a loop, and no question follows"),
        (("repo", "  "), "the question is empty"),
        (("repo", "x" * 50_001), "the limit is 50,000"),
        (("repo", QUESTION, "--include", "plan"), "plan does not exist"),
        (("repo", QUESTION, "--history"), "it shows what was said, and asks nothing"),
    ):
        refused = home.bydawn("chat", *words)
        assert (refused.code, cause in refused.err) == (2, True), refused
    assert home.bydawn("chat", "--history").out == "  Nothing was asked yet.\n"
    assert not (home.folder() / "chat.jsonl").exists()
