"""Sender-selected distribution: the headers CC and BCC (RabbitMQ: documented extension; measured)."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.fixture
def client(rabbitmq: Server) -> Client:
    client = rabbitmq.client()
    for queue in ("q", "r", "s"):
        client.declare(queue)
    return client


def headers_seen(client: Client, queue: str) -> dict[str, object] | None:
    return client.fetch(queue).properties.headers


def test_message_is_routed_to_all_keys_of_its_cc_header(client: Client) -> None:
    client.publish(routing_key="q", headers={"CC": ["r", "s"], "h": 1})
    for queue in ("q", "r", "s"):
        assert headers_seen(client, queue) == {"CC": ["r", "s"], "h": 1}


def test_bcc_header_is_removed_from_every_delivered_copy(client: Client) -> None:
    client.publish(routing_key="q", headers={"BCC": ["r"], "h": 1})
    for queue in ("q", "r"):
        assert headers_seen(client, queue) == {"h": 1}


def test_headers_table_with_only_bcc_is_delivered_as_empty_table(client: Client) -> None:
    client.publish(routing_key="q", headers={"BCC": ["r"]})
    assert headers_seen(client, "q") == {}


def test_message_with_cc_and_bcc_is_routed_to_all_keys(client: Client) -> None:
    client.publish(routing_key="q", headers={"CC": ["r"], "BCC": ["s"]})
    for queue in ("q", "r", "s"):
        assert headers_seen(client, queue) == {"CC": ["r"]}


@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_queue_named_twice_in_cc_or_bcc_receives_one_message(client: Client, name: str) -> None:
    assert client.publish(routing_key="q", headers={name: ["q", "q"]}).count("q") == 1


@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_mandatory_message_routed_only_by_cc_or_bcc_is_not_returned(client: Client, name: str) -> None:
    client.publish(routing_key="nowhere", headers={name: ["q"]}, mandatory=True).expect_nothing()
    assert client.fetch("q").method.routing_key == "nowhere"


@pytest.mark.parametrize(
    ("headers", "seen"),
    [({"CC": ["nowhere"], "h": 1}, {"CC": ["nowhere"], "h": 1}), ({"BCC": ["nowhere"], "h": 1}, {"h": 1})],
)
def test_returned_message_keeps_cc_header_without_bcc_header(
    client: Client, headers: dict[str, object], seen: dict[str, object]
) -> None:
    client.publish(routing_key="no", headers=headers, mandatory=True)
    assert client.expect_content(m.BasicReturn).properties.headers == seen


def test_bcc_header_of_transacted_message_is_applied_at_commit(client: Client) -> None:
    client.perform(m.TxSelect()).publish(routing_key="q", headers={"BCC": ["r"]})
    client.publish(routing_key="no", headers={"BCC": ["nowhere"], "h": 1}, mandatory=True)
    assert client.send(m.TxCommit()).expect_content(m.BasicReturn).properties.headers == {"h": 1}
    client.expect(m.TxCommitOk)
    assert headers_seen(client, "q") == headers_seen(client, "r") == {}


@pytest.mark.parametrize("name", ["CC", "BCC"])
@pytest.mark.parametrize(("value", "kind"), [("q", "longstr"), (5, "signedint"), (None, "void")])
def test_cc_or_bcc_header_of_non_array_type_is_refused(
    client: Client, name: str, value: object, kind: str
) -> None:
    client.publish(routing_key="q", headers={name: value})
    client.expect_channel_close(
        406,
        text=f'PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}',
        at=(60, 40),
    )


@pytest.mark.parametrize("value", [[], [1], [1, "r"]])
def test_non_string_elements_of_cc_header_are_ignored(client: Client, value: list[object]) -> None:
    assert client.publish(routing_key="q", headers={"CC": value}).count("q") == 1
    assert client.count("r") == value.count("r")


def test_lower_case_cc_header_does_not_route(client: Client) -> None:
    assert client.publish(routing_key="q", headers={"cc": ["r"]}).count("r") == 0


def test_cc_keys_are_routed_by_the_topic_exchange_of_the_publish(client: Client) -> None:
    client.bind("q", "amq.topic", "a.*").bind("r", "amq.topic", "b.*")
    client.publish(exchange="amq.topic", routing_key="a.1", headers={"CC": ["b.1"]})
    assert (client.count("q"), client.count("r")) == (1, 1)


def test_publish_without_cc_after_publish_with_cc_is_routed_by_its_own_key_only(client: Client) -> None:
    client.publish(routing_key="q", headers={"CC": ["r"]}).publish(routing_key="q")
    assert (client.count("q"), client.count("r")) == (2, 1)


@pytest.mark.needs("settings")
@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_cc_and_bcc_keys_without_topic_permission_are_refused(rabbitmq: Server, name: str) -> None:
    topics = {("/", "amq.topic"): TopicPermission(write="^a")}
    rabbitmq.state.access.add(User("limited", "secret", (), {"/": Permission()}, topics))
    client = rabbitmq.client(user="limited", password="secret")
    client.publish(exchange="amq.topic", routing_key="a", headers={name: ["a.b"]}).expect_nothing()
    client.publish(exchange="amq.topic", routing_key="a", headers={name: ["b"]})
    assert client.expect_channel_close(403).reply_text == (
        "ACCESS_REFUSED - write access to topic 'b' in exchange 'amq.topic' in vhost '/' "
        "refused for user 'limited'"
    )


def test_spec_personality_does_not_route_by_cc_and_bcc_headers(spec: Server) -> None:
    client = spec.client().declare("q").declare("r")
    client.publish(routing_key="q", headers={"CC": ["r"], "BCC": "r"})
    assert headers_seen(client, "q") == {"CC": ["r"], "BCC": "r"}
    assert client.count("r") == 0
