"""Services: functions of the test that system exchanges hand messages to."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat_tests.tools.matrix import rows
from fakeamqp import Broker, FakeAMQPError, WaitTimeout
from fakeamqp.services import BadRegistration, ServiceMessage


def test_a_service_gets_the_messages_of_an_app(broker: Broker, channel: BlockingChannel) -> None:
    got: list[ServiceMessage] = []
    mail = broker.admin.add_service("mail", got.append)
    channel.confirm_delivery()
    properties = pika.BasicProperties(content_type="text/plain", headers={"n": 1})
    channel.basic_publish("amq.system", "mail", b"dear Ann", properties, mandatory=True)
    mail.wait()
    [message] = got
    assert (message.text, message.content_type, message.headers) == ("dear Ann", "text/plain", {"n": 1})
    assert (message.exchange, message.routing_key) == ("amq.system", "mail")
    assert message.connection == broker.connections[0].name
    assert mail.calls == 1
    assert "dear Ann" in repr(message) and "for a service" in repr(message)
    assert broker.published[0].queues == ("service 'mail'",)
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("amq.system", "male", b"lost", mandatory=True)


def test_the_answer_of_a_service_goes_back_to_the_app(broker: Broker, channel: BlockingChannel) -> None:
    broker.admin.add_service("price", lambda message: f"{message.text} costs 5", exchange="rpc")
    answers: list[Any] = []
    channel.basic_consume(
        "amq.rabbitmq.reply-to",
        lambda _channel, _deliver, properties, body: answers.append((properties.correlation_id, body)),
        auto_ack=True,
    )
    properties = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="c1")
    channel.basic_publish("rpc", "price", b"tea", properties)
    while not answers:
        channel.connection.process_data_events(time_limit=None)
    assert answers == [("c1", b"tea costs 5")]


def test_answer_of_a_service_without_reply_to_is_not_published(broker: Broker) -> None:
    service = broker.admin.add_service("price", lambda _: b"5")
    broker.publish(b"tea", exchange="amq.system", routing_key="price")
    service.wait()
    assert len(broker.published.with_own) == 1


def test_a_service_may_use_the_broker(broker: Broker, channel: BlockingChannel) -> None:
    channel.queue_declare("log")

    def copy(message: ServiceMessage) -> None:
        broker.publish(message.body, routing_key="log")

    broker.admin.add_service("copy", copy)
    broker.publish(b"note", exchange="amq.system", routing_key="copy")
    broker.queue("log").wait_for(ready=1)


def test_a_service_is_called_at_the_instant_of_the_publish() -> None:
    with Broker(clock="virtual") as broker:
        times: list[Any] = []
        service = broker.admin.add_service("when", lambda _: times.append(broker.clock.now()))
        begin = broker.clock.now()
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            arguments = {"x-dead-letter-exchange": "amq.system", "x-dead-letter-routing-key": "when"}
            channel.queue_declare("q", arguments={**arguments, "x-message-ttl": 5000})
            channel.basic_publish("", "q", b"late")
            broker.queue("q").wait_for(ready=1)
        broker.clock.advance(60)
        service.wait()
        assert times == [begin + timedelta(seconds=5)]


# --- exceptions ------------------------------------------------------------------------------------------


def test_exception_of_a_service_is_raised_in_the_test_and_not_the_client(
    broker: Broker, channel: BlockingChannel, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: ServiceMessage) -> None:
        raise LookupError("no such customer")

    service = broker.admin.add_service("fails", fail)
    channel.confirm_delivery()
    with caplog.at_level(logging.WARNING, "fakeamqp"):
        channel.basic_publish("amq.system", "fails", b"1", mandatory=True)
        with pytest.raises(LookupError, match="no such customer"):
            service.wait()
    assert "the handler of service 'fails' has failed: LookupError('no such customer')" in caplog.text
    channel.queue_declare("goes-on")
    service.wait()  # Raised once only.
    assert isinstance(service.error, LookupError)
    assert broker.admin.failures == ()


def test_an_answer_must_be_bytes_or_text(broker: Broker) -> None:
    service = broker.admin.add_service("price", lambda _: 5)  # type: ignore[arg-type, return-value]
    broker.publish(b"tea", exchange="amq.system", routing_key="price", reply_to="q")
    with pytest.raises(TypeError, match="returns bytes, str or None, not 5"):
        service.wait()


# --- life cycle --------------------------------------------------------------------------------------------


def test_removed_service_gets_no_more_messages(broker: Broker) -> None:
    got: list[ServiceMessage] = []
    with broker.admin.add_service("s", got.append) as service:
        broker.publish(b"1", exchange="amq.system", routing_key="s")
        service.wait()
    assert broker.publish(b"2", exchange="amq.system", routing_key="s").unroutable
    broker.wait_until_idle()
    assert [message.body for message in got] == [b"1"]
    again = broker.admin.add_service("s", got.append)
    broker.publish(b"3", exchange="amq.system", routing_key="s")
    again.wait()


def test_services_survive_a_restart_but_not_a_reset(broker: Broker) -> None:
    service = broker.admin.add_service("s", lambda _: None, exchange="services")
    broker.restart()
    broker.publish(b"1", exchange="services", routing_key="s")
    service.wait()
    broker.reset()
    with pytest.raises(FakeAMQPError, match="no exchange 'services'"):
        broker.publish(b"2", exchange="services", routing_key="s")
    broker.admin.add_service("s", lambda _: None)


def test_service_wait_timeout_names_the_service_and_its_call_count(broker: Broker) -> None:
    service = broker.admin.add_service("s", lambda _: None)
    with pytest.raises(WaitTimeout, match="the handler of service 's' was called 0 times in 0 s, and not 1"):
        service.wait(timeout=0)


def test_virtual_hosts_have_services_of_their_own(broker: Broker) -> None:
    broker.admin.add_virtual_host("other")
    got: list[ServiceMessage] = []
    service = broker.admin.add_service("s", got.append, virtual_host="other")
    broker.publish(b"1", exchange="amq.system", routing_key="s", virtual_host="other")
    service.wait()
    assert got[0].virtual_host == "other"
    with pytest.raises(FakeAMQPError, match=r"no exchange 'amq\.system'"):
        broker.publish(b"2", exchange="amq.system", routing_key="s")


def test_exported_definitions_contain_system_exchanges_only_under_spec(broker: Broker) -> None:
    broker.admin.add_service("s", lambda _: None, exchange="services")
    assert broker.definitions()["exchanges"] == []
    with Broker(personality="spec") as spec:
        spec.admin.add_service("s", lambda _: None, exchange="services")
        [exported] = spec.definitions()["exchanges"]
    assert (exported["name"], exported["type"]) == ("services", "system")


def test_explanation_mentions_the_service_of_the_test(broker: Broker) -> None:
    broker.admin.add_service("s", lambda _: None)
    explained = str(broker.exchange("amq.system").explain(routing_key="s"))
    assert "handed to the service of the test" in explained


# --- wrong registrations ------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1/exchange-type.system/amq-services-reserved")
def test_names_of_services_that_begin_with_amq_are_reserved(broker: Broker) -> None:
    with pytest.raises(BadRegistration, match=r"must not begin with 'amq\.'"):
        broker.admin.add_service("amq.x", lambda _: None)


@rows(
    "arguments, words",
    ({"name": ""}, "1 to 255 bytes"),
    ({"name": 5}, "must be a str"),
    ({"name": "s" * 256}, "1 to 255 bytes"),
    ({"name": "taken"}, "registered already; remove it first"),
    ({"handler": "print"}, "must be callable, not 'print'"),
    ({"contents": ("bsic",)}, "did you mean 'basic'"),
    ({"contents": "bsic"}, "did you mean 'basic'"),
    ({"exchange": "amq.direct"}, "is of type 'direct', not 'system'"),
    ({"virtual_host": "nowhere"}, "vhost nowhere not found"),
)
def test_invalid_service_registrations_are_refused_with_a_helpful_message(
    broker: Broker, arguments: dict[str, Any], words: str
) -> None:
    broker.admin.add_service("taken", lambda _: None)
    with pytest.raises(FakeAMQPError, match=words):
        broker.admin.add_service(**{"name": "s", "handler": print, **arguments})
    assert broker.publish(b"", exchange="amq.system", routing_key="s").unroutable


def test_service_refuses_contents_of_another_class(broker: Broker, channel: BlockingChannel) -> None:
    broker.admin.add_service("files", lambda _: None, contents=["file"])
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="takes no contents of class basic"):
        channel.basic_publish("amq.system", "files", b"")
