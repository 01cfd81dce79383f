"""The prompt of an iteration: the goal, one task, and what became of the iterations before."""

import re
from collections.abc import Iterable

from bydawn.core.text import plain

SPEC, PLAN = "spec/001-project-spec.md", "plan/001-implementation-plan.md"

# What stays the same comes first, then what lasts for a task, then what is new.
_TEMPLATE = """\
You are working unattended in {{WORKSPACE}}. A supervisor gives you one task after the other, and runs you again on each
until machines agree that it is done.

## Goal

{{PROMPT}}

## Done when

<done_when>

<documents>{{RULES}}
- Do this task and no other, even where the plan says what comes next.
- A task is done when you say `complete`, something has changed, and every verification passes. Until then say
  `continue`. Say `blocked` only if a person must do something, and name it in `blockers`.
- Do not commit, and do not switch branches: the supervisor commits what each iteration changed.
- Leave `.codex-loop/`, `codex-loop.yaml` and the task files alone.

## Task {{TASK_ID}}: {{TASK_TITLE}}

{{TASK_TEXT}}

{{#SUMMARIES}}
## Summaries of the last iterations

{{SUMMARIES}}
{{/SUMMARIES}}

{{FAILED_CHECKS}}

{{NEWS}}
"""
FOLLOW_UP = """\
Go on with task {{TASK_ID}}: {{TASK_TITLE}}. Goal and rules are still the same. The work tree may have changed, so look
again. `task_id` of your answer is `{{TASK_ID}}`.

{{#TASK_TEXT}}
## Task {{TASK_ID}}

{{TASK_TEXT}}
{{/TASK_TEXT}}

{{FAILED_CHECKS}}

{{NEWS}}
"""


_DOCUMENTS = "## Spec and plan\n\nRead these first. They say how the tasks fit together.\n\n"


def template(done_when: Iterable[str], documents: Iterable[str] = ()) -> str:
    """The first prompt of a conversation. `documents` are absolute paths: a work tree may not have spec and plan."""
    read = _rows(documents)
    values = {"done_when": _rows(done_when), "documents": f"{_DOCUMENTS}{read}\n\n" if read else ""}
    return re.sub("<(done_when|documents)>", lambda found: values[found[1]], _TEMPLATE)


def _rows(texts: Iterable[str]) -> str:
    """One line each; braces in the texts of a person are not markers."""
    return "\n".join(f"- {plain(' '.join(text.split()))}" for text in texts).replace("{{", "{{{{")
