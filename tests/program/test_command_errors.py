"""An error of a command that we start crosses as a value, on a pipe of its own."""

import os
import subprocess
import sys

from bydawn.core.errors import OwnFailure
from bydawn.process.refusals import Ear

COMMAND = """\
import subprocess, sys
from bydawn.process import refusals
refusals.take_over()
child = "echo ${BYDAWN_ERRORS-none}; ls /proc/self/fd | wc -l"
subprocess.run(["sh", "-c", child], stdout=2, close_fds=False)
refusals.tell(int(sys.argv[1]), "no", "it can run:\\ncheck: a\\nerror: b", "trust it" * int(sys.argv[2]))
"""


def asked(ear: Ear, *words: str) -> list[str]:
    argv = [sys.executable, "-c", COMMAND, *words]
    ran = subprocess.run(argv, env=ear.variables(os.environ), pass_fds=[ear.fd], stderr=subprocess.PIPE, check=True)
    return ran.stderr.decode().split()


def test_an_error_crosses_with_all_its_lines_and_its_code() -> None:
    with Ear() as ear:
        asked(ear, "8", "1")
        error = ear.error(8)
    assert (error.what, error.cause, error.hint) == ("no", "it can run:\ncheck: a\nerror: b", "trust it")
    assert error.exit_code == 8


def test_a_long_error_does_not_block_the_command() -> None:
    with Ear() as ear:
        asked(ear, "2", "1000000")
        error = ear.error(2)
    assert error.hint.startswith("trust it") and len(error.hint) == 10_000


def test_what_the_command_starts_gets_neither_the_variable_nor_the_pipe() -> None:
    with Ear() as ear:
        variable, files = asked(ear, "2", "1")
        plain = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l"], stdout=subprocess.PIPE, check=True)
    assert variable == "none"
    assert int(files) <= int(plain.stdout)


def test_a_command_that_says_nothing_has_failed_with_the_end_of_what_it_printed() -> None:
    with Ear() as ear:
        assert ear.heard() is None
        silent, printed = ear.error(-9), ear.error(1, b"a\nTraceback: x\n")
    assert isinstance(silent, OwnFailure)
    assert (silent.cause, printed.cause) == ("exit code -9", "a\nTraceback: x")
