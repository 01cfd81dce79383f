"""What of a dialect's own file a person is asked about, if something stronger sets the same."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bydawn import dialects
from bydawn.dialects.seam import Start
from bydawn.operations.dialects import begin
from bydawn.settings.layers import Settings
from bydawn.settings.setting import Layer
from bydawn.settings.trust import Powers, in_force, powers_of

FILE = Start(
    prompt="",
    name="",
    settings={"agent": ("codex",), "model": ("m",), "template": ("words.md",)},
    template="Do it.",
    origins={"agent": "x.yaml:1", "model": "x.yaml:2", "template": "words.md"},
    config="x.yaml",
)


def gathered(start: Start, workspace: Path) -> tuple[Settings, Powers]:
    found = begin.gather(dialects.find("codex-autorunner"), start, workspace)
    return found, powers_of(found, datetime.now(UTC), Layer.DIALECT)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_overridden_is_not_in_force_but_stays_a_part_of_what_was_agreed_to(tmp_path: Path) -> None:
    settings, powers = gathered(FILE, tmp_path)
    assert {given.key for given in in_force(powers, settings)} == {"agent", "model", "template"}
    stronger = Start(
        prompt="",
        name="",
        settings={"agent": ("codex",), "model": ("mine",), "template": ()},
        template="Do it in the dialect's own way.",
        template_file="Do it.",
        origins=FILE.origins,
        overridden={"model": ("m",), "template": ("words.md",)},
        config="x.yaml",
    )
    now, same = gathered(stronger, tmp_path)
    assert [given.key for given in in_force(same, now)] == ["agent"]
    assert same.digest == powers.digest
    assert (now.text("model"), now["model"].layer, now.text("template")) == ("mine", Layer.FLAG, None)
