"""codex-autorunner and bad input: what, why, do this; nothing is written, nothing is spent."""

import os
from collections.abc import Callable
from typing import NamedTuple

import pytest

from driving import Home, is_error, tree_of
from program.autorunner import ITEM, OURS, Autorunner

Arrange = Callable[[Autorunner], object]


class Case(NamedTuple):
    """What is wrong, the command that meets it, and words that name it."""

    arrange: Arrange
    words: tuple[str, ...]
    named: str
    code: int = 2
    place: str = ""  # where it is called, from the repository on


def nothing(_: Autorunner) -> None: ...


def config(text: str) -> Arrange:
    return lambda runner: runner.config.write_text(text)


def value(**values: str) -> Arrange:
    return lambda runner: runner.set(**values)


def instead(name: str, data: bytes) -> Arrange:
    def arrange(runner: Autorunner) -> None:
        (runner.repo / name).write_bytes(data)

    return arrange


def a_folder(name: str) -> Arrange:
    def arrange(runner: Autorunner) -> None:
        (runner.repo / name).unlink()
        (runner.repo / name).mkdir()

    return arrange


def a_link(name: str, to: str) -> Arrange:
    def arrange(runner: Autorunner) -> None:
        (runner.home.root / "outside").write_text("- [ ] theirs\n")
        (runner.repo / name).unlink()
        (runner.repo / name).symlink_to(to)

    return arrange


def huge(runner: Autorunner) -> None:
    with open(runner.repo / "TODO.md", "ab") as file:
        file.truncate(100 << 20)


RUN = ("run",)
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
EXTRA = "docs: {extras: [{name: SPEC, path: spec.md, include_in_prompt: true}]}\n"
CASES = {
    "no repository": Case(nothing, RUN, "git", place="../tmp"),
    "inside of .git": Case(nothing, RUN, ".git", place=".git"),
    "--repo of a file": Case(nothing, ("run", "--repo", "README.md"), "README.md"),
    "--repo of nothing": Case(nothing, ("status", "--repo", "nowhere"), "nowhere"),
    "the list is a folder": Case(a_folder("TODO.md"), RUN, "TODO.md"),
    "the list leads out of the repository": Case(a_link("TODO.md", "../outside"), RUN, "TODO.md"),
    "a document leads out of the repository": Case(a_link("OPINIONS.md", "../outside"), RUN, "OPINIONS.md"),
    "the list has 100 MB": Case(huge, RUN, "TODO.md"),
    "the list is Latin-1": Case(instead("TODO.md", b"- [ ] caf\xe9\n"), RUN, "TODO.md"),
    "config is gone": Case(lambda runner: runner.config.unlink(), RUN, "codex-autorunner init"),
    "config is empty": Case(config(""), RUN, "config.yml"),
    "config is a list": Case(config("- a\n- b\n"), RUN, "config.yml:1"),
    "config has tabs": Case(config("docs:\n\ttodo: x\n"), RUN, "config.yml:2"),
    "config is 10,000 levels deep": Case(config("a: " + "[" * 10_000), RUN, "config.yml"),
    "config is a bomb of aliases": Case(config(BOMB), RUN, "config.yml"),
    "config merges itself": Case(config("version: 1\nx: &a {b: 1}\nrunner:\n  <<: *a\n"), RUN, "config.yml"),
    "config is too large": Case(config("# x\n" * 300_000), RUN, "config.yml"),
    "config has a tag": Case(config("version: 1\ncodex: !!python/name:os.system {}\n"), RUN, "config.yml:2"),
    "config has a key twice": Case(config("version: 1\nversion: 1\n"), RUN, "config.yml:2"),
    "another version": Case(config("version: 7\n"), RUN, "config.yml:1"),
    "a text for a number": Case(value(sleep_seconds='"soon"'), RUN, "config.yml:17"),
    "a negative number": Case(value(stop_after_runs="-1"), ("once",), "config.yml:18"),
    "a truth for a number": Case(value(prev_run_max_chars="true"), ("doctor",), "config.yml:13", code=1),
    "an empty argument": Case(value(args='["exec", ""]'), RUN, "config.yml:10"),
    "a text for a list": Case(value(args='"exec"'), RUN, "config.yml:10"),
    "a document outside": Case(value(todo='"../TODO.md"'), RUN, "config.yml:4"),
    "a document from the root": Case(value(todo='"/etc/passwd"'), RUN, "config.yml:4"),
    "a document for the prompt that is not there": Case(config(f"version: 1\n{EXTRA}"), RUN, "spec.md"),
    "a run below the first": Case(nothing, ("log", "--run", "-1"), "-1"),
    "a run that is a word": Case(nothing, ("log", "--run", "x"), "--run"),
    "a run that never was": Case(nothing, ("log", "--run", "999"), "999"),
    "no lines": Case(nothing, ("log", "--tail", "0"), "--tail"),
    "a document nobody has": Case(nothing, ("edit", "diary"), "diary"),
    "no such command": Case(nothing, ("runn",), "run"),
    "the state is a folder": Case(a_folder(f"{OURS}/state.json"), RUN, "state.json"),
    "the log is a folder": Case(a_folder(f"{OURS}/codex-autorunner.log"), RUN, "codex-autorunner.log"),
    "a run within a run": Case(lambda runner: runner.home.env.update(BYDAWN_COOKIE="x"), RUN, "inside"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_and_leaves_no_trace(home: Home, name: str) -> None:
    """A-007, A-019, A-042, A-050, A-055, A-056, X-12."""
    case, runner = CASES[name], Autorunner(home)
    runner.plays(ITEM)
    runner.ready()
    case.arrange(runner)
    before = tree_of(runner.repo)
    refused = runner(*case.words, cwd=(runner.repo / case.place).resolve())
    told = refused.err + (refused.out if case.words == ("doctor",) else "")
    assert (refused.code, case.named in told) == (case.code, True), refused
    if case.words != ("doctor",):
        assert [refused.err.startswith("error: "), "hint: " in refused.err, "Traceback" in refused.err] == [
            True,
            True,
            False,
        ]
    assert len(refused.err) < 3000
    assert (tree_of(runner.repo), runner.calls) == (before, [])


def test_a_bare_repository_has_no_work_tree(home: Home) -> None:
    """A-051, X-19."""
    runner = Autorunner(home)
    bare = home.root / "bare.git"
    (runner.repo / ".git").rename(bare)
    (bare / "config").write_text("[core]\n\tbare = true\n\trepositoryformatversion = 0\n")
    for words in (("run", "--repo", str(bare)), ("init", str(bare))):
        refused = runner(*words, cwd=home.root)
        assert (refused.code, is_error(refused.err)) == (2, True), refused
    assert not (bare / OURS).exists()


def test_a_folder_that_cannot_be_written_is_said_so(home: Home) -> None:
    """A-051."""
    runner = Autorunner(home)
    runner.repo.chmod(0o555)
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()
    refused = runner("init", before=drop)
    runner.repo.chmod(0o755)
    assert (refused.code, is_error(refused.err), "hint:" in refused.err) == (2, True, True), refused
    assert not (runner.repo / OURS).exists()


def test_unknown_keys_are_kept_and_named_once(home: Home) -> None:
    """A-020, X-12."""
    runner = Autorunner(home)
    runner.plays(ITEM)
    runner.ready(2)
    text = runner.config.read_text().replace("runner:\n", "runner:\n  sleep_secs: 3\n")
    runner.config.write_text(text)
    ended = runner("once")
    assert (ended.code, ended.err.count("sleep_secs"), "sleep_seconds" in ended.err) == (0, 1, True), ended
    assert runner.config.read_text() == text


def test_documents_can_be_anywhere_in_the_repository(home: Home) -> None:
    """A-014, A-066."""
    runner = Autorunner(home)
    runner.plays({**ITEM, "tick": "docs/list.md"})
    runner.ready(1, todo='"docs/list.md"')
    (runner.repo / "docs").mkdir()
    (runner.repo / "TODO.md").rename(runner.repo / "docs/list.md")
    (runner.repo / "SPEC.md").write_text("the spec says so\n")
    text = runner.config.read_text()
    extras = "  extras: [{name: SPEC, path: SPEC.md, include_in_prompt: true}]\n"
    runner.config.write_text(text.replace("\ncodex:\n", f"{extras}\ncodex:\n"))
    runner.trust(f"{OURS}/config.yml")
    ended = runner("run")
    assert ended.code == 0, ended
    assert "the spec says so" in runner.prompts[0]
