"""A loop whose folder is not there any more."""

import shutil

from driving import DONE, OK, Home


def test_the_doctor_says_whose_workspace_is_gone_and_what_helps(home: Home) -> None:
    home.run(home.rounds([OK]), "--once")
    shutil.move(home.repo, home.root / "elsewhere")
    found = home.bydawn("doctor", cwd=home.root)
    assert found.code == 1
    assert f"✗ loop repo: the workspace of repo is gone: {home.repo}" in found.out
    assert "→ restore or mount it, then run `bydawn resume repo`; or start a new loop elsewhere" in found.out
    for words in ((), ("-C", str(home.root))):
        refused = home.bydawn("resume", "repo", *words, cwd=home.root)
        assert (refused.code, "restore or mount it" in refused.err) == (2, True), refused
    shutil.move(home.root / "elsewhere", home.repo)
    assert home.bydawn("doctor").code == 0


def test_a_finished_loop_needs_its_workspace_no_longer(home: Home) -> None:
    home.run(home.rounds([DONE]))
    shutil.rmtree(home.repo)
    assert home.bydawn("doctor", cwd=home.root).code == 0
