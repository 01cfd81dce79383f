"""Another tool's configuration against the table of its keys."""

from typing import Annotated

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.keys import Checked, Configuration, Key, Kind, checked, filled, keys_of
from bydawn.settings.yaml import parse


class Extra(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[str, Key(kind=Kind.TEXT)]
    path: Annotated[str, Key(kind=Kind.PATH)]
    include: bool = False


class Docs(msgspec.Struct, frozen=True):
    todo: Annotated[str, Key(kind=Kind.PATH)] = "TODO.md"
    extras: tuple[Extra, ...] = ()


class Runner(msgspec.Struct, frozen=True):
    sleep_seconds: float = 5.0
    stop_after_runs: Annotated[int | None, Key(least=1)] = None
    share: float = 0.5


class Config(Configuration, frozen=True, kw_only=True):
    version: Annotated[int, Key(least=1)] = 1
    docs: Docs = Docs()
    binary: Annotated[str, Key("codex.binary", Kind.TEXT)] = "codex"
    args: Annotated[tuple[str, ...], Key("codex.args")] = ("--yolo", "exec")
    runner: Runner = Runner()
    auto_commit: Annotated[bool, Key("git.auto_commit")] = False


KEYS = tuple(keys_of(Config))


def read(text: str, keys: tuple[Key, ...] = KEYS) -> Checked:
    return checked(parse(text, "config.yml"), keys, "config.yml")


def refused(text: str, keys: tuple[Key, ...] = KEYS) -> UserError:
    with pytest.raises(UserError) as caught:
        read(text, keys)
    assert caught.value.cause
    assert caught.value.hint
    return caught.value


def test_a_file_without_a_word_has_every_default() -> None:
    found = filled(Config, read("docs:\n"), KEYS)
    assert found == Config(where=dict.fromkeys((key.path for key in KEYS), "config.yml"))


def test_what_a_file_sets_is_found_with_its_line() -> None:
    found = read(
        "docs:\n  todo: ./a//b.md\n  extras:\n    - {name: spec, path: docs/spec.md}\n"
        "codex:\n  args:\n    - exec\n    - -m\n"
        "runner: {sleep_seconds: 0.5, stop_after_runs: 3}\ngit: {auto_commit: true}\n"
    )
    config = filled(Config, found, KEYS)
    assert config.docs == Docs(todo="a/b.md", extras=(Extra(name="spec", path="docs/spec.md"),))
    assert (config.args, config.auto_commit) == (("exec", "-m"), True)
    assert config.runner == Runner(sleep_seconds=0.5, stop_after_runs=3)
    assert (config.where["docs.todo"], found.where("codex.args.1")) == ("config.yml:2", "config.yml:8")
    assert found.items("docs.extras")[0].where("path") == "config.yml:4"


@pytest.mark.parametrize(
    ("text", "what", "cause", "hint"),
    [
        (
            "runner:\n  sleep_seconds: soon",
            "config.yml:2: runner.sleep_seconds must be a number of seconds, 0 or more",
            'it is "soon" (text)',
            "write sleep_seconds: 5",
        ),
        (
            "runner: {stop_after_runs: 0}",
            "config.yml:1: runner.stop_after_runs must be a whole number, 1 or more, or null",
            "it is 0 (a number)",
            "write stop_after_runs: null",
        ),
        (
            "codex:\n  args: exec --yolo",
            "config.yml:2: codex.args must be a list of texts",
            'it is "exec --yolo" (text)',
            'write args: ["--yolo","exec"]',
        ),
        (
            "codex:\n  args:\n    - exec\n    -\n",
            "config.yml:4: codex.args must be a list of texts",
            "it is empty",
            'write args: ["--yolo","exec"]',
        ),
        ("docs:", "config.yml:1: name is missing", "it must be a text", "add name: …"),
        (
            "- a",
            "config.yml:1: this is not a mapping",
            "the file must have `key: value` lines",
            "fix that line",
        ),
    ],
)
def test_a_wrong_value_is_told_with_its_line_what_was_expected_and_an_example(
    text: str, what: str, cause: str, hint: str
) -> None:
    error = refused(text, (*KEYS, Key("name", Kind.TEXT)) if "missing" in what else KEYS)
    assert (error.what, error.cause, error.hint) == (what, cause, hint)


@pytest.mark.parametrize(
    "text",
    [
        "version: 0",
        "version: 1.5",
        "version: true",
        "version:",
        "docs: TODO.md",
        "docs: [TODO.md]",
        "docs: {todo: ''}",
        "docs: {todo: /etc/passwd}",
        "docs: {todo: ../x}",
        "docs: {todo: a/../../x}",
        "docs: {todo: ~/x}",
        "docs: {todo: -x}",
        "docs: {todo: .}",
        'docs: {todo: "a\\nb"}',
        "docs: {todo: 5}",
        "docs: {extras: {name: x}}",
        "docs: {extras: [x]}",
        "docs: {extras: [{name: x}]}",
        "docs: {extras: [{name: x, path: ../y}]}",
        "codex: {args: ['exec', '']}",
        "codex: {args: [5]}",
        "codex: {binary: ' '}",
        "runner: {sleep_seconds: -1}",
        "runner: {sleep_seconds: .inf}",
        "runner: {sleep_seconds: .nan}",
        "runner: {sleep_seconds: 1e99}",
        "runner: {stop_after_runs: 99999999999999999999}",
        "git: {auto_commit: yes}",  # a text in YAML 1.2
        "git: {auto_commit: 1}",
    ],
)
def test_a_value_of_another_kind_is_refused(text: str) -> None:
    assert refused(text).what.startswith("config.yml:1: ")


def test_unknown_keys_are_named_once_each_with_what_may_be_meant() -> None:
    found = read(
        "runner:\n  sleep_second: 3\nserver: {host: x}\ncodex.args: [a]\n"
        "docs:\n  extras: [{name: a, path: b, also: 1}]\n"
    )
    assert found.remarks == (
        "config.yml:2: unknown key 'runner.sleep_second' has no effect; did you mean runner.sleep_seconds?",
        "config.yml:3: unknown key 'server' has no effect",
        "config.yml:4: unknown key 'codex.args' has no effect",
        "config.yml:6: unknown key 'also' has no effect",
    )
    assert found.values["codex.args"] == ("--yolo", "exec")


def test_a_file_of_unknown_keys_does_not_fill_the_screen() -> None:
    remarks = read("".join(f"k{number}: 1\n" for number in range(500))).remarks
    assert len(remarks) == 21
    assert remarks[-1] == "config.yml: 480 more unknown keys have no effect"
