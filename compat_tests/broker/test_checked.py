"""The checks of a trace on a broker that runs, with real clients, faults and restarts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import aio_pika
import aio_pika.patterns
import pika
import pika.exceptions
import pytest

from fakeamqp import Broker, BrokerError
from fakeamqp.trace import CheckFailed, TraceIncomplete, UnknownCheck, UnknownRule
from fakeamqp.trace.checks import CHECKS

OPTIONS = {"clock": "virtual"}

SOON = 0.2
"""Seconds to wait for what does not come."""


@pytest.fixture
def channel(broker: Broker) -> Iterator[Any]:
    """A channel of pika with confirms, and a durable queue "q"."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    yield channel
    with suppress(pika.exceptions.AMQPError):
        connection.close()


def publish(channel: Any, body: bytes = b"1", key: str = "q", **properties: Any) -> None:
    channel.basic_publish("", key, body, pika.BasicProperties(**properties))


def take(channel: Any, queue: str = "q") -> int:
    """Get a message; its delivery tag."""
    method, _, _ = channel.basic_get(queue)
    assert method is not None
    tag: int = method.delivery_tag
    return tag


def rules(failure: pytest.ExceptionInfo[CheckFailed]) -> list[tuple[str, str | None]]:
    return [(finding.rule, finding.reason) for finding in failure.value.findings]


def test_acknowledged_message_is_no_finding(broker: Broker, channel: Any):
    publish(channel)
    channel.basic_ack(take(channel))  # May still be in transit.
    broker.expect_no_findings()


def test_checked_context_waits_for_a_late_ack(broker: Broker, channel: Any):
    publish(channel)
    tag = take(channel)
    looked = threading.Event()

    def act() -> None:
        assert looked.wait(5)
        channel.basic_ack(tag)

    thread = threading.Thread(target=act)
    thread.start()
    with broker.expect_no_findings.during():
        looked.set()
    thread.join()
    assert broker.queue("q").unacked == 0


def test_unacked_message_is_a_left_unacked_finding(broker: Broker, channel: Any):
    publish(channel, b"two apples")
    take(channel)
    with pytest.raises(CheckFailed, match=r"message b'two apples'.* is held by a get") as raised:
        broker.expect_no_findings(timeout=SOON)
    assert isinstance(raised.value, AssertionError)
    assert rules(raised) == [("left-unacked", None)]
    broker.expect_no_findings("lost", "duplicates", timeout=SOON)
    broker.expect_no_findings(allow="left-unacked", timeout=SOON)


def test_message_lost_in_a_crash_is_a_message_lost_finding(broker: Broker, channel: Any):
    publish(channel, b"kept", delivery_mode=2)
    publish(channel, b"lost")
    broker.restart(crash=True)
    with pytest.raises(CheckFailed, match="message b'lost'") as raised:
        broker.expect_no_findings()
    assert rules(raised) == [("message-lost", "crash")]
    broker.expect_no_findings(allow={"crash": "q"})


def test_message_redelivered_after_a_closed_connection_is_no_finding(broker: Broker, channel: Any):
    publish(channel)
    take(channel)
    (client,) = broker.connections
    client.close(320, "CONNECTION_FORCED")
    again = pika.BlockingConnection(pika.URLParameters(broker.url)).channel()
    method, _, _ = again.basic_get("q")
    assert method is not None and method.redelivered
    again.basic_ack(method.delivery_tag)
    broker.expect_no_findings()
    again.connection.close()


def test_dropped_confirm_is_an_unanswered_finding(broker: Broker, channel: Any):
    broker.faults.on("basic.ack", direction="sent").drop().once()
    # The call of pika would wait for the confirm.
    channel._impl.basic_publish("", "q", b"1")
    channel.connection._flush_output()
    with pytest.raises(CheckFailed) as raised:
        broker.expect_no_findings(timeout=SOON)
    assert rules(raised) == [("unanswered", None)]


def test_duplicated_delivery_is_a_sent_twice_finding(broker: Broker, channel: Any):
    broker.faults.on("basic.deliver", direction="sent").duplicate().once()
    publish(channel)
    channel.basic_consume("q", lambda *_: None, auto_ack=True)
    with pytest.raises(CheckFailed) as raised:
        broker.expect_no_findings("duplicates")
    assert rules(raised) == [("sent-twice", None)]


def test_step_reports_only_findings_inside_the_context(broker: Broker, channel: Any):
    publish(channel, key="lost before")
    with pytest.raises(CheckFailed) as raised, broker.expect_no_findings.during() as checked:
        publish(channel)
        checked.step()
        channel.basic_ack(take(channel))
        checked.step()
        publish(channel, key="lost now")
        checked.step()
    (finding,) = raised.value.findings
    assert "'lost now'" in finding.text
    assert broker.trace.events[finding.number] == finding.story[-1].event


def test_step_reports_each_finding_only_once(broker: Broker, channel: Any):
    with broker.expect_no_findings.during() as checked:
        publish(channel, key="nowhere")
        with pytest.raises(CheckFailed):
            checked.step()
        checked.step()


def test_checked_context_includes_deliveries_from_before_its_begin(broker: Broker, channel: Any):
    publish(channel)
    tag = take(channel)
    with pytest.raises(CheckFailed) as raised, broker.expect_no_findings.during(timeout=SOON):
        pass
    assert rules(raised) == [("left-unacked", None)]
    with broker.expect_no_findings.during():
        channel.basic_ack(tag)


def test_ack_of_an_unknown_delivery_tag_is_a_conformance_finding(broker: Broker, channel: Any):
    with pytest.raises(CheckFailed) as raised, broker.expect_no_findings.during() as checked:
        channel.basic_ack(7)
        broker.wait_until_idle()
        checked.step()
    assert rules(raised) == [("settles-nothing", None)]
    (finding,) = raised.value.findings
    assert broker.trace.events[finding.number].name == "basic.ack"


def test_exception_in_a_checked_context_is_raised_instead_of_findings(broker: Broker, channel: Any):
    with pytest.raises(ZeroDivisionError), broker.expect_no_findings.during():
        publish(channel, key="nowhere")
        raise ZeroDivisionError


def test_reset_in_a_checked_context_forgets_earlier_findings(broker: Broker, channel: Any):
    with broker.expect_no_findings.during() as checked:
        publish(channel, key="nowhere")
        broker.reset()
        checked.step()


def test_check_of_a_trace_with_dropped_events_raises_trace_incomplete():
    with Broker(trace=30) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.queue_declare("q")
        with broker.expect_no_findings.during() as checked:
            for _ in range(20):
                publish(channel)
                channel.connection.process_data_events()
                broker.wait_until_idle()
                checked.step()
        with (
            pytest.raises(TraceIncomplete, match="no longer has the opening of c1 channel 1"),
            broker.expect_no_findings.during(),
        ):
            publish(channel)
        with pytest.raises(TraceIncomplete, match=r"dropped at least \d+ events before they were checked"):
            broker.expect_no_findings()
        broker.expect_no_findings(allow="incomplete")
        connection.close()


def test_unknown_check_unknown_rule_and_disabled_trace_are_errors(broker: Broker):
    with pytest.raises(UnknownCheck, match="did you mean 'unacked'"):
        broker.expect_no_findings("unaked")
    with pytest.raises(UnknownRule, match="did you mean 'left-unacked'"):
        broker.expect_no_findings.during(allow="left-unaked")
    with Broker(trace=0) as silent, pytest.raises(BrokerError, match="the trace is off"):
        silent.expect_no_findings()


def test_each_check_of_the_trace_can_be_expected_alone(broker: Broker, channel: Any):
    publish(channel)
    for name in CHECKS:
        broker.expect_no_findings(name)
        assert broker.trace.findings(name) == ()


def test_checked_and_expect_no_findings_work_in_coroutines(broker: Broker):
    async def call() -> None:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("jobs")
            async with broker.expect_no_findings.during():
                await channel.default_exchange.publish(aio_pika.Message(b"1"), "jobs")
                await (await queue.get()).ack()
            await broker.expect_no_findings.aio()
            await channel.default_exchange.publish(aio_pika.Message(b"2"), "nowhere", mandatory=False)
            with pytest.raises(CheckFailed, match="unroutable"):
                await broker.expect_no_findings.aio()

    asyncio.run(call())


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_request_without_exactly_one_answer_is_a_finding(broker: Broker, answers: int):
    async def call() -> None:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            requests = await channel.declare_queue("requests")
            replies = await channel.declare_queue(exclusive=True)
            request = aio_pika.Message(b"2", reply_to=replies.name, correlation_id="one")
            await channel.default_exchange.publish(request, "requests")
            message = await requests.get()
            reply = aio_pika.Message(b"4", correlation_id=message.correlation_id)
            for _ in range(answers):
                await channel.default_exchange.publish(reply, message.reply_to)
            await message.ack()
            expected = {0: "has no answer", 1: "", 2: "was answered twice"}[answers]
            if expected:
                with pytest.raises(CheckFailed, match=expected):
                    await broker.expect_no_findings.aio(timeout=SOON)
            else:
                await broker.expect_no_findings.aio()

    asyncio.run(call())


def test_rpc_calls_of_aio_pika_cause_no_findings(broker: Broker):
    async def double(*, number: int) -> int:
        return 2 * number

    async def call() -> None:
        async with await aio_pika.connect(broker.url) as connection:
            rpc = await aio_pika.patterns.RPC.create(await connection.channel())
            await rpc.register("double", double, auto_delete=True)
            async with broker.expect_no_findings.during():
                results = await asyncio.gather(*(rpc.call("double", {"number": n}) for n in range(5)))
            assert results == [0, 2, 4, 6, 8]
            await rpc.close()

    asyncio.run(call())
    broker.expect_no_findings()
