"""Deprecated features that clients feel (RabbitMQ: documented; texts and order from its releases)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

LOCATOR_DENIED_BY_DEFAULT = (
    "INTERNAL_ERROR - Feature `queue_master_locator` is deprecated.\nBy default, this feature is not "
    "permitted anymore.\nThe feature will be removed from a future major RabbitMQ version, regardless of the "
    "configuration; actual version to be determined.\nTo con..."
)
DENIED_BY_CONFIGURATION = (
    "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated.\nIts use is not permitted per the "
    "configuration (overriding the default, which is permitted):\n"
    '    "deprecated_features.permit.transient_nonexcl_queues = false"\nIts use will not be permit...'
)
LOCATOR_DENIED_BY_CONFIGURATION = (
    "INTERNAL_ERROR - Feature `queue_master_locator` is deprecated.\nIts use is not permitted per the "
    "configuration (overriding the default, which is permitted):\n"
    '    "deprecated_features.permit.queue_master_locator = false"\nIts use will not be permitted by d...'
)
LOCATOR = {"x-queue-master-locator": "min-masters"}


@pytest.fixture
def modern() -> Server:
    """RabbitMQ 4.3 as it comes."""
    return Server("rabbitmq-4.3")


@pytest.fixture
def denying() -> Server:
    """RabbitMQ 4.3 without transient queues for all."""
    return Server("rabbitmq-4.3", deny=["transient_nonexcl_queues"])


def refused(server: Server, text: str, **declaration: Any) -> None:
    """Declare a queue; the connection ends with this text, and the queue is not there."""
    close = server.client().ends(m.QueueDeclare(queue="q", **declaration), 541, text=text)
    assert len(close.reply_text.encode()) == 255
    assert (close.class_id, close.method_id) == (50, 10)
    assert "q" not in server.vhost.queues


# --- transient_nonexcl_queues ------------------------------------------------------------------------
@pytest.mark.needs("inspection", "settings")
@pytest.mark.parametrize("auto_delete", [False, True])
def test_denied_transient_queue_closes_the_connection_in_4_3(denying: Server, auto_delete: bool) -> None:
    refused(denying, DENIED_BY_CONFIGURATION, auto_delete=auto_delete)  # Measured on 4.3.6.


@pytest.mark.needs("settings")
def test_denied_transient_queue_declaration_with_generated_name_is_refused(denying: Server) -> None:
    denying.client().ends(m.QueueDeclare(), 541)


@pytest.mark.needs("settings")
def test_denial_of_transient_queues_allows_durable_and_exclusive_queues(denying: Server) -> None:
    client = denying.client().declare("durable", durable=True)
    client.declare("fleeting", durable=True, auto_delete=True)
    client.declare("mine", exclusive=True).declare("mine-too", exclusive=True, durable=True)
    client.declare(exclusive=True, auto_delete=True).declare("mine", passive=True)


@rows("name", "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3", "spec")
def test_transient_queues_are_allowed_by_default(name: str) -> None:
    Server(name).client().declare("q")


@pytest.mark.needs("inspection", "settings")
@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_transient_queues_can_be_denied_before_4_3(name: str) -> None:
    refused(Server(name, deny=["transient_nonexcl_queues"]), DENIED_BY_CONFIGURATION)


@pytest.mark.needs("settings")
def test_transient_queues_can_be_permitted_explicitly() -> None:
    Server("rabbitmq-4.3", permit=["transient_nonexcl_queues"]).client().declare("q").declare("q")


@pytest.mark.needs("inspection", "settings")
def test_denied_transient_queue_can_be_redeclared_when_it_exists(denying: Server) -> None:
    client = denying.client().declare("q", durable=True).send(m.QueueDeclare(queue="q"))
    assert "inequivalent arg 'durable'" in client.expect_channel_close(406).reply_text
    denying.vhost.queues.declare("old")
    client.open_channel().declare("old")


@pytest.mark.needs("settings")
@rows(
    "declaration, code",
    ({"queue": "amq.q"}, 403),
    ({"queue": "q", "arguments": {"x-max-length": "many"}}, 406),
    ({"queue": "q", "arguments": {"x-queue-type": "quorumm"}}, 406),
    ({"queue": "q", "arguments": {"x-dead-letter-exchange": 5}}, 406),
    ({"queue": "q", "arguments": {"x-queue-type": "quorum"}}, 541),
    ({"queue": "q", "arguments": LOCATOR}, 541),
    ids=repr,
)
def test_deprecation_is_checked_after_name_and_arguments_and_before_queue_type_support(
    denying: Server, declaration: dict[str, Any], code: int
) -> None:
    # Measured on 4.3.6.
    client = denying.client().send(m.QueueDeclare(**declaration))
    if code == 541:
        assert client.expect_connection_close(541).reply_text == DENIED_BY_CONFIGURATION
    else:
        client.expect_channel_close(code)


# --- queue_master_locator ----------------------------------------------------------------------------
@pytest.mark.needs("inspection")
def test_queue_master_locator_is_refused_in_4_3(modern: Server) -> None:
    refused(modern, LOCATOR_DENIED_BY_DEFAULT, durable=True, arguments=LOCATOR)


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("value", ["nonsense", 5, True], ids=repr)
def test_queue_master_locator_is_refused_with_any_value_in_4_3(modern: Server, value: Any) -> None:
    refused(modern, LOCATOR_DENIED_BY_DEFAULT, exclusive=True, arguments={"x-queue-master-locator": value})


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_queue_master_locator_is_accepted_before_4_3(name: str) -> None:
    Server(name).client().declare("q", arguments=LOCATOR)


@pytest.mark.needs("inspection", "settings", "several personalities")
def test_queue_master_locator_can_be_denied_in_4_2_and_permitted_in_4_3() -> None:
    server = Server("rabbitmq-4.2", deny=["queue_master_locator"])
    refused(server, LOCATOR_DENIED_BY_CONFIGURATION, arguments=LOCATOR)
    server = Server("rabbitmq-4.3", permit=["queue_master_locator"])
    server.client().declare("q", durable=True, arguments=LOCATOR)


@pytest.mark.needs("personality rabbitmq-4.3")
def test_queue_master_locator_on_quorum_queue_is_an_invalid_argument(modern: Server) -> None:
    client = modern.client()
    arguments = {**LOCATOR, "x-queue-type": "quorum"}
    assert client.fails(m.QueueDeclare(queue="q", durable=True, arguments=arguments), 406).reply_text == (
        "PRECONDITION_FAILED - invalid arg 'x-queue-master-locator' for queue 'q' in vhost '/' of queue type "
        "rabbit_quorum_queue"
    )


# --- global_qos --------------------------------------------------------------------------------------


LOUD = replace(PERSONALITIES["rabbitmq-4.3"], refuses_denied_global_qos=True)


@pytest.mark.needs("own broker")
@rows(
    "server, reason",
    (Server(LOUD), "By default, this feature is not permitted anymore."),
    (
        Server(replace(PERSONALITIES["rabbitmq-4.2"], refuses_denied_global_qos=True), deny=["global_qos"]),
        "Its use is not permitted per the configuration",
    ),
    ids=["4.3", "4.2 denied"],
)
@pytest.mark.parametrize("count", [0, 1])
def test_denied_global_prefetch_ends_configured_connection(server: Server, reason: str, count: int) -> None:
    close = server.client().ends(m.BasicQos(prefetch_count=count, global_=True), 541)
    assert close.reply_text.startswith(f"INTERNAL_ERROR - Feature `global_qos` is deprecated.\n{reason}")
    assert (close.class_id, close.method_id) == (60, 10)


def two_consumers(server: Server) -> Client:
    """A client with a global prefetch of one, two consumers on one queue, and four messages in it."""
    client = server.client().declare("q", durable=True).qos(1, global_=True)
    return client.consume("q", "a").consume("q", "b").fill("q", b"1", b"2", b"3", b"4")


@pytest.mark.needs("own broker")
@rows(
    "server, bodies",
    (Server("rabbitmq-4.2"), [b"1"]),
    (Server("rabbitmq-4.3", permit=["global_qos"]), [b"1"]),
    pytest.param(
        Server("rabbitmq-4.3"),
        [b"1", b"2"],
        marks=pytest.mark.deviates(
            "0-9-1/basic.qos/global-connection#connection", "0-9-1/basic.qos/prefetch-both#connection"
        ),
    ),
    (Server("rabbitmq-4.2", deny=["global_qos"]), [b"1", b"2"]),
    ids=["4.2", "4.3 permitted", "4.3", "4.2 denied"],
)
@pytest.mark.protocols("0-9-1")
def test_silently_denied_global_prefetch_is_per_consumer(server: Server, bodies: list[bytes]) -> None:
    assert two_consumers(server).bodies() == bodies


@pytest.mark.needs("personality rabbitmq-4.3")
def test_silently_denied_global_prefetch_does_not_limit_existing_consumers() -> None:
    client = Server("rabbitmq-4.3").client()
    client.declare("q", durable=True).consume("q").qos(1, global_=True)
    assert client.fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    client.qos(0, global_=True).consume("q")  # No limit again.
    assert len(client.fill("q", b"3", b"4", b"5", b"6").bodies()) == 4


@pytest.mark.needs("personality rabbitmq-4.3")
@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_silently_denied_global_prefetch_limits_quorum_and_stream_consumers(kind: str) -> None:
    # Measured on 4.3.6.
    client = Server("rabbitmq-4.3").client()
    client.declare("q", durable=True, arguments={"x-queue-type": kind}).qos(1, global_=True)
    assert client.consume("q").fill("q", b"1", b"2").delivery().body == b"1"
    client.expect_nothing()
