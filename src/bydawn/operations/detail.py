"""Everything about one loop or one round: as data, and as lines for people."""

from collections.abc import Iterator

import msgspec
from msgspec.structs import asdict

from bydawn.core import completion
from bydawn.core.facts import ChecksEnded, RoundEnded
from bydawn.core.loop import CommitMode, Loop
from bydawn.core.proof import Answer, ChangedTest, Noticed
from bydawn.core.records import Entry, line_of
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import Commands, Promised, Status, Usage, Verdict
from bydawn.core.verdicts import in_the_way
from bydawn.operations import reasons
from bydawn.operations.amounts import named_rounds, plural, progress, used
from bydawn.operations.changed import Changed, changed
from bydawn.operations.next_steps import next_steps
from bydawn.operations.pending import asked, asked_words
from bydawn.operations.plan import shared
from bydawn.operations.recent import rounds, the_round
from bydawn.operations.rounds import RoundRow, RoundView, of_commit, round_view
from bydawn.operations.sentences import Field
from bydawn.operations.stuck import stuck
from bydawn.operations.views import LoopView, limited_now, liveness, loop_view
from bydawn.store.registry import Standing, beside

_LINES_OF_GIT = 10
_LONGEST_CHECK = 80
_ENTRIES = 8  # claims that programs are told, …
_CLAIMS = 3  # … and people
_LAST_LINES = 10  # of a failing check's output
# Evidence that `_findings` shows on its own line.
_FOUND = (completion.DOUBTED, completion.TAMPERED, completion.PUT_BACK, completion.ACCEPTED)
EXPLAINED = (
    Rule.AGENT_STOP,
    Rule.OBSTRUCTED,
    Rule.TASKS_ASIDE,
)  # rules whose reason alone does not tell people what to do


class QuestionView(msgspec.Struct, frozen=True, kw_only=True):
    """A task that was set aside until a person answers."""

    task: str
    text: str
    question: str


class RecordsView(msgspec.Struct, frozen=True, kw_only=True):
    """What others recorded for a loop: claims, and beside each what was measured."""

    iterations: int
    events: int
    claimed: str | None  # the end that the last of them claims
    next_task: str
    last: tuple[Entry, ...]


class ProofView(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out behind passing checks: the answer for each task, and the tests that are not as they were."""

    noticed: tuple[Noticed, ...]
    changed_tests: tuple[ChangedTest, ...]
    with_old_tests: bool | None  # do the checks pass with them? None: unknown, or none was changed
    control: str
    seconds: float


def proof_view(state: LoopState) -> ProofView:
    known = state.proofs
    return ProofView(
        noticed=known.noticed,
        changed_tests=known.changed,
        with_old_tests=known.held,
        control=known.control,
        seconds=known.seconds,
    )


class LoopDetail(LoopView, frozen=True, kw_only=True):
    """`show --json`."""

    prompt: str
    requires: tuple[str, ...]
    missing: list[str]
    red_before: tuple[str, ...] | None
    doubted: tuple[str, ...]
    proof: ProofView
    questions: list[QuestionView]
    aside: tuple[str, ...]
    skipped: tuple[str, ...]
    put_back: dict[str, list[int]]  # protected file → the rounds that changed it
    usage_by_task: dict[str, Usage]
    notes_waiting: list[str]
    changed: Changed | None  # since the first round
    rounds: list[RoundView]
    folder: str
    recorded: RecordsView | None  # what its agents say that they did; None if they may not record


def loop_detail(standing: Standing, only: int | None = None) -> LoopDetail:
    """Everything about a loop; with `only`, just that one of its rounds."""
    loop, state = standing.loop, standing.state
    rows = rounds(standing)
    chosen = rows if only is None else [the_round(standing, only)]
    return LoopDetail(
        **asdict(loop_view(standing, next_steps(standing))),
        prompt=loop.prompt,
        requires=completion.wanted(loop, state),
        missing=completion.missing(loop, state),
        red_before=state.baseline,
        doubted=state.doubted,
        proof=proof_view(state),
        questions=[QuestionView(task=row.task, text=row.text, question=row.question) for row in state.questions],
        aside=state.settled.aside,
        skipped=state.settled.skipped,
        put_back=reasons.put_back(standing),
        usage_by_task=usage_by_task(rows),
        notes_waiting=[note.text for note in state.notes],
        changed=changed(standing),
        rounds=[*map(round_view, chosen)],
        folder=str(standing.folder),
        recorded=records_view(standing),
    )


def records_view(standing: Standing) -> RecordsView | None:
    """The last claims of a loop whose agents record what they do."""
    if standing.loop.recording is None:
        return None
    known = standing.state.records
    return RecordsView(
        iterations=known.iterations,
        events=known.events,
        claimed=known.claimed or None,
        next_task=known.next_task,
        last=known.entries[-_ENTRIES:],
    )


def usage_by_task(rows: list[RoundRow]) -> dict[str, Usage]:
    """What each task has used in all its rounds; without tasks whose agents report nothing."""
    used: dict[str, Usage] = {}
    for row in rows:
        task, usage = row.attempt.started.task, row.usage
        if task and usage:
            used[task] = usage.plus(used.get(task))
    return used


# -- line by line ------------------------------------------------------------------------------------------------------


def loop_fields(standing: Standing, found: Changed | None = None) -> Iterator[Field]:
    """Everything about a loop except its rounds; `found` is what it has changed."""
    loop, state = standing.loop, standing.state
    for each in state.questions:
        yield Field("Asks", f"“{shorten(plain(each.text), 100)}”: {plain(' '.join(each.question.split()))}")
    is_blocked = standing.status is Status.BLOCKED
    if is_blocked:
        yield from _why_stuck(standing)
    yield Field("Goal", shorten(plain(loop.prompt), 400) or f"the tasks in {loop.tasks}")
    yield Field("Where", loop.workspace)
    if loop.worktree:
        from bydawn.operations.worktrees import in_the_way  # few loops have one

        yield Field("Branch", f"{loop.worktree.branch}, in the worktree {loop.worktree.path}")
        if found and (why := in_the_way(loop)):
            yield Field("Merge", why)
    if standing.alive and (company := beside(standing.folder, loop)):
        yield Field("Shared", shared(company))
    so_far = f"{progress(standing)}, {duration(state.elapsed)} of work; {liveness(standing)}"
    yield Field("So far", so_far)
    if state.cycle:
        yield Field("Cycle", f"{state.cycle}; it goes on by itself" if standing.alive else f"{state.cycle}")
    yield Field("Agent", ", then ".join(loop.pool) + (f", {loop.sandbox.value} access" if loop.sandbox else ""))
    limited = limited_now(standing)
    for row in limited:
        if row.until:
            yield Field("Limited", f"{row.agent} until {row.until.astimezone():%a %H:%M}: {row.detail}")
    if standing.alive and state.waiting and state.waiting.agent not in [row.agent for row in limited]:
        yield Field("Waiting", plain(state.waiting.reason))
    if standing.alive and (pending := asked(state)):
        yield Field("Asked", f"to {pending.what} {asked_words(pending).partition(' ')[2]}, by {plain(pending.by)}")
    yield from _usage(standing)
    yield from _evidence(standing)
    for condition in [] if standing.trouble else completion.missing(loop, state):
        yield Field("Missing", reasons.missing(condition, standing))
    if not is_blocked:
        yield from _failed_checks(standing)
    yield from _recorded(standing)
    if found:
        yield Field("Files", f"changed: {found.words}")
    yield from _findings(standing)
    if not is_blocked:
        yield from _last_words(standing)


def _recorded(standing: Standing) -> Iterator[Field]:
    """The last claims, each with what was measured."""
    known = standing.state.records
    if standing.loop.recording is None or not known.iterations:
        return
    yield Field("Claims", f"{plural(known.iterations, 'iteration')} recorded; the last:")
    for entry in known.entries[-_CLAIMS:]:
        seen = {None: "", True: ", files changed", False: ", no new change"}[entry.progress]
        checks = "" if entry.checks is None else f", {plural(entry.checks, 'check')} passed"
        batched = f", recorded {entry.batched}" if entry.batched else ""
        yield Field("", plain(f"{line_of(entry)}{seen}{checks}{batched}"))


def _why_stuck(standing: Standing) -> Iterator[Field]:
    """What a person needs to decide, before everything else."""
    found = stuck(standing, [row.attempt for row in rounds(standing)])
    if found.task:
        yield Field("Task", f"{shorten(plain(found.task), 200)}   {found.place or ''}".rstrip())
    yield from _failed_checks(standing)
    if found.rounds:
        cost = f", {used(found.usage, unpriced=standing.state.unpriced)}" if found.usage else ""
        yield Field("Tried", f"{plural(found.rounds, 'round')}, {duration(found.seconds)}{cost}")
    yield from _last_words(standing)
    yield Field("Safe", what_is_safe(standing.loop))


def what_is_safe(loop: Loop) -> str:
    """What a person need not worry about."""
    committed = "nothing was committed for you" if loop.commit is CommitMode.OFF else "see also `git log`"
    return f"the files as each round found them are kept; {committed}"


def _failed_checks(standing: Standing) -> Iterator[Field]:
    state = standing.state
    for verdict in state.verdicts:
        if not verdict.passed:
            known = "; it already failed before the first round" if verdict.check in (state.baseline or ()) else ""
            yield Field("Check", f"{shorten(plain(verdict.check), _LONGEST_CHECK)} → {verdict.told}{known}")
        if verdict.outside:
            yield Field("Box", f"{plain(in_the_way(verdict))}, so it runs outside")


def _last_words(standing: Standing) -> Iterator[Field]:
    if standing.state.last and standing.state.last.ended.said:
        yield Field("Said", f"“{shorten(standing.state.last.ended.said, 300)}”")


def _usage(standing: Standing) -> Iterator[Field]:
    state = standing.state
    if state.usage:
        yield Field("Used", used(state.usage, unpriced=state.unpriced))
        for task, usage in usage_by_task(rounds(standing)).items():
            yield Field("", f"{shorten(plain(task), 60)}: {used(usage, unpriced=state.unpriced)}")


def _evidence(standing: Standing) -> Iterator[Field]:
    """What confirms the end, unless a line below says it."""
    stopped = standing.state.stopped
    if stopped and (standing.finished or stopped.decided.rule in EXPLAINED):
        for row in reasons.evidence(standing):
            if not row.startswith(_FOUND):
                yield Field("Proof" if standing.finished else "Because", row)
    if not stopped or stopped.decided.rule != Rule.OBSTRUCTED:
        for complaint, numbers in reasons.failed_hooks(standing).items():
            yield Field("Hook", f"{complaint} ({named_rounds(numbers)})")


def _findings(standing: Standing) -> Iterator[Field]:
    """What else a person should know."""
    state = standing.state
    for each in state.proofs.noticed:
        if each.answer is Answer.NOTICED:
            yield Field("Proof", f"{each.told} ({each.detail})" if each.detail else each.told)
        elif not standing.finished:  # its evidence has the others
            yield Field("Proof", each.told)
    for test in state.proofs.changed if not standing.finished else ():
        yield Field("Test", f"changed: {test.words}")
    if state.doubted:
        yield Field("Ticked", f"without any other change: {', '.join(state.doubted)}")
    if state.tampered:
        yield Field("Changed", f"protected files: {', '.join(state.tampered)}")
    if undone := reasons.put_back_words(standing):
        yield Field("Undone", f"changes to protected files: {undone}")
    if state.accepted:
        yield Field("Allowed", f"changes you accepted: {', '.join(state.accepted)}")
    for tally in state.tallies:
        if tally.task in state.settled.aside and not tally.question:
            yield Field("Task", f"set aside after failing too often: {tally.text or tally.task}")
    for note in state.notes:
        fate = "was never used: the loop ended first" if standing.finished else "goes into the next prompt"
        yield Field("Note", f"“{shorten(plain(note.text), 200)}” {fate}")
    wanted = completion.wanted(standing.loop, state)
    if state.last and state.last.ended.promise is Promised.MENTIONED and "promise" in wanted:
        yield Field("Promise", "only mentioned by the agent, not given: not accepted")


# -- a round -----------------------------------------------------------------------------------------------------------


def round_fields(standing: Standing, row: RoundRow) -> Iterator[Field]:
    """Everything about a round except its checks."""
    attempt = row.attempt
    yield Field("Round", f"{row.number} of {standing.loop.id}, {row.result}")
    if attempt.started.task:
        yield Field("Task", attempt.started.task)
    yield Field("Agent", attempt.started.agent)
    if attempt.ended:
        yield from _ended_round(attempt.ended, attempt.checks, row.why or attempt.ended.detail)
    if commit := attempt.commit:
        yield from (Field("Commit", remark.text) for remark in of_commit(commit))
        yield from (Field("", line) for line in commit.excerpt.splitlines()[-_LINES_OF_GIT:])


def _ended_round(ended: RoundEnded, checks: ChecksEnded | None, why: str) -> Iterator[Field]:
    took = f", checks {duration(checks.seconds)}" if checks and checks.verdicts else ""
    yield Field("Took", f"{duration(ended.seconds)}{took}")
    if why:
        yield Field("Ended", why)
    found, changes = ended.found, ended.found.changes
    lines = f", {changes.lines.words}" if changes.lines else ""
    yield Field("Files", f"+{changes.added} ~{changes.modified} -{changes.deleted}{lines}")
    yield from (Field("", path) for path in changes.paths)
    if ended.usage:
        yield Field("Used", used(ended.usage))
    if found.tampered:
        yield Field("Changed", f"protected: {', '.join(found.tampered)}{' (put back)' if found.restored else ''}")
    if ended.blocked:
        yield Field("Blocked", ended.blocked)
    yield from (Field("Denied", text) for text in ended.denied)
    yield from _commands(ended.commands)
    yield Field("Said", ended.said or "nothing")
    if ended.promise is not Promised.ABSENT:
        yield Field("Promise", ended.promise)
    yield from (Field("Ended", f"process left behind: {left}") for left in ended.leftovers)


def _commands(commands: Commands) -> Iterator[Field]:
    if commands.ran:
        failed = "all failed" if commands.all_failed else f"{commands.failed} failed"
        yield Field("Ran", f"{plural(commands.ran, 'command')}, {failed}")
    left_out = commands.failed - len(commands.failures)
    yield from ([Field("", f"({left_out} more before these)")] if left_out else [])
    yield from (Field("", text) for text in commands.failures)


def last_printed(verdict: Verdict) -> list[str]:
    """The end of a failing check's output, which the next prompt contains too, unless its result says it all."""
    lines = [line.rstrip() for line in plain(verdict.excerpt).splitlines() if line.strip()]
    return [] if verdict.passed or lines == [verdict.detail] else lines[-_LAST_LINES:]
