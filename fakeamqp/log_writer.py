"""Writes log records from a thread of its own, so that output that is not read does not stop the broker."""

from __future__ import annotations

import logging
import threading
from logging.handlers import QueueHandler
from queue import Full, Queue

#: How many log records may wait to be written; further ones are left out and counted.
CAPACITY = 1000

_LEFT_OUT = "%d log records were left out: whatever reads this log did not keep up"


class LogWriter(QueueHandler):
    """A handler that never blocks: it formats log records, and `target` writes them in a thread."""

    def __init__(self, target: logging.Handler, capacity: int = CAPACITY) -> None:
        self._waiting: Queue[logging.LogRecord | None] = Queue(capacity)
        super().__init__(self._waiting)
        self._target = target
        self._told = 0
        #: How many records were left out because too many waited.
        self.left_out: int = 0
        self._thread = threading.Thread(target=self._run, name="fakeamqp log", daemon=True)
        self._thread.start()

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self._waiting.put_nowait(record)
        except Full:
            self.left_out += 1

    def finish(self, patience: float) -> bool:
        """Write the records that wait, and end the thread; wait at most `patience` seconds.

        Returns whether all of them could be written. Otherwise the thread still waits in `target`, and so
        would everything else that uses it, such as the end of the interpreter.
        """
        try:
            self._waiting.put(None, timeout=patience)
        except Full:
            return False
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (record := self._waiting.get()) is not None:
            self._target.handle(record)
            self._tell_of_left_out()
        self._tell_of_left_out()

    def _tell_of_left_out(self) -> None:
        count = self.left_out - self._told
        if count:
            self._told += count
            record = logging.LogRecord(
                "fakeamqp", logging.WARNING, __file__, 0, _LEFT_OUT, (count,), exc_info=None
            )
            self._target.handle(self.prepare(record))
