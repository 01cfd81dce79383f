"""What `.codex-autorunner/config.yml` says, and what that means to us."""

import re
import shlex

import msgspec

from bydawn.core.commits import unknown_names
from bydawn.core.errors import UserError
from bydawn.core.keys import Checked, Key, Kind
from bydawn.dialects.codex_autorunner import texts

NAME, CODEX = "codex-autorunner", "codex"
FOLDER = ".codex-autorunner"
CONFIG, TEMPLATE, IGNORE = f"{FOLDER}/config.yml", f"{FOLDER}/prompt.txt", f"{FOLDER}/.gitignore"
STATE, LOG, LOCK = f"{FOLDER}/state.json", f"{FOLDER}/codex-autorunner.log", f"{FOLDER}/lock"
VERSION = 1
MOST_CHARACTERS = 100_000  # of the previous output; the ledger carries it from one loop to the next
SANDBOXES = {"read-only": "read-only", "workspace-write": "workspace", "danger-full-access": "full"}
SECTIONS = ("NOTES", "EVENTS", "CHECKS")  # of ours, behind the document's prompt


class Extra(msgspec.Struct, frozen=True, kw_only=True):
    """One more document that Codex may read."""

    name: str
    path: str
    include_in_prompt: bool = False


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The file, checked; `where` says in which line a key is."""

    todo: str = "TODO.md"
    progress: str = "PROGRESS.md"
    opinions: str = "OPINIONS.md"
    extras: tuple[Extra, ...] = ()
    binary: str = "codex"
    args: tuple[str, ...] = ("--yolo", "exec", "--sandbox", "danger-full-access")
    prev_run_max_chars: int = 6000
    template: str | None = TEMPLATE
    sleep_seconds: float = 5
    stop_after_runs: int | None = None
    max_wallclock_seconds: float | None = None
    auto_commit: bool = False
    commit_message_template: str = "[codex] run #{run_id}"
    host: str = "127.0.0.1"
    port: int = 4173
    auth_token: str | None = None
    where: dict[str, str] = {}
    remarks: tuple[str, ...] = ()

    @property
    def documents(self) -> dict[str, str]:
        return {"todo": self.todo, "progress": self.progress, "opinions": self.opinions}


_EXTRA = (Key("name", Kind.TEXT), Key("path", Kind.PATH), Key("include_in_prompt", Kind.SWITCH, default=False))
KEYS = (
    Key("version", Kind.COUNT, VERSION),
    Key("docs.todo", Kind.PATH, "TODO.md"),
    Key("docs.progress", Kind.PATH, "PROGRESS.md"),
    Key("docs.opinions", Kind.PATH, "OPINIONS.md"),
    Key("docs.extras", Kind.ITEMS, (), nullable=True, keys=_EXTRA),
    Key("codex.binary", Kind.TEXT, "codex"),
    Key("codex.args", Kind.TEXTS, Config().args),
    Key("prompt.prev_run_max_chars", Kind.COUNT, 6000, most=MOST_CHARACTERS),
    Key("prompt.template", Kind.PATH, TEMPLATE, nullable=True),
    Key("runner.sleep_seconds", Kind.SECONDS, 5),
    Key("runner.stop_after_runs", Kind.COUNT, nullable=True, least=1),
    Key("runner.max_wallclock_seconds", Kind.SECONDS, nullable=True, least=1),
    Key("git.auto_commit", Kind.SWITCH, default=False),
    Key("git.commit_message_template", Kind.TEXT, Config().commit_message_template),
    Key("server.host", Kind.TEXT, Config().host),
    Key("server.port", Kind.COUNT, Config().port, most=65535),
    Key("server.auth_token", Kind.TEXT, nullable=True),
)
_TAG = re.compile(r"[A-Za-z][\w-]*", re.ASCII)  # what can be written as a tag around a document


def read(found: Checked) -> Config:
    """The configuration, from what the file says."""
    if not found.lines and not found.remarks:
        hint = f"`{NAME} init --force` writes a new one"
        raise UserError(f"{found.name} is empty", cause="it says nothing about what Codex may do", hint=hint)
    version = found.count("version")
    if version != VERSION:
        raise UserError(
            f"{found.where('version')}: version {version} is not known",
            cause=f"this program reads version {VERSION}",
            hint=f"write `version: {VERSION}`, and look at every key: `{NAME} doctor` checks them",
        )
    message = found.text("git.commit_message_template")
    if unknown := unknown_names(message.replace("{run_id}", "")):
        raise UserError(
            f"{found.where('git.commit_message_template')}: git.commit_message_template has {{{unknown[0]}}}",
            cause="nothing can be filled in there",
            hint="names are {run_id}, {loop}, {round} and {task}",
        )
    unversioned = () if "version" in found.lines else (f"{found.name} has no version; {VERSION} is assumed",)
    return Config(
        todo=_document(found, "docs.todo"),
        progress=_document(found, "docs.progress"),
        opinions=_document(found, "docs.opinions"),
        extras=tuple(_extra(each) for each in found.items("docs.extras")),
        binary=found.text("codex.binary"),
        args=found.texts("codex.args"),
        prev_run_max_chars=found.count("prompt.prev_run_max_chars") or 0,
        template=found.text("prompt.template") or None,
        sleep_seconds=found.number("runner.sleep_seconds") or 0,
        stop_after_runs=found.count("runner.stop_after_runs"),
        max_wallclock_seconds=found.number("runner.max_wallclock_seconds"),
        auto_commit=found.switch("git.auto_commit"),
        commit_message_template=message,
        host=found.text("server.host"),
        port=found.count("server.port") or 0,
        auth_token=found.text("server.auth_token") or None,
        where={key.path: found.where(key.path) for key in KEYS},
        remarks=(*unversioned, *found.remarks),
    )


def _document(found: Checked, key: str) -> str:
    """A document can be named in a prompt's marker, and is neither in git's own folder nor a file that we write."""
    path = found.text(key)
    if path.split("/")[0] == ".git" or path in (CONFIG, IGNORE, STATE, LOG, LOCK) or "{" in path or "}" in path:
        raise UserError(
            f"{found.where(key)}: {key} cannot be {path!r}", cause="no document is there", hint="name another"
        )
    return path


def _extra(found: Checked) -> Extra:
    if not _TAG.fullmatch(name := found.text("name")):
        cause = "the prompt has it as a tag around the document: letters, digits, - and _"
        raise UserError(
            f"{found.where('name')}: {name!r} cannot be a name here", cause=cause, hint='write name: "SPEC"'
        )
    return Extra(name=name, path=_document(found, "path"), include_in_prompt=found.switch("include_in_prompt"))


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What `codex.args` asks of Codex, in our words."""

    sandbox: str = "workspace"
    model: str | None = None
    profile: str | None = None
    effort: str | None = None
    rest: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


_OURS = ("-", "--json", "--experimental-json", "--skip-git-repo-check")  # Codex takes none of them twice
_FULL = ("--yolo", "--dangerously-bypass-approvals-and-sandbox")
_VALUED = {
    "-s": "sandbox",
    "--sandbox": "sandbox",
    "-m": "model",
    "--model": "model",
    "-p": "profile",
    "--profile": "profile",
    "-c": "config",
    "--config": "config",
    "-a": "approval",
    "--ask-for-approval": "approval",
    "-C": "folder",
    "--cd": "folder",
}
_IGNORED = {"approval": "a loop asks no one", "folder": "Codex works in the repository"}
_CONFIGURED = {"model_reasoning_effort": "effort", "sandbox_mode": "sandbox"}


def asked(args: tuple[str, ...], where: str) -> Asked:
    """Read `codex.args`. We put `exec` and the prompt in ourselves; what we do not know is passed on as it is."""
    found: dict[str, str] = {}
    rest: list[str] = []
    remarks: list[str] = []
    words = [word for number, word in enumerate(args) if word != "exec" or "exec" in args[:number]]
    words = [word for word in words if word not in _OURS]
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
        kind = _VALUED.get(flag)
        if word in _FULL:
            found["full"] = word
        elif kind is None:
            rest.append(word)
        else:
            if not equals and not value:
                value = _value(words, word, where)
            value = value.removeprefix("=") if not word.startswith("--") else value
            if kind == "config":
                name, _, value = value.partition("=")
                kind = _CONFIGURED.get(name.strip(), "")
                if not kind:
                    rest += [flag, f"{name}={value}"]
                    continue
                value = value.strip().strip("\"'")
            if kind in _IGNORED:
                remarks.append(f"{where}: {flag} {value} has no effect: {_IGNORED[kind]}")
            else:
                found[kind] = value
    if found.get("sandbox", "read-only") not in SANDBOXES:
        cause = f"{found['sandbox']!r} is none of {', '.join(SANDBOXES)}"
        raise UserError(f"{where}: codex.args names a sandbox that Codex does not have", cause=cause, hint="choose one")
    sandbox = "full" if "full" in found else SANDBOXES.get(found.get("sandbox", ""), "workspace")
    plain = {kind: found[kind] for kind in ("model", "profile", "effort") if kind in found}
    return Asked(sandbox=sandbox, rest=tuple(rest), remarks=tuple(remarks), **plain)


def _value(words: list[str], flag: str, where: str) -> str:
    if not words:
        raise UserError(f"{where}: {flag} in codex.args needs a value", hint=f'write ["{flag}", "…"]')
    return words.pop(0)


def command_of(config: Config) -> str:
    """A program that is not Codex, as an agent of ours: the prompt is its last argument."""
    return f"arg:{shlex.join((config.binary, *config.args))}"


_MARKER = re.compile(r"\{\{\s*(?:([#/]?)(TODO|PROGRESS|OPINIONS|PREV_RUN_OUTPUT)|()(EXTRAS))\s*\}\}")


def template(config: Config, text: str | None) -> str:
    """The prompt in our markers; each of the document's stands for a file as it is."""
    shown = [extra for extra in config.extras if extra.include_in_prompt]
    extras = "\n\n".join(f"<{extra.name}>\n{{{{FILE:{extra.path}}}}}\n</{extra.name}>" for extra in shown)
    values = {name.upper(): f"{{{{FILE:{path}}}}}" for name, path in config.documents.items()}
    values |= {"PREV_RUN_OUTPUT": f"{{{{OUTPUT:{config.prev_run_max_chars}}}}}", "EXTRAS": extras}

    def ours(found: re.Match[str]) -> str:
        return values[found[2] or found[4]].replace("{{", f"{{{{{found[1] or ''}")

    written = _MARKER.sub(ours, texts.PROMPT if text is None else text)
    return re.sub(r"\n{3,}", "\n\n", written) if text is None else written
