"""How many bytes does bydawn add to a prompt, in which round and mode, and how much of it can a provider cache?"""

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Bench, Budget
from benchmarks.stage import BYDAWN, Stage

_ROUNDS = 50
_GOAL = "Make the parser faster. " * 1_250  # 30 KB
_AGENT = """\
#!/bin/sh
cat > /dev/null
date +%s%N >> work.txt
echo '{"text": "Half of it is done.", "session": "s-1"}'
"""


def prompts(stage: Stage) -> Iterator[float]:
    fresh = _prompts(stage, "fresh")
    resumed = _prompts(stage, "resume", "--session-rounds", "0")
    yield from (_ours(fresh[number]) for number in (1, 10, _ROUNDS))
    yield from (_ours(resumed[number]) for number in (10, _ROUNDS))
    before, last = fresh[_ROUNDS - 1], fresh[_ROUNDS]
    yield next(place for place, (a, b) in enumerate(zip(before, last, strict=False)) if a != b) / len(last)


def _prompts(stage: Stage, session: str, *more: str) -> dict[int, str]:
    """What the agent of a loop was sent in each round; a check fails after every one of them."""
    agent, repository = stage.place("agent") / "agent", stage.repository("prompts")
    agent.write_text(_AGENT)
    agent.chmod(0o755)
    reading = ("--agent-json", "text=text", "--agent-json", "session=session", "--session", session, *more)
    checks = ("-k", "tail -n 1 work.txt; false", "--max-same-failure", "0", "--max-check-failures", "0")
    limits = ("-n", str(_ROUNDS), "--done-when", "ALL DONE", "--protect", "tests/**", "--plain", "-C", str(repository))
    stage.seconds(BYDAWN, "run", _GOAL, "-a", f"cmd:{agent}", *reading, *checks, *limits, code=4)
    rounds = repository / ".bydawn" / "loops" / repository.name / "rounds"
    return {int(Path(path).parent.name): path.read_text() for path in rounds.glob("*/prompt.md")}


def _ours(prompt: str) -> float:
    """Without the goal, and without what a check or the agent said."""
    return len(re.sub(r"(?s)(<<\w+\n).*?(\n\w+>>)", r"\1\2", prompt.replace(_GOAL.strip(), "")).encode())


BENCHES = (
    Bench(
        (
            Budget("prompt: bytes of ours, fresh, round 1", 5_000, "bytes"),
            Budget("prompt: bytes of ours, fresh, round 10", 5_000, "bytes"),
            Budget("prompt: bytes of ours, fresh, round 50", 5_000, "bytes"),
            Budget("prompt: bytes of ours, resumed, round 10", 1_500, "bytes"),
            Budget("prompt: bytes of ours, resumed, round 50", 1_500, "bytes"),
            Budget("prompt: the same as in the round before, fresh", 0.95, "", at_least=True),
        ),
        prompts,
    ),
)
