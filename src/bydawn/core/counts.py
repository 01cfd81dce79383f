"""How many tests ran? Test runners say it in lines for people; this file knows those lines."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain

from bydawn.core.values import Counts


def of(pieces: Iterable[str]) -> Counts | None:
    """The sum over all runs that an output reports; None if it reports none."""
    tally, rest = _Tally(), ""
    for piece in chain(pieces, "\n"):
        lines, _, rest = (rest + piece.replace("\r", "\n")).rpartition("\n")
        tally.read(_COLOR.sub("", lines) if "\x1b" in lines else lines)
        rest = rest[:9999]  # a longer line is in no row, or is in it for its beginning
    return tally.counts()


def always_counts(command: str) -> bool:
    """Does every run of this command that passes report a count? If in doubt, no."""
    return re.fullmatch(_ALWAYS, command) is not None


# An option can make a runner silent, so these are the ones that do not. As for its configuration: `addopts = "-q"` and
# pytest -q show only dots, but those count. Gradle is not here: what it has cached it does not show.
_ALWAYS = (
    r"(?a)(?:[\w ./:=,@+-]+ && )*(?:(?:CI|PYTHONPATH|[A-Z]+_ENV)=[\w./:-]* )*"
    r"(?:(?:uv|poetry|pipenv|pdm) run |npx |bundle exec )?(?:[\w.-]*/)*"
    r"(?:mvnw?(?: -B| -ntp)*(?: clean)? (?:test|verify)|(?:python[\d.]* -m (?:pytest|unittest)|pytest|jest|mocha|rspec"
    r"|vitest(?: run)?|node --test|go test|cargo test|bats|phpunit)(?: (?:-[qsxkmn]|-v+|-race|-count=\d+|--verbose|--ci"
    r"|--tb=\w+|--coverage|--cov(?:=[\w./]+)?|--runInBand|--workspace|--release|--locked|[\w./][\w./:,@*\[\]=-]*))*)"
    r"(?: && [\w ./:=,@+-]+)*"
)

_RAN, _SKIPPED, _FAILED = {"ran": 1}, {"skipped": 1}, {"ran": 1, "failed": 1}
_BROKEN, _NOT_RUN = {"failed": 1}, {"ran": -1, "skipped": 1}


def _each(words: str, kind: dict[str, int]) -> dict[str, dict[str, int]]:
    return dict.fromkeys(words.split(), kind)


# Runners that say parts: `1 failed, 3 passed, 2 skipped`. Every other word, such as `deselected`, counts nothing.
_PARTS = {
    **_each("pass passed passing xfailed xpassed expected flaky successful", _RAN),
    **_each("fail failed failing cancelled", _FAILED),
    **_each("error errors", _BROKEN),
    **_each("skip skipped pending ignored todo", _SKIPPED),
}
# Runners that say the whole first: `6 tests, 1 failure, 2 skipped`.
_WHOLE = {
    **_each("ran run test tests runs example examples spec specs completed of", _RAN),
    **_each("failure failures error errors failed", _BROKEN) | {"unexpected successes": _BROKEN},
    **_each("skipped skips pending pendings omissions incomplete", _NOT_RUN),
}
_SAY_THE_WHOLE = {"gotestsum", "maven", "gradle", "phpunit", "ctest", "prove", "summary"}
_STANDS_FOR = {"pytest": "dots", "gotestsum": "packages", "prove": "tap", "node_tests": "tap"}
_DOTS = {".": _RAN, "x": _RAN, "X": _RAN, "F": _FAILED, "E": _BROKEN, "s": _SKIPPED}
_GO = {"run": _RAN, "skip": _NOT_RUN, "fail": _BROKEN}

_N = r"\d{1,9}+"  # a longer number is not a count
_MORE = rf"(?:, {_N} [a-z ]{{1,60}}){{0,9}}"
_IN = rf"{_MORE} in \d{{1,9}}\.\d\d(?:s| seconds)(?: \([^()\n]{{1,40}}\))?"
_PYTEST = rf" (?<!\n0 )(?:warnings?, {_N} )?(?:x?passed|x?failed|skipped|deselected|errors?|tests? collected){_IN}"
# Whole lines, with the name of their row at the end. Each row begins with a literal or one class of characters: so at
# nearly every line of an output, one look at its first character is enough to pass over the row.
_ROWS = (
    rf"=={{0,299}}+ (?:no tests ran{_IN}|{_N}{_PYTEST}) ={{1,300}}(?P<pytest>)",
    rf"no tests (?:ran|collected){_IN}(?P<pytest_>)",
    rf"\d\d{{0,8}}+(?:{_PYTEST}(?P<pytest__>)"
    rf"| (?:examples?|specs?|tests?|runs)(?:, {_N} assertions)?, {_N} failures?{_MORE}(?P<summary>)"  # rspec, minitest
    rf"| tests? completed{_MORE}(?P<gradle>)"
    rf"|% tests passed, {_N} tests? failed out of {_N}(?P<ctest>)|\.\.0(?: #[^\n]*)?(?P<plan>))",
    r"[.FEsxX][.FEsxX]{0,499}+ {1,500}\[ {0,2}\d{1,3}%\](?P<dots>)",  # of pytest; with -qq it says no more
    rf"Ran {_N} tests? in \d{{1,9}}\.\d{{3}}s(?P<unittest>)",
    rf"[FNO][A-Z ]{{2,12}}+\((?:[a-z ]{{1,30}}={_N}(?:, )?){{1,9}}\)(?P<outcome>)",  # and then: OK (skipped=2)
    rf"Tests: {{2,9}}(?:{_N} [a-z]{{1,20}}, ){{0,8}}{_N} total(?P<jest>)",
    # vitest; then mocha, bun, playwright and ava; then subtests of go
    rf"  {{0,39}}+(?:Tests  (?:no tests|{_N} [a-z ]{{1,20}}(?:\| {_N} [a-z ]{{1,20}}){{0,8}}\({_N}\))(?P<vitest>)"
    rf"|(?:(?<=\n )|(?<=\n  )){_N} (?:tests? )?(?:pass(?:ed|ing)?|fail(?:ed|ing)?|pending|skip(?:ped)?|todo|flaky)"
    r"(?: \([\d.]{1,9} ?[a-z]{1,3}\))?(?P<mocha>)|--- (?:SKIP|FAIL): [^\n]*(?P<go_end_>))",
    rf"# tests {_N}(?P<node_tests>)",
    rf"[#ℹ] (?:pass|fail|cancelled|skipped|todo) {{1,2}}{_N}(?P<node>)",
    r"=== RUN {3}[^\n]*(?P<go_run>)",
    r"--- (?:SKIP|FAIL): [^\n]*(?P<go_end>)",
    r"ok  \t[^\t\n]{1,500}\t(?:\(cached\)|[\d.]{1,12}s)(?:[\t ](?:coverage: |\[)[^\n]*)?(?P<go_ok>)",
    r"FAIL\t[^\t\n]{1,500}(?:\t[\d.]{1,12}s| \[(?:build|setup) failed\])(?P<go_failed>)",
    r"\? {3}\t[^\t\n]{1,500}\t\[no test files\](?P<none__>)",
    r'\{"Time":"[^"\n]{1,60}","Action":"(?:run|pass|fail|skip)","Package":"[^\n]*(?P<go_json>)',
    rf"DONE {_N} tests?{_MORE} in [\d.]{{1,12}}s(?P<gotestsum>)",
    rf"test result: (?:ok|FAILED)\. {_N} passed; [^\n]{{1,200}}(?P<cargo>)",
    rf"Tests (?:run: {{1,2}}{_N}(?:, {{1,2}}[A-Z][a-z]{{3,12}}: {_N}){{1,5}}|are skipped\.)(?P<maven>)",  # no class
    rf"\[ {{1,9}}{_N} tests (?:successful|failed|skipped) {{1,19}}\](?P<junit>)",
    rf"Tests: {_N}, Assertions: [^\n]{{1,200}}\.(?P<phpunit>)",
    rf"OK \({_N} tests?(?:, {_N} assertions?)?\)(?P<phpunit_>)",  # and JUnit 4
    rf"Files={_N}, Tests={_N}, [^\n]{{1,200}}(?P<prove>)",
    rf"ok {_N}(?: [^\n]{{0,999}})?(?P<ok>)",
    rf"not ok {_N}(?: [^\n]{{0,999}})?(?P<not_ok>)",
    r"TAP version \d\d(?P<tap>)",
    r"No tests? (?:(?:files )?found(?:, exiting with code \d)?|executed!|were found!!!|to run\.)(?P<none>)",
    r"\[(?:\d{1,3}|INFO|WARNING|ERROR)\] (?P<front>[^\n\[][^\n]{0,500})",  # of concurrently, and of Maven
    r" {3}• Packages in scope: [^\n]*(?P<scope>)",  # turbo, and then pnpm: every line of a test gets a front
    r"Scope: (?:all )?\d{1,9}+ [^\n]*(?P<scope_>)",
)
_LINE = re.compile(rf"(?am)\n(?!\n)(?:{'|'.join(_ROWS)}) {{0,9}}$")
_FRONTED = re.compile(rf"{_LINE.pattern}|\n[\w@./-]{{1,80}}+[: ]test[\w:.-]{{0,40}}: (?P<front_>[^\n]{{1,500}})$")
_NUMBERS = (r"(?P<n>\d+) (?:tests? )?(?P<word>[a-z]+)", r"(?P<word>(?:(?:un)?expected )?[a-z]+)(?:=|:? +)(?P<n>\d+)")
_COLOR = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\(B)")


class _Tally:
    """What has been counted so far in one output."""

    def __init__(self) -> None:
        self._line = _LINE
        # Under "": what is sure. Under a runner: single tests of a run, for which its last line may stand.
        self._of: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def counts(self) -> Counts | None:
        if "" not in self._of:
            return None
        for runner in (*self._of,):
            self._close(runner)
        return Counts(**self._of[""])

    def read(self, lines: str) -> None:
        for found in self._line.finditer(f"\n{lines}"):
            row = (found.lastgroup or "").rstrip("_")
            if row == "front":
                self.read(found[found.lastgroup or 0])
            elif row != "scope":
                self._take(row, found[0][1:])
            elif self._line is _LINE:
                self._line = _FRONTED
                self.read(lines[found.end() :])
                break

    def _take(self, row: str, line: str) -> None:
        if row == "go_end" and not self._of["go"]:
            return  # without -v, only tests that failed are named
        self._add({})
        if row in ("unittest", "tap"):  # the next run of it begins
            self._close(row)
        match row:
            case "dots":
                for dot in line.split(" ", 1)[0]:
                    self._add(_DOTS[dot], row)
            case "unittest" | "outcome":
                self._sum(line, _WHOLE, "unittest")
            case "go_run" | "go_end":
                self._add(_GO[line.split()[1][:4].lower()], "go")
            case "go_ok" | "go_failed":
                kind = _RAN if row == "go_ok" else _BROKEN if line[-1] == "]" else _FAILED
                self._add({} if self._of["go"] or "[no test" in line else kind, "packages")
                self._close("go", "packages")
            case "go_json":
                self._add(_GO.get(line.split('"')[7], {}) if '"Test":"' in line else {})
            case "ok" | "not_ok":
                aside = "#" in line and re.search(r"(?i)# *(?:skip|todo)\b", line)
                self._add(_SKIPPED if aside else _RAN if row == "ok" else _FAILED, "tap")
            case _:
                self._of.pop(_STANDS_FOR.get(row, row), None)
                self._sum(line, _WHOLE if row in _SAY_THE_WHOLE else _PARTS)

    def _sum(self, line: str, words: Mapping[str, Mapping[str, int]], runner: str = "") -> None:
        """Add the numbers in a line, each as the word beside it says."""
        for pattern in _NUMBERS:
            for found in re.finditer(pattern, line.lower()):
                self._add(words.get(found["word"], {}), runner, int(found["n"]))

    def _add(self, kind: Mapping[str, int], runner: str = "", times: int = 1) -> None:
        counted = self._of[runner]
        for name, number in kind.items():
            counted[name] += number * times

    def _close(self, runner: str, into: str = "") -> None:
        counted = self._of.pop(runner, Counter())
        if counted["ran"] < 0:  # more skipped than ran: those were parts of tests, or whole classes
            counted["ran"] += counted["skipped"]
        self._of[into].update(counted)
