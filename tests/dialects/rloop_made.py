"""A session of rloop, for tests of its words and files."""

from bydawn.core.breakers import Limits
from bydawn.core.loop import Promise, SpokenDialect, Ticks
from core.facts_made import a_loop

WORDS = {
    "session": "app1",
    "marker": "COMPLETE",
    "model": "",
    "backend": "claude",
    "level": "info",
    "on_complete": "yes",
    "retain_days": "7",
    "webhook": "https://discord.com",
    "state": "/home/ada/.config/rloop/state.json",
    "tmux": "rloop-app1",
}


def spoken(**words: str) -> SpokenDialect:
    return SpokenDialect(name="rloop", words=WORDS | words, sections=("NOTES", "EVENTS", "CHECKS"))


LOOP = a_loop(
    workspace="/home/ada/app1",
    tasks="PRD.md",
    agent="claude",
    ticks=Ticks.COUNT,
    limits=Limits(rounds=30),
    promise=Promise(text="COMPLETE"),
    promise_required=False,
    dialect=spoken(),
)
