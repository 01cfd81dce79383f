"""The program that sends notices. Its own process: apprise is large and not ours, and services are slow.

It reads an `Order` from standard input and prints a line for each address that is done. Its parent ends it if that
takes too long.
"""

import logging
import random
import resource
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import requests
from apprise import Apprise, AppriseAsset, NotifyBase, NotifyType

from bydawn import __version__
from bydawn.core.notices import Notice, Order, Sent, is_plain

_MEMORY = 1 << 30  # bytes of address space; apprise reads whatever a service answers
_AT_ONCE = 8
_LATER = {408, 425, 429}  # and 5xx: another try may help
_TYPES = {"complete": NotifyType.SUCCESS, "limit": NotifyType.WARNING, "checkpoint": NotifyType.WARNING}
_NOT_KNOWN = "no service has such an address"


class _LastWords(logging.Handler):
    """apprise only answers yes or no; why is in its log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.of: dict[int, str] = {}  # thread

    def emit(self, record: logging.LogRecord) -> None:
        self.of[threading.get_ident()] = record.getMessage()


_WORDS = _LastWords()


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    logging.getLogger("apprise").addHandler(_WORDS)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for number in range(len(order.addresses)):
            pool.submit(_serve, order, number)


def _serve(order: Order, number: int) -> None:
    try:
        sent = _delivered(order, number)
    except BaseException as error:  # whatever a plugin or a lack of memory makes of it, the other addresses go on
        sent = Sent(address=number, sent=False, detail=type(error).__name__)
    sys.stdout.buffer.write(msgspec.json.encode(sent) + b"\n")
    sys.stdout.buffer.flush()


def _delivered(order: Order, number: int) -> Sent:
    address = order.addresses[number]
    # Redirects lead elsewhere, perhaps inward; apprise keeps nothing on disk.
    asset = AppriseAsset(app_id="bydawn", http_redirects=False, storage_mode="memory")
    text = order.texts[number] if order.texts and is_plain(address) else ""
    service = None if text else Apprise.instantiate(address, asset=asset)
    if service is None and not is_plain(address):
        return Sent(address=number, sent=False, detail=_WORDS.of.get(threading.get_ident(), _NOT_KNOWN))
    if order.notice is None:
        return Sent(address=number, sent=True, detail="")
    sent, again, detail, tries = False, True, "", 0
    while again and tries < order.tries:
        if tries:
            time.sleep(order.pause * 2 ** (tries - 1) * (1 + random.random()))  # noqa: S311 - only to spread them
        tries += 1
        sent, again, detail = _by(service, order.notice) if service else _post(address, order, text)
    return Sent(address=number, sent=sent, detail=detail, tries=tries)


def _by(service: NotifyBase, notice: Notice) -> tuple[bool, bool, str]:
    """Was it sent, may another try help, and what was said."""
    service.redirects = False  # whatever its address says
    kind = _TYPES.get(notice.event, NotifyType.FAILURE if notice.event != "test" else NotifyType.INFO)
    sent = service.notify(title=notice.title, body=notice.body, notify_type=kind)
    return bool(sent), not sent, "" if sent else _WORDS.of.get(threading.get_ident(), "the service refused it")


def _post(address: str, order: Order, text: str) -> tuple[bool, bool, str]:
    headers = {"Content-Type": "application/json", "User-Agent": f"bydawn/{__version__}"}
    times = order.connect, order.answer
    data = text.encode() or msgspec.json.encode(order.notice)
    try:
        # What it says beyond its status is not read: it may be endless. Errors of requests quote the address.
        with requests.post(address, data, headers=headers, timeout=times, allow_redirects=False, stream=True) as answer:
            code = answer.status_code
    except requests.Timeout:
        return False, True, "no answer in time"
    except requests.exceptions.SSLError:
        return False, False, "its certificate was not accepted"
    except requests.ConnectionError:
        return False, True, "no connection"
    except (requests.RequestException, ValueError):
        return False, False, "not a valid address"
    if 300 <= code < 400:
        return False, False, f"HTTP {code}: it redirects, and bydawn does not follow"
    return code < 300, code in _LATER or code >= 500, f"HTTP {code}"


if __name__ == "__main__":
    main()
