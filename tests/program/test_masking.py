"""Secrets in the files of a round are overwritten where they stand; in a ledger they are never written (FAULTS 3.2)."""

import stat
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from bydawn.core.facts import AnyFact
from bydawn.core.redact import HIDDEN, Secrets, rewritten
from bydawn.core.replay import replay
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger, records
from bydawn.store.rounds import Rounds
from core.facts_any import HISTORIES
from core.facts_made import BORN, NOON, a_note, a_round, checked, run_started
from core.test_redact import MIXED, PEM, dresses_of
from program.ledgers import silent

CHUNK = 1 << 20  # as much is masked at a time
TOKEN = "canary/99+"  # noqa: S105 - planted
KEY = "-----BEGIN PRIVATE KEY-----\n" + MIXED[:64] + "\nqQ==\n-----END PRIVATE KEY-----"  # its last line is short
ONE, SECRETS = Secrets({"FOO_TOKEN": TOKEN}), Secrets({"FOO_TOKEN": TOKEN, "PRIVATE_KEY": KEY})
BORDERS = (CHUNK, CHUNK + SECRETS.longest)  # where the second chunk begins, and how far the first one looks ahead
BEGINNINGS = (-60, -34, -28, -24, -18, -17, -16, -15, -8, -1, 0, 1, 16)

# Every one of these stands across the border in some row: its first letter is so many bytes before or after it.
TEXTS = {
    "a value": TOKEN,
    "a value in base64": dresses_of(TOKEN)["base64 after 1"],
    "a value of several lines": KEY,
    "a key": "sk-proj-" + MIXED[:60],
    "a web token": f"eyJ{MIXED[:40]}.eyJ{MIXED[:40]}.{MIXED[:40]}",
    "a header": f"Bearer {MIXED[:40]}",
    "an address": "https://ada:hunter2@example.org",
    "an unknown pem": PEM.replace("qQ==", "zZ=="),
    "an unknown pem with a long name": PEM.replace("PRIVATE", "OPENSSH PRIVATE"),
    "an ordinary word": "task-list-of-2024-with-many-words",
    "a word that begins like a key": "sk-primary-button-large-rounded",
}


def masked(folder: Path, data: bytes, secrets: Secrets) -> bytes:
    """What is left of an agent's output when its round has ended."""
    rounds = Rounds(LoopFolder(folder), secrets)
    path = Path(rounds.write(1, "stdout", ""))
    path.write_bytes(data)
    rounds.mask(1)
    return path.read_bytes()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_masking_a_file_in_chunks_is_masking_it_whole(tmp_path: Path, text: str) -> None:
    secrets = SECRETS if "KEY" in text else ONE  # the fewer it looks for the sooner it is done
    for beginning in BEGINNINGS:
        data = bytearray(b"." * (CHUNK + 2 * SECRETS.longest))
        for border in BORDERS:
            place = border + beginning
            data[place - 1 : place + len(text) + 1] = f" {text} ".encode()
        whole = bytearray(data)
        secrets.mask(whole)
        assert differing(masked(tmp_path, bytes(data), secrets), whole) == [], f"{beginning} bytes from a border"


def test_an_ordinary_word_across_a_border_stays(tmp_path: Path) -> None:
    word = b"task-list-of-2024-with-many-words"
    for beginning in range(-20, 4):
        data = bytearray(b"." * (CHUNK + 100))
        data[CHUNK + beginning : CHUNK + beginning + len(word)] = word
        assert differing(masked(tmp_path, bytes(data), ONE), data) == [], f"{beginning} bytes from the border"


def differing(one: bytes, other: bytes | bytearray) -> list[tuple[bytes, bytes]]:
    """The first places where two files are not the same; few, for people."""
    assert len(one) == len(other)
    if one == other:
        return []
    first = next(place for place in range(len(one)) if one[place] != other[place])
    return [(one[first - 8 : first + 80], bytes(other[first - 8 : first + 80]))]


def test_all_files_of_a_round_are_masked_unless_some_are_named_and_only_their_owner_can_read_them(
    tmp_path: Path,
) -> None:
    rounds = Rounds(LoopFolder(tmp_path), SECRETS)
    paths = [Path(rounds.write(1, name, f"a {TOKEN}!\n")) for name in ("prompt.md", "stdout", "check-1.txt")]
    other = Path(rounds.write(2, "stdout", TOKEN))
    rounds.mask(1, "stdout", "not there")
    assert [TOKEN in path.read_text() for path in paths] == [True, False, True]
    rounds.mask(1)
    assert {path.read_text() for path in paths} == {f"a {'*' * len(TOKEN)}!\n"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert other.read_text() == TOKEN
    rounds.mask(3)  # a round that has left nothing


def test_figures_beside_the_output_are_never_taken_for_a_secret(tmp_path: Path) -> None:
    rounds, row = Rounds(LoopFolder(tmp_path), Secrets({"MY_TOKEN": "0000000000"})), "0000000000000012 000000000003\n"
    paths = [Path(rounds.write(1, name, row)) for name in ("stdout", "stdout.times")]
    rounds.mask(1)
    assert [path.read_text() == row for path in paths] == [False, True]


@pytest.mark.parametrize(
    ("output", "reply", "one"),
    [("all done\n", "all done", True), ("all done", "all done", True), ("a\nb\n\n", "a\nb", False), ("\n", "", False)],
)
def test_a_reply_that_is_all_that_was_printed_is_no_second_copy(
    output: str, reply: str, one: bool, tmp_path: Path
) -> None:
    rounds = Rounds(LoopFolder(tmp_path), SECRETS)
    printed, said = Path(rounds.write(1, "stdout", output)), Path(rounds.write(1, "reply.md", reply))
    assert printed.samefile(said) is one
    assert (printed.read_text(), said.read_text().rstrip("\n")) == (output, reply)
    assert rounds.tail(1, "reply.md", 100).rstrip("\n") == reply


def test_an_agent_cannot_have_a_file_elsewhere_overwritten_by_a_link(tmp_path: Path) -> None:
    rounds = Rounds(LoopFolder(tmp_path), SECRETS)
    (tmp_path / "precious").write_text(TOKEN)
    (Path(rounds.folder(1)) / "stdout").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"):
        rounds.mask(1)
    assert (tmp_path / "precious").read_text() == TOKEN


def test_200_mb_are_masked_within_a_few_mb_of_memory(tmp_path: Path) -> None:
    """Nearly all of it is a hole in the file; a key stands at the beginning, in the middle and at the end."""
    rounds, size, key = Rounds(LoopFolder(tmp_path), Secrets({})), 200 << 20, b"sk-" + MIXED[:40].encode()
    path, places = Path(rounds.write(1, "stdout", "")), (0, size // 2 - 3, size - len(key))
    with path.open("r+b") as file:
        for place in places:
            file.seek(place)
            file.write(key)
    tracemalloc.start()
    rounds.mask(1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
    assert path.stat().st_size == size
    with path.open("rb") as file:
        for place in places:
            file.seek(place)
            assert file.read(len(key)) == b"*" * len(key)


# -- the ledger --------------------------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HISTORIES)
def test_what_a_writer_remembers_is_what_the_next_one_reads_whatever_secret_stands_in_a_fact(
    tmp_path: Path, facts: list[AnyFact]
) -> None:
    """A state with a secret in it would differ from its own replay, and would sooner or later be written down."""
    (tmp_path / "ledger.jsonl").unlink(missing_ok=True)
    (tmp_path / "state.json").unlink(missing_ok=True)
    ledger = LoopLedger(LoopFolder(tmp_path), silent, SECRETS.hide)
    for fact in [BORN, *(rewritten(fact, lambda text: f'{text}"{TOKEN}"\n{KEY}') for fact in facts)]:
        ledger.append(fact)
    ledger.sync()
    ledger.snapshot()
    ledger.close()
    assert ledger.state == replay(records(LoopFolder(tmp_path)))
    for name in ("ledger.jsonl", "state.json"):
        text = (tmp_path / name).read_text()
        assert not any(dress in text for dress in (*dresses_of(TOKEN).values(), MIXED[:16], "qQ=="))


def test_the_fact_that_is_handed_on_is_the_one_that_was_written(tmp_path: Path) -> None:
    ledger = LoopLedger(LoopFolder(tmp_path), silent, SECRETS.hide)
    facts: list[AnyFact] = [BORN, run_started(), *a_round(1, said=f"it is {TOKEN}"), checked(1), a_note("n", TOKEN)]
    handed = [ledger.append(fact) for fact in facts]
    ledger.close()
    assert handed == [*records(LoopFolder(tmp_path))]
    assert ledger.state.notes[0].text == HIDDEN
    assert ledger.state.last is not None
    assert ledger.state.last.ended.said == f"it is {HIDDEN}"
    assert handed[0].at > NOON
