"""Tests with faults, assertions, checks and recordings run on a real RabbitMQ through the plugin's proxy."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.differential.comparison import SERIES
from compat_tests.plugin import conftest
from fakeamqp.trace import load

write_tests = conftest.write_tests

SUITE = """
    @pytest.mark.amqp(checks=True)
    def test_refused_publish_is_published_again(amqp_faults, amqp_broker, amqp_queue, pika_channel):
        orders = amqp_queue("orders")
        refused = amqp_faults.on("basic.publish", routing_key=orders.name).nack().once()
        pika_channel.confirm_delivery()
        with pytest.raises(pika.exceptions.NackError):
            pika_channel.basic_publish("", orders.name, b"two apples")
        pika_channel.basic_publish("", orders.name, b"two apples")
        amqp_broker.expect_published(routing_key=orders.name, count=1)
        assert (refused.hits, orders.get().body) == (1, b"two apples")

    def test_duplicated_delivery_is_acked_once(amqp_faults, amqp_queue, pika_channel):
        orders = amqp_queue("orders")
        amqp_faults.on("basic.deliver", queue=orders.name).duplicate().once()
        orders.publish(b"two apples")
        bodies = []
        for method, _, body in pika_channel.consume(orders.name, inactivity_timeout=10):
            bodies.append(body)
            pika_channel.basic_ack(method.delivery_tag)
            if len(bodies) == 2:
                break
        pika_channel.cancel()
        orders.wait_for(ready=0, consumers=0)
        assert bodies == [b"two apples"] * 2

    @pytest.mark.asyncio
    @pytest.mark.amqp(runtime="asyncio")
    async def test_unroutable_message_is_returned_in_the_event_loop(amqp_proxy, aio_pika_connection):
        channel = await aio_pika_connection.channel()
        await channel.default_exchange.publish(aio_pika.Message(b"two apples"), "no such queue")
        await amqp_proxy.expect_returned.aio(reply_code=312)

    @pytest.mark.amqp(checks="unacked")
    def test_unacked_message_is_found(amqp_queue, pika_channel):
        orders = amqp_queue("orders")
        orders.publish(b"two apples")
        orders.wait_for(ready=1)
        pika_channel.basic_get(orders.name)

    def test_that_looks_into_a_queue(amqp_broker, amqp_queue):
        amqp_broker.queue(amqp_queue("orders").name)
"""


PROXIED = """
    def test_it(amqp_proxy, pika_channel):
        amqp_proxy.faults.on("queue.declare").close_channel(406).once()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            pika_channel.queue_declare("orders", exclusive=True)
        declared = pika_channel.connection.channel().queue_declare("", exclusive=True)
        assert declared.method.queue.startswith("amq.gen")
"""


@pytest.mark.parametrize("series", [SERIES["4.0"], SERIES["4.3"]], ids=str)
def test_suite_with_faults_expectations_checks_and_recordings_runs_on_rabbitmq(
    series, beside, write_tests, pytester
):
    write_tests(SUITE).run(
        f"--amqp-real-url={beside.node.url}",
        "--amqp-trace=traces",
        "-rsf",
        passed=3,
        failed=1,
        skipped=1,
        said=[
            "*- AMQP timeline -*",
            "SKIPPED *amqp_broker.queue needs fakeamqp's own broker*",
            "FAILED *test_unacked_message_is_found - CheckFailed: *",
        ],
    )
    [file] = Path(pytester.path, "traces").glob("*refused_publish*.jsonl")
    assert "fault: when a basic.publish" in load(file).timeline()
    assert "orders-" not in beside.node.evaluate("rabbit_amqqueue:list_names()")


@pytest.mark.parametrize("series", [SERIES["4.3"]], ids=str)
def test_amqp_proxy_leads_to_the_rabbitmq_that_proxy_to_names(series, beside, write_tests):
    write_tests(PROXIED).run(f"--amqp-proxy-to={beside.node.url}", passed=1)


@pytest.mark.parametrize("series", [SERIES["4.3"]], ids=str)
def test_login_that_rabbitmq_refuses_is_an_error_that_names_the_option(series, beside, write_tests):
    wrong = beside.node.url.replace("guest:guest", "guest:secret")
    write_tests("def test_it(amqp_url): pass").run(
        f"--amqp-real-url={wrong}", errors=1, said=["--amqp-real-url: amqp://****@*: *403 ACCESS_REFUSED*"]
    )
