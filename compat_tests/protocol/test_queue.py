from __future__ import annotations

import pytest

from compat_tests.protocol.driver import Client, Server
from fakeamqp.wire.amqp_0_9_1 import methods as m


@pytest.mark.rule("0-9-1/queue.declare/passive-passive")
def test_passive_declare_tells_what_exists_from_what_does_not(client: Client) -> None:
    client.declare("here")
    assert client.declare("here", passive=True).queue == "here"
    client.send(m.QueueDeclare(queue="missing", passive=True))
    close = client.expect_channel_close(404)
    assert close.reply_text == "NOT_FOUND - no queue 'missing' in vhost '/'"
    assert (close.class_id, close.method_id) == (50, 10)


@pytest.mark.rule("0-9-1/queue.delete/queue-must-exist")
def test_deleting_a_missing_queue_is_refused_by_the_letter(spec: Server) -> None:
    client = spec.client()
    client.send(m.QueueDelete(queue="missing"))
    client.expect_channel_close(404)


@pytest.mark.rule("0-9-1/queue.delete/queue-must-exist")
def test_deleting_a_missing_queue_is_confirmed_by_rabbitmq(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    assert client.call(m.QueueDelete(queue="missing"), m.QueueDeleteOk).message_count == 0
