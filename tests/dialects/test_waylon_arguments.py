"""What each word on the command line of waylon-smithers asks for."""

from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from bydawn.cli.dialects import given_in
from bydawn.cli.dialects.waylon_smithers import COMMANDS, start, workspace_at
from bydawn.core.breakers import Limits
from bydawn.core.errors import UserError
from bydawn.core.loop import Match, Mode, OnInterrupt, Promise, Sandbox, Sessions
from bydawn.dialects.seam import Place
from bydawn.dialects.waylon_smithers import DIALECT, arguments
from bydawn.settings.setting import Layer
from bydawn.settings.table import BY_KEY
from bydawn.store.registry import checked_name
from dialects.waylon_made import EVENING, HERE, ID, asked, smithers

SANDBOXES = {"read-only": "read-only", "workspace-write": "workspace", "danger-full-access": "full"}
APPROVALS = ("untrusted", "on-failure", "on-request", "never")


def test_where_it_has_checks_changed_tests_are_held() -> None:
    """Its document says nothing of checks."""
    assert asked().holds_tests


def setting(key: str, **given: Any) -> str:
    [word] = asked(**given).settings[key]
    return word


def refused(**given: Any) -> UserError:
    with pytest.raises(UserError) as error:
        asked(**given)
    assert error.value.hint
    return error.value


# -- the table ---------------------------------------------------------------------------------------------------------

# Every option that the document names, with its default and its choices.
DOCUMENT: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "--max-iterations": ("30", ()),
    "--completion-promise": ("TASK_COMPLETE", ()),
    "--promise-mode": ("tag", ("tag", "plain", "regex")),
    "--loop-id": (None, ()),
    "--state-file": (None, ()),
    "--cd": (None, ()),
    "--model": (None, ()),
    "--profile": (None, ()),
    "--sandbox": (None, tuple(SANDBOXES)),
    "--full-auto": (None, ()),
    "--ask-for-approval": (None, APPROVALS),
    "--skip-git-repo-check": (None, ()),
    "--jsonl-events": (None, ()),
    "--last-message-dir": (None, ()),
    "--summary-json": (None, ()),
    "--todo-file": (None, ()),
    "--hard-stop-token": ("HARD STOP", ()),
    "--hard-stop-mode": ("pause", ("pause", "exit")),
}
OURS = {"--done-match": ("end", ("end", "own-line", "anywhere"))}


def options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def choices(option: click.Option) -> tuple[str, ...]:
    return tuple(option.type.choices) if isinstance(option.type, click.Choice) else ()


def default(option: click.Option) -> str | None:
    """None for a switch, which has none in the document either."""
    holds = getattr(arguments.Words(prompt=None), option.name or "")
    assert holds in (None, False) or (option.help or "").endswith(f"  [default: {holds}]")
    return str(holds) if holds else None


def test_every_option_of_the_document_is_there_with_its_default_and_its_choices() -> None:
    """W-021, W-022, W-023, W-037, W-038."""
    assert {row.opts[0]: (default(row), choices(row)) for row in options(start)} == DOCUMENT | OURS


def test_what_takes_no_value_is_a_switch_and_the_cap_is_a_number() -> None:
    assert {row.opts[0] for row in options(start) if row.is_flag} == {"--full-auto", "--skip-git-repo-check"}
    assert {row.opts[0] for row in options(start) if row.type is click.INT} == {"--max-iterations"}


def test_the_other_commands_have_the_options_of_the_document_and_those_they_imply() -> None:
    """W-039, W-040, W-041, W-042."""
    assert {name: [row.opts[0] for row in options(command)] for name, command in COMMANDS.commands.items()} == {
        "status": ["--loop-id", "--cd", "--human", "--json"],
        "list": ["--cd", "--json"],
        "resume": [
            *("--loop-id", "--cd", "--max-iterations", "--completion-promise", "--promise-mode", "--model"),
            *("--sandbox", "--full-auto", "--note", "--accept"),
        ],
        "cancel": ["--loop-id", "--cd", "--cleanup-artifacts"],
        "install-helpers": ["--cd", "--completion-promise", "--loop-id", "--force"],
    }


def another(option: click.Option) -> Any:
    """A value that is not the default; the last choice never is."""
    if option.is_flag:
        return True
    if choices(option):
        return choices(option)[-1]
    return 7 if option.type is click.INT else "other"


def spelled(row: click.Command | click.Option) -> str:
    return row.opts[0] if isinstance(row, click.Option) else row.name or ""


ROWS = [(command, option) for command in (start, *COMMANDS.commands.values()) for option in options(command)]
READ = [option for option in options(start) if option.opts[0] != "--cd"]  # which becomes a place


@pytest.mark.parametrize("option", READ, ids=spelled)
def test_no_option_is_ignored(option: click.Option) -> None:
    base: dict[str, Any] = {"todo_file": "TODO.md"}  # without a list there is no HARD STOP in it
    assert option.name
    assert asked(**{**base, option.name: another(option)}) != asked(**base)


# -- the settings of a loop --------------------------------------------------------------------------------------------

ABSENT = ("model", "profile", "effort", "agent_args", "agent_json", "tasks", "checkpoint")
PRESET: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*ABSENT, "prompt", "template", "progress", "opinions"), ()),
    "agent": ("codex",),
    "agent_commits": ("no",),
    "session": ("resume",),
    "session_rounds": ("0",),
    "on_interrupt": ("stop",),
    "on_blocked_task": ("stop",),
    "max_no_change": ("5",),
    "max_failures": ("3",),
    "max_no_task_done": ("0",),
}


def test_a_prompt_alone_asks_for_a_cautious_loop() -> None:
    """W-007, W-020, W-021, W-022, W-023, W-090."""
    request = asked(prompt="fix it")
    assert request.prompt == "fix it"
    assert request.settings == PRESET | {
        "rounds": ("30",),
        "sandbox": ("read-only",),
        "done_when": ("TASK_COMPLETE",),
        "done_mode": ("tag",),
        "done_match": ("end",),
    }
    assert request.words == {
        "created_at": "2026-01-06T21:10:00-08:00",
        "sandbox": "read-only",
        "approval": "on-request",
    }
    assert request.paths == {}
    assert (request.named, request.tasks_required, request.remarks) == (False, False, ())


def test_the_loop_has_one_session_that_is_never_left_and_only_the_promise_completes_it() -> None:
    for loop in (smithers(), smithers(todo_file="TODO.md")):
        assert (loop.agent, loop.others) == ("codex", ())
        assert (loop.sessions, loop.session_rounds) == (Sessions.RESUME, 0)
        assert loop.on_interrupt is OnInterrupt.STOP
        assert loop.requires == ("promise",)
        assert loop.limits == Limits(rounds=30, no_progress=5, agent_failures=3, no_task_done=0)


WORDS: list[tuple[dict[str, Any], str, str]] = [
    ({"max_iterations": 50}, "rounds", "50"),
    ({"max_iterations": 1}, "rounds", "1"),
    ({"completion_promise": "DONE"}, "done_when", "DONE"),
    ({"promise_mode": "tag"}, "done_mode", "tag"),
    ({"promise_mode": "plain"}, "done_mode", "plain"),
    ({"promise_mode": "regex", "completion_promise": "DON[EÉ]"}, "done_mode", "regex"),
    ({"promise_mode": "plain", "completion_promise": "DON[E"}, "done_when", "DON[E"),  # no pattern, only a text
    ({"done_match": "anywhere"}, "done_match", "anywhere"),
    ({"done_match": "own-line"}, "done_match", "own-line"),
    ({"model": "gpt-5.2-codex"}, "model", "gpt-5.2-codex"),
    ({"profile": "night"}, "profile", "night"),
    ({"todo_file": "TODO.md"}, "tasks", "TODO.md"),
    ({"todo_file": "TODO.md"}, "checkpoint", "HARD STOP:pause"),
    ({"todo_file": "TODO.md", "hard_stop_mode": "exit"}, "checkpoint", "HARD STOP:exit"),
    ({"todo_file": "TODO.md", "hard_stop_token": "LOOK: here"}, "checkpoint", "LOOK: here:pause"),
]


@pytest.mark.parametrize(("given", "key", "expected"), WORDS)
def test_an_option_becomes_a_setting_of_ours(given: dict[str, Any], key: str, expected: str) -> None:
    """W-021, W-022, W-023, W-027, W-028, W-036, W-037, W-038."""
    assert setting(key, **given) == expected


@pytest.mark.parametrize("key", ABSENT)
def test_what_nobody_asked_for_is_there_for_no_loop_whatever_files_say(key: str) -> None:
    """W-036: without a list there is no HARD STOP."""
    assert asked(hard_stop_token="LOOK").settings[key] == ()  # noqa: S106


@pytest.mark.parametrize(("given", "key", "expected"), WORDS)
def test_every_setting_is_one_that_a_flag_of_ours_could_give(given: dict[str, Any], key: str, expected: str) -> None:
    request = asked(**given)
    assert key in request.settings
    for each, words in request.settings.items():
        assert Layer.FLAG in BY_KEY[each].layers
        assert not words or BY_KEY[each].kind.from_words(words) is not None, expected


def test_the_checkpoint_arrives_with_its_words_whatever_they_are() -> None:
    """W-037, W-038."""
    for token, mode in [("HARD STOP", "pause"), ("LOOK: here", "exit"), ("a:exit", "pause"), ("{{x}}", "exit")]:
        checkpoint = smithers(todo_file="TODO.md", hard_stop_token=token, hard_stop_mode=mode).checkpoint
        assert checkpoint
        assert (checkpoint.token, checkpoint.mode) == (token, mode)


@pytest.mark.parametrize(("mode", "token"), [("tag", "<promise>DONE</promise>"), ("plain", "DONE"), ("regex", "DONE")])
def test_the_promise_arrives_as_codex_has_to_write_it(mode: str, token: str) -> None:
    """W-005, W-023: believed at the end of a message only, as a mere mention would be a false completion."""
    promise = smithers(completion_promise="DONE", promise_mode=mode).promise
    assert promise == Promise(text="DONE", mode=Mode(mode), match=Match.END)
    assert promise.token == token


# -- sandbox and approvals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "level"), SANDBOXES.items())
def test_a_sandbox_is_the_one_that_was_named(word: str, level: str) -> None:
    """W-029."""
    request = asked(sandbox=word)
    assert request.settings["sandbox"] == (level,)
    assert request.words["sandbox"] == word
    assert smithers(sandbox=word).sandbox is Sandbox(level)


def test_full_auto_may_edit_here_and_asks_nobody() -> None:
    """W-030."""
    request = asked(full_auto=True)
    assert request.settings["sandbox"] == ("workspace",)
    assert (request.words["sandbox"], request.words["approval"]) == ("workspace-write", "never")
    assert request.remarks == ()


@pytest.mark.parametrize("word", SANDBOXES)
def test_a_sandbox_that_was_named_holds_against_full_auto_and_it_is_said(word: str) -> None:
    """W-029, W-030."""
    request = asked(full_auto=True, sandbox=word)
    assert request.words["sandbox"] == word
    assert request.settings["sandbox"] == (SANDBOXES[word],)
    assert request.remarks == (f"--sandbox {word} holds; --full-auto adds nothing to it",)


@pytest.mark.parametrize("word", APPROVALS)
@pytest.mark.parametrize("full_auto", [False, True])
def test_an_approval_is_kept_and_what_cannot_be_had_is_said(word: str, full_auto: bool) -> None:
    """W-031."""
    request = asked(ask_for_approval=word, full_auto=full_auto)
    assert request.words["approval"] == word
    said = [] if word == "never" else [f"--ask-for-approval {word}: a loop asks no one; what needs approval is refused"]
    assert [*request.remarks] == said


@pytest.mark.parametrize("approval", [None, *APPROVALS])
@pytest.mark.parametrize("full_auto", [False, True])
@pytest.mark.parametrize("sandbox", [None, "read-only", "workspace-write"])
def test_nothing_but_its_own_name_takes_the_sandbox_away(
    approval: str | None, full_auto: bool, sandbox: str | None
) -> None:
    """W-091."""
    level = setting("sandbox", ask_for_approval=approval, full_auto=full_auto, sandbox=sandbox)
    assert level != "full"
    assert level == SANDBOXES[sandbox or ("workspace-write" if full_auto else "read-only")]


# -- names and places --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workspace", "name"),
    [
        ("/w/repo", "repo"),
        ("/w/repo/", "repo"),
        ("/w/my.repo_2", "my.repo_2"),
        ("/w/My Project (2)", "My-Project--2"),
        ("/w/-rf", "rf"),
        ("/w/.config", "config"),
        ("/w/früh", "fr-h"),
        ("/w/日本", "loop"),
        ("/w/" + "a" * 60, "a" * 40),
        ("/", "loop"),
    ],
)
def test_a_loop_is_named_after_its_folder_and_the_moment(workspace: str, name: str) -> None:
    """W-024."""
    request = asked(Place(folder=workspace, workspace=workspace, now=EVENING))
    assert request.name == f"{name}-2026-01-06T21-10-00"
    assert checked_name(request.name) == request.name
    assert not request.named


def test_a_name_that_was_given_is_kept_and_nothing_stands_in_for_it() -> None:
    """W-024."""
    request = asked(loop_id="night")
    assert (request.name, request.named) == ("night", True)
    assert asked().name == ID


PATHS = ("state_file", "jsonl_events", "last_message_dir", "summary_json")


@pytest.mark.parametrize("key", PATHS)
@pytest.mark.parametrize(
    ("folder", "typed_", "kept"),
    [
        ("/w/repo", "out/x", "out/x"),
        ("/w/repo", "out/", "out/"),
        ("/w/repo", "/w/repo/out/x", "out/x"),
        ("/w/repo", "/elsewhere/x", "/elsewhere/x"),
        ("/w/repo", "/w/repository/x", "/w/repository/x"),
        ("/w/repo/src", "x", "src/x"),  # typed in a folder below, it means that folder
        ("/home", "x", "/home/x"),  # and with --cd, the folder in which it was typed
        ("/", "x", "/x"),
    ],
)
def test_a_path_means_the_folder_in_which_it_was_typed(key: str, folder: str, typed_: str, kept: str) -> None:
    """W-025, W-026, W-033, W-034, W-035."""
    place = Place(folder=folder, workspace="/w/repo", now=EVENING)
    if kept.endswith("/") and key in ("state_file", "summary_json"):
        with pytest.raises(UserError, match="is a folder"):
            asked(place, **{key: typed_})
    else:
        # Events go into a folder, unless the path ends in .jsonl.
        folder_ = "/" if key == "jsonl_events" and not kept.endswith("/") else ""
        assert asked(place, **{key: typed_}).paths == {key: kept + folder_}


@pytest.mark.parametrize(
    ("folder", "typed_", "kept"),
    [
        ("/w/repo", "./TODO.md", "TODO.md"),
        ("/w/repo/sub", "TODO.md", "sub/TODO.md"),
        ("/w", "repo/TODO.md", "TODO.md"),
        ("/w", "TODO.md", "TODO.md"),
        ("/w", "docs/TODO.md", "docs/TODO.md"),
        ("/w/repo", "../TODO.md", "../TODO.md"),  # which is not in the workspace, and will be refused
        ("/w/repo", "/elsewhere/TODO.md", "/elsewhere/TODO.md"),
    ],
)
def test_the_path_of_a_list_means_the_folder_in_which_it_was_typed(folder: str, typed_: str, kept: str) -> None:
    """W-026, W-036."""
    place = Place(folder=folder, workspace="/w/repo", now=EVENING)
    assert asked(place, todo_file=typed_).settings["tasks"] == (kept,)


def test_a_loop_may_work_outside_of_git_only_if_it_is_asked_to() -> None:
    """W-032."""
    assert "outside_git" in asked(skip_git_repo_check=True).words
    assert "outside_git" not in asked().words


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [None, "", " \n\t"])
def test_without_a_prompt_there_is_nothing_to_do(prompt: str | None) -> None:
    """W-020."""
    assert refused(prompt=prompt).what == "no prompt is given"


@pytest.mark.parametrize("promise", ["", "  "])
@pytest.mark.parametrize("mode", ["tag", "plain", "regex"])
def test_an_empty_promise_could_never_be_recognised(promise: str, mode: str) -> None:
    assert refused(completion_promise=promise, promise_mode=mode).what == "--completion-promise is empty"


@pytest.mark.parametrize("pattern", ["DON[E", "(", "*", "(?P<x>a)(?P<x>b)"])
def test_a_pattern_that_is_none_is_refused_under_its_own_flag(pattern: str) -> None:
    """W-023."""
    error = refused(completion_promise=pattern, promise_mode="regex")
    assert error.what == f"--completion-promise {pattern!r} is not a regular expression"


@pytest.mark.parametrize("number", [0, -1, -(10**30)])
def test_a_cap_leaves_at_least_one_iteration(number: int) -> None:
    """W-021."""
    assert refused(max_iterations=number).what == f"--max-iterations {number} makes no sense"
    with pytest.raises(UserError, match="makes no sense"):
        COMMANDS.main(["resume", "--max-iterations", str(number)], standalone_mode=False)


# -- as it is typed ----------------------------------------------------------------------------------------------------


def parsed(*words: str) -> dict[str, Any]:
    """What real words on a command line hand over to their command."""
    context = COMMANDS.make_context("waylon-smithers", [*words])
    if context.command is not COMMANDS:
        return context.params
    name, command, rest = COMMANDS.resolve_command(context, context._protected_args + context.args)
    assert command
    return command.make_context(name, rest, parent=context).params


def heard(command: click.Command, *words: str) -> dict[str, Any]:
    """The same for a command, with a prompt where one is needed."""
    return parsed(*(["fix it"] if command is start else [command.name or ""]), *words)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path.resolve()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "option"), ROWS, ids=spelled)
def test_a_value_may_stand_behind_a_space_or_an_equals_sign(command: click.Command, option: click.Option) -> None:
    """A switch takes none; and whatever is typed changes what is asked for, or where."""
    flag = option.opts[0]
    if option.is_flag:
        assert heard(command, flag) != heard(command)
        return
    value = str(another(option))
    spaced, joined = heard(command, flag, value), heard(command, f"{flag}={value}")
    assert spaced == joined
    assert spaced != heard(command)


def test_options_may_stand_before_the_prompt_and_cd_chooses_the_workspace(folder: Path) -> None:
    """W-020, W-026."""
    words = parsed("--full-auto", "--cd", "other", "--state-file", "s.json", "fix it")
    place = Place(folder=str(folder), workspace=str(workspace_at(words["cd"])), now=EVENING)
    request = arguments.start(arguments.Words(**given_in(words)), place)
    assert (request.prompt, place.workspace) == ("fix it", str(folder / "other"))
    assert request.name.startswith("other-2")
    assert request.paths == {"state_file": f"{folder}/s.json"}


def test_the_words_that_go_on_past_a_hard_stop_are_understood(folder: Path) -> None:
    words = DIALECT.go_on(msgspec.structs.replace(smithers(), workspace=str(folder / "other")))
    assert words[0] == "resume"
    given = {key: value for key, value in parsed(*words).items() if value}
    assert given == {"name": ID, "workspace": folder / "other"}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "rounds", "sandbox"),
    [
        (("--completion-promise", "DONE", "--max-iterations", "50", "--todo-file", "TODO.md"), "50", "read-only"),
        (("--completion-promise", "DONE", "--max-iterations", "25", "--full-auto"), "25", "workspace"),
    ],
)
def test_the_examples_of_the_document_are_understood(words: tuple[str, ...], rounds: str, sandbox: str) -> None:
    """W-020, W-021, W-022, W-030."""
    request = arguments.start(arguments.Words(**given_in(heard(start, *words))), HERE)
    assert request.settings["rounds"] == (rounds,)
    assert request.settings["done_when"] == ("DONE",)
    assert request.settings["sandbox"] == (sandbox,)


@pytest.mark.parametrize("options", [{"model": " "}, {"profile": " "}, {"todo_file": " "}, {"max_iterations": 10**20}])
def test_what_is_no_value_is_refused_before_anybody_believes_it(options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        asked(**options)


def test_an_empty_token_is_refused_under_its_own_flag() -> None:
    """W-037."""
    with pytest.raises(UserError, match="--hard-stop-token"):
        asked(todo_file="TODO.md", hard_stop_token=" ")  # noqa: S106 - no secret


PLAIN = [
    ("./s.json", "s.json"),
    ("a/../s.json", "s.json"),
    ("a//s.json", "a/s.json"),
    ("../s.json", "/w/s.json"),
    ("/w/repo/./s.json", "s.json"),
]


@pytest.mark.parametrize(("typed", "kept"), PLAIN)
def test_a_path_is_kept_in_its_plain_form(typed: str, kept: str) -> None:
    """W-025: or what is written there would be taken for the agent's work."""
    assert asked(state_file=typed).paths == {"state_file": kept}


@pytest.mark.parametrize(("mode", "promise"), [("tag", "a\nb"), ("regex", ".*"), ("regex", "(DONE)?")])
def test_a_promise_that_nobody_or_anybody_gives_is_refused(mode: str, promise: str) -> None:
    """W-005, W-023."""
    with pytest.raises(UserError, match="--completion-promise"):
        asked(promise_mode=mode, completion_promise=promise)
