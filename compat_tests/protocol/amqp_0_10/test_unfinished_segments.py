from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.driver import Session
from compat_tests.protocol.test_unfinished_contents import COUNT, little_memory
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec import structs


@pytest.mark.parametrize("piece", [b"", b"ab"])
def test_tiny_frames_of_a_segment_are_joined_as_they_come(session: Session, piece: bytes) -> None:
    session.declare("q")
    client, channel = session.client, session.channel
    transfer = x.MessageTransfer(destination="", accept_mode=1).encode()
    header = structs.encode_header([structs.DeliveryProperties(routing_key="q")])
    client.send_frame(transfer, flags=0x0B, kind=1, track=1, channel=channel)
    client.send_frame(header, flags=0x03, kind=2, track=1, channel=channel)
    client.send_frame(b"begin", flags=0x06, kind=3, track=1, channel=channel)
    with little_memory():
        for _ in range(COUNT):
            client.send_frame(piece, flags=0x04, kind=3, track=1, channel=channel)
    client.send_frame(b"end", flags=0x05, kind=3, track=1, channel=channel)
    session.subscribe()
    assert session.bodies() == [b"begin" + piece * COUNT + b"end"]
