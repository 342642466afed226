"""The data of the page: one row for each line of the timeline; see `fakeamqp.trace.folding`.

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
| 14 | real time in seconds, or null if the broker has no other time |
| 15 | number of the message that it is about, or 0; see `fakeamqp.trace.json_form` |

Fields are lists of (depth, name, value, type); types are "s" text, "n" number, "b" bit, "x" bytes in hex,
"t" a table or array whose fields follow one level deeper, "z" void, "h" hidden, "o" anything else. A body is
(encoding, text), where the encoding is "text" or "base64".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any, TypeAlias

from fakeamqp.dialects import RedactedValue, dialect_named
from fakeamqp.timestamps import Timestamp
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent, publisher_name
from fakeamqp.trace.folding import FoldedLine, fold
from fakeamqp.trace.truncation import full_size, one_line, short

KINDS = ("method", "frame", "heartbeat", "model", "connection", "fault")
_METHOD, _FRAME, _HEARTBEAT, _MODEL, _CONNECTION, _FAULT = range(6)
_MOST_BODY = 16_384
_DIRECTIONS = {"received": 0, "sent": 1}
_BAD_CONNECTION_EVENTS = frozenset(("aborted", "lost", "blocked", "malformed input", "login refused"))
_CLIENT = ("connection_name", "product", "version", "platform")
"""The client properties that identify a client."""
_BAD_MODEL_EVENTS = frozenset(("dropped", "returned"))
_REFUSALS = frozenset(
    ("basic.nack", "basic.return", "basic.cancel", "connection.blocked", "message.reject", "message.stop")
)
"""Methods that the broker sends only in case of a problem."""


class Rows:
    """The rows of events, and the values that they refer to."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.rows: list[list[Any]] = []
        self.pool: list[Any] = []
        self.connections: list[dict[str, Any]] = []
        self.count: int = 0
        self.began: float = 0.0
        self.ended: float = 0.0
        self._pooled: dict[object, int] = {}
        self._numbers: dict[str, int] = {}
        self._queues = Queues()
        self._delivered: dict[tuple[int, int, int], int] = {}
        """The numbers of delivered messages by connection, channel and tag."""
        for line in fold(events):
            self._add(line)
        # Sort by short name: the order of connecting, also if the first events are no longer kept.
        order = sorted(
            range(len(self.connections)), key=lambda at: _alias_order(self.connections[at]["alias"])
        )
        place = {before: now for now, before in enumerate(order)}
        self.connections = [self.connections[before] for before in order]
        for row in self.rows:
            row[2] = place.get(row[2], -1)

    # --- events ---------------------------------------------------------------------------------------

    def _add(self, line: FoldedLine) -> None:
        event = line.first
        if not self.count:
            self.began = round(event.time, 6)
        self.ended = max(self.ended, round(line.events[-1].time, 6))
        self.count += len(line.events)
        connection = self._connection(event)
        if connection >= 0:
            self.connections[connection]["events"] += len(line.events)
        if isinstance(event, FrameEvent):
            self._add_frame(line, event, connection)
        elif isinstance(event, ConnectionEvent):
            row = self._row(line, event, connection, kind_of(event))
            row[9] = int(is_problem(event))
            self.rows.append(row)
        elif isinstance(event, ModelEvent):
            self._add_model_event(line, event, connection)

    def _add_frame(self, line: FoldedLine, event: FrameEvent, connection: int) -> None:
        event = event.redacted
        direction = _DIRECTIONS[event.direction]
        place = (connection, event.channel, direction)
        part = event.part
        reader = dialect_named(event.protocol)
        method = event.method if part == "method" else None
        kind = _kind_of_frame(part, method)
        row = self._row(line, event, connection, kind, direction, event.channel)
        self.rows.append(row)
        if method is None:
            row[9] = int(kind == _FRAME)
            fields = (0, "frame_type", str(event.type), "n"), (0, "size", str(event.size), "n")
            row[10] = self._put(fields)
            return
        row[8] = [self._put(name) for name in self._queues.seen(place, method)]
        row[9] = int(_is_problem(method, direction))
        if (tag := getattr(method, "delivery_tag", 0)) and not getattr(method, "multiple", False):
            row[15] = self._delivered.get((connection, event.channel, tag), 0)
        row[10] = self._put(bounded(fields_of(reader.values(method))))
        if method.NAME == "connection.start-ok":
            client = getattr(method, "client_properties", None) or {}
            known = (name for name in _CLIENT if name in client)
            self.connections[connection].update((name, plain(client[name])[0]) for name in known)
        elif method.NAME == "connection.open":
            self.connections[connection]["virtual_host"] = getattr(method, "virtual_host", "")
        elif method.NAME == "basic.publish":
            self._queues.published(place, method, row)
        body = reader.body_within(method)
        if body is not None:
            self._put_body(row, bytes(body[:_MOST_BODY]), len(body))
        if line.content is not None:
            if line.content.properties is not None:
                row[11] = self._put(bounded(fields_of(reader.values(line.content.properties), absent=False)))
            self._put_body(row, bytes(line.content.kept), line.content.size)

    def _put_body(self, row: list[Any], kept: bytes, size: int) -> None:
        row[13] = size
        if size > 0:
            row[12] = self._put(body_form(kept, size))

    def _add_model_event(self, line: FoldedLine, event: ModelEvent, connection: int) -> None:
        channel = event.facts.get("channel")
        row = self._row(line, event, connection, _MODEL, -1, channel if isinstance(channel, int) else -1)
        queues = queues_of(event.facts)
        row[8] = [self._put(name) for name in queues]
        row[9] = int(is_problem(event))
        row[10] = self._put(bounded(_facts(event.facts)))
        row[15] = message_number(event)
        if event.event == "delivered" and isinstance(tag := event.facts.get("delivery_tag"), int):
            self._delivered[connection, row[5], tag] = row[15]
        body = getattr(event.facts.get("message"), "body", None)
        if isinstance(body, bytes):
            self._put_body(row, bytes(body[:_MOST_BODY]), full_size(body))
        if event.event == "published" and connection >= 0:
            publish = self._queues.outcome(connection, event.facts.get("message"))
            if publish is not None:
                publish[8] = sorted({*publish[8], *row[8]})
                publish[15] = row[15]
        self.rows.append(row)

    def _row(
        self,
        line: FoldedLine,
        event: Event,
        connection: int,
        kind: int,
        direction: int = -1,
        channel: int = -1,
    ) -> list[Any]:
        # The page shows a content by itself.
        name, text = line_of(event, "" if line.content else line.text)
        time = round(event.time, 6)
        pooled = self._put(name), self._put(text)
        nothing = self._put(())
        real = None if event.real_time is None else round(event.real_time, 6)
        place = [line.numbers, time, connection, kind, direction, channel]
        return [*place, *pooled, [], 0, nothing, -1, -1, -1, real, 0]

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


# --- lines --------------------------------------------------------------------------------------------


def line_of(event: Event, text: str = "") -> tuple[str, str]:
    """The name of an event, and the rest of its line, made of `text` or else of the event's own."""
    name, text = event.name, text or event.text
    if isinstance(event, ModelEvent):
        return one_line(name), _outcome_first(event, text)
    return one_line(name), text.removeprefix(name).lstrip(": ")


def kind_of(event: Event) -> int:
    """The number of its kind in `KINDS`."""
    if isinstance(event, FrameEvent):
        return _kind_of_frame(event.part, event.method if event.part == "method" else None)
    if isinstance(event, ConnectionEvent):
        return _FAULT if event.event == "fault" else _CONNECTION
    return _MODEL


def _kind_of_frame(part: str, method: object) -> int:
    if method is not None:
        return _METHOD
    return _HEARTBEAT if part == "heartbeat" else _FRAME


def is_problem(event: Event) -> bool:
    """Whether pages mark it as a problem. Headers and bodies are parts of a method, and are none."""
    if isinstance(event, FrameEvent):
        method = event.method if event.part == "method" else None
        if method is None:
            return event.part not in ("header", "body", "heartbeat")
        return _is_problem(method, _DIRECTIONS[event.direction])
    if isinstance(event, ConnectionEvent):
        return event.event == "fault" or event.event in _BAD_CONNECTION_EVENTS
    assert isinstance(event, ModelEvent)
    return event.event in _BAD_MODEL_EVENTS or _unroutable(event)


def message_number(event: Event) -> int:
    """The number of the message that an event of the model is about, or 0."""
    number = getattr(event.facts.get("message"), "number", 0) if isinstance(event, ModelEvent) else 0
    return number if isinstance(number, int) else 0


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
        f"{name}={plain(value)[0]}"
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
                yield from flat(0, part, getattr(value, part, None))
            if (publisher := publisher_name(facts)) is not None:
                yield 0, "publisher", publisher, "s"
        elif isinstance(getattr(value, "name", None), str):
            yield 0, name, str(getattr(value, "name")), "s"  # noqa: B009
        else:
            yield from flat(0, name, value)


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


#: connection, channel, direction
Place: TypeAlias = tuple[int, int, int]

_MOST_WAITING = 200
_CONSUMES = frozenset(("basic.consume", "file.consume", "stream.consume"))
_CONSUMED = frozenset(f"{name}-ok" for name in _CONSUMES)
_WITH_CONSUMER_TAG = frozenset(
    f"{content}.{method}"
    for content in ("basic", "file", "stream")
    for method in ("deliver", "cancel", "cancel-ok")
)
_UNSETTLED = frozenset(("basic.deliver", "basic.get-ok", "file.deliver"))
_SETTLES = frozenset(("basic.ack", "basic.nack", "basic.reject", "file.ack", "file.reject"))
_WITH_DESTINATION = frozenset(("message.subscribe", "message.consume", "message.get"))
"""Commands with a destination and the queue that its messages come from."""


def queues_of(facts: Mapping[str, object]) -> list[str]:
    """The names of the queues in the facts of an event."""
    found: dict[str, None] = {}
    for value in (facts.get("queue"), *(getattr(facts.get("outcome"), "queues", None) or ())):
        name = value if isinstance(value, str) else getattr(value, "name", None)
        if isinstance(name, str):
            found[name] = None
    return list(found)


class Queues:
    """The queues of each method, also if it names none: a delivery by its consumer, an ack by its tag."""

    def __init__(self) -> None:
        self._declared: dict[tuple[int, int], str] = {}
        self._asked: dict[tuple[int, int], str] = {}
        self._consumers: dict[tuple[int, int, str], str] = {}
        self._unsettled: dict[tuple[int, int], dict[int, str]] = {}
        self._publishes: dict[int, list[tuple[object, object, list[Any]]]] = {}

    def seen(self, place: Place, method: Any) -> list[str]:
        """The queues of `method`."""
        connection, channel, _ = place
        here = (connection, channel)
        name = method.NAME
        tag = getattr(method, "delivery_tag", 0)
        consumer = (*here, str(getattr(method, "consumer_tag", "")))
        queue = getattr(method, "queue", None)
        if name == "queue.declare-ok" and queue:
            self._declared[here] = queue
        elif name == "basic.publish":
            key = getattr(method, "routing_key", "")
            return [key] if key and not getattr(method, "exchange", "") else []
        elif isinstance(queue, str) and not queue and name != "queue.declare":
            queue = self._declared.get(here)  # an empty name means the queue declared last
        if (name in _CONSUMES or name == "basic.get") and queue:
            self._asked[here] = queue
            if name in _CONSUMES and consumer[2]:
                self._consumers[consumer] = queue
        elif name in ("basic.get-ok", "basic.get-empty"):
            queue = self._asked.get(here)
        elif name in _CONSUMED:
            queue = self._consumers.setdefault(consumer, self._asked.get(here, ""))
        elif name in _WITH_CONSUMER_TAG:
            queue = self._consumers.get(consumer) or queue
        elif name in _SETTLES and place[2] == 0:
            return self._settled(here, tag, bool(getattr(method, "multiple", False)))
        elif name.startswith("message.") and hasattr(method, "destination"):
            consumer = (*here, method.destination or "")
            if name in _WITH_DESTINATION and queue:
                self._consumers[consumer] = queue
            elif name != "message.transfer" or place[2] == 1:
                queue = self._consumers.get(consumer)
        if name in _UNSETTLED and queue:
            self._unsettled.setdefault(here, {})[tag] = queue
        return [queue] if queue else []

    def _settled(self, here: tuple[int, int], tag: int, multiple: bool) -> list[str]:
        unsettled = self._unsettled.get(here, {})
        tags = [other for other in unsettled if other <= tag or not tag] if multiple else [tag]
        return list(dict.fromkeys(unsettled.pop(other) for other in tags if other in unsettled))

    # --- the queues of a publish, which only the event after it tells ---------------------------------

    def published(self, place: Place, method: Any, row: list[Any]) -> None:
        """Remember the row of a publish until its outcome is known."""
        waiting = self._publishes.setdefault(place[0], [])
        del waiting[: len(waiting) - _MOST_WAITING]
        waiting.append((getattr(method, "exchange", ""), getattr(method, "routing_key", ""), row))

    def outcome(self, connection: int, message: object) -> list[Any] | None:
        """Remove and return the row of the oldest publish that `message` may come from."""
        address = (getattr(message, "exchange", None), getattr(message, "routing_key", None))
        waiting = self._publishes.get(connection, [])
        for index, (*published, row) in enumerate(waiting):
            if tuple(published) == address:
                del waiting[: index + 1]
                return row
        return None


# --- values of headers, properties, arguments and bodies --------------------------------------------------

#: depth, name, value, type
Field: TypeAlias = tuple[int, str, str, str]

_MOST_TEXT = 4096
_MOST_FIELDS = 500


def fields_of(values: Iterable[tuple[str, Any]], absent: bool = True) -> Iterator[Field]:
    """All fields, or with `absent=False` those that have a value. Secrets are hidden."""
    for name, value in values:
        if value is None and not absent:
            continue
        if isinstance(value, RedactedValue):
            yield 0, name, f"{value.size} bytes, not shown", "h"
        else:
            yield from flat(0, name, value)


def bounded(fields: Iterator[Field]) -> tuple[Field, ...]:
    """At most 500 fields, with a note if there are more."""
    shown = tuple(islice(fields, _MOST_FIELDS))
    if next(fields, None) is not None:
        shown += ((0, "...", f"only the first {_MOST_FIELDS} are shown", "h"),)
    return shown


def flat(depth: int, name: str, value: object) -> Iterator[Field]:
    """A value, followed by the values inside it."""
    if isinstance(value, Mapping):
        yield depth, name, f"table of {len(value)}", "t"
        for key, item in value.items():
            yield from flat(depth + 1, key if isinstance(key, str) else repr(key), item)
    elif isinstance(value, (list, tuple)):
        yield depth, name, f"array of {len(value)}", "t"
        for index, item in enumerate(value):
            yield from flat(depth + 1, f"[{index}]", item)
    else:
        yield depth, name, *plain(value)


def plain(value: object) -> tuple[str, str]:
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


def body_form(kept: bytes, size: int) -> tuple[str, str]:
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
