"""Policies and limits in the hands of a test, and what real clients feel of them."""

from __future__ import annotations

from typing import Any

import pika
import pytest

from fakeamqp import Broker, BrokerError, FakeAMQPError
from fakeamqp.errors import LimitsError, PolicyError

OPTIONS = {"clock": "virtual"}


def test_messages_expire_after_the_message_ttl_of_a_policy(broker: Broker, channel: Any) -> None:
    channel.queue_declare("orders", durable=True)
    broker.admin.set_policy("ttl", "^orders$", {"message-ttl": 60_000}, apply_to="queues")
    channel.confirm_delivery()
    channel.basic_publish("", "orders", b"x")
    broker.clock.advance(59)
    assert broker.queue("orders").ready == 1
    broker.clock.advance(1)
    assert broker.queue("orders").ready == 0


def test_views_show_policies_and_operator_policies_until_cleared(broker: Broker, channel: Any) -> None:
    channel.queue_declare("orders", durable=True)
    broker.admin.set_policy("cap", "^o", {"max-length": 9}, priority=1)
    broker.admin.set_policy("cap", "", {"max-length": 5}, operator=True, apply_to="queues")
    view = broker.queue("orders").view()
    assert (view.policy, view.operator_policy, view.options.max_length) == ("cap", "cap", 5)
    assert repr(view) == ("<queue 'orders' ready=0 unacked=0 consumers=0 policy='cap' operator_policy='cap'>")
    assert [(policy.name, policy.operator) for policy in broker.policies] == [("cap", False), ("cap", True)]
    assert repr(broker.policies) == (
        "<2 policies:\n"
        "  <policy 'cap' '^o' -> {'max-length': 9} priority=1>\n"
        "  <operator policy 'cap' '' -> {'max-length': 5} apply_to='queues'>\n"
        ">"
    )
    with pytest.raises(TypeError):
        broker.policies[0].definition["max-length"] = 1
    broker.admin.clear_policy("cap")
    broker.admin.clear_policy("cap", operator=True)
    assert broker.policies == ()
    assert broker.queue("orders").view().options.max_length is None


def test_an_exchange_shows_its_policy(broker: Broker) -> None:
    broker.admin.set_policy("rest", "^amq.direct$", {"alternate-exchange": "amq.fanout"})
    view = broker.exchange("amq.direct")
    assert (view.policy, view.operator_policy, view.alternate_exchange) == ("rest", None, "amq.fanout")
    assert repr(view).endswith(" policy='rest'>")
    assert broker.exchange("amq.topic").policy is None


def test_policy_belongs_to_a_single_virtual_host(broker: Broker) -> None:
    broker.admin.add_virtual_host("shop")
    broker.admin.set_policy("cap", "", {"max-length": 1}, virtual_host="shop")
    assert [policy.virtual_host for policy in broker.policies] == ["shop"]
    assert repr(broker.policies[0]) == "<policy 'cap' in virtual host 'shop' '' -> {'max-length': 1}>"
    with pytest.raises(PolicyError, match="there is no policy 'cap' in virtual host '/'"):
        broker.admin.clear_policy("cap")
    with pytest.raises(FakeAMQPError, match="vhost shoop not found"):
        broker.admin.set_policy("cap", "", {"max-length": 1}, virtual_host="shoop")
    broker.admin.clear_policy("cap", "shop")


def test_misspelled_policy_is_refused_with_a_near_match(broker: Broker) -> None:
    with pytest.raises(
        PolicyError, match=r"policy 'ttl': \[\{<<\"mesage-ttl\">>,5\}\] .*; did you mean 'message-ttl'"
    ):
        broker.admin.set_policy("ttl", "", {"mesage-ttl": 5})
    with pytest.raises(PolicyError, match="did you mean 'queues'"):
        broker.admin.set_policy("ttl", "", {"message-ttl": 5}, apply_to="queue")
    assert broker.policies == ()


def test_policies_survive_a_restart_but_not_a_reset(broker: Broker) -> None:
    broker.admin.set_policy("cap", "", {"max-length": 1})
    broker.restart()
    assert [policy.name for policy in broker.policies] == ["cap"]
    broker.reset()
    assert broker.policies == ()


def test_exported_definitions_restore_policies_and_limits(broker: Broker) -> None:
    broker.admin.add_virtual_host("shop", default_queue_type="classic")
    broker.admin.set_policy("cap", "^o", {"max-length": 9}, virtual_host="shop", priority=3)
    broker.admin.set_policy("ops", "", {"max-length": 5}, operator=True)
    broker.admin.set_limits("shop", max_queues=3)
    broker.admin.set_user_limits("guest", max_channels=9)
    dumped = broker.definitions()
    with Broker(definitions=dumped) as again:
        assert again.policies == broker.policies
        assert again.definitions() == dumped
        again.admin.clear_policy("ops", operator=True)
        again.reset()
        assert again.definitions() == dumped


def test_connection_above_the_virtual_host_limit_is_refused(broker: Broker, channel: Any) -> None:
    broker.admin.set_limits(max_connections=1)
    with pytest.raises(
        pika.exceptions.ProbableAccessDeniedError, match="connection limit \\(1\\) is reached"
    ):
        pika.BlockingConnection(pika.URLParameters(broker.url))
    broker.admin.set_limits(max_connections=-1)
    pika.BlockingConnection(pika.URLParameters(broker.url)).close()


def test_queue_above_the_virtual_host_limit_is_refused(broker: Broker, channel: Any) -> None:
    broker.admin.set_limits(max_queues=0)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="queue limit in vhost '/' \\(0\\)"):
        channel.queue_declare("orders", durable=True)


def test_connection_and_channel_above_the_user_limits_are_refused(broker: Broker, channel: Any) -> None:
    broker.admin.add_user("one", "one")
    broker.admin.set_user_limits("one", max_connections=1, max_channels=1)
    url = broker.url.replace("guest:guest", "one:one")
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match="user connection limit \\(1\\)"):
            pika.BlockingConnection(pika.URLParameters(url))
        connection.channel()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="user limit of 1"):
            connection.channel()


def test_set_limits_keeps_limits_without_a_new_value(broker: Broker) -> None:
    broker.admin.set_limits(max_queues=3)
    broker.admin.set_limits(max_connections=5)
    [host] = broker.definitions()["vhosts"]
    assert host["limits"] == {"max-connections": 5, "max-queues": 3}


def test_limits_of_a_user_can_be_given_to_the_broker() -> None:
    limited = {"password": "u", "limits": {"max-connections": 0}}
    with Broker(users={"u": limited}) as broker, pytest.raises(pika.exceptions.ProbableAccessDeniedError):
        pika.BlockingConnection(pika.URLParameters(broker.url))


def test_unknown_user_invalid_limit_and_unknown_queue_type_are_refused(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="there is no user 'gues'; did you mean 'guest'"):
        broker.admin.set_user_limits("gues", max_channels=1)
    with pytest.raises(LimitsError, match="max-queues should be a number"):
        broker.admin.set_limits(max_queues="many")  # type: ignore[arg-type]
    with pytest.raises(FakeAMQPError, match="qorum is not a valid queue type; did you mean 'quorum'"):
        broker.admin.add_virtual_host("v", default_queue_type="qorum")
