"""The prompt of an invocation: what the task is, where it stands, and how one small verified iteration goes."""

from collections.abc import Iterable
from shlex import quote

from bydawn.core.quote import code
from bydawn.dialects.strict_agent_loop.contract import Contract
from bydawn.dialects.strict_agent_loop.paths import FOLDER, NAME, STOP_REPORT

# What stays the same comes first. `{{RECORDS}}` and what follows the template are different each time.
_TEMPLATE = """\
You work on one long task in {{WORKSPACE}}, unattended. A supervisor starts you again and again until machines
agree that the task is done. You remember nothing of earlier sessions: what you know of them is on the disk and below.
Work in iterations, each one small task that you verify and record. Never skip the middle.

## Goal

{{PROMPT}}

## Global stop condition

<stop>
<evidence>
## Stop checks

<checks>

## What a blocker is

<blocker>

## One iteration, in eight steps

1. Announce it: its number, what is done so far, the task of this iteration, how you will know that this task is done
   (the local done condition), the global stop condition, and what would make you stop after it.
2. Log that announcement:
   <command> append-event --state <state> --kind round.started --message "ANNOUNCEMENT" --data task="TASK" \
--data local_done_condition="CONDITION"
3. Do exactly one atomic task. Results go into the workspace, never into <folder>/.
4. Verify the result with evidence: run or read something that would show it if you were wrong.
5. Record it at once, before you think about the next one:
   <command> update-state --state <state> --task "TASK" --local-done-condition "CONDITION" \
--result-summary "WHAT YOU DID" --verification-summary "HOW YOU KNOW" --evidence "COMMAND AND RESULT" \
--next-task "NEXT" --context-snapshot "WHERE IT STANDS"
   (`--progress none` if nothing came of it; `--evidence` and `--artifact PATH` may be repeated)
6. Ask whether to stop (exit 0: done, 1: go on, 2: stopped):
   <command> check-stop --state <state>
7. Refresh what people see:
   <command> report-status --state <state>
8. If the history has become long:
   <command> compact-state --state <state>

Run one command at a time, and wait for it to end. Do not edit any file in <folder>/: these commands write them, and
what you write there by hand counts for nothing. If a record says `"pending": true`, it will be taken in later.

## What an atomic task is

Small enough to be checked on its own. Good: reproduce one failure; compute the one next number of a sequence; fix one
bug in one place; add one test; rewrite one section of a document; run one check and say what its result means.
Too big: the rest of the feature; every open problem; code, tests, documents and polish in one go.
Never record several iterations at once, and never one that you did not verify: it is noticed and said back to you.

## When to end this session

- after <budget> in this session: end it, even if you could go on; the next session goes on from your records
- when check-stop says that the task is done
- when only a person can help: record it with `--status blocked --needs-human-input --stop-reason "WHAT IS NEEDED"`
- when the goal cannot be reached at all: `--status failed --stop-reason "WHY"`
<claim>
If the workspace and the records disagree, believe the workspace, and record one iteration that puts the records right.
If none is recorded yet, begin with this: <first>
End with a short summary: what you verified, and what comes next.

{{RECORDS}}
"""
_PROVEN = """\
The supervisor runs these itself when your session has ended. While one fails, the task is not done, whatever you say or
record. The latest results are in <report>.

<rows>"""
_UNPROVEN = "There are none, so only you can tell when the task is done. Be strict with yourself."
_BLOCKER = "Something that only a person can remove: a missing permission, a secret, a decision. Hard work is none."
_CLAIM = (
    '- when you have shown that the global stop condition holds: `--status completed --stop-met --stop-reason "WHY"`\n'
)


def template(contract: Contract, state: str, command: str = NAME) -> str:
    """The template for every invocation. `state` is the path of state.json; `command` goes into a shell as it is."""
    report = f"{state.rpartition('/')[0]}/{STOP_REPORT}"
    checks = [
        *(code(each) for each in contract.commands if not contract.in_sandbox),  # those run only after a person agreed
        *(f"the file {code(each)} exists" for each in contract.paths),
        *("{} contains the text {}".format(*map(code, each.split("::", 1))) for each in contract.texts),
    ]
    values = {
        "stop": contract.stop_condition.strip(),
        "evidence": f"\nEvidence that counts:\n\n{_rows(contract.evidence)}\n" if contract.evidence else "",
        "checks": _filled(_PROVEN, {"report": report, "rows": _rows(checks)}) if checks else _UNPROVEN,
        "blocker": contract.blocker.strip() or _BLOCKER,
        "claim": "" if checks else _CLAIM,
        "budget": f"{contract.budget} iteration{'s' if contract.budget > 1 else ''}",
        "command": command,
        "state": quote(state),
        "folder": FOLDER,
        "first": contract.next_task.strip() or "look at the workspace, and choose the first small task.",
    }
    # Braces in the texts of a person are not markers.
    return _filled(_TEMPLATE, {name: value.replace("{{", "{{{{") for name, value in values.items()})


def _rows(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text.strip()}" for text in texts)


def _filled(text: str, values: dict[str, str]) -> str:
    """In one pass: what a value contains stays as it is."""
    parts = text.split("<")
    filled = (values[name] + rest for name, _, rest in (part.partition(">") for part in parts[1:]))
    return parts[0] + "".join(filled)
