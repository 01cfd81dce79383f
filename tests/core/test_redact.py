"""What must never be written down: known values in every dress, and what looks like a key (FAULTS 3.2)."""

import base64
import json
import re
import string
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bydawn.core.breakers import Limits
from bydawn.core.facts import AnyFact, EventRecorded, LoopStopped
from bydawn.core.loop import Mode, Promise
from bydawn.core.outcome import Outcome
from bydawn.core.redact import HIDDEN, Secrets, Unnamed, for_children, looks_secret, rewritten
from bydawn.core.values import Changes, End, Promised
from core.facts_any import FACTS
from core.facts_made import decided, ended

NOBODYS = Secrets({})  # knows no values, so what it hides looks like a secret
MIXED = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zC0fLuR" * 4
LINES = "\n".join(MIXED[start : start + 64] for start in (0, 8, 16))
PEM = f"-----BEGIN PRIVATE KEY-----\n{LINES}\nqQ==\n-----END PRIVATE KEY-----\n"


def dresses_of(secret: str) -> dict[str, str]:
    """A text in all the ways in which it travels, made without a look at how it is hidden."""
    once = json.dumps(secret)[1:-1]
    return {
        "plain": secret,
        "json": once,
        "json in utf-8": json.dumps(secret, ensure_ascii=False)[1:-1],
        "json with escaped slashes": once.replace("/", "\\/"),
        "json twice": json.dumps(once)[1:-1],
        "json in utf-8 twice": json.dumps(json.dumps(secret, ensure_ascii=False)[1:-1], ensure_ascii=False)[1:-1],
        "url": quote(secret),
        "url with slashes": quote(secret, safe=""),
        "shell": secret.replace("'", "'\"'\"'"),
        "hex": secret.encode().hex(),
        "HEX": secret.encode().hex().upper(),
        **{f"base64 after {shift}": in_base64(secret, shift) for shift in range(3)},
        **{f"base64url after {shift}": in_base64(secret, shift, b"-_") for shift in range(3)},
    }


def in_base64(secret: str, shift: int, others: bytes = b"+/") -> str:
    """The letters that carry nothing but bits of the secret, when so many bytes stand before it and some after."""
    data = b"~" * shift + secret.encode()
    coded = base64.b64encode(data + b"~~~", others).decode()
    return "".join(coded[place] for place in range(len(coded)) if shift * 8 <= place * 6 <= len(data) * 8 - 6)


# -- what looks like a secret ------------------------------------------------------------------------------------------

# a key · something that is nearly one
KEYS = [
    ("sk-" + MIXED[:20], "sk-" + MIXED[:19]),
    ("sk-proj-" + MIXED[:40], "sk-primary-button-large-rounded"),  # a class, as nothing in it is a digit
    ("sk-ant-api03-" + MIXED[:80], "task-list-of-2024-with-many-words"),  # inside of a word
    ("sk_live_" + MIXED[:16], "sk_live_" + MIXED[:15]),
    ("rk_live_" + MIXED[:24], "mark_live_" + MIXED[:24]),
    *((f"gh{kind}_" + MIXED[:36], f"gh{kind}_" + MIXED[:35]) for kind in "pousr"),
    ("github_pat_" + MIXED[:22], "github_pat_" + MIXED[:21]),
    ("glpat-" + MIXED[:20], "glpat-" + MIXED[:19]),
    *((f"xox{kind}-" + MIXED[:10], f"xox{kind}-" + MIXED[:9]) for kind in "abprs"),
    ("xoxb-" + "1234567890-" + MIXED[:10], "xoxo-hugs-and-kisses"),
    ("AKIA" + "Q3EXAMPLE7ABCDEF", "AKIA" + "Q3EXAMPLE7ABCDE"),
    ("AKIA" + "1234567890123456", "AKIA" + "ALLINCAPITALSANDLONGER"),
    ("AIza" + MIXED[:35], "AIza" + MIXED[:34]),
    ("npm_" + MIXED[:36], "npm_config_registry_of_the_whole_company"),
    ("hf_" + MIXED[:30], "hf_hub_download_with_many_retries_and_more"),
    ("pypi-" + MIXED[:50], "pypi-" + MIXED[:49]),
    (f"eyJ{MIXED[:17]}.eyJ{MIXED[:20]}.{MIXED[:20]}", f"eyJ{MIXED[:17]}.eyJ{MIXED[:20]}"),  # without a signature
]
# what stands before it · what stands after it
PLACES = [
    ("", ""),
    ("", " and more"),
    ("see ", ""),
    ("one line\n", "\nanother"),
    ("\n", ""),
    ('{"key":"', '"}'),
    ("'", "'"),
    ('{"text":"first\\n', '\\nlast"}'),
    ('{"text":"first\\t', '"}'),
    ("token=", "&x=1"),
    ("(", ")"),
]


@pytest.mark.parametrize("key", [key for key, _ in KEYS], ids=lambda key: key[:12])
@pytest.mark.parametrize(("before", "behind"), PLACES)
def test_what_looks_like_a_key_is_hidden_wherever_it_stands(key: str, before: str, behind: str) -> None:
    assert NOBODYS.hide(before + key + behind) == before + HIDDEN + behind


@pytest.mark.parametrize("word", [word for _, word in KEYS])
@pytest.mark.parametrize(("before", "behind"), PLACES)
def test_what_is_nearly_a_key_stays(word: str, before: str, behind: str) -> None:
    assert NOBODYS.hide(before + word + behind) == before + word + behind


# a text · what of it is secret
PARTS = [
    ("https://ada:hunter2@example.org/x.git", "ada:hunter2"),
    ("https://:hunter2@example.org", ":hunter2"),
    ("postgres://ada:p%40ss+w=rd@db:5432/shop", "ada:p%40ss+w=rd"),
    ('{"url":"redis://x:y@cache:6379/0"}', "x:y"),
    (f"Authorization: Bearer {MIXED[:32]}", MIXED[:32]),
    (f"authorization: bearer {MIXED[:16]}==", f"{MIXED[:16]}=="),
    (f'{{"Authorization":"Bearer {MIXED[:8]}+/-._~{MIXED[:8]}"}}', f"{MIXED[:8]}+/-._~{MIXED[:8]}"),
    (f"-----BEGIN RSA PRIVATE KEY-----\n{LINES}\n-----END RSA PRIVATE KEY-----\n", f"\n{LINES}\n"),
    (
        json.dumps(f"-----BEGIN EC PRIVATE KEY-----\n{LINES}\n-----END EC PRIVATE KEY-----"),
        json.dumps(f"\n{LINES}\n")[1:-1],
    ),
]


@pytest.mark.parametrize(("text", "part"), PARTS)
@pytest.mark.parametrize(("before", "behind"), [("", ""), ("first\n", "\nlast"), ('"', '"'), ('"a\\n', '\\n"')])
def test_of_an_address_a_header_and_a_pem_only_the_secret_part_is_hidden(
    text: str, part: str, before: str, behind: str
) -> None:
    assert NOBODYS.hide(before + text + behind) == before + text.replace(part, HIDDEN) + behind


HARMLESS = [
    "0123456789abcdef0123456789abcdef01234567",  # a commit
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "123e4567-e89b-12d3-a456-426614174000",
    "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 40).decode(),
    "http://localhost:8080/@scope/package@1.2.3",
    "https://packages.example.org/@types/node/-/node-20.1.0.tgz",
    "https://github.com/ada/engine/tree/v1@main:8080",
    "ssh://git@github.com:22/ada/engine.git and git@github.com:ada/engine.git",
    '{"url":"http://localhost:3000","mail":"ada@example.org"}',
    "see http://localhost:3000 or write to ada@example.org",
    "<http://localhost:3000> <ada@example.org>",
    "Bearer of bad news, the messenger was not shot",
    "the standard-bearer carried it; forbearer and bearer alike",
    "a bearer of responsibilities",
    "Bearer token-based-authentication is what the server asks for",  # words, and not one digit
    "a cup-bearer uncharacteristically late",
    'class="sk-fading-circle sk-circle12 sk-child"',
    "risk-assessment-for-the-year-2024-and-2025",
    "the desk-to-desk-distance-is-1234567890-metres",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUJ\n-----END CERTIFICATE-----",
    "a key begins with -----BEGIN PRIVATE KEY----- and that is all",
    "npm_lifecycle_event=test npm_package_version=1.0.0",
    "eyJhbGciOiJub25lIn0= is just JSON",
    "AKIA is four letters; AKIAs are many",
    "ghp_ is how they begin, github_pat_ is another way, xoxb- too",
    "Passwords, tokens and secrets are only words. 🌙",
]


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: text[:40])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert NOBODYS.hide(text) == text
    assert NOBODYS.hide(json.dumps(text)) == json.dumps(text)


def test_what_stands_between_two_private_keys_stays() -> None:
    certificate = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUJ\n-----END CERTIFICATE-----\n"
    text = f"{PEM}the first of two\n{PEM}{certificate}"
    hidden = NOBODYS.hide(text)
    assert "the first of two" in hidden
    assert certificate in hidden
    assert MIXED[:16] not in hidden


def test_what_a_person_calls_harmless_stays_and_only_that() -> None:
    key, other = "sk-" + MIXED[:30], "sk-" + MIXED[3:33]
    secrets = Secrets({"MY_TOKEN": "not-so-secret"}, harmless=[key, "not-so-secret"])
    assert secrets.hide(f"{key} {other} not-so-secret") == f"{key} {HIDDEN} not-so-secret"


# -- known values ------------------------------------------------------------------------------------------------------

NAMES = [
    *("FOO_TOKEN", "foo_token", "TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "CLIENT_SECRET", "DATABASE_URL"),
    *("DATABASE_URL_TEST", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "SSH_PASSPHRASE", "OPENAI_API_KEY", "APIKEY"),
    *("PRIVATE_KEY", "SIGNING_KEY", "GITLAB_PAT", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "SMTP_PASS", "APP_CREDENTIALS"),
]
OTHER_NAMES = [
    *("PATH", "HOME", "PWD", "OLDPWD", "MAX_TOKENS", "KEYBOARD", "MONKEY", "SSH_AUTH_SOCK", "GIT_ASKPASS", "COMPASS"),
    *("AWS_SHARED_CREDENTIALS_FILE", "TOKEN_PATH", "SECRETS_DIR", "PASSWORD_STORE_DIR", "PGPASSFILE_PATH", "EDITOR"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_sounds_secret_makes_its_value_one(name: str) -> None:
    assert looks_secret(name)
    assert Secrets({name: "canary-99"}).hide("a canary-99!") == f"a {HIDDEN}!"


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_any_other_name_does_not(name: str) -> None:
    assert not looks_secret(name)
    assert Secrets({name: "canary-99"}).hide("a canary-99!") == "a canary-99!"


def test_a_value_that_is_too_short_would_be_found_everywhere_and_is_left_alone() -> None:
    secrets = Secrets({"A_TOKEN": "1234567", "B_TOKEN": "12345678"})
    assert secrets.hide("1234567 12345678") == f"1234567 {HIDDEN}"


def test_the_password_of_an_address_is_a_secret_of_its_own() -> None:
    secrets = Secrets({"DATABASE_URL": "postgres://ada:p%40ssw%2Frd@db:5432/shop", "SHORT_DSN": "x://y:z@host:1"})
    assert secrets.hide("p@ssw/rd") == secrets.hide("p%40ssw%2Frd") == HIDDEN
    assert secrets.hide("z db:5432/shop") == "z db:5432/shop"


def test_each_line_of_a_key_is_a_secret_of_its_own_and_so_is_a_literal_from_the_settings() -> None:
    secrets = Secrets({"PRIVATE_KEY": PEM}, ["from the settings"])
    for line in LINES.split("\n"):
        assert secrets.hide(f"> {line}") == f"> {HIDDEN}"
    assert secrets.hide(PEM) == f"{HIDDEN}\n"
    assert secrets.hide("taken from the settings.") == f"taken {HIDDEN}."


def test_the_longest_value_wins_where_one_is_part_of_another() -> None:
    secrets = Secrets({"A_TOKEN": "canary-99", "B_TOKEN": "canary-99-and-more"})
    assert secrets.hide("canary-99-and-more canary-99-and") == f"{HIDDEN} {HIDDEN}-and"


def test_bytes_that_are_no_text_are_hidden_as_they_are_printed() -> None:
    """The system hands such a variable over with lone surrogates; an agent prints the bytes themselves."""
    value = b"canary-\xff\xfe-latin"
    data = bytearray(b"I know " + value)
    Secrets({"FOO_TOKEN": value.decode(errors="surrogateescape")}).mask(data)
    assert data == b"I know " + b"*" * len(value)


# Without brackets: `[secret]` and what follows it could spell such a secret anew.
SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="[]"), min_size=8, max_size=40).filter(
    lambda text: text == text.strip() and len(text.encode()) >= 8
)
ODD = [
    "p\"a'ss\\wörd 1",
    "with  two\tblanks",
    "a+b/c=d+e/f==",
    "gänsefüßchen",
    "line one 12345\nline two 6789",
    "🌙" * 8,
]


@example("\x1b000000\x1b", "\\", "")
@given(SECRETS, st.text(max_size=20), st.text(max_size=20))
def test_no_dress_of_a_known_value_survives_whatever_stands_around_it(secret: str, before: str, behind: str) -> None:
    secrets = Secrets({"FOO_TOKEN": secret})
    for name, dress in dresses_of(secret).items():
        assert dress not in secrets.hide(before + dress + behind), name


@pytest.mark.parametrize("secret", ODD)
def test_odd_values_are_hidden_in_every_dress(secret: str) -> None:
    secrets = Secrets({}, [secret])
    for name, dress in dresses_of(secret).items():
        assert secrets.hide(f"({dress})") == f"({HIDDEN})", name


@pytest.mark.parametrize("secret", ODD)
def test_odd_values_are_hidden_as_an_error_message_quotes_them(secret: str) -> None:
    """`there is no loop called 'NAME'` shows the name as Python writes it."""
    assert Secrets({}, [secret]).hide(repr(secret)) in (f"'{HIDDEN}'", f'"{HIDDEN}"')


@pytest.mark.parametrize("secret", ODD[:4])
def test_odd_values_are_hidden_as_a_form_sends_them(secret: str) -> None:
    """`application/x-www-form-urlencoded` has `+` for a blank, and some write `%c3` for `%C3`."""
    secrets = Secrets({}, [secret])
    assert secrets.hide(quote(secret, safe="").replace("%20", "+")) == HIDDEN
    small = re.sub("%..", lambda match: match[0].lower(), quote(secret, safe=""))
    assert secrets.hide(small) == HIDDEN


def test_line_by_line_a_private_key_is_hidden_from_its_first_line_to_its_last() -> None:
    hide = NOBODYS.line_by_line()
    shown = [hide(line) for line in ["before", *PEM.splitlines(), "behind", f"{PEM} in one piece", "and so on"]]
    assert shown[0] == "before"
    assert not any(line in text for text in shown for line in [*LINES.split("\n"), "qQ=="])
    assert shown[-3] == "behind"
    assert shown[-1] == "and so on"


def test_line_by_line_a_key_that_never_ends_does_not_hide_the_rest_of_the_night() -> None:
    """Somebody only wrote about keys; nothing that looks like one is longer than 30,000 bytes."""
    hide = NOBODYS.line_by_line()
    shown = [hide(line) for line in ["it begins with -----BEGIN PRIVATE KEY-----", *(["words " * 100] * 100)]]
    assert shown[-1] == "words " * 100


# -- masking -----------------------------------------------------------------------------------------------------------

UPPER = st.text(string.ascii_uppercase + string.digits + "+/=_", min_size=8, max_size=30)
AROUND = st.text('abc .:,\n\r"', max_size=30)  # no backslash: before a slash it would be a dress of it
ESCAPED = st.text('abc .:,\n\r"\\', max_size=30)


def masked(secrets: Secrets, text: str) -> str:
    data = bytearray(text.encode())
    secrets.mask(data)
    return data.decode()


@given(UPPER, AROUND, AROUND)
def test_a_mask_covers_the_secret_and_nothing_else(secret: str, before: str, behind: str) -> None:
    """The two alphabets have no letter in common, so it is clear what belongs to whom."""
    secrets = Secrets({"FOO_TOKEN": secret})
    for dress in (secret, quote(secret, safe="")):
        assert masked(secrets, before + dress + behind) == before + "*" * len(dress) + behind


@given(SECRETS, st.text(max_size=30), st.text(max_size=30))
@example("first line, long enough\nsecond line, long enough", "\n", "\r\n")
def test_a_mask_keeps_length_and_lines_and_has_nothing_left_to_do(secret: str, before: str, behind: str) -> None:
    secrets = Secrets({"FOO_TOKEN": secret})
    data = bytearray((before + secret + behind).encode())
    old = bytes(data)
    spans = secrets.mask(data)
    assert len(data) == len(old)
    assert [place for place, byte in enumerate(data) if byte in b"\r\n"] == [
        place for place, byte in enumerate(old) if byte in b"\r\n"
    ]
    inside = {place for start, stop in spans for place in range(start, stop)}
    assert all(data[place] == old[place] for place in range(len(old)) if place not in inside)
    again = bytearray(data)
    secrets.mask(again)
    assert again == data


@example("/0000000", "\\", "", False)
@given(UPPER | st.sampled_from([*ODD, PEM, KEYS[0][0], PARTS[0][0], PARTS[4][0]]), ESCAPED, ESCAPED, st.booleans())
def test_a_line_of_json_stays_json_when_a_secret_in_it_is_masked(
    secret: str, before: str, behind: str, ascii_: bool
) -> None:
    secrets = Secrets({"FOO_TOKEN": secret})
    line = json.dumps({"type": "message", "text": before + secret + behind}, ensure_ascii=ascii_)
    for text in (line, json.dumps({"line": line}, ensure_ascii=ascii_)):
        assert secret.strip() not in str(json.loads(masked(secrets, text)))


# -- settings ----------------------------------------------------------------------------------------------------------


def test_a_setting_keeps_the_name_of_a_variable_and_gets_its_value_of_today() -> None:
    kept = Secrets({"MY_TOKEN": "canary-99"}).refer("agent --token canary-99 -x canary-99")
    assert kept == "agent --token ⟦env:MY_TOKEN⟧ -x ⟦env:MY_TOKEN⟧"
    tomorrow = Secrets({"MY_TOKEN": "another-1"})
    assert tomorrow.reveal(kept) == "agent --token another-1 -x another-1"
    assert tomorrow.missing(kept) == []
    assert Secrets({}).missing(kept) == ["MY_TOKEN", "MY_TOKEN"]


@pytest.mark.parametrize(
    "text", ["curl https://ada:hunter2@x", f"-H 'Bearer {MIXED[:20]}'", KEYS[0][0], "from-settings"]
)
def test_a_setting_with_a_secret_that_stands_in_no_variable_cannot_be_kept(text: str) -> None:
    with pytest.raises(Unnamed):
        Secrets({"MY_TOKEN": "canary-99"}, ["from-settings"]).refer(text)


def test_the_longer_of_two_values_is_the_one_that_is_referred_to() -> None:
    secrets = Secrets({"A_TOKEN": "canary-99", "B_TOKEN": "canary-99-and-more"})
    assert secrets.refer("canary-99-and-more, canary-99") == "⟦env:B_TOKEN⟧, ⟦env:A_TOKEN⟧"


def test_what_is_withheld_is_what_would_be_hidden() -> None:
    env = {
        "MY_TOKEN": "canary-99",
        "SAME": "canary-99",
        "INDEX": "https://ada:pass@example.org",
        "GH": "ghp_" + "a1" * 18,
        "PATH": "/opt/canary-99/bin",  # without it nothing would run
        "SHORT_TOKEN": "1234567",
        "FINE_TOKEN": "only-an-example",
        "TOKEN_FILE": "/run/secrets/token",
        "LISTED": "listed canary",
    }
    secrets = Secrets(env, ["listed canary"], ["only-an-example"])
    assert secrets.withheld(env) == {"MY_TOKEN", "SAME", "INDEX", "GH", "LISTED"}


def test_children_get_everything_but_our_own_secrets() -> None:
    theirs = {
        "PATH": "/bin",
        "FOO_TOKEN": "theirs",
        "BYDAWN_ROUNDS": "3",
        "BYDAWN_AS": "x",
        "MY_BYDAWN_TOKEN": "theirs",
    }
    ours = {
        "BYDAWN_SECRETS": "1",
        "BYDAWN_API_TOKEN": "2",
        "BYDAWN_FLEET_DSN": "3",
        "BYDAWN_WEBHOOK": "4",
        "BYDAWN_X": "5",
    }
    assert for_children(theirs | ours, ["BYDAWN_X"]) == theirs


# -- values with texts in them -----------------------------------------------------------------------------------------


def test_words_of_a_fixed_vocabulary_numbers_and_moments_are_no_texts() -> None:
    moment = datetime(2026, 1, 6, tzinfo=UTC)
    fact = ended(
        1,
        Outcome.OK,
        detail="x",
        promise=Promised.GIVEN,
        changes=Changes(added=1, paths=("x", "y")),
        wait_until=moment,
    )
    shouted = rewritten(fact, lambda text: f"{text}!")
    assert (shouted.detail, shouted.found.tree, shouted.found.changes.paths) == ("x!", "tree-1!", ("x!", "y!"))
    assert shouted.outcome is Outcome.OK
    assert shouted.promise is Promised.GIVEN
    assert (shouted.round, shouted.wait_until, shouted.session) == (1, moment, None)
    stop = LoopStopped(end=End.COMPLETE, reason="x", decided=decided(), evidence=("x",))
    assert rewritten(stop, lambda text: f"{text}!").end is End.COMPLETE
    event = EventRecorded(record="x", at=moment, kind="x", message="x", data={"x": "y"})
    assert rewritten(event, str.upper).data == {"X": "Y"}, "or a secret in it would reach the ledger"
    assert rewritten(Promise(text="x", mode=Mode.LINE), str.upper) == Promise(text="X", mode=Mode.LINE)
    assert rewritten(Limits(rounds=3, until=moment), str.upper) == Limits(rounds=3, until=moment)


@given(FACTS)
def test_a_fact_that_is_rewritten_to_the_same_is_the_same(fact: AnyFact) -> None:
    assert rewritten(fact, str) == fact
