"""Arguments of queue.declare: which are known, what they may be, and how a redeclare compares them.

What they do is tested with the messages they act upon.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import QueueDeclare as Declare
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp


@pytest.mark.rule("0-9-1/queue.declare/arguments-implementation")
@pytest.mark.parametrize("value", [5, "a", None, {"deep": [1]}])
def test_unknown_queue_arguments_have_no_effect(client: Client, value: Any) -> None:
    client.declare("q", arguments={"nonsense": value, "x-nonsense": value})
    assert client.publish(routing_key="q").count("q") == 1


@pytest.mark.rule("0-9-1/queue.declare/arguments-implementation")
def test_spec_personality_compares_unknown_queue_arguments_in_redeclare(spec: Server) -> None:
    client = spec.client().declare("q", arguments={"nonsense": 1}).declare("q", arguments={"nonsense": 1})
    for other in ({"nonsense": 2}, {}, {"nonsense": 1, "more": 1}):
        client.fails(Declare(queue="q", arguments=other), 406)
        client.open_channel()


@pytest.mark.rule("0-9-1/queue.declare/arguments-implementation")
def test_rabbitmq_does_not_compare_unknown_queue_arguments_in_redeclare(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    for arguments in ({"x-nonsense": 1}, {"x-nonsense": 2}, {}):
        assert client.declare_ok("q", arguments=arguments).queue == "q"


ILLEGAL = [
    ("x-message-ttl", -1, "{value_negative,-1}"),
    ("x-message-ttl", "5", '"expected integer, got longstr"'),
    ("x-message-ttl", 5.0, '"expected integer, got double"'),
    ("x-message-ttl", True, '"expected integer, got bool"'),
    ("x-message-ttl", None, '"expected integer, got void"'),
    ("x-message-ttl", Timestamp(5), '"expected integer, got timestamp"'),
    ("x-message-ttl", 315_360_000_001, "{value_too_large,315360000001}"),
    ("x-expires", 0, "{value_zero,0}"),
    ("x-expires", -1, "{value_negative,-1}"),
    ("x-expires", 1000.0, '"expected integer, got double"'),
    ("x-expires", 315_360_000_001, "{value_too_large,315360000001}"),
    ("x-max-length", -1, "{value_negative,-1}"),
    ("x-max-length", "5", '"expected integer, got longstr"'),
    ("x-max-length-bytes", -1, "{value_negative,-1}"),
    ("x-max-priority", -1, "{value_negative,-1}"),
    ("x-max-priority", 256, "{max_value_exceeded,256}"),
    ("x-dead-letter-routing-key", 5, "{unacceptable_type,signedint}"),
    ("x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined"),
    ("x-overflow", "bogus", "invalid_overflow"),
    ("x-overflow", 5, "{unacceptable_type,signedint}"),
    ("x-queue-version", 0, "\"unsupported queue version '0'\""),
    ("x-queue-version", 3, "\"unsupported queue version '3'\""),
    ("x-queue-version", "2", '"expected integer, got longstr"'),
    ("x-queue-type", "bogus", "\"unsupported queue type 'bogus'\""),
    ("x-queue-type", 5, "{unacceptable_type,signedint}"),
    ("x-queue-type", None, "{unacceptable_type,void}"),
    ("x-single-active-consumer", "yes", "{unacceptable_type,longstr}"),
    ("x-single-active-consumer", 1, "{unacceptable_type,signedint}"),
]


@rows("value, reason", ("bogus", "\"unsupported queue mode 'bogus'\""), (5, "{unacceptable_type,signedint}"))
def test_invalid_x_queue_mode_is_refused_up_to_4_2_and_accepted_since_4_3(
    rabbitmq_4_2: Server, rabbitmq: Server, value: Any, reason: str
) -> None:
    method = Declare(queue="q", arguments={"x-queue-mode": value})
    text = f"PRECONDITION_FAILED - invalid arg 'x-queue-mode' for queue 'q' in vhost '/': {reason}"
    refused(rabbitmq_4_2.client(), method, 406, text)
    # RabbitMQ 4.3 takes whatever it is (measured).
    rabbitmq.client().call(method, m.QueueDeclareOk)


@pytest.mark.needs("inspection")
@pytest.mark.parametrize(("argument", "value", "reason"), ILLEGAL, ids=[f"{a}={v!r}" for a, v, _ in ILLEGAL])
def test_invalid_queue_arguments_are_refused_with_406_and_text_of_rabbitmq(
    rabbitmq: Server, argument: str, value: Any, reason: str
) -> None:
    client = rabbitmq.client()
    method = Declare(queue="q", arguments={argument: value})
    refused(
        client,
        method,
        406,
        f"PRECONDITION_FAILED - invalid arg '{argument}' for queue 'q' in vhost '/': {reason}",
    )
    assert "q" not in rabbitmq.vhost.queues


@rows("value, kind", (5, "signedint"), (True, "bool"), (None, "void"), (b"x", "binary"))
def test_x_dead_letter_exchange_that_is_no_string_is_refused(rabbitmq: Server, value: Any, kind: str) -> None:
    method = Declare(queue="q", arguments={"x-dead-letter-exchange": value})
    about = "for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'"
    refused(rabbitmq.client(), method, 406, f"PRECONDITION_FAILED - invalid type '{kind}' {about}")


@rows("argument", "x-max-age", "x-delivery-limit", "x-quorum-initial-group-size", "x-dead-letter-strategy")
def test_arguments_of_other_queue_types_are_refused(rabbitmq: Server, argument: str) -> None:
    method = Declare(queue="q", arguments={argument: 5})
    text = f"PRECONDITION_FAILED - invalid arg '{argument}' for queue 'q' in vhost '/' of queue type "
    refused(rabbitmq.client(), method, 406, text + "rabbit_classic_queue")


@pytest.mark.parametrize(
    "arguments",
    [{"x-expires": 0, "x-message-ttl": -1}, {"x-message-ttl": -1, "x-expires": 0}],
    ids=["in order", "reversed"],
)
def test_same_of_two_invalid_arguments_is_named(rabbitmq: Server, arguments: dict[str, Any]) -> None:
    method = Declare(queue="q", arguments=arguments)
    text = "PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'q' in vhost '/': {value_zero,0}"
    refused(rabbitmq.client(), method, 406, text)


@rows(
    "arguments",
    {"x-message-ttl": 0},
    {"x-message-ttl": 315_360_000_000},
    {"x-expires": 1},
    {"x-max-length": 0},
    {"x-max-length": 2**60},
    {"x-max-length-bytes": 0},
    {"x-max-priority": 0},
    {"x-max-priority": 255},
    {"x-dead-letter-exchange": ""},
    {"x-dead-letter-exchange": "missing", "x-dead-letter-routing-key": "k"},
    {"x-overflow": "drop-head"},
    {"x-overflow": "reject-publish"},
    {"x-overflow": "reject-publish-dlx"},
    {"x-queue-mode": "lazy"},
    {"x-queue-version": 2},
    {"x-queue-type": "classic"},
    {"x-single-active-consumer": False},
    {"x-ha-policy": "all"},
    ids=repr,
)
def test_valid_queue_arguments_may_be_repeated(client: Client, arguments: dict[str, Any]) -> None:
    client.declare("q", arguments=arguments).declare("q", arguments=arguments)


COMPARED = [
    ("x-message-ttl", 1000, 2000, "signedint"),
    ("x-expires", 60000, 70000, "signedint"),
    ("x-max-length", 5, 6, "signedint"),
    ("x-max-length-bytes", 5, 2**40, "signedint"),
    ("x-max-priority", 5, 6, "signedint"),
    ("x-dead-letter-exchange", "a", "b", "longstr"),
    ("x-overflow", "drop-head", "reject-publish", "longstr"),
    ("x-queue-mode", "default", "lazy", "longstr"),
    ("x-single-active-consumer", True, False, "bool"),
]
COMPARED_UNTIL_4_2 = [
    ("x-queue-version", 1, 2, "signedint"),
    ("x-queue-master-locator", "client-local", "min-masters", "longstr"),
]


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.rule("0-9-1/queue.declare/passive-equivalent#arguments")
@pytest.mark.parametrize(("argument", "old", "new", "kind"), COMPARED, ids=[each[0] for each in COMPARED])
def test_arguments_must_be_repeated(client: Client, argument: str, old: Any, new: Any, kind: str) -> None:
    must_be_repeated(client, argument, old, new, kind)


@pytest.mark.parametrize(
    ("argument", "old", "new", "kind"), COMPARED_UNTIL_4_2, ids=[each[0] for each in COMPARED_UNTIL_4_2]
)
def test_arguments_that_4_3_refuses_must_be_repeated(
    rabbitmq_4_2: Server, argument: str, old: Any, new: Any, kind: str
) -> None:
    must_be_repeated(rabbitmq_4_2.client(), argument, old, new, kind)


def must_be_repeated(client: Client, argument: str, old: Any, new: Any, kind: str) -> None:
    """Declare a queue with an argument; another value, its absence and its addition are refused."""
    about = f"PRECONDITION_FAILED - inequivalent arg '{argument}' for queue 'q' in vhost '/': received"
    client.declare("q", arguments={argument: old})
    changed = f"{about} '{_shown(new)}' but current is '{_shown(old)}'"
    refused(client, Declare(queue="q", arguments={argument: new}), 406, changed)
    removed = f"{about} none but current is the value '{_shown(old)}' of type '{kind}'"
    refused(client, Declare(queue="q"), 406, removed)
    client.perform(m.QueueDelete(queue="q")).declare("q")
    added = f"{about} the value '{_shown(old)}' of type '{kind}' but current is none"
    refused(client, Declare(queue="q", arguments={argument: old}), 406, added)


@pytest.mark.needs("personality since rabbitmq-4.0")
def test_x_queue_type_classic_is_equivalent_to_no_x_queue_type(client: Client) -> None:
    client.declare("q").declare("q", arguments={"x-queue-type": "classic"})
    client.declare("p", arguments={"x-queue-type": "classic"}).declare("p")
    text = "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': "
    text += "received 'quorum' but current is 'classic'"
    refused(client, Declare(queue="q", arguments={"x-queue-type": "quorum"}), 406, text)


def test_integer_arguments_of_other_width_or_order_are_equivalent_in_redeclare(client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 1000, "x-max-length": 5})
    for table in (
        b"\x0cx-max-lengthI\0\0\0\x05" + b"\x0dx-message-ttli\0\0\x03\xe8",
        b"\x0cx-max-lengthB\x05" + b"\x0dx-message-ttlI\0\0\x03\xe8",
    ):
        payload = Declare(queue="q").encode()
        client.send_frame(1, 1, payload[:-4] + len(table).to_bytes(4, "big") + table)
        assert client.expect(m.QueueDeclareOk).queue == "q"
    client.send(Declare(queue="q", arguments={"x-message-ttl": 1000.0, "x-max-length": 5}))
    assert "inequivalent arg 'x-message-ttl'" in client.expect_channel_close(406).reply_text


def test_arguments_for_existing_queue_are_compared_before_they_are_validated(client: Client) -> None:
    # RabbitMQ: measured.
    client.declare("q")
    text = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': "
    text += "received the value '-1' of type 'signedint' but current is none"
    refused(client, Declare(queue="q", arguments={"x-message-ttl": -1}), 406, text)


def test_x_dead_letter_routing_key_of_more_than_255_bytes_is_refused(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k" * 255}
    client.declare("fits", arguments=arguments)
    text = client.fails(
        Declare(queue="q", arguments={**arguments, "x-dead-letter-routing-key": "k" * 256}), 406
    ).reply_text
    assert "invalid arg 'x-dead-letter-routing-key' for queue 'q'" in text and "longer than 255 bytes" in text
