"""The configuration files of dialects: whose a file is, what it asks for, and trust in one that was just written."""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn import dialects
from bydawn.core.errors import UserError
from bydawn.core.keys import Checked, Key, Node, Value, checked, raised, stacked
from bydawn.core.loop import Loop
from bydawn.dialects.seam import Configured, Start
from bydawn.operations import trust
from bydawn.operations.dialects import begin, loops
from bydawn.settings import files, yaml
from bydawn.settings.layers import Settings
from bydawn.settings.setting import Layer
from bydawn.settings.trust import Trusts
from bydawn.system.reading import read_text


def user_file(path: Path) -> files.File:
    """A person's own file, which no one else may have written."""
    return files.File(path=path, layer=Layer.USER, owners=frozenset({os.getuid(), 0}))


def layered(keys: Sequence[Key], user: Path, workspace: Path | None, project: str, flags: Mapping[str, str]) -> Checked:
    """Defaults, the user's file, the project's, the environment, the options: the later ones are stronger."""
    layers = []
    if (text := files.checked_text(user_file(user))) is not None:
        layers.append(checked(yaml.parse(text, user.name), keys, user.name))
    if workspace is not None and (node := yaml.read(workspace, project)) is not None:
        layers.append(checked(node, keys, project))
    for key in keys:
        text = os.environ.get(key.variable) if key.variable else None
        if text is not None and (text.strip() or key.nullable):  # an empty one switches off what may be null
            found = yaml.typed(text, key, key.variable) if text.strip() else None
            layers.append(found or Checked(name=key.variable, values={key.path: None}, lines={key.path: 0}))
    layers += [yaml.typed(flags[key.path], key, key.flag) for key in keys if key.path in flags]
    return stacked(keys, layers, project)


def user_folder(dialect: Configured) -> Path | None:
    """Where a person's own file of a dialect is; it need not exist."""
    variable, folder, _ = dialect.user_file
    given, home = os.environ.get(variable), os.environ.get("HOME")
    # The real path: nothing is written through a link, and here a person may have made one.
    return Path(given or f"{home}/{folder}").resolve() if folder and (given or home) else None


def _of_user(dialect: Configured) -> Mapping[str, Value] | None:
    """What a person's own file says; None without one."""
    folder, name = user_folder(dialect), dialect.user_file[2]
    text = files.checked_text(user_file(folder / name)) if folder else None
    return None if text is None else checked(yaml.parse(text, name), dialect.keys, name).values


def read(dialect: Configured, workspace: Path) -> Start | None:
    """The loop that a dialect's file asks for; None without such a file."""
    return _read(dialect, workspace, [])


def _read(dialect: Configured, workspace: Path, named: list[str]) -> Start | None:
    row = dialects.TABLE[dialect.name]
    node = yaml.read(workspace, row.config)
    if node is None and not any(os.path.lexists(workspace / path) for path in row.beside):
        return None
    found = checked(node or Node(1, {}), dialect.keys, Path(row.config).name)
    usual = {key.path: key.default for key in dialect.keys}
    found = replace(found, raised=raised(dialect.keys, found, _of_user(dialect) or usual))

    def text_of(other: str) -> str | None:
        text = read_text(workspace, other)
        named.extend([other] if text is not None else [])
        return text

    wanted = dialect.from_config(found, text_of)
    return replace(wanted, config=row.config, remarks=(*found.remarks, *wanted.remarks))


def documents(loop: Loop) -> dict[str, str]:
    """Further documents that the file of a loop's dialect names, by name; none if it cannot be read.

    The dialect's own command says what is wrong with its file; the other documents can still be shown.
    """
    name = loop.dialect.name if loop.dialect else ""
    if name not in dialects.TABLE or not dialects.TABLE[name].config:
        return {}
    dialect: Configured = dialects.find(name)  # type: ignore[assignment] # the row says that it is one
    with suppress(UserError):
        if node := yaml.read(Path(loop.workspace), dialects.TABLE[name].config):
            return dialect.documents(checked(node, dialect.keys, name))
    return {}


class Owner(msgspec.Struct, frozen=True):
    """Whose a configuration file is."""

    dialect: Configured
    workspace: Path
    config: str

    @property
    def path(self) -> Path:
        return self.workspace / self.config

    def gather(self) -> Settings:
        """All settings that a loop would have which this file asks for."""
        if (wanted := read(self.dialect, self.workspace)) is None:
            raise UserError(f"there is no file {self.path}", hint=f"name the file that {self.dialect.name} reads")
        return begin.gather(self.dialect, wanted, self.workspace)


def owner(path: Path) -> Owner | None:
    """None if no dialect reads such a file. It need not exist."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - its name counts, not where a link leads
    for name, row in dialects.TABLE.items():
        if row.config and (found := next((each for each in (row.config, *row.beside) if absolute.match(each)), "")):
            dialect: Configured = dialects.find(name)  # type: ignore[assignment] # the row says that it is one
            return Owner(dialect, absolute.parents[found.count("/")].resolve(), row.config)
    return None


def agree(dialect: Configured, workspace: Path, written: Collection[str], *, trusted: bool = False) -> bool:
    """Trust a file that was just written for a person who asked for it. Did all it can run come from us?

    Another file that it names, such as a template, may have come with the repository: then a person is asked, unless
    they `trusted` it before.
    """
    named: list[str] = []
    wanted = _read(dialect, workspace, named)
    if wanted is None or not (trusted or {wanted.config, *named} <= set(written)):
        return False
    trusts, question = _review(dialect, workspace, wanted)
    if question:
        trust.agree(question.powers, workspace, trusts, question.config)
    return True


def is_trusted(dialect: Configured, workspace: Path) -> bool:
    """Has a person agreed permanently to all that the dialect's files here ask for?"""
    if (wanted := read(dialect, workspace)) is None:
        return True
    trusts, question = _review(dialect, workspace, wanted)
    lasting = trusts.given(question.place) or trusts.moved(workspace, question.config) if question else None
    return question is None or (lasting is not None and lasting.digest == question.powers.digest)


def _review(dialect: Configured, workspace: Path, wanted: Start) -> tuple[Trusts, trust.Question | None]:
    gathered = begin.gather(dialect, wanted, workspace)
    trusts = Trusts(loops.registry_of(gathered).root.trust)
    return trusts, trust.review(gathered, workspace, trusts, wanted.config)
