"""The trace of a broker: all frames, connection events and model events, in order.

`Recorder` is installed as the broker's tap and stores what passes, undecoded. `Trace` is a snapshot of the
record: typed events, a timeline as text, checks, and files for other tools. Events are decoded when they are
read. `load` reads a recording from a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.trace.errors import PyarrowMissing, RecordingError
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.recorder import Recorder
from fakeamqp.trace.timeline import Trace

if TYPE_CHECKING:
    import os

__all__ = [
    "ConnectionEvent",
    "Event",
    "FrameEvent",
    "ModelEvent",
    "PyarrowMissing",
    "Recorder",
    "RecordingError",
    "Trace",
    "load",
]


def load(path: str | os.PathLike[str]) -> Trace:
    """Read a recording; see `Trace.load`."""
    return Trace.load(path)
