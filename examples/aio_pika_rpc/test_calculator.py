from __future__ import annotations

import asyncio

import aio_pika
import pytest
from aio_pika.abc import AbstractRobustConnection
from calculator_client import CalculationFailed, Calculator, NoServer
from calculator_server import QUEUE, CalculatorServer

from fakeamqp import Broker

pytestmark = pytest.mark.asyncio


async def test_a_call_is_answered(aio_pika_connection: AbstractRobustConnection) -> None:
    async with CalculatorServer(aio_pika_connection), Calculator(aio_pika_connection) as calculator:
        assert await calculator.call("add", 1, 2) == 3


async def test_many_calls_at_once_get_their_own_answers(
    aio_pika_connection: AbstractRobustConnection,
) -> None:
    async with CalculatorServer(aio_pika_connection), Calculator(aio_pika_connection) as calculator:
        answers = await asyncio.gather(*(calculator.call("multiply", 7, number) for number in range(50)))
    assert answers == [7 * number for number in range(50)]


async def test_callers_on_other_connections_do_not_see_each_others_answers(
    amqp_url: str, aio_pika_connection: AbstractRobustConnection
) -> None:
    async with (
        CalculatorServer(aio_pika_connection),
        await aio_pika.connect(amqp_url) as first_connection,
        await aio_pika.connect(amqp_url) as second_connection,
        Calculator(first_connection) as first,
        Calculator(second_connection) as second,
    ):
        answers = await asyncio.gather(first.call("add", 1, 1), second.call("add", 2, 2))
        assert list(answers) == [2, 4]


async def test_an_impossible_calculation_is_an_error_for_its_caller_only(
    aio_pika_connection: AbstractRobustConnection,
) -> None:
    async with CalculatorServer(aio_pika_connection), Calculator(aio_pika_connection) as calculator:
        with pytest.raises(CalculationFailed, match="ZeroDivisionError"):
            await calculator.call("divide", 1, 0)
        assert await calculator.call("divide", 1, 4) == 0.25


async def test_a_request_that_is_no_json_does_not_stop_the_server(
    aio_pika_connection: AbstractRobustConnection,
) -> None:
    async with CalculatorServer(aio_pika_connection), Calculator(aio_pika_connection) as calculator:
        channel = await aio_pika_connection.channel()
        await channel.default_exchange.publish(aio_pika.Message(b"\xff\x00"), routing_key=QUEUE)
        assert await calculator.call("add", 1, 2) == 3


async def test_without_a_server_the_caller_learns_it_at_once(
    aio_pika_connection: AbstractRobustConnection,
) -> None:
    async with Calculator(aio_pika_connection) as calculator:
        with pytest.raises(NoServer):
            await calculator.call("add", 1, 2)


async def test_the_server_leaves_nothing_behind(
    amqp_broker: Broker, aio_pika_connection: AbstractRobustConnection
) -> None:
    async with CalculatorServer(aio_pika_connection), Calculator(aio_pika_connection) as calculator:
        await calculator.call("add", 1, 2)
        # The answer may be here before the server's ack is: wait for the effect.
        await amqp_broker.queue(QUEUE).wait_for.aio(ready=0, unacked=0, consumers=1)

    channel = await aio_pika_connection.channel()
    with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
        await channel.declare_queue(QUEUE, passive=True)
