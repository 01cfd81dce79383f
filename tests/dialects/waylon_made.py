"""Loops as people ask waylon-smithers for them, and what becomes of its files; all of it without a disk."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bydawn.core.facts import AnyFact
from bydawn.core.history import History
from bydawn.core.loop import Loop, SpokenDialect
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.dialects.seam import Log, Place, Source, Start, View, Whole
from bydawn.dialects.waylon_smithers import DIALECT, arguments
from bydawn.operations.loop_request import loop_request
from bydawn.settings.layers import Given, Reading, settle
from bydawn.settings.setting import Layer
from bydawn.settings.table import BY_KEY
from core.facts_made import NOON, a_loop, numbered

EVENING = datetime(2026, 1, 6, 21, 10, tzinfo=timezone(timedelta(hours=-8)))
HERE = Place(folder="/w/repo", workspace="/w/repo", now=EVENING)
ID = "repo-2026-01-06T21-10-00"
ROOT = ".codex/waylon-smithers"
FOLDER = f"{ROOT}/loops/{ID}"

# The state file in the document, as it is there.
EXAMPLE = """\
{
  "loop_id": "repo-2026-01-06T21-10-00",
  "created_at": "2026-01-06T21:10:00-08:00",
  "workspace_root": "/path/to/repo",
  "prompt": "Go through TODO.md step-by-step...",
  "completion_promise": "DONE",
  "promise_mode": "tag",
  "max_iterations": 50,
  "iteration": 7,
  "status": "running",
  "codex": {
    "session_id": "0199a213-81c0-7800-8aa1-bbab2a035a53",
    "model": "gpt-5.2-codex",
    "sandbox": "workspace-write",
    "approval": "on-request",
    "profile": "default"
  },
  "todo": {
    "path": "TODO.md",
    "hard_stop_token": "HARD STOP",
    "hard_stop_mode": "pause",
    "paused_for_hard_stop": false
  },
  "artifacts": {
    "dir": ".codex/waylon-smithers/loops/repo-2026-01-06T21-10-00/",
    "last_message_path": "last_message_iter_7.txt",
    "jsonl_path": "events_iter_7.jsonl",
    "summary_json_path": "summary.json"
  },
  "last_result": {
    "exit_code": 0,
    "detected_promise": false
  }
}
"""


def asked(place: Place = HERE, **given: Any) -> Start:
    """The request behind a prompt and these options."""
    return arguments.start(arguments.Words(**{"prompt": "fix it", **given}), place)


def loop_of(request: Start, workspace: str = HERE.workspace) -> Loop:
    """The loop that is made of a request: through the one table of settings, like any other."""
    given = [
        Given(key=key, value=BY_KEY[key].kind.from_words(words), layer=Layer.FLAG, where="a test")
        for key, words in request.settings.items()
        if words
    ]
    wanted = loop_request(settle([Reading(given=tuple(given))], datetime.now(UTC)), Path(workspace))
    spoken = SpokenDialect(name=DIALECT.name, words={**request.words, **request.paths})
    ours = a_loop()
    loop = replace(
        wanted.loop,
        id=request.name,
        uid=ours.uid,
        created_at=ours.created_at,
        dialect=spoken,
        prompt=request.prompt,
        template=request.template,
        tasks_required=request.tasks_required,
    )
    return replace(loop, dialect=replace(spoken, files=DIALECT.files(loop).names(loop)))


def smithers(**given: Any) -> Loop:
    """The loop that a prompt and these options ask for."""
    return loop_of(asked(**given))


def told(loop: Loop, facts: Iterable[AnyFact]) -> Iterator[tuple[AnyFact, LoopState, list[View]]]:
    """A history, fact by fact: the state after each, and what is written then."""
    state, history = LoopState(created_at=NOON), History()
    for record in numbered(facts):
        state = after(state, record)
        history.saw(record.fact, state)
        yield record.fact, state, [*DIALECT.views(record.fact, loop, state, history)]


class Disk:
    """What all these views amount to: texts, and from which rounds the rest comes."""

    def __init__(self, views: Iterable[View]) -> None:
        self.texts: dict[str, str] = {}
        self.copies: dict[str, Source] = {}
        self.growing: dict[str, list[Source]] = {}
        for view in views:
            match view:
                case Whole(path, str() as text, once=True):
                    self.texts.setdefault(path, text)
                case Whole(path, str() as text):
                    self.texts[path] = text
                case Whole(path, Source() as source):
                    self.copies[path] = source
                case Log(path, Source() as source):
                    self.growing.setdefault(path, []).append(source)
                case _:
                    raise AssertionError(view)


def on_disk(loop: Loop, facts: Iterable[AnyFact]) -> Disk:
    return Disk(view for _, _, views in told(loop, facts) for view in views)
