"""What Codex proposes for `init` (C-004, C-010, X-31), and the configuration that is written from it."""

from typing import Any

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.keys import checked
from bydawn.dialects.codex_loop import proposal, written_yaml
from bydawn.dialects.codex_loop.config import CONFIG, KEYS, Config, Goal, Hooks, Project, Verification, read
from bydawn.settings.yaml import parse
from program.strict_codex import loose

ANSWER: dict[str, Any] = {
    "name": "greeter",
    "goal": "Greet the world",
    "done_when": ["It greets"],
    "spec": "# Spec\n\nGreet.",
    "plan": "# Plan\n\nOne by one.",
    "tasks": [
        {"slug": "add-greeting", "title": "Add a greeting", "markdown": "Write it."},
        {"slug": "002-say-it", "title": "Say it", "markdown": "# Say it\n\n<!-- depends_on: 001-add-greeting -->\nDo."},
    ],
    "verification_commands": ["make test"],
}


def answer(**changed: object) -> str:
    return msgspec.json.encode(ANSWER | changed).decode()


def task(**changed: object) -> list[object]:
    return [{"slug": "a", "title": "A", "markdown": "Do A.", **changed}]


def test_an_answer_becomes_files_with_a_number_each() -> None:
    found = proposal.read(answer())
    assert found.files("tasks") == {
        "spec/001-project-spec.md": "# Spec\n\nGreet.\n",
        "plan/001-implementation-plan.md": "# Plan\n\nOne by one.\n",
        "tasks/001-add-greeting.md": "# Add a greeting\n\nWrite it.\n",
        "tasks/002-say-it.md": "# Say it\n\n<!-- depends_on: 001-add-greeting -->\nDo.\n",
    }
    assert proposal.read(f"```json\n{answer()}\n```") == found


def test_the_schema_is_strict_and_takes_what_is_read() -> None:
    schema = msgspec.json.decode(proposal.SCHEMA)
    inner = schema["properties"]["tasks"]["items"]
    assert loose(schema) == ""
    assert tuple(schema["properties"]) == proposal.Proposal.__struct_fields__
    assert tuple(inner["properties"]) == proposal.ProposedTask.__struct_fields__


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ("I would begin with the tests.", "not JSON: I would begin"),
        ("", "not JSON: it is empty"),
        ("[" * 5000, "array"),
        ("{}", "missing required field `name`"),
        (answer(tasks="none"), "tasks"),
        (answer(tasks=[]), "its tasks is empty"),
        (answer(goal=" "), "its goal is empty"),
        (answer(done_when=[" "]), "its done_when is empty"),
        (answer(verification_commands=[]), "its verification_commands is empty"),
        (answer(verification_commands=["true\nrm -rf ~"]), r"'true\nrm -rf ~'"),
        (answer(verification_commands=["make \x1b[8mtest"]), r"\x1b"),
        (answer(verification_commands=["x" * 3000]), "one visible line"),
        (answer(verification_commands=["a"] * 51), "too many"),
        (answer(tasks=task() * 101), "too many"),
        (answer(spec="x" * 100_001), "spec is too long"),
        (answer(tasks=task(slug="../evil")), "'../evil'"),
        (answer(tasks=task(slug="a/b")), "'a/b'"),
        (answer(tasks=task(slug="Ab c")), "'Ab c'"),
        (answer(tasks=task(slug="")), "''"),
        (answer(tasks=task(slug="x" * 61)), "slug"),
        (answer(tasks=[*task(), *task()]), "two tasks have the slug a"),
        (answer(tasks=[*task(), *task(slug="007-a")]), "two tasks have the slug a"),
        (answer(tasks=task(markdown=" ")), "the task a has"),
        (answer(tasks=task(title="")), "the task a has"),
        (answer(tasks=task(markdown="<!-- depends_on: 009-b -->")), "no task 009-b"),
        (answer(tasks=task(markdown="<!-- depends_on: 001-a -->")), "cycle"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(reply: str, cause: str) -> None:
    with pytest.raises(UserError) as caught:
        proposal.read(reply)
    assert caught.value.what == "what Codex proposes cannot be used"
    assert cause in caught.value.cause
    assert "nothing was written" in caught.value.hint


def test_control_characters_do_not_reach_the_files() -> None:
    found = proposal.read(
        answer(name="a\x1b[31m\nb", spec="one\r\ntwo\x07\x1b]0;x\x07", tasks=task(title="T\x1b[2J\n2"))
    )
    assert found.name == "a b"
    assert found.spec == "one\ntwo"
    assert found.tasks[0].title == "T 2"


CONFIGS = [
    Config(goal=Goal("Greet", ("It greets",)), verification=Verification(("make test",))),
    Config(
        project=Project("a: b # c"),
        goal=Goal('Say "hi"\nand go', ("- yes", "null", "{x: 1}", "\u2028\x7f\u00a0ü")),
        verification=Verification(("echo 'a' && make \"b\" # c", "*", "!x", "%")),
        hooks=Hooks(on_blocked=("notify-send: x",), failure_policy="block", timeout_seconds=1.5),
    ),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_the_written_configuration_says_what_was_meant(config: Config) -> None:
    found = checked(parse(written_yaml.text(config), CONFIG), KEYS, CONFIG)
    assert msgspec.structs.replace(read(found), where={}) == config
    assert found.remarks == ()
    assert written_yaml.text(msgspec.structs.replace(read(found), where={})) == written_yaml.text(config)
