"""`strict-agent-loop install-skill`, and how the skill is used, for the help."""

from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.core.text import plain
from bydawn.core.values import Next

# S-004: the ten points that the skill explains, each with a command. One block without empty lines, for click.
HOW = """\
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
    codex '$strict-agent-loop Go on with the task parser.'"""

_PROMPTS = {
    "codex": "codex '$strict-agent-loop Fix the parser. Stop when pytest -q passes.'",
    "claude": "claude '/strict-agent-loop Fix the parser. Stop when pytest -q passes.'",
}


@command(name="install-skill")
@option("--for", "agent", type=click.Choice([*_PROMPTS]), default="codex", show_default=True, help="Which agent.")
@option("--user", is_flag=True, help="For all repositories of yours, not only for this one.")
@option("--force", is_flag=True, help="Over files that were changed; a copy of each is kept.")
def install_skill(agent: str, user: bool, force: bool) -> int:
    """Install the skill where Codex or Claude Code reads it"""
    from bydawn.operations.dialects.strict_agent_loop import skill

    done = skill.install_skill(agent, Path.cwd(), user=user, force=force)
    news = f"{done.new} of {done.files} files written" if done.new else "is up to date"
    click.echo(f"  {plain(done.path)}: {news}")
    for name in done.kept:
        click.echo(f"  {plain(name)}: a copy of yours is beside it")
    render.next_steps([Next(command=_PROMPTS[agent], why="start")])
    return 0
