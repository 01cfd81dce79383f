"""codex-loop: a goal becomes tasks, tasks become commits on a branch, verification has the last word."""

from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.dialects.codex_loop import arguments, codes, config, texts
from bydawn.dialects.codex_loop import files as written
from bydawn.dialects.codex_loop.config import NAME
from bydawn.dialects.seam import Usual


class CodexLoop(Usual):
    """How it speaks and what it writes, from its modules."""

    name = NAME
    unit = texts.UNIT
    splits_output = True
    own = staticmethod(texts.own)
    keys = config.KEYS
    from_config = staticmethod(arguments.from_config)
    word = staticmethod(codes.word)
    reason = staticmethod(texts.reason)
    exit_code = staticmethod(codes.exit_code)
    next_steps = staticmethod(texts.next_steps)
    hook_words = staticmethod(texts.hook_words)
    files = staticmethod(written.files)
    views = staticmethod(written.views)

    def counted(self, state: LoopState) -> int:
        """Every attempt has its number, for life; the files of an iteration have it in their names."""
        return state.round

    def go_on(self, loop: Loop) -> list[str]:
        return ["run", "--project-dir", loop.workspace]


DIALECT = CodexLoop()
