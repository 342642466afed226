"""A broker that is dropped without `stop` says where it was started."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable

import pika
import pytest

from fakeamqp import Broker

pytestmark = pytest.mark.threads_only


def plain() -> tuple[object, int]:
    broker = Broker()
    return broker.start()._engine, here()


def used() -> tuple[object, int]:
    broker = Broker(clock="virtual")
    broker.start()
    line = here() - 1
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    connection.channel().queue_declare("q")
    assert broker.queue("q").ready == 0
    broker.clock.advance(1)
    connection.close()
    return broker._engine, line


def in_a_loop() -> tuple[object, int]:
    async def start() -> tuple[object, int]:
        broker = Broker(runtime="asyncio")
        await broker.start.aio()
        return broker._engine, here() - 1

    return asyncio.run(start())


def here() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.mark.parametrize("start", [plain, used, in_a_loop])
def test_broker_dropped_without_stop_warns_with_the_place_of_its_start(
    start: Callable[[], tuple[object, int]],
):
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        engine, line = start()
        gc.collect()
    engine.stop()  # type: ignore[attr-defined]
    (found,) = [each for each in caught if "was not stopped" in str(each.message)]
    assert found.category is ResourceWarning
    assert (found.filename, found.lineno) == (__file__, line)
    assert f"{__file__}, line {line}" in str(found.message)


def test_stopped_broker_gives_no_resource_warning():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        broker = Broker().start()
        broker.stop()
        with broker:
            broker.restart()
        del broker
        gc.collect()
    assert [each for each in caught if each.category is ResourceWarning] == []


@pytest.mark.parametrize(
    "program",
    [
        "broker = Broker().start()",
        # These keep their broker: they may have to restart it, or to answer requests about it.
        "Broker().start().faults",
        "Broker(management=True).start()",
    ],
)
def test_running_broker_at_process_exit_gives_a_resource_warning(program: str):
    program = f"from fakeamqp import Broker\n{program}\n"
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "line 2, was not stopped: call stop()" in done.stderr
