"""The trace: typed events, and views of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.lazy import raise_if_renamed
from fakeamqp.model.events import EVENTS
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent, publisher_name
from fakeamqp.trace.folding import FoldedLine, fold, is_fault, latest
from fakeamqp.trace.truncation import frames_in

if TYPE_CHECKING:
    import os

    from typing_extensions import Self

    from fakeamqp.trace.checks import Allow, Findings
    from fakeamqp.trace.failure import Failure

UNFINISHED = "the recording has no end: the proxy that wrote it was killed, or still runs"
_ARROWS = {"received": "->", "sent": "<-"}


class Trace:
    """An immutable snapshot of a recorder.

    Args:
        entries: as the recorder packed them.
        dropped: the number of older entries that are no longer kept.
        began: the instant that times are counted from.
        capacity: the number of latest events to keep, or None for all events of the entries.
        aliases: short names of connections by their names, for those that no entry introduces.
        wall_time: the wall time of that instant, in seconds since 1970, or None if unknown.
        clock: the mode of the clock: "real", "virtual" or "wall".
        real_times: of the entries, in seconds since the trace began; none if the clock is real.
        faults: the latest of the entries about faults that are no longer kept, with their real times or None.
    """

    if not TYPE_CHECKING:
        __getattr__ = raise_if_renamed

    __slots__ = (
        "_aliases",
        "_began",
        "_capacity",
        "_dropped",
        "_entries",
        "_events",
        "_faults",
        "_real_times",
        "clock",
        "unfinished",
        "wall_time",
    )

    def __init__(
        self,
        entries: tuple[Packed, ...],
        dropped: int = 0,
        began: float = 0.0,
        *,
        capacity: int | None = None,
        aliases: Mapping[str, str] | None = None,
        wall_time: float | None = None,
        clock: str = "real",
        real_times: Iterable[float] = (),
        faults: Iterable[tuple[Packed, float | None]] = (),
    ) -> None:
        self._entries = entries
        self._real_times = real_times
        self._began = began
        self._capacity = capacity
        self._aliases = aliases or {}
        self._events: tuple[Event, ...] | None = None
        self._dropped = dropped
        self._faults: list[Event] = [
            event
            for entry, real_time in faults
            for event in events_of((entry,), began, self._aliases, () if real_time is None else (real_time,))
        ]
        """The latest faults among the events that are no longer kept."""
        self.wall_time: float | None = wall_time
        self.clock: str = clock
        self.unfinished: bool = False
        """True if it was loaded from a recording that was not closed, so that events can be missing."""

    @classmethod
    def of(
        cls,
        events: Iterable[Event],
        dropped: int = 0,
        *,
        wall_time: float | None = None,
        clock: str = "real",
    ) -> Self:
        """A trace of these events, such as some events of another trace."""
        trace = cls((), dropped, wall_time=wall_time, clock=clock)
        trace._events = tuple(events)
        return trace

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `jsonl` or a `Recording` wrote.

        Messages and outcomes become objects with the same attributes. If the proxy that wrote the file was
        killed, or still runs, `unfinished` is True, and a last line that is not whole is left out.

        Raises:
            RecordingError: the file is not a recording, or it is damaged; the text names the line.
            OSError: the file cannot be opened.
        """
        from fakeamqp.trace.json_lines import read

        header, events = read(path)
        trace = cls.of(events, header["dropped"], wall_time=header["began"], clock=header["clock"])
        trace.unfinished = header["events"] is None
        return trace

    def __len__(self) -> int:
        """The number of events."""
        return len(self.events)

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in order."""
        if self._events is None:
            events = tuple(events_of(self._entries, self._began, self._aliases, self._real_times))
            more = 0 if self._capacity is None else max(0, len(events) - self._capacity)
            self._events = events[more:]
            self._faults += (event for event in events[:more] if is_fault(event))
            self._dropped += more
            self._entries = ()
        return self._events

    @property
    def dropped(self) -> int:
        """The least number of older events that are no longer kept: frames sent in one piece count as one."""
        # The events must be made first: only then it is known how many of them exceed the capacity.
        _ = self.events
        return self._dropped

    def jsonl(self, path: str | os.PathLike[str], *, redact: bool = True) -> None:
        """Write a recording: a file of JSON Lines, which `load` and `fakeamqp replay` read.

        The schema is in `fakeamqp.trace.json_lines` and `fakeamqp.trace.json_form`. A recording has the
        bodies of messages.

        Args:
            path: of the file; an existing file is replaced.
            redact: replace passwords by asterisks. With False the file has what clients sent.

        Raises:
            OSError: the file cannot be written.
        """
        from fakeamqp.trace.json_lines import write

        write(self, path, redact=redact)

    def pcapng(self, path: str | os.PathLike[str], *, redact: bool = True) -> None:
        """Write a capture file for Wireshark: one TCP stream per connection, dissected as AMQP.

        Connection events and model events are comments on the packets. The broker's port is written as 5672,
        so that Wireshark chooses the right dissector. Frames that went over TLS are written decrypted.

        Args:
            path: of the file; an existing file is replaced.
            redact: replace passwords by asterisks.

        Raises:
            OSError: the file cannot be written.
        """
        from fakeamqp.trace.pcapng import write

        write(self, path, redact=redact)

    def parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file with one row per event; `fakeamqp.trace.parquet` describes the columns.

        The file has the bodies of messages and no passwords. Needs pyarrow (extra `trace`).

        Args:
            path: of the file; an existing file is replaced.

        Raises:
            PyarrowMissing: pyarrow is not installed.
            OSError: the file cannot be written.
        """
        from fakeamqp.trace.parquet import write

        write(self, path)

    def html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "",
        failure: Failure | None = None,
    ) -> str:
        """A self-contained HTML page: a sequence diagram with filter and search. It loads no other resource.

        `page.html#e123` opens the page at `events[123]`, `page.html#message=4` the story of a message: what
        happened to the message with this number in the facts of events. The page has the first 16 KiB of
        each body and no passwords.

        Args:
            path: also write the page to this file; an existing file is replaced.
            title: of the page, such as the name of a test.
            failure: of a test; the page opens there, with the assertion and the source beside the events.

        Raises:
            OSError: the file cannot be written.
        """
        from fakeamqp.trace.html import page

        text = page(self.events, self.dropped, title, self.clock, failure)
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        return text

    def findings(self, *names: str, allow: Allow = (), at_end: bool = False) -> Findings:
        """Violations by clients or by the broker, in the order of the events; equal to () if none.

        The rules of "conformance" are those of 0-9-1, and connections with another protocol are not checked;
        the other checks are about all protocols. Events that are no longer in the trace cause no findings.

        Args:
            names: the checks to run. "conformance" checks rules of the protocol (tags, settlements, confirms,
                closed channels, contents), "fifo" the order of first deliveries, "prefetch" the limits of
                basic.qos, "lost" that no confirmed message is lost, "duplicates" that no message is delivered
                twice unless as redelivered, "answers" that no request is answered twice. These hold at any
                moment, and run without names. Two more hold once all is done: "unacked" that no client holds
                a message, and "unanswered" that no request waits for its answer.
            allow: rules, or reasons for the loss of a message, that are no findings: `"expired"`, a list, or
                a mapping to patterns of queues, as in `{"expired": "cache.*"}`. These are allowed anyway:
                "rejected", "purged", "deleted", "retention", "local" and "replaced".
            at_end: nothing more will happen; without names, run all checks.

        Raises:
            UnknownCheck: there is no check of this name.
            UnknownRule: `allow` names no rule and no reason.
        """
        from fakeamqp.trace.checks import check

        return check(self.events, *names, allow=allow, at_end=at_end, dropped=self.dropped)

    def expect_no_findings(self, *names: str, allow: Allow = (), at_end: bool = False) -> None:
        """Assert that `findings` finds nothing; the arguments and other errors are the same.

        Raises:
            CheckFailed: there are findings; the text shows the events that led to each.
        """
        from fakeamqp.trace.checks.finding import CheckFailed

        found = self.findings(*names, allow=allow, at_end=at_end)
        if found:
            raise CheckFailed(found)

    def timeline(self, limit: int | None = None, connection: str | None = None) -> str:
        """The events in order, a line each: time, connection, direction, channel, text.

        `->` marks frames that the broker received, `<-` frames that it sent. Times are seconds since the
        trace began; if the broker has a virtual clock, real seconds are in brackets where they differ. A
        method is one line with its content, as are heartbeats in a row.

        Args:
            limit: show only this number of latest lines, and of the latest faults before them. Of the faults
                that the trace no longer keeps among its events, the latest 100 are shown.
            connection: show only events of this connection, by its name or its short name.
        """
        events, faults = list(self.events), self._faults
        if connection is not None:
            events = [event for event in events if connection in (event.connection, event.alias)]
            faults = [event for event in faults if connection in (event.connection, event.alias)]
        shown = list(latest(fold(events), limit))
        most = len(faults) if limit is None else limit
        shown[:0] = earlier = fold(faults[max(0, len(faults) - most) :])
        but = ", except faults" if earlier else ""
        notes = [f"({self.dropped} earlier events are no longer kept{but})"] if self.dropped else []
        if shown and isinstance(shown[0], int):
            notes.append(f"({shown.pop(0)} earlier events left out)")
        told = [line for line in shown if isinstance(line, FoldedLine)]
        with_real = any(map(_differs, told))
        end = [f"({UNFINISHED})"] if self.unfinished else []
        return "\n".join((*notes, *_introductions(told), *_lines(shown, with_real), *end))

    def __repr__(self) -> str:
        older = f" and {self.dropped} that are no longer kept" if self.dropped else ""
        return f"<Trace of {len(self)} events{older}>"


# --- lines --------------------------------------------------------------------------------------------


def _introductions(lines: list[FoldedLine]) -> Iterator[str]:
    """The names of connections whose "connected" line is not shown."""
    told = set()
    for line in lines:
        event = line.first
        if not event.alias or event.alias in told:
            continue
        told.add(event.alias)
        if not (isinstance(event, ConnectionEvent) and event.event == "connected"):
            yield f"({event.alias} is {event.connection})"


def _lines(shown: list[FoldedLine | int], with_real: bool) -> Iterator[str]:
    width = max((len(line.first.alias) for line in shown if isinstance(line, FoldedLine)), default=0)
    for line in shown:
        if isinstance(line, FoldedLine):
            real_time = f" [real {line.first.real_time:8.3f}]" if _differs(line) else " " * 16
            yield line_of(line.first, width, line.text, real_time if with_real else "")
        else:
            yield f"({line} events left out)"


def _differs(line: FoldedLine) -> bool:
    """Whether real time, as shown, differs from the time of the broker's clock."""
    event = line.first
    return event.real_time is not None and f"{event.real_time:.3f}" != f"{event.time:.3f}"


def line_of(event: Event, width: int = 0, text: str | None = None, real_time: str = "") -> str:
    """The line of one event, or of the first of several.

    `width` is that of the short names of connections, `text` that of the line, `real_time` the second column.
    """
    start = f"{event.time:9.3f}{real_time}  {event.alias:<{width}}"
    text = event.text if text is None else text
    if isinstance(event, FrameEvent):
        return f"{start} {_ARROWS[event.direction]} {event.channel:<4} {text}"
    mark = "--" if isinstance(event, ConnectionEvent) else "=="
    return f"{start} {mark}      {text}"


# --- entries ------------------------------------------------------------------------------------------

Packed: TypeAlias = "tuple[Any, ...]"
"""An entry, as a recorder keeps it: its kind, its instant on the broker's clock in seconds, the peer, and

- for the kind "frame": direction, type, channel and payload of the frame
- for "frames sent": the octets of whole frames that the broker sent in one piece
- for "connection": the event of the connection, and its detail
- for an event of the model, whose name is the kind: the message or None, and a tuple of the other values that
  `fakeamqp.model.events` declares. The peer is that of the consumer, or None.

A plain tuple takes a fifth of the time that a named tuple takes (0.1 and 0.5 microseconds on CPython 3.11),
and most entries are dropped before a trace is read.
"""

_ROUTED = frozenset(("published", "dead-lettered", "delay over"))
"""Events about a message that an exchange has routed."""


def events_of(
    entries: Iterable[Packed],
    began: float,
    aliases: Mapping[str, str],
    real_times: Iterable[float] = (),
) -> Iterator[Event]:
    """The events that entries stand for.

    Time never runs backwards. Of frames that arrived together, the first has the instant of their arrival,
    the others have the instants at which the broker handled them. The arguments are those of `Trace`.
    """
    times = iter(real_times)
    known = dict(aliases)
    latest = began
    for entry in entries:
        latest = max(latest, entry[1])
        real = next(times, None)
        events = _events(entry, latest - began, known)
        yield from events if real is None else (replace(event, real_time=real) for event in events)


def _events(entry: Packed, time: float, aliases: dict[str, str]) -> Iterator[Event]:
    """The events of one entry. If it has a peer, its short name is known from here on."""
    kind, _, peer, *values = entry
    if peer is None:
        yield from _model_events(kind, time, aliases, *values)
        return
    name, alias, protocol = peer
    aliases[name] = alias
    if kind == "frame":
        direction, frame_type, channel, payload = values
        yield FrameEvent(time, name, alias, direction, frame_type, channel, payload, protocol)
    elif kind == "frames sent":
        for frame_type, channel, payload in frames_in(values[0], protocol):
            yield FrameEvent(time, name, alias, "sent", frame_type, channel, payload, protocol)
    elif kind == "connection":
        event, detail = values
        yield ConnectionEvent(time, name, alias, event, detail)
    else:
        message, others = values
        yield ModelEvent(time, name, alias, kind, EVENTS[kind].facts(name, message, others))


def _model_events(
    kind: str, time: float, aliases: dict[str, str], message: object, values: tuple[object, ...]
) -> Iterator[ModelEvent]:
    """An event of the connection that the facts name, or else of the publisher's.

    For a message that was routed, "enqueued" follows for each queue that accepted it.
    """
    facts = EVENTS[kind].facts(None, message, values)
    name = facts.get("connection")
    connection = name if isinstance(name, str) else publisher_name(facts)
    alias = aliases.get(connection or "", "")
    yield ModelEvent(time, connection, alias, kind, facts)
    outcome = facts.get("outcome")
    if kind not in _ROUTED or getattr(outcome, "unconsumed", False):
        return
    # Queues that it reaches late have an event of their own.
    others = (*getattr(outcome, "refused", ()), *getattr(outcome, "late", ()))
    for queue in getattr(outcome, "queues", ()):
        if queue not in others:
            enqueued = {"message": message, "queue": queue.name}
            if "virtual_host" in facts:
                enqueued["virtual_host"] = facts["virtual_host"]
            yield ModelEvent(time, connection, alias, "enqueued", enqueued)
