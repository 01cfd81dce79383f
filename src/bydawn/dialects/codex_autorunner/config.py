"""What `.codex-autorunner/config.yml` says, and what that means to us."""

import re
import shlex
from typing import Annotated

import msgspec

from bydawn.core.commits import unknown_names
from bydawn.core.errors import UserError
from bydawn.core.keys import Checked, Configuration, Key, Kind, filled, keys_of
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

    name: Annotated[str, Key(kind=Kind.TEXT)]
    path: Annotated[str, Key(kind=Kind.PATH)]
    include_in_prompt: bool = False


class Config(Configuration, frozen=True, kw_only=True):
    """The file. The last part of each key is its field."""

    version: int = VERSION
    todo: Annotated[str, Key("docs.todo", Kind.PATH)] = "TODO.md"
    progress: Annotated[str, Key("docs.progress", Kind.PATH)] = "PROGRESS.md"
    opinions: Annotated[str, Key("docs.opinions", Kind.PATH)] = "OPINIONS.md"
    extras: Annotated[tuple[Extra, ...], Key("docs.extras", nullable=True)] = ()
    binary: Annotated[str, Key("codex.binary", Kind.TEXT)] = "codex"
    args: Annotated[tuple[str, ...], Key("codex.args")] = ("--yolo", "exec", "--sandbox", "danger-full-access")
    prev_run_max_chars: Annotated[int, Key("prompt.prev_run_max_chars", most=MOST_CHARACTERS)] = 6000
    template: Annotated[str | None, Key("prompt.template", Kind.PATH)] = TEMPLATE
    sleep_seconds: Annotated[float, Key("runner.sleep_seconds")] = 5
    stop_after_runs: Annotated[int | None, Key("runner.stop_after_runs", least=1)] = None
    max_wallclock_seconds: Annotated[float | None, Key("runner.max_wallclock_seconds", least=1)] = None
    auto_commit: Annotated[bool, Key("git.auto_commit")] = False
    commit_message_template: Annotated[str, Key("git.commit_message_template", Kind.TEXT)] = "[codex] run #{run_id}"
    host: Annotated[str, Key("server.host", Kind.TEXT)] = "127.0.0.1"
    port: Annotated[int, Key("server.port", most=65535)] = 4173
    auth_token: Annotated[str | None, Key("server.auth_token", Kind.TEXT)] = None

    @property
    def documents(self) -> dict[str, str]:
        return {"todo": self.todo, "progress": self.progress, "opinions": self.opinions}


KEYS = (*keys_of(Config),)
_TAG = re.compile(r"[A-Za-z][\w-]*", re.ASCII)  # what can be written as a tag around a document


def read(found: Checked) -> Config:
    """The configuration, from what the file says."""
    if not found.lines and not found.remarks:
        hint = f"`{NAME} init --force` writes a new one"
        raise UserError(f"{found.name} is empty", cause="it says nothing about what Codex may do", hint=hint)
    config = filled(Config, found, KEYS)
    if config.version != VERSION:
        raise UserError(
            f"{found.where('version')}: version {config.version} is not known",
            cause=f"this program reads version {VERSION}",
            hint=f"write `version: {VERSION}`, and look at every key: `{NAME} doctor` checks them",
        )
    if unknown := unknown_names(config.commit_message_template.replace("{run_id}", "")):
        raise UserError(
            f"{found.where('git.commit_message_template')}: git.commit_message_template has {{{unknown[0]}}}",
            cause="nothing can be filled in there",
            hint="names are {run_id}, {loop}, {round} and {task}",
        )
    for name, path in config.documents.items():
        _refuse_odd_document(found, f"docs.{name}", path)
    for place, extra in zip(found.items("docs.extras"), config.extras, strict=True):
        if not _TAG.fullmatch(extra.name):
            cause = "the prompt has it as a tag around the document: letters, digits, - and _"
            what = f"{place.where('name')}: {extra.name!r} cannot be a name here"
            raise UserError(what, cause=cause, hint='write name: "SPEC"')
        _refuse_odd_document(place, "path", extra.path)
    unversioned = () if "version" in found.lines else (f"{found.name} has no version; {VERSION} is assumed",)
    return msgspec.structs.replace(config, remarks=(*unversioned, *found.remarks))


def _refuse_odd_document(found: Checked, key: str, path: str) -> None:
    """A document can be named in a prompt's marker, and is neither in git's own folder nor a file that we write."""
    if path.split("/")[0] == ".git" or path in (CONFIG, IGNORE, STATE, LOG, LOCK) or "{" in path or "}" in path:
        raise UserError(
            f"{found.where(key)}: {key} cannot be {path!r}", cause="no document is there", hint="name another"
        )


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
