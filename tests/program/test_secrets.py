"""Canaries planted wherever a secret can stand; afterwards they are in no file of ours and in no message (FAULTS 3.2).

One place is left out on purpose: the private git directory holds the work tree itself, names of files included.
"""

import base64
import json
import os
import shlex
import signal
import stat
import subprocess
from collections.abc import Iterable
from contextlib import suppress

import pytest

from core.test_redact import MIXED, dresses_of, in_base64
from driving import DONE, HANG, ME, OK, Home, Said, Step, kill_both, said, wait_for, worker_of

TOKEN = "canary7f3a9b2c5d8e"  # noqa: S105 - this and what follows is planted
AWS = "cAnArY+wJalr/XUtnFEMI=K7MDENG/bPxRfi=="
DATABASE_PASSWORD = "canaryDbPass55x"  # noqa: S105
PASSWORD = "p\"a'ss\\cänary  wörd"  # noqa: S105
KEY_LINES = (MIXED[:64], MIXED[5:69], "cAnq==")
PRIVATE_KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", *KEY_LINES, "-----END PRIVATE KEY-----"])
LISTED = "listed canary 4b1d 7e0c"
API_KEY = "sk-proj-" + MIXED[20:60]  # nobody listed it; it only looks like one
ROTATED = "canaryNew0Value1after2rotation"

ENV = {
    "FOO_TOKEN": TOKEN,
    "AWS_SECRET_ACCESS_KEY": AWS,
    "DATABASE_URL": f"postgres://ada:{DATABASE_PASSWORD}@db.example.org:5432/shop",
    "DB_PASSWORD": PASSWORD,
    "PRIVATE_KEY": PRIVATE_KEY,
}
CANARIES = (TOKEN, AWS, DATABASE_PASSWORD, PASSWORD, *KEY_LINES[:2], LISTED, API_KEY)
SIZE = 10  # bytes of a canary that may not be found together, so that half of one is a hit too


def windows(data: bytes) -> set[bytes]:
    return {data[start : start + SIZE] for start in range(len(data) - SIZE + 1)}


# Parts of every canary in all its dresses.
PIECES = {part for canary in CANARIES for dress in dresses_of(canary).values() for part in windows(dress.encode())}


def hits(data: bytes | str) -> list[bytes]:
    """The parts of canaries in a text."""
    return sorted(PIECES & windows(data.encode() if isinstance(data, str) else data))


def files_with_hits(home: Home) -> dict[str, list[bytes]]:
    """Every file below the state folder that holds a part of a canary; `git/` holds the work tree, exactly."""
    paths = [path for path in home.states.rglob("*") if path.is_file() and not path.is_symlink()]
    kept = [path for path in paths if "git" not in path.relative_to(home.states).parts]
    assert {path.name for path in kept} >= {"ledger.jsonl", "loop.json", "state.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    return {str(path.relative_to(home.states)): found for path in kept if (found := hits(path.read_bytes()))}


def messages_with_hits(messages: Iterable[Said]) -> list[tuple[Said, list[bytes]]]:
    return [(said, found) for said in messages if (found := hits(said.out + said.err))]


@pytest.fixture
def careless(home: Home) -> Home:
    """A home whose owner has secrets everywhere."""
    home.env |= ENV
    settings = home.root / "home/.config/bydawn/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'secrets = ["{LISTED}"]\n')
    git = ["git", *ME, "remote", "add", "origin", f"https://ada:{DATABASE_PASSWORD}@example.org/shop.git"]
    subprocess.run(git, cwd=home.repo, check=True)
    return home


def kill(night: subprocess.Popen[str], *others: int) -> None:
    """Nobody gets to say a last word: all are stopped before the first is killed, or its worker would tidy up."""
    for victim in others:
        with suppress(ProcessLookupError):  # a `sleep` that is over by now
            os.kill(victim, signal.SIGSTOP)
    kill_both(night.pid)
    for victim in others:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    said(night)


def raw(data: bytes | str) -> Step:
    data = data.encode() if isinstance(data, str) else data
    return {"bytes": base64.b64encode(data).decode()}


# -- a whole night -----------------------------------------------------------------------------------------------------

# What is not known by value can only be seen for what it is undressed.
EVERY_DRESS = [dress for canary in CANARIES if canary != API_KEY for dress in dresses_of(canary).values()]
CHATTER: list[Step] = [
    *({"say": f"I read {canary} in the environment"} for canary in (*CANARIES, PRIVATE_KEY)),
    *({"stderr": f"warning: {canary}"} for canary in (*CANARIES, PRIVATE_KEY)),
    *({"say": json.dumps({"nested": canary})} for canary in CANARIES),
    raw("".join(f"plain words {dress} and more\n" for dress in EVERY_DRESS)),
    *(raw(base64.b64encode(b"u" * shift + AWS.encode() + b":pass") + b"\n") for shift in range(3)),
    raw(f"split {TOKEN[:9]}"),  # in two writes
    raw(f"{TOKEN[9:]}\n{PRIVATE_KEY}\n"),
    {"run": ["sh", "-c", f": {TOKEN}; printf '%s' {AWS} >&2"]},
    {"write": {"path": f"notes-{TOKEN}.txt", "text": f"{AWS}\n"}},
]
LOOKS = [
    *("status", "status --json", "show", "show --json", "show --round 1"),
    *("logs", "logs --raw", "logs --json", "logs --round 1 --tail 300", "logs --raw --tail 9"),
    *("events", "events --json", "why", "why --json", "doctor", "doctor --json", "trust --list", "trust"),
    *("config show --origin", "config show --json", "config get secrets --origin", "config check", "resume nobody"),
]


def test_after_a_night_with_secrets_everywhere_none_is_in_any_file_or_message(careless: Home) -> None:
    home = careless
    wait, gate = home.gate()
    (home.repo / "check.sh").write_text(f"echo checking {shlex.quote(PASSWORD)}; env; test -e done.txt\n")
    (home.repo / "TODO.md").write_text(f"- [ ] use {TOKEN}\n- [ ] rotate {AWS} and {API_KEY}\n")
    agent = home.rounds(
        [*CHATTER, {"tick": None}, {"result": {"text": f"I used {TOKEN}, {PASSWORD} and {API_KEY}.\n{PRIVATE_KEY}"}}],
        [*CHATTER, wait, {"result": {"outcome": "failed", "text": f"401 for {PASSWORD} and {TOKEN}"}}],
        [{"append": {"path": "half.txt", "text": "x"}}, {"stderr": f"fatal: cannot log in as {TOKEN}"}, {"exit": 3}],
        [{"tick": None}, {"write": {"path": "done.txt", "text": ""}}, DONE],
    )
    words = [
        "run",
        f"log in with {TOKEN}",
        "-a",
        agent,
        "-t",
        "TODO.md",
        "-k",
        "sh check.sh",
        "-k",
        f"test x != '{AWS}'",
    ]
    told = [home.bydawn(*words, "--dry-run")]
    night = home.start(*words, "--plain", "--name", "repo")
    home.await_round(2)
    watching = [home.start("logs", "-f"), home.start("logs", "-f", "--raw")]
    told += [home.bydawn("tell", "repo", f"try {PASSWORD} or {LISTED}; {PRIVATE_KEY}")]
    told += [home.bydawn(*look.split()) for look in LOOKS if look.startswith(("logs", "show", "status"))]
    gate.touch()
    told += [said(night), *(said(each) for each in watching)]
    told += [home.bydawn(*look.split()) for look in LOOKS]

    assert told[-len(LOOKS) - 3].code == 0, told[-len(LOOKS) - 3]
    assert len(home.facts("round.ended")) == 4
    assert home.facts("note.added")[0]["data"]["text"] == "try [secret] or [secret]; [secret]"
    assert {code for code, *_ in told} == {0, 2}
    assert messages_with_hits(told) == []
    assert files_with_hits(home) == {}


def test_output_keeps_its_length_and_its_lines_when_secrets_in_it_are_masked(careless: Home) -> None:
    """Split over two writes; across the border of what is masked at a time; and in one line of 20 MB."""
    padding = b"x" * ((1 << 20) - 600)
    border = b"".join(b"%d %s\n" % (number, TOKEN.encode()) for number in range(60))
    steps = [raw(TOKEN[:5]), raw(TOKEN[5:] + "\n" + AWS), raw(padding + b"\n" + border)]
    program = careless.root / "agent.py"
    program.write_text(
        "import base64, sys, os, time\n"
        f"for data in {[step['bytes'] for step in steps]}:\n"
        "    os.write(1, base64.b64decode(data))\n"
        f"sys.stdout.write('y' * 20_000_000 + os.environ['FOO_TOKEN'] + 'y' * 1000 + ' ' + {API_KEY!r})\n"
    )
    wanted = subprocess.run(["python3", program], env=careless.env, check=True, capture_output=True).stdout
    assert careless.run(f"cmd:python3 {program}", "--once").code == 4
    kept = (careless.folder() / "rounds/0001/stdout").read_bytes()
    assert len(kept) == len(wanted)
    assert hits(kept.replace(b"y" * 1000, b"")) == []
    assert kept.count(b"\n") == wanted.count(b"\n")
    assert kept.count(b"y" * 1000) == wanted.count(b"y" * 1000)


# -- what is cut short -------------------------------------------------------------------------------------------------

LONG_TOKEN = "canary" + MIXED[:60]


@pytest.fixture
def cut(home: Home) -> Home:
    home.env["LONG_TOKEN"] = LONG_TOKEN
    return home


def parts_of_it(home: Home) -> list[str]:
    """The files of the state folder in which ten letters of the long token stand together."""
    parts = [LONG_TOKEN[start : start + SIZE].encode() for start in range(len(LONG_TOKEN) - SIZE)]
    paths = [path for path in home.folder().rglob("*") if path.is_file() and "git" not in path.parts]
    return sorted(path.name for path in paths if any(part in path.read_bytes() for part in parts))


@pytest.mark.parametrize("before", [340, 360, 390])
def test_a_reply_that_is_shortened_does_not_end_in_half_a_secret(cut: Home, before: int) -> None:
    assert cut.run(cut.rounds([{"result": {"text": "w" * before + f" {LONG_TOKEN}"}}]), "--once").code == 4
    assert parts_of_it(cut) == []


@pytest.mark.parametrize("before", [340, 390])
def test_an_error_that_is_shortened_does_not_end_in_half_a_secret(cut: Home, before: int) -> None:
    text = "w" * before + f" {LONG_TOKEN}"
    ended = cut.run(cut.rounds([{"result": {"outcome": "failed", "text": text}}]), "--max-failures", "1")
    assert LONG_TOKEN[:SIZE] not in ended.out
    assert parts_of_it(cut) == []


def test_last_words_of_an_agent_do_not_begin_with_half_a_secret(cut: Home) -> None:
    """Of a long line on stderr only the last 4000 bytes are looked at."""
    agent = cut.rounds([{"stderr": f"error: {LONG_TOKEN} " + "e" * 3970}, {"exit": 1}])
    cut.run(agent, "--max-failures", "1")
    assert cut.outcomes() == ["failed"]
    assert parts_of_it(cut) == []


def test_a_headline_does_not_end_in_half_a_secret(cut: Home) -> None:
    """Of the line that says most 120 letters are kept."""
    cut.run(cut.rounds([{"stderr": "error: " + "e" * 70 + f" {LONG_TOKEN}"}, {"exit": 1}]), "--max-failures", "1")
    assert parts_of_it(cut) == []


def test_a_long_reply_of_which_the_end_is_kept_does_not_begin_with_half_a_secret(cut: Home) -> None:
    """A program's reply is the last MiB of what it printed."""
    line = f"print('a' * 5000, {LONG_TOKEN!r} + 'b' * {(1 << 20) - 33})"
    (cut.root / "agent.py").write_text(line)
    assert cut.run(f"cmd:python3 {cut.root}/agent.py", "--once").code == 4
    assert parts_of_it(cut) == []


def test_the_name_of_a_process_that_was_left_behind_does_not_end_in_half_a_secret(cut: Home) -> None:
    """Of a command line 80 letters are kept."""
    script = f"sleep 3600 # {'x' * 40} {LONG_TOKEN}"
    (cut.root / "agent.sh").write_text(f"sh -c {shlex.quote(script + chr(10) + ':')} >/dev/null 2>&1 &\nsleep 0.1\n")
    assert cut.run(f"cmd:sh {cut.root}/agent.sh", "--once").code == 4
    [ended] = cut.rounds_ended()
    assert ended["leftovers"]
    assert parts_of_it(cut) == []


def test_blanks_that_are_put_together_do_not_disguise_a_secret(careless: Home) -> None:
    """What a reply says is kept on one line; the password has two blanks in a row, and the note of it one."""
    ended = careless.run(careless.rounds([{"result": {"text": f"the password is {PASSWORD}"}}]), "--once")
    told = careless.rounds_ended()[0]["said"]
    assert " ".join(PASSWORD.split()) not in told + ended.out


# -- while a round runs ------------------------------------------------------------------------------------------------


def test_a_private_key_that_is_printed_line_by_line_is_not_shown_while_the_round_runs(home: Home) -> None:
    """Nobody's variable holds it, so no line of it is known; only all of it looks like a key."""
    wait, gate = home.gate()
    (home.root / "key.pem").write_text(PRIVATE_KEY + "\n")
    (home.root / "agent.sh").write_text(f"cat {home.root}/key.pem\n{shlex.join(wait['run'])}\n")
    night = home.start_run(f"cmd:sh {home.root}/agent.sh", "--once")
    home.await_round(1)
    told = [home.bydawn("logs"), home.bydawn("logs", "--raw"), home.bydawn("logs", "--tail", "4")]
    gate.touch()
    said(night)
    assert [each for each in told if any(line in each.out for line in KEY_LINES)] == []
    assert not any(line in (home.folder() / "rounds/0001/stdout").read_text() for line in KEY_LINES)


def test_a_line_that_is_half_written_when_somebody_begins_to_follow_is_shown_when_it_is_whole(careless: Home) -> None:
    """Else a secret at the seam would be shown in two halves."""
    wait, gate = careless.gate()
    first, second = AWS[:19], AWS[19:]
    (careless.root / "agent.sh").write_text(
        f"printf 'a line\\nsecret {first}'\n{shlex.join(wait['run'])}\necho '{second}'\n"
    )
    night = careless.start_run(f"cmd:sh {careless.root}/agent.sh", "--once")
    careless.await_round(1)
    log = careless.folder() / "rounds/0001/stdout"
    wait_for(lambda: log.read_bytes().endswith(first.encode()))
    watching = careless.start("logs", "-f", "--raw", "--tail", "2", bufsize=1)
    assert watching.stdout is not None
    lines = [watching.stdout.readline()]
    gate.touch()
    said(night)
    lines += watching.stdout.readlines()
    assert lines[0] == "a line\n"
    assert hits("".join(lines)) == []


def test_colours_inside_of_a_secret_do_not_disguise_it(careless: Home) -> None:
    """`grep --color` paints what it has found; what people see is put together again."""
    wait, gate = careless.gate()
    painted = f"FOO_TOKEN={TOKEN[:6]}\x1b[01;31m{TOKEN[6:9]}\x1b[m{TOKEN[9:]}"
    night = careless.start_run(careless.rounds([{"say": painted}, wait, {"result": {"text": painted}}]), "--once")
    careless.await_round(1)
    wait_for(lambda: b"01;31m" in (careless.folder() / "rounds/0001/stdout").read_bytes())
    told = [careless.bydawn("logs"), careless.bydawn("logs", "--raw")]
    gate.touch()
    told.append(said(night))
    assert messages_with_hits(told) == []
    assert hits(careless.rounds_ended()[0]["said"]) == []


def test_a_note_is_left_for_the_worker_without_the_secrets_in_it(careless: Home) -> None:
    """The worker is stopped, and its parent, which would wake it: so the note can be looked at while it waits."""
    night = careless.start_run(careless.rounds([HANG]))
    careless.await_round(1)
    both = (night.pid, worker_of(night))
    for pid in both:
        os.kill(pid, signal.SIGSTOP)
    telling = careless.start("tell", "repo", f"use {TOKEN} and {PASSWORD}\n{PRIVATE_KEY}")
    [note] = wait_for(lambda: [*careless.folder().glob("inbox/[0-9]*.json")])
    text = note.read_text()
    for pid in both:
        os.kill(pid, signal.SIGCONT)
    assert said(telling).code == 0
    assert "use [secret] and [secret]" in text
    assert hits(text) == []
    careless.bydawn("stop")
    said(night)
    assert files_with_hits(careless) == {}


# -- after a death -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("afterwards", [["stop"], ["resume", "--plain", "--once"], ["pause"]])
def test_what_a_killed_round_left_is_masked_by_whoever_comes_next(careless: Home, afterwards: list[str]) -> None:
    agent = careless.rounds([*CHATTER, HANG], [OK])
    night = careless.start_run(agent, "-k", f"test x != {TOKEN}")
    agent_pid = careless.await_round(1)
    log = careless.folder() / "rounds/0001/stdout"
    wait_for(lambda: PRIVATE_KEY.encode() in log.read_bytes())
    kill(night, agent_pid)
    wait_for(lambda: careless.status()["state"] == "crashed")
    assert hits(log.read_bytes()) != []
    size = log.stat().st_size
    told = [careless.bydawn(*afterwards)]
    assert log.stat().st_size == size
    assert messages_with_hits(told) == []
    assert files_with_hits(careless) == {}


def test_a_prompt_that_was_written_for_a_round_that_never_began_is_masked_too(careless: Home) -> None:
    """The worker died between the prompt and the fact that says that a round began."""
    agent = careless.rounds([OK])
    assert careless.bydawn("run", f"use {TOKEN}", "-a", agent, "--once").code == 4
    folder = careless.folder() / "rounds/0002"
    folder.mkdir(mode=0o700)
    (folder / "prompt.md").write_text(f"use {TOKEN}\n")
    (folder / "prompt.md").chmod(0o600)
    assert careless.bydawn("stop").code == 0
    assert files_with_hits(careless) == {}


def test_a_check_that_was_killed_leaves_nothing_behind_either(careless: Home) -> None:
    wait, _ = careless.gate()
    check = f"env; {shlex.join(wait['run'])}"
    night = careless.start_run(careless.rounds([OK]), "-k", check, "--pass-env", "FOO_TOKEN")
    output = wait_for(lambda: [*careless.states.glob("loops/*/repo/rounds/0000/check-1.txt")])[0]
    wait_for(lambda: TOKEN.encode() in output.read_bytes())
    kill(night, *(pid for pid in careless.alive() if pid not in (night.pid, worker_of(night))))
    wait_for(lambda: careless.status()["state"] == "crashed")
    assert careless.bydawn("stop").code == 0
    assert files_with_hits(careless) == {}


# -- settings that hold a secret ---------------------------------------------------------------------------------------


def test_settings_with_a_secret_keep_its_name_and_get_the_value_of_the_day(careless: Home) -> None:
    home = careless
    (home.root / "agent.sh").write_text('echo "$2" >>told.txt; cat >prompt.txt; test -z "$STOP" || echo ok\n')
    agent = f"cmd:sh {home.root}/agent.sh --token {TOKEN}"
    words = [
        "run",
        f"log in with {TOKEN}",
        "-a",
        agent,
        "-k",
        f"grep -qx {TOKEN} told.txt && test -e ready",
        "--no-promise",
    ]
    assert home.bydawn(*words, "--once").code == 4
    loop = json.loads((home.folder() / "loop.json").read_text())
    assert loop["prompt"] == "log in with ⟦env:FOO_TOKEN⟧"
    assert loop["agent"].endswith("agent.sh --token ⟦env:FOO_TOKEN⟧")
    assert loop["checks"][0]["command"] == "grep -qx ⟦env:FOO_TOKEN⟧ told.txt && test -e ready"
    assert (home.repo / "told.txt").read_text() == f"{TOKEN}\n"
    assert f"log in with {TOKEN}" in (home.repo / "prompt.txt").read_text()

    assert home.bydawn(*words, "--once").code == 4  # the same words go on with the same loop
    del home.env["FOO_TOKEN"]
    gone = home.bydawn("resume")
    assert gone.code == 2
    assert "needs the environment variable FOO_TOKEN" in gone.err
    assert "export FOO_TOKEN" in gone.err
    home.env["FOO_TOKEN"] = ROTATED
    (home.repo / "ready").touch()
    assert home.bydawn("resume", "--plain").code == 0
    assert (home.repo / "told.txt").read_text().split() == [TOKEN, TOKEN, ROTATED]
    assert f"log in with {ROTATED}" in (home.repo / "prompt.txt").read_text()
    assert len(home.facts("loop.created")) == 1
    assert files_with_hits(home) == {}
    assert not [
        path for path in home.folder().glob("**/*.*") if path.is_file() and ROTATED.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize(("old", "new"), [(TOKEN, "canary, in three words"), (PASSWORD, "canary'quote\"back\\slash")])
def test_an_argument_of_the_agent_stays_one_argument_whatever_its_value_becomes(home: Home, old: str, new: str) -> None:
    """Before and after a rotation the program is called with exactly the value of the variable."""
    (home.root / "agent.py").write_text(
        "import sys, json; print(json.dumps(sys.argv[1:]), file=open('told.txt', 'a'))\n"
    )
    agent = f"cmd:{shlex.join(['python3', f'{home.root}/agent.py', '--token', old, 'last'])}"
    assert home.run(agent, "--once", MY_TOKEN=old).code == 4
    assert home.bydawn("resume", "--once", "--plain", "-n", "+1", MY_TOKEN=new).code == 4
    told = [json.loads(line) for line in (home.repo / "told.txt").read_text().splitlines()]
    assert told == [["--token", old, "last"], ["--token", new, "last"]]


def test_a_promise_a_path_a_text_and_a_task_file_with_a_secret_work_as_without_one(home: Home) -> None:
    """What is kept by name is put back wherever it is needed, or is refused at the start."""
    home.env["FOO_TOKEN"] = TOKEN
    steps: list[Step] = [
        {"write": {"path": f"{TOKEN}.txt", "text": f"it is {TOKEN}"}},
        {"result": {"text": f"done\n<promise>{TOKEN}</promise>"}},
    ]
    for number, flags in enumerate(
        [
            ["--done-when", TOKEN],
            ["--require-text", f"{TOKEN}.txt::it is {TOKEN}"],
            ["--require-path", f"{TOKEN}.txt"],
        ]
    ):
        ended = home.run(home.rounds(steps), *flags, "--name", f"n{number}", "-n", "1", "--new")
        assert ended.code in (0, 2), flags
    (home.repo / f"{TOKEN}.md").write_text("- [ ] one\n")
    ended = home.run(home.each_task(tasks=f"{TOKEN}.md"), "-t", f"{TOKEN}.md", "--new", "--name", "tasks")
    assert ended.code in (0, 2)


# words with a secret that stands in no variable · the setting that is named
UNNAMED = [
    ([f"use {API_KEY}", "-a", "demo"], "prompt"),
    (["x", "-a", f"cmd:sh -c {API_KEY}"], "agent"),
    (["x", "-a", "demo", "-k", f"curl -H 'Bearer {MIXED[:30]}' x"], "checks"),
    (["x", "-a", "demo", "-k", f"git push https://ada:{MIXED[:9]}@x"], "checks"),
    (["x", "-a", "demo", "--done-when", API_KEY], "promise"),
    ([f"use {LISTED}", "-a", "demo"], "prompt"),
]


@pytest.mark.parametrize(("words", "setting"), UNNAMED, ids=lambda value: str(value)[:30])
def test_a_secret_that_stands_in_no_variable_is_refused_before_anything_is_written(
    careless: Home, words: list[str], setting: str
) -> None:
    told = careless.bydawn("run", *words)
    assert told.code == 2
    assert f"the {setting} contains a secret" in told.err
    assert "export MY_TOKEN" in told.err
    assert hits(told.err + told.out) == []
    assert not careless.states.exists()


def test_what_only_looks_like_a_secret_goes_through_when_a_person_says_so(home: Home) -> None:
    assert home.bydawn("config", "set", "--user", "not_secret", API_KEY).code == 0
    assert home.bydawn("run", f"use {API_KEY}", "-a", home.rounds([DONE])).code == 0
    assert json.loads((home.folder() / "loop.json").read_text())["prompt"] == f"use {API_KEY}"


# -- the environment of children ---------------------------------------------------------------------------------------

OURS = {
    "BYDAWN_SECRETS": LISTED,
    "BYDAWN_API_TOKEN": "ours-1",
    "BYDAWN_FLEET_DSN": "ours-2",
    "BYDAWN_NOTIFY": "http://127.0.0.1:9/ours-3",  # no one listens there
    "BYDAWN_WEBHOOK_URL": "ours-4",
}


def test_the_agent_gets_all_but_our_own_secrets_and_what_runs_its_code_gets_none(careless: Home) -> None:
    """A check runs what the agent wrote; a hook is the person's own, and needs no agent's key."""
    home, keys = careless, {"ANTHROPIC_API_KEY": "short", "OPENAI_API_KEY": API_KEY}
    home.env |= {"BYDAWN_ROUNDS": "3", "ODD": "a\nb=c", "PLAIN": f"Bearer {MIXED[:20]}", **keys, **OURS}
    (home.root / "agent.sh").write_text("env -0 >agent.env; cat >prompt.txt\n")
    words = ["-k", "env -0 >check.env", "--pre-round", "env -0 >hook.env", "--pass-env", "DB_PASSWORD", "--no-promise"]
    assert home.run(f"cmd:sh {home.root}/agent.sh", *words).code == 0
    secret = {*ENV, "PLAIN"} - {"DB_PASSWORD"}
    for name, withheld in {"agent": OURS, "hook": {*OURS, *keys}, "check": {*OURS, *keys, *secret}}.items():
        seen = dict(row.split("=", 1) for row in (home.repo / f"{name}.env").read_text().split("\0") if row)
        assert seen.keys().isdisjoint(withheld)
        theirs = {key: value for key, value in home.env.items() if key not in {*withheld, "PWD", "SHLVL", "_"}}
        assert theirs.items() <= seen.items()
    assert json.loads((home.folder() / "loop.json").read_text())["pass_env"] == ["DB_PASSWORD"]


def test_a_check_that_names_a_variable_it_does_not_get_says_how_it_would(careless: Home) -> None:
    said = careless.run(
        careless.rounds([OK]), "-k", 'test -n "$FOO_TOKEN"', "-k", "echo no AWS_SECRET_ACCESS_KEY; false", "--once"
    )
    assert "checks run without FOO_TOKEN, which looks like a secret; --pass-env FOO_TOKEN gives it to them" in said.out
    told = [verdict["detail"] for verdict in careless.facts("checks.ended")[0]["data"]["verdicts"]]
    assert told == [
        "exit 1, without FOO_TOKEN (see --pass-env)",
        "exit 1, without AWS_SECRET_ACCESS_KEY (see --pass-env)",
    ]


def test_a_repository_s_wish_for_a_secret_needs_trust_and_a_name_that_is_none_is_refused(careless: Home) -> None:
    (careless.repo / "bydawn.toml").write_text('pass_env = ["FOO_TOKEN"]\n')
    asked = careless.run("demo")
    assert (asked.code, "pass_env" in asked.err) == (2, True)
    refused = careless.run("demo", "--no-project", "--pass-env", "A=B")
    assert (refused.code, "--pass-env 'A=B' is not a name" in refused.err) == (2, True)


@pytest.mark.parametrize("where", ["task", "check", "note"])
def test_text_from_elsewhere_cannot_ask_for_our_own_secrets(careless: Home, where: str) -> None:
    """A reference in a task, a check's output or a note is only text; nothing but a setting of the person refers."""
    home, wanted = careless, "⟦env:BYDAWN_SECRETS⟧"
    home.env["BYDAWN_SECRETS"] = LISTED
    (home.repo / "TODO.md").write_text(f"- [ ] {wanted if where == 'task' else 'one'}\n- [ ] two\n")
    (home.root / "agent.sh").write_text("cat >>prompt.txt\n")
    check = f"echo '{wanted}'; false" if where == "check" else "false"
    words = ["run", "-t", "TODO.md", "-a", f"cmd:sh {home.root}/agent.sh", "-k", f"sh {home.root}/check.sh"]
    (home.root / "check.sh").write_text(check)
    assert home.bydawn(*words, "--once").code == 4
    if where == "note":
        assert home.bydawn("tell", "repo", f"use {wanted}").code == 0
    assert home.bydawn("resume", "--once").code == 4
    assert LISTED not in (home.repo / "prompt.txt").read_text()


@pytest.mark.parametrize("where", ["flag", "project"])
def test_a_setting_cannot_hand_our_own_secrets_to_a_child_either(home: Home, where: str) -> None:
    """A repository could hide the name of one in a long prompt; nobody needs it there."""
    home.env |= OURS
    check = "echo ⟦env:BYDAWN_API_TOKEN⟧ ⟦env:BYDAWN_SECRETS⟧ >>leaked.txt"
    if where == "project":
        (home.repo / "bydawn.toml").write_text(f'check = ["{check}"]\n')
        digest = home.run("demo").err.partition("--once ")[2].split()[0]
        assert home.bydawn("trust", "--once", digest).code == 0
    home.run(home.rounds([OK]), "--once", *(["-k", check] if where == "flag" else []))
    told = "".join(path.read_text() for path in home.repo.glob("leaked.txt"))
    assert "ours-1" not in told
    assert LISTED not in told


# -- messages ----------------------------------------------------------------------------------------------------------

# Python has to quote the one in a way of its own; the other only looks like a key.
WRONG = [
    ("CANARY", PASSWORD),
    ("show CANARY", PASSWORD),
    ("logs CANARY", API_KEY),
    ("run x -a CANARY", PASSWORD),
    ("run x -a cmd:CANARY", API_KEY),
    ("run x -a demo:CANARY", PASSWORD),
    ("run @CANARY -a demo", PASSWORD),
    ("run x -a demo --for CANARY", PASSWORD),
    ("run x -a demo --until CANARY", API_KEY),
    ("run x -a demo -n CANARY", PASSWORD),
    ("run x -a demo -t CANARY", PASSWORD),
    ("run x -a demo --opinions CANARY", API_KEY),
    ("run x -a demo --CANARY", API_KEY),  # a dash before it must not make it a part of a word
    ("run x -a demo -C CANARY", PASSWORD),
    ("run x -a demo --name CANARY!", API_KEY),
    ("config get CANARY", PASSWORD),
    ("config set rounds CANARY", PASSWORD),
    ("config set CANARY 1", API_KEY),
    ("trust CANARY", PASSWORD),
    ("trust --once CANARY", API_KEY),
]


def test_an_error_about_a_word_that_is_a_secret_does_not_repeat_it(careless: Home) -> None:
    told = [careless.bydawn(*(word.replace("CANARY", canary) for word in words.split())) for words, canary in WRONG]
    assert [each for each in told if each.code == 0] == []
    assert messages_with_hits(told) == []


def test_what_git_says_when_it_fails_is_told_without_the_password_in_an_address(careless: Home) -> None:
    real = subprocess.run(["which", "git"], check=True, capture_output=True, text=True).stdout.strip()
    (careless.root / "bin").mkdir()
    failing = f"test $1 != update-index || test ! -e broken || {{ unset GIT_DIR; {real} remote -v >&2; exit 128; }}"
    (careless.root / "bin/git").write_text(f'#!/bin/sh\n{failing}\nexec {real} "$@"\n')
    (careless.root / "bin/git").chmod(0o755)
    careless.env["PATH"] = f"{careless.root}/bin:{careless.env['PATH']}"
    agent = careless.rounds([{"write": {"path": "broken", "text": ""}}, OK])
    told = [careless.run(agent), careless.bydawn("show"), careless.bydawn("why"), careless.bydawn("resume")]
    assert "https://[secret]@example.org/shop.git" in told[0].out + told[0].err
    assert messages_with_hits(told) == []
    assert files_with_hits(careless) == {}


def test_commands_of_a_project_are_asked_about_trusted_and_listed_without_the_secrets_in_them(careless: Home) -> None:
    home = careless
    (home.repo / "GOAL.md").write_text(f"log in with {TOKEN}\n")
    (home.repo / "bydawn.toml").write_text(
        f'agent = "{home.rounds([DONE])}"\ncheck = ["test x != {TOKEN}", "test x != \'{AWS}\'"]\nprompt = "@GOAL.md"\n'
    )
    asked = home.bydawn("run")
    assert asked.code == 2
    digest = asked.err.partition("--once ")[2].split()[0]
    told = [asked, home.bydawn("config", "show"), home.bydawn("trust", "--once", digest)]
    told += [home.bydawn("trust", "--list"), home.bydawn("trust", "--list", "--json"), home.bydawn("run", "--plain")]
    assert [each.code for each in told] == [2, 0, 0, 0, 0, 0]
    assert "[secret]" in told[3].out
    (home.repo / "bydawn.toml").write_text('check = ["true"]\n')
    told += [home.bydawn("trust"), home.bydawn("config", "show", "--json")]
    assert messages_with_hits(told) == []
    assert files_with_hits(home) == {}


def test_a_problem_with_settings_is_told_without_the_secret_in_them(careless: Home) -> None:
    """Your own file asks for one check, the project drops it for another: both are quoted."""
    user = careless.root / "home/.config/bydawn/config.toml"
    user.write_text(f'{user.read_text()}check = ["test x != {TOKEN}"]\n')
    (careless.repo / "bydawn.toml").write_text(f"check = [\"test y != '{AWS}'\"]\n")
    looks = (["doctor"], ["doctor", "--json"], ["config", "check"], ["config", "check", "--json"], ["config", "show"])
    told = [careless.bydawn(*look) for look in (*looks, ["config", "show", "--json"], ["run", "x", "-a", "demo"])]
    assert all("loosens" in each.out + each.err for each in told)
    assert messages_with_hits(told) == []


def test_the_file_that_secrets_are_listed_in_is_for_the_eyes_of_its_owner(home: Home) -> None:
    assert home.bydawn("config", "set", "--user", "secrets", LISTED).code == 0
    assert stat.S_IMODE((home.root / "home/.config/bydawn/config.toml").stat().st_mode) == 0o600


def test_base64_letters_at_a_seam_give_nothing_away() -> None:
    """The test's own measure: what `hits` looks for is there in any real encoding."""
    for shift in range(3):
        coded = base64.b64encode(b"u" * shift + AWS.encode() + b":pass").decode()
        assert in_base64(AWS, shift) in coded
        assert hits(coded) != []
