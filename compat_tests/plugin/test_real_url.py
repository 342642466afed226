"""The option --amqp-real-url. A fakeamqp broker outside the inner run plays the real one."""

from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import WriteTests
from fakeamqp import Broker


@pytest.fixture(params=["option", "ini"])
def name_broker(request: pytest.FixtureRequest, amqp_broker: Broker) -> list[str]:
    """Command line arguments that name the outer broker, in both ways to do so."""
    if request.param == "option":
        return [f"--amqp-real-url={amqp_broker.url}"]
    return ["-o", f"amqp_real_url={amqp_broker.url}"]


def test_clients_use_the_named_broker(
    write_tests: WriteTests, name_broker: list[str], amqp_broker: Broker
) -> None:
    write_tests(f"""
        def test_url(amqp_url):
            assert amqp_url == {amqp_broker.url!r}

        def test_pika(pika_channel):
            pika_channel.queue_declare("from-pika")

        @pytest.mark.asyncio
        async def test_aio_pika(aio_pika_connection):
            channel = await aio_pika_connection.channel()
            await channel.declare_queue("from-aio-pika")
    """).run(*name_broker, passed=3)
    assert amqp_broker.queue("from-pika").ready == 0
    assert amqp_broker.queue("from-aio-pika").ready == 0


def test_test_that_needs_fakeamqp_features_is_skipped_with_a_real_url(
    write_tests: WriteTests, name_broker: list[str]
) -> None:
    result = write_tests("""
        def test_broker(amqp_broker):
            raise AssertionError("not to be run")

        def test_factory(make_amqp_broker):
            raise AssertionError("not to be run")

        def test_both(pika_channel, amqp_broker):
            raise AssertionError("not to be run")

        @pytest.mark.amqp(users={"alice": "secret"})
        def test_marker(pika_channel):
            raise AssertionError("not to be run")
    """).run("-rs", *name_broker, skipped=4)
    text = result.stdout.str()
    assert "needs features of fakeamqp, and --amqp-real-url uses a real broker" in text
    assert "@pytest.mark.amqp configures fakeamqp" in text


def test_a_failure_has_no_timeline_and_does_not_stumble_over_it(
    write_tests: WriteTests, name_broker: list[str]
) -> None:
    result = write_tests("""
        def test_it(pika_channel):
            assert pika_channel.is_closed
    """).run(*name_broker, failed=1)
    assert "AMQP timeline" not in result.stdout.str()


def test_a_broker_that_does_not_answer_is_an_error(write_tests: WriteTests, amqp_broker: Broker) -> None:
    amqp_broker.stop()
    write_tests("def test_it(pika_connection): pass").run(f"--amqp-real-url={amqp_broker.url}", errors=1)
