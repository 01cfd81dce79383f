"""When a person's own commands run, what they are told, and what they can and cannot change."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bydawn.core.breakers import Limits
from bydawn.core.decide import next_action
from bydawn.core.facts import ChecksEnded, HookEnded, LoopStopped, Obstructed, RoundEnded, RoundStarted
from bydawn.core.loop import Hooks, OnHookFailure, Timeouts
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.replay import after
from bydawn.core.requests import AskNote, AskPause, AskStop
from bydawn.core.state import LoopState
from bydawn.core.values import End, Now
from engine.night import DONE, TODO, Night, Play, busy, todo

ALL = Hooks(pre_round="pre", post_round="post", on_complete="done", on_blocked="help", on_pause="later")
BLOCK = Hooks(pre_round="pre", post_round="post", on_blocked="help", on_failure=OnHookFailure.BLOCK)
THREE = Exit(code=3, seconds=2.0)
ASK_STOP = AskStop(id="r", run="", by="ada")
TWO_ROUNDS = [("pre_round", 1), ("post_round", 1), ("pre_round", 2), ("post_round", 2)]
MADE = Play(says=DONE, writes={"made": "x"})


def kinds(night: Night) -> list[str]:
    """The facts by name; hooks by their own."""
    return [fact.hook if isinstance(fact, HookEnded) else type(fact).__name__ for fact in night.facts()]


# -- when --------------------------------------------------------------------------------------------------------------


def test_each_hook_runs_in_its_place() -> None:
    night = Night(["half way", MADE], check=lambda files: "made" in files, hooks=ALL)
    assert night.run().end is End.COMPLETE
    assert night.hooks.order == [*TWO_ROUNDS, ("on_complete", 2)]
    one_round = ["pre_round", "RoundStarted", "RoundEnded", "ChecksEnded", "post_round"]
    assert kinds(night)[:3] == ["LoopCreated", "RunStarted", "ChecksEnded"]  # the baseline is no round
    assert kinds(night)[3:] == [*one_round, *one_round, "on_complete", "LoopStopped"]


def test_without_hooks_nothing_is_recorded_and_nothing_runs() -> None:
    night = Night([DONE])
    night.run()
    assert night.hooks.runs == []
    assert night.facts(HookEnded) == []


@pytest.mark.parametrize(
    ("plays", "settings", "end", "hook"),
    [
        ([DONE], {}, End.UNVERIFIED, "on_complete"),
        (["…"] * 5, {}, End.BLOCKED, "on_blocked"),
        (["…"], {"limits": Limits(rounds=1)}, End.LIMIT, "on_blocked"),
        ([Play(outcome=Outcome.AUTH, detail="log in")], {}, End.FAILED, "on_blocked"),
    ],
)
def test_every_end_has_its_hook(plays: list[Play | str], settings: dict[str, Any], end: End, hook: str) -> None:
    night = Night(plays, hooks=ALL, **settings)
    stopped = night.run()
    assert stopped.end is end
    assert [name for name, _ in night.hooks.order if name.startswith("on_")] == [hook]
    told = night.hooks.told(hook)
    assert (told["BYDAWN_STATE"], told["BYDAWN_REASON"]) == (end.value, stopped.reason)
    assert night.facts()[-1] == stopped


def test_an_attempt_that_counts_for_nothing_has_hooks_of_its_own() -> None:
    night = Night([Play(outcome=Outcome.TRANSIENT, detail="502"), DONE], hooks=ALL)
    night.run()
    assert night.hooks.order == [*TWO_ROUNDS, ("on_complete", 2)]


def test_a_round_that_cannot_begin_has_no_hook_before_it() -> None:
    night = Night([DONE], hooks=ALL)
    night.obstacle = ("workspace", "the folder is gone")
    assert night.run().end is End.BLOCKED
    assert night.hooks.order == [("on_blocked", 0)]


def test_a_resumed_loop_goes_on_with_the_hooks_of_the_next_round() -> None:
    night = Night(["half way", MADE], hooks=ALL)
    night.run(once=True)
    night.run()
    assert night.hooks.order == [*TWO_ROUNDS[:2], ("on_blocked", 1), *TWO_ROUNDS[2:], ("on_complete", 2)]


def test_after_a_crash_in_a_round_the_next_attempt_is_prepared_again_and_the_lost_one_has_no_hook_after_it() -> None:
    night = Night(hooks=ALL)
    night.agent._plays = iter([Play(meanwhile=night.crash), MADE])
    night.run_until_crash()
    night.run()
    assert night.hooks.order == [("pre_round", 1), *TWO_ROUNDS[2:], ("on_complete", 2)]


def test_a_crash_in_the_last_hook_runs_it_again_and_what_it_printed_is_masked() -> None:
    night = Night([DONE], hooks=ALL)
    night.hooks.meanwhile = lambda name: night.crash() if name == "on_complete" else None
    night.run_until_crash()
    assert night.state.stopped is None
    night.hooks.meanwhile = lambda _: None
    assert night.run().end is End.UNVERIFIED
    assert night.hooks.order == [*TWO_ROUNDS[:2], ("on_complete", 1), ("on_complete", 1)]
    assert (1,) in night.files.masked, "whatever it had printed when the power went"


# -- with what ---------------------------------------------------------------------------------------------------------


def test_hooks_are_told_about_the_round() -> None:
    ticked = Play(writes={TODO: todo("x one"), "made": "x"})
    night = Night([ticked], files={TODO: todo("one")}, tasks=TODO, check=lambda files: "made" in files, hooks=ALL)
    night.run()
    id_ = night.facts(RoundStarted)[0].task_id or ""
    about = {"BYDAWN_LOOP": "night", "BYDAWN_TASK": "one", "BYDAWN_TASK_ID": id_, "BYDAWN_AGENT_NAME": "demo"}
    assert night.hooks.told("pre_round") == about
    how = {"BYDAWN_OUTCOME": "ok", "BYDAWN_PROGRESSED": "1", "BYDAWN_CHECKS": "passed"}
    assert night.hooks.told("post_round") == about | how
    assert night.hooks.told("on_complete") == about | {
        "BYDAWN_STATE": "complete",
        "BYDAWN_REASON": "tasks and checks",
        "BYDAWN_RULE": "complete",
    }


@pytest.mark.parametrize(("green", "said"), [(True, "passed"), (False, "failed"), (None, "none")])
def test_what_the_checks_said_is_told(green: bool | None, said: str) -> None:
    check = None if green is None else (lambda _: bool(green))
    night = Night(["…"], check=check, limits=Limits(rounds=1), hooks=ALL)
    night.run()
    assert night.hooks.told("post_round")["BYDAWN_CHECKS"] == said


def test_checks_that_did_not_run_say_nothing() -> None:
    blip = Play(outcome=Outcome.TRANSIENT, detail="502", writes={"a": "1"})
    night = Night([blip], check=lambda _: False, limits=Limits(seconds=30), hooks=ALL)
    night.run()
    assert night.hooks.told("post_round")["BYDAWN_CHECKS"] == "none"


def test_what_a_task_says_is_told_as_one_short_line() -> None:
    title = "be \x1b[31mred\x07 " + "x" * 2000
    night = Night([DONE], files={TODO: todo(title)}, tasks=TODO, limits=Limits(rounds=1), hooks=ALL)
    night.run()
    told = night.hooks.told("pre_round")["BYDAWN_TASK"]
    assert told.startswith("be red xxx")
    assert told.isprintable() and len(told) <= 1000


def test_a_dialect_gives_them_names_of_its_own_as_one_short_line_without_secrets() -> None:
    """C-065: `CODEX_LOOP_…` of codex-loop."""
    night = Night([DONE], hooks=ALL, workspace="/my  project")
    night.hide = lambda text: text.replace("hunter2", "…")
    night.hook_words = lambda hook, loop, state, told: {
        "SHIFT": f"{hook} of {loop.id}\n{state.round} hunter2 {told['BYDAWN_AGENT_NAME']}" + "x" * 2000,
        "BYDAWN_LOOP": "another",
        "SHIFT_FOLDER": loop.folder,
    }
    night.run()
    told = night.hooks.told("post_round")
    assert told["SHIFT"].startswith("post_round of night 1 … demoxx") and len(told["SHIFT"]) <= 1000
    assert told["BYDAWN_LOOP"] == "night"  # ours stay ours
    assert told["SHIFT_FOLDER"] == "/my  project"  # a path that was cleaned up would lead nowhere


# -- what is recorded --------------------------------------------------------------------------------------------------


def test_a_hook_is_recorded_with_its_end_and_its_time_is_working_time() -> None:
    night = Night([DONE], hooks=Hooks(pre_round="pre", on_complete="done"))
    night.hooks.exits["on_complete"] = THREE
    stopped = night.run()
    first, last = night.facts(HookEnded)
    assert (first.hook, first.round, first.passed, first.detail) == ("pre_round", 1, True, "exit 0")
    assert (first.seconds, first.elapsed, first.output) == (2.0, 2.0, "hook-pre_round.txt")
    assert (last.passed, last.detail, last.elapsed) == (False, "exit 3", 64.0)
    assert stopped.decided.elapsed == 62.0  # the end was decided before
    assert night.state.elapsed == 64.0
    assert (1, "hook-on_complete.txt") in night.files.masked


@pytest.mark.parametrize(
    ("exit_", "detail"),
    [
        (Exit(ending=Ending.TOTAL, signal=2), "timed out after 1 m 00"),
        (Exit(signal=9), "ended by signal 9"),
        (Exit(ending=Ending.NOT_STARTED, detail="/bin/sh: gone"), "could not be started: /bin/sh: gone"),
        (Exit(ending=Ending.VOLUME, signal=2), "stopped (volume)"),
    ],
)
def test_whatever_a_hook_does_is_said_in_our_words(exit_: Exit, detail: str) -> None:
    night = Night([DONE], hooks=ALL, timeouts=Timeouts(hook=60))
    night.hooks.exits["pre_round"] = exit_
    assert night.run().end is End.UNVERIFIED
    assert (night.facts(HookEnded)[0].passed, night.facts(HookEnded)[0].detail) == (False, detail)


def test_what_a_hook_finds_on_the_disk_is_all_there_is() -> None:
    night = Night(["half way", MADE], check=lambda files: "made" in files, hooks=ALL)
    behind: list[int] = []
    night.hooks.meanwhile = lambda _: behind.append(len(night.ledger.records) - night.ledger.synced)
    night.run()
    assert behind == [0] * 5


# -- several commands ----------------------------------------------------------------------------------------------

SEVERAL = Hooks(pre_round=("a", "b", "c"), post_round=("d", "e"), on_blocked=("f", "g"), on_pause=("h", "i"))
STRICT = replace(SEVERAL, on_failure=OnHookFailure.BLOCK)


def test_several_commands_of_a_hook_run_in_order_and_each_is_recorded() -> None:
    """C-008"""
    night = Night([DONE], hooks=SEVERAL)
    night.hooks.exits["b"], night.hooks.prints["pre_round"] = THREE, "no database\n"
    night.run()
    assert night.hooks.commands == ["a", "b", "c", "d", "e"]
    first, second, third = night.facts(HookEnded)[:3]
    assert [each.output for each in (first, second, third)] == [f"hook-pre_round{end}.txt" for end in ("", "-2", "-3")]
    assert (first.command, first.exit_code, first.passed, first.excerpt, first.more) == ("a", 0, True, "", True)
    assert (second.command, second.exit_code, second.passed, second.more) == ("b", 3, False, True)
    assert (second.excerpt, second.timed_out, third.more) == ("no database\n", False, False)
    assert {(1, each.output or "") for each in (first, second, third)} <= {*night.files.masked}
    assert_decisions_agree(night)


@pytest.mark.parametrize(("failing", "ran"), [("b", "abfg"), ("d", "abcdfg")])
def test_the_first_failure_blocks_and_nothing_of_that_hook_follows(failing: str, ran: str) -> None:
    night = Night([DONE], hooks=STRICT)
    night.hooks.exits[failing] = Exit(ending=Ending.TOTAL, signal=2)
    stopped = night.run()
    assert stopped.end is End.BLOCKED
    assert f"({failing}) failed: timed out" in stopped.reason
    assert night.hooks.commands == [*ran]
    assert [fact.command for fact in night.facts(HookEnded) if fact.timed_out] == [failing]


def test_every_command_at_the_end_runs_even_if_one_fails() -> None:
    night = Night(busy(), limits=Limits(rounds=1), hooks=STRICT)
    night.hooks.exits["f"] = THREE
    assert night.run().end is End.LIMIT
    assert night.hooks.commands[-2:] == ["f", "g"]


def test_who_is_in_a_hurry_ends_all_commands_of_the_last_hook() -> None:
    night = Night(busy(), limits=Limits(rounds=1), hooks=SEVERAL)
    at(night, "on_blocked", AskStop(id="r", run="", by="ada"))
    assert night.run().end is End.LIMIT
    assert night.hooks.commands[-1] == "f"


def test_a_person_who_stops_the_loop_ends_all_commands_but_those_for_that_end() -> None:
    night = Night([DONE], hooks=SEVERAL)
    night.hooks.meanwhile = lambda _: night.ask(ASK_STOP) if night.hooks.commands == ["a"] else None
    assert night.run().end is End.STOPPED
    assert night.hooks.commands == ["a", "h", "i"]


def test_a_hook_that_refused_has_agreed_only_when_all_its_commands_have() -> None:
    night = Night([MADE], hooks=STRICT)
    night.hooks.exits["e"] = THREE
    assert night.run().end is End.BLOCKED
    night.hooks.exits.clear()
    night.hooks.meanwhile = lambda _: night.ask(ASK_STOP) if night.hooks.commands[-1] == "e" else None
    assert night.run().end is End.STOPPED
    night.hooks.meanwhile = lambda _: None
    night.hooks.commands.clear()
    assert night.run().end is End.UNVERIFIED
    assert night.hooks.commands == ["d", "e"]


def test_a_loop_of_an_older_version_still_loads_and_means_the_same() -> None:
    old = msgspec.json.decode(b'{"pre_round": "pre", "post_round": null, "on_failure": "block"}', type=Hooks)
    assert old == Hooks(pre_round=("pre",), on_failure=OnHookFailure.BLOCK)
    assert old.commands == {
        "pre_round": ("pre",),
        "post_round": (),
        "on_complete": (),
        "on_blocked": (),
        "on_pause": (),
    }
    assert msgspec.json.decode(msgspec.json.encode(old), type=Hooks) == old


# -- what follows ------------------------------------------------------------------------------------------------------


def test_a_failing_hook_is_ignored_unless_a_person_says_otherwise() -> None:
    night = Night(["half way", MADE], hooks=ALL)
    night.hooks.exits = dict.fromkeys(("pre_round", "post_round", "on_complete"), THREE)
    assert night.run().end is End.UNVERIFIED
    assert night.facts(Obstructed) == []


@pytest.mark.parametrize(("hook", "rounds"), [("pre_round", 0), ("post_round", 1)])
def test_a_failing_hook_blocks_if_a_person_wants_that(hook: str, rounds: int) -> None:
    night = Night([DONE], hooks=BLOCK)
    night.hooks.exits[hook] = THREE
    night.hooks.prints[hook] = "looking\nno database\n"
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.BLOCKED, f"hook {hook} failed: exit 3: no database")
    assert len(night.facts(RoundStarted)) == rounds
    assert night.hooks.order[-1] == ("on_blocked", rounds)


def test_a_person_who_has_mended_it_resumes() -> None:
    night = Night([DONE], hooks=BLOCK)
    night.hooks.exits["pre_round"] = THREE
    night.run()
    night.hooks.exits.clear()
    assert night.run().end is End.UNVERIFIED
    assert [name for name, _ in night.hooks.order] == ["pre_round", "on_blocked", "pre_round", "post_round"]


def test_a_failing_last_hook_changes_nothing() -> None:
    night = Night(busy(), limits=Limits(rounds=1), hooks=BLOCK)
    night.hooks.exits["on_blocked"] = THREE
    assert night.run().end is End.LIMIT
    assert night.facts(Obstructed) == []


def test_what_hooks_change_is_not_progress() -> None:
    night = Night(["nothing"] * 5, hooks=ALL)

    def scribble(name: str) -> None:
        night.workspace.edit({name: str(len(night.hooks.runs))})

    night.hooks.meanwhile = scribble
    stopped = night.run()
    assert stopped.decided.rule == "no-progress"
    assert [(fact.found.progress, fact.found.changes.total) for fact in night.facts(RoundEnded)] == [(False, 0)] * 5


def test_a_proof_does_not_hold_for_a_tree_that_a_hook_has_changed() -> None:
    night = Night([MADE, Play(writes={"broken": None})], check=lambda files: "broken" not in files, hooks=ALL)
    first = ("post_round", 1)
    night.hooks.meanwhile = lambda _: night.workspace.edit({"broken": "x"} if night.hooks.order[-1] == first else {})
    assert night.run().end is End.COMPLETE
    assert [(fact.round, fact.passed) for fact in night.facts(ChecksEnded)][1:] == [(1, True), (1, False), (2, True)]
    assert night.facts(ChecksEnded)[-1].tree == night.workspace.tree


def test_a_hook_that_writes_after_every_round_does_not_keep_a_loop_from_completing() -> None:
    night = Night([MADE], check=lambda files: "made" in files, hooks=ALL)
    night.hooks.writes["post_round"] = {"log": "one more"}
    assert night.run().end is End.COMPLETE
    assert [fact.round for fact in night.facts(ChecksEnded)] == [0, 1, 1]
    assert [name for name, _ in night.hooks.order] == ["pre_round", "post_round", "on_complete"]


def test_a_task_that_a_hook_adds_is_seen() -> None:
    plays = [Play(writes={TODO: boxes, "work": boxes}) for boxes in (todo("x one"), todo("x one", "x two"))]
    night = Night(plays, files={TODO: todo("one")}, tasks=TODO, hooks=Hooks(post_round="post"))
    night.hooks.meanwhile = lambda _: night.workspace.edit(
        {TODO: todo("x one", "two")} if len(night.hooks.runs) == 1 else {}
    )
    assert night.run().end is End.UNVERIFIED
    assert [fact.task for fact in night.facts(RoundStarted)] == ["one", "two"]


def test_a_hook_before_the_round_runs_once_even_if_it_changes_the_tasks() -> None:
    night = Night([DONE], files={TODO: todo("one")}, tasks=TODO, limits=Limits(rounds=1), hooks=ALL)
    night.hooks.writes["pre_round"] = {TODO: todo("another", "one")}
    night.run()
    assert night.hooks.order[:2] == TWO_ROUNDS[:2]
    assert [fact.task for fact in night.facts(RoundStarted)] == ["another"]


# -- people ------------------------------------------------------------------------------------------------------------


def at(night: Night, hook: str, request: AskPause | AskStop | AskNote) -> None:
    """Somebody asks for something while a hook runs."""
    night.hooks.meanwhile = lambda name: night.ask(request) if name == hook else None


def test_a_person_who_says_stop_ends_a_hook_and_no_round_begins() -> None:
    night = Night([DONE], hooks=ALL)
    at(night, "pre_round", AskStop(id="r", run="", by="ada"))
    assert night.run().end is End.STOPPED
    assert night.facts(HookEnded)[0].detail == "stopped on request"
    assert night.facts(RoundStarted) == []
    assert night.hooks.order == [("pre_round", 1), ("on_pause", 0)]


def test_a_hook_that_was_cut_short_has_not_failed() -> None:
    night = Night([DONE], hooks=BLOCK)
    at(night, "pre_round", AskPause(id="r", run="", by="ada", now=True))
    assert night.run().end is End.PAUSED
    assert night.facts(Obstructed) == []


def test_nothing_but_the_last_hook_runs_once_somebody_wants_out_now() -> None:
    night = Night(hooks=ALL)
    wanted = AskPause(id="r", run="", by="ada", now=True)
    night.agent._plays = iter([Play(meanwhile=lambda: night.ask(wanted))])
    assert night.run().end is End.PAUSED
    assert night.hooks.order == [("pre_round", 1), ("on_pause", 1)]
    assert night.hooks.told("on_pause")["BYDAWN_STATE"] == "paused"


@pytest.mark.parametrize("wanted", [AskPause(id="r", run="", by="ada", now=True), AskStop(id="r", run="", by="ada")])
def test_who_is_in_a_hurry_ends_the_last_hook_and_the_end_stays_as_it_was_decided(wanted: AskPause | AskStop) -> None:
    night = Night([DONE], hooks=ALL)
    at(night, "on_complete", wanted)
    assert night.run().end is End.UNVERIFIED
    assert night.facts(HookEnded)[-1].detail == "stopped on request"
    assert night.channel.done_with == []  # left to whoever asked


def test_a_note_is_taken_even_in_the_last_hook_and_does_not_disturb_it() -> None:
    night = Night(busy(), limits=Limits(rounds=1), hooks=ALL)
    at(night, "on_blocked", AskNote(id="n", run="", by="ada", text="use tabs"))
    assert night.run().end is End.LIMIT
    assert [note.text for note in night.state.notes] == ["use tabs"]
    assert night.facts(HookEnded)[-1].passed


def test_the_time_that_a_last_hook_takes_does_not_change_the_end() -> None:
    night = Night(busy(), limits=Limits(rounds=1, seconds=100), hooks=ALL)
    night.hooks.seconds = 30.0
    assert night.run().decided.rule == "rounds"
    assert night.state.elapsed == 150.0


def test_a_disk_that_fills_up_in_the_last_hook_is_the_end_that_is_told() -> None:
    night = Night([DONE], hooks=Hooks(on_complete="done"))
    night.ledger.fills_up_with = HookEnded
    assert night.run().decided.rule == "obstructed"
    assert_decisions_agree(night)


def assert_decisions_agree(night: Night) -> None:
    """As `bydawn why` does it."""
    state = LoopState()
    for record in night.ledger.records:
        if isinstance(record.fact, RoundStarted | LoopStopped):
            decided = record.fact.decided
            assert next_action(night.loop, state, Now(decided.at, decided.elapsed)).rule == decided.rule
        state = after(state, record)
