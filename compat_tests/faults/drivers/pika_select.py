"""pika's SelectConnection on its own loop."""

from __future__ import annotations

import pika

from compat_tests.faults.drivers.pika_callbacks import Script, parameters, quick_checks
from compat_tests.faults.observation import Observation
from compat_tests.faults.scenario import Stage

TITLE = "pika SelectConnection"


def run(stage: Stage) -> Observation:
    loop = pika.adapters.select_connection.IOLoop()
    script = Script(stage, loop.call_later, loop.stop)
    pika.SelectConnection(parameters(stage), script.opened, script.failed, script.failed, custom_ioloop=loop)
    with quick_checks():
        loop.start()
    loop.close()
    return script.seen
