"""The command `trace`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from fakeamqp.cli.options import UsageError, did_you_mean, number, recording

if TYPE_CHECKING:
    from fakeamqp.trace import Trace


def add(commands: Any) -> None:
    """Add the command."""
    trace = commands.add_parser(
        "trace",
        help="show or convert a recording",
        description="Show a recording, written by trace.jsonl(FILE), as a timeline; or convert it to the "
        "formats that the options name.",
    )
    trace.add_argument("file", metavar="FILE", help="the recording (JSON Lines)")
    trace.add_argument(
        "--connection", metavar="NAME", help="only this connection, by its name or its short name, such as c1"
    )
    trace.add_argument(
        "--limit",
        type=partial(number, what="a number of events"),
        metavar="COUNT",
        help="only the latest COUNT lines (of other formats: events)",
    )
    trace.add_argument("--html", metavar="OUT", help="write an HTML page")
    trace.add_argument("--pcapng", metavar="OUT", help="write a packet capture for Wireshark")
    trace.add_argument("--parquet", metavar="OUT", help="write a Parquet table (needs fakeamqp[trace])")
    trace.set_defaults(run=_trace)


def _trace(options: argparse.Namespace) -> int:
    trace = recording(options.file)
    if options.connection is not None:
        names = dict.fromkeys(name for event in trace.events for name in (event.alias, event.connection))
        if options.connection not in names:
            known = [name for name in names if name]
            hint = did_you_mean(options.connection, known) if known else "; it has no connections"
            raise UsageError(f"the recording has no connection {options.connection!r}{hint}")
    written = False
    for form in ("html", "pcapng", "parquet"):
        path = getattr(options, form)
        if path is not None:
            getattr(_part(trace, options), form)(path)
            print(f"wrote {path}")
            written = True
    if not written:
        print(trace.timeline(limit=options.limit, connection=options.connection))
    return 0


def _part(trace: Trace, options: argparse.Namespace) -> Trace:
    """The part of a trace that the options select."""
    events = [
        event
        for event in trace.events
        if options.connection is None or options.connection in (event.alias, event.connection)
    ]
    dropped = trace.dropped
    if options.limit is not None:
        dropped += max(0, len(events) - options.limit)
        events = events[-options.limit :]
    return trace.of(events, dropped, wall_time=trace.wall_time, clock=trace.clock)
