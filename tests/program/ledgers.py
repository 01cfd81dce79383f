"""Ledgers on a real disk, for the stories about them."""

from pathlib import Path

from bydawn.core.facts import AnyFact
from bydawn.core.state import LoopState
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger, records
from core.facts_made import BORN, a_note, a_round, checked, run_started, stop

STORY: list[AnyFact] = [BORN, run_started(), *a_round(1), checked(1), a_note("n-1", "grüße\n"), *a_round(2)]
SHORT: list[AnyFact] = [BORN, run_started(), a_note("n-1", "grüße\n"), stop(), a_note("n-2")]


def silent(text: str) -> None:
    raise AssertionError(f"nothing should have been said, but: {text}")


def written(folder: Path, facts: list[AnyFact], snapshot_after: int | None = None) -> Path:
    """A ledger with these facts in its file; its snapshot covers so many of them."""
    ledger = LoopLedger(LoopFolder(folder), silent, str)
    for place, fact in enumerate(facts, 1):
        ledger.append(fact)
        if place == snapshot_after:
            ledger.snapshot()
    ledger.sync()
    ledger.close()
    return folder / "ledger.jsonl"


def facts_in(folder: Path) -> list[AnyFact]:
    return [record.fact for record in records(LoopFolder(folder))]


def opened(folder: Path) -> tuple[LoopState, list[str]]:
    """What the one writer finds, and what it said about it."""
    said: list[str] = []
    ledger = LoopLedger(LoopFolder(folder), said.append, str)
    ledger.close()
    return ledger.state, said
