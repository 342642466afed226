"""aio-pika's `connect_robust`: it reconnects, and declares and consumes again."""

from __future__ import annotations

import aio_pika

from compat_tests.faults.drivers.aio_pika_plain import Plain

TITLE = "aio-pika `connect_robust`"


class Robust(Plain):
    reconnects = True

    async def connect(self) -> None:
        # The timeout is that of every attempt, also of those made behind the scenes.
        self.connection = await aio_pika.connect_robust(
            self.url, reconnect_interval=0.05, timeout=self.stage.patience * 0.75
        )

    def usable(self) -> bool:
        return not self.connection.is_closed


run = Robust.run
