from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.mark.rule("0-9-1/basic.recover/01")
def test_recover_redelivers_messages_with_redelivered_set(client: Client) -> None:
    assert client.declare("q").consume("q", "t").fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    client.recover()
    again = [client.delivery(), client.delivery()]
    client.expect_nothing()
    assert [(each.body, each.method.redelivered) for each in again] == [(b"1", True), (b"2", True)]


@pytest.mark.rule("0-9-1/basic.recover/all-unacked#all")
def test_recover_redelivers_all_unacknowledged_messages_with_new_delivery_tags(client: Client) -> None:
    assert client.declare("q").consume("q").fill("q", b"1", b"2", b"3").bodies() == [b"1", b"2", b"3"]
    client.ack(1).recover()
    again = [client.delivery(), client.delivery()]
    client.expect_nothing()
    assert [(each.body, each.method.delivery_tag) for each in again] == [(b"2", 4), (b"3", 5)]


@pytest.mark.rule("0-9-1/basic.recover/all-unacked#none")
def test_recover_without_unacknowledged_messages_is_answered_with_recover_ok(client: Client) -> None:
    client.recover().expect_nothing()


@pytest.mark.rule("0-9-1/domain.redelivered/implementation#original", "0-9-1/basic.recover/requeue-false")
def test_spec_personality_recover_without_requeue_redelivers_to_original_consumers(spec: Server) -> None:
    client = spec.client().declare("q").consume("q", "a")
    client.consume("q", "b").fill("q", b"1", b"2", b"3")
    deliveries = [client.delivery() for _ in range(3)]
    client.recover(requeue=False)
    again = [client.delivery() for _ in range(3)]
    client.expect_nothing()
    recipients = [(each.body, each.method.consumer_tag) for each in deliveries]
    assert recipients == [(b"1", "a"), (b"2", "b"), (b"3", "a")]
    assert [(each.body, each.method.consumer_tag) for each in again] == recipients
    assert all(each.method.redelivered for each in again)


@pytest.mark.rule("0-9-1/basic.recover/requeue-false")
def test_recover_without_requeue_requeues_messages_without_a_consumer(spec: Server) -> None:
    client = spec.client().declare("q").consume("q", "t")
    assert client.fill("q", b"consumed").bodies() == [b"consumed"]
    client.perform(m.BasicCancel(consumer_tag="t")).fill("q", b"got").get("q")
    assert client.recover(requeue=False).empty("q") == [b"consumed", b"got"]


def test_message_recovered_without_requeue_counts_once_in_prefetch(spec: Server) -> None:
    client = spec.client().declare("q").qos(1)
    assert client.consume("q").fill("q", b"1", b"2").bodies() == [b"1"]
    assert client.recover(requeue=False).bodies() == [b"1"]
    assert client.ack(2).bodies() == [b"2"]


@pytest.mark.deviates("0-9-1/domain.redelivered/implementation#original")
@pytest.mark.deviates("0-9-1/basic.recover/requeue-false")
@pytest.mark.parametrize("method", [m.BasicRecover(), m.BasicRecoverAsync()], ids=lambda each: each.NAME)
def test_rabbitmq_refuses_recover_without_requeue_with_540(rabbitmq: Server, method: m.Method) -> None:
    close = rabbitmq.client().ends(method, 540)
    assert close.reply_text == "NOT_IMPLEMENTED - requeue=false"
    assert (close.class_id, close.method_id) == (60, method.METHOD_ID)


@pytest.mark.rule("0-9-1/basic.recover/requeue-true")
def test_recover_with_requeue_redelivers_messages_to_another_consumer(server: Server) -> None:
    busy, idle = server.client(), server.client()
    busy.declare("q").qos(1).consume("q", "busy")
    assert busy.fill("q", b"m").bodies() == [b"m"]
    busy.perform(m.BasicCancel(consumer_tag="busy"))
    idle.consume("q", "idle")
    busy.recover()
    delivery = idle.delivery()
    assert (delivery.body, delivery.method.redelivered) == (b"m", True)
    busy.expect_nothing()


@pytest.mark.rule("0-9-1/basic.recover/other-channels")
def test_recover_does_not_requeue_messages_of_other_channels(server: Server) -> None:
    client = server.client(channels=2).declare("q")
    client.fill("q", b"1", b"2").get("q", channel=1)
    client.get("q", channel=2)
    assert client.recover(channel=1).empty("q") == [b"1"]
    client.ack(1, channel=2).expect_nothing()


@pytest.mark.rule("0-9-1/basic.recover/old-tags-invalid")
def test_ack_of_delivery_tag_from_before_recover_is_refused(client: Client) -> None:
    client.declare("q").fill("q", b"m").get("q")
    client.recover().ack(1)
    assert client.expect_channel_close(406).reply_text == "PRECONDITION_FAILED - unknown delivery tag 1"


@pytest.mark.rule("0-9-1/basic.recover/synchronous")
def test_recover_ok_precedes_the_redelivered_messages(client: Client) -> None:
    assert client.declare("q").consume("q").fill("q", b"m").bodies() == [b"m"]
    client.send(m.BasicRecover(requeue=True)).expect(m.BasicRecoverOk)
    assert client.delivery().body == b"m"


@pytest.mark.rule("0-9-1/basic.recover-ok/confirm")
def test_recover_ok_has_no_fields(client: Client) -> None:
    assert client.send(m.BasicRecover(requeue=True)).take_frame().payload == b"\x00\x3c\x00\x6f"


@pytest.mark.rule("0-9-1/basic.recover-async/01")
def test_recover_async_sets_redelivered_on_requeued_message(client: Client) -> None:
    client.declare("q").fill("q", b"m").get("q")
    again = client.send(m.BasicRecoverAsync(requeue=True)).fetch("q")
    assert (again.body, again.method.redelivered, again.method.delivery_tag) == (b"m", True, 2)


@pytest.mark.rule("0-9-1/basic.recover-async/no-reply")
def test_recover_async_is_not_answered(client: Client) -> None:
    client.declare("q").fill("q", b"m").get("q")
    client.send(m.BasicRecoverAsync(requeue=True)).send(m.QueueDeclare(queue="q", passive=True))
    assert client.expect(m.QueueDeclareOk).message_count == 1
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.recover-async/deprecated")
def test_recover_async_redelivers_unacknowledged_messages(client: Client) -> None:
    assert client.declare("q").consume("q").fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    assert client.send(m.BasicRecoverAsync(requeue=True)).bodies() == [b"1", b"2"]


@pytest.mark.rule("0-9-1/basic.recover-async/deprecated")
def test_spec_recover_async_without_requeue_redelivers_to_original_consumers(spec: Server) -> None:
    client = spec.client().declare("q").consume("q", "a")
    assert client.consume("q", "b").fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    client.send(m.BasicRecoverAsync(requeue=False))
    again = [client.delivery(), client.delivery()]
    assert [(each.body, each.method.consumer_tag) for each in again] == [(b"1", "a"), (b"2", "b")]
