"""Commits what rounds have changed, and records what became of it."""

from msgspec.structs import replace

from bydawn.core import commits
from bydawn.core.errors import UserError
from bydawn.core.facts import COMMIT, CommitEnded, Obstructed
from bydawn.core.layout import hook_output, tree_before
from bydawn.core.loop import CommitMode
from bydawn.core.text import last_part
from bydawn.core.values import Snapshot
from bydawn.engine.effects import Effects
from bydawn.engine.protection import Protection

_EXCERPT = 3000  # characters of what git and its hooks said, for the next prompt
_NAMED = 20  # files that are left out


class Committing:
    """The commits of one run of one loop."""

    def __init__(self, effects: Effects, protection: Protection) -> None:
        self._effects = effects
        self._protection = protection

    def before_round(self, round_: int) -> None:
        """What a person has changed and not committed stays theirs."""
        if self._effects.commits:
            self._effects.commits.note(round_, self._effects.state.uncommitted, self._effects.state.tree)

    def take(self, round_: int) -> Snapshot | None:
        """Commit and record it; the work tree afterwards. Cut short by a request, it is tried again at the next start.

        Git hooks run what the agent wrote, as checks do.
        """
        effects = self._effects
        self._protection.watch()
        done = self._commit(round_)
        effects.mask(round_, hook_output(COMMIT))
        state = effects.state
        if state.stop_now and not done.commit:
            return None
        found = self._protection.after_round(round_, effects.snapshot(keep_as=tree_before(round_ + 1)))
        moved = found.tree != state.tree
        said = last_part(effects.files.tail(round_, done.output, _EXCERPT), _EXCERPT) if done.output else ""
        done = replace(
            done,
            elapsed=effects.clock.now().elapsed,
            commit=done.commit if done.commit != state.commit else "",  # what was found is known already
            excerpt=said.strip(),
            left_out=tuple(path for path in done.left_out if path not in state.left_out)[:_NAMED],
            secrets=tuple(path for path in done.secrets if path not in state.left_out)[:_NAMED],
            tampered=found.tampered,
            restored=found.restored,
            tree=found.tree if moved else "",
            work=found.work if moved else "",
        )
        effects.record(done)
        if moved:
            effects.tasks_changed(found)
        if done.needs_person or (done.failure and effects.loop.commit is CommitMode.REQUIRE):
            effects.record(Obstructed(kind=COMMIT, detail=f"round {round_} could not be committed: {done.told}"))
        return found

    def _commit(self, round_: int) -> CommitEnded:
        effects, state = self._effects, self._effects.state
        assert effects.commits  # noqa: S101 - a run without them records no change for one
        text = commits.message(effects.loop, state, effects.hide)
        try:
            return effects.commits.commit(round_, text, state.uncommitted, state.tree, effects.urgent)
        except OSError as error:
            return CommitEnded(round=round_, failure=f"{error.filename}: {error.strerror}")
        except UserError as error:
            return CommitEnded(round=round_, failure=f"{error.what}: {error.cause}" if error.cause else error.what)
