"""The documentation says what is so."""

import json
import re
import subprocess
from pathlib import Path
from types import ModuleType

import click
import pytest

from bydawn.cli.dialects import codex_autorunner, codex_loop, rloop, strict_agent_loop
from bydawn.cli.program import MODULES, bydawn
from bydawn.cli.reference import reference
from bydawn.cli.start import run
from bydawn.core import answers, tasks
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import EXIT_CODES, End
from bydawn.dialects.codex_loop import codes, document, history, texts
from bydawn.dialects.codex_loop import config as codex_loop_config
from bydawn.dialects.rloop.config import KEYS
from bydawn.dialects.rloop.files import session
from bydawn.dialects.strict_agent_loop import formats, paths
from bydawn.dialects.strict_agent_loop.contract import Contract
from bydawn.settings.schema import page
from dialects.rloop_made import LOOP
from driving import OK, Home

ROOT = Path(__file__).parents[2]


def test_the_command_reference_is_what_the_parser_says() -> None:
    assert (ROOT / "docs/commands.md").read_text() == reference(), "run scripts/docs"


def test_the_command_reference_does_not_depend_on_which_command_was_parsed_before() -> None:
    before = reference()
    bydawn.make_context("bydawn", ["status"]).close()
    run.make_context("run", ["x"]).close()
    assert reference() == before


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
    assert [rule for rule in Rule if len(rule.meaning) < 20] == []


def test_the_map_for_contributors_has_every_room_and_no_other() -> None:
    tree = {path.name for path in (ROOT / "src/bydawn").iterdir() if path.name[:2] != "__" and path.suffix != ".typed"}
    drawn = re.findall(r"(?m)^  ([a-z_]+(?:/|\.py)) ", (ROOT / "CONTRIBUTING.md").read_text())
    assert {name.rstrip("/") for name in drawn} == tree
    assert len(drawn) == 14


def test_every_module_named_in_the_documentation_exists() -> None:
    for path in [ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]:
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", path.read_text()):
            assert (ROOT / "src/bydawn" / name).exists() or (ROOT / name).exists(), (path.name, name)


def test_links_between_documents_lead_somewhere() -> None:
    for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), (path, target)


def test_what_stands_in_a_block_can_be_pasted() -> None:
    for path in [ROOT / "README.md", *(each for each in ROOT.glob("docs/*.md") if each.name != "commands.md")]:
        for block in re.findall(r"(?ms)^ *```\n(.*?)^ *```", path.read_text()):
            for line in (each.strip() for each in block.splitlines() if each.strip().startswith(("bydawn", "git "))):
                command, _, _ = line.partition("#")
                assert "·" not in command and "  " not in command.strip(), (path.name, line)


def test_the_commands_that_get_something_back_do_so(home: Home) -> None:
    rounds = [[{"write": {"path": "src/app.py", "text": f"round {number}\n"}}, OK] for number in (1, 2, 3)]
    (home.repo / "src").mkdir()
    (home.repo / "src/app.py").write_text("at first\n")
    home.run(home.rounds(*rounds), "-n", "3", "--name", "NAME")
    (home.repo / "src/app.py").unlink()
    text = (ROOT / "docs/how-it-works.md").read_text()
    shown, back, changed, listed = (
        subprocess.run(["sh", "-c", line], cwd=home.repo, capture_output=True, text=True, check=True).stdout
        for line in text.splitlines()
        if line.startswith("git --git-dir")
    )
    assert (shown, back) == ("round 3\n", "")
    assert (home.repo / "src/app.py").read_text() == "round 3\n"
    assert "-at first" in changed and "+round 3" in changed
    assert listed.splitlines() == ["README.md", "src/app.py"]


@pytest.mark.parametrize("dialect", [codex_autorunner, codex_loop, rloop, strict_agent_loop])
def test_what_each_command_of_a_dialect_does_fits_into_a_line(dialect: ModuleType) -> None:
    context = click.Context(dialect.COMMANDS, terminal_width=80)
    _, *lines = dialect.COMMANDS.get_help(context).splitlines()
    assert [line for line in lines if line.endswith("...")] == []


# -- rloop -------------------------------------------------------------------------------------------------------------


def test_the_page_of_rloop_has_every_command_option_key_variable_and_field() -> None:
    """R-061"""
    page = (ROOT / "docs/rloop.md").read_text()
    commands = {f"`{name}" for name in rloop.COMMANDS.commands}
    options = {f"`{flag}`" for each in rloop.start.params for flag in each.opts if flag.startswith("-")}
    keys = {f"`{key.path}` | {_default(key.default)}" for key in KEYS}
    variables = {f"`{key.variable}`" for key in KEYS if key.variable}
    fields = {f"`{field}`" for field in session(LOOP, LoopState())}
    codes = {f"\n| {code} |" for code in {1, 2, 8, *EXIT_CODES.values()} - {EXIT_CODES[End.CHECKPOINT]}}
    assert [each for each in (commands | options | keys | variables | fields | codes) if each not in page] == []


def _default(value: object) -> str:
    match value:
        case None:
            return ""
        case True:
            return "true"
        case int():
            return f"{value:g}"
        case str():
            return f"`{value}`"
        case dict():
            return "`{" + ", ".join(f'{name}: "{text}"' for name, text in value.items()) + "}`"
        case _:
            assert isinstance(value, tuple)
            return f"`[{', '.join(value)}]`"


def test_the_readme_names_rloop_and_every_box_of_the_example_is_a_task() -> None:
    """R-061, R-017"""
    readme = (ROOT / "README.md").read_text()
    assert [each for each in ("start", "status", "resume") if f"`rloop {each}" not in readme] == []
    example = (ROOT / "examples/PRD.md").read_text()
    nested = re.findall(r"(?m)^ +- \[ \] ", example)
    assert len(nested) >= 3
    assert len(tasks.read(example).items) == len(re.findall(r"(?m)^ *- \[ \] ", example))


# -- strict-agent-loop -------------------------------------------------------------------------------------------------


def test_the_page_of_strict_agent_loop_has_every_command_option_file_and_field() -> None:
    """S-012, S-017, S-060, S-062"""
    page = (ROOT / "docs/strict-agent-loop.md").read_text()
    commands = strict_agent_loop.COMMANDS.commands
    scripts = {f"`{name.replace('-', '_')}.py`" for name in commands if name != "install-skill"}
    options = {flag for each in commands.values() for param in each.params for flag in param.opts if flag != "--help"}
    files = {paths.STATE, paths.IF_DONE, paths.EVENTS, paths.ITERATIONS, paths.STATUSES, paths.STATUS_TEXT}
    files |= {paths.STOP_REPORT, paths.SUMMARY, f"{paths.ROUNDS}/iteration-0001.md", f"{paths.DROP}/"}
    files |= {f"{paths.SUPERVISOR}/", "registry.json"}
    fields = {f"`{name}`" for part in _parts() for name in part.__struct_fields__}
    wanted = {f"| `{name}` |" for name in commands} | scripts | options | files | fields
    assert [each for each in sorted(wanted) if each not in page] == []
    assert [each for each in _defaults() if each not in page] == []


def _parts() -> list[type[formats.Part]]:
    """Everything in a JSON file, except what `latest-status.txt` says in words."""
    found = [each for each in vars(formats).values() if isinstance(each, type) and issubclass(each, formats.Part)]
    return [each for each in found if each not in (formats.Report, formats.Progress)]


def _defaults() -> list[str]:
    """S-061"""
    usual = Contract(task="", goal="", stop_condition="")
    rows = {
        "--max-iterations": usual.max_iterations,
        "--max-no-progress-rounds": usual.max_no_progress,
        "--max-context-chars": usual.context_chars,
        "--supervisor-max-rounds-per-invocation": usual.budget,
        "--supervisor-max-consecutive-failures": usual.max_failures,
        "--supervisor-codex-bin": f"`{usual.codex_bin}`",
        "--supervisor-sandbox": f"`{usual.sandbox}`",
        "--operating-mode": f"`{usual.mode}`",
    }
    return [f"| `{name}` | {value} |" for name, value in rows.items()]


# -- codex-loop --------------------------------------------------------------------------------------------------------


def test_the_page_of_codex_loop_has_every_key_and_its_default() -> None:
    """C-060"""
    page = (ROOT / "docs/codex-loop.md").read_text()
    rows = re.findall(r"(?m)^\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \| ([^|]*) \|", page.partition("## Configuration")[2])
    told = {path: default for paths, default in rows for path in re.findall(r"`([^`]+)`", paths)}
    usual = {key.path: _written(key.default, is_needed=not key.nullable) for key in codex_loop_config.KEYS}
    assert (usual | {"project.name": "the folder's name"}).items() <= told.items()


def test_the_page_of_codex_loop_has_every_command_option_field_code_and_variable() -> None:
    """C-001, C-003, C-061, C-063, C-065, C-068"""
    page = (ROOT / "docs/codex-loop.md").read_text()
    commands = codex_loop.COMMANDS.commands
    params = [param for each in (*commands.values(), codex_loop.tail) for param in each.params]
    options = {flag for param in params for flag in param.opts if flag.startswith("--") and flag != "--help"}
    parts = (document.Meta, document.Task, document.Blocker, document.Ours, history.Entry, history.Result)
    ours = document.Ours(loop="night", uid="u-1", seq=1)
    fields = {name for part in parts for name in part.__struct_fields__}
    fields |= {name for name, _ in document.summary_rows(document.Document(meta=document.Meta(), bydawn=ours))}
    fields |= json.loads(answers.SCHEMA)["properties"].keys()
    named = fields | {*codes.BY_RULE.values(), *codes.BY_KIND.values()}
    named |= texts.hook_words("on_blocked", LOOP, LoopState(), {}).keys()
    wanted = {f"`{name}" for name in commands} | options | {f"`{name}`" for name in named}
    assert [each for each in sorted(wanted) if each not in page] == []


def _written(value: object, *, is_needed: bool) -> str:
    match value:
        case ():
            return "none"
        case None:
            return "required" if is_needed else "null"
        case bool():
            return str(value).lower()
        case str():
            return f"`{value}`"
        case _:
            assert isinstance(value, int | float)
            return f"{value:g}"
