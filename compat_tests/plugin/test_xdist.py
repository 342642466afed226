from __future__ import annotations

from compat_tests.plugin.conftest import WriteTests


def test_four_workers_each_have_brokers_of_their_own(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.parametrize("number", range(12))
        def test_pika(pika_channel, amqp_broker, number):
            # The same name in every test: a queue of another test's broker would be in the way.
            pika_channel.queue_declare("orders", exclusive=True)
            pika_channel.basic_publish("", "orders", str(number).encode())
            amqp_broker.queue("orders").wait_for(ready=1, timeout=10)

        @pytest.mark.asyncio
        @pytest.mark.parametrize("number", range(12))
        async def test_aio_pika(aio_pika_connection, number):
            channel = await aio_pika_connection.channel()
            queue = await channel.declare_queue("orders", exclusive=True)
            assert queue.declaration_result.message_count == 0
    """).run_apart("-n", "4", passed=24)


def test_timeline_of_a_failed_test_in_an_xdist_worker_is_reported(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(pika_channel):
            pika_channel.queue_declare("orders")
            assert False, "on purpose"
    """).run_apart("-n", "2", failed=1, said=["*AMQP timeline*", "*queue.declare*orders*"])
