"""The management node of AMQP 1.0."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Client, Server, attach, section, sections
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UInt

PAIR = {"name": "pair", "snd_settle_mode": 1, "properties": {Symbol("paired"): True}}


def managed(server: Server) -> Client:
    """A client with both links of the management node, handles 0 and 1."""
    client = server.session()
    client.send(attach(SENDER, "/management", 0, **PAIR)).expect(c.Attach)
    assert client.expect(c.Flow).link_credit == 8
    client.send(attach(RECEIVER, "/management", 1, **PAIR)).expect(c.Attach)
    client.send(c.Flow(incoming_window=99, next_outgoing_id=0, outgoing_window=99, handle=1, link_credit=100))
    return client


def request(client: Client, method: str, path: str, body: Any = None) -> None:
    properties = c.Properties(message_id="id", subject=method, to=path, reply_to="$me")
    octets = properties.encode() + section(0x77, body)
    transfer = c.Transfer(handle=0, delivery_id=0, delivery_tag=b"0", settled=True)
    client.send(transfer, payload=octets)


def ask(client: Client, method: str, path: str, body: Any = None) -> tuple[str, Any]:
    """Status and body of the response."""
    request(client, method, path, body)
    got = next(each for each in client.take_all() if isinstance(each.what, c.Transfer))
    said = sections(got.payload)
    assert said["properties"].correlation_id == "id"
    assert said["application"] == {"http:response": "1.1"}
    return said["properties"].subject, said["value"]


@pytest.mark.rule("1-0/management/queues")
def test_queue_is_declared_shown_purged_and_deleted(server: Server) -> None:
    client = managed(server)
    said = {"durable": True, "arguments": {"x-queue-type": "quorum"}}
    status, queue = ask(client, "PUT", "/queues/a%2Fb", said)
    assert (status, queue["name"], queue["type"]) == ("201", "a/b", "quorum")
    assert ask(client, "PUT", "/queues/a%2Fb", said)[0] == "200"
    server.session().sender("/queues/a%2Fb").publish()
    assert ask(client, "GET", "/queues/a%2Fb")[1]["message_count"] == 1
    assert ask(client, "DELETE", "/queues/a%2Fb/messages") == ("200", {"message_count": 1})
    assert ask(client, "DELETE", "/queues/a%2Fb") == ("200", {"message_count": 0})
    assert ask(client, "DELETE", "/queues/a%2Fb") == ("200", {"message_count": 0})


@pytest.mark.rule("1-0/management/exchanges", "1-0/management/bindings")
def test_exchange_is_declared_bound_and_deleted(server: Server) -> None:
    client = managed(server)
    assert ask(client, "PUT", "/exchanges/x", {"type": "topic"}) == ("204", None)
    said = {"source": "x", "destination_queue": "q", "binding_key": "a.*", "arguments": {}}
    assert ask(client, "POST", "/bindings", said) == ("204", None)
    status, (binding,) = ask(client, "GET", "/bindings?src=x&dstq=q&key=a.%2A")
    assert status == "200"
    assert binding["location"] == "/bindings/src=x;dstq=q;key=a.%2A;args="
    assert isinstance(client.sender("/exchanges/x/a.b", 5).publish(), c.Accepted)
    assert ask(client, "DELETE", binding["location"]) == ("204", None)
    assert isinstance(client.sender("/exchanges/x/a.b", 6).publish(), c.Released)
    assert ask(client, "DELETE", "/exchanges/x") == ("204", None)


REFUSED = {
    "missing": ("GET", "/queues/none", None, "404", "queue 'none' in vhost '/' not found"),
    "property": (
        "PUT",
        "/queues/x",
        {"nope": UInt(1)},
        "400",
        'bad queue property {{utf8,<<"nope">>},{uint,1}}',
    ),
    "name": ("PUT", "/queues/", {}, "400", "declare queue with empty name not allowed"),
    "reserved": (
        "PUT",
        "/queues/amq.x",
        {},
        "403",
        "queue 'amq.x' in vhost '/' starts with reserved prefix 'amq.'",
    ),
    "type": ("PUT", "/exchanges/x", {"type": "nope"}, "400", "unknown exchange type 'nope'"),
    "binding": ("DELETE", "/bindings/x", None, "400", "bad binding path segment 'x'"),
}


@pytest.mark.rule("1-0/management/errors")
@pytest.mark.parametrize("name", REFUSED)
def test_refused_request_is_answered_with_a_status_and_a_text(rabbitmq: Server, name: str) -> None:
    method, path, body, status, text = REFUSED[name]
    assert ask(managed(rabbitmq), method, path, body) == (status, text)


@pytest.mark.rule("1-0/composite/trailing-nulls")
@pytest.mark.parametrize("personality", ["rabbitmq-4.0", "rabbitmq-4.3"])
def test_response_of_4_0_has_all_fields_that_are_null(personality: str) -> None:
    client = managed(Server(personality))
    request(client, "GET", "/queues/none")
    octets = client.take_bytes()
    transfer, properties = (octets.partition(bytes((0, 0x53, code)))[2] for code in (0x14, 0x73))
    counts = (transfer[2], properties[2])
    # RabbitMQ: measured on 4.0.5, where each ends in nulls.
    assert counts == ((11, 13) if personality == "rabbitmq-4.0" else (6, 6))


@pytest.mark.rule("1-0/management/errors")
def test_queue_that_differs_is_a_conflict(rabbitmq: Server) -> None:
    client = managed(rabbitmq)
    ask(client, "PUT", "/queues/x", {})
    status, text = ask(client, "PUT", "/queues/x", {"auto_delete": True})
    assert status == "409" and text.startswith("inequivalent arg 'auto_delete' for queue 'x'")


@pytest.mark.rule("1-0/management/crash")
def test_unknown_request_ends_the_session(server: Server) -> None:
    client = managed(server)
    request(client, "GET", "/nothing")
    client.expect_end("amqp:internal-error")


@pytest.mark.rule("1-0/management/pair")
def test_request_on_half_a_pair_ends_the_session(server: Server) -> None:
    client = server.session()
    client.send(attach(SENDER, "/management", 0, **PAIR)).expect(c.Attach)
    client.expect(c.Flow)
    request(client, "GET", "/queues/q")
    client.expect_end("amqp:precondition-failed", "received transfer on half open management link pair")


@pytest.mark.rule("1-0/management/pair")
def test_credit_for_requests_is_granted_again_at_four(server: Server) -> None:
    client = managed(server)
    flows = []
    for _ in range(4):
        request(client, "GET", "/queues/q")
        flows += [each.what for each in client.take_all() if isinstance(each.what, c.Flow)]
    assert [(each.delivery_count, each.link_credit) for each in flows] == [(4, 8)]


@pytest.mark.rule("1-0/management/errors")
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"nope": UInt(1)}, 'bad queue property {{utf8,<<"nope">>},{uint,1}}'),
        ({"durable": "yes"}, 'bad queue property {{utf8,<<"durable">>},{utf8,<<"yes">>}}'),
        ({"exclusive": 1}, 'bad queue property {{utf8,<<"exclusive">>},{long,1}}'),
        (
            {"arguments": {"x-dead-letter-exchange": 5}},
            "invalid type 'long' for arg 'x-dead-letter-exchange'",
        ),
    ],
)
def test_field_of_another_type_is_refused(rabbitmq: Server, body: Any, text: str) -> None:
    assert ask(managed(rabbitmq), "PUT", "/queues/n", body) == ("400", text)


@pytest.mark.rule("1-0/management/queues")
def test_arguments_keep_their_types(server: Server) -> None:
    arguments = {"x-max-length": UInt(5), "x-expires": 100_000, "x-other": [{"k": Symbol("v")}]}
    _, said = ask(managed(server), "PUT", "/queues/n", {"arguments": arguments})
    found = said["arguments"]
    assert [type(found[name]) for name in ("x-max-length", "x-expires")] == [UInt, int]
    assert found["x-other"] == [{Symbol("k"): "v"}]


@pytest.mark.rule("1-0/management/crash")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/queues/n", None),
        ("GET", "/queues/q", {}),
        ("PUT", "/queues/n", {"arguments": []}),
        ("POST", "/bindings", {"source": "amq.direct"}),
    ],
)
def test_request_with_a_body_that_does_not_fit_ends_the_session(
    server: Server, method: str, path: str, body: Any
) -> None:
    client = managed(server)
    request(client, method, path, body)
    client.expect_end("amqp:internal-error")


@pytest.mark.rule("1-0/management/bindings")
def test_path_of_a_binding_has_all_its_parts(server: Server) -> None:
    client = managed(server)
    for segment in ("src=amq.direct", "src=;dstq=q;key=;args=", "dstq=q;src=amq.direct;key=k;args="):
        status, text = ask(client, "DELETE", f"/bindings/{segment}")
        assert (status, text) == ("400", f"bad binding path segment '{segment}'")


@pytest.mark.rule("1-0/management/pair")
def test_link_of_management_without_the_property_paired_is_refused(rabbitmq: Server) -> None:
    said = {**PAIR, "properties": {Symbol("paired"): "true"}}
    for role in (SENDER, RECEIVER):
        _, error = rabbitmq.session().refused(role, "/management", **said)
        assert error.description == "Link property 'paired' is not set to boolean value 'true'"


@pytest.mark.rule("1-0/detach/queue-deleted")
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_links_of_queue_are_detached_after_response_to_its_deletion(server: Server, kind: str) -> None:
    client = managed(server)
    ask(client, "PUT", "/queues/t", {"arguments": {"x-queue-type": kind}})
    client.sender("/queues/t", 2).publish()
    client.receiver("/queues/t", 3)
    request(client, "DELETE", "/queues/t")
    kinds = [type(each.what) for each in client.take_all()]
    assert kinds == [c.Transfer, c.Detach, c.Detach]
