"""Declaring and deleting streams: what is asked of them, in which order, and what counts as the same."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.streams import (
    ALL,
    BEFORE_4_2,
    QUEUE,
    RABBITMQ,
    consume,
    crashed,
    declare,
    refused_connection,
)
from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import QueueDeclare

STREAM = {"x-queue-type": "stream"}


@pytest.fixture(params=ALL)
def server(request: pytest.FixtureRequest) -> Server:
    return Server(request.param)


def asked(arguments: dict[str, Any], **flags: Any) -> QueueDeclare:
    return QueueDeclare(**{"queue": "s", "durable": True, **flags, "arguments": {**STREAM, **arguments}})


def refused_with(client: Client, method: QueueDeclare, text: str) -> None:
    refused(client, method, 406, f"PRECONDITION_FAILED - {text}")
    assert "s" not in client.server.vhost.queues


# --- flags -------------------------------------------------------------------------------------------------
@pytest.mark.needs("inspection")
def test_server_named_stream_is_refused(server: Server) -> None:
    text = "Cannot declare a server-named queue for type rabbit_stream_queue"
    # Before anything else is looked at.
    refused_with(
        server.client(), asked({"x-max-age": "bad", "x-max-length": 1}, queue="", durable=False), text
    )


@pytest.mark.needs("inspection")
@rows(
    "flags, named",
    ({"durable": False}, "non-durable"),
    ({"exclusive": True}, "exclusive-owner"),
    ({"auto_delete": True}, "auto-delete"),
    ({"durable": False, "exclusive": True, "auto_delete": True}, "auto-delete"),
    ({"durable": False, "exclusive": True}, "exclusive-owner"),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_transient_or_exclusive_stream_is_refused(server: Server, flags: dict[str, Any], named: str) -> None:
    if flags == {"durable": False} and server.state.personality.name == "rabbitmq-4.3":
        pytest.skip("transient queues are denied whatever their type")
    refused_with(server.client(), asked({}, **flags), f"invalid property '{named}' for {QUEUE}")


# --- arguments ---------------------------------------------------------------------------------------------

ILLEGAL = [
    ("x-max-length-bytes", "5", '"expected integer, got longstr"'),
    ("x-max-length-bytes", -1, "{value_negative,-1}"),
    ("x-max-age", 5, "{unacceptable_type,signedint}"),
    ("x-max-age", True, "{unacceptable_type,bool}"),
    *(("x-max-age", age, "invalid_max_age") for age in ("3600", "0s", "1w", "1s ", "1S", "1.5h", "1h1m")),
    ("x-stream-max-segment-size-bytes", "5", '"expected integer, got longstr"'),
    ("x-stream-max-segment-size-bytes", -1, "{value_negative,-1}"),
    ("x-initial-cluster-size", 0, "{value_zero,0}"),
    ("x-initial-cluster-size", "1", '"expected integer, got longstr"'),
    ("x-queue-leader-locator", "nearest", "invalid_queue_locator_arg"),
    ("x-queue-leader-locator", 5, "{unacceptable_type,signedint}"),
]


@pytest.mark.needs("inspection")
@pytest.mark.parametrize(("argument", "value", "reason"), ILLEGAL, ids=[f"{a}={v!r}" for a, v, _ in ILLEGAL])
def test_invalid_stream_arguments_are_refused_with_406_and_text_of_rabbitmq(
    server: Server, argument: str, value: Any, reason: str
) -> None:
    refused_with(server.client(), asked({argument: value}), f"invalid arg '{argument}' for {QUEUE}: {reason}")


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("age", ["", "-1s", " 1s", "bad"])
def test_x_max_age_without_leading_digit_is_refused_since_4_2(server: Server, age: str) -> None:
    client = server.client()
    if server.state.personality.name in BEFORE_4_2:
        crashed(client, asked({"x-max-age": age}))
    else:
        refused_with(
            client, asked({"x-max-age": age}), f"invalid arg 'x-max-age' for {QUEUE}: invalid_max_age"
        )


@pytest.mark.parametrize("age", ["1Y", "2M", "3D", "4h", "5m", "60s", "007s", "1h\n"])
def test_x_max_age_of_number_and_one_unit_is_accepted(server: Server, age: str) -> None:
    declare(server.client(), max_age=age)


LEGAL: list[dict[str, Any]] = [
    {"x-max-length-bytes": 0},
    {"x-stream-max-segment-size-bytes": 0},
    {"x-stream-max-segment-size-bytes": 3_000_000_000},
    {"x-stream-filter-size-bytes": 16},
    {"x-stream-filter-size-bytes": 255},
    {"x-initial-cluster-size": 7},
    *({"x-queue-leader-locator": each} for each in ("client-local", "balanced", "random", "least-leaders")),
    {"x-foo": 1, "alternate-exchange": "a", "x-quorum-target-group-size": "none"},
]


@pytest.mark.parametrize("arguments", LEGAL, ids=repr)
def test_valid_stream_arguments_may_be_repeated(server: Server, arguments: dict[str, Any]) -> None:
    client = server.client()
    for _ in range(2):
        client.call(asked(arguments), m.QueueDeclareOk)


OF_OTHERS = (
    "x-max-length",
    "x-message-ttl",
    "x-expires",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-overflow",
    "x-max-priority",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-delivery-limit",
    "x-quorum-initial-group-size",
    "x-queue-master-locator",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
)


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("argument", OF_OTHERS)
def test_arguments_of_other_queue_types_are_refused_for_stream(server: Server, argument: str) -> None:
    text = f"invalid arg '{argument}' for {QUEUE} of queue type rabbit_stream_queue"
    refused_with(server.client(), asked({argument: "bad"}), text)


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("name", RABBITMQ)
@pytest.mark.parametrize("argument", ["x-consumer-timeout", "x-delayed-retry-type"])
def test_quorum_queue_arguments_new_in_4_3_are_refused_for_stream_since_4_3(name: str, argument: str) -> None:
    client = Server(name).client()
    if name == "rabbitmq-4.3":
        text = f"invalid arg '{argument}' for {QUEUE} of queue type rabbit_stream_queue"
        refused_with(client, asked({argument: "bad"}), text)
    else:
        client.call(asked({argument: "bad"}), m.QueueDeclareOk)


@pytest.mark.parametrize("name", RABBITMQ)
def test_leader_locator_min_masters_is_accepted_since_4_0(name: str) -> None:
    client = Server(name).client()
    method = asked({"x-queue-leader-locator": "min-masters"})
    if name == "rabbitmq-3.13":
        text = f"invalid arg 'x-queue-leader-locator' for {QUEUE}: invalid_queue_locator_arg"
        refused_with(client, method, text)
    else:
        client.call(method, m.QueueDeclareOk)


# --- limits that are looked at last ------------------------------------------------------------------------
@pytest.mark.needs("inspection")
def test_segment_size_above_3_000_000_000_is_refused(server: Server) -> None:
    text = "Exceeded max value for x-stream-max-segment-size-bytes"
    refused_with(server.client(), asked({"x-stream-max-segment-size-bytes": 3_000_000_001}), text)


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("size", [0, 15, 256])
def test_filter_size_outside_16_to_255_is_refused(server: Server, size: int) -> None:
    spaces = "  " if server.state.personality.name in BEFORE_4_2 else " "
    text = f"Invalid value for{spaces}x-stream-filter-size-bytes"
    refused_with(server.client(), asked({"x-stream-filter-size-bytes": size}), text)


@pytest.mark.needs("inspection")
@rows("size, reason", ("20", '"expected integer, got longstr"'), (-1, "{value_negative,-1}"))
def test_negative_or_text_filter_size_is_refused(server: Server, size: Any, reason: str) -> None:
    text = f"invalid arg 'x-stream-filter-size-bytes' for {QUEUE}: {reason}"
    if server.state.personality.name in BEFORE_4_2:
        text = "Invalid value for  x-stream-filter-size-bytes"
    refused_with(server.client(), asked({"x-stream-filter-size-bytes": size}), text)


# --- order -------------------------------------------------------------------------------------------------

IN_ORDER: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"x-dead-letter-exchange": 5},
        {},
        f"invalid type 'signedint' for arg 'x-dead-letter-exchange' in {QUEUE}",
    ),
    ({"x-max-length-bytes": -1}, {}, f"invalid arg 'x-max-length-bytes' for {QUEUE}: {{value_negative,-1}}"),
    ({"x-max-age": "1w"}, {}, f"invalid arg 'x-max-age' for {QUEUE}: invalid_max_age"),
    (
        {"x-initial-cluster-size": 0},
        {},
        f"invalid arg 'x-initial-cluster-size' for {QUEUE}: {{value_zero,0}}",
    ),
    (
        {"x-queue-leader-locator": "bad"},
        {},
        f"invalid arg 'x-queue-leader-locator' for {QUEUE}: invalid_queue_locator_arg",
    ),
    ({"x-expires": 1}, {}, f"invalid arg 'x-expires' for {QUEUE} of queue type rabbit_stream_queue"),
    ({}, {"auto_delete": True}, f"invalid property 'auto-delete' for {QUEUE}"),
    ({}, {"exclusive": True}, f"invalid property 'exclusive-owner' for {QUEUE}"),
    ({}, {"durable": False}, f"invalid property 'non-durable' for {QUEUE}"),
    (
        {"x-stream-max-segment-size-bytes": 3_000_000_001},
        {},
        "Exceeded max value for x-stream-max-segment-size-bytes",
    ),
]


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("first", range(len(IN_ORDER)))
def test_first_of_several_invalid_arguments_in_order_of_rabbitmq_is_named(server: Server, first: int) -> None:
    arguments: dict[str, Any] = {"x-stream-filter-size-bytes": 3}
    flags: dict[str, Any] = {}
    for more_arguments, more_flags, _ in reversed(IN_ORDER[first:]):
        arguments |= more_arguments
        flags |= more_flags
    refused_with(server.client(), asked(arguments, **flags), IN_ORDER[first][2])


@pytest.mark.needs("inspection")
def test_first_unsupported_argument_in_order_of_client_is_named(server: Server) -> None:
    for argument in ("x-expires", "x-max-length"):
        names = [argument, "x-expires", "x-max-length"]
        text = f"invalid arg '{argument}' for {QUEUE} of queue type rabbit_stream_queue"
        refused_with(server.client(), asked(dict.fromkeys(names, 1)), text)


# --- declaring again ---------------------------------------------------------------------------------------

COMPARED = [
    ("x-max-length-bytes", 5, 6, "signedint"),
    ("x-max-age", "1h", "61m", "longstr"),
    ("x-stream-max-segment-size-bytes", 5, 6, "signedint"),
    ("x-initial-cluster-size", 1, 2, "signedint"),
    ("x-queue-leader-locator", "balanced", "client-local", "longstr"),
]


@pytest.mark.parametrize(("argument", "old", "new", "kind"), COMPARED, ids=[each[0] for each in COMPARED])
def test_redeclare_of_stream_must_repeat_its_arguments(
    server: Server, argument: str, old: Any, new: Any, kind: str
) -> None:
    about = f"PRECONDITION_FAILED - inequivalent arg '{argument}' for {QUEUE}: received"
    client = server.client()
    given = old
    client.call(asked({argument: old}), m.QueueDeclareOk)
    if argument == "x-max-age" and server.state.personality.compares_ages:
        old, changed = "3600000", "3660000"  # Measured on 4.3.6.
    else:
        changed = new
    refused(client, asked({argument: new}), 406, f"{about} '{changed}' but current is '{old}'")
    removed = f"{about} none but current is the value '{old}' of type '{kind}'"
    refused(client, asked({}), 406, removed)
    client.perform(m.QueueDelete(queue="s"))
    declare(client)
    added = f"{about} the value '{old}' of type '{kind}' but current is none"
    refused(client, asked({argument: given}), 406, added)


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("again", ["60m", "3600s", "3600000"])
def test_x_max_age_is_compared_in_milliseconds_since_4_3(server: Server, again: str) -> None:
    # Measured on 4.3.6, also the last one, which is no age.
    client = server.client()
    client.call(asked({"x-max-age": "1h"}), m.QueueDeclareOk)
    if server.state.personality.compares_ages:
        client.call(asked({"x-max-age": again}), m.QueueDeclareOk)
        assert server.vhost.queues["s"].arguments["x-max-age"] == "1h"
    else:
        client.fails(asked({"x-max-age": again}), 406)


@pytest.mark.parametrize("name", RABBITMQ)
def test_filter_size_is_compared_in_redeclare_since_4_2(name: str) -> None:
    client = declare(Server(name).client(), stream_filter_size_bytes=20)
    method = asked({"x-stream-filter-size-bytes": 21})
    if name in BEFORE_4_2:
        client.call(method, m.QueueDeclareOk)
    else:
        text = f"inequivalent arg 'x-stream-filter-size-bytes' for {QUEUE}: received '21' but current is '20'"
        refused(client, method, 406, f"PRECONDITION_FAILED - {text}")


@pytest.mark.parametrize("name", RABBITMQ)
def test_unsupported_arguments_are_ignored_in_redeclare_of_stream(name: str) -> None:
    client = Server(name).client()
    declare(client).call(asked({"x-max-length": 5, "x-foo": 1}), m.QueueDeclareOk)


def test_redeclare_of_stream_as_transient_is_refused(server: Server) -> None:
    client = declare(server.client())
    text = f"inequivalent arg 'durable' for {QUEUE}: received 'false' but current is 'true'"
    refused(client, asked({}, durable=False), 406, f"PRECONDITION_FAILED - {text}")


# --- what declare-ok says ----------------------------------------------------------------------------------
def test_declare_ok_of_stream_counts_messages_and_no_consumers(server: Server) -> None:
    client = server.client()
    stream = {"durable": True, "arguments": {"x-queue-type": "stream"}}
    assert client.declare_ok("s", **stream).message_count == 0
    consume(client.fill("s", b"1", b"2", b"3").qos(10))
    client.bodies()
    ok = client.ack(0, multiple=True).declare_ok("s", **stream)
    assert (ok.message_count, ok.consumer_count) == (3, 0)
    assert client.count("s") == 3


# --- deleting ----------------------------------------------------------------------------------------------
@pytest.mark.needs("inspection")
def test_delete_of_stream_ignores_if_unused_and_if_empty(server: Server) -> None:
    consumer, client = server.client(), server.client()
    declare(client).fill("s", b"1")
    consumer.qos(1)
    consume(consumer, "next")
    ok = client.call(m.QueueDelete(queue="s", if_unused=True, if_empty=True), m.QueueDeleteOk)
    assert ok.message_count == 0
    assert "s" not in server.vhost.queues


def test_consumer_gets_basic_cancel_when_stream_is_deleted(server: Server) -> None:
    client = server.connect()
    client.handshake(client_properties={"capabilities": {"consumer_cancel_notify": True}})
    client.open_channel()
    declare(client).fill("s", b"1").qos(1)
    consume(client, tag="t").delivery()
    assert client.perform(m.QueueDelete(queue="s")).expect(m.BasicCancel).consumer_tag == "t"
    client.ack(1)  # The channel is as open as before.
    declare(client)


@pytest.mark.parametrize("bodies", [(), (b"1", b"2")], ids=["empty", "filled"])
def test_purge_of_stream_closes_connection_with_540(server: Server, bodies: tuple[bytes, ...]) -> None:
    client = declare(server.client()).fill("s", *bodies)
    text = f"NOT_IMPLEMENTED - queue.purge not supported by stream queues {QUEUE}"
    refused_connection(client, m.QueuePurge(queue="s"), 540, text)
    assert server.client().count("s") == len(bodies)
