"""Read, decide, do, record. The engine performs one action at a time and contains no rule about whether."""

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import assert_never

import msgspec

from bydawn.core import breakers, claims, flaky, hooks, progress, promise, prompt
from bydawn.core.decide import (
    Action,
    Pause,
    RunChecks,
    Settle,
    SettleTask,
    StartRound,
    Stop,
    Wait,
    last_word,
    next_action,
    settled,
)
from bydawn.core.errors import UserError
from bydawn.core.facts import (
    AgentLimited,
    AnyFact,
    ChecksEnded,
    Decided,
    Given,
    HookEnded,
    LoopStopped,
    MachineSlept,
    Now,
    Obstructed,
    RoundEnded,
    RoundStarted,
    RunStarted,
    TaskReading,
    TaskSettled,
    TasksRead,
    Usage,
    WaitStarted,
)
from bydawn.core.loop import Loop, OnHookFailure, OnTamper
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
    Hooks,
    Job,
    Ledger,
    Processes,
    RoundFiles,
    Snapshot,
    Workspace,
)
from bydawn.core.requests import Request, Tell, as_fact
from bydawn.core.state import LoopState, forgiven
from bydawn.core.text import headline, plain, shorten
from bydawn.core.turn import Listener, later, reset_of, turn_of, usage_of
from bydawn.core.worklist import WorkList

COOKIE = "BYDAWN_COOKIE"
_SAID = 400  # characters of a reply that go into the ledger
_REPLY = 20_000  # bytes of the last reply that the next prompt may quote from
_NAME = 100  # … of the name of a process
_STDERR = 4000  # bytes of an agent's last words on stderr that its reader gets to see
_DENIALS = 10  # that a fact names
ALWAYS_PROTECTED = ("bydawn.toml",)  # what the next loop here would be told to run
_TAMPERED = 20  # paths that a fact names
_SLEPT = 5.0  # seconds of suspension worth a fact


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Everything outside the core that a loop touches."""

    ledger: Ledger
    agents: Mapping[str, Agent]  # the loop's pool, by name
    cool_downs: CoolDowns
    agent_env: dict[str, str] = {}
    workspace: Workspace
    checks: Checks
    hooks: Hooks
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
        self._list = WorkList(loop, world.workspace)
        self._fresh: Snapshot | None = None  # the one of the start, while nothing has happened since
        # What hooks have run is remembered here only. After a crash `pre_round` runs again, with the next attempt;
        # `post_round` is lost with a worker that dies before it, and never runs for a round whose end nobody saw.
        self._prepared = 0  # the round that `pre_round` has run for
        self._followed = world.ledger.state.round  # … and `post_round`

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
            if self._post_round(action):
                continue
            decided = Decided(rule=action.rule, at=now.at, elapsed=now.elapsed)
            match action:
                case Settle():
                    self._settle(action, self._snapshot())
                case StartRound():
                    self._round(action, decided)
                case RunChecks():
                    self._check(action)
                case SettleTask():
                    self._settle_task(action)
                case Wait():
                    self._wait(action, decided)
                case Pause() | Stop():
                    return self._stop(self._farewell(last_word(action, now), now))
                case _:
                    assert_never(action)

    # -- the run ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """What an earlier run left alive is ended and what it left open is settled, before anything new."""
        self.world.processes.sweep(f"{COOKIE}={self.loop.uid}.")
        if (unborn := self.world.files.last()) > self.state.round:
            self._mask(unborn)  # its prompt was written, and then the power went
        if self.state.runs and not self.state.stopped:  # and perhaps in the middle of a check or a hook
            self._mask(self.state.round)
        snapshot = self.world.workspace.snapshot()
        if snapshot.tree != self.state.tree:
            last = self.state.round
            name = f"after/{last}" if self.state.open_round else f"before/{last + 1}"
            self.world.workspace.keep(name, snapshot.tree)
        action = next_action(self.loop, self.state, self.world.clock.now())
        if isinstance(action, Settle):
            snapshot = self._settle(action, snapshot)
        snapshot, tampered = self._still_tampered(snapshot)
        self._fresh = snapshot
        # After a recorded stop somebody has looked at the task file, unless it is the very one that was not believed;
        # after a crash nobody has.
        fresh = self.state.stopped and not self._list.is_as_it_was(self.state)
        reading = self._list.read(forgiven(self.state), None if fresh else self.state.tasks)
        now = self.world.clock.now().elapsed
        self._record(
            msgspec.structs.replace(
                self._started,
                tree=snapshot.tree,
                work=snapshot.work,
                tampered=tampered,
                tasks=reading,
                elapsed=now,
            )
        )

    def _settle(self, action: Settle, snapshot: Snapshot) -> Snapshot:
        """Record the end of a round that nobody saw the end of; the work tree as it is then."""
        self._mask(action.round)
        snapshot, tampered, restored = self._guarded(action.round, snapshot)
        reading, closed, doubted = self._looked_at_tasks(snapshot)
        told = {"work": snapshot.work, "tampered": tampered, "restored": restored, "tasks": reading}
        told |= {"closed": closed, "doubted": doubted}
        self._record(settled(action, snapshot.tree, self.world.clock.now(), snapshot.changes, **told))
        return snapshot

    def _stop(self, fact: LoopStopped) -> LoopStopped:
        self._record(fact)
        self.world.ledger.sync()
        return fact

    def _wait(self, action: Wait, decided: Decided) -> None:
        self._fresh = None
        self._prepared = 0  # what was prepared hours ago is not
        if self.state.waiting is None:
            self._record(WaitStarted(seconds=action.seconds, until=action.until, reason=action.reason, decided=decided))
            self.world.ledger.sync()
        # A reset is a moment of the wall clock: a machine that slept through it need not wait any longer.
        self.world.processes.sleep(action.seconds, lambda: self._asked() or self._is_past(action.until))

    # -- one round -------------------------------------------------------------------------------------------------

    def _round(self, action: StartRound, decided: Decided) -> None:
        agent = self.world.agents[action.agent]
        if self._obstructed() or self._is_limited(action.agent) or self._pre_round(action):
            return
        before = self._fresh or self._snapshot(keep_as=f"before/{action.round}")
        self._fresh = None
        if self.state.obstructed or self._tasks_changed(before):
            return
        chosen = str(uuid.UUID(bytes=os.urandom(16), version=4)) if agent.abilities.chooses_session else ""
        turn = turn_of(self.loop, action.round, action.session, chosen, is_root=os.getuid() == 0)
        text = self._prompt(action, agent)
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
                work=before.work,
                argv=command.argv,
                decided=decided,
                task=action.task,
                task_id=action.task_id,
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

    def _prompt(self, action: StartRound, agent: Agent) -> str:
        # Only what a person wrote is revealed; a task or a check's output that names a variable gets nothing.
        asked = msgspec.structs.replace(self.loop, prompt=self.world.reveal(self.loop.prompt))
        last = self.state.last.round if self.state.last else 0
        return prompt.compose(
            asked,
            self.state,
            action.round,
            os.urandom(8).hex(),
            resumed=action.session is not None,
            task_text=self._list.text_of(action.task_id),
            reply=self.world.files.tail(last, "reply.md", _REPLY) if last else "",
            documents=self._documents() if self.loop.template else {},
            template=self.loop.template,
            length=agent.abilities.prompt_length,
        )

    def _documents(self) -> dict[str, str]:
        """The texts that a template may ask for; one that cannot be read is left out."""
        found = {}
        for path in filter(None, (self.loop.progress, self.loop.opinions)):
            with suppress(UserError):
                found[path] = self.world.workspace.read_text(path) or ""
        return found

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
        after, tampered, restored = self._guarded(round_, after)
        reading, closed, doubted = self._looked_at_tasks(after)
        said = claims.of(reply, ended.outcome, self.loop)
        self._record(
            RoundEnded(
                round=round_,
                outcome=believed(ended.outcome, exit_),
                detail=shorten(hide(plain(ended.detail)), _SAID),
                tree=after.tree,
                work=after.work,
                progress=progress.made(self.state, after.work or after.tree, () if doubted else closed),
                doubted=doubted,
                claim=said.task,
                blocked=said.blocked,
                tampered=tampered,
                restored=restored,
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

    def _guarded(self, round_: int, after: Snapshot) -> tuple[Snapshot, tuple[str, ...], bool]:
        """The tree after a round, the protected files that the round touched, and whether they were put back."""
        before, seen = self.state.tree, after.changes
        is_known = not self.loop.protect and seen.total == len(seen.paths)  # then nobody need ask git
        unprotected = is_known and not {*ALWAYS_PROTECTED} & {*seen.paths}
        if after.tree == before or unprotected or self.state.obstructed:
            return after, (), False
        try:
            touched = self.world.workspace.touched(before, after.tree, (*ALWAYS_PROTECTED, *self.loop.protect))
            if not touched or self.loop.on_tamper is not OnTamper.RESTORE:
                return after, touched[:_TAMPERED], False
            self.world.workspace.restore(before, touched)
        except UserError as error:
            self._record(Obstructed(kind="workspace", detail=f"{error.what}: {error.cause}"))
            return after, (), False
        restored = self._snapshot(keep_as=f"after/{round_}")
        return msgspec.structs.replace(restored, changes=seen), touched[:_TAMPERED], True

    def _looked_at_tasks(self, after: Snapshot) -> tuple[TaskReading | None, tuple[str, ...], tuple[str, ...]]:
        """What the list says after a round, what the round closed, and what of that it did without any work."""
        known = self.state.tasks
        reading = self._list.read(self.state, known)
        closed = self._list.closed_since(known) if reading and not reading.problem else ()
        before = self.state.open_round.work if self.state.open_round else ""
        return reading, closed, closed if (after.work or after.tree) == before else ()

    def _still_tampered(self, now: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
        """Protected files that are not as they were: some may have been put back, some were never looked at."""
        workspace, state = self.world.workspace, self.state
        try:
            found = workspace.touched(state.guard, now.tree, state.tampered) if state.tampered else ()
            if not (state.last and state.last.unseen):
                return now, found[:_TAMPERED]
            unseen = workspace.touched(state.tree, now.tree, (*ALWAYS_PROTECTED, *self.loop.protect))
            if unseen and self.loop.on_tamper is OnTamper.RESTORE:
                workspace.restore(state.tree, unseen)
                now, unseen = workspace.snapshot(), ()
        except UserError as error:
            self._record(Obstructed(kind="workspace", detail=f"{error.what}: {error.cause}"))
            return now, state.tampered
        return now, tuple(dict.fromkeys((*found, *unseen)))[:_TAMPERED]

    def _promise(self, ended: Ended) -> Given:
        """Only the reply of a turn that went well is looked at; raw output never is."""
        wanted = prompt.promise_of(self.loop)
        if wanted is None or ended.outcome is not Outcome.OK:
            return Given.ABSENT
        return promise.judge(ended.reply, wanted, self.world.full_match)

    def _check(self, action: RunChecks) -> None:
        self._fresh = None
        started = self.world.clock.now().elapsed
        run, tree = self.world.checks.run, self.state.tree
        verdicts = run(self.loop.checks, action.round, tree, self._urgent)
        if suspects := () if self.state.stop_now else flaky.suspects(self.loop.checks, verdicts, self.state):
            again = run(suspects, action.round, tree, self._urgent, again=True)
            verdicts = flaky.weighed(verdicts, again, self.state)
        else:
            verdicts = flaky.weighed(verdicts, (), self.state)
        if self.state.stop_now:
            return  # a check that was cut short has said nothing
        tampered, restored = self._changed_by_checks(action.round)
        if tampered and self.loop.on_tamper is not OnTamper.REPORT:
            told = f"protected files were changed while it ran: {', '.join(tampered[:3])}"
            verdicts = tuple(msgspec.structs.replace(each, passed=False, detail=told) for each in verdicts)
        now = self.world.clock.now().elapsed
        self._record(
            ChecksEnded(
                round=action.round,
                tree=self.state.tree,
                verdicts=verdicts,
                elapsed=now,
                seconds=round(now - started, 3),
                tampered=tampered,
                restored=restored,
            )
        )

    def _changed_by_checks(self, round_: int) -> tuple[tuple[str, ...], bool]:
        """A check runs what the agent wrote; what that does to protected files is the agent's deed, too."""
        if not self.loop.protect:
            return (), False
        if round_:
            _, tampered, restored = self._guarded(round_, self._snapshot())
            return tampered, restored
        # Before anybody has worked it is the checks' own habit, and would block every round.
        if touched := self.world.workspace.touched(self.state.tree, self._snapshot().tree, self.loop.protect):
            detail = f"the checks themselves change protected files: {', '.join(touched[:3])}"
            self._record(Obstructed(kind="protect", detail=detail))
        return (), False

    # -- a person's own commands -----------------------------------------------------------------------------------

    def _pre_round(self, action: StartRound) -> bool:
        """Before the snapshot, so that what it changes is not the agent's; then everything is decided again."""
        command = self.loop.hooks.pre_round
        if command is None or self._prepared == action.round:
            return False
        self._prepared, self._fresh = action.round, None
        told = hooks.before_round(action.task, action.agent)
        ended = self._hook("pre_round", command, action.round, told, self._urgent)
        self._record(ended)
        self._heed(ended)
        return True

    def _post_round(self, action: Action) -> bool:
        """After a round and its checks, before the next thing happens; then everything is decided again."""
        command, last = self.loop.hooks.post_round, self.state.last
        if isinstance(action, Settle | RunChecks) or last is None or last.round <= self._followed:
            return False
        self._followed = last.round
        if command is None or self.state.stop_now or self.state.obstructed:
            return False
        told = hooks.after_round(self.loop, self.state, last)
        ended = self._hook("post_round", command, last.round, told, self._urgent)
        # What it changed is nobody's progress, and done means proven on the tree as it is now.
        self._fresh = after = self._snapshot(keep_as=f"before/{last.round + 1}")
        self._record(msgspec.structs.replace(ended, tree=after.tree, work=after.work))
        self._tasks_changed(after)
        self._heed(ended)
        return True

    def _farewell(self, fact: LoopStopped, now: Now) -> LoopStopped:
        """The hook of this end, between the decision and the last fact; it has no say in how the loop ends."""
        command, round_ = hooks.at_end(self.loop.hooks, fact.end), self.state.round
        if command is None:
            return fact
        told = hooks.after_all(self.state, fact)
        self._record(self._hook(hooks.BY_END[fact.end], command, round_, told, self._hurried))
        # The same reading of the clocks: only a disk that filled up with its output leads to another end.
        again = next_action(self.loop, self.state, now)
        return last_word(again, now) if isinstance(again, Pause | Stop) else fact

    def _hook(
        self, name: str, command: str, round_: int, told: dict[str, str], urgent: Callable[[], bool]
    ) -> HookEnded:
        self.world.ledger.sync()  # it may look at the loop, and act on what it sees
        told = hooks.fit({"BYDAWN_LOOP": self.loop.id, **told}, self.world.hide)
        exit_ = self.world.hooks.run(name, command, round_, told, urgent)
        self._mask(round_, hooks.output_of(name))
        return HookEnded(
            hook=name,
            round=round_,
            passed=hooks.passed(exit_),
            detail=hooks.in_words(exit_, self.loop.timeouts.hook),
            elapsed=self.world.clock.now().elapsed,
            seconds=round(exit_.seconds, 3),
            output=hooks.output_of(name),
        )

    def _heed(self, ended: HookEnded) -> None:
        """A failing hook blocks the loop if a person wants that; one that was cut short has not failed."""
        if ended.passed or self.loop.hooks.on_failure is not OnHookFailure.BLOCK or self.state.stop_now:
            return
        last_line = headline(self.world.files.tail(ended.round, hooks.output_of(ended.hook), _STDERR))
        self._record(Obstructed(kind="hook", detail=hooks.complaint(ended, last_line)))

    def _hurried(self) -> bool:
        """Somebody wants something of a loop whose end is decided: only notes are taken.

        Anything else cuts the last hook short. A signal has then got what it wants, and a request from another process
        is recorded by that process, which finds the lock free.
        """
        requests = self.world.channel.take()
        for request in requests:
            if isinstance(request, Tell):
                self._take(request)
        return any(not isinstance(request, Tell) for request in requests)

    # -- what is around it -----------------------------------------------------------------------------------------

    def _snapshot(self, keep_as: str = "") -> Snapshot:
        """The work tree now; one that cannot be kept is no reason to die without a word."""
        try:
            snapshot = self.world.workspace.snapshot()
            if keep_as and snapshot.tree != self.state.tree:
                self.world.workspace.keep(keep_as, snapshot.tree)
        except UserError as error:
            self._record(Obstructed(kind="workspace", detail=f"{error.what}: {error.cause}"))
            return Snapshot(tree=self.state.tree, work=self.state.work)
        return snapshot

    def _obstructed(self) -> bool:
        """Record what makes a round impossible, if anything does."""
        if obstacle := self.world.obstacles():
            kind, detail = obstacle
            self._record(Obstructed(kind=kind, detail=detail))
        return obstacle is not None

    def _settle_task(self, action: SettleTask) -> None:
        fact = TaskSettled(
            task=action.task, text=action.text, status=action.status, by=action.rule, reason=action.reason
        )
        self._record(fact)
        self._tasks_changed(Snapshot(tree=self.state.tree, work=self.state.work))

    def _tasks_changed(self, now: Snapshot) -> bool:
        """Somebody edited the work list since it was last read, or a task was settled: record it and decide again."""
        reading = self._list.read(self.state, self.state.tasks)
        if reading is None or reading == self.state.tasks:
            return False
        self._record(TasksRead(tasks=reading, tree=now.tree, work=now.work))
        return True

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
            self._take(request)
        if (slept := self.world.clock.slept()) > _SLEPT:
            self._record(MachineSlept(seconds=round(slept, 1)))

    def _take(self, request: Request) -> None:
        self._record(as_fact(request))
        self.world.ledger.sync()
        self.world.channel.done(request)

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
