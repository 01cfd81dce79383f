"""Pages that are about no loop: start one, settings, the state of this machine, signing in."""

from functools import cache
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.text import plain, shorten, visible
from bydawn.operations import settings as reading
from bydawn.operations.doctor import Finding, examine
from bydawn.operations.trust import question
from bydawn.settings.files import workspace_above
from bydawn.settings.layers import Given
from bydawn.settings.trust import Trusts
from bydawn.store.folder import StateFolder
from bydawn.web.calls import Call, Site
from bydawn.web.page import Page, Section
from bydawn.web.pages.frame import plain_page
from bydawn.web.starting import on_offer, refuse_elsewhere

_VALUE = 300  # characters of a setting
# What each key does. None of them stops, approves or resumes anything.
KEYS = (
    ("j, k", "the next row, the one before"),
    ("Enter", "open it"),
    ("u", "up one level"),
    ("1 to 5", "Overview, Rounds, Docs, Log, Chat"),
    ("/", "search"),
    ("n, N", "the next hit, the one before"),
    ("f", "follow the log"),
    ("t", "tell the loop something"),
    ("?", "this list"),
    ("Esc", "leave a field"),
    ("Ctrl S", "save a document"),
    ("Ctrl Enter", "send"),
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Each setting with its value in words, and those that are in a file that is not trusted."""

    folder: str
    rows: tuple[tuple[Given, str], ...] = ()
    inert: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()


# -- start -------------------------------------------------------------------------------------------------------------


def start_page(call: Call) -> Page:
    """What can be started with one tap, and what to type for everything else."""
    refuse_elsewhere(call.site)
    section = Section(id="start", template="start.html", live=False, data={"found": cache(lambda: on_offer(call.site))})
    return plain_page("Start a loop", section)


# -- settings ----------------------------------------------------------------------------------------------------------


def settings_page(call: Call) -> Page:
    """How the page looks to this visitor, and what loops in the server's folder start with."""
    looks = {"theme": call.visitor.theme, "key_list": KEYS}
    own = Section(id="own", template="settings_own.html", live=False, data=looks)
    data = {"settings": cache(lambda: _settings(call.site.folder, call.loops.registry.root))}
    return plain_page("Settings", own, Section(id="settings", template="settings.html", live=False, data=data))


def _settings(folder: Path, root: StateFolder) -> Settings:
    """As `config show --origin` lists them."""
    try:
        workspace = workspace_above(folder)
        found = reading.gather(workspace)
        hide = reading.secrets().hide
        asking = question(found, workspace, Trusts(root.trust))
    except (UserError, OSError) as error:
        told = error.sentence if isinstance(error, UserError) else str(error)
        return Settings(folder=str(folder), problems=(plain(told),))
    powers = (*asking.powers.commands, *asking.powers.loosened) if asking else ()
    shown = map(found.__getitem__, found.given)
    return Settings(
        folder=str(workspace),
        rows=tuple((each, shorten(hide(reading.in_force(each).replace("\n", " ¦ ")), _VALUE)) for each in shown),
        inert=frozenset(each.key for each in powers if found[each.key] is each),
        problems=tuple(visible(hide(f"{each.where}: {each.what}")) for each in found.problems),
    )


# -- doctor ------------------------------------------------------------------------------------------------------------


def doctor_page(call: Call) -> Page:
    """What `bydawn doctor` says about this machine and every loop; it takes a second or two."""
    data = {"findings": cache(lambda: _findings(call.site))}
    return plain_page("Doctor", Section(id="doctor", template="doctor.html", live=False, data=data))


def _findings(site: Site) -> list[Finding]:
    rows = list[Finding]()
    try:
        rows += examine(site.loops.registry, site.loops.all(), site.folder)
    except (UserError, OSError) as error:
        told = error.sentence if isinstance(error, UserError) else str(error)
        rows.append(Finding(name="doctor", ok=False, detail=plain(told)))
    return sorted(rows, key=lambda row: row.ok)


# -- sign in -----------------------------------------------------------------------------------------------------------


def login_page(call: Call) -> Page:
    """Where a code is typed; a link carries it, and a script sends it."""
    data = {"serves": call.site.gate.serves, "new_link": call.site.gate.new_link}
    return Page(
        title="Sign in", crumbs=(), sections=(Section(id="login", template="login.html", live=False, data=data),)
    )
