"""Ask an agent about the repository of a loop, in a process of its own, and keep what was said.

It only reads. What it costs is counted here, and not toward the limits of the loop.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from bydawn import agents
from bydawn.assemble import inherited
from bydawn.core.agent import Activity, Agent, Ended, Event, reset_of
from bydawn.core.chat import Snapshots, Turn, TurnState
from bydawn.core.chat_prompt import compose
from bydawn.core.errors import UserError
from bydawn.core.loop import OnInterrupt, Sandbox
from bydawn.core.outcome import Outcome
from bydawn.core.quote import Keep, cut
from bydawn.core.redact import Secrets
from bydawn.core.secret_settings import variables
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import Act, Advice, Usage
from bydawn.operations import asking, steer
from bydawn.operations.amounts import moment, plural, used
from bydawn.operations.chat_changes import Look
from bydawn.operations.chat_material import material, quoted
from bydawn.operations.checked_loop import refuse_if_agents_lack_secrets
from bydawn.operations.preconditions import gone, refuse_inside_a_round
from bydawn.operations.rounds import outcome_words
from bydawn.process.channel import Signals
from bydawn.process.guardian import Tether
from bydawn.store import chat as store
from bydawn.store.cooldowns import SharedCoolDowns
from bydawn.store.lock import Lock, Owned
from bydawn.store.registry import Standing
from bydawn.system import kernel

__all__ = ["Turn", "TurnState", "about", "ask", "history", "spent", "summary"]

_LONGEST_QUESTION = 50_000  # characters
_LONGEST_ANSWER = 200_000
_WORDS = 1_000  # characters of why there is no answer
_OURS_TO_FIX = (Outcome.AUTH, Outcome.LIMITED, Outcome.TRANSIENT)  # the words say it all; its output is not needed


def history(standing: Standing, last: int = 50) -> tuple[Turn, ...]:
    """The last turns of the conversation, the latest last."""
    return tuple(store.turns(standing.folder)[-last:])


def spent(standing: Standing) -> Usage | None:
    """What all answers used together; None if no agent said so."""
    total: Usage | None = None
    for turn in store.turns(standing.folder):
        total = turn.usage.plus(total) if turn.usage else total
    return total


def ask(
    standing: Standing,
    question: str,
    tether: Tether,
    told: Callable[[Turn | Event], None],
    include: Sequence[str] | None = None,
) -> Turn:
    """Ask, and wait for the end; the question is on disk before the agent starts, and stays there whatever happens.

    `told` gets the question once it is there, then what the agent says and does; `include` are documents by name or
    path, None: those that the loop has. The caller is a worker. Ctrl-C and SIGTERM end the agent.
    """
    refuse_inside_a_round()
    standing = replace(standing, loop=standing.folder.with_secrets(standing.loop))
    secrets = steer.secrets_of(standing)
    _refuse_unready(standing, question, secrets)
    folder = _folder(standing)
    texts = quoted(standing, folder, include)
    agent, limited = _chosen(standing)
    with ExitStack() as stack:
        held = _take_chat(standing)
        stack.callback(held.release)
        store.end_leftovers(standing.folder, standing.loop.uid, held)
        turn = Turn(
            id=os.urandom(6).hex(),
            at=datetime.now(UTC),
            question=plain(question).strip(),
            agent=agent.name,
        )
        held.sign(turn.id)
        kernel.sign_as_worker()
        tether.share(held.fd, f"bydawn chat {standing.loop.id} --history")
        signals = stack.enter_context(closing(Signals("", OnInterrupt.STOP)))
        asked = _Asked(standing, turn, secrets, told)
        if limited:
            asked.end(Ended(outcome=Outcome.LIMITED, detail=_limited_words(agent, limited)))
        else:
            asker = asking.Asker(
                loop=standing.loop,
                id=turn.id,
                cookie=store.cookie(standing.loop.uid, turn),
                on_start=held.note_child,
                signals=signals,
            )
            asked.start(agent, folder, texts, asker, tether)
        held.sign_off()  # all that it started has ended
        return asked.turn


class _Asked:
    """A question that is on disk."""

    def __init__(self, standing: Standing, turn: Turn, secrets: Secrets, told: Callable[[Turn | Event], None]) -> None:
        self._standing, self._secrets, self._told = standing, secrets, told
        self._earlier = [each for each in history(standing) if each.state is TurnState.ANSWERED]
        self._steps = 0
        self.turn = store.append(standing.folder, turn, secrets.hide)
        told(self.turn)

    def start(self, agent: Agent, folder: Path, texts: dict[str, str], asker: asking.Asker, tether: Tether) -> None:
        """Have the agent answer it."""
        try:
            prompt = compose(material(self._standing, self.turn, folder, texts, self._earlier), os.urandom(8).hex())
            look = Look(self._standing, self.turn)
            look.before()
            if asker.signals and asker.signals.take():
                self.end(Ended(outcome=Outcome.INTERRUPTED, detail="stopped on request"))
                return
            answered = asking.ask(
                agent.name,
                prompt,
                folder,
                tether,
                root=self._standing.folder.state_folder,
                secrets=self._secrets,
                sandbox=_sandbox(agent),
                asker=asker,
                told=self._heard,
            )
        except UserError as error:  # it is missing, or cannot work here
            words = ": ".join(filter(None, (error.what, error.cause)))
            self.end(Ended(outcome=Outcome.CONFIG, detail=f"{words}; {error.hint}" if error.hint else words))
            return
        until = reset_of(answered.ended, datetime.now(UTC), 0.0) if answered.ended.outcome is Outcome.LIMITED else None
        if until:  # other loops need not run into the same limit
            detail = self._secrets.hide(plain(answered.ended.detail))
            _cool_downs(self._standing).tell(agent, until, detail)
        snapshots, changed = look.after(agent)
        words = _limited_words(agent, until) if until else self._words(answered)
        ended = replace(answered.ended, detail="; ".join(filter(None, (words, self._kept(answered), changed))))
        self.end(ended, round(answered.seconds, 3), answered.used, snapshots)

    def end(
        self, ended: Ended, seconds: float = 0.0, usage: Usage | None = None, snapshots: Snapshots | None = None
    ) -> None:
        """Write down what became of the question."""
        turn = replace(
            self.turn,
            state=_state(ended),
            answer=cut(ended.reply, _LONGEST_ANSWER, Keep.BOTH),
            outcome=ended.outcome,
            detail=ended.detail,
            seconds=seconds,
            usage=usage,
            snapshots=snapshots,
            steps=self._steps,
        )
        self.turn = store.append(self._standing.folder, turn, self._secrets.hide)

    def _heard(self, event: Event) -> None:
        self._steps += isinstance(event, Activity)
        self._told(event)

    def _words(self, answered: asking.Answered) -> str:
        """Why there is no answer, or what the agent was not allowed to do for it."""
        ended = answered.ended
        if ended.outcome is Outcome.OK:
            return ""
        if ended.outcome is Outcome.DENIED and answered.denied:
            words = f"not allowed: {shorten(answered.denied, 200)}"
        else:
            words = ": ".join(dict.fromkeys(filter(None, (ended.detail, ended.words)))) or outcome_words(ended.outcome)
        return shorten(self._secrets.hide(plain(words)), _WORDS)

    def _kept(self, answered: asking.Answered) -> str:
        """Where its output is, unless the words say it all."""
        if answered.kept is None or answered.ended.outcome not in _OURS_TO_FIX:
            return f"its output is in {answered.kept}" if answered.kept else ""
        shutil.rmtree(answered.kept.parents[1], ignore_errors=True)
        return ""


def _state(ended: Ended) -> TurnState:
    """An agent that was not allowed to do something may have answered anyway."""
    if ended.outcome is Outcome.OK or (ended.outcome is Outcome.DENIED and ended.reply):
        return TurnState.ANSWERED
    return TurnState.INTERRUPTED if ended.outcome is Outcome.INTERRUPTED else TurnState.FAILED


# -- may it be asked? --------------------------------------------------------------------------------------------------


def _refuse_unready(standing: Standing, question: str, secrets: Secrets) -> None:
    if not question.strip():
        raise UserError("nothing to ask", cause="the question is empty", hint=Advice(Act('chat LOOP "what is left?"')))
    if len(question) > _LONGEST_QUESTION:
        raise UserError(
            "the question is too long",
            cause=f"it has {len(question):,} characters; the limit is {_LONGEST_QUESTION:,}",
            hint="put it into a file of the project, and name that file",
        )
    if standing.trouble:
        raise standing.trouble
    if problem := gone(standing):
        raise problem
    refuse_if_agents_lack_secrets(standing, secrets)


def _take_chat(standing: Standing) -> Lock:
    try:
        return Lock.take(standing.folder.chat_lock)
    except Owned as owned:
        raise UserError(
            f"another question about {standing.loop.id} is being answered",
            cause=f"{owned} asks it, and there is one at a time",
            hint=Advice("wait for the answer; ", Act("chat", standing.reference, history=True), " shows it"),
            exit_code=8,
        ) from None


def _folder(standing: Standing) -> Path:
    """Where the agent works; once a worktree is removed, its work is in the workspace."""
    folder = Path(standing.loop.folder)
    return folder if folder.is_dir() else Path(standing.loop.workspace)


# -- which agent -------------------------------------------------------------------------------------------------------


def _chosen(standing: Standing) -> tuple[Agent, datetime | None]:
    """The first agent that is not limited; if all are, the one that is free first, and when."""
    waits = []
    for agent in agents.pool(standing.loop).values():
        until = _limited(standing, agent)
        if until is None:
            return agent, None
        waits.append((until, agent))
    until, agent = min(waits, key=lambda row: row[0])
    return agent, until


def _sandbox(agent: Agent) -> Sandbox:
    """The tightest that it has."""
    levels = (Sandbox.READ_ONLY, Sandbox.WORKSPACE)
    return next((each for each in levels if each in agent.abilities.sandboxes), Sandbox.READ_ONLY)


def _limited(standing: Standing, agent: Agent) -> datetime | None:
    """Until when its usage limit is reached, if this or another loop knows."""
    now = datetime.now(UTC)
    known = _cool_downs(standing).of(agent, now)
    times = [row.until for row in standing.state.limited if row.agent == agent.name and row.until and row.until > now]
    return max([*times, *([known.until] if known else [])], default=None)


def _limited_words(agent: Agent, until: datetime) -> str:
    return f"{agent.name} is limited until {moment(until)}"


def _cool_downs(standing: Standing) -> SharedCoolDowns:
    env = inherited() | variables(standing.loop.agent_env)
    return SharedCoolDowns(standing.folder.state_folder.cool_downs, standing.loop, env)


# -- in words ----------------------------------------------------------------------------------------------------------


def about(turn: Turn) -> str:
    """`codex · 12 s · 3 steps · 1,000 in, 50 out · cost —`"""
    if turn.state is TurnState.ASKED:
        return f"{turn.agent} · at work"
    words = "" if turn.state is TurnState.ANSWERED else str(turn.state)
    steps = plural(turn.steps, "step") if turn.steps else ""
    took = duration(turn.seconds) if turn.seconds else ""
    return " · ".join(filter(None, (turn.agent, words, took, steps, used(turn.usage) if turn.usage else "")))


def summary(turns: Sequence[Turn], usage: Usage | None) -> str:
    """How much was asked, and what that used."""
    if not turns:
        return "Nothing was asked yet."
    counted = f" · {used(usage)}, which does not count toward the limits of the loop" if usage else ""
    return plural(len(turns), "question") + counted
