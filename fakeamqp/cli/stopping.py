"""Running until a signal comes, with a log that cannot block."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG_PATIENCE = 2.0
"""Seconds that a command, once it has stopped, waits for its log to be read."""


@contextmanager
def until_stopped() -> Iterator[StopSignals]:
    """A context for what runs until a signal. Its log goes to standard error, and never blocks.

    If the log cannot be written at the end, the process exits.
    """
    import logging

    from fakeamqp.log_writer import LogWriter

    log = LogWriter(logging.StreamHandler())
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", handlers=[log])
    code = 1
    try:
        with StopSignals() as signals:
            yield signals
        code = 0
    finally:
        if not log.finish(_LOG_PATIENCE):
            # Standard error is a pipe that is not read. The interpreter would wait for it at its end.
            os._exit(code)


class StopSignals:
    """Waits for SIGINT, SIGTERM or Windows' SIGBREAK, also if the signal arrives early.

    The signals write to a socket instead of raising, so that none interrupts the broker while it starts or
    stops. After the first signal the process ends, and further ones are ignored.
    """

    def __enter__(self) -> StopSignals:
        import signal
        import socket

        self._received = False
        self._signal = signal
        self._receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGBREAK")]
        self._former = {number: signal.signal(number, lambda *_: None) for number in numbers if number}
        self._former_descriptor = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        return self

    def wait(self) -> None:
        self._receiver.recv(1)
        self._received = True

    def __exit__(self, *_: object) -> None:
        self._signal.set_wakeup_fd(self._former_descriptor)
        for number, handler in self._former.items():
            # While the interpreter shuts down, an ignored signal stays ignored; a handler would be lost.
            self._signal.signal(number, self._signal.SIG_IGN if self._received else handler)
        self._receiver.close()
        self._sender.close()
