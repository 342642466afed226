"""The network of a simulation: servers, names and connections."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl

import pytest

from fakeamqp import simulation


async def echo(reader, writer):
    while data := await reader.read(100):
        writer.write(data)
        await writer.drain()
    writer.write(b" bye")
    writer.close()


@pytest.mark.each_case
@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_streams_connect_echo_and_are_refused_after_server_close(seed):
    async def main():
        server = await asyncio.start_server(echo, "localhost", 0)
        assert server.is_serving()
        host, port = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection("localhost", port)
        assert writer.get_extra_info("peername") == (host, port) == ("127.0.0.1", port)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.write_eof()
        assert await reader.read() == b" bye"
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionRefusedError) as refused:
            await asyncio.open_connection("localhost", port)
        assert refused.value.errno == errno.ECONNREFUSED
        assert "nothing listens there in this simulation" in str(refused.value)

    simulation.run(main(), seed=seed)


def test_large_transfers_drain():
    async def main():
        received = 0

        async def slow(reader, writer):
            nonlocal received
            while data := await reader.read(10_000):
                received += len(data)
                await asyncio.sleep(0.01)
            writer.close()

        await asyncio.start_server(slow, "localhost", 5000)
        _, writer = await asyncio.open_connection("localhost", 5000)
        for _ in range(20):
            writer.write(bytes(100_000))
            await writer.drain()
        assert received > 1_000_000  # drain waited for the reader
        writer.close()
        await asyncio.sleep(100)
        assert received == 2_000_000

    simulation.run(main(), seed=5)


def test_only_registered_host_names_are_resolved():
    async def main():
        loop = simulation.current()
        with pytest.raises(simulation.UnknownHost, match=r"loop.network.names\['rabbit.prod'\]") as unknown:
            await asyncio.open_connection("rabbit.prod", 5672)
        assert isinstance(unknown.value, socket.gaierror)
        assert unknown.value.errno == socket.EAI_NONAME
        loop.network.names["rabbit.prod"] = "127.0.0.1"
        await asyncio.start_server(echo, port=5672)
        for name in ("rabbit.prod", "localhost", "127.0.0.1", None):
            _, writer = await asyncio.open_connection(name, 5672)
            writer.close()
        found = await loop.getaddrinfo("rabbit.prod", 5672)
        assert found == [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 5672))]

    simulation.run(main())


def test_a_port_is_taken_once():
    async def main():
        server = await asyncio.start_server(echo, "localhost", 5672)
        with pytest.raises(OSError, match=r"127\.0\.0\.1") as taken:
            await asyncio.start_server(echo, "localhost", 5672)
        assert taken.value.errno == errno.EADDRINUSE
        server.close()
        assert server.sockets == ()
        await asyncio.start_server(echo, "localhost", 5672)
        other = await asyncio.start_server(echo, "localhost", 0)
        assert other.sockets[0].getsockname()[1] not in (0, 5672)

    simulation.run(main())


def test_a_server_waits_for_its_connections():
    async def main():
        server = await asyncio.start_server(echo, "localhost", 5672)
        _, writer = await asyncio.open_connection("localhost", 5672)
        serving = asyncio.create_task(server.serve_forever())
        await asyncio.sleep(1)
        serving.cancel()
        closed = asyncio.create_task(server.wait_closed())
        await asyncio.sleep(1)
        assert serving.cancelled()
        assert not closed.done()
        writer.close()
        await closed

    simulation.run(main())


def test_real_sockets_are_refused():
    async def main():
        with pytest.raises(simulation.NotSimulated, match="no socket of its own"):
            await asyncio.open_connection(sock=object())
        with pytest.raises(simulation.NotSimulated, match="no socket of its own"):
            await asyncio.start_server(echo, sock=object())

    simulation.run(main())


@pytest.mark.each_case
@pytest.mark.parametrize("seed", [None, 1, 4])
def test_tls_works_and_verifies_certificates_in_a_simulation(seed):
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    at_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(at_server)
    at_client = ssl.create_default_context()

    async def tls_echo(reader, writer):
        writer.write(await reader.readexactly(5))
        writer.close()

    async def main():
        await asyncio.start_server(tls_echo, "localhost", 5671, ssl=at_server)
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("localhost", 5671, ssl=at_client)
        authority.configure_trust(at_client)
        reader, writer = await asyncio.open_connection("localhost", 5671, ssl=at_client)
        assert writer.get_extra_info("cipher") is not None
        writer.write(b"hello")
        assert await reader.read() == b"hello"
        writer.close()
        await asyncio.sleep(60)  # until both sides have closed

    simulation.run(main(), seed=seed, quiet_end=True)
