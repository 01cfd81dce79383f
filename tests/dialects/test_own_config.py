"""A dialect's own configuration file: where its settings come from, and that a person agrees before anything runs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dialects.test_made_up import RUN, TESTS, Shift, says
from driving import Home, Said
from program.terminal_driver import answered

pytestmark = pytest.mark.installed  # it starts an interpreter of its own

CHECK = ": >> checked"
COMPLETE = 48  # as this dialect says it


class Config:
    """The command, `bydawn trust` beside it, and the file."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.shift = Shift(home)
        self.file = home.repo / ".night/shift.yml"
        self.agent = home.rounds([says("Going on.")])

    def write(self, **values: Any) -> None:
        """As it came with a clone."""
        rows = {"agent": self.agent, "checks": [CHECK], "passes": 1, **values}
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text("shift:\n" + "".join(f"  {key}: {json.dumps(value)}\n" for key, value in rows.items()))

    def start(self) -> Said:
        return self.shift("start", ".")

    def trust(self, *words: str) -> Said:
        return self.home.bydawn("-c", RUN, "", "trust", *words, command="python", PYTHONPATH=str(TESTS))

    def says_yes(self, *words: str) -> str:
        shown = answered(self.home, "y\n", "-c", RUN, *words, command="python", PYTHONPATH=str(TESTS))
        assert shown.code in (0, COMPLETE), shown
        return shown.text


@pytest.fixture
def config(home: Home) -> Config:
    return Config(home)


def test_without_a_terminal_it_is_refused_with_commands_that_agree(config: Config) -> None:
    config.write()
    refused = config.start()
    assert (refused.code, f"{config.file} is not trusted" in refused.err) == (2, True), refused
    assert f"check = {CHECK}   (shift.yml:3)" in refused.err
    assert f"`night-shift trust {config.file}`" in refused.err
    [(digest, file)] = re.findall(r"`night-shift trust --once (\w+) (\S+)`", refused.err)
    assert not config.home.has_loop("shift")
    assert f"bydawn trust {file}" in config.trust().out, "a folder's own settings are another thing"
    assert config.trust("--once", "0" * 32, file).code == 2
    assert config.trust("--once", digest, file).code == 0
    assert config.start().code == COMPLETE
    assert (config.home.repo / "checked").exists()
    assert json.loads(config.trust("--json", file).out)["trusted"] is False, "it was for one start"


def test_a_person_is_shown_what_it_runs_and_asked_again_only_when_that_changes(config: Config) -> None:
    config.write(words="words.md")
    words = config.home.repo / "words.md"
    words.write_text("Work: {{PROMPT}}\n")
    shown = config.says_yes("night-shift", "start", ".")
    question = shown.partition("Do you trust this?")[0]
    assert re.search(rf"check +{re.escape(CHECK)} +\(shift\.yml:3\)", question), question
    assert "Work: {{PROMPT}}" in question
    config.write(words="words.md", passes=2)
    assert json.loads(config.trust("--json", str(config.file)).out)["trusted"] is True
    words.write_text("Evil: {{PROMPT}}\n")
    asked = json.loads(config.trust("--json", str(config.file)).out)
    assert (asked["trusted"], asked["file"], asked["folder"]) == (False, str(config.file), str(config.home.repo))
    assert "+ template = Evil: {{PROMPT}}" in asked["changes"]
    assert "Trusted: " in config.says_yes("", "trust", str(config.file))
    assert [row["folder"] for row in json.loads(config.trust("--list", "--json").out)["trusted"]] == [str(config.file)]
    config.file.unlink()
    assert "No longer trusted" in config.trust("--revoke", str(config.file)).out


def test_what_an_init_wrote_is_trusted_by_that_act_also_with_other_numbers(config: Config) -> None:
    assert config.shift("init", config.agent).code == 0
    config.file.write_text(config.file.read_text().replace("passes: 1", "passes: 2"))
    ended = config.start()
    assert (ended.code, "2 tours" in ended.out) == (45, True), ended


def test_what_came_with_a_clone_is_not_trusted_because_an_init_wrote_a_file_that_names_it(config: Config) -> None:
    (config.home.repo / "words.md").write_text("Evil: {{PROMPT}}\n")
    assert config.shift("init", config.agent).code == 3
    refused = config.start()
    assert (refused.code, "template = Evil: {{PROMPT}}" in refused.err) == (2, True), refused


def test_full_access_is_part_of_what_is_trusted(config: Config) -> None:
    config.write(sandbox="full")
    asked = json.loads(config.trust("--json", str(config.file)).out)
    assert {"key": "sandbox", "value": "full", "where": "shift.yml:5"} in asked["rows"]
    digest = asked["hash"]
    config.write(sandbox="workspace")
    assert json.loads(config.trust("--json", str(config.file)).out)["hash"] != digest


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("shift:\n  passes: -1\n", "shift.yml:2: shift.passes must be a whole number, 0 or more"),
        ("shift:\n  sandbox: loose\n", "shift.yml:2: 'loose' cannot be the sandbox"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(config: Config, text: str, says: str) -> None:
    config.write()
    config.file.write_text(text)
    refused = config.start()
    assert (refused.code, says in refused.err) == (2, True), refused
    assert not config.home.has_loop("shift")


def test_a_path_that_no_tool_reads_is_not_a_file_to_trust(config: Config) -> None:
    (config.home.repo / "other.yml").write_text("a: 1\n")
    for name, why in (("other.yml", "is not a folder"), (".night/shift.yml", "there is no file")):
        refused = config.trust(str(Path(config.home.repo, name)))
        assert (refused.code, why in refused.err) == (2, True), refused
