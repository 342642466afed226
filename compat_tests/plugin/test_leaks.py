from __future__ import annotations

import os

import pytest

from compat_tests.plugin.conftest import WriteTests

WATCH = """
    import gc
    import os
    import threading


    def sockets():
        found = []
        for number in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{number}")
            except OSError:
                continue  # The listing's own descriptor.
            if target.startswith(("socket:", "pipe:", "anon_inode:")):
                found.append(target)
        return sorted(found)

    @pytest.fixture(autouse=True, scope="module")
    def nothing_is_left():
        threads, before = set(threading.enumerate()), sockets()
        yield
        gc.collect()
        assert set(threading.enumerate()) <= threads
        assert sockets() == before
"""

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors under /proc")


@needs_proc
def test_leak_watch_reports_a_broker_left_running(write_tests: WriteTests) -> None:
    write_tests(
        WATCH
        + """
    def test_it():
        from fakeamqp import Broker

        pytest.forgotten = Broker().start()
    """
    ).run_apart(passed=1, errors=1)


@needs_proc
def test_pika_tests_leave_no_thread_and_no_socket(write_tests: WriteTests) -> None:
    write_tests(
        WATCH
        + """
    @pytest.mark.parametrize("turn", range(5))
    def test_it(amqp_broker, pika_channel, turn):
        pika_channel.queue_declare("orders")

    def test_stop_with_a_client_inside(amqp_broker, pika_channel):
        amqp_broker.stop()

    def test_restart(amqp_broker, pika_channel):
        amqp_broker.restart()

    def test_a_client_that_forgets_to_close(amqp_broker):
        connection = pika.BlockingConnection(pika.URLParameters(amqp_broker.url))
        amqp_broker.stop()
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            while True:
                connection.process_data_events(time_limit=None)
    """
    ).run_apart("-W", "error::ResourceWarning", passed=8)


@needs_proc
@pytest.mark.parametrize("marker", ["asyncio", "anyio"])
def test_asynchronous_tests_leave_no_thread_no_socket_and_no_task(
    write_tests: WriteTests, marker: str
) -> None:
    write_tests(
        WATCH
        + f"""
    @pytest.fixture(scope="module")
    def anyio_backend():
        return "asyncio"

    @pytest.mark.{marker}
    @pytest.mark.parametrize("turn", range(5))
    async def test_it(amqp_broker, aio_pika_connection, turn):
        channel = await aio_pika_connection.channel()
        await channel.declare_queue("orders")

    @pytest.mark.{marker}
    async def test_the_broker_adds_no_task():
        from fakeamqp import Broker

        before = asyncio.all_tasks()
        async with Broker():
            pass
        assert asyncio.all_tasks() == before
    """
    ).run_apart("-W", "error::ResourceWarning", passed=6)


def test_the_brokers_of_earlier_tests_are_not_kept_in_memory(write_tests: WriteTests) -> None:
    write_tests("""
        import gc
        import weakref


        seen = []

        @pytest.mark.parametrize("turn", range(5))
        def test_it(amqp_broker, pika_channel, turn):
            seen.append(weakref.ref(amqp_broker))

        @pytest.mark.asyncio
        async def test_asynchronous(amqp_broker, aio_pika_connection):
            seen.append(weakref.ref(amqp_broker))

        def test_all_are_gone():
            gc.collect()
            assert [broker() for broker in seen] == [None] * 6
    """).run_apart(passed=7)
