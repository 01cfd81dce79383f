"""What codex-autorunner says: in its prompt, in the files that `init` writes, and to people at the end."""

from bydawn.core.facts import LoopStopped
from bydawn.core.loop import Loop
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import FINISHED, Act, End, Next, git
from bydawn.dialects import own_words
from bydawn.dialects.codex_autorunner.config import NAME

UNIT = "run"

PROMPT = """\
You are Codex, an autonomous coding assistant operating on a git repository.

You are given three documents:
1) TODO: an ordered checklist of tasks.
2) PROGRESS: a running log of what has been done and how it was validated.
3) OPINIONS: design constraints, architectural preferences, and migration policies.

You must:
- Work through TODO items from top to bottom.
- Prefer fixing issues over just documenting them.
- Keep TODO, PROGRESS, and OPINIONS in sync.
- Leave clear handoff notes (tests run, files touched, expected diffs).

<TODO>
{{TODO}}
</TODO>

<PROGRESS>
{{PROGRESS}}
</PROGRESS>

<OPINIONS>
{{OPINIONS}}
</OPINIONS>

{{EXTRAS}}

{{#PREV_RUN_OUTPUT}}
<PREV_RUN_OUTPUT>
{{PREV_RUN_OUTPUT}}
</PREV_RUN_OUTPUT>

{{/PREV_RUN_OUTPUT}}
Instructions:
1) Select the highest priority unchecked TODO item and try to make concrete progress on it.
2) Make actual edits in the repo as needed.
3) Update TODO/PROGRESS/OPINIONS before finishing.
4) Prefer small, safe, self-contained changes with tests where applicable.
5) When you are done for this run, print a concise summary of what changed and what remains.
"""

TODO = """\
# TODO

Codex works through this list from top to bottom, one run after the other. Replace the samples with your own tasks.

- [ ] Sample: say in one line what is to be done, and how to tell that it is done
- [ ] Sample: put the next task below it
"""
PROGRESS = """\
# PROGRESS

"""
OPINIONS = """\
# OPINIONS

- Keep changes small, and cover them with tests.
- Add no new runtime dependency without need.
- Prefer simple code over clever code; follow the style of what is there.
- Do not touch what a task does not ask for.
"""
CONFIG = """\
version: 1

docs:
  todo: "TODO.md"
  progress: "PROGRESS.md"
  opinions: "OPINIONS.md"

codex:
  binary: "codex"
  args: ["--yolo", "exec", "--sandbox", "danger-full-access"]

prompt:
  prev_run_max_chars: 6000
  template: ".codex-autorunner/prompt.txt"  # optional; default built-in

runner:
  sleep_seconds: 5
  stop_after_runs: null     # null => unlimited
  max_wallclock_seconds: null

git:
  auto_commit: false
  commit_message_template: "[codex] run #{run_id}"
"""
IGNORE = "*\n!config.yml\n!prompt.txt\n"


def reason(stopped: LoopStopped) -> str:
    """Why the loop stopped, in this tool's words."""
    if stopped.end in FINISHED:
        return "nothing is left open"
    return own_words.reason(stopped, UNIT).replace("this run was", "it was")


def own(act: Act) -> Act | None:
    known = {"resume": "resume", "run": "run", "status": "status", "show": "log", "logs": "log", "trust": "trust"}
    return Act(known[act.verb], program=NAME) if act.verb in known else None


def next_steps(loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[Next]:
    """What a person can do now, ready to be pasted in that folder; without one, anywhere."""
    there = loop.workspace if folder != loop.workspace else ""
    run, log, doctor = (Act(verb, program="codex-autorunner", repo=there) for verb in ("run", "log", "doctor"))
    look = Next(log, "what the last run said and did")
    changes = Next(git(there, "status"), "what was changed and is not committed")
    if stopped.end in FINISHED:
        return [look, changes]
    if stopped.decided.rule in (Rule.TAMPERED, Rule.TASK_FILE):
        accept = Next(Act("resume", program=NAME, accept=True, repo=there), "or keep it so")
        put_back = Next(run, "when you have put it back")
        return [changes, put_back, *([accept] if stopped.can_be_accepted else [])]
    if stopped.decided.rule == Rule.OBSTRUCTED:
        return [look, changes, Next(run, "when you have looked at that and put it right")]
    if stopped.end is End.BLOCKED:
        tell = Act("resume", program=NAME, note=PLACEHOLDER, repo=there)
        return [look, Next(tell, "say what to do differently, and go on")]
    if stopped.end is End.FAILED:
        is_config = Outcome.CONFIG in stopped.evidence
        wrong = [Next("", "put codex.binary and codex.args right in .codex-autorunner/config.yml")] if is_config else []
        return [*wrong, look, Next(doctor, "what is wrong here"), Next(run, "then go on")]
    return [Next(run, "go on")] if state.tasks is None or state.tasks.open else [look]
