"""Loops that the original program began, taken over from its state file."""

import json
from typing import Any

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import LoopAdopted
from bydawn.dialects.seam import Adopted, Place
from bydawn.dialects.waylon_smithers import files
from bydawn.dialects.waylon_smithers.adoption import adopt, agree
from dialects.waylon_made import EVENING, EXAMPLE, HERE, ID, ROOT, loop_of

SESSION = "0199a213-81c0-7800-8aa1-bbab2a035a53"


def changed(**fields: Any) -> str:
    """The example of the document with some fields in other words; those of a part are merged into it."""
    data = json.loads(EXAMPLE)
    for key, value in fields.items():
        data[key] = {**data[key], **value} if isinstance(value, dict) and isinstance(data.get(key), dict) else value
    return json.dumps(data)


def without(*fields: str) -> str:
    return json.dumps({key: value for key, value in json.loads(EXAMPLE).items() if key not in fields})


def adopted(text: str = EXAMPLE, sandbox: str = "") -> Adopted:
    return adopt(text, HERE, sandbox)


def refused(text: str) -> UserError:
    with pytest.raises(UserError) as error:
        adopted(text)
    assert error.value.hint
    return error.value


def test_the_example_of_the_document_is_taken_over_with_all_it_says() -> None:
    """W-006, W-041."""
    start, fact = adopted().start, adopted().fact
    assert fact == LoopAdopted(source=f"{ID}: running at iteration 7", rounds=7, agent="codex", session=SESSION)
    assert (start.name, start.named, start.prompt) == (ID, True, "Go through TODO.md step-by-step...")
    expected = {
        "rounds": "50",
        "sandbox": "workspace",
        "done_when": "DONE",
        "done_mode": "tag",
        "done_match": "end",
        "model": "gpt-5.2-codex",
        "tasks": "TODO.md",
        "checkpoint": "HARD STOP:pause",
        "session": "resume",
    }
    assert {key: start.settings[key] for key in expected} == {key: (word,) for key, word in expected.items()}
    assert start.words == {
        "created_at": "2026-01-06T21:10:00-08:00",
        "sandbox": "workspace-write",
        "approval": "on-request",
    }
    assert start.paths == {}  # its files stay where the original program would look for them
    assert files.Paths(loop_of(start)).state == files.default_state(ID) == f"{ROOT}/loops/{ID}.json"


def test_the_list_that_a_file_names_is_in_the_workspace_wherever_the_command_is_typed() -> None:
    """W-026, W-036."""
    place = Place(folder="/w", workspace="/w/repo", now=EVENING)
    assert adopt(EXAMPLE, place).start.settings["tasks"] == ("TODO.md",)


def test_the_default_profile_of_the_example_is_no_profile_of_codex() -> None:
    assert adopted().start.settings["profile"] == ()
    assert adopted(changed(codex={"profile": "night"})).start.settings["profile"] == ("night",)


def test_what_nobody_knows_is_ignored() -> None:
    text = changed(history=[{"iteration": 1}], state_path="x", codex={"mood": "good"}, last_result=None)
    assert adopted(text) == adopted()


def test_what_is_missing_is_what_it_would_have_been() -> None:
    """W-021, W-022, W-023, W-090."""
    start = adopted(json.dumps({"loop_id": "night", "prompt": "fix it"})).start
    assert start.settings["rounds"] == ("30",)
    assert start.settings["done_when"] == ("TASK_COMPLETE",)
    assert start.settings["done_mode"] == ("tag",)
    assert start.settings["sandbox"] == ("read-only",)
    assert start.words["approval"] == "on-request"
    assert start.words["created_at"] == "2026-01-06T21:10:00-08:00"  # now, where nothing says when
    assert start.settings["checkpoint"] == ()


@pytest.mark.parametrize("part", ["codex", "todo", "artifacts", "last_result", "created_at", "status"])
def test_a_whole_part_may_be_missing(part: str) -> None:
    assert adopted(without(part)).start.name == ID


def test_a_part_may_say_nothing() -> None:
    empty = dict.fromkeys(("session_id", "model", "sandbox", "approval", "profile"))
    found = adopted(changed(codex=empty, todo=dict.fromkeys(("path", "hard_stop_token", "hard_stop_mode"))))
    assert found.fact.session is None
    assert found.start.settings["sandbox"] == ("read-only",)
    assert {found.start.settings[key] for key in ("model", "profile", "tasks")} == {()}


@pytest.mark.parametrize("blank", ["", " "])
def test_a_text_without_letters_is_what_was_never_set(blank: str) -> None:
    """W-041: the original writes such texts for options that nobody gave."""
    codex = dict.fromkeys(("model", "sandbox", "approval", "profile"), blank)
    todo = dict.fromkeys(("path", "hard_stop_token", "hard_stop_mode"), blank)
    found = adopted(changed(codex=codex, todo=todo, completion_promise=blank, promise_mode=blank)).start
    unset = changed(codex=dict.fromkeys(codex), todo=dict.fromkeys(todo), completion_promise="TASK_COMPLETE")
    assert found == adopted(unset).start


def test_counts_that_make_no_sense_do_no_harm() -> None:
    assert adopted(changed(max_iterations=0)).start.settings["rounds"] == ("1",)
    assert adopted(changed(iteration=60)).fact.rounds == 60
    for iteration in (-3, 2_000_000_000):
        assert refused(changed(iteration=iteration)).cause == f"iteration is {iteration}"


@pytest.mark.parametrize("rounds", [1, 7])
def test_a_cap_that_is_used_up_already_is_refused(rounds: int) -> None:
    """W-041: as for a loop of our own."""
    with pytest.raises(UserError, match=f"--max-iterations {rounds} is used up already") as error:
        adopt(EXAMPLE, HERE, cap=rounds)
    assert (error.value.cause, error.value.hint) == (f"{ID} has had 7", "--max-iterations 17")
    assert adopt(EXAMPLE, HERE, cap=8).fact.rounds == 7


SESSIONS = ["--dangerously-bypass-approvals-and-sandbox", "-cnotify=x", "the last one", "0199a213-81c0-7800", "../x"]


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_is_an_id_and_never_an_option_of_codex(session: str) -> None:
    """W-091: a file of the repository must not turn the sandbox off by the back door."""
    assert "codex.session_id" in refused(changed(codex={"session_id": session})).cause
    for key in ("model", "profile"):
        assert "is not a name" in refused(changed(codex={key: "--yolo"})).what


def test_what_is_nested_without_end_is_refused_like_anything_odd() -> None:
    assert refused('{"loop_id":' + "[" * 200_000).cause


@pytest.mark.parametrize("status", ["running", "paused_user_interrupt", "paused_hard_stop", "canceled", "error_spawn"])
def test_whatever_is_not_completed_can_be_gone_on_with(status: str) -> None:
    """W-006."""
    assert adopted(changed(status=status)).fact.source == f"{ID}: {status} at iteration 7"


def test_a_completed_loop_is_not_begun_again() -> None:
    error = refused(changed(status="completed"))
    assert error.what == f"the loop {ID} is completed; there is nothing to go on with"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "Input data was truncated"),
        (EXAMPLE[:100], "Input data was truncated"),
        ("[]", "Expected `object`"),
        (without("prompt"), "missing required field `prompt`"),
        (without("loop_id"), "missing required field `loop_id`"),
        (changed(prompt=["fix it"]), "$.prompt"),
        (changed(iteration="7"), "$.iteration"),
        (changed(iteration=7.5), "$.iteration"),
        (changed(max_iterations=None), "$.max_iterations"),
        (changed(codex={"session_id": 7}), "$.codex.session_id"),
        (changed(codex={"sandbox": "full"}), "codex.sandbox is 'full', and must be one of read-only, workspace-write"),
        (changed(codex={"approval": "yolo"}), "codex.approval is 'yolo', and must be one of untrusted, on-failure"),
        (changed(promise_mode="line"), "promise_mode is 'line', and must be one of tag, plain, regex"),
        (changed(todo={"hard_stop_mode": "ask"}), "todo.hard_stop_mode is 'ask', and must be one of pause, exit"),
    ],
)
def test_what_is_not_understood_is_refused_and_named(text: str, cause: str) -> None:
    error = refused(text)
    assert error.what == "this state file cannot be taken over"
    assert cause in error.cause


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"prompt": " "}, "there is nothing to do"),
        ({"promise_mode": "regex", "completion_promise": "("}, "--completion-promise '(' is not a regular expression"),
    ],
)
def test_what_could_not_be_typed_cannot_be_taken_over_either(fields: dict[str, Any], what: str) -> None:
    assert refused(changed(**fields)).what == what


# -- no sandbox at all -------------------------------------------------------------------------------------------------


def test_a_file_of_the_repository_cannot_take_the_sandbox_away() -> None:
    """W-091."""
    text = changed(codex={"sandbox": "danger-full-access"})
    with pytest.raises(UserError, match="asks for no sandbox at all") as error:
        agree(adopted(text), "")
    assert error.value.hint == "if you want it so, say it: --sandbox danger-full-access"
    words = {"read-only": "read-only", "workspace-write": "workspace", "danger-full-access": "full"}
    for typed, ours in words.items():
        found = adopted(text, typed)
        agree(found, typed)
        assert (found.start.settings["sandbox"], found.start.words["sandbox"]) == ((ours,), typed)


@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write"])
@pytest.mark.parametrize("approval", ["on-request", "never"])
def test_a_sandbox_that_holds_needs_nobody_to_agree(sandbox: str, approval: str) -> None:
    found = adopted(changed(codex={"sandbox": sandbox, "approval": approval}))
    agree(found, "")
    assert found.start.words == {**adopted().start.words, "sandbox": sandbox, "approval": approval}


def test_the_fact_can_be_written_down_and_read_back() -> None:
    fact = adopted().fact
    assert msgspec.json.decode(msgspec.json.encode(fact), type=LoopAdopted) == fact


def test_a_loop_without_a_list_is_taken_over() -> None:
    """The original writes `"todo": null` for every loop that was started without --todo-file."""
    assert adopted(changed(todo=None)).start.settings["tasks"] == ()
    assert adopted(changed(codex=None)).start.settings["sandbox"] == ("read-only",)
