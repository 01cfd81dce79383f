"""Read, decide, do, record. The engine performs one action at a time; every decision is made in core."""

import os
from datetime import datetime
from functools import partial
from typing import assert_never

import msgspec

from bydawn.core import answers, breakers, claims, completion, notices, promise, prompt
from bydawn.core.agent import (
    Agent,
    AgentCommand,
    Begun,
    Ended,
    Event,
    Listener,
    Turn,
    later,
    reset_of,
    spent_unseen,
    turn_of,
    used_by,
)
from bydawn.core.decide import (
    Commit,
    Pause,
    RunChecks,
    Settle,
    SettleTask,
    StartRound,
    Stop,
    Wait,
    end_unseen,
    is_unseen,
    last_word,
    next_action,
)
from bydawn.core.facts import (
    AgentLimited,
    LoopStopped,
    Obstructed,
    RoundEnded,
    RoundStarted,
    RunStarted,
    SessionBegun,
    TaskSettled,
    WaitStarted,
)
from bydawn.core.layout import LAST_MESSAGE, PROMPT, REPLY, STDERR, STDOUT, TIMES, tree_after, tree_before
from bydawn.core.loop import COOKIE, ChangedTests, Promise
from bydawn.core.outcome import POLICY, Ending, Exit, Outcome, believed
from bydawn.core.ports import ChildLimits, Job
from bydawn.core.rules import Rule
from bydawn.core.secret_settings import variables
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import FINISHED, Decided, Findings, Now, Promised, Snapshot, Usage
from bydawn.engine.after_round import AfterRound
from bydawn.engine.committing import Committing
from bydawn.engine.effects import Effects
from bydawn.engine.hook_runs import HookRuns
from bydawn.engine.prompting import Prompting
from bydawn.engine.protection import Protection
from bydawn.engine.proving import Proving

_SAID = 400  # characters of a reply that the ledger keeps
_REPLY = 1 << 20  # bytes from the end of an earlier one
_NAME = 100  # characters of a process name
_STDERR = 4000  # bytes from the end of an agent's stderr for its reader
_DENIALS = 10  # listed in a fact
_TIDY_EVERY = 50  # rounds
_LAST_LOOKS = 3  # at a list that changes every time it is read


class Engine:
    """One run of one loop."""

    def __init__(self, effects: Effects, run: RunStarted) -> None:
        """`run` says who runs the loop, and how far; the engine adds what it finds in the work tree."""
        self.loop = effects.loop
        self._run = run
        self._effects = effects
        self._protection = Protection(effects)
        self._proving = Proving(effects, self._protection)
        self._after_round = AfterRound(effects, self._protection)
        self._committing = Committing(effects, self._protection)
        self._hook_runs = HookRuns(effects)
        self._prompting = Prompting(effects)
        self._last_looks = 0
        self._fresh: Snapshot | None = None  # the snapshot from the start, until something happens

    @property
    def state(self) -> LoopState:
        return self._effects.ledger.state

    def run(self) -> LoopStopped:
        """Run until something says stop; return that."""
        self._begin()
        while True:
            self._effects.hear()
            now = self._effects.clock.now()
            action = next_action(self.loop, self.state, now)
            if after := self._hook_runs.after_round(action):
                self._fresh = after
                continue
            decided = Decided(rule=action.rule, at=now.at, elapsed=now.elapsed)
            match action:
                case Settle():
                    self._settle(action, self._effects.snapshot())
                case StartRound():
                    self._round(action, decided)
                case Commit():
                    self._fresh = self._committing.take(action.round)
                case RunChecks():
                    self._fresh = None
                    self._proving.take(action.round, final=action.rule is Rule.FINAL_CHECKS)
                case SettleTask():
                    self._settle_task(action)
                case Wait():
                    self._wait(action, decided)
                case Pause() | Stop():
                    if not self.state.stop_now:
                        self._effects.workspace.tidy()
                    if not self._list_has_changed():
                        return self._end(last_word(action, now), now)
                case _:
                    assert_never(action)

    # -- the run ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Settle what an earlier run left open, before anything new."""
        known = self.state.obstructed
        self._effects.take_all_records()
        if (unborn := self._effects.files.last()) > self.state.round:
            self._effects.mask(unborn)  # its prompt was written just before the power failed
        if self.state.runs and not self.state.stopped:  # perhaps in the middle of a check or a hook
            self._effects.mask(self.state.round)
        crashed = self.state.runs and (self.state.stopped is None or self.state.stopped.unseen)
        mended = self._effects.mend_list() if crashed else ""
        snapshot = self._effects.workspace.snapshot()
        if snapshot.tree != self.state.tree:
            last = self.state.round
            name = tree_after(last) if self.state.open_round else tree_before(last + 1)
            self._effects.workspace.keep(name, snapshot.tree)
        action = next_action(self.loop, self.state, self._effects.clock.now())
        if isinstance(action, Settle):
            reason, mended = "; ".join(filter(None, (action.reason, mended))), ""
            snapshot = self._settle(msgspec.structs.replace(action, reason=reason), snapshot)
        unseen = is_unseen(self.loop, self.state)
        found = self._after_round.at_start(snapshot, unseen=unseen, keeps_aside=self._run.keeps_aside)
        self._fresh = found
        met = self.state.obstructed  # on the way in; starting does not remove it
        self._effects.record(msgspec.structs.replace(self._started(found), mended=mended))
        if met and met is not known:
            self._effects.record(met)

    def _started(self, found: Findings) -> RunStarted:
        return msgspec.structs.replace(
            self._run,
            ticks=self.loop.ticks,
            recording=self.loop.recording is not None,
            elapsed=self._effects.clock.now().elapsed,
            found=found,
            yours=self._proving.proof.by_person(found.tree),
        )

    def _settle(self, action: Settle, snapshot: Snapshot) -> Snapshot:
        """Record the end of a round whose end was not seen; return the current work tree."""
        self._effects.mask(action.round)
        found = self._after_round.of_round(action.round, snapshot)
        used = spent_unseen(self.loop, self.state, self._effects.agents, self._effects.files.lines)
        self._effects.record(end_unseen(action, self._effects.clock.now(), found, used))
        return found

    def _list_has_changed(self) -> bool:
        """Since the last round, a check's code may have changed the list, or a person may have added a task."""
        if not self._effects.tasks_changed(Snapshot(tree=self.state.tree, work=self.state.work)):
            return False
        self._last_looks += 1
        if self._last_looks > _LAST_LOOKS and not self.state.obstructed:
            detail = f"{self.loop.tasks} keeps changing: it is different each time it is read"
            self._effects.record(Obstructed(kind="tasks", detail=detail))
        return self._last_looks <= _LAST_LOOKS + 1

    def _wait(self, action: Wait, decided: Decided) -> None:
        self._fresh = None
        self._hook_runs.waited()
        if self.state.waiting is None or self.state.waiting.decided.rule != decided.rule:
            self._effects.record(
                WaitStarted(
                    seconds=action.seconds,
                    until=action.until,
                    reason=action.reason,
                    agent=action.agent,
                    decided=decided,
                )
            )
            self._effects.ledger.sync()
        # A reset is a wall-clock time: a machine that slept through it need not wait any longer.
        effects = self._effects
        effects.processes.sleep(action.seconds, lambda: effects.asked() or effects.is_past(action.until))

    def _end(self, fact: LoopStopped, now: Now) -> LoopStopped:
        news = fact.decided.rule != Rule.ONLY_CHECKS  # then nothing has changed
        fact = self._hook_runs.at_end(fact, now) if news else fact
        self._effects.record(fact)
        self._effects.ledger.sync()
        if news:
            self._notify(fact, now.at)
        return fact

    def _notify(self, stopped: LoopStopped, at: datetime) -> None:
        """Tell a person who is away. The end is on disk and on the screen: nothing waits for this or is changed by it.

        The worker stays for it, because its guardian ends whatever it leaves, and only it may write the result down.
        """
        if self._effects.send is None:
            return
        order = notices.of_end(self.loop, self.state, stopped, at, self._effects.messages, self._effects.hide)
        if order is None:
            return
        answers = self._effects.send(order, partial(self._effects.hurried, finished=stopped.end in FINISHED))
        for told in notices.ended(order, answers, self._effects.hide):
            if not self._effects.ledger.disk_full:  # then there was room for the end, and hardly for more
                self._effects.record(told)
        self._effects.ledger.sync()

    # -- one round -------------------------------------------------------------------------------------------------

    def _round(self, action: StartRound, decided: Decided) -> None:
        self._last_looks = 0
        agent = self._effects.agents[action.agent]
        if self._effects.is_obstructed() or self._is_limited(action.agent):
            return
        if self._hook_runs.before_round(action):
            self._fresh = None
            return
        before = self._fresh or self._effects.snapshot(keep_as=tree_before(action.round), unseen=False)
        self._fresh = None
        if self.state.obstructed or self._effects.tasks_changed(before):
            return
        self._committing.before_round(action.round)
        chosen = _new_session() if agent.abilities.chooses_session else ""
        schema, is_root = self._effects.schema_file, os.getuid() == 0
        turn = turn_of(self.loop, action.round, action.session, chosen, is_root=is_root, schema_file=schema)
        task_text = self._effects.list.text_of(action.task_id)
        text = self._prompting.compose(turn, agent, task_text)
        stdin = self._effects.write(action.round, PROMPT, text) if text is not None else None
        if text is None or stdin is None:
            return
        if self.loop.dialect:  # the documents of other tools ask for it; what counts is in the stream
            folder = self._effects.files.folder(action.round)
            turn = msgspec.structs.replace(turn, last_message=f"{folder}/{LAST_MESSAGE}")
        command = agent.command(turn)
        cookie = f"{self.loop.uid}.{action.round}.{os.urandom(4).hex()}"
        self._effects.record(
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
                fallback="" if turn.session else self.state.session_lost,
                notes=tuple(note.note for note in self.state.notes),
                task_text=prompt.fence_of(task_text, self.loop) if task_text else "",
                audit=action.audit,
            )
        )
        self._effects.ledger.sync()
        if self.state.obstructed:  # the disk filled up with this very fact
            reason = "not started: the disk is full"
            self._settle(Settle(rule=Rule.INTERRUPTED_ROUND, round=action.round, reason=reason), before)
            return
        job = self._job(action.round, agent, command, stdin, cookie)
        self._take_turn(agent, turn, self._prompting.as_argument(job, text) if command.prompt_last else job)
        self._warn_others(action.agent)
        if action.round % _TIDY_EVERY == 0 and not self.state.stop_now:
            self._effects.workspace.tidy()

    def _take_turn(self, agent: Agent, turn: Turn, job: Job) -> None:
        """The agent works, and what came of it is recorded."""
        self._protection.watch()
        self._effects.keep_list()
        reader = agent.reader(turn)
        listener = Listener(reader, self._heard, self._overspent)
        exit_ = self._effects.processes.run(
            job,
            listener.on_line,
            reader.skipped,
            lambda: self._effects.urgent_in_round() or listener.hopeless,
            self._effects.complained if self.loop.dialect else None,
        )
        # Before anything of it is cut to a shorter text.
        self._effects.mask(turn.round, PROMPT, STDOUT, STDERR, LAST_MESSAGE)
        ended = reader.end(exit_, self._effects.files.tail(turn.round, STDERR, _STDERR))
        self._end_round(turn.round, exit_, ended, listener)

    def _is_limited(self, agent: str) -> bool:
        """Another loop found this agent's account limited: record it and decide again."""
        now = self._effects.clock.now().at
        known = self._effects.cool_downs.of(self._effects.agents[agent], now)
        if known is None:
            return False
        until = later(known.until, now, self._effects.chance())
        self._effects.record(AgentLimited(agent=agent, until=until, detail=known.detail, by=known.loop))
        return True

    def _warn_others(self, agent: str) -> None:
        for row in self.state.limited:
            if row.agent == agent and row.until:
                self._effects.cool_downs.tell(self._effects.agents[agent], row.until, row.detail)

    def _job(self, round_: int, agent: Agent, command: AgentCommand, stdin: str, cookie: str) -> Job:
        folder = self._effects.files.folder(round_)
        return Job(
            argv=tuple(self._effects.reveal(word) for word in command.argv),
            path=self._effects.agent_path(agent.name),
            env={
                **self._effects.agent_env,
                **command.env,
                **variables(self.loop.agent_env),
                COOKIE: cookie,
                "BYDAWN_LOOP": self.loop.id,
                "BYDAWN_ROUND": str(round_),
            },
            stdin=stdin,
            stdout=f"{folder}/{STDOUT}",
            stderr=f"{folder}/{STDERR}",
            times=f"{folder}/{TIMES}",
            limits=ChildLimits.of(self.loop.timeouts, streams=agent.streams),
            ladder=agent.ladder,
        )

    def _heard(self, event: Event) -> None:
        """A new conversation is recorded at once: a crash must not lose it."""
        opened = self.state.open_round
        if isinstance(event, Begun) and opened and not opened.session:
            self._effects.record(SessionBegun(round=opened.round, session=event.session))
        self._effects.tell(event)

    def _overspent(self, used: Usage) -> bool:
        return breakers.overspent(self.loop, self.state, used)

    def _end_round(self, round_: int, exit_: Exit, ended: Ended, listener: Listener) -> None:
        self._effects.take_all_records()
        hide = self._effects.hide
        reply = hide(plain(ended.reply))
        self._effects.write(round_, REPLY, reply)
        lost = ended.outcome is Outcome.SESSION_LOST and not self.loop.fresh_if_lost
        outcome = Outcome.FAILED if lost else believed(ended.outcome, exit_)
        self._effects.look_at_list()
        is_cut = POLICY[outcome].failure or not POLICY[outcome].checks
        mended = self._effects.mend_list() if is_cut else ""
        found = self._after_round.of_round(round_, self._effects.snapshot(keep_as=tree_after(round_)))
        used = used_by(ended, self.state.conversation(ended.session), listener.spent)
        opened = self.state.open_round
        said = claims.from_reply(reply, ended.outcome, self.loop, opened.started.task_id if opened else None)
        promised = self._promise(ended, said, found)
        before = self.state.last.ended.open if self.state.last and opened and opened.started.tree == found.tree else ()
        settles = said.nothing_open or promised is Promised.GIVEN
        self._effects.record(
            RoundEnded(
                round=round_,
                outcome=outcome,
                detail="; ".join(filter(None, (shorten(hide(plain(ended.detail)), _SAID), mended))),
                words=shorten(hide(plain(ended.words)), _SAID),
                found=found,
                claim=said.task,
                blocked=said.blocked,
                open=said.open or (() if settles else before),  # of an earlier reply, as long as nothing was changed
                already=said.already,
                reasons=said.reasons,
                elapsed=self._effects.clock.now().elapsed,
                exit_code=exit_.code,
                signal=exit_.signal,
                seconds=round(exit_.seconds, 3),
                said=shorten(answers.shown(reply) if self._effects.schema_file else reply, _SAID),
                promise=promised,
                session=ended.session,
                usage=used.turn,
                session_usage=used.session,
                denied=tuple(shorten(hide(plain(text)), _NAME) for text in dict.fromkeys(listener.denied))[:_DENIALS],
                commands=listener.commands(hide),
                leftovers=tuple(shorten(hide(plain(name)), _NAME) for name in exit_.leftovers),
                wait_until=reset_of(ended, self._effects.clock.now().at, self._effects.chance()),
            )
        )
        if exit_.ending is Ending.DISK:
            self._effects.record(Obstructed(kind="disk", detail="the disk is nearly full"))
        self._effects.ledger.sync()

    def _promise(self, ended: Ended, said: claims.Claims, found: Findings) -> Promised:
        """Only the reply of a turn that went well is examined; raw output never is.

        An agent that is blocked, or names what is open, has not given the promise, whatever its last line says.
        """
        tasks = found.tasks or self.state.tasks
        # Where only a list says what is to be done, "all done" is answered as long as something is open.
        listed = self.loop.tasks_required and tasks is not None and tasks.open and not self.loop.dialect
        wanted = prompt.promise_of(self.loop) or (Promise() if listed else None)
        if wanted is None or ended.outcome is not Outcome.OK:
            return Promised.ABSENT
        seen = msgspec.structs.replace(self.state, tree=found.tree, tasks=tasks)
        told = completion.told_of_mention(self.loop, seen)
        if told and self.state.last:
            before = self._effects.files.tail(self.state.last.ended.round, REPLY, _REPLY)
            told = promise.same_form(before, self._effects.hide(plain(ended.reply)), wanted)
        try:
            given = promise.judge(ended.reply, wanted, self._effects.search, told=told)
        except promise.TooSlow as slow:
            self._effects.record(Obstructed(kind="promise", detail=str(slow)))
            return Promised.ABSENT
        is_open = said.lists_open and self.loop.changed_tests is ChangedTests.HOLD  # elsewhere a document decides
        return Promised.MENTIONED if (said.blocked or is_open) and given is Promised.GIVEN else given

    # -- what is around it -----------------------------------------------------------------------------------------

    def _settle_task(self, action: SettleTask) -> None:
        fact = TaskSettled(
            task=action.task,
            text=action.text,
            status=action.status,
            by=action.rule,
            reason=action.reason,
            doubted=action.doubted,
        )
        self._effects.record(fact)
        self._effects.tasks_changed(Snapshot(tree=self.state.tree, work=self.state.work))


def _new_session() -> str:
    import uuid  # few agents want one, and loading it takes as long as a small snapshot

    return str(uuid.UUID(bytes=os.urandom(16), version=4))
