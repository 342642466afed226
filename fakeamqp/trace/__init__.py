"""The trace of a broker: all frames, connection events and model events, in order.

`Recorder` is installed as the broker's tap and stores what passes, undecoded. `Trace` is a snapshot of the
record: typed events, a timeline as text, checks, and files for other tools. Events are decoded when they are
read. `load` reads a recording from a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use

if TYPE_CHECKING:
    import os

    from fakeamqp.trace.checks.checked import Checked as Checked
    from fakeamqp.trace.checks.finding import (
        CheckFailed as CheckFailed,
        Finding as Finding,
        Findings as Findings,
        TraceIncomplete as TraceIncomplete,
        UnknownCheck as UnknownCheck,
        UnknownRule as UnknownRule,
    )
    from fakeamqp.trace.events import (
        ConnectionEvent as ConnectionEvent,
        Event as Event,
        FrameEvent as FrameEvent,
        ModelEvent as ModelEvent,
    )
    from fakeamqp.trace.failure import FailedTest as FailedTest
    from fakeamqp.trace.json_lines import RecordingError as RecordingError
    from fakeamqp.trace.parquet import PyarrowMissing as PyarrowMissing
    from fakeamqp.trace.recorder import Recorder as Recorder
    from fakeamqp.trace.recording import Recording as Recording
    from fakeamqp.trace.timeline import Trace as Trace
else:
    __getattr__, __dir__ = on_first_use(__name__, ("load",))


def load(path: str | os.PathLike[str]) -> Trace:
    """Read a recording; see `Trace.load`."""
    from fakeamqp.trace.timeline import Trace

    return Trace.load(path)
