"""`logs tail`: the end of what Codex printed, also while an iteration runs."""

from pathlib import Path

from bydawn.core.facts import RoundStarted
from bydawn.core.layout import STDERR, STDOUT
from bydawn.core.redact import Secrets
from bydawn.operations import outputs
from bydawn.operations.dialects.codex_loop import project
from bydawn.operations.settings import secrets
from bydawn.store.ledger import records
from bydawn.store.registry import Standing


def tail(root: Path, lines: int, task: str | None = None) -> list[str]:
    """The last lines of the newest iteration, or of the newest one of a task; or one that says why there are none."""
    standing = project.standing_of(root)
    number = _newest(root, standing if standing and standing.trouble is None else None, task)
    if standing is None or not number:
        return ["No iteration has run yet." if task is None else f"No iteration has worked on {task} yet."]
    if outputs.is_removed(standing, number):
        return [f"The output of iteration {number} was {outputs.REMOVED}."]
    found = printed(standing, number, lines, secrets().knowing(standing.folder.secret_texts()))
    return found or [f"Iteration {number} has printed nothing{' yet' if standing.alive else ''}."]


def printed(standing: Standing, number: int, lines: int, hidden: Secrets) -> list[str]:
    """The last lines of an iteration; a program that fails usually says why on stderr."""
    files = (standing.folder.round_file(number, name) for name in (STDOUT, STDERR))
    return next(filter(None, (outputs.masked_lines(each, lines, hidden) for each in files)), [])


def _newest(root: Path, standing: Standing | None, task: str | None) -> int:
    """The number of the newest iteration, 0 if there is none; refused for a task that is unknown."""
    if task is None:
        return standing.state.round if standing else 0
    facts = (record.fact for record in (records(standing.folder) if standing else ()))
    worked = {fact.task_id: fact.round for fact in facts if isinstance(fact, RoundStarted) and fact.task_id}
    if task in worked:
        return worked[task]
    project.refuse_unknown_task(root, standing, task, worked)
    return 0
