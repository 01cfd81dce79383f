"""Ordinary nights: what is done, what is believed, and what the agent is told."""

import pytest

from bydawn.core.agent import Complaint, Message, Notice
from bydawn.core.breakers import Limits
from bydawn.core.facts import ChecksEnded, RoundEnded, RoundStarted, TasksRead
from bydawn.core.loop import Mode, Promise, SpokenDialect
from bydawn.core.outcome import Outcome
from bydawn.core.replay import replay
from bydawn.core.requests import AskNote, AskStop
from bydawn.core.values import End, Promised
from bydawn.store.ledger import encode
from engine.fakes import Files
from engine.night import DONE, TODO, Night, Play, blip, busy, todo


def says_ok(files: Files) -> bool:
    return files.get("app.py") == "right"


def test_a_promise_without_passing_checks_is_not_believed() -> None:
    plays = [Play(says=DONE, writes={"app.py": "wrong"}), Play(says=DONE, writes={"app.py": "right"})]
    night = Night(plays, check=says_ok, promise=Promise())
    assert night.run().end is End.COMPLETE
    assert [fact.promise for fact in night.facts(RoundEnded)] == [Promised.GIVEN, Promised.GIVEN]
    assert night.verdicts == [False, True]
    assert "Your claim to be done was rejected" in night.prompt(2)


def test_passing_checks_without_the_promise_that_was_asked_for_are_not_enough() -> None:
    plays = [Play(writes={"app.py": "right"}), Play(says=DONE)]
    night = Night(plays, check=says_ok, promise=Promise())
    assert night.run().end is End.COMPLETE
    assert night.state.round == 2


def test_a_mention_is_answered_and_the_same_form_again_is_believed() -> None:
    night = Night([f"The parser is there: {Promise().token}"] * 3)
    assert night.run().end is End.UNVERIFIED
    assert [fact.promise for fact in night.facts(RoundEnded)] == [Promised.MENTIONED, Promised.GIVEN]
    assert "You mentioned the promise but did not give it" in night.prompt(2)


def test_a_mention_that_was_answered_waits_for_the_list_and_counts_in_the_round_that_closes_it() -> None:
    said = f"The parser is there: {Promise().token}"
    plays = [Play(says=said, writes={"a.py": "1"}), Play(says=said, writes={"a.py": "2"})]
    plays.append(Play(says=said, writes={"a.py": "3", TODO: todo("x one")}))
    night = Night(plays, files={TODO: todo("one")}, tasks=TODO, promise=Promise())
    assert night.run().end is End.UNVERIFIED
    assert [fact.promise for fact in night.facts(RoundEnded)] == [Promised.MENTIONED] * 2 + [Promised.GIVEN]


def test_a_refusal_is_not_believed_however_often_it_is_said() -> None:
    night = Night([f"I cannot say {Promise().token}"] * 9)
    assert night.run().end is End.BLOCKED
    assert {fact.promise for fact in night.facts(RoundEnded)} == {Promised.MENTIONED}


def test_the_words_of_a_turn_that_failed_are_no_promise() -> None:
    night = Night([Play(says=DONE, outcome=Outcome.CRASHED, writes={"a": "1"}), Play(says=DONE)])
    night.run()
    assert [fact.promise for fact in night.facts(RoundEnded)] == [Promised.ABSENT, Promised.GIVEN]


def test_without_checks_the_loop_ends_unverified() -> None:
    night = Night(["half way", DONE])
    assert night.run().end is End.UNVERIFIED
    assert night.checks.runs == 0


def test_a_promise_in_another_form_is_judged_in_that_form() -> None:
    night = Night(["done? no", "finished"], promise=Promise(text="finished", mode=Mode.REGEX))
    assert night.run().end is End.UNVERIFIED
    assert night.state.round == 2


def test_a_loop_of_checks_alone_needs_a_round_that_went_well_and_some_work() -> None:
    crashed = Play(outcome=Outcome.CRASHED, writes={"app.py": "wrong"})
    night = Night([crashed, "looked at it, all is well"], check=lambda _: True)
    assert (night.run().end, night.state.round) == (End.COMPLETE, 2)
    idle = Night(["looked at it, all is well"] * 9, check=lambda _: True)
    assert (idle.run().decided.rule, idle.state.round) == ("no-progress", 5)


def test_checks_that_pass_before_need_the_agents_word_too() -> None:
    """ "I will begin tomorrow", or a third of the work: green tests are no login page."""
    tomorrow = Night(["I will begin tomorrow."] * 9, check=lambda _: True, promise_required=True)
    assert (tomorrow.run().decided.rule, tomorrow.state.round) == ("no-progress", 5)
    third = Play(says="Half of it.\n\n## Open\n- the form\n- the session", writes={"page.py": "1"})
    night = Night([third, Play(says=DONE, writes={"form.py": "1"})], check=lambda _: True, promise_required=True)
    assert (night.run().end, night.state.round) == (End.COMPLETE, 2)
    assert "- the form\n- the session" in night.prompt(2)


def test_a_promise_that_nothing_was_done_for_proves_nothing() -> None:
    stopped = Night([DONE], check=lambda _: True, promise_required=True).run()
    assert (stopped.end, stopped.reason) == (End.UNVERIFIED, "nothing was changed, and the checks passed before")


def test_where_checks_turn_green_the_agent_is_asked_once_whether_the_goal_is_met() -> None:
    right = Play(writes={"app.py": "right"}, says="I think I fixed it")
    night = Night([right, "Yes."], check=says_ok, promise_required=True)
    stopped = night.run()
    assert (stopped.end, [fact.audit for fact in night.facts(RoundStarted)]) == (End.COMPLETE, [False, True])
    assert any("did not say so" in row for row in stopped.evidence)
    open_ = Night(
        [right, "No.\n## Open\n- docs", Play(writes={"docs": "1"}, says=DONE)], check=says_ok, promise_required=True
    )
    assert (open_.run().end, [fact.audit for fact in open_.facts(RoundStarted)]) == (End.COMPLETE, [False, True, False])


def test_a_list_that_is_done_at_the_start_costs_no_round() -> None:
    night = Night(files={TODO: todo("x one", "x two")}, check=lambda _: True, tasks=TODO)
    assert night.run().end is End.COMPLETE
    assert (night.agent.turns, len(night.checks.log), night.state.round) == (0, 1, 0)


def test_a_list_that_is_done_and_red_gets_a_round_that_knows_why() -> None:
    night = Night([Play(writes={"app.py": "right"})], files={TODO: todo("x one")}, check=says_ok, tasks=TODO)
    assert night.run().end is End.COMPLETE
    assert "FAIL number 0" in night.prompt(1)


def test_tasks_are_worked_off_one_by_one_and_their_closing_is_recorded() -> None:
    plays = [
        Play(writes={TODO: todo("x one", "two"), "one.py": "1"}),
        Play(writes={TODO: todo("x one", "x two (see a1b2)"), "two.py": "2"}),
    ]
    night = Night(plays, files={TODO: todo("one", "two")}, check=lambda _: True, tasks=TODO)
    assert night.run().end is End.COMPLETE
    assert [fact.found.closed for fact in night.facts(RoundEnded)] == [("one",), ("two",)]
    assert [fact.task for fact in night.facts(RoundStarted)] == ["one", "two"]


def test_a_failing_check_stands_fenced_in_the_next_prompt_and_the_fence_is_new_each_time() -> None:
    plays = [Play(writes={"app.py": "wrong"}), Play(writes={"app.py": "wronger"}), Play(writes={"app.py": "right"})]
    night = Night(plays, check=says_ok)
    night.run()
    fences = []
    for round_ in (2, 3):
        text = night.prompt(round_)
        fence = text.partition("<<")[2].partition("\n")[0]
        assert f"<<{fence}\nFAIL number {round_ - 1}\n{fence}>>" in text
        fences.append(fence)
    assert len(set(fences)) == 2
    assert all(len(fence) >= 16 for fence in fences)


def test_a_tree_that_is_proven_is_not_proven_again() -> None:
    plays: list[Play | str] = [Play(writes={"app.py": "right"}), "nothing to do", "still nothing", DONE]
    night = Night(plays, check=says_ok, promise=Promise())
    assert night.run().end is End.COMPLETE
    assert [fact.round for fact in night.facts(ChecksEnded)] == [0, 1, 4]


def test_except_at_the_end_as_not_all_that_counts_is_in_the_tree() -> None:
    """Done means proven: the last round may have taken away what an earlier one had built."""
    plays: list[Play | str] = [Play(writes={"app.py": "right"}), DONE, DONE]
    night = Night(plays, check=lambda _: night.agent.turns in (1, 3), promise=Promise())
    assert night.run().end is End.COMPLETE
    said = [(fact.round, *(verdict.passed for verdict in fact.verdicts)) for fact in night.facts(ChecksEnded)]
    assert said == [(0, False), (1, True), (2, False), (3, True)]


def test_a_red_tree_is_asked_again_because_not_all_is_in_the_tree() -> None:
    plays = [Play(says="looked at it"), Play(says="installed what was missing")]
    night = Night(plays, check=lambda _: night.checks.runs == 2)
    assert night.run().end is End.COMPLETE
    assert night.verdicts == [False, True]
    assert len({fact.tree for fact in night.facts(ChecksEnded)}) == 1
    assert night.checks.log[-2:] == [(2, False), (2, True)], "green where it was red: once more, to be sure"


def test_a_network_blip_costs_nothing_and_the_loop_goes_on() -> None:
    night = Night(["half way", blip(), blip("504"), DONE], limits=Limits(rounds=2, agent_failures=1))
    assert night.run().end is End.UNVERIFIED
    assert (night.state.round, night.state.rounds, night.state.failures_in_a_row) == (4, 2, 0)


def test_no_check_is_run_after_a_blip() -> None:
    night = Night([blip(), Play(writes={"app.py": "right"})], check=says_ok)
    night.run()
    assert night.checks.runs == 1


def test_a_loop_that_finishes_in_its_last_round_is_complete() -> None:
    plays = [Play(writes={"app.py": "wrong"}), Play(writes={"app.py": "right"})]
    night = Night(plays, check=says_ok, limits=Limits(rounds=2))
    assert night.run().end is End.COMPLETE


def test_a_loop_that_does_not_finish_in_its_last_round_says_what_is_missing() -> None:
    night = Night(busy(), check=says_ok, limits=Limits(rounds=2))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.LIMIT, "rounds")
    assert stopped.evidence == ("1 of 1 checks failed: make test", "make test: exit 2: FAIL number 2")


@pytest.mark.parametrize("times", [1, 3])
def test_once_means_one_round_each_time(times: int) -> None:
    night = Night(busy())
    for _ in range(times):
        assert night.run(once=True).decided.rule == "rounds-this-run"
    assert night.agent.turns == times


def test_a_run_may_be_given_its_own_time() -> None:
    night = Night(busy(), limits=Limits(rounds=0, no_progress=0))
    for turns in (2, 4):
        stopped = night.run(seconds=90.0)
        assert (stopped.end, stopped.decided.rule, night.agent.turns) == (End.LIMIT, "time-this-run", turns)
    assert stopped.reason == "this run was allowed 1 m 30"


def test_once_does_not_count_a_blip() -> None:
    night = Night([blip(), "one round"])
    assert night.run(once=True).decided.rule == "rounds-this-run"
    assert night.agent.turns == 2


def test_a_prompt_that_is_an_argument_is_on_no_stdin_and_in_no_fact() -> None:
    night = Night(["one", DONE], prompt="do it all")
    night.agent.prompt_last = True
    night.run()
    assert [job.argv for job in night.processes.jobs] == [
        ("demo", str(number), night.prompt(number)) for number in (1, 2)
    ]
    assert {job.stdin for job in night.processes.jobs} == {"/dev/null"}
    assert "do it all" in night.prompt(1)
    assert "do it all" not in str(night.facts())


def test_a_prompt_that_is_too_long_for_an_argument_goes_on_stdin_and_that_is_said_once() -> None:
    night = Night(["one", "two", DONE], prompt="x" * 100_000)
    night.agent.prompt_last = True
    night.run()
    assert [job.argv for job in night.processes.jobs] == [("demo", str(number)) for number in (1, 2, 3)]
    assert "/dev/null" not in {job.stdin for job in night.processes.jobs}
    assert [event.text for event in night.witness.events if isinstance(event, Notice)] == [
        "the prompt is longer than 100,000 bytes, so the agent gets it on standard input"
    ]


# -- notes ---------------------------------------------------------------------------------------------------------


def a_note(text: str) -> AskNote:
    return AskNote(id=f"n-{text}", run="run-1", by="ada", text=text)


def test_a_note_is_in_one_prompt_and_confirmed_there() -> None:
    night = Night(["one", "two", DONE])
    night.ask(a_note("use tabs"))
    night.run()
    assert ["use tabs" in night.prompt(round_) for round_ in (1, 2, 3)] == [True, False, False]
    assert [fact.notes for fact in night.facts(RoundStarted)] == [("n-use tabs",), (), ()]
    assert night.channel.done_with == [a_note("use tabs")]


def test_a_note_that_comes_during_a_round_is_in_the_next_prompt() -> None:
    night = Night([Play(meanwhile=lambda: night.ask(a_note("use tabs"))), "two", DONE])
    night.run()
    assert ["use tabs" in night.prompt(round_) for round_ in (1, 2, 3)] == [False, True, False]


def test_a_note_that_a_blip_swallowed_is_told_again() -> None:
    night = Night([blip(), "heard it", DONE])
    night.ask(a_note("use tabs"))
    night.run()
    assert ["use tabs" in night.prompt(round_) for round_ in (1, 2, 3)] == [True, True, False]


# -- people edit too -----------------------------------------------------------------------------------------------


def test_a_list_that_a_person_edits_between_two_rounds_is_noticed_before_the_next() -> None:
    night = Night(
        [blip(), Play(writes={TODO: todo("x one", "x three"), "3.py": ""})], files={TODO: todo("one")}, tasks=TODO
    )
    night.clock.at(1.5, lambda: night.workspace.edit({TODO: todo("one", "three")}))
    assert night.run().end is End.UNVERIFIED
    assert [fact.tasks.open for fact in night.facts(TasksRead)] == [2]
    assert "2 open" in night.prompt(2)


def test_a_person_who_ticks_the_last_box_and_breaks_the_code_is_not_believed_either() -> None:
    night = Night(
        [Play(writes={"app.py": "right"}), blip(), Play(writes={"app.py": "right"})],
        files={TODO: todo("one")},
        check=says_ok,
        tasks=TODO,
    )
    night.clock.at(76.5, lambda: night.workspace.edit({TODO: todo("x one"), "app.py": "broken"}))
    assert night.run().end is End.COMPLETE
    assert night.workspace.files["app.py"] == "right"
    assert night.verdicts == [True, False, True]


# -- what is kept and who is told ----------------------------------------------------------------------------------


def test_every_fact_and_every_word_of_the_agent_reaches_the_followers() -> None:
    night = Night(["half way", DONE])
    night.run()
    assert night.witness.facts == night.facts()[1:]  # all but the creation, which was before the engine
    assert night.witness.events == [Message("half way"), Message(DONE)]


def test_prompt_and_reply_are_kept_whole_and_the_ledger_has_the_beginning() -> None:
    night = Night(["long " * 500 + "words", DONE])
    night.run()
    assert night.files.texts[1, "reply.md"] == "long " * 500 + "words"
    assert 300 < len(night.facts(RoundEnded)[0].said) <= 400


def test_nothing_that_controls_a_terminal_gets_into_the_ledger() -> None:
    night = Night([Play(says="\x1b[31mred\x1b[0m\x07", detail="\x1b]0;x\x07"), DONE])
    night.run()
    assert night.facts(RoundEnded)[0].said == "red"


def test_the_tree_after_a_round_that_changed_something_can_be_found_again() -> None:
    night = Night([Play(writes={"a": "1"}), "nothing", DONE])
    night.run()
    ended = night.facts(RoundEnded)
    assert night.workspace.kept["after/1"] == ended[0].found.tree
    assert ended[0].found.changes.paths == ("a",)
    assert [fact.found.progress for fact in ended] == [True, False, False]


def test_an_agent_knows_its_loop_and_round_and_carries_the_mark_that_ends_it() -> None:
    night = Night(["one", DONE])
    night.run()
    environments = [job.env for job in night.processes.jobs]
    assert [env["BYDAWN_ROUND"] for env in environments] == ["1", "2"]
    assert [env["BYDAWN_COOKIE"] for env in environments] == [fact.cookie for fact in night.facts(RoundStarted)]
    assert all(env["BYDAWN_COOKIE"].startswith("u-1.") for env in environments)


def test_a_long_list_is_not_written_down_in_every_round() -> None:
    boxes = [f"number {number}" for number in range(1_000)]
    plays = [Play(writes={TODO: todo(*(f"x {box}" for box in boxes[:turn]), *boxes[turn:])}) for turn in (0, 1, 2)]
    night = Night(plays, files={TODO: todo(*boxes)}, tasks=TODO, limits=Limits(rounds=3))
    assert night.run().end is End.LIMIT
    _, started, *others = [len(encode(record)) for record in night.ledger.records]
    assert started > 10_000
    assert max(others) < 1_500
    assert night.state.tasks is not None
    assert len(night.state.tasks.open_ids) == 998
    assert replay(night.ledger.records) == night.state


# -- what is kept is packed --------------------------------------------------------------------------------------------


def test_what_is_kept_is_packed_every_fifty_rounds_and_at_the_end() -> None:
    night = Night((Play(writes={"a": str(number)}) for number in range(120)), limits=Limits(rounds=110))
    assert night.run().end is End.LIMIT
    assert night.workspace.tidied == 3


def test_an_end_that_cannot_wait_is_not_delayed_by_packing() -> None:
    stop = AskStop(id="s", run="run-1", by="ada", now=True)
    night = Night([Play(writes={"a": "1"}, meanwhile=lambda: night.ask(stop))])
    assert night.run().end is End.STOPPED
    assert night.workspace.tidied == 0


def test_only_the_loop_of_a_dialect_hears_what_its_agent_writes_to_stderr() -> None:
    play = Play(says=DONE, complains=(b"warning: \x1b[31mold\x1b[0m \xff",))
    for dialect, heard in ((None, []), (SpokenDialect(name="other"), [Complaint("warning: old \ufffd")])):
        night = Night([play], promise=Promise(), dialect=dialect)
        night.run()
        assert [event for event in night.witness.events if isinstance(event, Complaint)] == heard


def test_only_the_agent_gets_the_variables_that_are_given_for_it_and_its_cookie_stays_ours() -> None:
    night = Night([DONE], agent_env=("MODE=night", "A=b=c", "MODE=day"))
    night.run()
    [job] = night.processes.jobs
    assert (job.env["MODE"], job.env["A"]) == ("day", "b=c")
    assert job.env["BYDAWN_COOKIE"].startswith("u-1.1.")
