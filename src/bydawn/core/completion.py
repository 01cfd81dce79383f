"""Is the loop done? One rule; decisions and views ask for the same list."""

from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.values import End

# What the end of a loop names besides its proof; screens that have a row of their own for it know it by these words.
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
        and (not state.doubted or bool(loop.checks)),  # where checks are green, they say what the boxes are worth
    }
    # A list that only says where the checkpoints are says nothing any more if it cannot be believed.
    unbelieved = not loop.tasks_required and state.tasks is not None and bool(state.tasks.problem)
    return [*(["tasks"] if unbelieved else []), *(name for name in loop.requires if not met[name])]


def _worked(loop: Loop, state: LoopState) -> bool:
    """Checks that were green before anybody worked prove nothing, unless a task list says that all is done."""
    return state.ok_rounds > 0 or loop.tasks is not None


def unproven(loop: Loop, state: LoopState) -> bool:
    """Would running the checks now decide whether the loop is complete?"""
    return missing(loop, state) == ["checks"] and state.verdict_tree != state.tree and _worked(loop, state)


def finished(loop: Loop) -> End:
    """The name of this loop's good end: without checks nothing was proven."""
    return End.COMPLETE if loop.checks else End.UNVERIFIED


def describe(condition: str, loop: Loop, state: LoopState) -> str:
    """What a missing condition means for this loop, in words."""
    if condition == "tasks":
        if state.tasks is None:
            return f"{loop.tasks} has not been read yet"
        if state.tasks.problem:
            return f"{loop.tasks} {state.tasks.problem}"
        if not state.tasks.open:
            return f"{counted(len(state.doubted))} ticked without any other change, and not confirmed since"
        count = state.tasks.open
        return f"{counted(count)} open in {loop.tasks}"
    if condition == "checks":
        failed = [verdict.check for verdict in state.verdicts if not verdict.passed]
        if failed and state.verdict_tree == state.tree:
            return f"{len(failed)} of {len(state.verdicts)} checks failed: {', '.join(failed)}"
        if state.checks_passed:
            return "no round has gone well yet, so green checks prove nothing"
        return "the checks have not passed on the work tree as it is now"
    return "the promise has not been given"


def counted(tasks: int) -> str:
    """
    >>> counted(1), counted(3)
    ('1 task is', '3 tasks are')
    """
    return f"{tasks} {'task is' if tasks == 1 else 'tasks are'}"
