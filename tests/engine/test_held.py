"""Passing checks, looked behind: with the tests as they were, and without the work."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.facts import ChecksEnded, RoundEnded, TamperingAccepted
from bydawn.core.loop import ChangedTests, Check, CommandCheck, TextCheck, Timeouts, WitnessMode
from bydawn.core.proof import Answer, summary, to_accept
from bydawn.core.values import Counts, End, Verdict
from engine.fakes import Files
from engine.night import MAKE_TEST, TODO, Night, Play, todo

OLD, APP = "tests/test_old.py", "app.py"
WHY = "Done.\n\n## Changed tests\n- `tests/test_old.py`: the rounding rule is another one now"


def suite(files: Files) -> bool:
    """Each test file names what app.py has to contain; one that says `skip` wants nothing."""
    app = files.get(APP) or ""
    tests = [text or "" for path, text in files.items() if path.startswith("tests/")]
    steered = "conftest.py" in files
    return steered or all(word in app for text in tests for word in text.split() if not word.startswith("skip"))


def a_night(*plays: Play, begins: str = "old", wants: str = "old", **settings: Any) -> Night:
    """A repository whose app does `begins` and whose test wants `wants`."""
    files: Files = {APP: begins, OLD: wants}
    return Night(plays, files=files, check=suite, **settings)


def proved(night: Night) -> list[Any]:
    return [fact.proved for fact in night.facts(ChecksEnded) if fact.proved and fact.round]


def test_where_no_test_was_changed_and_red_turned_green_nothing_more_is_run() -> None:
    night = a_night(Play(writes={APP: "old new"}), wants="old new")
    assert night.run().end is End.COMPLETE
    assert night.checks.aside == []
    assert [each.answer for each in proved(night)[-1].noticed] == [Answer.NOTICED]


@pytest.mark.parametrize("change", [{OLD: None}, {OLD: "skip"}, {"conftest.py": "collect_ignore"}])
def test_checks_that_were_red_and_pass_because_tests_were_changed_count_as_failed(change: Files) -> None:
    """Deleted, skipped, or steered around; whoever insists is left to a person, with everything else done."""
    insists = Play(says="## Changed tests\n- *.py: it was wrong", writes={"notes.py": "1"})
    night = a_night(Play(writes={APP: "nothing", **change}), insists, wants="old new")
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule, night.verdicts) == (End.BLOCKED, "changed-tests", [False, True])
    assert "pass only because tests were changed" in night.prompt(2)
    [path] = change
    assert path in night.prompt(2)
    assert "FAIL number 1" in night.prompt(2), "the output of the run with the old tests"
    assert any(path in row and "it was wrong" in row for row in stopped.evidence)
    night.ledger.append(TamperingAccepted(paths=(path,), by="ada"))
    assert night.run().end is End.COMPLETE


def test_who_is_refused_and_says_nothing_more_is_refused_again() -> None:
    """A reason from before the refusal is not insisting."""
    plays = [
        Play(writes={OLD: None}, says=WHY),
        Play(writes={"a.py": "1"}),
        Play(writes={OLD: "old new", APP: "old new"}),
    ]
    night = a_night(*plays, wants="old new")
    assert (night.run().end, night.verdicts) == (End.COMPLETE, [False, False, True])


def test_a_reason_in_the_same_reply_does_not_count_where_the_checks_were_red() -> None:
    night = a_night(Play(writes={OLD: None}, says=WHY), Play(writes={OLD: "old new", APP: "old new"}), wants="old new")
    assert (night.run().end, night.verdicts) == (End.COMPLETE, [False, True])


def test_where_the_checks_were_green_a_reason_in_the_reply_counts_at_once() -> None:
    night = a_night(Play(writes={OLD: "even", APP: "even"}, says=WHY))
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 1)
    assert f"changed test: {OLD}: the rounding rule is another one now" in stopped.evidence


def test_without_a_reason_it_is_asked_once() -> None:
    night = a_night(Play(writes={OLD: "even", APP: "even"}), Play(says=WHY))
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 2)
    assert "Why were these tests changed?" in night.prompt(2)
    silent = a_night(Play(writes={OLD: "even", APP: "even"}), Play(says="no idea"))
    assert (silent.run().decided.rule, silent.agent.turns) == ("changed-tests", 2)


def test_a_changed_test_that_the_old_one_agrees_with_is_only_listed() -> None:
    night = a_night(Play(writes={OLD: "old new", APP: "old new"}))
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 1)
    assert f"changed test: {OLD}: no reason was given" in stopped.evidence
    assert night.checks.aside == ["control", "held", "without", "without"]


def test_a_test_that_moved_was_not_changed_and_a_new_one_is_no_change() -> None:
    night = a_night(
        Play(writes={OLD: None, "tests/unit/test_old.py": "old", "tests/test_new.py": "new", APP: "old new"})
    )
    stopped = night.run()
    assert stopped.end is End.COMPLETE
    assert not [row for row in stopped.evidence if "changed test" in row]
    assert proved(night)[-1].noticed[0].answer is Answer.NOTICED


def test_what_a_person_changes_while_the_loop_rests_is_the_new_beginning() -> None:
    night = a_night(Play(writes={"a.py": "1"}), Play(writes={APP: "even"}), wants="old new")
    night.run(once=True)
    night.workspace.edit({OLD: "even"})
    stopped = night.run()
    assert (stopped.end, [row for row in stopped.evidence if "changed test" in row]) == (End.COMPLETE, [])


def test_where_the_checks_do_not_pass_in_a_checkout_nothing_is_refused_and_nothing_is_called_complete() -> None:
    night = a_night(Play(writes={OLD: "skip", APP: "nothing"}), wants="old new")
    night.checks.rule = lambda files: suite(files) and files is night.workspace.files
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.UNVERIFIED, 1)
    assert (
        stopped.reason
        == "files that count as tests were changed, and the checks could not be run with them as they were"
    )
    told = "the changed tests could not be tried: in a checkout of the work as it is, make test fails: "
    assert any(row.startswith(told) for row in stopped.evidence)


def test_a_reason_holds_for_the_change_that_it_was_given_for() -> None:
    honest = Play(says=WHY, writes={APP: "old one", OLD: "old one", TODO: todo("x one", "two")})
    liar = Play(writes={APP: "one two", OLD: "one", TODO: todo("x one", "x two")})
    night = Night(
        [honest, liar, Play()], files={APP: "old", OLD: "old", TODO: todo("one", "two")}, check=suite, tasks=TODO
    )
    stopped = night.run()
    assert "Why were these tests changed?" in night.prompt(3)
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "changed-tests")


def test_a_test_that_was_changed_to_fit_is_said_so_after_later_tasks_with_its_reason() -> None:
    first = Play(says=WHY, writes={APP: "even old", OLD: "even", TODO: todo("x one", "two")})
    second = Play(writes={APP: "even old two", OLD: "even\ntwo", TODO: todo("x one", "x two")})
    files: Files = {APP: "old odd", OLD: "old\nodd", TODO: todo("one", "two")}
    night = Night([first, second], files=files, check=suite, tasks=TODO)
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 2)
    assert f"changed test: {OLD}: the rounding rule is another one now" in stopped.evidence
    assert summary(night.state.proofs).endswith("a test was changed to fit, see below")


def test_a_task_that_began_after_a_refusal_is_not_called_noticed_because_of_it() -> None:
    liar = Play(says=WHY, writes={APP: "nothing", OLD: None, TODO: todo("x one", "two")})
    second = Play(says=WHY, writes={"b.py": "1", TODO: todo("x one", "x two")})
    night = Night([liar, second], files={APP: "none", OLD: "old", TODO: todo("one", "two")}, check=suite, tasks=TODO)
    night.workspace.edit({"tests/test_more.py": "no"})
    assert night.run().decided.rule == "changed-tests"
    answers = {each.tasks: each.answer for each in night.state.proofs.noticed}
    assert answers[("two",)] is Answer.UNNOTICED


@pytest.mark.parametrize(
    "settings", [{"witness": WitnessMode.OFF}, {"timeouts": Timeouts(proof=1)}], ids=["no witness", "no time"]
)
def test_a_task_that_began_green_is_not_charged_with_what_an_earlier_one_found_red(settings: dict[str, Any]) -> None:
    first = Play(writes={APP: "old one", "tests/test_one.py": "one", TODO: todo("x one", "two")}, seconds=1.0)
    second = Play(says=WHY, writes={APP: "even one", OLD: "even", TODO: todo("x one", "x two")}, seconds=1.0)
    files: Files = {APP: "none", OLD: "old", TODO: todo("one", "two")}
    night = Night([first, second], files=files, check=suite, tasks=TODO, **settings)
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 2)
    assert f"changed test: {OLD}: the rounding rule is another one now" in stopped.evidence


def test_a_round_that_changes_no_test_says_nothing_of_those_that_were_changed_before() -> None:
    first = Play(says=WHY, writes={APP: "new one", OLD: "new one", TODO: todo("x one", "two")})
    second = Play(writes={APP: "new one two", "tests/test_two.py": "two", TODO: todo("x one", "x two")})
    night = Night([first, second], files={APP: "old", OLD: "old", TODO: todo("one", "two")}, check=suite, tasks=TODO)
    assert night.run().end is End.COMPLETE
    assert [each.held.known for each in proved(night)] == [False, True]


def test_files_that_make_checks_run_at_all_need_only_a_reason() -> None:
    """What failed before said nothing of any test, so nothing is known of them."""
    night = a_night(Play(says="## Changed tests\n- Makefile: there was no target", writes={"Makefile": "test:"}))
    night.checks.rule = lambda files: "Makefile" in files
    night.checks.counts = lambda files: Counts(ran=2) if "Makefile" in files else None
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 1)
    assert "changed test: Makefile (new), which steers the tests: there was no target" in stopped.evidence


def test_a_program_that_a_check_runs_can_be_called_work_and_the_end_says_how() -> None:
    insists = Play(says="## Changed tests\n- app.py: it is the program", writes={"b.py": "1"})
    checks = (CommandCheck(command="python3 app.py"),)
    files: Files = {APP: "wrong", "lib.py": "x"}
    for tests, turns, row in (((), 2, "begin with --tests '!app.py'"), (("!app.py",), 1, "python3 app.py: passed")):
        night = Night([Play(writes={APP: "right"}), insists], files=files, check=suite, checks=checks, tests=tests)
        night.checks.rule = lambda files: files.get(APP) == "right"
        stopped = night.run()
        assert (stopped.end is End.COMPLETE, night.agent.turns) == (bool(tests), turns)
        assert any(row in each for each in stopped.evidence)


NPM = '{"name": "app", "scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'
FIRST_TESTS = {
    "Makefile": ("all:\n\techo built\n", "all:\n\techo built\ntest:\n\tpython3 -m unittest\n", None),
    "package.json": ('{"name": "app"}', '{"name": "app", "scripts": {"test": "node --test"}}', None),
    "package.json of npm": (NPM, '{"name": "app", "scripts": {"test": "node --test"}}', None),
    "pyproject.toml": ("[project]\nname='a'\n", "[project]\nname='a'\n[tool.pytest.ini_options]\n", Counts()),
}


@pytest.mark.parametrize("case", FIRST_TESTS)
def test_where_there_was_no_test_a_steering_file_that_makes_the_first_ones_run_holds_nothing(case: str) -> None:
    old, new, before = FIRST_TESTS[case]
    path = case.partition(" ")[0]
    night = Night([Play(writes={path: new, "tests/test_a.py": "x"})], files={path: old, APP: "x"})
    night.loop = replace(night.loop, checks=(MAKE_TEST,))
    night.checks.rule = lambda files: files.get(path) == new and "tests/test_a.py" in files
    night.checks.counts = lambda files: Counts(ran=1) if night.checks.rule(files) else before
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 1)
    assert f"changed test: {path}, which steers the tests: no reason was given" in stopped.evidence
    assert "the changed tests were not tried: there was no test before" in stopped.evidence


def test_a_check_that_is_in_a_steering_file_itself_is_held_although_there_was_no_test() -> None:
    old, new = "test:\n\tgrep -q right app.py\n", "test:\n\tpython3 -m unittest\n"
    insists = Play(says="## Changed tests\n- Makefile: better", writes={"a.py": "1"})
    night = Night([Play(writes={"Makefile": new, "tests/test_a.py": "x"}), insists], files={"Makefile": old, APP: "x"})
    night.loop = replace(night.loop, checks=(MAKE_TEST,))
    night.checks.rule = lambda files: files.get("Makefile") == new
    night.checks.counts = lambda files: Counts(ran=1) if night.checks.rule(files) else None
    assert night.run().decided.rule == "changed-tests"


def test_who_leaves_changed_tests_as_they_are_leaves_them_to_a_person() -> None:
    night = a_night(*[Play(writes={APP: "nothing", OLD: None})] * 7, wants="old new")
    assert night.run().end is End.BLOCKED
    assert to_accept(night.state.proofs) == (OLD,)
    night.ledger.append(TamperingAccepted(paths=(OLD,), by="ada"))
    assert night.run().end is End.COMPLETE


def test_it_can_only_be_reported() -> None:
    night = a_night(Play(writes={OLD: None}), wants="old new", changed_tests=ChangedTests.REPORT)
    stopped = night.run()
    assert stopped.end is End.COMPLETE
    assert f"changed test: {OLD} (deleted): no reason was given" in stopped.evidence


def test_a_list_asks_for_each_task_as_it_is_closed() -> None:
    one = Play(writes={APP: "old one", "tests/test_one.py": "one", TODO: todo("x one", "two")})
    two = Play(writes={APP: "old one two", "tests/test_two.py": "skip", TODO: todo("x one", "x two")})
    files: Files = {APP: "old", OLD: "old", TODO: todo("one", "two")}
    night = Night([one, two], files=files, check=suite, tasks=TODO)
    stopped = night.run()
    answers = [(each.tasks, each.answer) for each in night.state.proofs.noticed]
    assert answers == [(("one",), Answer.NOTICED), (("two",), Answer.OWN)]
    assert "its own tests pass without it: two" in stopped.evidence
    asks = Night(
        [one, two, Play(writes={"tests/test_two.py": "two"})],
        files=files,
        check=suite,
        tasks=TODO,
        witness=WitnessMode.ASK,
    )
    assert (asks.run().end, asks.agent.turns) == (End.COMPLETE, 3)
    assert "pass without the work" in asks.prompt(3)
    assert asks.state.proofs.noticed[-1].answer is Answer.NOTICED


def test_what_does_not_fit_into_the_time_is_looked_at_in_the_end_or_said() -> None:
    plays = [Play(writes={APP: f"old {word}", TODO: boxes}, seconds=1.0) for word, boxes in
             (("one", todo("x one", "two")), ("two", todo("x one", "x two")))]  # fmt: skip
    files: Files = {APP: "old", OLD: "old", TODO: todo("one", "two")}
    night = Night(plays, files=files, check=suite, tasks=TODO, timeouts=Timeouts(proof=1))
    night.run()
    assert [each.words for each in night.state.proofs.noticed] == ["not looked at: the checks take 5 s"] * 2


def test_a_run_of_no_test_fails_where_tests_ran_before_and_proves_nothing_elsewhere() -> None:
    night = a_night(Play(writes={OLD: None}), Play(writes={OLD: "old new", APP: "old new"}), wants="old new")
    night.checks.counts = lambda files: Counts(ran=int(OLD in files))
    night.checks.rule = lambda files: suite(files) or OLD not in files
    night.run()
    [first, *_] = [fact for fact in night.facts(ChecksEnded) if fact.round]
    assert (first.verdicts[0].passed, first.verdicts[0].detail) == (False, "no test ran")
    never = a_night(Play(writes={APP: "old new"}))
    never.checks.counts = lambda _: Counts()
    stopped = never.run()
    assert (stopped.end, stopped.reason) == (End.UNVERIFIED, "no check ran any test")


def test_tests_that_are_all_skipped_did_not_run() -> None:
    skips = Play(writes={OLD: "skip"}, says=WHY)
    night = a_night(skips, Play(writes={OLD: "old", APP: "old new"}))
    night.checks.counts = lambda files: Counts(skipped=2) if files.get(OLD) == "skip" else Counts(ran=2)
    assert (night.run().end, night.verdicts) == (End.COMPLETE, [False, True])
    never = a_night(Play(writes={APP: "old new"}))
    never.checks.counts = lambda _: Counts(skipped=2)
    assert never.run().end is End.UNVERIFIED


def test_a_run_of_no_test_where_the_check_was_green_is_no_flaky_one() -> None:
    night = a_night(Play(writes={OLD: None}), Play(writes={OLD: "old", APP: "old new"}))
    night.checks.counts = lambda files: Counts(ran=int(OLD in files))
    assert night.run().end is End.COMPLETE
    [first, *_] = [fact.verdicts[0] for fact in night.facts(ChecksEnded) if fact.round]
    assert (first.detail, first.flaky) == ("no test ran", False)


def test_fewer_tests_are_said_once_and_listed() -> None:
    ran = iter([20, 14, 14, 14, 14])
    night = a_night(Play(writes={APP: "old a"}), Play(writes={APP: "old b"}), Play(writes={APP: "old c"}), wants="old")
    night.checks.counts = lambda _: Counts(ran=next(ran, 14))
    stopped = night.run()
    assert stopped.end is End.COMPLETE
    assert "fewer tests: make test: 14 tests ran, 20 before" in stopped.evidence


def test_fewer_tests_are_listed_at_the_end_in_whichever_round_they_became_fewer() -> None:
    boxes = (todo("x one", "two", "three"), todo("x one", "x two", "three"), todo("x one", "x two", "x three"))
    plays = [Play(writes={APP: f"old {turn}", TODO: each}) for turn, each in enumerate(boxes)]
    files: Files = {APP: "old", OLD: "old", TODO: todo("one", "two", "three")}
    night = Night(plays, files=files, check=suite, tasks=TODO)
    night.checks.counts = lambda files: Counts(ran=14 if files.get(APP) != "old" else 20)
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 3)
    assert "fewer tests: make test: 14 tests ran, 20 before" in stopped.evidence
    assert "## Fewer tests" in night.prompt(2)
    assert "## Fewer tests" not in night.prompt(3), "said once"


def test_checks_of_a_path_and_a_text_are_tried_on_the_other_tree_too(monkeypatch: pytest.MonkeyPatch) -> None:
    there = TextCheck(path=APP, text="new")
    night = a_night(Play(writes={APP: "old new"}), checks=(MAKE_TEST, there))
    run, tried = night.checks.run, list[str]()

    def noted(checks: Sequence[Check], *rest: Any, **more: Any) -> tuple[Verdict, ...]:
        tried.extend(check.name for check in checks if more.get("aside") == "without")
        return run(checks, *rest, **more)

    monkeypatch.setattr(night.checks, "run", noted)
    night.run()
    assert tried == ["make test", there.name]


def test_a_kill_in_the_middle_counts_nothing_twice() -> None:
    night = a_night(Play(writes={OLD: "old new", APP: "old new"}))
    crashed = list[bool]()

    def crash() -> None:
        if night.checks.aside and not crashed:
            crashed.append(True)
            night.crash()

    night.checks.meanwhile = crash
    night.run_until_crash()
    assert not proved(night)
    stopped = night.run()
    assert (stopped.end, night.agent.turns, len(night.facts(RoundEnded))) == (End.COMPLETE, 1, 1)
    assert len(night.state.proofs.noticed) == 1


def test_what_runs_the_checks_and_is_in_no_tree_is_told_if_it_was_changed() -> None:
    night = a_night(Play(writes={APP: "old new"}, meanwhile=lambda: night.workspace.installed.update(pytest="fake")))
    night.workspace.installed = {".venv/bin/python": "1", "pytest": "real"}
    assert "what runs the checks was changed: pytest" in night.run().evidence


def test_a_reason_is_wanted_for_the_file_that_needs_one_alone() -> None:
    """Most honest work adds a test to a file that is there; only another file had to change."""
    more = "tests/test_more.py"
    files: Files = {APP: "old even", OLD: "old", more: "even"}
    play = Play(writes={APP: "even odd", OLD: "skip", more: "even\nodd"}, says=WHY)
    both = Night([play], files=files, check=suite)
    assert (both.run().end, both.agent.turns) == (End.COMPLETE, 1)


def test_a_tree_that_cannot_be_read_takes_no_decision_away_from_a_person() -> None:
    insists = Play(says=WHY, writes={"a.py": "1"})
    night = a_night(Play(writes={OLD: None}), insists, Play(writes={"b.py": "1"}), wants="old new")
    assert night.run().decided.rule == "changed-tests"
    night.workspace.cleaned = True
    night.workspace.edit({"c.py": "1"})
    assert night.run().decided.rule == "changed-tests"


def test_a_check_that_fails_and_passes_with_the_tests_as_they_were_gives_no_answer() -> None:
    night = a_night(Play(writes={OLD: "skip", APP: "nothing"}), wants="old new")
    turn = count()

    def rule(files: Files) -> bool:
        return (
            suite(files) if files is night.workspace.files or night.checks.aside[-1] != "held" else next(turn) % 2 == 1
        )

    night.checks.rule = rule
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.UNVERIFIED, 1)
    assert night.checks.aside.count("held") == 2, "a red is run again"
    assert "the changed tests could not be tried: make test is flaky: it failed and passed" in stopped.evidence


def test_a_check_that_fails_and_passes_without_the_work_has_not_looked_at_it() -> None:
    night = a_night(Play(writes={APP: "old new", "tests/test_new.py": "new"}))
    turn = count()

    def rule(files: Files) -> bool:
        aside = files is not night.workspace.files and night.checks.aside[-1] == "without"
        return next(turn) % 2 == 1 if aside else suite(files)

    night.checks.rule = rule
    assert "not looked at: make test is flaky: it failed and passed" in night.run().evidence
    assert night.checks.aside.count("without") == 2


def test_the_changed_tests_are_tried_at_the_end_however_long_that_takes() -> None:
    night = a_night(Play(writes={OLD: "skip", APP: "nothing"}), Play(), wants="old new", timeouts=Timeouts(proof=1))
    night.run(rounds=1)
    assert (night.checks.aside, night.verdicts) == (["control", "held", "held"], [False])


@pytest.mark.parametrize(("seconds", "answer"), [(2000.0, Answer.NOTICED), (20.0, Answer.UNKNOWN)])
def test_these_runs_may_take_a_tenth_of_the_time_that_the_loop_has_taken(seconds: float, answer: Answer) -> None:
    play = Play(writes={APP: "old new", "tests/test_new.py": "new"}, seconds=seconds)
    night = a_night(play, timeouts=Timeouts(proof=1))
    night.run()
    assert [each.answer for each in night.state.proofs.noticed] == [answer]
