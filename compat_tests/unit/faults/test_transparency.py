"""Rules that change nothing change nothing: clients see the same bytes with them and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings, strategies as st

from compat_tests.unit.faults.server import FaultServer, bytes_of
from fakeamqp.faults import Faults
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

QUEUES = st.sampled_from(["a", "b", "nowhere"])
CHANNELS = st.sampled_from([1, 2])


def _publish(channel: int, key: str, body: bytes, mandatory: bool, size: int) -> bytes:
    method = m.BasicPublish(routing_key=key, mandatory=mandatory)
    properties = BasicProperties(priority=1).encode()
    return method_frame(channel, method.encode()) + b"".join(
        content_frames(channel, 60, properties, body, size)
    )


_METHODS = st.one_of(
    st.builds(m.BasicConsume, queue=QUEUES, no_ack=st.booleans()),
    st.builds(m.BasicGet, queue=QUEUES, no_ack=st.booleans()),
    st.builds(m.BasicAck, delivery_tag=st.integers(0, 4), multiple=st.booleans()),
    st.builds(m.BasicNack, delivery_tag=st.integers(0, 4), multiple=st.booleans(), requeue=st.booleans()),
    st.builds(m.BasicReject, delivery_tag=st.integers(0, 4), requeue=st.booleans()),
    st.builds(m.BasicRecover, requeue=st.just(True)),
    st.builds(m.BasicQos, prefetch_count=st.integers(0, 3)),
    st.builds(m.QueueDeclare, queue=QUEUES, passive=st.booleans()),
    st.builds(m.QueuePurge, queue=QUEUES),
    st.builds(m.QueueDelete, queue=QUEUES),
    st.just(m.ConfirmSelect()),
    st.just(m.TxSelect()),
    st.just(m.TxCommit()),
    st.just(m.ChannelClose(reply_code=200)),
    st.just(m.ChannelCloseOk()),
    st.just(m.ChannelOpen()),
)

_UTTERANCES = st.one_of(
    st.builds(
        _publish,
        CHANNELS,
        QUEUES,
        st.binary(max_size=10),
        st.booleans(),
        st.sampled_from([1, 3, 100]),
    ),
    st.builds(lambda channel, method: bytes_of(method, channel=channel), CHANNELS, _METHODS),
    st.just(b"\x08\0\0\0\0\0\0\xce"),
    st.builds(lambda channel, body: bytes_of((3, body), channel=channel), CHANNELS, st.binary(max_size=3)),
)
"""What a client says: most of it makes sense, in some place or other."""

_CONVERSATIONS = st.lists(
    st.tuples(st.integers(0, 1), st.lists(_UTTERANCES, min_size=1, max_size=4)), max_size=15
)
"""Which of two clients says what at once."""


def _spies(faults: Faults) -> None:
    faults.on("*", part=None)
    faults.on("basic.publish", body=b"never")
    faults.on("basic.publish", part="header")
    faults.on("basic.deliver", "basic.get-ok", "basic.return", queue="a")


def _calls(faults: Faults) -> None:
    faults.on("basic.publish", queue="a").call(lambda group: group.properties)
    faults.on("*").call(lambda group: group.method)
    faults.on("basic.deliver", "basic.return", "queue.*", direction="sent").call(lambda group: group.body)


def _delays(faults: Faults) -> None:
    faults.on("*").delay(0)
    faults.on("basic.deliver", "basic.get-ok", "*.*-ok", direction="sent").delay(0)


def _replacements(faults: Faults) -> None:
    faults.on("basic.publish").replace(body=lambda body: body, routing_key=lambda key: key)
    faults.on("basic.deliver").replace(delivery_tag=lambda tag: tag, priority=lambda priority: priority)


def _told(conversation: list[tuple[int, list[bytes]]], make: Callable[[Faults], Any] | None) -> list[bytes]:
    """All that two clients are told, turn by turn."""
    server = FaultServer(trace=False)
    clients = [server.client(channels=2) for _ in range(2)]
    clients[0].declare("a")
    clients[0].declare("b", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    if make is not None:
        make(server.faults)
    told = []
    for number, octets in conversation:
        clients[number].send_bytes(b"".join(octets))
        told += [client.take_bytes() for client in clients]
        told.append(bytes(client.closed for client in clients))
    server.faults.raise_errors()
    if make is not None:
        server.faults.clear()
        told += [client.take_bytes() for client in clients]
    else:
        told += [b"", b""]
    return told


def _is_transparent(make: Callable[[Faults], Any], conversation: list[tuple[int, list[bytes]]]) -> None:
    assert _told(conversation, make) == _told(conversation, None)


@settings(deadline=None)
@given(_CONVERSATIONS)
def test_rules_without_actions_leave_all_bytes_unchanged(conversation: list[tuple[int, list[bytes]]]) -> None:
    _is_transparent(_spies, conversation)


@settings(deadline=None)
@given(_CONVERSATIONS)
def test_rules_that_only_call_functions_leave_all_bytes_unchanged(
    conversation: list[tuple[int, list[bytes]]],
) -> None:
    _is_transparent(_calls, conversation)


@settings(deadline=None)
@given(_CONVERSATIONS)
def test_delays_of_zero_seconds_leave_all_bytes_unchanged(
    conversation: list[tuple[int, list[bytes]]],
) -> None:
    _is_transparent(_delays, conversation)


@settings(deadline=None)
@given(_CONVERSATIONS)
def test_replacements_by_equal_values_leave_all_bytes_unchanged(
    conversation: list[tuple[int, list[bytes]]],
) -> None:
    _is_transparent(_replacements, conversation)
