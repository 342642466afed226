"""What 0-8 has otherwise than 0-9."""

from __future__ import annotations

import pytest

from fakeamqp.protocols.amqp_0_9.codec import methods as m, version_0_8 as v
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.base.codec import FrameError

CONSUMES = [
    (v.BasicConsume(1, "q", "t", no_ack=True), "003c0014 0001 01 71 01 74 02"),
    (v.FileConsume(1, "", "t", no_wait=True), "00460014 0001 00 01 74 08"),
    (v.StreamConsume(1, "q", ""), "00500014 0001 01 71 00 00"),
]


@pytest.mark.parametrize(("method", "octets"), CONSUMES, ids=lambda value: getattr(value, "NAME", ""))
def test_consume_methods_of_0_8_may_end_with_a_filter_table(method: Method, octets: str) -> None:
    payload = bytes.fromhex(octets)
    assert (
        type(method).decode(payload, RABBITMQ) == type(method).decode(payload + bytes(4), RABBITMQ) == method
    )
    filtered = type(method).decode(payload + b"\0\0\0\3\1aV", RABBITMQ)
    assert filtered.filter == {"a": None}
    assert filtered.encode() == payload + b"\0\0\0\3\1aV"
    for wrong in (
        *(payload[:cut] for cut in range(4, len(payload))),
        *(payload + behind for behind in (b"\0", b"\0\0\0", b"\0\0\0\3\1a", bytes(5))),
    ):
        with pytest.raises(FrameError):
            type(method).decode(wrong, RABBITMQ)


def test_channel_open_ok_of_0_8_has_no_channel_id() -> None:
    assert v.ChannelOpenOk().encode() == b"\0\x14\0\x0b"
    with pytest.raises(FrameError, match="left over"):
        v.ChannelOpenOk.decode(m.ChannelOpenOk(b"").encode(), RABBITMQ)


def test_0_8_lacks_message_and_some_channel_methods() -> None:
    absent = {kind.NAME for kind in m.METHODS.values()} - {kind.NAME for kind in v.METHODS.values()}
    of_messages = {name for name in absent if name.startswith("message.")}
    assert len(of_messages) == 15
    assert absent - of_messages == {"channel.resume", "channel.ping", "channel.pong", "channel.ok"}
    assert m.ConnectionRedirect.INDEX not in v.METHODS


def test_version_and_protocol_headers_of_0_8() -> None:
    assert v.VERSION == (8, 0)
    assert v.ConnectionStart().encode()[4:6] == b"\x08\0"
    assert v.PROTOCOL_HEADERS == (b"AMQP\1\1\x08\0", b"AMQP\1\1\x09\1")
