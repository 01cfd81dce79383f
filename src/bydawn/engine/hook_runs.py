"""Runs a person's own commands beside the loop, each at its time."""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from bydawn.core import hooks
from bydawn.core.decide import Action, Commit, Pause, RunChecks, Settle, StartRound, Stop, last_word, next_action
from bydawn.core.facts import HookEnded, LoopStopped, Obstructed
from bydawn.core.layout import hook_output, tree_before
from bydawn.core.loop import OnHookFailure
from bydawn.core.outcome import in_words
from bydawn.core.ports import Snapshot
from bydawn.core.text import headline
from bydawn.core.values import FINISHED, Now
from bydawn.engine.effects import Effects

_LAST_WORDS = 4000  # bytes of output to search for the reason of a failure


class HookRuns:
    """The hooks of one run.

    Only this object knows what has run. After a crash `pre_round` runs again, with the next attempt; `post_round` is
    lost if the process dies before it, and never runs for a round whose end was not seen.
    """

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._loop = effects.loop
        self._prepared = 0  # the round that `pre_round` has run for
        # … and `post_round`. One that blocked the loop is asked again: its refusal must not be ignored.
        self._followed = effects.state.round - (effects.state.refused == "post_round")

    def waited(self) -> None:
        """Preparations made hours ago are out of date."""
        self._prepared = 0

    def before_round(self, action: StartRound) -> bool:
        """Before the snapshot, so that its changes are not the agent's; then everything is decided again."""
        command = self._loop.hooks.pre_round
        if command is None or self._prepared == action.round:
            return False
        self._prepared = action.round
        told = hooks.before_round(action.task, action.agent)
        ended = self._run("pre_round", command, action.round, told, self._effects.urgent)
        self._effects.record(ended)
        self._heed(ended)
        return True

    def after_round(self, action: Action) -> Snapshot | None:
        """After a round and its checks, before anything else; then everything is decided again."""
        effects, command, last = self._effects, self._loop.hooks.post_round, self._effects.state.last
        if isinstance(action, Settle | Commit | RunChecks) or last is None or last.round <= self._followed:
            return None
        self._followed = last.round
        if command is None or effects.state.stop_now or effects.state.obstructed:
            return None
        told = hooks.after_round(self._loop, effects.state, last)
        ended = self._run("post_round", command, last.round, told, effects.urgent)
        # Its changes are not progress, and done means proven on the current tree.
        after = effects.snapshot(keep_as=tree_before(last.round + 1))
        effects.record(replace(ended, tree=after.tree, work=after.work))
        effects.tasks_changed(after)
        self._heed(ended)
        return after

    def at_end(self, fact: LoopStopped, now: Now) -> LoopStopped:
        """The hook for this end, between the decision and the last fact; it cannot change how the loop ends."""
        command, state = hooks.at_end(self._loop.hooks, fact.end), self._effects.state
        if command is None:
            return fact
        told = hooks.after_all(state, fact)
        hurried = partial(self._effects.hurried, finished=fact.end in FINISHED)
        self._effects.record(self._run(hooks.BY_END[fact.end], command, state.round, told, hurried))
        # With the same clock reading: only a disk that its output filled up leads to another end.
        again = next_action(self._loop, self._effects.state, now)
        return last_word(again, now) if isinstance(again, Pause | Stop) else fact

    def _run(self, name: str, command: str, round_: int, told: dict[str, str], urgent: Callable[[], bool]) -> HookEnded:
        world = self._effects.world
        world.ledger.sync()  # it may look at the loop, and act on what it sees
        told = hooks.fit({"BYDAWN_LOOP": self._loop.id, **told}, world.hide)
        exit_ = world.hooks.run(name, command, round_, told, urgent)
        self._effects.mask(round_, hook_output(name))
        return HookEnded(
            hook=name,
            round=round_,
            passed=exit_.went_well,
            detail=in_words(exit_, self._loop.timeouts.hook),
            elapsed=world.clock.now().elapsed,
            seconds=round(exit_.seconds, 3),
            output=hook_output(name),
        )

    def _heed(self, ended: HookEnded) -> None:
        """A failing hook blocks the loop if a person wants that; one that was cut short has not failed."""
        if ended.passed or self._loop.hooks.on_failure is not OnHookFailure.BLOCK or self._effects.state.stop_now:
            return
        last_line = headline(self._effects.world.files.tail(ended.round, hook_output(ended.hook), _LAST_WORDS))
        self._effects.record(Obstructed(kind="hook", detail=hooks.complaint(ended, last_line), hook=ended.hook))
