"""The skill of codex-loop: what it says, and where it is installed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from bydawn.cli.dialects.codex_loop import COMMANDS, install_skill
from bydawn.dialects.codex_loop import codes
from bydawn.dialects.codex_loop.config import KEYS, Config, Verification
from bydawn.operations.dialects.codex_loop import project
from bydawn.operations.dialects.skills import source_of
from bydawn.operations.installed_folder import RECORD, files_of
from driving import a_repository

FILES = files_of(source_of("codex-loop"))
SKILL = FILES["SKILL.md"]


def test_an_agent_learns_from_the_front_matter_when_to_use_it() -> None:
    """C-018: both agents take at most 1,024 characters of description, on one line."""
    _, front, _ = SKILL.split("---\n", 2)
    found = YAML(typ="safe").load(front)
    assert (sorted(found), found["name"]) == (["description", "name"], "codex-loop")
    said = found["description"]
    assert (len(said) < 1024, "\n" in said, "Use it when" in said, "Do not use it for" in said) == (
        True,
        False,
        True,
        True,
    )


def test_the_references_are_there_and_every_link_leads_to_one() -> None:
    """C-018."""
    assert {*FILES} == {"SKILL.md", *(f"references/{name}.md" for name in ("config", "workflow", "safety"))}
    for name, text in FILES.items():
        for link in re.findall(r"\]\(([^#)]+)", text):
            assert str(Path(name).parent / link) in FILES, (name, link)
    assert [name for name in FILES if name != "SKILL.md" and f"]({name})" not in SKILL] == []


def test_the_steps_come_in_order_each_with_its_command() -> None:
    _, _, rest = SKILL.partition("\n## The way through\n")
    steps = re.split(r"\n\d\. ", rest.partition("\n## ")[0])[1:]
    wanted = (
        "codex-loop init --prompt",
        "tasks/",
        "verification.commands",
        "doctor --repair",
        "codex-loop run",
        "status",
    )
    assert [words for words, step in zip(wanted, steps, strict=True) if words not in step] == []


def test_the_configuration_that_it_shows_can_be_used_and_has_every_key_with_its_default(tmp_path: Path) -> None:
    """C-060: but for the operator's section, which no command needs yet."""
    [shown] = re.findall(r"```yaml\n(.*?)```", FILES["references/config.md"], re.DOTALL)
    (tmp_path / "codex-loop.yaml").write_text(shown)
    found = project.config_of(tmp_path)
    assert found.remarks == ()
    usual = Config(project=found.project, goal=found.goal, where=found.where)
    assert found == msgspec.structs.replace(usual, verification=Verification(commands=found.verification.commands))
    keys = {key.path for key in KEYS if not key.path.startswith("operator.")}
    assert keys == set(_paths(YAML(typ="safe").load(shown)))


def test_the_workflow_says_what_to_do_for_every_blocker_code() -> None:
    """C-063."""
    page = FILES["references/workflow.md"]
    assert {*codes.BY_RULE.values(), *codes.BY_KIND.values()} <= {*re.findall(r"`([a-z_]+)`", page)}


def _paths(section: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, value in section.items():
        yield from _paths(value, f"{before}{name}.") if isinstance(value, dict) else (f"{before}{name}",)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ((), "repo/.codex"),
        (("--for", "claude", "--project-dir", "."), "repo/.claude"),
        (("--user",), "home/.codex"),
    ],
)
def test_the_skill_goes_where_the_agent_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], place: str
) -> None:
    """C-018: all of its pages and no more; nothing in them is different on another machine."""
    repo, home = tmp_path / "repo", tmp_path / "home"
    a_repository(repo, "x\n")
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.chdir(repo)
    said = CliRunner().invoke(install_skill, words, catch_exceptions=False, standalone_mode=False).output
    folder = tmp_path / place / "skills/codex-loop"
    assert f"{folder}: 4 of 4 files written\n" in said
    assert ("claude '/codex-loop Build" if "claude" in words else "codex '$codex-loop Build") in said
    found = files_of(folder)
    assert (found.pop(RECORD).count("\n"), found) == (4, FILES)


def test_the_skill_can_be_installed_for_another_project(tmp_path: Path) -> None:
    a_repository(tmp_path / "other", "x\n")
    CliRunner().invoke(
        install_skill, ["--project-dir", str(tmp_path / "other")], standalone_mode=False, catch_exceptions=False
    )
    assert files_of(tmp_path / "other/.codex/skills/codex-loop").keys() == {*FILES, RECORD}
    ended = CliRunner().invoke(install_skill, ["--project-dir", str(tmp_path / "none")])
    assert ("does not exist" in ended.output, ended.exit_code) == (True, 2)


def _options(command: click.Command) -> set[str]:
    """Also those of the commands in it."""
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    return {word for each in (command, *inner) for option in each.params for word in option.opts}


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@pytest.mark.parametrize("page", FILES)
def test_every_command_and_option_that_the_skill_names_exists(page: str) -> None:
    """C-018."""
    known = {name: _options(found) for name, found in COMMANDS.commands.items()}
    text = FILES[page].replace("\\\n", " ")
    words = {word for options in known.values() for word in options}
    assert {*OPTION.findall(text)} <= {"--version", *words}
    for command, rest in re.findall(r"(?:`|^)codex-loop ([a-z][a-z-]+)([^`\n]*)", text, re.MULTILINE):
        assert {*OPTION.findall(rest)} <= known[command], (command, rest)
