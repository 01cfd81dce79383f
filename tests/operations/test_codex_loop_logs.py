"""`codex-loop logs tail`: the end of what Codex printed."""

from pathlib import Path

import pytest

from bydawn.core.errors import UserError
from bydawn.operations.dialects.codex_loop.reports import tail
from bydawn.store.lock import Lock
from core.facts_made import a_round, started
from operations.codex_loop_project import Project

KEY = "sk-proj-" + "a1B2" * 10


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "shop").mkdir()
    return Project(tmp_path / "shop")


def test_the_last_lines_of_the_newest_iteration_or_of_one_task_are_shown(project: Project) -> None:
    project.has(*a_round(1, task_id="001-lexer"), started(2, task_id="002-parser"))
    project.printed(1, '{"type":"turn.completed"}\n')
    project.printed(2, "".join(f'{{"n":{number}}}\n' for number in range(100)) + '{"half":')
    assert tail(project.root, 3) == ['{"n":98}', '{"n":99}', '{"half":']
    assert tail(project.root, 40, "001-lexer") == ['{"type":"turn.completed"}']
    assert len(tail(project.root, 40)) == 40


def test_a_running_iteration_is_shown_without_secrets_and_escapes(project: Project) -> None:
    """Its own file is masked only when it has ended."""
    project.has(started(1, task_id="001-lexer"))
    project.printed(1, f'{{"text":"OPENAI_API_KEY={KEY}"}}\n\x1b[2J{{"a":1}}\n')
    shown = tail(project.root, 40)
    assert (len(shown), shown[1]) == (2, '{"a":1}')
    assert KEY not in shown[0]


def test_an_iteration_that_only_complained_shows_that(project: Project) -> None:
    project.has(*a_round(1, task_id="001-lexer"))
    project.printed(1, "")
    project.printed(1, "error: no login\n", "stderr")
    assert tail(project.root, 40) == ["error: no login"]


def test_where_there_is_nothing_to_show_it_says_so(project: Project) -> None:
    assert tail(project.root, 40) == ["No iteration has run yet."]
    project.has(*a_round(1, task_id="001-lexer"), started(2, task_id="002-parser"))
    project.printed(1, "")
    project.printed(2, "")
    assert tail(project.root, 40) == ["Iteration 2 has printed nothing."]
    lock = Lock.take(project.folder / "lock")
    assert tail(project.root, 40) == ["Iteration 2 has printed nothing yet."]
    lock.release()
    assert tail(project.root, 40, "003-docs") == ["No iteration has worked on 003-docs yet."]
    (project.folder / "rounds/0001/prompt.md").unlink()
    assert tail(project.root, 40, "001-lexer") == ["The output of iteration 1 was removed by `bydawn clean`."]


def test_an_unknown_task_is_refused_with_the_known_ones(project: Project) -> None:
    project.has(*a_round(1, task_id="000-gone"))
    with pytest.raises(UserError, match="there is no task '02'") as refused:
        tail(project.root, 40, "02")
    assert refused.value.cause == "the tasks are: 001-lexer, 002-parser, 003-docs, 000-gone"


def test_a_task_is_known_before_anything_has_run(project: Project) -> None:
    project.configured()
    assert tail(project.root, 40, "001-lexer") == ["No iteration has worked on 001-lexer yet."]
    with pytest.raises(UserError, match="there is no task '02'"):
        tail(project.root, 40, "02")
