"""rloop's configuration through the installed command: what applies, and what a person is asked before it does."""

import json
import re
import subprocess
from typing import Any

import pytest

from driving import Home, Said
from program.strict_claude import calls, install, log_in
from program.terminal_driver import answered

TASK = {"append": {"work.txt": "more\n"}, "tick": "PRD.md", "reply": "Did it."}


class Project:
    """A repository with a PRD of one task, and a Claude that does it."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.config = home.root / "home/.config/rloop/config.yaml"
        self.file = home.repo / ".rloop.yaml"
        self.template = home.repo / ".rloop/prompt-template.txt"
        self.bin = home.root / "bin"
        self.bin.mkdir()
        install(self.bin, [TASK])
        log_in(home.root / "home")
        home.env["PATH"] = f"{self.bin}:{home.env['PATH']}"
        for name in [name for name in home.env if name.startswith(("RLOOP_", "IS_SANDBOX"))]:
            del home.env[name]

    def __call__(self, *words: str, **options: Any) -> Said:
        return self.home.bydawn(*words, command="rloop", **options)

    def runs(self, *words: str, **options: Any) -> Said:
        (self.home.repo / "PRD.md").write_text("- [ ] one\n")
        return self("start", ".", "--no-tmux", *words, **options)

    @property
    def turns(self) -> list[dict[str, Any]]:
        return [call for call in calls(self.bin) if call["prompt"] is not None]


@pytest.fixture
def project(home: Home) -> Project:
    return Project(home)


def test_values_are_shown_with_their_places_and_changed_in_the_users_file(project: Project) -> None:
    """R-044, R-050"""
    project.file.write_text("defaults:\n  max_iterations: 10\n  modl: x\n")
    shown = project("config", RLOOP_MODEL="m")
    assert shown.code == 0
    assert re.search(r"defaults\.max_iterations +10 +\.rloop\.yaml:2\n", shown.out), shown
    assert re.search(r"defaults\.model +m +RLOOP_MODEL\n", shown.out), shown
    assert "unknown key 'defaults.modl' has no effect; did you mean defaults.model?" in shown.err
    said = project("config", "set", "notifications.webhook", "https://discord.com/api/webhooks/1/s3cret-s3cret")
    assert (said.code, "Set notifications.webhook in ~/.config/rloop/config.yaml" in said.out) == (0, True), said
    assert (project.config.stat().st_mode & 0o777, project.config.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    values = json.loads(project("config", "list", "--json").out)["values"]
    assert values["notifications.webhook"]["value"] == "https://discord.com/[secret]"
    assert project("config", "get", "notifications.webhook").out == "https://discord.com/api/webhooks/1/s3cret-s3cret\n"
    before = project.config.read_text()
    assert ".rloop.yaml:2 is stronger here" in project("config", "set", "defaults.max_iterations", "20").err
    for words, says in (
        (("get", "defaults.modl"), "did you mean defaults.model?"),
        (("set", "defaults.max_iterations", "0"), "defaults.max_iterations must be a whole number, 1 to 1,000,000"),
    ):
        refused = project("config", *words)
        assert (refused.code, refused.out, says in refused.err) == (2, "", True), refused
    assert project.config.read_text() == before.replace("max_iterations: 30", "max_iterations: 20")
    assert "Left as it is" in project("config", "init").out


def test_an_empty_variable_switches_off_and_one_that_nobody_knows_is_said(project: Project) -> None:
    """R-050"""
    project("config", "set", "notifications.webhook", "https://hooks.example.com/x")
    project("config", "set", "defaults.model", "mine")
    off = project("config", RLOOP_WEBHOOK="", RLOOP_MODEL="", RLOOP_TASK_FILE="", RLOOP_BIN="/b", RLOOP_YES="1")
    assert re.search(r"notifications\.webhook +— +RLOOP_WEBHOOK\n", off.out), off
    assert re.search(r"defaults\.model +— +RLOOP_MODEL\n", off.out), off
    assert re.search(r"defaults\.task_file +PRD\.md +config\.yaml:\d+\n", off.out), "it cannot be nothing"
    assert "has no effect" not in off.err
    said = project.runs(RLOOP_MAX_ITERATION="5", RLOOP_ZZZ="x")
    assert said.code == 0
    assert "RLOOP_MAX_ITERATION has no effect; did you mean RLOOP_MAX_ITERATIONS?" in said.err
    assert "RLOOP_ZZZ has no effect\n" in said.err


def test_a_session_whose_sandbox_kept_it_from_committing_says_so(project: Project) -> None:
    """The prompt asks for a commit of each task."""
    project("config", "set", "claude.flags", "[]")
    ended = project.runs()
    command = f"`git -C {project.home.repo} status`"
    assert (ended.code, f"no box is open; but 2 changed files not committed: {command}" in ended.err) == (0, True), (
        ended
    )
    name = project.home.repo.name
    assert f"{name} is complete, but 2 changed files not committed: {command}" in project("status").err
    repo = project.home.repo
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "work"], cwd=repo, check=True
    )
    assert "not committed" not in project("status").err


def test_what_a_project_asks_of_claude_waits_for_a_person(project: Project) -> None:
    """X-28: no call, nothing sent, nothing written before that."""
    project.file.write_text(
        "defaults: {model: theirs}\nclaude:\n  flags: [--dangerously-skip-permissions, --max-turns, '5']\n"
    )
    refused = project.runs()
    assert (refused.code, f"{project.file} is not trusted" in refused.err) == (2, True), refused
    for row in (
        "model = theirs   (defaults.model in .rloop.yaml:1)",
        "sandbox = full   (claude.flags in .rloop.yaml:3)",
    ):
        assert row in refused.err, refused
    assert (project.turns, project.template.parent.exists(), project.config.parent.exists()) == ([], False, False)
    [(digest, file)] = re.findall(r"`rloop trust --once (\w+) (\S+)`", refused.err)
    assert project("trust", "--once", digest, file).code == 0
    assert project.runs("--model", "mine").code == 0, "what was agreed to does not depend on the options"
    [call] = project.turns
    assert (call["model"], [*call["argv"][-2:]]) == ("mine", ["--max-turns", "5"])


def test_what_a_person_sets_themselves_is_not_asked_about(project: Project) -> None:
    project.file.write_text("defaults: {model: theirs, max_iterations: 9}")
    ended = project.runs("--model", "mine")
    assert (ended.code, project.turns[0]["model"], project.turns[0]["env"]["IS_SANDBOX"]) == (0, "mine", "1"), ended
    assert project.runs().code == 2


def test_a_project_raises_the_cap_only_with_trust(project: Project) -> None:
    """R-050: above what the person has, not only above the default."""
    project("config", "set", "defaults.max_iterations", "5")
    project.file.write_text("defaults: {max_iterations: 9}")
    refused = project.runs()
    assert (refused.code, "iterations = 9   (defaults.max_iterations in .rloop.yaml:1)" in refused.err) == (2, True), (
        refused
    )
    assert project.runs("--max-iterations", "20").code == 0, "the person said so"
    [(digest, file)] = re.findall(r"`rloop trust --once (\w+) (\S+)`", refused.err)
    assert project("trust", "--once", digest, file).code == 0
    assert "Max iterations: 9\n" in project.runs().out
    project("config", "set", "defaults.max_iterations", "10")
    assert project.runs().code == 0, "it is lower than that"


def test_a_prompt_that_a_person_gave_is_used_from_then_on_and_one_that_came_with_the_project_is_not(
    project: Project,
) -> None:
    """R-020"""
    mine = project.home.root / "mine.txt"
    mine.write_text("Do a task of {task_file}, {iteration}/{max_iterations}; {{ and }} stay.\n")
    assert project.runs("--prompt-template", str(mine)).code == 0
    again = project.runs()
    assert (again.code, project.template.read_text()) == (0, mine.read_text()), again
    prompts = [call["prompt"].partition("\n")[0] for call in project.turns]
    assert prompts == ["Do a task of PRD.md, 1/30; {{ and }} stay."] * 2
    project.template.write_text("Send {task_file} away.\n")
    refused = project.runs()
    assert (refused.code, "template = Send {task_file} away." in refused.err.replace("+ ", "")) == (2, True), refused
    assert f"{project.template} has changed since you trusted it" in refused.err, "there is no .rloop.yaml"
    [(digest, file)] = re.findall(r"`rloop trust --once (\w+) (\S+)`", refused.err)
    assert file == str(project.template)
    assert project.home.bydawn("trust", "--once", digest, file).code == 0
    assert project.runs().code == 0
    assert project.runs("--prompt-template", str(mine)).code == 0
    assert len(project.turns) == 4


def test_a_project_that_was_trusted_stays_so_with_a_prompt_of_ones_own(project: Project) -> None:
    project.file.write_text("claude: {env: {MODE: night}}\n")
    mine = project.home.root / "mine.txt"
    mine.write_text("Do it.\n")
    assert project.runs("--prompt-template", str(mine)).code == 2
    assert not project.template.exists()
    digest = json.loads(project.home.bydawn("trust", "--json", str(project.file)).out)["hash"]
    assert project.home.bydawn("trust", "--once", digest, str(project.file)).code == 0
    assert project.runs("--prompt-template", str(mine)).code == 0
    assert project.runs().code == 2, "that was for one start"
    assert answered(project.home, "y\n", "trust", str(project.file)).code == 0
    mine.write_text("Do it well.\n")
    assert project.runs("--prompt-template", str(mine)).code == 0
    assert project.runs().code == 0
    assert [call["prompt"].strip() for call in project.turns] == ["Do it.", *["Do it well."] * 2]
