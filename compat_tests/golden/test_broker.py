"""What the broker writes: basic.deliver and the header of a transfer have writers of their own, for speed.

The client's octets and those that the broker has to answer with are made by `encoding`, from the layouts in
the golden tables; the codec makes neither.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from compat_tests.golden import tables
from compat_tests.golden.encoding import (
    Encoder010,
    content_header,
    family_frame,
    frame_0_10,
    method,
    properties as encode_properties,
)
from compat_tests.golden.published import Field, Layout
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.scripted.amqp_0_10 import Server as Server010

CHANNEL = 1


@cache
def layouts(protocol: str) -> dict[str, Layout]:
    return {
        row["name"]: Layout(
            row["record"],
            row["name"],
            row["major"],
            row["minor"],
            tuple(Field(name, kind) for name, kind, _ in row["fields"]),
            # Of a struct of 0-10, this suffices: what has a code has a size of four octets.
            4 if row["major"] is not None else _SIZES.get(row["name"], 0),
            {"session.header": 1, "session.command-fragment": 0}.get(row["name"], 2),
        )
        for row in tables.all_rows(protocol)
        if tables.kind_of(row) == "record"
    }


_SIZES = {"session.header": 1, "message.reply-to": 2}


# --- 0-9-1 and 0-9 -----------------------------------------------------------------------------------------

EMPTY = {"bit": False, "shortstr": "", "longstr": "", "table": [], "short": 0, "long": 0}
PROPERTIES = {
    "content-type": "text/plain",
    "content-encoding": "utf-8",
    "headers": [["name", "S", "value"], ["number", "I", -7], ["yes", "t", True]],
    "delivery-mode": 2,
    "priority": 5,
    "correlation-id": "the correlation",
    "reply-to": "the reply",
    "expiration": "86400000",
    "message-id": "the message",
    "timestamp": 0x2181828384,
    "type": "the type",
    "user-id": "guest",
    "app-id": "the app",
}


def sent(name: str, **values: Any) -> bytes:
    """A method frame of 0-9-1; what is not given is 0 or empty."""
    layout = layouts("0-9-1")[name]
    given = {key.replace("_", "-"): value for key, value in values.items()}
    assert given.keys() <= {field.name for field in layout.fields}
    full = {field.name: given.get(field.name, EMPTY.get(field.type, 0)) for field in layout.fields}
    return family_frame(1, CHANNEL, method(layout, full))


def content(body: bytes, listed: dict[str, Any], limit: int) -> bytes:
    """Header and body frames of class basic."""
    layout = layouts("0-9-1")["basic"]
    octets = encode_properties(layout, {field.name: listed.get(field.name) for field in layout.fields})
    frames = family_frame(2, CHANNEL, content_header(60, 0, len(body), octets))
    for start in range(0, len(body), limit):
        frames += family_frame(3, CHANNEL, body[start : start + limit])
    return frames


@pytest.mark.parametrize("protocol", ["0-9-1", "0-9"])
@pytest.mark.parametrize("personality", ["rabbitmq-4.3", "rabbitmq-3.10", "spec"])
@pytest.mark.parametrize("listed", [PROPERTIES, {}], ids=["properties", "none"])
@pytest.mark.parametrize("size", [0, 20, 20_000])
def test_messages_to_clients_of_0_9_1_and_0_9_follow_golden_layouts(
    protocol: str, personality: str, listed: dict[str, Any], size: int
) -> None:
    server = Server(personality, protocol=protocol, tickets=False)
    client = server.client(frame_max=8192)
    limit = 8192 - 8
    ticket = 0
    if protocol == "0-9" and personality == "spec":
        client.ask_for_ticket(CHANNEL)
        ticket = client._tickets[CHANNEL]
    assert client.inbox == []

    def answered(octets: bytes) -> bytes:
        client.send_bytes(octets)
        return client.take_bytes()

    of_message = content(bytes(range(250)) * (size // 250) + bytes(size % 250), listed, limit)
    where = {"exchange": "amq.topic", "routing_key": "a.\u00e9.key"}
    declare = sent("queue.declare", reserved_1=ticket, queue="the.queue")
    assert answered(declare) == sent("queue.declare-ok", queue="the.queue", message_count=0, consumer_count=0)
    bind = sent("queue.bind", reserved_1=ticket, queue="the.queue", **where)
    assert answered(bind) == sent("queue.bind-ok")
    publish = sent("basic.publish", reserved_1=ticket, **where)
    assert answered((publish + of_message) * 3) == b""
    get = sent("basic.get", reserved_1=ticket, queue="the.queue", no_ack=True)
    got = sent("basic.get-ok", delivery_tag=1, redelivered=False, message_count=2, **where)
    assert answered(get) == got + of_message
    consume = sent("basic.consume", reserved_1=ticket, queue="the.queue", consumer_tag="the tag")
    deliveries = [
        sent("basic.deliver", consumer_tag="the tag", delivery_tag=tag, redelivered=tag > 3, **where)
        + of_message
        for tag in range(2, 6)
    ]
    consumed = sent("basic.consume-ok", consumer_tag="the tag")
    assert answered(consume) == consumed + deliveries[0] + deliveries[1]
    assert answered(sent("basic.recover-async", requeue=True)) == deliveries[2] + deliveries[3]
    nowhere = {"exchange": "amq.topic", "routing_key": "elsewhere"}
    lost = sent("basic.publish", reserved_1=ticket, mandatory=True, **nowhere) + of_message
    returned = answered(lost)
    no_route = sent("basic.return", reply_code=312, reply_text="NO_ROUTE", **nowhere)
    assert returned == no_route + of_message


# --- 0-10 --------------------------------------------------------------------------------------------------

TYPES: dict[str, tuple[int | None, int, bool]] = {
    **{"str8": (0x85, 1, True), "str16": (0x95, 2, True), "vbin16": (0x90, 2, True), "map": (0xA8, 4, True)},
    **{"uint8": (2, 1, False), "uint16": (0x12, 2, False), "uint32": (0x22, 4, False)},
    **{"uint64": (0x32, 8, False), "int64": (0x31, 8, False), "datetime": (0x38, 8, False)},
    **{"uuid": (0x48, 16, False), "sequence-set": (None, 2, True)},
}
MESSAGE = {
    "message-id": bytes(range(0xC0, 0xD0)).hex(),
    "correlation-id": b"the correlation".hex(),
    "reply-to": ["amq.direct", "the reply"],
    "content-type": "text/plain",
    "content-encoding": "utf-8",
    "user-id": b"guest".hex(),
    "app-id": b"the app".hex(),
    "application-headers": [["name", "str16", "value"], ["number", "uint8", 7]],
}
DELIVERY = {
    "priority": 5,
    "delivery-mode": 2,
    "ttl": 60_000,
    "timestamp": 0x2181828384,
    "expiration": 0x2191929394,
    "routing-key": "a.\u00e9.key",
}


def encoder() -> Encoder010:
    structs = {name: each for name, each in layouts("0-10").items() if each.kind == "struct"}
    return Encoder010(TYPES, structs)


def values(name: str, given: dict[str, Any]) -> list[Any]:
    layout = layouts("0-10")[name]
    assert given.keys() <= {field.name for field in layout.fields}
    return [given.get(field.name, False if field.type == "bit" else None) for field in layout.fields]


def command(name: str, sync: bool = False, **given: Any) -> bytes:
    listed = values(name, {key.replace("_", "-"): value for key, value in given.items()})
    return encoder().command(layouts("0-10")[name], listed, sync)


def struct(name: str, given: dict[str, Any]) -> bytes:
    return encoder().struct(layouts("0-10")[name], values(name, given))


def assembly(first: bytes, header: bytes, body: bytes, channel: int) -> bytes:
    """The frames of a command with header and body, each segment in one frame."""
    return (
        frame_0_10(8 + 3, 1, 1, channel, first)
        + frame_0_10(3, 2, 1, channel, header)
        + frame_0_10(4 + 3, 3, 1, channel, body)
    )


@pytest.mark.parametrize("listed", [MESSAGE, None], ids=["properties", "none"])
def test_transfers_to_clients_of_0_10_follow_golden_layouts(listed: dict[str, Any] | None) -> None:
    server = Server010()
    session = server.session()
    session.declare("q")
    session.bind("q", "amq.topic", "#")
    client, channel = session.client, session.channel
    body = bytes(range(100))

    def header(**changes: Any) -> bytes:
        named = {name.replace("_", "-"): value for name, value in changes.items()}
        delivery = struct("message.delivery-properties", {**DELIVERY, **named})
        return delivery + (b"" if listed is None else struct("message.message-properties", listed))

    transfer = command("message.transfer", destination="amq.topic", accept_mode=1, acquire_mode=0)
    session.expect_nothing()
    client.take_bytes()
    client.send_bytes(assembly(transfer, header(), body, channel))
    client.take_bytes()
    session.subscribe("q", "the destination", credit=None, octets=None)
    client.take_bytes()
    server.advance(10)
    flow = [
        command("message.flow", destination="the destination", unit=unit, value=0xFFFFFFFF) for unit in (0, 1)
    ]
    for each in flow:
        client.send_bytes(frame_0_10(15, 1, 1, channel, each))
    delivered = command("message.transfer", destination="the destination", accept_mode=0, acquire_mode=0)
    expected = assembly(delivered, header(exchange="amq.topic", ttl=50_000), body, channel)
    assert expected in client.take_bytes()
    server.advance(10)
    release = command("message.release", transfers=[[0, 0]], set_redelivered=True)
    client.send_bytes(frame_0_10(15, 1, 1, channel, release))
    again = header(exchange="amq.topic", ttl=40_000, redelivered=True)
    assert assembly(delivered, again, body, channel) in client.take_bytes()
