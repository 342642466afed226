"""The option --amqp-real-url. A fakeamqp broker outside the inner run plays the real one."""

from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import RunTests
from fakeamqp import Broker


@pytest.fixture(params=["option", "ini"])
def name_broker(request: pytest.FixtureRequest, amqp_broker: Broker) -> list[str]:
    """Command line arguments that name the outer broker, in both ways to do so."""
    if request.param == "option":
        return [f"--amqp-real-url={amqp_broker.url}"]
    return ["-o", f"amqp_real_url={amqp_broker.url}"]


def test_clients_use_the_named_broker(
    run_tests: RunTests, name_broker: list[str], amqp_broker: Broker
) -> None:
    result = run_tests(
        f"""
        import pytest

        def test_url(amqp_url):
            assert amqp_url == {amqp_broker.url!r}

        def test_pika(pika_channel):
            pika_channel.queue_declare("from-pika")

        @pytest.mark.asyncio
        async def test_aio_pika(aio_pika_connection):
            channel = await aio_pika_connection.channel()
            await channel.declare_queue("from-aio-pika")
        """,
        *name_broker,
    )
    result.assert_outcomes(passed=3)
    assert amqp_broker.queue("from-pika").ready == 0
    assert amqp_broker.queue("from-aio-pika").ready == 0


def test_test_that_needs_fakeamqp_features_is_skipped_with_a_real_url(
    run_tests: RunTests, name_broker: list[str]
) -> None:
    result = run_tests(
        """
        import pytest

        def test_broker(amqp_broker):
            raise AssertionError("not to be run")

        def test_factory(make_amqp_broker):
            raise AssertionError("not to be run")

        def test_both(pika_channel, amqp_broker):
            raise AssertionError("not to be run")

        @pytest.mark.amqp(users={"alice": "secret"})
        def test_marker(pika_channel):
            raise AssertionError("not to be run")
        """,
        "-rs",
        *name_broker,
    )
    result.assert_outcomes(skipped=4)
    text = result.stdout.str()
    assert "needs features of fakeamqp, and --amqp-real-url uses a real broker" in text
    assert "@pytest.mark.amqp configures fakeamqp" in text


def test_a_failure_has_no_timeline_and_does_not_stumble_over_it(
    run_tests: RunTests, name_broker: list[str]
) -> None:
    result = run_tests(
        """
        def test_it(pika_channel):
            assert pika_channel.is_closed
        """,
        *name_broker,
    )
    result.assert_outcomes(failed=1)
    assert "AMQP timeline" not in result.stdout.str()


@pytest.mark.parametrize("url", ["localhost:5672", "http://localhost/", "amqp://"])
def test_invalid_real_url_is_a_usage_error(run_tests: RunTests, url: str) -> None:
    result = run_tests("", f"--amqp-real-url={url}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*is not of the form amqp://*"])


def test_a_broker_that_does_not_answer_is_an_error(run_tests: RunTests, amqp_broker: Broker) -> None:
    amqp_broker.stop()
    result = run_tests("def test_it(pika_connection): pass", f"--amqp-real-url={amqp_broker.url}")
    result.assert_outcomes(errors=1)
