"""What happened in a broker, in order: a recorder on the tap, and the record it keeps.

`Recorder` is installed as the broker's tap and stores what it is given, undecoded. `Trace` is the record at
one moment: typed events, and a timeline as text. Nothing is decoded before somebody looks.
"""

from __future__ import annotations

from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.recorder import Recorder
from fakeamqp.trace.timeline import Trace

__all__ = ["ConnectionEvent", "Event", "FrameEvent", "ModelEvent", "Recorder", "Trace"]
