"""What a loop has changed, said at its end and by `show`, with a command that shows it when pasted."""

import json
import subprocess
from typing import Any

import pytest

from driving import DONE, OK, Home, Said, Step

NEW: Step = {"write": {"path": "src/new.py", "text": "a\nb\n"}}
LONGER: Step = {"append": {"path": "README.md", "text": "more\n"}}


def changed(home: Home) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads(home.bydawn("show", "--json").out)["changed"]
    return found


def pasted(home: Home, ended: Said) -> str:
    """What the command below "Changed …" prints."""
    lines = ended.out.splitlines()
    [at] = [number for number, line in enumerate(lines) if line.startswith("    Changed ")]
    assert f"  {lines[at + 1].strip()}" in home.bydawn("show").out, "`show` offers the same command"
    done = subprocess.run(lines[at + 1], shell=True, cwd=home.repo, check=True, capture_output=True, text=True)  # noqa: S602
    return done.stdout


@pytest.mark.parametrize("steps", [[NEW, LONGER], [LONGER]], ids=["new", "known"])
def test_the_end_says_what_changed_and_that_it_is_not_committed(home: Home, steps: list[Step]) -> None:
    ended = home.run(home.rounds([LONGER, OK], [*steps, DONE]))
    many = "2 files, +4 -0" if NEW in steps else "1 file, +2 -0"
    assert f"    Changed {many} lines, not committed:" in ended.out.splitlines()
    assert f"  Files   changed: {many} lines, not committed" in home.bydawn("show").out.splitlines()
    shown = pasted(home, ended)
    assert "README.md | 2 ++" in shown
    assert ("?? src/" in shown) is (NEW in steps)


def test_a_round_says_how_many_lines_it_added_and_removed(home: Home) -> None:
    home.run(home.rounds([NEW, LONGER, OK], [{"write": {"path": "src/new.py", "text": "a\n"}}, OK], [DONE]))
    rounds = json.loads(home.bydawn("show", "--json").out)["rounds"]
    lines = [{"added": 3, "removed": 0}, {"added": 0, "removed": 1}, {"added": 0, "removed": 0}]
    assert [each["lines"] for each in rounds] == lines
    assert [fact["data"]["found"]["changes"]["lines"] for fact in home.facts("round.ended")] == lines
    assert "  Files   +1 ~1 -0, +3 -0 lines" in home.bydawn("show", "--round", "1").out.splitlines()


def test_what_the_agent_has_committed_is_shown_all_the_same(home: Home) -> None:
    ended = home.run(home.rounds([NEW, {"commit": "mine"}, LONGER, DONE]))
    found = changed(home)
    assert found and (found["files"], found["uncommitted"], found["untracked"]) == (2, 1, 0)
    assert "    Changed 2 files, +3 -0 lines, 1 of them not committed:" in ended.out.splitlines()
    assert all(f"{name} | " in pasted(home, ended) for name in ("README.md ", "src/new.py"))


def test_without_a_repository_there_is_nothing_to_commit(home: Home) -> None:
    (home.repo / ".git").rename(home.root / "elsewhere")
    ended = home.run(home.rounds([NEW, DONE]))
    assert "    Changed 1 file, +2 -0 lines:" in ended.out.splitlines()
    assert "src/new.py | 2 ++" in pasted(home, ended)


def test_a_loop_that_changed_nothing_says_nothing(home: Home) -> None:
    ended = home.run(home.rounds([DONE]))
    assert "Changed" not in ended.out
    assert changed(home) is None


def test_whoever_stands_elsewhere_gets_a_command_that_works_there(home: Home) -> None:
    home.run(home.rounds([LONGER, DONE]))
    shown = home.bydawn("show", "-C", str(home.repo), cwd=home.root).out
    assert f"git -C {home.repo} diff --stat" in shown


def test_show_of_a_blocked_loop_begins_with_what_a_person_needs_to_decide(home: Home) -> None:
    (home.repo / "TODO.md").write_text("# To do\n\n- [x] first\n- [ ] prorate refunds\n")
    stuck: Step = {"result": {"text": "I cannot tell which is right.", "usage": {"tokens_in": 500, "cost_usd": 0.25}}}
    agent = home.rounds([LONGER, stuck])
    ended = home.run(
        agent,
        "-t",
        "TODO.md",
        "-k",
        "echo E 9.99; exit 1",
        "--max-no-change",
        "0",
        "--max-same-failure",
        "2",
        "--max-check-failures",
        "2",
    )
    assert ended.code == 3
    lines = home.bydawn("show").out.splitlines()
    assert " since " in lines[0] and "(round 2): " in lines[0]
    labels = [line[2:10].strip() for line in lines[2:]]
    assert labels[:6] == ["Task", "Check", "Tried", "Said", "Safe", "Goal"]
    assert lines[2] == "  Task    prorate refunds   TODO.md:4"
    assert lines[3] == "  Check   echo E 9.99; exit 1 → exit 1: E 9.99; it already failed before the first round"
    assert lines[4].startswith("  Tried   2 rounds, ") and lines[4].endswith("1,000 in · $0.50")
    assert lines[5] == "  Said    “I cannot tell which is right.”"
    steps = lines[lines.index("  Next") + 1 :]
    assert [step[:7] for step in steps] == [f"    {number}  " for number in range(1, len(steps) + 1)]
    assert steps[0].startswith('    1  bydawn tell repo "…"')
