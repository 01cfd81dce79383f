"""The prompt of a round: sections in order, each only if it has something to say, each within its budget."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bydawn.core import news_sections, record_sections, sections
from bydawn.core.breakers import limits_of
from bydawn.core.digests import sha256
from bydawn.core.history import number
from bydawn.core.loop import Loop
from bydawn.core.quote import Keep, cut, harmless
from bydawn.core.sections import Material, promise_of
from bydawn.core.state import LoopState
from bydawn.core.template import OUTPUT_AT_MOST, enclosed, fill, halves, markers
from bydawn.core.text import last_part, plain

__all__ = ["BUDGETS", "compose", "fence_of", "promise_of"]


class Section(NamedTuple):
    """One part of the prompt, and how many characters of other people's text it may hold."""

    budget: int
    write: Callable[[Material, int], str]


# In prompt order: what stays the same (providers cache a common beginning), what lasts for a task, what is new.
# Goal and notes are a person's own words, so their budgets only guard against accidents.
_SECTIONS: dict[str, Section] = {
    "HEADER": Section(6_000, sections.header),
    "GOAL": Section(5_000_000, sections.goal),
    "RULES": Section(20_000, sections.rules),
    "DOCUMENTS": Section(10_000, sections.documents),
    "TASK": Section(60_000, sections.task),
    "TASKS": Section(6_000, sections.tasks),
    "NOTES": Section(20_000, news_sections.notes),
    "EVENTS": Section(8_000, news_sections.events),
    "RECORDED": Section(2_000, record_sections.rejected),
    "CHECKS": Section(12_000, news_sections.checks),
    "REPLY": Section(3_000, news_sections.reply),
    "STALL": Section(2_000, news_sections.stall),
    "FOOTER": Section(1_000, sections.footer),
}
_ASKED_FOR: dict[str, Section] = {  # only included by a template
    "FAILED_CHECKS": Section(60_000, news_sections.failed_checks),
    "SUMMARIES": Section(2_000, news_sections.summaries),
    "PROGRESS": Section(20_000, sections.progress),
    "OPINIONS": Section(20_000, sections.opinions),
    "RECORDS": Section(24_000, record_sections.records),
}
_AS_THEY_ARE = {"FILE": 100_000, "OUTPUT": OUTPUT_AT_MOST}  # the same, without a word of ours around it
_OUTPUT = 6_000  # characters, unless a template says how many
EARLIER_LEFT_OUT = "[… earlier output left out …]"
_NEWS = ("NOTES", "EVENTS", "RECORDED", "CHECKS", "REPLY", "STALL")
_NEVER_LOST = (
    "GOAL",
    "TASKS",
    "TASK",
    "NOTES",
    "EVENTS",
    "RECORDED",
    "CHECKS",
    "RULES",
)  # even if a template omits them
_KNOWN = ("GOAL", "RULES")
# Markers that say what a section says.
_INSTEAD = {"PROMPT": "GOAL", "TASK_TEXT": "TASK", "FAILED_CHECKS": "CHECKS"}
# What is shortened first when the agent accepts less; never the goal, never a note.
_GIVES_WAY = ("REPLY", "OUTPUT", "PROGRESS", "OPINIONS", "RECORDS", "CHECKS", "FAILED_CHECKS", "FILE", "TASK")

BUDGETS: dict[str, int] = {name: section.budget for name, section in (_SECTIONS | _ASKED_FOR).items()} | _AS_THEY_ARE


def compose(
    loop: Loop,
    state: LoopState,
    round_: int,
    fence: str,
    *,
    resumed: bool = False,
    session_id: str | None = None,
    task_text: str = "",
    reply: str = "",
    output: str = "",
    documents: Mapping[str, str] = {},
    template: str | None = None,
    length: int | None = None,
    answers: bool = False,
) -> str:
    """The whole prompt of a round. `fence` is an unguessable word that encloses all data.

    `resumed`: the conversation goes on. Once it has answered, it knows goal and rules (and a template), and gets only
    what is new. `reply` is everything the last round said, `output` the end of what it printed. `length` is the most
    the agent accepts; if even the shortest prompt is longer, it is returned anyway, and the caller has to refuse it.
    `answers`: the agent is given a schema for its reply.
    """
    talked = (state.conversation(session_id) or state.session) if resumed else None
    first, continued = halves(template or "")
    session = talked if not continued else None
    knows = session is not None and session.knows
    continues = resumed and bool(continued) and (talked is None or talked.knows)
    template = continued if continues else None if knows or template is None else first
    task_fence, quoted = fence_of(task_text, loop), (loop.progress, loop.opinions)
    given = Material(
        loop=loop,
        state=state,
        round=round_,
        fence=fence,
        resumed=resumed,
        knows=knows,
        knows_task=session is not None and session.task_text == task_fence,
        knows_text=talked is not None and talked.knows and talked.task_text == task_fence,
        task_text=harmless(harmless(task_text, task_fence), fence),
        task_fence=task_fence,
        reply=harmless(reply, fence),
        quoted_documents={path: harmless(text, fence) for path, text in documents.items() if path in quoted},
        output=output,
        documents=documents,
        answers=answers,
    )
    return _fitted(lambda budgets: _written(given, template, budgets), length)


def fence_of(text: str, loop: Loop) -> str:
    """A fence that stays the same as long as the text; no text can contain the digest of itself."""
    return sha256(f"{loop.uid} {text}".encode(errors="replace")).hexdigest()[:16]


def _fitted(write: Callable[[Mapping[str, int]], str], length: int | None) -> str:
    """Shorten one section after another until the prompt fits."""
    budgets, text = BUDGETS, write(BUDGETS)
    for name in _GIVES_WAY:
        if length is None or len(text) <= length:
            break
        too_much = bisect_left(
            range(budgets[name]), x=True, key=lambda size: len(write({**budgets, name: size})) > length
        )
        budgets = {**budgets, name: max(0, too_much - 1)}
        text = write(budgets)
    return text


def _written(given: Material, template: str | None, budgets: Mapping[str, int]) -> str:
    parts = {name: section.write(given, budgets[name]) for name, section in _SECTIONS.items()}
    told = [*parts.values()] if template is None else _laid_out(given, template, parts, budgets)
    return "\n\n".join(filter(None, told)) + "\n"


def _laid_out(given: Material, template: str, parts: Mapping[str, str], budgets: Mapping[str, int]) -> list[str]:
    """A person's template, followed by what it left out."""
    used, wanted = markers(template), markers(template, sections=True)
    used |= {_INSTEAD[name] for name in used & _INSTEAD.keys()}
    title = given.line(given.state.tasks.next or "" if given.state.tasks else "")
    values = {
        **parts,
        **{name: section.write(given, budgets[name]) for name, section in _ASKED_FOR.items()},
        **_words(given),
        "HEADER": f"{parts['HEADER']} {parts['FOOTER']}",
        "PROMPT": parts["GOAL"].removeprefix(sections.GOAL),
        "TASK": parts["TASK"] or title,
        "TASK_TITLE": title,
        "TASK_TEXT": "" if given.knows_text else parts["TASK"].removeprefix(sections.TASK) or title,
        # What a template places itself is not repeated.
        "NEWS": "\n\n".join(parts[name] for name in _NEWS if parts[name] and name not in used),
    }
    whole = {name: _as_it_is(given, name, budgets) for name in wanted}
    values |= {name: enclosed(text, template) for name, text in whole.items() if text is not None}
    text = fill(template, {name: values[name] for name in wanted})
    forgotten = _forgotten(used, given.loop.tasks, is_known=template == halves(given.loop.template or "")[1])
    allowed = given.loop.dialect.sections if given.loop.dialect else None
    return [text.strip(), *(parts[name] for name in forgotten if allowed is None or name in allowed)]


def _as_it_is(given: Material, marker: str, budgets: Mapping[str, int]) -> str | None:
    """A document or the previous output, if the marker stands for one."""
    kind, _, argument = marker.partition(":")
    if kind == "FILE":
        # Cut first: a long document costs no more than what is left of it.
        return plain(cut(given.documents.get(argument, ""), budgets[kind], Keep.BOTH)).rstrip("\n")
    if kind != "OUTPUT":
        return None
    most = int(argument or _OUTPUT)
    return last_output(given.output, min(most, budgets[kind])) if most else ""


def last_output(text: str, size: int) -> str:
    """The end of an output, from the start of a line if possible, with a remark in place of the rest."""
    if len(text) <= size:
        return text
    kept = last_part(text, size).removeprefix("…\n") if size else ""
    return f"{EARLIER_LEFT_OUT}\n{kept}".rstrip()


def _forgotten(used: frozenset[str], tasks: str | None, *, is_known: bool) -> list[str]:
    """The sections without which a goal, a task, a note, a failure or the way to finish would be missing.

    `is_known`: the conversation has already seen goal and rules.
    """
    told = {*used, *(_NEWS if "NEWS" in used else ()), *(_KNOWN if is_known else ())}
    # A template with the task, or with the whole list, need not include the section about it.
    told |= {"TASKS"} if used & {"TASK", f"FILE:{tasks}"} else set()
    return [name for name in _NEVER_LOST if name not in told]


def _words(given: Material) -> dict[str, str]:
    """Markers that stand for a word or a number."""
    promise = promise_of(given.loop)
    return {
        "PROMISE": promise.token if promise else "",
        "ROUND": str(given.round),
        "COUNTED": str(number(given.loop, given.state)),
        "ROUNDS": str(limits_of(given.loop, given.state).rounds or "unlimited"),
        "TASK_ID": given.line(given.state.tasks.next_id or "" if given.state.tasks else ""),
        "LOOP": given.loop.id,
        "WORKSPACE": given.loop.folder,
    }
