"""`strict-agent-loop install-skill`, and how the skill is used, for the help."""

from bydawn.cli.dialects import FURTHER
from bydawn.cli.dialects.skill_command import skill_command

# S-004: the ten points that the skill explains, each with a command. One block without empty lines, for click.
HOW = f"""\
How to use it
 1. Two modes. Interactive: your own Codex session works and shows each round.
    Unattended: `supervise` runs Codex again and again until the checks pass.
    strict-agent-loop install-skill    so that Codex knows $strict-agent-loop
 2. Interactive quick start:
    codex '$strict-agent-loop Fix the parser. Stop when pytest -q passes.'
    Unattended quick start, two commands:
    strict-agent-loop init-state --workspace-root . --task-id parser \\
      --operating-mode unattended --goal "Fix the parser" \\
      --global-stop-condition "all tests pass" --stop-command "pytest -q"
    strict-agent-loop supervise --state .codex-loop/tasks/parser/state.json
 3. All tasks are in .codex-loop/registry.json. Each has a folder: state.json,
    events.jsonl, iterations.jsonl, status-history.jsonl, latest-status.txt,
    latest-stop-report.json, run-summary.md, rounds/; unattended: supervisor/.
    ls .codex-loop/tasks/parser
 4. The work stays in the workspace, where git sees it; only bookkeeping is in
    .codex-loop/tasks/parser/, which git ignores.
    git status
 5. Several tasks in one repository: list them, show one.
    strict-agent-loop list-tasks --workspace-root .
    strict-agent-loop show-task --workspace-root . --task-id parser
 6. Unattended runs need stop checks, not only words. Besides --stop-command:
    --require-path docs/parser.md --require-text "README.md::nested lists"
    strict-agent-loop check-stop --state .codex-loop/tasks/parser/state.json
 7. Each invocation starts fresh from disk. To resume the same thread instead:
    strict-agent-loop init-state --workspace-root . --task-id parser \\
      --supervisor-resume-existing-thread
 8. If the provider is overloaded, less effort helps (low or medium), also as
    --reasoning-effort of supervise:
    strict-agent-loop init-state --workspace-root . --task-id parser \\
      --supervisor-reasoning-effort low
 9. Ctrl-C or SIGTERM saves the state, exit 130. The same command goes on:
    strict-agent-loop supervise --state .codex-loop/tasks/parser/state.json
10. More prompts to paste are in the skill. This one continues a task:
    codex '$strict-agent-loop Go on with the task parser.'
{FURTHER}"""

install_skill = skill_command("strict-agent-loop", "Fix the parser. Stop when pytest -q passes.")
