"""Interception of clients with event loops, sockets or resolvers of their own: redirected, or refused.

192.0.2.0/24 is not routed (RFC 5737), so a connection that gets past the interception fails or hangs.
"""

from __future__ import annotations

import _socket
import asyncio
import importlib.util
import socket
import subprocess
import sys
from asyncio.proactor_events import BaseProactorEventLoop
from collections.abc import Awaitable, Callable, Iterator
from functools import lru_cache
from typing import Any

import pytest

from compat_tests.event_loop.without_readers import ProactorLoop
from compat_tests.unit.runtime.fakes import SECONDS
from fakeamqp import Broker
from fakeamqp.runtime import InterceptError

NAME = "rabbit.prod.invalid"
NUMERIC = "192.0.2.5"
HOSTS = [NAME, NUMERIC]
OTHER = "192.0.2.77"
"""What the app believes to be the address of the intercepted name."""

getaddrinfo = socket.getaddrinfo
connect = socket.socket.connect
"""References that a module has taken when it was imported."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running
    assert running.admin.failures == ()


@pytest.fixture
def intercepted(broker: Broker) -> Iterator[Broker]:
    with broker.intercept(f"{NAME}:5672", f"{NUMERIC}:5672"):
        yield broker
    assert (socket.getaddrinfo, socket.socket.connect) == (getaddrinfo, connect)
    assert _socket.getaddrinfo.__module__ == "_socket"


def refused(text: str = "may be its real address") -> Any:
    return pytest.raises(InterceptError, match=text)


# --- loops that connect in C ----------------------------------------------------------------------------


Main = Callable[[], Awaitable[object]]
OnLoop = Callable[[Main], None]


def on_uvloop(main: Main) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def run() -> None:
        assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
        await asyncio.wait_for(main(), SECONDS)

    uvloop.run(run())


def on_proactor(main: Main) -> None:
    loop = ProactorLoop()
    try:
        loop.run_until_complete(asyncio.wait_for(main(), SECONDS))
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


@pytest.fixture(params=[on_uvloop, on_proactor])
def on_loop(request: pytest.FixtureRequest) -> OnLoop:
    """Runs a coroutine in a loop that connects in C."""
    found: OnLoop = request.param
    return found


@pytest.mark.parametrize("host", HOSTS)
def test_aio_pika_on_a_loop_in_c_is_intercepted(intercepted: Broker, on_loop: OnLoop, host: str) -> None:
    aio_pika = pytest.importorskip("aio_pika")

    async def main() -> None:
        async with await aio_pika.connect(host=host, timeout=SECONDS) as connection:
            await (await connection.channel()).declare_queue("orders")

    on_loop(main)
    assert intercepted.queue("orders").exists


@pytest.mark.parametrize("host", HOSTS)
def test_every_way_to_connect_on_a_loop_in_c_is_intercepted(
    intercepted: Broker, on_loop: OnLoop, host: str
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        _, writer = await asyncio.open_connection(host, 5672)
        assert writer.get_extra_info("peername")[1] == intercepted.port
        writer.close()
        await writer.wait_closed()
        [info] = await loop.getaddrinfo(host, 5672, type=socket.SOCK_STREAM)
        assert info[4] == (intercepted.host, intercepted.port)
        for address in (host, 5672), info[4]:
            with socket.socket() as sock:
                sock.setblocking(False)
                await loop.sock_connect(sock, address)
                assert sock.getpeername()[1] == intercepted.port

    on_loop(main)


def test_tls_on_a_loop_in_c_verifies_the_name_of_the_client(on_loop: OnLoop) -> None:
    pytest.importorskip("trustme")
    from fakeamqp.runtime.tls import ServerTLS

    name = "rabbit.prod.example"
    with Broker(tls=ServerTLS.throwaway([name])) as broker, broker.intercept(f"{name}:5671"):

        async def main() -> None:
            _, writer = await asyncio.open_connection(name, 5671, ssl=broker.tls.client_context)
            assert writer.get_extra_info("peercert")["subjectAltName"] == (("DNS", name),)
            writer.close()
            await writer.wait_closed()

        on_loop(main)


def test_an_address_of_unknown_origin_is_refused_on_a_loop_in_c(intercepted: Broker, on_loop: OnLoop) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with refused():
            await asyncio.open_connection(OTHER, 5672)
        with socket.socket() as sock:
            sock.setblocking(False)
            with refused():
                await loop.sock_connect(sock, (OTHER, 5672))

    on_loop(main)


def test_other_addresses_are_untouched_on_a_loop_in_c(intercepted: Broker, on_loop: OnLoop) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            for host in ("127.0.0.1", "localhost"):
                _, writer = await asyncio.open_connection(host, port, family=socket.AF_INET)
                assert writer.get_extra_info("peername")[1] == port
                writer.close()
                await writer.wait_closed()
        infos = await loop.getaddrinfo("localhost", 5672, type=socket.SOCK_STREAM)
        assert {info[4][1] for info in infos} == {5672}
        with pytest.raises(socket.gaierror):
            await asyncio.open_connection("other.prod.invalid", 5672)

    on_loop(main)


def test_event_loop_classes_are_restored_after_the_interception(broker: Broker) -> None:
    uvloop = pytest.importorskip("uvloop")
    loops = (uvloop.Loop, asyncio.BaseEventLoop, BaseProactorEventLoop, ProactorLoop)
    before = [dict(vars(each)) for each in loops]
    with broker.intercept(f"{NAME}:5672"):
        changed = [
            {name for name, value in vars(each).items() if value is not was.get(name)}
            for each, was in zip(loops, before, strict=True)
        ]
        every = {"getaddrinfo", "create_connection", "sock_connect"}
        assert changed == [every, every - {"sock_connect"}, {"sock_connect"}, set()]
    assert [dict(vars(each)) for each in loops] == before


# --- trio, Twisted, gevent ------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_trio_clients_are_intercepted(intercepted: Broker, host: str) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        with trio.fail_after(SECONDS):
            stream = await trio.open_tcp_stream(host, 5672)
            assert stream.socket.getpeername()[1] == intercepted.port
            await stream.aclose()
            with trio.socket.socket() as sock:
                await sock.connect((NUMERIC, 5672))
                assert sock.getpeername()[1] == intercepted.port
            with trio.socket.socket() as sock, refused():
                await sock.connect((OTHER, 5672))

    trio.run(main)


@pytest.mark.parametrize("host", HOSTS)
def test_twisted_with_a_saved_resolver_reference_is_intercepted(intercepted: Broker, host: str) -> None:
    pytest.importorskip("twisted")
    # A reactor cannot be run twice, and other tests may need this process's.
    program = f"""
        from twisted.internet import endpoints, protocol, reactor
        from fakeamqp import Broker

        with Broker() as broker, broker.intercept("{NAME}:5672", "{NUMERIC}:5672"):
            endpoint = endpoints.HostnameEndpoint(reactor, "{host}", 5672)
            joined = endpoint.connect(protocol.Factory.forProtocol(protocol.Protocol))
            joined.addCallback(lambda client: print(client.transport.socket.getpeername()[1] == broker.port))
            joined.addErrback(lambda failure: print(failure))
            joined.addBoth(lambda _: reactor.stop())
            reactor.run()
    """
    assert run(program) == "True\n"


GEVENT = f"""
    import socket, sys
    import gevent.socket
    from fakeamqp import Broker
    from fakeamqp.runtime import InterceptError

    def reached(sock):
        with sock:
            return sock.getpeername()[1] == broker.port

    with Broker() as broker:
        before = gevent.socket.getaddrinfo, gevent.socket.socket.connect, socket.getaddrinfo
        with broker.intercept("{NAME}:5672", "{NUMERIC}:5672"):
            for host in ("{NAME}", "{NUMERIC}"):
                for module in (socket, gevent.socket):
                    assert reached(module.create_connection((host, 5672), timeout={SECONDS}))
                    for connect in ("connect", "connect_ex"):
                        sock = module.socket()
                        sock.settimeout({SECONDS})
                        assert not getattr(sock, connect)((host, 5672))
                        assert reached(sock)
            for module in (socket, gevent.socket):
                with module.socket() as sock:
                    try:
                        sock.connect(("{OTHER}", 5672))
                    except InterceptError as refusal:
                        assert "may be its real address" in str(refusal)
                    else:
                        sys.exit("it was not refused")
        assert before == (gevent.socket.getaddrinfo, gevent.socket.socket.connect, socket.getaddrinfo)
        print("done")
"""


@pytest.mark.parametrize("patch", ["", "\n    from gevent import monkey; monkey.patch_all()"])
def test_gevent_clients_are_intercepted(patch: str) -> None:
    if importlib.util.find_spec("gevent") is None:
        pytest.skip("needs gevent")
    assert run(patch + GEVENT) == "done\n"


def test_gevent_imported_after_the_interception_is_refused() -> None:
    if importlib.util.find_spec("gevent") is None:
        pytest.skip("needs gevent")
    program = f"""
        from fakeamqp import Broker
        from fakeamqp.runtime import InterceptError

        with Broker() as broker, broker.intercept("{NUMERIC}:5672"):
            import gevent.socket

            with gevent.socket.socket() as sock:
                try:
                    sock.connect(("{NUMERIC}", 5672))
                except InterceptError as refusal:
                    print(refusal)
    """
    assert run(program) == (
        f"refused to connect to {NUMERIC}:5672: it is intercepted, but this client calls a connect function "
        "that was saved before the interception or is not Python's, and cannot be redirected. Import the "
        "client before the interception, or give it broker.url\n"
    )


def run(program: str) -> str:
    """What a program prints, in a process of its own."""
    from textwrap import dedent

    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, timeout=3 * SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- resolvers ------------------------------------------------------------------------------------------


def test_saved_reference_to_getaddrinfo_is_intercepted(intercepted: Broker) -> None:
    infos = getaddrinfo(NAME, 5672, type=socket.SOCK_STREAM)
    assert [info[4] for info in infos] == [(intercepted.host, intercepted.port)]
    with pytest.raises(socket.gaierror):
        getaddrinfo(NAME, 5673)


def test_cached_address_of_an_intercepted_name_is_refused(intercepted: Broker) -> None:
    @lru_cache
    def resolve(host: str) -> str:
        return OTHER

    address = (resolve(NAME), 5672)
    with socket.socket() as sock:
        for dial in (sock.connect, sock.connect_ex):
            with refused() as refusal:
                dial(address)
            assert str(refusal.value) == (
                f"refused to connect to {OTHER}:5672: {NAME}:5672 is intercepted, and this may be its real "
                "address, which the app looked up before or with a resolver of its own. Intercept it too: "
                f"broker.intercept('{NAME}:5672', '{OTHER}:5672'); if it is another server, connect to it by "
                "its name, or outside of the interception"
            )
        with refused():
            connect(sock, address)

    async def main() -> None:
        with refused():
            await asyncio.open_connection(*address)

    asyncio.run(main())


def test_a_cached_address_can_be_intercepted_too(broker: Broker) -> None:
    with (
        broker.intercept(f"{NAME}:5672", f"{OTHER}:5672"),
        socket.create_connection((OTHER, 5672), SECONDS) as client,
    ):
        assert client.getpeername()[1] == broker.port


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", NUMERIC])
def test_a_saved_reference_to_connect_is_refused(broker: Broker, host: str) -> None:
    with broker.intercept("localhost:5672", f"{NUMERIC}:5672"), socket.socket() as sock:
        with refused("was saved before the interception"):
            connect(sock, (host, 5672))
        connect(sock, (broker.host, broker.port))


@pytest.mark.parametrize("lookup", ["getaddrinfo", "gethostbyname", "gethostbyname_ex"])
def test_address_resolved_from_another_name_is_not_refused(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, lookup: str
) -> None:
    answers = {
        "getaddrinfo": [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (OTHER, 5672))],
        "gethostbyname": OTHER,
        "gethostbyname_ex": ("other.prod.invalid", [], [OTHER]),
    }
    monkeypatch.setattr(socket, lookup, lambda *args: answers[lookup])
    with broker.intercept(f"{NAME}:5672"), socket.socket() as sock:
        sock.setblocking(False)
        with refused():
            sock.connect_ex((OTHER, 5672))
        asked = ("other.prod.invalid", 5672) if lookup == "getaddrinfo" else ("other.prod.invalid",)
        assert getattr(socket, lookup)(*asked) == answers[lookup]
        sock.connect_ex((OTHER, 5672))  # Whether it is reached does not matter.
    with broker.intercept(f"{NAME}:5672"), socket.socket() as sock, refused():
        sock.connect((OTHER, 5672))  # Another interception knows nothing of it.


def test_the_looked_up_address_of_the_intercepted_name_is_refused(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostbyname", lambda host: OTHER)
    with broker.intercept(f"{NAME}:5672"), socket.socket() as sock:
        assert socket.gethostbyname(NAME) == OTHER
        with refused():
            sock.connect((OTHER, 5672))


def test_numeric_targets_leave_other_addresses_alone(broker: Broker) -> None:
    with broker.intercept(f"{NUMERIC}:5672", "localhost:5672"), socket.socket() as sock:
        sock.setblocking(False)
        sock.connect_ex((OTHER, 5672))


def test_other_ports_and_this_machine_are_left_alone(intercepted: Broker) -> None:
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.connect_ex((OTHER, 5673))
    with (
        Broker() as other,
        intercepted.intercept(f"{NAME}:{other.port}"),
        socket.create_connection((other.host, other.port), SECONDS) as client,
    ):
        assert client.getpeername()[1] == other.port


@pytest.mark.parametrize("host", ["192.0.517", "0xC0000205", "3221225989", "::ffff:192.0.2.5"])
def test_numeric_address_in_any_notation_is_intercepted(intercepted: Broker, host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as client:
        client.settimeout(SECONDS)
        client.connect((host, 5672))
        assert client.getpeername()[1] == intercepted.port
