"""What rloop's files say, and what that means to us."""

import itertools

import pytest

from bydawn.core.errors import UserError
from bydawn.core.keys import checked, stacked
from bydawn.dialects.rloop.arguments import start
from bydawn.dialects.rloop.config import (
    KEYS,
    PROJECT,
    SKIP,
    Config,
    agent_settings,
    from_project,
    origins,
    overridden,
    read,
)
from bydawn.settings.yaml import parse, typed

# FR-7 of the document, as it is.
DOCUMENT = """\
defaults:
  max_iterations: 30
  task_file: PRD.md
  completion_marker: COMPLETE
  model: claude-sonnet-4-20250514
  
claude:
  flags:
    - --dangerously-skip-permissions
  env:
    IS_SANDBOX: "1"

notifications:
  on_complete: true
  webhook: https://hooks.example.com/notify  # optional
  
logging:
  level: info
  retain_days: 7
"""  # noqa: W293 - the blanks are the document's
BY_PATH = {key.path: key for key in KEYS}


def config(user: str = "", project: str | None = None, **typed_: str) -> Config:
    layers = [checked(parse(user, "config.yaml"), KEYS, "config.yaml")]
    layers += [] if project is None else [checked(parse(project, PROJECT), KEYS, PROJECT)]
    for name, text in typed_.items():
        key = next(each for each in KEYS if name in (each.variable, each.name))
        layers.append(typed(text, key, name if name == key.variable else key.flag))
    return read(stacked(KEYS, layers, PROJECT))


def refused(**typed_: str) -> UserError:
    with pytest.raises(UserError) as caught:
        config(**typed_)
    assert caught.value.cause
    assert caught.value.hint
    return caught.value


def test_the_file_of_the_document_is_read_as_it_is() -> None:
    """R-050: without it, nothing differs but the model, which is not pinned, and the address."""
    found = config(DOCUMENT)
    assert (found.model, found.webhook) == ("claude-sonnet-4-20250514", "https://hooks.example.com/notify")
    assert found.remarks == ()
    assert (found.where["claude.env"], found.where["defaults.backend"]) == ("config.yaml:10", "default")
    usual = config()
    different = {name for name in Config.__struct_fields__ if getattr(usual, name) != getattr(found, name)}
    assert different == {"model", "webhook", "where"}
    assert usual == Config(where=dict.fromkeys(BY_PATH, "default"))


def test_each_layer_is_stronger_than_the_one_before() -> None:
    """R-050"""
    user = "defaults: {max_iterations: 20, task_file: A.md, model: a, completion_marker: A}"
    project = "defaults:\n  max_iterations: 10\n  task_file: docs/B.md\n  model: b"
    found = config(user, project, RLOOP_TASK_FILE="C.md", RLOOP_MODEL="c", model="d")
    assert (found.max_iterations, found.task_file, found.model) == (10, "C.md", "d")
    assert {key.partition(".")[2]: where for key, where in found.where.items() if where != "default"} == {
        "max_iterations": ".rloop.yaml:2",
        "task_file": "RLOOP_TASK_FILE",
        "completion_marker": "config.yaml:1",
        "model": "--model",
    }
    assert [key for key in found.where if from_project(found, key)] == ["defaults.max_iterations"]


def test_a_project_replaces_a_list_or_a_mapping_as_a_whole_and_can_set_a_value_to_nothing() -> None:
    found = config("claude: {env: {A: x, B: y}, flags: [--a, --b]}", "claude: {env: {C: z}, flags: []}")
    assert (found.env, found.flags) == ({"C": "z"}, ())
    for nothing in ("null", "", '""'):
        assert config("defaults: {model: a}", f"defaults: {{model: {nothing}}}").model is None


@pytest.mark.parametrize("user", ["", "defaults: {max_iterations: 40}"])
def test_a_project_can_lower_the_cap_and_raises_it_only_with_trust(user: str) -> None:
    raising = "defaults:\n  max_iterations: 500"
    found = config(user, raising)
    assert (found.max_iterations, found.raised) == (500, ("defaults.max_iterations",))
    asked = start(found, session="a", prompt=None)
    assert (asked.origins, asked.raised) == ({"rounds": "defaults.max_iterations in .rloop.yaml:2"}, ("rounds",))
    assert config(user, raising, max_iterations="500").raised == (), "the person said so"
    lower = config(user, "defaults: {max_iterations: 5}")
    assert (lower.max_iterations, lower.raised, start(lower, session="a", prompt=None).config) == (5, (), "")


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("max_iterations", "0", "it is 0 (a number)"),
        ("max_iterations", "-1", "it is -1 (a number)"),
        ("max_iterations", "x", 'it is "x" (text)'),
        ("max_iterations", "1e9", 'it is "1e9" (text)'),
        ("max_iterations", "1000001", "it is 1000001 (a number)"),
        ("max_iterations", "", "it is empty"),
        ("max_iterations", "3\nmodel: x", 'it is "3'),
        ("max_iterations", "[3", 'it is "[3" (text)'),
        ("RLOOP_MAX_ITERATIONS", "many", 'it is "many" (text)'),
        ("task_file", "/etc/passwd", 'it is "/etc/passwd" (text), which leads out of it'),
        ("task_file", "../PRD.md", 'it is "../PRD.md" (text), which leads out of it'),
        ("completion_marker", "", 'it is "" (text)'),
        ("completion_marker", "a\nb", 'it is "a'),
        ("completion_marker", "</promise>", 'it is "</promise>" (text)'),
        ("backend", "cursor", 'it is "cursor" (text)'),
        ("model", " ", 'it is " " (text)'),
        ("webhook", "ftp://h/x", "it does not begin with https:// or http://"),
        ("webhook", "https://", "it is not an address"),
        ("webhook", "https:///hook", "it is a web address without a valid host"),
    ],
)
def test_what_was_typed_is_checked_by_the_rules_of_the_file(name: str, text: str, cause: str) -> None:
    error = refused(**{name: text})
    key = next(each for each in KEYS if name in (each.variable, each.name))
    place = name if name == key.variable else key.flag
    assert error.what == f"{place} must be {key.wanted}"
    assert error.cause.startswith(cause)
    assert "write " not in error.hint or key.name == "webhook"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("defaults:\n  max_iterations: '30'", "2: defaults.max_iterations must be a whole number, 1 to 1,000,000"),
        ("defaults:\n  task_file: ~/x", "2: defaults.task_file must be a path inside the project"),
        ("defaults:\n  completion_marker: ''", "2: defaults.completion_marker must be a line of text without < and >"),
        ("logging:\n  level: verbose", "2: logging.level must be one of info, debug"),
        ("logging:\n  retain_days: 0", "2: logging.retain_days must be a whole number, 1 to 36,500"),
        ("notifications:\n  on_complete: yes", "2: notifications.on_complete must be true or false"),
        ("notifications:\n  webhook: hooks.example.com", "2: notifications.webhook must be a web address, or null"),
        ("claude:\n  flags: --verbose", "2: claude.flags must be a list of texts"),
        ("claude:\n  env: [A]", "2: claude.env must be a mapping of names to texts"),
        ("claude:\n  env:\n    A: 1", "3: claude.env.A must be a text"),
        ("claude:\n  env:\n    A: true", "3: claude.env.A must be a text"),
        ("claude:\n  env:\n    A-B: x", "3: claude.env.A-B cannot be a variable"),
        ("claude:\n  env:\n    BYDAWN_X: x", "3: claude.env.BYDAWN_X cannot be a variable"),
        ("defaults:\n\tmodel: x", "2: invalid YAML"),
        ("defaults:\n  model: !x y", "2: the tag !x is not allowed"),
        ("defaults:\n  model: x\n  model: y", "3: model is there twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_refused_with_its_line(text: str, what: str) -> None:
    assert refused(user=text).what == f"config.yaml:{what}"


def test_an_unknown_key_is_a_remark_and_a_near_miss_is_named() -> None:
    assert config("defaults: {max_iteration: 3}").remarks == (
        "config.yaml:1: unknown key 'defaults.max_iteration' has no effect; did you mean defaults.max_iterations?",
    )
    assert refused(backend="cluade").hint == "did you mean claude?"
    assert refused(user="claude: {env: {A: 1}}").hint == "put it in quotes"


def test_neither_an_address_nor_a_value_of_a_variable_is_shown_in_an_error() -> None:
    for text in ("notifications: {webhook: 'ftp://h/s3cret'}", "claude: {env: {TOKEN: 53012}}"):
        error = refused(user=text)
        assert not any(secret in f"{error.what}{error.cause}{error.hint}" for secret in ("s3cret", "53012"))


# -- what that means to us ---------------------------------------------------------------------------------------------


def test_claude_has_full_access_and_its_variable_unless_the_flag_is_left_out() -> None:
    usual = {
        "agent": ("claude",),
        "model": (),
        "sandbox": ("full",),
        "agent_args": (),
        "agent_env": ("IS_SANDBOX=1",),
        "notify": (),
    }
    assert agent_settings(Config()) == usual
    assert agent_settings(Config(flags=())) == {**usual, "sandbox": ("workspace",)}
    found = agent_settings(Config(backend="codex", model="m", webhook="https://h/x"))
    assert found == {
        **usual,
        "agent": ("codex",),
        "model": ("m",),
        "agent_env": (),
        "notify": ("https://h/x",),
    }
    assert agent_settings(Config(backend="gemini", flags=()))["sandbox"] == ("full",)


def test_what_claude_is_told_anyway_is_not_told_twice() -> None:
    given = ("-p", "--verbose", SKIP, "--output-format", "json", "--max-turns", "5", "--print", "--output-format=text")
    assert agent_settings(Config(flags=given))["agent_args"] == ("--max-turns", "5")


def test_what_a_project_chooses_has_its_origin() -> None:
    project = "defaults:\n  backend: codex\n  model: m\nclaude:\n  flags: [--x]\nnotifications: {webhook: 'https://h'}"
    found = config("", project)
    assert origins(found) == {
        "agent": "defaults.backend in .rloop.yaml:2",
        "model": "defaults.model in .rloop.yaml:3",
        "agent_args": "claude.flags in .rloop.yaml:5",
        "notify": "notifications.webhook in .rloop.yaml:6",
        "sandbox": "defaults.backend in .rloop.yaml:2",
    }
    assert origins(config(project, "")) == {}, "the user's own"
    assert overridden(config("", project, backend="claude", model="m")) == {
        "agent": ("codex",),
        "model": ("m",),
        "sandbox": ("full",),
    }
    assert overridden(found) == {"agent_args": ("--x",)}, "it would be in force with --backend claude"


PROJECTS = (
    "defaults: {backend: codex, model: m}\nclaude: {flags: [--x], env: {A: b}}\nnotifications: {webhook: 'https://h'}",
    "defaults: {backend: claude}\nclaude: {flags: []}",
    f"claude: {{flags: [{SKIP}, --x]}}",
    "claude: {env: {}}",
)
USERS = ("", "defaults: {backend: gemini, model: u}", "claude: {flags: [], env: {U: v}}\ndefaults: {backend: claude}")
TYPED: tuple[dict[str, str], ...] = (
    {},
    {"backend": "claude"},
    {"RLOOP_BACKEND": "codex", "model": "m"},
    {"webhook": "https://t"},
)


@pytest.mark.parametrize("project", PROJECTS)
def test_what_a_person_agrees_to_depends_on_the_projects_file_alone(project: str) -> None:
    """And whatever of it is in force is part of that."""
    alone = read(checked(parse(project, PROJECT), KEYS, PROJECT))
    agreed = {key: overridden(alone).get(key, agent_settings(alone)[key]) for key in origins(alone)}
    for user, options in itertools.product(USERS, TYPED):
        found = config(user, project, **options)
        now = agent_settings(found)
        assert {key: overridden(found).get(key, now[key]) for key in origins(found)} == agreed
        without = agent_settings(config(user, None, **options))
        theirs = {key for key in now if now[key] != without[key]}  # it is as it is because of the project
        theirs -= {"agent_args", "agent_env"} if "agent" in theirs else set()  # the user's own, for another agent
        assert theirs <= {*origins(found)}
        safe = {"sandbox"} if now["sandbox"] == ("workspace",) else set()
        assert not theirs & {*overridden(found)} - safe
