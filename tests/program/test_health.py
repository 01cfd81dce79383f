"""`health` and `metrics` as commands: exit codes, what to paste, and one word about a process that hangs."""

import json
import os
import time
from pathlib import Path

from driving import DONE, HANG, OK, Home, said


def test_without_loops_all_is_well(home: Home) -> None:
    assert home.bydawn("health") == (0, "  No loops.\n", "")
    assert home.bydawn("metrics") == (0, "  No loops.\n", "")
    assert json.loads(home.bydawn("health", "--json").out) == {"schema": 1, "verdict": "ok", "loops": 0, "findings": []}


def test_a_loop_that_needs_a_person_is_named_with_a_command_to_paste(home: Home) -> None:
    home.run(home.rounds([DONE]), "--name", "done")
    assert home.bydawn("health") == (0, "  ✓ ok: 1 loop\n", "")
    state = str(home.root / "other")
    home.run(home.rounds([OK]), "--rounds", "1", "--state-dir", state)
    degraded = home.bydawn("health", "--state-dir", state)
    hint = f"    → bydawn resume repo --rounds +20 --state-dir {state}\n"
    assert degraded == (2, f"  ! degraded: repo has reached a limit: the only round is used up\n{hint}", "")
    told = json.loads(home.bydawn("health", "--state-dir", state, "--json").out)
    assert (told["verdict"], told["findings"][0]["loop"]) == ("degraded", "repo")
    assert told["findings"][0]["hint"]["command"] == "bydawn resume repo --rounds +20"
    assert home.bydawn("status", "--state-dir", state).code == 0
    assert home.bydawn("health", "--state-dir", state, "-C", str(home.root)).code == 0  # no loop of that folder
    home.bydawn("dismiss", "repo", "--state-dir", state)
    assert home.bydawn("health", "--state-dir", state).code == 0


def test_a_damaged_loop_is_an_error_until_it_is_repaired(home: Home) -> None:
    home.run(home.rounds([OK], [DONE]), "--once")
    with (home.folder() / "ledger.jsonl").open("r+b") as ledger:
        ledger.write(b"x")
    (home.folder() / "state.json").unlink()
    broken = home.bydawn("health")
    assert (broken.code, broken.out.startswith("  ✗ error: repo is damaged: ")) == (3, True)
    assert "→ bydawn doctor --repair repo\n" in broken.out
    assert json.loads(home.bydawn("metrics", "--json").out)["damaged"] == 1
    home.bydawn("doctor", "--repair", "repo")
    assert home.bydawn("health").code == 2  # what is left of its record says that it never ended


def test_a_process_that_gives_no_sign_of_life_is_said_everywhere(home: Home) -> None:
    running = home.start_run(home.rounds([HANG]))
    home.await_round(1)
    assert home.bydawn("health").code == 0
    os.utime(home.folder() / "heartbeat", (time.time() - 400,) * 2)
    hung = home.bydawn("health")
    assert (hung.code, "repo gives no sign of life for 6 m 4" in hung.out) == (3, True)
    assert "    → bydawn stop repo\n" in hung.out
    for command in ("status", "show"):
        assert "; it may hang" in home.bydawn(command, "repo").out
    os.utime(home.folder() / "heartbeat", (time.time() - 400,) * 2)  # the commands before took their time
    doctor = home.bydawn("doctor", "repo")
    assert (doctor.code, "loop repo: running; no sign of life for 6 m 4" in doctor.out) == (1, True)
    assert home.bydawn("stop").code == 0
    assert said(running).code == 130
    assert home.bydawn("health").code == 0  # a person stopped it


def test_figures_of_real_loops(home: Home) -> None:
    """W-100, W-101."""
    home.run(home.rounds([DONE]), "--name", "quick")
    home.run(home.rounds([OK], [OK], [DONE]), "--new", "--name", "night", "--rounds", "2")
    told = json.loads(home.bydawn("metrics", "--json").out)
    assert (told["loops"], told["rounds"], told["completed_before_limit"]) == (2, 3, 0.5)
    assert home.bydawn("resume", "night", "--rounds", "+3", "--plain").code == 0
    told = json.loads(home.bydawn("metrics", "--json").out)
    assert (told["completed"], told["median_rounds"], told["interruptions"]) == (2, 2.0, 0.5)
    assert (told["resumes"], told["resumes_worked"], told["damaged"], told["unverified"]) == (1, 1.0, 0, 2)
    assert (told["usage"], told["usd_per_task"]) == (None, None)
    shown = home.bydawn("metrics").out
    assert "  Completed    2 loops; 50% before a limit\n" in shown
    assert "  Used         —\n" in shown


def test_a_service_that_is_installed_and_does_not_run_is_said(home: Home) -> None:
    unit = Path(home.env["XDG_CONFIG_HOME"]) / "systemd/user/bydawn.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\n")
    found = home.bydawn("health")
    assert (found.code, "the service is installed and does not run" in found.out) == (2, True)
    assert "→ bydawn service status" in found.out
    unit.unlink()
    assert home.bydawn("health").code == 0
