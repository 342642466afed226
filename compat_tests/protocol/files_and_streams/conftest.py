"""Fixtures of the classes file and stream, which 0-9 and 0-10 have alike.

A test runs over both protocols, unless `@pytest.mark.protocols(...)` names one. A test of a module that sets
`content_class` is about this class; others run over both. A mark `rule` counts for its protocol and class.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted import amqp_0_9, amqp_0_10
from compat_tests.scripted.contents import Peer
from compat_tests.scripted.contents_0_9 import Channel
from compat_tests.scripted.contents_0_10 import Session
from fakeamqp.protocols.amqp_0_9.choices import letter_of

Server = amqp_0_9.Server | amqp_0_10.Server


@pytest.fixture(params=("0-9", "0-10"))
def protocol(request: pytest.FixtureRequest) -> str:
    """What the clients speak."""
    return request.param


@pytest.fixture(params=("file", "stream"))
def content_class(request: pytest.FixtureRequest) -> str:
    """What contents are."""
    return request.param


@pytest.fixture(params=("rabbitmq-4.3", "spec"))
def server(request: pytest.FixtureRequest, protocol: str) -> Server:
    """A broker of each personality in turn.

    In place of rabbitmq-4.3, a test that is marked `letter` gets one that follows the letter of 0-9.
    """
    if protocol == "0-10":
        return amqp_0_10.Server(request.param)
    follows_letter = request.node.get_closest_marker("letter") is not None
    return amqp_0_9.Server(letter_of(request.param) if follows_letter else request.param, tickets=True)


@pytest.fixture
def connect(server: Server, content_class: str) -> Callable[..., Peer]:
    """Opens a connection, and a channel or session there. Keywords are for the handshake."""

    def connect(*, timeout: int | None = 0, server: Server = server, **handshake: object) -> Peer:
        if isinstance(server, amqp_0_9.Server):
            return Channel(server.client(**handshake), content_class)
        return Session.on(server.open(**handshake), content_class, timeout)

    return connect


@pytest.fixture
def peer(connect: Callable[..., Peer]) -> Peer:
    """A channel or session of a connection of its own."""
    return connect()
