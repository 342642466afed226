"""qpid.messaging, the high-level API of Apache's Python client: AMQP 0-10; and pika beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pika
import pytest

from compat_tests.clients.qpid.remote import Remote, RemoteError
from fakeamqp import Broker

TIMEOUT = 10
RECONNECTING = {"reconnect": True, "reconnect_interval": 0.1, "reconnect_log": False}


@pytest.fixture
def messaging(remote: Remote) -> Any:
    return remote.module("qpid.messaging")


@contextmanager
def established(messaging: Any, broker: Broker, url: str = "", **options: Any) -> Iterator[Any]:
    """A connection, closed in the end unless it is lost by then."""
    url = url or f"guest/guest@{broker.host}:{broker.port}"
    opened = messaging.Connection.establish(url, timeout=TIMEOUT, **options)
    yield opened
    broker.faults.clear()
    try:
        opened.close(timeout=TIMEOUT)
    except RemoteError:
        broker.wait_for(lambda: not broker.connections)


@pytest.fixture
def connection(broker: Broker, messaging: Any) -> Iterator[Any]:
    with established(messaging, broker) as opened:
        yield opened


@pytest.fixture
def session(connection: Any) -> Any:
    return connection.session()


@pytest.mark.parametrize(
    "content",
    [
        b"octets \0\xff",
        "text \u20ac",
        {"number": 7, "list": [1, "two", None, 2.5, True]},
        ["a", {"b": -1}],
        b"",
    ],
    ids=["octets", "text", "map", "list", "empty"],
)
def test_content(session: Any, messaging: Any, content: Any) -> None:
    session.sender("orders; {create: always}").send(messaging.Message(content), timeout=TIMEOUT)
    message = session.receiver("orders").fetch(timeout=TIMEOUT)
    assert message.content == content
    session.acknowledge()


def test_every_property(broker: Broker, session: Any, messaging: Any) -> None:
    identity = UUID(int=7)
    headers = {
        "text": "t\u20ac",
        "octets": b"\xff\0",
        "whole": -(2**40),
        "float": 2.5,
        "flag": True,
        "nothing": None,
        "list": [1, "x"],
        "map": {"a": [b"\x80", {"b": 1}]},
        "uuid": identity,
    }
    sent = messaging.Message(
        content="body",
        subject="new",
        id=identity,
        user_id=b"guest",
        reply_to="amq.topic/answers; {node: {type: topic}}",
        correlation_id=b"\0\x01",
        durable=True,
        priority=7,
        ttl=60.0,
        properties=headers,
    )
    session.sender("orders; {create: always}").send(sent, timeout=TIMEOUT)
    assert broker.queue("orders").messages[0].headers["text"] == "t\u20ac"
    got = session.receiver("orders").fetch(timeout=TIMEOUT)
    assert (got.id, got.user_id, got.correlation_id) == (identity, b"guest", b"\0\x01")
    assert (got.subject, got.content_type, got.content) == ("new", "text/plain", "body")
    assert got.reply_to == "amq.topic/answers; {node: {type: topic}}"
    assert (got.durable, got.priority, got.redelivered) == (True, 7, False)
    assert 0 < got.ttl <= 60
    properties = got.properties
    assert properties.pop("qpid.subject") == "new"
    assert properties.pop(b"x-amqp-0-10.routing-key") == "orders"
    assert properties == headers


def test_a_message_of_many_frames(session: Any, messaging: Any) -> None:
    body = bytes(range(256)) * 4096
    session.sender("large; {create: always}").send(messaging.Message(body), timeout=TIMEOUT)
    assert session.receiver("large").fetch(timeout=TIMEOUT).content == body


def test_browsing(broker: Broker, session: Any) -> None:
    sender = session.sender("orders; {create: always}")
    for each in "abc":
        sender.send(each, timeout=TIMEOUT)
    for _ in range(2):
        browser = session.receiver("orders; {mode: browse}")
        assert [browser.fetch(timeout=TIMEOUT).content for _ in range(3)] == ["a", "b", "c"]
        with pytest.raises(RemoteError, match="Empty"):
            browser.fetch(timeout=0)
        browser.close(timeout=TIMEOUT)
    assert broker.queue("orders").ready == 3


def test_topics(session: Any, messaging: Any) -> None:
    some = session.receiver("amq.topic/orders.*")
    everything = session.receiver("amq.topic")
    sender = session.sender("amq.topic")
    for subject in ("orders.new", "invoices.new"):
        sender.send(messaging.Message(subject, subject=subject), timeout=TIMEOUT)
    assert some.fetch(timeout=TIMEOUT).subject == "orders.new"
    assert [everything.fetch(timeout=TIMEOUT).subject for _ in range(2)] == ["orders.new", "invoices.new"]
    with pytest.raises(RemoteError, match="Empty"):
        some.fetch(timeout=0)


def test_dispositions(session: Any, messaging: Any) -> None:
    dead = session.receiver("amq.fanout")
    orders = "orders; {create: always, node: {x-declare: {alternate-exchange: 'amq.fanout'}}}"
    session.sender(orders).send("order", timeout=TIMEOUT)
    receiver = session.receiver("orders")
    first = receiver.fetch(timeout=TIMEOUT)
    released = messaging.Disposition(messaging.RELEASED, set_redelivered=True)
    session.acknowledge(first, released)
    again = receiver.fetch(timeout=TIMEOUT)
    assert (first.redelivered, again.redelivered) == (False, True)
    session.acknowledge(again, messaging.Disposition(messaging.REJECTED))
    assert dead.fetch(timeout=TIMEOUT).content == "order"
    with pytest.raises(RemoteError, match="Empty"):
        receiver.fetch(timeout=0)


def test_messages_come_in_advance(session: Any) -> None:
    sender = session.sender("orders; {create: always}")
    receiver = session.receiver("orders", capacity=3)
    for number in range(5):
        sender.send(str(number), timeout=TIMEOUT)
    assert [receiver.fetch(timeout=TIMEOUT).content for _ in range(5)] == list("01234")
    session.acknowledge()


def test_a_transaction(broker: Broker, connection: Any) -> None:
    session = connection.session(transactional=True)
    sender = session.sender("orders; {create: always}")
    sender.send("dropped", timeout=TIMEOUT)
    assert broker.queue("orders").ready == 0
    session.rollback(timeout=TIMEOUT)
    sender.send("kept", timeout=TIMEOUT)
    session.commit(timeout=TIMEOUT)
    assert broker.queue("orders").ready == 1
    receiver = session.receiver("orders")
    for redelivered in (False, True):
        # With a timeout above 0 the client would forget, after a rollback, to give credit in bytes again.
        message = receiver.fetch(timeout=0)
        assert (message.content, message.redelivered) == ("kept", redelivered)
        session.acknowledge(sync=False)
        assert broker.queue("orders").unacked == 1
        session.rollback(timeout=TIMEOUT)
    assert receiver.fetch(timeout=0).content == "kept"
    session.acknowledge(sync=False)
    session.commit(timeout=TIMEOUT)
    assert (broker.queue("orders").ready, broker.queue("orders").unacked) == (0, 0)


def test_receiver_of_a_missing_address_raises_not_found_and_session_stays_usable(session: Any) -> None:
    with pytest.raises(RemoteError) as raised:
        session.receiver("nothing")
    assert raised.value.name == "NotFound"
    session.sender("amq.direct").send("on it goes", timeout=TIMEOUT)


def test_an_exception_of_the_broker(connection: Any) -> None:
    with pytest.raises(RemoteError) as raised:
        connection.session().sender("orders; {create: always, node: {x-declare: {alternate-exchange: none}}}")
    assert raised.value.name == "NotFound"
    assert raised.value.text == "there is no exchange 'none'(404)"
    connection.session().sender("orders; {create: always}").send("on it goes", timeout=TIMEOUT)


def test_login(broker: Broker, messaging: Any) -> None:
    address = f"{broker.host}:{broker.port}"
    with pytest.raises(RemoteError):
        messaging.Connection.establish(f"guest/wrong@{address}", timeout=TIMEOUT)
    anonymous = messaging.Connection.establish(address, sasl_mechanisms="ANONYMOUS", timeout=TIMEOUT)
    (seen,) = broker.connections
    assert seen.user == "guest"
    anonymous.close(timeout=TIMEOUT)


def test_tls(messaging: Any, nothing_is_left: None) -> None:
    with Broker(tls=True) as broker:
        url, trusted = f"amqps://guest/guest@localhost:{broker.port}", str(broker.tls.ca_file)
        with established(messaging, broker, url, ssl_trustfile=trusted) as connection:
            session = connection.session()
            session.sender("orders; {create: always}").send("secret", timeout=TIMEOUT)
            assert session.receiver("orders").fetch(timeout=TIMEOUT).content == "secret"


def test_a_certificate_is_a_login(messaging: Any, nothing_is_left: None) -> None:
    with Broker(tls=True, users={"orders": "secret"}) as broker:
        certificate = broker.tls.client_certificate("orders")
        files = {"ssl_certfile": certificate.certificate, "ssl_keyfile": certificate.key}
        with established(
            messaging,
            broker,
            f"amqps://orders@localhost:{broker.port}",
            ssl_trustfile=str(broker.tls.ca_file),
            sasl_mechanisms="EXTERNAL",
            **files,
        ) as connection:
            connection.session().sender("orders; {create: always}").send("order", timeout=TIMEOUT)
            assert broker.connections[0].user == "orders"


def test_reconnecting(broker: Broker, messaging: Any) -> None:
    """The client attaches its sessions anew and sends again what it has no word of."""
    with established(messaging, broker, **RECONNECTING) as connection:
        session = connection.session()
        sender = session.sender("orders; {create: always, node: {durable: True}}", durable=True)
        sender.send("before", timeout=TIMEOUT)
        broker.restart(crash=True)  # Whom a broker tells that it goes, the client leaves alone from then on.
        sender.send("after", timeout=TIMEOUT)
        receiver = session.receiver("orders")
        assert [receiver.fetch(timeout=TIMEOUT).content for _ in range(2)] == ["before", "after"]
        session.acknowledge()


def test_sender_reconnects_after_repeated_cuts_and_loses_no_message(broker: Broker, messaging: Any) -> None:
    with established(messaging, broker, **RECONNECTING) as connection:
        sender = connection.session().sender("orders; {create: always}")
        cut = broker.faults.network.cut_after(bytes=3001, direction="received")  # Each of its connections.
        numbers = [f"{number:03}" for number in range(100)]
        for number in numbers:
            # It waits for ten at a time, so that each connection brings it on, however fast it sends.
            sender.send(number, sync=number.endswith("9"), timeout=TIMEOUT)
        assert cut.hits > 1
        cut.remove()
        got = [message.body.decode() for message in broker.queue("orders").messages]
        assert list(dict.fromkeys(got)) == numbers  # It sends again what it was not told of.


def test_closed_session_and_closed_connection_are_errors_of_their_names(
    broker: Broker, connection: Any
) -> None:
    broker.faults.on("message.transfer", queue="orders").exception(506, "enough").once()
    with pytest.raises(RemoteError) as raised:
        connection.session().sender("orders; {create: always}").send("order", timeout=TIMEOUT)
    assert (raised.value.name, raised.value.text) == ("TargetCapacityExceeded", "enough(506)")
    connection.session().sender("orders").send("order", timeout=TIMEOUT)
    broker.connections[0].close(320, "an operator says so")
    with pytest.raises(RemoteError) as raised:
        connection.session().sender("orders").send("order", timeout=TIMEOUT)
    assert raised.value.name == "ConnectionError"


def test_heartbeats(broker: Broker, messaging: Any) -> None:
    with established(messaging, broker, heartbeat=30):
        assert broker.connections[0].heartbeat == 30


def test_virtual_time(messaging: Any, nothing_is_left: None) -> None:
    with Broker(clock="virtual") as broker, established(messaging, broker, heartbeat=30) as connection:
        session = connection.session()
        sender = session.sender("orders; {create: always}")
        for body, seconds in (("short", 60.0), ("long", 3600.0)):
            sender.send(messaging.Message(body, ttl=seconds), timeout=TIMEOUT)
        broker.clock.advance(1800)
        message = session.receiver("orders").fetch(timeout=TIMEOUT)
        assert (message.content, message.ttl) == ("long", 1800.0)


# --- faults -------------------------------------------------------------------------------------------


def send(session: Any, *contents: bytes) -> None:
    sender = session.sender("orders; {create: always}")
    for content in contents:
        sender.send(content, sync=False)
    sender.sync(timeout=TIMEOUT)


def test_a_lost_delivery(broker: Broker, session: Any) -> None:
    """The command point says which transfer is next, so that what is accepted is what was got."""
    send(session, b"one", b"two", b"three")
    rule = broker.faults.on("message.transfer", direction="sent", body=b"two").drop()
    receiver = session.receiver("orders; {mode: consume}")
    receiver.capacity = 10
    assert [receiver.fetch(timeout=TIMEOUT).content for _ in range(2)] == [b"one", b"three"]
    session.acknowledge()
    assert rule.hits == 1
    [lost] = broker.queue("orders").messages
    assert (lost.body, lost.state) == (b"two", "unacked")


def test_receiver_gets_held_delivery_after_release_and_duplicated_delivery_twice(
    broker: Broker, session: Any
) -> None:
    send(session, b"one", b"two", b"three")
    late = broker.faults.on("message.transfer", direction="sent", body=b"one").hold()
    broker.faults.on("message.transfer", direction="sent", body=b"two").duplicate()
    receiver = session.receiver("orders")
    receiver.capacity = 10
    got = [receiver.fetch(timeout=TIMEOUT).content for _ in range(3)]
    assert got == [b"two", b"two", b"three"]
    assert late.release() == 1
    assert receiver.fetch(timeout=TIMEOUT).content == b"one"
    session.acknowledge()
    broker.queue("orders").wait_for(ready=0, unacked=0)


def test_a_failed_command(broker: Broker, session: Any) -> None:
    broker.faults.on("message.subscribe").exception("resource-limit-exceeded", "no more subscriptions")
    send(session, b"one")
    with pytest.raises(RemoteError, match="no more subscriptions"):
        session.receiver("orders")


def test_no_credit(broker: Broker, session: Any) -> None:
    send(session, b"one")
    with broker.faults.starve("orders"):
        receiver = session.receiver("orders")
        with pytest.raises(RemoteError, match="Empty"):
            receiver.fetch(timeout=0)
    assert receiver.fetch(timeout=TIMEOUT).content == b"one"


def test_a_full_broker(broker: Broker, session: Any) -> None:
    send(session)
    sender = session.sender("orders")
    alarm = broker.faults.memory_alarm()
    sender.send(b"one", sync=False)
    broker.queue("orders").wait_for(ready=1)
    sender.send(b"two", sync=False)
    with pytest.raises(RemoteError, match="Timeout"):
        sender.sync(timeout=0.2)
    assert broker.queue("orders").ready == 1
    alarm.remove()
    sender.sync(timeout=TIMEOUT)
    assert broker.queue("orders").ready == 2


def test_a_lost_connection_is_made_again(broker: Broker, messaging: Any) -> None:
    with established(messaging, broker, **RECONNECTING) as connection:
        session = connection.session()
        send(session, b"one")
        cut = broker.faults.on("message.transfer", direction="sent").once().cut("header", "reset")
        assert session.receiver("orders").fetch(timeout=TIMEOUT).content == b"one"
        session.acknowledge()
        assert cut.hits == 1
        assert broker.queue("orders").ready == 0


@pytest.mark.parametrize("how", ["bad-flags", "unknown-type", "unknown-class", "cut-arguments"])
def test_malformed_frames(broker: Broker, session: Any, how: str) -> None:
    send(session, b"one")
    broker.faults.on("message.transfer", direction="sent").malform(how)
    with pytest.raises(RemoteError):
        session.receiver("orders").fetch(timeout=1)
    assert broker.queue("orders").ready + broker.queue("orders").unacked == 1


# --- beside AMQP 0-9-1 -------------------------------------------------------------------------------


def test_from_pika(channel: Any, session: Any) -> None:
    channel.queue_declare("orders")
    identity = UUID(int=9)
    headers = {
        "text": "t\u20ac",
        "whole": 7,
        "large": 2**40,
        "flag": True,
        "list": [1, "x"],
        "map": {"a": "b"},
    }
    properties = pika.BasicProperties(
        content_type="text/plain",
        content_encoding="utf-8",
        headers=headers,
        delivery_mode=2,
        priority=5,
        correlation_id="c-1",
        reply_to="answers",
        expiration="60000",
        message_id=str(identity),
        user_id="guest",
        app_id="shop",
    )
    channel.basic_publish("", "orders", b"body", properties)
    got = session.receiver("orders").fetch(timeout=TIMEOUT)
    assert (got.content, got.content_type, got.id) == ("body", "text/plain", identity)
    assert (got.correlation_id, got.reply_to, got.user_id) == (b"c-1", "answers", b"guest")
    assert (got.durable, got.priority) == (True, 5)
    assert 0 < got.ttl <= 60
    found = got.properties
    assert found[b"x-amqp-0-10.content-encoding"] == "utf-8"
    assert found[b"x-amqp-0-10.app-id"] == b"shop"
    assert found[b"x-amqp-0-10.routing-key"] == "orders"
    assert {name: found[name] for name in headers} == headers


def test_to_pika(channel: Any, session: Any, messaging: Any) -> None:
    channel.queue_declare("orders")
    identity = UUID(int=10)
    sent = messaging.Message(
        content="body",
        subject="new",
        id=identity,
        user_id=b"guest",
        reply_to="answers",
        correlation_id=b"c-2",
        durable=True,
        priority=7,
        ttl=60.0,
        properties={"text": "t\u20ac", "whole": 7, "flag": True, "list": [1, "x"], "map": {"a": "b"}},
    )
    session.sender("orders").send(sent, timeout=TIMEOUT)
    method, properties, body = channel.basic_get("orders", auto_ack=True)
    assert (method.exchange, method.routing_key, body) == ("", "orders", b"body")
    assert (properties.content_type, properties.message_id) == ("text/plain", str(identity))
    assert (properties.correlation_id, properties.reply_to, properties.user_id) == ("c-2", "answers", "guest")
    assert (properties.delivery_mode, properties.priority) == (2, 7)
    assert 0 < int(properties.expiration) <= 60000
    assert properties.headers == {
        "text": "t\u20ac",
        "whole": 7,
        "flag": True,
        "list": [1, "x"],
        "map": {"a": "b"},
        "qpid.subject": "new",
    }


def test_there_and_back(broker: Broker, channel: Any, session: Any) -> None:
    """Both clients use one exchange, and answer one another."""
    channel.queue_declare("answers")
    channel.queue_bind("answers", "amq.topic", "answers.#")
    questions = session.receiver("amq.topic/questions.#")
    channel.basic_publish(
        "amq.topic", "questions.time", b"?", pika.BasicProperties(reply_to="answers", correlation_id="1")
    )
    question = questions.fetch(timeout=TIMEOUT)
    assert (question.content, question.reply_to) == (b"?", "answers")
    session.sender(question.reply_to).send(b"noon", timeout=TIMEOUT)
    assert channel.basic_get("answers", auto_ack=True)[2] == b"noon"
