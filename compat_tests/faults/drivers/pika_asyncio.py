"""pika's AsyncioConnection."""

from __future__ import annotations

import asyncio

from pika.adapters.asyncio_connection import AsyncioConnection

from compat_tests.faults.drivers.pika_callbacks import Script, parameters, quick_checks
from compat_tests.faults.observation import Observation
from compat_tests.faults.scenario import Stage

TITLE = "pika AsyncioConnection"


def run(stage: Stage) -> Observation:
    async def all() -> Observation:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        script = Script(stage, loop.call_later, ended.set)
        AsyncioConnection(parameters(stage), script.opened, script.failed, script.failed, custom_ioloop=loop)
        await ended.wait()
        return script.seen

    with quick_checks():
        return asyncio.run(all())
