"""Hostile clients of AMQP 1.0: huge values and numbers, floods, clients that do not read. Others are served.

Mutated bytes and strange frames are in `compat_tests/fuzz`.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_1_0.conftest import with_queues
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Server, attach, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import EMPTY_FRAME, frame
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, encode_value


@pytest.mark.parametrize(
    "value",
    [
        b"\xc0\x7f\x01" * 40 + b"\x45",
        b"\xd0\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xf0\0\0\0\x09\xff\xff\xff\xff\x40",
        b"\0" * 200,
    ],
    ids=["deep", "long-list", "long-array", "descriptors"],
)
def test_value_that_announces_too_much_is_refused(server: Server, value: bytes) -> None:
    client = server.session()
    client.send_bytes(frame(0, 0, b"\0\x53\x12" + value))
    client.expect_close("amqp:internal-error")


def test_flood_of_empty_frames_closes_the_connection() -> None:
    server = with_queues(Server())
    client = server.session()
    client.send_bytes(EMPTY_FRAME * (server.state.bounds.idle_frames + 1))
    client.expect_close("amqp:resource-limit-exceeded")


def test_thousand_connections_leave_nothing_behind() -> None:
    server = with_queues(Server())
    for _ in range(1000):
        client = server.session()
        client.receiver(credit=1)
        client.send(c.Close()).take_all()
    assert not server.state.connections and not server.state.leaving
    assert not server.vhost.queues["q"].subscriptions
    assert server.state.memory.connections.octets == 0


def test_thousand_sessions_leave_nothing_behind(server: Server) -> None:
    client = server.session()
    for _ in range(1000):
        client.begin(7)
        client.send(attach(RECEIVER, "/queues/q"), 7).send(c.End(), 7).take_bytes()
    [connection] = server.state.connections
    assert [*connection.sessions] == [0]  # type: ignore[attr-defined]
    assert not server.vhost.queues["q"].subscriptions


@pytest.mark.parametrize("role", [SENDER, RECEIVER])
def test_ten_thousand_links_leave_nothing_behind(rabbitmq: Server, role: bool) -> None:
    client = rabbitmq.session()
    for number in range(10_000):
        client.send(attach(role, "/queues/q", 3, name=str(number)))
        client.send(c.Detach(handle=3, closed=number % 2 == 0)).take_bytes()
        client.bytes_in = b""
    [connection] = rabbitmq.state.connections
    [session] = connection.sessions.values()  # type: ignore[attr-defined]
    assert not session.sending and not session.receiving and not session.pausing
    assert not rabbitmq.vhost.queues["q"].subscriptions
    assert isinstance(client.sender().publish(), c.Accepted)


@pytest.mark.parametrize(
    "array",
    [
        b"\xe0\2\xff\x40",
        b"\xf0\0\0\0\5\xff\xff\xff\xff\x45",
        b"\xe0\5\0\0\x53\1\x50",
        b"\xe0\x0b\1\xf0\0\0\0\5\0\0\0\2\x40",
    ],
    ids=["short", "long", "described", "inner"],
)
def test_array_of_values_without_octets_is_not_read(rabbitmq: Server, array: bytes) -> None:
    """13 000 such arrays in one frame would else be some 10^13 values."""
    count = 120_000 // len(array)
    size = count * len(array) + 4
    octets = b"\xd0" + size.to_bytes(4, "big") + count.to_bytes(4, "big") + array * count
    named = encode_value(Symbol("x-a")) + octets
    annotations = b"\0\x53\x72\xd1" + (len(named) + 4).to_bytes(4, "big") + bytes(4) + named
    client = rabbitmq.session()
    assert isinstance(client.sender().publish(annotations + message()), c.Accepted)
    client.receiver(handle=1, credit=1)
    assert array * count in client.take_bytes()  # Proton reads no such array.


def test_count_of_an_array_beyond_its_octets_is_refused(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    client.send_bytes(frame(0, 0, b"\0\x53\x12\xd0\0\0\0\x0e\0\0\0\1\xf0\0\0\0\5\xff\xff\xff\xff\x50"))
    client.expect_close("amqp:internal-error")


@pytest.mark.rule("1-0/transfer/decode-error")
@pytest.mark.parametrize("descriptor", [b"\x45", b"\xc1\1\0", b"\x40", b"\0\x45\x45"])
def test_section_with_an_odd_descriptor_is_refused(rabbitmq: Server, descriptor: bytes) -> None:
    client = rabbitmq.session()
    client.sender().transfer(b"\0" + descriptor + b"\xa0\0")
    client.expect_detach("amqp:decode-error", "failed to parse message: {not_a_message_section,{position,0}}")


@pytest.mark.parametrize("count", [0, 1, 7, 255])
def test_items_of_a_list_are_those_that_fill_it(server: Server, count: int) -> None:
    client = server.greeted()
    items = encode_value(Symbol("PLAIN")) + encode_value(b"\0guest\0guest")
    client.send_bytes(frame(1, 0, b"\0\x53\x41\xc0" + bytes((len(items) + 1, count)) + items))
    assert client.expect(c.SaslOutcome).code == 0


def test_map_of_many_entries_passes_as_it_is(server: Server) -> None:
    entries = {Symbol(f"x-{number}"): number for number in range(5_000)}
    client = server.session()
    assert isinstance(client.sender().publish(message(annotations=entries)), c.Accepted)
    assert entries.items() <= client.receiver(handle=1, credit=1).take()[1]["annotations"].items()


def test_message_in_very_many_transfers_is_one_message(server: Server) -> None:
    client = server.session()
    sender = client.sender()
    octets = message(b"x" * 3000)
    for place in range(len(octets)):
        sender.transfer(octets[place : place + 1], more=True)
        client.take_bytes()
    assert server.state.memory.unfinished.octets >= len(octets)
    assert isinstance(sender.publish(b""), c.Accepted)
    assert server.state.memory.unfinished.octets == 0
    assert server.vhost.queues["q"].ready.pop().message.body == b"x" * 3000


def test_message_beyond_the_largest_ends_the_session(server: Server) -> None:
    client = server.session()
    sender = client.sender()
    part = b"x" * 100_000
    for _ in range(168):
        sender.transfer(part, more=True)
    client.expect_end("amqp:link:message-size-exceeded")
    assert server.state.memory.unfinished.octets == 0


@pytest.mark.rule("1-0/flow/link-credit")
@pytest.mark.parametrize(
    "fields",
    [
        {"link_credit": 1 << 31},
        {"link_credit": 0xFFFFFFFF},
        {"link_credit": 1, "incoming_window": 1 << 31},
        {"link_credit": 1, "delivery_count": (1 << 31) - 1},
    ],
    ids=["half", "most", "window", "delivery-count"],
)
def test_number_without_a_defined_difference_ends_the_session(
    rabbitmq: Server, fields: dict[str, Any]
) -> None:
    client = rabbitmq.session()
    other = rabbitmq.session().receiver()
    client.receiver().flow(**fields)
    client.expect_end("amqp:internal-error")
    rabbitmq.session().sender().publish()
    assert other.flow(link_credit=(1 << 31) - 1).take()[1]["data"] == b"body"


def test_delivery_count_and_transfer_ids_wrap_around(server: Server) -> None:
    client = server.open()
    client.begin(next_outgoing_id=0xFFFFFFFE)
    sender = client.sender(initial_delivery_count=0xFFFFFFF0)
    client.next_delivery_id = 0xFFFFFFFD
    for _ in range(84):
        assert isinstance(sender.publish(), c.Accepted)
        client.next_delivery_id &= 0xFFFFFFFF
    sender.transfer()
    assert client.expect(c.Disposition).first == 81
    assert client.expect(c.Flow).delivery_count == 69


@pytest.mark.rule("1-0/flow/link-credit")
def test_link_takes_a_batch_while_the_window_is_closed(server: Server) -> None:
    publisher = server.session().sender()
    for _ in range(700):
        publisher.transfer(settled=True)
    client = server.open()
    begun = client.begin(incoming_window=0)
    slow = client.receiver(snd_settle_mode=1)
    first = begun.next_outgoing_id

    def grant(seen: int, window: int) -> list[Any]:
        slow.flow(next_incoming_id=(first + seen) & 0xFFFFFFFF, incoming_window=window, link_credit=1000)
        return client.take_all()

    assert not grant(0, 0)
    ready = server.vhost.queues["q"].ready
    assert len(ready) == 700 - 256
    assert len(grant(0, 255)) == 255
    assert len(ready) == 700 - 256
    assert len(grant(255, 2)) == 2
    assert len(ready) == 700 - 512
    assert len(grant(257, 1000)) == 700 - 257
    assert not ready


@pytest.mark.rule("1-0/flow/drain")
def test_flow_does_not_overtake_transfers_that_the_window_holds_back(server: Server) -> None:
    publisher = server.session().sender()
    for _ in range(3):
        publisher.transfer(settled=True)
    client = server.open()
    first = client.begin(incoming_window=0).next_outgoing_id
    link = client.receiver(snd_settle_mode=1)
    link.flow(next_incoming_id=first, incoming_window=2, link_credit=9, drain=True)
    assert [type(each.what) for each in client.take_all()] == [c.Transfer, c.Transfer]
    client.send(
        c.Flow(
            next_incoming_id=(first + 2) & 0xFFFFFFFF,
            incoming_window=9,
            next_outgoing_id=0,
            outgoing_window=9,
        )
    )
    assert [type(each.what) for each in client.take_all()] == [c.Transfer, c.Flow]


def test_client_that_does_not_read_stops_its_deliveries_only(server: Server) -> None:
    publisher = server.session().sender()
    body = b"x" * 50_000
    silent = server.session()
    silent.receiver(credit=10_000, snd_settle_mode=1)
    for _ in range(400):
        publisher.transfer(message(body), settled=True)
        publisher.client.take_all()
    ready = len(server.vhost.queues["q"].ready)
    assert ready > 300
    other = server.session()
    other.receiver(credit=ready, snd_settle_mode=1)
    assert sum(len(octets) for octets in iter(other.take_bytes, b"")) > ready * len(body)
    assert not server.vhost.queues["q"].ready
    assert len(silent.take_all()) == 400 - ready
