"""Sender-selected distribution: the headers CC and BCC (RabbitMQ: documented extension; measured)."""

from __future__ import annotations

import pytest

from compat_tests.protocol.driver import Client, Server
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.fixture
def client(rabbitmq: Server) -> Client:
    client = rabbitmq.client()
    for queue in ("q", "r", "s"):
        client.declare(queue)
    return client


def headers_seen(client: Client, queue: str) -> dict[str, object] | None:
    got = client.get(queue)
    assert got is not None
    return got.properties.headers


def test_a_message_goes_to_its_carbon_copies_too(client: Client) -> None:
    client.publish(routing_key="q", headers={"CC": ["r", "s"], "h": 1})
    for queue in ("q", "r", "s"):
        assert headers_seen(client, queue) == {"CC": ["r", "s"], "h": 1}


def test_blind_copies_are_hidden_from_everybody(client: Client) -> None:
    client.publish(routing_key="q", headers={"BCC": ["r"], "h": 1})
    for queue in ("q", "r"):
        assert headers_seen(client, queue) == {"h": 1}


def test_a_table_left_empty_is_still_there(client: Client) -> None:
    client.publish(routing_key="q", headers={"BCC": ["r"]})
    assert headers_seen(client, "q") == {}


def test_both_together_reach_all(client: Client) -> None:
    client.publish(routing_key="q", headers={"CC": ["r"], "BCC": ["s"]})
    for queue in ("q", "r", "s"):
        assert headers_seen(client, queue) == {"CC": ["r"]}


@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_a_queue_named_twice_gets_one_copy(client: Client, name: str) -> None:
    client.publish(routing_key="q", headers={name: ["q", "q"]})
    assert client.count("q") == 1


@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_a_copy_that_routes_is_route_enough_for_a_mandatory_message(client: Client, name: str) -> None:
    client.publish(routing_key="nowhere", headers={name: ["q"]}, mandatory=True)
    client.expect_nothing()
    got = client.get("q")
    assert got is not None
    assert got.method.routing_key == "nowhere"


@pytest.mark.parametrize(
    ("headers", "seen"),
    [
        ({"CC": ["nowhere"], "h": 1}, {"CC": ["nowhere"], "h": 1}),
        ({"BCC": ["nowhere"], "h": 1}, {"h": 1}),
    ],
)
def test_what_is_returned_tells_of_open_copies_only(
    client: Client, headers: dict[str, object], seen: dict[str, object]
) -> None:
    client.publish(routing_key="no", headers=headers, mandatory=True)
    assert client.expect_content(m.BasicReturn).properties.headers == seen


def test_transacted_messages_have_copies_too(client: Client) -> None:
    client.call(m.TxSelect(), m.TxSelectOk)
    client.publish(routing_key="q", headers={"BCC": ["r"]})
    client.publish(routing_key="no", headers={"BCC": ["nowhere"], "h": 1}, mandatory=True)
    client.send(m.TxCommit())
    assert client.expect_content(m.BasicReturn).properties.headers == {"h": 1}
    client.expect(m.TxCommitOk)
    assert headers_seen(client, "q") == headers_seen(client, "r") == {}


@pytest.mark.parametrize("name", ["CC", "BCC"])
@pytest.mark.parametrize(("value", "kind"), [("q", "longstr"), (5, "signedint"), (None, "void")])
def test_copies_must_be_an_array(client: Client, name: str, value: object, kind: str) -> None:
    client.publish(routing_key="q", headers={name: value})
    close = client.expect_channel_close(406)
    assert close.reply_text == (
        f'PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'
    )
    assert (close.class_id, close.method_id) == (60, 40)


@pytest.mark.parametrize("value", [[], [1], [1, "r"]])
def test_what_is_no_text_among_the_copies_counts_for_nothing(client: Client, value: list[object]) -> None:
    client.publish(routing_key="q", headers={"CC": value})
    assert client.count("q") == 1
    assert client.count("r") == value.count("r")


def test_the_names_are_written_in_capitals(client: Client) -> None:
    client.publish(routing_key="q", headers={"cc": ["r"]})
    assert client.count("r") == 0


def test_copies_are_routed_by_whatever_exchange_it_is(client: Client) -> None:
    client.bind("q", "amq.topic", "a.*")
    client.bind("r", "amq.topic", "b.*")
    client.publish(exchange="amq.topic", routing_key="a.1", headers={"CC": ["b.1"]})
    assert (client.count("q"), client.count("r")) == (1, 1)


def test_a_message_without_copies_is_not_routed_like_one_with_them(client: Client) -> None:
    client.publish(routing_key="q", headers={"CC": ["r"]})
    client.publish(routing_key="q")
    assert (client.count("q"), client.count("r")) == (2, 1)


@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_every_key_needs_the_topic_permission(rabbitmq: Server, name: str) -> None:
    topics = {("/", "amq.topic"): TopicPermission(write="^a")}
    rabbitmq.state.access.add(User("limited", "secret", (), {"/": Permission()}, topics))
    client = rabbitmq.client(user="limited", password="secret")
    client.publish(exchange="amq.topic", routing_key="a", headers={name: ["a.b"]})
    client.expect_nothing()
    client.publish(exchange="amq.topic", routing_key="a", headers={name: ["b"]})
    assert client.expect_channel_close(403).reply_text == (
        "ACCESS_REFUSED - write access to topic 'b' in exchange 'amq.topic' in vhost '/' "
        "refused for user 'limited'"
    )


def test_by_the_letter_the_headers_mean_nothing(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    client.declare("r")
    client.publish(routing_key="q", headers={"CC": ["r"], "BCC": "r"})
    assert headers_seen(client, "q") == {"CC": ["r"], "BCC": "r"}
    assert client.count("r") == 0
