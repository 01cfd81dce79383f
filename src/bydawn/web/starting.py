"""Start a loop from the page: the demo, or what the trusted settings of a folder say. Nothing else can be started."""

from pathlib import Path

from bydawn.core.acts import Act, Advice
from bydawn.core.errors import UserError
from bydawn.operations.startable import startable
from bydawn.store.registry import Standing
from bydawn.web.acts import begin
from bydawn.web.calls import Site
from bydawn.web.loops import NotHere


def start(site: Site, *, key: str = "", demo: bool = False) -> Standing:
    """Start it in the background, and return the loop once it has begun."""
    refuse_elsewhere(site)
    root, before = site.loops.registry.root, {str(each.folder) for each in site.loops.all()}
    if demo:
        begin(["demo", "--detach"], root)
        return _begun(site, before)
    if not key:
        raise UserError("nothing to start", cause="neither the demo nor a folder was chosen", hint="choose one")
    for row in startable(site.loops.all(), site.folder, root):
        if row.key == key:
            if not row.ready:
                raise UserError(row.why_not, cause="nothing was started", hint=f"in a terminal: `{row.command}`")
            begin(["run", "--detach", "-C", row.folder], root)
            return _begun(site, before, Path(row.folder))
    raise NotHere("this folder is not on offer", cause="its settings may have changed", hint="see what can be started")


def refuse_elsewhere(site: Site) -> None:
    """A server that speaks for another tool shows that tool's loops, which its own command starts."""
    if site.loops.is_narrowed:
        raise NotHere(
            f"loops are not started here, but with `{site.name}` in a terminal",
            cause=f"this server shows only loops of {site.name}",
            hint=Advice("for all loops: ", Act("serve")),
        )


def _begun(site: Site, before: set[str], folder: Path | None = None) -> Standing:
    """The loop that was not there before, or else the one that goes on in this folder."""
    found = site.loops.all()
    new = [each for each in found if str(each.folder) not in before]
    there = [each for each in found if folder and Path(each.loop.workspace) == folder and each.alive]
    for each in sorted((*there, *new), key=lambda each: each.loop.created_at, reverse=True):
        return each
    raise UserError("the loop has ended already", cause="it began and ended at once", hint="see the list of loops")
