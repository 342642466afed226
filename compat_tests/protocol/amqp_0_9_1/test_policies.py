"""Policies and operator policies: which one counts, and what it does to queues and exchanges."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.operations import carry_out
from fakeamqp.model.policies import PolicyError


def set_policy(
    server: Server,
    name: str,
    definition: dict[str, Any],
    pattern: str = "^q",
    *,
    operator: bool = False,
    priority: float = 0,
    apply_to: str = "all",
) -> None:
    value = {"pattern": pattern, "definition": definition, "priority": priority, "apply-to": apply_to}
    carry_out(server.vhost.policies.setting(name, value, operator=operator))


def applied(server: Server, queue: str) -> tuple[str | None, str | None]:
    """The names of the policy and the operator policy that a queue has."""
    found = server.vhost.queues[queue]
    return tuple(each and each.name for each in (found.policy, found.operator_policy))  # type: ignore[return-value]


@pytest.fixture
def server() -> Server:
    return Server("rabbitmq-4.2")


@pytest.fixture
def client(server: Server) -> Client:
    return server.client()


# --- which one counts ------------------------------------------------------------------------------
@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_policy_applies_to_queues_declared_before_and_after_it(server: Server, client: Client) -> None:
    client.declare("q.before")
    set_policy(server, "p", {"max-length": 1})
    client.declare("q.after").declare("other")
    for queue in ("q.before", "q.after", "other"):
        client.fill(queue, b"1", b"2")
    assert [client.count(queue) for queue in ("q.before", "q.after", "other")] == [1, 1, 2]


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_queue_has_only_the_matching_policy_of_highest_priority(server: Server, client: Client) -> None:
    client.declare("q")
    set_policy(server, "low", {"message-ttl": 1000}, priority=1)
    set_policy(server, "high", {"max-length": 1}, priority=2)
    assert applied(server, "q") == ("high", None)
    assert server.vhost.queues["q"].options.message_ttl is None
    carry_out(server.vhost.policies.clearing("high"))
    assert applied(server, "q") == ("low", None)
    assert server.vhost.queues["q"].options.message_ttl == 1.0


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_first_policy_by_name_is_applied_among_equal_priorities(server: Server, client: Client) -> None:
    client.declare("q")
    for name in ("zeta", "alpha", "mid"):
        set_policy(server, name, {"max-length": 1})
    assert applied(server, "q") == ("alpha", None)


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_policy_with_key_of_another_queue_type_is_not_applied(server: Server, client: Client) -> None:
    client.declare("q")
    set_policy(server, "low", {"max-length": 1}, priority=1)
    set_policy(server, "high", {"max-length": 5, "max-age": "1h"}, priority=2)
    assert applied(server, "q") == ("low", None)


@pytest.mark.needs("inspection", "settings", "personality rabbitmq-4.2")
def test_policy_does_not_apply_to_queues_of_other_virtual_host(server: Server) -> None:
    server.state.add_virtual_host("other")
    server.state.access.users["guest"].permissions["other"] = server.state.access.users["guest"].permissions[
        "/"
    ]
    elsewhere = server.client(virtual_host="other")
    set_policy(server, "p", {"max-length": 1})
    assert elsewhere.declare("q").fill("q", b"1", b"2").count("q") == 2


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
@pytest.mark.parametrize("flags", [{"exclusive": True}, {"auto_delete": True}, {"durable": True}])
def test_exclusive_auto_delete_and_durable_queues_have_policies(
    server: Server, client: Client, flags: dict[str, Any]
) -> None:
    set_policy(server, "p", {"max-length": 1}, pattern="")
    for name in ("q", ""):
        queue = client.declare_ok(name, **flags).queue
        assert client.fill(queue, b"1", b"2").empty(queue) == [b"2"]


@pytest.mark.needs("restart", "inspection", "personality rabbitmq-4.2")
def test_policies_survive_a_restart(server: Server, client: Client) -> None:
    client.declare("q", durable=True)
    set_policy(server, "p", {"max-length": 1})
    client = server.restart().client()
    assert client.fill("q", b"1", b"2").empty("q") == [b"2"]


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_redeclare_is_compared_with_declared_arguments_and_not_with_policy(client: Client) -> None:
    client.declare("q", arguments={"x-max-length": 5})
    set_policy(client.server, "p", {"max-length": 1})
    client.declare("q", arguments={"x-max-length": 5}).send_bytes(b"").expect_nothing()


@pytest.mark.needs("own broker")
def test_clearing_a_missing_policy_is_refused(server: Server) -> None:
    with pytest.raises(
        PolicyError, match="there is no policy 'p' in virtual host '/'; there are none"
    ) as problem:
        carry_out(server.vhost.policies.clearing("p"))
    assert problem.value.reason == "Parameter does not exist"
    set_policy(server, "limit", {"max-length": 1}, operator=True)
    with pytest.raises(PolicyError, match="there is no policy 'limit'"):
        carry_out(server.vhost.policies.clearing("limit"))
    with pytest.raises(PolicyError, match=r"no operator policy 'limits' .*; did you mean 'limit'"):
        carry_out(server.vhost.policies.clearing("limits", operator=True))


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_invalid_policy_leaves_the_existing_policy_applied(server: Server, client: Client) -> None:
    client.declare("q")
    set_policy(server, "p", {"max-length": 1})
    with pytest.raises(PolicyError):
        set_policy(server, "p", {"max-length": "2"})
    assert server.vhost.policies.policies["p"].definition == {"max-length": 1}
    assert server.vhost.queues["q"].options.max_length == 1


# --- policies, operator policies and arguments -----------------------------------------------------
@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_stricter_value_of_policy_and_operator_policy_applies(server: Server, client: Client) -> None:
    client.declare("q", arguments={"x-max-length": 4})
    set_policy(server, "p", {"max-length": 3, "message-ttl": 9000})
    set_policy(server, "o", {"max-length": 2, "expires": 60_000}, operator=True)
    options = server.vhost.queues["q"].options
    assert (options.max_length, options.message_ttl, options.expires) == (2, 9.0, 60.0)
    carry_out(server.vhost.policies.clearing("o", operator=True))
    options = server.vhost.queues["q"].options
    assert (options.max_length, options.message_ttl, options.expires) == (3, 9.0, None)
    carry_out(server.vhost.policies.clearing("p"))
    assert server.vhost.queues["q"].options == server.vhost.queues["q"].declared


# --- what it does to queues that are there ---------------------------------------------------------
@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_new_max_length_policy_dead_letters_oldest_messages_to_exchange_of_same_policy(
    server: Server, client: Client
) -> None:
    client.declare("q").declare("dead").fill("q", b"1", b"2", b"3", b"4", b"5")
    set_policy(server, "p", {"max-length": 2, "dead-letter-exchange": "", "dead-letter-routing-key": "dead"})
    assert client.empty("q") == [b"4", b"5"]
    first = client.fetch("dead")
    assert first.body == b"1"
    assert first.properties.headers is not None
    assert first.properties.headers["x-death"][0]["reason"] == "maxlen"


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_unacknowledged_message_is_dropped_by_new_limit_only_after_requeue(client: Client) -> None:
    client.declare("q").fill("q", b"1", b"2", b"3").get("q")
    set_policy(client.server, "p", {"max-length": 1})
    assert client.nack(1).empty("q") == [b"3"]


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_new_max_length_drops_messages_before_overflow_reject_publish_applies(client: Client) -> None:
    client.declare("q").send(_confirms()).inbox.clear()
    client.fill("q", b"1", b"2", b"3", b"4", b"5")
    set_policy(client.server, "p", {"max-length": 2, "overflow": "reject-publish"})
    client.inbox.clear()
    assert client.count("q") == 2
    client.publish(b"6", routing_key="q")
    assert type(client.take_frame().method).__name__ == "BasicNack"


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_new_max_length_drops_no_message_if_queue_already_rejects_publishes(client: Client) -> None:
    client.declare("q", arguments={"x-overflow": "reject-publish"}).fill("q", b"1", b"2", b"3")
    set_policy(client.server, "p", {"max-length": 1})
    assert client.count("q") == 3


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_change_of_overflow_to_drop_head_drops_messages_above_max_length(client: Client) -> None:
    client.declare("q", arguments={"x-max-length": 2})
    set_policy(client.server, "refuse", {"overflow": "reject-publish"})
    assert client.fill("q", b"1", b"2", b"3").count("q") == 2
    set_policy(client.server, "shorter", {"max-length": 1, "overflow": "reject-publish"}, priority=1)
    assert client.count("q") == 2
    carry_out(client.server.vhost.policies.clearing("refuse"))
    carry_out(client.server.vhost.policies.clearing("shorter"))
    set_policy(client.server, "shorter", {"max-length": 1})
    assert client.empty("q") == [b"2"]


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_message_ttl_policy_applies_only_to_messages_published_later(server: Server, client: Client) -> None:
    client.declare("q").fill("q", b"before")
    set_policy(server, "p", {"message-ttl": 1000})
    client.fill("q", b"after")
    server.advance(2)
    assert client.empty("q") == [b"before"]  # And the one behind it has died where it came to the head.
    client.fill("q", b"mortal")
    carry_out(server.vhost.policies.clearing("p"))
    assert client.fill("q", b"immortal").after(1).empty("q") == [b"immortal"]


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_expiry_of_unused_queue_is_counted_from_the_moment_of_the_policy(client: Client) -> None:
    client.declare("q")
    client.server.advance(100)
    set_policy(client.server, "p", {"expires": 1000})
    client.server.advance(0.9)
    assert "q" in client.server.vhost.queues
    client.server.advance(0.2)
    assert "q" not in client.server.vhost.queues


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_queue_does_not_expire_after_its_expires_policy_is_cleared(server: Server, client: Client) -> None:
    client.declare("q")
    set_policy(server, "p", {"expires": 1000})
    carry_out(server.vhost.policies.clearing("p"))
    server.advance(10)
    assert "q" in server.vhost.queues


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_setting_the_same_expires_policy_again_does_not_restart_expiry(client: Client) -> None:
    client.declare("q")
    set_policy(client.server, "p", {"expires": 1000})
    client.server.advance(0.9)
    set_policy(client.server, "p", {"expires": 1000})
    set_policy(client.server, "other", {"max-length": 1}, pattern="^x")
    client.server.advance(0.2)
    assert "q" not in client.server.vhost.queues


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_dead_letter_exchange_of_policy_applies_from_setting_until_clearing(client: Client) -> None:
    client.declare("q").declare("dead").fill("q", b"1", b"2")
    set_policy(client.server, "p", {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"})
    client.get("q")
    assert client.reject(1).count("dead") == 1
    carry_out(client.server.vhost.policies.clearing("p"))
    client.get("q")
    assert client.reject(2).count("dead") == 1


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_consumer_timeout_policy_closes_channel_with_406(server: Server, client: Client) -> None:
    set_policy(server, "p", {"consumer-timeout": 5000})
    client.declare("q").fill("q", b"1").get("q")
    client.after(4).expect_nothing()
    server.advance(2)
    assert "Timeout value used: 5000 ms" in client.expect_channel_close(406).reply_text


# --- exchanges -------------------------------------------------------------------------------------
@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
@pytest.mark.parametrize("exchange", ["x", "amq.direct"])
def test_exchange_has_alternate_exchange_of_policy_until_policy_is_cleared(
    server: Server, client: Client, exchange: str
) -> None:
    client.declare("rest").bind("rest", "amq.fanout")
    server.vhost.exchanges.declare("x", "direct")
    client.publish(b"lost", exchange=exchange, routing_key="nobody")
    set_policy(server, "p", {"alternate-exchange": "amq.fanout"}, pattern=f"^{exchange}$")
    client.publish(b"kept", exchange=exchange, routing_key="nobody")
    carry_out(server.vhost.policies.clearing("p"))
    assert client.publish(b"lost", exchange=exchange, routing_key="nobody").empty("rest") == [b"kept"]


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_exchange_declared_later_has_alternate_exchange_of_policy(server: Server, client: Client) -> None:
    client.declare("rest").bind("rest", "amq.fanout")
    set_policy(server, "p", {"alternate-exchange": "amq.fanout"}, pattern="^x", apply_to="exchanges")
    server.vhost.exchanges.declare("x", "direct")
    assert client.publish(b"kept", exchange="x", routing_key="nobody").empty("rest") == [b"kept"]


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_argument_alternate_exchange_takes_precedence_over_policy(server: Server, client: Client) -> None:
    client.declare("rest").bind("rest", "amq.fanout")
    server.vhost.exchanges.declare("x", "direct", arguments={"alternate-exchange": "amq.fanout"})
    set_policy(server, "p", {"alternate-exchange": "amq.topic"}, pattern="^x")
    assert client.publish(b"kept", exchange="x", routing_key="nobody").empty("rest") == [b"kept"]


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_the_default_exchange_has_no_policy(server: Server, client: Client) -> None:
    client.declare("rest").bind("rest", "amq.fanout")
    set_policy(server, "p", {"alternate-exchange": "amq.fanout"}, pattern="")
    assert client.publish(b"lost", routing_key="nobody").count("rest") == 0


def _confirms() -> Any:
    from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

    return m.ConfirmSelect()


# --- streams ---------------------------------------------------------------------------------------
@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_retention_of_policy_takes_precedence_over_arguments_of_stream(client: Client) -> None:
    client.declare("q", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "1h"})
    set_policy(client.server, "p", {"max-age": "2h", "max-length-bytes": 500}, apply_to="streams")
    options = client.server.vhost.queues["q"].options
    assert (options.max_age, options.max_length_bytes) == (7200.0, 500)
    carry_out(client.server.vhost.policies.clearing("p"))
    options = client.server.vhost.queues["q"].options
    assert (options.max_age, options.max_length_bytes) == (3600.0, None)


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_policy_with_message_ttl_is_not_applied_to_stream(server: Server, client: Client) -> None:
    client.declare("q", durable=True, arguments={"x-queue-type": "stream"})
    set_policy(server, "p", {"message-ttl": 1000})
    assert applied(server, "q") == (None, None)


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_message_that_a_new_max_length_leaves_at_the_head_expires(server: Server, client: Client) -> None:
    client.declare("q").fill("q", b"lasting").fill("q", b"passing", expiration="1000")
    set_policy(server, "p", {"max-length": 1})
    assert client.count("q") == 1
    assert client.after(1).count("q") == 0
