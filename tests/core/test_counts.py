"""How many tests ran, as runners say it: real outputs, and whatever else a check may print."""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.counts import always_counts, of
from bydawn.core.values import Counts

OUTPUTS = {path.stem: path.read_bytes().decode() for path in Path(__file__).with_name("outputs").glob("*.txt")}

# Written down from the tests that ran, not from what their runner or our reader says about them.
RAN: dict[str, tuple[int, int, int] | None] = {  # ran, skipped, failed
    "pytest-passed": (2, 0, 0),
    # good: one, two, one that is expected to fail and does, one that is and does not, one whose teardown breaks;
    # one fails; the set-up of one breaks, so it did not run; one is skipped
    "pytest-failed": (6, 1, 3),
    "pytest-failed-quiet": (6, 1, 3),
    "pytest-failed-dots": (6, 1, 3),  # -qq has no last line
    "pytest-colored": (6, 1, 3),
    "pytest-passed-verbose": (2, 0, 0),
    "pytest-filtered": (1, 0, 0),  # and seven others were not wanted, which is not skipped
    "pytest-all-filtered-quiet": (0, 0, 0),
    "pytest-none": (0, 0, 0),
    "pytest-none-quiet": (0, 0, 0),
    "pytest-not-imported": (0, 0, 1),
    "pytest-collect-only": (0, 0, 0),
    "unittest-passed": (2, 0, 0),
    # seven: one skipped; one fails, one raises, one has two bad parts, one should fail and does not
    "unittest-failed": (6, 1, 5),
    "unittest-all-skipped": (0, 2, 0),  # "Ran 2 tests"
    "unittest-class-skipped": (0, 1, 1),  # two classes of two tests: one is skipped, and the set-up of the other breaks
    "unittest-none": (0, 0, 0),
    "jest-passed-verbose": (4, 4, 0),  # three skipped and one that is only a title
    "jest-failed": (4, 4, 1),
    "jest-failed-colored": (4, 2, 1),
    "jest-all-filtered": (0, 6, 0),
    "jest-none": (0, 0, 0),
    "vitest-failed": (4, 2, 1),
    "vitest-failed-colored": (4, 2, 1),
    "vitest-all-filtered": (0, 6, 0),
    "vitest-none": (0, 0, 0),
    "vitest-not-imported": (0, 0, 0),
    "mocha-failed": (3, 2, 1),
    "mocha-passed-tap": (3, 0, 0),  # two were skipped, but its last lines, which stand for all before, do not say so
    "mocha-none": (0, 0, 0),
    # nine, two of them in a group and one in another test: one skipped, one marked as to do, one fails
    "node-failed-spec": (7, 2, 1),
    "node-failed-tap": (7, 2, 1),
    "node-all-filtered": (0, 8, 0),
    "node-none": (0, 0, 0),
    "go-passed": (3, 0, 0),  # of five packages one has no test file, and one has no test in it
    "go-failed": (3, 0, 1),  # the same; a test of one fails, and prints what looks like results
    # 12 tests and parts of tests: three skipped; two fail, and so does the one that the other is a part of
    "go-failed-verbose": (9, 3, 3),
    "go-failed-json": (5, 0, 3),  # only the package that fails
    "go-passed-json": (4, 2, 0),  # only three packages that pass
    "go-all-filtered-verbose": (0, 0, 0),
    "go-cached": (4, 0, 0),  # twice the same two packages
    "gotestsum-failed": (9, 3, 3),
    "gotestsum-failed-verbose": (9, 3, 3),
    "cargo-passed": (5, 1, 0),  # three, one in tests/, one in the documentation
    "cargo-failed": (5, 1, 1),
    "cargo-passed-colored": (3, 1, 0),
    "cargo-all-filtered": (0, 0, 0),
    "rspec-failed": (2, 3, 1),
    "rspec-failed-colored": (2, 3, 1),
    "rspec-none": (0, 0, 0),
    "rspec-not-loaded": (0, 0, 1),
    "maven-passed": (
        6,
        1,
        0,
    ),  # two modules have tests: five in two classes, two in one; a test prints a line like theirs
    "maven-passed-colored": (2, 0, 0),
    "maven-failed": (4, 1, 2),
    "maven-skipped": (0, 0, 0),
    "gradle-passed": None,  # it says nothing, and with other settings only what was not in its cache
    "gradle-failed": (4, 1, 2),  # and two in a module that passed, and that has no last line
    "junit-failed": (2, 1, 1),
    "junit4-passed": (2, 0, 0),
    "junit4-failed": (2, 0, 1),
    "bats-failed": (2, 2, 1),
    "bats-failed-pretty": (2, 2, 1),
    "bats-none": (0, 0, 0),
    "tap13-passed": (2, 2, 0),  # here a skipped test is "not ok"
    "perl-failed": (3, 3, 1),  # one of three is two in one; two skipped, one marked as to do
    "perl-skipped": (0, 0, 0),
    "prove-failed": (6, 0, 0),  # the same tests, but it neither says what was skipped nor how many failed
    "prove-verbose": (6, 0, 0),
    "tape-failed": (3, 0, 1),
    "minitest-failed": (3, 1, 2),
    "phpunit-failed": (3, 2, 1),
    "phpunit-passed": (1, 0, 0),
    "phpunit-none": (0, 0, 0),
    "ctest-failed": (3, 0, 1),  # one of three was skipped, which its last line does not say
    "ctest-none": (0, 0, 0),
    "jasmine-passed": (1, 1, 0),
    "playwright-failed": (3, 2, 1),  # one of three passed when it ran again
    "bun-failed": (2, 2, 1),
    "ava-passed": (1, 2, 0),
    "turbo": (2, 1, 0),
    "pnpm": (2, 1, 0),
    "concurrently": (2, 1, 0),
}


def counted(ran: int, skipped: int = 0, failed: int = 0) -> Counts:
    return Counts(ran=ran, skipped=skipped, failed=failed)


def test_every_output_has_an_expectation() -> None:
    assert OUTPUTS.keys() == RAN.keys()


@pytest.mark.parametrize("name", RAN)
def test_an_output_says_how_many_tests_ran(name: str) -> None:
    ran = RAN[name]
    assert of([OUTPUTS[name]]) == (ran and counted(*ran))


@pytest.mark.parametrize("name", RAN)
def test_the_ends_of_lines_do_not_matter(name: str) -> None:
    assert of([OUTPUTS[name].replace("\n", "\r\n")]) == of([OUTPUTS[name]])


def test_all_runs_in_one_output_are_added() -> None:
    names = [
        "pytest-failed",
        "jest-failed",
        "go-failed-verbose",
        "cargo-passed",
        "maven-passed",
        "bats-failed",
        "pytest-failed-dots",
        "node-failed-tap",
        "unittest-failed",
        "unittest-failed",
        "go-passed",
        "tape-failed",
    ]
    sums = [sum(column) for column in zip(*(RAN[name] or () for name in names), strict=True)]
    assert of("\n".join(OUTPUTS[name] for name in names)) == counted(*sums)


LINES = [
    ("=== 1 passed in 61.05s (0:01:01) ===", counted(1)),
    ("3 passed, 1 warning in 1.20 seconds", counted(3)),  # as pytest 4 wrote it
    ("1 warning, 2 errors in 0.10s", counted(0, failed=2)),
    ("no tests collected in 0.01s", counted(0)),
    ("\r50%\r100%\r3 passed in 0.01s", counted(3)),  # written over what was there
    ("Ran 1 test in 0.001s\n\nOK (skipped=2)", counted(1, 2)),  # two parts of one test
    ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", counted(0)),
    ("      Tests  1 expected fail | 1 skipped (2)", counted(1, 1)),
    ("ℹ cancelled 1", counted(1, failed=1)),
    ("1 example, 0 failures", counted(1)),
    ("1 spec, 0 failures", counted(1)),
    ("3 tests, 1 assertions, 0 failures, 0 errors, 1 pendings, 1 omissions, 0 notifications", counted(1, 2)),
    ("FAIL\texample.com/shop/a [build failed]", counted(0, failed=1)),
    ("?   \texample.com/shop/a\t[no test files]", counted(0)),
    ("1..0 # SKIP no database", counted(0)),
    ("[INFO] No tests to run.", counted(0)),
    ("web:test: 3 passed in 0.01s", None),  # nothing said that lines have something in front
    ("I ran it: 3 passed in 0.01s", None),
    ("3 passed in 0.01s, as it should be", None),
    ("3 passed the exam in 0.01s", None),
    ("3 passed", None),
    ("0 errors in 0.50s", None),  # some linter
    ("5 files checked in 0.50s", None),
    ("Ran 3 tests", None),
    ("Tests: see below", None),
    ("Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in com.example.Shop", None),
    ("OK (no problems)", None),
    ("ok", None),
    ("ok then", None),
    ("ok  \tand a tab", None),
    ("--- FAIL: TestPrice (0.00s)", None),
    ("# Tests", None),
    ("4 tests, 0 benchmarks", None),  # cargo test -- --list
    ("test result: fine", None),
    ("all tests passed", None),
    ("", None),
]


@pytest.mark.parametrize(("line", "meant"), LINES)
def test_a_report_is_a_whole_line_of_its_own(line: str, meant: Counts | None) -> None:
    assert of([f"something before\n{line}\nsomething after\n"]) == meant
    assert of([line]) == meant


def pieces(text: str, ends: list[int]) -> Iterator[str]:
    """The text, cut at these places."""
    places = [0, *sorted(end % (len(text) + 1) for end in ends), len(text)]
    return (text[start:end] for start, end in pairwise(places))


@given(st.sampled_from(sorted(OUTPUTS)), st.lists(st.integers(0, 9999), max_size=30))
def test_where_an_output_is_cut_into_pieces_does_not_matter(name: str, ends: list[int]) -> None:
    assert of(pieces(OUTPUTS[name], ends)) == of([OUTPUTS[name]])


FRAGMENTS = [
    "3 passed",
    " in 0.01s",
    "1 failed, ",
    "\n",
    "\r",
    "\x1b[32m",
    "\x1b[",
    "===",
    " ",
    "ok 1",
    "# SKIP",
    "Ran 2 tests",
    " in 0.001s",
    "OK (skipped=1)",
    "=== RUN   A",
    "ok  \ta\t0.1s",
    "[0] ",
    "a:test: ",
    "Scope: 2 of 3 x",
    "# tests 3",
    "9" * 30,
    "Tests:  ",
    "1 total",
    "... [100%]",
    "TAP version 13",
    "é✓🙂",
    "x" * 12_000,
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join), st.lists(st.integers(0, 99_999), max_size=10))
def test_any_text_has_one_answer_and_never_a_negative_one(text: str, ends: list[int]) -> None:
    counts = of([text])
    assert of(pieces(text, ends)) == counts
    assert counts is None or min(counts.ran, counts.skipped, counts.failed) >= 0


FOUR_MB = 1 << 22
HOSTILE = {
    "dots": "." * FOUR_MB,
    "one line": "some words 3 passed in 0.01s, " * (FOUR_MB // 30),
    "spaces": " " * FOUR_MB,
    "frames": "=" * FOUR_MB,
    "digits": "9" * FOUR_MB,
    "empty lines": "\n" * FOUR_MB,
    "short lines": "1\n" * (FOUR_MB // 2),
    "returns": "50%\r" * (FOUR_MB // 4),
    "colors": "\x1b[1m" * (FOUR_MB // 4),
    "half a color": "\x1b[" + ";" * FOUR_MB,
    "half a report": "1 failed, 1 failed, 1 failed, 1 failed\n" * (FOUR_MB // 39),
    "fronts in fronts": ("[1] a:test: " * 41 + "\n") * (FOUR_MB // 493),
    "fronts that count": "Scope: 2 of 3 x\n" + ("a:test: " * 62 + "\n") * (FOUR_MB // 497),
    "a number of 5,000 digits": f"{'9' * 5000} passed in 0.01s\nRan {'9' * 5000} tests in 0.001s\nok {'9' * 5000}\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_longest_and_strangest_output_is_read_in_a_moment_and_reports_nothing(name: str) -> None:
    text, before = HOSTILE[name], time.process_time()
    assert of(text[start : start + 65_536] for start in range(0, len(text), 65_536)) is None
    assert time.process_time() - before < 10  # most take some milliseconds, empty lines a fifth of a second


ALWAYS = [
    "pytest",
    "pytest -q",
    "pytest -q -x tests/test_a.py::test_b",
    "python -m pytest",
    "python3.12 -m pytest -v tests",
    "python3 -m unittest",
    "python3 -m unittest tests.test_a",
    ".venv/bin/pytest -q",
    "uv run pytest",
    "cargo test",
    "cargo test --workspace",
    "npx jest",
    "npx vitest run",
    "npx mocha",
    "node --test",
    "go test ./...",
    "go test -v ./...",
    "go test -race -count=1 ./...",
    "bundle exec rspec",
    "bats tests",
    "vendor/bin/phpunit",
    "mvn test",
    "./mvnw -B verify",
    "CI=1 npx jest",
    "cd web && npx jest",
    "ruff check . && pytest -q",
    "pytest -q && mypy src",
]
NOT_ALWAYS = [
    "",
    "make test",
    "npm test",
    "tox",
    "./gradlew test",
    "gradle test",
    "pytest -qq",
    "pytest -q -q -p no:terminal",
    "pytest --co",
    "pytest --version",
    "python -m pytest --help",
    "pytest | tail -1",
    "pytest || true",
    "pytest; true",
    "pytest > log",
    "pytest &",
    "true # && pytest",
    "true || false && pytest",
    "echo 'a && pytest'",
    "$(pytest)",
    "pytest\ntrue",
    "PYTEST_ADDOPTS=-qq pytest",
    "sh -c pytest",
    "pytest-watch",
    "mypytest",
    "cargo test --no-run",
    "cargo test -- --list",
    "go test -c",
    "go vet ./...",
    "mvn -q test",
    "mvn test -q",
    "mvn package",
    "npx jest --json",
    "npx jest --reporters=x",
    "npx vitest --reporter=json",
    "bats --count tests",
    "rspec --format json",
    "node --test --test-reporter=dot",
    "node test.js",
    "python test.py",
    "unittest",
]


@pytest.mark.parametrize("command", ALWAYS)
def test_a_plain_call_of_a_runner_always_reports_a_count(command: str) -> None:
    assert always_counts(command)


@pytest.mark.parametrize("command", NOT_ALWAYS)
def test_any_other_command_may_report_none(command: str) -> None:
    assert not always_counts(command)
