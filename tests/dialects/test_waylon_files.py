"""What the files of waylon-smithers say, from the first fact of a loop to the last."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.facts import AnyFact, LoopStopped
from bydawn.core.loop import Loop
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.replay import replay
from bydawn.core.rules import Rule
from bydawn.core.values import EXIT_CODES, FINISHED, Changes, End, Promised, Usage
from bydawn.dialects.seam import Source, View, Whole, draft
from bydawn.dialects.waylon_smithers import DIALECT, files
from core.facts_any import HISTORIES
from core.facts_made import BORN, a_note, a_round, checked, decided, numbered, pause, raised, run_started, started
from dialects.waylon_made import (
    EVENING,
    EXAMPLE,
    FOLDER,
    HERE,
    ID,
    ROOT,
    asked,
    loop_of,
    on_disk,
    smithers,
    told,
)

SESSION = "0199a213-81c0-7800-8aa1-bbab2a035a53"
STATE = f"{FOLDER}.json"
SUMMARY = f"{FOLDER}/summary.json"
BEGUN: list[AnyFact] = [BORN, run_started()]


def halted(end: End, rule: str = "complete", **more: Any) -> LoopStopped:
    return LoopStopped(end=end, reason="why not", decided=decided(rule), **more)


def iteration(number: int, outcome: Outcome = Outcome.OK, **more: Any) -> list[AnyFact]:
    return a_round(number, outcome, agent="codex", **{"session": SESSION, "exit_code": 0, **more})


def state_after(facts: Iterable[AnyFact], loop: Loop | None = None) -> dict[str, Any]:
    """What the state file says in the end."""
    loop = loop or smithers()
    data: dict[str, Any] = json.loads(on_disk(loop, facts).texts[files.Paths(loop).state])
    return data


def summary_after(facts: Iterable[AnyFact], loop: Loop | None = None) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(on_disk(loop or smithers(), facts).texts[SUMMARY])
    return data


def last_views(facts: Iterable[AnyFact], loop: Loop | None = None) -> list[View]:
    """What is written after the last of these facts."""
    [*_, (_, _, views)] = told(loop or smithers(), facts)
    return views


# -- the state file ----------------------------------------------------------------------------------------------------


def test_seven_iterations_make_the_very_state_file_of_the_document() -> None:
    """W-055, W-056, W-070, W-071, W-072, W-073, W-074."""
    expected = json.loads(EXAMPLE)
    place = msgspec.structs.replace(HERE, folder="/path/to/repo", workspace="/path/to/repo")
    request = asked(
        place,
        prompt=expected["prompt"],
        completion_promise="DONE",
        max_iterations=50,
        model="gpt-5.2-codex",
        sandbox="workspace-write",
        profile="default",
        todo_file="TODO.md",
    )
    loop = loop_of(request, place.workspace)
    facts = [*BEGUN, *(fact for number in range(1, 8) for fact in iteration(number))]
    state = state_after(facts, loop)
    ours = {"updated_at": state.pop("updated_at"), "reason": state.pop("reason")}
    assert state == expected
    assert [*state] == [*expected]
    assert ours == {"updated_at": "2026-01-06T12:00:16+00:00", "reason": None}


def test_before_the_first_iteration_ends_there_is_a_state_file_that_promises_nothing() -> None:
    """W-055, W-070, W-071, W-072, W-073, W-074."""
    state = state_after([BORN])
    assert (state["iteration"], state["status"]) == (0, "running")
    assert state["codex"] == {
        "session_id": None,
        "model": None,
        "sandbox": "read-only",
        "approval": "on-request",
        "profile": None,
    }
    assert state["todo"] == {
        "path": None,
        "hard_stop_token": None,
        "hard_stop_mode": None,
        "paused_for_hard_stop": False,
    }
    assert state["artifacts"] == {
        "dir": f"{FOLDER}/",
        "last_message_path": None,
        "jsonl_path": None,
        "summary_json_path": "summary.json",
    }
    assert state["last_result"] == {"exit_code": None, "detected_promise": False}


def test_the_moment_of_creation_has_the_offset_of_those_who_were_there() -> None:
    """W-070."""
    assert datetime.fromisoformat(state_after([BORN])["created_at"]) == EVENING
    assert state_after([BORN])["created_at"].endswith("-08:00")


@pytest.mark.parametrize(("mode", "text"), [("tag", "DONE"), ("plain", "{{DONE}}"), ("regex", "DON[EÉ]")])
def test_the_promise_stands_there_as_it_was_asked_for(mode: str, text: str) -> None:
    """W-070."""
    state = state_after([BORN], smithers(promise_mode=mode, completion_promise=text))
    assert (state["promise_mode"], state["completion_promise"]) == (mode, text)


def test_the_session_is_known_as_soon_as_it_is_chosen_and_kept_when_the_loop_stands_still() -> None:
    """W-056, W-059, W-071."""
    chosen = started(1, agent="codex", session=SESSION)
    assert state_after([*BEGUN, chosen])["codex"]["session_id"] == SESSION
    cut_short = iteration(1, Outcome.INTERRUPTED)
    still = state_after([*BEGUN, *cut_short, pause(now=True, signal="INT"), halted(End.PAUSED)])
    assert (still["status"], still["codex"]["session_id"]) == ("paused_user_interrupt", SESSION)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"exit_code": 0, "promise": Promised.GIVEN}, {"exit_code": 0, "detected_promise": True}),
        ({"exit_code": 0, "promise": Promised.MENTIONED}, {"exit_code": 0, "detected_promise": False}),
        ({"exit_code": 1, "outcome": Outcome.FAILED}, {"exit_code": 1, "detected_promise": False}),
        ({"exit_code": None, "outcome": Outcome.HUNG}, {"exit_code": None, "detected_promise": False}),
    ],
)
def test_the_last_result_is_that_of_the_iteration_that_ended_last(more: dict[str, Any], expected: object) -> None:
    """W-074."""
    assert state_after([*BEGUN, *iteration(1, **more)])["last_result"] == expected


def test_a_running_iteration_is_counted_and_the_files_are_still_those_of_the_one_before() -> None:
    """W-073."""
    state = state_after([*BEGUN, *iteration(1), started(2)])
    assert state["iteration"] == 2
    assert state["artifacts"]["last_message_path"] == "last_message_iter_1.txt"
    assert state["artifacts"]["jsonl_path"] == "events_iter_1.jsonl"


def test_a_cap_that_was_raised_is_the_one_that_is_shown() -> None:
    """W-070."""
    assert state_after([*BEGUN, raised(rounds=60)])["max_iterations"] == 60


# -- words for ends ----------------------------------------------------------------------------------------------------

# What the document has no word for keeps ours.
STATUSES = {
    End.COMPLETE: "completed",
    End.UNVERIFIED: "completed",
    End.BLOCKED: "blocked",
    End.LIMIT: "limit",
    End.CHECKPOINT: "paused_hard_stop",
    End.FAILED: "failed",
    End.PAUSED: "paused_user_interrupt",
    End.STOPPED: "canceled",
}


@pytest.mark.parametrize("end", End)
def test_every_end_has_a_word_in_both_files(end: End) -> None:
    """W-075."""
    facts = [*BEGUN, *iteration(1), halted(end)]
    assert DIALECT.word(halted(end)) == STATUSES[end]
    assert state_after(facts)["status"] == summary_after(facts)["status"] == STATUSES[end]
    reason = "the promise was given" if end in FINISHED else "why not"
    assert state_after(facts)["reason"] == summary_after(facts)["reason"] == reason
    assert state_after(facts)["todo"]["paused_for_hard_stop"] is (end is End.CHECKPOINT)  # W-072
    assert DIALECT.exit_code(halted(end)) == EXIT_CODES[end]


@pytest.mark.parametrize("rule", Rule)
def test_only_the_cap_is_called_the_cap(rule: str) -> None:
    """W-054, W-075."""
    word = DIALECT.word(halted(End.LIMIT, rule))
    assert word == ("stopped_max_iterations" if rule == "rounds" else "limit")


def test_a_loop_that_was_resumed_is_running_again() -> None:
    """W-075."""
    facts = [*BEGUN, *iteration(1), halted(End.CHECKPOINT), run_started()]
    state = state_after(facts)
    assert (state["status"], state["reason"]) == ("running", None)
    assert state["todo"]["paused_for_hard_stop"] is False


# -- after every fact --------------------------------------------------------------------------------------------------


@given(HISTORIES)
def test_over_any_history_the_state_is_whole_and_no_iteration_goes_backward(facts: list[AnyFact]) -> None:
    """W-055, W-101."""
    loop, before, fields = smithers(), 0, [*json.loads(EXAMPLE)]
    for _, state, views in told(loop, facts):
        [text] = [str(view.text) for view in views if isinstance(view, Whole) and view.path == STATE]
        found = json.loads(text)
        assert [*found][: len(fields)] == fields
        assert found["iteration"] >= before
        assert found == json.loads(json.dumps(files.state_of(loop, state)))  # what `status` shows is no other
        before = found["iteration"]


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if not POLICY[outcome].counts])
def test_an_iteration_that_was_cut_short_is_repeated_under_its_number(outcome: Outcome) -> None:
    facts = [*BEGUN, *iteration(1), *iteration(2, outcome), *iteration(3), *iteration(4)]
    seen = [state["iteration"] for state in (state_after(facts[:count]) for count in range(4, len(facts) + 1))]
    assert seen == [1, 2, 2, 2, 2, 3, 3]
    disk = on_disk(smithers(), facts)
    assert disk.copies[f"{FOLDER}/last_message_iter_2.txt"] == Source(3, "reply.md")
    assert disk.copies[f"{FOLDER}/last_message_iter_3.txt"] == Source(4, "reply.md")
    assert f"{FOLDER}/last_message_iter_4.txt" not in disk.copies


# -- after an iteration ------------------------------------------------------------------------------------------------


def test_an_iteration_leaves_its_last_message_and_its_events_before_the_state_names_them() -> None:
    """W-009, W-034, W-055, W-073."""
    views = last_views([*BEGUN, *iteration(1), *iteration(2)])
    assert views[:2] == [
        Whole(f"{FOLDER}/last_message_iter_2.txt", Source(2, "reply.md")),
        Whole(f"{FOLDER}/events_iter_2.jsonl", Source(2, "stdout")),
    ]
    assert [(type(view), view.path) for view in views[2:]] == [(Whole, STATE), (Whole, SUMMARY)]


def test_other_facts_change_the_state_alone() -> None:
    """W-055."""
    for fact in (pause(), a_note("n-1"), started(2), checked(1)):
        assert [view.path for view in last_views([*BEGUN, *iteration(1), fact])] == [STATE]
    assert [view.path for view in last_views([*BEGUN, halted(End.STOPPED)])] == [STATE, SUMMARY]


def test_what_is_written_is_kept_out_of_commits() -> None:
    assert last_views(BEGUN)[0] == Whole(f"{ROOT}/.gitignore", "*\n", once=True)


@pytest.mark.parametrize("path", ["events.jsonl", "logs/events.jsonl", "/var/events.jsonl"])
def test_events_grow_in_one_file_if_a_file_is_named(path: str) -> None:
    """W-033."""
    facts = [*BEGUN, *iteration(1), *iteration(2, Outcome.TRANSIENT), *iteration(3)]
    loop = smithers(jsonl_events=path)
    assert on_disk(loop, facts).growing == {path: [Source(number, "stdout") for number in (1, 2, 3)]}
    assert f"{FOLDER}/events_iter_1.jsonl" in on_disk(loop, facts).copies


@pytest.mark.parametrize("folder", ["logs/", "/var/logs/"])
def test_events_have_a_file_each_if_a_folder_is_named(folder: str) -> None:
    """W-033."""
    disk = on_disk(smithers(jsonl_events=folder), [*BEGUN, *iteration(1), *iteration(2)])
    assert disk.copies[f"{folder}events_iter_1.jsonl"] == Source(1, "stdout")
    assert disk.copies[f"{folder}events_iter_2.jsonl"] == Source(2, "stdout")
    assert disk.growing == {}


# -- paths -------------------------------------------------------------------------------------------------------------

PATHS: list[tuple[dict[str, str], set[str]]] = [
    ({}, {STATE, SUMMARY, f"{FOLDER}/last_message_iter_1.txt"}),
    ({"state_file": "s.json"}, {"s.json", SUMMARY}),
    ({"state_file": "/var/s.json"}, {"/var/s.json", SUMMARY}),
    ({"summary_json": "sum.json"}, {STATE, "sum.json"}),
    ({"last_message_dir": "said"}, {STATE, "said/summary.json", "said/last_message_iter_1.txt"}),
    ({"last_message_dir": "said/"}, {STATE, "said/summary.json", "said/events_iter_1.jsonl"}),
    ({"last_message_dir": "/var/said/"}, {STATE, "/var/said/summary.json", "/var/said/last_message_iter_1.txt"}),
    ({"last_message_dir": "said", "summary_json": "/var/sum.json"}, {"/var/sum.json", "said/events_iter_1.jsonl"}),
]


@pytest.mark.parametrize(("options", "expected"), PATHS)
def test_files_are_where_they_are_wanted(options: dict[str, str], expected: set[str]) -> None:
    """W-025, W-034, W-035, W-057."""
    loop = smithers(**options)
    disk = on_disk(loop, [*BEGUN, *iteration(1)])
    assert expected <= {*disk.texts, *disk.copies}
    assert files.Paths(loop).state == options.get("state_file", STATE)


@pytest.mark.parametrize(
    ("options", "folder", "summary"),
    [
        ({}, f"{FOLDER}/", "summary.json"),
        ({"last_message_dir": "said"}, "said/", "summary.json"),
        ({"last_message_dir": "/var/said"}, "/var/said/", "summary.json"),
        ({"summary_json": "out/sum.json"}, f"{FOLDER}/", "out/sum.json"),
        ({"summary_json": f"{FOLDER}/deep/sum.json"}, f"{FOLDER}/", "deep/sum.json"),
    ],
)
def test_the_state_says_where_they_are(options: dict[str, str], folder: str, summary: str) -> None:
    """W-073."""
    artifacts = state_after([BORN], smithers(**options))["artifacts"]
    assert (artifacts["dir"], artifacts["summary_json_path"]) == (folder, summary)


def test_two_loops_share_no_file_but_the_one_that_keeps_them_out_of_commits() -> None:
    """W-008, W-057."""
    facts = [*BEGUN, *iteration(1), halted(End.PAUSED)]
    one, two = (on_disk(smithers(loop_id=name), facts) for name in ("one", "two"))
    assert {*one.texts, *one.copies} & {*two.texts, *two.copies} == {f"{ROOT}/.gitignore"}


def test_files_in_the_workspace_are_no_work_of_the_agent() -> None:
    """Names, and never a folder: what else is in one is a person's."""
    inside = {"state_file": "s.json", "last_message_dir": "said/", "jsonl_events": "events.jsonl"}
    loop = smithers(**inside, summary_json="/var/sum.json")
    messages = ("said/last_message_iter_*.txt", "said/events_iter_*.jsonl")
    unfinished = draft(loop, "*")
    shared = f".codex/waylon-smithers/{unfinished}"
    drafts = (unfinished, f"/var/{unfinished}", f"said/{unfinished}", shared)
    assert DIALECT.files(loop).names(loop) == ("s.json", "/var/sum.json", *messages, "events.jsonl", *drafts)
    elsewhere = smithers(summary_json="sum.json", jsonl_events="logs/")
    events = DIALECT.files(elsewhere).names(elsewhere)
    assert [path for path in events if unfinished not in path] == [
        STATE,
        "sum.json",
        f"{FOLDER}/last_message_iter_*.txt",
        f"{FOLDER}/events_iter_*.jsonl",
        "logs/events_iter_*.jsonl",
    ]


# -- what may be removed -----------------------------------------------------------------------------------------------

# Runs of at least an iteration each, ended and gone on with.
NIGHTS = st.lists(st.lists(st.sampled_from(Outcome), min_size=1, max_size=4), min_size=1, max_size=3)
PLACES = st.fixed_dictionaries(
    {},
    optional={
        "state_file": st.sampled_from(["s.json", "/var/s.json"]),
        "last_message_dir": st.sampled_from(["said", "/var/said/"]),
        "summary_json": st.sampled_from(["sum.json", "/var/sum.json"]),
        "jsonl_events": st.sampled_from(["all.jsonl", "logs/"]),
    },
)


def night(runs: list[list[Outcome]]) -> list[AnyFact]:
    facts, number = [*BEGUN[:1]], 0
    for run in runs:
        facts.append(run_started())
        for outcome in run:
            number += 1
            facts += iteration(number, outcome)
        facts.append(halted(End.PAUSED))
    return facts


@given(PLACES)
def test_whatever_is_written_in_the_workspace_is_known_to_be_no_work(places: dict[str, str]) -> None:
    loop = smithers(**places)
    disk = on_disk(loop, night([[*Outcome][:1]] * 2))
    inside = {path for path in (*disk.texts, *disk.copies, *disk.growing) if not path.startswith("/")}
    known = {path.replace("*", number) for path in DIALECT.files(loop).names(loop) for number in "12"}
    assert inside - {f"{ROOT}/.gitignore"} <= known, "which keeps itself out of sight"


def may_be_removed(loop: Loop, facts: list[AnyFact]) -> tuple[str, ...]:
    return DIALECT.files(loop).of(range(1, DIALECT.counted(replay(numbered(facts))) + 1))


@given(NIGHTS, PLACES)
def test_what_cleaning_up_removes_is_all_that_was_made_for_this_loop_and_nothing_else(
    runs: list[list[Outcome]], places: dict[str, str]
) -> None:
    """W-060: a file that grows may be somebody else's as well, and the `.gitignore` is that of all loops."""
    loop, facts = smithers(**places), night(runs)
    disk = on_disk(loop, facts)
    made = {*disk.texts, *disk.copies} - {f"{ROOT}/.gitignore"}
    found = may_be_removed(loop, facts)
    assert {*found} == made
    assert len(found) == len(made)
    assert not {*disk.growing} & {*found}


def test_the_state_goes_last_so_that_a_half_done_cleaning_can_be_seen() -> None:
    facts = [*BEGUN, *iteration(1), halted(End.STOPPED)]
    assert may_be_removed(smithers(), facts)[-1] == STATE


# -- the summary -------------------------------------------------------------------------------------------------------


def test_the_summary_has_a_row_for_each_iteration() -> None:
    """W-009, W-012, W-035."""
    used = Usage(tokens_in=100, tokens_out=20)
    facts = [
        *BEGUN,
        *iteration(1, changes=Changes(added=2, deleted=1), seconds=61.5, usage=used),
        checked(1, passed=False),
        *iteration(2, Outcome.FAILED, exit_code=1, detail="gone", promise=Promised.MENTIONED, progress=False),
        started(3),
    ]
    summary = summary_after([*facts, halted(End.STOPPED)])
    first, second = summary["iterations"]
    assert first == {
        "iteration": 1,
        "started_at": "2026-01-06T12:00:03+00:00",
        "ended_at": "2026-01-06T12:00:04+00:00",
        "seconds": 61.5,
        "outcome": "ok",
        "detail": "",
        "exit_code": 0,
        "detected_promise": False,
        "promise_mentioned": False,
        "session_id": SESSION,
        "files_changed": 3,
        "progress": True,
        "checks_passed": False,
        "usage": {"tokens_in": 100, "tokens_cached": None, "tokens_out": 20, "cost_usd": None},
        "last_message_path": "last_message_iter_1.txt",
        "jsonl_path": "events_iter_1.jsonl",
    }
    expected = {
        "iteration": 2,
        "outcome": "failed",
        "detail": "gone",
        "exit_code": 1,
        "promise_mentioned": True,
        "progress": False,
        "checks_passed": None,
        "usage": None,
    }
    assert {key: second[key] for key in expected} == expected
    assert summary["usage"] == first["usage"]
    assert (summary["loop_id"], summary["session_id"]) == (ID, SESSION)


def test_an_iteration_that_was_tried_twice_has_a_row_for_each_try() -> None:
    facts = [*BEGUN, *iteration(1, Outcome.TRANSIENT), *iteration(2)]
    assert [row["iteration"] for row in summary_after(facts)["iterations"]] == [1, 1]


def test_the_summary_of_a_completed_loop_says_by_what() -> None:
    """W-053."""
    facts = [*BEGUN, *iteration(1, promise=Promised.GIVEN), halted(End.COMPLETE, evidence=("the promise",))]
    summary = summary_after(facts)
    assert (summary["status"], summary["evidence"]) == ("completed", ["the promise"])
    assert summary["iterations"][-1]["detected_promise"] is True
    assert [step.split("  # ")[0] for step in summary["what_to_do_next"]] == [
        f"waylon-smithers status --loop-id {ID} --cd {HERE.workspace}",
        f"git -C {HERE.workspace} status",
    ]


def test_the_summary_at_the_cap_says_what_to_do_next() -> None:
    """W-054."""
    loop = smithers(max_iterations=1)
    summary = summary_after([*BEGUN, *iteration(1), halted(End.LIMIT, "rounds")], loop)
    assert (summary["status"], summary["iteration"], summary["max_iterations"]) == ("stopped_max_iterations", 1, 1)
    assert summary["what_to_do_next"] == [
        f"waylon-smithers resume --loop-id {ID} --cd {HERE.workspace} --max-iterations 11  # go on with a higher cap",
        "or make the prompt smaller or clearer, or add tests that say when it is done",
    ]


def test_while_a_loop_runs_its_summary_advises_nothing() -> None:
    summary = summary_after([*BEGUN, *iteration(1)])
    assert (summary["status"], summary["reason"], summary["what_to_do_next"]) == ("running", None, [])
