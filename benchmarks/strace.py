"""What one round asks of the system, seen by strace: the children it starts and the syncs it waits for."""

import ast
import re
from pathlib import Path

import msgspec

from benchmarks.stage import BYDAWN, Broken, Stage

_SYNCS = ("fsync", "fdatasync", "sync_file_range", "sync", "syncfs")
_FORKS = ("clone", "clone3", "fork", "vfork")
_CALLS = ",".join(("execve", "read", *_FORKS, *_SYNCS))
_LINE = re.compile(rb"(?P<at>[\d.]+) (?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>\d+)", re.DOTALL)
_LIST = re.compile(rb'\[((?:"(?:[^"\\]|\\.)*"(?:, )?)*)\]')
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ROUNDS, _SEEN = 6, 4  # the round that is looked at is neither the first nor the last


class Call(msgspec.Struct, frozen=True):
    """A system call that went well."""

    at: float
    pid: int
    name: str
    arguments: bytes
    result: int


class Child(msgspec.Struct, frozen=True):
    """A program that the worker starts, and what it read from its standard input."""

    argv: list[bytes]
    env: list[bytes]
    stdin: bytes

    @property
    def is_git(self) -> bool:
        return self.argv[0].rpartition(b"/")[2] == b"git"


class Sync(msgspec.Struct, frozen=True):
    """The worker itself waits for the disk."""


class Round(msgspec.Struct, frozen=True):
    """One round: its steps in order, and all syncs in it, those of git included."""

    number: int
    steps: list[Child | Sync]
    syncs: int

    @property
    def git_calls(self) -> int:
        return sum(isinstance(step, Child) and step.is_git for step in self.steps)


def run_command(workspace: Path, script: Path, rounds: int) -> tuple[str, ...]:
    """The loop whose rounds are looked at: snapshots, one check, a task list that stays open."""
    agent = ("-a", f"demo:{script}")
    limits = ("-n", str(rounds), "--max-no-change", "0", "--max-no-task-done", "0")
    return (BYDAWN, "run", "go on", "-C", str(workspace), "-t", "TODO.md", "-k", "true", *agent, *limits, "--plain")


def one_round(stage: Stage, strace: str, workspace: Path, script: Path) -> Round:
    """Run a few rounds under strace and take one of them apart."""
    folder = stage.place("strace")
    options = ("-ff", "-ttt", "-v", "-s", "65536", "-e", f"trace={_CALLS}", "-e", "status=successful")
    command = run_command(workspace, script, _ROUNDS)
    stage.seconds(strace, *options, "-o", str(folder / "trace"), *command, code=4)
    calls = sorted((call for path in folder.iterdir() for call in _calls(path)), key=lambda call: call.at)
    return _round(calls)


def _calls(path: Path) -> list[Call]:
    """The calls of one process: with -ff each has its own file, and no call is split into two lines."""
    pid = int(path.suffix[1:])
    matches = (_LINE.fullmatch(line.strip()) for line in path.read_bytes().splitlines())
    return [
        Call(float(match["at"]), pid, match["call"].decode(), match["arguments"], int(match["result"]))
        for match in matches
        if match
    ]


def _round(calls: list[Call]) -> Round:
    agents = [call for call in calls if call.name == "execve" and b"player.py" in call.arguments.partition(b"]")[0]]
    if len(agents) != _ROUNDS:
        raise Broken(f"strace saw {len(agents)} agents in {_ROUNDS} rounds")
    first, after = agents[_SEEN - 1 : _SEEN + 1]
    worker = next(call.pid for call in calls if call.name in _FORKS and call.result == first.pid)
    children = {call.result for call in calls if call.name in _FORKS and call.pid == worker}
    within = [call for call in calls if first.at <= call.at < after.at]
    steps: list[Child | Sync] = []
    for call in within:
        if call.name == "execve" and call.pid in children:
            steps.append(_child(call, calls))
        elif call.name in _SYNCS and call.pid == worker:
            steps.append(Sync())
    return Round(_SEEN, steps, sum(call.name in _SYNCS for call in within))


def _child(call: Call, calls: list[Call]) -> Child:
    argv, env = ([_text(each) for each in _STRING.findall(found)] for found in _LIST.findall(call.arguments)[:2])
    reads = (each for each in calls if each.pid == call.pid and each.name == "read" and each.arguments[:2] == b"0,")
    return Child(argv, env, b"".join(_text(text) for each in reads for text in _STRING.findall(each.arguments)))


def _text(quoted: bytes) -> bytes:
    """What stands between strace's quotes, which are those of C and nearly those of Python."""
    text = ast.literal_eval('b"' + quoted.decode("ascii") + '"')
    return bytes(text)
