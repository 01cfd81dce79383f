"""Is the loop done? The one rule that both decisions and views use."""

from bydawn.core.loop import ChangedTests, Loop, Ticks
from bydawn.core.outcome import Outcome
from bydawn.core.records import COMPLETED
from bydawn.core.state import LoopState
from bydawn.core.text import shorten
from bydawn.core.values import End, Line, Promised

# What a finished loop mentions besides its proof; screens recognize these rows by their words.
SKIPPED = "skipped by a person"
TAMPERED = "protected files were changed"
PUT_BACK = "protected files were put back"
ACCEPTED = "changed, and accepted by a person"
DOUBTED = "ticked without any other change"
CHANGED = "changed test"
IDLE = "nothing was changed, and the checks passed before"
SILENT = "it no longer says how many tests ran"


def wanted(loop: Loop, state: LoopState) -> tuple[str, ...]:
    """All that this loop needs, met or not; never empty."""
    asks = loop.asks_if_done and not _was_asked(state)
    held = loop.changed_tests is ChangedTests.HOLD and state.proofs.unexplained
    return (*loop.requires, *(["promise"] if asks else []), *(["reasons"] if held else []))


def missing(loop: Loop, state: LoopState) -> list[str]:
    """The conditions this loop still waits for; none means complete."""
    met = {
        "promise": state.promise_given,  # judged once, when the round ended
        "checks": state.checks_passed and _could_know(loop, state),
        "tasks": state.tasks is not None
        and state.tasks.open == 0
        and not state.tasks.problem
        and not lost_lines(state)
        and (not state.doubted or loop.ticks is Ticks.COUNT),
        "record": state.records.claimed == COMPLETED and loop.recording is not None and loop.recording.ends,
        "reasons": False,
    }
    # A list that only marks checkpoints means nothing once it cannot be trusted.
    problem = state.tasks is not None and bool(state.tasks.problem or lost_lines(state))
    unbelieved = not loop.tasks_required and problem
    return [*(["tasks"] if unbelieved else []), *(name for name in wanted(loop, state) if not met[name])]


def should_ask(loop: Loop, state: LoopState) -> bool:
    """Is nothing missing but the agent's word, although the checks have turned green? Then a round only asks for it."""
    last = state.last
    asks = loop.asks_if_done and bool(state.proofs.red) and last is not None and last.ended.outcome is Outcome.OK
    return asks and last is not None and not last.ended.open and not last.audit and missing(loop, state) == ["promise"]


def _was_asked(state: LoopState) -> bool:
    """Was the agent asked whether the goal is met, and did it name nothing that is open?"""
    last = state.last
    return last is not None and last.audit and last.ended.outcome is Outcome.OK and not last.ended.open


def said_nothing(loop: Loop, state: LoopState) -> bool:
    """Is it complete although the agent, which was asked, did not say so?"""
    return loop.asks_if_done and not state.promise_given and _was_asked(state)


def is_idle(state: LoopState) -> bool:
    """Is the work what it was at the beginning, when no check failed? Then passing checks prove nothing."""
    return not state.proofs.red and state.work == state.proofs.work


def told_of_mention(loop: Loop, state: LoopState) -> bool:
    """Was the agent told that its promise was only a mention, with nothing else open? The same form again gives it.

    Checks that were red on another tree may be green by now: they run again before the loop is complete.
    """
    last = state.last
    if last is None or last.ended.promise is not Promised.MENTIONED or last.ended.blocked:
        return False
    is_red = state.failed_checks and state.verdict_tree == state.tree
    waits_for = missing(loop, state)
    return "promise" in waits_for and not is_red and not {"tasks", "record"}.intersection(waits_for)


def lost_lines(state: LoopState) -> tuple[Line, ...]:
    """Lines that came into the task list and are not there, or were not looked for yet."""
    lines = (*(state.tasks.gone if state.tasks else ()), *state.added)
    return tuple({(line.file, line.text): line for line in lines}.values())  # one may be asked for, and seen


def _could_know(loop: Loop, state: LoopState) -> bool:
    """Where checks alone decide, a round must have gone well, and they failed before or there is some work."""
    alone = loop.requires == ("checks",) and not (loop.asks_if_done or loop.recording)
    return not alone or (state.ok_rounds > 0 and not is_idle(state))


def unproven(loop: Loop, state: LoopState) -> bool:
    """Would running the checks now decide whether the loop is complete?"""
    return missing(loop, state) == ["checks"] and state.verdict_tree != state.tree and _could_know(loop, state)


def doubt(loop: Loop, state: LoopState) -> str:
    """Why this loop's good end is only `unverified`; empty if it is not."""
    if not loop.checks:
        return "no checks were configured, so there is only the agent's word for it"
    # A list that was done before the first round needs no work.
    idle = IDLE if state.round and is_idle(state) else ""
    if loop.changed_tests is ChangedTests.REPORT:  # another tool's documents say what its checks mean
        return idle if loop.by_task else ""
    if all(verdict.tests_nothing for verdict in state.verdicts):
        return "no check ran any test"
    if state.proofs.untried:
        return "files that count as tests were changed, and the checks could not be run with them as they were"
    # A program that ends its own tests looks like this, and so does a script that prints failures only.
    silent = state.proofs.silent(tuple(each for each in state.verdicts if not each.uncounted))
    return f"{silent[0]} passes, and {SILENT}" if silent else idle


def finished(loop: Loop, state: LoopState) -> End:
    """This loop's good end."""
    return End.UNVERIFIED if doubt(loop, state) else End.COMPLETE


def describe(condition: str, loop: Loop, state: LoopState) -> str:
    """What a missing condition means for this loop, in words."""
    if condition == "tasks":
        if state.tasks is None:
            return f"{loop.tasks} has not been read yet"
        if state.tasks.problem:
            return f"{loop.tasks} {state.tasks.problem}"
        if lost := lost_lines(state):
            return f"{loop.tasks} {lost_words(lost)}"
        if not state.tasks.open:
            return f"{counted(len(state.doubted))} ticked without any other change, and not confirmed"
        count = state.tasks.open
        return f"{counted(count)} open in {loop.tasks}"
    if condition == "checks":
        failed = [verdict.check for verdict in state.failed_checks]
        if failed and state.verdict_tree == state.tree:
            return f"{len(failed)} of {len(state.verdicts)} checks failed: {', '.join(failed)}"
        if state.checks_passed:
            return (
                "nothing was changed"
                if state.ok_rounds
                else "no round has succeeded yet, so passing checks prove nothing"
            )
        return "the checks have not passed on the current work tree"
    if condition == "record":
        waits = loop.recording is not None and not loop.recording.ends
        return "its stop commands wait for a person" if waits else "no one has recorded that it is done"
    if condition == "reasons":
        paths = [changed.path for changed in state.proofs.unexplained]
        return f"tests were changed, and no reason was given: {', '.join(paths[:3])}{' …' if len(paths) > 3 else ''}"
    if state.last and state.last.ended.open and loop.asks_if_done:
        return f"the agent says what is still open: {shorten('; '.join(state.last.ended.open), 200)}"
    return "the promise has not been given"


def lost_words(lines: tuple[Line, ...]) -> str:
    """The end of "TODO.md …"; `resume --accept` recognizes it."""
    many = "a line that was" if len(lines) == 1 else f"{len(lines)} lines that were"
    return f"lost {many} added while a round ran: {', '.join(f'“{shorten(line.text, 60)}”' for line in lines[:3])}"


def counted(tasks: int) -> str:
    """
    >>> counted(1), counted(3)
    ('1 task is', '3 tasks are')
    """
    return f"{tasks} {'task is' if tasks == 1 else 'tasks are'}"
