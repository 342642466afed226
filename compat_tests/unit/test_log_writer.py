from __future__ import annotations

import io
import logging
import threading

from fakeamqp.log_writer import LogWriter

SECONDS = 30.0


class Stuck(logging.StreamHandler):
    """Writes to memory, once it may."""

    def __init__(self) -> None:
        self.text = io.StringIO()
        super().__init__(self.text)
        self.began = threading.Event()
        self.may_go_on = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.began.set()
        self.may_go_on.wait(SECONDS)
        super().emit(record)


def logger_to(writer: LogWriter) -> logging.Logger:
    writer.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logger = logging.Logger("some")
    logger.addHandler(writer)
    return logger


def test_log_records_beyond_capacity_are_counted_without_blocking_caller() -> None:
    target = Stuck()
    writer = LogWriter(target, capacity=2)
    logger = logger_to(writer)
    logger.warning("number %d", 0)
    assert target.began.wait(SECONDS)
    for number in range(1, 6):
        logger.warning("number %d", number)
    assert writer.left_out == 3
    assert not writer.finish(0)
    target.may_go_on.set()
    assert writer.finish(SECONDS)
    assert target.text.getvalue().splitlines() == [
        "WARNING: number 0",
        "WARNING: 3 log records were left out: whatever reads this log did not keep up",
        "WARNING: number 1",
        "WARNING: number 2",
    ]


def test_logged_exception_is_written_with_one_traceback() -> None:
    target = Stuck()
    target.may_go_on.set()
    writer = LogWriter(target)
    try:
        raise ValueError("wrong")
    except ValueError:
        logger_to(writer).exception("a bug")
    assert writer.finish(SECONDS)
    text = target.text.getvalue()
    assert text.startswith("ERROR: a bug\nTraceback") and text.endswith("ValueError: wrong\n")
    assert text.count("Traceback") == 1
