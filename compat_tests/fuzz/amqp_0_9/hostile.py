"""Whole frames of 0-9 that say strange things; see `compat_tests.fuzz.hostile`.

Any method comes in a method frame or in a request, and as the answer to requests; contents of four classes
hold others. Numbers of requests and responses are mostly the next.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from compat_tests.fuzz.amqp_0_9.recordings import INTERRUPTED, Client
from compat_tests.fuzz.hostile import EXCHANGES, QUEUES, headers, methods, named, names, properties, topology
from compat_tests.scripted.amqp_0_9 import Child, content
from fakeamqp.protocols.amqp_0_9.codec import (
    METHODS,
    FileProperties,
    StreamProperties,
    TunnelProperties,
    methods as m,
)
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE, FRAME_TRACE
from fakeamqp.protocols.amqp_0_9.codec.requests import Request, Response, encode_request, encode_response
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame, method_frame

__all__ = ["prepared", "programs"]

_USUAL = named(
    METHODS,
    access="request",
    basic="ack cancel consume get qos recover reject",
    channel="close flow open ping resume",
    dtx="select start",
    exchange="bound declare delete",
    file="ack cancel consume open open-ok publish qos reject",
    message="append cancel checkpoint close consume get open qos recover resume transfer",
    queue="bind declare delete purge unbind",
    stream="cancel consume qos",
    tx="commit rollback select",
)
_EVERY = tuple(METHODS.values())
_REQUESTS = 4
_ANSWERS = (m.MessageOk(), m.MessageOk(), m.MessageReject(code=0, text="no"), m.MessageEmpty(), m.ChannelOk())
_CLASSES = {60: m.BasicPublish, 70: m.FileStage, 80: m.StreamPublish, 110: m.TunnelRequest}


@st.composite
def _octets(draw: st.DrawFn, class_id: int) -> bytes:
    """Flags and list of properties."""
    if class_id == 60:
        return draw(properties()).encode()
    if draw(st.booleans()):
        return b"\0\0"
    table = draw(st.none() | headers())
    if class_id == 110:
        return TunnelProperties(headers=table, data_name=draw(_often("d", rare="fails"))).encode()
    kind = FileProperties if class_id == 70 else StreamProperties
    return kind(headers=table, priority=draw(st.none() | st.integers(0, 255))).encode()


@st.composite
def _children(draw: st.DrawFn, depth: int = 0) -> tuple[Child, ...]:
    if depth == 2 or draw(st.integers(0, 3)):
        return ()
    classes = draw(st.lists(st.sampled_from(tuple(_CLASSES)), min_size=1, max_size=2))
    return tuple(
        Child(each, b"\0\0", draw(st.binary(max_size=5)), draw(_children(depth + 1))) for each in classes
    )


@st.composite
def _contents(draw: st.DrawFn, channel: int) -> bytes:
    class_id = draw(st.sampled_from(tuple(_CLASSES)))
    fields = {
        "exchange": draw(st.sampled_from(EXCHANGES)),
        "routing_key": draw(names() if draw(st.booleans()) else st.sampled_from(QUEUES)),
        "mandatory": draw(st.booleans()),
        "immediate": draw(st.sampled_from([False, False, True])),
    }
    method = _CLASSES[class_id](**(fields if class_id in (60, 80) else {}))
    child = Child(class_id, draw(_octets(class_id)), draw(st.binary(max_size=20)), draw(_children()))
    octets = content(child, channel, draw(st.sampled_from([3, 1000])))
    start = method_frame(channel, method.encode())
    if class_id == 70:  # What it is that comes now has been said before.
        opened = m.FileOpen(identifier=draw(names()), content_size=len(child.body))
        start = method_frame(channel, opened.encode()) + start
    return start + octets


@st.composite
def _steps(draw: st.DrawFn, numbers: dict[tuple[str, int], int]) -> bytes:
    """Mostly on a channel that is open, and mostly nothing that ends the connection at once."""
    channel = draw(_often(1, 2, 3, 4, rare=5))
    what = draw(_often("content", "method", "method", "request", "response", "other"))
    if what == "content":
        return draw(_contents(channel))
    if what == "other":
        channel = draw(_often(3, 4, rare=1))
        kind = draw(_often(4, 5, 6, FRAME_TRACE))
        return frame(kind, 0 if kind == FRAME_TRACE else channel, b"")
    if what == "response":
        channel = draw(_often(2, rare=1))
        number = _number(draw, numbers, what, channel)
        answer = draw(st.sampled_from(_ANSWERS) if draw(st.integers(0, 3)) else methods(_USUAL, _EVERY))
        first, offset = draw(_often(number, rare=1)), draw(_often(0, rare=2**32 - 1))
        response = Response(number, first, offset, answer.encode())
        return frame(FRAME_RESPONSE, channel, encode_response(response))
    method = draw(methods(_USUAL, _EVERY if draw(st.integers(0, 3)) == 0 else ()))
    if isinstance(method, (m.ChannelOpen, m.ChannelResume)):
        channel = draw(_often(5, rare=1))
    if isinstance(method, m.ChannelResume):
        method.channel_id = draw(_often(INTERRUPTED, rare=b"x"))
    if method.NAME.startswith("connection."):
        return method_frame(0, method.encode())
    if what == "method" and not method.NAME.startswith("message."):
        return method_frame(channel, method.encode())
    number = _number(draw, numbers, "request", channel)
    request = Request(number, draw(_often(0, rare=9)), method.encode(), draw(st.booleans()))
    return frame(FRAME_REQUEST, channel, encode_request(request))


def _often(*usual: Any, rare: Any = None) -> st.SearchStrategy[Any]:
    """One of these, and now and then another."""
    many = usual * (24 // len(usual))
    return st.sampled_from(many if rare is None else (*many, rare))


def _number(draw: st.DrawFn, numbers: dict[tuple[str, int], int], what: str, channel: int) -> int:
    following = numbers.get((what, channel), _REQUESTS if (what, channel) == ("request", 2) else 0) + 1
    other = draw(st.sampled_from([following - 1, following + 1, 2**64 - 1]))
    number: int = draw(_often(following, rare=other))
    if number == following:
        numbers[what, channel] = number
    return number


@st.composite
def programs(draw: st.DrawFn) -> list[bytes]:
    """What a client does after `prepared`."""
    numbers: dict[tuple[str, int], int] = {}
    return [draw(_steps(numbers)) for _ in range(draw(st.integers(1, 12)))]


def prepared(*, strict: bool) -> bytes:
    """Queues that are not empty, consumers of all classes, and channels that have out-of-band transports."""
    client = Client(strict=strict)
    requests = (
        m.MessageQos(prefetch_count=2),
        m.MessageConsume(queue="plain", destination="three"),
        m.MessageTransfer(routing_key="plain", body=Body(b"first")),
        m.MessageOpen(reference=b"one"),
    )
    assert len(requests) == _REQUESTS
    return b"".join(
        [
            *client.handshake(),
            *client.open(1, 2),
            *topology(client),
            *client.send(
                *[client.content(m.StreamPublish(routing_key=name)) for name in QUEUES[:4]],
                m.FileOpen(identifier="one", content_size=4),
                client.content(m.FileStage(), b"file"),
                m.FilePublish(exchange="amq.fanout", identifier="one"),
                m.FileOpen(identifier="two", content_size=4),
                m.BasicGet(queue="mortal"),
                m.BasicConsume(queue="plain", consumer_tag="one"),
                m.FileConsume(queue="plain", consumer_tag="file"),
                m.StreamConsume(queue="lone", consumer_tag="stream"),
                m.BasicQos(prefetch_count=1),
                m.BasicConsume(queue="lone", consumer_tag="two"),
            ),
            *client.ask(*requests, channel=2),
            *[
                piece
                for channel, transport in ((3, "memory"), (4, "broken"))
                for piece in (client.frame(channel, m.ChannelOpen(transport)), *client.ticket(channel))
            ],
        ]
    )
