"""Class tunnel: requests, and who deals with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from fakeamqp.model.errors import InternalError
from fakeamqp.protocols.amqp_0_9.codec import TunnelProperties, methods as m
from fakeamqp.protocols.amqp_0_9.registrations import Registrations, Tunnel, TunnelRequest

rule = pytest.mark.rule


def register(
    server: Server, proxy_name: str, handle: Callable[[TunnelRequest], object] | None = None
) -> list[TunnelRequest]:
    """Have requests for a proxy put in a list."""
    requests: list[TunnelRequest] = []
    server.state.extensions[Registrations].tunnels.append(Tunnel(proxy_name, handle or requests.append))
    return requests


def send(client: Client, body: bytes = b"data", channel: int = 1, **properties: object) -> Client:
    return client.send_content(m.TunnelRequest({"kind": "test"}), TunnelProperties(**properties), body)  # type: ignore[arg-type]


@rule("0-9/tunnel/purpose", "0-9/tunnel/properties", "0-9/tunnel.request/content")
@rule("0-9/tunnel.request/meta-data", "0-9/tunnel/grammar")
def test_a_request_goes_to_its_handler_and_is_not_answered(server: Server) -> None:
    requests = register(server, "orders.*")
    client = server.client()
    send(
        client,
        b"x" * 5000,
        headers={"n": 1},
        proxy_name="orders.eu",
        data_name="order",
        durable=1,
        broadcast=0,
    )
    client.expect_nothing()
    assert requests == [
        TunnelRequest(
            meta_data={"kind": "test"},
            headers={"n": 1},
            proxy_name="orders.eu",
            data_name="order",
            durable=True,
            broadcast=False,
            body=b"x" * 5000,
            connection=client.connection.name,
            channel=1,
            virtual_host="/",
            user="guest",
        )
    ]


def test_a_request_without_properties_is_for_the_proxy_without_a_name(server: Server) -> None:
    named, unnamed = register(server, "?*"), register(server, "")
    send(server.client())
    assert named == []
    [request] = unnamed
    assert (request.headers, request.proxy_name, request.data_name) == ({}, "", "")
    assert (request.durable, request.broadcast) == (False, False)


def test_broadcast_tunnel_request_is_passed_to_all_handlers(server: Server) -> None:
    lists = [register(server, name) for name in ("a", "b")]
    send(server.client(), proxy_name="a", broadcast=1)
    assert [len(each) for each in lists] == [1, 1]


@rule("0-9/tunnel/optional")
def test_without_any_handler_requests_are_not_implemented(client: Client) -> None:
    client.ends(m.TunnelRequest(), 540, at=(110, 10))


@rule("0-9/tunnel/optional")
def test_tunnel_request_for_an_unknown_proxy_closes_the_connection_with_540(server: Server) -> None:
    requests = register(server, "a")
    client = server.client()
    close = send(client, proxy_name="b").expect_connection_close(540)
    assert "'b'" in close.reply_text
    assert (close.class_id, close.method_id) == (110, 10)
    assert requests == []


@rule("0-9/reply-code/internal-error")
def test_a_handler_that_fails_is_an_internal_error(server: Server) -> None:
    def fail(_: TunnelRequest) -> None:
        raise InternalError("the handler has failed")

    register(server, "a", fail)
    client = send(server.client(), proxy_name="a")
    assert "the handler has failed" in client.expect_connection_close(541).reply_text


def test_a_request_that_breaks_off_never_reaches_its_handler(server: Server) -> None:
    requests = register(server, "*")
    server.client().send(m.TunnelRequest()).ends(m.ChannelClose(reply_code=200), 501)
    assert requests == []
