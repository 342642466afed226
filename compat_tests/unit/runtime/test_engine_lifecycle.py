"""Starting, stopping, forking: nothing hangs and nothing is left behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import threading

import pytest

from compat_tests.unit.runtime.conftest import Started
from compat_tests.unit.runtime.fakes import SECONDS, Echoes, PortEngine, real_engine


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_start_and_stop_are_idempotent() -> None:
    before = threads()
    engine = real_engine(Echoes())
    engine.stop()
    engine.start()
    engine.start()
    assert engine.running
    assert len(threads() - before) == 1
    engine.stop()
    engine.stop()
    assert not engine.running
    assert threads() <= before


def test_stopped_engine_can_start_again() -> None:
    engine = real_engine(Echoes())
    for _ in range(3):
        engine.start()
        with engine.client() as client:
            client.sendall(b"x")
            assert client.recv(1) == b"x"
        engine.stop()
    assert engine.failures == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_stop_leaves_no_thread_and_no_descriptor() -> None:
    threads_before, descriptors_before = threads(), descriptors()
    engine = real_engine(Echoes())
    engine.start()
    listener = engine.listen()
    refusing = engine.listen()
    refusing.refuse(True)
    clients = [engine.connect_socketpair() for _ in range(3)]
    clients += [socket.create_connection(listener.address) for _ in range(3)]
    for client in clients:
        client.sendall(b"x")
        assert client.recv(1) == b"x"
    engine.stop()
    assert threads() <= threads_before
    for client in clients:
        assert client.recv(1) == b""
        client.close()
    assert descriptors() == descriptors_before


def test_stop_sends_pending_output_and_signals_eof_to_connections(started: Started) -> None:
    engine, accept = started()
    with socket.create_connection(engine.listen().address, timeout=SECONDS) as client:
        assert engine.wait_until(lambda: accept.accepted, SECONDS)
        (connection,) = accept.accepted
        with engine:
            connection.set_reading(False)
        client.sendall(b"x" * 10_000)  # unread input must not turn the end into a reset
        with engine:
            connection.write(b"goodbye")
            engine.stop()
        assert client.recv(100) == b"goodbye"
        assert client.recv(100) == b""
    assert connection.eofs == 1


def test_stop_while_holding_the_lock_does_not_hang() -> None:
    engine = real_engine(Echoes())
    engine.start()
    with engine, engine:
        engine.stop()
        assert not engine.running
        assert engine._lock.held()
    assert not engine._lock.held()


def test_engine_can_be_stopped_on_the_loop_thread() -> None:
    engine = real_engine(Echoes())
    engine.start()
    client = engine.connect_socketpair()
    client.settimeout(SECONDS)
    with engine:
        engine.timers.call_at(engine.clock.now(), engine.stop)
    assert client.recv(1) == b""
    client.close()
    engine.stop()
    assert not engine.running
    assert engine.failures == []


def test_engine_can_start_right_after_a_stop_on_the_loop_thread() -> None:
    engine = real_engine(Echoes())
    engine.start()
    stopping = threading.Event()

    def stop() -> None:
        engine.stop()
        stopping.set()

    with engine:
        engine.timers.call_at(engine.clock.now(), stop)
    assert stopping.wait(SECONDS)
    engine.start()
    with engine.client() as client:
        client.sendall(b"x")
        assert client.recv(1) == b"x"
    engine.stop()


def test_engine_can_be_stopped_from_several_threads_at_once() -> None:
    engine = real_engine(Echoes())
    engine.start()
    stoppers = [threading.Thread(target=engine.stop) for _ in range(8)]
    for stopper in stoppers:
        stopper.start()
    for stopper in stoppers:
        stopper.join(SECONDS)
        assert not stopper.is_alive()
    assert not engine.running


def test_calls_of_a_stopped_engine_return_without_an_error() -> None:
    engine = real_engine(Echoes())
    engine.start()
    engine.stop()
    with engine:
        pass
    engine.wake()
    engine.disconnect_all()
    assert engine.quiet()
    assert engine.connections == []
    assert engine.wait_until(lambda: False, SECONDS) is False


def test_connection_may_write_after_the_engine_has_stopped(engine: PortEngine, echoes: Echoes) -> None:
    with engine.connect_socketpair():
        engine.stop()
        with engine:
            echoes.accepted[0].write(b"to nobody")
            echoes.accepted[0].finish()


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-X", "dev", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert "ResourceWarning" not in result.stderr, result.stderr
    return result.stdout


def test_process_with_a_running_engine_can_exit() -> None:
    run("""
        from compat_tests.unit.runtime.fakes import Echoes, real_engine
        engine = real_engine(Echoes())
        engine.start()
        engine.listen()
    """)


def test_engine_and_connections_cause_no_resource_warning() -> None:
    run("""
        import gc, socket
        from compat_tests.unit.runtime.fakes import Echoes, real_engine
        engine = real_engine(Echoes())
        engine.start()
        pair = engine.connect_socketpair()
        client = socket.create_connection(engine.listen().address)
        for each in (pair, client):
            each.sendall(b"x")
            assert each.recv(1) == b"x"
            each.close()
        engine.stop()
        del engine
        gc.collect()
    """)


FORK = """
import os, socket, sys
from compat_tests.unit.runtime.fakes import Echoes, real_engine
engine = real_engine(Echoes())
engine.start()
listener = engine.listen()
client = socket.create_connection(listener.address, timeout=20)
client.sendall(b"a")
assert client.recv(1) == b"a"
pair = engine.connect_socketpair()

def fork(child):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            child()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status

def parent_still_serves():
    client.sendall(b"b")
    assert client.recv(1) == b"b"
    pair.sendall(b"c")
    assert pair.recv(1) == b"c"
    with socket.create_connection(listener.address, timeout=20) as another:
        another.sendall(b"d")
        assert another.recv(1) == b"d"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
class TestFork:
    def test_fork_stops_the_engine_in_the_child_but_not_in_the_parent(self) -> None:
        run(
            FORK
            + textwrap.dedent("""
            def child():
                assert not engine.running
                assert engine.connections == []
                with engine:
                    pass
                engine.stop()
                engine.stop()

            fork(child)
            parent_still_serves()
            engine.stop()
            assert client.recv(1) == pair.recv(1) == b""
            client.close(), pair.close()
            assert engine.failures == []
            """)
        )

    def test_fork_while_holding_the_lock_stops_the_engine_in_the_child_only(self) -> None:
        run(
            FORK
            + textwrap.dedent("""
            def child():
                with engine:
                    assert not engine.running
                engine.stop()

            with engine:
                with engine:
                    fork(child)
            parent_still_serves()
            engine.stop()
            client.close(), pair.close()
            """)
        )

    def test_forked_child_can_connect_to_the_parent_and_start_its_own_engine(self) -> None:
        run(
            FORK
            + textwrap.dedent("""
            def child():
                with socket.create_connection(listener.address, timeout=20) as mine:
                    mine.sendall(b"e")
                    assert mine.recv(1) == b"e"
                engine.start()
                own = engine.listen()
                assert own.port != listener.port
                with socket.create_connection(own.address, timeout=20) as mine:
                    mine.sendall(b"f")
                    assert mine.recv(1) == b"f"
                engine.stop()

            fork(child)
            parent_still_serves()
            engine.stop()
            client.close(), pair.close()
            """)
        )

    def test_connections_end_when_the_parent_stops_before_its_forked_child(self) -> None:
        """The child keeps no copy of a socket, or the peer would never see the end."""
        run(
            FORK
            + textwrap.dedent("""
            reader, writer = os.pipe()
            started, starting = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(writer)
                os.write(starting, b"!")
                os.read(reader, 1)  # lives until the parent has seen the end of its connections
                os._exit(0)
            os.close(reader)
            os.read(started, 1)
            engine.stop()
            client.settimeout(20)
            pair.settimeout(20)
            assert client.recv(1) == pair.recv(1) == b""
            try:
                socket.create_connection(listener.address, timeout=20).close()
            except ConnectionRefusedError:
                pass
            else:
                raise AssertionError("somebody still listens")
            os.close(writer)
            os.waitpid(pid, 0)
            client.close(), pair.close()
            """)
        )

    def test_fork_while_the_loop_is_busy_leaves_the_parent_serving(self) -> None:
        run(
            FORK
            + textwrap.dedent("""
            import threading
            stop = threading.Event()

            def flood():
                with socket.create_connection(listener.address, timeout=20) as mine:
                    while not stop.is_set():
                        mine.sendall(b"x" * 1000)
                        left = 1000
                        while left:
                            left -= len(mine.recv(left))

            thread = threading.Thread(target=flood)
            thread.start()

            def child():
                with engine:
                    pass
                engine.stop()

            for _ in range(20):
                fork(child)
            stop.set()
            thread.join()
            parent_still_serves()
            engine.stop()
            client.close(), pair.close()
            """)
        )
