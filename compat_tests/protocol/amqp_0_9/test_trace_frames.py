"""Trace frames: type 7."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from fakeamqp.model.errors import InternalError
from fakeamqp.protocols.amqp_0_9.registrations import Registrations, TraceFrame

rule = pytest.mark.rule

TRACE = 7


@rule("0-9/trace/discard", "0-9/frame/type-trace")
def test_trace_frames_are_discarded_without_an_answer(client: Client) -> None:
    client.send_frame(TRACE, 0, b"anything").send_frame(TRACE, 0, b"").expect_nothing()
    client.declare("alive")


@rule("0-9/trace/channel-zero")
@pytest.mark.parametrize("channel", [1, 2])
def test_trace_frames_are_for_channel_0(client: Client, channel: int) -> None:
    client.send_frame(TRACE, channel, b"anything").expect_connection_close(501)


def test_error_of_a_trace_frame_names_no_method(client: Client) -> None:
    client.declare("q").send_frame(TRACE, 1, b"anything").expect_connection_close(501, at=(0, 0))


@rule("0-9/trace/discard")
def test_trace_frame_is_passed_to_every_registered_handler(server: Server) -> None:
    seen: list[TraceFrame] = []
    server.state.extensions[Registrations].trace_handlers += [seen.append, seen.append]
    client = server.client()
    client.send_frame(TRACE, 0, b"anything").expect_nothing()
    assert seen == [TraceFrame(client.connection.name, b"anything")] * 2


def test_trace_frame_during_the_handshake_is_accepted(server: Server) -> None:
    client = server.connect()
    client.send_bytes(client.protocol_header).take_frame()
    client.send_frame(TRACE, 0, b"").expect_nothing()
    assert not client.closed


def test_a_handler_that_fails_ends_the_connection(server: Server) -> None:
    def fail(_: TraceFrame) -> None:
        raise InternalError("the handler has failed")

    server.state.extensions[Registrations].trace_handlers.append(fail)
    server.client().send_frame(TRACE, 0, b"").expect_connection_close(541)


def test_trace_frame_on_a_closing_connection_is_discarded(server: Server) -> None:
    seen: list[TraceFrame] = []
    server.state.extensions[Registrations].trace_handlers.append(seen.append)
    server.client().send_frame(TRACE, 1, b"").send_frame(TRACE, 0, b"").expect_connection_close(501)
    assert seen == []
