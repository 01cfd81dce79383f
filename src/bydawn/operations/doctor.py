"""Check this machine and every line of every ledger; repair only when asked."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn import agents
from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.facts import LedgerRepaired
from bydawn.core.replay import replay
from bydawn.core.rules import Rule
from bydawn.core.values import Act, Advice, in_text
from bydawn.operations.agents import found_here
from bydawn.operations.leftovers import left_words, with_leftovers
from bydawn.operations.next_steps import next_steps
from bydawn.operations.preconditions import gone, refuse_inside_a_round, take_lock
from bydawn.operations.run_loop import creation_of
from bydawn.operations.service import NAME as SERVICE
from bydawn.operations.settings import gather, secrets
from bydawn.operations.views import hanging
from bydawn.process import awake, box
from bydawn.store import lock, watches
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import Damaged, LoopLedger, OtherVersion, read, records, torn_bytes
from bydawn.store.registry import Registry, Standing
from bydawn.store.rounds import Rounds
from bydawn.system.git import program
from bydawn.system.writing import replace_private, write_private

_REMOTE = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs"}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of looking at one thing."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def examine(registry: Registry, loops: list[Standing], folder: Path) -> Iterator[Finding]:
    """The machine first, then the settings of a folder, then the loops."""
    yield _python()
    yield _git(folder)
    yield _state_folder(registry.root.path)
    yield _box(registry.root.path, folder)
    yield _awake(folder)
    yield _service(registry)
    yield from _settings(folder)
    yield from _agents(folder)
    for standing in with_leftovers(loops):
        yield _ledger(standing)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(name="python", ok=sys.version_info >= (3, 11), detail=version)


def _git(folder: Path) -> Finding:
    try:
        path = program(folder)
    except OwnFailure as failure:
        return _bad("git", failure)
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    return Finding(name="git", ok=said.returncode == 0, detail=said.stdout.strip() or said.stderr.strip())


def _state_folder(root: Path) -> Finding:
    """Can we write there, and does a lock there keep other processes out?"""
    there = next(path for path in (root, *root.parents) if path.exists())
    kind, another = _filesystem(there), "use another folder: --state-dir DIR"
    detail, hint = str(root), ""
    if kind in _REMOTE:
        detail, hint = f"{root} is on {kind}, where file locks are unreliable", "use a local folder: --state-dir DIR"
    elif not os.access(there, os.W_OK):
        detail, hint = f"{there} is not writable", another
    elif not root.exists():
        detail = f"{root} (will be created)"
    elif not _locks_work(root / ".probe"):
        detail, hint = f"{root}: a lock there does not keep other processes out", another
    return Finding(name="state folder", ok=not hint, detail=detail, hint=hint)


def _box(root: Path, folder: Path) -> Finding:
    """Can checks run in a box? If not, they still run."""
    found = box.find(folder, [root])
    if isinstance(found, box.Box):
        return Finding(name="box", ok=True, detail="checks run in one: bwrap starts")
    hint = "sudo apt-get install bubblewrap" if found == box.MISSING else ""
    return Finding(name="box", ok=True, detail=f"checks run without one: {found}", hint=hint)


def _awake(folder: Path) -> Finding:
    """Can a loop keep the machine awake? If not, it still runs."""
    trouble = awake.trouble(folder)
    detail = f"this machine may sleep while a loop runs: {trouble}" if trouble else f"{awake.PROGRAM} works"
    return Finding(name="keep-awake", ok=True, detail=detail)


def _service(registry: Registry) -> Finding:
    """Do loops go on by themselves? They need not."""
    from bydawn.host.units import is_installed

    watch = watches.of(registry, None)
    if watch:
        return Finding(name="service", ok=True, detail=f"loops go on by themselves: process {watch.pid} sees to it")
    if is_installed(SERVICE):
        hint = Advice(Act("service status"), " tells why")
        return Finding(name="service", ok=False, detail="it is installed and does not run", hint=hint)
    return Finding(
        name="service",
        ok=True,
        detail=Advice("not installed: after a reboot, loops wait for ", Act("resume", all=True)),
    )


def _locks_work(probe: Path) -> bool:
    held = lock.Lock.take(probe)
    works = lock.is_held(probe)
    held.release()
    probe.unlink(missing_ok=True)
    return works


def _settings(folder: Path) -> Iterator[Finding]:
    problems = gather(folder).problems
    for problem in problems:
        detail = f"{problem.where}: {problem.what}: {problem.cause}"
        yield Finding(name="settings", ok=False, detail=detail, hint=problem.hint)
    if not problems:
        yield Finding(name="settings", ok=True, detail="all valid")


def _agents(folder: Path) -> Iterator[Finding]:
    """The installed agents: a tested version, logged in, with what their sandbox needs?"""
    for found in found_here(folder):
        if found.path is None:
            continue
        name = f"agent {found.name}"
        version = found.version or "version unknown"
        if found.logged_in is False:
            yield Finding(name=name, ok=False, detail=f"{version}, not logged in", hint=f"run `{found.login}`")
        else:
            mark = "" if found.is_tested else f" (tested with {found.tested}x)"
            yield Finding(name=name, ok=True, detail=f"{version}{mark}")
        for needed in agents.cli(found.name).sandbox_needs(found.path) if sys.platform == "linux" else ():
            if shutil.which(needed.program) is None:
                hint = f"sudo apt-get install {needed.package}"
                yield Finding(name=name, ok=False, detail=f"its sandbox needs {needed.program}", hint=hint)
    for cli in map(agents.cli, agents.CLIS):
        if trouble := cli.trouble(os.environ):
            yield Finding(name=trouble.name, ok=False, detail=trouble.detail, hint=trouble.hint)


def _filesystem(path: Path) -> str:
    """The type of the file system of a path, if the system tells."""
    try:
        rows = [row.split() for row in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    fitting = [(len(row[1]), row[2]) for row in rows if path.is_relative_to(row[1])]
    return max(fitting, default=(0, ""))[1]


def _ledger(standing: Standing) -> Finding:
    try:
        return of_loop(standing)
    except UserError as error:
        return _bad(f"loop {standing.loop.id}", error)


def of_loop(standing: Standing) -> Finding:
    """Does the snapshot agree with the ledger, and does nothing hang or live on? Raises what is damaged or gone."""
    if standing.trouble:
        raise standing.trouble
    name, state = f"loop {standing.loop.id}", replay(records(standing.folder))
    if not standing.alive and state != standing.state:
        hint = "harmless: the next start rebuilds state.json"
        return Finding(name=name, ok=False, detail="state.json does not match the loop's history", hint=hint)
    if not standing.finished and (problem := gone(standing)):
        raise problem
    if hangs := hanging(standing):
        hint = Advice("end it: ", Act("stop", standing.reference), ", or wait if the machine was asleep")
        return Finding(name=name, ok=False, detail=f"{standing.status}; {hangs}", hint=hint)
    if state.stopped and state.stopped.decided.rule == Rule.RESTARTS and not state.dismissed:
        rows = (
            Advice("; " if place else "", f"{step.why}: ", in_text(step.command))
            for place, step in enumerate(next_steps(standing))
        )
        hint = Advice(*rows)
        return Finding(name=name, ok=False, detail=f"{standing.status}; {state.stopped.reason}", hint=hint)
    if standing.left:
        hint = Advice("end it: ", Act("stop", standing.reference))
        return Finding(name=name, ok=False, detail=f"{standing.status}; {left_words(standing.left)}", hint=hint)
    if not standing.alive and (torn := torn_bytes(standing.folder)):
        detail, hint = f"its last record was cut off ({torn} bytes)", "harmless: the next start moves these bytes aside"
        return Finding(name=name, ok=False, detail=f"{standing.status}; {detail}", hint=hint)
    return Finding(name=name, ok=True, detail=f"{standing.status}; all {state.seq} records are intact")


def _bad(name: str, failure: UserError) -> Finding:
    return Finding(name=name, ok=False, detail=f"{failure.what}: {failure.cause}", hint=failure.hint)


def repair(standing: Standing) -> Finding:
    """Move the damaged part of a ledger to a file of its own and keep what comes before it."""
    refuse_inside_a_round()
    folder, name = standing.folder, f"loop {standing.loop.id}"
    held = take_lock(folder, standing.loop)
    try:
        good, aside = _split(folder)
        if aside is None:
            return Finding(name=name, ok=True, detail="nothing to repair")
        hidden = secrets()
        ledger = LoopLedger(folder, lambda _: None, hidden.hide)
        if not good:
            ledger.append(creation_of(standing.loop, folder.settings.read_bytes()))
        size, last_round = aside.stat().st_size, Rounds(folder, hidden).last()
        ledger.append(LedgerRepaired(cut_bytes=size, kept_in=aside.name, last_round=last_round))
        ledger.sync()
        ledger.snapshot()
        ledger.close()
    finally:
        held.release()
    return Finding(
        name=name,
        ok=True,
        detail=f"kept the first {good} records; the rest is in {aside}",
        hint=Advice("look at that file, then run ", Act("resume", standing.reference)),
    )


def _split(folder: LoopFolder) -> tuple[int, Path | None]:
    """Copy the damaged part to a file of its own, durably, before cutting it off."""
    path, count, end = folder.ledger, 0, 0
    if not path.exists():
        write_private(path, b"\0\n")  # so that there is something to move
    try:
        for record, end in read(path):  # noqa: B007 - the last values are the answer
            count = record.seq
        return count, None
    except Damaged:
        pass
    except OtherVersion as other:
        raise UserError(other.what, cause=other.cause, hint=Advice("nothing is damaged; ", other.hint)) from None
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = folder.ledger_part(f"{stamp}.quarantine")
    with path.open("rb") as file:
        file.seek(end)
        replace_private(aside, file.read(), durable=True)
    folder.snapshot.unlink(missing_ok=True)
    with path.open("r+b") as file:
        file.truncate(end)
        os.fsync(file.fileno())
    return count, aside
