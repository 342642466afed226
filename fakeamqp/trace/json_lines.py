"""Recordings: a trace as a file of JSON Lines.

The first line describes the recording: `format`, `version`, `clock` ("real", "virtual" or "wall"), `began`
(the wall time of instant 0, in seconds since 1970, or null), `dropped` (the number of earlier events that are
not in the file), `events` (the number that are, or null while a `Recording` writes them) and `redacted` (true
if passwords were replaced). Each further line is an event as `event_to_json` returns it, with its `number`:
its position in the file, from 0. A frame also has its payload in base64 as `octets`; `read` decodes the frame
from that.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from fakeamqp.dialects import default_protocol, protocol_names
from fakeamqp.errors import FakeAMQPError
from fakeamqp.timestamps import Timestamp
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.json_form import event_to_json
from fakeamqp.trace.truncation import Truncated, full_size

if TYPE_CHECKING:
    import os

    from fakeamqp.trace.timeline import Trace


class RecordingError(FakeAMQPError):
    """The file is not a recording, is damaged, or has a version that cannot be read."""

    __module__ = "fakeamqp.trace"


FORMAT = "fakeamqp trace"
VERSION = 2
"""Increases when a reader of the previous version could not read a new recording."""
READABLE = (1, VERSION)
"""The versions that can be read. In version 1 the header always has the number of events."""
_UNKNOWN = '"events": null'
_ROOM = " " * 16


def write(trace: Trace, path: str | os.PathLike[str], *, redact: bool) -> None:
    """Write `trace`; see `Trace.jsonl`."""
    with open(path, "wb") as file:
        file.write(
            header_line(trace.clock, trace.wall_time, trace.dropped, events=len(trace), redacted=redact)
        )
        for number, event in enumerate(trace.events):
            file.write(event_line(number, event, redact=redact))


def header_line(
    clock: str, began: float | None, dropped: int, *, events: int | None, redacted: bool = True
) -> bytes:
    """The first line. Without a number of events it has room for one; see `number_of_events`."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "clock": clock,
        "began": began,
        "dropped": dropped,
        "events": events,
        "redacted": redacted,
    }
    return json.dumps(header).replace(_UNKNOWN, _UNKNOWN + _ROOM).encode("ascii") + b"\n"


def number_of_events(header: bytes, events: int) -> tuple[int, bytes]:
    """Where in a first line to write the number of events, and what."""
    return header.index(_UNKNOWN.encode()), f'"events": {events}'.ljust(len(_UNKNOWN + _ROOM)).encode("ascii")


def event_line(number: int, event: Event, *, redact: bool = True) -> bytes:
    """The line of an event."""
    said = {"number": number, **event_to_json(event)}
    if isinstance(event, FrameEvent):
        octets = event.redacted.payload if redact else event.payload
        said["octets"] = base64.b64encode(octets).decode()
    return json.dumps(said, separators=(",", ":")).encode("ascii") + b"\n"


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Event]]:
    """The first line of a recording, and its events.

    The header of a file whose writer was killed, or still runs, has no number of events. It may end within a
    line, which is then left out.

    Raises:
        RecordingError: the file is not a recording, or a line is damaged; the text names the line.
        OSError: the file cannot be opened.
    """
    header: dict[str, Any] = {}
    events = []
    number = 0
    line = ""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        try:
            for number, line in enumerate(file, 1):
                if number == 1:
                    header = _header(line)
                else:
                    events.append(_event(json.loads(line)))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as problem:
            if header and header["events"] is None and not line.endswith("\n"):
                return header, events
            reason = (
                str(problem) if isinstance(problem, _WrongField) else f"{type(problem).__name__}: {problem}"
            )
            raise RecordingError(f"{path}: line {max(1, number)} is damaged ({reason:.200})") from problem
        except RecordingError as problem:
            raise RecordingError(f"{path}: {problem}") from None
    if not header:
        raise RecordingError(f"{path}: the file is empty, so it is not a recording")
    if header["events"] not in (None, len(events)):
        raise RecordingError(f"{path}: {header['events']} events are expected and {len(events)} were found")
    return header, events


def _header(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise RecordingError("this is not a recording of fakeamqp: the first line is not its header")
    if said.get("version") not in READABLE:
        raise RecordingError(
            f"the recording has version {said.get('version')!r}; versions up to {VERSION} can be read"
        )
    _check(said, _HEADER)
    return {name: said[name] for name in _HEADER}


_LATEST = 1e12
"""The last instant, in seconds: later ones have no date that a format could hold."""
_LARGEST_FRAME = 512 * 1024 * 1024
"""In bytes. What is cut off a frame is made up where it is needed, so a larger one could take all memory."""


def _is_instant(value: Any) -> bool:
    return type(value) in (int, float) and -_LATEST <= value <= _LATEST  # NaN is not.


class _Kind(NamedTuple):
    """What a value has to be: in words, and whether it is."""

    expected: str
    fits: Callable[[Any], bool]


_TEXT = _Kind("a string", lambda value: isinstance(value, str))
_TEXT_OR_NULL = _Kind("a string or null", lambda value: value is None or isinstance(value, str))
_COUNT = _Kind("a whole number, not negative", lambda value: type(value) is int and value >= 0)
_COUNT_OR_NULL = _Kind(
    "a whole number, not negative, or null", lambda value: value is None or _COUNT.fits(value)
)
_INSTANT = _Kind("a number of seconds, at most 1e12", _is_instant)
_INSTANT_OR_NULL = _Kind(
    "a number of seconds, at most 1e12, or null", lambda value: value is None or _is_instant(value)
)
_SHORT = _Kind("a whole number from 0 to 65535", lambda value: type(value) is int and 0 <= value <= 0xFFFF)
_SIZE = _Kind(
    f"a whole number from 0 to {_LARGEST_FRAME}, RabbitMQ's largest message",
    lambda value: type(value) is int and 0 <= value <= _LARGEST_FRAME,
)
_FLAG = _Kind("true or false", lambda value: isinstance(value, bool))
_OBJECT = _Kind("an object", lambda value: isinstance(value, dict))


def _one_of(*values: str) -> _Kind:
    return _Kind(f"one of {', '.join(values)}", lambda value: value in values)


_HEADER = {
    "clock": _one_of("real", "virtual", "wall"),
    "began": _INSTANT_OR_NULL,
    "dropped": _COUNT,
    "events": _COUNT_OR_NULL,
    "redacted": _FLAG,
}
_EVENTS: dict[str, dict[str, _Kind]] = {
    kind: {"time": _INSTANT, "connection": _TEXT_OR_NULL, "alias": _TEXT, **fields}
    for kind, fields in {
        "frame": {
            "direction": _one_of("received", "sent"),
            "type": _SHORT,
            "channel": _SHORT,
            "octets": _TEXT,
            "cut": _FLAG,
        },
        "connection": {"event": _TEXT, "detail": _TEXT},
        "model": {"event": _TEXT, "facts": _OBJECT},
    }.items()
}


def _check(said: dict[str, Any], fields: dict[str, _Kind]) -> None:
    """Raise _WrongField if a field of a line is missing, or has a wrong type."""
    for name, kind in fields.items():
        if name not in said:
            raise _WrongField(f"{name!r} is missing; it must be {kind.expected}")
        if not kind.fits(said[name]):
            raise _WrongField(f"{name!r} must be {kind.expected}, got {said[name]!r:.200}")


class _WrongField(ValueError):
    """A field of a line has a wrong type; the text says which, what it must be and what it is."""


def _event(said: Any) -> Event:
    if not isinstance(said, dict):
        raise _WrongField(f"a line must be an object, got {said!r:.200}")
    fields = _EVENTS.get(said.get("kind", "")) if isinstance(said.get("kind", ""), str) else None
    if fields is None:
        raise _WrongField(
            f"there is no event of kind {said.get('kind')!r:.200}; 'kind' must be one of {', '.join(_EVENTS)}"
        )
    _check(said, fields)
    if "real_time" in said:
        _check(said, {"real_time": _INSTANT})
    real_time = said.get("real_time")
    where = (float(said["time"]), said["connection"], said["alias"])
    kind = said["kind"]
    if kind == "frame":
        payload = base64.b64decode(said["octets"])
        if said["cut"]:
            _check(said, {"size": _SIZE})
            payload = Truncated.of(payload, said["size"])
        # Earlier recordings have no protocol where it is 0-9-1.
        protocol = said.get("protocol", default_protocol().name)
        if protocol not in protocol_names():
            names = ", ".join(protocol_names())
            raise _WrongField(f"'protocol' must be one of {names}, got {protocol!r:.200}")
        direction, frame_type, channel = said["direction"], said["type"], said["channel"]
        return FrameEvent(*where, direction, frame_type, channel, payload, protocol, real_time=real_time)
    if kind == "connection":
        return ConnectionEvent(*where, said["event"], said["detail"], real_time=real_time)
    facts = {name: _fact(name, each) for name, each in said["facts"].items()}
    return ModelEvent(*where, said["event"], facts, real_time=real_time)


def _fact(name: str, said: Any) -> Any:
    try:
        return value_from_json(said)
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise _WrongField(
            f"'facts': {name!r} must be a value as `fakeamqp.trace.json_form` writes it, got {said!r:.200} "
            f"({type(problem).__name__}: {problem})"
        ) from problem


# --- values: messages, outcomes and others --------------------------------------------------------------


@dataclass(frozen=True)
class LoadedPublisher:
    """The connection that published a message."""

    name: str


@dataclass(frozen=True)
class LoadedMessage:
    """A message. A long body is `Truncated`."""

    exchange: str
    routing_key: str
    body: bytes
    publisher: LoadedPublisher | None
    properties: Any
    number: int = 0

    def __eq__(self, other: object) -> bool:
        """Truncated bodies are equal only if their full sizes are."""
        if not isinstance(other, LoadedMessage):
            return NotImplemented
        return vars(self) == vars(other) and full_size(self.body) == full_size(other.body)


@dataclass(frozen=True)
class LoadedDelay:
    """An exchange delays a message by this number of seconds."""

    exchange: str
    seconds: float


@dataclass(frozen=True)
class LoadedOutcome:
    """The outcome of a publish: the names of the queues it was routed to, and of those that refused it."""

    text: str
    queues: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    unconsumed: bool = False
    delays: tuple[LoadedDelay, ...] = ()
    elsewhere: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class LoadedObject:
    """Any other object; `text` was its `str`."""

    text: str

    def __str__(self) -> str:
        return self.text


def value_from_json(said: Any) -> Any:
    """The value that `value_to_json` wrote as `said`, or KeyError, TypeError or ValueError."""
    if isinstance(said, list):
        return [value_from_json(item) for item in said]
    if not isinstance(said, dict):
        return said
    if len(said) == 1:
        ((mark, value),) = said.items()
        read = _READERS.get(mark)
        if read is not None:
            return read(value)
    return _table(said)


def _table(said: Any) -> dict[str, Any]:
    return {name: value_from_json(item) for name, item in said.items()}


def _check_types(said: Any, **kinds: type) -> None:
    """Raise KeyError or TypeError if a value is missing, or of another type; the text says which."""
    for name, kind in kinds.items():
        if type(said[name]) is not kind:
            raise TypeError(f"{name!r} must be of type {kind.__name__}, got {said[name]!r:.100}")


def _message(said: Any) -> LoadedMessage:
    _check_types(said, size=int)
    body = said["body"]
    body = body.encode() if isinstance(body, str) else base64.b64decode(body["base64"])
    size = said["size"]
    publisher = said["publisher"]
    return LoadedMessage(
        exchange=value_from_json(said["exchange"]),
        routing_key=value_from_json(said["routing_key"]),
        body=body if size == len(body) else Truncated.of(body, size),
        publisher=None if publisher is None else LoadedPublisher(publisher),
        properties=default_protocol().dialect.make_properties(**_table(said["properties"])),
        number=said.get("number", 0),
    )


def _outcome(said: Any) -> LoadedOutcome:
    _check_types(said, queues=list, refused=list, unconsumed=bool, delays=list)
    if not isinstance(value_from_json(said["text"]), str):
        raise TypeError(f"'text' must be a string, got {said['text']!r:.100}")
    return LoadedOutcome(
        text=value_from_json(said["text"]),
        queues=tuple(map(value_from_json, said["queues"])),
        refused=tuple(map(value_from_json, said["refused"])),
        unconsumed=said["unconsumed"],
        delays=tuple(
            LoadedDelay(value_from_json(each["exchange"]), value_from_json(each["seconds"]))
            for each in said["delays"]
        ),
        elsewhere=said.get("elsewhere") is True,
    )


_READERS: dict[str, Callable[[Any], Any]] = {
    "base64": base64.b64decode,
    "decimal": Decimal,
    "float": float,
    "message": _message,
    "object": lambda said: LoadedObject(value_from_json(said)),
    "octets": lambda said: base64.b64decode(said).decode("utf-8", "surrogateescape"),
    "outcome": _outcome,
    "table": _table,
    "timestamp": Timestamp,
    "uuid": UUID,
}
