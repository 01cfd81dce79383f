"""The reference for a round, made from a trace of one: in C, or in shell where there is no compiler."""

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.stage import Stage
from benchmarks.strace import Child, Round

_SOURCE = Path(__file__).with_name("reference.c")
_TREE = re.compile(rb"\b[0-9a-f]{40}\b")


class Reference:
    """Repeats the children and syncs of a round, in the workspace where they were seen."""

    def __init__(self, stage: Stage, seen: Round, workspace: Path) -> None:
        self._stage = stage
        self._folder = stage.place("reference")
        self._arguments = (str(workspace), str(self._folder))
        self._next = 100_000  # never a round that has been before: an old ref costs less than a new one
        compiler = shutil.which("cc")
        self._program = self._in_c(seen, compiler) if compiler else self._in_shell(seen)

    def seconds(self, rounds: int) -> float:
        """How long so many rounds take."""
        first, self._next = self._next, self._next + rounds
        return self._stage.seconds(*self._program, *self._arguments, str(first), str(rounds))

    def _in_c(self, seen: Round, compiler: str) -> tuple[str, ...]:
        program, plan = self._folder / "program", self._folder / "plan"
        self._stage.seconds(compiler, "-O2", "-o", str(program), str(_SOURCE))
        plan.write_bytes(b"".join(word + b"\0" for word in self._plan(seen)))
        return str(program), str(plan)

    def _plan(self, seen: Round) -> Iterator[bytes]:
        for number, step in enumerate(seen.steps):
            if not isinstance(step, Child):
                yield b"sync"
                continue
            yield from (b"spawn", b"pipe" if step.is_git else b"files", bytes(self._stdin(number, step, seen)))
            argv = [_open(word, seen.number) for word in step.argv] if step.is_git else step.argv
            for words in (argv, step.env):
                yield from (str(len(words)).encode(), *words)

    def _stdin(self, number: int, step: Child, seen: Round) -> Path:
        path = self._folder / f"{number}.stdin"
        path.write_bytes(_open(step.stdin, seen.number) if step.is_git else step.stdin)
        return path

    def _in_shell(self, seen: Round) -> tuple[str, ...]:
        """Each sync costs a process here, so the reference is slower and we look better than we are."""
        print(
            "bench: no C compiler (apt-get install gcc); the reference for a round is a shell script", file=sys.stderr
        )
        script = self._folder / "script"
        steps = "\n".join(self._line(number, step, seen) for number, step in enumerate(seen.steps))
        script.write_text(
            f'cd "$1"; round=$3; end=$(($3 + $4))\nwhile [ $round -lt $end ]; do\n{steps}\nround=$((round + 1))\ndone\n'
        )
        return "/bin/sh", str(script)

    def _line(self, number: int, step: object, seen: Round) -> str:
        if not isinstance(step, Child):
            return 'echo x >>"$2/ledger"; sync -d "$2/ledger"'
        words = [_open(word, seen.number).decode() if step.is_git else word.decode() for word in step.argv]
        command = " ".join((*(_assignment(each.decode()) for each in step.env), *map(_quoted, words)))
        stdin = self._stdin(number, step, seen)
        if step.is_git:
            return f"said=$({command} <{stdin} 2>/dev/null); [ ${{#said}} = 40 ] && tree=$said"
        return f'{command} <{stdin} >"$2/$round.{number}.stdout" 2>"$2/$round.{number}.stderr"'


def _open(text: bytes, number: int) -> bytes:
    """With places for what differs from round to round."""
    text = re.sub(rb"(refs/[\w/]*/)%d\b" % number, rb"\g<1>@ROUND@", text)
    return _TREE.sub(b"@TREE@", text)


def _assignment(variable: str) -> str:
    name, _, value = variable.partition("=")
    return f"{name}={shlex.quote(value)}"


def _quoted(word: str) -> str:
    return shlex.quote(word).replace("@ROUND@", "'$round'").replace("@TREE@", "'$tree'")
