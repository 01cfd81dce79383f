"""Checks, with real children: where they run, what is kept of them, and how a failure is known again."""

import os
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from msgspec.structs import replace

from bydawn.core.errors import OwnFailure
from bydawn.core.loop import Check, CheckWhere, CommandCheck, PathCheck, TextCheck
from bydawn.core.proof import Proofs
from bydawn.core.redact import Secrets
from bydawn.core.values import Counts, Verdict
from bydawn.core.verdicts import counted
from bydawn.process.checks import ShellChecks
from bydawn.process.child import ChildProcesses
from bydawn.process.shell import Shell
from bydawn.store.folder import LoopFolder
from bydawn.store.rounds import Rounds
from bydawn.worktree.workspace import GitWorkspace


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)  # as a worker does
    return folder


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "loop"
    folder.mkdir()
    return folder


def shell(loop: Path, timeout: float = 30.0) -> Shell:
    files = Rounds(LoopFolder(loop), Secrets({}))
    return Shell(processes=ChildProcesses((), os.environ), files=files, env={}, timeout=timeout, reveal=str)


def checks_in(root: Path, loop: Path, timeout: float = 30.0) -> ShellChecks:
    return ShellChecks(shell(loop, timeout), root)


def clean_checks(root: Path, loop: Path, workspace: GitWorkspace) -> ShellChecks:
    return ShellChecks(shell(loop), root, where=CheckWhere.CLEAN, checkout=workspace.checkout)


def run(checks: ShellChecks, *wanted: Check | str, tree: str = "", again: bool = False) -> list[Verdict]:
    asked = [CommandCheck(command=each) if isinstance(each, str) else each for each in wanted]
    return [*checks.run(asked, 1, tree, lambda: False, again)]


def said(loop: Path, name: str) -> str:
    return (loop / "rounds" / "0001" / name).read_text()


def test_what_fails_has_a_fingerprint_and_what_passes_has_none(root: Path, loop: Path) -> None:
    checks = checks_in(root, loop)
    wanted: list[Check | str] = ["true", "exit 3", PathCheck(path="nowhere"), TextCheck(path="nowhere", text="x")]
    passed, *failed = run(checks, *wanted)
    assert passed.fingerprint == ""
    assert len({verdict.fingerprint for verdict in failed}) == 3
    assert all(verdict.fingerprint for verdict in failed)
    assert [verdict.fingerprint for verdict in run(checks, *wanted)[1:]] == [each.fingerprint for each in failed]


def test_a_path_has_to_be_a_file_or_folder_in_the_workspace(root: Path, loop: Path, tmp_path: Path) -> None:
    (root / "folder").mkdir()
    (root / "file").touch()
    os.mkfifo(root / "pipe")
    (tmp_path / "elsewhere").touch()
    for name, to in {
        "inside": "file",
        "outside": f"{tmp_path}/elsewhere",
        "itself": "itself",
        "out": f"{tmp_path}",
    }.items():
        (root / name).symlink_to(to)
    names = ["folder", "file", "inside", "pipe", "outside", "itself", "out/elsewhere"]
    verdicts = run(checks_in(root, loop), *(PathCheck(path=name) for name in names))
    assert [verdict.passed for verdict in verdicts] == [True, True, True, False, False, False, False]
    assert [verdict.told for verdict in verdicts[3:6]] == [
        "pipe is neither a file nor a folder",
        "outside is a link that leads out of the workspace",
        "itself does not exist",
    ]


def test_an_output_that_is_too_long_to_be_read_has_no_count_and_is_not_one_without_tests(
    root: Path, loop: Path
) -> None:
    tests = "echo 'Ran 3 tests in 0.001s'; echo; echo OK"
    [short, long] = run(checks_in(root, loop), tests, f"head -c 4300000 /dev/zero | tr '\\0' 'x'; {tests}")
    assert (short.counts, short.uncounted) == (Counts(ran=3), False)
    assert (long.passed, long.counts, long.uncounted) == (True, None, True)
    known = Proofs(counting=(long.check,), tested=(long.check,), red=(long.check,))
    assert counted(long, known, holds=True).passed
    assert not counted(replace(long, uncounted=False), known, holds=True).passed


def test_the_same_failure_is_known_again_whatever_times_are_in_it(root: Path, loop: Path) -> None:
    checks = checks_in(root, loop)
    [one] = run(checks, "echo 2 failed in 0.$$s, pid $$; date; exit 1")
    [two] = run(checks, "echo 2 failed in 0.$$s, pid $$; date; exit 1")
    [other] = run(checks, "echo 1 failed in 0.$$s, pid $$; date; exit 1")
    assert one.excerpt != two.excerpt
    assert one.fingerprint == two.fingerprint != other.fingerprint


def test_how_far_it_came_before_its_time_was_over_does_not_count(root: Path, loop: Path) -> None:
    checks = checks_in(root, loop, timeout=2.0)  # on a busy machine a shell takes its time to begin
    one, two = run(checks, "echo a; sleep 20", "echo b; sleep 20")
    assert one.timed_out
    assert one.excerpt != two.excerpt
    assert one.fingerprint == two.fingerprint != ""


def test_a_poisoned_cache_of_a_protected_module_is_not_used(root: Path, loop: Path) -> None:
    """It has the time and the size of the real source, as an agent would make it."""
    source = root / "judge.py"
    source.write_text("raise SystemExit(0)")
    compile_it = ["python3", "-c", "import py_compile; py_compile.compile('judge.py')"]
    subprocess.run(compile_it, check=True)
    stamp = source.stat()
    source.write_text("raise SystemExit(1)")
    os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    command = "python3 -c 'import judge'; code=$?; echo $PYTHONPYCACHEPREFIX; exit $code"
    [trusting] = run(checks_in(root, loop), command)
    checks = ShellChecks(shell(loop), root, temporary=loop / "tmp", distrusts_caches=True)
    [careful, other] = run(checks, command, command)
    assert (trusting.passed, careful.passed, other.passed) == (True, False, False)
    assert said(loop, "check-1.txt") != said(loop, "check-2.txt")  # one check cannot prepare the cache of the next
    assert os.listdir(root / "__pycache__")
    assert not (loop / "tmp").exists()


def test_where_another_tree_is_tried_every_run_begins_with_an_empty_cache(root: Path, loop: Path) -> None:
    checks = [CommandCheck(command="echo $PYTHONPYCACHEPREFIX")]
    for aside in ("", "held", "without"):
        ShellChecks(shell(loop), root, temporary=loop / "tmp").run(checks, 1, "", lambda: False, aside=aside)
    before, held, without = (said(loop, name) for name in ("check-1.txt", "held-1.txt", "without-1.txt"))
    assert before.strip() == ""
    assert held != without
    assert "pycache" in held and "pycache" in without


def test_a_second_try_does_not_overwrite_what_the_first_one_said(root: Path, loop: Path) -> None:
    checks = checks_in(root, loop)
    [first] = run(checks, "echo first; exit 1")
    [again] = run(checks, "echo second; exit 1", again=True)
    assert (first.output, again.output) == ("check-1.txt", "again-1.txt")
    assert said(loop, "check-1.txt") == "first\n"
    assert said(loop, "again-1.txt") == "second\n"


def test_a_dialect_may_have_stdout_and_stderr_apart_of_checks_that_pass_too(root: Path, loop: Path) -> None:
    """C-042: the end of each, where the reason stands."""
    checks = ShellChecks(shell(loop), root, splits_output=True)
    long = "seq 2000; echo FAILED: x >&2; exit 1"
    passed, failed, complained = run(checks, "echo fine; echo hm >&2", long, "echo no >&2; exit 1")
    assert (passed.stdout, passed.stderr, passed.excerpt) == ("fine\n", "hm\n", "")
    assert failed.stdout.endswith("1999\n2000\n")
    assert (len(failed.stdout) <= 1500, failed.stderr) == (True, "FAILED: x\n")
    assert failed.excerpt.endswith("2000\nFAILED: x\n")
    assert (failed.output, complained.output) == ("check-2.txt", "check-3-stderr.txt")
    [usual] = run(checks_in(root, loop), "echo fine; echo hm >&2; exit 1")
    assert (usual.stdout, usual.stderr, usual.excerpt.split()) == ("", "", ["fine", "hm"])


def test_a_command_knows_where_it_is(root: Path, loop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/somewhere/else")
    [verdict] = run(checks_in(root, loop), f'test "$PWD" = {root} && env | grep -qx PWD={root}')
    assert verdict.passed


def test_all_checks_of_a_run_see_one_clean_checkout(root: Path, loop: Path) -> None:
    (root / ".gitignore").write_text("ignored\n")
    (root / "kept").write_text("as it was\n")
    (root / "ignored").write_text("i")
    workspace = GitWorkspace(root, loop / "git")
    tree = workspace.snapshot().tree
    (root / "kept").write_text("changed since\n")
    verdicts = run(
        clean_checks(root, loop, workspace),
        'pwd; test "$PWD" = "$(pwd)" && env | grep -qx "PWD=$PWD" && test -z "$OLDPWD" && touch made',
        "pwd; test -e made && ! test -e ignored && ! test -e .git && grep 'as it was' kept",
        PathCheck(path="made"),
        PathCheck(path="ignored"),
        TextCheck(path="kept", text="as it was"),
        TextCheck(path="kept", text="changed since"),
        tree=tree,
    )
    assert [verdict.passed for verdict in verdicts] == [True, True, True, False, True, False]
    assert verdicts[3].told == "ignored does not exist, in a clean checkout"
    place = said(loop, "check-1.txt").strip()
    assert said(loop, "check-2.txt").startswith(f"{place}\n")
    assert place != str(root)
    assert not Path(place).exists()
    assert sorted(os.listdir(root)) == [".gitignore", "ignored", "kept"]


CANARIES = ("pytest.ini", "conftest.py", "node_modules/planted.js", "package.json", ".git/HEAD")
LOOKS_ABOVE = """
cd -P . && while [ "$PWD" != / ]; do
  for found in pytest.ini conftest.py node_modules package.json .git; do
    if grep -rqs planted "$found"; then echo "$PWD/$found"; fi
  done
  cd ..
done
"""


def test_what_an_agent_planted_beside_a_clean_checkout_does_not_reach_it(
    root: Path, loop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (root, tmp_path / "tmp"):
        for name in CANARIES:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text("planted")
    (root / ".gitignore").write_text("*")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    workspace = GitWorkspace(root, loop / "git")
    assert run(clean_checks(root, loop, workspace), LOOKS_ABOVE, tree=workspace.snapshot().tree)[0].passed
    assert said(loop, "check-1.txt") == ""
    assert run(checks_in(root, loop), LOOKS_ABOVE)[0].passed
    assert len(said(loop, "check-1.txt").splitlines()) == 5  # in the workspace they are found


def test_a_clean_checkout_is_in_no_repository_even_if_the_state_folder_is(root: Path, loop: Path) -> None:
    (root / "a").write_text("a")
    subprocess.run(["git", "init", "-q"], cwd=loop.parent, check=True)  # a home whose dot files are in git
    workspace = GitWorkspace(root, loop / "git")
    tree = workspace.snapshot().tree
    [verdict] = run(clean_checks(root, loop, workspace), "git rev-parse --git-dir", tree=tree)
    assert not verdict.passed
    assert "not a git repository" in verdict.excerpt


def test_a_failure_in_a_clean_checkout_names_the_files_of_the_workspace(root: Path, loop: Path) -> None:
    (root / "a.py").write_text("a")
    workspace = GitWorkspace(root, loop / "git")
    checks, tree = clean_checks(root, loop, workspace), workspace.snapshot().tree
    [one] = run(checks, 'echo "$PWD/a.py:3: no"; exit 1', tree=tree)
    [two] = run(checks, 'echo "$PWD/a.py:3: no"; exit 1', tree=tree)
    assert one.told == f"exit 1, in a clean checkout: {root}/a.py:3: no"
    assert one.excerpt == f"{root}/a.py:3: no\n"
    assert one.fingerprint == two.fingerprint
    assert said(loop, "check-1.txt") != one.excerpt


def test_a_command_with_quotes_dollars_and_lines_means_the_same_in_a_checkout(root: Path, loop: Path) -> None:
    workspace = GitWorkspace(root, loop / "git")
    command = 'set -- a \'b c\'; x="$#"\necho "$x $2" \'"\'; cat /dev/stdin; exit 0'
    run(checks_in(root, loop), command)
    run(clean_checks(root, loop, workspace), command, tree=workspace.snapshot().tree, again=True)
    assert said(loop, "again-1.txt") == said(loop, "check-1.txt") == '2 b c "\n'


def test_without_checks_nothing_is_checked_out(root: Path, loop: Path) -> None:
    def never(_: str) -> AbstractContextManager[Path]:
        raise AssertionError

    checks = ShellChecks(shell(loop), root, where=CheckWhere.CLEAN, checkout=never)
    assert run(checks) == []


def test_a_tree_that_is_not_there_is_no_verdict(root: Path, loop: Path) -> None:
    workspace = GitWorkspace(root, loop / "git")
    with pytest.raises(OwnFailure) as failure:
        run(clean_checks(root, loop, workspace), "true", tree="1" * 40)
    assert failure.value.what.startswith("cannot read a kept tree")
    assert failure.value.cause
    assert failure.value.hint
