"""What a proof rests on beside the last verdicts: where the work began, which tests were changed and why, and whether
the checks would notice if the work were missing.
"""

from enum import StrEnum
from fnmatch import fnmatchcase
from posixpath import basename

import msgspec
from msgspec.structs import replace

from bydawn.core.values import Counts, Value, Verdict

GREEN = "green"
UNTRIED = "could not be tried"
EVERYTHING = ""  # the files that an agent was asked about
_KEPT = 200  # answers and reasons that are remembered


class Answer(StrEnum):
    """Would the checks notice if a piece of work were missing?"""

    NOTICED = "noticed"
    OWN = "its own tests pass without it"
    UNNOTICED = "the checks pass without it"
    DOCUMENTS = "documents only"
    TESTS = "tests only"
    UNKNOWN = "not looked at"

    @property
    def is_doubt(self) -> bool:
        return self in (Answer.OWN, Answer.UNNOTICED)


class Noticed(Value, frozen=True, kw_only=True):
    """The answer for tasks that one round closed; none: for the whole loop."""

    tasks: tuple[str, ...] = ()
    answer: Answer
    detail: str = ""  # what the check said without it, or why it was not looked at
    asked: bool = False  # the agent is to write tests that notice

    @property
    def words(self) -> str:
        """`not looked at: the checks take 25 min`"""
        return f"{self.answer}: {self.detail}" if self.detail else self.answer.value

    @property
    def told(self) -> str:
        """`the checks pass without it: add a login page`; `not looked at: the checks take 25 min`"""
        which = ", ".join(self.tasks)
        if self.answer is Answer.UNKNOWN:
            return f"{self.words} ({which})" if which else self.words
        return f"{self.answer}: {which}" if which else self.answer.replace("without it", "without this work")


class Reason(Value, frozen=True, kw_only=True):
    """Why an agent changed tests, in its own words; `files` is a path, a folder or a pattern."""

    files: str
    why: str

    def covers(self, path: str) -> bool:
        """
        >>> [Reason(files=f, why="").covers("a/test_b.py") for f in ("test_b.py", "a/", "*.py", "c.py", "b.py")]
        [True, True, True, False, False]
        """
        named = self.files.removeprefix("./").partition("::")[0]
        ends = (
            path == named
            or path.endswith(f"/{named}")
            or fnmatchcase(path, named)
            or fnmatchcase(basename(path), named)
        )
        return bool(named) and (ends or f"/{path}".find(f"/{named.rstrip('/')}/") >= 0)


class ChangedTest(Value, frozen=True, kw_only=True):
    """A test, or a file that steers tests, that is not as it was at the beginning."""

    path: str
    form: str = ""  # what it is now: mode and id in git; empty: deleted
    how: str = "changed"  # deleted, new
    data: bool = False  # not a test itself but what one reads; these are counted
    steers: bool = False  # not a test itself: it decides which run, and how
    beside: bool = False  # new, and no test itself; that matters only if the checks need it
    why: str = ""  # the agent's reason

    @property
    def words(self) -> str:
        """`tests/test_a.py (deleted): the feature is gone`"""
        how = f" ({self.how})" if self.how != "changed" else ""
        how = f"{how}, which steers the tests" if self.steers else how
        return f"{self.path}{how}: {self.why or 'no reason was given'}"


class Held(Value, frozen=True, kw_only=True):
    """The checks once more, with the tests as they were at the beginning."""

    changed: tuple[ChangedTest, ...] = ()
    passed: bool | None = None  # None: that says nothing, or there was no time
    detail: str = ""
    known: bool = False  # nothing has changed since the last look
    refused: tuple[str, ...] = ()  # files for which the checks count as failed, once
    insisted: tuple[ChangedTest, ...] = ()  # files for which a person has to decide
    unexplained: tuple[ChangedTest, ...] = ()  # files for which the agent is asked why


class Proved(Value, frozen=True, kw_only=True):
    """What was found out about passing checks."""

    held: Held | None = None
    noticed: tuple[Noticed, ...] = ()
    tools: tuple[str, ...] = ()  # what runs the checks, is in no tree and was changed since the first round
    later: tuple[tuple[str, ...], ...] = ()  # groups of tasks, by their ids, for which there was no time yet
    control: str = ""  # "green", or why these runs cannot say anything
    seconds: float = 0.0


class Begun(Value, frozen=True, kw_only=True):
    """The first round of a task: the tree it found, and the checks that failed then."""

    task: str
    tree: str
    red: tuple[str, ...] = ()


class Group(Value, frozen=True, kw_only=True):
    """Tasks that one round closed, between two trees. Until the checks pass, nothing can be said about them."""

    ids: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    before: str
    after: str
    red: tuple[str, ...] = ()  # checks that failed when the first of them began
    green: bool = False  # have the checks passed on the tree after?


class Proofs(msgspec.Struct, frozen=True, kw_only=True):
    """All of that about one loop."""

    tree: str = ""  # when it began
    work: str = ""
    red: tuple[str, ...] = ()  # the checks that failed then
    passed: bool = False  # did they pass last, whatever was found out behind them?
    counts: dict[str, Counts] = {}  # by check: what fewer tests are compared with, …
    most: dict[str, Counts] = {}  # … and the most that ever ran
    first: dict[str, Counts] = {}  # what they said before the first round
    tested: tuple[str, ...] = ()  # checks that ever ran a test, …
    counting: tuple[str, ...] = ()  # … and those that said so when they passed
    begun: tuple[Begun, ...] = ()
    waiting: tuple[Group, ...] = ()
    noticed: tuple[Noticed, ...] = ()
    yours: dict[str, str] = {}  # tests that a person changed between runs, by path: their new form is the beginning, …
    agreed: dict[str, str] = {}  # changed tests by path, each with a form beside which the old ones passed, too
    taken: tuple[str, ...] = ()  # (files that a person accepted since the last run)
    newer: dict[str, str] = {}  # … and so is one that an agent gave a reason for; but that is told
    fitted: dict[str, str] = {}  # the reason for each of these: with the older form, the checks failed
    reasons: tuple[Reason, ...] = ()
    changed: tuple[ChangedTest, ...] = ()  # tests that are not as they were, as last seen
    looked: str = ""  # the tree for which that was found out
    held: bool | None = None  # what the tests as they were said last, …
    detail: str = ""
    refused: tuple[str, ...] = ()
    insisted: tuple[ChangedTest, ...] = ()
    unexplained: tuple[ChangedTest, ...] = ()
    tools: dict[str, str] = {}  # what runs the checks and is in no tree, as it was, …
    tools_changed: tuple[str, ...] = ()  # … and what of it is not so any more
    control: str = ""
    seconds: float = 0.0  # that these runs have taken

    @property
    def untried(self) -> bool:
        """Did checks fail before, and is it unknown what they say with the tests as they were?"""
        return bool(self.red) and self.held is None and self.detail.startswith(UNTRIED)

    def silent(self, verdicts: tuple[Verdict, ...]) -> tuple[str, ...]:
        """The checks that said once how many tests ran, and do not any more."""
        return tuple(each.check for each in verdicts if each.counts is None and each.check in self.tested)


def fewer_tests(now: Counts | None, before: Counts | None) -> str:
    """
    >>> fewer_tests(Counts(ran=14, skipped=2), Counts(ran=20))
    '14 tests ran, 20 before; 2 skipped, 0 before'
    """
    if now is None or before is None:
        return ""
    ran = f"{many_tests(now.ran)} ran, {before.ran:,} before" if now.ran < before.ran else ""
    skipped = f"{now.skipped:,} skipped, {before.skipped:,} before" if now.skipped > before.skipped else ""
    return "; ".join(filter(None, (ran, skipped)))


def many_tests(count: int) -> str:
    return f"{count:,} {'test' if count == 1 else 'tests'}"


def summary(proofs: Proofs) -> str:
    """`the checks noticed 9; 3 tests were changed to fit`; empty if nothing was found out."""
    noticed = [len(each.tasks) for each in proofs.noticed if each.answer is Answer.NOTICED]
    changed = [each.path for each in proofs.changed if not each.data]
    tests, fitted = len(changed), len([path for path in changed if path in proofs.fitted or proofs.held is False])
    many = "a test was" if tests == 1 else f"{tests} tests were"
    fit = f"{f', {fitted}' if fitted < tests else ''} to fit, see below" if fitted else ""
    parts = [f"the checks noticed {sum(noticed) or 'it'}"] if noticed else []
    return "; ".join([*parts, *([f"{many} changed{fit}"] if tests else [])])


def round_began(proofs: Proofs, task: str | None, tree: str, red: tuple[str, ...]) -> Proofs:
    """A round for a task: the first one shows where the task begins."""
    if task is None or any(each.task == task for each in proofs.begun):
        return proofs
    return replace(proofs, begun=(*proofs.begun, Begun(task=task, tree=tree, red=red)))


def closed(proofs: Proofs, ids: tuple[str, ...], tasks: tuple[str, ...], own: Begun, after: str) -> Proofs:
    """A round has closed tasks; `own` is what it found itself. A second claim about a task replaces the first."""
    if not ids:
        return proofs
    mine = [each for each in proofs.begun if each.task in ids] or [own]
    earlier = [group for group in proofs.waiting if not {*group.ids}.isdisjoint(ids)]
    failed = [each.red for each in mine] + [group.red for group in earlier]
    red = tuple(dict.fromkeys(check for checks in failed for check in checks))
    before = earlier[0].before if earlier else mine[0].tree
    group = Group(ids=ids, tasks=tasks, before=before, after=after, red=red)
    left = tuple(each for each in proofs.begun if each.task not in ids)
    waiting = tuple(each for each in proofs.waiting if each not in earlier)
    return replace(proofs, begun=left, waiting=(*waiting, group))


def explained(proofs: Proofs, reasons: tuple[Reason, ...], *, answered: bool) -> Proofs:
    """A round has ended. Who was asked for reasons and gave none leaves the decision to a person."""
    known = (*proofs.reasons, *reasons)[-_KEPT:]
    if not proofs.unexplained or not answered:
        return replace(proofs, reasons=known)
    found = tuple(with_reason(each, reasons, asked=True) for each in proofs.unexplained)
    newer = proofs.newer | {each.path: each.form for each in found}
    told = {each.path: each for each in found}
    return replace(
        proofs,
        reasons=known,
        unexplained=(),
        newer=newer,
        fitted=proofs.fitted | {each.path: each.why for each in found},
        changed=tuple(told.get(each.path, each) for each in proofs.changed),
        insisted=(*proofs.insisted, *(each for each in found if not each.why)),
    )


def with_reason(changed: ChangedTest, reasons: tuple[Reason, ...], *, asked: bool = False) -> ChangedTest:
    """The last reason that covers it; one without a file is for what the agent was asked about."""
    fitting = (each.why for each in reversed(reasons) if each.covers(changed.path) or (asked and not each.files))
    why = next(fitting, "")
    return replace(changed, why=why) if why else changed


def checked(proofs: Proofs, verdicts: tuple[Verdict, ...], tree: str, proved: Proved | None, *, first: bool) -> Proofs:
    """The checks have run: what they counted, and what was found out if they passed."""
    red = tuple(verdict.check for verdict in verdicts if not verdict.passed)
    held = {each.path for each in proved.held.changed} if proved and proved.held else set[str]()
    most, counts = dict(proofs.most), dict(proofs.counts)
    tested = [each for each in verdicts if each.counts and each.counts.ran]
    for verdict in verdicts:
        if ran := verdict.counts:
            most[verdict.check] = _best(most.get(verdict.check), ran)
            # Fewer tests than before are told once; but while they count as a failure, until they are back.
            is_told = verdict.fewer and verdict.passed and verdict.check not in held
            best = ran if is_told else _best(counts.get(verdict.check), ran)
            counts[verdict.check] = best
    # If something was looked for behind them, they had passed, whatever was found.
    passed = not red or proved is not None
    waiting = tuple(replace(each, green=each.green or (each.after == tree and passed)) for each in proofs.waiting)
    proofs = replace(
        proofs,
        counts=counts,
        passed=passed,
        most=most,
        tested=tuple(dict.fromkeys((*proofs.tested, *(each.check for each in tested)))),
        counting=tuple(dict.fromkeys((*proofs.counting, *(each.check for each in tested if each.passed)))),
        waiting=waiting,
        red=red if first else proofs.red,
        first={each.check: each.counts for each in verdicts if each.counts} if first else proofs.first,
    )
    if proved is None:
        return proofs
    new = {each.tasks for each in proved.noticed}
    proofs = replace(
        proofs,
        control=proved.control or proofs.control,
        seconds=round(proofs.seconds + proved.seconds, 3),
        noticed=(*(each for each in proofs.noticed if each.tasks not in new), *proved.noticed)[-_KEPT:],
        waiting=tuple(group for group in waiting if group.ids in proved.later),
        tools_changed=proved.tools,
        looked=tree,
    )
    return _held(proofs, proved.held) if proved.held else proofs


def _held(proofs: Proofs, held: Held) -> Proofs:
    now = {each.path: each for each in held.changed}
    # One that is as it was at the beginning again needs no decision any more.
    insisted = {each.path: each for each in (*proofs.insisted, *held.insisted) if each.path in now}
    explains = held.passed is False and not held.refused and not held.unexplained
    newer = {each.path: each.form for each in (held.changed if explains else ())}
    fitted = {each.path: each.why for each in held.changed if explains and proofs.newer.get(each.path) != each.form}
    # A later change that agrees with a form that was given a reason needs none of its own.
    known = proofs.fitted if held.passed else {}
    return replace(
        proofs,
        changed=tuple(replace(each, why=each.why or known.get(each.path, "")) for each in held.changed),
        fitted=proofs.fitted | {path: why or proofs.fitted.get(path, "") for path, why in fitted.items()},
        held=held.passed,
        detail=held.detail,
        newer=proofs.newer | newer,
        agreed=proofs.agreed | {each.path: each.form for each in (held.changed if held.passed else ())},
        reasons=() if held.refused or held.passed or explains else proofs.reasons,  # the next change needs its own
        refused=(*proofs.refused, *held.refused) if held.refused else (),
        insisted=tuple(insisted.values()),
        unexplained=held.unexplained,
    )


def _best(known: Counts | None, now: Counts) -> Counts:
    if known is None or not known.ran:
        return now
    return Counts(ran=max(known.ran, now.ran), skipped=min(known.skipped, now.skipped))


def accepted(proofs: Proofs, paths: tuple[str, ...]) -> Proofs:
    """A person has looked at files, and takes them as they are."""
    left = tuple(each for each in proofs.insisted if each.path not in paths)
    refused = tuple(path for path in proofs.refused if path not in paths)
    counts = {name: known for name, known in proofs.counts.items() if name not in paths}
    return replace(proofs, insisted=left, refused=refused, counts=counts, taken=(*proofs.taken, *paths))


def to_accept(proofs: Proofs) -> tuple[str, ...]:
    """The files that only a person can take as they are: an agent insists on them, or leaves them as they are."""
    return tuple(dict.fromkeys([*(changed.path for changed in proofs.insisted), *proofs.refused]))
