"""What happened in a broker, in order: a recorder on the tap, and the record it keeps.

`Recorder` is installed as the broker's tap and stores what it is given, undecoded. `Trace` is the record at
one moment: typed events, a timeline as text, and files for other tools. Nothing is decoded before somebody
looks. `load` reads a recording back.
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
