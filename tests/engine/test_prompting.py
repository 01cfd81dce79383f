"""What the engine fetches for a prompt: documents, and what the last round printed."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bydawn import agents
from bydawn.core.errors import UserError
from bydawn.core.facts import RoundsBefore
from bydawn.core.layout import STDERR, STDOUT
from bydawn.core.redact import Secrets
from bydawn.core.template import OUTPUT_AT_MOST
from bydawn.engine.prompting import printed
from bydawn.store.folder import LoopFolder
from bydawn.store.rounds import Rounds
from effort import effort
from engine.night import DONE, Night, Play, blip

WITH_OUTPUT = "{{PROMPT}}\n{{#OUTPUT}}\n<PREVIOUS>\n{{OUTPUT}}\n</PREVIOUS>\n{{/OUTPUT}}\n{{FILE:NOTES.md}}."


def previous(night: Night, round_: int) -> str:
    return night.prompt(round_).partition("<PREVIOUS>\n")[2].partition("\n</PREVIOUS>")[0]


def printing(night: Night, round_: int, text: str) -> None:
    night.files.write(round_, STDOUT, text)
    night.files.write(round_, STDERR, f"round {round_} complains\n")


def test_a_prompt_has_what_the_last_round_printed_and_a_hiccup_is_no_round() -> None:
    """X-06."""

    def plays() -> Iterator[Play]:
        yield replace(blip(), meanwhile=lambda: printing(night, 8, "trouble"))
        yield Play(meanwhile=lambda: printing(night, 9, "one\n\ntwo\n"), writes={"NOTES.md": "another note"})
        yield replace(blip(), meanwhile=lambda: printing(night, 10, "trouble"))
        yield Play(says=DONE)

    night = Night(plays(), template=WITH_OUTPUT, files={"NOTES.md": "a note"})
    night.ledger.append(RoundsBefore(rounds=7, output="left by another loop"))
    night.run()
    assert [previous(night, round_) for round_ in (8, 9)] == ["left by another loop"] * 2
    assert [previous(night, round_) for round_ in (10, 11)] == ["one\n\ntwo\nround 9 complains"] * 2
    assert "a note." in night.prompt(9)
    assert "another note." in night.prompt(10)


def test_what_a_round_printed_before_a_crash_is_the_previous_output() -> None:
    def crash() -> None:
        printing(night, 1, "half way")
        night.crash()

    reads_it_again = Play()  # the next run looks for what the turn had used
    night = Night([Play(meanwhile=crash), reads_it_again, DONE], template=WITH_OUTPUT)
    night.run_until_crash()
    night.run()
    assert previous(night, 1) == ""
    assert previous(night, 2) == "half way\nround 1 complains"


def test_a_document_that_cannot_be_read_is_named_in_its_place() -> None:
    def read_text(path: str, errors: str = "strict") -> str | None:
        raise UserError(f"{path} is too big", cause=errors)

    night = Night([DONE], template=WITH_OUTPUT)
    night.workspace.read_text = read_text  # type: ignore[method-assign]
    night.run()
    assert "[… NOTES.md is too big …]." in night.prompt(1)


@pytest.mark.parametrize("agent", ["cmd:cat", "codex"])
def test_a_gigabyte_of_output_costs_the_next_prompt_no_more_than_a_few_megabytes(agent: str, tmp_path: Path) -> None:
    rounds = Rounds(LoopFolder(tmp_path), Secrets({}))
    said = b'{"type":"item.completed","item":{"type":"agent_message","text":"the last word"}}\n'
    for name in (STDOUT, STDERR):
        with Path(rounds.write(1, name, "")).open("r+b") as file:
            file.truncate(1 << 30)  # one line without an end, …
            file.seek(0, 2)
            file.write(b"\n" + said)  # … and one more
    texts = []
    tracemalloc.start()
    spent = effort(lambda: texts.append(printed(rounds, 1, agents.find(agent))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
    assert spent < 20
    lines = texts[0].splitlines()
    assert lines[0] == lines[2] == "[… earlier output left out …]"
    assert "the last word" in lines[1]


def test_what_an_agent_said_is_found_behind_much_that_is_not_for_people(tmp_path: Path) -> None:
    rounds = Rounds(LoopFolder(tmp_path), Secrets({}))
    said = '{"type":"item.completed","item":{"type":"agent_message","text":"the last word"}}\n'
    rounds.write(1, STDOUT, said + '{"type":"item.updated"}\n' * 40_000)
    assert printed(rounds, 1, agents.find("codex")) == "the last word"


def test_many_lines_of_output_are_cut_to_the_most_a_template_can_ask_for(tmp_path: Path) -> None:
    rounds = Rounds(LoopFolder(tmp_path), Secrets({}))
    rounds.write(1, STDOUT, "a line\n" * 500_000)
    text = printed(rounds, 1, agents.find("cmd:cat"))
    assert text.startswith("[… earlier output left out …]\na line\n")
    assert OUTPUT_AT_MOST - 10 < len(text) < OUTPUT_AT_MOST + 50
