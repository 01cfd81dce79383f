"""Nights in which the agent's own commands fail."""

from itertools import repeat

from bydawn.core.agent import CommandEnded
from bydawn.core.facts import RoundEnded
from bydawn.core.values import End
from engine.night import DONE, Night, Play


def failed(command: str, output: str, code: int = 1) -> CommandEnded:
    return CommandEnded(command=command, failed=True, exit_code=code, output=output)


WORKED = CommandEnded(command="ls", failed=False, exit_code=0)


def broken(second: int = 0) -> CommandEnded:
    return failed(
        "pytest -q", f"starting\n[12:00:{second:02}] bwrap: execvp /tmp/x{second}/sh: No such file or directory\n"
    )


def test_a_night_in_which_no_command_works_ends_after_three_rounds_with_the_error() -> None:
    """Only what varies from run to run differs between the rounds: that is the same error."""
    night = Night(Play(runs=(broken(number), broken(number + 1))) for number in range(9))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule, night.state.round) == (End.FAILED, "commands-failed", 3)
    assert stopped.reason.startswith("3 rounds in a row, every command failed: [12:00:03] bwrap: execvp")
    assert [fact.commands.ran for fact in night.facts(RoundEnded)] == [2, 2, 2]


def test_the_next_prompt_says_that_every_command_failed_and_quotes_the_error_as_data() -> None:
    night = Night([Play(runs=(broken(),)), Play(runs=(broken(), WORKED)), Play(says=DONE)])
    night.run()
    fence = night.prompt(2).partition("<<")[2].partition("\n")[0]
    quoted = f"<<{fence}\n[12:00:00] bwrap: execvp /tmp/x0/sh: No such file or directory\n{fence}>>"
    assert "## Every command failed" in night.prompt(2)
    assert quoted in night.prompt(2)
    assert "Every command failed" not in night.prompt(3)


def test_an_agent_that_runs_nothing_is_not_blamed_for_commands() -> None:
    night = Night(repeat("thinking"))
    assert night.run().decided.rule == "no-progress"
