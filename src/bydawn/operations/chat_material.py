"""What an agent is told with a question about a loop: how the loop is doing, its documents, the conversation so far."""

from collections.abc import Sequence
from pathlib import Path

from bydawn.core.chat import Turn
from bydawn.core.chat_prompt import MOST_DOCUMENTS, Material
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop
from bydawn.core.text import near, shorten
from bydawn.operations import detail, documents, tasks, views
from bydawn.operations.edit import DOCUMENTS
from bydawn.store.registry import Standing
from bydawn.system.reading import FileTexts

NONE = "none"  # in place of the name of a document
USUAL = ("todo", "progress", "opinions")  # documents that every question comes with, unless a person says otherwise
_TASK = 300  # characters
_ELSEWHERE = {"Goal", "Said", "Check"}  # rows of `show` that have a section of their own


def material(standing: Standing, turn: Turn, folder: Path, texts: dict[str, str], earlier: Sequence[Turn]) -> Material:
    """Everything that goes into the prompt, in the words that `show` has for it."""
    loop, state = standing.loop, standing.state
    rows = [("State", str(standing.status)), ("Reason", views.reason(standing))]
    rows += [(row.label, row.text) for row in detail.loop_fields(standing) if row.label not in _ELSEWHERE]
    return Material(
        loop=loop.id,
        folder=str(folder),
        question=turn.question,
        facts=[f"{label}: {text}" if label else text for label, text in rows if text],
        goal=loop.prompt,
        tasks=[f"[{task.stand}] {shorten(task.text, _TASK)}" for task in tasks.of_loop(standing).standings.tasks],
        failing=state.failed_checks,
        said=state.last.ended.said if state.last else "",
        documents=texts,
        earlier=earlier,
    )


def quoted(standing: Standing, folder: Path, include: Sequence[str] | None) -> dict[str, str]:
    """The documents to send along, by the name of their file. One that a person asks for has to be there."""
    if include is None:
        paths = filter(None, map(_usual(standing.loop).get, USUAL))
        return {path: text for path in paths if (text := _shown(standing.loop, folder, path))}
    words = [word for word in include if word != NONE]
    if len(words) > MOST_DOCUMENTS:
        cause = f"{len(words)} are named; the limit is {MOST_DOCUMENTS}"
        raise UserError("too many documents", cause=cause, hint="name a few, and ask it to read the others itself")
    return dict(_named(standing, folder, word) for word in words)


def _usual(loop: Loop) -> dict[str, str | None]:
    """The files that a loop has for these words."""
    return {"todo": loop.tasks, "tasks": loop.tasks, "progress": loop.progress, "opinions": loop.opinions}


def _named(standing: Standing, folder: Path, word: str) -> tuple[str, str]:
    """A document by its key, or any file of the project by its path."""
    path = _usual(standing.loop).get(word)
    if path is None and any(each.key == word for each in documents.documents(standing)):
        found = documents.read(standing, word)
        return found.path, found.text
    path = path or DOCUMENTS.get(word, ("", word))[1]
    text = _text(standing.loop, folder, path)
    if text is None:
        hint = f"{near(word, USUAL)}choose from {', '.join(USUAL)} and {NONE}, or name a file of the project"
        raise UserError(f"there is no document {word!r}", cause=f"{path} does not exist in {folder}", hint=hint)
    return path, text


def _shown(loop: Loop, folder: Path, path: str) -> str:
    try:
        return _text(loop, folder, path) or ""
    except UserError as error:
        return f"[… {error.what} …]"


def _text(loop: Loop, folder: Path, path: str) -> str | None:
    if path != loop.tasks:
        return FileTexts(folder).read_text(path, "replace")
    texts = FileTexts(Path(loop.list_root) if Path(loop.list_root).is_dir() else folder)
    if not loop.task_folder:
        return texts.read_text(path, "replace")
    found = texts.read_folder(path)
    return None if found is None else "\n\n".join(f"{name}:\n{text.strip()}" for name, text in found.items())
