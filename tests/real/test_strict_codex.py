"""The strict fake of Codex takes and refuses what the real one does, and its streams look the same."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from driving import a_repository, wait_for
from program.strict_codex import calls, install
from real.conftest import CODEX_CONFIG, FOREIGN
from real.model_server import Answer, ModelServer
from real.turns import Took, take_turn

Json = dict[str, Any]

NOBODY = "01a1e111-0000-7082-8ee4-dc785103dce8"

# Nothing here comes to a turn: there is no prompt, or the folder is no repository. So both end with the same words.
TAKEN = [
    "exec",
    "exec --json --skip-git-repo-check -",
    "e --experimental-json -s=read-only -m=some-model -",
    "exec -sread-only -o last.txt -",
    "exec --sandbox workspace-write --cd . --profile night -",
    "exec --sandbox=danger-full-access --cd=. --profile=night --output-last-message=last.txt -",
    "exec -C . -m '' -p night --add-dir a --add-dir=b --color never -",
    "exec -c a=b -ca=b --config=a=b --config 'model_reasoning_effort=\"high\"' -",
    "exec --ephemeral --ignore-rules --ignore-user-config --strict-config --output-schema schema.json -",
    "exec --yolo -s read-only -",
    "exec -i a.png b.png -- -",
    "-a never --search exec -",
    "--ask-for-approval=on-request -s read-only -C . -m some-model -c a=b exec -C . -",
    "--yolo exec --yolo -",
    "exec resume",
    "exec resume -",
    "exec resume --last --all -",
    f"exec --json -s workspace-write --skip-git-repo-check -C . --add-dir x -m m -p night resume {NOBODY} -",
    f"exec --color=never resume {NOBODY} --json -o last.txt -m m -c a=b --skip-git-repo-check --ephemeral -",
    f"exec --json --yolo resume --json --yolo {NOBODY} -",
    f"exec resume {NOBODY} go",
    f"exec go resume {NOBODY}",
    "exec -- --full-auto",
]
REFUSED = [
    "exec --full-auto -",
    "exec --ask-for-approval never -",
    "exec --ask-for-approval=never -",
    "exec -a never -",
    "-a untrusted exec -",
    "--ask-for-approval=on-failure exec -",
    "exec --search -",
    "exec --bogus=3 -",
    "exec -Zx -",
    "exec --json=true -",
    "exec --sandbox bogus -",
    "exec --sandbox=bogus -",
    "exec -s READ-ONLY -",
    "exec --sandbox= -",
    "exec --sandbox --json",
    "exec -s read-only -s read-only -",
    "exec -m a --model=b -",
    "exec -p a/b -",
    "exec --yolo --approve-for-me -",
    "--yolo -a never exec -",
    "--json exec -",
    "exec go on",
    f"exec resume --sandbox read-only {NOBODY} -",
    f"exec resume {NOBODY} -s read-only -",
    f"exec resume --cd . {NOBODY} -",
    f"exec resume {NOBODY} -C . -",
    f"exec resume --profile=night {NOBODY} -",
    f"exec resume {NOBODY} --full-auto -",
    f"exec resume {NOBODY} --add-dir . -",
    f"exec resume {NOBODY} go on",
    "exec resume --version",
    # The order in which it looks at things: the inner command first, a value only when the next flag is known.
    f"exec --sandbox bogus resume {NOBODY} --bogus",
    f"exec --sandbox=bogus resume {NOBODY} --bogus",
    "exec --sandbox bogus --bogus -",
    "exec --sandbox bogus --json --bogus -",
    "login bogus",
]
# Not of the parser, but before any turn as well.
STOPPED = [
    "exec -c a -",
    "exec -c sandbox_mode=bogus -",
    "exec -C no-such-folder -",
    "exec --output-schema no-such-file go",
    "exec --output-schema .. go",
    "--remote ws://localhost:1 exec -",
]


Said = tuple[int, str, list[str]]  # exit code, stdout, and stderr by lines


def heard(process: subprocess.Popen[str]) -> Said:
    try:
        out, err = process.communicate(timeout=30)
    finally:
        put_down(process)
    return process.returncode, out, err.splitlines()


def put_down(process: subprocess.Popen[Any]) -> None:
    """The real one is two processes; both go if they take too long."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(5)


class Side(NamedTuple):
    """One of the two: the real one or the fake, and the folders it works in."""

    env: dict[str, str]
    repo: Path
    elsewhere: Path  # is no repository

    def start(self, line: str, place: Path) -> subprocess.Popen[str]:
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        words = ["codex", *shlex.split(line)]
        return subprocess.Popen(
            words,
            cwd=place,
            env=self.env,
            stdin=nothing,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )

    def said(self, line: str, place: Path | None = None) -> Said:
        return heard(self.start(line, place or self.elsewhere))

    def turn(self, *flags: str, prompt: str = "do it", cwd: Path | None = None) -> Took:
        return take_turn("codex", "exec", *flags, "-", cwd=cwd or self.repo, env=self.env, prompt=prompt)


class Both(NamedTuple):
    """The real Codex with its model, and the fake with its script."""

    real: Side
    fake: Side
    model: ModelServer
    folder: Path

    def play(self, answers: list[Answer], turns: list[Json]) -> None:
        """Give both their script."""
        self.model.play(answers)
        install(self.folder, turns)

    def said(self, line: str) -> tuple[Said, Said]:
        """Both at once, with nothing on stdin and in no repository."""
        real, fake = (side.start(line, side.elsewhere) for side in (self.real, self.fake))
        return heard(real), heard(fake)

    def turns(self, *flags: str) -> tuple[Took, Took]:
        return self.real.turn(*flags), self.fake.turn(*flags)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, agents_bin: Path) -> Iterator[Both]:
    """One of each for all of these; repositories are fresh where it matters that nobody wrote in them before."""
    root = tmp_path_factory.mktemp("strict").resolve()
    temporary = tempfile.mkdtemp(prefix="by-")  # not above CODEX_HOME
    plain = {
        name: value for name, value in os.environ.items() if not name.upper().startswith((*FOREIGN, "GIT_", "RUST_"))
    }
    plain |= {"HOME": str(root), "TMPDIR": temporary}
    folder = root / "bin"
    install(folder, [{"reply": "ok"}], logged_in=False)
    with ModelServer() as model:
        (root / "codex").mkdir()
        (root / "codex/config.toml").write_text(CODEX_CONFIG.format(url=model.url))
        settings = {"CODEX_HOME": str(root / "codex"), "SCRIPTED_KEY": "dummy"}
        real = plain | settings | {"PATH": f"{agents_bin}:{plain['PATH']}"}
        fake = plain | {"PATH": f"{folder}:{plain['PATH']}"}
        yield Both(a_side(root / "real", real), a_side(root / "fake", fake), model, folder)
    shutil.rmtree(temporary, ignore_errors=True)


def a_side(root: Path, env: dict[str, str]) -> Side:
    (root / "elsewhere").mkdir(parents=True)
    a_repository(root / "repo", "# a repository\n")
    return Side(env, root / "repo", root / "elsewhere")


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", TAKEN)
def test_fake_and_real_codex_accept_the_same_command_lines(both: Both, line: str) -> None:
    real, fake = both.said(line)
    assert fake == real
    assert (real[0], real[1]) == (1, "")
    assert real[2][-1].startswith(("No prompt provided via stdin", "Not inside a trusted directory"))


@pytest.mark.parametrize("line", REFUSED)
def test_fake_and_real_codex_refuse_the_same_command_lines(both: Both, line: str) -> None:
    real, fake = both.said(line)
    assert (fake[:2], fake[2][0]) == (real[:2], real[2][0])
    assert real[0] == 2
    assert real[2][0].startswith("error: ")
    last = calls(both.folder)[-1]
    assert (last["argv"], last["session"], last["turn"]) == (shlex.split(line), None, None)


@pytest.mark.parametrize("line", STOPPED)
def test_fake_and_real_codex_stop_before_a_turn_in_the_same_way(both: Both, line: str) -> None:
    real, fake = both.said(line)
    assert fake == real
    assert real[0] == 1


@pytest.mark.parametrize("line", ["--version", "exec -V"])
def test_fake_and_real_codex_answer_help_and_version_alike(both: Both, line: str) -> None:
    real, fake = both.said(line)
    assert fake == real
    assert (real[0], real[2]) == (0, [])


def test_fake_and_real_codex_say_alike_that_nobody_is_logged_in(both: Both) -> None:
    install(both.folder, [{"reply": "ok"}], logged_in=False)
    assert both.said("login status") == ((1, "", ["Not logged in"]),) * 2
    install(both.folder, [{"reply": "ok"}])
    assert both.fake.said("login status")[0] == 0


# -- streams -----------------------------------------------------------------------------------------------------------


def shape(took: Took) -> list[Json]:
    """Types and keys of all events. The real one warns that it knows nothing of the scripted model."""
    return [outline(event) for event in took.events if "Model metadata" not in str(event)]


def outline(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: outline(inner, key) for key, inner in value.items()}
    return value if name in ("type", "status", "exit_code", "kind") else type(value).__name__


def session(took: Took) -> str:
    return str(took.events[0]["thread_id"])


def test_a_first_turn_a_resumed_one_and_a_failed_one_look_the_same(both: Both) -> None:
    both.play(
        [Answer(text="one"), Answer(text="two"), Answer(fault="quota")],
        [{"reply": "one"}, {"reply": "two"}, {"error": "Quota exceeded. Check your plan and billing details."}],
    )
    first = both.turns("--json")
    again = tuple(side.turn("--json", "resume", session(took)) for side, took in zip(both[:2], first, strict=True))
    failed = tuple(side.turn("--json", "resume", session(took)) for side, took in zip(both[:2], first, strict=True))
    for real, fake in (first, again, failed):
        assert shape(fake) == shape(real)
        assert (fake.code, fake.stderr) == (real.code, real.stderr)
        assert fake.last == real.last
        assert fake.of("error") == real.of("error")
    assert [took.last["usage"]["input_tokens"] for took in again] == [2000, 2000]
    assert [session(took) for took in (*again, *failed)] == [session(took) for took in first] * 2
    assert [took.code for took in failed] == [1, 1]


def test_commands_look_the_same_whether_they_go_well_or_not(both: Both) -> None:
    both.play(
        [Answer(sh="echo data > in.txt; cat in.txt"), Answer(sh="sleep 0.3; exit 3"), Answer(text="Done.")],
        [{"sh": "echo data > in.txt; cat in.txt", "reply": "Done."}, {"sh": "sleep 0.3; exit 3", "reply": "Done."}],
    )
    real = both.real.turn("--json", "-s", "workspace-write")
    fine, broken = both.fake.turn("--json", "-s", "workspace-write"), both.fake.turn("--json", "-s", "workspace-write")
    assert [outline(item) for item in [*fine.items("command_execution"), *broken.items("command_execution")]] == [
        outline(item) for item in real.items("command_execution")
    ]
    assert fine.items("command_execution")[0]["command"] == real.items("command_execution")[0]["command"]
    assert (both.fake.repo / "in.txt").read_text() == (both.real.repo / "in.txt").read_text() == "data\n"


def test_a_refused_write_looks_the_same(both: Both) -> None:
    """The real one may not tell of a quick one; this one takes its time."""
    both.play(
        [Answer(sh="sleep 0.5; cat > no.txt"), Answer(text="Done.")],
        [{"write": {"no.txt": "data"}, "reply": "Done."}],
    )
    real, fake = both.turns("--json", "-s", "read-only")
    assert shape(fake) == shape(real)
    [told], [tells] = real.items("command_execution"), fake.items("command_execution")
    assert tells["aggregated_output"] == told["aggregated_output"]
    assert not [side for side in both[:2] if (side.repo / "no.txt").exists()]


def test_without_json_only_the_reply_is_on_stdout(both: Both) -> None:
    both.play([Answer(text="Done.", times=0)], [{"reply": "Done."}])
    for side in both[:2]:
        assert side.said("exec --json -o last.txt -C ../repo look")[0] == 0
        assert (side.elsewhere / "last.txt").read_text() == "Done."
        code, out, err = side.said("exec look", side.repo)
        assert (code, out) == (0, "Done.\n")
        story = ["user", "look", "codex", "Done.", "tokens used", "850"]
        assert [line for line in err if line in story] == story


def test_an_answer_by_a_schema_and_a_schema_that_is_refused_look_the_same(both: Both) -> None:
    """C-068: a file that is no JSON stops it; what the provider does not take as a strict schema fails the turn."""
    why = "Invalid schema for response_format 'codex_output_schema': In context=(), 'additionalProperties' is"
    both.play(
        [Answer(text='{"a": "x"}', times=2), Answer(fault="schema", message=f"{why} required …")],
        [{"reply": {"a": "x"}}],
    )
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    paths = {name: both.folder / f"{name}.json" for name in ("strict", "loose", "broken")}
    paths["strict"].write_text(json.dumps(schema | {"additionalProperties": False}))
    paths["loose"].write_text(json.dumps(schema))
    paths["broken"].write_text("no JSON")
    strict, loose, broken = (("--json", "--output-schema", str(path)) for path in paths.values())
    first = both.turns(*strict)
    again = tuple(side.turn(*strict, "resume", session(took)) for side, took in zip(both[:2], first, strict=True))
    refused, stopped = both.turns(*loose), both.turns(*broken)
    for real, fake in (first, again, refused, stopped):
        assert (shape(fake), fake.code) == (shape(real), real.code)
    assert [sent.body["text"]["format"]["strict"] for sent in both.model.asked[-3:]] == [True] * 3
    assert [why in took.last["error"]["message"] for took in refused] == [True, True]
    assert [f"{paths['broken']} is not valid JSON: " in took.stderr for took in stopped] == [True, True]


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_fake_and_real_codex_refuse_a_session_that_does_not_exist(both: Both) -> None:
    line = f"exec resume {NOBODY.upper()} go"
    assert both.fake.said(line, both.fake.repo) == both.real.said(line, both.real.repo)


def test_fake_and_real_codex_start_a_new_session_for_an_unknown_name(both: Both) -> None:
    both.play([Answer(text="ok")], [{"reply": "ok"}])
    real, fake = both.turns("--json", "--ephemeral", "resume", "nobody")
    assert shape(fake) == shape(real)
    assert fake.last == real.last
    for side, took in zip(both[:2], (real, fake), strict=True):
        gone = f"no rollout found for thread id {session(took)} (code -32600)"
        assert side.said(f"exec resume {session(took)} go", side.repo)[2][-1].endswith(gone)


def test_a_resumed_turn_that_names_no_sandbox_may_write_where_any_turn_ever_could(both: Both) -> None:
    """openai/codex#40149: a session that began as read-only goes on as something else."""
    write, ok = Answer(sh="sleep 0.5; cat < /dev/null > new.txt"), Answer(text="ok")
    both.play([write, ok, ok, write, ok], [{"write": {"new.txt": ""}}, {"reply": "ok"}, {"write": {"new.txt": ""}}])
    for side in both[:2]:
        place = side.repo.with_name("fresh")
        a_repository(place, "# nobody wrote here\n")
        first = side.turn("--json", "-s", "read-only", cwd=place)
        assert not (place / "new.txt").exists()
        side.turn("--json", "-s", "workspace-write", cwd=place)
        side.turn("--json", "resume", session(first), cwd=place)
        assert (place / "new.txt").exists()


# -- signals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, -signal.SIGTERM)])
def test_fake_and_real_codex_end_alike_by_a_signal(both: Both, number: int, code: int) -> None:
    both.play([Answer(sh="touch begun; sleep 30")], [{"sh": "touch begun; sleep 30", "reply": "never"}])
    for side in both[:2]:
        (side.repo / "begun").unlink(missing_ok=True)
        process = side.start("exec --json -s workspace-write go", side.repo)
        try:
            assert process.stdout
            lines: list[str] = []
            while not any("item.started" in line and "command_execution" in line for line in lines):
                lines.append(process.stdout.readline())
                assert lines[-1], "it has ended"
            assert wait_for((side.repo / "begun").exists, seconds=20)  # the event may be out before
            os.killpg(process.pid, number)
            out = "".join(lines) + process.stdout.read()
            ended, _, _ = heard(process)
        finally:
            put_down(process)
        assert ended == code
        last = json.loads(out.splitlines()[-1])
        assert (last["type"], last["item"]["type"]) == ("item.started", "command_execution")
    assert calls(both.folder)[-1]["turn"] == 1
