"""A loop that is complete goes on only if that is meant: then new tasks are found, and its settings may change."""

from pathlib import Path

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import LoopChanged
from bydawn.core.redact import Secrets
from bydawn.core.values import End
from bydawn.operations import changing, resume
from bydawn.operations.run_loop import creation_of, refuse_if_overtaken
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger, records
from bydawn.store.registry import Registry, Standing, standing_of
from core.facts_made import a_loop, a_round, run_started, stopped


@pytest.fixture
def complete(tmp_path: Path) -> Standing:
    """A loop that has ended well, on the disk."""
    folder = LoopFolder(Registry(tmp_path / "state").home(tmp_path) / "night")
    folder.path.mkdir(parents=True)
    loop = a_loop(workspace=str(tmp_path))
    settings = msgspec.json.encode(loop)
    folder.settings.write_bytes(settings)
    ledger = LoopLedger(folder, print, str)
    for fact in (creation_of(loop, settings), run_started(), *a_round(1), stopped(End.COMPLETE)):
        ledger.append(fact)
    ledger.close()
    standing = standing_of(folder)
    assert standing
    return standing


def test_it_is_planned_again_only_on_purpose(complete: Standing) -> None:
    with pytest.raises(UserError, match="is already complete"):
        resume.plan(complete, Secrets({}))
    refuse_if_overtaken(resume.plan(complete, Secrets({}), finished=True), complete.state)
    usual = msgspec.structs.replace(resume.plan(complete, Secrets({}), finished=True), finished=False)
    with pytest.raises(UserError, match="another process was faster"):
        refuse_if_overtaken(usual, complete.state)


def test_its_settings_change_only_on_purpose(complete: Standing) -> None:
    new = msgspec.structs.replace(complete.loop, prompt="more of it")
    with pytest.raises(UserError, match="is already complete"):
        changing.change(complete, new)
    changing.change(complete, new, finished=True)
    assert complete.folder.read_loop().prompt == "more of it"
    assert isinstance([*records(complete.folder)][-1].fact, LoopChanged)
