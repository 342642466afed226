"""The data of the page: one row per event, and one row for a method with all of its content.

The form is compact, because a page may have many thousands of rows. Rows are lists. Values that repeat are in
the pool once, and rows refer to them by number.

| index | value |
|---|---|
| 0 | numbers of its events; the first one identifies the row |
| 1 | time in seconds |
| 2 | number of the connection, or -1 |
| 3 | number of the kind in `KINDS` |
| 4 | direction: 0 received by the broker, 1 sent by it, -1 none |
| 5 | channel, or -1 |
| 6 | name: pool |
| 7 | the rest of its line: pool |
| 8 | names of its queues: pool |
| 9 | 1 for a problem, otherwise 0 |
| 10 | fields or facts: pool |
| 11 | properties: pool, or -1 |
| 12 | body: pool, or -1 |
| 13 | bytes in the body, or -1 without a body |

Fields are lists of (depth, name, value, type); types are "s" text, "n" number, "b" bit, "x" bytes in hex,
"t" a table or array whose fields follow one level deeper, "z" void, "h" hidden, "o" anything else. A body is
(encoding, text), where the encoding is "text" or "base64".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any, ClassVar, TypeAlias

from fakeamqp.timestamps import Timestamp
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.frame_readers import RedactedValue, frame_reader
from fakeamqp.trace.html.queues import Queues, queues_of
from fakeamqp.trace.rendering import one_line, short
from fakeamqp.trace.truncation import full_size

__all__ = ["Rows"]

#: depth, name, value, type
Field: TypeAlias = tuple[int, str, str, str]

_METHOD, _FRAME, _HEARTBEAT, _MODEL, _CONNECTION, _FAULT = range(6)
_MOST_BODY = 16_384
_MOST_TEXT = 4096
_MOST_FIELDS = 500
_DIRECTIONS = {"received": 0, "sent": 1}
_BAD_CONNECTION_EVENTS = frozenset(("aborted", "lost", "blocked", "malformed input", "login refused"))
_BAD_MODEL_EVENTS = frozenset(("dropped", "returned"))
_REFUSALS = frozenset(
    ("basic.nack", "basic.return", "basic.cancel", "connection.blocked", "message.reject", "message.stop")
)
"""Methods that the broker sends only in case of a problem."""


class _Content:
    """The incomplete content of a method: the row of the method, and the rest that its headers announce."""

    __slots__ = ("has_header", "kept", "levels", "row", "whole")

    def __init__(self, row: list[Any]) -> None:
        self.row = row
        self.has_header = False
        self.levels: list[list[int]] = []
        """Missing nested contents and missing octets: of the content, of the one inside it, and so on."""
        self.kept = bytearray()
        self.whole = True

    def announce(self, within: int, size: int) -> None:
        """Add a header, of the content or of the next one inside it."""
        if self.levels:
            self.levels[-1][0] -= 1
        self.levels.append([within, size])

    def expects_header(self) -> bool:
        """True if a header may follow."""
        return not self.has_header or bool(self.levels and self.levels[-1][0])

    def take(self, size: int) -> bool:
        """Count bytes of a body. Returns False if they are not expected."""
        if not self.levels or self.levels[-1][0] or size > self.levels[-1][1]:
            return False
        self.levels[-1][1] -= size
        return True

    def settle(self) -> bool:
        """Remove the levels that are complete. Returns True if the whole content is complete."""
        while self.levels and not any(self.levels[-1]):
            self.levels.pop()
        return not self.levels


class Rows:
    """The rows of events, and the values that they refer to.

    Args:
        events: in order.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("method", "frame", "heartbeat", "model", "connection", "fault")

    def __init__(self, events: Iterable[Event]) -> None:
        self.rows: list[list[Any]] = []
        self.pool: list[Any] = []
        self.connections: list[dict[str, Any]] = []
        self.count = 0
        self.began = 0.0
        self.ended = 0.0
        self._pooled: dict[object, int] = {}
        self._numbers: dict[str, int] = {}
        self._contents: dict[tuple[int, int, int], _Content] = {}
        self._queues = Queues()
        for number, event in enumerate(events):
            self._add(number, event)
        for content in list(self._contents.values()):
            self._store_body(content)
        self._sort_connections()

    # --- events ---------------------------------------------------------------------------------------

    def _add(self, number: int, event: Event) -> None:
        if not number:
            self.began = round(event.time, 6)
        self.ended = round(event.time, 6)
        self.count = number + 1
        connection = self._connection(event)
        if connection >= 0:
            self.connections[connection]["events"] += 1
        if isinstance(event, FrameEvent):
            self._add_frame(number, event, connection)
        elif isinstance(event, ConnectionEvent):
            self._add_connection_event(number, event, connection)
        elif isinstance(event, ModelEvent):
            self._add_model_event(number, event, connection)

    def _add_frame(self, number: int, event: FrameEvent, connection: int) -> None:
        event = event.redacted
        direction = _DIRECTIONS[event.direction]
        place = (connection, event.channel, direction)
        part = event.part
        reader = frame_reader(event.protocol)
        if part in ("header", "body") and self._add_content(number, event, place):
            return
        method = event.method if part == "method" else None
        kind = _METHOD if method is not None else _HEARTBEAT if part == "heartbeat" else _FRAME
        row = self._row(number, event, connection, kind, direction, event.channel)
        self.rows.append(row)
        if method is None:
            row[9] = int(kind == _FRAME)
            row[10] = self._put(_bounded(_frame_fields(event)))
            return
        row[8] = [self._put(name) for name in self._queues.seen(place, method)]
        row[9] = int(_is_problem(method, direction))
        row[10] = self._put(_bounded(_fields(reader.values(method))))
        if method.NAME == "connection.start-ok":
            self.connections[connection].update(_client(getattr(method, "client_properties", None) or {}))
        elif method.NAME == "connection.open":
            self.connections[connection]["virtual_host"] = getattr(method, "virtual_host", "")
        elif method.NAME == "basic.publish":
            self._queues.published(place, method, row)
        body = reader.body_within(method)
        if body is not None:
            row[13] = len(body)
            if body:
                row[12] = self._put(_body(body[:_MOST_BODY], len(body)))
        if reader.begins_content(event.type, event.payload):
            self._contents[place] = _Content(row)

    def _add_content(self, number: int, event: FrameEvent, place: tuple[int, int, int]) -> bool:
        """Add a header or body frame to the row of its method. Returns False if no method expects it."""
        content = self._contents.get(place)
        if content is None:
            return False
        reader = frame_reader(event.protocol)
        ends = reader.ends_content(event.type)
        row = content.row
        outermost = len(content.levels) <= 1
        if event.part == "header":
            if not content.expects_header():
                return False
            properties = event.properties
            if properties is None and ends is None:
                return False
            size = (reader.body_size(event.type, event.payload) or 0) if ends is None else 0
            if not content.has_header:
                if properties is not None:
                    row[11] = self._put(_bounded(_fields(reader.values(properties), absent=False)))
                row[13] = size
            content.has_header = True
            if ends is None:
                content.announce(reader.contents_within(event.type, event.payload), size)
        else:
            if ends is None:
                if not content.take(event.size):
                    return False
            else:
                row[13] = max(0, row[13]) + event.size
            if outermost:
                if content.whole and len(content.kept) < _MOST_BODY:
                    content.kept += event.payload
                content.whole = content.whole and event.size == len(event.payload)
        row[0].append(number)
        if ends or (ends is None and content.settle()):
            self._store_body(content)
            del self._contents[place]
        return True

    def _store_body(self, content: _Content) -> None:
        if content.row[13] > 0:
            content.row[12] = self._put(_body(bytes(content.kept[:_MOST_BODY]), content.row[13]))

    def _add_connection_event(self, number: int, event: ConnectionEvent, connection: int) -> None:
        kind = _FAULT if event.event == "fault" else _CONNECTION
        row = self._row(number, event, connection, kind)
        row[9] = int(kind == _FAULT or event.event in _BAD_CONNECTION_EVENTS)
        self.rows.append(row)

    def _add_model_event(self, number: int, event: ModelEvent, connection: int) -> None:
        channel = event.facts.get("channel")
        row = self._row(number, event, connection, _MODEL, -1, channel if isinstance(channel, int) else -1)
        queues = queues_of(event.facts)
        row[8] = [self._put(name) for name in queues]
        row[9] = int(event.event in _BAD_MODEL_EVENTS or _unroutable(event))
        row[10] = self._put(_bounded(_facts(event.facts)))
        body = getattr(event.facts.get("message"), "body", None)
        if isinstance(body, bytes):
            row[13] = full_size(body)
            if row[13]:
                row[12] = self._put(_body(bytes(body[:_MOST_BODY]), row[13]))
        if event.event == "published" and connection >= 0:
            publish = self._queues.outcome(connection, event.facts.get("message"))
            if publish is not None:
                publish[8] = sorted({*publish[8], *row[8]})
        self.rows.append(row)

    def _row(
        self, number: int, event: Event, connection: int, kind: int, direction: int = -1, channel: int = -1
    ) -> list[Any]:
        name, text = event.name, event.text
        if isinstance(event, ModelEvent):
            text = _outcome_first(event, text)
        else:
            text = text.removeprefix(name).lstrip(": ")
        time = round(event.time, 6)
        pooled = self._put(one_line(name)), self._put(text)
        nothing = self._put(())
        return [[number], time, connection, kind, direction, channel, *pooled, [], 0, nothing, -1, -1, -1]

    # --- what rows refer to ---------------------------------------------------------------------------

    def _put(self, value: object) -> int:
        """Add `value` to the pool and return its number."""
        # 1, 1.0 and True are equal but differ in JSON; all values here are text, or tuples with their types.
        place = self._pooled.get(value)
        if place is None:
            place = self._pooled[value] = len(self.pool)
            self.pool.append(value)
        return place

    def _connection(self, event: Event) -> int:
        if event.connection is None and not event.alias:
            return -1
        key = event.alias or event.connection or ""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.connections)
            name = event.connection or event.alias
            self.connections.append({"name": name, "alias": event.alias or name, "events": 0})
        return number

    def _sort_connections(self) -> None:
        """Sort by short name: the order of connecting, also if the first events are no longer kept."""
        order = sorted(
            range(len(self.connections)), key=lambda at: _alias_order(self.connections[at]["alias"])
        )
        place = {before: now for now, before in enumerate(order)}
        self.connections = [self.connections[before] for before in order]
        for row in self.rows:
            row[2] = place.get(row[2], -1)


# --- values -------------------------------------------------------------------------------------------


def _fields(values: Iterable[tuple[str, Any]], absent: bool = True) -> Iterator[Field]:
    """All fields, or with `absent=False` those that have a value. Secrets are hidden."""
    for name, value in values:
        if value is None and not absent:
            continue
        if isinstance(value, RedactedValue):
            yield 0, name, f"{value.size} bytes, not shown", "h"
        else:
            yield from _flat(0, name, value)


def _bounded(fields: Iterator[Field]) -> tuple[Field, ...]:
    """At most 500 fields, with a note if there are more."""
    shown = tuple(islice(fields, _MOST_FIELDS))
    if next(fields, None) is not None:
        shown += ((0, "...", f"only the first {_MOST_FIELDS} are shown", "h"),)
    return shown


def _flat(depth: int, name: str, value: object) -> Iterator[Field]:
    """A value, followed by the values inside it."""
    if isinstance(value, Mapping):
        yield depth, name, f"table of {len(value)}", "t"
        for key, item in value.items():
            yield from _flat(depth + 1, key if isinstance(key, str) else repr(key), item)
    elif isinstance(value, (list, tuple)):
        yield depth, name, f"array of {len(value)}", "t"
        for index, item in enumerate(value):
            yield from _flat(depth + 1, f"[{index}]", item)
    else:
        yield depth, name, *_plain(value)


def _plain(value: object) -> tuple[str, str]:
    """One value as text, and its type."""
    if value is None:
        return "void", "z"
    if isinstance(value, bool):
        return ("true" if value else "false"), "b"
    if isinstance(value, Timestamp):
        try:
            return f"{int(value)} ({value.datetime:%Y-%m-%d %H:%M:%S} UTC)", "n"
        except (OverflowError, ValueError, OSError):
            return str(int(value)), "n"
    if isinstance(value, (int, float, Decimal)):
        return str(value), "n"
    if isinstance(value, str):
        return _cut(value), "s"
    if isinstance(value, (bytes, bytearray)):
        size = full_size(bytes(value)) if type(value) is bytearray else full_size(value)  # type: ignore[arg-type]
        try:
            text = bytes(value).decode()
        except UnicodeDecodeError:
            text = ""
        if text.isprintable() and (text or not value):
            return _cut(text), "s"
        shown = value[: _MOST_TEXT // 2].hex()
        return (shown if size <= _MOST_TEXT // 2 else f"{shown}... ({size} bytes)"), "x"
    try:
        return _cut(str(value)), "o"
    except Exception as error:
        return f"{type(value).__name__}, whose str raised {type(error).__name__}", "o"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}... ({len(text)} characters)"


def _alias_order(alias: str) -> tuple[bool, int]:
    """Sort key: short names by their numbers, then other names in their order."""
    digits = alias[1:]
    known = alias[:1] == "c" and digits.isdecimal() and digits.isascii() and len(digits) < 10
    return (not known, int(digits) if known else 0)


def _outcome_first(event: ModelEvent, text: str) -> str:
    """The outcome first, then the message and queue: the width of a note is small."""
    outcome = event.facts.get("outcome")
    ending = "" if outcome is None else f": {one_line(str(outcome))}"
    if ending and text.endswith(ending):
        return f"{ending[2:]}: {text.removesuffix(ending)}"
    about, found, fate = text.rpartition(f" {event.event} ")
    if found:
        return f"{fate}: {about}"
    message, queue = event.facts.get("message"), event.facts.get("queue")
    if not hasattr(message, "body"):
        return text.removeprefix(event.event).lstrip(": ")
    others = [
        f"{name}={_plain(value)[0]}"
        for name, value in event.facts.items()
        if name not in ("message", "queue") and (name, value) != ("virtual_host", "/")
    ]
    where = [f"queue {short(queue)}"] if isinstance(queue, str) else []
    return one_line(" ".join((*where, *others, f"message {short(message.body)}")))


def _facts(facts: Mapping[str, object]) -> Iterator[Field]:
    """The fields of facts. A message has its address there; its body is in the row."""
    for name, value in facts.items():
        if name == "message" and hasattr(value, "routing_key"):
            for part in ("exchange", "routing_key"):
                yield from _flat(0, part, getattr(value, part, None))
            publisher = getattr(getattr(value, "publisher", None), "name", None)
            if isinstance(publisher, str):
                yield 0, "publisher", publisher, "s"
        elif isinstance(getattr(value, "name", None), str):
            yield 0, name, str(getattr(value, "name")), "s"  # noqa: B009
        else:
            yield from _flat(0, name, value)


def _frame_fields(event: FrameEvent) -> Iterator[Field]:
    """The fields of a frame without a decoded method."""
    yield 0, "frame_type", str(event.type), "n"
    yield 0, "size", str(event.size), "n"


def _body(kept: bytes, size: int) -> tuple[str, str]:
    """A body as text, or in base64 if it is not text."""
    from base64 import b64encode

    # Truncation may have split the last character.
    for end in (0, 1, 2, 3) if len(kept) < size else (0,):
        try:
            text = kept[: len(kept) - end].decode()
        except UnicodeDecodeError:
            continue
        if all(character >= " " or character in "\t\r\n" for character in text):
            return "text", text
        break
    return "base64", b64encode(kept).decode()


def _client(properties: Mapping[str, object]) -> dict[str, str]:
    """The client properties that identify a client."""
    known = ("connection_name", "product", "version", "platform")
    return {name: _plain(properties[name])[0] for name in known if name in properties}


# --- problems ----------------------------------------------------------------------------------------


def _is_problem(method: Any, direction: int) -> bool:
    if method.NAME in ("channel.close", "connection.close"):
        return getattr(method, "reply_code", 200) not in (0, 200)
    if method.NAME == "session.detached":
        return bool(method.code)
    if method.NAME == "execution.exception":
        return True
    return direction == 1 and method.NAME in _REFUSALS


def _unroutable(event: ModelEvent) -> bool:
    outcome = event.facts.get("outcome")
    if outcome is None or not hasattr(outcome, "queues"):
        return False
    lost = not outcome.queues and not getattr(outcome, "delays", ())
    return bool(lost or getattr(outcome, "refused", ()) or getattr(outcome, "unconsumed", False))
