"""Questions to the real agents about the repository of a loop, with a scripted model behind them."""

import json

import pytest

from driving import Home, tree_of
from real.model_server import Answer, ModelServer

QUESTION = "which rate is meant?"
READ_ONLY = {"codex": ("read-only",), "claude": ("--disallowedTools", "Edit,Write,NotebookEdit")}


@pytest.mark.parametrize("agent", ["codex", "claude"])
def test_a_question_is_asked_read_only_and_answered_line_by_line(
    request: pytest.FixtureRequest, home: Home, model: ModelServer, agent: str
) -> None:
    """A-064: of a loop that may write, even if the model tries to."""
    home.env = request.getfixturevalue(f"{agent}_env")
    flags = home.root / "flags"
    shim = home.root / "bin" / agent
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nPATH="${{PATH#*:}}"\necho "$@" >> {flags}\nexec {agent} "$@"\n')
    shim.chmod(0o755)
    home.env["PATH"] = f"{shim.parent}:{home.env['PATH']}"
    model.play([Answer(text="half done")])
    assert home.run(agent, "--once").code == 4
    before = tree_of(home.repo)
    model.play([Answer(sh="echo mine > new.txt"), Answer(text="The rate in `tax.py`.")])
    told = home.bydawn("chat", "repo", QUESTION, "--json", seconds=90)
    asked, *events, last = [json.loads(line) for line in told.out.splitlines()]
    assert (told.code, asked["event"], last["event"]) == (0, "asked", "answered"), told
    assert (last["answer"], last["agent"], last["snapshots"]) == ("The rate in `tax.py`.", agent, None)
    assert "The rate in `tax.py`." in [row["text"] for row in events if row["event"] == "message"]
    assert last["usage"]["tokens_out"] == 100
    assert tree_of(home.repo) == before
    *_, used = flags.read_text().splitlines()
    assert [word for word in READ_ONLY[agent] if word not in used.split()] == []
    assert QUESTION in json.dumps(model.asked[-1].body)
    again = home.bydawn("chat", "--history").out
    assert f"{QUESTION}\n\n── {agent} · " in again and "The rate in `tax.py`.\n" in again
