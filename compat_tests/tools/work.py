"""Counts the work of a call, so that a test can see how it grows without a clock.

The work is the number of lines that Python executes. Loops in C are not counted, with one exception: the
comparisons of a search for an object of the model in a list or deque, since these objects get a comparison
in Python while the work is counted. The garbage collector rests meanwhile: finalizers of objects that other
tests have left would count.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from fakeamqp.model.deliveries.delivery import Delivery
from fakeamqp.model.deliveries.subscription import Subscription
from fakeamqp.model.exchanges.exchange import Binding
from fakeamqp.model.queues.queue import Queue
from fakeamqp.model.queues.waiting import QueuedMessage

__all__ = ["work"]

_COMPARED: tuple[type[Any], ...] = (Binding, Delivery, Queue, QueuedMessage, Subscription)


def work(action: Callable[[], object]) -> int:
    """The number of lines that a call executes."""
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    with _collector_off(), _compared_in_python():
        sys.settrace(trace)
        try:
            action()
        finally:
            sys.settrace(before)
    return lines


@contextmanager
def _collector_off() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _compared_in_python() -> Iterator[None]:
    """Let the objects of the model compare by identity as before, but in Python."""

    def same(self: object, other: object) -> bool:
        return self is other

    for each in _COMPARED:
        each.__eq__ = same  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        for each in _COMPARED:
            del each.__eq__
