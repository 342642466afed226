"""Tests of the meter service: each gets a broker of its own, on which AMQP 1.0 needs no setting."""

from __future__ import annotations

import pytest

from fakeamqp import Broker
from fakeamqp.faults import Faults

readings = pytest.importorskip("readings", reason="python-qpid-proton is not installed")

DEFINITIONS = {
    "queues": [
        {"name": "readings", "vhost": "/", "durable": True, "arguments": {"x-dead-letter-exchange": "bad"}},
        {"name": "bad readings", "vhost": "/", "durable": True},
    ],
    "exchanges": [{"name": "bad", "vhost": "/", "type": "fanout", "durable": True}],
    "bindings": [
        {
            "source": "bad",
            "vhost": "/",
            "destination": "bad readings",
            "destination_type": "queue",
            "routing_key": "",
        }
    ],
}


@pytest.fixture
def url(amqp_broker: Broker) -> str:
    amqp_broker.load_definitions(DEFINITIONS)
    return f"amqp://guest:guest@{amqp_broker.host}:{amqp_broker.port}"


def test_readings_are_added_up(amqp_broker: Broker, url: str) -> None:
    readings.send(url, "north", [3, 4])
    readings.send(url, "south", [5])
    amqp_broker.expect_published(routing_key="readings", headers={"meter": "north"}, count=2)

    collector = readings.collect(url, 3)

    assert collector.totals == {"north": 7, "south": 5}
    amqp_broker.queue("readings").wait_for(ready=0, unacked=0)


def test_a_reading_that_is_no_number_is_dead_lettered(amqp_broker: Broker, url: str) -> None:
    amqp_broker.publish(
        b"broken", routing_key="readings", sections={"application_properties": {"meter": "north"}}
    )

    assert readings.collect(url, 1).rejected == ["broken"]

    [message] = amqp_broker.queue("bad readings").wait_for(ready=1).messages
    assert message.sections["application_properties"] == {"meter": "north"}


def test_a_rejected_and_a_released_reading_are_sent_again(
    amqp_broker: Broker, amqp_faults: Faults, url: str
) -> None:
    amqp_faults.on("transfer", queue="readings", body=b"3").nack().once()
    amqp_faults.on("transfer", queue="readings", body=b"4").return_message().once()

    assert readings.send(url, "north", [3, 4, 5]).attempts == 5

    bodies = [message.body for message in amqp_broker.queue("readings").messages]
    assert sorted(bodies) == [b"3", b"4", b"5"]


def test_a_lost_connection_loses_no_reading(amqp_broker: Broker, amqp_faults: Faults, url: str) -> None:
    lost = amqp_faults.on("transfer", queue="readings").on_call(2).disconnect()

    readings.send(url, "north", [1, 2, 3])

    assert lost.hits == 1
    assert {message.body for message in amqp_broker.queue("readings").messages} == {b"1", b"2", b"3"}


def test_a_duplicate_delivery_is_counted_twice(amqp_faults: Faults, url: str) -> None:
    """At least once, without deduplication: the test documents it."""
    amqp_faults.on("transfer", direction="sent", queue="readings").duplicate().once()
    readings.send(url, "north", [5])

    assert readings.collect(url, 2).totals == {"north": 10}
