"""What rloop tells the agent and people."""

import re

from bydawn.core.facts import LoopStopped
from bydawn.core.loop import Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import FINISHED, Act, End, Next, git
from bydawn.dialects import own_words
from bydawn.dialects.rloop.config import LOG, NAME

UNIT = "iteration"

# The document's own template says "mark it `- [ ]`": its loop had counted and changed its own text.
PROMPT = """\
You are completing tasks from a PRD file.

TASK FILE: {task_file}

INSTRUCTIONS:
1. Read the task file carefully
2. Find any task marked with '- [ ]' (unchecked checkbox)
3. If you find unchecked tasks:
   - Pick ONE task to complete
   - Implement it fully with tests if applicable
   - Mark it '- [x]' in the task file
   - Commit changes with descriptive message
   - Exit normally (do NOT output the completion promise)
4. If ALL tasks are marked '- [x]' (zero unchecked remain):
   - Verify by searching for '- [ ]' pattern
   - If truly zero remain, output ONLY: <promise>{completion_marker}</promise>

CRITICAL:
- Do NOT mention <promise>{completion_marker}</promise> unless outputting it as completion signal
- Do NOT output the promise if ANY '- [ ]' remain
- Complete ONE task per session, then exit

Current iteration: {iteration}/{max_iterations}
"""


def template(text: str | None, task_file: str, marker: str) -> str:
    """A prompt template in our markers; the document's unless one is given. Other braces stay as they are."""
    values = {"task_file": task_file, "completion_marker": marker, "iteration": "\1", "max_iterations": "\2"}
    names = "|".join(values)
    filled = re.sub(rf"\{{({names})\}}", lambda found: values[found[1]], PROMPT if text is None else text)
    return filled.replace("{{", "{{{{").replace("\1", "{{COUNTED}}").replace("\2", "{{ROUNDS}}")


def boxes(count: int) -> str:
    return f"{count} task{' is' if count == 1 else 's are'}"


def reason(stopped: LoopStopped) -> str:
    """Why the loop stopped, in this tool's words."""
    if stopped.end in FINISHED:
        return "no box is open"
    return own_words.reason(stopped, UNIT)


def own(act: Act) -> Act | None:
    known = {"resume": "resume", "status": "status", "show": "status", "why": "status", "trust": "trust"}
    return Act(known[act.verb], program=NAME) if act.verb in known else None


def next_steps(loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[Next]:
    """What a person can do now, from any folder."""
    name = loop.dialect.words["session"] if loop.dialect else loop.id
    there = "" if folder == loop.workspace else loop.workspace
    look = Next(Act("logs", name, program=NAME), f"what {loop.agent} said ({LOG})")
    in_git = bool(loop.dialect and loop.dialect.words.get("git"))
    changes = [Next(git(there, "status"), "what was changed and is not committed")] if in_git else []
    go_on = Act("resume", name, program=NAME)
    if stopped.end in FINISHED:
        return [look, *([Next(git(there, "log", "--stat"), "what was done")] if in_git else [])]
    if stopped.decided.rule == Rule.ROUNDS:
        higher = Act("resume", name, program=NAME, max_iterations=2 * max(state.rounds, 1))
        return [look, Next(higher, "go on with a higher cap")]
    if stopped.decided.rule in (Rule.TAMPERED, Rule.TASK_FILE):
        accept = Next(Act("resume", name, program=NAME, accept=True), "or keep it so")
        put_back = Next(go_on, "when you have put it back")
        return [*changes, put_back, *([accept] if stopped.can_be_accepted else [])]
    if stopped.decided.rule == Rule.OBSTRUCTED:
        return [look, *changes, Next(go_on, "when you have put that right")]
    if stopped.end is End.BLOCKED:
        tell = Act("resume", name, program=NAME, note=PLACEHOLDER)
        return [look, Next(tell, "say what to do differently, and go on")]
    if stopped.end is End.FAILED:
        return [look, Next(Act("backends", program=NAME), "which agents can work here"), Next(go_on, "then go on")]
    if stopped.end is End.LIMIT:
        again = Act("start", loop.workspace, program=NAME, name=name)
        return [look, Next(again, "begin again, after you have raised that limit where you set it; ticked boxes stay")]
    return [look, *changes, Next(go_on, "go on")]
