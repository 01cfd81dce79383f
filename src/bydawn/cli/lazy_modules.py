"""Load modules of the standard library when they are first used.

Our libraries import them and hardly ever use them. `importlib.util.LazyLoader` would do, but in Python 3.11 a second
`import` of such a module, which is what the library does, already loads it.
"""

import sys
from _thread import RLock
from importlib.util import find_spec, module_from_spec
from types import ModuleType

_LOCK = RLock()  # one thread loads the module, others wait for it


class _Later(ModuleType):
    def __getattr__(self, name: str) -> object:
        """Called only for attributes that are not there yet."""
        with _LOCK:
            loader = self.__dict__.pop("_loader_of_later", None)
            if loader:
                loader.exec_module(self)
        return self.__getattribute__(name)


def load_later(*names: str) -> None:
    """Load these later, unless they are loaded already."""
    for name in names:
        spec = find_spec(name) if name not in sys.modules else None
        if spec and spec.loader:
            module = sys.modules[name] = module_from_spec(spec)
            module.__dict__["_loader_of_later"] = spec.loader
            module.__class__ = _Later
