"""Settings through the installed command: every row of their table, in every place that it may stand in."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click
import pytest

from bydawn.cli.options import given_by_flags
from bydawn.cli.start import run
from bydawn.core import kinds
from bydawn.operations.settings import gather
from bydawn.settings import files
from bydawn.settings.files import OTHER_VARIABLES
from bydawn.settings.layers import Given
from bydawn.settings.setting import Heading, Layer, Setting
from bydawn.settings.table import BY_KEY, TABLE
from driving import OK, Home

ROOT = Path(__file__).parents[2]
USER, PROJECT, PYPROJECT, ENV, FLAG = "user", "bydawn.toml", "pyproject.toml", "environment", "flag"
LAYERS = {
    USER: Layer.USER,
    PROJECT: Layer.PROJECT,
    PYPROJECT: Layer.PROJECT,
    ENV: Layer.ENV,
    FLAG: Layer.FLAG,
}


@pytest.fixture(autouse=True)
def nothing_is_set(home: Home) -> None:
    """Every other story switches the box off."""
    del home.env["BYDAWN_BOX"]


def user_path(home: Home) -> Path:
    return home.root / "home/.config/bydawn/config.toml"


def write_user(home: Home, text: str | bytes) -> Path:
    path = user_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def write_project(home: Home, text: str | bytes, name: str = PROJECT) -> Path:
    path = home.repo / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def everything(home: Home) -> dict[str, str]:
    """Every name below the home, with what stands in it."""
    paths = (path for path in home.root.rglob("*") if ".git" not in path.parts)
    return {str(path): path.read_bytes().hex() if path.is_file() else "" for path in paths}


def checked(home: Home, code: int = 2, **env: Any) -> list[dict[str, str]]:
    """The problems that `config check` finds."""
    said = home.bydawn("config", "check", "--json", **env)
    found = json.loads(said.out)
    assert (said.code, found["ok"], said.err) == (code, code == 0, "")
    return list(found["problems"])


# -- values that are made from the table -----------------------------------------------------------------------------


def typed(row: Setting, number: int) -> str:
    """A value of a setting, another one for each number if its kind has so many, and no other setting's."""
    options = dict(row.kind.schema).get("enum") or (("true", "false") if row.kind.literal == (bool,) else ())
    if options:
        return str(next(islice(cycle(options), number, None)))
    example = row.kind.example
    if any(char.isdigit() for char in example):
        return re.sub(r"\d(?=\D*$)", str(number), example)
    return f"{example} of {row.key} {number}"


def in_toml(row: Setting, word: str) -> str:
    return json.dumps(row.kind.for_file([word]))


def in_json(row: Setting, word: str) -> Any:
    value = row.kind.from_words([word])
    return "[secret]" if row.secret else list(value) if isinstance(value, tuple) else value


def rows_of(place: str) -> list[Setting]:
    return [row for row in TABLE if LAYERS[place] in row.layers]


class Places:
    """Writes settings into one place after the other and remembers where each of them stands."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.env: dict[str, Any] = {}
        self.argv: list[str] = []
        self.where: dict[str, dict[str, str]] = {}

    def fill(self, place: str, rows: Iterable[Setting], number: int) -> None:
        if place == ENV:
            self.env |= {row.variable: typed(row, number) for row in rows}
            self.where[place] = {row.key: row.variable for row in rows}
        elif place == FLAG:
            for row in rows:
                self.argv += _words(row, typed(row, number))
            self.where[place] = {row.key: row.flags[-1] for row in rows}
        else:
            self._write(place, rows, number)

    def _write(self, place: str, rows: Iterable[Setting], number: int) -> None:
        lines = ["[tool.bydawn]"] if place == PYPROJECT else ["# settings"]
        path = write_user(self.home, "") if place == USER else self.home.repo / place
        self.where[place] = {}
        for row in rows:
            lines += ["", f"{row.key} = {in_toml(row, typed(row, number))}  # {row.what}"]
            self.where[place][row.key] = f"{path if place == USER else path.name}:{len(lines)}"
            if row.key == "template":  # a project's is read at once: trust is about what stands in it
                (self.home.repo / typed(row, number)).write_text("{{PROMPT}}\n")
        path.write_text("\n".join(lines) + "\n")


def _words(row: Setting, word: str) -> list[str]:
    """A setting as it stands on a command line."""
    if not row.flags[-1].startswith("-"):
        return [word]
    return [row.flags[-1] if row.kind.literal == (bool,) else f"{row.flags[-1]}={word}"]


def shown(home: Home, **env: Any) -> dict[str, dict[str, Any]]:
    said = home.bydawn("config", "show", "--origin", "--json", **env)
    assert said.code == 0
    return dict(json.loads(said.out)["settings"])


@pytest.fixture
def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that this very process lives in, too."""
    for name in [name for name in os.environ if name.startswith("BYDAWN_")]:
        monkeypatch.delenv(name)
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    return home


# -- every setting, every layer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [USER, PROJECT, PYPROJECT, ENV])
def test_every_setting_is_read_from_every_place_it_may_stand_in_and_says_where(home: Home, place: str) -> None:
    """A-019, R-050, R-051, X-12."""
    places = Places(home)
    places.fill(place, rows_of(place), 3)
    found = shown(home, **places.env)
    assert {key: (row["value"], row["layer"], row["where"]) for key, row in found.items()} == {
        row.key: (in_json(row, typed(row, 3)), LAYERS[place].value, places.where[place][row.key])
        if row in rows_of(place)
        else (list(row.default) if isinstance(row.default, tuple) else row.default, "default", "default")
        for row in TABLE
    }
    assert checked(home, code=0, **places.env) == []


def test_every_setting_that_has_a_flag_is_read_from_it_and_says_so(here: Home) -> None:
    places = Places(here)
    places.fill(FLAG, rows_of(FLAG), 3)
    found = gather(here.repo, given_by_flags(run.make_context("run", places.argv).params))
    assert {row.key: found[row.key] for row in rows_of(FLAG)} == {
        row.key: Given(
            key=row.key,
            value=row.kind.from_words([typed(row, 3) if row.kind.literal != (bool,) else "true"]),
            layer=Layer.FLAG,
            where=row.flags[-1],
        )
        for row in rows_of(FLAG)
    }


def test_all_places_that_speak_of_a_setting_are_known_the_strongest_first(
    here: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-050: a flag beats them all."""
    places, order = Places(here), [USER, PROJECT, ENV, FLAG]
    for number, place in enumerate(order):
        places.fill(place, rows_of(place), number)
    for name, value in places.env.items():
        monkeypatch.setenv(name, value)
    found = gather(here.repo, given_by_flags(run.make_context("run", places.argv).params))
    for row in TABLE:
        speaking = [places.where[place][row.key] for place in reversed(order) if row in rows_of(place)]
        assert [given.where for given in found.given[row.key]] == [*speaking, "default"]


def test_the_order_of_the_layers_is_the_order_in_which_a_loop_obeys_them(home: Home) -> None:
    """R-050, as `run` sees it."""

    def limit(*arguments: str, **env: Any) -> str:
        said = home.bydawn("run", "x", "-a", "demo", "--dry-run", *arguments, **env)
        return next(line.split()[1] for line in said.out.splitlines() if "Limits" in line)

    assert limit() == "30"
    write_user(home, "rounds = 25\n")
    assert limit() == "25"
    write_project(home, "rounds = 24\n")
    assert limit() == "24"
    assert limit("--no-project") == "25"
    assert limit(BYDAWN_ROUNDS="23") == "23"
    assert limit("-n", "22", BYDAWN_ROUNDS="23") == "22"
    assert limit(BYDAWN_ROUNDS="") == "24"  # an empty variable says nothing


@pytest.mark.parametrize("name", [PROJECT, PYPROJECT])
def test_what_a_repository_has_no_say_in_is_refused_in_its_files(home: Home, name: str) -> None:
    places = Places(home)
    forbidden = [row for row in TABLE if row not in rows_of(name)]
    places.fill(name, forbidden, 1)
    problems = checked(home)
    assert {problem["where"]: problem["what"].split()[0] for problem in problems} == {
        where: key for key, where in places.where[name].items()
    }
    assert len(problems) == len(forbidden) > 0
    said = home.bydawn("run", "x", "-a", "demo", "--dry-run")
    assert (said.code, said.out) == (2, "")
    assert "cannot be set by a project" in said.err
    assert {row["layer"] for row in shown(home).values()} == {"default"}


@pytest.mark.parametrize("row", [row for row in TABLE if Layer.FLAG not in row.layers], ids=lambda row: row.key)
def test_what_everybody_on_the_machine_could_read_is_no_flag(home: Home, row: Setting) -> None:
    flag = f"--{row.key.replace('_', '-')}"
    said = home.bydawn("run", "x", "-a", "demo", "--dry-run", f"{flag}={typed(row, 1)}")
    assert said.code == 2
    assert flag in said.err.splitlines()[0]
    assert row.flags == ()


def test_no_file_of_settings_means_the_defaults_and_nothing_is_written(home: Home) -> None:
    before = everything(home)
    assert {key: row["where"] for key, row in shown(home).items()} == dict.fromkeys(BY_KEY, "default")
    assert checked(home, code=0) == []
    assert everything(home) == before


def test_where_there_is_a_bydawn_toml_the_pyproject_is_not_looked_at(home: Home) -> None:
    write_project(home, "[tool.bydawn]\nrounds = 5\nfor = 'soon'\n", PYPROJECT)
    write_project(home, "rounds = 6\n")
    assert shown(home)["rounds"]["where"] == "bydawn.toml:1"
    assert checked(home, code=0) == []


# -- nothing is missing anywhere -------------------------------------------------------------------------------------


def test_every_setting_stands_in_the_schema(home: Home) -> None:
    schema = json.loads(home.bydawn("config", "schema").out)
    assert [*schema["properties"]] == [row.key for row in TABLE]
    assert schema["additionalProperties"] is False


def test_every_setting_stands_in_the_documentation_with_flag_and_variable() -> None:
    page = (ROOT / "docs/settings.md").read_text()
    chapters = {part.splitlines()[0]: part for part in page.split("\n## ")[1:]}
    assert [*chapters] == [row.key for row in TABLE]
    for row in TABLE:
        assert all(f"`{word}`" in chapters[row.key] for word in (row.variable, *row.flags)), row.key
        assert row.what in chapters[row.key]


def test_the_help_of_run_lists_the_flag_of_every_setting_under_its_heading(home: Home) -> None:
    shown = home.bydawn("run", "--help-all").out
    assert re.findall(r"(?m)^(\w.*):$", shown) == [*Heading, "Options"]
    sections = dict(re.findall(r"(?ms)^(\w[^\n]*):\n(.*?)(?=^\w|\Z)", shown))
    for row in TABLE:
        words = re.findall(r"[\w-]+", sections[row.heading or "Options"] if row.key != "prompt" else shown)
        assert [flag for flag in row.flags if flag not in words] == [], row.key


def test_the_help_of_run_keeps_timeouts_for_those_who_ask(home: Home) -> None:
    shown = home.bydawn("run", "--help").out
    assert "--round-timeout" not in shown
    assert "8 more options set timeouts: --help-all lists them." in shown


def test_every_setting_stands_in_what_config_show_prints(home: Home) -> None:
    lines = home.bydawn("config", "show").out.splitlines()
    assert [line.split()[0] for line in lines] == [row.key for row in TABLE]
    assert {line.endswith(("  [default]", " —")) for line in lines} == {True}
    assert "  sandbox             workspace  [default]" in lines
    assert all(line.endswith("  default") for line in home.bydawn("config", "show", "--origin").out.splitlines())


@pytest.mark.parametrize(("key", "value"), [("sandbox", "workspace"), ("session", "fresh"), ("done_match", "end")])
def test_a_setting_that_nobody_set_is_shown_as_it_applies(home: Home, key: str, value: str) -> None:
    assert home.bydawn("config", "get", key).out == f"{value}\n"
    assert (shown(home)[key]["value"], shown(home)[key]["in_force"]) == (None, value)


@pytest.mark.parametrize("words", ["config", "edit", "tasks", "agents"])
def test_a_command_that_needs_another_word_prints_its_help(home: Home, words: str) -> None:
    said = home.bydawn(words)
    assert (said.code, said.err) == (0, "")
    assert said.out == home.bydawn(words, "--help").out


def test_no_variable_means_two_things() -> None:
    variables = [row.variable for row in TABLE]
    assert len({*variables}) == len(variables)
    assert {*variables} & OTHER_VARIABLES == set()


def test_every_variable_that_the_source_names_is_a_setting_or_known_as_another() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = {*re.findall(r"\bBYDAWN_[A-Z_]*[A-Z]\b", sources)}
    assert named - OTHER_VARIABLES - {row.variable for row in TABLE} == set()


def test_no_key_is_the_beginning_of_another() -> None:
    """`a` and `a.b` cannot both stand in one file."""
    assert [(a, b) for a in BY_KEY for b in BY_KEY if b.startswith(f"{a}.")] == []


# -- the schema ------------------------------------------------------------------------------------------------------

JSON_TYPES: dict[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
}


def fits(schema: dict[str, Any], value: Any) -> bool:
    """The little of JSON Schema that our own uses; whatever else stands in it is an error."""
    assert schema.keys() <= {"description", "default", "type", "enum", "items", "minimum"}
    types = [schema["type"]] if isinstance(schema.get("type", []), str) else schema.get("type", [*JSON_TYPES])
    if not any(JSON_TYPES[name](value) for name in types) or value not in schema.get("enum", [value]):
        return False
    if JSON_TYPES["number"](value) and value < schema.get("minimum", value):
        return False
    if isinstance(value, list):
        return all(fits(schema.get("items", {}), item) for item in value)
    return True


def test_the_schema_accepts_an_example_and_the_default_of_every_setting(home: Home) -> None:
    schema = json.loads(home.bydawn("config", "schema").out)
    for row in TABLE:
        mine = schema["properties"][row.key]
        assert fits(mine, row.kind.for_file([row.kind.example])), row.key
        assert row.default is None or fits(mine, mine["default"]), row.key
        assert mine["description"] == row.what


# As it stands in a file, for each of TOML's types; some settings accept some of them.
LITERALS = ["true", "5", "-5", "1.5", '"?"', '["?"]', "[5]", '[["?"]]', "{a = 1}", "1979-05-27"]


@pytest.mark.parametrize("literal", LITERALS)
def test_what_the_schema_does_not_accept_is_refused_with_its_line(home: Home, literal: str) -> None:
    """A-019, X-12: every kind refuses every wrong type, through the installed command."""
    write_user(home, "".join(f"{row.key} = {literal}\n" for row in TABLE))
    value = tomllib.loads(f"x = {literal}")["x"]
    wrong = {number: row for number, row in enumerate(TABLE, 1) if not fits(dict(row.kind.schema), value)}
    problems = {int(problem["where"].rpartition(":")[2]): problem for problem in checked(home)}
    assert {*wrong} <= {*problems}
    for number, row in wrong.items():
        assert problems[number]["what"] == f"{row.key} must be {row.kind.wanted}"
        assert problems[number]["hint"].startswith(f"write {row.key} = ")


def test_a_wrong_value_in_a_variable_is_refused_by_its_name(home: Home) -> None:
    wrong: dict[str, Any] = {row.variable: "?" for row in TABLE}
    problems = checked(home, **wrong)
    assert [(problem["where"], problem["what"]) for problem in problems] == [
        (row.variable, f"{row.key} must be {row.kind.wanted}") for row in PICKY
    ]
    assert [problem["hint"] for problem in problems] == [f"export {row.variable}={row.kind.example}" for row in PICKY]
    assert home.bydawn("run", "x", "-a", "demo", "--dry-run", BYDAWN_ROUNDS="?").code == 2


PICKY = [row for row in TABLE if row.kind.wanted not in ("a string", "a list of strings")]  # those take any word
PICKY_FLAGS = [row for row in PICKY if row.flags and row.kind.literal != (bool,)]


@pytest.mark.parametrize("row", PICKY_FLAGS, ids=lambda row: row.key)
def test_a_wrong_value_of_a_flag_is_refused_by_its_name(row: Setting) -> None:
    with pytest.raises(click.BadParameter) as refused:
        run.make_context("run", ["x", f"{row.flags[-1]}=?"])
    assert row.flags[-1] in refused.value.format_message()


def test_a_misspelt_key_is_answered_with_the_one_that_was_meant(home: Home) -> None:
    """A-020, X-12: unknown keys are reported."""
    misspelt = {f"{row.key}{row.key[-1]}": row.key for row in TABLE}
    misspelt |= {row.key.replace("_", "-"): row.key for row in TABLE if "_" in row.key}  # as the flag is written
    write_project(home, "".join(f"{key} = 1\n" for key in misspelt))
    problems = checked(home)
    assert [problem["where"] for problem in problems] == [f"bydawn.toml:{line}" for line in range(1, len(misspelt) + 1)]
    assert [problem["what"] for problem in problems] == [f"unknown setting {key!r}" for key in misspelt]
    for problem, meant in zip(problems, misspelt.values(), strict=True):
        assert problem["hint"].startswith(f"did you mean {meant}? ")


# -- a repository may only tighten -----------------------------------------------------------------------------------

TIGHTER = [row for row in TABLE if row.tighter]


def limits(row: Setting) -> tuple[str, str]:
    """A tight value of a setting and a loose one, as they stand in a file."""
    if row.kind is kinds.BUDGET:
        return '"4usd"', '"5usd"'
    if row.ladder:
        return json.dumps(row.ladder[0]), json.dumps(row.ladder[1])
    if row.key == "pause":
        return "8", "7"
    if row.tighter == "more":
        tight = [typed(row, 1), typed(row, 2)]
        return json.dumps(tight), json.dumps(tight[1:])
    if isinstance(row.kind.read(row.kind.example), str):
        return '"2090-01-01T00:00"', '"2090-01-01T00:01"'
    return "7", "8"


def test_a_project_that_loosens_what_the_user_tightened_is_refused_row_by_row(home: Home) -> None:
    mine = write_user(home, "".join(f"{row.key} = {limits(row)[0]}\n" for row in TIGHTER))
    write_project(home, "\n" + "".join(f"{row.key} = {limits(row)[1]}\n" for row in TIGHTER))
    problems = checked(home)
    assert [(problem["where"], problem["what"]) for problem in problems] == [
        (f"bydawn.toml:{line}", f"{row.key} loosens what you set yourself") for line, row in enumerate(TIGHTER, 2)
    ]
    for line, problem in enumerate(problems, 1):
        assert f"{mine}:{line} says" in problem["cause"]
    said = home.bydawn("run", "x", "-a", "cmd:touch ../canary")
    assert (said.code, said.out) == (2, "")
    assert f"{len(TIGHTER) - 1} more" in said.err
    assert not (home.root / "canary").exists()


def test_a_project_s_moment_can_be_compared_in_every_zone_at_every_hour(home: Home) -> None:
    write_user(home, 'until = "12:00"\n')
    write_project(home, 'until = "00:01"\nrounds = 5\n')
    for zone in ("XXX-23:59", "XXX23:59"):
        said = home.bydawn("config", "check", TZ=zone)
        assert (said.code in (0, 2), said.err) == (True, "")


# -- files that cannot be understood -----------------------------------------------------------------------------------

# what stands in the file · the line that is named, 0 if there is none · words of the error
BROKEN: list[tuple[str, bytes, int, str]] = [
    ("no value", b"# a\nrounds =\n", 2, "invalid TOML"),
    ("no end of a text", b'rounds = 5\nprompt = """\na\n', 4, "invalid TOML"),
    ("the same key twice", b"rounds = 5\n\nrounds = 6\n", 3, "invalid TOML"),
    ("a zero byte", b"rounds = 5\nfor = '1h\0'\n", 2, "invalid TOML"),
    ("a zero byte in disguise", b'rounds = 5\nagent = "a\\u0000b"\n', 2, "agent must be a list of strings"),
    ("nothing but zero bytes", b"\0" * 100, 1, "invalid TOML"),
    ("no UTF-8", b"rounds = 5\n# caf\xe9\n", 0, "not UTF-8"),
    ("two megabytes", b"# words\n" * (2 << 17), 0, "too big"),
    ("a number without end", b"# a\nrounds = " + b"1" * 5000 + b"\n", 2, "invalid TOML"),
    ("brackets without end", b"check = " + b"[" * 9000, 1, "invalid TOML"),
    ("a key without end", b"a" + b".a" * 10_000 + b" = 1", 1, "invalid TOML"),
    ("an unknown key", b"rounds = 5\n\nround = 6\n", 3, "unknown setting 'round'"),
    ("an unknown table", b"rounds = 5\n[extra]\nx = 1\n", 2, "unknown setting 'extra'"),
    ("an unknown empty table", b"rounds = 5\n\n[extra]\n", 3, "unknown setting 'extra'"),
    ("an unknown list of tables", b"rounds = 5\n[[extra]]\n[[extra]]\n", 2, "unknown setting 'extra'"),
    ("a table for a value", b"\n[rounds]\nx = 1\n", 2, "rounds must be a whole number"),
    ("a wrong type", b'\n\nrounds = "5"\n', 3, "rounds must be a whole number"),
    ("a wrong choice", b'done_mode = "loud"\n', 1, "done_mode must be one of"),
    ("a wrong item", b'check = [\n  "a",\n  5,\n]\n', 1, "check must be a list of strings"),
]
CANARY = ("run", "x", "-a", "cmd:touch ../canary")


@pytest.mark.parametrize("place", [PROJECT, USER])
@pytest.mark.parametrize(("name", "content", "line", "words"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_file_that_is_not_understood_is_refused_with_its_line_and_nothing_is_run(
    home: Home, name: str, content: bytes, line: int, words: str, place: str
) -> None:
    """A-019, X-12: strictly validated on startup, wrong types rejected with line."""
    path = write_user(home, content) if place == USER else write_project(home, content)
    before = everything(home)
    said = home.bydawn(*CANARY)
    first = said.err.splitlines()[0]
    where = str(path) if place == USER else PROJECT
    assert (said.code, said.out) == (2, ""), name
    assert first.startswith(f"error: {where}:{f'{line}: ' if line else ' '}")
    assert words in first
    assert everything(home) == before


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def a_link_that_leads_nowhere(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere.toml"))


def a_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


NO_FILES = [a_folder, a_pipe, a_link_to_itself, a_link_that_leads_nowhere, a_link_to_a_device]


@pytest.mark.parametrize("place", [PROJECT, USER])
@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_file_is_refused_and_not_taken_for_an_empty_one(
    home: Home, make: Callable[[Path], None], place: str
) -> None:
    path = home.repo / PROJECT if place == PROJECT else user_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    before = everything(home)
    said = home.bydawn(*CANARY)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error: {path.name if place == PROJECT else path}: ")
    assert everything(home) == before


@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_file_is_not_replaced_by_one(home: Home, make: Callable[[Path], None]) -> None:
    make(home.repo / PROJECT)
    before = everything(home)
    said = home.bydawn("config", "set", "rounds", "5")
    assert (said.code, said.out) == (2, "")
    assert PROJECT in said.err.splitlines()[0]
    assert everything(home) == before


@pytest.mark.parametrize("place", [PROJECT, USER])
def test_a_file_that_may_not_be_read_is_refused_and_not_left_out(home: Home, place: str) -> None:
    path = write_project(home, "rounds = 5\n") if place == PROJECT else write_user(home, "rounds = 5\n")
    path.chmod(0)
    # Root reads everything, unless these capabilities are taken away.
    dropped = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    said = home.bydawn(*CANARY, before=dropped)
    assert (said.code, said.out) == (2, "")
    assert path.name in said.err.splitlines()[0]
    assert "cannot be read" in said.err.splitlines()[0]
    assert not (home.root / "canary").exists()
    assert not home.states.exists()


@pytest.mark.parametrize("mode", [0o666, 0o646])
def test_a_user_s_file_that_others_can_write_to_is_refused(home: Home, mode: int) -> None:
    write_user(home, "rounds = 5\n").chmod(mode)
    said = home.bydawn(*CANARY)
    assert said.code == 2
    assert "other users can write to it" in said.err
    assert "chmod go-w" in said.err
    assert not home.states.exists()


@pytest.mark.parametrize("layer", [Layer.PROJECT, Layer.USER])
def test_a_file_of_somebody_else_is_not_read(tmp_path: Path, layer: Layer) -> None:
    path = tmp_path / "bydawn.toml"
    path.write_text("rounds = 5\n")
    ours = files.File(path=path, layer=layer, owners=frozenset({os.getuid()}))
    assert [given.value for given in files.read(ours).given] == [5]
    theirs = files.File(path=path, layer=layer, owners=frozenset({os.getuid() + 1}))
    reading = files.read(theirs)
    assert reading.given == ()
    assert [problem.what for problem in reading.problems] == ["it belongs to another user"]


def test_a_project_s_file_may_be_ours_root_s_or_of_the_folder_s_owner(home: Home) -> None:
    """Through the command where files can be given away; the owners that count are the same for everybody."""
    assert files.project_file(home.repo).owners == {os.getuid(), 0, home.repo.stat().st_uid}
    assert files.user_file().owners == {os.getuid(), 0}
    if os.geteuid() == 0:
        os.chown(write_project(home, "rounds = 5\n"), 4321, 4321)
        [problem] = checked(home)
        assert problem["where"] == PROJECT
        assert "user 4321" in problem["cause"]
        assert home.bydawn(*CANARY).code == 2
        assert not (home.root / "canary").exists()
        os.chown(home.repo, 4321, 4321)
        assert checked(home, code=0) == []


@pytest.mark.parametrize("name", [PROJECT, "link-to-link"])
def test_a_link_out_of_the_workspace_is_not_followed(home: Home, name: str) -> None:
    (home.root / "outside.toml").write_text("rounds = 5\n")
    (home.repo / name).symlink_to(home.root / "outside.toml")
    if name != PROJECT:
        (home.repo / PROJECT).symlink_to(name)
    before = everything(home)
    for arguments in (CANARY, ("config", "set", "rounds", "6"), ("config", "unset", "rounds")):
        said = home.bydawn(*arguments)
        assert (said.code, said.out) == (2, "")
        assert "not in the workspace" in said.err
    assert everything(home) == before


@pytest.mark.parametrize("target", ["new.toml", "no-such-folder/new.toml"])
def test_nothing_is_written_out_of_the_workspace_through_a_link_that_leads_nowhere_yet(home: Home, target: str) -> None:
    (home.repo / PROJECT).symlink_to(home.root / target)
    before = everything(home)
    assert home.bydawn("config", "set", "rounds", "5").code == 2
    assert everything(home) == before


PYPROJECTS: list[tuple[str, bytes, str]] = [
    ("broken below our table", b"[tool.bydawn]\nrounds = 5\n\noops\n", "pyproject.toml:4: invalid TOML"),
    ("broken above our table", b"oops\n[tool.bydawn]\nrounds = 5\n", "pyproject.toml:1: invalid TOML"),
    ("not a table", b"[tool]\nbydawn = 5\n", "pyproject.toml:2: "),
    ("a list of tables", b"[[tool.bydawn]]\nrounds = 5\n", "pyproject.toml:1: "),
    ("no UTF-8", b"# caf\xe9\n[tool.bydawn]\nrounds = 5\n", "pyproject.toml: "),
    ("an unknown key", b"[project]\nname = 'x'\n[tool.bydawn]\nround = 5\n", "pyproject.toml:4: unknown setting"),
]


@pytest.mark.parametrize(("name", "content", "first"), PYPROJECTS, ids=[row[0] for row in PYPROJECTS])
def test_a_pyproject_that_speaks_of_us_is_refused_when_it_is_not_understood(
    home: Home, name: str, content: bytes, first: str
) -> None:
    """A-019: settings that were written down are never silently left out."""
    write_project(home, content, PYPROJECT)
    said = home.bydawn(*CANARY)
    assert (said.code, said.out) == (2, ""), name
    assert said.err.startswith(f"error: {first}")
    assert not (home.root / "canary").exists()


@pytest.mark.parametrize(("name", "content", "first"), PYPROJECTS[:-1], ids=[row[0] for row in PYPROJECTS[:-1]])
def test_a_pyproject_that_is_not_understood_is_not_written_to_nor_written_around(
    home: Home, name: str, content: bytes, first: str
) -> None:
    write_project(home, content, PYPROJECT)
    before = everything(home)
    said = home.bydawn("config", "set", "for", "1h")
    assert (said.code, said.out) == (2, ""), name
    assert first.partition(":")[0] in said.err.splitlines()[0]
    assert everything(home) == before


@pytest.mark.parametrize("content", [b"oops", b"[project]\nname = 'x'\n", b"tool = 5\n", b"caf\xe9", b""])
def test_a_pyproject_that_does_not_speak_of_us_is_somebody_else_s_business(home: Home, content: bytes) -> None:
    write_project(home, content, PYPROJECT)
    assert checked(home, code=0) == []


BIG = [
    ("a long list", "check = [\n" + '"a",\n' * 100_000 + "]\nround = 1\n", 100_003),
    ("a long text", 'prompt = """\n' + "rounds = 1\n" * 50_000 + '"""\nround = 1\n', 50_003),
    ("many comments", "# words\n" * 100_000 + "round = 1\n", 100_001),
]


@pytest.mark.parametrize(("name", "text", "line"), BIG, ids=[row[0] for row in BIG])
def test_a_file_of_a_hundred_thousand_lines_is_read_in_a_moment(home: Home, name: str, text: str, line: int) -> None:
    write_project(home, text)
    said = home.bydawn("config", "check", "--json")
    assert [problem["where"] for problem in json.loads(said.out)["problems"]] == [f"bydawn.toml:{line}"], name


def test_many_unknown_keys_are_refused_in_a_moment(home: Home) -> None:
    write_project(home, "".join(f'"a.{number}" = 1\n' for number in range(8_000)))
    said = home.bydawn(*CANARY)
    assert said.code == 2
    assert "7999 more" in said.err


def test_a_look_goes_on_with_what_is_understood_and_says_what_is_not(home: Home) -> None:
    write_project(home, "rounds = 6\nfro = 1\n")
    said = home.bydawn("config", "get", "rounds")
    assert (said.code, said.out) == (0, "6\n")
    assert said.err == "warning: bydawn.toml:2: unknown setting 'fro'\n"


# -- lines -------------------------------------------------------------------------------------------------------------

LINES: list[tuple[str, str, dict[str, int]]] = [
    ("one after the other", "rounds = 1\nfor = 2\n", {"rounds": 1, "for": 2}),
    ("comments and blank lines", "# a\n\nrounds = 1 # rounds = 2\n  # for = 9\n\n\nfor = 2", {"rounds": 3, "for": 7}),
    ("a list of several lines", 'check = [\n  "a", # ]\n\n  "b = [",\n]\nrounds = 1\n', {"check": 1, "rounds": 6}),
    ("a text of several lines", 'prompt = """\na\nrounds = 5\n[x]\n"""\nrounds = 1\n', {"prompt": 1, "rounds": 6}),
    ("a raw text of several lines", "prompt = '''\nrounds = \"\"\"\n'''\nrounds = 1\n", {"prompt": 1, "rounds": 4}),
    ("quotes before the end of a text", 'prompt = """\na""\n"""""\nrounds = 1\n', {"prompt": 1, "rounds": 4}),
    ("an escaped end of a text", 'prompt = """\n\\"""\nrounds = 9\\\\"""\nrounds = 1\n', {"prompt": 1, "rounds": 4}),
    ("a text that goes on", 'prompt = """a \\\n   rounds = 5"""\nrounds = 1\n', {"prompt": 1, "rounds": 3}),
    ("signs inside of a text", "agent = \"a # = [ ' {\"\nrounds = 1\n", {"agent": 1, "rounds": 2}),
    ("an empty text", "agent = ''\nrounds = 1\n", {"agent": 1, "rounds": 2}),
    ("a quoted key", '\n"rounds" = 1\n\'for\' = 2\n', {"rounds": 2, "for": 3}),
    ("a key with a dot in quotes", 'rounds = 1\n"a.b" = 1\n', {"rounds": 1, "a.b": 2}),
    ("a key with an equals sign in quotes", 'rounds = 1\n"a=#b" = 1\nfor = 1\n', {"rounds": 1, "a=#b": 2, "for": 3}),
    ("a dotted key", "rounds = 1\nextra.rounds = 1\nextra.b = 1\n", {"rounds": 1, "extra": 2}),
    ("a table", "rounds = 1\n\n[extra]\n\nrounds = 2\n", {"rounds": 1, "extra": 3}),
    ("a table and more of it later", "[extra.a]\nx = 1\n[other]\n[extra.b]\n", {"extra": 1, "other": 3}),
    ("a list of tables", "rounds = 1\n[[extra]]\nx = 1\n[[extra]]\n", {"rounds": 1, "extra": 2}),
    ("a table in one line", "rounds = 1\nextra = {rounds = 1, b = 2}\nfor = 2", {"rounds": 1, "extra": 2, "for": 3}),
    ("much room", "\t rounds\t=  1\n  [ extra ] # x\n", {"rounds": 1, "extra": 2}),
    ("lines of other systems", "for = 1\r\n\r\ncheck = [\r\n'a']\r\nrounds = 2", {"for": 1, "check": 3, "rounds": 5}),
    ("a mark at the beginning", "\ufeffrounds = 1\nfor = 2\n", {"rounds": 1, "for": 2}),
    ("letters of other alphabets", 'agent = "世界 🌙"\nrounds = 1\n', {"agent": 1, "rounds": 2}),
    ("a line that only other programs break", 'agent = "a\u2028b\x85c"\nrounds = 1\n', {"agent": 1, "rounds": 2}),
]  # fmt: skip


def told(path: Path, layer: Layer, *table: str) -> dict[str, int]:
    """The line that is told for each key of a file, understood or not."""
    reading = files.read(files.File(path=path, layer=layer, table=table, owners=frozenset({os.getuid()})))
    given = {each.key: each.where for each in reading.given}
    problems = {
        each.what.split("'")[1] if "'" in each.what else each.what.split()[0]: each.where for each in reading.problems
    }
    found = given | problems
    return {key: int(where.rpartition(":")[2]) if ":" in where else 0 for key, where in found.items()}


@pytest.mark.parametrize("layer", [Layer.PROJECT, Layer.USER])
@pytest.mark.parametrize(("name", "text", "lines"), LINES, ids=[row[0] for row in LINES])
def test_every_key_is_told_with_the_line_it_stands_on(
    tmp_path: Path, layer: Layer, name: str, text: str, lines: dict[str, int]
) -> None:
    path = tmp_path / "bydawn.toml"
    path.write_bytes(text.encode())
    assert told(path, layer) == lines, name


IN_PYPROJECT: list[tuple[str, str, dict[str, int]]] = [
    ("a table", "[tool.x]\nrounds = 9\n[tool.bydawn] # here\n\nrounds = 1\n[tool.y]\nrounds = 8\n", {"rounds": 5}),
    ("a table in quotes", "rounds = 1\n[ tool . \"bydawn\" ]\nrounds = 1\n", {"rounds": 3}),
    ("dotted keys", "\ntool.bydawn.rounds = 1\ntool.bydawn.for = 1\n", {"rounds": 2, "for": 3}),
    ("dotted keys in a table", "[tool]\nx.rounds = 1\nbydawn.rounds = 1\n", {"rounds": 3}),
    ("a table in one line", "[tool]\nx = 1\nbydawn = {rounds = 1, for = 2}\n", {"rounds": 3, "for": 3}),
    ("all in one line", "\ntool = {bydawn = {rounds = 1, for = 2}, x = 1}\n", {"rounds": 2, "for": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "lines"), IN_PYPROJECT, ids=[row[0] for row in IN_PYPROJECT])
def test_in_a_pyproject_the_line_is_the_one_of_our_own_table(
    tmp_path: Path, name: str, text: str, lines: dict[str, int]
) -> None:
    path = tmp_path / PYPROJECT
    path.write_text(text)
    assert told(path, Layer.PROJECT, "tool", "bydawn") == lines, name


# -- set and unset -----------------------------------------------------------------------------------------------------

A_FILE = """\
# What this project needs.

rounds = 12   # a night's worth
# check = ["old"]
check = [
  "make test",  # slow
  "make lint",
]
"unknown-key" = 1979-05-27

[extra] # not ours
b = {y = 2, x = 1}
a = '''
rounds = 5
'''
"""


def changed(home: Home, *words: str, **options: Any) -> str:
    """What stands in the project's file after `config …`."""
    said = home.bydawn("config", *words, **options)
    assert (said.code, said.err) == (0, "")
    return (home.repo / PROJECT).read_bytes().decode()


def test_setting_a_value_changes_that_value_and_nothing_else(home: Home) -> None:
    """A-020, X-12: comments, order and unknown keys are kept."""
    write_project(home, A_FILE)
    assert changed(home, "set", "rounds", "7") == A_FILE.replace("rounds = 12 ", "rounds = 7 ")


def test_setting_a_new_value_adds_it_to_our_own_part_and_nothing_else(home: Home) -> None:
    write_project(home, A_FILE)
    text = changed(home, "set", "tasks", "TODO.md")
    assert tomllib.loads(text) == {**tomllib.loads(A_FILE), "tasks": "TODO.md"}
    assert [line for line in text.splitlines() if line and line != 'tasks = "TODO.md"'] == [
        *filter(None, A_FILE.splitlines())
    ]


def test_unsetting_takes_out_that_key_and_nothing_else(home: Home) -> None:
    write_project(home, A_FILE)
    text = changed(home, "unset", "check")
    wanted = tomllib.loads(A_FILE)
    del wanted["check"]
    assert tomllib.loads(text) == wanted
    assert [line for line in text.splitlines() if "#" in line] == [
        line for line in A_FILE.splitlines() if "#" in line and "slow" not in line
    ]


# the file · the key · what the file says afterwards
ENDS = [
    ("rounds = 5", "rounds = 5\nfor = \"1h\""),  # no newline at the end
    ("", "for = \"1h\""),
    ("# only words", "# only words\nfor = \"1h\""),
    ("rounds = 5\r\n# words\r\n", "rounds = 5\r\n# words\r\nfor = \"1h\""),
    ("for = 5 # seconds\r\n", "for = \"1h\" # seconds"),
    ("for = 5 # seconds\n\n\n", "for = \"1h\" # seconds"),
    ("'for' = 5", "'for' = \"1h\""),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), ENDS)
def test_lines_end_as_they_did(home: Home, before: str, after: str) -> None:
    write_project(home, before)
    text = changed(home, "set", "for", "1h")
    assert text.strip() == after
    assert text.count("\r\n") == (text.count("\n") if "\r" in before else 0)


def test_every_setting_can_be_written_by_the_command_and_read_back(here: Home) -> None:
    """Through the operation behind `config set --user` and `config get`: one process instead of a hundred."""
    from bydawn.operations.settings import change

    for row in TABLE:
        change(files.user_file(), row.key, [typed(row, 4)])
    found = gather(None)
    assert {row.key: found[row.key].value for row in TABLE} == {
        row.key: row.kind.from_words([typed(row, 4)]) for row in TABLE
    }
    for row in TABLE:
        change(files.user_file(), row.key, [])
    assert user_path(here).read_text().strip() == ""


def test_several_values_make_a_list_and_one_does_too(home: Home) -> None:
    assert tomllib.loads(changed(home, "set", "check", "make test", "ruff check")) == {
        "check": ["make test", "ruff check"]
    }
    assert tomllib.loads(changed(home, "set", "check", "make test")) == {"check": ["make test"]}


# what is typed · words of the error
REFUSED = [
    (["rounds", "many"], "rounds must be a whole number"),
    (["rounds", "-5"], "rounds must be a whole number"),
    (["rounds", "5", "6"], "rounds takes a single value"),
    (["for", "soon"], "for must be a duration"),
    (["agent", " "], "agent must be a list of strings"),
    (["require_text", "a::b", "c"], "require_text must be a list of FILE::TEXT"),
    (["round", "5"], "no setting 'round'"),
    (["plain", "true"], "plain cannot be set by a project"),
    (["rounds"], "VALUE"),
]


@pytest.mark.parametrize(("words", "error"), REFUSED, ids=lambda value: str(value))
def test_a_value_that_is_wrong_is_not_written(home: Home, words: list[str], error: str) -> None:
    write_project(home, A_FILE)
    before = everything(home)
    said = home.bydawn("config", "set", *words)
    assert (said.code, said.out) == (2, "")
    assert error in said.err.splitlines()[0]
    assert everything(home) == before


@pytest.mark.parametrize("row", [row for row in TABLE if Layer.PROJECT not in row.layers], ids=lambda row: row.key)
def test_what_a_repository_has_no_say_in_is_not_written_there_but_into_one_s_own_file(home: Home, row: Setting) -> None:
    before = everything(home)
    said = home.bydawn("config", "set", row.key, typed(row, 1))
    assert said.code == 2
    assert f"bydawn config set --user {row.key}" in said.err
    assert everything(home) == before
    assert home.bydawn("config", "set", "--user", row.key, typed(row, 1)).code == 0
    assert [*tomllib.loads(user_path(home).read_text())] == [row.key]
    assert not (home.repo / PROJECT).exists()


def test_an_agent_can_look_at_settings(home: Home) -> None:
    write_project(home, A_FILE)
    assert home.bydawn("config", "get", "rounds", BYDAWN_COOKIE="abc").out == "12\n"


def test_in_a_pyproject_our_own_table_is_written_in_place(home: Home) -> None:
    text = '[project]\nname = "x" # x\n\n[tool.bydawn] # ours\nrounds = 5 # five\n\n[tool.other]\nrounds = 9\n\n[end]\n'
    path = write_project(home, text, PYPROJECT)
    assert home.bydawn("config", "set", "rounds", "6").code == 0
    assert path.read_text() == text.replace("rounds = 5", "rounds = 6")
    assert home.bydawn("config", "set", "for", "1h").code == 0
    wanted = tomllib.loads(text)
    wanted["tool"]["bydawn"] = {"rounds": 6, "for": "1h"}
    assert tomllib.loads(path.read_text()) == wanted
    assert shown(home)["for"]["where"] == "pyproject.toml:6"
    assert not (home.repo / PROJECT).exists()


@pytest.mark.parametrize(
    "text",
    [
        "[tool.a]\nx = 1\n[project]\n[tool.bydawn]\nrounds = 5\n[x]\n[tool.b]\ny = 1\n",  # all over the place
        "[tool]\nbydawn = {rounds = 5}\n[x]\n",
        "tool.bydawn.rounds = 5\ntool.x = 1\n",
        "[tool]\nbydawn.rounds = 5\nx = 1\n",
        "[tool.bydawn]\n",
    ],
)
def test_however_our_table_is_written_in_a_pyproject_the_rest_stays_the_same(home: Home, text: str) -> None:
    path = write_project(home, text, PYPROJECT)
    for key, value in (("rounds", "6"), ("for", "1h")):
        assert home.bydawn("config", "set", key, value).code == 0
    wanted = tomllib.loads(text)
    wanted["tool"]["bydawn"] = {"rounds": 6, "for": "1h"}
    assert tomllib.loads(path.read_text()) == wanted


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o600, 0o440])
def test_whoever_could_read_the_file_still_can(home: Home, mode: int) -> None:
    path = write_project(home, A_FILE)
    path.chmod(mode)
    changed(home, "set", "rounds", "7", umask=0o077)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_a_link_and_no_draft_is_left(home: Home) -> None:
    (home.repo / "etc").mkdir()
    (home.repo / "etc/real.toml").write_text(A_FILE)
    (home.repo / PROJECT).symlink_to("etc/real.toml")
    changed(home, "set", "rounds", "7")
    assert (home.repo / PROJECT).readlink() == Path("etc/real.toml")
    assert "rounds = 7" in (home.repo / "etc/real.toml").read_text()
    assert [path.name for path in (home.repo / "etc").iterdir()] == ["real.toml"]
    assert {path.name for path in home.repo.iterdir()} == {".git", "README.md", "etc", PROJECT}


def test_a_user_s_file_may_be_a_link_to_where_they_keep_such_things(home: Home) -> None:
    kept = home.root / "home/dotfiles/bydawn.toml"
    kept.parent.mkdir()
    kept.write_text("# mine\n")
    user_path(home).parent.mkdir(parents=True)
    user_path(home).symlink_to(kept)
    assert home.bydawn("config", "set", "--user", "rounds", "7").code == 0
    assert user_path(home).readlink() == kept
    assert kept.read_text() == "# mine\nrounds = 7\n"
    assert [path.name for path in kept.parent.iterdir()] == ["bydawn.toml"]


def test_a_file_that_cannot_be_written_stays_as_it_was(home: Home) -> None:
    write_project(home, A_FILE)
    home.repo.chmod(0o555)
    dropped = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    before = everything(home)
    said = home.bydawn("config", "set", "rounds", "7", before=dropped)
    home.repo.chmod(0o755)
    assert (said.code, said.out) == (2, "")
    assert "bydawn.toml cannot be written" in said.err
    assert everything(home) == before


def test_where_the_disk_is_full_the_file_stays_as_it_was_and_no_draft_is_left(home: Home) -> None:
    write_project(home, A_FILE)
    before = everything(home)
    said = home.bydawn("config", "set", "prompt", "x" * 9000, before=["prlimit", "--fsize=4096"])
    assert said.code in (1, 2)
    assert (said.out, said.err[:7]) == ("", "error: ")
    assert everything(home) == before


def test_a_broken_file_is_not_written_over(home: Home) -> None:
    write_project(home, "rounds = 5\noops\n")
    before = everything(home)
    for words in (("set", "rounds", "6"), ("unset", "rounds")):
        said = home.bydawn("config", *words)
        assert said.code == 2
        assert said.err.startswith("error: bydawn.toml:2: invalid TOML")
    assert everything(home) == before


def test_unsetting_what_is_not_set_writes_nothing(home: Home) -> None:
    before = everything(home)
    home.bydawn("config", "unset", "rounds")
    home.bydawn("config", "unset", "--user", "rounds")
    assert home.bydawn("config", "unset", "round").code == 2
    assert everything(home) == before


# -- get, check, path --------------------------------------------------------------------------------------------------


def test_get_prints_the_value_and_with_origin_every_place(home: Home) -> None:
    mine = write_user(home, 'rounds = 20\ncheck = ["a", "b"]\n')
    write_project(home, "\nrounds = 12\n")
    assert home.bydawn("config", "get", "rounds", BYDAWN_ROUNDS="9").out == "9\n"
    assert home.bydawn("config", "get", "check").out == "a\nb\n"
    assert home.bydawn("config", "get", "agent").out == "codex, or else claude\n"
    assert home.bydawn("config", "get", "model").out == "\n"
    assert home.bydawn("config", "get", "rounds", "--origin", BYDAWN_ROUNDS="9").out.splitlines() == [
        "  → BYDAWN_ROUNDS: 9",
        "    bydawn.toml:2: 12",
        f"    {mine}:1: 20",
        "    default: 30",
    ]
    found = json.loads(home.bydawn("config", "get", "rounds", "--origin", "--json", BYDAWN_ROUNDS="9").out)
    assert found["schema"] == 1
    assert found["key"] == "rounds"
    assert [(row["value"], row["layer"]) for row in found["values"]] == [
        (9, "environment"),
        (12, "project"),
        (20, "user"),
        (30, "default"),
    ]
    assert len(json.loads(home.bydawn("config", "get", "rounds", "--json").out)["values"]) == 1


def test_get_of_an_unknown_key_asks_what_was_meant(home: Home) -> None:
    said = home.bydawn("config", "get", "round")
    assert (said.code, said.out) == (2, "")
    assert "did you mean rounds?" in said.err


def test_check_says_yes_with_0_and_no_with_2(home: Home) -> None:
    write_project(home, "rounds = 5\n")
    said = home.bydawn("config", "check")
    assert (said.code, said.out) == (0, "  ✓ Every setting is valid.\n")
    write_project(home, "rounds = 5\nround = 5\nfor = 'x'\n")
    said = home.bydawn("config", "check")
    assert said.code == 2
    assert [line for line in said.out.splitlines() if "✗" in line] == [
        "  ✗ bydawn.toml:2: unknown setting 'round'",
        "  ✗ bydawn.toml:3: for must be a duration",
    ]
    assert "✓" not in said.out


def test_check_warns_of_variables_that_look_like_ours_and_mean_nothing(home: Home) -> None:
    strange: dict[str, Any] = {"BYDAWN_ROUND_TIMOUT": "5m", "BYDAWN_": "x", "BYDAWN_ZZZ": "x"}
    known: dict[str, Any] = {row.variable: row.kind.example for row in TABLE} | dict.fromkeys(OTHER_VARIABLES, "1")
    said = home.bydawn("config", "check", "--json", **known, **strange)
    assert said.code == 0
    warnings = json.loads(said.out)["warnings"]
    assert [warning.split()[0] for warning in warnings] == ["BYDAWN_", "BYDAWN_ROUND_TIMOUT", "BYDAWN_ZZZ"]
    assert "did you mean BYDAWN_ROUND_TIMEOUT?" in warnings[1]
    assert "did you mean" not in warnings[2]
    assert "BYDAWN_ROUND_TIMOUT" in home.bydawn("config", "check", **strange).out
    said = home.bydawn("run", "x", "-a", home.rounds([OK]), "--once", "--plain", **strange)
    assert "BYDAWN_ROUND_TIMOUT" in said.out + said.err


def test_path_names_the_files_and_whether_they_are_there(home: Home) -> None:
    files = json.loads(home.bydawn("config", "path", "--json").out)
    assert files["project"] == {"path": str(home.repo / PROJECT), "exists": False}
    assert files["user"] == {"path": str(user_path(home)), "exists": False}
    write_project(home, "[tool.bydawn]\n", PYPROJECT)
    write_user(home, "")
    files = json.loads(home.bydawn("config", "path", "--json").out)
    assert files["project"] == {"path": str(home.repo / PYPROJECT), "exists": True}
    assert files["user"]["exists"] is True
    write_project(home, "")
    assert str(home.repo / PROJECT) in home.bydawn("config", "path").out


def test_another_folder_s_settings_are_looked_at_with_cd(home: Home) -> None:
    (home.root / "other").mkdir()
    (home.root / "other" / PROJECT).write_text("rounds = 3\n")
    assert home.bydawn("config", "get", "rounds", "-C", "../other").out == "3\n"
    assert home.bydawn("config", "set", "rounds", "4", "-C", "../other").code == 0
    assert (home.root / "other" / PROJECT).read_text() == "rounds = 4\n"
    assert home.bydawn("config", "get", "rounds", "-C", "nowhere").code == 2


def test_a_setting_that_needs_another_may_stand_alone_in_a_file_and_not_as_a_flag(home: Home) -> None:
    (home.repo / "bydawn.toml").write_text('check_where = "clean"\non_hook_failure = "block"\nsession_rounds = 3\n')
    assert home.bydawn("run", "x", "-a", "demo", "--dry-run").code == 0
    for idle in (["--check-where", "workspace"], ["--on-hook-failure", "ignore"]):
        assert home.bydawn("run", "x", "-a", "demo", *idle, "--dry-run").code == 0
    for words in (["--check-where", "clean", "-k", "true"], ["--on-hook-failure", "block", "--on-pause", "true"]):
        assert home.bydawn("run", "x", "-a", "demo", *words, "--dry-run").code == 0
