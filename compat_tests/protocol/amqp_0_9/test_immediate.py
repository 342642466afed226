"""Messages that somebody has to take at once, where others wait that are not for everybody."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_9 import files
from compat_tests.scripted.amqp_0_9 import Server
from fakeamqp.protocols.amqp_0_9.codec import methods as m


@pytest.mark.letter
def test_a_message_that_a_channel_must_not_have_again_holds_up_no_other_for_it(server: Server) -> None:
    client = server.client()
    client.declare("q")
    client.consume("q")
    client.publish(b"refused", routing_key="q")
    client.reject(client.delivery().method.delivery_tag, requeue=True)
    client.bodies()  # By personality it comes again, or waits for somebody else.
    client.publish(b"at once", routing_key="q", immediate=True)
    assert client.delivery().body == b"at once"


@pytest.mark.rule("0-9/file.publish/immediate-01")
def test_a_file_that_a_channel_must_not_have_again_holds_up_no_other_for_it(server: Server) -> None:
    client = server.client()
    client.declare("q")
    files.consume(client)
    files.publish_file(client, b"refused")
    client.send(m.FileReject(delivery_tag=files.take(client).tag, requeue=True))
    files.stage_file(client, b"at once", "g")
    files.publish(client, "q", "g", immediate=True)
    assert files.take(client).body == b"at once"
