"""What a person is advised to do: commands that exist, for every state a loop can be in."""

import shlex
import subprocess
from pathlib import Path

import click
import pytest
from msgspec.structs import replace

from bydawn.cli.program import bydawn
from bydawn.operations.detail import loop_fields
from bydawn.operations.leftovers import with_leftovers
from bydawn.operations.next_steps import next_steps
from bydawn.operations.views import reason
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Left, Registry, standing_of
from driving import wait_for
from operations.stories import STORIES, held, home_of, write_loop


def steps(root: Path, name: str) -> list[str]:
    write_loop(root, name)
    with held(root, name):
        standing = standing_of(LoopFolder(home_of(root, name) / name))
    assert standing
    return [step.command for step in next_steps(standing)]


@pytest.mark.parametrize("name", [name for name, story in STORIES.items() if not story.alive])
def test_every_command_of_ours_can_be_typed(name: str, tmp_path: Path) -> None:
    commands = steps(tmp_path, name)
    assert commands
    for command in commands:
        program, *words = shlex.split(command)
        if program == "bydawn":
            context = click.Context(bydawn, **bydawn.context_settings)
            found, parser, rest = bydawn.resolve_command(context, words)
            assert parser, command
            parser.make_context(found, rest, parent=context).close()


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("complete", "bydawn show complete"),
        ("blocked", 'bydawn tell blocked "…"'),
        ("question", 'bydawn tell question "…"'),
        ("limit", "bydawn resume limit --rounds +20"),
        ("folder", "bydawn tasks reopen folder 1"),
        ("auth", "codex login"),
        ("checkpoint", "bydawn show checkpoint"),
        ("crashed", "bydawn resume crashed"),
    ],
)
def test_the_most_useful_step_comes_first(name: str, first: str, tmp_path: Path) -> None:
    assert steps(tmp_path, name)[0] == first


def test_at_a_limit_changed_tests_that_were_refused_can_be_taken(tmp_path: Path) -> None:
    write_loop(tmp_path, "limit")
    standing = standing_of(LoopFolder(home_of(tmp_path, "limit") / "limit"))
    assert standing
    proofs = replace(standing.state.proofs, refused=("tests/test_app.py",))
    refused = replace(standing, state=replace(standing.state, proofs=proofs))
    assert "bydawn resume limit --rounds +20 --accept" in [step.command for step in next_steps(refused)]


@pytest.mark.parametrize("name", STORIES)
def test_no_history_is_read_for_them(name: str, tmp_path: Path) -> None:
    """`status --json` offers them for a thousand loops, and has read only their last states."""
    write_loop(tmp_path, name)
    folder = LoopFolder(home_of(tmp_path, name) / name)
    standing = standing_of(folder)
    assert standing
    offered = next_steps(standing)
    folder.ledger.unlink()
    assert next_steps(standing) == offered


def test_what_a_crash_left_running_is_ended_first(tmp_path: Path) -> None:
    write_loop(tmp_path, "crashed")
    standing = standing_of(LoopFolder(home_of(tmp_path, "crashed") / "crashed"))
    assert standing
    left = replace(standing, left=(Left(pid=7, command="sleep 600"),))
    assert [step.command for step in next_steps(left)] == ["bydawn stop crashed", "bydawn resume crashed"]
    assert reason(left).endswith("; still running: sleep 600 (pid 7)")


def test_what_is_left_is_found_by_the_mark_of_its_loop_if_that_has_crashed(tmp_path: Path) -> None:
    for name in ("stopped", "crashed"):
        write_loop(tmp_path, name)
    found = Registry(tmp_path / "state").everywhere()
    cookie = {"BYDAWN_COOKIE": f"{found[0].loop.uid}.1.ab"}
    with subprocess.Popen(["sleep", "600"], env=cookie, start_new_session=True) as process:
        about = Path(f"/proc/{process.pid}")
        wait_for(lambda: b"BYDAWN" in (about / "environ").read_bytes())  # it is empty for a moment after the exec
        left = {each.loop.id: each.left for each in with_leftovers(found)}
        process.kill()
    assert left == {"stopped": (), "crashed": (Left(pid=process.pid, command="sleep 600"),)}


def test_the_commands_are_the_same_wherever_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYDAWN_AS", "scripts/bydawn")
    assert steps(tmp_path, "stopped")[0] == "bydawn resume stopped"


def test_a_question_comes_first_of_all_that_is_shown_and_its_label_fits(tmp_path: Path) -> None:
    write_loop(tmp_path, "question")
    standing = standing_of(LoopFolder(home_of(tmp_path, "question") / "question"))
    assert standing
    fields = list(loop_fields(standing))
    assert (fields[0].label, fields[0].text) == ("Asks", "“three”: which rate?")
    assert max(len(field.label) for field in fields) < 8
