"""Two connected transports in memory behave like a TCP connection over loopback."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from fakeamqp.runtime.event_loop import memory
from fakeamqp.runtime.event_loop.memory import WINDOW, LoopMemoryTransport, connect

CLIENT, SERVER = ("127.0.0.1", 40001), ("127.0.0.1", 5672)


class Log(asyncio.Protocol):
    """Notes its calls; keeps its side open at the end of input if it is told to."""

    def __init__(self, keep_open: bool = False) -> None:
        self.calls: list[object] = []
        self.keep_open = keep_open
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        self.calls.append("made")

    def data_received(self, data):
        self.calls.append(data)

    def eof_received(self):
        self.calls.append("eof")
        return self.keep_open

    def pause_writing(self):
        self.calls.append("pause")

    def resume_writing(self):
        self.calls.append("resume")

    def connection_lost(self, error):
        self.calls.append(error if error is None else type(error))
        self.lost.set_result(None)


def pair(client=None, server=None, **settings) -> tuple[LoopMemoryTransport, LoopMemoryTransport, Log, Log]:
    client, server = client or Log(), server or Log()
    transports = connect(
        asyncio.get_running_loop(),
        client,
        server,
        client_address=CLIENT,
        server_address=SERVER,
        **settings,
    )
    return *transports, client, server


async def quiet() -> None:
    """Let everything run that is under way."""
    for _ in range(20):
        await asyncio.sleep(0)


def running(test):
    return lambda: asyncio.run(test())


@running
async def test_memory_transport_delivers_bytes_eof_and_close_in_order():
    client, server, at_client, at_server = pair()
    assert at_client.calls == ["made"]
    assert at_server.calls == []
    client.write(b"one")
    client.writelines([b" two", bytearray(b" three")])
    client.close()
    await asyncio.gather(at_client.lost, at_server.lost)
    assert at_server.calls == ["made", b"one two three", "eof", None]
    assert at_client.calls == ["made", None]
    assert client.is_closing() and server.is_closing()


@running
async def test_write_eof_leaves_the_opposite_direction_open():
    client, server, at_client, at_server = pair(server=Log(keep_open=True))
    client.write(b"request")
    client.write_eof()
    await quiet()
    assert at_server.calls == ["made", b"request", "eof"]
    with pytest.raises(RuntimeError, match="after write_eof"):
        client.write(b"more")
    server.write(b"answer")
    server.close()
    await at_client.lost
    assert at_client.calls == ["made", b"answer", "eof", None]


@running
async def test_a_write_to_a_closed_peer_is_answered_with_a_reset():
    client, server, at_client, _ = pair(client=Log(keep_open=True))
    server.close()
    await quiet()
    assert at_client.calls == ["made", "eof"]
    client.write(b"nobody reads this")
    await quiet()
    assert at_client.calls == ["made", "eof"]  # nothing reads, so nothing notices
    client.write(b"nor this")
    await at_client.lost
    assert at_client.calls == ["made", "eof", ConnectionResetError]


@running
async def test_a_close_with_unread_input_is_a_reset_behind_the_output():
    client, server, at_client, at_server = pair()
    await quiet()
    server.pause_reading()
    client.write(b"unread")
    await quiet()
    server.write(b"last words")
    server.close()
    await at_client.lost
    assert at_client.calls == ["made", b"last words", ConnectionResetError]
    assert at_server.calls == ["made", None]


@running
async def test_a_linger_time_of_zero_makes_a_reset():
    _, server, at_client, _ = pair()
    server.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.abort()
    await at_client.lost
    assert at_client.calls == ["made", ConnectionResetError]


@running
async def test_an_abort_ends_the_stream():
    client, _, at_client, at_server = pair()
    await quiet()
    client.abort()
    await at_server.lost
    assert at_server.calls == ["made", "eof", None]
    assert at_client.calls == ["made", None]


@running
async def test_paused_input_waits_and_fills_the_write_buffer():
    client, server, at_client, at_server = pair()
    await quiet()
    server.pause_reading()
    client.write(bytes(WINDOW))
    assert client.get_write_buffer_size() == 0
    _, high = client.get_write_buffer_limits()
    client.write(bytes(high))
    assert "pause" not in at_client.calls
    client.write(b"!")
    assert at_client.calls == ["made", "pause"]
    assert client.get_write_buffer_size() == high + 1
    await quiet()
    assert at_server.calls == ["made"]
    server.resume_reading()
    await quiet()
    assert at_client.calls == ["made", "pause", "resume"]
    assert b"".join(at_server.calls[1:]) == bytes(WINDOW + high) + b"!"
    assert all(len(data) <= memory.MAX_READ for data in at_server.calls[1:])


@running
async def test_close_waits_for_the_write_buffer_and_abort_does_not():
    for end, received in (("close", WINDOW + 10), ("abort", WINDOW)):
        client, server, at_client, at_server = pair()
        await quiet()
        server.pause_reading()
        client.write(bytes(WINDOW + 10))
        getattr(client, end)()
        await quiet()
        assert at_client.lost.done() is (end == "abort")
        server.resume_reading()
        await asyncio.gather(at_client.lost, at_server.lost)
        assert len(b"".join(at_server.calls[1:-2])) == received, end
        assert at_server.calls[-2:] == ["eof", None]


@running
async def test_a_carrier_may_run_calls_in_any_order():
    carried = []

    def carry(callback, *, context):
        carried.append((callback, context))

    client, _, at_client, at_server = pair(carry=carry)
    client.write(b"one")
    client.write(b"two")
    client.close()
    await quiet()
    assert at_server.calls == []
    assert len(carried) == 1
    while carried:
        callback, context = carried.pop()
        context.run(callback)
    await asyncio.gather(at_client.lost, at_server.lost)
    assert at_server.calls == ["made", b"onetwo", "eof", None]


@running
async def test_a_failing_protocol_loses_its_connection():
    class Fails(Log):
        def data_received(self, data):
            raise ZeroDivisionError(data)

    reports = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, report: reports.append(report))
    client, _, at_client, at_server = pair(server=Fails())
    client.write(b"x")
    await asyncio.gather(at_client.lost, at_server.lost)
    assert at_server.calls == ["made", ZeroDivisionError]
    assert [type(report["exception"]) for report in reports] == [ZeroDivisionError]
    assert at_client.calls == ["made", "eof", None]


@running
async def test_memory_transport_fills_the_buffer_of_a_buffered_protocol():
    class Buffered(asyncio.BufferedProtocol):
        def __init__(self):
            self.buffer, self.received = bytearray(4), []

        def connection_made(self, transport):
            self.transport = transport

        def get_buffer(self, hint):
            return self.buffer

        def buffer_updated(self, size):
            self.received.append(bytes(self.buffer[:size]))
            if len(self.received) == 2:
                self.transport.pause_reading()

    reader = Buffered()
    client, server, _, _ = pair(server=reader)
    client.write(b"0123456789")
    await quiet()
    assert reader.received == [b"0123", b"4567"]
    server.resume_reading()
    await quiet()
    assert reader.received == [b"0123", b"4567", b"89"]


@running
async def test_memory_transport_has_addresses_socket_options_and_repr():
    client, server, _, _ = pair()
    assert client.get_extra_info("peername") == SERVER
    assert client.get_extra_info("sockname") == CLIENT
    sock = server.get_extra_info("socket")
    assert sock.getpeername() == CLIENT
    assert sock.type == socket.SOCK_STREAM
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == bytes(8)
    assert sock.fileno() == -1
    assert repr(client) == "<LoopMemoryTransport 127.0.0.1:40001 -> 127.0.0.1:5672 open>"
    client.close()
    assert repr(client).endswith("closing>")
    with pytest.raises(TypeError, match="bytes-like"):
        server.write("text")
