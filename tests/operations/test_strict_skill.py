"""The skill of strict-agent-loop: what it says, and where it is installed."""

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from bydawn.cli.dialects import FURTHER
from bydawn.cli.dialects.strict_agent_loop import COMMANDS
from bydawn.cli.dialects.strict_agent_loop_skill import HOW, install_skill
from bydawn.core.errors import UserError
from bydawn.dialects.strict_agent_loop.formats import HistoryEntry, State, StopReport
from bydawn.operations.dialects.skills import source_of
from bydawn.operations.installed_folder import RECORD, files_of
from driving import a_repository

FILES = files_of(source_of("strict-agent-loop"))
SKILL = FILES["SKILL.md"]
REFERENCES = ("protocol", "management", "modes", "stop_checks", "recovery", "state_schema", "prompt_templates")
LEDGERS = (
    *(".codex-loop/registry.json", "state.json", "events.jsonl", "iterations.jsonl", "status-history.jsonl"),
    *("latest-status.txt", "latest-stop-report.json", "run-summary.md", "rounds/", "supervisor/"),
)


def section(title: str) -> str:
    """One section of SKILL.md."""
    _, found, rest = SKILL.partition(f"\n## {title}\n")
    assert found, title
    return rest.partition("\n## ")[0]


# -- what it says ------------------------------------------------------------------------------------------------------


def test_an_agent_learns_from_the_front_matter_when_to_use_it() -> None:
    """Both agents take at most 1,024 characters of description, on one line."""
    _, front, _ = SKILL.split("---\n", 2)
    found = YAML(typ="safe").load(front)
    assert (sorted(found), found["name"]) == (["description", "name"], "strict-agent-loop")
    said = found["description"]
    assert len(said) < 1024
    assert "\n" not in said
    when = ("must not skip the middle", "external stop rule", "real blocker", "interactive", "unattended", "one small")
    assert [words for words in when if words not in said] == []


def test_the_references_are_there_and_every_link_leads_to_one() -> None:
    """S-003."""
    assert {f"references/{name}.md" for name in REFERENCES} == {name for name in FILES if name.startswith("ref")}
    for name, text in FILES.items():
        for link in re.findall(r"\]\(([^#)]+)\)", text):
            assert str(Path(name).parent / link) in FILES, (name, link)
    assert [name for name in REFERENCES if f"](references/{name}.md)" not in SKILL] == []


@pytest.mark.parametrize("text", [section("If you are asked how to use this skill"), HOW], ids=["skill", "help"])
def test_the_ten_points_are_explained_each_with_something_to_paste(text: str) -> None:
    """S-004: in the skill and in the help of the command."""
    points = re.split(r"\n *\d+\. ", text)[1:]
    assert len(points) == 10
    for point in points:
        assert re.search(r"`[^`]+`|^ +(strict-agent-loop|codex|ls|git) ", point, re.MULTILINE), point
    wanted: list[tuple[str, ...]] = [
        ("nteractive", "nattended", "supervise"),
        (),
        LEDGERS,
        ("workspace", ".codex-loop/tasks/", "git status"),
        ("list", "show", "--workspace-root ."),
        ("--stop-command", "--require-path", '--require-text "README.md::', "check"),
        ("disk", "--supervisor-resume-existing-thread"),
        ("overloaded", "--supervisor-reasoning-effort low", "medium", "--reasoning-effort"),
        ("Ctrl-C", "TERM", "130"),
        ("$strict-agent-loop",),
    ]
    missing = [
        (point, words) for point, all_ in zip(points, wanted, strict=True) for words in all_ if words not in point
    ]
    assert missing == []


def test_the_help_fits_a_narrow_terminal() -> None:
    assert len(HOW.splitlines()) <= 45
    assert max(map(len, HOW.splitlines())) <= 78  # the help indents it by two
    assert "\n\n" not in HOW


def test_both_quick_starts_are_complete_commands() -> None:
    """S-047, S-020: nothing that `init_state.py` requires is missing, and there is a stop check."""
    shown = section("Quick start")
    assert "$strict-agent-loop\nGoal: " in shown
    _, _, command = shown.partition("init_state.py ")
    for option in ("--workspace-root", "--task-id", "--operating-mode unattended", "--goal", "--stop-command"):
        assert option in command
        assert option in HOW
    assert "supervise.py --state .codex-loop/tasks/fix-parser/state.json" in command


def test_a_round_has_eight_steps_with_a_script_for_each_that_needs_one() -> None:
    """S-031, S-032."""
    steps = re.split(r"\n\d\. ", section("The eight steps of a round"))[1:]
    scripts = [re.findall(r"scripts/(\w+)\.py", step) for step in steps]
    assert scripts == [
        *([], ["append_event"], [], [], ["update_state"]),
        *(["check_stop"], ["report_status"], ["compact_state"]),
    ]
    said = ("iteration number", "completed so far", "local done condition", "global\n   stop condition", "average time")
    assert [words for words in said if words not in steps[0]] == []


def test_the_contract_names_everything_that_must_be_agreed() -> None:
    """S-020, S-021, S-022."""
    agreed = section("What must be agreed before iteration 1")
    wanted = (
        *("--goal", "--global-stop-condition", "--workspace-root", "--success-evidence", "--blocker-definition"),
        *("--operating-mode", "--stop-command", "--max-iterations", "--max-no-progress-rounds", "--max-context-chars"),
        *("--supervisor-max-rounds-per-invocation", "--supervisor-max-consecutive-failures", "do not start"),
    )
    assert [words for words in wanted if words not in agreed] == []


def test_the_skill_says_what_is_too_big_for_a_round_and_what_is_not() -> None:
    """S-038."""
    shown = section("One atomic task per round")
    assert ("reproduce one failure" in shown, "hailstone" in shown, "| finish the whole feature |" in shown) == (
        True,
    ) * 3


# -- what it names exists ----------------------------------------------------------------------------------------------


PAGES = {**{name: text for name, text in FILES.items() if name.endswith(".md")}, "--help": HOW}
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_option_that_the_skill_names_exists(page: str) -> None:
    """S-017."""
    known = {name: {word for each in found.params for word in each.opts} for name, found in COMMANDS.commands.items()}
    text = PAGES[page].replace("\\\n", " ").replace(FURTHER, "")
    assert {*OPTION.findall(text)} <= {"--help", *(word for words in known.values() for word in words)}
    typed = re.findall(r"(?:scripts/(\w+)\.py|strict-agent-loop ([a-z-]+))([^`\n]*)", text)
    for script, command, rest in typed:
        assert {*OPTION.findall(rest)} <= known[script.replace("_", "-") or command], (script, command)


def test_each_of_the_nine_commands_is_a_script_too() -> None:
    """S-017."""
    scripts = {Path(name).stem.replace("_", "-") for name in FILES if re.match(r"scripts/[a-z]\w+\.py", name)}
    assert scripts | {"install-skill"} == {*COMMANDS.commands}


def test_the_reference_of_the_state_names_every_field() -> None:
    """S-060."""
    page = FILES["references/state_schema.md"]
    fields = [*State.__struct_fields__, *HistoryEntry.__struct_fields__, *StopReport.__struct_fields__]
    assert [name for name in fields if f"`{name}`" not in page and f"`{name}[]`" not in page] == []


# -- where it is installed ---------------------------------------------------------------------------------------------


class Person:
    """A person with a home and a repository, who is in one of its folders."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.repo = root, root / "repo"
        a_repository(self.repo, "x\n")
        (self.repo / "sub").mkdir()
        (root / "home").mkdir()
        monkeypatch.setenv("HOME", str(root / "home"))
        for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("sys.argv", [f"{root}/bin/bydawn"])
        monkeypatch.chdir(self.repo / "sub")

    def install(self, *words: str) -> str:
        ended = CliRunner().invoke(install_skill, words, catch_exceptions=False, standalone_mode=False)
        return ended.output


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(tmp_path.resolve(), monkeypatch)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ((), "repo/.codex/skills"),
        (("--for", "claude"), "repo/.claude/skills"),
        (("--user",), "home/.codex/skills"),
        (("--user", "--for", "claude"), "home/.claude/skills"),
    ],
)
def test_the_skill_goes_where_the_agent_reads_it(person: Person, words: tuple[str, ...], place: str) -> None:
    said = person.install(*words)
    folder = person.root / place / "strict-agent-loop"
    assert f"{folder}: {len(FILES)} of {len(FILES)} files written\n" in said
    assert ("claude '/strict" if "claude" in words else "codex '$strict") in said
    found = files_of(folder)
    assert found.pop("scripts/command.path") == f"{person.root}/bin/strict-agent-loop\n"
    assert (found.pop(RECORD).count("\n"), found) == (len(FILES), FILES)
    assert os.access(folder / "scripts/supervise.py", os.X_OK)
    assert f"{folder}: is up to date\n" in person.install(*words)


def test_a_changed_skill_is_replaced_only_by_force_and_a_copy_stays(person: Person) -> None:
    person.install()
    mine = person.repo / ".codex/skills/strict-agent-loop/SKILL.md"
    mine.write_text("mine")
    with pytest.raises(UserError, match="was changed"):
        person.install()
    assert mine.read_text() == "mine"
    assert "SKILL.md: a copy of yours is beside it\n" in person.install("--force")
    assert (mine.read_text(), mine.with_name("SKILL.original.md").read_text()) == (SKILL, "mine")


def test_where_the_command_is_stays_out_of_git(person: Person) -> None:
    """It differs on each machine, and the rest of the skill can be committed."""
    person.install()
    ignored = (person.repo / ".codex/skills/strict-agent-loop/scripts/.gitignore").read_text()
    assert ignored == "command.path\n"
