"""rloop with the real Claude Code and a scripted model."""

import json
import subprocess
from pathlib import Path

import pytest

from driving import Home
from program.rloop import PRD, TAG, Rloop
from real.model_server import Answer, ModelServer

GIT = "git -c user.name=C -c user.email=c@example.org"
TICKS = Answer(sh=rf"sed -i '0,/\[ \]/s//[x]/' {PRD}; date +%N >> work.txt; {GIT} add -A && {GIT} commit -qm task")
AS = {"root": ["--map-root-user"], "a user": ["--map-user=1000", "--map-group=1000"]}


@pytest.mark.parametrize("who", AS)
def test_three_tasks_are_three_sessions_and_two_mentions_end_nothing(
    home: Home, claude_env: dict[str, str], agents_bin: Path, model: ModelServer, who: str
) -> None:
    """R-001, R-011, R-013, R-014, R-018, R-060: as root the real one wants IS_SANDBOX, which rloop gives it."""
    rloop = Rloop(home)
    home.env = claude_env | {"PATH": f"{agents_bin}:{home.env['PATH']}"}
    folder = rloop.project("app1", 3)
    mentions = [f"I cannot output {TAG} because tasks remain", f"One is left.\n\n```\n{TAG}\n```"]
    said = [Answer(text=text) for text in (*mentions, "The last one is done.")]
    model.play([answer for text in said for answer in (TICKS, text)])
    ended = rloop.runs(folder, before=["unshare", "--user", *AS[who]])
    assert (ended.code, model.left) == (0, []), ended
    session = rloop.session()
    assert (session["status"], session["iteration"], session["last_task_count"]) == ("complete", 3, 0)
    assert [fact["promise"] for fact in rloop.facts("round.ended")] == ["mentioned", "mentioned", "absent"]
    assert len({fact["session"] for fact in rloop.facts("round.ended")}) == 3
    commits = subprocess.run(["git", "log", "--format=%s"], cwd=folder, capture_output=True, text=True, check=True)
    assert commits.stdout.split() == ["task", "task", "task", "first"]
    assert mentions[0] in rloop.log()
    assert rloop.log().splitlines()[-2] == "✅ Ralph complete after 3 iterations."
    assert json.loads(home.bydawn("status", "app1", "--json", cwd=folder).out)["loops"][0]["state"] == "unverified"
