"""What channels of 0-9 leave behind when they end."""

from __future__ import annotations

from compat_tests.scripted.amqp_0_9 import Server
from compat_tests.scripted.requesting import Requester
from compat_tests.tools.heap import alive, ignore_older_objects
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.resume import InterruptedChannels
from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared


def test_requeued_message_does_not_keep_the_rejecting_channel_object_alive(server: Server) -> None:
    ignore_older_objects()
    client = server.client().declare("q")
    client.publish(routing_key="q").call(m.BasicConsume(queue="q"), shared.BasicConsumeOk)
    client.reject(client.delivery().method.delivery_tag, requeue=True).drop()
    del client
    server.vhost.extensions[InterruptedChannels].restarted()
    assert not alive(BaseChannel)
    assert server.client().get("q") is not None


def test_record_of_an_interrupted_channel_does_not_keep_the_channel_object_alive(server: Server) -> None:
    ignore_older_objects()
    client = server.client().declare("q").publish(routing_key="q")
    Requester(client).consume("q")
    client.drop()
    server.vhost.queues["q"].purge()
    assert len(server.vhost.extensions[InterruptedChannels]) == 1
    del client
    assert not alive(BaseChannel)
