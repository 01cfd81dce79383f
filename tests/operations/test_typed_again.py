"""Does the command that a loop offers start the same loop again?"""

import shlex
from pathlib import Path

import pytest

from bydawn.cli.options import given_by_flags
from bydawn.cli.start import run
from bydawn.core import kinds
from bydawn.core.loop import Loop, differences
from bydawn.operations.loop_request import loop_request
from bydawn.operations.settings import gather
from bydawn.operations.start import typed_again
from bydawn.settings.setting import Setting
from bydawn.settings.table import TABLE

OF_NO_LOOP = {"prompt", "plain", "state_dir"}
NEVER = {row.key for row in TABLE if row.secret or row.kind is kinds.MOMENT} | {"template"}
TYPED = [row for row in TABLE if row.flags and row.key not in OF_NO_LOOP | NEVER]
NEEDED = ["do it", "-a", "demo", "-k", "true", "--pre-round", "x", "-t", "TODO.md", "--session", "resume"]


def asked_for(words: list[str], workspace: Path) -> Loop:
    with run.make_context("run", [*words]) as context:
        flags = given_by_flags({**context.params, "state_dir": None})
        prompt = context.params["prompt"]
    loop = loop_request(gather(None, flags), workspace).loop
    return Loop(**{name: getattr(loop, name) for name in loop.__struct_fields__} | {"prompt": prompt})


def unusual(row: Setting) -> str:
    """A value that is not the default."""
    if "30" in row.kind.example or "1GB" in row.kind.example:  # as some limits have it anyway
        return row.kind.example.replace("30", "7").replace("1", "7")
    words: tuple[str, ...] = dict(row.kind.schema).get("enum", ())
    return words[-1] if words and words[-1] != row.otherwise else words[0] if words else row.kind.example


@pytest.mark.parametrize("row", TYPED, ids=lambda row: row.key)
def test_every_setting_can_be_typed_again(row: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = [row.flags[0]] if row.kind is kinds.SWITCH else [row.flags[0], unusual(row)]
    if row.key == "worktree":
        words = ["--worktree=on"]
    if row.key.startswith("done_"):
        words += ["--done-when", "DONE"]
    loop = asked_for([*NEEDED, *words], tmp_path)
    command, left_out = typed_again(loop)
    assert left_out == ""
    assert row.flags[0] in command
    again = asked_for([word for word in shlex.split(command.words) if word not in ("run", "--new")], tmp_path)
    assert differences(loop, again) == []
