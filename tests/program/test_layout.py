"""One place knows where things are on disk."""

from pathlib import Path

import pytest

from bydawn.store.folder import LoopFolder

SOURCE = Path(__file__).parents[2] / "src/bydawn"
KNOW_IT = {SOURCE / "store/folder.py", SOURCE / "core/layout.py"}


@pytest.mark.parametrize(
    "spelled",
    [
        *(
            '"loop.json"',
            '"ledger.jsonl"',
            '"state.json"',
            '"prompt.md"',
            '"reply.md"',
            '"written.json"',
            '"appended.json"',
        ),
        *(':04}"', 'f"before/', 'f"after/', "refs/bydawn", "parents[2]", '"cool-downs"', '/ "rounds"', '/ "inbox"'),
    ],
)
def test_no_other_module_spells_a_name_in_a_loops_folder(spelled: str) -> None:
    assert {path for path in SOURCE.rglob("*.py") if spelled in path.read_text()} <= KNOW_IT


def test_the_folder_of_a_loop_leads_to_everything_about_it() -> None:
    folder = LoopFolder(Path("/state/loops/shop-1a2b/night"))
    assert str(folder.round_file(7, "stdout")) == f"{folder}/rounds/0007/stdout"
    assert folder.round(7).parent == folder.rounds
    assert str(folder.state_folder.cool_downs) == "/state/cool-downs"
