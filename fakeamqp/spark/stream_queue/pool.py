"""Connections that outlive a task. Spark uses a Python worker for many tasks, one after the other.

A task of a small range takes about as long as opening its connection. An idle connection answers no
heartbeats, so it is closed before one is due, by a thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from fakeamqp.spark.connection import Link
from fakeamqp.spark.options import ConnectionOptions

# Idle connections of a process, and the seconds until they are closed.
_MOST = 4
_IDLE = 5.0


class _Idle(NamedTuple):
    options: ConnectionOptions
    link: Link
    since: float


_idle: list[_Idle] = []
_lock = threading.Lock()
_closer: threading.Thread | None = None


@contextmanager
def lend(options: ConnectionOptions) -> Iterator[Link]:
    """A connection for the block, which is kept for the next one unless an exception leaves the block.

    Raises:
        BrokerUnreachable: no connection can be opened.
    """
    link = _take(options)
    if link is None:
        link = Link(options)
        link.open()
    try:
        yield link
    except BaseException:
        link.close()
        raise
    _keep(_Idle(options, link, time.monotonic()))


def close_idle(longer_than: float = 0.0) -> None:
    """Close connections that nothing has used for some seconds."""
    before = time.monotonic() - longer_than
    with _lock:
        old = [each for each in _idle if each.since <= before]
        _idle[:] = [each for each in _idle if each.since > before]
    for each in old:
        each.link.close()


def _take(options: ConnectionOptions) -> Link | None:
    while True:
        with _lock:
            fitting = [each for each in _idle if each.options == options]
            if not fitting:
                return None
            _idle.remove(fitting[-1])
        link = fitting[-1].link
        link.turn(0.0)
        if link.lost is None:
            return link
        link.close()


def _keep(idle: _Idle) -> None:
    global _closer
    with _lock:
        _idle.append(idle)
        surplus = _idle[:-_MOST]
        del _idle[:-_MOST]
        if _closer is None:
            _closer = threading.Thread(target=_close_when_idle, name="amqp pool", daemon=True)
            _closer.start()
    for each in surplus:
        each.link.close()


def _close_when_idle() -> None:
    global _closer
    while True:
        with _lock:
            if not _idle:
                _closer = None
                return
            due = min(each.since for each in _idle) + _IDLE
        time.sleep(max(due - time.monotonic(), 0.0))
        close_idle(_IDLE)
