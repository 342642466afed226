"""The type of a queue is asked for without an effect on it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.unit.spark.wire.peers import options
from fakeamqp import Broker
from fakeamqp.model.personality import personality
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.spark.errors import AccessRefused, ConnectionLost, OptionError, QueueNotFound, QueueRefused
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.queue_types import check_is_no_stream, queue_type
from fakeamqp.spark.wire.refusals import refused

PERSONALITIES = ("rabbitmq-3.10", "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.2", "rabbitmq-4.3")
TYPES = ("classic", "quorum", "stream")


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def connection(broker):
    with WireConnection(options(broker.url)) as connection:
        yield connection


def declare(connection, name, kind, **arguments):
    given = {"x-queue-type": kind, **arguments}
    connection.channel().call(m.QueueDeclare(queue=name, durable=True, arguments=given))


@pytest.mark.parametrize("version", PERSONALITIES)
def test_each_version_of_rabbitmq_tells_the_type_and_its_messages_stay_as_they_are(version):
    with Broker(personality=version) as broker, WireConnection(options(broker.url)) as connection:
        for kind in TYPES:
            declare(connection, kind, kind)
            for filled in range(2):
                assert queue_type(connection, kind) == kind
                if not filled:
                    broker.publish(b"m", routing_key=kind)
        for kind in ("classic", "quorum"):
            seen = []
            connection.channel().get(kind, lambda _tag, *content, seen=seen: seen.append(content))
            ((redelivered, _, properties, _),) = seen
            assert not redelivered
            counts = b"x-delivery-countl" + bytes(8)
            assert counts in properties or b"x-delivery-count" not in properties
        assert (connection.lost, broker.consumers) == (None, ())


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_exclusive_or_single_active_consumer_does_not_hide_the_type(connection, kind):
    declare(connection, "q", kind)
    connection.channel().call(m.BasicConsume(queue="q", exclusive=True))
    assert queue_type(connection, "q") == kind
    declare(connection, "single", kind, **{"x-single-active-consumer": True})
    assert queue_type(connection, "single") == kind


def test_another_broker_is_not_asked():
    named = replace(personality("rabbitmq-4.2"), product="Another broker")
    with Broker(personality=named) as broker, WireConnection(options(broker.url)) as connection:
        assert queue_type(connection, "nowhere") is None
        check_is_no_stream(connection, "nowhere")


def test_other_refusals_are_errors_by_their_cause(broker, connection):
    with pytest.raises(QueueNotFound, match=r"cannot consume from queue 'nowhere': .*404.*Declare it first"):
        queue_type(connection, "nowhere")
    with WireConnection(options(broker.url)) as other:
        other.channel().call(m.QueueDeclare(queue="locked", exclusive=True))
        with pytest.raises(QueueRefused, match=r"cannot consume from queue 'locked': .*405.*exclusive queue"):
            queue_type(connection, "locked")
    assert connection.lost is None


def test_user_without_permission_to_read_is_refused():
    users = {"me": {"password": "me", "permissions": {"/": (".*", ".*", "")}}}
    with Broker(users=users) as broker:
        url = f"amqp://me:me@{broker.host}:{broker.port}/"
        with WireConnection(options(url)) as connection:
            declare(connection, "q", "classic")
            with pytest.raises(AccessRefused, match=r"'q': .*403.*needs the permission 'read'"):
                queue_type(connection, "q")


def test_wrong_type_is_an_option_error_that_says_what_to_set(connection):
    declare(connection, "queue", "quorum")
    declare(connection, "stream", "stream")
    check_is_no_stream(connection, "queue")
    with pytest.raises(OptionError, match="'stream' is a stream: set option 'stream' instead of 'queue'"):
        check_is_no_stream(connection, "stream")


def test_lost_connection_is_no_refusal():
    error = refused("cannot consume", ConnectionLost("it ended"))
    assert type(error) is ConnectionLost
    assert str(error) == "cannot consume: it ended"
