"""The same failure has the same fingerprint, another failure another one."""

import pytest

from bydawn.core.values import Verdict
from bydawn.core.verdicts import in_the_way, of_failure, outside, unboxed
from effort import MANY_PASSES, effort

SAME = {
    "pytest": (
        "==== 3 failed, 5 passed in 0.12s ====",
        "=== 3 failed, 5 passed in 11.4s ===",
    ),
    "pytest, slow": ("3 failed in 112.40s (0:01:52)", "3 failed in 113.90s (0:01:53)"),
    "unittest": ("Ran 3 tests in 0.001s", "Ran 3 tests in 0.013s"),
    "go": ("--- FAIL: TestA (0.00s)\nFAIL\tpkg\t0.003s", "--- FAIL: TestA (0.21s)\nFAIL\tpkg\t1.003s"),
    "jest": ("✕ adds (12 ms)\nTime: 1.234 s", "✕ adds (3 ms)\nTime:        2 s"),
    "time": ("real 1m02s", "real 0m3.4s"),
    "hours": ("took 1h 2m 3s", "took 2h 0m 59s"),
    "colours": ("\x1b[31mFAILED\x1b[0m a", "FAILED a"),
    "carriage returns": ("10%\r\nFAILED", "10%\nFAILED"),
    "moment": ("2026-11-16T06:10:35.123456Z boom", "2026-11-17 23:00:00,001 boom"),
    "moment with a zone": ("at 2026-11-16 06:10:35+01:00", "at 2026-11-16T06:11:35 +0000"),
    "day": ("Report of 2026-11-16", "Report of 2026-11-17"),
    "clock": ("[06:10:35] boom", "[06:10:36.250] boom"),
    "date, spelled": ("Mon Nov 16 06:10:35 2026 boom", "Tue Nov  3 16:10:35 2026 boom"),
    "mail date": ("Mon, 16 Nov 2026 06:10:35 GMT", "Tue, 17 Nov 2026 06:10:35 GMT"),
    "address": ("<Foo object at 0x7f12ab34cd50>", "<Foo object at 0x7fAAab34cd58>"),
    "go address": ("pc=0xc000012345", "pc=0xc000012399"),
    "uuid": ("id 123e4567-e89b-12d3-a456-426614174000", "id 923E4567-e89b-12d3-a456-42661417400F"),
    "pid": ("killed (pid 123)", "killed (pid 99123)"),
    "pid=": ("PID=123 died", "PID=4 died"),
    "syslog": ("sshd[1234]: no", "sshd[77]: no"),
    "log": ("[1234] boom", "[81234] boom"),
    "sanitizer": ("==12==ERROR: AddressSanitizer", "==3456==ERROR: AddressSanitizer"),
    "rust": ("thread 'main' (123) panicked at src/a.rs:3:5", "thread 'main' (9123) panicked at src/a.rs:3:5"),
    "goroutine": ("goroutine 17 [running]:", "goroutine 8 [running]:"),
    "temporary": ("/tmp/by-x1/tests/a.py:3: no", "/tmp/by-y_2/tests/a.py:3: no"),
    "pytest's": ("/tmp/pytest-of-ada/pytest-12/test_a0/f", "/tmp/pytest-of-ada/pytest-9/test_a0/f"),
    "tempfile": ("no /var/tmp/tmpab12cd_x/f", "no /var/tmp/tmpzz12cd_x/f"),
    "mktemp": ("no /scratch/tmp.AbCdEf1234", "no /scratch/tmp.XXCdEf1234"),
    "mac": ("/var/folders/zz/zyx_1/T/abc/f", "/var/folders/zz/zyx_1/T/def/f"),
    "port": ("http://127.0.0.1:43211/x", "http://127.0.0.1:5555/x"),
    "port of localhost": ("localhost:43211 refused", "localhost:8 refused"),
    "port in a pair": ("bind('127.0.0.1', 43211)", "bind('127.0.0.1', 43212)"),
    "seed": ("random seed: 123", "random seed: 99"),
    "randomly": ("Using --randomly-seed=123", "Using --randomly-seed=4294"),
    "rspec": ("Randomized with seed 1234", "Randomized with seed 9"),
    "hypothesis": ("@reproduce_failure('6.1', b'AXic')", "@reproduce_failure('6.1', b'AAEB')"),
    "space": ("a   b \t c  \n", "a b c\n"),
}

DIFFERENT = {
    "counts": ("3 failed, 5 passed in 0.12s", "2 failed, 6 passed in 0.12s"),
    "lines": ("a.py:12: AssertionError", "a.py:13: AssertionError"),
    "lines and columns": ("a.c:12:34: error", "a.c:12:35: error"),
    "lines in a temporary folder": ("/tmp/by-x/a.py:12: no", "/tmp/by-x/a.py:13: no"),
    "values": ("assert 4 == 5", "assert 4 == 6"),
    "lists": ("assert [1234] == [1]", "assert [1235] == [1]"),
    "small hex": ("assert 0xff == 0x01", "assert 0xfe == 0x01"),
    "names": ("FAILED tests/test_a.py::test_x", "FAILED tests/test_a.py::test_y"),
    "files in a temporary folder": ("no /tmp/x/a.txt", "no /tmp/x/b.txt"),
    "order": ("a\nb", "b\na"),
    "sizes": ("used 12 MB", "used 13 MB"),
    "versions": ("needs 1.2.3", "needs 1.2.4"),
    "per cent": ("coverage 81%", "coverage 82%"),
    "hosts": ("http://a.example:80", "http://a.example:81"),
    "words that begin like units": ("3 steps", "4 steps"),
    "a word after seed": ("seeds: apples", "seeds: pears"),
}


@pytest.mark.parametrize("case", SAME)
def test_what_changes_by_itself_is_no_other_failure(case: str) -> None:
    one, other = SAME[case]
    assert of_failure("exit 1", one) == of_failure("exit 1", other)


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_says_something_of_the_failure_counts(case: str) -> None:
    one, other = DIFFERENT[case]
    assert of_failure("exit 1", one) != of_failure("exit 1", other)


def test_how_it_ended_counts() -> None:
    assert of_failure("exit 1", "no") != of_failure("exit 2", "no")
    assert of_failure("timed out after 5m") != of_failure("exit 1")


def test_only_the_end_counts_and_it_does_not_move_with_the_length_of_a_time() -> None:
    body = "".join(f"line {number} of many\n" for number in range(2000))
    assert of_failure("exit 1", "took 1 ms\n" + body) == of_failure("exit 1", "took 123456 ms\nand more\n" + body)
    assert of_failure("exit 1", body + "a") != of_failure("exit 1", body + "b")
    timed = [f"test {number} ok ({number}ms)\n" for number in range(2000)]
    later = [f"test {number} ok ({number * 1000}ms)\n" for number in range(2000)]
    assert of_failure("exit 1", "".join(timed)) == of_failure("exit 1", "".join(later))


@pytest.mark.parametrize(
    "text", ["1" * 32_000, "1m" * 16_000, "=" * 32_000, "0x" * 16_000, "a-" * 16_000, "/tmp/" * 6_000]
)
def test_no_output_makes_a_fingerprint_slow(text: str) -> None:
    assert effort(lambda: of_failure("exit 1", text)) < MANY_PASSES


def test_a_fingerprint_is_short_and_takes_any_text() -> None:
    assert len(of_failure("exit 1", "\udcff\x00\x1b[")) == 12


# -- in a box ----------------------------------------------------------------------------------------------------------


def says(mark: str, *, needs: str = "") -> Verdict:
    """Green without a mark."""
    return Verdict(check="make", passed=not mark, detail="", fingerprint=mark, needs=needs)


@pytest.mark.parametrize(
    ("free", "again", "expected"),
    [
        ("", "a", "outside"),
        ("b", "a", "outside"),  # the box hides the real failure
        ("", "c", "outside"),  # its failures differ, but outside it passes
        ("b", "c", "boxed"),  # different each time, so the box explains nothing
        ("", "", "flaky"),
    ],
)
def test_the_box_is_in_the_way_of_a_check_that_fails_twice_in_it_and_says_something_else_outside(
    free: str, again: str, expected: str
) -> None:
    found = unboxed(says("a"), says(free), says(again))
    word = "flaky" if found.flaky else "outside" if found.outside else "boxed"
    assert (word, found.fingerprint) == (expected, free if expected == "outside" else "a")


def test_a_check_that_could_not_write_to_a_folder_is_not_tried_again_and_names_the_folder() -> None:
    found = unboxed(says("a", needs="~/.npm"), says(""), None)
    assert (found.passed, found.outside, found.needs) == (True, True, "~/.npm")
    assert outside([found, says("")]) == {"make": "~/.npm"}
    assert in_the_way(found) == "the box does not let `make` write to ~/.npm"
