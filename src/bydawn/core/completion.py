"""Is the loop done? The one rule that both decisions and views use."""

from bydawn.core.loop import Loop, Ticks
from bydawn.core.records import COMPLETED
from bydawn.core.state import LoopState
from bydawn.core.text import shorten
from bydawn.core.values import End, Line

# What a finished loop mentions besides its proof; screens recognize these rows by their words.
SKIPPED = "skipped by a person"
TAMPERED = "protected files were changed"
PUT_BACK = "protected files were put back"
ACCEPTED = "changed by a round, and accepted by a person"
DOUBTED = "ticked without any other change"


def missing(loop: Loop, state: LoopState) -> list[str]:
    """The conditions this loop still waits for; none means complete."""
    met = {
        "promise": state.promise_given,  # judged once, when the round ended
        "checks": state.checks_passed and _worked(loop, state),
        "tasks": state.tasks is not None
        and state.tasks.open == 0
        and not state.tasks.problem
        and not lost_lines(state)
        # Passing checks confirm doubtful boxes.
        and (not state.doubted or bool(loop.checks) or loop.ticks is Ticks.COUNT),
        "record": state.records.claimed == COMPLETED and loop.recording is not None and loop.recording.ends,
    }
    # A list that only marks checkpoints means nothing once it cannot be trusted.
    problem = state.tasks is not None and bool(state.tasks.problem or lost_lines(state))
    unbelieved = not loop.tasks_required and problem
    return [*(["tasks"] if unbelieved else []), *(name for name in loop.requires if not met[name])]


def lost_lines(state: LoopState) -> tuple[Line, ...]:
    """Lines that came into the task list and are not there, or were not looked for yet."""
    lines = (*(state.tasks.gone if state.tasks else ()), *state.added)
    return tuple({(line.file, line.text): line for line in lines}.values())  # one may be asked for, and seen


def _worked(loop: Loop, state: LoopState) -> bool:
    """Checks that passed before any work prove nothing, unless a task list says everything is done, or the work may
    be anyone's."""
    return state.ok_rounds > 0 or loop.tasks is not None or loop.recording is not None


def unproven(loop: Loop, state: LoopState) -> bool:
    """Would running the checks now decide whether the loop is complete?"""
    return missing(loop, state) == ["checks"] and state.verdict_tree != state.tree and _worked(loop, state)


def finished(loop: Loop) -> End:
    """This loop's good end; without checks nothing was proven."""
    return End.COMPLETE if loop.checks else End.UNVERIFIED


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
            return "no round has succeeded yet, so passing checks prove nothing"
        return "the checks have not passed on the current work tree"
    if condition == "record":
        waits = loop.recording is not None and not loop.recording.ends
        return "its stop commands wait for a person" if waits else "no one has recorded that it is done"
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
