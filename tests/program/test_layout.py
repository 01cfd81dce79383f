"""One place knows where things are on disk."""

from pathlib import Path

import pytest

from bydawn.core import layout
from bydawn.store.folder import LoopFolder, StateFolder

SOURCE = Path(__file__).parents[2] / "src/bydawn"
KNOW_IT = {SOURCE / "store/folder.py", SOURCE / "core/layout.py"}
# Files of their own that have the same name.
THEIRS = {'"state.json"': {SOURCE / "dialects/rloop/config.py", SOURCE / "dialects/strict_agent_loop/paths.py"}}


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
            '"lines.json"',
        ),
        *(':04}"', 'f"before/', 'f"after/', "refs/bydawn", "parents[2]", '"cool-downs"', '/ "rounds"', '/ "inbox"'),
    ],
)
def test_no_other_module_spells_a_name_in_a_loops_folder(spelled: str) -> None:
    found = {path for path in SOURCE.rglob("*.py") if spelled in path.read_text()}
    assert found <= KNOW_IT | THEIRS.get(spelled, set())


def test_the_folder_of_a_loop_leads_to_everything_about_it() -> None:
    folder = LoopFolder(Path("/state/loops/shop-1a2b/night"))
    assert str(folder.round_file(7, "stdout")) == f"{folder}/rounds/0007/stdout"
    assert folder.round(7).parent == folder.rounds
    assert str(folder.state_folder.cool_downs) == "/state/cool-downs"


def test_loops_of_older_versions_are_found_where_they_are() -> None:
    """Another name on disk would be another loop."""
    state = StateFolder(Path("s"))
    assert [state.loops, state.cool_downs, state.places, state.trust] == [
        *map(Path, ("s/loops", "s/cool-downs", "s/places", "s/trust"))
    ]
    loop = LoopFolder(Path("s/loops/shop-1/night"))
    assert loop.state_folder == state
    names = (loop.settings, loop.ledger, loop.snapshot, loop.reserve, loop.lock, loop.inbox, loop.git, loop.rounds)
    assert [loop.checkouts, loop.temporary] == [loop.path / "checkouts", loop.path / "tmp"]
    known = ("loop.json", "ledger.jsonl", "state.json", "reserve", "lock", "inbox", "git", "rounds")
    assert [path.name for path in names] == [*known]
    assert loop.round_file(7, layout.STDOUT) == loop.path / "rounds/0007/stdout"
    assert [layout.PROMPT, layout.STDERR, layout.REPLY] == ["prompt.md", "stderr", "reply.md"]
    assert [layout.MARKS, layout.WRITTEN] == ["marks.json", "written.json"]
    assert [layout.check_output(1), layout.hook_output("pre_round")] == ["check-1.txt", "hook-pre_round.txt"]
    assert layout.ref_of(layout.tree_after(3)) == "refs/bydawn/after/3"
    assert layout.ref_of(layout.tree_before(3)) == "refs/bydawn/before/3"
