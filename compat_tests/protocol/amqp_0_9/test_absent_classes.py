"""Brokers of 0-9 that are made without some classes and methods (`Personality.not_implemented`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.scripted.amqp_0_9 import Server
from fakeamqp.protocols.amqp_0_9.codec import methods as m09
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

rule = pytest.mark.rule


def without(server: Server, *names: str) -> Server:
    """A server like this one whose broker is made without these."""
    return Server(replace(server.state.personality, not_implemented=names), tickets=server.asks_for_tickets)


OPTIONAL_0_9 = [
    pytest.param("file", m09.FileQos(), (70, 10), marks=rule("0-9/file/optional")),
    pytest.param("stream", m09.StreamQos(), (80, 10), marks=rule("0-9/stream/optional")),
    pytest.param("dtx", m09.DtxSelect(), (100, 10), marks=rule("0-9/dtx/optional")),
    pytest.param("tunnel", m09.TunnelRequest(), (110, 10), marks=rule("0-9/tunnel/optional")),
    pytest.param("tx", m.TxSelect(), (90, 10), marks=rule("0-9/server-model/optional-classes")),
]


@pytest.mark.parametrize(("absent", "method", "ids"), OPTIONAL_0_9)
def test_method_of_a_class_not_implemented_closes_the_connection_with_540(
    server: Server, absent: str, method: Method, ids: tuple[int, int]
) -> None:
    without(server, absent).client().declare("q").ends(method, 540, at=ids)


@rule("0-9/channel.resume/optional")
def test_channel_resume_not_implemented_closes_the_connection_with_540(server: Server) -> None:
    server = without(server, "channel.resume")
    client = server.client(channels=0)
    channel_id = client.send(m09.ChannelOpen()).expect(m09.ChannelOpenOk).channel_id
    client.drop()
    client = server.client(channels=0)
    client.ends(m09.ChannelResume(channel_id=channel_id), 540, at=(20, 50))
