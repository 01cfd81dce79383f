"""The `bydawn` command: answers `--version` at once, and forks a guardian for what starts a loop."""

import gc
import os
import sys

from bydawn import __version__

SECRET = ("--agent-env", "--notify", "--token")  # flags with secret values
STARTERS = ("run", "resume", "demo", "chat")

# Our libraries import them and rarely use them: together a tenth of the start-up time and a megabyte.
LATER = ("bz2", "difflib", "inspect", "ipaddress", "lzma", "tempfile", "textwrap")


def load_later(*names: str) -> None:
    """Load these when they are first used, unless they are loaded already.

    `importlib.util.LazyLoader` would load them with their second `import`, which is what libraries do.
    """
    from _thread import RLock
    from types import ModuleType

    lock = RLock()  # one thread loads a module, others wait for it

    class Later(ModuleType):
        def __getattr__(self, attribute: str) -> object:
            with lock:
                if sys.modules.get(self.__name__) is self:
                    del sys.modules[self.__name__]
                return getattr(__import__(self.__name__), attribute)

    sys.modules.update({name: Later(name) for name in names if name not in sys.modules})


def dialect() -> int:
    """The installed command of another tool, by the name under which it was called."""
    from bydawn import dialects

    name = os.path.basename(sys.argv[0])  # noqa: PTH119 - pathlib would take longer than all the rest
    if name in dialects.TABLE:
        return main(tool=name)
    print(f"error: {name!a} is none of the tools\n hint: call it {', '.join(dialects.TABLE)}", file=sys.stderr)
    return 2


def main(arguments: list[str] | None = None, tool: str = "") -> int:
    """The installed command: of `tool`, or bydawn's own."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _open_what_is_closed()
    if "BYDAWN_ERRORS" in os.environ:
        from bydawn.process import refusals

        refusals.take_over()
    if not tool and arguments in (["--version"], ["version"]):
        print(f"bydawn {__version__}")
        return 0
    load_later(*LATER)
    # msgspec would load it, and it is there because the libraries of the web page need it; `serve` takes this back.
    sys.modules.setdefault("typing_extensions", None)  # type: ignore[arg-type]
    reset_signals()
    gc.disable()  # a short command ends before there is garbage; a worker switches it on again
    secret = secret_flags(tool)
    if any(word.startswith(secret) for word in arguments):
        from bydawn.system.kernel import hide_values

        hide_values(secret)
    if starts_a_loop(arguments, tool):
        # Forked here, while next to nothing is loaded: the guardian stays small for the whole night.
        if may_detach(arguments, tool):
            from bydawn.process.guardian import in_front

            return in_front(lambda front: _guarded(arguments, tool, front))
        return _guarded(arguments, tool)
    return _run(arguments, tool, None)


def _guarded(arguments: list[str], tool: str, front: int = -1) -> int:
    from bydawn.process.guardian import run_guarded

    code, following = run_guarded(lambda tether: _run(arguments, tool, tether), front)
    return _asked(code, following) if following and sys.stdin.isatty() else code


def _asked(code: int, following: list[str]) -> int:
    """The loop has reached a checkpoint and a person is there: ask, and continue at once on yes."""
    sys.stderr.write("\n  Approve this checkpoint and continue? [y/N]: ")
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline().strip().lower()
    except KeyboardInterrupt:
        return code
    if answer in ("y", "yes"):
        program, *words = following
        own = os.path.join(os.path.dirname(sys.argv[0]), program)  # noqa: PTH118, PTH120 - all are beside each other
        os.execv(own, [own, *words])  # noqa: S606 - ourselves
    return code


def _open_what_is_closed() -> None:
    """Without standard streams (`>&-`) the next file to be opened, perhaps the ledger, would become one of them."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)
        sys.stdin = sys.stdin or os.fdopen(0)
        sys.stdout = sys.stdout or os.fdopen(1, "w")
        sys.stderr = sys.stderr or os.fdopen(2, "w")


def reset_signals() -> None:
    """A parent may ignore or block signals for us: then no end of a child is seen, and no limit on its time works.

    Only an ignored SIGHUP has a meaning of its own: a person put `nohup` in front.
    """
    import signal

    ours = {signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ}  # Python ignores the last two for itself
    for number in signal.valid_signals() - ours:
        if signal.getsignal(number) is signal.SIG_IGN:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def secret_flags(tool: str) -> tuple[str, ...]:
    """The flags whose values no other user of the machine may see."""
    if not tool:
        return SECRET
    from bydawn import dialects

    return (*SECRET, *dialects.TABLE[tool].secret_flags)


def starts_a_loop(arguments: list[str], tool: str = "") -> bool:
    """A word with a space can only be a prompt; a single unknown word is a typo and must start nothing."""
    if tool:
        from bydawn import dialects

        return dialects.starts_a_loop(tool, arguments)
    if arguments[:1] == ["resume"] and "--all" in arguments:
        return False  # it starts many, each with a guardian of its own
    if arguments[:1] == ["chat"] and "--history" in arguments:
        return False  # it only looks
    return bool(arguments) and (arguments[0] in STARTERS or " " in arguments[0].strip())


def may_detach(arguments: list[str], tool: str = "") -> bool:
    """Could `-d` be meant? The words are only read in the loop's own process; to wait for it in vain does no harm."""
    if tool:
        from bydawn import dialects

        return dialects.may_detach(tool, arguments)
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return any(word == "--detach" or word.startswith("-d") for word in words)


def _run(arguments: list[str], tool: str, tether: object) -> int:
    from bydawn.cli.program import run

    return run(arguments, tool, tether)
