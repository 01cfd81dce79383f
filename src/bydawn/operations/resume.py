"""Continue a paused or stopped loop, after checking everything that may have changed since."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn import agents
from bydawn.core import breakers
from bydawn.core.breakers import NewLimit, limits_of
from bydawn.core.completion import lost_lines
from bydawn.core.decide import checkpoint_of
from bydawn.core.errors import UserError
from bydawn.core.progress import forgiven
from bydawn.core.proof import to_accept
from bydawn.core.redact import Secrets
from bydawn.core.values import Act, Advice, Now, ReachedMark, spelled
from bydawn.core.worklist import WorkList
from bydawn.operations.checked_loop import checked_agent, refuse_budget_without_costs, refuse_if_secrets_are_missing
from bydawn.operations.plan import Plan, warned
from bydawn.operations.preconditions import gone, refuse_by_hand, refuse_inside_a_round
from bydawn.store.registry import Standing, beside
from bydawn.system.reading import FileTexts


def plan(
    standing: Standing,
    secrets: Secrets,
    *,
    approve: bool = False,
    accept: bool = False,
    limits: Sequence[NewLimit] = (),
    by_hand: bool = False,
    finished: bool = False,
) -> Plan:
    """Continue a loop: with `approve` past its checkpoint, with `accept` keeping changed protected files.

    `limits` replace those in force. `by_hand`: only its checks will run, so that it may be a person's own session that
    works on it, and no agent is needed. `finished`: one that is complete is run again; it looks for new tasks.
    """
    standing = msgspec.structs.replace(standing, loop=standing.folder.with_secrets(standing.loop))
    _refuse_unready(standing, secrets, by_hand=by_hand, finished=finished)
    _refuse_used_up(standing, limits)
    mark = _approved(standing) if approve else None
    accepts = _accepted(standing) if accept else ()
    if standing.loop.dialect and not standing.alive:  # otherwise it is refused for that
        from bydawn.operations import places  # most loops have none

        places.take_up(standing)
    return Plan(
        loop=standing.loop,
        folder=standing.folder,
        standing=standing,
        secrets=secrets.knowing(standing.folder.secret_texts()),
        warnings=warned(beside(standing.folder, standing.loop)),
        approves=mark,
        accepts=accepts,
        finished=finished,
        raises=(lambda current: breakers.replaced(current, limits)) if limits else None,
    )


def _refuse_unready(standing: Standing, secrets: Secrets, *, by_hand: bool, finished: bool) -> None:
    """Refuse what can never continue, whatever the flags."""
    refuse_inside_a_round()
    if standing.trouble:
        raise standing.trouble
    if standing.finished and not finished:
        from bydawn.operations.start import another  # for a message

        raise UserError(
            f"the loop {standing.loop.id} is already {standing.status}",
            hint=another(standing.loop),
        )
    if problem := gone(standing):
        raise problem
    if not by_hand:
        refuse_by_hand(standing.loop)
    for name in () if by_hand else standing.loop.pool:
        checked_agent(name, Path(standing.loop.workspace), standing.loop.sandbox, env=standing.loop.agent_env)
    refuse_if_secrets_are_missing(standing, secrets)


def _accepted(standing: Standing) -> tuple[str, ...]:
    """The protected files, the tests and the task list whose changes the person accepts."""
    from bydawn.operations.tasks import trouble_if_accepted  # rarely needed, and a loop should go on at once

    state = standing.state
    lists = (standing.loop.tasks or "",) if (state.tasks and state.tasks.problem) or lost_lines(state) else ()
    files = (*state.tampered, *to_accept(state.proofs))
    if not files and not lists:
        raise UserError(
            f"{standing.loop.id} has nothing to accept",
            cause="no protected file and no test was changed, and its task list is fine",
            hint=Advice("continue with ", Act("resume", standing.reference)),
        )
    # Missing tasks can be accepted, but not a list that cannot be read or put in order.
    if not files and (trouble := trouble_if_accepted(standing)):
        raise UserError(
            f"the task list of {standing.loop.id} cannot be accepted as it is",
            cause=trouble,
            hint=Advice("fix it, then run ", Act("resume", standing.reference)),
        )
    return (*files, *lists)


def _refuse_used_up(standing: Standing, limits: Sequence[NewLimit]) -> None:
    """A limit that would end the loop at once is a mistake."""
    if not limits:
        return
    name, state = standing.loop.id, forgiven(standing.state)
    now, new = Now(datetime.now(UTC), state.elapsed), breakers.replaced(limits_of(standing.loop, state), limits)
    if any(each.field == "usd" for each in limits):
        for agent in agents.pool(standing.loop).values():
            refuse_budget_without_costs(agent, new.usd)
    raised = msgspec.structs.replace(state, raised=new)
    if found := breakers.used_up(standing.loop, raised, {each.field for each in limits}, now):
        raise UserError(
            f"{breakers.asked(found)} is already used up",
            cause=f"{name} {breakers.used(found)}; nothing was changed",
            hint=Advice(Act("resume", standing.reference, flags=breakers.enough(found, state))),
        )
    if others := breakers.all_used_up(standing.loop, raised, now):  # then raising this one does not help
        raise UserError(
            "another limit is used up too",
            cause=f"{name} {' and '.join(map(breakers.used, others))}; nothing was changed",
            hint=f"add {spelled(breakers.raised(others, state))}",
        )


def _approved(standing: Standing) -> ReachedMark:
    if mark := due(standing):
        return mark
    moved = checkpoint_of(standing.loop, standing.state)
    unlike = f"{standing.loop.tasks} now has open tasks before it, or cannot be read"
    raise UserError(
        f"the loop {standing.loop.id} is not at a checkpoint",
        cause=unlike if moved else f"it is {standing.status}",
        hint=Advice("continue with ", Act("resume", standing.reference)) + ("; it stops there again" if moved else ""),
    )


def due(standing: Standing) -> ReachedMark | None:
    """The checkpoint the loop is at, unless the list now has open tasks before it."""
    loop, state = standing.loop, standing.state
    reading = WorkList(loop, FileTexts(Path(loop.list_root))).read(forgiven(state), None)
    mark = checkpoint_of(loop, state)
    if mark is None or reading is None or reading.problem:
        return None  # no one can approve what cannot be read
    again = checkpoint_of(loop, msgspec.structs.replace(state, tasks=reading))
    return mark if again and again.id == mark.id else None
