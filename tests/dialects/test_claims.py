"""Words that no two loops at work may have in common: refused while the other starts or runs, and only then."""

import os
from contextlib import suppress
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bydawn import dialects
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop
from bydawn.core.loop import SpokenDialect as Spoken
from bydawn.core.redact import Secrets
from bydawn.core.state import LoopState
from bydawn.operations import places
from bydawn.operations.plan import Plan
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.registry import Standing
from bydawn.system.writing import make_private
from dialects.stage import LOOPS, at_work

NIGHT_SHIFT, LOOP = LOOPS["night-shift"]


@pytest.fixture
def root(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "state")


@pytest.fixture(autouse=True)
def _one_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects, "of_loop", lambda _: NIGHT_SHIFT)


def crew(place: Path, name: str, word: str = "a") -> Loop:
    spoken = Spoken(name="night-shift", words={"crew": word})
    (place / name).mkdir(exist_ok=True)
    return replace(LOOP, dialect=spoken, id=name, uid=f"u-{name}", workspace=str(place / name))


def refusal(root: StateFolder, loop: Loop) -> tuple[str, str, int]:
    with pytest.raises(UserError) as refused:
        places.refuse_occupied(root, NIGHT_SHIFT, loop)
    return refused.value.what, refused.value.cause, refused.value.exit_code


def test_one_that_runs_keeps_others_out_in_every_folder_and_is_named_with_its_process(
    root: StateFolder, tmp_path: Path
) -> None:
    one, two = crew(tmp_path, "one"), crew(tmp_path, "two")
    places.refuse_occupied(root, NIGHT_SHIFT, two)
    held = at_work(root, one)
    cause = f"it is pid {os.getpid()}, in {tmp_path}/one"
    assert refusal(root, two) == ("night-shift crew a is running", cause, 8)
    places.refuse_occupied(root, NIGHT_SHIFT, crew(tmp_path, "two", "b"))
    places.refuse_occupied(root, NIGHT_SHIFT, one)  # the same loop
    held.release()
    places.refuse_occupied(root, NIGHT_SHIFT, two)


def _starts(planned: Plan, answers: Connection) -> None:
    """What a worker does from its lock on, until others can see it at work."""
    try:
        held = places.take(planned)
        if not planned.standing:
            with places.turn(planned):
                planned.folder.settings.write_bytes(msgspec.json.encode(planned.loop))
        answers.send("at work")
        answers.recv()
        held.release()
    except UserError as error:
        answers.send(error.what)


@pytest.mark.parametrize("goes_on", [(False, False, False), (True, True, True), (True, False, True)])
def test_of_three_that_start_at_once_one_is_at_work(goes_on: tuple[bool, ...], tmp_path: Path) -> None:
    """New ones, and ones that go on."""
    for number in range(15):
        place, root = tmp_path / str(number), StateFolder(tmp_path / str(number) / "state")
        place.mkdir()
        plans, answers = [], []
        for name, again in zip("abc", goes_on, strict=True):
            loop, folder = crew(place, name), LoopFolder(root.loops / "home" / name)
            make_private(folder.path)
            if again:
                folder.settings.write_bytes(msgspec.json.encode(loop))
            standing = Standing(folder=folder, loop=loop, state=LoopState(), alive=False) if again else None
            plans.append(Plan(loop=loop, folder=folder, secrets=Secrets({}), standing=standing))
        for plan in plans:
            mine, theirs = Pipe()
            get_context("fork").Process(target=_starts, args=(plan, theirs), daemon=True).start()
            answers.append(mine)
        assert sorted(each.recv() for each in answers) == ["at work", *["night-shift crew a is running"] * 2]
        for each in answers:
            with suppress(OSError):
                each.send("enough")
