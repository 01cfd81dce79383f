"""The configuration and the log of codex-autorunner, without a disk."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core import template
from bydawn.core.errors import UserError
from bydawn.core.keys import checked
from bydawn.dialects.codex_autorunner import config, log, texts
from bydawn.dialects.codex_autorunner.config import Asked, Config, Extra, asked
from bydawn.settings.yaml import parse

AT = datetime(2025, 1, 1, 12, 34, 56, tzinfo=UTC)


def read(text: str) -> Config:
    return config.read(checked(parse(text, "config.yml"), config.KEYS, "config.yml"))


# -- config.yml --------------------------------------------------------------------------------------------------------


def test_the_documents_own_configuration_is_the_default() -> None:
    """A-013, A-014, A-015, A-016, A-017, A-018"""
    found = read(texts.CONFIG)
    assert found == Config(where=found.where)
    assert found.remarks == ()
    assert found.where["codex.args"] == "config.yml:10"


def test_a_file_without_a_version_says_so() -> None:
    """A-066"""
    assert read("runner: {sleep_seconds: 5}").args == Config().args
    assert read("runner: {sleep_seconds: 5}").remarks == ("config.yml has no version; 1 is assumed",)


def test_an_empty_file_does_not_give_full_access() -> None:
    with pytest.raises(UserError, match=r"^config\.yml is empty$"):
        read("# nothing\n")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("version: 2", "config.yml:1: version 2 is not known"),
        ("version: one", "config.yml:1: version must be"),
        ("docs: {todo: ../TODO.md}", "config.yml:1: docs.todo must be"),
        ("docs: {todo: .git/config}", "config.yml:1: docs.todo cannot be"),
        ("docs: {todo: 'a}}b'}", "config.yml:1: docs.todo cannot be"),
        ("docs: {extras: [{name: '<x>', path: a.md}]}", "config.yml:1: '<x>' cannot be a name"),
        ("codex: {args: ['exec', '']}", "config.yml:1: codex.args must be"),
        ("codex: {args: exec}", "config.yml:1: codex.args must be"),
        ("docs: {progress: .codex-autorunner/state.json}", "config.yml:1: docs.progress cannot be"),
        ("prompt: {prev_run_max_chars: 100001}", "config.yml:1: prompt.prev_run_max_chars must be"),
        ("server: {port: 65536}", "config.yml:1: server.port must be a whole number, 0 to 65,535"),
        ("git: {commit_message_template: '{run} {task}'}", "config.yml:1: git.commit_message_template has {run}"),
        ("runner: {sleep_seconds: -1}", "config.yml:1: runner.sleep_seconds must be"),
        ("runner: {stop_after_runs: 0}", "config.yml:1: runner.stop_after_runs must be"),
        ("runner: {stop_after_runs: 1.5}", "config.yml:1: runner.stop_after_runs must be"),
        ("git: {auto_commit: yes}", "config.yml:1: git.auto_commit must be"),
        ("server: []", "config.yml:1: expected a mapping"),
    ],
)
def test_a_wrong_value_is_refused_with_its_line(line: str, what: str) -> None:
    """A-019, A-066"""
    with pytest.raises(UserError) as error:
        read(line)
    assert error.value.what.startswith(what)
    assert error.value.cause
    assert error.value.hint


def test_a_key_of_a_later_version_is_named_and_has_no_effect() -> None:
    """A-020"""
    found = read("version: 1\nrunner:\n  sleep_secs: 9\nnotifications: {enabled: true}\n")
    assert found.sleep_seconds == 5
    assert [remark.split(":")[1] for remark in found.remarks] == ["3", "4"]
    assert "sleep_seconds" in found.remarks[0]


def test_a_section_depends_on_the_document_that_it_names() -> None:
    found = config.template(Config(), "{{#TODO}}\nTasks: {{TODO}}\n{{/TODO}}\n")
    assert found == "{{#FILE:TODO.md}}\nTasks: {{FILE:TODO.md}}\n{{/FILE:TODO.md}}\n"
    assert template.problem(found, must_say_work=False) is None
    assert template.problem(config.template(Config(), "{{#EXTRAS}}\n{{/EXTRAS}}"), must_say_work=False)


# -- codex.args --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (("--yolo", "exec", "--sandbox", "danger-full-access"), Asked(sandbox="full")),
        (("exec", "--dangerously-bypass-approvals-and-sandbox"), Asked(sandbox="full")),
        (("exec", "-s", "read-only"), Asked(sandbox="read-only")),
        (("exec", "-sread-only"), Asked(sandbox="read-only")),
        (("exec", "--sandbox=workspace-write"), Asked(sandbox="workspace")),
        (("exec", "-c", 'sandbox_mode="read-only"'), Asked(sandbox="read-only")),
        (("exec",), Asked(sandbox="workspace")),
        (("exec", "-m", "o4", "-p", "night", "-"), Asked(model="o4", profile="night")),
        (("exec", "--model=o4", "-c", "model_reasoning_effort=high"), Asked(model="o4", effort="high")),
        (("exec", "-c", "x.y=1", "--search", "exec"), Asked(rest=("-c", "x.y=1", "--search", "exec"))),
        (("exec", "--config=x.y=1"), Asked(rest=("--config", "x.y=1"))),
        (("exec", "--color", "never"), Asked(rest=("--color", "never"))),
        (("exec", "--json", "--skip-git-repo-check"), Asked()),
    ],
)
def test_what_codex_is_asked_for_becomes_ours_and_the_rest_is_passed_on(args: tuple[str, ...], found: Asked) -> None:
    """A-015, A-036, X-01"""
    assert asked(args, "config.yml:9") == found


def test_an_approval_policy_asks_no_one_and_the_folder_is_the_repository() -> None:
    found = asked(("-a", "never", "exec"), "config.yml:9")
    assert found.rest == ()
    assert found.remarks == ("config.yml:9: -a never has no effect: a loop asks no one",)
    found = asked(("exec", "--cd=/elsewhere"), "config.yml:9")
    assert found.rest == ()
    assert found.remarks == ("config.yml:9: --cd /elsewhere has no effect: Codex works in the repository",)


@pytest.mark.parametrize("args", [("exec", "-s"), ("exec", "--sandbox", "none"), ("exec", "-m")])
def test_a_flag_without_its_value_and_an_unknown_sandbox_are_refused(args: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"^config\.yml:9: "):
        asked(args, "config.yml:9")


def test_a_program_that_is_not_codex_is_called_as_the_document_says() -> None:
    """A-036"""
    assert config.command_of(Config(binary="./my codex", args=("--x", "a b"))) == "arg:'./my codex' --x 'a b'"


# -- the prompt --------------------------------------------------------------------------------------------------------


def test_the_built_in_prompt_is_the_documents_with_our_markers() -> None:
    """A-033"""
    found = config.template(Config(), None)
    assert "<TODO>\n{{FILE:TODO.md}}\n</TODO>\n\n<PROGRESS>\n{{FILE:PROGRESS.md}}\n</PROGRESS>" in found
    assert "{{#OUTPUT:6000}}\n<PREV_RUN_OUTPUT>\n{{OUTPUT:6000}}\n</PREV_RUN_OUTPUT>" in found
    assert "\n\n\n" not in found
    assert template.problem(found, "TODO.md") is None


def test_the_markers_of_a_persons_own_prompt_stand_for_the_configured_files() -> None:
    """A-034, A-066"""
    extras = (Extra(name="SPEC", path="spec.md", include_in_prompt=True), Extra(name="NO", path="no.md"))
    found = config.template(Config(todo="a.md", extras=extras), "Do {{ TODO }} and {{NOTES}}\n{{EXTRAS}}\n\n\n\nnow")
    assert found == "Do {{FILE:a.md}} and {{NOTES}}\n<SPEC>\n{{FILE:spec.md}}\n</SPEC>\n\n\n\nnow"


# -- the log -----------------------------------------------------------------------------------------------------------


def test_the_lines_are_those_of_the_document() -> None:
    """A-023"""
    assert log.start(12) == "=== run 12 start ==="
    assert log.ours(12, AT, "Codex CLI started...") == "[2025-01-01T12:34:56Z] run=12 Codex CLI started..."
    assert [*log.said(12, AT, "one\ntwo")] == [
        "[2025-01-01T12:34:56Z] run=12 stdout: one",
        "[2025-01-01T12:34:56Z] run=12 stdout: two",
    ]
    assert log.end(12, 0) == "=== run 12 end (code 0) ==="


@given(st.text())
def test_whatever_an_agent_says_each_line_is_one_with_a_stamp(text: str) -> None:
    """X-28"""
    for line in log.said(3, AT, text):
        found = log.seen(line)
        assert found is not None
        assert (found.run, found.marker) == (3, "")
        assert len(line.splitlines()) == 1


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_what_was_said_can_be_read_back(text: str) -> None:
    lines = [*log.said(3, AT, text)]
    assert log.spoken([log.start(3), *lines, log.end(3, 0)]) == "\n".join(line.rstrip() for line in text.splitlines())


def test_output_that_looks_like_a_marker_is_a_line_like_any_other() -> None:
    """X-28"""
    [line] = log.said(3, AT, "=== run 3 end (code 0) ===")
    assert log.seen(line) == log.Seen(3, said="=== run 3 end (code 0) ===")
    assert log.seen(log.end(3, "interrupted")) == log.Seen(3, "end")
    assert log.seen("[2025-01-0") is None, "a line that was cut off"
