"""Rows and the live block, laid out for a width: nothing is cut without a sign, no line is too long (UX §2.2)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.cli.live_block import Running, live_block
from bydawn.cli.rows import Layout, used_columns
from bydawn.core.facts import WaitStarted
from bydawn.core.history import History
from bydawn.core.rules import Rule
from bydawn.core.values import Decided, Usage
from bydawn.operations.amounts import moment
from bydawn.operations.rounds import RoundRow, Tick
from bydawn.operations.sentences import Counting
from core.facts_made import BORN, LISTED, a_round, after_all, limited, numbered, pause, run_started, started, todo

TITLE = "Prorate refunds when a subscription is cancelled in the middle of a month"
SPENT = Usage(tokens_in=400_000, tokens_out=12_000, cost_usd=0.61)
WIDTHS = [40, 48, 60, 72, 80, 100, 120, 200]


def a_row(**more: Any) -> RoundRow:
    usual: dict[str, Any] = {
        "attempt": History(numbered([BORN, run_started(), started(3)])).attempts[0],
        "tick": Tick.CLOSED,
        "number": 3,
        "task": TITLE,
        "agent": "",
        "seconds": 662.0,
        "files": "+3 ~9",
        "check": "pass",
    }
    return RoundRow(**{**usual, "result": "task done", "tasks_done": "2/5", "usage": SPENT, **more})


def laid_out(row: RoundRow, width: int) -> list[str]:
    return Layout(width, used_columns([row])).row(row)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("result", ["task done", "no change 1/5", "no command worked"])
def test_a_row_fits_and_keeps_its_task_and_its_result(width: int, result: str) -> None:
    lines = laid_out(a_row(result=result), width)
    assert all(len(line) <= width for line in lines)
    assert "Prorate re" in lines[0] and (TITLE in lines[0] or "…" in lines[0])
    assert all(word in " ".join(lines) for word in ("11 m 02", "pass", result, "2/5"))


def test_a_title_gets_the_width_that_is_free() -> None:
    assert TITLE[:40] in laid_out(a_row(), 120)[0]
    assert TITLE[:60] in laid_out(a_row(usage=None), 120)[0]


def test_at_48_columns_everything_is_there_and_no_cell_is_broken() -> None:
    assert laid_out(a_row(), 48) == [
        "  3   Prorate refunds when a subscription is c…",
        "      11 m 02 · +3 ~9 · pass · task done",
        "      412 k tok · $0.61 · 2/5",
    ]


def test_what_an_agent_does_not_report_has_no_column_and_is_never_zero() -> None:
    layout = Layout(120, used_columns([a_row(usage=None)]))
    assert not {"tok", "$"} & {*layout.header("round")[0].split()}
    unpriced = a_row(usage=Usage(tokens_in=22_000))
    assert Layout(120, used_columns([unpriced, a_row()])).row(unpriced)[0].split()[-3:] == ["k", "—", "2/5"]
    assert "0.00" not in " ".join(laid_out(unpriced, 48) + laid_out(unpriced, 120))


@pytest.mark.parametrize("width", [72, 80])
def test_a_column_gives_way_before_the_task_does(width: int) -> None:
    layout = Layout(width, frozenset({"tok", "$", "done", "agent"}))
    assert {"time", "check", "result", "done"} <= {column.name for column in layout.columns}
    assert len(laid_out(a_row(agent="codex"), width)[0].split(" 11 m")[0].strip()) >= 20


# -- the live block ----------------------------------------------------------------------------------------------------


STATE = after_all(BORN, run_started(), *a_round(1, usage=SPENT, tasks=todo(3, 2)), started(2, task=TITLE))
RUNS = Running(seconds=134.0, silence=4.0, doing="editing src/settings.py")


def block(width: int, state: Any = STATE, running: Running | None = RUNS, **limits: Any) -> list[str]:
    return live_block(limited(LISTED, **limits), state, width, Counting(number=2), running)


def test_the_live_block_says_how_far_what_now_and_what_was_used() -> None:
    first, now, usage = block(120, usd=8.0)
    assert "2 of 5 tasks   round 2, 2 m 14   too early to tell how long" in first
    assert now.startswith(f"  now    {TITLE} · ") and now.endswith("… · last output 4 s ago")
    assert usage == "  usage  412 k tokens · $0.61 of $8.00"


def test_the_live_block_speaks_of_iterations_where_the_tool_does() -> None:
    state = replace(STATE, recent_seconds=(1.0, 2.0, 9.0))
    text = "\n".join(live_block(limited(LISTED), state, 120, Counting(unit="iteration", number=2), RUNS))
    assert ("iteration 2, 2 m 14" in text, "median iteration 2 s" in text, "round" in text) == (True, True, False)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_live_block_fits_and_always_proves_that_it_is_alive(width: int) -> None:
    lines = block(width)
    assert len(lines) <= 3
    assert all(len(line) < width for line in lines)
    assert "2 of 5 tasks" in lines[0] and "Prorate" in lines[1]
    assert "last output 4 s ago" in " ".join(lines)


def test_the_live_block_says_nothing_of_what_no_agent_reported() -> None:
    state = after_all(BORN, run_started(), *a_round(1, tasks=todo(3, 2)), started(2))
    assert "usage" not in " ".join(block(120, state))


@pytest.mark.parametrize("width", [48, 120])
def test_the_live_block_says_what_was_asked(width: int) -> None:
    state = after_all(BORN, run_started(), *a_round(1, tasks=todo(3, 2)), started(2), pause())
    assert "pausing after round 2" in " ".join(block(width, state))


@pytest.mark.parametrize("agent", ["codex", "cmd:/home/ada/bin/a-long-way-to-an-agent.sh"])
@pytest.mark.parametrize("width", WIDTHS[1:])
def test_until_when_it_waits_is_never_cut(width: int, agent: str) -> None:
    over = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=100)
    since = Decided(rule=Rule.AGENT_LIMIT, at=over - timedelta(seconds=100), elapsed=1.0)
    wait = WaitStarted(seconds=100, until=over, reason="5-hour limit reached", agent=agent, decided=since)
    state = after_all(BORN, run_started(), *a_round(1, tasks=todo(3, 2)), wait)
    now = block(width, state, None)[1]
    assert f"until {moment(over)} (1 m " in now and len(now) <= width
    assert width < 60 or agent[:8] in now
