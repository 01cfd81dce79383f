"""A whole night on one stage: a scripted agent, its checks, and the engine between them and a world in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any

import msgspec

from bydawn.core import answers
from bydawn.core.agent import Abilities, AgentCommand, CommandEnded, Ended, Event, Ladder, Message, Turn
from bydawn.core.facts import BOXED, CheckpointApproved, ChecksEnded, Fact, LoopStopped, RunStarted
from bydawn.core.globs import ALWAYS_PROTECTED
from bydawn.core.hooks import HookWords
from bydawn.core.layout import hook_output
from bydawn.core.loop import Check, CommandCheck, Loop, Sessions
from bydawn.core.notices import Messages, Order, Sent
from bydawn.core.outcome import Ending, Exit, Outcome, imposed
from bydawn.core.ports import NONE, Commits, Job
from bydawn.core.requests import Request
from bydawn.core.state import LoopState
from bydawn.core.values import Counts, Usage, Verdict
from bydawn.core.worklist import WorkList
from bydawn.engine.effects import Effects
from bydawn.engine.run import Engine
from engine.fakes import (
    NOON,
    FakeChannel,
    FakeClock,
    FakeCoolDowns,
    FakeDrop,
    FakeWorkspace,
    Files,
    MemoryFiles,
    MemoryLedger,
    PowerCut,
    Witness,
)

DONE = "All of it is there.\n<promise>TASK_COMPLETE</promise>"
TODO = "TODO.md"
TICK = 3.0  # seconds between the looks in the middle of a turn
MAKE_TEST = CommandCheck(command="make test")


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent does in one turn."""

    says: str = "working on it"
    complains: tuple[bytes, ...] = ()  # lines on stderr
    outcome: Outcome = Outcome.OK
    detail: str = ""
    writes: Files = {}  # path and text; None deletes
    seconds: float = 60.0
    wait_until: datetime | None = None
    spends: Usage | None = None
    session: str = ""  # that it says it works in; otherwise one of its own
    exit: Exit | None = None
    meanwhile: Callable[[], None] = lambda: None  # in the middle of the turn
    writes_last: Files = {}  # at its end, whatever happened meanwhile
    runs: tuple[CommandEnded, ...] = ()


class ScriptedAgent:
    """Plays one play per turn; its own child, so to speak."""

    ladder = Ladder()
    streams = True

    def __init__(self, plays: Iterable[Play | str], name: str = "demo") -> None:
        self.name = name
        self._plays = iter(plays)
        self.turns = 0
        self.sessions: list[str | None] = []  # that it was asked to go on with
        self.prompt_last = False
        self.answers = False  # can it be given a schema?

    def command(self, turn: Turn) -> AgentCommand:
        self.sessions.append(turn.session)
        return AgentCommand(argv=(self.name, str(turn.round)), prompt_last=self.prompt_last)

    @property
    def abilities(self) -> Abilities:
        return Abilities(resumes=True, answers=self.answers)

    def reader(self, turn: Turn | None = None) -> "PlayReader":
        if turn is None:  # only to read again what was printed
            return PlayReader(Play(), "")
        play = next(self._plays)
        self.turns += 1
        self.playing = play if isinstance(play, Play) else Play(says=play)
        return PlayReader(self.playing, self.playing.session or f"{self.name}'s")

    def missing(self, workspace: str) -> tuple[str, str] | None:  # noqa: ARG002
        return None


class PlayReader:
    def __init__(self, play: Play, session: str) -> None:
        self._play = play
        self._session = session

    def read(self, line: bytes) -> Iterable[Event]:
        return (Message(line.decode()), *self._play.runs)

    def skipped(self, size: int) -> None:
        raise AssertionError(size)

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:  # noqa: ARG002
        outcome, detail = imposed(exit_) or (self._play.outcome, self._play.detail)
        return Ended(
            outcome=outcome,
            detail=detail,
            reply=self._play.says,
            session=self._session,
            wait_until=self._play.wait_until,
            usage=self._play.spends,
        )


class FakeProcesses:
    """Runs plays instead of children, and sleeps by turning the clock."""

    def __init__(self, night: "Night") -> None:
        self._night = night
        self.jobs: list[Job] = []
        self.sleeps: list[float] = []

    def run(
        self,
        job: Job,
        on_line: Callable[[bytes], bool],
        on_skip: Callable[[int], None],
        urgent: Callable[[], bool],
        on_error: Callable[[bytes], bool] | None = None,
    ) -> Exit:
        del on_skip
        night, play = self._night, self._night.agents[job.argv[0]].playing
        self.jobs.append(job)
        on_line(play.says.encode())
        for line in play.complains if on_error else ():
            assert on_error
            assert not on_error(line)
        night.workspace.edit(play.writes)
        night.clock.pass_by(play.seconds / 2)
        play.meanwhile()
        half = play.seconds / 2
        for passed, more in ((half, min(TICK, half)), (half + TICK, max(0.0, half - TICK))):
            if urgent():
                return Exit(ending=Ending.ASKED, seconds=passed)
            night.clock.pass_by(more)
        night.workspace.edit(play.writes_last)
        return play.exit or Exit(code=0, seconds=play.seconds)

    def sleep(self, seconds: float, urgent: Callable[[], bool]) -> None:
        """As the real one: looks up every now and then, and wakes when something is urgent."""
        self.sleeps.append(seconds)
        left = seconds
        while left > 0:
            step = min(left, 60.0)
            left -= step
            self._night.clock.pass_by(step)
            if urgent():
                return


class FakeChecks:
    """Each check is green or red as a rule about the files says; `meanwhile` happens while they run."""

    def __init__(self, night: "Night", rule: Callable[[Files], bool]) -> None:
        self._night = night
        self.rule = rule
        self.in_box = rule
        self.needs = ""  # the folder that one that fails in the box names
        self.log: list[tuple[int, bool]] = []
        self.places: list[str] = []
        self.fingerprint: Callable[[Files], str] = lambda files: repr(files)  # unless told otherwise, each is its own
        self.counts: Callable[[Files], Counts | None] = lambda _: None
        self.aside: list[str] = []  # runs that tried another tree, and why
        self.meanwhile: Callable[[], None] = lambda: None

    def run(
        self,
        checks: Sequence[Check],
        round_: int,
        tree: str,
        urgent: Callable[[], bool],
        again: bool = False,
        outside: Mapping[str, str] = NONE,
        aside: str = "",
    ) -> tuple[Verdict, ...]:
        self._night.clock.pass_by(5.0)
        files = self._night.workspace.at(tree) if aside else self._night.workspace.files
        if aside:
            self.aside.append(aside)
        else:
            self.log.append((round_, again))
            self.places.append("outside" if outside else "")
        passed = (self.in_box if self._night.box == BOXED and not outside else self.rule)(files)
        self.meanwhile()
        urgent()
        detail, excerpt = ("exit 0", "") if passed else ("exit 2", f"FAIL number {round_}")
        mark = "" if passed else self.fingerprint(files)
        ran = self.counts(files)
        verdict = Verdict(
            check="", passed=passed, detail=detail, excerpt=excerpt, fingerprint=mark, counts=ran, seconds=5.0
        )
        refused = "" if passed or outside or self._night.box != BOXED else self.needs
        needs = {check.name: outside.get(check.name, refused) for check in checks}
        return tuple(
            msgspec.structs.replace(verdict, check=check.name, outside=check.name in outside, needs=needs[check.name])
            for check in checks
        )

    @property
    def runs(self) -> int:
        """After rounds; neither the baseline nor running a red one again counts."""
        return len([round_ for round_, again in self.log if round_ and not again])


class FakeHooks:
    """Each hook ends as it is told to and prints what it is told to; `meanwhile` happens while one runs."""

    def __init__(self, night: "Night") -> None:
        self._night = night
        self.runs: list[tuple[str, int, dict[str, str]]] = []
        self.commands: list[str] = []
        self.exits: dict[str, Exit] = {}  # by hook, or by command
        self.prints: dict[str, str] = {}
        self.writes: dict[str, Files] = {}
        self.meanwhile: Callable[[str], None] = lambda _: None
        self.seconds = 2.0

    def run(
        self, name: str, command: str, round_: int, env: dict[str, str], urgent: Callable[[], bool], number: int = 1
    ) -> Exit:
        assert command == self._night.loop.hooks.commands[name][number - 1]
        self.runs.append((name, round_, env))
        self.commands.append(command)
        self._night.files.write(round_, hook_output(name, number), self.prints.get(name, ""))
        self._night.workspace.edit(self.writes.get(name, {}))
        self._night.clock.pass_by(self.seconds)
        self.meanwhile(name)
        if urgent():
            return Exit(ending=Ending.ASKED, seconds=self.seconds)
        return self.exits.get(command) or self.exits.get(name, Exit(code=0, seconds=self.seconds))

    @property
    def order(self) -> list[tuple[str, int]]:
        """What ran, and in which round."""
        return [(name, round_) for name, round_, _ in self.runs]

    def told(self, name: str) -> dict[str, str]:
        """What a hook was told when it last ran."""
        return [env for each, _, env in self.runs if each == name][-1]


class Night:
    """One loop with everything around it. `run` is one worker's run; the next one finds what it left."""

    def __init__(
        self,
        plays: Iterable[Play | str] = (),
        *,
        files: Files | None = None,
        check: Callable[[Files], bool] | None = None,
        others: dict[str, Iterable[Play | str]] | None = None,  # the agents that take over, and what they play
        **settings: Any,
    ) -> None:
        settings = {"checks": (MAKE_TEST,) if check else (), **settings}
        if "promise" not in settings:  # most nights are about something else, so their checks decide alone
            settings = {"promise_required": False, **settings}
        given = {"id": "night", "uid": "u-1", "workspace": "/w", "created_at": NOON, "prompt": "fix it"}
        self.loop = Loop(**{**given, "agent": "demo", "others": tuple(others or ()), **settings})
        self.clock = FakeClock()
        self.ledger = MemoryLedger()
        documents = [path for path in (self.loop.tasks, self.loop.progress, self.loop.opinions) if path]
        self.workspace = FakeWorkspace(
            dict(files or {"README.md": "hello"}), documents, (*ALWAYS_PROTECTED, *self.loop.protect)
        )
        self.agent = ScriptedAgent(plays)
        self.others = {name: ScriptedAgent(its, name) for name, its in (others or {}).items()}
        self.cool_downs = FakeCoolDowns()
        self.processes = FakeProcesses(self)
        self.checks = FakeChecks(self, check or (lambda _: True))
        self.hooks = FakeHooks(self)
        self.files = MemoryFiles()
        self.channel = FakeChannel()
        self.drop = FakeDrop()
        self.witness = Witness()
        self.commits: Commits | None = None
        self.send: Callable[[Order, Callable[[], bool]], Sequence[Sent]] | None = None
        self.messages: Messages | None = None
        self.hook_words: HookWords | None = None
        self.hide: Callable[[str], str] = str
        self.obstacle: tuple[str, str] | None = None
        self.heartbeat: float | None = None
        self.box = ""
        self.search: Callable[[str, str], int | None] = lambda pattern, text: len(text) if pattern in text else None

    @property
    def agents(self) -> dict[str, ScriptedAgent]:
        return {"demo": self.agent, **self.others}

    def run(
        self,
        *,
        once: bool = False,
        rounds: int | None = None,
        seconds: float | None = None,
        cycle: int = 0,
        rest: float = 0.0,
        keeps_aside: bool = False,
    ) -> LoopStopped:
        self.clock.elapsed = self.ledger.state.elapsed  # as a new process counts on from the ledger
        self.workspace.watched = False
        self.effects = Effects(
            loop=self.loop,
            list=WorkList(self.loop, self.workspace, self.hide),
            ledger=self.ledger,
            agents=self.agents,
            cool_downs=self.cool_downs,
            workspace=self.workspace,
            checks=self.checks,
            hooks=self.hooks,
            commits=self.commits,
            send=self.send,
            messages=self.messages,
            hook_words=self.hook_words,
            processes=self.processes,
            files=self.files,
            channel=self.channel,
            clock=self.clock,
            search=self.search,
            hide=self.hide,
            reveal=str,
            chance=lambda: 0.0,
            obstacles=lambda: self.obstacle,
            heartbeat=self.heartbeat,
            followers=(self.witness,),
            drop=self.drop if self.loop.recording else None,
            schema_file="/loop/answer.schema.json" if answers.wanted(self.loop) else "",
        )
        started = RunStarted(
            run=f"run-{self.ledger.state.runs + 1}",
            pid=1,
            boot="b",
            version="0",
            rounds_allowed=1 if once else rounds,
            seconds_allowed=seconds,
            box=self.box,
            commits=self.commits is not None,
            cycle=cycle,
            rest=rest,
            keeps_aside=keeps_aside,
            per_task=self.loop.sessions is Sessions.PER_TASK,
            idle_fails=self.loop.by_task is None,
        )
        return Engine(self.effects, started).run()

    def approve(self) -> None:
        """A person has looked at the checkpoint that the loop stands at."""
        assert self.state.tasks
        mark = next(mark for mark in self.state.tasks.reached if mark.id not in self.state.approved)
        self.ledger.append(CheckpointApproved(mark=mark.id, text=mark.text, by="ada"))

    def run_until_crash(self) -> None:
        """A run that ends without a word."""
        try:
            stopped = self.run()
        except PowerCut:
            self.channel.waiting.clear()  # what was asked of that run is void
        else:
            raise AssertionError(f"the power was not cut: {stopped}")

    def crash(self) -> None:
        self.ledger.cut()

    def ask(self, request: Request) -> None:
        self.channel.waiting.append(request)

    def __repr__(self) -> str:
        """The whole story, for a test that failed."""
        facts = "".join(f"\n  {record.seq}: {record.fact}" for record in self.ledger.records)
        return f"{self.loop}{facts}\n"

    # -- what is left in the morning -------------------------------------------------------------------------------

    def facts(self, *kinds: type[Fact]) -> list[Any]:
        """All facts, or those of some kinds."""
        return [record.fact for record in self.ledger.records if isinstance(record.fact, kinds or (Fact,))]

    @property
    def verdicts(self) -> list[bool]:
        """Were the checks green after each round? The baseline is none."""
        return [fact.passed for fact in self.facts(ChecksEnded) if fact.round]

    def prompt(self, round_: int) -> str:
        return self.files.texts[round_, "prompt.md"]

    @property
    def state(self) -> LoopState:
        return self.ledger.state


def todo(*boxes: str) -> str:
    """A task list: `todo("x one", "two")` has one box ticked and one open."""
    return "".join(f"- [{'x' if box.startswith('x ') else ' '}] {box.removeprefix('x ')}\n" for box in boxes)


def blip(detail: str = "502") -> Play:
    """A turn that the network ended."""
    return Play(outcome=Outcome.TRANSIENT, detail=detail, seconds=1.0)


def busy(says: str = "going on") -> Iterator[Play]:
    """An agent that changes something in every turn, and never ends."""
    return (Play(says=says, writes={"work.txt": f"turn {turn}"}) for turn in count(1))
