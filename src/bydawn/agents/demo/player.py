"""The built-in agent itself: reads its prompt from stdin, then plays a script, or the story of `bydawn demo`.

    python -I -S player.py [SCRIPT.json] < PROMPT        BYDAWN_ROUND: the number of the attempt; 0: a question
                                                         BYDAWN_DEMO_PACE=0: the story without its pauses

It speaks JSON lines: `started`, `message`, `activity`, and as the last one `result`. It never imports bydawn.

A script is {"rounds": [[STEP, …], …]}: attempt N plays the N-th list; the last list is repeated. It may have
`"chat": [STEP, …]`, for a question outside any round; without it the story answers. And it may have `"steps": PATH`, a
Python file whose `STEPS` are steps too.

A STEP is an object with one key. Its value is the step's one argument, or an object of arguments by name:

    say TEXT   activity TEXT   result {text, outcome, session, usage, wait_until}
    write {path, text}   append {path, text}   delete PATH
    tick TASK (a box of TODO.md; null: the first open one), or {task, tasks: PATH}
    run ARGV (waits)   commit MESSAGE   sleep SECONDS   exit CODE

A script without `result` ends without one. A script that cannot be played is explained on stderr; exit code 2.
"""

# Started once per round: slow imports are left to the steps that need them, and pathlib is avoided.
# ruff: noqa: PTH100, PTH103, PTH105, PTH107, PTH120, PTH123

from __future__ import annotations

import os
import sys
import time

# The C half of the json package, without the regular expressions that would double our start-up time.
from _json import encode_basestring_ascii, make_encoder, make_scanner

TYPE_CHECKING = False  # as in `typing`, which is slow to import too
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Step = dict[str, Any]

TASKS = "TODO.md"  # where the boxes are
OPEN, TICKED = "[ ]", "[x]"


class Malformed(Exception):
    """The script cannot be played; the text says why."""


class Json:
    """The settings a scanner expects: nothing special."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_int, parse_float, parse_constant = int, float, float


encode = make_encoder(None, str, encode_basestring_ascii, None, ":", ",", False, False, True)


def main(arguments: list[str]) -> None:
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        steps = steps_of_script(arguments[0], prompt) if arguments else steps_of_story(prompt)
        emit("started", session=os.environ.get("BYDAWN_DEMO_SESSION"))
        for step in steps:
            play(step)
    except Malformed as error:
        sys.stderr.write(f"cannot play {arguments[0]}: {error}\n")
        sys.exit(2)


def steps_of_story(prompt: str) -> list[Step]:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # last: nothing here may hide a standard module
    import story  # type: ignore[import-not-found] # to a type checker it is bydawn.agents.demo.story

    steps: list[Step] = story.act(prompt, read) if number_of_round() else story.answer(prompt, read)
    hurry = os.environ.get("BYDAWN_DEMO_PACE") == "0"
    return [step for step in steps if not (hurry and "sleep" in step)]


def number_of_round() -> int:
    return int(os.environ.get("BYDAWN_ROUND", "1"))


def steps_of_script(path: str, prompt: str) -> list[Step]:
    try:
        with open(path, encoding="utf-8") as file:
            script = parse(file.read())
    except (OSError, ValueError) as error:
        raise Malformed(str(error)) from error
    if not isinstance(script, dict):
        raise Malformed("a script is a JSON object")
    if "steps" in script:
        STEPS.update(steps_in(script["steps"]))
    number = number_of_round()
    if number == 0:
        return playable(script["chat"]) if "chat" in script else steps_of_story(prompt)
    match script:
        case {"rounds": [_, *_] as rounds}:
            return playable(rounds[min(number, len(rounds)) - 1])
        case _:
            raise Malformed("it needs `rounds`")


def steps_in(path: str) -> dict[str, Callable[..., None]]:
    """Those of a Python file; a script can run whatever it wants anyway."""
    from importlib.machinery import SourceFileLoader

    loader = SourceFileLoader("steps", path)
    module = type(sys)(loader.name)
    try:
        loader.exec_module(module)
    except OSError as error:
        raise Malformed(str(error)) from error
    steps: dict[str, Callable[..., None]] = module.STEPS
    return steps


def parse(text: str) -> Any:
    """The same as `json.loads`, which is only used if its C half complains, for the better message."""
    text = text.strip()
    try:
        value, end = make_scanner(Json)(text, 0)  # type: ignore[arg-type] # any object with these attributes will do
    except (StopIteration, SystemError, ValueError):
        value, end = None, -1
    if end == len(text):
        return value
    import json

    return json.loads(text)


def playable(steps: Any) -> list[Step]:
    """The steps, checked before the first one is played."""
    if not isinstance(steps, list):
        raise Malformed(f"steps are a list, not {steps!r}")
    for step in steps:
        if not isinstance(step, dict) or len(step) != 1:
            raise Malformed(f"a step is an object with one key, not {step!r}")
        [name] = step
        if name not in STEPS:
            raise Malformed(f"unknown step {name!r}; the steps are {', '.join(STEPS)}")
    return steps


def play(step: Step) -> None:
    [(name, value)] = step.items()
    function = STEPS[name]
    try:
        if isinstance(value, dict):
            function(**value)
        else:
            function(value)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Malformed(f"step {name!r}: {error}") from error


def emit(kind: str, **fields: object) -> None:
    out("".join(encode({"type": kind, **fields}, 0)).encode() + b"\n")


def out(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def read(path: str) -> str:
    """The text of a file, empty if there is none; every byte of it can be written back."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def say(text: str) -> None:
    emit("message", text=text)


def activity(text: str) -> None:
    emit("activity", text=text)


def result(
    text: str = "", outcome: str = "ok", session: str | None = None, usage: Any = None, wait_until: str | None = None
) -> None:
    emit("result", outcome=outcome, text=text, session=session, usage=usage, wait_until=wait_until)


def write(path: str, text: str) -> None:
    """Whole or not at all: a kill in the middle must not leave half a task list."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(f"{path}.new", "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    os.replace(f"{path}.new", path)


def append(path: str, text: str) -> None:
    with open(path, "ab") as file:
        file.write(text.encode())


def delete(path: str) -> None:
    if os.path.lexists(path):
        os.remove(path)


def tick(task: str | None, tasks: str = TASKS) -> None:
    """A missing box is not an error: a round that was killed after this step plays it again."""
    lines = read(tasks).split("\n")
    for number, line in enumerate(lines):
        box, text = box_on(line)
        if box == OPEN and (not task or task == text):
            lines[number] = line.replace(OPEN, TICKED, 1)
            return write(tasks, "\n".join(lines))
    return None


def box_on(line: str) -> tuple[str, str]:
    """The box on a line, if there is one, and its task; fences and comments are left to a real parser."""
    bullet, box, task = line.strip()[:2], line.strip()[2:5], line.strip()[5:]
    return (box, task.strip()) if bullet in ("- ", "* ", "+ ") and box in (OPEN, TICKED) else ("", "")


def run(argv: list[str]) -> None:
    activity(f"ran {' '.join(argv)}: exit code {exit_code(argv)}")


def exit_code(argv: list[str]) -> int:
    """Run a program to its end; its output goes to our stderr, because our stdout is for events."""
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def commit(message: str) -> None:
    """Commit everything, only in the repository of this very folder. Nothing to commit is not an error either."""
    user = ["-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false"]
    git = os.environ.get("BYDAWN_GIT", "git")
    exit_code([git, "--git-dir=.git", "add", "--all"])
    exit_code([git, "--git-dir=.git", *user, "commit", "--quiet", "--no-verify", "--message", message])


STEPS: dict[str, Callable[..., None]] = {
    **{step.__name__: step for step in (say, activity, result, write, append, delete, tick, run, commit)},
    "sleep": time.sleep,
    "exit": sys.exit,
}


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
