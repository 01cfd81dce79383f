"""`scripts/bench [--json] [WORD…]`: measure all rows, or those whose name contains a word, against their budgets."""

import argparse
import signal
import sys

import msgspec

from benchmarks import (
    codex_loop,
    disk,
    growth,
    memory,
    nights,
    operating,
    prompts,
    proofs,
    rloop,
    rounds,
    silence,
    snapshots,
    startup,
    stopping,
    stream,
    strict,
    web,
)
from benchmarks.rows import HEADER, Row
from benchmarks.stage import Broken, stage

BENCHES = (
    *startup.BENCHES,
    *rounds.BENCHES,
    *prompts.BENCHES,
    *proofs.BENCHES,
    *snapshots.BENCHES,
    *stream.BENCHES,
    *memory.BENCHES,
    *growth.BENCHES,
    *operating.BENCHES,
    *rloop.BENCHES,
    *strict.BENCHES,
    *codex_loop.BENCHES,
    *stopping.BENCHES,
    *disk.BENCHES,
    *silence.BENCHES,
    *web.BENCHES,
    *nights.BENCHES,
)


def main() -> int:
    """0 whatever the figures are; 1 when one could not be taken."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of all that has to be ended and removed
    rows: list[Row] = []
    broken = False
    if not arguments.json:
        print(HEADER)
    for bench in BENCHES:
        wanted = [budget for budget in bench.budgets if budget.asked_for(arguments.words)]
        if not wanted:
            continue
        try:
            with stage() as place:
                found = dict(zip(bench.budgets, bench.measure(place), strict=True))
        except Broken as error:
            broken = True
            print(f"bench: {', '.join(budget.name for budget in wanted)}: {error}", file=sys.stderr)
            continue
        for budget in wanted:
            rows.append(budget.row(found[budget]))
            if not arguments.json:
                print(budget.line(found[budget]), flush=True)
    if arguments.json:
        print(msgspec.json.encode({"rows": rows}).decode())
    return int(broken)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure bydawn against its performance budget.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only rows whose name contains one of these")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
