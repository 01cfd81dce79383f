"""What an agent says of its own work; recorded as its words, and believed only where machines agree."""

import msgspec

from bydawn.core.blocked import blocked_words
from bydawn.core.loop import Loop
from bydawn.core.outcome import Outcome
from bydawn.core.values import TaskClaim


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    task: TaskClaim | None = None
    blocked: str = ""


def from_reply(reply: str, outcome: Outcome, loop: Loop) -> Claims:
    """From the reply of a turn that went well; a status block is looked for only where one was asked for."""
    if outcome is not Outcome.OK:
        return Claims()
    if not loop.task_folder:
        return Claims(blocked=blocked_words(reply) or "")
    from bydawn.core.task_folder import Status, status_of  # most loops have no such folder

    said = status_of(reply)
    blocked = blocked_words(reply) or (said.blocked or said.summary if said and said.status is Status.BLOCKED else "")
    if said and said.status is Status.DONE and blocked:
        said = None  # whoever is blocked has not done it, whatever stands at the end
    return Claims(task=TaskClaim(status=said.status, summary=said.summary) if said else None, blocked=blocked)
