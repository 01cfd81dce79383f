"""A fact as a sentence for people, wherever it is shown: terminal, web page, notice."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.core import facts
from bydawn.core.breakers import Limits, limits_of
from bydawn.core.completion import lost_words
from bydawn.core.facts import AnyFact
from bydawn.core.hooks import complaint
from bydawn.core.loop import CommandCheck, Loop, OnInterrupt
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import Line, TaskReading, TaskStatus, Verdict
from bydawn.core.verdicts import in_the_way
from bydawn.operations.amounts import plural, rounds, totals
from bydawn.operations.check_programs import steering_files
from bydawn.operations.pending import asked, asked_words, waiting_words

WARNING = "!"


class Field(msgspec.Struct, frozen=True):
    """A line with a label; empty if the label above still applies."""

    label: str
    text: str


class Sentence(msgspec.Struct, frozen=True):
    """What to say, and a sign for what kind of message it is; a plain announcement has none."""

    sign: str
    text: str


class Counting(msgspec.Struct, frozen=True, kw_only=True):
    """The word for a round, and how many there were; a dialect has its own word and counts differently."""

    unit: str = "round"
    number: int = 0
    checks: str = "checks"

    @property
    def last(self) -> str:
        """`round 4`: the running one, or the last."""
        return f"{self.unit} {self.number}"


def sentences(fact: AnyFact, loop: Loop, before: LoopState, state: LoopState, counting: Counting) -> Iterator[Sentence]:
    """What to tell people about a fact; nothing if a round's row or the summary says it."""
    match fact:
        case facts.RunStarted():
            if fact.restart:
                yield Sentence("▷", f"its process had died ({fact.restart.words}); it was started again")
            if fact.cycle > 1:
                yield Sentence("▷", f"cycle {fact.cycle}: it goes on by itself")
            if fact.found.put_back:
                names = ", ".join(map(plain, fact.found.put_back[:3]))
                yield Sentence(WARNING, f"protected files had changed since the last run and were put back: {names}")
            if fact.mended:
                yield Sentence(WARNING, plain(fact.mended))
            if fact.box and fact.box != facts.BOXED:
                option = "" if loop.dialect else " (--box)"
                yield Sentence(WARNING, f"checks run without a box: {plain(fact.box)}{option}")
            yield from _freed(state.verdicts, loop)
        case facts.ChecksEnded() if not fact.round:
            yield from _freed(fact.verdicts, loop)
        case facts.RoundStarted() if fact.notes:
            many = f"{len(fact.notes)} notes" if len(fact.notes) > 1 else "your note"
            yield Sentence("✎", f"{many} went into the prompt of {counting.last}")
        case facts.WaitStarted():
            yield Sentence("…", _wait(fact, state, counting))
        case facts.LinesAdded() if fact.by:
            yield Sentence("▷", f"added by {plain(fact.by)}: {', '.join(plain(line.text) for line in fact.lines)}")
        case facts.RoundEnded() if lost := _newly_lost(before, state):
            yield Sentence(WARNING, f"{loop.tasks} {plain(lost_words(lost))}; the next prompt asks for it")
        case facts.TaskSettled() if fact.status is not TaskStatus.DONE:
            word = {TaskStatus.OPEN: "open again", TaskStatus.ASIDE: "set aside"}.get(fact.status, fact.status.value)
            why = f": {plain(fact.reason)}" if fact.reason else ""
            yield Sentence("▷", f"{word}: “{plain(fact.text)}”{why}")
        case facts.CheckpointApproved():
            yield Sentence("✓", f"approved by {plain(fact.by)}: {plain(fact.text)}")
        case facts.TamperingAccepted():
            yield Sentence("✓", f"accepted by {plain(fact.by)}: {', '.join(map(plain, fact.paths))}")
        case facts.AgentLimited():
            until = f"{fact.until.astimezone():%H:%M}"
            yield Sentence(
                "◷", f"{plain(fact.agent)} is at its usage limit until {until}, reported by the loop {plain(fact.by)}"
            )
        case facts.MachineSlept():
            yield Sentence("☾", f"the machine slept for {duration(fact.seconds)}; all timers were paused")
        case facts.NoteAdded():
            yield Sentence("✎", f"note from {plain(fact.by)} for the next prompt")
        case facts.IterationRecorded():
            yield from _recorded(fact, state)
        case facts.EventRecorded() if fact.by != "bydawn":
            yield Sentence("•", f"{_who(fact)} recorded {plain(fact.kind)} (a claim): {plain(fact.message)}")
        case facts.PauseRequested() | facts.StopRequested():
            yield from _stopping(fact, before, state, counting)
        case facts.HookEnded() if not fact.passed:
            yield Sentence(WARNING, plain(complaint(fact)))
        case facts.NoticeEnded() if not fact.sent:
            yield Sentence(WARNING, f"notice to {plain(fact.to)} not sent: {plain(fact.detail)}")
        case facts.Obstructed() if fact.kind not in ("hook", facts.COMMIT):  # these have words of their own
            yield Sentence(WARNING, plain(fact.detail))
        case facts.LedgerRepaired():
            where = plain(fact.kept_in)
            yield Sentence(
                WARNING, f"removed {fact.cut_bytes} bytes of an incomplete record; they are saved in {where}"
            )
        case facts.LimitsRaised():
            yield Sentence("", f"Limits {_how_changed(limits_of(loop, before), fact.limits)}.")
        case _:
            pass


def _recorded(fact: facts.IterationRecorded, state: LoopState) -> Iterator[Sentence]:
    number, claim = state.records.iterations, fact.claim
    told = shorten(plain(f"{claim.task}: {claim.result_summary}"), 200)
    yield Sentence("•", f"{_who(fact)} recorded iteration {number} (a claim): {told}")
    if fact.batched:
        yield Sentence(WARNING, f"iteration {number} was recorded {plain(fact.batched)}; the next prompt says so")
    if claim.ends:
        yield Sentence(WARNING, f"it says that the work is {claim.ends}: {plain(state.records.reason)}")


def _who(fact: facts.IterationRecorded | facts.EventRecorded) -> str:
    return plain(fact.by) or ("the agent" if fact.inside else "its session")


def _newly_lost(before: LoopState, state: LoopState) -> tuple[Line, ...]:
    known = before.tasks.gone if before.tasks else ()
    return tuple(line for line in state.tasks.gone if line not in known) if state.tasks else ()


def _freed(verdicts: tuple[Verdict, ...], loop: Loop) -> Iterator[Sentence]:
    """The checks that run outside the box, and what would keep them inside; another tool has no such option."""
    for verdict in verdicts:
        if verdict.outside:
            can_help = verdict.needs and not loop.dialect
            inside = f"; to keep it inside: --box-write {plain(verdict.needs)}" if can_help else ""
            yield Sentence(WARNING, f"{plain(in_the_way(verdict))}, so it runs outside{inside}")


def _wait(wait: facts.WaitStarted, state: LoopState, counting: Counting) -> str:
    # Waiting does not count as a round, but the round before it may.
    free = wait.decided.rule == Rule.AGENT_LIMIT or state.last is None or not state.last.counts
    words = f"{waiting_words(wait, wait.seconds)}: {plain(wait.reason)}"
    return f"{words} (costs no {counting.unit})" if free else words


def _stopping(
    fact: facts.PauseRequested | facts.StopRequested, before: LoopState, state: LoopState, counting: Counting
) -> Iterator[Sentence]:
    pending = asked(state)
    if pending is None or before.stop_now:  # a signal may come twice, from the terminal and from the parent process
        return
    signal = isinstance(fact, facts.PauseRequested) and fact.signal
    pending = replace(pending, what="stop") if signal else pending  # as the opening calls what Ctrl-C does
    words = asked_words(pending, counting.last).capitalize() + ("" if signal else f", asked by {plain(fact.by)}")
    if pending.after_round is None:
        yield Sentence("", f"{words}. Changes of this {counting.unit} stay in the work tree.")
        return
    opened = state.open_round
    spent = duration(((state.updated_at or opened.started_at) - opened.started_at).total_seconds()) if opened else ""
    yield Sentence("", f"{words}{f' (running for {spent})' if spent else ''}.")
    if signal:
        yield Sentence("", f"Press Ctrl-C again to stop now; the {counting.unit}'s changes stay in the work tree.")


def _how_changed(was: Limits, now: Limits) -> str:
    """Raised only if no limit is lower than before; no limit is the highest."""
    pairs = [(getattr(was, name), getattr(now, name)) for name in now.__struct_fields__]
    return "changed" if any(new and (not old or new < old) for old, new in pairs) else "raised"


# -- a whole run -------------------------------------------------------------------------------------------------------


def opening(loop: Loop, state: LoopState, tasks: TaskReading | None, unit: str = "round") -> Iterator[Field]:
    """What a loop is about to do, and its limits."""
    yield Field("Loop", loop.id)
    if loop.worktree:
        yield Field("Branch", f"{loop.worktree.branch}, in {loop.worktree.path}")
    yield Field("Agent", ", then ".join(loop.pool))
    yield Field("Tasks", f"{loop.tasks}, {tasks.open} open" if tasks else "none (prompt only)")
    names = (_short_command(check.name) if isinstance(check, CommandCheck) else check.name for check in loop.checks)
    checks = ", ".join(names) or "none"
    if loop.asks_if_done:
        yield Field("Needs", f"{checks}, and the agent's word that it is done")
    else:
        yield Field("Check", checks)
    if loop.checks and not loop.dialect and (found := steering_files(loop)):
        decides, it = ("decides", "it") if len(found) == 1 else ("decide", "them")
        yield Field("Steers", f"{', '.join(found)} {decides} what the checks run; no round is kept from changing {it}")
    if loop.sandbox:
        words = {"read-only": "read-only", "full": "FULL: no sandbox"}
        yield Field("Access", words.get(loop.sandbox, "can edit this folder"))
    limits = limits_of(loop, state)
    recorded = [f"{plural(limits.iterations, 'iteration')} that it records"] if loop.recording else []
    yield Field("Limit", ", ".join([*totals(limits, unit), *recorded]))
    finishes = loop.on_interrupt is OnInterrupt.FINISH
    yield Field("Ctrl-C", "stop after this round · twice: stop now" if finishes else "stop now")


def _short_command(command: str) -> str:
    """A check without the long path of its interpreter."""
    first, space, rest = command.partition(" ")
    return f"{Path(first.strip(chr(39))).name}{space}{rest}" if first.strip("'").startswith("/") else command


def amount_done(loop: Loop, state: LoopState, counting: Counting) -> str:
    """`2 of 6 tasks, 4 rounds, 12 m 00`"""
    parts = [f"{state.tasks.done} of {state.tasks.total} tasks"] if state.tasks else []
    parts.append(plural(counting.number, counting.unit) if loop.dialect else rounds(state))
    return ", ".join([*parts, duration(state.elapsed)])
