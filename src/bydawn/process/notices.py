"""Have notices sent by a child with a hard time limit."""

import os
import select
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from bydawn.core.notices import Order, Sent

LIMIT = 40.0  # seconds for all addresses and tries
SLOW = 2.0  # seconds after which a person should know what is being waited for
_TICK = 1.0
_LONGEST = 1 << 16  # bytes of what the child may say


def send(
    order: Order,
    env: Mapping[str, str],
    *,
    limit: float = LIMIT,
    wakes: Sequence[int] = (),
    urgent: Callable[[], bool] = lambda: False,
    slow: Callable[[], None] = lambda: None,
) -> list[Sent]:
    """What became of the notice at each address. Nothing of it is written to disk, so a full one does not matter.

    `urgent` can end it early; it is asked when a descriptor in `wakes` becomes readable. `slow` is called once if it
    takes longer than a moment.
    """
    import subprocess  # few loops send any

    # -P and another folder: a file called requests.py in the workspace must not be loaded.
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "bydawn.process.notice_sender"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        cwd="/",
        start_new_session=True,
    )
    assert child.stdin and child.stdout  # noqa: S101 - asked for above
    why, said, told = f"no answer within {limit:.0f} s", b"", False
    poll = select.poll()
    for fd in (child.stdout.fileno(), *wakes):
        poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + limit
    with child:
        try:
            with suppress(BrokenPipeError), child.stdin:
                child.stdin.write(msgspec.json.encode(order))
            while (left := deadline - time.monotonic()) > 0:
                if not told and limit - left >= SLOW:
                    told = True
                    slow()
                ready = dict(poll.poll(min(left, _TICK) * 1000))
                for fd in [fd for fd, what in ready.items() if what & select.POLLHUP and fd in wakes]:
                    poll.unregister(fd)  # our parent is gone, and a closed pipe is always ready
                if child.stdout.fileno() in ready:
                    if not (more := os.read(child.stdout.fileno(), _LONGEST)):
                        why = ""
                        break
                    said = (said + more)[-_LONGEST:]
                elif urgent():
                    why = "stopped on request"
                    break
        finally:
            child.kill()
    return _answers(order, said, why)


def _answers(order: Order, said: bytes, why: str) -> list[Sent]:
    """One per address; for one without an answer the reason is why we stopped waiting, or the child's last words."""
    found, words = {}, ""
    for line in said.splitlines():
        try:
            sent = msgspec.json.decode(line, type=Sent)
            found[sent.address] = sent
        except msgspec.DecodeError:
            words = line.decode(errors="replace")
    lost = why or words or "the program that sends notices has crashed"
    return [found.get(n, Sent(address=n, sent=False, detail=lost)) for n in range(len(order.addresses))]
