"""rloop: Claude works through a PRD, one fresh session per task; many projects at once, in the background."""

from bydawn.core.history import counted
from bydawn.core.loop import Loop
from bydawn.dialects.rloop import arguments, config, texts, webhooks
from bydawn.dialects.rloop import files as written
from bydawn.dialects.rloop.config import NAME
from bydawn.dialects.seam import Usual


class Rloop(Usual):
    """How it speaks and what it writes, from its modules."""

    name = NAME
    unit = texts.UNIT
    own = staticmethod(texts.own)
    keys = config.KEYS
    user_file = (config.MOVES, config.USER_FOLDER, config.USER)
    from_config = staticmethod(arguments.from_config)
    counted = staticmethod(counted)
    word = staticmethod(written.word)
    reason = staticmethod(texts.reason)
    exit_code = staticmethod(written.exit_code)
    next_steps = staticmethod(texts.next_steps)
    files = staticmethod(written.files)
    views = staticmethod(written.views)
    heard = staticmethod(written.heard)
    messages = staticmethod(webhooks.messages)

    def go_on(self, loop: Loop) -> list[str]:
        return ["resume", written.words(loop)["session"]]


DIALECT = Rloop()
