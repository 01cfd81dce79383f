"""A project of codex-loop with as much of a record as a test wants; nothing runs."""

from pathlib import Path
from typing import Any

import msgspec

from bydawn.core.facts import AnyFact
from bydawn.core.loop import Loop, SpokenDialect
from bydawn.store.ledger import encode
from bydawn.store.registry import Registry
from core.facts_made import BORN, a_loop, numbered, run_started

LEXER, PARSER, DOCS = "001-lexer", "002-parser", "003-docs"
CONFIG = {"goal": {"summary": "A shop.", "done_when": ["it sells"]}, "verification": {"commands": ["true"]}}


class Project:
    """A project with three tasks."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, Registry().home(root) / "shop"
        for name in (LEXER, PARSER, DOCS):
            (root / "tasks").mkdir(exist_ok=True)
            (root / f"tasks/{name}.md").write_text(f"# {name}\n\nDo it.\n")

    def configured(self, **sections: Any) -> "Project":
        (self.root / "codex-loop.yaml").write_bytes(msgspec.json.encode(CONFIG | sections))
        return self

    def has(self, *facts: AnyFact, name: str = "shop", runs: bool = True, **settings: Any) -> None:
        """What its loop has recorded, a second apart, from noon on."""
        folder, loop = self.folder.with_name(name), self.loop(name, **settings)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "loop.json").write_bytes(msgspec.json.encode(loop))
        every = [BORN, *([run_started()] if runs else ()), *facts]
        (folder / "ledger.jsonl").write_bytes(b"".join(map(encode, numbered(every))))

    def loop(self, name: str, **settings: Any) -> Loop:
        given = {"tasks": "tasks", "task_folder": True, "dialect": SpokenDialect(name="codex-loop")}
        return a_loop(id=name, workspace=str(self.root), **given | settings)

    def printed(self, number: int, text: str, name: str = "stdout") -> None:
        folder = self.folder / f"rounds/{number:04}"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "prompt.md").exists():
            (folder / "prompt.md").write_text("x")
        (folder / name).write_text(text)

    def write(self, path: str, text: str = "x") -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place
