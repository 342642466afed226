"""Recordings that are written while a proxy runs: each event is a line of a file, as it happens.

The tap only collects entries, as a recorder does. Once per turn of the engine, before its output is sent,
they become lines and are written. So whatever a client or the broker has got through the proxy is in the
file, even if the process is killed then. A crash of the machine can lose what the system has not put on the
disk yet.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from io import FileIO
from types import SimpleNamespace
from typing import Any

from fakeamqp.dialects import default_protocol, dialect_named
from fakeamqp.errors import BrokerError, near_match
from fakeamqp.timestamps import Timestamp
from fakeamqp.trace.events import Event, FrameEvent, ModelEvent
from fakeamqp.trace.json_form import PROPERTIES
from fakeamqp.trace.json_lines import event_line, header_line, number_of_events
from fakeamqp.trace.recorder import Recorder
from fakeamqp.trace.truncation import Truncated, full_size

_log = logging.getLogger("fakeamqp")

FILE_SIZE = 64 * 1024 * 1024
FILES = 8
_HEADERS = "headers"
_BODY = "body"


class Recording:
    """Where and how a proxy records what passes, event by event: `Proxy(..., record=Recording(...))`.

    The file is like one that `Trace.jsonl` writes. It has all events, however few the trace keeps, and whole
    frames. Passwords are replaced by asterisks.

    If a file cannot be written, the recording ends with the last whole line: the log has an error, `error`
    the exception, and the proxy goes on.

    Args:
        path: of the file. A file that is there moves to `path.1`, as at the end of a full one.
        redact: fields of messages that are replaced before they are written: "body", "headers" for all
            headers, "headers.NAME" for one, in upper or lower case, or a property, such as "user_id". Their
            sizes stay; texts become asterisks, numbers zeros.
        file_size: bytes after which a new file begins. The full one moves to `path.1`, that to `path.2`, ...
        files: the number of files that are kept, the current one included.

    Raises:
        BrokerError: there is no such field, or a number is not positive.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        redact: Iterable[str] = (),
        file_size: int = FILE_SIZE,
        files: int = FILES,
    ) -> None:
        self.path: str = os.fspath(path)
        self.redact: frozenset[str] = frozenset((redact,) if isinstance(redact, str) else redact)
        self.file_size: int = file_size
        self.files: int = files
        self.error: Exception | None = None
        """Why the file could not be written any further; None while all is well."""
        known = (_BODY, _HEADERS, *default_protocol().dialect.property_names)
        for name in sorted(self.redact):
            if name not in known and not name.startswith(f"{_HEADERS}."):
                raise BrokerError(
                    f"a recording cannot redact {name!r}: there are 'body', 'headers', 'headers.NAME' and "
                    f"the properties of messages{near_match(name, known)}"
                )
        for what, number in (("file_size", file_size), ("files", files)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise BrokerError(f"{what}={number!r} of a recording must be a whole number above 0")

    def __repr__(self) -> str:
        return f"<Recording {self.path!r}{', ended by an error' if self.error else ''}>"


class RecordingTap:
    """A tap that writes a recording, and passes all on to the recorder of the trace.

    `now` and `time` are clocks, as for a `Recorder`.
    """

    confirms_singly = False
    intercepts = True
    """A message is written with its delivery, so the proxy waits for the whole of it."""

    def __init__(
        self,
        recording: Recording,
        now: Callable[[], float],
        time: Callable[[], float],
        following: Recorder | None,
    ) -> None:
        self._recording = recording
        self._following = following
        self._recorder = Recorder(now, sys.maxsize, time=time, whole=True)
        self._file: FileIO | None = None
        self._prepared = False
        self._lines = bytearray()
        self._size = 0
        """Bytes of the file that are whole lines, and written."""
        self._number = 0
        """The number of the next event in the file."""
        self._earlier = 0
        """Events of earlier files."""
        self._header = b""
        self._written = 0
        """Events of the file that are written."""
        self._latest = 0.0

    # --- the tap --------------------------------------------------------------------------------------

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> bool | None:
        self._recorder.received(connection, frame_type, channel, payload)
        if self._following is not None:
            self._following.received(connection, frame_type, channel, payload)
        return None

    def sending(self, connection: Any, octets: bytes) -> bytes:
        self._recorder.sending(connection, octets)
        return octets if self._following is None else self._following.sending(connection, octets)

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        self._recorder.connection(connection, event, detail)
        if self._following is not None:
            self._following.connection(connection, event, detail)

    def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
        self._recorder.event(event, connection, message, *values)
        if self._following is not None:
            self._following.event(event, connection, message, *values)

    # --- the file -------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Check that a file can be begun, without one. Events are kept until `start`. Raises OSError."""
        path = self._recording.path
        new = not os.path.exists(path)
        FileIO(path, "a").close()
        if new:
            os.remove(path)
        self._recording.error = None
        self._prepared = True

    def start(self) -> None:
        """Begin a file. Raises OSError."""
        self._prepared = False
        self._begin()

    def flush(self) -> None:
        """Write what has happened. It never raises."""
        if self._prepared:
            return
        entries = self._recorder.take()
        if not entries or self._file is None:
            return
        try:
            for event in self._recorder.events_of(entries):
                self._add(event)
            self._write()
        except Exception as error:
            self._fail(error)

    def clear(self) -> None:
        """The trace begins anew, and so does the file."""
        self.flush()
        self._recorder.clear()
        self._earlier = self._number = 0
        self._latest = 0.0
        if self._file is not None:
            try:
                self._begin()
            except OSError as error:
                self._fail(error)

    def stop(self) -> None:
        """Write the rest and close the file. Idempotent."""
        self._prepared = False
        self.flush()
        try:
            self._close()
        except OSError as error:
            self._fail(error)

    def _add(self, event: Event) -> None:
        # The time of a frame is that of its arrival, which can be before the end of the previous turn.
        self._latest = max(self._latest, event.time)
        event = without(replace(event, time=self._latest), self._recording.redact)
        line = event_line(self._number, event)
        if self._number and self._size + len(self._lines) + len(line) > self._recording.file_size:
            self._write()
            self._begin()
            line = event_line(self._number, event)
        self._lines += line
        self._number += 1

    def _begin(self) -> None:
        self._close()
        path = self._recording.path
        with suppress(FileNotFoundError):
            if os.path.getsize(path):
                names = [path, *(f"{path}.{number}" for number in range(1, self._recording.files))]
                for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
                    with suppress(FileNotFoundError):
                        os.replace(newer, older)
        self._earlier += self._number
        self._number = self._size = 0
        self._file = FileIO(path, "w")
        trace = self._recorder.trace()
        self._header = header_line(trace.clock, trace.wall_time, self._earlier, events=None)
        self._lines += self._header
        self._write()

    def _write(self) -> None:
        assert self._file is not None
        octets = left = bytes(self._lines)
        self._lines.clear()
        while left:
            left = left[self._file.write(left) :]
        self._size += len(octets)
        self._written = self._number

    def _close(self) -> None:
        """Say in the first line how many events there are."""
        file, self._file = self._file, None
        if file is not None:
            with file:
                if self._size:
                    place, said = number_of_events(self._header, self._written)
                    file.seek(place)
                    file.write(said)

    def _fail(self, error: Exception) -> None:
        """Leave the file with its whole lines."""
        self._recording.error = error
        _log.error("the recording %s ends here, and the proxy goes on: %s", self._recording.path, error)
        self._lines.clear()
        with suppress(OSError):
            if self._file is not None:
                self._file.truncate(self._size)
            self._close()


# --- redaction ------------------------------------------------------------------------------------------


def without(event: Event, fields: frozenset[str]) -> Event:
    """The event with these fields of messages replaced by values of the same size; see `Recording`."""
    if not fields:
        return event
    if isinstance(event, FrameEvent):
        payload = dialect_named(event.protocol).hidden(event.type, event.payload, fields)
        return replace(event, payload=payload)
    if isinstance(event, ModelEvent):
        facts = {
            name: _hidden_message(value, fields) if hasattr(value, "routing_key") else value
            for name, value in event.facts.items()
        }
        return replace(event, facts=facts)
    return event


def _hidden_message(message: Any, fields: frozenset[str]) -> Any:
    """A message with the attributes that a trace shows."""
    body, properties = message.body, message.properties
    if _BODY in fields:
        body = Truncated.of(b"*" * len(body), full_size(body))
    values = {name: getattr(properties, name, None) for name in PROPERTIES}
    names = {each.partition(".")[2].casefold() for each in fields if each.startswith(f"{_HEADERS}.")}
    for name, value in values.items():
        if name in fields:
            values[name] = _hidden(value)
        elif name == _HEADERS and names and value:
            values[name] = {
                key: _hidden(item) if key.casefold() in names else item for key, item in value.items()
            }
    return SimpleNamespace(
        number=getattr(message, "number", 0),
        exchange=message.exchange,
        routing_key=message.routing_key,
        body=body,
        publisher=getattr(message, "publisher", None),
        properties=SimpleNamespace(**values),
    )


def _hidden(value: Any) -> Any:
    """The value as it is read from a frame in which its bytes were replaced."""
    if isinstance(value, str):
        return "*" * len(value.encode("utf-8", "surrogateescape"))
    if isinstance(value, bytes):
        return b"*" * len(value)
    if isinstance(value, Mapping):
        return {name: _hidden(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    if isinstance(value, Timestamp):
        return Timestamp(0)
    if isinstance(value, (bool, float, Decimal)):
        return type(value)(0)
    return value if value is None else 0
