"""What ends for clients of 0-9 and 0-8: logins, connections, deliveries in the midst of them, the broker."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.requesting import Requester
from compat_tests.unit.faults.amqp_0_9.server import FaultServer
from fakeamqp.dialects import dialect_named, protocol_of
from fakeamqp.faults import Faults
from fakeamqp.protocols.amqp_0_9.codec import methods as m, version_0_8
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import PROTOCOL_HEADER

HEADERS = (PROTOCOL_HEADER, *version_0_8.PROTOCOL_HEADERS)


@pytest.mark.parametrize("header", HEADERS, ids=protocol_of)
def test_refused_login_ends_the_handshake_of_each_protocol(server: FaultServer, header: bytes) -> None:
    rule = server.faults.on("connection.start-ok", protocol=protocol_of(header)).refuse_login()
    client = server.connect()
    client.send_bytes(header)
    client.take_bytes()
    client.login()
    assert rule.hits == 1
    assert client.closed or b"ACCESS_REFUSED" in client.take_bytes()


@pytest.mark.parametrize("header", HEADERS, ids=protocol_of)
def test_connection_is_closed_with_the_method_of_its_protocol(server: FaultServer, header: bytes) -> None:
    protocol = protocol_of(header)
    assert protocol is not None
    server.faults.on("connection.open", protocol=protocol).close_connection(320, "gone")
    client = server.connect()
    client.send_bytes(header)
    client.login()
    client.send(m.ConnectionTuneOk(channel_max=10, frame_max=8192), 0)
    client.take_bytes()
    client.send(m.ConnectionOpen(virtual_host="/"), 0)
    [(kind, channel, payload, _)] = dialect_named(protocol).cut(client.take_bytes())
    expected = m.ConnectionClose if protocol == "0-9" else version_0_8.ConnectionClose
    assert (kind, channel) == (1, 0)
    assert payload == expected(320, "gone", 10, 40).encode()


def test_rules_tell_connection_close_from_connection_redirect_in_0_8(server: FaultServer) -> None:
    closes = server.faults.on("connection.close", protocol="0-8")
    redirects = server.faults.on("connection.redirect", protocol="0-8", optional=True)
    client = server.connect()
    client.send_bytes(version_0_8.PROTOCOL_HEADERS[0])
    client.login()
    client.send(m.ConnectionTuneOk(channel_max=10, frame_max=8192), 0)
    client.send(m.ConnectionOpen(virtual_host="/"), 0)
    client.send(version_0_8.ConnectionClose(200), 0)
    assert (closes.hits, redirects.hits) == (1, 0)


@pytest.mark.parametrize(
    ("after", "seen"), [("method", True), ("header", True), (100, True), (30, False), (0, False)], ids=str
)
def test_delivery_is_cut_after_the_given_part_or_number_of_bytes(
    requester: Requester, faults: Faults, after: Any, seen: bool
) -> None:
    requester.publish("q", b"two apples")
    faults.on("message.transfer", direction="sent", protocol="0-9").cut(after)
    requester.ask(m.MessageConsume(queue="q", destination="d"))
    requester.client.server.advance(0)  # type: ignore[attr-defined]
    heard = requester.client.take_bytes()
    assert requester.client.closed
    assert (b"two apples" in heard) is seen


def test_crash_on_a_transfer_restarts_the_broker(server: FaultServer, requester: Requester) -> None:
    server.faults.on("message.transfer", body=b"two").crash()
    requester.publish("q", b"one")
    requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"two")))
    server.settle()
    assert server.restarts == [(True, True)]
