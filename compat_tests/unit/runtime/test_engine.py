"""The engine: bytes in and out, in order, once per turn, for every peer alike."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from selectors import EVENT_READ
from typing import Any, cast

import pytest

from compat_tests.unit.runtime.conftest import Started
from compat_tests.unit.runtime.fakes import SECONDS, EchoConnection, Echoes, PortEngine, real_engine
from fakeamqp.model.operations import Operations
from fakeamqp.model.timers import Timers, TimeSource
from fakeamqp.runtime import EngineError, RealClock, ThreadEngine, turns
from fakeamqp.runtime.clock.virtual import VirtualClock
from fakeamqp.runtime.thread.loop import Loop


def dial(engine: PortEngine) -> socket.socket:
    listener = engine.listen()
    return socket.create_connection(listener.address, timeout=SECONDS)


def read(sock: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = sock.recv(count - len(data))
        assert piece, f"end after {len(data)} of {count} bytes"
        data += piece
    return bytes(data)


def read_to_end(sock: socket.socket) -> bytes:
    data = bytearray()
    while piece := sock.recv(65536):
        data += piece
    return bytes(data)


def turn(engine: PortEngine) -> None:
    """Make the loop take a turn, and see it end."""
    with engine:
        turns = engine.turns
        engine.wake()
    assert engine.wait_until(lambda: engine.turns > turns, SECONDS)


def test_tcp_client_exchanges_data_with_a_connection(engine: PortEngine, echoes: Echoes) -> None:
    with dial(engine) as client:
        client.sendall(b"hello")
        assert read(client, 5) == b"hello"
    peer = echoes.accepted[0].peer
    assert (peer.host, peer.server_host) == ("127.0.0.1", "127.0.0.1")
    assert peer.server_port == engine.listeners[0].port
    assert peer.tls is False and peer.certificate_subject is None


def test_socketpair_client_exchanges_data_with_a_connection(engine: PortEngine, echoes: Echoes) -> None:
    with engine.connect_socketpair() as client:
        assert client.gettimeout() is None
        client.settimeout(SECONDS)
        client.sendall(b"hello")
        assert read(client, 5) == b"hello"
    assert echoes.accepted[0].peer.host == "socketpair"


def test_peers_are_accepted_in_order_and_do_not_mix(engine: PortEngine, echoes: Echoes) -> None:
    clients = [engine.connect_socketpair() for _ in range(10)]
    for number, client in enumerate(clients):
        client.settimeout(SECONDS)
        client.sendall(b"%d" % number)
    for number, client in enumerate(clients):
        assert read(client, 1) == b"%d" % number
        client.close()
    assert [bytes(each.received) for each in echoes.accepted] == [b"%d" % n for n in range(10)]


def test_megabytes_both_ways_arrive_in_order(engine: PortEngine) -> None:
    data = b"".join(number.to_bytes(4, "big") for number in range(2_000_000))
    with dial(engine) as client:
        sender = threading.Thread(target=client.sendall, args=(data,))
        sender.start()
        assert read(client, len(data)) == data
        sender.join()


def test_output_caused_by_one_read_is_sent_in_one_write() -> None:
    class ManyPieces(EchoConnection):
        def on_data(self, data: bytes) -> None:
            for _ in range(3000):
                self.write(b"piece")

    accept = Echoes(ManyPieces)
    engine = real_engine(accept)
    engine.start()
    with engine.client() as client:
        client.sendall(b"go")
        assert read(client, 15_000) == b"piece" * 3000
    engine.stop()
    assert [len(pieces) for pieces in accept.accepted[0].taken] == [3000]
    assert accept.accepted[0].sent_bytes == 15_000


@pytest.mark.parametrize("paced", [False, True])
def test_output_of_paced_connection_is_written_between_slices_of_its_input(
    paced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_TURN_SECONDS", inf)  # All input is processed in one turn.
    sent_before: list[int] = []

    class Answers(EchoConnection):
        def on_data(self, data: bytes) -> None:
            self.paced = paced
            sent_before.append(self.sent_bytes)
            self.write(data)

    engine = real_engine(Echoes(Answers))
    engine.start()
    with engine.client() as client:
        with engine:
            client.sendall(bytes(20_000))
        assert read(client, 20_000) == bytes(20_000)
    engine.stop()
    assert len(sent_before) > 3
    assert any(sent_before) is paced


def test_connection_with_expensive_input_does_not_delay_other_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "_TURN_SECONDS", 0.0)  # Each slice uses up a turn.
    order: list[tuple[EchoConnection, int]] = []

    class Records(EchoConnection):
        def on_data(self, data: bytes) -> None:
            if not order:
                small.sendall(b"y")
            order.append((self, len(data)))

    accept = Echoes(Records)
    engine = real_engine(accept)
    engine.start()
    with engine.connect_socketpair() as big, engine.connect_socketpair() as small:
        big.sendall(bytes(100_000))
        assert engine.wait_until(lambda: sum(size for _, size in order) == 100_001, SECONDS)
    engine.stop()
    senders = [connection for connection, _ in order]
    assert senders[0] is senders[-1] is accept.accepted[0]
    assert senders.index(accept.accepted[1]) < 10
    assert bytes(accept.accepted[0].received) == bytes(100_000)


def test_each_turn_processes_expensive_input_of_a_single_connection(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_TURN_SECONDS", 0.0)  # Each slice uses up a turn,
    monkeypatch.setattr(turns, "_COSTLY_SECONDS", 0.0)  # and the share of all connections.
    engine, accept = started()
    clients = [engine.connect_socketpair() for _ in range(20)]
    before = engine.turns
    for client in clients:
        client.sendall(bytes(6400))
    assert engine.wait_until(lambda: all(len(each.received) == 6400 for each in accept.accepted), SECONDS)
    slices = sum(len(each.chunks) for each in accept.accepted)
    # The first slice of each shows that its input is expensive.
    assert slices <= engine.turns - before + len(clients)
    engine.stop()
    for client in clients:
        client.close()


class StandingClock(TimeSource):
    """Moves when told to."""

    def __init__(self) -> None:
        self.instant = 1000.0

    def now(self) -> float:
        return self.instant

    def time(self) -> float:
        return self.instant


class _Busy:
    """A source whose input keeps the loop busy for 23 seconds of a clock."""

    name = "busy"

    def __init__(self, clock: StandingClock, order: list[str]) -> None:
        self.socket, self.peer = socket.socketpair()
        self._clock = clock
        self._order = order

    def ready(self, _mask: int) -> None:
        self._order.append(self.socket.recv(1).decode())
        self._clock.instant += 23

    def failed(self) -> None:
        raise AssertionError


class _SlowLock:
    """A lock that the loop gets only after something else has happened."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile

    def acquire(self) -> None:
        self._meanwhile()

    def release(self) -> None:
        pass


def test_timer_due_in_a_busy_turn_runs_after_input_received_meanwhile() -> None:
    clock = StandingClock()
    timers = Timers(clock)
    operations = Operations()
    loop = Loop(ThreadEngine(clock, timers, Echoes(), operations=operations))
    order: list[str] = []
    busy, waiting = _Busy(clock, order), _Busy(clock, order)
    for each in (busy, waiting):
        loop.watch(each, each.socket.fileno(), 0, EVENT_READ)
    timers.call_at(clock.now() + 10, lambda: order.append("timer"))
    busy.peer.send(b"1")
    loop._turn(cast("Any", _SlowLock(lambda: waiting.peer.send(b"2"))), 0.0)
    assert order == ["1"]
    assert operations.busy_seconds == 23
    loop._turn(cast("Any", _SlowLock(lambda: None)), 0.0)
    assert order == ["1", "2", "timer"]
    loop.close()
    for each in (busy, waiting):
        each.socket.close()
        each.peer.close()


def test_turn_with_remaining_work_counts_as_busy_time() -> None:
    clock = StandingClock()
    timers = Timers(clock)
    operations = Operations()
    loop = Loop(ThreadEngine(clock, timers, Echoes(), operations=operations))

    def steps() -> Iterator[None]:
        for _ in range(5):
            clock.instant += 0.01
            yield
        clock.instant += 0.01

    operations.pauses = lambda: True
    operations.run(steps())
    counted = []
    for _ in range(3):
        loop._turn(cast("Any", _SlowLock(lambda: None)), 0.0)
        counted.append(round(operations.busy_seconds, 3))
    assert counted == [0.02, 0.04, 0.04]  # A slice is two steps; the last turn has a short rest.
    loop.close()


def test_expensive_input_of_a_small_read_is_cut_into_slices(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_TURN_SECONDS", 0.0)
    engine, accept = started()
    with engine.connect_socketpair() as client:
        client.sendall(bytes(8000))
        assert engine.wait_until(lambda: len(accept.accepted[0].received) == 8000, SECONDS)
    engine.stop()
    assert max(accept.accepted[0].chunks) <= 512


def test_take_input_processes_all_waiting_input(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_TURN_SECONDS", 0.0)
    engine, accept = started(EchoConnection)
    with engine.connect_socketpair() as client:
        assert engine.wait_until(lambda: accept.accepted, SECONDS)
        with engine:
            client.sendall(bytes(100_000))
            engine.take_input()
            assert len(accept.accepted[0].received) == 100_000


def test_sent_reports_every_octet(engine: PortEngine, echoes: Echoes) -> None:
    size = 30_000_000
    with dial(engine) as client:
        assert engine.wait_until(lambda: echoes.accepted, SECONDS)
        connection = echoes.accepted[0]
        with engine:
            connection.write(b"x" * size)
        with engine:
            assert 0 < connection.sent_bytes < size  # the rest waits for the reader
        read(client, size)
        assert engine.wait_until(lambda: connection.sent_bytes == size, SECONDS)


def test_output_with_views_is_joined_part_by_part(engine: PortEngine, echoes: Echoes) -> None:
    """Large bodies are shared by connections: what a peer does not read is not a copy of them."""
    body = memoryview(bytes(range(256)) * 4096 * 20)
    parts = [body[start : start + 100_000] for start in range(0, len(body), 100_000)]
    pieces = [memoryview(b"begin"), *(piece for part in parts for piece in (part, b"between"))]
    with engine.client() as client:
        connection = echoes.accepted[0]
        with engine:
            connection.write(*pieces)
        with engine:
            [driver] = engine._loop.drivers
            assert 0 < len(driver.rest) <= 1024 * 1024
            connection.write(b"end")
        size = sum(map(len, pieces))
        assert read(client, size) == b"".join(pieces)
        assert read(client, 3) == b"end"
        assert engine.wait_until(lambda: connection.sent_bytes == size + 3, SECONDS)


def test_output_stays_in_the_connection_while_the_peer_does_not_read(
    engine: PortEngine, echoes: Echoes
) -> None:
    with engine.client() as client:
        connection = echoes.accepted[0]
        with engine:
            connection.write(b"a" * 30_000_000)
        with engine:
            connection.write(b"b")
        assert connection.output == [b"b"]
        assert len(read(client, 30_000_000)) == 30_000_000
        assert read(client, 1) == b"b"


def test_connection_is_not_read_while_its_reading_is_false(engine: PortEngine, echoes: Echoes) -> None:
    with engine.client() as client:
        connection = echoes.accepted[0]
        with engine:
            connection.set_reading(False)
        client.sendall(b"held back")
        turn(engine)
        assert connection.received == b""
        with engine:
            connection.set_reading(True)
        assert read(client, 9) == b"held back"


def test_peer_of_an_unread_connection_is_blocked_by_its_full_socket(
    engine: PortEngine, echoes: Echoes
) -> None:
    with engine.connect_socketpair() as client:
        connection = echoes.accepted[0]
        with engine:
            connection.set_reading(False)
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                client.send(b"x" * 65536)
        assert connection.received == b""


def test_single_read_of_a_peer_is_at_most_256_kib(engine: PortEngine, echoes: Echoes) -> None:
    with dial(engine) as client:
        sender = threading.Thread(target=client.sendall, args=(b"x" * 3_000_000,))
        sender.start()
        read(client, 3_000_000)
        sender.join()
    assert max(echoes.accepted[0].chunks) <= 256 * 1024


class TestTheEndOfAConnection:
    def test_connection_ends_when_the_peer_closes(self, engine: PortEngine, echoes: Echoes) -> None:
        dial(engine).close()
        assert engine.wait_until(lambda: echoes.accepted and echoes.accepted[0].eofs, SECONDS)
        assert engine.wait_until(lambda: not engine.connections, SECONDS)
        assert echoes.accepted[0].eofs == 1

    def test_connection_ends_when_the_peer_resets(self, engine: PortEngine, echoes: Echoes) -> None:
        client = dial(engine)
        client.sendall(b"half a fra")
        assert read(client, 10) == b"half a fra"
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        assert engine.wait_until(lambda: echoes.accepted[0].eofs == 1, SECONDS)
        assert engine.wait_until(lambda: not engine.connections, SECONDS)

    def test_half_closed_peer_still_gets_its_answer(self, engine: PortEngine) -> None:
        with dial(engine) as client:
            client.sendall(b"question")
            client.shutdown(socket.SHUT_WR)
            assert read_to_end(client) == b"question"

    def test_output_written_at_eof_is_sent(self, started: Started) -> None:
        class LastWord(EchoConnection):
            def receive_eof(self) -> None:
                super().receive_eof()
                self.write(b"goodbye" * 200_000)

        engine, accept = started(LastWord)
        with dial(engine) as client:
            client.shutdown(socket.SHUT_WR)
            assert read_to_end(client) == b"goodbye" * 200_000
        assert engine.wait_until(lambda: not engine.connections, SECONDS)
        engine.stop()
        assert accept.accepted[0].eofs == 1

    def test_finished_connection_sends_its_output_and_then_ends(
        self, engine: PortEngine, echoes: Echoes
    ) -> None:
        with engine.client() as client:
            connection = echoes.accepted[0]
            with engine:
                connection.write(b"last words " * 1_000_000)
                connection.finish()
            assert read_to_end(client) == b"last words " * 1_000_000
        assert engine.wait_until(lambda: connection.eofs == 1, SECONDS)

    def test_output_of_a_finished_connection_arrives_despite_unread_input(
        self, engine: PortEngine, echoes: Echoes
    ) -> None:
        with dial(engine) as client:
            assert engine.wait_until(lambda: echoes.accepted, SECONDS)
            connection = echoes.accepted[0]
            with engine:
                connection.set_reading(False)
            client.sendall(b"x" * 100_000)
            with engine:
                connection.write(b"why it ends")
                connection.finish()
            # A reset would arrive before this: the peer goes on sending for long after our end.
            for _ in range(50):
                client.sendall(b"x" * 100_000)
            assert read_to_end(client) == b"why it ends"
            assert connection.received == b""

    def test_finished_connection_ends_although_the_peer_never_closes(
        self, started: Started, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("fakeamqp.runtime.connection_driver.LINGER_SECONDS", 0.01)
        engine, accept = started()
        with dial(engine) as client:
            assert engine.wait_until(lambda: accept.accepted, SECONDS)
            with engine:
                accept.accepted[0].finish()
            assert client.recv(1) == b""
            assert engine.wait_until(lambda: accept.accepted[0].eofs == 1, SECONDS)

    def test_aborted_connection_ends_at_once_without_output(self, engine: PortEngine, echoes: Echoes) -> None:
        with engine.client() as client:
            connection = echoes.accepted[0]
            with engine:
                connection.write(b"never sent")
                connection.abort()
            assert connection.eofs == 1
            assert client.recv(100) == b""
        assert connection.sent_bytes == 0

    def test_connections_lists_only_open_connections(self, engine: PortEngine, echoes: Echoes) -> None:
        with engine.connect_socketpair(), engine.connect_socketpair():
            assert engine.connections == echoes.accepted
            engine.disconnect_all()
            assert engine.connections == []
        assert [each.eofs for each in echoes.accepted] == [1, 1]


class Broken(EchoConnection):
    """A connection with bugs."""

    def on_data(self, data: bytes) -> None:
        if data.startswith(b"bug"):
            raise LookupError("a bug in the protocol")
        super().on_data(data)


@pytest.mark.parametrize("through", ["tcp", "socketpair"])
def test_exception_on_input_ends_only_its_connection_and_is_recorded(
    started: Started, through: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine, accept = started(Broken)
    open_one: Any = engine.connect_socketpair if through == "socketpair" else lambda: dial(engine)
    with open_one() as good, open_one() as bad:
        good.settimeout(SECONDS)
        bad.settimeout(SECONDS)
        bad.sendall(b"bug")
        assert bad.recv(100) == b""
        good.sendall(b"still there?")
        assert read(good, 12) == b"still there?"
    engine.stop()
    assert [str(failure) for failure in engine.failures] == [
        "input of echo: LookupError('a bug in the protocol')"
    ]
    assert "a bug in the protocol" in caplog.text
    assert [each.eofs for each in accept.accepted] == [1, 1]


@pytest.mark.parametrize("method", ["pending", "sent", "receive_eof"])
def test_exceptions_in_other_connection_methods_do_not_end_the_loop(method: str) -> None:
    def broken(self: Any, *_: Any) -> Any:
        raise LookupError(method)

    kind = type("BrokenElsewhere", (EchoConnection,), {method: broken})
    accept = Echoes(kind)
    engine = real_engine(accept)
    engine.start()
    with engine.client() as client:
        with suppress(BrokenPipeError):  # it may have ended before anything was sent
            client.sendall(b"x")
            client.shutdown(socket.SHUT_WR)
        read_to_end(client)
    assert engine.wait_until(lambda: not engine.connections, SECONDS)
    accept.kind = EchoConnection
    with engine.connect_socketpair() as client:
        client.sendall(b"next")
        assert read(client, 4) == b"next"
    engine.stop()
    assert method in {str(failure.error) for failure in engine.failures}


def test_exception_on_accept_ends_only_that_peer(echoes: Echoes) -> None:
    failing = [True]

    def accept(peer: Any, notify: Any) -> EchoConnection:
        if failing.pop() if failing else False:
            raise LookupError("cannot accept")
        return echoes(peer, notify)

    engine = real_engine(accept)
    engine.start()
    with dial(engine) as client:
        assert client.recv(1) == b""
    with dial(engine) as client:
        client.sendall(b"next")
        assert read(client, 4) == b"next"
    engine.stop()
    assert [str(failure.error) for failure in engine.failures] == ["cannot accept"]


class TestTimers:
    def test_a_timer_set_from_another_thread_wakes_the_loop(self, engine: PortEngine) -> None:
        ran = threading.Event()
        with engine:
            engine.timers.call_at(engine.clock.now() + 3600, lambda: None, "far away")
        with engine:
            engine.timers.call_at(engine.clock.now() + 0.01, ran.set, "soon")
        assert ran.wait(SECONDS)

    def test_timer_ten_years_away_does_not_disturb_the_loop(self, engine: PortEngine) -> None:
        ran = threading.Event()
        with engine:
            engine.timers.call_at(engine.clock.now() + 315_360_000, lambda: None, "in ten years")
        turn(engine)  # Falls asleep with that in mind,
        turn(engine)  # and wakes.
        with engine:
            engine.timers.call_at(engine.clock.now() + 0.01, ran.set, "soon")
        assert ran.wait(SECONDS)

    def test_output_written_by_a_timer_is_sent(self, engine: PortEngine, echoes: Echoes) -> None:
        with engine.client() as client:
            with engine:
                engine.timers.call_at(engine.clock.now(), lambda: echoes.accepted[0].write(b"tick"))
            assert read(client, 4) == b"tick"

    def test_exception_in_a_timer_is_recorded_and_the_next_timer_runs(self) -> None:
        engine = real_engine(Echoes())
        engine.start()
        ran = threading.Event()

        def broken() -> None:
            raise LookupError("broken timer")

        with engine:
            engine.timers.call_at(engine.clock.now(), broken)
            engine.timers.call_at(engine.clock.now(), ran.set)
        assert ran.wait(SECONDS)
        engine.stop()
        assert [str(failure) for failure in engine.failures] == ["timer: LookupError('broken timer')"]


class TestVirtualTime:
    def test_timers_use_virtual_time_and_transports_use_real_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("fakeamqp.runtime.connection_driver.LINGER_SECONDS", 0.01)
        clock = VirtualClock(0.0)
        accept = Echoes()
        engine = PortEngine(
            clock, Timers(clock), accept, operations=Operations(), transport_timers=Timers(RealClock())
        )
        engine.start()
        ran: list[float] = []
        with engine.client():
            with engine:
                engine.timers.call_at(1.0, lambda: ran.append(clock.now()))
                accept.accepted[0].finish()
            # The lingering socket is let go in real time, while the broker's time stands.
            assert engine.wait_until(lambda: accept.accepted[0].eofs, SECONDS)
            turn(engine)
            turns = engine.turns
            turn(engine)
            assert engine.turns == turns + 1
            assert ran == []
            with engine:
                clock.step_to(1.0)
            assert ran == [1.0]
        engine.stop()
        assert engine.failures == []

    def test_advancing_the_clock_does_not_cut_pending_output(self) -> None:
        clock = VirtualClock(0.0)
        accept = Echoes()
        engine = PortEngine(
            clock, Timers(clock), accept, operations=Operations(), transport_timers=Timers(RealClock())
        )
        engine.start()
        with engine.client() as client:
            with engine:
                accept.accepted[0].write(b"z" * 3_000_000)
                accept.accepted[0].finish()
            with engine:
                clock.step_to(3600)
            turn(engine)
            assert len(read_to_end(client)) == 3_000_000
        engine.stop()


class TestTheLock:
    def test_no_input_is_processed_while_a_test_holds_the_lock(
        self, engine: PortEngine, echoes: Echoes
    ) -> None:
        with engine.client() as client:
            with engine:
                client.sendall(b"wait")
                engine.wake()
                with engine:  # reentrant, and leaving the inner level lets nobody in
                    pass
                assert echoes.accepted[0].received == b""
            assert read(client, 4) == b"wait"

    def test_output_is_sent_only_when_the_outermost_lock_level_is_released(
        self, engine: PortEngine, echoes: Echoes
    ) -> None:
        with engine.client() as client:
            connection = echoes.accepted[0]
            with engine:
                with engine:
                    connection.write(b"one")
                assert connection.taken == []
                connection.write(b"two")
            assert connection.taken == [[b"one", b"two"]]
            assert connection.sent_bytes == 6
            assert read(client, 6) == b"onetwo"

    def test_output_written_before_an_exception_is_sent(self, engine: PortEngine, echoes: Echoes) -> None:
        with engine.client() as client:
            with pytest.raises(LookupError), engine:
                echoes.accepted[0].write(b"done")
                raise LookupError
            assert read(client, 4) == b"done"

    def test_releasing_the_lock_without_holding_the_lock_is_an_error(self, engine: PortEngine) -> None:
        with pytest.raises(RuntimeError, match="does not hold"):
            engine.__exit__(None, None, None)


class TestWaiting:
    def test_wait_until_returns_true_at_once_for_a_true_predicate(self, engine: PortEngine) -> None:
        assert engine.wait_until(lambda: True, 0)

    def test_wait_until_returns_false_after_the_timeout(self, engine: PortEngine) -> None:
        assert engine.wait_until(lambda: False, 0.001) is False

    def test_wait_until_sees_changes_of_another_thread(self, engine: PortEngine) -> None:
        seen: list[int] = []

        def act() -> None:
            with engine:
                seen.append(1)

        other = threading.Thread(target=act)
        with engine:
            other.start()
            assert engine.wait_until(lambda: seen, SECONDS)  # gives the lock up meanwhile
        other.join()

    def test_wait_until_raises_the_exception_of_the_predicate(self, engine: PortEngine) -> None:
        calls: list[int] = []

        def predicate() -> bool:
            calls.append(1)
            if len(calls) > 1:
                raise LookupError("from the predicate")
            engine.wake()
            return False

        with pytest.raises(LookupError, match="from the predicate"):
            engine.wait_until(predicate, SECONDS)
        assert len(calls) == 2

    def test_wait_until_returns_false_when_the_engine_stops(self, engine: PortEngine) -> None:
        stopper = threading.Thread(target=engine.stop)
        with engine:
            stopper.start()
            assert engine.wait_until(lambda: False, SECONDS) is False
        stopper.join()

    def test_wait_until_on_the_loop_thread_is_refused(self, engine: PortEngine) -> None:
        caught: list[EngineError] = []

        def wait() -> None:
            try:
                engine.wait_until(lambda: True, 1)
            except EngineError as error:
                caught.append(error)

        with engine:
            engine.timers.call_at(engine.clock.now(), wait)
        assert engine.wait_until(lambda: caught, SECONDS)


class TestQuiet:
    def test_engine_with_unread_input_or_unsent_output_is_not_quiet(
        self, engine: PortEngine, echoes: Echoes
    ) -> None:
        with engine.client() as client:
            assert engine.wait_until(engine.quiet, SECONDS)
            with engine:
                client.sendall(b"x")
                assert not engine.quiet()
            assert read(client, 1) == b"x"
            with engine:
                echoes.accepted[0].write(b"y" * 30_000_000)
                assert not engine.quiet()
            read(client, 30_000_000)
            assert engine.wait_until(engine.quiet, SECONDS)

    def test_engine_with_a_due_timer_is_not_quiet(self, engine: PortEngine) -> None:
        with engine:
            engine.timers.call_at(engine.clock.now(), lambda: None)
            assert not engine.quiet()
        assert engine.wait_until(engine.quiet, SECONDS)


def test_function_posted_while_a_turn_begins_is_called_in_the_next_turn(
    engine: PortEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = cast(Loop, engine._loop)
    called = threading.Event()
    begin = loop._begin_slice

    def post_and_begin() -> None:
        # The turn has called what was posted, and not yet read the byte that woke it.
        monkeypatch.undo()
        loop.post(called.set)
        begin()

    monkeypatch.setattr(loop, "_begin_slice", post_and_begin)
    loop.wake()
    assert called.wait(10)


def test_idle_loop_takes_no_turns_without_a_wake_up(engine: PortEngine, echoes: Echoes) -> None:
    """A forced wake-up costs one turn; nothing else ever turns the loop, whatever state the peers are in."""
    with (
        dial(engine) as idle,
        engine.connect_socketpair() as blocked,
        dial(engine) as lingering,
        engine.connect_socketpair() as slow,
        engine.connect_socketpair() as half_closed,
    ):
        idle.sendall(b"x")
        read(idle, 1)
        lingering.sendall(b"y")
        read(lingering, 1)
        by_first = {bytes(each.received[:1]): each for each in echoes.accepted}
        blocked_connection, slow_connection, half_closed_connection = (
            each for each in echoes.accepted if each.peer.host == "socketpair"
        )
        with engine:
            blocked_connection.set_reading(False)
            by_first[b"y"].finish()
            slow_connection.write(b"z" * 30_000_000)
            half_closed_connection.write(b"z" * 30_000_000)
        half_closed.shutdown(socket.SHUT_WR)
        assert engine.wait_until(lambda: half_closed_connection.eofs, SECONDS)
        blocked.sendall(b"x" * 1000)
        assert lingering.recv(1) == b""
        # Every turn that is still due for the above has been taken once these have.
        for _ in range(5):
            turn(engine)
        turns = engine.turns
        for _ in range(10):
            turn(engine)
        assert engine.turns == turns + 10
        slow.settimeout(SECONDS)
        read(slow, 30_000_000)


class StopsReading(EchoConnection):
    """Stops reading at the first byte, and notifies nobody."""

    def on_data(self, data: bytes) -> None:
        self.reading = False


def test_input_of_a_connection_that_stopped_reading_does_not_turn_the_loop(started: Started) -> None:
    """The driver finds out by itself, at the first event in vain: nothing it watches is ready any more."""
    engine, echoes = started(StopsReading)
    with engine.connect_socketpair() as client:
        client.sendall(b"x")
        assert engine.wait_until(lambda: echoes.accepted[0].received, SECONDS)
        client.sendall(b"y" * 500)
        assert engine.wait_until(engine.quiet, SECONDS)
        with engine:
            assert echoes.accepted[0].received == b"x"
            echoes.accepted[0].set_reading(True)
        assert engine.wait_until(lambda: len(echoes.accepted[0].received) == 501, SECONDS)
