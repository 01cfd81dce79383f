"""What each word on the command line of waylon-smithers asks for."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bydawn.cli.dialects import parser_of
from bydawn.core.breakers import Limits
from bydawn.core.errors import UserError
from bydawn.core.loop import Match, Mode, OnInterrupt, Promise, Sandbox, Sessions
from bydawn.dialects.seam import Cancel, Command, Install, List, Option, Place, Request, Resume, Show, Start
from bydawn.dialects.waylon import DIALECT
from bydawn.settings.table import BY_KEY, Layer
from bydawn.store.registry import checked_name
from dialects.waylon_made import COMMANDS, EVENING, HERE, ID, asked, smithers, typed

SANDBOXES = {"read-only": "read-only", "workspace-write": "workspace", "danger-full-access": "full"}
APPROVALS = ("untrusted", "on-failure", "on-request", "never")


def setting(key: str, **given: Any) -> str:
    [word] = asked(**given).settings[key]
    return word


def refused(command: str = "", **given: Any) -> UserError:
    with pytest.raises(UserError) as error:
        DIALECT.read_args(command, typed(command, **given), HERE)
    assert error.value.cause
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


def test_every_option_of_the_document_is_there_with_its_default_and_its_choices() -> None:
    """W-021, W-022, W-023, W-037, W-038."""
    assert {row.flag: (row.default, row.choices) for row in COMMANDS[""].options} == DOCUMENT | OURS


def test_what_takes_no_value_is_a_switch_and_the_cap_is_a_number() -> None:
    options = COMMANDS[""].options
    assert {row.flag for row in options if row.switch} == {"--full-auto", "--skip-git-repo-check"}
    assert {row.flag for row in options if row.number} == {"--max-iterations"}


def test_the_other_commands_have_the_options_of_the_document_and_those_they_imply() -> None:
    """W-039, W-040, W-041, W-042."""
    assert {name: [row.flag for row in command.options] for name, command in COMMANDS.items() if name} == {
        "status": ["--loop-id", "--cd", "--json"],
        "list": ["--cd", "--json"],
        "resume": ["--loop-id", "--cd", "--max-iterations", "--sandbox"],
        "cancel": ["--loop-id", "--cd", "--cleanup-artifacts"],
        "install-helpers": ["--cd", "--force"],
    }


def another(option: Option) -> Any:
    """A value that is not the default; the last choice never is."""
    if option.switch:
        return True
    if option.choices:
        return option.choices[-1]
    return 7 if option.number else "other"


def spelled(row: Command | Option) -> str:
    return row.flag if isinstance(row, Option) else row.name or "start"


ROWS = [(command, option) for command in DIALECT.commands for option in command.options]
READ = [row for row in ROWS if row[1].flag != "--cd"]  # which has become a place by then


@pytest.mark.parametrize(("command", "option"), READ, ids=spelled)
def test_no_option_is_ignored(command: Command, option: Option) -> None:
    base = {"todo_file": "TODO.md"} if not command.name else {}  # without a list there is no HARD STOP in it
    before = DIALECT.read_args(command.name, typed(command.name, **base), HERE)
    given = typed(command.name, **{**base, option.key: another(option)})
    assert DIALECT.read_args(command.name, given, HERE) != before


# -- the settings of a loop --------------------------------------------------------------------------------------------

ABSENT = ("model", "profile", "effort", "agent_args", "agent_json", "tasks", "checkpoint")
PRESET: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*ABSENT, "prompt", "template", "progress", "opinions"), ()),
    "agent": ("codex",),
    "agent_commits": ("no",),
    "session": ("resume",),
    "session_rounds": ("0",),
    "on_interrupt": ("stop",),
    "max_no_change": ("5",),
    "max_failures": ("3",),
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
    assert request.wanted.keys() == {"tasks_required", "template", "follow_up"}
    assert (request.named, request.outside_git, request.remarks) == (False, False, ())


def test_the_loop_has_one_session_that_is_never_left_and_only_the_promise_completes_it() -> None:
    for loop in (smithers(), smithers(todo_file="TODO.md")):
        assert (loop.agent, loop.others) == ("codex", ())
        assert (loop.sessions, loop.session_rounds) == (Sessions.RESUME, 0)
        assert loop.on_interrupt is OnInterrupt.STOP
        assert loop.requires == ("promise",)
        assert loop.limits == Limits(rounds=30, no_progress=5, agent_failures=3)


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
    said = (
        [] if word == "never" else [f"--ask-for-approval {word}: nobody is asked in a loop; what needs it is refused"]
    )
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
        assert asked(place, **{key: typed_}).paths == {key: kept}


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
    assert asked(skip_git_repo_check=True).outside_git
    assert not asked().outside_git


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [None, "", " \n\t"])
def test_without_a_prompt_there_is_nothing_to_do(prompt: str | None) -> None:
    """W-020."""
    assert refused(prompt=prompt).what == "there is nothing to do"


@pytest.mark.parametrize("promise", ["", "  "])
@pytest.mark.parametrize("mode", ["tag", "plain", "regex"])
def test_an_empty_promise_could_never_be_recognised(promise: str, mode: str) -> None:
    assert refused(completion_promise=promise, promise_mode=mode).what == "--completion-promise is empty"


@pytest.mark.parametrize("pattern", ["DON[E", "(", "*", "(?P<x>a)(?P<x>b)"])
def test_a_pattern_that_is_none_is_refused_under_its_own_flag(pattern: str) -> None:
    """W-023."""
    error = refused(completion_promise=pattern, promise_mode="regex")
    assert error.what == f"--completion-promise {pattern!r} is not a regular expression"


@pytest.mark.parametrize("command", ["", "resume"])
@pytest.mark.parametrize("number", [0, -1, -(10**30)])
def test_a_cap_leaves_at_least_one_iteration(command: str, number: int) -> None:
    """W-021."""
    assert refused(command, max_iterations=number).what == f"--max-iterations {number} makes no sense"


# -- the other commands ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        ("status", {}, Show(name=None, as_json=False)),
        ("status", {"loop_id": ID, "json": True}, Show(name=ID, as_json=True)),
        ("list", {}, List(as_json=False)),
        ("list", {"json": True}, List(as_json=True)),
        ("resume", {}, Resume(name=None)),
        ("resume", {"loop_id": ID}, Resume(name=ID, rounds=None, sandbox="")),
        ("resume", {"loop_id": ID, "max_iterations": 50}, Resume(name=ID, rounds=50)),
        ("resume", {"sandbox": "danger-full-access"}, Resume(name=None, sandbox="danger-full-access")),
        ("resume", {"sandbox": "read-only"}, Resume(name=None, sandbox="read-only")),
        ("cancel", {"loop_id": ID}, Cancel(name=ID, cleanup=False)),
        ("cancel", {"cleanup_artifacts": True}, Cancel(name=None, cleanup=True)),
        ("install-helpers", {}, Install(force=False)),
        ("install-helpers", {"force": True}, Install(force=True)),
    ],
)
def test_a_command_asks_for_what_it_says(command: str, given: dict[str, Any], expected: Request) -> None:
    """W-039, W-040, W-041, W-042."""
    assert DIALECT.read_args(command, typed(command, **given), HERE) == expected


def test_a_resumed_loop_keeps_its_limits_but_for_a_new_cap() -> None:
    limits = Limits(rounds=30, no_progress=2, tokens=1000)
    assert DIALECT.raised(limits, Resume(name=ID)) == limits
    assert DIALECT.raised(limits, Resume(name=ID, rounds=50)) == Limits(rounds=50, no_progress=2, tokens=1000)


# -- as it is typed ----------------------------------------------------------------------------------------------------


def obeyed(command: Command, *words: str) -> tuple[Request, Path]:
    """What real words on a command line ask for, and the workspace they mean."""
    requests: list[tuple[Request, Path]] = []

    def obey(request: Request, workspace: Path) -> int:
        requests.append((request, workspace))
        return 0

    parser_of(DIALECT, command, obey).main([*words], standalone_mode=False)
    [found] = requests
    return found


def heard(command: Command, *words: str) -> tuple[Request, Path]:
    """The same with a prompt, where one is needed, and whatever the time is."""
    request, workspace = obeyed(command, *(["fix it"] if command.argument else []), *words)
    if isinstance(request, Start):
        name = request.name if request.named else ID
        request = msgspec.structs.replace(request, name=name, words={**request.words, "created_at": ""})
    return request, workspace


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path.resolve()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "option"), ROWS, ids=spelled)
def test_a_value_may_stand_behind_a_space_or_an_equals_sign(command: Command, option: Option) -> None:
    """A switch takes none; and whatever is typed changes what is asked for, or where."""
    more = () if command.name or option.flag == "--todo-file" else ("--todo-file", "TODO.md")
    if option.switch:
        assert heard(command, option.flag, *more) != heard(command, *more)
        return
    value = str(another(option))
    spaced, joined = heard(command, option.flag, value, *more), heard(command, f"{option.flag}={value}", *more)
    assert spaced == joined
    assert spaced != heard(command, *more)


def test_options_may_stand_before_the_prompt_and_cd_chooses_the_workspace(folder: Path) -> None:
    """W-020, W-026."""
    words = ["--full-auto", "--cd", "other", "--state-file", "s.json", "fix it"]
    request, workspace = obeyed(COMMANDS[""], *words)
    assert isinstance(request, Start)
    assert (request.prompt, workspace) == ("fix it", folder / "other")
    assert request.name.startswith("other-2")
    assert request.paths == {"state_file": f"{folder}/s.json"}


def test_the_words_that_go_on_past_a_hard_stop_are_understood(folder: Path) -> None:
    name, *words = DIALECT.go_on(msgspec.structs.replace(smithers(), workspace=str(folder / "other")))
    assert obeyed(COMMANDS[name], *words) == (Resume(name=ID), folder / "other")


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
    request, _ = heard(COMMANDS[""], *words)
    assert isinstance(request, Start)
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


@pytest.mark.parametrize("path", ["TODO.md", "./TODO.md", ".git/HEAD", "sub/.git/x"])
def test_what_something_else_needs_is_not_ours_to_write(path: str) -> None:
    with pytest.raises(UserError, match="is not ours to write"):
        asked(todo_file="TODO.md", jsonl_events=path)


@pytest.mark.parametrize(("mode", "promise"), [("tag", "a\nb"), ("regex", ".*"), ("regex", "(DONE)?")])
def test_a_promise_that_nobody_or_anybody_gives_is_refused(mode: str, promise: str) -> None:
    """W-005, W-023."""
    with pytest.raises(UserError, match="--completion-promise"):
        asked(promise_mode=mode, completion_promise=promise)


def test_two_files_cannot_be_one_and_none_is_the_workspace() -> None:
    with pytest.raises(UserError, match="two files"):
        asked(state_file="x.json", summary_json="./x.json")
    with pytest.raises(UserError, match="the workspace itself"):
        asked(last_message_dir=".")
