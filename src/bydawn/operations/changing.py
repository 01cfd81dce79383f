"""Change the settings of a loop that does not run."""

from pathlib import Path

from bydawn.core.facts import LoopChanged
from bydawn.core.loop import Loop
from bydawn.operations.preconditions import refuse_inside_a_round, user
from bydawn.operations.recording import Say, writing
from bydawn.operations.run_loop import digest_of, stored
from bydawn.operations.steer import refuse_finished, secrets_of
from bydawn.store.registry import Standing
from bydawn.system.writing import replace_private, sync


def change(standing: Standing, new: Loop, say: Say = lambda _: None, *, finished: bool = False) -> None:
    """The new settings are on disk before the fact that has their digest, and in their place after it."""
    refuse_inside_a_round()
    if not finished:  # or it will be run again on purpose
        refuse_finished(standing)
    folder = standing.folder
    with writing(folder, new, secrets_of(standing).hide, say) as writer:
        data = stored(new, folder)
        replace_private(folder.next_settings, data, durable=True)
        writer.add(LoopChanged(settings=digest_of(data), by=user()))
        writer.ledger.sync()
        Path(folder.next_settings).replace(folder.settings)
        sync(folder.path)
