"""codex-autorunner: Codex works through a TODO list, three documents travel with every prompt, one log tells it all."""

from bydawn.core.keys import Checked
from bydawn.core.loop import Loop
from bydawn.dialects.codex_autorunner import arguments, config, texts
from bydawn.dialects.codex_autorunner import files as written
from bydawn.dialects.codex_autorunner.config import NAME
from bydawn.dialects.seam import Usual


class CodexAutorunner(Usual):
    """How it speaks and what it writes, from its modules."""

    name = NAME
    unit = texts.UNIT
    own = staticmethod(texts.own)
    keys = config.KEYS
    from_config = staticmethod(arguments.from_config)
    counted = staticmethod(written.run_id)
    word = staticmethod(written.word)
    reason = staticmethod(texts.reason)
    exit_code = staticmethod(written.exit_code)
    next_steps = staticmethod(texts.next_steps)
    files = staticmethod(written.files)
    views = staticmethod(written.views)
    heard = staticmethod(written.heard)

    def go_on(self, loop: Loop) -> list[str]:
        return ["run", "--repo", loop.workspace]

    def documents(self, found: Checked) -> dict[str, str]:
        return {extra.name: extra.path for extra in config.read(found).extras}


DIALECT = CodexAutorunner()
