"""The work of a story about strict-agent-loop: from 7 down to 1, one number a round, then a report.

    hailstone.py step                                             one number more, or the report
    hailstone.py check                                            are all of them there, and the report?
    hailstone.py round COUNT SCRIPTS STATE [--event] [OPTION …]   steps, each recorded with the scripts of the skill

Options of a round are for `update_state.py`. In a folder `at` beside the work it leaves a file at each moment.
"""

import json
import subprocess
import sys
from pathlib import Path

NUMBERS = (7, 22, 11, 34, 17, 52, 26, 13, 40, 20, 10, 5, 16, 8, 4, 2, 1)
STEPS = len(NUMBERS) + 1


def written() -> list[int]:
    path = Path("numbers.txt")
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def step() -> tuple[str, str]:
    """One atomic task, and the evidence for it."""
    numbers = written()
    if numbers and numbers[-1] == 1:
        Path("report.md").write_text(f"{len(numbers)} numbers, the largest is {max(numbers)}\n")
        return "write the report", "report.md is there"
    last = numbers[-1] if numbers else None
    number = 7 if last is None else 3 * last + 1 if last % 2 else last // 2
    with open("numbers.txt", "a") as file:
        file.write(f"{number}\n")
    return f"compute number {len(numbers) + 1}", f"numbers.txt ends with {number}"


def check() -> int:
    found = tuple(written())
    if found != NUMBERS:
        print(f"{len(found)} of {len(NUMBERS)} numbers")
        return 1
    return 0 if Path("report.md").exists() else 1


def play(count: int, scripts: Path, state: str, options: list[str]) -> int:
    """A round, as its steps want it: say what comes, do it, record it."""
    announced = "--event" in options
    options = [option for option in options if option != "--event"]
    for _ in range(count):
        at("event")
        if announced:
            run(scripts / "append_event.py", "--state", state, "--kind", "round.started", "--message", "the next one")
        task, evidence = step()
        at("update")
        said = run(
            *(scripts / "update_state.py", "--state", state, "--task", task, "--local-done-condition", "it is there"),
            *("--result-summary", evidence, "--verification-summary", "looked at the file", *options),
            *(() if "--evidence" in options else ("--evidence", evidence)),
        )
        print(json.loads(said)["iteration"])
        at("recorded")
    return 0


def run(script: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, str(script), *words], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def at(moment: str) -> None:
    if Path("../at").is_dir():
        Path("../at", moment).touch()


def main(verb: str, *words: str) -> int:
    if verb == "round":
        return play(int(words[0]), Path(words[1]), words[2], [*words[3:]])
    if verb == "check":
        at("check")
        return check()
    print(*step(), sep=": ")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
