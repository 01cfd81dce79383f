"""Read, decide, do, record. The engine performs one action at a time and contains no rule about whether."""

import os
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import assert_never

import msgspec

from bydawn.core import breakers, progress, promise, prompt, tasks
from bydawn.core.decide import Pause, RunChecks, Settle, StartRound, Stop, Wait, last_word, next_action, settled
from bydawn.core.errors import UserError
from bydawn.core.facts import (
    AgentLimited,
    AnyFact,
    ChecksEnded,
    Decided,
    Given,
    LoopStopped,
    MachineSlept,
    Obstructed,
    RoundEnded,
    RoundStarted,
    RunStarted,
    TaskReading,
    TasksRead,
    Usage,
    WaitStarted,
)
from bydawn.core.loop import Loop
from bydawn.core.outcome import Ending, Exit, Outcome, believed
from bydawn.core.ports import (
    Agent,
    Channel,
    Checks,
    ChildLimits,
    Clock,
    Command,
    CoolDowns,
    Ended,
    Event,
    Follower,
    Job,
    Ledger,
    Processes,
    RoundFiles,
    Snapshot,
    Workspace,
)
from bydawn.core.requests import as_fact
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.turn import Listener, later, reset_of, turn_of, usage_of

COOKIE = "BYDAWN_COOKIE"
_SAID = 400  # characters of a reply that go into the ledger
_NAME = 100  # … of the name of a process
_STDERR = 4000  # bytes of an agent's last words on stderr that its reader gets to see
_DENIALS = 10  # that a fact names
_SLEPT = 5.0  # seconds of suspension worth a fact


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Everything outside the core that a loop touches."""

    ledger: Ledger
    agents: Mapping[str, Agent]  # the loop's pool, by name
    cool_downs: CoolDowns
    agent_env: dict[str, str] = {}
    workspace: Workspace
    checks: Checks
    processes: Processes
    files: RoundFiles
    channel: Channel
    clock: Clock
    full_match: Callable[[str, str], bool]
    hide: Callable[[str], str]  # what is secret in a text
    reveal: Callable[[str], str]  # what a setting only refers to
    chance: Callable[[], float]  # from 0 to 1
    obstacles: Callable[[], tuple[str, str] | None]
    followers: Sequence[Follower] = ()


class Engine:
    """One worker's run of one loop."""

    def __init__(self, loop: Loop, world: World, started: RunStarted) -> None:
        self.loop = loop
        self.world = world
        self._started = started
        self._task_text: str | None = None  # the task file as it was last believed
        self._fresh: Snapshot | None = None  # the one of the start, while nothing has happened since

    @property
    def state(self) -> LoopState:
        return self.world.ledger.state

    def run(self) -> LoopStopped:
        """Until something says stop; what it says is the answer."""
        self._begin()
        while True:
            self._hear()
            now = self.world.clock.now()
            action = next_action(self.loop, self.state, now)
            decided = Decided(rule=action.rule, at=now.at, elapsed=now.elapsed)
            match action:
                case Settle():
                    self._settle(action, self._snapshot())
                case StartRound():
                    self._round(action, decided)
                case RunChecks():
                    self._check(action)
                case Wait():
                    self._wait(action, decided)
                case Pause() | Stop():
                    return self._stop(last_word(action, now))
                case _:
                    assert_never(action)

    # -- the run ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """What an earlier run left alive is ended and what it left open is settled, before anything new."""
        self.world.processes.sweep(f"{COOKIE}={self.loop.uid}.")
        if (unborn := self.world.files.last()) > self.state.round:
            self._mask(unborn)  # its prompt was written, and then the power went
        self._fresh = snapshot = self.world.workspace.snapshot()
        if snapshot.tree != self.state.tree:
            last = self.state.round
            name = f"after/{last}" if self.state.open_round else f"before/{last + 1}"
            self.world.workspace.keep(name, snapshot.tree)
        action = next_action(self.loop, self.state, self.world.clock.now())
        if isinstance(action, Settle):
            self._settle(action, snapshot)
        # After a recorded stop somebody has looked at the task file; after a crash nobody has.
        reading = self._read_tasks(None if self.state.stopped else self.state.tasks)
        self._record(
            msgspec.structs.replace(
                self._started, tree=snapshot.tree, tasks=reading, elapsed=self.world.clock.now().elapsed
            )
        )

    def _settle(self, action: Settle, snapshot: Snapshot) -> None:
        self._mask(action.round)
        self._record(settled(action, snapshot.tree, self.world.clock.now(), snapshot.changes))

    def _stop(self, fact: LoopStopped) -> LoopStopped:
        self._record(fact)
        self.world.ledger.sync()
        return fact

    def _wait(self, action: Wait, decided: Decided) -> None:
        self._fresh = None
        if self.state.waiting is None:
            self._record(WaitStarted(seconds=action.seconds, until=action.until, reason=action.reason, decided=decided))
            self.world.ledger.sync()
        # A reset is a moment of the wall clock: a machine that slept through it need not wait any longer.
        self.world.processes.sleep(action.seconds, lambda: self._asked() or self._is_past(action.until))

    # -- one round -------------------------------------------------------------------------------------------------

    def _round(self, action: StartRound, decided: Decided) -> None:
        agent = self.world.agents[action.agent]
        if self._obstructed() or self._is_limited(action.agent):
            return
        before = self._fresh or self._snapshot(keep_as=f"before/{action.round}")
        self._fresh = None
        if self.state.obstructed or self._tasks_changed(before.tree):
            return
        # Only what a person wrote is revealed; a task or a check's output that names a variable gets nothing.
        asked = msgspec.structs.replace(self.loop, prompt=self.world.reveal(self.loop.prompt))
        chosen = str(uuid.UUID(bytes=os.urandom(16), version=4)) if agent.abilities.chooses_session else ""
        turn = turn_of(self.loop, action.round, action.session, chosen, is_root=os.getuid() == 0)
        resumed = turn.session is not None
        text = prompt.compose(asked, self.state, action.round, os.urandom(8).hex(), resumed=resumed)
        if self._too_long(text, agent):
            return
        stdin = self._write(action.round, "prompt.md", text)
        if stdin is None:
            return
        command = agent.command(turn)
        cookie = f"{self.loop.uid}.{action.round}.{os.urandom(4).hex()}"
        self._record(
            RoundStarted(
                round=action.round,
                agent=action.agent,
                cookie=cookie,
                tree=before.tree,
                argv=command.argv,
                decided=decided,
                task=action.task,
                session=turn.session or turn.new_session or None,
                notes=tuple(note.note for note in self.state.notes),
            )
        )
        self.world.ledger.sync()
        if self.state.obstructed:  # the disk filled up with this very fact
            reason = "not started: the disk is full"
            self._settle(Settle(rule="interrupted-round", round=action.round, reason=reason), before)
            return
        reader = agent.reader(turn)
        listener = Listener(reader, self._tell, self._overspent)
        exit_ = self.world.processes.run(
            self._job(action.round, agent, command, stdin, cookie),
            listener.on_line,
            reader.skipped,
            lambda: self._urgent() or listener.hopeless,
        )
        self._mask(action.round, "prompt.md", "stdout", "stderr")  # before anything of it is cut to a shorter text
        ended = reader.end(exit_, self.world.files.tail(action.round, "stderr", _STDERR))
        self._end_round(action.round, exit_, ended, listener)
        self._warn_others(action.agent)

    def _is_limited(self, agent: str) -> bool:
        """Another loop knows that this agent's account can do nothing now: record it and decide again."""
        now = self.world.clock.now().at
        known = self.world.cool_downs.of(self.world.agents[agent], now)
        if known is None:
            return False
        until = later(known.until, now, self.world.chance())
        self._record(AgentLimited(agent=agent, until=until, detail=known.detail, by=known.loop))
        return True

    def _warn_others(self, agent: str) -> None:
        for row in self.state.limited:
            if row.agent == agent and row.until:
                self.world.cool_downs.tell(self.world.agents[agent], row.until, row.detail)

    def _too_long(self, text: str, agent: Agent) -> bool:
        most = agent.abilities.prompt_length
        if most is None or len(text) <= most:
            return False
        detail = f"the prompt has {len(text)} characters, and {agent.name} takes {most}"
        self._record(Obstructed(kind="prompt", detail=detail))
        return True

    def _job(self, round_: int, agent: Agent, command: Command, stdin: str, cookie: str) -> Job:
        limits, folder = self.loop.timeouts, self.world.files.folder(round_)
        return Job(
            argv=tuple(self.world.reveal(word) for word in command.argv),
            env={
                **self.world.agent_env,
                **command.env,
                COOKIE: cookie,
                "BYDAWN_LOOP": self.loop.id,
                "BYDAWN_ROUND": str(round_),
            },
            stdin=stdin,
            stdout=f"{folder}/stdout",
            stderr=f"{folder}/stderr",
            limits=ChildLimits(
                total=limits.round or None,
                silence=limits.silence or None,
                first_byte=limits.first_byte or None if agent.streams else None,
                linger=limits.linger or None,
                output=limits.output or None,
            ),
            ladder=agent.ladder,
        )

    def _overspent(self, used: Usage) -> bool:
        return breakers.overspent(self.loop, self.state, used)

    def _end_round(self, round_: int, exit_: Exit, ended: Ended, listener: Listener) -> None:
        hide = self.world.hide
        reply = hide(plain(ended.reply))
        self._write(round_, "reply.md", reply)
        after = self._snapshot(keep_as=f"after/{round_}")
        former, known = self._task_text, self.state.tasks
        reading = self._read_tasks(known)
        closed = self._closed(former, known)
        self._record(
            RoundEnded(
                round=round_,
                outcome=believed(ended.outcome, exit_),
                detail=shorten(hide(plain(ended.detail)), _SAID),
                tree=after.tree,
                progress=progress.made(self.state, after.tree, closed),
                elapsed=self.world.clock.now().elapsed,
                exit_code=exit_.code,
                signal=exit_.signal,
                seconds=round(exit_.seconds, 3),
                said=shorten(reply, _SAID),
                promise=self._promise(ended),
                session=ended.session,
                changes=after.changes,
                tasks=reading,
                closed=closed,
                usage=usage_of(ended, self.state.session, listener.spent),
                session_usage=ended.usage if ended.usage_is_total else None,
                denied=tuple(shorten(hide(plain(text)), _NAME) for text in dict.fromkeys(listener.denied))[:_DENIALS],
                leftovers=tuple(shorten(hide(plain(name)), _NAME) for name in exit_.leftovers),
                wait_until=reset_of(ended, self.world.clock.now().at, self.world.chance()),
            )
        )
        if exit_.ending is Ending.DISK:
            self._record(Obstructed(kind="disk", detail="the disk is nearly full"))
        self.world.ledger.sync()

    def _closed(self, former: str | None, known: TaskReading | None) -> tuple[str, ...]:
        """The tasks that were open in the former text and are done in the one that was read last."""
        if former is None or self._task_text is None or former == self._task_text:
            return ()
        return tasks.closed(tasks.read(former), tasks.read(self._task_text, known))

    def _promise(self, ended: Ended) -> Given:
        """Only the reply of a turn that went well is looked at; raw output never is."""
        wanted = prompt.promise_of(self.loop)
        if wanted is None or ended.outcome is not Outcome.OK:
            return Given.ABSENT
        return promise.judge(ended.reply, wanted, self.world.full_match)

    def _check(self, action: RunChecks) -> None:
        self._fresh = None
        started = self.world.clock.now().elapsed
        verdicts = self.world.checks.run(self.loop.checks, action.round, self._urgent)
        if self.state.stop_now:
            return  # a check that was cut short has said nothing
        now = self.world.clock.now().elapsed
        self._record(
            ChecksEnded(
                round=action.round,
                tree=self.state.tree,
                verdicts=verdicts,
                elapsed=now,
                seconds=round(now - started, 3),
            )
        )

    # -- what is around it -----------------------------------------------------------------------------------------

    def _snapshot(self, keep_as: str = "") -> Snapshot:
        """The work tree now; one that cannot be kept is no reason to die without a word."""
        try:
            snapshot = self.world.workspace.snapshot()
            if keep_as and snapshot.tree != self.state.tree:
                self.world.workspace.keep(keep_as, snapshot.tree)
        except UserError as error:
            self._record(Obstructed(kind="workspace", detail=f"{error.what}: {error.cause}"))
            return Snapshot(tree=self.state.tree)
        return snapshot

    def _obstructed(self) -> bool:
        """Record what makes a round impossible, if anything does."""
        if obstacle := self.world.obstacles():
            kind, detail = obstacle
            self._record(Obstructed(kind=kind, detail=detail))
        return obstacle is not None

    def _tasks_changed(self, tree: str) -> bool:
        """Somebody edited the task file since it was last read: record it and decide again."""
        reading = self._read_tasks(self.state.tasks)
        if reading is None or reading == self.state.tasks:
            return False
        self._record(TasksRead(tasks=reading, tree=tree))
        return True

    def _read_tasks(self, before: TaskReading | None) -> TaskReading | None:
        """What the task file says now. While it cannot be believed, what was open before is not forgotten."""
        if not self.loop.tasks:
            return None
        try:
            text = self.world.workspace.read_text(self.loop.tasks)
        except UserError as error:
            reading = TaskReading(open=0, done=0, problem=f"cannot be read: {error.cause or error.what}")
        else:
            if before and text is not None and before.text == _digest(text):
                self._task_text = text
                return msgspec.structs.replace(before, problem=None)  # it may have been away in between
            reading = self._parsed(text, before)
        return msgspec.structs.replace(before, problem=reading.problem) if reading.problem and before else reading

    def _parsed(self, text: str | None, before: TaskReading | None) -> TaskReading:
        if text is None:
            return tasks.missing_file()
        reading = tasks.read(text, before).reading
        if reading.problem:
            return reading
        self._task_text = text
        return msgspec.structs.replace(reading, text=_digest(text))

    def _write(self, round_: int, name: str, text: str) -> str | None:
        """Write a file of the round; where that is impossible the loop cannot go on, and says so."""
        try:
            return self.world.files.write(round_, name, text)
        except OSError as error:
            self._record(Obstructed(kind="disk", detail=f"{name} could not be written: {error.strerror}"))
            return None

    def _mask(self, round_: int, *names: str) -> None:
        """What the agent wrote was its own until now; nothing secret in it outlives the round."""
        try:
            self.world.files.mask(round_, *names)
        except OSError as error:
            detail = f"secrets in the files of round {round_} could not be masked: {error.strerror}"
            self._record(Obstructed(kind="disk", detail=detail))

    def _hear(self) -> None:
        """Take what has been asked, write it down, and only then forget the asking."""
        for request in self.world.channel.take():
            self._record(as_fact(request))
            self.world.ledger.sync()
            self.world.channel.done(request)
        if (slept := self.world.clock.slept()) > _SLEPT:
            self._record(MachineSlept(seconds=round(slept, 1)))

    def _urgent(self) -> bool:
        self._hear()
        return self.state.stop_now

    def _asked(self) -> bool:
        self._hear()
        return self.state.pause is not None or self.state.stop is not None

    def _is_past(self, moment: datetime | None) -> bool:
        return moment is not None and self.world.clock.now().at >= moment

    def _record(self, fact: AnyFact) -> None:
        fact = self.world.ledger.append(fact).fact  # as it was written: without secrets
        for follower in self.world.followers:
            follower.saw(fact, self.loop, self.state)
        if self.world.ledger.disk_full and not (self.state.obstructed or self.state.stopped):
            self._record(Obstructed(kind="disk", detail="the disk is full"))

    def _tell(self, event: Event) -> None:
        for follower in self.world.followers:
            follower.heard(event)


def _digest(text: str) -> str:
    """Tells one text from another."""
    return f"{len(text)}-{zlib.crc32(text.encode(errors='replace')):08x}"
