"""Every dialect in the table is one that can be spoken."""

import pytest

from bydawn import dialects

NAMES = [*dialects.TABLE]


@pytest.mark.parametrize("name", NAMES)
def test_a_dialect_can_be_found_under_its_name(name: str) -> None:
    assert dialects.find(name).name == name


@pytest.mark.parametrize("name", NAMES)
def test_no_two_of_its_commands_have_one_name_and_one_of_them_has_none(name: str) -> None:
    names = [command.name for command in dialects.find(name).commands]
    assert len(names) == len({*names})
    assert "" in names


@pytest.mark.parametrize("name", NAMES)
def test_no_two_options_of_a_command_have_one_flag_and_defaults_are_among_the_choices(name: str) -> None:
    for command in dialects.find(name).commands:
        flags = [option.flag for option in command.options]
        assert len(flags) == len({*flags})
        for option in command.options:
            assert option.what.endswith(".")
            assert option.default is None or not option.choices or option.default in option.choices


@pytest.mark.parametrize("name", NAMES)
def test_commands_that_only_look_are_commands_of_it(name: str) -> None:
    """Known without loading it, so they have to be written down twice."""
    names = {command.name for command in dialects.find(name).commands}
    assert dialects.TABLE[name].looks < names


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        ([], False),
        (["fix it"], True),
        (["fix", "--full-auto"], True),
        (["--full-auto", "fix it"], True),
        (["--full-auto", "status"], True),  # a prompt of one word
        (["resume", "--loop-id", "night"], True),
        (["status"], False),
        (["status", "--json"], False),
        (["list"], False),
        (["cancel", "--loop-id", "night"], False),
        (["install-helpers"], False),
        (["--help"], False),
        (["-h"], False),
        (["fix it", "--completion-promise", "-h"], True),  # a value, not a question
        (["--version"], False),
    ],
)
def test_it_is_known_which_words_start_a_loop(words: list[str], starts: bool) -> None:
    assert dialects.starts_a_loop("waylon-smithers", words) is starts
