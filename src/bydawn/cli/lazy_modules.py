"""Modules of Python's that are loaded when something of them is first used.

Our libraries import them at their top and hardly ever use them. `importlib.util.LazyLoader` would do, but with Python
3.11 a second `import` of such a module, which is what a library's own line is, already loads it.
"""

import sys
from _thread import RLock
from importlib.util import find_spec, module_from_spec
from types import ModuleType

_LOCK = RLock()  # of two threads one loads, and the other waits for it


class _Later(ModuleType):
    def __getattr__(self, name: str) -> object:
        """Asked only for what is not there."""
        with _LOCK:
            loader = self.__dict__.pop("_loader_of_later", None)
            if loader:
                loader.exec_module(self)
        return self.__getattribute__(name)


def load_later(*names: str) -> None:
    """Let these wait, unless they are there already."""
    for name in names:
        spec = find_spec(name) if name not in sys.modules else None
        if spec and spec.loader:
            module = sys.modules[name] = module_from_spec(spec)
            module.__dict__["_loader_of_later"] = spec.loader
            module.__class__ = _Later
