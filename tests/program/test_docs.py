"""The documentation says what is so."""

import re
from pathlib import Path

from bydawn.cli.reference import reference
from bydawn.cli.shell import MODULES
from bydawn.core.decide import RULES
from bydawn.core.facts import End
from bydawn.core.schema import page

ROOT = Path(__file__).parents[2]


def test_the_command_reference_is_what_the_parser_says() -> None:
    assert (ROOT / "docs/commands.md").read_text() == reference(), "run scripts/docs"


def test_the_page_of_settings_is_what_their_table_says() -> None:
    assert (ROOT / "docs/settings.md").read_text() == page(), "run scripts/docs"


def test_every_command_named_in_the_documentation_exists() -> None:
    for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        named = set(re.findall(r"(?:^|`|scripts/|· )bydawn ([a-z]+)", path.read_text(), re.MULTILINE))
        assert named <= set(MODULES) | {"is"}, path


def test_every_state_stands_in_the_glossary() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text()
    assert [end.value for end in End if f"`{end.value}`" not in glossary] == []


def test_every_rule_has_a_sentence_that_explains_it() -> None:
    assert [name for name, meaning in RULES.items() if len(meaning) < 20] == []


def test_links_between_documents_lead_somewhere() -> None:
    for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), (path, target)
