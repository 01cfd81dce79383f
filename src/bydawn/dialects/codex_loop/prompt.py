"""The prompt of an iteration: the goal, one task, and what became of the iterations before."""

import re
from collections.abc import Iterable

from bydawn.core.text import plain

# What stays the same comes first, then what lasts for a task, then what is new.
_TEMPLATE = """\
You are working unattended in {{WORKSPACE}}. You get one task after the other, each again and again until machines
agree that it is done.

## Goal

{{PROMPT}}

## Done when

<done_when>

<documents>{{RULES}}
- Do nothing of the tasks after it, even where the plan says what comes next.
- Do not commit, and do not switch branches: what you change is committed for you.
- Leave `.codex-loop/` and `codex-loop.yaml` alone.

## Next task {{TASK_ID}}: {{TASK_TITLE}}

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
## Next task {{TASK_ID}}

{{TASK_TEXT}}
{{/TASK_TEXT}}

{{FAILED_CHECKS}}

{{NEWS}}
"""


_DOCUMENTS = "## Spec and plan\n\nRead these first. They say how the tasks fit together.\n\n"


def template(done_when: Iterable[str], documents: Iterable[str] = ()) -> str:
    """The first prompt of a conversation and the next ones. `documents` are absolute paths: a work tree may not have
    spec and plan."""
    read = _rows(documents)
    values = {"done_when": _rows(done_when), "documents": f"{_DOCUMENTS}{read}\n\n" if read else ""}
    first = re.sub("<(done_when|documents)>", lambda found: values[found[1]], _TEMPLATE)
    return f"{first}\n{{{{CONTINUED}}}}\n{FOLLOW_UP}"


def _rows(texts: Iterable[str]) -> str:
    """One line each; braces in the texts of a person are not markers."""
    return "\n".join(f"- {plain(' '.join(text.split()))}" for text in texts).replace("{{", "{{{{")
