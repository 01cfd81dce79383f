"""Which files are tests, which decide what tests run and how, and which are the work?"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from posixpath import basename, dirname, normpath

from bydawn.core.globs import is_protected
from bydawn.core.loop import CommandCheck, Loop
from bydawn.core.ports import Difference


class Side(StrEnum):
    """What a file is to a proof."""

    TEST = "test"
    DATA = "test data"
    STEERING = "steering"  # it decides which tests run, and how
    DOCUMENT = "document"
    ELSEWHERE = "elsewhere"  # what it says takes effect when something is installed, built or deployed
    WORK = "work"


_CODE = r"py|js|jsx|ts|tsx|mjs|cjs|mts|cts"
_FOLDERS = r"[Tt]ests?|__(?:tests|mocks)__|[Ss]pecs?|[Tt]esting|e2e|[\w.-]*(?:[-_.][Tt]|[a-z]T)ests?"
_NAMED = (
    rf"(?:^|/)(?:test_[^/]*\.(?:py|rb|php)|tests?\.(?:{_CODE}|rs)|[^/]*_tests?\.\w+|[^/]*[._-](?:test|spec|cy)\.(?:{_CODE})|"
    r"[^/]*_spec\.\w+|[^/]*(?:Tests?|IT|Spec)\.(?:java|kt|kts|scala|groovy|cs|php|swift)|[^/]*\.(?:bats|t|feature))$"
)
_TESTS = rf"(?:^|/)(?:{_FOLDERS})/|{_NAMED}"
_DATA = r"\.snap$|\.golden$|(?:^|/)(?:__snapshots__|testdata|cassettes)/"
# As a whole; of others only some keys matter (core/steering.py).
_STEERING = (
    r"(?:^|/)(?:conftest\.py|\.?pytest\.(?:ini|toml)|noxfile\.py|(?:sitecustomize|usercustomize)\.py|[^/]*\.pth|\.npmrc|\.rspec|"
    r"jest\.[^/]*|vite\.config\.[^/]*|vitest\.[^/]*|karma\.conf\.[^/]*|\.mocharc[^/]*|(?:playwright|cypress)\.config\.[^/]*|"
    r"phpunit\.xml[^/]*|\.coveragerc|[^/]*\.(?:egg|dist)-info/entry_points\.txt)$"
)
KEYED = {"package.json", "pyproject.toml", "setup.cfg", "tox.ini"}
_RUNNERS = {
    "make": r"(?:^|/)(?:(?:GNU)?[Mm]akefile|[^/]*\.mk)$",
    "just": r"(?:^|/)\.?[Jj]ustfile$",
    "rake": r"(?:^|/)Rakefile$",
    "cargo": r"(?:^|/)\.cargo/config(?:\.toml)?$",
}
# What a script, a Makefile or a package names as well: likely a part of the check, and hardly the work.
_HELPER = (
    r"\.(?:sh|bash|mk)$|(?:^|/)(?:scripts?|tools?|ci)/[^/]+$|"
    r"(?:^|[/_.-])(?:(?:self)?(?:tests?|checks?)|verify|specs?|lint|ci)(?:[_.-][^/]*)?$"
)
_DOCUMENTS = (
    r"(?i)\.(?:md|mdx|rst|adoc|txt|png|jpe?g|gif|svg|pdf)$|(?:^|/)(?:LICEN[CS]E|NOTICE|AUTHORS|CHANGELOG|README)[^/]*$"
)
_ELSEWHERE = (
    r"(?:^|/)(?:package(?:-lock)?\.json|pyproject\.toml|setup\.(?:py|cfg)|tox\.ini|requirements[^/]*\.txt|Pipfile[^/]*|"
    r"[^/]*\.lock|pnpm-lock\.yaml|Cargo\.toml|go\.(?:mod|sum)|Gemfile|[^/]*\.gemspec|composer\.json|pom\.xml|"
    r"[^/]*\.gradle(?:\.kts)?|(?:GNU)?[Mm]akefile|CMakeLists\.txt|[Jj]ustfile|Dockerfile[^/]*|(?:docker-)?compose[^/]*\.ya?ml|"
    r"Jenkinsfile|\.gitlab-ci\.yml|\.(?:git|docker|npm)ignore|\.editorconfig|\.pre-commit-config\.yaml|"
    r"MANIFEST\.in)$|(?:^|/)\.(?:github|circleci|husky|vscode)/"
)
_IMPORTED = (  # by Python's test runners, and names that a project hardly gives its own modules
    "unittest argparse traceback warnings difflib fnmatch inspect importlib contextlib weakref doctest pdb _pytest "
    "pluggy iniconfig packaging linecache ast dis bdb signal pprint logging collections functools itertools types "
    "tempfile shutil"
)
_INTO = r"(?:^|[;&|]\s*)cd\s+([\w./-]+)"
_FOLLOWED = 20_000  # bytes of a script that are read
_PROGRAM = r"(?:^|[;&|]\s*|\s-m\s+)(?:\w+=\S*\s+)*([\w-]+)"  # of a command, or the module that Python runs


class Sides:
    """The files of one loop's workspace."""

    def __init__(self, loop: Loop) -> None:
        self.commands = tuple(check.command for check in loop.checks if isinstance(check, CommandCheck))
        words = {word for command in self.commands for word in _words(command)}
        folders = ["", *(word for command in self.commands for word in re.findall(_INTO, command))]
        self._globs = (*(glob for glob in loop.tests if not glob.startswith("!")), *loop.protect)
        work = [glob[1:] for glob in loop.tests if glob.startswith("!")]
        self._ours = {normpath(path) for path in (loop.tasks, loop.progress, loop.opinions) if path}

        def below(names: set[str]) -> set[str]:
            return {normpath(f"{folder}/{name}" if folder else name) for name in names for folder in folders}

        self.named = {path for path in below(words) if not (work and is_protected(path, work))}
        # What `python -m` runs; a new file of such a name takes the place of a runner.
        modules = below({path for command in self.commands for path in _modules(command)})
        self._modules = {path for path in modules if not (work and is_protected(path, work))}
        programs = {word for command in self.commands for word in re.findall(_PROGRAM, command)}
        # A file that is called like the program, the module, or what these import, takes its place.
        python = any(re.match(r"python|py\.?test|tox|nox|coverage", name) for name in programs)
        self._programs = {*programs}
        programs |= {*_IMPORTED.split()} if python else set()
        self._impostors = below({f"{name}{end}" for name in programs for end in (".py", ".js", "/__init__.py")})
        self._runners = [pattern for program, pattern in _RUNNERS.items() if program in programs]

    def follow(self, files: Mapping[str, str], read: Callable[[str], bytes]) -> None:
        """What the scripts of a check name in turn is a part of it, too; two steps far.

        `files`: all there are, by path, each with its form.
        """
        files = {path: form for path, form in files.items() if form.startswith("100")}  # no links
        scripts = {"package.json"} if self._programs & {"npm", "pnpm", "yarn", "bun"} else set[str]()
        left = {each for each in files if each in self.named | scripts or self._is_runner(each)}
        for _ in range(2):
            found = {word for path in left for word in self._mentioned(path, read(files[path]))}
            left = {word for word in found & files.keys() - self.named if re.search(_HELPER, word)}
            self.named |= left

    def _mentioned(self, path: str, data: bytes) -> Iterator[str]:
        text = data[:_FOLLOWED].decode(errors="replace")
        if path == "package.json":
            from bydawn.core import steering

            text = " ".join(map(str, steering.keys(path, data, self.commands).values()))
        for word in _words(text):
            yield from (normpath(word), normpath(f"{dirname(path)}/{word}".lstrip("/")))

    def _is_runner(self, path: str) -> bool:
        return any(re.search(pattern, path) for pattern in self._runners)

    def is_list(self, path: str) -> bool:
        """Is it the loop's own list of tasks, or the notes that it asks for?"""
        return path in self._ours or any(path.startswith(f"{each}/") for each in self._ours)

    def of(self, path: str) -> Side:
        if self.is_list(path):
            return Side.DOCUMENT
        if self.steers(path):
            return Side.STEERING
        if re.search(_DATA, path):
            return Side.DATA
        if (
            path in self.named | self._modules
            or re.search(_TESTS, path)
            or (self._globs and is_protected(path, self._globs))
        ):
            return Side.TEST
        if re.search(_ELSEWHERE, path):
            return Side.ELSEWHERE
        return Side.DOCUMENT if re.search(_DOCUMENTS, path) else Side.WORK

    def may_be_work(self, path: str) -> bool:
        """Is it a test only because a check names it? Then it may be the program: `python3 app.py`."""
        return (
            path in self.named | self._modules and not re.search(f"{_TESTS}|{_HELPER}", path) and not self.steers(path)
        )

    def steers(self, path: str) -> bool:
        return self._is_runner(path) or basename(path) in KEYED or re.search(_STEERING, path) is not None

    def is_module(self, path: str) -> bool:
        """Would a runner collect it? Other files of tests only help them."""
        return re.search(_NAMED, path) is not None

    def of_change(self, change: Difference, read: Callable[[str], bytes]) -> Side:
        """The same for a change; in some files only some keys steer anything."""
        side = Side.STEERING if not change.old and self.takes_a_place(change.path) else self.of(change.path)
        if side is not Side.STEERING or basename(change.path) not in KEYED:
            return side
        from bydawn.core import steering  # its parsers take a while to load, and few loops need them

        old, new = (
            steering.keys(change.path, read(form) if form else b"", self.commands) for form in (change.old, change.new)
        )
        return Side.STEERING if old != new else Side.ELSEWHERE

    def takes_a_place(self, path: str) -> bool:
        """Would a new file be found in the place of what a check runs?"""
        return path in self._impostors or (basename(path) in self._programs and not path.startswith("."))


def _words(text: str) -> Iterator[str]:
    return filter(None, (word.strip("'\",:$@") for word in re.split(r"[\s;&|()=]+", text)))


def _modules(command: str) -> Iterator[str]:
    """The files of what `python -m` runs."""
    for module in re.findall(r"\s-m\s+([\w.]+)", command):
        yield from (f"{module.replace('.', '/')}{end}" for end in (".py", "/__main__.py"))


_LIKE_A_TEST = (
    rb"(?m)^\s*(?:#\[(?:\w+::)?test\b|#\[cfg\(test\)|>>> |(?:it|test|describe)\(|def test_|func Test|@Test\b|TEST\()"
)


def adds_tests(old: bytes, new: bytes) -> bool:
    """Was a line added that has the form of a test?

    >>> one = b"#[test]\\nfn a() {}\\n"
    >>> adds_tests(b"", one), adds_tests(one, one + b"fn b() {}")
    (True, False)
    """
    known = {*old.splitlines()}
    return re.search(_LIKE_A_TEST, b"\n".join(line for line in new.splitlines() if line not in known)) is not None


def takes_from_tests(old: bytes, new: bytes) -> bool:
    """Is a line gone that was a test in a file of code, or stood below one?"""
    first = re.search(_LIKE_A_TEST, old)
    return first is not None and not {*old[first.start() :].splitlines()} <= {*new.splitlines()}
