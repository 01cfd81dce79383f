"""rloop beside the script at the end of its document, `rloop_appendix.sh`, which stands there as it does here.

Both get the same PRD and the same Claude. Ours leaves the same boxes, ends with the same code and never asks for more.
"""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from driving import Home, a_repository
from program.rloop import IDLE, PRD, TAG, TASK, Rloop, Turn
from program.strict_claude import calls, install

SCRIPT = Path(__file__).with_name("rloop_appendix.sh")
DONE: Turn = {"reply": TAG}
TITLE = re.compile(r"=== Iteration .* ===")


class Case(NamedTuple):
    boxes: int
    cap: int
    turns: list[Turn]
    saved: int  # calls that ours does without


CASES = {
    "two tasks, then the promise": Case(2, 30, [TASK, TASK, DONE], 1),
    "the promise comes with the last task": Case(2, 30, [TASK, {**TASK, "reply": f"All done.\n{TAG}"}], 0),
    "a mention when all is done": Case(1, 30, [TASK, {"reply": f"I cannot say {TAG} yet"}, DONE], 2),
    "a promise with open boxes": Case(3, 2, [{**TASK, "reply": f"All done.\n{TAG}"}, DONE], 0),
    "the cap": Case(3, 2, [TASK, TASK], 0),
    "nothing is done": Case(1, 2, [IDLE], 0),
    "nothing is open": Case(0, 30, [DONE], 1),
    "a nested box": Case(-1, 30, [TASK, TASK, DONE], 1),
}


@pytest.mark.usefixtures("jq")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_does_what_the_script_of_the_document_does(home: Home, case: Case) -> None:
    """R-011, R-014, R-016, R-017, R-018, R-019, R-047."""
    rloop = Rloop(home)
    boxes = "".join(f"- [ ] task {number}\n" for number in range(1, case.boxes + 1))
    text = "- [ ] one\n  - [ ] below\n" if case.boxes < 0 else f"# PRD\n\n- [x] zero\n{boxes}"
    theirs, their_bin = home.root / "theirs", home.root / "their-bin"
    a_repository(theirs, "# theirs\n")
    (theirs / PRD).write_text(text)
    install(their_bin, case.turns)
    (their_bin / "sleep").write_text("#!/bin/sh\n")  # ours pauses as well, and that is shown elsewhere
    (their_bin / "sleep").chmod(0o755)
    env = {**home.env, "PATH": f"{their_bin}:{home.env['PATH']}"}
    command = [str(SCRIPT), str(theirs), str(case.cap)]
    ran = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    asked = [call for call in calls(their_bin) if call["prompt"]]
    assert ran.returncode in (0, 1), ran

    ours = rloop.project(text=text)
    rloop.plays(*case.turns)
    ended = rloop.runs(ours, "--max-iterations", str(case.cap))
    assert ended.code == ran.returncode, ended
    assert (ours / PRD).read_text() == (theirs / PRD).read_text()
    assert len(rloop.calls()) == len(asked) - case.saved
    # The iterations that both made have the same headings.
    titles, their_titles = TITLE.findall(rloop.log()), TITLE.findall((theirs / ".rloop/ralph.log").read_text())
    assert titles == their_titles[: len(titles)]
