from __future__ import annotations

from compat_tests.plugin.conftest import RunTests


def test_four_workers_each_have_brokers_of_their_own(run_tests_apart: RunTests) -> None:
    result = run_tests_apart(
        """
        import pytest

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
        """,
        "-n",
        "4",
    )
    result.assert_outcomes(passed=24)


def test_timeline_of_a_failed_test_in_an_xdist_worker_is_reported(run_tests_apart: RunTests) -> None:
    result = run_tests_apart(
        """
        def test_it(pika_channel):
            pika_channel.queue_declare("orders")
            assert False, "on purpose"
        """,
        "-n",
        "2",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AMQP timeline*", "*queue.declare*orders*"])
