"""Policies and limits in the hands of a test, and what real clients feel of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pika
import pytest

from fakeamqp import Broker, BrokerError, FakeAMQPError, LimitsError, PolicyError


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(clock="virtual") as broker:
        yield broker


@pytest.fixture
def channel(broker: Broker) -> Iterator[Any]:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        yield connection.channel()


def test_messages_expire_by_policy(broker: Broker, channel: Any) -> None:
    channel.queue_declare("orders", durable=True)
    broker.set_policy("ttl", "^orders$", {"message-ttl": 60_000}, apply_to="queues")
    channel.confirm_delivery()
    channel.basic_publish("", "orders", b"x")
    broker.clock.advance(59)
    assert broker.queue("orders").ready == 1
    broker.clock.advance(1)
    assert broker.queue("orders").ready == 0


def test_a_policy_can_be_looked_at(broker: Broker, channel: Any) -> None:
    channel.queue_declare("orders", durable=True)
    broker.set_policy("cap", "^o", {"max-length": 9}, priority=1)
    broker.set_policy("cap", "", {"max-length": 5}, operator=True, apply_to="queues")
    view = broker.queue("orders").view()
    assert (view.policy, view.operator_policy, view.options.max_length) == ("cap", "cap", 5)
    assert repr(view) == ("<queue 'orders' ready=0 unacked=0 consumers=0 policy='cap' operator_policy='cap'>")
    assert [(policy.name, policy.operator) for policy in broker.policies()] == [("cap", False), ("cap", True)]
    assert repr(broker.policies()) == (
        "(<policy 'cap' '^o' -> {'max-length': 9} priority=1>, "
        "<operator policy 'cap' '' -> {'max-length': 5} apply_to='queues'>)"
    )
    with pytest.raises(TypeError):
        broker.policies()[0].definition["max-length"] = 1
    broker.clear_policy("cap")
    broker.clear_policy("cap", operator=True)
    assert broker.policies() == ()
    assert broker.queue("orders").view().options.max_length is None


def test_an_exchange_shows_its_policy(broker: Broker) -> None:
    broker.set_policy("rest", "^amq.direct$", {"alternate-exchange": "amq.fanout"})
    view = broker.exchange("amq.direct")
    assert (view.policy, view.operator_policy, view.alternate_exchange) == ("rest", None, "amq.fanout")
    assert repr(view).endswith(" policy='rest'>")
    assert broker.exchange("amq.topic").policy is None


def test_policies_are_of_one_virtual_host(broker: Broker) -> None:
    broker.add_virtual_host("shop")
    broker.set_policy("cap", "", {"max-length": 1}, virtual_host="shop")
    assert [policy.virtual_host for policy in broker.policies()] == ["shop"]
    assert repr(broker.policies()[0]) == "<policy 'cap' in virtual host 'shop' '' -> {'max-length': 1}>"
    with pytest.raises(PolicyError, match="there is no policy 'cap' in virtual host '/'"):
        broker.clear_policy("cap")
    with pytest.raises(FakeAMQPError, match="vhost shoop not found"):
        broker.set_policy("cap", "", {"max-length": 1}, virtual_host="shoop")
    broker.clear_policy("cap", "shop")


def test_a_misspelled_policy_is_an_error_that_helps(broker: Broker) -> None:
    with pytest.raises(
        PolicyError, match=r"policy 'ttl': \[\{<<\"mesage-ttl\">>,5\}\] .*; did you mean 'message-ttl'"
    ):
        broker.set_policy("ttl", "", {"mesage-ttl": 5})
    with pytest.raises(PolicyError, match="did you mean 'queues'"):
        broker.set_policy("ttl", "", {"message-ttl": 5}, apply_to="queue")
    assert broker.policies() == ()


def test_policies_last_until_the_broker_begins_anew(broker: Broker) -> None:
    broker.set_policy("cap", "", {"max-length": 1})
    broker.restart()
    assert broker.policies
    broker.reset()
    assert broker.policies() == ()


def test_policies_and_limits_come_back_with_definitions(broker: Broker) -> None:
    broker.add_virtual_host("shop", default_queue_type="classic")
    broker.set_policy("cap", "^o", {"max-length": 9}, virtual_host="shop", priority=3)
    broker.set_policy("ops", "", {"max-length": 5}, operator=True)
    broker.set_limits("shop", max_queues=3)
    broker.set_user_limits("guest", max_channels=9)
    dumped = broker.definitions()
    with Broker(definitions=dumped) as again:
        assert again.policies() == broker.policies()
        assert again.definitions() == dumped
        again.clear_policy("ops", operator=True)
        again.reset()
        assert again.definitions() == dumped


def test_connections_are_limited(broker: Broker, channel: Any) -> None:
    broker.set_limits(max_connections=1)
    with pytest.raises(
        pika.exceptions.ProbableAccessDeniedError, match="connection limit \\(1\\) is reached"
    ):
        pika.BlockingConnection(pika.URLParameters(broker.url))
    broker.set_limits(max_connections=-1)
    pika.BlockingConnection(pika.URLParameters(broker.url)).close()


def test_queues_are_limited(broker: Broker, channel: Any) -> None:
    broker.set_limits(max_queues=0)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="queue limit in vhost '/' \\(0\\)"):
        channel.queue_declare("orders", durable=True)


def test_users_are_limited(broker: Broker, channel: Any) -> None:
    broker.add_user("one", "one")
    broker.set_user_limits("one", max_connections=1, max_channels=1)
    url = broker.url.replace("guest:guest", "one:one")
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match="user connection limit \\(1\\)"):
            pika.BlockingConnection(pika.URLParameters(url))
        connection.channel()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="user limit of 1"):
            connection.channel()


def test_a_limit_that_is_left_out_stays(broker: Broker) -> None:
    broker.set_limits(max_queues=3)
    broker.set_limits(max_connections=5)
    [host] = broker.definitions()["vhosts"]
    assert host["limits"] == {"max-connections": 5, "max-queues": 3}


def test_users_can_have_limits_from_the_beginning() -> None:
    limited = {"password": "u", "limits": {"max-connections": 0}}
    with Broker(users={"u": limited}) as broker, pytest.raises(pika.exceptions.ProbableAccessDeniedError):
        pika.BlockingConnection(pika.URLParameters(broker.url))


def test_limits_for_nobody_are_errors_that_help(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="there is no user 'gues'; did you mean 'guest'"):
        broker.set_user_limits("gues", max_channels=1)
    with pytest.raises(LimitsError, match="max-queues should be a number"):
        broker.set_limits(max_queues="many")  # type: ignore[arg-type]
    with pytest.raises(FakeAMQPError, match="qorum is not a valid queue type; did you mean 'quorum'"):
        broker.add_virtual_host("v", default_queue_type="qorum")
