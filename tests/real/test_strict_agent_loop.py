"""strict-agent-loop with the real Codex in its sandbox and a scripted model: its own shell runs the scripts."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from driving import Home, said
from program.strict import DONE, SCRIPTS, Strict
from real.model_server import Answer, Call, ModelServer
from real.turns import CODEX, take_turn

CLOSED = "sandbox_workspace_write.exclude_slash_tmp=true"


@pytest.fixture
def strict(home: Home, codex_env: dict[str, str], codex_home: Path) -> Strict:
    """Its state folder is below /tmp, where Codex may write unless it is told otherwise."""
    config = codex_home / "config.toml"
    config.write_text(f"{config.read_text()}\n[sandbox_workspace_write]\nexclude_slash_tmp = true\n")
    home.env = codex_env
    return Strict(home)


def script(scripts: Path, name: str, *words: str) -> str:
    return shlex.join([sys.executable, str(scripts / f"{name}.py"), *words])


def test_the_scripts_run_in_the_sandbox_of_a_supervised_codex_and_can_only_record(
    strict: Strict, model: ModelServer
) -> None:
    """S-002, S-035, S-040, S-046: records arrive by the drop folder; nothing can be approved, raised or completed."""
    strict.init("--require-path", "done.txt", "--max-iterations", "7")
    state = ("--state", str(strict.state_path))
    update = script(SCRIPTS, "update_state", *state, "--task", "one", *DONE, "--stop-met", "--status", "completed")
    command = str(Path(sys.executable).with_name("strict-agent-loop"))
    bydawn = str(Path(sys.executable).with_name("bydawn"))
    tries = (
        f"{bydawn} resume hail --iterations +100",
        f"{bydawn} stop hail",
        f"{bydawn} trust",
        shlex.join([command, *strict.new("--force", "--max-iterations", "900")]),
        shlex.join([command, *strict.new("--max-iterations", "900")]),
        shlex.join([command, "supervise", *state]),
        f"echo x >> {strict.home.states}/escaped",
        f'sed -i \'s/"max_iterations": 7/"max_iterations": 900/\' {strict.state_path}',
        f"for ledger in {strict.home.states}/loops/*/hail/ledger.jsonl; do echo x >> $ledger; done",
    )
    try_all = "\n".join(f"({each}) >> tried.txt 2>&1; echo $? >> codes.txt" for each in tries)
    model.play(
        [
            Answer(sh=script(SCRIPTS, "append_event", *state, "--kind", "round.started", "--message", "Iteration 1")),
            Answer(sh=update),
            Answer(text="All of it is done."),
            # They take a while on a busy machine; Codex waits for them as long as it ever does.
            Answer(calls=(Call("exec_command", {"cmd": try_all, "yield_time_ms": 30_000}),)),
            Answer(text="Tried everything."),
            Answer(sh="touch done.txt"),
            Answer(text="Now it is."),
        ]
    )
    ended = said(strict.supervise(), 90)
    assert (ended.code, strict.state["status"]) == (0, "completed"), ended
    tried = (strict.repo / "tried.txt").read_text()
    codes = (strict.repo / "codes.txt").read_text().split()
    assert len(codes) == len(tries), tried
    assert [code for code, each in zip(codes, tries, strict=True) if "sed -i" not in each and code == "0"] == [], tried
    [recorded] = strict.facts("iteration.recorded")
    assert (recorded["inside"], recorded["round"]) == (True, 1)
    assert strict.facts("event.recorded")[0]["message"] == "Iteration 1"
    assert strict.events("round.started")[1]["message"] == "Iteration 1", "behind that of the supervisor"
    assert strict.state["limits"]["max_iterations"] == 7
    assert (len(strict.entries), strict.waiting) == (3, []), "one recorded, two that are their replies"
    assert [fact for fact in strict.facts("loop.changed") if fact] == []
    assert not (strict.home.states / "escaped").exists()
    strict.has_no_gap()


def test_a_session_of_codex_finds_the_skill_and_its_files_are_current_after_every_script(
    strict: Strict, model: ModelServer
) -> None:
    """S-001, S-004, S-030: nothing outside the sandbox runs; a later command outside takes the records in, once."""
    assert strict("install-skill", "--for", "codex").code == 0
    skill = strict.repo / ".codex/skills/strict-agent-loop"
    scripts, state = skill / "scripts", ("--state", str(strict.state_path))
    keep = f"; cp {strict.state_path} seen-$(ls | grep -c seen-).json"
    model.play(
        [
            Answer(sh=script(scripts, "init_state", *strict.new(mode="interactive")[1:]) + keep),
            Answer(sh=script(scripts, "append_event", *state, "--kind", "round.started", "--message", "1") + keep),
            Answer(sh=script(scripts, "update_state", *state, "--task", "one", *DONE) + keep),
            Answer(sh=script(scripts, "check_stop", *state) + keep),
            Answer(sh=script(scripts, "report_status", *state) + keep),
            Answer(text="One iteration is recorded."),
        ]
    )
    prompt = "Use $strict-agent-loop. Write the numbers, one a round; stop when 1 is reached."
    took = take_turn(*CODEX, "-c", CLOSED, cwd=strict.repo, env=strict.home.env, prompt=prompt)
    assert took.code == 0, took
    asked = model.asked[0].text
    assert str(skill / "SKILL.md") in asked, "it was found by its name"
    commands = [item["exit_code"] for item in took.items("command_execution")]
    assert commands == [0] * 5, took.items("command_execution")
    seen = [json.loads((strict.repo / f"seen-{number}.json").read_text()) for number in range(5)]
    assert [each["counters"]["iteration"] for each in seen] == [0, 0, 1, 1, 1]
    assert [each["pending"] for each in seen][-1] is True
    assert not strict.home.has_loop("hail"), "nothing outside the sandbox ran"
    lines = (strict.folder / "iterations.jsonl").read_text()
    for _ in range(2):
        assert strict.script("list_tasks", "--workspace-root", str(strict.repo)).code == 0
        assert (len(strict.facts("iteration.recorded")), strict.waiting) == (1, [])
        assert (strict.folder / "iterations.jsonl").read_text() == lines
    strict.has_no_gap()
