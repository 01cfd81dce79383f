"""Runs a person's own commands beside the loop, each at its time."""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from bydawn.core import hooks
from bydawn.core.decide import Action, Commit, Pause, RunChecks, Settle, StartRound, Stop, last_word, next_action
from bydawn.core.facts import HookEnded, LoopStopped, Obstructed
from bydawn.core.layout import hook_output, tree_before
from bydawn.core.loop import OnHookFailure
from bydawn.core.outcome import Ending, in_words
from bydawn.core.text import headline, shorten
from bydawn.core.values import FINISHED, Now, Snapshot
from bydawn.engine.effects import Effects


class HookRuns:
    """The hooks of one run.

    Only this object knows what has run. After a crash `pre_round` runs again, with the next attempt; `post_round` is
    lost if the process dies before it, and never runs for a round whose end was not seen.
    """

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._loop = effects.loop
        self._commands = effects.loop.hooks.commands
        self._prepared = 0  # the round that `pre_round` has run for
        # … and `post_round`. One that blocked the loop is asked again: its refusal must not be ignored.
        self._followed = effects.state.round - (effects.state.refused == "post_round")

    def waited(self) -> None:
        """Preparations made hours ago are out of date."""
        self._prepared = 0

    def before_round(self, action: StartRound) -> bool:
        """Before the snapshot, so that its changes are not the agent's; then everything is decided again."""
        if not self._commands["pre_round"] or self._prepared == action.round:
            return False
        self._prepared = action.round
        told = hooks.before_round(action.task, action.task_id, action.agent)
        for ended in self._run("pre_round", action.round, told, self._effects.urgent):
            self._effects.record(ended)
            if self._blocks(ended):
                break
        return True

    def after_round(self, action: Action) -> Snapshot | None:
        """After a round and its checks, before anything else; then everything is decided again."""
        effects, last, after = self._effects, self._effects.state.last, None
        if isinstance(action, Settle | Commit | RunChecks) or last is None or last.ended.round <= self._followed:
            return None
        self._followed = last.ended.round
        if effects.state.stop_now or effects.state.obstructed:
            return None
        told = hooks.after_round(self._loop, effects.state, last)
        for ended in self._run("post_round", last.ended.round, told, effects.urgent):
            # Its changes are not progress, and done means proven on the current tree.
            after = effects.snapshot(keep_as=tree_before(last.ended.round + 1))
            effects.record(replace(ended, tree=after.tree, work=after.work))
            effects.tasks_changed(after)
            if self._blocks(ended):
                break
        return after

    def at_end(self, fact: LoopStopped, now: Now) -> LoopStopped:
        """The hook for this end, between the decision and the last fact; it cannot change how the loop ends."""
        name, state = hooks.BY_END[fact.end], self._effects.state
        if not self._commands[name]:
            return fact
        told = hooks.after_all(state, fact)
        hurried = partial(self._effects.hurried, finished=fact.end in FINISHED)
        for ended in self._run(name, state.round, told, hurried):
            self._effects.record(ended)
        # With the same clock reading: only a disk that its output filled up leads to another end.
        again = next_action(self._loop, self._effects.state, now)
        return last_word(again, now) if isinstance(again, Pause | Stop) else fact

    def _run(self, name: str, round_: int, told: dict[str, str], urgent: Callable[[], bool]) -> Iterator[HookEnded]:
        """One command after the other, each to be recorded before the next, until one is cut short."""
        effects, state, commands = self._effects, self._effects.state, self._commands[name]
        told = {"BYDAWN_LOOP": self._loop.id, **told}
        words = effects.hook_words(name, self._loop, state, told) if effects.hook_words else {}
        told = hooks.fit({**words, **told}, effects.hide, (self._loop.workspace, self._loop.folder))
        for number, command in enumerate(commands, 1):
            effects.ledger.sync()  # it may look at the loop, and act on what it sees
            exit_, output = effects.hooks.run(name, command, round_, told, urgent, number), hook_output(name, number)
            self._effects.mask(round_, output)
            yield HookEnded(
                hook=name,
                round=round_,
                passed=exit_.went_well,
                detail=in_words(exit_, self._loop.timeouts.hook),
                elapsed=effects.clock.now().elapsed,
                seconds=round(exit_.seconds, 3),
                output=output,
                excerpt="" if exit_.went_well else effects.files.tail(round_, output, hooks.EXCERPT),
                command=shorten(command, hooks.LONGEST),
                exit_code=exit_.code,
                timed_out=exit_.ending is Ending.TOTAL,
                more=number < len(commands),
            )
            if exit_.ending is Ending.ASKED:
                break

    def _blocks(self, ended: HookEnded) -> bool:
        """A failing hook blocks the loop if a person wants that; one that was cut short has not failed."""
        if ended.passed or self._loop.hooks.on_failure is not OnHookFailure.BLOCK or self._effects.state.stop_now:
            return False
        detail = hooks.complaint(ended, headline(ended.excerpt))
        self._effects.record(Obstructed(kind="hook", detail=detail, hook=ended.hook))
        return True
