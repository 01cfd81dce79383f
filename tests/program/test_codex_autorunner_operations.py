"""What the web page of codex-autorunner will ask for exists without a server: documents, state, stop, a live log."""

from pathlib import Path

import pytest

from bydawn.core import prompt
from bydawn.core.errors import UserError
from bydawn.dialects.codex_autorunner.config import LOG
from bydawn.operations.dialects.codex_autorunner import documents, logs, repository, running
from driving import Home, said
from program.autorunner import ITEM, Autorunner


@pytest.fixture
def runner(home: Home, monkeypatch: pytest.MonkeyPatch) -> Autorunner:
    """In this process too it is the home of the story that counts."""
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, home.env[name])
    runner = Autorunner(home)
    runner.plays(ITEM)
    return runner.ready(2)


def test_documents_are_read_and_replaced_as_they_are(runner: Autorunner) -> None:
    root, config = runner.repo, repository.config_of(runner.repo)
    found = documents.read(root, config)
    assert found == {kind: (root / path).read_text() for kind, path in config.documents.items()}
    documents.write(root, config, "progress", "café\r\nno end")
    assert (root / "PROGRESS.md").read_bytes() == "café\r\nno end".encode()


def test_nothing_is_written_through_a_link_or_without_measure(runner: Autorunner, tmp_path: Path) -> None:
    root, config = runner.repo, repository.config_of(runner.repo)
    (tmp_path / "outside").write_text("theirs\n")
    (root / "OPINIONS.md").unlink()
    (root / "OPINIONS.md").symlink_to(tmp_path / "outside")
    (root / "PROGRESS.md").unlink()
    (root / "PROGRESS.md").symlink_to("README.md")
    before = (root / "README.md").read_text()
    for kind, text in (("opinions", "x"), ("progress", "x"), ("todo", "x" * 2_000_000)):
        with pytest.raises(UserError):
            documents.write(root, config, kind, text)
    assert ((tmp_path / "outside").read_text(), (root / "README.md").read_text()) == ("theirs\n", before)


def test_a_live_log_and_a_stop_between_two_runs(runner: Autorunner) -> None:
    gate = runner.home.root / "go"
    runner.plays({**ITEM, "reply": "Half of it.", "wait_for": str(gate)})
    assert running.stop(runner.repo) is False, "nothing runs"
    stream = logs.follow(runner.repo)
    assert next(stream) is None, "nothing new yet"
    process = runner.start("run")
    heard: list[str] = []
    while not any(line.endswith("stdout: Half of it.") for line in heard):
        assert len(heard) < 100
        heard += [line for line in [next(stream)] if line is not None]
    assert heard == runner.log.splitlines()
    assert repository.standing(runner.repo).status == "running"
    assert running.stop(runner.repo) is True
    gate.touch()
    assert said(process).code == 130
    assert runner.runs == [(1, "0")]
    assert repository.standing(runner.repo).status == "idle"


def test_what_a_loop_takes_over_of_a_long_run_is_its_end_from_the_start_of_a_line(tmp_path: Path) -> None:
    """A-035: it goes into the record, so it is cut before the prompt cuts it."""
    path = tmp_path / LOG
    path.parent.mkdir()
    lines = [f"[2025-01-01T12:34:56Z] run=7 stdout: line {number:04}" for number in range(1000)]
    path.write_text("\n".join(["=== run 7 start ===", *lines, "=== run 7 end (code 0) ===", ""]))
    first, *rest = logs.last_output(tmp_path, 7, 100).splitlines()
    assert (first, rest) == (prompt.EARLIER_LEFT_OUT, [f"line {number:04}" for number in range(990, 1000)])
    assert logs.last_output(tmp_path, 6, 100) == "", "that run is not the last"
    assert logs.last_output(tmp_path, 7, 0) == ""
