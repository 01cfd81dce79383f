"""Words that no two loops at work may have in common: refused while the other starts or runs, and only then."""

import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bydawn import dialects
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop
from bydawn.core.loop import SpokenDialect as Spoken
from bydawn.operations import places
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.lock import Lock
from bydawn.system.writing import make_private
from dialects.stage import LOOPS

NIGHT_SHIFT, LOOP = LOOPS["night-shift"]


@pytest.fixture
def root(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "state")


def crew(place: Path, name: str, word: str = "a") -> Loop:
    spoken = Spoken(name="night-shift", words={"crew": word})
    (place / name).mkdir(exist_ok=True)
    return replace(LOOP, dialect=spoken, id=name, uid=f"u-{name}", workspace=str(place / name))


def refusal(root: StateFolder, loop: Loop) -> tuple[str, str, int]:
    with pytest.raises(UserError) as refused:
        places.reserve(root, NIGHT_SHIFT, loop)
    return refused.value.what, refused.value.cause, refused.value.exit_code


def test_one_that_is_being_started_keeps_others_out_in_every_folder(root: StateFolder, tmp_path: Path) -> None:
    places.reserve(root, NIGHT_SHIFT, crew(tmp_path, "one"))
    cause = f"it is being started, in {tmp_path}/one"
    assert refusal(root, crew(tmp_path, "two")) == ("night-shift crew a is running", cause, 8)
    places.reserve(root, NIGHT_SHIFT, crew(tmp_path, "two", "b"))
    places.reserve(root, NIGHT_SHIFT, crew(tmp_path, "one"))  # the same loop


def test_one_that_runs_is_named_with_its_process(
    root: StateFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialects, "of_loop", lambda _: NIGHT_SHIFT)
    one, two = crew(tmp_path, "one"), crew(tmp_path, "two")
    folder = LoopFolder(root.loops / "one-0" / "one")
    make_private(folder.path)
    folder.settings.write_bytes(msgspec.json.encode(one))
    held = Lock.take(folder.lock)
    held.sign("run")
    assert refusal(root, two)[1] == f"it is pid {os.getpid()}, in {tmp_path}/one"
    held.release()
    places.reserve(root, NIGHT_SHIFT, two)


def test_a_reservation_ends_when_the_run_has_begun_whoever_else_holds_it(root: StateFolder, tmp_path: Path) -> None:
    """One command that resumes many loops reserves for all of them, and then forks each."""
    one, two = crew(tmp_path, "one"), crew(tmp_path, "two")
    places.reserve(root, NIGHT_SHIFT, one)
    waits, goes_on = os.pipe()
    if (other := os.fork()) == 0:
        os.close(goes_on)
        os.read(waits, 1)
        os._exit(0)
    try:
        places.release(one)
        places.reserve(root, NIGHT_SHIFT, two)
    finally:
        os.close(goes_on)
        os.close(waits)
        os.waitpid(other, 0)
