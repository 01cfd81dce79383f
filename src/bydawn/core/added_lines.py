"""Lines that came into a task list while a round ran: are they still there?

An agent that writes its own, older copy of the list takes them out again, which no person has decided.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from bydawn.core import checkpoint, tasks
from bydawn.core.values import Line

Source = str | Mapping[str, str]  # a checklist, or the files of a task folder by name

_MOST = 100  # lines that are remembered of one change
_LONGEST = 60  # words of a line that are compared


def box(words: str) -> str:
    """A task as a line of a checklist."""
    return f"- [ ] {words}"


def counts(source: Source, token: str) -> Counter[str]:
    """How often each line is there: boxes, ticked or not, and checkpoints; in a folder, all lines."""
    if not isinstance(source, str):
        return Counter(_key(line) for text in source.values() for line in text.splitlines())
    marks = checkpoint.lines(source, token)
    boxes = tasks.read(source, marks=marks).items
    return Counter(_key(text) for text in (*(box(task.text) for task in boxes), *marks.values()))


def appeared(before: Source, now: Source, known: Counter[str], token: str) -> tuple[Line, ...]:
    """The lines to be done, or to stop at, of which there are more than were `known`."""
    if isinstance(before, str) and isinstance(now, str):
        new = Counter(now.splitlines()) - Counter(before.splitlines())
        if not any("[ ]" in line or (token and token in line) for line in new):
            return ()  # a tick is not worth the time to read a long list
    here = counts(now, token)
    fresh = [line for line in _wanted(now, token) if here[_key(line.text)] > known[_key(line.text)]]
    unique = {(line.file, _key(line.text)): line for line in fresh[:_MOST]}
    return tuple(Line(text=line.text, file=line.file, times=_times(line.text, here)) for line in unique.values())


def gone(source: Source, wanted: Iterable[Line], token: str) -> tuple[Line, ...]:
    """The lines that are not there. One may have got a note at its end, and be ticked."""
    here = counts(source, token)
    return tuple(line for line in wanted if _times(line.text, here) < line.times)


def is_older(source: Source, before: Source, file: str, token: str) -> bool:
    """Is it a copy from before: has it, or this file of it, no line that was not there, but for ticks and notes?"""
    here, then = (
        counts(each if isinstance(each, str) else {file: each.get(file, "")}, token) for each in (source, before)
    )
    return all(any(f"{line} ".startswith(f"{known} ") for known in then) for line in here.keys() - then.keys())


def of_box(words: str, source: str, token: str) -> Line:
    """A task as the line that was added to this list."""
    return Line(text=box(words), times=_times(box(words), counts(source, token)))


def _wanted(source: Source, token: str) -> list[Line]:
    if not isinstance(source, str):
        rows = ((name, line.strip()) for name, text in source.items() for line in text.splitlines())
        return [_line(line, name) for name, line in rows if tasks.words(line)]
    marks = checkpoint.lines(source, token)
    boxes = [box(task.text) for task in tasks.read(source, marks=marks).items if not task.done]
    return [_line(text) for text in (*boxes, *marks.values())]


def _line(text: str, file: str = "") -> Line:
    return Line(text=" ".join(text.split()[:_LONGEST]), file=file)


def _times(text: str, here: Counter[str]) -> int:
    key = _key(text)
    return sum(count for line, count in here.items() if line == key or line.startswith(f"{key} "))


def _key(text: str) -> str:
    """What a line has in common with the same line, ticked."""
    return tasks.words(text) or text.strip()
