"""Files that were cut, garbled, edited or deleted: refused or mended, never guessed (FAULTS 3, 26-33, 38, 64)."""

import json
import shutil
import signal
import zlib
from collections.abc import Callable

import pytest

from bydawn.store.ledger import Damaged, OtherVersion, read
from driving import DONE, HANG, OK, Home, is_error, kill_both, said, tree_of, wait_for

GOAL = ("-t", "TODO.md", "-k", "test -e 1.txt")
Mutation = Callable[[list[bytes], int], list[bytes]]


@pytest.fixture
def loop(home: Home) -> Home:
    """One of three tasks is done; the loop stands still. Its ledger has seven lines."""
    home.tasks(3)
    assert home.run(the_agent(home), *GOAL, "--once").code == 4
    assert len(home.facts()) == 7
    return home


def the_agent(home: Home) -> str:
    return home.each_task({"write": {"path": "{n}.txt", "text": "{task}\n"}})


# -- a torn last line: FAULTS 28 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 100, 250])
def test_the_command_says_that_a_record_was_torn_and_goes_on(loop: Home, cut: int) -> None:
    data = b"".join(lines_of(loop))
    (loop.folder() / "ledger.jsonl").write_bytes(data[:-cut])
    ended = loop.bydawn("resume", "--plain")
    assert ended.code == 0
    assert "an incomplete record" in ended.out
    assert "ledger.7.torn" in ended.out
    assert loop.facts("ledger.repaired")[0]["data"]["kept_in"] == "ledger.7.torn"
    assert b"".join(lines_of(loop)).startswith(data[: data[:-cut].rfind(b"\n") + 1])


# -- damage in the middle: FAULTS 29, 30 -------------------------------------------------------------------------------


def garbage(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], b"no record at all\n", *lines[at + 1 :]]


def zeros(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], bytes(len(lines[at]) - 1) + b"\n", *lines[at + 1 :]]


def a_line_twice(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], lines[at - 1], *lines[at:]]


def a_line_missing(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], *lines[at + 1 :]]


def a_flipped_bit(lines: list[bytes], at: int) -> list[bytes]:
    middle = len(lines[at]) // 2
    return [
        *lines[:at],
        lines[at][:middle] + bytes([lines[at][middle] ^ 1]) + lines[at][middle + 1 :],
        *lines[at + 1 :],
    ]


@pytest.mark.parametrize("damage", [garbage, zeros, a_line_twice, a_line_missing, a_flipped_bit])
def test_a_damaged_ledger_is_refused_mended_on_demand_and_then_goes_on(loop: Home, damage: Mutation) -> None:
    good = lines_of(loop)
    bad = damage(good, 3)
    put(loop, bad)
    for command in (("resume", "--plain"), ("run", "do it", "-a", the_agent_of(loop), *GOAL, "--plain")):
        refused(loop, *command, line=4)
    assert loop.status()["state"] == "damaged"
    assert f"damaged at line {4}" in loop.bydawn("doctor").out

    mended = loop.bydawn("doctor", "--repair", "repo")
    [quarantine] = loop.folder().glob("*.quarantine")
    assert mended.code == 0
    assert str(quarantine) in mended.out
    assert quarantine.read_bytes() == b"".join(bad[3:])
    assert lines_of(loop)[:3] == good[:3]
    assert loop.bydawn("doctor").code == 0
    goes_on(loop)


@pytest.mark.parametrize("line", range(1, 8))
def test_a_ledger_can_be_mended_whichever_line_is_damaged(loop: Home, line: int) -> None:
    put(loop, garbage(lines_of(loop), line - 1))
    refused(loop, "resume", "--plain", line=line)
    assert loop.bydawn("doctor", "--repair", "repo").code == 0
    goes_on(loop)


def test_a_round_after_a_repair_does_not_take_an_old_reply_for_its_own(home: Home) -> None:
    """What was quarantined may have been the record of a round whose folder is still there."""
    home.tasks(2)
    agent = home.rounds([{"write": {"path": "1.txt", "text": "x"}}, {"result": {"text": "the old reply"}}], [OK])
    assert home.run(agent, *GOAL, "--once").code == 4
    put(home, garbage(lines_of(home), 2))
    assert home.bydawn("doctor", "--repair", "repo").code == 0
    home.bydawn("resume", "--once", "--plain")
    assert [ended["said"] for ended in home.rounds_ended()] != ["the old reply"]
    assert [ended["round"] for ended in home.rounds_ended()] == [2], "the number of a round is never used again"


@pytest.mark.parametrize("damage", [zeros, a_flipped_bit])
def test_a_line_that_the_snapshot_covers_is_verified_by_doctor_and_by_who_goes_on(loop: Home, damage: Mutation) -> None:
    (loop.folder() / "ledger.jsonl").write_bytes(bad := b"".join(damage(lines_of(loop), 3)))
    found = loop.bydawn("doctor")
    assert found.code == 1
    assert "damaged at line 4" in found.out
    assert loop.status()["state"] == "limit"  # who only looks reads the end
    refused(loop, "resume", "--plain", line=4)
    refused(loop, "tell", "repo", "go on", line=4)
    assert (loop.folder() / "ledger.jsonl").read_bytes() == bad


def test_doctor_does_not_call_a_ledger_intact_whose_last_record_was_cut_off(loop: Home) -> None:
    (loop.folder() / "ledger.jsonl").write_bytes(b"".join(lines_of(loop))[:-10])
    found = loop.bydawn("doctor")
    assert found.code == 1
    assert "cut off" in found.out
    assert "intact" not in found.out


def test_no_flipped_bit_anywhere_makes_another_fact_of_a_fact(loop: Home) -> None:
    path, data = loop.folder() / "ledger.jsonl", b"".join(lines_of(loop))
    facts = [record for record, _ in read(path)]
    for place in range(len(data)):
        flipped = data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
        path.write_bytes(flipped)
        believed = []
        try:
            believed += [record for record, _ in read(path)]
        except (Damaged, OtherVersion):
            continue
        assert believed == facts[:-1]
        assert place == len(data) - 1, "only the last newline can be missed: it makes a torn line"


# -- a ledger of the future: FAULTS 33 ---------------------------------------------------------------------------------


def test_a_ledger_of_a_newer_bydawn_can_be_seen_but_neither_run_nor_mended(loop: Home) -> None:
    def newer(line: bytes) -> bytes:
        body = line.replace(b'"v":2', b'"v":3', 1)[: -len(b',"crc":"00000000"}\n')]
        return body + b',"crc":"%08x"}\n' % zlib.crc32(body)

    lines = lines_of(loop)
    put(loop, [*lines[:4], newer(lines[4]), *lines[5:]])
    before = tree_of(loop.states)
    for command in (("resume", "--plain"), ("doctor", "--repair", "repo")):
        ended = loop.bydawn(*command)
        assert ended.code in (1, 2)
        assert is_error(ended.err)
        assert "newer" in ended.err
        assert "line 5" in ended.err
        assert "upgrade" in ended.err
    assert loop.bydawn("status").code == 0
    assert tree_of(loop.states) == before


# -- the snapshot: FAULTS 3, 31, 32 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [0, 1, 100, -1, "garbage", "another loop's", "ahead"])
def test_a_snapshot_that_is_no_good_is_rebuilt_from_the_ledger(loop: Home, left: int | str) -> None:
    path = loop.folder() / "state.json"
    whole = path.read_bytes()
    match left:
        case int():
            path.write_bytes(whole[:left])
        case "garbage":
            path.write_bytes(b"\0" * len(whole))
        case "another loop's":
            path.write_bytes(whole.replace(b'"start":', b'"start":1'))
        case _:  # the ledger was restored from an older backup
            (loop.folder() / "ledger.jsonl").write_bytes(b"".join(lines_of(loop)[:-2]))
    (loop.folder() / "state.json.tmp").write_bytes(b"half a snap")
    ended = loop.bydawn("resume", "--plain")
    assert ended.code == 0
    assert "state.json did not match the ledger and was rebuilt" in ended.out
    assert loop.status()["tasks"] == {"open": 0, "done": 3}
    assert not (loop.folder() / "state.json.tmp").exists()


def test_a_snapshot_that_is_missing_is_made_again_without_a_word(loop: Home) -> None:
    (loop.folder() / "state.json").unlink()
    assert loop.status()["round"] == 1
    goes_on(loop)
    assert (loop.folder() / "state.json").exists()


BYTES = b"\xef\xbb\xbf# Tasks\r\n\r\n- [ ] one\r\n- [ ] two\r\n"


@pytest.mark.parametrize("damage", ["rm TODO.md", ": > TODO.md", "head -c 40 /dev/zero > TODO.md"])
def test_a_list_that_a_power_cut_damaged_is_put_back_byte_for_byte_and_it_is_said(home: Home, damage: str) -> None:
    (home.repo / "TODO.md").write_bytes(BYTES)
    agent = home.rounds([{"run": ["sh", "-c", damage]}, {"say": "and then"}, HANG], [HANG])
    running = home.start_run(agent, "-t", "TODO.md")
    home.await_round(1)
    kill_both(running.pid)
    again = home.start_run(agent, "-t", "TODO.md")
    home.await_round(2)
    assert (home.repo / "TODO.md").read_bytes() == BYTES
    again.send_signal(signal.SIGTERM)
    out, shown = (" ".join(each.split()) for each in (said(again).out, home.bydawn("show", "--round", "1").out))
    told = f"TODO.md was {'gone' if 'rm' in damage else 'damaged'} and was put back"
    assert told in out
    assert told in shown
    assert (home.folder() / "rounds/0001/damaged.md").read_bytes() == (b"\0" * 40 if "zero" in damage else b"")


# -- the lock, the settings, and a creation that was cut short: FAULTS 9, 27 -----------------------------------------


def test_a_lock_that_is_deleted_while_it_is_held_ends_the_loop(home: Home) -> None:
    wait, gate = home.gate()
    running = home.start_run(home.rounds([wait, OK], [HANG]))
    home.await_round(1)
    (home.folder() / "lock").unlink()
    gate.touch()
    ended = said(running)
    assert ended.code == 3
    assert "this loop could be started twice" in ended.out
    assert home.status()["state"] == "blocked"
    assert home.outcomes() == ["ok"]


@pytest.mark.parametrize("name", ["ledger.jsonl", "lock", "state.json.tmp"])
def test_a_link_in_the_place_of_a_file_is_not_followed(loop: Home, name: str) -> None:
    target = loop.root / "target"  # FAULTS 38
    target.write_bytes((loop.folder() / "ledger.jsonl").read_bytes())
    (loop.folder() / name).unlink(missing_ok=True)
    (loop.folder() / name).symlink_to(target)
    before = target.read_bytes()
    ended = loop.bydawn("resume", "--plain")
    assert ended.code == 0 or is_error(ended.err), ended
    assert target.read_bytes() == before


@pytest.mark.parametrize("name", ["ledger.jsonl", "inbox", "rounds", "git", "lock"])
def test_an_agent_that_deletes_our_own_files_stops_the_loop(home: Home, name: str) -> None:
    delete = {"run": ["sh", "-c", f"rm -r {home.states}/loops/*/repo/{name}"]}  # FAULTS 64
    agent = home.rounds([delete, OK], [DONE])
    ended = home.run(agent)
    assert ended.code in (1, 3), ended
    assert ended.code == 3 or is_error(ended.err), ended
    assert name == "ledger.jsonl" or home.bydawn("resume", "--plain").code == 0


def test_requests_that_cannot_be_read_are_set_aside(home: Home) -> None:
    wait, gate = home.gate()
    running = home.start_run(home.rounds([wait, DONE]))
    home.await_round(1)
    inbox = home.folder() / "inbox"
    (inbox / "1-garbage.json").write_bytes(b"\0\xff")
    (inbox / "2-folder.json").mkdir()
    (inbox / ".old").write_text('{"type":"stop","id":"x","run":"of another day","by":"Ada"}')
    (inbox / ".old").rename(inbox / "3-old.json")  # as requests arrive: never half
    wait_for(lambda: sorted(path.name for path in inbox.iterdir()) == ["1-garbage.bad", "2-folder.bad"])
    gate.touch()
    assert said(running).code == 0
    assert home.facts("stop.requested") == []


def test_settings_that_were_changed_behind_the_ledgers_back_are_refused(loop: Home) -> None:
    path = loop.folder() / "loop.json"
    path.write_text(path.read_text().replace("do it", "do something else"))
    before = tree_of(loop.states)
    ended = loop.bydawn("resume", "--plain")
    assert ended.code == 1
    assert is_error(ended.err)
    assert str(path) in ended.err
    assert tree_of(loop.states) == before


def test_settings_that_cannot_be_read_hide_no_loop(loop: Home) -> None:
    path, agent = loop.folder() / "loop.json", the_agent_of(loop)
    path.write_text(path.read_text()[:-20])
    found = loop.bydawn("doctor")
    assert found.code == 1
    assert str(path) in found.out
    ended = loop.run(agent, *GOAL)
    assert ended.code == 1
    assert is_error(ended.err)


@pytest.mark.parametrize(
    "left",
    [
        {},
        {"lock": b""},
        {"lock": b"", "ledger.jsonl": b"", "reserve": b"\0"},
        {"lock": b"", "ledger.jsonl": b"", "loop.json.tmp": b"{"},
        {"lock": b"", "ledger.jsonl": b"", "loop.json": b"as it was"},
        {"lock": b"", "ledger.jsonl": b'{"v":2,"seq":1,"at', "loop.json": b"as it was"},
    ],
    ids=["empty", "lock", "empty ledger", "half settings", "settings", "half a fact"],
)
def test_a_loop_that_was_killed_at_its_birth_was_never_there(loop: Home, left: dict[str, bytes]) -> None:
    folder, agent = loop.folder(), the_agent_of(loop)
    settings = (folder / "loop.json").read_bytes()
    shutil.rmtree(folder)
    folder.mkdir()
    for name, data in left.items():
        (folder / name).write_bytes(data if data != b"as it was" else settings)

    assert "No loops yet" in loop.bydawn("status").out
    assert loop.bydawn("resume", "--plain").code == 2
    assert loop.run(agent, *GOAL).code == 0
    assert loop.status()["state"] == "complete"


# -- the tools ---------------------------------------------------------------------------------------------------------


def lines_of(home: Home) -> list[bytes]:
    return (home.folder() / "ledger.jsonl").read_bytes().splitlines(keepends=True)


def put(home: Home, lines: list[bytes]) -> None:
    """Another ledger, and no snapshot that would save reading it."""
    (home.folder() / "ledger.jsonl").write_bytes(b"".join(lines))
    (home.folder() / "state.json").unlink()


def the_agent_of(home: Home) -> str:
    return str(json.loads((home.folder() / "loop.json").read_text())["agent"])


def refused(home: Home, *command: str, line: int) -> None:
    """File, line and the repair command are named, and nothing is changed."""
    before = tree_of(home.states)
    ended = home.bydawn(*command)
    assert ended.code == 1, ended
    assert is_error(ended.err)
    assert str(home.folder() / "ledger.jsonl") in ended.err
    assert f"line {line}" in ended.err
    assert "bydawn doctor --repair repo" in ended.err
    assert tree_of(home.states) == before


def goes_on(home: Home) -> None:
    assert home.bydawn("resume", "--plain").code == 0
    assert home.status()["tasks"] == {"open": 0, "done": 3}
