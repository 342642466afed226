"""Messages, files and packets of streams in one queue."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    consume_files,
    consume_stream,
    publish_file,
    publish_packet,
    take_files,
    take_packets,
)
from compat_tests.scripted.amqp_0_10 import Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x


@pytest.mark.rule("0-10/queue/any-content#any")
@pytest.mark.rule("0-10/queue/any-content#independently")
def test_queue_delivers_messages_files_and_stream_messages_to_consumers_of_their_class(
    session: Session,
) -> None:
    session.declare("q")
    session.publish(b"message")
    publish_file(session, b"file", "q")
    publish_packet(session, b"packet", "q")
    assert session.query().message_count == 3
    session.subscribe(credit=1)
    assert session.bodies() == [b"message"]
    session.send(x.FileQos(prefetch_count=1))
    session.expect(x.FileQosOk)
    consume_files(session)
    assert [each.body for each in take_files(session)] == [b"file"]
    consume_stream(session)
    assert [each.body for each in take_packets(session)] == [b"packet"]
    assert session.query().message_count == 0
