"""Where rloop's files are, and what they say together."""

from pathlib import Path

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.dialects.rloop.config import DEFAULT_FILE, Config
from bydawn.operations.dialects.rloop import configuration

TASKS = "defaults.task_file"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RLOOP_CONFIG_DIR", "RLOOP_MODEL", "RLOOP_MAX_ITERATIONS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".config/rloop").mkdir(parents=True)
    (tmp_path / "app").mkdir()
    return tmp_path


def test_all_layers_are_read_from_their_places(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-050"""
    app = home / "app"
    assert configuration.read(app).where == configuration.read(None).where
    (home / ".config/rloop/config.yaml").write_text("defaults: {max_iterations: 20, model: a}")
    (app / ".rloop.yaml").write_text("defaults: {max_iterations: 10, model: b}")
    monkeypatch.setenv("RLOOP_MODEL", "c")
    found = configuration.read(app, {"defaults.max_iterations": "50"})
    assert (found.max_iterations, found.model) == (50, "c")
    assert (found.where["defaults.max_iterations"], found.where["defaults.model"]) == (
        "--max-iterations",
        "RLOOP_MODEL",
    )
    monkeypatch.setenv("RLOOP_MODEL", "")
    assert configuration.read(app).model is None, "an empty variable switches off what can be nothing"
    monkeypatch.setenv("RLOOP_TASK_FILE", "")
    assert configuration.read(app).task_file == "PRD.md", "and is not set where something has to be"
    assert configuration.read(None).max_iterations == 20
    monkeypatch.setenv("RLOOP_CONFIG_DIR", str(home / "elsewhere"))
    assert (configuration.config_folder(), configuration.read(None).model) == (home / "elsewhere", None)


def test_without_a_home_the_variable_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.delenv("HOME")
    with pytest.raises(UserError, match="there is no folder for rloop's files") as caught:
        configuration.read(None)
    assert "RLOOP_CONFIG_DIR" in caught.value.hint


def test_a_task_file_that_was_typed_in_full_is_fine_if_it_is_in_the_folder(home: Path) -> None:
    app = home / "app"
    (home / "link").symlink_to(app)
    for typed in (app / "docs/PRD.md", home / "link/docs/PRD.md", "docs/PRD.md"):
        (app / "docs").mkdir(exist_ok=True)
        assert configuration.read(app, {TASKS: str(typed)}).task_file == "docs/PRD.md"
    for typed in (home / "PRD.md", app / "../PRD.md", "../PRD.md", app):
        with pytest.raises(UserError, match="--task-file must be a path inside"):
            configuration.read(app, {TASKS: str(typed)})


def test_a_users_file_may_be_a_link_but_no_one_elses(home: Path) -> None:
    (home / "dotfiles.yaml").write_text("defaults: {model: mine}")
    file = home / ".config/rloop/config.yaml"
    file.symlink_to(home / "dotfiles.yaml")
    assert configuration.read(None).model == "mine"
    (home / "dotfiles.yaml").chmod(0o666)
    with pytest.raises(UserError, match="other users can write to it"):
        configuration.read(None)
    file.unlink()
    file.mkdir()
    with pytest.raises(UserError, match=r"config\.yaml: it is not a regular file"):
        configuration.read(None)


# -- one value ---------------------------------------------------------------------------------------------------------


def test_the_first_set_writes_the_default_file_for_its_owner_only(home: Path) -> None:
    """R-044"""
    file = home / ".config/rloop/config.yaml"
    file.parent.rmdir()
    assert configuration.set_value("defaults.max_iterations", "50") == file
    assert file.read_text() == DEFAULT_FILE.replace("max_iterations: 30", "max_iterations: 50")
    assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]
    assert configuration.init() == (file, False)
    file.unlink()
    assert configuration.init() == (file, True)
    found = configuration.read(None)
    assert msgspec.structs.replace(found, where={}) == Config(), "the file says what would apply without it"


@pytest.mark.parametrize(
    ("key", "text", "line"),
    [
        ("defaults.model", "m-1", "  model: m-1\n"),
        ("defaults.completion_marker", "true", '  completion_marker: "true"\n'),
        ("notifications.webhook", "https://h/x", '  webhook: "https://h/x"\n'),
        ("notifications.on_complete", "false", "  on_complete: false\n"),
        ("claude.flags", "[--verbose, '#x']", '  flags: ["--verbose","#x"]\n'),
        ("claude.flags", "[]", "  flags: []\n"),
        ("claude.env", '{"A": "1", "B": ""}', '  env: {"A":"1","B":""}\n'),
    ],
)
def test_what_was_set_is_read_again_and_every_other_line_stays(home: Path, key: str, text: str, line: str) -> None:
    configuration.set_value(key, text)
    now = (home / ".config/rloop/config.yaml").read_text()
    assert line in now
    assert {*DEFAULT_FILE.splitlines()} - {*now.splitlines()} <= {
        each for each in DEFAULT_FILE.splitlines() if each.strip().startswith(f"{key.partition('.')[2]}:")
    }
    value = configuration.written(configuration.value_of(configuration.read(None), key))
    configuration.set_value(key, value)
    assert (home / ".config/rloop/config.yaml").read_text() == now, "what `get` says can be set"


@pytest.mark.parametrize(
    ("key", "text", "what"),
    [
        ("defaults.max_iterations", "0", "defaults.max_iterations must be a whole number, 1 to 1,000,000"),
        ("defaults.max_iterations", "", "defaults.max_iterations must be a whole number, 1 to 1,000,000"),
        ("claude.flags", "--verbose", "claude.flags must be a list of texts"),
        ("claude.env", "{A: 1}", "claude.env.A must be a text"),
        ("notifications.webhook", "example.org", "notifications.webhook must be a web address, or null"),
        ("defaults.iterations", "3", "there is no key 'defaults.iterations'"),
    ],
)
def test_nothing_is_written_if_the_value_is_wrong(home: Path, key: str, text: str, what: str) -> None:
    with pytest.raises(UserError) as caught:
        configuration.set_value(key, text)
    assert (caught.value.what, caught.value.exit_code) == (what, 2)
    assert not (home / ".config/rloop/config.yaml").exists()


def test_a_file_that_a_person_wrote_keeps_its_shape_or_is_not_touched(home: Path) -> None:
    file = home / ".config/rloop/config.yaml"
    file.write_text("# mine\nclaude:\n  flags:\n    - --a  # why\n    - --b\nother: 1\n")
    file.chmod(0o644)
    with pytest.raises(UserError, match=r"cannot set claude\.flags in config\.yaml"):
        configuration.set_value("claude.flags", "[--c]")
    configuration.set_value("defaults.model", "m")
    assert file.read_text() == (
        "# mine\nclaude:\n  flags:\n    - --a  # why\n    - --b\nother: 1\ndefaults: {model: m}\n"
    )
    assert file.stat().st_mode & 0o777 == 0o600, "an address can be a secret"
    configuration.set_value("defaults.model", "")
    assert configuration.read(None).model is None
    file.write_text("defaults: {max_iterations: 0}")
    with pytest.raises(UserError, match=r"config\.yaml:1: defaults\.max_iterations must be"):
        configuration.set_value("defaults.model", "m")
    configuration.set_value("defaults.max_iterations", "5")


def test_a_list_hides_secrets_and_says_where_each_value_is_set(home: Path) -> None:
    (home / ".config/rloop/config.yaml").write_text(
        "claude: {env: {API_TOKEN: s3cret, A: x}}\nnotifications: {webhook: 'https://u:p@h.org/123/abc'}"
    )
    found = configuration.read(None)
    rows = {row.key: (row.value, row.where) for row in configuration.rows(found)}
    assert rows["claude.env"] == ({"API_TOKEN": "[secret]", "A": "x"}, "config.yaml:1")
    assert rows["notifications.webhook"] == ("https://h.org/[secret]", "config.yaml:2")
    assert rows["logging.level"] == ("info", "default")
    assert configuration.value_of(found, "notifications.webhook") == "https://u:p@h.org/123/abc"
    with pytest.raises(UserError) as caught:
        configuration.value_of(found, "max_iteration")
    assert caught.value.hint.startswith("did you mean defaults.max_iterations?")
    assert caught.value.cause == "there are defaults.…, claude.…, notifications.…, logging.…"


def test_an_agent_cannot_change_the_configuration(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bydawn.operations.preconditions.is_inside_a_round", lambda: True)
    for change in (configuration.init, lambda: configuration.set_value("defaults.model", "m")):
        with pytest.raises(UserError, match="agents may not do this"):
            change()
    assert not (home / ".config/rloop/config.yaml").exists()


def test_a_file_in_the_place_of_the_folder_is_named_with_a_way_out(home: Path) -> None:
    (home / ".config/rloop").rmdir()
    (home / ".config").rmdir()
    (home / ".config").write_text("")
    for use in (lambda: configuration.read(None), configuration.init):
        with pytest.raises(UserError) as caught:
            use()
        assert (caught.value.cause, caught.value.exit_code) == (f"{home}/.config is not a folder", 2)
        assert "RLOOP_CONFIG_DIR" in caught.value.hint
