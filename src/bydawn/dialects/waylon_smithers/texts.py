"""What waylon-smithers says: to Codex in its prompts, to people at the end, and in the helpers it installs."""

from functools import partial

import msgspec

from bydawn.core.breakers import limits_of
from bydawn.core.facts import LoopStopped
from bydawn.core.loop import Loop, Sandbox
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import FINISHED, Act, End, Next, git, quoted
from bydawn.dialects import own_words

UNIT = "iteration"

_HEADER = """\
You are in a Smithers loop: the same task comes again, in this one session, until it is done.

- Loop: {{LOOP}}
- Iteration: {{COUNTED}} of at most {{ROUNDS}}
- Completion promise (mode %s): %s

## Task

{{PROMPT}}

{{RULES}}
- The promise means that the whole task is completely and unequivocally done and that you have verified it.
- In a `## BLOCKED` section say what blocks you, and propose next steps.
- Keep what the next iteration must know in files of the repository, and be brief: this session grows."""
_TODO = """

## TODO workflow

- Work from top to bottom.
- Stop at %s and ask for human review; nothing beyond it is begun before that.
- Prefer deterministic checks: tests, linters, type checks."""
_NEWS = "\n\n{{NEWS}}\n"

_FOLLOW_UP = """\
Go on with the Smithers loop {{LOOP}}: iteration {{COUNTED}} of at most {{ROUNDS}}. Task and rules are those above. Look
at the work tree before you go on. Only when everything is done and verified, end with %s as the last line.

{{NEWS}}
"""


def template(mode: str, promise: str, token: str) -> str:
    """The prompt of an iteration that begins a session, and the short one of one that goes on with it; braces of the
    person's own are only text."""
    todo, shown = _TODO % _literal(token) if token else "", _shown(mode, promise)
    return f"{_HEADER % (mode, shown)}{todo}{_NEWS}{{{{CONTINUED}}}}\n{_FOLLOW_UP % shown}"


def _shown(mode: str, promise: str) -> str:
    forms = {"tag": f"<promise>{promise}</promise>", "regex": f"something that matches {promise}"}
    return _literal(forms.get(mode, promise))


def _literal(text: str) -> str:
    return text.replace("{{", "{{{{")


def next_steps(loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[Next]:
    """What a person can do now, ready to be pasted in that folder; without one, anywhere."""
    there = loop.workspace if folder != loop.workspace else ""
    resume = partial(Act, "resume", program="waylon-smithers", loop_id=loop.id, cd=there)
    status = Act("status", program="waylon-smithers", loop_id=loop.id, cd=there)
    look = Next(status, "how it stands, and where the last message is")
    outside_git = loop.dialect is not None and "outside_git" in loop.dialect.words
    changed = [] if outside_git else [Next(git(there, "status"), "what was changed and is not committed")]
    edit = Next(resume(full_auto=True), "let Codex edit files here: the sandbox is read-only by default")
    may_only_read = loop.sandbox is Sandbox.READ_ONLY
    if stopped.decided.rule == Rule.ROUNDS:
        cap = limits_of(loop, state).rounds
        higher = partial(resume, max_iterations=cap + max(10, cap))
        if may_only_read and state.rounds_without_progress:
            edit = Next(higher(full_auto=True), edit.why)
            return [edit, Next(higher(), "or, if reading is all that it needs, go on with a higher cap")]
        return [
            Next(higher(), "go on with a higher cap"),
            Next("", "or make the prompt smaller or clearer, or add tests that say when it is done"),
        ]
    if stopped.end in FINISHED:
        return [look, *changed]
    if stopped.end is End.CHECKPOINT:
        return [look, Next(resume(), "you have looked: go on past the HARD STOP")]
    if stopped.decided.rule in (Rule.TAMPERED, Rule.TASK_FILE, Rule.CHANGED_TESTS):
        keep = [Next(resume(accept=True), "or keep it so")] if stopped.can_be_accepted else []
        return [*changed, Next(resume(), "when you have put it back"), *keep]
    if stopped.end is End.BLOCKED and may_only_read:
        return [edit, look]
    table: dict[End, list[Next]] = {
        End.BLOCKED: [
            Next(resume(note=PLACEHOLDER), "answer it, or say what to do differently"),
            Next(resume(), "or go on as it is"),
            look,
        ],
        End.FAILED: [Next(resume(), "when Codex works again"), look],
        End.STOPPED: [Next(resume(), "go on after all")],
    }
    return table.get(stopped.end, [Next(resume(), "go on, in the same session")])


def reason(stopped: LoopStopped) -> str:
    """Why the loop stopped, in this tool's words."""
    return own_words.reason(stopped, UNIT)


def own(act: Act) -> Act | None:
    known = {"resume": "resume", "status": "status", "show": "status", "why": "status", "stop": "cancel"}
    if act.verb not in known or not act.loop:
        return None
    return Act(known[act.verb], program="waylon-smithers", loop_id=act.loop.partition("@")[0])


_SKILL = """\
---
name: waylon-smithers
description: Work well inside a Smithers loop - give the completion promise only when it is true, stop at HARD STOP \
checkpoints, and leave what the next iteration needs in files. Use it when a prompt says that it is an iteration of a \
Smithers loop, or when a person wants to start one.
---

# Smithers loop

An outer program, `waylon-smithers`, runs you on one task again and again, in one session, until you give a promise that
it can recognize, until a cap is reached, or until a person must look. This skill changes nothing by itself: the looping
is done by that program.

## The promise

- It is in the prompt, for example `<promise>DONE</promise>`.
- Give it as the last line of your last message, alone, outside code and quotes, and only when the whole task is
  completely done and you have run what verifies it.
- Otherwise do not write it at all, not even to say that you cannot give it yet.
- If you are stuck, write a section `## BLOCKED`: what blocks you, what you tried, what a person should do next.

## Each iteration

1. Look at the work tree and at the list, if there is one; earlier iterations may have changed things.
2. Take the next open item, from top to bottom. One item well done is better than three begun.
3. Verify with deterministic checks: tests, linters, type checks. Say what you ran and what it said.
4. Write down in a file of the repository what the next iteration must know. The session grows; files do not forget.

## Checkpoints

A line with HARD STOP in the list means: stop there and ask for human review. Never tick, move or remove such a line.

## Starting one

```
waylon-smithers \\
  "Go through TODO.md step by step. Ensure tests pass. Output <promise>DONE</promise> only when complete." \\
  --completion-promise DONE --max-iterations 30 --todo-file TODO.md --full-auto
```

Without `--full-auto` Codex may only read. Never suggest `--sandbox danger-full-access` for a machine that matters.
"""

_PROMPT = """\
You are about to work in the manner of a Smithers loop.

Task: $ARGUMENTS

- What its iterations said is in `.codex/waylon-smithers/loops/<loop-id>/`.
- Work from top to bottom; stop at every HARD STOP line and ask for human review.
- Prefer deterministic checks (tests, linters, type checks) and say what they said.
- If you are blocked, write a section `## BLOCKED` with next steps.
- End with <promise>TASK_COMPLETE</promise> only when everything is completely done and verified; otherwise do not write
  it at all.
"""


class Helper(msgspec.Struct, frozen=True, kw_only=True):
    """A file that teaches Codex about these loops, written once, on request."""

    home: bool  # below CODEX_HOME, or in the workspace
    path: str
    text: str
    remark: str = ""

    def filled_in(self, promise: str, loop: str) -> str:
        """The text with a person's own promise and loop."""
        text = self.text.replace("<loop-id>", loop or "<loop-id>")
        for usual in ("DONE", "TASK_COMPLETE") if promise else ():
            text = text.replace(f"promise {usual} ", f"promise {quoted(promise)} ").replace(usual, promise)
        return text


HELPERS = (
    Helper(home=False, path=".codex/skills/waylon-smithers/SKILL.md", text=_SKILL),
    Helper(
        home=True,
        path="prompts/waylon-smithers.md",
        text=_PROMPT,
        remark="today's Codex no longer reads custom prompts; the skill is what it uses",
    ),
)
